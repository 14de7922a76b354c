"""Read front matter, and change single fields of it so that everything else stays byte for byte.

Most front matter is plain: a word, a colon, a value. That is read line by line, since a YAML parser takes
a hundred times as long; whatever is not plain goes to ruamel.yaml, and a test holds that both agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import InputError
from archivist.workspace.problems import LintProblem

if TYPE_CHECKING:
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode, Node

_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_TOML = re.compile(r"\ufeff?\+\+\+[ \t]*\r?\n(?:.*\n)*?\+\+\+[ \t]*\r?(?:\n|$)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?: +(.*))?")
_ITEM = re.compile(r"( *)- +(.*)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d\d?-\d\d?[Tt ]")
# A plain scalar starts with a letter and holds nothing that YAML reads in any context.
_PLAIN = re.compile(r"[A-Za-z](?:[^:#\"'\[\]{},&*!|>%@`\\]|:(?=\S)|(?<=\S)#|(?<=\w)'(?=\w))*")
_PLAIN_IN_LIST = re.compile(r"[A-Za-z][A-Za-z0-9_./+ -]*")
_QUOTED = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")
_WORDS = {"true", "false", "null"}
_WIDE = 1 << 20
# More than this is no front matter, or meant to take the machine: it is refused before a parser sees it.
MAX_CHARACTERS = 32 * 1024
MAX_DEPTH = 40
MAX_ALIASES = 16
_QUOTED_PART = re.compile(r"(?<=[\s\[{,:])(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\n]|'')*')")
_NESTED = re.compile(rf"^ *(?:[-?] +){{{MAX_DEPTH},}}", re.MULTILINE)
_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])&[^\s,\[\]{}]")
_ALIAS = re.compile(r"(?:^|[\s\[{,:-])\*[^\s,\[\]{}*]")


class FrontMatter(NamedTuple):
    """The fields at the head of a file and the text below; `body_line` is where that begins, from 1."""

    values: dict[str, object]
    body: str
    body_line: int
    problems: tuple[LintProblem, ...] = ()
    has_any: bool = True


class _FenceSpan(NamedTuple):
    """Where front matter stands in a text: between its fences."""

    start: int
    end: int
    body: int


def read(text: str, name: str) -> FrontMatter:
    """Read what stands between the fences at the head of a text; `name` is the file in the problems.

    Front matter that is no YAML gives the fields that can still be read, and a problem for the others.
    """
    cut = _find_fences(text)
    if cut is None:
        if not _OPEN.match(text):
            return FrontMatter({}, text.removeprefix("\ufeff"), 1, (), has_any=False)
        problem = LintProblem(name, 1, "unclosed", "the front matter is never closed")
        return FrontMatter({}, text.removeprefix("\ufeff"), 1, (problem,), has_any=False)
    head = text[cut.start : cut.end]
    body_line = text.count("\n", 0, cut.body) + 1
    values = read_plain(head) if len(head) <= MAX_CHARACTERS else None
    if values is not None:
        return FrontMatter(values, text[cut.body :], body_line)
    values, problems = _read_yaml(head, name)
    return FrontMatter(values, text[cut.body :], body_line, tuple(problems))


def find_foreign(text: str, name: str) -> LintProblem | None:
    """Return a problem where a file has front matter of another kind, such as the TOML of Hugo."""
    if _TOML.match(text):
        return LintProblem(name, 1, "foreign-front-matter", "the front matter is TOML between `+++`")
    return None


def strip_foreign(text: str) -> str:
    """Return a text without front matter of another kind."""
    return _TOML.sub("", text, count=1)


def _find_fences(text: str) -> _FenceSpan | None:
    opened = _OPEN.match(text)
    closed = _CLOSE.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return None
    end = text.find("\n", closed.start())
    return _FenceSpan(opened.end(), closed.start(), len(text) if end < 0 else end + 1)


def read_plain(head: str) -> dict[str, object] | None:
    """Return the fields of plain front matter; None when only a YAML parser can say what it holds."""
    values: dict[str, object] = {}
    lines = head.split("\n")
    lines.pop()
    last, indent = "", -1
    for line in lines:
        if not line.isprintable():
            return None
        field = _FIELD.fullmatch(line)
        if field is None:
            item = _ITEM.fullmatch(line)
            if item is None or not _accepts_item(values, last, indent, len(item[1])):
                return None
            value = _parse_scalar(item[2].rstrip(" "), _PLAIN)
            if value is None:
                return None
            indent = len(item[1])
            listed = values[last] = values[last] or []
            listed.append(value)  # type: ignore[attr-defined]
            continue
        last, given = field[1], (field[2] or "").rstrip(" ")
        if last in values or last.lower() in _WORDS:
            return None
        indent = -1
        values[last] = None if not given else _parse_value(given)
        if given and values[last] is None:
            return None
    return values


def _accepts_item(values: dict[str, object], last: str, indent: int, found: int) -> bool:
    """Say whether a line `- item` belongs to the field above: it is the first, or stands as its like do."""
    if not last:
        return False
    return values[last] is None if indent < 0 else indent == found


def _parse_value(given: str) -> object | None:
    if given.startswith("[") and given.endswith("]"):
        items = [each.strip(" ") for each in given[1:-1].split(",")] if given[1:-1].strip(" ") else []
        values = [_parse_scalar(each, _PLAIN_IN_LIST) for each in items]
        return None if None in values else values
    return _parse_scalar(given, _PLAIN)


def _parse_scalar(given: str, plain: re.Pattern[str]) -> str | date | None:
    quoted = _QUOTED.fullmatch(given)
    if quoted:
        inside = quoted[1] if quoted[1] is not None else quoted[2]
        # A comma inside quotes would have cut the list in the wrong place.
        return None if plain is _PLAIN_IN_LIST and "," in inside else inside
    if _DATE.fullmatch(given):
        try:
            return date.fromisoformat(given)
        except ValueError:
            return None
    if plain.fullmatch(given) and given.lower() not in _WORDS and not given.endswith((":", " ")):
        return given
    return None


def _read_yaml(head: str, name: str) -> tuple[dict[str, object], list[LintProblem]]:
    problems = _find_tabs(head, name)
    try:
        loaded = load_yaml(head)
    except _BrokenError as broken:
        if broken.rule == "broken-yaml" and problems:
            # The tab is the cause, and its line the place to mend.
            broken.rule = ""
        if broken.rule:
            advice = "write it as a few plain fields" if broken.is_refused else ""
            problems.append(LintProblem(name, broken.line + 2, broken.rule, broken.text, advice))
        if broken.is_refused:
            return {}, problems
        return _salvage_fields(head, name, problems, broken), problems
    if loaded is None:
        return {}, problems
    if not isinstance(loaded, dict):
        problems.append(LintProblem(name, 2, "broken-yaml", "no fields, `name: value`, but something else"))
        return {}, problems
    return loaded, problems


def _find_tabs(head: str, name: str) -> list[LintProblem]:
    return [
        LintProblem(name, number, "tab", "a tab in the indentation")
        for number, line in enumerate(head.split("\n"), 2)
        if "\t" in line[: len(line) - len(line.lstrip())] and line.strip()
    ]


def _salvage_fields(
    head: str, name: str, problems: list[LintProblem], broken: _BrokenError
) -> dict[str, object]:
    """Return what each field says by itself, leaving out those that are broken."""
    values: dict[str, object] = {}
    for line, chunk in _field_chunks(head):
        try:
            loaded = load_yaml(chunk)
        except _BrokenError as error:
            if (line + error.line, error.rule) != (broken.line, broken.rule) and error.rule == "bad-date":
                problems.append(LintProblem(name, line + error.line + 2, error.rule, error.text))
            continue
        if isinstance(loaded, dict):
            for key, value in loaded.items():
                values.setdefault(key, value)
    return values


def _field_chunks(head: str) -> list[tuple[int, str]]:
    """Return the lines of each field: one that starts at the margin, and what is indented below it."""
    chunks: list[tuple[int, str]] = []
    for number, line in enumerate(head.split("\n")):
        if chunks and (not line.strip() or line[0] in " \t-#"):
            chunks[-1] = (chunks[-1][0], f"{chunks[-1][1]}{line}\n")
        elif line.strip():
            chunks.append((number, f"{line}\n"))
    return chunks


class _BrokenError(Exception):
    """What a YAML parser had against a text, with the line from 0."""

    def __init__(self, line: int, rule: str, text: str, *, is_refused: bool = False) -> None:
        super().__init__(text)
        self.line, self.rule, self.text, self.is_refused = line, rule, text, is_refused


def load_yaml(head: str) -> object:
    """Return what YAML holds, by ruamel.yaml alone, in plain types and with texts as keys."""
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    _refuse_excess(head)
    try:
        return _to_plain_types(_parser("safe").load(head))
    except DuplicateKeyError as error:
        told = str(error.problem).split("with value")[0].strip()
        raise _BrokenError(_line(error), "duplicate-key", told) from None
    except MarkedYAMLError as error:
        raise _BrokenError(_line(error), "broken-yaml", f"{error.problem or error.context}") from None
    except YAMLError as error:
        raise _BrokenError(0, "broken-yaml", str(error).splitlines()[0]) from None
    except ValueError as error:
        # A date of the right form that the calendar does not have comes up from Python's own class.
        line = _impossible_date(head)
        rule = "bad-date" if line is not None or _TIME.search(head) else "broken-yaml"
        raise _BrokenError(line or 0, rule, str(error).split(";")[0]) from None
    except (RecursionError, TypeError, LookupError, AttributeError, OverflowError, AssertionError) as error:
        raise _BrokenError(0, "broken-yaml", f"it cannot be read ({type(error).__name__})") from None


def _refuse_excess(head: str) -> None:
    """Refuse what would cost seconds and gigabytes: too long, too deep, or aliases that multiply."""
    reason, line = "", 0
    if len(head) > MAX_CHARACTERS:
        reason = f"the front matter is longer than {MAX_CHARACTERS // 1024} KiB"
    elif (deep := _deep_line(head)) is not None:
        reason, line = f"values are nested deeper than {MAX_DEPTH} levels", deep
    elif _ANCHOR.search(head) and len(aliases := list(_ALIAS.finditer(head))) > MAX_ALIASES:
        reason = f"{len(aliases)} aliases, more than {MAX_ALIASES}"
        line = head.count("\n", 0, aliases[MAX_ALIASES].start())
    if reason:
        raise _BrokenError(line, "broken-yaml", reason, is_refused=True)


def _deep_line(head: str) -> int | None:
    """Return the line, from 0, where values are nested too deep; None where they are not."""
    nested = _NESTED.search(head)
    if nested:
        return head.count("\n", 0, nested.start())
    if head.count("[") + head.count("{") <= MAX_DEPTH:
        return None
    depth = 0
    for number, line in enumerate(_QUOTED_PART.sub("", head).split("\n")):
        for sign in line:
            if sign in "[{":
                depth += 1
            elif sign in "]}" and depth:
                depth -= 1
            if depth > MAX_DEPTH:
                return number
    return None


def _parser(kind: str) -> YAML:
    """Return a parser that says nothing on its own: an anchor that stands twice is no news for the user."""
    from ruamel.yaml import YAML

    parser = YAML(typ=kind, pure=True)
    parser.composer.warn_double_anchors = False
    return parser


def _line(error: object) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return int(mark.line) if mark is not None else 0


def _impossible_date(head: str) -> int | None:
    for number, line in enumerate(head.split("\n")):
        for found in _DATE.findall(line):
            try:
                date.fromisoformat(found)
            except ValueError:
                return number
    return None


def _to_plain_types(value: object) -> object:
    """Return a value in plain types: a moment of midnight is no date, and stays a moment."""
    if isinstance(value, dict):
        return {str(key): _to_plain_types(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_plain_types(each) for each in value]
    return value


def words_of(value: object) -> tuple[str, ...]:
    """Return a list of words, or one text with commas, as words; of anything else none."""
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    if isinstance(value, list):
        return tuple(str(each).strip() for each in value if each is not None and str(each).strip())
    return ()


def day_of(value: object) -> date | None:
    """Return the day that a field names; None when it names none."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value.strip()):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            return None
    return None


