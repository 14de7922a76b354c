"""What a run is told, withheld from it, followed by it, and what becomes of a lesson."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.brief.healing_service import HealRequest, heal
from archivist.brief.select import BriefFormat, BriefPreset, BriefRequest, is_withheld
from archivist.capture.service import CaptureOverrides
from archivist.config import BriefRules, Config, RecallRules
from archivist.doctor import find_doubtful_lessons
from archivist.recall.embedders import endpoint
from archivist.recall.query import Query
from archivist.records import (
    Brief,
    Effect,
    Episode,
    EpisodeStatus,
    Event,
    EventKind,
    Following,
    Lesson,
    Source,
    Status,
    Verdict,
)
from archivist.reflect.trigger import ReflectionTrigger
from archivist.store.filters import equals
from tests.banks import fresh_bank
from tests.conftest import TickingClock
from tests.samples import lesson

MISSING = "waxwing: error: the following arguments are required: --lock"


def _call(run: str, seq: int, command: str, output: str = "done", code: int = 0) -> Event:
    return Event(
        run=run,
        seq=seq,
        kind=EventKind.TOOL_CALL,
        tool="bash",
        text=command,
        target=command,
        output=output,
        exit_code=code,
        is_error=bool(code),
    )


def _finish(bank: Bank, run: str, *events: Event) -> list[Verdict]:
    now = bank.now()
    bank.capture(
        Episode(id=run, project="cart", task="Build it", finished=now, status=EpisodeStatus.SUCCESS), events
    )
    bank.reflections.maybe_reflect(ReflectionTrigger(run))
    bank.lessons.decay(run)
    return bank.audit(run)


def _failing(bank: Bank, run: str) -> list[Verdict]:
    """Let a run meet the failure and find the way out."""
    return _finish(
        bank, run, _call(run, 1, "waxwing build", MISSING, 2), _call(run, 2, "waxwing build --lock ci")
    )


def _fail_though_told(bank: Bank, number: int) -> None:
    run = f"again-{number}"
    bank.runs.start_run(run, task="Build it", repo="cart")
    _failing(bank, run)


def _learnt(bank: Bank) -> Lesson:
    """Return the lesson that two runs taught."""
    for run in ("r1", "r2"):
        _failing(bank, run)
    (found,) = bank.lessons.query(Query())
    return found


# Audit


@pytest.mark.req("N2")
def test_a_told_lesson_is_followed_ignored_or_without_occasion(bank: Bank) -> None:
    known = _learnt(bank)
    for run in ("heeds", "ignores", "elsewhere"):
        assert [each.lesson.id for each in bank.runs.start_run(run, task="Build it", repo="cart").chosen] == [
            known.id
        ]
    (heeds,) = _finish(bank, "heeds", _call("heeds", 1, "waxwing build --lock ci"))
    (ignores,) = _failing(bank, "ignores")
    (elsewhere,) = _finish(bank, "elsewhere", _call("elsewhere", 1, "ls -l"))
    assert (heeds.following, heeds.effect, heeds.failed) == (Following.FOLLOWED, Effect.HELPFUL, False)
    assert (ignores.following, ignores.effect, ignores.failed) == (
        Following.IGNORED,
        Effect.INEFFECTIVE,
        True,
    )
    assert (elsewhere.following, elsewhere.effect) == (Following.NOT_APPLICABLE, Effect.NOT_NEEDED)
    assert bank.audit("heeds") == [heeds]


@pytest.mark.req("N2")
def test_a_withheld_lesson_is_recorded_and_held_against_the_told_ones(bank: Bank) -> None:
    known = _learnt(bank)
    bank.config = bank.config._replace(brief=bank.config.brief._replace(holdout=0.5))
    told = {
        run: bank.runs.start_run(run, task="Build it", repo="cart") for run in map("run-{}".format, range(40))
    }
    withheld = {run for run, each in told.items() if each.withheld}
    assert 8 <= len(withheld) <= 32
    assert all(told[run].text == "" and not told[run].chosen for run in withheld)
    with bank.reading() as reader:
        briefs = {brief.run: brief for brief in reader.select(Brief, equals("domain", ""))}
    assert {run for run in told if briefs[run].withheld == (known.id,)} == withheld
    for run in told:
        if run in withheld:
            (verdict,) = _failing(bank, run)
            assert (verdict.following, verdict.failed) == (Following.WITHHELD, True)
        else:
            _finish(bank, run, _call(run, 1, "waxwing build --lock ci"))
    (line,) = bank.audits.audit_report().lessons
    assert (line.lift.arms.withheld, line.lift.arms.told) == (len(withheld), 40 - len(withheld))
    assert line.lift.conclusion == "helps"


@given(st.text(max_size=20), st.text(max_size=20), st.floats(0, 1))
def test_the_lot_falls_once_and_for_no_run_never(run: str, name: str, share: float) -> None:
    assert is_withheld(run, name, share) == is_withheld(run, name, share)
    assert not is_withheld("", name, share)
    assert not is_withheld(run, name, 0)
    if is_withheld(run, name, share):
        assert is_withheld(run, name, min(1.0, share * 1.5))


def test_the_lots_have_the_share_that_was_asked_for() -> None:
    drawn = [is_withheld(f"run-{run}", f"m-{number}", 0.1) for run in range(100) for number in range(50)]
    assert 0.085 <= sum(drawn) / len(drawn) <= 0.115


def test_a_lesson_that_never_helps_is_retired_with_the_reason(bank: Bank) -> None:
    known = _learnt(bank)
    for number in range(12):
        _fail_though_told(bank, number)
    retired = bank.lessons.get(known.id)
    assert retired.status is Status.ARCHIVED
    assert "of" in str(retired.extra["retired"])
    verbs = [change.entry.verb for change in bank.ledger.history(known.id)]
    # Runs go on to meet it.
    assert {*verbs[verbs.index("retire") + 1 :]} == {"see"}
    assert bank.runs.start_run("after", task="Build it", repo="cart").chosen == ()


def test_what_its_verdicts_retired_stays_known_beside_its_error_and_counted(bank: Bank) -> None:
    known = _learnt(bank)
    for number in range(12):
        _fail_though_told(bank, number)
    retired = bank.lessons.get(known.id)
    assert retired.status is Status.ARCHIVED
    assert len(retired.runs) == len(known.runs) + 12
    asked = HealRequest("bash", "waxwing build", project="cart")
    assert "`waxwing build --lock ci`" in heal(bank, MISSING, asked).text
    for number in range(12):
        bank.stream.log_session(f"again-{number}")
    hit = bank.recall("what is waxwing").hits[0]
    assert (hit.id, hit.notes[0][:17]) == (known.id, "archived: helped ")
    bank.lessons.archive(known.id)
    assert "worked" not in heal(bank, MISSING, asked).text
    assert "lesson" not in {hit.kind for hit in bank.recall("what is waxwing").hits}


def test_a_retired_lesson_whose_failure_goes_on_is_named_until_it_is_reworded(bank: Bank) -> None:
    known = _learnt(bank)
    assert bank.audits.retired_again() == []
    for number in range(12):
        _fail_though_told(bank, number)
    (named,) = bank.audits.retired_again()
    said = f"reword it (archivist lessons edit {known.short_id} --summary TEXT)"
    assert named.lesson == known.short_id
    assert said in named.reason
    assert [each.lesson for each in find_doubtful_lessons(bank)] == [known.short_id]
    request = BriefRequest()
    why = bank.briefs.explain_selection(bank.brief(request), request)
    assert any(line.startswith(f"{known.short_id}: archived, told ") for line in why)
    bank.lessons.edit(known.id, summary="`waxwing build` needs --lock here: ask for the lock first")
    assert bank.lessons.get(known.id).status is Status.ACTIVE
    assert bank.audits.retired_again() == []


def test_a_retired_lesson_whose_failure_is_gone_needs_nobody(bank: Bank) -> None:
    _learnt(bank)
    for number in range(12):
        _fail_though_told(bank, number)
    for number in range(20):
        _finish(bank, f"quiet-{number}", _call(f"quiet-{number}", 1, "ls"))
    assert bank.audits.retired_again() == []


def test_a_lesson_that_a_person_brought_back_is_not_retired_again(bank: Bank) -> None:
    known = _learnt(bank)
    for number in range(14):
        _fail_though_told(bank, number)
        if bank.lessons.get(known.id).status is Status.ARCHIVED:
            bank.ledger.undo(known.id)
            assert number < 12
    assert bank.lessons.get(known.id).status is Status.ACTIVE


def test_what_a_person_confirmed_is_not_retired_by_itself(bank: Bank) -> None:
    known = _learnt(bank)
    bank.lessons.edit(known.id, detail="Yes, really")
    for number in range(12):
        _fail_though_told(bank, number)
    assert bank.lessons.get(known.id).status is Status.ACTIVE


def test_a_lesson_that_is_followed_does_not_fade_for_want_of_its_failure(bank: Bank) -> None:
    known = _learnt(bank)
    for number in range(40):
        run = f"told-{number}"
        bank.runs.start_run(run, task="Build it", repo="cart")
        _finish(bank, run, _call(run, 1, "waxwing build --lock ci"))
    assert (bank.lessons.get(known.id).frequency, bank.lessons.get(known.id).status) == (2, Status.ACTIVE)


def test_without_being_told_it_fades_as_documented(bank: Bank) -> None:
    known = _learnt(bank)
    for number in range(25):
        _finish(bank, f"other-{number}", _call(f"other-{number}", 1, "ls"))
    assert bank.lessons.get(known.id).status is Status.ARCHIVED


# Presets


def _put(bank: Bank, *lessons: Lesson) -> None:
    with bank.transaction() as writer:
        for each in lessons:
            writer.put(each, "add")


@pytest.mark.req("A12")
def test_a_subagent_is_told_what_is_for_its_provider_tool_and_tags(bank: Bank) -> None:
    _put(
        bank,
        lesson("a", number=1, summary="Anybody", status=Status.ACTIVE, runs=("x", "y", "z")),
        lesson("b", number=2, summary="Bash only", tool="bash", status=Status.ACTIVE, runs=("x", "y")),
        lesson("c", number=3, summary="Editor only", tool="edit", status=Status.ACTIVE, runs=("x", "y")),
        lesson("d", number=4, summary="Tagged", tags=("sql",), status=Status.ACTIVE, runs=("x", "y")),
        lesson("e", number=5, summary="Elsewhere", tags=("css",), status=Status.ACTIVE, runs=("x", "y")),
    )
    told = bank.brief(preset=BriefPreset.SUBAGENT, tool="bash", tags=("sql",))
    assert [each.lesson.summary for each in told.chosen] == ["Anybody", "Bash only", "Tagged"]
    many = [lesson(f"n{at}", number=at, summary=f"{at:x}" * 4, runs=("x", "y"), status=Status.ACTIVE)
            for at in range(10, 30)]  # fmt: skip
    _put(bank, *many)
    assert len(bank.brief(preset=BriefPreset.SUBAGENT).chosen) == 3
    assert len(bank.brief(preset=BriefPreset.ORCHESTRATOR, repo="app").chosen) == 6


@pytest.mark.req("A12")
def test_a_healer_is_told_what_worked_against_the_same_error(bank: Bank) -> None:
    _learnt(bank)
    told = bank.briefs.heal(f"$ waxwing build\n{MISSING}\n", command="waxwing build", repo="cart")
    assert "worked in 2 runs: `waxwing build --lock ci`" in told.text
    assert [each.lesson.short_id for each in told.chosen] == ["m-001"]
    assert bank.briefs.heal(MISSING, command="waxwing build", repo="another").text == ""


@pytest.mark.req("A12")
def test_a_healer_is_told_nothing_when_nothing_is_known(bank: Bank) -> None:
    _learnt(bank)
    assert bank.briefs.heal("Segmentation fault (core dumped)", command="./engine", repo="cart").text == ""
    assert bank.briefs.heal("", repo="cart").text == ""


def test_a_brief_as_yaml_is_yaml(bank: Bank) -> None:
    from ruamel.yaml import YAML

    bank.lessons.add('Say "hello: world" # not a comment', rule="- IF a\nTHEN b", tags=("x",))
    read = YAML(typ="safe").load(bank.brief(form=BriefFormat.YAML).text)
    (entry,) = read["lessons"]
    assert entry["summary"] == 'Say "hello: world" # not a comment'
    assert entry["rule"] == "- IF a THEN b"
    assert entry["tags"] == ["x"]


# Liveness


@pytest.mark.req("N4")
def test_a_lesson_that_names_a_file_that_is_gone_is_not_told_and_doctor_says_why(
    tmp_path: Path, clock: TickingClock
) -> None:
    project = tmp_path / "app"
    (project / "scripts").mkdir(parents=True)
    script = project / "scripts" / "seed.sh"
    script.write_text("echo seed\n", "utf-8")

    def git(*words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    with fresh_bank(project, clock=clock, config=Config(brief=BriefRules())) as bank:
        said = "Run `scripts/seed.sh` before the tests"
        _put(bank, lesson("a", number=1, summary=said, status=Status.ACTIVE, runs=("x", "y", "z")))
        assert "seed.sh" in bank.brief().text
        git("rm", "--quiet", "scripts/seed.sh")
        git("commit", "--quiet", "-m", "two")
        told = bank.brief()
        assert told.text == ""
        assert dict(told.stale)["m-001"] == "`scripts/seed.sh` is gone"
        check = next(each for each in bank.doctor.health() if each.name == "liveness")
        assert not check.is_well
        assert "m-001: `scripts/seed.sh` is gone" in check.text


# What a stranger would stumble over


def test_a_healer_keeps_modules_apart_and_knows_when_to_be_silent(bank: Bank) -> None:
    def missing(module: str) -> str:
        return f"Traceback (most recent call last):\nModuleNotFoundError: No module named '{module}'"

    for run in ("r1", "r2"):
        _finish(
            bank,
            run,
            _call(run, 1, "python -m app", missing("numpy"), 1),
            _call(run, 2, "pip install numpy"),
            _call(run, 3, "python -m app"),
        )
    assert (
        "pip install numpy" in bank.briefs.heal(missing("numpy"), command="python -m app", repo="cart").text
    )
    assert bank.briefs.heal(missing("zzz_unknown"), command="python -m app", repo="cart").text == ""
    for nothing in ("error", "KeyError: 'x'", "frobnicate: command not found"):
        assert bank.briefs.heal(nothing, repo="cart").text == ""


def test_a_repository_is_known_by_its_last_part(bank: Bank) -> None:
    _put(
        bank,
        lesson("a", number=1, summary="Theirs", repo="acme/shed", status=Status.ACTIVE, runs=("x", "y")),
        lesson("b", number=2, summary="Others", repo="acme/barn", status=Status.ACTIVE, runs=("x", "y")),
    )
    assert [each.lesson.summary for each in bank.brief(repo="shed").chosen] == ["Theirs"]
    assert [hit.text for hit in bank.recall(Query(text="theirs others", repo="shed")).hits] == ["Theirs"]


def test_what_was_learnt_of_an_unknown_repository_is_not_told_to_a_known_one(bank: Bank) -> None:
    for name in ("shed", "barn"):
        bank.capture(Episode(id=f"run-{name}", project=name), ())
    _put(
        bank,
        lesson(
            "a", number=1, summary="Mined somewhere", signature="|k", status=Status.ACTIVE, runs=("x", "y")
        ),
        lesson(
            "b", number=2, summary="Said by a person", source=Source.MANUAL, status=Status.ACTIVE, runs=("m",)
        ),
    )
    assert [each.lesson.summary for each in bank.brief(repo="shed").chosen] == ["Said by a person"]


def test_the_repository_that_a_run_was_started_for_is_kept(bank: Bank) -> None:
    bank.runs.start_run("r1", task="Build it", repo="shed")
    bank.capture(Episode(id="r1"), (_call("r1", 1, "ls"),))
    assert bank.runs.episode("r1").project == "shed"


def test_a_secret_that_a_person_writes_is_not_kept(bank: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    added = bank.lessons.add(f"The token {token} works", rule=f"IF asked THEN say {token}")
    edited = bank.lessons.edit(added.id, detail=f"again {token}")
    assert token not in f"{edited.summary}{edited.rule}{edited.detail}{edited.tags}"
    assert "[redacted:" in edited.summary
    assert token.encode() not in bank.path.read_bytes()


def test_recall_answers_by_words_when_the_embedder_does_not(
    tmp_path: Path, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "FIRST_PAUSE_S", 0.01)
    rules = RecallRules(embedder="endpoint:http://127.0.0.1:9/v1", endpoint_model="none")
    with fresh_bank(tmp_path / "away", clock=clock, config=Config(recall=rules)) as bank:
        bank.lessons.add("Restart the broker")
        found = bank.recall(Query(text="broker"))
    assert [hit.name for hit in found.hits] == ["m-001"]
    assert "127.0.0.1" in found.problem


def test_a_stream_that_names_its_run_otherwise_is_one_run_under_the_given_name(
    bank: Bank, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"episode": {"id": "theirs", "project": "shed"}}\n'
        '{"run": "theirs", "seq": 1, "kind": "tool_call", "tool": "bash", "text": "ls", "exit_code": 0}\n',
        "utf-8",
    )
    captured = bank.runs.capture_file(log, overrides=CaptureOverrides(run="ours"))
    assert [(each.id, each.project) for each in captured.episodes] == [("ours", "shed")]
    assert [each.id for each in bank.runs.episodes()] == ["ours"]
