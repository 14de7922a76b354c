"""Say what earlier runs did about an error: what worked, and in how many of them.

An agent waits next to its error. So what decides whether there is anything to say reads single fields of the
tables; records are made only for what is shown, and the classes have no postponed annotations.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist import projects
from archivist.brief.select import (
    BriefedLesson,
    RenderedBrief,
    fit_to_sandbox,
    is_for,
    is_of_person,
    says_remedy,
    says_to_ask,
    word_for_approvals,
)
from archivist.brief.works import find_approvals
from archivist.records.words import NOTES, OUTSIDE_ADVICE, PART, Provenance, Status
from archivist.store.filters import (
    Condition,
    any_of,
    at_least,
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
_FIELDS = ("remedies", "id", "runs", "summary", "rule", "tags", "signature", "detail")
# How many of the latest runs are asked what they did about an error, and how many lessons.
_LATEST_RUNS = 500
_MAX_LESSONS = 50
# How many events that the latest runs noted are looked for in what lessons cite.
_MAX_CITED = 12
# The end of an output says what failed.
_LAST_CHARACTERS = 2_000
_LAST_LINES = 20
_HITS = 50
_MAX_SIMILAR = 2
# Above this many documents scoring every word took longer than a hook has; only rare words are scored then.
_SCORED = 4_000
# More than three remedies are a list to read, not a help next to an error.
MAX_SHOWN = 3
# What only a mode of one client makes possible, as its runs note it.
_OF_CLIENT = OUTSIDE_ADVICE
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
    withheld: str = "",
) -> RenderedBrief:
    """Say what the digests of earlier runs and the lessons know of a failure.

    Facts only: the reader decides. `keys` name the failure under each name of the repository: what another
    repository did, which a stranger may have written, is not told. A failure that is about something (a
    module, a flag, a file) is the same only when it is about that. A failure that was met and never overcome
    gives an empty text. What a person worded or approved is told in these words, and nothing beside it. No
    remedy is told that stands in the `withheld` words.
    """
    noted = [digest.get("failures") for digest in digests]
    met = [
        failure
        for each in noted
        if isinstance(each, Mapping)
        for key, failure in each.items()
        if key in keys and _is_about(subject, failure.get("subjects"))
    ]
    approved = [lesson for lesson in lessons if is_of_person(lesson)]
    worked: tuple[str, ...] = ()
    # A refused edit has one remedy in all briefs, whatever each run did next.
    is_described = any(_is_described(lesson) for lesson in lessons if lesson.signature in keys)
    if not (approved or is_described):
        known = [remedy for lesson in lessons if lesson.signature in keys for remedy in lesson.remedies]
        worked = _describe_remedies(met, subject, withheld, known) or _describe_remedies(
            _proven_guesses(noted, keys), subject, withheld, known
        )
    advised = [(lesson, advice) for lesson in approved or lessons if (advice := _advice(lesson))]
    if not worked and not advised:
        return RenderedBrief("", ())
    lines = ["### What is known about this error", ""]
    if met and worked:
        # As lists and briefs count it, where there is a lesson. Without its words: who asks has them, and a
        # program chose them.
        own = next((lesson for lesson in lessons if lesson.signature in keys), None)
        count = len(own.runs) if own else len(met)
        lines.append("Met once before." if count == 1 else f"Met in {count} runs before.")
    lines += [f"- {remedy}" for remedy in worked[:MAX_SHOWN]]
    lines += [f"- {_describe_lesson(lesson, advice)}" for lesson, advice in advised if not worked]
    chosen = approved or lessons
    return RenderedBrief("\n".join(lines) + "\n", tuple(BriefedLesson(lesson) for lesson in chosen))


def _describe_lesson(lesson: Lesson, advice: str) -> str:
    met_in = f"met in {_count_runs(len(lesson.runs))}"
    if is_of_person(lesson) and lesson.provenance.is_own:
        by_user = "said" if lesson.provenance is Provenance.TYPED else "approved"
        counted = f", {met_in}" if by_user == "approved" else ""
        return f"{advice} (lesson {lesson.short_id}, {by_user} by the user{counted})"
    brought = "" if lesson.provenance.is_own else f" ({lesson.provenance.label}, approved)"
    return f"lesson {lesson.short_id}{brought}, {met_in}: {advice}"


def _proven_guesses(noted: Sequence[Any], keys: Collection[str]) -> list[Mapping[str, Any]]:
    """Return what may have overcome a failure, noted by its remedy, where two runs did the same."""
    families = {failure_family(key) for key in keys}
    repos = {key.partition("|")[0] for key in keys}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for key, failure in (item for each in noted if isinstance(each, Mapping) for item in each.items()):
        if key.partition("|")[0] in repos and not families.isdisjoint(failure.get("of") or ()):
            found.setdefault(key, []).append(failure)
    return [failure for those in found.values() if len(those) > 1 for failure in those]


def _describe_remedies(
    met: Sequence[Mapping[str, Any]], subject: str, quarantined: str, known: Sequence[str]
) -> tuple[str, ...]:
    """Say what worked in runs, the latest given first, in how many of them, and whether it failed since.

    Calls that are an instance of a `known` remedy count as that: what else a run did there was its task.
    """
    cures = [
        {
            _as_known(str(text), known): str(way[0]) if way else ""
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
    vain = [[_as_known(str(text), known) for text in failure.get("in_vain") or ()] for failure in met]
    attempts = list(zip(cures, vain, strict=True))
    proven = proofs(attempts[::-1])
    ranked = sorted(ways, key=lambda text: proven[text].rank)
    # Beside what several runs proved, another way that one run found is a line to read for nothing.
    least = min(2, proven[ranked[0]].runs)
    for text in ranked:
        runs, has_failed, *_ = proven[text]
        if runs < least:
            continue
        is_command = ways[text] not in _DESCRIBED
        shown = _as_code(text) if is_command else text
        if is_command and is_destructive(text):
            # What one run destroyed is not repeated; what several did is shown as a warning.
            warnings += [f"{_count_runs(runs)} did {shown}, {WARNING}"] if runs > 1 else []
        elif text == OUTSIDE_ADVICE:
            lines.append(f"{text} (worked in {_count_runs(runs)})")
        else:
            since = ", but not when it was tried last" if has_failed else ""
            lines.append(f"worked in {_count_runs(runs)}{since}: {shown}")
    return (*lines, *warnings)


def _as_known(text: str, known: Iterable[str]) -> str:
    """Return the known remedy whose words a call begins with, where `<name>` stands for any word."""
    words = text.split()
    for remedy in known:
        asked = remedy.split()
        if len(asked) <= len(words) and all(
            one == other or (one.startswith("<") and one.endswith(">"))
            for one, other in zip(asked, words, strict=False)
        ):
            return remedy
    return text


def _advice(lesson: Lesson) -> str:
    """Return what a lesson says to do; where it has several remedies, its summary says which is for what."""
    if is_of_person(lesson):
        # A person read or wrote these words.
        words = lesson.summary if says_remedy(lesson) else f"{lesson.summary.rstrip('.')}. {lesson.rule}"
        return " ".join(words.split())
    if len(lesson.remedies) == 1:
        return lesson.remedies[0] if _is_described(lesson) else _as_code(lesson.remedies[0])
    # A lesson without a rule only says that the failure was met.
    return " ".join(lesson.summary.split()) if lesson.rule else ""


def _is_described(lesson: Lesson) -> bool:
    """Say whether a lesson's remedy is told in words, not as a command."""
    return bool(lesson.remedies) and failure_family(lesson.signature).startswith("edit_not_applied:")


