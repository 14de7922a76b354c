"""The entry point of the `archivist` command: a hook is answered before Click is imported."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

# A short command makes fewer objects than this, so the collector never runs.
_SELDOM = 100_000

# name → module and attribute, and its line of help: `--help` imports none of them.
COMMANDS = {
    "init": ("banks:init", "Make a bank for this project."),
    "status": ("banks:status", "Count the records in the bank."),
    "run": ("runs:run", "Start and finish a run: the two calls that an orchestrator makes."),
    "brief": ("brief:brief", "Print what a new run should know."),
    "recall": ("recall:recall", "Search the bank."),
    "lessons": ("lessons:lessons", "List, show, add, edit and forget lessons."),
    "core": ("core:core", "Show and change the blocks that are always in context."),
    "proposals": ("proposals:proposals", "Propose changes of playbook and rules, and decide on them."),
    "working": ("working:working", "Read and write the acting agent's working memory."),
    "stream": ("stream:stream", "Log what agents do, cycle by cycle, and search it."),
    "archive": ("archive:archive", "Store and search long texts, and watch folders."),
    "workspace": ("workspace:workspace", "Read, check and write the markdown memory of a workspace."),
    "tools": ("tools:tools", "Print the tool schemas for a provider; call a tool."),
    "serve": ("serve:serve", "Serve the bank over HTTP."),
    "token": ("serve:token", "Create, list and revoke access tokens."),
    "mcp": ("mcp:mcp", "Serve the memory to MCP clients, over stdio or HTTP."),
    "install": ("install:install", "Install hooks and MCP server into a client."),
    "uninstall": ("install:uninstall", "Remove hooks and MCP server from a client."),
    "hook": ("hook:hook", "Answer a client's hook."),
    "capture": ("capture:capture", "Import agent logs."),
    "reflect": ("capture:reflect", "Learn from captured runs."),
    "episodes": ("episodes:episodes", "List and show runs and attempts; log attempts."),
    "knowledge": ("knowledge:knowledge", "Store and find facts; decide conflicts."),
    "artifacts": ("artifacts:artifacts", "Register files that runs produced, and verify them."),
    "extract": ("runs:extract", "Learn from a run's review findings."),
    "decay": ("runs:decay", "Age the bank by a finished run."),
    "audit": ("audit:audit", "Report whether briefed lessons helped."),
    "export": ("files:export", "Write the bank as JSON lines."),
    "import": ("files:import_", "Import JSON lines."),
    "share": ("files:share", "Synchronise the bank with a folder in git."),
    "erase": ("forgetting:erase", "Erase records or a text everywhere, with a receipt."),
    "prune": ("forgetting:prune", "Delete old runs that no lesson cites."),
    "undo": ("banks:undo", "Undo the last change of a record."),
    "verify": ("banks:verify", "Check the ledger and every record against it."),
    "config": ("config:config", "Show settings and where each comes from; set and unset them."),
    "doctor": ("doctor:doctor", "Check the bank; rebuild its index."),
    "completion": ("banks:completion", "Print the completion script for a shell."),
}

# An agent waits for its hook, so it is answered before Click is imported; `hook --help` is not.
_HOOK = "hook"
_GROUP = ("cli", "exit_code", "EXIT_CODES", "LazyGroup")


def main(argv: Sequence[str] | None = None) -> None:
    """Answer a hook, or run the command line and exit by the class of what went wrong."""
    # Collecting while modules load, and again at exit, took a tenth of the time of a short command.
    gc.set_threshold(_SELDOM)
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [_HOOK] and not {"-h", "--help"} & set(words):
        from archivist.edges.hooks.dispatch import answer_hook

        answer_hook(words[1:])
        if argv is None:
            # Everything is written and closed; the interpreter's own exit takes 10 ms more.
            os._exit(0)
        return
    try:
        from archivist.edges.cli.group import run
    except KeyboardInterrupt:
        sys.exit(130)
    run(argv)


def __getattr__(name: str) -> Any:
    """Import a name of the group at first use."""
    if name not in _GROUP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from archivist.edges.cli import group

    return getattr(group, name)
