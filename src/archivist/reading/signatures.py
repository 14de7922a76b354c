"""Reduce error output, tracebacks and test reports to what stays the same when the same thing fails again."""

import re
from collections import Counter
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.evasions import is_bypass
from archivist.reading.rules import EXACT, LONGEST_LINE, LOOSE, RULES, SUMMARY, MessageRule
from archivist.reading.rules import FailureKind as K

_FRAME = lazy_pattern(r'^ *(?:\| )?File "([^"\n]+)", line \d+(?:, in ([^\n]+))?', re.MULTILINE)
_RAISED = lazy_pattern(
    r"^(?:\w+: )?((?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|[a-z]\w*(?:error|Error)|error))(?:: ?(.*))?$"
)
_NAMED = lazy_pattern(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout|NotFound|Conflict)): ?(.*)$"
)
_REPORT = lazy_pattern(
    r"^E {1,8}((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Failed|Timeout|NotFound))(?:: (.*))?$",
    re.MULTILINE,
)
_ASSERT = lazy_pattern(r"^E {1,8}(assert .*)$", re.MULTILINE)
_SUMMARY = lazy_pattern(
    r"^(?:FAILED|ERROR) (\S[^\n]*?)(?: - (?:([\w.]+)(?:: ?([^\n]*))?|([^\n]*)))?$", re.MULTILINE
)
_COUNTS = lazy_pattern(
    r"^(?:=+ )?(?=[^\n]*\b[1-9]\d* (?:failed|errors?)\b)[^\n]*\bin [\d.:hms ()]+s?\)?(?: =+)?$", re.MULTILINE
)
_UNIT_TEST = lazy_pattern(r"^(?:FAIL|ERROR): (\w+) \(", re.MULTILINE)
_HEADING = lazy_pattern(
    r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?([\w./\[\]-]++)[^\n]* _{3,}$", re.MULTILINE
)
# Functions through which an import runs.
_IMPORTING = frozenset((
    "<module>", "import_module", "_call_with_frames_removed", "_gcd_import", "_find_and_load", "exec_module",
    "_find_and_load_unlocked", "_load_unlocked", "_handle_fromlist", "__getattr__", "load_module",
))  # fmt: skip
_LAST_LINES = 12

_MODULE = lazy_pattern(r"No module named ['\"]?([\w.-]+)")
_NAME = lazy_pattern(
    r"cannot import name ['\"]?(\w+)['\"]? from (?:partially initialized module )?['\"]([\w.]+)"
)
_REMOVED = lazy_pattern(
    r"\b(?:was|were|been|is) removed\b|no longer (?:supported|available)|size changed, may indicate"
    r"|compiled using NumPy 1|requires? (?:a newer|at least|version|python)|incompatible (?:with|version)"
)
_MODULE_ATTRIBUTE = lazy_pattern(r"module ['\"]([\w.]+)['\"] has no attribute ['\"](\w+)")
_QUOTED = lazy_pattern(r"['\"`]([^'\"`\n]{1,80})['\"`]")
_REFUSED = lazy_pattern(r"[Cc]onnection refused|ECONNREFUSED|[Aa]ddress already in use")
_TTY = lazy_pattern(r"/dev/tty|Inappropriate ioctl|EOF when reading a line|not a terminal")

