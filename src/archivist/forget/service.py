"""Work on forgetting: erase with a receipt, prune old runs, warn of growth.

Erasing by id removes the record: a lesson with its verdicts and counts, a run with its events, its parts in
other repositories and all runs below it. A lesson that cites it loses the citation and keeps the rest.
Erasing a text keeps the records that hold it, with `[erased]` in its place; only a record whose id holds
the text is removed. Either way the payloads of the ledger are erased and its chain stays valid.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, reads, writes
from archivist.clock import from_text, to_text
from archivist.errors import InputError, NotFoundError
from archivist.forget.files_service import clean_files, clean_workspace
from archivist.forget.receipt import ErasureLocation, Receipt, receipt_entry, remaining_tags, text_digest
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
from archivist.forget.unfinished_service import (
    UnfinishedErasure,
    create_key,
    load_unfinished,
    open_key,
    remove_keys,
    store_unfinished,
)
from archivist.ledger.lookup import find_by_beginning, find_by_name
from archivist.records import ARCHIVIST, Artifact, Episode, Event, Lesson, Status, Verdict, Working
from archivist.records.kinds import kind_of, record_type, record_types, types_by_kind
from archivist.records.plain import canonical_json
from archivist.records.words import NOTES
from archivist.service import BankService
from archivist.store.erasure import ErasureQuery, erasure_query, redact_json, redact_value
from archivist.store.filters import at_most, equals, not_equals, one_of
from archivist.store.ledger import PAYLOADS
from archivist.store.results import split_batches
from archivist.store.sql_eraser import measure_bank, measure_runs
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Eraser, Reader
    from archivist.store.results import Sizes

_VERB = "erase"
_LABELS = {"episode": "runs", "entry": "stream entries", "working": "working memories"}
_INDEX, _VECTORS = "text index", "vectors"
# The setting that says that the file may still hold the bytes of deleted rows.
_SCRUB_DUE = "scrub_due"
# A setting of the bank: when it was pruned last, and how much.
_PRUNED = "pruned"
_PRUNE_EVERY = timedelta(days=1)
# A plan shows one line per record.
_SHOWN_CHARACTERS = 80
# Of erased records, this many texts are searched for in the raw bytes afterwards, by their first characters:
# enough to notice a page that was missed, few enough for one pass over a large file.
_WITNESSES = 16
_WITNESS_CHARACTERS = (12, 48)
# Runs deleted in one transaction: other writers wait at most for this many.
_RUNS_AT_ONCE = 50
_DATED = ("id", "finished", "started")
# Retired lessons do not keep the runs that they cite.
_CITING = (Status.CANDIDATE, Status.ACTIVE, Status.QUARANTINED)
# The fields of each kind of record that say what it is about, the best first.
_FIRST_TEXTS = {"lesson": ("summary",), "episode": ("summary", "task"), "event": ("text", "output")}
_OTHER_TEXTS = ("value", "description", "action", "text", "after", "plan")
_WITNESS_TEXTS = {**_FIRST_TEXTS, "lesson": ("summary", "rule", "detail")}
_IN_USE = "another process uses the bank: stop it and erase again"
_ON_SERVER = "the server's log, replicas and backups were not searched: they hold it until they expire"
_REPEATED_NOTE = "other records hold some of its words too: archivist erase --matching TEXT"
_LOGS_NOTE = "captured log files are not changed: capturing a longer version of one stores its text again"


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """A record that an erasure touches; `is_whole` when all of it is removed."""

    kind: str
    id: str
    name: str
    words: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What pruning removed, or would remove, and why the rest stays; `freed` is an estimate in bytes."""

    days: int
    runs: int
    trimmed: int
    events: int
    artifacts: int
    freed: int
    kept: Mapping[str, int]
    is_dry_run: bool
    is_given_back: bool = True


@dataclass(slots=True)
class _ErasureProgress:
    """What an erasure has removed so far, by place."""

    removed: Counter[str] = field(default_factory=Counter)
    vectors_left: int = 0
    gone: set[str] = field(default_factory=set)
    traces: ErasureQuery | None = None


