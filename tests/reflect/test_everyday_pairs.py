"""Everyday failures and their remedies, in plain words: told whole where one worked, else not told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Lesson

TABLES = Path(__file__).parent.parent / "fixtures" / "everyday"
TOOL_FIELDS = {
    "$": ("Bash", ("command",)),
    "Read": ("Read", ("file_path",)),
    "Glob": ("Glob", ("pattern",)),
    "Write": ("Write", ("file_path", "content")),
    "Edit": ("Edit", ("file_path", "old_string", "new_string")),
}
_EITHER = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")
AROUND = ("git status", "On branch main\nnothing to commit, working tree clean")


@dataclass(frozen=True, slots=True)
class EverydayCase:
    """One row: the calls of a run, and what its lessons must and must not say."""

    title: str
    calls: tuple[str, ...]
    fails: tuple[str, ...] = ()
    works: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def read_cases(name: str) -> list[EverydayCase]:
    """Read the rows of a table."""
    cases = []
    for block in re.split(r"^== ", (TABLES / name).read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        wanted: dict[str, list[str]] = {"fails": [], "works": [], "never": []}
        calls: list[str] = []
        for line in body.rstrip("\n").split("\n"):
            mark, _, value = line.partition(": ")
            if mark in wanted:
                wanted[mark].append(value)
            elif line.partition(" ")[0] in TOOL_FIELDS:
                calls.append(line)
            else:
                calls[-1] += "\n" + line
        cases.append(EverydayCase(title, tuple(calls), **{key: tuple(says) for key, says in wanted.items()}))
    return cases


def write_log(path: Path, case: EverydayCase, turn: int) -> Path:
    """Write the log of a session that made these calls."""
    session = f"s-{turn}"
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "cwd": "/srv/shop", "model": "m"}]
    plain = [_EITHER.sub(lambda found: found[turn], call) for call in case.calls]
    status = f"$ {AROUND[0]}\n{AROUND[1]}"
    for number, call in enumerate([status, *plain, status]):
        head, _, output = call.partition("\n")
        mark, _, given = head.partition(" ")
        if mark == "$" and (document := re.search(r"<<'(\w+)'", given)):
            text, _, output = output.partition(f"\n{document[1]}\n")
            given = f"{given}\n{text}\n{document[1]}"
        tool, fields = TOOL_FIELDS[mark]
        values = given.split(" | ") if len(fields) > 1 else [given]
        failed = re.match(r"! (\d+)\n", output)
        if failed:
            output = output[failed.end() :]
            output = f"Exit code {failed[1]}\n{output}" if tool == "Bash" else output
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": tool,
            "input": dict(zip(fields, values, strict=True)),
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": output,
            "is_error": bool(failed),
        }
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}})
    lines.append({"type": "result", "subtype": "success", "is_error": False})
    path.write_text("".join(json.dumps({**line, "session_id": session}) + "\n" for line in lines))
    return path


def learn(bank: Bank, folder: Path, case: EverydayCase) -> list[Lesson]:
    """Let a bank learn from two runs of a case."""
    for turn in (1, 2):
        log = write_log(folder / f"{turn}.jsonl", case, turn)
        for episode in bank.runs.capture_file(log).episodes:
            bank.reflect(episode.id)
    return list(bank.lessons.query(Query()))


def told_text(lesson: Lesson) -> str:
    """Return what a reader sees of a lesson."""
    return f"{lesson.summary}\n{lesson.rule}"


def is_told_whole(lesson: Lesson, case: EverydayCase) -> bool:
    """Whether a lesson names the failure and offers a whole command that worked."""
    # In the words of a tool, a command stands in plain quotation marks.
    text = told_text(lesson).replace("'", "`")
    return all(word in text for word in case.fails) and any(f"`{command}`" in text for command in case.works)


def titled(cases: list[EverydayCase]) -> list[Any]:
    """Return the cases as parameters of a test."""
    return [pytest.param(case, id=case.title) for case in cases]


@pytest.mark.req("N1", "A12")
@pytest.mark.parametrize("case", titled(read_cases("pairs.txt")))
def test_a_remedy_that_worked_twice_is_told_whole(bank: Bank, tmp_path: Path, case: EverydayCase) -> None:
    lessons = learn(bank, tmp_path, case)
    assert any(is_told_whole(lesson, case) for lesson in lessons), [told_text(each) for each in lessons]


@pytest.mark.req("N1", "A12")
@pytest.mark.parametrize("case", titled(read_cases("negatives.txt")))
def test_what_did_not_work_is_never_told(bank: Bank, tmp_path: Path, case: EverydayCase) -> None:
    said = "\n".join(told_text(lesson) for lesson in learn(bank, tmp_path, case)).lower()
    assert [words for words in case.never if words.lower() in said] == [], said
