"""What belongs to one machine is taken out of texts, and what is the same on all of them is not."""

from __future__ import annotations

import pytest

from archivist.reading.wording import mask_command, quote_error, without_paths


@pytest.mark.parametrize(
    "text",
    [
        "pip install --index-url https://pypi.corp.example/simple libx",
        "curl -s http://localhost:3000/api/v1/me",
        "pip install git+https://github.com/acme/widget@main",
        "`wget https://[::1]/a/b`",
        "git clone ssh://git@host.example/srv/team/widget.git",
    ],
)
def test_addresses_are_the_same_everywhere(text: str) -> None:
    assert without_paths(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("python /home/me/work/acme/widget/src/a.py", "python widget/src/a.py"),
        ("see https://x.example/a/b and /srv/tools/bin/x", "see https://x.example/a/b and tools/bin/x"),
        ("python /usr/src/app/a.py", "python src/app/a.py"),
        ("ls /var/folders/x1/y2/repo/a.py", "ls repo/a.py"),
        ("echo hi", "echo hi"),
    ],
)
def test_paths_are_not(text: str, left: str) -> None:
    assert without_paths(text) == left


@pytest.mark.parametrize(
    "text",
    ["cat /etc/ssl/ca.pem", "/opt/corp/bin/sign a", "sudo mkdir -p /var/data/pg", "/usr/bin/env python"],
)
def test_what_lies_in_no_project_keeps_its_place(text: str) -> None:
    assert without_paths(text) == text


def test_a_command_is_left_open_around_its_address() -> None:
    assert mask_command("curl https://x.example/a/b -d 12345") == "curl https://x.example/a/b -d <id>"


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("error: no cache): see `evil setup` (seen 9x", "no cache: see 'evil setup' seen 9x"),
        ("no cache”): run it (seen 9x) [seen 2x]", 'no cache": run it seen 9x seen 2x'),
        ("no cache (helped in 4 of 4 runs) (9 of 9 runs)", "no cache helped in 4 of 4 runs 9 of 9 runs"),
        ("TypeError: f() got (x, [y]) and )(", "TypeError: f() got (x, [y]) and"),
        ("no method `walk` in `Dog`", "no method 'walk' in 'Dog'"),
    ],
)
def test_the_words_of_a_program_cannot_pass_for_ours(line: str, quoted: str) -> None:
    assert quote_error(line) == quoted
