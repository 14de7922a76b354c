"""Ask an endpoint for vectors, as OpenAI's `POST {url}/embeddings` answers and many servers after it.

The key is sent and nothing else is done with it: it is in no error, no name and no `repr`. Redirects are not
followed, so that it goes nowhere but to the host that was named.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from archivist.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    from http.client import HTTPConnection

    import numpy as np
    from numpy.typing import NDArray

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
# Endpoints refuse a whole batch for one text beyond their window; none of the usual windows is smaller.
LONGEST_TEXT = 8000


class EndpointEmbedder:
    """An embedder behind HTTP. `dimensions` is what its vectors have; when not given, it is asked once."""

    def __init__(
        self,
        url: str,
        model: str,
        key: str = "",
        dimensions: int | None = None,
        timeout_s: float = 30,
        batch: int = 64,
        *,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._place = _parse_url(url)
        self._model = model
        self._key = _validate_key(key)
        self._dimensions = dimensions
        self._timeout_s = timeout_s
        self._batch = max(1, batch)
        self._pause = pause or threading.Event().wait
        digest = sha256(f"{url}\n{model}".encode()).hexdigest()[:12]
        self._name = f"endpoint-{re.sub(r'[^A-Za-z0-9._]+', '-', model)}-{digest}"

    @property
    def name(self) -> str:
        """Return the model's name and a digest of where it is asked for."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Return how long its vectors are."""
        if self._dimensions is None:
            self._dimensions = len(self._request_vectors(["dimensions"])[0])
        return self._dimensions

    def embed_query(self, text: str) -> Sequence[float]:
        """Return one text's vector; of an empty text, zeros."""
        return self._embed_batches([text])[0]

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, many at once."""
        import numpy as np

        rows = self._embed_batches(texts)
        return np.array(rows, dtype=np.float32).reshape(len(rows), -1 if rows else self.dimensions)

    def _embed_batches(self, texts: Sequence[str]) -> list[list[float]]:
        """Ask for what says something, a batch at a time; endpoints refuse empty texts."""
        said = [(place, text) for place, text in enumerate(texts) if text.strip()]
        rows: dict[int, list[float]] = {}
        for start in range(0, len(said), self._batch):
            batch = said[start : start + self._batch]
            answers = self._request_vectors([text for _, text in batch])
            rows.update({place: answer for (place, _), answer in zip(batch, answers, strict=True)})
        empty = [0.0] * (self.dimensions if len(rows) < len(texts) else 0)
        return [rows.get(place, empty) for place in range(len(texts))]

    def _request_vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the texts' vectors; when the endpoint is busy or away, try again for a while."""
        import json

        body = json.dumps({"model": self._model, "input": [_truncate_text(text) for text in texts]}).encode()
        for attempt in range(1, ATTEMPTS + 1):
            reply = self._post(body)
            if reply.status == 200:
                return self._validate_vectors(self._read_reply(reply, len(texts)))
            if not reply.is_retryable or attempt == ATTEMPTS:
                break
            pause_s = reply.wait_s or FIRST_PAUSE_S * 2 ** (attempt - 1)
            if pause_s > LONGEST_PAUSE_S:
                break
            self._pause(pause_s)
        raise EmbedderError(self._error_text(reply), hint=_error_hint(reply))

    def _post(self, body: bytes) -> _Reply:
        """Send one request; a connection that fails is a reply without a status."""
        from http.client import HTTPException

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection = _open_connection(self._place, self._timeout_s)
        path = f"{self._place.path.rstrip('/')}/embeddings"
        query = f"?{self._place.query}" if self._place.query else ""
        try:
            connection.request("POST", path + query, body, headers)
            response = connection.getresponse()
            wait_s = _retry_after_s(response.getheader("Retry-After"), response.getheader("Date"))
            return _Reply(response.status, response.read(), wait_s)
        except TimeoutError:
            return _Reply(0, b"", trouble=f"no answer within {self._timeout_s:g} s")
        except (OSError, HTTPException) as error:
            return _Reply(0, b"", trouble=getattr(error, "strerror", "") or type(error).__name__)
        finally:
            connection.close()

    def _read_reply(self, reply: _Reply, count: int) -> list[list[float]]:
        try:
            return _parse_vectors(reply.body, count)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            detail = str(error) if isinstance(error, _UnusableAnswerError) else "no vectors in it"
            raise EmbedderError(
                f"{self._error_text(reply)}: {detail}",
                hint="is it an embeddings endpoint, and the model one of it?",
            ) from None

    def _validate_vectors(self, vectors: list[list[float]]) -> list[list[float]]:
        """Return the vectors at unit length, when all are as long as they must be."""
        wanted = self._dimensions or len(vectors[0])
        wrong = next((len(vector) for vector in vectors if len(vector) != wanted), wanted)
        if wrong != wanted or not wanted:
            raise EmbedderError(
                f"{self._describe_endpoint()} gave a vector of {wrong} dimensions, not of {wanted}",
                hint="set the embedder's dimensions to what the model has",
            )
        self._dimensions = wanted
        return [_normalize_vector(vector) for vector in vectors]

    def _error_text(self, reply: _Reply) -> str:
        """Say what went wrong, with the endpoint's own words, without the key."""
        said = _error_message(reply.body)
        what = reply.trouble or (f"status {reply.status}" if reply.status != 200 else "an unusable answer")
        text = f"{self._describe_endpoint()}: {what}{': ' if said else ''}{said}"
        return text.replace(self._key, "[key]") if self._key else text

    def _describe_endpoint(self) -> str:
        """Name the endpoint without user, password or query, where secrets are put too."""
        host = self._place.hostname or ""
        port = f":{self._place.port}" if self._place.port else ""
        return f"embedder {self._model!r} at {self._place.scheme}://{host}{port}{self._place.path}"


