"""Secrets are out, ordinary text stays, and both are counted."""

from __future__ import annotations

import hashlib
import json
import string
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist.capture.redaction import RedactedText, Secret, redact
from archivist.capture.secret_rules import VENDOR_RULES

pytestmark = pytest.mark.req("N7")

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
WORDY = ALNUM + "_-"
BASE64 = ALNUM + "+/"


def draw(alphabet: str, length: int, seed: object) -> str:
    """Return characters that look drawn by chance and are the same in every run."""
    stream = hashlib.shake_256(repr((alphabet, length, seed)).encode()).digest(length)
    return "".join(alphabet[byte % len(alphabet)] for byte in stream)


def jwt(seed: object) -> str:
    # The first segment is {"alg": …} in base64, put together so that no scanner takes this file for a leak.
    return ".".join(
        ("eyJ" + "hbGciOi" + draw(ALNUM, 24, seed), "eyJ" + draw(ALNUM, 60, seed), draw(WORDY, 43, seed))
    )


def vendor_key(kind: str, seed: object) -> str:
    prefix, alphabet, length = VENDORS[kind]
    if kind == "sendgrid-key":
        return f"{prefix}{draw(WORDY, 22, seed)}.{draw(WORDY, 43, seed)}"
    if kind == "slack-token":
        return f"{prefix}{draw('123456789', 12, seed)}-{draw('123456789', 13, seed)}-{draw(ALNUM, 24, seed)}"
    if kind == "langsmith-key":
        return f"{prefix}{draw(HEX, 32, seed)}_{draw(HEX, 10, seed)}"
    if kind == "azure-client-secret":
        return f"{draw(ALNUM, 3, seed)}{prefix}{draw(ALNUM + '~_.-', length, seed)}"
    if kind == "jwt":
        return jwt(seed)
    return prefix + draw(alphabet, length, seed)


VENDORS = {
    "aws-access-key": ("AK" + "IA", UPPER, 16),
    "github-token": ("gh" + "p_", ALNUM, 36),
    "gitlab-token": ("gl" + "pat-", WORDY, 20),
    "slack-token": ("xo" + "xb-", ALNUM, 0),
    "stripe-key": ("sk" + "_live_", ALNUM, 24),
    "stripe-webhook-secret": ("wh" + "sec_", ALNUM, 32),
    "openai-key": ("sk" + "-proj-", WORDY, 74),
    "anthropic-key": ("sk" + "-ant-api03-", WORDY, 93),
    "openrouter-key": ("sk" + "-or-v1-", HEX, 64),
    "google-api-key": ("AI" + "za", WORDY, 35),
    "google-oauth-secret": ("GOC" + "SPX-", WORDY, 28),
    "google-oauth-token": ("ya" + "29.", WORDY, 80),
    "npm-token": ("np" + "m_", ALNUM, 36),
    "pypi-token": ("py" + "pi-AgEIcHlwaS5vcmc", WORDY, 120),
    "huggingface-token": ("h" + "f_", ALNUM, 34),
    "sendgrid-key": ("S" + "G.", WORDY, 0),
    "twilio-key": ("S" + "K", HEX, 32),
    "azure-client-secret": ("8" + "Q~", ALNUM, 34),
    "digitalocean-token": ("do" + "p_v1_", HEX, 64),
    "shopify-token": ("sh" + "pat_", HEX, 32),
    "square-token": ("sq" + "0atp-", WORDY, 22),
    "mailgun-key": ("ke" + "y-", HEX, 32),
    "newrelic-key": ("NR" + "AK-", UPPER, 27),
    "docker-token": ("dck" + "r_pat_", WORDY, 27),
    "linear-key": ("lin" + "_api_", ALNUM, 40),
    "sentry-token": ("snt" + "ryu_", HEX, 64),
    "grafana-token": ("gl" + "sa_", ALNUM, 41),
    "vault-token": ("hv" + "s.", WORDY, 90),
    "pulumi-token": ("pu" + "l-", HEX, 40),
    "rubygems-key": ("ruby" + "gems_", HEX, 48),
    "figma-token": ("fi" + "gd_", WORDY, 40),
    "replicate-token": ("r" + "8_", ALNUM, 37),
    "groq-key": ("gs" + "k_", ALNUM, 52),
    "nvidia-key": ("nv" + "api-", WORDY, 64),
    "langsmith-key": ("ls" + "v2_pt_", HEX, 0),
    "tailscale-key": ("ts" + "key-auth-", ALNUM, 40),
    "supabase-key": ("sb" + "p_", HEX, 40),
    "jwt": ("", ALNUM, 0),
}

