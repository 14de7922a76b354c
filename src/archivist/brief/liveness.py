"""Find what a lesson names of its project, and say in words when that is gone.

A wrong "stale" hides a good lesson, a missed one costs a line in a brief. So a name is taken only where the
lesson's own words leave no doubt: it stands in backticks or is plainly a path, and nothing in its clause says
that it is missing, replaced, or yet to be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from archivist.cold_start import lazy_pattern
from archivist.records import Lesson

_MAX_TEXT = 4000
_MAX_CODE = 200
# A clause is looked at this far around a name: denials stand close to what they deny.
_WINDOW = 60

_CODE = lazy_pattern(r"(?<!`)(`{1,2})(?!`)([^`]+)\1(?!`)")
_QUOTED = lazy_pattern(r"“[^”]{0,300}”|\"[^\"]{0,300}\"|(?<!\w)'[^']{0,300}'(?!\w)")
_BARE_PATH = lazy_pattern(
    r"(?<![\w./~@$%{<:\\*?&=#+-])(?:[\w.-]+/)+[\w.-]*\w\.[A-Za-z]\w{0,8}(?![\w/*<{>@(-])"
)
# A path, of which a line or a test may be named.
_LOCATION = lazy_pattern(r"(?P<path>(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*/?)(?:::.+|:\d[\d:-]*)?")
_EXTENSION = lazy_pattern(
    r"\w\.(?:py|pyi|js|mjs|cjs|ts|tsx|jsx|rs|go|rb|java|kt|c|h|cc|cpp|hpp|cs|php|sh|bash|ps1|toml|ya?ml|json"
    r"|cfg|ini|md|rst|txt|sql|html|css|scss|lock|mk|cmake|gradle|xml|proto|ipynb|lua|pl|swift|vue|svelte)$"
)
_PROGRAM = lazy_pattern(r"[a-z][\w.+-]{1,40}$")
_TARGET = lazy_pattern(r"[A-Za-z][\w:-]*$")
_FLAG = lazy_pattern(r"--[a-z][\w-]+")
_STEPS = lazy_pattern(r"&&|\|\||[;|]")
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*=\S*$")
# From here on a command quotes, expands or redirects, and its words are no longer plain names.
_SHELL_SYNTAX = lazy_pattern(r"['\"<>(${]")

# Folders below which nothing is the project's own, names that stand for any other, hosts and remotes.
_FOREIGN = lazy_pattern(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|\.?venv|\.git|\.tox|__pycache__|dist|build|target|\.\."
    r"|path/to|foo|bar|example|tmp)(?:/|$)|^[\w-]+\.(?:com|org|io|net|dev|in)(?:/|$)|^(?:origin|upstream)/"
)
_CLAUSE_END = lazy_pattern(r"[;:.!?](?=\s|$)|\bbut\b|\bTHEN\b|\n")
_ABSENT = (
    r"not|no|never|without|missing|lacks?|gone|absent|remov\w+|delet\w+|drop\w*|renam\w+|mov\w+|replac\w+"
    r"|creat\w+|generat\w+|writ\w+|ignored|deprecated|obsolete"
)
# Said before a name that is not there, is to go, or is yet to come.
_DENIAL_BEFORE = lazy_pattern(
    rf"(?i)\b(?:{_ABSENT}|avoid(?:ing)?|instead of|rather than|don['\u2019]t|leav\w+ out|old|former\w*"
    r"|add(?:s|ed|ing)?|produc\w+|sav\w+|into|new|install\w*|download\w*|clon\w+|unless|like|such as|example"
    r"|called|named)(?:\s+\S+){0,3}\s*$|\bto (?:a |the |file )*$"
)
_DENIAL_AFTER = lazy_pattern(rf"(?i)(?:\b(?:{_ABSENT}|made|built|looked for|used to|cannot)|n['\u2019]t)\b")
_ADVISED = lazy_pattern(r"(?i)\b(?:use|using|run|running|call|try|then|first|with|via|by)(?:\s+\w+)?\s*$")
_LISTING = lazy_pattern(r"\s*+(?:,\s*+(?:(?:and|or)\b\s*)?|(?:and|or)\b\s*)$")

_WRAPPERS = frozenset(("sudo", "env", "time", "exec", "nohup", "command"))
_RUNNERS = frozenset(("uv", "poetry", "pdm", "hatch", "pipenv", "rye"))
_INTERPRETERS = frozenset(
    ("python", "python3", "bash", "sh", "zsh", "node", "ruby", "perl", "php", "ts-node", "tsx")
)
_PACKAGE_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
# These make, move or fetch the files that they are given, so that a missing one proves nothing.
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


@dataclass(frozen=True, slots=True)
class CodeReference:
    """Something that a lesson names.

    `program` is what a flag belongs to, or what runs a command of the project (`make`, `npm run`). `beside`
    are texts listed together with this one, and `is_advised` says that the lesson tells to use it.
    """

    kind: ReferenceKind
    text: str
    program: str = ""
    beside: tuple[str, ...] = ()
    is_advised: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece of code in a text: the words up to the next piece, what it names, and whether they deny it."""

    gap: str
    names: tuple[CodeReference, ...]
    is_denied: bool


