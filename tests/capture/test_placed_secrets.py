"""Secrets whose name stands in another place than the value: fields side by side, commands, files."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from archivist.capture.redaction import redact
from tests.capture.test_redaction import ALNUM, WORDY, draw

pytestmark = pytest.mark.req("N7")

PAIR = {"name": "DB_PASSWORD", "slotSetting": False, "value": ""}
FORMS: dict[str, Callable[[str], str]] = {
    "deployment as YAML": lambda x: (
        f"env:\n- name: DB_HOST\n  value: db\n- name: DB_PASSWORD\n  value: {x}\n"
    ),
    "deployment as JSON": lambda x: json.dumps({"env": [{**PAIR, "value": x}]}, indent=4),
    "escaped JSON": lambda x: json.dumps(json.dumps({"name": "STRIPE_SECRET_KEY", "value": x})),
    "value before name": lambda x: json.dumps({"value": x, "type": "secret", "key": "api_key"}),
    "XML attributes": lambda x: f'<add key="ApiSecret" value="{x}"/>',
    "fish": lambda x: f"set -gx API_TOKEN {x}",
    "csh": lambda x: f"setenv DB_PASSWORD {x}",
    "Dockerfile": lambda x: f"FROM base\nENV API_TOKEN {x}\nRUN make",
    "npm config": lambda x: f"npm config set //registry.example/:_authToken {x}",
    "gh secret": lambda x: f'gh secret set DEPLOY_KEY --body "{x}"',
    "parameter store": lambda x: f"aws ssm put-parameter --name /db/p --type SecureString --value {x}",
    "parameter store, other order": lambda x: f"aws ssm put-parameter --value {x} --type SecureString",
    "secrets manager": lambda x: f"aws secretsmanager create-secret --name db --secret-string '{x}'",
    "docker login": lambda x: f'echo "{x}" | docker login -u me --password-stdin',
    "sudo": lambda x: f"echo {x} | sudo -S ls",
    "SQL": lambda x: f"CREATE USER 'app'@'%' IDENTIFIED BY '{x}';",
    "openssl": lambda x: f"openssl rsa -in k.pem -passin pass:{x}",
    "wireless network": lambda x: f'psk="{x}"',
    "short name": lambda x: f"user: admin\npass: {x}",
    "address": lambda x: f"GET https://maps.example/x?key={x}",
    "password file": lambda x: f"db.internal:5432:shop:app:{x}",
    "curl --user": lambda x: f"curl --user bob:{x} https://api.example/v1",
    "curl -b": lambda x: f"curl -b 'sessionid={x}' https://api.example",
    "form": lambda x: f'curl --data "user=a&pass={x}" https://api.example',
    "git asks": lambda x: f"Password for 'https://bob@git.example': {x}",
    "other scheme": lambda x: f"Authorization: SSWS {x}",
    "hash": lambda x: f"root:$6${x}{x}:19000:0",
    "Telegram": lambda x: f"bot {'1234567890'}:AA{draw(WORDY, 33, x)}",
    "Discord": lambda x: f"discord bot: M{draw(ALNUM, 23, x)}.{draw(ALNUM, 6, x)}.{draw(WORDY, 38, x)}",
}


@pytest.mark.parametrize("form", FORMS)
def test_no_value_is_left_whatever_it_is(form: str) -> None:
    for seed in range(12):
        value = draw(ALNUM, 20 + seed % 5, (form, seed))
        text = FORMS[form](value)
        left = redact(text).text
        assert "[redacted:" in left, text
        assert value not in left


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}',
        "- name: DB_PASSWORD\n  value: $(DB_PASSWORD_FROM_VAULT)",
        '{"name": "token", "value": "${TOKEN}", "type": "string"}',
        '{"key": "max_tokens", "value": "4096 words"}',
        "set -x FISH_THEME solarized_dark_theme",
        "ENV NODE_ENV production",
        "echo hello | docker login",
        'gh secret set DEPLOY_KEY --body "$KEY"',
        "IDENTIFIED BY '{password}'",
        "the first pass: compile everything again",
        "https://shop.example/list?key=name-of-the-column",
        "costs $1 and $2 and $5 each",
        "src/a.c:5432:12:error:expected_a_semicolon_here",
    ],
)
def test_what_only_stands_in_such_a_place_stays(text: str) -> None:
    assert redact(text).text == text
