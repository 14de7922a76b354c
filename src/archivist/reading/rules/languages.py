"""Messages of the tools of Python, Node and the compiled languages. Python exceptions: `signatures`."""

from __future__ import annotations

from archivist.reading.rules import EXACT, LOOSE, SUMMARY, TOLD, TOOL, MessageRule, rule
from archivist.reading.rules import FailureKind as K

# A row reads: what the message means and who prints it; then its needles and its pattern.
# fmt: off
PYTHON: tuple[MessageRule, ...] = (
    rule(K.MISSING_MODULE, "python", "ModuleNotFoundError", EXACT,
         "No module named",
         r"(?:^|.*python[\d.]*: |.*Error(?:: |\()|^ERROR: )No module named "
         r"['\"]?(?P<subject>[\w.-]+)"),
    rule(K.MISSING_MODULE, "python", "ModuleNotFoundError", TOLD,
         "No module named '", r"^(?!E? *\w*Error).*[ (]No module named '(?P<subject>[\w.-]+)'"),
    rule(K.IMPORT_ERROR, "python", "ImportError", TOLD,
         "cannot import name",
         r"(?P<text>cannot import name '\w+' from (?:partially initialized module )?'[\w.]+')"),
    rule(K.MISSING_FILE, "python", "no such file", EXACT,
         "can't open file", r"python[\d.]*: can't open file ['\"]?(?P<subject>[^'\"]+)"),
    rule(K.SYNTAX, "python", "SyntaxError", TOOL,
         "Sorry: |SyntaxError|IndentationError|TabError",
         r"^(?:(?:Sorry: |E +)(?P<error>SyntaxError|IndentationError|TabError)"
         r"|(?P<error2>IndentationError|TabError)): (?P<text>[^(]*)", own=True),
    rule(K.MISSING_FILE, "pytest", "no such file", EXACT,
         "file or directory not found|ERROR: not found",
         r"(?:^|collecting \.\.\. )ERROR: (?:file or directory )?not found: (?P<subject>\S+)"),
    rule(K.USAGE, "pytest", "no tests ran", SUMMARY,
         "no tests ran|NO TESTS RAN", r"^=* ?no tests ran in |^NO TESTS RAN", sure=False),
    rule(K.USAGE, "", "unrecognized arguments", EXACT,
         "unrecognized arguments",
         r"^(?P<program>[\w. -]+): error: unrecognized arguments: (?P<subject>\S+)"),
    rule(K.USAGE, "", "argument error", TOOL,
         ": error: ", r"^(?P<program>[\w.-]+(?: [\w-]+)?): error: (?P<text>.*)"),
    rule(K.USAGE, "", "bad option", EXACT,
         "~o such option|no such option|~o such command",
         r"(?:Error: )?[Nn]o such (?:option|command):? '?(?P<subject>[\w.-]+)"),
    rule(K.USAGE, "", "missing argument", EXACT,
         "~issing argument|~issing option|~issing command|~equires an argument|"
         "required arguments",
         r"^(?:Error|error): (?P<text>Missing (?:argument|option|command).*"
         r"|the following (?:required )?arguments.*|.*requires an argument.*)"),
    rule(K.USAGE, "", "invalid value", TOOL,
         "~nvalid value", r"^(?:Error|error): (?P<text>[Ii]nvalid value .*)"),
    rule(K.TEST_FAILURE, "pytest", "collection error", TOOL,
         "ERROR ", r"^ERROR (?P<subject>\S+\.py)(?:::\S+)?(?: - .*)?$"),
    rule(K.TEST_FAILURE, "pytest", "fixture not found", EXACT,
         "fixture '", r"^E? *fixture '(?P<subject>\w+)' not found"),
    rule(K.CRASH, "pytest", "INTERNALERROR", TOOL,
         "INTERNALERROR", r"^INTERNALERROR> (?P<text>\w[\w.]*(?:Error|Exception)\b.*)"),
    rule(K.TEST_FAILURE, "unittest", "FAILED", SUMMARY,
         "FAILED (", r"^FAILED \((?P<text>(?:failures|errors)=.*)\)"),
    rule(K.CRASH, "python", "Fatal Python error", EXACT,
         "Fatal Python error", r"^Fatal Python error: (?P<text>.*)"),
    rule(K.USAGE, "pip", "bad requirement", EXACT,
         "~nvalid requirement|not a valid editable|no such option",
         r"^ERROR: (?P<text>Invalid requirement|.* is not a valid editable requirement)"),
    rule(K.VERSION_CONFLICT, "pip", "no matching distribution", EXACT,
         "~o matching distribution", r"No matching distribution found for (?P<subject>[\w.\[\]-]+)"),
    rule(K.VERSION_CONFLICT, "pip", "no matching version", TOOL,
         "~ould not find a version",
         r"Could not find a version that satisfies the requirement (?P<subject>[\w.\[\]-]+)"),
    rule(K.VERSION_CONFLICT, "pip", "resolution impossible", EXACT,
         "ResolutionImpossible|conflicting dependencies|Cannot install",
         r"(?P<text>ResolutionImpossible)|Cannot install (?P<subject>[\w.-]+)[^\n]*conflicting"),
    rule(K.VERSION_CONFLICT, "pip", "python version", EXACT,
         "requires a different Python|requires-python|Requires-Python",
         r"(?:Package '?(?P<subject>[\w.-]+)'? requires a different Python"
         r"|requires a different Python version)"),
    rule(K.PERMISSION, "pip", "externally managed", EXACT,
         "externally-managed", r"error: externally-managed-environment"),
    rule(K.BUILD, "pip", "wheel not built", TOOL,
         "~ailed building wheel|~ould not build wheels|~ailed to build",
         r"(?:Failed building wheel for|Could not build wheels for|Failed to build(?! |$)"
         r"|Failed to build installable wheels for) ?(?P<subject>[\w.-]+)?"),
    rule(K.BUILD, "pip", "build failed", LOOSE,
         "subprocess-exited-with-error|metadata-generation-failed",
         r"^(?:\u00d7 |error: |ERROR: )?(?P<text>subprocess-exited-with-error"
         r"|metadata-generation-failed)"),
    rule(K.MISSING_FILE, "pip", "no such file", EXACT,
         "requirements file", r"Could not open requirements file: .*'(?P<subject>[^']+)'"),
    rule(K.MISSING_FILE, "pip", "not a project", EXACT,
         "neither 'setup.py'|not installable",
         r"neither 'setup\.py' nor 'pyproject\.toml' found|is not installable"),
    rule(K.VERSION_CONFLICT, "uv", "no solution", EXACT,
         "No solution found", r"No solution found when resolving"),
)

