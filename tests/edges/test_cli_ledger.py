"""`archivist ledger` prints the audit log: who changed what, and when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from archivist.records import Actor
from tests.conftest import Command


@pytest.fixture
def changed(project: Path) -> None:
    """Let a person and an agent change a bank."""
    with Bank.open(project, create=True) as bank:
        bank.core.update("status", {"sprint": "Beta"})
    with Bank.open(project, actor=Actor.parse("agent:coder:qa")) as bank:
        bank.stream.log("Login tests fail", role="qa")


@pytest.mark.req("C10")
@pytest.mark.usefixtures("changed")
def test_the_ledger_lists_who_changed_what_newest_first(archivist: Command) -> None:
    ran = archivist("ledger", "--json")
    assert ran.code == 0, ran.err
    changes = json.loads(ran.out)["changes"]
    assert [each["seq"] for each in changes] == sorted((each["seq"] for each in changes), reverse=True)
    assert {"entry", "block"} <= {each["kind"] for each in changes}
    assert all(each["time"] and each["actor"] and each["what"] for each in changes)
    assert "Login tests fail" in archivist("ledger").out


@pytest.mark.req("C10")
@pytest.mark.usefixtures("changed")
def test_the_ledger_is_filtered_by_actor_kind_and_time(archivist: Command) -> None:
    def kinds(*words: str) -> list[str]:
        return [each["kind"] for each in json.loads(archivist("ledger", *words, "--json").out)["changes"]]

    assert set(kinds("--actor", "agent")) == set(kinds("--actor", "agent:coder")) == {"entry"}
    assert kinds("--actor", "agent:cod") == []
    assert set(kinds("--kind", "block")) == {"block"}
    assert kinds("--since", "2999-01-01") == []
    assert len(kinds("--max", "1")) == 1
