"""Say what a found piece of a document is: whose it is, where it stands, and what of it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from archivist.config import WorkspaceRules
from archivist.recall.fusion import Relevance
from archivist.workspace.topology import LEVELS, WorkspaceFile, WorkspaceScope

_SHOWN = 280
# What shares no word with a question answers it only when it is much nearer than documents are in general,
# by the bundled table also near as such: on a tree of 380 files the nearest piece had .32 to .44 for ten
# questions it could answer in other words, and at most .27 for ten about cakes, football and the like.
_LEAST_MEANING = 0.6
_LEAST_COSINE = 0.3


@dataclass(frozen=True, slots=True)
class DocumentFolder:
    """A folder of documents as the archive names it, and the root that it belongs to.

    `folder` is where it begins in the names of its documents, `top` where it lies below the root.
    """

    folder: str
    top: str
    root: str = ""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a document that answers a question, with the way to more of it."""

    path: str
    line: int
    scope: WorkspaceScope
    heading: str
    text: str
    score: float
    document: str
    root: str = ""


def is_answer(why: Relevance, *, is_static: bool, is_understood: bool) -> bool:
    """Say whether a piece answers a question: it holds words of it, or is surely near to it in meaning.

    The bundled table makes a vector also of letters that are no word: near to that is near to nothing.
    """
    if why.words > 0:
        return True
    if not is_understood or why.meaning < _LEAST_MEANING:
        return False
    return not is_static or (why.cosine or 0.0) >= _LEAST_COSINE


def document_folders(root: Path, project: Path, rules: WorkspaceRules) -> list[DocumentFolder]:
    """Return the folders of a root that hold documents, named as a bank of that project names them."""
    found = []
    for top in dict.fromkeys((rules.resources.strip("/"), rules.learnings.strip("/"))):
        place = (root / top).resolve()
        is_inside = place.is_relative_to(project.resolve())
        name = place.relative_to(project.resolve()).as_posix() if is_inside else place.as_posix()
        label = "" if root.resolve() == project.resolve() else root.name
        found.append(DocumentFolder(name, top, label))
    return found


def folder_of(source: str, known: Iterable[DocumentFolder]) -> DocumentFolder | None:
    """Return the folder that a document was found in, or None when it is of no workspace."""
    held = [home for home in known if home.folder == "." or source.startswith(f"{home.folder}/")]
    return max(held, key=lambda home: len(home.folder), default=None)


def scope_of(source: str, folder: DocumentFolder) -> WorkspaceScope:
    """Return whose a document is: the folders below the top, as far as they are scopes."""
    names = source.removeprefix(f"{folder.folder}/").split("/")[:-1]
    scopes = []
    for name in names[:LEVELS]:
        if name.startswith(("_", ".")):
            break
        scopes.append(name)
    return WorkspaceScope(*scopes)


def path_of(source: str, folder: DocumentFolder) -> str:
    """Return a document's path below its root."""
    return f"{folder.top}/{source.removeprefix(f'{folder.folder}/')}"


def line_of(text: str, heading: str, first: int) -> int:
    """Return the line of the heading that a piece stands under, when that is part of it; else its first."""
    last = _last_heading(heading)
    for at, line in enumerate(text.splitlines()):
        if last and line.startswith("#") and line.lstrip("# ").strip() == last:
            return first + at
    return first


def snippet_text(text: str, heading: str) -> str:
    """Return the beginning of a piece on one line, without its headings and an entry's marks."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    told = [line for line in lines if not line.startswith(("#", "**Category:**", "**Tags:**"))]
    said = " ".join(" ".join(told or lines or [_last_heading(heading)]).split())
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"


def _last_heading(heading: str) -> str:
    return heading.rsplit(" > ", 1)[-1].strip()


def fingerprint(places: Iterable[WorkspaceFile]) -> str:
    """Return what changes whenever one of the files does: their names, sizes and times, as one word."""
    digest = sha256()
    for place in places:
        digest.update(f"{place.name}\0{place.size}\0{place.mtime_ns}\0{place.ctime_ns}\n".encode())
    return digest.hexdigest()
