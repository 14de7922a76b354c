"""Recognise what is worth saving in a captured run, and write a draft of it for `save_memory`.

There are five triggers: a fix after several failed attempts, a solution that no document has, an entry that
the run showed to be wrong, a decision, and important lessons of the session. People read the drafts, so one
too many costs more than one too few: a run offers at most five.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.failures import Failure
from archivist.reading.observed import ObservedFailure
from archivist.reading.remedies import RemedyKind
from archivist.reading.replacements import Cure
from archivist.reading.rules import FailureKind
from archivist.reading.run import RunReading
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
from archivist.workspace.save import MemoryKind, category_of, title_of
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceScope

MAX_DRAFTS = 5
_MIN_WEIGHT = 0.6
_REASON_CHARACTERS = 320
# A longer message is a pasted file or log, not something that somebody said.
_MESSAGE_CHARACTERS = 4_000
_SENTENCE_CHARACTERS = 12
_SAME = Overlap(of_finding=0.7, of_lesson=0.4)
# With fewer words in all documents, a missing word does not show that something is undocumented.
_MIN_DOCUMENTED_WORDS = 50
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_CODE = re.compile(r"`([^`\n]+)`")
# Shorter messages, such as “1 failed”, are the same for many failures.
_QUOTED = re.compile(r"“([^“”]{20,})”")
_CATEGORIES = {
    Category.INFRA: "configuration",
    Category.TOOL_USAGE: "tooling",
    Category.PROVIDER_QUIRK: "integration",
    Category.TEST_STRATEGY: "testing",
    Category.BUGFIX_PATTERN: "debugging",
    Category.ANTI_PATTERN: "debugging",
}


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


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

    kind: FileKind = FileKind.LESSONS
    title: str
    text: str
    category: str = "debugging"
    tags: tuple[str, ...] = ()
    trigger: SaveTrigger
    evidence: tuple[str, ...] = ()
    scope: str = ""
    weight: float = _MIN_WEIGHT
    conflicts_with: str = ""
    lesson: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftContext:
    """What is known already: entries, the words of all documents, and the lessons of the bank."""

    learnings: tuple[Learning, ...] = ()
    words: frozenset[str] = frozenset()
    lessons: tuple[Lesson, ...] = ()
    scope: str = ""


def find_drafts(reading: RunReading, events: Sequence[Event], known: DraftContext) -> list[Draft]:
    """Return what is worth saving of a run, the most important first, without repetition or known entries."""
    found = [
        *draft_conflicts(reading, known.learnings),
        *draft_fixes(reading, events),
        *draft_decisions(events),
        *_draft_lessons(reading, known),
    ]
    kept: list[Draft] = []
    for draft in sorted(found, key=lambda draft: -draft.weight):
        is_known = not draft.conflicts_with and any(
            _says_same(draft, learning.entry.title, learning.entry.text) for learning in known.learnings
        )
        if len(kept) < MAX_DRAFTS and not is_known:
            kept += new_drafts([replace(draft, scope=draft.scope or known.scope)], kept)
    return kept


def new_drafts(drafts: Sequence[Draft], earlier: Sequence[Draft]) -> list[Draft]:
    """Return the drafts that do not repeat earlier ones."""
    return [draft for draft in drafts if not any(_repeats(draft, other) for other in earlier)]


def _repeats(draft: Draft, other: Draft) -> bool:
    """Say whether two drafts have the same event, the same error message, or the same words.

    Two lessons of the bank always differ, because the bank merges those that say the same.
    """
    if draft.lesson and other.lesson:
        return draft.lesson == other.lesson
    is_quoted = any(
        " ".join(quote.rstrip("….").split()) in " ".join(two.text.split())
        for one, two in ((draft, other), (other, draft))
        for quote in _QUOTED.findall(one.text)
    )
    shares_event = bool(set(draft.evidence) & set(other.evidence))
    return shares_event or is_quoted or _says_same(draft, other.title, other.text)


def _says_same(draft: Draft, title: str, text: str) -> bool:
    if draft.title.lower() == title.lower():
        return True
    whole, other = f"{draft.title} {draft.text}", f"{title} {text}"
    codes, other_codes = set(_CODE.findall(whole)), set(_CODE.findall(other))
    # The same words about other commands are about something else.
    if codes and other_codes and not codes & other_codes:
        return False
    return matches(keywords(whole), keywords(other), frozenset(), _SAME)


def scope_of_project(project: str, scopes: Sequence[WorkspaceScope]) -> str:
    """Return the scope of a run's project: by its name, else the only workspace, else none."""
    name = project.rstrip("/").rsplit("/", 1)[-1].lower()
    for depth in range(LEVELS, 0, -1):
        found = [scope for scope in scopes if len(scope.parts) == depth and scope.parts[-1].lower() == name]
        if name and len(found) == 1:
            return str(found[0])
    workspaces = {scope.workspace for scope in scopes}
    return workspaces.pop() if len(workspaces) == 1 else ""


