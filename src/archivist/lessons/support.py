"""Say whether events show what a lesson claims: by the names in it and by what it advises, without a model.

What it names (code, quotations, paths, errors, options, variables, numbers) must stand in the events that it
cites, and so must the words of a cause. A command that it advises must be one that a cited call ran without
failing, and one that it says to fail must have failed. So whoever words a lesson, or the log that talked them
into it, can choose among what happened and cannot make anything up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.clock import to_text
from archivist.cold_start import lazy_pattern
from archivist.reading.calls import event_failure
from archivist.reading.wording import without_paths
from archivist.recall.keywords import STOP_WORDS
from archivist.records import Category, Event, EventKind, Lesson
from archivist.records.words import MODEL_ORIGIN

if TYPE_CHECKING:
    from archivist.reading.calls import ToolCall

_WORD = lazy_pattern(r"\w+")
# What the user often asks for stands in such marks; each is asked for in one sentence of a message.
_ASKED = lazy_pattern(r"“([^“”]{1,200})”")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+|\n+")
# An error that stands in backticks may hold a name in backticks of its own.
CODE = lazy_pattern(r"`([^`\n]{0,400}(?<=[\s(\[])`[^`\n]{1,100}`[^`\n]{0,400}(?=`(?!\w))|[^`\n]+)`")
# What can be looked up besides code: quotations, paths, error classes, options, variables, numbers, files.
_NAMES = lazy_pattern(
    r"[“\"]([^“”\"\n]{4,200})[”\"]|(?<![\w.@~+/-])((?:[\w.@~+-]*+/)++[\w.@+-]++)"
    r"|\b(\w+(?:Error|Exception|Warning))\b|(?<![\w-])(--?[a-zA-Z][\w-]+)"
    r"|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|(?<![\w.-])(\d+(?:\.\d+)*)(?![\w-]|\.\w)"
    r"|(?<![\w.-])([\w-]++\.(?:py|js|ts|tsx|jsx|rs|go|java|rb|c|h|cpp|toml|ya?ml|json|cfg|ini|sh|md|lock|sql))\b"
)
_QUOTED = lazy_pattern(r"[“\"][^“”\"\n]{1,200}[”\"]")
# The last of these words before a command decides whether a sentence recommends it.
_TURN = lazy_pattern(
    r"\b(?:(?:\w+(?:s|ed)|fail) with"
    r"|(?:not|never|avoid|without|longer|leave out|skip|omit|exclude)(?: \w{1,20})?"
    r"|instead of|rather than|before|when|if|because|after|until|while|since|that|which|fails?|needs?"
    r"|imports?)\b|n't(?: \w{1,20})?"
    r"|\b(?P<advice>us(?:e|ing)|run(?:ning)?|try|execute|call|install|add|pass|set|first|then|with|prefer"
    r"|instead)\b",
    re.IGNORECASE,
)
# Behind a colon another statement begins, unless the colon announces what is to be used: "run: `make up`".
_CLAUSE_END = lazy_pattern(
    r"[.;!?](?:\s|$)"
    r"|(?<!\buse)(?<!\brun)(?<!\btry)(?<!\bfirst)(?:(?<!\bthen)|(?<=\bnow and then))(?<!\binstead):(?:\s|$)",
    re.IGNORECASE,
)
# What lies in such a folder may be there for a reason, though programs write to it.
_KEPT_FOLDERS = frozenset(("tmp", "temp", "log", "logs"))
# How far back the word that decides may be.
_REACH = 160
# The object of a verb stands near it: "Running two of them at once makes `x` fail" advises nothing.
_MOST_WORDS_BETWEEN = 5
# What is said of a command behind it: that it fails, or does not help.
_DENIED = lazy_pattern(
    r"(?:\s+(?!when|if|after|before|and|or|to|then|until)\w+){0,2}?\s+(?:(?P<ever>never|always fails)\b"
    r"|fails?\b|failed\b|(?:does|did|do) not\b|(?:doesn|didn|don)'t\b|(?:is|was|are) refused\b|crashe[sd]\b"
    r"|hangs?\b|breaks?\b)",
    re.IGNORECASE,
)
# What follows is given as the reason of what stands before.
_CAUSE = lazy_pattern(
    r"\b(?:because(?: of)?|due to|owing to|caused by|c[ao]mes? from|as a result of)\b([^.;:!?]{3,200})",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[^\W\d_]{3,}")
# Words that say that something is so, and not what it is.
_FILLER = STOP_WORDS | {
    "here",
    "still",
    "already",
    "again",
    "itself",
    "instead",
    "first",
    "two",
    "three",
    "has",
    "user",
    "agent",
}
# Forms of a word mostly share so many letters: renew, renewed, renewal.
_STEM = 5
# A cause is in own words; half of them must be the events'.
_SHARE_OF_CAUSE = 0.5
_QUOTES = str.maketrans("", "", "\"'`")
# What a summary says for any argument, such as `git checkout -b <branch>`, and where it was shortened.
_PLACEHOLDER = lazy_pattern(r"<[\w -]+>|…")


def unsupported_reason(text: str, events: Sequence[Event], known: Iterable[str] = ()) -> str:
    """Return why events do not support a claim, as a sentence's end; empty when they do.

    What stands in `known` texts, such as those of lessons that the claim replaces, needs no event.
    """
    # Hooks import this module and check no claims.
    from archivist.reading.calls import read_tool_calls

    told = [normal_text(each) for each in known]
    shown = [event_text(each) for each in events]
    calls = [
        normal_text(f"{each.text} {each.target}")
        for each in events
        if each.kind is EventKind.TOOL_CALL and not each.is_error and not each.exit_code
    ]
    if missing := unshown_name(text, (*shown, *told)):
        return f"no cited event shows {missing!r}"
    for code in advised_code(text):
        if destroys(code):
            return f"{code!r} can destroy work or data"
        if not is_shown(code, (*calls, *told)):
            return f"no cited call ran {code!r} and worked"
    if cause := unshown_cause(text, (*shown, *told)):
        return f"no cited event shows the cause {cause!r}"
    if denied := contradicted_code(text, read_tool_calls(events)):
        return f"the cited call of {denied!r} worked"
    return ""


def event_text(event: Event) -> str:
    """Return all that stands in an event, for comparison."""
    found = " ".join(finding.description for finding in event.findings)
    return normal_text(f"{event.text} {event.target} {event.tool} {event.output} {found}")


def unshown_name(text: str, texts: Sequence[str], *, most_own: int = 0) -> str:
    """Return a name that no text shows, or nothing; numbers up to `most_own` may be counts of one's own."""
    own = {str(number) for number in range(most_own + 1)}
    return next((name for name in names_in(text) if name not in own and not is_shown(name, texts)), "")


