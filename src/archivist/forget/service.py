"""Work on forgetting: erase with a receipt, prune what is old, warn of growth.

Erasing by id takes the record away: a lesson with its verdicts and counts, a run with its events, an event,
a brief, a verdict. With a run go its parts in other repositories and all runs below it. A lesson that cites
what went loses the citation and keeps the rest. Erasing a text keeps the records that hold it, whatever their
kind, with `[erased]` in its place; only a record whose id holds the text goes wholly. Either way the ledger's
payloads go, and its chain stays.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, reads, writes
from archivist.clock import from_text
from archivist.core.guard_service import guard_erasure
from archivist.errors import InputError, NotFoundError
from archivist.exchange.service import written_files
from archivist.forget.files_service import clean_files
from archivist.forget.receipt import ErasureLocation, Receipt, receipt_entry, remaining_tags, text_digest
from archivist.forget.retention import (
    PruneCandidate,
    RetentionNeeds,
    RetentionReason,
    RunDeletion,
    child_runs,
    collect_needs,
    decide_retention,
    descendant_runs,
    growth_warnings,
    session_families,
)
from archivist.ledger import service as lookup
from archivist.records import Episode, Event, Lesson, Status, Verdict, Working
from archivist.records.kinds import BY_NAME, kind_of, record_type, record_types, types_by_kind
from archivist.records.words import NOTES
from archivist.service import BankService
from archivist.store.erasure import ErasureQuery, erasure_query, redact_json, redact_value
from archivist.store.filters import equals, not_equals, one_of
from archivist.store.results import split_batches

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Eraser, Reader, Store
    from archivist.store.results import Sizes

_VERB = "erase"
_PAYLOADS, _INDEX, _VECTORS = "ledger payloads", "text index", "vectors"
# Set while rows are deleted whose bytes the file may still hold.
_DUE = "scrub_due"
_SHOWN = 80
# Of a record that goes, so many of its texts are looked for in the raw bytes afterwards, by their beginnings.
_WITNESSES = 16
_WITNESS_CHARACTERS = (12, 48)
_RUNS_AT_ONCE = 50
_DATED = ("id", "finished", "started")
_CITING = (Status.CANDIDATE, Status.ACTIVE, Status.QUARANTINED)
_LOGS_NOTE = "the logs that were captured are not ours: a longer version of one brings back what it holds"


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """A record that an erasure touches; `is_whole` when all of it goes."""

    kind: str
    id: str
    name: str
    words: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What pruning took, or would take, and why the rest stays. `freed` is about how many bytes."""

    days: int
    runs: int
    trimmed: int
    events: int
    freed: int
    kept: Mapping[str, int]
    is_dry_run: bool
    is_given_back: bool = True


@dataclass(slots=True)
class _ErasureProgress:
    """What an erasure has done so far, by place."""

    removed: Counter[str] = field(default_factory=Counter)
    vectors_left: int = 0
    gone: set[str] = field(default_factory=set)
    traces: ErasureQuery | None = None


def find_erasure_targets(
    bank: Bank, store: Store, names: Sequence[str], matching: str
) -> list[ErasureTarget]:
    """Return what erasing would touch."""
    _check_request(names, matching)
    with store.erasing(bank.actor, bank.now()) as eraser:
        if not matching:
            return _resolve_targets(eraser, names)
        what = erasure_query(matching)
        found = eraser.find_mentions(what)
        return [
            _build_target(eraser.get(record, name), what)
            for record in record_types()
            for name in found[kind_of(record)]
        ]


