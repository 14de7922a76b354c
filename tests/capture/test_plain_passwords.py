"""A word that a person chose as a password is a secret too, where a file or a command line sets it."""

from __future__ import annotations

import pytest

from archivist.capture.redaction import redact

# Put together here, so that no file of this repository holds one.
FLOWER, HORSE = "sunflower", "horse"
WORDS = f"{FLOWER}river"
CAPITALS = WORDS.upper()
PHRASE = f"correct-{HORSE}-battery-staple"
DIGITS = f"{FLOWER[:3]}shineqa42"
SHORT = f"kdjw{9}qpz"
HEX = "0123456789abcdef" * 4

SETTINGS = {
    "environment": (f"DB_PASSWORD={PHRASE}", PHRASE),
    "capitals": (f"POSTGRES_PASSWORD={CAPITALS}", CAPITALS),
    "exported": (f"export DBPW={WORDS}", WORDS),
    "container": (f"docker run -e POSTGRES_PASSWORD={CAPITALS} postgres", CAPITALS),
    "listing": (f'"Env": ["POSTGRES_PASSWORD={WORDS}", "A=b"]', WORDS),
    "yaml": (f"db:\n  password: {WORDS}\n  user: x", WORDS),
    "ini": (f"[db]\npassword = {WORDS}\n", WORDS),
    "option": (f"tool --password={WORDS}", WORDS),
    "long option": (f"tool --db-password={WORDS} up", WORDS),
    "helm": (f"helm install x . --set auth.password={WORDS}", WORDS),
    "pairs": (f"Server=x;User Id=sa;Password={WORDS};", WORDS),
    "properties": (f"spring.datasource.password={WORDS}", WORDS),
    "token": (f"API_TOKEN={DIGITS}", DIGITS),
    "key": (f"SECRET_KEY={SHORT}", SHORT),
    "npm": (f"//registry.npmjs.org/:_authToken={WORDS}", WORDS),
    "address": (f"GET https://h/x?access_token={SHORT}&a=b failed", SHORT),
    "sentence": (f"the password is {PHRASE}", PHRASE),
    "chinese": (f"\u5bc6\u7801\u662f {PHRASE}", PHRASE),
    "error": (f"error: login failed for password: {WORDS}", WORDS),
    "json": (f'{{"password": "{PHRASE}"}}', PHRASE),
}
VENDORS = [
    f"vcp_{'aB3dE6gH' * 7}",
    f"pcsk_{'aB3dE6gH' * 8}",
    f"napi_{'a8d3e6gh' * 8}",
    f"e2b_{HEX[:40]}",
    f"CCIPAT_{'aB3dE6gHaB3dE6gHaB3dE6'}_{HEX[:40]}",
    f"CLOJARS_{HEX[:60]}",
    f"cio{'aB3dE6gH' * 4}",
    f"pat-na1-{HEX[:8]}-1234-1234-1234-{HEX[:12]}",
]
HARMLESS = [
    "password: string",
    "password: str = Field(...)",
    "    password: SecretStr",
    "  password: string;\n  token?: string;",
    "password = get_password()",
    "token = parser.next()",
    "password = user.password",
    "connect(user=name, password=connection_password)",
    "    password=conn_password,\n    host=host",
    "def login(user, password=None, token=undefined):",
    "const password = hashedPassword",
    "DB_PASSWORD=$DB_PASSWORD",
    "DB_PASSWORD=${SECRET}",
    "DB_PASSWORD={{ password }}",
    "DB_PASSWORD=<your-password>",
    "DB_PASSWORD=changeme",
    "API_TOKEN=xxxxxxxxxxxx",
    "PASSWORD=PASSWORD",
    "MAX_TOKENS=4096",
    "password: required",
    "Password: incorrect",
    "token: identifier",
    "password = generated",
    "--password=PASSWORD",
]


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_chosen_word_behind_a_plain_key_is_redacted(name: str) -> None:
    text, secret = SETTINGS[name]
    cleaned = redact(text).text
    assert secret not in cleaned
    assert "[redacted:" in cleaned


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "secret", [f"{HORSE}2Secret!", f"{HORSE}77", f"{HORSE.title()}2031", f"{HORSE}Shoe#"]
)
@pytest.mark.parametrize(
    "typed", ["deploy with password {}", "use the password {} for staging", "try it using my password {}."]
)
def test_a_word_typed_behind_the_word_for_a_password_is_redacted(typed: str, secret: str) -> None:
    cleaned = redact(typed.format(secret)).text
    assert cleaned == typed.format("[redacted:password]")


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "text",
    [
        "sign in with password authentication!",
        "continue with password reset?",
        "use password hashing 2 times",
        "use password_hash2 here",
        "try the password field!",
        "connect using password: YES",
        "the password Base64Encoder is used",
        "my password works in v2.1",
        "use password policy 2031",
        "log in with password-less2 flow",
    ],
)
def test_prose_about_a_password_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.req("N7")
@pytest.mark.parametrize("key", VENDORS)
def test_a_vendors_prefix_is_enough(key: str) -> None:
    assert key not in redact(f"loaded {key} ok").text


@pytest.mark.req("N7")
@pytest.mark.parametrize("text", HARMLESS)
def test_types_placeholders_and_code_are_left_as_they_are(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.req("N7")
@pytest.mark.parametrize("mark", ["\u201d", "\u2019", "\u00bb", "`"])
def test_a_value_ends_before_the_mark_that_closes_its_sentence(mark: str) -> None:
    cleaned = redact(f"(\u201clogin failed for password: {WORDS}{mark}): see below").text
    assert cleaned == f"(\u201clogin failed for password: [redacted:password]{mark}): see below"
