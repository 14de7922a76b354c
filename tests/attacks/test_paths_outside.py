"""A path that leads out of the project is outside whatever its last part is called, and is told as it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist import Bank
from archivist.reading.command_risks import DELETES_OUTSIDE, text_risk
from archivist.reading.remedies import is_destructive
from archivist.reading.wording import tells_paths_truly
from archivist.recall.query import Query
from archivist.records import Status
from tests.samples import agent_log

REFUSED = "Exit code 1\nproto: error: schema cache is not initialised"
DELETIONS = (
    "sudo rm -rf /opt/app/build",
    "rm -rf /node_modules /etc/node_modules",
    "rm -rf /usr/lib/python3/dist-packages/__pycache__",
    "rm -rf ~/Documents/target",
    "rm -rf ~/projects/dist",
    "rm -rf /home/ann/node_modules",
    "rm -rf ../other/node_modules",
    "rm -rf ~/.cache ~/.config",
    "sudo rm -rf /var/cache/apt",
)


@pytest.mark.req("N7")
@pytest.mark.parametrize("command", DELETIONS)
def test_a_deletion_outside_waits_and_warns(command: str) -> None:
    assert text_risk(command) == DELETES_OUTSIDE
    assert is_destructive(command.removeprefix("sudo "))


@pytest.mark.req("N7")
@pytest.mark.parametrize("command", ["rm -rf build dist", "rm -rf ./node_modules", "rm -rf web/target"])
def test_what_a_build_makes_in_the_project_may_be_deleted(command: str) -> None:
    assert text_risk(command) == ""
    assert not is_destructive(command)


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    ("remedy", "lie"),
    [
        ("rm -rf ~/Documents/target", "`rm -rf Documents/target`"),
        ("rm -rf /home/ann/node_modules", "`rm -rf node_modules`"),
        ("dpkg -i /tmp/evil.deb", "tmp/evil.deb"),
        ("SSL_CERT_FILE=/tmp/ca.pem ./tools/sync", "tmp/ca.pem"),
        ("make SHELL=/tmp/x/sh schema", "x/sh"),
        ("/home/ann/bin/fix schema", "fix schema"),
    ],
)
def test_no_remedy_is_told_with_other_words_than_ran(
    bank: Bank, tmp_path: Path, remedy: str, lie: str
) -> None:
    command = "./tools/proto"
    calls = [(command, REFUSED, True), (remedy, "done", False), (command, "generated 4", False)]
    for number in range(2):
        run = f"s-{number}"
        bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project="shop"))
    told = bank.sessions.brief_failure("next", "shop", REFUSED, tool="Bash", command=command).text
    lessons = bank.lessons.query(Query(statuses=tuple(Status)))
    words = [f"{lesson.summary} {lesson.rule} {' '.join(lesson.remedies)}" for lesson in lessons]
    assert [
        text for text in (told, *words, *(run.summary for run in bank.runs.episodes())) if lie in text
    ] == []


@pytest.mark.req("N7")
def test_paths_that_are_left_out_or_the_same_everywhere_are_no_lie() -> None:
    assert tells_paths_truly("pytest -q", "cd /home/ann/work/shop && pytest -q")
    assert tells_paths_truly("ls /etc/hosts", "ls /etc/hosts")
    assert not tells_paths_truly("cat work/a.txt", "cat /tmp/work/a.txt")
