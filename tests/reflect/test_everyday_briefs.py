"""What a brief tells after a few sessions of a project, and what it must not tell, in plain words."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank

TABLE = Path(__file__).parent.parent / "fixtures" / "everyday" / "briefs.txt"
TOOL_FIELDS = {
    "$": ("Bash", ("command",)),
    "Edit": ("Edit", ("file_path", "old_string", "new_string")),
}
_ANY_OF = re.compile(r"\{([^{}|]*(?:\|[^{}|]*)+)\}")


@dataclass(frozen=True, slots=True)
class BriefCase:
    """The calls and messages of each session, and what the brief after them must and must not say."""

    title: str
    sessions: tuple[tuple[str, ...], ...]
    tells: tuple[str, ...]
    silent: tuple[str, ...]


def read_cases() -> list[Any]:
    """Read the rows of the table as parameters of a test."""
    cases = []
    for block in re.split(r"^== ", TABLE.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        wanted: dict[str, list[str]] = {"tells": [], "silent": []}
        sessions: list[list[str]] = []
        for part in _expand(re.split(r"^--\n", body, flags=re.MULTILINE)):
            calls: list[str] = []
            for line in part.rstrip("\n").split("\n"):
                mark, _, value = line.partition(": ")
                if mark in wanted:
                    wanted[mark] += [value] if value not in wanted[mark] else []
                elif line.partition(" ")[0] in (*TOOL_FIELDS, "U", "A"):
                    calls.append(line)
                else:
                    calls[-1] += "\n" + line
            sessions.append(calls)
        case = BriefCase(title, tuple(map(tuple, sessions)), tuple(wanted["tells"]), tuple(wanted["silent"]))
        cases.append(pytest.param(case, id=title))
    return cases


def _expand(parts: list[str]) -> list[str]:
    """Return the sessions of a case: those that are written out, or one for each of the alternatives."""
    if parts[1:]:
        return parts
    turns = max((len(found[1].split("|")) for found in _ANY_OF.finditer(parts[0])), default=2)
    pieces = _ANY_OF.split(parts[0])
    return [
        "".join(piece.split("|")[turn] if at % 2 else piece for at, piece in enumerate(pieces))
        for turn in range(turns)
    ]


def write_log(path: Path, calls: tuple[str, ...], turn: int) -> Path:
    """Write the log of a session."""
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "cwd": "/srv/shop", "model": "m"}]
    status = "$ git status\nOn branch main\nnothing to commit, working tree clean"
    for number, call in enumerate([status, *calls, status]):
        head, _, output = call.partition("\n")
        mark, _, given = head.partition(" ")
        about = {"timestamp": f"2026-03-{turn + 1:02d}T10:00:{number:02d}.000Z", "cwd": "/srv/shop"}
        if mark in ("U", "A"):
            role = "user" if mark == "U" else "assistant"
            said: Any = given if mark == "U" else [{"type": "text", "text": given}]
            lines.append({"type": role, "message": {"role": role, "content": said}, **about})
            continue
        tool, fields = TOOL_FIELDS[mark]
        values = given.split(" | ") if len(fields) > 1 else [given]
        failed = re.match(r"! (\d+)\n", output)
        if failed:
            output = output[failed.end() :]
            output = output if mark == "Edit" or failed[1] == "0" else f"Exit code {failed[1]}\n{output}"
        name = f"t{number}"
        use = {"type": "tool_use", "id": name, "name": tool, "input": dict(zip(fields, values, strict=True))}
        result = {"type": "tool_result", "tool_use_id": name, "content": output, "is_error": bool(failed)}
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}, **about})
        lines.append({"type": "user", "message": {"role": "user", "content": [result]}, **about})
    lines.append({"type": "result", "subtype": "success", "is_error": False})
    path.write_text("".join(json.dumps({**line, "session_id": f"s-{turn}"}) + "\n" for line in lines))
    return path


@pytest.mark.req("N1", "A12")
@pytest.mark.parametrize("case", read_cases())
def test_a_brief_tells_what_sessions_show(bank: Bank, tmp_path: Path, case: BriefCase) -> None:
    for turn, calls in enumerate(case.sessions):
        log = write_log(tmp_path / f"{turn}.jsonl", calls, turn)
        for episode in bank.runs.capture_file(log).episodes:
            bank.reflect(episode.id)
    told = bank.brief(repo="shop").text
    assert [words for words in case.tells if words not in told] == [], told
    assert [words for words in case.silent if words in told] == [], told
