"""Split a statement into terms that can be compared: words, numbers, amounts, negations, relations.

Two sentences with the same terms in the same order mean the same. Only inflections and the synonyms below are
treated as the same word; anything else stays a different term, so that a new fact is never taken for a known
one. bench/workspace_rules.py compares these rules with a plain word comparison.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from archivist.reading import programs

_SENTENCE = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+|[\u3002\uff01\uff1f]\s*|[;:]\s+|\s+[\u2014\u2013-]\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)"
)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_CONTRACTION = re.compile(r"\b(\w+?)n[\u2019']t\b")
# `Stop using x` negates `use x`.
_STOPPING = re.compile(r"\b(?:stop|quit)(?=\s+\w+ing\b)", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[,_]\d{3})+")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?)([a-z]{1,3}|%)")
_COMPOUND = re.compile(r"[^\W\d_]{2,}(?:-[^\W\d_]{2,})+")
# A name of code, in which the case matters: `userId` is not `userid`.
_CODE_NAME = re.compile(r"^[a-z]+[A-Z]|_")
# Text without spaces is split where the script changes: katakana, hiragana, Han, hangul, anything else.
_SCRIPTS = re.compile(
    r"[\u30a0-\u30ff\u31f0-\u31ff]+|[\u3040-\u309f]+|[\u3400-\u9fff]+|[\uac00-\ud7af]+"
    r"|[^\u3000-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af]+"
)
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PARTICLE = re.compile(r"[\u3040-\u309f]+")
_OPENING, _CLOSING = "\"'([{\u201c\u2018\xab`", "\"')]}\u201d\u2019\xbb`.,;:!?\u2026"
_EMPHASIS = re.compile(r"(\*{1,3})(?=\w)(.*?)\1([.,;:!?]*)$|^\*\*(?=\w)|(?<=\w)\*\*$")
_CODE = re.compile(r"`([^`]+)`[.,;:!?)]*")


class TermKind(StrEnum):
    """The role of a term in a sentence."""

    WORD = "word"
    NUMBER = "number"
    AMOUNT = "amount"
    NEGATION = "negation"
    RELATION = "relation"
    BEING = "being"
    FILLER = "filler"


CONTENT = (TermKind.WORD, TermKind.NUMBER, TermKind.AMOUNT)


class Term(NamedTuple):
    """One term: its form for comparisons, its kind, and how it was written; definite after `the`."""

    form: str
    kind: TermKind
    is_after_comma: bool = False
    is_plural: bool = False
    written: str = ""
    is_definite: bool = False


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list written with spaces."""
    return frozenset(words.split())


