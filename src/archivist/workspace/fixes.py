"""Find the fixes of a run that were hard to come by, and the entries that it showed to be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from archivist.recall.keywords import keywords
from archivist.records import Event, EventKind
from archivist.workspace.drafts import (
    LONGEST_REASON,
    LONGEST_TITLE,
    Draft,
    DraftContext,
    SaveTrigger,
    end_sentence,
    message_sentences,
)
from archivist.workspace.learnings import Learning
from archivist.workspace.topology import FileKind

_FAILED_BEFORE = 2
_LONG_SEARCH = 5
_VERY_LONG_SEARCH = 10
_MANY_FAILED = 3
_NEAR_FIX = 3
# A patch that does not apply, a bracket that is missing: slips of the hand.
_SLIPS = frozenset((FailureKind.EDIT_NOT_APPLIED, FailureKind.SYNTAX))
_INSTALLS = frozenset(("install", "add", "i"))
# Names within code: a figure, an underscore or a capital within.
_NAMES = re.compile(r"\b(?=\w*(?:\d|_|[a-z][A-Z]))(?!\d+\b)\w{3,}\b|(?<=[`'\"])\w{3,}(?=[`'\"])")
_VAGUE = frozenset(
    ("error", "errors", "test", "tests", "failed", "main", "lib", "mod", "index", "init", "src")
)
_REDIRECTED = re.compile(r"\s+(?:[12&]?>+\s*(?:&\d|/dev/null)|2>&1)")
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
# Lines that sum a failure up without saying it.
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
_CODE = re.compile(r"`([^`\n]{3,120})`")


@dataclass(frozen=True, slots=True)
class _Fix:
    """A goal that was missed several times and then reached: the failures, the success, what lay between."""

    failed: tuple[ToolCall, ...]
    success: ToolCall
    between: tuple[ToolCall, ...]


def draft_hard_won_fixes(
    reading: RunReading, events: Sequence[Event], known: DraftContext
) -> Iterator[Draft]:
    """Draft the fixes that at least two failed attempts went before, where the run says what helped."""
    for fix in _find_fixes(reading):
        if len(fix.failed) >= _FAILED_BEFORE and _has_attempt(fix):
            draft = _draft_fix(fix, events, known, SaveTrigger.HARD_WON_FIX)
            if draft:
                yield draft
    for met in _remedied_failures(reading):
        times = sum(each.key == met.key for each in reading.met)
        yield _draft_remedy(met, known, SaveTrigger.HARD_WON_FIX, times)


def draft_long_searches(reading: RunReading, events: Sequence[Event], known: DraftContext) -> Iterator[Draft]:
    """Draft the fixes that took a long search, some of it outside of the project."""
    for fix in _find_fixes(reading):
        looks = [act for act in fix.between if act.is_look]
        outside = [act for act in looks if _is_outside(act)]
        if len(looks) >= _VERY_LONG_SEARCH or (outside and len(looks) >= _LONG_SEARCH):
            draft = _draft_fix(fix, events, known, SaveTrigger.NON_OBVIOUS_SOLUTION)
            if draft:
                yield draft


def _find_fixes(reading: RunReading) -> Iterator[_Fix]:
    """Yield each goal that failed and was reached later, with what the run did between."""
    failed: dict[tuple[str, tuple[str, ...]], list[ToolCall]] = {}
    for act in reading.acts:
        goal = _goal(act)
        if goal is None:
            continue
        if act.failure is not None:
            if act.failure.kind not in _SLIPS:
                failed.setdefault(goal, []).append(act)
        elif goal in failed:
            those = failed.pop(goal)
            yield _Fix(tuple(those), act, reading.acts[those[0].at + 1 : act.at])


def _goal(act: ToolCall) -> tuple[str, tuple[str, ...]] | None:
    """Return what a command is to achieve: the same program, on the same things."""
    if act.is_look or not act.steps or not act.main or not act.purpose or act.purpose == "write file":
        return None
    # That the agent's own script to show the bug fails is the task, and its success the task done.
    if act.purpose.endswith("<script>") and any(is_scratch(each) for each in act.main.arguments):
        return None
    return act.purpose, act.main.arguments


def _has_attempt(fix: _Fix) -> bool:
    """Say whether something was changed between two failures: a plain repetition is no attempt."""
    first, last = fix.failed[0].at, fix.failed[-1].at
    return any(first < act.at < last and (act.changes or act.installs) for act in fix.between)


def _is_outside(act: ToolCall) -> bool:
    said = f"{act.event.text} {act.event.target}"
    return bool(_OUTSIDE.search(said) or (not act.steps and _OUTSIDE_TOOL.search(act.event.tool)))


def _draft_fix(fix: _Fix, events: Sequence[Event], known: DraftContext, trigger: SaveTrigger) -> Draft | None:
    """Word a fix, or return None when neither the changes nor the run's own words say what helped."""
    telling = [
        each for act in fix.failed if (each := act.failure) and not _SUMMARY.search(quote_error(each.line))
    ]
    failure = telling[-1] if telling else None
    helped, is_exact = _describe_changes(fix)
    reason = _reason_of(fix, events)
    if failure is None or not (reason or (is_exact and _is_hard(fix))):
        return None
    if not reason and _is_obvious(failure, helped):
        return None
    said = quote_error(failure.line)
    command = _REDIRECTED.sub("", without_paths(fix.success.main.text if fix.success.main else ""))
    times = f"failed {len(fix.failed)} times" if len(fix.failed) > 1 else "failed"
    parts = [f"{code(clip_words(command, 100))} {times} with “{said}”."]
    if reason:
        parts.append(f"Root cause: {reason}")
    if helped:
        parts.append(f"What helped: {helped}.")
    evidence = [act.event.id for act in fix.failed[:3]] + [fix.success.event.id]
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(f"{said} ({fix.success.purpose})", LONGEST_TITLE),
        text="\n\n".join(parts),
        category="debugging",
        tags=tags(*fix.success.purpose.split()[:1], failure.subject.split(".")[0]),
        trigger=trigger,
        evidence=tuple(evidence),
        scope=known.scope,
        weight=min(0.95, 0.6 + 0.05 * len(fix.failed) + (0.1 if reason else 0.0)),
    )


