"""Read the signs that a later text replaces an earlier one.

Signs are added up: words of change, the end of something that the earlier text names, another number, the
contrary, and how much of the question both answer. `python -m bench.amended_pairs` fits their weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import SILENT
from archivist.text import stem_word

_MOST_SENTENCES = 8
_MOST_CHARACTERS = 500
_LONGEST_NUMBER = 6
# No text answers more words of a long question.
_MOST_ASKED = 6
_SHORT = 30
_LEAST_SILENT = 0.1
# What is the contrary has half of the words.
_SAME = 0.5

_REPLACING = frozenset((
    "amend", "amended", "amendment", "amends", "supersede", "superseded", "supersedes", "superseding",
    "overrule", "overruled", "override", "overrides", "rescinded", "retract", "retracted", "revoke",
    "revoked", "revise", "revised", "revision", "replace", "replaced", "replaces", "replacing", "revert",
    "reverted", "correction", "corrected", "instead", "anymore", "previously", "formerly", "statt",
    "stattdessen", "ersetzt", "désormais", "remplace", "remplacé", "reemplaza", "reemplazado", "invece",
))  # fmt: skip
_REPLACING_PAIRS = frozenset((
    "no longer", "no more", "any more", "any longer", "from here", "from now", "from today", "after all",
    "take over", "takes over", "took over", "takes precedence", "rather than", "went back", "in favour",
    "in favor", "place of", "second thought", "second thoughts", "used to", "turns out", "new rule",
    "new policy", "new decision", "new default", "new limit", "new plan", "stop using", "stopped using",
    "my mind", "our mind", "scratch that", "scratch what", "scratch the", "forget what", "ignore what",
    "was wrong", "was too", "were wrong", "make it", "make that", "nicht mehr", "ab jetzt", "ab sofort",
    "au lieu", "en vez", "en lugar", "ya no",
))  # fmt: skip
# What has ended, and what is not so or does harm: they count beside a word of the earlier text.
_ENDED = frozenset((
    "gone", "dead", "archived", "deleted", "removed", "ended", "expired", "legacy", "retired",
    "decommissioned", "torn", "ripped", "taken", "took", "shut", "off", "disabled", "dropped", "obsolete",
    "deprecated", "deprecates", "sunset", "sunsetting", "phased", "discontinued", "abandoned", "scrapped",
    "ditched", "withdrawn", "cancelled", "canceled", "out", "unsupported", "ignored", "void", "left",
    "abgeschaltet", "entfernt", "weg", "supprimé", "abandonné", "eliminado",
))  # fmt: skip
# Those that tell so beside a name alone, and how many words around them may be that name.
END_WORDS = _ENDED.difference(("took", "taken", "out", "left", "off", "void", "ended", "expired")) | {
    "replaced", "replaces", "replacing", "instead", "longer", "anymore",
}  # fmt: skip
_BESIDE = 3
_REFUSED = frozenset((
    "nothing", "not", "no", "never", "nobody", "don", "doesn", "isn", "aren", "won", "cannot", "only",
    "joined", "clashes", "unreadable", "hated", "wrong", "kein", "keine", "nicht", "plus", "broke",
    "breaks", "broken", "lost", "loses", "failed", "fails", "crashed", "crashes", "leaked", "leaks",
))  # fmt: skip
_SINCE = frozenset((
    "now", "nowadays", "since", "currently", "effective", "starting", "update", "decision", "jetzt",
    "nun", "seit", "maintenant", "depuis", "ahora", "desde", "ora", "agora",
))  # fmt: skip
_SINCE_PAIRS = frozenset(("these days", "as of", "by now"))
_MOVED = frozenset((
    "changed", "updated", "moved", "migrated", "switched", "switching", "renamed", "lowered", "raised",
    "increased", "decreased", "reduced", "bumped", "shifted", "swapped", "cut", "extended", "shortened",
    "tightened", "relaxed", "upgraded", "downgraded", "converted", "adopted", "postponed", "delayed",
    "rescheduled", "pushed", "slipped", "doubled", "halved", "merged", "split", "rewrite", "rewritten",
    "rolled", "took", "takes", "handed", "dropped", "added", "got", "set", "down", "up", "umgestellt",
    "gewechselt", "umgezogen", "passé", "passée", "cambiado", "cambió", "migrado",
))  # fmt: skip
# Words of change that mostly tell of something else.
_LIGHT = frozenset(("took", "takes", "dropped", "added", "got", "set", "down", "up", "pushed", "rolled"))
# What is said in addition replaces nothing.
_ADDED = frozenset((
    "also", "additionally", "addition", "besides", "likewise", "instance", "example", "auch",
    "aussi", "también",
))  # fmt: skip
# "Too crowded" is no addition.
_TOO = lazy_pattern(r"\btoo(?=\W*$|[.,;!?])", re.IGNORECASE, longest=_MOST_CHARACTERS)
_NEGATING = frozenset((
    "not", "never", "no", "without", "stop", "avoid", "cannot", "don", "doesn", "isn", "aren", "won",
    "forbidden", "banned", "optional", "disabled", "off", "itself", "nicht", "kein", "keine", "ne", "pas",
    "nunca",
))  # fmt: skip
_PERSONAL = frozenset(("i", "me", "my", "mine", "myself"))
_NUMERALS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20",
    "thirty": "30", "half": "0.5", "twice": "2", "once": "1",
}  # fmt: skip
_AUXILIARIES = frozenset(("is", "are", "was", "were", "may", "can", "must", "has", "have", "should", "will"))
_ARTICLES = frozenset(("a", "an", "per", "every", "each"))
_UNITS = frozenset(("second", "minute", "hour", "day", "week", "month", "year", "quarter"))
# Units of one measure: thirty days become twelve hours, never twelve partitions.
_MEASURES = {
    **dict.fromkeys((*_UNITS, "sec", "s", "ms", "min", "h", "fortnight", "night"), "time"),
    **dict.fromkeys(("am", "pm", "utc", "cet", "noon", "midnight", "oclock"), "clock"),
    **dict.fromkeys(("byte", "kb", "mb", "gb", "tb", "kib", "mib", "gib"), "size"),
    **dict.fromkeys(("euro", "eur", "dollar", "usd", "cent", "pound", "gbp"), "money"),
    **dict.fromkeys(("mm", "cm", "metre", "meter", "centimetre", "km", "mile", "inch"), "distance"),
    **dict.fromkeys(("gram", "mg", "kg", "kilo", "tonne"), "weight"),
}  # fmt: skip
_DATES = frozenset((
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february",
    "march", "april", "june", "july", "august", "september", "october", "november", "december",
))  # fmt: skip
# Words that say that something is so, but not of what.
_FAINT = frozenset((
    "use", "used", "using", "keep", "kept", "set", "take", "taken", "make", "made", "run", "go", "goes",
    "went", "put", "live", "lives", "need", "needs", "want", "default", "always", "every", "each", "per",
    "new", "old", "also", "still", "now", "later", "earlier", "first", "last", "only",
))  # fmt: skip
# Who asks an agent for something tells no story of their own.
_WISH = lazy_pattern(
    r"\b(?:please|could you|i(?:'d| would)? (?:prefer|like you|want you))\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# A question for a number or a date.
_MEASURED = lazy_pattern(
    r"\b(?:how (?:many|long|big|large|much|often|fast|old|high|wide|small|far)|when|versions?|size"
    r"|limit|timeout|length|maxim\w+|minim\w+|port|lowest|oldest|latest"
    r"|(?:which|what) (?:time|day|date|number|year)"
    r"|wann|wie (?:viele?|lange)|combien|quand|cuánt\w+|cuándo)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# A question that is answered by yes or no has all words of its answer.
_YES_NO = lazy_pattern(
    r"\s*(?:is|are|was|were|do|does|did|has|have|can|could|may|must|should|shall|will|would|ist|sind|darf|muss)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# A version or a path, of which a thing has one at a time.
_VALUE = lazy_pattern(
    r"(?P<version>\bv?\d{1,4}\.\d{1,4}(?:\.\d{1,6})?\b)|(?P<path>[~.\w-]*/[\w./~-]{1,80}|\b\w{1,40}\.[a-z]{2,4}\b)",
    longest=_MOST_CHARACTERS,
)
_ASKS = lazy_pattern(
    r"\s*(?:which|what|where|when|who|whose|whom|how|why|welche\w?|was|wo|wann|wer|wie|warum|quel\w*|où|quand|qui"
    r"|comment|cuál\w*|dónde|cuándo|cómo)\b|[^?]*\?\s*$",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# So few words are a topic.
_TOPIC = 4
# A wish for one case, and one for all of them: the first replaces none of the second sort.
_ONE_CASE = lazy_pattern(
    r"\b(?:unlike (?:most|usual\w*|the (?:others?|rest))|this (?:once|time)|exception(?:ally)?|just once)\b"
    r"|\b(?:for|in|only|just) this (?:one|case|once|time)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
_EVERY_CASE = lazy_pattern(
    r"\b(?:always|never|whenever|every time|by default|from (?:now|here|today) on|in future|any ?more"
    r"|no longer)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# What has the form of a question and asks an agent for something.
_REQUEST = lazy_pattern(
    r"\b(?:can|could|would|will|may) (?:you|we|i)\b|\bplease\b", re.IGNORECASE, longest=_MOST_CHARACTERS
)
# What an agent says between two calls: what it does next, and that the last one went well.
_REMARK_WORDS, _OUTCOME_WORDS = 40, 8
_NEXT = lazy_pattern(
    r"\W*(?:(?:ok(?:ay)?|good|great|perfect|right|alright|and|also|finally|so|done)\b[\s,.!:\u2014-]*){0,2}"
    r"(?:let me|let[\u2019']s|let us|i[\u2019']ll|i will|i need to|i should|i want to|time to|step \d+"
    r"|i(?:[\u2019']m| am) (?:now )?\w+ing\b|(?:now|next|first|then)\b,?(?! (?:the|it|its|this|that|these"
    r"|all|every\w*|we|you|they|there|our|both|no|only|uses?|is|are)\b))|[^:]{1,50}:$",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
_WENT_WELL = lazy_pattern(
    r"\b(?:pass(?:es|ed|ing)?|clean|done|green|good|great|perfect|applied|committed|complete[ds]?|succeeds?"
    r"|succeeded|works?|worked|understood|fine|ready)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
_REASON = lazy_pattern(
    r"\b(?:because|since|due to|instead|rather than|otherwise|never|always|must|requires?|fail\w*)\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# A point within a name or a number ends no sentence.
_SENTENCE = lazy_pattern(r"(?:[^.!?;\n]|[.!?;](?=\S))+[.!?;\n]?", longest=_MOST_CHARACTERS)
_FROM = lazy_pattern(
    r"\b(?:mov|switch|migrat|chang|shift|convert|go)\w{0,5}\b[^.?!]{0,40}?\bfrom ([^.?!]{1,60}?) to\b",
    re.IGNORECASE,
    longest=_MOST_CHARACTERS,
)
# One of many things of its kind, named by its number.
_IDENTIFIER = lazy_pattern(
    r"#\d{1,9}\b|\b[A-Z][A-Z0-9]{1,9}-\d{1,9}\b|\b(?:(?i:ticket|issue|bug|story|task|incident|case|order"
    r"|invoice|request|pr|adr|rfc|job|run|build|cycle|sprint|customer|user|account|host|node|server|device"
    r"|row|line|page|room|item|batch|experiment|test|step))s? (?:(?i:no\.? ?|number |id |#))?"
    r"\d{1,9}\b(?!\.\d)",
    longest=_MOST_CHARACTERS,
)
# What is named so early in a sentence is its subject.
_SUBJECT = 20
# Marks of code for each word: 1 % of the sentences about decisions have .12, 95 % of functions more than .21.
_SHELL = re.compile(r"\$\(|<<")
_MARK = re.compile(r"\w\(|[\[\]{}=<>|&$;\\]|--|::")
_MOST_MARKS = 0.2
_LABEL = re.compile(r"\s*([^\W\d_]{3,20}): ")
_QUOTED = re.compile(r"`[^`\n]{1,80}`")
_ERROR = re.compile("\u201c[^\u201c\u201d]*\u201d")
_CODE = re.compile(r"&&|\||(?:^|\s)--?[a-z]|\$[({\w]|[{};]|=\S|^(?:cd|ls|git|npm|grep|find|cat|sed) ")
_PLAIN = re.compile(r"^0+(?=\d)|(?<=\d)(?:st|nd|rd|th|:00)$")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?![^\W_])|[^\W_]+")


class TextStatement(NamedTuple):
    """What a text says: its words in order, the stems of those that tell something, numbers and dates."""

    tokens: tuple[str, ...]
    stems: frozenset[str]
    numbers: frozenset[str]
    is_negated: bool
    is_personal: bool
    identifiers: frozenset[str] = frozenset()
    is_of_identifier: bool = False
    begin: tuple[str, str] = ("", "")
    measures: frozenset[str] = frozenset()


class Change(NamedTuple):
    """The words of change in a text; of what ended the stems around it."""

    replacing: str
    since: str
    moved: str
    ended: tuple[tuple[str, frozenset[str]], ...]
    refused: tuple[tuple[str, frozenset[str]], ...]
    is_addition: bool

    @property
    def is_told(self) -> bool:
        """Say whether any word tells of a change."""
        return bool(self.replacing or self.since or self.moved or self.ended or self.refused)

    @property
    def is_begun(self) -> bool:
        """Say whether it only tells what holds from some time on, and not that anything was changed."""
        return bool(self.since) and not self.moved


# Fitted by logistic regression to amended and ordinary pairs, and to turns of conversations, which hold down
# what is lively or personal. `python -m bench.amended_pairs --fit` does it without the conversations. Of
# other subjects there were too few. Another value, yes or no and the contrast were set by hand, near to what
# fits to halves of the pairs gave (1.2, .4 and -1.5). The first value is the sum without any sign.
WEIGHTS = {
    "": -1.8, "shared": 0.3, "answered": 1.2, "ratio": 0.8, "named": 1.2, "replacing": 1.4,
    "ended": 1.5, "refused": 0.6, "since": 0.7, "moved": 1.1, "other number": 0.4, "no number": -1.0,
    "contrary": 0.7, "contrast": -1.4, "other subject": -2.0, "exchanged": 0.7, "opened": 0.5,
    "addition": -0.85, "other identifier": -4.0, "same measure": 0.8, "other value": 0.5,
    "yes or no": 0.5, "lacking": 0.0, "lively": -1.9, "personal": -0.6,
}  # fmt: skip


# Without one of these nothing is said to be replaced; a long text must have one of the first two. Of 837
# pairs of messages of real sessions the sum alone takes 391 for replacements, with these 9.
_EXPLICIT = ("replacing", "ended", "moved", "since", "exchanged", "other number")
# A refusal counts where most words are those of a text that refuses nothing: "retry flaky tests", "flaky
# tests are quarantined, never retried".
_REFUSING = 0.65


def weigh(signs: Mapping[str, float]) -> float:
    """Return how much speaks for a later text replacing an earlier one."""
    return WEIGHTS[""] + sum([WEIGHTS[name] * value for name, value in signs.items() if value])


def says_change(newer: str, older: str, signs: Mapping[str, float], *, is_short: bool) -> bool:
    """Say whether a later text tells in so many words that something changed."""
    new, old = read_statement(newer), read_statement(older)
    if not is_short or new.tokens == old.tokens:
        return not is_short and bool(signs["replacing"] or signs["ended"])
    # "Set", "added" or "up" tell of a change only of what the earlier text says too.
    explicit = [name for name in _EXPLICIT if signs[name]]
    # Another number, or the contrary, of another thing replaces nothing: a password's length, a user name's.
    is_other = signs["contrast"] or signs["other subject"]
    if is_other or (explicit == ["other number"] and signs["lacking"]):
        return bool(signs["replacing"] or signs["ended"])
    if explicit == ["moved"] and not signs["named"] and read_change(newer).moved in _LIGHT:
        return False
    is_contrary = signs["refused"] and signs["shared"] >= _REFUSING and not old.is_negated
    return bool(explicit) or (bool(is_contrary) and not old.stems < new.stems)


def can_replace(newer: str, older: str) -> bool:
    """Say whether a later text states anything for as many cases as the earlier one."""
    if _EVERY_CASE.search(older) and _ONE_CASE.search(newer) and not _EVERY_CASE.search(newer):
        return False
    is_request = _REQUEST.search(newer) is not None
    return is_request or not (newer.rstrip().endswith("?") and is_question(newer))


def read_signs(newer: str, older: str, asked: str, ratio: float) -> dict[str, float]:
    """Return the signs of a pair, each between 0 and 1 or a little above."""
    new, old, question = read_statement(newer), read_statement(older), read_statement(asked)
    change = read_change(newer)
    shared = share_of_words(new.stems, old.stems)
    is_yes_no = _is_yes_no(asked)
    own = old.stems if is_yes_no else old.stems - question.stems
    answered, before = question.stems & new.stems, question.stems & old.stems
    count = min(max(1, len(question.stems)), _MOST_ASKED)
    new_focus, old_focus = _read_focus(newer, asked), _read_focus(older, asked)
    # "Which JDK" asks for the number beside that name.
    is_measured = _asks_for_number(asked) or not question.stems.isdisjoint(old.measures)
    has_other_number = is_measured and _has_other_number(new, old, new_focus, old_focus)
    is_other = _has_other_subject(new_focus, old_focus)
    return {
        "shared": shared,
        "answered": len(answered) / count,
        "ratio": min(1.5, ratio),
        "named": min(2, len(own & new.stems)) / 2,
        "replacing": float(bool(change.replacing)),
        "ended": float(bool(_find_end(change.ended, own))),
        "refused": float(bool(_find_end(change.refused, own))),
        "since": float(bool(change.since)),
        "moved": float(bool(change.moved)) * len(answered) / count,
        "other number": float(has_other_number),
        "no number": float(is_measured and bool(old.numbers) and not new.numbers),
        "contrary": float(shared >= _SAME and new_focus.is_negated != old_focus.is_negated),
        "same measure": float(has_other_number and not new.measures.isdisjoint(old.measures)),
        "other value": float(_has_other_value(newer, older)),
        "yes or no": float(is_yes_no and new_focus.is_negated != old_focus.is_negated),
        "lacking": len(before - answered) / count,
        "contrast": float(not change.replacing and _is_other_thing(new, old, question)),
        "other subject": float(is_other),
        "exchanged": float(not is_other and _is_exchanged(new_focus, old_focus, question)),
        "opened": float(bool(answered) and new_focus.begin[0] in _CHANGES),
        "addition": float(change.is_addition),
        "other identifier": float(not change.replacing and _is_other_identifier(new, old)),
        "lively": float(newer.count("!") > 0) + float(older.count("!") > 0),
        "personal": float(new.is_personal) + float(old.is_personal),
    }


def share_of_words(new: frozenset[str], old: frozenset[str]) -> float:
    """Return how much of the shorter text both have."""
    return len(new & old) / max(1, min(len(new), len(old)))


def explain_change(newer: str, older: str, asked: str) -> str:
    """Return the clearest sign that a later text replaces an earlier one, in words."""
    change = read_change(newer)
    if change.replacing:
        return f"it says “{change.replacing}”"
    question = read_statement(asked)
    if end := _find_end((*change.ended, *change.refused), read_statement(older).stems - question.stems):
        return f"it says “{end}”"
    new, old = _read_focus(newer, asked), _read_focus(older, asked)
    if new.numbers and old.numbers and not new.numbers & old.numbers:
        return f"{', '.join(sorted(new.numbers))} against {', '.join(sorted(old.numbers))}"
    if new.is_negated != old.is_negated:
        return "only one of them is negated"
    word = change.moved or change.since
    return f"it says “{word}”" if word else "it says something else"


def _has_other_number(
    new: TextStatement, old: TextStatement, new_focus: TextStatement, old_focus: TextStatement
) -> bool:
    if new.measures and old.measures and new.measures.isdisjoint(old.measures):
        return False
    if new_focus.numbers and old_focus.numbers:
        return not new_focus.numbers & old_focus.numbers
    return bool(new.numbers and old.numbers) and not new.numbers >= old.numbers


def drop_label(text: str) -> str:
    """Return a text without the word of change that labels it: of two decisions none changes the other."""
    found = _LABEL.match(text)
    return text[found.end() :] if found else text


def read_label(text: str) -> str:
    """Return the word of change that labels a text, or nothing."""
    found = _LABEL.match(text)
    label = found[1].lower() if found else ""
    return label if stem_word(label) in _CHANGES else ""


@lru_cache(maxsize=64)
def asks(sentence: str) -> bool:
    """Say whether a sentence is a question or names a topic, rather than states or demands something."""
    if is_question(sentence):
        return True
    return not sentence.rstrip().endswith(".") and len(read_statement(sentence).stems) <= _TOPIC


def is_question(sentence: str) -> bool:
    """Say whether a sentence asks something, rather than names a topic."""
    return _ASKS.match(sentence) is not None or _is_yes_no(sentence)


@lru_cache(maxsize=64)
def _is_yes_no(asked: str) -> bool:
    return _YES_NO.match(asked) is not None


@lru_cache(maxsize=512)
def _read_values(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for each in _VALUE.finditer(text[:_MOST_CHARACTERS]):
        found.setdefault(each.lastgroup or "", set()).add(each[0].strip("."))
    return {kind: frozenset(values) for kind, values in found.items()}


def _has_other_value(newer: str, older: str) -> bool:
    """Say whether both texts name a version, or both a path, and not the same."""
    new, old = _read_values(newer), _read_values(older)
    return any(not values & old[kind] for kind, values in new.items() if kind in old)


def _is_other_identifier(new: TextStatement, old: TextStatement) -> bool:
    """Say whether two texts are about two tickets, runs or hosts, or differ in nothing but their numbers."""
    if not new.identifiers or not old.identifiers or new.identifiers & old.identifiers:
        return False
    return (new.is_of_identifier and old.is_of_identifier) or new.stems == old.stems


def _is_other_thing(new: TextStatement, old: TextStatement, question: TextStatement) -> bool:
    """Say whether the later text has another word, or number, in the place of one that is asked about."""
    lacking = (question.stems & old.stems) - new.stems
    counted = (question.numbers & old.numbers) - new.numbers
    if not lacking and not counted:
        return False
    old_pairs, new_pairs = [*pairwise(old.tokens)], [*pairwise(new.tokens)]
    heads = {after for before, after in old_pairs if before in lacking}
    names = {before for before, number in old_pairs if number in counted and before in old.stems}
    if any(
        (after in heads and after not in SILENT and before not in SILENT and before not in old.tokens)
        or (before in names and after in new.numbers)
        for before, after in new_pairs
    ):
        return True
    (one, auxiliary, said), (other, *rest) = _read_subject(new), _read_subject(old)
    return bool(auxiliary) and [auxiliary, said] == rest and other in lacking and one not in old.stems


def _read_subject(text: TextStatement) -> tuple[str, str, str]:
    """Return the first word, its auxiliary and what it tells: dogs are allowed, horses are not allowed."""
    telling = [token for token in text.tokens if token not in SILENT]
    if len(telling) < 2 or text.begin[0] != telling[0] or text.begin[1] not in _AUXILIARIES:
        return ("", "", "")
    return (telling[0], text.begin[1], telling[1])


def _has_other_subject(new: TextStatement, old: TextStatement) -> bool:
    """Say whether two sentences begin with another word before the same one: admin API, public API."""
    (one, head), (other, other_head) = new.begin, old.begin
    if not _CHANGES.isdisjoint((one, other)):
        return False
    return one != other and head == other_head and head in new.stems


def _is_exchanged(new: TextStatement, old: TextStatement, question: TextStatement) -> bool:
    """Say whether two sentences are the same but for one word or number, which the question does not name."""
    if len(new.tokens) != len(old.tokens):
        return False
    differing = [other for one, other in zip(new.tokens, old.tokens, strict=True) if one != other]
    return len(differing) == 1 and differing[0] not in question.stems


@lru_cache(maxsize=512)
def words_beside_end(text: str) -> frozenset[str]:
    """Return the words beside one that tells of an end or a replacement: what has ended is among them."""
    words = _TOKEN.findall(text[:_MOST_CHARACTERS].lower())
    ends = [at for at, word in enumerate(words) if word in END_WORDS]
    return frozenset(word for at in ends for word in words[max(0, at - _BESIDE) : at + _BESIDE + 1])


def is_about(lesson: str, subject: frozenset[str]) -> bool:
    """Say whether a mined lesson names a subject itself, by its stems, not only in the error it quotes."""
    return not subject.isdisjoint(read_statement(_ERROR.sub(" ", lesson)).stems)


def is_remark(text: str) -> bool:
    """Say whether a text only announces what its speaker does next: "All pass. Now run the linter." """
    if len(text.split()) > _REMARK_WORDS or _REASON.search(text):
        return False
    others = [each for each in split_sentences(text) if not _NEXT.match(each)]
    return len(others) < len(split_sentences(text)) and all(
        len(each.split()) <= _OUTCOME_WORDS and _WENT_WELL.search(each) for each in others
    )


def _find_end(found: Iterable[tuple[str, frozenset[str]]], own: frozenset[str]) -> str:
    return next((word for word, around in found if around & own), "")


@lru_cache(maxsize=512)
def find_statement(text: str, asked: str) -> str:
    """Return a short text, or the sentence of a long one that has the most words of the question.

    A long text has words of change for many things.
    """
    if len(read_statement(text).tokens) <= _SHORT:
        return text
    return _find_focus(text, asked)


def _find_focus(text: str, asked: str) -> str:
    sentences = split_sentences(text)
    if len(sentences) < 2:
        return text
    wanted = read_statement(asked).stems
    return max(sentences, key=lambda each: len(read_statement(each).stems & wanted), default=text)


@lru_cache(maxsize=512)
def _read_focus(text: str, asked: str) -> TextStatement:
    return read_statement(_find_focus(text, asked))


@lru_cache(maxsize=512)
def is_code(text: str) -> bool:
    """Say whether a text is a command or code, which states nothing."""
    # Prose that quotes code is prose.
    text = _QUOTED.sub(" it ", text[:_MOST_CHARACTERS])
    if _SHELL.search(text) or len(_MARK.findall(text)) > _MOST_MARKS * len(text.split()):
        return True
    tokens = read_statement(text).tokens
    return _CODE.search(text) is not None and sum(map(SILENT.__contains__, tokens)) < _LEAST_SILENT * len(
        tokens
    )


@lru_cache(maxsize=64)
def _asks_for_number(asked: str) -> bool:
    return _MEASURED.search(asked) is not None


@lru_cache(maxsize=512)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the first sentences of a text."""
    found = (each.strip() for each in _SENTENCE.findall(text))
    return tuple(each for each in found if each)[:_MOST_SENTENCES]


