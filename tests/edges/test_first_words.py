"""What a new user types: near words, bare groups and empty questions get a list or a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command


@pytest.mark.req("F12")
@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ("install claude", 2, "did you mean claude-code?"),
        ("install gemini-cli", 2, "did you mean gemini?"),
        ("install emacs", 2, "docs/guides/mcp.md"),
        ("config brief.holdout 0.1", 2, "archivist config set brief.holdout 0.1"),
        ("lessons show 1", 3, "did you mean m-001?"),
        ("lessons show 12", 3, "did you mean m-012?"),
        ("lessons show m012", 3, "did you mean m-012?"),
        ("lessons edit m-001 --text Tabs", 2, "--summary TEXT rewords it"),
        ("lessons add preference", 2, 'archivist add preference "TEXT"'),
        ("doctor --fix", 2, "each warning says what mends it; --reindex rebuilds"),
        ("brief --xyzzy", 2, "archivist brief --help lists the options"),
    ],
)
def test_near_words_get_a_hint(bank_cli: Command, words: str, code: int, hint: str) -> None:
    done = bank_cli(*words.split())
    assert (done.code, f"hint: {hint}" in done.err or hint in done.err) == (code, True), done.err
    assert "hint: " in done.err


@pytest.mark.parametrize("question", ["", "  "])
def test_an_empty_question_is_refused(bank_cli: Command, question: str) -> None:
    done = bank_cli("recall", question)
    assert (done.code, done.out, "QUERY is empty" in done.err) == (2, "", True)


def test_a_question_needs_no_quotation_marks(bank_cli: Command) -> None:
    bank_cli("lessons", "add", "Tests of the mill run with tox")
    unquoted = bank_cli("recall", *["how", "are", "tests", "of", "the", "mill", "run"])
    assert unquoted.out == bank_cli("recall", "how are tests of the mill run").out
    assert "Tests of the mill run with tox" in unquoted.out


@pytest.mark.parametrize("group", ["lessons", "episodes"])
def test_a_group_alone_lists(bank_cli: Command, group: str) -> None:
    bank_cli("lessons", "add", "Use tabs")
    bank_cli("run", "start", "--run", "r-1")
    alone = bank_cli(group)
    assert (alone.code, alone.out) == (0, bank_cli(group, "list").out)
    assert "Usage: archivist" in bank_cli(group, "--help").out


def test_the_version_is_short(bank_cli: Command) -> None:
    assert bank_cli("-v").out == bank_cli("--version").out == bank_cli("-V").out


def test_an_empty_log_is_named_once(bank_cli: Command, project: Path) -> None:
    log = project / "empty.jsonl"
    log.touch()
    done = bank_cli("capture", str(log))
    assert (done.code, done.err.splitlines()[0]) == (4, f"archivist: {str(log)!r} is empty")


def test_the_doctor_stands_in_columns(bank_cli: Command, tmp_path: Path) -> None:
    home = tmp_path / "people"
    home.mkdir()
    done = bank_cli("doctor", HOME=str(home))
    lines = done.out.splitlines()
    begin = len("ok    claude-code  ")
    assert {(line[begin - 2 : begin], line[begin] == " ") for line in lines} == {("  ", False)}
    assert "nothing is installed yet: archivist setup connects the clients" in done.out
    assert "those that lessons cite; others go 30 days after they ended or were captured" in done.out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("lessons", "delete", "m-001"), "did you mean 'forget'?"),
        (("lessons", "rm", "m-001"), "did you mean 'forget'?"),
        (("capture",), "archivist setup finds this repository's logs by itself"),
    ],
)
def test_what_people_type_first_is_answered_with_what_they_want(
    archivist: Command, words: tuple[str, ...], hint: str
) -> None:
    result = archivist(*words)
    assert result.code == 2
    assert f"hint: {hint}" in result.err
