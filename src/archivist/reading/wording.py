"""Word commands, errors and remedies for a reader who has neither the log nor the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.commands import generalise
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.signatures import is_telling

LONGEST_SUMMARY = 200
_LONGEST_COMMAND = 110
_LONGEST_QUOTE = 110
# A web address is the same on every machine; the path of a file is not.
_PATH = lazy_pattern(
    r"\b[A-Za-z][A-Za-z\d+.-]{1,20}://[^/\s][^\s`'\"<>]*|(?<![\w.<])(?:~|/(?!dev/(?:tty|null)))[\w.@+-]*(?:/[\w.@+-]+)+/?"
)
# A redirection that writes no file says nothing about the command.
TO_NO_FILE = lazy_pattern(r"\s?(?:\d?>>?|&>>?)\s?(?:&\d|/dev/(?:null|stdout|stderr))\b")
# A port is the same for every run.
_ID = lazy_pattern(
    r"(?<!\s-[pP] )(?<!\bport )(?<![\w.<=@-])"
    r"(?:#?\d{2,}|[a-z]{1,3}-\d{2,}|[0-9a-f]{8,40}|[0-9a-f-]{36})(?![\w.>-])"
)
# A short number behind these is a version, a time or another setting, and the same in every run.
_SETTING_BEFORE = lazy_pattern(
    r"(?:(?:^|[\s(])(?:use|exec|install|node|python|java|ruby|php|go|jdk|g?timeout|sleep|version|lts|local|global"
    r"|shell)|(?:^|\s)--?(?!(?:pr|mr|issue|id|number|run|job|pid|ticket|build|task|n)\b)[A-Za-z][\w-]{0,30})\s$"
)
_LONGEST_SETTING = 4
# A text in quotes; neither what a shell computes nor a setting is one.
_QUOTED = lazy_pattern(
    r"\"(?!\$\(|[\w\[\].-]{1,30}=[\w./:-]{1,30}\")[^\"]{13,}\"|'(?![\w\[\].-]{1,30}=[\w./:-]{1,30}')[^']{13,}'"
)
_FILE = lazy_pattern(
    r"(?<![\w/<.-])(?:\./)?(?:(?=[\w-]*(?:test|repro))[\w-]++|sample|example|input|tmp[\w-]*)\.\w{2,4}\b"
)
_NEW_BRANCH = lazy_pattern(
    r"(\bgit (?:checkout -[bB]|switch (?:-[cC]|--create)|worktree add -b) )(?!<)[^\s;&]+"
)
# Names that agents give to files which they write for themselves in the project's root.
_SCRATCH = lazy_pattern(
    r"(?:\./)?(?:test|debug|repro|reproduce|fix|final|verify|check|demo|patch|tmp|temp)[\w.-]*$"
)
_OUTSIDE = lazy_pattern(r"/(?:var/)?tmp/[^/]+$|/dev/")
_PLACEHOLDER = lazy_pattern(r"<script>|(?<!\w=)\"…\"|<<'EOF'|…$|<path>")
# Folders of the machine in which no project lies: a path below them means the same to every run.
_HOST_FOLDER = lazy_pattern(
    r"/(?:etc|bin|sbin|lib|lib64|dev|proc|sys|opt|run|boot|usr(?!/(?:local/)?src\b)|System|Library"
    r"|var(?=/(?!tmp\b|folders\b|www\b)))(?:/|$)"
)
_PREFIX = lazy_pattern(
    r"^(?:E {1,8}|collecting \.\.\. |(?:/[\w.-]+)+/python[\d.]*: |\S*\bbash: line \d+: |(?:/bin/)?bash: "
    r"|\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z? |> |\* |!\s+)"
)
_ERROR_CLASS = lazy_pattern(r"(?:\w+\.)*([A-Z]\w+:) ")
_ASKING = lazy_pattern(
    r"\b(?:must|should|use|run|try|set|pass|call|install|define|specify|please)\b", re.IGNORECASE
)
_OWN_MARKS = str.maketrans({"`": "'", **dict.fromkeys("“”„‟❝❞〝〞〟\uff02«»", '"')})
_OWN_COUNT = lazy_pattern(r"[(\[](?=\s{0,8}(?:seen\b|(?:helped|worked) in\b|\d{1,6} of \d))", re.IGNORECASE)
_WITH_ERROR = lazy_pattern(r" with “([^“”]*)”")
_BRACKETS = {"(": ")", "[": "]"}
_LOCATION = lazy_pattern(r" ?\((?:/|[A-Za-z]:\\)[^)]{0,400}\)|, line \d+")


def mask_command(text: str) -> str:
    """Return a command with placeholders for numbers, scratch files and long texts."""
    text = _QUOTED.sub('"…"', without_paths(TO_NO_FILE.sub("", text)))
    return _NEW_BRANCH.sub(r"\1<branch>", _FILE.sub("<file>", _ID.sub(_mask_id, text)))


def _mask_id(found: re.Match[str]) -> str:
    is_short = found[0].isdigit() and len(found[0]) <= _LONGEST_SETTING
    before = found.string[max(0, found.start() - 40) : found.start()]
    return found[0] if is_short and _SETTING_BEFORE.search(before) else "<id>"


def general_command(command: str) -> str:
    """Return the program, subcommands and flags of a command, without the arguments of this one call."""
    return mask_command(generalise(command))


def is_informative(command: str) -> bool:
    """Say whether a generalised command still says something to another run."""
    return 0 < len(command) <= _LONGEST_COMMAND and not _PLACEHOLDER.search(command)


def without_paths(text: str) -> str:
    """Replace absolute paths by what follows the project's folder."""
    if "/" not in text:
        return text
    return _PATH.sub(lambda found: found[0] if "://" in found[0] else relative_path(found[0]), text)


