"""Split a shell command line into its simple commands, never raising, in one pass.

Not a shell: it knows quotes, here-documents, substitutions, redirections and operators, which is what
telling one program from the next needs, and takes the rest as words.
"""

from typing import NamedTuple

from archivist.cold_start import lazy_pattern

# Nothing useful stands beyond this in a command line, and it bounds the work.
LONGEST_COMMAND = 100_000

_PLAIN = lazy_pattern(r"[^\s'\"\\$`|&;<>()#]+")
_BLANK = lazy_pattern(r"(?:[ \t\r\f\v]|\\\r?\n)+")
_OPERATOR = lazy_pattern(r"&&|\|\||\|&|;;|[|;&\n]")
_REDIRECT = lazy_pattern(r"(?:&>>?|\d?(?:<<<|<<-?|>>|>\||<>|[<>]))(?:&\d?-?)?")
_HERE_WORD = lazy_pattern(r"[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|\\?([^\s;|&<>()'\"]+))")
_BRACKET = lazy_pattern(r"[()'\"`\\]")
_DOUBLE_STOP = lazy_pattern(r"[\"\\]")
_ESCAPED = lazy_pattern(r"\\([\"\\$`])")


class Word(NamedTuple):
    """One word of a command as written, and as the program receives it."""

    raw: str
    value: str


class Redirect(NamedTuple):
    """One redirection: the operator with its descriptor, and where it leads."""

    operator: str
    target: str = ""

    @property
    def is_to_file(self) -> bool:
        """Say whether it writes a file that is kept."""
        return ">" in self.operator and "&" not in self.operator[1:] and not self.target.startswith("/dev/")


class SimpleCommand:
    """One simple command: the operator before it, its words, redirections and here-document bodies."""

    __slots__ = ("bodies", "end", "operator", "redirects", "start", "words")

    def __init__(self, operator: str = "", start: int = 0, end: int = 0) -> None:
        self.operator = operator
        self.start = start
        self.end = end
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.bodies: list[str] = []


def split_command(command: str) -> list[SimpleCommand]:
    """Return the simple commands of a command line, in order."""
    return _Scanner(command[:LONGEST_COMMAND]).run()


class _Scanner:
    """Walk over the text once; every step moves forward, so that the time is linear."""

    __slots__ = ("at", "current", "found", "pending", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.current = SimpleCommand()
        self.found: list[SimpleCommand] = []
        self.pending: list[tuple[SimpleCommand, str]] = []

    def run(self) -> list[SimpleCommand]:
        while self.at < len(self.text):
            char = self.text[self.at]
            blank = _BLANK.match(self.text, self.at)
            if blank:
                self.at = blank.end()
            elif char == "#":
                self.at = self._find("\n")
            elif char in "()":
                self._end_command("" if char == "(" else ";")
                self.at += 1
            elif char in "<>&0123456789" and self._read_redirect():
                pass
            elif char in "|&;\n":
                self._read_operator()
            else:
                self._append_word()
        self._end_command("")
        return self.found

    def _find(self, what: str) -> int:
        at = self.text.find(what, self.at)
        return len(self.text) if at < 0 else at

    def _end_command(self, operator: str) -> None:
        if self.current.words or self.current.redirects:
            self.found.append(self.current)
            self.current = SimpleCommand(operator=operator, start=self.at)
        elif operator:
            self.current.operator = operator

    def _read_operator(self) -> None:
        match = _OPERATOR.match(self.text, self.at)
        token = match.group() if match else self.text[self.at]
        self._end_command({"\n": ";", ";;": ";", "|&": "|"}.get(token, token))
        self.at += len(token)
        if token == "\n":  # noqa: S105 -- a token of the shell's grammar
            self._read_bodies()

    def _read_bodies(self) -> None:
        for owner, mark in self.pending:
            start = self.at
            end = self._find_mark(mark)
            owner.bodies.append(self.text[start:end])
        self.pending.clear()

    def _find_mark(self, mark: str) -> int:
        """Move behind the line that is the mark alone, and return where that line starts."""
        at = self.text.find(mark, self.at)
        while at >= 0:
            line = self.text.rfind("\n", self.at, at) + 1 or self.at
            stop = self.text.find("\n", at)
            stop = len(self.text) if stop < 0 else stop
            if not self.text[line:at].strip("\t") and not self.text[at + len(mark) : stop].strip():
                self.at = min(stop + 1, len(self.text))
                return line
            at = self.text.find(mark, stop)
        self.at = len(self.text)
        return self.at

    def _read_redirect(self) -> bool:
        match = _REDIRECT.match(self.text, self.at)
        if not match:
            return False
        operator, at = match.group(), self.at
        if operator.endswith("<") and self.text[match.end() : match.end() + 1] == "(":
            return False
        self.at = match.end()
        if "<<" in operator and "<<<" not in operator:
            here = _HERE_WORD.match(self.text, self.at)
            if not here:
                return True
            self.at = here.end()
            mark = next(group for group in here.groups() if group is not None)
            self.pending.append((self.current, mark))
            self.current.redirects.append(Redirect("<<", mark))
        elif "&" in operator[1:]:
            self.current.redirects.append(Redirect(operator))
        else:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            target = self._read_word()
            self.current.redirects.append(Redirect(operator, target.value))
        self.current.end = self.at
        return self.at > at

    def _append_word(self) -> None:
        if not self.current.words and not self.current.redirects:
            self.current.start = self.at
        word = self._read_word()
        if word.raw:
            self.current.words.append(word)
        else:
            self.at += 1
        self.current.end = self.at

    def _read_word(self) -> Word:
        start, parts = self.at, []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n\f\v|&;()" or (char in "<>" and self.text[self.at + 1 : self.at + 2] != "("):
                break
            parts.append(self._read_part(char))
        return Word(self.text[start : self.at], "".join(parts))

    def _read_part(self, char: str) -> str:
        start = self.at
        if char == "'":
            self.at += 1
            end = self._find("'")
            self.at = min(end + 1, len(self.text))
            return self.text[start + 1 : end]
        if char == '"':
            return self._read_double_quoted()
        if char == "\\":
            self.at = min(start + 2, len(self.text))
            return self.text[start + 1 : self.at].replace("\n", "")
        if char == "`":
            self.at += 1
            self.at = min(self._find("`") + 1, len(self.text))
        elif char in "$<>" and self.text[start + 1 : start + 2] == "(":
            self._skip_nested()
        else:
            plain = _PLAIN.match(self.text, self.at)
            self.at = plain.end() if plain else self.at + 1
        return self.text[start : self.at]

    def _read_double_quoted(self) -> str:
        start = self.at + 1
        self.at = start
        while match := _DOUBLE_STOP.search(self.text, self.at):
            self.at = match.end()
            if match.group() == '"':
                return _ESCAPED.sub(r"\1", self.text[start : self.at - 1])
            self.at = min(self.at + 1, len(self.text))
        self.at = len(self.text)
        return self.text[start:]

    def _skip_nested(self) -> None:
        depth, quote = 0, ""
        while match := _BRACKET.search(self.text, self.at):
            self.at = match.end()
            char = match.group()
            if char == "\\" and quote != "'":
                self.at = min(self.at + 1, len(self.text))
            elif char in "'\"`":
                quote = "" if quote == char else (quote or char)
            elif not quote:
                depth += 1 if char == "(" else -1
                if depth == 0:
                    return
        self.at = len(self.text)