# Where a key that names itself turns up; nothing around it says that it is one.
PLAIN_PLACES = (
    "$ echo {}",
    "2024-05-01T10:00:00Z INFO retrying with {} after 401",
    '{{"id": 7, "value": "{}", "ok": true}}',
    "  - {}\n  - next",
    "client = Client('{}')",
    "see https://example.org/cb?x={}&y=1",
    'args: [\\"run\\", \\"{}\\"]',
    "line one\\n{}\\nline three",
    "\x1b[32m{}\x1b[0m",
)

# Where the name beside the value says what it is.
NAMED_PLACES = (
    "{name}={value}",
    "export {name}={value}",
    "docker run -e {name}={value} app",
    "{name}: {value}",
    '{name}: "{value}"',
    '"{name}": "{value}",',
    '{name} = "{value}"',
    "{name} = '{value}'  # set by ops",
    'os.environ["{name}"] = "{value}"',
    'connect(host, {name}="{value}", retries=3)',
    '\\"{name}\\": \\"{value}\\"',
    "<{name}>{value}</{name}>",
    "+{name}={value}",
    'const {name} = "{value}";',
    "    {name}: '{value}',",
    'setenv("{name}", "{value}")',
    "POST /login?{name}={value}&next=/ HTTP/1.1",
)

PASSWORDS = ("hunter" + "2!", "Tr0ub4" + "dor&3", "pa55" + "W0rd99", "S3cure" + "#2024", "x9$kQ" + "2mP")


def named_secrets() -> Iterator[tuple[str, str, str]]:
    names: dict[str, Callable[[object], str]] = {
        "DB_PASSWORD": lambda seed: "q" + draw(ALNUM, 11, seed) + "7",
        "client_secret": lambda seed: draw(ALNUM, 32, seed),
        "ACCESS_TOKEN": lambda seed: draw(HEX, 40, seed),
        "api_key": lambda seed: draw(ALNUM, 32, seed),
        "AWS_SECRET_ACCESS_KEY": lambda seed: draw(BASE64, 40, seed).replace("/", "b", 1),
        "SMTP_PASS": lambda seed: draw(ALNUM, 14, seed) + "4",
        "privateKey": lambda seed: draw(HEX, 64, seed),
    }
    for index, (name, make) in enumerate(names.items()):
        for place in NAMED_PLACES:
            value = make((name, place))
            yield ("named", place.format(name=name, value=value), value)
        yield ("named", f"--{name.lower().replace('_', '-')} {make(index)} --verbose", make(index))


