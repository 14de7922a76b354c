"""What a call's output says: whether it did what was asked, and what it tells the caller to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import UNFINISHED, ToolCall
from archivist.reading.command_risks import text_risk
from archivist.reading.commands import ends_with_own_status, is_display_step, working_steps
from archivist.reading.evasions import is_bypass
from archivist.reading.printed_offers import CallWords, names_offer, told_form, up_to_sentence
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.shell import Step
from archivist.reading.signatures import clean_output

# An answer in this many lines and characters is read as one message.
_SHORT_LINES = 4
_SHORT_ANSWER = 400
_LONGEST_OFFER = 170
# A tool of the harness that refuses a call says no more than that.
_LONGEST_REFUSAL = 1000
_LONGEST_SENTENCE = 400
_MOST_LINES = 400
_LONGEST_OUTPUT = 20_000
_COMPARED_CHARACTERS = 60
_LINES_BEFORE = 4
_LINES_AFTER = 14
_USAGE = lazy_pattern(r"\s*usage:", re.IGNORECASE)
_REFUSES = lazy_pattern(
    r"\b(?:requires? |must (?:be|specify|provide|pass|have)|is required|did you mean"
    r"|please (?:specify|provide)"
    r"|no (?:such|files?|match(?:es)?|results?|\w+ match(?:ed|es)?)\b|(?<!-)unknown(?!-)|unrecogni[sz]ed"
    r"|unexpected argument|invalid"
    r"|cannot|can't|could(?: not|n't)|unable to|denied|refus(?:ed|es|ing)|aborted"
    r"|nothing (?:was|has been) \w+"
    r"|not (?:found|supported|allowed|permitted|implemented|installed|available))|^(?:error|fatal)\b|^use: ",
    re.IGNORECASE | re.MULTILINE,
)
_SUCCEEDS = lazy_pattern(
    r"\b(?:pass(?:ed|es)?|ok|success\w*|succeeded|finished|done|completed?|created|installed|updated"
    r"|up[ -]to[ -]date|built|compiled|fixed|started|clean|saved|wrote|written|added|pushed|merged|resolved"
    r"|applied|reformatted)\b|\b(?:0|no) (?:errors?|fail\w*|problems?|issues?|warnings?|fixes)\b|[✓✔✅]",
    re.IGNORECASE,
)
_FAILS = lazy_pattern(
    r"\b[1-9]\d* (?:\w+ )?(?:fail\w*|errors?|problems?)\b|[✗✖]"
    r"|(?<![\w-])(?<!0 )(?<!no )(?:errors?|failed)(?![\w-])",
    re.IGNORECASE,
)
# What sums up a whole run, so that neither another step nor a filter that looks for success can have said it.
_SUMS_UP = lazy_pattern(
    r"\b[1-9]\d{0,8} (?:tests? |specs? |examples? |checks? )?(?:pass(?:ed|ing)|succeeded)\b"
    r"|\b(?:build|compilation|deployment|migrations?|tests?) (?:success\w*|succeeded|passed|complete[d!]?)"
    r"|test result: ok|^ok\s{1,9}\S{1,200}\s{1,9}[\d.]{1,12}s|\bsuccessfully\b"
    r"|\b(?:0|no) (?:errors?|fail\w*|problems?|issues?|offenses)\b|\b[1-9]\d{0,8} examples?, 0 fail",
    re.IGNORECASE | re.MULTILINE,
)
# Filters that print the lines they are asked for, and words of a pattern that asks for failures as well.
_SELECTING_FILTERS = frozenset(("grep", "egrep", "fgrep", "rg", "awk", "gawk", "sed"))
_ASKS_FOR_FAILURES = lazy_pattern(r"(?i)fail|err|fatal|not ok|[✗✖]|problem")
_INVERTED = lazy_pattern(r"-[a-zA-Z]{0,8}v[a-zA-Z]{0,8}$|--invert-match$")
_STOPS_AT_ERROR = lazy_pattern(r"(?:^|[;&\n]\s{0,9})set -[a-z]{0,6}e|\bpipefail\b")
_UNREACHABLE = lazy_pattern(
    r"(?:connection|operation|request) timed out|connection (?:refused|reset|closed)|could not resolve host"
    r"|network is unreachable|no route to host",
    re.IGNORECASE,
)
# Flags that leave what failed as it is.
_GIVING_UP = frozenset(("--skip", "--abort", "--quit"))
# What a step prints that found its work done, and what one prints that did some.
_HAD_NO_EFFECT = lazy_pattern(
    r"\balready (?:up[ -]to[ -]date|satisfied|installed|exists?|the newest)|\bup to date\b"
    r"|nothing to (?:do|install)",
    re.IGNORECASE,
)
_HAD_EFFECT = lazy_pattern(
    r"successfully installed|\b(?:added|changed|removed|installed) [1-9]"
    r"|\b(?:downloading|installing|unpacking)\b|^packages: \+[1-9]",
    re.IGNORECASE | re.MULTILINE,
)
# A status that the command line prints itself, such as `; echo "exit $?"`.
_PRINTED_STATUS = lazy_pattern(r"\$\?|\bPIPESTATUS\b|\$pipestatus\b")
_LAST_NUMBER = lazy_pattern(r"(?<!\d)(\d{1,3})\D{0,12}\Z")

_ASKS = lazy_pattern(
    r"\b(?:use|run|try|pass|set|call|add|install|must|should|needs? to|have to|please|instead|hint|help|fix"
    r"|through|by (?:running|passing|adding|setting)|with|consider|to add|similar name exists"
    r"|did you mean)\b",
    re.IGNORECASE,
)
# Offers to look closer, to do the same again or to give up are no remedies.
_LOOKS_ON = lazy_pattern(
    r"--help|--verbose|--list\b|\b(?:see|help|information|info|details?|documentation|docs|logs?|list|view|show"
    r"|display|backtrace|trace|debug|rerun|re-run|again|later|report|issue|abort|skip|undo|ignore|https?:)\b"
    r"|\bRUST_BACKTRACE",
    re.IGNORECASE,
)
_OFFER = lazy_pattern(
    r"(?<![\w(-])(?:(?:please )?(?:use|run|try|execute)(?: the following(?: command)?)?(?: instead)?:?"
    r"|by running|installed (?:with|by):?"
    r"|(?:update|fix|install|create|generate|start)\b[^.`'\"]{0,60}\b(?:with|using|by)"
    r"|please (?:run|use|install|set)|you must(?: either)?|need to specify|consider \w+ing[^.`]{0,40}"
    r"|pass(?:ing)?(?:, e\.g\.,)?(?=\s+[`'\"]?-)|to add:?)\s+(?P<rest>\S.*)",
    re.IGNORECASE,
)
_QUOTED = lazy_pattern(r"`([^`\n]{2,100})`|(?<!\w)'([a-z][^'\n]{2,100})'|\"([a-z][^\"\n]{2,100})\"")
# How a sentence begins that offers something to use rather than to run.
_USED = lazy_pattern(r"(?:please )?(?:use|try|pass|set|consider|you must|need)", re.IGNORECASE)
_AS_VALUE = lazy_pattern(r"['\"`]-- ")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?]) +(?=[A-Z`'\"])")
_MARGIN = lazy_pattern(
    r"\A(?:npm (?:ERR!|error)|hint:|help:|note:|tip:|remote:|error:|fatal:|\[\w+\]|[|║│*!╰─]|\s)++"
)
_NOT_ASKING = (">", "$", "+", "(", "-", "#")
_INSTANCE = lazy_pattern(r"(?<![\w.])/(?:home|Users|tmp|private|var/folders|root)/\S+|\b[0-9a-f]{12,}\b")


def has_worked(act: ToolCall) -> bool:
    """Say whether a call did what was asked: it did not fail, did not refuse, and its status is its own.

    Behind a pipe the status is that of the filter, and before a semicolon it is lost: then the output must
    speak of success. Of a line with branches nobody knows which of its steps ran.
    """
    if act.has_failed or is_unsure(act):
        return False
    output = clean_output(act.event.output).strip()
    if refuses(output) or any(not _GIVING_UP.isdisjoint(step.flags) for step in act.steps):
        return False
    if not output and not act.steps:
        return False
    if not act.steps:
        return True
    if act.event.exit_code is None:
        # A client may have refused, cancelled or left the call: only what sums up a whole run shows its end.
        return bool(_SUMS_UP.search(output)) and not _FAILS.search(output)
    if _PRINTED_STATUS.search(act.event.text):
        status = _LAST_NUMBER.search(output)
        return not status or status[1] == "0"
    return _has_own_status(act) or _says_success(act.steps, act.main, output)


def is_unsure(act: ToolCall) -> bool:
    """Say whether the line of a call, or how it ended, does not show which of its steps ran and went well."""
    return not UNFINISHED.isdisjoint(act.event.extra) or any(step.is_unsure for step in act.steps)


def sums_up_success(act: ToolCall) -> bool:
    """Say whether a call succeeded by its own status, and says so."""
    return _has_own_status(act) and bool(_SUMS_UP.search(act.event.output[-_LONGEST_OUTPUT:]))


def has_step_worked(act: ToolCall, step: Step | None) -> bool:
    """Say whether one step of a line did what was asked. The status of a line is that of its last step."""
    if step is None or step is act.main:
        return has_worked(act)
    if act.has_failed or is_unsure(act) or step not in act.steps:
        return False
    after = act.steps[act.steps.index(step) + 1 :]
    is_chained = all(each.operator == "&&" or each.is_filter for each in after)
    if (is_chained and not any(each.is_filter for each in after)) or _STOPS_AT_ERROR.search(act.event.text):
        return has_worked(act)
    return _says_success(act.steps, step, clean_output(act.event.output))


def _says_success(steps: Sequence[Step], step: Step | None, output: str) -> bool:
    """Say whether an output speaks of the success of a step, where its status does not show it."""
    if _FAILS.search(output):
        return False
    after = steps[steps.index(step) + 1 :] if step in steps else ()
    # What another step prints, or a filter was told to look for, is no word of this one.
    is_shared = any(not each.is_filter and each.operator in (";", "&", "||") for each in after)
    words = _SUMS_UP if is_shared or any(map(_looks_for_success, after)) else _SUCCEEDS
    return bool(words.search(output))


def _looks_for_success(step: Step) -> bool:
    """Say whether a filter leaves lines out that would tell of a failure."""
    if not step.is_filter or step.program not in _SELECTING_FILTERS:
        return False
    if any(map(_INVERTED.match, step.flags)) or (step.program == "sed" and step.subcommand != "-n"):
        return False
    return not _ASKS_FOR_FAILURES.search(" ".join(step.values[1:]))


def had_no_effect(act: ToolCall) -> bool:
    """Say whether a call says that there was nothing left to do."""
    output = act.event.output[-_LONGEST_OUTPUT:]
    return bool(_HAD_NO_EFFECT.search(output)) and not _HAD_EFFECT.search(output)


def _has_own_status(act: ToolCall) -> bool:
    """Say whether the status of a command line is that of the step it is for."""
    return bool(_STOPS_AT_ERROR.search(act.event.text)) or ends_with_own_status(act.steps)


def refuses(output: str) -> bool:
    """Say whether an output only says what the call lacks, that nothing was found, or how it is used."""
    if _USAGE.match(output):
        return True
    is_short = len(output) <= _SHORT_ANSWER and output.count("\n") < _SHORT_LINES
    return is_short and bool(_REFUSES.search(output)) and not _SUCCEEDS.search(output)


def asking_sentences(output: str) -> Iterator[str]:
    """Yield the sentences of an output that tell the caller what to do, each with the lines it announces."""
    lines = [
        _MARGIN.sub("", line).rstrip("|║│ \t") for line in clean_output(output).split("\n")[-_MOST_LINES:]
    ]
    for at, line in enumerate(lines):
        # What runs is echoed, a hint in brackets is about another purpose, a list is a document.
        if line.startswith(_NOT_ASKING):
            continue
        sentences = _SENTENCE_END.split(line[:_LONGEST_SENTENCE])
        # A quotation that starts a line may go on with the sentence of the line before.
        if at and sentences[0][:1] in ("'", '"') and re.search(r"\w$", lines[at - 1]):
            sentences[0] = f"{lines[at - 1]} {sentences[0]}"
        # A line that ends in a colon, or in the middle of a sentence, announces the command below it.
        below = next((text for text in lines[at + 1 : at + 4] if text), "")
        if (
            below
            and not below.startswith(_NOT_ASKING)
            and re.search(r"(?::|\b(?:use|run|running))$", sentences[-1])
        ):
            sentences[-1] = f"{sentences[-1]} {below}"
        yield from filter(_ASKS.search, sentences)


def find_offer(act: ToolCall, acts: Sequence[ToolCall] = ()) -> Remedy | None:
    """Return what a failed call's own message tells the caller to do, as far as a message's word may be told.

    That is set-up by a package manager, the right spelling of a word of the call, the start of a call that
    worked among `acts`, and what a tool of the harness asks for; see `printed_offers`.
    """
    for sentence, found in _offering_sentences(act):
        offer = sentence.strip().rstrip(".")
        # `-- word` only tells the program to take a refused word as a value.
        if len(sentence) > _LONGEST_OFFER or _AS_VALUE.search(sentence) or _INSTANCE.search(offer):
            continue
        quoted = next((next(filter(None, match.groups())) for match in _QUOTED.finditer(offer)), "")
        # The whole sentence: a second command in it would be told as well.
        own = CallWords(
            {step.program: step.values[1:] for step in act.steps},
            [step.text for each in acts for step in each.steps if has_step_worked(each, step)],
        )
        if text_risk(offer) or names_offer(offer, own) or is_bypass(offer):
            continue
        if act.steps:
            # Of a program's sentence only the command is passed on, never the words around it.
            program, *rest = found["rest"].rstrip(".").split()
            told = told_form(quoted or " ".join((program, *up_to_sentence(rest))).rstrip(",;:"), own)
            offer = f"{'use' if _USED.match(found[0]) else 'run'} `{told}`" if told else ""
        if offer:
            return Remedy(RemedyKind.SAID, offer[:1].lower() + offer[1:], act.display_text)
    return None


def has_offer(act: ToolCall) -> bool:
    """Say whether a failed call's own message tells the caller to do something, whatever it is."""
    return next(_offering_sentences(act), None) is not None


