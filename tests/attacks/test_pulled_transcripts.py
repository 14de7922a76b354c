"""Transcripts that came with a repository, however it hides that: they are no sessions of the user's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.attacks.test_banks_in_git import look_like_a_repository
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

CAME = "it came with the repository"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def transcripts(project: Path, archivist: Command) -> Path:
    """Return the folder of transcripts in a repository with the user's own bank."""
    git(project, "init", "-q")
    archivist("init")
    (project / "agent-transcripts").mkdir()
    return project / "agent-transcripts"


def capture(archivist: Command) -> str:
    """Capture the transcripts; return what is said, after checking that nothing was learnt."""
    ran = archivist("workspace", "transcripts", "capture")
    assert archivist("episodes", "show", "theirs").code != 0
    return ran.err


@pytest.mark.req("N7")
def test_a_folder_that_looks_like_a_repository_hides_nothing(
    archivist: Command, project: Path, transcripts: Path
) -> None:
    agent_log(transcripts / "theirs.jsonl", MISSING_MODULE, session="theirs")
    look_like_a_repository(transcripts)
    git(project, "add", "-A")
    assert f"theirs.jsonl: {CAME}" in capture(archivist)


@pytest.mark.req("N7")
def test_settings_that_name_another_folder_for_the_files_hide_nothing(
    archivist: Command, project: Path, transcripts: Path, tmp_path: Path
) -> None:
    agent_log(transcripts / "theirs.jsonl", MISSING_MODULE, session="theirs")
    git(project, "add", "-A")
    git(project, "config", "core.worktree", str(tmp_path))
    assert f"theirs.jsonl: {CAME}" in capture(archivist)


@pytest.mark.req("N7")
def test_a_submodule_hides_nothing(
    archivist: Command, project: Path, transcripts: Path, tmp_path: Path
) -> None:
    (tmp_path / "upstream").mkdir()
    agent_log(tmp_path / "upstream" / "theirs.jsonl", MISSING_MODULE, session="theirs")
    git(tmp_path / "upstream", "init", "-q")
    git(tmp_path / "upstream", "add", "-A")
    git(tmp_path / "upstream", "commit", "-qm", "1")
    git(project, "submodule", "add", str(tmp_path / "upstream"), "agent-transcripts/x")
    assert f"x/theirs.jsonl: {CAME}" in capture(archivist)
    agent_log(transcripts / "x" / "mine.jsonl", MISSING_MODULE, session="mine")
    capture(archivist)
    assert archivist("episodes", "show", "mine").code == 0


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", ["linked.jsonl", "folder"])
def test_a_link_to_a_file_of_the_repository_hides_nothing(
    archivist: Command, project: Path, transcripts: Path, name: str
) -> None:
    agent_log(project / "theirs.jsonl", MISSING_MODULE, session="theirs")
    git(project, "add", "theirs.jsonl")
    if name == "folder":
        transcripts.rmdir()
        (project / "logs").mkdir()
        (project / "theirs.jsonl").rename(project / "logs" / "theirs.jsonl")
        transcripts.symlink_to("logs")
        git(project, "add", "-A")
    else:
        (transcripts / name).symlink_to("../theirs.jsonl")
    assert CAME in capture(archivist)


@pytest.mark.req("N7")
@pytest.mark.parametrize("way", ["link", "file", "setting", "bare"])
def test_what_git_keeps_for_itself_is_no_transcript(
    archivist: Command, project: Path, transcripts: Path, way: str
) -> None:
    kept = project / ".git" / "lfs" / "objects" / "ab"
    if way == "bare":
        git(project, "init", "-q", "--bare", "store")
        kept = project / "store" / "lfs"
    kept.mkdir(parents=True)
    agent_log(kept / "theirs.jsonl", MISSING_MODULE, session="theirs")
    if way == "setting":
        (project / ".archivist" / "config.toml").write_text('[workspace]\ntranscripts = ".git/lfs"\n')
    elif way == "file":
        (transcripts / "linked.jsonl").symlink_to(kept / "theirs.jsonl")
    else:
        transcripts.rmdir()
        transcripts.symlink_to(kept.relative_to(project))
    assert CAME in capture(archivist)
    archivist("capture", str(project / ".git" / "lfs" if way == "setting" else transcripts))
    assert archivist("episodes", "show", "theirs").code != 0


@pytest.mark.req("N7")
def test_where_git_does_not_answer_every_transcript_came_with_the_repository(
    archivist: Command, project: Path, transcripts: Path
) -> None:
    agent_log(transcripts / "theirs.jsonl", MISSING_MODULE, session="theirs")
    (project / ".git" / "config").write_text("[core\n")
    assert f"theirs.jsonl: {CAME}" in capture(archivist)


@pytest.mark.req("N7")
def test_without_a_repository_it_is_said_whose_sessions_they_are_taken_for(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    (project / "agent-transcripts").mkdir()
    agent_log(project / "agent-transcripts" / "a.jsonl", MISSING_MODULE, session="a")
    ran = archivist("workspace", "transcripts", "capture")
    assert f"taken for sessions of yours: the logs in {project / 'agent-transcripts'}" in ran.err
