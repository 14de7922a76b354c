"""Work on requests that may come twice: the first is done, the second gets the first one's answer."""

from __future__ import annotations

from datetime import timedelta

from archivist.service import BankService
from archivist.store.results import StoredResponse

KEPT = timedelta(hours=24)


class IdempotencyStore(BankService):
    """The answers of the last day, each by the name of its request."""

    def find_answer(self, request: str) -> StoredResponse | None:
        """Return what a request was answered; None for one that was not, or too long ago."""
        with self._bank.transaction() as writer:
            writer.drop_responses_before(self._bank.now() - KEPT)
            return writer.stored_response(request)

    def store_answer(self, request: str, digest: str, status: int, body: str) -> None:
        """Keep what a request was answered; within the transaction that did it, both are kept or neither."""
        with self._bank.transaction() as writer:
            writer.store_response(request, StoredResponse(digest, status, body, self._bank.now()))
