"""What the benchmark of learning calls a failure, the same failure, a cure and a hit."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench.failure_kinds import head_of, read_failure, split_steps
from bench.learning import DataSet, main, measure_set, score_session
from bench.learning_sessions import BriefLine, Cure, KindHistory, Session, find_cures

from archivist.records import Episode, Event, EventKind

KIND_OF_LINT = ("shell", "npm run lint", "found error")


def _call(
    text: str,
    output: str = "",
    exit_code: int | None = 0,
    *,
    tool: str = "Bash",
    seq: int = 0,
    target: str = "",
) -> Event:
    return Event(
        run="r",
        seq=seq,
        kind=EventKind.TOOL_CALL,
        tool=tool,
        text=text,
        target=target,
        output=output,
        exit_code=exit_code,
        is_error=exit_code != 0,
    )


def _session(*events: Event) -> Session:
    return Session(Path("0001_log.jsonl"), "claude-code", Episode(id="r"), list(events))


def _kind(command: str, output: str, exit_code: int = 1) -> tuple[str, str, str] | None:
    failure = read_failure(_call(command, output, exit_code))
    return failure.kind if failure else None


# Failures


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("ls", 0, "error: is only a name of a file"),
        ("grep -rn needle src", 1, ""),
        ("cat notes | rg needle", 1, ""),
        ("diff one two", 1, "< a\n> b"),
        ("test -f notes", 1, ""),
        ("sleep 60", 130, ""),
    ],
)
def test_an_answer_and_an_interruption_are_no_failures(command: str, exit_code: int, output: str) -> None:
    assert read_failure(_call(command, output, exit_code)) is None


@pytest.mark.parametrize(
    "output",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "Sibling tool call errored",
        "[Request interrupted by user]",
    ],
)
def test_a_rejected_call_is_no_failure(output: str) -> None:
    assert read_failure(_call("{}", output, None, tool="Edit")) is None


def test_a_searching_program_that_prints_an_error_has_failed() -> None:
    assert _kind("rg needle tests", "rg: tests: No such file or directory", exit_code=2) is not None


def test_a_marked_call_of_a_tool_is_a_failure_of_the_tool() -> None:
    failure = read_failure(_call("{}", "File has not been read yet.", None, tool="Edit"))
    assert failure is not None
    assert failure.kind == ("edit", "", "file has not been read yet")


# Kinds


@pytest.mark.parametrize(
    ("step", "head"),
    [
        ("npm run lint -- --fix", "npm run lint"),
        ("git -C /src/kiln commit -m …", "git commit"),
        ("CI=1 timeout 60 bun test src", "bun test"),
        ("/usr/bin/python3 -m pytest -q", "python -m pytest"),
        ("python3 kiln.py", "python"),
        ("./scripts/release.sh now", "release.sh"),
    ],
)
def test_the_head_of_a_step_is_the_program_with_its_subcommand(step: str, head: str) -> None:
    assert head_of(step) == head


def test_quoted_texts_here_documents_and_redirections_are_no_steps() -> None:
    command = 'cd kiln && git commit -m "$(cat <<\'EOF\'\nFire it; "now" && cool\nEOF\n)" 2>&1 | tail -3'
    assert split_steps(command) == ["cd kiln", "git commit -m …", "tail -3"]


def test_the_failing_step_is_the_one_that_prints_the_error() -> None:
    assert _kind("sed -n 1,3p notes | cat -A", "cat: illegal option -- A") == (
        "shell",
        "cat",
        "illegal option: cat",
    )


def test_without_a_name_in_the_output_the_last_step_that_works_has_failed() -> None:
    kind = _kind("cd kiln && npm run build && npm run lint | tail -5", "✖ Found 3 errors")
    assert kind == KIND_OF_LINT


def test_numbers_paths_and_quoted_parts_make_no_other_kind() -> None:
    one = _kind("pnpm check-types", "src/a.ts(12,4): error TS2345: Argument of type 'A' is not assignable")
    other = _kind("pnpm check-types", "src/b/c.ts(7,1): error TS2345: Argument of type 'B' is not assignable")
    assert one == other == ("shell", "pnpm check-types", "ts2345: error argument of type is not assignable")


def test_another_missing_file_is_another_kind() -> None:
    one = _kind("cat src/kiln.py", "cat: src/kiln.py: No such file or directory")
    other = _kind("cat src/clay.py", "cat: src/clay.py: No such file or directory")
    assert one != other


def test_a_passing_test_and_a_repeated_script_do_not_tell_the_failure() -> None:
    output = "> check --error-on-warnings\n✓ keeps the errors\n1 of 2 failed: glaze cracks"
    kind = _kind("npm test", output)
    assert kind == ("shell", "npm test", "of failed glaze crack")


def test_an_exception_tells_more_than_a_line_with_error() -> None:
    kind = _kind("python kiln.py", "error in line 3\nModuleNotFoundError: No module named 'clay'")
    assert kind == ("shell", "python", "modulenotfounderror: no module named")


# Cures


def _cure_of(*events: Event) -> Cure | None:
    return next(iter(find_cures(events).values()), None)


def test_a_cure_is_what_the_succeeding_call_gained() -> None:
    failed = _call("npm test", "cannot fire", 1)
    assert _cure_of(failed, _call("ls"), _call("npm test -- --runInBand")) == Cure(
        "npm test -- --runInBand", ("--", "--runInBand")
    )


def test_the_same_work_without_its_wrapper_is_a_cure() -> None:
    failed = _call("wrap bun run test", "error: unrecognized subcommand 'bun'", 2)
    assert _cure_of(failed, _call("bun run test 2>&1")) == Cure("bun run test", ())


def test_where_the_same_call_succeeds_the_install_in_between_is_the_cure() -> None:
    failed = _call("python kiln.py", "ModuleNotFoundError: No module named 'clay'", 1)
    cure = _cure_of(failed, _call("pip install clay==2"), _call("python kiln.py"))
    assert cure == Cure("pip install clay==2", ("pip", "install", "clay"))
    assert _cure_of(failed, _call("python kiln.py")) is None


def test_the_cure_of_a_tool_is_the_tool_that_was_used_in_between() -> None:
    failed = _call("{}", "File has not been read yet.", None, tool="Edit", target="kiln.py")
    read = _call("{}", "1", None, tool="Read", target="kiln.py")
    edited = _call("{}", "ok", 0, tool="Edit", target="kiln.py")
    assert _cure_of(failed, Event(run="r", seq=2, tool=read.tool, target=read.target), edited) == Cure(
        "read", ("read",)
    )


# Scores


def test_a_line_is_right_when_its_kind_is_met_or_its_remedy_is_used_at_once() -> None:
    line = BriefLine("use `npm run lint:fix`", frozenset({KIND_OF_LINT}), ("npm run lint:fix",))
    history = KindHistory()
    failing = _call("npm run lint", "Found 2 errors", 1)
    history.add(_session(failing))
    met = score_session(_session(failing, _call("npm run lint:fix")), [line], history)
    assert (met.hits["foreseen"], met.hits["remedy"], met.hits["precision"]) == (1, 1, 1)
    used = score_session(_session(_call("npm run lint:fix")), [line], history)
    assert (used.of["foreseen"], used.hits["precision"]) == (0, 1)
    idle = score_session(_session(_call("ls")), [line], history)
    assert (idle.hits["precision"], idle.of["precision"], idle.hits["quiet lines"]) == (0, 1, 1)


def test_a_line_of_a_kind_that_ten_sessions_did_not_meet_is_stale() -> None:
    line = BriefLine("lint", frozenset({KIND_OF_LINT}))
    history = KindHistory()
    history.add(_session(_call("npm run lint", "Found 2 errors", 1)))
    for _ in range(9):
        history.add(_session(_call("ls")))
    assert score_session(_session(), [line], history).hits["stale"] == 0
    history.add(_session(_call("ls")))
    assert score_session(_session(), [line], history).hits["stale"] == 1


def test_a_line_that_only_names_a_command_is_counted_apart() -> None:
    line = BriefLine("verified with `npm test`", frozenset(), ("npm test",))
    score = score_session(_session(_call("npm test")), [line], KindHistory())
    assert (score.hits["works"], score.of["works"], score.of["precision"]) == (1, 1, 0)


def test_the_plain_lists_are_ordered_by_sessions_and_by_time() -> None:
    history = KindHistory()
    for program in ("npm test", "npm test", "npm run lint"):
        history.add(_session(_call(program, "Found 2 errors", 1)))
    assert [line.text.partition(":")[0] for line in history.frequent()] == ["npm test", "npm run lint"]
    assert [line.text.partition(":")[0] for line in history.latest()] == ["npm run lint", "npm test"]


# Replays


def _write_log(path: Path, number: int) -> None:
    """Write a session in the form of mini-swe-agent: a missing package, its install, the call again."""
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)

    def turn(command: str, output: str, code: int, minute: int) -> list[dict[str, object]]:
        moment = (began + timedelta(minutes=minute)).timestamp()
        call = {"command": command}
        answer = f"<returncode>{code}</returncode>\n<output>\n{output}</output>"
        return [
            {
                "role": "assistant",
                "content": f"THOUGHT: go on\n\n```bash\n{command}\n```",
                "extra": {"actions": [call], "timestamp": moment},
            },
            {"role": "user", "content": answer, "extra": {"returncode": code, "timestamp": moment + 1}},
        ]

    missing = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'clay'\n"
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You solve tasks."},
        {"role": "user", "content": f"Fire kiln {number}."},
        *turn("python fire.py", missing, 1, 1),
        *turn("pip install clay", "Successfully installed clay\n", 0, 2),
        *turn("python fire.py", "fired\n", 0, 3),
    ]
    trajectory = {
        "instance_id": f"ada__kiln-{number}",
        "info": {"exit_status": "Submitted", "mini_version": "2.2.7"},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
    }
    path.write_text(json.dumps(trajectory), "utf-8")


def test_a_replayed_project_foresees_what_its_sessions_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVIST_HOME", str(tmp_path / "home"))
    folder = tmp_path / "kiln"
    folder.mkdir()
    for number in range(1, 6):
        _write_log(folder / f"{number:04d}_kiln.traj.json", number)
    (folder / "0006_other.json").write_text("[]", "utf-8")
    (folder / "LICENSE").write_text("MIT", "utf-8")
    result = measure_set(DataSet("kiln", "read"), tmp_path)
    assert (result.sessions, result.unread, len(result.scores["ours"])) == (5, 1, 4)
    assert (result.late_known, result.late) == (2, 2)
    for side in ("ours", "frequent", "recent"):
        assert result.share(side, "foreseen") == 1.0
    assert result.share("ours", "remedy") == 1.0


def test_the_test_runs_of_a_pair_are_not_learnt_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVIST_HOME", str(tmp_path / "home"))
    for name, numbers in (("train", ()), ("test", (1, 2, 3))):
        (tmp_path / name).mkdir()
        for number in numbers:
            _write_log(tmp_path / name / f"{number}.traj.json", number)
    result = measure_set(DataSet("pair", "read", "train", "test"), tmp_path)
    assert len(result.scores["ours"]) == 3
    assert all(score.hits["lines"] == 0 for scores in result.scores.values() for score in scores)


# The command


def test_without_data_the_command_says_how_to_name_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ARCHIVIST_BENCH_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["learning"])
    assert main() == 2
    assert capsys.readouterr().err == "no data: name its folder with --data or ARCHIVIST_BENCH_DATA\n"


def test_an_unread_project_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["learning", "--data", str(tmp_path), "--show", "cyspbot"])
    assert main() == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "cyspbot is to stay unread; --unread shows it all the same\n"


def test_a_pair_of_folders_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ARCHIVIST_HOME", str(tmp_path / "home"))
    for name, numbers in (("train", (1, 2)), ("test", (3, 4))):
        (tmp_path / name).mkdir()
        for number in numbers:
            _write_log(tmp_path / name / f"{number}.traj.json", number)
    folders = ["--train", str(tmp_path / "train"), "--test", str(tmp_path / "test")]
    monkeypatch.setattr("sys.argv", ["learning", *folders, "--json"])
    assert main() == 0
    (figures,) = json.loads(capsys.readouterr().out)["sets"]
    assert figures["ours"]["foreseen"] == {"share": 1.0, "of": 2}