class Erasure(BankService):
    """Erasing with a receipt, and retention."""

    @writes(Layer.BANK)
    def find_erasure_targets(self, names: Sequence[str] = (), *, matching: str = "") -> list[ErasureTarget]:
        """Return what erasing would touch: records by their ids, or all that hold a text."""
        _check_request(names, matching)
        with self._bank.store.erasing(self._bank.actor, self._bank.now()) as eraser:
            if not matching:
                return _resolve_targets(eraser, names)
            query = erasure_query(matching)
            found = eraser.find_mentions(query)
            return [
                _build_target(eraser.get(record, name), query)
                for record in record_types()
                for name in found[kind_of(record)]
            ]

    @writes(Layer.BANK)
    def erase(self, names: Sequence[str] = (), *, matching: str = "") -> Receipt:
        """Erase records, or a text everywhere, down to the raw bytes; the receipt says what was checked.

        First the rows, in one transaction that also notes what else is to be cleaned; then the files that
        this bank wrote; then the free pages and the log of the database. Then every place is searched again,
        and the ledger records the receipt. If it is killed, the next call finishes it.
        """
        bank, store = self._bank, self._bank.store
        _check_request(names, matching)
        bank.proposals.guard_erasure(names, matching)
        self.finish_erasures()
        now = bank.now()
        done, notes, asked = _ErasureProgress(), [_LOGS_NOTE], tuple(names)
        salt = secrets.token_hex(16) if matching else ""
        digest = text_digest(salt, matching) if matching else ""
        receipt = Receipt(id=bank.new_id(now), time=now, digest=digest, salt=salt)
        with ExitStack() as held:
            with store.erasing(bank.actor, now) as eraser:
                if matching:
                    texts = [matching]
                    query = erasure_query(matching)
                    _erase_text(eraser, query, matching, done, now)
                else:
                    targets = _resolve_targets(eraser, names)
                    witnesses = _sample_texts(eraser, targets)
                    _erase_records(eraser, targets, done, now)
                    repeated = eraser.texts_still_stored(witnesses)
                    texts = [text for text in witnesses if text not in repeated]
                    query = erasure_query(*texts, is_plain=True)
                    asked = tuple(dict.fromkeys([*asked, *(target.id for target in targets)]))
                    if repeated:
                        notes.append(_REPEATED_NOTE)
                if done.removed:
                    eraser.drop_orphan_speakers()
                    eraser.set_setting(_SCRUB_DUE, "yes")
                    if bank.store.server:
                        notes.append(_ON_SERVER)
                    receipt = replace(receipt, asked=asked, notes=tuple(notes))
                    # Entered now as well as at the end, in case the rest is interrupted.
                    eraser.record_receipt(receipt.id, receipt_entry(receipt, query))
                key, masked = held.enter_context(create_key(bank.path, texts))
                unfinished = UnfinishedErasure(
                    id=receipt.id, time=now, asked=receipt.asked, digest=digest, notes=receipt.notes,
                    gone=tuple(sorted(done.gone)), removed=dict(done.removed), key=key, masked=masked,
                )  # fmt: skip
                # One whose key is gone cannot be finished: the user was told to erase its text again.
                others = [each for each in load_unfinished(eraser) if each.has_key or not matching]
                store_unfinished(eraser, [*others, unfinished])
            receipt = self._finish(receipt, query, done)
        remove_keys(bank.path, self.unfinished_erasures)
        return receipt

    @reads(Layer.BANK)
    def finish_erasures(self) -> list[Receipt]:
        """Finish what killed erasures left; return their receipts. A running one is left to its process.

        Whoever may use the bank may finish what somebody with the right to erase has begun.
        """
        bank, store = self._bank, self._bank.store
        # Free pages cannot be cleaned inside a transaction.
        if store.is_read_only or store.is_writing or store.is_reading:
            return []
        with bank.reading() as reader:
            unfinished = load_unfinished(reader)
            is_due = bool(reader.setting(_SCRUB_DUE))
        receipts, is_running = [], False
        for each in unfinished:
            with open_key(each) as erasure:
                is_running = is_running or erasure is None
                if erasure is None or (erasure.texts is None and erasure.digest):
                    continue
                texts = erasure.texts or ()
                done = _ErasureProgress(Counter(erasure.removed), gone=set(erasure.gone))
                done.traces = _signature_traces(texts[0]) if erasure.digest else None
                receipt = Receipt(
                    id=erasure.id, time=erasure.time, asked=erasure.asked,
                    digest=erasure.digest, notes=erasure.notes,
                )  # fmt: skip
                receipts.append(
                    self._finish(receipt, erasure_query(*texts, is_plain=not erasure.digest), done)
                )
        # Finishing one has cleaned the free pages too, and a running one will.
        if is_due and not receipts and not is_running and store.scrub():
            with bank.transaction() as writer:
                writer.set_setting(_SCRUB_DUE, "")
        remove_keys(bank.path, self.unfinished_erasures)
        return receipts

    @reads(Layer.BANK)
    def unfinished_erasures(self) -> list[UnfinishedErasure]:
        """Return the erasures that are not finished."""
        with self._bank.reading() as reader:
            return load_unfinished(reader)

    def _finish(self, receipt: Receipt, query: ErasureQuery, done: _ErasureProgress) -> Receipt:
        """Clean files and free pages, search every place again, and enter the receipt in the ledger."""
        bank, store = self._bank, self._bank.store
        if receipt.digest or done.gone:
            gone, written = frozenset(done.gone), bank.exchange.written_files()
            cleaned = clean_files(bank, written, query, traces=done.traces, erased_ids=gone)
            cleaned += clean_workspace(bank, query) if receipt.digest else ()
            receipt = replace(receipt, places=tuple(cleaned))
        with bank.reading() as reader:
            is_due = bool(reader.setting(_SCRUB_DUE))
        is_scrubbed = True
        if is_due or any(store.count_raw_bytes(query.needles).values()):
            is_scrubbed = store.scrub()
        files = []
        for name, count in store.count_raw_bytes(query.needles).items():
            check = "raw bytes" if query.needles else "it has no text to search for"
            is_unsure = not is_scrubbed and not count
            note = "" if is_scrubbed or not query.needles else _IN_USE
            files.append(ErasureLocation(name, 0, None if is_unsure else count, check, note))
        with store.erasing(bank.actor, bank.now()) as eraser:
            tombstones = eraser.count_tombstones()
            places = [
                *_check_rows(eraser, query, done, is_text=bool(receipt.digest)),
                ErasureLocation(_VECTORS, done.removed[_VECTORS], done.vectors_left, "rows counted"),
                ErasureLocation(_INDEX, done.removed[_INDEX], tombstones, "deleted entries in its segments"),
                *files,
            ]
            receipt = replace(receipt, places=(*places, *receipt.places))
            if is_scrubbed:
                eraser.set_setting(_SCRUB_DUE, "")
            if receipt.removed_count:
                eraser.record_receipt(receipt.id, receipt_entry(receipt, query))
            store_unfinished(eraser, [each for each in load_unfinished(eraser) if each.id != receipt.id])
        return receipt

    @writes(Layer.BANK)
    def prune(self, *, days: int | None = None, is_dry_run: bool = True, keep_latest: int = 0) -> PruneResult:
        """Delete runs older than a number of days, except those that lessons cite or that wait.

        Of artifacts those go that are older than `retention.artifacts_days`, once a later version is
        registered or the file is gone. With `keep_latest` so many runs of each project stay whatever their
        age, and those that were captured within these days; the file keeps its size.
        """
        bank, store = self._bank, self._bank.store
        days = bank.config.retention.episodes_days if days is None else days
        if days < 1:
            raise InputError(f"days must be at least 1, not {days}", hint="--days 30 keeps a month")
        before = bank.now() - timedelta(days=days)
        with bank.reading() as reader:
            needs = _load_needs(reader, keep_latest, before)
            artifacts = _find_old_artifacts(bank, reader)
            sizes = measure_runs(reader, (event for events in needs.events.values() for event in events))
            families = session_families(_load_children(reader))
            dates = {run: times for run, *times in reader.select_fields(Episode, _DATED)}
            decisions = []
            for run in dates:
                family = families.get(run, frozenset((run,)))
                # A run is as young as the youngest run of its session.
                ended = latest_end(dates[each] for each in family if each in dates)
                size = sizes.get(run, (0, 0))
                decisions.append(decide_retention(run, ended, needs, before, uncited=size, kin=family))
            total = measure_bank(reader)
        deletions = [decision for decision in decisions if isinstance(decision, RunDeletion)]
        result = PruneResult(
            days=days,
            runs=sum(deletion.is_whole for deletion in deletions),
            trimmed=sum(not deletion.is_whole for deletion in deletions),
            events=sum(deletion.events for deletion in deletions),
            artifacts=len(artifacts),
            freed=total.estimate_freed(sum(deletion.bytes for deletion in deletions)),
            kept=Counter(reason.value for reason in decisions if isinstance(reason, RetentionReason)),
            is_dry_run=is_dry_run,
        )
        if is_dry_run:
            return result
        for batch in split_batches(deletions, _RUNS_AT_ONCE):
            with store.erasing(bank.actor, bank.now()) as eraser:
                _delete_runs(eraser, batch, families, before, keep_latest)
        with store.erasing(bank.actor, bank.now()) as eraser:
            for name in artifacts:
                eraser.erase_payloads(eraser.payloads_of("artifact", name))
                eraser.remove(Artifact, name, "prune")
            counts = {"runs": result.runs, "trimmed": result.trimmed, "artifacts": result.artifacts}
            eraser.set_setting(_PRUNED, canonical_json({"time": to_text(bank.now()), **counts}))
            if not keep_latest and artifacts:
                eraser.set_setting(_SCRUB_DUE, "yes")
        self.finish_erasures()
        with bank.reading() as reader:
            return replace(result, is_given_back=not reader.setting(_SCRUB_DUE))

    @reads(Layer.BANK)
    def prune_if_due(self) -> PruneResult | None:
        """Prune in the archivist's name, at most once a day; None where it is not due or turned off.

        The latest runs of a project stay: briefs say by them what works there, also after a long break.
        """
        bank = self._bank
        if not bank.config.retention.automatic:
            return None
        last = self.last_pruned()
        if last and bank.now() - from_text(str(last["time"])) < _PRUNE_EVERY:
            return None
        keep = bank.config.reflect.related_runs
        return bank.acting_as(ARCHIVIST).erasure.prune(is_dry_run=False, keep_latest=keep)

    @reads(Layer.BANK)
    def last_pruned(self) -> dict[str, object]:
        """Return when the bank was pruned last, and how much; nothing before the first time."""
        with self._bank.reading() as reader:
            noted: dict[str, object] = reader.json_setting(_PRUNED)
        return noted

    @reads(Layer.BANK)
    def sizes(self) -> Sizes:
        """Return the size of the bank, and of the records of each kind."""
        with self._bank.reading() as reader:
            return measure_bank(reader)

    @reads(Layer.BANK)
    def check_growth(self) -> list[str]:
        """Return warnings: that the bank is large and what helps, or that its file holds erased bytes."""
        rules = self._bank.config.retention
        with self._bank.reading() as reader:
            is_due = bool(reader.setting(_SCRUB_DUE))
        unfinished = "erased bytes remain until other processes close the bank: archivist prune --yes"
        sizes = self.sizes()
        # To find what can be pruned takes longer than to see that the bank is small.
        freed = self.prune().freed if growth_warnings(sizes, 0, rules) else 0
        return [unfinished] * is_due + growth_warnings(sizes, freed, rules)


