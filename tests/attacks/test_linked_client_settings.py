"""A repository's link in the place of a client's settings: what it leads to is neither read nor printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.commands import Command

FILES = {
    "claude-code": (".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "cursor": (".cursor/mcp.json", ".cursor/hooks.json"),
    "gemini": (".gemini/settings.json",),
    "vscode": (".vscode/mcp.json", ".github/hooks/archivist.json"),
}
KEYS = '{\n  "tokens": {"refresh": "hunter2"},\n  "OPENAI": "hunter9"\n}\n'
CASES = [(client, name) for client, names in FILES.items() for name in names]


@pytest.mark.req("N7")
@pytest.mark.parametrize("is_repository", [True, False])
@pytest.mark.parametrize(("client", "name"), CASES)
@pytest.mark.parametrize("secret", [KEYS, "hunter3 login y password hunter4\n"])
def test_what_a_link_leads_to_is_not_printed(
    archivist: Command, tmp_path: Path, client: str, name: str, is_repository: bool, secret: str
) -> None:
    (tmp_path / "auth.json").write_text(secret)
    clone = tmp_path / "clone"
    (clone / name).parent.mkdir(parents=True)
    (clone / name).symlink_to(tmp_path / "auth.json")
    if is_repository:
        subprocess.run(["git", "init", "-q", str(clone)], check=True)
        archivist("init", cwd=clone)
    for words in (
        ("install", client, "--dry-run"),
        ("install", client, "--local", "--dry-run"),
        ("install", client),
        ("uninstall", client, "--dry-run"),
    ):
        ran = archivist(*words, cwd=clone)
        assert ("hunter" in ran.out + ran.err, ran.code in (0, 4)) == (False, True), (words, ran)
    assert (clone / name).read_text() == secret


@pytest.mark.req("N7")
def test_a_folder_that_is_a_link_is_not_read_through(archivist: Command, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "settings.json").write_text(KEYS)
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".claude").symlink_to(tmp_path / "private")
    ran = archivist("install", "claude-code", "--dry-run", cwd=clone)
    assert (ran.code != 0, "is a link" in ran.err, "hunter" in ran.out + ran.err) == (True, True, False)


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", [".claude/settings.local.json", ".claude/settings.json", ".cursor/mcp.json"])
def test_setup_and_doctor_print_nothing_of_it(
    archivist: Command, tmp_path: Path, home: Path, name: str
) -> None:
    for folder in (".claude", ".cursor"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "auth.json").write_text(KEYS)
    clone = tmp_path / "clone"
    (clone / name).parent.mkdir(parents=True)
    (clone / name).symlink_to(tmp_path / "auth.json")
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    archivist("init", cwd=clone)
    for words in (("setup", "--dry-run"), ("doctor",), ("status",)):
        ran = archivist(*words, cwd=clone)
        assert ("hunter" in ran.out + ran.err, ran.code in (0, 1)) == (False, True), (words, ran)
    if name != ".claude/settings.json":
        assert "is a link" in archivist("setup", "--dry-run", cwd=clone).out


@pytest.mark.req("N7")
def test_a_committed_file_is_known_beside_the_files_of_a_bare_repository(
    archivist: Command, project: Path
) -> None:
    """In a folder with HEAD, refs and objects git takes that for the repository, or refuses to answer."""
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "init", "-q"], check=True)
    settings = project / ".claude" / "settings.local.json"
    for name in ("refs/k", "objects/k"):
        (settings.parent / name).parent.mkdir(parents=True)
        (settings.parent / name).touch()
    (settings.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (settings.parent / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tworktree = .\n")
    settings.write_text("{}")
    subprocess.run([*git, "add", "-f", "."], check=True)
    ran = archivist("install", "claude-code", "--local")
    assert (ran.code, "is committed" in ran.err) == (4, True)
    assert settings.read_text() == "{}"
