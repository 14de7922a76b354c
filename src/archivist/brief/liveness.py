"""Find what a lesson names of its project, and say in words when that is gone.

A wrong "stale" hides a good lesson, a missed one costs a line in a brief. So a name is taken only where the
lesson's own words leave no doubt: it stands in backticks or is plainly a path, and nothing near it says that
it is missing, replaced, or yet to be made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from archivist.cold_start import lazy_pattern
from archivist.records import Lesson

_LONGEST_TEXT = 4000
_LONGEST_CODE = 200
_WINDOW = 60

_CODE = lazy_pattern(r"(?<!`)(`{1,2})(?!`)([^`]+)\1(?!`)")
_QUOTED = lazy_pattern(r"“[^”]{0,300}”|\"[^\"]{0,300}\"|(?<!\w)'[^']{0,300}'(?!\w)")
_BARE_PATH = lazy_pattern(
    r"(?<![\w./~@$%{<:\\*?&=#+-])(?:[\w.-]+/)+[\w.-]*\w\.[A-Za-z]\w{0,8}(?![\w/*<{>@(-])"
)
_WORD_PATH = lazy_pattern(r"(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*/?")
_LOCATION = lazy_pattern(r"(?P<path>[^:]+?)(?:::(?P<symbol>[\w.:]+)(?:\[.*\])?|:\d[\d:-]*)?")
_EXTENSION = lazy_pattern(
    r"\w\.(?:py|pyi|js|mjs|cjs|ts|tsx|jsx|rs|go|rb|java|kt|c|h|cc|cpp|hpp|cs|php|sh|bash|ps1|toml|ya?ml|json"
    r"|cfg|ini|md|rst|txt|sql|html|css|scss|lock|mk|cmake|gradle|xml|proto|ipynb|lua|pl|swift|vue|svelte)$"
)
_SYMBOL = lazy_pattern(r"(?:[A-Za-z_]\w*(?:\.|::))*[A-Za-z_]\w*(?=(?:\(\))?$)")
_TELLING = lazy_pattern(r"[.:_]|[a-z][A-Z]")
_PROGRAM = lazy_pattern(r"[a-z][\w.+-]{1,40}$")
_TARGET = lazy_pattern(r"[A-Za-z][\w:-]*$")
_FLAG = lazy_pattern(r"--[a-z][\w-]+")
_STEPS = lazy_pattern(r"\s*(?:&&|\|\||[;|])\s*")
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*=\S*$")

# Parts of paths below which nothing is the project's own, and names that stand for any other.
_FOREIGN = lazy_pattern(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|\.?venv|\.git|\.tox|__pycache__|dist|build|target|\.\."
    r"|path/to|foo|bar|example|tmp)(?:/|$)|^[\w-]+\.(?:com|org|io|net|dev|in)(?:/|$)|^(?:origin|upstream)/"
)
_CLAUSE = lazy_pattern(r"[;:.!?](?=\s|$)|\bbut\b|\bTHEN\b|\n")
# Said before a name of what is not there, is to go, or is yet to come.
_NOT_THIS = lazy_pattern(
    r"(?i)\b(?:not|no|never|without|avoid(?:ing)?|instead of|rather than|don['\u2019]t|leav\w+ out|remov\w+"
    r"|delet\w+|drop\w*|old|former\w*|deprecated|obsolete|replac\w+|creat\w+|add(?:s|ed|ing)?|writ\w+|generat\w+"
    r"|produc\w+|sav\w+|renam\w+|mov\w+|into|new|missing|lacks?|install\w*|download\w*|clon\w+|unless|like"
    r"|such as|example|called|named)(?:\s+\S+){0,3}\s*$|\bto (?:a |the |file )*$"
)
_NOT_THERE = lazy_pattern(
    r"(?i)\b(?:(?:do|does|did)(?: not|n['\u2019]t) exist|no longer|not (?:found|installed|there|exist)|never"
    r"|(?:is|are|was|were|been|be|got|gets?)(?: \w+)? (?:gone|remov\w+|deleted|dropped|missing|absent"
    r"|renamed|moved|replaced|not|looked for|created|generated|written|ignored|deprecated|obsolete|made"
    r"|built)|(?:is|are|was|were)n['\u2019]t|to be (?:run|found|created|made|written|looked)|cannot be"
    r"|can['\u2019]t|used to|lacks?|missing)\b"
)
_ADVISED = lazy_pattern(r"(?i)\b(?:use|using|run|running|call|try|then|first|with|via|by)(?:\s+\w+)?\s*$")
_PLACING = lazy_pattern(r"\s*(?:in|of|inside|within)\s+(?:the\s+)?(?:file\s+)?$")
_CHANGING = lazy_pattern(r"(?i)\bchang(?:e|ing)\s+$")
_LISTING = lazy_pattern(r"\s*(?:,|,?\s*\b(?:and|or)\b)\s*$")

_WRAPPERS = frozenset(("sudo", "env", "time", "exec", "nohup", "command"))
_RUNNERS = frozenset(("uv", "poetry", "pdm", "hatch", "pipenv", "rye"))
_INTERPRETERS = frozenset(
    ("python", "python3", "bash", "sh", "zsh", "node", "ruby", "perl", "php", "ts-node", "tsx")
)
_PACKAGE_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_MOVES = frozenset(("cd", "pushd"))
# What these are given they may make, move or take from elsewhere.
_MAKERS = frozenset(
    ("touch", "mkdir", "cp", "mv", "tee", "ln", "rm", "install", "curl", "wget", "git", "tar", "unzip", "zip",
     "rsync", "scp", "echo", "printf", "sed", "awk", "docker", "find", "export", "source", "pip", "uv",
     "conda", "apt", "apt-get", "brew", "npm", "yarn", "pnpm", "cargo", "go")
)  # fmt: skip


class ReferenceKind(StrEnum):
    """What a lesson can name of its project."""

    FILE = "file"
    COMMAND = "command"
    FLAG = "flag"
    SYMBOL = "symbol"


class PresenceState(StrEnum):
    """Whether something is there; unknown is never taken for gone."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CodeReference:
    """Something that a lesson names.

    `program` is what a flag belongs to, or what runs a command of the project (`make`, `npm run`). A symbol
    is looked for in `places`; `beside` are texts listed together with this one, and `is_advised` says that
    the lesson tells to use it, or to change it.
    """

    kind: ReferenceKind
    text: str
    program: str = ""
    places: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    is_advised: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """What the working tree says of a name; `instead` is where a file of that name lies now."""

    state: PresenceState
    instead: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece of code in a text and what it names; `is_denied` when the words around say it is not there."""

    start: int
    end: int
    code: str
    names: tuple[CodeReference, ...]
    is_denied: bool


@dataclass(frozen=True, slots=True)
class _Text:
    """A text whose code is masked, and that code."""

    masked: str = ""
    spans: tuple[_Span, ...] = ()

    def gap(self, place: int) -> str:
        """Return the words between a piece of code and the next; a full stop when there is none."""
        if place + 1 >= len(self.spans):
            return "."
        return self.masked[self.spans[place].end : self.spans[place + 1].start]


def references_in(lesson: Lesson) -> tuple[CodeReference, ...]:
    """Return what a lesson names of its project, each once, in the order of its words.

    Remedies are alternatives: what only some of them name can be gone while the lesson still helps.
    """
    said = [_mask_code(text) for text in (lesson.summary, lesson.rule)]
    cures = [_mask_code(text) for text in lesson.remedies]
    denied = {key for text in (*said, *cures) for key in _denied_references(text)}
    found = [name for text in said for name in _stated_references(text)]
    if cures:
        shared = set.intersection(
            *({(name.kind, name.text) for name in _stated_references(text)} for text in cures)
        )
        found += [name for name in _stated_references(cures[0]) if (name.kind, name.text) in shared]
    return _deduplicate(name for name in found if (name.kind, name.text) not in denied or _is_to_change(name))


def staleness_reason(names: Sequence[CodeReference], answers: Mapping[CodeReference, ReferenceCheck]) -> str:
    """Return why a lesson that names these is stale, in words, or an empty text.

    Of things that are listed together one that is left is enough.
    """
    gone = {name.text for name in names if _is_gone(name, answers)}
    for name in names:
        if name.text in gone and _is_gone(name, answers) and gone.issuperset(name.beside):
            return _reason(name, answers[name])
    return ""


def _is_gone(name: CodeReference, answers: Mapping[CodeReference, ReferenceCheck]) -> bool:
    return name in answers and answers[name].state is PresenceState.GONE


def _reason(name: CodeReference, answer: ReferenceCheck) -> str:
    match name.kind:
        case ReferenceKind.SYMBOL:
            return f"`{name.text}` is no longer in {' or '.join(f'`{place}`' for place in name.places)}"
        case ReferenceKind.FLAG:
            return f"`{name.program}` no longer knows `{name.text}`"
        case _:
            said = f"`{name.program} {name.text}`" if name.program else f"`{name.text}`"
            return f"{said} is gone; there is `{answer.instead}`" if answer.instead else f"{said} is gone"


def _deduplicate(names: Iterator[CodeReference]) -> tuple[CodeReference, ...]:
    found: dict[tuple[str, str, str], CodeReference] = {}
    for name in names:
        key = (name.kind, name.text, name.program)
        known = found.setdefault(key, name)
        # Said twice, once in a list and once as advice: both are true of it.
        found[key] = replace(
            known,
            places=tuple(dict.fromkeys((*known.places, *name.places))),
            beside=tuple(dict.fromkeys((*known.beside, *name.beside))),
            is_advised=known.is_advised or name.is_advised,
        )
    return tuple(found.values())


def _mask_code(text: str) -> _Text:
    """Find the pieces of code in a text, and the paths that stand in it plainly."""
    if "`" not in text and "/" not in text:
        return _Text()
    text = text[:_LONGEST_TEXT]
    codes = [(found.start(), found.end(), found[2].strip(), True) for found in _CODE.finditer(text)]
    masked = _CODE.sub(lambda found: "`" * len(found[0]), text)
    plain = _QUOTED.sub(lambda found: " " * len(found[0]), masked)
    paths = [(found.start(), found.end(), found[0], False) for found in _BARE_PATH.finditer(plain)]
    return _Text(masked, tuple(_span(masked, *each) for each in sorted(codes + paths)))


def _span(masked: str, start: int, end: int, code: str, is_code: bool) -> _Span:
    before = _CLAUSE.split(masked[max(0, start - _WINDOW) : start])[-1]
    after = _CLAUSE.split(masked[end : end + _WINDOW])[0]
    # "THEN" ends a clause, and what stands right after it is advice.
    is_advised = bool(_ADVISED.search(before)) or masked[:start].rstrip().endswith("THEN")
    names = _references_in_code(code, is_advised=is_advised) if is_code else _references_in_word(code)
    return _Span(
        start,
        end,
        code,
        tuple(replace(name, is_advised=is_advised and not name.places) for name in names),
        is_denied=bool(_NOT_THIS.search(before) or _NOT_THERE.search(after)),
    )


def _denied_references(text: _Text) -> Iterator[tuple[ReferenceKind, str]]:
    """Give what a text says is not there; the program of a command that fails is not meant by that."""
    for span in text.spans:
        if span.is_denied:
            yield from ((name.kind, name.text) for name in span.names if not _is_plain_command(name))
            symbol = _SYMBOL.match(span.code)
            if symbol:
                yield ReferenceKind.SYMBOL, symbol[0]


def _is_plain_command(name: CodeReference) -> bool:
    return name.kind is ReferenceKind.COMMAND and not name.program


def _is_to_change(name: CodeReference) -> bool:
    """Say whether a lesson tells to change a symbol: that its library dropped it is then the reason."""
    return name.kind is ReferenceKind.SYMBOL and name.is_advised


def _stated_references(text: _Text) -> Iterator[CodeReference]:
    """Give what a text names as being there, with what stands beside it."""
    for place, span in enumerate(text.spans):
        if span.is_denied:
            continue
        first, last = _list_around(text, place)
        listed = text.spans[first : last + 1]
        is_choice = any("or" in text.gap(each) for each in range(first, last))
        if is_choice and not all(each.names for each in listed):
            # The other choice cannot be checked, so the lesson may live by it.
            continue
        others = tuple(name.text for each in listed if each is not span for name in each.names)
        yield from (replace(name, beside=others) for name in span.names)
        yield from _symbol_reference(text, place)


def _list_around(text: _Text, place: int) -> tuple[int, int]:
    """Return the first and the last place of the list that a piece of code stands in."""
    first = last = place
    while first and _LISTING.match(text.gap(first - 1)):
        first -= 1
    while _LISTING.match(text.gap(last)):
        last += 1
    return first, last


def _symbol_reference(text: _Text, place: int) -> Iterator[CodeReference]:
    """Give the symbol that a piece of code is, where the words say in which files it stands."""
    span = text.spans[place]
    found = _SYMBOL.match(span.code)
    if not found or not _TELLING.search(found[0]) or _EXTENSION.search(found[0]):
        return
    is_changed = text.gap(place).strip() == "to" and bool(_CHANGING.search(text.masked[: span.start]))
    at = place + 1 if is_changed else place
    if not _PLACING.match(text.gap(at)):
        return
    _, last = _list_around(text, at + 1)
    files = [name for each in text.spans[at + 1 : last + 1] for name in each.names]
    places = tuple(name.text for name in files if name.kind is ReferenceKind.FILE)
    if places:
        yield CodeReference(ReferenceKind.SYMBOL, found[0], places=places, is_advised=is_changed)


def _references_in_code(code: str, *, is_advised: bool) -> Iterator[CodeReference]:
    """Give what a piece of code names: a path, or the programs, files and flags of a command."""
    if len(code) > _LONGEST_CODE or "\n" in code or "…" in code:
        return
    steps = [step.split() for step in _STEPS.split(code)]
    if any(words and words[0] in _MOVES for words in steps):
        return
    if len(steps) == 1 and len(steps[0]) == 1:
        yield from _references_in_word(code)
        # One word is a program only where the lesson says to run it.
        if is_advised and _PROGRAM.match(code) and "." not in code:
            yield CodeReference(ReferenceKind.COMMAND, code)
        return
    for words in steps:
        yield from _references_in_command(_strip_wrappers(words), is_alone=len(steps) == 1)


def _references_in_word(word: str) -> Iterator[CodeReference]:
    """Give the file that a word is, and the test in it that `file::test` names."""
    found = _LOCATION.fullmatch(word)
    path = found["path"] if found else ""
    if not found or not _WORD_PATH.fullmatch(path) or _FOREIGN.search(path):
        return
    if "/" not in path.strip("/").removeprefix("./") and not _EXTENSION.search(path):
        return
    file = path.rstrip("/")
    yield CodeReference(ReferenceKind.FILE, file)
    if found["symbol"]:
        yield CodeReference(ReferenceKind.SYMBOL, found["symbol"], places=(file,))


def _strip_wrappers(words: list[str]) -> list[str]:
    """Return the words of a command from its own program on."""
    while words and (words[0] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words[2:] if len(words) > 2 and words[0] in _RUNNERS and words[1] == "run" else words


def _references_in_command(words: list[str], *, is_alone: bool) -> Iterator[CodeReference]:
    """Give what one step of a command names."""
    quoted = next((place for place, word in enumerate(words) if re.search(r"['\"<>(${]", word)), len(words))
    words = words[:quoted]
    if not words:
        return
    program, arguments = words[0], words[1:]
    script = program if "/" in program else ""
    if program in _INTERPRETERS and arguments and _EXTENSION.search(arguments[0]):
        script = arguments.pop(0)
    if script:
        yield from _references_in_script(script, arguments)
    elif program == "make" and arguments and _TARGET.match(arguments[0]):
        yield CodeReference(ReferenceKind.COMMAND, arguments[0], program="make")
    elif program in _PACKAGE_RUNNERS and arguments[:1] == ["run"] and _TARGET.match(" ".join(arguments[1:2])):
        yield CodeReference(ReferenceKind.COMMAND, arguments[1], program=f"{program} run")
    elif _PROGRAM.match(program) and not _EXTENSION.search(program):
        yield CodeReference(ReferenceKind.COMMAND, program)
    if is_alone and program not in _MAKERS:
        yield from _file_arguments(program, arguments)


def _references_in_script(script: str, arguments: list[str]) -> Iterator[CodeReference]:
    for name in _references_in_word(script):
        yield name
        for word in arguments:
            flag = _FLAG.match(word)
            if flag:
                yield CodeReference(ReferenceKind.FLAG, flag[0], program=name.text)


def _file_arguments(program: str, arguments: list[str]) -> Iterator[CodeReference]:
    """Give the files that a program is given; what follows a flag may be what it writes."""
    for before, word in zip((program, *arguments), arguments, strict=False):
        if "/" in word and not before.startswith("-") and _EXTENSION.search(word.partition(":")[0]):
            yield from _references_in_word(word)
