"""Decide what stands in each agent tool's own place for hot memory: a link, a copy, or a marked section.

Cursor wants front matter that says `alwaysApply`, VS Code one that says `applyTo`: a link to a plain rule
would be there and never be read, so these two get copies. Claude Code reads any markdown in its folder: a
link. Codex reads `AGENTS.md` and no other markdown, without imports: beside the documented links in `.codex`
the rules stand in a marked section of `AGENTS.md`. Gemini imports files from a marked section of `GEMINI.md`;
where that is the same file as `AGENTS.md`, both read one section that holds the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Client(StrEnum):
    """The agent tools that hot memory is linked into."""

    CURSOR = "cursor"
    CODEX = "codex"
    CLAUDE_CODE = "claude-code"
    GEMINI = "gemini"
    VSCODE = "vscode"


class LinkForm(StrEnum):
    """What a place holds."""

    LINK = "link"
    COPY = "copy"
    SECTION = "section"


@dataclass(frozen=True, slots=True)
class HotRule:
    """One hot file: its path from the root, with `/`, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """One path of a client's that should hold something; `content` is what a copy or section holds."""

    path: str
    form: LinkForm
    source: str
    content: str


# The folder and the ending of each client's own rule files, and the front matter that they need there.
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
    """Return everything that should stand in a client's places for these rules.

    A section of a file that other clients read too holds the rules themselves, which all of them can read.
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
        body = _import_lines(rules) if client is Client.GEMINI and not is_shared else _inline_rules(rules)
        found.append(LinkTarget(SECTIONS[client], LinkForm.SECTION, "", body))
    return found


def _copy_text(client: Client, rule: HotRule) -> str:
    """Return a rule as a client needs it: its own front matter gives way to the client's."""
    if client not in _FRONT_MATTER:
        return rule.text
    front = _FRONT.match(rule.text)
    body = rule.text[front.end() :] if front else rule.text.removeprefix("\ufeff")
    head = f"---\n{_FRONT_MATTER[client].format(name=rule.name)}---\n"
    return (head.replace("\n", "\r\n") if _newline_of(body.encode()) == _CRLF else head) + body


def _import_lines(rules: Sequence[HotRule]) -> str:
    return "".join(f"@./{rule.path}\n" for rule in rules)


def _inline_rules(rules: Sequence[HotRule]) -> str:
    bodies = (_FRONT.sub("", rule.text.removeprefix("\ufeff"), count=1).strip() for rule in rules)
    # A rule that spoke of its own end of the section would cut it short.
    return "".join(f"{body.replace('<!-- archivist:', '<!-- archivist :')}\n\n" for body in bodies if body)


# Copies


def marked_copy(place: LinkTarget) -> bytes:
    """Return a copy's bytes: its content with a line that says where it is from and seals it."""
    front = _FRONT.match(place.content)
    at = len(place.content[: front.end()].encode()) if front else 0
    content = place.content.encode()
    mark = f"<!-- archivist: copy of {place.source}; do not edit {_digest(content)} -->".encode()
    return content[:at] + mark + _newline_of(content) + content[at:]


def source_of_copy(data: bytes) -> str | None:
    """Return where a copy is from, or None when a file is no copy of ours."""
    mark = _COPY_MARK.search(data)
    return mark["source"].decode("utf-8", "replace") if mark else None


def is_edited_copy(data: bytes) -> bool:
    """Say whether somebody changed a copy since it was made."""
    mark = _COPY_MARK.search(data)
    if mark is None:
        return True
    return _digest(data[: mark.start()] + data[mark.end() :]) not in mark.group().decode("utf-8", "replace")


def _digest(data: bytes) -> str:
    # A checkout may change the line ends of a file that nobody edited.
    return sha256(data.replace(_CRLF, _LF)).hexdigest()[:16]


def _newline_of(data: bytes) -> bytes:
    """Return how most lines of a file end."""
    return _CRLF if 2 * data.count(_CRLF) > data.count(_LF) else _LF


# Sections


def with_section(data: bytes | None, body: str, reader: str) -> bytes:
    """Return a file with the section put in: where it stood, else at the end; the rest stays as it is.

    Who reads it stands in its mark, beside those who did before.
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
    """Return what stands before and behind the section; a carriage return before it may be the file's own."""
    start = mark.end("lead") - len(mark["newline"]) if mark["newline"] == _LF else mark.start()
    return data[:start], data[mark.end() :]


def has_section(data: bytes) -> bool:
    """Say whether a file holds our section."""
    return _SECTION.search(data) is not None


def section_lines(data: bytes) -> tuple[int, int]:
    """Return the first line of the section, from 1, and how many lines it takes; 1 and 0 without one."""
    mark = _SECTION.search(data)
    if mark is None:
        return 1, 0
    return data.count(_LF, 0, mark.end("lead")) + 1, mark.group().count(_LF) - 1


def section_readers(data: bytes) -> tuple[str, ...]:
    """Return the clients that the section of a file is for; none when it names none."""
    mark = _SECTION.search(data)
    return tuple(mark["readers"].decode().split(", ")) if mark and mark["readers"] else ()


def is_read_by(data: bytes, reader: str) -> bool:
    """Say whether a file holds our section for a client; one that names nobody is for all."""
    return has_section(data) and reader in (section_readers(data) or (reader,))


def is_edited_section(data: bytes) -> bool:
    """Say whether somebody changed our section of a file."""
    mark = _SECTION.search(data)
    return mark is not None and _digest(mark["body"]) != mark["digest"].decode()


def without_section(data: bytes, reader: str = "") -> bytes | None:
    """Return a file as it was before the section was put in; None when there was no file then.

    Where others than the reader use the section too, it stays for those.
    """
    mark = _SECTION.search(data)
    if mark is None:
        return data
    before, after = _split_around(data, mark)
    left = [name for name in section_readers(data) if name != reader]
    if reader and left:
        newline = mark["newline"]
        return before + _section(mark["body"], left, mark["origin"].decode(), newline) + after
    # What was written behind the section must not join the line before it.
    is_open = bool(before and after) and not before.endswith(_LF)
    rest = before + (mark["newline"] if is_open else b"") + after
    return None if not rest and mark["origin"] == b"new file" else rest
