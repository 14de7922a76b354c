"""Read front matter, and change single fields of it so that everything else stays byte for byte.

Values follow YAML 1.2, so `yes` and `12:30` stay text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.errors import InputError
from archivist.files.parse import BrokenYamlError, parse_yaml
from archivist.workspace.topology import LintProblem

_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_TOML = lazy_pattern(r"\A\ufeff?\+\+\+[ \t]*\r?\n(?:.*\n)*?\+\+\+[ \t]*\r?(?:\n|$)")
# The front matter of a file with its fences; group 1 is what is between them.
FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n((?:.*\n)*?)(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)")
_TAB = lazy_pattern(r" *\t[ \t]*\S")
# A line that starts at the margin, and the lines that are indented below it.
_FIELD_CHUNK = lazy_pattern(r"^[^\s#-].*(?:\n(?:[ \t\r#-].*)?(?=\n|\Z))*", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LOOSE_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
# A text needs no quotes when it starts with a letter and has nothing that YAML could read as syntax.
_BARE = lazy_pattern(r"[A-Za-z](?:[^:#\"'\[\]{},&*!|>%@`\\]|:(?=\S)|(?<=\S)#|(?<=\w)'(?=\w))*")
_BARE_IN_LIST = lazy_pattern(r"[A-Za-z][A-Za-z0-9_./+ -]*")
# The value of a field: in quotes, or plain up to a comment and with the lines that are indented below it.
_VALUE = (
    r"(?P<value>[ \t]+\"(?:[^\"\\]|\\.)*\"|[ \t]+'(?:[^']|'')*'|(?:[ \t]+[^\s#](?:[^\n\r#]|(?<=\S)#)*)?"
    r"(?:(?:[ \t]+#.*)?(?:(?:\r?\n[ \t]*(?:#.*)?)*\r?\n(?:[ \t]+[^\s#]|-[ \t]).*)+)?)"
)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class FrontMatter(NamedTuple):
    """The fields at the head of a file and the text below them, which starts at `body_line` (from 1)."""

    values: dict[str, object]
    body: str
    body_line: int
    problems: tuple[LintProblem, ...] = ()
    has_any: bool = True


def read(text: str, name: str) -> FrontMatter:
    """Read the front matter of a text; `name` is the file name in the problems.

    Front matter that is not valid YAML gives the fields that can be read, and a problem for the others.
    """
    fenced = FENCED.match(text)
    if fenced is None:
        body = text.removeprefix("\ufeff")
        if not _OPEN.match(text):
            return FrontMatter({}, body, 1, (), has_any=False)
        problem = LintProblem(name, 1, "unclosed", "the front matter is never closed")
        return FrontMatter({}, body, 1, (problem,), has_any=False)
    head = fenced[1]
    try:
        values, problems = load_yaml(head), _find_tabs(head, name)
    except BrokenYamlError as broken:
        values, problems = _salvage_fields(head, name, broken)
    return FrontMatter(values, text[fenced.end() :], fenced[0].count("\n") + 1, tuple(problems))


def find_foreign(text: str, name: str) -> LintProblem | None:
    """Return a problem where a file has TOML front matter, as Hugo writes it."""
    if _TOML.match(text):
        return LintProblem(name, 1, "foreign-front-matter", "the front matter is TOML between `+++`")
    return None


def strip_foreign(text: str) -> str:
    """Return a text without TOML front matter."""
    return _TOML.sub("", text, count=1)


def _find_tabs(head: str, name: str) -> list[LintProblem]:
    lines = enumerate(head.split("\n"), 2) if "\t" in head else ()
    message = "a tab in the indentation"
    return [LintProblem(name, number, "tab", message) for number, line in lines if _TAB.match(line)]


def _salvage_fields(
    head: str, name: str, broken: BrokenYamlError
) -> tuple[dict[str, object], list[LintProblem]]:
    """Read each field by itself, so that one broken field does not hide the others."""
    problems = _find_tabs(head, name)
    # Where there is a tab, it is the cause: its line is the one to fix.
    if broken.rule != "broken-yaml" or not problems:
        advice = "write it as a few plain fields" if broken.is_refused else ""
        problems.append(LintProblem(name, broken.line + 2, broken.rule, broken.text, advice))
    if broken.is_refused:
        return {}, problems
    values: dict[str, object] = {}
    for chunk in _FIELD_CHUNK.finditer(head):
        first = head.count("\n", 0, chunk.start())
        try:
            values = {**load_yaml(f"{chunk[0]}\n"), **values}
        except BrokenYamlError as error:
            is_reported = (first + error.line, error.rule) == (broken.line, broken.rule)
            if error.rule == "bad-date" and not is_reported:
                problems.append(LintProblem(name, first + error.line + 2, error.rule, error.text))
    return values, problems


def load_yaml(head: str) -> dict[str, object]:
    """Return the fields of a YAML document."""
    values = parse_yaml(head, "the front matter")
    if not isinstance(values, dict | None):
        raise BrokenYamlError("there are no fields `name: value`")
    return values or {}


def words_of(value: object) -> tuple[str, ...]:
    """Return the words of a list, or of a text with commas; empty for any other value."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    if isinstance(value, list):
        return tuple(str(word).strip() for word in value if word is not None and str(word).strip())
    return ()


