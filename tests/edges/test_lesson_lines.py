"""What the command line says of a run."""

from __future__ import annotations

from archivist.edges.cli.wording import episode_lines
from archivist.records import Episode, Usage


def test_a_cost_that_no_log_stated_is_not_told() -> None:
    def usage(cost: float) -> str:
        spent = Usage(input_tokens=10, output_tokens=5, cost_usd=cost)
        return next(line for line in episode_lines(Episode(id="r", usage=spent)) if "usage" in line)

    assert usage(0.0).endswith("10 tokens in, 5 out")
    assert usage(1.25).endswith("5 out, $1.25")
