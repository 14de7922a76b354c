"""Turn a question into words for the index. Any string is a valid question.

Stop words are left out, and in a large bank words that most documents contain: they cost the most and tell
the least. A name of several parts (`snake_case`, `CamelCase`, `src/app.py`, `--no-cache`, `3.11`) is searched
for as a phrase and by its parts. A word that no document contains is tried as the beginning of one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from archivist.cold_start import lazy_pattern
from archivist.recall.keywords import STOP_WORDS
from archivist.store.results import TextQuery, split_name

_WORD = re.compile(r"[^\W_]+")
# Each begins at a word, so that the time for a pasted blob grows with its length only.
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:[-./:\\_]+[^\W_]+)+")
_CAMEL = re.compile(r"(?<![A-Za-z])[A-Za-z]*[a-z][A-Z]\w*|(?<![A-Za-z])[A-Z]{2,}[a-z]\w*")
_NAME = re.compile(r"(?<![\w.-])[\w.-]*\w")
# A capital within a sentence.
_PROPER = re.compile(r"(?<=[\w,;:)\"'] )[\"'(`]?([A-Z][a-z]+)\b")
# A question says so at its beginning; what follows may be a pasted log.
_ASKED = 500
_ENDING = re.compile(r"['\u2019](?:s|t|d|ll|m|re|ve)\b", re.IGNORECASE)

# "Can you list …" only asks; these ask for what the assistant has said or done.
_OF_ASSISTANT = lazy_pattern(
    r"\b(?:did|had|have|were) you\b|\byou(?:'ve| have| had)? (?:\w+ed|said|told|gave|wrote|made|found"
    r"|ran|did|chose"
    r"|came up)\b|\byour (?:answer|advice|suggestion|recommendation|repl|explanation|proposal|estimate)"
    r"|\bthe assistant\b|\bassistant'?s\b",
    re.IGNORECASE,
    longest=_ASKED,
)

_SHORT = [
    "a", "ain", "am", "an", "aren", "as", "at", "be", "by", "couldn", "d", "didn", "do", "doesn",
    "don", "during", "few", "further", "get", "got", "hadn", "hasn", "haven", "having", "he", "her",
    "here", "hers", "him", "his", "i", "if", "in", "is", "isn", "it", "ll", "m", "me", "mine", "my",
    "myself", "no", "nor", "now", "of", "oh", "on", "or", "ours", "re", "s", "so", "t", "to", "up",
    "us", "ve", "wasn", "we", "whom", "whose", "won", "wouldn", "yet", "yours",
]  # fmt: skip
SILENT = STOP_WORDS.union(_SHORT)

# Enough words for any question; a pasted log is a question too.
_MAX_WORDS = 24
_MAX_PHRASES = 8
_LEAST_PREFIX = 3


def extract_terms(text: str) -> TextQuery:
    """Return a question's words in order, without stop words unless there are no others, and its phrases."""
    text = _ENDING.sub(" ", text)
    phrases: dict[tuple[str, ...], None] = {}
    for name in _COMPOUND.findall(text):
        phrases[tuple(_WORD.findall(name.lower()))] = None
    words = [word.lower() for word in _WORD.findall(text)]
    for name in _CAMEL.findall(text):
        parts = split_name(name)
        phrases[tuple(parts)] = None
        words += parts
    known = dict.fromkeys(words)
    content = [word for word in known if word not in SILENT and not (len(word) == 1 and word.isascii())]
    return TextQuery(tuple(content or known), tuple(phrase for phrase in phrases if len(phrase) > 1))


def select_words(
    terms: TextQuery, count_documents: Callable[[Sequence[str], int], Sequence[int]], budget: int
) -> TextQuery:
    """Return what to search for: the rarest words first, as many as the budget of documents to score allows.

    `count_documents` returns how many documents contain each word, counting up to its second argument.
    """
    cap = budget + 1
    asked = terms.words[:_MAX_WORDS]
    counts = dict(zip(asked, count_documents(asked, cap), strict=True))
    words: list[str] = []
    spent = 0
    for word in sorted((word for word in counts if counts[word]), key=counts.__getitem__):
        if words and spent + counts[word] > budget:
            break
        words.append(word)
        spent += counts[word]
    return TextQuery(
        words=tuple(words),
        phrases=terms.phrases[:_MAX_PHRASES],
        prefixes=tuple(
            word for word in counts if not counts[word] and len(word) >= _LEAST_PREFIX and word.isalpha()
        ),
    )


def possible_names(text: str) -> list[str]:
    """Return the words and pairs of words of a question that could be the name of a speaker."""
    words = [word.casefold() for word in _NAME.findall(_ENDING.sub("", text))][: _MAX_WORDS * 2]
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    return [*dict.fromkeys([*words, *pairs])]


def proper_names(text: str) -> set[str]:
    """Return the words that are written as names, in lower case."""
    return {name.lower() for name in _PROPER.findall(text[:_ASKED])}


def asks_assistant(text: str) -> bool:
    """Say whether a question asks for what the assistant said or did."""
    return _OF_ASSISTANT.search(text) is not None


def remove_names(text: str, names: Iterable[str]) -> str:
    """Return a text without some names: the speaker is a field of a memory, not part of its text."""
    for name in names:
        text = re.sub(rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def weigh_word(holders: int, documents: int) -> float:
    """Return the weight that a word has in the index by the number of documents that contain it."""
    from math import log

    return max(0.0, log((documents - holders + 0.5) / (holders + 0.5)))
