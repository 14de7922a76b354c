"""Recognise what is worth saving in a captured run, and write a draft of it for `save_memory`.

There are five triggers: a fix after several failed attempts, a solution that no document has, an entry that
the run showed to be wrong, a decision with its reason, and important lessons of the session. People read the
drafts, so one too many costs more than one too few: a run offers at most five.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from archivist.reading.calls import ToolCall
from archivist.reading.failures import Failure
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import ObservedFailure, RunReading
from archivist.reading.wording import (
    advice,
    base_name,
    clip_words,
    code,
    differing_words,
    format_list,
    is_informative,
    is_scratch,
    mask_command,
    quote_error,
    relative_path,
    tags,
    without_paths,
)
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Category, Event, EventKind, Lesson, LessonType
from archivist.workspace.learnings import Learning
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceScope

MIN_WEIGHT = 0.6
TITLE_CHARACTERS = 120
REASON_CHARACTERS = 320
# A longer message is a pasted file or log, not something that somebody said.
MESSAGE_CHARACTERS = 4_000
_SENTENCE_CHARACTERS = 25
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_CATEGORIES = {
    Category.INFRA: "configuration",
    Category.TOOL_USAGE: "tooling",
    Category.PROVIDER_QUIRK: "integration",
    Category.TEST_STRATEGY: "testing",
    Category.BUGFIX_PATTERN: "debugging",
    Category.ANTI_PATTERN: "debugging",
    Category.PROMPTING: "convention",
    Category.HEURISTIC: "convention",
}


class SaveTrigger(StrEnum):
    """Why something is worth saving."""

    HARD_WON_FIX = "hard_won_fix"
    NON_OBVIOUS_SOLUTION = "non_obvious_solution"
    CONFLICT = "conflict"
    DECISION_MOMENT = "decision_moment"
    END_OF_SESSION = "end_of_session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry worth saving; `evidence` names the events or lessons that show it.

    `conflicts_with` is the file and line of the entry that it contradicts, `lesson` the lesson of the bank
    that it was made from.
    """

    kind: FileKind
    title: str
    text: str
    category: str
    tags: tuple[str, ...] = ()
    trigger: SaveTrigger
    evidence: tuple[str, ...] = ()
    scope: str = ""
    weight: float = MIN_WEIGHT
    conflicts_with: str = ""
    lesson: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftContext:
    """What is known already: entries, the words of all documents, and the lessons of the bank."""

    learnings: tuple[Learning, ...] = ()
    words: frozenset[str] = frozenset()
    lessons: tuple[Lesson, ...] = ()
    scope: str = ""


def end_sentence(sentence: str) -> str:
    """Return a sentence with its full stop."""
    return sentence if sentence.endswith((".", "!", "…")) else f"{sentence}."


