"""Runs that an agent reported or a file brought: shown with where they come from, and counted for nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from archivist import Bank
from archivist.edges.hooks import follow_up
from archivist.errors import AccessError
from archivist.recall.query import Query
from archivist.records import Actor, Brief, Episode, Event, Lesson, Provenance, Status, Verdict
from archivist.records.shapes import to_episode_line
from archivist.records.words import NOTES
from archivist.reflect.trigger import ReflectionTrigger
from archivist.store.filters import equals
from archivist.tools.functions import call
from archivist.tools.resources_service import read_memory
from tests.banks import fresh_bank
from tests.conftest import Command, TickingClock
from tests.edges.http_server import serving
from tests.samples import MISSING_MODULE, WHEN, agent_log, finding, reviewed, write_jsonl

AGENT, OTHER = Actor.parse("agent:mallory"), Actor.parse("agent:eve")
ERROR = MISSING_MODULE[1]
# The same failure, and another way out of it.
POISONED = [ERROR, ("pip install freezegun-fixed", "Successfully installed", False), MISSING_MODULE[3]]


@pytest.fixture
def agent(bank: Bank) -> Bank:
    return bank.acting_as(AGENT)


def _log(folder: Path, session: str, calls: Any = None, **how: Any) -> Path:
    return agent_log(folder / f"{session}.jsonl", calls or MISSING_MODULE, session=session, **how)


def _beside_error(bank: Bank) -> str:
    told = bank.sessions.brief_failure("next", "billing", ERROR[1], tool="Bash", command=ERROR[0]).text
    return told + str(call(bank.acting_as(OTHER), "brief", {"error": ERROR[1], "repo": "billing"})["text"])


def _import_attempt(bank: Bank, folder: Path) -> None:
    """Import the attempt that another bank logged."""
    with fresh_bank(folder / "theirs") as theirs:
        theirs.attempts.log(
            "fix the login", agent="b", action="completed", approach="pipe the script", outcome="ok"
        )
        theirs.exchange.export(folder / "out")
    bank.exchange.import_files([folder / "out" / "episodes.jsonl"])


def _import_runs(bank: Bank, folder: Path, *names: str) -> None:
    runs = [Episode(id=name, project="elsewhere", summary="ok", finished=WHEN) for name in names]
    lines = [to_episode_line(run) for run in runs]
    bank.exchange.import_files([write_jsonl(folder / "episodes.jsonl", lines)])


# What is shown


@pytest.mark.req("N7")
def test_each_door_says_where_a_found_run_comes_from(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    bank.runs.finish(_log(tmp_path, "own"))
    agent.runs.finish(_log(tmp_path, "theirs", POISONED))
    hits = bank.recall(Query(text="freezegun", kinds=("event", "episode"), limit=50)).hits
    marks = {(hit.id.partition("#")[0], hit.provenance) for hit in hits}
    assert marks == {("own", Provenance.MINED), ("theirs", Provenance.SUGGESTED)}
    found: Any = call(agent, "recall", {"query": "freezegun-fixed", "kinds": ["event"]})
    assert {(hit["id"].partition("#")[0], hit["provenance"]) for hit in found["hits"]} >= {
        ("theirs", "suggested")
    }
    for name in ("theirs", next(hit.id for hit in hits if hit.id.startswith("theirs#"))):
        assert json.loads(read_memory(bank, name)[1])["provenance"] == "suggested"


@pytest.mark.req("N7")
def test_commands_mark_what_is_not_of_own_runs(archivist: Command, project: Path, tmp_path: Path) -> None:
    assert archivist("init").code == 0
    archivist("capture", str(_log(tmp_path, "own")))
    archivist("--actor", "agent:mallory", "capture", str(_log(tmp_path, "theirs", POISONED)))
    with Bank.open(project) as bank:
        bank.attempts.log("fix the login", agent="a", action="failed", approach="restart", outcome="no")
        _import_attempt(bank, tmp_path)
    recalled = archivist("recall", "freezegun", "--kind", "event").out.splitlines()
    heads = [line for line in recalled if "  event  " in line or "  episode  " in line]
    assert {("theirs" in line, "(said by an agent)" in line) for line in heads} == {
        (True, True),
        (False, False),
    }
    listed = {run: archivist("episodes", "show", run).out for run in ("own", "theirs")}
    assert ("from own runs" in listed["own"], "said by an agent" in listed["theirs"]) == (True, True)
    rows = archivist("episodes", "list").out.splitlines()
    assert [("theirs" in row, "said by an agent" in row) for row in rows if "success" in row].count(
        (True, True)
    ) == 1
    for words in (("similar", "fix the login"), ("tried", "fix the login")):
        own, foreign = (
            row for row in archivist("episodes", *words).out.splitlines() if "ailed" in row or "orked" in row
        )
        assert ("restart" in own, "(from a file)" in own) == (True, False)
        assert ("pipe the script" in foreign, "worked (from a file)" in foreign) == (True, True)
        shown = json.loads(archivist("episodes", *words, "--json").out)["approaches"]
        assert [each["provenance"] for each in shown] == ["mined", "imported"]
    rates = json.loads(archivist("episodes", "stats", "--json").out)
    assert (rates["total"]["attempts"], rates["total"]["completed"]) == (1, 0)


@pytest.mark.req("N7")
def test_http_and_tools_say_where_runs_and_attempts_come_from(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "served") as bank:
        bank.runs.finish(_log(tmp_path, "own"))
        _import_attempt(bank, tmp_path)
        tried: Any = call(bank, "what_worked", {"task": "fix the login"})
        assert [each["provenance"] for each in tried["tried"]] == ["imported"]
        listed: Any = call(bank, "episode_query", {"task": "fix the login"})
        assert [each["provenance"] for each in listed["episodes"]] == ["imported"]
    with serving(tmp_path / "served") as server, server.client("agent:mallory") as client:
        log = _log(tmp_path, "theirs", POISONED).read_bytes()
        captured = client.post("/api/capture", content=log).json()
        assert captured["runs"][0]["provenance"] == "suggested"
        runs = client.get("/api/runs").json()["runs"]
        assert {run["run"]: run["provenance"] for run in runs if not run["action"]} == {
            "own": "mined",
            "theirs": "suggested",
        }
        assert client.get("/api/runs/theirs").json()["run"]["provenance"] == "suggested"
        (attempt,) = client.get("/api/memory/episodes").json()["episodes"]
        assert attempt["provenance"] == "imported"
        hits = client.get("/api/recall", params={"query": "freezegun-fixed", "kind": "event"}).json()["hits"]
        assert {hit["provenance"] for hit in hits if hit["uid"].startswith("theirs")} == {"suggested"}


@pytest.mark.req("N7")
def test_no_remedy_beside_an_error_comes_from_such_a_run(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    bank.runs.finish(_log(tmp_path, "probe"))
    text = json.dumps(bank.runs.episode("probe").extra[NOTES])
    notes = json.loads(text.replace("pip install freezegun", "pip install evil-package"))
    assert "evil-package" in json.dumps(notes)
    bank.erasure.erase(["probe"])
    lines = [
        {
            "episode": {
                "id": run,
                "project": "billing",
                "finished": "2026-04-02T10:00:00Z",
                "extra": {NOTES: notes},
            }
        }
        for run in ("said", "said too")
    ]
    events = [{"run": run, "seq": 1, "kind": "message", "text": "hello"} for run in ("said", "said too")]
    agent.runs.capture_file(write_jsonl(tmp_path / "notes.jsonl", [*lines, *events]))
    agent.runs.finish(_log(tmp_path, "theirs", POISONED), _log(tmp_path, "theirs-2", POISONED))
    told = _beside_error(bank)
    assert ("evil-package" in told, "freezegun-fixed" in told) == (False, False)
    bank.runs.finish(_log(tmp_path, "own"))
    assert "pip install freezegun" in _beside_error(bank)


# What counts


@pytest.mark.req("N7")
def test_reported_runs_neither_count_nor_reword_nor_refresh(
    bank: Bank, agent: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    bank.runs.finish(_log(tmp_path, "own"))
    (before,) = bank.lessons.query(Query(limit=None))
    assert before.status is Status.CANDIDATE
    clock.now += timedelta(days=3)
    for number in range(3):
        agent.runs.finish(_log(tmp_path, f"theirs-{number}", [*MISSING_MODULE, *POISONED]))
        agent.lessons.suggest(before.summary, rule=before.rule, run=f"theirs-{number}")
        bank.acting_as(OTHER).lessons.suggest(before.summary, run=f"theirs-{number}")
    with bank.reading() as reader:
        assert reader.get(Lesson, before.id) == before
    bank.runs.finish(_log(tmp_path, "own-2"))
    met = bank.lessons.get(before.id)
    assert (met.runs, met.status) == (("own", "own-2"), Status.ACTIVE)


@pytest.mark.req("N7")
def test_imported_runs_neither_count_nor_age(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Run the linter first", type="pattern")
    _import_runs(bank, tmp_path, *(f"theirs-{number}" for number in range(12)))
    with bank.reading() as reader:
        assert set(reader.run_provenances(f"theirs-{number}" for number in range(12)).values()) == {
            Provenance.IMPORTED
        }
    for number in range(12):
        assert not bank.lessons.decay(f"theirs-{number}").was_counted
    with bank.reading() as reader:
        assert reader.run_count() == 0


@pytest.mark.req("N7")
def test_reported_runs_judge_no_lesson(bank: Bank, agent: Bank) -> None:
    known = bank.lessons.add("Always freeze the clock in tests", type="pattern")
    for number in range(4):
        agent.brief(run=f"theirs-{number}")
        done = agent.runs.finish_run(*reviewed(f"theirs-{number}", finding(known.summary)))
        assert done.verdicts == ()
        assert bank.audit(f"theirs-{number}") == []
    with bank.reading() as reader:
        tally = reader.tallies([known.id])[known.id]
    assert (tally.helpful, tally.ineffective) == (0, 0)
    bank.brief(run="own")
    assert bank.runs.finish_run(*reviewed("own", finding(known.summary))).verdicts


@pytest.mark.req("N7")
def test_reported_runs_do_not_push_a_lesson_out_of_briefs(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    for session in ("own", "own-2"):
        bank.runs.finish(_log(tmp_path, session))
    told = bank.brief(repo="billing")
    for number in range(30):
        agent.runs.finish(_log(tmp_path, f"theirs-{number}", [("ls", "a", False)]))
    assert told.chosen
    assert bank.brief(repo="billing") == told


@pytest.mark.req("N7")
def test_a_run_of_a_file_under_the_id_of_a_lesson_is_not_own(bank: Bank, tmp_path: Path) -> None:
    known = bank.lessons.add("Run the linter first")
    _import_runs(bank, tmp_path, known.id)
    assert bank.runs.provenance(known.id) is Provenance.IMPORTED


# Whose session it is


@pytest.mark.req("N7")
@pytest.mark.parametrize("way", ["events", "same log", "empty", "file"])
def test_the_users_own_log_wins_over_a_claimed_session(
    bank: Bank, agent: Bank, tmp_path: Path, way: str
) -> None:
    true = _log(tmp_path, "session")
    if way == "events":
        claimed = agent_log(tmp_path / "claim.jsonl", POISONED * 3, session="session", project="elsewhere")
        agent.runs.finish(claimed)
    elif way == "same log":
        agent.runs.finish(true)
    elif way == "empty":
        agent.runs.start_run("session", task="mine")
    else:
        _import_runs(bank, tmp_path, "session")
    assert not bank.runs.provenance("session").is_own
    bank.runs.finish(true)
    assert bank.runs.provenance("session").is_own
    assert bank.runs.episode("session").project == "billing"
    with bank.reading() as reader:
        texts = [event.text for event in reader.select(Event, equals("run", "session"))]
        assert reader.verify().is_whole
    assert ("pip install freezegun" in texts, "pip install freezegun-fixed" in texts) == (True, False)
    assert [lesson.runs for lesson in bank.lessons.query(Query(limit=None)) if not lesson.is_waiting] == [
        ("session",)
    ]
    assert "pip install freezegun`" in _beside_error(bank)
    with pytest.raises(AccessError):
        agent.runs.finish(_log(tmp_path, "session", POISONED))
    assert bank.runs.finish(true).runs[0].created == ()


@pytest.mark.req("N7")
def test_a_hook_files_and_learns_from_a_session_that_an_agent_claimed(
    archivist: Command, project: Path, tmp_path: Path
) -> None:
    assert archivist("init").code == 0
    with Bank.open(project, actor=AGENT) as agent:
        claimed = agent_log(tmp_path / "claim.jsonl", POISONED, session="s-1", project="elsewhere")
        agent.runs.finish(claimed)
    log = agent_log(tmp_path / "true.jsonl", MISSING_MODULE, session="s-1", project=project.name)
    log.write_text(log.read_text().replace(f"/home/x/{project.name}", str(project)))
    follow_up.main(("end", "claude-code", "s-1", str(log), str(project), str(project)))
    with Bank.open(project) as bank:
        run = bank.runs.episode("s-1")
        assert (bank.runs.provenance("s-1").is_own, run.project == "elsewhere") == (True, False)
        assert [lesson.runs for lesson in bank.lessons.query(Query(limit=None)) if not lesson.is_waiting] == [
            ("s-1",)
        ]


@pytest.mark.req("N7")
def test_a_session_that_begins_is_the_users_whoever_named_it_before(bank: Bank, agent: Bank) -> None:
    agent.runs.finish_run(*reviewed("session", finding("Skip the tests")))
    bank.sessions.brief_session("session", "billing")
    assert bank.runs.provenance("session").is_own
    with bank.reading() as reader:
        assert not reader.select(Event, equals("run", "session"))


@pytest.mark.req("N7")
def test_what_a_person_says_of_an_agents_run_does_not_make_it_own(bank: Bank, agent: Bank) -> None:
    agent.runs.finish_run(*reviewed("theirs", finding("Skip the tests")))
    bank.runs.note_on_run("theirs", "log", "missing")
    bank.reflect("theirs")
    bank.runs.record_episode(Episode(id="theirs", task="named by a person"))
    assert bank.runs.provenance("theirs") is Provenance.SUGGESTED


@pytest.mark.req("N7")
def test_a_bank_of_before_learns_whose_its_runs_are(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    bank.runs.finish(_log(tmp_path, "own"))
    agent.runs.finish(_log(tmp_path, "theirs"), _log(tmp_path, "claimed"))
    bank.runs.finish(agent_log(tmp_path / "true.jsonl", MISSING_MODULE[:3], session="claimed"))
    _import_runs(bank, tmp_path, "brought")
    names = ("own", "theirs", "claimed", "brought")
    with bank.reading() as reader:
        before = reader.run_provenances(names)
    bank.close()
    db = apsw.Connection(str(bank.path))
    db.execute(
        "DROP INDEX episodes_by_project; ALTER TABLE episodes DROP COLUMN provenance;"
        "CREATE INDEX episodes_by_project ON episodes (project, finished);"
        "DELETE FROM migrations WHERE name = 'mark runs'"
    )
    db.close()
    with Bank.open(bank.path.parent.parent) as opened, opened.reading() as reader:
        assert reader.run_provenances(names) == before
    assert [provenance.value for provenance in map(before.__getitem__, names)] == [
        "mined",
        "suggested",
        "mined",
        "imported",
    ]


# What an agent may do to the user's runs


def _lesson_of_runs(bank: Bank, folder: Path, *sessions: str) -> Lesson:
    """Return the active lesson that the user's runs taught."""
    for session in sessions:
        bank.runs.finish(_log(folder, session))
    (lesson,) = bank.lessons.query(Query(limit=None))
    assert lesson.status is Status.ACTIVE
    return lesson


