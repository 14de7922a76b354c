"""Read what a lesson asks for, what it warns about, and what it is about, as far as calls can show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from archivist.reading import programs
from archivist.reading.commands import step_purpose
from archivist.reading.failures import is_shell
from archivist.reading.packages import installs, is_install, package_name
from archivist.reading.rules import FailureKind
from archivist.reading.shell import Step, parse
from archivist.records import Lesson

_PLACEHOLDER = re.compile(r"<\w+>")
# Flags that change what is printed and not what is done. Leaving them out is following all the same.
_OUTPUT_FLAGS = frozenset([
    "-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-y", "--quiet", "--verbose", "--silent", "--no-header",
    "--yes",
])  # fmt: skip
_INSTALL_FLAGS = frozenset([
    "-U", "--pre", "--force-reinstall", "--no-deps", "--legacy-peer-deps", "--no-build-isolation",
    "--break-system-packages",
])  # fmt: skip
SOURCE = "source"
# Steps that leave everything as it was.
_IDLE = frozenset([
    "echo", "printf", "true", ":", "sleep", "wait", "clear", "pwd", "exit", "return", "local", "set", "shopt",
])  # fmt: skip
_VERSIONED = re.compile(r"[a-z]+\d+(?:\.\d+)+$")
_RULE = re.compile(r"\A(?>.*?\bIF\b)(?P<occasion>.*?)\bTHEN\b(?P<action>.*)", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_CHANGE = re.compile(r"\bchang(?:e|ing) `([^`\n]+)` to `([^`\n]+)`")
# A lesson is a sentence: only the words around a command tell the right one from the wrong one.
_REJECTED_BEFORE = re.compile(
    r"(?:\bnot|\binstead of|\brather than|\bnever|\bdon't|\bavoid|\bno longer|\bwithout"
    r"|\bleave out|\bdrop|\bomit|\bremove)"
    r"(?: (?:use|run|call|add|using|running|calling|set))?(?: the)? ?$",
    re.IGNORECASE,
)
_REJECTED_AFTER = re.compile(
    r" (?:fails|keeps failing|does not|is not|asks|timed out|is missing|was killed|refuses|finds faults)\b"
)
# Advice whose condition is the failure itself can be followed only after the failure.
_REACTING = re.compile(r"\bfails\b|\brefuses\b|\btimed out\b", re.IGNORECASE)
_PREPARING = re.compile(r"\bfirst `|`[^`\n]+` (?:first|before)\b", re.IGNORECASE)
_PATH = re.compile(
    r"[\w.@~+-]*(?:/[\w.@+-]+)+/?"
    r"|[\w.-]+\.(?:py|pyi|js|mjs|cjs|jsx|ts|tsx|json|toml|ya?ml|cfg|ini|txt|md|rst|sh|rs|go|java|kt|c|h|cc|cpp"
    r"|hpp|cs|rb|php|sql|html|css|lock|env|gradle|xml|ipynb)"
)
# Signs of a command in text that is not set as code.
_FLAGS = re.compile(r"-{1,2}\w|[A-Z_][A-Z0-9_]*=\S*$")
_SHELL_MARK = re.compile(r"(?:^|\s)-{1,2}\w|&&|\||(?:^|\s)[A-Z_][A-Z0-9_]*=|<\w+>")
_SETTING = re.compile(r"[A-Z_][A-Z0-9_]*=")
_PROGRAM = re.compile(r"\.|(?:\.{0,2}/)?[a-z][\w./+-]*")
_ARGUMENT = re.compile(r"[\w./~+@%:,-]+|['\"$<].*")
# A text with one of these words is a sentence.
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
# Words that begin sentences or lines of code, but no command.
_NO_PROGRAMS = frozenset([
    "edit", "open", "find", "test", "time", "sort", "make", "type", "date", "file", "view", "info", "help",
    "read", "head", "task",
    "use", "add", "set", "check", "run", "rerun", "write", "give", "keep", "avoid", "prefer", "put", "call",
    "install", "start", "restart", "commit", "stash", "upgrade", "update", "retry", "wait", "try", "ask",
    "plan", "settle", "remove", "drop", "omit", "leave", "change", "changing", "do", "never", "always", "no",
    "not", "writing", "reading", "split", "rename", "import", "const", "let", "var", "def", "class", "return",
    "raise", "assert", "async", "await", "public", "new", "function", "fn", "type",
])  # fmt: skip
# Programs that run a language: a lesson about the language concerns all of them.
LANGUAGE_PROGRAMS = {
    "python": ("python", "pytest", "unittest", "tox", "nox"),
    "node": ("node", "npm", "npx", "yarn", "pnpm", "bun", "jest", "vitest", "tsx", "ts-node"),
}
# Shorter names and tags occur in any call by chance.
_SHORTEST_WORD = 3
# Signatures that name no failure: a wish, a habit, a costly run.
_NO_FAILURE = ("wish:", "verification:", "flaky:", "thrashing:", "outlier:")


@dataclass(frozen=True, slots=True)
class CommandAction:
    """One step of a command line: its purpose whatever its arguments, its name as written, its words.

    `packages` are what an installing step installs, `repeated` the arguments that stand there twice.
    """

    purpose: str
    program: str = ""
    name: str = ""
    words: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()

    @property
    def is_preparing(self) -> bool:
        """Say whether it only prepares for what follows: changes the folder, sets or removes something."""
        return self.program in programs.PREPARATIONS or not self.purpose

    def includes(self, wanted: CommandAction) -> bool:
        """Say whether doing this is doing what is wanted, apart from packages."""
        return (
            wanted.repeated <= self.repeated
            and wanted.purpose in (self.purpose, "")
            and all(
                word in self.words or any(own.endswith(f"/{word}") for own in self.words)
                for word in wanted.words
            )
        )


def command_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a command line does, without printing, waiting and filtering of output."""
    return tuple(
        _step_action(step)
        for step in parse(command)
        if not step.is_filter and (step.is_writing or step.program not in _IDLE)
    )


