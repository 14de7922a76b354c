"""Take a statement apart into terms that can be compared: words, numbers, amounts, negations, order.

Two sentences with the same terms in the same order say the same. Whatever is not surely the same word (an
inflection, a synonym of the closed list below) stays another term, so that no new fact is taken for a known.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

_SENTENCE = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+|[\u3002\uff01\uff1f]\s*|[;:]\s+|\s+[\u2014\u2013-]\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)"
)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SHORTENED = re.compile(r"\b(\w+?)n[\u2019']t\b")
_GROUPED = re.compile(r"\d{1,3}(?:[,_]\d{3})+")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_GLUED = re.compile(r"([-+]?\d+(?:\.\d+)?)([a-z]{1,3}|%)")
_COMPOUND = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,})+")
# A name of code, whose capitals count: `userId` is no `userid`.
_CAMEL = re.compile(r"^[a-z]+[A-Z]|_")
_SCRIPTS = re.compile(
    r"[\u30a0-\u30ff\u31f0-\u31ff]+|[\u3040-\u309f]+|[\u3400-\u9fff]+|[\uac00-\ud7af]+"
    r"|[^\u3000-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af]+"
)
_EASTERN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PARTICLE = re.compile(r"[\u3040-\u309f]+")
_OPENING, _CLOSING = "\"'([{\u201c\u2018\xab`", "\"')]}\u201d\u2019\xbb`.,;:!?\u2026"
_EMPHASIS = re.compile(r"(\*{1,3})(?=\w)(.*?)\1([.,;:!?]*)$|^\*\*(?=\w)|(?<=\w)\*\*$")
_CODE = re.compile(r"`([^`]+)`[.,;:!?)]*")


class TermKind(StrEnum):
    """What a term does in a sentence."""

    WORD = "word"
    NUMBER = "number"
    AMOUNT = "amount"
    NEGATION = "negation"
    RELATION = "relation"
    BEING = "being"
    FILLER = "filler"


class Term(NamedTuple):
    """One term: its form for comparing, its sort, and how it stood in the text.

    `is_definite` says that `the` stood before it, `is_after_comma` that a comma did.
    """

    form: str
    sort: TermKind
    is_definite: bool = False
    is_after_comma: bool = False
    is_plural: bool = False
    said: str = ""


def words_in(spelt: str) -> frozenset[str]:
    """Return the words of a spelt-out list."""
    return frozenset(spelt.split())


_FILLERS = words_in(
    "a an the and we our us you your i please just also very really that which do does been being"
)
_BEING = words_in("is are be am")
_NEGATIONS = words_in("not never no avoid avoids without unless neither nor nobody nothing")
_RELATIONS = words_in(
    "of to in on at by for from with as into onto over under above below before after until during through "
    "via than per across against within between about up down out off or but if when while because since so "
    "then once whenever instead rather else otherwise it its they their them this these those there here"
)
_COUNTED = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20",
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100",
}  # fmt: skip

# unit → what it measures, and how much of the smallest it is.
_UNITS: dict[str, tuple[str, float]] = {
    word: (kind, size)
    for kind, size, spelt in (
        ("time", 0.001, "ms millisecond milliseconds millis"),
        ("time", 1, "s sec secs second seconds"),
        ("time", 60, "min mins minute minutes"),
        ("time", 3600, "h hr hrs hour hours"),
        ("time", 86400, "d day days"),
        ("time", 604800, "week weeks"),
        ("time", 2629800, "month months"),
        ("time", 31557600, "year years"),
        ("data", 1, "byte bytes"),
        ("data", 1e3, "kb kilobyte kilobytes"),
        ("data", 1e6, "mb megabyte megabytes"),
        ("data", 1e9, "gb gigabyte gigabytes"),
        ("data", 1e12, "tb terabyte terabytes"),
        ("data", 1024.0, "kib"),
        ("data", 1024.0**2, "mib"),
        ("data", 1024.0**3, "gib"),
        ("share", 1, "% percent"),
    )
    for word in spelt.split()
}
_SYNONYMS = {
    word: group.split()[0]
    for group in (
        "need needs needed require requires required",
        "delete deletes deleted remove removes removed",
        "repository repositories repo repos",
        "configuration config configs configurations",
        "database databases db dbs",
        "documentation docs",
        "directory directories folder folders dir dirs",
        "environment environments env",
        "development dev",
        "production prod",
        "application applications app apps",
        "kubernetes k8s",
        "postgresql postgres",
        "javascript js",
        "typescript ts",
        "allow allows allowed permit permits permitted",
        "forbid forbids forbidden prohibit prohibits prohibited",
        "not never no",
        "keep keeps",
        "kept live lives lie lies stored",
        "run runs ran running",
        "use uses used using",
        "choose chooses chose chosen choosing",
        "write writes wrote written writing",
        "build builds built",
        "send sends sent",
        "can ca",
        "will wo",
    )
    for word in group.split()
}
# What looks like an inflection and is another word.
_WHOLE = words_in("https ftps ldaps amqps mqtts imaps smtps windows news during string nothing")
_PRONOUN = "I"
_JOINING = ("", "+", "&", "-", "\u2013", "\u2014", "|")
_STOPPING = words_in("stop quit")
_DEFINITE = words_in("the this that")
_INTRODUCING = words_in("before after when if unless until while because since once whenever without")


@lru_cache(maxsize=8192)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text; what stands behind a colon, a semicolon or a dash is one of its own."""
    parts = (_ITEM.sub("", part, count=1).strip() for part in _SENTENCE.split(text) if part)
    return tuple(part for part in parts if part)


