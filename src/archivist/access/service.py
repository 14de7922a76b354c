"""Access tokens in actors' names, and the stored responses of requests that may be repeated."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from archivist.access.rights import Layer, Verb, decides
from archivist.capture.clean import Cleaner
from archivist.capture.redaction import redact, without_secrets
from archivist.errors import InputError, NotFoundError
from archivist.records.actor import Actor
from archivist.records.layers import Token, TokenState
from archivist.records.words import ActorKind
from archivist.service import BankService
from archivist.store.filters import equals
from archivist.store.results import StoredResponse

# A response is repeated for this long.
KEPT = timedelta(hours=24)
PREFIX = "arch_"
_SECRET_BYTES = 32
_NAME_CHARACTERS = 200
_MOST_DAYS = 36_500
# Longer than any secret: such a text is not even hashed.
_MOST_CHARACTERS = 200
_MAY_CREATE = {
    ActorKind.HUMAN: tuple(ActorKind),
    ActorKind.ORCHESTRATOR: (ActorKind.ORCHESTRATOR, ActorKind.AGENT),
}
_OWN_KIND = "people create any token, orchestrators those of orchestrators and agents"


class IssuedToken(NamedTuple):
    """A new token, and its secret, which is shown only once."""

    token: Token
    secret: str


class Tokens(BankService):
    """The tokens of the bank. Whoever may decide about the bank creates and revokes them."""

    @decides(Layer.BANK)
    def create(self, actor: Actor | str, *, name: str = "", expires_days: float | None = None) -> IssuedToken:
        """Create a token in an actor's name; without days it is valid until it is revoked."""
        who = Cleaner().clean(Actor.parse(actor) if isinstance(actor, str) else actor)
        if who.kind is ActorKind.AGENT and not who.name.strip():
            # An agent without a name would be every agent.
            raise InputError("an agent's token needs the agent's name", hint="agent:NAME or agent:NAME:ROLE")
        if len(str(who)) > _NAME_CHARACTERS or not str(who).isprintable():
            raise InputError("the actor is no name", hint="kind:name:role in letters, at most 200 of them")
        # A token must not grant more than its creator may do.
        if who.kind not in _MAY_CREATE.get(self._bank.actor.kind, ()):
            self._bank.refuse(Layer.BANK, Verb.DECIDE, hint=_OWN_KIND, what=f"token of {who}")
        cleaned = redact(" ".join(name.split())).text
        if len(cleaned) > _NAME_CHARACTERS:
            raise InputError(f"name: {len(cleaned)} characters, at most {_NAME_CHARACTERS}")
        # Written so that NaN is refused too.
        if expires_days is not None and not 0 < expires_days <= _MOST_DAYS:
            raise InputError(
                f"expires: {expires_days:g} is no number of days", hint=f"more than 0, at most {_MOST_DAYS}"
            )
        now = self._bank.now()
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        token = Token(
            id=self._bank.new_id(now),
            name=cleaned or str(who),
            actor=who,
            digest=digest_of(secret),
            created=now,
            expires=None if expires_days is None else now + timedelta(days=expires_days),
        )
        with self._bank.transaction() as writer:
            writer.put(token, "create")
        return IssuedToken(token, secret)

    @decides(Layer.BANK)
    def admit(self, token: Token) -> None:
        """Let the holder of another bank's token in as the same actor, until this bank revokes it."""
        if token.actor.kind not in _MAY_CREATE.get(self._bank.actor.kind, ()):
            self._bank.refuse(Layer.BANK, Verb.DECIDE, hint=_OWN_KIND, what=f"token of {token.actor}")
        with self._bank.transaction() as writer:
            writer.put(Cleaner().clean(token), "create")

    @decides(Layer.BANK)
    def list(self, *, with_ended: bool = False) -> list[Token]:
        """Return the valid tokens, or all of them, oldest first."""
        now = self._bank.now()
        with self._bank.reading() as reader:
            found = reader.select(Token, order=("created", "id"))
        return [token for token in found if with_ended or token.state(now) is TokenState.VALID]

    @decides(Layer.BANK)
    def revoke(self, name: str) -> Token:
        """Revoke a token by its id or name; revoking it again changes nothing."""
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
        """Return the token with this secret in any state, or None."""
        if not secret.startswith(PREFIX) or len(secret) > _MOST_CHARACTERS:
            return None
        with self._bank.reading() as reader:
            found = reader.select(Token, equals("digest", digest_of(secret)), limit=1)
        return found[0] if found else None

    def is_valid(self, token_id: str) -> bool:
        """Say whether a token still grants access."""
        with self._bank.reading() as reader:
            token = reader.get(Token, token_id)
        return token is not None and token.state(self._bank.now()) is TokenState.VALID


def digest_of(secret: str) -> str:
    """Return the digest of a secret, which is all that is stored of it."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class IdempotencyStore(BankService):
    """The responses of the last day, by the name of the request."""

    def find_answer(self, request: str) -> StoredResponse | None:
        """Return the stored response to a request, or None."""
        with self._bank.transaction() as writer:
            writer.drop_responses_before(self._bank.now() - KEPT)
            return writer.stored_response(request)

    def store_answer(self, request: str, digest: str, status: int, body: str) -> None:
        """Store the response to a request; within the request's transaction both are stored or neither."""
        answer = json.loads(body) if body else None
        # An answer can repeat a secret of the request, which the bank does not hold.
        if (cleaned := without_secrets(answer, is_exact=True)) != answer:
            body = json.dumps(cleaned, ensure_ascii=False)
        with self._bank.transaction() as writer:
            writer.store_response(request, StoredResponse(digest, status, body, self._bank.now()))