def advised_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a lesson's command asks for, without its placeholders."""
    found = []
    # A shell would read `<file>` as redirections, so placeholders are replaced by a mark first.
    for action in command_actions(_PLACEHOLDER.sub("…", command)):
        words = frozenset(word for word in action.words if "…" not in word)
        packages = frozenset(package for package in action.packages if "…" not in package)
        if action.purpose or _are_settings(words):
            found.append(replace(action, words=words, packages=packages))
    return tuple(found)


def distinguish_action(wanted: CommandAction, unwanted: Iterable[CommandAction]) -> CommandAction:
    """Return a wanted action by the words that the one it replaces lacks, else by its important words."""
    replaced = [action for action in unwanted if action.purpose == wanted.purpose]
    gained = wanted.words.difference(*(action.words for action in replaced)) if replaced else frozenset()
    if _are_settings(gained):
        # A variable may be set in one call and used in another.
        return CommandAction("", name=wanted.name, words=gained)
    return replace(wanted, words=gained or wanted.words - _OUTPUT_FLAGS)


def _are_settings(words: frozenset[str]) -> bool:
    return bool(words) and all(_SETTING.match(word) for word in words)


def _step_action(step: Step) -> CommandAction:
    purpose = SOURCE if step.program == "." else step_purpose(step)
    packages: frozenset[str] = frozenset()
    if is_install(step):
        (install,) = installs((step,))
        for package in install.packages:
            # A requested version is part of the advice; an extra of the project itself is not.
            bare = package.replace(" ", "").lower().replace("_", "-")
            name = bare if re.search(r"[<>=!~]", bare) else package_name(package)
            packages |= {"." if package.startswith(".") else name}
        words = frozenset(install.flags) & _INSTALL_FLAGS
    else:
        written = (*step.flags, *step.arguments, *step.assignments)
        words = frozenset(map(_spell_word, written)) | frozenset(step.wrappers)
        # Another version of an interpreter is another program.
        first = step.words[0].value.rsplit("/", 1)[-1] if step.words else ""
        words |= {first} if _VERSIONED.match(first) else set()
    program = purpose.split(" ")[0] if purpose in programs.TEST_RUNNERS else step.program
    repeated = frozenset(word for word, count in Counter(step.arguments).items() if count > 1)
    return CommandAction(purpose, program, step.name, words, packages, repeated)