def relative_path(path: str) -> str:
    """Return a path relative to the project's folder, wherever that is. A path of the system stays."""
    path = path.removeprefix("./")
    # A hidden file of the user's own is the same for every project.
    if not path.startswith(("/", "~")) or path.startswith("~/.") or _HOST_FOLDER.match(path):
        return path
    parts = [part for part in path.split("/") if part]
    if parts[:1] in (["home"], ["Users"]):
        return "/".join(parts[4:] if len(parts) > 5 else parts[-1:])
    if parts[:1] in (["tmp"], ["var"], ["private"]):
        return "/".join(parts[-2:])
    return "/".join(parts[1:] if len(parts) > 1 else parts)


def tells_paths_truly(told: str, ran: str) -> bool:
    """Say whether no path of what ran is told as another one.

    What lies below another machine's home or in /tmp has no name that is true for the next run.
    """
    # `//web` is a target of Bazel.
    for path in dict.fromkeys(found[0] for found in _PATH.finditer(ran) if "//" not in found[0]):
        short = relative_path(path).rstrip("/")
        is_same = short == path.rstrip("/") or path in told
        if not is_same and re.search(rf"(?<![\w./-]){re.escape(short)}(?![\w-])", told):
            return False
    return True


def is_scratch(path: str) -> bool:
    """Say whether a file is one that the agent made for itself. A folder below /tmp can be a project."""
    return bool(_OUTSIDE.match(path) or _SCRATCH.match(path))


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def differing_words(old: str, new: str) -> tuple[str, str]:
    """Return the words in which two lines differ, at least whole names."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    while start and re.match(r"[\w.='\"]", old[start - 1]):
        start -= 1
    while end and re.match(r"[\w.='\"]", old[len(old) - end]):
        end -= 1
    return old[start : len(old) - end].strip(), new[start : len(new) - end].strip()


_BACKTICKS = lazy_pattern(r"`+")


def code(text: str) -> str:
    """Set a command or name as code, as Markdown does one with backticks in it: none ends the quotation."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    mark = "`" * (longest + 1)
    return f"{mark} {text} {mark}" if longest else f"`{text}`"


def format_list(items: Sequence[str], *, most: int = 8) -> str:
    """Return items as a sentence lists them."""
    shown = list(items[:most])
    if len(items) > most:
        shown = [*shown[:-1], "others"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def format_run_count(runs: int) -> str:
    """Return a number of runs in words."""
    return f"{runs} {'run' if runs == 1 else 'runs'}"


def clip_words(text: str, longest: int = LONGEST_SUMMARY) -> str:
    """Cut a text at a word, and leave no backtick open."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    text = text[: longest - 1].rsplit(" ", 1)[0].rstrip(",;:( ")
    if text.count("`") % 2:
        text = text[: text.rindex("`")].rstrip(",;:( ")
    return f"{text}…"


