"""Find commands in a text, and tell what they do that no run should be advised to do before a person agreed.

A lesson's remedy is a command that a later run may copy. What it does decides, not the words around it:
commands in backticks, in quotes or in a sentence of any language are taken apart by the same shell reader
that reads runs. The rules name behaviours; programs only stand in the tables of those that do the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from posixpath import normpath

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.commands import is_preparation, is_read_only_step
from archivist.reading.shell import Step, parse

RUNS_FETCHED = "runs what it fetches"
FOREIGN_SOURCE = "installs from another source"
FETCHED_PACKAGE = "runs a package that it fetches"
DELETES_OUTSIDE = "deletes outside the project"
DISABLES_CHECKS = "disables checks or verification"
CHANGES_SETTINGS = "writes start files or global settings"
SENDS_PRIVATE = "sends private things away"
OBSCURED = "hides what it runs"

# A lesson is a few sentences. What is longer is not read to its end, and so is not trusted either.
LONGEST_TEXT = 50_000
TOO_LONG = "too long to be checked"
# Commands in a sentence overlap where one is an argument of another: only so many are read from each name on.
_MOST_STARTS = 48
_LONGEST_INLINE = 400


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FETCHERS = _words(
    "curl wget iwr irm invoke-webrequest invoke-restmethod aria2c httpie xh http https lynx nc ncat netcat"
    " socat telnet ftp tftp fetch axel certutil bitsadmin start-bitstransfer"
)
_INTERPRETERS = _words("python node ruby perl php lua deno bun osascript pwsh powershell rscript julia tclsh")
# Programs that run what an address names, and programs that only read, check or unpack what flows in.
_RUNS_ADDRESS = _words("mshta regsvr32 rundll32 msiexec cookiecutter copier degit rpm dpkg ansible-pull")
_SHELLS = programs.SHELLS | _words("fish csh tcsh ash busybox cmd")
_EVALUATES = _words("eval source . iex invoke-expression")
_EXTRACTS = _words("tar unzip gunzip 7z bsdtar unxz")
_READS_INPUT = (
    programs.FILTERS
    | programs.LOOKS
    | _EXTRACTS
    | _words(
        "gpg shasum sha1sum b2sum cksum pv dd xmllint html2text pandoc xq mlr jless gzip xz zstd bzip2 zcat"
        " openssl base64 base32 iconv sponge pbcopy xclip fx gron dasel hexdump sqlite3 duckdb plutil aspell"
    )
)
_DECODERS = _words("rev tr")
_INSTALLS_FILES = _words("dpkg rpm installer msiexec pip npm code apt apt-get")
_RUNS_FILES = _SHELLS | _INTERPRETERS | _EVALUATES | _INSTALLS_FILES | _words("open start java wine dotnet")
_MANAGERS = _words(
    "pip pipx uv conda mamba micromamba npm pnpm yarn bun gem bundle cargo go composer brew apt apt-get dnf"
    " yum apk zypper choco winget scoop dotnet nuget helm poetry pdm rye pixi pipenv easy_install cpan cpanm"
    " luarocks opam mix vcpkg install-module"
)
_INSTALL_VERBS = _words(
    "install i add get require download sync ci update upgrade tap repo source sources lock wheel isntall"
)
_ENDPOINTS = frozenset((
    "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "rubygems.org",
    "crates.io", "index.crates.io", "cran.r-project.org", "cloud.r-project.org", "static.crates.io",
    "proxy.golang.org", "repo.maven.apache.org",
    "repo1.maven.org", "api.nuget.org", "hex.pm", "repo.packagist.org",
))  # fmt: skip
_LOOPBACK = _words("localhost 127.0.0.1 [::1] 0.0.0.0 host.docker.internal")
_CHANNELS = _words("conda-forge defaults main anaconda bioconda pytorch nvidia")
_DELETES = _words("rm rmdir unlink shred srm del erase rd remove-item ri trash rimraf truncate")
_CLUSTER = _words("kubectl oc")
_CONTAINERS = _words("docker podman nerdctl")
_ARCHIVES = _words("tar zip 7z mysqldump pg_dump pg_dumpall mongodump")
_OVERWRITES = _words("dd wipefs mkfs fdisk parted diskpart format")
_WRITES = _words("tee cp mv install ln sed dd rsync add-content set-content out-file")
_SENDS = _FETCHERS | _words(
    "scp rsync sftp ssh mail mailx sendmail mutt rclone gsutil aws az gcloud gh nslookup dig host s3cmd"
)
_EDITS = _words("-e -r")
_UPLOADERS = _words("aws az gcloud gsutil gh s3cmd")
_UPLOADS = _words("cp mv sync create upload put")
_CONFIG_WORDS = _words("--global --system set --set --add --append --prepend -w")
# The programs that change settings beyond the project, and the words by which they do.
_SETTERS = {
    "git": _words("--global --system"),
    **dict.fromkeys(
        _words("npm pnpm yarn pip conda poetry bun gem bundle"), _words("set --set --add --append --prepend")
    ),
    "go": _words("-w"),
    "systemctl": _words("enable link"),
    "launchctl": _words("load bootstrap enable submit"),
    "reg": _words("add import"),
    "sysctl": _words("-w --write"),
    "schtasks": _words("/create"),
    "defaults": _words("write"),
    "gsettings": _words("set set-value"),
}
_LISTS = _words("-l --list list get --get --get-all --show-origin show --unset")

# Names that are looked for in sentences; those that are common words are only recognised in code.
_NAMED = (
    _FETCHERS | _INTERPRETERS | _SHELLS | _MANAGERS | _DELETES | _OVERWRITES | _SENDS | frozenset(_SETTERS)
    | _CLUSTER | _ARCHIVES | _words(
        "eval source iex invoke-expression npx uvx bunx git docker podman tee cp mv ln sed echo printf cat"
        " export find base64 openssl xxd env printenv chmod sudo setenforce ufw spctl csrutil"
        " set-executionpolicy set-mppreference nix python3 pip3 tar xargs pre-commit crontab apt-key history"
        " add-apt-repository add-content set-content mshta regsvr32 cookiecutter terraform vssadmin chown awk"
    )
) - _words("r host http https fetch format rd ri mix trash defaults telnet mail scoop opam helm")  # fmt: skip
_START = lazy_pattern(
    rf"(?<![\w/.~$@=-])(?:{'|'.join(sorted(map(re.escape, _NAMED), key=len, reverse=True))})(?:\.exe)?"
    r"(?![\w/.=@-])",
    re.ASCII | re.IGNORECASE,
)
_CODE = lazy_pattern(r"`{1,3}([^`]+)`")
# A sentence ends; in a command, a full stop or a comma that ends a word is followed by no space.
_BREAK = lazy_pattern(
    r"(?<=[^\s.])[.!?](?=\s|\Z)|,(?=\s|\Z)"
    r"|[\n\u3002\uff01\uff1f\uff0c\u3001\uff1b]|\s[-\u2013\u2014]\s"
)
_FOREIGN_LETTERS = lazy_pattern(r"[^\x00-\x7f]+")
_QUOTES = ("'", '"')
_URL = lazy_pattern(
    r"(?P<scheme>(?:(?:git|hg|svn|bzr)\+)?(?:https?|ftps?|git|ssh|s3|gs|file))://(?:[^\s/?#@'\"<>]{0,100}@)?"
    r"(?P<host>[^\s/:?#'\"<>]{0,200})",
    re.IGNORECASE,
)
_REPOSITORY = lazy_pattern(
    r"(?:github|gitlab|bitbucket|gist|gh|gl):[\w.-]+/|git@[\w.-]+:|[\w.@/-]{1,100}@(?:npm|github):",
    re.IGNORECASE,
)
_HOST_PATH = lazy_pattern(r"(?:[\w-]+\.)+[a-z]{2,}/[\w.-]+")
_SHORTHAND = lazy_pattern(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*(?:#\S+)?\Z")
_FETCH_INSIDE = lazy_pattern(
    rf"(?:[$<]\(|`)[^\n]{{0,200}}?\b(?:{'|'.join(sorted(map(re.escape, _FETCHERS - {'http', 'https'})))}"
    r"|base64|base32|xxd|openssl|rev|tr|printf)\b",
    re.IGNORECASE,
)
_DOWNLOAD_CODE = lazy_pattern(
    r"urlopen|urlretrieve|requests\.get|httpx\.get|b64decode|atob\(|fromhex|downloadstring|fetch\(|https?\.get\(|chr\(|fromcharcode"
    r"|file_get_contents|uri\.open|open-uri|lwp::|codecs\.decode|zlib\.decompress|marshal\.loads|unhexlify|https?://",
    re.IGNORECASE,
)
_RUNNING_CODE = lazy_pattern(
    r"\b(?:exec|eval|source|loadstring|new function|instance_eval|scriptblock\]::create)\s?\(|\beval get\b",
    re.IGNORECASE,
)
_REACH = 100
_SENDING_CODE = lazy_pattern(
    r"\b(?:post|put|urlopen|sendall|fetch|sendmail|axios)\w{0,5}\s?\(", re.IGNORECASE
)
_PRIVATE_CODE = lazy_pattern(
    r"os\.environ|process\.env\b(?!\.)|open\(\s?[\"'](?:~|/etc|/home|\.env|\.\./)|expanduser|homedir\(",
    re.IGNORECASE,
)
_CODE_DELETES = lazy_pattern(
    r"\b(?:rmtree|rmsync|rm_rf|removedirs|rimraf|os\.remove|os\.unlink|unlinksync)\s?\(\s?(?:os\.path\.expanduser|path\.home|pathlib\.path\.home"
    r"|os\.homedir|[\"'](?:~|\.\./|/(?!tmp/|var/tmp/)))",
    re.IGNORECASE,
)
# Flags, variables and settings mean the same wherever they stand, also without their program.
_SOURCE_SETTING = lazy_pattern(
    r"(?:index|index[_-]url|find[_-]links|registry|registries|goproxy|--source|npmregistryserver|mirror|repos"
    r"|repository[_-]url|add\(url)[\"']?"
    r"(?:\s?[=:]\s?|\s)[\"']?(?P<url>(?:git\+)?[a-z]{2,8}://[^\s'\"`]{1,300})",
    re.IGNORECASE,
)
_UNCHECKED = lazy_pattern(
    r"(?<![\w-])--(?:no|skip|disable|ignore|allow)-?(?:[a-z]{1,20}-){0,3}(?:verify|verification|hooks?|gpg-?checks?"
    r"|gpg-?sign|ssl|tls|certs?|certificates?|checksums?|signatures?|unauthenticated|untrusted)(?:-errors?)?"
    r"(?![\w-])"
    r"|(?<![\w-])--(?:insecure|trusted-host|yolo|dangerously-\w|no-?verify|strict-ssl[= ]false)"
    r"|\bbypass-?permissions\b|\bstricthostkeychecking[= ]no\b|\bstrict-ssl[= ]false\b"
    r"|\bnode_tls_reject_unauthorized[\"']?\s?=\s?[\"']?0"
    r"|(?:ssl|tls|https|cert)_?-?verif\w{1,10}[\"']?\s?[=:\s]\s?[\"']?(?:0|false|no|off|none)\b"
    r"|\b(?:ca_bundle|ssl_cert_file)=(?:[\"']{2}|\s|/dev/null)|\buserknownhostsfile[= ]/dev/null"
    r"|verify(?:peer|host)\W{1,6}(?:0|false)\b|\bvalidate_certs[\"']?\s?[=:]\s?[\"']?(?:no|false|0)\b"
    r"|\bgpg_?(?:sign|check)[= ](?:false|0|no)\b|\bfsckobjects[= ]false\b|\bsiglevel\s?=\s?never\b"
    r"|\btrusted=yes\b|--no(?:signature|digest|-quarantine)\b|--force-yes\b|--dangerous(?![\w-])"
    r"|-skipcertificatecheck\b|\bdisable-tls[= ]true\b|\bsecure-http[= ]false\b|certificatevalidationcallback"
    r"|\bcom\.apple\.quarantine\b|\b(?:seccomp|apparmor|label)[=:](?:unconfined|disable)\b"
    r"|--cap-add[= ]all\b|\bdanger-full-access\b|--ask-for-approval[= ]never\b|--yes-always\b|--allow-all-tools\b"
    r"|\bapproval[_-]?(?:policy|mode)\W{1,4}never\b|\bfail-under[= ]0\b|-vet=off\b"
    r"|\bauto_?-?approve\w{0,10}[\"']?\s?[=:]\s?[\"']?true\b"
    r"|\bgit_ssl_no_verify\b|\bhusky=0|\bhusky_skip_hooks=1|\bgo(?:nosumcheck|nosumdb|insecure)\b|\bgosumdb=off\b"
    r"|\bcore\.hookspath(?:[= ][\"']?(?:/|~|[\"'])|=(?:\s|\Z))|(?<![\w.])verify\s?=\s?false\b"
    r"|\brejectunauthorized[\"']?\s?:\s?false\b"
    r"|\binsecure[_-]?skip[_-]?(?:tls[_-]?)?verify[\"']?\s?[=:]\s?[\"']?true\b|_create_unverified_context"
    r"|\bcert_none\b|allow_?insecure\w{0,30}\s?[=:(]\s?true\b",
    re.IGNORECASE,
)
_CHECK_FILE = lazy_pattern(
    r"\.git/hooks|\.husky\b|\.pre-commit-config|\.github/workflows|\.gitlab-ci|\bcodeowners\b|\.semgrep|\.snyk",
    re.IGNORECASE,
)
_SWITCHED_OFF = lazy_pattern(
    r"(?:setenforce 0|ufw disable|spctl --(?:master|global)-disable|csrutil disable|pre-commit uninstall"
    r"|set-executionpolicy [^\n]{0,60}(?:bypass|unrestricted)|set-mppreference [^\n]{0,60}-disable"
    r"|systemctl (?:stop|disable|mask) (?:firewalld|apparmor|auditd|ufw)|iptables -f"
    r"|history -c|unset histfile|netsh advfirewall [^\n]{0,60}off|gh pr merge [^\n]{0,60}--admin"
    r"|auditctl -e 0|gh api [^\n]{0,60}delete[^\n]{0,100}/protection|unblock-file|vssadmin delete)",
    re.IGNORECASE,
)
_HOME = (
    r"(?:~[\w-]*|\$\{?home\}?|\$env:(?:userprofile|home)|%userprofile%|/home/[^/\s]+|/users/[^/\s]+|/root)"
)
_OUTSIDE = lazy_pattern(rf"(?:{_HOME}(?:[/\\]|\Z)|/|\.\.(?:/|\Z)|[a-z]:(?:[\\/\w]|\Z))", re.IGNORECASE)
_TEMPORARY = lazy_pattern(
    r"(?:/tmp|/var/tmp|/private/tmp|/dev/(?:shm|null|stdout|stderr|fd)|\$\{?tmp\w*\}?|%temp%)(?:/|\Z)",
    re.IGNORECASE,
)
_MADE_AGAIN = lazy_pattern(
    r"(?:^|/)(?:[\w.-]*cache[\w.-]*(?:/|$)|(?:node_modules|__pycache__|\.?venv|build|dist|target|\.tox"
    r"|[\w.-]+\.egg-info)$)",
    re.IGNORECASE,
)
_UNSET_ROOT = lazy_pattern(r"\$\{?\w+\}?/\*?\Z")
_SYSTEM_FOLDER = lazy_pattern(r"/(?:etc|usr|bin|sbin|lib\w*|boot|var/(?!tmp/)|home|root)(?:/|\Z)")
_DEVICE = lazy_pattern(r"(?:of=)?/dev/(?!null|zero|shm|stdout|stderr)")
_START_FILE = lazy_pattern(
    rf"{_HOME}[/\\](?:\.(?!cache\b)\w|library/(?:launch|preferences)|bin/)|\$profile\b"
    r"|/(?:etc|usr|bin|sbin|lib\w*|boot|var/spool|library|system|proc/sys|sys)(?:/|\Z)|[a-z]:\\(?:windows|program)"
    r"|(?:[^\s]*/)?(?:\.git/hooks/|\.envrc\Z|\.mcp\.json\Z|\.(?:claude|cursor|codex|gemini)/|\.cursorrules\Z"
    r"|(?:claude|agents|gemini)\.md\Z|\.vscode/(?:tasks|settings)\.json\Z|\.?(?:bash|zsh)(?:rc|_profile|env)\Z)",
    re.IGNORECASE,
)
_PRIVATE_FILE = lazy_pattern(
    r"(?:\.ssh(?:/(?!known_hosts)|\Z)|\bid_(?:rsa|ed25519|ecdsa|dsa)(?!\.pub)\b|\.aws(?:/|\Z)|\.netrc\b|\.pypirc\b"
    r"|\.kube/config|\.docker/config|\.gnupg|/etc/(?:shadow|passwd)\b|\.git-credentials|\.npmrc\b|\.config/gh\b"
    r"|(?:\A|[/@=])\.env(?:\.(?!example|sample|template)\w+)?\Z|_history\Z|\bcredentials(?:\.\w+)?\Z"
    r"|keychain|\.mozilla\b|cookies\b|login data|wallet\.dat)",
    re.IGNORECASE,
)
_HOME_ROOT = lazy_pattern(rf"{_HOME}/?", re.IGNORECASE)
_SECRET_WORD = lazy_pattern(r"\bsecrets?\b|password|access-token|credentials?\b", re.IGNORECASE)
_DUMP = lazy_pattern(
    r"(?:\$\(|`)\s?(?:env|printenv|set|export -p|history|gpg|security|whoami|id|pass|vault)\b"
    r"|://[^\s\"']{0,200}?(?:\$\(|`)\s?(?:cat|base64|hostname|git|ls|find|aws|gcloud|gh|kubectl|op|tar)\b"
)
_READ_INSIDE = lazy_pattern(r"(?:\$\(|`)\s?(?:cat|base64|xxd|head|tail|grep|<)\b")
_SECRET_VARIABLE = lazy_pattern(r"\$\{?\w{0,40}?(?:key|secret|token|passw|credential)", re.IGNORECASE)
_REVEALS = lazy_pattern(
    r"(?:env|printenv|history|set|export -p|ps aux|git (?:log|diff|bundle|archive|config|credential)"
    r"|gh auth token|gcloud auth|aws configure|vault|op (?:read|item)|pass|security find|gpg --export-secret"
    r"|kubectl config view|docker inspect|npm token)(?:\s|\Z)",
    re.IGNORECASE,
)
_SECRET_IN_URL = lazy_pattern(
    r"://[^\s\"']{0,200}?\$\{?\w{0,40}?(?:key|secret|token|passw|credential)", re.IGNORECASE
)
_PIECES = lazy_pattern(
    r"''|\"\"|\$\{?\w|\$'|\\x[0-9a-f]|\\[0-7]{3}|[A-Za-z]\\[A-Za-z\n]|&#\w|%[2-7][0-9A-Fa-f]"
)
_EMPTY_QUOTES = lazy_pattern(r"(?<=[A-Za-z])(?:''|\"\"|\\)(?=[A-Za-z])")
_CODED = lazy_pattern(r"\$'([^'\n]{1,400})'")
_CODE_POINT = lazy_pattern(r"\\[xuU]([0-9A-Fa-f]{2,4})")
_CODE_POINTS = lazy_pattern(
    r"(?:\\x[0-9A-Fa-f]{2}){2,}|(?:\\[0-7]{3}){2,}|(?:%[2-7][0-9A-Fa-f]){2,}|(?:&#\w{2,5};){2,}"
)
_ONE_CODE = lazy_pattern(
    r"\\x(?P<hex>..)|\\(?P<octal>[0-7]{3})|%(?P<percent>..)|&#(?:x(?P<entity>\w{2,4})|(?P<number>\d{2,5}));"
)
_SHORT_VALUE = lazy_pattern(r"(?<![\w$])(\w{1,30})=['\"]?([\w./-]{1,60})")
_VARIABLE = lazy_pattern(r"\$\{?(\w{1,30})\}?")
_PATTERN_NAME = lazy_pattern(r"[\w./-]*[/\w]\?[\w?/]+\Z|/[\w?*/]*\*[\w?*]*\Z|\{[\w./-]+,[^\s]")
_ENCODED_FLAG = lazy_pattern(r"-e(?:nc?|ncodedcommand)?\Z", re.IGNORECASE)
_CUT_OUT = lazy_pattern(r"\$\{\w{1,30}:\d{1,4}:\d{1,4}\}")
_SENDING_FLAG = lazy_pattern(
    r"(?:-d|-F|-T|--data[\w-]*|--form|--upload-file|--post-file|--post-data|--json)\b"
)


_SHELL_START = lazy_pattern(
    r"(?:(?:~|\$home)/\.(?:bash|zsh|profile|zprofile|login)\w*|/etc/(?:environment|profile)\b|\$profile\b"
    r"|(?:~|\$home)/\.config/[\w./ -]{1,80}settings\.json)",
    re.IGNORECASE,
)
_PUT_THERE = lazy_pattern(
    r"\balias\s\w|\bexport\s\w|\b[A-Za-z_]\w{2,60}=[\w'\"/$]|\"[\w.]{1,60}\"\s?:\s?[\w\"\[{]"
)


def text_risk(text: str) -> str:
    """Return what a text advises to run that a person must agree to, or an empty string."""
    if len(text) > LONGEST_TEXT:
        return TOO_LONG
    spelled = _spell_plainly(text)
    return _text_risk(text) or (_text_risk(spelled) if spelled != text else "")


def _spell_plainly(text: str) -> str:
    """Return a text as a shell reads it that spells its words in pieces, by codes or by variables."""
    if not _PIECES.search(text):
        return text
    text = _EMPTY_QUOTES.sub("", text).replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ")
    text = _CODED.sub(lambda quoted: _CODE_POINT.sub(lambda code: chr(int(code[1], 16)), quoted[1]), text)
    text = _CODE_POINTS.sub(lambda codes: _ONE_CODE.sub(_decode, codes[0]), text)
    values = dict(_SHORT_VALUE.findall(text)[:_MOST_STARTS])
    return _VARIABLE.sub(lambda name: values.get(name[1], name[0]), text) if values else text


def _decode(code: re.Match[str]) -> str:
    base = {"octal": 8, "number": 10}.get(str(code.lastgroup), 16)
    try:
        return chr(int(code[code.lastgroup or 0], base))
    except ValueError:
        return code[0]


@lru_cache(maxsize=512)
def _text_risk(text: str) -> str:
    if _UNCHECKED.search(text):
        return DISABLES_CHECKS
    if _CODE_DELETES.search(text):
        return DELETES_OUTSIDE
    if _SECRET_IN_URL.search(text):
        return SENDS_PRIVATE
    if _SHELL_START.search(text) and _PUT_THERE.search(text):
        return CHANGES_SETTINGS
    for setting in _SOURCE_SETTING.finditer(text):
        if _is_elsewhere(setting["url"]):
            return FOREIGN_SOURCE
    if _CUT_OUT.search(text):
        return OBSCURED
    for code in _PRIVATE_CODE.finditer(text):
        if _SENDING_CODE.search(text, max(0, code.start() - _REACH), code.start()):
            return SENDS_PRIVATE
    for code in _DOWNLOAD_CODE.finditer(text):
        if _RUNNING_CODE.search(text, max(0, code.start() - _REACH), code.start()):
            return RUNS_FETCHED
    return next(filter(None, map(command_risk, _find_commands(text))), "")


def command_risk(command: str) -> str:
    """Return what a command line does that a person must agree to, or an empty string."""
    steps = parse(command)
    return next((reason for reason, does in _BEHAVIOURS if does(steps)), "") if steps else ""


def _find_commands(text: str) -> Iterator[str]:
    """Find what may be a command line: spans of code, and from a program's name to the sentence's end."""
    if not text.startswith("`"):
        yield text
    for code in _CODE.finditer(text):
        yield code[1]
    # In a script without spaces the name of a program stands directly between its letters.
    plain = _FOREIGN_LETTERS.sub(lambda found: "\n" if _BREAK.search(found[0]) else " ", text)
    starts = 0
    for sentence in _BREAK.split(re.sub(r"[ \t]{2,}", " ", plain.replace("`", " "))):
        read_to = 0
        for name in _START.finditer(sentence):
            start, starts = name.start(), starts + 1
            if starts > _MOST_STARTS and start < read_to:
                continue
            quote = sentence[start - 1 : start]
            closing = sentence.find(quote, start) if quote in _QUOTES else -1
            read_to = min(closing if closing > 0 else len(sentence), start + _LONGEST_INLINE)
            yield sentence[start:read_to]
            for mark in _QUOTES:
                # The quote was opened before the command.
                if sentence.count(mark, start, read_to) % 2:
                    yield sentence[start : sentence.index(mark, start)]


def _call(step: Step, names: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Return which of these programs a step calls, wrapped or not, and what it is given; empty for none."""
    values = [word.value for word in step.words[len(step.assignments) :]]
    for at, value in enumerate(values[:6]):
        name = _base(value)
        if name in names:
            return name, tuple(values[at + 1 :])
    return "", ()


