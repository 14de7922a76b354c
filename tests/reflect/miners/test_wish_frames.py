"""Standing wishes and corrections in several languages: how many are heard, and what is mistaken for one.

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


@pytest.mark.parametrize(
    "message",
    [
        "I'd rather have two small commits than one big one.",
        "I like early returns rather than nested ifs.",
        "I'm not a fan of singletons.",
        "Personally I favour composition over inheritance.",
        "I tend to prefer explicit over implicit.",
        "Don't ever push to main.",
        "Ich hätte gern ausführliche Commit-Nachrichten.",
        "J'aime mieux pytest que unittest.",
        "Me gustaría que usaras pnpm en vez de npm.",
        "Prefiro respostas curtas.",
        "Preferisco risposte brevi.",
    ],
)
def test_what_somebody_likes_is_a_wish_in_the_first_message_too(message: str) -> None:
    assert find_wishes(message) == find_wishes(message, is_task=True) == [(message, True)]


@pytest.mark.parametrize(
    "message",
    [
        "It'd be great if you could keep answers under ten lines.",
        "I want all new code to have tests.",
        "If you are unsure, ask rather than guess.",
        "Make sure to run make fmt before each commit.",
        "Évite les commentaires inutiles.",
        "À partir de maintenant, réponds en français.",
        "D'ora in poi usa pnpm.",
    ],
)
def test_a_wish_is_heard_in_other_words(message: str) -> None:
    assert [wish for wish, _ in find_wishes(message)] == [message]


@pytest.mark.parametrize(
    "message",
    [
        "I prefer the second option.",
        "I like it.",
        "I'd rather not merge this today.",
        "I'd like to see the diff first.",
    ],
)
def test_what_somebody_chooses_for_the_moment_is_no_wish(message: str) -> None:
    assert not find_wishes(message)
    assert not find_wishes(message, is_task=True)