@lru_cache(maxsize=512)
def read_change(text: str) -> Change:
    """Return the words of change of a text."""
    words = _TOKEN.findall(text[:_MOST_CHARACTERS].lower())
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    replacing = next((each for each in words if each in _REPLACING), "")
    ended, refused = (
        tuple(
            (word, read_statement(sentence).stems)
            for sentence in split_sentences(text)
            if (word := next((each for each in _TOKEN.findall(sentence.lower()) if each in words_of_end), ""))
        )
        for words_of_end in (_ENDED, _REFUSED)
    )
    # "Uploads move from the local disk to S3": the disk has had its time.
    left = [(f"from {found[1]}", read_statement(found[1]).stems) for found in _FROM.finditer(text)]
    return Change(
        replacing
        or next((each for each in pairs if each in _REPLACING_PAIRS), "").replace("from now", "from now on"),
        next((each for each in (*words, *pairs) if each in _SINCE or each in _SINCE_PAIRS), ""),
        next((each for each in words if each in _MOVED), ""),
        (*ended, *left),
        refused,
        not _ADDED.isdisjoint(words) or _TOO.search(text) is not None,
    )


class _Word(NamedTuple):
    """A word as statements are compared: its token, and the stem or the number that it tells."""

    token: str
    stem: str = ""
    number: str = ""
    is_negating: bool = False
    is_personal: bool = False
    lowered: str = ""