def placed_secrets() -> Iterator[tuple[str, str, str]]:
    for index, value in enumerate(PASSWORDS):
        plain = value.replace("#", "x").replace("$", "y")
        yield "url-password", f"postgres://admin:{plain}@db.internal:5432/app", plain
        yield "url-password", f"git clone https://bot:{plain}@git.example.com/a/b.git", plain
        yield "url-password", f'REDIS = "redis://:{plain}@cache:6379/0"', plain
        yield "password", f"curl -u deploy:{plain} https://ci.example.com", plain
        yield "password", f"mysql -h db -u root -p{plain} shop < dump.sql", plain
        yield "password", f"sshpass -p '{value}' ssh host", value
        yield "password", f"psql --password={plain} app", plain
        yield "password", f"tool login --user me --password {value}", value
        yield "password", f'requests.get(url, auth=("me", "{value}"))', value
        yield "password", f"machine api.example.com login me password {value}", value
        yield "password", f"password: {value}", value
        yield (
            "password",
            f"Server=db;Uid=sa;Pwd={plain.replace('&', 'n')};Encrypt=yes",
            plain.replace("&", "n"),
        )
        opaque = draw(ALNUM, 30, index)
        yield "token", f"//registry.example.com/:_authToken={opaque}", opaque
        yield "authorization", f"Authorization: Bearer {opaque}", opaque
        yield "authorization", f"curl -H 'authorization: token {opaque}' https://x.example", opaque
        yield "authorization", f'headers = {{"Authorization": "Basic {opaque}=="}}', opaque
        yield "authorization", f"> Proxy-Authorization: Basic {opaque}=", opaque
        yield "authorization", f"//registry.example.com/:_auth={opaque}", opaque
        yield "cookie", f"Cookie: theme=dark; sessionid={opaque}; lang=en", opaque
        yield "cookie", f"Set-Cookie: sid={opaque}; Path=/; HttpOnly; Secure", opaque
        yield "cookie", f'curl --cookie "auth={opaque}" https://x.example', opaque
        yield "url-secret", f"https://hooks.slack.com/services/T0{draw(UPPER, 8, index)}/B01/{opaque}", opaque
        yield "url-secret", f"https://acct.blob.core.windows.net/c/f?sv=2022&sig={opaque}%3D", opaque
        storage = draw(BASE64, 86, index) + "=="
        yield "api-key", f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={storage};", storage