def _count_runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(_is_same_subject(str(each).lower(), subject.lower()) for each in subjects)


def _is_same_subject(one: str, other: str) -> bool:
    """Say whether two names are of one thing: a file may be named with more of the folders above it."""
    return one == other or f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


def names_subject(subject: str, words: str, remedies: Iterable[str], tags: Iterable[str]) -> bool:
    """Say whether a lesson's words or tags name a thing; what it advises instead is not what it is about.

    A longer name is another's: `pvlib-python` is not `pvlib`.
    """
    if not subject:
        return True
    for remedy in remedies:
        words = words.replace(remedy, " ")
    whole = rf"(?<![\w-]){re.escape(_bare_name(subject).lower())}(?![\w-])"
    return re.search(whole, f"{words} {' '.join(tags)}".lower()) is not None


def _bare_name(subject: str) -> str:
    """Return the name of a file without the folders above it, which are of one machine; else the whole."""
    folder, _, name = subject.rpartition("/")
    return name if folder and (subject.startswith("/") or "." in name.strip(".")) else subject


class HealRequest(NamedTuple):
    """What is known of a call that failed: which tool, which command, whose run in which project.

    `repo` is a name that somebody gave, `project` the exact name in the bank.
    """

    tool: str = ""
    command: str = ""
    repo: str = ""
    project: str = ""
    run: str = ""
    provider: str = ""


