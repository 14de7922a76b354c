"""Forms of other tools and harmless look-alikes, written before the rules were changed, not read until then.

`<v>` stands for a value that is drawn at run time, ¦ for the end of a line. The first letter says what is
drawn: a password, a token, a hash, a UUID or words.
"""

FORMS = r"""
p app.config['SECRET_KEY'] = '<v>'
p app.secret_key = "<v>"
h production:¦  secret_key_base: <v>¦
t   secret_key_base: "<v>",¦  live_view: [signing_salt: "QmVhcg"]
p signing_salt: "<v>"
h APP_SECRET=<v>
p "mail": {"options": {"auth": {"user": "postmaster", "pass": "<v>"}}}
t API_TOKEN_SALT=<v>
t APP_KEYS=<v>
p meilisearch --master-key=<v>
p typesense-server --data-dir=/d --api-key=<v>
p authorization {¦  user: app¦  password: <v>¦}
p nats --user app --password '<v>' pub x y
p requirepass <v>
p masterauth <v>
p ACL SETUSER app on ><v> ~* +@all
p KC_BOOTSTRAP_ADMIN_PASSWORD=<v> bin/kc.sh start-dev
p kcadm.sh config credentials --server http://k --realm master --user admin --password <v>
p MINIO_ROOT_USER=admin¦MINIO_ROOT_PASSWORD=<v>
p gitea admin user create --username ann --password '<v>' --email a@b.example
t [security]¦INTERNAL_TOKEN = <v>
t fernet_key = <v>
p airflow connections add db --conn-type postgres --conn-login app --conn-password '<v>'
p SUPERSET_SECRET_KEY='<v>'
p MB_DB_PASS=<v>
p       type: snowflake¦      account: acme¦      user: ann¦      password: '<v>'¦      role: X
p snowsql -a acme -u ann -o log_level=DEBUG # SNOWSQL_PWD=<v>
p clickhouse-client --host ch --user app --password '<v>' -q 'select 1'
p <users><default><password><v></password></default></users>
p cqlsh db 9042 -u cassandra -p '<v>'
p influx -username admin -password '<v>' -execute 'show databases'
p curl -X PUT http://admin:<v>@127.0.0.1:5984/db
p NEO4J_AUTH=neo4j/<v>
p arangosh --server.username root --server.password '<v>'
p MSSQL_SA_PASSWORD=<v>
p optionsBuilder.UseSqlServer("Server=.;Database=shop;User=sa;Password=<v>;TrustServerCertificate=True");
p "Default": "Host=db;Port=5432;Username=app;Password=<v>;Pooling=true"
p psycopg2.connect("dbname=shop user=app password='<v>' host=db")
p CREATE ROLE app LOGIN PASSWORD '<v>' VALIDUNTIL 'infinity';
p SET PASSWORD FOR 'app'@'%' = PASSWORD('<v>');
p CREATE LOGIN app WITH PASSWORD = N'<v>', CHECK_POLICY = OFF;
p db.createUser({ user: "app", pwd: "<v>", roles: ["readWrite"] })
p sqlplus scott/<v>@//db:1521/XE
p from mysql://root:<v>@localhost/shop into postgresql:///shop
p private static final String DB_PASSWORD = "<v>";
p DriverManager.getConnection("jdbc:postgresql://db/shop", "app", "<v>");
t Algorithm.HMAC256("<v>")
p new NetworkCredential("ann", "<v>")
p req.SetBasicAuth("ann", "<v>")
p cfg := Config{User: "app", Password: "<v>", Port: 5432}
t std::env::set_var("API_SECRET", "<v>");
p static JWT_SECRET: &'static str = "<v>";
p const secret = process.env.SESSION_SECRET ?? "<v>";
t TOKEN = os.getenv("BOT_TOKEN", "<v>")
p os.environ["DB_PASSWORD"] = "<v>"
p ssh.connect("10.0.0.4", username="ann", password="<v>")
t jwt.encode(payload, "<v>", algorithm="HS256")
t api_key: str = "<v>"
p httpx.Client(auth=httpx.BasicAuth("ann", "<v>"))
p app.use(session({ secret: '<v>', resave: false }))
t jwt.sign({ id }, '<v>', { expiresIn: '1h' })
t headers: { 'x-api-key': '<v>' }
t   private readonly apiKey = '<v>';
p 'connections' => ['mysql' => ['username' => 'app', 'password' => '<v>']],
p mysqli_connect('localhost', 'app', '<v>', 'shop');
p ENV['STRIPE_SECRET'] = '<v>'
p { :username => 'app', :password => '<v>' }
p config :shop, Shop.Repo, username: "app", password: "<v>", hostname: "db"
p val dbPassword: String = "<v>"
t static const String apiSecret = '<v>';
p local password = "<v>"
p {:user "app" :password "<v>"}
p services.x.adminPassword = "<v>";
p cn.Open "Provider=SQLOLEDB;Data Source=db;User ID=sa;Password=<v>;"
p New-LocalUser -Name ann -Password (ConvertTo-SecureString "<v>" -AsPlainText -Force)
p $Password = '<v>'
u set -gx NPM_TOKEN <v>
p ADMIN_PASS='<v>'; curl -s localhost
p podman login -u ci --password '<v>' quay.io
p nerdctl login -u ci -p <v> reg.acme.example
p buildah push --creds ci:<v> img docker://reg/img
p oras login -u ci -p <v> reg.acme.example
p argocd login cd.acme.example --username admin --password '<v>'
t rancher login https://r.acme.example --token token-ab12c:<v>
p cf login -a https://api.cf.example -u ann -p <v> -o acme
t ibmcloud login --apikey <v> -r eu-de
t sf org login access-token --instance-url https://a --set-token <v>
p nuget sources add -Name acme -Source https://n -UserName ci -Password '<v>'
p conan user -p <v> -r acme ci
p conan remote login acme ci -p <v>
p jf config add acme --url https://j --user ci --password '<v>'
h gem push a.gem --key acme # GEM_HOST_API_KEY=<v>
p RESTIC_PASSWORD='<v>' restic snapshots
w export BORG_PASSPHRASE=<v>
p 7z x -p<v> a.7z
p unzip -P '<v>' a.zip
p openvpn --config a.ovpn --auth-user-pass <(printf 'ann\n<v>\n')
t [Interface]¦PrivateKey = <v>¦Address = 10.0.0.2/32
t PresharedKey = <v>
p xfreerdp /v:host /u:ann /p:'<v>'
p psexec \\host -u ann -p <v> cmd
p vault login -method=userpass username=ann password=<v>
p consul kv put app/db_password '<v>'
p aws secretsmanager create-secret --name db --secret-string '<v>'
p aws ssm put-parameter --name /db/password --type SecureString --value '<v>'
p gcloud sql users set-password app --instance=i --password='<v>'
t echo '<v>' | wrangler secret put API_KEY
p railway variables --set 'ADMIN_PASSWORD=<v>'
t eas secret:create --name X --value <v>
p wp user create ann a@b.example --user_pass='<v>'
p drush user:password admin '<v>'
p wpa_passphrase Office '<v>'
p mosquitto_pub -h b -u app -P '<v>' -t t -m m
p You can sign in as ann@acme.example with password <v>
t my api token for staging: <v>
p use ann and <v> to log in, password included
p Admin password: `<v>`
p The client secret for the test tenant is "<v>".
p - user: ann¦- pass: <v>
w passphrase for the key is <v>
p Generated admin password: <v>
t Your new API token is: <v>¦Store it safely.
p | username | password |¦|---|---|¦| ann | <v> |
p username,password¦ann,<v>¦
t Root token: <v>
p Initial root password¦¦    <v>¦
p 2026-03-04 DEBUG login user=ann password=<v> ip=10.0.0.3
p Username: ann¦Password: <v>
p {"selector": "#password", "value": "<v>"}
p await page.fill('#password', '<v>')
p cy.get('input[name=password]').type('<v>')
p driver.find_element(By.ID, "password").send_keys("<v>")
"""

