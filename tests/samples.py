"""Small records and lines that tests are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from archivist.lessons.quarantine import lesson_suspicion
from archivist.lessons.standing import with_status
from archivist.records import (
    Actor,
    ActorKind,
    Category,
    Episode,
    Event,
    EventKind,
    Evidence,
    Finding,
    Lesson,
    LessonType,
    Scope,
    Severity,
    Source,
    Status,
)
from archivist.text import is_blank

WHEN = datetime(2026, 4, 3, 14, 0, tzinfo=UTC)

# The four example lessons of the cross-run document, in its own shape.
DOCUMENT_LESSONS: list[dict[str, Any]] = [
    {
        "id": "m-001",
        "ts": "2026-04-03T14:00:00Z",
        "run_id": "2026-04-03-der-huster",
        "type": "pattern",
        "source": "guardian",
        "description": "Timeline references must match story start day",
        "frequency": 2,
        "severity": "bug",
        "domain": "writing",
        "tags": ["continuity", "timeline"],
        "last_seen_run": "2026-04-03-der-huster",
        "runs_since_last_seen": 0,
    },
    {
        "id": "m-002",
        "ts": "2026-04-03T15:00:00Z",
        "run_id": "2026-04-03-der-huster",
        "type": "preference",
        "source": "user_feedback",
        "description": "User prefers single bundled PR over many small ones",
        "frequency": 1,
        "severity": "info",
        "domain": "general",
        "tags": ["workflow"],
        "last_seen_run": "",
        "runs_since_last_seen": 0,
    },
    {
        "id": "m-003",
        "ts": "2026-04-04T10:00:00Z",
        "run_id": "2026-04-04-auth-fix",
        "type": "archetype_hint",
        "source": "sage",
        "description": "Voice drift most common in long monologue passages",
        "frequency": 3,
        "severity": "warning",
        "domain": "writing",
        "tags": ["voice", "prose"],
        "archetype": "story-sage",
        "last_seen_run": "2026-04-04-auth-fix",
        "runs_since_last_seen": 0,
    },
    {
        "id": "m-004",
        "ts": "2026-04-04T11:00:00Z",
        "run_id": "2026-04-04-auth-fix",
        "type": "anti_pattern",
        "source": "maker",
        "description": "Splitting auth middleware into per-route handlers causes duplication",
        "frequency": 1,
        "severity": "warning",
        "domain": "code",
        "tags": ["auth", "middleware"],
        "last_seen_run": "2026-04-04-auth-fix",
        "runs_since_last_seen": 0,
    },
]

REFLECTIVE_LESSON: dict[str, Any] = {
    "id": "mem-7f3a",
    "createdAt": "2026-03-01T08:00:00Z",
    "scope": "provider",
    "projectRoot": "/srv/app",
    "repoId": "app",
    "taskId": "oa-12",
    "provider": "claude-code",
    "tool": "bash",
    "category": "provider_quirk",
    "tags": ["claude-code", "rate-limit"],
    "importance": 0.8,
    "summary": "Large test runs time out with this provider",
    "rule": "IF the whole suite must run THEN shard it first",
    "detail": "Seen on three nights.",
    "evidence": {
        "episodeIds": ["e-1", "e-2"],
        "trajectoryIds": ["t-1"],
        "sessionIds": ["s-1"],
        "runLogPaths": ["logs/a.jsonl"],
    },
    "source": "archivist",
    "usageCount": 7,
    "lastUsedAt": "2026-03-05T09:00:00Z",
    "supersededBy": "mem-9999",
}


def write_jsonl(path: Path, values: Sequence[object]) -> Path:
    """Write values as JSON lines."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def finding(description: str, severity: Severity = Severity.WARNING, **fields: Any) -> Finding:
    """Return a finding by the guardian."""
    return Finding(description=description, severity=severity, **{"found_by": "guardian", **fields})


def reviewed(run: str, *findings: Finding) -> tuple[Episode, list[Event]]:
    """Return a run in which these things were found."""
    verdict = Event(
        run=run, seq=1, kind=EventKind.VERDICT, name="review.verdict", time=WHEN, findings=findings
    )
    return Episode(id=run), [verdict]


