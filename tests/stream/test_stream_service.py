"""The stream as agents use it: logging, cycles, search, archiving, lines in and out."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import Config, RecallRules, StreamRules
from archivist.errors import AccessError, InputError, NotFoundError, RecordError, StateError
from archivist.records import Actor, ActorKind, Entry
from tests.banks import fresh_bank, lay_bank
from tests.conftest import CountingIds, TickingClock
from tests.samples import write_jsonl


def _bank(folder: Path, **rules: Any) -> Bank:
    config = Config(stream=StreamRules(**rules))
    return fresh_bank(folder, config=config, clock=TickingClock(), ids=CountingIds())


def _agent(bank: Bank, role: str) -> Bank:
    return bank.acting_as(Actor(ActorKind.AGENT, f"{role}-1", role))


# Logging


@pytest.mark.req("C2")
def test_an_entry_has_everything_that_the_document_names(bank: Bank) -> None:
    entry = bank.stream.log(
        "Opened PR #12",
        cycle=188,
        role="research",
        importance=8,
        type="decision",
        content="It closes #84; the token was api_key=sk-ant-api03-" + "A1b2C3d4" * 11,
        tags=["memory", "memory", " issue-95 "],
        issues=[7],
    )
    assert (entry.seq, entry.cycle, entry.role, entry.importance, entry.type) == (
        1,
        188,
        "research",
        8,
        "decision",
    )
    assert (entry.tags, entry.issues, entry.prs) == (("memory", "issue-95"), (7, 84, 95), (12,))
    assert "sk-ant" not in entry.content
    assert entry.tokens == -(-len(f"{entry.action} {entry.content}") // 4)
    assert bank.stream.get(entry.id) == entry
    assert bank.ledger.history(entry.id)[0].entry.verb == "log"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"importance": 0}, "importance: 0 is not between 1 and 10"),
        ({"importance": 11}, "importance: 11 is not between 1 and 10"),
        ({"importance": 5.5}, "importance: expected a whole number"),
        ({"importance": float("nan")}, "importance: expected a whole number"),
        ({"importance": True}, "importance: expected a whole number"),
        ({"importance": "high"}, "importance: expected a whole number"),
        ({"cycle": -1}, "cycle: -1 is below 0"),
        ({"cycle": 1.0}, "cycle: expected a whole number"),
        ({"cycle": 1 << 40}, "cycle: 1099511627776 is above"),
        ({"type": "mood"}, "type: 'mood' is not one of"),
        ({"tags": "memory"}, "tags: expected a list"),
        ({"tags": [1]}, "tags: expected text"),
        ({"issues": [0]}, "issues: numbers from 1 on"),
        ({"issues": ["84"]}, "issues: expected a whole number"),
        ({"content": "x" * 20_001}, "content: 20001 characters, at most 20000"),
    ],
)
def test_a_bad_entry_is_refused(bank: Bank, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        bank.stream.log("Words", **fields)
    assert caught.value.message.startswith(reason)
    assert bank.stream.recent() == []


def test_an_entry_says_something(bank: Bank) -> None:
    for nothing in ("", "  \n"):
        with pytest.raises(RecordError, match="action: missing or empty"):
            bank.stream.log(nothing)


def test_the_same_id_is_the_same_entry(bank: Bank) -> None:
    first = bank.stream.log("Once", id="mine")
    assert bank.stream.log("Once", id="mine") == first
    with pytest.raises(StateError, match="'mine' is another entry's"):
        bank.stream.log("Twice", id="mine")
    assert len(bank.stream.recent()) == 1


def test_a_time_of_its_own_is_kept_in_utc(bank: Bank) -> None:
    entry = bank.stream.log("Then", time=datetime(2026, 2, 8, 13, 23))  # noqa: DTZ001
    assert entry.time == datetime(2026, 2, 8, 13, 23, tzinfo=UTC)


# Cycles


@pytest.mark.req("C2")
def test_without_a_cycle_it_is_the_one_begun_or_the_latest(bank: Bank) -> None:
    assert bank.stream.log("First of all").cycle == 1
    assert bank.stream.begin_cycle("qa") == 2
    assert bank.stream.begin_cycle("ops") == 3
    assert bank.stream.log("In mine", role="qa").cycle == 2
    assert bank.stream.log("In mine", role="ops").cycle == 3
    assert bank.stream.log("In the latest", role="design").cycle == 3
    assert bank.stream.log("Ahead", role="qa", cycle=7).cycle == 7
    assert bank.stream.log("Goes on", role="qa").cycle == 7
    assert bank.stream.begin_cycle() == 8


@pytest.mark.req("C2")
def test_a_roles_cycles_never_go_backwards(bank: Bank) -> None:
    bank.stream.log("Later", role="qa", cycle=9)
    with pytest.raises(StateError, match="cycle: 3 goes backwards, 'qa' is at 9"):
        bank.stream.log("Earlier", role="qa", cycle=3)
    assert bank.stream.log("Another role", role="ops", cycle=3).cycle == 3
    assert len(bank.stream.recent()) == 2


@pytest.mark.req("C2")
def test_entries_are_read_by_cycle_role_and_importance(bank: Bank) -> None:
    for cycle in range(1, 7):
        bank.stream.log(f"Work {cycle}", role="qa" if cycle % 2 else "ops", cycle=cycle, importance=cycle)
    stream = bank.stream
    assert [entry.cycle for entry in stream.by_cycle(2, 4)] == [2, 3, 4]
    assert [entry.cycle for entry in stream.by_cycle(0, 99, role="qa", min_importance=3)] == [3, 5]
    assert stream.by_cycle(7, 9) == []
    with pytest.raises(InputError, match="cycles 4 to 2: the first comes after the last"):
        stream.by_cycle(4, 2)
    with pytest.raises(InputError, match="importance"):
        stream.by_cycle(1, 2, min_importance=11)


def test_an_agent_logs_only_as_its_role(bank: Bank) -> None:
    maker = _agent(bank, "maker")
    assert maker.stream.log("Mine").role == "maker"
    with pytest.raises(AccessError, match="agent:maker-1:maker may not write stream of 'guardian'"):
        maker.stream.log("Not mine", role="guardian")
    with pytest.raises(AccessError):
        maker.stream.begin_cycle("guardian")
    with pytest.raises(AccessError):
        maker.stream.remove(bank.stream.recent(1)[0].id)
    assert len(bank.ledger.denials()) == 3
    assert len(bank.stream.recent()) == 1


# Archiving


@pytest.mark.req("C8")
def test_what_is_no_longer_hot_is_archived_by_itself_and_stays_findable(tmp_path: Path) -> None:
    with _bank(tmp_path, hot_cycles=10) as bank:
        for cycle in range(1, 16):
            issues = [77] if cycle == 3 else []
            what = "zeppelin" if cycle == 2 else "engine"
            bank.stream.log(f"Tuned the {what}", cycle=cycle, role="ops", issues=issues)
        archived = [entry.cycle for entry in bank.stream.by_cycle(1, 15) if entry.is_archived]
        assert archived == [1, 2, 3, 4, 5]
        assert all(hit.entry.cycle != 2 for hit in bank.stream.search("zeppelin", tier="stream"))
        for found in (
            bank.stream.search("zeppelin"),
            bank.stream.search("zeppelin", cycles=(1, 3)),
            bank.stream.search("what about the zeppelin in cycle 2?"),
        ):
            assert found[0].entry.cycle == 2
        assert bank.documents.search("zeppelin", type="cycle")[0].kind == "entry"
        assert bank.stream.search("what became of #77?")[0].entry.cycle == 3
        assert bank.ledger.verify().is_whole


# Search


@pytest.mark.req("C3")
def test_recency_importance_and_relevance_decide_and_their_weights_are_settings(tmp_path: Path) -> None:
    def best(**weights: float) -> int:
        named: dict[str, Any] = {f"generative_{name}": each for name, each in weights.items()}
        rules = RecallRules(**named)
        with fresh_bank(tmp_path / str(weights), config=Config(recall=rules)) as bank:
            bank.stream.log("The parser of the config file was rewritten", cycle=1, role="qa", importance=2)
            bank.stream.log("A word about the parser", cycle=40, role="ops", importance=2)
            bank.stream.log("Config parser news in the weekly letter", cycle=2, role="pm", importance=10)
            return bank.stream.search("rewrite the parser of the config file")[0].entry.seq

    assert best(recency=0, importance=0, relevance=1) == 1
    assert best(recency=9, importance=0, relevance=0) == 2
    assert best(recency=0, importance=9, relevance=0) == 3


def test_what_hardly_fits_is_left_out_however_important(bank: Bank) -> None:
    bank.stream.log("Rewrote the parser of the config file", cycle=1, importance=1)
    bank.stream.log("Bought a new file cabinet for the office", cycle=90, importance=10)
    (found,) = bank.stream.search("who rewrote the parser of the config file?")
    assert found.entry.cycle == 1


@pytest.mark.req("C3")
def test_recency_is_counted_in_cycles_and_its_decay_is_a_setting(tmp_path: Path) -> None:
    parts = []
    for half_life in (20.0, 58.0):
        config = Config(recall=RecallRules(half_life_cycles=half_life))
        with fresh_bank(tmp_path / str(half_life), config=config) as bank:
            bank.stream.log("Parser work", cycle=1, role="qa", importance=8)
            bank.stream.log("Parser work", cycle=100, role="ops", importance=8)
            parts.append({each.entry.cycle: each.hit.why.recency for each in bank.stream.search("parser")})
    assert parts[0][100] == parts[1][100] == 1.0
    assert parts[0][1] == pytest.approx(0.5 ** (99 / 20))
    assert parts[1][1] == pytest.approx(0.31, abs=0.01)


@pytest.mark.req("C2", "C3")
def test_search_narrows_by_role_issue_importance_and_cycles(bank: Bank) -> None:
    bank.stream.log("Login tests fail", role="qa", cycle=1, importance=3, issues=[84])
    bank.stream.log("Login tests fail still", role="ops", cycle=2, importance=8, issues=[85])
    ask = bank.stream.search
    assert [each.entry.role for each in ask("login tests", role="qa")] == ["qa"]
    assert [each.entry.role for each in ask("login tests", issue=85)] == ["ops"]
    assert [each.entry.role for each in ask("login tests", min_importance=8)] == ["ops"]
    assert [each.entry.role for each in ask("login tests", cycles=(1, 1))] == ["qa"]
    assert [each.entry.role for each in ask("what about login in #84?")] == ["qa"]
    assert len(ask("login tests", limit=1)) == 1
    assert ask("submarines of the deep sea") == []


@pytest.mark.req("C2")
def test_a_question_about_a_cycle_is_answered_by_what_happened_in_it(bank: Bank) -> None:
    for cycle in range(140, 160):
        bank.stream.log(f"Literature on subject {cycle}", role="research", cycle=cycle)
        bank.stream.log(f"Merged something {cycle}", role="ops", cycle=cycle)
    found = bank.stream.search("what did research do in cycle 150?")
    assert [(each.entry.cycle, each.entry.role) for each in found] == [(150, "research")]
    both = bank.stream.search("cycle 151")
    assert {each.entry.role for each in both} == {"research", "ops"}
    for question in ("what did research do in cycle 999?", "cycle 9999", "literature since cycle 200"):
        assert bank.stream.search(question) == []
    # What looks like a cycle's short name may be none.
    assert bank.stream.search("literature on C9999")
    bank.stream.log("Only one of us", role="qa", cycle=160)
    assert bank.stream.search("what did ops do in cycle 160?") == []
    assert [each.entry.role for each in bank.stream.search("what did we do in cycle 160?")] == ["qa"]


@pytest.mark.req("C2")
def test_a_leap_is_refused_and_a_removal_takes_its_cycle_back(bank: Bank, tmp_path: Path) -> None:
    stream = bank.stream
    stream.log("Where we came in", role="qa", cycle=5_000)
    assert stream.begin_cycle("ops") == 5_001
    with pytest.raises(StateError, match="cycle: 6002 is 1001 above the latest, 5001"):
        stream.log("typo", role="troll", cycle=6_002)
    wrong = stream.log("typo", role="troll", cycle=6_001)
    assert (stream.begin_cycle("dev"), stream.get(stream.recent(2)[1].id).is_archived) == (6_002, True)
    stream.reflect()
    stream.remove(wrong.id)
    assert [each.is_archived for each in stream.recent()] == [False]
    assert stream.begin_cycle("dev") == 5_002
    stream.log("Ten cycles on", role="qa", cycle=5_010)
    assert stream.due_reason() == "10 cycles since the last reflection"
    line = {"id": "far", "cycle": 1 << 31, "timestamp": "2026-02-08T15:00:00Z", "role": "qa", "action": "x"}
    file = tmp_path / "stream.jsonl"
    file.write_text("".join(json.dumps({**line, "cycle": cycle}) + "\n" for cycle in (1 << 31, 9_000)))
    taken = stream.import_lines([file])
    assert (taken.added, [each.reason for each in taken.problems]) == (
        1,
        ["cycle: 2147483648 is above 2147483647"],
    )


def test_counting_ends_where_numbers_do(bank: Bank) -> None:
    bank.stream.log("The last", cycle=2_147_483_647)
    with pytest.raises(StateError, match="the highest possible"):
        bank.stream.begin_cycle()


def test_reflections_stand_behind_the_entries_that_they_were_made_of(bank: Bank) -> None:
    for cycle in range(1, 4):
        bank.stream.log(f"#20 is blocked: staging credentials missing, day {cycle}", role="dev", cycle=cycle)
    bank.stream.reflect()
    kinds = [each.entry.type.value for each in bank.stream.search("what blocked #20?")]
    assert kinds == ["action", "action", "action", "reflection"]
    assert bank.stream.search("what blocked #20?", limit=1)[0].entry.type.value == "action"
    asked = bank.stream.search("which reflection speaks of #20?", limit=1)
    assert asked[0].entry.type.value == "reflection"


def test_names_keep_no_secrets_and_texts_no_control_characters(bank: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    with pytest.raises(RecordError, match="role: holds a secret"):
        bank.stream.log("x", role=token)
    with pytest.raises(RecordError, match="role: holds a secret"):
        bank.stream.begin_cycle(token)
    made = bank.stream.log(
        "\x1b[31mred\x1b[0m\talarm\x07", content="one\r\ntwo\x9b", tags=[token], role="q\x07a"
    )
    assert (made.action, made.content, made.role) == ("red\talarm", "one\ntwo", "qa")
    assert token not in str(made)
    with pytest.raises(RecordError, match="action: missing or empty"):
        bank.stream.log("\x07")


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 0}, {"limit": 1000}, {"min_importance": 0}, {"cycles": (9, 3)}, {"tier": "core"}],
)
def test_bad_searches_are_refused(bank: Bank, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        bank.stream.search("words", **wrong)
    with pytest.raises(InputError, match="query: missing"):
        bank.stream.search(" ")


@settings(max_examples=25)
@given(question=st.text(min_size=1, max_size=60).filter(str.strip))
def test_any_question_has_an_answer(bank: Bank, question: str) -> None:
    if not bank.stream.recent():
        bank.stream.log("Something", cycle=3, issues=[1])
    assert isinstance(bank.stream.search(question), list)


# Changing


@pytest.mark.req("C12")
def test_people_edit_and_remove_entries_and_take_that_back(bank: Bank) -> None:
    entry = bank.stream.log("Wrong wrods", cycle=3, role="qa")
    edited = bank.stream.edit(entry.id, action="Right words about #9", importance=9)
    assert (edited.action, edited.issues, edited.importance, edited.seq) == (
        "Right words about #9",
        (9,),
        9,
        1,
    )
    with pytest.raises(RecordError, match="cycle: cannot be edited"):
        bank.stream.edit(entry.id, cycle=4)
    with pytest.raises(RecordError, match="importance"):
        bank.stream.edit(entry.id, importance=0)
    bank.stream.remove(entry.id)
    with pytest.raises(NotFoundError, match="no entry"):
        bank.stream.get(entry.id)
    bank.ledger.undo(entry.id)
    assert bank.stream.get(entry.id) == edited


@pytest.mark.req("C12")
def test_another_projects_stream_is_another_bank(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "one") as one, fresh_bank(tmp_path / "two") as two:
        one.stream.log("Secret plans of one")
        assert two.stream.search("secret plans") == []
        assert two.stream.recent() == []


# Lines


@pytest.mark.req("C2")
def test_the_stream_goes_out_and_comes_in_without_loss(bank: Bank, tmp_path: Path) -> None:
    for cycle in (1, 2, 150):
        bank.stream.log(f"Work on #{cycle}", cycle=cycle, role="qa", tags=["t"], run="r1", content="More")
    file = tmp_path / "stream.jsonl"
    assert bank.stream.export(file) == 3
    with fresh_bank(tmp_path / "other") as other:
        taken = other.stream.import_lines([file], is_approved=True)
        assert (taken.added, taken.changed, taken.unchanged, taken.problems) == (3, 0, 0, ())
        assert other.stream.by_cycle(0, 999) == bank.stream.by_cycle(0, 999)
        assert other.stream.lines() == bank.stream.lines()
        again = other.stream.import_lines([file], is_approved=True)
        assert (again.added, again.changed, again.unchanged) == (0, 0, 3)
        assert other.stream.log("Goes on", role="qa").seq == 4


@pytest.mark.req("C2")
def test_entries_of_a_file_change_none_and_archive_none(bank: Bank, tmp_path: Path) -> None:
    own = bank.stream.log("Never deploy on Friday", role="human", cycle=3)
    line = {
        "id": own.id,
        "cycle": 3,
        "timestamp": "2036-02-08T13:23:00Z",
        "role": "human",
        "action": "Deploy",
    }
    file = tmp_path / "stream.jsonl"
    write_jsonl(file, [line, {**line, "id": "b", "cycle": 900_000}, {**line, "id": "c", "role": "qa"}])
    taken = bank.stream.import_lines([file])
    assert (taken.added, taken.changed, taken.left) == (2, 0, 1)
    assert bank.stream.get(own.id) == own
    entries = [bank.stream.get(name) for name in "bc"]
    assert [(entry.cycle, entry.role) for entry in entries] == [(3, ""), (3, "qa")]
    assert all(entry.extra["brought_by"] == "file stream.jsonl" for entry in entries)
    assert all(entry.time <= bank.now() for entry in entries)
    assert bank.stream.reflect().gathered <= 1
    vouched = bank.stream.import_lines([file], is_approved=True)
    assert (vouched.changed, bank.stream.get("b").cycle, bank.stream.get("b").role) == (3, 900_000, "human")


def test_bad_lines_cost_only_themselves(bank: Bank, tmp_path: Path) -> None:
    good = {"id": "a", "cycle": 1, "timestamp": "2026-02-08T13:23:00Z", "role": "qa", "action": "Fine"}
    file = tmp_path / "stream.jsonl"
    write_jsonl(file, [good, {**good, "id": "b", "importance": 99}, {**good, "id": "c", "action": ""}])
    with pytest.raises(InputError, match="2 bad lines, nothing was imported"):
        bank.stream.import_lines([file], is_strict=True)
    assert bank.stream.recent() == []
    taken = bank.stream.import_lines([file])
    assert (taken.added, [problem.number for problem in taken.problems]) == (1, [2, 3])


def test_an_agent_takes_in_only_what_its_role_said(bank: Bank, tmp_path: Path) -> None:
    file = tmp_path / "stream.jsonl"
    line = {"cycle": 1, "timestamp": "2026-02-08T13:23:00Z", "action": "Fine"}
    write_jsonl(file, [{**line, "role": "maker"}, {**line, "role": "guardian"}])
    with pytest.raises(AccessError):
        _agent(bank, "maker").stream.import_lines([file])
    assert bank.stream.recent() == []


def test_a_file_that_cannot_be_written_is_said(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        bank.stream.export(tmp_path / "file" / "stream.jsonl")


# Together

_LOG = """
import sys
from archivist import Bank
from archivist.records import Actor, ActorKind
bank = Bank.open(sys.argv[1], actor=Actor(ActorKind.AGENT, sys.argv[2], sys.argv[2]))
for number in range(40):
    if number % 4 == 0:
        bank.stream.begin_cycle()
    bank.stream.log(f"{sys.argv[2]} did {number}")