_CLASSES = {
    K.MISSING_MODULE: "ModuleNotFoundError DistributionNotFound PackageNotFoundError",
    K.IMPORT_ERROR: "ImportError",
    K.ATTRIBUTE: "AttributeError NameError UnboundLocalError",
    K.TYPE_ERROR: "TypeError",
    K.SYNTAX: "SyntaxError IndentationError TabError",
    K.TEST_FAILURE: "AssertionError Failed",
    K.MISSING_FILE: "FileNotFoundError NotADirectoryError IsADirectoryError",
    K.PERMISSION: "PermissionError",
    K.TIMEOUT: "TimeoutExpired",
    K.VERSION_CONFLICT: "VersionConflict ContextualVersionConflict InvalidVersion",
    K.PROMPT: "EOFError",
    K.CRASH: "MemoryError RecursionError",
    K.NETWORK: "URLError SSLError gaierror ProxyError MaxRetryError HTTPError",
    K.PROVIDER: "RateLimitError OverloadedError APIStatusError APIConnectionError InternalServerError",
    K.USAGE: "UsageError NoSuchOption BadParameter",
    K.VALUE: "ValueError KeyError IndexError StopIteration ZeroDivisionError OverflowError",
}
_BY_CLASS = {name: kind for kind, names in _CLASSES.items() for name in names.split()}
# Classes that libraries raise for code that was written for another version.
_VERSION_CLASSES = frozenset(("AttributeError", "ImportError", "RuntimeError", "ValueError", "TypeError"))
# An error stands at the start or the end of an output; the middle of a long one is not read.
HEAD, TAIL = 16_000, 16_000
_LINES_PER_NEEDLE = 30
_KEY_WORDS = 8
_WORDS = 16

_ANSI = lazy_pattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
# A test that mocha lists: its suite, and on the next line its title.
_LISTED_TEST = lazy_pattern(r"^( {0,8}\d{1,3}\) \S.{0,200})\n {0,24}(\S.{0,200}):$", re.MULTILINE)
# The left side of a frame around a message.
_BORDER = lazy_pattern(r"^[│╷╵] ?", re.MULTILINE)
_WRAPPING = lazy_pattern(r"</?(?:tool_use_error|output|stdout|stderr|error|returncode)>")

# What changes from one occurrence to the next. The order matters: a path must go before its parts.
_INCIDENTAL = lazy_pattern(
    r"\w{2,10}://\S+"
    r"|(?:[A-Za-z]:)?(?:~|\.{1,2})?(?:/[\w.@+=%,~-]+)+/?"
    r"|(?<![\w.-])[\w.-]++/[\w./@+-]+"
    r"|\b0x[0-9a-fA-F]+\b"
    r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b"
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]?[\d:.,+Z-]*"
    r"|\b(?:\d+(?:\.\d+)?\s?(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|ms|us|ns)\s?)+\b"
    r"|\b\d+(?:[.:,-]\d+)*(?:\.?(?:dev|rc|a|b|post)\d*)?\s?(?:ms|s|m|h|sec|seconds|minutes|kB|KB|MB|GB|KiB|MiB|GiB|B|%)?\b"
    r"|\b(?:tmp|temp)[\w-]*\b"
)
_WORD = lazy_pattern(r"[A-Za-z_@$][\w.$@-]*[\w$]|[A-Za-z]")
_STOP_WORDS = frozenset((
    "a", "an", "the", "is", "are", "was", "be", "been", "to", "of", "in", "on", "at", "for", "by", "and",
    "or", "but", "with", "from", "as", "it", "its", "this", "that", "these", "those", "you", "your", "line",
    "lines", "col", "column", "char", "position", "file", "did", "do", "does", "has", "have", "had", "will",
    "would", "can", "could", "should", "must",
))  # fmt: skip
# Of so many lines the first is read, of more the last, if it has so many words.
_FEW_LINES = 12
_SENTENCE = 4
_ERROR_WORD = lazy_pattern(r"fail|FAIL|[Ee]rror|ERROR|fatal|denied|refused|invalid|not found")
# The port that refused a connection or was in use, else the host that could not be resolved.
_ENDPOINT = lazy_pattern(
    r"\bport\W{1,3}(?P<port>\d{2,5})\b"
    r"|(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\]|::|//[\w.-]+|\b(?:to|at|host|address|server):? [\w.-]+)"
    r"(?:'?:|', )(?P<port2>\d{2,5})(?![\w.]\w)"
    r"|(?:resolve host:? |ENOTFOUND |EAI_AGAIN )['\"]?(?P<host>[\w-]+\.[\w.-]*\w)"
)
_ENDPOINT_REACH = 400
_ANNOUNCES = lazy_pattern(r"\b(?:add|run|running|use|using|try|commands?|with|install):$", re.IGNORECASE)
# From here on systems assign ports at random, so another port is not another resource.
_FIRST_RANDOM_PORT = 32_768
_TEMPORARY = lazy_pattern(r"^(?:tmp|temp)[\w.-]*$|[0-9a-f]{8,}|\d{3,}")
# Letters and digits in lower case, everything else a space.
_SEPARATED = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256)
)
# Words of messages that say no more than that something failed.
HOLLOW = frozenset((
    "error", "errors", "failed", "fails", "failing", "failure", "exit", "exited", "code", "status", "script",
    "command", "process", "task", "returned", "found", "one", "more", "non-zero", "unknown", "with",
    "problem", "problems", "warning", "warnings", "test", "tests", "passed",
))  # fmt: skip