def _check_request(names: Sequence[str], matching: str) -> None:
    if bool(names) == bool(matching):
        raise InputError("give either the names of records or a text to erase")


def _label(kind: str) -> str:
    return _LABELS.get(kind, f"{kind}s")


def _load_children(reader: Reader) -> dict[str, list[str]]:
    return child_runs(reader.select_fields(Episode, ("id", "parent"), not_equals("parent", "")))


def _resolve_targets(eraser: Eraser, names: Sequence[str]) -> list[ErasureTarget]:
    """Return the records of these names, with the runs below them; one erased before gives none."""
    targets: dict[tuple[str, str], ErasureTarget] = {}
    children = _load_children(eraser)
    for name in names:
        record = find_by_name(eraser, name)
        if record is None and not eraser.was_erased(name):
            record = find_by_beginning(eraser, name)
        runs = descendant_runs(record.id if record else name, children)
        records = [each for each in (record, *(eraser.get(Episode, run) for run in runs)) if each is not None]
        targets |= {(kind_of(type(each)), each.id): _build_target(each, None) for each in records}
        if not records and not eraser.was_erased(name):
            raise NotFoundError("record", name)
    return list(targets.values())


def _build_target(record: Any, query: ErasureQuery | None) -> ErasureTarget:
    after = redact_value(record, query) if query else record
    name = after.short_id if isinstance(after, Lesson) else after.id
    fields = _FIRST_TEXTS.get(kind_of(type(record)), _OTHER_TEXTS)
    words = next((text for each in fields if (text := getattr(after, each, ""))), "")
    words = "private to its agent" if isinstance(after, Working) else shorten_line(words, _SHOWN_CHARACTERS)
    return ErasureTarget(
        kind_of(type(record)), record.id, name, words, query is None or after.id != record.id
    )


