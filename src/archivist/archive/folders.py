"""The files of watched folders: list and read them, and describe each by its front matter and its path.

Links out of a folder are not followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from archivist.errors import InputError, RecordError
from archivist.records import DocumentType, Folder
from archivist.stream.entries import find_references

# A longer file is data, not a text that people wrote.
MAX_FILE_BYTES = 2 * 1024 * 1024
# An editor writes a file in one go; one that changes during three reads is a log.
_TRIES = 3
DEFAULT_IMPORTANCE = 5
# Bounds the time that the YAML parser can take.
_FRONT_CHARACTERS = 16_384
_SHOWN = 60
_NUL = "\x00"
# Folders with code of others, or with generated files.
_PASSED_BY = frozenset(("node_modules", "__pycache__", "vendor"))
_FRONT = re.compile(r"---[ \t]*\n(.*?)(?:\n)?^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATES = (
    re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)[-_.](?P<month>\d\d)[-_.](?P<day>\d\d)(?!\d)"),
    re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)(?!\d)"),
    re.compile(r"(?<!\d)(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d)(?!\d)"),
)
# Pattern of a path → its type; the first that matches.
_TYPES = (
    (re.compile(r"(?:^|/)bank-[^/]*$|(?:^|/)(?:archives?|cycles?|retros?)/"), DocumentType.CYCLE),
    (re.compile(r"(?:^|[/_-])(?:decisions?|adrs?)(?:[/._-]|$)|(?:^|/)adr-?\d"), DocumentType.DECISION),
    (re.compile(r"(?:^|[/_-])(?:lessons?|learnings?)(?:[/._-]|$)"), DocumentType.LESSON),
    (re.compile(r"(?:^|[/_-])research(?:[/._-]|$)"), DocumentType.RESEARCH),
    (re.compile(r"(?:^|[/_-])(?:designs?|specs?|specifications?)(?:[/._-]|$)"), DocumentType.SPEC),
)


class FrontMatterParts(NamedTuple):
    """The front matter and the body of a text; `problem` says why front matter was read as body."""

    fields: Mapping[str, object]
    raw: str
    body: str
    first_line: int
    problem: str = ""


class FileDescription(NamedTuple):
    """The metadata of a file."""

    type: DocumentType
    date: datetime | None
    roles: tuple[str, ...]
    issues: tuple[int, ...]
    tags: tuple[str, ...]
    importance: int
    front: FrontMatterParts
    problems: tuple[str, ...] = ()


class Listing(NamedTuple):
    """The wanted files of a folder, as sources; `unread` are links that are not followed."""

    folder: str
    paths: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def is_whole(self, root: Path) -> bool:
        """Say whether the folder exists and all of it could be listed."""
        return (
            not any(problem.startswith(f"{self.folder}: ") for problem in self.problems)
            and (root / self.folder).is_dir()
        )


class FileText(NamedTuple):
    """A file's bytes and time, or the problem with it."""

    raw: bytes = b""
    time: datetime = datetime.min.replace(tzinfo=UTC)
    problem: str = ""


def list_folder(root: Path, folder: Folder) -> Listing:
    """Return the files of a folder that match its pattern; links out of it become problems."""
    top = root / folder.id
    if not top.is_dir():
        hint = "its texts are kept, archivist archive unwatch removes them"
        return Listing(folder.id, problems=(f"{folder.id}: the folder is gone; {hint}",))
    paths: list[str] = []
    unread: list[str] = []
    problems: list[str] = []

    def note_error(error: OSError) -> None:
        problems.append(f"{folder.id}: cannot be listed: {error.strerror}")

    for place, folders, files in os.walk(top, onerror=note_error):
        folders[:] = sorted(name for name in folders if not is_ignored_folder(name))
        # A link to a folder inside is skipped: its target is listed by itself.
        for path in (Path(place) / name for name in folders):
            if path.is_symlink() and (problem := _link_problem(path, top)):
                below = path.relative_to(top).as_posix()
                problems.append(f"{below if folder.id == '.' else f'{folder.id}/{below}'}: {problem}")
        for name in sorted(files):
            path = Path(place) / name
            below = path.relative_to(top).as_posix()
            if not is_wanted(below, folder.pattern):
                continue
            source = below if folder.id == "." else f"{folder.id}/{below}"
            problem = _link_problem(path, top) if path.is_symlink() else ""
            if problem:
                unread.append(source)
                problems.append(f"{source}: {problem}")
            else:
                paths.append(source)
    return Listing(folder.id, tuple(paths), tuple(unread), tuple(problems))


def read(root: Path, path: str) -> FileText | None:
    """Return a consistent version of a file, or its problem; None when it is gone."""
    for _ in range(_TRIES):
        try:
            found = _read_once(root / path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return FileText(problem=f"cannot be read: {error.strerror}")
        if found is not None:
            return found
    return FileText(problem="changes while it is read; refresh again")


def _read_once(path: Path) -> FileText | None:
    """Read a file through one descriptor; None when it changed meanwhile."""
    # Opening a pipe that nobody writes to would block.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as stream:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return FileText(problem="not a regular file")
        if before.st_size > MAX_FILE_BYTES:
            return FileText(problem=f"{before.st_size:,} bytes, at most {MAX_FILE_BYTES:,}")
        raw = stream.read(MAX_FILE_BYTES + 1)
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(
        raw
    ) != after.st_size:
        return None
    return FileText(raw, datetime.fromtimestamp(int(after.st_mtime), UTC))


def _link_problem(path: Path, top: Path) -> str:
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        return "a link to nothing"
    except (OSError, RuntimeError):
        return "a link in a loop"
    return "" if target.is_relative_to(top.resolve()) else "a link that leaves the folder is not followed"


def validate_pattern(pattern: str) -> str:
    """Return a glob pattern, or raise InputError when it leads out of the folder."""
    parts = pattern.split("/")
    if not pattern.strip() or pattern.startswith("/") or ".." in parts:
        raise InputError(f"pattern {pattern!r} is no path below the folder", hint="for example **/*.md")
    return pattern


def is_wanted(path: str, pattern: str) -> bool:
    """Say whether a path below a folder fits its pattern; hidden ones and those of others' code never do."""
    parts = path.split("/")
    if any(map(is_ignored_folder, parts)):
        return False
    wildcards = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern)
    return (
        re.fullmatch("".join(wildcards.get(piece) or re.escape(piece) for piece in pieces), path) is not None
    )


