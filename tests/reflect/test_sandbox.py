"""What a client's sandbox forbids: one cause behind failures of many names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Episode, EpisodeKind, Event, EventKind
from archivist.records.run_words import APPROVALS
from archivist.records.words import OUTSIDE_ADVICE, OUTSIDE_SANDBOX
from tests.conftest import START

NO_HOST = "ssh: Could not resolve hostname git.example: Temporary failure in name resolution"
NO_NETWORK = "error connecting to api.git.example"
NO_PORT = "Error: listen EPERM: operation not permitted 127.0.0.1:4010"
NO_INDEX = "fatal: Unable to create '/srv/shop/.git/index.lock': Operation not permitted"
REPORT = "report it as not run, and use the checks that work"
FOR_BOTH = f"{OUTSIDE_ADVICE} (worked in 3 runs); where nobody can be asked, report it as not run"


def _run(
    bank: Bank,
    name: str,
    command: str,
    output: str,
    *,
    hours: int,
    provider: str = "",
    approvals: str = "",
    parent: str = "",
    kind: EpisodeKind = EpisodeKind.ORCHESTRATOR_RUN,
) -> None:
    """Take in a run whose call fails in the sandbox and works outside of it."""
    when = START + timedelta(hours=hours)
    tries: tuple[tuple[str, int, dict[str, Any]], ...] = (
        (output, 1, {}),
        ("done, 3 objects sent", 0, {OUTSIDE_SANDBOX: True}),
    )
    failed, repeated = (
        Event(
            run=name,
            seq=seq,
            kind=EventKind.TOOL_CALL,
            tool="shell",
            text=command,
            target=command,
            output=printed,
            exit_code=code,
            extra=extra,
        )
        for seq, (printed, code, extra) in enumerate(tries)
    )
    noted: dict[str, Any] = {APPROVALS: approvals} if approvals else {}
    # Without approvals nobody can be asked.
    events = (failed,) if approvals == "off" else (failed, repeated)
    events = events if output else (repeated,)
    episode = Episode(
        id=name,
        parent=parent,
        kind=kind,
        project="shop",
        provider=provider,
        task=f"Task {hours}",
        started=when,
        finished=when,
        extra=noted,
    )
    bank.capture(episode, events)
    bank.reflect(name)


@pytest.mark.req("N1")
def test_what_the_sandbox_forbids_is_one_lesson_that_names_the_calls(bank: Bank) -> None:
    _run(bank, "run-1", "git push origin main", NO_HOST, hours=0)
    _run(bank, "run-2", "gh pr create --fill", NO_NETWORK, hours=1)
    _run(bank, "run-3", "git push origin main", NO_HOST, hours=2)
    brief = bank.brief(repo="shop").text
    assert "Failed here lately" not in brief
    (told,) = [line for line in brief.splitlines() if "sandbox" in line]
    blocked = "the sandbox blocks `git push` and `gh pr create` (network)"
    assert told == f"1. {blocked}: ask to run them outside of the sandbox (seen 3x, worked in 3 runs)"
    (grouped,) = (each for each in bank.lessons.query(Query()) if blocked in each.summary)
    assert set(grouped.runs) == {"run-1", "run-2", "run-3"}


@pytest.mark.req("N1", "A12")
@pytest.mark.parametrize(("asker", "is_told"), [("codex", True), ("opencode", False), ("", True)])
def test_what_one_clients_mode_allows_is_told_to_that_client(bank: Bank, asker: str, is_told: bool) -> None:
    for hours, name in enumerate(("run-1", "run-2")):
        _run(bank, name, "git push origin main", NO_HOST, hours=hours, provider="codex")
    asked = {"tool": "shell", "command": "git push origin main", "provider": asker}
    beside = bank.sessions.brief_failure("next", "shop", NO_HOST, **asked).text
    prompt = "git push is blocked by the sandbox, it cannot resolve its hostname"
    at_prompt = bank.sessions.brief_prompt("other", "shop", prompt, provider=asker)
    at_start = bank.brief(repo="shop", provider=asker).text
    assert ("outside of the sandbox" in beside) is is_told
    assert ("outside of the sandbox" in at_start) is is_told
    assert is_told or at_prompt is None or "outside of the sandbox" not in at_prompt.text


@pytest.mark.req("N1")
def test_runs_without_approvals_are_told_to_report_what_the_sandbox_forbids(bank: Bank) -> None:
    def blocked(hours: int, approvals: str) -> None:
        _run(bank, f"run-{hours}", "git push origin main", NO_HOST, hours=hours, provider="codex",
             approvals=approvals)  # fmt: skip

    for hours in range(3):
        blocked(hours, approvals="on")
    assert OUTSIDE_ADVICE in bank.brief(repo="shop", provider="codex").text
    for hours in range(3, 6):
        blocked(hours, approvals="off")
    brief = bank.brief(repo="shop", provider="codex").text
    assert OUTSIDE_ADVICE not in brief
    assert brief.count(REPORT) == 1
    # The next session may be one that can ask, and what worked there is not kept from it.
    assert f"{REPORT}; where you can ask, run it outside of the sandbox (" in brief
    assert "where you can ask" not in bank.sessions.brief_subagent("s", "shop", provider="codex").text
    for hours in range(6, 9):
        blocked(hours, approvals="on")
    assert OUTSIDE_ADVICE in bank.brief(repo="shop", provider="codex").text


@pytest.mark.req("N1")
def test_every_door_says_the_same_of_the_sandbox_to_a_client_that_nobody_names(bank: Bank) -> None:
    for hours in range(3):
        _run(bank, f"run-{hours}", "git push origin main", NO_HOST, hours=hours, provider="codex",
             approvals="on")  # fmt: skip
    for hours in range(3, 9):
        _run(bank, f"run-{hours}", "git push origin main", NO_HOST, hours=hours, provider="codex",
             approvals="off")  # fmt: skip
    texts = [bank.brief(repo="shop", form=form).text for form in ("markdown", "yaml", "known-issues")]
    texts.append(bank.briefs.heal(NO_HOST, tool="shell", command="git push origin main", repo="shop").text)
    for text in texts:
        assert "where nobody can be asked, report it as not run" in text
        assert OUTSIDE_ADVICE in text


def _told(bank: Bank, provider: str = "codex") -> tuple[str, str, str]:
    """Return what is told of a blocked push at the start, at a prompt and beside the failure."""
    asked = {"tool": "shell", "command": "git push origin main", "provider": provider}
    prompt = "git push is blocked by the sandbox, it cannot resolve its hostname"
    at_prompt = bank.sessions.brief_prompt("other", "shop", prompt, provider=provider)
    return (
        bank.brief(repo="shop", provider=provider).text,
        at_prompt.text if at_prompt else "",
        bank.sessions.brief_failure("next", "shop", NO_HOST, **asked).text,
    )


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("parent", "kind"), [("run-0", EpisodeKind.SUBAGENT_RUN), ("", EpisodeKind.SUBAGENT_RUN)]
)
def test_reviews_of_a_session_do_not_decide_what_the_user_s_own_session_is_told(
    bank: Bank, parent: str, kind: EpisodeKind
) -> None:
    for hours in range(3):
        _run(
            bank,
            f"run-{hours}",
            "git push origin main",
            NO_HOST,
            hours=hours,
            provider="codex",
            approvals="on",
        )
    for hours in range(3, 9):
        _run(
            bank,
            f"review-{hours}",
            "git push origin main",
            NO_HOST,
            hours=hours,
            provider="codex",
            approvals="off",
            parent=parent,
            kind=kind,
        )
    for told in _told(bank):
        assert OUTSIDE_ADVICE in told
        assert "not run" not in told
        assert "9 runs" not in told
        assert "Failed here lately" not in told


@pytest.mark.req("N1")
@pytest.mark.parametrize(("modes", "advice"), [("off", REPORT), ("on", OUTSIDE_ADVICE), ("mixed", FOR_BOTH)])
def test_all_hooks_say_the_same_of_the_sandbox_and_count_only_what_worked(
    bank: Bank, modes: str, advice: str
) -> None:
    for hours in range(3):
        _run(bank, f"run-{hours}", "git push origin main", NO_HOST, hours=hours, provider="codex")
    for hours, mode in enumerate({"on": ("on",), "off": ("off",) * 3, "mixed": ("on", "off")}[modes]):
        _run(
            bank,
            f"later-{hours}",
            "make lint",
            "",
            hours=9 + hours,
            provider="codex",
            approvals=mode,
        )
    start, at_prompt, beside = _told(bank)
    for told in (start, at_prompt, beside):
        assert advice.partition(" (")[0] in told
        assert ("where you can ask, run it outside" in told) is (modes == "off")
        assert "worked in" in told
        assert ("where nobody can be asked" in told) is (modes == "mixed")
    if modes == "mixed":
        assert FOR_BOTH in beside
        assert FOR_BOTH in start


@pytest.mark.req("N1")
def test_what_one_sandbox_blocks_is_one_entry_that_names_the_kinds(bank: Bank) -> None:
    blocked = [("git push origin main", NO_HOST), ("npm run dev", NO_PORT), ("git commit -m fix", NO_INDEX)]
    for hours in range(6):
        _run(bank, f"run-{hours}", *blocked[hours % 3], hours=hours, provider="codex", approvals="on")
    (told,) = [
        line for line in bank.brief(repo="shop", provider="codex").text.splitlines() if "sandbox" in line
    ]
    assert told == (
        "1. the sandbox blocks `git commit` (git index), `git push` (network) and `npm run dev` (ports):"
        " ask to run them outside of the sandbox (seen 6x, worked in 6 runs)"
    )


@pytest.mark.req("N1")
def test_many_blocked_commands_are_cut_and_what_to_do_stays_whole(bank: Bank) -> None:
    commands = [f"npm run serve-application-number-{at}" for at in range(5)]
    calls = [
        *((each, NO_PORT) for each in commands),
        *((f"git fetch upstream{at}", NO_HOST) for at in range(3)),
    ]
    for hours, call in enumerate(calls * 2):
        _run(bank, f"run-{hours}", *call, hours=hours, provider="codex", approvals="on")
    (told,) = [
        line for line in bank.brief(repo="shop", provider="codex").text.splitlines() if "sandbox" in line
    ]
    assert "ask to run them outside of the sandbox (seen" in told
    assert told.count("other commands") == 1


@pytest.mark.req("N1")
@pytest.mark.parametrize(("asker", "is_told"), [("codex", True), ("opencode", False)])
def test_a_right_that_one_client_lacks_is_no_failure_of_another(
    bank: Bank, asker: str, is_told: bool
) -> None:
    for hours in range(3):
        _run(bank, f"run-{hours}", "npm run dev", NO_PORT, hours=hours, provider="codex", approvals="off")
    assert ("`npm run dev`" in bank.brief(repo="shop", provider=asker).text) is is_told
