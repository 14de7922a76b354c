"""The files of watched folders: list and read them, and describe each by its front matter and its path.

Links out of a folder are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from archivist.capture.redaction import clean_text
from archivist.clock import from_text
from archivist.errors import InputError, RecordError
from archivist.files.open import (
    FRESH_NS,
    MissingFileError,
    UnreadableError,
    open_regular,
    real_path,
    refuse_way_out,
)
from archivist.files.parse import parse_yaml
from archivist.records import DocumentType, Folder
from archivist.stream.entries import find_references
from archivist.text import shorten

# A longer file is data, not a text that people wrote.
MAX_FILE_BYTES = 2 * 1024 * 1024
# Bounds the time that the YAML parser can take.
_FRONT_CHARACTERS = 16_384
# Folders with code of others, or with generated files.
_PASSED_BY = frozenset(("node_modules", "__pycache__", "vendor"))
_FRONT = re.compile(r"---[ \t]*\n(.*?)(?:\n)?^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d|\d\d(?=\d{4}(?!\d)))(?P<mark>[-_.]?)(\d\d)(?P=mark)(\d\d)(?!\d)")
# Pattern of a path → its type; the first that matches.
_TYPES = (
    (re.compile(r"(?:^|/)bank-[^/]*$|(?:^|/)(?:archives?|cycles?|retros?)/"), DocumentType.CYCLE),
    (re.compile(r"(?:^|[/_-])(?:decisions?|adrs?)(?:[/._-]|$)|(?:^|/)adr-?\d"), DocumentType.DECISION),
    (re.compile(r"(?:^|[/_-])(?:lessons?|learnings?)(?:[/._-]|$)"), DocumentType.LESSON),
    (re.compile(r"(?:^|[/_-])research(?:[/._-]|$)"), DocumentType.RESEARCH),
    (re.compile(r"(?:^|[/_-])(?:designs?|specs?|specifications?)(?:[/._-]|$)"), DocumentType.SPEC),
)

LINK_OUT = "a link that leaves the folder is not followed"


class FrontMatterParts(NamedTuple):
    """The front matter and the body of a text; `problem` says why front matter was read as body."""

    fields: Mapping[str, object]
    raw: str
    body: str
    first_line: int
    problem: str = ""

    @property
    def abstract(self) -> tuple[str, str]:
        """Return the name that the front matter gives, and its description and tags as a text."""
        named = (self.fields.get(key) for key in ("name", "title"))
        name = next((" ".join(value.split()) for value in named if isinstance(value, str)), "")
        description = self.fields.get("description")
        said = description.strip() if isinstance(description, str) else ""
        tags = ", ".join(_parse_words(self.fields.get("tags", self.fields.get("tag"))))
        return name, "\n\n".join(filter(None, (said, f"Tags: {tags}" if tags else "")))


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
    """The wanted files of a folder, as sources; `unread` are links that are not followed.

    It is whole when the folder exists and all of it could be listed.
    """

    paths: list[str]
    unread: list[str]
    problems: list[str]
    is_whole: bool


class FileText(NamedTuple):
    """A file's text, the digest of its bytes, and its time."""

    text: str
    digest: str
    time: datetime


def list_folder(root: Path, folder: Folder) -> Listing:
    """Return the files of a folder that match its pattern; links out of it become problems."""
    top = root / folder.id
    if not top.is_dir():
        hint = "its texts are kept, archivist archive unwatch removes them"
        return Listing([], [], [f"{folder.id}: the folder is gone; {hint}"], is_whole=False)
    if os.path.realpath(top) != os.path.normpath(real_path(root) / folder.id):
        return Listing([], [], [f"{folder.id}: it is a link now, which is not followed"], is_whole=False)
    listing = Listing([], [], [], is_whole=True)
    errors: list[OSError] = []
    for place, folders, files in os.walk(top, onerror=errors.append):
        folders[:] = sorted(name for name in folders if not is_ignored_folder(name))
        # A link to a folder inside is skipped: its target is listed by itself.
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*links, *sorted(files)):
            path = Path(place) / name
            below = path.relative_to(top).as_posix()
            if name not in links and not is_wanted(below, folder.pattern):
                continue
            source = below if folder.id == "." else f"{folder.id}/{below}"
            problem = _link_problem(path, top) if path.is_symlink() else ""
            if problem:
                listing.problems.append(f"{source}: {problem}")
            if name not in links:
                (listing.unread if problem else listing.paths).append(source)
    failed = [f"{folder.id}: cannot be listed: {error.strerror}" for error in errors]
    return listing._replace(problems=listing.problems + failed, is_whole=not errors)


def folder_state(root: Path, folder: Folder, now: datetime) -> Iterator[tuple[str, int, int, str]]:
    """Yield the wanted files of a folder with their times and sizes, and of fresh ones the digest.

    A second edit within the clock's resolution may leave time and size the same.
    """
    settled_ns = int(now.timestamp() * 1e9) - FRESH_NS
    for path in list_folder(root, folder).paths:
        with suppress(OSError, RecordError):
            status = (root / path).stat()
            changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
            file = read_text(root / path, path) if changed_ns >= settled_ns else None
            yield path, status.st_mtime_ns, status.st_size, file.digest if file else ""