def scope_in_text(text: str, scopes: Sequence[WorkspaceScope]) -> str:
    """Return the narrowest scope that a text names by its whole path, or an empty text."""
    words = {word.strip(".,;:!?()[]`'\"").rstrip("/").lower() for word in text.split()}
    found = [str(scope) for scope in scopes if len(scope.parts) > 1 and str(scope).lower() in words]
    return max(found, key=lambda name: name.count("/"), default="")


def _draft_lessons(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft the lessons of a run that no document mentions, and the important ones."""
    for lesson in known.lessons:
        is_preference = lesson.type is LessonType.PREFERENCE
        # To edit a file is no remedy unless the lesson says how.
        is_useful = is_preference or bool(set(lesson.remedies) - {"edit"})
        is_told = lesson.status.is_live and not lesson.is_waiting
        if reading.episode.id not in lesson.runs or not is_told or not is_useful:
            continue
        words = keywords(" ".join(lesson.remedies[:1])) if len(known.words) >= _MIN_DOCUMENTED_WORDS else None
        is_undocumented = words and len(words - known.words) >= len(words) / 2
        if not is_undocumented and lesson.importance < _MIN_WEIGHT:
            continue
        text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}\n\n{lesson.rule}"
        yield Draft(
            title=title_of(lesson.summary),
            text=_end_sentence(text) + (f"\n\n{lesson.detail}" if lesson.detail else ""),
            category="convention" if is_preference else _CATEGORIES.get(lesson.category, "convention"),
            tags=lesson.tags,
            trigger=SaveTrigger.NON_OBVIOUS_SOLUTION if is_undocumented else SaveTrigger.END_OF_SESSION,
            evidence=(lesson.short_id, *lesson.evidence.events[:4]),
            weight=min(0.85, lesson.importance),
            lesson=lesson.id,
        )


# Said so, a choice needs no reason.
_DECIDED = _any_case(
    r"\b(?:we|i|team)(?:'ve| have| has)?(?: \w+)? (?:decided|agreed (?:on|to|that)|settled|chose)\b"
    r"|^decision\b|\b(?:from (?:now|here) on|going forward|final call|the rule is|no more)\b|\bit is[.!]?$"
    r"|(?:^|\b(?:let'?s|we'll|we will|we're|we are|i'd|i would|i) )"
    r"(?:go(?:ing)? (?:with|for)|stick with|standardi[sz]e on|prefer)\b"
)
_CHOICE = _any_case(
    r"\b(?:let'?s|please|we|we'll|we're|i'd|i)(?: \w+){0,2}? (?:us(?:e|ing)|switch(?:ing)? to|adopt|keep"
    r"|prefer|st(?:ick|ay)(?:ing)? (?:with|on)|pick|drop|mov(?:e|ing) to|store|suggest|propose|recommend)\b"
    r"|\bmy (?:suggestion|recommendation)\b"
    r"|^(?:use|keep|drop|always|never(?! mind)|no|switch to|stay (?:on|with))\b"
)
_REASON = _any_case(
    r"\b(?:because|since|so that|due to|to avoid|in order to|as (?:it|they|the|we)|rather than|instead of"
    r"|otherwise|the reason|which|easier|faster|cheaper|simpler|safer|than|over)\b"
    r"|[,;:] (?:we|it|they|this|that|there|our)\b|\u2014|\u2013| - "
)
_YES = _any_case(
    r"\W*(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|sounds good|go ahead|do (?:it|that)|perfect|exactly|good"
    r"|please do|approved|let's do|lgtm)\b"
)
_PASSING = _any_case(
    r"\b(?:for now|right now|just now|temporar\w+|first,? let'?s|maybe|perhaps|might|not sure|some ?day|todo"
    r"|th(?:e|is|at) (?:time|once|file|test|line|command))\b"
)
_OPENING = _any_case(
    r"^(?:(?:ok(?:ay)?|so|yes|right|good|great|decision|final call|well|please|from now on)\b[,.:! ]*)*"
    r"(?:we(?:'ve| have)? (?:just )?(?:decided|agreed|settled)(?: to| on| that we| that)?\s+|let'?s\s+"
    r"|(?:we|i)(?:'ll|'d| will| should| would)\s+(?:(?:suggest|propose|recommend)(?: to| that we)?\s+)?)?"
)


def message_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message without list marks; fragments are left out."""
    for part in _SENTENCE.split(message[:_MESSAGE_CHARACTERS]):
        sentence = " ".join(part.strip(' -*#>\t"').split())
        if len(sentence) >= _SENTENCE_CHARACTERS and not sentence.startswith(("```", "|", "{", "<")):
            yield sentence


def _end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "…")) else f"{sentence}."


