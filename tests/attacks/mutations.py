"""Break logs in many ways, the same way for the same seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[1] / "fixtures" / "capture"
# What `json` does not write, or not from Python values: put into the bytes afterwards.
_RAW = {
    "@deep list@": b"[" * 400 + b"]" * 400,
    "@deeper list@": b"[" * 60_000 + b"]" * 60_000,
    "@deep object@": b'{"content":' * 300 + b"1" + b"}" * 300,
    "@open list@": b"[" * 3_000,
    "@huge number@": b"9" * 5_000,
    "@huge exponent@": b"1e99999",
    "@twice@": b'{"type": 1, "type": "user", "content": "a", "content": null}',
    "@bad escape@": b'"\\x41 \\ud800 \\u12"',
    "@bad bytes@": b'"\xff\xfe \xc3\x28 \xed\xa0\x80"',
    "@nul@": b'"a\x00b"',
}
_TIMES = (
    *("0000-00-00T00:00:00Z", "-0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "99999-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59-14:00", "2026-02-30", "now", "\u0662\u0660\u0662\u0666-01-01"),
    *(-1, 0, 1e-300, 253402300800, 1e18, -62135596801),
)  # fmt: skip
_PATHS = (
    *("/", "//", "~", "~root", "", ".", "..", "../" * 50, "/proc/self/fd/0", "/dev/zero", "C:\\Users\\a\\b"),
    *("/a\0b", "\0", "/\ud800", "/" + "a" * 300, "/a" * 3_000, "/srv\n/b", "file:///etc", "\x1b[31m/red"),
)
_VALUES: tuple[object, ...] = (
    *(None, True, False, -1, 0, 1.5, 2**31, 2**63, -(2**63), 2**64, 1e308, float("nan"), float("inf")),
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "\udfff\ud800",
        "\u202etxt",
        "a" * 20_000,
        "a\n" * 5_000,
        "\x1b[2J",
        "🦊" * 50,
    ),
    *(
        [],
        {},
        [None],
        [[]],
        [{}],
        {"": ""},
        {"a": {"b": {"c": []}}},
        ["a", 1, None, {"text": 5}],
        [1] * 2_000,
    ),
    *("[redacted:x]", "<!-- archivist:brief a -->", '{"a": "b', "[1, 2", "```", "%s %d {0} {", "' OR 1=1 --"),
)
_PATH_KEYS = {"cwd", "workdir", "folder", "path", "file_path", "working_dir", "repo", "root"}


class Mutator:
    """Breaks logs by chance."""

    def __init__(self, seed: str, folders: list[str]) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._folders = folders
        self._logs = {path.name: path.read_bytes() for path in sorted(SAMPLES.iterdir())}

    def make_log(self) -> tuple[str, bytes]:
        """Return a broken log and a name for its file."""
        name = self._random.choice(sorted(self._logs))
        data = self._logs[name]
        for change in self._random.choices((self._change_values, self._change_bytes), (3, 1), k=2):
            data = change(data)
            if self._random.random() < 0.6:
                break
        if self._random.random() < 0.1:
            data = gzip.compress(data)
            name += ".gz"
            if self._random.random() < 0.5:
                data = self._change_bytes(data)
        return name, data

    def make_turns(self) -> list[Any]:
        """Return the messages of a conversation, broken."""
        turns: list[Any] = [
            {"role": "user", "content": "Make the tests pass"},
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"command": "ls"}'},
            {"type": "function_call_output", "call_id": "c", "output": "Error: no such file"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Done"}],
                "usage": {"input_tokens": 3},
            },
        ]
        for _ in range(self._random.randint(1, 4)):
            self._change_value(turns)
        return turns

    def _change_values(self, data: bytes) -> bytes:
        """Change values inside the JSON of a log."""
        try:
            records, is_document = [json.loads(data)], True
        except RecursionError:
            return self._change_bytes(data)
        except ValueError:
            records, is_document = [], False
            for line in data.splitlines():
                try:
                    records.append(json.loads(line))
                except (ValueError, RecursionError):
                    return self._change_bytes(data)
        if not records:
            return data
        for _ in range(self._random.choice((1, 1, 2, 3, 8))):
            self._change_value(records)
        if is_document:
            text = json.dumps(records[0] if records else None, indent=self._random.choice((None, 1)))
        else:
            text = "\n".join(map(json.dumps, records)) + "\n"
        changed = text.encode()
        for mark, raw in _RAW.items():
            changed = changed.replace(json.dumps(mark).encode(), raw)
        return changed

    def _change_value(self, records: list[Any]) -> None:
        places = list(_places(records))
        if not places:
            return
        on_paths = [place for place in places if place[1] in _PATH_KEYS]
        holder, key = self._random.choice(on_paths if on_paths and self._random.random() < 0.25 else places)
        match self._random.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(self._random.randrange(len(holder) + 1), holder[key])
            case 1:
                holder[self._random.choice(("type", "role", "content", "\0", "cwd"))] = holder[key]
            case 2:
                holder[key] = [holder[key]]
            case 3:
                holder[key] = {"type": holder[key]}
            case 4 if on_paths:
                folder = self._random.choice(self._folders)
                holder, key = self._random.choice(on_paths)
                ending = self._random.choice(("", "\0", "/\0", "\ud800", "/../..", "/" + "b" * 5_000))
                holder[key] = self._random.choice((*_PATHS, folder + ending))
            case 5:
                holder[key] = self._random.choice(_TIMES)
            case 6:
                holder[key] = self._random.choice(list(_RAW))
            case _:
                holder[key] = self._random.choice((*_VALUES, *_PATHS))

    def _change_bytes(self, data: bytes) -> bytes:
        """Change the bytes of a log, whatever they are."""
        ways: tuple[Callable[[bytes], bytes], ...] = (
            self._flip, self._cut, self._repeat_lines, self._shuffle_lines, self._recode, self._insert,
            self._join,
        )  # fmt: skip
        return self._random.choice(ways)(data)

    def _flip(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._random.choice((1, 3, 30))):
            if changed:
                changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)

    def _cut(self, data: bytes) -> bytes:
        start, end = sorted(self._random.choices(range(len(data) + 1), k=2))
        return self._random.choice((data[:start], data[start:], data[:start] + data[end:], b""))

    def _repeat_lines(self, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(line * self._random.choice((1, 1, 2, 30)) for line in lines)

    def _shuffle_lines(self, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        self._random.shuffle(lines)
        return b"".join(lines)

    def _recode(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        choice = self._random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "bom", "crlf", "latin-1"))
        if choice == "bom":
            return b"\xef\xbb\xbf" * self._random.choice((1, 2)) + data
        return data.replace(b"\n", b"\r\n") if choice == "crlf" else text.encode(choice, "replace")

    def _insert(self, data: bytes) -> bytes:
        piece = self._random.choice(
            (b"\0" * 50, b"\xff", b"\n", b"{", b"]", b'"', b"\\", b"\n\n{}\n[]\nnull\n1\n")
        )
        at = self._random.randrange(len(data) + 1)
        return data[:at] + piece + data[at:]

    def _join(self, data: bytes) -> bytes:
        other = self._random.choice(list(self._logs.values()))
        return self._random.choice((data + other, other + data, data[: len(data) // 2] + other))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a value, as the list or object that holds it and the key."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)