def heal(bank: Bank, error: str, asked: HealRequest) -> RenderedBrief:
    """Say what earlier runs did about an error, known by its signature; else what says nearly the same.

    The run that asks is not an earlier one. An error that nobody met gives an empty text, and so does one
    whose lesson a person forgot.
    """
    from archivist.reading.failures import detect_failure
    from archivist.reading.signatures import is_telling

    # Runs are read without their folder, too: elsewhere the same file has another path.
    root = f"{str(bank.folder or bank.root).rstrip('/')}/"
    command, error = (text.replace(root, "") if len(root) > 1 else text for text in (asked.command, error))
    failure = detect_failure(asked.tool or "bash", command, None, True, error)
    with bank.reading() as reader:
        project = asked.project or projects.resolve_project(reader, asked.repo, bank.folder, bank.root)[0]
        # What is filed under no repository holds for all.
        names = tuple(dict.fromkeys((*projects.names_of(reader, project), "")))
        if failure is not None and not command and not asked.tool:
            failure, command = _find_program(reader, names, failure, error)
            if not is_telling(failure.line):
                return RenderedBrief("", ())
        is_forgotten = False
        if failure is not None:
            asked = asked._replace(command=command)
            found, is_forgotten = _heal_known(reader, names, failure, error, asked)
            if says_to_ask(found.text):
                mode = find_approvals(reader, names, asked.provider)
                lines = [word_for_approvals(line, mode) for line in found.text.splitlines(keepends=True)]
                return found._replace(text="".join(lines))
            if found.text:
                return found
        similar = _similar_lessons(reader, failure, error, project, asked.run)
        found_like = reader.records("lesson", similar).values() if similar else ()
        # A failure that is filed as a lesson says was looked up above.
        lessons = [
            lesson for lesson in found_like if is_for(lesson, asked.provider) and _may_acquit(lesson, ())
        ]
        lessons = fit_to_sandbox(lessons, lambda: find_approvals(reader, names, asked.provider))
        # What a person forgot is not told in the words of another lesson that only sounds like it.
        return _render([lesson for lesson in lessons if not is_forgotten or is_of_person(lesson)])


def _render(lessons: Iterable[Lesson]) -> RenderedBrief:
    from archivist.brief.render import render_brief
    from archivist.brief.select import BriefFormat

    chosen = tuple(map(BriefedLesson, lessons))
    return RenderedBrief(render_brief(chosen, BriefFormat.MARKDOWN), chosen)


def _heal_known(
    reader: Reader, names: Collection[str], failure: Failure, error: str, asked: HealRequest
) -> tuple[RenderedBrief, bool]:
    """Say what is known of a failure by the keys under which runs filed it, and whether a person forgot it.

    Lessons that only warn are told where no other says what helped.
    """
    from archivist.reading.failures import failure_key
    from archivist.reading.filing import filed_keys

    own = failure_key(failure)
    warnings: dict[str, Lesson] = {}
    all_filed = filed_keys(asked.command, error, failure)
    families = {filed.family for filed in all_filed}
    for filed in all_filed:
        keys = [f"{name}|{filed.family}" for name in names]
        notes = _read_notes(reader, filed.family, asked) if filed.family == own else []
        events = _cited_events(keys, filed.subject, notes)
        lessons, forgotten = _failure_lessons(reader, keys, events, filed.subject, asked.run)
        lessons = [
            lesson for lesson in lessons if is_for(lesson, asked.provider) and _may_acquit(lesson, families)
        ]
        if forgotten and not lessons:
            return RenderedBrief("", ()), True
        if filed.family != own:
            # Of what the output says besides, and of its checks, one run shows too little.
            lessons = [lesson for lesson in lessons if lesson.status is Status.ACTIVE]
        withheld = _quarantined_words(reader, keys) + "".join(map(_words_of, forgotten))
        if (found := describe_recovery(keys, filed.subject, notes, lessons, withheld)).text:
            return found, False
        warnings |= {lesson.id: lesson for lesson in lessons if lesson.status is Status.ACTIVE}
    return _render([*warnings.values()][:_MAX_SIMILAR]), False


