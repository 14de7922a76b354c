"""Secrets beside names that end in a short word, and private keys in other forms than their own."""

from __future__ import annotations

import random
import string
from base64 import b64encode

import pytest

from archivist.capture.redaction import redact

_LETTERS = string.ascii_letters + string.digits


def _draw(length: int = 28) -> str:
    return "q7R" + "".join(random.Random(length).choices(_LETTERS, k=length))  # noqa: S311 - a value for a test


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "form",
    [
        "        - name: SMTP_PASS\n          value: <v>",
        '        - name: ENCRYPTION_KEY\n          value: "<v>"',
        '{"name": "DB_PASS", "value": "<v>"}',
        '{\\"name\\": \\"MASTER_KEY\\", \\"value\\": \\"<v>\\"}',
        "ENV DB_PASS <v>",
        "set -gx OPENAI_KEY <v>",
        "MASTER_KEY             <v>",
        "MASTER_KEY:        <v>",
        "| ENCRYPTION_KEY | <v> |",
        "DB_PASS\t<v>",
        "db.pass=<v>",
        "spring.mail.smtp.pass=<v>",
        "X-Db-Pass: <v>",
        '"Type": "SecureString",\n"Value": "<v>"',
        '{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"<v>"}',
        "Private-Lines: 2\n<v>\n<v>\nPrivate-MAC: 00",
    ],
)
def test_a_value_is_redacted_beside_its_name(form: str) -> None:
    value = _draw()
    assert value not in redact(form.replace("<v>", value)).text


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", ""])
def test_a_private_key_in_base64_is_redacted(kind: str) -> None:
    body = "\n".join(_draw(60) for _ in range(6))
    text = f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"
    coded = b64encode(text.encode()).decode()
    assert coded[90:150] not in redact(f"the key is\n{coded}\n").text


@pytest.mark.parametrize(
    "text",
    [
        "CACHE_KEY 9f86d081884c7d659a2feaa0c55ad015",
        "PRIMARY_KEY (customer_id, order_id)",
        "ENCRYPTION_KEY must be set before the server starts",
        "| SORT_KEY | descending by creation time |",
        "tests_key: all_of_the_integration_suite",
        "const API_KEY = process.env.API_KEY",
        "name: DB_PASS\nvalueFrom:\n  secretKeyRef: database-credentials",
        "bypass=authentication_for_health_checks",
        b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB").decode(),
    ],
)
def test_harmless_text_beside_such_a_name_stays(text: str) -> None:
    assert redact(text).text == text
