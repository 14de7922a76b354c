"""Measure the workspace's rules for English text on the labelled texts of the tests, beside trivial ones.

Run it from the repository: python -m bench.workspace_rules. `known` and `tuning` were looked at while the
rules were made, `unseen` was not: a rule stays only where it is better there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from tests.workspace import figures
from tests.workspace.figures import Judged

from archivist.reading.similarity import COSINE, Likeness, Statement, compare
from archivist.recall.keywords import keywords
from archivist.records import Event
from archivist.workspace.drafts import draft_decisions, find_causes, message_sentences
from archivist.workspace.save import MemoryKind, category_of, kind_of, status_of

SETS = ("known", "tuning", "unseen", "reversal")
_NEGATION = re.compile(r"\b(?:not|never|no|don't|avoid|without)\b", re.IGNORECASE)


def compare_simply(old: Statement, new: Statement, cosine: float) -> Likeness:
    """Compare two statements by their vectors, their sets of words, their numbers and their negations."""
    first, second = keywords(old.whole), keywords(new.whole)
    shared = len(first & second) / max(1, min(len(first), len(second)))
    if shared < 0.5 or cosine < COSINE:
        return Likeness.DIFFERENT
    is_negated = bool(_NEGATION.search(old.title)) != bool(_NEGATION.search(new.title))
    is_other_number = re.findall(r"\d+", old.title) != re.findall(r"\d+", new.title)
    is_replaced = len(first - second) == len(second - first) == 1
    return Likeness.CONFLICT if is_negated or is_other_number or is_replaced else Likeness.MEANING


def classify_simply(text: str) -> str:
    """Tell a decision from a lesson by one list of words."""
    if re.match(r"(?:the )?plan\b", text, re.IGNORECASE):
        return "plan_status"
    is_decision = re.search(r"\b(?:decided|chose|prefer|always|never|use)\b", text.lower())
    return "decision" if is_decision else "lesson"


def categorise_simply(text: str, kind: str) -> str:
    """Return a category that a text names, or the one of its kind."""
    names = re.findall(r"architecture|dependency|tooling|convention|performance|configuration|test", text)
    return names[0] if names else "convention" if kind == "decision" else "debugging"


def read_status_simply(text: str) -> str | None:
    """Return a status that a text names."""
    found = re.search(r"abandoned|partial|in progress|done|new", text)
    return found[0].replace(" ", "_") if found else None


def find_decisions_simply(events: list[Event]) -> list[str]:
    """Return the messages of the user that say that something was decided."""
    return [event.text for event in events if event.role == "user" and "decided" in event.text]


def find_causes_simply(message: str) -> list[str]:
    """Return the sentences with one of four words."""
    words = re.compile(r"because|root cause|turned out|the problem was", re.IGNORECASE)
    return [sentence for sentence in message_sentences(message) if words.search(sentence)]


def compare_statements(old: Statement, new: Statement, cosine: float) -> Likeness:
    """Compare two statements by the rules of saving."""
    compared = compare(old, new, cosine)
    is_named = compared.likeness is Likeness.DIFFERENT and compared.reason
    return Likeness.MEANING if is_named else compared.likeness


def categorise(text: str, kind: str) -> str:
    """Return the category by the rules of saving."""
    return category_of(text, MemoryKind(kind))


QUESTIONS: tuple[tuple[str, str, Callable[[str], Judged], Callable[[str], Judged]], ...] = (
    (
        "statements",
        "pairs",
        lambda name: figures.judge_pairs(name, compare_statements),
        lambda name: figures.judge_pairs(name, compare_simply),
    ),
    (
        "kind",
        "kinds",
        lambda name: figures.judge_texts(name, "kinds", kind_of),
        lambda name: figures.judge_texts(name, "kinds", classify_simply),
    ),
    (
        "category",
        "categories",
        lambda name: figures.judge_texts(name, "categories", categorise),
        lambda name: figures.judge_texts(name, "categories", categorise_simply),
    ),
    (
        "plan status",
        "statuses",
        lambda name: figures.judge_texts(name, "statuses", status_of),
        lambda name: figures.judge_texts(name, "statuses", read_status_simply),
    ),
    (
        "decision",
        "choices",
        lambda name: figures.judge_choices(name, draft_decisions),
        lambda name: figures.judge_choices(name, find_decisions_simply),
    ),
    (
        "cause",
        "reasons",
        lambda name: figures.judge_reasons(name, find_causes),
        lambda name: figures.judge_reasons(name, find_causes_simply),
    ),
)


def main() -> int:
    """Print precision and recall of every label, ours and the trivial rule's, on each set."""
    print(f"{'question':<13}{'label':<15}" + "".join(f"{name:>13}{'trivial':>13}" for name in SETS))
    for question, part, ours, trivial in QUESTIONS:
        sets = [name for name in SETS if part in figures.load_texts(name)]
        judged = {name: (ours(name), trivial(name)) for name in sets}
        labels = sorted({label for both in judged.values() for label in figures.measure(both[0])})
        for label in labels:
            cells = [_cell(judged.get(name), label) for name in SETS]
            print(f"{question:<13}{label:<15}{''.join(cells)}")
        means = [
            "".join(f"{figures.macro_f1(each):>13.2f}" for each in judged[name])
            if name in judged
            else " " * 26
            for name in SETS
        ]
        print(f"{question:<13}{'mean F1':<15}{''.join(means)}")
    return 0


def _cell(both: tuple[Judged, Judged] | None, label: str) -> str:
    found = [figures.measure(judged).get(label) for judged in both or ()]
    texts = [f"{each.precision:.2f} / {each.recall:.2f}" if each else "" for each in found]
    return "".join(f"{text:>13}" for text in texts or ("", ""))


if __name__ == "__main__":
    sys.exit(main())
