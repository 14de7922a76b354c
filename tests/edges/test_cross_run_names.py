"""The commands of the cross-run document, under its names and without a memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from tests.conftest import Command
from tests.samples import DOCUMENT_LESSONS, run_lines, write_jsonl


@pytest.mark.req("F10")
@pytest.mark.parametrize("words", [["decay"], ["decay", "--run", "r1"], ["run", "finish", "--run", "r1"]])
def test_without_a_bank_the_end_of_a_run_is_noted_and_exits_0(
    archivist: Command, project: Path, words: list[str]
) -> None:
    ran = archivist(*words)
    assert (ran.code, ran.out) == (0, "")
    assert "there is no bank here" in ran.err
    assert list(project.iterdir()) == []


@pytest.mark.req("F7", "A6")
def test_the_documents_short_names_are_accepted(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    assert archivist("add", "User prefers single bundled PR").code == 0
    assert "single bundled PR" in archivist("list").out
    assert archivist("forget", "m-001").code == 0
    assert "single bundled PR" not in archivist("list").out
    lines = run_lines("r1", {"severity": "bug", "description": "Missing null checks in handlers"})
    archivist("capture", str(write_jsonl(project / "r1.jsonl", lines)))
    assert archivist("reflect", "--session", "r1").code == 0
    assert "  add " not in archivist("--help").out


NULLS = {"severity": "bug", "description": "Missing null checks in handlers"}


def _learn(archivist: Command, project: Path, *runs: str) -> None:
    for run in runs:
        lines = run_lines(run, NULLS)
        assert archivist("extract", str(write_jsonl(project / f"{run}.jsonl", lines))).code == 0


@pytest.mark.req("F8")
@pytest.mark.parametrize(
    "words",
    [("inject", "code", "", "--audit"), ("brief", "--domain", "code", "--run"), ("run", "start", "--run")],
)
def test_what_was_told_is_in_the_audit_file_when_the_command_returns(
    archivist: Command, project: Path, words: tuple[str, ...]
) -> None:
    assert archivist("init").code == 0
    assert archivist("config", "set", "files.cross_run", "memory").code == 0
    archivist("add", "User prefers single bundled PR")
    for number in (1, 2):
        assert archivist(*words, f"r{number}").code == 0
        lines = (project / "memory" / "audit.jsonl").read_text().splitlines()
        assert [json.loads(line)["run_id"] for line in lines] == ["r1", "r2"][:number]


@pytest.mark.req("F8")
def test_a_run_that_ended_is_told_that_its_brief_is_not_recorded(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    _learn(archivist, project, "r1", "r2")
    told = archivist("inject", "general", "", "--audit", "r1")
    assert (told.code, "Missing null checks" in told.out) == (0, True)
    assert "the run 'r1' is finished: this brief is not recorded" in told.err
    assert "not recorded" not in archivist("inject", "general", "", "--audit", "r3").err


@pytest.mark.req("F8", "F10")
@pytest.mark.parametrize(
    "words",
    [("inject", "code", "", "--audit"), ("brief", "--domain", "code", "--run"), ("run", "start", "--run")],
)
def test_a_busy_bank_tells_what_it_knows(
    archivist: Command, project: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archivist("init").code == 0
    archivist("add", "User prefers single bundled PR")
    monkeypatch.setenv("ARCHIVIST_STORE__BUSY_TIMEOUT_S", "0.2")
    with Bank.open(project, create=False) as bank, bank.transaction():
        told = archivist(*words, "r1")
    assert (told.code, "single bundled PR" in told.out) == (0, True)
    assert "told, but not recorded" in told.err


@pytest.mark.req("F3")
def test_a_run_that_was_told_a_domain_has_it(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    archivist("inject", "writing", "", "--audit", "r1")
    _learn(archivist, project, "r1")
    (lesson,) = json.loads(archivist("list", "--json").out)["lessons"]
    assert lesson["domain"] == "writing"


@pytest.mark.req("F6", "F7")
def test_lists_show_the_frequency_that_decays(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    _learn(archivist, project, "r1", "r2", "r3")
    aged = [archivist("decay", "--run", f"later-{number}") for number in range(10)]
    assert "m-001  2x  active" in aged[-1].out
    assert archivist("list").out.splitlines()[1].split()[:2] == ["m-001", "2"]
    assert "[seen 3x, guardian]" in archivist("inject", "general").out


@pytest.mark.req("F7")
def test_the_documents_table_begins_with_its_columns(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    _learn(archivist, project, "r1")
    archivist("add", "Mine", "--repo", "other")
    documented = ["ID", "Freq", "Type", "Domain", "Description"]
    heading = archivist("list", "--repo", "*").out.splitlines()[0].split()
    assert (heading[:5], sorted(heading[5:])) == (documented, ["Project", "Status"])
    assert archivist("lessons", "list", "--repo", "*").out.splitlines()[0].split()[-1] == "Description"


@pytest.mark.req("F7")
def test_add_takes_the_documents_internal_form(archivist: Command) -> None:
    assert archivist("init").code == 0
    assert archivist("add", "preference", "User prefers single bundled PR").code == 0
    assert archivist("add", "anti_pattern", "Splitting handlers duplicates code").code == 0
    found = json.loads(archivist("list", "--json").out)["lessons"]
    assert [(each["type"], each["summary"]) for each in found] == [
        ("preference", "User prefers single bundled PR"),
        ("anti_pattern", "Splitting handlers duplicates code"),
    ]
    for words in (("User", "prefers"), ("pattern", "one", "two"), ("pattern", "one", "--type", "preference")):
        refused = archivist("add", *words)
        assert (refused.code, "quotation marks" in refused.err) == (2, True)


@pytest.mark.req("F9")
def test_what_is_missing_before_an_audit_and_a_misspelt_run_are_told(
    archivist: Command, project: Path
) -> None:
    assert archivist("init").code == 0
    archivist("inject", "code", "", "--audit", "r1")
    refused = archivist("audit-check", "r1")
    assert (refused.code != 0, "archivist extract EVENTS.jsonl" in refused.err) == (True, True)
    assert "known by this name alone" in archivist("decay", "--run", "misspelt").err
    _learn(archivist, project, "r1")
    assert archivist("audit-check", "r1").code == 0
    assert "by this name" not in archivist("decay", "--run", "r1").err


@pytest.mark.req("F3")
def test_a_pattern_of_names_may_find_the_list_of_runs_too(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    log = write_jsonl(project / "r1.jsonl", run_lines("r1", NULLS))
    index = write_jsonl(project / "index.jsonl", [{"run_id": "r1", "status": "completed", "task": "t"}])
    done = archivist("extract", str(index), str(log))
    assert done.code == 0
    assert "index.jsonl holds no events of a run: left out" in done.err
    alone = write_jsonl(project / "alone.jsonl", [{"run_id": "r2", "status": "completed", "task": "t"}])
    assert archivist("extract", str(alone)).code == 7


@pytest.mark.req("F3")
def test_of_runs_of_one_time_the_last_in_the_log_is_the_latest(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    lines = [{**line, "ts": "2026-05-01T10:00:00Z"} for run in ("b", "a") for line in run_lines(run, NULLS)]
    assert archivist("extract", str(write_jsonl(project / "both.jsonl", lines))).code == 0
    (lesson,) = json.loads(archivist("list", "--json").out)["lessons"]
    assert (lesson["frequency"], lesson["last_seen_run"]) == (2, "a")


@pytest.mark.req("F14")
def test_a_regression_names_the_latest_fix_also_of_one_time(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    for run in ("z", "b", "c"):
        lines = run_lines(run, NULLS, fixed=[NULLS["description"]] if run != "c" else [])
        lines = [{**line, "ts": "2026-05-01T10:00:00Z"} for line in lines]
        done = archivist("run", "finish", str(write_jsonl(project / f"{run}.jsonl", lines)))
    assert "(fixed in b)" in done.out


@pytest.mark.req("F3")
def test_a_finding_without_a_telling_word_makes_no_lesson(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    empty = {"severity": "bug", "description": "This should not be done before that"}
    log = write_jsonl(project / "r1.jsonl", run_lines("r1", empty, NULLS))
    assert archivist("extract", str(log)).code == 0
    (lesson,) = json.loads(archivist("list", "--json").out)["lessons"]
    assert lesson["summary"] == NULLS["description"]


@pytest.mark.req("F5")
def test_what_two_domains_say_alike_is_told_once(archivist: Command) -> None:
    assert archivist("init").code == 0
    for domain in ("code", "general"):
        archivist("add", "User prefers single bundled PR", "--domain", domain)
    archivist("add", "Never push to main")
    told = archivist("inject", "code").out
    assert (told.count("single bundled PR"), told.count("Never push")) == (1, 1)


@pytest.mark.req("F13")
def test_the_archive_is_in_the_order_of_archiving(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    assert archivist("config", "set", "files.cross_run", "memory").code == 0
    for text in ("One", "Two", "Three"):
        archivist("add", text)
    for name in ("m-002", "m-001", "m-003"):
        archivist("forget", name)
    lines = (project / "memory" / "archive.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["m-002", "m-001", "m-003"]


@pytest.mark.req("F8", "N7")
def test_the_mark_of_a_file_goes_when_own_runs_met_the_lesson(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    line = {**DOCUMENT_LESSONS[0], "domain": "general", "tags": [], "met_here": True, **NULLS}
    assert archivist("import", "--approve", str(write_jsonl(project / "l.jsonl", [line]))).code == 0
    # A file cannot say that an own run met it.
    assert "[seen 2x, guardian, from a file, approved]" in archivist("inject", "general").out
    _learn(archivist, project, "r1")
    assert "[seen 3x, guardian]" in archivist("inject", "general").out
