"""Reflect on the stream: decide when a reflection is due, and write its insights exactly once.

Reading the entries, writing the insights and moving the marker is one transaction. The archive and the
lessons are searched before it, so that other writers do not wait for the search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.access.rights import Layer, Verb, may
from archivist.core.blocks import WorkStatus, text_of, without_speakers
from archivist.core.proposals import with_line
from archivist.errors import ArchivistError
from archivist.ids import derived_id
from archivist.lessons.agent_words import agent_suspicion, quote_words, retold_suspicion
from archivist.reading.wording import tags
from archivist.recall.query import LIVE, Query
from archivist.records import (
    ARCHIVIST,
    Block,
    CoreSection,
    Document,
    DocumentType,
    Entry,
    EntryType,
    Lesson,
    Proposal,
)
from archivist.records.plain import canonical_json, from_plain
from archivist.records.run_words import OF_RUN
from archivist.records.words import BROUGHT_BY, SAID_BY
from archivist.store.filters import at_least, at_most, equals, not_equals, one_of
from archivist.stream.decided import are_alike_enough
from archivist.stream.entries import (
    Marker,
    current_sprint,
    find_references,
    last_seq,
    latest_cycle,
    marker_of,
    set_marker,
)
from archivist.stream.insight_text import Insight, RelatedItem, labels_of
from archivist.stream.insights import MOST_INSIGHTS, insights, reason_to_reflect
from archivist.stream.obstacles import ObstacleReport, are_alike, words_of
from archivist.stream.timelines import ended_insight, find_end
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reflect.model.conversation_service import ModelReport
    from archivist.store.protocol import Reader, Writer

ROLE = "archivist"
# A setting of the bank: the blockers in the status that reflections wrote, and what they are about.
_BLOCKERS = "stream_blockers"
# A setting of the bank: the insights in core memory's lessons that reflections wrote, the newest last.
_SURFACED = "stream_surfaced"
# A setting of the bank: the lines that reflections wrote to core memory, each with its entries.
_EVIDENCE = "stream_core_evidence"
_MOST_EVIDENCE = 50
_AGENT = "an agent"
_AGENT_MARK = f" (said by {_AGENT})"
_SURFACED_IMPORTANCE = 10
_FIGURES = re.compile(r"\d|\b(?:rose|fell|moved) from\b")
_MOST_SURFACED = 5
# The words of the most important entries; a longer question takes longer to search.
_ASKED_CHARACTERS = 2_000
_RELATED = 10
# Entries of earlier reflections that are read again; as many are compared.
_EARLIER = 300
# For so many gathered entries, and as many labels, the archive is searched; so many of its entries are read.
_ASKED = 10
_ARCHIVED = 100
# So many places are kept for what was counted, besides a model's insights.
_LEAST_COUNTED = 2


class Insights(NamedTuple):
    """What a reflection did: why it ran or was skipped, what it read, and what it wrote.

    `told_core` names what was added to core memory, removed from it or proposed for it, `problems` what core
    memory refused. `model` is what a language model cost and how many of its insights held.
    """

    reason: str = ""
    skipped: str = ""
    gathered: int = 0
    cycles: tuple[int, int] | None = None
    entries: tuple[Entry, ...] = ()
    documents: tuple[Document, ...] = ()
    told_core: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    model: ModelReport | None = None


def reflect_stream(bank: Bank, *, trigger: str = "", with_model: bool = False) -> Insights:
    """Write what recurred since the last reflection to stream and archive; each entry counts once.

    Without a trigger only if a reflection is due. Two processes that try at once do it once. What a language
    model found comes first, and what was counted fills the rest.
    """
    with bank.reading() as reader:
        _, chosen, _, skipped = _entries_to_reflect_on(bank, reader, trigger)
    # Skipping writes nothing, so that it works on a read-only bank too.
    if skipped:
        return Insights(skipped=skipped)
    related, lessons = _related_documents(bank, chosen), _related_lessons(bank, chosen)
    archived = _archived_entries(bank, chosen)
    known = insights(chosen, earlier=archived, related=related, lessons=lessons) if with_model else []
    by_model, report = _ask_model(bank, chosen, related, known) if with_model else ([], None)
    archivist = bank.acting_as(ARCHIVIST)
    with archivist.transaction() as writer:
        entries, chosen, reason, skipped = _entries_to_reflect_on(bank, writer, trigger)
        if skipped:
            return Insights(skipped=skipped, model=report)
        marker, earlier = marker_of(writer), _earlier_entries(bank, writer, archived)
        projects = _projects_of(writer, (*earlier, *entries))
        told_before = _told_before(writer)
        counted = [
            each
            for project in dict.fromkeys(projects[entry.id] for entry in entries)
            for each in insights(
                [entry for entry in chosen if projects[entry.id] == project],
                earlier=[entry for entry in earlier if projects[entry.id] == project],
                related=related,
                lessons=lessons,
                others=[entry for entry in entries if projects[entry.id] == project],
                sprint=_ended_sprint(writer),
                sprint_seq=marker.sprint_seq if marker else 0,
                told_before=told_before,
            )
        ]
        # Repositories of one bank are kept apart.
        by_model = [each for each in by_model if len({projects.get(name, "") for name in each.evidence}) < 2]
        reported = {issue for each in counted for issue in each.issues}
        counted = [
            ended_insight(text, issues, end)
            for text, (issues, end) in _ended_blockers(writer, entries).items()
            if not reported & {*issues}
        ] + counted
        # What was counted is sure: a model must not displace it.
        by_model = by_model[: MOST_INSIGHTS - min(len(counted), _LEAST_COUNTED)]
        # Blockers and rules come from counting alone: they change core memory.
        found = sorted((*by_model, *counted), key=lambda each: not (each.blocker or each.rule))[
            :MOST_INSIGHTS
        ]
        written = {each.action for each in found}
        for claim in report.claims if report else ():
            if not claim.reason and _title_of(claim.text) not in written:
                claim.drop("the reflection has no room for it")
        done = _write_insights(archivist, writer, found, entries)
        done = done._replace(reason=reason, gathered=len(chosen), model=report)
    return _update_core(archivist, done, found, entries)


def _projects_of(reader: Reader, entries: Iterable[Entry]) -> dict[str, str]:
    """Return the project of each entry: that of the run that it was logged of, nothing for the others."""
    entries = list(entries)
    runs = reader.records("episode", list({entry.run for entry in entries if entry.run}))
    return {entry.id: runs[entry.run].project if entry.run in runs else "" for entry in entries}


def _title_of(claim: str) -> str:
    return f"Reflection: {claim.strip()}"


def _ask_model(
    bank: Bank, chosen: list[Entry], related: list[RelatedItem], counted: list[Insight]
) -> tuple[list[Insight], ModelReport | None]:
    """Return the insights of the configured language model that its entries show."""
    if not chosen or not may(bank.actor, Layer.STREAM, Verb.DECIDE):
        return [], None
    told = [f"{each.action.removeprefix('Reflection: ')}: {each.content}" for each in counted]
    proposed, report = bank.model.propose_insights(chosen, [item.text for item in related], told)
    found = [
        Insight(
            action=_title_of(claim.title),
            content=f"{claim.content.strip()} (Read by {report.model} from {len(cited)} entries.)",
            importance=10 if claim.importance >= 10 else 9,
            tags=tags("reflection", "model", claim.kind, *claim.tags[:3]),
            issues=tuple(dict.fromkeys(issue for entry in cited for issue in entry.issues)),
            roles=tuple(dict.fromkeys(entry.role for entry in cited if entry.role)),
            evidence=tuple(entry.id for entry in cited),
            quoted=tuple(entry.id for entry in cited),
        )
        for claim, cited in proposed
    ]
    return found, report


def _entries_to_reflect_on(
    bank: Bank, reader: Reader, trigger: str
) -> tuple[list[Entry], list[Entry], str, str]:
    """Return what was logged since the last reflection, what of it counts, and why to reflect or not."""
    marker = marker_of(reader)
    is_new = at_least("seq", (marker.seq if marker else 0) + 1)
    logged = reader.select(Entry, is_new, not_equals("type", EntryType.REFLECTION), order=("seq",))
    # What is learnt here becomes core memory, in the archivist's name: a file must not teach it.
    entries = [entry for entry in logged if not entry.extra.get(BROUGHT_BY)]
    chosen = [entry for entry in entries if entry.importance >= bank.config.stream.gather_importance]
    reason = (trigger or due_reason(bank, reader)) if entries else ""
    skipped = "not due" if entries else "nothing was logged since the last reflection"
    return entries, chosen, reason, "" if reason else skipped


def _earlier_entries(bank: Bank, reader: Reader, archived: list[Entry]) -> list[Entry]:
    """Return the entries of earlier reflections, hot and archived: they say since when something goes on."""
    marker, latest = marker_of(reader), latest_cycle(reader) or 0
    conditions = [
        at_most("seq", marker.seq if marker else 0),
        at_least("cycle", latest - bank.config.stream.hot_cycles + 1),
        at_least("importance", bank.config.stream.gather_importance),
        not_equals("type", EntryType.REFLECTION),
    ]
    hot = reader.select(Entry, *conditions, order=("-seq",), limit=_EARLIER - len(archived))
    earlier = sorted({entry.id: entry for entry in (*archived, *hot)}.values(), key=lambda entry: entry.seq)
    # What somebody took out of core memory does not come back from the same entries.
    present = {*_blocker_lines(reader), *_lesson_lines(reader)}
    noted = reader.json_setting(_EVIDENCE).items()
    refused = {name for line, names in noted if line not in present for name in names}
    return [entry for entry in earlier if entry.id not in refused and not entry.extra.get(BROUGHT_BY)]


def _told_before(reader: Reader) -> set[str]:
    """Return the entries that the latest reflections told of."""
    is_reflection = equals("type", EntryType.REFLECTION)
    rows = reader.select(Entry, is_reflection, order=("-seq",), limit=_EARLIER)
    evidence = (entry.extra.get("evidence") for entry in rows)
    return {str(name) for names in evidence if isinstance(names, list) for name in names}


def _ended_sprint(reader: Reader) -> str:
    """Return the sprint that has ended since the last reflection, or an empty text."""
    marker = marker_of(reader)
    return marker.sprint if marker and marker.sprint != current_sprint(reader) else ""


def due_reason(bank: Bank, reader: Reader) -> str:
    """Return why a reflection is due, or an empty text."""
    marker = marker_of(reader)
    if marker is None:
        return ""
    logged = (at_least("seq", marker.seq + 1), not_equals("type", EntryType.REFLECTION))
    importances = [value for (value,) in reader.select_fields("entry", ("importance",), *logged)]
    return reason_to_reflect(
        bank.config.stream,
        entries=len(importances),
        importance=sum(importances),
        cycles=max(0, (latest_cycle(reader) or 0) - marker.cycle),
        sprints=(marker.sprint, current_sprint(reader)),
    )


def _write_insights(bank: Bank, writer: Writer, found: list[Insight], entries: list[Entry]) -> Insights:
    """Write insights to the stream and the archive and move the marker, within the caller's transaction."""
    now = bank.now()
    latest, seq = latest_cycle(writer) or 0, last_seq(writer)
    cycles = [entry.cycle for entry in entries]
    runs = {entry.id: entry.run for entry in entries if entry.run}
    source = f"reflections/cycles-{min(cycles)}-{max(cycles)}-{seq}"
    done = Insights(cycles=(min(cycles), max(cycles)))
    for place, insight in enumerate(found):
        same = (equals("action", insight.action), equals("type", EntryType.REFLECTION))
        known = writer.select(Entry, *same, order=("seq",), limit=1)
        content = f"Known since cycle {known[0].cycle}. {insight.content}" if known else insight.content
        extra: dict[str, object] = {"evidence": list(insight.evidence)}
        extra[SAID_BY] = _agents_of(writer, insight)
        # It belongs to the project of what it is about, and goes with its last run.
        run = next((runs[name] for name in reversed(insight.evidence) if name in runs), "")
        extra |= {OF_RUN: run} if run else {}
        entry = Entry(
            id=derived_id("reflection", source, str(place), content),
            seq=seq + place + 1,
            cycle=latest,
            time=now,
            role=ROLE,
            action=insight.action,
            importance=insight.importance,
            type=EntryType.REFLECTION,
            tags=insight.tags,
            issues=insight.issues,
            content=content,
            tokens=estimate_tokens(f"{insight.action} {content}"),
            run=run,
            extra=extra,
        )
        document = Document(
            id=derived_id("document", source, content, str(place)),
            source=source,
            position=place,
            heading=insight.action,
            text=content,
            type=DocumentType.LESSON,
            date=now,
            roles=insight.roles,
            issues=insight.issues,
            tags=insight.tags,
            importance=insight.importance,
            created=now,
            extra={"entry": entry.id, **extra},
        )
        writer.put(entry, "reflect")
        writer.put(document, "reflect")
        done = done._replace(entries=(*done.entries, entry), documents=(*done.documents, document))
    marker, sprint, end = marker_of(writer) or Marker(), current_sprint(writer), seq + len(found)
    began = marker.sprint_seq if sprint == marker.sprint else end
    set_marker(writer, Marker(end, latest, sprint, began))
    return done