@pytest.mark.req("N7")
def test_no_agent_retires_a_lesson_by_briefing_and_judging_the_users_runs(tmp_path: Path) -> None:
    sessions = [f"user-{number}" for number in range(8)]
    with fresh_bank(tmp_path / "served") as bank:
        lesson = _lesson_of_runs(bank, tmp_path, *sessions)
    with serving(tmp_path / "served") as server, server.client("agent:mallory") as client:
        for run in sessions:
            asked = {"run": run, "task": "run the tests", "repo": "billing"}
            for path, code in (("/api/brief", 200), ("/api/runs", 201)):
                told = client.post(path, json=asked)
                assert (told.status_code, lesson.summary in told.text) == (code, True)
            assert client.post("/api/audit/check", json={"run": run}).status_code == 403
    with Bank.open(tmp_path / "served") as bank:
        tool = call(bank.acting_as(AGENT), "brief", {"task": "run the tests", "run": "user-1"})
        assert lesson.short_id in str(tool["text"])
        assert bank.runs.finish(_log(tmp_path, "last", [("ls", "a", False)])).runs[0].verdicts == ()
        assert bank.lessons.get(lesson.id).status is Status.ACTIVE
        with bank.reading() as reader:
            assert (reader.count(Brief), reader.count(Verdict)) == (0, 0)


