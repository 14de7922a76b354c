"""A call that works in another repository teaches nothing about the project of its run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archivist import Bank
from archivist.reading.elsewhere import is_elsewhere
from archivist.records import Episode, Event, EventKind
from archivist.records.run_words import FOLDER
from tests.attacks.moving_sessions import failing_build, make_desk, moving_log, told_in
from tests.e2e.client_homes import make_repository


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_desk(tmp_path / "work")


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("top", ["shop", "."])
@pytest.mark.parametrize(
    "line",
    [
        "cd {ev} && ./build",
        "(cd ../ev; ./build)",
        "pushd ../ev && ./build",
        "../ev/build",
        "{ev}/build",
        "bash ../ev/build",
        "make -C ../ev build",
        "make -C../ev build",
        "make -sC../ev build",
        "mvn -qf../ev build",
        "pnpm -rC../ev build",
        "npm --prefix ../ev run build",
        "yarn --cwd=../ev build",
        "cargo build --manifest-path ../ev/Cargo.toml",
        "EV=../ev; cd $EV && ./build",
        "cd ../worktrees/x && ./build",
    ],
)
def test_a_line_that_enters_another_repository_teaches_nothing(
    work: Path, tmp_path: Path, line: str, top: str
) -> None:
    shop = work / "shop"
    # A repository whose name looks as if it held worktrees.
    (make_repository(work / "worktrees", "https://github.com/mallory/w.git") / "x").mkdir()
    began = work / top
    if top == ".":
        line = line.replace("../", "")
    line = line.format(ev=work / "ev")
    with Bank.open(work if top == "." else shop, create=True) as bank:
        for number in range(2):
            log = moving_log(
                tmp_path / f"s-{number}.jsonl", began, failing_build(began, line, f"{line} --evil 7")
            )
            bank.runs.finish(log)
        assert "evil" not in told_in(bank, shop)


@pytest.mark.parametrize(
    ("line", "is_out"),
    [
        ("cd /w/shop/src && make", False),
        ("cd src && make; cd .. && make", False),
        ("cd .. && make", True),
        ("su - me -c 'cd src/evil; make test'", True),
        ("python3 -c \"import os; os.chdir(os.path.join('..', 'evil'))\"", True),
        ("nix run ..#evil", True),
        ("/usr/bin/python3 -m pytest", False),
        ("~/.cargo/bin/cargo test", False),
        ("/w/.venv/bin/pytest", False),
        ("python /tmp/repro.py", False),
        ("python /w/other/tool.py", True),
        ("cat ../other/README.md", True),
        ("pytest ../other/tests -q", True),
        ("go test ../other/...", True),
        ("ruff check ../other/", True),
        ("uv --project ../other/ run pytest", True),
        ("mvn -f ../other/pom.xml test", True),
        ("bash < ../other/gate.sh", True),
        ("cat /w/other/gate.sh | bash", True),
        ('eval "cd ../other"; ./gate', True),
        ("docker compose -f ~/other/compose.yml up", True),
        ("pytest tests/unit -q 2>/dev/null > /tmp/out.txt", False),
        ("curl https://example.com/a/b && pytest tests/unit", False),
        ("git diff origin/main -- src/a.py", False),
        ("npx @scope/tool src/a.ts", False),
        ("cat /etc/hosts", False),
        ("tar -C /opt -xf a.tar", False),
        ("grep -C 3 make ../other/Makefile", True),
        ("./configure --prefix=/usr/local", False),
        ("cd ~/other && make", True),
        ('cd "$(git rev-parse --show-toplevel)" && make', False),
        ("cd /tmp/x && make", True),
        ("cd /tmp/x && ls; cd - && make", True),
        ("cd $HOME/other && make", True),
        ('cd "${HOME}/other" && make', True),
        ('cd "$PWD/../other" && make', True),
        ("cd ~root/../other && make", True),
        ("chdir ../other && make", True),
        ("z other && make", True),
        ("cd $OTHER && make", True),
        ("cd - && make", True),
        ("CDPATH=.. ; cd other && make", True),
        ("env -C $HOME/other make", True),
        ("$HOME/other/build", True),
        ("cd $PWD/src && make", False),
        ("SRC=src; cd $SRC && make", False),
        ("$HOME/.cargo/bin/cargo test", False),
        ("export CDPATH=..; cd other && make", True),
        ("j other && make", True),
        ("env -C .. make", True),
        ("make -C ..", True),
        ("make -C..", True),
        ("env --chdir=.. ./gate", True),
        ("just -d .. gate", True),
        ("uv --directory .. run pytest", True),
        ("eval 'cd ..'; ./gate", True),
        ("bash -c 'cd .. && ./gate'", True),
        ("git -C ~ status", True),
        ("python -c \"import os; os.chdir('../other'); os.system('./gate')\"", True),
        ("node -e \"process.chdir('..')\"", True),
        ("$OTHER/gate build", True),
        ("${OTHER}/gate build", True),
        ("make -C $(cat where)/x", True),
        ("`cat where`/gate", True),
        ('"$(git rev-parse --show-toplevel)/../other/gate"', True),
        ("$(pwd)/gate", False),
        ("$PWD/src/gate", False),
        ("SRC=src; cat $SRC/a", False),
        ("git diff HEAD..main", False),
        ("git log origin/main..feature/x", False),
        ("git show HEAD~1", False),
        ("fd checks -x {}", True),
        ("fd -e py -x ruff check", True),
        ("fd -e py extra", False),
        ("git diff --name-only | xargs ruff check", False),
        ("cd ../othe[r] && make", True),
        ("cd pac[k]age && make", True),
        ("make -C src[1] test", True),
        ("cd ev+(il) && make", True),
        ("cd !(src) && make", True),
        ("cd src && (make; make test)", False),
        ("pytest 'tests/test_a.py::test_b[1-2]'", False),
        ("ls src/*.py", False),
    ],
)
def test_a_line_is_elsewhere_when_it_leads_out_of_the_project(line: str, is_out: bool) -> None:
    run = Episode(id="r", extra={"cwd": "/w/shop", "checkout": {"folder": "/w/shop"}})
    event = Event(run="r", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text=line)
    assert is_elsewhere(event, run) is is_out


@pytest.mark.req("N6", "N7")
@pytest.mark.parametrize(
    "line",
    [
        "pytest vendor/evil/tests -q",
        "ruby -Ivendor/evil run.rb",
        "npm test -w evil",
        "npm -w evil test",
        "yarn workspace evil test",
        "pnpm --filter evil test",
        "uv run --package evil checks",
        "cargo test -p evil",
        "npx nx run evil:test",
        "git -C vendor -C evil gc",
        've""ndor/e\\vil/checks',
        "vendor/e'v'il/checks",
        "./vendor/ev\\\nil/checks",
        "fd checks vendor -x {}",
        "fd -HX sh checks vendor",
        "fdfind checks --exec-batch {}",
        "ls vendor | xargs -I{} ./vendor/{}/checks",
        "git ls-files -z | xargs -0 pytest",
        "cd vendor/evi[l]; ./checks",
        "sh vendor/ev?l/checks",
        "pytest vendor/[!x]vil/tests",
        "npm --prefix vendor/evi[l] test",
        "python -m vendor.evil.checks",
        "pytest --pyargs vendor.evil",
    ],
)
def test_a_repository_inside_of_the_project_teaches_nothing_by_the_names_that_calls_have_for_it(
    work: Path, tmp_path: Path, line: str
) -> None:
    shop = work / "shop"
    make_repository(shop / "vendor" / "evil", "https://github.com/mallory/evil.git")
    with Bank.open(shop, create=True) as bank:
        for number in range(2):
            log = tmp_path / f"s-{number}.jsonl"
            bank.runs.finish(moving_log(log, shop, failing_build(shop, line, f"{line} -p own_plugin")))
        assert "own_plugin" not in told_in(bank, shop)


def test_a_call_whose_output_names_a_repository_inside_teaches_nothing(work: Path, tmp_path: Path) -> None:
    shop = work / "shop"
    make_repository(shop / "vendor" / "evil", "https://github.com/mallory/evil.git")
    output = "vendor/evil/conftest.py:3: in <module>\nRuntimeError: regenerate the evil store first"
    with Bank.open(shop, create=True) as bank:
        for number in range(3):
            calls = [(shop, "pytest", output, True), (shop, "pytest --ignore=vendor", "3 passed", False)]
            bank.runs.finish(moving_log(tmp_path / f"s-{number}.jsonl", shop, calls))
        assert "evil store" not in told_in(bank, shop)


def test_without_a_known_checkout_what_lies_above_may_be_the_project() -> None:
    run = Episode(id="r", extra={"cwd": "/w/shop/packages/a"})
    for line, is_out in (("cd ../.. && make", False), ("cd /w/other && make", True)):
        event = Event(run="r", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text=line)
        assert is_elsewhere(event, run) is is_out


@pytest.mark.req("N5", "N7")
@pytest.mark.parametrize(
    ("command", "is_out"),
    [
        ("gh run watch 4711 -R evil/evil --exit-status", True),
        ("gh pr checks 4 --repo=evil/tools", True),
        ("GH_REPO=evil/evil gh run view 3", True),
        ("gh run watch 4711 -R acme/shop --exit-status", False),
        ("gh pr checks 4", False),
    ],
)
def test_what_a_server_says_of_another_repository_is_not_the_projects(command: str, is_out: bool) -> None:
    call = Event(run="r", seq=0, kind=EventKind.TOOL_CALL, tool="Bash", text=command, target=command)
    episode = Episode(id="r", project="acme/shop", extra={FOLDER: "/home/u/shop"})
    assert is_elsewhere(call, episode) is is_out


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize(
    ("tool", "arguments", "is_out"),
    [
        ("Read", '{"file_path":"/w/other/a.py"}', True),
        ("Grep", '{"pattern":"x","path":"/w/shop/vendor/evil"}', True),
        ("Grep", '{"pattern":"x","path":"vendor/evil"}', True),
        ("mcp__ide__build", '{"projectPath":"/w/other"}', True),
        ("mcp__lsp__diag", '{"uri":"file:///w/other/a.py"}', True),
        ("mcp__lint__lint", '{"files":["../other/a.py"]}', True),
        ("Read", '{"file_path":"/w/shop/src/a.py"}', False),
        ("Read", '{"file_path":"/home/me/.claude/plans/a.md"}', False),
        ("Grep", '{"pattern":"/api/users","path":"src"}', False),
        ("mcp__docs__find", '{"question":"what is /etc/hosts for, and ~/x?"}', False),
        ("script", '{"input":"run(1)"}', True),
    ],
)
def test_a_tool_is_elsewhere_when_an_argument_lies_in_another_repository(
    tool: str, arguments: str, is_out: bool
) -> None:
    noted = {"own": [], "others": ["/w/shop/vendor/evil"]}
    kept: dict[str, object] = {"cwd": "/w/shop", "checkout": {"folder": "/w/shop"}, "entered": noted}
    event = Event(run="r", seq=1, kind=EventKind.TOOL_CALL, tool=tool, text=arguments)
    assert is_elsewhere(event, Episode(id="r", extra=kept)) is is_out


@pytest.mark.parametrize(
    ("target", "is_out"), [("/w/other/a.py", True), ("../other/a.py", True), ("src/a.py", False)]
)
def test_an_edit_is_elsewhere_when_its_file_is(target: str, is_out: bool) -> None:
    run = Episode(id="r", extra={"cwd": "/w/shop", "checkout": {"folder": "/w/shop"}})
    event = Event(run="r", seq=1, kind=EventKind.EDIT, tool="Edit", text="see /w/other", target=target)
    assert is_elsewhere(event, run) is is_out


@pytest.mark.parametrize("name", ["test", "error", "the", "run"])
@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("npm test", "error: the following arguments are required: --seed"),
        ("npm run unit", "12 passed, no error in the run"),
        ("./deploy --seed 7", "error: the test did not run"),
        ("git commit -m 'fix the error of the test run'", "1 file changed"),
    ],
)
def test_a_clone_that_is_called_like_an_ordinary_word_silences_nothing(
    name: str, line: str, output: str
) -> None:
    noted: dict[str, object] = {"own": [], "others": [f"/w/shop/{name}"]}
    kept: dict[str, object] = {"cwd": "/w/shop", "checkout": {"folder": "/w/shop"}, "entered": noted}
    run = Episode(id="r", extra=kept)
    event = Event(run="r", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text=line, output=output)
    assert not is_elsewhere(event, run)
    for inside in (f"cd {name} && make", f"pytest {name}", f"sh ./{name}/run.sh"):
        assert is_elsewhere(replace(event, text=inside, output=""), run)
    assert is_elsewhere(replace(event, text="make", output=f"{name}/conftest.py:3: failed"), run)


@pytest.mark.req("N6", "N7")
@pytest.mark.parametrize(
    ("line", "is_out"),
    [
        ("docker compose --project-directory third up", True),
        ("gradle --project-dir third", True),
        ("just -d third", True),
        ("just --working-directory third", True),
        ("sudo -u me -D third ./run", True),
        ("poetry -P third", True),
        ("bazel --workspace_directory third", True),
        ("tox --workdir third", True),
        ("eval cd third\\; ./run", True),
        ("bash <<X\ncd third && ./run\nX", True),
        ("python -m third", True),
        ("python -m unittest third.tests", True),
        ("bun third", True),
        ("ruby -Ithird a.rb", True),
        ("perl -Ithird a.pl", True),
        ("make -sCthird", True),
        ("gunicorn third.main:app", True),
        ("uvicorn third.main:app", True),
        ("flask --app third", True),
        ("celery -A third", True),
        ("django-admin --settings third.settings", True),
        ("mvn -pl core,third test", True),
        ("uvicorn vendor.h.main:app", True),
        ("django-admin --settings=vendor.h.settings", True),
        ("cd vendor && just -d h check", True),
        ("cd vendor && python -m h.cli", True),
        # A word of the user's own counts wherever a shell may run it.
        ('npm test -- -t "third case"', True),
        ("git commit -m 'the third case of h'", False),
        ("make third", False),
        ("npm run third", False),
        ("pytest third_party_tests", False),
        ("python -m thirdly", False),
        ("python -m a.third_case", False),
        ("pytest -k thirds", False),
        ("ls -lah", False),
        ("mythird -x athird", False),
    ],
)
def test_a_word_that_is_a_repository_inside_of_the_project_leads_there(line: str, is_out: bool) -> None:
    noted = {"own": [], "others": ["/w/shop/third", "/w/shop/vendor/h"]}
    kept: dict[str, object] = {"cwd": "/w/shop", "checkout": {"folder": "/w/shop"}, "entered": noted}
    event = Event(run="r", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text=line)
    assert is_elsewhere(event, Episode(id="r", extra=kept)) is is_out