def draft_decisions(events: Sequence[Event]) -> Iterator[Draft]:
    """Draft what the user decides, or chooses with a reason, and what the user confirms of the agent's."""
    said = (event for event in events if event.kind is EventKind.MESSAGE)
    messages = [event for event in said if event.role in ("user", "assistant")]
    for at, event in enumerate(messages):
        answer = next((each for each in messages[at + 1 :] if each.role == "user"), None)
        is_user = event.role == "user"
        is_agreed = not is_user and answer is not None and bool(_YES.match(answer.text))
        if not (is_user or is_agreed) or len(event.text) > _MESSAGE_CHARACTERS:
            continue
        sentences = list(message_sentences(event.text))
        for place, sentence in enumerate(sentences):
            if _PASSING.search(sentence) or (sentence.endswith("?") and not is_agreed):
                continue
            # The reason may be in the next sentence.
            both = " ".join(sentences[place : place + 2])
            reasoned = next((text for text in (sentence, both) if _REASON.search(text)), "")
            if not _DECIDED.search(sentence) and not (reasoned and _CHOICE.search(sentence)):
                continue
            title = _OPENING.sub("", sentence)
            title = _REASON.split(title)[0].rstrip(" ,;:.-\u2014\u2013") or title
            text = _end_sentence(clip_words(reasoned or sentence, 2 * _REASON_CHARACTERS))
            yield Draft(
                kind=FileKind.DECISIONS,
                title=title[:1].upper() + title[1:],
                text=text if is_user else f"{text} The user agreed.",
                category=category_of(text, MemoryKind.DECISION),
                tags=tags(*[code for code in _CODE.findall(text) if " " not in code][:3]),
                trigger=SaveTrigger.DECISION_MOMENT,
                evidence=(event.id, answer.id) if is_agreed and answer else (event.id,),
                weight=0.9 if is_user else 0.75,
            )


