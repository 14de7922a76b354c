"""An empty brief tells the person who looks why, and a capture says where its runs were filed."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands import PROGRAM, Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

_NOUNS = (
    "shelf", "kiln", "glaze", "wheel", "apron", "bucket", "ladder", "window", "hinge", "stove", "cellar",
    "fence",
)  # fmt: skip


@pytest.fixture
def app(tmp_path: Path, archivist: Command) -> Path:
    """Return a repository with a bank."""
    folder = make_repository(tmp_path / "my-app")
    archivist("init", cwd=folder)
    return folder


def _look(folder: Path, *words: str) -> tuple[str, str]:
    """Run the command as a person does, with stderr on a terminal; return what both streams got."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [PROGRAM, *words], cwd=folder, stdout=subprocess.PIPE, stderr=theirs, check=True
        )
    finally:
        os.close(theirs)
    said = b""
    # So ends a terminal whose other side is closed.
    with suppress(OSError):
        while part := os.read(ours, 4096):
            said += part
    os.close(ours)
    return done.stdout.decode(), said.decode().replace("\r\n", "\n")


def _learn(archivist: Command, app: Path, home: Path, *words: str, count: int = 2) -> None:
    for number in range(count):
        log = client_homes.claude_code(home, app, number)
        assert archivist("capture", str(log), *words, cwd=app).code == 0
    archivist("reflect", cwd=app)


