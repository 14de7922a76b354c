"""`archivist open` as a process: it opens the browser that the user has, and ends with Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.banks import lay_bank

_WITHIN_S = 30


def _start(folder: Path, *words: str, **environment: str) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    command = [
        str(Path(sys.executable).parent / "archivist"),
        "--bank",
        str(folder),
        "open",
        "--json",
        *words,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment})
    assert process.stdout
    text = b""
    while b"}" not in text:
        line = process.stdout.readline()
        assert line, "it ended before it said where it listens"
        text += line
    return process, json.loads(text)


def test_the_users_browser_is_opened_at_the_link(tmp_path: Path) -> None:
    lay_bank(tmp_path)
    noted = tmp_path / "noted"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {noted}\n')
    browser.chmod(0o755)
    process, told = _start(tmp_path, BROWSER=str(browser))
    try:
        until = time.monotonic() + _WITHIN_S
        while not (noted.exists() and noted.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        assert noted.read_text() == told["link"]
        with httpx.Client(follow_redirects=True, headers={"Accept": "text/html"}) as client:
            assert "This memory is empty" in client.get(told["link"]).text
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_WITHIN_S)


def test_only_the_link_is_printed_on_demand(tmp_path: Path) -> None:
    lay_bank(tmp_path)
    process, told = _start(tmp_path, "--no-browser", BROWSER="/does/not/exist")
    try:
        assert httpx.get(told["link"]).status_code == 303
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_WITHIN_S)
    assert process.returncode is not None
