"""Leave out of a brief the commands and failures that a person does not want told."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archivist.records.words import Status
from archivist.store.filters import at_least, equals, one_of

if TYPE_CHECKING:
    from archivist.brief.works import Habits
    from archivist.store.protocol import Reader

# The kind of key of a lesson that only says which command is told no more.
SILENCED = "silenced:"


def read_habits(reader: "Reader", project: str) -> "Habits":
    """Return what works in a project and what often fails in it, as far as a person wants it told."""
    from archivist.brief.works import find_habits
    from archivist.projects import names_of

    names = names_of(reader, project)
    return leave_silenced(reader, names, find_habits(reader, names))


def leave_silenced(reader: "Reader", names: Sequence[str], habits: "Habits") -> "Habits":
    """Leave out the calls that a person silenced, and failures that a forgotten lesson cites."""
    if not (habits.works or habits.fails):
        return habits
    forgotten = reader.select_fields(
        "lesson",
        ("signature", "evidence"),
        one_of("repo", names),
        equals("status", Status.ARCHIVED),
        at_least("frequency", 1),
    )
    families = {str(signature).partition("|")[2] for signature, _ in forgotten}
    cited = {event for _, evidence in forgotten for event in json.loads(evidence).get("events") or ()}
    return habits._replace(
        works=tuple(each for each in habits.works if f"{SILENCED}{each.command}" not in families),
        fails=tuple(
            each
            for each in habits.fails
            if f"{SILENCED}{each.call}" not in families and cited.isdisjoint(each.events)
        ),
    )
