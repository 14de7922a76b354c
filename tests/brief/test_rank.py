"""What a project met often and lately is told first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from archivist.brief.rank import (
    LEAST_CHANCE,
    chance_of,
    cost_in_tokens,
    is_said_beside,
    rank_lessons,
    standing_chance,
)
from archivist.brief.render import render_brief
from archivist.brief.select import BriefedLesson, BriefFormat
from archivist.config import BriefRules
from archivist.records import Lesson, LessonType, Source, Status, Tally
from tests.samples import lesson


def _known(name: str, frequency: int, number: int = 1, **fields: object) -> Lesson:
    runs = tuple(f"r{place}" for place in range(frequency))
    status = Status.ACTIVE if frequency > 1 else Status.CANDIDATE
    fields.setdefault("summary", f"{name}-one {name}-two {name}-three".replace("-", 3 * name[0]))
    return lesson(name, runs=runs, status=status, number=number, **fields)


def _chances(lessons: Iterable[Lesson], since: dict[str, int] | None = None) -> dict[str, float]:
    ages = {each.id: [(since or {}).get(each.id, 0)] * each.frequency for each in lessons}
    return {name: chance_of(those, 10, 0.5) for name, those in ages.items()}


def _rank(*lessons: Lesson, since: dict[str, int] | None = None, **rules: object) -> list[str]:
    chosen = [BriefedLesson(each) for each in lessons]
    chances, limits = _chances(lessons, since), BriefRules(**rules)  # type: ignore[arg-type]
    found, _ = rank_lessons(chosen, chances=chances, similarity={}, rules=limits)
    return [each.lesson.id for each in found]


def test_often_comes_before_seldom_and_lately_before_long_ago() -> None:
    assert _rank(_known("a", 2), _known("b", 5)) == ["b", "a"]
    assert _rank(_known("a", 3), _known("b", 3), since={"a": 6}) == ["b", "a"]
    chances = [chance_of([since] * 4, 120, 0.5) for since in (0, 5, 9, 10)]
    assert chances == sorted(chances, reverse=True)
    assert len(set(chances)) == 4
    # Ten runs did not meet it.
    assert chances[-1] == 0


@pytest.mark.req("N2")
def test_the_chance_is_the_share_of_runs_that_met_it_of_the_last_ones_mostly() -> None:
    always, half, gone = range(40), range(0, 40, 2), range(30, 40)
    assert chance_of(always, 40, 0.5) > 0.75
    assert 0.35 < chance_of(half, 40, 0.5) < 0.55
    assert chance_of(gone, 40, 0.5) < LEAST_CHANCE + 0.1
    assert chance_of([30], 40, 0.5) < LEAST_CHANCE


@pytest.mark.req("N2")
def test_what_was_met_once_is_told_only_where_lessons_are_met_again() -> None:
    assert chance_of([0], 20, 0.05) < LEAST_CHANCE < chance_of([0], 20, 0.4)


def test_what_was_seen_once_comes_last_and_only_when_it_may() -> None:
    once, often = _known("once", 1, importance=1.0, rule="IF a THEN b"), _known("often", 2, importance=0.0)
    assert _rank(once, often, since={"often": 1}) == ["often", "once"]
    assert _rank(once, often, max_candidates=0) == ["often"]


@pytest.mark.req("N2")
def test_a_correction_made_once_waits_and_a_wish_for_good_does_not() -> None:
    wish: dict[str, Any] = {"type": LessonType.PREFERENCE, "source": Source.ARCHIVIST}
    once, twice = _known("once", 1, importance=0.5, **wish), _known("twice", 2, importance=0.5, **wish)
    always = _known("always", 1, importance=0.9, **wish)
    chances = [standing_chance(each, 0.02) for each in (once, twice, always)]
    assert [chance >= LEAST_CHANCE for chance in chances] == [False, True, True]


@pytest.mark.req("N2")
def test_what_was_seen_once_of_one_commit_is_not_told() -> None:
    gone = "`git show 3f9c2ab` fails (“unknown revision”): use `git log`"
    assert _rank(_known("one", 1, summary=gone, rule="IF a THEN b")) == []
    assert _rank(_known("two", 2, summary=gone, rule="IF a THEN b")) == ["two"]
    # Words and numbers are no commits.
    other = "`make facade 20260101` fails: use `make decade`"
    assert _rank(_known("three", 1, summary=other, rule="IF a THEN b")) == ["three"]


def test_no_more_candidates_are_told_than_the_rules_allow() -> None:
    many = [_known(str(place), 1, number=place, rule=f"IF a THEN {place}") for place in range(1, 9)]
    assert len(_rank(*many)) == 3
    assert len(_rank(*many, max_candidates=5)) == 5


def test_the_budget_and_the_number_are_kept() -> None:
    many = [_known(str(place), 3, number=place, summary=f"{place}".zfill(100)) for place in range(1, 30)]
    assert len(_rank(*many)) == 6
    assert len(_rank(*many, max_task_lessons=9)) == 9
    told = _rank(*many, budget_tokens=100)
    assert told
    assert sum(cost_in_tokens(many[int(name) - 1]) for name in told) <= 100


def test_a_tokenizer_of_the_user_counts() -> None:
    many = [BriefedLesson(_known(str(place), 3, number=place)) for place in range(1, 9)]
    rules = BriefRules(budget_tokens=40)
    told, _ = rank_lessons(
        many,
        chances=_chances(each.lesson for each in many),
        similarity={},
        rules=rules,
        tokens=lambda text: 2 * len(text.split()),
    )
    assert len(told) == 3


def test_what_proved_helpful_comes_first_and_what_did_not_help_last() -> None:
    lessons = [BriefedLesson(_known(name, 3, number=place)) for place, name in enumerate(("a", "b", "c"), 1)]
    tallies = {"a": Tally(helpful=0, ineffective=6), "c": Tally(helpful=6, ineffective=0)}
    told, _ = rank_lessons(lessons, chances={}, similarity={}, rules=BriefRules(), tallies=tallies)
    assert [each.lesson.id for each in told] == ["c", "b", "a"]


def test_nothing_is_told_when_nothing_is_likely_any_more() -> None:
    known = _known("a", 2, rule="IF a THEN b")
    assert _rank(known, since={"a": 40}) == []
    assert _rank(known, since={"a": 5}) == ["a"]


@pytest.mark.req("N2")
def test_what_two_of_many_runs_met_is_not_told() -> None:
    assert chance_of([9, 20], 32, 0.5) < LEAST_CHANCE
    assert chance_of([2, 6, 9], 32, 0.5) >= LEAST_CHANCE


@pytest.mark.req("N2")
def test_a_warning_without_a_remedy_must_be_likelier() -> None:
    known, bare = _known("known", 2, rule="IF a THEN b"), _known("bare", 2, number=2)
    assert _rank(known, bare, since={"known": 5, "bare": 5}) == ["known"]


def test_of_lessons_that_say_the_same_no_more_than_two_are_told() -> None:
    same = [_known(str(place), 4, number=place, summary="Pin the numpy version") for place in range(1, 6)]
    assert _rank(*same, _known("other", 2, number=9)) == ["1", "2", "other"]


@pytest.mark.req("N2")
def test_the_same_advice_on_a_call_that_a_lesson_names_already_is_told_once() -> None:
    def blocked(
        name: str, calls: str, runs: int, do: str = "ask to run them outside", **fields: Any
    ) -> Lesson:
        text = f"{calls} fail: {do}"
        return _known(
            name, runs, signature=f"shop|{name}", summary=text, rule=f"IF {calls} fail THEN {do}", **fields
        )

    every = blocked("every", "`gh`, `git push`, `curl` and `pnpm test`", 6)
    one = blocked(
        "one", "`git push origin main`", 3, "ask to run it outside", remedies=("leave the sandbox",)
    )
    assert _rank(every, one) == ["every"]
    # Another call, or another advice, is another line.
    assert _rank(every, blocked("other", "`rsync`", 3)) == ["every", "other"]
    assert _rank(every, blocked("wait", "`git push`", 3, "pull first")) == ["every", "wait"]


def test_a_long_lesson_makes_room_for_shorter_ones() -> None:
    assert _rank(_known("long", 9, summary="x" * 5000), _known("short", 2)) == ["short"]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"summary": "Check the null", "rule": "IF a THEN b"}, "1. Check the null. IF a THEN b (seen 2x)"),
        ({"summary": "Use `b`", "rule": "IF a THEN `b`", "signature": "k"}, "1. Use `b` (seen 2x)"),
        ({"summary": "Check the null"}, "1. Check the null (seen 2x)"),
        ({"summary": "Use `b` (worked in 1 run)"}, "1. Use `b` (seen 2x, worked in 1 run)"),
        ({"summary": "Use `b` (helped in 1 of 2 tries)"}, "1. Use `b` (seen 2x, worked in 1 of 2 tries)"),
        ({"summary": "It (helped in some) way"}, "1. It (helped in some) way (seen 2x)"),
    ],
)
def test_a_rule_is_told_unless_the_summary_says_it(fields: dict[str, object], line: str) -> None:
    text = render_brief([BriefedLesson(_known("a", 2, **fields))], BriefFormat.MARKDOWN)  # type: ignore[arg-type]
    assert text.splitlines() == ["### Project Lessons", "", line]


def test_seen_once_is_said() -> None:
    text = render_brief([BriefedLesson(_known("a", 1))], BriefFormat.KNOWN_ISSUES)
    assert "[seen once, archivist]" in text


def test_a_mined_lesson_beside_a_persons_words_on_its_call_is_told_once() -> None:
    mined = lesson(
        "mined",
        summary="`rtk bun run test` fails (“unrecognized subcommand”): use `bun run test`",
        signature="shop|usage:rtk",
        remedies=("bun run test",),
        status=Status.ACTIVE,
    )
    typed = replace(mined, id="said", signature="", remedies=(), source=Source.MANUAL)
    said = replace(typed, summary="Call `bun run test`, never rtk bun run test")
    assert is_said_beside(mined, [mined, said])
    assert not is_said_beside(said, [mined, said])
    for other in ("`bun run test` needs the database", "rtk bun run test writes to the log"):
        assert not is_said_beside(mined, [replace(typed, summary=other)])