def erase(bank: Bank, store: Store, names: Sequence[str], matching: str) -> Receipt:
    """Erase records by their ids, or a text everywhere, and return the receipt.

    First the rows, in one transaction; then the files that this bank wrote; then the database's free pages
    and log; then every place is looked at again, and the receipt is entered in the ledger.
    """
    _check_request(names, matching)
    guard_erasure(bank, names, matching)
    now = bank.now()
    done, notes, asked = _ErasureProgress(), [_LOGS_NOTE], tuple(names)
    salt = secrets.token_hex(16) if matching else ""
    digest = text_digest(salt, matching) if matching else ""
    receipt = Receipt(id=bank.new_id(now), time=now, digest=digest, salt=salt)
    with store.erasing(bank.actor, now) as eraser:
        noted = written_files(eraser)
        if matching:
            what = erasure_query(matching)
            done.traces = _signature_terms(matching)
            _erase_text(eraser, what, done, bank)
        else:
            targets = _resolve_targets(eraser, names)
            witnesses = _sample_texts(eraser, targets)
            _erase_records(eraser, targets, done, bank)
            said = eraser.texts_still_stored(witnesses)
            what = erasure_query(*(text for text in witnesses if text not in said))
            asked = tuple(dict.fromkeys([*asked, *(each.id for each in targets)]))
            if said:
                notes.append("some of its words stand in other records too: archivist erase --matching TEXT")
        if done.removed:
            eraser.drop_orphan_speakers()
            eraser.set_setting(_DUE, "yes")
            receipt = replace(receipt, asked=asked, notes=tuple(notes))
            # Entered already here, for the case that the rest is interrupted.
            eraser.record_receipt(receipt.id, receipt_entry(receipt, what))
        is_due = bool(eraser.setting(_DUE))
    places = []
    if matching or done.gone:
        places = clean_files(bank, noted, what, traces=done.traces, erased_ids=frozenset(done.gone))
    is_scrubbed = True
    if is_due or any(store.count_raw_bytes(what.needles).values()):
        is_scrubbed = store.scrub()
    return _verify_erasure(bank, store, replace(receipt, places=tuple(places)), what, done, is_scrubbed)


def prune(bank: Bank, store: Store, days: int | None, *, is_dry_run: bool) -> PruneResult:
    """Let runs go that are older than so many days, except what lessons cite and what waits."""
    days = bank.config.retention.episodes_days if days is None else days
    if days < 1:
        raise InputError(f"{days} days is no age", hint="--days 30 keeps a month")
    before = bank.now() - timedelta(days=days)
    with bank.reading() as reader:
        needs = _load_needed(reader)
        sizes = store.run_sizes(event for events in needs.events.values() for event in events)
        kin = session_families(_load_children(reader))
        rows = {row[0]: row for row in reader.select_fields(Episode, _DATED)}
        found = [
            decide_retention(_prunable_run(name, rows, kin, sizes.get(name, (0, 0))), needs, before)
            for name in rows
        ]
        total = store.sizes()
    going = [each for each in found if isinstance(each, RunDeletion)]
    pruned = PruneResult(
        days=days,
        runs=sum(each.is_whole for each in going),
        trimmed=sum(not each.is_whole for each in going),
        events=sum(each.events for each in going),
        freed=total.estimate_freed(sum(each.bytes for each in going)),
        kept=Counter(each.value for each in found if isinstance(each, RetentionReason)),
        is_dry_run=is_dry_run,
    )
    if is_dry_run:
        return pruned
    for batch in split_batches(going, _RUNS_AT_ONCE):
        with store.erasing(bank.actor, bank.now()) as eraser:
            _remove_runs(eraser, batch, kin, before)
    return replace(pruned, is_given_back=_scrub_if_due(bank, store))


def check_growth(bank: Bank) -> list[str]:
    """Say when the bank has grown large and what helps, and when an erasure is unfinished."""
    rules = bank.config.retention
    with bank.reading() as reader:
        is_due = bool(reader.setting(_DUE))
    warnings = ["erased bytes wait for other processes to let go: archivist prune --yes"] if is_due else []
    sizes = bank.erasure.sizes()
    if not growth_warnings(sizes, 0, warn_at_mb=rules.warn_at_mb, days=rules.episodes_days):
        return warnings
    share = bank.erasure.prune().freed / max(1, sizes.total - sizes.free)
    prunable = int(share * sum(sizes.kinds.values()))
    return warnings + growth_warnings(sizes, prunable, warn_at_mb=rules.warn_at_mb, days=rules.episodes_days)


def _check_request(names: Sequence[str], matching: str) -> None:
    if bool(names) == bool(matching):
        raise InputError("name records or a text to erase, one of the two")


def _resolve_targets(eraser: Eraser, names: Sequence[str]) -> list[ErasureTarget]:
    """Return the records by these names; one that was erased before is nothing to erase any more."""
    found: dict[tuple[str, str], ErasureTarget] = {}
    known = _load_children(eraser)
    for name in names:
        record = lookup.find_by_name(eraser, name)
        runs = [eraser.get(Episode, each) for each in descendant_runs(record.id if record else name, known)]
        together = [each for each in (record, *runs) if each is not None]
        found |= {(kind_of(type(each)), each.id): _build_target(each, None) for each in together}
        if not together and not eraser.was_erased(name):
            raise NotFoundError("record", name)
    return list(found.values())


def _load_children(reader: Reader) -> dict[str, list[str]]:
    return child_runs(reader.select_fields(Episode, ("id", "parent"), not_equals("parent", "")))


