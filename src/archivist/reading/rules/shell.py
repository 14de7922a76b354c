"""What shells and the usual Unix tools say."""

from __future__ import annotations

from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.rules.rule import EXACT, LOOSE, TOOL, MessageRule, rule

# The rows read as a table: what it means and who says it, its needles, its pattern.
# fmt: off
SHELL: tuple[MessageRule, ...] = (
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "~ommand not found",
         r"^(?:\S*sh: |.{0,60}?: line \d+: |\S+: \d+: )(?:line \d+: |\d+: "
         r"|eval: line \d+: )?(?P<subject>[^\s:]+): command not found|^(?:bash|zsh"
         r"|fish): (?:command not found|Unknown command): (?P<subject2>\S+)"),
    rule(K.MISSING_COMMAND, "bash", "command not found", EXACT,
         "not found",
         r"^(?:/bin/|/usr/bin/)?(?:sh|dash|ash|bash): (?:line )?\d*:? ?(?:eval: "
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
         "ENOENT",
         r"spawn (?P<subject>[\w./-]+) ENOENT"),
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
         "~s a directory",
         r"^(?P<program>[\w.-]{1,30}): (?:-r not specified; omitting directory"
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
         "No such file",
         r"^(?:\S*sh|\S+\.sh): (?:line \d+: |\d+: )?(?:cd: |source: "
         r"|\.: )?(?P<subject>[^:\n]+): No such file or directory"),
    rule(K.MISSING_FILE, "bash", "is a directory", EXACT,
         "~s a directory",
         r"^\S*sh: (?:line \d+: )?(?P<subject>[^:\n]+): Is a directory"),
    rule(K.MISSING_FILE, "", "no such file", TOOL,
         "No such file|~annot open",
         r"^['\"`\u2018\u2019\u201c\u201d]?(?P<subject>[^\s'\"`\u2018\u2019:]+)['\"`\u2018\u2019\u2"
         r"01c\u201d]?: No such file or directory|cannot open [`'](?P<subject2>[^']+)' \(No such "
         r"file"),
    rule(K.MISSING_FILE, "", "no such file", LOOSE,
         "No such file|ENOENT",
         r"(?:ENOENT: no such file or directory, \w+ '(?P<subject>[^']+)'"
         r"|No such file or directory(?: \(os error 2\))?(?:: '?(?P<subject2>[^'\n]+))?)", sure=False),
    rule(K.MISSING_FILE, "", "no such file", TOOL,
         "ENOENT",
         r"ENOENT: no such file or directory, \w+ '(?P<subject>[^']+)'"),
    rule(K.MISSING_FILE, "cd", "not a directory", TOOL,
         "~ot a directory",
         r"(?P<subject>[^\s:]+): Not a directory$"),
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
         "grep:",
         r"^[ezf]?grep: (?P<text>(?:Unmatched|Invalid|unmatched|lookbehind|stray|missing"
         r"|repetition|support for the -P|invalid|conflicting).*)", own=True),
    rule(K.USAGE, "rg", "bad pattern", EXACT,
         "regex parse error|~nrecognized file type",
         r"^(?:rg: )?(?P<text>regex parse error|unrecognized file type.*)", own=True),
    rule(K.USAGE, "sed", "bad expression", EXACT,
         "sed:",
         r"^sed: (?:-e expression #\d+, char \d+: |\d+: .*?: |couldn't "
         r"|-: )?(?P<text>(?:unterminated|unknown|extra|unmatched|invalid|expected|missing"
         r"|comments|no previous|command|undefined).*)", own=True),
    rule(K.USAGE, "awk", "bad expression", EXACT,
         "awk:",
         r"^[gm]?awk: (?:cmd\. line:\d+: )?.*(?P<text>syntax error.*|unexpected.*|fatal: .*)", own=True),
    rule(K.USAGE, "find", "bad expression", EXACT,
         "find:",
         r"^find: (?P<text>(?:unknown predicate|paths must precede|missing argument|invalid).*)"),
    rule(K.USAGE, "jq", "jq error", EXACT,
         "jq: ",
         r"^jq: (?:error|\d+ compile error)(?P<text>.*)"),
    rule(K.USAGE, "xargs", "xargs error", TOOL,
         "xargs:",
         r"^xargs: (?P<text>(?!.*No such file).*)"),
    rule(K.CRASH, "", "killed", EXACT,
         "Killed|~egmentation fault|~ore dumped|~ut of memory|Bus error|SIGKILL|SIGSEGV|"
         "OOMKilled",
         r"(?:^|: )(?:line \d+: +\d+ )?(?P<text>Killed|Segmentation fault|Bus error"
         r"|Aborted \(core dumped\)|.*\(core dumped\))|(?:signal: \d+, )?(?P<text2>SIGKILL"
         r"|SIGSEGV)|(?P<text3>OOMKilled|JavaScript heap out of memory)"),
    rule(K.OTHER, "", "disk full", EXACT,
         "No space left",
         r"No space left on device"),
    rule(K.OTHER, "", "invalid input", TOOL,
         "~nvalid input",
         r"^(?P<program>[\w-]+): invalid input$"),
    rule(K.PROMPT, "", "no terminal", EXACT,
         "/dev/tty|a terminal|not a tty|not a TTY|~ot a terminal|ioctl|no tty",
         r"(?i)/dev/tty|not a (?:tty|terminal)|a terminal is required|inappropriate ioctl"
         r"|no tty present|TTY device|stdin isn't a terminal|Input is not from a terminal"),
    rule(K.PROMPT, "", "waits for input", TOOL,
         "to continue|[y/N]|[Y/n]|password|Password|Aborted",
         r"^Do you want to continue\? \[Y/n\] Abort|^\[sudo\] password for|a password is required"),
    rule(K.MISSING_COMMAND, "apt-get", "no such package", EXACT,
         "~nable to locate package|~o match for argument|no such package|"
         "no installation candidate",
         r"(?:Unable to locate package|No match for argument:"
         r"|no such package\)?:?) ?(?P<subject>\S*)"
         r"|Package '(?P<subject2>[^']+)' has no installation candidate"),
    rule(K.PERMISSION, "apt-get", "lock held", EXACT,
         "lock",
         r"^E: (?:Could not get lock|Unable to (?:acquire|lock))(?P<text>.*)"),
    rule(K.OTHER, "apt-get", "apt error", TOOL,
         "E: ",
         r"^E: (?P<text>.*)"),
    rule(K.OTHER, "sqlite", "sqlite error", EXACT,
         "no such table|no such column|~atabase is locked|syntax error|UNIQUE constraint|"
         "readonly database|disk I/O error|malformed",
         r"(?:^|\b(?:Error|error|OperationalError|IntegrityError|DatabaseError"
         r"|SqliteError)\b.{0,60}?)(?P<text>no such (?:table|column): ?\S+|database is locked"
         r'|near \"[^\"]*\": syntax error|UNIQUE constraint failed.*'
         r"|attempt to write a readonly database|disk I/O error|database disk image is malformed)"),
)
# fmt: on