_MANY_FAILURES = 3
_LONG_SEARCH = 5
_VERY_LONG_SEARCH = 10
_MESSAGES_AFTER_FIX = 3
# A patch that does not apply or a missing bracket is a slip, not a problem.
_SLIPS = frozenset((FailureKind.EDIT_NOT_APPLIED, FailureKind.SYNTAX))
_INSTALLS = frozenset(("install", "add", "i"))
# Names of code: a digit, an underscore or a capital inside.
_NAMES = re.compile(r"\b(?=\w*(?:\d|_|[a-z][A-Z]))(?!\d+\b)\w{3,}\b|(?<=[`'\"])\w{3,}(?=[`'\"])")
_VAGUE = frozenset(
    ("error", "errors", "test", "tests", "failed", "main", "lib", "mod", "index", "init", "src")
)
_REDIRECTION = re.compile(r"(?<!\s)\s++(?:[12&]?>+\s*(?:&\d|/dev/null)|2>&1)")
_EXPLAINS = _any_case(
    r"\b(?:because|due to|caused by|root cause|turn(?:s|ed) out|explains|c[ao]mes? from)\b"
    r"|\b(?:problem|issue|bug|reason|cause|culprit|fix)(?: (?:is|was)\b|:)|\bwhy:"
)
# A guess, or what the agent did itself and why.
_UNSURE = _any_case(
    r"^(?:i|i'm|i'll|we|next|now|let)\b(?!.*(?:problem|cause|why)\b)|\bi think\b"
    r"|\b(?:maybe|might|perhaps|suggests?|seems?|could|probably|let me|not sure|should work|asking)\b"
)
_PREFACE = _any_case(
    r"^(?:(?:so|ok|okay|now|found it|got it)[,:.!]?\s+)*"
    r"(?:the (?:real |actual )?root cause (?:is|was)(?: that)?[: ]\s*|root cause:\s*)?"
)
# Lines that count failures without saying what failed.
_SUMMARY = _any_case(
    r"^File \"|could not compile|previous errors?\b|^exit code|^\d+ (?:failed|errors?)"
    r"|^\w*(?:error|exception):?$"
)
_OUTSIDE = _any_case(
    r"https?://|(?:site|dist)-packages|node_modules|/usr/(?:lib|include)|--help\b|^man |pip download"
    r"|\n.*(?:web|fetch|browser|url)"
)


class _Fix(NamedTuple):
    """A goal that failed at least once and was then reached, with the calls between."""

    failed: tuple[ToolCall, ...]
    success: ToolCall
    between: tuple[ToolCall, ...]

    @property
    def after_last_failure(self) -> list[ToolCall]:
        return [call for call in self.between if call.at > self.failed[-1].at]


def draft_fixes(reading: RunReading, events: Sequence[Event]) -> Iterator[Draft]:
    """Draft the fixes after failed attempts or a long search, where the run says what helped."""
    for fix in _find_fixes(reading):
        first, last = fix.failed[0].at, fix.failed[-1].at
        looks = [call.event for call in fix.between if call.is_look]
        is_outside = any(_OUTSIDE.search(f"{look.text} {look.target}\n{look.tool}") for look in looks)
        # Repeating the same call is no attempt: something must have changed between two failures.
        if any(first < call.at < last and (call.changes or call.installs) for call in fix.between):
            yield from _draft_fix(fix, events, SaveTrigger.HARD_WON_FIX)
        elif len(looks) >= (_LONG_SEARCH if is_outside else _VERY_LONG_SEARCH):
            yield from _draft_fix(fix, events, SaveTrigger.NON_OBVIOUS_SOLUTION)
    yield from _draft_remedies(reading)


def _find_fixes(reading: RunReading) -> Iterator[_Fix]:
    """Yield each goal that failed and was reached later: the same program on the same arguments."""
    failed: dict[tuple[str, tuple[str, ...]], list[ToolCall]] = {}
    for call in reading.acts:
        if call.is_look or not call.main or call.purpose in ("", "write file"):
            continue
        # The agent's own script that reproduces the bug is meant to fail.
        if call.purpose.endswith("<script>") and any(is_scratch(each) for each in call.main.arguments):
            continue
        goal = (call.purpose, call.main.arguments)
        if call.failure is not None:
            if call.failure.kind not in _SLIPS:
                failed.setdefault(goal, []).append(call)
        elif goal in failed:
            failures = failed.pop(goal)
            yield _Fix(tuple(failures), call, reading.acts[failures[0].at + 1 : call.at])


