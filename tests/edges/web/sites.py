"""Banks to look at in a browser: an empty one, a small one of generated runs, and one of 100,000 lessons."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archivist import Bank
from archivist.capture.service import CaptureOverrides
from archivist.ids import new_id
from archivist.records import Actor, ActorKind, EpisodeStatus, Lesson, LessonType, Severity, Status
from tests.banks import fresh_bank

ADA = Actor(ActorKind.HUMAN, "ada")
PROJECT = "toolshed"
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
# The runs of the small bank: one every twelve hours, the last one an hour ago.
APART = timedelta(hours=12)
# What a hostile log could bring into a lesson: markup, a script, a link, a terminal's codes, turned letters.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    " [here](javascript:alert(1)) \x1b[31mred\x1b[0m \u202egnp.exe {{ 7 * 7 }}"
)
# Command, its error and what works instead; a later run that was told a remedy calls it at once.
TRAPS = (
    (
        "./checks",
        "checks: error: the following arguments are required: --seed",
        "./checks --seed 7",
    ),
    ("npm test", 'npm error Missing script: "test"', "npm run test:unit"),
    ("rm build", "rm: cannot remove 'build': Is a directory", "rm -rf build"),
    ("git push", "fatal: The current branch has no upstream branch.", "git push --set-upstream origin main"),
    ("python -m pytest", "/usr/bin/python: No module named pytest", "uv run pytest"),
)
TASKS = ("Make the checks pass", "Clean the build folder", "Publish the branch", "Speed the tests up")


def write_log(folder: Path, number: int, at: datetime, rng: random.Random, *, known: bool) -> Path:
    """Write a session as Claude Code logs it, which meets some of the traps, fewer when it knows them."""
    run = f"session-{number:03d}"
    common = {"sessionId": run, "cwd": f"/work/{PROJECT}", "version": "2.1.0"}
    lines: list[dict[str, object]] = []
    calls: list[tuple[str, str, bool]] = []
    for command, error, cure in TRAPS:
        if rng.random() < 0.75:
            calls += [] if known and rng.random() < 0.7 else [(command, error, True)]
            calls.append((cure, "ok", False))
        calls += [
            (f"sed -n '1,{rng.randrange(20, 90)}p' src/app.py", "def main():\n    ...", False)
        ] * rng.randrange(3)

    def add(kind: str, content: object) -> None:
        nonlocal at
        at += timedelta(seconds=20)
        message = {"role": kind, "content": content}
        lines.append({"type": kind, "message": message, "timestamp": at.isoformat(), **common})

    add("user", TASKS[number % len(TASKS)])
    for at_call, (command, output, is_error) in enumerate(calls):
        name = f"t{at_call}"
        add("assistant", [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}])
        told = f"Exit code 1\n{output}" if is_error else output
        add("user", [{"type": "tool_result", "tool_use_id": name, "content": told, "is_error": is_error}])
    add("assistant", [{"type": "text", "text": "Done."}])
    file = folder / f"{run}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def fill_small(folder: Path, *, runs: int = 24) -> Path:
    """Make a bank that has learnt from generated runs, with something of every page."""
    rng, logs = random.Random(7), folder / "logs"  # noqa: S311
    logs.mkdir(parents=True)
    with fresh_bank(folder, actor=ADA) as bank:
        for number in range(runs):
            began = datetime.now(UTC) - timedelta(hours=1) - APART * (runs - 1 - number)
            log = write_log(logs, number, began, rng, known=number > runs // 3)
            bank.sessions.brief_session(log.stem, PROJECT, provider="claude")
            known = CaptureOverrides(project=PROJECT, status=EpisodeStatus.SUCCESS)
            bank.runs.finish(log, overrides=known)
        bank.lessons.add("Answer in English, whatever the language of the issue", tags=["style"])
        agent = bank.acting_as(Actor(ActorKind.AGENT, "kit"))
        agent.lessons.suggest("The staging host needs the VPN", tags=["network"])
        bank.knowledge.put("convention", "imports", "Use the node: prefix", source="README", confidence=0.6)
        bank.knowledge.put("convention", "imports", "Use bare names", source="lint", confidence=0.6)
        bank.knowledge.put("build", "command", "make all", source="Makefile")
        for agent_name, action, approach in (
            ("kit", "failed", "retry the flaky test"),
            ("kit", "completed", "seed the random numbers"),
            ("mo", "completed", "seed the random numbers"),
        ):
            bank.attempts.log(TASKS[0], agent=agent_name, action=action, approach=approach, provider="claude")
        first = bank.tasks.add("Publish 1.0", owner="kit")
        bank.tasks.add("Announce it", needs=[first.id])
        (folder / "notes.md").write_text("Seeds make the checks repeatable.\n")
        bank.artifacts.register("notes.md", task=TASKS[0], agent="kit", run="session-004", type="document")
        bank.core.update("status", {"sprint": "Publish 1.0", "inProgress": ["the release notes"]})
        bank.proposals.propose("rules", "Run ./checks --seed 7 before a commit", reason="24 runs met it")
        bank.sessions.brief_session("session-live", PROJECT, provider="claude")
    return folder


def many_lessons(count: int) -> Iterator[Lesson]:
    """Yield lessons of several projects as reflection would have made them."""
    rng = random.Random(11)  # noqa: S311
    verbs, tools = (
        ("build", "test", "lint", "deploy", "migrate", "format"),
        ("npm", "cargo", "make", "uv", "go"),
    )
    for number in range(1, count + 1):
        at = BEGIN + timedelta(minutes=number)
        tool, verb, flag = rng.choice(tools), rng.choice(verbs), rng.randrange(400)
        runs = tuple(f"run-{rng.randrange(5_000)}" for _ in range(rng.choice((1, 1, 2, 3, 9))))
        yield Lesson(
            id=new_id(at),
            number=number,
            created=at,
            updated=at,
            edited=at,
            summary=f"`{tool} {verb}` fails in module {number}: add `--jobs {flag}`",
            type=LessonType.PATTERN,
            repo=f"project-{number % 40}",
            tool=tool,
            tags=(tool, verb),
            importance=rng.random(),
            severity=Severity.WARNING,
            runs=tuple(sorted(set(runs))),
            status=rng.choices(list(Status), (3, 5, 0.1, 1, 2))[0],
        )


def fill_large(folder: Path, *, count: int = 100_000) -> Path:
    """Make a bank of many lessons."""
    with fresh_bank(folder, actor=ADA) as bank:
        _put_lessons(bank, count)
    return folder


def _put_lessons(bank: Bank, count: int) -> None:
    lessons = many_lessons(count)
    for _ in range(0, count, 5_000):
        with bank.transaction() as writer:
            for lesson, _number in zip(lessons, range(5_000), strict=False):
                writer.put(lesson, "import")
            writer.reserve_number(count)
