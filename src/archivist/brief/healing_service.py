"""Say what earlier runs did about an error: what worked, and in how many of them.

An agent waits next to its error. So what decides whether there is anything to say reads single fields of the
tables; records are made only for what is shown, and the classes have no postponed annotations.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archivist import projects
from archivist.brief.select import BriefedLesson, RenderedBrief
from archivist.records.words import NOTES, PART, Provenance, Status
from archivist.store.filters import (
    Condition,
    any_of,
    contains_text,
    equals,
    not_equals,
    one_of,
    one_of_unindexed,
)

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reading.failures import Failure
    from archivist.records import Lesson
    from archivist.store.protocol import Reader
else:
    # A hook that finds nothing to say need not make the record's class for an annotation.
    Bank = Failure = Lesson = Reader = Any

# By the index of statuses SQLite read every live lesson of the bank to find those of two signatures.
_LIVE = one_of_unindexed("status", (Status.ACTIVE, Status.CANDIDATE))
# What nobody here vouches for is told to no run.
_BELIEVED = equals("is_waiting", 0)
# Nor what an agent reported. The notes of a file's runs are here only if a person accepted the file.
_BELIEVED_RUNS = (equals("action", None), not_equals("provenance", Provenance.SUGGESTED))
_FIELDS = ("remedies", "id", "runs", "summary", "rule", "tags", "signature")
# How many of the latest runs are asked what they did about an error, and how many lessons.
_LATEST_RUNS = 500
_MAX_LESSONS = 50
# The end of an output says what failed.
_LAST_CHARACTERS = 2_000
_LAST_LINES = 20
_HITS = 50
_MAX_SIMILAR = 2
# Above this many documents scoring every word took longer than a hook has; only rare words are scored then.
_SCORED = 4_000
# More than three remedies are a list to read, not a help next to an error.
MAX_SHOWN = 3
# Ways of overcoming a failure that are described in words, not as a command.
_DESCRIBED = ("said", "edit", "path")
# A lesson about the same error has most of its words; a few words are like anything.
_MIN_SHARE = 2 / 3
_MIN_WORDS = 3
_IN_ANY_ERROR = frozenset(["code", "error", "errors", "exception", "exit", "failed", "fatal", "file", "line"])


def failure_family(key: str) -> str:
    """Return a failure's key without its repository."""
    return key.partition("|")[2] or key


def describe_recovery(
    keys: Collection[str],
    subject: str,
    digests: Iterable[Mapping[str, Any]],
    lessons: Sequence[Lesson],
    quarantined: str = "",
) -> RenderedBrief:
    """Say what the digests of earlier runs and the lessons know of a failure.

    Facts only: the reader decides. `keys` name the failure under each name of the repository: what another
    repository did, which a stranger may have written, is not told. A failure that is about something (a
    module, a flag, a file) is the same only when it is about that. A failure that was met and never overcome
    gives an empty text. No remedy is told that stands in `quarantined` words.
    """
    noted = [digest.get("failures") for digest in digests]
    met = [
        failure
        for each in noted
        if isinstance(each, Mapping)
        for key, failure in each.items()
        if key in keys and _is_about(subject, failure.get("subjects"))
    ]
    worked = _describe_remedies(met, subject, quarantined) or _describe_remedies(
        _proven_guesses(noted, keys), subject, quarantined
    )
    advised = [(lesson, advice) for lesson in lessons if (advice := _advice(lesson))]
    if not worked and not advised:
        return RenderedBrief("", ())
    lines = ["### What is known about this error", ""]
    if met:
        # Without its words: who asks has them, and a program chose them.
        lines.append("Met once before." if len(met) == 1 else f"Met in {len(met)} runs before.")
    lines += [f"- {remedy}" for remedy in worked[:MAX_SHOWN]]
    for lesson, advice in () if worked else advised:
        brought = "" if lesson.provenance.is_own else f" ({lesson.provenance.label}, approved)"
        met_in = f"met in {_count_runs(len(lesson.runs))}"
        lines.append(f"- lesson {lesson.short_id}{brought}, {met_in}: {advice}")
    return RenderedBrief("\n".join(lines) + "\n", tuple(BriefedLesson(lesson) for lesson in lessons))


def _proven_guesses(noted: Sequence[Any], keys: Collection[str]) -> list[Mapping[str, Any]]:
    """Return what may have overcome a failure, noted by its remedy, where two runs did the same."""
    families = {failure_family(key) for key in keys}
    repos = {key.partition("|")[0] for key in keys}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for key, failure in (item for each in noted if isinstance(each, Mapping) for item in each.items()):
        if key.partition("|")[0] in repos and not families.isdisjoint(failure.get("of") or ()):
            found.setdefault(key, []).append(failure)
    return [failure for those in found.values() if len(those) > 1 for failure in those]


