"""Read a lesson: what it asks for, what it warns of, and what it is about, as far as calls can show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from archivist.audit.actions import CommandAction, advised_actions, distinguish_action, split_word
from archivist.reading import programs
from archivist.reading.failures import is_shell
from archivist.reading.rules import FailureKind
from archivist.records import Lesson

_RULE = re.compile(r"\bIF\b(?P<occasion>.*?)\bTHEN\b(?P<deed>.*)", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_CHANGE = re.compile(r"\bchang(?:e|ing) `([^`\n]+)` to `([^`\n]+)`")
_REFUSED_BEFORE = re.compile(
    r"(?:\bnot|\binstead of|\brather than|\bnever|\bdon't|\bavoid|\bno longer|\bwithout)"
    r"(?: (?:use|run|call|add|using|running|calling|set))?(?: the)? ?$",
    re.IGNORECASE,
)
_REFUSED_AFTER = re.compile(
    r" (?:fails|keeps failing|does not|is not|asks|timed out|is missing|was killed|refuses)\b"
)
_LEFT_OUT = re.compile(r"\b(?:leave out|drop|omit|remove) ?$", re.IGNORECASE)
_REACTING = re.compile(r"\bfails\b|\brefuses\b|\btimed out\b", re.IGNORECASE)
_PATH = re.compile(
    r"[\w.@~+-]*(?:/[\w.@+-]+)+/?"
    r"|[\w.-]+\.(?:py|pyi|js|mjs|cjs|jsx|ts|tsx|json|toml|ya?ml|cfg|ini|txt|md|rst|sh|rs|go|java|kt|c|h|cc|cpp"
    r"|hpp|cs|rb|php|sql|html|css|lock|env|gradle|xml|ipynb)"
)
_FLAGS = re.compile(r"-{1,2}\w|[A-Z_][A-Z0-9_]*=\S*$")
_SHELL_MARK = re.compile(r"(?:^|\s)-{1,2}\w|&&|\||(?:^|\s)[A-Z_][A-Z0-9_]*=|<\w+>")
_SETTING = re.compile(r"[A-Z_][A-Z0-9_]*=")
_PROGRAM = re.compile(r"\.|(?:\.{0,2}/)?[a-z][\w./+-]*")
_ARGUMENT = re.compile(r"[\w./~+@%:,-]+|['\"$<].*")
_FUNCTION_WORDS = frozenset([
    "the", "a", "an", "it", "its", "or", "and", "then", "again", "first", "before", "after", "of", "to", "in",
    "with", "for", "that", "this", "when", "is", "are", "be", "sure", "your", "you", "them", "each", "every",
    "only", "from", "by", "as", "at", "on",
])  # fmt: skip
_PROGRAMS = (
    programs.SUBCOMMANDED
    | programs.LOOKS
    | programs.LINTERS
    | frozenset(programs.WRAPPERS)
    | frozenset(programs.RUNNERS)
    | frozenset(programs.SCRIPTED)
    | frozenset(name for name in programs.TEST_RUNNERS if " " not in name)
)
# Names of programs that begin sentences too.
_VERBS = frozenset([
    "edit", "open", "find", "test", "time", "sort", "make", "type", "date", "file", "view", "info", "help",
    "read", "head", "task",
])  # fmt: skip
# Words that begin sentences, or lines of code, and no command.
_SPEECH = _VERBS | frozenset([
    "use", "add", "set", "check", "run", "rerun", "write", "give", "keep", "avoid", "prefer", "put", "call",
    "install", "start", "restart", "commit", "stash", "upgrade", "update", "retry", "wait", "try", "ask",
    "plan", "settle", "remove", "drop", "omit", "leave", "change", "changing", "do", "never", "always", "no",
    "not", "writing", "reading", "split", "rename", "import", "const", "let", "var", "def", "class", "return",
    "raise", "assert", "async", "await", "public", "new", "function", "fn", "type",
])  # fmt: skip
# Whoever runs these runs the language whose failure a lesson is about.
KIN = {
    "python": ("python", "pytest", "unittest", "tox", "nox"),
    "node": ("node", "npm", "npx", "yarn", "pnpm", "bun", "jest", "vitest", "tsx", "ts-node"),
}
_SHORTEST_WORD = 3
# Signatures that name no failure: a wish, a habit, a run that was dear.
_NO_FAILURE = ("wish:", "verification:", "flaky:", "thrashing:", "outlier:")

_COMFORTS = frozenset(["flaky", "not-your-bug"])


@dataclass(frozen=True, slots=True)
class AdvisedRemedy:
    """One way of heeding a lesson: all of these deeds done, or a path named, or one text put for another."""

    deeds: tuple[CommandAction, ...] = ()
    text: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a lesson says that can be checked.

    Any of `wanted` is heeding it, any of `unwanted` is not. It is about `purposes`, the programs with
    their subcommands, and `words`, files and names; `tags` serve when it names neither. `is_reaction` says
    that the advice is for when the failure has come.
    """

    wanted: tuple[AdvisedRemedy, ...] = ()
    unwanted: tuple[CommandAction, ...] = ()
    purposes: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    is_reaction: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    is_refused: bool
    is_flawed: bool


