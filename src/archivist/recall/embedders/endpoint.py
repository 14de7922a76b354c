"""Get vectors from an endpoint with OpenAI's `POST {url}/embeddings`, which many servers have.

The key is sent and used for nothing else: it is in no error, no name and no `repr`. Redirects are not
followed, so that it is sent to no host but the configured one.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from archivist.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
# Endpoints refuse a whole batch for one text beyond their window; no usual window is smaller.
LONGEST_TEXT = 8000
# Characters of an endpoint's own error message that are shown.
_SHOWN = 200
_HINTS = {
    401: "check the key: the configuration names the environment variable that holds it",
    403: "check the key: the configuration names the environment variable that holds it",
    404: "check the URL and the model's name",
}


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
        self._timeout_s = timeout_s
        self._batch = batch
        self._pause = pause or threading.Event().wait
        digest = sha256(f"{url}\n{model}".encode()).hexdigest()[:12]
        self.name = f"endpoint-{re.sub(r'[^A-Za-z0-9._]+', '-', model)}-{digest}"

    @property
    def dimensions(self) -> int:
        """Return the length of its vectors; the endpoint is asked once."""
        return self._dimensions or len(self._request_vectors(["dimensions"])[0])

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a text; zeros for an empty one."""
        return self._embed_batches([text])[0]

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        import numpy as np

        rows = self._embed_batches(texts)
        return np.array(rows, dtype=np.float32).reshape(len(rows), -1 if rows else self.dimensions)

    def _embed_batches(self, texts: Sequence[str]) -> list[list[float]]:
        """Request the vectors of all texts but the empty ones, which endpoints refuse."""
        filled = [place for place, text in enumerate(texts) if text.strip()]
        rows: dict[int, list[float]] = {}
        for start in range(0, len(filled), self._batch):
            batch = filled[start : start + self._batch]
            vectors = self._request_vectors([texts[place] for place in batch])
            rows.update(zip(batch, vectors, strict=True))
        empty = [0.0] * (self.dimensions if len(rows) < len(texts) else 0)
        return [rows.get(place, empty) for place in range(len(texts))]

    def _request_vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of some texts; retry while the endpoint is busy or unreachable."""
        import json

        # Lone surrogates are not Unicode.
        cut = [text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8") for text in texts]
        body = json.dumps({"model": self._model, "input": cut}).encode()
        for attempt in range(ATTEMPTS):
            status, reply, wait_s, problem = self._post(body)
            if status == 200:
                return self._read_vectors(reply, len(texts))
            is_retryable = status in (0, 408, 409, 425, 429) or status >= 500
            pause_s = wait_s or FIRST_PAUSE_S * 2**attempt
            if not is_retryable or attempt + 1 == ATTEMPTS or pause_s > LONGEST_PAUSE_S:
                break
            self._pause(pause_s)
        later = "try again later" if is_retryable else "check the URL, the model and its limits"
        hint = f"it asks to be left alone for {wait_s:.0f} s" if wait_s else _HINTS.get(status, later)
        raise EmbedderError(self._error_text(problem or f"status {status}", reply), hint=hint)

    def _post(self, body: bytes) -> tuple[int, bytes, float, str]:
        """Return status, body and the pause asked for; status 0 and the problem when there is no response."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        url = self._url
        connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
        connection = connect(url.hostname or "", url.port, timeout=self._timeout_s)
        path = f"{url.path.rstrip('/')}/embeddings{f'?{url.query}' if url.query else ''}"
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            wait_s = _retry_after_s(response.getheader("Retry-After"), response.getheader("Date"))
            return response.status, response.read(), wait_s, ""
        except TimeoutError:
            return 0, b"", 0.0, f"no answer within {self._timeout_s:g} s"
        except (OSError, HTTPException) as error:
            return 0, b"", 0.0, getattr(error, "strerror", "") or type(error).__name__
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
        except (ValueError, TypeError, KeyError, AttributeError):
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
        except ValueError:
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
