"""Split texts into words exactly as the embedded engine does, with SQLite's own tokenizer.

So that both engines find and rank the same. The words of a text and the tokens of its scope are the lexemes
of one `tsvector`, each with the mark of its bank before it: an index holds the documents of many banks, and
one look into it finds those of one bank that have a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import md5
from threading import local
from typing import Any

import apsw

from archivist.store.results import SearchFilter, TextQuery
from archivist.store.searchable import SearchDocument

# A tsvector has at most this many positions, and a lexeme so many bytes; no word is that long.
_MOST_WORDS = 16_000
_LONGEST_WORD = 200
# No word begins with one of these: they mark what is not a word of the text.
_SCOPE, _BANK = "@", "#"
_HIDDEN = "hidden"
# Two banks with one mark only cost time: every statement names its bank.
MARK_LENGTH = 6
_threads = local()


def split_words(text: str) -> list[str]:
    """Return the stems of a text's words."""
    if not hasattr(_threads, "split"):
        _threads.database = apsw.Connection(":memory:")
        _threads.split = _threads.database.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    found: Any = _threads.split(
        text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None,
        include_offsets=False, include_colocated=False,
    )  # fmt: skip
    return [word[:_LONGEST_WORD] for word in found]


def vector_of(bank: str, built: SearchDocument) -> tuple[str, int, int]:
    """Return a document's tsvector, the number of its words, and of its words and scope together."""
    mark, words = bank_mark(bank), split_words(built.text)
    lexemes: dict[str, str] = {}
    # The tokenizer leaves letters and numbers alone, which need no quoting.
    for position, word in enumerate(words[:_MOST_WORDS], 1):
        lexemes[word] = f"{lexemes[word]},{position}" if word in lexemes else f"'{mark}{word}':{position}"
    scope = [*built.scope, _HIDDEN] if built.is_hidden else built.scope
    texts = [_bank_lexeme(mark), *(_scope_lexeme(mark, token) for token in scope), *lexemes.values()]
    return " ".join(texts), len(words), len(words) + len(scope)


@lru_cache(maxsize=256)
def bank_mark(bank: str) -> str:
    """Return what all lexemes of a bank begin with; `schema.py` spells the same in SQL."""
    return md5(bank.encode(), usedforsecurity=False).hexdigest()[:MARK_LENGTH]


def query_parts(query: TextQuery) -> list[tuple[tuple[str, ...], bool]]:
    """Return the words of each part of a query, one or a phrase, and whether the last may go on."""
    parts = [(word, False) for word in query.words]
    parts += [(" ".join(phrase), False) for phrase in query.phrases]
    parts += [(prefix, True) for prefix in query.prefixes]
    split = ((tuple(split_words(text)), is_prefix) for text, is_prefix in parts)
    return [part for part in split if part[0]]


def marked_words(bank: str, part: tuple[tuple[str, ...], bool]) -> list[str]:
    """Return the words of a part of a query as they stand in the documents of a bank."""
    return [bank_mark(bank) + word for word in part[0]]


def part_query(bank: str, part: tuple[tuple[str, ...], bool]) -> str:
    """Return a part of a query as a tsquery."""
    quoted = [_quote(word) for word in marked_words(bank, part)]
    quoted[-1] += ":*" if part[1] else ""
    return f"({' <-> '.join(quoted)})"


def filter_query(bank: str, search_filter: SearchFilter, *options: str) -> str:
    """Return the scope of a search as a tsquery, and if given what else must hold: any of these."""
    mark = bank_mark(bank)
    needed = [_any_of(_scope_lexeme(mark, token) for token in group) for group in search_filter.groups]
    needed += [_any_of(options)] if options else []
    return " & ".join(needed) or _bank_lexeme(mark)


def excluded_query(bank: str, search_filter: SearchFilter) -> str:
    """Return what a search by words leaves out, as a tsquery; hidden documents unless they are asked for."""
    hidden = () if search_filter.with_hidden else (_HIDDEN,)
    mark = bank_mark(bank)
    return " | ".join(_scope_lexeme(mark, token) for token in (*search_filter.excluded, *hidden))


def _any_of(options: Iterable[str]) -> str:
    return f"({' | '.join(options)})"


@lru_cache(maxsize=4096)
def _scope_lexeme(mark: str, token: str) -> str:
    return _quote(f"{_SCOPE}{mark}{token}")


@lru_cache(maxsize=256)
def _bank_lexeme(mark: str) -> str:
    return _quote(_BANK + mark)


def _quote(lexeme: str) -> str:
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