def _update_core(bank: Bank, done: Insights, found: list[Insight], entries: list[Entry]) -> Insights:
    """Update the blockers in the status, and propose rules that were decided on.

    What core memory refuses is only noted.
    """
    told: list[str] = []
    problems: list[str] = []
    # The words are those of whoever wrote the entries, agents mostly: the same gate as for their own writing.
    with bank.reading() as reader:
        agents = {each.action: bool(_agents_of(reader, each)) for each in found}
    judges = {True: retold_suspicion, False: agent_suspicion}
    why = {each.action: judges[agents[each.action]](*_words_for_core(each)) for each in found}
    problems += [f"left out of core memory, {reason}" for reason in why.values() if reason]
    found = [each for each in found if not why[each.action]]
    steps = [partial(_remove_ended_blockers, bank, entries)]
    steps += [partial(_append_blocker, bank, each, agents[each.action]) for each in found if each.blocker]
    steps += [partial(_propose_rule, bank, insight) for insight in found if insight.rule]
    steps.append(partial(_surface_insights, bank, found, agents))
    for step in steps:
        try:
            told += step()
        except ArchivistError as error:
            problems.append(error.message)
    return done._replace(told_core=tuple(told), problems=tuple(problems))


def _words_for_core(insight: Insight) -> tuple[str, ...]:
    surfaced = _line_of(insight) if insight.importance >= _SURFACED_IMPORTANCE else ""
    return insight.blocker, insight.rule, surfaced


