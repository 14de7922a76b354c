"""Read every document of one or several roots, for what looks at all of them at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.recall.keywords import keywords
from archivist.workspace import learnings
from archivist.workspace.graph import SourceFile
from archivist.workspace.learnings import Learning
from archivist.workspace.reading import decode, read_bytes
from archivist.workspace.topology import (
    EVERYWHERE,
    LEARNINGS,
    FileKind,
    Topology,
    WorkspaceFile,
    WorkspaceScope,
)

_SCOPES_TOLD = 10


class Corpus(NamedTuple):
    """The documents of some roots, and what could not be read."""

    sources: list[SourceFile]
    problems: list[str]


def other_roots(root: Path, rules: WorkspaceRules) -> list[Path]:
    """Return the roots that the configuration names beside this one; each must be a folder."""
    found = [root / name.strip() for name in rules.roots.split(",") if name.strip()]
    for path in found:
        if not path.is_dir():
            raise InputError(
                f"no root {str(path)!r}", hint="workspace.roots names folders, separated by commas"
            )
    return found


def topologies(root: Path, rules: WorkspaceRules, more: Sequence[Path] = ()) -> list[Topology]:
    """Return the files of a root, of those that the configuration adds, and of more; none twice."""
    paths = {path.resolve(): path for path in (root, *other_roots(root, rules), *more)}
    return [Topology(path, rules) for path in paths.values()]


def find_scope(roots: Sequence[Topology], text: str) -> WorkspaceScope:
    """Return the scope that a text names; raise NotFoundError, with those that are there, when none is so."""
    scope = WorkspaceScope.parse(text)
    known = sorted({each for topology in roots for each in topology.scopes()})
    if scope.parts and scope not in known:
        depth = len(scope.parts)
        there = list(dict.fromkeys(str(each) for each in known if len(each.parts) == depth))
        near = get_close_matches(str(scope), there, n=1)
        some = ", ".join((there or [str(each) for each in known])[:_SCOPES_TOLD]) or "none yet"
        raise NotFoundError(
            "scope", str(scope), hint=f"did you mean {near[0]!r}?" if near else f"there is {some}"
        )
    return scope


def read_corpus(
    roots: Sequence[Topology],
    scope: WorkspaceScope = EVERYWHERE,
    kinds: Collection[FileKind] = tuple(FileKind),
) -> Corpus:
    """Read the documents of all roots; those of a second root are named by its folder first."""
    corpus = Corpus([], [])
    for at, topology in enumerate(roots):
        prefix = f"{topology.root.name}/" if at else ""
        found = topology.scan(scope, kinds)
        corpus.problems.extend(f"{prefix}{problem}" for problem in found.problems)
        for place in found.places:
            source = _read_source(place, prefix, corpus.problems)
            if source is not None:
                corpus.sources.append(source)
    return corpus


def _read_source(place: WorkspaceFile, prefix: str, problems: list[str]) -> SourceFile | None:
    try:
        decoded = decode(read_bytes(place.file, place.name), place.name)
    except InputError as error:
        problems.append(f"{prefix}{error.message}")
        return None
    return SourceFile(f"{prefix}{place.name}", place.kind, place.scope, decoded.text)


def words_of(sources: Iterable[SourceFile]) -> frozenset[str]:
    """Return every telling word of the documents."""
    return frozenset(word for source in sources for word in keywords(source.text))


def learnings_of(sources: Iterable[SourceFile]) -> tuple[Learning, ...]:
    """Return the entries of the learning files that still count."""
    found: list[Learning] = []
    for source in sources:
        if source.kind in LEARNINGS:
            place = WorkspaceFile("", source.name, source.kind, source.scope, "", 0, 0, 0)
            found += learnings.list_learnings(learnings.from_text(source.text, place))
    return tuple(each for each in found if not each.entry.superseded_by)
