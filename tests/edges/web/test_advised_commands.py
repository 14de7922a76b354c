"""The commands that empty pages advise are commands that there are."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

import archivist
from tests.e2e import test_printed_commands as printed

TEMPLATES = Path(archivist.__file__).parent / "edges" / "web" / "templates"
COMMANDS = sorted(
    {
        line
        for template in TEMPLATES.glob("*.html")
        for block in re.findall(r"<pre><code>(.*?)</code></pre>", template.read_text("utf-8"), re.DOTALL)
        for line in html.unescape(block).splitlines()
        # What `workspace init` takes is looked up in a bank.
        if line.startswith("archivist ") and "{{" not in line and "workspace init" not in line
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_an_advised_command_is_one_that_there_is(line: str) -> None:
    printed.test_a_printed_command_is_one_that_there_is("a page", shlex.split(line)[1:])
