"""What compilers and the build tools around them say."""

from __future__ import annotations

from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.rules.rule import EXACT, LOOSE, SUMMARY, TOOL, MessageRule, rule

# The rows read as a table: what it means and who says it, its needles, its pattern.
# fmt: off
COMPILED: tuple[MessageRule, ...] = (
    rule(K.BUILD, "rustc", "E", TOOL,
         "error[E",
         r"^error\[(?P<error>E\d+)\]: (?P<text>.*)", own=True),
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
         "error: invalid value",
         r"^error: invalid value '[^']*' for '(?P<subject>[^']+)'"),
    rule(K.USAGE, "", "missing argument", EXACT,
         "required arguments were not provided",
         r"^error: the following required arguments were not provided"),
    rule(K.USAGE, "cargo", "no such target", EXACT,
         "no bin target|no test target|no example target|did not match any packages|"
         "no library targets",
         r"^error: (?:no (?P<error>\w+) target named `(?P<subject>[^`]+)`"
         r"|package ID specification `(?P<subject2>[^`]+)` did not match|no library targets found)"),
    rule(K.MISSING_FILE, "cargo", "no Cargo.toml", EXACT,
         "could not find `Cargo.toml`",
         r"^error: could not find `(?P<subject>Cargo\.toml)`"),
    rule(K.VERSION_CONFLICT, "cargo", "unresolved dependency", EXACT,
         "failed to select a version|no matching package|requires rustc|"
         "~ailed to load manifest",
         r"^error: (?:failed to select a version for(?: the requirement)? `(?P<subject>[\w-]+)"
         r"|no matching package(?: named `(?P<subject2>[\w-]+))?|.*requires rustc"
         r"|failed to (?:load manifest|parse manifest)(?P<text>.*))"),
    rule(K.BUILD, "cargo", "could not compile", SUMMARY + 1,
         "could not compile",
         r"^error: could not compile `(?P<subject>[^`]+)`", own=True),
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
         "test result: FAILED|error: test failed",
         r"^test result: FAILED|^error: (?:doc)?test failed"),
    rule(K.CRASH, "rust", "panic", TOOL,
         "panicked at",
         r"^thread '(?:main|tokio-runtime-worker)'(?: \(\d+\))? panicked at(?P<text>.*)"),
    rule(K.BUILD, "go", "compile error", TOOL,
         ".go:",
         r"^(?:vet: )?\.{0,2}/?[\w./-]+\.go:\d+(?::\d+)?: (?P<text>(?!\d).*)", own=True, sure=False),
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
         "--- FAIL",
         r"^\s*--- FAIL: (?P<subject>\S+)"),
    rule(K.TEST_FAILURE, "go", "test failed", SUMMARY,
         "FAIL\t",
         r"^FAIL\t(?P<text>\S+)"),
    rule(K.CRASH, "go", "panic", EXACT + 1,
         "panic: ",
         r"^panic: (?P<text>.*)"),
    rule(K.BUILD, "gcc", "compile error", TOOL,
         "error: |fatal error: ",
         r"^[\w./+-]+\.(?:c|cc|cpp|cxx|h|hpp|m|mm|cu):\d+(?::\d+)?: (?:fatal )?error: "
         r"(?P<text>(?!.*No such file).*)", own=True),
    rule(K.MISSING_FILE, "gcc", "missing header", EXACT,
         "fatal error: ",
         r"fatal error: (?P<subject>[\w./+-]+): No such file or directory"),
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
         "Exception in thread",
         r'^Exception in thread \"[^\"]*\" (?P<error>[\w.$]+)(?:: (?P<text>.*))?'),
    rule(K.MISSING_MODULE, "java", "class not found", EXACT,
         "Could not find or load main class",
         r"Could not find or load main class (?P<subject>\S+)"),
    rule(K.USAGE, "make", "no rule", EXACT,
         "No rule to make target",
         r"^g?make(?:\[\d+\])?: \*\*\* No rule to make target [`'\u2018](?P<subject>[^'\u2019]+)"),
    rule(K.MISSING_FILE, "make", "no makefile", EXACT,
         "~o makefile found",
         r"^g?make(?:\[\d+\])?: \*\*\* No targets specified and no makefile found"),
    rule(K.SYNTAX, "make", "missing separator", EXACT,
         "missing separator",
         r"\*\*\* missing separator", own=True),
    rule(K.BUILD, "make", "recipe failed", SUMMARY,
         "make",
         r"^g?make(?:\[\d+\])?: \*\*\* (?P<text>.*)"),
    rule(K.BUILD, "cmake", "cmake error", TOOL,
         "CMake Error",
         r"^CMake Error(?: at \S+)?:? ?(?P<text>.*)"),
    rule(K.BUILD, "dotnet", "compile error", TOOL,
         "error CS|error MSB|error NU|error NETSDK",
         r"error (?P<error>(?:CS|MSB|NU|NETSDK)\d+): (?P<text>[^\[]*)", own=True),
)
# fmt: on
