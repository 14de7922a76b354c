"""Which insights of a model its entries show: numbers, causes, persons and how issues stand."""

from __future__ import annotations

from typing import Any

import pytest

from archivist import Bank
from archivist.reflect.model.conversation_service import ModelReport
from archivist.testing import ScriptedModel

ENTRIES = (
    ("sre", "Cluster upgraded to Kubernetes 1.31"),
    ("sre", "API down for 12 minutes: certificate of the ingress expired"),
    ("security", "Certificate of the mesh expires in 20 days, blocked by #540 access to the vault"),
    ("security", "Still blocked by #540, the vault admin is on leave"),
    ("sre", "Mesh certificate expired, all service calls failed for 50 minutes"),
    ("sre", "Got vault access by break-glass, #540 closed"),
    ("sre", "Decision: alerts come before every expiry"),
)


def reflect(bank: Bank, *insights: dict[str, Any]) -> tuple[ModelReport, ScriptedModel, list[str]]:
    for cycle, (role, text) in enumerate(ENTRIES, 1):
        bank.stream.log(text, cycle=cycle, role=role, importance=7)
    model = ScriptedModel([{"insights": [{"kind": "pattern", **insight} for insight in insights]}])
    bank.model.use(model)
    done = bank.stream.reflect(with_model=True)
    assert done.model is not None
    return done.model, model, [entry.action for entry in done.entries]


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("content", "entries", "reason"),
    [
        ("The two outages took 62 minutes together.", [2, 5], ""),
        ("The two outages took 97 minutes together.", [2, 5], "names something that its events do not show"),
        ("The vault admin was dismissed.", [3, 4], "names something that its events do not show"),
        ("#540 was blocked because the vault admin was on leave.", [3, 4], ""),
        ("Both certificate outages came from the upgrade to Kubernetes 1.31.", [1, 2, 5],
         "gives a cause that its events do not show"),
        ("#540 still blocks security.", [3, 4, 6], "its events show the opposite"),
        ("#540 is open.", [3, 4], "its events show the opposite"),
        ("#540 is closed now, after two cycles.", [3, 4, 6], ""),
    ],
)  # fmt: skip
def test_an_insight_must_agree_with_its_entries(
    bank: Bank, content: str, entries: list[int], reason: str
) -> None:
    report, _, written = reflect(bank, {"title": "Of certificates", "content": content, "entries": entries})
    (claim,) = report.claims
    assert claim.reason == reason
    assert ("Reflection: Of certificates" in written) is (reason == "")


@pytest.mark.req("C7")
def test_a_model_is_shown_the_order_of_time_and_what_was_counted(bank: Bank) -> None:
    _, model, _ = reflect(bank)
    request = model.history[0]
    assert "coding agent" not in request.instructions
    places = [request.prompt.index(f"e{number} cycle {number}, ") for number in range(1, len(ENTRIES) + 1)]
    assert places == sorted(places)
    assert "Found by counting:\n#540 stood in the way" in request.prompt


@pytest.mark.req("C7")
def test_a_model_does_not_displace_what_was_counted_and_says_what_found_no_room(bank: Bank) -> None:
    content = {"content": "The ingress and the mesh had a certificate that expired.", "entries": [2, 5]}
    report, _, written = reflect(bank, *({"title": f"Of certificates {word}", **content} for word in "abcde"))
    assert sum("Of certificates" in action for action in written) == 4
    assert any("#540 stood in the way" in action for action in written)
    reasons = [claim.reason for claim in report.claims]
    assert reasons == [*[""] * 4, "the reflection has no room for it"]
