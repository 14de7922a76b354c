"""Messages of agent harnesses, model providers, shells, Unix tools, git, containers and the network."""

from __future__ import annotations

from archivist.reading.rules import EXACT, FROM_HARNESS, LOOSE, SUMMARY, TOOL, MessageRule, rule
from archivist.reading.rules import FailureKind as K

# A row reads: what the message means and who prints it; then its needles and its pattern.
# fmt: off
HARNESS: tuple[MessageRule, ...] = (
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not found", FROM_HARNESS,
         "to replace not found", r"[Ss]tring to replace not found"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not found", FROM_HARNESS,
         "old_str", r"(?i)\bold_str(?:ing)?\b.{0,4000}?(?:did not appear|not found|does not exist|no match)"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not found", FROM_HARNESS,
         "old_str|No replacement", r"No replacement was performed(?!.*(?:Multiple|multiple))"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not found", FROM_HARNESS,
         "Failed to edit|~ould not find",
         r"(?:Failed to edit, (?:0 occ|could not find)|[Cc]ould not find (?:the )?(?:string|text"
         r"|old_string|exact match))"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not found", FROM_HARNESS,
         "SEARCH|SearchReplace", r"(?:SEARCH/REPLACE blocks? failed|SearchReplaceNoExactMatch)"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not unique", FROM_HARNESS,
         "matches of the string", r"Found \d+ matches of the string to replace"),
    rule(K.EDIT_NOT_APPLIED, "edit", "old text not unique", FROM_HARNESS,
         "~ultiple occurrences|occurrence|occurrences",
         r"(?:Multiple occurrences of old_str|Expected 1 occurrences? but found \d+"
         r"|Found \d+ occurrences)"),
    rule(K.EDIT_NOT_APPLIED, "edit", "not read yet", FROM_HARNESS,
         "not been read", r"File has not been read yet"),
    rule(K.EDIT_NOT_APPLIED, "edit", "changed since read", FROM_HARNESS,
         "modified since", r"[Ff]ile has been (?:unexpectedly )?modified since"),
    rule(K.EDIT_NOT_APPLIED, "edit", "no change", FROM_HARNESS,
         "No changes to make", r"No changes to make: old_string and new_string are exactly the same"),
    rule(K.EDIT_NOT_APPLIED, "edit", "file exists", FROM_HARNESS,
         "already exists at", r"File already exists at: .*[Cc]annot overwrite"),
    rule(K.EDIT_NOT_APPLIED, "edit", "syntax error introduced", FROM_HARNESS,
         "proposed edit", r"Your proposed edit has introduced new syntax error", own=True),
    rule(K.EDIT_NOT_APPLIED, "apply_patch", "context not found", FROM_HARNESS,
         "apply_patch|~ailed to find",
         r"(?:apply_patch verification failed|Failed to find (?:expected lines|context))"),
    rule(K.EDIT_NOT_APPLIED, "apply_patch", "invalid patch", FROM_HARNESS,
         "~nvalid patch|~nvalid hunk", r"[Ii]nvalid (?:patch|hunk)\b"),
    rule(K.MISSING_FILE, "", "no such file", FROM_HARNESS,
         "does not exist", r"^(?:<tool_use_error>)?(?:Error: )?(?:File|Path|Directory"
         r"|The path) (?:(?P<subject>\S+) )?does not exist"),
    rule(K.MISSING_FILE, "", "no such file", FROM_HARNESS,
         "does not exist", r"^(?:<tool_use_error>)?(?:Path|Directory) does not exist: (?P<subject>\S+)"),
    rule(K.MISSING_FILE, "", "no such file", EXACT,
         "~ile not found", r"^(?:<tool_use_error>)?(?:Error: )?File not found:? (?P<subject>\S+)"),
    rule(K.MISSING_FILE, "", "is a directory", FROM_HARNESS,
         "EISDIR", r"EISDIR: illegal operation on a directory"),
    rule(K.USAGE, "", "file too large", FROM_HARNESS,
         "exceeds maximum", r"(?:File content|exceeds maximum allowed).*(?:tokens|size|characters)"),
    rule(K.USAGE, "", "invalid input", FROM_HARNESS, "InputValidationError", r"InputValidationError\b"),
    rule(K.USAGE, "", "no such tool", FROM_HARNESS,
         "tool", r"(?:No such tool available|Unknown tool)\W+(?P<subject>[\w:.-]+)"),
    rule(K.PERMISSION, "", "not approved", FROM_HARNESS,
         "requires approval|Permission to use",
         r"(?:requires approval|Permission to use \w+ .*(?:denied|has been))"),
    rule(K.TIMEOUT, "", "command timed out", FROM_HARNESS,
         "~imed out|TIMED OUT|timeout", r"(?i)(?:command|execution|process|tool call"
         r"|request)\b.{0,400}? timed out\b(?! after \d+ attempts)|^timeout: sending signal"
         r"|EXECUTION TIMED OUT|timeout exceeded|\btimed out after "
         r"(?:\d+(?:\.\d+)?\s?m?s(?:ec\w*)?|\d+\s?min\w*)"),
    rule(K.TIMEOUT, "", "command timed out", FROM_HARNESS,
         "no new output", r"The command has no new output after [\d.]+ seconds"),
    rule(K.OTHER, "", "malformed command", FROM_HARNESS,
         "COMMAND MALFORMED", r"EXECUTION FAILED OR COMMAND MALFORMED"),
    rule(K.PERMISSION, "", "sandbox", FROM_HARNESS,
         "sandbox",
         r"(?i)(?:failed in sandbox|sandbox (?:denied|error|violation)|blocked by (?:the )?sandbox)"),
    rule(K.OTHER, "mcp", "mcp error", TOOL, "MCP error", r"MCP error (?P<text>-?\d+:? .*)"),
)

