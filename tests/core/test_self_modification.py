"""Self-modification is bounded: playbook and rules change by what approvers accept, and by nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from bench.self_modification import ACTORS, BLOCKS, DEEDS, TEXTS, Draw, World, run
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

draws = st.builds(
    lambda who, block, text, number: Draw(who[0], who[1], block, text, f"p-{number:03d}"),
    st.sampled_from(ACTORS),
    st.sampled_from(BLOCKS),
    st.sampled_from(TEXTS) | st.text(max_size=40),
    st.integers(1, 8),
)


class SelfModification(RuleBasedStateMachine):
    """Any actor makes any call; beside the bank stands the account of what approvers accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name))

    @rule(deed=st.sampled_from(sorted(DEEDS)), draw=draws)
    def attempt(self, deed: str, draw: Draw) -> None:
        """Make a call."""
        self.world.attempt(deed, draw)

    @rule(draw=draws, section=st.sampled_from(BLOCKS), text=st.sampled_from(TEXTS))
    def propose_and_decide(self, draw: Draw, section: tuple[str, str], text: str) -> None:
        """Let an agent propose and somebody decide, so that decisions are not rare."""
        coder = Draw(ACTORS[3][0], False, section, text, draw.proposal)
        self.world.attempt("propose", coder)
        self.world.attempt("accept", draw)

    @invariant()
    def nothing_got_through(self) -> None:
        """Hold the bank against the account."""
        assert self.world.counts.unauthorised == 0
        assert self.world.counts.wrongly_refused == 0

    def teardown(self) -> None:
        """Check the ledger."""
        self.world.close()
        self.folder.cleanup()
        assert self.world.counts.is_whole


SelfModification.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestSelfModification = pytest.mark.req("C10", "C11")(SelfModification.TestCase)


@pytest.mark.req("C10", "C11")
def test_of_many_random_attempts_none_gets_through(tmp_path: Path) -> None:
    counts = run(Random(11), 400, tmp_path)  # noqa: S311 a lot that can be drawn again
    assert (counts.unauthorised, counts.wrongly_refused, counts.is_whole) == (0, 0, True)
    assert counts.attempts == 400
    assert counts.refused > 100
    assert counts.changes > 5