def day_of(value: object) -> date | None:
    """Return the date of a field, or None when its value is not a date."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, str) and _DATE.fullmatch(value.strip()):
        with suppress(ValueError):
            return date.fromisoformat(value.strip())
    return value if isinstance(value, date) else None


def respell_day(value: object) -> date | None:
    """Return the date of a field that is written without leading zeros or with other marks: 2026-3-1."""
    found = _LOOSE_DATE.fullmatch(value.strip()) if isinstance(value, str) and day_of(value) is None else None
    with suppress(ValueError):
        return date(*map(int, found.groups())) if found else None
    return None


def quote_text(text: str) -> str:
    """Return a text in double quotes, on one line."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    letters = (_ESCAPES.get(each, each if each.isprintable() else f"\\U{ord(each):08x}") for each in text)
    return f'"{"".join(letters)}"'


def quote_if_needed(text: str, bare: re.Pattern[str] = _BARE_IN_LIST) -> str:
    """Return a text as it may appear in a list: in quotes where YAML would read it as something else."""
    is_bare = bare.fullmatch(text) and text.lower() not in ("true", "false", "null") and text[-1] not in ": "
    return text if is_bare and text.isprintable() else quote_text(text)


def format_value(value: object) -> str:
    """Return a value as one line of YAML, in quotes where needed."""
    if value is None:
        return ""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return quote_if_needed(value, _BARE)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {quote_if_needed(str(item))}' for key, item in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(quote_if_needed(str(item)) for item in value)}]"
    raise TypeError(f"front matter cannot hold {value!r}")


def line_end(text: str) -> str:
    """Return how the first line of a text ends."""
    return "\r\n" if text[: text.find("\n") + 1].endswith("\r\n") else "\n"


def add_front_matter(text: str, values: Mapping[str, object]) -> str:
    """Return a text that has no front matter with these fields at its head."""
    end = line_end(text)
    lines = ["---", *(_format_field(key, value) for key, value in values.items()), "---", ""]
    body = text.removeprefix("\ufeff")
    gap = end if body and not body.startswith(("\n", "\r")) else ""
    return end.join(lines) + gap + body


def edit_fields(text: str, changes: Mapping[str, object], name: str) -> str:
    """Return a text with some fields changed or added; comments, order and quotes of the rest stay.

    Raise InputError when the front matter cannot be read, because then it cannot be changed safely.
    """
    fenced = FENCED.match(text)
    if fenced is None:
        return add_front_matter(text, changes)
    head = fenced[1]
    try:
        before = load_yaml(head)
    except BrokenYamlError as broken:
        hint = "fix the front matter first: archivist workspace lint"
        raise InputError(f"{name}:{broken.line + 2}: {broken.text}", hint=hint) from None
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in changes.items()}
    changes = {key: value for key, value in plain.items() if before.get(key, ...) != value}
    if not changes:
        return text
    end = line_end(text)
    new = _splice_values(head, changes, end)
    try:
        is_edited = load_yaml(new) == {**before, **changes}
    except BrokenYamlError:
        is_edited = False
    if not is_edited:
        # A value such as an anchor cannot be replaced in place.
        names = ", ".join(changes)
        raise InputError(f"{name}: cannot change {names}", hint="write the fields as plain `name: value`")
    return text[: fenced.start(1)] + new + text[fenced.end(1) :]


def lower_fields(text: str, known: Collection[str]) -> str:
    """Return a text with known fields in lower case, `Status` as `status`; everything else stays."""
    fenced = FENCED.match(text)
    if fenced is None:
        return text
    head, values = fenced[1], read(text, "").values
    taken = set(values)
    for key in values:
        field = key.strip().lower()
        if field in known and field not in taken:
            taken.add(field)
            form = rf"^(['\"]?){re.escape(key)}\1(?=\s*:)"
            head = re.sub(form, field, head, count=1, flags=re.MULTILINE)
    return text[: fenced.start(1)] + head + text[fenced.end(1) :]


def _format_field(key: str, value: object) -> str:
    return f"{key}: {format_value(value)}".rstrip()


def _splice_values(head: str, changes: Mapping[str, object], end: str) -> str:
    """Replace the values in place, and add new fields below the last one."""
    for key, value in changes.items():
        field = re.search(rf"^(['\"]?){re.escape(key)}\1[ \t]*:{_VALUE}", head, re.MULTILINE)
        if field is None:
            gap = end if head and not head.endswith("\n") else ""
            head += f"{gap}{_format_field(key, value)}{end}"
            continue
        old, start = field["value"].rstrip(), field.start("value")
        written = format_value(value)
        if isinstance(value, str) and old.lstrip().startswith('"'):
            written = quote_text(value)
        elif isinstance(value, str) and old.lstrip().startswith("'") and value.isprintable():
            written = "'" + value.replace("'", "''") + "'"
        head = f"{head[:start]} {written}".rstrip() + head[start + len(old) :]
    return head
