"""The programs, flags and files that `command_risks` knows, each table by what its members do.

All patterns are linear: what may repeat is bounded or possessive.
"""

from __future__ import annotations

import re

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.programs import words_of

FETCHERS = words_of(
    "curl wget iwr irm invoke-webrequest invoke-restmethod aria2c httpie xh http https lynx nc ncat netcat"
    " socat telnet ftp tftp fetch axel certutil bitsadmin start-bitstransfer"
)
INTERPRETERS = words_of(
    "python node ruby perl php lua deno bun osascript pwsh powershell rscript julia tclsh"
)
# Programs that run what an address names, and programs that only read, check or unpack what flows in.
RUNS_ADDRESS = words_of("mshta regsvr32 rundll32 msiexec cookiecutter copier degit rpm dpkg ansible-pull")
SHELLS = programs.SHELLS | words_of("fish csh tcsh ash busybox cmd")
EVALUATES = words_of("eval source . iex invoke-expression")
EXTRACTS = words_of("tar unzip gunzip 7z bsdtar unxz")
READS_INPUT = (
    programs.FILTERS
    | programs.LOOKS
    | EXTRACTS
    | words_of(
        "gpg shasum sha1sum b2sum cksum pv dd xmllint html2text pandoc xq mlr jless gzip xz zstd bzip2 zcat"
        " openssl base64 base32 iconv sponge pbcopy xclip fx gron dasel hexdump sqlite3 duckdb plutil aspell"
    )
)
DECODERS = words_of("rev tr")
INSTALLS_FILES = words_of("dpkg rpm installer msiexec pip npm code apt apt-get")
RUNS_FILES = SHELLS | INTERPRETERS | EVALUATES | INSTALLS_FILES | words_of("open start java wine dotnet")
MANAGERS = words_of(
    "pip pipx uv conda mamba micromamba npm pnpm yarn bun gem bundle cargo go composer brew apt apt-get dnf"
    " yum apk zypper choco winget scoop dotnet nuget helm poetry pdm rye pixi pipenv cpan cpanm deno"
    " asdf mise pod flutter dart conan easy_install"
    " luarocks opam mix vcpkg install-module"
)
# Programs that build or install from any address that they are given.
TAKES_ADDRESS = words_of(
    "mvn mvnw gradle gradlew sbt lein nix nix-env nix-shell cpanm easy_install register-psrepository"
    " add-appxpackage install-package install-module vagrant packer"
)
MODULE_HOSTS = frozenset((
    "github.com", "gitlab.com", "bitbucket.org", "golang.org", "google.golang.org", "gopkg.in", "k8s.io",
    "sigs.k8s.io", "go.uber.org", "honnef.co", "mvdan.cc", "gotest.tools", "cloud.google.com", "buf.build",
    "go.opentelemetry.io", "connectrpc.com", "entgo.io", "gorm.io", "filippo.io", "rsc.io", "gonum.org",
    "modernc.org", "goa.design", "codeberg.org", "go.etcd.io", "cuelang.org", "dario.cat",
))  # fmt: skip
INSTALL_VERBS = words_of(
    "install i add get require download sync ci update upgrade tap repo source sources lock wheel isntall"
)
ENDPOINTS = frozenset((
    "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "rubygems.org",
    "crates.io", "index.crates.io", "cran.r-project.org", "cloud.r-project.org", "static.crates.io",
    "proxy.golang.org", "repo.maven.apache.org",
    "repo1.maven.org", "api.nuget.org", "hex.pm", "repo.packagist.org",
))  # fmt: skip
LOOPBACK = words_of("localhost 127.0.0.1 [::1] 0.0.0.0 host.docker.internal")
EXTENSION_WORDS = words_of("extension --install-extension")
# Which banks are trusted and which lessons are told is the user's to say.
OWN_DECISION = lazy_pattern(
    r"(?:\S{0,80}/)?archivist (?:--?\w[\w-]* \S{1,80} ){0,3}(?:trust|lessons (?:approve|forget|retire)"
    r"|config set|token create|sync|store|core (?:adopt|update)|setup [^\n]{0,80}--undo|prune|model allow"
    r"|worker|serve"
    r"|proposals accept|import [^\n]{0,200}--approve|share [^\n]{0,200}--trust|uninstall|erase|restore)\b",
    re.IGNORECASE,
)
CHANNELS = words_of("conda-forge defaults main anaconda bioconda pytorch nvidia")
DELETES = words_of("rm rmdir unlink shred srm del erase rd remove-item ri trash rimraf truncate")
CLUSTER = words_of("kubectl oc")
CONTAINERS = words_of("docker podman nerdctl")
ARCHIVES = words_of("tar zip 7z mysqldump pg_dump pg_dumpall mongodump")
OVERWRITES = words_of("dd wipefs mkfs fdisk parted diskpart format")
SENDS = FETCHERS | words_of(
    "scp rsync sftp ssh mail mailx sendmail mutt rclone gsutil aws az gcloud gh nslookup dig host s3cmd"
)
EDITS = words_of("-e -r")
UPLOADERS = words_of("aws az gcloud gsutil gh s3cmd")
UPLOADS = words_of("cp mv sync rsync copy copyto move moveto create upload upload-batch put")
BUCKET = lazy_pattern(r"(?:s3|gs|az|oss|b2)://", re.IGNORECASE)
RCLONE_REMOTE = lazy_pattern(r"[\w.@-]{2,60}:|:\w{1,20}[:,]")
# The flags by which curl and wget send a file, and a host without a scheme.
FILE_FLAG = lazy_pattern(r"-\w{0,6}T\Z|--(?:upload-file|post-file|body-file)\b")
FILE_GIVEN = lazy_pattern(r"(?:[\w.-]{1,60}=[@<]|@(?!-\Z|[^\s]{1,200}\.json\Z))")
HOST = lazy_pattern(r"(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?(?:/|\Z)", re.IGNORECASE)
COPIES = words_of("cp mv ln install rsync ditto copy tar zip 7z")
REMOTE_FORWARD = lazy_pattern(r"-[A-Za-z]{0,6}R|-o(?i:remoteforward)")
# Programs that let the internet reach this machine, and the words by which they do.
TUNNELS = {
    "ngrok": words_of("http tcp tls start tunnel"),
    "cloudflared": words_of("tunnel access"),
    **dict.fromkeys(("lt", "localtunnel"), words_of("--port -p")),
    "bore": words_of("local"),
    "tailscale": words_of("funnel"),
    "devtunnel": words_of("host"),
    "zrok": words_of("share"),
    "frpc": words_of("-c --config http tcp"),
    "code": words_of("tunnel"),
}
# A proxy: by a variable, a setting of git, npm, pip or conda, or a flag.
PROXY_SETTING = lazy_pattern(
    r"(?:(?:\b|_)(?:https?|all|ftp|grpc|config)_proxy[\"']?\s?=\s?"
    r"|\b(?:https?\.(?:[^\s=]{1,200}\.)?|remote\.[^\s=]{1,60}\.|global\.|install\.)proxy[= ]"
    r"|\bset (?:-\S{1,20} )?(?:https?[-_])?proxy[= ]|\bproxy_servers\.\w{1,10}[= ]"
    r"|(?<![\w-])--(?:(?:pre|https?-)?proxy|socks[45]\S{0,10})[= ]|\bcurl (?:[^\n|;&]{0,80} )?-x ?)"
    r"[\"']?(?:[a-z\d]{2,8}://(?:[^\s/@'\"]{1,100}@)?(?P<named>\[[^\]\s]{1,60}\]|[^\s/:?#'\"<>]{1,200})"
    r"|(?P<bare>(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}|[\w-]{1,63}(?=:[\d<])))",
    re.IGNORECASE,
)
# A variable that names the machine of a database: what a program stores and reads goes there.
DATABASE_HOST = lazy_pattern(
    r"\b(?:pghost|(?:db|database|mysql|postgres|redis|mongo)_host"
    r"|\w{0,20}(?:database|db|redis|mongo|postgres|broker)_ur[il])[\"']?\s?=\s?[\"']?"
    r"(?:[a-z\d+]{2,20}://(?:[^\s/@'\"]{1,200}@)?)?(?P<host>(?:[\w-]{1,63}\.){1,8}[a-z]{2,24})\b",
    re.IGNORECASE,
)
OWN_NETWORK = (".local", ".localhost", ".internal", ".lan", ".test")
SAID_TO_FAIL = lazy_pattern(r"`(?=\s(?:fails|failed)\b)")
CONFIG_WORDS = words_of("--global --system set --set --add --append --prepend -w")
# The programs that change settings beyond the project, and the words by which they do.
SETTERS = {
    "git": words_of("--global --system"),
    **dict.fromkeys(
        words_of("npm pnpm yarn pip conda poetry bun gem bundle"),
        words_of("set --set --add --append --prepend"),
    ),
    "go": words_of("-w"),
    "systemctl": words_of("enable link"),
    "launchctl": words_of("load bootstrap enable submit"),
    "reg": words_of("add import"),
    "sysctl": words_of("-w --write"),
    "schtasks": words_of("/create"),
    "defaults": words_of("write"),
    "gsettings": words_of("set set-value"),
    "update-alternatives": words_of("--set --install"),
    "loginctl": words_of("enable-linger"),
    "sc": words_of("create config"),
    **dict.fromkeys(words_of("new-itemproperty set-itemproperty"), words_of("-path -value -name")),
    "register-scheduledtask": words_of("-taskname -action"),
}
LISTS = words_of("-l --list list get --get --get-all --show-origin show --unset")