def _draft_fix(fix: _Fix, events: Sequence[Event], trigger: SaveTrigger) -> Iterator[Draft]:
    """Draft a fix, unless neither the changes nor the agent say what helped."""
    failures = [call.failure for call in fix.failed if call.failure]
    specific = [failure for failure in failures if not _SUMMARY.search(quote_error(failure.line))]
    if not specific:
        return
    failure = specific[-1]
    changes, is_exact = _describe_changes(fix)
    reason = _reason_of(fix, events)
    # Without an explanation the fix must have been hard: many attempts, and no slip in new code.
    is_hard = len(failures) >= _MANY_FAILURES and not failures[-1].is_own_code
    if not reason and (not (is_exact and is_hard) or _is_obvious(failure, changes)):
        return
    error = quote_error(failure.line)
    command = _REDIRECTION.sub("", without_paths(fix.success.main.text if fix.success.main else ""))
    times = f"failed {len(fix.failed)} times" if len(fix.failed) > 1 else "failed"
    parts = [f"{code(clip_words(command, 100))} {times} with “{error}”."]
    parts += [f"Root cause: {reason}"] if reason else []
    parts += [f"What helped: {changes}."] if changes else []
    yield Draft(
        title=f"{_error_title(failure)} ({fix.success.purpose})",
        text="\n\n".join(parts),
        tags=tags(*fix.success.purpose.split()[:1], failure.subject.split(".")[0]),
        trigger=trigger,
        evidence=(*(call.event.id for call in fix.failed[:3]), fix.success.event.id),
        weight=min(0.95, 0.6 + 0.05 * len(fix.failed) + (0.1 if reason else 0.0)),
    )


def _error_title(failure: Failure) -> str:
    """Return the first sentence of an error message, whole: a title is never cut."""
    return title_of(quote_error(failure.line, _MESSAGE_CHARACTERS))


def _describe_changes(fix: _Fix) -> tuple[str, bool]:
    """Return the changes after the last failure in words, and whether they are exact."""
    calls = [call for call in fix.after_last_failure if not call.has_failed]
    installs = dict.fromkeys(code(install.text) for call in calls for install in call.installs)
    edits = (change for call in calls for change in call.changes)
    changes = [change for change in edits if change.file and not is_scratch(change.file)]
    failure = fix.failed[-1].failure
    if installs and (not changes or (failure and failure.kind.is_environment)):
        return format_list(list(installs)[-2:]), True
    files = dict.fromkeys(code(relative_path(change.file)) for change in changes)
    where = f"in {format_list(list(files), most=4)}" if files else ""
    if len(changes) == 1:
        old, new = differing_words(changes[0].old.strip(), changes[0].new.strip())
        if old and new and "\n" not in old + new and len(old) + len(new) < 120:
            return f"change {code(old)} to {code(new)} {where}", True
    return f"changes {where}" if where else "", False


def _reason_of(fix: _Fix, events: Sequence[Event]) -> str:
    """Return the agent's own sentence about the cause, written since the last failure but one."""
    start, end = fix.failed[-2:][0].event.seq, fix.success.event.seq
    said = [event for event in events if event.kind is EventKind.MESSAGE and event.role == "assistant"]
    before = [event for event in said if start < event.seq < end]
    after = [event for event in said if event.seq > end][:_MESSAGES_AFTER_FIX]
    # The cause must name the subject: words of the failures, or of what was changed.
    failures = [call.failure for call in fix.failed if call.failure]
    texts = [part for failure in failures for part in (failure.subject, *_NAMES.findall(failure.line))]
    for change in (change for call in fix.after_last_failure for change in call.changes):
        texts += [base_name(change.file).rsplit(".", 1)[0], *_NAMES.findall(f"{change.old} {change.new}")]
    topic = keywords(" ".join(texts)) - _VAGUE
    causes = (cause for event in (*reversed(before), *after) for cause in find_causes(event.text))
    cause = _PREFACE.sub("", next((cause for cause in causes if topic & keywords(cause)), ""))
    return cause and _end_sentence(clip_words(cause[:1].upper() + cause[1:], _REASON_CHARACTERS))


def find_causes(message: str) -> list[str]:
    """Return the sentences of a message that explain a failure."""
    said = [sentence for sentence in message_sentences(message) if not sentence.endswith("?")]
    return [sentence for sentence in said if _EXPLAINS.search(sentence) and not _UNSURE.search(sentence)]


