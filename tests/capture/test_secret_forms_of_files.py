"""Secrets in files of settings that have no telling value, keys of more vendors, and their look-alikes."""

from __future__ import annotations

import random
import string

import pytest

from archivist.capture.redaction import redact

_ALNUM, _HEX, _CAPITAL = (
    string.ascii_letters + string.digits,
    "0123456789abcdef",
    string.ascii_uppercase + "234567",
)


def _draw(letters: str, length: int, seed: int = 7) -> str:
    drawn = random.Random(seed)  # noqa: S311 no real secret
    return "".join(drawn.choice(letters) for _ in range(length))


PASSWORDS = ("acmeprod" + "99", "Summer" + "2024!", "Gr33n" + "-Tree")
PLACES = (
    "define( 'DB_USER', 'shop' );\ndefine( 'DB_PASSWORD', '{}' );",
    "db.acme.com:5432:shop:app:{}",
    "localhost:*:*:postgres:{}\n",
    "machine api.acme.com login ada password {}",
    "machine api.acme.com\n  login ada\n  password {}\n",
    'smtp.login("ada@acme.com", "{}")',
    "비밀번호는 {} 입니다",
    "hasło to {}",
)
KEYS = {
    "databricks": "dapi" + _draw(_HEX, 32),
    "discord": "MT" + _draw(_ALNUM, 24) + "." + _draw(_ALNUM, 6) + "." + _draw(_ALNUM, 38),
    "bitbucket": "ATBB" + _draw(_ALNUM, 32),
    "artifactory": "AKCp" + _draw(_ALNUM, 69),
    "1password": "ops_eyJ" + _draw(_ALNUM, 300),
    "sonar": "sqp_" + _draw(_HEX, 40),
    "google refresh": "1//0g" + _draw(_ALNUM, 60),
    "braintree": "access_token$production$" + _draw(_HEX, 16) + "$" + _draw(_HEX, 32),
    "google hmac": "GOOG1E" + _draw(_CAPITAL, 57),
    "pinecone": "pcsk_" + _draw(_ALNUM, 6) + "_" + _draw(_ALNUM, 60),
    "dropbox": "sl." + _draw(_ALNUM, 135),
}
HARMLESS = (
    "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
    "define('DB_PASSWORD', 'changeme');",
    "define('WP_DEBUG', 'true99false');",
    "src/app.py:5432:12:error:unexpected",
    "listening on 127.0.0.1:5432: ready: ok",
    "machine learning needs a login page and a password reset",
    "client.login(username, password)",
    'page.login("ada", "invalid")',
    "GOOG1 is not a ticker; GOOG is",
    "the dapi client talks to the api; dapi-server listens",
    "https://example.com/1//0/index.html",
    "MainWindowControllerFactory.create.aVeryLongFunctionNameOfThisModule",
    "ops_eyJ is the prefix of a service account",
    "dev_ops_team_members_of_the_platform_group",
    "비밀번호는 필수입니다",
    "hasło to nie wszystko",
    "import ssl.SSLContextFactoryOfTheWholeApplication",
)


@pytest.mark.req("N7")
@pytest.mark.parametrize("place", PLACES)
def test_a_chosen_password_is_found_by_its_place(place: str) -> None:
    for password in PASSWORDS:
        assert password not in redact(place.format(password)).text


@pytest.mark.req("N7")
@pytest.mark.parametrize("vendor", sorted(KEYS))
def test_a_key_is_found_by_its_form(vendor: str) -> None:
    for text in ("{}", "the output was {} ok", '"value": "{}",'):
        assert KEYS[vendor] not in redact(text.format(KEYS[vendor])).text


@pytest.mark.parametrize("text", HARMLESS)
def test_a_look_alike_stays(text: str) -> None:
    assert redact(text).text == text
