"""Say whether events show what a lesson claims: by the names in it and by what it advises, without a model.

What it names (code, quotations, paths, errors, options, variables, numbers) must stand in the events that it
cites, and a command that it advises must be one that a cited call ran without failing. So whoever words a
lesson, or the log that talked them into it, can choose among what happened and cannot make anything up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.wording import without_paths
from archivist.records import Event, EventKind, Lesson

CODE = lazy_pattern(r"`([^`\n]+)`")
# What can be looked up besides code: quotations, paths, error classes, options, variables, numbers, files.
_NAMES = lazy_pattern(
    r"[“\"]([^“”\"\n]{4,200})[”\"]|(?<![\w.@~+/-])((?:[\w.@~+-]*+/)++[\w.@+-]++)"
    r"|\b(\w+(?:Error|Exception|Warning))\b|(?<![\w-])(--?[a-zA-Z][\w-]+)"
    r"|\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b(\d[\d.]*\d)\b"
    r"|(?<![\w.-])([\w-]++\.(?:py|js|ts|tsx|jsx|rs|go|java|rb|c|h|cpp|toml|ya?ml|json|cfg|ini|sh|md|lock|sql))\b"
)
# The last of these words before a command decides whether a sentence recommends it.
_TURN = lazy_pattern(
    r"\b(?:(?:not|never|avoid|without|longer)(?: \w{1,20})?|instead of|rather than|before|when|if|because"
    r"|after|until|while|since|that|which|fails?|needs?|imports?)\b|n't(?: \w{1,20})?"
    r"|\b(?P<advice>us(?:e|ing)|run(?:ning)?|try|execute|call|install|add|pass|set|first|then|with|prefer"
    r"|instead)\b",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_pattern(r"[.;!?](?:\s|$)")
# How far back the word that decides may be.
_REACH = 160
# What a summary says for any argument, such as `git checkout -b <branch>`, and where it was shortened.
_PLACEHOLDER = lazy_pattern(r"<[\w -]+>|…")


def unsupported_reason(text: str, events: Sequence[Event], known: Iterable[str] = ()) -> str:
    """Return why events do not support a claim, as a sentence's end; empty when they do.

    What stands in `known` texts, such as those of lessons that the claim replaces, needs no event.
    """
    told = [normal_text(each) for each in known]
    shown = [normal_text(f"{each.text} {each.target} {each.tool} {each.output}") for each in events]
    calls = [
        normal_text(f"{each.text} {each.target}")
        for each in events
        if each.kind is EventKind.TOOL_CALL and not each.is_error and not each.exit_code
    ]
    for name in names_in(text):
        if not is_shown(name, (*shown, *told)):
            return f"no cited event shows {name!r}"
    for code in advised_code(text):
        if not is_shown(code, (*calls, *told)):
            return f"no cited call ran {code!r} and worked"
    return ""


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
        sentence = _SENTENCE_END.split(CODE.sub("", text[: span.start()])[-_REACH:])[-1]
        turns = list(_TURN.finditer(sentence))
        if turns and turns[-1]["advice"]:
            found.append(span[1].strip())
    return list(dict.fromkeys(found))


def is_shown(name: str, texts: Iterable[str]) -> bool:
    """Say whether one of some normal texts holds a name: as it stands, or, of a command, all of its words."""
    wanted = normal_text(_PLACEHOLDER.sub(" ", name))
    words = wanted.split()
    return any(
        (wanted in text and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text) is not None)
        or (len(words) > 1 and all(_holds_word(text, word) for word in words))
        for text in texts
    )


def remedy_words(remedy: str) -> set[str]:
    """Return the words that a call has which carried a command out, without those that stand for any."""
    return {
        word for word in remedy.split() if not _PLACEHOLDER.search(word) and word not in ("&&", "||", ";")
    }


def _holds_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def normal_text(text: str) -> str:
    """Return a text for comparison: case, white space, quotes and the machine's folders do not count."""
    return " ".join(without_paths(text).casefold().replace('"', "").replace("'", "").split())


def _carries_out(event: Event, remedy: str) -> bool:
    """Say whether a call has the words of a command in their order: in another they may be what failed."""
    known = remedy_words(remedy)
    wanted = [word for word in remedy.split() if word in known]
    words = iter(event.text.split())
    return bool(wanted) and (all(word in words for word in wanted) or known <= {*event.target.split()})


def choose_calls(lesson: Lesson, cited: Sequence[Event]) -> dict[str, Event]:
    """Return the latest call that failed of those a lesson cites, and one that did what it advises.

    A wish cites no call: then it is the latest message in which it was said.
    """
    calls = [event for event in cited if event.kind in (EventKind.TOOL_CALL, EventKind.EDIT)]
    shown = [
        event
        for event in calls
        # Behind a pipe a call that failed ends well.
        if not (event.is_error or event.exit_code)
        and not (lesson.detail and lesson.detail in event.output)
        and any(_carries_out(event, remedy) for remedy in lesson.remedies)
    ]
    # Of the runs that met it, one that overcame it shows most.
    runs = {event.run for event in shown}
    failed = max(
        (event for event in calls if event.is_error or event.exit_code),
        key=lambda event: (event.run in runs, event.run, event.seq),
        default=None,
    )
    if failed is None:
        said = [event for event in cited if event.kind is EventKind.MESSAGE]
        return {"Said": max(said, key=lambda event: (event.run, event.seq))} if said else {}
    worked = min(
        (event for event in shown if event.run != failed.run or event.seq > failed.seq),
        key=lambda event: (event.run != failed.run, event.run, event.seq),
        default=None,
    )
    return {"Failed": failed} | ({"Worked": worked} if worked else {})
