"""Precision and recall of the rules of saving and drafting, for the tests and bench/workspace_rules.py.

`tuning_texts.json` was written before the rules and looked at while they were tuned. `unseen_texts.json` was
written by somebody who had not seen the rules, and only its figures were looked at. `reversal_texts.json` has
pairs of a choice and its reversal, and choices told with a reason; it was written before the rules for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from archivist.reading.similarity import Likeness, Statement
from archivist.recall.embedders.static import StaticEmbedder
from archivist.records import Event, EventKind
from archivist.workspace.save import split_title
from tests.workspace import labelled_texts, spoken_pairs, statement_pairs

SAME = {Likeness.KNOWN, Likeness.MEANING}
Judged = Sequence[tuple[str, str]]
Rows = Sequence[Mapping[str, Any]]


class Figures(NamedTuple):
    """How often a given label was right, and how often the right label was given."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@cache
def load_texts(name: str) -> dict[str, Rows]:
    """Return the labelled texts of a set: known, tuning, unseen or reversal."""
    if name != "known":
        path = Path(__file__).with_name(f"{name}_texts.json")
        found: dict[str, Rows] = json.loads(path.read_text("utf-8"))
        return found
    pairs = {
        "same": (*statement_pairs.SAME, *statement_pairs.FRESH_SAME, *spoken_pairs.DUPLICATE),
        "conflict": (*statement_pairs.CONFLICT, *statement_pairs.FRESH_CONFLICT, *spoken_pairs.CONTRARY),
        "different": (*statement_pairs.DIFFERENT, *statement_pairs.FRESH_DIFFERENT, *spoken_pairs.NEW),
    }
    return {
        "pairs": [
            {"old": pair.old, "new": pair.new, "label": label}
            for label, group in pairs.items()
            for pair in group
        ],
        "kinds": [{"text": text, "label": kind} for text, kind in labelled_texts.KINDS],
        "categories": [
            {"text": text, "kind": kind, "label": category}
            for text, kind, category in labelled_texts.CATEGORIES
        ],
        "statuses": [{"text": text, "label": status} for text, status in labelled_texts.STATUSES],
    }


def measure(judged: Judged) -> dict[str, Figures]:
    """Return the figures of each label, from the expected and the given one of every case."""
    found = {}
    for label in sorted({wanted for wanted, _ in judged}):
        right = sum(wanted == given == label for wanted, given in judged)
        given = sum(given == label for _, given in judged)
        expected = sum(wanted == label for wanted, _ in judged)
        found[label] = Figures(right / given if given else 0.0, right / expected)
    return found


def macro_f1(judged: Judged) -> float:
    """Return the mean F1 of all labels."""
    figures = measure(judged).values()
    return sum(each.f1 for each in figures) / len(figures)


def judge_pairs(name: str, judge: Callable[[Statement, Statement, float], Likeness]) -> Judged:
    """Return the expected and the given label of every pair of a set."""
    judged = []
    for row in load_texts(name)["pairs"]:
        said = (split_title(text) if isinstance(text, str) else text for text in (row["old"], row["new"]))
        old, new = (Statement(*each) for each in said)
        first, second = _embedder().embed_texts([old.whole, new.whole])
        likeness = judge(old, new, float(first @ second))
        judged.append((row["label"], "same" if likeness in SAME else likeness.value))
    return judged


def judge_texts(name: str, part: str, judge: Callable[..., object]) -> Judged:
    """Return the expected and the given label of the kinds, categories or statuses of a set."""
    return [
        (str(row["label"]), str(judge(*(row[key] for key in ("text", "kind") if key in row))))
        for row in load_texts(name)[part]
    ]


def judge_choices(name: str, judge: Callable[[list[Event]], Iterable[object]]) -> Judged:
    """Return for every conversation of a set whether a decision is expected and given."""
    judged = []
    for row in load_texts(name)["choices"]:
        events = [
            Event(run="run-1", seq=seq, kind=EventKind.MESSAGE, **message)
            for seq, message in enumerate(row["messages"])
        ]
        judged.append((row["label"], "decision" if list(judge(events)) else "none"))
    return judged


def judge_reasons(name: str, judge: Callable[[str], Sequence[str]]) -> Judged:
    """Return for every message of a set whether a cause is expected and given; a wrong one counts as two."""
    judged = []
    for row in load_texts(name)["reasons"]:
        found, wanted = judge(row["message"])[:1], (row["explains"] or "").strip(" .")
        is_right = any(wanted in each or each.strip(" .") in wanted for each in found if wanted)
        judged += [("cause", "cause" if is_right else "none")] if wanted else []
        judged += [("none", "cause" if found else "none")] if not is_right else []
    return judged


@cache
def _embedder() -> StaticEmbedder:
    return StaticEmbedder()