class RaisedException(NamedTuple):
    """One reported exception: class, message and line, the frames it passed through, the test it broke."""

    error: str
    message: str
    line: str
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    test: str = ""
    at: int = 0

    @property
    def name(self) -> str:
        """Return the class without its module."""
        return self.error.rsplit(".", 1)[-1]

    @property
    def is_at_import(self) -> bool:
        """Say whether the program was only importing modules."""
        return len(self.files) > 1 and all(
            function in _IMPORTING or "importlib" in file
            for file, function in zip(self.files, self.functions, strict=True)
        )

    @property
    def kind(self) -> K:
        """Return the kind of failure that the class and its message mean."""
        if self.name == "ImportError" and _MODULE.search(self.message):
            return K.MISSING_MODULE
        if _TTY.search(self.message):
            return K.PROMPT
        if self.name in _VERSION_CLASSES and _REMOVED.search(self.message):
            return K.VERSION_CONFLICT
        if self.name == "AttributeError" and _MODULE_ATTRIBUTE.search(self.message) and len(self.files) > 1:
            return K.VERSION_CONFLICT
        if self.name in _BY_CLASS:
            return _BY_CLASS[self.name]
        if any(word in self.name for word in ("Connect", "ReadTimeout")):
            return K.NETWORK
        if "Timeout" in self.name:
            return K.TIMEOUT
        # A database driver raises its own class when its server does not run.
        return K.NETWORK if _REFUSED.search(self.message) else K.OTHER

    @property
    def subject(self) -> str:
        """Return the module, name, file or argument that the message is about."""
        for pattern in (_MODULE, _NAME, _MODULE_ATTRIBUTE):
            match = pattern.search(self.message)
            if match:
                return ".".join(reversed(match.groups())) if pattern is _NAME else ".".join(match.groups())
        quoted = _QUOTED.search(self.message)
        return quoted.group(1) if quoted else ""


def counts_failures(text: str) -> bool:
    """Say whether the last line of a test runner counts failures."""
    return (" failed" in text or " error" in text) and bool(_COUNTS.search(text))


def _from_pytest(text: str) -> RaisedException | None:
    is_reported = "\nE  " in text or text.startswith("E  ")
    is_summed = "FAILED " in text or "ERROR " in text
    if not is_reported and not (is_summed and ("short test summary" in text or counts_failures(text))):
        return None
    named = _SUMMARY.search(text) if is_summed else None
    heading = _HEADING.search(text)
    test = named.group(1) if named else heading.group(1) if heading else ""
    reports = list(_REPORT.finditer(text))
    if "the above exception" in text:
        # An exception during the handling of another one is what the test met; the first is left out.
        reports = [
            report
            for report, later in zip(reports, [*reports[1:], None], strict=True)
            if later is None or "the above exception" not in text[report.end() : later.start()]
        ]
    if reports:
        commonest = Counter(report.groups() for report in reports).most_common(1)[0][0]
        match = next(report for report in reports if report.groups() == commonest)
        error, message = match.group(1), match.group(2) or ""
    elif asserted := _ASSERT.search(text):
        match, error, message = asserted, "AssertionError", asserted.group(1)
    elif named and "::" in named.group(1):
        match, message = named, (named.group(3) or "").removesuffix("...")
        error = named.group(2) or named.group(4) or ""
        if not re.search(r"(?:Error|Exception|Exit|Failed|Timeout)$", error):
            # The line may be cut inside the name of the class.
            start = error.rstrip(".")
            whole = [name for name in _BY_CLASS if len(start) > 2 and name.startswith(start)]
            error = whole[0] if len(whole) == 1 else "AssertionError"
    else:
        return None
    return RaisedException(error, message, match.group(), test=test, at=match.start())