def _build_target(record: Any, what: ErasureQuery | None) -> ErasureTarget:
    after = redact_value(record, what) if what else record
    match after:
        case Lesson():
            name, words = after.short_id, after.summary
        case Episode():
            name, words = after.id, after.summary or after.task
        case Event():
            name, words = after.id, after.text or after.output
        case Working():
            name, words = after.id, "private to its agent"
        case _:
            name, words = after.id, _first_text(after)
    words = " ".join(words.split())
    words = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    return ErasureTarget(kind_of(type(record)), record.id, name, words, what is None or after.id != record.id)


def _first_text(record: Any) -> str:
    """Return what a record of any other kind says first."""
    fields = ("value", "description", "action", "text", "after", "plan")
    return next((text for name in fields if (text := getattr(record, name, ""))), "")


def _erase_text(eraser: Eraser, what: ErasureQuery, done: _ErasureProgress, bank: Bank) -> None:
    now = bank.now()
    found = eraser.find_mentions(what)
    places = [place for kind, ids in found.items() for place in eraser.index_places(kind, ids)]
    done.removed[_INDEX], done.removed[_VECTORS] = len(places), eraser.vector_count(places)
    eraser.drop_vectors(places)
    done.removed[_PAYLOADS] += eraser.erase_payloads(eraser.payloads_mentioning(what))
    for run in [run for run in found["episode"] if what.is_in(run)]:
        done.removed["events"] += eraser.remove_events(run, _VERB)
    for run, events in _group_by_run(eraser, found["event"]).items():
        done.removed["events"] += _redact_events(eraser, run, events, what)
    for record in types_by_kind().values():
        for name in found[kind_of(record)]:
            before: Any = eraser.get(record, name)
            after = redact_value(before, what)
            done.removed[_kind_label(kind_of(record))] += 1
            if after.id != before.id:
                eraser.remove(record, name, _VERB)
            elif isinstance(after, Lesson):
                # Its words count as new, so that another clone's older version does not win over them.
                said = f"{after.summary} {after.rule} {after.detail}"
                tags = tuple(remaining_tags(after.tags, said, what))
                eraser.put(replace(after, tags=tags, updated=now, edited=now), _VERB)
            else:
                eraser.put(after, _VERB)
    _erase_signatures(eraser, done.traces, done)
    done.removed.update(eraser.erase_other_mentions(what))
    done.removed += Counter()
    done.vectors_left = eraser.vector_count(places)


def _signature_terms(text: str) -> ErasureQuery | None:
    """Return what the signature of a failure makes of the text: some of its words in a row.

    A single word says too little of where it came from to be erased.
    """
    from archivist.reading.signatures import message_words

    said = message_words(text)
    return erasure_query("-".join(said)) if len(said) > 1 else None


def _erase_signatures(eraser: Eraser, traces: ErasureQuery | None, done: _ErasureProgress) -> None:
    """Take the text's words out of the signatures of lessons and of what reflection noted of runs."""
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
    saying = set(eraser.payloads_mentioning(traces)) if records else set()
    for record in records:
        kind = kind_of(type(record))
        entries = saying.intersection(eraser.payloads_of(kind, record.id))
        done.removed[_PAYLOADS] += eraser.erase_payloads(sorted(entries))
        done.removed[f"signatures of {_kind_label(kind)}"] += eraser.put(record, _VERB)


def _group_by_run(eraser: Eraser, ids: Sequence[str]) -> dict[str, list[Event]]:
    runs: dict[str, list[Event]] = {}
    for name in ids:
        event = eraser.get(Event, name)
        # Those of a run that went wholly are gone already.
        if event is not None:
            runs.setdefault(event.run, []).append(event)
    return runs


def _redact_events(eraser: Eraser, run: str, events: list[Event], what: ErasureQuery) -> int:
    if what.is_in(run):
        return eraser.remove_events(run, _VERB)
    return eraser.put_events(run, [redact_value(event, what) for event in events], _VERB)


