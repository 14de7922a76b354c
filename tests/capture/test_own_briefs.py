"""Our own briefs are taken out of transcripts, and nothing else is."""

from __future__ import annotations

import html
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.capture.clean import fence, strip_briefs

pytestmark = pytest.mark.req("N3")

BRIEF = fence('## Known Issues\n- run `make test` first\n- it "hangs" on <tty>', "b-7", ["m-001", "m-003"])


def test_a_fence_names_the_brief_and_its_lessons() -> None:
    assert fence("Be kind.\n", "b-7", ["m-001", "m-003"]) == (
        "<!-- archivist:brief b-7 m-001 m-003 -->\nBe kind.\n<!-- /archivist:brief -->\n"
    )


def test_what_is_fenced_is_stripped_and_the_rest_stays() -> None:
    assert strip_briefs(BRIEF) == ""
    assert strip_briefs(f"before\n{BRIEF}after\n") == "before\nafter\n"
    assert strip_briefs(f"one\n{BRIEF}two\n{BRIEF}three") == "one\ntwo\nthree"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def numbered(text: str) -> str:
    return "".join(f"{number:6}\u2192{line}\n" for number, line in enumerate(text.splitlines(), 9))


@pytest.mark.parametrize(
    "wrap", [indented, quoted, numbered, html.escape, lambda text: quoted(indented(text))]
)
def test_a_wrapped_brief_is_stripped(wrap: object) -> None:
    assert callable(wrap)
    assert strip_briefs(f"before\n{wrap(BRIEF)}after\n") == "before\nafter\n"


def test_windows_newlines_are_no_hindrance() -> None:
    assert strip_briefs(f"before\n{BRIEF}after\n".replace("\n", "\r\n")) == "before\r\nafter\r\n"


def test_a_brief_inside_a_tag_is_stripped_and_the_tag_stays() -> None:
    wrapped = f"<system-reminder>\n{BRIEF}</system-reminder>\nDo the task."
    assert strip_briefs(wrapped) == "<system-reminder>\n</system-reminder>\nDo the task."
    tight = f"<context>{BRIEF.rstrip()}</context> Do the task."
    assert strip_briefs(tight) == "<context></context> Do the task."


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_brief_inside_json_is_stripped_and_the_json_stays_valid(depth: int) -> None:
    kept: object = {"role": "user", "content": 'hello\nthere "you"', "n": 1}
    given_text: object = {"role": "user", "content": f'hello\n{BRIEF}there "you"', "n": 1}
    for _ in range(depth):
        kept, given_text = json.dumps({"inner": kept}), json.dumps({"inner": given_text})
    assert isinstance(given_text, str)
    assert strip_briefs(given_text) == kept


def test_json_that_escapes_angle_brackets_is_no_hindrance() -> None:
    raw = json.dumps(f"hello\n{BRIEF}there").replace("<", "\\u003c").replace(">", "\\u003e")
    assert strip_briefs(raw) == '"hello\\nthere"'


def test_a_brief_cut_off_is_stripped_to_the_end_of_its_text() -> None:
    assert strip_briefs(f"before\n{BRIEF[:70]}") == "before\n"
    assert strip_briefs("before\n<!-- archivist:brief b-7 m-001 -->") == "before\n"


def test_a_brief_cut_off_inside_a_json_string_ends_with_the_string() -> None:
    raw = json.dumps([{"text": f"hello\n{BRIEF[:70]}"}, {"text": "next"}])
    assert json.loads(strip_briefs(raw)) == [{"text": "hello\n"}, {"text": "next"}]


def test_a_brief_cut_off_does_not_swallow_the_next_one() -> None:
    assert strip_briefs(f"a\n{BRIEF[:70]}\n{BRIEF}b") == "a\nb"


@pytest.mark.parametrize(
    "prose",
    [
        "What does archivist:brief do?",
        "The fence `<!-- archivist:brief b-1 m-001 -->` opens a block,\nand more follows here.",
        "It starts with <!-- archivist:brief b-1 m-001 --> and the rest of this line matters.",
        "<!-- archivist:brief -->\nno id, so no fence of ours",
        "<!-- archivist:brief b-1 m-001\nnever closed as a comment",
        "grep -n 'archivist:brief' src/\nsrc/a.py:3: archivist:brief",
        "It ends with <!-- /archivist:brief --> they say.",
        "see archivist:brief-notes\n<!-- other -->\ntext",
    ],
)
def test_talking_about_fences_loses_nothing(prose: str) -> None:
    assert strip_briefs(prose) is prose


def test_text_without_a_fence_is_the_same_object() -> None:
    text = "nothing here\n" * 1000
    assert strip_briefs(text) is text


def test_a_brief_that_speaks_of_fences_does_not_end_early() -> None:
    talkative = fence("remember\n<!-- /archivist:brief -->\nsecret rest", "b-8", ["m-002"])
    assert strip_briefs(f"a\n{talkative}b") == "a\nb"


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_stripping_undoes_fencing(before: str, body: str, after: str) -> None:
    assert strip_briefs(f"{before}\n{fence(body, 'b-1', ['m-001'])}{after}") == f"{before}\n{after}"


@given(
    st.lists(
        st.sampled_from([BRIEF, quoted(BRIEF), html.escape(BRIEF), "text\n", "> text\n", '"\n', "<x>\n"])
    )
)
def test_among_other_lines_only_briefs_go(pieces: list[str]) -> None:
    others = [piece for piece in pieces if "archivist" not in piece]
    assert strip_briefs("".join(pieces)) == "".join(others)


@given(st.text(alphabet='<!-- archivist:brief b m-1>\n\\"/&lgt;', max_size=120))
def test_any_text_is_taken(text: str) -> None:
    assert len(strip_briefs(f"{text}<!-- archivist:brief b m-1 -->\n{text}")) <= 2 * len(text) + 40


@pytest.mark.parametrize(
    "unit",
    [
        "<!-- archivist:brief b m-1 -->\n",
        "<!-- archivist:brief b m-1 -->\\n",
        "<!-- archivist:brief ",
        "m-1 ",
        "> ",
    ],
)
def test_a_megabyte_of_fences_takes_no_time(unit: str) -> None:
    started = time.process_time()
    strip_briefs("<!-- archivist:brief b " + unit * (1_000_000 // len(unit)))
    assert time.process_time() - started < 4


def test_what_is_fenced_steers_no_terminal() -> None:
    told = fence("copy \x1b]52;c;x\x07this\u202e\n\tand that\n", "b1", ["m-001"])
    assert told.splitlines()[1:-1] == ["copy this", "\tand that"]