def _may_acquit(lesson: Lesson, families: Collection[str]) -> bool:
    """Say whether a lesson that calls a failure nobody's bug is filed as this failure is.

    Its key names the test, the folder or the error; what only cites an output like this one may be wrong.
    """
    return not (lesson.is_acquittal and lesson.signature) or failure_family(lesson.signature) in families


def _read_notes(reader: Reader, family: str, asked: HealRequest) -> list[Mapping[str, Any]]:
    """Return the notes of the latest runs about a failure, the latest first, but for the run that asks."""
    rows = reader.select_fields(
        "episode", ("id", "provider", "extra"), *_BELIEVED_RUNS, order=("-finished",), limit=_LATEST_RUNS
    )
    # Most extras are not about the failure; finding that out by text is far cheaper than by parsing.
    spelled = json.dumps(family, ensure_ascii=False)[1:-1]
    notes: list[Mapping[str, Any]] = []
    for name, provider, extra in rows:
        if spelled not in extra or _is_same_run(asked.run, name):
            continue
        note = json.loads(extra).get(NOTES)
        if not isinstance(note, dict):
            continue
        note = note if note.get("judged") else _without_risky_cures(note)
        is_other_client = asked.provider not in ("", provider)
        notes.append(_without_modes(note) if is_other_client and _OF_CLIENT in extra else note)
    return notes


