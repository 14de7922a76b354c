"""What may go by age, and when a bank is called large."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.clock import to_text
from archivist.config import Config, ReflectRules, RetentionRules
from archivist.forget.retention import (
    RetentionNeeds,
    RetentionReason,
    RunDeletion,
    child_runs,
    collect_needs,
    decide_retention,
    descendant_runs,
    growth_warnings,
    latest_end,
    session_families,
)
from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.store.results import Sizes
from tests.banks import fresh_bank
from tests.conftest import Command, TickingClock
from tests.samples import WHEN

OLD = WHEN - timedelta(days=40)
BEFORE = WHEN - timedelta(days=30)
RULES = RetentionRules(episodes_days=30, warn_at_mb=200)


def test_an_old_run_goes_with_its_events() -> None:
    going = decide_retention("r", OLD, RetentionNeeds(), BEFORE, uncited=(3, 900))
    assert going == RunDeletion("r", 3, 900)


@pytest.mark.parametrize(
    ("ended", "events", "needs", "why"),
    [
        (WHEN, 0, RetentionNeeds(), RetentionReason.YOUNG),
        (None, 0, RetentionNeeds(), RetentionReason.UNDATED),
        (OLD, 0, RetentionNeeds(waiting=frozenset({"r"})), RetentionReason.WAITING),
        (OLD, 2, RetentionNeeds(runs=frozenset({"r"})), RetentionReason.CITED),
        (OLD, 0, collect_needs([((), ("r#1",))], (), ""), RetentionReason.CITED),
        (OLD, 2, RetentionNeeds(last="r"), RetentionReason.LAST),
        (OLD, 2, RetentionNeeds(recent=frozenset({"r"})), RetentionReason.RECENT),
        # A recent run keeps also the events that no lesson cites: what was fixed in it is one.
        (OLD, 2, collect_needs([((), ("r#1",))], (), "", ("r",)), RetentionReason.RECENT),
    ],
)
def test_a_run_stays_and_says_why(
    ended: datetime | None, events: int, needs: RetentionNeeds, why: RetentionReason
) -> None:
    assert decide_retention("r", ended, needs, BEFORE, uncited=(events, 0)) is why


def test_a_run_is_as_young_as_the_last_end_of_its_session_or_else_the_last_start() -> None:
    old, young = to_text(OLD), to_text(WHEN)
    assert latest_end([(young, None)]) == latest_end([(young, old)]) == latest_end([(None, young)]) == WHEN
    assert latest_end([(old, None), (young, old)]) == latest_end([(None, old), (None, young)]) == WHEN
    assert latest_end([(old, young)]) == OLD
    assert latest_end([(None, None)]) is None


def test_of_a_run_with_cited_events_only_the_others_go() -> None:
    needs = collect_needs([(("r",), ("r#1", "r#4"))], (), "")
    going = decide_retention("r", OLD, needs, BEFORE, uncited=(7, 70))
    assert going == RunDeletion("r", 7, 70, frozenset({"r#1", "r#4"}), is_whole=False)


KIN = frozenset({"r", "r@web", "r.aa"})


@pytest.mark.parametrize(
    ("needs", "decided"),
    [
        (RetentionNeeds(), RunDeletion("r", 3, 30)),
        (RetentionNeeds(waiting=frozenset({"r@web"})), RetentionReason.WAITING),
        (RetentionNeeds(last="r.aa"), RetentionReason.LAST),
        (collect_needs([(("r.aa",), ("r.aa#1",))], (), ""), RunDeletion("r", 3, 30, is_whole=False)),
        (collect_needs([(("r@web",), ())], (), ""), RunDeletion("r", 3, 30, is_whole=False)),
    ],
)
def test_the_records_of_one_session_stay_together(
    needs: RetentionNeeds, decided: RunDeletion | RetentionReason
) -> None:
    assert decide_retention("r", OLD, needs, BEFORE, uncited=(3, 30), kin=KIN) == decided


def test_a_session_is_a_run_with_all_that_is_below_it() -> None:
    known = child_runs(
        [("r", ""), ("r@web", "r"), ("r.aa", "r"), ("r.aa@lib", "r.aa"), ("x", "gone"), ("y", "")]
    )
    assert set(descendant_runs("r", known)) == {"r@web", "r.aa", "r.aa@lib"}
    assert descendant_runs("r.aa", known) == ["r.aa@lib"]
    found = session_families(known)
    assert found["r.aa@lib"] == found["r"] == {"r", "r@web", "r.aa", "r.aa@lib"}
    assert found.keys() == {*found["r"], "x", "gone"}


def test_runs_that_are_each_others_parents_are_looked_at_once() -> None:
    assert descendant_runs("a", child_runs([("a", "b"), ("b", "a")])) == ["b"]


def test_a_run_whose_name_has_a_number_sign_is_cited_by_its_own_events() -> None:
    assert collect_needs([((), ("a#b#3",))], (), "").events == {"a#b": frozenset({"a#b#3"})}


names = st.sampled_from(["a", "b", "c"])
dates = st.none() | st.integers(0, 80).map(lambda days: WHEN - timedelta(days=days))
events = st.tuples(st.integers(0, 3), st.just(0))
needs_strategy = st.builds(
    collect_needs,
    st.lists(
        st.tuples(st.lists(names, max_size=2), st.lists(names.map(lambda name: f"{name}#1"), max_size=2))
    ),
    st.lists(names, max_size=1),
    names | st.just(""),
)


@given(run=names, ended=dates, uncited=events, needs=needs_strategy)
def test_nothing_that_is_needed_ever_goes(
    run: str, ended: datetime | None, uncited: tuple[int, int], needs: RetentionNeeds
) -> None:
    going = decide_retention(run, ended, needs, BEFORE, uncited=uncited)
    if isinstance(going, RunDeletion):
        assert ended is not None
        assert ended < BEFORE
        assert run not in needs.waiting
        assert going.cited == needs.events.get(run, frozenset())
        if going.is_whole:
            assert run not in needs.runs
            assert run != needs.last


@given(
    run=names,
    ended=dates,
    uncited=events,
    needs=needs_strategy,
    days=st.integers(1, 80),
    more=st.integers(0, 80),
)
def test_a_longer_memory_never_lets_more_go(
    run: str, ended: datetime | None, uncited: tuple[int, int], needs: RetentionNeeds, days: int, more: int
) -> None:
    def goes(age: int) -> bool:
        before: datetime = WHEN - timedelta(days=age)
        return isinstance(decide_retention(run, ended, needs, before, uncited=uncited), RunDeletion)

    assert goes(days) or not goes(days + more)


@given(run=names, ended=dates, uncited=events, needs=needs_strategy)
def test_pruning_again_finds_nothing_more(
    run: str, ended: datetime | None, uncited: tuple[int, int], needs: RetentionNeeds
) -> None:
    going = decide_retention(run, ended, needs, BEFORE, uncited=uncited)
    if isinstance(going, RunDeletion) and not going.is_whole:
        assert decide_retention(run, ended, needs, BEFORE) is RetentionReason.CITED


def test_a_small_bank_needs_no_words() -> None:
    assert growth_warnings(Sizes(1_000_000, 0, {"events": 10}), 10, RULES) == []


@pytest.mark.req("M9")
def test_a_large_bank_is_told_what_helps() -> None:
    sizes = Sizes(410_000_000, 0, {"events": 92, "lessons": 8})
    assert growth_warnings(sizes, sizes.estimate_freed(73), RULES) == [
        "events are 92 % of 410 MB: archivist prune --days 30 --yes frees about 299 MB"
    ]


def test_a_large_bank_of_young_runs_is_told_so() -> None:
    sizes = Sizes(410_000_000, 0, {"events": 92, "lessons": 8})
    (said,) = growth_warnings(sizes, 0, RULES)
    assert "little is older than 30 days" in said


def _finish(bank: Bank, run: str, **fields: object) -> None:
    event = Event(run=run, seq=1, kind=EventKind.MESSAGE, text=f"Step of {run}")
    bank.runs.finish_run(Episode(id=run, **fields), [event], status=EpisodeStatus.SUCCESS)  # type: ignore[arg-type]


@pytest.mark.req("M9")
def test_a_finished_run_prunes_at_most_once_a_day(bank: Bank, clock: TickingClock) -> None:
    old = clock.now - timedelta(days=40)
    bank.attempts.log("t", agent="coder", action="failed", approach="old", time=old)
    _finish(bank, "first")
    assert bank.attempts.query(task="t") == []
    pruned = bank.erasure.last_pruned()
    assert pruned["runs"] == 1
    bank.attempts.log("t", agent="coder", action="failed", approach="older", time=old)
    _finish(bank, "second")
    assert len(bank.attempts.query(task="t")) == 1
    clock.now += timedelta(days=1)
    _finish(bank, "third")
    assert bank.attempts.query(task="t") == []
    assert bank.ledger.verify().is_whole
    told = {check.name: check.text for check in bank.doctor.health()}["retention"]
    assert "last pruned 2026-04-04: 1 runs, 0 artifacts" in told


@pytest.mark.req("M9")
def test_automatic_pruning_keeps_the_latest_runs_of_each_project(tmp_path: Path, clock: TickingClock) -> None:
    rules = Config(reflect=ReflectRules(related_runs=2))
    old = clock.now - timedelta(days=40)
    with fresh_bank(tmp_path / "p", clock=clock, config=rules) as bank:
        for number in range(4):
            bank.runs.record_episode(
                Episode(id=f"r{number}", project="a", finished=old + timedelta(hours=number))
            )
        bank.runs.record_episode(Episode(id="b0", project="b", finished=old))
        bank.erasure.prune_if_due()
        # What was captured today is not deleted today, however old its session is.
        assert len(bank.runs.episodes()) == 5
        clock.now += timedelta(days=31)
        bank.erasure.prune_if_due()
        assert {run.id for run in bank.runs.episodes()} == {"r2", "r3", "b0"}


@pytest.mark.req("M9")
def test_pruning_can_be_turned_off_by_the_user(tmp_path: Path, clock: TickingClock) -> None:
    rules = Config(retention=RetentionRules(automatic=False))
    with fresh_bank(tmp_path / "p", clock=clock, config=rules) as bank:
        old = clock.now - timedelta(days=400)
        bank.attempts.log("t", agent="coder", action="failed", approach="x", time=old)
        _finish(bank, "r")
        assert len(bank.attempts.query(task="t")) == 1
        told = {check.name: check.text for check in bank.doctor.health()}["retention"]
        assert "only archivist prune --yes prunes; not pruned yet" in told


@pytest.mark.req("M9")
def test_old_artifacts_go_once_their_file_changed_or_is_gone(bank: Bank, clock: TickingClock) -> None:
    for name in ("kept.txt", "changed.txt", "gone.txt"):
        (bank.root / name).write_text(name, "utf-8")
        bank.artifacts.register(name, task="t", agent="coder")
    (bank.root / "changed.txt").write_text("anew", "utf-8")
    bank.artifacts.register("changed.txt", task="t", agent="coder")
    (bank.root / "gone.txt").unlink()
    assert bank.erasure.prune().artifacts == 0
    clock.now += timedelta(days=100)
    assert bank.erasure.prune().artifacts == 2
    assert bank.erasure.prune(is_dry_run=False).artifacts == 2
    assert sorted(each.path for each in bank.artifacts.query()) == ["changed.txt", "kept.txt"]
    assert bank.ledger.verify().is_whole


@pytest.mark.req("M9")
def test_status_says_when_the_bank_was_pruned(bank_cli: Command, project: Path) -> None:
    (project / "r.jsonl").write_text('{"kind": "message", "run": "r", "seq": 1, "text": "hello"}\n', "utf-8")
    assert bank_cli("run", "finish", "r.jsonl").code == 0
    assert "pruned 20" in bank_cli("status").err
    assert "at most once a day" in bank_cli("doctor").out