def references_in(lesson: Lesson) -> tuple[CodeReference, ...]:
    """Return what a lesson names of its project, each once, in the order of its words.

    Remedies are alternatives: what only some of them name can be gone while the lesson still helps.
    """
    texts = [_find_spans(text) for text in (lesson.summary, lesson.rule)]
    remedies = [_find_spans(text) for text in lesson.remedies]
    spans = [span for each in (*texts, *remedies) for span in each]
    # What the lesson tells to run is not denied by the call that failed: `FIX=1 node a.js`, not `node a.js`.
    advised = {
        (name.kind, name.text)
        for span in spans
        for name in span.names
        if name.is_advised and not span.is_denied
    }
    # A denied command fails, which does not deny its program.
    denied = {
        (name.kind, name.text)
        for span in spans
        for name in span.names
        if span.is_denied and (name.kind is not ReferenceKind.COMMAND or name.program)
    } - advised
    stated = [name for each in texts for name in _stated_references(each)]
    if remedies:
        keys = [{(name.kind, name.text) for name in _stated_references(each)} for each in remedies]
        shared = set.intersection(*keys)
        stated += [name for name in _stated_references(remedies[0]) if (name.kind, name.text) in shared]
    found: dict[tuple[str, str, str], CodeReference] = {}
    for name in stated:
        if (name.kind, name.text) in denied:
            continue
        key = (name.kind, name.text, name.program)
        known = found.setdefault(key, name)
        # Named twice, once in a list and once as advice: both are true of it.
        found[key] = replace(
            known,
            beside=tuple(dict.fromkeys((*known.beside, *name.beside))),
            is_advised=known.is_advised or name.is_advised,
        )
    return tuple(found.values())


def staleness_reason(names: Sequence[CodeReference], gone: Mapping[CodeReference, str]) -> str:
    """Return why a lesson that names these is stale, in words, or an empty text.

    `gone` holds those that are gone for certain, each with where a file of its name lies now. Of things that
    are listed together one that is left is enough.
    """
    texts = {name.text for name in names if name in gone}
    name = next((name for name in names if name in gone and texts.issuperset(name.beside)), None)
    if name is None:
        return ""
    if name.kind is ReferenceKind.FLAG:
        return f"`{name.program}` no longer knows `{name.text}`"
    instead = f"; there is `{gone[name]}`" if gone[name] else ""
    return f"`{f'{name.program} {name.text}'.strip()}` is gone{instead}"


def _find_spans(text: str) -> tuple[_Span, ...]:
    """Find the pieces of code in a text, and the paths that stand in it plainly."""
    if "`" not in text and "/" not in text:
        return ()
    text = text[:_MAX_TEXT]
    codes = [(found.start(), found.end(), found[2].strip(), True) for found in _CODE.finditer(text)]
    masked = _CODE.sub(lambda found: "`" * len(found[0]), text)
    unquoted = _QUOTED.sub(lambda found: " " * len(found[0]), masked)
    paths = [(found.start(), found.end(), found[0], False) for found in _BARE_PATH.finditer(unquoted)]
    pieces = sorted(codes + paths)
    starts = [start for start, *_ in pieces[1:]]
    spans = []
    for place, (start, end, code, is_code) in enumerate(pieces):
        before = _CLAUSE_END.split(masked[max(0, start - _WINDOW) : start])[-1]
        after = _CLAUSE_END.split(masked[end : end + _WINDOW])[0]
        # "THEN" ends a clause, and what stands right after it is advice.
        is_advised = bool(_ADVISED.search(before)) or masked[:start].rstrip().endswith("THEN")
        names = _references_in_code(code, is_advised) if is_code else _references_in_word(code)
        spans.append(
            _Span(
                # A full stop ends the last list.
                masked[end : starts[place]] if place < len(starts) else ".",
                tuple(replace(name, is_advised=is_advised) for name in names),
                is_denied=bool(_DENIAL_BEFORE.search(before) or _DENIAL_AFTER.search(after)),
            )
        )
    return tuple(spans)


