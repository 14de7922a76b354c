"""Fake secrets where secrets really appear, and harmless text that looks like them.

No secret stands here in whole: each is drawn at run time from a generator seeded by its case's
name. The two lists were written from the definition of a secret, before the rules were read; half
of each (`split_cases`, by seed) was never looked at while rules were chosen.
"""

import base64
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

_ALNUM = string.ascii_letters + string.digits
_WORDS = ("otter", "maple", "Falcon", "Cobalt", "river", "Quartz", "lemon", "Tundra", "velvet", "Comet")


class Fake:
    """Draw fake secrets."""

    def __init__(self, name: str) -> None:
        self._random = random.Random(name)  # noqa: S311

    def chars(self, count: int, alphabet: str = _ALNUM) -> str:
        """Return random characters with at least one digit."""
        digits = [character for character in alphabet if character.isdigit()] or list(alphabet)
        drawn = self._random.choices(alphabet, k=count)
        drawn[self._random.randrange(1, count)] = self._random.choice(digits)
        return "".join(drawn)

    def upper(self, count: int) -> str:
        """Return random upper-case letters and digits."""
        return self.chars(count, string.ascii_uppercase + "234567")

    def hex(self, count: int) -> str:
        """Return random hexadecimal digits."""
        return self.chars(count, "0123456789abcdef")

    def password(self) -> str:
        """Return a password as people make them."""
        first, second = self._random.sample(_WORDS, 2)
        return f"{first}{self._random.choice('-_!#')}{second}{self._random.randint(10, 9999)}"

    def base64(self, text: str) -> str:
        """Return the text in base64."""
        return base64.b64encode(text.encode()).decode()

    def urlsafe(self, count: int) -> str:
        """Return random characters of the URL-safe base64 alphabet."""
        return self.chars(count, _ALNUM + "-_")

    def aws_key(self) -> str:
        """Return an access key id of AWS."""
        return "AK" + "IA" + self.upper(16)

    def aws_secret(self) -> str:
        """Return a secret access key of AWS."""
        return self.chars(40, _ALNUM + _ALNUM + "+/")

    def jwt(self) -> str:
        """Return a signed token of three parts."""
        body = base64.urlsafe_b64encode(f'{{"sub":"{self.hex(12)}","iat":1712}}'.encode()).decode()
        return "ey" + "JhbGciOiJIUzI1NiJ9." + body.rstrip("=") + "." + self.urlsafe(43)

    def uuid(self) -> str:
        """Return a random UUID."""
        return "-".join(self.hex(n) for n in (8, 4, 4, 4, 12))


@dataclass(frozen=True, slots=True)
class SecretCase:
    """One text and the secrets in it."""

    name: str
    text: str
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HarmlessCase:
    """One text in which nothing is secret."""

    name: str
    text: str


# A template names its secrets as {0}, {1}; the makers draw them in that order.
_Maker = Callable[[Fake], str]
_AWS_KEY: _Maker = Fake.aws_key
_AWS: _Maker = Fake.aws_secret
_PW: _Maker = Fake.password
_JWT: _Maker = Fake.jwt


def _hex(count: int) -> _Maker:
    return lambda fake: fake.hex(count)


def _chars(count: int) -> _Maker:
    return lambda fake: fake.chars(count)


def _safe(count: int) -> _Maker:
    return lambda fake: fake.urlsafe(count)


def _b64(count: int) -> _Maker:
    return lambda fake: fake.base64(fake.chars(count))


def _b64_pw(fake: Fake) -> str:
    return fake.base64(fake.password())


def _tagged(*parts: str, count: int, alphabet: str = _ALNUM) -> _Maker:
    """Return a maker of tokens with a prefix; the prefix comes in parts so that no scanner sees it."""
    return lambda fake: "".join(parts) + fake.chars(count, alphabet)


