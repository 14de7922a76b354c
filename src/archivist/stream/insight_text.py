"""An insight, and how entries are named and quoted in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from archivist.records import Entry
from archivist.stream.obstacles import TICKET, ObstacleReport, split_sentences
from archivist.text import shorten_line

_SHOWN_IDS = 10
SHOWN_ISSUES = 5
_SHOWN_RELATED = 3
# So many words are a title; what happened is in the content then.
_TITLE_WORDS = 4
_SAID_CHARACTERS = 140
_SENTENCE = re.compile(r"(?<=[.!?])\s")
# A heading is cut; what an insight quotes stands whole, unless it is pasted output.
shorten = partial(shorten_line, most=110)
quote_text = partial(shorten_line, most=300)


class RelatedItem(NamedTuple):
    """A document or a lesson: its name, its text, and the issues that it is about."""

    name: str
    text: str
    issues: tuple[int, ...] = ()


class Insight(NamedTuple):
    """One thing to know, its weight and its evidence.

    `about` names its subject, so that nothing is told twice. `blocker` is the line for the status in core
    memory, for a blocker that is open and strategic; `words` say what it is about; `rule` a rule about it
    that somebody decided on; `quoted` are the entries whose words it repeats.
    """

    action: str
    content: str
    importance: int
    tags: tuple[str, ...]
    issues: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    blocker: str = ""
    words: tuple[str, ...] = ()
    rule: str = ""
    quoted: tuple[str, ...] = ()
    about: frozenset[str] = frozenset()


def make_insight(
    cluster: Sequence[Entry],
    action: str,
    *sentences: str,
    tags: tuple[str, ...],
    issues: tuple[int, ...] | None = None,
    importance: int = 9,
    quoted: Iterable[Entry] = (),
    about: Iterable[str] = (),
) -> Insight:
    """Return an insight about a cluster of entries: its evidence, named with the others that it quotes."""
    ids = tuple(entry.id for entry in cluster)
    named = tuple(dict.fromkeys((*ids, *(entry.id for entry in quoted))))
    return Insight(
        action=f"Reflection: {action}",
        content=" ".join((*filter(None, sentences), _name_entries(named))),
        importance=importance,
        tags=("reflection", "deterministic", *tags),
        issues=tuple(by_issue(cluster))[:SHOWN_ISSUES] if issues is None else issues,
        roles=roles_of(cluster),
        evidence=ids,
        quoted=named,
        about=frozenset(about),
    )


def add_sentence(insight: Insight, sentence: str, entry: Entry) -> Insight:
    """Return an insight that says one thing more, which an entry stands for."""
    named = tuple(dict.fromkeys((*insight.quoted, entry.id)))
    said = insight.content.removesuffix(_name_entries(insight.quoted)).rstrip()
    return insight._replace(content=f"{said} {sentence} {_name_entries(named)}", quoted=named)


def _name_entries(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    return f"Entries: {', '.join(ids[:_SHOWN_IDS])}{more}."


def name_related(related: Sequence[RelatedItem], issues: Sequence[int]) -> str:
    """Name the archived texts about some issues."""
    names = [
        item.name
        for item in related
        if {*item.issues} & {*issues} and not item.name.startswith("reflections/")
    ][:_SHOWN_RELATED]
    return f"In the archive: {', '.join(names)}." if names else ""


def say(entry: Entry, label: str = "", most: int = _SAID_CHARACTERS) -> str:
    """Return what an entry says: its action, and where that is only a title the first of its content."""
    title, content = (" ".join(text.split()).rstrip(".") for text in (entry.action, entry.content))
    text = title
    if content and len(title.split()) <= _TITLE_WORDS:
        first, *more = _SENTENCE.split(content)
        text = f"{first} {more[0]}" if more and len(first) + len(more[0]) < most else first
    if label:
        text = re.sub(rf"\s?\([^()]{{0,200}}{re.escape(label)}(?!\w)[^()]{{0,200}}\)", "", text)
    return shorten_line(text.rstrip("."), most=most)


def quote_said(entry: Entry, label: str = "") -> str:
    """Quote what an entry says, with its cycle."""
    return f"“{say(entry, label)}” (cycle {entry.cycle})"


def quote_entry(entry: Entry, said: str = "") -> str:
    """Quote what an entry says was done, with its cycle and role."""
    role = f", {entry.role}" if entry.role else ""
    told = f": {quote_text(say(entry))}" if not said and say(entry) not in entry.action else said
    return f"“{quote_text(entry.action)}{told}” (cycle {entry.cycle}{role})"


def quote_report(report: ObstacleReport) -> str:
    """Quote an entry that reports an obstacle or its end, with the sentence that does where it is another."""
    sentences = list(split_sentences(report.entry))
    said = sentences[report.place] if report.place < len(sentences) else ""
    is_other = said and said not in " ".join(report.entry.action.replace("\u2019", "'").split())
    return quote_entry(report.entry, f": {quote_text(said)}" if is_other else "")


def labels_of(entry: Entry, pulls: Collection[int] = ()) -> tuple[str, ...]:
    """Return what an entry refers to: `#95`, `PR #107`, `DATA-112`.

    The numbers in `pulls` are pull requests, also where an entry does not say so.
    """
    numbers = (f"PR #{n}" if n in pulls or n in entry.prs else f"#{n}" for n in (*entry.issues, *entry.prs))
    keys = TICKET.findall(f"{entry.action} {entry.content}")
    return tuple(dict.fromkeys((*numbers, *keys)))


def pulls_of(entries: Iterable[Entry]) -> frozenset[int]:
    """Return the numbers that some entry calls a pull request."""
    return frozenset(number for entry in entries for number in entry.prs)


def describe_roles(cluster: Sequence[Entry]) -> str:
    """Say which role did something in which cycles."""
    return "; ".join(
        f"{role} in {format_cycles(cycles_of(entry for entry in cluster if entry.role == role))}"
        for role in roles_of(cluster)[:SHOWN_ISSUES]
    )


def format_cycles(cycles: Sequence[int]) -> str:
    """Name cycles, many of them by the first and the last."""
    if len(cycles) == 1:
        return f"cycle {cycles[0]}"
    if len(cycles) <= 5:
        return f"cycles {', '.join(map(str, cycles))}"
    return f"{len(cycles)} cycles from {cycles[0]} to {cycles[-1]}"


def count_cycles(count: int) -> str:
    """Say a number of cycles."""
    return "1 cycle" if count == 1 else f"{count} cycles"


def cycles_of(cluster: Iterable[Entry]) -> list[int]:
    """Return the cycles of some entries in order, each once."""
    return sorted({entry.cycle for entry in cluster})


def unique_entries(cluster: Iterable[Entry]) -> list[Entry]:
    """Return entries in their order, each once."""
    return list({entry.id: entry for entry in cluster}.values())


def roles_of(cluster: Iterable[Entry]) -> tuple[str, ...]:
    """Return the roles of some entries in the order of their first."""
    return tuple(dict.fromkeys(entry.role for entry in cluster if entry.role))


def by_issue(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    """Return the entries that refer to each issue."""
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        for issue in entry.issues:
            found.setdefault(issue, []).append(entry)
    return found
