"""Read a model's answers with a greatest size, so that no server fills the memory.

The clients read an answer to its end and unpack it. So none is asked for packed, and the bytes are counted as
they come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from archivist.errors import ModelError

# The longest answers that models give are some hundred thousand characters.
MOST_BYTES = 8_000_000


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """A transport whose answers are bounded and not packed."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request that asks for an answer as it is."""
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise ModelError("its answer is packed, though it was asked not to", hint="check model.url")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if count > MOST_BYTES:
                raise ModelError(f"its answer has more than {MOST_BYTES:,} bytes", hint="check model.url")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