"""


@pytest.mark.req("C2", "M7")
def test_agents_that_log_at_once_lose_nothing(tmp_path: Path) -> None:
    lay_bank(tmp_path)
    agents = [
        subprocess.Popen([sys.executable, "-c", _LOG, str(tmp_path), name], stderr=subprocess.PIPE)
        for name in ("maker", "guardian")
    ]
    assert [agent.communicate()[1] for agent in agents] == [b"", b""]
    with Bank.open(tmp_path) as bank:
        entries = bank.stream.by_cycle(0, 999)
        assert sorted(entry.seq for entry in entries) == list(range(1, 81))
        assert len({(entry.role, entry.action) for entry in entries}) == 80
        # Every begun cycle is somebody's own.
        cycles = {
            entry.cycle: {other.role for other in entries if other.cycle == entry.cycle} for entry in entries
        }
        assert sorted(cycles) == list(range(1, 21))
        assert all(len(roles) == 1 for roles in cycles.values())
        assert bank.ledger.verify().is_whole


def test_places_are_not_given_twice_after_an_erasure(bank: Bank) -> None:
    bank.stream.log("One", importance=5)
    last = bank.stream.log("Two", importance=5)
    bank.stream.reflect("by hand")
    bank.erasure.erase([last.id])
    assert bank.stream.log("Three").seq == 3


def test_lines_are_json(bank: Bank) -> None:
    bank.stream.log("One")
    assert json.loads(json.dumps(bank.stream.lines()))[0]["tokenEstimate"] == 1
    assert isinstance(bank.stream.recent(1)[0], Entry)
