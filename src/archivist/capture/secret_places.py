"""Find the secrets that only their place shows: behind a flag, in a pipe, in a field, in a sentence.

A row names a word that the text must hold, which is looked for first: most texts hold none of them.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from archivist.capture import secret_rules as rules
from archivist.cold_start import lazy_pattern

# How far before a flag on its line the program may stand that it belongs to.
_FLAG_REACH: Final = 200
# What every place of a secret holds; an id, a name or a path holds none of them.
_PLACE: Final = lazy_pattern(r"[ \t\n=:$]")

_SHORTEST_KEY: Final = 32

_LINE: Final = rules.LINE_END
_MARK: Final = rules.QUOTE_MARK
_BLANK: Final = r"[ \t]{1,4}"
_QUOTE: Final = r"[\"']?"
_PLACED: Final = r"(?P<value>[^\s\"'\\`<>$][^\s\"'\\`<>]{3,1023})"
# In quotes a value reaches to the closing one, whatever it is made of.
_QUOTED: Final = r"(?:\"(?P<double>[^\"\n\\]{4,1023})\"|'(?P<single>[^'\n\\]{4,1023})')"
_VALUE: Final = rf"(?:{_QUOTED}|{_QUOTE}{_PLACED})"


class _Flag(NamedTuple):
    """An option whose value is a secret, and the programs of which it is."""

    name: str
    option: str
    programs: re.Pattern[str]
    value: str


def _flag(name: str, option: str, programs: str, value: str = r"[^\s\"'$<{=/\-][^\s\"']{3,255}") -> _Flag:
    return _Flag(name, option, lazy_pattern(programs), value)


# A flag that other programs have too: the value must look drawn by chance.
_COMMON_FLAGS: Final = {"b", "D"}
# `helm registry login -p …`: any program may have such a command. Its value must look drawn by chance too.
_LOGIN_COMMAND: Final = lazy_pattern(r"(?<![\w/.\-])(?:login|auth)(?![\w/.\-=])[^;&|]{0,160}\Z")


_FLAGS: Final = (
    _flag("pass", r"pass(?:in|out)? [\"']?pass:", r"\bopenssl\b", r"[^\s\"'$<{][^\s\"']{3,255}"),
    _flag(
        "u",
        r"(?:[uU][ =]?|-(?:proxy-)?user[ =])[\"']?[^\s:\"'$<{]{1,128}:",
        r"\bcurl\b",
        r"[^\s\"'$<{:/][^\s\"']{0,255}",
    ),
    _flag("creds", r"(?:-?[\w\-]{0,20}creds|-?auth)[ =][\"']?[^\s:\"'$<{]{1,128}:", ""),
    _flag("value", r"-(?:value|body|secret-string)[ =][\"']?", r"\bsecret|SecureString|[Pp]assw"),
    _flag(
        "p",
        r"p[ =]?[\"']?",
        r"\b(?:mysql\w*|mariadb[\w\-]*|mongo\w*|sshpass|(?:docker|podman|az) login|7z|ldap\w+|cqlsh|twine"
        r"|cypher-shell|user(?:add|mod)|conan|evil-winrm|ncftp\w*)\b",
        r"[^\s\"'$<{=\-][^\s\"']{3,255}",
    ),
    _flag(
        "P",
        r"P [\"']?",
        r"\b(?:redis-cli|valkey-cli|zip|unzip|ldap\w+|sqlcmd|bcp|mosquitto_\w+|ipmitool|ssh-keygen)\b",
    ),
    _flag("w", r"w [\"']?", r"\b(?:redis-cli|valkey-cli|zip|unzip|ldap\w+|security add-[\w\-]+)\b"),
    _flag(
        "a",
        r"a [\"']?",
        r"\b(?:redis-cli|valkey-cli|zip|unzip|ldap\w+)\b"
        r"|(?:^|[\s;&|(])(?:https?|xhs?) (?:.{0,160} )?-a [\"']?\Z",
    ),
    _flag("lftp", r"u [\"']?[^\s,\"'$<{]{1,64},", r"\blftp\b"),
    _flag("N", r"N [\"']?", r"\bssh-keygen\b"),
    _flag("t", r"t [\"']?", r"\b(?:codecov|influx)\b"),
    _flag("k", r"k [\"']?", r"\bopenssl enc\b"),
    _flag("c", r"[cAX] [\"']?", r"\bsnmp\w+ "),
    _flag("b", r"b [\"']?[\w.\-]{1,80}=", "", r"[^\s;\"'$]{8,512}"),
    _flag("U", r"U [\"']?[^\s%\"']{1,64}%", r"\b(?:smb\w+|rpcclient)\b"),
    _flag("store", r"-?(?:src|dest)?(?:store|key)pass [\"']?", r"\b(?:keytool|jarsigner|apksigner)\b"),
    _flag("D", r"D[\w.\-]{0,60}\.login=[\"']?", r"\bsonar\b"),
    _flag(
        "literal",
        r"-from-literal[= ][\"']?[\w.\-]{1,253}=[\"']?",
        r"\bsecret\b",
        r"[^\s\"'$<{][^\s\"']{3,1024}",
    ),
)
_OPTIONS: Final = "|".join(f"{flag.option}(?P<{flag.name}>{flag.value})" for flag in _FLAGS)
_PASSWORD_FLAG: Final = lazy_pattern(rf" -(?:{_OPTIONS})")
_FLAG_PROGRAMS: Final = {flag.name: flag.programs for flag in _FLAGS}

# Words of other languages for a password, and what people type behind them. People type short texts; each
# hint costs one more search, so longer texts are left out.
_LONGEST_PROMPT: Final = 2_000
_PROMPT_HINTS: Final = ("ennwort", "achtwoord", "enha")
_ALL_PROMPT_HINTS: Final = (*_PROMPT_HINTS, "ñ", "ł", "ö", "ь", "è", "ifre", "密", "ド", "호")
_PROMPT_PASSWORD: Final = lazy_pattern(
    r"(?:ennwort|achtwoord|[Ss]enha|ontraseña|asło|ösenord|ароль|[şŞ]ifre|密[码碼]|パスワード|비밀번호"
    r"|assword(?= è ))"
    r"(?:[ \t]{0,4}[:\uff1a=][ \t]{0,4}|[ \t]{1,2}(?:is|ist|lautet|es|é|è|jest|to|är|это|-|—)[ \t]{1,2}"
    r"|[는은가][ \t:\uff1a]{0,2}|[是は为為][ \t:\uff1a]{0,2}|(?P<bare>[ \t]{1,2}))"
    r"[\"'`\u300c]?(?P<value>[!-~]{6,128})"
)

# Values whose name stands elsewhere: in a field beside them, before a space, or in the command they go to.
_NAME_ELSEWHERE: Final = (
    r"[\w./:\-]{0,60}(?i:pass(?:word|wd|phrase)|pwd|secret|token(?!s)|api_?key|access_?key|private_?key|signing_?key"
    r"|deploy_?key|credentials?)[\w.\-]{0,20}"
)
_NAME_FIELD: Final = r"(?i:name|key|parameterkey)"
_VALUE_NAME: Final = r"(?i:value|parametervalue)"
_IS: Final = r"\s{0,8}:\s{0,8}"
_NAME_PAIR: Final = rf"{_MARK}{_NAME_FIELD}{_MARK}{_IS}{_MARK}{_NAME_ELSEWHERE}{_MARK}"
_VALUE_PAIR: Final = rf"{_MARK}{_VALUE_NAME}{_MARK}{_IS}(?:{_QUOTED}|{_MARK}{_PLACED})"
_GAP: Final = r"[^{}<>]{0,160}?"
# A name and a value in fields of their own: looked for around each `value`.
_VALUE_FIELD: Final = lazy_pattern(r"value(?=\\{0,3}[\"']?\s{0,8}[:=])")
_FIELD_REACH: Final = 300
_PAIRED_VALUES: Final = (
    lazy_pattern(_NAME_PAIR + _GAP + _VALUE_PAIR),
    lazy_pattern(rf"{_VALUE_PAIR}{_MARK}{_GAP}{_NAME_PAIR}"),
    lazy_pattern(
        rf"\b{_NAME_FIELD}: {{0,4}}{_QUOTE}{_NAME_ELSEWHERE}{_QUOTE}{_LINE}[ \t]{{0,40}}"
        rf"{_VALUE_NAME}:{_BLANK}{_VALUE}"
    ),
    lazy_pattern(rf"\b{_NAME_FIELD}={_MARK}{_NAME_ELSEWHERE}{_MARK}\s{{1,8}}{_VALUE_NAME}={_MARK}{_PLACED}"),
)

# What is written to a program that reads a secret, from a pipe or a here-string.
_READER: Final = (
    r"(?:sudo (?:-\w{1,3} )?-\w{0,3}S"
    r"|(?:sudo )?(?:chpasswd|passwd|smbpasswd|kinit|cryptsetup|secret-tool store|su(?![\w\-])))\b"
)
_READER_OPTION: Final = r"--(?:password-stdin|with-token)\b"
# The same for programs that are given settings too.
_KEEPER: Final = r"\b(?:secrets? (?:set|put|create|add)|secrets versions add|env add)\b"
_SENT: Final = (
    r"(?P<mark>[\"']?)(?P<value>(?:[^\s\"'`|\\<>$]|\$(?![\w{(])){4,256})(?:\\n(?:(?P=value)\\n)?)?(?P=mark)"
)
_ECHO: Final = rf"echo (?:-[neE]{{1,3}} )?{_SENT}"
_PRINTF: Final = rf"printf (?:[\"']?%s(?:\\n)?[\"']? )?{_SENT}"
_PIPE: Final = r"[ \t]{0,4}\|[ \t]{0,4}"
# What is written to a file whose name says that it holds a secret.
_TO_FILE: Final = (
    r"[ \t]{0,4}>>?[ \t]{0,4}[\"']?[^\s\"'|;&<>]{0,120}"
    r"(?:\.pgpass|\.netrc|\.vault_pass|(?i:passw(?:or)?d|passphrase|secret|token))(?:\.txt|\.key)?(?![\w./\-])"
)
_TO_READER: Final = rf"(?:{_READER}|[^\n|]{{0,200}}?{_READER_OPTION})"
_TO_KEEPER: Final = rf"[^\n|]{{0,100}}?{_KEEPER}"
_HERE_STRING: Final = lazy_pattern(rf"<<<[ \t]{{0,2}}{_SENT}")
_READS_HERE: Final = lazy_pattern(rf"(?:^|[;&|][ \t]{{0,4}}){_READER}|{_READER_OPTION}|{_KEEPER}|\blogin\b")


def _is_placed_secret(value: str) -> bool:
    return not value.isdigit() and (
        rules.is_password_value(value, is_quoted=True) or rules.is_passphrase(value)
    )


def _is_typed_secret(value: str) -> bool:
    """Say whether a value in a place where other words stand too looks like a password."""
    is_word = value.isdigit() or (value.isalpha() and not rules.is_gibberish(value))
    return not is_word and rules.is_password_value(value, is_quoted=False)


def _is_hash(value: str) -> bool:
    """Say that a hash of a password is one by its form alone."""
    return value.startswith("$")


def _is_key_text(value: str) -> bool:
    """Say that a private key is one wherever it begins as one."""
    return len(value) > _SHORTEST_KEY


def _is_form(value: str) -> bool:
    """Say that a vendor's form is one unless somebody drew it: one character over and over."""
    return len(set(value)) > 10 and any(map(str.isdigit, value))


