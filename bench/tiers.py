"""Measure the cognitive tiers over a history of 200 cycles with known answers.

The context that core memory takes, the share of cross-cycle questions that the first hit answers, the share
of what is retrieved that is about the question, and attempts to change playbook and rules without leave.
Beside ours, in the same run: one flat `bank.md`, read whole, searched by line for the question's words.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist import Bank
from archivist.recall.keywords import keywords
from archivist.records import Actor, ActorKind
from archivist.text import estimate_tokens

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.self_modification import run as attack

if TYPE_CHECKING:
    from archivist.records import Entry

CYCLES = 200
ROLES = ("research", "engineering", "qa", "design", "ops", "growth", "product", "security")
SUBJECTS = (
    "login page", "payment webhook", "search index", "image cache", "export to CSV", "rate limiter",
    "audit trail", "onboarding mail", "mobile menu", "session store", "feature flags", "billing report",
    "dark theme", "API keys", "error pages", "import wizard", "notification queue", "password reset",
    "team invitations", "usage charts", "backup job", "translation files", "time zone picker",
    "release notes", "load balancer", "telemetry opt-out",
)  # fmt: skip
BLOCKERS = (
    "the vendor's sandbox is down", "legal has not cleared the licence", "the staging certificate expired",
    "nobody owns the old schema", "the design review is still open", "the test runner hangs on macOS",
)  # fmt: skip
CHOICES = (
    "PostgreSQL", "Redis", "SQLite", "a nightly job", "a message queue", "plain files", "a feature flag",
)  # fmt: skip
BARS = {"core tokens": 5_000, "right": 0.90, "relevant": 0.80, "unauthorised": 0}


class Question(NamedTuple):
    """What is asked, which entries answer it, and which are at least about it."""

    text: str
    answers: frozenset[str]
    about: frozenset[str]


@dataclass
class Story:
    """What was logged, kept by what it is about."""

    entries: list[Entry] = field(default_factory=list)
    by_issue: dict[int, list[Entry]] = field(default_factory=dict)
    by_subject: dict[str, list[Entry]] = field(default_factory=dict)
    blocked: dict[int, Entry] = field(default_factory=dict)
    decided: dict[str, list[Entry]] = field(default_factory=dict)
    fixed: dict[int, Entry] = field(default_factory=dict)
    core_tokens: list[int] = field(default_factory=list)


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5, help="histories to tell, for the spread")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    rounds = [_round(seed, options.questions) for seed in range(options.seeds)]
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        counts = attack(random.Random(7), options.attempts, Path(folder))
    spent = time.process_time() - begin
    lines = list(_table(rounds, options.questions))
    lines.append(
        f"{'changes of playbook or rules':<34}{counts.attempts:,} attempts, {counts.refused:,} refused,"
        f" {counts.changes:,} changes, {counts.unauthorised} unauthorised (bar 0), {spent:.0f} s CPU"
    )
    print("\n".join(lines))
    if options.write:
        options.write.write_text("\n".join([f"$ python {' '.join(sys.argv)}", *lines, ""]), encoding="utf-8")
    is_missed = counts.unauthorised or any(line.endswith("MISSED") for line in lines)
    return 1 if is_missed else 0


def _round(seed: int, questions: int) -> dict[str, float]:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Bank.open(Path(folder), create=True) as bank:
        story = tell(bank, chance)
        for _ in bank.vectors.embed_waiting():
            pass
        asked = _questions(story, chance, questions)
        flat = [f"cycle {each.cycle} {each.role}: {each.action}. {each.content}" for each in story.entries]
        begin = time.process_time()
        ours = _judged(asked, lambda text: _ids(bank, text))
        spent = (time.process_time() - begin) / len(asked) * 1e3
        theirs = _judged(asked, lambda text: [story.entries[at].id for at in _by_words(flat, text)])
    return {
        "core tokens": max(story.core_tokens),
        "flat tokens": estimate_tokens("\n".join(flat)),
        "right": ours[0],
        "flat right": theirs[0],
        "relevant": ours[1],
        "flat relevant": theirs[1],
        "ms a question": spent,
    }


def _ids(bank: Bank, text: str) -> list[str]:
    return [found.entry.id for found in bank.stream.search(text, limit=5, tier="")]


def tell(bank: Bank, chance: random.Random) -> Story:
    """Let eight roles work through the cycles: each acts, updates core memory, and logs what it did."""
    story = Story()
    issues = {100 + number: subject for number, subject in enumerate(SUBJECTS)}
    for cycle in range(1, CYCLES + 1):
        role = ROLES[cycle % len(ROLES)]
        issue = chance.choice(list(issues))
        _act(bank.acting_as(Actor(ActorKind.AGENT, role, role)), chance, story, cycle, issue, issues[issue])
        story.core_tokens.append(bank.core.view(role).tokens)
    return story


def _act(bank: Bank, chance: random.Random, story: Story, cycle: int, issue: int, subject: str) -> None:
    role = bank.actor.role
    kind = chance.choice(("blocked", "decided", "fixed", "reviewed", "measured", "wrote"))
    pull = 1000 + cycle
    if kind == "blocked" and issue in story.blocked:
        kind = "reviewed"
    if kind == "fixed" and issue in story.fixed:
        kind = "measured"
    action, content, prs = _said(kind, chance, subject, issue, pull)
    entry = bank.stream.log(
        action,
        cycle=cycle,
        role=role,
        importance=chance.randint(3, 9),
        type="decision" if kind == "decided" else "action",
        content=content,
        tags=[subject.replace(" ", "-").lower(), kind],
        issues=[issue],
        prs=prs,
    )
    story.entries.append(entry)
    story.by_issue.setdefault(issue, []).append(entry)
    story.by_subject.setdefault(subject, []).append(entry)
    if kind == "blocked":
        story.blocked[issue] = entry
        bank.core.append("blockers", f"#{issue}: {content[:80]}")
    if kind == "decided":
        story.decided.setdefault(subject, []).append(entry)
    if kind == "fixed":
        story.fixed[issue] = entry
        bank.core.append("recentlyShipped", f"PR #{pull} {subject}")
        _unblock(bank, issue)
    bank.core.update("roleState", {"lastAction": action, "workingOn": f"#{issue} {subject}"})
    if cycle % 10 == 0:
        bank.core.update("status", {"sprint": f"Sprint {cycle // 10}: {chance.choice(SUBJECTS)}"})
        bank.core.append("threads", {"id": f"t{issue}", "summary": f"{subject}, #{issue}", "roles": [role]})
    _forget_old_threads(bank)


def _unblock(bank: Bank, issue: int) -> None:
    for blocker in bank.core.view().status.blockers:
        if blocker.startswith(f"#{issue}:"):
            bank.core.take_out("blockers", blocker)


def _forget_old_threads(bank: Bank) -> None:
    threads = bank.core.view().threads
    for thread in threads[:-12]:
        bank.core.close_thread(thread.id)


def _said(
    kind: str, chance: random.Random, subject: str, issue: int, pull: int
) -> tuple[str, str, list[int]]:
    match kind:
        case "blocked":
            return f"Stopped work on the {subject}", f"#{issue} cannot go on: {chance.choice(BLOCKERS)}.", []
        case "decided":
            one, other = chance.sample(CHOICES, 2)
            return f"Chose {one} for the {subject}", f"We use {one} instead of {other}, simpler to run.", []
        case "fixed":
            return f"Merged the {subject} fix", f"PR #{pull} closes #{issue}, tests green.", [pull]
        case "reviewed":
            return f"Reviewed the {subject}", f"Two remarks on PR #{pull}, none of them serious.", [pull]
        case "measured":
            return f"Measured the {subject}", f"p95 went from {chance.randint(80, 900)} ms to half of it.", []
        case _:
            return f"Wrote notes on the {subject}", f"Three pages in docs, linked from #{issue}.", []


def _questions(story: Story, chance: random.Random, count: int) -> list[Question]:
    """Return questions of four kinds, in equal shares, whose answers are known."""
    subjects = [subject for subject, made in story.decided.items() if made]
    kinds: list[Callable[[], Question]] = [
        lambda: _of_cycle(story, chance.choice(story.entries)),
        lambda: _of_issue("What blocked #{}?", story, chance.choice(list(story.blocked.items()))),
        lambda: _of_issue("Which PR fixed #{}?", story, chance.choice(list(story.fixed.items()))),
        lambda: _of_subject(story, chance.choice(subjects)),
    ]
    return [kinds[number % len(kinds)]() for number in range(count)]


def _of_cycle(story: Story, entry: Entry) -> Question:
    same = frozenset(each.id for each in story.entries if each.cycle == entry.cycle)
    text = f"What did {entry.role} do in cycle {entry.cycle}?"
    return Question(text, frozenset([entry.id]), same)


def _of_issue(form: str, story: Story, told: tuple[int, Entry]) -> Question:
    issue, entry = told
    about = frozenset(each.id for each in story.by_issue[issue])
    return Question(form.format(issue), frozenset([entry.id]), about)


def _of_subject(story: Story, subject: str) -> Question:
    latest = story.decided[subject][-1]
    about = frozenset(each.id for each in story.by_subject[subject])
    return Question(f"What did we decide for the {subject}?", frozenset([latest.id]), about)


def _judged(asked: Sequence[Question], search: Callable[[str], list[str]]) -> tuple[float, float]:
    """Return the share of questions that the first hit answers, and of all hits that are to the point."""
    right, relevant, shown = 0, 0, 0
    for question in asked:
        found = search(question.text)
        right += bool(found) and found[0] in question.answers
        relevant += sum(each in question.about for each in found)
        shown += len(found)
    return right / len(asked), relevant / max(1, shown)


def _by_words(lines: Sequence[str], text: str) -> list[int]:
    """Return the five lines that share most words with a question, the latest first among equals."""
    asked = keywords(text) | set(re.findall(r"\d+", text))
    shared = [len(asked & (keywords(line) | set(re.findall(r"\d+", line)))) for line in lines]
    best = sorted(range(len(lines)), key=lambda at: (-shared[at], -at))[:5]
    return [at for at in best if shared[at]]


def _table(rounds: Sequence[dict[str, float]], questions: int) -> list[str]:
    lines = [
        f"{CYCLES} cycles, {len(ROLES)} roles, {questions} questions, {len(rounds)} histories: mean (range)",
        f"{'':<34}{'Archivist':>22}{'one flat bank.md':>24}{'bar':>12}",
    ]
    rows = (
        ("context tokens, the most", "core tokens", "flat tokens", "{:,.0f}"),
        ("questions right, first hit", "right", "flat right", "{:.3f}"),
        ("retrieved that is to the point", "relevant", "flat relevant", "{:.3f}"),
        ("CPU ms a question", "ms a question", "", "{:.1f}"),
    )
    for title, ours, theirs, form in rows:
        bar = BARS.get(ours)
        cell = f"{title:<34}{_spread(rounds, ours, form):>22}{_spread(rounds, theirs, form):>24}"
        if bar is None:
            lines.append(cell.rstrip())
            continue
        mean = sum(each[ours] for each in rounds) / len(rounds)
        is_missed = mean > bar if ours == "core tokens" else mean < bar
        lines.append(f"{cell}{form.format(bar):>12}{' MISSED' if is_missed else ''}")
    return lines


def _spread(rounds: Sequence[dict[str, float]], name: str, form: str) -> str:
    if not name:
        return ""
    values = [each[name] for each in rounds]
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(sum(values) / len(values))} ({low}-{high})"


if __name__ == "__main__":
    sys.exit(main())
