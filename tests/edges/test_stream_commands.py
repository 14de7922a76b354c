"""The commands of stream and archive, through the real entry point."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.edges.cli.main import main
from tests.archive.test_bank_markdown import BANK
from tests.banks import lay_bank
from tests.conftest import Ran

Cli = Callable[..., Ran]


@pytest.fixture
def cli(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in a project that has a bank, and return what it printed and how it ended."""
    monkeypatch.chdir(project)
    lay_bank(project)

    def run(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run


def _json(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# Stream


@pytest.mark.req("C2")
def test_a_cycle_is_begun_logged_listed_and_found(cli: Cli) -> None:
    assert cli("stream", "cycle", "--role", "qa").out == "1\n"
    logged = cli("stream", "log", "Tests of the login page fail (#84)", "--role", "qa", "--importance", "7")
    assert logged.out.endswith("  cycle 1  Tests of the login page fail (#84)\n")
    entry = _json(cli("stream", "list", "--json"))["entries"][0]
    assert (entry["cycle"], entry["role"], entry["issueRefs"], entry["archived"]) == (1, "qa", [84], False)
    assert cli("stream", "list").out.splitlines()[1].endswith("Tests of the login page fail (#84)")
    assert "Tests of the login page" in cli("stream", "search", "what's blocking #84?").out
    hit = _json(cli("stream", "search", "login", "--json"))["hits"][0]
    assert hit["id"] == entry["id"]
    assert "action: Tests of the login page" in cli("stream", "show", entry["id"]).out
    assert _json(cli("stream", "cycle", "--json"))["cycle"] == 2
    nothing = cli("stream", "search", "submarines")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "nothing found\n")


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["stream", "log", "x", "--importance", "0"], 4, "importance: 0 is not between 1 and 10"),
        (["stream", "log", "x", "--importance", "11"], 4, "importance: 11"),
        (["stream", "log", "x", "--importance", "5.5"], 2, "'5.5' is not a valid integer"),
        (["stream", "log", "x", "--importance", "nan"], 2, "'nan' is not a valid integer"),
        (["stream", "log", ""], 4, "action: missing or empty"),
        (["stream", "log", "x", "--role", "qa", "--cycle", "3"], 4, "goes backwards"),
        (["stream", "list", "--cycles", "9:3"], 4, "cycles 9 to 3"),
        (["stream", "list", "--cycles", "a:b"], 2, "are not a range"),
        (["stream", "search", "x", "--importance", "99"], 4, "importance: 99"),
        (["stream", "search", " "], 4, "query: missing or empty"),
        (["stream", "show", "nope"], 3, "no entry 'nope'"),
        (["stream", "edit", "nope"], 2, "nothing to change"),
        (["stream", "remove", "nope"], 3, "no entry 'nope'"),
        (["stream", "import", "nope.jsonl"], 4, "no such file"),
        (["stream", "log", "typo", "--role", "troll", "--cycle", "2147483647"], 4, "above the latest, 9"),
        (["stream", "log", "typo", "--cycle", "2147483648"], 2, "not in the range"),
        (["archive", "search", ""], 4, "query: missing or empty"),
        (["archive", "add", " ", "--type", "spec"], 4, "content: missing or empty"),
        (["archive", "add", "x", "--type", "poem"], 2, "'poem' is not one of"),
        (["archive", "show", "nope"], 3, "no document 'nope'"),
        (["archive", "remove", "nope"], 3, "no document 'nope'"),
        (["archive", "watch", "nope"], 4, "no such folder"),
        (["archive", "unwatch", "nope"], 3, "no folder 'nope'"),
        (["archive", "import-bank", "nope.md"], 7, "no such file"),
        (
            ["--actor", "agent:a:qa", "stream", "log", "x", "--role", "ops"],
            9,
            "may not write stream",
        ),
        (["--actor", "agent:a:qa", "archive", "remove", "nope"], 9, "may not decide archive"),
    ],
)
def test_bad_calls_end_with_a_reason_and_their_code(
    cli: Cli, words: list[str], code: int, reason: str
) -> None:
    cli("stream", "log", "Later", "--role", "qa", "--cycle", "9")
    ran = cli(*words)
    assert (ran.code, reason in ran.err) == (code, True), ran