def _base(program: str) -> str:
    return program.rsplit("/", 1)[-1].lower().removesuffix(".exe")


def _is_elsewhere(value: str) -> bool:
    """Say whether a value names a place on another machine that is no public registry's own."""
    if _REPOSITORY.match(value):
        return True
    for url in _URL.finditer(value):
        scheme, host = url["scheme"].lower(), url["host"].lower()
        if scheme == "file" or host in _LOOPBACK:
            continue
        if scheme != "https" or host not in _ENDPOINTS:
            return True
    return False


def _runs_fetched(steps: Sequence[Step]) -> bool:
    """A step runs what an earlier one fetched or decoded: by a pipe, a file, a variable or a substitution."""
    is_flowing = is_held = is_inside = False
    names: set[str] = set()
    for step in steps:
        name = _base(step.program)
        is_flowing = is_flowing and step.operator == "|"
        if _runs_text(step, is_flowing=is_flowing, is_held=is_held) or _runs_file(step, names):
            return True
        if _runs_address(name, step):
            return True
        if is_inside and not is_preparation(step) and not is_read_only_step(step):
            return True
        is_inside = is_inside or (name == "cd" and bool(names & set("/".join(step.arguments).split("/"))))
        is_held = is_held or any(_FETCH_INSIDE.search(each) for each in step.assignments)
        is_clone = step.name in ("git clone", "gh repo", "hg clone", "svn checkout", "svn co")
        fetches = name in _FETCHERS or is_clone
        is_flowing = is_flowing or fetches or name in _SENDS or _decodes(name, step)
        if fetches or (name in _EXTRACTS and names):
            given = [word.value for word in step.words[1:] if not word.value.startswith("-")]
            targets = (*given, *(redirect.target for redirect in step.redirects))
            names |= set(map(_last_part, targets)) - {""}
            names |= set(map(_stem, targets)) - {""} if name in _EXTRACTS else set()
    return False


