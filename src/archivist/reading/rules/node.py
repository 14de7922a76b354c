"""What Node, its package managers, linters and test runners say."""

from __future__ import annotations

from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.rules.rule import EXACT, LOOSE, SUMMARY, TOOL, MessageRule, rule

# The rows read as a table: what it means and who says it, its needles, its pattern.
# fmt: off
NODE: tuple[MessageRule, ...] = (
    rule(K.MISSING_MODULE, "node", "module not found", EXACT,
         "Cannot find module|Cannot find package",
         r"(?<!error TS2307: )Cannot find (?:module"
         r"|package) '(?P<subject>(?:@[\w.-]+/)?[^'/.][^'/]*)[^']*'"),
    rule(K.MISSING_FILE, "node", "module not found", EXACT,
         "Cannot find module",
         r"(?<!error TS2307: )Cannot find module '(?P<subject>[./][^']*)'"),
    rule(K.MISSING_MODULE, "node", "module not found", EXACT,
         "Can't resolve|~ailed to resolve|Could not resolve",
         r"(?:Can't resolve|Failed to resolve (?:import|entry for package)"
         r"|Could not resolve:?) ['\"](?P<subject>[^'\".][^'\"]*)['\"]"),
    rule(K.MISSING_FILE, "node", "module not found", EXACT,
         "Can't resolve|~ailed to resolve|Could not resolve",
         r"(?:Can't resolve|Failed to resolve import"
         r"|Could not resolve:?) ['\"](?P<subject>\.[^'\"]*)['\"]", own=True),
    rule(K.MISSING_MODULE, "tsc", "TS2307", EXACT,
         "TS2307",
         r"error (?P<error>TS2307): Cannot find module ['\"](?P<subject>[^'\"]+)"),
    rule(K.BUILD, "tsc", "TS", TOOL,
         "error TS",
         r"error (?P<error>TS\d+): (?P<text>.*)", own=True),
    rule(K.BUILD, "eslint", "lint", TOOL,
         "error  ",
         r"^\s+\d+:\d+\s+error\s+.*?\s{2,}(?P<subject>[\w@/-]+)$", own=True),
    rule(K.BUILD, "eslint", "lint", SUMMARY,
         "problem|problems",
         r"^✖ \d+ problems? \([1-9]\d* errors?", own=True),
    rule(K.OTHER, "eslint", "no config", EXACT,
         "ESLint couldn't find|couldn't find the config",
         r"ESLint couldn't find (?P<text>[^.]*)"),
    rule(K.USAGE, "npm", "missing script", EXACT,
         "~issing script|~cript not found|~ommand \"|Script \"",
         r"(?:[Mm]issing script:?|error: [Ss]cript not found|Couldn't find a script named"
         r"|error Command) [\"']?(?P<subject>[\w:.-]+)[\"']?(?: not found)?"
         r'|error: Script not found \"(?P<subject2>[^\"]+)'),
    rule(K.VERSION_CONFLICT, "npm", "ERESOLVE", EXACT,
         "ERESOLVE",
         r"ERESOLVE (?:unable|could not|overriding)(?P<text>.*)"),
    rule(K.VERSION_CONFLICT, "npm", "ETARGET", EXACT,
         "No matching version",
         r"No matching version found for (?P<subject>@?[\w./-]+)"),
    rule(K.VERSION_CONFLICT, "npm", "EBADENGINE", EXACT,
         "EBADENGINE|~nsupported engine|engine \"node\" is incompatible",
         r"npm (?:ERR!|error) .*(?P<text>EBADENGINE|Unsupported engine)"
         r'|The engine \"node\" is incompatible|ERR_PNPM_UNSUPPORTED_ENGINE'),
    rule(K.NETWORK, "npm", "not in registry", EXACT,
         "E404",
         r"npm (?:ERR!|error) (?:code )?(?P<error>E404)\b.*?(?:'(?P<subject>[^'@]+))?"),
    rule(K.MISSING_FILE, "npm", "no such file", EXACT,
         "npm ERR! code ENOENT|npm error code ENOENT|Could not read package.json",
         r"Could not read (?P<subject>package\.json)|npm (?:ERR!|error) code ENOENT"),
    rule(K.BUILD, "npm", "lifecycle", SUMMARY,
         "npm ERR!|npm error|ELIFECYCLE",
         r"(?:npm (?:ERR!|error)|ELIFECYCLE) (?P<text>(?!A complete log|code 1$|path |command ).*)"),
    rule(K.OTHER, "pnpm", "pnpm error", EXACT + 1,
         "ERR_PNPM_",
         r"(?P<error>ERR_PNPM_\w+)"),
    rule(K.OTHER, "yarn", "yarn error", TOOL,
         "YN0",
         r"➤ (?P<error>YN\d+): .*(?:error|couldn't|failed).*"),
    rule(K.USAGE, "yarn", "lockfile", EXACT,
         "lockfile",
         r"(?i)(?:your lockfile needs to be updated|lockfile (?:would have been|had changes)"
         r"|frozen.lockfile)(?P<text>.*)"),
    rule(K.VERSION_CONFLICT, "node", "ERR_REQUIRE_ESM", EXACT,
         "ERR_REQUIRE_ESM|ERR_UNKNOWN_FILE_EXTENSION|ERR_MODULE_NOT_FOUND|ERR_OSSL|"
         "ERR_PACKAGE_PATH",
         r"(?P<error>ERR_REQUIRE_ESM|ERR_UNKNOWN_FILE_EXTENSION|ERR_OSSL_EVP_UNSUPPORTED"
         r"|ERR_PACKAGE_PATH_NOT_EXPORTED)"),
    rule(K.SYNTAX, "", "SyntaxError", TOOL,
         "SyntaxError",
         r"^(?:Uncaught )?SyntaxError: (?P<text>.*)", own=True),
    rule(K.TYPE_ERROR, "node", "TypeError", LOOSE,
         "TypeError",
         r"^(?:Uncaught )?TypeError: (?P<text>.*)"),
    rule(K.ATTRIBUTE, "node", "ReferenceError", TOOL,
         "ReferenceError",
         r"^(?:Uncaught )?ReferenceError: (?P<subject>\S+) is not defined"),
    rule(K.NETWORK, "node", "port in use", EXACT,
         "EADDRINUSE|~ddress already in use",
         r"EADDRINUSE|[Aa]ddress already in use"),
    rule(K.TEST_FAILURE, "jest", "test failed", TOOL,
         "● |✕ ",
         r"^\s*● (?P<text>.+ \u203a .+)|^ *(?:✕|\u00d7) (?P<text2>.+?)(?: \(?\d+ ?ms\)?)?$"),
    rule(K.TEST_FAILURE, "jest", "test failed", TOOL - 1,
         "FAIL ",
         r"^ ?FAIL +(?P<subject>\S+\.\w+)"),
    rule(K.TEST_FAILURE, "jest", "test failed", SUMMARY,
         "Tests: |Test Suites: |Test Files ",
         r"^ *(?:Tests|Test Suites|Test Files):? +(?:[^\n]*, )?[1-9]\d* failed"),
    rule(K.TEST_FAILURE, "bun", "test failed", TOOL,
         "(fail)",
         r"^\(fail\) (?P<text>.*?)(?: \[[\d.]+ms\])?$"),
)
# fmt: on