@pytest.mark.req("N7")
@pytest.mark.parametrize("is_known", [True, False])
def test_what_an_agent_was_told_does_not_count_as_told_to_the_users_session(
    bank: Bank, agent: Bank, is_known: bool
) -> None:
    lesson = bank.lessons.add("The search index is rebuilt nightly")
    prompt = "Rebuild the search index nightly"
    if is_known:
        bank.runs.start_run("session", repo="elsewhere", max_lessons=0)
    told = agent.brief(run="session", task=prompt, repo="billing")
    assert [each.lesson.id for each in told.chosen] == [lesson.id]
    reminder = bank.sessions.brief_prompt("session", "billing", prompt)
    assert reminder is not None
    assert lesson.summary in reminder.text
    assert bank.sessions.brief_prompt("session", "billing", prompt) is None


@pytest.mark.req("N7")
def test_what_an_agent_was_told_before_a_session_began_judges_nothing(
    bank: Bank, agent: Bank, tmp_path: Path
) -> None:
    lesson = _lesson_of_runs(bank, tmp_path, "own", "own-2")
    assert agent.brief(run="session", repo="billing").brief_id
    assert bank.runs.finish(_log(tmp_path, "session")).runs[0].verdicts == ()
    assert bank.brief(run="briefed", repo="billing").brief_id
    (verdict,) = bank.runs.finish(_log(tmp_path, "briefed")).runs[0].verdicts
    assert verdict.lesson == lesson.id