def read_text(path: Path, name: str = "") -> FileText | None:
    """Return a file's text; None when it is gone. RecordError says why it is not read."""
    if clean_text(name) != name:
        # A redacted name would not be found again.
        raise RecordError("its name holds a secret or control characters; rename it")
    try:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            raw = stream.read(MAX_FILE_BYTES + 1)
    except MissingFileError:
        return None
    except UnreadableError as error:
        raise RecordError(error.reason) from None
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror}") from None
    size = max(status.st_size, len(raw))
    if size > MAX_FILE_BYTES:
        raise RecordError(f"{size:,} bytes, at most {MAX_FILE_BYTES:,}")
    time = datetime.fromtimestamp(int(status.st_mtime), UTC)
    return FileText(decode_text(raw), sha256(raw).hexdigest(), time)


def _link_problem(path: Path, top: Path) -> str:
    try:
        path.stat()
        refuse_way_out(path)
    except FileNotFoundError:
        return "a link to nothing"
    except OSError:
        return "a link in a loop"
    except InputError:
        return LINK_OUT
    return "" if real_path(path).is_relative_to(real_path(top)) else LINK_OUT


def validate_pattern(pattern: str) -> str:
    """Return a glob pattern, or raise InputError when it leads out of the folder."""
    if not pattern.strip() or pattern.startswith("/") or ".." in pattern.split("/"):
        raise InputError(f"pattern {pattern!r} is no path below the folder", hint="for example **/*.md")
    return pattern


def is_wanted(path: str, pattern: str) -> bool:
    """Say whether a path below a folder fits its pattern; hidden ones and those of others' code never do."""
    if any(map(is_ignored_folder, path.split("/"))):
        return False
    wildcards = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern)
    expression = "".join(wildcards.get(piece) or re.escape(piece) for piece in pieces)
    return re.fullmatch(expression, path) is not None


def is_ignored_folder(name: str) -> bool:
    """Say whether a folder of this name is not looked into."""
    return name.startswith(".") or name in _PASSED_BY


def find_owner(path: str, folders: Sequence[Folder]) -> Folder | None:
    """Return the watched folder of a path: the deepest whose pattern matches."""
    starts = {folder.id: "" if folder.id == "." else f"{folder.id}/" for folder in folders}
    above = (folder for folder in folders if path.startswith(starts[folder.id]))
    wanting = (each for each in above if is_wanted(path.removeprefix(starts[each.id]), each.pattern))
    return max(wanting, key=lambda folder: len(folder.id), default=None)


def decode_text(raw: bytes) -> str:
    """Return a file's text, or raise RecordError when it is not text."""
    if b"\x00" in raw:
        raise RecordError("a binary file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8 text (byte {error.start})") from None


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
    importance = fields.get("importance")
    is_weight = isinstance(importance, int) and importance is not True and 1 <= importance <= 10
    day, created = _parse_date(fields.get("date")), _parse_date(fields.get("created"))
    kind = next((each for each in DocumentType if each == fields.get("type")), None)
    # A field that cannot be used is left out; the rest of the file still counts.
    parsed = (
        ("type", kind, f"one of {', '.join(DocumentType)}"),
        ("date", day, "a date like 2026-02-08"),
        ("created", created, "a date like 2026-02-08"),
        ("importance", is_weight or None, "a whole number from 1 to 10"),
    )
    problems = [front.problem] if front.problem else []
    for name, value, wanted in parsed:
        if value is None and fields.get(name) is not None:
            shown = shorten(repr(fields[name]), 60)
            problems.append(f"front matter: {name}: {shown} is not {wanted}; left out")
    return FileDescription(
        type=kind or type or guess_type(source),
        date=day or created or guess_date(source) or file_time,
        roles=_parse_words(fields.get("roles", fields.get("role"))),
        issues=_parse_issues(fields.get("issues", fields.get("issue"))),
        tags=_parse_words(fields.get("tags", fields.get("tag"))),
        importance=importance if isinstance(importance, int) and is_weight else 5,
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
        problem = f"front matter of more than {_FRONT_CHARACTERS} characters, read as text"
        return FrontMatterParts({}, "", text, 1, problem)
    try:
        fields = parse_yaml(found[1], "front matter")
    except InputError:
        fields = ""
    fields = {} if fields is None else fields
    if not isinstance(fields, dict):
        # Two horizontal rules look like front matter until they are parsed.
        return FrontMatterParts({}, "", text, 1, "front matter is not YAML, read as text")
    named = {str(name): value for name, value in fields.items()}
    return FrontMatterParts(named, found[1], text[found.end() :], 1 + found[0].count("\n"))


def guess_type(source: str) -> DocumentType:
    """Return the type that a path suggests, by default research."""
    return next((kind for pattern, kind in _TYPES if pattern.search(source.lower())), DocumentType.RESEARCH)


def guess_date(source: str) -> datetime | None:
    """Return the day in a file's name: 2026-02-08, 20260208 or 260208."""
    for found in _DATE.finditer(source.rsplit("/", 1)[-1]):
        year = found[1] if len(found[1]) > 2 else f"20{found[1]}"
        if moment := _parse_date(f"{year}-{found[3]}-{found[4]}"):
            return moment
    return None


def _parse_date(value: object) -> datetime | None:
    try:
        return from_text(str(value).strip())
    except (ValueError, OverflowError):
        return None


def _parse_words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))


def _parse_issues(value: object) -> tuple[int, ...]:
    parts = value if isinstance(value, list) else [value]
    numbers = [part for part in parts if isinstance(part, int) and not isinstance(part, bool) and part > 0]
    texts = [part if part.startswith("#") else f"#{part}" for part in parts if isinstance(part, str)]
    return find_references(*texts, issues=numbers).issues