class _UnusableAnswerError(ValueError):
    """Why an answer cannot be used, in words."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """What came back; status 0 and the trouble when nothing did."""

    status: int
    body: bytes
    wait_s: float = 0.0
    trouble: str = ""

    @property
    def is_retryable(self) -> bool:
        """Say whether the same request may go well a little later."""
        return self.status in (0, 408, 409, 425, 429) or self.status >= 500


def _parse_url(url: str) -> SplitResult:
    try:
        place = urlsplit(url)
        is_whole = place.scheme in ("http", "https") and bool(place.hostname) and (place.port or 1) > 0
    except ValueError:
        is_whole = False
    if not is_whole or any(not 32 < ord(character) < 127 for character in url):
        raise ConfigError(
            "the embedder's URL is not one of http or https",
            hint="it looks like https://host/v1; /embeddings is added",
        )
    return place


def _validate_key(key: str) -> str:
    """Refuse what no header can hold here, because the error raised further down would show it."""
    key = key.strip()
    if any(not 32 <= ord(character) < 127 for character in key):
        raise ConfigError(
            "the embedder's key holds a character that no key has",
            hint="check the environment variable that holds it",
        )
    return key


def _open_connection(place: SplitResult, timeout_s: float) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    return kind(place.hostname or "", place.port, timeout=timeout_s)


def _truncate_text(text: str) -> str:
    """Cut a text to what endpoints take, without lone surrogates, which are not Unicode."""
    return text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")


def _retry_after_s(after: str | None, date: str | None) -> float:
    """Read how long the endpoint asks to be left alone: seconds, or a date beside the answer's own."""
    if not after:
        return 0.0
    if re.fullmatch(r"\d{1,9}(\.\d+)?", after.strip()):
        return float(after)
    try:
        return max(0.0, (parsedate_to_datetime(after) - parsedate_to_datetime(date or "")).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _parse_vectors(body: bytes, count: int) -> list[list[float]]:
    """Read the vectors in the order of the texts, which the answer gives as numbers, not by its order."""
    import json

    data = json.loads(body)["data"]
    if len(data) != count:
        raise _UnusableAnswerError(f"{len(data)} vectors for {count} texts")
    rows = {row.get("index", place): row["embedding"] for place, row in enumerate(data)}
    vectors = [[float(number) for number in rows[place]] for place in range(count)]
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise _UnusableAnswerError("a number that is not finite")
    return vectors


def _error_message(body: bytes) -> str:
    """Find the words of an error in an answer, whichever way it is shaped; a text that is not JSON is one."""
    import json

    try:
        found = json.loads(body)
    except ValueError:
        return " ".join(body[:200].decode("utf-8", "replace").split())
    for key in ("error", "message", "detail"):
        while isinstance(found, dict) and key in found:
            found = found[key]
    return " ".join(found.split())[:200] if isinstance(found, str) else ""


def _error_hint(reply: _Reply) -> str:
    """Say what to do about a refusal."""
    if reply.wait_s:
        return f"it asks to be left alone for {reply.wait_s:.0f} s"
    if reply.status in (401, 403):
        return "check the key: the configuration names the environment variable that holds it"
    if reply.status == 404:
        return "check the URL and the model's name"
    return "try again later" if reply.is_retryable else "check the URL, the model and its limits"


def _normalize_vector(vector: list[float]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length else vector
