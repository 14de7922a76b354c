"""The settings on the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from archivist.config import Config
from archivist.config.sources import flatten_config, load_effective, variable_of
from archivist.edges.cli.config import MEANINGS
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
SOURCES = ("file", "environment", "flag")
# Beside the missing module, a program that does not know an option: two lessons from one run.
UNKNOWN_OPTION = [
    ("ruff check --fixes src", "error: unexpected argument '--fixes' found\n\n  tip: '--fix' exists", True),
    ("ruff check --fix src", "All checks passed!", False),
]


def _json(ran: Any) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# Reflection


def _finish(archivist: Command, project: Path, source: str, key: str, value: str, *, failed: bool) -> Any:
    """Finish a run with one setting given by a file, a variable or a flag; return what came of it."""
    log = agent_log(project / "log.jsonl", [*MISSING_MODULE, *UNKNOWN_OPTION], is_error=failed)
    words = ["run", "finish", str(log), "--status", "failed" if failed else "success", "--json"]
    environment = {}
    if source == "file":
        section, _, name = key.partition(".")
        text = f"[{section}]\n{name} = {value}\n"
        (project.parent / "home" / ".archivist" / "config.toml").write_text(text, encoding="utf-8")
    elif source == "environment":
        environment[variable_of(key)] = value
    else:
        words = ["--set", f"{key}={value}", *words]
    return _json(archivist(*words, **environment))["runs"][0]


@pytest.mark.parametrize("failed", [False, True])
def test_without_a_setting_a_run_teaches_two_lessons(bank_cli: Command, project: Path, failed: bool) -> None:
    done = _finish(bank_cli, project, "flag", "brief.max_lessons", "3", failed=failed)
    assert (done["status"], done["created"]) == ("reflected", 2)


@pytest.mark.req("A13")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("key", "value", "failed", "status", "created"),
    [
        ("reflect.enabled", "false", False, "skipped", 0),
        ("reflect.max_memories_per_run", "1", False, "reflected", 1),
        ("reflect.on_session_success", "false", False, "skipped", 0),
        ("reflect.on_session_success", "false", True, "reflected", 2),
        ("reflect.on_session_failure", "false", True, "skipped", 0),
        ("reflect.min_importance_to_persist", "1.0", False, "reflected", 0),
    ],
)
def test_reflection_is_steered_by_file_environment_and_flag(
    bank_cli: Command,
    project: Path,
    source: str,
    key: str,
    value: str,
    failed: bool,
    status: str,
    created: int,
) -> None:
    done = _finish(bank_cli, project, source, key, value, failed=failed)
    assert (done["status"], done["created"]) == (status, created)


@pytest.mark.req("A13")
@pytest.mark.parametrize("source", ["nothing", *SOURCES])
def test_reflection_on_healers_is_steered_by_file_environment_and_flag(
    bank_cli: Command, project: Path, source: str
) -> None:
    episode = {"id": "heal-1", "kind": "healer_run", "project": "billing", "status": "success"}
    (project / "heal.jsonl").write_text(json.dumps({"episode": episode}) + "\n", encoding="utf-8")
    words, environment = ["run", "finish", "heal.jsonl", "--json"], {}
    if source == "nothing":
        assert _json(bank_cli(*words))["runs"][0]["status"] == "reflected"
        return
    if source == "file":
        assert bank_cli("config", "set", "reflect.on_healer_invocation", "no", "--global").code == 0
    elif source == "environment":
        environment = {"ARCHIVIST_REFLECT__ON_HEALER_INVOCATION": "no"}
    else:
        words = ["--set", "reflect.on_healer_invocation=no", *words]
    done = _json(bank_cli(*words, **environment))["runs"][0]
    assert (done["scenario"], done["status"]) == ("healer_invocation", "skipped")


# Showing


def test_each_value_is_shown_with_where_it_came_from(bank_cli: Command, home: Path) -> None:
    ran = bank_cli("config")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"{len(flatten_config(Config()))} settings at the default; --all shows every one\n"
    assert bank_cli("config", "set", "reflect.lease_s", "60", "--global").code == 0
    assert bank_cli("config", "set", "brief.max_candidates", "2", "--global").code == 0
    assert bank_cli("config", "set", "brief.max_candidates", "5").code == 0
    words = ("--set", "brief.max_lessons=4", "config")
    ran = bank_cli(*words, ARCHIVIST_BRIEF__MAX_LESSONS="3", ARCHIVIST_BRIEF__BUDGET_TOKENS="99")
    rows = [re.split(r"  +", line) for line in ran.out.splitlines()]
    assert rows == [
        ["Key", "Value", "From"],
        ["brief.max_lessons", "4", "--set brief.max_lessons=4"],
        ["brief.budget_tokens", "99", "ARCHIVIST_BRIEF__BUDGET_TOKENS"],
        ["brief.max_candidates", "5", ".archivist/config.toml"],
        ["reflect.lease_s", "60.0", str(home / ".archivist" / "config.toml")],
    ]
    shown = _json(bank_cli("--set", "decay.unseen_runs=9", "config", "--json"))["settings"]
    assert {each["key"]: (each["value"], each["default"], each["layer"]) for each in shown} == {
        "brief.max_candidates": (5, 3, "project"),
        "decay.unseen_runs": (9, 10, "flag"),
        "reflect.lease_s": (60.0, 300.0, "global"),
    }


def test_one_value_stands_alone_on_stdout(bank_cli: Command) -> None:
    ran = bank_cli("config", "recall.preset")
    assert (ran.out, "from the default" in ran.err) == ("relevance\n", True)
    ran = bank_cli("config", "reflect.enabled", ARCHIVIST_REFLECT__ENABLED="off")
    assert (ran.out, "from ARCHIVIST_REFLECT__ENABLED" in ran.err) == ("false\n", True)
    assert _json(bank_cli("config", "brief.max_lessons", "--json"))["layer"] == "default"


def test_all_of_it_is_a_configuration_file_that_means_the_same(bank_cli: Command, tmp_path: Path) -> None:
    words = ("--set", "brief.max_lessons=4", "--set", 'recall.endpoint_model=a "b"', "config", "--all")
    out = bank_cli(*words).out
    (tmp_path / "config.toml").write_text(out, "utf-8")
    config = load_effective(None, home=tmp_path, environment={}).config
    changed = {"brief.max_lessons": 4, "recall.endpoint_model": 'a "b"'}
    assert flatten_config(config) == {**flatten_config(Config()), **changed}
    assert "# maximum number of known issues of a domain · from --set brief.max_lessons=4, default 10" in out
    assert len(_json(bank_cli("config", "--all", "--json"))["settings"]) == len(flatten_config(Config()))


def test_without_a_bank_the_global_settings_are_shown_and_only_they_can_be_set(archivist: Command) -> None:
    assert archivist("config", "set", "brief.max_lessons", "3").code == 5
    assert archivist("config", "set", "brief.max_lessons", "3", "--global").code == 0
    assert archivist("config", "brief.max_lessons").out == "3\n"


# Changing


def test_a_change_is_written_and_taken_back_without_losing_a_comment(
    bank_cli: Command, project: Path
) -> None:
    path = project / ".archivist" / "config.toml"
    path.write_text("# ours\n[brief] # small\nmax_lessons = 13 # skim\n", encoding="utf-8")
    assert bank_cli("config", "set", "brief.max_lessons", "14").code == 0
    given = _json(bank_cli("config", "set", "workspace.allow_fields", 'a "b"', "--json"))
    assert (given["value"], given["changed"]) == ('a "b"', True)
    assert path.read_text("utf-8") == (
        '# ours\n[brief] # small\nmax_lessons = 14 # skim\n\n[workspace]\nallow_fields = "a \\"b\\""\n'
    )
    assert bank_cli("config", "set", "brief.max_lessons", "14").out.startswith("Already there")
    taken = _json(bank_cli("config", "unset", "brief.max_lessons", "--json"))
    assert taken == {"key": "brief.max_lessons", "file": str(path), "changed": True}
    assert bank_cli("config", "brief.max_lessons").out == "10\n"
    assert "is not set" in bank_cli("config", "unset", "brief.max_lessons").out
    assert "# ours\n[brief] # small\n" in path.read_text("utf-8")


def test_a_change_that_something_stronger_hides_says_so(bank_cli: Command) -> None:
    ran = bank_cli("config", "set", "brief.max_lessons", "14", ARCHIVIST_BRIEF__MAX_LESSONS="5")
    assert "hint: ARCHIVIST_BRIEF__MAX_LESSONS overrides it here" in ran.err
    ran = bank_cli("config", "set", "brief.max_lessons", "4", "--global")
    assert re.search(r"hint: .*work/\.archivist/config\.toml overrides it here", ran.err)
    assert "hint" not in bank_cli("config", "set", "brief.max_lessons", "16").err


def test_a_key_that_no_setting_has_can_be_taken_out(bank_cli: Command, project: Path) -> None:
    path = project / ".archivist" / "config.toml"
    path.write_text("[brief]\nmax_lesons = 3\n", encoding="utf-8")
    assert bank_cli("lessons", "list").code == 4
    assert bank_cli("config", "unset", "brief.max_lesons").code == 0
    assert bank_cli("lessons", "list").code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["config", "brief.max_lesons"], "did you mean 'brief.max_lessons'?"),
        (["config", "set", "brief.max_lesons", "3"], "did you mean 'brief.max_lessons'?"),
        (["config", "set", "brief.max_lessons", "none"], "expected a number, not 'none'"),
        (["config", "unset", "brief.max_lesons"], "did you mean 'brief.max_lessons'?"),
        (["--set", "brief.max_lesons=3", "brief"], "did you mean 'brief.max_lessons'?"),
        (["--set", "brief", "completion", "bash"], "expected KEY=VALUE"),
    ],
)
def test_a_wrong_key_or_value_is_one_line_and_a_hint(
    bank_cli: Command, project: Path, words: list[str], complaint: str
) -> None:
    ran = bank_cli(*words)
    assert (ran.code, ran.out) == (4, "")
    assert complaint in ran.err
    assert not (project / ".archivist" / "config.toml").exists()


_CHANGING = """
import sys
from pathlib import Path
from archivist.config.sources import parse_toml
from archivist.config.sources import change_file
path, key = Path(sys.argv[1]), sys.argv[2]
section, _, name = key.partition(".")
print("ready", flush=True)
sys.stdin.readline()
for number in [*range(1, 61), 20]:
    assert change_file(path, key, number)
    assert parse_toml(path.read_text(), str(path))[section][name] == number, number
