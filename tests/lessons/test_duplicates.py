"""Candidates that say the same are one lesson: calibrated on labelled pairs."""

from __future__ import annotations

import pytest

from archivist.lessons.candidate import Candidate, Sighting
from archivist.lessons.gate import (
    DUPLICATE_AT,
    drop_duplicates,
    find_duplicate,
    refine_lesson,
    text_similarity,
)
from archivist.records import Actor, ActorKind, Category, Provenance, Status
from tests.samples import WHEN, lesson

SAME = [
    (
        "`sqlfluff fix` asks on /dev/tty and dies without a terminal: add `--force`",
        "`sqlfluff fix` dies without a terminal because it asks on /dev/tty: add `--force`",
    ),
    (
        "Tests need `wrapt`, which is not installed: `pip install wrapt`",
        "`wrapt` is missing, tests need it: `pip install wrapt`",
    ),
    (
        "`python` is not on the path here: use `python3`",
        "`python` is not found here: use `python3`",
    ),
    (
        "Imports fail with NumPy 2 (`np.Inf`): pin `numpy<2`",
        "Importing fails with NumPy 2 (`np.Inf`): pin `numpy<2`",
    ),
    (
        "`pytest` was run 4 times to find that `-p no:cacheprovider` is needed",
        "`pytest` needs `-p no:cacheprovider`: it was run 4 times to find that",
    ),
    (
        "Editing `setup.cfg` with `sed -i` did not apply twice: read the file first",
        "`sed -i` on `setup.cfg` did not apply: read the file first",
    ),
    (
        "`git commit` fails without an identity: set `user.email`",
        "`git commit` fails without an identity: set `user.email` and `user.name`",
    ),
    (
        "The user wants tabs, not spaces",
        "The user wants tabs and not spaces",
    ),
    (
        "`bun test` times out after 120 s: run one file at a time",
        "`bun test` times out after 60 s: run one file at a time",
    ),
    (
        "Tests under test/cli fail before any change (`mix_stderr`): not your bug",
        "Tests under test/cli fail before any change because of `mix_stderr`: not your bug",
    ),
    (
        "`npm install` needs `--legacy-peer-deps` here",
        "`npm install` fails on peer dependencies here: `--legacy-peer-deps`",
    ),
    (
        "`make lint` is missing: run `ruff check .` instead",
        "There is no `make lint`: run `ruff check .` instead",
    ),
]

DIFFERENT = [
    (
        "Tests need `wrapt`, which is not installed: `pip install wrapt`",
        "Tests need `hypothesis`, which is not installed: `pip install hypothesis`",
    ),
    (
        "`sqlfluff fix` asks on /dev/tty and dies without a terminal: add `--force`",
        "`sqlfluff lint` fails on an unknown dialect: add `--dialect ansi`",
    ),
    (
        "`python` is not on the path here: use `python3`",
        "`pip` is not on the path here: use `pip3`",
    ),
    (
        "`bun test` times out after 120 s: run one file at a time",
        "`bun build` times out after 120 s: clean first",
    ),
    (
        "Imports fail with NumPy 2 (`np.Inf`): pin `numpy<2`",
        "Imports fail with Python 3.11 (`formatargspec`): update `wrapt`",
    ),
    (
        "The user wants tabs, not spaces",
        "The user wants one bundled pull request",
    ),
    (
        "Tests under test/cli fail before any change (`mix_stderr`): not your bug",
        "Tests under test/core fail before any change (`fixture`): not your bug",
    ),
    (
        "`git commit` fails without an identity: set `user.email`",
        "`git push` fails without a remote: add `origin`",
    ),
    (
        "`npm install` needs `--legacy-peer-deps` here",
        "`npm run build` needs `NODE_OPTIONS` here",
    ),
    (
        "Editing `setup.cfg` did not apply twice: read the file first",
        "Editing `pyproject.toml` did not apply twice: read the file first",
    ),
    (
        "`make lint` is missing: run `ruff check .` instead",
        "`make docs` is missing: run `sphinx-build docs out` instead",
    ),
    (
        "A run cost 3.10 USD, four times the usual",
        "The build takes ten minutes on the first try",
    ),
]


def _words(text: str) -> Candidate:
    return Candidate(summary=text)


@pytest.mark.req("A10")
@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_in_other_words_is_a_duplicate(first: str, second: str) -> None:
    assert text_similarity(_words(first), _words(second)) >= DUPLICATE_AT


@pytest.mark.req("A10")
@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_another_tool_or_module_is_another_lesson(first: str, second: str) -> None:
    assert text_similarity(_words(first), _words(second)) < DUPLICATE_AT


def _candidate(key: str = "k", summary: str = SAME[0][0], **fields: object) -> Candidate:
    return Candidate(key=key, summary=summary, events=("r#1",), **fields)  # type: ignore[arg-type]


def test_the_key_decides_before_the_words() -> None:
    known = lesson("a", signature="k", summary="Quite other words")
    assert find_duplicate(_candidate(), [lesson("b", summary=SAME[0][1]), known]) is known


def test_a_lesson_of_another_repository_is_no_twin() -> None:
    other = lesson("a", summary=SAME[0][0], repo="there", status=Status.ACTIVE)
    assert find_duplicate(_candidate(repo="here"), [other]) is None


def test_a_remedy_where_there_was_none_refines() -> None:
    bare = lesson("a", signature="k")
    met = Sighting(provenance=Provenance.MINED, actor=Actor(ActorKind.ARCHIVIST), now=WHEN, run_count=1)
    better = refine_lesson(bare, _candidate(remedies=("pip install x",)), met)
    assert better is not None
    assert (better.remedies, better.signature) == (("pip install x",), "k")
    assert refine_lesson(bare, _candidate(), met) is None
    assert refine_lesson(lesson("a", rule="IF c THEN d"), _candidate(rule="IF a THEN b"), met) is None


def test_candidates_of_one_run_do_not_repeat_each_other() -> None:
    twins = [
        _candidate("a"),
        _candidate("b", SAME[0][1]),
        _candidate("c", DIFFERENT[0][0], category=Category.INFRA),
    ]
    assert [each.key for each in drop_duplicates(twins)] == ["a", "c"]