def is_ignored_folder(name: str) -> bool:
    """Say whether a folder of this name is not looked into."""
    return name.startswith(".") or name in _PASSED_BY


def find_owner(path: str, folders: Iterable[Folder]) -> Folder | None:
    """Return the watched folder of a path: the deepest whose pattern matches."""
    wanting = [folder for folder in folders if is_wanted(path_below(path, folder.id), folder.pattern)]
    return max(wanting, key=lambda folder: len(folder.id), default=None)


def path_below(path: str, folder: str) -> str:
    """Return a path relative to a folder, or a hidden name when it is outside."""
    if folder == ".":
        return path if not path.startswith("/") else "."
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else "."


def decode_text(raw: bytes) -> str:
    """Return a file's text, or raise RecordError when it is not text."""
    if b"\x00" in raw[:65536]:
        raise RecordError("a binary file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8 text (byte {error.start})") from None
    if _NUL in text:
        raise RecordError("a binary file")
    return text


def describe_file(
    source: str,
    text: str,
    *,
    type: DocumentType | None = None,  # noqa: A002
    file_time: datetime | None = None,
) -> FileDescription:
    """Return the metadata of a text: from its front matter, else from its path and its file's time."""
    front = split_front_matter(text)
    fields = front.fields
    problems = [front.problem] if front.problem else []
    # A field that cannot be used is left out; the rest of the file still counts.
    for name, parse, wanted in (
        ("type", _parse_type, f"one of {', '.join(DocumentType)}"),
        ("date", _parse_date, "a date like 2026-02-08"),
        ("created", _parse_date, "a date like 2026-02-08"),
        ("importance", _parse_importance, "a whole number from 1 to 10"),
    ):
        value = fields.get(name)
        if value is not None and parse(value) is None:
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
            problems.append(f"front matter: {name}: {shown} is not {wanted}; left out")
    date = _parse_date(fields.get("date")) or _parse_date(fields.get("created"))
    return FileDescription(
        type=_parse_type(fields.get("type")) or type or guess_type(source),
        date=date or guess_date(source) or file_time,
        roles=_parse_words(fields.get("roles", fields.get("role"))),
        issues=_parse_issues(fields.get("issues", fields.get("issue"))),
        tags=_parse_words(fields.get("tags", fields.get("tag"))),
        importance=_parse_importance(fields.get("importance")) or DEFAULT_IMPORTANCE,
        front=front,
        problems=tuple(problems),
    )


def split_front_matter(text: str) -> FrontMatterParts:
    """Split a text into front matter and body; what cannot be parsed stays in the body."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _FRONT.match(text) if text.startswith("---") else None
    if found is None:
        return FrontMatterParts({}, "", text, 1)
    if len(found[1]) > _FRONT_CHARACTERS:
        return FrontMatterParts(
            {}, "", text, 1, f"front matter of more than {_FRONT_CHARACTERS} characters, read as text"
        )
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        fields = YAML(typ="safe", pure=True).load(found[1])
    except (YAMLError, ValueError, TypeError, RecursionError):
        fields = ""
    fields = {} if fields is None else fields
    if not isinstance(fields, dict):
        # Two horizontal rules look like front matter until they are parsed.
        return FrontMatterParts({}, "", text, 1, "front matter is not YAML, read as text")
    named = {str(name): value for name, value in fields.items()}
    return FrontMatterParts(named, found[1], text[found.end() :], 1 + found[0].count("\n"))


def guess_type(source: str) -> DocumentType:
    """Return the type that a path suggests, by default research."""
    path = source.lower()
    return next((kind for pattern, kind in _TYPES if pattern.search(path)), DocumentType.RESEARCH)


def guess_date(source: str) -> datetime | None:
    """Return the day in a file's name: 2026-02-08, 20260208 or 260208."""
    name = source.rsplit("/", 1)[-1]
    for pattern in _DATES:
        for found in pattern.finditer(name):
            year = int(found["year"])
            year = year if year > 99 else 2000 + year
            try:
                return datetime(year, int(found["month"]), int(found["day"]), tzinfo=UTC)
            except ValueError:
                continue
    return None


def _parse_type(value: object) -> DocumentType | None:
    return DocumentType(value) if isinstance(value, str) and value in list(DocumentType) else None


def _parse_date(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        return _parse_date(datetime.fromisoformat(value.strip())) if isinstance(value, str) else None
    except ValueError:
        return None


def _parse_words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))


def _parse_issues(value: object) -> tuple[int, ...]:
    parts = value if isinstance(value, list) else [value]
    numbers = [part for part in parts if isinstance(part, int) and not isinstance(part, bool) and part > 0]
    texts = [part if part.startswith("#") else f"#{part}" for part in parts if isinstance(part, str)]
    return find_references(*texts, issues=numbers).issues


def _parse_importance(value: object) -> int | None:
    is_weight = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10
    return value if is_weight else None  # type: ignore[return-value]