@lru_cache(maxsize=8192)
def _read_word(word: str) -> _Word:
    lowered = word.lower()
    number = _NUMERALS.get(lowered, lowered)
    day = lowered.removesuffix("s")
    if day in _DATES:
        return _Word(day, number=day)
    if number[0].isdigit():
        # "1st" is 1, "04:00" is 4.
        value = _PLAIN.sub("", number)
        return _Word(value, number=value if len(value) <= _LONGEST_NUMBER else "")
    # "US" and "IT" are names.
    is_silent = lowered in SILENT and (len(word) == 1 or not word.isupper())
    stem = stem_word(lowered)
    is_telling = not is_silent and lowered not in _FAINT and len(lowered) > 1
    return _Word(
        lowered if is_silent else stem,
        stem if is_telling else "",
        "",
        lowered in _NEGATING,
        lowered in _PERSONAL,
        lowered,
    )


@lru_cache(maxsize=2048)
def read_statement(text: str) -> TextStatement:
    """Return what a text says."""
    text = text[:_MOST_CHARACTERS]
    said = _TOKEN.findall(text)
    words = [_read_word(word) for word in said]
    tokens = tuple([word.token for word in words])
    stems = frozenset([word.stem for word in words if word.stem])
    numbers = {word.number for word in words if word.number}
    # "A week", "per day".
    measures = _read_measures(said, words)
    if any(one.lowered in _ARTICLES and other.lowered in _UNITS for one, other in pairwise(words)):
        numbers.add("1")
        measures.add("time")
    # The first word that tells something, and the one behind it.
    at = next((at for at, word in enumerate(words) if word.stem), 0)
    named = [*_IDENTIFIER.finditer(text)] if _DIGIT.search(text) else []
    return TextStatement(
        tokens,
        stems,
        frozenset(numbers),
        any(word.is_negating for word in words),
        any(word.is_personal for word in words) and _WISH.search(text) is None,
        frozenset(re.sub(r"\D+", "", each[0]) for each in named),
        bool(named) and named[0].start() <= _SUBJECT,
        (tokens[at] if words else "", tokens[at + 1] if at + 1 < len(words) else ""),
        frozenset(measures),
    )


def _read_measures(said: Sequence[str], words: Sequence[_Word]) -> set[str]:
    """Return what the numbers of a text count: time, size, or the stems of the words beside them."""
    measures: set[str] = set()
    for at, word in enumerate(words):
        if not word.number:
            continue
        # "64m" may be minutes, metres or megabytes.
        suffix = word.token.lstrip("0123456789.,:")
        after = [suffix, *(each.lowered for each in words[at + 1 : at + 3])]
        unit = next(
            (
                _MEASURES[form]
                for each in after
                for form in (each, each.removesuffix("s"))
                if form in _MEASURES
            ),
            "",
        )
        if word.token in _DATES:
            unit = "date"
        elif ":" in said[at]:
            unit = "clock"
        beside = () if suffix else (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])
        measures |= {unit} if unit else {each.stem for each in beside if each.stem}
    return measures


# The stems of the words with which a change is told: "Decision: …", "Moved …".
_CHANGES = frozenset(map(stem_word, (*_MOVED, *_SINCE, *_REPLACING, *_ENDED)))