_TEMPLATES: tuple[tuple[str, str, tuple[_Maker, ...]], ...] = (
    # AWS
    ("aws ini", "[default]\naws_access_key_id = {0}\naws_secret_access_key = {1}\n", (_AWS_KEY, _AWS)),
    ("aws ini session", "aws_session_token={0}", (_b64(180),)),
    ("aws export", "export AWS_SECRET_ACCESS_KEY={0}", (_AWS,)),
    ("aws powershell", '$Env:AWS_SECRET_ACCESS_KEY="{0}"', (_AWS,)),
    ("aws json", '{{"AccessKey": {{"AccessKeyId": "{0}", "SecretAccessKey": "{1}"}}}}', (_AWS_KEY, _AWS)),
    (
        "aws sts json",
        '"Credentials": {{\n    "SecretAccessKey": "{0}",\n    "SessionToken": "{1}",\n',
        (_AWS, _b64(120)),
    ),
    ("aws csv console", "Access key ID,Secret access key\n{0},{1}\n", (_AWS_KEY, _AWS)),
    (
        "aws csv user",
        "User name,Password,Access key ID,Secret access key,Console login link\nbuild,,{0},{1},https://1.signin.aws.amazon.com/console\n",
        (_AWS_KEY, _AWS),
    ),
    (
        "aws markdown table",
        "| user | access key | secret key |\n|---|---|---|\n| ci | {0} | {1} |\n",
        (_AWS_KEY, _AWS),
    ),
    (
        "aws cli table",
        "||  AccessKeyId      |  {0}  ||\n||  SecretAccessKey  |  {1}  ||\n||  Status  |  Active  ||",
        (_AWS_KEY, _AWS),
    ),
    ("aws cli text", "ACCESSKEY\t{0}\t2026-02-01T10:00:00Z\t{1}\tActive\tci-user", (_AWS_KEY, _AWS)),
    ("aws tsv", "name\tkey id\tsecret\nprod\t{0}\t{1}\n", (_AWS_KEY, _AWS)),
    ("aws columns", "KEY ID                 SECRET\n{0}   {1}\n", (_AWS_KEY, _AWS)),
    (
        "aws terraform output",
        'access_key_id = "{0}"\nsecret_access_key = "{1}"\nbucket = "state"',
        (_AWS_KEY, _AWS),
    ),
    (
        "aws terraform tfstate",
        '"attributes": {{"id": "{0}", "secret": "{1}", "status": "Active"}}',
        (_AWS_KEY, _AWS),
    ),
    (
        "aws python",
        'boto3.client("s3", aws_access_key_id="{0}", aws_secret_access_key="{1}")',
        (_AWS_KEY, _AWS),
    ),
    ("aws python positional", 'Credentials("{0}", "{1}", None)', (_AWS_KEY, _AWS)),
    ("aws configure", "AWS Access Key ID [None]: {0}\nAWS Secret Access Key [None]: {1}\n", (_AWS_KEY, _AWS)),
    ("aws prompt", "use the key {0} with the secret {1} to upload the build", (_AWS_KEY, _AWS)),
    ("aws slash", "try these creds: {0} / {1}", (_AWS_KEY, _AWS)),
    ("aws s3 url", "s3://{0}:{1}@bucket/path", (_AWS_KEY, lambda fake: fake.chars(40))),
    ("aws rclone", "[s3]\ntype = s3\naccess_key_id = {0}\nsecret_access_key = {1}", (_AWS_KEY, _AWS)),
    ("s3cfg", "access_key = {0}\nsecret_key = {1}\n", (_AWS_KEY, _AWS)),
    # Bearer values
    ("bearer curl", "curl -H 'Authorization: Bearer {0}' https://api.corp.example/v1/me", (_safe(40),)),
    ("bearer curl double", 'curl -s -H "authorization: bearer {0}" https://api.corp.example/', (_hex(40),)),
    (
        "bearer header dump",
        "> GET /v1/me HTTP/1.1\n> Host: api\n> Authorization: Bearer {0}\n> Accept: */*",
        (_safe(64),),
    ),
    (
        "bearer python dict",
        "headers = {{'Authorization': 'Bearer {0}', 'Accept': 'application/json'}}",
        (_safe(48),),
    ),
    ("bearer json", '{{"headers": {{"authorization": "Bearer {0}"}}}}', (_chars(32),)),
    (
        "bearer escaped json",
        '"command": "curl -H \\"Authorization: Bearer {0}\\" https://api"',
        (_chars(36),),
    ),
    ("bearer har", '{{"name": "Authorization", "value": "Bearer {0}"}}', (_safe(44),)),
    ("bearer log", "2026-01-03 DEBUG http: sent Bearer {0} to upstream", (_safe(40),)),
    ("bearer node", "headers: {{ Authorization: `Bearer {0}` }}", (_safe(40),)),
    ("bearer jwt", "Authorization: Bearer {0}", (_JWT,)),
    ("bearer httpie", "http GET https://api.corp.example 'Authorization:Bearer {0}'", (_safe(32),)),
    ("bearer tuple", "(b'authorization', b'Bearer {0}')", (_safe(43),)),
    ("bearer go map", "map[Authorization:[Bearer {0}] User-Agent:[go]]", (_safe(40),)),
    ("bearer uuid", "Authorization: Bearer {0}", (Fake.uuid,)),
    ("token scheme", "Authorization: token {0}", (_hex(40),)),
    ("x api key", "curl -H 'X-Api-Key: {0}' https://api.corp.example", (_chars(32),)),
    ("x auth token", "X-Auth-Token: {0}", (_hex(32),)),
    ("basic header", "Authorization: Basic {0}", (lambda fake: fake.base64("deploy:" + fake.password()),)),
    (
        "basic header python",
        "{{'Authorization': 'Basic {0}'}}",
        (lambda fake: fake.base64("ci:" + fake.password()),),
    ),
    ("proxy basic", "Proxy-Authorization: Basic {0}", (lambda fake: fake.base64("ci:" + fake.password()),)),
    ("har api key", '{{"name": "x-api-key", "value": "{0}"}}', (_chars(40),)),
    # Passwords in prompts
    ("prompt my password is", "my password is {0}, log in and check the invoices page", (_PW,)),
    (
        "prompt the password is",
        "The password for the staging box is {0}. Please restart nginx there.",
        (_PW,),
    ),
    ("prompt password colon", "host db.corp.example user admin password: {0}", (_PW,)),
    ("prompt user pass", "login with user deploy and pass {0} and run the migration", (_PW,)),
    ("prompt use password", "ssh to the box with password {0}", (_PW,)),
    ("prompt quoted", 'the admin password is "{0}"', (_PW,)),
    ("prompt backticks", "use `{0}` as the password for the test account", (_PW,)),
    ("prompt pwd", "user: root pwd: {0}", (_PW,)),
    ("prompt pw", "pw is {0}", (_PW,)),
    ("prompt credentials slash", "credentials: admin / {0}", (_PW,)),
    ("prompt login colon", "login: admin:{0}", (_PW,)),
    ("prompt passphrase", "the ssh passphrase is {0}", (_PW,)),
    ("prompt key passphrase", "Enter passphrase for key '/home/me/.ssh/id_rsa': {0}", (_PW,)),
    ("prompt pin", "the api token is {0}, don't commit it", (_chars(32),)),
    ("prompt here is key", "here is my api key: {0}", (_chars(40),)),
    ("prompt secret", "client secret is {0}", (_safe(40),)),
    ("prompt german", "Das Passwort lautet {0}, bitte einloggen", (_PW,)),
    ("prompt german colon", "Benutzer: admin Passwort: {0}", (_PW,)),
    ("prompt german kennwort", "Kennwort: {0}", (_PW,)),
    ("prompt french", "le mot de passe est {0}", (_PW,)),
    ("prompt french colon", "Mot de passe : {0}", (_PW,)),
    ("prompt spanish", "la contraseña es {0}", (_PW,)),
    ("prompt spanish colon", "usuario: admin, contraseña: {0}", (_PW,)),
    ("prompt portuguese", "a senha é {0}", (_PW,)),
    ("prompt italian", "la password è {0}", (_PW,)),
    ("prompt russian", "пароль: {0}", (_PW,)),
    ("prompt polish", "hasło: {0}", (_PW,)),
    ("prompt dutch", "het wachtwoord is {0}", (_PW,)),
    ("prompt chinese", "密码是 {0}", (_PW,)),
    ("prompt chinese colon", "用户名:admin 密码:{0}", (_PW,)),
    ("prompt japanese", "パスワードは {0} です", (_PW,)),
    ("prompt korean", "비밀번호: {0}", (_PW,)),
    ("prompt turkish", "şifre: {0}", (_PW,)),
    # Kubernetes and containers
    (
        "k8s data",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  username: YWRtaW4=\n  password: {0}\n",
        (_b64_pw,),
    ),
    (
        "k8s data plain names",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  url: {0}\n  dsn: {1}\n",
        (_b64(30), _b64(24)),
    ),
    (
        "k8s data first",
        "apiVersion: v1\ndata:\n  ca.crt: {0}\n  value: {1}\nkind: Secret\nmetadata:\n  name: x\n",
        (_b64(60), _b64(24)),
    ),
    (
        "k8s stringData",
        "apiVersion: v1\nkind: Secret\nstringData:\n  connection: {0}\n  mailer: {1}\n",
        (_PW, _PW),
    ),
    (
        "k8s json",
        '{{"apiVersion": "v1", "data": {{"value": "{0}"}}, "kind": "Secret", "metadata": {{"name": "db"}}}}',
        (_b64(24),),
    ),
    (
        "k8s json pretty",
        '{{\n  "kind": "Secret",\n  "data": {{\n    "url": "{0}",\n    "key": "{1}"\n  }}\n}}',
        (_b64(24), _b64(30)),
    ),
    ("k8s jsonpath", "$ kubectl get secret db -o jsonpath='{{.data.password}}'\n{0}", (_b64_pw,)),
    ("k8s create", "kubectl create secret generic db --from-literal=password={0}", (_PW,)),
    ("k8s create other", "kubectl create secret generic db --from-literal=dsn={0}", (_PW,)),
    (
        "k8s create registry",
        "kubectl create secret docker-registry r --docker-username=ci --docker-password={0}",
        (_PW,),
    ),
    ("k8s dockerconfig", ".dockerconfigjson: {0}", (_b64(90),)),
    (
        "k8s tls",
        "kind: Secret\ntype: kubernetes.io/tls\ndata:\n  tls.crt: TFMw\n  tls.key: {0}\n",
        (_b64(120),),
    ),
    ("k8s kubeconfig", "users:\n- name: admin\n  user:\n    client-key-data: {0}\n", (_b64(120),)),
    ("k8s service token", "users:\n- name: ci\n  user:\n    token: {0}\n", (_JWT,)),
    (
        "docker auths",
        '{{"auths": {{"ghcr.io": {{"auth": "{0}"}}}}}}',
        (lambda fake: fake.base64("ci:" + fake.password()),),
    ),
    ("docker login", "docker login -u ci -p {0} registry.corp.example", (_PW,)),
    ("docker env", "docker run -e POSTGRES_PASSWORD={0} postgres:16", (_PW,)),
    ("compose env", "environment:\n  - MYSQL_ROOT_PASSWORD={0}\n", (_PW,)),
    ("compose env map", "environment:\n  REDIS_PASSWORD: {0}\n", (_PW,)),
    # Files of tools
    ("npmrc", "//registry.npmjs.org/:_authToken={0}", (_tagged("np", "m_", count=36),)),
    ("npmrc uuid", "//npm.corp.example/:_authToken={0}", (Fake.uuid,)),
    ("npmrc auth", "_auth={0}", (lambda fake: fake.base64("ci:" + fake.password()),)),
    (
        "pypirc",
        "[pypi]\nusername = __token__\npassword = {0}",
        (_tagged("py", "pi-AgEIcHlwaS5vcmc", count=120),),
    ),
    ("pypirc plain", "[corp]\nusername = ci\npassword = {0}", (_PW,)),
    ("netrc", "machine api.corp.example login ci password {0}", (_PW,)),
    ("netrc lines", "machine api.corp.example\n  login ci\n  password {0}\n", (_PW,)),
    ("pgpass", "db.corp.example:5432:app:admin:{0}", (_PW,)),
    ("git credentials", "https://ci:{0}@git.corp.example", (_chars(24),)),
    ("git remote", "origin https://oauth2:{0}@gitlab.corp.example/a/b.git (fetch)", (_chars(26),)),
    ("my.cnf", "[client]\nuser=root\npassword={0}", (_PW,)),
    ("dotenv", "SMTP_PASS={0}\nSMTP_HOST=mail", (_PW,)),
    ("dotenv secret", "SECRET_KEY={0}", (_chars(50),)),
    ("rails", "secret_key_base: {0}", (_hex(128),)),
    ("django", "SECRET_KEY = 'django-insecure-{0}'", (_chars(50),)),
    ("properties", "spring.datasource.password={0}", (_PW,)),
    ("appsettings", '"ClientSecret": "{0}"', (_safe(40),)),
    ("xml", "<password>{0}</password>", (_PW,)),
    ("maven", "<server><id>corp</id><username>ci</username><password>{0}</password></server>", (_PW,)),
    ("terraform var", 'variable "db_password" {{ default = "{0}" }}', (_PW,)),
    ("ansible", "ansible_ssh_pass: {0}", (_PW,)),
    ("gradle", "signing.keyPassword={0}", (_PW,)),
    ("htpasswd", "admin:$apr1${0}", (lambda fake: fake.chars(8) + "$" + fake.chars(22),)),
    ("shadow", "root:$6${0}:19000:0:99999:7:::", (lambda fake: fake.chars(16) + "$" + fake.chars(86),)),
    # Connection strings
    ("postgres url", "postgresql://app:{0}@db.corp.example:5432/app", (_chars(20),)),
    ("mysql url", "mysql+pymysql://root:{0}@127.0.0.1/app", (_PW,)),
    ("mongo url", "mongodb+srv://app:{0}@cluster0.abc.mongodb.net/?retryWrites=true", (_chars(16),)),
    ("redis url", "redis://:{0}@cache:6379/0", (_chars(24),)),
    ("amqp url", "amqp://guest2:{0}@mq:5672//", (_chars(18),)),
    ("libpq words", "host=db user=app password={0} dbname=app", (_PW,)),
    ("odbc", "Driver={{SQL}};Server=db;Uid=app;Pwd={0};", (_PW,)),
    ("ado", "Server=db;User Id=app;Password={0};Encrypt=true", (_PW,)),
    (
        "azure storage",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={0}==;EndpointSuffix=core",
        (_chars(86),),
    ),
    (
        "azure bus",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=R;SharedAccessKey={0}=",
        (_chars(43),),
    ),
    ("jdbc", "jdbc:postgresql://db/app?user=app&password={0}", (_chars(20),)),
    # Keys and tokens of services
    ("github classic", "remote: {0}", (_tagged("gh", "p_", count=36),)),
    ("github fine", "set {0} as the token", (_tagged("github_", "pat_", count=82),)),
    ("github app", "token {0} expires", (_tagged("gh", "s_", count=36),)),
    ("gitlab pat", "found {0}", (lambda fake: "gl" + "pat-" + fake.urlsafe(20),)),
    ("gitlab runner", "registered with {0}", (lambda fake: "gl" + "rt-" + fake.urlsafe(20),)),
    (
        "slack bot",
        "xox client {0}",
        (lambda fake: "xo" + "xb-" + fake.chars(12, "1234567890") + "-" + fake.chars(24),),
    ),
    (
        "slack webhook",
        "https://hooks.slack.com/services/T{0}",
        (lambda fake: fake.upper(9) + "/B" + fake.upper(9) + "/" + fake.chars(24),),
    ),
    (
        "discord webhook",
        "https://discord.com/api/webhooks/1157{0}",
        (lambda fake: fake.chars(14, "123456789") + "/" + fake.urlsafe(68),),
    ),
    (
        "teams webhook",
        "https://corp.webhook.office.com/webhookb2/{0}",
        (lambda fake: fake.uuid() + "@" + fake.uuid() + "/IncomingWebhook/" + fake.hex(32),),
    ),
    (
        "telegram bot",
        "https://api.telegram.org/bot{0}/sendMessage",
        (lambda fake: fake.chars(10, "123456789") + ":AA" + fake.urlsafe(33),),
    ),
    ("stripe live", "stripe.api_key = '{0}'", (_tagged("sk_", "live_", count=24),)),
    ("stripe webhook", "endpoint uses {0}", (_tagged("wh", "sec_", count=32),)),
    (
        "openai project",
        "client = OpenAI('{0}')",
        (lambda fake: "sk-" + "proj-" + fake.urlsafe(74) + "T3Blbk" + "FJ" + fake.urlsafe(74),),
    ),
    (
        "openai old",
        "OpenAI('{0}')",
        (lambda fake: "sk" + "-" + fake.chars(20) + "T3Blbk" + "FJ" + fake.chars(20),),
    ),
    ("anthropic", "use {0} for this", (lambda fake: "sk-" + "ant-api03-" + fake.urlsafe(93) + "AA",)),
    ("google api", "maps key {0}", (lambda fake: "AI" + "za" + fake.urlsafe(35),)),
    ("google oauth", "got {0} from the flow", (lambda fake: "ya" + "29." + fake.urlsafe(120),)),
    ("google secret", "client {0}", (lambda fake: "GOC" + "SPX-" + fake.urlsafe(28),)),
    (
        "azure client secret",
        "AZURE_CLIENT_SECRET={0}",
        (lambda fake: fake.chars(3) + "8Q~" + fake.urlsafe(34),),
    ),
    (
        "azure sas",
        "https://x.blob.core.windows.net/c?sv=2022&sp=r&sig={0}",
        (lambda fake: fake.chars(43) + "%3D",),
    ),
    ("hugging face", "login(token='{0}')", (_tagged("h", "f_", count=34),)),
    ("sendgrid", "mail via {0}", (lambda fake: "S" + "G." + fake.urlsafe(22) + "." + fake.urlsafe(43),)),
    ("digitalocean", "doctl auth {0}", (lambda fake: "dop_" + "v1_" + fake.hex(64),)),
    ("pulumi", "pulumi {0}", (lambda fake: "pu" + "l-" + fake.hex(40),)),
    ("vault", "vault login {0}", (lambda fake: "hv" + "s." + fake.urlsafe(90),)),
    ("age key", "AGE-SECRET-KEY-1{0}", (_tagged(count=58, alphabet="QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),)),
    ("jwt alone", "session {0}", (_JWT,)),
    ("databricks", "databricks {0}", (lambda fake: "da" + "pi" + fake.hex(32),)),
    ("linear", "linear {0}", (_tagged("lin_", "api_", count=40),)),
    ("notion", "notion {0}", (_tagged("ntn", "_", count=46),)),
    ("shopify", "shop {0}", (lambda fake: "shp" + "at_" + fake.hex(32),)),
    ("groq", "groq {0}", (_tagged("gs", "k_", count=52),)),
    ("xai", "grok {0}", (_tagged("xa", "i-", count=80),)),
    ("replicate", "replicate {0}", (_tagged("r8", "_", count=37),)),
    # Private keys
    (
        "pem lines",
        "-----BEGIN RSA " + "PRIVATE KEY-----\n{0}\n{1}\n-----END RSA " + "PRIVATE KEY-----",
        (_chars(64), _chars(64)),
    ),
    (
        "pem one line",
        '"private_key": "-----BEGIN ' + 'PRIVATE KEY-----\\n{0}\\n{1}\\n-----END PRIVATE KEY-----\\n"',
        (_chars(64), _chars(64)),
    ),
    (
        "pem env",
        'KEY="-----BEGIN OPENSSH ' + 'PRIVATE KEY-----\\n{0}\\n-----END OPENSSH PRIVATE KEY-----"',
        (_chars(70),),
    ),
    ("pem cut", "-----BEGIN EC " + "PRIVATE KEY-----\n{0}\n{1}\n[cut]", (_chars(64), _chars(64))),
    # Commands
    ("option password", "mysqldump --user root --password {0} app", (_PW,)),
    ("option password equals", "tool --password={0} run", (_PW,)),
    ("option p glued", "mysql -u root -p{0} app", (_PW,)),
    ("sshpass", "sshpass -p {0} ssh root@10.0.0.4", (_PW,)),
    ("sshpass quoted", "sshpass -p '{0}' scp a root@10.0.0.4:", (_PW,)),
    ("pgpassword", "PGPASSWORD={0} psql -h db -U app", (_PW,)),
    ("mysql pwd", "MYSQL_PWD={0} mysql -u root", (_PW,)),
    ("curl user", "curl -u admin:{0} https://jenkins.corp.example/api", (_PW,)),
    ("curl user long", "curl --user 'admin:{0}' https://jenkins.corp.example/api", (_PW,)),
    ("option token", "gh auth --token {0}", (_chars(40),)),
    ("option api key", "tool --api-key {0} run", (_chars(32),)),
    ("echo sudo", "echo {0} | sudo -S apt-get update", (_PW,)),
    ("echo passwd", "echo 'root:{0}' | chpasswd", (_PW,)),
    ("openssl pass", "openssl enc -d -aes256 -pass pass:{0} -in a", (_PW,)),
    ("zip password", "unzip -P {0} archive.zip", (_PW,)),
    ("redis cli", "redis-cli -a {0} ping", (_PW,)),
    ("ldap", "ldapsearch -D cn=admin -w {0} -b dc=corp", (_PW,)),
    ("sql create user", "CREATE USER app WITH PASSWORD '{0}';", (_PW,)),
    ("sql identified", "CREATE USER 'app'@'%' IDENTIFIED BY '{0}';", (_PW,)),
    ("python getpass", "smtp.login('bot@corp.example', '{0}')", (_PW,)),
    # URLs and cookies
    ("url token", "https://api.corp.example/v1?access_token={0}&page=2", (_chars(40),)),
    ("url key", "https://api.corp.example/v1?q=a&api_key={0}", (_chars(32),)),
    ("url reset", "https://app.corp.example/reset?token={0}", (_safe(43),)),
    ("url aws signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature={0}", (_hex(64),)),
    ("cookie header", "Cookie: theme=dark; sessionid={0}", (_chars(32),)),
    ("set cookie", "Set-Cookie: session={0}; HttpOnly; Path=/", (_safe(60),)),
    ("cookie connect", "set-cookie: connect.sid=s%3A{0}; Path=/", (_safe(32),)),
    ("cookie curl", "curl -b 'JSESSIONID={0}' https://corp.example", (_hex(32),)),
    ("csrf json", '{{"refresh_token": "{0}"}}', (_safe(60),)),
    ("oauth form", "grant_type=client_credentials&client_id=a&client_secret={0}", (_safe(36),)),
    ("json login", '{{"username": "admin", "password": "{0}"}}', (_PW,)),
    ("json login escaped", '-d "{{\\"user\\":\\"a\\",\\"password\\":\\"{0}\\"}}"', (_PW,)),
    ("python kwarg", "connect(host='db', user='app', password='{0}')", (_PW,)),
    ("yaml quoted", "  db_password: '{0}'", (_PW,)),
    ("camel case", "const dbPassword = '{0}';", (_PW,)),
    ("go struct", 'Config{{Password: "{0}"}}', (_PW,)),
    ("table password", "| user | password |\n|---|---|\n| admin | {0} |", (_PW,)),
)


def secret_cases() -> list[SecretCase]:
    """Return every text that holds secrets."""
    cases = []
    for name, template, makers in _TEMPLATES:
        fake = Fake(name)
        secrets = tuple(make(fake) for make in makers)
        cases.append(SecretCase(name, template.format(*secrets), secrets))
    return cases


Case = TypeVar("Case", SecretCase, HarmlessCase)


def split_cases(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Return the half that was looked at while rules were chosen, and the half that was not."""
    shuffled = list(cases)
    random.Random(15).shuffle(shuffled)  # noqa: S311
    middle = len(shuffled) // 2
    return shuffled[:middle], shuffled[middle:]