def _erase_text(
    eraser: Eraser, query: ErasureQuery, text: str, done: _ErasureProgress, now: datetime
) -> None:
    """Replace a text in every record, and remove the records whose ids hold it."""
    found = eraser.find_mentions(query)
    places = [place for kind, ids in found.items() for place in eraser.index_places(kind, ids)]
    done.removed[_INDEX], done.removed[_VECTORS] = len(places), eraser.vector_count(places)
    eraser.drop_vectors(places)
    payloads = set(eraser.payloads_mentioning(query))
    # Tags are words of a text, also of one that an edit has replaced.
    entries = eraser.ledger(kind="lesson", with_payloads=False) if payloads else ()
    earlier = (entry.record for entry, _ in entries if entry.seq in payloads)
    lessons = dict.fromkeys((*found["lesson"], *earlier))
    found["lesson"] = [name for name in lessons if eraser.get(Lesson, name) is not None]
    done.removed[PAYLOADS] += eraser.erase_payloads(sorted(payloads))
    for run in filter(query.is_in, found["episode"]):
        done.removed["events"] += eraser.remove_events(run, _VERB)
    events_by_run: dict[str, list[Event]] = {}
    for name in found["event"]:
        # The events of a run whose id holds the text are gone already.
        if (event := eraser.get(Event, name)) is not None:
            events_by_run.setdefault(event.run, []).append(event)
    for run, events in events_by_run.items():
        if query.is_in(run):
            done.removed["events"] += eraser.remove_events(run, _VERB)
        else:
            redacted = [redact_value(event, query) for event in events]
            done.removed["events"] += eraser.put_events(run, redacted, _VERB)
    for record_class in types_by_kind().values():
        for name in found[kind_of(record_class)]:
            before: Any = eraser.get(record_class, name)
            after = redact_value(before, query)
            if isinstance(after, Lesson):
                words = f"{after.summary} {after.rule} {after.detail}"
                after = replace(after, tags=tuple(remaining_tags(after.tags, words, query)))
            if after == before:
                continue
            done.removed[_label(kind_of(record_class))] += 1
            if after.id != before.id:
                eraser.remove(record_class, name, _VERB)
                continue
            if isinstance(after, Lesson):
                # The redacted words count as edited, so that the older version of another clone does not win.
                after = replace(after, updated=now, edited=now)
            eraser.put(after, _VERB)
    _erase_signatures(eraser, text, done)
    done.removed.update(eraser.erase_other_mentions(query))
    done.removed += Counter()
    done.vectors_left = eraser.vector_count(places)