"""


def test_processes_that_change_settings_at_once_lose_none(bank_cli: Command, project: Path) -> None:
    path = project / ".archivist" / "config.toml"
    keys = ("brief.max_lessons", "brief.max_task_lessons")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _CHANGING, str(path), key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for key in keys
    ]
    for each in running:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    ended = [(each.communicate(timeout=60)[1], each.returncode) for each in running]
    assert ended == [("", 0)] * 2
    assert [bank_cli("config", key).out for key in keys] == ["20\n", "20\n"]


def test_commands_that_set_different_keys_at_once_are_all_heeded(
    bank_cli: Command, archivist_process: Command
) -> None:
    keys = ["brief.max_task_lessons", "brief.max_candidates", "core.recently_shipped"]
    with ThreadPoolExecutor(len(keys)) as pool:
        ran = list(pool.map(lambda key: archivist_process("config", "set", key, "12"), keys))
    assert [each.code for each in ran] == [0] * len(keys), ran
    shown = _json(bank_cli("config", "--json"))["settings"]
    assert {each["key"]: each["value"] for each in shown} == dict.fromkeys(keys, 12)


def test_a_process_killed_while_it_writes_leaves_the_old_file_or_the_new(
    bank_cli: Command, project: Path
) -> None:
    path = project / ".archivist" / "config.toml"
    assert bank_cli("config", "set", "brief.max_lessons", "13").code == 0
    code = (
        "import sys\nfrom pathlib import Path\nfrom archivist.config.sources import change_file\n"
        "print('ready', flush=True)\nnumber = 0\n"
        "while True:\n    number += 1\n    change_file(Path(sys.argv[1]), 'brief.max_lessons', number)\n"
    )
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(20):
            assert list(tomllib.loads(path.read_text("utf-8"))["brief"]) == ["max_lessons"]
        writer.kill()
        writer.communicate()
        assert list(tomllib.loads(path.read_text("utf-8"))["brief"]) == ["max_lessons"]


# The cold start, and the reference


def test_a_cold_brief_without_settings_reads_no_toml(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    code = (
        "import sys\nfrom archivist.edges.cli.main import main\n"
        "try:\n    main(['brief'])\nexcept SystemExit:\n    pass\n"
        "print('IMPORTED', *sorted({'tomllib', 'difflib', 'tempfile'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.rpartition("IMPORTED")[2].split() == []


def _rows() -> Iterator[tuple[str, str, str]]:
    for line in REFERENCE.read_text("utf-8").splitlines():
        if found := re.fullmatch(r"\| `(\w+\.\w+)` \| (.+?) \| (.+) \|", line):
            yield found[1], found[2].strip("`"), found[3].replace("`", "")


def test_the_reference_and_the_command_say_the_same_of_every_setting() -> None:
    rows = list(_rows())
    assert [key for key, _, _ in rows] == list(flatten_config(Config())) == list(MEANINGS)
    for key, default, meaning in rows:
        assert tomllib.loads(f"x = {default}")["x"] == flatten_config(Config())[key], key
        assert meaning.startswith(MEANINGS[key]), key
