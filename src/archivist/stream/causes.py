"""Find in an entry's words why something went wrong."""

from __future__ import annotations

import re

from archivist.records import Entry
from archivist.stream.obstacles import split_sentences, words_of

_CAUSE = re.compile(
    r"\b(?:because|root cause|caused by|due to|turn(?:s|ed) out|traced to|the (?:cause|reason)"
    r"|(?:was|were) (?!added|made|green|fine|clean|done|ok\b)\w+|had (?:been|no|the|an?)\b|held|reused"
    r"|since the)\b"
    r"|\b(?:returns?|runs?|reads?|only) [^.]{0,80}\b(?:on every|when|before)\b",
    re.IGNORECASE,
)
_NO_CAUSE = re.compile(
    r"\b(?:tests? (?:pass|run)|pass(?:es|ed)|committed|commit|user (?:said|asked|reported)"
    r"|lint|asked|left out|stashed)\b",
    re.IGNORECASE,
)
# A sentence in which somebody says what was learnt.
STATED = re.compile(
    r"\b(?:(?<![\d,] )lessons?(?: learn(?:ed|t))?:|we learn(?:ed|t)|learn(?:ed|t)(?: that|:)"
    r"|turn(?:s|ed)? out|root cause|the (?:real |actual )?(?:cause|reason) (?:is|was)|takeaway:"
    r"|next time|pattern:|insight:|traced (?:it )?(?:back )?to"
    r"|found (?:out )?why|(?:was|is) caused by|all along)",
    re.IGNORECASE,
)
# A longer sentence is a list of changes.
_LEAST_WORDS, _MOST_CHARACTERS = 3, 220


def find_cause(entry: Entry) -> str:
    """Return the sentence of an entry's content that says why; an empty text where none does."""
    action = " ".join(entry.action.split())
    for text in split_sentences(entry):
        is_cause = _CAUSE.search(text) is not None and not _NO_CAUSE.search(text)
        is_short = len(text) <= _MOST_CHARACTERS and len(words_of(text)) >= _LEAST_WORDS
        if is_cause and is_short and text not in action:
            return text
    return ""
