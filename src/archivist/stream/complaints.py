"""Find complaints that come back nearly word for word: error texts, and what agents say of them.

Its verb does not matter: “String to replace not found in file” in a second cycle is trouble.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from archivist.records import Entry, EntryType
from archivist.stream.obstacles import HYPOTHETICAL, ObstacleReport, is_work, split_sentences, words_of

# Fewer words in a row are shared by chance; longer ones are found by their first words.
_LEAST_WORDS, _MOST_WORDS = 3, 9
_LEAST_CYCLES = 2
_TOKEN = re.compile(r"[^\W_][\w'./@-]*[^\W_]|[^\W_]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A phrase neither begins nor ends with these.
_EDGE = frozenset(
    ["a", "again", "an", "and", "are", "as", "at", "be", "by", "for", "from", "i", "in", "is", "it", "its",
     "now", "of", "on", "once", "or", "still", "that", "the", "this", "time", "times", "to", "twice", "was",
     "we", "were", "with"]
)  # fmt: skip
# These stand in error texts, and seldom in what somebody did.
_ERROR_TEXT = (
    r"not (?:found|registered|recogni[sz]ed|available|installed|permitted|authori[sz]ed|a valid)"
    r"|no (?:such|[^,:;]{1,40} (?:were found|was found|found|registered|available))"
    r"|un(?:recogni[sz]ed|known|defined|expected|resolved)|invalid|missing|denied|illegal|forbidden|mismatch"
    r"|(?:does|did|could|can) ?not|cannot|unable to"
)
_NEGATIVE = re.compile(rf"\b(?:{_ERROR_TEXT})\b")
# Where a sentence is known to tell of trouble, these words name it.
_TROUBLED = re.compile(
    rf"\b(?:{_ERROR_TEXT}|refus(?:es|ed|al)|reject(?:s|ed)|fail(?:s|ed|ing)?|errors?|exception|out of \w+"
    r"|exceed(?:s|ed)|abort(?:s|ed)|conflicts?|too (?:many|long|large|slow)|tim(?:ed|es) out|time-?outs?"
    r"|crash(?:es|ed)|broken|wrong|lost|killed|died)\b"
)
# “no errors”, “nothing new”: all is well.
_ALL_WELL = re.compile(
    r"\b(?:no|without|zero|0|not any|never) (?:\w+ )?"
    r"(?:errors?|fail\w*|problems?|issues?|trouble|blockers?|crash\w*|time-?outs?)\b"
    r"|\bno longer\b|\bnothing\b"
)
_RETOLD = re.compile(
    r"\b(?:post-?mortem|retro(?:spective)?|recap)\b|\A(?:\w+ ){0,2}(?:summary|report)\s?[:\u2014-]"
    r"|\b(?:as (?:reported|noted|said)|(?:of|in|from) cycles? \d+)\b",
    re.IGNORECASE,
)
# A sentence: its entry, and its place in it.
Spot: TypeAlias = tuple[str, int]


class Phrase(NamedTuple):
    """Some words in a row as they are compared, and as they stand in a sentence."""

    tokens: tuple[str, ...]
    said: str


def is_retold(entry: Entry) -> bool:
    """Say whether an entry sums up what others reported: a retelling is no occurrence."""
    return _RETOLD.search(entry.action) is not None


def read_complaints(entries: Sequence[Entry], troubled: Collection[Spot]) -> list[ObstacleReport]:
    """Return the reports of complaints that stand nearly verbatim in entries of two cycles or more.

    `troubled` are the sentences that are known to tell of trouble.
    """
    found: dict[tuple[str, ...], dict[Spot, tuple[Entry, str]]] = {}
    for entry in entries:
        if entry.type is EntryType.DECISION or is_retold(entry):
            continue
        for place, sentence in enumerate(split_sentences(entry)):
            is_troubled = (entry.id, place) in troubled
            for phrase in _phrases(sentence, _TROUBLED if is_troubled else _NEGATIVE):
                found.setdefault(phrase.tokens, {})[entry.id, place] = (entry, phrase.said)
    cycles = {key: len({entry.cycle for entry, _ in at.values()}) for key, at in found.items()}
    reports: list[ObstacleReport] = []
    told: set[Spot] = set()
    for key in sorted(found, key=lambda key: (-cycles[key], -len(key), key)):
        at = {spot: found[key][spot] for spot in found[key] if spot not in told}
        if len({entry.cycle for entry, _ in at.values()}) < _LEAST_CYCLES:
            continue
        told.update(at)
        reports += [
            ObstacleReport("trouble", entry, words_of(said), said=said, place=place, phrase=" ".join(key))
            for (_, place), (entry, said) in at.items()
        ]
    return reports


def _phrases(sentence: str, negative: re.Pattern[str]) -> Iterator[Phrase]:
    """Yield the runs of words of a sentence that complain about something."""
    if _ALL_WELL.search(sentence.lower()) or HYPOTHETICAL.search(sentence):
        return
    tokens = [
        (part.lower(), match.start(), match.end())
        for match in _TOKEN.finditer(sentence)
        for part in _CAMEL.split(match[0])
    ]
    for first in range(len(tokens)):
        if tokens[first][0] in _EDGE:
            continue
        for last in range(first + _LEAST_WORDS, min(first + _MOST_WORDS, len(tokens)) + 1):
            key = tuple(token for token, _, _ in tokens[first:last])
            if key[-1] in _EDGE or not negative.search(" ".join(key)):
                continue
            said = sentence[tokens[first][1] : tokens[last - 1][2]]
            is_telling = len(words_of(said)) > 1 or (len(key) > _LEAST_WORDS and words_of(said))
            if is_telling and not is_work(sentence[: tokens[first][1]], ""):
                # A quotation that begins in the phrase ends in it.
                behind = sentence[tokens[last - 1][2] :][:1]
                yield Phrase(key, said + (behind if behind in "'\"`)" else ""))
