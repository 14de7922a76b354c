"""Get vectors from an endpoint with OpenAI's `POST {url}/embeddings`, which many servers have.

The key is sent and used for nothing else: it is in no error, no name and no `repr`. Redirects are not
followed, so that it is sent to no host but the configured one.

A server that is silent, slow or endless must not stop its callers: a request has a total time and its answer
a greatest size, one question at a time waits for it in a process, and after a failure it is left alone.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from archivist.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    from http.client import HTTPConnection

    import numpy as np
    from numpy.typing import NDArray

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
# A question may wait so long in all; so may one batch of texts, with its repetitions.
QUESTION_S, BATCH_S = 5.0, 120.0
# A question waits for another one's answer until that one has waited so long.
_QUEUE_S = 1.0
# After a failure the endpoint is left alone for so long, or as long as it asks for.
REST_S, _LONGEST_REST_S = 60.0, 3600.0
# The largest usual vector has 4,096 numbers of 25 characters.
_MOST_BYTES = 1_000_000
# Endpoints refuse a whole batch for one text beyond their window; no usual window is smaller.
LONGEST_TEXT = 8000
# Characters of an endpoint's own error message that are shown.
_SHOWN = 200
_HINTS = {
    401: "check the key: the configuration names the environment variable that holds it",
    403: "check the key: the configuration names the environment variable that holds it",
    404: "check the URL and the model's name",
}


class _Reply(NamedTuple):
    """What an endpoint answered; status 0 and the problem when there is no response."""

    status: int
    body: bytes = b""
    wait_s: float = 0.0
    problem: str = ""


class _Contact:
    """How this process gets on with one endpoint: which question asks it, and until when it is left alone."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._asked_at = 0.0
        self._rests_until = 0.0
        self._problem = ""

    def require_awake(self) -> None:
        """Raise EmbedderError while the endpoint is left alone."""
        left_s = self._rests_until - time.monotonic()
        if left_s > 0:
            hint = f"it is asked again in {left_s:.0f} s; archivist doctor shows what waits for vectors"
            raise EmbedderError(self._problem, hint=hint)

    @contextmanager
    def take_turn(self, label: str) -> Iterator[None]:
        """Let one question ask; another one waits a moment for it, and goes without vectors then."""
        self.require_awake()
        left_s = self._asked_at + _QUEUE_S - time.monotonic()
        if not self._turn.acquire(timeout=min(max(left_s, 0.05), _QUEUE_S)):
            raise EmbedderError(f"{label}: another question waits for it", hint="try again later")
        try:
            self.require_awake()
            self._asked_at = time.monotonic()
            yield
        finally:
            self._turn.release()

    def rest(self, problem: str, wait_s: float) -> None:
        """Leave the endpoint alone for a while."""
        self._problem = problem
        self._rests_until = time.monotonic() + max(REST_S, min(wait_s, _LONGEST_REST_S))


# One for each endpoint and model: a server opens the embedder once for every connection to a bank.
_contacts: dict[str, _Contact] = {}


