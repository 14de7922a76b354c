"""Secrets in commands, settings, output and sentences as tools and people really write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archivist.capture.redaction import redact
from tests.capture.test_redaction import ALNUM, BASE64, HEX, WORDY, draw
from tests.commands import Command
from tests.samples import agent_log

pytestmark = pytest.mark.req("N7")

# `{}` is a password of eleven characters.
PASSWORDS = r"""
az login --service-principal -u app -p {} --tenant t
twine upload -u bob -p {} dist/*
cqlsh h -u cassandra -p {}
sqlcmd -S h -U sa -P '{}' -Q 'select 1'
bcp t out f -S h -U sa -P {}
mosquitto_pub -h h -u bob -P {} -t t -m m
ipmitool -I lanplus -U ADMIN -P {} power status
keytool -list -keystore k.jks -storepass {} -v
keytool -genkey -keypass {}
htpasswd -b .htpasswd bob {}
htpasswd -nb bob {}
http -a bob:{} GET x.example
http --json -a bob:{} GET x.example
smbclient //srv/share -U 'bob%{}'
sqlplus scott/{}@//db:1521/x
openssl enc -aes-256-cbc -k {} -in a
snmpwalk -v2c -c {} 10.0.0.1
dotnet user-secrets set "Db:Password" "{}"
setx DB_PASSWORD "{}"
net user bob {} /add
net use Z: \\srv\s /user:bob {}
rabbitmqctl add_user bob {}
nmcli dev wifi connect HomeNet password {}
mvn deploy -Dpassword={}
echo '{}' | passwd --stdin bob
echo 'root:{}' | chpasswd
echo "root:{}" | sudo chpasswd
printf '%s' '{}' | docker login -u me --password-stdin
printf "{}\n" | sudo -S ls
echo {} | kinit bob
echo -n {} | cryptsetup open /dev/sdb x
sudo -S <<< '{}' systemctl restart x
chpasswd <<< "root:{}"
SSHPASS={} sshpass -e ssh x
DB_PW={} node a.js
PW={} ./x
PASS={} ./x
export SMTP_PASS={}
PGPASSWORD={} psql
pass = {}
{{"SmtpPass": "{}"}}
smtpPass: "{}"
const c = {{ user: 'u', pass: '{}' }}
pass:'{}',
requirepass {}
masterauth {}
stats auth admin:{}
$p = ConvertTo-SecureString '{}' -AsPlainText -Force
ConvertTo-SecureString -String "{}" -AsPlainText
[Note] A temporary password is generated for root@localhost: {}
The generated password for the elastic built-in superuser is : {}
PASSWORD elastic = {}
Password for bob: {}
Password for user 'bob': {}
Admin password reset to: {}
The password was changed to {}
"password":¦    "{}"
Das Passwort lautet {}, bitte nicht weitergeben.
пароль {}
пароль: {}
la contraseña es {}
le mot de passe est {}
le mot de passe : {}
la password è {}
a senha é {}
密码是{}
パスワードは「{}」です
postgres://u:Ab/{}/9@db.example/app
"""
# `{}` is a key of thirty-two characters.
KEYS = """
OPENAI_KEY={} ./migrate
export STRIPE_KEY={}
"SENDGRID_KEY": "{}",
sendgrid_key: {}
openAiKey: "{}"
x-acme-key: {}
os.environ["OPENAI_KEY"] = "{}"
heroku config:set STRIPE_KEY={} -a app
fly secrets set SESSION_KEY={}
PresharedKey = {}
aws configure set aws_secret_access_key {}
cargo login {}
ngrok config add-authtoken {}
mvn sonar:sonar -Dsonar.login={}
echo -n '{}' | gh secret set DEPLOY_TOKEN
echo {} | npx wrangler secret put API_KEY
echo "{}" | vercel env add SECRET production
gh secret set DEPLOY <<< "{}"
gh auth login --with-token <<< {}
Please use the following password to proceed:¦¦{}¦¦This may also be found at: /var/x
"""


def _lines(forms: str) -> list[str]:
    return [line.replace("¦", "\n") for line in forms.strip().splitlines()]


def _password(seed: object) -> str:
    return "Kq" + draw(ALNUM, 8, seed) + "7"


def _key(seed: object) -> str:
    return draw(ALNUM, 30, seed) + "4k"


@pytest.mark.parametrize("form", _lines(PASSWORDS))
def test_no_password_is_left(form: str) -> None:
    for seed in range(8):
        value = _password((form, seed))
        for text in (form.format(value), f"$ cat notes\n{form.format(value)}\nerror: failed"):
            assert value not in redact(text).text, text


@pytest.mark.parametrize("form", _lines(KEYS))
def test_no_key_is_left(form: str) -> None:
    for seed in range(8):
        value = _key((form, seed))
        text = form.format(value)
        assert value not in redact(text).text, text


VENDORS: dict[str, Callable[[object], str]] = {
    "Atlassian": lambda seed: "ATA" + "TT3xFfGF0" + draw(WORDY, 180, seed),
    "Resend": lambda seed: "r" + "e_" + draw(ALNUM, 8, seed) + "_" + draw(ALNUM, 24, seed),
    "Airtable": lambda seed: "pa" + "t" + draw(ALNUM, 14, seed) + "." + draw(HEX, 64, seed),
    "Doppler": lambda seed: "dp" + ".st.dev." + draw(ALNUM, 40, seed),
    "Mapbox": lambda seed: "sk" + ".ey" + "J1Ijoi" + draw(ALNUM, 60, seed) + "." + draw(ALNUM, 22, seed),
    "Mailchimp": lambda seed: draw(HEX, 32, seed) + "-us" + "12",
    "Square": lambda seed: "EA" + "AA" + draw(ALNUM, 60, seed),
    "Facebook": lambda seed: "EA" + "ACEdEose0cBA" + draw(ALNUM, 60, seed),
    "Alibaba": lambda seed: "LT" + "AI" + draw(ALNUM, 20, seed),
    "Tencent": lambda seed: "AK" + "ID" + draw(ALNUM, 32, seed),
    "behind a letter": lambda seed: "tgh" + "p_" + draw(ALNUM, 36, seed),
}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("place", ["{}", "use {} now", "Exit code 1\n{}\nfailed", '"{}"'])
def test_a_vendors_form_is_found(vendor: str, place: str) -> None:
    for seed in range(8):
        key = VENDORS[vendor]((vendor, seed))
        left = redact(place.format(key)).text
        assert key[4:-5] not in left
        assert "[redacted:" in left


def test_the_address_of_a_webhook_is_found() -> None:
    key = draw(HEX, 32, "teams")
    url = f"https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/{key}/c-1"
    assert key not in redact(f"curl {url}").text


@pytest.mark.parametrize("before", ["", "+", "    12\t", "> "])
def test_the_end_of_a_private_key_is_found(before: str) -> None:
    lines = [draw(BASE64, 64, seed) for seed in range(3)] + [draw(BASE64, 20, 4)]
    text = "$ tail -5 server.key\n" + "".join(f"{before}{line}\n" for line in lines)
    left = redact(f"{text}{before}-----END PRIVATE KEY-----\nok").text
    assert [line for line in lines if line in left] == []
    assert left.startswith("$ tail -5 server.key\n")
    assert left.endswith("\nok")


@pytest.mark.parametrize(
    "text",
    [
        "docker run -p 8080:80 nginx:1.25",
        "mkdir -p src/components/auth2",
        "cp -p a1b2c3d4 b",
        "--- PASS: TestResolution/low_24h_60s (0.00s)",
        "PASS: 12 FAIL: 0",
        "PASS=3 FAIL=0",
        "BYPASS=cache2024 ./x",
        "renderPass: 'forward2'",
        "pass = first_pass2(x)",
        "cache_key: node-modules-linux-x64-20",
        "CACHE_KEY=" + "3f2a8b4c9d0e1f2a3b4c5d6e7f8091a2",
        "idempotency_key = '" + "aB3dE6gH9jK2mN5pQ8sT" + "'",
        "public_key: " + "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "object_key=" + "3f2a8b4c9d0e1f2a3b4c5d6e7f8091a2.tar.gz",
        "sort_key = 'created_at_2024_desc'",
        "monkey=see2024monkeydo4times",
        "RegEnumKey = win32api.RegEnumKey",
        "echo hello1 | grep passwd",
        "echo 'root:$ROOT_PW' | chpasswd",
        'echo "$TOKEN" | gh secret set DEPLOY_TOKEN',
        "echo production | vercel env add NODE_ENV production",
        'wc -c <<< "some1text"',
        "git commit -F - <<< 'fix2: passwords'",
        "set -x API_TOKEN $TOKEN",
        "aws configure set region eu-west-1",
        "cargo login",
        "docker login registry.example.com",
        "net user bob /add",
        "the .net user interface2 is slow",
        "sqlplus / as sysdba",
        "htpasswd -c .htpasswd bob",
        "http://localhost:4873/@types/node2",
        "https://registry.npmjs.org:443/@babel/core7",
        "ssh://git@host.example:2222/team/x.git",
        "password reset for bob@example.com succeeded",
        "Password for bob: (hidden)",
        "password is generated for each user: see docs/passwords2.md",
        "the password was changed to something else",
        "Password for the k8s-cluster-1 expires",
        "Files that name a password:\n\nsrc/auth/login2.py\n",
        "Tests of the password:\n  testLogin2\n",
        '"password":\n  "string",',
        "забыли пароль user?",
        "Passwort vergessen? Klicken Sie hier",
        "password = 'must have some more'",
        "re_compiled_pattern_with_a_long_name_2",
        "patterns.0123456789",
        "EAAAAAAA" + "A" * 60,
        "0123456789abcdef-us-east-1",
        "-----END PUBLIC KEY-----",
        "tasks_pypi-packages-and-more-of-them-2024",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert redact(text).text == text


def test_base64_over_lines_is_no_token() -> None:
    lines = [draw(BASE64, 64, seed) for seed in range(3)]
    text = "\n".join((lines[0], "EAAAB" + draw(ALNUM, 59, 9), lines[1], lines[2]))
    assert redact(text).text == text


def test_a_command_that_held_a_secret_is_no_remedy(archivist: Command, project: Path) -> None:
    """What mended a failure is told only if nothing in it had to be taken out."""
    remedies = {
        "./migrate": f"OPENAI_KEY={_key(1)} ./migrate",
        "./mail": f"DB_PW={_password(2)} ./mail",
        "sqlcmd -S localhost -Q 'SELECT 1'": f"sqlcmd -S localhost -P '{_password(3)}' -Q 'SELECT 1'",
    }
    assert archivist("init").code == 0
    for run in range(3):
        calls: list[tuple[str, str, bool]] = []
        for failed, worked in remedies.items():
            calls += [(failed, "error: login failed", True), (worked, "ok", False)]
        calls += [("./seed", "error: no configuration", True)]
        calls += [(f"aws configure set aws_secret_access_key {_key(4)}", "", False), ("./seed", "ok", False)]
        log = agent_log(project / f"log-{run}.jsonl", calls, session=f"s-{run}")
        assert archivist("capture", str(log)).code == 0
    assert archivist("reflect", "--pending").code == 0
    lessons = json.loads(archivist("lessons", "list", "--all", "--json").out)["lessons"]
    told = archivist("brief", "--max", "30", "--budget", "3000").out + json.dumps(lessons)
    assert "redacted" not in told
    assert [value for value in (_key(1), _password(2), _password(3), _key(4)) if value in told] == []