def _from_traceback(text: str) -> RaisedException | None:
    last = text.rfind('  File "')
    if last < 0 or ", line " not in text[last : last + 400]:
        return None
    start = text.rfind("Traceback (most recent call last)", 0, last)
    frames = _FRAME.findall(text, max(start, 0) if start >= 0 else max(0, last - 4000), last + 500)
    files = tuple(file for file, _ in frames)
    functions = tuple(function.rstrip() for _, function in frames)
    test = "".join(_UNIT_TEST.findall(text)[-1:])
    frame, *following = text[last:].split("\n")
    at, seen = last + len(frame) + 1, 0
    for raw in following:
        line = raw.removeprefix("  | ").rstrip()[:600]
        # Indented lines are the source of the frame and its marks.
        if line and not line.startswith((" ", "\t")):
            match = _NAMED.match(line) if seen else _RAISED.match(line)
            if match:
                return RaisedException(match.group(1), match.group(2) or "", line, files, functions, test, at)
            seen += 1
        if seen == _LAST_LINES:
            break
        at += len(raw) + 1
    return RaisedException("Traceback", "".join(functions[-1:]), frame.strip(), files, functions, test, last)


class Signature(NamedTuple):
    """One failure without its instance: who reported it, the error's class, the words that identify it."""

    program: str
    error: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return the short stable name under which the same failure is counted."""
        return ":".join((self.program, self.error, "-".join(self.words[:_KEY_WORDS]))).rstrip(":")


class Clue(NamedTuple):
    """The line of an output that says what went wrong, and what it means."""

    kind: K
    program: str
    error: str
    subject: str
    line: str
    text: str
    rank: int
    at: int
    is_own: bool = False
    is_sure: bool = True
    raised: RaisedException | None = None
    endpoint: str = ""


def signature(program: str, output: str) -> Signature:
    """Reduce the output of a failed program to its signature."""
    text = clean_output(output)
    return clue_signature(program, pick_clue(find_clues(text)) or fallback_clue(text))


def clue_signature(program: str, clue: Clue) -> Signature:
    """Return the signature of what a clue says about a program."""
    reporter = clue.program or program
    words = message_words(clue.text)
    if clue.kind is K.TEST_FAILURE and clue.raised and clue.raised.test:
        test = re.sub(r"\[.*", "", clue.raised.test.rsplit("::", 1)[-1])
        return Signature(reporter, clue.error, (test, *words))
    if clue.subject and clue.kind in (K.MISSING_MODULE, K.MISSING_COMMAND):
        return Signature(reporter, clue.error, (clue.subject.lower(),))
    if clue.subject and clue.kind is K.MISSING_FILE:
        name = clue.subject.strip().rstrip("/").rsplit("/", 1)[-1]
        is_temporary = _TEMPORARY.search(name) and "/tmp" in clue.subject  # noqa: S108
        return Signature(reporter, clue.error, ("<tmp>" if is_temporary else re.sub(r"\d{3,}", "#", name),))
    subject = message_words(clue.subject)
    if not subject and 0 < len(clue.subject) < 3:
        subject = (clue.subject.lower(),)
    return Signature(
        reporter, clue.error, (*subject, *(word for word in words if word not in subject))[:_WORDS]
    )


def message_words(text: str) -> tuple[str, ...]:
    """Return the words of a message that stay the same next time, in order, each once."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(_INCIDENTAL.sub(" ", text[:LONGEST_LINE])):
        word = match.group().lower().rstrip(".-")
        if word not in _STOP_WORDS and (len(word) > 1 or word == "c"):
            found[word] = None
        if len(found) == _WORDS:
            break
    return tuple(found)