def _agents_of(reader: Reader, insight: Insight) -> list[str]:
    return reader.agents_behind(dict.fromkeys((*insight.quoted, *insight.evidence)))


def _line_of(insight: Insight) -> str:
    return insight.action.removeprefix("Reflection: ")


def _without_mark(line: str) -> str:
    """Return a line as the reflection worded it, for comparisons."""
    return line[1 : -len(_AGENT_MARK) - 1] if line.endswith(f"\u201d{_AGENT_MARK}") else line


def _note_evidence(writer: Writer, lines: dict[str, tuple[str, ...]], gone: Iterable[str] = ()) -> None:
    """Note the entries behind lines of core memory; `gone` are those that the reflection itself took out."""
    noted = {line: names for line, names in writer.json_setting(_EVIDENCE).items() if line not in {*gone}}
    kept = list((noted | {line: list(names) for line, names in lines.items()}).items())[-_MOST_EVIDENCE:]
    writer.set_setting(_EVIDENCE, canonical_json(dict(kept)))


def _surface_insights(bank: Bank, found: list[Insight], agents: dict[str, bool]) -> list[str]:
    """Write the weightiest insights to the lessons of core memory, in place of earlier ones on the same.

    Blockers are in the status already. Only the newest few stay: core memory is always in context.
    """
    told = [each for each in found if not each.blocker and {"trouble", "trend", "decisions"} & {*each.tags}]
    with bank.transaction() as writer:
        before: list[str] = list(writer.json_setting(_SURFACED).get("lines", ()))
        lines = [line for line in before if not any(_is_same_insight(line, each) for each in told)]
        evidence = {
            quote_words(_line_of(each), _AGENT) if agents[each.action] else _line_of(each): each.evidence
            for each in told
            if each.importance >= _SURFACED_IMPORTANCE
        }
        new = list(evidence)
        kept = [*lines, *new][-_MOST_SURFACED:]
        if kept == before:
            return []
        writer.set_setting(_SURFACED, canonical_json({"lines": kept}))
        present = _lesson_lines(writer)
        gone = [line for line in before if line not in kept and line in present]
        _note_evidence(writer, {line: names for line, names in evidence.items() if line in kept}, gone)
        for line in gone:
            # Somebody may have removed or reworded the others.
            bank.core.take_out("lessons", line)
        for line in kept:
            if line not in before:
                bank.core.append("lessons", line)
    return [f"lessons: {line}" for line in new if line in kept and line not in before]


