"""Weigh what helped against a failure: in how many runs, and whether runs have done without it since."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

# What so many later runs did instead has taken a remedy's place.
_REPLACED_AT = 2


class Proof(NamedTuple):
    """How well a remedy is proven: the runs in which it worked, and what became of it in later ones.

    `vain` counts the runs that tried it and in which it did not work, before or after those.
    """

    runs: int
    has_failed_since: bool = False
    is_replaced: bool = False
    vain: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Return what remedies are ordered by, the best proven first."""
        return self.has_failed_since, self.is_replaced, -self.runs


def proofs(runs: Sequence[tuple[Collection[str], Collection[str]]]) -> dict[str, Proof]:
    """Return how well each remedy is proven, by what worked and what was in vain in runs, oldest first."""
    worked: dict[str, list[int]] = {}
    for index, (helped, _) in enumerate(runs):
        for text in helped:
            worked.setdefault(text, []).append(index)
    return {
        text: Proof(
            runs=len(at),
            has_failed_since=any(_is_among(text, in_vain) for _, in_vain in runs[at[-1] + 1 :]),
            is_replaced=any(sum(run > at[-1] for run in other) >= _REPLACED_AT for other in worked.values()),
            vain=sum(text not in helped and _is_among(text, in_vain) for helped, in_vain in runs),
        )
        for text, at in worked.items()
    }


def _is_among(text: str, commands: Collection[str]) -> bool:
    return text in commands or any(part in commands for part in text.split(" && "))