def names_in(text: str) -> list[str]:
    """Return what a text names that can be looked up: code, quotations, paths, errors, options, numbers."""
    found = [span.strip() for span in CODE.findall(text)]
    found += [next(filter(None, match)) for match in _NAMES.findall(CODE.sub(" ", text))]
    return list(dict.fromkeys(name for name in found if name))


def advised_code(text: str) -> list[str]:
    """Return the commands and settings that a text tells its reader to use, by the words before each."""
    found = []
    for span in CODE.finditer(text):
        # What a rule is about stands in its condition, whatever the words: IF running `x` fails THEN …
        condition = text[: span.start()].rpartition("IF ")
        if condition[1] and "THEN" not in condition[2] and "THEN" in text[span.end() :]:
            continue
        before = _QUOTED.sub("", CODE.sub("", text[: span.start()]))
        clause = _CLAUSE_END.split(before[-_REACH:])[-1]
        turns = list(_TURN.finditer(clause))
        if turns and turns[-1]["advice"] and len(clause[turns[-1].end() :].split()) <= _MOST_WORDS_BETWEEN:
            found.append(span[1].strip())
    return list(dict.fromkeys(found))


def destroys(command: str) -> bool:
    """Say whether a command that a claim advises can destroy work or data."""
    from archivist.reading.remedies import is_destructive
    from archivist.reading.shell import parse

    removed = (argument for step in parse(command) if step.program == "rm" for argument in step.arguments)
    names = {path.rstrip("/*").rsplit("/", 1)[-1] for path in removed}
    return is_destructive(command) or not names.isdisjoint(_KEPT_FOLDERS)


def unshown_cause(text: str, texts: Sequence[str]) -> str:
    """Return a cause that a text gives and of whose words most stand in no other text, or nothing."""
    whole = " ".join(texts)
    for clause in _CAUSE.findall(text):
        words = content_words(clause)
        shown = [word for word in words if holds_form(whole, word)]
        if words and len(shown) < _SHARE_OF_CAUSE * len(words):
            return " ".join(clause.split())
    return ""


