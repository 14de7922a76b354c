"""The stream: log entries, number cycles, search, archive old cycles, import and export lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.access.rights import Layer, Verb, decides, reads, writes
from archivist.access.roles import is_reserved_role
from archivist.capture.redaction import validate_name
from archivist.clock import to_text
from archivist.errors import InputError, NotFoundError, RecordError, StateError
from archivist.files.jsonl import LineProblem
from archivist.projects import other_projects
from archivist.recall.query import Query
from archivist.records import ActorKind, Entry, EntryType, Episode
from archivist.records.layers import FILE_SOURCE
from archivist.records.plain import canonical_json, from_plain
from archivist.records.run_words import ROLE
from archivist.records.tiers import validate_entry
from archivist.records.words import BROUGHT_BY, NOTES, SAID_BY
from archivist.service import BankService
from archivist.store.filters import Filter, at_least, at_most, equals, one_of
from archivist.stream.entries import (
    ACTION_CHARACTERS,
    CONTENT_CHARACTERS,
    MAX_CYCLE,
    Marker,
    QuestionFilters,
    clean_entry,
    current_sprint,
    find_references,
    last_seq,
    latest_cycle,
    marker_of,
    parse_question,
    set_marker,
    validate_cycle_range,
    validate_importance,
)
from archivist.stream.insight_text import labels_of
from archivist.stream.obstacles import words_of
from archivist.stream.ordering import explain_order
from archivist.stream.sessions import SESSION, describe_session, session_importance
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from archivist.recall.results import Hit
    from archivist.store.protocol import Reader, Writer
    from archivist.stream.insights_service import Insights
    from archivist.stream.measure import MemoryMeasure

LATEST = ("-seq",)
BY_CYCLE = ("cycle", "seq")
# A setting of the bank: the cycle that each role has begun.
_BEGUN = "stream_cycles"
# Id, cycle, time and role say who logged what when, and stay.
_EDITABLE = ("action", "content", "importance", "type", "tags", "issues", "prs")
_MOST_HITS = 200
# An entry can be about more than one issue; each costs a search.
_MOST_LABELS = 2
# A larger step is a typing error: it would archive everything, and later cycles would count from there.
_MOST_SKIPPED = 1_000
# An agent must not end the counting for all: an empty stream begins at this cycle at most.
_AGENTS_FIRST = 1_000_000
# Relevance is compared among this many hits before recency and importance order them.
_LOOKED_AT = 40
# Shares of the best relevance: from 0.8 on an answer is as good as the best, below 0.6 it is none. Without
# them the first hit of 100 questions was right for 83 instead of 99 (bench/tiers.py); with 0.5 instead of 0.6
# a quarter of the results was beside the point on the sessions of three projects (`archivist core measure`).
_FITS_ALIKE = 0.8
_FITS_AT_ALL = 0.6


class StreamHit(NamedTuple):
    """An entry that answers a question, and why."""

    hit: Hit
    entry: Entry


class StreamImportResult(NamedTuple):
    """What an import did; `left` counts lines about known entries that say something else than these."""

    added: int
    changed: int
    unchanged: int
    problems: tuple[LineProblem, ...] = ()
    left: int = 0


class Stream(BankService):
    """What agents logged, cycle by cycle; the last cycles are hot, older ones archived."""

    @writes(Layer.STREAM)
    def log(
        self,
        action: str,
        *,
        cycle: int | None = None,
        role: str = "",
        importance: int = 5,
        type: EntryType | str = EntryType.ACTION,  # noqa: A002
        content: str = "",
        tags: Sequence[str] = (),
        issues: Sequence[int] = (),
        prs: Sequence[int] = (),
        run: str = "",
        time: datetime | None = None,
        id: str = "",  # noqa: A002
        reflect: bool = False,
    ) -> Entry:
        """Log an entry, by default in the cycle that the role has begun, else in the stream's latest.

        A cycle below the role's last one is refused, and one far above all others. An agent goes up by at
        most a tenth of the hot cycles, in another role's name by one. A known id returns its entry.
        """
        bank = self._bank
        moment = time or bank.now()
        draft = _build_entry(
            id=id or bank.new_id(moment),
            cycle=0 if cycle is None else cycle,
            time=moment if moment.tzinfo else moment.replace(tzinfo=UTC),
            role=self._resolve_role(role),
            action=action,
            importance=importance,
            type=str(type),
            content=content,
            tags=tags,
            issues=issues,
            prs=prs,
            run=run,
        )
        with bank.transaction() as writer:
            known = writer.get(Entry, id) if id else None
            if known is not None:
                same = (draft.action, draft.content, draft.role)
                if (known.action, known.content, known.role) != same:
                    message = f"id: {known.id!r} is another entry's"
                    raise StateError(message, hint="leave the id out to get a new one")
                return known
            step = None
            if bank.actor.kind is ActorKind.AGENT:
                # One request must not archive what the others read.
                step = max(1, bank.config.stream.hot_cycles // 10) if draft.role == bank.actor.role else 1
                # A role is anybody's to name: readers are told that an agent speaks.
                draft = replace(draft, extra={**draft.extra, SAID_BY: [str(bank.actor)]})
            entry = _assign_cycle(writer, draft, step, is_explicit=cycle is not None)
            writer.put(entry, "log")
            _note_first_cycle(writer, entry.cycle)
            _move_entries(writer, bank.config.stream.hot_cycles, to_archive=True)
        self._bank.vectors.embed_backlog()
        if reflect:
            self.reflect(if_due=True)
        return entry

    @writes(Layer.STREAM)
    def begin_cycle(self, role: str = "") -> int:
        """Begin the next cycle and return its number: one above every cycle that was begun or logged.

        What the role logs from now on belongs to it, unless the call names another.
        """
        role, actor = self._resolve_role(role), self._bank.actor
        if actor.kind is ActorKind.AGENT and role != actor.role:
            hint = "an agent begins the cycles of its own role: --actor agent:NAME:ROLE"
            self._bank.refuse(Layer.STREAM, Verb.WRITE, what=role, hint=hint)
        with self._bank.transaction() as writer:
            begun = _started_cycles(writer)
            number = max(latest_cycle(writer) or 0, *begun.values(), 0) + 1
            if number > MAX_CYCLE:
                hint = "archivist stream remove removes an entry with a wrong number"
                raise StateError(f"cycle: {MAX_CYCLE} is the highest possible", hint=hint)
            writer.set_setting(_BEGUN, canonical_json({**begun, role: number}))
        return number

    @writes(Layer.STREAM)
    def log_session(self, run: str, *, role: str = "") -> Entry | None:
        """Log a session that has ended as the next cycle, in the role that it began with, else the given one.

        None for a session that is logged already, by itself or by what its agents logged while it lasted.
        """
        bank = self._bank
        with bank.transaction() as writer:
            episode = writer.get(Episode, run)
            if episode is None or episode.started is None or episode.parent:
                return None
            end = episode.finished or bank.now()
            # What another session that lasted at the same time logged names its run.
            during = at_least("time", to_text(episode.started)), at_most("time", to_text(end))
            if writer.count("entry", equals("run", run)) or writer.count("entry", *during, equals("run", "")):
                return None
            role = str(episode.extra.get(ROLE) or role)
            notes = episode.extra.get(NOTES)
            action, content = describe_session(episode, notes if isinstance(notes, dict) else {})
            number = self.begin_cycle(role)
            return self.log(
                action, cycle=number, role=role, importance=session_importance(episode), content=content,
                tags=(SESSION, *episode.tags), run=run, time=end, type=EntryType.ACTION,
            )  # fmt: skip

    @reads(Layer.STREAM)
    def get(self, name: str) -> Entry:
        """Return an entry by its id."""
        with self._bank.reading() as reader:
            return _require_entry(reader, name)

    @reads(Layer.STREAM)
    def recent(
        self, limit: int = 20, *, role: str = "", after: Sequence[object] | None = None
    ) -> list[Entry]:
        """Return the latest entries, latest first; `after` continues behind a place in that order."""
        conditions = [equals("role", role)] if role else []
        with self._bank.reading() as reader:
            conditions += self._own_entries(reader)
            return reader.select(Entry, *conditions, order=LATEST, after=after, limit=limit)

    @reads(Layer.STREAM)
    def by_cycle(
        self,
        start: int,
        end: int,
        *,
        role: str = "",
        min_importance: int = 1,
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """Return the entries of some cycles in order, hot or archived."""
        validate_cycle_range(start, end)
        least = at_least("importance", validate_importance(min_importance))
        conditions = [at_least("cycle", start), at_most("cycle", end), least]
        conditions += [equals("role", role)] if role else []
        with self._bank.reading() as reader:
            conditions += self._own_entries(reader)
            return reader.select(Entry, *conditions, order=BY_CYCLE, after=after, limit=limit)

    def _own_entries(self, reader: Reader) -> list[Filter]:
        """Return the condition for what was logged of no run of another repository than the caller's."""
        others = other_projects(reader, self._bank.folder, self._bank.root)
        if not others:
            return []
        named = reader.values("entry", "run")
        runs = reader.records("episode", named)
        own = (run for run in named if run not in runs or runs[run].project not in others)
        return [one_of("run", ["", *own])]

    @reads(Layer.STREAM)
    def search(
        self,
        query: str,
        *,
        role: str = "",
        issue: int | None = None,
        min_importance: int | None = None,
        limit: int = 5,
        cycles: tuple[int | None, int | None] | None = None,
        tier: str = "",
    ) -> list[StreamHit]:
        """Return the entries that answer a question, by recency, importance and relevance, best first.

        The tier `stream` has the hot entries alone, `archive` the others. A question that names an issue or a
        pull request is answered by entries that refer to it alone, the latest first where it asks how that
        stands; one that names cycles only by entries of these cycles. Reflections come last, unless the
        question asks for them.
        """
        if not query.strip():
            raise InputError("query: missing or empty", hint="archivist stream list shows the latest entries")
        if not 1 <= limit <= _MOST_HITS:
            raise InputError(f"limit: {limit} is not between 1 and {_MOST_HITS}")
        if tier not in ("stream", "archive", ""):
            raise InputError(f"tier {tier!r} is not one of stream, archive", hint="none asks for both")
        least = 0.0 if min_importance is None else validate_importance(min_importance) / 10
        asked = Query(
            text=query, kinds=("entry",), role=role, issue=issue, min_importance=least, limit=limit,
            preset="generative", tier=tier,
        )  # fmt: skip
        named = parse_question(query)
        if cycles is not None:
            within = _within_cycles(asked, validate_cycle_range(*cycles))
            return explain_order(self._search_entries(within, with_reflections=named.is_of_reflections))
        # A named issue is a filter, and asks for everything that refers to it, hot or archived.
        numbers = () if issue is not None else (*named.issues, *named.prs)
        narrowed = [asked]
        if numbers:
            reach = asked._replace(tier="" if tier == "stream" else tier)
            narrowed = [reach._replace(issue=number) for number in numbers]
        if len(numbers) > 1:
            each = [self._search_entries(attempt, is_latest_first=True) for attempt in narrowed]
            merged = {hit.entry.id: hit for hits in each for hit in hits}
            return sorted(merged.values(), key=lambda hit: -hit.entry.seq)[:limit]
        who = "" if role else self._named_role(named.who)
        narrowed = [attempt._replace(role=who) for attempt in narrowed if who] + narrowed
        found = self._search_named(narrowed, named, is_narrow=bool(numbers))
        is_open = named.cycles is not None and None in named.cycles
        if numbers or (named.is_certain and not is_open):
            return explain_order(found)
        # What it is about may be named by entries of other roles and cycles alone.
        about = self._search_entries(asked) if who or is_open else found
        within = _within_cycles(asked, named.cycles) if named.cycles and is_open else asked
        whose = within._replace(role=role or who)
        return explain_order(self._with_thread(found, about, whose, is_of_state=named.is_of_state))

    def _named_role(self, word: str) -> str:
        if not word:
            return ""
        with self._bank.reading() as reader:
            return next(
                (role for role in reader.known_speakers([word]) if role.casefold() == word.casefold()), ""
            )

    def _search_named(
        self, narrowed: Sequence[Query], named: QuestionFilters, *, is_narrow: bool
    ) -> list[StreamHit]:
        """Return what the first of some queries finds, by the cycles that a question names, else by all."""
        types = [attempt._replace(type=named.type) for attempt in narrowed]
        tries = dict.fromkeys(query for pair in zip(types, narrowed, strict=True) for query in pair)
        found: list[StreamHit] = []
        if named.cycles is not None:
            for attempt in tries:
                found = found or self._search_named_cycles(attempt, named.cycles)
        if not named.is_certain:
            for attempt in tries:
                found = found or self._search_entries(
                    attempt,
                    with_reflections=named.is_of_reflections,
                    is_latest_first=is_narrow and named.is_of_state,
                    is_of_state=named.is_of_state,
                )
        return found

    def _with_thread(
        self, found: list[StreamHit], about: list[StreamHit], asked: Query, *, is_of_state: bool
    ) -> list[StreamHit]:
        """Return hits with the rest of what the best one is about: the answer may be worded otherwise.

        Whoever asks how something stands gets its latest entry first.
        """
        if not about:
            return found
        best = about[0].entry
        shared = Counter(label for hit in about for label in labels_of(hit.entry))
        labels = sorted(labels_of(best), key=lambda label: -shared[label])[:_MOST_LABELS]
        labels = [f"#{asked.issue}"] if asked.issue is not None else labels
        thread: list[StreamHit] = []
        for label in labels:
            issues, prs = find_references(label)
            of_label = asked._replace(text=label, issue=next(iter(issues), None), pr=next(iter(prs), None))
            whole = self._search_entries(of_label._replace(limit=_MOST_HITS), is_latest_first=True)
            # A number is a filter of its own; a ticket's key stands in the text.
            thread += [hit for hit in whole if issues or prs or label in labels_of(hit.entry)]
        if not labels:
            title = words_of(best.action).keys()
            whole = self._search_entries(
                asked._replace(text=best.action, limit=_MOST_HITS), is_latest_first=True
            )
            thread = [hit for hit in whole if words_of(hit.entry.action).keys() == title]
        first = thread[:1] if is_of_state else []
        whole = list({hit.entry.id: hit for hit in (*first, *found, *thread)}.values())
        return sorted(whole, key=lambda hit: bool(asked.role) and hit.entry.role != asked.role)[: asked.limit]

    def _search_entries(
        self,
        asked: Query,
        *,
        with_reflections: bool = False,
        is_latest_first: bool = False,
        is_of_state: bool = False,
    ) -> list[StreamHit]:
        if asked.until_cycle is None:
            # Recency counts from the latest cycle, not from the clock.
            with self._bank.reading() as reader:
                asked = asked._replace(until_cycle=latest_cycle(reader))
        limit = asked.limit or _MOST_HITS
        looked_at = _MOST_HITS if is_latest_first else max(limit, _LOOKED_AT)
        hits, weights = self._bank.recall(asked._replace(limit=looked_at))[:2]
        with self._bank.reading() as reader:
            entries = reader.records("entry", [hit.id for hit in hits])
        found = [StreamHit(hit, entries[hit.id]) for hit in hits if hit.id in entries]
        reflections = [each for each in found if each.entry.type is EntryType.REFLECTION]
        if not with_reflections:
            # They repeat the words of the entries that they count, and would outrank each of them.
            found = [each for each in found if each.entry.type is not EntryType.REFLECTION]
        if is_latest_first:
            found.sort(key=lambda each: -each.entry.seq)
        # A configuration that weighs recency or importance above relevance gets just that order.
        elif weights.relevance >= max(weights.recency, weights.importance):
            best = max((each.hit.why.why.total for each in found), default=0.0)
            found = [each for each in found if each.hit.why.why.total >= _FITS_AT_ALL * best]
            if is_of_state:
                # Of those that answer nearly as well the latest says how it stands.
                found.sort(key=lambda each: -each.entry.seq)
            found.sort(key=lambda each: each.hit.why.why.total < _FITS_ALIKE * best)
            reflections = [each for each in reflections if each.hit.why.why.total >= _FITS_AT_ALL * best]
        return (found if with_reflections else [*found, *reflections])[:limit]

    def _search_named_cycles(self, asked: Query, cycles: tuple[int | None, int | None]) -> list[StreamHit]:
        """Return what happened in cycles that a question names; if it names a role, only that role's."""
        found = self._search_entries(_within_cycles(asked, cycles))
        first, last = cycles
        inside = self.by_cycle(
            0 if first is None else first,
            MAX_CYCLE if last is None else last,
            role=asked.role,
            min_importance=max(1, round(asked.min_importance * 10)),
        )
        for number in (number for number in (asked.issue, asked.pr) if number is not None):
            inside = [entry for entry in inside if number in (*entry.issues, *entry.prs)]
        # A cycle named by its number asks for all of it; an open range is narrowed by its words alone.
        if first is not None and last is not None:
            seen = {entry.id for _, entry in found}
            rest = (entry for entry in inside if entry.id not in seen)
            weight = self._bank.config.recall.generative_importance
            weightiest = sorted(rest, key=lambda entry: -entry.importance)
            found += [_hit_by_cycle(entry, weight) for entry in weightiest]
        if not asked.role:
            from archivist.recall.lexical import possible_names

            with self._bank.reading() as reader:
                roles = {role.casefold() for role in reader.known_speakers(possible_names(asked.text))}
            found = [hit for hit in found if not roles or hit.entry.role.casefold() in roles]
        return found[: asked.limit]

    @decides(Layer.STREAM)
    def edit(self, /, name: str, **changes: Any) -> Entry:
        """Change an entry's text, importance or references; its history keeps the earlier version."""
        unknown = [field for field in changes if field not in _EDITABLE]
        if unknown:
            raise RecordError(f"{unknown[0]}: cannot be edited", hint=f"one of {', '.join(_EDITABLE)}")
        with self._bank.transaction() as writer:
            entry = _require_entry(writer, name)
            values = {field: getattr(entry, field) for field in _EDITABLE} | changes
            fixed = {"id": entry.id, "cycle": entry.cycle, "time": entry.time, "role": entry.role}
            draft = _build_entry(**fixed, **values, run=entry.run)
            edited = replace(draft, seq=entry.seq, is_archived=entry.is_archived, extra=entry.extra)
            writer.put(edited, "edit")
        return edited

    @decides(Layer.STREAM)
    def remove(self, name: str) -> Entry:
        """Remove an entry from the stream; the ledger keeps it.

        Cycles are numbered by what is left, and entries that are among the last cycles again become hot.
        """
        with self._bank.transaction() as writer:
            entry = _require_entry(writer, name)
            writer.remove(Entry, entry.id, "remove")
            latest = latest_cycle(writer)
            begun = _started_cycles(writer)
            below = {role: number for role, number in begun.items() if number < entry.cycle}
            # A cycle far above all others was a mistake: cycles that were begun from it are forgotten too.
            if below != begun and entry.cycle > max([latest or 0, *below.values()]) + 1:
                writer.set_setting(_BEGUN, canonical_json(below))
            marker = marker_of(writer)
            if marker is not None and marker.cycle > (latest or 0):
                # Else no cycle would count towards the next reflection until that one is reached again.
                set_marker(writer, marker._replace(cycle=latest or 0))
            _move_entries(writer, self._bank.config.stream.hot_cycles, to_archive=False)
        return entry

    @reads(Layer.STREAM)
    def due_reason(self) -> str:
        """Return why a reflection is due, or an empty text."""
        from archivist.stream.insights_service import due_reason

        with self._bank.reading() as reader:
            return due_reason(self._bank, reader)

    @writes(Layer.STREAM)
    def reflect(
        self, trigger: str = "by hand", *, if_due: bool = False, with_model: bool = False
    ) -> Insights:
        """Reflect on what was logged since the last reflection; with `if_due` only if one is due.

        The trigger is the recorded reason; an empty one is like `if_due`. Whoever can wait lets the
        configured language model take part.
        """
        from archivist.stream.insights_service import reflect_stream

        return reflect_stream(self._bank, trigger="" if if_due else trigger.strip(), with_model=with_model)

    @reads(Layer.STREAM)
    def measure(self, questions: int = 60) -> MemoryMeasure:
        """Measure what memory costs in context, and how it answers questions made from this stream."""
        from archivist.stream.measure import MemoryMeasure, judge, make_questions

        with self._bank.reading() as reader:
            entries = reader.select(Entry, order=("seq",))
        roles = {"", *(block.role for block in self._bank.core.blocks())}
        tokens = max(estimate_tokens(self._bank.core_briefs.brief_text(role)) for role in roles)
        asked = make_questions(entries, questions)
        found = {each.text: [hit.entry for hit in self.search(each.text)] for each in asked}
        verdicts = {each.text: judge(each, found[each.text]) for each in asked}
        count, results = max(1, len(asked)), max(1, sum(map(len, found.values())))
        return MemoryMeasure(
            tokens=tokens,
            questions=len(asked),
            right=sum(each.is_right for each in verdicts.values()) / count,
            recalled=sum(each.is_recalled for each in verdicts.values()) / count,
            relevant=sum(each.fitting for each in verdicts.values()) / results,
            missed=tuple(text for text, each in verdicts.items() if not each.is_recalled),
        )

    @reads(Layer.STREAM)
    def lines(self) -> list[dict[str, object]]:
        """Return the whole stream as lines of `stream.jsonl`, in order."""
        from archivist.records.shapes import to_stream_line

        with self._bank.reading() as reader:
            return [to_stream_line(entry) for entry in reader.select(Entry, order=("seq",))]

    @reads(Layer.STREAM)
    def export(self, path: Path) -> int:
        """Write the stream as JSON lines, all or nothing, and return their number."""
        from archivist.files.jsonl import write_lines

        self._bank.erasure.finish_erasures()
        try:
            return self._bank.exchange.write_listed_files([path], lambda _: write_lines(path, self.lines()))
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from None

    @decides(Layer.STREAM)
    def import_lines(
        self, paths: Sequence[Path], *, is_strict: bool = False, is_approved: bool = False
    ) -> StreamImportResult:
        """Import files of JSON lines; importing twice changes nothing. See `import_entries`."""
        from archivist.files.jsonl import read_lines
        from archivist.lessons.file_words import FileWords
        from archivist.records.shapes import from_stream_line

        entries: list[Entry] = []
        problems: list[LineProblem] = []
        for line in (line for path in paths for line in read_lines(path)):
            if isinstance(line, LineProblem):
                problems.append(line)
                continue
            try:
                entry = from_stream_line(line.value)
                brought = {BROUGHT_BY: FileWords(line.file, is_approved).speaker}
                entries.append(clean_entry(replace(entry, extra={**entry.extra, **brought})))
            except RecordError as error:
                problems.append(LineProblem(line.file, line.number, error.message))
        if is_strict and problems:
            message = f"{len(problems)} bad lines, nothing was imported; the first: {problems[0]}"
            raise InputError(message, hint="without --strict the good lines are imported")
        return self.import_entries(entries, is_approved=is_approved)._replace(problems=tuple(problems))

    @decides(Layer.STREAM)
    def import_entries(self, entries: Iterable[Entry], *, is_approved: bool = False) -> StreamImportResult:
        """Import the entries of files; they are placed behind the last one.

        With `is_approved` a person vouches for them: they are taken as they are, whatever their cycles, and
        known ids are updated. Otherwise they are marked as the file's, and change no entry that is here.
        """
        from archivist.lessons.file_words import require_voucher

        if is_approved:
            require_voucher(self._bank, Layer.STREAM, "import")
        wanted = [clean_entry(entry) for entry in entries]
        counts = Counter[str]()
        with self._bank.transaction() as writer:
            if is_approved:
                wanted = [_without_file(entry) for entry in wanted]
            else:
                here: dict[str, Entry] = writer.records("entry", [entry.id for entry in wanted])
                for entry in (entry for entry in wanted if entry.id in here):
                    said = here[entry.id].action, here[entry.id].content
                    counts["unchanged" if said == (entry.action, entry.content) else "left"] += 1
                latest_own, now = _latest_own_cycle(writer), self._bank.now()
                wanted = [_entry_of_file(each, latest_own, now) for each in wanted if each.id not in here]
            cycles = [entry.cycle for entry in wanted]
            latest = max([latest_cycle(writer) or 0, *cycles])
            cold = latest - self._bank.config.stream.hot_cycles
            seq = last_seq(writer)
            for entry in wanted:
                known = writer.get(Entry, entry.id)
                place = known.seq if known else seq + 1
                is_cold = known.is_archived if known else entry.cycle <= cold
                is_new = writer.put(replace(entry, seq=place, is_archived=is_cold), "import")
                seq = max(seq, place)
                counts[("changed" if known else "added") if is_new else "unchanged"] += 1
            if cycles:
                _note_first_cycle(writer, min(cycles))
            _move_entries(writer, self._bank.config.stream.hot_cycles, to_archive=True)
        return StreamImportResult(
            counts["added"], counts["changed"], counts["unchanged"], left=counts["left"]
        )

    def _resolve_role(self, role: str) -> str:
        """Return the role to log as: the named one, else the actor's; agents log as their own role only."""
        actor = self._bank.actor
        role = validate_name("role", role) or actor.role
        if actor.kind is ActorKind.AGENT:
            is_reserved = is_reserved_role(role)
            if is_reserved or (actor.role and role != actor.role):
                own = f"this agent logs as {actor.role!r}"
                hint = "only people speak in that name" if is_reserved else own
                self._bank.refuse(Layer.STREAM, Verb.WRITE, what=role, hint=hint)
        return role