def run_lines(run: str, *findings: dict[str, Any], fixed: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a run as lines of ArcheFlow's events."""
    lines: list[dict[str, Any]] = [
        {"type": "run.start", "phase": "plan", "data": {"task": f"Task of {run}"}},
        {
            "type": "review.verdict",
            "phase": "check",
            "agent": "guardian",
            "data": {"archetype": "guardian", "verdict": "changes", "findings": list(findings)},
        },
        *({"type": "fix.applied", "phase": "act", "data": {"finding": text}} for text in fixed),
        {"type": "run.complete", "phase": "act", "data": {}},
    ]
    return [
        {"run_id": run, "seq": seq, "ts": f"2026-05-01T10:{seq:02d}:00Z", **line}
        for seq, line in enumerate(lines, 1)
    ]


def agent_log(
    path: Path,
    calls: Sequence[tuple[str, str, bool]],
    *,
    session: str = "s-1",
    project: str = "billing",
    prompt: str = "",
    is_ended: bool = True,
    is_error: bool = False,
) -> Path:
    """Write a Claude-Code-shaped log: a session whose commands gave these outputs, and failed or not."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "cwd": f"/home/x/{project}", "model": "claude-x", "tools": []}
    ]
    if prompt:
        lines.append({"type": "user", "message": {"role": "user", "content": prompt}})
    for number, (command, output, failed) in enumerate(calls):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [call]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [answer]}})
    if is_ended:
        spent = {"total_cost_usd": 0.5, "usage": {"input_tokens": 10, "output_tokens": 5}}
        lines.append({"type": "result", "subtype": "success", "is_error": is_error, **spent})
    path.write_text("".join(json.dumps({**line, "session_id": session}) + "\n" for line in lines))
    return path


# A newcomer's failure that shows its remedy: the module is missing, it is installed, the tests pass.
MISSING_MODULE = [
    ("git status", "On branch main\nnothing to commit, working tree clean", False),
    (
        "python -m pytest tests -q",
        (
            "Exit code 1\nImportError while loading conftest '/home/x/billing/tests/conftest.py'.\n"
            "tests/conftest.py:1: in <module>\n    import freezegun\n"
            "E   ModuleNotFoundError: No module named 'freezegun'"
        ),
        True,
    ),
    ("pip install freezegun", "Collecting freezegun\nSuccessfully installed freezegun-1.5.1", False),
    ("python -m pytest tests -q", "....\n4 passed in 0.12s", False),
]


def lesson(lesson_id: str = "a", **fields: Any) -> Lesson:
    """Return a lesson with sensible fields."""
    given = {"created": WHEN, "updated": WHEN, "edited": WHEN, "summary": "Check the null", "number": 1}
    return Lesson(id=lesson_id, **{**given, **fields})


# The intake replaces NULs, so that no bank holds one.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
names = st.text("abcdefgh-", min_size=1, max_size=8)
moments = st.integers(0, 50_000_000).map(lambda seconds: WHEN + timedelta(seconds=seconds))
name_sets = st.sets(names, max_size=4).map(lambda values: tuple(sorted(values)))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def lessons(draw: st.DrawFn, lesson_id: str | None = None, number: int = 0) -> Lesson:
    """Draw a lesson as a bank could hold it."""
    runs = draw(name_sets)
    created = draw(moments)
    made = Lesson(
        id=lesson_id or draw(names),
        number=number,
        created=created,
        updated=draw(moments),
        edited=draw(moments),
        summary=draw(texts.filter(lambda text: not is_blank(text))),
        rule=draw(texts),
        detail=draw(texts),
        type=draw(st.sampled_from(LessonType)),
        category=draw(st.sampled_from(Category)),
        scope=draw(st.sampled_from(Scope)),
        project=draw(texts),
        provider=draw(texts),
        tool=draw(texts),
        role=draw(texts),
        domain=draw(names),
        tags=draw(st.lists(names, max_size=4, unique=True).map(tuple)),
        importance=draw(st.floats(0, 1)),
        severity=draw(st.sampled_from(Severity)),
        evidence=Evidence(episodes=draw(name_sets), events=draw(name_sets)),
        source=draw(st.sampled_from(Source)),
        origin=draw(texts),
        actor=Actor(draw(st.sampled_from(ActorKind)), draw(texts)),
        runs=runs,
        faded=draw(st.integers(0, len(runs))),
        confirmed=draw(st.booleans()),
        last_seen_run=draw(st.sampled_from(["", *runs])),
        last_seen=draw(st.none() | moments),
        status=draw(st.sampled_from(Status)),
        superseded_by=draw(st.just("") | names),
        prior_uses=draw(st.integers(0, 9)),
        prior_last_used=draw(st.none() | moments),
        extra=draw(st.dictionaries(names.map(lambda name: f"x_{name}"), json_values, max_size=2)),
    )
    return with_status(made, promote_at_runs=2)


# What is suspicious waits for a second approval in another bank.
harmless = lessons().filter(lambda each: not lesson_suspicion(each))