# Writing


def quote_text(text: str) -> str:
    """Return a text in double quotes, on one line."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    pieces = []
    for sign in text:
        if sign in '"\\':
            pieces.append("\\" + sign)
        elif sign == "\n":
            pieces.append("\\n")
        elif sign == "\t":
            pieces.append("\\t")
        elif sign.isprintable():
            pieces.append(sign)
        else:
            pieces.append(f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}")
    return '"' + "".join(pieces) + '"'


def quote_if_needed(text: str) -> str:
    """Return a text bare where it may stand so in a list, else in quotes."""
    is_bare = _PLAIN_IN_LIST.fullmatch(text) and text.lower() not in _WORDS and not text.endswith(" ")
    return text if is_bare else quote_text(text)


def format_value(value: object) -> str:
    """Return a value as front matter holds it: on one line, quoted where it must be."""
    if value is None:
        return ""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        is_bare = isinstance(_parse_scalar(value, _PLAIN), str) and not value.startswith(('"', "'"))
        return value if is_bare and value.isprintable() else quote_text(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(quote_if_needed(str(each)) for each in value)}]"
    raise TypeError(f"no value of front matter: {value!r}")


def add_front_matter(text: str, values: Mapping[str, object]) -> str:
    """Return a text that has no front matter with these fields at its head."""
    end = "\r\n" if "\r\n" in text[:1000] else "\n"
    lines = ["---", *(_format_field(key, value) for key, value in values.items()), "---", ""]
    body = text.removeprefix("\ufeff")
    gap = end if body and not body.startswith(("\n", "\r")) else ""
    return end.join(lines) + gap + body


def edit_fields(text: str, changes: Mapping[str, object], name: str) -> str:
    """Return a text with some fields changed or added; comments, order and quotes of the rest stay.

    Raise InputError when the front matter cannot be read, since then it cannot be changed safely.
    """
    cut = _find_fences(text)
    if cut is None:
        return add_front_matter(text, changes)
    head = text[cut.start : cut.end]
    before = _load_fields(head, name)
    changes = {key: value for key, value in changes.items() if before.get(key, ...) != value}
    if not changes:
        return text
    end = "\r\n" if "\r\n" in text[: cut.body] else "\n"
    new = _splice_values(head, changes, end)
    if not _has_fields(new, {**before, **{key: _tuple_to_list(value) for key, value in changes.items()}}):
        new = _dump_yaml(head, changes)
    return text[: cut.start] + new + text[cut.end :]


def rename_fields(text: str, names: Mapping[str, str]) -> str:
    """Return a text whose fields of these names have others; their values and everything else stay."""
    cut = _find_fences(text)
    if cut is None or not names:
        return text
    head = text[cut.start : cut.end]
    node: MappingNode | None = _parser("rt").compose(head)
    keys = [key for key, _ in node.value if str(key.value) in names] if node is not None else []
    for key in reversed(keys):
        start, stop = key.start_mark.index, key.end_mark.index
        head = f"{head[:start]}{names[str(key.value)]}{head[stop:]}"
    return text[: cut.start] + head + text[cut.end :]


def _has_fields(head: str, expected: Mapping[str, object]) -> bool:
    try:
        return _load_fields(head, "") == expected
    except InputError:
        return False


def _tuple_to_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _load_fields(head: str, name: str) -> dict[str, object]:
    try:
        loaded = load_yaml(head)
    except _BrokenError as broken:
        raise InputError(
            f"{name}:{broken.line + 2}: {broken.text}",
            hint="mend the front matter first: archivist workspace lint",
        ) from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InputError(
            f"{name}:2: the front matter has no fields", hint="archivist workspace lint says more"
        )
    return loaded


def _splice_values(head: str, changes: Mapping[str, object], end: str) -> str:
    """Put new values in the place of old ones, and new fields below the last."""
    spans = _value_spans(head)
    missing = [key for key in changes if key not in spans]
    for key in sorted((key for key in changes if key in spans), key=lambda key: -spans[key][0]):
        start, stop, style = spans[key]
        value = changes[key]
        told = quote_text(value) if style == '"' and isinstance(value, str) else format_value(value)
        if style == "'" and isinstance(value, str) and value.isprintable():
            told = "'" + value.replace("'", "''") + "'"
        gap = " " if head[start - 1 : start] == ":" else ""
        head = f"{head[:start]}{gap}{told}{head[stop:]}"
    if head and not head.endswith("\n"):
        head += end
    return head + "".join(f"{_format_field(key, changes[key])}{end}" for key in missing)


def _format_field(key: str, value: object) -> str:
    return f"{key}: {format_value(value)}".rstrip()


def _value_spans(head: str) -> dict[str, tuple[int, int, str]]:
    """Return where the value of each field stands, and how it is quoted."""
    node: MappingNode | None = _parser("rt").compose(head)
    if node is None:
        return {}
    return {str(key.value): _value_span(head, key, value) for key, value in node.value}


def _value_span(head: str, key: Node, value: Node) -> tuple[int, int, str]:
    start, stop = value.start_mark.index, value.end_mark.index
    colon = head.find(":", key.end_mark.index) + 1
    if start == stop:
        start = stop = colon
    elif "\n" in head[colon:start] and not head[colon:start].strip():
        start = colon
    # The end of a block reaches over the line ends and comments behind it: those stay.
    kept = head[start:stop].rstrip()
    while "\n" in kept and kept.rpartition("\n")[2].lstrip().startswith("#"):
        kept = kept.rpartition("\n")[0].rstrip()
    return start, start + len(kept), str(getattr(value, "style", None) or "")


def _dump_yaml(head: str, changes: Mapping[str, object]) -> str:
    """Let ruamel write the whole: for what cannot be put in place, such as a field with an anchor."""
    from io import StringIO

    yaml = _parser("rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDE
    held = yaml.load(head) or {}
    for key, value in changes.items():
        held[key] = _tuple_to_list(value)
    out = StringIO()
    yaml.dump(held, out)
    return out.getvalue()