def _runs_address(name: str, step: Step) -> bool:
    """Say whether a step runs or applies what an address names."""
    if name in _CLUSTER:
        is_applying = step.subcommand in ("apply", "create", "replace")
        return is_applying and (_names_url(step) or any(map(_HOST_PATH.match, step.arguments)))
    if name in _CONTAINERS:
        return bool({"build", "compose"} & set(step.name.split())) and _names_url(step)
    return name in _RUNS_ADDRESS and _names_url(step)


def _names_url(step: Step) -> bool:
    return any(_is_elsewhere(word.value) for word in step.words)


def _runs_text(step: Step, *, is_flowing: bool, is_held: bool) -> bool:
    """Say whether a step runs what flows into it, what a variable holds or what a substitution fetches."""
    name, values = _base(step.program), [word.value for word in step.words]
    is_runner = name in _SHELLS or name in _EVALUATES
    is_interpreter = name in _INTERPRETERS
    if is_flowing:
        is_bare = step.arguments in ((), ("-",)) and step.subcommand in ("", "-")
        reads_code = is_runner or (is_bare and (is_interpreter or step.program.startswith("$")))
        is_read = name in _READS_INPUT or name in _SENDS or is_interpreter or name.startswith("python -m")
        if reads_code or (not is_read and _takes_code(step)):
            return True
    if any(value.startswith(("/dev/tcp/", "/dev/udp/")) for value in values):
        return True
    if name in ("nc", "ncat", "netcat") and not {"-e", "-c", "--exec"}.isdisjoint(step.flags):
        return True
    is_substituted = not step.assignments and values[:1] != [] and values[0].startswith(("$(", "`"))
    if not (is_runner or is_interpreter or is_substituted or "<(" in step.text):
        return False
    is_fetched = bool(_FETCH_INSIDE.search(step.text)) and name not in _READS_INPUT
    return is_fetched or (is_held and is_runner and "$" in step.text)


