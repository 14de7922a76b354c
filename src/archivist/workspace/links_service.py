"""Put hot memory into the folders and files of agent tools as links, copies or sections, and remove it.

Nothing that a person wrote is overwritten: a file without our mark, an edited copy or section, and a link to
another place are left and reported.

Cursor needs front matter with `alwaysApply`, VS Code with `applyTo`: they would never read a link to a plain
rule, so both get copies. Claude Code reads any markdown in its folder: a link. Codex reads `AGENTS.md` and no
other markdown, without imports: in addition to the documented links in `.codex`, the rules are in a marked
section of `AGENTS.md`. Gemini imports files from a marked section of `GEMINI.md`; when that is the same file
as `AGENTS.md`, both read one section with the rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from archivist.errors import InputError
from archivist.files.open import read_if_any, real_path, refuse_way_out
from archivist.files.write import make_folder, refuse_links, replace_file, replace_if_unchanged
from archivist.text import replace_surrogates
from archivist.workspace.front_matter import FENCED
from archivist.workspace.skill_files import CLIENT_FOLDERS, SKILLS

if TYPE_CHECKING:
    from archivist.workspace.skills_service import Skill


class Client(StrEnum):
    """The agent tools that can load hot memory."""

    CURSOR = "cursor"
    CODEX = "codex"
    CLAUDE_CODE = "claude-code"
    GEMINI = "gemini"
    VSCODE = "vscode"


@dataclass(frozen=True, slots=True)
class HotRule:
    """One hot file: its path relative to the root, with `/`, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


# A folder, which is a skill, is linked and never copied.
Form = Literal["link", "copy", "section", "folder"]


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """One path of a client; `content` is the text of a copy or section."""

    path: str
    form: Form
    source: str
    content: str


