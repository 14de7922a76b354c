"""What review findings become, through the command line: category, domain, role, type, age."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.samples import run_lines, write_jsonl

NULLS = "Missing null checks in API response handlers"
NULLS_AGAIN = "API response handlers: null checks missing"


def _finding(description: str = NULLS, category: str = "", severity: str = "warning") -> dict[str, Any]:
    return {"description": description, "severity": severity, "category": category}


@pytest.fixture
def extract(project: Path, archivist: Command) -> Any:
    """Make a bank, and return how a run's findings are extracted into it."""
    assert archivist("init").code == 0

    def take(
        run: str, *findings: dict[str, Any], role: str = "guardian", fixed: Any = (), verb: str = ""
    ) -> Any:
        lines = run_lines(run, *findings, fixed=fixed)
        for line in lines:
            if line["type"] == "review.verdict":
                line["data"]["archetype"] = role
        path = write_jsonl(project / f"{run}.jsonl", lines)
        words = verb.split() or ["extract"]
        ran = archivist(*words, str(path), "--json", cwd=project)
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    return take


def _lessons(archivist: Command, project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(archivist("lessons", "list", "--json", cwd=project).out)[
        "lessons"
    ]
    return sorted(found, key=lambda lesson: str(lesson["id"]))


@pytest.mark.req("F3")
def test_a_category_is_a_tag_and_the_domain_is_the_runs(
    project: Path, archivist: Command, extract: Any
) -> None:
    archivist("run", "start", "--run", "r1", "--domain", "code", cwd=project)
    extract("r1", _finding(category="robustness"))
    extract("r2", _finding("Timeline references contradict the start day", category="continuity"))
    first, second = _lessons(archivist, project)
    assert (first["domain"], first["tags"]) == ("code", ["robustness"])
    assert (second["domain"], second["tags"]) == ("general", ["continuity"])


@pytest.mark.req("F3", "F6")
def test_a_log_that_names_its_run_once_is_extracted_and_ages_the_bank(
    project: Path, archivist: Command
) -> None:
    """Extract and decay as the document types them, from a log whose later lines name no run."""
    assert archivist("init").code == 0
    first, *rest = run_lines("r1", _finding())
    lines = [first, *({key: value for key, value in line.items() if key != "run_id"} for line in rest)]
    archivist("extract", str(write_jsonl(project / "r1.jsonl", lines)), cwd=project)
    (lesson,) = _lessons(archivist, project)
    assert (lesson["frequency"], lesson["last_seen_run"]) == (1, "r1")
    aged = archivist("decay", cwd=project)
    assert (aged.code, aged.err.splitlines()[-1]) == (0, "0 faded, 0 archived")
    assert "counted before" in archivist("decay", cwd=project).err


@pytest.mark.req("F3")
def test_a_category_is_part_of_the_match(project: Path, archivist: Command, extract: Any) -> None:
    extract("r1", _finding(category="robustness"))
    # Half of the words: the same finding in the same category, another one in another.
    extract("r2", _finding("Null checks in response parser and handlers fail", category="Robustness"))
    extract("r3", _finding("Null checks in response parser and handlers fail", category="performance"))
    first, second = _lessons(archivist, project)
    assert (first["frequency"], second["frequency"]) == (2, 1)
    # The same words are the same finding, whatever a reviewer calls their category.
    extract("r4", _finding(NULLS_AGAIN, category="correctness"))
    first, second = _lessons(archivist, project)
    assert (first["frequency"], first["tags"]) == (3, ["correctness", "robustness"])


@pytest.mark.req("F2", "F11")
def test_what_mostly_one_role_finds_becomes_its_hint(project: Path, archivist: Command, extract: Any) -> None:
    for run, role in (("r1", "guardian"), ("r2", "sage"), ("r3", "guardian")):
        extract(run, _finding(), role=role)
    (lesson,) = _lessons(archivist, project)
    assert (lesson["type"], lesson["role"]) == ("pattern", "")
    extract("r4", _finding(), role="guardian")
    (lesson,) = _lessons(archivist, project)
    assert (lesson["type"], lesson["role"]) == ("archetype_hint", "guardian")
    # Who finds it and whom it concerns are two things.
    for role in ("guardian", "sage", "maker", ""):
        for verb in ("brief --domain general --role", "inject general"):
            told = archivist(*verb.split(), role, cwd=project).out
            assert NULLS in told, (verb, role)
    # Another reviewer of the same run found it too: it is no longer one role's.
    lines = run_lines("r5", _finding())
    other = {**lines[1], "seq": 9, "data": {**lines[1]["data"], "archetype": "sage"}}
    write_jsonl(project / "r5.jsonl", [*lines, other])
    assert archivist("extract", "r5.jsonl", cwd=project).code == 0
    (lesson,) = _lessons(archivist, project)
    assert (lesson["type"], lesson["role"], lesson["frequency"]) == ("pattern", "", 5)


def _review_by_two(project: Path, archivist: Command, run: str, guardian: str, sage: str) -> None:
    lines = run_lines(run, _finding(guardian))
    other = {**lines[1]["data"], "archetype": "sage", "findings": [_finding(sage)]}
    write_jsonl(project / f"{run}.jsonl", [*lines, {**lines[1], "seq": 9, "data": other}])
    assert archivist("extract", f"{run}.jsonl", cwd=project).code == 0


@pytest.mark.req("F4")
def test_one_more_run_never_withdraws_a_lesson(project: Path, archivist: Command) -> None:
    """Two roles review each run, and one of them keeps finding the same thing."""
    assert archivist("init").code == 0
    others = ("Titles repeat headings", "Voice drifts", "Comma splices", "Weak verbs")
    for count, other in enumerate(others, 1):
        _review_by_two(project, archivist, f"r{count}", NULLS, other)
        for role in ("", "guardian", "sage", "maker"):
            told = archivist("inject", "general", role, cwd=project).out
            assert (NULLS in told) is (count > 1), (count, role)
    lesson, *_ = _lessons(archivist, project)
    assert (lesson["type"], lesson["role"]) == ("archetype_hint", "guardian")
    # A person says whom it is for.
    assert archivist("lessons", "edit", lesson["id"], "--role", "maker", cwd=project).code == 0
    for role, is_told in (("maker", True), ("sage", False), ("", True)):
        told = archivist("inject", "general", role, cwd=project).out
        assert (NULLS in told) is is_told, role


@pytest.mark.req("F2", "F4")
def test_a_learnt_hint_is_told_to_its_role_first(project: Path, archivist: Command) -> None:
    assert archivist("init").code == 0
    titles = "Chapter titles repeat the previous heading"
    for run in ("r1", "r2", "r3"):
        _review_by_two(project, archivist, run, NULLS, titles)
    assert {lesson["type"] for lesson in _lessons(archivist, project)} == {"archetype_hint"}
    for role, first in (("guardian", NULLS), ("sage", titles)):
        told = archivist("inject", "general", role, cwd=project).out.splitlines()
        assert first in told[1]


@pytest.mark.req("F2")
def test_a_role_that_a_person_gave_stays(project: Path, archivist: Command, extract: Any) -> None:
    extract("r1", _finding())
    assert archivist("lessons", "edit", "m-001", "--role", "sage", cwd=project).code == 0
    for run in ("r2", "r3", "r4"):
        extract(run, _finding())
    (lesson,) = _lessons(archivist, project)
    assert (lesson["role"], lesson["frequency"]) == ("sage", 4)


@pytest.mark.req("F2")
def test_a_fix_that_had_to_be_fixed_again_is_an_anti_pattern(
    project: Path, archivist: Command, extract: Any
) -> None:
    extract("r1", _finding(), fixed=[NULLS])
    extract("r2", _finding(NULLS_AGAIN))
    (lesson,) = _lessons(archivist, project)
    # Found again, but nobody fixed it again yet.
    assert lesson["type"] == "pattern"
    extract("r3", _finding(), fixed=[NULLS])
    (lesson,) = _lessons(archivist, project)
    assert (lesson["type"], lesson["frequency"]) == ("anti_pattern", 3)
    assert lesson["rule"] == "The fix of r1 did not hold and was fixed again"


@pytest.mark.req("F6")
@pytest.mark.parametrize("verb", ["extract", "run finish"])
def test_ten_runs_that_do_not_see_a_lesson_take_one_count(
    project: Path, archivist: Command, extract: Any, verb: str
) -> None:
    extract("r1", _finding(), verb=verb)
    extract("r2", _finding(), verb=verb)
    for number in range(9):
        assert archivist("decay", "--run", f"later-{number}", cwd=project).code == 0
    assert _lessons(archivist, project)[0]["frequency"] == 2
    archivist("decay", "--run", "later-9", cwd=project)
    assert _lessons(archivist, project)[0]["frequency"] == 1


@pytest.mark.req("F6")
def test_decay_takes_the_run_that_was_extracted_last_also_without_times(
    archivist: Command, project: Path
) -> None:
    archivist("init", cwd=project)
    found = {"description": "Missing null checks in handlers", "severity": "BUG"}
    for run in ("r1", "r2", "r3"):
        lines = run_lines(run, *([found] if run == "r1" else []))
        bare = [{key: value for key, value in line.items() if key != "ts"} for line in lines]
        archivist("extract", str(write_jsonl(project / f"{run}.jsonl", bare)), cwd=project)
        aged = json.loads(archivist("decay", "--json", cwd=project).out)
        assert (aged["run"], aged["was_counted"]) == (run, True)
    (lesson,) = json.loads(archivist("lessons", "list", "--json", cwd=project).out)["lessons"]
    assert lesson["runs_since_last_seen"] == 2


@pytest.mark.req("F3")
def test_a_bad_finding_is_named_and_its_verdict_is_read(archivist: Command, project: Path) -> None:
    archivist("init", cwd=project)
    findings: list[dict[str, Any]] = [
        {"description": "Missing null checks in handlers", "severity": "high"},
        {"severity": "bug"},
        {"description": "Timeline contradicts the first chapter", "severity": "medium"},
        {"description": "Spacing is uneven", "severity": "nit"},
        {"description": "Names differ", "severity": "low"},
        {"description": "Broken", "severity": "whatever"},
    ]
    log = write_jsonl(project / "r1.jsonl", run_lines("r1", *findings))
    done = archivist("extract", str(log), "--json", cwd=project)
    # As for every log of which something was left out.
    assert done.code == 7
    shown = json.loads(done.out)
    assert {(each["severity"], each["summary"]) for each in shown["lessons"]} == {
        ("bug", "Missing null checks in handlers"),
        ("warning", "Timeline contradicts the first chapter"),
    }
    assert "finding 2: description: missing" in done.err
    assert "finding 6" in done.err


def test_of_an_endless_finding_the_beginning_is_a_lesson(archivist: Command, project: Path) -> None:
    archivist("init")
    log = write_jsonl(project / "r1.jsonl", run_lines("r1", _finding("a|" * 15_000)))
    assert archivist("run", "finish", str(log)).code == 0
    (lesson,) = json.loads(archivist("lessons", "list", "--all", "--json").out)["lessons"]
    assert len(lesson["detail"]) == 8_000
    assert lesson["detail"].endswith("…")


@pytest.mark.req("F3")
@pytest.mark.parametrize("is_shorter", [False, True])
@pytest.mark.parametrize("verb", ["extract", "run finish"])
def test_another_log_under_a_known_run_id_is_named(
    archivist: Command, project: Path, verb: str, is_shorter: bool
) -> None:
    archivist("init", cwd=project)
    log = write_jsonl(project / "a.jsonl", run_lines("r1", _finding(), fixed=["Typos"]))
    assert archivist(*verb.split(), str(log), cwd=project).code == 0
    titles = "Chapter titles repeat the previous heading"
    lines = run_lines("r1", _finding(titles), fixed=[] if is_shorter else ["Typos"])
    done = archivist(*verb.split(), str(write_jsonl(project / "b.jsonl", lines)), cwd=project)
    assert done.code == 7
    said = "run r1: another log has this id, 1 finding of this one not read: give each run an id of its own"
    assert f"b.jsonl: {said}" in done.err
    # Its lesson still cites the finding that it was learnt from.
    (lesson,) = _lessons(archivist, project)
    assert lesson["summary"] == NULLS
    assert NULLS in archivist("lessons", "list", "--json", cwd=project).out


@pytest.mark.req("F3")
def test_a_log_that_has_grown_is_read_on(archivist: Command, project: Path) -> None:
    archivist("init", cwd=project)
    titles = "Chapter titles repeat the previous heading"
    log = project / "a.jsonl"
    archivist("extract", str(write_jsonl(log, run_lines("r1", _finding())[:2])), cwd=project)
    done = archivist(
        "extract", str(write_jsonl(log, run_lines("r1", _finding(), _finding(titles)))), cwd=project
    )
    assert done.code == 0
    assert [lesson["summary"] for lesson in _lessons(archivist, project)] == [NULLS, titles]


@pytest.mark.req("F3")
@pytest.mark.parametrize("severity", ["", "P1", "info", None])
def test_a_repeat_counts_whatever_its_severity(
    archivist: Command, project: Path, extract: Any, severity: str | None
) -> None:
    """The document asks for a warning of new lessons only."""
    extract("r1", _finding())
    titles = "Chapter titles repeat the previous heading"
    again, new = ({"description": text, "severity": severity} for text in (NULLS, titles))
    log = write_jsonl(project / "r2.jsonl", run_lines("r2", again, new))
    done = archivist("extract", str(log), cwd=project)
    (lesson,) = _lessons(archivist, project)
    assert (lesson["frequency"], lesson["last_seen_run"]) == (2, "r2")
    assert done.code == (7 if severity == "P1" else 0)
    assert ("finding 1: severity: 'P1' is not one of bug, warning" in done.err) is (severity == "P1")
    assert ("hint: 2 findings were left out" in done.err) is (severity == "P1")