def _takes_code(step: Step) -> bool:
    """Say whether a program that is no filter is told to read its input as its orders."""
    return "-" in step.arguments or "/dev/stdin" in step.arguments or step.program in ("psql", "mysql", "at")


def _decodes(name: str, step: Step) -> bool:
    if name in _DECODERS:
        return True
    flag = {"base64": r"-\w*[dD]|--decode", "base32": r"-\w*d", "xxd": "-r", "openssl": r"-d\Z"}.get(name)
    return flag is not None and any(re.match(flag, each) for each in step.flags)


def _last_part(path: str) -> str:
    return re.split(r"[?#]", path)[0].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")


def _stem(path: str) -> str:
    return _last_part(path).split(".", 1)[0]


def _runs_file(step: Step, names: set[str]) -> bool:
    """Say whether a step runs or installs one of these files, or a file of these folders."""
    called = step.words[len(step.assignments) :][:1]
    if not names or not called:
        return False
    paths = [called[0].value] if called[0].value not in _NAMED else []
    name = _base(step.program)
    if name == "chmod":
        paths += step.arguments[1:] if re.search(r"x|[1357]", "".join(step.arguments[:1])) else ()
    elif name in _RUNS_FILES:
        paths += step.arguments if name in _INSTALLS_FILES else step.arguments[:1]
    return any(names & set(path.split("/")) for path in paths)