# The folder and the ending of each client's own rule files.
FOLDERS: dict[Client, tuple[str, str]] = {
    Client.CURSOR: (".cursor/rules", ".mdc"),
    Client.CODEX: (".codex", ".md"),
    Client.CLAUDE_CODE: (".claude/rules", ".md"),
    Client.VSCODE: (".github/instructions", ".instructions.md"),
}
# The folder of commands, such as save-memory, and where clients keep those of a project, if they have any.
COMMANDS = "agent/commands/common"
COMMAND_FOLDERS: dict[Client, tuple[str, str]] = {
    Client.CURSOR: (".cursor/commands", ".md"),
    Client.CLAUDE_CODE: (".claude/commands", ".md"),
    Client.VSCODE: (".github/prompts", ".prompt.md"),
}
# The first folder that each client has for skills.
_SKILL_FOLDERS = {Client(name): (folder, "") for folder, name in reversed(CLIENT_FOLDERS.items())}
# A client is in use where one of these is in the root.
_TRACES: dict[Client, tuple[str, ...]] = {
    Client.CURSOR: (".cursor", ".cursorrules"),
    Client.CODEX: (".codex", "AGENTS.md"),
    Client.CLAUDE_CODE: (".claude", "CLAUDE.md"),
    Client.GEMINI: (".gemini", "GEMINI.md"),
    Client.VSCODE: (".vscode", ".github/instructions", ".github/copilot-instructions.md"),
}
SECTIONS: dict[Client, str] = {Client.CODEX: "AGENTS.md", Client.GEMINI: "GEMINI.md"}
_FRONT_MATTER = {
    Client.CURSOR: "description: {name}\nalwaysApply: true\n",
    Client.VSCODE: 'applyTo: "**"\n',
}
_COPY_MARK = re.compile(rb"<!-- archivist: copy of (?P<source>.{1,1024}?); do not edit [0-9a-f]{16} -->\r?\n")
_SECTION = re.compile(
    rb"(?P<lead>\r?\n)<!-- archivist: hot memory(?: for (?P<readers>[a-z-]+(?:, [a-z-]+)*))?, "
    rb"(?P<origin>new file|added); do not edit (?P<digest>[0-9a-f]{16}) -->(?P<newline>\r?\n)"
    rb"(?P<body>[^<]*+(?:<(?!!-- archivist: (?:end of )?hot memory)[^<]*+)*)"
    rb"<!-- archivist: end of hot memory -->\r?\n"
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
        is_copy = as_copies or client in _FRONT_MATTER
        for rule in rules:
            path = f"{folder}/{rule.name}{ending}"
            found.append(LinkTarget(path, "copy" if is_copy else "link", rule.path, _copy_text(client, rule)))
    if client in SECTIONS and rules:
        imports = "".join(f"@./{rule.path}\n" for rule in rules)
        bodies = (FENCED.sub("", rule.text).removeprefix("\ufeff").strip() for rule in rules)
        # A rule that contains the end mark would cut the section short.
        safe = (body.replace("<!-- archivist:", "<!-- archivist :") for body in bodies if body)
        inlined = "".join(f"{body}\n\n" for body in safe)
        body = imports if client is Client.GEMINI and not is_shared else inlined
        found.append(LinkTarget(SECTIONS[client], "section", "", body))
    return found


def _copy_text(client: Client, rule: HotRule) -> str:
    """Return a rule as a client needs it: with the client's front matter instead of its own."""
    if client not in _FRONT_MATTER:
        return rule.text
    front = FENCED.match(rule.text)
    body = rule.text[front.end() :] if front else rule.text.removeprefix("\ufeff")
    head = f"---\n{_FRONT_MATTER[client].format(name=rule.name)}---\n"
    return (head.replace("\n", "\r\n") if _newline_of(body.encode()) == _CRLF else head) + body


def marked_copy(target: LinkTarget) -> bytes:
    """Return a copy's bytes: its content with a line that names its source and has a digest."""
    front = FENCED.match(target.content)
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


class HotSection(NamedTuple):
    """Our section of a file and the bytes around it; without readers it is for all clients."""

    before: bytes
    body: bytes
    after: bytes
    readers: tuple[str, ...]
    origin: str
    newline: bytes
    is_edited: bool = False

    def is_read_by(self, client: str) -> bool:
        """Say whether the section is for a client."""
        return not self.readers or client in self.readers

    @property
    def whole(self) -> bytes:
        """Return the bytes of the file."""
        names = ", ".join(self.readers)
        head = f"<!-- archivist: hot memory for {names}, {self.origin}; do not edit {_digest(self.body)} -->"
        lines = head.encode() + self.newline + self.body + b"<!-- archivist: end of hot memory -->"
        return self.before + self.newline + lines + self.newline + self.after


def find_section(data: bytes | None) -> HotSection | None:
    """Return our section of a file."""
    mark = _SECTION.search(data or b"")
    if data is None or mark is None:
        return None
    # A carriage return before the section may be the file's own.
    start = mark.end("lead") - 1 if mark["newline"] == _LF else mark.start()
    readers = tuple(mark["readers"].decode().split(", ")) if mark["readers"] else ()
    is_edited = _digest(mark["body"]) != mark["digest"].decode()
    around = (data[:start], mark["body"], data[mark.end() :])
    return HotSection(*around, readers, mark["origin"].decode(), mark["newline"], is_edited)


def with_section(data: bytes | None, body: str, reader: str) -> bytes:
    """Return a file with the section: in its old place, else at the end; the rest stays as it is.

    The mark of the section lists its readers, and this one is added.
    """
    origin = "new file" if data is None else "added"
    old = find_section(data) or HotSection(data or b"", b"", b"", (), origin, _newline_of(data or b""))
    around = old.before + old.after
    newline = _newline_of(around) if _LF in around else old.newline
    lines = body.encode().replace(_CRLF, _LF).replace(_LF, newline)
    return old._replace(body=lines, readers=tuple(sorted({reader, *old.readers})), newline=newline).whole


def blank_section(data: bytes) -> bytes:
    """Return a file with blank lines in place of the section, so that other lines keep their numbers."""
    return _SECTION.sub(lambda mark: _LF * mark.group().count(_LF), data)


def without_section(data: bytes, reader: str = "") -> bytes | None:
    """Return a file as it was before the section was added; None when there was no file then.

    The section stays while other clients than the reader use it.
    """
    section = find_section(data)
    if section is None:
        return data
    if reader and (left := tuple(name for name in section.readers if name != reader)):
        return section._replace(readers=left).whole
    # Text added behind the section must not join the line before it.
    is_open = bool(section.before and section.after) and not section.before.endswith(_LF)
    rest = section.before + (section.newline if is_open else b"") + section.after
    return None if not rest and section.origin == "new file" else rest


class LinkStatus(StrEnum):
    """What happened to a path."""

    MADE = "made"
    REFRESHED = "refreshed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    LEFT = "left"


class LinkResult(NamedTuple):
    """One path of a client and what was done there; `told` is the form, or the reason."""

    client: Client
    path: str
    done: LinkStatus
    told: str = ""


# What it means that a second `link` would do something at a path.
_DRIFT = {
    LinkStatus.MADE: "a hot file is not linked there",
    LinkStatus.REFRESHED: "older than the hot files",
    LinkStatus.REMOVED: "its hot file is gone",
}
_USERS = "there is a file of yours"
_USERS_SKILL = "there is a skill of yours"
_EDITED = "edited since it was made: move your change to {source}, then delete this file"
_OUTSIDE = "a link that leaves the workspace"
_EDITED_SECTION = "the section was edited: move your change to the hot files, then delete the section"
# A note in a client's folder lists the folders and links that `link` made: only those are removed again.
# A megabyte of headings takes five seconds and 200 MB to be read as Markdown.
_LARGEST_RULES = 100_000
_NOTE = ".made-by-archivist"
_NOTE_TITLE = "Made for links of Archivist, which `archivist workspace unlink` takes away again:"
_NOTED_LINK = "link: "


def find_way_out(root: Path, path: Path) -> str:
    """Return the problem with a file that lies outside of the root, by a link; empty for any other."""
    if not real_path(path).is_relative_to(real_path(root)):
        return "leaves-root: the link leaves the root"
    try:
        refuse_way_out(path)
    except InputError as error:
        return error.message
    return ""


def read_rules(root: Path, folder: str) -> tuple[list[HotRule], list[str]]:
    """Return the hot files of a folder in order, and a problem for each that cannot be read."""
    rules: list[HotRule] = []
    problems: list[str] = []
    try:
        paths = sorted(path for path in (root / folder).iterdir() if path.suffix in (".md", ".mdc"))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [f"{folder}: {error.strerror}"]
    for path in paths:
        name = replace_surrogates(f"{folder}/{path.name}")
        if not name.endswith(path.name):
            problems.append(f"{name}: its name is no UTF-8: rename it")
            continue
        try:
            data = None if (problem := find_way_out(root, path)) else read_if_any(path)
            if data is not None and len(data) > _LARGEST_RULES:
                problem = "is larger than 100 kB: rules are some hundred lines"
            if problem:
                problems.append(f"{name}: {problem}")
            elif data is None:
                problems.append(f"{name}: the link points to a file that does not exist")
            else:
                rules.append(HotRule(name, data.decode("utf-8")))
        except UnicodeDecodeError:
            problems.append(f"{name}: not UTF-8 text")
        except InputError as error:
            problems.append(error.message)
    return rules, problems


def clients_in_use(root: Path) -> list[Client]:
    """Return the clients that left a trace in a root; all of them where none did."""
    found = [client for client, names in _TRACES.items() if any((root / name).exists() for name in names)]
    return found or list(Client)


def link(
    root: Path,
    folder: str,
    rules: Sequence[HotRule],
    clients: Iterable[Client],
    *,
    commands: Sequence[HotRule] = (),
    as_copies: bool = False,
    is_dry_run: bool = False,
) -> list[LinkResult]:
    """Bring the clients' paths in line with hot files and commands; a second call changes nothing."""
    results: list[LinkResult] = []
    section_files = {client: real_path(root / name) for client, name in SECTIONS.items()}
    for client in clients:
        # The file with the client's section can be a link to another client's file.
        is_shared = list(section_files.values()).count(section_files.get(client, root)) > 1
        targets = link_targets(client, rules, as_copies=as_copies, is_shared=is_shared)
        results += _Linker(root, folder, client, is_dry_run).place_all(targets)
        place, ending = COMMAND_FOLDERS.get(client, ("", ""))
        form: Form = "copy" if as_copies else "link"
        paths = [(f"{place}/{each.name}{ending}", each) for each in commands if place]
        targets = [LinkTarget(path, form, each.path, each.text) for path, each in paths]
        results += _Linker(root, COMMANDS, client, is_dry_run).place_all(targets)
    return results


def link_skills(
    root: Path, skills: Sequence[Skill], clients: Iterable[Client], *, is_dry_run: bool = False
) -> list[LinkResult]:
    """Bring the clients' skill folders in line with the skills; a second call changes nothing.

    A skill is a folder, so it is linked as one: what lies beside its SKILL.md comes with it.
    """
    results: list[LinkResult] = []
    for client in clients:
        place, _ = _SKILL_FOLDERS[client]
        folders = [(skill.name, skill.path.rpartition("/")[0]) for skill in skills]
        targets = [LinkTarget(f"{place}/{name}", "folder", source, "") for name, source in folders]
        results += _Linker(root, SKILLS, client, is_dry_run).place_all(targets)
    return results


def unlink(
    root: Path, folder: str, clients: Iterable[Client], *, is_dry_run: bool = False
) -> list[LinkResult]:
    """Remove everything of ours from the clients' paths, and restore what was there before."""
    chosen = list(clients)
    linkers = [_Linker(root, SKILLS, client, is_dry_run) for client in chosen]
    # The folder of the rules was made first, and holds the note about the folders above both.
    linkers += [_Linker(root, source, each, is_dry_run) for each in chosen for source in (COMMANDS, folder)]
    results = [linker.remove(path) for linker in linkers for path in linker.own_paths()]
    for linker in () if is_dry_run else linkers:
        linker.remove_empty_folders()
    return results


def refresh_links(root: Path, folder: str, *, is_dry_run: bool = False) -> list[LinkResult]:
    """Bring the clients that hold something of ours in line with the hot files; return what changed.

    Nothing is changed while a hot file cannot be read: its copies would be taken away.
    """
    (rules, problems), (commands, others) = (read_rules(root, name) for name in (folder, COMMANDS))
    sources = (folder, COMMANDS)
    linked = [
        client
        for client in Client
        if any(_Linker(root, source, client, is_dry_run=True).own_paths() for source in sources)
    ]
    if not linked or problems or others:
        return []
    done = link(root, folder, rules, linked, commands=commands, is_dry_run=is_dry_run)
    return [each for each in done if each.done in _DRIFT]


class Drift(NamedTuple):
    """A path of a client that no longer has what the hot files say: what is wrong, and the command."""

    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}: {self.remedy}"