# Names that are looked for in sentences; those that are common words are only recognised in code.
NAMED = (
    FETCHERS | INTERPRETERS | SHELLS | MANAGERS | DELETES | OVERWRITES | SENDS | frozenset(SETTERS)
    | CLUSTER | ARCHIVES | words_of(
        "eval source iex invoke-expression npx uvx bunx git docker podman tee cp mv ln sed echo printf cat"
        " export find base64 openssl xxd env printenv chmod sudo setenforce ufw spctl csrutil"
        " set-executionpolicy set-mppreference nix python3 pip3 tar xargs pre-commit crontab apt-key history"
        " add-apt-repository add-content set-content mshta regsvr32 cookiecutter terraform vssadmin chown awk"
        " tofu claude codex ngrok cloudflared localtunnel tailscale"
    )
)  # fmt: skip
# Common words are recognised in a sentence where a flag, a path or a drive follows.
COMMON_NAMES = words_of("host http https fetch format rd ri mix trash defaults telnet mail scoop opam helm")
START = lazy_pattern(
    rf"(?<![\w/.~$@=-])(?:(?:{'|'.join(sorted(map(re.escape, NAMED - COMMON_NAMES), key=len, reverse=True))})"
    rf"(?:\.exe)?(?![\w/.=@-])|(?:{'|'.join(sorted(COMMON_NAMES))})(?= (?:-\w|/|\w:)))",
    re.ASCII | re.IGNORECASE,
)
CODE = lazy_pattern(r"`{1,3}([^`]+)`")
# A sentence ends; in a command, a full stop or a comma that ends a word is followed by no space.
BREAK = lazy_pattern(
    r"(?<=[^\s.])[.!?](?=\s|\Z)|,(?=\s|\Z)"
    r"|[\n\u3002\uff01\uff1f\uff0c\u3001\uff1b]|\s[\u2013\u2014]\s"
)
FOREIGN_LETTERS = lazy_pattern(r"[^\x00-\x7f]+")
QUOTES = ("'", '"')
URL = lazy_pattern(
    r"(?P<scheme>(?:(?:git|hg|svn|bzr)\+)?(?:https?|ftps?|git|ssh|s3|gs|oci|file))://(?:[^\s/?#@'\"<>]{0,100}@)?"
    r"(?P<host>[^\s/:?#'\"<>]{0,200})",
    re.IGNORECASE,
)
REPOSITORY = lazy_pattern(
    r"(?:github|gitlab|bitbucket|gist|gh|gl):[\w.-]+/|git@[\w.-]+:|[\w.@/-]{1,100}@(?:npm|github):",
    re.IGNORECASE,
)
HOST_PATH = lazy_pattern(r"\A(?:[\w-]++\.)++[a-z]{2,}+/[\w.-]")
SHORTHAND = lazy_pattern(r"\A[A-Za-z0-9][\w-]*+/[A-Za-z0-9][\w.-]*+(?:#\S++)?\Z")
SUBSTITUTION = lazy_pattern(r"[$<]\(|`")
FETCHING_NAME = lazy_pattern(
    rf"\b(?:{'|'.join(sorted(map(re.escape, FETCHERS - {'http', 'https'})))}"
    r"|base64|base32|xxd|openssl|rev|tr|printf)\b",
    re.IGNORECASE,
)
DOWNLOAD_CODE = lazy_pattern(
    r"urlopen|urlretrieve|requests\.get|httpx\.get|b64decode|atob\(|fromhex|downloadstring|fetch\(|https?\.get\(|chr\(|fromcharcode"
    r"|file_get_contents|uri\.open|open-uri|lwp::|codecs\.decode|zlib\.decompress|marshal\.loads|unhexlify|https?://",
    re.IGNORECASE,
)
RUNNING_CODE = lazy_pattern(
    r"\b(?:exec|eval|source|loadstring|new function|instance_eval|scriptblock\]::create)\s?\(|\beval get\b",
    re.IGNORECASE,
)
SENDING_CODE = lazy_pattern(r"\b(?:post|put|urlopen|sendall|fetch|sendmail|axios)\w{0,5}\s?\(", re.IGNORECASE)
PRIVATE_CODE = lazy_pattern(
    r"os\.environ|process\.env\b(?!\.)|open\(\s?[\"'](?:~|/etc|/home|\.env|\.\./)|expanduser|homedir\(",
    re.IGNORECASE,
)
CODE_DELETES = lazy_pattern(
    r"\b(?:rmtree|rmsync|rm_rf|removedirs|rimraf|os\.remove|os\.unlink|unlinksync)\s?\(\s?(?:os\.path\.expanduser|path\.home|pathlib\.path\.home"
    r"|os\.homedir|[\"'](?:~|\.\./|/(?!tmp/|var/tmp/)))",
    re.IGNORECASE,
)
# Databases and applications of a host that a command resets or destroys by name.
RESETS_REMOTE = lazy_pattern(
    r"\bheroku\s(?:pg:reset|apps:destroy|addons:destroy)\b|\b(?:fly|flyctl)\s(?:apps|volumes|pg|postgres)\sdestroy\b"
    r"|\bsupabase\sdb\sreset\s[^\n|;]{0,60}--linked\b|\bgcloud\ssql\sinstances\sdelete\b",
    re.IGNORECASE,
)
# A server that gives the user's home, or everything, to whoever asks.
SERVES_HOME = lazy_pattern(
    r"\b(?:http\.server|simplehttpserver|http-server|npx serve|php -s|caddy file-server)\b[^\n|;&`]{0,80}?"
    r"\s(?:--directory|--root|-d|-t)?[= ]?[\"']?(?:~|\$\{?home\b|/(?:home|users|root|etc)\b"
    r"|/(?=[\s\"'`]|\Z))",
    re.IGNORECASE,
)
# Flags, variables and settings mean the same wherever they stand, also without their program.
SOURCE_SETTING = lazy_pattern(
    r"(?:index|index[_-]url|find[_-]links|registry|registries|goproxy|--source|npmregistryserver|mirror|repos"
    r"|repository[_-]url|remoterepositories|add\(url)[\"']?"
    r"(?:\s?[=:]\s?|\s)[\"']?(?P<url>(?:git\+)?[a-z]{2,8}://[^\s'\"`]{1,300})",
    re.IGNORECASE,
)
# Another configuration, index or init script for a package manager or a build tool, by option or variable;
# an address in its place is judged as one.
OTHER_SETTINGS = lazy_pattern(
    r"(?<![\w-])--(?:userconfig|globalconfig|init-script|global-settings|use-yarnrc)(?![\w-])"
    r"|\b(?:uv|gem|dotnet|nuget|poetry|pdm|pixi)(?:\s(?!run\b|exec\b|tool\b)[^\s;|&`]{1,120}){0,9}?"
    r"\s--?(?:config-?file|ConfigFile)(?=[=\s])"
    r"|\bcargo(?:\s(?:\+\S{1,40}|build|test|check|run|install|clippy|bench|doc|fetch|add|update)){0,2}\s--config(?=[=\s])"
    r"|\bmvnw?(?:\s[^\s;|&`]{1,120}){0,9}?\s(?:-s|-gs|--settings)(?=[=\s])"
    r"|\bgradlew?(?:\s[^\s;|&`]{1,120}){0,9}?\s(?:-I|-c|--settings-file|--include-build)(?=[=\s])"
    r"|\b(?:CONDARC|(?:npm|NPM)_(?:config|CONFIG)_(?:(?:user|global|USER|GLOBAL)?(?:config|CONFIG)|registry|REGISTRY)"
    r"|(?:PIP|UV|PNPM|YARN|POETRY|PDM|PIXI|CONDA|MAMBA|CARGO|GEM|BUNDLE|COMPOSER|NUGET|GRADLE|MAVEN|HOMEBREW)"
    r"_(?!NO_)(?:[A-Z0-9]{1,20}_){0,5}(?:CONFIG|INDEX|REGISTRY|REGISTRIES|SETTINGS|FIND_LINKS|RC)"
    r"(?:_[A-Z0-9_]{1,40})?(?<!_PROTOCOL))=(?![\"']?(?:https?://|/dev/null\b|[\s\"']|\Z))"
)
# A variable that leads a program to another server.
REDIRECTION = lazy_pattern(r"\b[A-Z][A-Z0-9_]{2,60}=[\"']?(?P<url>[a-z][a-z+]{1,12}://[^\s'\"`]{1,300})")
UNCHECKED = lazy_pattern(
    r"(?<![\w-])--(?:no|skip|disable|ignore|allow)-?(?:[a-z]{1,20}-){0,3}(?:verify|verification|hooks?|gpg-?checks?"
    r"|gpg-?sign|ssl|tls|certs?|certificates?|checksums?|signatures?|unauthenticated|untrusted)(?:-errors?)?"
    r"(?![\w-])"
    r"|(?<![\w-])--(?:insecure|trusted-host|yolo|dangerously-\w|no-?verify|strict-ssl[= ]false)"
    r"|\bbypass-?permissions\b|\bstricthostkeychecking[= ]no\b|\bstrict-ssl[= ]false\b"
    r"|\bnode_tls_reject_unauthorized[\"']?\s?=\s?[\"']?0"
    r"|(?:ssl|tls|https|cert)_?-?verif\w{1,20}[\"']?\s?[=:\s]\s?[\"']?(?:0|false|no|off|none)\b"
    r"|\b(?:ca_bundle|ssl_cert_file)=(?:[\"']{2}|\s|/dev/null)|\buserknownhostsfile[= ]/dev/null"
    r"|verify(?:peer|host)\W{1,6}(?:0|false)\b|\bvalidate_certs[\"']?\s?[=:]\s?[\"']?(?:no|false|0)\b"
    r"|\bgpg_?(?:sign|check)[= ](?:false|0|no)\b|\bfsckobjects[= ]false\b|\bsiglevel\s?=\s?never\b"
    r"|\btrusted=yes\b|--no(?:signature|digest|-quarantine)\b|--force-yes\b|--dangerous(?![\w-])"
    r"|-skipcertificatecheck\b|\bdisable-tls[= ]true\b|\bsecure-http[= ]false\b|certificatevalidationcallback"
    r"|\bcom\.apple\.quarantine\b|\b(?:seccomp|apparmor|label)[=:](?:unconfined|disable)\b"
    r"|--cap-add[= ]all\b|\bdanger-full-access\b|--ask-for-approval[= ]never\b|--yes-always\b"
    r"|--allow-all-tools\b|\bssl\.(?:insecure|allowall)=true\b|\bverify_none\b|--trust-server-cert"
    r"|check_?(?:revo\w{1,10}|certificate)\w{0,10}[\"']?\s?[=: ]\s?(?:false|0)\b|\binsecure-registr"
    r"|--ssl-no-revoke|--trust-model always|\btrusted[_-]host\b|no_?(?:ssl_?)?verify\w{0,10}=(?:1|true)\b"
    r"|\b(?:enable)?strict[_-]?ssl[\"']?\s?[=: ]\s?[\"']?false\b"
    r"|\bapproval[_-]?(?:policy|mode)\W{1,4}never\b|\bfail-under[= ]0\b|-vet=off\b"
    r"|\bauto_?-?approve\w{0,10}[\"']?\s?[=:]\s?[\"']?true\b"
    r"|\bgit_ssl_no_verify\b|\bhusky=0|\bhusky_skip_hooks=1|\bgo(?:nosumcheck|nosumdb|insecure)\b|\bgosumdb=off\b"
    r"|\bcore\.hookspath(?:[= ][\"']?(?:/|~|[\"'])|=(?:\s|\Z))|(?<![\w.])verify\s?=\s?false\b"
    r"|\brejectunauthorized[\"']?\s?:\s?false\b"
    r"|\binsecure[_-]?skip[_-]?(?:tls[_-]?)?verify[\"']?\s?[=:]\s?[\"']?true\b|_create_unverified_context"
    r"|\bcert_none\b|allow_?insecure\w{0,30}\s?[=:(]\s?true\b"
    # Hooks that are told to skip, and checks that are edited out of the tests.
    r"|(?<![\w.-])skip=[\w,.-]{1,200}\s(?:\w{1,40}=\S{1,80}\s){0,3}(?:pre-commit|prek|git)\b"
    r"|\bsed\s(?:-\S{1,20}\s){0,3}?-i\S{0,20}\s[^\n|;]{0,40}/[^\n/|;]{0,40}\b(?:assert|expect)\w{0,20}[^\n/|;]{0,40}/"
    # These let a folder's files run code from now on.
    r"|\bdirenv (?:allow|permit|grant)\b|\bmise trust\b|\bsafe\.directory\b",
    re.IGNORECASE,
)
# The risky long options of programs that take a beginning for the whole word: `git commit --no-veri`.
_PIP_OPTIONS = ("--index-url", "--extra-index-url", "--trusted-host", "--find-links")
_MAKE_OPTIONS = ("--ignore-errors", "--touch")
ABBREVIATED = {
    "git": ("--no-verify", "--force", "--no-gpg-sign", "--upload-pack", "--receive-pack"),
    "curl": ("--insecure", "--proxy-insecure"),
    "wget": ("--no-check-certificate",),
    **dict.fromkeys(("pip", "pip3"), _PIP_OPTIONS),
    **dict.fromkeys(("npm", "pnpm"), ("--registry", "--strict-ssl")),
    **dict.fromkeys(("make", "gmake"), _MAKE_OPTIONS),
}
ABBREVIATING_CALL = lazy_pattern(rf"(?<![\w./-])({'|'.join(ABBREVIATED)})\s[^\n;|&`]{{0,300}}")
LONG_OPTION = lazy_pattern(r"(?<=\s)--[a-z][a-z-]{1,30}(?=[\s=\"']|\Z)")
# Calls that succeed because tests or findings do not count, and such that answer yes in the user's place.
UNCOUNTED = lazy_pattern(
    r"(?<![\w-])--exit-zero\b|\bgradlew?\b[^\n;|&]{0,120}?\s-x\s?(?:test|check|lint)\b"
    r"|(?<![\w-])-d(?:skiptests|skipits|maven\.test\.skip)\b(?!=false)"
    r"|\binsta (?:accept|test [^\n;|&]{0,60}--accept)\b"
    r"|\b(?:g?make)\s(?:[^\n;|&`]{0,80}?\s)?(?:-[a-z]{0,4}[it]\b|--ignore-errors\b|--touch\b)",
    re.IGNORECASE,
)
ANSWERS_YES = lazy_pattern(r"(?<![\w-])(?:--?auto-approve|--accept-data-loss)\b(?!=false)", re.IGNORECASE)
PACK_PROGRAM = lazy_pattern(r"(?<![\w-])--(?:upload|receive)-pack[= ]")
CERTUTIL = lazy_pattern(r"\bcertutil\b[^\n;|&]{0,80}-urlcache\b", re.IGNORECASE)
OWN_SEARCH_PATH = lazy_pattern(r"PATH=[\"']?\.{0,2}/?(?:bin|tools|scripts)(?:[:/\"']|\Z)|PATH=[\"']?\.:")
# What others get once it has run.
PUBLISHING = frozenset((
    "npm publish", "pnpm publish", "yarn publish", "bun publish", "cargo publish", "poetry publish",
    "uv publish", "pdm publish", "hatch publish", "flit publish", "vsce publish", "lerna publish",
    "twine upload", "gem push", "docker push", "podman push", "helm push", "wrangler deploy",
    "wrangler publish", "firebase deploy", "fly deploy", "flyctl deploy", "vercel deploy", "netlify deploy",
    "cdk deploy", "serverless deploy", "sls deploy", "railway up", "gcloud app deploy", "eb deploy",
))  # fmt: skip
CHECK_FILE = lazy_pattern(
    r"\.git/hooks|\.husky\b|\.pre-commit-config|\.github/workflows|\.gitlab-ci|\bcodeowners\b|\.semgrep|\.snyk"
    r"|\.github/?\Z",
    re.IGNORECASE,
)
SWITCHED_OFF = lazy_pattern(
    r"(?:setenforce 0|ufw disable|spctl --(?:master|global)-disable|csrutil disable|pre-commit uninstall"
    r"|set-executionpolicy [^\n]{0,60}(?:bypass|unrestricted)|set-mppreference [^\n]{0,60}-disable"
    r"|systemctl (?:stop|disable|mask) (?:firewalld|apparmor|auditd|ufw)|iptables -f"
    r"|history -c|unset histfile|netsh advfirewall [^\n]{0,60}off|gh pr merge [^\n]{0,60}--admin"
    r"|export skip=|auditctl -e 0"
    r"|gh api [^\n]{0,60}delete[^\n]{0,100}/protection|unblock-file|vssadmin delete)",
    re.IGNORECASE,
)
HOME = (
    r"(?:~[\w-]*+|\$\{?home(?::[^}\s]{0,20})?\}?|\$env:(?:userprofile|home)|%userprofile%|/home/[^/\s]++"
    r"|/users/[^/\s]++|/root)"
)
OUTSIDE = lazy_pattern(
    rf"(?:{HOME}(?:[/\\]|\Z)|\$env:(?:userprofile|home)|/|\.\.(?:/|\Z)|[a-z]:(?:[\\/\w]|\Z))", re.IGNORECASE
)
TEMPORARY = lazy_pattern(
    r"(?:/tmp|/var/tmp|/private/tmp|/dev/(?:shm|null|stdout|stderr|fd)|\$\{?tmp\w*\}?|%temp%)(?:/|\Z)",
    re.IGNORECASE,
)
UNSET_ROOT = lazy_pattern(r"\$\{?\w+\}?/\*?\Z")
SYSTEM_FOLDER = lazy_pattern(r"/(?:etc|usr|bin|sbin|lib\w*|boot|var/(?!tmp/)|home|root)(?:/|\Z)")
DEVICE = lazy_pattern(r"(?:of=)?/dev/(?!null|zero|shm|stdout|stderr)")
START_FILE = lazy_pattern(
    rf"{HOME}[/\\](?:\.(?!cache\b)\w|library/(?:launch|preferences)|bin/)|\$profile\b"
    r"|/(?:etc|usr|bin|sbin|lib\w*|boot|var/spool|library|system|proc/sys|sys)(?:/|\Z)|[a-z]:\\(?:windows|program)"
    r"|(?:[^\s]{0,100}/)?(?:\.git/hooks/|\.ssh/|\.envrc\Z|sitecustomize|[\w.-]{1,40}\.pth\Z|\.mcp\.json\Z|\.(?:claude|cursor|codex|gemini)/|\.cursorrules\Z"
    r"|(?:claude|agents|gemini)\.md\Z|\.vscode/(?:tasks|settings)\.json\Z|\.?(?:bash|zsh)(?:rc|_profile|env)\Z)",
    re.IGNORECASE,
)
SOURCE_FLAGS = words_of("-i -f --index-url --extra-index-url --index --default-index --find-links --registry")
# What nobody needs to see in order to build or test anything.
PRIVATE_KEY = lazy_pattern(
    r"\.ssh/(?!known_hosts|config\b)(?![\w.-]{0,60}\.pub\b)\S|\bid_(?:rsa|ed25519|ecdsa|dsa)(?!\.pub)\b"
    r"|\.aws/credentials|\.netrc\b|\.gnupg/|/etc/shadow\b|\.git-credentials",
    re.IGNORECASE,
)
SHOWS = words_of("cat less more head tail base64 xxd strings od bat nl tac")
PRIVATE_FILE = lazy_pattern(
    r"(?:\.ssh(?:/(?!known_hosts)|\Z)|\bid_(?:rsa|ed25519|ecdsa|dsa)(?!\.pub)\b|\.aws(?:/|\Z)|\.netrc\b|\.pypirc\b"
    r"|\.kube/config|\.docker/config|\.gnupg|/etc/(?:shadow|passwd)\b|\.git-credentials|\.npmrc\b|\.config/gh\b"
    r"|(?:\A|[/@=])\.env(?:\.(?!example|sample|template)\w+)?\Z|_history\Z|\bcredentials(?:\.\w+)?\Z"
    r"|\.(?:pem|key|p12|pfx|jks|kdbx|sql|sqlite3?|tfstate|tfvars)\Z|\bsecrets?\.\w+\Z|config/(?:master|database)\b"
    r"|keychain|\.mozilla\b|cookies\b|login data|wallet\.dat)",
    re.IGNORECASE,
)
SECRET_FILE = lazy_pattern(
    r"(?:\A|/)(?:\.env(?:\.(?!example|sample|template)\w{1,30})?|id_(?:rsa|ed25519|ecdsa|dsa)|credentials)\Z",
    re.IGNORECASE,
)
# The target of a copy: `host:path`, `user@host:`, `host::module`; one letter is a drive.
WHOLE_PROJECT = frozenset((".", "./", "*", "./*", "$PWD", "$(pwd)"))
OTHER_MACHINE = lazy_pattern(r"[\w.-]{1,60}@[\w.-]{1,200}:|[\w.-]{2,200}:(?!//|\\)")
HOME_ROOT = lazy_pattern(rf"{HOME}/?", re.IGNORECASE)
SECRET_WORD = lazy_pattern(r"\bsecrets?\b|password|access-token|credentials?\b", re.IGNORECASE)
DUMP = lazy_pattern(
    r"(?:\$\(|`)\s?(?:env|printenv|set|export -p|history|gpg|security|whoami|id|pass|vault)\b"
    r"|://[^\s\"']{0,200}?(?:\$\(|`)\s?(?:cat|base64|hostname|git|ls|find|aws|gcloud|gh|kubectl|op|tar)\b"
)
REVEAL_INSIDE = lazy_pattern(r"(?:\$\(|`)\s?(?:git|ls|find|hostname|ps|docker|kubectl|aws|gcloud|op|tar)\b")
READ_INSIDE = lazy_pattern(
    r"(?:\$?\(|`)\s?(?:cat|base64|xxd|head|tail|grep|get-content|gc|<)\b", re.IGNORECASE
)
BETWEEN_PATHS = lazy_pattern(r"[\s\"'()`]+")
# What a container sees of the machine: its root, the home, or the service that starts containers.
OPEN_MOUNT = lazy_pattern(
    rf"(?:^|source=|src=)(?:/|{HOME}/?|/etc/?|(?:/var)?/run/?|(?:/var)?/run/docker\.sock)[:,]", re.IGNORECASE
)
SECRET_VARIABLE = lazy_pattern(r"\$\{?\w{0,40}?(?:key|secret|token|passw|credential)", re.IGNORECASE)
REVEALS = lazy_pattern(
    r"(?:env|printenv|history|set|export -p|ps aux|git (?:log|diff|bundle|archive|config|credential)"
    r"|gh auth token|gcloud auth|aws configure|vault|op (?:read|item)|pass|security find|gpg --export-secret"
    r"|kubectl config view|docker inspect|npm token)(?:\s|\Z)",
    re.IGNORECASE,
)
SECRET_IN_URL = lazy_pattern(
    r"://[^\s\"']{0,200}?\$\{?\w{0,40}?(?:key|secret|token|passw|credential)", re.IGNORECASE
)
PIECES = lazy_pattern(
    r"''|\"\"|\$\{?\w|\$'|\\x[0-9a-f]|\\[0-7]{3}|[A-Za-z]\\[A-Za-z\n]|&#\w|%[2-7][0-9A-Fa-f]"
)
EMPTY_QUOTES = lazy_pattern(r"(?<=[A-Za-z])(?:''|\"\"|\\)(?=[A-Za-z])")
CODED = lazy_pattern(r"\$'([^'\n]{1,400})'")
CODE_POINT = lazy_pattern(r"\\[xuU]([0-9A-Fa-f]{2,4})")
CODE_POINTS = lazy_pattern(
    r"(?:\\x[0-9A-Fa-f]{2}){2,}|(?:\\[0-7]{3}){2,}|(?:%[2-7][0-9A-Fa-f]){2,}|(?:&#\w{2,5};){2,}"
)
ONE_CODE = lazy_pattern(
    r"\\x(?P<hex>..)|\\(?P<octal>[0-7]{3})|%(?P<percent>..)|&#(?:x(?P<entity>\w{2,4})|(?P<number>\d{2,5}));"
)
SHORT_VALUE = lazy_pattern(r"(?<![\w$])(\w{1,30})=['\"]?([\w./-]{1,60})")
VARIABLE = lazy_pattern(r"\$\{?(\w{1,30})\}?")
PATTERN_NAME = lazy_pattern(
    r"[\w./-]{0,40}[/\w]\?[\w?/]{1,40}\Z|/[\w?/]{0,40}\*[\w?*]{0,40}\Z|\{[\w./-]+,[^\s]"
)
ENCODED_FLAG = lazy_pattern(r"-e(?:nc?|ncodedcommand)?\Z", re.IGNORECASE)
CUT_OUT = lazy_pattern(r"\$\{\w{1,30}:\d{1,4}:\d{1,4}\}")
SENDING_FLAG = lazy_pattern(
    r"(?:-d|-F|-T|--data[\w-]*|--form|--upload-file|--post-file|--post-data|--json)\b"
)