def _build_entry(**values: Any) -> Entry:
    """Return an entry without its place: validated, without secrets, with the references in its text."""
    tags = values["tags"]
    if isinstance(tags, list | tuple):
        values["tags"] = list(dict.fromkeys(t.strip() if isinstance(t, str) else t for t in tags if t != ""))
    entry = validate_entry(from_plain(Entry, {**values, "seq": 0}))
    for name, most in (("action", ACTION_CHARACTERS), ("content", CONTENT_CHARACTERS)):
        if len(getattr(entry, name)) > most:
            hint = "archivist archive add stores long texts; an entry is a summary"
            raise RecordError(f"{name}: {len(getattr(entry, name))} characters, at most {most}", hint=hint)
    for name in ("issues", "prs"):
        if any(number < 1 for number in getattr(entry, name)):
            raise RecordError(f"{name}: numbers from 1 on")
    return clean_entry(replace(entry, action=entry.action.strip(), tokens=0))


def _without_file(entry: Entry) -> Entry:
    """Return an entry for which a person vouches: it is not told as a file's."""
    return replace(entry, extra={name: value for name, value in entry.extra.items() if name != BROUGHT_BY})


def _entry_of_file(entry: Entry, latest_own: int | None, now: datetime) -> Entry:
    """Return an entry as a file may say it: marked, in nobody's name, neither later nor newer than the own.

    A cycle far above the others would archive all of them.
    """
    brought_by = entry.extra.get(BROUGHT_BY) or FILE_SOURCE
    return replace(
        entry,
        role="" if is_reserved_role(entry.role) else entry.role,
        cycle=entry.cycle if latest_own is None else min(entry.cycle, latest_own),
        time=min(entry.time, now),
        extra={**entry.extra, BROUGHT_BY: brought_by},
    )