def find_drift(root: Path, folder: str) -> list[Drift]:
    """Return every path of a client that `link` would bring in line with the hot files."""
    found = refresh_links(root, folder, is_dry_run=True)
    return [Drift(each.path, _DRIFT[each.done], f"archivist workspace link {each.client}") for each in found]


def is_own_file(root: Path, folder: str, name: str) -> bool:
    """Say whether a client's rule file is a link into the hot folder, or a copy that we made."""
    path = root / name
    if path.is_symlink():
        return _points_into(path, root, folder)
    return source_of_copy(read_or_nothing(path)) is not None


def read_or_nothing(path: Path) -> bytes:
    """Return a file's bytes; none when it cannot be read."""
    try:
        return read_if_any(path) or b""
    except InputError:
        return b""


def _points_into(path: Path, root: Path, folder: str) -> bool:
    """Say whether a link points into a source folder, whether or not its target exists."""
    above = Path(os.path.normpath(real_path(path.parent) / path.readlink())).parent
    if folder == SKILLS:
        return above.name == SKILLS and above.is_relative_to(real_path(root))
    return above in (real_path(root / folder), Path(os.path.normpath((root / folder).absolute())))


class _Note(NamedTuple):
    """What was made in a client's folder: the folders that were missing, and the names of the links."""

    folders: list[str]
    links: list[str]


