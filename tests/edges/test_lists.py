"""Lists on a terminal and in a pipe: what matters comes first, ids are short, and colours are for people."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import textwrap
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import NoBankError, NotABankError
from tests.commands import PROGRAM
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

_RUNS = ("3f0c8a52-77b1-4c1e-9d6e-000000000001", "3f0c8a52-99b1-4c1e-9d6e-000000000002")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def learnt(bank_cli: Command, project: Path) -> Command:
    """Return the command in a project with two runs that met and overcame one failure."""
    for run in _RUNS:
        agent_log(project / f"{run}.jsonl", MISSING_MODULE, session=run, prompt="Fix the invoice rounding")
        assert bank_cli("capture", f"{run}.jsonl", "--repo", "acme/invoices").code == 0
    assert bank_cli("reflect").code == 0
    return bank_cli


def _on_terminal(project: Path, *words: str, **environment: str) -> str:
    """Return what the command prints on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    variables = {**os.environ, "TERM": "xterm", **environment}
    for name in ("COLUMNS", "NO_COLOR"):
        if name not in environment:
            variables.pop(name, None)
    done = subprocess.Popen([PROGRAM, *words], cwd=project, env=variables, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 4096):
            printed += part
    except OSError:  # the end of a terminal whose other side is closed
        pass
    finally:
        os.close(ours)
    assert done.wait() == 0, printed.decode()
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", ["lessons list", "episodes list", "recall freezegun"])
def test_a_list_fits_80_columns_and_is_coloured_on_a_terminal(
    learnt: Command, project: Path, words: str
) -> None:
    shown = _on_terminal(project, *words.split())
    assert "\x1b[33m" in shown
    plain = _ESCAPES.sub("", shown).splitlines()
    assert plain
    assert max(map(len, plain)) <= 80
    assert _on_terminal(project, *words.split(), NO_COLOR="1").splitlines() == plain
    assert "\x1b" not in learnt(*words.split()).out


def test_a_lesson_is_listed_with_its_remedy_first_and_its_repository_apart(
    learnt: Command, project: Path
) -> None:
    heading, row = _ESCAPES.sub("", _on_terminal(project, "lessons", "list")).splitlines()[:2]
    assert heading.split() == ["ID", "Freq", "Told", "Project", "Description"]
    assert row.startswith("m-001  2     start  invoices  run `pip install freezegun` first, when ")
    piped = learnt("lessons", "list").out.splitlines()
    assert piped[0].split() == ["ID", "Freq", "Told", "Type", "Domain", "Project", "Description"]
    # Nothing is cut where a program reads.
    assert piped[1].endswith(_first(learnt))
    summary = json.loads(learnt("lessons", "show", "m-001", "--json").out)["summary"]
    assert json.loads(learnt("lessons", "list", "--json").out)["lessons"][0]["summary"] == summary


def test_what_is_the_same_in_every_row_leaves_its_columns_to_the_words(
    learnt: Command, project: Path
) -> None:
    learnt(
        "lessons",
        "add",
        "acme/invoices: rounding is half up, as the office has it",
        "--repo",
        "acme/invoices",
    )
    heading, *rows = _on_terminal(project, "lessons", "list", NO_COLOR="1").splitlines()
    assert heading == "ID     Freq  Description (all: told start, project invoices)"
    assert rows[0].startswith("m-001  2     run `pip install freezegun` first, when ")
    # What the remedy is for is not cut away.
    second = rows.index("m-002  1     acme/invoices: rounding is half up, as the office has it")
    assert " ".join(" ".join(rows[:second]).split()) == f"m-001 2 {_first(learnt)}"
    heading, *_ = _on_terminal(project, "episodes", "list", NO_COLOR="1").splitlines()
    assert re.fullmatch(r"Run +Summary \(all: status \w+, project invoices, agent [\w-]+\)", heading)
    learnt("lessons", "add", "Ask before deploys", "--repo", "web")
    shown = _on_terminal(project, "lessons", "list", "--repo", "*", NO_COLOR="1").splitlines()
    assert shown[0].split() == ["ID", "Freq", "Project", "Description"]


def _first(learnt: Command) -> str:
    rule = json.loads(learnt("lessons", "show", "m-001", "--json").out)["rule"]
    condition, action = rule.removeprefix("IF ").split(" THEN ")
    return f"{action}, when {condition}"


