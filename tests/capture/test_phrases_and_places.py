"""Passwords of several words in quotes, values with escaped quotes, and places that an attacker found."""

from __future__ import annotations

import pytest

from archivist.capture.redaction import redact

PHRASES = ("Zebra 77 Lamp", "Correct Horse Battery", "pa55 w0rd-like 12")
WORD = "Tangerine707moon"
DRAWN = "Kd8sQm2ZxP70vLr4TqWn7"


@pytest.mark.req("N7")
@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize(
    "form",
    [
        "export DB_PASSWORD='<v>'", 'DB_PASSWORD="<v>" make', '{"user": "bob", "password": "<v>"}',
        'mysql --password="<v>" -u x', "password: '<v>'", 'db_password = "<v>"',
    ],
)  # fmt: skip
def test_a_quoted_password_may_have_spaces(form: str, phrase: str) -> None:
    assert phrase not in redact(form.replace("<v>", phrase)).text


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "text",
    [
        '"password": "Forgot your password?"', '"password": "At least 8 characters"',
        '"password": "Mot de passe"',
        '"password": "Confirm New Password"', 'PASSWORD="Enter your password"',
        '"password": "Passwort vergessen"',
        '"password": "Step 2 of 3"', 'password: "8 to 12 letters"', 'label_password = "The new one, 8 long"',
        "secret: db-tls-2", "password (optional): string", "Secret: see below", "| password | Type | x |",
        'echo "import os" > tests/test_token.py', "echo done > token_count.md",
        "su -c 'make test' <<< $INPUT",
    ],
)  # fmt: skip
def test_what_speaks_of_a_password_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "text",
    [r'{"password":"a\"Zebra80b"}', r"{\"password\":\"a\\\"Zebra80b\"}", r'PASSWORD="a\"Zebra80b" make'],
)
def test_an_escaped_quote_ends_no_value(text: str) -> None:
    after = redact(text).text
    assert "Zebra80b" not in after
    assert after.endswith(text.partition("Zebra80b")[2])


@pytest.mark.req("N7")
@pytest.mark.parametrize("value", [WORD, DRAWN])
@pytest.mark.parametrize(
    "form",
    [
        "Secret: <v>", "Password (for admin): <v>", "| password | <v> |", "| `db_password` | `<v>` | x |",
        "encryption_key: <v>", "X-Auth-Token: <v>", "x-api-key: <v>", "lftp -u bob,<v> h",
        'echo "<v>" > ~/.pgpass', "printf '%s' <v> >> /run/secrets/db_password", "su -c ls <<< <v>",
        "echo <v> | su -c ls",
    ],
)  # fmt: skip
def test_a_place_that_only_holds_secrets_is_known(form: str, value: str) -> None:
    assert value not in redact(form.replace("<v>", value)).text


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", ["auth_token", "authToken", "encryption_key"])
def test_a_drawn_value_beside_a_quoted_name_is_found(name: str) -> None:
    assert DRAWN not in redact(f'"{name}":"{DRAWN}"').text
