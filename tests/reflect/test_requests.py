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
from archivist.reflect.requests import (
    Request,
    find_repeated,
    find_requests,
    join_sources,
    select_requests,
)

WISHES = Path(__file__).parents[1] / "fixtures" / "wishes"
CASES: dict[str, list[Any]] = json.loads((WISHES / "working.json").read_text("utf-8"))
OVER_RUNS: dict[str, list[Any]] = json.loads((WISHES / "over_runs.json").read_text("utf-8"))
PASTES: dict[str, Any] = json.loads((WISHES / "pastes.json").read_text("utf-8"))


def _told_again(typed: list[str]) -> list[str]:
    """Return what is told after each message was typed in a run of its own."""
    earlier: dict[str, list[Request]] = {}
    rules: list[str] = []
    for place, message in enumerate(typed):
        requests = find_requests([message])
        rules += [found[1] for request in requests if (found := find_repeated(request, earlier))]
        earlier[f"run-{place}"] = requests
    newest_first = dict(reversed(earlier.items()))
    return rules + [words for words, _ in select_requests(newest_first) if words not in rules]


def _told_over_runs(runs: list[list[str]]) -> list[str]:
    """Return what is told after runs, each of a task and what was typed behind it; forks have one task."""
    heard = []
    for place, (task, *later) in enumerate(runs):
        asked = find_requests([task], is_task=True) + find_requests(later)
        heard.append((f"run-{place}", task, asked))
    made = join_sources(reversed(heard))
    earlier: dict[str, list[Request]] = {}
    rules: list[str] = []
    for run, asked in reversed(made.items()):
        rules += [found[1] for request in asked if (found := find_repeated(request, earlier))]
        earlier[run] = asked
    return list(dict.fromkeys(rules)) + [words for words, _ in select_requests(made)]


@pytest.mark.req("N1")
@pytest.mark.parametrize("case", OVER_RUNS["again"], ids=lambda case: case["class"])
def test_what_the_user_says_again_is_told_wherever_in_a_run_it_stands(case: dict[str, Any]) -> None:
    assert _told_over_runs(case["runs"]) == [case["told"]]


@pytest.mark.req("N7")
@pytest.mark.parametrize("case", OVER_RUNS["silent"], ids=lambda case: case["class"])
def test_templates_forks_pastes_and_tasks_themselves_are_not_said_again(case: dict[str, Any]) -> None:
    assert _told_over_runs(case["runs"]) == []


def test_what_is_typed_behind_one_short_task_is_typed_anew_each_time() -> None:
    assert _told_over_runs([["continue", "and commit to main"]] * 3) == ["commit to main"]
    forks = [["continue", "and commit to main", "use subagents"], ["hi"], ["draw the chart in blue"]]
    assert _told_over_runs([forks[0], *forks, forks[0]]) == []
    task = "Take the next issue of the list and mend it"
    assert _told_over_runs([[task, "and commit to main"]] * 3) == []
    others = ("update the changelog", "mention it in the changelog", "add a line to the changelog")
    assert _told_over_runs([[task, typed] for typed in others]) == ["update the changelog"]


def test_of_a_long_task_only_how_it_is_to_be_done_is_read() -> None:
    steps = "\n".join(
        f"Then the reader takes step {number} of the list and adds a row." for number in range(40)
    )
    task = f"{steps}\nSpawn subagents for the parts. Update the changelog."
    assert [request.words for request in find_requests([task], is_task=True)] == [
        "Spawn subagents for the parts"
    ]
    assert find_requests([f"{steps}\n{task}"], is_task=True) == []


def test_of_what_cannot_hold_together_the_later_one_is_told() -> None:
    old = [["Sort the list", "keep the old settings file"], ["Port it", "keep the old settings file, please"]]
    new = [["Add tabs", "drop the old settings file"], ["Fix rows", "drop the old settings file, please"]]
    contrary = [*old, ["Mend the page", old[0][1]], *new, ["Speed it up", new[0][1]]]
    assert len(_told_over_runs(contrary)) <= 2
    pnpm = [[f"{task}.", "write the notes in English"] for task in ("Sort it", "Port it", "Mend it")]
    later = [[f"{task}.", "do not write the notes in English"] for task in ("Add it", "Move it", "Print it")]
    assert _told_over_runs([*pnpm, *later]) == ["do not write the notes in English"]


