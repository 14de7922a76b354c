"""A secret is found whatever characters it is made of, and wherever a word near it speaks of a secret."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Callable

import pytest

from archivist.capture.redaction import redact, without_secrets
from tests.attacks.secret_forms import FORMS, HARMLESS
from tests.capture.test_redaction import ALNUM, HEX, draw

pytestmark = pytest.mark.req("N7")

MARKS = "()<>{}[],;|?&!#%^*$"
# Every form with every mark in the middle of a password, and letters only.
DELIMITED = r"""
SECRET_KEY = '<v>'
DJANGO_SECRET_KEY="<v>"
spring.datasource.password=<v>
password=<v>
  password: <v>
Server=db;User Id=sa;Password=<v>;Encrypt=true
{"token":"<v>"}
define('DB_PASSWORD', '<v>');
PGPASSWORD='<v>' psql
ALTER USER a IDENTIFIED BY '<v>';
- name: DB_PASSWORD¦  value: "<v>"
x --password '<v>' y
"""
# Forms that an attacker found; `<v>` is drawn with letters, capitals and digits.
NEAR_A_WORD = r"""
SESSION_SALT=<v>
JIRA_PAT=<v>
export BW_SESSION="<v>"
const API_KEY: &str = "<v>";
static TOKEN: &'static str = "<v>";
let(:token) { "<v>" }
#define API_KEY "<v>"
const s = process.env.JWT_SECRET || "<v>"
credential = "<v>"
'password': ['<v>']
npmAuthIdent: "<v>"
<property name="hibernate.connection.password"><v></property>
INSERT INTO users (email, password) VALUES ('a@b.example', '<v>');
CREATE USER shop IDENTIFIED BY <v>;
SecretStr('<v>')
client.login('<v>')
server.login("a@acme.example", "<v>")
new mysqli("localhost", "root", "<v>", "shop");
new PDO('mysql:host=db;dbname=shop', 'app', '<v>');
await page.getByLabel("Password").fill("<v>")
browser_type {"element": "Password input", "ref": "e12", "text": "<v>"}
jdbc:oracle:thin:app/<v>@//db.internal:1521/ORCL
poetry config http-basic.acme ci <v>
mc alias set local http://localhost:9000 minioadmin <v>
grafana-cli admin reset-admin-password <v>
java -jar jenkins-cli.jar -auth ann:<v> list-jobs
skopeo copy --dest-creds a:<v> docker://x docker://y
curl -x http://proxy:3128 -U ann:<v> https://x.example
helm registry login -u a -p <v> r.example
crane auth login r.example -u a -p <v>
oc login -u a -p <v>
cypher-shell -u neo4j -p <v> "MATCH (n) RETURN n"
az keyvault secret set --vault-name v --name db --value <v>
pulumi config set --secret dbPassword <v>
bw unlock <v>
snyk auth <v>
ssh-keygen -t ed25519 -N <v> -f k
printf '<v>\n<v>\n' | passwd ann
bundle config gems.acme.example ci:<v>
BUNDLE_GEMS__ACME__EXAMPLE=ci:<v>
127.0.0.1:6379> AUTH <v>
Unseal Key 1: <v>
**Password:** <v>
password -> <v>
creds: admin:<v>
login with ann / <v> on the staging box
Credentials: user ann, password <v>
use <v> as the password
use the password <v>
Here is the API key:¦¦<v>¦¦please add it
Password for the [elastic] user successfully reset.¦New value: <v>
kubectl get secret shop -o jsonpath={.data.password} | base64 -d¦<v>
argocd admin initial-password -n argocd¦<v>
"""


def _lines(table: str) -> list[str]:
    return [line.replace("¦", "\n") for line in table.strip().split("\n")]


def _is_stored(form: str, value: str) -> bool:
    after = redact(form.replace("<v>", value)).text
    return value in after or value[:6] in after or value[-6:] in after


@pytest.mark.parametrize("form", _lines(DELIMITED))
def test_a_value_reaches_to_where_it_is_delimited(form: str) -> None:
    marks = [mark for mark in MARKS if mark != ";" or "Password=<v>;" not in form]
    values = {mark: f"QW7bnk{mark}{draw(ALNUM, 8, form + mark)}4Zt" for mark in marks}
    assert [mark for mark, value in values.items() if _is_stored(form, value)] == []


@pytest.mark.parametrize("form", _lines(DELIMITED))
def test_random_letters_and_passphrases_are_values(form: str) -> None:
    letters = "".join(random.Random(form).choices(string.ascii_letters, k=16))  # noqa: S311
    assert not _is_stored(form, letters)
    is_argument = "define(" in form
    if (
        not is_argument
        and "key" not in form.lower()
        and "token" not in form.lower()
        and ('"' in form or "'" in form)
    ):
        assert not _is_stored(form, "maple-otter-velvet-comet")


@pytest.mark.parametrize("form", _lines(NEAR_A_WORD))
def test_a_word_nearby_says_that_a_drawn_value_is_a_secret(form: str) -> None:
    values = [f"7qX{draw(ALNUM, 13, form + str(seed))}K2v" for seed in range(8)]
    assert [value for value in values if _is_stored(form, value)] == []


def test_a_hash_or_uuid_is_the_argument_of_a_login() -> None:
    token = str(uuid.UUID(int=random.Random(5).getrandbits(128), version=4))  # noqa: S311
    for form in ("snyk auth <v>", "Authorization: Splunk <v>", "CYPRESS_RECORD_KEY=<v> npx cypress run"):
        assert not _is_stored(form, token), form


def test_a_field_beside_it_names_the_value_of_a_tool() -> None:
    value = draw(ALNUM, 14, "fields")
    typed = {"element": "Password input", "ref": "e12", "text": value}
    asked = {"fields": [{"name": "Password", "value": value}, {"name": "City", "value": "Graz"}]}
    assert value not in str(without_secrets([typed, asked]))
    assert "Graz" in str(without_secrets(asked))


def test_most_forms_of_other_tools_are_found() -> None:
    drawn: dict[str, Callable[[str], str]] = {
        "p": lambda form: f"KT{draw(string.ascii_lowercase, 5, form)}27!{draw(ALNUM, 4, form)}",
        "t": lambda form: draw(ALNUM, 40, form),
        "h": lambda form: draw(HEX, 48, form),
        "u": lambda form: str(uuid.UUID(draw(HEX, 32, form))),
        "w": lambda _: "maple-otter-velvet-comet",
    }
    forms = _lines(FORMS)
    missed = [form for form in forms if _is_stored(form[2:], drawn[form[0]](form))]
    assert len(missed) <= len(forms) * 0.1, missed


def test_what_only_speaks_of_secrets_stays() -> None:
    lines = _lines(HARMLESS)
    changed = [after for line in lines if (after := redact(line).text) != line]
    assert len(changed) <= len(lines) * 0.02, changed