HARMLESS = r"""
password: str | None = None
token = request.headers.get('X-Token')
const { token, user } = useAuth();
secret: Mapped[str] = mapped_column(String(64))
password = Column(String(128), nullable=False)
if password != confirm_password:
auth = HTTPBasicAuth(user, password)
token_type: bearer
grant_type=password&username=ann
pass
    pass  # nothing to do
tests: 41 pass, 2 fail
the pass rate is 97.5 %
pass: 12 fail: 0
first pass: parse; second pass: emit
tokens: 1234 in, 567 out
total_tokens=18234
auth: required
auth: oauth2
auth = true
"auth": "none"
authMethod: 'apiKey'
credentials: 'include'
credentials: "same-origin"
with credentials from ~/.aws/credentials
secret: my-app-secrets
secretName: my-app-secrets
imagePullSecrets:¦  - name: regcred
salt = os.urandom(16)
salt = bcrypt.gensalt(rounds=12)
Add salt, pepper and butter
import * as Auth from './auth'
export const tokenStorage = new TokenStorage()
token: Token = field(default_factory=Token)
key: 'user.password.label'
t('login.password.placeholder')
label="Password" placeholder="Enter your password"
<label for="password">Password</label>
<TextField type="password" value={password} onChange={setPassword} />
getByLabel('Password').fill(user.password)
await page.fill('#password', process.env.E2E_PASSWORD)
browser_type {"element": "Search box", "text": "red shoes"}
{"element":"Username input","text":"ann"}
password -> hashed_password
Rename `password` -> `password_hash`
token -> AST node
The password is stored as a hash
the token is expired
the secret is rotated weekly
use the password reset form
use the password manager instead
use the token bucket algorithm
Use the secret store, not the env
login with SSO / SAML
login with google / github
sign in with user / group mapping
creds: see 1Password
credentials: see the wiki
Here is the API key documentation:¦¦https://docs.acme.example/keys
IDENTIFIED BY PASSWORD
IDENTIFIED BY 'changeme'
CREATE TABLE users (id int, password varchar(255), token text)
INSERT INTO users (email, password) VALUES ($1, $2)
INSERT INTO users (email, password) VALUES (?, ?)
UPDATE users SET password = :password WHERE id = :id
SELECT token, secret FROM sessions WHERE id = 4
'password': ['required', 'string', 'min:8', 'confirmed'],
'password' => 'required|string|min:8',
'password': [validators.required]
password: Joi.string().min(8).required()
password: z.string().min(8)
password=getpass.getpass()
PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']
AUTH_USER_MODEL = 'accounts.User'
AUTH_PASSWORD_VALIDATORS = []
TOKEN_URL=https://login.acme.example/oauth/token
AUTH_DOMAIN=acme.eu.auth0.com
SECRET_NAME=prod/shop/db
PASSWORD_FILE=/run/secrets/db_password
POSTGRES_PASSWORD_FILE=/run/secrets/pg
SESSION_COOKIE_NAME=shop_session
TOKEN_TTL=3600
AUTH_MODE=oidc-code-flow
SESSION_KEY_PREFIX=sess:shop:
CACHE_KEY=node-modules-linux-x64
RECORD_KEY=id
docker login ghcr.io -u $USER --password-stdin
docker run -p 8080:80 nginx
docker run -u 1000:1000 alpine id
ssh-keygen -t ed25519 -N '' -f key
mkdir -p src/auth/login
cp -p secrets.example.yml secrets.yml
git log -p -- src/auth/token.py
psql -U app -p 5433 shop
snyk test --severity-threshold=high
snyk auth
gh auth login
gh auth status --show-token
fly auth token
az keyvault secret list --vault-name acme
poetry config virtualenvs.in-project true
mc ls local/bucket
bw unlock --check
bundle config set --local path vendor/bundle
pytest -k 'test_login and not token'
grep -rn 'password' src/
rg -n "secret|token" --type py
sed -i 's/token/session/' a.py
#define TOKEN_MAX_LENGTH 64
#define AUTH_HEADER "Authorization"
const TOKEN_KEY: &str = "auth_token";
const SECRET_HEADER = 'X-Hub-Signature-256'
let(:token) { create(:token) }
let(:password) { user.password }
SecretStr(settings.password)
client.login(user, password)
define('AUTH_COOKIE', 'wordpress_' . COOKIEHASH);
JSON key: access_token, expires_in, token_type
"tokenEndpoint": "/oauth/token"
class PasswordResetTokenGenerator(TokenGenerator):
def test_password_too_short(self):
FAILED tests/test_auth.py::test_token_refresh - AssertionError
Password strength: weak
Password must contain: one digit
password: hunter
password: ********
token=***
secret: [hidden]
PASSWORD=${DB_PASSWORD:-postgres}
password: {{ .Values.db.password }}
password: !vault |
password: $(op read op://x/y/z)
salt: int = 16
pat = re.compile(r'\d+')
pat: str = '*.py'
session_key = self.session_store.create()
New value: 42
New value: enabled
Username: ann
Unseal Keys: 5, threshold 3
"""
