"""Read the hot files of a root: its own, and those that some agent tools always load beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.workspace.hot import HotFile, HotUsage, measure_hot_file
from archivist.workspace.link_files import is_own_file, read_rules
from archivist.workspace.links import FOLDERS, Client, section_lines, without_section

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_ALWAYS = {
    Client.CURSOR: re.compile(r"^alwaysApply:\s*true\b", re.MULTILINE),
    Client.VSCODE: re.compile(r"^applyTo:\s*[\"']?\*\*[\"']?\s*$", re.MULTILINE),
}
_SOMETIMES = re.compile(r"^paths:", re.MULTILINE)
# The files that tools load from the root as they stand, and which tools do.
_STANDING: tuple[tuple[str, tuple[Client, ...]], ...] = (
    ("AGENTS.override.md", (Client.CODEX,)),
    ("AGENTS.md", (Client.CODEX, Client.CURSOR, Client.VSCODE)),
    ("CLAUDE.md", (Client.CLAUDE_CODE, Client.VSCODE)),
    (".claude/CLAUDE.md", (Client.CLAUDE_CODE,)),
    ("CLAUDE.local.md", (Client.CLAUDE_CODE,)),
    ("GEMINI.md", (Client.GEMINI,)),
    (".github/copilot-instructions.md", (Client.VSCODE,)),
    (".cursorrules", (Client.CURSOR,)),
)
_IMPORTING = (Client.CLAUDE_CODE, Client.GEMINI)
_IMPORT = re.compile(r"(?<![\w`@/.])@((?:\.{1,2}/)*\w[\w./-]*)")
_NO_IMPORT = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_HOPS = 4
# What is larger is skipped by the tools too.
_LARGEST = 4 * 1024**2


class HotFileReport(NamedTuple):
    """The hot files of a root, and what is wrong with those that cannot be read."""

    usage: HotUsage
    problems: tuple[str, ...] = ()


class _LoadedFile(NamedTuple):
    """A file that a tool always loads, whatever ways lead to it."""

    path: Path
    client: Client


def measure_hot_files(root: Path, rules: WorkspaceRules) -> HotFileReport:
    """Measure the hot files of a root. A root without any has an empty usage."""
    own, problems = read_rules(root, rules.hot)
    counted = {(root / rule.path).resolve() for rule in own}
    found: dict[Path, tuple[Path, list[Client]]] = {}
    for loaded in _always_loaded_files(root, rules.hot):
        real = loaded.path.resolve()
        if real not in counted:
            path, clients = found.setdefault(real, (loaded.path, []))
            if loaded.client not in clients:
                clients.append(loaded.client)
    files = [measure_hot_file(rule.path, rule.text) for rule in own]
    for path, clients in found.values():
        name = _name(root, path)
        data = _read(path)
        if data is None:
            problems.append(f"{name}: not UTF-8 text")
        else:
            files += _exclude_section(name, data, tuple(client.value for client in clients))
    return HotFileReport(HotUsage(tuple(files), rules.hot_lines, rules.hot_tokens), tuple(problems))


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    except OSError:
        return ""


def _exclude_section(name: str, text: str, agents: tuple[str, ...]) -> list[HotFile]:
    """Return a file as it is without our section, which is counted at its source."""
    rest = (without_section(text.encode()) or b"").decode()
    if not rest.strip():
        return []
    first, count = section_lines(text.encode())
    lines = text.splitlines()
    # The rules behind the section stand on the lines that the file shows.
    blanked = "\n".join((*lines[: first - 1], *("" for _ in range(count)), *lines[first - 1 + count :]))
    return [replace(measure_hot_file(name, rest, agents=agents), text=blanked if count else rest)]


def _always_loaded_files(root: Path, folder: str) -> Iterator[_LoadedFile]:
    for client in (Client.CURSOR, Client.CLAUDE_CODE, Client.VSCODE):
        for path in _client_rules(root, folder, client):
            yield _LoadedFile(path, client)
    is_overridden = _is_text(root / "AGENTS.override.md")
    for name, clients in _STANDING:
        for client in clients:
            if name == "AGENTS.md" and client is Client.CODEX and is_overridden:
                continue
            for path in _with_imports(root / name, root, client):
                yield _LoadedFile(path, client)


def _client_rules(root: Path, folder: str, client: Client) -> list[Path]:
    """Return a client's own rules that it always loads; what we put there is counted at its source."""
    place, ending = FOLDERS[client]
    places = [place]
    if client is Client.CLAUDE_CODE:
        below = sorted(path for path in (root / place).rglob("*") if path.is_dir())
        places += [path.relative_to(root).as_posix() for path in below]
    return [
        root / rule.path
        for each in places
        for rule in read_rules(root, each)[0]
        if rule.path.endswith(ending)
        and not is_own_file(root, folder, rule.path)
        and _is_always_loaded(client, rule.text)
    ]


def _is_always_loaded(client: Client, text: str) -> bool:
    front = _FRONT.match(text)
    said = front[1] if front else ""
    if client in _ALWAYS:
        return bool(_ALWAYS[client].search(said))
    return not _SOMETIMES.search(said)


def _is_text(path: Path) -> bool:
    return path.is_file() and 0 < path.stat().st_size <= _LARGEST


def _with_imports(path: Path, root: Path, client: Client) -> Iterator[Path]:
    """Yield a file and what it imports, for the tools that follow `@path`; a loop ends where it began."""
    waiting = [(path, 0)]
    seen: set[Path] = set()
    while waiting:
        file, hops = waiting.pop(0)
        real = file.resolve()
        if real in seen or not _is_text(file):
            continue
        seen.add(real)
        yield file
        if client not in _IMPORTING or hops == _HOPS:
            continue
        rest = (without_section((_read(file) or "").encode()) or b"").decode()
        for name in _IMPORT.findall(_NO_IMPORT.sub(" ", rest)):
            target = Path(root / file).parent / name.rstrip(".")
            if target.resolve().is_relative_to(root.resolve()):
                waiting.append((target, hops + 1))