@lru_cache(maxsize=8192)
def parse_terms(sentence: str) -> tuple[Term, ...]:
    """Return the terms of a sentence in order, fillers among them."""
    found: list[Term] = []
    for term in _classify_tokens(list(_tokens(sentence))):
        unit = _UNITS.get(term.form) if found and found[-1].sort is TermKind.NUMBER else None
        if unit is not None:
            said = f"{found[-1].said} {term.said}"
            found[-1] = found[-1]._replace(
                form=_format_amount(found[-1].form, unit), sort=TermKind.AMOUNT, said=said
            )
        elif found and found[-1].form in ("a", "an") and term.form in _UNITS and len(term.form) > 2:
            said = f"{found[-1].said} {term.said}"
            found[-1] = Term(_format_amount("1", _UNITS[term.form]), TermKind.AMOUNT, said=said)
        else:
            found.append(term)
    return tuple(found)


class _Token(NamedTuple):
    """A piece of a sentence as it stands; within code every sign counts: `int?` is no `int`."""

    text: str
    is_after_comma: bool
    is_code: bool


def _tokens(sentence: str) -> Iterator[_Token]:
    """Yield the tokens without the marks around them, and whether a comma went before."""
    text = _SHORTENED.sub(r"\1 not", unicodedata.normalize("NFC", sentence))
    is_after_comma = False
    for raw in text.split():
        for piece in _SCRIPTS.findall(raw) if _EASTERN.search(raw) else [raw]:
            code = _CODE.fullmatch(piece)
            bare = code[1] if code else _EMPHASIS.sub(r"\2", piece).lstrip(_OPENING).rstrip(_CLOSING)
            if bare in _JOINING:
                continue
            for part in [bare] if code else _split_compound(bare):
                yield _Token(part, is_after_comma, code is not None)
                is_after_comma = False
        is_after_comma = is_after_comma or raw.rstrip("\"')`*").endswith((",", "\u3001"))


def _split_compound(token: str) -> list[str]:
    """Return the words of `squash-merge`; what has a small word in it, such as `logs-us`, is a name."""
    parts = token.split("-")
    is_open = _COMPOUND.fullmatch(token) and all(
        _word_kind(part.casefold()) is TermKind.WORD for part in parts
    )
    return parts if is_open else [token]


def _classify_tokens(tokens: Sequence[_Token]) -> Iterator[Term]:
    is_definite = False
    for place, token in enumerate(tokens):
        forms = (
            [(token.text, TermKind.WORD)] if token.is_code else _token_forms(token.text, is_first=place == 0)
        )
        said = token.text.casefold()
        if said in _STOPPING and any(each.text.endswith("ing") for each in tokens[place + 1 : place + 2]):
            forms = [(said, TermKind.NEGATION)]
        for form, sort in forms:
            yield Term(form, sort, is_definite, token.is_after_comma, said.endswith("s"), said)
        is_definite = said in _DEFINITE


