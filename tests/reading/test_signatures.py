"""The same failure has one signature, whatever its instance; another failure has another."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.rules import RULES
from archivist.reading.signatures import HEAD, TAIL, clean_output, message_words, signature

TABLE = Path(__file__).with_name("signatures.txt")


def rows() -> list[tuple[str, str, str, str]]:
    """Read the table: `@@ program`, then two outputs of one failure and one of another, parted by `%%`."""
    found = []
    for block in TABLE.read_text("utf-8").split("@@ ")[1:]:
        program, _, rest = block.partition("\n")
        first, again, other = rest.split("\n%%\n")
        found.append((program, first, again, other))
    return found


ROWS = rows()


def test_the_table_is_large() -> None:
    assert len(ROWS) >= 140


def test_every_rule_compiles() -> None:
    assert all(rule.pattern.pattern for rule in RULES)


@pytest.mark.parametrize(
    ("program", "first", "again", "other"), ROWS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)]
)
def test_same_failure_agrees_and_another_differs(program: str, first: str, again: str, other: str) -> None:
    assert signature(program, first).key == signature(program, again).key
    assert signature(program, first).key != signature(program, other).key


@pytest.mark.parametrize(
    ("program", "output", "key"),
    [
        (
            "python",
            (
                'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import yaml\n'
                "ModuleNotFoundError: No module named 'yaml'"
            ),
            "python:ModuleNotFoundError:yaml",
        ),
        (
            "cargo run",
            "   Compiling x\nerror: unrecognized subcommand 'get'\n",
            "cargo run:unknown subcommand:get",
        ),
        ("make", "bash: line 1: make: command not found", "bash:command not found:make"),
        ("tool", "", "tool:failed"),
    ],
)
def test_key_reads_program_error_and_subject(program: str, output: str, key: str) -> None:
    assert signature(program, output).key == key


def test_colours_and_carriage_returns_do_not_matter() -> None:
    plain = "error[E0308]: mismatched types\n --> src/a.rs:3:5"
    coloured = "\x1b[0m\x1b[1m\x1b[38;5;9merror[E0308]\x1b[0m: mismatched types\r\n --> src/a.rs:3:5"
    assert signature("cargo build", plain) == signature("cargo build", coloured)


def test_a_missing_module_is_the_same_however_python_was_started() -> None:
    direct = signature("python -m tox", "/usr/bin/python3: No module named tox")
    imported = signature(
        "python -c",
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
        "ModuleNotFoundError: No module named 'tox'",
    )
    assert direct == imported


def test_words_leave_out_paths_numbers_times_and_addresses() -> None:
    text = "cannot open /srv/x/a.db at 0x7ffe12 after 12.5s on 2024-05-06T07:08:09Z (commit 1a2b3c4d5e)"
    assert message_words(text) == ("cannot", "open", "after", "commit")


def test_only_head_and_tail_of_a_long_output_are_kept() -> None:
    text = clean_output("a" * (HEAD * 2) + "b" * (TAIL * 2))
    assert len(text) == HEAD + TAIL + 1
    assert text[0] == "a"
    assert text[-1] == "b"


def test_keys_do_not_depend_on_the_process() -> None:
    code = (
        "import sys; from archivist.reading.signatures import signature\n"
        "print(signature('x', sys.stdin.read()).key)"
    )
    output = "ERROR: file or directory not found: a.py\nE: Unable to locate package b\nfatal: error: failed"
    keys = set()
    for seed in ("1", "2", "3"):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            input=output,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )
        keys.add(ran.stdout)
    assert len(keys) == 1


@given(st.text(), st.text())
def test_any_text_has_a_signature(program: str, output: str) -> None:
    assert signature(program, output).key == signature(program, output).key


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "\n",
        "=",
        "_",
        "'",
        " ",
        "error: ",
        "Error: x\n",
        "/a",
        "0123456789abcdef",
        "old_str ",
        "E   ",
        "1.",
        '  File "x", line 1, in y\n',
        "Traceback (most recent call last):\n",
        "FAILED a - ",
        "a.",
        "$(",
        "<<E\n",
        "command timed out",
        "thread '",
        "npm ERR! ",
        "\x1b[",
        "\x1b]",
        "é",
        "Could not find ",
        "make: *** ",
        "(",
    ],
)
def test_a_megabyte_of_anything_takes_no_time(unit: str) -> None:
    output = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    start = time.process_time()
    signature("x", output)
    assert time.process_time() - start < 1.0