PROVIDER: tuple[MessageRule, ...] = (
    rule(K.PROVIDER, "provider", "overloaded", EXACT,
         "overloaded|Overloaded",
         r"(?i)overloaded_error|(?:api|server|model|engine|529)\b.{0,60}\boverloaded"),
    rule(K.PROVIDER, "provider", "rate limit", EXACT,
         "~ate_limit|~ate limit|RateLimit|~oo many requests|~oo Many Requests",
         r"(?i)rate_limit(?:_error|_exceeded)?\b|rate ?limit(?:ed| exceeded| reached|error)"
         r"|\b429\b.{0,40}too many requests|too many requests.{0,20}429|RateLimitError"),
    rule(K.PROVIDER, "provider", "quota", EXACT,
         "quota|insufficient_quota|RESOURCE_EXHAUSTED|credit balance|usage limit",
         r"(?i)insufficient_quota|exceeded your current quota|credit balance is too low"
         r"|usage limit reached|RESOURCE_EXHAUSTED|quota exceeded"),
    rule(K.PROVIDER, "provider", "context length", EXACT,
         "context|~rompt is too long",
         r"(?i)context_length_exceeded|prompt is too long|maximum context length"
         r"|context window (?:exceeded|limit)|exceeds? the context window"),
    rule(K.PROVIDER, "provider", "authentication", EXACT,
         "API key|api key|authentication_error|x-api-key",
         r"(?i)invalid (?:x-)?api[- ]key|incorrect api key|authentication_error"
         r"|api key not (?:found|valid)"),
    rule(K.PROVIDER, "provider", "server error", EXACT,
         "~nternal server error|api_error|~ervice Unavailable|~ad Gateway|~ateway Time",
         r"(?i)^(?:.{0,40}(?:error|http|status|api)\b.{0,40})?\b50[0234]\b.{0,60}(?:internal "
         r"server error|service unavailable|bad gateway|gateway time-?out)"
         r'|\"type\":\s*\"api_error\"'),
)

