"""Search the documents of all workspaces, in the index of the archive, which watches their folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads
from archivist.errors import InputError
from archivist.files.open import real_path
from archivist.recall.answering import filter_answers
from archivist.recall.query import Query
from archivist.records import ARCHIVIST
from archivist.service import BankService
from archivist.text import shorten_line
from archivist.workspace import learnings
from archivist.workspace.documents import unique_ids
from archivist.workspace.files_service import Topology
from archivist.workspace.topology import EVERYWHERE, LEARNINGS, LEVELS, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Document

_MAX_HITS = 200
# The archive holds other texts too, so more is recalled than is wanted; a second attempt asks for far more.
_SPARE = 5
_MAX_RECALLED = 2_000
_SNIPPET_CHARACTERS = 280


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a document that answers a question, with its place."""

    path: str
    line: int
    scope: WorkspaceScope
    heading: str
    text: str
    score: float
    document: str
    root: str = ""


class WorkspaceSearchResult(NamedTuple):
    """The answers to a question, and the problems met while indexing."""

    snippets: tuple[Snippet, ...]
    problems: tuple[str, ...] = ()


class WorkspaceSearch(BankService):
    """Search over the documents of one or several roots, by words and by meaning."""

    def __init__(self, bank: Bank, roots: Sequence[Topology]) -> None:
        super().__init__(bank)
        self._roots = roots
        self._project = bank.root
        # The name of each folder in the archive, its path below its root, and the label of that root.
        self._folders: list[tuple[str, str, str]] = []
        project = real_path(self._project)
        for at, each in enumerate(roots):
            label = each.root.name if at else ""
            for top in dict.fromkeys((each.rules.resources.strip("/"), each.rules.learnings.strip("/"))):
                place = real_path(each.root / top)
                # A folder outside the project keeps its whole path, as the archive names it.
                name = place.relative_to(project) if place.is_relative_to(project) else place
                self._folders.append((name.as_posix(), top, label))

    @reads(Layer.WORKSPACE)
    def search(
        self, text: str, *, scope: WorkspaceScope = EVERYWHERE, limit: int = 10
    ) -> WorkspaceSearchResult:
        """Return the pieces that answer a question, the best first; changed files are indexed before."""
        if not text.strip():
            raise InputError("nothing to search for", hint="archivist workspace search 'how are tests run?'")
        if not 1 <= limit <= _MAX_HITS:
            raise InputError(f"limit: {limit} is not between 1 and {_MAX_HITS}")
        problems = self.index()
        snippets: list[Snippet] = []
        for count in (min(_MAX_HITS, limit * _SPARE), _MAX_RECALLED):
            query = Query(text=text, kinds=("document",), limit=count, preset="relevance")
            recalled = self._bank.recall(query)
            hits = filter_answers(text, recalled)
            with self._bank.reading() as reader:
                documents: dict[str, Document] = reader.records("document", [hit.id for hit in hits])
            snippets = []
            for hit in hits:
                source = documents[hit.id].source
                homes = [each for each in self._folders if each[0] == "." or source.startswith(f"{each[0]}/")]
                if homes:
                    home = max(homes, key=lambda each: len(each[0]))
                    snippet = _snippet(documents[hit.id], *home, hit.score)
                    snippets += [snippet] if scope.contains(snippet.scope) else []
            # Pieces of a small scope may rank behind many others, as long as those are answers too.
            if len(snippets) >= limit or len(recalled.hits) < count or hits[-1:] != recalled.hits[-1:]:
                break
        ids = unique_ids([(each.document, each.path) for each in snippets])
        named = (replace(each, document=name) for each, name in zip(snippets, ids, strict=True))
        return WorkspaceSearchResult(tuple(islice(named, limit)), problems)

    @reads(Layer.WORKSPACE)
    def index(self) -> tuple[str, ...]:
        """Bring the index in step with the files when any of them changed; return what could not be read."""
        # Which folders are indexed follows from the configuration, so no other actor decides it.
        archivist = self._bank.acting_as(ARCHIVIST)
        watched = {folder.id for folder in archivist.documents.folders()}
        for folder, _, _ in self._folders:
            if folder not in watched and (self._project / folder).is_dir():
                archivist.documents.watch(self._project / folder)
        done = archivist.documents.refresh_if_changed()
        if done is None:
            return ()
        for _ in archivist.vectors.embed_waiting():
            continue
        paths = {problem: real_path(self._project / problem.split(":", 1)[0]) for problem in done.problems}
        roots = [real_path(topology.root) for topology in self._roots]
        return tuple(each for each, path in paths.items() if any(map(path.is_relative_to, roots)))


def _snippet(document: Document, folder: str, top: str, root: str, score: float) -> Snippet:
    below = document.source.removeprefix(f"{folder}/")
    names = below.split("/")[:-1][:LEVELS]
    scope = takewhile(lambda name: not name.startswith(("_", ".")), names)
    # The line of the heading, when the piece contains it; else its first line.
    heading = document.heading.rsplit(" > ", 1)[-1].strip()
    lines = document.text.splitlines()
    titles = ((at, line.lstrip("# ").strip()) for at, line in enumerate(lines) if line.startswith("#"))
    offsets = (at for at, title in titles if title and title == heading)
    # The id that the document has in the answers of `retrieve_*`.
    place, _, name = below.rpartition("/")
    stem = name.removesuffix(".md")
    kind = next((kind for kind in LEARNINGS if kind.value == stem), None)
    entries = learnings.parse_entries(f"### {heading}\n", below) if kind else []
    named = place if name == "OVERVIEW.md" else stem
    stripped = [line.strip() for line in lines if line.strip(" -\t")]
    prose = [line for line in stripped if not line.startswith(("#", "**Category:**", "**Tags:**"))]
    return Snippet(
        path=f"{top}/{below}",
        line=document.line + next(offsets, 0),
        scope=WorkspaceScope(*scope),
        heading=document.heading,
        text=shorten_line(" ".join(prose or stripped or [heading]), _SNIPPET_CHARACTERS),
        score=score,
        document=learnings.entry_id(kind, entries[0]) if kind and entries else named,
        root=root,
    )
