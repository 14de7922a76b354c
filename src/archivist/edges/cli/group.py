"""The group of all commands: imports a command when it runs, and maps errors to exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from archivist import __version__, errors
from archivist.edges.cli.output import close_quietly, note

# Exit codes for scripts. Click itself uses 2 for usage errors.
EXIT_CODES: dict[type[errors.ArchivistError], int] = {
    errors.NotFoundError: 3,
    errors.NothingToUndoError: 3,
    errors.InputError: 4,
    errors.BankLockedError: 6,
    errors.BankError: 5,
    errors.EmbedderError: 8,
    errors.ModelError: 8,
    errors.AccessError: 9,
    errors.ArchivistError: 1,
}
# An OSError names a file and a reason, but not what to do.
_CLOSED = "check that it exists, that its permissions allow it, and that the disk is not full"
# Longer than any first sentence of a command: Click would cut it.
_WHOLE = 500
# What Click, since 8.2, raises for a group without a command.
_BARE_GROUP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
# Servers handle signals themselves.
_SERVERS = ("serve", "open", "mcp", "worker")

# Heading → name → module and attribute, and its line of help: `--help` imports none of them.
GROUPS = {
    "Everyday": {
        "setup": ("setup:setup", "Learn from this repository's sessions and connect its clients."),
        "open": ("serve:open_", "Open the bank's pages in a browser."),
        "brief": ("brief:brief", "Print what a new run should know."),
        "recall": ("recall:recall", "Search the bank."),
        "lessons": ("lessons:lessons", "List, show, add, edit and forget lessons."),
        "capture": ("runs:capture", "Import agent logs."),
        "reflect": ("runs:reflect", "Learn from captured runs."),
        "doctor": ("banks:doctor", "Check the bank; rebuild its index."),
        "install": ("install:install", "Install hooks and MCP server into a client."),
        "uninstall": ("install:uninstall", "Remove hooks and MCP server from a client."),
    },
    "For orchestrators": {
        "run": ("runs:run", "Start and finish a run: the two calls that an orchestrator makes."),
        "tasks": ("tasks:tasks", "Plan tasks, work on them with worker commands, see what each agent does."),
        "audit": ("lessons:audit", "Report whether briefed lessons helped."),
        "episodes": ("layers:episodes", "List and show runs and attempts; log attempts."),
        "extract": ("runs:extract", "Learn from a run's review findings."),
        "inject": ("brief:inject", "Print the known issues of a domain."),
        "audit-check": ("lessons:check", "Judge the lessons that a run was given."),
        "decay": ("runs:decay", "Age the bank by a finished run."),
        "tools": ("serve:tools", "Print the tool schemas for a provider; call a tool."),
        "serve": ("serve:serve", "Serve the bank over HTTP."),
        "worker": ("team:worker", "Learn from captured runs as they come, beside other workers."),
        "sync": ("team:sync", "Send this machine's sessions to a team's server."),
        "mcp": ("serve:mcp", "Serve the memory to MCP clients, over stdio or HTTP."),
        "token": ("serve:token", "Create, list and revoke access tokens."),
    },
    "Agents' shared memory": {
        "core": ("core:core", "Show and change the blocks that are always in context."),
        "proposals": ("core:proposals", "Propose changes of playbook and rules, and decide on them."),
        "working": ("core:working", "Read and write the acting agent's working memory."),
        "stream": ("tiers:stream", "Log what agents do, cycle by cycle, and search it."),
        "archive": ("tiers:archive", "Store and search long texts, and watch folders."),
        "knowledge": ("layers:knowledge", "Store and find facts; decide conflicts."),
        "artifacts": ("layers:artifacts", "Register files that runs produced, and verify them."),
    },
    "Workspace": {
        "workspace": ("workspace:workspace", "Read, check and write the markdown memory of a workspace.")
    },
    "Upkeep": {
        "init": ("banks:init", "Make a bank for this project."),
        "trust": ("trust:trust", "Look at a bank that you did not make here, and accept it."),
        "status": ("banks:status", "Count the records in the bank."),
        "config": ("config:config", "Show settings and where each comes from; set and unset them."),
        "model": ("model:model", "Allow and try a language model for reflection, and show what it spends."),
        "undo": ("banks:undo", "Undo the last change of a record."),
        "erase": ("banks:erase", "Erase records or a text everywhere, with a receipt."),
        "prune": ("banks:prune", "Delete old runs that no lesson cites."),
        "export": ("banks:export", "Write the bank as JSON lines."),
        "import": ("banks:import_", "Import JSON lines."),
        "share": ("banks:share", "Synchronise the bank with a folder in git."),
        "ledger": ("banks:ledger", "List who changed what and when."),
        "verify": ("banks:verify", "Check the ledger and every record against it."),
        "backup": ("store:backup", "Copy the bank into a file, while others write."),
        "restore": ("store:restore", "Put a backup in the bank's place."),
        "salvage": ("store:salvage", "Copy what a damaged bank still holds into a new one."),
        "store": ("store:store", "Keep banks on a PostgreSQL server; move one there and back."),
        "completion": ("banks:completion", "Print the completion script for a shell."),
    },
}
# `hook` is called by clients only, and the cross-run document's short names stand for others.
_UNLISTED = {
    "hook": ("install:hook", "Answer a client's hook."),
    "add": ("lessons:add", "Add a lesson: short for lessons add."),
    "list": ("lessons:list_", "List lessons: short for lessons list."),
    "forget": ("lessons:forget", "Archive lessons: short for lessons forget."),
}
HIDDEN = frozenset(_UNLISTED)
COMMANDS = {name: entry for table in (*GROUPS.values(), _UNLISTED) for name, entry in table.items()}
# Words that other programs have for what ours do.
_MEANINGS = {
    **dict.fromkeys(("search", "find", "query", "ask", "grep"), "recall"),
    **dict.fromkeys(("learn", "mine", "distill"), "reflect"),
    **dict.fromkeys(("ingest", "load", "read", "log", "logs"), "capture"),
    **dict.fromkeys(("context", "prompt", "tell", "summary"), "brief"),
    **dict.fromkeys(("remember", "note", "save"), "lessons add"),
    **dict.fromkeys(("ls", "memories"), "lessons list"),
    **dict.fromkeys(("show", "get"), "lessons show"),
    **dict.fromkeys(("delete", "rm"), "erase"),
    **dict.fromkeys(("check", "health", "diagnose"), "doctor"),
    **dict.fromkeys(("connect", "hooks", "enable"), "install"),
    **dict.fromkeys(("disconnect", "disable", "remove"), "uninstall"),
    **dict.fromkeys(("start", "begin"), "run start"),
    **dict.fromkeys(("finish", "end", "stop"), "run finish"),
    **dict.fromkeys(("server", "http"), "serve"),
    **dict.fromkeys(("web", "ui", "page", "dashboard", "browser"), "open"),
    **dict.fromkeys(("settings", "set"), "config"),
    **dict.fromkeys(("push", "upload", "send", "login"), "sync"),
    **dict.fromkeys(("stats", "info"), "status"),
    **dict.fromkeys(("runs", "sessions"), "episodes"),
    **dict.fromkeys(("agents", "doing", "who"), "tasks activity"),
    **dict.fromkeys(("history", "changes", "blame"), "ledger"),
    **dict.fromkeys(("todo", "plan", "orchestrate"), "tasks"),
    **dict.fromkeys(("why", "explain"), "brief --explain"),
    "version": "--version",
    "memory": "lessons",
    "facts": "knowledge",
}


# Likewise for options.
_OPTION_MEANINGS = {
    "--fix": "each warning says what mends it; --reindex rebuilds what is derived from the records",
    "--repair": "each warning says what mends it; --reindex rebuilds what is derived from the records",
    "--force": "--yes answers questions",
}
# Options that some commands call otherwise.
_OTHER_NAMES = {
    "--limit": ("--max", "--max N says how many"),
    "--text": ("--summary", "--summary TEXT rewords it"),
}


class _SignalError(BaseException):
    """A signal, whose number it holds, ended the command; like KeyboardInterrupt it only unwinds."""


def _unwind_on_signals(ctx: click.Context) -> None:
    """Turn SIGTERM and SIGHUP into an exception, so that locks and files are released."""
    import signal
    from threading import current_thread, main_thread

    def end(number: int, _frame: object) -> None:
        # A second signal kills at once.
        signal.signal(number, signal.SIG_DFL)
        raise _SignalError(number)

    # Windows has no SIGHUP.
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    for number in known if current_thread() is main_thread() else ():
        # Signals that the caller ignores stay ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
            ctx.call_on_close(partial(signal.signal, number, signal.SIG_DFL))


class CommandGroup(click.Group):
    """A group that suggests the nearest command for an unknown one; alone it runs its default, if any."""

    # What other programs call what is done here.
    meanings: Mapping[str, str] = {}

    def __init__(self, *words: Any, default: str = "", **options: Any) -> None:
        super().__init__(*words, **options)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read a group without a word as its default command."""
        return super().parse_args(ctx, args or ([self.default] if self.default else []))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command of the group by letters or meaning, else one beside it that is called so."""
        word, known = args[0], self.list_commands(ctx)
        if word not in known and not word.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(word, [*known, *self.meanings], n=1)
            meant = self.meanings.get(near[0], near[0]) if near else f"archivist {word}"
            is_found = bool(near) or word in COMMANDS
            hint = f"did you mean {meant!r}?" if is_found else f"{ctx.command_path} --help lists the commands"
            raise click.UsageError(f"no command {word!r}\nhint: {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """A group with a table of commands that are imported when they are called, after those of its own."""

    def __init__(
        self,
        *words: Any,
        table: Mapping[str, tuple[str, str]],
        groups: Mapping[str, Sequence[str]] | None = None,
        meanings: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*words, **options)
        self.table = table
        self.groups = groups or {"Commands": tuple(table)}
        self.meanings = meanings or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `help X` as `X --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands in their order, not alphabetically."""
        return [*self.commands, *self.table]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, imported if it is in the table."""
        if name not in self.table:
            return super().get_command(ctx, name)
        module, _, attribute = self.table[name][0].partition(":")
        command: click.Command = getattr(import_module(f"archivist.edges.cli.{module}"), attribute)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        own = [(name, command.get_short_help_str(_WHOLE)) for name, command in self.commands.items()]
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([*own, *((name, self.table[name][1]) for name in names)])
                own = []


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    groups=GROUPS,
    meanings=_MEANINGS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--bank", metavar="PATH", envvar="ARCHIVIST_BANK", help="Project folder or bank file.")
@click.option("--actor", metavar="WHO", envvar="ARCHIVIST_ACTOR", help="Who acts: kind[:name[:role]].")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Override a setting for this call.")
@click.version_option(__version__, "-v", "-V", "--version", prog_name="archivist")
@click.pass_context
def cli(ctx: click.Context, bank: str | None, actor: str | None, flags: tuple[str, ...]) -> None:
    """A memory that lets coding agents learn from their own runs."""
    from archivist.edges.cli.session import Session

    if flags:
        from archivist.config.sources import check_flags

        check_flags(flags)
    if ctx.invoked_subcommand not in _SERVERS:
        _unwind_on_signals(ctx)
    ctx.obj = Session(bank or "", actor or "", flags)


def run(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the code of its result or error."""
    # Write UTF-8 whatever the locale is, and replace closed streams by the null device.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(encoding="utf-8", errors="replace")
    try:
        result: Any = cli.main(args=None if argv is None else list(argv), standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except errors.ArchivistError as error:
        code = _report_error(error.message, error.hint, exit_code(error))
    except click.ClickException as error:
        # The help of a group is printed whole.
        clip = str if isinstance(error, _BARE_GROUP) else errors.without_middle
        vars(error)["message"] = clip(error.message) + _hint_option(error)
        # Without stderr the exit code still tells.
        try:
            error.show()
        except OSError:
            close_quietly(sys.stderr)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _report_error("interrupted", "", 130)
    except _SignalError as error:
        code = _report_error("ended by a signal", "", 128 + error.args[0])
    except (BrokenPipeError, SystemExit):
        # The reader of a pipe has closed it; nothing else lets Click exit.
        close_quietly(sys.stdout, sys.stderr)
        code = 0
    except (OSError, UnicodeEncodeError) as error:
        code = _report_unusable(error)
    gc.freeze()
    sys.exit(code)


def _report_unusable(error: OSError | UnicodeEncodeError) -> int:
    if isinstance(error, UnicodeEncodeError):
        # A name of bytes in no encoding: neither SQLite nor a text file can hold it.
        name = ascii(error.object[max(0, error.start - 40) : error.end + 40])
        return _report_error(f"{name} holds characters that are no UTF-8", "rename the file or folder", 4)
    close_quietly(sys.stdout)
    # Without a name it is the streams that fail, or the current folder.
    is_gone = not error.filename and isinstance(error, FileNotFoundError)
    where = repr(str(error.filename)) if error.filename else "the output"
    where = "the current folder, which was deleted," if is_gone else where
    hint = "go to a folder that exists" if is_gone else _CLOSED
    return _report_error(f"{where} cannot be used: {error.strerror or error}", hint, 5)


def _hint_option(error: click.ClickException) -> str:
    """Return a hint for an unknown option: where it stands, or what it is called."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    path, name = error.ctx.command_path, error.option_name
    own, of_all = (
        {each for option in command.params for each in option.opts}
        for command in (error.ctx.command, error.ctx.find_root().command)
    )
    hint = "" if error.possibilities else _OPTION_MEANINGS.get(name, f"{path} --help lists the options")
    meant, meaning = _OTHER_NAMES.get(name, ("", ""))
    if name in of_all or meant in own:
        program, *words = path.split()
        stands = f"it stands before the command: {' '.join([program, name, '…', *words])}"
        hint = stands if name in of_all else meaning
        # What is spelt like it means something else.
        vars(error)["possibilities"] = []
    return f"\nhint: {hint}" if hint else ""


def _report_error(message: str, hint: str, code: int) -> int:
    note(f"archivist: {message}")
    if hint:
        note(f"hint: {hint}")
    return code


def exit_code(error: errors.ArchivistError) -> int:
    """Return the exit code of an error's class, or of the nearest class above it."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