@pytest.mark.req("N7")
def test_a_brief_is_not_recorded_on_a_finished_run(bank: Bank, tmp_path: Path) -> None:
    lesson = _lesson_of_runs(bank, tmp_path, "own", "own-2")
    told = bank.brief(run="own", repo="billing")
    assert ([each.lesson.id for each in told.chosen], told.brief_id) == ([lesson.id], "")
    assert bank.runs.start_run("own", repo="billing").brief_id == ""
    assert bank.audit("own") == []
    # A session that is resumed goes on.
    assert bank.sessions.brief_session("own", "billing").brief_id


@pytest.mark.req("N7")
def test_no_door_lets_an_agent_close_reflect_on_or_judge_the_users_runs(tmp_path: Path) -> None:
    log = _log(tmp_path, "user-1")
    with fresh_bank(tmp_path / "served") as bank:
        bank.runs.capture_file(log)
        bank.runs.start_run("open")
    with serving(tmp_path / "served") as server, server.client("agent:mallory") as client:
        before = client.get("/api/runs/user-1").json()
        refused = [
            client.post("/api/runs/user-1/log?status=failed", content=log.read_bytes()),
            client.post("/api/runs/user-1/log", content=log.read_bytes()),
            client.post("/api/capture", content=log.read_bytes()),
            client.post("/api/runs/user-1/finish", json={"status": "failed"}),
            client.post("/api/runs/open/finish", json={}),
            client.post("/api/reflect", json={"run": "user-1"}),
            client.post("/api/audit/check", json={"run": "user-1"}),
        ]
        assert [answer.status_code for answer in refused] == [403] * len(refused)
        for which in ({"days": 36_500}, {}):
            assert client.post("/api/reflect", json=which).json()["created"] == 0
        assert client.get("/api/runs/user-1").json() == before
    with Bank.open(tmp_path / "served") as bank:
        assert [queued.run for queued in bank.reflections.waiting_runs()] == ["user-1"]
        with bank.reading() as reader:
            assert (reader.run_count(), reader.count(Lesson)) == (0, 0)


