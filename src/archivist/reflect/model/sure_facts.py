"""Add to a model's account of a run what is known of the run and the account does not tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict

from archivist.cold_start import lazy_pattern
from archivist.lessons.risky_text import suspicion
from archivist.lessons.support import content_words, holds_form
from archivist.reading.run import RunReading
from archivist.reflect.summary import STILL_FAILED, RunSummary, describe_end, list_deliveries

# What a fact is known by: a pull request, a quotation, a command or file.
_NAME = lazy_pattern(r"(#\d{1,9})|“([^“”]{1,300})”|`([^`]{1,300})`")
_TELLS_END = lazy_pattern(
    r"\b(?:at|in) the end\b[^.;]{0,80}\b(?:pass(?:ed|es)?|green)\b"
    r"|\b(?:pass(?:ed|es)?|green)\b[^.;]{0,80}\b(?:at|in) the end\b",
    re.IGNORECASE,
)


def add_sure_facts(
    account: Mapping[str, object], story: RunSummary, reading: RunReading
) -> dict[str, object]:
    """Return an account with the lines of the deterministic story that it does not tell.

    Where it has no such part, the story's own stands.
    """
    outcome = str(account["outcome"])
    parts = {name: tuple(map(str, lines)) for name, lines in account.items() if isinstance(lines, tuple)}
    # The story's outcome may have told what was handed in.
    handed_in = (line for line in list_deliveries(reading.acts) if not suspicion(line, ""))
    known = {**asdict(story), "worked": tuple(dict.fromkeys((*story.worked, *handed_in)))}
    found: dict[str, object] = {}
    for name, own in parts.items():
        # That a check passed does not tell that it failed before.
        others = (lines for other, lines in parts.items() if (name, other) != ("failed", "worked"))
        told = " ".join((outcome, *(line for lines in others for line in lines)))
        found[name] = (*own, *(line for line in known[name] if not _tells(told, line)))
    end = describe_end(reading.acts)
    whole = " ".join((outcome, *(line for lines in parts.values() for line in lines)))
    is_named = all(check in whole for _, _, check in _NAME.findall(end))
    is_told = is_named or (STILL_FAILED not in end and _TELLS_END.search(outcome))
    return {"outcome": outcome if is_told else f"{outcome} {end}", **found}


def _tells(text: str, fact: str) -> bool:
    """Say whether a text tells a fact.

    It has the number of a pull request or all that is quoted; of commands and files it names one. A fact that
    names nothing, or only quotes the request that it tells of, is told by most of its words.
    """
    text, names = text.casefold(), _NAME.findall(fact.casefold())
    numbers, quotes, commands = ([each for each in (name[at] for name in names) if each] for at in range(3))
    if numbers:
        return all(number in text for number in numbers)
    if commands:
        return any(command in text for command in commands)
    if quotes and not fact.startswith("“"):
        return all(quote in text for quote in quotes)
    words = content_words(fact)
    return not words or 2 * sum(holds_form(text, word) for word in words) > len(words)