def _draft_remedies(reading: RunReading) -> Iterator[Draft]:
    """Draft the failures of the environment that recurred until a remedy was found."""
    times = Counter(met.key for met in reading.met)
    last = {met.key: met for met in reading.met}
    for met, cure in _find_cured(last.values()):
        count, remedy = times[met.key], cure.remedy
        is_vague = remedy.way is RemedyKind.EDIT and remedy.text == "edit"
        if count < 2 or met.is_of_code or met.failure.kind in _SLIPS or is_vague:
            continue
        if _is_obvious(met.failure, remedy.text):
            continue
        error, helped = quote_error(met.failure.line), advice(remedy)
        command = code(clip_words(mask_command(met.act.text), 100))
        yield Draft(
            title=f"{_error_title(met.failure)}: {helped}",
            text=f"{command} failed {count} times with “{error}”.\n\nWhat helped: {helped}.",
            category="configuration" if met.failure.kind.is_environment else "debugging",
            tags=tags(*met.act.purpose.split()[:1], met.failure.subject.split(".")[0]),
            trigger=SaveTrigger.HARD_WON_FIX,
            evidence=(met.act.event.id, *(call.event.id for call in cure.acts[:2])),
            weight=min(0.95, 0.6 + 0.05 * count),
        )


def _find_cured(failures: Iterable[ObservedFailure]) -> Iterator[tuple[ObservedFailure, Cure]]:
    for met in failures:
        if met.cure is not None and not any(call.has_failed for call in met.cure.acts):
            yield met, met.cure


def _is_obvious(failure: Failure, remedy: str) -> bool:
    """Say whether anybody would try the remedy first: install what is missing, by its name."""
    if failure.kind not in (FailureKind.MISSING_MODULE, FailureKind.MISSING_COMMAND):
        return False
    missing = failure.subject.split(".")[0].lower().replace("_", "-")
    words = {word.lower().replace("_", "-") for word in re.findall(r"[\w.-]+", remedy)}
    return missing in words and bool(words & _INSTALLS)


_NEGATED_REACH = 40
_NEGATED = lazy_pattern(
    r"\b(?:not|never|don't|avoid|instead of|rather than|stop|fails?|broken)(?!\s+forget)"
    r"(?:\s+[\w']+){0,3}[\s,\"'(]*$",
    re.IGNORECASE,
    longest=_NEGATED_REACH,
)


def draft_conflicts(reading: RunReading, learnings: Sequence[Learning]) -> Iterator[Draft]:
    """Draft what a run shows to be wrong in an entry: the advised call failed, and another one worked."""
    worked = [step.text for call in reading.acts if not call.has_failed for step in call.steps]
    ways = (RemedyKind.COMMAND, RemedyKind.PATH)
    for learning in learnings:
        entry, advised = learning.entry, advised_code(learning.entry.text)
        for met, cure in _find_cured(reading.met):
            call = next((each for each in advised if _is_advised_call(each, met, cure.remedy.way)), "")
            is_better = cure.remedy.way in ways and is_informative(cure.remedy.text)
            # A call that worked elsewhere in the same run is not wrong as such.
            has_worked = any(_starts_with(text, call) for text in worked)
            if not call or not is_better or has_worked or cure.remedy.text in entry.text:
                continue
            failed = f"{code(call)} failed with “{quote_error(met.failure.line)}”"
            earlier = f"Earlier advice{f' of {entry.date}' if entry.date else ''}: {entry.title}."
            yield Draft(
                kind=learning.kind,
                title=f"{entry.title}: {code(call)} no longer works",
                text=f"{failed}; what worked: {advice(cure.remedy)}.\n\n{earlier}",
                category=entry.category or "debugging",
                tags=entry.tags,
                trigger=SaveTrigger.CONFLICT,
                evidence=(met.act.event.id, *(each.event.id for each in cure.acts[:2])),
                scope=str(learning.scope),
                weight=0.97,
                conflicts_with=learning.place,
            )
            break


def advised_code(text: str) -> list[str]:
    """Return the code that a text advises; code after a negation is not advised."""
    return [
        found[1].strip()
        for found in _CODE.finditer(text)
        if not _NEGATED.search(text[max(0, found.start() - _NEGATED_REACH) : found.start()])
    ]


def _is_advised_call(advised: str, met: ObservedFailure, way: RemedyKind) -> bool:
    if way is RemedyKind.PATH:
        return relative_path(met.failure.subject) == relative_path(advised) and "/" in advised
    return " " in advised and any(_starts_with(step.text, advised) for step in met.act.steps)


def _starts_with(text: str, advised: str) -> bool:
    words, wanted = text.split(), advised.split()
    return words[: len(wanted)] == wanted