def _latest_own_cycle(reader: Reader) -> int | None:
    """Return the latest cycle that was begun or logged here; None when there is none."""
    entries = reader.select(Entry, order=("-cycle",))
    logged = next((entry.cycle for entry in entries if not entry.extra.get(BROUGHT_BY)), None)
    return max([*_started_cycles(reader).values(), *(() if logged is None else (logged,))], default=None)


def _assign_cycle(writer: Writer, draft: Entry, agents_step: int | None, *, is_explicit: bool) -> Entry:
    """Return the entry with its cycle and place; the cycles of a role never go backwards."""
    own = writer.select_fields(Entry, ("cycle",), equals("role", draft.role), order=("-cycle",), limit=1)
    last: int = own[0][0] if own else 0
    cycle, latest, begun = draft.cycle, latest_cycle(writer), _started_cycles(writer)
    if not is_explicit:
        started = begun.get(draft.role)
        cycle = max(started, last) if started is not None else (1 if latest is None else latest)
    if cycle < last:
        whose = f"{draft.role!r} is" if draft.role else "the stream is"
        hint = "archivist stream cycle begins the next; archivist stream import --approve accepts old entries"
        raise StateError(f"cycle: {cycle} goes backwards, {whose} at {last}", hint=hint)
    highest = max([latest or 0, *begun.values()])
    step = _MOST_SKIPPED if agents_step is None else agents_step
    # An empty stream may begin anywhere.
    if not begun and latest is None:
        step = MAX_CYCLE if agents_step is None else _AGENTS_FIRST
    if cycle > highest + step:
        hint = f"at most {step} may be skipped; archivist stream import --approve accepts any cycle"
        raise StateError(f"cycle: {cycle} is {cycle - highest} above the latest, {highest}", hint=hint)
    return replace(draft, cycle=cycle, seq=last_seq(writer) + 1)