def _offering_sentences(act: ToolCall) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the sentences of a failed call's message that tell its caller to do something."""
    # A displayed file tells its own readers what to do.
    if any(is_display_step(step) and not step.is_filter for step in act.steps):
        return
    is_long = not act.steps and len(act.event.output) > _LONGEST_REFUSAL
    # What cannot be reached is not mended by a hint about something else.
    if is_long or _UNREACHABLE.search(act.event.output[-_LONGEST_OUTPUT:]):
        return
    working = working_steps(act.steps)
    # Lines far from the one that reports the failure speak of other steps.
    lines = act.event.output.split("\n")[-_MOST_LINES:]
    line = act.failure.line.strip()[:_COMPARED_CHARACTERS] if act.failure else ""
    at = next((index for index, text in enumerate(lines) if line and line in text), None)
    lines = lines if at is None else lines[max(0, at - _LINES_BEFORE) : at + _LINES_AFTER]
    for sentence in asking_sentences("\n".join(lines)):
        # Of several steps the one that offers it may not be the one that failed.
        is_own = len(working) < 2 or any(step.program in sentence for step in working)
        found = _OFFER.search(sentence) if is_own and not _LOOKS_ON.search(sentence) else None
        if found is not None:
            yield sentence, found


def before_offer(line: str) -> str:
    """Return an error line up to what it offers, which is told by itself; all of it where nothing is left."""
    found = _OFFER.search(line)
    kept = line[: found.start()].rstrip(" ,;:.-(") if found else line
    return kept if kept.count(" ") else line