CODE_INSTALLS = lazy_pattern(r"\binstall_(?:github|gitlab|git|url|bitbucket)\s?\(", re.IGNORECASE)
RUNS_BY_VARIABLE = lazy_pattern(
    r"\bgit config [^\n]{0,40}?--unset\S{0,9} core\.hookspath"
    r"|\b(?:prompt_command|bash_env|ld_preload|ld_audit|dyld_insert_libraries|git_ssh_command|git_external_diff"
    r"|pythonstartup|perl5opt|rubyopt)=|\bgit_pager=(?!cat\b|less\b)"
    r"|\b(?:usermod|visudo|ssh-copy-id|passwd) (?:-\w|\S)|\bchmod -r 777 /",
    re.IGNORECASE,
)
# Settings by which git runs programs or goes elsewhere, and the values that do neither.
GIT_PROGRAM = lazy_pattern(
    r"core\.(?:hookspath|sshcommand|fsmonitor|pager|editor|askpass|gitproxy)|(?:sequence|gui)\.editor|diff\.external"
    r"|diff\.\S{1,60}\.(?:command|textconv)|merge\.\S{1,60}\.driver|filter\.\S{1,60}\.(?:smudge|clean|process)"
    r"|credential\.(?:\S{1,200}\.)?helper|gpg\.(?:\S{1,20}\.)?program|include(?:if\.\S{1,200})?\.path"
    r"|init\.templatedir|url\.\S{1,200}\.(?:push)?insteadof|remote\.\S{1,60}\.(?:url|uploadpack|receivepack)"
    r"|protocol\.(?:\S{1,20}\.)?allow|alias\.\S{1,40}",
    re.IGNORECASE,
)
GIT_HARMLESS = lazy_pattern(r"(?:cat|less|more|true|false|:|vim?|nano)?(?: -\S{1,10})?|auto|never|always")
# Clients of agents, and the words by which they take in a program that they start from then on.
AGENT_CLIENTS = words_of("claude codex gemini cursor-agent copilot qwen opencode goose amp")
CLIENT_EXTENSIONS = words_of("mcp plugin plugins extension extensions marketplace")
SHELL_START = lazy_pattern(
    r"(?:(?:~|\$home)/\.(?:bash|zsh|profile|zprofile|login)\w*|/etc/(?:environment|profile)\b|\$profile\b"
    r"|(?:~|\$home)/\.config/[\w./ -]{1,80}settings\.json)",
    re.IGNORECASE,
)
PUT_THERE = lazy_pattern(
    r"\balias\s\w|\bexport\s\w|\beval\b|\$\(|\bsource\s\S|\b[A-Za-z_]\w{2,60}=[\w'\"/$]|\"[\w.]{1,60}\"\s?:\s?[\w\"\[{]"
)