def _is_hard(fix: _Fix) -> bool:
    """Say whether a fix that the run did not explain was hard: many attempts, and no slip in new code."""
    last = fix.failed[-1].failure
    return len(fix.failed) >= _MANY_FAILED and last is not None and not last.is_own_code


def _describe_changes(fix: _Fix) -> tuple[str, bool]:
    """Return the changes after the last failure, in words, and whether they say just what was changed."""
    last = [act for act in fix.between if act.at > fix.failed[-1].at and not act.has_failed]
    installs = dict.fromkeys(each.text for act in last for each in act.installs)
    changes = [
        change for act in last for change in act.changes if change.file and not is_scratch(change.file)
    ]
    failure = fix.failed[-1].failure
    if installs and (not changes or (failure and failure.kind.is_environment)):
        return format_list([code(each) for each in list(installs)[-2:]]), True
    if not changes:
        return "", False
    files = format_list(
        [code(relative_path(file)) for file in dict.fromkeys(change.file for change in changes)], most=4
    )
    old, new = differing_words(changes[-1].old.strip(), changes[-1].new.strip())
    if len(changes) == 1 and old and new and "\n" not in old + new and len(old) + len(new) < 120:
        return f"change {code(old)} to {code(new)} in {files}", True
    return f"changes in {files}", False


def _reason_of(fix: _Fix, events: Sequence[Event]) -> str:
    """Return the agent's own sentence about the cause, said since the last attempt but one failed."""
    first, end = fix.failed[-2:][0].event.seq, fix.success.event.seq
    said = [
        event
        for event in events
        if event.kind is EventKind.MESSAGE and event.role == "assistant" and event.seq > first
    ]
    before = [event for event in said if event.seq < end]
    after = [event for event in said if event.seq > end][:_NEAR_FIX]
    about = _topic_words(fix)
    for event in (*reversed(before), *after):
        for sentence in message_sentences(event.text):
            if _is_cause(sentence) and about & keywords(sentence):
                cause = _PREFACE.sub("", sentence)
                return end_sentence(clip_words(cause[:1].upper() + cause[1:], LONGEST_REASON))
    return ""


def _is_cause(sentence: str) -> bool:
    return bool(_EXPLAINS.search(sentence)) and not _UNSURE.search(sentence) and not sentence.endswith("?")


def _topic_words(fix: _Fix) -> frozenset[str]:
    """Return the words that name what a fix is about: of the failure's subject, and of what was changed."""
    failures = [act.failure for act in fix.failed if act.failure]
    texts = [part for each in failures for part in (each.subject, *_NAMES.findall(each.line))]
    last = fix.failed[-1].at
    changes = [change for act in fix.between if act.at > last for change in act.changes]
    texts += [base_name(change.file).rsplit(".", 1)[0] for change in changes]
    texts += [name for change in changes for name in _NAMES.findall(f"{change.old} {change.new}")]
    return keywords(" ".join(texts)) - _VAGUE


