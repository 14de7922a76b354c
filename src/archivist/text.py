"""Text that is safe to show, and how many tokens it takes."""

from __future__ import annotations

from functools import lru_cache

from archivist.cold_start import lazy_pattern

# The endings of a word's forms, and the length of what is compared.
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ed", "es", "er", "s")
_STEM = 6

# Sequences that steer a terminal go as a whole: without its beginning the rest would stand there as text.
_STEERING = lazy_pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
# By these a line can be made to read as something else than what it says.
_TURNING = lazy_pattern("[\u202a-\u202e\u2066-\u2069]")
# What stands in a text and is not seen in it: control characters, turning marks, joiners, soft hyphens, the
# selectors of variants behind plain letters, and what looks like a space or a line end and is part of a word.
_UNSEEN = lazy_pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\u00a0\u1680\u2000-\u200a\u2028\u2029\u205f\u3000\u115f\u1160\u3164\uffa0\U000e0000-\U000e01ef]|(?<=[!-~])[\ufe00-\ufe0f](?!\u20e3)"
)
# What a line of output cannot hold.
_NOT_IN_NAMES = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# Letters that are drawn as nothing: spaces without width, tags, the fillers of Hangul, selectors of variants.
_INVISIBLE = lazy_pattern("[\u200b\u2060\ufeff\u115f\u1160\u3164\uffa0\U000e0000-\U000e01ef]+")
# Texts in which no rule finds a secret: the ids that clients give to sessions, short words such as domains
# and roles, and paths of short names. A session that starts has often no others, and importing the rules
# takes a hook 4 ms.
_HEXADECIMAL = frozenset("0123456789abcdef-")
_PATH_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/#")
_SHORTEST_SECRET = 8
ODD_NAME = "its name holds control characters"
_LONGEST_NAME = 15


def without_controls(text: str) -> str:
    """Return a text without control characters but tabs and line ends, which are one `\\n` each."""
    if text.isprintable():
        return text
    return _STEERING.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_blank(text: str) -> bool:
    """Say whether nothing is left of a text without control characters and spaces."""
    return not without_controls(text).strip()


def is_as_seen(text: str) -> bool:
    """Say whether a text holds nothing but what is seen in it; one that does is another than it seems."""
    return (text.isascii() and text.isprintable()) or _UNSEEN.search(text) is None


def make_legible(text: str) -> str:
    """Return a text as it may be shown: without control characters, and without marks that turn its order.

    Letters that nobody would see are written as codes.
    """
    if text.isascii() and text.isprintable():
        return text
    return _show_invisible(_TURNING.sub("", without_controls(text)))


def escape_name(name: object) -> str:
    """Return the name of a file as it may stand in a line: a name can hold line ends and other controls."""
    return _NOT_IN_NAMES.sub(lambda found: ascii(found[0])[1:-1], str(name))


def is_odd_name(name: str) -> bool:
    """Say whether a name holds what nobody types into one; such a file is named and not read."""
    return _NOT_IN_NAMES.search(name) is not None


def _show_invisible(text: str) -> str:
    """Write the first of each run of invisible letters as its code: who reads it sees that they are there."""
    return _INVISIBLE.sub(lambda run: f"{ascii(run[0][0])[1:-1]}{'…' if len(run[0]) > 1 else ''}", text)


def on_one_line(text: str) -> str:
    """Return a text on one line: a line end in a folder's name must not begin a line of its own."""
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
    return text if text.isascii() else _show_invisible(text)


