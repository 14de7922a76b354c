"""What a repository can make of a path is looked at in one place: links out of it, loops, devices, names."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

import archivist as package
from archivist.errors import InputError
from archivist.files.open import open_regular, read_if_any, refuse_way_out
from archivist.files.write import make_folder
from tests.commands import Command
from tests.e2e.client_homes import make_repository
from tests.samples import MISSING_MODULE, agent_log

SOURCE = Path(package.__file__).parent
_PRIVATE = "# Notes\n\nThe margin of HORSE is private.\n"
# Calls that follow any link, wait for a pipe or raise for a loop.
_DIRECT = frozenset(("read_text", "read_bytes", "resolve"))
# Why each of them may read without `files/open.py`.
DIRECTLY = {
    "files/open.py": "it is the one way",
    "files/write.py": "its own temporary files",
    "files/hook_log.py": "under the user's home",
    "files/locks.py": "under the user's home and /proc",
    "files/processes.py": "/proc",
    "trust.py": "under the user's home, and the bank's own log",
    "exchange/outbox_service.py": "under the user's home",
    "reflect/model/consent_service.py": "under the user's home",
    "edges/install/changes.py": "under the user's home",
    "edges/install/clients.py": "the package's own files",
    "edges/install/plugin.py": "the package's own files",
    "edges/web/rendering.py": "the package's own files",
    "edges/http/bodies.py": "a new file in a folder of the server's own",
    "recall/embedders/onnx.py": "a model that the user's configuration names",
    "recall/embedders/static.py": "the package's own table",
    "store/sqlite/copies.py": "banks, which `trust.refuse_links` looks at",
    "brief/liveness_service.py": "its own bounds: a hook reads hundreds of a repository's files",
}


def test_no_module_reads_a_file_past_the_one_way() -> None:
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            is_open = isinstance(called, ast.Name) and called.id == "open"
            if isinstance(called, ast.Attribute):
                is_file = bool(node.args) and isinstance(node.args[0], ast.Constant)
                is_open = called.attr in _DIRECT or (called.attr == "open" and is_file)
            if is_open:
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == set(DIRECTLY)


@pytest.fixture
def clone(archivist: Command, tmp_path: Path) -> Path:
    """Return a clone with a bank, beside another repository with something private."""
    private = make_repository(tmp_path / "shop")
    (private / "docs").mkdir()
    (private / "docs" / "bank.md").write_text(_PRIVATE)
    (private / "docs" / "SKILL.md").write_text(f"---\nname: x\ndescription: Use when\n---\n{_PRIVATE}")
    made = make_repository(tmp_path / "clone")
    archivist("init", cwd=made)
    return made


_LINKS = {
    "the file": {"bank.md": "../shop/docs/bank.md", "SKILL.md": "../shop/docs/SKILL.md"},
    "its folder": {"given": "../shop/docs"},
    "a repository": {"given": "../shop"},
    "a link to a link": {"given": "other", "other": "../shop/docs"},
    "a parent": {"up": "..", "given": "up/shop/docs"},
}


@pytest.mark.req("N7")
@pytest.mark.parametrize("way", _LINKS)
def test_no_command_reads_through_a_link_out_of_the_repository(
    archivist: Command, clone: Path, way: str
) -> None:
    for name, target in _LINKS[way].items():
        (clone / name).symlink_to(target)
    folder = {"the file": ".", "a repository": "given/docs"}.get(way, "given")
    for words in (
        f"core follow playbook {folder}/bank.md", f"archive watch {folder}",
        f"knowledge import {folder}", f"knowledge import {folder}/bank.md",
        f"archive import-bank {folder}", f"archive import-bank {folder}/bank.md",
        f"workspace skills save x --from {folder}/SKILL.md --scope w --create",
        f"workspace save w --create --from {folder}/bank.md", f"import {folder}/bank.md",
        f"stream import {folder}/bank.md", f"capture {folder}/bank.md", f"capture {folder}",
        f"artifacts register {folder}/bank.md --task t", f"brief --for healer --error {folder}/bank.md",
        *(() if folder == "." else (f"workspace search margin --root {folder}",)),
    ):  # fmt: skip
        ran = archivist(*words.split(), cwd=clone)
        assert ran.code in (4, 7) or words.startswith("archive watch"), (words, ran)
        assert "HORSE" not in ran.out + ran.err, words
    for words in ("archive search margin", "recall margin", "knowledge list", "core render", "brief"):
        assert "HORSE" not in archivist(*words.split(), cwd=clone).out, words


@pytest.mark.req("N7")
def test_links_of_the_users_own_and_inside_a_repository_are_followed(tmp_path: Path, home: Path) -> None:
    clone = make_repository(tmp_path / "clone")
    (clone / "real.md").write_text("text")
    (clone / "inside.md").symlink_to("real.md")
    (tmp_path / "mine").symlink_to(clone)
    assert read_if_any(tmp_path / "mine" / "inside.md") == b"text"
    # A home that is a repository (dotfiles) is the user's own.
    home.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    (home / "link.md").symlink_to(clone / "real.md")
    assert read_if_any(home / "link.md") == b"text"
    assert read_if_any(clone / "none.md") is None


@pytest.mark.req("N7")
def test_no_link_before_two_dots_is_passed_over(tmp_path: Path) -> None:
    clone, other = make_repository(tmp_path / "clone"), make_repository(tmp_path / "shop")
    (other / "sub").mkdir()
    (other / "text").write_text("HORSE")
    (clone / "out").symlink_to(other / "sub")
    with pytest.raises(InputError, match="leaves its repository"):
        refuse_way_out(clone / "out" / ".." / "text")
    with pytest.raises(InputError, match="link"):
        make_folder(clone / "out" / ".." / "new")
    assert not (other / "new").exists()


_LOOKING = (
    "workspace hot", "workspace search x", "workspace lint", "workspace plans", "workspace graph",
    "workspace skills list", "workspace transcripts list", "knowledge import README.md", "knowledge import .",
    "archive watch .", "archive refresh", "archive import-bank .", "core follow rules AGENTS.md", "doctor",
    "setup --dry-run", "install all --dry-run", "workspace link all --dry-run",
    "artifacts register README.md --task t",
    "brief", "capture .", "import README.md", "share README.md", "config show", "workspace drafts", "status",
)  # fmt: skip
_NAMES = (
    "package.json", "Makefile", "pyproject.toml", ".gitignore", ".env", ".gemini/.env", ".mcp.json",
    ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".cursor/hooks.json",
    ".claude/rules/a.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md", "README.md", "progress.md", "bank.md",
    "resources/workspaces/w/OVERVIEW.md", "resources/workspaces/w/_plans/260101-a.md",
    "agent/rules/common/a.md", "agent-transcripts/a.jsonl", "user/memory/workspaces/w/lessons.md",
)  # fmt: skip


@pytest.mark.req("N7")
@pytest.mark.parametrize("target", ["loop", "/dev/ptmx", "/dev/zero", "pipe"])
def test_no_loop_device_or_pipe_ends_in_a_traceback(archivist: Command, tmp_path: Path, target: str) -> None:
    clone = make_repository(tmp_path / "clone")
    archivist("init", cwd=clone)
    for name in _NAMES:
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if target == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(path.name if target == "loop" else target)
    for words in _LOOKING:
        ran = archivist(*words.split(), cwd=clone)
        assert "Traceback" not in ran.err, (words, ran.err[-800:])


@pytest.mark.req("N7")
@pytest.mark.parametrize("folder", ["resources", "agent/rules/common", "agent-transcripts", "docs"])
def test_a_folder_in_a_loop_ends_in_no_traceback(archivist: Command, tmp_path: Path, folder: str) -> None:
    clone = make_repository(tmp_path / "clone")
    archivist("init", cwd=clone)
    (clone / folder).parent.mkdir(parents=True, exist_ok=True)
    (clone / folder).symlink_to(Path(folder).name)
    for words in (*_LOOKING, "knowledge import docs", "archive watch docs", "capture docs", "share docs"):
        ran = archivist(*words.split(), cwd=clone)
        assert "Traceback" not in ran.err, (words, ran.err[-800:])


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "words", ["share out/sub", "export out/sub", "install plugin out/sub", "backup out/sub/x.db"]
)
def test_no_folder_is_made_behind_a_link(archivist: Command, clone: Path, tmp_path: Path, words: str) -> None:
    (tmp_path / "victim").mkdir()
    (clone / "out").symlink_to(tmp_path / "victim")
    archivist("lessons", "add", "Prices are in cents", cwd=clone)
    ran = archivist(*words.split(), cwd=clone)
    assert (ran.code != 0, "link" in ran.err) == (True, True), ran
    assert list((tmp_path / "victim").iterdir()) == []


@pytest.mark.req("N7")
def test_a_line_end_in_a_name_begins_no_line(archivist: Command, project: Path) -> None:
    archivist("init")
    odd = "x\narchivist: all is well\n.jsonl"
    (project / "agent-transcripts").mkdir()
    (project / "docs").mkdir()
    agent_log(project / "agent-transcripts" / odd, MISSING_MODULE, session="odd")
    agent_log(project / "agent-transcripts" / "fine.jsonl", MISSING_MODULE, session="fine")
    plans = project / "resources" / "workspaces" / "w" / "_plans"
    plans.mkdir(parents=True)
    for name in (plans / "260101-a\nall: well\n.md", project / "docs" / "a\nb.md"):
        name.write_text("---\nname: x\nstatus: odd\n---\n\n## Text\n")
    for words in (
        "workspace transcripts list", "workspace transcripts capture", "capture agent-transcripts",
        "workspace plans", "workspace lint", "knowledge import docs", "archive watch docs",
    ):  # fmt: skip
        ran = archivist(*words.split())
        lines = (ran.out + ran.err).splitlines()
        assert not [line for line in lines if line in ("archivist: all is well", "all: well", "b.md")], words
    assert archivist("episodes", "show", "fine").code == 0


@pytest.mark.req("N7")
def test_logs_that_git_tracks_are_not_taken_from_a_folder(archivist: Command, tmp_path: Path) -> None:
    clone = make_repository(tmp_path / "clone")
    archivist("init", cwd=clone)
    (clone / "logs").mkdir()
    agent_log(clone / "logs" / "theirs.jsonl", MISSING_MODULE, session="theirs")
    subprocess.run(["git", "-C", str(clone), "add", "-f", "logs"], check=True)
    agent_log(clone / "logs" / "mine.jsonl", MISSING_MODULE, session="mine")
    for given in ("logs", "."):
        ran = archivist("capture", given, cwd=clone)
        assert (ran.code, "theirs.jsonl: it came with the repository" in ran.err) == (7, True), ran
    assert archivist("episodes", "show", "mine", cwd=clone).code == 0
    assert archivist("episodes", "show", "theirs", cwd=clone).code != 0
    # A file that is named is taken at the user's word.
    assert archivist("capture", "logs/theirs.jsonl", cwd=clone).code == 0


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/ptmx"), tmp_path / "a\0b"):
        with pytest.raises(InputError):
            open_regular(path)
