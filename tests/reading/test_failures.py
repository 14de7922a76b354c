"""Failures are told from successes by what was run, how it ended and what it said."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.failures import Failure, detect_failure, failure_key
from archivist.reading.rules import FailureKind

K = FailureKind


def trace(error: str, *files: str, function: str = "<module>") -> str:
    """Write a traceback through the files."""
    frames = "".join(
        f'  File "{file}", line {n}, in {function}\n    f()\n' for n, file in enumerate(files, 3)
    )
    return f"Traceback (most recent call last):\n{frames}{error}\n"


def shell(command: str, code: int | None, output: str) -> Failure | None:
    """Judge a shell command."""
    return detect_failure("bash", command, code, False, output)


def failed(command: str, code: int | None, output: str) -> Failure:
    """Judge a shell command that must have failed."""
    found = shell(command, code, output)
    assert found is not None
    return found


NO_YAML = trace("ModuleNotFoundError: No module named 'yaml'", "/a/run.py")
LONG_LIST = "\n".join(f"line {n} of a file" for n in range(30))


@pytest.mark.parametrize(
    ("command", "code", "output", "kind", "subject"),
    [
        ("python run.py", 1, NO_YAML, K.MISSING_MODULE, "yaml"),
        ("python run.py 2>&1 | tail -20", 0, NO_YAML, K.MISSING_MODULE, "yaml"),
        ("python -m pytest | head", 0, "/usr/bin/python: No module named pytest", K.MISSING_MODULE, "pytest"),
        ("python -c 'import yaml' || echo none", 0, NO_YAML + "none", K.MISSING_MODULE, "yaml"),
        ("jq . a", 127, "bash: line 1: jq: command not found", K.MISSING_COMMAND, "jq"),
        (
            "apt-get update && sudo apt-get install x",
            None,
            "Hit:1\n/bin/bash: line 2: sudo: command not found",
            K.MISSING_COMMAND,
            "sudo",
        ),
        ("nosuch", 127, "", K.MISSING_COMMAND, ""),
        ("cat src/a.py", 1, "cat: src/a.py: No such file or directory", K.MISSING_FILE, "src/a.py"),
        ("find lib -name x | head -3", 0, "find: ‘lib’: No such file or directory", K.MISSING_FILE, "lib"),  # noqa: RUF001
        (
            "pytest tests/nope.py",
            4,
            "ERROR: file or directory not found: tests/nope.py",
            K.MISSING_FILE,
            "tests/nope.py",
        ),
        (
            "python x.py",
            1,
            trace(
                "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/c.py)",
                "/a/x.py",
                "/usr/lib/python3/site-packages/q.py",
            ),
            K.IMPORT_ERROR,
            "collections.Mapping",
        ),
        (
            "python x.py",
            1,
            trace("AttributeError: `np.Inf` was removed in the NumPy 2.0 release.", "/a/x.py", "/a/lib/s.py"),
            K.VERSION_CONFLICT,
            "np.Inf",
        ),
        (
            "python x.py",
            1,
            trace("TypeError: f() got an unexpected keyword argument 'axis'", "/a/x.py", "/a/lib/s.py"),
            K.TYPE_ERROR,
            "axis",
        ),
        (
            "sqlfluff fix a.sql",
            1,
            trace("OSError: [Errno 6] No such device or address: '/dev/tty'", "/bin/sqlfluff"),
            K.PROMPT,
            "/dev/tty",
        ),
        (
            "pytest -q | tail -3",
            0,
            (
                "E   assert 1 == 2\n=== short test summary info ===\nFAILED t.py::test_x - assert 1 == 2\n"
                "=== 1 failed in 0.1s ==="
            ),
            K.TEST_FAILURE,
            "",
        ),
        (
            "cargo test | tail",
            None,
            "test a::works ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed",
            K.TEST_FAILURE,
            "a::works",
        ),
        ("make check", 124, "running\n", K.TIMEOUT, ""),
        ("pytest", None, "EXECUTION TIMED OUT", K.TIMEOUT, ""),
        ("./run", 126, "bash: ./run: Permission denied", K.PERMISSION, "./run"),
        ("curl -s http://x", 7, "curl: (7) Failed to connect to x port 80", K.NETWORK, "80"),
        (
            "git apply a.patch",
            1,
            "error: patch failed: a.py:3\nerror: a.py: patch does not apply",
            K.EDIT_NOT_APPLIED,
            "a.py",
        ),
        (
            "tool list --all",
            2,
            "error: unexpected argument '--all' found\n\nUsage: tool list",
            K.USAGE,
            "--all",
        ),
        (
            "git push",
            1,
            " ! [rejected]  main -> main (fetch first)\nerror: failed to push some refs to 'x'",
            K.GIT,
            "",
        ),
        (
            "cargo build 2>&1 | tail -3",
            None,
            "error[E0308]: mismatched types\nerror: could not compile `x`",
            K.BUILD,
            "",
        ),
        ("./prog", 139, "", K.CRASH, ""),
        ("tool chat", 1, '{"error":{"type":"overloaded_error","message":"Overloaded"}}', K.PROVIDER, ""),
        ("tool go 2>&1 | tail", None, "Building\nError: the plan was never made", K.OTHER, ""),
        ("tool go", 3, "", K.OTHER, ""),
    ],
)
def test_failures_are_seen(
    command: str, code: int | None, output: str, kind: FailureKind, subject: str
) -> None:
    found = failed(command, code, output)
    assert (found.kind, found.subject) == (kind, subject)


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("ls", 0, "a\nb"),
        ("make", 0, ""),
        ("grep -rn x src", 1, ""),
        ("cd /a && grep x b", 1, ""),
        ("pip list | grep yaml", 1, ""),
        ("diff a b", 1, "< error: old\n> error: new"),
        ("git diff --exit-code", 1, "-    raise ValueError('Error: bad')"),
        ("test -f a && echo yes", 1, ""),
        ("[ -d x ]", 1, ""),
        ("which rg", 1, ""),
        ("command -v rg", 1, ""),
        ("ls src/nope 2>/dev/null", 2, ""),
        ("which rg || echo 'rg not found'", 0, "rg not found"),
        (
            "cat log.txt",
            0,
            'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: bad\n' + LONG_LIST,
        ),
        (
            "sed -n 1,40p a.py",
            0,
            "try:\n    f()\nexcept ImportError:\n    raise RuntimeError('Error: command not found')",
        ),
        ("grep -n 'No such file' -r .", 0, "a.py:3:cat: x: No such file or directory"),
        ("git log -3 | head", 0, "fix: error: failed to push some refs\nfatal: not really"),
        (
            "pytest -q 2>&1 | tail -4",
            0,
            (
                "ERROR root: it broke\nTraceback (most recent call last):\nValueError: x\n"
                "=== 12 passed, 1 warning in 0.2s ==="
            ),
        ),
        ("pytest -q | tail", 0, "=== 3 passed, 2 xfailed in 0.3s ==="),
        ("cargo test | tail", None, "test a ... ok\n\ntest result: ok. 3 passed; 0 failed; 0 ignored"),
        ("python -m unittest | tail", 0, "ERROR: logged\n----\nRan 3 tests in 0.001s\n\nOK"),
        ("pip install x | tail -2", 0, "WARNING: Running pip as root\nSuccessfully installed x-1.0"),
        ("python try.py", 0, trace("ValueError: bad value here", "/a/try.py") + "Error: bad value here"),
        (
            "python try.py 2>&1 | tail",
            0,
            trace("ValueError: bad value here", "/a/try.py", "/a/b.py") + "caught: bad value here",
        ),
        ("python try.py", 0, "Testing\nError: expected\nOK"),
        (
            "tool show | head -3",
            None,
            "a\nthread 'main' panicked at src/io.rs:1:1:\nfailed printing to stdout: Broken pipe",
        ),
        ("serve & sleep 1; pkill -f serve", 144, "up\n"),
    ],
)
def test_what_is_no_failure(command: str, code: int | None, output: str) -> None:
    assert shell(command, code, output) is None


@pytest.mark.parametrize(
    ("tool", "target", "output", "kind"),
    [
        (
            "Edit",
            "/a/b.py",
            "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
            K.EDIT_NOT_APPLIED,
        ),
        (
            "Edit",
            "/a/b.py",
            "Found 3 matches of the string to replace, but replace_all is false.",
            K.EDIT_NOT_APPLIED,
        ),
        (
            "Write",
            "/a/b.py",
            "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>",
            K.EDIT_NOT_APPLIED,
        ),
        ("Read", "/a/b.py", "<tool_use_error>File does not exist.</tool_use_error>", K.MISSING_FILE),
        ("Read", "/a", "EISDIR: illegal operation on a directory, read", K.MISSING_FILE),
        ("mcp__x__y", "{}", "MCP error -32603: boom", K.OTHER),
        ("WebFetch", "http://x", "Request failed with status code 404", K.OTHER),
    ],
)
def test_tools_that_are_no_shell_fail_by_their_error_bit(
    tool: str, target: str, output: str, kind: FailureKind
) -> None:
    found = detect_failure(tool, target, None, True, output)
    assert found is not None
    assert found.kind is kind


def test_an_editor_without_an_error_bit_is_read() -> None:
    output = "ERROR:\nNo replacement was performed, old_str `x` did not appear verbatim in /a/b.py."
    found = detect_failure("str_replace_editor", "/a/b.py", None, False, output)
    assert found is not None
    assert found.kind is K.EDIT_NOT_APPLIED


def test_a_file_that_speaks_of_errors_was_read_well() -> None:
    text = "1\timport os\n2\traise ValueError('File does not exist')\n" * 20
    assert detect_failure("Read", "/a/b.py", None, False, text) is None


def test_a_missing_file_is_named_by_the_target_when_the_tool_does_not() -> None:
    found = detect_failure("Read", "/a/src/b.py", None, True, "File does not exist.")
    assert found is not None
    assert found.subject == "/a/src/b.py"
    assert found.signature.key == "read:no such file:b.py"


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        ("Bash", "The user doesn't want to proceed with this tool use. The tool use was rejected"),
        ("Edit", "Permission for this tool use was denied. The tool use was rejected. The user said:\nno"),
        ("ExitPlanMode", "The agent proposed a plan that was rejected by the user.\n\nRejected plan:\nx"),
        ("Bash", "User rejected tool use"),
        ("shell", "exec command rejected by user"),
        ("apply_patch", "patch rejected by user"),
        ("shell", "aborted by user after 3.2s"),
    ],
)
def test_a_refusal_by_the_user_is_no_failure(tool: str, output: str) -> None:
    assert detect_failure(tool, "rm -rf x", None, True, output) is None


@pytest.mark.parametrize(
    ("tool", "exit_code", "output"),
    [
        ("Bash", 1, "The user doesn't want to proceed with this tool use. The tool use was rejected"),
        ("Bash", None, "Exit code 1\nUser rejected tool use"),
        ("Bash", None, "Exit code 1\n[Request interrupted by user]\nmake: *** [check] Error 1"),
        ("mcp__db__query", None, "Sibling tool call errored\nERROR: relation users does not exist"),
    ],
)
def test_a_tool_that_prints_a_refusal_has_failed(tool: str, exit_code: int | None, output: str) -> None:
    assert detect_failure(tool, "make check", exit_code, True, output) is not None


def test_the_exit_code_is_read_from_the_harness_own_line() -> None:
    assert detect_failure("Bash", "grep x y", None, True, "Exit code 1") is None
    found = detect_failure(
        "Bash", "make", None, True, "Exit code 2\nmake: *** No rule to make target 'x'.  Stop."
    )
    assert found is not None
    assert found.subject == "x"


def test_the_line_a_person_would_quote_is_given() -> None:
    assert (
        failed("python run.py", 1, "starting\n" + NO_YAML).line
        == "ModuleNotFoundError: No module named 'yaml'"
    )


def test_a_script_that_goes_on_still_shows_a_missing_module() -> None:
    assert failed("python try.py", 0, NO_YAML + "Error: No module named 'yaml'").kind is K.MISSING_MODULE


@pytest.mark.parametrize(
    ("command", "code", "output", "is_own"),
    [
        (
            "python -c 'f('",
            1,
            "  File \"<string>\", line 1\n    f(\n     ^\nSyntaxError: '(' was never closed",
            True,
        ),
        (
            "cat > t.py <<E\nx\nE\npython t.py",
            1,
            trace("NameError: name 'x' is not defined", "/a/t.py"),
            True,
        ),
        ("python t.py", 1, trace("AssertionError: expected 3", "/a/t.py"), True),
        ("python - <<E\nx\nE", 1, trace("TypeError: bad operand", "<stdin>"), True),
        ("python t.py", 1, trace("TypeError: bad operand", "/a/t.py", "/a/src/lib.py"), False),
        ("python t.py", 1, trace("TypeError: bad", "/a/t.py", "/usr/lib/python3.11/json/x.py"), True),
        ("python t.py", 1, NO_YAML, False),
        (
            "python t.py",
            1,
            trace("ImportError: cannot import name 'f' from 'proj' (/a/proj/__init__.py)", "/a/t.py"),
            True,
        ),
        ("cargo build", 101, "error[E0382]: use of moved value: `v`\n --> src/a.rs:3:5", True),
        ("eslint .", 1, "/a/x.js\n  3:5  error  Missing semicolon  semi", True),
        ("sqlfluff lint a.sql", 65, "== [a.sql] FAIL", True),
        ("sed 's/a' f", 1, "sed: -e expression #1, char 3: unterminated `s' command", True),
        ("git push", 1, " ! [rejected]  main -> main (fetch first)", False),
        ("python fix.py", 1, "Could not find the marker", True),
    ],
)
def test_own_code_is_told_from_the_surroundings(command: str, code: int, output: str, is_own: bool) -> None:
    assert failed(command, code, output).is_own_code is is_own


def test_failing_while_importing_is_known() -> None:
    at_import = trace("AttributeError: x", "/a/run.py", "/a/pkg/__init__.py", "/usr/lib/q.py")
    assert failed("python run.py", 1, at_import).is_at_import
    assert not failed(
        "python run.py", 1, trace("AttributeError: x", "/a/b.py", "/a/c.py", function="f")
    ).is_at_import


def test_files_tell_the_way_of_the_error() -> None:
    found = failed("python run.py", 1, trace("ValueError: x", "/a/run.py", "/a/b.py", "/a/c.py"))
    assert found.files == ("/a/run.py", "/a/b.py", "/a/c.py")


def test_siblings_are_one_family() -> None:
    modules = [failed("python a.py", 1, NO_YAML.replace("yaml", name)) for name in ("numpy", "scipy", "h5py")]
    assert len({failure_key(each) for each in modules}) == 1
    assert len({each.signature.key for each in modules}) == 3
    missing = [failed("x", 127, f"bash: line 1: {name}: command not found") for name in ("jq", "yq")]
    assert len({failure_key(each) for each in missing}) == 2


def test_families_of_different_kinds_differ() -> None:
    module = failed("python a.py", 1, NO_YAML)
    command = failed("x", 127, "bash: line 1: yaml: command not found")
    assert failure_key(module) != failure_key(command)


@given(st.text(), st.text(), st.none() | st.integers(-2, 300), st.booleans(), st.text())
def test_nothing_raises(tool: str, command: str, code: int | None, is_error: bool, output: str) -> None:
    detect_failure(tool, command, code, is_error, output)


def test_ten_kilobytes_are_read_in_well_under_a_millisecond() -> None:
    output = "\n".join(f"tests/test_x.py::test_case_{n} PASSED some words" for n in range(220))[:10_000]
    detect_failure("bash", "pytest | tail -300", 0, False, output)
    start = time.process_time()
    for _ in range(50):
        detect_failure("bash", "pytest | tail -300", 0, False, output)
    # Measured at a quarter of a millisecond; the bound leaves room for slow machines.
    assert (time.process_time() - start) / 50 < 0.003


def test_of_a_chain_the_step_failed_whose_usage_is_printed() -> None:
    output = (
        "    Checking widget v0.1.0\n    Finished dev profile\n"
        "error: unexpected argument 'beta' found\n\nUsage: cargo test [OPTIONS] [TESTNAME] [-- [ARGS]...]\n"
    )
    found = detect_failure("Bash", "cargo check --all && cargo test alpha beta", 1, True, output)
    assert found is not None
    assert found.signature.program == "cargo test"