def message_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message without list marks; fragments are left out."""
    for part in _SENTENCE.split(message[:MESSAGE_CHARACTERS]):
        sentence = " ".join(part.strip(' -*#>\t"').split())
        if len(sentence) >= _SENTENCE_CHARACTERS and not sentence.startswith(("```", "|", "{", "<")):
            yield sentence


def draft_lesson(lesson: Lesson, known: DraftContext, trigger: SaveTrigger) -> Draft:
    """Return a draft of a lesson of the bank."""
    is_preference = lesson.type is LessonType.PREFERENCE
    text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}\n\n{lesson.rule}"
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(lesson.summary, TITLE_CHARACTERS),
        text=end_sentence(text) + (f"\n\n{lesson.detail}" if lesson.detail else ""),
        category="convention" if is_preference else _CATEGORIES[lesson.category],
        tags=lesson.tags,
        trigger=trigger,
        evidence=(lesson.short_id, *lesson.evidence.events[:4]),
        scope=known.scope,
        weight=min(0.85, lesson.importance),
        lesson=lesson.id,
    )


# Decisions

_CHOICE = re.compile(
    r"\bwe(?:'ve| have)? (?:just )?(?:decided|agreed|settled|chose)\b|^decision\s*:"
    r"|\blet'?s (?:go with|use|switch to|stick with|stay with|adopt|keep)\b"
    r"|\bwe(?:'ll| will| should)? (?:go with|switch to|stick with|adopt|standardi[sz]e on)\b"
    r"|\bwe(?:'ll| will) use\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"\bi(?:'d| would)? (?:suggest|propose|recommend)\b|\bi(?:'ll| will) (?:go with|use|switch to)\b"
    r"|\bshould (?:i|we) (?:use|go with|switch)\b|\bmy recommendation\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|due to|to avoid|in order to|as it|as they|rather than|instead of|otherwise"
    r"|the reason)\b|\b(?:over|than) `?\w+|\u2014|\u2013| - ",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|sounds good|go ahead|do (?:it|that)|perfect|exactly|good"
    r"|please do|approved|let's do (?:it|that)|lgtm)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|yes|right|good|great|decision|well)\b[,.:! ]*)*"
    r"(?:we(?:'ve| have)? (?:just )?(?:decided|agreed|settled)(?: to| on| that we| that)?\s+|let'?s\s+"
    r"|we(?:'ll| will| should)\s+|i(?:'d| would)? (?:suggest|propose|recommend)(?: to| that we)?\s+"
    r"|i(?:'ll| will)\s+)?",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"\b(?:for now|this time|right now|just now|first,? let'?s|let'?s (?:use|keep) (?:the|this|that) "
    r"(?:file|test|line|command)|todo)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`([^`\n]{3,120})`")
_DECISION_CATEGORIES = (
    ("dependency", re.compile(r"\b(?:depend|package|librar|version|upgrade|pin\b|vendor)", re.IGNORECASE)),
    ("convention", re.compile(r"\b(?:naming|style|convention|format|commit|branch|lint)", re.IGNORECASE)),
    ("tooling", re.compile(r"\b(?:tool|cli|runner|build|ci\b|test|docker|pipeline|editor)", re.IGNORECASE)),
)


def draft_decisions(events: Sequence[Event], known: DraftContext) -> Iterator[Draft]:
    """Draft the choices that the user states with a reason, and the agent's that the user confirms."""
    messages = [
        event for event in events if event.kind is EventKind.MESSAGE and event.role in ("user", "assistant")
    ]
    for at, event in enumerate(messages):
        sentences = list(message_sentences(event.text)) if len(event.text) <= MESSAGE_CHARACTERS else []
        answer = next((each for each in messages[at + 1 :] if each.role == "user"), None)
        is_user = event.role == "user"
        is_confirmed = answer is not None and bool(_YES.search(answer.text))
        for place, sentence in enumerate(sentences):
            if (sentence.endswith("?") and not is_confirmed) or _TEMPORARY.search(sentence):
                continue
            is_choice = (is_user or is_confirmed) and _CHOICE.search(sentence)
            is_agreed = not is_user and is_confirmed and _PROPOSAL.search(sentence)
            if not is_choice and not is_agreed:
                continue
            # The reason may be in the next sentence.
            both = " ".join(sentences[place : place + 2])
            reasoned = next((text for text in (sentence, both) if _REASON.search(text)), "")
            if not reasoned:
                continue
            title = _OPENING.sub("", sentence)
            title = _REASON.split(title)[0].rstrip(" ,;:.-\u2014\u2013") or title
            categories = (name for name, words in _DECISION_CATEGORIES if words.search(reasoned))
            yield Draft(
                kind=FileKind.DECISIONS,
                title=clip_words(title[:1].upper() + title[1:], TITLE_CHARACTERS),
                text=end_sentence(clip_words(reasoned, 2 * REASON_CHARACTERS))
                + ("" if is_user else " The user agreed."),
                category=next(categories, "architecture"),
                tags=tags(*[code for code in _CODE.findall(reasoned) if " " not in code][:3]),
                trigger=SaveTrigger.DECISION_MOMENT,
                evidence=(event.id, answer.id) if is_confirmed and answer else (event.id,),
                scope=known.scope,
                weight=0.9 if is_user else 0.75,
            )


MAX_DRAFTS = 5
_SAME = Overlap(of_finding=0.7, of_lesson=0.4)
# With fewer words in all documents, a missing word does not show that something is undocumented.
_MIN_DOCUMENTED_WORDS = 50
_UNDOCUMENTED = 0.5
_ANY_CODE = re.compile(r"`([^`\n]+)`")
# Shorter messages, such as “1 failed”, are the same for many failures.
_QUOTED = re.compile(r"“([^”]{20,})”")


