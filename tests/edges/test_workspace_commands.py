"""The workspace's commands: what they print, where, and how they end."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from archivist.edges.cli import main as command_line
from tests.conftest import Ran
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, make, plan_text


class Line:
    """The command line in this process, in one folder."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.root = root
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(root)

    def __call__(self, *words: str, given: bytes = b"") -> Ran:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        with pytest.raises(SystemExit) as ended:
            command_line.main(["workspace", *words])
        out, err = self._capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    def json(self, *words: str, code: int = 0, given: bytes = b"") -> Any:
        ran = self(*words, "--json", given=given)
        assert ran.code == code, ran.err
        return json.loads(ran.out)


@pytest.fixture
def line(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(make(project, DOCUMENTED), monkeypatch, capsys)


@pytest.mark.req("W3", "W12")
def test_plans_are_printed_as_yaml_and_json_without_a_bank(line: Line) -> None:
    ran = line("plans", "devtools", "--status", "in_progress")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        'plans:\n  - name: "Roadmap"\n    description: "What Roadmap is for"\n    status: in_progress\n'
    )
    assert [plan["name"] for plan in line.json("plans", "--tag", "spa")["plans"]] == ["Cache"]
    make(line.root, {f"{RESOURCES}/k/_plans/260501-fresh.md": plan_text("Fresh")})
    assert 'name: "Fresh"' in line("plans", "k").out
    assert not (line.root / ".archivist").exists()


def test_one_plan_is_printed_in_full(line: Line) -> None:
    assert (
        "    content: |\n      # Cache\n\n      The steps.\n    _meta:\n"
        in line("plans", "--full", "260301-cache").out
    )
    ran = line("plans", "--full", "260301-cahe")
    assert (ran.code, ran.err) == (
        3,
        "archivist: no plan '260301-cahe'\nhint: did you mean '260301-cache'?\n",
    )


@pytest.mark.req("W4", "W5")
def test_overview_and_learnings_are_printed(line: Line) -> None:
    assert [each["tier"] for each in line.json("overview", "devtools")["overviews"]] == ["T1", "T0", "T0"]
    assert [each["tier"] for each in line.json("overview", "devtools", "--full")["overviews"]] == ["T1"] * 3
    assert "abstract: " in line("overview", "devtools/common").out
    found = line.json("learnings", "devtools", "--tag", "jest", "--category", "testing")
    assert (found["decisions"], len(found["lessons"])) == ([], 1)
    assert line("learnings", "k").out.endswith("lessons: []\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["plans", "../x"], 4, "'../x' is not a scope"),
        (["overview", "/etc"], 4, "'/etc' is not a scope"),
        (["learnings", "a/b/c/d"], 4, "'a/b/c/d' is not a scope"),
        (["plans", "--status", "finished"], 4, "one of new, in_progress, partial, done, abandoned"),
        (["plans", "--root", "nowhere"], 2, "nowhere"),
        (["save"], 2, "nothing to save"),
        (["save", "devtools", "text", "--on-conflict", "win"], 4, "one of refuse, supersede, keep_both"),
        (["save", "devtools", "--from", "nowhere.json"], 4, "no such file: 'nowhere.json'"),
    ],
)
def test_what_is_off_is_said_on_stderr(line: Line, words: list[str], code: int, told: str) -> None:
    ran = line(*words)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


def test_nothing_found_is_an_answer_and_a_slip_of_the_pen_is_named(line: Line) -> None:
    assert line("plans", "devtools", "--tag", "nothing") == Ran(0, "plans: []\n", "")
    for command in ("plans", "overview", "learnings"):
        ran = line(command, "devtol")
        assert (ran.code, ran.out) == (3, "")
        assert ran.err == "archivist: no scope 'devtol'\nhint: did you mean 'devtools'?\n"
    assert line("plans", "devtools/nosuch").err.endswith("hint: there is devtools/common\n")
    assert line("lint", "devtools/nosuch").err.endswith("hint: there is devtools/common\n")


