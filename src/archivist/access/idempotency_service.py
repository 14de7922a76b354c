"""Work on requests that may come twice: the first is done, the second gets the first one's answer."""

from __future__ import annotations

from datetime import timedelta

from archivist.service import Desk
from archivist.store.results import Answered

KEPT = timedelta(hours=24)


class Repeats(Desk):
    """The answers of the last day, each by the name of its request."""

    def answered(self, request: str) -> Answered | None:
        """Return what a request was answered; None for one that was not, or too long ago."""
        with self._bank.transaction() as writer:
            writer.drop_answers_before(self._bank.now() - KEPT)
            return writer.answered(request)

    def keep(self, request: str, digest: str, status: int, body: str) -> None:
        """Keep what a request was answered; within the transaction that did it, both are kept or neither."""
        with self._bank.transaction() as writer:
            writer.keep_answer(request, Answered(digest, status, body, self._bank.now()))