def find_drafts(reading: RunReading, events: Sequence[Event], known: DraftContext) -> list[Draft]:
    """Return what is worth saving of a run, the most important first, without repetition or known entries."""
    found = [
        *draft_conflicts(reading, known),
        *draft_hard_won_fixes(reading, events, known),
        *draft_decisions(events, known),
        *draft_long_searches(reading, events, known),
        *_draft_lessons(reading, known),
    ]
    kept: list[Draft] = []
    for draft in sorted(found, key=lambda draft: -draft.weight):
        if len(kept) == MAX_DRAFTS:
            break
        is_known = not draft.conflicts_with and any(
            _says_same(draft, learning.entry.title, learning.entry.text) for learning in known.learnings
        )
        if not is_known and not any(_repeats(draft, other) for other in kept):
            kept.append(draft)
    return kept


def new_drafts(drafts: Sequence[Draft], earlier: Sequence[Draft]) -> list[Draft]:
    """Return the drafts that do not repeat earlier ones of other runs."""
    return [draft for draft in drafts if not any(_repeats(draft, other) for other in earlier)]


def _repeats(draft: Draft, other: Draft) -> bool:
    """Say whether two drafts have the same event, the same error message, or the same words.

    Two lessons of the bank always differ, because the bank merges those that say the same.
    """
    if draft.lesson and other.lesson:
        return draft.lesson == other.lesson
    if set(draft.evidence) & set(other.evidence):
        return True
    for one, two in ((draft, other), (other, draft)):
        quotes = (" ".join(quote.rstrip("….").split()) for quote in _QUOTED.findall(one.text))
        if any(quote in " ".join(two.text.split()) for quote in quotes):
            return True
    return _says_same(draft, other.title, other.text)


def _says_same(draft: Draft, title: str, text: str) -> bool:
    if " ".join(draft.title.lower().split()) == " ".join(title.lower().split()):
        return True
    whole, other = f"{draft.title} {draft.text}", f"{title} {text}"
    codes, other_codes = set(_ANY_CODE.findall(whole)), set(_ANY_CODE.findall(other))
    # The same words about other commands are about something else.
    if codes and other_codes and not codes & other_codes:
        return False
    return matches(keywords(whole), keywords(other), frozenset(), _SAME)


