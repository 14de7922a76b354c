"""The blocks of core memory: how they change, read and are held to their budgets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import CoreRules
from archivist.core.blocks import (
    Content,
    Given,
    ListName,
    Thread,
    append_item,
    check_budget,
    list_of,
    remove_item,
    render_block,
    section_of,
    threads_of,
    update_section,
    validate_role,
    view_of,
)
from archivist.errors import InputError, NotFoundError
from archivist.records import Block, CoreSection

NOW = "2026-02-08T15:00:00Z"
WHEN = datetime(2026, 2, 8, 15, tzinfo=UTC)


def _updated(section: CoreSection, content: Given, before: Content | None = None) -> Content:
    return update_section(section, before or {}, content, now=NOW, keep=5)


def _appended(place: ListName, item: Given, before: Content | None = None, keep: int = 5) -> Content:
    return append_item(place, before or {}, item, now=NOW, keep=keep, new_thread="t-1")


def _block(section: CoreSection, content: Content, role: str = "") -> Block:
    return Block(section=section, role=role, content=content, updated=WHEN)


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("status", CoreSection.STATUS),
        ("roleState", CoreSection.ROLE_STATE),
        (" Role_State ", CoreSection.ROLE_STATE),
    ],
)
def test_a_section_is_known_in_snake_case_and_camel_case(name: str, section: CoreSection) -> None:
    assert section_of(name) is section


@pytest.mark.parametrize("name", ["", "playbooks", "stat us", "../rules", "roleStates"])
def test_an_unknown_section_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError) as refused:
        section_of(name)
    assert refused.value.hint == "the sections are playbook, rules, status, threads, role_state, lessons"


def test_an_unknown_list_is_refused_with_the_known_ones() -> None:
    assert list_of("recentlyShipped") is ListName.RECENTLY_SHIPPED
    with pytest.raises(InputError, match="no list"):
        list_of("sprint")


@pytest.mark.req("C1")
def test_an_update_of_the_status_merges_over_the_fields_given() -> None:
    first = _updated(CoreSection.STATUS, {"sprint": "One", "inProgress": ["a"], "blockers": "b"})
    second = _updated(CoreSection.STATUS, {"in_progress": ["c", "c", " "]}, first)
    assert second == {"sprint": "One", "in_progress": ["c"], "blockers": ["b"], "recently_shipped": []}
    assert _updated(CoreSection.STATUS, '{"sprint": "Two"}', second)["sprint"] == "Two"
    assert _updated(CoreSection.STATUS, "Sprint 3:\nmemory", second)["sprint"] == "Sprint 3: memory"
    assert _updated(CoreSection.STATUS, "[draft] memory", second)["sprint"] == "[draft] memory"
    assert _updated(CoreSection.STATUS, {"blockers": None}, second)["blockers"] == []


@pytest.mark.parametrize(
    ("section", "content", "reason"),
    [
        (CoreSection.STATUS, {"sprnt": "x"}, "unknown field 'sprnt'"),
        (CoreSection.STATUS, {"blockers": [1]}, "status.blockers: expected a list of texts"),
        (CoreSection.STATUS, {"sprint": ["x"]}, "status.sprint: expected a text"),
        (CoreSection.STATUS, ["x"], "expected an object, not a list"),
        (CoreSection.STATUS, 7, "expected a text or an object"),
        (CoreSection.STATUS, '{"sprint": ', "an object that is not JSON"),
        (CoreSection.ROLE_STATE, {"text": "x"}, "unknown field 'text'"),
        (CoreSection.LESSONS, {"words": "x"}, "unknown field 'words'"),
        (CoreSection.LESSONS, [1], "a list of texts"),
        (CoreSection.THREADS, "x", "not a text"),
        (CoreSection.THREADS, {"summary": "x"}, "needs an id"),
        (CoreSection.THREADS, {"id": "x"}, "needs a summary"),
        (CoreSection.THREADS, {"id": "x" * 100, "summary": "x"}, "100 characters"),
        (CoreSection.THREADS, {"id": "1", "summary": "x", "lastUpdate": "soon"}, "not a time"),
        (CoreSection.THREADS, [{"id": "1", "summary": "x"}, {"id": 1, "summary": "y"}], "there twice"),
        (CoreSection.THREADS, ["x"], "expected an object"),
        (CoreSection.RULES, "x", "by proposals only"),
    ],
)
def test_what_has_no_place_in_a_section_is_refused_by_name(
    section: CoreSection, content: Any, reason: str
) -> None:
    with pytest.raises(InputError) as refused:
        _updated(section, content)
    assert reason in refused.value.message


def test_lessons_are_a_text_or_a_list_of_texts() -> None:
    assert _updated(CoreSection.LESSONS, "Ask early.\n") == {"text": "Ask early."}
    assert _updated(CoreSection.LESSONS, ["Ask early", "Test\nfirst"]) == {
        "text": "- Ask early\n- Test first"
    }
    assert _updated(CoreSection.LESSONS, {"text": "x"}) == {"text": "x"}
    assert _updated(CoreSection.LESSONS, "[ ] ask") == {"text": "[ ] ask"}
    assert _updated(CoreSection.LESSONS, "[1, 2]") == {"text": "[1, 2]"}


@pytest.mark.req("C1")
def test_a_thread_that_is_known_is_updated_and_its_roles_united() -> None:
    first = _appended(ListName.THREADS, {"id": 84, "summary": "Headless mode", "roles": ["ops"]})
    second = _appended(ListName.THREADS, {"id": "84", "roles": ["research", "ops"]}, first)
    assert threads_of(second) == [Thread("84", "Headless mode", ("ops", "research"), NOW)]
    third = _appended(ListName.THREADS, "Demo day", second)
    assert [thread.id for thread in threads_of(third)] == ["84", "t-1"]
    assert _appended(ListName.THREADS, {"id": "84", "summary": "Headless mode"}, third) == third


def test_a_list_of_threads_replaces_the_list_and_one_object_is_merged() -> None:
    first = _updated(CoreSection.THREADS, [{"id": "1", "summary": "x", "lastUpdate": "2026-01-01"}])
    merged = _updated(CoreSection.THREADS, {"id": "2", "summary": "y"}, first)
    assert [(each.id, each.last_update) for each in threads_of(merged)] == [
        ("1", "2026-01-01T00:00:00Z"),
        ("2", NOW),
    ]
    assert threads_of(_updated(CoreSection.THREADS, [], merged)) == []


@pytest.mark.req("C1")
@given(st.lists(st.sampled_from("abcdefgh"), max_size=30), st.integers(0, 7))
def test_what_shipped_keeps_the_newest_and_they_stand_last(items: list[str], keep: int) -> None:
    content: Content = {}
    for item in items:
        content = _appended(ListName.RECENTLY_SHIPPED, item, content, keep)
    newest = list(dict.fromkeys(reversed(items)))[:keep] if keep else []
    # Something that was dropped and ships again is simply new.
    assert content.get("recently_shipped", []) == newest[::-1]


@given(st.lists(st.text(min_size=1).filter(str.strip), max_size=10))
def test_what_is_appended_can_be_taken_out_again(items: list[str]) -> None:
    content: Content = {}
    for item in items:
        content = _appended(ListName.BLOCKERS, item, content)
    for item in dict.fromkeys(" ".join(item.split()) for item in items):
        content = remove_item(ListName.BLOCKERS, content, item)
    assert content.get("blockers", []) == []


@pytest.mark.parametrize("place", list(ListName))
def test_what_is_not_there_cannot_be_taken_out(place: ListName) -> None:
    with pytest.raises(NotFoundError):
        remove_item(place, {}, "x")


@pytest.mark.parametrize("item", ["", "  \n", {"a": 1}, ["x"], {"a": "x", "b": "y"}])
def test_what_says_nothing_is_not_appended(item: Any) -> None:
    with pytest.raises(InputError):
        _appended(ListName.BLOCKERS, item)


@pytest.mark.req("C5")
@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"pr": 81, "title": "parser"}, "PR #81 parser"),
        ({"issue": 99}, "#99"),
        ({"title": "waits for ops", "issue": "#7"}, "#7 waits for ops"),
    ],
)
def test_the_objects_of_the_document_are_items(item: Any, line: str) -> None:
    assert _appended(ListName.BLOCKERS, item)["blockers"] == [line]
    with pytest.raises(InputError) as refused:
        _appended(ListName.BLOCKERS, {**item, "when": 3})
    assert "title" in (refused.value.hint or "")


def test_an_item_may_come_wrapped_in_an_object() -> None:
    assert _appended(ListName.BLOCKERS, {"text": "waits for ops"})["blockers"] == ["waits for ops"]


def test_lessons_are_appended_as_lines_once() -> None:
    first = _appended(ListName.LESSONS, "Ask early")
    assert _appended(ListName.LESSONS, "Ask early", first) == first == {"text": "- Ask early"}
    assert remove_item(ListName.LESSONS, first, "Ask early") == {"text": ""}


@pytest.mark.parametrize("role", ["a:b", "x" * 81, "a\nb"])
def test_a_role_is_a_short_name(role: str) -> None:
    assert validate_role(" maker ") == "maker"
    with pytest.raises(InputError):
        validate_role(role)


# Showing


@pytest.mark.req("C1")
def test_the_view_of_a_role_is_what_is_shared_and_its_own_in_one_order() -> None:
    blocks = [
        _block(CoreSection.LESSONS, {"text": "- ask early"}, "maker"),
        _block(CoreSection.LESSONS, {"text": "- of another"}, "ops"),
        _block(CoreSection.ROLE_STATE, {"working_on": "the parser"}, "maker"),
        _block(CoreSection.ROLE_STATE, {"working_on": "hidden"}, "ops"),
        _block(CoreSection.THREADS, {"items": [{"id": "84", "summary": "Headless", "roles": ["ops"]}]}),
        _block(CoreSection.STATUS, {"sprint": "Two", "blockers": ["#84"]}),
        _block(CoreSection.RULES, {"text": "- test first"}),
        _block(CoreSection.PLAYBOOK, {"text": "Ship."}),
        _block(CoreSection.PLAYBOOK, {"text": "Make."}, "maker"),
    ]
    view = view_of({block.id: block for block in blocks}, "maker", CoreRules())
    assert view.text == (
        "## Playbook\nShip.\n\n"
        "## Playbook (maker)\nMake.\n\n"
        "## Rules\n- test first\n\n"
        "## Status\nSprint: Two\nBlockers:\n- #84\n\n"
        "## Threads\n- 84: Headless (ops)\n\n"
        "## Role state (maker)\nWorking on: the parser\n\n"
        "## Lessons (maker)\n- ask early\n"
    )
    assert (view.playbook, view.rules, view.lessons) == ("Ship.\n\nMake.", "- test first", "- ask early")
    assert (view.status.sprint, view.role_state.working_on, view.threads[0].id) == ("Two", "the parser", "84")
    assert view.tokens == sum(size.tokens for size in view.sizes)
    assert view_of({}, "maker", CoreRules()).text == ""


@given(st.text(alphabet=st.sampled_from("#=- \nab>"), max_size=60))
def test_lessons_cannot_begin_another_block(text: str) -> None:
    lines = render_block(_block(CoreSection.LESSONS, {"text": text})).splitlines()[1:]
    for line in lines:
        bare = line.lstrip(" ") if len(line) - len(line.lstrip(" ")) < 4 else ""
        assert (
            not bare.startswith("#")
            or not bare.lstrip("#").startswith((" ", "\t"))
            or len(bare) - len(bare.lstrip("#")) > 6
        )
        assert not bare.strip() or set(bare.strip()) != {"="}


@pytest.mark.req("C1")
def test_a_block_above_its_budget_is_refused_with_the_excess() -> None:
    rules = CoreRules(status_tokens=100)
    large = _block(CoreSection.STATUS, {"sprint": "x" * 419})
    with pytest.raises(InputError) as refused:
        check_budget({}, large, rules)
    assert refused.value.message == "status: 110 tokens, at most 100: 10 too many"
    assert "core.status_tokens" in refused.value.hint
    smaller = _block(CoreSection.STATUS, {"sprint": "x" * 410})
    check_budget({"status": large}, smaller, rules)


@pytest.mark.req("C1")
def test_all_that_some_role_sees_stays_within_the_whole_budget() -> None:
    rules = CoreRules(budget_tokens=200)
    state = _block(CoreSection.ROLE_STATE, {"working_on": "x" * 400}, "ops")
    status = _block(CoreSection.STATUS, {"sprint": "y" * 400})
    with pytest.raises(InputError, match=r"core memory of 'ops': 2\d\d tokens, at most 200"):
        check_budget({state.id: state}, status, rules)
    check_budget({}, status, rules)