NODE: tuple[MessageRule, ...] = (
    rule(K.MISSING_MODULE, "node", "module not found", EXACT,
         "Cannot find module|Cannot find package",
         r"(?<!error TS2307: )Cannot find (?:module"
         r"|package) '(?P<subject>(?:@[\w.-]+/)?[^'/.][^'/]*)[^']*'"),
    rule(K.MISSING_FILE, "node", "module not found", EXACT,
         "Cannot find module", r"(?<!error TS2307: )Cannot find module '(?P<subject>[./][^']*)'"),
    rule(K.MISSING_MODULE, "node", "module not found", EXACT,
         "Can't resolve|~ailed to resolve|Could not resolve",
         r"(?:Can't resolve|Failed to resolve (?:import|entry for package)"
         r"|Could not resolve:?) ['\"](?P<subject>[^'\".][^'\"]*)['\"]"),
    rule(K.MISSING_FILE, "node", "module not found", EXACT,
         "Can't resolve|~ailed to resolve|Could not resolve",
         r"(?:Can't resolve|Failed to resolve import"
         r"|Could not resolve:?) ['\"](?P<subject>\.[^'\"]*)['\"]", own=True),
    rule(K.MISSING_MODULE, "tsc", "TS2307", EXACT,
         "TS2307", r"error (?P<error>TS2307): Cannot find module ['\"](?P<subject>[^'\"]+)"),
    rule(K.BUILD, "tsc", "TS", TOOL,
         "error TS", r"error (?P<error>TS\d+): (?P<text>.*)", own=True),
    rule(K.BUILD, "eslint", "lint", TOOL,
         "error  ", r"^\s+\d+:\d+\s+error\s+.*?\s{2,}(?P<subject>[\w@/-]+)$", own=True),
    rule(K.BUILD, "eslint", "lint", SUMMARY,
         "problem|problems", r"^✖ \d+ problems? \([1-9]\d* errors?", own=True),
    rule(K.OTHER, "eslint", "no config", EXACT,
         "ESLint couldn't find|couldn't find the config", r"ESLint couldn't find (?P<text>[^.]*)"),
    rule(K.USAGE, "npm", "missing script", EXACT,
         "~issing script|~cript not found|~ommand \"|Script \"",
         r"(?:[Mm]issing script:?|error: [Ss]cript not found|Couldn't find a script named"
         r"|error Command) [\"']?(?P<subject>[\w:.-]+)[\"']?(?: not found)?"
         r'|error: Script not found \"(?P<subject2>[^\"]+)'),
    rule(K.VERSION_CONFLICT, "npm", "ERESOLVE", EXACT,
         "ERESOLVE", r"ERESOLVE (?:unable|could not|overriding)(?P<text>.*)"),
    rule(K.VERSION_CONFLICT, "npm", "ETARGET", EXACT,
         "No matching version", r"No matching version found for (?P<subject>@?[\w./-]+)"),
    rule(K.VERSION_CONFLICT, "npm", "EBADENGINE", EXACT,
         "EBADENGINE|~nsupported engine|engine \"node\" is incompatible",
         r"npm (?:ERR!|error) .*(?P<text>EBADENGINE|Unsupported engine)"
         r'|The engine \"node\" is incompatible|ERR_PNPM_UNSUPPORTED_ENGINE'),
    rule(K.NETWORK, "npm", "not in registry", EXACT,
         "E404", r"npm (?:ERR!|error) (?:code )?(?P<error>E404)\b.*?(?:'(?P<subject>[^'@]+))?"),
    rule(K.MISSING_FILE, "npm", "no such file", EXACT,
         "npm ERR! code ENOENT|npm error code ENOENT|Could not read package.json",
         r"Could not read (?P<subject>package\.json)|npm (?:ERR!|error) code ENOENT"),
    rule(K.BUILD, "npm", "lifecycle", SUMMARY,
         "npm ERR!|npm error|ELIFECYCLE",
         r"(?:npm (?:ERR!|error)|ELIFECYCLE) (?P<text>(?!A complete log|code 1$|path |command ).*)"),
    rule(K.OTHER, "pnpm", "pnpm error", EXACT + 1,
         "ERR_PNPM_", r"(?P<error>ERR_PNPM_\w+)"),
    rule(K.OTHER, "yarn", "yarn error", TOOL,
         "YN0", r"➤ (?P<error>YN\d+): .*(?:error|couldn't|failed).*"),
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
         "SyntaxError", r"^(?:Uncaught )?SyntaxError: (?P<text>.*)", own=True),
    rule(K.TYPE_ERROR, "node", "TypeError", LOOSE,
         "TypeError", r"^(?:Uncaught )?TypeError: (?P<text>.*)"),
    rule(K.ATTRIBUTE, "node", "ReferenceError", TOOL,
         "ReferenceError", r"^(?:Uncaught )?ReferenceError: (?P<subject>\S+) is not defined"),
    rule(K.NETWORK, "node", "port in use", EXACT,
         "EADDRINUSE|~ddress already in use", r"EADDRINUSE|[Aa]ddress already in use"),
    rule(K.TEST_FAILURE, "jest", "test failed", TOOL,
         "● |✕ ", r"^\s*● (?P<text>.+ \u203a .+)|^ *(?:✕|\u00d7) (?P<text2>.+?)(?: \(?\d+ ?ms\)?)?$"),
    rule(K.TEST_FAILURE, "jest", "test failed", TOOL - 1,
         "FAIL ", r"^ ?FAIL +(?P<subject>\S+\.\w+)"),
    rule(K.TEST_FAILURE, "jest", "test failed", SUMMARY,
         "Tests: |Test Suites: |Test Files ",
         r"^ *(?:Tests|Test Suites|Test Files):? +(?:[^\n]*, )?[1-9]\d* failed"),
    rule(K.TEST_FAILURE, "bun", "test failed", TOOL,
         "(fail)", r"^\(fail\) (?P<text>.*?)(?: \[[\d.]+ms\])?$"),
)