def _is_same_insight(line: str, insight: Insight) -> bool:
    """Say whether a line of core memory and an insight have one subject: the words before their figures."""
    texts = (_without_mark(line), _line_of(insight))
    one, other = ({*words_of(_FIGURES.split(text)[0])} for text in texts)
    return one == other or are_alike_enough(one, other)


def _ended_blockers(
    reader: Reader, entries: list[Entry]
) -> dict[str, tuple[tuple[int, ...], ObstacleReport]]:
    """Return the blockers that earlier reflections wrote and that are over, with their issues and ends."""
    roles = {entry.role for entry in entries if entry.role}
    found = {}
    for text, (issues, words) in _own_blockers(reader).items():
        if end := find_end(entries, issues=issues, words=words, roles=roles):
            found[text] = (tuple(issues), end)
    return found


def _remove_ended_blockers(bank: Bank, entries: list[Entry]) -> list[str]:
    """Remove the blockers from the status that a reflection wrote and that are over."""
    with bank.reading() as reader:
        ended = _ended_blockers(reader, entries)
    told = []
    for text, (_, end) in ended.items():
        with bank.transaction() as writer:
            rest = _own_blockers(writer)
            rest.pop(text, None)
            writer.set_setting(_BLOCKERS, canonical_json(rest))
            _note_evidence(writer, {}, [text] if text in _blocker_lines(writer) else ())
            # Somebody may have removed or reworded it before.
            if text in _blocker_lines(writer):
                bank.core.take_out("blockers", text)
                told.append(f"no longer in status blockers: {text} (over in cycle {end.entry.cycle})")
    return told


