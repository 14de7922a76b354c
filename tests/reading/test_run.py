"""A run is read as failures with what overcame them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from archivist.reading.history import AttemptCounts, PastRun, RunHistory
from archivist.reading.remedies import RemedyKind, from_digest, to_digest
from archivist.reading.run import RunReading, read_run
from archivist.records import Episode, Event, EventKind, Usage
from archivist.reflect.miners.material import gather_material

START = datetime(2026, 3, 1, tzinfo=UTC)
MISSING = "ModuleNotFoundError: No module named 'numpy'"
NO_NUMPY = f'Traceback (most recent call last):\n  File "/srv/use.py", line 1, in <module>\n{MISSING}\n'


def reading(*calls: tuple[Any, ...], project: str = "acme/widget") -> RunReading:
    """Read a run of shell calls: command, output, exit code."""
    events = [
        Event(
            run="r",
            seq=seq,
            kind=EventKind.TOOL_CALL,
            tool="bash",
            target=call[0],
            text=call[0],
            output=call[1] if len(call) > 1 else "",
            exit_code=call[2] if len(call) > 2 else 0,
            duration_s=2.0,
        )
        for seq, call in enumerate(calls)
    ]
    episode = Episode(
        id="r",
        project=project,
        started=START,
        finished=START + timedelta(seconds=90),
        usage=Usage(cost_usd=0.5, input_tokens=10, output_tokens=5),
    )
    return read_run(episode, events, suspicion=lambda *_: "")


def test_an_install_is_the_remedy_and_looks_in_between_are_not() -> None:
    run = reading(
        ("python use.py", NO_NUMPY, 1),
        ("pip list | grep numpy", "", 1),
        ("pip install numpy --quiet",),
        ("python use.py", "done"),
    )
    (met,) = run.met
    assert met.key == "acme/widget|missing_module:python"
    assert met.cure is not None
    assert (met.cure.remedy.way, met.cure.remedy.text) == (RemedyKind.INSTALL, "pip install numpy")
    assert met.cost == 3
    assert met.is_untouched


def test_a_different_failure_of_the_same_call_shows_progress() -> None:
    run = reading(
        ("python use.py", NO_NUMPY, 1),
        ("pip install numpy && python use.py", NO_NUMPY.replace("numpy", "scipy"), 1),
    )
    assert [met.cure is not None for met in run.met] == [True, False]


def test_what_did_not_help_is_no_remedy() -> None:
    run = reading(
        ("python use.py", NO_NUMPY, 1), ("pip install -r requirements.txt",), ("python use.py", NO_NUMPY, 1)
    )
    assert all(met.cure is None for met in run.met)


def test_what_an_own_script_brings_out_of_the_project_is_the_task() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/srv/repro.py", line 4, in <module>\n    go()\n'
        '  File "/srv/widget/core.py", line 40, in go\n    x()\nValueError: too wide\n'
    )
    script = "cat > repro.py << 'EOF'\nimport widget\nwidget.go()\nEOF\npython repro.py"
    assert [met.is_of_task for met in reading((script, trace, 1)).met] == [True]


def test_the_project_counts_as_touched_once_a_script_wrote_to_it() -> None:
    writes = "cat > fix.py << 'EOF'\nopen('widget/core.py', 'w').write('x')\nEOF\npython fix.py"
    after = reading((writes,), ("python use.py", NO_NUMPY, 1))
    before = reading(("cat > new.py << 'EOF'\nx = 1\nEOF",), ("python use.py", NO_NUMPY, 1))
    assert (after.met[0].is_untouched, before.met[0].is_untouched) == (False, True)


def test_the_digest_says_what_later_runs_need() -> None:
    digest = reading(
        ("python use.py", NO_NUMPY, 1),
        ("pip install numpy",),
        ("python use.py", "done"),
        ("npm run e2e", "", 124),
    ).digest
    failures: Any = digest["failures"]
    assert failures["acme/widget|missing_module:python"] == {
        "kind": "missing_module",
        "n": 1,
        "name": "",
        "errors": ["ModuleNotFoundError"],
        "class": "ModuleNotFoundError",
        "events": ["r#0", "r#1"],
        "subjects": ["numpy"],
        "remedies": [["install", "pip install numpy", ""]],
        "shown": [["python use.py", MISSING]],
        "in_vain": [],
        "accepted": "",
        "cures": [["numpy", "pip install numpy", "install"]],
        "places": [],
        "untouched": True,
        "fleeting": False,
        "command": "python use.py",
        "line": MISSING,
    }
    attempts: Any = digest["attempts"]
    assert attempts["npm run e2e"] == {"ok": 0, "failed": 0, "timeout": 1, "seconds": 2.0}
    assert (digest["duration_s"], digest["cost_usd"], digest["tokens"]) == (90.0, 0.5, 15)


def test_the_past_counts_runs_remedies_and_providers() -> None:
    read = reading(("python use.py", NO_NUMPY, 1), ("pip install numpy",), ("python use.py", "done"))
    runs = [
        PastRun(run=name, project="acme/widget", provider=name, digest=read.digest) for name in ("a", "b")
    ]
    past = RunHistory(runs)
    key = "acme/widget|missing_module:python"
    assert [run.run for run in past.runs_meeting("acme/widget", key)] == ["a", "b"]
    (case,) = gather_material(read, past).cases
    assert (case.runs, case.subjects["numpy"]) == (3, 3)
    assert [(remedy.text, count) for remedy, count in case.remedies] == [("pip install numpy", 3)]
    assert past.attempts("acme/widget", "pip install") == {
        "a": AttemptCounts(ok=1, seconds=2.0),
        "b": AttemptCounts(ok=1, seconds=2.0),
    }
    assert past.projects_with("missing_module:python") == {"acme/widget"}
    assert not past.runs_meeting("acme/other", key)


def test_a_past_without_digests_is_empty() -> None:
    past = RunHistory([PastRun(run="a", project="p", provider="", digest={})])
    assert not past.runs_meeting("p", "p|x")


@pytest.mark.parametrize("files", [(), ("a.py",), ("a.py", "b.py")])
def test_remedies_survive_the_digest(files: tuple[str, ...]) -> None:
    from archivist.reading.remedies import Remedy

    remedy = Remedy(RemedyKind.EDIT, "change `a` to `b`", "", files)
    assert from_digest(to_digest(remedy)) == remedy


def test_a_check_that_finds_something_was_not_run_in_vain() -> None:
    failures: Any = reading(
        ("wrap npm test", "error: unrecognized subcommand 'npm'", 2),
        ("npm test", "FAIL src/cart.test.js\n\nTests: 1 failed, 8 passed, 9 total", 1),
        ("npm run clean", "Missing script: clean", 1),
    ).digest["failures"]
    met = next(each for key, each in failures.items() if "usage" in key)
    assert met["in_vain"] == ["npm run clean"]


def test_the_digest_says_what_was_done_in_vain() -> None:
    refused = "E   ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
    digest = reading(
        ("pytest -q", refused, 1),
        ("docker compose up -d redis", "no such service: redis", 1),
        ("make redis-check",),
        ("pytest -q", refused, 1),
        ("just services-up",),
        ("pytest -q", "6 passed in 2.1s"),
    ).digest
    failures: Any = digest["failures"]
    met = next(each for key, each in failures.items() if "network" in key)
    assert met["in_vain"] == ["docker compose up -d redis", "make redis-check"]
    assert met["cures"] == [["6379", "just services-up", "step"]]


def test_what_a_call_prints_when_it_succeeds_is_not_why_it_failed() -> None:
    noise, refused = "ERROR: Failed parsing extensions", "Error: connect ECONNREFUSED 127.0.0.1:5432"
    run = reading(("make test", f"{noise}\n{refused}\n", 1), ("make test", f"{noise}\nall is well\n", 0))
    assert [act.failure.line if act.failure else "" for act in run.acts] == [refused, ""]


def test_a_refused_option_is_quoted_without_the_rest_of_its_call() -> None:
    call = ("cat -A src/a.ts | sed -n '160,176p'", "cat: illegal option -- A\nusage: cat [-belnstuv]", 1)
    assert [each["command"] for each in reading(call).digest["failures"].values()] == ["cat -A"]


@pytest.mark.parametrize("flag", ["-i", "-Ei", "--in-place", "--in-place=.bak"])
def test_an_edit_by_sed_is_seen_however_it_is_asked_for(flag: str) -> None:
    (call,) = reading((f"sed {flag} s/colour/color/ src/cart.py", "", 0)).acts
    assert [(edit.file, edit.old, edit.new) for edit in call.changes] == [("src/cart.py", "colour", "color")]
    assert not call.is_look
