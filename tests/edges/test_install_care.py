"""Installing among what people made by hand: nothing of theirs is replaced, removed, or half written."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Ran

from archivist.edges.cli.install import install, uninstall
from archivist.edges.cli.session import Session
from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import chain, changes
from archivist.edges.install.entries import OUR_PROGRAM, ProgramCall, calls_in
from archivist.errors import InputError
from tests.banks import lay_bank
from tests.commands import Command

STOP = ".codex/hooks.json"


def _run(command: Any, *words: str) -> Ran:
    return CliRunner().invoke(command, list(words), obj=Session("", ""))


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _put(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return text


# Another's plugin, server or line


@pytest.mark.parametrize("name", [".mcp.json", "plugin.json", ".claude-plugin/plugin.json"])
def test_a_folder_with_a_file_of_that_name_is_not_our_plugin(at: Path, name: str) -> None:
    _put(at / name, '{"mcpServers": {"github": {"env": {"TOKEN": "t"}}}}')
    (at / "empty").mkdir()
    before = _files(at)
    assert "has other contents" in str(_run(install, "plugin", ".").exception)
    assert _run(uninstall, "plugin", ".").stderr == "plugin is not installed here\n"
    assert _files(at) == before
    assert (at / "empty").is_dir()


def test_a_projects_settings_are_not_a_plugins(at: Path) -> None:
    _run(install, "plugin", "made")
    _put(at / ".mcp.json", (at / "made/.mcp.json").read_text())
    _run(uninstall, "plugin", ".")
    assert (at / ".mcp.json").is_file()


def test_a_plugins_file_that_somebody_changed_is_left_and_named(at: Path) -> None:
    folder, said = at / "made", "kept, because it was changed: made/.mcp.json\n"
    _run(install, "plugin", "made")
    mine = _put(folder / ".mcp.json", "{}")
    (folder / "mcp.json").unlink()
    (folder / "skills/mine").mkdir()
    assert said in _run(install, "plugin", "made").stderr
    assert ((folder / ".mcp.json").read_text(), (folder / "mcp.json").is_file()) == (mine, True)
    assert said in _run(uninstall, "plugin", "made").stderr
    assert _files(folder) == {".mcp.json": b"{}"}
    assert (folder / "skills/mine").is_dir()


def test_a_plugin_of_an_earlier_version_is_renewed_and_removed(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archivist.edges.install import plugin

    monkeypatch.setattr(plugin, "__version__", "0.0.1")
    _run(install, "plugin", "made")
    monkeypatch.setattr(plugin, "__version__", "0.0.2")
    assert _run(uninstall, "plugin", "made", "--dry-run").stdout.count("+++ /dev/null") == 10
    _run(install, "plugin", "made")
    assert json.loads((at / "made/plugin.json").read_text())["version"] == "0.0.2"
    monkeypatch.setattr(plugin, "__version__", "0.0.3")
    _run(uninstall, "plugin", "made")
    assert not (at / "made").exists()


THEIRS = """\
[mcp_servers.archivist]
command = "/opt/acme/paper-archivist"

