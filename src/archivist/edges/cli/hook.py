"""The command that clients call; here for its help, and for calls that name a bank first."""

from __future__ import annotations

import click

from archivist.edges.cli.output import json_option
from archivist.edges.cli.session import Session


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [EVENT]")
@json_option
@click.pass_obj
def hook(session: Session, words: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Answer the event of a client on stdin, in its own JSON; what went wrong, `archivist doctor` tells.

    CLIENT is claude-code, codex, cursor, gemini or vscode. EVENT is session-start, prompt, tool-failure,
    subagent-start, stop or session-end, or the client's own name for it; without it the event names itself.
    A hook never blocks and always exits 0.
    """
    from archivist.edges.hooks.dispatch import answer_hook

    # Words that are off are noted too: to a client an exit code may mean that it must stop.
    answer_hook(words, bank=session.bank_path)
