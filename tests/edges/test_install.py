"""Installing into clients' settings: what else stands there stays, and what was put in comes out again."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Ran
from hypothesis import given
from hypothesis import strategies as st

from archivist.edges.cli.install import install, uninstall
from archivist.edges.cli.session import Session
from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import chain, changes, entries, jsonc
from archivist.edges.install.changes import SetupRecord
from archivist.edges.install.clients import InstallLocation, targets
from archivist.errors import InputError
from tests.banks import lay_bank

FILES = {
    "claude-code": [".claude/settings.json", ".mcp.json"],
    "codex": [".codex/hooks.json", ".codex/config.toml"],
    "cursor": [".cursor/hooks.json", ".cursor/mcp.json", ".cursor/rules/archivist.mdc"],
    "gemini": [".gemini/settings.json"],
    "vscode": [".github/hooks/archivist.json", ".vscode/mcp.json"],
    "copilot": [".github/copilot/settings.json", ".github/mcp.json"],
    # A program of ours goes into no repository.
    "opencode": [],
}
OPENCODE = [".config/opencode/opencode.json", ".config/opencode/plugins/archivist.js"]


def _run(command: Any, *words: str) -> Ran:
    return CliRunner().invoke(command, list(words), obj=Session("", ""))


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# From nothing, and back to it


@pytest.mark.req("F12")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_installed_once_and_uninstalled_without_a_trace(
    client: str, at: Path, home: Path
) -> None:
    home.mkdir(exist_ok=True)
    dry = _run(install, client, "--dry-run")
    assert (dry.exit_code, _files(at)) == (0, {})
    done = _run(install, client)
    assert (done.exit_code, done.stdout) == (0, dry.stdout)
    assert list(_files(at)) == sorted(FILES[client])
    assert list(_files(home)) == (OPENCODE if client == "opencode" else [])
    again = _run(install, client)
    assert (again.stdout, f"{client} is installed already" in again.stderr) == ("", True)
    assert _run(uninstall, client).exit_code == 0
    assert list(at.iterdir()) == []
    assert [path for path in home.iterdir() if path.name != ".archivist"] == []
    nothing = _run(uninstall, client)
    assert (nothing.stdout, nothing.stderr) == ("", f"{client} is not installed here\n")


def test_the_diff_is_one_that_a_careful_user_accepts(at: Path) -> None:
    (at / ".claude").mkdir()
    (at / ".claude" / "settings.json").write_text('{\n  "model": "opus"\n}\n')
    diff = _run(install, "claude-code", "--project", "--dry-run").stdout.splitlines()
    assert diff[:6] == [
        "--- .claude/settings.json",
        "+++ .claude/settings.json",
        "@@ -1,3 +1,48 @@",
        " {",
        '-  "model": "opus"',
        '+  "model": "opus",',
    ]
    assert [line for line in diff if line.startswith("-") and not line.startswith("---")] == [
        '-  "model": "opus"'
    ]
    assert diff[-1] == "+}"
    assert all(len(line) <= 125 for line in diff)


def test_what_each_client_finds(at: Path) -> None:
    for client in CLIENTS:
        _run(install, client)
    claude = json.loads((at / ".claude/settings.json").read_text())["hooks"]
    assert list(claude) == [
        "SessionStart", "UserPromptSubmit", "PostToolUseFailure", "SubagentStart", "Stop", "SessionEnd",
    ]  # fmt: skip
    assert claude["SessionStart"] == [
        {
            "matcher": "startup|resume|clear|compact|fork",
            "hooks": [
                {
                    "type": "command",
                    "command": "archivist hook claude-code session-start",
                    "timeout": 10,
                }
            ],
        }
    ]
    server = {"type": "stdio", "command": "archivist", "args": ["mcp"]}
    assert json.loads((at / ".mcp.json").read_text()) == {"mcpServers": {"archivist": server}}
    codex = json.loads((at / ".codex/hooks.json").read_text())
    assert list(codex) == ["hooks"]
    assert codex["hooks"]["PostToolUse"] == [
        {"hooks": [{"type": "command", "command": "archivist hook codex tool-failure", "timeout": 5}]}
    ]
    assert codex["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert tomllib.loads((at / ".codex/config.toml").read_text()) == {
        "mcp_servers": {
            "archivist": {
                "command": "archivist", "args": ["mcp"], "startup_timeout_sec": 10, "tool_timeout_sec": 60,
            }
        }
    }  # fmt: skip
    cursor = json.loads((at / ".cursor/hooks.json").read_text())
    told, kept = ["sessionStart"], ["beforeSubmitPrompt", "postToolUse", "postToolUseFailure"]
    assert (cursor["version"], list(cursor["hooks"])) == (1, [*told, *kept, "stop", "sessionEnd"])
    assert "alwaysApply: true\n" in (at / ".cursor/rules/archivist.mdc").read_text()
    gemini = json.loads((at / ".gemini/settings.json").read_text())
    assert gemini["hooks"]["BeforeAgent"][0]["hooks"][0] == {
        "type": "command", "command": "archivist hook gemini prompt", "timeout": 10_000,
    }  # fmt: skip
    assert gemini["mcpServers"]["archivist"] == {"command": "archivist", "args": ["mcp"]}
    vscode = json.loads((at / ".github/hooks/archivist.json").read_text())["hooks"]
    assert vscode["Stop"] == [{"type": "command", "command": "archivist hook vscode stop", "timeout": 10}]
    assert json.loads((at / ".vscode/mcp.json").read_text()) == {"servers": {"archivist": server}}
    copilot = json.loads((at / ".github/copilot/settings.json").read_text())["hooks"]
    assert list(copilot) == [
        "sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure", "subagentStart",
        "agentStop",
    ]  # fmt: skip
    assert copilot["agentStop"] == [
        {"type": "command", "command": "archivist hook copilot stop", "timeoutSec": 5}
    ]
    assert json.loads((at / ".github/mcp.json").read_text())["mcpServers"]["archivist"]["tools"] == ["*"]
    opencode = json.loads((Path.home() / OPENCODE[0]).read_text())
    assert opencode == {"mcp": {"archivist": {"type": "local", "command": ["archivist", "mcp"]}}}


def test_the_plugin_of_another_version_is_brought_up_to_date(at: Path, home: Path) -> None:
    assert at.is_dir()
    _run(install, "opencode")
    plugin, config = home / OPENCODE[1], home / OPENCODE[0]
    written = plugin.read_text()
    plugin.write_text(written.partition("\n")[0] + "\n// of another version\n")
    _run(install, "opencode")
    assert plugin.read_text() == written
    config.rename(config.with_suffix(".jsonc"))
    assert "is installed already" in _run(install, "opencode").stderr


def test_another_plugin_of_our_name_is_refused_and_said_to_be_in_the_way(at: Path, home: Path) -> None:
    plugin = home / OPENCODE[1]
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export default {}\n")
    before = _files(home)
    refused = _run(install, "opencode")
    assert (refused.exit_code != 0, "is another program's plugin" in str(refused.exception)) == (True, True)
    assert _files(home) == before
    plugin.unlink()
    _run(install, "opencode")
    plugin.write_text("export default {}\n")
    checks = {check.name: check for check in chain.check_chain(at, home, at)}
    assert not checks["opencode"].is_well
    assert "told at no event" in checks["opencode"].text
    assert checks["opencode"].text.endswith(": archivist install opencode --user")
    _run(uninstall, "opencode")
    assert _files(home / ".config") == {"opencode/plugins/archivist.js": b"export default {}\n"}


@pytest.mark.parametrize("call", ['"/opt/a b/archivist", ["hook",', '"archivist", ["--bank", "/b", "hook",'])
def test_the_users_own_call_in_the_plugin_is_kept(at: Path, home: Path, call: str) -> None:
    assert at.is_dir()
    _run(install, "opencode")
    plugin = home / OPENCODE[1]
    written = plugin.read_text()
    plugin.write_text(edited := written.replace('"archivist", ["hook",', call))
    assert edited != written
    assert "is installed already" in _run(install, "opencode").stderr
    assert plugin.read_text() == edited
    plugin.write_text(edited.replace("// OpenCode 1\n", "// an older text\n"))
    _run(install, "opencode")
    assert plugin.read_text() == edited
    record = SetupRecord(installs=[["opencode", "user", str(home)]])
    assert record.find_changed() == []
    command = next(check for check in chain.check_chain(at, home, at) if check.name == "command")
    assert (call.split('"')[1 if "/opt" in call else 5] in command.text, command.is_well) == (True, False)
    _run(uninstall, "opencode")
    assert not plugin.exists()


def test_a_users_own_settings_lie_in_the_home(at: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    for client in CLIENTS:
        assert _run(install, client, "--user").exit_code == 0
    assert list(_files(at)) == []
    assert set(_files(home)) == {
        ".claude/settings.json", ".claude.json", ".codex/hooks.json", ".codex/config.toml",
        ".cursor/hooks.json", ".cursor/mcp.json", ".gemini/settings.json", ".copilot/hooks/archivist.json",
        ".config/Code/User/mcp.json", ".copilot/settings.json", ".copilot/mcp-config.json", *OPENCODE,
    }  # fmt: skip
    for client in CLIENTS:
        _run(uninstall, client, "--user")
    assert _files(home) == {}


def test_the_projects_folder_is_where_its_bank_is(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_bank(at)
    below = at / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    ran = _run(install, "claude-code")
    assert (at / ".mcp.json").is_file()
    assert "no bank yet" not in ran.stderr
    assert list(below.iterdir()) == []


# Into what is there

SETTINGS = """\
{
    // what this project allows
    "permissions": {"allow": ["Bash(make *)"]},
    "hooks": {
        "SessionStart": [
            {"hooks": [{"type": "command", "command": "./hello.sh"}]}, // says hello
        ],
        /* none yet */
        "Stop": [],
    },
    "model": "opus", // the big one
}
"""


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("    ", "\t").encode(),
        lambda text: text.rstrip("\n").encode(),
    ],
    ids=["plain", "crlf", "bom", "tabs", "no last newline"],
)
def test_comments_order_and_form_stay_and_come_back(at: Path, form: Any) -> None:
    path = at / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(was := form(SETTINGS))
    assert _run(install, "claude-code").exit_code == 0
    now = path.read_bytes().decode("utf-8-sig")
    for remark in ("// what this project allows", "// says hello", "/* none yet */", "// the big one"):
        assert remark in now
    assert ("\r\n" in now) == (b"\r\n" in was)
    assert "\r\r" not in now
    value = jsonc.parse(now).value
    assert list(value) == ["permissions", "hooks", "model"]
    assert [len(group["hooks"]) for group in value["hooks"]["SessionStart"]] == [1, 1]
    assert value["hooks"]["Stop"][0]["hooks"][0]["command"] == "archivist hook claude-code stop"
    assert changes.backup_of(path).read_bytes() == was
    assert _run(uninstall, "claude-code").exit_code == 0
    assert path.read_bytes() == was
    assert os.listdir(path.parent) == ["settings.json"]  # noqa: PTH208


def test_what_others_changed_meanwhile_stays(at: Path) -> None:
    path = at / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    _run(install, "claude-code")
    path.write_text(path.read_text().replace('"model": "opus"', '"model": "haiku"'))
    assert _run(uninstall, "claude-code").exit_code == 0
    now = path.read_text()
    assert "archivist" not in now
    assert '"model": "haiku", // the big one' in now
    assert jsonc.parse(now).value["hooks"]["SessionStart"][0]["hooks"][0]["command"] == "./hello.sh"


def test_a_hook_of_ours_inside_anothers_group_goes_alone(at: Path) -> None:
    path = at / ".claude" / "settings.json"
    path.parent.mkdir()
    ours = {"type": "command", "command": "/opt/venv/bin/archivist hook claude-code stop"}
    theirs = {"type": "command", "command": "archivist-like hook", "timeout": 3}
    path.write_text(json.dumps({"hooks": {"Stop": [{"matcher": "*", "hooks": [theirs, ours]}]}}, indent=2))
    _run(uninstall, "claude-code")
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"matcher": "*", "hooks": [theirs]}]}}


def test_what_a_user_added_to_ours_is_kept_at_the_next_install(at: Path) -> None:
    _run(install, "claude-code")
    path = at / ".mcp.json"
    path.write_text(path.read_text().replace('"args": ["mcp"]', '"args": ["mcp"], "env": {"A": "b"}'))
    assert "is installed already" in _run(install, "claude-code").stderr
    hooks = at / ".claude/settings.json"
    hooks.write_text(hooks.read_text().replace('"timeout": 10', '"timeout": 20'))
    assert "is installed already" in _run(install, "claude-code").stderr
    hooks.write_text(hooks.read_text().replace("code session-start", "code session-begin"))
    _run(install, "claude-code")
    (group,) = json.loads(hooks.read_text())["hooks"]["SessionStart"]
    assert group["hooks"][0]["command"].endswith(" session-start")


def test_a_link_of_the_users_own_stays_a_link_and_the_mode_stays(
    home: Path, at: Path, tmp_path: Path
) -> None:
    assert at.is_dir()
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    kept.chmod(0o600)
    link = home / ".claude" / "settings.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    _run(install, "claude-code", "--user")
    assert link.is_symlink()
    assert ("archivist" in kept.read_text(), kept.stat().st_mode & 0o777) == (True, 0o600)
    _run(uninstall, "claude-code", "--user")
    assert (link.is_symlink(), kept.read_text()) == (True, "{}")


@pytest.mark.req("N7")
def test_a_projects_link_is_not_written_through(at: Path, tmp_path: Path) -> None:
    kept = tmp_path / "start-file"
    kept.write_text("{}")
    (at / ".mcp.json").symlink_to(kept)
    ran = _run(install, "claude-code")
    assert "is a link, and nothing is written through a link" in str(ran.exception)
    assert kept.read_text() == "{}"
    assert [path.name for path in at.rglob("*") if path.is_file()] == [".mcp.json"]


TOML = """\
# my settings
model = "o4" # the small one