[mcp_servers.archivist.env]
KEY = "k"
"""


def test_anothers_server_of_our_name_is_refused_and_stays(at: Path) -> None:
    path = at / ".codex/config.toml"
    _put(path, THEIRS)
    ran = _run(install, "codex")
    assert isinstance(ran.exception, InputError)
    assert "'mcp_servers.archivist' is another program's server" in ran.exception.message
    assert _run(uninstall, "codex").stderr == "codex is not installed here\n"
    assert _files(at) == {".codex/config.toml": THEIRS.encode()}
    assert chain.find_installs(at, None, CLIENTS) == []


def test_what_a_user_changed_in_codexs_table_is_kept(at: Path) -> None:
    _run(install, "codex")
    path = at / ".codex/config.toml"
    text = path.read_text().replace('"archivist"\n', f'"{OUR_PROGRAM}"\nenv = {{ A = "b" }}\n')
    _put(path, text := text.replace("tool_timeout_sec = 60", "tool_timeout_sec = 300"))
    assert tomllib.loads(text)["mcp_servers"]["archivist"]["env"] == {"A": "b"}
    assert "installed already" in _run(install, "codex").stderr
    assert path.read_text() == text
    _run(uninstall, "codex")
    assert list(at.iterdir()) == []


@pytest.mark.parametrize(
    ("client", "name"), [("claude-code", ".mcp.json"), ("gemini", ".gemini/settings.json")]
)
def test_a_server_by_its_whole_path_stays_so(at: Path, client: str, name: str) -> None:
    _run(install, client)
    text = (at / name).read_text().replace('"archivist",', f'"{OUR_PROGRAM}",')
    _put(at / name, text)
    assert "installed already" in _run(install, client).stderr
    assert (at / name).read_text() == text


# Lines that people wrote


@pytest.mark.parametrize(
    ("command", "words", "is_alone"),
    [
        ("archivist hook codex stop", ("hook", "codex", "stop"), True),
        ("  archivist hook codex\n", ("hook", "codex"), True),
        ("/opt/x/archivist --bank 'my bank' hook codex", ("hook", "codex"), True),
        ("archivist --bank=x --set a.b=c --actor me hook codex", ("hook", "codex"), True),
        ('"C:\\Program Files\\archivist.exe" hook codex', ("hook", "codex"), True),
        ('"$HOME/bin/archivist" hook codex', ("hook", "codex"), True),
        ("python3 -m archivist hook codex", ("hook", "codex"), True),
        ("ARCHIVIST_HOME=/x archivist hook codex", ("hook", "codex"), True),
        ("archivist hook codex; notify-send done", ("hook", "codex"), False),
        ("notify-send 'it; is' && archivist hook codex", ("hook", "codex"), False),
        ("archivist hook codex 2>/dev/null", ("hook", "codex", "2"), False),
        ("(archivist hook codex)", ("hook", "codex"), False),
        ("timeout 5 archivist hook codex", ("hook", "codex"), False),
        ('archivist hook codex "', ("hook", "codex"), False),
    ],
)
def test_a_call_of_ours_is_known_in_every_form(command: str, words: tuple[str, ...], is_alone: bool) -> None:
    parts = ("--bank", "-m ", "ARCHIVIST_HOME", "$HOME", "C:\\")
    is_redirected = any(part in command for part in parts)
    (call,) = calls_in({"command": command})
    assert call._replace(line=()) == ProgramCall(words, is_alone, is_redirected)
    assert not call.line or "archivist" in call.line[0]


@pytest.mark.parametrize("entry", ["archivist", None, {"url": "x"}, {"command": "archivist-like hook codex"}])
def test_what_calls_another_program_is_no_call_of_ours(entry: object) -> None:
    assert list(calls_in(entry)) == []


def test_a_line_that_does_more_than_ours_stays_and_does_for_its_event(at: Path) -> None:
    line = {"type": "command", "command": "archivist hook codex stop; notify-send done"}
    text = _put(at / STOP, json.dumps({"hooks": {"Stop": [{"hooks": [line]}]}}))
    _run(uninstall, "codex")
    assert (at / STOP).read_text() == text
    _run(install, "codex")
    found = json.loads((at / STOP).read_text())["hooks"]
    assert (found["Stop"], len(found)) == ([{"hooks": [line]}], 6)
    _run(uninstall, "codex")
    assert (at / STOP).read_text() == text


@pytest.mark.parametrize(
    "command",
    [f"{OUR_PROGRAM} hook codex Stop", "archivist hook codex"],
)
def test_a_hook_of_ours_that_somebody_wrote_is_not_doubled(at: Path, command: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    _put(at / STOP, text)
    _run(install, "codex")
    found = json.loads((at / STOP).read_text())["hooks"]["Stop"]
    assert [each["command"] for group in found for each in group["hooks"]] == [command]
    _run(uninstall, "codex")
    assert not (at / STOP).exists()


# All files or none


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(at: Path) -> None:
    _put(at / ".cursor/hooks.json", '{"version": 1}')
    _put(at / ".cursor/rules", "A file in the place of the folder")
    before = _files(at)
    ran = _run(install, "cursor")
    assert isinstance(ran.exception, InputError)
    assert "archivist.mdc' cannot be written" in ran.exception.message
    assert "nothing was changed" in ran.exception.message
    assert ran.stdout == ""
    assert _files(at) == before


def test_a_link_is_refused_before_anything_is_written(at: Path, tmp_path: Path) -> None:
    (at / ".mcp.json").symlink_to(tmp_path / ("x" * 250))
    text = ".mcp.json' is a link, and nothing is written through a link"
    assert text in str(_run(install, "claude-code").exception)
    assert not (at / ".claude").exists()


def test_folders_made_on_the_way_go_again(at: Path) -> None:
    _put(at / ".github", "A file in the place of the folder")
    assert "nothing was changed" in str(_run(install, "vscode").exception)
    assert not (at / ".vscode").exists()


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_read_only_file_is_refused(at: Path, words: tuple[str, ...]) -> None:
    path = at / ".mcp.json"
    _put(path, "{}")
    path.chmod(0o444)
    assert "is read-only and stays as it is" in str(_run(install, "claude-code", *words).exception)
    assert _files(at) == {".mcp.json": b"{}"}
    assert chain.find_installs(at, None, CLIENTS) == []
    path.chmod(0o644)
    _run(install, "claude-code")
    path.chmod(0o444)
    before = _files(at)
    assert "is read-only" in str(_run(uninstall, "claude-code", *words).exception)
    assert _files(at) == before


def test_a_dangling_link_of_the_users_own_dangles_again(at: Path, home: Path, tmp_path: Path) -> None:
    assert at.is_dir()
    path, kept = home / ".claude/settings.json", tmp_path / "dotfiles.json"
    path.parent.mkdir(parents=True)
    path.symlink_to(kept)
    _run(install, "claude-code", "--user")
    assert "archivist" in kept.read_text()
    _run(uninstall, "claude-code", "--user")
    assert (path.is_symlink(), kept.exists()) == (True, False)


def test_a_copy_has_the_rights_of_the_file(at: Path) -> None:
    _put(at / ".mcp.json", '{"a": "secret"}')
    (at / ".mcp.json").chmod(0o600)
    _run(install, "claude-code")
    assert changes.backup_of(at / ".mcp.json").stat().st_mode & 0o777 == 0o600


# Both scopes


@pytest.mark.parametrize("client", CLIENTS)
def test_hooks_in_both_scopes_are_told(at: Path, home: Path, client: str) -> None:
    home.mkdir(exist_ok=True)
    assert "twice" not in _run(install, client, "--user").stderr
    said = _run(install, client).stderr
    hint = f"hint: {client} is installed for this project and for you, so that each hook fires twice:"
    runs_once = client in ("claude-code", "opencode")
    assert (f"{hint} archivist uninstall {client} --user, or --project\n" in said) != runs_once
    check = chain.check_chain(at, home, at)[0]
    assert (check.is_well, "fires twice" in check.text) == ((True, False) if runs_once else (False, True))


def test_hooks_of_a_clone_and_its_project_are_told_with_the_command_that_removes_one(at: Path) -> None:
    _git(at, "init", "-q")
    _run(install, "copilot")
    said = _run(install, "copilot", "--local").stderr
    line = "copilot is installed for this clone and for this project, so that each hook fires twice"
    assert f"hint: {line}: archivist uninstall copilot --project, or --local\n" in said
    _run(uninstall, "copilot", "--local")
    check = chain.check_chain(at, None, at)[0]
    assert (check.is_well, check.text) == (True, "copilot (project)")


def test_a_home_that_is_a_project_has_one_set_of_hooks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(exist_ok=True)
    monkeypatch.chdir(home)
    _run(install, "codex", "--user")
    assert "twice" not in _run(install, "codex").stderr


# Byte for byte, without a copy


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}', '{ "a": [1, 2] }\n', '{"a": 1,}', '{\n  "a": 1,\n}\n', '{"url": "http://x", // y\n}',
        '{"a": 1, "hooks": {"Stop": [{"hooks": []}]}}', '{\n  "hooks": {"Stop": [{"command": "x"},]},\n}',
        '{"hooks": {"Stop": [{\n  "command": "x"\n}]}}', "{}", "{}\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "vscode", "copilot", "opencode"])
def test_removal_is_exact_where_it_can_be_known(at: Path, client: str, text: str) -> None:
    from archivist.edges.install.clients import InstallLocation, targets

    for target in targets(client, InstallLocation(at)):
        if target.path.suffix == ".json":
            assert target.take(target.add(text), None) == text


@pytest.mark.parametrize("text", ['model = "x"\n', "[a]\nb = 1\n\n\n", "# only a remark\n", "\n", ""])
def test_removal_of_a_table_is_exact(at: Path, text: str) -> None:
    from archivist.edges.install.clients import InstallLocation, targets

    table = targets("codex", InstallLocation(at))[1]
    assert table.take(table.add(text), None) == text


def test_what_the_copy_tells_is_heeded_when_the_file_has_changed(at: Path) -> None:
    path = at / ".cursor/hooks.json"
    _put(path, '{\n  "a": 1,\n  "hooks": {"stop": []}\n}\n')
    _run(install, "cursor")
    _put(path, path.read_text().replace('"a": 1', '"a": 2'))
    _run(uninstall, "cursor")
    assert path.read_text() == '{\n  "a": 2,\n  "hooks": {"stop": []}\n}\n'


def test_a_cursor_file_of_ours_alone_goes_though_somebody_touched_it(at: Path) -> None:
    path = at / ".cursor/hooks.json"
    _run(install, "cursor")
    _put(path, path.read_text().replace('stop"}', 'stop", "timeout": 9}'))
    _run(uninstall, "cursor")
    assert list(at.iterdir()) == []
    text = _put(path, '{"version": 1}')
    assert "not installed here" in _run(uninstall, "cursor").stderr
    assert path.read_text() == text


def test_a_broken_copy_stops_nobody(at: Path) -> None:
    path = at / ".mcp.json"
    _put(path, '{"mcpServers": {}}')
    _run(install, "claude-code")
    _put(changes.backup_of(at / ".mcp.json"), "{")
    assert _run(uninstall, "claude-code").exit_code == 0
    assert "archivist" not in path.read_text()


@pytest.mark.parametrize("text", ["// nothing yet\n", "/* nothing */", "\n"])
def test_a_file_of_remarks_alone_is_a_file(at: Path, text: str) -> None:
    path = at / ".claude/settings.json"
    _put(path, text)
    assert _run(install, "claude-code").exit_code == 0
    assert path.read_text().startswith(text)
    assert "SessionStart" in path.read_text()
    _run(uninstall, "claude-code")
    assert path.read_text() == text


def test_settings_go_where_a_client_that_is_opened_here_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = tmp_path / "ws" / "api"
    (nested / ".git").mkdir(parents=True)
    (nested / "src").mkdir()
    lay_bank(tmp_path / "ws")
    monkeypatch.chdir(nested / "src")
    ran = CliRunner().invoke(install, ["claude-code"], obj=Session("", ""))
    assert ran.exit_code == 0
    assert (nested / ".claude" / "settings.json").is_file()
    assert not (tmp_path / "ws" / ".claude").exists()
    monkeypatch.chdir(tmp_path / "ws")
    CliRunner().invoke(install, ["claude-code"], obj=Session("", ""))
    assert (tmp_path / "ws" / ".claude" / "settings.json").is_file()


# What a reader, git and other clients see


@pytest.mark.usefixtures("at", "home")
def test_the_users_files_are_told_from_the_projects() -> None:
    of_user = _run(install, "codex", "--user", "--dry-run").stdout
    of_project = _run(install, "codex", "--project", "--dry-run").stdout
    assert "+++ ~/.codex/" in of_user
    assert "+++ .codex/" in of_project
    assert "~" not in of_project


def test_both_scopes_at_once_are_refused(at: Path) -> None:
    ran = _run(install, "codex", "--user", "--project")
    assert (ran.exit_code, "exclude each other" in ran.stderr) == (2, True)
    assert _files(at) == {}


@pytest.mark.parametrize("clients", [("claude-code", "vscode"), ("vscode", "claude-code")])
def test_two_clients_of_which_one_runs_the_others_hooks_are_told_of(
    at: Path, clients: tuple[str, ...]
) -> None:
    first, second = (_run(install, client) for client in clients)
    line = "VS Code runs claude-code's hooks too, so that a session in it is briefed twice"
    assert line not in first.stderr
    assert f"hint: {line}: archivist uninstall vscode --project" in second.stderr
    check = next(each for each in chain.check_chain(at, None, at) if each.name == "clients")
    assert (check.is_well, line in check.text) == (False, True)
    _run(uninstall, "vscode")
    assert line not in _run(install, "claude-code").stderr


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def test_git_does_not_see_the_copies(at: Path) -> None:
    _git(at, "init", "-q")
    listed = (at / ".git/info/exclude").read_bytes()
    _put(at / ".claude/settings.json", '{"model": "opus"}\n')
    (at / ".vscode").mkdir()
    for client in ("claude-code", "vscode"):
        _run(install, client)
    assert changes.backup_of(at / ".claude/settings.json").exists()
    assert "archivist-backup" not in _git(at, "status", "--porcelain", "--untracked-files=all")
    for client in ("vscode", "claude-code"):
        _run(uninstall, client)
    assert (at / ".git/info/exclude").read_bytes() == listed
    assert _git(at, "status", "--porcelain", "--untracked-files=all") == "?? .claude/settings.json\n"


def test_the_copies_of_another_worktree_stay_unseen(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _git(at, "init", "-q")
    _git(at, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "first")
    listed = (at / ".git/info/exclude").read_bytes()
    tree = at / "tree"
    _git(at, "worktree", "add", "-q", str(tree))
    for folder in (at, tree):
        _put(folder / ".claude/settings.json", '{"model": "opus"}\n')
        monkeypatch.chdir(folder)
        _run(install, "claude-code")
    _run(uninstall, "claude-code")
    assert "archivist-backup" not in _git(at, "status", "--porcelain", "--untracked-files=all")
    monkeypatch.chdir(at)
    _run(uninstall, "claude-code")
    assert (at / ".git/info/exclude").read_bytes() == listed


@pytest.mark.parametrize("listed", [None, b"", b"*.log", b"*.log\n", b"*.archivist-backup\n", b"a\r\n"])
def test_gits_own_list_is_given_back_as_it_was(at: Path, listed: bytes | None) -> None:
    _git(at, "init", "-q", "--template=")
    path = at / ".git/info/exclude"
    if listed is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(listed)
    _put(at / ".claude/settings.json", '{"model": "opus"}\n')
    for _ in range(2):
        _run(install, "claude-code")
        assert "archivist-backup" not in _git(at, "status", "--porcelain", "--untracked-files=all")
        _run(uninstall, "claude-code")
        assert (path.read_bytes() if path.exists() else None) == listed
        assert path.parent.exists() == (listed is not None)


def test_the_folders_of_a_users_settings_go_when_we_made_them(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    home = at / "Code"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    _run(install, "vscode", "--user")
    assert any(home.rglob("mcp.json"))
    _run(uninstall, "vscode", "--user")
    assert list(home.iterdir()) == []


def test_an_empty_folder_that_was_there_stays(at: Path) -> None:
    (at / ".vscode").mkdir()
    _run(install, "vscode")
    _run(uninstall, "vscode")
    assert [path.name for path in at.iterdir()] == [".vscode"]
    assert list((at / ".vscode").iterdir()) == []


@pytest.mark.req("F12")
def test_setup_says_what_to_do_about_words_and_about_the_root(archivist_process: Command) -> None:
    done = archivist_process("setup", "codex")
    assert (done.code, "hint: archivist install codex" in done.err) == (2, True)
    done = archivist_process("setup", "--yes", cwd=Path("/"))
    assert done.code == 4
    assert "'/' is no project" in done.err
    assert not Path("/.archivist").exists()


def test_words_of_other_programs_are_understood(archivist: Command) -> None:
    assert "'--version'" in archivist("version").err
    assert "'brief --explain'" in archivist("why").err
    assert "hint: archivist undo m-001" in archivist("undo").err
