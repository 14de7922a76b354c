"""Settings that a pull brings into a project whose bank is the user's own: none may hurt what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

RULES = [f"Rule{number}: check thing{number} with tool{number}" for number in range(3)]


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[decay]\nunseen_runs = 1\npreferences_fade = true\n", "decay.unseen_runs"),
        ("[brief]\nbudget_tokens = 1\n", "brief.budget_tokens outside of 600 to 2400"),
        ("[brief]\nmax_task_lessons = 5\n", "brief.max_task_lessons outside of 6 to 24"),
        ("[brief]\nmax_candidates = 1\n", "brief.max_candidates outside of 3 to 12"),
        ("[brief]\nholdout = 0.9\n", "brief.holdout"),
        ("[reflect]\nenabled = false\n", "reflect.enabled"),
        ("[store]\nbusy_timeout_s = 86400\n", "store.busy_timeout_s"),
    ],
)
def test_a_pulled_setting_retires_and_silences_nothing(
    archivist: Command, project: Path, text: str, key: str
) -> None:
    archivist("init")
    for rule in RULES:
        archivist("lessons", "add", rule)
    file = project / ".archivist" / "config.toml"
    file.write_text(text)
    log = agent_log(project / "log.jsonl", MISSING_MODULE)
    ran = archivist("run", "finish", str(log))
    assert (ran.code, f"{file}: {key} may not be set by a project" in ran.err) == (4, True)
    flag = "--global " if key.startswith("store.") else ""
    assert f"archivist config set {flag}{key.split()[0]} VALUE" in ran.err
    file.unlink()
    said = json.dumps({"cwd": str(project), "session_id": "n-1"}).encode()
    told = archivist("hook", "claude-code", "session-start", stdin=said).out
    assert [rule for rule in RULES if rule not in told] == []


@pytest.mark.req("N7")
def test_setting_what_is_the_users_own_says_where_it_counts(archivist: Command, project: Path) -> None:
    archivist("init")
    ran = archivist("config", "set", "trust.folders", "/")
    assert (ran.code, "config set --global trust.folders VALUE" in ran.err) == (4, True)
    # What is the user's own for this project is kept under the home, where no pull reaches it.
    assert archivist("config", "set", "decay.unseen_runs", "5").code == 0
    assert not (project / ".archivist" / "config.toml").exists()
    assert archivist("config", "decay.unseen_runs").out == "5\n"


@pytest.mark.req("N7")
def test_a_pulled_setting_lowers_nothing_that_the_user_raised(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("config", "set", "--global", "brief.budget_tokens", "2000")
    rules = [f"Table{number}: {f'ask owner{number} of schema{number} first; ' * 15}" for number in range(6)]
    for rule in rules:
        archivist("lessons", "add", rule)
    said = json.dumps({"cwd": str(project), "session_id": "n-1"}).encode()
    (project / ".archivist" / "config.toml").write_text("[brief]\nbudget_tokens = 600\n")
    answer = archivist("hook", "claude-code", "session-start", stdin=said).out
    assert [rule for rule in rules if rule[:200] not in answer] == []
    assert archivist("config", "brief.budget_tokens").out == "2000\n"


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "key", ["resources", "learnings", "hot", "transcripts", "plans", "overview", "roots"]
)
def test_a_folder_name_with_a_nul_is_refused_with_its_key(
    archivist: Command, project: Path, key: str
) -> None:
    archivist("init")
    file = project / ".archivist" / "config.toml"
    file.write_text(f'[workspace]\n{key} = "a\\u0000b"\n')
    for words in (("workspace", "lint"), ("workspace", "hot"), ("brief",)):
        done = archivist(*words)
        assert (done.code, f"workspace.{key}: holds control characters" in done.err) == (4, True), done.err


@pytest.mark.req("N7")
def test_a_number_that_python_cannot_print_silences_nothing(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", RULES[0])
    (project / ".archivist" / "config.toml").write_text(f"[brief]\nmax_lessons = 0x{'f' * 5000}\n")
    ran = archivist("lessons", "list")
    assert (ran.code, "a number has more than 64 bits" in ran.err) == (4, True)
    said = json.dumps({"cwd": str(project), "session_id": "n-1"}).encode()
    told = archivist("hook", "claude-code", "session-start", stdin=said).out
    assert RULES[0] in told
    assert "archivist doctor" in told
