"""Read the hot files of a root: its own, and those that one agent tool alone always loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.workspace.hot import HotFile, HotUsage, hot_file
from archivist.workspace.link_files import is_ours, read_rules
from archivist.workspace.links import FOLDERS, Client

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_ALWAYS = {
    Client.CURSOR: re.compile(r"^alwaysApply:\s*true\b", re.MULTILINE),
    Client.VSCODE: re.compile(r"^applyTo:\s*[\"']?\*\*[\"']?\s*$", re.MULTILINE),
}
_SOMETIMES = re.compile(r"^paths:", re.MULTILINE)


class Hot(NamedTuple):
    """The hot files of a root, and what is wrong with those that cannot be read."""

    usage: HotUsage
    problems: tuple[str, ...] = ()


def read_hot(root: Path, rules: WorkspaceRules) -> Hot:
    """Measure the hot files of a root. A root without any has an empty usage."""
    own, problems = read_rules(root, rules.hot)
    files = [hot_file(rule.path, rule.text) for rule in own]
    for client in (Client.CURSOR, Client.CLAUDE_CODE, Client.VSCODE):
        files += _particular(root, rules.hot, client)
    return Hot(HotUsage(tuple(files), rules.hot_lines, rules.hot_tokens), tuple(problems))


def _particular(root: Path, folder: str, client: Client) -> list[HotFile]:
    """Return a client's own rules that it always loads; what we put there is counted at its source."""
    place, ending = FOLDERS[client]
    rules, _ = read_rules(root, place)
    return [
        hot_file(rule.path, rule.text, agent=client.value)
        for rule in rules
        if rule.path.endswith(ending)
        and not is_ours(root, folder, rule.path)
        and _is_always_loaded(client, rule.text)
    ]


def _is_always_loaded(client: Client, text: str) -> bool:
    front = _FRONT.match(text)
    said = front[1] if front else ""
    if client in _ALWAYS:
        return bool(_ALWAYS[client].search(said))
    return not _SOMETIMES.search(said)