def _signature_traces(text: str) -> ErasureQuery | None:
    """Return the words of a text as signatures hold them; None where they do not identify it."""
    from archivist.reading.signatures import message_words

    words = message_words(text)
    return erasure_query("-".join(words)) if len(words) > 1 else None


def _erase_signatures(eraser: Eraser, text: str, done: _ErasureProgress) -> None:
    """Erase the text's words from the signatures of lessons and from the notes of reflection on runs.

    A signature holds words of a failure in a row. A single word does not identify the text, so it stays.
    """
    traces = done.traces = _signature_traces(text)
    if traces is None:
        return
    records: list[Any] = []
    for name, signature in eraser.select_fields(Lesson, ("id", "signature")):
        lesson = eraser.get(Lesson, name) if traces.is_in(signature) else None
        if lesson is not None:
            records.append(replace(lesson, signature=traces.redact_text(signature)))
    for name, extra in eraser.select_fields(Episode, ("id", "extra")):
        episode = eraser.get(Episode, name) if traces.is_in(extra) else None
        if episode is not None and NOTES in episode.extra:
            notes = redact_json(episode.extra[NOTES], traces)
            records.append(replace(episode, extra={**episode.extra, NOTES: notes}))
    mentioning = set(eraser.payloads_mentioning(traces)) if records else set()
    for record in records:
        kind = kind_of(type(record))
        payloads = mentioning.intersection(eraser.payloads_of(kind, record.id))
        done.removed[PAYLOADS] += eraser.erase_payloads(sorted(payloads))
        done.removed[f"signatures of {_label(kind)}"] += eraser.put(record, _VERB)