def test_without_a_bank_the_command_that_makes_one_is_named(archivist: Command, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    reason = "nothing to tell: there is no bank here: archivist setup makes one\n"
    assert _look(folder, "brief") == ("", reason)
    assert archivist("brief", cwd=folder).err == reason


@pytest.mark.parametrize("words", [(), ("--task", "Mend the glaze")])
def test_no_lessons_and_runs_that_wait_are_said(
    words: tuple[str, ...], archivist: Command, app: Path, home: Path
) -> None:
    assert "no lessons yet: archivist setup" in _look(app, "brief", *words)[1]
    archivist("capture", str(client_homes.claude_code(home, app)), cwd=app)
    assert "captured runs that wait: 1: archivist reflect" in _look(app, "brief", *words)[1]


@pytest.mark.parametrize("words", [(), ("--task", "Mend the glaze")])
def test_lessons_of_another_project_are_named_with_the_option(
    words: tuple[str, ...], archivist: Command, app: Path, home: Path
) -> None:
    _learn(archivist, app, home, "--repo", "openagents")
    git(app, "init", "-q", str(app / "sub-app"))
    told, reason = _look(app / "sub-app", "brief", *words)
    assert told == ""
    wanted = r"nothing to tell: \d lessons?, all of openagents; this folder is sub-app: --repo openagents\n"
    assert re.fullmatch(wanted, reason)


def test_lessons_of_another_project_are_named_beside_what_works_here(
    archivist: Command, app: Path, home: Path, tmp_path: Path
) -> None:
    other = make_repository(tmp_path / "openagents")
    calls = (("pnpm test:kiln", "12 checks passed", 0),)
    logs = [client_homes.claude_code(home, app, number, calls) for number in (5, 6, 7)]
    for log in (*logs, *(client_homes.claude_code(home, other, number) for number in (0, 1))):
        archivist("capture", str(log), cwd=app)
    archivist("reflect", "--pending", cwd=app)
    told, reason = _look(app, "brief")
    assert "pnpm test:kiln" in told
    assert re.match(r"no lessons to tell: \d lessons?, all of openagents; this folder is my-app: ", reason)


def test_a_task_that_names_the_repository_means_it(archivist: Command, app: Path, home: Path) -> None:
    _learn(archivist, app, home, "--repo", "acme/openagents")
    git(app, "init", "-q", str(app / "sub-app"))
    for task in ("Make the tests of openagents pass.", "Look at acme/openagents: its kiln"):
        told = archivist("brief", "--task", task, "--explain", cwd=app / "sub-app")
        assert "PYTHONPATH=src" in told.out
        assert "project acme/openagents: as the task names it" in told.err
    assert archivist("brief", "--task", "Make the tests pass", cwd=app / "sub-app").out == ""


def test_what_is_withheld_or_stale_is_said(archivist: Command, app: Path) -> None:
    (app / "KILN.md").write_text("Hot.")
    git(app, "add", ".")
    git(app, "commit", "-qm", "Kiln")
    archivist("lessons", "add", "Read `KILN.md` before you fire the kiln", "--repo", "my-app", cwd=app)
    words = ("--set", "brief.holdout=0.9", "brief", "--task", "Fire the kiln", "--run")
    reasons = [_look(app, *words, f"r-{number}")[1] for number in range(6)]
    assert "nothing to tell: randomly withheld from this run, to measure the effect: m-001\n" in reasons
    git(app, "rm", "-q", "KILN.md")
    git(app, "commit", "-qm", "Cold")
    # What a person typed is told all the same.
    assert "KILN.md" in _look(app, "brief", "--task", "Fire the kiln")[0]


def test_lessons_that_wait_for_approval_are_said(archivist: Command, app: Path) -> None:
    words = ("--actor", "agent:coder", "lessons", "add", "The linter is slow")
    assert archivist(*words, cwd=app).code == 0
    assert "every lesson waits for approval (1)" in _look(app, "brief")[1]


def test_a_capture_says_where_its_runs_were_filed(archivist: Command, app: Path, home: Path) -> None:
    log = client_homes.claude_code(home, app)
    assert "my-app   1" in archivist("capture", str(log), cwd=app).out
    view = json.loads(archivist("capture", str(log), "--json", cwd=app).out)
    assert [run["project"] for run in view["runs"]] == ["my-app"]


def test_a_wish_is_shown_with_who_said_it_when_and_in_which_words(
    archivist: Command, app: Path, home: Path
) -> None:
    words = "Please never make draft PRs in this repository."
    log = client_homes.claude_code(home, app, said=[words])
    archivist("capture", str(log), cwd=app)
    archivist("reflect", cwd=app)
    listed = json.loads(archivist("lessons", "list", "--json", cwd=app).out)["lessons"]
    wish = next(each["id"] for each in listed if each["type"] == "preference")
    shown = archivist("lessons", "show", wish, cwd=app).out
    assert re.search(r"Said in \S+#\d+ by the user, 2026-03-02T09:00:05Z", shown), shown
    assert f"> {words}" in shown


def test_every_lesson_that_is_left_out_has_one_reason(archivist: Command, app: Path, home: Path) -> None:
    _learn(archivist, app, home)
    rules = [f"Keep the {noun} {place}" for noun, place in zip(_NOUNS, reversed(_NOUNS), strict=True)]
    for rule in rules:
        archivist("lessons", "add", rule, cwd=app)
    told = archivist("brief", cwd=app)
    assert re.match(r"\d more lessons of yours did not fit: archivist brief --explain", told.err)
    lines = archivist("brief", "--explain", cwd=app).err.splitlines()
    listed = json.loads(archivist("lessons", "list", "--json", cwd=app).out)["lessons"]
    for lesson in listed:
        assert sum(line.startswith(f"{lesson['id']}: ") for line in lines) == 1, (lesson["id"], lines)
    assert not any(", or " in line for line in lines)
    wide = archivist("brief", "--max", "30", "--budget", "3000", cwd=app)
    assert (wide.err, [rule in wide.out for rule in rules]) == ("", [True] * len(rules))


def test_a_correction_of_one_task_says_why_it_is_not_told(archivist: Command, app: Path, home: Path) -> None:
    log = client_homes.claude_code(home, app, said=["No, don't use tabs for that, use four spaces."])
    archivist("capture", str(log), cwd=app)
    archivist("reflect", cwd=app)
    listed = json.loads(archivist("lessons", "list", "--json", cwd=app).out)["lessons"]
    assert any(each["type"] == "preference" for each in listed)
    explained = archivist("brief", "--explain", cwd=app).err
    assert all(f"{each['id']}: " in explained for each in listed), explained


def test_a_prompt_brings_up_a_lesson_when_it_speaks_of_it(archivist: Command, app: Path) -> None:
    archivist("lessons", "add", "Run the database migration before the integration tests", cwd=app)

    def answer(prompt: str, session: str) -> str:
        event = {"session_id": session, "cwd": str(app), "prompt": prompt}
        return archivist("hook", "claude-code", "prompt", cwd=app, stdin=json.dumps(event).encode()).out

    speaking = "The integration tests fail after my migration"
    assert "database migration" in answer(speaking, "one")
    assert "database migration" not in answer("please commit the tests", "two")
    start = json.dumps({"session_id": "three", "cwd": str(app), "source": "startup"}).encode()
    assert "database migration" in archivist("hook", "claude-code", "session-start", cwd=app, stdin=start).out
    # What the session was told at its start is not told again.
    assert "database migration" not in answer(speaking, "three")
