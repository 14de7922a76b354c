"""What a user asks for about their work: said once as a rule, or again in other runs.

The messages are invented, each in the words that a person might type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist.reflect.follow_ups import PATTERNS, find_follow_ups
from archivist.reflect.miners.wishes import find_wishes, state_rule
from archivist.reflect.requests import Request, find_repeated, find_requests, select_requests

WISHES = Path(__file__).parents[1] / "fixtures" / "wishes"
CASES: dict[str, list[Any]] = json.loads((WISHES / "working.json").read_text("utf-8"))
PASTES: dict[str, Any] = json.loads((WISHES / "pastes.json").read_text("utf-8"))


def _told_again(typed: list[str]) -> list[str]:
    """Return what is told after each message was typed in a run of its own."""
    earlier: dict[str, list[Request]] = {}
    rules: list[str] = []
    for place, message in enumerate(typed):
        requests = find_requests([message])
        rules += [found[1] for request in requests if (found := find_repeated(request, earlier))]
        earlier[f"run-{place}"] = requests
    return rules + [words for words, _ in select_requests(earlier) if words not in rules]


@pytest.mark.parametrize("case", CASES["said_once"], ids=lambda case: case["text"])
def test_a_firm_rule_about_work_is_a_wish_when_it_is_said_once(case: dict[str, str]) -> None:
    rules = " ".join(state_rule(wish) for wish, _ in find_wishes(case["text"]))
    assert case["wish"].lower() in rules.lower()
    assert bool(rules) is bool(case["wish"])


@pytest.mark.parametrize("case", CASES["said_in_a_task"], ids=lambda case: case["text"])
def test_what_users_keep_for_themselves_holds_beyond_the_task(case: dict[str, str]) -> None:
    rules = " ".join(wish for wish, _ in find_wishes(case["text"], is_task=True))
    assert case["wish"].lower() in rules.lower()


@pytest.mark.parametrize("message", CASES["no_wish"])
def test_orders_of_the_moment_and_words_about_the_product_are_no_wish(message: str) -> None:
    assert find_wishes(message) == []
    assert find_wishes(message, is_task=True) == []


@pytest.mark.parametrize("case", CASES["said_again"], ids=lambda case: case["class"])
def test_what_comes_back_in_other_runs_is_told_however_it_is_worded(case: dict[str, Any]) -> None:
    told = _told_again(case["typed"])
    assert case["told"].lower() in " ".join(told).lower()
    assert bool(told) is bool(case["told"])


@pytest.mark.parametrize("typed", CASES["not_again"], ids=lambda typed: typed[0])
def test_what_only_looks_alike_or_asks_for_nothing_is_not(typed: list[str]) -> None:
    assert _told_again(typed) == []


def test_a_rule_is_told_from_the_second_run_on_and_a_request_from_the_third() -> None:
    rule = "Do not mention the agent in commit messages"
    assert _told_again([rule]) == []
    assert _told_again([rule, rule]) == [rule]
    assert _told_again(["make a pr"] * 2) == []
    assert _told_again(["make a pr"] * 3) == ["make a pr"]


def test_the_way_is_told_with_the_request_when_it_is_usual() -> None:
    typed = ["make a pr", "make a pr, as a draft", "ok make a pr, as a draft", "make a pr"]
    assert _told_again([*typed, typed[1]]) == ["make a pr, as a draft"]


def test_of_several_things_in_one_message_each_is_told() -> None:
    typed = ["make a pr", "make a pr, reply to the thread", "ok make a pr, reply to the thread", "make a pr"]
    assert _told_again([*typed, typed[1]]) == ["make a pr", "reply to the thread"]


@pytest.mark.req("N1")
@pytest.mark.parametrize("case", CASES["follow_ups"], ids=lambda case: case["said"])
def test_a_follow_up_is_known_by_its_kind_however_it_is_worded(case: dict[str, Any]) -> None:
    asked = [each for request in find_requests([case["said"]]) for each in find_follow_ups(request.words)]
    assert {each.kind for each in asked} == set(case["kinds"])


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_kind_is_named_in_words_that_ask_for_it(kind: str) -> None:
    assert find_follow_ups(kind) == ((kind, kind),)


@pytest.mark.req("N1")
def test_what_an_agent_can_do_unasked_is_told_where_a_tenth_of_the_runs_ask_for_it() -> None:
    def tell(asked: int, runs: int, *typed: str) -> list[str]:
        made = {
            f"run-{place}": find_requests(
                [typed[place % len(typed)] if place < asked else "sort the table by price"]
            )
            for place in range(runs)
        }
        return [words for words, _ in select_requests(made) if "sort" not in words]

    docs = ("did you update the changelog?", "is the changelog up to date?", "mention it in the changelog")
    assert tell(3, 30, *docs) == ["update the changelog"]
    assert tell(3, 31, *docs) == []
    assert tell(2, 8, *docs) == []
    # What is sent to others is asked for when it is wanted, and a bare commit says little.
    assert tell(5, 25, "make a pr") == ["make a pr"]
    assert tell(4, 25, "make a pr") == []
    assert tell(8, 25, "commit", "commit this") == []
    assert tell(9, 25, "commit", "commit this") == ["commit"]
    assert tell(6, 25, "push to the fork", "ok, push to the fork") == ["push to the fork"]


@pytest.mark.req("N1")
def test_documents_and_the_occasion_are_told_where_the_messages_name_them() -> None:
    typed = ["did you update the docs?", "update the schema too", "update the docs", "add it to the schema"]
    assert _told_again(typed) == ["update the docs and the schema"]
    # With its occasion it is a rule.
    after = "when you add an option, update the readme"
    assert _told_again([after, after]) == [after]


def test_a_count_is_of_the_runs_that_say_all_of_it() -> None:
    typed = ["make a pr"] * 5 + ["make a pr, reply to the thread", "reply to the thread"] * 2
    made = {f"run-{place}": find_requests([message]) for place, message in enumerate(typed)}
    told = {words: len(runs) for words, runs in select_requests(made)}
    assert told == {"make a pr": 7, "reply to the thread": 4}


@pytest.mark.req("N7")
def test_what_is_pasted_twice_is_no_rule() -> None:
    rule = "Do not push without my approval"
    pastes: dict[str, str] = PASTES["pastes"]
    taken = [name for name, text in pastes.items() if _told_again([text.replace("@WISH@", rule)] * 2)]
    # A paste without any mark looks like typing.
    assert len(taken) <= 0.04 * len(pastes), taken


def test_requests_that_share_no_words_to_tell_are_left_out() -> None:
    made = {
        f"run-{place}": find_requests([text])
        for place, text in enumerate(("fix login page", "page login fix"))
    }
    assert select_requests(made) == []
    alike = [Request("sort the list of names"), Request("names of the list, sorted"), Request("list names")]
    assert all(
        words for words, _ in select_requests({str(place): [each] for place, each in enumerate(alike)})
    )