def shorten(text: str, most: int) -> str:
    """Return a text cut to a number of characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten_line(text: str, most: int) -> str:
    """Return a text on one line, cut to a number of characters."""
    return shorten(" ".join(text.split()), most)


_ANNOUNCED_HEADING = lazy_pattern(r"\s{0,8}[^\n#]{1,60}:[ \t]{0,8}\n\s{0,8}#{1,4} (?:Plan: )?")
_LINK = lazy_pattern(r"\[([^\[\]\n]{0,300})\]\(([^()\n]{1,600})\)")
_ADDRESS = lazy_pattern(r"\Ahttps?://(?:www\.)?")


def first_words(text: str, most: int = 80) -> str:
    """Return the first words of a task, without the marks of Markdown's headings and links.

    Of a line that only announces a heading (`Implement the following plan:`) the heading says more. Of a link
    its words are shown, of one without words the end of its address.
    """
    text = _LINK.sub(lambda link: _ADDRESS.sub("", link[1]) or link[2], text[: 40 * most])
    announced = _ANNOUNCED_HEADING.match(text)
    text = text[announced.end() :].partition("\n")[0] if announced else text
    return shorten_line(" ".join(word for word in text[: 10 * most].split() if word.strip("#")), most)


# In one line of TOML: 500 parts of a name take the parser a millisecond, 25,000 took it 10 s and 2.4 GB.
_MOST_PARTS = 500


def changed_part(old: str, new: str, around: int = 3) -> tuple[str, str]:
    """Return the words in which two texts differ, in both, with a few words around them; code stays whole."""

    def count_same(some: list[str], others: list[str]) -> int:
        pairs = enumerate(zip(some, others, strict=False))
        return next((at for at, (one, other) in pairs if one != other), min(len(some), len(others)))

    def splits_code(words: list[str]) -> bool:
        return sum(word.count("`") for word in words) % 2 == 1

    before, after = old.split(), new.split()
    start = count_same(before, after)
    rest = count_same(before[start:][::-1], after[start:][::-1])
    first = max(0, start - around)
    while splits_code(before[:first]):
        first -= 1

    def part(words: list[str]) -> str:
        last = len(words) - rest + around
        while last < len(words) and splits_code(words[first:last]):
            last += 1
        shown = " ".join(words[first:last])
        return f"{'… ' if first else ''}{shown}{' …' if last < len(words) else ''}"

    return part(before), part(after)


def is_too_deep(text: str) -> bool:
    """Say whether a line of a TOML text has more dots than any name or value that somebody wrote."""
    return text.count(".") > _MOST_PARTS and any(line.count(".") > _MOST_PARTS for line in text.splitlines())


def split_around(text: str, start: str, end: str) -> list[str]:
    """Return the parts of a text around its sections from a start mark to the next end mark.

    A pattern `start.*?end` would look for the end again from each start that has none.
    """
    parts, at = [], 0
    while (first := text.find(start, at)) >= 0 and (last := text.find(end, first + len(start))) >= 0:
        parts.append(text[at:first])
        at = last + len(end)
    return [*parts, text[at:]]


# About what English prose and code come to in the tokenizers that are in use.
CHARACTERS_PER_TOKEN = 4
# Chinese, Japanese and Korean script, full-width forms and emoji take about a token each.
_WIDE = lazy_pattern(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001f000-\U0001faff\U00020000-\U0003ffff]"
)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text takes, at least one for any text at all."""
    if text.isascii():
        return -(-len(text) // CHARACTERS_PER_TOKEN)
    narrow = len(_WIDE.sub("", text))
    return len(text) - narrow - (-narrow // CHARACTERS_PER_TOKEN)


def replace_surrogates(text: str) -> str:
    """Return a text without unpaired surrogates, which JSON can spell but UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def cannot_hold_secret(text: str) -> bool:
    """Say whether a text is too short or too plain for any rule of secrets, and needs no other cleaning."""
    if not text.isascii():
        return False
    if len(text) < _SHORTEST_SECRET or _HEXADECIMAL.issuperset(text):
        return True
    return _PATH_CHARACTERS.issuperset(text) and max(map(len, text.split("/"))) <= _LONGEST_NAME


def pluralize(number: int, noun: str) -> str:
    """Return `1 lesson` or `3 lessons`."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else several}"


@lru_cache(maxsize=4096)
def stem_word(word: str) -> str:
    """Return a word's beginning without its ending, so that the forms of a word are equal."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
            break
    return word[:3] + word[3:_STEM].rstrip("eiy")