def key_block(seed: object, *, newline: str = "\n", is_whole: bool = True) -> str:
    lines = [draw(BASE64, 64, (seed, index)) for index in range(6)]
    head, tail = ("-----" + word + " RSA PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
    return newline.join((head, *lines, tail) if is_whole else (head, *lines[:-1], lines[-1][:21]))


def key_blocks() -> Iterator[tuple[str, str, str]]:
    for form, (newline, is_whole) in enumerate((("\n", True), ("\\n", True), ("\n", False), ("\\n", False))):
        block = key_block(form, newline=newline, is_whole=is_whole)
        yield "private-key", f'key: "{block}"', block
        yield "private-key", block, block
    indented = "\n".join("    " + line for line in key_block("indent").splitlines())
    yield "private-key", f"tls:\n{indented}\n", indented.splitlines()[3]


def planted() -> list[tuple[str, str, str]]:
    vendors = [
        (kind, place.replace("{{", "{").replace("}}", "}").replace("{}", key), key)
        for kind in VENDORS
        for place in PLAIN_PLACES
        for key in [vendor_key(kind, place)]
    ]
    return [*vendors, *named_secrets(), *placed_secrets(), *key_blocks()]


def test_planted_secrets_are_found() -> None:
    corpus = planted()
    assert len(corpus) >= 150
    assert len({kind for kind, _, _ in corpus}) >= 25
    missed = [text for _, text, secret in corpus if secret in redact(text).text]
    assert 1 - len(missed) / len(corpus) >= 0.97, missed


def test_no_long_piece_of_a_planted_secret_is_left() -> None:
    corpus = [case for case in planted() if len(case[2]) >= 16]
    leaks = [text for _, text, secret in corpus if secret[-8:] in redact(text).text]
    assert len(leaks) <= 0.03 * len(corpus), leaks


@pytest.mark.parametrize("kind", VENDORS)
def test_a_key_that_names_its_vendor_is_labelled_with_it(kind: str) -> None:
    for place in PLAIN_PLACES[:4]:
        key = vendor_key(kind, place)
        text = place.replace("{{", "{").replace("}}", "}").replace("{}", key)
        redacted = redact(text)
        assert redacted.text == text.replace(key, f"[redacted:{kind}]")
        assert redacted.found == (Secret(kind, 1),)


def test_every_vendor_rule_matches_a_key_made_for_it() -> None:
    bodies = (
        *(draw(WORDY, 80, 1), draw(ALNUM, 40, 1), draw(HEX, 64, 1), draw(HEX, 32, 1), draw(UPPER, 27, 1)),
        *(
            f"{draw(HEX, 32, 2)}_{draw(HEX, 8, 2)}",
            f"{draw(HEX, 24, 2)}-{draw(HEX, 34, 2)}",
            "1" + draw(UPPER, 58, 2),
        ),
        *(f"{draw(HEX, 64, 3)}-{draw(ALNUM, 16, 3)}", f"{draw(ALNUM, 22, 3)}.{draw(ALNUM, 43, 3)}"),
        *(f"{draw(ALNUM, 8, 4)}_{draw(ALNUM, 24, 4)}", draw(ALNUM, 43, 4)),
        *(f"eyJ{draw(WORDY, 200, 5)}", draw(WORDY, 140, 5), str(uuid.UUID(draw(HEX, 32, 6)))),
    )
    for rule in VENDOR_RULES:
        lead = draw(ALNUM, rule.lead, 5)
        kinds = {found.kind for body in bodies for found in redact(f"x {lead}{rule.prefix}{body} y").found}
        assert rule.kind in kinds, rule.prefix


# A broken bar keeps other scanners from taking a line for a leak; it is gone before the line is used.
ORDINARY = r"""
token_count = 5
max_tokens=4096
max_new_tokens: 512
"input_tokens": 18234,
"cache_read_input_tokens": 20480,
tokens = tokenizer.encode(text)
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
token = tokens[i]
token: str
token: str | None = None
token: Optional[str] = None
def login(user: str, password: str) -> Token:
def __init__(self, password: str = "", token: str = ""):
password: str = Field(..., min_length=8)
password = getpass.getpass()
password = os.environ["DB_PASSWORD"]
password = os.environ.get("DB_PASSWORD", "")
PASSWORD = os.getenv("PASSWORD")
password = config.database.password
password = request.form["password"]
password=password
password=None
password=self.password
password=args.password,
passwd = pwd.getpwnam(user)
if password == confirm_password:
if not password:
assert response.json()["password"] == ["This field is required."]
"pass¦word": "string"
"password": null
"password": ""
"password": "********"
password: "<your-password>"
password: ${DB_PASSWORD}
password: $DB_PASSWORD
password: {{ vault_db_password }}
password: !vault |
pass¦word: "changeme"
pass¦word = "CHANGE_ME"
pass¦word = 'your_password_here'
PASSWORD=xxxxxxxx
export TOKEN=$(cat /run/secrets/token)
export GITHUB_TOKEN=$GH_TOKEN
export API_KEY="${API_KEY:-}"
TOKEN=`gh auth token`
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
secrets: inherit
sec¦ret_name = "prod/db/main"
secretName: my-tls-secret
secret: my-app-config
secretKeyRef:
secrets.token_hex(16)
import secrets
from getpass import getpass as get_password
SECRET_KEY = os.environ["SECRET_KEY"]
SECRET_KEY = get_random_secret_key()
api_key = settings.OPENAI_API_KEY
api_key=os.environ["OPENAI_API_KEY"]
api_key: str = Depends(get_api_key)
apiKey: process.env.API_KEY,
apiKey: string;
const apiKey = getApiKey();
let token = await fetchToken();
const { token, password } = req.body;
this.token = token;
self._token = token
token = self.lexer.next_token()
token := p.peek()
token => token.type === 'identifier'
case token.IDENT:
token.type == "NUMBER"
Token(type='NUMBER', value='42')
SyntaxError: Unexpected token '<', "<!DOCTYPE "... is not valid JSON
SyntaxError: Unexpected token } in JSON at position 512
E   KeyError: 'token'
error: expected one of `!` or `::`, found token `foo`
bash: syntax error near unexpected token `('
zsh: command not found: pass
test_password_reset PASSED
test_token_refresh_returns_401 FAILED
tests/test_auth.py::test_password_is_hashed PASSED [ 12%]
tests/test_tokens.py::TestToken::test_token_1 PASSED
PASS: 12 tests, FAIL: 0
pass=14 fail=2 skip=0
pass: 100
keys = dict.keys()
key = lambda item: item[1]
sorted(items, key=operator.itemgetter(1))
for key, value in mapping.items():
primary_key=True
foreign_key: users.id
sort_key = "created_at#2024"
cache_key = f"user:{user_id}"
cache_key: "v2-deps-linux-x86_64-py311"
key: pip-3.11-requirements-2024
key: ${{ runner.os }}-pip-${{ hashFiles('**/requirements.txt') }}
partition_key = "tenant1"
"key": "b8c37e33de¦fde51cf91e1e03e51657da"
public_key = load_public_key("id_rsa.pub")
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host
private_key_path = "~/.ssh/id_ed25519"
private_key: /etc/ssl/private/server.key
priva¦teKeyFile = "certs/server.pem"
ssl_certificate_key /etc/nginx/ssl/nginx.key;
api_key_header = APIKeyHeader(name="X-API-Key")
headers = {"Authorization": f"Bearer {token}"}
headers = {"Authorization": "Bearer " + token}
headers: { Authorization: `Bearer ${token}` }
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer YOUR_API_KEY
-H "Authorization: Bearer $GITHUB_TOKEN"
WWW-Authenticate: Basic realm="Restricted"
Authorization: Basic authentication is required
Authorization header is missing
authorization = request.headers.get("Authorization")
author: Jane Doe
authors = ["Jane Doe <jane@example.com>"]
auth: none
auth_backend = "django.contrib.auth.backends.ModelBackend"
oauth2_scheme = OAuth2PasswordBearer(tokenUrl="token")
auth=(user, password)
auth = HTTPBasicAuth(user, password)
Cookie: {cookie}
Set-Cookie: ${cookie}
cookie = SimpleCookie()
cookies = response.cookies
cookie_name = "sessionid"
document.cookie.split(";")
SESSION_COOKIE_AGE = 1209600
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = True
https://github.com/psf/requests
https://example.com:8080/path?x=1
http://localhost:5432/
ssh://git@github.com/org/repo.git
git@github.com:org/repo.git
https://user@example.com/repo.git
postgres://user:${PGPASSWORD}@host/db
postgres://{user}:{password}@{host}/{db}
mysql://<user>:<password>@<host>/<db>
https://example.com/a:b/c@d
npm i @types/node@18.11.9
import x from "https://esm.sh/react@18.2.0"
mkdir -p build/output
ssh -p 2222 host.example.com
python -u script.py
python -m pdb -p 1234
docker run -p 8080:80 -u 1000:1000 nginx
git push -u origin feature/token-refresh
curl -u "$USER:$PASS" https://example.com
curl -s -o /dev/null -w "%{http_code}" https://example.com
mysql -p
mysql -u root -p$MYSQL_ROOT_PASSWORD
mysql --password
cp -p src dst
tar -pxzf archive.tar.gz
parser.add_argument("--password", help="password for the database")
parser.add_argument("--token", default=None, type=str)
parser.add_argument("-p", "--password", required=True)
  --password PASSWORD   the password to use
  --token TEXT          API token  [required]
  --api-key <key>
error: the following arguments are required: --password
usage: tool [-h] [--token TOKEN] [--password PASSWORD]
--password-stdin
Enter password:
Password for user postgres:
password: must be at least 8 characters
password: required
password authentication failed for user "app"
The password must contain 8-20 characters
Your password has been changed
[sudo] password for jane:
fatal: could not read Password for 'https://github.com': terminal prompts disabled
remote: Support for password authentication was removed on August 13, 2021.
<input type="password" name="password" id="id_password1">
<label for="password">Password</label>
<password>${password}</password>
<span class="token keyword">return</span>
password_hash = generate_password_hash(password)
password_validators = [MinLengthValidator(8)]
AUTH_PASSWORD_VALIDATORS = []
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
"password_reset_timeout": 259200
pass¦word_field = "password1"
fields = ["username", "password", "email"]
exclude = ("password", "last_login")
Form(data={"username": "u", "password": ""})
User.objects.create_user("bob", password=pw)
make_password(password, salt, hasher)
check_password(raw_password, encoded)
NEXT_PUBLIC_API_URL=https://api.example.com
TOKEN_URL=https://auth.example.com/token
TOKEN_EXPIRE_MINUTES=30
ACCESS_TOKEN_LIFETIME = timedelta(minutes=5)
token_type: "bearer"
"token_type": "Bearer", "expires_in": 3600
"nextPageToken": "CAUQAA"
next_token=12
csrf_token = get_token(request)
{% csrf_token %}
eos_token = "</s>"
pad_token_id=50256
bos_token: <s>
[CLS] token, [SEP] token
stop_token="<|endoftext|>"
special_tokens_map.json
token embeddings: (50257, 768)
num_tokens: 1.2M
token bucket: 100/min
tokens/s: 85.3
pwd
PWD=/home/user/project
OLDPWD=/tmp
cd "$(pwd)" && ls
pwd: /workspace
$ pwd && git rev-parse HEAD
color: #deadbeef;
background: #1a2b3c
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
index 83db48f..bf2a0e1 100644
Merge: 1a2b3c4 5d6e7f8
HEAD is now at 9fceb02 Fix token parsing
etag: "33a64df551425fc¦c55e4d42a148795d9f25f89d4"
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    --hash=sha256:9d643ff0a55b762d5cdb124b8eaa99c66322e2157b69160bc32796e824360e6f \
"integrity": "sha512-rI8cXN1zBXsSp0HVhG2Up3eDq8T7l5Fq9bCk0p1xk2y9w9b0n8W¦cQhXKzA0L8k7A3o5YQ1m2n3b4v5c6x7z8Q=="
checksum = "b62ddb9cb1ec0a098ad4bbf9344d071¦3fa193ae1a80af55febcff2627b6a00c1"
resolved "https://registry.yarnpkg.com/abbrev/-/abbrev-1.1.1.tgz#f8f2c887ad10bf67f634f005b6987fed3179aac8"
id: 550e8400-e29b-41d4-a716-446655440000
request_id=7b3f0c1e-2d4a-4f5b-9c6d-8e7f6a5b4c3d status=200
trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
toolu_01A09q90qw90lq917835lq9
call_abc123DEF456ghi789JKL
msg_01XFDUDYJgAACzvnptvVoYEL
chatcmpl-9abcDEF123ghiJKL456mnoPQR789
req_011CPabcdefghijklmnopqrs
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=
0x7ffeefbff5c8
<object at 0x7f8b1c2d3e4f>
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
if "-----BE¦GIN PRIVATE KEY-----" in text:
PEM_HEADER = "-----BE¦GIN RSA PRIVATE KEY-----"
grep -r "BEGIN RSA PRI¦VATE KEY" .
sk-learn is not scikit-learn
pip install sk-video-processing-toolkit
class="sk-folding-cube sk-cube-container-wrapper"
task-runner-configuration-file-name
disk-usage-analyzer-for-linux-systems
npm_config_registry=https://registry.npmjs.org/
npm_lifecycle_event=test
npm_package_dependencies_react
hf_hub_download(repo_id="gpt2", filename="config.json")
hf_transformers_cache_directory_path
gh¦p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
AKIAXXXX
SKIP: 12
MASK = 0xffffffff
SKU: SK12345
pypi-server --port 8080
pypi-publish-action-release-v1
github_pat_ prefix
xoxb-your-token
glpat-<token>
secret_manager_client_factory_builder
key-value-store-implementation-notes
test_secret_santa_assigns_everyone
GL_TEXTURE_2D_ARRAY_EXT
api_version: "2023-10-16"
"version": "1.0.0-beta.12+build.345"
license_key_required: false
access_key_id_field = "aws_access_key_id"
encryption_key=None,
session_key = request.session.session_key
signing_key=key
SSH_KEY_PATH=/root/.ssh/id_rsa
keyring.get_password("system", "username")
vault kv get -field=password secret/app
aws secretsmanager get-secret-value --secret-id prod/db
kubectl create secret generic db --from-literal=password=$PW
gcloud auth print-access-token
gh auth login --with-token < token.txt
op read "op://vault/item/password"
password-store: /home/me/.password-store
passport.authenticate("jwt", { session: false })
bypass: true
compass = Compass()
passthrough: enabled
passenger_count: 3
monkey = "George1234"
hotkey: ctrl+shift+p
keyboard_layout = "de-latin1"
keyword: "search-term-2024"
tokenize(text, lang="en")
detokenized = " ".join(words)
Tokenizing: 100%|##########| 1000/1000 [00:01<00:00, 912.3it/s]
secretary: Jane
sec¦retariat = "HQ"
secret santa: 2024-12-24
accessToken?: string
accessToken: string | undefined
refreshToken!: string;
interface Props { password: string; token?: string }
pub struct Login { pub password: String, pub token: Option<String> }
func Login(user, password string) (token string, err error)
let password: &str = &args.password;
String password = System.getenv("PASSWORD");
private String apiKey;
@Value("${api.key}") private String apiKey;
password VARCHAR(255) NOT NULL,
ALTER TABLE users ADD COLUMN password_digest text;
SELECT token FROM sessions WHERE id = 12;
t.string "password_digest", null: false
has_secure_password
config.secret_key_base = ENV["SECRET_KEY_BASE"]
Rails.application.credentials.secret_key_base
W0511: TODO: handle token expiry (fixme)
S105 Possible hardcoded password assigned to: "password"
B106:hardcoded_password_funcarg
E501 Line too long (111 > 110)
token=tok
secret=secret
api¦_key="test"
apikey=apikey
pass¦word = "password"
pass¦word="test"
token = "token"
token = 'abc'
sec¦ret = "secret"
"""


def ordinary_lines() -> list[str]:
    lines = [line.replace("¦", "") for line in ORDINARY.splitlines() if line]
    for index in range(12):
        digest = hashlib.sha256(str(index).encode()).hexdigest()
        lines += [
            f"commit {digest[:40]}",
            f"  {digest}  dist/pkg-{index}.whl",
            f"uuid: {uuid.UUID(digest[:32])}",
            f'{{file = "pkg-{index}.whl", hash = "sha256:{digest}"}},',
            f"@sha256:{digest} as build",
        ]
    return lines


def test_ordinary_lines_are_left_alone() -> None:
    lines = ordinary_lines()
    assert len(lines) >= 300
    changed = [redact(line).text for line in lines if redact(line).found]
    assert len(changed) <= 0.01 * len(lines), changed


def test_ordinary_lines_are_left_alone_as_one_text_and_inside_json() -> None:
    text = "\n".join(ordinary_lines())
    assert len(redact(text).found) <= 4
    assert len(redact(json.dumps(text)).found) <= 4


def test_text_without_secrets_is_the_same_object() -> None:
    text = "def tokenize(text):\n    return text.split()\n" * 50
    result = redact(text)
    assert result.text is text
    assert result == RedactedText(text, ())


def test_the_same_secret_gets_the_same_placeholder_wherever_it_stands() -> None:
    value = draw(ALNUM, 20, "same") + "7"
    text = f"DB_PASSWORD={value}\npostgres://app:{value}@db/app\nlogging in with {value}\n"
    result = redact(text)
    assert value not in result.text
    assert result.text.count("[redacted:url-password]") == 3
    assert result.found == (Secret("url-password", 3),)


def test_a_common_word_used_as_a_password_is_not_erased_elsewhere() -> None:
    text = "postgres://postgres:{0}@localhost/db  # the {0} image".format("postgres")
    assert (
        redact(text).text == "postgres://postgres:[redacted:url-password]@localhost/db  # the postgres image"
    )


def test_what_was_found_does_not_hold_the_secret() -> None:
    key = vendor_key("github-token", 1)
    assert key not in repr(redact(f"{key} {key}"))
    assert redact(f"{key} {key}").found == (Secret("github-token", 2),)


def test_what_stands_around_a_secret_stays() -> None:
    opaque = draw(ALNUM, 30, "around")
    assert redact(f"Set-Cookie: sid={opaque}; Path=/; HttpOnly").text == (
        "Set-Cookie: sid=[redacted:cookie]; Path=/; HttpOnly"
    )
    assert redact(f"curl -H 'Authorization: Bearer {opaque}' https://x.example").text == (
        "curl -H 'Authorization: Bearer [redacted:authorization]' https://x.example"
    )
    assert json.loads(redact(json.dumps({"api_key": opaque, "n": 1})).text) == {
        "api_key": "[redacted:api-key]",
        "n": 1,
    }


def test_places_are_right_behind_letters_that_change_length_in_lower_case() -> None:
    opaque = draw(ALNUM, 30, "wide")
    assert redact(f"\u0130\u0130\u0130 \U0001f600 api_key = '{opaque}' \u2026").text == (
        "\u0130\u0130\u0130 \U0001f600 api_key = '[redacted:api-key]' \u2026"
    )


def test_a_very_long_value_goes_to_its_end() -> None:
    value = draw(ALNUM, 3000, "long")
    assert redact(f"SESSION_TOKEN={value}\nnext").text == "SESSION_TOKEN=[redacted:token]\nnext"
    assert redact(f'"session_token": "{value}"').text == '"session_token": "[redacted:token]"'


def test_lone_surrogates_do_not_stop_it() -> None:
    key = vendor_key("github-token", 2)
    assert redact(f"\ud800 {key}").text == "\ud800 [redacted:github-token]"


FRAGMENTS = st.one_of(
    st.sampled_from([text for _, text, _ in planted()]),
    st.sampled_from([secret for _, _, secret in planted()]),
    st.sampled_from(ordinary_lines()),
    st.sampled_from(
        [
            "[redacted:token]",
            "[redacted:",
            "]",
            "password=",
            "token: ",
            '"',
            "\\n",
            "://",
            "@",
            " -p",
            "Cookie: a=",
        ]
    ),
    st.text(max_size=12),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAGMENTS, max_size=8), st.sampled_from(["", " ", "\n", "=", ";"]))