# Wrappers that hand their input to the shell that they start, or run it line by line.
PASSES_INPUT = CONTAINERS | CLUSTER | words_of("ssh")
RUNS_INPUT = words_of("at batch parallel patch")
PLACEHOLDER = "{}"
# The flags of a container's start that take no value.
ALONE = lazy_pattern(
    r"-[ditPq]{1,4}\Z|--(?:rm|detach|interactive|tty|init|privileged|read-only|publish-all|quiet)\Z"
)
# The name that an image gets where it is built.
BUILT = lazy_pattern(r"\bbuild\b[^\n|;&]{0,200}?\s(?:-t|--tag)[= ]([\w.:-]{1,60}/[\w.:/-]{1,100})")
IMAGE = lazy_pattern(
    r"[a-z0-9][\w.-]{0,60}(?::\d{1,5}(?=/))?(?:/[\w.-]{1,60}){0,4}(?::[\w.-]{1,60})?(?:@sha256:\w+)?\Z"
)
# The flags by which `find` runs a program for each file.
FIND_RUNS = words_of("-exec -execdir -ok -okdir")
# Files that are run by a program that does not name them.
BUILD_FILES = frozenset((
    "Makefile", "makefile", "GNUmakefile", "Rakefile", "Justfile", "justfile", "conftest.py", "setup.py",
    "package.json", "build.gradle", "pom.xml", "Dockerfile", "compose.yml", "docker-compose.yml", "build.rs",
    "noxfile.py", "tasks.py", "Gemfile", "pyproject.toml",
))  # fmt: skip
# Who publishes images that everybody uses; an image without a publisher is Docker's own or was built here.
PUBLISHERS = frozenset((
    "library", "bitnami", "grafana", "prom", "hashicorp", "mcr.microsoft.com", "docker.elastic.co", "docker",
    "hadolint", "registry.k8s.io", "nvidia", "nvcr.io", "apache", "jenkins", "gitlab", "sonarsource",
    "semgrep", "aquasec", "openpolicyagent", "testcontainers", "selenium", "cypress", "localstack", "minio",
    "confluentinc", "amazon", "pgvector", "postgis", "otel", "jaegertracing", "opensearchproject", "redis",
    "mongodb", "percona", "tensorflow", "pytorch", "jupyter", "rocker", "continuumio", "circleci", "cimg",
))  # fmt: skip
# Variables in which programs are searched for, or from which a program loads code before its own.
SEARCH_PATH = lazy_pattern(
    r"(?:(?:python|node_|class|gem_|lua_c?|(?:dy)?ld_(?:\w{1,20}_)?)?path|rubylib|perl5lib|pythonhome|\w{0,20}_wrapper"
    r"|git_config\w{0,20}|pip_config_file|uv_config_file|npm_config_\w{0,10}config|bundle_app_config|condarc)=",
    re.IGNORECASE,
)
ANYBODYS_FOLDER = lazy_pattern(r"[=:](?:/private)?(?:/tmp|/var/tmp|/dev/shm)(?:/|:|\Z)")
CODE_OPTION = lazy_pattern(r"[A-Z_]{0,20}(?:OPTS|OPTIONS|FLAGS)=", re.IGNORECASE)
LOADED_CODE = lazy_pattern(
    r"(?:--?(?:require|import|loader|experimental-loader|r)[= ]|-javaagent:|-agentpath:|-toolexec[= ])"
    r"[\"']?(?:/|~|\$\{?home|[a-z]{2,8}://)",
    re.IGNORECASE,
)
# All that is run is what a variable, or a line that flows in, holds.
RUNS_VARIABLE = lazy_pattern(
    r"(?:\b(?:ba|z|da|k|fi)?sh\s+-\w{0,3}c|\beval)\s+[\"']?(?:\{\}|%|\$(?:\{\w{1,30}\}|\w{1,30}|@))[\"']?(?=\s*(?:[;&|`)]|\Z))"
)
CLOCK_TIME = lazy_pattern(r"now|noon|midnight|teatime|tomorrow|\d{1,2}:?\d\d")
INLINE_CODE = lazy_pattern(r"-\w{0,3}[ce]\Z|-r\Z|--?eval\Z|eval\Z|-command\Z", re.IGNORECASE)
RUNS_CODE = lazy_pattern(
    r"\b(?:eval|exec|execsync|execfile|instance_eval|class_eval|loadstring|spawn|spawnsync|popen|os\.system"
    r"|subprocess|child_process|new function)\b|(?<![.\w])system\s?[(\"']|\bimport\s?\(\s?[\"']https?:",
    re.IGNORECASE,
)
DECODES_CODE = lazy_pattern(
    r"b64decode|atob\(|fromhex|unhexlify|codecs\.decode|zlib\.decompress", re.IGNORECASE
)
WRITES_TO = {
    "curl": words_of("-o --output"), "wget": words_of("-O --output-document -P"),
    "gpg": words_of("-o --output"), "tar": words_of("-C --directory"), "unzip": words_of("-d"),
    "openssl": words_of("-out"),
}  # fmt: skip


