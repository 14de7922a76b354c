"""Commands that are not there."""

from __future__ import annotations

from archivist.reading.run import RunReading

from .scripted import Call, learnt, one, run, sh


def test_what_brings_it_is_told() -> None:
    lesson = one(
        run(
            sh("jq . a.json", "bash: line 1: jq: command not found", 127),
            sh("apt-get install -y jq", "Setting up jq"),
            sh("jq . a.json", "{}"),
        )
    )
    assert lesson.summary == "`jq` is not found until it is installed: `apt-get install -y jq`"


def test_leaving_it_out_is_told() -> None:
    lesson = one(
        run(
            sh("sudo apt-get install -y jq", "bash: sudo: command not found", 127),
            sh("apt-get install -y jq", "Setting up jq"),
        )
    )
    assert lesson.summary == "`sudo` is not installed here: leave out `sudo`"


def test_a_bare_fact_is_told_when_two_runs_met_it_and_weighs_little() -> None:
    calls = sh("tree", "bash: tree: command not found", 127), sh("ls", "a")
    assert learnt(run(*calls)) == []
    lesson = one(run(*calls), run(*calls, name="run-2"))
    assert lesson.rule == ""
    assert lesson.importance < 0.6


def test_a_name_that_nobody_types_is_none() -> None:
    assert learnt(run(sh("cd src && make", "bash: command not found: __zoxide_z", 127))) == []


def test_a_list_of_what_is_installed_brings_no_command() -> None:
    lessons = learnt(
        run(
            sh("shellcheck build.sh", "zsh: command not found: shellcheck", 127),
            sh("cargo install --list | rg '^cross '", "cross v0.2.5:"),
            sh("mise x shellcheck -- shellcheck build.sh", "checked"),
        )
    )
    assert not any("cargo install" in f"{each.summary} {each.rule} {each.remedies}" for each in lessons)


def test_what_two_runs_did_instead_is_told_to_a_run_that_did_nothing_about_it() -> None:
    missing = "zsh:1: command not found: python"

    def failing(name: str, *after: Call) -> RunReading:
        call = "gh auth status; python tools/fetch.py --help; python tools/fetch.py --json"
        return run(sh(call, f"github.com\n{missing}\n{missing}", 127), *after, name=name)

    fetched = sh("python3 tools/fetch.py --json", "{}")
    told = learnt(failing("run-1", fetched), failing("run-2", fetched), failing("run-3"))
    assert [each.summary for each in told] == ["`python` is not installed here: use `python3`"]


def test_a_launcher_that_names_the_command_twice_is_told_with_both() -> None:
    lesson = one(
        run(
            sh("hk check --all", "zsh: command not found: hk", 127),
            sh("mise x hk -- hk check --all", "all checks passed"),
        )
    )
    assert lesson.summary == "`hk` is not installed here: use `mise x hk -- hk`"


def test_what_helped_another_program_of_the_line_is_no_remedy() -> None:
    line = sh("shellcheck go.sh && shfmt -d go.sh", "zsh:1: command not found: shellcheck", 127)
    runs = [run(line, sh("mise x shfmt -- shfmt -d go.sh", "ok"), name=f"run-{at}") for at in range(2)]
    assert not any("shfmt" in remedy for each in learnt(*runs) for remedy in each.remedies)
    both = [run(line, sh("mise x shellcheck -- shellcheck go.sh", "ok"), name=f"run-{at}") for at in range(2)]
    assert any("mise x shellcheck -- shellcheck" in " ".join(each.remedies) for each in learnt(*both))