def test_redacting_twice_changes_nothing(fragments: list[str], glue: str) -> None:
    once = redact(glue.join(fragments)).text
    assert redact(once).text is once


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="-_.~:=/@\"'\\ \nabkpswordtenyBEGINAKIA0123456789[]<>{}$", max_size=200))
def test_any_text_is_taken_and_redacting_it_twice_changes_nothing(text: str) -> None:
    once = redact(text).text
    assert redact(once).text is once


KEY_HEAD = "-----BEGIN PRIVATE " + "KEY-----"
HOSTILE = (
    *("a", "=", ":", "://", "://a:", "@", " ", "\\", '"', "eyJ", "eyJa.", "0", "aB3", "_", "-", ".", "~"),
    *(KEY_HEAD, KEY_HEAD + "\nAAAAAAAAAAAAAAAAAAAA\n", "-----BEGIN ", "token=", "password: hunter7x, "),
    *("password=", "password", "token: ", "auth", "authorization: ", "cookie: a=", "cookie: a=b; ", "key"),
    *(
        " -p",
        " -u",
        "mysql -p",
        "curl -u a:",
        "ghp_",
        "sk-",
        "AKIA",
        "SG.",
        "secret: str ",
        "https://x?",
        "&sig=",
    ),
    *(
        'passwordpassword="',
        "password: a[",
        "TOKEN=aB3dE5",
        "api_key='",
        "https://x?sig=",
        "login a password ",
    ),
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_made_to_be_slow_is_not(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 4
