"""Read Python's failure reports: tracebacks, pytest and unittest."""

import re
from collections import Counter
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
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
    r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?([\w./\[\]-]+)[^\n]* _{3,}$", re.MULTILINE
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


def find_exception(text: str) -> RaisedException | None:
    """Return the exception that an output reports, or None."""
    return _from_pytest(text) or _from_traceback(text)


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
