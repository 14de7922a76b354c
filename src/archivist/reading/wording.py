"""Say things so that a person understands them without the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from archivist.reading.commands import generalise
from archivist.reading.phrases import mask_command, without_paths
from archivist.reading.remedies import Remedy, RemedyKind

LONGEST_SUMMARY = 200
_LONGEST_SAYING = 110
_PREFIX = re.compile(
    r"^(?:E {1,8}|collecting \.\.\. |(?:/[\w.-]+)+/python[\d.]*: |\S*\bbash: line \d+: |(?:/bin/)?bash: "
    r"|> |\* |!\s+)"
)
_PARENTHESIS = re.compile(r" ?\((?:/|[A-Za-z]:\\)[^)]*\)|, line \d+")


def short_name(project: str) -> str:
    """Return what people call a project: the last part of its name."""
    return project.rstrip("/").rsplit("/", 1)[-1]


def first_sentence(text: str) -> str:
    """Return what an error says, without its class and without advice that follows."""
    return re.sub(r"^\w*(?:Error|Exception|Conflict): ", "", text).split(". ", 1)[0]


def code(text: str) -> str:
    """Set a command or name off as code."""
    return text if "`" in text else f"`{text}`"


def format_list(items: Sequence[str], *, most: int = 8) -> str:
    """Return things as a sentence lists them."""
    shown = list(items[:most])
    if len(items) > most:
        shown = [*shown[:-1], "others"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def format_run_count(runs: int) -> str:
    """Say how many runs."""
    return f"{runs} {'run' if runs == 1 else 'runs'}"


def clip_words(text: str, longest: int = LONGEST_SUMMARY) -> str:
    """Cut a text at a word, leaving no code half open."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    text = text[: longest - 1].rsplit(" ", 1)[0].rstrip(",;:( ")
    if text.count("`") % 2:
        text = text[: text.rindex("`")].rstrip(",;:( ")
    return f"{text}…"


def quote_error(line: str, longest: int = _LONGEST_SAYING) -> str:
    """Return an error's line as a person would quote it, without its machine."""
    line = _PARENTHESIS.sub("", line)
    for _ in range(3):
        line = _PREFIX.sub("", line)
    line = re.sub(r"^(?:error|Error|ERROR|fatal): ", "", without_paths(line)).strip()
    return clip_words(line if line.count("`") % 2 == 0 else line.replace("`", "'"), longest).rstrip(".")


def added_flags(remedy: Remedy) -> tuple[str, ...]:
    """Return the flags that a command gained, when gaining them is all that differs."""
    before, after = remedy.instead.split(), remedy.text.split()
    gained = [word for word in after if word not in before]
    lost = [word for word in before if word not in after]
    is_only = gained and not lost and all(word.startswith("-") for word in gained)
    return tuple(gained) if is_only else ()


def dropped_words(remedy: Remedy) -> tuple[str, ...]:
    """Return the words that a command lost, when losing them is all that differs."""
    before, after = remedy.instead.split(), remedy.text.split()
    if not after or [word for word in before if word in after] != after:
        return ()
    return tuple(dict.fromkeys(word for word in before if word not in after))


def gained_words(remedy: Remedy) -> tuple[str, ...]:
    """Return the assignments and pipes that a command gained before it."""
    return tuple(
        word
        for word in remedy.text.split()
        if word not in remedy.instead.split() and re.match(r"[A-Z_]+=", word)
    )


def advice(remedy: Remedy) -> str:
    """Say what to do, as the second half of a sentence."""
    match remedy.way:
        case RemedyKind.EDIT:
            place = "" if remedy.text == "edit" else "in "
            return f"{remedy.text} {place}{format_list([code(file) for file in remedy.files])}"
        case RemedyKind.PATH:
            return f"it is {code(remedy.text)}"
        case RemedyKind.SAID:
            return remedy.text
        case RemedyKind.INSTALL:
            return code(remedy.text)
        case RemedyKind.STEP:
            return f"first {code(remedy.text)}"
    flags = added_flags(remedy)
    if flags:
        return f"add {format_list([code(flag) for flag in flags])}"
    dropped = " ".join(dropped_words(remedy))
    # More left out than kept is told sooner by what is kept.
    if dropped and len(dropped) <= len(remedy.text):
        return f"leave out {code(dropped)}"
    settings = gained_words(remedy)
    if settings and remedy.instead and remedy.text == f"{' '.join(settings)} {remedy.instead}":
        return f"set {format_list([code(each) for each in settings])}"
    return remedy.text if "`" in remedy.text or " " not in remedy.text else f"use {code(remedy.text)}"


def format_rule(condition: str, action: str) -> str:
    """Write a rule as people and models read it."""
    return f"IF {clip_words(condition, 160)} THEN {clip_words(action, 200)}"


def tags(*words: str) -> tuple[str, ...]:
    """Return tags in one spelling, without empty ones and doubles."""
    found = (re.sub(r"[^\w.+-]+", "-", word.strip().lower()).strip("-.") for word in words)
    return tuple(dict.fromkeys(word for word in found if 1 < len(word) <= 40))


def general_command(command: str) -> str:
    """Return a command as it is named: program, subcommands and flags, without arguments of the instance."""
    return mask_command(generalise(command))


def join_parts(parts: Iterable[str], *, longest: int = LONGEST_SUMMARY) -> str:
    """Join parts by semicolons, those that fit: a long one does not keep out what comes after it."""
    text = ""
    for part in parts:
        longer = f"{text}; {part}" if text else part
        text = longer if len(longer) <= longest else text
    return text