@pytest.mark.req("C7")
def test_reflection_is_announced_and_done(cli: Cli) -> None:
    for cycle in range(1, 11):
        ran = cli("stream", "log", "Blocked by CI, see #84", "--role", "qa", "--cycle", str(cycle))
    assert "hint: reflection is due (10 cycles since the last reflection)" in ran.err
    done = cli("stream", "reflect", "--if-due")
    assert "10  Reflection: #84 stood in the way in 10 cycles, open since cycle 1" in done.out
    assert "Entries: " in done.out
    assert "looked at 10 entries of cycles 1 to 10" in done.err
    assert cli("stream", "reflect").err == "no reflection: nothing was logged since the last reflection\n"
    assert _json(cli("stream", "reflect", "--json"))["skipped"]
    logged = cli("stream", "log", "Blocked by CI #84", "--role", "qa", "--cycle", "30", "--reflect", "--json")
    assert _json(logged)["reflection"]["gathered"] == 1


@pytest.mark.req("C3")
def test_a_result_before_a_higher_score_says_why(cli: Cli) -> None:
    cli("stream", "log", "PR #112 merged, unblocks #84", "--role", "ops", "--importance", "9")
    cli("stream", "log", "#84 fails on CI again", "--role", "qa", "--importance", "2", "--cycle", "2")
    ran = cli("stream", "search", "what's blocking #84?")
    first, second = (line.split()[0] for line in ran.out.splitlines() if line[0].isdigit())
    assert float(first) < float(second)
    assert f"(before {second}: later)" in ran.out
    assert ran.out.count("(before") == 1


@pytest.mark.req("C12")
def test_entries_are_edited_removed_and_brought_back(cli: Cli) -> None:
    name = _json(cli("stream", "log", "Wrods", "--json"))["entry"]["id"]
    assert cli("stream", "edit", name, "--action", "Words").out.endswith("Words\n")
    assert cli("stream", "remove", name).code == 0
    assert cli("stream", "show", name).code == 3
    assert cli("undo", name).code == 0
    assert "action: Words" in cli("stream", "show", name).out


@pytest.mark.req("C2")
def test_the_stream_travels_as_lines(cli: Cli, project: Path) -> None:
    cli("stream", "log", "One", "--cycle", "1")
    cli("stream", "log", "Two", "--cycle", "2")
    lines = cli("stream", "export").out
    assert [json.loads(line)["action"] for line in lines.splitlines()] == ["One", "Two"]
    assert cli("stream", "export", "stream.jsonl").out == "stream.jsonl  2 lines\n"
    assert (project / "stream.jsonl").read_text() == lines
    assert cli("stream", "import", "stream.jsonl").out == "entries: 0 new, 0 changed, 2 the same\n"
    (project / "stream.jsonl").write_text(f'{lines}{{"cycle": 3}}\n')
    bad = cli("stream", "import", "stream.jsonl")
    assert (bad.code, "stream.jsonl:3: timestamp: missing" in bad.err) == (7, True)
    assert cli("stream", "import", "stream.jsonl", "--strict").code == 4


# Archive


