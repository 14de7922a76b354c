"""Verdicts on told and withheld lessons, by signature and by words."""

from __future__ import annotations

from typing import Any

import pytest

from archivist.audit.report import build_report
from archivist.audit.verdicts import RunEvidence, judge_lessons
from archivist.recall.keywords import Overlap
from archivist.records import Effect, Event, EventKind, Following, Lesson, Verdict
from tests.samples import WHEN, finding, lesson

MISSING = "billing|missing_module:python"
INSTALL = lesson("i", summary="`pytz` is not installed", remedies=("pip install pytz",), signature=MISSING)
NULLS = lesson("n", summary="Missing null checks in API response handlers")


def _judge(
    told: list[Lesson], evidence: RunEvidence, *commands: str, withheld: tuple[Lesson, ...] = ()
) -> list[Verdict]:
    events = [
        Event(run="r", seq=seq, kind=EventKind.TOOL_CALL, tool="bash", text=each)
        for seq, each in enumerate(commands)
    ]
    return judge_lessons(
        told, evidence, run="r", now=WHEN, overlap=Overlap(), withheld=withheld, events=events
    )


@pytest.mark.req("F9", "N2")
@pytest.mark.parametrize(
    ("commands", "failures", "effect", "following"),
    [
        (["pip install pytz", "pytest"], set(), Effect.HELPFUL, Following.FOLLOWED),
        (["pip install pytz", "pytest"], {MISSING}, Effect.INEFFECTIVE, Following.FOLLOWED),
        (["pytest"], {MISSING}, Effect.INEFFECTIVE, Following.IGNORED),
        (["pytest"], set(), Effect.IGNORED, Following.IGNORED),
        (["git log"], set(), Effect.NOT_NEEDED, Following.NOT_APPLICABLE),
        (["pip install pytz", "git log"], set(), Effect.NOT_NEEDED, Following.FOLLOWED),
        (["pip install pytz && pytest"], set(), Effect.HELPFUL, Following.FOLLOWED),
        ([], set(), Effect.UNKNOWN, Following.UNKNOWN),
        ([], {MISSING}, Effect.INEFFECTIVE, Following.UNKNOWN),
    ],
)
def test_a_lesson_with_a_signature_helped_when_it_was_followed_and_nothing_failed(
    commands: list[str], failures: set[str], effect: Effect, following: Following
) -> None:
    (verdict,) = _judge([INSTALL], RunEvidence(None, failures), *commands)
    assert (verdict.effect, verdict.following) == (effect, following)
    assert verdict.failed is bool(failures)
    assert verdict.extra == {"method": "signature"}


@pytest.mark.req("F9")
def test_the_documented_rule_judges_by_the_words_of_findings() -> None:
    again = RunEvidence((finding("Null checks missing in response handlers"),), None)
    (met,) = _judge([NULLS], again)
    (gone,) = _judge([NULLS], RunEvidence((finding("Something else entirely"),), frozenset()), "ls")
    assert (met.effect, met.failed, met.extra) == (Effect.INEFFECTIVE, True, {"method": "keywords"})
    assert (gone.effect, gone.failed, gone.extra) == (Effect.UNKNOWN, False, {"method": "keywords"})
    assert (met.effectiveness, gone.effectiveness) == ("ineffective", "helpful")


def test_without_evidence_nothing_is_known() -> None:
    (verdict,) = _judge([NULLS], RunEvidence(None, frozenset()), "ls")
    assert (verdict.effect, verdict.failed, verdict.extra) == (Effect.UNKNOWN, None, {"method": "none"})


@pytest.mark.parametrize("signature", ["billing|wish:use-tabs", "billing|verification:make check"])
def test_a_signature_that_names_no_failure_cannot_be_found_absent(signature: str) -> None:
    wish = lesson("w", summary="The user's wish: use tabs", signature=signature)
    (verdict,) = _judge([wish], RunEvidence(None, frozenset()), "ls")
    assert (verdict.effect, verdict.extra) == (Effect.UNKNOWN, {"method": "none"})


REFUSED = "E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
START = lesson(
    "s",
    summary="shop: `pytest -q` fails (Connection refused): first `docker compose up -d redis`",
    rule="IF `pytest -q` fails with “Connection refused” THEN first `docker compose up -d redis`",
    remedies=("docker compose up -d redis",),
    signature="shop|network::ConnectionError:error-connecting-localhost-connection-refused @6379",
)