@pytest.mark.req("N7")
def test_commands_and_services_refuse_an_agent_that_acts_on_the_users_runs(
    archivist: Command, project: Path, tmp_path: Path
) -> None:
    assert archivist("init").code == 0
    log = str(_log(tmp_path, "user-1"))
    archivist("run", "finish", str(_log(tmp_path, "user-2")))
    archivist("capture", log)
    for words in (
        ("run", "finish", log, "--run", "user-1"),
        ("run", "finish", "--run", "user-1"),
        ("capture", log),
        ("extract", log, "--run", "user-1"),
        ("reflect", "--run", "user-1"),
        ("decay", "--run", "user-1"),
        ("audit", "check", "user-1"),
    ):
        done = archivist("--actor", "agent:mallory", *words)
        assert (done.code != 0, "agent:mallory may not" in done.err) == (True, True), words
    with Bank.open(project, actor=AGENT) as agent:
        assert agent.reflections.maybe_reflect(ReflectionTrigger("user-1")).status == "skipped"
        assert list(agent.reflections.reflect_waiting()) == []
        agent.runs.capture_file(_log(tmp_path, "theirs"))
        assert [each.run for each in agent.reflections.reflect_waiting()] == ["theirs"]
        agent.runs.finish_run(*reviewed("theirs-2", finding("Skip the tests")))
        assert agent.reflections.recent_runs(36_500) == ["theirs-2"]
        assert [queued.run for queued in agent.reflections.waiting_runs()] == ["user-1"]