_FILLERS = word_set(
    "a an the and we our us you your i please just also very really that which do does been being"
)
_BEING = word_set("is are be am")
_NEGATIONS = word_set("not never no avoid avoids without unless neither nor nobody nothing")
_RELATIONS = word_set(
    "of to in on at by for from with as into onto over under above below before after until during through "
    "via than per across against within between about up down out off or but if when while because since so "
    "then once whenever instead rather else otherwise it its they their them this these those there here"
)
_NUMERALS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20",
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100",
}  # fmt: skip
# unit → what it measures, and its size in the smallest unit.
_UNITS: dict[str, tuple[str, float]] = {
    word: (kind, size)
    for kind, size, spellings in (
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
        ("data", 1024.0**2, "mib"),
        ("data", 1024.0**3, "gib"),
        ("share", 1, "% percent"),
    )
    for word in spellings.split()
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
# Words that only look like an inflection.
_NOT_INFLECTED = word_set("https ftps ldaps windows news during string nothing")
_JOINING = ("", "+", "&", "-", "\u2013", "\u2014", "|")
_CONDITIONS = word_set("before after when if unless until while because since once whenever without")
_VOWEL = re.compile(r"[aeiouy]")
_LOST_E = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$|[aeiour]s$|[vcz]$|rg$|dg$|[bcdfgkpt]l$|u$")
_NO_LOST_E = ("er", "it", "en", "on", "om")


@lru_cache(maxsize=8192)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text; a colon, a semicolon and a dash also end one."""
    parts = (_ITEM.sub("", part, count=1).strip() for part in _SENTENCE.split(text) if part)
    return tuple(part for part in parts if part)


@lru_cache(maxsize=8192)
def parse_terms(sentence: str) -> tuple[Term, ...]:
    """Return the terms of a sentence in order, fillers included; a number and its unit are one term."""
    terms: list[Term] = []
    for term in _read_terms(sentence):
        last = terms[-1] if terms else None
        unit = _UNITS.get(term.form)
        if last and unit and last.kind is TermKind.NUMBER:
            number = last.form
        elif last and unit and last.form in ("a", "an") and len(term.form) > 2:
            number = "1"
        else:
            terms.append(term)
            continue
        written = f"{last.written} {term.written}"
        terms[-1] = last._replace(form=_amount(number, unit), kind=TermKind.AMOUNT, written=written)
    return tuple(terms)


def _read_terms(sentence: str) -> Iterator[Term]:
    text = _CONTRACTION.sub(r"\1 not", unicodedata.normalize("NFC", sentence))
    text = _STOPPING.sub("not", text)
    is_first, is_after_comma, is_definite = True, False, False
    for raw in text.split():
        for piece in _SCRIPTS.findall(raw) if _EAST_ASIAN.search(raw) else [raw]:
            code = _CODE.fullmatch(piece)
            bare = code[1] if code else _EMPHASIS.sub(r"\2", piece).lstrip(_OPENING).rstrip(_CLOSING)
            if bare in _JOINING:
                continue
            # Within code every character counts: `int?` is not `int`.
            for token in [bare] if code else _split_compound(bare):
                forms = [(token, TermKind.WORD)] if code else _token_forms(token, is_first=is_first)
                written = token.casefold()
                for form, kind in forms:
                    yield Term(form, kind, is_after_comma, written.endswith("s"), written, is_definite)
                is_first = is_after_comma = False
                is_definite = written in ("the", "this", "that")
        is_after_comma = is_after_comma or raw.rstrip("\"')`*").endswith((",", "\u3001"))


def _split_compound(token: str) -> list[str]:
    """Return the words of `squash-merge`; a compound with a function word, such as `logs-us`, is a name."""
    parts = token.split("-")
    is_compound = _COMPOUND.fullmatch(token) and all(
        _word_kind(part.casefold()) is TermKind.WORD for part in parts
    )
    return parts if is_compound else [token]


def _token_forms(token: str, *, is_first: bool) -> list[tuple[str, TermKind]]:
    is_code_name = bool(_CODE_NAME.search(token))
    word = token if is_code_name else token.casefold()
    # A label such as `plan A`, or `US`, is neither an article nor a pronoun.
    is_label = token.isupper() and (len(token) > 1 or not (is_first or word == "i"))
    is_name = (is_label and word not in _NEGATIONS) or is_code_name
    with_unit = _NUMBER_WITH_UNIT.fullmatch(word)
    if _GROUPED.fullmatch(word):
        return [(word.replace(",", "").replace("_", ""), TermKind.NUMBER)]
    if _NUMBER.fullmatch(word) or (word in _NUMERALS and not is_name):
        return [(_NUMERALS.get(word, word), TermKind.NUMBER)]
    if with_unit and with_unit[2] in _UNITS:
        return [(_amount(with_unit[1], _UNITS[with_unit[2]]), TermKind.AMOUNT)]
    if word == "cannot":
        return [("can", TermKind.WORD), ("not", TermKind.NEGATION)]
    if is_name:
        return [(_SYNONYMS.get(word, word), TermKind.WORD)]
    return [(form_of(word), _word_kind(word))]


def form_of(word: str) -> str:
    """Return the form by which a word is compared: that of its synonyms, or its stem."""
    is_whole = word in _UNITS or _word_kind(word) is not TermKind.WORD
    return _SYNONYMS.get(word) or (word if is_whole else _stem(word))


def _word_kind(word: str) -> TermKind:
    if word in _NEGATIONS:
        return TermKind.NEGATION
    if word in _BEING:
        return TermKind.BEING
    if word in _FILLERS:
        return TermKind.FILLER
    return TermKind.RELATION if word in _RELATIONS or _PARTICLE.fullmatch(word) else TermKind.WORD


def _amount(number: str, unit: tuple[str, float]) -> str:
    kind, size = unit
    return f"{float(number) * size:.10g} {kind}"


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """Cut inflections: `clients` becomes `client`, but `parser` does not become `parse`.

    Two words get the same stem only where one is an inflection of the other: `state` and `stats` differ.
    """
    if word in _NOT_INFLECTED or not word.isalpha() or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "shes", "tches", "nches", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem == word or len(stem) <= 2 or not _VOWEL.search(stem):
            continue
        # `mapp` is map, `stor` is store.
        if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiouls":
            return stem[:-1]
        has_lost_e = stem == "cach" or (_LOST_E.search(stem) and not stem.endswith(_NO_LOST_E))
        return f"{stem}e" if has_lost_e else stem
    return word


@lru_cache(maxsize=8192)
def content_terms(sentence: str) -> tuple[Term, ...]:
    """Return the terms that carry the meaning of a sentence: words, numbers and amounts."""
    return tuple(term for term in parse_terms(sentence) if term.kind in CONTENT)


Meaning = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=8192)
def sentence_meaning(sentence: str) -> Meaning:
    """Return what two sentences must share to mean the same.

    This is the terms in order, but a condition may be first or last: `When X, do Y` is `Do Y when X`.
    """
    clauses: list[list[str]] = [[""]]
    for term in parse_terms(sentence):
        if term.kind in (TermKind.FILLER, TermKind.BEING):
            continue
        if term.form in _CONDITIONS:
            clauses.append([term.form])
            continue
        if clauses[-1][0] and (term.is_after_comma or (term.form == "then" and clauses[-1][0] == "if")):
            clauses.append([""])
            if term.form == "then":
                continue
        clauses[-1].append(term.form)
    stated = [tuple(clause) for clause in clauses if len(clause) > 1 or clause[0]]
    mains = [clause for clause in stated if not clause[0]]
    return tuple(sorted(stated)) if len(stated) == 2 and len(mains) == 1 else tuple(stated)


# Names

# What people do in a project, not who they are.
ROLES = word_set(
    "architect maintainer reviewer guardian maker orchestrator archivist explorer healer product-owner "
    "developer tester designer operator analyst researcher scout engineer lead owner admin sre"
)
_OTHER_TOOLS = word_set(
    "pytest ruff mypy jest vitest eslint prettier typescript react vue svelte angular nestjs nextjs express "
    "fastapi django flask postgres postgresql mysql sqlite redis kafka rabbitmq elasticsearch mongodb docker "
    "kubernetes terraform ansible nginx graphql grpc xstate webpack rollup esbuild storybook playwright "
    "cypress selenium pandas numpy pytorch openai langgraph prisma drizzle tailwind github gitlab jenkins "
    "sentry grafana prometheus temporal celery"
)
# Names that are ordinary words count as tools only where they are marked as code.
_ORDINARY_WORDS = word_set(
    "make just task next service go swift mix edit issues dart fly rye snap express react angular temporal "
    "bundle composer flask conan turbo brew fly helm heroku nox rake gem"
)
COMMANDS = programs.SUBCOMMANDED | frozenset(programs.RUNNERS) | _OTHER_TOOLS
TOOLS = COMMANDS - _ORDINARY_WORDS
