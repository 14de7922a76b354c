"""Work on requests that may come twice: the first is done, the second gets the first one's answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from socket import gethostname
from typing import NamedTuple

from archivist.desks.desk import Desk
from archivist.processes import is_gone, own_mark
from archivist.stores.answers import Answered

KEPT = timedelta(hours=24)
# Who began a request and has not ended it for so long will not end it any more.
LEASE = timedelta(minutes=10)


class Claim(NamedTuple):
    """Whether a request is to be done now; else what is in the way, or what it was answered."""

    is_ours: bool
    answer: Answered | None = None

    @property
    def is_under_way(self) -> bool:
        """Say whether somebody is doing it at this moment."""
        return self.answer is not None and not self.answer.status


class Repeats(Desk):
    """The answers of the last day, each by the name of its request."""

    def claim(self, request: str, digest: str) -> Claim:
        """Begin a request, unless one of its name was begun; `digest` tells one body from another."""
        now = self._bank.now()
        with self._bank.transaction() as writer:
            writer.drop_answers_before(now - KEPT)
            known = writer.answered(request)
            if known and (known.status or known.digest != digest or _is_held(known, now)):
                return Claim(False, known)
            writer.keep_answer(request, Answered(digest, 0, _own_name(), now))
        return Claim(True)

    def keep(self, request: str, digest: str, status: int, body: str) -> None:
        """Keep what a request was answered."""
        with self._bank.transaction() as writer:
            writer.keep_answer(request, Answered(digest, status, body, self._bank.now()))

    def release(self, request: str) -> None:
        """Let a request that came to nothing be made again."""
        with self._bank.transaction() as writer:
            writer.drop_answer(request)


def _is_held(begun: Answered, now: datetime) -> bool:
    """Say whether somebody still works on a request that was begun; its body names who."""
    host, _, mark = begun.body.rpartition("/")
    return now - begun.time < LEASE and not (host == gethostname() and is_gone(mark))


def _own_name() -> str:
    return f"{gethostname()}/{own_mark()}"