@pytest.mark.req("C4")
def test_texts_are_kept_followed_and_found(cli: Cli, project: Path) -> None:
    (project / "docs" / "decisions").mkdir(parents=True)
    file = project / "docs" / "decisions" / "adr-1.md"
    file.write_text("# One file\n\nSQLite keeps it.\n")
    assert cli("archive", "watch", "docs").out == "texts: 1 new, 0 changed, 0 removed, 0 the same\n"
    assert _json(cli("archive", "list", "--folders", "--json"))["folders"][0]["folder"] == "docs"
    listed = cli("archive", "list").out.splitlines()
    assert listed[1].split()[0] == "decision"
    assert listed[1].endswith("docs/decisions/adr-1.md")
    assert "docs/decisions/adr-1.md#0" in cli("archive", "search", "sqlite", "--type", "decision").out
    assert cli("archive", "show", "docs/decisions/adr-1.md").out == "# One file\n\nSQLite keeps it.\n"
    file.write_text("# One file\n\nDuckDB keeps it.\n")
    assert _json(cli("archive", "refresh", "--json"))["changed"] == 1
    (project / "docs" / "bad.md").write_bytes(b"\xff")
    ran = cli("archive", "refresh")
    assert (ran.code, ran.err) == (7, "archivist: docs/bad.md: not UTF-8 text (byte 0)\n")
    assert cli("archive", "unwatch", "docs").out == "docs is no longer watched; 1 text removed\n"
    assert _json(cli("archive", "list", "--json")) == {"sources": []}


@pytest.mark.req("C4", "C12")
def test_a_text_from_stdin_is_added_dated_and_removed(cli: Cli) -> None:
    added = cli(
        "archive", "add", "-", "--type", "lesson", "--date", "2026-02-03", stdin="Ship small, see #4\n"
    )
    source = added.out.split()[0]
    assert source.startswith("lesson/ship-small-see-4-")
    piece = _json(cli("archive", "show", f"{source}#0", "--json"))["pieces"][0]
    assert (piece["issues"], piece["date"]) == ([4], "2026-02-03T00:00:00Z")
    found = _json(cli("archive", "search", "ship", "--until", "2026-02-03", "--json"))["hits"]
    assert [hit["id"] for hit in found] == [f"{source}#0"]
    assert _json(cli("archive", "search", "ship", "--until", "2026-02-02", "--json"))["hits"] == []
    assert cli("archive", "remove", source, "nope").code == 3
    assert cli("archive", "remove", source).out == "1 text removed (1 piece)\n"


@pytest.mark.req("C9")
def test_a_bank_is_taken_in_once(cli: Cli, project: Path) -> None:
    (project / "bank.md").write_text(BANK)
    refused = cli("import", "bank.md")
    assert refused.code == 4
    assert "archivist archive import-bank bank.md" in refused.err
    first = cli("archive", "import-bank", "bank.md")
    assert first.out.startswith("1 bank imported, 0 known already: 2 roles, 2 threads, 7 entries, ")
    assert _json(cli("archive", "import-bank", ".", "--json"))["unchanged"] == 1
    assert "Literature review" in cli("stream", "search", "what did research do in cycle 188?").out


def test_without_anything_the_lists_are_empty(cli: Cli) -> None:
    assert _json(cli("stream", "list", "--json")) == {"entries": []}
    assert _json(cli("archive", "list", "--folders", "--json")) == {"folders": []}
    assert cli("archive", "refresh").code == 0
    assert cli("stream", "export").out == ""


@pytest.mark.req("C4")
def test_what_refreshing_did_is_said(cli: Cli, project: Path) -> None:
    cli("stream", "log", "Something that has no vector yet")
    ran = cli("archive", "refresh")
    assert ran.out == "texts: 0 new, 0 changed, 0 removed, 0 the same\n"
    assert "1 vector made" in ran.err
    assert "hint: no folder is watched" in ran.err
    told = _json(cli("archive", "refresh", "--json"))
    assert (told["vectors"], told["folders"]) == (0, 0)
    (project / "notes").mkdir()
    (project / "notes" / "a.md").write_text("---\nimportance: 99\n---\nText.\n")
    ran = cli("archive", "watch", "notes")
    assert (ran.code, "notes/a.md: front matter: importance: 99" in ran.err) == (7, True)
    assert cli("archive", "show", "notes/a.md").out == "Text.\n"


@pytest.mark.req("C9")
def test_what_a_bank_says_beside_is_named(cli: Cli, project: Path) -> None:
    (project / "bank.md").write_text("## Current Status\n**Sprint:** Four\n\n## Notes\nA\n\n## Links\nB\n")
    ran = cli("archive", "import-bank", "bank.md")
    assert "kept as documents: 2 sections (Notes, Links)" in ran.err