class _Place(NamedTuple):
    """Where a secret stands: a word of the lower-cased text, what judges the value, the pattern around it."""

    word: str
    is_secret: Callable[[str], bool]
    pattern: re.Pattern[str]


def _place(word: str, is_secret: Callable[[str], bool], pattern: str) -> _Place:
    return _Place(word, is_secret, lazy_pattern(pattern))


# What stands between the end of a name and a value of any setting, table or pair of fields.
_APART: Final = (
    rf"(?:{_MARK}|`)?(?:[ \t]{{0,4}}[:|=][ \t]{{0,16}}|[ \t]{{1,40}}"
    rf"|,?\s{{1,60}}(?:{_MARK})?{_VALUE_NAME}(?:{_MARK})?\s{{0,8}}:\s{{0,8}})(?:{_MARK})?"
    r"(?P<value>[^\s\"'\\`<>$|,;][^\s\"'\\`<>|,;]{9,511})"
)
# The beginning of a private key, as base64 writes it, for each kind of key.
_PEM_IN_BASE64: Final = "|".join(
    b64encode(f"-----BEGIN {kind}PRIVATE KEY---".encode()).decode()[:32].rstrip("=")
    for kind in ("RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "")
)
# A pattern that begins with its word costs little where the word is common.
_PLACES: Final[tuple[_Place, ...]] = (
    # Settings by a command.
    _place(
        "set",
        _is_placed_secret,
        r"set(?:env|x|[ \t]{1,4}-[gUx]{1,3}|(?<=[Cc]onfig set)|(?<=onfigure set)|(?<=-secrets set))"
        rf"{_BLANK}{_QUOTE}{_NAME_ELSEWHERE}{_QUOTE}[ \t=]{{1,4}}{_VALUE}",
    ),
    _place(
        "env ",
        _is_placed_secret,
        rf"(?:^|{_LINE})[ \t]{{0,8}}(?:ENV|ARG){_BLANK}{_NAME_ELSEWHERE}{_BLANK}{_VALUE}",
    ),
    _place(
        "securestring",
        _is_placed_secret,
        rf"ConvertTo-SecureString (?:-[Ss]tring )?{_QUOTED}",
    ),
    _place("identified by", _is_placed_secret, rf"(?i:identified by){_BLANK}{_QUOTED}"),
    _place("identified by", rules.is_told_value, rf"(?i:identified by){_BLANK}{_PLACED}"),
    _place("psk", _is_placed_secret, rf"\bpsk[ \t]{{0,2}}[=:][ \t]{{0,2}}{_VALUE}"),
    _place("requirepass", _is_typed_secret, rf"requirepass{_BLANK}{_VALUE}"),
    _place("masterauth", _is_typed_secret, rf"masterauth{_BLANK}{_VALUE}"),
    _place("stats auth", _is_placed_secret, r"stats auth [^\s:]{1,64}:(?P<value>[^\s\"'$<{]{4,256})"),
    # Words of a command.
    _place("password", _is_typed_secret, rf"nmcli [^\n|;]{{1,160}}? password {_VALUE}"),
    _place(
        "htpasswd",
        _is_typed_secret,
        r"htpasswd -(?:(?=\w{0,5}n)\w{1,6}|(?=\w{0,5}b)\w{1,6} \S{1,200}) \S{1,64} "
        rf"{_VALUE}",
    ),
    _place(
        "user",
        _is_typed_secret,
        r"user(?:(?<=\bnet user) |(?<=ctl add_user) |(?<=/user):)[\w.@\\\-]{1,64} {1,4}"
        rf"{_QUOTE}(?P<value>[^\s\"'\\`<>$/\-][^\s\"'\\`<>]{{3,255}})",
    ),
    _place(
        "sqlplus",
        _is_placed_secret,
        r"sqlplus (?:-\w{1,8} ){0,3}[\"']?[\w.$#]{1,64}/(?P<value>[^\s\"'@/$]{3,128})@",
    ),
    _place("oracle:", _is_placed_secret, r"oracle:\w{1,8}:[\w.$#]{1,64}/(?P<value>[^\s\"'@/$]{3,128})@"),
    _place(
        "user",
        _is_typed_secret,
        r"user(?:name)?[ \t]{1,8}[\w.@+\-]{1,128}"
        rf"(?:{_BLANK}(?:there )?(?:with )?|{_LINE}[ \t]{{0,8}})pass(?:word)?[ \t]{{1,8}}{_VALUE}",
    ),
    # The options of a mount are separated by commas.
    _place(
        "passw",
        _is_typed_secret,
        r"password=(?<=[, ]password=)(?P<value>[^\s\"',$<{(]{4,128})(?=,[a-z])",
    ),
    _place("bw unlock", _is_typed_secret, rf"bw unlock (?!-){_VALUE}"),
    _place("rclone", _is_typed_secret, rf"rclone obscure (?!-){_VALUE}"),
    _place("put_pw", _is_typed_secret, rf"put_pw(?<=input_pw) {_VALUE}"),
    _place(
        "--secret", _is_typed_secret, rf"--secret(?<=config set --secret) [\w:.\-]{{1,128}} (?!-){_VALUE}"
    ),
    _place(
        "secrets set", _is_typed_secret, rf"secrets set(?<=user-secrets set) [\w:.\-]{{1,128}} (?!-){_VALUE}"
    ),
    _place("alias set", rules.is_drawn_value, rf"alias set(?: [^\s\"'$]{{1,200}}){{3}} {_VALUE}"),
    _place("http-basic", _is_typed_secret, rf"http-basic\.[\w.\-]{{1,64}} [^\s\"'$]{{1,64}} {_VALUE}"),
    _place(
        "bundle",
        _is_typed_secret,
        r"(?:bundle config (?:set )?[\w.\-]{3,80} |BUNDLE_\w{1,80}=[\"']?)[\w.\-]{1,64}:"
        r"(?P<value>[^\s\"'$/:]{6,128})",
    ),
    _place(
        " as the ",
        rules.is_told_value,
        r"se[ \t](?<=[Uu]se[ \t])[`\"']?(?P<value>[^\s`\"']{8,128})[`\"']? as the (?:\w{1,12} )?"
        r"(?:passw|secret|token|(?:api )?key|credential)",
    ),
    _place("echo ", _is_placed_secret, _ECHO + _PIPE + _TO_READER),
    _place("echo ", _is_typed_secret, _ECHO + _PIPE + _TO_KEEPER),
    _place("echo ", _is_typed_secret, _ECHO + _TO_FILE),
    _place("printf ", _is_placed_secret, _PRINTF + _PIPE + _TO_READER),
    _place("printf ", _is_typed_secret, _PRINTF + _PIPE + _TO_KEEPER),
    _place("printf ", _is_typed_secret, _PRINTF + _TO_FILE),
    # A row of a table.
    _place(
        "passw",
        rules.is_told_value,
        r"(?i:passw(?:ord|d))[`*\"']{0,2}[ \t]{1,40}\|[ \t]{1,40}[`\"']?"
        r"(?P<value>[^\s|`\"']{8,128})[`\"']?[ \t]{1,80}\|",
    ),
    # Sentences: "A temporary password is generated for root@localhost: …", "password reset to: …".
    _place(
        "passw",
        rules.is_told_value,
        r"(?i:passw(?:ord|ort)(?:[ \t](?:is|was|has been))?(?:[ \t](?:generated|created|reset|set|changed))?"
        r"(?:[ \t](?:for|of)[ \t](?:'[^'\n]{1,200}'|[^\n:=,;]{1,60}?)|[ \t][\w.\-]{1,32}(?=[ \t]=[ \t]))?"
        r"(?:[ \t](?:is|to|as|ist|lautet|est)[ \t]{0,2}:?|[ \t]{0,2}[:=]))[ \t]{1,4}"
        r"[\"'`]?(?P<value>[^\s\"'`]{8,128})",
    ),
    # Forms that only their surroundings tell from other text.
    _place("$", _is_hash, r"(?P<value>\$(?:1|2[aby]|5|6|y|apr1)\$[./\w$=,]{20,200})"),
    _place(":aa", _is_placed_secret, r"(?<![\w.:\-])(?P<value>\d{8,10}:AA[\w\-]{32,35})(?![\w\-])"),
    _place(
        "pass:",
        rules.is_drawn_value,
        rf"(?:^|{_LINE})[ \t\-]{{0,12}}{_QUOTE}pass{_QUOTE}:{_BLANK}{_VALUE}",
    ),
    _place("pass=", rules.is_drawn_value, r"[?&\"']pass=(?P<value>[^\s&\"'$<>]{8,256})"),
    _place("key=", rules.is_drawn_value, r"[?&](?i:api_?)?(?i:key)=(?P<value>[\w.~%+/\-]{16,512})"),
    # Lines of `.pgpass` and `.netrc`, and calls whose second argument is a password.
    *(
        _place(
            port,
            _is_typed_secret,
            rf"{re.escape(port)}[\w*\-]{{1,64}}:[\w.*@\-]{{1,64}}:(?P<value>[^\s:]{{6,256}})(?=\s|$)",
        )
        for port in (":5432:", ":5433:", ":6432:", ":*:")
    ),
    _place(
        "machine ",
        _is_placed_secret,
        r"machine[ \t]{1,4}[\w.\-]{1,253}\s{1,16}login\s{1,4}\S{1,128}\s{1,16}password[ \t]{1,4}"
        r"(?P<value>\S{4,256})",
    ),
    _place(
        "define(",
        _is_placed_secret,
        rf"(?i:define)\([ \t]{{0,4}}[\"'](?i:\w{{0,40}}passw(?:or)?d)[\"'][ \t]{{0,4}},[ \t]{{0,4}}{_QUOTED}",
    ),
    # Names that end in a short word, wherever they stand; keys of tables and caches open nothing.
    _place("_pass", rules.is_drawn_value, rf"_(?:PASS|pass){_APART}"),
    _place(
        "_key",
        rules.is_drawn_value,
        r"_KEY(?<!PUBLIC_KEY)(?<!CACHE_KEY)(?<!PRIMARY_KEY)(?<!FOREIGN_KEY)(?<!ANON_KEY)(?<!PUBLISHABLE_KEY)"
        rf"(?<!SORT_KEY)(?<!PARTITION_KEY)(?<!IDEMPOTENCY_KEY){_APART}",
    ),
    _place(
        "pass",
        rules.is_drawn_value,
        r"(?i:pass)(?<=[a-z][.\-](?i:pass))[ \t]{0,4}[=:][ \t]{0,4}(?P<value>[^\s\"'\\`<>$|,;]{10,512})",
    ),
    _place("securestring", _is_placed_secret, rf"SecureString{_MARK},\s{{1,40}}{_VALUE_PAIR}"),
    _place(
        "kty",
        rules.is_drawn_value,
        r"kty[^{}]{1,400}?[\"']d[\"']\s{0,4}:\s{0,4}[\"'](?P<value>[\w\-]{16,1024})",
    ),
    _place(
        "private-lines",
        _is_key_text,
        r"Private-Lines: \d{1,4}(?:\r?\n|\\n)(?P<value>(?:[\w+/=]{1,64}(?:\s|\\n)){1,99})",
    ),
    _place(".login(", _is_typed_secret, rf"\.login\([ \t\n]{{0,8}}[^()\n,]{{1,120}},[ \t\n]{{0,8}}{_QUOTED}"),
)
_FORMS: Final[tuple[_Place, ...]] = (
    _place("ls0tls1crudjti", _is_key_text, rf"(?P<value>(?:{_PEM_IN_BASE64})[A-Za-z0-9+/=]{{0,16384}})"),
    _place("dapi", _is_form, r"(?P<value>dapi(?<![\w\-]dapi)[0-9a-f]{32}(?:-\d{1,2})?)(?![\w])"),
    _place("cio", rules.is_random, r"(?P<value>cio(?<![\w\-]cio)[A-Za-z0-9]{32})(?!\w)"),
    _place("1//0", _is_form, r"(?P<value>1//0(?<![\w/:]1//0)[\w\-]{40,200})(?![\w\-])"),
    _place(
        "$production$",
        _is_form,
        r"(?P<value>access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32})(?!\w)",
    ),
    _place(
        "pat",
        rules.is_drawn_value,
        r"pat(?<![\w\-]pat)(?=[A-Za-z0-9]{14}\.)(?P<value>\w{14}\.[0-9a-f]{64})(?!\w)",
    ),
    _place(
        "-us",
        rules.is_hexadecimal,
        r"-us(?=\d{1,2}(?![\w\-]))(?<=(?P<value>[0-9a-f]{32})-us)(?<![\w\-][0-9a-f]{32}-us)",
    ),
)
# Each word costs one search of the whole text, so those that share letters are looked for once.
_PLACES_BY_STEM: Final[dict[str, list[_Place]]] = {}
for _row in _PLACES:
    _stem = next((stem for stem in ("passw", "pass", "sec", "auth") if stem in _row.word), _row.word)
    _PLACES_BY_STEM.setdefault(_stem, []).append(_row)
PLACE_STEMS: Final = (*_PLACES_BY_STEM, *(place.word for place in _FORMS), "value", "<<<")


# The token of a bot: the number of its account, a time and a signature in base64, none of them named. Only
# the dots are plain characters to look for.
_BOT_TOKEN_END: Final = lazy_pattern(r"\.[\w\-]{6}\.[\w\-]{27,40}(?![\w.\-])")
_BOT_TOKEN_START: Final = lazy_pattern(r"(?<![\w.\-])[MNO][A-Za-z\d_\-]{23,27}\Z")
_LONGEST_BOT_NUMBER: Final = 28


def _bot_tokens(text: str) -> Iterator[rules.Span]:
    for end in _BOT_TOKEN_END.finditer(text):
        at = max(0, end.start() - _LONGEST_BOT_NUMBER - 1)
        start = _BOT_TOKEN_START.search(text, at, end.start())
        if start and rules.is_drawn_value(start[0] + end[0]):
            yield rules.Span(start.start(), end.end(), "discord-token", rules.BY_FORM)


def find_flag_values(text: str) -> Iterator[rules.Span]:
    """Find the values of flags that are secrets when their program stands before them on the line."""
    for flag in _PASSWORD_FLAG.finditer(text):
        name = flag.lastgroup or ""
        value = flag[name]
        line = text[max(0, flag.start() - _FLAG_REACH) : flag.start(name)].rpartition("\n")[2]
        if name == "value":
            line += text[flag.end() : flag.end() + _FLAG_REACH].partition("\n")[0]
        is_known = _FLAG_PROGRAMS[name].search(line) is not None
        is_login = name == "p" and not is_known and _LOGIN_COMMAND.search(line) is not None
        is_port = value.isdigit() and len(value) <= 5
        if not (is_known or is_login) or is_port or rules.is_template(value):
            continue
        is_plain = name not in _COMMON_FLAGS and not is_login
        if is_plain or rules.is_drawn_value(value) or rules.is_hexadecimal(value):
            yield rules.Span(*flag.span(name), "password", rules.BY_PLACE)


def find_by_place(text: str, flat: str, present: set[str]) -> Iterator[rules.Span]:
    """Find the values whose name, or the command that takes them, stands in another place."""
    for place in _FORMS:
        if place.word in present:
            yield from _placed_values(text, place.pattern, place.is_secret)
    yield from _bot_tokens(text)
    # Chinese and Japanese put no space before a value.
    if text.isascii() and not _PLACE.search(flat):
        return
    if "value" in present:
        yield from _paired_values(text, flat)
    for stem, places in _PLACES_BY_STEM.items():
        if stem in present:
            for place in places:
                if place.word is stem or place.word in flat:
                    yield from _placed_values(text, place.pattern, place.is_secret)
    if "<<<" in present:
        yield from _here_strings(text)
    if len(text) <= _LONGEST_PROMPT:
        hints = _PROMPT_HINTS if text.isascii() else _ALL_PROMPT_HINTS
        if any(hint in text for hint in hints):
            yield from _prompt_passwords(text)


def _placed_values(
    text: str, pattern: re.Pattern[str], is_secret: Callable[[str], bool]
) -> Iterator[rules.Span]:
    """Find the values that a pattern shows and a judge takes for secrets."""
    for match in pattern.finditer(text):
        quoted = next((name for name in ("double", "single") if match.groupdict().get(name)), None)
        value = match[quoted] if quoted else match["value"].rstrip(".,:;)\"'")
        if is_secret(value) and (is_secret in (_is_hash, _is_form) or not rules.is_template(value)):
            start = match.start(quoted or "value")
            kind = "password" if "pass" in match[0].lower() else "secret"
            yield rules.Span(start, start + len(value), kind, rules.BY_PLACE)


def _here_strings(text: str) -> Iterator[rules.Span]:
    for sent in _HERE_STRING.finditer(text):
        line = text[max(0, sent.start() - _FLAG_REACH) : sent.start()].rpartition("\n")[2]
        is_read = _READS_HERE.search(line) is not None
        if is_read and _is_typed_secret(sent["value"]) and not rules.is_template(sent["value"]):
            yield rules.Span(*sent.span("value"), "secret", rules.BY_PLACE)


def _paired_values(text: str, flat: str) -> Iterator[rules.Span]:
    """Find the values whose name stands in a field beside them."""
    for field in _VALUE_FIELD.finditer(flat):
        start = max(0, field.start() - _FIELD_REACH)
        around = text[start : field.end() + _FIELD_REACH]
        for pattern in _PAIRED_VALUES:
            for span in _placed_values(around, pattern, _is_placed_secret):
                yield span._replace(start=start + span.start, end=start + span.end)


def _prompt_passwords(text: str) -> Iterator[rules.Span]:
    for match in _PROMPT_PASSWORD.finditer(text):
        value = match["value"].rstrip(".,:;\"'`)")
        is_password = not value.isalpha() and rules.is_password_value(value, is_quoted=False)
        if is_password and (match["bare"] is None or rules.is_strong_value(value)):
            start = match.start("value")
            yield rules.Span(start, start + len(value), "password", rules.BY_PLACE)
