"""What recall answers, and how a record is shown; the classes of other kinds need not be imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.recall.scoring import Score, Weights
from archivist.records.run_words import OUTCOMES
from archivist.text import shorten_line

if TYPE_CHECKING:
    from archivist.recall.query import Query
    from archivist.records import Artifact, Document, Entry, Episode, Event, Fact, Lesson, Provenance, Task

DEFAULT_LIMIT = 10
# So few texts without a vector are embedded during a query: the bundled table takes under a millisecond.
FRESH = 48
# Characters of a record that a list of hits shows.
_shorten = partial(shorten_line, most=400)
# The kinds of event in which people and agents speak.
_SPEECH = ("message", "log", "verdict", "fix")
# Assistants report their work, clients and tools inject text: they amend nothing.
_NOT_AMENDING = frozenset((
    "assistant", "agent", "model", "ai", "bot", "system", "tool", "developer", "function",
))  # fmt: skip


class Hit(NamedTuple):
    """One result. `notes` explain its rank, `window` is the text around it.

    `provenance` says where a lesson, a run or an event of it comes from, and that an agent or a watched file
    wrote a text; others have none. `repo` is the repository of a lesson, a run or an event,
    `headline` a mined lesson with its remedy first. `bank` names the bank in a search of several.
    """

    kind: str
    id: str
    name: str
    text: str
    score: float
    time: datetime | None
    why: Score
    notes: tuple[str, ...] = ()
    window: tuple[str, ...] = ()
    provenance: Provenance | None = None
    repo: str = ""
    headline: str = ""
    bank: str = ""


class RecallResult(NamedTuple):
    """The results, the words that were searched for, and how many texts have no vector yet.

    `doubt` says why the nearest texts were taken for no answer.
    """

    hits: tuple[Hit, ...]
    weights: Weights
    words: tuple[str, ...] = ()
    embedder: str = ""
    unembedded: int = 0
    problem: str = ""
    doubt: str = ""


def merge_results(found: Mapping[str, RecallResult], query: Query) -> RecallResult:
    """Return the best hits of several banks, each with its bank's name.

    Scores of `relevance` are comparable: each is measured against a perfect match in its own bank. A run that
    was shared is in two banks, and is shown once.
    """
    hits: dict[tuple[str, str], Hit] = {}
    for bank, result in found.items():
        hits |= {(hit.kind, hit.id): hit._replace(bank=bank) for hit in result.hits}
    best = sorted(hits.values(), key=lambda hit: (-hit.score, hit.bank, hit.id))
    best = best[: DEFAULT_LIMIT if query.limit is None else query.limit]
    if query.is_in_time_order:
        best.sort(key=lambda hit: (hit.time is None, hit.time, hit.id))
    results = list(found.values())
    return RecallResult(
        tuple(best),
        results[0].weights,
        tuple(dict.fromkeys(word for each in results for word in each.words)),
        next((each.embedder for each in results if each.embedder), ""),
        sum(each.unembedded for each in results),
        next((f"{name}: {each.problem}" for name, each in found.items() if each.problem), ""),
    )


class RecordText(NamedTuple):
    """A record as it is compared and shown: its words, where it says them, its name, and the shown text.

    Only texts of one place amend each other. The shown text may add to the words: that two entries have one
    role does not make them more similar.
    """

    text: str
    place: str = ""
    name: str = ""
    shown: str = ""


def name_of(kind: str, record: object) -> str:
    """Return what people call a record."""
    return RENDERERS[kind](record).name


def text_of(kind: str, record: object) -> str:
    """Return a record's words on one line."""
    rendered = RENDERERS[kind](record)
    return rendered.shown or rendered.text


