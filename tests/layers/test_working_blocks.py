"""Working memory in an agent's own process: thread-safe, bounded, kept when it is left."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import InputError
from archivist.layers.working_service import (
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_NOTES,
    Scratch,
    validate_working,
    with_context,
)
from archivist.records import Working

NOW = datetime(2026, 2, 8, tzinfo=UTC)


def _working(**fields: Any) -> Working:
    return Working(id="coder", updated=NOW, expires=NOW, **fields)


def _scratch() -> tuple[Scratch, list[Working]]:
    kept: list[Working] = []

    def keep(mind: Working) -> Working:
        kept.append(mind)
        return mind

    return Scratch(_working(), keep), kept


@pytest.mark.req("M1")
def test_a_scratch_holds_plan_constraints_context_and_notes_and_is_kept_when_left() -> None:
    scratch, kept = _scratch()
    with scratch:
        scratch.plan = "port the parser"
        scratch.constrain("no new dependencies", "no new dependencies", "stay offline")
        scratch.lift("stay offline")
        scratch.know(branch="main", pr=12, gone=None)
        scratch.note("tests live in t/")
    expected = _working(
        plan="port the parser",
        constraints=("no new dependencies",),
        context={"branch": "main", "pr": 12},
        scratchpad=("tests live in t/",),
    )
    assert kept == [expected]
    assert scratch.snapshot() == expected
    assert (scratch.plan, scratch.constraints) == ("port the parser", ("no new dependencies",))
    assert (scratch.context, scratch.scratchpad) == ({"branch": "main", "pr": 12}, ("tests live in t/",))
    scratch.clear()
    assert scratch.snapshot() == _working()
    assert (scratch.plan, scratch.constraints, scratch.context, scratch.scratchpad) == ("", (), {}, ())


@pytest.mark.req("M1")
def test_a_scratch_is_kept_also_when_an_error_ends_it() -> None:
    scratch, kept = _scratch()
    with pytest.raises(ZeroDivisionError), scratch:
        scratch.note("before")
        raise ZeroDivisionError
    assert [mind.scratchpad for mind in kept] == [("before",)]


def test_several_threads_lose_nothing() -> None:
    scratch, _ = _scratch()

    def write(name: int) -> None:
        for number in range(50):
            scratch.note(f"{name}-{number}")
            scratch.know(**{f"k{name}": number})

    threads = [Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(scratch.scratchpad) == sorted(
        f"{name}-{number}" for name in range(4) for number in range(50)
    )
    assert scratch.context == {f"k{name}": 49 for name in range(4)}


def test_what_is_seen_does_not_change_what_is_held() -> None:
    scratch, _ = _scratch()
    scratch.know(steps=[1, 2])
    scratch.context["steps"] = 0
    assert scratch.context == {"steps": [1, 2]}


def _circle() -> dict[str, object]:
    value: dict[str, object] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    ("mind", "reason"),
    [
        (_working(scratchpad=("x",) * 10_000), "10,000 notes, at most 1,000"),
        (_working(constraints=tuple(map(str, range(101)))), "101 constraints, at most 100"),
        (_working(plan="x" * (MOST_CHARACTERS + 1)), "plan: 8,001 characters"),
        (_working(scratchpad=("x" * MOST_CHARACTERS,) * 40), "bytes, at most 262,144"),
        (_working(context={"x": "y" * MOST_BYTES}), "too many"),
        (_working(context={"when": NOW}), "context: not JSON"),
        (_working(context={"nan": float("nan")}), "context: not JSON"),
        (_working(context={"it": {"self": {1, 2}}}), "context: not JSON"),
        (_working(context=_circle()), "context: not JSON"),
        (_working(context={1: "x"}), "the key 1 is not a text"),
        (_working(plan=7), "plan: expected a text"),
        (_working(scratchpad=(None,)), "note: expected a text"),
    ],
)
def test_what_is_too_large_or_no_json_is_refused(mind: Working, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        validate_working(mind)
    assert reason in refused.value.message


def test_a_refused_change_leaves_everything_as_it_was() -> None:
    scratch, _ = _scratch()
    for number in range(MOST_NOTES):
        scratch.note(str(number))
    with pytest.raises(InputError, match="1,001 notes"):
        scratch.note("one more")
    with pytest.raises(InputError):
        scratch.know(when=NOW)
    with pytest.raises(InputError, match="is empty"):
        scratch.note(" ")
    assert (len(scratch.scratchpad), scratch.context) == (MOST_NOTES, {})


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=5))
def test_any_json_is_kept_as_it_is(context: dict[str, object]) -> None:
    kept = validate_working(_working(context=context))
    assert kept.context == context
    assert validate_working(kept) == kept


@given(st.dictionaries(st.sampled_from("abc"), values), st.dictionaries(st.sampled_from("abc"), values))
def test_merging_a_context_twice_is_merging_it_once(
    before: dict[str, object], given_: dict[str, object]
) -> None:
    once = with_context(_working(context=before), given_)
    assert with_context(once, given_) == once
    assert None not in once.context.values()
