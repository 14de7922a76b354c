"""Tokens: handed out once, kept as a hash, ended by time or by hand, never above their maker."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.access.service import KEPT, IdempotencyStore, digest_of
from archivist.capture.redaction import redact
from archivist.errors import AccessError, InputError, NotFoundError
from archivist.records import Actor, ActorKind, Token
from archivist.records.layers import TokenState
from tests.banks import fresh_bank
from tests.conftest import START, TickingClock

AGENT = Actor(ActorKind.AGENT, "kit", "maker")


def test_only_the_hash_of_a_token_is_kept(bank: Bank) -> None:
    issued = bank.tokens.create("agent:kit:maker", name="  kit's  laptop ")
    assert issued.token.actor == AGENT
    assert issued.token.name == "kit's laptop"
    assert issued.token.digest == digest_of(issued.secret)
    assert bank.tokens.find_by_secret(issued.secret) == issued.token
    assert len(issued.secret) >= 43
    raw = b"".join(file.read_bytes() for file in bank.path.parent.iterdir())
    assert issued.secret.encode() not in raw
    with bank.reading() as reader:
        (change,) = reader.changes(kind="token")
    assert (change.entry.verb, change.entry.actor) == ("create", bank.actor)
    assert issued.secret not in repr(change)
    assert bank.ledger.verify().is_whole


def test_no_text_keeps_a_token_of_ours(bank: Bank) -> None:
    secrets = [bank.tokens.create(f"agent:kit{number}").secret for number in range(50)]
    for secret in secrets:
        for text in (
            secret, f"use {secret} please", f"{secret}\n01M7 human:ada",
            f'{{"X": "{secret}"}}', f"(`{secret}`)"
        ):  # fmt: skip
            assert secret[5:] not in redact(text).text, text
    for name in ("arch_x86_64_unknown_linux_gnu_release_candidate", "arch_" + "setup" * 9, "arch_linux"):
        assert redact(name).text == name


@pytest.mark.parametrize("secret", ["", "arch_", "arch_" + "x" * 43, "x" * 10_000, "arch_\ud800", "Bearer"])
def test_what_is_no_token_is_nobodys(bank: Bank, secret: str) -> None:
    bank.tokens.create("agent:kit")
    assert bank.tokens.find_by_secret(secret) is None


def test_a_token_of_another_bank_is_unknown(bank: Bank, tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "other") as other:
        secret = other.tokens.create("human:ada").secret
    assert bank.tokens.find_by_secret(secret) is None


def test_a_token_ends_with_its_days_and_when_it_is_revoked(bank: Bank, clock: TickingClock) -> None:
    short, long = bank.tokens.create("agent:kit", expires_days=1), bank.tokens.create("agent:ann")
    assert [each.id for each in bank.tokens.list()] == [short.token.id, long.token.id]
    clock.now += timedelta(days=1)
    kept = bank.tokens.find_by_secret(short.secret)
    assert kept is not None
    assert kept.state(bank.now()) is TokenState.EXPIRED
    assert [each.id for each in bank.tokens.list()] == [long.token.id]
    revoked = bank.tokens.revoke("agent:ann")
    assert revoked.state(bank.now()) is TokenState.REVOKED
    assert bank.tokens.revoke(long.token.id) == revoked
    assert bank.tokens.list() == []
    assert len(bank.tokens.list(with_ended=True)) == 2


def test_revoking_names_one_token(bank: Bank) -> None:
    first = bank.tokens.create("agent:kit", name="ci")
    bank.tokens.create("agent:ann", name="ci")
    with pytest.raises(InputError, match="2 tokens are called 'ci'"):
        bank.tokens.revoke("ci")
    bank.tokens.revoke(first.token.id)
    assert bank.tokens.revoke("ci").actor.name == "ann"
    with pytest.raises(NotFoundError):
        bank.tokens.revoke("nobody")


def test_a_revoked_token_cannot_be_undone(bank: Bank) -> None:
    made = bank.tokens.create("agent:kit")
    bank.tokens.revoke(made.token.id)
    with pytest.raises(AccessError):
        bank.ledger.undo(made.token.id)
    kept = bank.tokens.find_by_secret(made.secret)
    assert kept is not None
    assert kept.revoked is not None


@pytest.mark.req("M8")
@pytest.mark.parametrize(
    ("maker", "made", "may"),
    [
        ("human:ada", "human:bob", True),
        ("human:ada", "archivist", True),
        ("orchestrator:o", "orchestrator:p", True),
        ("orchestrator:o", "agent:kit", True),
        ("orchestrator:o", "human:ada", False),
        ("orchestrator:o", "archivist", False),
        ("agent:kit", "agent:kit", False),
        ("archivist", "agent:kit", False),
    ],
)
def test_nobody_hands_out_more_than_is_his(bank: Bank, maker: str, made: str, may: bool) -> None:
    acting = bank.acting_as(Actor.parse(maker))
    if may:
        assert str(acting.tokens.create(made).token.actor) == made
        return
    with pytest.raises(AccessError):
        acting.tokens.create(made)
    assert bank.ledger.denials()[-1].entry.actor == acting.actor


def test_agents_see_no_tokens(bank: Bank) -> None:
    made = bank.tokens.create("agent:kit")
    agent = bank.acting_as(AGENT)
    for call in (agent.tokens.list, lambda: agent.tokens.revoke(made.token.id)):
        with pytest.raises(AccessError):
            call()
    with pytest.raises(NotFoundError, match=f"no record '{made.token.id}'"):
        agent.ledger.find(made.token.id)


@pytest.mark.parametrize(
    ("actor", "fields"),
    [
        ("agent", {}),
        ("agent: ", {}),
        ("robot:x", {}),
        ("agent:" + "x" * 300, {}),
        ("agent:a\nb", {}),
        ("agent:kit", {"name": "n" * 300}),
        ("agent:kit", {"expires_days": 0}),
        ("agent:kit", {"expires_days": -1}),
        ("agent:kit", {"expires_days": float("nan")}),
        ("agent:kit", {"expires_days": float("inf")}),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(bank: Bank, actor: str, fields: dict[str, float]) -> None:
    with pytest.raises(InputError):
        bank.tokens.create(actor, **fields)  # type: ignore[arg-type]
    assert bank.tokens.list(with_ended=True) == []


@given(
    expires=st.none() | st.integers(-100, 100),
    revoked=st.none() | st.integers(-100, 100),
    at=st.integers(-99, 99),
)
def test_a_token_once_ended_stays_ended(expires: int | None, revoked: int | None, at: int) -> None:
    def day(number: int | None) -> object:
        return None if number is None else START + timedelta(days=number)

    token = Token(
        id="t",
        actor=AGENT,
        digest="d",
        created=START,
        expires=day(expires),  # type: ignore[arg-type]
        revoked=day(revoked),  # type: ignore[arg-type]
    )
    now, later = START + timedelta(days=at), START + timedelta(days=at + 1)
    if token.state(now) is not TokenState.VALID:
        assert token.state(later) is not TokenState.VALID


# Requests that come twice


def test_an_answer_is_kept_for_a_day(bank: Bank, clock: TickingClock) -> None:
    answers = IdempotencyStore(bank)
    assert answers.find_answer("t:k") is None
    answers.store_answer("t:k", "d", 201, "{}")
    known = answers.find_answer("t:k")
    assert known is not None
    assert (known.digest, known.status, known.body) == ("d", 201, "{}")
    assert answers.find_answer("u:k") is None
    clock.now += KEPT
    assert answers.find_answer("t:k") is None


def test_an_answer_is_kept_with_what_it_answers_or_not_at_all(bank: Bank) -> None:
    answers = IdempotencyStore(bank)
    with pytest.raises(ZeroDivisionError), bank.transaction():
        answers.store_answer("t:k", "d", 201, "{}")
        raise ZeroDivisionError
    assert answers.find_answer("t:k") is None


def test_erasing_takes_kept_answers_along(bank: Bank) -> None:
    lesson = bank.lessons.add("the launch code is heliotrope")
    answers = IdempotencyStore(bank)
    for key in ("t:a", "t:b"):
        answers.store_answer(key, "d", 201, '{"summary": "the launch code is heliotrope"}')
        bank.erasure.erase([lesson.id]) if key == "t:a" else bank.erasure.erase(matching="heliotrope")
        assert answers.find_answer(key) is None
