"""Messages of agent harnesses, editing tools and model providers."""

from __future__ import annotations

from archivist.reading.rules import EXACT, FROM_HARNESS, TOOL, MessageRule, rule
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
         "does not exist",
         r"^(?:<tool_use_error>)?(?:Error: )?(?:File|Path|Directory"
         r"|The path) (?:(?P<subject>\S+) )?does not exist"),
    rule(K.MISSING_FILE, "", "no such file", FROM_HARNESS,
         "does not exist", r"^(?:<tool_use_error>)?(?:Path|Directory) does not exist: (?P<subject>\S+)"),
    rule(K.MISSING_FILE, "", "no such file", EXACT,
         "~ile not found", r"^(?:<tool_use_error>)?(?:Error: )?File not found:? (?P<subject>\S+)"),
    rule(K.MISSING_FILE, "", "is a directory", FROM_HARNESS,
         "EISDIR", r"EISDIR: illegal operation on a directory"),
    rule(K.USAGE, "", "file too large", FROM_HARNESS,
         "exceeds maximum", r"(?:File content|exceeds maximum allowed).*(?:tokens|size|characters)"),
    rule(K.USAGE, "", "invalid input", FROM_HARNESS,
         "InputValidationError", r"InputValidationError\b"),
    rule(K.USAGE, "", "no such tool", FROM_HARNESS,
         "tool", r"(?:No such tool available|Unknown tool)\W+(?P<subject>[\w:.-]+)"),
    rule(K.PERMISSION, "", "not approved", FROM_HARNESS,
         "requires approval|Permission to use",
         r"(?:requires approval|Permission to use \w+ .*(?:denied|has been))"),
    rule(K.TIMEOUT, "", "command timed out", FROM_HARNESS,
         "~imed out|TIMED OUT|timeout",
         r"(?i)(?:command|execution|process|tool call"
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
    rule(K.OTHER, "mcp", "mcp error", TOOL,
         "MCP error", r"MCP error (?P<text>-?\d+:? .*)"),
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
# fmt: on
