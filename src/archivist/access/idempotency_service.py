"""Idempotent requests: the first one is executed, a repetition gets the same response."""

from __future__ import annotations

from datetime import timedelta

from archivist.service import BankService
from archivist.store.results import StoredResponse

KEPT = timedelta(hours=24)


class IdempotencyStore(BankService):
    """The responses of the last day, by the name of the request."""

    def find_answer(self, request: str) -> StoredResponse | None:
        """Return the stored response to a request, or None."""
        with self._bank.transaction() as writer:
            writer.drop_responses_before(self._bank.now() - KEPT)
            return writer.stored_response(request)

    def store_answer(self, request: str, digest: str, status: int, body: str) -> None:
        """Store the response to a request; within the request's transaction both are stored or neither."""
        with self._bank.transaction() as writer:
            writer.store_response(request, StoredResponse(digest, status, body, self._bank.now()))