def _evaluates_download(steps: Sequence[Step]) -> bool:
    names = {_base(step.program) for step in steps}
    if not names & {"iex", "invoke-expression"}:
        return False
    return bool(names & _FETCHERS) or any("downloadstring" in step.text.lower() for step in steps)


def _installs_elsewhere(steps: Sequence[Step]) -> bool:
    """A package manager is given another index, a URL, a repository or a channel that is not well known."""
    for step in steps:
        name, given = _call(step, _MANAGERS)
        if _base(step.program) in ("add-apt-repository", "apt-add-repository", "apt-key") and step.arguments:
            return True
        verb = next((value for value in given[:3] if value in _INSTALL_VERBS or value == "config"), "")
        if not verb:
            continue
        if any(map(_is_elsewhere, given)) or (name == "brew" and verb == "tap"):
            return True
        packages = [value for value in given[given.index(verb) + 1 :] if not value.startswith("-")]
        is_node = name in ("npm", "pnpm", "yarn", "bun")
        if is_node and packages and _SHORTHAND.match(packages[0]) and packages[0] != "and/or":
            return True
        channels = [value for flag, value in pairwise(given) if flag in ("-c", "--channel")]
        if name in ("conda", "mamba", "micromamba") and set(channels) - _CHANNELS:
            return True
    return False


