"""Say what a secret looks like: the forms of vendors' keys, the names people give secrets, their values."""

import re
from itertools import pairwise
from typing import Final, NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.records.run_words import REDACTED

PLACEHOLDER_START: Final = REDACTED

_ALNUM: Final = r"[A-Za-z0-9]"
_WORDY: Final = r"[A-Za-z0-9_\-]"
_HEX: Final = r"[A-Fa-f0-9]"


class Span(NamedTuple):
    """Where a secret stands in a text."""

    start: int
    end: int
    kind: str
    # A vendor's form says more than a name beside the value: the lower rank names the placeholder.
    rank: int


BY_FORM, BY_PLACE, BY_NAME, BY_CONTEXT, BY_ECHO = range(5)


class VendorRule(NamedTuple):
    """A key that names its vendor: a prefix that ends in a separator, then a body.

    `lead` characters before the prefix belong to the key. `is_mixed` asks for a digit and an unbroken
    stretch, where the prefix alone could be the start of an ordinary hyphenated word, and for capitals and
    small letters in it where the prefix follows a hyphen.
    """

    kind: str
    prefix: str
    body: re.Pattern[str]
    lead: int = 0
    is_mixed: bool = False


def _vendor(
    kind: str, prefixes: str, body: str, *, lead: int = 0, is_mixed: bool = False
) -> list[VendorRule]:
    pattern = lazy_pattern(body)
    return [VendorRule(kind, prefix, pattern, lead, is_mixed) for prefix in prefixes.split()]


