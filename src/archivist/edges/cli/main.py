"""The `archivist` command: a group that imports a command only when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from archivist import __version__
from archivist.edges.cli.session import Session
from archivist.errors import (
    AccessError,
    ArchivistError,
    BankError,
    BankLockedError,
    EmbedderError,
    InputError,
    NotFoundError,
    NothingToUndoError,
)

# After so many new objects the collector looks for cycles.
_SELDOM = 100_000

# What an error means to a script. Click itself uses 2 for a call whose words are off.
EXIT_CODES: dict[type[ArchivistError], int] = {
    NotFoundError: 3,
    NothingToUndoError: 3,
    InputError: 4,
    BankLockedError: 6,
    BankError: 5,
    EmbedderError: 8,
    AccessError: 9,
    ArchivistError: 1,
}

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


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands in the order of a run's life, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Import and return a command."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(f"archivist.edges.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Add the nearest command's name to the complaint about an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "archivist --help lists the commands"
            raise click.UsageError(f"no command {args[0]!r}\nhint: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--bank", metavar="PATH", envvar="ARCHIVIST_BANK", help="Project folder or bank file.")
@click.option("--actor", metavar="WHO", envvar="ARCHIVIST_ACTOR", help="Who acts: kind[:name[:role]].")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="A setting, for this call only.")
@click.version_option(__version__, prog_name="archivist")
@click.pass_context
def cli(ctx: click.Context, bank: str | None, actor: str | None, flags: tuple[str, ...]) -> None:
    """A memory that lets coding agents learn from their own runs."""
    if flags:
        from archivist.settings import check_flags

        check_flags(flags)
    ctx.obj = Session(bank or "", actor or "", flags)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit by the class of what went wrong."""
    # To look for cycles while modules load, and once more on the way out, takes a tenth of a short command.
    gc.set_threshold(_SELDOM)
    _use_utf8()
    try:
        result: Any = cli.main(args=None if argv is None else list(argv), standalone_mode=False)
    except ArchivistError as error:
        click.echo(f"archivist: {error.message}", err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
        sys.exit(exit_code(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("archivist: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone; point stdout elsewhere so that the interpreter's last flush is quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    gc.freeze()
    sys.exit(result if isinstance(result, int) else 0)


def exit_code(error: ArchivistError) -> int:
    """Return the exit code of an error's class, or of the nearest class above it."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def _use_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