def _append_blocker(bank: Bank, insight: Insight, is_of_agents: bool) -> list[str]:
    with bank.transaction() as writer:
        for line in _blocker_lines(writer):
            # An issue is compared by its whole number: #8 is not #84.
            is_same_issue = set(find_references(line).issues) & set(insight.issues)
            if is_same_issue if insight.issues else are_alike(words_of(_without_mark(line)), insight.words):
                return []
        said = quote_words(insight.blocker, _AGENT) if is_of_agents else insight.blocker
        bank.core.append("blockers", said)
        text = _blocker_lines(writer)[-1]
        _note_evidence(writer, {text: insight.evidence})
        about = (insight.issues, insight.words)
        writer.set_setting(_BLOCKERS, canonical_json({**_own_blockers(writer), text: about}))
    return [f"status blockers: {text}"]


def _blocker_lines(reader: Reader) -> list[str]:
    status = reader.get(Block, CoreSection.STATUS.value)
    return list(from_plain(WorkStatus, without_speakers(status.content)).blockers) if status else []


def _lesson_lines(reader: Reader) -> list[str]:
    lines = text_of(reader.get(Block, CoreSection.LESSONS.value)).splitlines()
    return [line.removeprefix("- ") for line in lines]


def _own_blockers(reader: Reader) -> dict[str, Any]:
    """Return the blockers that reflections wrote, by their lines: their issues and words."""
    noted: dict[str, Any] = reader.json_setting(_BLOCKERS)
    return noted


