"""How the messages of programs are recognised: the kinds of failure, and one rule for each message.

Python exceptions are read by `signatures`.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from archivist.cold_start import lazy_pattern

# How much a message tells. The harness itself knows best; a message with one meaning beats a program's
# general error line, which beats a message that is only reported, any line with "error" in it,
# and a closing summary.
FROM_HARNESS, EXACT, TOOL, TOLD, LOOSE, SUMMARY = 90, 80, 60, 50, 40, 20


# Of a longer line, so much is read before and after the words that a rule looks for.
LONGEST_LINE = 600


class FailureKind(StrEnum):
    """What went wrong."""

    MISSING_MODULE = "missing_module"
    MISSING_COMMAND = "missing_command"
    MISSING_FILE = "missing_file"
    SYNTAX = "syntax"
    IMPORT_ERROR = "import_error"
    ATTRIBUTE = "attribute"
    TYPE_ERROR = "type_error"
    VALUE = "value"
    TEST_FAILURE = "test_failure"
    TIMEOUT = "timeout"
    PERMISSION = "permission"
    NETWORK = "network"
    EDIT_NOT_APPLIED = "edit_not_applied"
    USAGE = "usage"
    VERSION_CONFLICT = "version_conflict"
    PROMPT = "prompt"
    GIT = "git"
    BUILD = "build"
    CRASH = "crash"
    PROVIDER = "provider"
    CHECK = "check"
    CI = "ci"
    LEFTOVER = "leftover"
    REMEDY = "remedy"
    UNFILTERED = "unfiltered"
    OTHER = "other"

    @property
    def is_environment(self) -> bool:
        """Say whether the environment is at fault, whatever code is being written."""
        return self in _ENVIRONMENT


_ENVIRONMENT = frozenset((
    FailureKind.MISSING_MODULE, FailureKind.MISSING_COMMAND, FailureKind.IMPORT_ERROR,
    FailureKind.VERSION_CONFLICT, FailureKind.NETWORK, FailureKind.PERMISSION, FailureKind.PROVIDER,
    FailureKind.PROMPT,
))  # fmt: skip


class MessageRule(NamedTuple):
    """One message. `is_own`: it blames the code being written. `is_sure`: it alone proves a failure."""

    kind: FailureKind
    program: str
    error: str
    rank: int
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_own: bool = False
    is_sure: bool = True


def rule(
    who: str, needles: str, pattern: str, rank: int = EXACT, *, own: bool = False, sure: bool = True
) -> MessageRule:
    """Build a rule: who prints the message with the class of the error, the needles, the pattern.

    A line must have one of the needles, parted by `|`; `~` stands for a first letter of either case. Groups
    of the pattern: `subject` is the module, command, file or flag that the message is about; `error` the
    class of the error; `text` what tells this failure from others; `program` who prints it, if any may.
    """
    program, _, error = who.rpartition(": ")
    # There are hundreds of patterns, so each is compiled when it is first needed.
    compiled = lazy_pattern(pattern, longest=2 * LONGEST_LINE)
    return MessageRule(K.OTHER, program, error, rank, tuple(needles.split("|")), compiled, own, sure)


K = FailureKind
NOT_FORMATTED = "not formatted"
# fmt: off
_BY_KIND: dict[FailureKind, tuple[MessageRule, ...]] = {
    K.MISSING_MODULE: (
        rule("python: ModuleNotFoundError", "No module named",
             r"^(?:|.*python[\d.]*: |.*Error(?:: |\()|ERROR: )No module named ['\"]?(?P<subject>[\w.-]+)"),
        rule("python: ModuleNotFoundError", "No module named '",
             r"^(?!E? *\w*Error).*[ (]No module named '(?P<subject>[\w.-]+)'", TOLD),
        rule("node: module not found", "Cannot find module|Cannot find package",
             r"(?<!error TS2307: )Cannot find (?:module|package) "
             r"(?:['\"](?P<subject>(?:@[\w.-]+/)?[^'\"/.][^'\"/]*)[^'\"]*['\"]"
             r"|(?P<subject2>(?:@[\w.-]+/)?\w[\w.-]*)(?:/[\w./-]*)?(?: from | imported |$))"),
        rule("node: module not found", "Can't resolve|~ailed to resolve|Could not resolve",
             r"(?:Can't resolve|Failed to resolve (?:import|entry for package)"
             r"|Could not resolve:?) ['\"](?P<subject>[^'\".][^'\"]*)['\"]"),
        rule("tsc: TS2307", "TS2307",
             r"error (?P<error>TS2307): Cannot find module ['\"](?P<subject>[^'\"]+)"),
        rule("go: no required module", "no required module|cannot find package|is not in std|missing go.sum"
             "|cannot find module", r"(?:no required module provides package|cannot find package"
             r'|cannot find module providing package) \"?(?P<subject>[\w./-]+)'
             r"|package (?P<subject2>[\w./-]+) is not in (?:std|GOROOT)"
             r"|missing go\.sum entry for (?:module providing package )?(?P<subject3>[\w./-]+)"),
        rule("java: class not found", "Could not find or load main class",
             r"Could not find or load main class (?P<subject>\S+)"),
    ),
    K.IMPORT_ERROR: (
        rule("python: ImportError", "cannot import name",
             r"(?P<text>cannot import name '\w+' from (?:partially initialized module )?'[\w.]+')", TOLD),
    ),
    K.VERSION_CONFLICT: (
        rule("pip: no matching distribution", "~o matching distribution",
             r"No matching distribution found for (?P<subject>[\w.\[\]-]+)"),
        rule("pip: no matching version", "~ould not find a version",
             r"Could not find a version that satisfies the requirement (?P<subject>[\w.\[\]-]+)", TOOL),
        rule("pip: resolution impossible", "ResolutionImpossible|conflicting dependencies|Cannot install",
             r"(?P<text>ResolutionImpossible)|Cannot install (?P<subject>[\w.-]++)[^\n]*conflicting"),
        rule("pip: python version", "requires a different Python|requires-python|Requires-Python",
             r"(?:Package '?(?P<subject>[\w.-]+)'? requires a different Python"
             r"|requires a different Python version)"),
        rule("uv: no solution", "No solution found", r"No solution found when resolving"),
        rule("npm: ERESOLVE", "ERESOLVE", r"ERESOLVE (?:unable|could not|overriding)(?P<text>.*)"),
        rule("npm: ETARGET", "No matching version", r"No matching version found for (?P<subject>@?[\w./-]+)"),
        rule("npm: EBADENGINE", "EBADENGINE|~nsupported engine|engine \"node\" is incompatible",
             r"npm (?:ERR!|error) .*(?P<text>EBADENGINE|Unsupported engine)"
             r'|The engine \"node\" is incompatible|ERR_PNPM_UNSUPPORTED_ENGINE'),
        rule("node: ERR_REQUIRE_ESM", "ERR_REQUIRE_ESM|ERR_UNKNOWN_FILE_EXTENSION|ERR_MODULE_NOT_FOUND"
             "|ERR_OSSL|ERR_PACKAGE_PATH", r"(?P<error>ERR_REQUIRE_ESM|ERR_UNKNOWN_FILE_EXTENSION"
             r"|ERR_OSSL_EVP_UNSUPPORTED|ERR_PACKAGE_PATH_NOT_EXPORTED)"),
        rule("cargo: unresolved dependency", "failed to select a version|no matching package|requires rustc"
             "|~ailed to load manifest", r"^error: (?:failed to select a version for(?: the requirement)? "
             r"`(?P<subject>[\w-]+)|no matching package(?: named `(?P<subject2>[\w-]+))?|.*requires rustc"
             r"|failed to (?:load manifest|parse manifest)(?P<text>.*))"),
        rule("maven: unresolved dependency", "~ould not resolve dependencies|~ould not find artifact"
             "|Could not resolve all|Could not find ",
             r"(?:Could not (?:find artifact|resolve dependencies for project"
             r"|find) (?P<subject>[\w.-]+:[\w.-]+))|Could not resolve all (?P<text>.*)"),
        rule("maven: java version", "~nsupported class file|~elease version|~nvalid target release"
             "|~nvalid source release", r"(?:Unsupported class file major version"
             r"|release version \d+ not supported|invalid (?:target|source) release)(?P<text>.*)"),
    ),
    K.MISSING_COMMAND: (
        rule("bash: command not found", "~ommand not found", r"^(?:\S*sh: |.{0,60}?: line \d+: "
             r"|\S+: \d+: )(?:line \d+: |\d+: |eval: line \d+: )?(?P<subject>[^\s:]+): command not found"
             r"|^(?:bash|zsh|fish)(?::\d+)?: (?:command not found|Unknown command): (?P<subject2>\S+)"),
        rule("bash: command not found", "not found",
             r"^(?:/bin/|/usr/bin/)?(?:sh|dash|ash|bash): (?:line )?\d*+:? ?(?:eval: )?(?P<subject>[^\s:]+): "
             r"not found|^\S+\.sh: (?:line )?\d+: (?P<subject2>[^\s:]+): not found"),
        rule("bash: command not found", "~ailed to run|executable",
             r'exec(?:utable file not found|: )\W*+(?P<subject>[\w.-]++)\"?: executable file not found in '
             r"\$PATH|(?<![\w.-])(?P<subject2>[\w.-]++): executable file not found"),
        rule("bash: command not found", "No such file", r"^(?:/usr/bin/)?env: "
             r"\u2018?'?(?P<subject>[\w.+-]+)(?:\\r)?\u2019?'?: No such file or directory", EXACT + 1),
        rule("bash: command not found", "is not recognized",
             r"(?<![\w.-])(?P<subject>[\w.-]++)['\"]? is not recognized as (?:an internal|the name)"),
        rule("bash: command not found", "ENOENT", r"spawn (?P<subject>[\w./-]+) ENOENT"),
        # As launchers say it of what they were to run.
        rule("bash: command not found", "~ailed to spawn|ommand not found: |EXEC_FIRST_FAIL",
             r"^error: Failed to spawn: `(?P<subject>[\w.-]+)`|^[Cc]ommand not found: (?P<subject2>[\w.-]+)$"
             r"|EXEC_FIRST_FAIL +Command \"(?P<subject3>[\w.-]+)\" not found"),
        rule("apt-get: no such package", "~nable to locate package|~o match for argument|no such package"
             "|no installation candidate",
             r"(?:Unable to locate package|No match for argument:|no such package\)?:?) ?(?P<subject>\S*)"
             r"|Package '(?P<subject2>[^']+)' has no installation candidate"),
    ),
    K.MISSING_FILE: (
        rule("python: no such file", "can't open file",
             r"python[\d.]*: can't open file ['\"]?(?P<subject>[^'\"]+)"),
        rule("pytest: no such file", "file or directory not found|ERROR: not found",
             r"(?:^|collecting \.\.\. )ERROR: (?:file or directory )?not found: (?P<subject>\S+)"),
        rule("pip: no such file", "requirements file",
             r"Could not open requirements file: .*'(?P<subject>[^']+)'"),
        rule("pip: not a project", "neither 'setup.py'|not installable",
             r"neither 'setup\.py' nor 'pyproject\.toml' found|is not installable"),
        rule("node: module not found", "Cannot find module",
             r"(?<!error TS2307: )Cannot find module ['\"]?(?P<subject>[./][^'\"\s]*)"),
        rule("node: module not found", "Can't resolve|~ailed to resolve|Could not resolve",
             r"(?:Can't resolve|Failed to resolve import|Could not resolve:?) "
             r"['\"](?P<subject>\.[^'\"]*)['\"]", own=True),
        rule("npm: no such file", "npm ERR! code ENOENT|npm error code ENOENT|Could not read package.json",
             r"Could not read (?P<subject>package\.json)|npm (?:ERR!|error) code ENOENT"),
        rule("cargo: no Cargo.toml", "could not find `Cargo.toml`",
             r"^error: could not find `(?P<subject>Cargo\.toml)`"),
        rule("go: no go.mod", "go.mod file not found|go: cannot find main module",
             r"go(?:\.mod file not found|: cannot find main module)"),
        rule("gcc: missing header", "fatal error: ",
             r"fatal error: (?P<subject>[\w./+-]+): No such file or directory"),
        rule("make: no makefile", "~o makefile found",
             r"^g?make(?:\[\d+\])?: \*\*\* No targets specified and no makefile found"),
        rule("no such file", "does not exist", r"^(?:<tool_use_error>)?(?:Error: )?(?:File|Path|Directory"
             r"|The path) (?:(?P<subject>\S+) )?does not exist", FROM_HARNESS),
        rule("no such file", "does not exist",
             r"^(?:<tool_use_error>)?(?:Path|Directory) does not exist: (?P<subject>\S+)", FROM_HARNESS),
        rule("no such file", "~ile not found",
             r"^(?:<tool_use_error>)?(?:Error: )?File not found:? (?P<subject>\S+)"),
        rule("is a directory", "EISDIR", r"EISDIR: illegal operation on a directory", FROM_HARNESS),
        rule("is a directory", "~s a directory", r"^(?P<program>[\w.-]{1,30}): (?:-r not specified; "
             r"omitting directory|(?:read error(?: on)? "
             r")?['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2018\u2019\u201c"
             r"\u201d]?: Is a directory)", TOOL),
        rule("no such file", "No such file|cannot access", r"^(?P<program>[\w.+-]{1,30}): (?:cannot "
             r"(?:access|stat|open|remove|read|touch|create[^']{0,40})|can't (?:read|open|cd to)"
             r"|error reading|open)? ?(?:regular file |directory |file "
             r")?['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^'\"`\u2018\u2019:\n]{1,400}?)['\"`\u2018\u2019\u201c"
             r"\u201d]?(?: for reading)?: No such file or directory"),
        rule("bash: no such file", "No such file", r"^(?:\S*sh|\S+\.sh): (?:line \d+: |\d+: )?(?:cd: "
             r"|source: |\.: )?(?P<subject>[^:\n]+): No such file or directory"),
        rule("bash: is a directory", "~s a directory",
             r"^\S*sh: (?:line \d+: )?(?P<subject>[^:\n]+): Is a directory"),
        rule("no such file", "No such file|~annot open",
             r"^['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2018\u2019\u201c\u"
             r"201d]?: No such file or directory|cannot open [`'](?P<subject2>[^']+)' \(No such file", TOOL),
        rule("no such file", "No such file|ENOENT", r"(?:ENOENT: no such file or directory, \w+ "
             r"'(?P<subject>[^']+)'|No such file or directory(?: \(os error 2\))?(?:: "
             r"'?(?P<subject2>[^'\n]+))?)", LOOSE, sure=False),
        rule("no such file", "ENOENT",
             r"ENOENT: no such file or directory, \w+ '(?P<subject>[^']+)'", TOOL),
        rule("cd: not a directory", "~ot a directory",
             r"(?<![^\s:])(?P<subject>[^\s:]++): Not a directory$", TOOL),
    ),
    K.PERMISSION: (
        rule("pip: externally managed", "externally-managed", r"error: externally-managed-environment"),
        rule("not approved", "requires approval|Permission to use",
             r"(?:requires approval|Permission to use \w+ .*(?:denied|has been))", FROM_HARNESS),
        rule("sandbox", "sandbox", r"(?i)(?:failed in sandbox|sandbox (?:denied|error|violation)"
             r"|blocked by (?:the )?sandbox)", FROM_HARNESS),
        rule("permission denied", "~ermission denied|EACCES|EPERM|~peration not permitted|~ccess denied",
             r"(?P<text>\b(?!code )[a-z]{2,12} (?:EPERM|EACCES))\b|[Pp]ermission denied(?! \(publickey)"
             r"|EACCES|Operation not permitted|Access denied", sure=False),
        rule("permission denied", "~ermission denied|~peration not permitted",
             r"^(?P<program>[\w.+-]{1,30}): (?:cannot [\w ]{1,40}? "
             r"|can't \w+ )?['\"`\u2018]?(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2019]?: (?:Permission "
             r"denied|Operation not permitted)", sure=False),
        rule("bash: permission denied", "~ermission denied",
             r"^(?:\S*sh|\S+\.sh): (?:line \d+: |\d+: )?(?P<subject>[^\s:]+): Permission denied"),
        rule("apt-get: lock held", "lock",
             r"^E: (?:Could not get lock|Unable to (?:acquire|lock))(?P<text>.*)"),
    ),
    K.PROMPT: (
        rule("no terminal", "/dev/tty|a terminal|not a tty|not a TTY|ioctl|no tty",
             r"(?i)/dev/tty|not a (?:tty|terminal)|a terminal is required|inappropriate ioctl|no tty present"
             r"|TTY device|stdin isn't a terminal|Input is not from a terminal"),
        rule("waits for input", "to continue|[y/N]|[Y/n]|password|Password|Aborted",
             r"^Do you want to continue\? \[Y/n\] Abort|^\[sudo\] password for|a password is required", TOOL),
    ),
    K.TIMEOUT: (
        rule("command timed out", "~imed out|TIMED OUT|timeout|no new output",
             r"(?i)(?:command|execution|process|tool call|request)\b.{0,400}? timed out\b(?! after \d+ "
             r"attempts)|^timeout: sending signal|EXECUTION TIMED OUT|timeout exceeded"
             r"|\btimed out after (?:\d+(?:\.\d+)?\s?m?s(?:ec\w*)?|\d+\s?min\w*)"
             r"|The command has no new output after [\d.]+ seconds", FROM_HARNESS),
    ),
    K.NETWORK: (
        rule("npm: not in registry", "E404",
             r"npm (?:ERR!|error) (?:code )?(?P<error>E404)\b.*?(?:'(?P<subject>[^'@]+))?"),
        rule("node: port in use", "EADDRINUSE|~ddress already in use",
             r"EADDRINUSE|[Aa]ddress already in use"),
        rule("docker: daemon not running", "Docker daemon|docker daemon",
             r"Cannot connect to the Docker daemon|Is the docker daemon running"),
        rule("docker: no such image", "~anifest unknown|~ull access denied|~anifest for|No such container"
             "|No such image",
             r"(?:manifest for (?P<subject>\S+) not found|pull access denied for (?P<subject2>[^\s,]+)"
             r"|manifest unknown|No such (?:container|image): (?P<subject3>\S+))"),
        rule("docker: port in use", "port is already allocated", r"port is already allocated"),
        rule("curl: curl", "curl: (", r"^curl: \((?P<error>\d+)\) (?P<text>[\w ]+)"),
        rule("name not resolved", "~ould not resolve host|~ame or service not known"
             "|~emporary failure in name|getaddrinfo|~odename nor servname|~ailure resolving",
             r"(?i)could not resolve host|name or service not known|temporary failure (?:in name resolution"
             r"|resolving)|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|nodename nor servname"),
        rule("connection refused", "~onnection refused|ECONNREFUSED|~onnection to the server",
             r"[Cc]onnection refused|ECONNREFUSED|[Cc]onnection to the server \S{1,100} was refused"),
        rule("connection lost", "~onnection reset|ECONNRESET|~onnection aborted|ETIMEDOUT"
             "|~onnection timed out|~o route to host|~etwork is unreachable", r"(?:[Cc]onnection (?:reset"
             r"|aborted|timed out)|ECONNRESET|ETIMEDOUT|[Nn]o route to host|[Nn]etwork is unreachable)"),
        rule("server not reached", "~ailed to connect to|connect to server|connect to host"
             "|~rror connecting to",
             r"(?i)failed to connect to \S+ port \d|couldn't connect to server|^error connecting to \S"
             r"|connect to (?:host )?\S+ port \d+: operation timed out"),
        rule("certificate", "CERTIFICATE_VERIFY_FAILED|SSL certificate|certificate has expired|SSLError"
             "|certificate verify|self-signed|self signed",
             r"(?i)CERTIFICATE_VERIFY_FAILED|SSL certificate problem|certificate (?:has expired"
             r"|verify failed)|self[- ]signed certificate|SSLError"),
        rule("http error", "HTTP Error|HTTP error|404 Not Found|403 Forbidden|~equested URL returned error",
             r"(?:HTTP [Ee]rror |returned error: |ERROR )(?P<error>[45]\d\d)\b", TOOL),
    ),
    K.PROVIDER: (
        rule("provider: overloaded", "overloaded|Overloaded",
             r"(?i)overloaded_error|(?:api|server|model|engine|529)\b.{0,60}\boverloaded"),
        rule("provider: rate limit", "~ate_limit|~ate limit|RateLimit|~oo many requests|~oo Many Requests",
             r"(?i)rate_limit(?:_error|_exceeded)?\b|rate ?limit(?:ed| exceeded| reached|error)"
             r"|\b429\b.{0,40}too many requests|too many requests.{0,20}429|RateLimitError"),
        rule("provider: quota", "quota|RESOURCE_EXHAUSTED|credit balance|usage limit",
             r"(?i)insufficient_quota|exceeded your current quota|credit balance is too low"
             r"|usage limit reached|RESOURCE_EXHAUSTED|quota exceeded"),
        rule("provider: context length", "context|~rompt is too long",
             r"(?i)context_length_exceeded|prompt is too long|maximum context length"
             r"|context window (?:exceeded|limit)|exceeds? the context window"),
        rule("provider: authentication", "API key|api key|authentication_error|x-api-key",
             r"(?i)invalid (?:x-)?api[- ]key|incorrect api key|authentication_error|api key not (?:found"
             r"|valid)"),
        rule("provider: server error", "~nternal server error|api_error|~ervice Unavailable|~ad Gateway"
             "|~ateway Time",
             r"(?i)^(?:.{0,40}(?:error|http|status|api)\b.{0,40})?\b50[0234]\b.{0,60}(?:internal server error"
             r'|service unavailable|bad gateway|gateway time-?out)|\"type\":\s*\"api_error\"'),
    ),
    K.EDIT_NOT_APPLIED: (
        rule("edit: old text not found", "to replace not found|old_str|No replacement|Failed to edit"
             "|~ould not find|SEARCH|SearchReplace",
             r"[Ss]tring to replace not found|(?i:\bold_str(?:ing)?\b.{0,4000}?(?:did not appear|not found"
             r"|does not exist|no match))|No replacement was performed(?!.*(?:Multiple|multiple))"
             r"|Failed to edit, (?:0 occ|could not find)|[Cc]ould not find (?:the )?(?:string|text|old_string"
             r"|exact match)|SEARCH/REPLACE blocks? failed|SearchReplaceNoExactMatch", FROM_HARNESS),
        rule("edit: old text not unique", "matches of the string|occurrence|occurrences",
             r"Found \d+ matches of the string to replace|Multiple occurrences of old_str"
             r"|Expected 1 occurrences? but found \d+|Found \d+ occurrences", FROM_HARNESS),
        rule("edit: not read yet", "not been read", r"File has not been read yet", FROM_HARNESS),
        rule("edit: changed since read", "modified since",
             r"[Ff]ile has been (?:unexpectedly )?modified since", FROM_HARNESS),
        rule("edit: no change", "No changes to make",
             r"No changes to make: old_string and new_string are exactly the same", FROM_HARNESS),
        rule("edit: file exists", "already exists at",
             r"File already exists at: .*[Cc]annot overwrite", FROM_HARNESS),
        rule("edit: syntax error introduced", "proposed edit",
             r"Your proposed edit has introduced new syntax error", FROM_HARNESS, own=True),
        rule("apply_patch: context not found", "apply_patch|~ailed to find",
             r"(?:apply_patch verification failed|Failed to find (?:expected lines|context))", FROM_HARNESS),
        rule("apply_patch: invalid patch", "~nvalid patch|~nvalid hunk",
             r"[Ii]nvalid (?:patch|hunk)\b", FROM_HARNESS),
        rule("git apply: patch does not apply", "patch does not apply|patch failed",
             r"^error: (?:(?P<subject>\S+): patch does not apply|patch failed: (?P<subject2>[^:\s]+))"),
        rule("git apply: corrupt patch", "corrupt patch|No valid patches|unrecognized input"
             "|patch with only garbage|patch fragment without",
             r"^error: (?P<text>corrupt patch|No valid patches in input|unrecognized input"
             r"|patch with only garbage|patch fragment without header)"),
        rule("patch: hunk failed", "FAILED at|hunks ignored|hunk ignored|hunks FAILED|hunk FAILED",
             r"^Hunk #\d+ (?P<text>FAILED) at|^\d+ out of \d+ hunks? (?P<text2>FAILED|ignored)"),
        rule("patch: malformed patch", "patch: ****", r"^patch: \*\*\*\* (?P<text>.*?)(?: at line.*|$)"),
        rule("patch: file not found", "find file to patch", r"can't find file to patch"),
        rule("patch: already applied", "previously applied",
             r"Reversed \(or previously applied\) patch detected", EXACT + 1),
    ),
    K.USAGE: (
        rule("pytest: no tests ran", "no tests ran|NO TESTS RAN",
             r"^=* ?no tests ran in |^NO TESTS RAN", SUMMARY, sure=False),
        rule("unrecognized arguments", "unrecognized arguments",
             r"^(?P<program>[\w. -]+): error: unrecognized arguments: (?P<subject>\S+)"),
        rule("argument error", ": error: ",
             r"^(?P<program>[\w.-]+(?: [\w-]+)?): error: (?P<text>.*)", TOOL),
        rule("bad option", "~o such option|~o such command",
             r"(?:Error: )?[Nn]o such (?:option|command):? '?(?P<subject>[\w.-]+)"),
        rule("missing argument", "~issing argument|~issing option|~issing command|~equires an argument"
             "|required arguments", r"^(?:Error|error): (?P<text>Missing (?:argument|option|command).*"
             r"|the following (?:required )?arguments.*|.*requires an argument.*)"),
        rule("invalid value", "~nvalid value", r"^(?:Error|error): (?P<text>[Ii]nvalid value .*)", TOOL),
        rule("pip: bad requirement", "~nvalid requirement|not a valid editable|no such option",
             r"^ERROR: (?P<text>Invalid requirement|.* is not a valid editable requirement)"),
        rule("npm: missing script", "~issing script|~cript not found|~ommand \"|Script \"",
             r"(?:[Mm]issing script:?|error: [Ss]cript not found|Couldn't find a script named"
             r"|error Command) [\"']?(?P<subject>[\w:.-]+)[\"']?(?: not found)?"
             r'|error: Script not found \"(?P<subject2>[^\"]+)'),
        rule("yarn: lockfile", "lockfile", r"(?i)(?:your lockfile needs to be updated"
             r"|lockfile (?:would have been|had changes)|frozen.lockfile)(?P<text>.*)"),
        rule("unknown subcommand", "unrecognized subcommand|~nknown command|no such command"
             "|no such subcommand|not a git command|is not a docker command",
             r"^(?:error|Error):? (?:unrecognized subcommand|[Uu]nknown (?:sub)?command:?"
             r"|no such (?:sub)?command:?) [`'\"]?(?P<subject>[\w:-]+)|^(?P<program>git"
             r"|docker): '(?P<subject2>[\w-]+)' is not a (?:git|docker) command"
             r'|^unknown (?:sub)?command \"(?P<subject3>[\w:-]+)\" for \"'),
        rule("unexpected argument", "unexpected argument|wasn't expected",
             r"^error: (?:unexpected argument|Found argument) '(?P<subject>[^']+)'"),
        rule("invalid value", "error: invalid value",
             r"^error: invalid value '[^']*' for '(?P<subject>[^']+)'"),
        rule("missing argument", "required arguments were not provided",
             r"^error: the following required arguments were not provided"),
        rule("cargo: no such target", "no bin target|no test target|no example target"
             "|did not match any packages|no library targets",
             r"^error: (?:no (?P<error>\w+) target named `(?P<subject>[^`]+)`"
             r"|package ID specification `(?P<subject2>[^`]+)` did not match|no library targets found)"),
        rule("make: no rule", "No rule to make target",
             r"^g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'\u2018](?P<subject>[^'\u2019]+)"),
        rule("unknown task", "contain recipe|~nknown task|~nknown recipe|Task '",
             r"(?:does not contain recipe|\b[Uu]nknown (?:task|recipe):?) [`'\"]?(?P<subject>[\w:.-]+)"
             r"|^(?:> )?Task '(?P<subject2>[\w:.-]+)' (?:not found|does not exist)"),
        rule("file too large", "exceeds maximum",
             r"(?:File content|exceeds maximum allowed).*(?:tokens|size|characters)", FROM_HARNESS),
        rule("invalid input", "InputValidationError", r"InputValidationError\b", FROM_HARNESS),
        rule("no such tool", "tool",
             r"(?:No such tool available|Unknown tool)\W+(?P<subject>[\w:.-]+)", FROM_HARNESS),
        rule("bad option", "~nvalid option|~nrecognized option|~nknown option|~llegal option"
             "|~nvalid argument|~nknown flag|~nrecognized flag", r"^(?P<program>[\w./ -]{1,40}?): (?:error: "
             r")?(?:invalid|unrecognized|unknown|illegal) (?:option|argument"
             r"|flag):?(?: --(?= ))? ?['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019]+)"),
        rule("bad option", "~nknown option|~nknown flag|~nrecognized option|~nknown switch"
             "|~nknown command-line",
             r"^(?:> )?(?:[Ee]rror: |error |\w{1,40}Error: )?(?:unknown|Unknown|unrecognized)"
             r" (?:command-line )?(?:option|flag|shorthand flag|switch):?"
             r" ['\"`\u2018\u2019\u201c\u201d]?(?P<subject>-*[\w-]+)"),
        rule("zsh: no matches found", "no matches found",
             r"^zsh(?::\d{1,6})?: no matches found: (?P<subject>\S{1,300})"),
        rule("grep: bad pattern", "grep:", r"^[ezf]?grep: (?P<text>(?:Unmatched|Invalid|unmatched|lookbehind"
             r"|stray|missing|repetition|support for the -P|invalid|conflicting).*)", own=True),
        rule("rg: bad pattern", "regex parse error|~nrecognized file type",
             r"^(?:rg: )?(?P<text>regex parse error|unrecognized file type.*)", own=True),
        rule("sed: bad expression", "sed:", r"^sed: (?:-e expression #\d+, char \d+: |\d+: .*?: |couldn't "
             r"|-: )?(?P<text>(?:unterminated|unknown|extra|unmatched|invalid|expected|missing|comments"
             r"|no previous|command|undefined).*)", own=True),
        rule("awk: bad expression", "awk:",
             r"^[gm]?awk: (?:cmd\. line:\d+: )?.*(?P<text>syntax error.*|unexpected.*|fatal: .*)", own=True),
        rule("find: bad expression", "find:",
             r"^find: (?P<text>(?:unknown predicate|paths must precede|missing argument|invalid).*)"),
        rule("jq: jq error", "jq: ", r"^jq: (?:error|\d+ compile error)(?P<text>.*)"),
        rule("xargs: xargs error", "xargs:", r"^xargs: (?P<text>(?!.*No such file).*)", TOOL),
    ),
    K.GIT: (
        rule("git: not a repository", "not a git repository", r"fatal: not a git repository"),
        rule("git: push rejected", "non-fast-forward|fetch first",
             r"! \[(?:remote )?rejected\] .*\((?P<text>non-fast-forward|fetch first)"),
        rule("git: push declined", "[rejected]|[remote rejected]",
             r"! \[(?:remote )?rejected\] .*\((?P<text>[^)]*)"),
        rule("git: failed to push", "failed to push some refs", r"^error: failed to push some refs", SUMMARY),
        rule("git: unstaged changes", "unstaged changes|would be overwritten|uncommitted changes",
             r"^error: (?:cannot (?:pull with rebase|rebase): (?P<text>.*)"
             r"|Your local changes .* would be (?P<text2>overwritten by \w+))|^(?:error"
             r"|fatal): (?P<text3>.*(?:unstaged|uncommitted) changes.*)"),
        rule("git: merge conflict", "CONFLICT (|merge conflict|needs merge|unmerged files",
             r"^CONFLICT \((?P<text>[\w/]+)\)|^(?:error|fatal): .*(?P<text2>unmerged files|needs merge"
             r"|merge conflict)"),
        rule("git: pathspec", "did not match any file",
             r"pathspec '(?P<subject>[^']+)' did not match any file"),
        rule("git: unknown revision", "unknown revision|bad revision|ambiguous argument|~nvalid reference"
             "|not a valid ref|bad object",
             r"^(?:fatal|error): (?:ambiguous argument|bad revision|invalid reference:?|bad object"
             r"|Not a valid (?:object|ref)\w*(?: name)?:?) '?(?P<subject>[^':\s]+)"),
        rule("git: identity unknown", "tell me who you are|ident name|~mpty ident",
             r"Please tell me who you are|fatal: (?:unable to auto-detect email|empty ident name)"),
        rule("git: dubious ownership", "dubious ownership", r"fatal: detected dubious ownership"),
        rule("git: index locked", "index.lock", r"(?:Unable to create|fatal: ).*index\.lock"),
        rule("git: authentication", "(publickey)|could not read Username|~uthentication failed"
             "|could not read Password", r"Permission denied \(publickey|could not read (?:Username|Password)"
             r"|fatal: Authentication failed"),
        rule("git: nothing to commit", "nothing to commit|nothing added to commit|~o changes added",
             r"^(?:nothing to commit|nothing added to commit|no changes added to commit)", TOOL, sure=False),
        rule("git: fatal", "fatal: ", r"^fatal: (?P<text>.*)", TOOL),
    ),
    K.SYNTAX: (
        rule("python: SyntaxError", "Sorry: |SyntaxError|IndentationError|TabError",
             r"^(?:(?:Sorry: |E +)(?P<error>SyntaxError|IndentationError|TabError)"
             r"|(?P<error2>IndentationError|TabError)): (?P<text>[^(]*)", TOOL, own=True),
        rule("SyntaxError", "SyntaxError", r"^(?:Uncaught )?SyntaxError: (?P<text>.*)", TOOL, own=True),
        rule("make: missing separator", "missing separator", r"\*\*\* missing separator", own=True),
        rule("bash: syntax error", "syntax error|unexpected EOF|~nterminated quoted",
             r"^(?:\S*sh|.{0,80}?): (?:-c: )?(?:eval: )?(?:line \d+|\d+): (?:syntax error|unexpected EOF"
             r"|Syntax error)(?P<text>.*)", own=True),
        rule("bash: bad substitution", "bad substitution|event not found|unbound variable|parse error",
             r"^\S*sh: .*(?P<text>bad substitution|event not found|unbound variable|parse error.*)"
             r"|^zsh:\d*:? .*(?P<text2>parse error near .*)", own=True),
    ),
    K.ATTRIBUTE: (
        rule("node: ReferenceError", "ReferenceError",
             r"^(?:Uncaught )?ReferenceError: (?P<subject>\S+) is not defined", TOOL),
    ),
    K.TYPE_ERROR: (
        rule("node: TypeError", "TypeError", r"^(?:Uncaught )?TypeError: (?P<text>.*)", LOOSE),
    ),
    K.BUILD: (
        rule("pip: wheel not built", "~ailed building wheel|~ould not build wheels|~ailed to build",
             r"(?:Failed building wheel for|Could not build wheels for|Failed to build(?! |$)"
             r"|Failed to build installable wheels for) ?(?P<subject>[\w.-]+)?", TOOL),
        rule("pip: build failed", "subprocess-exited-with-error|metadata-generation-failed",
             r"^(?:\u00d7 |error: |ERROR: )?(?P<text>subprocess-exited-with-error"
             r"|metadata-generation-failed)", LOOSE),
        rule("tsc: TS", "error TS", r"error (?P<error>TS\d+): (?P<text>.*)", TOOL, own=True),
        # The lines of the diff that follows are those of one run.
        rule(f": {NOT_FORMATTED}", "Diff in ", r"^Diff in [^\s:]+(?::| at line )\d+:", TOOL, own=True),
        rule(f": {NOT_FORMATTED}", "~ould reformat|be reformatted|be formatted|Code style issues",
             r"^(?:\W{0,3}[\w-]{1,20}\W{1,4})?(?:[Ww]ould reformat:? \S+$"
             r"|\d+ files? would be (?:re)?formatted|Code style issues (?:found )?in )",
             TOOL, own=True, sure=False),
        rule("eslint: lint", "error  ",
             r"^\s+\d+:\d+\s+error\s.*\s\s(?P<subject>[\w@/-]+)$", TOOL, own=True),
        rule("eslint: lint", "problem|problems", r"^✖ \d+ problems? \([1-9]\d* errors?", SUMMARY, own=True),
        rule("npm: lifecycle", "npm ERR!|npm error|ELIFECYCLE", r"(?:npm (?:ERR!|error)|ELIFECYCLE) "
             r"(?P<text>(?!A complete log|code 1$|path |command ).*)", SUMMARY),
        rule("rustc: E", "error[E", r"^error\[(?P<error>E\d+)\]: (?P<text>.*)", TOOL, own=True),
        rule("cargo: could not compile", "could not compile",
             r"^error: could not compile `(?P<subject>[^`]+)`", SUMMARY + 1, own=True),
        rule("rustc: error", "error: ", r"^error: (?P<text>(?:expected|unexpected|mismatched|cannot find"
             r"|this file contains|unknown|linking with|aborting|macro|no rules|format|unclosed|unused"
             r"|environment variable).*)", LOOSE, own=True),
        rule("cargo: build script failed", "~ailed to run custom build command",
             r"^error: failed to run custom build command for `(?P<subject>[\w-]+)"),
        rule("ld: linking failed", "linking with|cannot find -l|undefined reference|ld returned",
             r"(?:cannot find -l(?P<subject>[\w-]+)|undefined reference to [`'](?P<subject2>[^'`]+)"
             r"|(?P<text>linking with .* failed)|(?P<text2>ld returned \d+ exit status))"),
        rule("go: compile error", ".go:", r"^(?:vet: )?\.{0,2}/?[\w./-]+\.go:\d+(?::\d+)?: "
             r"(?P<text>(?!\d).*)", TOOL, own=True, sure=False),
        rule("gcc: compile error", "error: ", r"^[\w./+-]+\.(?:c|cc|cpp|cxx|h|hpp|m|mm"
             r"|cu):\d+(?::\d+)?: (?:fatal )?error: (?P<text>(?!.*No such file).*)", TOOL, own=True),
        rule("javac: compile error", ".java:|.kt:|.java[|[ERROR] ", r"^(?:\[ERROR\] |e: )?\S*?[\w-]\.(?:java"
             r"|kt|scala):\[?\d+(?:[,:]\d*)?\]?:? (?:error: )?(?P<text>.*)", TOOL, own=True),
        rule("maven: BUILD FAILURE", "BUILD FAILURE|BUILD FAILED|Failed to execute goal",
             r"(?:\[(?:INFO|ERROR)\] )?(?:BUILD FAILURE|BUILD FAILED"
             r"|Failed to execute goal (?P<subject>[\w.:-]+))", SUMMARY),
        rule("gradle: task failed", "Execution failed for task|What went wrong|not found in root project",
             r"Execution failed for task '(?P<subject>[^']+)'|Task '(?P<subject2>[^']+)' not found in", TOOL),
        rule("make: recipe failed", "make", r"^g?make(?:\[\d+\])?: \*\*\* (?P<text>.*)", SUMMARY),
        rule("cmake: cmake error", "CMake Error", r"^CMake Error(?: at \S+)?:? ?(?P<text>.*)", TOOL),
        rule("dotnet: compile error", "error CS|error MSB|error NU|error NETSDK",
             r"error (?P<error>(?:CS|MSB|NU|NETSDK)\d+): (?P<text>[^\[]*)", TOOL, own=True),
        rule("docker: build step failed", "did not complete successfully|returned a non-zero code"
             "|~ailed to solve",
             r"(?P<text>did not complete successfully|returned a non-zero code|failed to solve.*)", TOOL),
    ),
    K.TEST_FAILURE: (
        rule("pytest: collection error", "ERROR ",
             r"^ERROR (?P<subject>\S+\.py)(?:::\S+)?(?: - .*)?$", SUMMARY),
        rule("pytest: fixture not found", "fixture '", r"^E? *fixture '(?P<subject>\w+)' not found"),
        rule("unittest: FAILED", "FAILED (", r"^FAILED \((?P<text>(?:failures|errors)=.*)\)", SUMMARY),
        rule("jest: test failed", "● |✕ ",
             r"^\s*● (?P<text>.+ \u203a .+)|^ *(?:✕|\u00d7) (?P<text2>.+?)(?: \(?\d+ ?ms\)?)?$", TOOL),
        rule("jest: test failed", "FAIL ", r"^ ?FAIL +(?P<subject>\S+\.\w+)", TOOL - 1),
        rule("jest: test failed", "Tests: |Test Suites: |Test Files ",
             r"^ *(?:Tests|Test Suites|Test Files):? +(?:[^\n]*, )?[1-9]\d* failed", SUMMARY),
        rule("mocha: test failed", "1) ", r"^ {0,8}1\) (?P<text>\S.{1,200} \S.{1,200}):$", TOOL, sure=False),
        rule("mocha: test failed", "failing", r"^\s*[1-9]\d* failing\b", SUMMARY),
        rule("bun: test failed", "(fail)", r"^\(fail\) (?P<text>.*?)(?: \[[\d.]+ms\])?$", TOOL),
        rule("cargo: test failed", "' panicked at|... FAILED",
             r"^thread '(?!main'|tokio)(?P<subject>[^']+)'(?: \(\d+\))? panicked at"
             r"|^test (?P<subject2>\S+)(?: - should panic)? \.\.\. FAILED", TOOL),
        rule("cargo: test failed", "test result: FAILED|error: test failed",
             r"^test result: FAILED|^error: (?:doc)?test failed", SUMMARY),
        rule("go: test failed", "--- FAIL", r"^\s*--- FAIL: (?P<subject>\S+)", TOOL),
        rule("go: test failed", "FAIL\t", r"^FAIL\t(?P<text>\S+)", SUMMARY),
        rule("gradle: test failed", " FAILED", r"^(?P<text>[A-Z]\w{0,120} > .{1,300} FAILED)$", TOOL),
        rule("maven: test failed", "<<< FAIL|<<< ERR|Tests run:",
             r"^(?:\[ERROR\] )?(?P<text>[\w.$]+)(?:\(.*\))? .*<<< (?:FAILURE|ERROR)!"
             r"|^\[ERROR\] Tests run: \d+, (?:Failures: [1-9]|Failures: 0, Errors: [1-9])", TOOL),
    ),
    K.CRASH: (
        rule("pytest: INTERNALERROR", "INTERNALERROR",
             r"^INTERNALERROR> (?P<text>\w[\w.]*(?:Error|Exception)\b.*)", TOOL),
        rule("python: Fatal Python error", "Fatal Python error", r"^Fatal Python error: (?P<text>.*)"),
        rule("rust: panic", "panicked at",
             r"^thread '(?:main|tokio-runtime-worker)'(?: \(\d+\))? panicked at(?P<text>.*)", TOOL),
        rule("go: panic", "panic: ", r"^panic: (?P<text>.*)", EXACT + 1),
        rule("java: exception", "Exception in thread",
             r'^Exception in thread \"[^\"]*\" (?P<error>[\w.$]+)(?:: (?P<text>.*))?', TOOL),
        rule("killed", "Killed|~egmentation fault|~ore dumped|~ut of memory|Bus error|SIGKILL|SIGSEGV"
             "|OOMKilled", r"(?:^|: )(?:line \d+: +\d+ )?(?P<text>Killed|Segmentation fault|Bus error"
             r"|Aborted \(core dumped\)|.*\(core dumped\))|(?:signal: \d+, )?(?P<text2>SIGKILL|SIGSEGV)"
             r"|(?P<text3>OOMKilled|JavaScript heap out of memory)"),
    ),
    K.OTHER: (
        rule("eslint: no config", "ESLint couldn't find|couldn't find the config",
             r"ESLint couldn't find (?P<text>[^.]*)"),
        rule("pnpm: pnpm error", "ERR_PNPM_",
             r"(?P<error>ERR_PNPM_(?!NO_SCRIPT|RECURSIVE_EXEC_FIRST_FAIL +Command)\w+)", EXACT + 1),
        rule("yarn: yarn error", "YN0", r"➤ (?P<error>YN\d+): .*(?:error|couldn't|failed).*", TOOL),
        rule("malformed command", "COMMAND MALFORMED",
             r"EXECUTION FAILED OR COMMAND MALFORMED", FROM_HARNESS),
        rule("mcp: mcp error", "MCP error", r"MCP error (?P<text>-?\d+:? .*)", TOOL),
        rule("disk full", "No space left", r"No space left on device"),
        rule("invalid input", "~nvalid input", r"^(?P<program>[\w-]+): invalid input$", TOOL),
        rule("apt-get: apt error", "E: ", r"^E: (?P<text>.*)", TOOL),
        rule("sqlite: sqlite error", "no such table|no such column|~atabase is locked|syntax error"
             "|UNIQUE constraint|readonly database|disk I/O error|malformed",
             r"(?:^|\b(?:Error|error|OperationalError|IntegrityError|DatabaseError"
             r"|SqliteError)\b.{0,60}?)(?P<text>no such (?:table|column): ?\S+|database is locked"
             r'|near \"[^\"]*\": syntax error|UNIQUE constraint failed.*|attempt to write a readonly database'
             r"|disk I/O error|database disk image is malformed)"),
        rule("gh: gh error", "GraphQL: |HTTP 4|gh auth login", r"^(?:GraphQL: (?P<text>.*)"
             r"|HTTP (?P<error>4\d\d): (?P<text2>.*)|.*(?P<text3>gh auth login).*)", TOOL),
        rule("docker: daemon error", "Error response from daemon",
             r"Error response from daemon: (?P<text>.*)", TOOL),
        rule("kubectl: kubectl error", "Error from server",
             r"^Error from server \((?P<error>\w+)\): (?P<text>.*)", TOOL),
        rule("error", "✖ |✗ |✘ ", r"^\s*[✖✗✘]\s+(?P<text>(?!found \d)[A-Za-z].*)", LOOSE + 1, sure=False),
        rule("error", "~rror|ERROR", r"^(?:[\w./-]{1,40}: )?(?:\[?(?:error|Error|ERROR)\]?|npm ERR!"
             r"|Fatal error|fatal error|✘ \[ERROR\])(?:\[\w+\])?:? (?P<text>\S.*)", LOOSE, sure=False),
        rule("error", "~anic|~xception|~ailed|~nable to|~annot ",
             r"^(?:[\w./-]{1,40}: )?(?:Uncaught |Unhandled )?(?P<text>(?:[Pp]anic|[A-Z]\w*Exception|[Ff]ailed"
             r"|FAILED|[Uu]nable to|[Cc]annot)\b.*)", LOOSE - 5, sure=False),
        rule("error", "~rror", r"\b[^\WA-Z]*+(?P<error>[A-Z]\w*Error): (?P<text>.*)", LOOSE - 10, sure=False),
    ),
}
# fmt: on
RULES = tuple(rule._replace(kind=kind) for kind, rules in _BY_KIND.items() for rule in rules)
# The classes of errors in words of ours: no program chose them.
CLASSES = frozenset(rule.error for rule in RULES if rule.error)

# An error about the version of what runs a command: no edit of the code overcomes it.
_RUNTIME = lazy_pattern(r"(?i)\bversions?\b|\bengines?\b|\bruntimes?\b|\btoolchains?\b")
_VERSION = lazy_pattern(r"(?<![\w.])(?:v\d{1,4}\.\d{1,4}|\d{1,4}\.\d{1,4}\.\d{1,4})")
_MISMATCH = lazy_pattern(
    r"(?i)\bunsupported\b|not (?:be )?supported|incompatible|\brequire[sd]?\b|\bexpected\b|\bneeds?\b"
    r"|[<>]=?\s?v?\d|too (?:old|new)|\bolder\b|\bnewer\b|at least|mismatch|not satisfied|wrong|\bbad\b"
    r"|configured to use"
)


def is_of_runtime(line: str) -> bool:
    """Say whether an error is about the version of what runs a command, whatever the command is given."""
    said = [_RUNTIME.search(line), _MISMATCH.search(line), len({*_VERSION.findall(line)}) > 1]
    return sum(map(bool, said)) > 1