COMPILED: tuple[MessageRule, ...] = (
    rule(K.BUILD, "rustc", "E", TOOL,
         "error[E", r"^error\[(?P<error>E\d+)\]: (?P<text>.*)", own=True),
    rule(K.USAGE, "", "unknown subcommand", EXACT,
         "unrecognized subcommand|~nknown command|no such command|no such subcommand|"
         "not a git command|is not a docker command",
         r"^(?:error|Error):? (?:unrecognized subcommand|[Uu]nknown (?:sub)?command:?"
         r"|no such (?:sub)?command:?) [`'\"]?(?P<subject>[\w:-]+)|^(?P<program>git"
         r"|docker): '(?P<subject2>[\w-]+)' is not a (?:git|docker) command"),
    rule(K.USAGE, "", "unexpected argument", EXACT,
         "unexpected argument|wasn't expected",
         r"^error: (?:unexpected argument|Found argument) '(?P<subject>[^']+)'"),
    rule(K.USAGE, "", "invalid value", EXACT,
         "error: invalid value", r"^error: invalid value '[^']*' for '(?P<subject>[^']+)'"),
    rule(K.USAGE, "", "missing argument", EXACT,
         "required arguments were not provided",
         r"^error: the following required arguments were not provided"),
    rule(K.USAGE, "cargo", "no such target", EXACT,
         "no bin target|no test target|no example target|did not match any packages|"
         "no library targets",
         r"^error: (?:no (?P<error>\w+) target named `(?P<subject>[^`]+)`"
         r"|package ID specification `(?P<subject2>[^`]+)` did not match|no library targets found)"),
    rule(K.MISSING_FILE, "cargo", "no Cargo.toml", EXACT,
         "could not find `Cargo.toml`", r"^error: could not find `(?P<subject>Cargo\.toml)`"),
    rule(K.VERSION_CONFLICT, "cargo", "unresolved dependency", EXACT,
         "failed to select a version|no matching package|requires rustc|"
         "~ailed to load manifest",
         r"^error: (?:failed to select a version for(?: the requirement)? `(?P<subject>[\w-]+)"
         r"|no matching package(?: named `(?P<subject2>[\w-]+))?|.*requires rustc"
         r"|failed to (?:load manifest|parse manifest)(?P<text>.*))"),
    rule(K.BUILD, "cargo", "could not compile", SUMMARY + 1,
         "could not compile", r"^error: could not compile `(?P<subject>[^`]+)`", own=True),
    rule(K.BUILD, "rustc", "error", LOOSE,
         "error: ",
         r"^error: (?P<text>(?:expected|unexpected|mismatched|cannot find|this file contains"
         r"|unknown|linking with|aborting|macro|no rules|format|unclosed|unused"
         r"|environment variable).*)", own=True),
    rule(K.BUILD, "cargo", "build script failed", EXACT,
         "~ailed to run custom build command",
         r"^error: failed to run custom build command for `(?P<subject>[\w-]+)"),
    rule(K.BUILD, "ld", "linking failed", EXACT,
         "linking with|cannot find -l|undefined reference|ld returned",
         r"(?:cannot find -l(?P<subject>[\w-]+)|undefined reference to [`'](?P<subject2>[^'`]+)"
         r"|(?P<text>linking with .* failed)|(?P<text2>ld returned \d+ exit status))"),
    rule(K.TEST_FAILURE, "cargo", "test failed", TOOL,
         "' panicked at|... FAILED",
         r"^thread '(?!main'|tokio)(?P<subject>[^']+)'(?: \(\d+\))? panicked at"
         r"|^test (?P<subject2>\S+)(?: - should panic)? \.\.\. FAILED"),
    rule(K.TEST_FAILURE, "cargo", "test failed", SUMMARY,
         "test result: FAILED|error: test failed", r"^test result: FAILED|^error: (?:doc)?test failed"),
    rule(K.CRASH, "rust", "panic", TOOL,
         "panicked at", r"^thread '(?:main|tokio-runtime-worker)'(?: \(\d+\))? panicked at(?P<text>.*)"),
    rule(K.BUILD, "go", "compile error", TOOL,
         ".go:", r"^(?:vet: )?\.{0,2}/?[\w./-]+\.go:\d+(?::\d+)?: (?P<text>(?!\d).*)", own=True, sure=False),
    rule(K.MISSING_MODULE, "go", "no required module", EXACT,
         "no required module|cannot find package|is not in std|missing go.sum|"
         "cannot find module",
         r"(?:no required module provides package|cannot find package"
         r'|cannot find module providing package) \"?(?P<subject>[\w./-]+)'
         r"|package (?P<subject2>[\w./-]+) is not in (?:std|GOROOT)"
         r"|missing go\.sum entry for (?:module providing package )?(?P<subject3>[\w./-]+)"),
    rule(K.MISSING_FILE, "go", "no go.mod", EXACT,
         "go.mod file not found|go: cannot find main module",
         r"go(?:\.mod file not found|: cannot find main module)"),
    rule(K.TEST_FAILURE, "go", "test failed", TOOL,
         "--- FAIL", r"^\s*--- FAIL: (?P<subject>\S+)"),
    rule(K.TEST_FAILURE, "go", "test failed", SUMMARY,
         "FAIL\t", r"^FAIL\t(?P<text>\S+)"),
    rule(K.CRASH, "go", "panic", EXACT + 1,
         "panic: ", r"^panic: (?P<text>.*)"),
    rule(K.BUILD, "gcc", "compile error", TOOL,
         "error: |fatal error: ",
         r"^[\w./+-]+\.(?:c|cc|cpp|cxx|h|hpp|m|mm|cu):\d+(?::\d+)?: (?:fatal )?error: "
         r"(?P<text>(?!.*No such file).*)", own=True),
    rule(K.MISSING_FILE, "gcc", "missing header", EXACT,
         "fatal error: ", r"fatal error: (?P<subject>[\w./+-]+): No such file or directory"),
    rule(K.BUILD, "javac", "compile error", TOOL,
         ".java:|.kt:|.java[|[ERROR] ",
         r"^(?:\[ERROR\] |e: )?\S*?[\w-]+\.(?:java|kt"
         r"|scala):(?:\[?\d+[,:]?\d*\]?:?) (?:error: )?(?P<text>.*)", own=True),
    rule(K.VERSION_CONFLICT, "maven", "unresolved dependency", EXACT,
         "~ould not resolve dependencies|~ould not find artifact|Could not resolve all|"
         "Could not find ",
         r"(?:Could not (?:find artifact|resolve dependencies for project"
         r"|find) (?P<subject>[\w.-]+:[\w.-]+))|Could not resolve all (?P<text>.*)"),
    rule(K.VERSION_CONFLICT, "maven", "java version", EXACT,
         "~nsupported class file|~elease version|~nvalid target release|~nvalid source release",
         r"(?:Unsupported class file major version|release version \d+ not supported"
         r"|invalid (?:target|source) release)(?P<text>.*)"),
    rule(K.TEST_FAILURE, "maven", "test failed", TOOL,
         "<<< FAIL|<<< ERR|Tests run:",
         r"^(?:\[ERROR\] )?(?P<text>[\w.$]+)(?:\(.*\))? .*<<< (?:FAILURE|ERROR)!"
         r"|^\[ERROR\] Tests run: \d+, (?:Failures: [1-9]|Failures: 0, Errors: [1-9])"),
    rule(K.BUILD, "maven", "BUILD FAILURE", SUMMARY,
         "BUILD FAILURE|BUILD FAILED|Failed to execute goal",
         r"(?:\[(?:INFO|ERROR)\] )?(?:BUILD FAILURE|BUILD FAILED"
         r"|Failed to execute goal (?P<subject>[\w.:-]+))"),
    rule(K.BUILD, "gradle", "task failed", TOOL,
         "Execution failed for task|What went wrong|not found in root project",
         r"Execution failed for task '(?P<subject>[^']+)'|Task '(?P<subject2>[^']+)' not found in"),
    rule(K.CRASH, "java", "exception", TOOL,
         "Exception in thread", r'^Exception in thread \"[^\"]*\" (?P<error>[\w.$]+)(?:: (?P<text>.*))?'),
    rule(K.MISSING_MODULE, "java", "class not found", EXACT,
         "Could not find or load main class", r"Could not find or load main class (?P<subject>\S+)"),
    rule(K.USAGE, "make", "no rule", EXACT,
         "No rule to make target",
         r"^g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'\u2018](?P<subject>[^'\u2019]+)"),
    rule(K.MISSING_FILE, "make", "no makefile", EXACT,
         "~o makefile found", r"^g?make(?:\[\d+\])?: \*\*\* No targets specified and no makefile found"),
    rule(K.SYNTAX, "make", "missing separator", EXACT,
         "missing separator", r"\*\*\* missing separator", own=True),
    rule(K.BUILD, "make", "recipe failed", SUMMARY,
         "make", r"^g?make(?:\[\d+\])?: \*\*\* (?P<text>.*)"),
    rule(K.BUILD, "cmake", "cmake error", TOOL,
         "CMake Error", r"^CMake Error(?: at \S+)?:? ?(?P<text>.*)"),
    rule(K.BUILD, "dotnet", "compile error", TOOL,
         "error CS|error MSB|error NU|error NETSDK",
         r"error (?P<error>(?:CS|MSB|NU|NETSDK)\d+): (?P<text>[^\[]*)", own=True),
)
# fmt: on