def _erase_records(
    eraser: Eraser, targets: Sequence[ErasureTarget], done: _ErasureProgress, now: datetime
) -> None:
    """Remove records with what belongs to them, and the citations of them."""
    places: list[int] = []
    for target in targets:
        ids = {target.kind: [target.id]}
        if target.kind == "episode":
            ids["event"] = [row[0] for row in eraser.select_fields(Event, ("id",), equals("run", target.id))]
        places += [place for kind, names in ids.items() for place in eraser.index_places(kind, names)]
    done.removed[_INDEX], done.removed[_VECTORS] = len(places), eraser.vector_count(places)

    def remove(kind: str, name: str) -> None:
        done.removed[PAYLOADS] += eraser.erase_payloads(eraser.payloads_of(kind, name))
        done.removed[_label(kind)] += eraser.remove(record_type(kind), name, _VERB)

    for target in targets:
        done.gone |= {target.id, target.name}
        if target.kind == "event":
            run = target.id.rpartition("#")[0]
            done.removed["events"] += eraser.remove_events(run, _VERB, only=[target.id])
            continue
        if target.kind == "episode":
            done.removed["events"] += eraser.remove_events(target.id, _VERB)
            eraser.forget_run(target.id)
        if target.kind == "lesson":
            for (verdict,) in eraser.select_fields(Verdict, ("id",), equals("lesson", target.id)):
                remove("verdict", verdict)
            eraser.forget_tally(target.id)
        remove(target.kind, target.id)
    gone = done.gone
    for name, cited in eraser.select_fields(Lesson, ("id", "evidence")):
        # The rows are searched as text first: decoding every lesson of a large bank takes seconds.
        is_citing = any(json.dumps(each, ensure_ascii=False) in cited for each in gone)
        lesson = eraser.get(Lesson, name) if is_citing else None
        if lesson is None:
            continue
        episodes = tuple(run for run in lesson.evidence.episodes if run not in gone)
        events = tuple(
            event
            for event in lesson.evidence.events
            if event not in gone and event.rpartition("#")[0] not in gone
        )
        evidence = replace(lesson.evidence, episodes=episodes, events=events)
        if evidence != lesson.evidence:
            eraser.put(replace(lesson, evidence=evidence, updated=now), _VERB)
    done.removed += Counter()
    done.vectors_left = eraser.vector_count(places)


