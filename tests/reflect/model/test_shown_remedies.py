"""What counts as shown: the failure that a claim is about, the edits that led to a success, and advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.lessons import gate
from archivist.lessons.candidate import Candidate
from archivist.lessons.support import advised_code, names_in
from archivist.recall.query import Query
from archivist.records import Lesson
from archivist.records.words import MODEL_ORIGIN
from tests.attacks.client_logs import claude_line
from tests.reflect.model.runs import NO_ACCOUNT, NO_LESSONS, reflected_run
from tests.reflect.model.test_claims import fates, read
from tests.reflect.model.test_record import Turn, prompts, spoken_run

UNHELPFUL = "advises what is not shown to have helped"
UNPROVEN = "its remedy is not shown to have worked"
TIMEOUT = (
    "  1) Probe\n       finds the branch:\n"
    "     Error: Timeout of 2000ms exceeded. For async tests, call done. (/app/out/test/probe.test.js)"
)
NO_REPOSITORY = "fatal: not a git repository (or any of the parent directories): .git"
# One call shows two failures, and one that came again shows the second alone.
TWO_FAILURES = [
    ("pnpm test", f"Exit code 1\n{TIMEOUT}\n{NO_REPOSITORY}\n2 failing", True),
    ("pnpm lint", "$ eslint src", False),
    ("pnpm test", f"Exit code 1\n{TIMEOUT}\n1 failing", True),
]


def met_twice(bank: Bank, folder: Path) -> str:
    """Let two runs meet both failures; return the second."""
    reflected_run(bank, folder, TWO_FAILURES, session="s-0")
    return reflected_run(bank, folder, TWO_FAILURES)


def failure_of(lesson: Lesson) -> str:
    """Return the key of the failure that a lesson is about, or that it notes beside another lesson."""
    noted: Any = lesson.extra["model"]
    return lesson.signature or str(noted["failure"])


def warning(summary: str, *events: int, **more: Any) -> dict[str, Any]:
    return {"kind": "warning", "summary": summary, "events": list(events), **more}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("`pnpm test` fails in `Probe` when the branch is missing: run `pnpm lint` first", {}),
        ("`pnpm test` fails in `Probe`", {"rule": "IF `pnpm test` fails THEN use `pnpm lint`"}),
        ("`pnpm test` fails in `Probe`: set `Timeout` higher", {}),
        ("`pnpm test` fails in `Probe`. Install the missing browsers", {}),
        ("`pnpm test` fails in `Probe`: edit the configuration of the suite", {}),
    ],
    ids=["a command", "in the rule", "a setting", "installed", "edited"],
)
@pytest.mark.req("A9")
def test_a_warning_may_advise_only_what_is_shown_to_have_helped(
    bank: Bank, tmp_path: Path, words: str, more: dict[str, Any]
) -> None:
    run = met_twice(bank, tmp_path)
    report, _ = read(bank, run, {"lessons": [warning(words, 0, 1, 2, **more)]}, NO_ACCOUNT)
    assert dict(report.drop_reasons) == {UNHELPFUL: 1}


def test_a_warning_that_advises_nothing_is_kept(bank: Bank, tmp_path: Path) -> None:
    run = met_twice(bank, tmp_path)
    told = warning("`pnpm test` can fail with `Timeout of 2000ms exceeded` in `Probe`", 0, 2)
    report, _ = read(bank, run, {"lessons": [told]}, NO_ACCOUNT)
    (new,) = report.created
    assert "mocha" in failure_of(new)


def test_what_a_sentence_is_about_is_no_advice() -> None:
    assert advised_code("Running two of the test binaries at once makes `cargo test` fail") == []
    assert advised_code("It times out now and then: the suite of `pnpm test` is slow") == []
    assert advised_code("It can fail with `Timeout`") == []
    assert advised_code("It fails, and then: `make up`") == ["make up"]
    assert advised_code("Run the tests of the parser with `make test`") == ["make test"]


def test_an_error_may_hold_a_name_of_two_words_in_backticks() -> None:
    assert names_in("It fails with `build of `mlua-sys v0.10` failed`, which is old")[0] == (
        "build of `mlua-sys v0.10` failed"
    )


@pytest.mark.req("A9")
def test_of_several_failures_of_a_call_the_words_of_a_claim_decide(bank: Bank, tmp_path: Path) -> None:
    run = met_twice(bank, tmp_path)
    slow = warning("`pnpm test` can time out: `Timeout of 2000ms exceeded` in `Probe`", 0)
    report, model = read(bank, run, {"lessons": [slow]}, NO_ACCOUNT)
    (new,) = report.created
    assert ("git" in failure_of(new), "mocha" in failure_of(new)) == (False, True)
    assert "Timeout" in new.detail
    (line,) = [line for line in model.history[0].prompt.splitlines() if line.startswith("#0 `pnpm test`")]
    assert "not a git repository" in line
    assert "Timeout of 2000ms" in line


def test_a_models_claims_about_different_failures_are_never_merged() -> None:
    words = "`pnpm test` fails in `Probe` because the branch is missing"
    first = Candidate(key="p|git:git:no-repository", summary=words, repo="p", origin=MODEL_ORIGIN)
    second = Candidate(
        key="p|test_failure:mocha:probe", summary=f"{words} too", repo="p", origin=MODEL_ORIGIN
    )
    assert len(gate.drop_duplicates([first, second])) == 2
    beside = Candidate(
        summary=words, repo="p", origin=MODEL_ORIGIN, notes={"model": {"failure": "p|git:git:no-repository"}}
    )
    assert len(gate.drop_duplicates([beside, second])) == 2
    assert len(gate.drop_duplicates([beside, first])) == 1


def test_a_claim_about_another_failure_stands_beside_a_kept_one(bank: Bank, tmp_path: Path) -> None:
    run = met_twice(bank, tmp_path)
    words = "`pnpm test` fails in a fresh clone with `{}`"
    told = [
        warning(words.format("Timeout of 2000ms exceeded"), 0, 2),
        warning(words.format("fatal: not a git repository"), 0),
    ]
    report, _ = read(bank, run, {"lessons": told}, NO_ACCOUNT)
    assert not any("merged" in fate for fate in fates(report))


def edit(file: str, old: str = "a", new: str = "b") -> tuple[str, str, bool]:
    return f"sed -i 's/{old}/{new}/' {file}", "", False


@pytest.mark.parametrize(
    ("edited", "shown"),
    [
        (["src/api.ts"], ["src/api.ts"]),
        (["src/api.ts", "src/test/probe.test.ts"], ["src/test/probe.test.ts"]),
        (["src/api.ts", "src/web.ts"], []),
    ],
    ids=["the only one", "named", "several others"],
)
def test_an_edit_is_shown_as_a_cure_if_it_is_named_or_the_only_one(
    bank: Bank, tmp_path: Path, edited: list[str], shown: list[str]
) -> None:
    calls = [
        ("pnpm test", f"Exit code 1\n{TIMEOUT}\n1 failing", True),
        *map(edit, edited),
        ("pnpm test", "4 passing", False),
    ]
    run = reflected_run(bank, tmp_path, calls)
    told = {
        "kind": "remedy",
        "summary": "`pnpm test` fails with `Timeout of 2000ms exceeded`: an edit of `src/api.ts` overcame it",
        "events": [0, 1, len(calls) - 1],
    }
    report, model = read(bank, run, {"lessons": [told]}, NO_ACCOUNT)
    lines = [line for line in model.history[0].prompt.splitlines() if "(after #0" in line]
    files = [word for line in lines if "edited" in line for word in line.split() if word.startswith("src/")]
    assert [file.rstrip(":,") for file in files] == shown
    assert ("several edits in between" in lines[-1]) is (not shown)
    assert (not report.drop_reasons) is ("src/api.ts" in shown)


def test_the_line_of_an_edit_that_names_the_remedy_is_shown(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("pnpm test", f"Exit code 1\n{TIMEOUT}\n1 failing", True),
        edit("src/test/probe.test.ts", "quick", "this.timeout(10000)"),
        ("pnpm test", "4 passing", False),
    ]
    prompt = prompts(bank, reflected_run(bank, tmp_path, calls), NO_LESSONS, NO_ACCOUNT)[0]
    assert "this.timeout(10000)" in prompt


def test_what_was_edited_after_the_users_next_message_cured_no_report(bank: Bank, tmp_path: Path) -> None:
    report: Turn = ("user", "The tree is broken: Uncaught ContextError: no provider of the tree")
    calls: list[Turn] = [
        report,
        edit("src/tree.ts"),
        ("user", "It works. Rename the labels, please"),
        edit("src/labels.ts"),
    ]
    run = spoken_run(bank, tmp_path, *calls)
    summary = "`Uncaught ContextError: no provider of the tree` was overcome by an edit of `src/{}.ts`"
    told = [
        {"kind": "remedy", "summary": summary.format(name), "events": [0, event]}
        for name, event in (("tree", 1), ("labels", 3))
    ]
    found, model = read(bank, run, {"lessons": told}, NO_ACCOUNT, {"wishes": []})
    assert "#3 edited src/labels.ts (after #0)" not in model.history[0].prompt
    assert [claim.reason for claim in found.claims if claim.question == "lessons"] == ["", UNPROVEN]


def test_what_a_service_returned_as_data_is_no_failure(bank: Bank, tmp_path: Path) -> None:
    data = '[{"id":1,"body":"The hook failed\\n error: cannot find module x"}, {"body": "FAILED"}]'
    run = reflected_run(bank, tmp_path, [("gh api repos/acme/billing/pulls/1/reviews", data, False)])
    assert "FAILED" not in prompts(bank, run, NO_ACCOUNT)[0].split("reviews`")[1].split(":")[0]


def test_a_long_command_that_worked_is_shown_whole_and_may_be_claimed_by_its_beginning(
    bank: Bank, tmp_path: Path
) -> None:
    body = "It is addressed by a change of the parser. " * 6
    failing = f'gh api repos/acme/billing/pulls/comments/7/replies -f body="{body}"'
    failed = (failing, "Exit code 1\ngh: Not Found (HTTP 404)", True)
    begun = "gh api repos/acme/billing/pulls/3/comments/7/replies"
    run = reflected_run(bank, tmp_path, [failed, (f'{begun} -f body="{body}"', '{"url": "x"}', False)])
    claims = [
        {
            "kind": "remedy",
            "summary": f"`gh api repos/acme/billing/pulls/comments/7/replies` fails: use `{begun}`",
            "remedy": remedy,
            "events": [0, 1],
        }
        for remedy in (begun, f"{begun} -f body=…")
    ]
    report, model = read(bank, run, {"lessons": claims}, NO_ACCOUNT)
    assert body.strip() in model.history[0].prompt
    assert not report.drop_reasons
    assert bank.lessons.query(Query())


def test_a_recovery_that_the_record_shows_may_be_told_in_words(bank: Bank, tmp_path: Path) -> None:
    ignored = "Exit code 1\nThe following paths are ignored by one of your .gitignore files:\ndist"
    calls = [
        ("git status", "On branch main", False),
        ("git add src/api.ts dist", ignored, True),
        ("git add src/api.ts", "", False),
    ]
    run = reflected_run(bank, tmp_path, calls)
    words = "`git add` fails with `The following paths are ignored` where one is ignored: leave that path out"
    told = [{"kind": "remedy", "summary": words, "events": events} for events in ([1, 2], [1])]
    report, model = read(bank, run, {"lessons": told}, NO_ACCOUNT)
    assert "(after #1)" in model.history[0].prompt
    assert [claim.reason for claim in report.claims] == ["", UNPROVEN]


_REFUSED = "test api::refuses_old ... FAILED\ntest result: FAILED. 8 passed; 1 failed; 0 filtered out"
_PASSED = "test result: ok. 3 passed; 0 failed; 6 filtered out"


@pytest.mark.parametrize(
    ("failed", "narrower"),
    [
        (("cargo test -p api", _REFUSED), "cargo test -p api store::tests"),
        (("cargo deny check && cargo test", "error[rejected]: `ring` is yanked"), "cargo test alpha beta"),
    ],
    ids=["other tests", "a line without its check"],
)
def test_a_call_that_does_not_run_what_failed_overcomes_nothing(
    bank: Bank, tmp_path: Path, failed: tuple[str, str], narrower: str
) -> None:
    command, output = failed
    again = (command, f"Exit code 101\n{output}", True)
    run = reflected_run(bank, tmp_path, [again, (narrower, _PASSED, False), again])
    words = {
        "kind": "remedy",
        "summary": f"`{command}` fails: use `{narrower}`",
        "remedy": narrower,
        "events": [0, 1],
    }
    report, model = read(bank, run, {"lessons": [words]}, NO_ACCOUNT)
    assert "(after #" not in model.history[0].prompt
    assert "tried in vain" not in model.history[0].prompt
    assert [claim.reason for claim in report.claims] == [UNPROVEN]


_UNFOUND = "<tool_use_error>String to replace not found in file.\nString: total </tool_use_error>"


def test_a_look_that_came_before_a_refused_edit_worked_may_be_told(bank: Bank, tmp_path: Path) -> None:
    file = "src/total.ts"
    change = {"file_path": file, "old_string": "total ", "new_string": "sum "}
    calls: list[tuple[str, dict[str, str], str, bool]] = [
        ("Edit", change, _UNFOUND, True),
        ("Edit", change, _UNFOUND, True),
        ("Bash", {"command": "od -c src/total.ts"}, "0000000 t o t a l 302 240", False),
        ("Edit", {**change, "old_string": "total\u00a0"}, f"The file {file} has been updated.", False),
    ]
    lines = []
    for number, (tool, given, output, failed) in enumerate(calls):
        call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
        lines += [claude_line("s-1", "assistant", [call]), claude_line("s-1", "user", [result])]
    log = tmp_path / "s-1.jsonl"
    texts = (json.dumps({**line, "uuid": f"u-{at}"}) for at, line in enumerate(lines))
    log.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    (episode,) = bank.runs.capture_file(log).episodes
    bank.reflect(episode.id)
    told = {
        "kind": "remedy",
        "summary": "An edit of `src/total.ts` is refused with `String to replace not found`: look at its "
        "bytes with `od -c src/total.ts` first",
        "remedy": "od -c src/total.ts",
    }
    claims = [{**told, "events": events} for events in ([0, 1, 2, 3], [0, 2])]
    report, model = read(bank, episode.id, {"lessons": claims}, NO_ACCOUNT)
    assert "(after #" in model.history[0].prompt
    assert [claim.reason for claim in report.claims] == ["", UNPROVEN]


def test_a_call_that_got_further_was_not_tried_in_vain(bank: Bank, tmp_path: Path) -> None:
    calls = [
        ("cd web && bun run lint", 'Exit code 1\nerror: Script not found "lint"', True),
        ("cd .. && bun run lint:fix", "Checked 9 files. Fixed 4 files.", False),
        (
            "cd .. && bun run lint",
            "Exit code 1\n$ biome check\nsrc/a.ts:3:1 lint/style\nFound 1 error.",
            True,
        ),
    ]
    prompt = prompts(bank, reflected_run(bank, tmp_path, calls), NO_LESSONS, NO_ACCOUNT)[0]
    assert "tried in vain" not in prompt


def test_one_failure_of_the_machine_is_no_chance(bank: Bank, tmp_path: Path) -> None:
    failed = "Exit code 101\nerror: failed to run custom build command for `loom-sys v0.3`\n"
    failed += "  linker `loom-ld` not found"
    run = reflected_run(bank, tmp_path, [("cargo build", failed, True)])
    told = warning("`cargo build` fails on a machine without `loom-ld`", 0)
    report, _ = read(bank, run, {"lessons": [told]}, NO_ACCOUNT)
    assert not report.drop_reasons


_LOCKED = "Exit code 2\nerror: database test.db is locked"
_API, _WEB = ("make test-api", "4 passed", False), ("make test-web", "3 passed", False)


@pytest.mark.parametrize(
    ("failed", "serial", "is_kept"),
    [
        ("make test-api & make test-web & wait", [_API, _WEB], True),
        (
            "make test-api & make test-web; wait",
            [("make test-api && make test-web", "3 passed", False)],
            True,
        ),
        ("make -j2 test-api test-web", [("make test-api; make test-web", "3 passed", False)], True),
        ("make test-api & make test-web & wait", [_WEB], False),
    ],
    ids=["two calls", "a line", "an option", "one of the two"],
)
@pytest.mark.parametrize("kind", ["remedy", "warning"])
def test_what_failed_at_once_and_worked_one_after_the_other_may_be_told_in_words(
    bank: Bank, tmp_path: Path, kind: str, failed: str, serial: list[tuple[str, str, bool]], is_kept: bool
) -> None:
    run = reflected_run(bank, tmp_path, [(failed, _LOCKED, True), *serial])
    words = "`test-api` and `test-web` at once fail with `test.db is locked`: run them one after the other"
    told = {"kind": kind, "summary": words, "events": [0, len(serial)]}
    # What cannot teach is not asked about.
    report, _ = read(bank, run, *([{"lessons": [told]}] if is_kept else []), NO_ACCOUNT)
    assert not report.drop_reasons
    assert [each.summary for each in report.created] == ([words] if is_kept else [])


def test_what_ran_at_once_is_not_told_as_the_same_call_as_what_ran_in_turn(
    bank: Bank, tmp_path: Path
) -> None:
    """It does not pass and fail with nothing changed."""
    calls = [
        ("make test-api & make test-web & wait", _LOCKED, True),
        ("make test-api; make test-web", "3 passed", False),
    ]
    reflected_run(bank, tmp_path, calls)
    assert bank.lessons.query(Query()) == []