def remedy_first(lesson: Lesson) -> str:
    """Return a mined lesson with its remedy first, for lists that name the repository; of others nothing.

    The rule of a line that somebody else wrote may say anything: of it the words are listed that are told.
    """
    condition, then, action = lesson.rule.removeprefix("IF ").partition(" THEN ")
    if not then or not lesson.signature or lesson.confirmed or not lesson.provenance.is_own:
        return ""
    return action if condition.startswith("working on ") else f"{action}, when {condition}"


def listed_words(lesson: Lesson) -> str:
    """Return a lesson's words for a list: of what others brought all that a brief would tell."""
    if not lesson.provenance.is_own:
        return _render_lesson(lesson).text
    return remedy_first(lesson) or lesson.summary


def _render_lesson(lesson: Lesson) -> RecordText:
    # A mined lesson has its rule in the summary.
    has_rule = bool(lesson.rule) and not lesson.signature
    text = f"{lesson.summary}: {lesson.rule}" if has_rule else lesson.summary
    # What was mined from failures is retired by the next sighting, never by another failure's words.
    return RecordText(text, lesson.id if lesson.signature else lesson.repo, lesson.short_id)


def _render_episode(episode: Episode) -> RecordText:
    said = episode.summary or episode.task
    # Most summaries begin with the run's end.
    text = said if said.startswith(OUTCOMES[episode.status]) else f"{episode.status.value}: {said}"
    if episode.action:
        text = f"{episode.action.value}: {episode.task}: {episode.approach}. {episode.outcome}"
    return RecordText(_shorten(text), episode.id, episode.id)


def _render_event(event: Event) -> RecordText:
    who = event.role or event.agent or event.tool
    said = event.text or " ".join(finding.description for finding in event.findings) or event.output
    # What people say has one place.
    place = "" if event.kind.value in _SPEECH and who.casefold() not in _NOT_AMENDING else event.id
    text = _shorten(said)
    return RecordText(text, place, event.id, _shorten(f"{who}: {text}") if who else text)


def _render_fact(fact: Fact) -> RecordText:
    text = _shorten(f"{fact.category} {fact.key}: {fact.value}")
    return RecordText(text, fact.project, f"{fact.category}/{fact.key}")


def _render_artifact(artifact: Artifact) -> RecordText:
    text = _shorten(f"{artifact.path} ({artifact.type.value}) {artifact.description}")
    return RecordText(text, artifact.id, artifact.path)


def _render_task(task: Task) -> RecordText:
    outcome = task.result or task.reason
    text = _shorten(f"{task.state.value}: {task.title}{f': {outcome}' if outcome else ''}")
    return RecordText(text, task.id, task.id)


def _render_entry(entry: Entry) -> RecordText:
    # Many agents log one text as both.
    is_repeated = not entry.content or entry.content.startswith(entry.action)
    words = (entry.content or entry.action) if is_repeated else f"{entry.action}. {entry.content}"
    text = _shorten(f"{f'cycle {entry.cycle} {entry.role}'.strip()}: {words}")
    # A report of what happened stays true; a later decision can replace an earlier one.
    is_decision = entry.type.value == "decision" or words[:8].casefold() in ("decided:", "decision")
    return RecordText(words, "stream" if is_decision else entry.id, f"cycle {entry.cycle}", text)


def _render_document(document: Document) -> RecordText:
    # Most pieces begin with their own heading.
    has_heading = document.text.lstrip("# ").startswith(document.heading)
    text = _shorten(document.text if has_heading else f"{document.heading}: {document.text}")
    # What was concluded of some cycles, or noted in them, is a report too.
    is_report = document.source.startswith("reflections/") or document.type.value == "cycle"
    name = f"{document.source}#{document.position}"
    return RecordText(text, document.id if is_report else "archive", name)


RENDERERS: dict[str, Callable[[Any], RecordText]] = {
    "lesson": _render_lesson,
    "episode": _render_episode,
    "event": _render_event,
    "fact": _render_fact,
    "artifact": _render_artifact,
    "task": _render_task,
    "entry": _render_entry,
    "document": _render_document,
}
