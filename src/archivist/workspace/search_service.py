"""Work on searching all workspaces: their documents are watched by the archive, so that one index serves."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads
from archivist.errors import InputError
from archivist.paths import FOLDER
from archivist.recall.query import Query
from archivist.records import ARCHIVIST
from archivist.records.plain import canonical_json
from archivist.service import BankService
from archivist.workspace import search
from archivist.workspace.files_service import Topology
from archivist.workspace.search import DocumentFolder, Snippet
from archivist.workspace.topology import EVERYWHERE, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.recall.service import Hit, RecallResult
    from archivist.records import Document

# Where the bank notes what the files of each root were when they were last indexed.
_INDEXED = "workspace_indexed"
# A change within the clock's grain leaves no trace in the times.
_FRESH_NS = 2_000_000_000
_MOST_HITS = 200
# The archive holds other texts too; so many more are asked for than are wanted.
_SPARE = 5
_MOST_LOOKED_AT = 2_000
_PARTS = re.compile(r"[A-Z]?[a-z]+|[^\W\da-zA-Z_]+")
_SHORT = 3


class WorkspaceSearchResult(NamedTuple):
    """What answers a question in the workspaces, and what could not be indexed."""

    snippets: tuple[Snippet, ...]
    problems: tuple[str, ...] = ()
    unembedded: int = 0


class WorkspaceSearch(BankService):
    """Search over the documents of one or several roots, by words and by meaning."""

    def __init__(self, bank: Bank, roots: Sequence[Topology]) -> None:
        super().__init__(bank)
        self._roots = roots
        folder = bank.path.absolute().parent
        self._project = folder.parent if folder.name == FOLDER else folder

    @reads(Layer.WORKSPACE)
    def search(
        self, text: str, *, scope: WorkspaceScope = EVERYWHERE, limit: int = 10
    ) -> WorkspaceSearchResult:
        """Return the pieces that answer a question, the best first; files that changed are indexed before."""
        if not text.strip():
            raise InputError("nothing to search for", hint="archivist workspace search 'how are tests run?'")
        if not 1 <= limit <= _MOST_HITS:
            raise InputError(f"limit: {limit} is not between 1 and {_MOST_HITS}")
        known = [
            home
            for each in self._roots
            for home in search.document_folders(each.root, self._project, each.rules)
        ]
        problems = self.index()
        snippets: list[Snippet] = []
        for count in (min(_MOST_HITS, limit * _SPARE), _MOST_LOOKED_AT):
            recalled = self._bank.recall(
                Query(text=text, kinds=("document",), limit=count, preset="relevance")
            )
            hits = _filter_answers(text, recalled)
            snippets = self._snippets(hits, known, scope)
            # What is asked of a part may stand behind much of the rest, as long as that answers too.
            if len(snippets) >= limit or len(recalled.hits) < count or hits[-1:] != recalled.hits[-1:]:
                break
        return WorkspaceSearchResult(tuple(snippets[:limit]), problems, recalled.unembedded)

    def _snippets(
        self, hits: Sequence[Hit], known: Sequence[DocumentFolder], scope: WorkspaceScope
    ) -> list[Snippet]:
        """Return the pieces of the scope."""
        with self._bank.reading() as reader:
            pieces: dict[str, Document] = reader.records("document", [hit.id for hit in hits])
        found: list[Snippet] = []
        for hit in hits:
            piece = pieces[hit.id]
            home = search.folder_of(piece.source, known)
            if home is not None and scope.contains(search.scope_of(piece.source, home)):
                found.append(_snippet(piece, home, hit.score))
        return found

    @reads(Layer.WORKSPACE)
    def index(self) -> tuple[str, ...]:
        """Bring the index in step with the files when any of them changed; return what could not be read."""
        states = {str(topology.root.resolve()): self._fingerprint_root(topology) for topology in self._roots}
        with self._bank.reading() as reader:
            noted: dict[str, str] = json.loads(reader.setting(_INDEXED) or "{}")
        if all(state and noted.get(root) == state for root, state in states.items()):
            return ()
        # Which folders are indexed follows from the configuration: nobody's decision but ours.
        archivist = self._bank.acting_as(ARCHIVIST)
        watched = {folder.id for folder in archivist.documents.folders()}
        for topology in self._roots:
            for home in search.document_folders(topology.root, self._project, topology.rules):
                if home.folder not in watched and (self._project / home.folder).is_dir():
                    archivist.documents.watch(self._project / home.folder)
        done = archivist.documents.refresh()
        for _ in archivist.vectors.embed_waiting():
            continue
        with archivist.transaction() as writer:
            noted = json.loads(writer.setting(_INDEXED) or "{}")
            writer.set_setting(_INDEXED, canonical_json({**noted, **states}))
        tops = [str(topology.root.resolve()) for topology in self._roots]
        return tuple(problem for problem in done.problems if self._is_below(problem, tops))

    def _fingerprint_root(self, topology: Topology) -> str:
        """Return the fingerprint of a root's files; an empty one when a file is too fresh to be sure."""
        places = topology.scan().places
        newest = max((max(place.mtime_ns, place.ctime_ns) for place in places), default=0)
        is_fresh = newest + _FRESH_NS >= int(self._bank.now().timestamp() * 1e9)
        return "" if is_fresh else search.fingerprint(places)

    def _is_below(self, problem: str, tops: Sequence[str]) -> bool:
        path = str((self._project / problem.split(":", 1)[0]).resolve())
        return any(Path(path).is_relative_to(top) for top in tops)


def _filter_answers(text: str, recalled: RecallResult) -> tuple[Hit, ...]:
    """Return what of the recalled pieces answers the question, and was not only nearest by chance."""
    is_static = recalled.embedder.startswith("static")
    is_understood = not is_static or _is_understood(text)
    return tuple(
        hit
        for hit in recalled.hits
        if search.is_answer(hit.why.why, is_static=is_static, is_understood=is_understood)
    )


def _is_understood(text: str) -> bool:
    """Say whether the bundled table knows a telling word of a question whole, or the parts of a name."""
    from archivist.recall.embedders.static import StaticEmbedder
    from archivist.recall.keywords import keywords

    table = StaticEmbedder()
    return any(table.has_word(word) for word in keywords(text)) or any(
        table.has_word(part) for part in _PARTS.findall(text) if len(part) > _SHORT
    )


def _snippet(piece: Document, home: DocumentFolder, score: float) -> Snippet:
    return Snippet(
        path=search.path_of(piece.source, home),
        line=search.line_of(piece.text, piece.heading, piece.line),
        scope=search.scope_of(piece.source, home),
        heading=piece.heading,
        text=search.snippet_text(piece.text, piece.heading),
        score=score,
        document=piece.id,
        root=home.root,
    )
