"""Find values drawn by chance near a word that speaks of a secret: in commands, calls and sentences."""

from collections.abc import Iterator
from typing import Final

from archivist.capture import secret_rules as rules
from archivist.cold_start import lazy_pattern

WORDS: Final = (
    "passw", "secret", "token", "api", "cred", "login", "auth", "unlock", "connect", "mysqli", "pdo(", "jwt",
)  # fmt: skip
# What follows a word that is common in other names: `API key`, but no `APIClient`; `auth`, but no `author`.
_WHOLE: Final = {
    "api": lazy_pattern(r"[ _\-]?key"),
    "cred": lazy_pattern(r"(?:ential)?s?(?![a-z])"),
    "connect": lazy_pattern(r"(?:ion)?\("),
    "mysqli": lazy_pattern(r"(?:_connect)?\("),
    "jwt": lazy_pattern(r"\.(?:sign|encode|verify|decode)\("),
}
_WORD_END: Final = lazy_pattern(r"(?!\w|[/.]\w)")
# So much of the line behind the word is looked at.
_REACH: Final = 100
# What stands in quotes, or a word of the line as brackets and separators leave it.
_CANDIDATE: Final = lazy_pattern(
    r"(?<=[\"'`])[^\s\"'`\\]{8,128}(?=[\"'`])"
    r"|(?<![\w/.\-@%\\])[A-Za-z0-9!#%^*$][\w!#%^*$+.~?/\-]{7,127}={0,2}(?![\w@(\[=:])"
)
# Another name between the word and the value.
_OTHER_NAME: Final = lazy_pattern(r"([A-Za-z_][\w.\-]{0,60}+)\\{0,3}[\"'`]?[ \t]{0,2}[:=]")
_SAME_WORDS: Final = """
    text value user username name email password pass pwd secret token key element ref type selector host
    server port database dbname db mysql jdbc postgresql http https
"""
_SAME_THING: Final = frozenset(_SAME_WORDS.split())
_LONE_LINE: Final = lazy_pattern(
    r"\r?\n(?:[ \t]{0,40}\r?\n)?[ \t]{0,40}(?:[A-Za-z ]{1,20}:[ \t]{1,4}|send \"|\w{1,12} )?"
    r"(?P<value>[\w+/.!@#%^&*~\-]{10,4096}={0,2})(?:\\r\")?[ \t]{0,4}(?=\r?\n|\Z)"
)
_BASE64: Final = lazy_pattern(r"[A-Za-z0-9+/]{1,4096}={0,2}")
# An escape of a URL, a terminal's colour, a hash that says so.
_NO_SECRET: Final = lazy_pattern(r"%[0-9A-F]{2}|^\d{1,3}m[A-Za-z]|^sha\d{1,3}-")
_PLAIN: Final = lazy_pattern(r"[\w!#%^*$+.~?/=\-]{1,4096}")
_SIGNS: Final = frozenset("!#%^*$?")


def find_near_words(text: str, flat: str, present: set[str]) -> Iterator[rules.Span]:
    """Find values drawn by chance on the line behind a word that speaks of a secret, or alone on the next."""
    for word in WORDS:
        at = flat.find(word) if word in present else -1
        while at >= 0:
            start = at + len(word)
            whole = _WHOLE.get(word)
            if whole and (end := whole.match(flat, start)):
                start = end.end()
            is_word = whole is None or end is not None
            if word in ("auth", "login"):
                is_word = _WORD_END.match(flat, start) is not None and not flat[at - 1 : at].isalnum()
            if is_word:
                yield from _values_behind(text, word, start)
            at = flat.find(word, start)


def _values_behind(text: str, word: str, start: int) -> Iterator[rules.Span]:
    line_end = text.find("\n", start, start + _REACH)
    end = line_end if line_end >= 0 else min(len(text), start + _REACH)
    kind = "password" if word == "passw" else "secret"
    for match in _CANDIDATE.finditer(text, start, end):
        between = text[start : match.start()]
        # The argument of `login`, `auth` or `token` may be a hash or a UUID.
        is_argument = between == " " and _is_long(match[0])
        # Behind another name the value is that one's.
        if is_argument or (
            _is_drawn_word(match[0])
            and all(name.lower() in _SAME_THING for name in _OTHER_NAME.findall(between))
        ):
            yield rules.Span(*match.span(), kind, rules.BY_CONTEXT)
    if line_end >= 0 and (lone := _LONE_LINE.match(text, line_end)):
        value = lone["value"]
        is_announced = text[start:line_end].rstrip().endswith(":") and rules.is_hexadecimal(value)
        if is_announced or _is_drawn_word(value):
            yield rules.Span(*lone.span("value"), kind, rules.BY_CONTEXT)


def _is_long(value: str) -> bool:
    is_hash = rules.is_hexadecimal(value.replace("-", ""))
    return len(value) >= 16 and (is_hash or rules.is_drawn_value(value)) and not rules.is_ordinary(value)


def _is_drawn_word(value: str) -> bool:
    is_one_case = value in (value.lower(), value.upper())
    if is_one_case or _NO_SECRET.search(value) or rules.is_ordinary(value):
        return False
    if "/" in value and (len(value) < 30 or not _BASE64.fullmatch(value)):
        return False
    if not any(map(str.isdigit, value)):
        return rules.is_choppy(value)
    is_signed = not _SIGNS.isdisjoint(value.strip("!#%^*$?")) and "." not in value
    if not _PLAIN.fullmatch(value):
        return rules.is_drawn(value)
    return rules.is_drawn(value) or (is_signed and rules.is_told_value(value))