def _sample_texts(eraser: Eraser, targets: Sequence[ErasureTarget]) -> list[str]:
    """Return the first characters of some texts of the records that are about to be erased."""
    texts: list[str] = []
    for target in targets:
        if fields := _WITNESS_TEXTS.get(target.kind):
            record = eraser.get(record_type(target.kind), target.id)
            texts += [getattr(record, name) for name in fields] if record else ()
        if target.kind == "episode":
            rows = eraser.select_fields(Event, ("text", "output"), equals("run", target.id))
            texts += [text for row in rows for text in row]
    least, most = _WITNESS_CHARACTERS
    beginnings = dict.fromkeys(text.strip()[:most] for text in texts if len(text.strip()) >= least)
    step = max(1, len(beginnings) // _WITNESSES)
    return list(beginnings)[::step][:_WITNESSES]


def _check_rows(
    eraser: Eraser, query: ErasureQuery, done: _ErasureProgress, *, is_text: bool
) -> Iterator[ErasureLocation]:
    """Yield what is left in the rows of each kind that had something to erase or still has."""
    if is_text:
        left = {_label(kind): len(ids) for kind, ids in eraser.find_mentions(query).items()}
        left |= eraser.count_other_mentions(query)
        left[PAYLOADS] = left.pop("ledger_payloads", 0)
    else:
        left = {
            _label(kind_of(each)): sum(eraser.get(each, name) is not None for name in done.gone)
            for each in record_types()
        }
    labels = [_label(kind_of(each)) for each in record_types()]
    for name in dict.fromkeys([*labels, PAYLOADS, *done.removed, *left]):
        if name in (_VECTORS, _INDEX) or not (done.removed[name] or left.get(name, 0)):
            continue
        note = "sealed entries that name the record stay" if name == "ledger" else ""
        yield ErasureLocation(name, done.removed[name], left.get(name, 0), "rows searched", note)


def _load_needs(reader: Reader, keep_latest: int, before: datetime) -> RetentionNeeds:
    rows = reader.select_fields(Lesson, ("evidence",), one_of("status", _CITING))
    cited = [json.loads(row[0]) for row in rows]
    last = reader.select_fields(Episode, ("id",), equals("number", reader.run_count()))
    recent: dict[object, list[str]] = {}
    if keep_latest:
        runs = reader.select_fields(Episode, ("id", "project"), equals("action", None), order=("-finished",))
        for run, project in runs:
            if len(names := recent.setdefault(project, [])) < keep_latest:
                names.append(run)
        # Whoever captures old logs wants to keep them for a while.
        entries = reader.ledger(kind="episode", newest_first=True, with_payloads=False)
        lately = takewhile(lambda entry: entry.time >= before, (entry for entry, _ in entries))
        recent["", "captured"] = [entry.record for entry in lately if entry.verb == "capture"]
    return collect_needs(
        ((evidence.get("episodes", ()), evidence.get("events", ())) for evidence in cited),
        (queued.run for queued in reader.queued_runs()),
        last[0][0] if last else "",
        (run for names in recent.values() for run in names),
    )


def _find_old_artifacts(bank: Bank, reader: Reader) -> list[str]:
    """Return the artifacts that are old, and of which there is a later version or no file any more."""
    before = bank.now() - timedelta(days=bank.config.retention.artifacts_days)
    fields = ("id", "path")
    latest = {path: name for name, path in reader.select_fields(Artifact, fields, order=("created", "id"))}
    old = reader.select_fields(Artifact, fields, at_most("created", to_text(before)))
    return [name for name, path in old if latest[path] != name or not os.path.lexists(bank.root / path)]


def _delete_runs(
    eraser: Eraser,
    batch: Sequence[RunDeletion],
    families: Mapping[str, frozenset[str]],
    before: datetime,
    keep_latest: int,
) -> None:
    """Delete a batch of runs; each is decided again, since a lesson may have cited it in the meantime."""
    needs = _load_needs(eraser, keep_latest, before)
    for planned in batch:
        family = families.get(planned.run, frozenset((planned.run,)))
        dates = {run: times for run, *times in eraser.select_fields(Episode, _DATED, one_of("id", family))}
        if planned.run not in dates:
            continue
        ended, size = latest_end(dates.values()), (planned.events, planned.bytes)
        deletion = decide_retention(planned.run, ended, needs, before, uncited=size, kin=family)
        if not isinstance(deletion, RunDeletion):
            continue
        eraser.remove_events(deletion.run, "prune", excluded=deletion.cited)
        if deletion.is_whole:
            eraser.erase_payloads(eraser.payloads_of("episode", deletion.run))
            eraser.remove(Episode, deletion.run, "prune")
            eraser.forget_run(deletion.run)
    eraser.drop_orphan_speakers()
    if not keep_latest:
        eraser.set_setting(_SCRUB_DUE, "yes")