SHELL: tuple[MessageRule, ...] = (
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "~ommand not found", r"^(?:\S*sh: |.{0,60}?: line \d+: |\S+: \d+: )(?:line \d+: |\d+: "
         r"|eval: line \d+: )?(?P<subject>[^\s:]+): command not found|^(?:bash|zsh"
         r"|fish): (?:command not found|Unknown command): (?P<subject2>\S+)"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "not found", r"^(?:/bin/|/usr/bin/)?(?:sh|dash|ash|bash): (?:line )?\d*:? ?(?:eval: "
         r")?(?P<subject>[^\s:]+): not found|^\S+\.sh: (?:line )?\d+: (?P<subject2>[^\s:]+): not "
         r"found"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "~ailed to run|executable",
         r'exec(?:utable file not found|: )\W*\"?(?P<subject>[\w.-]+)\"?: executable file not '
         r"found in \$PATH|(?P<subject2>[\w.-]+): executable file not found"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT + 1,
         "No such file",
         r"^(?:/usr/bin/)?env: \u2018?'?(?P<subject>[\w.+-]+)(?:\\r)?\u2019?'?: No such file or "
         r"directory"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "is not recognized",
         r"['\"]?(?P<subject>[\w.-]+)['\"]? is not recognized as (?:an internal|the name)"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "ENOENT", r"spawn (?P<subject>[\w./-]+) ENOENT"),
    rule(K.SYNTAX, "bash", "syntax error", EXACT,
         "syntax error|unexpected EOF|~nterminated quoted",
         r"^(?:\S*sh|.{0,80}?): (?:-c: )?(?:eval: )?(?:line \d+|\d+): (?:syntax error"
         r"|unexpected EOF|Syntax error)(?P<text>.*)", own=True),
    rule(K.SYNTAX, "bash", "bad substitution", EXACT,
         "bad substitution|event not found|unbound variable|parse error",
         r"^\S*sh: .*(?P<text>bad substitution|event not found|unbound variable|parse error.*)"
         r"|^zsh:\d*:? .*(?P<text2>parse error near .*)", own=True),
    rule(K.PERMISSION, "", "permission denied", EXACT,
         "~ermission denied|EACCES|~peration not permitted|~ccess denied",
         r"(?:[Pp]ermission denied(?! \(publickey)|EACCES|Operation not permitted"
         r"|Access denied)", sure=False),
    rule(K.PERMISSION, "", "permission denied", EXACT,
         "~ermission denied|~peration not permitted",
         r"^(?P<program>[\w.+-]{1,30}): (?:cannot [\w ]{1,40}? |can't \w+ )?['\"`\u2018]?"
         r"(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2019]?: (?:Permission denied|Operation not permitted)",
         sure=False),
    rule(K.PERMISSION, "bash", "permission denied", EXACT,
         "~ermission denied",
         r"^(?:\S*sh|\S+\.sh): (?:line \d+: |\d+: )?(?P<subject>[^\s:]+): Permission denied"),
    rule(K.MISSING_FILE, "", "is a directory", TOOL,
         "~s a directory", r"^(?P<program>[\w.-]{1,30}): (?:-r not specified; omitting directory"
         r"|(?:read error(?: on)? )?['\"`\u2018\u2019\u201c\u201d]?"
         r"(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2018\u2019\u201c\u201d]?: Is a directory)"),
    rule(K.MISSING_FILE, "", "no such file", EXACT,
         "No such file|cannot access",
         r"^(?P<program>[\w.+-]{1,30}): (?:cannot (?:access|stat|open|remove|read|touch"
         r"|create[^']*)|can't (?:read|open|cd to)|error reading|open)? ?(?:regular file "
         r"|directory |file )?['\"`\u2018\u2019\u201c\u201d]?"
         r"(?P<subject>[^'\"`\u2018\u2019:\n]+?)['\"`\u2018\u2019\u201c\u201d]?(?: for reading)?: "
         r"No such file or directory"),
    rule(K.MISSING_FILE, "bash", "no such file", EXACT,
         "No such file", r"^(?:\S*sh|\S+\.sh): (?:line \d+: |\d+: )?(?:cd: |source: "
         r"|\.: )?(?P<subject>[^:\n]+): No such file or directory"),
    rule(K.MISSING_FILE, "bash", "is a directory", EXACT,
         "~s a directory", r"^\S*sh: (?:line \d+: )?(?P<subject>[^:\n]+): Is a directory"),
    rule(K.MISSING_FILE, "", "no such file", TOOL,
         "No such file|~annot open",
         r"^['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2018\u2019\u2"
         r"01c\u201d]?: No such file or directory|cannot open [`'](?P<subject2>[^']+)' \(No such "
         r"file"),
    rule(K.MISSING_FILE, "", "no such file", LOOSE,
         "No such file|ENOENT", r"(?:ENOENT: no such file or directory, \w+ '(?P<subject>[^']+)'"
         r"|No such file or directory(?: \(os error 2\))?(?:: '?(?P<subject2>[^'\n]+))?)", sure=False),
    rule(K.MISSING_FILE, "", "no such file", TOOL,
         "ENOENT", r"ENOENT: no such file or directory, \w+ '(?P<subject>[^']+)'"),
    rule(K.MISSING_FILE, "cd", "not a directory", TOOL,
         "~ot a directory", r"(?P<subject>[^\s:]+): Not a directory$"),
    rule(K.USAGE, "", "bad option", EXACT,
         "~nvalid option|~nrecognized option|~nknown option|~llegal option|~nvalid argument|"
         "~nknown flag|~nrecognized flag",
         r"^(?P<program>[\w./ -]{1,40}?): (?:error: )?(?:invalid|unrecognized|unknown"
         r"|illegal) (?:option|argument|flag):?(?: --)? "
         r"?['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019]+)"),
    rule(K.USAGE, "", "bad option", EXACT,
         "~nknown option|~nknown flag|~nrecognized option|~nknown switch",
         r"^(?:[Ee]rror: |error )?(?:unknown|Unknown|unrecognized) (?:option|flag|shorthand flag"
         r"|switch):? ['\"`\u2018\u2019\u201c\u201d]?(?P<subject>-*[\w-]+)"),
    rule(K.USAGE, "grep", "bad pattern", EXACT,
         "grep:", r"^[ezf]?grep: (?P<text>(?:Unmatched|Invalid|unmatched|lookbehind|stray|missing"
         r"|repetition|support for the -P|invalid|conflicting).*)", own=True),
    rule(K.USAGE, "rg", "bad pattern", EXACT,
         "regex parse error|~nrecognized file type",
         r"^(?:rg: )?(?P<text>regex parse error|unrecognized file type.*)", own=True),
    rule(K.USAGE, "sed", "bad expression", EXACT,
         "sed:", r"^sed: (?:-e expression #\d+, char \d+: |\d+: .*?: |couldn't "
         r"|-: )?(?P<text>(?:unterminated|unknown|extra|unmatched|invalid|expected|missing"
         r"|comments|no previous|command|undefined).*)", own=True),
    rule(K.USAGE, "awk", "bad expression", EXACT,
         "awk:",
         r"^[gm]?awk: (?:cmd\. line:\d+: )?.*(?P<text>syntax error.*|unexpected.*|fatal: .*)", own=True),
    rule(K.USAGE, "find", "bad expression", EXACT,
         "find:", r"^find: (?P<text>(?:unknown predicate|paths must precede|missing argument|invalid).*)"),
    rule(K.USAGE, "jq", "jq error", EXACT, "jq: ", r"^jq: (?:error|\d+ compile error)(?P<text>.*)"),
    rule(K.USAGE, "xargs", "xargs error", TOOL, "xargs:", r"^xargs: (?P<text>(?!.*No such file).*)"),
    rule(K.CRASH, "", "killed", EXACT,
         "Killed|~egmentation fault|~ore dumped|~ut of memory|Bus error|SIGKILL|SIGSEGV|OOMKilled",
         r"(?:^|: )(?:line \d+: +\d+ )?(?P<text>Killed|Segmentation fault|Bus error"
         r"|Aborted \(core dumped\)|.*\(core dumped\))|(?:signal: \d+, )?(?P<text2>SIGKILL"
         r"|SIGSEGV)|(?P<text3>OOMKilled|JavaScript heap out of memory)"),
    rule(K.OTHER, "", "disk full", EXACT, "No space left", r"No space left on device"),
    rule(K.OTHER, "", "invalid input", TOOL, "~nvalid input", r"^(?P<program>[\w-]+): invalid input$"),
    rule(K.PROMPT, "", "no terminal", EXACT,
         "/dev/tty|a terminal|not a tty|not a TTY|~ot a terminal|ioctl|no tty",
         r"(?i)/dev/tty|not a (?:tty|terminal)|a terminal is required|inappropriate ioctl"
         r"|no tty present|TTY device|stdin isn't a terminal|Input is not from a terminal"),
    rule(K.PROMPT, "", "waits for input", TOOL,
         "to continue|[y/N]|[Y/n]|password|Password|Aborted",
         r"^Do you want to continue\? \[Y/n\] Abort|^\[sudo\] password for|a password is required"),
    rule(K.MISSING_COMMAND, "apt-get", "no such package", EXACT,
         "~nable to locate package|~o match for argument|no such package|no installation candidate",
         r"(?:Unable to locate package|No match for argument:"
         r"|no such package\)?:?) ?(?P<subject>\S*)"
         r"|Package '(?P<subject2>[^']+)' has no installation candidate"),
    rule(K.PERMISSION, "apt-get", "lock held", EXACT,
         "lock", r"^E: (?:Could not get lock|Unable to (?:acquire|lock))(?P<text>.*)"),
    rule(K.OTHER, "apt-get", "apt error", TOOL, "E: ", r"^E: (?P<text>.*)"),
    rule(K.OTHER, "sqlite", "sqlite error", EXACT,
         "no such table|no such column|~atabase is locked|syntax error|UNIQUE constraint|"
         "readonly database|disk I/O error|malformed",
         r"(?:^|\b(?:Error|error|OperationalError|IntegrityError|DatabaseError"
         r"|SqliteError)\b.{0,60}?)(?P<text>no such (?:table|column): ?\S+|database is locked"
         r'|near \"[^\"]*\": syntax error|UNIQUE constraint failed.*'
         r"|attempt to write a readonly database|disk I/O error|database disk image is malformed)"),
)

