"""Decide which of a model's insights about a stream hold: by the entries that they cite, without a model.

What an insight names must stand in them, numbers as such or as a sum of theirs. What it gives as a cause must
stand in one entry with the effect. What it says to have been done to a person must stand there, and what it
says of an issue must agree with the last report about that issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from archivist.cold_start import lazy_pattern
from archivist.lessons.risky_text import suspicion
from archivist.lessons.support import content_words, holds_form, is_shown, names_in, normal_text
from archivist.records import Entry
from archivist.reflect.model.questions.insights import ProposedInsight
from archivist.reflect.model.verification import ClaimError, DropReason

_LONGEST_INSIGHT = 900
# One entry is no pattern.
_LEAST_ENTRIES = 2
# More numbers of one unit add up to nearly anything.
_MOST_ADDENDS = 6
_SENTENCE_END = lazy_pattern(r"(?<=[.!?;])\s+")
_COUNTED = lazy_pattern(r"(?<![\w.#])(\d+) ([^\W\d_]{3,})")
_CLAUSE_END = lazy_pattern(r"[.;:!?]")
_CAUSED = lazy_pattern(r"\b(?:because(?: of)?|due to|caused by|c[ao]mes? from)\b", re.IGNORECASE)
_DONE_TO = lazy_pattern(
    r"(?<![\w-])([\w-]{1,30}) (?:was|were|is|are|has been|have been|got) (?:\w{1,20}ly )?(\w{2,20}e[dn])\b",
    re.IGNORECASE,
)
_PERSONS = frozenset((
    "admin", "person", "people", "customer", "user", "team", "vendor", "supplier", "engineer", "manager",
    "owner", "developer", "colleague", "maintainer", "reviewer", "tester", "lead", "boss",
))  # fmt: skip
_ISSUE = lazy_pattern(r"#(\d+)")
_SAYS_OPEN = lazy_pattern(
    r"\b(?:still|remains?|is|are|stays?) (?:\w+ )?(?:open|blocked|blocking|unresolved)\b"
    r"|\bstill (?:\w+ )?blocks?\b",
    re.IGNORECASE,
)
_SAYS_ENDED = lazy_pattern(
    r"(?<!not )\b(?:is|was|are|were|been) (?:\w+ )?(?:closed|fixed|solved|resolved|over|done)\b",
    re.IGNORECASE,
)


def verify_insight(
    claim: ProposedInsight, entries: Mapping[int, Entry], issue_signs: Mapping[int, str]
) -> list[Entry]:
    """Return the entries that show an insight; raise ClaimError when they do not.

    `issue_signs` says of each issue what was reported of it last: blocked, trouble or ended.
    """
    numbers = list(dict.fromkeys(claim.entries))
    if any(number not in entries for number in numbers):
        raise ClaimError(DropReason.UNKNOWN_EVENT)
    if len(numbers) < _LEAST_ENTRIES:
        raise ClaimError(DropReason.UNCITED)
    text = f"{claim.title}. {claim.content}"
    if not claim.title.strip() or not claim.content.strip() or len(text) > _LONGEST_INSIGHT:
        raise ClaimError(DropReason.EMPTY)
    cited = [entries[number] for number in numbers]
    texts = [
        normal_text(
            f"{entry.action} {entry.content} {entry.role} cycle {entry.cycle} {entry.issues} {entry.tags}"
        )
        for entry in cited
    ]
    # Of how many cycles or entries is the model's own count, and may be any number up to those it cites.
    own = {str(number) for number in range(len(cited) + 1)} | _right_sums(text, texts)
    if not all(name in own or is_shown(name, texts) for name in names_in(text)):
        raise ClaimError(DropReason.UNSUPPORTED)
    if suspicion(claim.title, claim.content) or _unshown_fate(text, texts, (entry.role for entry in cited)):
        raise ClaimError(DropReason.UNSUPPORTED)
    causes = (_CAUSED.split(clause, 1) for clause in _CLAUSE_END.split(text))
    if not all(_is_linked(*parts, texts=texts) for parts in causes if len(parts) > 1):
        raise ClaimError(DropReason.UNCAUSED)
    if any(_is_denied(sentence, issue_signs) for sentence in _SENTENCE_END.split(text)):
        raise ClaimError(DropReason.CONTRADICTED)
    return cited


def _right_sums(text: str, texts: Sequence[str]) -> set[str]:
    """Return the numbers of a text that are sums of cited numbers of the same unit."""
    shown = [(int(number), unit) for each in texts for number, unit in _COUNTED.findall(each)]
    found = set()
    for number, unit in _COUNTED.findall(normal_text(text)):
        addends = [value for value, other in shown if other.rstrip("s") == unit.rstrip("s")][:_MOST_ADDENDS]
        sizes = range(2, len(addends) + 1)
        if any(sum(some) == int(number) for size in sizes for some in combinations(addends, size)):
            found.add(number)
    return found


def _unshown_fate(text: str, texts: Sequence[str], roles: Iterable[str]) -> bool:
    """Say whether a text says something to have been done to a person that no entry says."""
    persons = {role.casefold() for role in roles} | _PERSONS
    whole = " ".join(texts)
    return any(
        (who.casefold() in persons or who.casefold().rstrip("s") in persons)
        and not holds_form(whole, done.casefold())
        for who, done in _DONE_TO.findall(text)
    )


def _is_linked(effect: str, cause: str, *, texts: Sequence[str]) -> bool:
    """Say whether one text has words of a cause and of its effect: that both happened links nothing."""
    causes, effects = content_words(cause), content_words(effect)
    if not causes or not effects:
        return True
    return any(
        any(holds_form(text, word) for word in causes) and any(holds_form(text, word) for word in effects)
        for text in texts
    )


def _is_denied(sentence: str, issue_signs: Mapping[int, str]) -> bool:
    """Say whether a sentence calls an issue open that ended, or closed that blocks."""
    signs = {issue_signs.get(int(number), "") for number in _ISSUE.findall(sentence)}
    is_open, is_over = (pattern.search(sentence) is not None for pattern in (_SAYS_OPEN, _SAYS_ENDED))
    return (is_open and not is_over and "ended" in signs) or (is_over and not is_open and "blocked" in signs)
