"""Read a shell command line as steps, one program call each. Never raises, in one pass over the text.

This is no shell: it knows quotes, here-documents, substitutions, redirections and operators, which is enough
to tell one program call from the next, and takes the rest as words.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading import programs

# Bounds the work: no program call that matters stands beyond this in a command line.
LONGEST_COMMAND = 100_000
# Rules compare the steps of calls with each other; nobody writes a line of more, but a log may hold one.
MOST_STEPS = 60
# Bounds the recursion into `bash -c` within `bash -c`.
_DEEPEST_SHELL = 3

# A redirection to a process substitution is part of a word.
_TOKEN = lazy_pattern(
    r"(?:[ \t\r\f\v]|\\\r?\n)*+(?:(?P<plain>[^\s'\"\\$`|&;<>()#]+)(?=[ \n;|)]|\Z)"
    r"|(?P<operator>&&|\|\||\|&|;;|&(?!>)|[|;\n()])|(?P<comment>#[^\n]*)"
    r"|(?P<redirect>(?:&>>?|\d?(?:<<<|<<-?|>>|>\||<>|>|<(?!\()))(?:&\d?-?)?)|(?P<word>(?=.)))",
    re.DOTALL,
)
_JOINED = {"\n": ";", ";;": ";", "|&": "|", "(": "", ")": ";"}
_PART = lazy_pattern(
    r"(?P<plain>[^\s'\"\\$`|&;<>()#]+)|'(?P<single>[^']*)(?:'|\Z)|\\(?P<escaped>.?)"
    r"|(?P<quote>\")|(?P<nested>[$<>]\()"
    r"|(?P<other>`[^`]*(?:`|\Z)|[^ \t\r\n\f\v|&;()<>])",
    re.DOTALL,
)
_IN_QUOTES = lazy_pattern(r"(?:[^\"\\$]+|\\.?|\$(?!\())*+", re.DOTALL)
_BLANK = lazy_pattern(r"(?:[ \t\r\f\v]|\\\r?\n)*")
_HERE_WORD = lazy_pattern(r"[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([^\s;|&<>()'\"]+))")
_BRACKET = lazy_pattern(r"[()'\"`\\]|(?<!<)<<-?[ \t]{0,4}['\"]?(?P<mark>[A-Za-z_]\w{0,40})['\"]?")
_ESCAPED = lazy_pattern(r"\\([\"\\$`])")
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*\+?=")
_VERSIONED = lazy_pattern(r"(python|pip|node|ruby|perl|php|gcc|clang|lua)(?:w?[\d.]+)(?:\.exe)?$")
_NUMBER = lazy_pattern(r"-?\d+(?:\.\d+)?[smhd]?$")
# `git -C dir`, `npm --prefix dir`, `kubectl -n space`: the value of the flag is no subcommand.
_VALUED_FLAGS = frozenset((
    "-C", "-c", "--prefix", "-n", "--namespace", "--manifest-path", "-f", "--file", "--cwd", "--filter", "-F",
    "--dir", "--workspace", "--context", "--profile", "--region", "--project", "--directory", "-pl", "-p",
    "--project-name", "--kubeconfig", "--env-file", "-R", "--repo",
))  # fmt: skip
# A program that lies in the project, without the ending of a script that anybody may have written for once.
_OWN_PROGRAM = lazy_pattern(r"\./(?:(?:scripts?|bin|tools?)/)?[\w-]+|(?:scripts?|bin|tools?)/[\w-]+")
# A program that node runs by its file is the program that a runner finds by its name.
_INSTALLED_FILE = lazy_pattern(
    r"(?!\S{0,400}\.\.)(?:[\w@.+-]{1,80}/){0,12}node_modules/(?:@[\w.-]{1,60}/)?(?P<package>[\w.-]{1,60})/"
    r"(?:[\w.-]{1,60}/){0,6}_?(?P<name>[\w-]{1,60})(?:\.[cm]?js)?"
)
_NAMELESS_FILES = frozenset(("bin", "cli", "cmd", "index", "main", "run"))
TASK_WORD = lazy_pattern(r"[a-z][a-z-]{1,19}")
# A function's body runs when it is called, if ever.
_DEFINES = lazy_pattern(r"[\w-]\s?\(\)\s?\{")
# Operators next to a step that may not have run, or whose status is lost.
_BRANCHES = frozenset(("||", "&"))
# Words that begin a branch, a loop or its end, turn a status round, or end the line before its end.
_CONTROLS = frozenset((
    "!", "if", "then", "elif", "else", "while", "until", "for", "select", "case", "do", "function", "coproc",
    "exit", "return", "break", "continue", "trap", "exec",
))  # fmt: skip


class Word(NamedTuple):
    """One word of a command as written, and as the program receives it."""

    raw: str
    value: str


class Redirect(NamedTuple):
    """One redirection: the operator with its descriptor, and its target."""

    operator: str
    target: str = ""

    @property
    def is_to_file(self) -> bool:
        """Say whether it writes a file that stays."""
        return ">" in self.operator and "&" not in self.operator[1:] and not self.target.startswith("/dev/")


class Step(NamedTuple):
    """One program call of a command line.

    `operator` is what stands before it. `is_filter` says that it only filters the output of the step before,
    `is_unsure` that a line that ended well does not show that all its steps ran and ended well.
    """

    text: str
    operator: str = ""
    assignments: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()
    program: str = ""
    subcommand: str = ""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    bodies: tuple[str, ...] = ()
    is_filter: bool = False
    is_unsure: bool = False

    @property
    def name(self) -> str:
        """Return the program with its subcommand."""
        return f"{self.program} {self.subcommand}".rstrip()

    @property
    def values(self) -> list[str]:
        """Return its words as programs receive them, with variables that are set and wrappers."""
        return [word.value for word in self.words]

    @property
    def called_values(self) -> list[str]:
        """Return its words from the first program on, without variables that are set for it."""
        return self.values[len(self.assignments) :]

    @property
    def is_writing(self) -> bool:
        """Say whether its output goes to a file that stays."""
        return any(redirect.is_to_file for redirect in self.redirects)


class ProjectStep(NamedTuple):
    """A step of a call that tests, lints, builds or starts the project, as other runs can use it, and where.

    `worked` says whether it could run, None if the call does not tell. `chosen` are the tests that its words
    choose.
    """

    purpose: str
    command: str
    folder: str = ""
    worked: bool | None = None
    chosen: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def parse(command: str) -> tuple[Step, ...]:
    """Return the steps of a command line in order. Never raises."""
    steps = _parse(command, 0)
    is_unsure = any(step.is_unsure for step in steps) or _DEFINES.search(command) is not None
    return tuple(step._replace(is_unsure=True) for step in steps) if is_unsure else tuple(steps)


def _parse(command: str, depth: int) -> list[Step]:
    steps: list[Step] = []
    for simple in _Scanner(command[:LONGEST_COMMAND]).run():
        step = _make_step(simple, command)
        is_script = (
            depth < _DEEPEST_SHELL
            and step.program in programs.SHELLS
            and any(re.fullmatch(r"-[a-z]*c", flag) for flag in step.flags)
        )
        if is_script and "".join(step.arguments[:1]):
            # The script of `bash -c '...'` is read in its place.
            nested = _parse(step.arguments[0], depth + 1)
            if nested:
                first = nested[0]
                is_unsure = step.is_unsure or first.is_unsure
                steps += [first._replace(operator=step.operator, is_unsure=is_unsure), *nested[1:]]
        elif step.program or step.assignments or step.redirects:
            steps.append(step)
    return steps


class _SimpleCommand:
    """One simple command: the operators before and after it, its words, redirections and here-documents."""

    __slots__ = ("after", "bodies", "end", "operator", "redirects", "start", "words")

    def __init__(self, operator: str = "", start: int = 0) -> None:
        self.operator = operator
        self.after = ""
        self.start = start
        self.end = 0
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.bodies: list[str] = []


class _Scanner:
    """Walk over the text once. Every step moves forward, so the time is linear."""

    __slots__ = ("at", "current", "found", "is_open", "pending", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.is_open = False
        self.current = _SimpleCommand()
        self.found: list[_SimpleCommand] = []
        self.pending: list[tuple[_SimpleCommand, str]] = []

    def run(self) -> list[_SimpleCommand]:
        while token := _TOKEN.match(self.text, self.at):
            kind, symbol, self.at = token.lastgroup, token[token.lastindex or 0], token.end()
            if kind in ("plain", "word"):
                if not self.current.words and not self.current.redirects:
                    self.current.start = self.at - len(symbol)
                self.current.words.append(Word(symbol, symbol) if symbol else self._read_word())
                self.current.end = self.at
            elif kind == "redirect":
                self._read_redirect(symbol)
            elif kind == "operator":
                self._end_command(_JOINED.get(symbol, symbol), self.at - len(symbol))
                if symbol == "\n":
                    self._read_bodies()
        self._end_command("", self.at)
        return self.found

    def _end_command(self, operator: str, at: int) -> None:
        if self.current.words or self.current.redirects:
            self.current.after = operator
            self.found.append(self.current)
            self.current = _SimpleCommand(operator, at)
        elif operator:
            self.current.operator = operator

    def _read_bodies(self) -> None:
        """Read the here-documents that the line announced: each ends with a line that is its mark alone."""
        for owner, mark in self.pending:
            last = re.compile(rf"^\t*{re.escape(mark)}[^\S\n]*(?:\n|\Z)", re.MULTILINE)
            end = last.search(self.text, self.at)
            owner.bodies.append(self.text[self.at : end.start() if end else len(self.text)])
            self.at = end.end() if end else len(self.text)
        self.pending.clear()

    def _read_redirect(self, operator: str) -> None:
        if "<<" in operator and "<<<" not in operator:
            here = _HERE_WORD.match(self.text, self.at)
            if not here:
                return
            self.at = here.end()
            mark = next(group for group in here.groups() if group is not None)
            self.pending.append((self.current, mark))
            self.current.redirects.append(Redirect("<<", mark))
        elif "&" in operator[1:]:
            self.current.redirects.append(Redirect(operator))
        else:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            self.current.redirects.append(Redirect(operator, self._read_word().value))
        self.current.end = self.at

    def _read_word(self) -> Word:
        """Read a word part by part, quoted or not, each also as the program receives it."""
        start, values = self.at, []
        while part := _PART.match(self.text, self.at):
            kind, value, self.at = part.lastgroup, part[part.lastindex or 0], part.end()
            if kind == "nested":
                self.at = part.start()
                self._skip_nested()
                value = self.text[part.start() : self.at]
            elif kind == "quote":
                value = self._read_quoted()
            elif kind == "escaped" and value == "\n":
                value = ""
            values.append(value)
        return Word(self.text[start : self.at], "".join(values))

    def _read_quoted(self) -> str:
        """Read up to the closing double quote; a substitution in it has quotes of its own."""
        values: list[str] = []
        while part := _IN_QUOTES.match(self.text, self.at):
            values.append(_ESCAPED.sub(r"\1", part[0]))
            self.at = part.end()
            if self.text[self.at : self.at + 1] != "$":
                self.at = min(self.at + 1, len(self.text))
                break
            start = self.at
            self._skip_nested()
            values.append(self.text[start : self.at])
        return "".join(values)

    def _skip_nested(self) -> None:
        """Move behind a substitution `$(...)`, whose brackets may be nested, quoted or in a here-document."""
        depth, quote = 0, ""
        while match := _BRACKET.search(self.text, self.at):
            self.at = match.end()
            char = match.group()
            if match["mark"]:
                # Without its end it is none; looking for more of them would take too long.
                mark = rf"\n\t*{match['mark']}(?=\s|\)|\Z)"
                end = None if quote or self.is_open else re.compile(mark).search(self.text, self.at)
                self.is_open = self.is_open or not (quote or end)
                self.at = end.end() if end else self.at
            elif char == "\\" and quote != "'":
                self.at = min(self.at + 1, len(self.text))
            elif char in "'\"`":
                quote = "" if quote == char else (quote or char)
            elif not quote:
                depth += 1 if char == "(" else -1
                if depth == 0:
                    return
        self.at = len(self.text)


def _make_step(simple: _SimpleCommand, command: str) -> Step:
    words = simple.words
    start = 0
    while start < len(words) and words[start].raw in programs.KEYWORDS:
        start += 1
    assigned = start
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned].raw):
        assigned += 1
    wrappers, at = _unwrap(words, assigned)
    program, rest = _program_base(words[at].value) if at < len(words) else "", words[at + 1 :]
    for index, word in enumerate(rest[:5] if program == "python" else ()):
        if word.value == "-m" and index + 1 < len(rest):
            module = rest[index + 1].value
            # pip is the same program by either name.
            program, rest = "pip" if module == "pip" else f"python -m {module}", rest[index + 2 :]
            break
        if not word.value.startswith("-"):
            break
    subcommand, taken = _subcommand(program, rest)
    if at < len(words) and rest and not subcommand and _OWN_PROGRAM.fullmatch(words[at].value):
        # A project's own program is mostly asked for one of its tasks.
        subcommand = rest[0].value if TASK_WORD.fullmatch(rest[0].value) else ""
        taken = frozenset((0,)) if subcommand else taken
    rest = [word for index, word in enumerate(rest) if index not in taken]
    return Step(
        text=command[simple.start : simple.end].strip(),
        operator=simple.operator,
        assignments=tuple(word.raw for word in words[start:assigned]),
        wrappers=tuple(wrappers),
        program=program,
        subcommand=subcommand,
        flags=tuple(word.value for word in rest if word.value.startswith("-") and len(word.value) > 1),
        arguments=tuple(word.value for word in rest if not word.value.startswith("-") or word.value == "-"),
        words=tuple(words[start:]),
        redirects=tuple(simple.redirects),
        bodies=tuple(simple.bodies),
        is_filter=simple.operator == "|" and program in programs.FILTERS,
        is_unsure=not _BRANCHES.isdisjoint((simple.operator, simple.after))
        or any(word.raw in _CONTROLS for word in words[: assigned + 1]),
    )


def _unwrap(words: list[Word], at: int) -> tuple[list[str], int]:
    """Return the wrappers before the program, such as `sudo` or `uv run`, and where the program stands."""
    wrappers: list[str] = []
    while at < len(words):
        name = _program_base(words[at].value)
        runner = programs.RUNNERS.get(name, {})
        second = words[at + 1].value if at + 1 < len(words) else ""
        if second in runner:
            label, valued, after = f"{name} {second}", runner[second], at + 2
        elif name in programs.WRAPPERS:
            label, valued, after = name, programs.WRAPPERS[name], at + 1
        elif name == "node" and installed_program(second):
            label, valued, after = name, frozenset(), at + 1
        else:
            break
        while after < len(words):
            value = words[after].value
            if value in valued:
                after += 2
            elif (
                (name in programs.VERSION_MANAGERS and "@" in value)
                or value.startswith("-")
                or _NUMBER.match(value)
                or _ASSIGNMENT.match(words[after].raw)
            ):
                after += 1
            else:
                break
        if after >= len(words):
            break
        wrappers.append(label)
        at = after
    return wrappers, at


def installed_program(path: str) -> str:
    """Return the program that a file of an installed package is, whatever its version; else nothing."""
    found = _INSTALLED_FILE.fullmatch(path) if "node_modules/" in path else None
    return (found["package"] if found["name"] in _NAMELESS_FILES else found["name"]) if found else ""


def _program_base(name: str) -> str:
    if program := installed_program(name):
        return program
    base = name.rstrip("/").rsplit("/", 1)[-1] if "/" in name else name
    # `corepack pnpm@9` and `npx pnpm@9` run pnpm.
    base = base.partition("@")[0] or base
    versioned = _VERSIONED.match(base)
    return versioned.group(1) if versioned else base


def _subcommand(program: str, rest: list[Word]) -> tuple[str, frozenset[int]]:
    """Return the subcommand and the indexes of the words that name it."""
    if program in ("python", "node", "ruby", "perl", "sed"):
        for index, word in enumerate(rest[:4]):
            if word.value in ("-c", "-e", "-i", "-n", "-") or word.value.startswith("-i."):
                return "-i" if word.value.startswith("-i") else word.value, frozenset((index,))
            if not word.value.startswith("-"):
                break
        return "", frozenset()
    if program not in programs.SUBCOMMANDED:
        return "", frozenset()
    names: list[str] = []
    taken: set[int] = set()
    is_flag_value = False
    for index, word in enumerate(rest):
        value = word.value
        if is_flag_value or value.startswith(("-", "+")):
            is_flag_value = not is_flag_value and value in _VALUED_FLAGS
            continue
        if not re.fullmatch(r"[\w:.@-]{1,40}", value):
            break
        names.append(value)
        taken.add(index)
        if len(names) == 2 or value not in programs.NESTED.get(program, frozenset()):
            break
    return " ".join(names), frozenset(taken)
