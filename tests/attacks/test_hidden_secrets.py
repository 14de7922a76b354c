"""Secrets behind a hyphen, an underscore or a colour of a terminal: each kind is found, and names stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist.capture.redaction import redact
from tests.attacks.secret_corpus import Fake
from tests.commands import Command
from tests.samples import agent_log

pytestmark = pytest.mark.req("N7")


def _secrets() -> dict[str, str]:
    fake = Fake("behind a hyphen")
    digits = "0123456789"
    return {
        "github": "gh" + "p_" + fake.chars(36),
        "github fine": "github" + "_pat_" + fake.chars(22) + "_" + fake.chars(59),
        "anthropic": "sk-" + "ant-api03-" + fake.chars(93) + "AA",
        "openai": "sk-" + "proj-" + fake.chars(48),
        "aws": fake.aws_key(),
        "slack": "xox" + "b-" + fake.chars(12, digits) + "-" + fake.chars(12, digits) + "-" + fake.chars(24),
        "gitlab": "gl" + "pat-" + fake.urlsafe(20),
        "npm": "np" + "m_" + fake.chars(36),
        "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + fake.chars(80),
        "stripe": "sk" + "_live_" + fake.chars(24),
        "google": "AI" + "za" + fake.chars(35),
        "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx" + fake.chars(10) + "." + fake.chars(43),
        "huggingface": "h" + "f_" + fake.chars(34),
    }


PLACES = (
    "diff --git a/x b/x\n-{}\n", "+{}\n", "sec-{}", "my_{}", "_{}_", "{}_old", "{}-old", "{}é", "-{}",
    '{{"text": "a\\n-{}"}}', "\x1b[31m-{}\x1b[0m", "\x1b[32m{}\x1b[m",
)  # fmt: skip


@pytest.mark.parametrize("kind", _secrets())
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_found_beside_a_hyphen_or_an_underscore(kind: str, place: str) -> None:
    secret = _secrets()[kind]
    after = redact(place.format(secret)).text
    assert secret not in after
    assert "[redacted:" in after


@pytest.mark.parametrize("kind", _secrets())
@pytest.mark.parametrize("code", ["\x1b[0m", "\x1b[1;31m", "\x1b[0m\x1b[32m", "\x1b[K", "\x1b[38;5;12m"])
def test_a_secret_is_found_in_which_the_colour_changes(kind: str, code: str) -> None:
    secret = _secrets()[kind]
    after = redact(f"the key: {secret[:12]}{code}{secret[12:]} {code}").text
    assert secret[12:] not in after


@pytest.mark.parametrize(
    "text",
    [
        "restore cache-pypi-" + "3f2a8b4c9d0e1f2a3b4c5d6e7f8091a2-linux",
        "def test_glc_some_function_name_that_is_quite_long_indeed(): ...",
        "my-sk-learn-pipeline-with-3-steps-and-more",
        "the object store-key-" + "0123456789abcdef" * 2,
        "in use_npm_" + "packagemanagerinterfacefactories",
        "\x1b[31mred\x1b[0m-\x1b[32mgreen\x1b[0m words\x1b[0mand more",
    ],
)
def test_a_name_with_a_prefix_inside_stays(text: str) -> None:
    assert redact(text).text == text


def test_no_removed_line_of_a_diff_keeps_its_secret(archivist: Command, tmp_path: Path) -> None:
    secrets = _secrets()
    diff = "diff --git a/token b/token\n--- a/token\n+++ b/token\n@@ -1 +1 @@\n" + "".join(
        f"-{secret}\n" for secret in secrets.values()
    )
    log = agent_log(tmp_path / "log.jsonl", [("git diff", diff, False)], session="s-1")
    assert archivist("init").code == 0
    done = json.loads(archivist("capture", "--json", str(log)).out)
    told = archivist("episodes", "atif", "s-1").out
    assert [kind for kind, secret in secrets.items() if secret in told] == [], done
