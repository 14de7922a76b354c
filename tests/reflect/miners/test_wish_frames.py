"""Standing wishes and corrections in five languages: how many are heard, and what is mistaken for one.

The frames were written with `developed` in view, and measured once on `held_out`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from archivist.reflect.miners.wishes import find_wishes, state_rule

FIXTURE = Path(__file__).parents[2] / "fixtures" / "wishes" / "typed.json"
CASES: dict[str, list[dict[str, Any]]] = json.loads(FIXTURE.read_text("utf-8"))
LANGUAGES = ("en", "de", "fr", "es", "zh")


def _recall(half: str) -> dict[str, float]:
    heard: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for case in CASES[half]:
        if case["wish"]:
            said[case["language"]] += 1
            wishes = " ".join(wish for wish, _ in find_wishes(case["text"]))
            heard[case["language"]] += case["wish"].lower() in wishes.lower()
    return {language: heard[language] / said[language] for language in LANGUAGES}


def _false_alarms(half: str) -> list[str]:
    texts = [case["text"] for case in CASES[half] if not case["wish"]]
    return [text for text in texts if find_wishes(text) or find_wishes(text, is_task=True)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_nearly_every_wish_is_heard_that_the_frames_were_written_with(language: str) -> None:
    assert _recall("developed")[language] >= 0.9


def test_nothing_is_mistaken_that_the_frames_were_written_with() -> None:
    assert _false_alarms("developed") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_wishes_are_heard_that_were_not_in_view(language: str) -> None:
    assert _recall("held_out")[language] >= (0.8 if language == "en" else 0.7)


def test_hardly_anything_else_is_taken_for_a_wish() -> None:
    texts = [case for case in CASES["held_out"] if not case["wish"]]
    assert len(_false_alarms("held_out")) <= 0.03 * len(texts)


@pytest.mark.parametrize("case", CASES["rules"], ids=lambda case: case["message"])
def test_the_rule_is_kept_without_its_occasion(case: dict[str, Any]) -> None:
    rules = [state_rule(sentence) for sentence, _ in find_wishes(case["message"])]
    assert [rule.lower() for rule in rules] == ([case["rule"].lower()] if case["rule"] else [])


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("Ab jetzt immer pnpm verwenden. Repariere den Parser.", "Ab jetzt immer pnpm verwenden."),
        ("Corrige l'analyseur. Désormais, utilise pnpm.", "Désormais, utilise pnpm."),
        ("A partir de ahora usa pnpm. Arregla el parser.", "A partir de ahora usa pnpm."),
        ("从现在起用 pnpm。修一下解析器。", "从现在起用 pnpm。"),
    ],
)
def test_with_the_task_comes_only_what_is_marked_as_a_rule(message: str, rule: str) -> None:
    assert find_wishes(message, is_task=True) == [(rule, True)]