def quote_error(line: str, longest: int = _LONGEST_QUOTE) -> str:
    """Return an error line as a person would quote it, without paths of the machine or what to install."""
    from archivist.reading.printed_offers import without_offers

    line = without_offers(_LOCATION.sub("", line))
    for _ in range(3):
        line = _PREFIX.sub("", line)
    line = re.sub(r"^(?:(?:error|Error|ERROR|fatal):|\d{1,3}\)) ", "", without_paths(line).strip()).strip()
    if len(line) > longest:
        # The end of a message often says what to do: what stands before that is cut instead.
        kind = _ERROR_CLASS.match(line)
        asking = next((part for part in line.split(". ")[1:] if _ASKING.search(part)), "")
        line = f"{kind[1] if kind else '…'} {asking}" if asking else line
    return as_quotation(clip_words(line, longest)).rstrip(". ")


def as_quotation(text: str) -> str:
    """Return words of a program so that they cannot end their quotation and go on in ours.

    Backticks, curly quotes and counts in brackets are marks of our own; a bracket without its other half
    would close or open one of ours.
    """
    text = _OWN_COUNT.sub("", text.translate(_OWN_MARKS))
    kept = list(text)
    opened: list[int] = []
    for at, character in enumerate(text):
        if character in _BRACKETS:
            opened.append(at)
        elif character in _BRACKETS.values():
            if opened and _BRACKETS[text[opened[-1]]] == character:
                opened.pop()
            else:
                kept[at] = ""
    for at in opened:
        kept[at] = ""
    return "".join(kept)


def format_rule(condition: str, action: str) -> str:
    """Write a rule as people and models read it; that something “failed” tells no case from another."""
    condition = _WITH_ERROR.sub(lambda said: said[0] if is_telling(said[1]) else "", condition)
    return f"IF {clip_words(condition, 160)} THEN {clip_words(action, 200)}"


def tags(*words: str) -> tuple[str, ...]:
    """Return tags in one spelling, without empty ones and duplicates."""
    found = (re.sub(r"[^\w.+-]+", "-", word.strip().lower()).strip("-.") for word in words)
    return tuple(dict.fromkeys(word for word in found if 1 < len(word) <= 40))


def advice(remedy: Remedy) -> str:
    """Say what to do, as the second half of a sentence."""
    if remedy.way is RemedyKind.EDIT:
        place = "" if remedy.text == "edit" else "in "
        return f"{remedy.text} {place}{format_list([code(file) for file in remedy.files])}"
    if remedy.way is RemedyKind.SAID:
        return remedy.text
    if remedy.way is not RemedyKind.COMMAND:
        # A small model passed over “first `X`” in 4 of 4 briefs, and over “run `X` first” in 2.
        frame = {RemedyKind.PATH: "it is {}", RemedyKind.STEP: "run {} first"}.get(remedy.way, "{}")
        return frame.format(code(remedy.text))
    first, _, rest = remedy.instead.partition(" ")
    if rest and rest == remedy.text:
        # A wrapper that is missing is left out whatever it wraps.
        return f"leave out {code(first)}"
    before = remedy.instead.split()
    gained = [word for word in remedy.text.split() if word not in before]
    # Among the words of one instance the flags that helped are named.
    if "<" in remedy.text and gained and before and all(word.startswith("-") for word in gained):
        return f"add {format_list([code(flag) for flag in gained])}, as in {code(remedy.text)}"
    return f"use {code(remedy.text)}"
