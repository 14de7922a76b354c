"""Command lines are read as steps, known by their purpose, and told without their instance."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.commands import (
    generalise,
    is_help,
    is_preparation,
    is_read_only_step,
    main_step,
    own_scripts,
    run_scripts,
    step_purpose,
)
from archivist.reading.shell import parse

SCRIPT = "cat > try.py << 'EOF'\nimport a; print('x | y && z')\nEOF\npython try.py"


def is_read_only(command: str) -> bool:
    """Say whether a command only lists, prints, searches or compares."""
    steps = [step for step in parse(command) if not is_preparation(step)]
    return bool(steps) and all(is_read_only_step(step) for step in steps)


def purpose(command: str) -> str:
    """Return a stable key for what a command line is for, whatever its arguments."""
    step = main_step(parse(command))
    return step_purpose(step) if step else ""


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("", []),
        ("ls", ["ls"]),
        ("a && b || c; d | e\nf & g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("echo 'a && b' \"c | d\" e\\;f", ["echo"]),
        ("x=$(cat a | head -1; echo ')') && run $x", ["", "run"]),
        ("diff <(sort a | uniq) <(sort b)", ["diff"]),
        (SCRIPT, ["cat", "python"]),
        ("cat <<A <<'B'\n1 | 2\nA\n3; 4\nB\necho done", ["cat", "echo"]),
        ("cat <<-END > f\n\tx\n\tEND\nls", ["cat", "ls"]),
        ("# a comment | with pipes\nls # more; words", ["ls"]),
        ("if test -f a; then make b; else make c; fi", ["test", "make b", "make c"]),
        ("for f in *.py; do python $f; done", ["for", "python"]),
        ("(cd a && make)", ["cd", "make"]),
        ("python a.py \\\n  --flag", ["python"]),
        ("cmd 2>&1 >/dev/null <in &>all", ["cmd"]),
        ("bash -lc 'cd a && npm run test'", ["cd", "npm run test"]),
    ],
)
def test_steps_are_split_where_the_shell_splits(command: str, names: list[str]) -> None:
    assert [step.name for step in parse(command)] == names


@pytest.mark.parametrize(
    ("command", "program", "subcommand"),
    [
        ("sudo -u bob env A=1 timeout -k 5 60 nice -n 3 pytest -q", "pytest", ""),
        ("time python3.11 -m pip install x", "pip", "install"),
        ("/usr/bin/python3 -m unittest -v", "python -m unittest", ""),
        ("python -W ignore -m http.server", "python", ""),
        ("python -c 'print(1)'", "python", "-c"),
        ("python - <<E\nprint(1)\nE", "python", "-"),
        ("uv run --with rich python a.py", "python", ""),
        ("uv run pytest", "pytest", ""),
        ("uv pip install x", "uv", "pip install"),
        ("poetry run mypy src", "mypy", ""),
        ("npx --yes eslint .", "eslint", ""),
        ("bunx tsc --noEmit", "tsc", ""),
        ("pnpm exec vitest run", "vitest", ""),
        ("conda run -n base python a.py", "python", ""),
        ("find . -name a | xargs -n 1 wc -l", "wc", ""),
        ("git -C /a commit -m x", "git", "commit"),
        ("git stash pop", "git", "stash pop"),
        ("npm --prefix web run build", "npm", "run build"),
        ("docker compose up -d", "docker", "compose up"),
        ("cargo +nightly test -p a", "cargo", "test"),
        ("PYTHONPATH=src A=b make check", "make", "check"),
        ("sed -i.bak s/a/b/ x", "sed", "-i"),
    ],
)
def test_wrappers_are_looked_through(command: str, program: str, subcommand: str) -> None:
    step = parse(command)[-1]
    assert (step.program, step.subcommand) == (program, subcommand)


def test_a_step_holds_assignments_flags_arguments_and_redirections() -> None:
    (step,) = parse("A=1 B='x y' tool go --fast -n 3 'two words' > out.txt 2>&1")
    assert step.assignments == ("A=1", "B='x y'")
    assert step.flags == ("--fast", "-n")
    assert step.arguments == ("go", "3", "two words")
    assert [redirect.target for redirect in step.redirects] == ["out.txt", ""]
    assert step.is_writing


def test_a_program_behind_a_pipe_is_a_filter() -> None:
    first, tail = parse("pytest 2>&1 | tail -5")
    assert not first.is_filter
    assert tail.is_filter
    assert not any(step.is_filter for step in parse("pytest && tail -5 log"))


def test_here_documents_belong_to_their_command() -> None:
    steps = parse(SCRIPT)
    assert steps[0].bodies == ("import a; print('x | y && z')\n",)
    assert own_scripts(steps) == {"try.py"}
    assert run_scripts(steps) == {"try.py"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd /a && python -m pytest -q tests | tail -3", "pytest"),
        ("pytest -x", "pytest"),
        ("pip3 install -U x", "pip install"),
        ("uv pip install x", "pip install"),
        ("python -m pip install x && pytest", "pytest"),
        ("python -c 'import a'", "python -c"),
        (SCRIPT, "python <script>"),
        ("cd a; python tools/run.py --x", "python <script>"),
        ("git add -A && git commit -m 'x'", "git commit"),
        ("sed -i 's/a/b/' f.py && git diff", "sed -i"),
        ("sed -n '1,5p' f.py", "sed -n"),
        ("npm run test -- --watch", "npm run test"),
        ("cat > a.txt <<E\nx\nE", "write file"),
        ("grep -rn x . | head", "grep"),
        ("export A=1; cargo build --release 2>&1", "cargo build"),
        ("make test; echo $?", "make test"),
        ("", ""),
    ],
)
def test_purpose_ignores_arguments_and_surroundings(command: str, expected: str) -> None:
    assert purpose(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "cd /repo && python -m pytest tests/test_a.py::test_b -xvs 2>&1 | tail -50",
            "python -m pytest <test> -xvs",
        ),
        ("pytest tests/test_a.py tests/test_b.py -q", "pytest <test> -q"),
        ("pytest -k 'a and b'", 'pytest -k "…"'),
        ("cd /repo && cat /repo/src/a.py", "cat src/a.py"),
        ("cat /home/bob/x/a.py", "cat <path>"),
        ("cat /etc/hosts", "cat /etc/hosts"),
        ("pip install 'numpy<2' -q && echo ok", "pip install 'numpy<2' -q"),
        ("sqlfluff fix --force a.sql 2>/dev/null", "sqlfluff fix --force a.sql"),
        ("git commit -m 'fix: the thing'", 'git commit -m "…"'),
        ("python -c 'import a\nprint(a)'", 'python -c "…"'),
        ("python -c 'import a'", "python -c 'import a'"),
        ("python reproduce.py", "python <script>"),
        ("sed -n '10,20p' a.py", "sed -n <range> a.py"),
        ("curl -fsS https://x.y/z?t=1", "curl -fsS <url>"),
        ("cargo test -p core a::b::c 2>&1 | grep -E 'x|y' | tail -3", "cargo test -p core <test>"),
        ("cd web && npm test", "cd web && npm test"),
        ("PYTHONPATH=src python -m mypkg", "PYTHONPATH=src python -m mypkg"),
        ("echo a | tool -", "echo a | tool -"),
        ("git show 1a2b3c4d5e6f7a8b", "git show <id>"),
        ("cat > n.py <<'EOF'\nx\nEOF", "cat > n.py <<'EOF' …"),
    ],
)
def test_generalise_takes_the_instance_out(command: str, expected: str) -> None:
    assert generalise(command) == expected


def test_generalise_stays_short() -> None:
    assert len(generalise("tool " + " ".join(f"word{n}" for n in range(500)))) <= 200


@pytest.mark.parametrize(
    "command",
    [
        "tool --help",
        "cargo build -h",
        "man ls",
        "which rg",
        "python --version",
        "cd a && tool sub --help | head -5",
        "command -v rg",
        "git help log",
    ],
)
def test_help_is_known(command: str) -> None:
    assert is_help(command)
    assert is_read_only(command)


@pytest.mark.parametrize(
    "command", ["ls -h", "du -h .", "python a.py", "tool --helpful", "tool --help && make"]
)
def test_what_is_no_help(command: str) -> None:
    assert not is_help(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cd /a && cat b | head -3",
        "grep -rn x src",
        "sed -n 1,5p a",
        "git log --oneline | head",
        "find . -name x",
        "pip list | grep numpy",
        "wc -l a && echo done",
        "find . | xargs grep x",
        "find . -name '*.py' -exec grep -l x {} +",
        "sed -nE '/a/p' b",
        "sed --expression=p b",
    ],
)
def test_looking_is_known(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat > a <<E\nx\nE",
        "sed -i s/a/b/ c",
        "find . -delete",
        "find . -name '*grep*' -delete",
        "find . -name '*.log' -ok rm {} ';'",
        "find . -name 'grep.*' -okdir rm {} ';'",
        "find . -exec sed -i s/grep/rg/ {} +",
        "find . -fprint found.txt",
        "sed --in-place s/a/b/ c",
        "sed --in-place=.bak s/a/b/ c",
        "sed -Ei s/a/b/ c",
        "sed -ni.bak s/a/b/p c",
        "git commit -m x",
        "ls && make",
        "echo x > y",
        "",
    ],
)
def test_what_is_no_look(command: str) -> None:
    assert not is_read_only(command)


@given(st.text(alphabet=st.sampled_from("ab '\"\\$()`|&;<>\n\t#-={}EOF1[]*~/"), max_size=80))
def test_no_command_line_raises(command: str) -> None:
    parse(command)
    purpose(command)
    generalise(command)
    is_help(command)
    is_read_only(command)


@given(st.text())
def test_no_text_raises(command: str) -> None:
    assert isinstance(generalise(command), str)
    assert isinstance(purpose(command), str)


@pytest.mark.parametrize(
    "unit", ["'", '"', "$(", "(", "`", "<<E\n", "a|", "\\", "a=", "sudo ", "<<<", "2>&1 ", "\n"]
)
def test_a_megabyte_is_read_in_linear_time(unit: str) -> None:
    start = time.process_time()
    parse(unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 2.0


def test_a_long_command_is_cut_between_words() -> None:
    words = [f"--option-{n}" for n in range(40)]
    shown = generalise(" ".join(("tool", *words))).split(" ")
    assert shown[-1] == "…"
    assert set(shown[1:-1]) <= set(words)