def gives_cause(text: str) -> bool:
    """Say whether a text gives a reason."""
    return _CAUSE.search(text) is not None


def content_words(text: str) -> list[str]:
    """Return the words of a text that say what it is about, in lower case."""
    return [word for word in _WORD.findall(text.casefold()) if word not in _FILLER]


def holds_form(text: str, word: str) -> bool:
    """Say whether a normal text holds a form of a word: another ending is the same word."""
    # A short word keeps all but a final s: needs, need.
    stem = word.removesuffix("s")[:_STEM]
    return re.search(rf"(?<![^\W_]){re.escape(stem)}", text) is not None


def contradicted_code(text: str, calls: Sequence[ToolCall]) -> str:
    """Return a command that a text says to fail, or not to help, and that only worked; or nothing.

    That it never helps is contradicted by one call that worked.
    """
    from archivist.reading.outcomes import has_worked

    for code, is_always in denied_code(text):
        made = [call for call in calls if normal_text(code) in _step_texts(call)]
        has_failed = any(call.has_failed for call in made)
        if any(map(has_worked, made)) and (is_always or not has_failed):
            return code
    return ""


def denied_code(text: str) -> list[tuple[str, bool]]:
    """Return the commands that a text says to fail or not to help, each with whether it says so for good."""
    found = [(span[1].strip(), _DENIED.match(text[span.end() :])) for span in CODE.finditer(text)]
    return [(code, bool(denied["ever"])) for code, denied in found if denied]


def _step_texts(call: ToolCall) -> set[str]:
    """Return what a call ran, step by step, or the tool that it is of."""
    steps = {normal_text(" ".join(word.value for word in step.words)) for step in call.steps}
    return steps or {normal_text(call.event.tool)}


def is_shown(name: str, texts: Iterable[str]) -> bool:
    """Say whether one of some normal texts holds a name: as it stands, or, of a command, all of its words."""
    wanted = normal_text(_PLACEHOLDER.sub(" ", name))
    words = wanted.split()
    # A mark may stand inside a word, as in `page.html?raw=1`, and a folder before what lies in it.
    begin = r"(?<!\w)" if re.match(r"\w", wanted) else ""
    end = r"(?!\w)" if re.search(r"\w\Z", wanted) else ""
    return any(
        (wanted in text and re.search(f"{begin}{re.escape(wanted)}{end}", text) is not None)
        or (len(words) > 1 and all(_holds_word(text, word) for word in words))
        for text in texts
    )


# How runners say that what they ran has failed, whatever their own status.
_EXITED = lazy_pattern(r"\bexit(?:ed)?(?: with)?(?: code| status):? [1-9]\d{0,2}\b")
_OUTPUT_END = 16_000


def remedy_words(remedy: str) -> set[str]:
    """Return the words that a call has which carried a command out, without those that stand for any."""
    return {
        word for word in remedy.split() if not _PLACEHOLDER.search(word) and word not in ("&&", "||", ";")
    }


def _holds_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def normal_text(text: str) -> str:
    """Return a text for comparison: case, white space, quotes and the machine's folders do not count."""
    return " ".join(without_paths(text).casefold().translate(_QUOTES).split())


def _carries_out(event: Event, remedy: str) -> bool:
    """Say whether a call has the words of a command in their order: in another they may be what failed."""
    known = remedy_words(remedy)
    wanted = [word for word in remedy.split() if word in known]
    words = iter(event.text.split())
    return bool(wanted) and (all(word in words for word in wanted) or known <= {*event.target.split()})


def quote_output(output: str, message: str, most: int) -> list[str]:
    """Return the lines of an output that show most: the first, those around a message, and the last ones."""
    lines = output.strip().splitlines()
    if len(lines) <= most:
        return lines
    wanted = {*_WORD.findall(message.lower())}
    shares = [len(wanted & {*_WORD.findall(line.lower())}) for line in lines]
    # What most of the message does not stand in is another line.
    at = shares.index(max(shares)) if 2 * max(shares) > len(wanted) else len(lines)
    chosen = {0, *range(len(lines) - most + 2, len(lines))}
    if at not in chosen and at < len(lines):
        chosen = {0, at, at + 1, *range(len(lines) - most + 4, len(lines))}
    quoted: list[str] = []
    for number in sorted(chosen):
        quoted += ["…"] if number and number - 1 not in chosen else []
        quoted.append(lines[number])
    return quoted