RUNNERS = words_of("npx pnpx bunx uvx pipx npm pnpm yarn bun uv go deno nix gem dnx")
FETCHING_VERBS = frozenset((
    "pipx run", "pnpm dlx", "yarn dlx", "uv tool", "gem exec", "npm create", "pnpm create",
    "yarn create", "bun create", "npm init", "uvx", "dnx",
))  # fmt: skip
# What projects install and run by npx or bunx. These fetch any other name that the project lacks.
PROJECT_TOOLS = words_of(
    "@angular/cli @biomejs/biome @changesets/cli @playwright/test @redocly/cli astro ava babel biome c8"
    " cap cdk changeset commitlint concurrently cross-env cypress depcheck detox drizzle-kit electron"
    " electron-builder esbuild eslint expo firebase gatsby graphql-codegen grunt gulp hardhat husky"
    " jasmine jest karma knex knip lerna lint-staged madge markdownlint mikro-orm mocha nest next ng"
    " nodemon npm nuxt nx nyc openapi-typescript oxlint parcel patch-package playwright pm2 pnpm postcss"
    " prettier prisma react-native react-scripts release-it remix rimraf rollup rspack sass semantic-"
    " release sequelize sequelize-cli serverless shadcn size-limit sls storybook stylelint svelte-check"
    " svelte-kit swc tailwindcss tap ts-jest ts-node tsc tsd tsup tsx turbo typedoc typeorm typescript"
    " vercel vite vitest vue-cli-service vue-tsc wdio webpack wrangler xo yarn zx"
)
# What runs a package that it fetches if it is not here, and what installs whatever it is given.
RUNS_PACKAGES = words_of("npx bunx uvx dnx pnpx")
INSTALLS_ALONE = words_of(
    "easy_install cpan cpanm install-module install-package add-appxpackage xbps-install emerge nix-env"
)
OTHER_MANAGERS = words_of(
    "snap flatpak rustup nimble guix port pkg volta nvm sdk cabal stack raco julia gh code"
)
# A word that may be a manager's name, by the verb behind it and its flags.
BEFORE_VERB = lazy_pattern(
    r"(?<![^\s`'\"(])[\w./\\:@+-]{2,80}+(?=\s{1,4}(?:-\S{1,30}\s{1,4}){0,3}(?:install|add|get|require|run|-S\w{0,3})\s)",
    re.IGNORECASE,
)
CODE_FETCHES = lazy_pattern(
    r"\b(?:install\.packages|pkg\.add|biocmanager::install|quicklisp:quickload|ql:quickload"
    r"|pip(?:\._internal(?:\.\w{1,20}){0,3})?\.main|install_(?:github|gitlab|git|url|bitbucket))\s?\(",
    re.IGNORECASE,
)
NAMED_ELSEWHERE = lazy_pattern(r"[a-z]{2,8}:|[^\s#]{1,200}#|(?:[\w-]++\.)++[a-z]{2,}+/", re.IGNORECASE)
# Installs of what the project's own files list: they take the names of groups, not of packages.
OF_PROJECT = frozenset((
    "uv sync", "uv lock", "npm ci", "poetry install", "poetry sync", "poetry lock", "bundle install",
    "pdm install", "pdm sync", "pdm lock", "composer install", "rye sync", "rye lock", "pixi install",
    "pixi lock", "pipenv sync", "pod install", "yarn install",
))  # fmt: skip
# The flags of an install before a file, a folder or a group of the project.
NAMES_OWN_FILE = words_of(
    "-r --requirement --requirements --constraint --extra --group --prefix --filter --features -p --package"
)
# Programs that run a task of the project by its name, such as `install`.
OWN_TASKS = words_of(
    "make gmake just task rake mage nox tox invoke cmake ninja npm-run bazel pre-commit husky"
)
# What a message may tell to run, word for word: set-up by the project's own lists, without further options.
SETUP_COMMANDS = frozenset((
    "npm ci", "npm install", "npm i", "pnpm install", "pnpm i", "yarn", "yarn install", "bun install",
    "bundle install", "bundle", "uv sync", "poetry install", "pdm install", "pipenv install", "pipenv sync",
    "rye sync", "pixi install", "go mod tidy", "go mod download", "cargo fetch", "dotnet restore",
    "composer install", "mix deps.get", "terraform init", "tofu init", "flutter pub get", "dart pub get",
    "pod install", "pip install -r requirements.txt", "pip3 install -r requirements.txt", "pip install -e .",
    "pip install -r requirements-dev.txt", "pip install -r dev-requirements.txt",
    "python -m pip install -r requirements.txt", "python3 -m pip install -r requirements.txt",
    "uv pip install -r requirements.txt", "git submodule update --init", "python3",
    "git submodule update --init --recursive",
))  # fmt: skip