def _without_modes(note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes of another client's run without what only a mode of that client makes possible."""
    failures = {
        key: {**failure, "cures": [cure for cure in failure.get("cures") or () if _OF_CLIENT not in cure]}
        for key, failure in (note.get("failures") or {}).items()
    }
    return {**note, "failures": failures}


def _cited_events(keys: Collection[str], subject: str, notes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the latest events that runs noted of a failure: lessons of another key may cite them.

    A lesson may be about what overcame several failures, or unite failures that are told in nearly one way.
    """
    families = {failure_family(key) for key in keys}
    repos = {key.partition("|")[0] for key in keys}
    noted = (failures for note in notes if isinstance(failures := note.get("failures"), Mapping))
    events = (
        str(event)
        for failures in noted
        for key, failure in failures.items()
        if key in keys
        or (key.partition("|")[0] in repos and not families.isdisjoint(failure.get("of") or ()))
        if _is_about(subject, failure.get("subjects"))
        for event in failure.get("events") or ()
    )
    return list(dict.fromkeys(events))[:_MAX_CITED]


def _find_program(
    reader: Reader, names: Collection[str], failure: Failure, error: str
) -> tuple[Failure, str]:
    """Return the failure that an error is if a program printed it that failed so here, and the program.

    Otherwise it is the failure as it was given.

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
        return failure, ""
    same_kind = [family.split(":") for family in sorted(families) if family.startswith(f"{failure.kind}:")]
    for program in dict.fromkeys(parts[1] for parts in same_kind if parts[1]):
        found = detect_failure("bash", program, None, True, error)
        if found is not None and failure_key(found) in families:
            return found, program
    return failure, ""


def _without_risky_cures(notes: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the notes of an older version without the cures that it did not check."""
    from archivist.reading.command_risks import drop_risky_cures

    return drop_risky_cures(notes)


def _quarantined_words(reader: Reader, keys: Sequence[str]) -> str:
    """Return the words of quarantined lessons about a failure: notes of older versions may hold them too."""
    about = one_of("signature", keys), equals("status", Status.QUARANTINED)
    return "".join(map(_words_of, _find_lessons(reader, *about)))


def _words_of(lesson: Lesson) -> str:
    return "\n".join((lesson.summary, lesson.rule, *lesson.remedies, ""))


def _failure_lessons(
    reader: Reader, keys: Sequence[str], events: Sequence[str], subject: str, run: str
) -> tuple[list[Lesson], list[Lesson]]:
    """Return the live lessons of a failure's keys or that cite one of its events, and those a person forgot.

    First come those that a person worded or approved, then those that know a remedy, then the most frequent.
    Of a lesson that another one replaced, that one is told.
    """
    names_it = ((contains_text(field, _bare_name(subject)),) for field in ("summary", "rule", "tags"))
    has_key = one_of("signature", keys)
    found = _find_lessons(reader, has_key, any_of(*names_it, (equals("confirmed", 1),)), _LIVE, _BELIEVED)
    is_retired = one_of("status", (Status.ARCHIVED, Status.SUPERSEDED)), at_least("frequency", 1)
    found += _find_lessons(reader, has_key, *is_retired)
    found = [lesson for lesson in found if _is_about_subject(reader, lesson, subject)]
    if events and all(lesson.status is not Status.ACTIVE for lesson in found):
        # No index helps here, so it is asked last.
        cites = any_of(*((contains_text("evidence", json.dumps(event)),) for event in events))
        found += _find_lessons(reader, cites, _LIVE, _BELIEVED) + _find_lessons(reader, cites, *is_retired)
    live: dict[str, Lesson] = {}
    forgotten: list[Lesson] = []
    for lesson in found:
        last = _follow(reader, lesson)
        if last.status.is_live and not last.is_waiting:
            live.setdefault(last.id, last)
        elif last.status is Status.ARCHIVED and not last.is_found_useless:
            forgotten.append(lesson)
    met = [lesson for lesson in live.values() if not _is_only_of(run, lesson)]
    met.sort(
        key=lambda lesson: (
            not is_of_person(lesson),
            not lesson.remedies,
            lesson.status is not Status.ACTIVE,
        )
    )
    return met[:MAX_SHOWN], forgotten


def _find_lessons(reader: Reader, *conditions: Condition) -> list[Lesson]:
    """Return lessons, the most frequent first; where there are none, no record is made."""
    rows = reader.select_fields(
        "lesson", ("id",), *conditions, order=("-frequency", "number"), limit=_MAX_LESSONS
    )
    found = reader.records("lesson", [str(name) for (name,) in rows]) if rows else {}
    return list(found.values())


def _follow(reader: Reader, lesson: Lesson) -> Lesson:
    """Return the lesson that took a lesson's place in the end."""
    seen = {lesson.id}
    while lesson.status is Status.SUPERSEDED and lesson.superseded_by not in seen:
        successor = reader.records("lesson", [lesson.superseded_by]).get(lesson.superseded_by)
        if successor is None:
            break
        lesson = successor
        seen.add(lesson.id)
    return lesson


def _is_about_subject(reader: Reader, lesson: Lesson, subject: str) -> bool:
    """Say whether a lesson names what a failure is about, or did before a person reworded it."""
    if names_subject(subject, f"{lesson.summary} {lesson.rule}", lesson.remedies, lesson.tags):
        return True
    if not (lesson.confirmed or lesson.status.is_retired):
        return False
    versions: list[Mapping[str, Any]] = [
        change.after for change in reader.changes(record_id=lesson.id) if change.after
    ]
    return any(
        names_subject(
            subject,
            f"{version.get('summary', '')} {version.get('rule', '')}",
            version.get("remedies") or (),
            version.get("tags") or (),
        )
        for version in versions
    )


def _is_only_of(run: str, lesson: Lesson) -> bool:
    """Say whether no other run than this one met a lesson."""
    return bool(lesson.runs) and all(_is_same_run(run, name) for name in lesson.runs)


def _select_rows(reader: Reader, *conditions: Condition) -> list[tuple[Any, ...]]:
    """Return the fields of live lessons, the most frequent first."""
    order = ("-frequency", "number")
    return reader.select_fields(
        "lesson", _FIELDS, *conditions, _LIVE, _BELIEVED, order=order, limit=_MAX_LESSONS
    )


def _is_relevant(row: tuple[Any, ...], subject: str, run: str) -> bool:
    """Say whether a lesson's row names what a failure is about, and another run than this one met it."""
    remedies, _, runs, summary, rule, tags, *_ = row
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
        *_, summary, rule, _, signature, message = row
        # A lesson about another kind of failure only shares its words.
        if subject and failure and signature and not failure_family(signature).startswith(f"{failure.kind}:"):
            return False
        words = extract_terms(f"{summary} {rule} {message}").words
        has_most = any(
            len(line.intersection(words)) >= max(_MIN_WORDS, _MIN_SHARE * len(line)) for line in lines
        )
        return has_most and _is_relevant(row, subject, run)

    similar = [str(row[1]) for row in rows if is_similar(row)]
    known, _ = briefed_lessons(reader, run if similar else "")
    return [name for name in similar if name not in known][:_MAX_SIMILAR]