def test_an_empty_folder_says_where_it_looked(
    tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")
    ran = line("learnings")
    assert (ran.code, ran.out) == (0, "decisions: []\n\nlessons: []\n")
    assert "nothing below resources/workspaces or user/memory/workspaces" in ran.err


def test_the_root_is_found_upwards_and_can_be_named(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(line.root / RESOURCES / "devtools")
    assert len(line.json("plans")["plans"]) == 4
    monkeypatch.chdir("/")
    assert len(line.json("plans", "--root", str(line.root))["plans"]) == 4


def test_a_broken_file_is_named_beside_the_answer(line: Line) -> None:
    make(line.root, {f"{RESOURCES}/k/_plans/260501-x.md": "---\nname: a\ndescription: b: c\n---\n"})
    ran = line("plans", "k")
    assert (ran.code, ran.out.count("- name")) == (0, 2)
    assert f"{RESOURCES}/k/_plans/260501-x.md:3: broken-yaml" in ran.err


# Saving


@pytest.mark.req("W7")
def test_saving_reports_what_became_of_each(line: Line) -> None:
    saved = line(
        "save", "devtools", "Docker build needs BuildKit. Secret mounts fail without it.", "--tag", "docker"
    )
    assert (saved.code, saved.err) == (0, "")
    assert saved.out.startswith(
        "saved     lesson      Docker build needs BuildKit  user/memory/workspaces/devtools/lessons.md:"
    )
    again = line("save", "devtools", "Docker build needs BuildKit. Secret mounts fail without it.")
    assert again.out.startswith("known ")
    refused = line("save", "devtools", "Chose Temporal for workflow state management. Durable timers.")
    assert refused.code == 7
    assert "'xstate v5' against 'temporal'" in refused.out
    assert "--on-conflict supersede" in refused.err
    status = line("save", "devtools", "--plan", "260301-cache", "--status", "done")
    assert "new → done" in status.out


@pytest.mark.req("W7")
def test_items_come_as_json(line: Line) -> None:
    items = [
        {"text": "Kafka rebalances. Handlers are slow.", "tags": ["kafka"]},
        {"plan": "nothing", "status": "done"},
    ]
    told = line.json("save", "k", "--from", "-", code=7, given=json.dumps(items).encode())
    assert (told["saved"], told["refused"]) == (1, 1)
    assert [item["result"] for item in told["items"]] == ["saved", "refused"]
    lines = b'{"text": "Terraform fails without a lock."}\n"Plain words failed too."\n'
    assert line.json("save", "k", "--from", "-", given=lines)["saved"] == 2
    for bad in (b"{", b"\xff\xfe"):
        assert line("save", "k", "--from", "-", given=bad).code == 4


def test_a_bad_item_is_named_by_its_number_and_holds_up_no_other(line: Line) -> None:
    items: list[object] = [
        "The mail relay fails at night.",
        {"text": "a", "date": "soon"},
        {"txt": 1},
        7,
        "The proxy drops long headers.",
    ]
    told = line.json("save", "k", "--from", "-", code=7, given=json.dumps(items).encode())
    assert [each["result"] for each in told["items"]] == ["saved", "refused", "refused", "refused", "saved"]
    assert told["items"][1]["reason"].startswith("item 2: 'soon' is not a date")
    assert told["items"][2]["reason"].startswith("item 3: an item has no field 'txt'")
    assert told["items"][3]["reason"].startswith("item 4: 7 is not an item")


def test_a_plans_status_may_be_told_in_words(line: Line) -> None:
    ran = line("save", "devtools", "The plan Cache is done.", "--kind", "plan_status")
    assert (ran.code, "new → done" in ran.out) == (0, True)


def test_saving_goes_through_the_bank_where_there_is_one(line: Line) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["init"])
    with pytest.raises(SystemExit) as ended:
        command_line.main(
            ["--actor", "agent:coder", "workspace", "save", "k", "Builds fail at night. Ask operations."]
        )
    assert ended.value.code == 0
    assert "Builds fail at night" in (line.root / LEARNINGS / "k/lessons.md").read_text()


# Upkeep


@pytest.mark.req("W10")
def test_lint_prints_file_line_rule_and_remedy(line: Line) -> None:
    assert line("lint").code == 0
    make(line.root, {f"{RESOURCES}/k/_plans/260501-x.md": plan_text().replace("done", "finished")})
    ran = line("lint", "k")
    assert ran.code == 1
    assert ran.out == (
        f"{RESOURCES}/k/_plans/260501-x.md:4: bad-status: 'finished' is not a status  "
        "[one of new, in_progress, partial, done, abandoned]\n"
    )
    assert ran.err == "1 error, 0 warnings in 4 files\n"
    told = line.json("lint", code=1)
    assert told["problems"][0] == {
        "file": f"{RESOURCES}/k/_plans/260501-x.md",
        "line": 4,
        "rule": "bad-status",
        "text": "'finished' is not a status",
        "severity": "error",
        "remedy": "one of new, in_progress, partial, done, abandoned",
    }
    assert line("lint", "--rules").out.startswith("Rule")


@pytest.mark.req("W11")
def test_migrate_shows_a_diff_and_writes_only_when_told(line: Line) -> None:
    path = line.root / RESOURCES / "k/_plans/260501-bare.md"
    make(line.root, {f"{RESOURCES}/k/_plans/260501-bare.md": "# Bare plan\n\nTo do much.\n"})
    dry = line("migrate")
    assert (dry.code, dry.err) == (0, "1 file would change; --write makes the changes\n")
    assert "+status: new\n" in dry.out
    assert path.read_text().startswith("# Bare plan")
    assert line("migrate", "--dry-run").out == dry.out
    done = line("migrate", "--write")
    assert (
        done.out
        == f"changed  {RESOURCES}/k/_plans/260501-bare.md  (name, description, status, created, tags)\n"
    )
    again = line("migrate", "--write")
    assert (again.out, again.err) == ("", "0 files changed\n")
    make(line.root, {f"{RESOURCES}/k/_plans/260502-broken.md": "---\nname: [\n---\n"})
    left = line("migrate")
    assert left.code == 7
    assert "260502-broken.md:" in left.err
    assert line.json("migrate", code=7)["left"][0]["rule"] == "broken-yaml"


def test_a_folder_that_cannot_be_written_is_named(line: Line) -> None:
    if os.geteuid() == 0:
        # Root writes everywhere but through a file that stands where a folder should.
        make(line.root, {f"{LEARNINGS}/z": "in the way"})
        ran = line("save", "z", "It failed at night.", "--create")
    else:
        (line.root / LEARNINGS / "k").chmod(0o500)
        ran = line("save", "k", "It failed at night.")
        (line.root / LEARNINGS / "k").chmod(0o700)
    assert ran.code == 7
    assert ran.out.startswith("refused")


def test_every_command_has_help_and_json(line: Line) -> None:
    from archivist.edges.cli.workspace import workspace

    for name, command in workspace.commands.items():
        assert command.help, name
        assert any(option.name == "as_json" for option in command.params), name
    assert "migrate" in line("--help").out


@pytest.mark.req("W1", "W2")
def test_old_copies_for_agent_tools_are_named_by_hot_and_lint_and_refreshed_by_what_moves_rules(
    line: Line,
) -> None:
    hot = "agent/rules/common/profile.md"
    make(line.root, {hot: "<!-- budget: 50 lines -->\n# Profile\n\n- Answer in short sentences\n"})
    assert line("link", "cursor").code == 0
    make(line.root, {hot: "<!-- budget: 50 lines -->\n# Profile\n\n- Answer in long sentences\n- Use tabs\n"})
    copy = line.root / ".cursor/rules/profile.mdc"
    told = ".cursor/rules/profile.mdc: older than the hot files: archivist workspace link cursor"
    assert told in line("hot").err
    assert line.json("hot")["old_copies"][0]["path"] == ".cursor/rules/profile.mdc"
    lint = line("lint")
    assert "old-copy: older than the hot files" in lint.out
    assert "archivist workspace link cursor" in lint.out
    (tabs,) = (item for item in line.json("hot", "--items")["items"] if "tabs" in item["text"])
    assert line("hot", "demote", tabs["id"], "--to", "devtools").code == 0
    assert "long sentences" in copy.read_text()
    assert "tabs" not in copy.read_text()
    assert "old-copy" not in line("lint").out