def _draft_lessons(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft the lessons of a run that no document mentions, and the important ones."""
    lessons = [
        lesson
        for lesson in known.lessons
        if reading.episode.id in lesson.runs
        and lesson.status.is_live
        # To edit a file is no remedy unless the lesson says how.
        and (set(lesson.remedies) - {"edit"} or lesson.type is LessonType.PREFERENCE)
    ]
    if len(known.words) >= _MIN_DOCUMENTED_WORDS:
        for lesson in lessons:
            words = keywords(" ".join(lesson.remedies[:1]))
            if words and len(words - known.words) >= _UNDOCUMENTED * len(words):
                yield draft_lesson(lesson, known, SaveTrigger.NON_OBVIOUS_SOLUTION)
    for lesson in lessons:
        if lesson.importance >= MIN_WEIGHT:
            yield draft_lesson(lesson, known, SaveTrigger.END_OF_SESSION)


def scope_of_project(project: str, scopes: Sequence[WorkspaceScope]) -> str:
    """Return the scope of a run's project: by its name, else the only workspace, else none."""
    name = project.rstrip("/").rsplit("/", 1)[-1].lower()
    for depth in range(LEVELS, 0, -1):
        found = [scope for scope in scopes if len(scope.parts) == depth and scope.parts[-1].lower() == name]
        if name and len(found) == 1:
            return str(found[0])
    workspaces = {scope.workspace for scope in scopes}
    return workspaces.pop() if len(workspaces) == 1 else ""


# Fixes

_MIN_FAILURES = 2
_LONG_SEARCH = 5
_VERY_LONG_SEARCH = 10
_MANY_FAILURES = 3
_MESSAGES_AFTER_FIX = 3
# A patch that does not apply or a missing bracket is a slip, not a problem.
_SLIPS = frozenset((FailureKind.EDIT_NOT_APPLIED, FailureKind.SYNTAX))
_INSTALLS = frozenset(("install", "add", "i"))
# Names of code: a digit, an underscore or a capital inside.
_NAMES = re.compile(r"\b(?=\w*(?:\d|_|[a-z][A-Z]))(?!\d+\b)\w{3,}\b|(?<=[`'\"])\w{3,}(?=[`'\"])")
_VAGUE = frozenset(
    ("error", "errors", "test", "tests", "failed", "main", "lib", "mod", "index", "init", "src")
)
_REDIRECTION = re.compile(r"\s+(?:[12&]?>+\s*(?:&\d|/dev/null)|2>&1)")
_EXPLAINS = re.compile(
    r"\broot cause\b|\bturns? out\b|\b(?:is|was|were) caused by\b|\bthe fix (?:is|was)\b"
    r"|\bthe (?:real |actual |underlying )?(?:problem|issue|bug|reason|cause|culprit) (?:is|was)"
    r"(?: that| because| due| in| with| how|:)"
    r"|\b(?:fail(?:s|ed)?|br(?:eaks|oke)|happen(?:s|ed)|crash(?:es|ed)|errors?|this is|that is) because\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:i think|maybe|might|perhaps|suggests?|seems?|could be|probably|let me|not sure|should work)\b",
    re.IGNORECASE,
)
# Lines that count failures without saying what failed.
_SUMMARY = re.compile(
    r"^File \"|could not compile|previous errors?\b|^exit code|^\d+ (?:failed|errors?)"
    r"|^\w*(?:error|exception):?$",
    re.IGNORECASE,
)
_PREFACE = re.compile(
    r"^(?:(?:so|ok|okay|now|found it|got it)[,:.!]?\s+)*"
    r"(?:the (?:real |actual )?root cause (?:is|was)(?: that)?[: ]\s*|root cause:\s*)?",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(
    r"https?://|site-packages|dist-packages|node_modules|/usr/(?:lib|include)|--help\b|^man |pip download",
    re.IGNORECASE,
)
_OUTSIDE_TOOL = re.compile(r"web|fetch|browser|search_web|url", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:not|never|don't|avoid|instead of|rather than|stop|fails?|broken)(?!\s+forget)"
    r"(?:\s+[\w']+){0,3}[\s,\"'(]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Fix:
    """A goal that failed at least once and was then reached, with the calls between."""

    failed: tuple[ToolCall, ...]
    success: ToolCall
    between: tuple[ToolCall, ...]

    @property
    def after_last_failure(self) -> list[ToolCall]:
        return [call for call in self.between if call.at > self.failed[-1].at]


def draft_hard_won_fixes(
    reading: RunReading, events: Sequence[Event], known: DraftContext
) -> Iterator[Draft]:
    """Draft the fixes after at least two failed attempts, where the run says what helped."""
    for fix in _find_fixes(reading):
        first, last = fix.failed[0].at, fix.failed[-1].at
        # Repeating the same call is no attempt: something must have changed between two failures.
        has_attempt = any(first < call.at < last and (call.changes or call.installs) for call in fix.between)
        draft = _draft_fix(fix, events, known, SaveTrigger.HARD_WON_FIX) if has_attempt else None
        if draft and len(fix.failed) >= _MIN_FAILURES:
            yield draft
    yield from _draft_remedies(reading, known)


def draft_long_searches(reading: RunReading, events: Sequence[Event], known: DraftContext) -> Iterator[Draft]:
    """Draft the fixes that took a long search, some of it outside the project."""
    for fix in _find_fixes(reading):
        looks = [call for call in fix.between if call.is_look]
        is_outside = any(
            _OUTSIDE.search(f"{call.event.text} {call.event.target}")
            or (not call.steps and _OUTSIDE_TOOL.search(call.event.tool))
            for call in looks
        )
        if len(looks) >= _VERY_LONG_SEARCH or (is_outside and len(looks) >= _LONG_SEARCH):
            draft = _draft_fix(fix, events, known, SaveTrigger.NON_OBVIOUS_SOLUTION)
            if draft:
                yield draft


def _find_fixes(reading: RunReading) -> Iterator[_Fix]:
    """Yield each goal that failed and was reached later."""
    failed: dict[tuple[str, tuple[str, ...]], list[ToolCall]] = {}
    for call in reading.acts:
        if (
            call.is_look
            or not call.steps
            or not call.main
            or not call.purpose
            or call.purpose == "write file"
        ):
            continue
        # The agent's own script that reproduces the bug is meant to fail.
        if call.purpose.endswith("<script>") and any(is_scratch(each) for each in call.main.arguments):
            continue
        # The goal is the same program on the same arguments.
        goal = (call.purpose, call.main.arguments)
        if call.failure is not None:
            if call.failure.kind not in _SLIPS:
                failed.setdefault(goal, []).append(call)
        elif goal in failed:
            failures = failed.pop(goal)
            yield _Fix(tuple(failures), call, reading.acts[failures[0].at + 1 : call.at])


def _draft_fix(fix: _Fix, events: Sequence[Event], known: DraftContext, trigger: SaveTrigger) -> Draft | None:
    """Return a draft of a fix, or None when neither the changes nor the agent say what helped."""
    failures = [call.failure for call in fix.failed if call.failure]
    specific = [failure for failure in failures if not _SUMMARY.search(quote_error(failure.line))]
    if not specific:
        return None
    failure = specific[-1]
    changes, is_exact = _describe_changes(fix)
    reason = _reason_of(fix, events)
    # Without an explanation the fix must have been hard: many attempts, and no slip in new code.
    is_hard = len(fix.failed) >= _MANY_FAILURES and not failures[-1].is_own_code
    if not reason and (not (is_exact and is_hard) or _is_obvious(failure, changes)):
        return None
    error = quote_error(failure.line)
    command = _REDIRECTION.sub("", without_paths(fix.success.main.text if fix.success.main else ""))
    times = f"failed {len(fix.failed)} times" if len(fix.failed) > 1 else "failed"
    parts = [f"{code(clip_words(command, 100))} {times} with “{error}”."]
    parts += [f"Root cause: {reason}"] if reason else []
    parts += [f"What helped: {changes}."] if changes else []
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(f"{error} ({fix.success.purpose})", TITLE_CHARACTERS),
        text="\n\n".join(parts),
        category="debugging",
        tags=tags(*fix.success.purpose.split()[:1], failure.subject.split(".")[0]),
        trigger=trigger,
        evidence=(*(call.event.id for call in fix.failed[:3]), fix.success.event.id),
        scope=known.scope,
        weight=min(0.95, 0.6 + 0.05 * len(fix.failed) + (0.1 if reason else 0.0)),
    )


def _describe_changes(fix: _Fix) -> tuple[str, bool]:
    """Return the changes after the last failure in words, and whether they are exact."""
    calls = [call for call in fix.after_last_failure if not call.has_failed]
    installs = dict.fromkeys(install.text for call in calls for install in call.installs)
    changes = [
        change for call in calls for change in call.changes if change.file and not is_scratch(change.file)
    ]
    failure = fix.failed[-1].failure
    if installs and (not changes or (failure and failure.kind.is_environment)):
        return format_list([code(install) for install in list(installs)[-2:]]), True
    if not changes:
        return "", False
    names = dict.fromkeys(change.file for change in changes)
    files = format_list([code(relative_path(file)) for file in names], most=4)
    old, new = differing_words(changes[-1].old.strip(), changes[-1].new.strip())
    if len(changes) == 1 and old and new and "\n" not in old + new and len(old) + len(new) < 120:
        return f"change {code(old)} to {code(new)} in {files}", True
    return f"changes in {files}", False


def _reason_of(fix: _Fix, events: Sequence[Event]) -> str:
    """Return the agent's own sentence about the cause, written since the last failure but one."""
    start, end = fix.failed[-2:][0].event.seq, fix.success.event.seq
    messages = [
        event
        for event in events
        if event.kind is EventKind.MESSAGE and event.role == "assistant" and event.seq > start
    ]
    before = [event for event in messages if event.seq < end]
    after = [event for event in messages if event.seq > end][:_MESSAGES_AFTER_FIX]
    # The cause must name the subject: words of the failures, or of what was changed.
    failures = [call.failure for call in fix.failed if call.failure]
    texts = [part for failure in failures for part in (failure.subject, *_NAMES.findall(failure.line))]
    for change in (change for call in fix.after_last_failure for change in call.changes):
        texts += [base_name(change.file).rsplit(".", 1)[0], *_NAMES.findall(f"{change.old} {change.new}")]
    topic = keywords(" ".join(texts)) - _VAGUE
    for event in (*reversed(before), *after):
        for sentence in message_sentences(event.text):
            is_cause = _EXPLAINS.search(sentence) and not _UNSURE.search(sentence)
            if is_cause and not sentence.endswith("?") and topic & keywords(sentence):
                cause = _PREFACE.sub("", sentence)
                return end_sentence(clip_words(cause[:1].upper() + cause[1:], REASON_CHARACTERS))
    return ""


def _draft_remedies(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft the failures of the environment that recurred until a remedy was found."""
    totals, seen = Counter(met.key for met in reading.met), Counter[str]()
    for met in reading.met:
        seen[met.key] += 1
        times = totals[met.key]
        if seen[met.key] < times or times < _MIN_FAILURES or not _is_cured(met):
            continue
        if met.is_of_code or met.failure.kind in _SLIPS or met.cure is None:
            continue
        is_vague = met.cure.remedy.way is RemedyKind.EDIT and met.cure.remedy.text == "edit"
        if is_vague or _is_obvious(met.failure, met.cure.remedy.text):
            continue
        error, remedy = quote_error(met.failure.line), advice(met.cure.remedy)
        command = code(clip_words(mask_command(met.act.text), 100))
        yield Draft(
            kind=FileKind.LESSONS,
            title=clip_words(f"{error}: {remedy}", TITLE_CHARACTERS),
            text=f"{command} failed {times} times with “{error}”.\n\nWhat helped: {remedy}.",
            category="configuration" if met.failure.kind.is_environment else "debugging",
            tags=tags(*met.act.purpose.split()[:1], met.failure.subject.split(".")[0]),
            trigger=SaveTrigger.HARD_WON_FIX,
            evidence=(met.act.event.id, *(call.event.id for call in met.cure.acts[:2])),
            scope=known.scope,
            weight=min(0.95, 0.6 + 0.05 * times),
        )


def _is_cured(met: ObservedFailure) -> bool:
    return met.cure is not None and not any(call.has_failed for call in met.cure.acts)


def _is_obvious(failure: Failure, remedy: str) -> bool:
    """Say whether anybody would try the remedy first: install what is missing, by its name."""
    if failure.kind not in (FailureKind.MISSING_MODULE, FailureKind.MISSING_COMMAND):
        return False
    missing = failure.subject.split(".")[0].lower().replace("_", "-")
    words = {word.lower().replace("_", "-") for word in re.findall(r"[\w.-]+", remedy)}
    return bool(missing) and missing in words and bool(words & _INSTALLS)


# Conflicts


def draft_conflicts(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft what a run shows to be wrong in an entry: the advised call failed, and another one worked."""
    for learning in known.learnings:
        entry = learning.entry
        for met in reading.met:
            if met.cure is None or not _is_cured(met):
                continue
            remedy = met.cure.remedy
            if remedy.way not in (RemedyKind.COMMAND, RemedyKind.PATH) or not is_informative(remedy.text):
                continue
            advised = next(
                (each for each in advised_code(entry.text) if _is_advised_call(each, met, remedy.way)), ""
            )
            # A call that worked elsewhere in the same run is not wrong as such.
            has_worked = any(
                not call.has_failed and any(_starts_with(step.text, advised) for step in call.steps)
                for call in reading.acts
            )
            if not advised or remedy.text in entry.text or has_worked:
                continue
            error = quote_error(met.failure.line)
            earlier = f"Earlier advice{f' of {entry.date}' if entry.date else ''}: {entry.title}."
            yield Draft(
                kind=learning.kind,
                title=clip_words(f"{entry.title}: {code(advised)} no longer works", TITLE_CHARACTERS),
                text=f"{code(advised)} failed with “{error}”; what worked: {advice(remedy)}.\n\n{earlier}",
                category=entry.category or "debugging",
                tags=entry.tags,
                trigger=SaveTrigger.CONFLICT,
                evidence=(met.act.event.id, *(call.event.id for call in met.cure.acts[:2])),
                scope=str(learning.scope) or known.scope,
                weight=0.97,
                conflicts_with=learning.place,
            )
            break


def advised_code(text: str) -> list[str]:
    """Return the code that a text advises; code after a negation is not advised."""
    return [
        found[1].strip() for found in _CODE.finditer(text) if not _NEGATED.search(text[: found.start()][-40:])
    ]


def _is_advised_call(advised: str, met: ObservedFailure, way: RemedyKind) -> bool:
    if way is RemedyKind.PATH:
        return relative_path(met.failure.subject) == relative_path(advised) and "/" in advised
    return " " in advised and any(_starts_with(step.text, advised) for step in met.act.steps)


def _starts_with(text: str, advised: str) -> bool:
    words, wanted = text.split(), advised.split()
    return words[: len(wanted)] == wanted
