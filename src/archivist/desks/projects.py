"""Work on projects: which ones a bank knows, and which one a name means."""

from __future__ import annotations

from archivist.stores.filters import equals
from archivist.stores.protocol import Reader


def known(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs."""
    return {str(row[0]) for row in reader.select_fields("episode", ("project",))} - {""}


def only(reader: Reader) -> str:
    """Return the project of the bank's runs when there is only one, else an empty text."""
    projects = known(reader)
    return projects.pop() if len(projects) == 1 else ""


def named(reader: Reader, name: str) -> str:
    """Return the project that a name means: itself, or the only one whose last part it is."""
    if reader.select_fields("lesson", ("id",), equals("repo", name), limit=1):
        return name
    if reader.select_fields("episode", ("id",), equals("project", name), limit=1):
        return name
    every = known(reader) | {str(row[0]) for row in reader.select_fields("lesson", ("repo",))}
    like = [each for each in every if each.rsplit("/", 1)[-1].lower() == name.lower()]
    return like[0] if len(like) == 1 else name