def test_a_lesson_shows_the_call_that_failed_and_the_one_that_worked(learnt: Command) -> None:
    shown = learnt("lessons", "show", "m-001").out
    failed, worked = shown.index("\nFailed in "), shown.index("\nWorked in ")
    assert failed < worked < shown.index("  status ")
    names = re.findall(r"^(?:Failed|Worked) in ([^\s,]+)", shown, re.MULTILINE)
    assert [name.rpartition("#")[0] in _RUNS for name in names] == [True, True]
    assert "ModuleNotFoundError" in shown[failed:worked]
    assert "  $ " in shown[worked:]
    opened = learnt("episodes", "show", names[0])
    assert opened.out.startswith(f"{names[0]}\n")
    assert "ModuleNotFoundError" in opened.out
    event = json.loads(learnt("episodes", "show", names[0], "--json").out)["event"]
    assert (event["id"], event["is_error"]) == (names[0], True)


def test_ids_may_be_shortened_as_in_git(learnt: Command, project: Path) -> None:
    rows = _on_terminal(project, "episodes", "list", NO_COLOR="1").splitlines()[1:]
    short = sorted(row.split()[0] for row in rows)
    assert short == ["3f0c8a52-7", "3f0c8a52-9"]
    assert all(run in learnt("episodes", "list").out for run in _RUNS)
    assert learnt("episodes", "show", short[0]).out.startswith(_RUNS[0])
    assert learnt("episodes", "show", f"{short[0]}#1").out.startswith(f"{_RUNS[0]}#1\n")
    for words in (
        ("episodes", "atif", short[0]),
        ("audit", "check", short[0]),
        ("reflect", "--run", short[0]),
    ):
        assert learnt(*words).code == 0
    uid = json.loads(learnt("lessons", "show", "m-001", "--json").out)["uid"]
    assert learnt("lessons", "show", uid[:-1]).out.startswith("m-001  ")
    found = learnt("recall", "freezegun", "--run", short[0], "--json")
    assert {hit["uid"].partition("#")[0] for hit in json.loads(found.out)["hits"]} == {_RUNS[0]}
    assert learnt("lessons", "history", uid[:-1]).code == 0
    assert learnt("lessons", "edit", uid[:-1], "--rule", "Do.").code == 0
    assert learnt("undo", uid[:-1]).code == 0
    assert learnt("erase", f"{short[0]}#1", "--yes").code == 0
    assert learnt("episodes", "show", f"{_RUNS[0]}#1").code == 3
    assert learnt("erase", short[0], "--yes").code == 0
    assert _RUNS[0] not in learnt("episodes", "list").out
    # What was erased before is no beginning of another.
    assert learnt("erase", _RUNS[0], "--yes").code == 0
    assert _RUNS[1] in learnt("episodes", "list").out


def test_a_short_name_is_never_the_beginning_of_another(bank_cli: Command, project: Path) -> None:
    for run in ("build-10", "build-11"):
        agent_log(project / f"{run}.jsonl", [("make", "boom", True)], session=run)
        assert bank_cli("capture", f"{run}.jsonl").code == 0
    assert bank_cli("erase", "build-1", "--yes").code == 3
    assert bank_cli("episodes", "show", "build-1").code == 3
    agent_log(project / "new.jsonl", [("make", "boom", True)], session="another")
    assert bank_cli("run", "finish", "--run", "build-1", "new.jsonl").code == 0
    assert {"build-1", "build-10", "build-11"} <= set(bank_cli("episodes", "list").out.split())


def test_an_ambiguous_beginning_says_so(learnt: Command) -> None:
    ran = learnt("episodes", "show", "3f0c8a52")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == (
        f"archivist: '3f0c8a52' is the beginning of 2 ids: {_RUNS[0]}, {_RUNS[1]}\nhint: write more of it\n"
    )
    # Fewer than four characters are a name, and nobody's.
    assert learnt("episodes", "show", "3f0").code == 3
    ran = learnt("episodes", "show", f"{_RUNS[0]}#999")
    assert (ran.code, ran.out) == (3, "")
    assert "no event" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("lessons", "show"),
        ("episodes", "show"),
        ("undo",),
        ("knowledge", "show"),
        ("--bank",),
        ("recall", "x", "--since"),
        ("recall", "x", "--max"),
        ("recall", "x", "--kind"),
    ],
)
def test_an_error_never_repeats_a_long_argument(bank_cli: Command, words: tuple[str, ...]) -> None:
    more = ("lessons", "list") if words == ("--bank",) else ()
    ran = bank_cli(*words, "x" * 50_000, *more)
    assert ran.code
    assert len(ran.err) < 1_500
    assert "Traceback" not in ran.err