def choose_calls(lesson: Lesson, cited: Sequence[Event]) -> dict[str, Event]:
    """Return the call that failed of those a lesson cites, and one after it that did what it advises.

    It is the latest of those that show most of what the lesson names. A model cites what overcame the
    failure itself: there it is the last call that it cites.

    A wish cites no call but messages.
    """
    calls = [event for event in cited if event.kind in (EventKind.TOOL_CALL, EventKind.EDIT)]
    if form := lesson.signature.partition("|unfiltered:")[2]:
        return _choose_counts(form, lesson.remedies, calls)
    # What failed by chance is mended by nothing: the call that its summary names worked too.
    named = [] if lesson.remedies else CODE.findall(lesson.summary)
    shown = [
        event
        for event in calls
        # Behind a pipe a call that failed ends well, but for what it printed.
        if not (event.is_error or event.exit_code or _EXITED.search(event.output[-_OUTPUT_END:]))
        and event_failure(event) is None
        and not (lesson.detail and lesson.detail in event.output)
        and (
            any(_carries_out(event, remedy) for remedy in lesson.remedies)
            or any(is_shown(name, [normal_text(event.text)]) for name in named)
        )
    ]
    # Of the runs that met it, one that overcame it shows most.
    runs = {event.run for event in shown}
    names = names_in(lesson.summary)

    def rank_failed(event: Event) -> tuple[bool, int, bool, str, int]:
        texts = [event_text(event)]
        count = sum(is_shown(name, texts) for name in names)
        has_detail = bool(lesson.detail) and lesson.detail in event.output
        return has_detail, count, event.run in runs, event.run, event.seq

    failed = max(
        (event for event in calls if event.is_error or event.exit_code),
        key=rank_failed,
        default=None,
    )
    if failed is None:
        return _choose_messages(lesson, [event for event in cited if event.kind is EventKind.MESSAGE])

    def is_later(event: Event) -> bool:
        return event.run != failed.run or event.seq > failed.seq

    worked = min(
        # What fails by chance may have passed before it failed.
        (event for event in shown if is_later(event) or (named and event.text == failed.text)),
        key=lambda event: (event.run != failed.run, event.run, event.seq),
        default=None,
    )
    if lesson.origin == MODEL_ORIGIN and (lesson.remedies or lesson.category is Category.BUGFIX_PATTERN):
        after = [event for event in calls if event.run == failed.run and is_later(event)]
        helped = [event for event in after if not (event.is_error or event.exit_code)]
        worked = worked or max(helped, key=lambda event: event.seq, default=None)
    return {"Failed": failed} | ({"Worked": worked} if worked else {})


def _choose_messages(lesson: Lesson, cited: Sequence[Event]) -> dict[str, Event]:
    """Return the latest message in which a wish was said.

    For each thing that the user often asks for it is the shortest sentence that holds its words.
    """
    if not lesson.is_request:
        return {"Said": max(cited, key=lambda event: (event.run, event.seq))} if cited else {}
    said = [
        (replace(event, text=part.strip()), {*_WORD.findall(part.lower())})
        for event in sorted(cited, key=lambda event: (to_text(event.time) if event.time else "", event.seq))
        for part in _SENTENCE_END.split(event.text)
    ]
    found = {}
    for words in _ASKED.findall(lesson.summary):
        asking = [event for event, held in said[::-1] if held.issuperset(_WORD.findall(words.lower()))]
        if asking:
            found[f"“{words}” said"] = min(asking, key=lambda event: len(event.text))
    return found


def _choose_counts(form: str, remedies: Sequence[str], calls: Sequence[Event]) -> dict[str, Event]:
    """Return the call of a form that ran all tests, and one of the advised form that ran the fewest."""
    from archivist.reading.runner_reports import read_report

    counted = [(read_report(event.output).ran, event) for event in calls]
    whole = [(ran, event) for ran, event in counted if ran and _carries_out(event, form)]
    if not whole:
        return {}
    most, everything = max(whole, key=lambda each: each[0])
    fewer = [
        (ran, event)
        for ran, event in counted
        if 0 < ran < most and any(_carries_out(event, remedy) for remedy in remedies)
    ]
    found = {f"Ran all {most} tests": everything}
    if fewer:
        least, part = min(fewer, key=lambda each: each[0])
        found[f"Ran {least} {'test' if least == 1 else 'tests'}"] = part
    return found
