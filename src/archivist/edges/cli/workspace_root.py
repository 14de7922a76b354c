"""What every workspace command needs: its root, its bank, and how problems are reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import note
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.files_service import Topology

root_option = click.option(
    "--root", metavar="FOLDER", type=click.Path(exists=True, file_okay=False), help="The workspace's root."
)
scope_option = click.option(
    "--scope", metavar="SCOPE", default="", help="WORKSPACE[/DOMAIN[/REPOSITORY]]; without it all."
)


def find_topology(session: Session, root: str | None) -> Topology:
    """Return the files of a root: the named one, else the nearest upwards, else the bank's project."""
    from archivist.paths import bank_file, project_folder
    from archivist.workspace.files_service import Topology, find_root

    bank_path = session.find_bank_path()
    rules = session.load_settings(bank_path).config.workspace
    if root:
        return Topology(Path(root), rules)
    here = Path.cwd()
    nearest = find_root(here, rules) or next(
        (
            folder
            for folder in (here, *here.parents)
            if any((folder / name).is_dir() for name in (rules.hot, rules.transcripts))
        ),
        None,
    )
    if nearest is None and bank_path is not None:
        nearest = project_folder(bank_file(bank_path))
    return Topology(nearest or here, rules)


def require_bank(session: Session) -> Bank:
    """Open the project's bank; without one, the error names the commands that need it."""
    from archivist.errors import NoBankError

    try:
        return session.bank()
    except NoBankError as error:
        error.hint = (
            f"{error.hint}; of archivist workspace, only search, drafts, transcripts and `hot promote m-001`"
            " need one"
        )
        raise


def note_problems(problems: Sequence[object], hint: str = "", *, most: int = 10) -> None:
    """Print problems on stderr, at most a few, and a hint."""
    for problem in problems[:most]:
        note(f"archivist: {problem}")
    if len(problems) > most:
        note(f"archivist: … and {len(problems) - most} more")
    if problems and hint:
        note(f"hint: {hint}")
