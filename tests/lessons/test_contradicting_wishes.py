"""A later wish supersedes the one that it contradicts, and two that contradict are never told together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from archivist.lessons.contradiction import contradicts
from tests.attacks.client_logs import TASK, claude_line
from tests.commands import Command

FIXTURE = Path(__file__).parents[1] / "fixtures" / "wishes" / "typed.json"
SEQUENCES: list[dict[str, Any]] = json.loads(FIXTURE.read_text("utf-8"))["sequences"]


def write_session(folder: Path, project: str, day: int, *messages: str) -> None:
    """Write the log of a session in a project on a day: its task, then what else the user typed."""
    name = f"{project}-{day}"
    fields = {"cwd": f"/src/{project}", "timestamp": f"2026-03-{day:02}T09:00:00.000Z"}
    typed = {"permissionMode": "default", "userType": "external"}
    lines = [claude_line(name, "user", message, **fields, **typed) for message in (TASK, *messages)]
    lines.append(claude_line(name, "assistant", [{"type": "text", "text": "Done."}], **fields))
    for number, line in enumerate(lines):
        line |= {"uuid": f"{name}-{number}", "parentUuid": f"{name}-{number - 1}" if number else None}
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def learn(archivist: Command, folder: Path, sessions: Sequence[tuple[str, int, str]]) -> None:
    """Capture one session for each message, in this order, and reflect on it."""
    for project, day, message in sessions:
        logs = folder / f"logs-{day}"
        logs.mkdir(exist_ok=True)
        write_session(logs, project, day, message)
    for logs in dict.fromkeys(folder / f"logs-{day}" for _, day, _ in sessions):
        assert archivist("capture", str(logs)).code == 0
        assert archivist("reflect").code == 0


def wishes(archivist: Command, *options: str) -> list[dict[str, Any]]:
    """List the wishes in the bank, in the order in which they came."""
    found = archivist("lessons", "list", "--type=preference", "--json", *options)
    return sorted(json.loads(found.out)["lessons"], key=lambda lesson: str(lesson["id"]))


@pytest.mark.parametrize("first", range(0, len(SEQUENCES), 5))
def test_only_contradicting_wishes_supersede(archivist: Command, project: Path, first: int) -> None:
    archivist("init")
    # Few at once: wishes fade when many runs of the bank do not repeat them.
    sequences = SEQUENCES[first : first + 5]
    sessions = [
        (f"p{place}", day, message)
        for place, sequence in enumerate(sequences)
        for day, message in enumerate(sequence["messages"], 1)
    ]
    learn(archivist, project, sessions)
    listed = wishes(archivist, "--all")
    for place, sequence in enumerate(sequences):
        told = [lesson for lesson in listed if lesson["repo"] == f"p{place}"]
        old = [at for at, lesson in enumerate(told) if lesson["status"] == "superseded"]
        assert (len(told), old) == (len(sequence["messages"]), sequence["superseded"]), sequence


def test_a_superseded_wish_names_the_one_that_holds(archivist: Command, project: Path) -> None:
    archivist("init")
    learn(archivist, project, [("shop", 1, "We use npm here."), ("shop", 2, "We use pnpm here, not npm.")])
    old, new = wishes(archivist, "--all")
    assert json.loads(archivist("lessons", "show", old["id"], "--json").out)["superseded_by"] == new["uid"]
    brief = archivist("brief", "--repo=shop", "--task=Add a page").out
    assert "pnpm" in brief
    assert "use npm" not in brief


def test_what_is_wished_again_holds_again(archivist: Command, project: Path) -> None:
    archivist("init")
    messages = ["Always squash commits.", "Never squash commits.", "Always squash commits."]
    learn(archivist, project, [("shop", day, message) for day, message in enumerate(messages, 1)])
    assert [lesson["status"] for lesson in wishes(archivist, "--all")] == [
        "superseded",
        "superseded",
        "active",
    ]


def test_an_older_session_that_is_captured_later_supersedes_nothing(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    learn(archivist, project, [("shop", 9, "We use pnpm here, not npm."), ("shop", 2, "We use npm here.")])
    (held,) = wishes(archivist)
    assert "pnpm" in held["summary"]


def test_a_superseded_wish_is_not_learnt_again_from_its_own_session(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    learn(archivist, project, [("shop", 1, "We use npm here."), ("shop", 2, "We use pnpm here, not npm.")])
    write_session(project / "logs-1", "shop", 1, "We use npm here.", "Thanks, that works.")
    archivist("capture", str(project / "logs-1"))
    archivist("reflect")
    assert [lesson["status"] for lesson in wishes(archivist, "--all")] == ["superseded", "active"]


def test_a_wish_that_faded_is_kept_when_it_is_said_again(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("config", "set", "decay.preferences_fade", "true", "--global")
    others = [("shop", day, f"Look at page {day}.") for day in range(2, 14)]
    learn(archivist, project, [("shop", 1, "We use pnpm here."), *others])
    assert wishes(archivist) == []
    learn(archivist, project, [("shop", 20, "We use pnpm here.")])
    assert [lesson["frequency"] for lesson in wishes(archivist)] == [1]


def test_a_wish_that_was_forgotten_stays_so(archivist: Command, project: Path) -> None:
    archivist("init")
    learn(archivist, project, [("shop", 1, "We use pnpm here.")])
    archivist("lessons", "forget", "m-001")
    learn(archivist, project, [("shop", 2, "We use pnpm here.")])
    assert wishes(archivist) == []


def test_within_a_session_the_last_word_holds(archivist: Command, project: Path) -> None:
    archivist("init")
    write_session(project, "shop", 1, "Always squash commits.", "No. Never squash commits.")
    archivist("capture", str(project / "shop-1.jsonl"))
    archivist("reflect")
    assert [lesson["summary"] for lesson in wishes(archivist)] == ["The user's wish: never squash commits"]


def test_a_wish_supersedes_nothing_that_a_person_wrote_and_is_not_told_beside_it(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    archivist("lessons", "add", "Never squash commits", "--type=preference", "--repo=shop")
    learn(archivist, project, [("shop", 1, "Always squash commits.")])
    brief = archivist("brief", "--repo=shop", "--task=Add a page").out
    assert "ever squash commits" in brief
    assert "lways squash commits" not in brief


def test_another_project_may_wish_the_contrary(archivist: Command, project: Path) -> None:
    archivist("init")
    learn(archivist, project, [("shop", 1, "Always squash commits."), ("blog", 2, "Never squash commits.")])
    assert len(wishes(archivist)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("use pnpm for installs", "use yarn for installs"),
        ("never push to main", "always push to main"),
        ("use httpx instead of requests", "use requests instead of httpx"),
        ("immer squashen", "nie squashen"),
        ("总是先写测试", "不要先写测试"),
        ("answer in German", "answer in English"),
    ],
)
def test_contradictions(first: str, second: str) -> None:
    assert contradicts(first, second)
    assert contradicts(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("use pnpm for installs", "use pytest for tests"),
        ("never push to main", "never push to release"),
        ("run npm audit before a release", "we use pnpm, not npm"),
        ("always write tests first", "always write docs first"),
        ("don't add comments", "don't add docstrings"),
        ("push after each commit", "don't push without asking me"),
    ],
)
def test_different_wishes(first: str, second: str) -> None:
    assert not contradicts(first, second)
    assert not contradicts(second, first)
