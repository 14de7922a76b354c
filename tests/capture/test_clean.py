"""What is stored is clean: no briefs of ours, no secrets, nothing else changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.capture.clean import Cleaner, fence
from archivist.capture.redaction import redact
from archivist.records import Episode, Event, EventKind
from archivist.text import cannot_hold_secret
from tests.samples import finding

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.req("N7")
def test_secrets_come_out_of_every_field_and_are_counted() -> None:
    cleaner = Cleaner()
    event = Event(
        run="r",
        seq=1,
        kind=EventKind.TOOL_CALL,
        text=f"git clone https://ada:{TOKEN}@example.com/x",
        output=f"token={TOKEN}",
        target=f"curl -H 'Authorization: Bearer {TOKEN}'",
        findings=(finding(f"leaks {TOKEN}"),),
        extra={"new": [f"API_TOKEN={TOKEN}"], "n": 3},
    )
    cleaned = cleaner.clean(event)
    assert TOKEN not in repr(cleaned)
    assert cleaned.extra["n"] == 3
    assert sum(cleaner.secrets.values()) >= 5
    assert TOKEN not in repr(cleaner.clean(Episode(id="r", task=f"use {TOKEN}", summary=TOKEN)))


@pytest.mark.req("N3")
def test_our_own_brief_is_stripped_from_a_transcript() -> None:
    told = fence("## Known Issues\n- Missing `wrapt` [seen 3x]", "b-1", ["m-001"])
    prompt = Event(run="r", seq=1, kind=EventKind.MESSAGE, role="user", text=f"Before\n{told}\nFix the bug")
    cleaned = Cleaner().clean(prompt)
    assert "wrapt" not in cleaned.text
    assert "Before" in cleaned.text
    assert "Fix the bug" in cleaned.text


def test_clean_text_is_the_same_object() -> None:
    text = "def test_token_count(): assert max_tokens == 4096"
    assert Cleaner().text(text) is text


@given(
    st.text("0123456789abcdef-", max_size=80)
    | st.text(max_size=7)
    | st.lists(st.text("akQ9x_.-#keytokn", max_size=15), max_size=8).map("/".join)
    | st.lists(st.sampled_from(["sk-", "ghp_", "key", "token", "password", "AKIA"]), max_size=4).map("/".join)
)
def test_what_is_too_plain_for_a_secret_is_left_alone_by_the_rules(text: str) -> None:
    if cannot_hold_secret(text):
        assert redact(text).text == text
