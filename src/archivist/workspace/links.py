"""Decide how each agent tool gets the hot files: as a link, a copy, or a marked section.

Cursor needs front matter with `alwaysApply`, VS Code with `applyTo`: they would never read a link to a plain
rule, so both get copies. Claude Code reads any markdown in its folder: a link. Codex reads `AGENTS.md` and no
other markdown, without imports: in addition to the documented links in `.codex`, the rules are in a marked
section of `AGENTS.md`. Gemini imports files from a marked section of `GEMINI.md`; when that is the same file
as `AGENTS.md`, both read one section with the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Client(StrEnum):
    """The agent tools that can load hot memory."""

    CURSOR = "cursor"
    CODEX = "codex"
    CLAUDE_CODE = "claude-code"
    GEMINI = "gemini"
    VSCODE = "vscode"


class LinkForm(StrEnum):
    """How a path holds hot memory."""

    LINK = "link"
    COPY = "copy"
    SECTION = "section"


@dataclass(frozen=True, slots=True)
class HotRule:
    """One hot file: its path relative to the root, with `/`, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """One path of a client; `content` is the text of a copy or section."""

    path: str
    form: LinkForm
    source: str
    content: str


# The folder and the ending of each client's own rule files.
FOLDERS: dict[Client, tuple[str, str]] = {
    Client.CURSOR: (".cursor/rules", ".mdc"),
    Client.CODEX: (".codex", ".md"),
    Client.CLAUDE_CODE: (".claude/rules", ".md"),
    Client.VSCODE: (".github/instructions", ".instructions.md"),
}
SECTIONS: dict[Client, str] = {Client.CODEX: "AGENTS.md", Client.GEMINI: "GEMINI.md"}
_FRONT_MATTER = {
    Client.CURSOR: "description: {name}\nalwaysApply: true\n",
    Client.VSCODE: 'applyTo: "**"\n',
}
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_COPY_MARK = re.compile(rb"<!-- archivist: copy of (?P<source>.+?); do not edit [0-9a-f]{16} -->\r?\n")
_SECTION = re.compile(
    rb"(?P<lead>\r?\n)<!-- archivist: hot memory(?: for (?P<readers>[a-z-]+(?:, [a-z-]+)*))?, "
    rb"(?P<origin>new file|added); do not edit (?P<digest>[0-9a-f]{16}) -->(?P<newline>\r?\n)"
    rb"(?P<body>.*?)<!-- archivist: end of hot memory -->\r?\n",
    re.DOTALL,
)
_LF, _CRLF = b"\n", b"\r\n"


def link_targets(
    client: Client, rules: Sequence[HotRule], *, as_copies: bool = False, is_shared: bool = False
) -> list[LinkTarget]:
    """Return everything that a client's paths should hold for these rules.

    A section for several clients contains the rules themselves, because not every client follows imports.
    """
    found: list[LinkTarget] = []
    if client in FOLDERS:
        folder, ending = FOLDERS[client]
        needs_front = client in _FRONT_MATTER
        form = LinkForm.COPY if needs_front or as_copies else LinkForm.LINK
        found += [
            LinkTarget(f"{folder}/{rule.name}{ending}", form, rule.path, _copy_text(client, rule))
            for rule in rules
        ]
    if client in SECTIONS and rules:
        imports = "".join(f"@./{rule.path}\n" for rule in rules)
        body = imports if client is Client.GEMINI and not is_shared else _inline_rules(rules)
        found.append(LinkTarget(SECTIONS[client], LinkForm.SECTION, "", body))
    return found


def _copy_text(client: Client, rule: HotRule) -> str:
    """Return a rule as a client needs it: with the client's front matter instead of its own."""
    if client not in _FRONT_MATTER:
        return rule.text
    front = _FRONT.match(rule.text)
    body = rule.text[front.end() :] if front else rule.text.removeprefix("\ufeff")
    head = f"---\n{_FRONT_MATTER[client].format(name=rule.name)}---\n"
    return (head.replace("\n", "\r\n") if _newline_of(body.encode()) == _CRLF else head) + body


def _inline_rules(rules: Sequence[HotRule]) -> str:
    bodies = (_FRONT.sub("", rule.text.removeprefix("\ufeff"), count=1).strip() for rule in rules)
    # A rule that contains the end mark would cut the section short.
    return "".join(f"{body.replace('<!-- archivist:', '<!-- archivist :')}\n\n" for body in bodies if body)


# Copies


