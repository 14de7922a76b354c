"""A person's own bank opens for that person and for agents named below that person, for nobody else."""

from __future__ import annotations

import pytest

from archivist.records import Actor


@pytest.mark.req("N5")
@pytest.mark.parametrize(
    ("actor", "person"),
    [
        ("human:Ada", "ada"), ("agent:ada/claude", "ada"), ("agent:ada", ""), ("orchestrator:ada", "ada"),
        ("orchestrator:ada/x", ""), ("human:ada/x", ""), ("archivist:ada", ""), ("human", ""),
    ],
)  # fmt: skip
def test_whose_an_actor_is(actor: str, person: str) -> None:
    assert Actor.parse(actor).person == person