def is_telling(error: str) -> bool:
    """Say whether an error says more than that something failed, and how often."""
    return bool({*message_words(error.replace(":", " "))} - HOLLOW)


def says_more(error: str, call: str) -> bool:
    """Say whether an error says more than that this call failed, whatever the version of its program."""
    called = {word.rstrip("0123456789") for word in message_words(call)}
    words = (word for word in message_words(error) if word.rstrip("0123456789") not in called)
    return is_telling(" ".join(words))


def clean_output(output: str) -> str:
    """Return the head and tail of an output as plain text, without colours, progress and wrapping tags."""
    if len(output) > HEAD + TAIL:
        output = f"{output[:HEAD]}\n{output[-TAIL:]}"
    if "\x1b" in output:
        output = _ANSI.sub("", output)
    if "\r" in output:
        output = output.replace("\r\n", "\n").replace("\r", "\n")
    if "│" in output:
        output = _BORDER.sub("", output)
    if ":\n" in output and "1) " in output:
        output = _LISTED_TEST.sub(r"\1 \2:", output)
    return _WRAPPING.sub("", output) if "</" in output else output


def pick_clue(found: list[Clue]) -> Clue | None:
    """Return the clue that a person would quote: the most specific, the first, one that names a subject."""
    return max(
        found,
        # The last three only make the choice the same in every process.
        key=lambda clue: (clue.rank, -clue.at, bool(clue.subject), clue.program, clue.error, clue.subject),
        default=None,
    )


def find_clues(text: str) -> list[Clue]:
    """Return every line that reports a failure."""
    found: list[Clue] = []
    # Only needles whose words the text has are searched for, which saves hundreds of searches.
    present = frozenset(_words_of(text))
    for word in (b"", *(_TRIGGERS & present)):
        for needle, words, rules in _BY_WORD[word]:
            at = text.find(needle) if words <= present else -1
            if at >= 0:
                found += _clues_on_lines(text, at, needle, rules)
    exception = _from_pytest(text) or _from_traceback(text)
    if exception:
        is_test = bool(exception.test) or counts_failures(exception.line)
        found.append(
            Clue(
                kind=exception.kind,
                program="pytest" if exception.kind is K.TEST_FAILURE and is_test else "python",
                error=exception.name,
                subject=exception.subject,
                line=exception.line.strip(),
                text=exception.message,
                rank=EXACT + 5,
                at=exception.at,
                raised=exception,
            )
        )
    # The general rules are only for lines that no other rule knows.
    known = {clue.at for clue in found if not _is_general(clue)}
    clues = [clue for clue in found if not _is_general(clue) or clue.at not in known]
    for index, clue in enumerate(clues):
        # Some messages of the network name the port or host on their next lines.
        near = text[clue.at : clue.at + _ENDPOINT_REACH]
        endpoint = _ENDPOINT.search(near) if clue.kind is K.NETWORK else None
        if endpoint:
            port = endpoint["port"] or endpoint["port2"]
            is_random = not endpoint["host"] and int(port) >= _FIRST_RANDOM_PORT
            clues[index] = clue._replace(endpoint="" if is_random else endpoint["host"] or port)
    return clues


def _is_general(clue: Clue) -> bool:
    return SUMMARY + 1 < clue.rank <= LOOSE and (clue.error == "error" or clue.rank == LOOSE - 10)


