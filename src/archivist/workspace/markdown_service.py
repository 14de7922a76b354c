"""Read, save, check and migrate the markdown of a root, without a bank: people own the files.

A module of its own, because importing a bank's service costs a cold command another 15 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.clock import system_clock
from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.store.filters import refuse_many
from archivist.workspace import documents, front_matter
from archivist.workspace.documents import OverviewAnswer, Plan, PlanStatus, Tier
from archivist.workspace.files_service import FileCache, Topology, WorkspaceContents, read_bytes
from archivist.workspace.learnings import Learning, Learnings, list_learnings, speaker_of
from archivist.workspace.topology import (
    DOCUMENTED,
    EVERYWHERE,
    LEARNINGS,
    LEVELS,
    FileKind,
    LintProblem,
    WorkspaceScope,
    decode,
    suggest_scopes,
)

if TYPE_CHECKING:
    from archivist.access.rights import Layer, Verb
    from archivist.records import Actor
    from archivist.workspace.lint import FileChange, WorkspaceMigration
    from archivist.workspace.lint_service import LintReport
    from archivist.workspace.save import MemoryItem, OnConflict, SaveOutcome


@lru_cache(maxsize=8)
def _open_files(root: Path, rules: WorkspaceRules) -> FileCache:
    # Parsed files are kept per root for the life of the process; a server has few roots.
    return FileCache(Topology(root, rules))


class PlanDetail(NamedTuple):
    """A plan in full (T2)."""

    plan: Plan
    content: str


class Workspace:
    """The markdown memory below one root; `problems` are those of the last call."""

    def __init__(
        self,
        root: Path,
        rules: WorkspaceRules = DOCUMENTED,
        *,
        now: Callable[[], datetime] = system_clock,
        actor: Actor | None = None,
    ) -> None:
        self.files = _open_files(root.absolute(), rules)
        self.topology = self.files.topology
        self.problems: list[LintProblem] = []
        self._now = now
        self._actor = actor

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Allow everything: files without a bank belong to whoever can open them."""

    def explain(self, error: Exception) -> None:
        """Explain nothing: without a bank there is none that could be damaged."""

    def retrieve_plans(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        status: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[Plan]:
        """Return the plans of a scope and below it, from their front matter (T0)."""
        refuse_many("tags", tags)
        refuse_many("statuses", status)
        known = [each.value for each in PlanStatus]
        for word in status:
            if word not in known:
                raise InputError(f"no status {word!r}", hint=f"one of {', '.join(known)}")
        asked = WorkspaceScope.parse(scope)
        found = self._read(asked, (FileKind.PLAN,)).plans
        ids = documents.unique_ids([(plan.id, plan.path) for plan in found])
        found = [plan._replace(id=name) for plan, name in zip(found, ids, strict=True)]
        plans = [plan for plan in found if not status or plan.status in status]
        return [plan for plan in plans if documents.has_any_tag(plan.tags, tags)]

    def retrieve_plan(self, name: str, scope: str | WorkspaceScope = EVERYWHERE) -> PlanDetail:
        """Return one plan in full (T2), by its id, its path or its name."""
        plan = documents.find_plan(self.retrieve_plans(scope), name)
        text, _ = decode(read_bytes(self.topology.path_inside(plan.path), plan.path), plan.path)
        return PlanDetail(plan, documents.trim_body(front_matter.read(text, plan.path).body))

    def retrieve_overview(
        self, scope: str | WorkspaceScope = EVERYWHERE, *, is_full: bool = False
    ) -> list[OverviewAnswer]:
        """Return overviews: of a workspace or the asked repository in full (T1), others in short (T0)."""
        asked = WorkspaceScope.parse(scope)
        found = self._read(asked, (FileKind.OVERVIEW,)).overviews
        answers = []
        for overview in sorted(found, key=lambda overview: overview.folder.split("/")):
            depth = overview.folder.count("/") + 1
            # Workspaces in full, and the repository that was asked for by name.
            is_whole = is_full or depth == 1 or (depth == LEVELS == len(asked.parts))
            answers.append(OverviewAnswer(overview, Tier.T1 if is_whole else Tier.T0))
        return answers

    def retrieve_learnings(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        tags: Sequence[str] = (),
        category: str = "",
        with_superseded: bool = False,
    ) -> Learnings:
        """Return the decisions and lessons of a scope, with one of these tags and this category.

        Learnings are kept by domain, so a repository also gets its domain's entries tagged with its name.
        """
        refuse_many("tags", tags)
        asked = WorkspaceScope.parse(scope)
        wider = WorkspaceScope(asked.workspace, asked.domain) if asked.repository else asked
        both: list[Learning] = []
        for file in self._read(wider, LEARNINGS).learnings:
            is_within = asked.contains(file.scope)
            if not is_within and file.scope != wider:
                continue
            for learning in list_learnings(file):
                entry = learning.entry
                if entry.superseded_by and not with_superseded:
                    continue
                if category and entry.category.casefold() != category.strip().casefold():
                    continue
                named = () if is_within else (asked.repository,)
                if documents.has_any_tag(entry.tags, tags) and documents.has_any_tag(entry.tags, named):
                    both.append(learning)
        ids = documents.unique_ids([(each.id, each.path) for each in both])
        both = [each._replace(id=name) for each, name in zip(both, ids, strict=True)]
        return Learnings(
            [each for each in both if each.kind is FileKind.DECISIONS],
            [each for each in both if each.kind is not FileKind.DECISIONS],
        )

    def find_repository(self, workspace: str, repository: str) -> str:
        """Return the scope of the repository with a name that only one domain of a workspace has."""
        known = [each for each in self.topology.scopes() if each.workspace == workspace]
        found = [each for each in known if each.repository == repository]
        if len(found) == 1:
            return str(found[0])
        if found:
            named = ", ".join(map(str, found))
            raise InputError(f"{len(found)} repositories are called {repository!r}", hint=f"one of {named}")
        asked = WorkspaceScope(workspace, repository)
        raise NotFoundError("repository", f"{workspace}/…/{repository}", hint=suggest_scopes(asked, known))

    def _read(self, asked: WorkspaceScope, kinds: Sequence[FileKind]) -> WorkspaceContents:
        """Read files of a scope; raise NotFoundError for a workspace or domain that does not exist.

        A repository may exist only as a tag, and a root without any scope is merely empty.
        """
        contents = self.files.read(asked, kinds)
        self.problems = contents.problems
        wanted = WorkspaceScope(*asked.parts[: LEVELS - 1])
        is_empty = not (contents.plans or contents.overviews or contents.learnings)
        known = self.topology.scopes() if is_empty and wanted.parts else []
        if known and not any(wanted.contains(scope) for scope in known):
            raise NotFoundError("scope", str(wanted), hint=suggest_scopes(wanted, known))
        return contents

    def lint(self, scope: str | WorkspaceScope = EVERYWHERE) -> LintReport:
        """Check every file of a scope against its format."""
        from archivist.workspace import lint_service

        return lint_service.lint_scope(self.topology, WorkspaceScope.parse(scope))

    def propose_migration(self, scope: str | WorkspaceScope = EVERYWHERE) -> WorkspaceMigration:
        """Return the changes that migrating a scope would make; nothing is written."""
        from archivist.workspace import lint_service

        return lint_service.propose_migration(self.topology, WorkspaceScope.parse(scope))

    def migrate(self, changes: Sequence[FileChange]) -> tuple[list[FileChange], list[LintProblem]]:
        """Write proposed changes; return those that were made, and a problem for each that was not."""
        from archivist.workspace import lint_service

        return lint_service.apply_changes(self.topology, changes)

    def propose_archive(self, scope: str | WorkspaceScope = EVERYWHERE) -> WorkspaceMigration:
        """Return the changes that move superseded entries of a scope to the archive; nothing is written."""
        from archivist.workspace import lint_service

        return lint_service.propose_archive(self.topology, WorkspaceScope.parse(scope))

    def archive(self, changes: Sequence[FileChange]) -> tuple[list[FileChange], list[LintProblem]]:
        """Write proposed changes of the archive; return those that were made, and what was left."""
        return self.migrate(changes)

    def save_memory(
        self,
        items: Sequence[MemoryItem],
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        on_conflict: OnConflict | str = "refuse",
        create: bool = False,
    ) -> list[SaveOutcome]:
        """Save decisions, lessons and plan statuses; return the outcome of each item with its reason.

        An item that cannot be saved is refused and does not stop the others. `create` allows a workspace or
        domain that has no folder yet.
        """
        from archivist.workspace.save import OnConflict
        from archivist.workspace.saving_service import MemorySaver

        if on_conflict not in set(OnConflict):
            words = ", ".join(rule.value for rule in OnConflict)
            raise InputError(f"no rule {on_conflict!r} for conflicts", hint=f"one of {words}")
        saver = MemorySaver(self.files, self._now().astimezone().date(), speaker_of(self._actor))
        return saver.save(items, WorkspaceScope.parse(scope), OnConflict(on_conflict), create=create)