def _erase_records(
    eraser: Eraser, targets: Sequence[ErasureTarget], done: _ErasureProgress, bank: Bank
) -> None:
    places: list[int] = []
    for target in targets:
        ids = {target.kind: [target.id]}
        if target.kind == "episode":
            ids["event"] = [row[0] for row in eraser.select_fields(Event, ("id",), equals("run", target.id))]
        places += [place for kind, names in ids.items() for place in eraser.index_places(kind, names)]
    done.removed[_INDEX], done.removed[_VECTORS] = len(places), eraser.vector_count(places)
    for target in targets:
        done.gone |= {target.id, target.name}
        if target.kind == "event":
            done.removed["events"] += eraser.remove_events(
                target.id.rpartition("#")[0], _VERB, only=[target.id]
            )
            continue
        if target.kind == "episode":
            done.removed["events"] += eraser.remove_events(target.id, _VERB)
            eraser.forget_run(target.id)
        if target.kind == "lesson":
            for (verdict,) in eraser.select_fields(Verdict, ("id",), equals("lesson", target.id)):
                _remove(eraser, Verdict, verdict, done)
            eraser.forget_tally(target.id)
        _remove(eraser, record_type(target.kind), target.id, done)
    _remove_citations(eraser, done.gone, bank)
    done.removed += Counter()
    done.vectors_left = eraser.vector_count(places)


def _remove(eraser: Eraser, record: type[Any], name: str, done: _ErasureProgress) -> None:
    kind = kind_of(record)
    done.removed[_PAYLOADS] += eraser.erase_payloads(eraser.payloads_of(kind, name))
    done.removed[_kind_label(kind)] += eraser.remove(record, name, _VERB)


def _kind_label(kind: str) -> str:
    return BY_NAME[kind].plural


def _remove_citations(eraser: Eraser, gone: set[str], bank: Bank) -> None:
    """Take what went out of the evidence of the lessons that stay."""
    for name, cited in eraser.select_fields(Lesson, ("id", "evidence")):
        if not any(json.dumps(each, ensure_ascii=False) in cited for each in gone):
            continue
        lesson = eraser.get(Lesson, name)
        if lesson is None:
            continue
        evidence = replace(
            lesson.evidence,
            episodes=tuple(each for each in lesson.evidence.episodes if each not in gone),
            events=tuple(
                each
                for each in lesson.evidence.events
                if each not in gone and each.rpartition("#")[0] not in gone
            ),
        )
        if evidence != lesson.evidence:
            eraser.put(replace(lesson, evidence=evidence, updated=bank.now()), _VERB)


