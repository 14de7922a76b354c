"""Find the root that a command about a workspace works on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.files_service import Topology

F = TypeVar("F", bound=Callable[..., Any])

root_option = click.option(
    "--root", metavar="FOLDER", type=click.Path(exists=True, file_okay=False), help="The workspace's root."
)
scope_option = click.option(
    "--scope", metavar="SCOPE", default="", help="WORKSPACE[/DOMAIN[/REPOSITORY]]; without it all."
)


def find_topology(session: Session, root: str | None) -> Topology:
    """Return the files of the root: as named, else the nearest upwards that is one, else the bank's."""
    from archivist.paths import bank_file, project_folder
    from archivist.workspace.files_service import Topology, find_root

    place = session.find_bank_path()
    rules = session.load_settings(place).config.workspace
    if root:
        return Topology(Path(root), rules)
    here = Path.cwd()
    nearest = find_root(here, rules)
    if nearest is None:
        folders = (rules.hot, rules.transcripts)
        nearest = next(
            (each for each in (here, *here.parents) if any((each / name).is_dir() for name in folders)), None
        )
    if nearest is None and place is not None:
        nearest = project_folder(bank_file(place))
    return Topology(nearest or here, rules)


def require_bank(session: Session) -> Bank:
    """Open the project's bank for a command that cannot do without; where there is none, say which can."""
    from archivist.errors import NoBankError

    try:
        return session.bank()
    except NoBankError as error:
        error.hint = (
            f"{error.hint}; of archivist workspace, only search, drafts, transcripts and `hot promote m-001`"
            " need one"
        )
        raise