_RUNNERS = _words("npx bunx uvx pipx npm pnpm yarn bun uv go deno nix gem dnx")
_FETCHING_VERBS = frozenset((
    "pipx run", "pnpm dlx", "yarn dlx", "bun x", "uv tool", "gem exec", "npm create", "pnpm create",
    "yarn create", "bun create", "npm init", "bunx", "uvx", "dnx",
))  # fmt: skip


def _runs_package(steps: Sequence[Step]) -> bool:
    """A package is fetched and run at once, without being one of the project's own."""
    for step in steps:
        name, given = _call(step, _RUNNERS)
        plain = [value for value in given if not value.startswith("-")]
        if not plain:
            continue
        verb = f"{name} {plain[0]}"
        # What stands after the package's name is the package's own.
        own = given[: given.index(plain[0]) + (2 if name == "npm" else 0)]
        is_told_yes = not {"-y", "--yes", "-p", "--package"}.isdisjoint(own)
        if name in _FETCHING_VERBS or (verb in _FETCHING_VERBS and len(plain) > 1):
            return verb != "uv tool" or plain[1] == "run"
        is_package = any(value.startswith("--package=") for value in own) or _is_elsewhere(plain[0])
        if (name == "npx" and (is_told_yes or is_package or "@" in plain[0][1:])) or (
            verb == "npm exec" and is_told_yes
        ):
            return True
        first = "".join(plain[1:2])
        is_remote = (
            _is_elsewhere(first) or first.startswith(("npm:", "jsr:")) or ("." in first and "@" in first)
        )
        if plain[0] == "run" and is_remote:
            return True
    return False