def _describe_remedies(met: Sequence[Mapping[str, Any]], subject: str, quarantined: str) -> tuple[str, ...]:
    """Say what worked in runs, the latest given first, in how many of them, and whether it failed since."""
    cures = [
        {
            str(text): str(way[0]) if way else ""
            for about, text, *way in failure.get("cures") or ()
            if text and str(text) not in quarantined and _is_about(subject, [about])
        }
        for failure in met
    ]
    ways = {text: way for cure in cures for text, way in cure.items()}
    if not ways:
        return ()
    from archivist.reading.remedies import WARNING, is_destructive, proofs

    lines: list[str] = []
    warnings: list[str] = []
    attempts = [(cure, failure.get("in_vain") or ()) for cure, failure in zip(cures, met, strict=True)]
    proven = proofs(attempts[::-1])
    for text in sorted(ways, key=lambda text: proven[text].rank):
        runs, has_failed, *_ = proven[text]
        is_command = ways[text] not in _DESCRIBED
        shown = _as_code(text) if is_command else text
        if is_command and is_destructive(text):
            # What one run destroyed is not repeated; what several did is shown as a warning.
            warnings += [f"{_count_runs(runs)} did {shown}, {WARNING}"] if runs > 1 else []
        else:
            lines.append(f"worked in {_count_runs(runs)}{', then failed' if has_failed else ''}: {shown}")
    return (*lines, *warnings)


def _advice(lesson: Lesson) -> str:
    """Return what a lesson says to do; where it has several remedies, its summary says which is for what."""
    if len(lesson.remedies) == 1:
        is_described = failure_family(lesson.signature).startswith("edit_not_applied:")
        return lesson.remedies[0] if is_described else _as_code(lesson.remedies[0])
    # A lesson without a rule only says that the failure was met.
    return " ".join(lesson.summary.split()) if lesson.rule else ""


def _count_runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(str(each).lower() == subject.lower() for each in subjects)


def names_subject(subject: str, words: str, remedies: Iterable[str], tags: Iterable[str]) -> bool:
    """Say whether a lesson's words or tags name a thing; what it advises instead is not what it is about.

    A longer name is another's: `pvlib-python` is not `pvlib`.
    """
    if not subject:
        return True
    for remedy in remedies:
        words = words.replace(remedy, " ")
    whole = rf"(?<![\w-]){re.escape(subject.lower())}(?![\w-])"
    return re.search(whole, f"{words} {' '.join(tags)}".lower()) is not None


def heal(
    bank: Bank, error: str, *, tool: str, command: str, repo: str, run: str, project: str = ""
) -> RenderedBrief:
    """Say what earlier runs did about an error, known by its signature; else what says nearly the same.

    The run that asks is not an earlier one. An error that nobody met gives an empty text.
    """
    from archivist.reading.failures import detect_failure, failure_key

    failure = detect_failure(tool or "bash", command, None, True, error)
    with bank.reading() as reader:
        if not project:
            project, _ = projects.resolve_project(reader, repo, bank.folder, bank.root)
        # What is filed under no repository holds for all.
        names = tuple(dict.fromkeys((*projects.names_of(reader, project), "")))
        if failure is not None and not command and not tool:
            failure = _find_program(reader, names, failure, error)
        if failure is not None:
            family = failure_key(failure)
            keys = [f"{name}|{family}" for name in names]
            # A refused word that the key leaves out is one of this call: what helps is the same for any.
            is_of_call = failure.kind == "usage" and not family.endswith(f":{failure.subject}")
            subject = "" if is_of_call else failure.subject
            lessons = _failure_lessons(reader, keys, subject, run)
            rows = reader.select_fields(
                "episode", ("id", "extra"), *_BELIEVED_RUNS, order=("-finished",), limit=_LATEST_RUNS
            )
            # Most extras are not about the failure; finding that out by text is far cheaper than by parsing.
            spelled = json.dumps(family, ensure_ascii=False)[1:-1]
            extras = [extra for name, extra in rows if spelled in extra and not _is_same_run(run, name)]
            notes = [note for extra in extras if isinstance(note := json.loads(extra).get(NOTES), dict)]
            notes = [note if note.get("judged") else _without_risky_cures(note) for note in notes]
            held = _quarantined_words(reader, keys)
            found = describe_recovery(keys, subject, notes, lessons, held)
            if found.text:
                return found
        similar = _similar_lessons(reader, failure, error, project, run)
        if not similar:
            return RenderedBrief("", ())
        chosen = tuple(BriefedLesson(lesson) for lesson in reader.records("lesson", similar).values())
    from archivist.brief.render import render_brief
    from archivist.brief.select import BriefFormat

    return RenderedBrief(render_brief(chosen, BriefFormat.MARKDOWN), chosen)