[mcp_servers.db] # data
command = "db-mcp"
args = [
  "--read-only", # always
]

[profiles.fast]
model = "mini"
"""


@pytest.mark.parametrize("form", [lambda text: text, lambda text: text.replace("\n", "\r\n"), str.rstrip])
def test_codexs_table_goes_in_and_out(at: Path, form: Any) -> None:
    path = at / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(was := form(TOML).encode())
    _run(install, "codex")
    now = path.read_bytes().decode()
    assert now.startswith(form(TOML).rstrip("\r\n"))
    assert list(tomllib.loads(now)["mcp_servers"]) == ["db", "archivist"]
    path.write_bytes(now.encode() + b"\n# a remark of mine\n[tui]\ntheme = 'dark'\n")
    _run(uninstall, "codex")
    after = path.read_bytes().decode()
    assert tomllib.loads(after) == {**tomllib.loads(was.decode()), "tui": {"theme": "dark"}}
    assert "# a remark of mine" in after
    path.write_bytes(now.encode())
    _run(uninstall, "codex")
    assert path.read_bytes() == was


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"hooks": {', "line 1: unexpected end"),
        ('{\n"a": 1\n"b": 2}', "line 3: a comma is missing"),
        ('{"a" 1}', "the colon after 'a' is missing"),
        ("{'a': 1}", "a key in double quotes is missing"),
        ('{"a": nope}', "'nope}' is not JSON"),
        ('{"a": NaN}', "'NaN}' is not JSON"),
        ("[]", "holds a list, not an object"),
        ('{"hooks": [], "a": 1}', "'hooks' is not an object"),
        ('{"hooks": {"Stop": {}}}', "is not a list"),
        ('{"hooks": {}, "hooks": {}}', "'hooks' is there twice"),
        ("{} {}", "text after the end of the object"),
        ('{"a": "x\ny"}', "a string is not closed"),
        ("{" * 100_000, "a key in double quotes"),
        ('{"a":' * 50_000, "nested too deeply"),
    ],
)
def test_a_broken_file_is_refused_and_nothing_is_written(at: Path, text: str, reason: str) -> None:
    path = at / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text)
    ran = _run(install, "claude-code")
    assert isinstance(ran.exception, InputError)
    assert reason in ran.exception.message
    assert ran.exception.hint
    assert _files(at) == {".claude/settings.json": text.encode()}


def test_other_files_that_cannot_be_edited_are_refused(at: Path) -> None:
    (at / ".claude").mkdir()
    settings = at / ".claude/settings.json"
    settings.write_bytes(b"\xff\xfe{\x00}\x00")
    assert "is not UTF-8" in str(_run(install, "claude-code").exception)
    settings.unlink()
    settings.mkdir()
    assert "cannot be read" in str(_run(install, "claude-code").exception)
    (at / ".mcp.json").write_text('{"mcpServers": {"archivist": {"command": "other"}}}')
    settings.rmdir()
    assert "is another program's server" in str(_run(install, "claude-code").exception)
    (at / ".codex").mkdir()
    (at / ".codex/config.toml").write_text('mcp_servers = { archivist = { command = "x" } }\n')
    assert "is another program's server" in str(_run(install, "codex").exception)
    for text in ('mcp_servers = { db = { command = "x" } }\n', "mcp_servers = 3\n"):
        (at / ".codex/config.toml").write_text(text)
        assert "cannot be edited safely" in str(_run(install, "codex").exception)
    (at / ".codex/config.toml").write_text(
        'mcp_servers = { archivist = { command = "archivist", args = ["mcp"] } }\n'
    )
    assert "cannot be edited safely" in str(_run(uninstall, "codex").exception)
    (at / ".codex/config.toml").write_text("[broken\n")
    assert "config.toml" in str(_run(install, "codex").exception)
    assert not (at / ".codex/hooks.json").exists()


def test_words_that_are_off_are_refused(at: Path) -> None:
    assert _run(install, "nobody").exit_code == 2
    assert _run(install, "codex", "folder").exit_code == 2
    assert _run(install, "plugin").exit_code == 2
    assert list(at.iterdir()) == []


def test_json_names_every_file(at: Path) -> None:
    told = json.loads(_run(install, "claude-code", "--dry-run", "--json").stdout)
    assert (told["client"], told["dry_run"], told["backups"]) == ("claude-code", True, [])
    assert [(Path(each["file"]).name, each["action"]) for each in told["changes"]] == [
        ("settings.json", "create"),
        (".mcp.json", "create"),
    ]
    (at / ".mcp.json").write_text("{}\n")
    told = json.loads(_run(install, "claude-code", "--json").stdout)
    assert [Path(copy).name for copy in told["backups"]] == [".mcp.json.archivist-backup"]
    told = json.loads(_run(uninstall, "claude-code", "--json").stdout)
    done = {Path(each["file"]).name: each["action"] for each in told["changes"]}
    assert done == {"settings.local.json": "unchanged", "settings.json": "remove", ".mcp.json": "change"}


# Laws

names = st.text("abcxyz", min_size=1, max_size=4)
scalars = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=6)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, trees, max_size=4)
indents = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(documents, indents, st.sampled_from(CLIENTS), st.booleans())
def test_installing_adds_and_uninstalling_restores(
    value: dict[str, Any], indent: Any, client: str, is_crlf: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n") if is_crlf else text
    for target in targets(client, InstallLocation(Path("/nowhere"))):
        if target.path.suffix != ".json":
            continue
        added = target.add(text)
        assert target.add(added) == added
        found = json.loads(added)
        assert {key: found[key] for key in value} == value
        taken = target.take(added, text)
        assert json.loads(taken) == value
        assert taken == text
        blind = target.take(added, None)
        left = json.loads(blind)
        is_versioned = left.pop("version", None) is not None
        assert left == value
        assert is_versioned or blind == text


@given(documents, indents, names, trees)
def test_putting_and_cutting_change_one_place(
    value: dict[str, Any], indent: Any, name: str, new: object
) -> None:
    text = json.dumps(value, indent=indent)
    put = jsonc.put(text, (name,), new)
    assert json.loads(put) == {**value, name: new}
    cut = jsonc.remove(put, (name,))
    assert json.loads(cut) == {key: each for key, each in value.items() if key != name}
    if name not in value and value:
        assert "".join(cut.split()) == "".join(text.split())


@given(st.lists(trees, min_size=1, max_size=4), indents, st.data())
def test_cutting_from_a_list_leaves_the_others(items: list[Any], indent: Any, data: st.DataObject) -> None:
    text = json.dumps({"x": items}, indent=indent)
    place = data.draw(st.integers(0, len(items) - 1))
    assert json.loads(jsonc.remove(text, ("x", place))) == {"x": items[:place] + items[place + 1 :]}
    assert json.loads(jsonc.append(text, ("x",), items[0])) == {"x": [*items, items[0]]}


@given(st.dictionaries(names, st.integers(0, 9) | st.text("ab'#", max_size=5), max_size=3), names)
def test_a_table_goes_in_and_out_of_any_toml(values: dict[str, Any], section: str) -> None:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    text = "\n".join([f"[{section}]", *lines, "# the end", ""])
    path = ("mcp_servers", "archivist")
    added = entries.add_server(text, path, {"command": "archivist", "args": ["mcp"]}, "x.toml", is_user=False)
    assert entries.add_server(added, path, {"command": "archivist"}, "x.toml", is_user=False) == added
    assert tomllib.loads(entries.remove_server(added, None, path, "x.toml")) == tomllib.loads(text)


def test_a_backup_is_the_file_without_us(at: Path) -> None:
    path = at / ".mcp.json"
    path.write_text('{"a": 1}')
    wanted = targets("claude-code", InstallLocation(at))
    changes.apply_changes(changes.plan_install(wanted), wanted)
    copy = changes.backup_of(path)
    assert copy.read_text() == '{"a": 1}'
    path.write_text(path.read_text().replace("1", "2"))
    _run(uninstall, "claude-code")
    assert (json.loads(path.read_text()), copy.read_text()) == ({"a": 2}, '{"a": 1}')
    changes.apply_changes(changes.plan_install(wanted), wanted)
    assert json.loads(copy.read_text()) == {"a": 2}


def test_the_example_project_is_what_installing_makes() -> None:
    example = Path(__file__).parents[2] / "examples" / "claude-code-project"
    wanted = targets("claude-code", InstallLocation(example))
    assert all(target.path.is_file() for target in wanted)
    assert [change.action for change in changes.plan_install(wanted)] == ["unchanged", "unchanged"]
    assert [change.after for change in changes.plan_uninstall(wanted)] == [None, None]