@pytest.mark.req("F9", "N2")
@pytest.mark.parametrize(
    ("calls", "effect", "following"),
    [
        ("X up x", Effect.HELPFUL, Following.FOLLOWED),
        ("X up", Effect.HELPFUL, Following.FOLLOWED),
        ("X up x X up x", Effect.HELPFUL, Following.FOLLOWED),
        ("X up X", Effect.INEFFECTIVE, Following.FOLLOWED),
        ("up X", Effect.INEFFECTIVE, Following.FOLLOWED),
        ("X up X x", Effect.INEFFECTIVE, Following.FOLLOWED),
        ("X X", Effect.INEFFECTIVE, Following.IGNORED),
        ("X x", Effect.IGNORED, Following.IGNORED),
    ],
)
def test_advice_for_when_it_fails_helped_unless_it_failed_again_afterwards(
    calls: str, effect: Effect, following: Following
) -> None:
    made: dict[str, dict[str, Any]] = {
        "X": {"text": "pytest -q", "output": REFUSED, "exit_code": 1, "is_error": True},
        "x": {"text": "pytest -q", "output": "8 passed", "exit_code": 0},
        "up": {"text": "docker compose up -d redis", "output": "started", "exit_code": 0},
    }
    events = [
        Event(**{"run": "r", "seq": at, "kind": EventKind.TOOL_CALL, "tool": "bash", **made[call]})
        for at, call in enumerate(calls.split())
    ]
    (verdict,) = judge_lessons(
        [START], RunEvidence(None, {START.signature}), run="r", now=WHEN, overlap=Overlap(), events=events
    )
    assert (verdict.effect, verdict.following) == (effect, following)
    # Whether the failure came is what withheld runs are compared by, whatever was then done.
    assert verdict.failed is True
    (line,) = build_report([verdict], {}).lessons
    assert line.failed_though == (effect is Effect.INEFFECTIVE and following is Following.FOLLOWED)


def test_advice_that_nobody_can_read_in_calls_has_not_helped() -> None:
    vague = lesson(
        "v", summary="Think first", rule="IF it fails THEN think first", signature=MISSING, tags=()
    )
    followed = lesson(
        "c", summary="first `chmod +x seed.sh`", remedies=("chmod +x seed.sh",), signature=MISSING
    )
    found = _judge([vague, followed], RunEvidence(None, set()), "./seed.sh", "pytest")
    assert [each.effect for each in found if each.effect is Effect.HELPFUL] == []


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("preview up --region eu", Effect.HELPFUL),
        ("preview up", Effect.IGNORED),
        ("preview down", Effect.UNKNOWN),
        ("git log", Effect.NOT_NEEDED),
    ],
)
def test_a_lesson_without_a_remedy_is_followed_by_avoiding_the_failing_call(
    command: str, effect: Effect
) -> None:
    told = lesson(
        "p", summary="shop: `preview up` fails: --region is required", signature="shop|usage:preview up"
    )
    (verdict,) = _judge([told], RunEvidence(None, set()), command)
    assert verdict.effect is effect


@pytest.mark.parametrize("tag", ["flaky", "not-your-bug"])
def test_what_says_only_how_to_take_a_failure_is_not_judged_by_its_coming(tag: str) -> None:
    told = lesson("f", summary="`pytest` fails: not your bug", signature=MISSING, tags=(tag,))
    (verdict,) = _judge([told], RunEvidence(None, {MISSING}), "pytest")
    assert (verdict.effect, verdict.failed) == (Effect.UNKNOWN, None)


@pytest.mark.req("N2")
def test_a_withheld_lesson_notes_whether_its_failure_came() -> None:
    evidence = RunEvidence((finding("Null checks missing in response handlers"),), {MISSING})
    found = _judge([], evidence, "pip install pytz", withheld=(INSTALL, NULLS))
    assert [(each.effect, each.following, each.failed) for each in found] == [
        (Effect.UNKNOWN, Following.WITHHELD, True),
        (Effect.UNKNOWN, Following.WITHHELD, True),
    ]


def test_what_one_brief_told_and_another_withheld_was_told() -> None:
    (verdict,) = _judge([INSTALL], RunEvidence(None, set()), "pip install pytz", withheld=(INSTALL,))
    assert verdict.following is Following.FOLLOWED