@pytest.mark.parametrize(
    "said",
    ["Assume nothing.", "Don't assume anything.", "Stop guessing.", "Always keep it like that.",
     "Never do that again.", "don't ever change it"],
)  # fmt: skip
def test_an_order_that_does_not_say_what_it_is_about_is_no_wish(said: str) -> None:
    assert find_wishes(said) == []
    assert find_requests([said]) == []


def test_an_order_with_its_object_is_told_whole() -> None:
    whole = "Assume nothing about the time zones, read them from the settings"
    assert [request.words for request in find_requests([whole])] == [whole]
    assert find_wishes("Don't assume anything about the order of rows.")


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
def test_what_three_of_the_latest_twenty_runs_or_a_tenth_of_all_ask_for_is_told_while_it_is_asked() -> None:
    def tell(asked: list[int], runs: int, *typed: str) -> list[str]:
        made = {
            f"run-{age}": find_requests(
                [typed[age % len(typed)] if age in asked else "sort the table by price"]
            )
            for age in range(runs)
        }
        return [words for words, _ in select_requests(made) if "sort" not in words]

    docs = ("did you update the changelog?", "is the changelog up to date?", "mention it in the changelog")
    assert tell([0, 10, 19], 40, *docs) == ["update the changelog"]
    assert tell([0, 10], 20, *docs) == []
    assert tell([0, 10, 25], 40, *docs) == []
    assert tell([0, 10, 25], 30, *docs) == ["update the changelog"]
    # Nobody asks for it any more.
    assert tell([20, 21, 22, 23, 24, 25], 40, *docs) == []
    # A bare commit says little.
    assert tell(list(range(8)), 25, "commit", "commit the changes") == []
    assert tell(list(range(9)), 25, "commit", "commit this") == ["commit"]
    assert tell([0, 1, 2], 25, "commit to main", "ok, commit to main") == ["commit to main"]
    assert tell([0, 1, 2], 25, "push to the fork", "ok, push to the fork") == ["push to the fork"]


@pytest.mark.req("N1")
def test_at_most_three_are_told_the_most_frequent_first() -> None:
    typed = ("make a pr", "reply to the thread", "update the changelog", "add tests for it")
    made = {
        f"run-{age}": find_requests(words for place, words in enumerate(typed) if age < 10 - place)
        for age in range(12)
    }
    told = [(words, len(runs)) for words, runs in select_requests(made)]
    assert told == [("make a pr", 10), ("reply to the thread", 9), ("update the changelog", 8)]


@pytest.mark.req("N1")
def test_documents_and_the_occasion_are_told_where_the_messages_name_them() -> None:
    typed = ["did you update the docs?", "update the schema too", "update the docs", "add it to the schema"]
    assert _told_again(typed) == ["update the docs and the schema"]
    # With its occasion it is a rule.
    after = "when you add an option, update the readme"
    assert _told_again([after, after]) == [after]


def test_a_count_is_of_the_runs_that_say_all_of_it() -> None:
    typed = ["make a pr"] * 5 + ["make a pr, reply to the thread", "reply to the thread"] * 2
    made = {f"run-{place}": find_requests([message]) for place, message in enumerate(reversed(typed))}
    told = {words: len(runs) for words, runs in select_requests(made)}
    assert told == {"make a pr": 7, "reply to the thread": 4}


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    ("order", "runs"),
    [
        ("Do not push without my approval", 2),
        ("Spawn subagents for the review", 3),
        ("Commit and push to main", 3),
        ("Use British spelling", 3),
    ],
)
def test_what_is_pasted_again_is_no_rule_and_no_request(order: str, runs: int) -> None:
    pastes: dict[str, str] = PASTES["pastes"]
    taken = [name for name, text in pastes.items() if _told_again([text.replace("@WISH@", order)] * runs)]
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