def _remedied_failures(reading: RunReading) -> Iterator[ObservedFailure]:
    """Yield the failures of the surroundings that were met again and again until a remedy was found."""
    seen: dict[str, int] = {}
    for met in reading.met:
        seen[met.key] = seen.get(met.key, 0) + 1
        is_last = seen[met.key] == sum(each.key == met.key for each in reading.met)
        is_slip = met.is_of_code or met.failure.kind in _SLIPS
        if is_last and seen[met.key] >= _FAILED_BEFORE and _has_remedy(met) and not is_slip:
            yield met


def _has_remedy(met: ObservedFailure) -> bool:
    """Say whether a failure has a remedy that went well, says what to do, and was not to be expected."""
    if met.cure is None or any(act.has_failed for act in met.cure.acts):
        return False
    remedy = met.cure.remedy
    is_vague = remedy.way is RemedyKind.EDIT and remedy.text == "edit"
    return not is_vague and not _is_obvious(met.failure, remedy.text)


def _is_obvious(failure: Failure, remedy: str) -> bool:
    """Say whether anybody would try the remedy first: to install what is said to be missing, by its name."""
    if failure.kind not in (FailureKind.MISSING_MODULE, FailureKind.MISSING_COMMAND):
        return False
    missing = failure.subject.split(".")[0].lower().replace("_", "-")
    words = {word.lower().replace("_", "-") for word in re.findall(r"[\w.-]+", remedy)}
    return bool(missing) and missing in words and bool(words & _INSTALLS)


def _draft_remedy(met: ObservedFailure, known: DraftContext, trigger: SaveTrigger, times: int) -> Draft:
    said = quote_error(met.failure.line)
    remedy = advice(met.cure.remedy) if met.cure else ""
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(f"{said}: {remedy}", LONGEST_TITLE),
        text=f"{code(clip_words(mask_command(met.act.text), 100))} failed {times} times with “{said}”.\n\n"
        f"What helped: {remedy}.",
        category="configuration" if met.failure.kind.is_environment else "debugging",
        tags=tags(*met.act.purpose.split()[:1], met.failure.subject.split(".")[0]),
        trigger=trigger,
        evidence=(met.act.event.id, *((act.event.id for act in met.cure.acts[:2]) if met.cure else ())),
        scope=known.scope,
        weight=min(0.95, 0.6 + 0.05 * times),
    )


# Conflict


def draft_conflicts(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft what a run shows to be wrong in an entry: the advised call failed, and another one did it."""
    for learning in known.learnings:
        text = learning.entry.text
        for met in reading.met:
            is_cured = met.cure is not None and not any(act.has_failed for act in met.cure.acts)
            remedy = met.cure.remedy if met.cure and is_cured else None
            if (
                remedy is None
                or remedy.way not in (RemedyKind.COMMAND, RemedyKind.PATH)
                or not is_informative(remedy.text)
            ):
                continue
            advised = next(
                (each for each in advised_code(text) if _is_advised_call(each, met, remedy.way)), ""
            )
            if not advised or remedy.text in text or _has_succeeded(reading, advised):
                continue
            yield _draft_conflict(learning, met, advised, known)
            break


def advised_code(text: str) -> list[str]:
    """Return the code of a text that it advises: what follows a no or a never is not."""
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


def _has_succeeded(reading: RunReading, advised: str) -> bool:
    """Say whether the advised call went well in the same run: then it is not wrong as such."""
    return any(
        not act.has_failed and any(_starts_with(step.text, advised) for step in act.steps)
        for act in reading.acts
    )


def _draft_conflict(learning: Learning, met: ObservedFailure, advised: str, known: DraftContext) -> Draft:
    remedy = advice(met.cure.remedy) if met.cure else ""
    entry = learning.entry
    return Draft(
        kind=learning.kind,
        title=clip_words(f"{entry.title}: {code(advised)} no longer works", LONGEST_TITLE),
        text=f"{code(advised)} failed with “{quote_error(met.failure.line)}”; what worked: {remedy}.\n\n"
        f"Earlier advice{f' of {entry.date}' if entry.date else ''}: {entry.title}.",
        category=entry.category or "debugging",
        tags=entry.tags,
        trigger=SaveTrigger.CONFLICT,
        evidence=(met.act.event.id, *((act.event.id for act in met.cure.acts[:2]) if met.cure else ())),
        scope=str(learning.scope) or known.scope,
        weight=0.97,
        conflicts_with=learning.place,
    )
