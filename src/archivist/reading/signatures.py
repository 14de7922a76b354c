"""Reduce error output to what stays the same when the same thing fails again."""

import re
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.rules import EXACT, LOOSE, SUMMARY, MessageRule
from archivist.reading.rules import FailureKind as K
from archivist.reading.rules.harness import HARNESS, PROVIDER
from archivist.reading.rules.languages import COMPILED, NODE, PYTHON
from archivist.reading.rules.shell import GENERIC, SERVICES, SHELL
from archivist.reading.tracebacks import RaisedException, counts_failures, find_exception

RULES: tuple[MessageRule, ...] = HARNESS + PROVIDER + SHELL + PYTHON + NODE + COMPILED + SERVICES + GENERIC
# An error stands at the start or the end of an output; the middle of a long one is not read.
HEAD, TAIL = 16_000, 16_000
_LONGEST_LINE = 600
_LINES_PER_NEEDLE = 30
_KEY_WORDS = 8
_WORDS = 16

_ANSI = lazy_pattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_WRAPPING = lazy_pattern(r"</?(?:tool_use_error|output|stdout|stderr|error|returncode)>")
_EXIT_LINE = lazy_pattern(r"\A\s*(?:Exit code:? |<returncode>)(-?\d+)[^\n]*(?:\n|\Z)")

# What changes from one occurrence to the next. The order matters: a path must go before its parts.
_INCIDENTAL = lazy_pattern(
    r"\w{2,10}://\S+"
    r"|(?:[A-Za-z]:)?(?:~|\.{1,2})?(?:/[\w.@+=%,~-]+)+/?"
    r"|\b[\w.-]+/[\w./@+-]+"
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
_ERROR_WORD = lazy_pattern(r"fail|FAIL|[Ee]rror|ERROR|fatal|denied|refused|invalid|not found")
# The port that refused a connection or was in use, else the host that could not be resolved.
_ENDPOINT = lazy_pattern(
    r"\bport\W{1,3}(?P<port>\d{2,5})\b"
    r"|(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\]|::|//[\w.-]+|\b(?:to|at|host|address|server):? [\w.-]+)"
    r"(?:'?:|', )(?P<port2>\d{2,5})(?![\w.]\w)"
    r"|(?:resolve host:? |ENOTFOUND |EAI_AGAIN )['\"]?(?P<host>[\w-]+\.[\w.-]*\w)"
)
_ENDPOINT_REACH = 400
# From here on systems assign ports at random, so another port is not another resource.
_FIRST_RANDOM_PORT = 32_768
_TEMPORARY = lazy_pattern(r"^(?:tmp|temp)[\w.-]*$|[0-9a-f]{8,}|\d{3,}")
# Letters and digits in lower case, everything else a space.
_SEPARATED = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256)
)


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


class NeedleRules(NamedTuple):
    """One needle: the words it is made of, and the rules to try on its lines."""

    needle: str
    words: frozenset[bytes]
    rules: tuple[MessageRule, ...]


def signature(program: str, output: str) -> Signature:
    """Reduce the output of a failed program to its signature."""
    text = clean_output(output)
    return clue_signature(program, best_clue(text) or fallback_clue(text))


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
    for match in _WORD.finditer(_INCIDENTAL.sub(" ", text[:_LONGEST_LINE])):
        word = match.group().lower().rstrip(".-")
        if word not in _STOP_WORDS and (len(word) > 1 or word == "c"):
            found[word] = None
        if len(found) == _WORDS:
            break
    return tuple(found)


def clean_output(output: str) -> str:
    """Return the head and tail of an output as plain text, without colours, progress and wrapping tags."""
    if len(output) > HEAD + TAIL:
        output = f"{output[:HEAD]}\n{output[-TAIL:]}"
    if "\x1b" in output:
        output = _ANSI.sub("", output)
    if "\r" in output:
        output = output.replace("\r\n", "\n").replace("\r", "\n")
    return _WRAPPING.sub("", output) if "</" in output else output


def split_exit_line(output: str) -> tuple[int | None, str]:
    """Split off the line in which a harness reports the exit code, if there is one."""
    match = _EXIT_LINE.match(output)
    return (int(match.group(1)), output[match.end() :]) if match else (None, output)


def best_clue(text: str) -> Clue | None:
    """Return the line that a person would quote, or None when nothing reports a failure."""
    return pick_clue(find_clues(text))


def pick_clue(found: list[Clue]) -> Clue | None:
    """Return the best of the clues: the most specific, the first, one that names a subject."""
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
        for entry in _BY_WORD[word]:
            at = text.find(entry.needle) if entry.words <= present else -1
            if at >= 0:
                found += _clues_on_lines(text, at, entry)
    exception = find_exception(text)
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


def _clues_on_lines(text: str, at: int, entry: NeedleRules) -> list[Clue]:
    found: list[Clue] = []
    for _ in range(_LINES_PER_NEEDLE):
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[start : min(end, max(at + 200, start + _LONGEST_LINE))][-2 * _LONGEST_LINE :]
        for rule in entry.rules:
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
                    line=line.strip(),
                    text=next((groups[name] for name in groups if name.startswith("text")), ""),
                    rank=rule.rank,
                    at=start,
                    is_own=rule.is_own,
                    is_sure=rule.is_sure,
                )
            )
        at = text.find(entry.needle, end)
        if at < 0:
            break
    return found


def fallback_clue(text: str) -> Clue:
    """Return the most likely line of an output in which no rule found anything."""
    lines = [line.strip() for line in text[-4000:].splitlines() if re.search(r"[A-Za-z]{2}", line)]
    errors = [line for line in lines if _ERROR_WORD.search(line)]
    line = (errors[:1] or lines[-1:] or [""])[0][:_LONGEST_LINE]
    return Clue(K.OTHER, "", "failed", "", line, line, SUMMARY - 10, len(text), is_sure=False)


def _words_of(text: str) -> list[bytes]:
    return text.encode("ascii", "replace").translate(_SEPARATED).split()


def _index_rules(rules: tuple[MessageRule, ...]) -> dict[bytes, tuple[NeedleRules, ...]]:
    """Return the needles with their rules, each under a word that an output with the needle must have."""
    by_needle: dict[str, list[MessageRule]] = {}
    for rule in rules:
        for needle in rule.needles:
            by_needle.setdefault(needle, []).append(rule)
    found: dict[bytes, list[NeedleRules]] = {b"": []}
    for needle, those in by_needle.items():
        whole = _words_of(needle)
        if needle.startswith("~"):
            whole = whole[1:]
        # The last word of a needle may be cut off in the middle, so it counts only if there is no other.
        inner = frozenset(word for word in whole[:-1] if len(word) > 1)
        words = inner or frozenset(word for word in whole if len(word) > 1)
        trigger = max(words, key=lambda word: (len(word), word), default=b"")
        found.setdefault(trigger, []).append(NeedleRules(needle.removeprefix("~"), words, tuple(those)))
    return {word: tuple(entries) for word, entries in found.items()}


_BY_WORD = _index_rules(RULES)
_TRIGGERS = frozenset(_BY_WORD)