def _is_outside(path: str) -> bool:
    """Say whether a path leads out of the project, to something that no tool makes again."""
    if not _OUTSIDE.match(path):
        return ".." in path and normpath(path).startswith("..")
    if ".." in path:
        return True
    return not _TEMPORARY.match(path) and not _MADE_AGAIN.search(path.rstrip("/*"))


def _deletes_outside(steps: Sequence[Step]) -> bool:
    before: Sequence[str] = ()
    is_outside = False
    for step in steps:
        name, arguments = _base(step.program), step.arguments
        # In Windows, /s and /q are flags.
        places = [each for each in arguments if not re.fullmatch(r"/[A-Za-z]", each)]
        if name in ("cd", "pushd"):
            is_outside = any(map(_is_outside, places))
        elif name in _DELETES:
            flowing = before if step.operator == "|" else ()
            if (
                is_outside
                or any(map(_is_outside, (*places, *flowing)))
                or any(map(_UNSET_ROOT.match, places))
            ):
                return True
        elif _deletes_much(name, step):
            return True
        before = arguments
    return False


def _deletes_much(name: str, step: Step) -> bool:
    """Say whether a step deletes more than the files that it names."""
    arguments, flags = step.arguments, step.flags
    if name == "find":
        is_deleting = "-delete" in flags or ("-exec" in flags and "rm" in arguments)
        return is_deleting and any(map(_is_outside, arguments[:1]))
    if name == "git":
        elsewhere = [value for flag, value in pairwise(word.value for word in step.words) if flag == "-C"]
        return "clean" in (step.subcommand, *arguments) and any(map(_is_outside, (*elsewhere, *arguments)))
    if name == "mv":
        return any(map(_SYSTEM_FOLDER.match, arguments[:-1]))
    if name in _CONTAINERS:
        return "prune" in step.subcommand and any(re.match(r"--all|--volumes|-\w*a", flag) for flag in flags)
    if name == "rsync":
        return "--delete" in flags and any(map(_is_outside, arguments[-1:]))
    if name in ("aws", "gsutil", "gcloud", "az", "terraform", "gh"):
        words = {*step.subcommand.split(), *arguments[:4]}
        return bool(words & {"rm", "rb", "delete", "destroy"}) and words.isdisjoint(("cache", "pod"))
    if name in _CLUSTER:
        return step.subcommand == "delete" and not {"--all-namespaces", "-A", "--all"}.isdisjoint(flags)
    return name.split(".")[0] in _OVERWRITES and any(map(_DEVICE.match, (*arguments, *flags)))


def _disables_checks(steps: Sequence[Step]) -> bool:
    for step in steps:
        name = _base(step.program)
        flags = [flag for flag in step.flags if re.fullmatch(r"-[A-Za-z]+", flag)]
        if name == "curl" and any("k" in flag for flag in flags):
            return True
        if step.name == "git commit" and any("n" in flag for flag in flags):
            return True
        if name == "git" and any(each.startswith("SKIP=") for each in step.assignments):
            return True
        is_open = "--privileged" in step.flags or any(word.value.startswith("/:/") for word in step.words)
        if name in _CONTAINERS and is_open:
            return True
        is_removing = name in _DELETES or name in ("mv", "chmod") or step.name == "git rm"
        if is_removing and any(map(_CHECK_FILE.search, step.arguments)):
            return True
        if _SWITCHED_OFF.match(" ".join(word.value for word in step.words[len(step.assignments) :])):
            return True
    return False