def _propose_rule(bank: Bank, insight: Insight) -> list[str]:
    """Propose a rule that was decided on for core memory; only once, even if it is rejected."""
    rule = f"- {insight.rule}"
    with bank.reading() as reader:
        before = text_of(reader.get(Block, CoreSection.RULES.value))
        is_known = rule in before or any(rule in each.after for each in reader.select(Proposal))
        agents = reader.agents_behind(insight.quoted)
    if is_known:
        return []
    said = f" (said by {', '.join(agents)})" if agents else ""
    reason = _line_of(insight) + said
    made = bank.proposals.propose(
        CoreSection.RULES.value, with_line(before, rule), reason=reason, evidence=insight.evidence
    )
    return [f"proposal {made.short_id}: {insight.rule}"]


def _related_documents(bank: Bank, chosen: list[Entry]) -> list[RelatedItem]:
    """Return the archived texts about the gathered entries."""
    if not chosen:
        return []
    asked = " ".join(entry.action for entry in _weightiest(chosen))[:_ASKED_CHARACTERS]
    hits = bank.recall(Query(text=asked, kinds=("document",), tier="archive", limit=_RELATED)).hits
    with bank.reading() as reader:
        found = reader.records("document", [hit.id for hit in hits])
    return [RelatedItem(hit.name, hit.text, found[hit.id].issues) for hit in hits if hit.id in found]


def _archived_entries(bank: Bank, chosen: list[Entry]) -> list[Entry]:
    """Return entries that are no longer hot, about what the gathered ones are about: by label and by words.

    Whoever is asked about a thing after more than a hundred cycles needs what was known of it then.
    """
    old = Query(kinds=("entry",), tier="archive", min_importance=bank.config.stream.gather_importance / 10)
    weightiest = _weightiest(chosen)
    labels = [*dict.fromkeys(label for entry in weightiest for label in labels_of(entry))][:_ASKED]
    asked = [old._replace(text=entry.action, limit=_RELATED) for entry in weightiest[:_ASKED]]
    for label in labels:
        issues, prs = find_references(label)
        named = old._replace(text=label, issue=next(iter(issues), None), pr=next(iter(prs), None))
        asked.append(named._replace(limit=_ARCHIVED))
    found = dict.fromkeys(hit.id for query in reversed(asked) for hit in bank.recall(query).hits)
    with bank.reading() as reader:
        entries = reader.records("entry", [*found][:_ARCHIVED])
        new = marker_of(reader) or Marker()
    return [
        entry
        for entry in entries.values()
        if entry.type is not EntryType.REFLECTION and entry.is_archived and entry.seq <= new.seq
    ]


def _weightiest(chosen: list[Entry]) -> list[Entry]:
    return sorted(chosen, key=lambda entry: (-entry.importance, -entry.seq))


def _related_lessons(bank: Bank, chosen: list[Entry]) -> list[RelatedItem]:
    """Return the lessons that name an issue of the gathered entries."""
    met = {issue for entry in chosen for issue in entry.issues}
    if not met:
        return []
    fields = ("number", "summary", "rule", "detail", "task")
    with bank.reading() as reader:
        told = (one_of("status", LIVE), equals("is_waiting", 0))
        rows = reader.select_fields(Lesson, fields, *told, order=("number",))
    found = []
    for number, summary, *texts in rows:
        if issues := tuple(issue for issue in find_references(summary, *texts).issues if issue in met):
            found.append(RelatedItem(f"m-{number:03d}", summary, issues))
    return found