def read_advice(lesson: Lesson) -> Advice:
    """Return what a lesson says that can be checked."""
    rule = _RULE.search(lesson.rule)
    occasion, deed = (rule["occasion"], rule["deed"]) if rule else ("", lesson.rule)
    advised, said, about = (
        list(_code_pieces(deed)),
        list(_code_pieces(lesson.summary)),
        list(_code_pieces(occasion)),
    )
    refused = [piece.text for piece in (*advised, *said) if piece.is_refused]
    replaced = [piece.text for piece in (*about, *said) if piece.is_flawed or piece in about]
    unwanted = _actions_in(refused)
    occasions = _actions_in(replaced)
    wanted = (
        _remedies_from_texts(lesson.remedies)
        or _remedies_from_pieces(advised, with_paths=True)
        or _remedies_from_pieces(said, with_paths=False)
    )
    wanted = tuple(_working_part(remedy, (*unwanted, *occasions)) for remedy in wanted)
    wanted = _bind_flags(
        (*wanted, *_remedies_from_flags(advised)), tuple(dict.fromkeys(each.purpose for each in occasions))
    )
    variants = {each.purpose for remedy in wanted for each in remedy.deeds}
    unwanted += tuple(each for each in occasions if each.purpose in variants and each not in unwanted)
    named = {piece.text for piece in (*advised, *said, *about)}
    return Advice(
        wanted=tuple(
            replace(remedy, deeds=tuple(distinguish_action(each, unwanted) for each in remedy.deeds))
            for remedy in wanted
        ),
        unwanted=unwanted,
        purposes=_purposes(lesson, (*unwanted, *occasions), wanted),
        words=frozenset(word for text in (*named, *lesson.remedies) if (word := _name(text))),
        tags=frozenset(tag.lower() for tag in lesson.tags if len(tag) >= _SHORTEST_WORD),
        is_reaction=bool(_REACTING.search(occasion)),
    )


def failure_family(lesson: Lesson) -> str:
    """Return the failure that a lesson's signature names, whatever the project; empty when it names none."""
    family = lesson.signature.split("|", 1)[-1]
    # A provider that struggles with a purpose is told by attempts, not by one failure.
    is_quirk = bool(lesson.provider) and family.startswith("provider:")
    # What says only how to take a failure cannot keep it away.
    is_comfort = not _COMFORTS.isdisjoint(lesson.tags)
    return "" if is_quirk or is_comfort or family.startswith(_NO_FAILURE) else family


def _code_pieces(text: str) -> Iterator[_Piece]:
    """Yield what stands in backticks, and whether the words around speak against it."""
    for found in _CODE.finditer(text):
        before, after = text[max(0, found.start() - 40) : found.start()], text[found.end() :]
        piece, is_left_out = found[1].strip(), bool(_LEFT_OUT.search(before))
        # Words to be left out of a command are no command themselves; what holds them is named beside.
        if not (is_left_out and (" " in piece or piece.startswith("-"))):
            is_refused = is_left_out or bool(_REFUSED_BEFORE.search(before))
            yield _Piece(piece, is_refused, bool(_REFUSED_AFTER.match(after)))


def _actions_in(texts: list[str]) -> tuple[CommandAction, ...]:
    found = (
        deed
        for text in texts
        if _is_command(text, is_code=True)
        for deed in _working_actions(advised_actions(text))
    )
    return tuple(dict.fromkeys(found))


def _working_actions(found: tuple[CommandAction, ...]) -> tuple[CommandAction, ...]:
    """Return what a command is for, or what it makes ready where that is all it does."""
    return tuple(deed for deed in found if not deed.is_preparing) or found


def _working_part(remedy: AdvisedRemedy, replaced: tuple[CommandAction, ...]) -> AdvisedRemedy:
    """Return a remedy by what it is for; by what it makes ready where the rest is what failed without it."""
    working = tuple(deed for deed in remedy.deeds if not deed.is_preparing)
    is_more = any(deed not in replaced for deed in working)
    return replace(remedy, deeds=working) if is_more or working == remedy.deeds else _preparing_part(remedy)


def _preparing_part(remedy: AdvisedRemedy) -> AdvisedRemedy:
    return replace(remedy, deeds=tuple(deed for deed in remedy.deeds if deed.is_preparing))