class EndpointEmbedder:
    """An embedder behind HTTP; the length of its vectors is that of the first one."""

    def __init__(
        self,
        url: str,
        model: str,
        key: str = "",
        timeout_s: float = 30,
        batch: int = 64,
        *,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        try:
            parts = urlsplit(url)
            is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_complete = False
        if not is_complete or any(not 32 < ord(character) < 127 for character in url):
            raise ConfigError(
                "the embedder's URL is not one of http or https",
                hint="it looks like https://host/v1; /embeddings is added",
            )
        self._url = parts
        # Without user, password and query, which may hold secrets.
        port = f":{parts.port}" if parts.port else ""
        self._label = f"embedder {model!r} at {parts.scheme}://{parts.hostname}{port}{parts.path}"
        self._model = model
        self._key = key.strip()
        # The error that http.client raises for such a key would show it.
        if any(not 32 <= ord(character) < 127 for character in self._key):
            raise ConfigError(
                "the embedder's key holds a character that no key has",
                hint="check the environment variable that holds it",
            )
        self._dimensions = 0
        self._last: tuple[str, list[float]] | None = None
        self._timeout_s = timeout_s
        self._batch = batch
        self._pause = pause or threading.Event().wait
        digest = sha256(f"{url}\n{model}".encode()).hexdigest()[:12]
        self.name = f"endpoint-{re.sub(r'[^A-Za-z0-9._]+', '-', model)}-{digest}"
        self._contact = _contacts.setdefault(self.name, _Contact())

    @property
    def dimensions(self) -> int:
        """Return the length of its vectors; the endpoint is asked once."""
        return self._dimensions or len(
            self._request_vectors(["dimensions"], time.monotonic() + QUESTION_S)[0]
        )

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a text; zeros for an empty one."""
        # A question is asked of several banks, and again for its next page.
        last = self._last
        if last is None or last[0] != text:
            with self._contact.take_turn(self._label):
                last = self._last = text, self._embed_batches([text], QUESTION_S)[0]
        return last[1]

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        import numpy as np

        self._contact.require_awake()
        rows = self._embed_batches(texts, BATCH_S)
        return np.array(rows, dtype=np.float32).reshape(len(rows), -1 if rows else self.dimensions)

    def _embed_batches(self, texts: Sequence[str], wait_s: float) -> list[list[float]]:
        """Request the vectors of all texts but the empty ones, which endpoints refuse."""
        filled = [place for place, text in enumerate(texts) if text.strip()]
        rows: dict[int, list[float]] = {}
        for start in range(0, len(filled), self._batch):
            batch = filled[start : start + self._batch]
            vectors = self._request_vectors([texts[place] for place in batch], time.monotonic() + wait_s)
            rows.update(zip(batch, vectors, strict=True))
        empty = [0.0] * (self.dimensions if len(rows) < len(texts) else 0)
        return [rows.get(place, empty) for place in range(len(texts))]

    def _request_vectors(self, texts: Sequence[str], deadline: float) -> list[list[float]]:
        """Return the vectors of some texts; retry while the endpoint is busy or away and time is left."""
        import json

        # Lone surrogates are not Unicode.
        cut = [text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8") for text in texts]
        body = json.dumps({"model": self._model, "input": cut}).encode()
        for attempt in range(ATTEMPTS):
            reply = self._post(body, len(texts), deadline)
            if reply.status == 200 and not reply.problem:
                try:
                    return self._read_vectors(reply.body, len(texts))
                except EmbedderError as error:
                    self._contact.rest(error.message, 0.0)
                    raise
            is_retryable = reply.status in (0, 408, 409, 425, 429) or reply.status >= 500
            pause_s = reply.wait_s or FIRST_PAUSE_S * 2**attempt
            longest_s = min(LONGEST_PAUSE_S, deadline - time.monotonic())
            if not is_retryable or attempt + 1 == ATTEMPTS or pause_s > longest_s:
                break
            self._pause(pause_s)
        later = "try again later" if is_retryable else "check the URL, the model and its limits"
        asks = f"it asks to be left alone for {reply.wait_s:.0f} s"
        hint = asks if reply.wait_s else _HINTS.get(reply.status, later)
        text = self._error_text(reply.problem or f"status {reply.status}", reply.body)
        self._contact.rest(text, reply.wait_s)
        raise EmbedderError(text, hint=hint)

    def _post(self, body: bytes, count: int, deadline: float) -> _Reply:
        """Send a request and wait for its answer, in all no longer than a request may take.

        In a thread of its own: a time-out of a socket bounds each read, not the sum of them, and nothing
        bounds the look-up of a name.
        """
        from http.client import HTTPConnection, HTTPSConnection

        left_s = min(self._timeout_s, max(deadline - time.monotonic(), 0.05))
        connect = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = connect(self._url.hostname or "", self._url.port, timeout=left_s)
        replies: list[_Reply] = []
        most = _MOST_BYTES * max(count, 1)
        thread = threading.Thread(
            target=lambda: replies.append(self._exchange(connection, body, most)), daemon=True
        )
        thread.start()
        thread.join(left_s)
        if replies:
            return replies[0]
        # What the thread still reads ends here.
        with suppress(OSError, AttributeError):
            connection.sock.shutdown(2)
        return _Reply(0, problem=f"no answer within {left_s:.3g} s")

    def _exchange(self, connection: HTTPConnection, body: bytes, most: int) -> _Reply:
        from http.client import HTTPException

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        path = f"{self._url.path.rstrip('/')}/embeddings{f'?{self._url.query}' if self._url.query else ''}"
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            wait_s = _retry_after_s(response.getheader("Retry-After"), response.getheader("Date"))
            found = response.read(most + 1)
            is_long = len(found) > most
            problem = f"an answer of more than {most:,} bytes" if is_long else ""
            return _Reply(response.status, b"" if is_long else found, wait_s, problem)
        except TimeoutError:
            return _Reply(0, problem=f"no answer within {connection.timeout:.3g} s")
        # Also a connection that was closed meanwhile, which the library takes for one that it has.
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            return _Reply(0, problem=getattr(error, "strerror", "") or type(error).__name__)
        finally:
            connection.close()

    def _read_vectors(self, body: bytes, count: int) -> list[list[float]]:
        """Return the vectors of a response at unit length, in the order of the texts."""
        import json

        try:
            data = json.loads(body)["data"]
            problem = "" if len(data) == count else f"{len(data)} vectors for {count} texts"
            # The order is that of the numbers in the reply, not that of its rows.
            rows = {row.get("index", place): row["embedding"] for place, row in enumerate(data)}
            vectors = [[float(number) for number in rows[place]] for place in range(0 if problem else count)]
        except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            vectors, problem = [], "no vectors in it"
        if not all(math.isfinite(number) for vector in vectors for number in vector):
            problem = "a number that is not finite"
        if problem:
            hint = "is it an embeddings endpoint, and does it have the model?"
            raise EmbedderError(f"{self._error_text('an unusable answer', body)}: {problem}", hint=hint)
        wanted = self._dimensions or len(vectors[0])
        wrong = next((len(vector) for vector in vectors if len(vector) != wanted), wanted)
        if wrong != wanted or not wanted:
            raise EmbedderError(
                f"{self._label} gave a vector of {wrong} dimensions, not of {wanted}",
                hint="is it still the same model?",
            )
        self._dimensions = wanted
        lengths = [math.hypot(*vector) or 1.0 for vector in vectors]
        return [
            [number / length for number in vector] for vector, length in zip(vectors, lengths, strict=True)
        ]

    def _error_text(self, problem: str, body: bytes) -> str:
        """Say what went wrong, with the endpoint's own message in any usual shape, without the key."""
        import json

        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            # A body that is not JSON is the message.
            found = body[:_SHOWN].decode("utf-8", "replace")
        for key in ("error", "message", "detail"):
            while isinstance(found, dict) and key in found:
                found = found[key]
        message = " ".join(found.split())[:_SHOWN] if isinstance(found, str) else ""
        text = f"{self._label}: {problem}{': ' if message else ''}{message}"
        return text.replace(self._key, "[key]") if self._key else text


def _retry_after_s(after: str | None, date: str | None) -> float:
    """Return how long the endpoint asks to wait: seconds, or a date relative to that of the response."""
    if not after:
        return 0.0
    if re.fullmatch(r"\d{1,9}(\.\d+)?", after.strip()):
        return float(after)
    try:
        return max(0.0, (parsedate_to_datetime(after) - parsedate_to_datetime(date or "")).total_seconds())
    except (ValueError, TypeError):
        return 0.0