def _read_note(root: Path, folder: Path) -> _Note:
    data = read_or_nothing(root / folder / _NOTE)
    title, *lines = data.decode("utf-8", "replace").splitlines() or [""]
    lines = lines if title == _NOTE_TITLE else []
    links = [line.removeprefix(_NOTED_LINK) for line in lines if line.startswith(_NOTED_LINK)]
    return _Note([line for line in lines if not line.startswith(_NOTED_LINK)], links)


def _write_note(root: Path, folder: Path, note: _Note) -> None:
    if not any(note):
        (root / folder / _NOTE).unlink(missing_ok=True)
        return
    lines = (_NOTE_TITLE, *note.folders, *(f"{_NOTED_LINK}{name}" for name in sorted(note.links)))
    replace_file(root / folder / _NOTE, "".join(f"{line}\n" for line in lines).encode())


class _LeftAloneError(OSError):
    """Something that a person wrote, or may have written, is there."""


@dataclass(frozen=True, slots=True)
class _Linker:
    """The paths of one client below a root for what lies in one folder: hot files, commands, or skills."""

    root: Path
    folder: str
    client: Client
    is_dry_run: bool

    @property
    def _home(self) -> tuple[str, str]:
        """Return the client's folder for files of the source folder, and their ending."""
        homes = {COMMANDS: COMMAND_FOLDERS, SKILLS: _SKILL_FOLDERS}.get(self.folder, FOLDERS)
        return homes.get(self.client, ("", ""))

    def _attempt(self, path: str, work: Callable[[], tuple[LinkStatus, str]]) -> LinkResult:
        """Return what some work did at a path; when it cannot be done, the path is left with the reason."""
        try:
            return LinkResult(self.client, path, *work())
        except OSError as error:
            return LinkResult(self.client, path, LinkStatus.LEFT, error.strerror or str(error))
        except InputError as error:
            return LinkResult(self.client, path, LinkStatus.LEFT, error.message)

    def own_paths(self) -> list[str]:
        """Return the client's paths with something of ours: our links and copies, and the section."""
        found: list[str] = []
        place, ending = self._home
        with suppress(OSError):
            names = sorted(path.name for path in (self.root / place).iterdir()) if place else []
            paths = [f"{place}/{name}" for name in names if name.endswith(ending)]
            owned = [path for path in paths if is_own_file(self.root, self.folder, path)]
            found += [path for path in owned if not self._is_users_link(path)]
        section = SECTIONS.get(self.client) if self.folder not in (COMMANDS, SKILLS) else None
        if section:
            known = find_section(read_or_nothing(self.root / section))
            found += [section] if known and known.is_read_by(self.client) else []
        return found

    def _is_users_link(self, path: str) -> bool:
        """Say whether a link is not on record as ours; a person's own stays, wherever it points."""
        place = Path(path)
        is_noted = place.name in _read_note(self.root, place.parent).links
        return (self.root / path).is_symlink() and not is_noted

    def _note_link(self, path: str, *, is_made: bool) -> None:
        """Put a link on record as made by us, or take it from the record."""
        place = Path(path)
        note = _read_note(self.root, place.parent)
        links = {*note.links, place.name} if is_made else {*note.links} - {place.name}
        if links != {*note.links}:
            _write_note(self.root, place.parent, note._replace(links=sorted(links)))

    def place_all(self, targets: Iterable[LinkTarget]) -> list[LinkResult]:
        """Bring all paths of the client in line with these targets; of two for one path the first counts."""
        results: list[LinkResult] = []
        wanted: dict[str, LinkTarget] = {}
        for target in targets:
            if (first := wanted.setdefault(target.path, target)) is not target:
                reason = f"{first.source} is there too"
                results.append(LinkResult(self.client, target.path, LinkStatus.LEFT, reason))
        results += [self.remove(path) for path in self.own_paths() if path not in wanted]
        for path, target in wanted.items():
            put = self._put_section if target.form == "section" else self._put_file
            results.append(self._attempt(path, partial(put, target)))
        return results

    def _put_file(self, target: LinkTarget) -> tuple[LinkStatus, str]:
        path = self.root / target.path
        if not real_path(path.parent).is_relative_to(real_path(self.root)):
            raise _LeftAloneError(_OUTSIDE)
        is_source = real_path(path) == real_path(self.root / target.source)
        is_skill = target.form == "folder"
        if path.is_symlink():
            is_users = self._is_users_link(target.path)
            # A person's link to the source is the documented layout, also where we would make a copy.
            if is_source and (is_users or target.form != "copy"):
                return LinkStatus.UNCHANGED, "link"
            if is_users or not _points_into(path, self.root, self.folder):
                raise _LeftAloneError(_USERS_SKILL if is_skill else "a link of yours that points elsewhere")
            if not self.is_dry_run:
                path.unlink()
                self._note_link(target.path, is_made=False)
            return LinkStatus.REFRESHED, self._create(target)
        if is_skill and path.exists():
            raise _LeftAloneError(_USERS_SKILL)
        before = read_if_any(path)
        if before is None:
            return LinkStatus.MADE, self._create(target)
        if source_of_copy(before) is None:
            # A client's folder can be a link to the hot folder itself.
            if is_source and target.form == "link":
                return LinkStatus.UNCHANGED, "link"
            raise _LeftAloneError(_USERS)
        if is_edited_copy(before):
            raise _LeftAloneError(_EDITED.format(source=target.source))
        # A copy stays a copy: where links do not work, another attempt would fail again.
        return self._replace(path, before, marked_copy(target)), "copy"

    def _create(self, target: LinkTarget) -> str:
        """Make a link or a copy where there is nothing, and return which of them."""
        is_copy, is_skill = target.form == "copy", target.form == "folder"
        if self.is_dry_run:
            return "copy" if is_copy else "link"
        path, folder = self.root / target.path, Path(target.path).parent
        refuse_links(path)
        # The folders that are made for the client are noted, so that they can be removed again.
        missing = [each.as_posix() for each in (folder, *folder.parents) if not (self.root / each).exists()]
        make_folder(self.root / folder)
        if missing:
            _write_note(self.root, folder, _read_note(self.root, folder)._replace(folders=missing))
        if not is_copy:
            try:
                self._note_link(target.path, is_made=True)
                source = os.path.relpath(real_path(self.root) / target.source, real_path(path.parent))
                path.symlink_to(source, target_is_directory=is_skill)
                return "link"
            except FileExistsError:
                self._note_link(target.path, is_made=False)
                raise _LeftAloneError(_USERS) from None
            except (OSError, NotImplementedError) as error:
                self._note_link(target.path, is_made=False)
                if is_skill:
                    raise _LeftAloneError(getattr(error, "strerror", "") or str(error)) from None
                # Without links on this system, or without the right to make them, a copy serves as well.
        if not replace_if_unchanged(path, None, marked_copy(target)):
            raise _LeftAloneError(_USERS)
        return "copy"

    def _put_section(self, target: LinkTarget) -> tuple[LinkStatus, str]:
        real, form = self._section_file(self.root / target.path)
        before = read_if_any(real)
        section = find_section(before)
        if section and section.is_edited:
            raise _LeftAloneError(_EDITED_SECTION)
        done = self._replace(real, before, with_section(before, target.content, self.client))
        if done is LinkStatus.REFRESHED and not (section and section.is_read_by(self.client)):
            done = LinkStatus.MADE
        return done, form

    def _section_file(self, path: Path) -> tuple[Path, str]:
        """Return the file that holds a section, and the form; one client's file may link to another's."""
        real, root = real_path(path), real_path(self.root)
        if not real.is_relative_to(root):
            raise _LeftAloneError(_OUTSIDE)
        return real, f"section of {real.relative_to(root).as_posix()}" if path.is_symlink() else "section"

    def _replace(self, path: Path, before: bytes | None, after: bytes) -> LinkStatus:
        if before == after:
            return LinkStatus.UNCHANGED
        if not self.is_dry_run and not replace_if_unchanged(path, before, after):
            raise _LeftAloneError("it changed while it was written; try again")
        return LinkStatus.MADE if before is None else LinkStatus.REFRESHED

    def remove(self, name: str) -> LinkResult:
        """Remove one thing of ours from its path."""
        return self._attempt(name, lambda: (LinkStatus.REMOVED, self._remove(name)))

    def _remove(self, name: str) -> str:
        path = self.root / name
        is_link = path.is_symlink() and _points_into(path, self.root, self.folder)
        before = b"" if is_link else read_if_any(path) or b""
        if section := find_section(before):
            if section.is_edited:
                raise _LeftAloneError(_EDITED_SECTION)
            real, form = self._section_file(path)
            after = without_section(before, self.client)
            if after is not None:
                self._replace(real, before, after)
            elif not self.is_dry_run:
                real.unlink()
            others = ", ".join(reader for reader in section.readers if reader != self.client)
            return f"{form}, kept for {others}" if others else form
        if not is_link and is_edited_copy(before):
            raise _LeftAloneError(_EDITED.format(source=source_of_copy(before) or "its source"))
        if not self.is_dry_run:
            path.unlink()
            if is_link:
                self._note_link(name, is_made=False)
        return "link" if is_link else "copy"

    def remove_empty_folders(self) -> None:
        """Remove the client's folder and those above it, as far as they were made for it and are empty."""
        folder = Path(self._home[0])
        note = _read_note(self.root, folder)
        if folder == Path() or not note.folders or self.own_paths():
            return
        # Where somebody else uses the folder now, it stays.
        with suppress(OSError):
            (self.root / folder / _NOTE).unlink()
            # Only the client's own folder and its parents can have been made for it.
            for name in note.folders:
                if name in {folder.as_posix(), *(parent.as_posix() for parent in folder.parents)} - {"."}:
                    (self.root / name).rmdir()
