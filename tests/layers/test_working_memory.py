"""Working memory through the bank: its agent's alone, kept over a restart, gone when it expires."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import AccessError, InputError, NotFoundError
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind, Working
from tests.banks import lay_bank
from tests.conftest import TickingClock

CODER = Actor(ActorKind.AGENT, "coder", "maker")
OTHERS = [
    "human:ada",
    "human:coder",
    "orchestrator:coder",
    "archivist",
    "agent:other",
    "agent",
    "agent::maker",
]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def coder(bank: Bank) -> Bank:
    """Return the bank in the name of the agent that owns the memory."""
    return bank.acting_as(CODER)


@pytest.mark.req("M1")
def test_an_agent_keeps_plan_constraints_context_and_notes(coder: Bank) -> None:
    assert coder.working.get() is None
    coder.working.update(plan="port the parser", constraints=["no new dependencies"])
    coder.working.update(context={"branch": "main", "pr": 12})
    coder.working.update(context={"pr": None, "steps": [1, {"two": 2}]})
    coder.working.note("tests live in t/")
    kept = coder.working.get()
    assert kept is not None
    assert (kept.id, kept.plan, kept.constraints) == ("coder", "port the parser", ("no new dependencies",))
    assert kept.context == {"branch": "main", "steps": [1, {"two": 2}]}
    assert kept.scratchpad == ("tests live in t/",)
    assert coder.working.get("coder") == kept
    assert coder.working.clear() is True
    assert (coder.working.get(), coder.working.clear()) == (None, False)


@pytest.mark.req("M1", "M8")
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "attempt",
    [
        lambda desk: desk.get("coder"),
        lambda desk: desk.update(agent="coder", plan="mine"),
        lambda desk: desk.note("mine", agent="coder"),
        lambda desk: desk.clear(agent="coder"),
        lambda desk: desk.open("coder"),
    ],
    ids=["get", "update", "note", "clear", "open"],
)
def test_nobody_else_reads_or_writes_it(
    bank: Bank, coder: Bank, name: str, attempt: Callable[..., object]
) -> None:
    before = coder.working.update(plan="mine alone")
    with pytest.raises(AccessError) as refused:
        attempt(bank.acting_as(Actor.parse(name)).working)
    assert re.fullmatch(rf"{name} may not (read|write) working( of 'coder')?", refused.value.message)
    assert str(bank.ledger.denials()[-1].entry.actor) == name
    assert coder.working.get() == before


@pytest.mark.req("M1", "M8")
def test_history_undo_and_erasure_do_not_show_it_either(bank: Bank, coder: Bank) -> None:
    coder.working.update(plan="a very private plan")
    other = bank.acting_as(Actor(ActorKind.AGENT, "other"))
    for actor in (bank, other):
        with pytest.raises(NotFoundError) as refused:
            actor.ledger.history("coder")
        with pytest.raises(NotFoundError) as unknown:
            actor.ledger.history("nobody")
        assert refused.value.message.replace("coder", "nobody") == unknown.value.message
    with pytest.raises(AccessError):
        bank.ledger.undo("coder")
    assert [change.entry.verb for change in coder.ledger.history("coder")] == ["update"]
    with pytest.raises(AccessError, match="may not write bank"):
        other.erasure.find_erasure_targets(["coder"])
    for targets in (
        bank.erasure.find_erasure_targets(["coder"]),
        bank.erasure.find_erasure_targets(matching="private plan"),
    ):
        assert [target.words for target in targets] == ["private to its agent"]


@pytest.mark.req("M1")
def test_a_record_of_the_same_name_does_not_show_it(bank: Bank, coder: Bank) -> None:
    from archivist.records import Episode

    bank.runs.record_episode(Episode(id="coder", task="a run of that name"))
    coder.working.update(plan="private")
    assert [change.entry.kind for change in bank.ledger.history("coder")] == ["episode"]
    bank.ledger.undo("coder")
    assert coder.working.get() is not None


@pytest.mark.req("M1")
def test_it_is_never_searched_briefed_or_exported(bank: Bank, coder: Bank, tmp_path: Path) -> None:
    coder.working.update(plan="xylophone plan", context={"xylophone": 1})
    coder.working.note("xylophone note")
    assert bank.recall(Query(text="xylophone")).hits == ()
    assert "xylophone" not in bank.brief(task="xylophone").text
    bank.exchange.export(tmp_path / "out")
    bank.exchange.share(tmp_path / "shared")
    written = [
        path for folder in ("out", "shared") for path in (tmp_path / folder).rglob("*") if path.is_file()
    ]
    assert written
    assert not any(b"xylophone" in path.read_bytes() for path in written)


def test_secrets_are_taken_out_also_by_their_names(coder: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    kept = coder.working.update(
        plan=f"use {token}",
        constraints=[token],
        context={"password": "hunter2hunter2", "deep": [{"x": token}]},
    )
    coder.working.note(f"it is {token}")
    assert token not in str(coder.working.get())
    assert str(kept.context["password"]).startswith("[redacted:")


@pytest.mark.req("M1")
def test_it_expires_after_its_last_change(bank: Bank, coder: Bank, clock: TickingClock) -> None:
    coder.working.update(plan="old")
    clock.now += timedelta(days=6)
    coder.working.note("still here")
    clock.now += timedelta(days=6)
    assert coder.working.get() is not None
    clock.now += timedelta(days=2)
    assert coder.working.get() is None
    fresh = coder.working.open()
    assert (fresh.plan, fresh.constraints, fresh.context, fresh.scratchpad) == ("", (), {}, ())
    bank.acting_as(Actor(ActorKind.AGENT, "other")).working.note("hello")
    with bank.reading() as reader:
        assert reader.get(Working, "coder") is None
    assert coder.working.update(context={"new": True}).plan == ""


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda desk: desk.update(context={"when": object()}), "context: not JSON"),
        (lambda desk: desk.update(context=["x"]), "context: expected an object"),
        (lambda desk: desk.update(constraints=[1]), "constraint: expected a text"),
        (lambda desk: desk.update(plan="x" * 9_000), "plan: 9,000 characters"),
        (lambda desk: desk.note(""), "the note is empty"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_words(
    coder: Bank, attempt: Callable[..., object], reason: str
) -> None:
    with pytest.raises(InputError) as refused:
        attempt(coder.working)
    assert reason in refused.value.message
    assert coder.working.get() is None


def test_broken_text_is_mended(coder: Bank) -> None:
    assert coder.working.update(plan="half \ud83d", context={"\ud83d": "\ud83d"}).plan == "half ?"
    kept = coder.working.get()
    assert kept is not None
    assert kept.context == {"?": "?"}


@pytest.mark.req("M1")
def test_a_scratch_is_warm_after_a_restart(coder: Bank) -> None:
    with coder.working.open() as scratch:
        scratch.plan = "port the parser"
        scratch.know(step=3)
        assert coder.working.get() is None
        scratch.snapshot()
        scratch.note("later")
    again = coder.working.open()
    assert (again.agent, again.plan, again.context, again.scratchpad) == (
        "coder", "port the parser", {"step": 3}, ("later",),
    )  # fmt: skip


def _example() -> str:
    """Return the program that the guide shows."""
    guide = (ROOT / "docs" / "guides" / "core.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    return str(program)


@pytest.mark.req("M1")
def test_the_guides_agent_is_warm_after_sigterm(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(_example(), "utf-8")
    lay_bank(tmp_path)
    first, second = _stopped(program), _stopped(program)
    assert first[0] == 0
    # A step that was told, and interrupted before it was kept, is told again.
    assert second[0] in (first[-1], first[-1] + 1)
    assert second[0] >= 2


def _stopped(program: Path) -> list[int]:
    """Run the agent for three steps, stop it with SIGTERM, and return the steps that it told."""
    agent = subprocess.Popen(
        [sys.executable, "-u", str(program)], cwd=program.parent, stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    told = [agent.stdout.readline() for _ in range(3)]
    agent.send_signal(signal.SIGTERM)
    rest, _ = agent.communicate(timeout=30)
    assert agent.returncode == 143
    return [int(step) for step in re.findall(r"step (\d+): port the parser", "".join(told) + rest)]
