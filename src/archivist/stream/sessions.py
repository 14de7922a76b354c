"""Sessions as cycles: what the entry of a session says, and what recurs in such entries.

A session's entry has lines of known form, one thing each, so that what recurs is counted and not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from archivist.records import Entry, Episode, EpisodeStatus
from archivist.text import shorten_line

# Marks the entries that were logged for a session.
SESSION = "session"
HELPED, FAILED, CHANGED, WISHED = "What helped", "Failed", "Changed", "Wished"
# As entries of before say it.
_FORMER = {HELPED: "Helped"}
_ACTION_CHARACTERS = 160
_LINE_CHARACTERS = 240
_IMPORTANCE = {EpisodeStatus.FAILED: 7, EpisodeStatus.ABORTED: 6, EpisodeStatus.PARTIAL: 6}
# A task can begin with what a client put before it, and a plan with a line that says no more.
_PREAMBLE = re.compile(
    r"\A\s*(?:(?:\[Request interrupted[^\]]*\]|# AGENTS\.md instructions[^\n]*+)\s*+)?"
    r"<([\w-]+)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_HEADING = re.compile(r"^#{1,3}\s+(?:(?:Plan|Task|Fix)\s*[:—-]\s*)?(\S.*)$", re.MULTILINE)
_COMMAND = re.compile(r"\A/\w+\s*\Z")
_SAID = "the user said: "
_WISH = "The user's wish: "
_CHANGED_FILE = "changed "
_COUNTS = re.compile(r"\s{0,8}\((?:helped|worked|seen) [^()]{0,200}\)\s{0,8}\Z")
# How often something went well is no advice.
_WORKED = re.compile(r"\A`[^`]*` worked \d+ times?\Z")
_FAILED_OF = re.compile(r"\A`(?P<what>[^`]*)` failed (?P<bad>\d+) of (?P<all>\d+) times?\Z")
_CODE = re.compile(r"`([^`]+)`")
# What two sessions met may be a coincidence where nothing helped; a remedy that worked twice is advice.
_LEAST_CYCLES = 3
_LEAST_HELPED = 2
_LEAST_FILE_SHARE = 0.2
_MOST_OF_A_KIND = 2
_SHOWN_FILES = 3


class SessionPattern(NamedTuple):
    """Something that recurs in sessions: what is said of it, and the entries that show it."""

    kind: str
    title: str
    sentences: tuple[str, ...]
    cluster: tuple[Entry, ...]


def describe_session(episode: Episode, notes: Mapping[str, object]) -> tuple[str, str]:
    """Return what a session did in a line, and what reflection noted of it, one thing a line."""
    said = [line.removeprefix(_SAID) for line in _lines(notes, "decisions") if line.startswith(_SAID)]
    task = episode.task
    while preamble := _PREAMBLE.match(task):
        task = task[preamble.end() :]
    task = task.strip()
    heading = _HEADING.search(task)
    first = heading[1] if heading else next(iter(task.splitlines()), "")
    if not first or _COMMAND.match(first):
        first = next(iter(said), first)
    lines = []
    for line in _lines(notes, "worked"):
        if line.startswith(_WISH):
            lines.append(f"{WISHED}: {line.removeprefix(_WISH)}")
        elif not _WORKED.match(line):
            lines.append(f"{HELPED}: {line}")
    lines += [f"{FAILED}: {line}" for line in _lines(notes, "failed")]
    files = [
        line.removeprefix(_CHANGED_FILE)
        for line in _lines(notes, "decisions")
        if line.startswith(_CHANGED_FILE)
    ]
    lines += [f"{CHANGED}: {', '.join(files)}"] if files else []
    status = episode.status.value.capitalize()
    action = shorten_line(" ".join(first.split()), _ACTION_CHARACTERS)
    return action or f"Session {status.lower()}", "\n".join((f"{status}.", *lines))


def session_importance(episode: Episode) -> int:
    """Return how important a session is: one that failed more than one that went well."""
    return _IMPORTANCE.get(episode.status, 5)


def session_patterns(entries: Sequence[Entry]) -> list[SessionPattern]:
    """Return what recurs in sessions, what helps first: failures with a remedy, wishes, failures, files."""
    sessions = [entry for entry in entries if SESSION in entry.tags]
    cycles = len({entry.cycle for entry in sessions})
    helped = _group(sessions, HELPED, lambda line: _COUNTS.sub("", line))
    wished = _group(sessions, WISHED, str)
    failed = _group(sessions, FAILED, _failing)
    # A failure that has a remedy is told with it, and a command with the error that is known of it.
    told = [*helped, *(what for what in failed if "`" in what)]
    codes = {code for line in told for code in _CODE.findall(line)[:1]}
    cured = {code for line in helped for code in _CODE.findall(line)[:1]}
    open_ones = {}
    for what, cluster in failed.items():
        # What fails is what a command is about: its first words, or a lesson that begins with it.
        known = cured if "`" in what else codes
        if not any(f"{code} ".startswith(f"{what} ") or what.startswith(f"`{code}`") for code in known):
            open_ones[what] = cluster
    found = []
    for line, cluster in _most(helped, _LEAST_HELPED):
        found.append(_pattern("remedy", line, cluster, cycles, "this helped"))
    for line, cluster in _most(wished, _LEAST_HELPED):
        found.append(_pattern("wish", f"the user wished: {line}", cluster, cycles, "in the user's own words"))
    for what, cluster in _most(open_ones, _LEAST_CYCLES):
        # A lesson says itself what fails; a count has only the command.
        title = what if "`" in what or " tool " in what else f"`{what}` keeps failing"
        found.append(_pattern("trouble", title, cluster, cycles, "no remedy is noted"))
    return [*found, *_hot_files(sessions, cycles)]


def _hot_files(sessions: Sequence[Entry], cycles: int) -> list[SessionPattern]:
    """Return the files that many sessions changed, as one pattern."""
    by_file: dict[str, list[Entry]] = {}
    for entry in sessions:
        for line in _lines_of(entry, CHANGED):
            for file in dict.fromkeys(_CODE.findall(line)):
                by_file.setdefault(file, []).append(entry)
    least = max(_LEAST_CYCLES, _LEAST_FILE_SHARE * cycles)
    if not (hot := _most(by_file, least, _SHOWN_FILES)):
        return []
    told = "; ".join(f"`{file}` in {len(cluster)} of {cycles} cycles" for file, cluster in hot)
    tasks = "; ".join(f"“{entry.action}” (cycle {entry.cycle})" for entry in hot[0][1][-_SHOWN_FILES:])
    title = f"read `{hot[0][0]}` first: work keeps returning to it"
    return [SessionPattern("files", title, (f"Changed: {told}.", f"Last for: {tasks}."), tuple(hot[0][1]))]


def _pattern(kind: str, title: str, cluster: Sequence[Entry], cycles: int, label: str) -> SessionPattern:
    latest = cluster[-1]
    often = f"{label.capitalize()}; met in {len(cluster)} of {cycles} cycles since cycle {cluster[0].cycle}."
    last = f"Last in cycle {latest.cycle}, “{latest.action}”."
    return SessionPattern(kind, shorten_line(title, _LINE_CHARACTERS), (often, last), tuple(cluster))


def _group(sessions: Sequence[Entry], mark: str, key: Callable[[str], str]) -> dict[str, list[Entry]]:
    """Return the entries of each thing that lines of a mark name, in order, each entry once."""
    found: dict[str, dict[str, Entry]] = {}
    for entry in sessions:
        for line in _lines_of(entry, mark):
            found.setdefault(key(line), {})[entry.id] = entry
    return {what: list(cluster.values()) for what, cluster in found.items()}


def _most(
    groups: Mapping[str, list[Entry]], least: float, shown: int = _MOST_OF_A_KIND
) -> list[tuple[str, list[Entry]]]:
    """Return the groups with enough entries, the largest first, a few of them."""
    enough = [(what, cluster) for what, cluster in groups.items() if what and len(cluster) >= least]
    return sorted(enough, key=lambda item: (-len(item[1]), item[0]))[:shown]


def _failing(line: str) -> str:
    """Return what failed: of a count the command alone, of a lesson its words."""
    found = _FAILED_OF.match(line)
    return found["what"] if found else _COUNTS.sub("", line)


def _lines_of(entry: Entry, mark: str) -> list[str]:
    marks = mark, _FORMER.get(mark)
    lines = (line.partition(": ") for line in entry.content.splitlines())
    return [said for start, _, said in lines if said and start in marks]


def _lines(notes: Mapping[str, object], name: str) -> list[str]:
    said = notes.get(name)
    if not isinstance(said, list | tuple):
        return []
    return [shorten_line(" ".join(str(line).split()), _LINE_CHARACTERS) for line in said]
