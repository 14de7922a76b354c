"""Split texts into words exactly as the embedded engine does, with SQLite's own tokenizer.

So that both engines find and rank the same. The words of a text, the tokens of its scope and the bank are the
lexemes of one `tsvector`: one search of one index answers words, scope and bank together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from threading import local
from typing import Any

import apsw

from archivist.cold_start import blake2s
from archivist.store.results import SearchFilter, TextQuery
from archivist.store.searchable import SearchDocument

# A tsvector has at most this many positions, and a lexeme so many bytes; no word is that long.
_MOST_WORDS = 16_000
_LONGEST_WORD = 200
# No word begins with one of these: they mark what is not a word of the text.
_SCOPE, _BANK = "@", "#"
_HIDDEN = "hidden"
_threads = local()


def split_words(text: str) -> list[str]:
    """Return the stems of a text's words."""
    if not hasattr(_threads, "split"):
        _threads.database = apsw.Connection(":memory:")
        _threads.split = _threads.database.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    found: Any = _threads.split(
        text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False
    )
    return [word[:_LONGEST_WORD] for words in found for word in words]


def vector_of(bank: str, built: SearchDocument) -> tuple[str, int, int]:
    """Return a document's tsvector, the number of its words, and of its words and scope together."""
    words = split_words(built.text)
    lexemes: dict[str, str] = {}
    # The tokenizer leaves letters and numbers alone, which need no quoting.
    for position, word in enumerate(words[:_MOST_WORDS], 1):
        lexemes[word] = f"{lexemes[word]},{position}" if word in lexemes else f"'{word}':{position}"
    scope = [*built.scope, _HIDDEN] if built.is_hidden else built.scope
    texts = [bank_lexeme(bank), *map(_scope_lexeme, scope), *lexemes.values()]
    return " ".join(texts), len(words), len(words) + len(scope)


@lru_cache(maxsize=256)
def bank_lexeme(bank: str) -> str:
    """Return the lexeme that all documents of a bank have: an index holds the documents of many banks."""
    return _quote(_BANK + blake2s(bank.encode(), digest_size=6).hexdigest())


def query_parts(query: TextQuery) -> list[tuple[tuple[str, ...], bool]]:
    """Return the words of each part of a query, one or a phrase, and whether the last may go on."""
    parts = [(word, False) for word in query.words]
    parts += [(" ".join(phrase), False) for phrase in query.phrases]
    parts += [(prefix, True) for prefix in query.prefixes]
    split = ((tuple(split_words(text)), is_prefix) for text, is_prefix in parts)
    return [part for part in split if part[0]]


def part_query(part: tuple[tuple[str, ...], bool]) -> str:
    """Return a part of a query as a tsquery."""
    words, is_prefix = part
    quoted = [_quote(word) for word in words]
    quoted[-1] += ":*" if is_prefix else ""
    return f"({' <-> '.join(quoted)})"


def filter_query(bank: str, search_filter: SearchFilter, *, is_by_words: bool) -> str:
    """Return the bank and the scope of a search as a tsquery; hidden documents are excluded from words."""
    needed = [bank_lexeme(bank)]
    needed += [_any_of(map(_scope_lexeme, group)) for group in search_filter.groups]
    if is_by_words:
        hidden = () if search_filter.with_hidden else (_HIDDEN,)
        needed += [f"!{_scope_lexeme(token)}" for token in (*search_filter.excluded, *hidden)]
    return " & ".join(needed)


def words_query(parts: Sequence[tuple[tuple[str, ...], bool]]) -> str:
    """Return the tsquery that any of these parts fulfils."""
    return _any_of(map(part_query, parts))


def _any_of(options: Iterable[str]) -> str:
    return f"({' | '.join(options)})"


@lru_cache(maxsize=4096)
def _scope_lexeme(token: str) -> str:
    return _quote(_SCOPE + token)


def _quote(lexeme: str) -> str:
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