def _stated_references(spans: Sequence[_Span]) -> Iterator[CodeReference]:
    """Give what a text names as being there, with what is listed beside it."""
    for place, span in enumerate(spans):
        if span.is_denied:
            continue
        first = last = place
        while first and _LISTING.match(spans[first - 1].gap):
            first -= 1
        while _LISTING.match(spans[last].gap):
            last += 1
        listed = spans[first : last + 1]
        is_choice = any("or" in each.gap for each in listed[:-1])
        if is_choice and not all(each.names for each in listed):
            # The other choice cannot be checked, and the lesson may still help by it.
            continue
        others = tuple(name.text for each in listed if each is not span for name in each.names)
        yield from (replace(name, beside=others) for name in span.names)


def _references_in_word(word: str) -> Iterator[CodeReference]:
    """Give the file that a word is."""
    found = _LOCATION.fullmatch(word)
    if not found or _FOREIGN.search(found["path"]):
        return
    file = found["path"].rstrip("/")
    if "/" in file.strip("/").removeprefix("./") or _EXTENSION.search(found["path"]):
        yield CodeReference(ReferenceKind.FILE, file)


def _references_in_code(code: str, is_advised: bool) -> Iterator[CodeReference]:
    """Give what a piece of code names: a path, or the programs, files and flags of a command."""
    if len(code) > _MAX_CODE or "\n" in code or "…" in code:
        return
    steps = [step.split() for step in _STEPS.split(code)]
    if any(words and words[0] in ("cd", "pushd") for words in steps):
        # What follows is meant from another folder.
        return
    if len(steps) == 1 and len(steps[0]) == 1:
        yield from _references_in_word(code)
        # One word is a program only where the lesson says to run it.
        if is_advised and _PROGRAM.match(code) and "." not in code:
            yield CodeReference(ReferenceKind.COMMAND, code)
        return
    for words in steps:
        while words and (words[0] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
            words.pop(0)
        if len(words) > 2 and words[0] in _RUNNERS and words[1] == "run":
            del words[:2]
        yield from _references_in_command(words, is_alone=len(steps) == 1)


def _find_script(arguments: list[str]) -> int | None:
    """Return which argument of an interpreter is its script; options, and a word after each, may precede."""
    for at, word in enumerate(arguments):
        if word == "-m":
            return None
        is_value = at and arguments[at - 1].startswith("-")
        if _EXTENSION.search(word) or (not is_value and "/" in word):
            return at
        if not (is_value or word.startswith("-")):
            return None
    return None


def _references_in_command(words: list[str], *, is_alone: bool) -> Iterator[CodeReference]:
    """Give what one step of a command names."""
    end = next((place for place, word in enumerate(words) if _SHELL_SYNTAX.search(word)), len(words))
    if not end:
        return
    program, arguments = words[0], words[1:end]
    script = program if "/" in program else ""
    if program in _INTERPRETERS and (at := _find_script(arguments)) is not None:
        script, arguments = arguments[at], arguments[at + 1 :]
    target = " ".join(arguments[1:2])
    if script:
        for name in _references_in_word(script):
            yield name
            flags = (_FLAG.match(word) for word in arguments)
            yield from (
                CodeReference(ReferenceKind.FLAG, flag[0], program=name.text) for flag in flags if flag
            )
    elif program == "make" and arguments and _TARGET.match(arguments[0]):
        yield CodeReference(ReferenceKind.COMMAND, arguments[0], program="make")
    elif program in _PACKAGE_RUNNERS and arguments[:1] == ["run"] and _TARGET.match(target):
        yield CodeReference(ReferenceKind.COMMAND, target, program=f"{program} run")
    elif _PROGRAM.match(program) and not _EXTENSION.search(program):
        yield CodeReference(ReferenceKind.COMMAND, program)
    if is_alone and program not in _MAKERS:
        # What follows a flag may be what the program writes.
        for before, word in zip((program, *arguments), arguments, strict=False):
            if "/" in word and not before.startswith("-") and _EXTENSION.search(word.partition(":")[0]):
                yield from _references_in_word(word)
