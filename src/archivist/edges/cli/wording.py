"""The wording that commands share: numbers, shortened texts, the fields of a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.clock import to_short_text
from archivist.edges.views import pick
from archivist.records.run_words import TYPED, EventKind
from archivist.text import escape_name, shorten, shorten_line
from archivist.text import pluralize as pluralize

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.capture.service import CaptureResult
    from archivist.errors import InputError
    from archivist.records import Episode, Event

# Of a command, and of the end of its output.
_QUOTED_LINES = 6
_QUOTED_CHARACTERS = 160
_TASK_CHARACTERS = 100
# The lists of a run's account.
_ACCOUNT = {
    "What worked": "worked",
    "What failed": "failed",
    "Key decisions": "decisions",
    "Left open": "left_open",
}


def field_lines(fields: Iterable[tuple[str, object]], width: int = 12) -> list[str]:
    """Return the fields of one record, one on each line; empty ones are left out."""
    lines = []
    for name, value in fields:
        text = to_short_text(value) if isinstance(value, datetime) else value
        text = ", ".join(text) if isinstance(text, tuple | list) else text
        if text not in ("", None):
            lines.append(f"  {name.replace('_', ' '):<{width}}{text}")
    return lines


def short_repos(names: Iterable[str]) -> dict[str, str]:
    """Return repositories without their owners, where that leaves them apart."""
    full = set(names)
    owned = Counter(name.rpartition("/")[2] for name in full)
    return {name: last if owned[last := name.rpartition("/")[2]] < 2 else name for name in full}


def waiting_notes(waiting: int, shown_by: str = "archivist lessons list --waiting") -> list[str]:
    """Return how to see the lessons that wait for approval, if there are any."""
    verb = "waits" if waiting == 1 else "wait"
    return [f"{pluralize(waiting, 'lesson')} {verb} for approval: {shown_by}"] if waiting else []


def name_problem(path: Path, error: InputError) -> str:
    """Return what is wrong with a file, which is named once."""
    if str(path) in error.message:
        return error.message
    # Formats know no more than the file's last name.
    own = f"{path.name!r} "
    if error.message.startswith(own):
        return f"{escape_name(path)} {error.message.removeprefix(own)}"
    return f"{escape_name(path)}: {error.message}"


def unread_notes(taken: CaptureResult) -> list[str]:
    """Say what could not be read in a log, and what could; nothing if the bank knows more of the run."""
    if not taken.reasons or taken.shorter:
        return []
    events = pluralize(taken.events, "event")
    was_read = (
        f"its {events} {'was' if taken.events == 1 else 'were'} read; left out: " if taken.events else ""
    )
    return [f"{taken.file}: {was_read}{reason}" for reason in taken.reasons]


def approval_notes(quarantined: int) -> list[str]:
    """Return how to see the quarantined lessons, if there are any."""
    from archivist.doctor import SHOW_QUARANTINED

    return waiting_notes(quarantined, SHOW_QUARANTINED)


def retired_notes(bank: Bank) -> list[str]:
    """Say which lessons are no longer told although runs go on to meet their failure."""
    return [f"{each.lesson} is no longer told: {each.reason}" for each in bank.audits.retired_again()]


def apart_notes(bank: Bank, repo: str) -> list[str]:
    """Say which repositories were left out, and how to ask for them."""
    from archivist.recall.query import Query

    others = sorted(bank.searches.keep_apart(Query(repo=repo)).other_repos)
    names = shorten_line(", ".join(others), _TASK_CHARACTERS)
    return [f"without other repositories ({names}): --repo '*'"] if others else []


def call_lines(event: Event, word: str, message: str) -> list[str]:
    """Return what a run did and what came of it: its command, and of the output what shows a message.

    Of a message its words, who said them and when.
    """
    from archivist.lessons.support import quote_output

    said = event.text.strip().splitlines()
    quoted = said[:_QUOTED_LINES] + ["…"] * (len(said) > _QUOTED_LINES)
    answered = quote_output(event.output, message, _QUOTED_LINES)
    code = f", exit code {event.exit_code}" if event.exit_code else ""
    is_said = event.kind is EventKind.MESSAGE
    lines = [
        *(f"  {'>' if is_said else '$'} {line}" for line in quoted),
        *(f"    {line}" for line in answered),
    ]
    if is_said:
        code = f" by {'the user' if event.extra.get(TYPED) else event.role or event.agent or 'an agent'}"
        code += f", {to_short_text(event.time)}" if event.time else ""
    return ["", f"{word} in {event.id}{code}", *(shorten(line, _QUOTED_CHARACTERS) for line in lines)]


def account_lines(episode: Episode) -> list[str]:
    """Return the story of a run; of an attempt, what was tried and its outcome."""
    if episode.action:
        return [f"{episode.id}  {episode.action}: {episode.approach}", *filter(None, [episode.outcome])]
    lines = [f"{episode.id}  {episode.summary or episode.task}"]
    reflection = episode.extra.get("reflection")
    told = reflection if isinstance(reflection, Mapping) else {}
    for heading, key in _ACCOUNT.items():
        if told.get(key):
            lines += ["", heading, *(f"  - {line}" for line in told[key])]
    return lines


def episode_lines(episode: Episode) -> list[str]:
    """Return a run as lines: its story first, then what is known of it."""
    lines = account_lines(replace(episode, action=None))
    known = replace(episode, task=shorten_line(episode.task, _TASK_CHARACTERS))
    names = "status kind project task agent provider model tags parent session started finished"
    fields = list(pick(known, names).items())
    if episode.usage:
        spent = episode.usage
        # A log that states no cost may well have had one.
        cost = f", ${spent.cost_usd:.2f}" if spent.cost_usd else ""
        if spent.input_tokens or spent.output_tokens or cost:
            fields.append(("usage", f"{spent.input_tokens} tokens in, {spent.output_tokens} out{cost}"))
        if spent.efficiency is not None:
            fields.append(("efficiency", f"{spent.efficiency:.0%} of the tool calls did not fail"))
    return [*lines, "", *field_lines(fields)]