def _sample_texts(eraser: Eraser, targets: Sequence[ErasureTarget]) -> list[str]:
    """Return beginnings of what the records say that are about to go."""
    texts: list[str] = []
    for target in targets:
        match target.kind:
            case "lesson":
                lesson = eraser.get(Lesson, target.id)
                texts += (lesson.summary, lesson.rule, lesson.detail) if lesson else ()
            case "episode":
                episode = eraser.get(Episode, target.id)
                texts += (episode.summary, episode.task) if episode else ()
                rows = eraser.select_fields(Event, ("text", "output"), equals("run", target.id))
                texts += [text for row in rows for text in row]
            case "event":
                event = eraser.get(Event, target.id)
                texts += (event.text, event.output) if event else ()
    least, most = _WITNESS_CHARACTERS
    long = dict.fromkeys(text.strip()[:most] for text in texts if len(text.strip()) >= least)
    step = max(1, len(long) // _WITNESSES)
    return list(long)[::step][:_WITNESSES]


def _verify_erasure(
    bank: Bank, store: Store, receipt: Receipt, what: ErasureQuery, done: _ErasureProgress, is_scrubbed: bool
) -> Receipt:
    """Look at every place of the bank again, and enter the finished receipt in the ledger."""
    raw = store.count_raw_bytes(what.needles)
    with store.erasing(bank.actor, bank.now()) as eraser:
        places = [
            *_check_rows(eraser, what, done, is_text=bool(receipt.digest)),
            ErasureLocation(_VECTORS, done.removed[_VECTORS], done.vectors_left, "rows counted"),
            ErasureLocation(
                _INDEX, done.removed[_INDEX], eraser.count_tombstones(), "deleted entries in its segments"
            ),
            *(_check_raw_bytes(name, count, what, is_scrubbed) for name, count in raw.items()),
        ]
        receipt = replace(receipt, places=(*places, *receipt.places))
        if is_scrubbed:
            eraser.set_setting(_DUE, "")
        if receipt.removed_count:
            eraser.record_receipt(receipt.id, receipt_entry(receipt, what))
    return receipt


def _check_rows(
    eraser: Eraser, what: ErasureQuery, done: _ErasureProgress, *, is_text: bool
) -> Iterable[ErasureLocation]:
    if is_text:
        left = {_kind_label(kind): len(ids) for kind, ids in eraser.find_mentions(what).items()}
        left |= eraser.count_other_mentions(what)
        left[_PAYLOADS] = left.pop("ledger_payloads", 0)
    else:
        left = {
            _kind_label(kind_of(each)): sum(eraser.get(each, name) is not None for name in done.gone)
            for each in record_types()
        }
    own = {_VECTORS, _INDEX}
    for name in dict.fromkeys(
        [*(_kind_label(kind_of(each)) for each in record_types()), _PAYLOADS, *done.removed, *left]
    ):
        if name in own or not (done.removed[name] or left.get(name, 0)):
            continue
        note = "its entries name it and are sealed: they stay" if name == "ledger" else ""
        yield ErasureLocation(name, done.removed[name], left.get(name, 0), "rows searched", note)


def _check_raw_bytes(name: str, count: int, what: ErasureQuery, is_scrubbed: bool) -> ErasureLocation:
    if not what.needles:
        return ErasureLocation(
            name, 0, 0 if is_scrubbed else None, "it says nothing that could be looked for"
        )
    if is_scrubbed:
        return ErasureLocation(name, 0, count, "raw bytes")
    return ErasureLocation(
        name, 0, count or None, "raw bytes", "another process uses the bank: end it, erase again"
    )


def _load_needed(reader: Reader) -> RetentionNeeds:
    cited = [
        json.loads(row[0]) for row in reader.select_fields(Lesson, ("evidence",), one_of("status", _CITING))
    ]
    last = reader.select_fields(Episode, ("id",), equals("number", reader.run_count()))
    return collect_needs(
        ((each.get("episodes", ()), each.get("events", ())) for each in cited),
        (each.run for each in reader.queued_runs()),
        last[0][0] if last else "",
    )


def _prunable_run(
    name: str,
    rows: Mapping[str, tuple[Any, ...]],
    kin_of: Mapping[str, frozenset[str]],
    size: tuple[int, int],
) -> PruneCandidate:
    """Return a run with what decides whether it goes; it is as young as the youngest of its session."""
    kin = kin_of.get(name, frozenset((name,)))
    dates = [[date for each in kin if each in rows and (date := rows[each][place])] for place in (1, 2)]
    finished, started = (from_text(max(each)) if each else None for each in dates)
    return PruneCandidate(
        id=name, finished=finished, started=started, uncited=size[0], uncited_bytes=size[1], kin=kin
    )


def _remove_runs(
    eraser: Eraser, batch: Sequence[RunDeletion], kin: Mapping[str, frozenset[str]], before: Any
) -> None:
    """Remove a batch of runs, each looked at again: a lesson may have come to cite it meanwhile."""
    needs = _load_needed(eraser)
    for each in batch:
        session = kin.get(each.run, frozenset((each.run,)))
        rows = {row[0]: row for row in eraser.select_fields(Episode, _DATED, one_of("id", session))}
        if each.run not in rows:
            continue
        going = decide_retention(_prunable_run(each.run, rows, kin, (each.events, each.bytes)), needs, before)
        if not isinstance(going, RunDeletion):
            continue
        eraser.remove_events(going.run, "prune", excluded=going.cited)
        if going.is_whole:
            eraser.erase_payloads(eraser.payloads_of("episode", going.run))
            eraser.remove(Episode, going.run, "prune")
            eraser.forget_run(going.run)
    eraser.drop_orphan_speakers()
    eraser.set_setting(_DUE, "yes")


def _scrub_if_due(bank: Bank, store: Store) -> bool:
    with bank.reading() as reader:
        if not reader.setting(_DUE):
            return True
    is_scrubbed = store.scrub()
    if is_scrubbed:
        with bank.transaction() as writer:
            writer.set_setting(_DUE, "")
    return is_scrubbed


class Erasure(BankService):
    """Erasing with a receipt, and retention."""

    @writes(Layer.BANK)
    def find_erasure_targets(self, names: Sequence[str] = (), *, matching: str = "") -> list[ErasureTarget]:
        """Return what erasing would touch: records by their ids, or all that hold a text."""
        return find_erasure_targets(self._bank, self._bank.store, names, matching)

    @writes(Layer.BANK)
    def erase(self, names: Sequence[str] = (), *, matching: str = "") -> Receipt:
        """Erase records, or a text everywhere, down to the raw bytes; the receipt says what was checked."""
        return erase(self._bank, self._bank.store, names, matching)

    @writes(Layer.BANK)
    def prune(self, *, days: int | None = None, is_dry_run: bool = True) -> PruneResult:
        """Let runs go that are older than so many days, except what lessons cite and what waits."""
        return prune(self._bank, self._bank.store, days, is_dry_run=is_dry_run)

    @reads(Layer.BANK)
    def sizes(self) -> Sizes:
        """Return how large the bank is, and what makes it so."""
        return self._bank.store.sizes()
