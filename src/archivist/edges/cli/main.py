"""The way into the `archivist` command: a hook is answered before Click is imported."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

# After so many new objects the collector looks for cycles.
_SELDOM = 100_000

# name → where it lives, and its one line of help, so that `--help` need not import any of them.
COMMANDS = {
    "init": ("banks:init", "Make a bank for this project."),
    "status": ("banks:status", "Say what the bank holds."),
    "run": ("runs:run", "Start and finish a run: the two calls that an orchestrator makes."),
    "brief": ("brief:brief", "Print what a new run should know."),
    "recall": ("recall:recall", "Find what the bank knows."),
    "lessons": ("lessons:lessons", "List, show, add, edit and forget lessons."),
    "core": ("core:core", "Show and change what is always in context."),
    "proposals": ("proposals:proposals", "Propose changes of playbook and rules, and decide on them."),
    "working": ("working:working", "Read and write the acting agent's own working memory."),
    "stream": ("stream:stream", "Log what agents do, cycle by cycle, and find it again."),
    "archive": ("archive:archive", "Keep texts for good, follow folders, and search them."),
    "workspace": ("workspace:workspace", "Read, check and write the markdown memory of a workspace."),
    "tools": ("tools:tools", "Print the functions that agents call, for each provider; call one."),
    "serve": ("serve:serve", "Serve the bank over HTTP."),
    "token": ("serve:token", "Hand out, list and revoke the tokens that a server asks for."),
    "mcp": ("mcp:mcp", "Serve the memory to MCP clients, over stdio or HTTP."),
    "install": ("install:install", "Put hooks and MCP server into an agent's client."),
    "uninstall": ("install:uninstall", "Take hooks and MCP server out of an agent's client."),
    "hook": ("hook:hook", "Answer a hook of an agent's client."),
    "capture": ("capture:capture", "Take the logs of agents in."),
    "reflect": ("capture:reflect", "Learn from captured runs."),
    "episodes": ("episodes:episodes", "List and show runs and attempts, log attempts, and learn from them."),
    "knowledge": ("knowledge:knowledge", "Say, find and settle what holds: facts by category and key."),
    "artifacts": ("artifacts:artifacts", "Register what runs produced, and check that it is still the same."),
    "extract": ("runs:extract", "Learn from a run's review findings."),
    "decay": ("runs:decay", "Let a finished run age the bank."),
    "audit": ("audit:audit", "Judge whether briefed lessons helped."),
    "export": ("files:export", "Write the bank as JSON lines."),
    "import": ("files:import_", "Take JSON lines in."),
    "share": ("files:share", "Bring the bank and a folder kept in git together."),
    "erase": ("forgetting:erase", "Erase records or a text everywhere, with a receipt."),
    "prune": ("forgetting:prune", "Let old runs go that no lesson cites."),
    "undo": ("banks:undo", "Take the last change of a record back."),
    "verify": ("banks:verify", "Check the ledger and every record against it."),
    "config": ("config:config", "Show the settings and where each came from; set and unset them."),
    "doctor": ("doctor:doctor", "Check the bank, and build its index anew."),
    "completion": ("banks:completion", "Print the completion script for a shell."),
}

# What an agent waits for; a hook that asks for help, or that names a bank first, goes the longer way.
_HOOK = "hook"
_GROUP = ("cli", "exit_code", "EXIT_CODES", "LazyGroup")


def main(argv: Sequence[str] | None = None) -> None:
    """Answer a hook, or run the command line and exit by the class of what went wrong."""
    # To look for cycles while modules load, and once more on the way out, takes a tenth of a short command.
    gc.set_threshold(_SELDOM)
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [_HOOK] and not {"-h", "--help"} & set(words):
        from archivist.edges.hooks.dispatch import answer_hook

        answer_hook(words[1:])
        if argv is None:
            # Everything is written and closed; the interpreter would only tidy up behind itself.
            os._exit(0)
        return
    try:
        from archivist.edges.cli.group import run
    except KeyboardInterrupt:
        sys.exit(130)
    run(argv)


def __getattr__(name: str) -> Any:
    """Import what is of the group when it is first asked for."""
    if name not in _GROUP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from archivist.edges.cli import group

    return getattr(group, name)
