"""Count what a language model may spend: reserved before a request, settled with its real usage after it.

Money is counted in millionths of a dollar, so that a price per million tokens times a number of tokens is
exact. What is reserved and never settled, because its process died, stays counted: the budget is a limit, and
the request may well have been paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from archivist.config import ModelRules

# Fewer bytes a token than code and English have in the tokenizers in use: an estimate is rather too high.
BYTES_PER_TOKEN = 3
# Days whose sums are kept, for the page.
_DAYS = 31
_MICRO = 1_000_000


class Spending(NamedTuple):
    """Requests, their tokens, and their price in millionths of a dollar."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0

    @property
    def tokens(self) -> int:
        """Return the tokens of questions and answers together."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float:
        """Return the price in dollars."""
        return self.micro_usd / _MICRO

    def plus(self, other: Spending) -> Spending:
        """Return the sum of two."""
        return Spending(*(mine + its for mine, its in zip(self, other, strict=True)))

    def as_view(self) -> dict[str, Any]:
        """Return it as every door shows it."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usd": round(self.usd, 6),
        }


NOTHING_SPENT = Spending()


def price(rules: ModelRules, input_tokens: int, output_tokens: int, *, requests: int = 1) -> Spending:
    """Return what a request of so many tokens costs, rounded up."""
    micro = math.ceil(input_tokens * rules.input_usd + output_tokens * rules.output_usd)
    return Spending(requests, input_tokens, output_tokens, micro)


def estimate_request(rules: ModelRules, text: str) -> Spending:
    """Return what a request may cost at most: its own text, and the longest answer."""
    return price(rules, math.ceil(len(text.encode()) / BYTES_PER_TOKEN), rules.answer_tokens)


def refusal(rules: ModelRules, day: Spending, reflection: Spending, wanted: Spending) -> str:
    """Return which budget a request would exceed, or an empty text."""
    limits = (
        ("reflection", reflection, rules.reflection_tokens, rules.reflection_usd),
        ("day", day, rules.day_tokens, rules.day_usd),
    )
    for name, known, tokens, usd in limits:
        after = known.plus(wanted)
        if after.tokens > tokens:
            figures = f"{known.tokens:,} spent or reserved, {wanted.tokens:,} needed"
            return f"the {name}'s budget of {tokens:,} tokens has no room for the next request ({figures})"
        if after.micro_usd > usd * _MICRO:
            figures = f"${known.usd:.4f} spent or reserved, ${wanted.usd:.4f} needed"
            return f"the {name}'s budget of ${usd:g} has no room for the next request ({figures})"
    return ""


class Meter(Protocol):
    """Where requests are reserved and settled."""

    def reserve(self, wanted: Spending) -> str:
        """Reserve what a request may cost at most, or raise BudgetError; return the reservation's name."""

    def settle(self, name: str, actual: Spending) -> None:
        """Replace a reservation by what was spent."""


class SpendingBook(NamedTuple):
    """What was settled on each day, and what is reserved, by the name of its reservation.

    A reservation counts for the day on which it was made.
    """

    settled: Mapping[str, Spending]
    reserved: Mapping[str, tuple[str, Spending]]

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> SpendingBook:
        """Read what `write` wrote; nothing of a bank that has no book yet."""
        settled = {day: Spending(*row) for day, row in value.get("settled", {}).items()}
        reserved = {name: (day, Spending(*row)) for name, (day, row) in value.get("reserved", {}).items()}
        return cls(settled, reserved)

    def write(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "settled": {day: list(row) for day, row in self.settled.items()},
            "reserved": {name: [day, list(row)] for name, (day, row) in self.reserved.items()},
        }

    def of_day(self, day: str) -> Spending:
        """Return what a day has spent or reserved."""
        total = self.settled.get(day, NOTHING_SPENT)
        for made, wanted in self.reserved.values():
            total = total.plus(wanted) if made == day else total
        return total

    def reserve(self, name: str, day: str, wanted: Spending) -> SpendingBook:
        """Return the book with a reservation, and without what is older than a month."""
        since = sorted({day, *self.settled})[-_DAYS:]
        settled = {each: row for each, row in self.settled.items() if each in since}
        reserved = {each: row for each, row in self.reserved.items() if row[0] >= since[0]}
        return SpendingBook(settled, {**reserved, name: (day, wanted)})

    def settle(self, name: str, actual: Spending) -> SpendingBook:
        """Return the book in which a reservation became what was really spent."""
        if name not in self.reserved:
            return self
        day, _ = self.reserved[name]
        rest = {each: row for each, row in self.reserved.items() if each != name}
        return SpendingBook({**self.settled, day: self.settled.get(day, NOTHING_SPENT).plus(actual)}, rest)