def _spell_word(word: str) -> str:
    return word.strip("'\"").removeprefix("./").rstrip("/") or "."


@dataclass(frozen=True, slots=True)
class AdvisedRemedy:
    """One way to follow a lesson: all of these actions, or a path that is named, or one text for another."""

    actions: tuple[CommandAction, ...] = ()
    text: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a lesson says that can be checked.

    Doing any of `wanted` is following it, doing any of `unwanted` is not. A lesson that wants nothing only
    says which calls are `failing`: to make them in another way is following it. It is about `purposes`,
    programs with their subcommands, and `words`, files and names. `is_reaction` says that the advice is for
    when the failure has come, `is_preparation` that it is a step before what it is about.
    """

    wanted: tuple[AdvisedRemedy, ...] = ()
    unwanted: tuple[CommandAction, ...] = ()
    failing: tuple[CommandAction, ...] = ()
    purposes: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    is_reaction: bool = False
    is_preparation: bool = False


@dataclass(frozen=True, slots=True)
class _CodePiece:
    """A text in backticks: the words before it may reject it, the words after it may call it wrong."""

    text: str
    is_rejected: bool
    is_failing: bool


def read_advice(lesson: Lesson) -> Advice:
    """Return what a lesson says that can be checked."""
    rule = _RULE.search(lesson.rule)
    occasion, action = (rule["occasion"], rule["action"]) if rule else ("", lesson.rule)
    advised, said, about = (list(_code_pieces(text)) for text in (action, lesson.summary, occasion))
    unwanted = _actions_in(piece.text for piece in (*advised, *said) if piece.is_rejected)
    occasions = _actions_in(piece.text for piece in (*about, *said) if piece.is_failing or piece in about)
    wanted = (
        _recorded_remedies(lesson.remedies)
        or _advised_remedies(advised, with_paths=True)
        or _advised_remedies(said, with_paths=False)
    )
    variants = {found.purpose for remedy in wanted for found in remedy.actions}
    same = {found for remedy in wanted for found in remedy.actions}.intersection(occasions)
    if same and (names := [text for text in lesson.remedies if text.split() == [text]]):
        # What differs only in the name, such as `python3`, is known by it.
        wanted = tuple(AdvisedRemedy(text=name) for name in names)
    unwanted += tuple(found for found in occasions if found.purpose in variants and found not in unwanted)
    texts = {piece.text.strip() for piece in (*advised, *said, *about)} | set(map(str.strip, lesson.remedies))
    purposes = _purposes(lesson, (*unwanted, *occasions), wanted)
    is_install = any(found.packages for remedy in wanted for found in remedy.actions)
    is_step = is_install or bool(_PREPARING.search(f"{lesson.summary}\n{action}"))
    return Advice(
        wanted=tuple(
            replace(remedy, actions=tuple(distinguish_action(found, unwanted) for found in remedy.actions))
            for remedy in wanted
        ),
        unwanted=unwanted,
        # What a placeholder stands for is not known, so that no call can be told from it.
        failing=occasions if not wanted and not any(map(_PLACEHOLDER.search, texts)) else (),
        purposes=purposes,
        words=frozenset(filter(None, map(_name, texts))),
        is_reaction=bool(_REACTING.search(occasion)),
        # A habit that is about nothing else is its own occasion.
        is_preparation=is_step and not purposes <= variants,
    )


def failure_family(lesson: Lesson) -> str:
    """Return the failure that a lesson's signature names, whatever the project; empty when it names none."""
    family = lesson.signature.split("|", 1)[-1]
    # That a provider struggles with a purpose shows in many attempts, not in one failure.
    is_quirk = bool(lesson.provider) and family.startswith("provider:")
    return "" if is_quirk or lesson.is_acquittal or family.startswith(_NO_FAILURE) else family


def _code_pieces(text: str) -> Iterator[_CodePiece]:
    """Yield the texts in backticks, and whether the words around them speak against them."""
    for found in _CODE.finditer(text):
        before, after = text[max(0, found.start() - 40) : found.start()], text[found.end() :]
        is_rejected, is_failing = _REJECTED_BEFORE.search(before), _REJECTED_AFTER.match(after)
        yield _CodePiece(found[1].strip(), bool(is_rejected), bool(is_failing))


