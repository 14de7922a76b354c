"""No content of a file that a repository can hold ends in a traceback, whichever command reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from archivist.edges.cli.group import cli
from archivist.errors import InputError
from archivist.files.parse import parse_json, parse_toml, parse_yaml
from tests.attacks.hostile_texts import FRONT, JSON, TEXTS, TOML, to_bytes
from tests.commands import Command
from tests.edges.http_server import serving

# The commands that read what is named to them, as they are called.
READING = {
    "run finish": "run finish {} --run r",
    "brief": "brief --for healer --error {}",
    "core follow": "core follow rules {}",
    "stream import": "stream import {}",
    "archive import-bank": "archive import-bank {}",
    "archive watch": "archive watch .",
    "workspace save": "workspace save w --from {}",
    "workspace skills save": "workspace skills save x --from {} --scope w",
    "capture": "capture {}",
    "knowledge import": "knowledge import {}",
    "artifacts register": "artifacts register {} --task t",
    "extract": "extract {}",
    "import": "import {}",
    "share": "share .",
    "restore": "restore {}",
}
# The commands that read files of a repository by their places.
LOOKING = {
    "setup": "setup --dry-run",
    "install": "install all --dry-run",
    "uninstall": "uninstall all --dry-run",
    "workspace plans": "workspace plans",
    "workspace overview": "workspace overview",
    "workspace learnings": "workspace learnings",
    "workspace lint": "workspace lint",
    "workspace migrate": "workspace migrate",
    "workspace archive": "workspace archive",
    "workspace hot promote": "workspace hot promote decisions.md:1 --file team",
    "workspace hot demote": "workspace hot demote team.md:1 --to w",
    "workspace init": "workspace init w",
    "workspace link": "workspace link all --dry-run",
    "workspace unlink": "workspace unlink all --dry-run",
    "workspace skills list": "workspace skills list",
    "workspace skills show": "workspace skills show x",
    "workspace transcripts capture": "workspace transcripts capture",
    "workspace transcripts list": "workspace transcripts list",
    "workspace transcripts show": "workspace transcripts show a.jsonl",
    "workspace drafts": "workspace drafts",
    "workspace search": "workspace search text",
    "workspace graph": "workspace graph",
}
# Without a file among their parameters.
ALSO_LOOKING = ("doctor", "status", "brief", "config show", "workspace hot", "recall text")
# They write the file, or only name one.
WRITING = frozenset((
    "init", "trust", "stream export", "archive remove", "serve", "mcp", "episodes stats", "artifacts list",
    "artifacts versions", "audit report", "export", "backup", "salvage",
))  # fmt: skip
_FILE_WORDS = ("FILE", "PATH", "FOLDER", "SOURCE", "EVENTS")
SETTINGS = (
    ".codex/config.toml", ".codex/hooks.json", ".claude/settings.json", ".claude/settings.local.json",
    ".mcp.json", ".gemini/settings.json", ".cursor/hooks.json", ".cursor/mcp.json", ".vscode/mcp.json",
    ".github/hooks/archivist.json", ".env", ".gemini/.env", "package.json", "pyproject.toml",
)  # fmt: skip
MEMORY = (
    "resources/workspaces/w/OVERVIEW.md", "resources/workspaces/w/_plans/260101-a.md",
    "resources/workspaces/w/_skills/x/SKILL.md", "user/memory/workspaces/w/decisions.md",
    "user/memory/workspaces/w/lessons.md", "agent/rules/common/team.md", ".claude/rules/a.md",
    ".cursor/rules/a.mdc", "AGENTS.md", "CLAUDE.md", "agent-transcripts/a.jsonl", "docs/a.md",
)  # fmt: skip


def _commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        below = command.get_command(context, each)
        assert below is not None
        yield from _commands(below, f"{name} {each}".strip())


def test_every_command_that_takes_a_file_is_tried_here() -> None:
    found = {
        name
        for name, command in _commands(cli)
        for each in command.params
        if isinstance(each.type, click.Path) or (each.metavar or "").rstrip("…") in _FILE_WORDS
    }
    assert found == {*READING, *LOOKING, *WRITING}


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(to_bytes(text))


@pytest.mark.req("N7")
@pytest.mark.parametrize("command", READING)
def test_no_named_file_ends_in_a_traceback(archivist: Command, project: Path, command: str) -> None:
    assert archivist("init").code == 0
    for at, (name, text) in enumerate(TEXTS.items()):
        given = f"given-{at}.{'md' if name.startswith('front') else 'jsonl'}"
        _write(project / given, text)
        ran = archivist(*READING[command].format(given).split())
        assert "Traceback" not in ran.err, (command, name, ran.err[-800:])
        assert ran.code in (0, 4, 7) or not ran.out, (command, name, ran)
    _write(project / "ok.jsonl", "{}\n")
    ran = archivist("capture", "ok.jsonl", "--outcomes", "given-0.jsonl")
    assert (ran.code, "is not JSON" in ran.err) == (4, True)


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", TEXTS)
def test_no_file_in_its_place_ends_in_a_traceback(archivist: Command, project: Path, name: str) -> None:
    assert archivist("init").code == 0
    for place in (*SETTINGS, *MEMORY):
        _write(project / place, TEXTS[name])
    for words in (*LOOKING.values(), *ALSO_LOOKING):
        ran = archivist(*words.split())
        assert "Traceback" not in ran.err, (words, ran.err[-800:])
    _write(project / ".archivist" / "config.toml", TEXTS[name])
    for words in ("doctor", "status", "config show", "config set brief.max_lessons 20"):
        ran = archivist(*words.split())
        assert "Traceback" not in ran.err, (words, ran.err[-800:])
        assert words == "config show" or ran.code, words


@pytest.mark.req("N7")
@pytest.mark.parametrize("words", ["doctor", "setup --yes", "install codex --dry-run"])
def test_a_number_of_5000_digits_in_a_clients_settings_is_named(
    archivist: Command, project: Path, words: str
) -> None:
    assert archivist("init").code == 0
    _write(project / ".codex" / "config.toml", TOML["digits"])
    ran = archivist(*words.split())
    assert "Traceback" not in ran.err, ran.err[-800:]
    assert words != "install codex --dry-run" or (ran.code == 4 and "digits" in ran.err)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_json, text) for name, text in JSON.items() if name != "huge key"),
        *((parse_toml, text) for name, text in TOML.items() if name != "huge key"),
    ],
)
def test_a_parser_refuses_with_its_own_error(parse: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(InputError, match=r"^given"):
        parse(text, "given")


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "a: " + "[" * 100 + "]" * 100, "a: 1" + "0" * 5000, "a: 0x" + "f" * 5000, "a: \0"]
)
def test_yaml_is_bounded(text: str) -> None:
    with pytest.raises(InputError):
        parse_yaml(text, "x")


@pytest.mark.req("N7")
def test_the_workspace_page_shows_what_it_can(project: Path) -> None:
    with serving(project) as served, served.client() as client:
        for name, text in FRONT.items():
            for place in MEMORY[:2]:
                _write(project / place, f"---\n{text}\n---\n\n# Text\n\nA plan about zebras.\n")
            got = client.get("/workspace", headers={"Accept": "text/html"})
            assert (got.status_code, "Plans" in got.text) == (200, True), (name, got.text[-500:])
