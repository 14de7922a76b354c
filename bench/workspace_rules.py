"""Compare the workspace's rules for English text with simpler ones, on the labelled texts of the tests.

Run it from the repository: python -m bench.workspace_rules. It prints precision, recall and the lines of code
that each answer needs. The rules stay only where they are better than the simple ones.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import NamedTuple

from tests.workspace import labelled_texts, spoken_pairs, statement_pairs

from archivist.recall.embedders.static import StaticEmbedder
from archivist.recall.keywords import keywords
from archivist.workspace import save as classify
from archivist.workspace import similarity, terms
from archivist.workspace.save import MemoryKind, split_title
from archivist.workspace.similarity import Likeness, Statement, compare

_NEGATION = re.compile(r"\b(?:not|never|no|don't|avoid|without)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_SAME = {Likeness.EXACT, Likeness.KNOWN, Likeness.MEANING}


class LabelledPair(NamedTuple):
    """Two statements and what the second is to the first."""

    old: Statement
    new: Statement
    label: str


def compare_simply(old: Statement, new: Statement, cosine: float) -> Likeness:
    """Compare two statements by their sets of words, their numbers and their negations."""
    first, second = keywords(old.whole), keywords(new.whole)
    shared = len(first & second) / max(1, min(len(first), len(second)))
    if first == second and bool(_NEGATION.search(old.whole)) == bool(_NEGATION.search(new.whole)):
        return Likeness.KNOWN
    if shared < 0.5:
        return Likeness.DIFFERENT
    is_negated = bool(_NEGATION.search(old.title)) != bool(_NEGATION.search(new.title))
    is_other_number = _NUMBER.findall(old.title) != _NUMBER.findall(new.title)
    is_replaced = len(first - second) == len(second - first) == 1
    if is_negated or is_other_number or is_replaced:
        return Likeness.CONFLICT
    return Likeness.MEANING if cosine >= similarity.COSINE else Likeness.DIFFERENT


def classify_simply(text: str) -> str:
    """Tell a decision from a lesson by one list of words."""
    if re.match(r"(?:the )?plan\b", text, re.IGNORECASE):
        return "plan_status"
    return (
        "decision" if re.search(r"\b(?:decided|chose|prefer|always|never|use)\b", text.lower()) else "lesson"
    )


def load_pairs() -> list[LabelledPair]:
    """Return every labelled pair of the tests."""
    pairs: list[LabelledPair] = []
    for label, groups in (
        ("same", (statement_pairs.SAME, statement_pairs.FRESH_SAME)),
        ("conflict", (statement_pairs.CONFLICT, statement_pairs.FRESH_CONFLICT)),
        ("different", (statement_pairs.DIFFERENT, statement_pairs.FRESH_DIFFERENT)),
    ):
        pairs += [
            LabelledPair(Statement(*pair.old), Statement(*pair.new), label)
            for group in groups
            for pair in group
        ]
    for label, said in (
        ("same", spoken_pairs.DUPLICATE),
        ("conflict", spoken_pairs.CONTRARY),
        ("different", spoken_pairs.NEW),
    ):
        pairs += [
            LabelledPair(Statement(*split_title(pair.old)), Statement(*split_title(pair.new)), label)
            for pair in said
        ]
    return pairs


def judge_pairs(judge: Callable[[Statement, Statement, float], Likeness]) -> list[tuple[str, str]]:
    """Return the expected and the given label of every pair."""
    embedder = StaticEmbedder()
    judged = []
    for old, new, label in load_pairs():
        first, second = embedder.embed_texts([old.whole, new.whole])
        likeness = judge(old, new, float(first @ second))
        judged.append((label, "same" if likeness in _SAME else likeness.value))
    return judged


def count_lines(*sources: ModuleType | Callable[..., object]) -> int:
    """Return the lines of code of modules or functions."""
    return sum(len(inspect.getsource(source).splitlines()) for source in sources)


def print_rows(title: str, lines: int, judged: Sequence[tuple[str, str]], labels: Iterable[str]) -> None:
    """Print precision and recall of each label."""
    for label in labels:
        given = sum(got == label for _, got in judged)
        expected = sum(want == label for want, _ in judged)
        right = sum(want == got == label for want, got in judged)
        precision, recall = right / given if given else 0.0, right / expected
        print(f"{title:<28}{label:<13}{precision:>9.2f}{recall:>8.2f}{lines:>7}")


def main() -> int:
    """Print both answers to each question side by side."""
    print(f"{'rules':<28}{'label':<13}{'precision':>9}{'recall':>8}{'lines':>7}")
    labels = ("same", "conflict", "different")
    rules = judge_pairs(lambda old, new, cosine: compare(old, new, cosine).likeness)
    print_rows("statements: rules", count_lines(similarity, terms), rules, labels)
    print_rows("statements: word sets", count_lines(compare_simply), judge_pairs(compare_simply), labels)
    kinds = [kind.value for kind in MemoryKind]
    judged = [(kind, classify.kind_of(text).value) for text, kind in labelled_texts.KINDS]
    print_rows("kind: rules", count_lines(classify), judged, kinds)
    judged = [(kind, classify_simply(text)) for text, kind in labelled_texts.KINDS]
    print_rows("kind: one list of words", count_lines(classify_simply), judged, kinds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
