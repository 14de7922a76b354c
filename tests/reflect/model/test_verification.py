"""How a model's words are read: what they name, and what they tell a reader to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.lessons.support import advised_code, is_shown, names_in, normal_text, unshown_cause


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Use `make test` in src/app/main.py", ["make test", "src/app/main.py"]),
        ("It ends with ModuleNotFoundError on port 5432", ["ModuleNotFoundError", "5432"]),
        ("pass --no-cache and set DATABASE_URL", ["--no-cache", "DATABASE_URL"]),
        ("it says “address in use” in setup.cfg", ["address in use", "setup.cfg"]),
        ("Nothing to look up here", []),
        (
            "It fails with `no target in package `shop``: use `make a`",
            ["no target in package `shop`", "make a"],
        ),
        ("`make a`s and `make b`", ["make a", "make b"]),
    ],
)
def test_what_a_text_names(text: str, names: list[str]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("`make test` fails: run `make up` first", ["make up"]),
        ("Use `uv run pytest` instead of `pytest`", ["uv run pytest"]),
        ("Do not run `pytest`, it hangs", []),
        ("Never use `npm`; use `pnpm install`", ["pnpm install"]),
        ("Run `make up` before `make test`", ["make up"]),
        ("IF `a b` fails THEN `c d`", ["c d"]),
        ("IF `a b` fails THEN use `c d` rather than `a b`", ["c d"]),
        ("`a b` fails because `c d` is missing", []),
        ("First `a b`, then `c d`", ["a b", "c d"]),
        ("`a b` fails with “error: no 'b'”: `a` knows only its own commands. Use `c d`.", ["c d"]),
        ("It is refused with “no x”: the hook runs `c d`", []),
        ("`a b` fails with `SomeError`", []),
        ("Instead run: `c d`", ["c d"]),
        ("IF files are staged THEN leave out `dist`", []),
    ],
)
def test_what_a_text_recommends(text: str, commands: list[str]) -> None:
    assert advised_code(text) == commands


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    assert all(is_shown(name, [text.casefold(), name.casefold()]) or name for name in names_in(text))
    assert all(code in text for code in advised_code(text))


def test_a_name_is_shown_as_it_stands_or_word_by_word() -> None:
    assert is_shown("pip install x", ["cd /a && pip install -q x"])
    assert not is_shown("pip install x", ["pip install xyz"])
    assert is_shown("cargo show <id>", ["cargo show d-014"])
    assert is_shown("Cannot  connect", ["error: cannot connect to it"])
    assert is_shown("?ref=main", ["gh api available.lua?ref=main"])
    assert is_shown("?", ["no matches found: a.lua?ref=main"])
    assert not is_shown("?ref=mai", ["gh api available.lua?ref=main"])
    assert not is_shown("ref=main", ["gh api href=main"])
    assert is_shown("no target in package `shop`", [normal_text("error: no target in package `shop`")])
    assert is_shown("no target in package shop", [normal_text("error: no target in package `shop`")])


def test_a_cause_may_be_told_with_other_forms_of_its_words() -> None:
    said = ["one existing test is now opposite of what you need"]
    assert not unshown_cause("the rule was changed because the user needs the opposite", said)
    assert unshown_cause("the rule was changed because the disk was full", said)