def _token_forms(token: str, *, is_first: bool) -> list[tuple[str, TermKind]]:
    word = token if _CAMEL.search(token) else token.casefold()
    # A label such as `plan A`, or `US`, is no article and no pronoun.
    is_label = token.isupper() and (len(token) > 1 or not (is_first or token == _PRONOUN))
    is_name = (is_label and word not in _NEGATIONS) or bool(_CAMEL.search(token))
    glued = _GLUED.fullmatch(word)
    if _GROUPED.fullmatch(word):
        return [(word.replace(",", "").replace("_", ""), TermKind.NUMBER)]
    if _NUMBER.fullmatch(word) or (word in _COUNTED and not is_name):
        return [(_COUNTED.get(word, word), TermKind.NUMBER)]
    if glued and glued[2] in _UNITS:
        return [(_format_amount(glued[1], _UNITS[glued[2]]), TermKind.AMOUNT)]
    if word == "cannot":
        return [("can", TermKind.WORD), ("not", TermKind.NEGATION)]
    if is_name:
        return [(_SYNONYMS.get(word, word), TermKind.WORD)]
    return [(form_of(word), _word_kind(word))]


def form_of(word: str) -> str:
    """Return the form by which a word is compared: that of its synonyms, or its stem."""
    is_whole = word in _UNITS or _word_kind(word) is not TermKind.WORD
    return _SYNONYMS.get(word) or (word if is_whole else stem_word(word))


def _word_kind(word: str) -> TermKind:
    if word in _NEGATIONS:
        return TermKind.NEGATION
    if word in _BEING:
        return TermKind.BEING
    if word in _FILLERS:
        return TermKind.FILLER
    return TermKind.RELATION if word in _RELATIONS or _PARTICLE.fullmatch(word) else TermKind.WORD


def _format_amount(number: str, unit: tuple[str, float]) -> str:
    kind, size = unit
    return f"{float(number) * size:.10g} {kind}"


@lru_cache(maxsize=16384)
def stem_word(word: str) -> str:
    """Cut the endings of a word's other forms: `clients` is a `client`, but a `parser` is no `parse`.

    Two words get one stem only where one is the other with such an ending: `state` is none of `stats`.
    """
    if word in _WHOLE or not word.isalpha() or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    if _HISSING.search(word):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    for ending in ("ing", "ed"):
        cut = word.removesuffix(ending)
        if cut != word and len(cut) > 2 and _VOWEL.search(cut):
            return _restore_verb(cut)
    return word


_VOWEL = re.compile(r"[aeiouy]")
_HISSING = re.compile(r"(?:ss|x|sh|tch|nch|zz)es$")
_LOST_E = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$|[aeiour]s$|[vcz]$|rg$|dg$|[bcdfgkpt]l$|u$")
_NO_LOST_E = ("er", "it", "en", "on", "om")


def _restore_verb(cut: str) -> str:
    """Return the verb of which an ending was cut: `mapp` is map, `stor` is store."""
    if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "aeiouls":
        return cut[:-1]
    if cut == "cach":
        return "cache"
    return f"{cut}e" if _LOST_E.search(cut) and not cut.endswith(_NO_LOST_E) else cut


def content_terms(sentence: str) -> tuple[Term, ...]:
    """Return the terms that carry what a sentence says: words, numbers and amounts."""
    return tuple(
        term
        for term in parse_terms(sentence)
        if term.sort in (TermKind.WORD, TermKind.NUMBER, TermKind.AMOUNT)
    )


Meaning = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=8192)
def sentence_meaning(sentence: str) -> Meaning:
    """Return what two sentences must share to say the same.

    The terms in order; but a condition may stand before what it holds for, or behind: `When X, do Y`.
    """
    clauses: list[list[str]] = [[""]]
    for term in parse_terms(sentence):
        if term.sort in (TermKind.FILLER, TermKind.BEING):
            continue
        if term.form in _INTRODUCING:
            clauses.append([term.form])
            continue
        if clauses[-1][0] and (term.is_after_comma or (term.form == "then" and clauses[-1][0] == "if")):
            clauses.append([""])
            if term.form == "then":
                continue
        clauses[-1].append(term.form)
    told = [tuple(clause) for clause in clauses if len(clause) > 1 or clause[0]]
    mains = [clause for clause in told if not clause[0]]
    return tuple(sorted(told)) if len(told) == 2 and len(mains) == 1 else tuple(told)