def _find_program(reader: Reader, names: Collection[str], failure: Failure, error: str) -> Failure:
    """Return the failure that an error is if a program printed it that failed so here; else as it was given.

    Whoever has only the error, from a file of a build say, does not name the command, and most failures are
    known by it.
    """
    from archivist.reading.failures import detect_failure, failure_key

    known = {str(key) for (key,) in reader.select_fields("lesson", ("signature",), _LIVE, _BELIEVED)}
    for (extra,) in reader.select_fields(
        "episode", ("extra",), *_BELIEVED_RUNS, order=("-finished",), limit=_LATEST_RUNS
    ):
        notes = json.loads(extra).get(NOTES)
        known.update(notes.get("failures") or () if isinstance(notes, dict) else ())
    families = {failure_family(key) for key in known if key.partition("|")[0] in names}
    if failure_key(failure) in families:
        return failure
    same_kind = [family.split(":") for family in sorted(families) if family.startswith(f"{failure.kind}:")]
    for program in dict.fromkeys(parts[1] for parts in same_kind if parts[1]):
        found = detect_failure("bash", program, None, True, error)
        if found is not None and failure_key(found) in families:
            return found
    return failure


def _without_risky_cures(notes: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the notes of an older version without the cures that it did not check."""
    from archivist.reading.command_risks import drop_risky_cures

    return drop_risky_cures(notes)


def _quarantined_words(reader: Reader, keys: Sequence[str]) -> str:
    """Return the words of quarantined lessons about a failure: notes of older versions may hold them too."""
    about = one_of("signature", keys), equals("status", Status.QUARANTINED)
    rows = reader.select_fields("lesson", ("summary", "rule", "remedies"), *about, limit=_MAX_LESSONS)
    return "\n".join("\n".join((summary, rule, *json.loads(remedies))) for summary, rule, remedies in rows)


def _failure_lessons(reader: Reader, keys: Sequence[str], subject: str, run: str) -> list[Lesson]:
    """Return the live lessons about a failure: those that know a remedy first, then the most frequent."""
    names_it = any_of(*((contains_text(field, subject),) for field in ("summary", "rule", "tags")))
    rows = _select_rows(reader, one_of("signature", keys), names_it)
    rows.sort(key=lambda row: row[0] == "[]")
    ids = [str(row[1]) for row in rows if _is_relevant(row, subject, run)][:MAX_SHOWN]
    known = reader.records("lesson", ids) if ids else {}
    return [known[name] for name in ids]


def _select_rows(reader: Reader, *conditions: Condition) -> list[tuple[Any, ...]]:
    """Return the fields of live lessons, the most frequent first."""
    order = ("-frequency", "number")
    return reader.select_fields(
        "lesson", _FIELDS, *conditions, _LIVE, _BELIEVED, order=order, limit=_MAX_LESSONS
    )


def _is_relevant(row: tuple[Any, ...], subject: str, run: str) -> bool:
    """Say whether a lesson's row names what a failure is about, and another run than this one met it."""
    remedies, _, runs, summary, rule, tags, _ = row
    met_in = json.loads(runs)
    if met_in and all(_is_same_run(run, name) for name in met_in):
        return False
    return names_subject(subject, f"{summary} {rule}", json.loads(remedies), json.loads(tags))


def _is_same_run(run: str, name: str) -> bool:
    """Say whether a name is that of a run, or of the part of it that was done in another repository."""
    return name == run or (bool(run) and name.startswith(f"{run}{PART}"))


def _similar_lessons(
    reader: Reader, failure: Failure | None, error: str, project: str, run: str
) -> list[str]:
    """Return the ids of lessons of the project, and of none, that say most of what a line of an error says.

    A lesson of another repository only sounds like it. One that this run was given need not be said again.
    """
    from archivist.brief.record_service import briefed_lessons, search_records
    from archivist.recall.lexical import extract_terms, select_words

    text = failure.line if failure else error[-_LAST_CHARACTERS:]
    subject = failure.subject if failure else ""
    lines = [set(extract_terms(line).words) - _IN_ANY_ERROR for line in text.splitlines()[-_LAST_LINES:]]
    query = select_words(
        extract_terms(text), lambda words, most: reader.count_documents_with(words, at_most=most), _SCORED
    )
    if not query.words:
        return []
    found = one_of("id", list(search_records(reader, query, "lesson", _HITS)))
    rows = _select_rows(reader, found, one_of("repo", (*projects.names_of(reader, project), "")))

    def is_similar(row: tuple[Any, ...]) -> bool:
        *_, summary, rule, _, signature = row
        # A lesson about another kind of failure only shares its words.
        if subject and failure and signature and not failure_family(signature).startswith(f"{failure.kind}:"):
            return False
        words = extract_terms(f"{summary} {rule}").words
        has_most = any(
            len(line.intersection(words)) >= max(_MIN_WORDS, _MIN_SHARE * len(line)) for line in lines
        )
        return has_most and _is_relevant(row, subject, run)

    similar = [str(row[1]) for row in rows if is_similar(row)]
    known, _ = briefed_lessons(reader, run if similar else "")
    return [name for name in similar if name not in known][:_MAX_SIMILAR]