def _clues_on_lines(text: str, at: int, needle: str, rules: list[MessageRule]) -> list[Clue]:
    found: list[Clue] = []
    for _ in range(_LINES_PER_NEEDLE):
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[start : min(end, max(at + 200, start + LONGEST_LINE))][-2 * LONGEST_LINE :]
        for rule in rules:
            match = rule.pattern.search(line)
            if match is None:
                continue
            groups = {name: value for name, value in match.groupdict().items() if value}
            subject = next((groups[name] for name in groups if name.startswith("subject")), "")
            found.append(
                Clue(
                    kind=rule.kind,
                    program=rule.program or groups.get("program", "").rsplit("/", 1)[-1].strip(),
                    error=groups.get("error") or groups.get("error2") or rule.error,
                    subject=subject.strip("'\"`"),
                    line=_with_reason(line.strip(), text, end),
                    text=next((groups[name] for name in groups if name.startswith("text")), ""),
                    rank=rule.rank,
                    at=start,
                    is_own=rule.is_own,
                    is_sure=rule.is_sure,
                )
            )
        at = text.find(needle, end)
        if at < 0:
            break
    return found


def _with_reason(line: str, text: str, end: int) -> str:
    """Return a line that announces its reason together with the next one; what to do is no reason."""
    if not line.endswith(":") or _ANNOUNCES.search(line):
        return line
    following = text[end : end + LONGEST_LINE].strip().partition("\n")[0].strip()
    return f"{line} {following}".rstrip()


# A line of a settings file, or of settings that a program prints, is no reason.
_SETTING_LINE = lazy_pattern(r"[ \t]{0,20}(?:\"[\w$@./-]{1,60}\"[ \t]?:|(?:include|exclude|ignored?)[ \t]?:)")


def fallback_clue(text: str) -> Clue:
    """Return the most likely line of an output in which no rule found anything."""
    lines = [
        line.strip()
        for line in text[-4000:].splitlines()
        if re.search(r"[A-Za-z]{2}", line) and not _SETTING_LINE.match(line)
    ]
    # How to get around a protection is not why a call was refused.
    lines = [line for line in lines if not is_bypass(line[:LONGEST_LINE])] or lines
    errors = [line for line in lines if _ERROR_WORD.search(line)]
    # Of a few lines the first says what is wrong, of many the last; a single word says nothing.
    said = [line for line in lines if len(line.split()) >= _SENTENCE and not line.startswith((">", "$"))]
    said = said[:1] if len(lines) <= _FEW_LINES else said[-1:]
    line = (errors[:1] or said or lines[-1:] or [""])[0][:LONGEST_LINE]
    return Clue(K.OTHER, "", "failed", "", line, line, SUMMARY - 10, len(text), is_sure=False)


def _words_of(text: str) -> list[bytes]:
    return text.encode("ascii", "replace").translate(_SEPARATED).split()


def _index_rules() -> dict[bytes, list[tuple[str, frozenset[bytes], list[MessageRule]]]]:
    """Return the needles, each with its words and rules, under a word that an output with it must have."""
    by_needle: dict[str, list[MessageRule]] = {}
    for rule in RULES:
        for needle in rule.needles:
            by_needle.setdefault(needle, []).append(rule)
    found: dict[bytes, list[tuple[str, frozenset[bytes], list[MessageRule]]]] = {b"": []}
    for needle, rules in by_needle.items():
        whole = _words_of(needle)
        if needle.startswith("~"):
            whole = whole[1:]
        # The last word of a needle may be cut off in the middle, so it counts only if there is no other.
        inner = frozenset(word for word in whole[:-1] if len(word) > 1)
        words = inner or frozenset(word for word in whole if len(word) > 1)
        trigger = max(words, key=lambda word: (len(word), word), default=b"")
        found.setdefault(trigger, []).append((needle.removeprefix("~"), words, rules))
    return found


_BY_WORD = _index_rules()
_TRIGGERS = frozenset(_BY_WORD)
