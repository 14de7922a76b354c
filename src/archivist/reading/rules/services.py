"""What git, containers and the network say, and the words that any program may use."""

from __future__ import annotations

from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.rules.rule import EXACT, LOOSE, SUMMARY, TOOL, MessageRule, rule

# The rows read as a table: what it means and who says it, its needles, its pattern.
# fmt: off
SERVICES: tuple[MessageRule, ...] = (
    rule(K.GIT, "git", "not a repository", EXACT,
         "not a git repository",
         r"fatal: not a git repository"),
    rule(K.GIT, "git", "push rejected", EXACT,
         "[rejected]|[remote rejected]",
         r"! \[(?:remote )?rejected\] .*\((?P<text>[^)]*)"),
    rule(K.GIT, "git", "failed to push", SUMMARY,
         "failed to push some refs",
         r"^error: failed to push some refs"),
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
         "did not match any file",
         r"pathspec '(?P<subject>[^']+)' did not match any file"),
    rule(K.GIT, "git", "unknown revision", EXACT,
         "unknown revision|bad revision|ambiguous argument|~nvalid reference|not a valid ref|"
         "bad object",
         r"^(?:fatal|error): (?:ambiguous argument|bad revision|invalid reference:?|bad object"
         r"|Not a valid (?:object|ref)\w*(?: name)?:?) '?(?P<subject>[^':\s]+)"),
    rule(K.GIT, "git", "identity unknown", EXACT,
         "tell me who you are|ident name|~mpty ident",
         r"Please tell me who you are|fatal: (?:unable to auto-detect email|empty ident name)"),
    rule(K.GIT, "git", "dubious ownership", EXACT,
         "dubious ownership",
         r"fatal: detected dubious ownership"),
    rule(K.GIT, "git", "index locked", EXACT,
         "index.lock",
         r"(?:Unable to create|fatal: .*)'?.*index\.lock"),
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
         "patch: ****",
         r"^patch: \*\*\*\* (?P<text>.*?)(?: at line.*|$)"),
    rule(K.EDIT_NOT_APPLIED, "patch", "file not found", EXACT,
         "find file to patch",
         r"can't find file to patch"),
    rule(K.EDIT_NOT_APPLIED, "patch", "already applied", EXACT + 1,
         "previously applied",
         r"Reversed \(or previously applied\) patch detected"),
    rule(K.GIT, "git", "fatal", TOOL,
         "fatal: ",
         r"^fatal: (?P<text>.*)"),
    rule(K.OTHER, "gh", "gh error", TOOL,
         "GraphQL: |HTTP 4|gh auth login",
         r"^(?:GraphQL: (?P<text>.*)|HTTP (?P<error>4\d\d): (?P<text2>.*)"
         r"|.*(?P<text3>gh auth login).*)"),
    rule(K.NETWORK, "docker", "daemon not running", EXACT,
         "Docker daemon|docker daemon",
         r"Cannot connect to the Docker daemon|Is the docker daemon running"),
    rule(K.BUILD, "docker", "build step failed", TOOL,
         "did not complete successfully|returned a non-zero code|~ailed to solve",
         r"(?P<text>did not complete successfully|returned a non-zero code|failed to solve.*)"),
    rule(K.NETWORK, "docker", "no such image", EXACT,
         "~anifest unknown|~ull access denied|~anifest for|No such container|No such image",
         r"(?:manifest for (?P<subject>\S+) not found|pull access denied for (?P<subject2>[^\s,]+)"
         r"|manifest unknown|No such (?:container|image): (?P<subject3>\S+))"),
    rule(K.OTHER, "docker", "daemon error", TOOL,
         "Error response from daemon",
         r"Error response from daemon: (?P<text>.*)"),
    rule(K.NETWORK, "docker", "port in use", EXACT,
         "port is already allocated",
         r"port is already allocated"),
    rule(K.OTHER, "kubectl", "kubectl error", TOOL,
         "Error from server",
         r"^Error from server \((?P<error>\w+)\): (?P<text>.*)"),
    rule(K.NETWORK, "curl", "curl", EXACT,
         "curl: (",
         r"^curl: \((?P<error>\d+)\) (?P<text>[\w ]+)"),
    rule(K.NETWORK, "", "name not resolved", EXACT,
         "~ould not resolve host|~ame or service not known|~emporary failure in name|"
         "getaddrinfo|~odename nor servname|~ailure resolving",
         r"(?i)could not resolve host|name or service not known"
         r"|temporary failure (?:in name resolution|resolving)|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)"
         r"|nodename nor servname"),
    rule(K.NETWORK, "", "connection refused", EXACT,
         "~onnection refused|ECONNREFUSED",
         r"(?:[Cc]onnection refused|ECONNREFUSED)"),
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
    rule(K.OTHER, "", "error", LOOSE - 10,
         "~rror",
         r"(?P<error>[A-Z]\w*Error): (?P<text>.*)", sure=False),
)
# fmt: on
