"""Erasing and pruning through the bank."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import Config, RetentionRules
from archivist.errors import InputError, NotFoundError
from archivist.forget.receipt import Receipt, receipt_lines, receipt_view, text_digest
from archivist.recall.query import Query
from archivist.records import Brief, Effect, Episode, Event, EventKind, Evidence, Lesson, Verdict
from archivist.records.plain import canonical_json, to_plain
from archivist.store.erasure import ERASED, count_occurrences, erasure_query, redact_json, redact_value
from tests.banks import fresh_bank
from tests.conftest import TickingClock
from tests.samples import WHEN, json_values, lesson, lessons, texts

# Put together here, so that no file of the tests holds it.
PARTS = ("Kestrel", "99ab", "Velvet")
SECRET = "-".join(PARTS)
OLD = WHEN - timedelta(days=90)


def _event(run: str, seq: int, **fields: Any) -> Event:
    return Event(run=run, seq=seq, **{"kind": EventKind.MESSAGE, "text": f"Step {seq} of {run}", **fields})


def _capture(bank: Bank, run: str, *events: Event, **fields: Any) -> None:
    """Take a run in that nothing has to be learnt from any more."""
    bank.capture(Episode(id=run, **fields), events)
    with bank.transaction() as writer:
        writer.dequeue_run(run, bank.now())


def _embed(bank: Bank) -> None:
    for _ in bank.vectors.embed_waiting():
        pass


def _raw(bank: Bank) -> bytes:
    """Return every byte under the bank's folder; the bank is closed first, as its locks are the process's."""
    bank.close()
    return b"".join(path.read_bytes() for path in sorted(bank.path.parent.rglob("*")) if path.is_file())


def _place(receipt: Receipt, name: str) -> tuple[int, int | None]:
    return next((each.removed, each.left) for each in receipt.places if each.name == name)


# The text


@pytest.mark.parametrize("text", ['say "x"\nnow', "Grüße äöü", "C:\\temp\\key", "tab\there", "plain-word"])
@given(before=texts, after=texts, value=json_values)
def test_a_text_leaves_any_json_value_in_every_spelling(
    text: str, before: str, after: str, value: object
) -> None:
    what = erasure_query(text)
    nested = {"a": [before + text + after, {text.upper(): json.dumps([text])}], "b": value}
    left = redact_json(nested, what)
    for written in (json.dumps(left), json.dumps(left, ensure_ascii=False), canonical_json(left)):
        assert count_occurrences([written.encode()], what.needles) == 0


@given(made=lessons())
def test_redacting_twice_is_redacting_once_and_leaves_no_trace(made: Lesson) -> None:
    what = erasure_query(SECRET)
    marked = replace(made, rule=f"{made.rule}{SECRET.lower()}", extra={**made.extra, SECRET: [SECRET, 1]})
    once = redact_value(marked, what)
    assert redact_value(once, what) == once
    assert not what.is_in(canonical_json(to_plain(once)))
    assert (once.id, once.status, once.created) == (made.id, made.status, made.created)


@given(data=st.lists(st.binary(max_size=9), max_size=9), needle=st.binary(min_size=2, max_size=3))
def test_counting_does_not_depend_on_where_the_bytes_are_cut(data: list[bytes], needle: bytes) -> None:
    whole = b"".join(data)
    needles = (needle.lower(),)
    assert bool(count_occurrences(data, needles)) == bool(count_occurrences([whole], needles))


def test_a_number_that_spells_the_text_goes_too() -> None:
    assert redact_json({"pin": 491827, "n": 7}, erasure_query("491827")) == {"pin": ERASED, "n": 7}


def test_a_text_of_three_characters_is_refused(bank: Bank) -> None:
    with pytest.raises(InputError, match="too short"):
        bank.erasure.erase(matching="abc")


def test_names_and_a_text_at_once_are_refused(bank: Bank) -> None:
    with pytest.raises(InputError):
        bank.erasure.erase(["m-001"], matching="something")
    with pytest.raises(InputError):
        bank.erasure.erase()


# Erasing a text


@pytest.mark.req("N6")
def test_a_text_goes_from_every_place_and_its_records_stay(bank: Bank) -> None:
    told = bank.lessons.add(f"Never print {SECRET} in a log", rule=f"use {SECRET.upper()}")
    bank.lessons.edit(told.short_id, detail=f"It was {SECRET}")
    _capture(
        bank,
        "r1",
        _event("r1", 1, text=f"I found {SECRET}", role=SECRET),
        _event("r1", 2, output="x" * 9000 + SECRET, extra={"env": {"KEY": SECRET}}),
        _event("r1", 3),
        task=f"rotate {SECRET}",
    )
    with bank.transaction() as writer:
        writer.put(Brief(id="b1", time=WHEN, run="r1", extra={"task": SECRET}), "brief")
        writer.queue("r1")
        writer.lease("me", WHEN + timedelta(days=400))
        writer.end_lease("r1", "me", f"failed at {SECRET}")
    _embed(bank)
    receipt = bank.erasure.erase(matching=SECRET)
    assert receipt.is_clean
    assert [_place(receipt, name) for name in ("lessons", "runs", "events", "briefs")] == [
        (1, 0),
        (1, 0),
        (2, 0),
        (1, 0),
    ]
    assert _place(receipt, "ledger payloads") == (4, 0)
    assert _place(receipt, "pending") == (1, 0)
    assert _place(receipt, "vectors")[0] > 0
    assert bank.lessons.get("m-001").summary == f"Never print {ERASED} in a log"
    assert "kestrel" not in bank.lessons.get("m-001").tags
    assert bank.runs.episode("r1").task == f"rotate {ERASED}"
    assert bank.reflections.waiting_runs()[0].error == f"failed at {ERASED}"
    found = bank.ledger.verify()
    assert found.is_whole
    assert found.erased == 4
    assert bank.ledger.history("m-001")[0].is_erased
    assert SECRET.lower().encode() not in _raw(bank).lower()


@pytest.mark.req("N6")
def test_a_text_is_erased_as_urls_and_base64_hold_it(bank: Bank) -> None:
    word = "wren&" + "Tarn 4417!"
    before = [
        base64.b64encode(lead + word.encode() + b"@host").decode() for lead in (b"", b"a", b"ab", b"user:")
    ]
    forms = [quote(word), quote(word, safe=""), quote_plus(word), *before]
    for number, form in enumerate(forms):
        bank.lessons.add(f"Number {number} says {form} here")
    receipt = bank.erasure.erase(matching=word)
    assert receipt.is_clean
    assert _place(receipt, "lessons") == (len(forms), 0)
    raw = _raw(bank)
    assert [form for form in forms if form.encode() in raw] == []


@pytest.mark.req("N6")
def test_the_receipt_of_a_text_names_the_forms_that_were_not_searched(bank: Bank) -> None:
    bank.lessons.add(f"About {SECRET}")
    receipt = bank.erasure.erase(matching=SECRET)
    view, lines = receipt_view(receipt), list(receipt_lines(receipt))
    assert "reworded or translated" in json.dumps(view["not_searched"])
    assert sum("not searched: split over lines" in line for line in lines) == 1
    told = bank.lessons.add("Another one")
    by_name = bank.erasure.erase([told.short_id])
    assert receipt_view(by_name)["not_searched"] == []


def test_no_word_of_the_text_can_be_found_any_more(bank: Bank) -> None:
    bank.lessons.add("The gryphonwort key is under the mat")
    _embed(bank)
    bank.erasure.erase(matching="gryphonwort key")
    bits = bank.store._db.execute("SELECT bits FROM vector_blocks").fetchall()  # type: ignore[attr-defined]
    assert [any(each) for (each,) in bits] == [False]
    _embed(bank)
    with bank.reading() as reader:
        assert reader.count_documents_with(["gryphonwort"], at_most=9) == [0]
    assert b"gryphon" not in _raw(bank).lower()


@pytest.mark.req("N6")
def test_erasing_twice_finds_nothing_the_second_time(bank: Bank) -> None:
    bank.lessons.add(f"About {SECRET}")
    first, second = bank.erasure.erase(matching=SECRET), bank.erasure.erase(matching=SECRET)
    assert (first.removed_count > 0, second.removed_count) == (True, 0)
    assert second.is_clean


def test_the_ledger_keeps_a_digest_and_neither_text_nor_salt(bank: Bank) -> None:
    bank.lessons.add(f"About {SECRET}")
    receipt = bank.erasure.erase(matching=SECRET)
    with bank.reading() as reader:
        entries = reader.changes(record_id=receipt.id)
    assert {change.entry.verb for change in entries} == {"erase"}
    kept = canonical_json(entries[-1].after)
    assert receipt.digest == text_digest(receipt.salt, SECRET)
    assert receipt.digest in kept
    assert receipt.salt not in kept
    assert SECRET.lower() not in kept.lower()


def test_a_run_named_by_the_text_goes_wholly_and_the_sealed_name_is_reported(bank: Bank) -> None:
    _capture(bank, f"run-{SECRET}", _event(f"run-{SECRET}", 1))
    bank.lessons.add("Kept", evidence={"episodes": [f"run-{SECRET}"]})
    receipt = bank.erasure.erase(matching=SECRET)
    assert bank.runs.episodes() == []
    assert _place(receipt, "ledger") == (0, 4)
    assert not receipt.is_clean
    assert bank.lessons.get("m-001").evidence.episodes == (f"run-{ERASED}",)
    assert bank.ledger.verify().is_whole


def test_an_erased_word_wins_over_another_clones_older_version(
    bank: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    bank.lessons.add(f"About {SECRET}")
    bank.exchange.share(tmp_path / "share")
    with fresh_bank(tmp_path / "other", clock=clock) as other:
        origin = next(iter(other.exchange.share(tmp_path / "share").waiting))
        other.exchange.share(tmp_path / "share", trust=[origin])
        other.lessons.edit("m-001", tags=["theirs"])
        other.exchange.share(tmp_path / "share")
    receipt = bank.erasure.erase(matching=SECRET)
    theirs = [place for place in receipt.places if place.note.startswith("another clone")]
    assert [place.left for place in theirs] == [1]
    with fresh_bank(tmp_path / "third", clock=clock) as third:
        third.exchange.share(tmp_path / "share")
    assert bank.exchange.share(tmp_path / "share").problems == ()


# Erasing records


def test_an_erased_lesson_takes_its_verdicts_and_counts_along(bank: Bank, tmp_path: Path) -> None:
    kept, told = (
        bank.lessons.add("Stays as it is"),
        bank.lessons.add("Goes with everything that was said of it"),
    )
    bank.lessons.record_usage([told.short_id])
    with bank.transaction() as writer:
        writer.put(Verdict(run="r1", lesson=told.id, time=WHEN, effect=Effect.HELPFUL), "judge")
    bank.exchange.export(tmp_path / "out")
    receipt = bank.erasure.erase([told.short_id])
    assert receipt.is_clean
    assert _place(receipt, "lessons") == (1, 0)
    assert _place(receipt, "verdicts") == (1, 0)
    assert [each.id for each in bank.lessons.query(Query())] == [kept.id]
    lines = (tmp_path / "out" / "lessons.jsonl").read_text().splitlines()
    assert [json.loads(line)["uid"] for line in lines] == [kept.id]
    assert bank.ledger.verify().is_whole
    again = bank.erasure.erase([told.short_id])
    assert (again.removed_count, again.is_clean) == (0, True)
    assert b"everything that was said" not in _raw(bank)


def test_an_erased_event_leaves_the_lesson_that_cites_it(bank: Bank) -> None:
    _capture(bank, "r1", _event("r1", 1), _event("r1", 2, text="The password was on the whiteboard"))
    bank.lessons.add("Look twice", evidence=to_plain(Evidence(episodes=("r1",), events=("r1#1", "r1#2"))))
    receipt = bank.erasure.erase(["r1#2"])
    assert _place(receipt, "events") == (1, 0)
    assert bank.lessons.get("m-001").evidence == Evidence(episodes=("r1",), events=("r1#1",))
    assert bank.ledger.verify().is_whole
    assert b"whiteboard" not in _raw(bank)


def test_an_erased_run_takes_its_events_and_its_files_do_not_bring_it_back(
    bank: Bank, tmp_path: Path
) -> None:
    log = tmp_path / "stream.jsonl"
    lines = [{"run": "r1", "seq": seq, "kind": "log", "text": f"Entry number {seq}"} for seq in (1, 2)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    bank.runs.capture_file(log)
    bank.erasure.erase(["r1"])
    assert bank.runs.episodes() == []
    assert bank.reflections.waiting_runs() == []
    assert bank.runs.capture_file(log).is_unchanged
    assert bank.doctor.status()["events"] == 0
    assert bank.ledger.verify().is_whole


def test_an_erased_run_takes_its_parts_and_its_subagents_along(bank: Bank, tmp_path: Path) -> None:
    names = {"r1": "", "r1@web": "r1", "r1.aa": "r1", "r1.aa@lib": "r1.aa", "r2": ""}
    for run, parent in names.items():
        _capture(bank, run, _event(run, 1), parent=parent, task=f"The work of {run}")
    bank.exchange.export(tmp_path / "out")
    assert {each.id for each in bank.erasure.find_erasure_targets(["r1"])} == names.keys() - {"r2"}
    receipt = bank.erasure.erase(["r1"])
    assert (_place(receipt, "runs"), _place(receipt, "events")) == ((4, 0), (4, 0))
    assert [each.id for each in bank.runs.episodes()] == ["r2"]
    written = "".join(each.read_text() for each in (tmp_path / "out").rglob("*.jsonl"))
    assert ("r2" in written, "r1" in written) == (True, False)
    assert bank.ledger.verify().is_whole


def test_what_an_erased_run_left_below_it_can_still_go(bank: Bank) -> None:
    _capture(bank, "r1@web", _event("r1@web", 1), parent="r1")
    bank.erasure.erase(["r1"])
    assert bank.runs.episodes() == []


def test_what_other_records_say_too_is_pointed_out(bank: Bank) -> None:
    bank.lessons.add("The same words stand twice")
    _capture(bank, "r1", _event("r1", 1, text="The same words stand twice"))
    receipt = bank.erasure.erase(["m-001"])
    assert any("other records" in note for note in receipt.notes)


def test_an_unknown_name_is_not_found(bank: Bank) -> None:
    with pytest.raises(NotFoundError):
        bank.erasure.erase(["m-404"])
    with pytest.raises(NotFoundError):
        bank.erasure.erase(["r1#7"])


# Files


def test_a_file_that_somebody_changed_is_left_alone_and_named(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add(f"About {SECRET}")
    bank.exchange.export(tmp_path / "out")
    file = tmp_path / "out" / "lessons.jsonl"
    file.write_text(file.read_text() + "\n")
    receipt = bank.erasure.erase(matching=SECRET)
    place = next(each for each in receipt.places if each.name == str(file))
    assert (place.left, place.note) == (1, "changed since the bank wrote it: check it yourself")
    assert SECRET in file.read_text()


def test_the_section_of_a_progress_file_is_written_anew(bank: Bank) -> None:
    from archivist.reflect.progress import append_lessons

    told = [bank.lessons.add(f"About {SECRET}"), bank.lessons.add("Another")]
    path = bank.path.parent.parent / "progress.md"
    path.write_text(append_lessons("# Mine\n\nkeep this\n", "s", told))
    assert bank.erasure.erase(matching=SECRET).is_clean
    left = [bank.lessons.get("m-001"), told[1]]
    assert path.read_text() == append_lessons("# Mine\n\nkeep this\n", "s", left)
    bank.erasure.erase(["m-002"])
    assert "Another" not in path.read_text()


def test_a_stray_file_beside_the_bank_is_reported(bank: Bank) -> None:
    bank.lessons.add(f"About {SECRET}")
    stray = bank.path.parent / "notes.txt"
    stray.write_text(f"remember {SECRET}")
    receipt = bank.erasure.erase(matching=SECRET)
    assert not receipt.is_clean
    assert _place(receipt, str(stray)) == (0, 1)


# Pruning


def _old_bank(bank: Bank) -> None:
    for run in ("cited", "pointed", "waits", "goes"):
        events: Iterable[Event] = [_event(run, seq, output="x" * 500) for seq in range(1, 5)]
        _capture(bank, run, *events, started=OLD - timedelta(days=1), finished=OLD)
    _capture(bank, "child", _event("child", 1), parent="young", finished=OLD)
    _capture(bank, "young", _event("young", 1), finished=WHEN)
    _capture(bank, "undated", _event("undated", 1))
    with bank.transaction() as writer:
        writer.queue("waits")
        writer.put(lesson("l1", evidence=Evidence(episodes=("cited",))), "add")
        pointed = Evidence(episodes=("pointed",), events=("pointed#2",))
        writer.put(lesson("l2", number=2, evidence=pointed), "add")


@pytest.mark.req("M9")
def test_pruning_keeps_what_lessons_cite_and_what_waits(bank: Bank) -> None:
    _old_bank(bank)
    plan = bank.erasure.prune(days=30)
    assert (plan.runs, plan.trimmed, plan.events, plan.is_dry_run) == (1, 1, 7, True)
    assert plan.freed > 0
    assert bank.doctor.status()["runs"] == 7
    done = bank.erasure.prune(days=30, is_dry_run=False)
    assert (done.runs, done.events, done.is_given_back) == (1, 7, True)
    assert {each.id for each in bank.runs.episodes()} == {
        "cited", "pointed", "waits", "child", "young", "undated",
    }  # fmt: skip
    with bank.reading() as reader:
        left = {row[0] for row in reader.select_fields(Event, ("id",))}
    assert {name for name in left if name.startswith(("goes", "pointed"))} == {"pointed#2"}
    assert bank.ledger.verify().is_whole
    assert bank.recall(Query(text="Step 1 of goes", kinds=("event",), limit=50)).hits
    assert all(not hit.id.startswith("goes#") for hit in bank.recall(Query(text="goes", limit=50)).hits)
    assert bank.erasure.prune(days=30).events == 0


def test_the_runs_of_one_session_are_pruned_together(bank: Bank) -> None:
    for run, last in (("old", OLD), ("resumed", WHEN)):
        _capture(bank, run, _event(run, 1), finished=OLD)
        _capture(bank, f"{run}@web", _event(f"{run}@web", 1), parent=run, finished=OLD)
        _capture(bank, f"{run}.aa", _event(f"{run}.aa", 1), parent=run, finished=last)
    assert bank.erasure.prune(days=30, is_dry_run=False).runs == 3
    assert {each.id for each in bank.runs.episodes()} == {"resumed", "resumed@web", "resumed.aa"}


def test_the_run_that_holds_the_count_stays(bank: Bank, clock: TickingClock) -> None:
    for run in ("r1", "r2"):
        _capture(bank, run, finished=OLD)
        bank.lessons.decay(run)
    bank.erasure.prune(is_dry_run=False)
    assert [each.id for each in bank.runs.episodes()] == ["r2"]
    with bank.reading() as reader:
        assert reader.run_count() == 2
    assert clock.now > OLD


def test_growth_is_told_once_the_bank_is_large(tmp_path: Path, clock: TickingClock) -> None:
    rules = Config(retention=RetentionRules(warn_at_mb=1))
    with fresh_bank(tmp_path / "large", clock=clock, config=rules) as bank:
        assert bank.erasure.check_growth() == []
        _capture(bank, "r1", *(_event("r1", seq, output="x" * 4000) for seq in range(400)), finished=OLD)
        (said,) = bank.erasure.check_growth()
        assert said.startswith("events are 100 % of")
        assert "archivist prune --days 30 --yes frees about" in said
        bank.erasure.prune(is_dry_run=False)
        assert bank.erasure.check_growth() == []
        assert bank.erasure.sizes().total < 1_000_000


def test_tags_of_words_that_an_edit_replaced_go_too(bank: Bank) -> None:
    bank.lessons.add("Call the Zephyrus gateway first", tags=["zephyrus", "gateway", "http"])
    bank.lessons.edit("m-001", summary="Call the http gateway first")
    bank.erasure.erase(matching="Zephyrus")
    assert bank.lessons.get("m-001").tags == ("gateway", "http")
