"""A command of which its line does not show that it ran and worked is told as a remedy by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import make_repository
from tests.reflect.miners.scripted import learnt, run, sh

_FAILED = sh("./checks", "checks: error: the following arguments are required: --seed", 2)
_UNPROVED = (
    "true || ./checks --qxzz",
    "exit 0; ./checks --qxzz",
    "return 0 2>/dev/null; ./checks --qxzz",
    "case x in y) ./checks --qxzz;; esac",
    "test -f x || exit 0; ./checks --qxzz",
    "sudo -n true || ./checks --qxzz",
    "./checks --qxzz &",
    "nohup ./checks --qxzz > log 2>&1 &",
    "! ./checks --qxzz",
    "./checks --qxzz || ./other",
    "set -e; ./checks --qxzz || true",
    "if false; then ./checks --qxzz; fi",
    "while false; do ./checks --qxzz; done",
    "for each in $NONE; do ./checks --qxzz; done",
    "f() { ./checks --qxzz; }",
    "function f { ./checks --qxzz; }",
    "trap './checks --qxzz' EXIT",
    "bash -c 'true || ./checks --qxzz'",
    "./checks --qxzz & wait",
    "until ./checks --qxzz; do sleep 1; done",
)


def _texts(*lines: str, output: str = "") -> str:
    runs = [run(_FAILED, *(sh(line, output) for line in lines), name=f"run-{number}") for number in range(2)]
    return " ".join(f"{lesson.summary} {lesson.rule} {lesson.remedies}" for lesson in learnt(*runs))


@pytest.mark.req("N7")
@pytest.mark.parametrize("output", ["", "ok", "12 checks passed"])
@pytest.mark.parametrize("line", _UNPROVED)
def test_a_step_that_may_not_have_run_or_worked_is_no_remedy(line: str, output: str) -> None:
    assert "qxzz" not in _texts(line, output=output)


@pytest.mark.parametrize(
    "line", ["./checks --qxzz", "echo go && ./checks --qxzz", "./checks --qxzz | tail -5"]
)
def test_the_same_step_on_a_plain_line_is_one(line: str) -> None:
    assert "`./checks --qxzz`" in _texts(line, output="12 checks passed")


@pytest.mark.parametrize("line", ["./checks --qxzz <<E\nthe needed input\nE", "./checks --qxzz <<< 'input'"])
def test_a_step_is_no_remedy_without_the_text_that_it_was_given(line: str) -> None:
    assert "qxzz" not in _texts(line)


@pytest.mark.parametrize("space", ["\u2028", "\u2029", "\u00a0", "\u3000", "\u2003"])
def test_what_only_looks_like_a_space_is_part_of_a_word(space: str) -> None:
    assert "Always push" not in _texts(f"./checks --qxzz{space}Always push", output="ok")


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("exec command rejected by user", None),
        ("unsupported call: exec_command", None),
        ("wrote 42 files", None),
        ("The user rejected this tool call. User feedback: no", None),
        ("", 1),
        ("wrote 3 of 42 files", 3),
        ("", 143),
    ],
)
def test_a_call_without_a_stated_success_is_no_remedy(output: str, code: int | None) -> None:
    runs = [run(_FAILED, sh("./checks --qxzz", output, code), name=f"run-{number}") for number in range(3)]
    assert not [lesson for lesson in learnt(*runs) if "qxzz" in " ".join(lesson.remedies)]


def test_a_command_in_the_background_is_no_remedy(archivist: Command, home: Path, tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    archivist("init", cwd=app)
    began = "Command running in background with ID: b1. Output is being written to: /tmp/b1.output"
    for number in range(2):
        calls = (("./checks", str(_FAILED["output"]), 2), ("./checks --qxzz", began, 0))
        archivist("capture", str(client_homes.claude_code(home, app, number, calls)), cwd=app)
    archivist("reflect", cwd=app)
    assert "qxzz" not in archivist("brief", cwd=app).out


@pytest.mark.parametrize(
    "glued", ["@../app/x", "a=@../app/x", "+../app/x", "%../app/x", "^../app/x", "x@../app/x"]
)
def test_a_path_behind_other_signs_leads_elsewhere_too(glued: str) -> None:
    from archivist.reading.elsewhere import is_elsewhere
    from archivist.records import Episode, Event, EventKind

    episode = Episode(id="r", project="other", extra={"cwd": "/work/other"})
    call = Event(run="r", seq=0, kind=EventKind.TOOL_CALL, tool="Bash", text=f"pytest {glued}")
    assert is_elsewhere(call, episode)
