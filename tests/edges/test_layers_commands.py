"""The commands of the shared layers: knowledge, attempts, artifacts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from archivist import Bank
from archivist.edges.cli.group import exit_code
from archivist.edges.cli.layers import artifacts, episodes, knowledge
from archivist.edges.cli.session import Session
from archivist.errors import ArchivistError
from archivist.records import Episode
from tests.banks import lay_bank
from tests.conftest import Ran

GROUPS: dict[str, click.Group] = {"knowledge": knowledge, "artifacts": artifacts, "episodes": episodes}
Layered = Callable[..., Ran]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch) -> Layered:
    """Run a command of the layers in a project that has a bank."""
    lay_bank(project)
    monkeypatch.chdir(project)

    def call(group: str, *words: str, actor: str = "human:ada", stdin: str = "") -> Ran:
        session = Session(str(project), actor)
        ran = CliRunner().invoke(GROUPS[group], words, obj=session, input=stdin, standalone_mode=False)
        match ran.exception:
            case None:
                code = ran.return_value if isinstance(ran.return_value, int) else 0
                return Ran(code, ran.stdout, ran.stderr)
            case ArchivistError() as error:
                return Ran(exit_code(error), ran.stdout, f"{ran.stderr}{error.message}\nhint: {error.hint}")
            case click.ClickException() as error:
                return Ran(error.exit_code, ran.stdout, error.format_message())
            case error:
                raise error

    return call


def _json(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_every_command_has_help_and_json(group: str) -> None:
    for name, command in GROUPS[group].commands.items():
        assert command.help
        assert command.help.endswith((".", ". ")) or "\n" in command.help
        if name != "atif":
            assert any("--json" in each.opts for each in command.params), name


# Knowledge


@pytest.mark.req("M2")
def test_set_list_show_and_remove(run: Layered) -> None:
    assert run("knowledge", "list").err == "no facts\n"
    said = run("knowledge", "set", "convention", "imports", "Use the node: prefix", "--confidence", "0.9")
    assert said.out == "convention/imports  Use the node: prefix\n"
    assert run("knowledge", "list").out == (
        "Fact                Sure  Source  Value\nconvention/imports  0.9   user    Use the node: prefix\n"
    )
    assert "confidence  0.9" in run("knowledge", "show", "convention/imports").out
    (fact,) = _json(run("knowledge", "list", "--json", "--matching", "node prefix"))["facts"]
    assert (fact["category"], fact["key"], fact["confidence"]) == ("convention", "imports", 0.9)
    assert _json(run("knowledge", "show", fact["id"], "--json"))["fact"] == fact
    run("knowledge", "set", "fact", "long", "-", stdin="From a pipe\n")
    assert "  From a pipe\n" in run("knowledge", "show", "fact/long").out
    gone = run("knowledge", "remove", "convention/imports", "nothing/here")
    assert (gone.code, gone.out) == (3, "")
    assert len(_json(run("knowledge", "list", "--json"))["facts"]) == 2
    assert run("knowledge", "remove", "convention/imports", "fact/long").out.startswith("2 facts removed")
    assert "removed" in run("knowledge", "history", "fact/long").out


@pytest.mark.req("M3")
def test_a_conflict_is_told_listed_and_decided(run: Layered) -> None:
    run("knowledge", "set", "decision", "orm", "None")
    lost = run("knowledge", "set", "decision", "orm", "Prisma", "--source", "b", "--confidence", "0.4")
    assert lost.out == "decision/orm  None\n"
    assert "user is surer (1) than b (0.4)" in lost.err
    assert "--uphold or --reverse" in lost.err
    (conflict,) = _json(run("knowledge", "conflicts", "--json"))["conflicts"]
    assert (conflict["kept"], conflict["lost"]) == ("None", "Prisma")
    assert "None (user)" in run("knowledge", "conflicts").out
    assert "b says 'Prisma'" in run("knowledge", "show", "decision/orm").out
    assert run("knowledge", "decide", conflict["id"]).code == 2
    done = run("knowledge", "decide", conflict["id"], "--reverse", actor="orchestrator:main")
    assert done.out == "decision/orm  reversed: Prisma\n"
    assert run("knowledge", "decide", conflict["id"], "--uphold").code == 4
    assert run("knowledge", "conflicts").err == "no open conflicts\n"
    assert "reversed" in run("knowledge", "conflicts", "--all").out
    story = run("knowledge", "history", "decision/orm").out
    assert "'Prisma' of b lost, reversed by orchestrator:main" in story
    again = _json(run("knowledge", "set", "decision", "orm", "None", "--json", actor="orchestrator"))
    assert (again["changed"], again["conflict"]["status"]) == (True, "open")
    run("knowledge", "decide", "decision/orm", "--uphold")
    bound = run("knowledge", "set", "decision", "orm", "Prisma", "--source", "b")
    assert bound.out == "decision/orm  None\n"
    assert "human:ada decided against it" in bound.err


@pytest.mark.req("M11")
def test_shared_context_is_imported(run: Layered, project: Path) -> None:
    (project / "notes.md").write_text("# Conventions\n## Imports\nnode:\n", "utf-8")
    assert run("knowledge", "import", "notes.md").out == "facts: 1 added, 0 changed, 0 unchanged, 0 removed\n"
    again = run("knowledge", "import", "notes.md", "none.md")
    assert (again.code, again.err) == (7, "archivist: none.md: no such file\n")
    assert run("knowledge", "list").out.splitlines()[1].startswith("convention/imports")
    run("knowledge", "set", "convention", "imports", "relative")
    assert _json(run("knowledge", "import", "notes.md", "--json"))["unchanged"] == 1


@pytest.mark.req("M8")
def test_an_agent_is_refused_by_name_layer_and_verb(run: Layered, project: Path) -> None:
    refused = run("knowledge", "set", "c", "k", "v", actor="agent:coder")
    assert (refused.code, refused.out) == (9, "")
    assert refused.err.startswith("agent:coder may not write knowledge\nhint: ")
    told = ("T", "--agent", "coder", "--action", "failed", "--approach", "x")
    assert run("episodes", "log", *told, actor="agent:coder").code == 9
    (project / "a").write_text("x")
    assert run("artifacts", "register", "a", "--task", "T", "--agent", "b", actor="agent:coder").code == 9
    with Bank.open(project) as bank:
        assert [denial.entry.record for denial in bank.ledger.denials()] == [
            "knowledge",
            "episodes",
            "artifacts of 'b'",
        ]


@pytest.mark.parametrize(
    "words",
    [
        ("set", "", "k", "v"),
        ("set", "c", "", "v"),
        ("set", "c", "k", "v", "--confidence", "nan"),
        ("set", "c", "k", "v", "--confidence", "1.5"),
        ("set", "c" * 10_000, "k", "v"),
        ("list", "--min-confidence", "7"),
    ],
)
def test_bad_words_end_with_4(run: Layered, words: tuple[str, ...]) -> None:
    assert run("knowledge", *words).code == 4
    assert _json(run("knowledge", "list", "--json")) == {"facts": []}


# Attempts


@pytest.mark.req("M4")
def test_log_tried_failures_and_similar(run: Layered) -> None:
    def log(action: str, approach: str, *more: str) -> Ran:
        words = ("--agent", "coder", "--action", action, "--approach", approach, *more)
        return run("episodes", "log", "Speed up the CSV parser", *words)

    assert log("failed", "rewrite in C", "--outcome", "segfault", "--id", "x1").out == (
        "x1  failed Speed up the CSV parser: rewrite in C: segfault\n"
    )
    log("completed", "read in blocks", "--outcome", "faster", "--duration-ms", "1500", "--tokens-in", "9")
    assert run("episodes", "tried", "Speed up the CSV parser").out == (
        "Tries  Result  Agents  Approach        Last outcome\n"
        "1      worked  coder   read in blocks  faster\n"
        "1      failed  coder   rewrite in C    segfault\n"
    )
    assert run("episodes", "tried", "none").err == "no attempts at this task\n"
    assert run("episodes", "failures", "coder").out.splitlines()[1].startswith("x1")
    assert run("episodes", "failures", "ada").err == "no failures\n"
    found = _json(run("episodes", "similar", "a faster CSV parser", "--json"))["approaches"]
    assert [each["approach"] for each in found] == ["read in blocks", "rewrite in C"]
    assert run("episodes", "similar", "a faster CSV parser").out.startswith("Score")
    shown = run("episodes", "show", "x1").out
    assert "  approach    rewrite in C\n" in shown
    assert _json(run("episodes", "list", "--agent", "coder", "--action", "failed", "--json"))["episodes"][0][
        "approach"
    ] == ("rewrite in C")
    assert run("episodes", "list", "--project", "x", "--agent", "coder").code == 2
    assert log("failed", "x", "--time", "yesterday").code == 4
    assert log("failed", "x", "--duration-ms", "-1").code == 4


def test_runs_and_attempts_are_listed_together(run: Layered, project: Path) -> None:
    with Bank.open(project) as bank:
        bank.runs.record_episode(Episode(id="run-1", task="Do it", agent="coder", summary="It was done"))
    run("episodes", "log", "T", "--agent", "a", "--action", "completed", "--approach", "patch", "--id", "x")
    lines = run("episodes", "list").out.splitlines()
    assert lines[1].split() == ["x", "success", "a", "completed", "T:", "patch"]
    assert lines[2].endswith("It was done")


@pytest.mark.req("M10")
def test_stats_as_table_json_and_picture(run: Layered, project: Path) -> None:
    assert "no attempts" in run("episodes", "stats").err
    for day, action in enumerate(["completed", "failed", "completed"], 1):
        words = ("--action", action, "--approach", "patch", "--time", f"2026-03-0{day}T12:00:00Z")
        run("episodes", "log", "T", "--agent", "coder", "--duration-ms", "2000", *words)
    table = run("episodes", "stats", "--by", "agent").out.splitlines()
    assert table[1].split("  ")[0] == "3"
    assert table[1].endswith("coder")
    assert "67%" in table[1]
    assert "2.0 s" in table[1]
    told = _json(run("episodes", "stats", "--by", "agent", "--step", "day", "--json"))
    assert [each["name"] for each in told["rows"][0]["periods"]] == [f"2026-03-0{day}" for day in (1, 2, 3)]
    assert 0 < told["total"]["low"] < told["total"]["rate"] < told["total"]["high"] < 1
    drawn = run("episodes", "stats", "--step", "day", "--svg", "rates.svg")
    assert "wrote rates.svg" in drawn.err
    ElementTree.parse(project / "rates.svg")  # noqa: S314 our own text
    assert run("episodes", "stats", "--svg", "none/rates.svg").code == 4
    assert _json(run("episodes", "stats", "--since", "2026-03-03", "--json"))["total"]["attempts"] == 1


# Artifacts


@pytest.mark.req("M5")
def test_register_list_versions_verify_and_remove(
    run: Layered, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("artifacts", "list").err == "no artifacts\n"
    (project / "out").mkdir()
    (project / "out" / "a.txt").write_text("hello\n")
    monkeypatch.chdir(project / "out")
    made = _json(run("artifacts", "register", "a.txt", "--task", "T-1", "--agent", "coder", "--json"))
    assert made["artifacts"][0]["path"] == "out/a.txt"
    assert run("artifacts", "verify").err == "1 of 1 file the same\n"
    (project / "out" / "a.txt").write_text("other\n")
    checked = run("artifacts", "verify", "a.txt")
    assert (checked.code, checked.out.splitlines()[1].split()[:2]) == (1, ["changed", "out/a.txt"])
    monkeypatch.chdir(project)
    states = run("artifacts", "verify", "--json", "out/a.txt")
    assert (states.code, json.loads(states.out)["artifacts"][0]["state"]) == (1, "changed")
    run("artifacts", "register", "out/a.txt", "--task", "T-1", "--agent", "coder", "--type", "document")
    assert run("artifacts", "verify").code == 0
    listed = _json(run("artifacts", "versions", "out/a.txt", "--json"))["artifacts"]
    assert listed[1]["previous"] == listed[0]["id"]
    assert len(run("artifacts", "list", "--task", "T-1", "--path", "out/a.txt").out.splitlines()) == 3
    assert listed[1]["checksum"] in run("artifacts", "show", "out/a.txt").out
    assert run("artifacts", "remove", "out/a.txt", "none").code == 3
    assert run("artifacts", "remove", listed[0]["id"]).out == "1 artifact removed: out/a.txt\n"
    assert _json(run("artifacts", "show", "out/a.txt", "--json"))["artifact"]["previous"] == ""
    assert (project / "out" / "a.txt").exists()


@pytest.mark.req("M5")
@pytest.mark.parametrize("path", ["..", "../x", "/etc/passwd", "pipe", "out", "loop", "link", "none", ""])
def test_what_cannot_be_registered_ends_with_4(run: Layered, project: Path, path: str) -> None:
    os.mkfifo(project / "pipe")
    (project / "out").mkdir()
    (project / "loop").symlink_to("loop")
    (project / "link").symlink_to("/etc/passwd")
    refused = run("artifacts", "register", path, "--task", "T")
    assert (refused.code, refused.out) == (4, "")
    assert "hint: " in refused.err


def test_files_before_one_that_is_refused_are_told(run: Layered, project: Path) -> None:
    (project / "a").write_text("x")
    ran = run("artifacts", "register", "a", "none", "--task", "T")
    assert ran.code == 4
    assert ran.out.splitlines()[1].endswith("a")


@pytest.mark.req("M3")
def test_several_conflicts_are_listed_for_a_fact_and_upheld_at_once(run: Layered) -> None:
    for source in ("planner", "coder", "tester"):
        run("knowledge", "set", "decision", "orm", f"as {source} says", "--source", source)
    run("knowledge", "set", "other", "key", "a", "--source", "x")
    run("knowledge", "set", "other", "key", "b", "--source", "y")
    assert len(_json(run("knowledge", "conflicts", "decision/orm", "--json"))["conflicts"]) == 2
    refused = run("knowledge", "decide", "decision/orm", "--reverse")
    assert (refused.code, refused.err.count(" says ")) == (4, 2)
    assert "archivist knowledge conflicts decision/orm lists them" in refused.err
    done = run("knowledge", "decide", "decision/orm", "--uphold")
    assert (done.out, done.err) == ("decision/orm  upheld: as tester says\n", "2 conflicts decided\n")
    assert len(_json(run("knowledge", "conflicts", "--json"))["conflicts"]) == 1
    assert run("knowledge", "conflicts", "no/such").code == 3


def test_bounds_hold_their_rate(run: Layered) -> None:
    run("episodes", "log", "T", "--agent", "a", "--action", "failed", "--approach", "x")
    assert "0%       0% to 79%" in run("episodes", "stats").out