# Longer prefixes come before the shorter ones that they contain.
VENDOR_RULES: Final[tuple[VendorRule, ...]] = (
    *_vendor("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM + "{30,255}"),
    *_vendor("github-token", "github_pat_", r"\w{36,255}"),
    *_vendor(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent-",
        r"[\w.\-]{20,300}",
    ),
    *_vendor("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxc- xoxd- xapp-", r"[\w.%\-]{16,512}"),
    *_vendor("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM + "{16,255}"),
    *_vendor("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,255}"),
    *_vendor("anthropic-key", "sk-ant-", _WORDY + "{20,255}"),
    *_vendor("openrouter-key", "sk-or-", _WORDY + "{24,255}", is_mixed=True),
    *_vendor("openai-key", "sk-", "(?!ant-|or-)" + _WORDY + "{20,255}", is_mixed=True),
    *_vendor("elevenlabs-key", "sk_", _HEX + "{40,64}", is_mixed=True),
    *_vendor("google-oauth-secret", "GOCSPX-", _WORDY + "{20,64}"),
    *_vendor("google-oauth-token", "ya29.", r"[\w.\-]{20,2048}"),
    *_vendor("npm-token", "npm_", _ALNUM + "{30,255}"),
    *_vendor("pypi-token", "pypi-", _WORDY + "{32,512}", is_mixed=True),
    *_vendor("huggingface-token", "hf_ api_org_", _ALNUM + "{30,64}"),
    *_vendor("sendgrid-key", "SG.", r"[\w\-]{16,64}\.[\w\-]{16,128}"),
    *_vendor("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX + "{32,64}"),
    *_vendor("azure-client-secret", "7Q~ 8Q~", r"[\w.~\-]{28,40}", lead=3),
    *_vendor("shopify-token", "shpat_ shpca_ shppa_ shpss_", _HEX + "{32}"),
    *_vendor("square-token", "sq0atp- sq0csp- sq0idp-", _WORDY + "{22,64}"),
    *_vendor("mailgun-key", "key-", r"[0-9a-f]{32}(?![0-9a-zA-Z])", is_mixed=True),
    *_vendor("brevo-key", "xkeysib-", r"[0-9a-f]{32,64}-\w{8,32}"),
    *_vendor("postman-key", "PMAK-", _HEX + r"{24}-[0-9a-f]{34}"),
    *_vendor("newrelic-key", "NRAK-", "[A-Z0-9]{27}"),
    *_vendor("heroku-key", "HRKU-", _WORDY + "{36,64}"),
    *_vendor("docker-token", "dckr_pat_ dckr_oat_", _WORDY + "{20,64}"),
    *_vendor("linear-key", "lin_api_ lin_oauth_", _ALNUM + "{32,64}"),
    *_vendor("notion-token", "ntn_ secret_", _ALNUM + "{40,64}", is_mixed=True),
    *_vendor("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{32,512}"),
    *_vendor("grafana-token", "glsa_ glc_", r"[A-Za-z0-9+/=_]{32,512}"),
    *_vendor("vault-token", "hvs. hvb. hvr.", _WORDY + "{20,300}"),
    *_vendor("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa.", r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{32,64}"),
    *_vendor("terraform-token", ".atlasv1.", r"[\w=\-]{40,120}", lead=14),
    *_vendor("pulumi-token", "pul-", _HEX + "{40}", is_mixed=True),
    *_vendor("rubygems-key", "rubygems_", _HEX + "{40,64}"),
    *_vendor("figma-token", "figd_ figo_", _WORDY + "{32,64}"),
    *_vendor("replicate-token", "r8_", _ALNUM + "{32,64}"),
    *_vendor("groq-key", "gsk_", _ALNUM + "{40,64}"),
    *_vendor("xai-key", "xai-", _ALNUM + "{40,128}"),
    *_vendor("perplexity-key", "pplx-", _ALNUM + "{32,64}"),
    *_vendor("nvidia-key", "nvapi-", _WORDY + "{40,128}"),
    *_vendor("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{8,16}"),
    *_vendor("tailscale-key", "tskey-auth- tskey-api- tskey-client-", _WORDY + "{16,128}", is_mixed=True),
    *_vendor("fly-token", "fm2_ fo1_", r"[\w+/=\-]{32,2048}", is_mixed=True),
    *_vendor("supabase-key", "sbp_ sb_secret_", _WORDY + "{24,64}", is_mixed=True),
    *_vendor("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.\-]{32,64}"),
    *_vendor("netlify-token", "nfp_", _ALNUM + "{36,64}"),
    *_vendor("resend-key", "re_", r"(?=\w{0,40}[A-Z])[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32}", is_mixed=True),
    *_vendor("age-key", "AGE-SECRET-KEY-", "1[A-Z0-9]{58}"),
    *_vendor("sonar-token", "sqp_ squ_ sqa_", "[0-9a-f]{40,64}"),
    *_vendor("pinecone-key", "pcsk_", r"\w{40,90}", is_mixed=True),
    *_vendor("vercel-token", "vcp_ vcr_ vca_ vci_ vck_", _ALNUM + "{24,80}", is_mixed=True),
    *_vendor("neon-key", "napi_", _ALNUM + "{40,80}", is_mixed=True),
    *_vendor("e2b-key", "e2b_", "[0-9a-f]{40,64}"),
    *_vendor("circleci-token", "CCIPAT_", r"\w{40,90}"),
    *_vendor("clojars-token", "CLOJARS_", "[0-9a-f]{60}"),
    *_vendor("hubspot-token", "pat-na1- pat-na2- pat-eu1-", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    *_vendor("1password-token", "ops_", r"eyJ[\w\-]{80,2000}"),
    *_vendor("dropbox-token", "sl.", r"(?:u\.)?[A-Za-z0-9_\-]{100,400}", is_mixed=True),
    *_vendor("amazon-mws-token", "amzn.mws.", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    *_vendor("buildkite-token", "bkua_", "[0-9a-f]{40,64}"),
    *_vendor("cursor-key", "crsr_", "[0-9a-f]{64}"),
    *_vendor("sourcegraph-token", "sgp_", _ALNUM + "{40,80}", is_mixed=True),
    *_vendor("posthog-key", "phx_", _ALNUM + "{40,60}", is_mixed=True),
    *_vendor("typeform-token", "tfp_", r"[\w\-]{40,80}", is_mixed=True),
    *_vendor("readme-key", "rdme_", _ALNUM + "{40,80}", is_mixed=True),
    *_vendor("prefect-key", "pnu_", _ALNUM + "{36,40}", is_mixed=True),
    *_vendor("contentful-token", "CFPAT-", r"[\w\-]{40,50}", is_mixed=True),
    # Our own: `access/service.py` draws 32 bytes. No name that begins so mixes capitals and small letters.
    *_vendor("archivist-token", "arch_", r"(?=[\w\-]{0,42}[A-Z])(?=[\w\-]{0,42}[a-z])[\w\-]{43}(?![\w\-])"),
    *_vendor("tavily-key", "tvly-", "(?:dev-|prod-)?" + _ALNUM + "{32,40}", is_mixed=True),
)


# By the last three characters of the prefix: a text may be full of prefixes.
VENDORS_BY_END: Final[dict[str, list[VendorRule]]] = {}
for _rule in VENDOR_RULES:
    VENDORS_BY_END.setdefault(_rule.prefix[-3:], []).append(_rule)


def _separator_pattern(separator: str) -> re.Pattern[str]:
    """Match a separator with one of the prefixes before it and sixteen key characters behind.

    A pattern that begins with one plain character is ten times as fast as a search for each prefix, and three
    times as fast as one pattern for all separators.
    """
    by_length: dict[int, list[str]] = {}
    for rule in VENDOR_RULES:
        if rule.prefix.endswith(separator):
            by_length.setdefault(len(rule.prefix), []).append(re.escape(rule.prefix))
    before = "|".join(f"(?<={'|'.join(prefixes)})" for prefixes in by_length.values())
    # Only the keys with a tilde or a dot have dots and tildes in them.
    body = r"[A-Za-z0-9_.~\-]" if separator in "~." else _WORDY
    return lazy_pattern(f"{re.escape(separator)}(?={body}{{16}})(?:{before})")


# Short words, dates and ids: half of the texts in a log, and none that a rule below takes for a secret.
PLAIN_TEXT: Final = lazy_pattern(r"(?:[A-Za-z_\-./]{1,20}|[0-9a-fTZ:.\-]{1,36})\Z")
LONGEST_PLAIN: Final = 36
# Every vendor's key has this much in one piece; a short path or name has not, and needs no other pattern.
VENDOR_BODY: Final = lazy_pattern(r"[A-Za-z0-9_.~\-]{16}")
VENDOR_SEPARATORS: Final = tuple((separator, _separator_pattern(separator)) for separator in "_-.~")
_UNBROKEN: Final = lazy_pattern(_ALNUM + r"{10}")
_LONG_UNBROKEN: Final = lazy_pattern(_ALNUM + r"{24}")
_STRETCH: Final = lazy_pattern(_ALNUM + r"{16,}")
# A code of a terminal inside what may be a key.
SPLIT_BY_CODE: Final = lazy_pattern(r"[\w.~\-]\x1b[^\n]{1,40}?[@-~][\w.~\-]")
# What a key may follow: no word character, the last character of an escape that stands for none, or the mark
# of a removed line.
FRESH_START: Final = lazy_pattern(
    r"(?:(?:^|\n|\\n)-?|[^A-Za-z0-9_\-]|\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}|\x1b\[[\d;]*m)\Z"
)

# Forms without a separator. Each has a hint that survives in the text once all but capitals, digits, y and z
# are deleted: that makes one thin string in which looking for all of them costs next to nothing.
THIN_DELETE: Final = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789yz"))
# The names in a JWT's header have three letters, which puts an O where the first one ends; the first name in
# a token of Mapbox has one.
THIN_HINT: Final = re.compile(
    rb"A(?:KI[AD]|SIA|Iz|TATT3|TBB|KC|BSK)|GOOG1|EAA[A-Z]|LTAI|SK\d{6}|yJ(?:1I|[A-Z0-9yz]{0,4}O)|PRIVATEKEY"
)
CAPITAL_RULES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("aws-access-key", lazy_pattern(r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    ("google-api-key", lazy_pattern(r"AIza[A-Za-z0-9_\-]{35}(?![A-Za-z0-9])")),
    ("twilio-key", lazy_pattern(r"SK[0-9a-f]{32}(?![A-Za-z0-9])")),
    ("atlassian-token", lazy_pattern(r"ATATT3[\w\-=]{40,400}")),
    ("bitbucket-token", lazy_pattern(r"ATBB(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])")),
    ("artifactory-key", lazy_pattern(r"AKCp(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{60,80}(?![A-Za-z0-9+/=])")),
    (
        "aws-bedrock-key",
        lazy_pattern(r"ABSK(?=[A-Za-z]{0,60}\d)[A-Za-z0-9+/]{100,300}={0,2}(?![A-Za-z0-9+/=])"),
    ),
    ("google-hmac-key", lazy_pattern(r"GOOG1(?=[A-Z]{0,50}\d)[A-Z0-9]{19,60}(?![A-Za-z0-9])")),
    # Bytes that are zero look like this in base64: neither more of it nor a line of it may stand beside.
    (
        "access-token",
        lazy_pattern(
            r"(?<![+/=])(?<![A-Za-z0-9+/]{40}\n)EAA[A-Z](?=\w{0,60}\d)[\w\-]{56,400}(?![\w+/=\-]|\r?\n[\w+/]{60})"
        ),
    ),
    (
        "alibaba-key",
        lazy_pattern(r"LTAI(?=[A-Z0-9]{0,20}[a-z])(?=[a-z0-9]{0,20}[A-Z])[A-Za-z0-9]{12,20}(?![A-Za-z0-9])"),
    ),
    ("tencent-key", lazy_pattern(r"AKID(?=[A-Za-z]{0,32}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])")),
    # One without a dot is none. It is matched all the same, so that it is not looked for inside it again.
    ("jwt", lazy_pattern(r"eyJ[\w\-]{8,4096}+(?:\.[\w\-]{8,8192}+(?:\.[\w\-]{0,4096}){0,3})?")),
)
# The secret beside an access key id, in whatever table, listing or sentence. It has no form of its own, so it
# is looked for only near an id.
AWS_SECRET: Final = lazy_pattern(
    r"(?<![A-Za-z0-9+/=])(?=[^A-Z]{0,39}[A-Z])(?=[^a-z]{0,39}[a-z])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)
AWS_REACH: Final = 256
PEM_BEGIN: Final = lazy_pattern(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
PEM_END: Final = lazy_pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# The lines of a key that was cut off: stretches of base64, with what quoting and escaping put between them.
PEM_LINES: Final = lazy_pattern(
    r"(?:(?:\s|\\[nrt]|[\"'>|,]|(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{0,80}+)*"
    r"[A-Za-z0-9+/=]{16,}+)+"
    r"(?:(?:\s|\\[nrt])*[A-Za-z0-9+/=]{1,64}(?=\s*+(?:\Z|[\"'])))?"
)
# A line of a key before its END line, with what listings and diffs put before it.
PEM_LINE: Final = lazy_pattern(r"[ \t+\-|>]{0,12}(?:\d{1,6}[ \t:|]{1,4})?[A-Za-z0-9+/=]{1,128}[ \t\r]{0,4}")
PEM_MAX_CHARS: Final = 16_000

# With a slash in it, it begins with no port and has a digit and a letter.
URL_PASSWORD: Final = lazy_pattern(
    r"://[^\s/:@\"'<>`\\]{0,128}:(?:([^\s/\"'<>`\\]{1,256})"
    r"|(?!\d{1,5}/)(?=[^\s@]{0,128}[A-Za-z])(?=[^\s@\d]{0,128}\d)([^\s@\"'<>`\\?#]{1,128}))@(?=[\w\[.\-$%{])"
)
URL_USER_TOKEN: Final = lazy_pattern(r"://([A-Za-z0-9_\-]{20,256})@(?=[\w\[])")
URL_SECRET_PATH: Final = lazy_pattern(
    r"://(?:hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{20,120})"
    r"|(?:\w{1,10}\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(\d{10,24}/[\w\-]{30,120})"
    r"|[\w\-]{1,60}\.webhook\.office\.com/webhookb2/([\w@\-]{1,120}/IncomingWebhook/[\w/\-]{20,160})"
    r"|api\.telegram\.org/(?:file/)?bot(\d{6,12}:[\w\-]{30,50}))"
)
URL_REST: Final = lazy_pattern(r"://[^\s\"'<>`\\]{0,8000}")
URL_SIGNATURE: Final = lazy_pattern(
    r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature|X-Amz-Security-Token)=([\w%+/=\-]{16,4096})", re.IGNORECASE
)

# Names. Patterns run on the lower-cased text and begin with one plain letter or word, which the regex engine
# finds fast: k is rarer than the t of token.
_TAIL: Final = (
    r"(?P<tail>(?:[_\- ]?\d{1,2}(?!\d)"
    r"|[_\-](?:value|data|prod|production|dev|staging|live|test|base64|b64|raw|default|plain))?)"
)
_SEP: Final = (
    r"(?P<close>(?:\\{0,3}[\"'`]|\*\*)?\]?)"
    # A type between name and value: `api_key: str = "…"`, `const KEY: &'static str = "…"`.
    r"(?P<sep>[ \t]{0,8}:[ \t]?(?:&(?:'[a-z]{1,12} )?)?[a-z_][\w\[\].?]{0,40}(?: ?\| ?none)?[ \t]?=(?![=>])"
    r"[ \t]{0,4}(?=[\"'bruf\\])"
    r"|[ \t]{0,16}(?::=|=>|->|[=!]==?|=|:(?!:))\*{0,2}[ \t]{0,16}(?:\[(?=\\{0,3}[\"']))?"
    # A quoted name, and the value on the next line.
    r"(?:(?<=[\"']:)\r?\n[ \t]{0,40}(?=[\"']))?"
    r"|>(?=[^<\n]{1,200}</)"
    # Arguments, defaults (`process.env.JWT_SECRET || "…"`) and blocks (`let(:token) { "…" }`).
    r"|,[ \t]{0,16}(?=\\{0,3}[\"'])|\((?=[\"'])"
    r"|\)?[ \t]{1,4}(?:\|\||\?\?|or)[ \t]{1,4}(?=[\"'])|\)[ \t]?\{[ \t]?(?=[\"'])"
    r"|(?:[ \t]for[ \t][^\n:=,;\"'`]{1,40}?)?[ \t]{1,2}(?:is|ist|lautet|est):?[ \t]{1,2}"
    r"|[ \t]\([^()\n:=]{1,40}\):[ \t]{1,4}"
    # A bare word after a space is prose unless something in it is no letter.
    r"|[ \t]{1,4}(?=[\"']|[a-z]{0,64}[^a-z\s.,:;()\[\]=]))"
)


NAMES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "p",
        lazy_pattern(
            r"p(?:(?<=mot de p)asse|ass(?:word|wd|phrase|wort|code)?|wd?|epper|at(?<=_pat))" + _TAIL + _SEP
        ),
    ),
    ("secret", lazy_pattern(r"secret(?:[_\-]?(?:string|key[_\-]?base))?" + _TAIL + _SEP)),
    ("k", lazy_pattern(r"k(?:(?<=tok)en|ey)" + _TAIL + _SEP)),
    *(
        (word, lazy_pattern(word + r"(?:ential)?s?" * (word == "cred") + _TAIL + _SEP))
        for word in ("salt", "_session", "cred")
    ),
)
# By the first three letters of what was found; anything else is a secret.
NAME_KINDS: Final = {"pas": "password", "pwd": "password", "ken": "token", "key": "api-key"}
SECRET_LABEL: Final = lazy_pattern(r"(?i:passw|passphrase|secret|\btoken|_token|api.?key|credential)")
KEY_LEAD: Final = lazy_pattern(r"(?:api|access|secret|private|unseal|license|master) \Z")
# How long a name may be, and with `private ` before it.
NAME_REACH: Final = 48
_LONGEST_NAME: Final = NAME_REACH + 8
WHOLE_NAME: Final = {
    "password": lazy_pattern(r".*pass(?:word|wd|phrase|wort|code)|.*pwd|\w*[_\-](?:pass|pw)|passe?|pw"),
    "secret": lazy_pattern(r".*secret.*", longest=_LONGEST_NAME),
    # Marks of a page, a lock or a repeated request are drawn by chance too, but open nothing.
    "token": lazy_pattern(
        r"(?!(?:.*[_.\-])?(?:\w*next\w*|\w*page|pagination|\w*continuation|sync|resume|starting|client|\w*request"
        r"|\w*lock|\w*idempotency|publickey)[_.\-]?token).*",
        longest=_LONGEST_NAME,
    ),
    "api-key": lazy_pattern(
        r"(?:.*[_.\-])?\w*(?:api|access|secret|private|encrypt(?:ion)?|signing|signature|account|auth|master|license"
        r"|services?|subscription|deploy|ssh|client|admin|app|application|storage|functions|webhook|hmac|crypto|aes"
        r"|jwt|session|cookie|fernet|unseal|server|role|bot|maps|integration|ingest|write|rsa|consumer)"
        r"[_.\- ]?key",
        longest=_LONGEST_NAME,
    ),
}
# As it is written: `SSHPASS`, `SmtpPass`, but not `bypass`.
PASS_NAME: Final = lazy_pattern(
    r"(?!BYPASS|COMPASS|ENCOMPASS|SURPASS|OVERPASS)[A-Z][A-Z0-9]{0,40}(?:PASS|PW)|\w{0,40}[a-z0-9]Pass"
)
# What is mixed into hashes, and what a person or a session is let in with.
OTHER_SECRET: Final = lazy_pattern(
    r"(?:\w{0,60}_)?(?:SALT|PEPPER|CREDS?|CREDENTIALS?)|\w{1,60}_(?:PAT|SESSION)"
    r"|(?:[\w.\-]{0,60}[_\-.])?(?:salt|pepper|creds?|credentials?)|\w{0,60}[a-z](?:Salt|Pepper|Credentials?)"
)
# Any other key, as it is written: `OPENAI_KEY`, `PresharedKey`, `x-acme-key`. Keys of tables, caches and
# locks open nothing, nor do public ones.
OTHER_KEY: Final = lazy_pattern(r"[A-Z][A-Z0-9_]{1,60}KEY|[\w.\-]{1,60}(?:[_\-.]key|[a-z0-9]Key)")
NAME_WORD: Final = lazy_pattern(r"[A-Z0-9]+(?![a-z])|[A-Z]?[a-z0-9]+")
_HARMLESS_KEY_WORDS: Final = """
    any anon block bucket build cache chat client column component composite config content conversation
    data dedup dedupe dict doc document entity enum event feature field file flag foreign group hash host
    hot i18n id idem idempotency image index item job json kid label list locale lock lookup map menu
    message metric node object order partition path press primary pub public publishable query react
    registry request room route routing row run s3 section short site sort span state store sub
    surrogate tab tag task theme thread trace translation unique verification verify verifying websocket
    widget
"""
HARMLESS_KEYS: Final = frozenset(re.findall(r"\w+", _HARMLESS_KEY_WORDS))
# Either a pair (`auth=("user", "password")`) or a header with or without a scheme.
AUTH: Final = lazy_pattern(
    r"auth(?:[ \t]?=?[ \t]?\([ \t\n]{0,4}[\"'][^\"'\n]{1,80}[\"'],[ \t\n]{0,4}"
    r"[\"'](?P<pair>[^\"'\n]{4,200})[\"']"
    r"|(?:orization|ident)?(?:\\{0,3}[\"'`])?\]?[ \t]{0,4}(?:[:=]|(?P<comma>,)(?=[ \t]{0,2}\\{0,3}[\"']))"
    r"[ \t]{0,4}(?:[bruf]{0,2}(?P<quote>\\{0,3}[\"'`]))?"
    r"(?P<scheme>(?:bearer|basic|token|digest|apikey|negotiate|bot|ssws|splunk)[ \t]{1,4})?)"
)
# Where the header's name is not beside it: logs, and listings of names and values.
BEARER: Final = lazy_pattern(r"bearer[ \t]{1,2}(?=[a-z0-9._~+/\-]{16})")
AUTH_VALUE: Final = lazy_pattern(r"[A-Za-z0-9._~+/=\-]{6,8192}")
COOKIE_HEADER: Final = lazy_pattern(
    r"cookie2?(?:\\{0,3}[\"'`])?\]?[ \t]{0,4}(?:[:=]|,(?=[ \t]?\\{0,3}[\"'])|[ \t])"
    r"[ \t]{0,4}(?:[bruf]{0,2}\\{0,3}[\"'`])?(?=[\w.\-]{1,80}=)"
)
COOKIE_PAIR: Final = lazy_pattern(r"([\w.\-]{1,80})=([^\s;,()\"'\\`]{0,4096})(?:;[ \t]{0,4})?")
COOKIE_ATTRIBUTES: Final = frozenset(
    {"path", "domain", "expires", "max-age", "samesite", "version", "priority"}
)
# A Secret of Kubernetes, as YAML or JSON, plain or escaped: every value in its data is a secret.
QUOTE_MARK: Final = r"\\{0,3}[\"']"
_COLON: Final = r"[ \t]{0,4}:[ \t]{0,4}"
LINE_END: Final = r"(?:\r?\n|\\n)"
K8S_SECRET: Final = lazy_pattern(rf"kind(?:{QUOTE_MARK})?{_COLON}(?:{QUOTE_MARK})?secret(?![\w\-])")
K8S_DOCUMENT: Final = lazy_pattern(rf"apiversion|{LINE_END}---")
K8S_REACH: Final = 65_536
K8S_DATA: Final = lazy_pattern(
    rf"(?:{LINE_END}(?P<indent>[ ]{{0,16}})|\b|(?={QUOTE_MARK}))(?:{QUOTE_MARK})?"
    rf"(?:stringdata|data)(?:{QUOTE_MARK})?{_COLON}"
    rf"(?=\{{|{LINE_END})"
)
K8S_ENTRY: Final = lazy_pattern(
    rf"(?:{LINE_END}(?P<indent>[ ]{{1,32}})|[{{,]\s{{0,40}})(?:{QUOTE_MARK})?[\w.\-]{{1,253}}"
    rf"(?:{QUOTE_MARK})?{_COLON}"
    rf"(?:{QUOTE_MARK}(?P<quoted>[^\"'\n\\]{{0,65536}}){QUOTE_MARK}"
    rf"|(?P<bare>[^\s\"'\\,{{}}|>][^\s\"'\\,{{}}]{{0,65536}}))"
    r"[ \t]{0,4}"
)
# `{ user: 'ann', pass: '…' }`
USER_FIELD: Final = lazy_pattern(r"\buser(?:name)?\\{0,3}[\"']?[ \t]{0,4}[:=][^\n{}]{0,80}\Z")
# "log in as user ann with the password …"
PROSE_LOGIN: Final = lazy_pattern(
    r"\b(?:user(?:name)?|log ?in|ssh|account)\b[^\n.;]{0,60}?[ ,](?:and|with|using),?[ \t]{1,2}(?:the[ ])?\Z"
)
# "deploy with the password …", "my password … does not work": no other word need say what it is for.
PROSE_USE: Final = lazy_pattern(r"\b(?:with|using|use|try)[ \t]{1,2}(?:(?:the|my|this)[ ])?\Z")
PROSE_OWN: Final = lazy_pattern(r"\b(?:the|my|our|this|new|old)[ \t]{1,2}\Z")
NETRC_LOGIN: Final = lazy_pattern(r"login[ \t]+\S{1,128}\s+\Z")
QUOTE_OPEN: Final = lazy_pattern(r"[bBrRuUfF@]{0,2}(\\{0,3}[\"'`])")
# Quotation marks around a whole sentence end a value in it too.
_CURLY: Final = "\u2018\u2019\u201c\u201d\u00ab\u00bb"
BARE_VALUE: Final = lazy_pattern(rf"[^\s\"'`{_CURLY},;&<>()\[\]{{}}|\\]{{1,512}}")
MARKS: Final = ",;&<>()[]{}|"
# A bare value with brackets and separators in it: up to white space, the next setting or a tag.
BARE_WITH_MARKS: Final = lazy_pattern(
    rf"(?:[^\s\"'`{_CURLY}\\,;&|<]"
    rf"|[,;&|](?![,;&|]|[\w.\- ]{{1,40}}[=:])|<(?![/!]|[a-z]{{1,12}}[ >/])){{1,512}}"
)
LINE_VALUE: Final = lazy_pattern(rf"[^\s\"'`{_CURLY}\\]{{1,512}}")
# A value is judged by its beginning; the rest of a very long one goes with it.
LONG_VALUE: Final = 512
LONG_REST: Final = lazy_pattern(r"[\w+/=.~%\-]{0,65536}")
# What stands before the name of a setting in a file, an address or on a command line, and not in code.
SETTING_LEADS: Final = ("?", "&", ";", "; ", ":", "/", "\n", "--", "--set ")
LINE_LEAD: Final = lazy_pattern(r"(?:\A|\n)[ \t\-]{0,16}\Z")
SECTION: Final = lazy_pattern(r"(?:\A|\n)\[[\w .:\-]{1,60}\][ \t]{0,4}\r?\n")
VALUE_END: Final = lazy_pattern(rf"[{_CURLY}`]|[ \t\r.]{{0,4}}(?:\n|\Z)|[ \t]{{1,4}}#")
ENV_NAME: Final = lazy_pattern(
    r"(?:^|[\n;&|]|\\n|\bexport|\bset|\bENV|\benv|\bARG|-e|--env|--build-arg)[ \t+>\"']{0,4}"
    r"[A-Z][A-Z0-9_]{1,63}\Z"
)

# Values.
_TEMPLATE: Final = lazy_pattern(
    r"[$<{%*]|\.\.\.|\u2026|\[redacted|.{0,8}(?:\$\{|\{\{|%\(|\*\*\*|<[a-z][\w \-]{0,40}>)"
    r"|[xX\u2022#?_.\-]+\Z|\w{0,12}[_\-]x{6,}\Z|.*(?:\$\{|\{\{|\$\(\w{0,40}[ )]|\{\w*\})",
    re.IGNORECASE,
)
# Regular expressions and alphabets.
_REGEX: Final = lazy_pattern(
    r"a-z|A-Z|0-9|\\[dwsb]|\(\?|\.[*+]|\{\d{1,3},?\d{0,3}\}|[aA][bB][cC][dD][eE]|012345"
)
_CALL: Final = lazy_pattern(r"[A-Za-z_$][\w.$]{0,80}[(\[{<](?:.{0,400}[)\]}>])?;?\Z")
_PLACEHOLDER: Final = lazy_pattern(
    r"(?:your|change|replace|insert|enter|example|sample|placeholder|dummy|fake|mock|todo|fixme|foo|bar|baz|redacted"
    r"|hidden|masked|removed|none|null|nil|undefined|some|any|the|not|no|an?|my)(?:(?!\\)[\W_].*|\d{1,6})?\Z"
    r"|(?:changeme|change_?it|your\w+|my[_\-]?(?:password|passwd|secret|token|key|pass|api[_\-]?key)|xxx\w*|abc|123)\Z",
    re.IGNORECASE,
)
_PATH: Final = lazy_pattern(
    r"(?:~|\.{1,2})?/(?:[\w.\-]+/)*[\w.\-]*\Z|[a-z][a-z0-9+.\-]{1,12}://|arn:|[A-Z]:\\"
    r"|[\w./\-]+\.(?:pem|json|key|crt|txt|py|js|ts|ya?ml|toml|env|md|cfg|ini|go|rs|java|rb|sh|html?|lock|log)(?::\d+)*\Z"
)
_LONG_BASE64: Final = lazy_pattern(r"/(?=[A-Za-z0-9]*[A-Z])[A-Za-z0-9+/]{40,}={0,2}\Z")
_DOTTED: Final = lazy_pattern(r"[A-Za-z_$]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z")
_CONSTANT: Final = lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\Z|_[A-Z_]+\Z")
_WORDS: Final = lazy_pattern(
    r"(?=[A-Za-z]*[a-z]{2})[A-Za-z]+(?:[_\-./: ][A-Za-z]+)*[_\-.]?\d{0,4}\Z|[a-z]{1,3}\d{0,3}\Z"
)
_MEASURE: Final = lazy_pattern(
    r"[\d.,:+\-/TZ]+(?:[a-zA-Z%]{1,3})?\Z|[v=~^<>]*\d+\.\d[\w.\-]*\Z|0x[0-9a-f]{1,8}\Z"
)
_LOWER_RUN: Final = lazy_pattern(r"[a-z]{3,}")
_KEY_CHARACTERS: Final = lazy_pattern(r"[\w\-.~+/=:%@!#$^&*]+\Z")
_HEXADECIMAL: Final = lazy_pattern(r"(?=[0-9]{0,128}[A-Fa-f])(?=[A-Fa-f]{0,128}[0-9])[0-9A-Fa-f]+\Z")
# Google's passwords for programs: four groups of four letters.
_GROUPS: Final = lazy_pattern(r"[a-z0-9]{4}(?: [a-z0-9]{4}){3}\Z")
_GROUP_NO_WORD: Final = lazy_pattern(
    r"\b(?:[b-df-hj-np-tv-xz]{4}|(?=[a-z]{0,3}\d)(?=\d{0,3}[a-z])[a-z0-9]{4})\b"
)
_CHURN: Final = lazy_pattern(r"[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])|[A-Z]{2}(?=[a-z])")
_TYPES: Final = lazy_pattern(
    r"(?:sha\d+|md5|utf-?\d+|base64|oauth2?|int\d+|float\d+|ed25519|rs256|hs256|aes\d\w*|http2?|aws4-hmac-sha256)\Z",
    re.IGNORECASE,
)
# By a letter, the letters that hardly ever follow it in words and names: the pairs that together make up one
# fortieth of those in 9,500 words of real sessions.
_RARE_PAIRS: Final = """
    a:aehjoqz b:bdfghkmnpqtvwxz c:bdfgjmnqvwxz d:hjknpqvwxyz e:kz f:bcdghjkmnpqsvwxz g:bcdfjkmpqtvwxyz
    h:bcdfghjklnpqvwxyz i:hijkquwy j:abcdfghijklmnpqrtuvwxyz k:bcfghjklmnoqrtuvwxyz l:bfghjkmnqrwxz
    m:cdfghjknqrtvwxyz n:bhjqwxz o:ehqyz p:bcfgjkmnqvwxz q:abcdefghijklmnopqrstvwxyz r:hjqxz s:bgjvxz
    t:jkqwxz u:hjkoquvwxyz v:bcdfghjklmnpqrstuvwxyz w:bcdfgjklmpquvwxyz x:abdfghjklmnoqrsuvwxyz
    y:abdfghjklmoqruvwxyz z:bcdfghjklmnopqrstuvwxyz
"""
_RARE_FOLLOWERS: Final = {row[0]: row[2:] for row in _RARE_PAIRS.split()}
_PHRASE: Final = lazy_pattern(r"[a-z]{3,12}(?:-[a-z]{3,12}){3,7}\Z")
_LABEL_WORDS: Final = """
    password passwd passphrase passcode passwort pass pwd secret secrets token tokens string str text
    bytes bool int integer number object dict list optional required invalid valid missing empty blank
    true false default value values field fields input output label type name user username email login
    admin root credentials credential wrong correct incorrect expired unknown test tests testing tester
    example sample demo hunter local plain plaintext hash hashed encrypted prompt stdin file env environ
    environment vault keyring inherit write read self this args config settings request response params
    data body form query header headers cookie session basic bearer digest apikey oauth public private
    disabled enabled forgot forgotten reset confirm confirmation change current show hide weak strong
    option options strength mismatch matches error errors failed success changed updated changeme
    letters characters char chars varchar nullable unique index auto always never only with when must
    should cannot will from into that which were have been kennwort contrase identifier keyword operator
    literal comment punctuation whitespace newline
"""
_LABELS: Final = frozenset(re.findall(r"\w+", _LABEL_WORDS))
_PHRASE_WORD: Final = lazy_pattern(r"[\w!#$%&*+@^~\-]{1,24}")
# What a sentence about a password has and a phrase for one hardly ever.
_PROSE_WORDS: Final = """
    the an your you is are be was if or to of in at for on by de la le el du des per und der die das
"""
_PROSE: Final = frozenset(_PROSE_WORDS.split())


def is_template(value: str) -> bool:
    """Say whether the value stands for another: a variable, a slot, stars or our own placeholder."""
    # A password may begin with such a sign too, where no variable is named so.
    is_sign = (
        value[:1] in "$%*<{" and value[-1:] not in ">}" and has_three_sorts(value) and is_drawn(value[1:])
    )
    return not is_sign and _TEMPLATE.match(value) is not None


def has_three_sorts(value: str) -> bool:
    """Say whether a value has capitals, small letters and digits."""
    return any(map(str.isdigit, value)) and value != value.lower() and value != value.upper()


def is_gibberish(value: str) -> bool:
    """Say whether letters follow each other as in no word: 3 in 10 pairs, where words have 1 in 40."""
    lower = value.lower()
    pairs = [pair for pair in map("".join, pairwise(lower)) if pair.isalpha() and pair.isascii()]
    rare = sum(pair[1] in _RARE_FOLLOWERS[pair[0]] for pair in pairs)
    return rare >= 3 and rare * 10 >= len(pairs) * 3


def is_choppy(value: str) -> bool:
    """Say whether capitals and small letters alternate as in no name: words have about four letters."""
    is_mixed = value.isalpha() and value != value.lower() and value != value.upper()
    return is_mixed and len(value) >= 12 and len(NAME_WORD.findall(value)) * 5 >= len(value) * 2


def is_drawn(value: str) -> bool:
    """Say whether chance drew the letters and digits of a value, whatever other signs stand between them."""
    packed = "".join(filter(str.isalnum, value))
    if len(packed) < 10 or len(set(packed)) < 6 or _REGEX.search(value) or _CALL.match(value):
        return False
    return is_random(packed) or is_gibberish(value) or is_choppy(value)


def is_mixed(body: str) -> bool:
    """Say whether a key's body has a digit and an unbroken stretch, as hyphenated words have not."""
    return any(map(str.isdigit, body)) and _UNBROKEN.search(body) is not None


def is_drawn_body(body: str, *, is_mixed: bool) -> bool:
    """Say whether a key's body is drawn by chance, as the rest of a name with this prefix inside is not."""
    pieces = _STRETCH.findall(body) if is_mixed else [body]
    return any(
        not (piece.islower() or piece.isupper()) or (not is_mixed and any(map(str.isdigit, piece)))
        for piece in pieces
    )


def is_blank(body: str) -> bool:
    """Say whether a key's body was only drawn: one filler character, over and over."""
    return not set(body) - set("xX*._-") or (len(set(body)) == 1 and body[0] == "0")


def is_ordinary(value: str) -> bool:
    """Say whether a value is a placeholder, a path, a name in code, a type, a measure or a label."""
    return (
        is_template(value)
        or (_PATH.match(value) is not None and not _LONG_BASE64.match(value))
        or (_DOTTED.match(value) is not None and not is_random(value))
        or (_CONSTANT.match(value) is not None and not is_random(value) and not _is_long_gibberish(value))
        or _TYPES.match(value) is not None
        or (_PLACEHOLDER.match(value) is not None and not is_random(value))
        or value.strip("._-:!?").lower() in _LABELS
    )


def _is_long_gibberish(value: str) -> bool:
    return len(value) >= 24 and value.isalnum() and is_gibberish(value)


def is_random(value: str) -> bool:
    """Say whether a value changes between letters, capitals and digits as often as chance would have it."""
    length = len(value)
    if length < 10:
        return False
    if not any(map(str.isdigit, value)) and (value.islower() or value.isupper() or length < 16):
        return False
    if value != value.lower() and sum(map(len, _LOWER_RUN.findall(value))) * 2 >= length:
        return False
    return len(_CHURN.findall(value)) * 5 >= length


def is_drawn_value(value: str) -> bool:
    """Say whether a value looks drawn by chance, or is long with letters, capitals and digits."""
    return is_random(value) or (len(value) >= 14 and has_three_sorts(value) and not is_ordinary(value))


def is_strong_value(value: str) -> bool:
    """Say whether a value looks drawn by chance, or has letters, capitals and digits as no name has."""
    return is_random(value) or (is_told_value(value) and not _WORDS.match(value))


def is_told_value(value: str) -> bool:
    """Say whether what a sentence gives as a password looks like one: letters, capitals and digits."""
    if len(value) < 8 or is_ordinary(value) or _MEASURE.match(value):
        return is_random(value) and not is_template(value)
    return is_drawn(value) or (has_three_sorts(value) and _KEY_CHARACTERS.match(value) is not None)


def is_mixed_word(value: str) -> bool:
    """Say whether a word of a sentence mixes letters and digits, or letters and a mark at its end."""
    has_digit, has_letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    return has_letter and (has_digit or value.endswith(tuple("#$%^&*+"))) and not _MEASURE.match(value)


def is_hexadecimal(value: str) -> bool:
    """Say whether a value is a long hexadecimal number with letters and digits."""
    return len(value) >= 20 and _HEXADECIMAL.match(value) is not None


def is_other_key_value(value: str, *, is_capital: bool, shortest: int = 16) -> bool:
    """Say whether the value of any key looks drawn by chance; a hash does so beside a name in capitals."""
    if len(value) < shortest or is_ordinary(value) or _MEASURE.match(value) or _DOTTED.match(value):
        return False
    return (is_drawn(value) and (has_three_sorts(value) or is_capital)) or (
        is_capital and is_hexadecimal(value)
    )


def is_key_value(value: str, *, is_quoted: bool) -> bool:
    """Say whether the value of something called a token or key looks like one."""
    if len(value) < 8 or " " in value or is_ordinary(value) or (len(value) < 24 and _MEASURE.match(value)):
        return False
    if is_random(value) or is_drawn(value):
        return True
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    if not (has_digit and has_letter and _KEY_CHARACTERS.match(value)):
        return is_quoted and _LONG_UNBROKEN.search(value) is not None
    if _WORDS.match(value) or sum(map(len, _LOWER_RUN.findall(value))) * 3 >= len(value) * 2:
        return False
    return is_quoted or len(value) >= 12


def is_password_value(value: str, *, is_quoted: bool) -> bool:
    """Say whether the value of something called a password or secret looks like one."""
    if " " in value:
        is_group = _GROUPS.match(value) is not None and _GROUP_NO_WORD.search(value) is not None
        is_drawn_part = value.count(" ") <= 2 and has_three_sorts(value) and is_drawn(value)
        has_digit = any(map(str.isdigit, value))
        is_phrase = (has_digit or value.istitle()) and is_spaced_phrase(value, least=2 if has_digit else 3)
        return is_quoted and (is_group or is_drawn_part or is_phrase)
    if len(value) < 4 or is_ordinary(value):
        return False
    if value.isdigit():
        return len(value) >= 4
    if value.isalpha():
        is_word = not is_quoted or len(value) < 6 or "passw" in value.lower()
        return not is_word or (len(value) >= 10 and is_gibberish(value))
    if not is_quoted and value.isidentifier() and not any(map(str.isdigit, value)):
        return False
    if is_quoted and re.fullmatch(r"[a-z]+(?:[_\-.: ][a-z]+)+", value):
        return is_gibberish(value)
    return any(map(str.isalnum, value)) and (is_quoted or len(value) >= 6)


def is_passphrase(value: str) -> bool:
    """Say whether a value is four or more words joined by hyphens, and at most one of them a label."""
    return _PHRASE.match(value) is not None and len(_LABELS.intersection(value.split("-"))) <= 1


def is_spaced_phrase(value: str, *, least: int = 2) -> bool:
    """Say whether a value is a few words that a person may have chosen, and no sentence, title or label."""
    words = value.split(" ")
    if not least <= len(words) <= 6 or len(value) < 10 or is_template(value) or _PLACEHOLDER.match(value):
        return False
    if not all(map(_PHRASE_WORD.fullmatch, words)):
        return False
    # One word of a title may be a label: "Correct Horse Battery".
    is_title = value.istitle() and value.replace(" ", "").isalpha() and not SECRET_LABEL.search(value)
    lower = {word.lower() for word in words}
    return len(lower & _LABELS) <= (is_title and len(words) > 2) and _PROSE.isdisjoint(lower)


def is_chosen_word(value: str) -> bool:
    """Say whether a value is a word that a person may have chosen: no placeholder, path, type or label."""
    if len(value) < 6 or is_template(value) or _PATH.match(value) or _DOTTED.match(value):
        return False
    if _TYPES.match(value) or _PLACEHOLDER.match(value) or not _KEY_CHARACTERS.match(value):
        return False
    words = {word.lower() for word in NAME_WORD.findall(value)}
    # Of a name in code mostly a part says what it is: `user_password`, `newToken`.
    return not (words & _LABELS) or is_passphrase(value)


def is_credential(value: str) -> bool:
    """Say whether what follows `Bearer` or `Basic` is a credential and no word of a sentence."""
    if len(value) < 8 or is_template(value) or _CONSTANT.match(value) or _PLACEHOLDER.match(value):
        return False
    return any(map(str.isdigit, value)) or "=" in value or not (value[1:].islower() or value.isupper())


def is_distinctive(value: str) -> bool:
    """Say whether a secret can be recognised wherever it stands, so that no common word goes with it."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= 8 and has_both and "\n" not in value and _WORDS.match(value) is None