# The count of runs


def _numbered(folder: Path, run: str, number: int) -> Path:
    lines = [
        {"episode": {"id": run, "project": "billing", "number": number}},
        {"run": run, "seq": 1, "kind": "finish", "name": "success"},
    ]
    return write_jsonl(folder / f"{run}.jsonl", lines)


@pytest.mark.req("N7")
@pytest.mark.parametrize("number", [2**63 - 1, 5_000, 1, -1])
def test_no_log_says_how_many_runs_aged_the_bank(tmp_path: Path, number: int) -> None:
    with fresh_bank(tmp_path / "served") as bank:
        lesson = _lesson_of_runs(bank, tmp_path, "own", "own-2")
    with serving(tmp_path / "served") as server, server.client("agent:mallory") as client:
        log = _numbered(tmp_path, "mal-1", number).read_bytes()
        assert client.post("/api/capture", content=log).status_code == 201
    with Bank.open(tmp_path / "served") as bank:
        bank.runs.capture_file(_numbered(tmp_path, "mine", number))
        done = bank.runs.finish(_log(tmp_path, "next", [("ls", "a", False)])).runs[0]
        assert (done.aged.was_counted, bank.runs.episode("next").number) == (True, 3)
        assert bank.lessons.get(lesson.id) == lesson


@pytest.mark.req("N7")
@pytest.mark.parametrize("is_approved", [True, False])
def test_an_import_brings_only_free_and_plausible_numbers(
    bank: Bank, tmp_path: Path, is_approved: bool
) -> None:
    _lesson_of_runs(bank, tmp_path, "own", "own-2")
    numbers = {"huge": 2**63 - 1, "high": 8, "taken": 2, "free": 4, "twice": 4, "own": 3}
    runs = [Episode(id=name, finished=WHEN, number=number) for name, number in numbers.items()]
    lines = [to_episode_line(run) for run in runs]
    file = write_jsonl(tmp_path / "episodes.jsonl", [*lines, lines[3]])
    bank.exchange.import_files([file], is_approved=is_approved)
    found = {name: bank.runs.episode(name).number for name in numbers}
    kept = 4 if is_approved else None
    assert found == {
        "huge": None,
        "high": 8 if is_approved else None,
        "taken": None,
        "free": kept,
        "twice": None,
        "own": 1,
    }
    bank.runs.finish(_log(tmp_path, "next"))
    assert bank.runs.episode("next").number == (9 if is_approved else 3)


@pytest.mark.req("N7")
@pytest.mark.parametrize("number", [2**63 - 1, 1_000_000, 5_000, 3])
def test_a_bank_that_holds_the_number_of_a_log_goes_on(
    bank: Bank, agent: Bank, tmp_path: Path, number: int
) -> None:
    lesson = _lesson_of_runs(bank, tmp_path, "own", "own-2")
    with agent.transaction() as writer:
        writer.put(Episode(id="mal-1", number=number), "capture")
    for session, count in (("next", 3), ("next-2", 4)):
        bank.runs.finish(_log(tmp_path, session, [("ls", "a", False)]))
        assert bank.runs.episode(session).number == count
    assert bank.lessons.get(lesson.id) == lesson
    with bank.reading() as reader:
        assert (reader.run_count(), reader.verify().is_whole) == (4, True)
