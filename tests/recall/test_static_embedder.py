"""The bundled table: the same vector by both ways, any text, a fast start, sensible likeness."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import EmbedderError
from archivist.recall.embedders import Embedder
from archivist.recall.embedders.static import BUNDLED, CACHED_WORDS, StaticEmbedder, pieces_of, words_of

EMBEDDER: Embedder = StaticEmbedder()
VOCABULARY = {
    b"get": 0,
    b"user": 1,
    b"name": 2,
    b"github": 3,
    b"un": 4,
    b"##able": 5,
    b"cafe": 6,
    b"utf": 7,
    b"8": 8,
}
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text("aB1_ é日\u0301\ud800\x00-", max_size=40)


def find(piece: bytes) -> int:
    return VOCABULARY.get(piece, -1)


def likeness(one: str, other: str) -> float:
    return float(np.dot(EMBEDDER.embed_query(one), EMBEDDER.embed_query(other)))


def test_a_vector_has_unit_length() -> None:
    vector = EMBEDDER.embed_query("the tests hang when the cache is cold")
    assert len(vector) == EMBEDDER.dimensions
    assert np.linalg.norm(vector) == pytest.approx(1)


@given(st.lists(ANY_TEXT, max_size=8))
def test_one_query_and_many_texts_agree(texts: list[str]) -> None:
    rows = EMBEDDER.embed_texts(texts)
    assert rows.shape == (len(texts), EMBEDDER.dimensions)
    assert rows.dtype == np.float32
    for text, row in zip(texts, rows, strict=True):
        vector = np.array(EMBEDDER.embed_query(text))
        assert vector @ row >= 0.9999 or not (vector.any() or row.any())


@pytest.mark.parametrize("text", ["", "\0", "\ud800", " \n\t", "?!…", "x" * 1_000_000, "💥"])
def test_a_text_without_known_words_has_no_direction(text: str) -> None:
    assert not any(EMBEDDER.embed_query(text))
    assert not EMBEDDER.embed_texts([text]).any()


def test_a_long_text_is_summed_like_a_short_one() -> None:
    short = "kill the stale lock file and start the server again"
    rows = EMBEDDER.embed_texts([short, " ".join([short] * 5000), ""])
    assert rows[0] @ rows[1] >= 0.9999
    assert not rows[2].any()


def test_more_words_than_are_remembered_change_nothing() -> None:
    many = " ".join(f"word{number}" for number in range(CACHED_WORDS + 10))
    before, _, after = (EMBEDDER.embed_texts([text])[0] for text in ("a cold cache", many, "a cold cache"))
    assert np.array_equal(before, after)


def test_order_case_accents_and_punctuation_do_not_matter() -> None:
    assert likeness("Restart the café server!", "server: the CAFE restart") == pytest.approx(1)


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("the tests hang", "pytest never finishes"), ("the tests hang", "a recipe for soup")),
        (("getUserName", "get user name"), ("getUserName", "close the socket")),
        (("max_retry_count", "how often we retry"), ("max_retry_count", "colour of the button")),
        (("When did Anna adopt the puppy?", "we have a new puppy, a little dog called Max"),
         ("When did Anna adopt the puppy?", "when did the bill arrive?")),
        (("permission denied while opening a file", "EACCES: cannot read, access refused"),
         ("permission denied while opening a file", "the colours of the chart")),
    ],
)  # fmt: skip
def test_what_means_the_same_is_nearer(near: tuple[str, str], far: tuple[str, str]) -> None:
    assert likeness(*near) > likeness(*far)


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("getUserName", [0, 1, 2]),
        ("GETName", [0, 2]),
        ("GitHub", [3]),
        ("unable", [4, 5]),
        ("Café", [6]),
        ("Cafe\u0301", [6]),
        ("UTF8", [7, 8]),
        ("unknown", []),
        ("getx" * 26, []),
    ],
)
def test_a_word_is_cut_where_it_makes_sense(word: str, rows: Sequence[int]) -> None:
    assert pieces_of(word, find) == rows


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of("max_retry-count: don't, 3 times") == ["max", "retry", "count", "don", "t", "3", "times"]
    assert words_of("naïve 日本 e\u0301") == ["naïve", "日", "本", "e\u0301"]


def test_the_first_vector_needs_no_numpy() -> None:
    code = (
        "import sys; from archivist.recall.embedders.static import StaticEmbedder;"
        "assert any(StaticEmbedder().embed_query('a cold cache')); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_file_is_refused(tmp_path: Path) -> None:
    for number, content in enumerate((b"", b"short", b"x" * 4096, BUNDLED.read_bytes()[:-1])):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(content)
        with pytest.raises(EmbedderError):
            StaticEmbedder(path)
    with pytest.raises(EmbedderError):
        StaticEmbedder(tmp_path / "absent.bin")


def test_the_name_tells_tables_apart(tmp_path: Path) -> None:
    content = bytearray(BUNDLED.read_bytes())
    content[8] ^= 1
    (tmp_path / "table.bin").write_bytes(content)
    assert StaticEmbedder(tmp_path / "table.bin").name != EMBEDDER.name


@pytest.mark.parametrize(
    ("text", "is_understood"),
    [
        ("the tests hang", True),
        ("zzzzqqq tests", True),
        ("getUserName", True),
        ("zzzzqqq", False),
        ("qwxv plorp", False),
        ("", False),
    ],
)
def test_a_text_of_mere_pieces_is_not_understood(text: str, is_understood: bool) -> None:
    assert StaticEmbedder().has_known_words(text) is is_understood
