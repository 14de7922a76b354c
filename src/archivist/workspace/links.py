"""Decide what stands in each agent tool's own place for hot memory: a link, a copy, or a marked section.

Cursor wants front matter that says `alwaysApply`, VS Code one that says `applyTo`: a link to a plain rule
would be there and never be read, so these two get copies. Claude Code reads any markdown in its folder: a
link. Codex reads `AGENTS.md` and no other markdown, without imports: beside the documented links in `.codex`
the rules stand in a marked section of `AGENTS.md`. Gemini imports files from a marked section of `GEMINI.md`.
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


class Form(StrEnum):
    """What a place holds."""

    LINK = "link"
    COPY = "copy"
    SECTION = "section"


@dataclass(frozen=True, slots=True)
class Rule:
    """One hot file: its path from the root, with `/`, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class Place:
    """One path of a client's that should hold something; `content` is what a copy or section holds."""

    path: str
    form: Form
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
    rb"\n<!-- archivist: hot memory, (?P<origin>new file|added); do not edit (?P<digest>[0-9a-f]{16}) -->\n"
    rb"(?P<body>.*?)<!-- archivist: end of hot memory -->\n",
    re.DOTALL,
)


def places(client: Client, rules: Sequence[Rule], *, as_copies: bool = False) -> list[Place]:
    """Return everything that should stand in a client's places for these rules."""
    found: list[Place] = []
    if client in FOLDERS:
        folder, ending = FOLDERS[client]
        needs_front = client in _FRONT_MATTER
        form = Form.COPY if needs_front or as_copies else Form.LINK
        found += [
            Place(f"{folder}/{rule.name}{ending}", form, rule.path, _copied(client, rule)) for rule in rules
        ]
    if client in SECTIONS and rules:
        body = _imports(rules) if client is Client.GEMINI else _whole(rules)
        found.append(Place(SECTIONS[client], Form.SECTION, "", body))
    return found


def _copied(client: Client, rule: Rule) -> str:
    """Return a rule as a client needs it: its own front matter gives way to the client's."""
    if client not in _FRONT_MATTER:
        return rule.text
    front = _FRONT.match(rule.text)
    body = rule.text[front.end() :] if front else rule.text.removeprefix("\ufeff")
    return f"---\n{_FRONT_MATTER[client].format(name=rule.name)}---\n{body}"


def _imports(rules: Sequence[Rule]) -> str:
    return "".join(f"@./{rule.path}\n" for rule in rules)


def _whole(rules: Sequence[Rule]) -> str:
    bodies = (_FRONT.sub("", rule.text.removeprefix("\ufeff"), count=1).strip() for rule in rules)
    # A rule that spoke of its own end of the section would cut it short.
    return "".join(f"{body.replace('<!-- archivist:', '<!-- archivist :')}\n\n" for body in bodies if body)


# Copies


def marked_copy(place: Place) -> bytes:
    """Return a copy's bytes: its content with a line that says where it is from and seals it."""
    front = _FRONT.match(place.content)
    at = len(place.content[: front.end()].encode()) if front else 0
    content = place.content.encode()
    mark = f"<!-- archivist: copy of {place.source}; do not edit {_digest(content)} -->\n".encode()
    return content[:at] + mark + content[at:]


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
    return sha256(data).hexdigest()[:16]


# Sections


def with_section(data: bytes | None, body: str) -> bytes:
    """Return a file with the section put in: where it stood, else at the end; the rest stays as it is."""
    mark = _section_of(data or b"")
    origin = "new file" if data is None else "added"
    if mark is not None:
        origin = mark["origin"].decode()
    head = f"\n<!-- archivist: hot memory, {origin}; do not edit {_digest(body.encode())} -->\n"
    section = f"{head}{body}<!-- archivist: end of hot memory -->\n".encode()
    before = data or b""
    if mark is None:
        return before + section
    return before[: mark.start()] + section + before[mark.end() :]


def has_section(data: bytes) -> bool:
    """Say whether a file holds our section."""
    return _section_of(data) is not None


def is_edited_section(data: bytes) -> bool:
    """Say whether somebody changed our section of a file."""
    mark = _section_of(data)
    return mark is not None and _digest(mark["body"]) != mark["digest"].decode()


def without_section(data: bytes) -> bytes | None:
    """Return a file as it was before the section was put in; None when there was no file then."""
    mark = _section_of(data)
    if mark is None:
        return data
    rest = data[: mark.start()] + data[mark.end() :]
    return None if not rest and mark["origin"] == b"new file" else rest


def _section_of(data: bytes) -> re.Match[bytes] | None:
    return _SECTION.search(data)
