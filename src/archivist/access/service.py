"""Work on tokens: let somebody in under an actor's name, and shut them out again."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from archivist.access.rights import Layer, Verb, decides
from archivist.capture.redaction import redact
from archivist.errors import InputError, NotFoundError
from archivist.records.access_token import Token, TokenState
from archivist.records.actor import Actor
from archivist.records.words import ActorKind
from archivist.service import BankService
from archivist.store.filters import equals

PREFIX = "arch_"
_SECRET_BYTES = 32
_NAME_CHARACTERS = 200
_MOST_DAYS = 36_500
# The key itself is never looked up: what is longer than any key is nobody's.
_MOST_CHARACTERS = 200
_OWN_KIND = "people hand out any token, orchestrators those of orchestrators and agents"


class IssuedToken(NamedTuple):
    """A new token, and the key that is shown this once."""

    token: Token
    secret: str


class Tokens(BankService):
    """The keys to the bank. Whoever may decide about the bank hands them out and takes them back."""

    @decides(Layer.BANK)
    def create(self, actor: Actor | str, *, name: str = "", expires_days: float | None = None) -> IssuedToken:
        """Hand out a token in an actor's name; without days it holds until it is revoked."""
        who = _check_actor(Actor.parse(actor) if isinstance(actor, str) else actor)
        self._refuse_above_own(who)
        now = self._bank.now()
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        token = Token(
            id=self._bank.new_id(now),
            name=_check_name(name) or str(who),
            actor=who,
            digest=digest_of(secret),
            created=now,
            expires=None if expires_days is None else now + _expiry_delta(expires_days),
        )
        with self._bank.transaction() as writer:
            writer.put(token, "create")
        return IssuedToken(token, secret)

    @decides(Layer.BANK)
    def list(self, *, with_ended: bool = False) -> list[Token]:
        """Return the tokens, oldest first: those that hold, or all of them."""
        now = self._bank.now()
        with self._bank.reading() as reader:
            found = reader.select(Token, order=("created", "id"))
        return [each for each in found if with_ended or each.state(now) is TokenState.VALID]

    @decides(Layer.BANK)
    def revoke(self, name: str) -> Token:
        """Shut a token's bearer out from now on, by its id or its name; doing it again changes nothing."""
        with self._bank.transaction() as writer:
            found = writer.get(Token, name)
            named = [found] if found else writer.select(Token, equals("name", name), order=("created",))
            open_ones = [each for each in named if each.revoked is None]
            if len(open_ones) > 1:
                ids = ", ".join(each.id for each in open_ones)
                raise InputError(
                    f"{len(open_ones)} tokens are called {name!r}", hint=f"name one by id: {ids}"
                )
            if not named:
                raise NotFoundError("token", name, hint="archivist token list --all shows what there is")
            if not open_ones:
                return named[-1]
            revoked = replace(open_ones[0], revoked=self._bank.now())
            writer.put(revoked, "revoke")
        return revoked

    def find_by_secret(self, secret: str) -> Token | None:
        """Return the token of which this is the key, whatever its state; None when it is nobody's here."""
        if not secret.startswith(PREFIX) or len(secret) > _MOST_CHARACTERS:
            return None
        with self._bank.reading() as reader:
            found = reader.select(Token, equals("digest", digest_of(secret)), limit=1)
        return found[0] if found else None

    def is_valid(self, token_id: str) -> bool:
        """Say whether a token still lets its bearer in."""
        with self._bank.reading() as reader:
            token = reader.get(Token, token_id)
        return token is not None and token.state(self._bank.now()) is TokenState.VALID

    def _refuse_above_own(self, who: Actor) -> None:
        """Refuse a token that may more than who hands it out: nobody makes himself a person."""
        own = self._bank.actor.kind
        if own is ActorKind.HUMAN:
            return
        if own is not ActorKind.ORCHESTRATOR or who.kind not in (ActorKind.ORCHESTRATOR, ActorKind.AGENT):
            self._bank.refuse(Layer.BANK, Verb.DECIDE, hint=_OWN_KIND, what=f"token of {who}")


def digest_of(secret: str) -> str:
    """Return what of a key is kept."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _check_actor(actor: Actor) -> Actor:
    """Return an actor that can own something: an agent without a name would be every agent."""
    if actor.kind is ActorKind.AGENT and not actor.name.strip():
        raise InputError("an agent's token needs the agent's name", hint="agent:NAME or agent:NAME:ROLE")
    if len(str(actor)) > _NAME_CHARACTERS or not str(actor).isprintable():
        raise InputError("the actor is no name", hint="kind:name:role in letters, at most 200 of them")
    return actor


def _check_name(name: str) -> str:
    cleaned = redact(" ".join(name.split())).text
    if len(cleaned) > _NAME_CHARACTERS:
        raise InputError(f"name: {len(cleaned)} characters, at most {_NAME_CHARACTERS}")
    return cleaned


def _expiry_delta(days: float) -> timedelta:
    # Written so that what is not a number is refused too.
    if not 0 < days <= _MOST_DAYS:
        raise InputError(f"expires: {days:g} is no number of days", hint=f"more than 0, at most {_MOST_DAYS}")
    return timedelta(days=days)