def _note_first_cycle(writer: Writer, cycle: int) -> None:
    """Note where the stream begins, so that the first reflection counts cycles from there."""
    if marker_of(writer) is None:
        set_marker(writer, Marker(0, max(0, cycle - 1), current_sprint(writer)))


def _move_entries(writer: Writer, hot_cycles: int, *, to_archive: bool) -> None:
    """Archive the entries that are no longer hot, or bring back those that are hot again."""
    latest = latest_cycle(writer)
    if latest is None:
        return
    cold = latest - hot_cycles
    which = at_most("cycle", cold) if to_archive else at_least("cycle", cold + 1)
    for entry in writer.select(Entry, equals("is_archived", int(not to_archive)), which, order=("seq",)):
        writer.put(replace(entry, is_archived=to_archive), "archive" if to_archive else "warm")


def _started_cycles(reader: Reader) -> dict[str, int]:
    noted: dict[str, int] = reader.json_setting(_BEGUN)
    return noted


def _require_entry(reader: Reader, name: str) -> Entry:
    entry = reader.get(Entry, name)
    if entry is None:
        raise NotFoundError("entry", name, hint="archivist stream list shows the latest with their ids")
    return entry


def _within_cycles(asked: Query, cycles: tuple[int | None, int | None]) -> Query:
    tier = "" if asked.tier == "stream" else asked.tier
    return asked._replace(since_cycle=cycles[0], until_cycle=cycles[1], tier=tier)


def _hit_by_cycle(entry: Entry, weight: float) -> StreamHit:
    """Return an entry that is found by its cycle alone, scored by its importance."""
    from archivist.recall.results import Hit, name_of, text_of
    from archivist.recall.scoring import Relevance, Score

    importance = entry.importance / 10
    score = Score(weight * importance, importance, 0.0, 0.0, Relevance(0.0))
    name, text, note = name_of("entry", entry), text_of("entry", entry), "of the cycle that was asked for"
    return StreamHit(Hit("entry", entry.id, name, text, score.total, entry.time, score, (note,)), entry)
