"""Workspaces to test on: the tree of the document, and files by their short form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RESOURCES = "resources/workspaces"
LEARNINGS = "user/memory/workspaces"


def plan_text(name: str = "Workflow Engine", status: str = "done", tags: str = "workflow, engine") -> str:
    """Return a plan in the documented form."""
    return (
        f'---\nname: "{name}"\ndescription: "What {name} is for"\nstatus: {status}\ncreated: 2026-02-08\n'
        f"tags: [{tags}]\n---\n\n# {name}\n\nThe steps.\n"
    )


def overview_text(name: str, description: str) -> str:
    """Return an overview in the documented form."""
    head = f'---\nname: "{name}"\ndescription: "{description}"\ntags: [tools]\n---\n'
    return f"{head}\n# {name}\n\nAll about {name}.\n"


def entry_text(
    title: str, text: str, *, day: str = "2026-02-08", category: str = "debugging", tags: str = "a"
) -> str:
    """Return a learning entry in the documented form."""
    return f"### [{day}] {title}\n\n**Category:** {category}\n**Tags:** {tags}\n\n{text}\n\n---\n\n"


def make(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a root and return it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


DOCUMENTED = {
    f"{RESOURCES}/devtools/OVERVIEW.md": overview_text("DevTools", "Tools for developers"),
    f"{RESOURCES}/devtools/common/OVERVIEW.md": overview_text(
        "DevTools Common", "Shared tools and utilities"
    ),
    f"{RESOURCES}/devtools/common/metan/OVERVIEW.md": overview_text("Metan", "The metadata analyser"),
    f"{RESOURCES}/devtools/_plans/260101-roadmap.md": plan_text("Roadmap", "in_progress", "planning"),
    f"{RESOURCES}/devtools/common/_plans/260208-workflow-engine.md": plan_text(),
    f"{RESOURCES}/devtools/common/metan/_plans/260301-cache.md": plan_text("Cache", "new", "nestjs, spa"),
    f"{RESOURCES}/devtools/common/_features/search.md": "# Search\n",
    f"{RESOURCES}/k/OVERVIEW.md": overview_text("K", "Another workspace"),
    f"{RESOURCES}/k/stock/_plans/260401-prices.md": plan_text("Prices", "done", "stock"),
    f"{LEARNINGS}/devtools/decisions.md": "# Decisions\n\n"
    + entry_text(
        "Chose xstate v5 for workflow state management",
        "Actor model + strong TypeScript support",
        category="architecture",
        tags="workflow, state-management, xstate",
    ),
    f"{LEARNINGS}/devtools/lessons.md": "# Lessons\n\n"
    + entry_text(
        "pnpm isolates strictly", "Call require.resolve() from the consuming package.", tags="pnpm, nestjs"
    ),
    f"{LEARNINGS}/devtools/common/lessons.md": "# Lessons\n\n"
    + entry_text("Vite caches stale dependencies", "Delete node_modules/.vite.", tags="vite, metan")
    + entry_text("Jest hangs with open handles", "Call server.close().", category="testing", tags="jest"),
    f"{LEARNINGS}/k/stock/decisions.md": entry_text(
        "Store prices in cents", "Floats lost one.", tags="money"
    ),
}
