"""Lay out a workspace: its folders, its first documents, and hot files with the learning-cycle triggers."""

from __future__ import annotations

from archivist.capture.redaction import redact
from archivist.files.write import explain_os_errors, make_folder, replace_if_unchanged
from archivist.workspace import learnings
from archivist.workspace.files_service import Topology
from archivist.workspace.front_matter import add_front_matter
from archivist.workspace.links_service import COMMANDS
from archivist.workspace.topology import LEARNINGS, FileKind, WorkspaceScope

# Folders of a scope for documents that are read in full.
_DOCUMENT_FOLDERS = ("_features", "_spikes", "_architecture")
_HOT_FILES = {
    "user-profile.md": """\
<!-- budget: 50 lines -->
# User profile

Who the user is, preferences and coding style: only what more than 80 % of all conversations need.
""",
    "global-conventions.md": """\
<!-- budget: 80 lines -->
# Global conventions

Decisions, names and patterns that hold in every workspace. What holds in one belongs into its `decisions.md`.
""",
    "workspace-workflow.md": """\
<!-- budget: 100 lines -->
# How to work with workspaces

- Find the scope of the task, WORKSPACE[/DOMAIN[/REPOSITORY]]: the folders below `{resources}`.
- Before the task, load its context: `archivist workspace overview SCOPE`, `archivist workspace plans SCOPE`
  and `archivist workspace learnings SCOPE`; as functions: `retrieve_overview`, `retrieve_plans` and
  `retrieve_learnings`.
- Respect the decisions. Say so when one no longer fits.
- A task starts with a plan, or makes one: `{resources}/SCOPE/{plans}/YYMMDD-plan-name.md`. Keep its status
  true.
""",
    "learning-cycle.md": """\
<!-- budget: 30 lines -->
# When to save memory

- Hard-won fix: you fixed a bug after several failed attempts. Suggest a lesson: root cause and solution.
- Non-obvious solution: it took knowledge that no document has. Suggest a lesson.
- Conflict: an entry of the memory contradicts what is. Ask the user to update or archive the entry.
- Decision moment: you or the user made a choice of architecture or design. Suggest a decision and its reason.
- End of session: save what is worth it without asking, and report what was saved.
- To save, also when the user says "save memory", follow `{commands}/save-memory.md`.
""",
}


def lay_out(
    topology: Topology, scope: WorkspaceScope, save_memory: str, description: str = ""
) -> dict[str, bool]:
    """Create what a workspace lacks; return each path and whether it was created. Nothing is overwritten."""
    rules = topology.rules
    names = {"resources": rules.resources, "plans": rules.plans, "commands": COMMANDS}
    files = {f"{rules.hot}/{name}": text.format(**names) for name, text in _HOT_FILES.items()}
    command = {"description": "Save what this conversation decided and learnt"}
    files[f"{COMMANDS}/save-memory.md"] = add_front_matter(save_memory, command)
    fields = {"name": scope.parts[-1], "description": redact(description).text}
    overview = topology.folder(FileKind.OVERVIEW, scope)
    files[topology.name_of(overview / rules.overview)] = add_front_matter(f"# {scope.parts[-1]}\n", fields)
    home = WorkspaceScope(*scope.parts[:2])
    for kind in LEARNINGS:
        files[topology.name_of(topology.learning_file(kind, home))] = learnings.header(kind, home)
    made = {}
    for name, text in files.items():
        path = topology.path_inside(name)
        with explain_os_errors(path):
            made[name] = not path.exists() and replace_if_unchanged(path, None, text.encode())
    folders = [
        rules.transcripts,
        *(topology.name_of(overview / each) for each in (rules.plans, *_DOCUMENT_FOLDERS)),
    ]
    for name in folders:
        path = topology.path_inside(name)
        made[f"{name}/"] = not path.is_dir()
        with explain_os_errors(path):
            make_folder(path, below=topology.root)
    return made
