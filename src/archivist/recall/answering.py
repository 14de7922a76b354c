"""Which of the recalled records answer a question, and which are only nearest by chance."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from archivist.recall.keywords import keywords
from archivist.recall.scoring import Relevance

if TYPE_CHECKING:
    from archivist.recall.results import Hit, RecallResult

# A piece without a word of the question answers it only when it is much nearer than documents in general. On
# a tree of 380 files the nearest piece had a cosine of .32 to .44 for ten questions that it could answer in
# other words, and at most .27 for ten about cakes, football and the like.
_MIN_MEANING = 0.6
_MIN_COSINE = 0.3
_WORD_PARTS = re.compile(r"[A-Z]?[a-z]+|[^\W\da-zA-Z_]+")
_SHORT_PART = 3


def filter_answers(text: str, recalled: RecallResult) -> tuple[Hit, ...]:
    """Return the recalled pieces that answer the question, and are not only nearest by chance."""
    from archivist.recall.embedders.static import open_bundled

    is_static = recalled.embedder.startswith("static")
    is_understood = True
    if is_static:
        # The bundled table also gives a vector to letters that are no word: near to that is near to nothing.
        table = open_bundled()
        parts = (part for part in _WORD_PARTS.findall(text) if len(part) > _SHORT_PART)
        is_understood = any(table.has_word(word) for word in (*keywords(text), *parts))

    def is_answer(why: Relevance) -> bool:
        is_near = is_understood and why.meaning >= _MIN_MEANING
        return why.words > 0 or (is_near and (not is_static or (why.cosine or 0.0) >= _MIN_COSINE))

    return tuple(hit for hit in recalled.hits if is_answer(hit.why.why))