def marked_copy(target: LinkTarget) -> bytes:
    """Return a copy's bytes: its content with a line that names its source and has a digest."""
    front = _FRONT.match(target.content)
    at = len(target.content[: front.end()].encode()) if front else 0
    content = target.content.encode()
    mark = f"<!-- archivist: copy of {target.source}; do not edit {_digest(content)} -->".encode()
    return content[:at] + mark + _newline_of(content) + content[at:]


def source_of_copy(data: bytes) -> str | None:
    """Return the source of a copy, or None when a file is not a copy of ours."""
    mark = _COPY_MARK.search(data)
    return mark["source"].decode("utf-8", "replace") if mark else None


def is_edited_copy(data: bytes) -> bool:
    """Say whether a copy was edited since it was made."""
    mark = _COPY_MARK.search(data)
    if mark is None:
        return True
    return _digest(data[: mark.start()] + data[mark.end() :]) not in mark.group().decode("utf-8", "replace")


def _digest(data: bytes) -> str:
    # A checkout may change the line ends of an unedited file.
    return sha256(data.replace(_CRLF, _LF)).hexdigest()[:16]


def _newline_of(data: bytes) -> bytes:
    """Return the line end that most lines of a file have."""
    return _CRLF if 2 * data.count(_CRLF) > data.count(_LF) else _LF


# Sections


def with_section(data: bytes | None, body: str, reader: str) -> bytes:
    """Return a file with the section: in its old place, else at the end; the rest stays as it is.

    The mark of the section lists its readers, and this one is added.
    """
    mark = _SECTION.search(data or b"")
    before, after, newline = data or b"", b"", _newline_of(data or b"")
    origin = "new file" if data is None else "added"
    if mark is not None and data is not None:
        before, after = _split_around(data, mark)
        newline = _newline_of(before + after) if _LF in before + after else mark["newline"]
        origin = mark["origin"].decode()
    lines = body.encode().replace(_CRLF, _LF).replace(_LF, newline)
    names = sorted({reader, *section_readers(data or b"")})
    return before + _section(lines, names, origin, newline) + after


def _section(lines: bytes, names: Sequence[str], origin: str, newline: bytes) -> bytes:
    head = f"<!-- archivist: hot memory for {', '.join(names)}, {origin}; do not edit {_digest(lines)} -->"
    end = b"<!-- archivist: end of hot memory -->"
    return newline + head.encode() + newline + lines + end + newline


def _split_around(data: bytes, mark: re.Match[bytes]) -> tuple[bytes, bytes]:
    """Return the bytes before and after the section; a carriage return before it may be the file's own."""
    start = mark.end("lead") - len(mark["newline"]) if mark["newline"] == _LF else mark.start()
    return data[:start], data[mark.end() :]


def has_section(data: bytes) -> bool:
    """Say whether a file contains our section."""
    return _SECTION.search(data) is not None


def section_lines(data: bytes) -> tuple[int, int]:
    """Return the first line of the section, from 1, and its number of lines; 1 and 0 without one."""
    mark = _SECTION.search(data)
    if mark is None:
        return 1, 0
    return data.count(_LF, 0, mark.end("lead")) + 1, mark.group().count(_LF) - 1


def section_readers(data: bytes) -> tuple[str, ...]:
    """Return the clients that the section of a file names."""
    mark = _SECTION.search(data)
    return tuple(mark["readers"].decode().split(", ")) if mark and mark["readers"] else ()


def is_read_by(data: bytes, reader: str) -> bool:
    """Say whether a file contains our section for a client; a section without names is for all."""
    return has_section(data) and reader in (section_readers(data) or (reader,))


def is_edited_section(data: bytes) -> bool:
    """Say whether our section of a file was edited."""
    mark = _SECTION.search(data)
    return mark is not None and _digest(mark["body"]) != mark["digest"].decode()


def without_section(data: bytes, reader: str = "") -> bytes | None:
    """Return a file as it was before the section was added; None when there was no file then.

    The section stays while other clients than the reader use it.
    """
    mark = _SECTION.search(data)
    if mark is None:
        return data
    before, after = _split_around(data, mark)
    left = [name for name in section_readers(data) if name != reader]
    if reader and left:
        newline = mark["newline"]
        return before + _section(mark["body"], left, mark["origin"].decode(), newline) + after
    # Text added behind the section must not join the line before it.
    is_open = bool(before and after) and not before.endswith(_LF)
    rest = before + (mark["newline"] if is_open else b"") + after
    return None if not rest and mark["origin"] == b"new file" else rest