SERVICES: tuple[MessageRule, ...] = (
    rule(K.GIT, "git", "not a repository", EXACT, "not a git repository", r"fatal: not a git repository"),
    rule(K.GIT, "git", "push rejected", EXACT,
         "[rejected]|[remote rejected]", r"! \[(?:remote )?rejected\] .*\((?P<text>[^)]*)"),
    rule(K.GIT, "git", "failed to push", SUMMARY,
         "failed to push some refs", r"^error: failed to push some refs"),
    rule(K.GIT, "git", "unstaged changes", EXACT,
         "unstaged changes|would be overwritten|uncommitted changes",
         r"^error: (?:cannot (?:pull with rebase|rebase): (?P<text>.*)"
         r"|Your local changes .* would be (?P<text2>overwritten by \w+))|^(?:error"
         r"|fatal): (?P<text3>.*(?:unstaged|uncommitted) changes.*)"),
    rule(K.GIT, "git", "merge conflict", EXACT,
         "CONFLICT (|merge conflict|needs merge|unmerged files",
         r"^CONFLICT \((?P<text>[\w/]+)\)|^(?:error|fatal): .*(?P<text2>unmerged files|needs merge"
         r"|merge conflict)"),
    rule(K.GIT, "git", "pathspec", EXACT,
         "did not match any file", r"pathspec '(?P<subject>[^']+)' did not match any file"),
    rule(K.GIT, "git", "unknown revision", EXACT,
         "unknown revision|bad revision|ambiguous argument|~nvalid reference|not a valid ref|bad object",
         r"^(?:fatal|error): (?:ambiguous argument|bad revision|invalid reference:?|bad object"
         r"|Not a valid (?:object|ref)\w*(?: name)?:?) '?(?P<subject>[^':\s]+)"),
    rule(K.GIT, "git", "identity unknown", EXACT,
         "tell me who you are|ident name|~mpty ident",
         r"Please tell me who you are|fatal: (?:unable to auto-detect email|empty ident name)"),
    rule(K.GIT, "git", "dubious ownership", EXACT, "dubious ownership", r"fatal: detected dubious ownership"),
    rule(K.GIT, "git", "index locked", EXACT, "index.lock", r"(?:Unable to create|fatal: .*)'?.*index\.lock"),
    rule(K.GIT, "git", "authentication", EXACT,
         "(publickey)|could not read Username|~uthentication failed|could not read Password",
         r"Permission denied \(publickey|could not read (?:Username|Password)"
         r"|fatal: Authentication failed"),
    rule(K.GIT, "git", "nothing to commit", TOOL,
         "nothing to commit|nothing added to commit|~o changes added",
         r"^(?:nothing to commit|nothing added to commit|no changes added to commit)", sure=False),
    rule(K.EDIT_NOT_APPLIED, "git apply", "patch does not apply", EXACT,
         "patch does not apply|patch failed",
         r"^error: (?:(?P<subject>\S+): patch does not apply|patch failed: (?P<subject2>[^:\s]+))"),
    rule(K.EDIT_NOT_APPLIED, "git apply", "corrupt patch", EXACT,
         "corrupt patch|No valid patches|unrecognized input|patch with only garbage|"
         "patch fragment without",
         r"^error: (?P<text>corrupt patch|No valid patches in input|unrecognized input"
         r"|patch with only garbage|patch fragment without header)"),
    rule(K.EDIT_NOT_APPLIED, "patch", "hunk failed", EXACT,
         "FAILED at|hunks ignored|hunk ignored|hunks FAILED|hunk FAILED",
         r"^Hunk #\d+ (?P<text>FAILED) at|^\d+ out of \d+ hunks? (?P<text2>FAILED|ignored)"),
    rule(K.EDIT_NOT_APPLIED, "patch", "malformed patch", EXACT,
         "patch: ****", r"^patch: \*\*\*\* (?P<text>.*?)(?: at line.*|$)"),
    rule(K.EDIT_NOT_APPLIED, "patch", "file not found", EXACT,
         "find file to patch", r"can't find file to patch"),
    rule(K.EDIT_NOT_APPLIED, "patch", "already applied", EXACT + 1,
         "previously applied", r"Reversed \(or previously applied\) patch detected"),
    rule(K.GIT, "git", "fatal", TOOL, "fatal: ", r"^fatal: (?P<text>.*)"),
    rule(K.OTHER, "gh", "gh error", TOOL,
         "GraphQL: |HTTP 4|gh auth login", r"^(?:GraphQL: (?P<text>.*)|HTTP (?P<error>4\d\d): (?P<text2>.*)"
         r"|.*(?P<text3>gh auth login).*)"),
    rule(K.NETWORK, "docker", "daemon not running", EXACT,
         "Docker daemon|docker daemon", r"Cannot connect to the Docker daemon|Is the docker daemon running"),
    rule(K.BUILD, "docker", "build step failed", TOOL,
         "did not complete successfully|returned a non-zero code|~ailed to solve",
         r"(?P<text>did not complete successfully|returned a non-zero code|failed to solve.*)"),
    rule(K.NETWORK, "docker", "no such image", EXACT,
         "~anifest unknown|~ull access denied|~anifest for|No such container|No such image",
         r"(?:manifest for (?P<subject>\S+) not found|pull access denied for (?P<subject2>[^\s,]+)"
         r"|manifest unknown|No such (?:container|image): (?P<subject3>\S+))"),
    rule(K.OTHER, "docker", "daemon error", TOOL,
         "Error response from daemon", r"Error response from daemon: (?P<text>.*)"),
    rule(K.NETWORK, "docker", "port in use", EXACT,
         "port is already allocated", r"port is already allocated"),
    rule(K.OTHER, "kubectl", "kubectl error", TOOL,
         "Error from server", r"^Error from server \((?P<error>\w+)\): (?P<text>.*)"),
    rule(K.NETWORK, "curl", "curl", EXACT, "curl: (", r"^curl: \((?P<error>\d+)\) (?P<text>[\w ]+)"),
    rule(K.NETWORK, "", "name not resolved", EXACT,
         "~ould not resolve host|~ame or service not known|~emporary failure in name|"
         "getaddrinfo|~odename nor servname|~ailure resolving",
         r"(?i)could not resolve host|name or service not known"
         r"|temporary failure (?:in name resolution|resolving)|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)"
         r"|nodename nor servname"),
    rule(K.NETWORK, "", "connection refused", EXACT,
         "~onnection refused|ECONNREFUSED", r"(?:[Cc]onnection refused|ECONNREFUSED)"),
    rule(K.NETWORK, "", "connection lost", EXACT,
         "~onnection reset|ECONNRESET|~onnection aborted|ETIMEDOUT|~onnection timed out|"
         "~o route to host|~etwork is unreachable",
         r"(?:[Cc]onnection (?:reset|aborted|timed out)|ECONNRESET|ETIMEDOUT|[Nn]o route to host"
         r"|[Nn]etwork is unreachable)"),
    rule(K.NETWORK, "", "certificate", EXACT,
         "CERTIFICATE_VERIFY_FAILED|SSL certificate|certificate has expired|SSLError|"
         "certificate verify|self-signed|self signed",
         r"(?i)CERTIFICATE_VERIFY_FAILED|SSL certificate problem|certificate (?:has expired"
         r"|verify failed)|self[- ]signed certificate|SSLError"),
    rule(K.NETWORK, "", "http error", TOOL,
         "HTTP Error|HTTP error|404 Not Found|403 Forbidden|~equested URL returned error",
         r"(?:HTTP [Ee]rror |returned error: |ERROR )(?P<error>[45]\d\d)\b"),
)

GENERIC: tuple[MessageRule, ...] = (
    rule(K.OTHER, "", "error", LOOSE,
         "~rror|ERROR",
         r"^(?:[\w./-]{1,40}: )?(?:\[?(?:error|Error|ERROR)\]?|npm ERR!|Fatal error|fatal error"
         r"|✘ \[ERROR\])(?:\[\w+\])?:? (?P<text>\S.*)", sure=False),
    rule(K.OTHER, "", "error", LOOSE - 5,
         "~anic|~xception|~ailed|~nable to|~annot ",
         r"^(?:[\w./-]{1,40}: )?(?:Uncaught |Unhandled )?(?P<text>(?:[Pp]anic|[A-Z]\w*Exception"
         r"|[Ff]ailed|FAILED|[Uu]nable to|[Cc]annot)\b.*)", sure=False),
    rule(K.OTHER, "", "error", LOOSE - 10, "~rror", r"(?P<error>[A-Z]\w*Error): (?P<text>.*)", sure=False),
)
# fmt: on