def test_what_is_printed_is_in_the_order_of_its_score(bank_cli: Command, project: Path) -> None:
    with Bank.open(project) as bank:
        for text in (
            "The API listens on port 8080, the port of the API",
            "The API listens on port 9310 instead",
            "The API has a rate limit",
        ):
            bank.lessons.add(text)
    for words in ("which port does the API use", "list all the ports of the API"):
        for preset in ("relevance", "archivist", "generative"):
            hits = json.loads(bank_cli("recall", words, "--preset", preset, "--json").out)["hits"]
            scores = [hit["score"] for hit in hits]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            assert len(scores) > 1
    printed = bank_cli("recall", "which port does the API use").out
    assert printed.index("9310") < printed.index("8080")


def test_tool_calls_are_found_only_when_asked_for(learnt: Command) -> None:
    def kinds(*words: str) -> set[str]:
        hits = json.loads(learnt("recall", "ModuleNotFoundError freezegun", "--json", *words).out)["hits"]
        names = [hit["id"] for hit in hits if hit["kind"] == "event"]
        return {json.loads(learnt("episodes", "show", name, "--json").out)["event"]["kind"] for name in names}

    assert "tool_call" not in kinds()
    assert "tool_call" in kinds("--kind", "event")
    assert "tool_call" in kinds("--run", _RUNS[0])


def test_a_plain_text_is_a_question_and_the_first_example_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    example = textwrap.dedent((Bank.__doc__ or "").partition("Example::")[2])
    exec(example, {"Bank": Bank})  # noqa: S102
    printed = capsys.readouterr().out
    assert re.search(r"^0\.\d\d Use tabs in the Makefile$", printed, re.MULTILINE)
    with Bank.open(project) as bank:
        assert [hit.name for hit in bank.recall("Makefile").hits] == ["m-001"]


def test_a_misspelt_folder_does_not_become_an_empty_memory(project: Path) -> None:
    for wrong in (project / "no" / "such", project / "no.db" / "such" / "memory.db"):
        with pytest.raises(NoBankError):
            Bank.open(wrong)
    assert not list(project.rglob("no*"))
    (project / "notes.txt").write_text("no bank")
    with pytest.raises(NotABankError):
        Bank.open(project / "notes.txt")
    Bank.open(project / "no" / "such", create=True).close()
    Bank.open(project / "no" / "such").close()


def test_a_list_says_when_each_lesson_is_told_as_setup_counts_it(learnt: Command, project: Path) -> None:
    learnt("lessons", "add", "Use tabs in the mill", "--type", "pattern", "--repo", "invoices")
    learnt("lessons", "add", "Ask before a release", "--repo", "elsewhere")
    views = json.loads(learnt("lessons", "list", "--json").out)["lessons"]
    told = {view["id"]: view["told"] for view in views}
    assert told["m-001"] == "told at session start"
    assert all(view["out_of_date"] == "" for view in views)
    with Bank.open(project) as bank:
        counts = bank.moments.count(bank.brief(repo="invoices"))
    assert counts["told at session start"] == [*told.values()].count("told at session start")
    assert "Told" not in learnt("lessons", "list", "--repo", "*").out.splitlines()[0]
    assert learnt("list").out.splitlines()[0].split()[:5] == ["ID", "Freq", "Type", "Domain", "Description"]


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "words", ["lessons list", "recall x", "brief", "episodes list", "workspace plans", "workspace learnings"]
)
def test_a_question_with_thousands_of_tags_is_refused(bank_cli: Command, words: str) -> None:
    bank_cli("lessons", "add", "Prices are in cents")
    few, many = ([word for at in range(most) for word in ("--tag", f"t{at}")] for most in (50, 3000))
    assert bank_cli(*words.split(), *few).code < 4
    ran = bank_cli(*words.split(), *many)
    assert (ran.code, "3,000 tags are too many: at most 50" in ran.err) == (4, True), ran