def _remedies_from_texts(remedies: tuple[str, ...]) -> tuple[AdvisedRemedy, ...]:
    """Read remedies as they are recorded: a command, a path, a change, or words with code in them."""
    found: list[AdvisedRemedy] = []
    for text in remedies:
        changed = _CHANGE.search(text)
        if changed:
            found.append(AdvisedRemedy(text=changed[2], instead=changed[1]))
        elif "`" in text:
            found += _remedies_from_pieces(list(_code_pieces(text)), with_paths=True)
        elif _PATH.fullmatch(text):
            found.append(AdvisedRemedy(text=text))
        elif _is_command(text, is_code=False) and (deeds := advised_actions(text)):
            found.append(AdvisedRemedy(deeds))
    return tuple(found)


def _remedies_from_pieces(pieces: list[_Piece], *, with_paths: bool) -> tuple[AdvisedRemedy, ...]:
    found: list[AdvisedRemedy] = []
    for piece in pieces:
        if piece.is_refused or piece.is_flawed:
            continue
        if with_paths and _PATH.fullmatch(piece.text):
            found.append(AdvisedRemedy(text=piece.text))
        elif _is_command(piece.text, is_code=True) and (deeds := advised_actions(piece.text)):
            found.append(AdvisedRemedy(deeds))
    return tuple(found) or _remedies_from_flags(pieces)


def _remedies_from_flags(pieces: list[_Piece]) -> tuple[AdvisedRemedy, ...]:
    """Return the flags and settings that pieces ask for, of whatever command."""
    return tuple(
        AdvisedRemedy((CommandAction("", words=words, size=len(words)),))
        for piece in pieces
        if not piece.is_refused
        and _FLAGS.match(piece.text)
        and (words := frozenset(part for word in piece.text.split() for part in split_word(word)))
    )


def _bind_flags(wanted: tuple[AdvisedRemedy, ...], purposes: tuple[str, ...]) -> tuple[AdvisedRemedy, ...]:
    """Return remedies of which bare flags are those of the commands that a lesson is about, where it says."""
    found: dict[AdvisedRemedy, None] = {}
    for remedy in wanted:
        is_open = any(not deed.purpose for deed in remedy.deeds)
        is_bound = is_open and not all(deed.is_setting for deed in remedy.deeds)
        for purpose in purposes if is_bound and purposes else ("",):
            deeds = tuple(replace(deed, purpose=deed.purpose or purpose) for deed in remedy.deeds)
            found[replace(remedy, deeds=deeds)] = None
    return tuple(found)


def _is_command(text: str, *, is_code: bool) -> bool:
    """Say whether a text is a command; what is not set off as code must not read like a sentence."""
    words = text.split()
    if not words or "\n" in text or words[0].startswith("-") or _PATH.fullmatch(text):
        return False
    first = re.sub(r"[\d.]+$", "", words[0].rsplit("/", 1)[-1])
    is_program = first in _PROGRAMS or bool(_SETTING.match(words[0])) or _looks_runnable(words)
    if is_code:
        return is_program or (len(words) > 1 and bool(_SHELL_MARK.search(text)))
    if _FUNCTION_WORDS.intersection(words) or (first in _VERBS and not _SHELL_MARK.search(text)):
        return first == "make" and len(words) == 2
    return is_program or bool(_SHELL_MARK.search(text))


def _looks_runnable(words: list[str]) -> bool:
    """Say whether words can be a program with its arguments, though nobody knows the program."""
    first, *rest = words
    return (
        bool(rest)
        and bool(_PROGRAM.fullmatch(first))
        and first not in _SPEECH
        and _FUNCTION_WORDS.isdisjoint(words)
        and all(_ARGUMENT.fullmatch(word) for word in rest)
    )


def _purposes(
    lesson: Lesson, occasions: tuple[CommandAction, ...], wanted: tuple[AdvisedRemedy, ...]
) -> frozenset[str]:
    """Return the programs that a lesson is about: those it speaks against, else all that it names."""
    if occasions:
        return frozenset(each.purpose for each in occasions)
    found = {each.purpose for remedy in wanted for each in remedy.deeds if not each.is_preparing}
    kind, _, rest = failure_family(lesson).partition(":")
    # A file is looked for by any program.
    if kind != FailureKind.MISSING_FILE:
        found |= {"" if is_shell(lesson.tool) else lesson.tool, rest.split(":")[0]}
    return frozenset(found - programs.SHELLS - {""})


def _name(text: str) -> str:
    """Return a file or name that a lesson speaks of, or nothing when the text is a command."""
    text = text.strip()
    if _PATH.fullmatch(text):
        return text.removeprefix("./").rstrip("/")
    is_name = re.fullmatch(r"[\w.@/-]+(?:\(\))?", text) and not text.startswith("-")
    return text if is_name and len(text) >= _SHORTEST_WORD and text not in _PROGRAMS else ""
