"""Say why an edit was refused: the white space that begins its lines is wrong, or it changes several files.

A patch over several files is dropped whole if one part of it does not fit. A file's lines are known from what
the run saw of it: what a read printed, and the texts of other edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall

TABS = "tabs"
SPACES = "spaces"
SEVERAL = "several files"
# How many calls around a refused edit may have shown the file, and how many lines are compared.
_REACH = 300
_MOST_LINES = 2_000
# How clients number the lines of a file that they print.
_NUMBERED = lazy_pattern(r"\s{0,8}\d{1,7}(?:→|\t|: |\| ?)")
# A brace alone stands at many depths.
_SHORTEST_LINE = 4


def edit_slip(calls: Sequence[ToolCall], refused: ToolCall) -> str:
    """Return what a refused edit got wrong, as far as the run shows it: tabs, spaces, several files."""
    several = SEVERAL if len({change.file for change in refused.changes}) > 1 else ""
    asked = [line for change in refused.changes for line in change.old.splitlines() if line.strip()]
    shown: dict[str, set[str]] = {}
    for line in _seen_lines(calls, refused) if asked else ():
        shown.setdefault(line.strip(), set()).add(line[: len(line) - len(line.lstrip())])
    if any(line.strip() not in shown for line in asked):
        return several
    wrong = [
        places
        for line in asked
        if len(text := line.strip()) >= _SHORTEST_LINE
        and line[: len(line) - len(line.lstrip())] not in (places := shown[text])
    ]
    if not wrong:
        return several
    return TABS if any("\t" in place for places in wrong for place in places) else SPACES


def _seen_lines(calls: Sequence[ToolCall], refused: ToolCall) -> Iterator[str]:
    """Yield the lines of the file as other calls around the refused one show it."""
    left = _MOST_LINES
    for act in calls[max(0, refused.at - _REACH) : refused.at + _REACH]:
        if left <= 0 or act.has_failed or act.event.target != refused.event.target:
            continue
        if act.changes:
            texts = [text for change in act.changes for text in (change.old, change.new)]
        else:
            texts = [act.event.output] if act.is_look else []
        for line in (line for text in texts for line in text.splitlines()[:left]):
            number = _NUMBERED.match(line) if not act.changes else None
            yield line[number.end() :] if number else line
            left -= 1