def _actions_in(texts: Iterable[str]) -> tuple[CommandAction, ...]:
    """Return what commands are for, or what they prepare if that is all they do."""
    found: dict[CommandAction, None] = {}
    for text in texts:
        if _is_command(text, is_code=True):
            actions = advised_actions(text)
            working = [action for action in actions if not action.is_preparing]
            found |= dict.fromkeys(working or actions)
    return tuple(found)


def _recorded_remedies(remedies: tuple[str, ...]) -> tuple[AdvisedRemedy, ...]:
    """Read remedies as they are recorded: a command, a path, a change, or words with code in them."""
    found: list[AdvisedRemedy] = []
    for text in remedies:
        if changed := _CHANGE.search(text):
            found.append(AdvisedRemedy(text=changed[2], instead=changed[1]))
        elif "`" in text:
            found += _advised_remedies(list(_code_pieces(text)), with_paths=True)
        elif _PATH.fullmatch(text):
            found.append(AdvisedRemedy(text=text))
        elif _is_command(text, is_code=False) and (actions := advised_actions(text)):
            found.append(AdvisedRemedy(actions))
    return tuple(found)


def _advised_remedies(pieces: list[_CodePiece], *, with_paths: bool) -> tuple[AdvisedRemedy, ...]:
    """Return the commands and paths that pieces ask for, else their flags and settings, of any command."""
    found, flags = [], []
    for text in (piece.text for piece in pieces if not piece.is_rejected and not piece.is_failing):
        if with_paths and _PATH.fullmatch(text):
            found.append(AdvisedRemedy(text=text))
        elif _is_command(text, is_code=True) and (actions := advised_actions(text)):
            found.append(AdvisedRemedy(actions))
        elif _FLAGS.match(text):
            words = frozenset(map(_spell_word, text.split()))
            flags.append(AdvisedRemedy((CommandAction("", words=words),)))
    return tuple(found or flags)


def _is_command(text: str, *, is_code: bool) -> bool:
    """Say whether a text is a command. One that is not set as code must not read like a sentence."""
    words = text.split()
    if not words or "\n" in text or words[0].startswith("-") or _PATH.fullmatch(text):
        return False
    first = words[0].rsplit("/", 1)[-1].rstrip("0123456789.")
    # A program that nobody knows is still one if it and its arguments look the part.
    is_runnable = (
        len(words) > 1
        and bool(_PROGRAM.fullmatch(words[0]))
        and words[0] not in _NO_PROGRAMS
        and all(_ARGUMENT.fullmatch(word) for word in words[1:])
    )
    is_program = first in _PROGRAMS or bool(_SETTING.match(words[0])) or is_runnable
    if is_code:
        return is_program or (len(words) > 1 and bool(_SHELL_MARK.search(text)))
    return _FUNCTION_WORDS.isdisjoint(words) and (is_program or bool(_SHELL_MARK.search(text)))


def _purposes(
    lesson: Lesson, occasions: tuple[CommandAction, ...], wanted: tuple[AdvisedRemedy, ...]
) -> frozenset[str]:
    """Return the programs that a lesson is about: those it speaks against, else all that it names."""
    if occasions:
        return frozenset(action.purpose for action in occasions)
    found = {action.purpose for remedy in wanted for action in remedy.actions if not action.is_preparing}
    kind, _, rest = failure_family(lesson).partition(":")
    # Any program may look for a file.
    if kind != FailureKind.MISSING_FILE:
        found |= {"" if is_shell(lesson.tool) else lesson.tool, rest.split(":")[0]}
    return frozenset(found - programs.SHELLS - {""})


def _name(text: str) -> str:
    """Return the file or name that a text is, or an empty text for a command."""
    if _PATH.fullmatch(text):
        return text.removeprefix("./").rstrip("/")
    is_name = re.fullmatch(r"[\w.@/-]+(?:\(\))?", text) and not text.startswith("-")
    return text if is_name and len(text) >= _SHORTEST_WORD and text not in _PROGRAMS else ""