def _written_paths(step: Step) -> list[str]:
    """Return the files that a step writes."""
    name, arguments = _base(step.program), step.arguments
    paths = [redirect.target for redirect in step.redirects if redirect.is_to_file]
    if name in ("tee", "add-content", "set-content", "out-file"):
        paths += arguments
    elif name in ("cp", "mv", "install", "ln", "rsync") and len(arguments) > 1:
        paths.append(arguments[-1])
    elif name == "sed" and (step.subcommand == "-i" or any(flag.startswith("-i") for flag in step.flags)):
        paths += arguments
    elif name == "dd":
        paths += [argument[3:] for argument in arguments if argument.startswith("of=")]
    return paths


def _changes_settings(steps: Sequence[Step]) -> bool:
    for step in steps:
        if any(_START_FILE.match(path) for path in _written_paths(step)):
            return True
        name, arguments = _base(step.program), step.arguments
        if name == "crontab" and (
            step.operator == "|" or "-" in arguments or not _EDITS.isdisjoint(step.flags)
        ):
            return True
        if name in ("chmod", "chown") and (
            re.search(r"\+s|\A[2467]\d{3}\Z", "".join(arguments[:1]))
            or ("-R" in step.flags and any(map(_is_outside, arguments[1:])))
        ):
            return True
        setter, given = _call(step, frozenset(_SETTERS))
        words = set(given)
        if not setter or words & _LISTS or len(given) < 2:
            continue
        needed = _SETTERS[setter]
        is_config = given[0] == ("env" if setter == "go" else "config")
        if words & needed and (is_config or not needed <= _CONFIG_WORDS):
            return True
    return False


def _sends_private(steps: Sequence[Step]) -> bool:
    """Keys, credentials, the environment or the whole project go to another machine: by a file or a pipe."""
    is_private = is_new_remote = False
    packed: set[str] = set()
    for step in steps:
        name, values = _base(step.program), [word.value for word in step.words]
        files = [value for value in values if _is_private(value, packed)]
        files += [redirect.target for redirect in step.redirects if _is_private(redirect.target, packed)]
        is_private = is_private and step.operator == "|"
        is_login = "login" in values or "auth" in values
        if name in _SENDS and ((is_private and not is_login) or _sends_files(name, step, values, files)):
            return True
        if name == "git" and "push" in values and (is_new_remote or _names_url(step)):
            return True
        is_new_remote = is_new_remote or step.subcommand in ("remote add", "remote set-url")
        is_revealed = bool(_REVEALS.match(step.text)) or any(map(_SECRET_VARIABLE.search, values))
        reads_secrets = any(map(_SECRET_WORD.search, values)) and name not in ("echo", "printf")
        is_private = is_private or is_revealed or bool(files) or reads_secrets or name in _ARCHIVES
        if files and name not in _SENDS:
            packed |= {_last_part(value) for value in (*values, *(each.target for each in step.redirects))}
    return False


def _is_private(value: str, packed: set[str]) -> bool:
    _, at, named = value.partition("@")
    if _HOME_ROOT.fullmatch(value) or (packed and _last_part(named or value) in packed):
        return True
    if at and value[:1] in "@f" and _is_outside(named):
        return True
    return bool(_PRIVATE_FILE.search(value)) and not value.endswith(".pub")


def _sends_files(name: str, step: Step, values: Sequence[str], files: Sequence[str]) -> bool:
    """Say whether a step that speaks to another machine gives it private files or what they hold."""
    if _DUMP.search(step.text) or (_READ_INSIDE.search(step.text) and _PRIVATE_FILE.search(step.text)):
        return True
    if name in ("curl", "wget"):
        is_sending = any(map(_SENDING_FLAG.match, values))
        given = [value for flag, value in pairwise(values) if _SENDING_FLAG.match(flag)]
        return is_sending and (bool(files) or any(map(_SECRET_VARIABLE.search, given)))
    if name in ("scp", "rsync", "sftp", "rclone"):
        # The key by which a program signs in is not sent.
        keys = {value for flag, value in pairwise(values) if flag in ("-i", "-e", "-F")}
        return bool(set(files) - keys) and any(re.match(r"[\w.@-]+:", value) for value in values[1:])
    if name in ("ssh", "nslookup", "dig", "host"):
        return False
    if name == "gh" and "gist" in values and "create" in values:
        return True
    return bool(files) and (name not in _UPLOADERS or not _UPLOADS.isdisjoint(values))


def _hides_program(steps: Sequence[Step]) -> bool:
    """The name of a program is a pattern or a list that the shell completes, or its script is encoded."""
    for step in steps:
        called = step.words[len(step.assignments) :][:1]
        if called and _PATTERN_NAME.match(called[0].raw):
            return True
        if _base(step.program) in ("powershell", "pwsh") and any(map(_ENCODED_FLAG.match, step.flags)):
            return True
    return False


_BEHAVIOURS: tuple[tuple[str, Callable[[Sequence[Step]], bool]], ...] = (
    (RUNS_FETCHED, _runs_fetched),
    (RUNS_FETCHED, _evaluates_download),
    (FOREIGN_SOURCE, _installs_elsewhere),
    (FETCHED_PACKAGE, _runs_package),
    (DELETES_OUTSIDE, _deletes_outside),
    (DISABLES_CHECKS, _disables_checks),
    (CHANGES_SETTINGS, _changes_settings),
    (SENDS_PRIVATE, _sends_private),
    (OBSCURED, _hides_program),
)
