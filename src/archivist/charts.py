"""Draw charts as SVG text: the audit report, success rates, and the graph of a workspace.

Every chart has a title and a description for screen readers, and no chart relies on colour alone: lines also
differ in their dashes and markers, nodes in their shape and their label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from archivist.audit.analytics import Analytics
from archivist.audit.lift import LiftConclusion, wilson
from archivist.audit.report import ReportRow
from archivist.workspace.graph import (
    Entity,
    EntityKind,
    Graph,
    Label,
    Relation,
    RelationKind,
    labels,
    top_subgraph,
)

WIDTH, HEIGHT = 720, 360
MAX_NODES = 60
_COLOURS = ("#0b6fa4", "#b8501a", "#4a7c2a", "#7a3b9c")
_DASHES = ("", "6 4", "2 3", "8 3 2 3")
_INK, _PALE, _GRID = "#222", "#666", "#e2e2e2"
_TOP = 84
_MAX_PERIODS = 60
_MAX_PERIOD_LABELS = 6

# The value of one period with its lower and upper bound.
Point = tuple[float, float, float]


def _image(title: str, description: str, width: int, height: float, body: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc" '
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif">'
    )
    meta = (
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(description)}</desc>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    )
    return "\n".join((head, *meta, *body, "</svg>\n"))


def _text(
    x: float, y: float, words: str, *, size: int = 11, colour: str = _INK, anchor: str = "", weight: str = ""
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'


def _heading(title: str, caption: str, size: int = 17) -> list[str]:
    return [_text(20, 26, title, size=size, weight="bold"), _text(20, 46, caption, size=12, colour=_PALE)]


@dataclass(frozen=True, slots=True)
class _Series:
    """One line of a panel: a point for each period, or None where nothing is known."""

    label: str
    points: Sequence[Point | None]
    style: int = 0
    has_band: bool = True


@dataclass(frozen=True, slots=True)
class _Panel:
    """An area with a percent axis on the left and periods below."""

    left: float
    right: float
    top: float
    floor: float
    periods: Sequence[str]

    def x_of(self, at: int) -> float:
        return self.left + (self.right - self.left) * ((at + 0.5) / max(1, len(self.periods)))

    def y_of(self, share: float) -> float:
        return self.floor - (self.floor - self.top) * share

    def draw(self, title: str, series: Sequence[_Series], ticks: Sequence[float]) -> list[str]:
        parts = [_text(self.left, self.top - 14, title, size=13, weight="bold")]
        for tick in ticks:
            y = self.y_of(tick)
            parts.append(
                f'<line x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>'
            )
            parts.append(_text(self.left - 6, y + 4, f"{tick:.0%}", colour=_PALE, anchor="end"))
        every = -(-len(self.periods) // _MAX_PERIOD_LABELS) or 1
        parts += [
            _text(self.x_of(at), self.floor + 18, name, colour=_PALE, anchor="middle")
            for at, name in enumerate(self.periods)
            if at % every == 0
        ]
        pieces = [(each, piece) for each in series for piece in _split_at_gaps(each.points)]
        parts += [self._draw_band(piece, _COLOURS[each.style]) for each, piece in pieces if each.has_band]
        for each, piece in pieces:
            parts += _draw_line(
                [(self.x_of(at), self.y_of(value)) for at, (value, _, _) in piece], each.style
            )
        return parts

    def _draw_band(self, piece: Sequence[tuple[int, Point]], colour: str) -> str:
        above = [(self.x_of(at), self.y_of(high)) for at, (_, _, high) in piece]
        below = [(self.x_of(at), self.y_of(low)) for at, (_, low, _) in reversed(piece)]
        if len(piece) == 1:
            (x, top), (_, bottom) = above[0], below[0]
            above, below = [(x - 5, top), (x + 5, top)], [(x + 5, bottom), (x - 5, bottom)]
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*above, *below))
        return f'<polygon points="{outline}" fill="{colour}" fill-opacity="0.13"/>'


def _split_at_gaps(points: Sequence[Point | None]) -> list[list[tuple[int, Point]]]:
    """Return the runs of known points: no line is drawn across a period without data."""
    pieces: list[list[tuple[int, Point]]] = [[]]
    for at, point in enumerate(points):
        if point is not None:
            pieces[-1].append((at, point))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _draw_line(points: Sequence[tuple[float, float]], style: int) -> list[str]:
    """Draw a line with a marker at each point; dashes and markers differ by style."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    colour, dash = _COLOURS[style], f' stroke-dasharray="{_DASHES[style]}"' if _DASHES[style] else ""
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dash}/>']
    look = f'fill="#fff" stroke="{colour}" stroke-width="1.8"'
    for x, y in points:
        if style == 0:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" {look}/>')
        elif style == 1:
            parts.append(f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" {look}/>')
        else:
            tip = -4.4 if style == 2 else 4.4
            base = f"{x - 4:.1f},{y - tip / 1.6:.1f} {x + 4:.1f},{y - tip / 1.6:.1f}"
            parts.append(f'<polygon points="{x:.1f},{y + tip:.1f} {base}" {look}/>')
    return parts


# The audit report

_PANELS = ((52, 344), (412, 704))
_MONTH = re.compile(r"\d{4}-\d{2}")
_CONCLUSIONS = {
    LiftConclusion.HELPS: "being told helps",
    LiftConclusion.HARMS: "being told harms",
    LiftConclusion.NOT_SHOWN: "no difference shown yet",
}


def draw_report_chart(line: ReportRow, title: str = "Did the lessons help?") -> str:
    """Return an SVG image of a report row over time: the helpful share, and failures told and withheld."""
    periods = line.periods[-_MAX_PERIODS:]
    names = [period.lesson for period in periods]
    by = "by month" if all(_MONTH.fullmatch(name) for name in names) else "by runs"
    helpful = [
        (period.share, *period.posterior.interval) if period.share is not None else None for period in periods
    ]
    arms = [period.lift.arms for period in periods]
    panels = (
        (f"Helpful share, {by}", [_Series("of judged lessons, with 95 % band", helpful)]),
        (
            f"Failure rate, {by}",
            [
                _Series("told", [_failure_rate(arm.told, arm.told_failed) for arm in arms]),
                _Series("withheld", [_failure_rate(arm.withheld, arm.withheld_failed) for arm in arms], 1),
            ],
        ),
    )
    body = _heading(title, _summarize_report(line))
    for (left, right), (heading, series) in zip(_PANELS, panels, strict=True):
        panel = _Panel(left, right, _TOP, HEIGHT - 56, names)
        body += panel.draw(heading, series, (0.0, 0.25, 0.5, 0.75, 1.0))
        x, y = float(left), HEIGHT - 14
        for each in series:
            dash = f' stroke-dasharray="{_DASHES[each.style]}"' if _DASHES[each.style] else ""
            body.append(
                f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{_COLOURS[each.style]}" '
                f'stroke-width="2.2"{dash}/>'
            )
            body.append(_text(x + 30, y, each.label))
            x += 46 + 6.4 * len(each.label)
    description = [_summarize_report(line)]
    for period in periods:
        rates = (
            ("helpful", period.share),
            ("fails told", period.lift.arms.rate_told),
            ("fails withheld", period.lift.arms.rate_withheld),
        )
        known = [f"{name} {value:.0%}" for name, value in rates if value is not None]
        if known:
            description.append(f"{period.lesson}: {', '.join(known)}.")
    return _image(title, " ".join(description), WIDTH, HEIGHT, body)


def _failure_rate(runs: float, failed: float) -> Point | None:
    return (failed / runs, *wilson(failed, runs)) if runs else None


def _summarize_report(line: ReportRow) -> str:
    if not line.judged_count:
        return "No verdicts yet."
    summary = f"Helpful {line.helpful} of {line.judged_count} times"
    arms = line.lift.arms
    if arms.rate_told is not None and arms.rate_withheld is not None:
        summary += f"; failures {arms.rate_told:.0%} when told, {arms.rate_withheld:.0%} when withheld"
        summary += f": {_CONCLUSIONS[line.lift.conclusion]}" if line.lift.interval else ""
    return f"{summary}."


# Success rates

_BAR_LEFT, _BAR_RIGHT, _BAR_ROW = 220, 560, 26
_FOOT, _PERIODS_HEIGHT = 40, 200
_MAX_ROWS = 15
_MAX_LINES = 4
_NAME_CHARACTERS = 30
_LEGEND_CHARACTERS = 20


def draw_rate_chart(found: Analytics, title: str = "What worked?") -> str:
    """Return an SVG image of success rates with their bounds, and over time where a period was asked for."""
    rows = found.rows[:_MAX_ROWS]
    floor = _TOP + _BAR_ROW * max(1, len(rows))
    height = floor + _FOOT + (_PERIODS_HEIGHT + _FOOT if found.step else 0)
    total = found.total
    summary = "Nothing has ended yet."
    if total.share is not None:
        ended = total.completed + total.failed
        summary = f"{total.completed} of {ended} attempts that ended worked, by {found.by.value}."
    body = _heading(title, summary)
    body.append(_text(_BAR_LEFT, _TOP - 14, "Success rate, with 95 % bounds", size=13, weight="bold"))
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _bar_x(tick)
        body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{floor}" stroke="{_GRID}"/>')
        body.append(_text(x, floor + 16, f"{tick:.0%}", colour=_PALE, anchor="middle"))
    for at, row in enumerate(rows):
        y = _TOP + _BAR_ROW * (at + 0.5)
        counts = f"{row.completed} of {row.completed + row.failed}"
        counts += f", {row.undecided_count} open" if row.undecided_count else ""
        body.append(_text(_BAR_LEFT - 12, y + 4, _fit_name(row.name, _NAME_CHARACTERS), anchor="end"))
        body.append(_text(_BAR_RIGHT + 14, y + 4, counts, colour=_PALE))
        if row.share is not None:
            low, high = row.interval
            span = f'x1="{_bar_x(low):.1f}" x2="{_bar_x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
            look = f'stroke="{_COLOURS[0]}" stroke-width="6" stroke-opacity="0.25" stroke-linecap="round"'
            body.append(f"<line {span} {look}/>")
            body.append(f'<circle cx="{_bar_x(row.share):.1f}" cy="{y:.1f}" r="4.5" fill="{_COLOURS[0]}"/>')
    if len(found.rows) > len(rows):
        body.append(_text(20, floor + 30, f"… and {len(found.rows) - len(rows)} more", colour=_PALE))
    if found.step:
        body += _draw_rate_periods(found, found.step.value, floor + _FOOT + 24, height - _FOOT)
    description = [summary]
    for row in found.rows:
        name = _fit_name(row.name, _NAME_CHARACTERS)
        if row.share is not None:
            low, high = row.interval
            description.append(f"{name}: {row.share:.0%} ({low:.0%} to {high:.0%}).")
        description += [
            f"{name} in {period.name}: {period.share:.0%}."
            for period in row.periods
            if period.share is not None
        ]
    return _image(title, " ".join(description), WIDTH, height, body)


def _fit_name(name: str, max_characters: int) -> str:
    """Return a name that fits; characters that XML does not allow become spaces."""
    text = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "(unknown)"
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"


def _bar_x(share: float) -> float:
    return _BAR_LEFT + (_BAR_RIGHT - _BAR_LEFT) * share


def _draw_rate_periods(found: Analytics, unit: str, top: float, floor: float) -> list[str]:
    """Draw the rates of the largest groups by period, with a legend below."""
    names = [period.name for period in found.total.periods][-_MAX_PERIODS:]
    left, right = 52.0, WIDTH - 16.0
    series, legend = [], []
    for at, row in enumerate(found.rows[:_MAX_LINES]):
        shares = {period.name: period.share for period in row.periods}
        points = [None if (share := shares.get(name)) is None else (share, share, share) for name in names]
        series.append(_Series(row.name, points, at, has_band=False))
        x = left + at * (right - left) / _MAX_LINES
        legend += _draw_line([(x, floor + 30), (x + 24, floor + 30)], at)
        legend.append(_text(x + 32, floor + 34, _fit_name(row.name, _LEGEND_CHARACTERS)))
    panel = _Panel(left, right, top, floor, names)
    return [*panel.draw(f"Success rate by {unit}", series, (0.0, 0.5, 1.0)), *legend]


# The graph of a workspace, in three columns: names stay readable, and a graph always gives the same picture.

_GRAPH_WIDTH = 1240
_GRAPH_TOP, _GRAPH_ROW, _GRAPH_BOTTOM = 92, 23, 44
_EDGE = "#9fb1bf"
# x of each column's marks, the side of the labels, their width, and where the column's heading starts.
_COLUMNS = ((256, "end", 226.0, 20), (520, "start", 330.0, 512), (980, "start", 180.0, 972))
_COLUMN_TITLES = (
    "workspaces, domains, repositories",
    "plans, documents, decisions, lessons",
    "tools, files, roles, issues, topics",
)
# kind → column and colour; the colours stay apart under the common kinds of colour blindness.
_NODES = {
    EntityKind.WORKSPACE: (0, "#22313f"),
    EntityKind.DOMAIN: (0, "#22313f"),
    EntityKind.REPOSITORY: (0, "#0b6fa4"),
    EntityKind.PLAN: (1, "#0b6fa4"),
    EntityKind.DOCUMENT: (1, "#7a7a7a"),
    EntityKind.DECISION: (1, "#b8501a"),
    EntityKind.LESSON: (1, "#8a6d00"),
    EntityKind.TOOL: (2, "#1d7a4b"),
    EntityKind.FILE: (2, "#7a7a7a"),
    EntityKind.ROLE: (2, "#8a3b8f"),
    EntityKind.ISSUE: (2, "#b8501a"),
    EntityKind.TOPIC: (2, "#0b6fa4"),
}
_KIND_ORDER = list(EntityKind)
# Estimated width of a letter of a label, of the kind behind it, and of an ideograph, in pixels.
_LETTER, _SMALL_LETTER, _IDEOGRAPH = 7.0, 5.9, 12.0
_SWEEPS = 4
_DESCRIBED_RELATIONS = 40

_Positions = Mapping[str, tuple[float, float]]


def draw_graph(graph: Graph, title: str = "What the workspace speaks of") -> str:
    """Return an SVG image of the entities with the most evidence, and of their relations."""
    shown = top_subgraph(graph, MAX_NODES)
    columns = _arrange_columns(shown)
    # Labels come from the whole graph: an entity that is not drawn may have the same name.
    names = {
        key: _fit_label(label, _COLUMNS[_NODES[EntityKind(key.partition(":")[0])][0]][2])
        for key, label in labels(graph).items()
    }
    label_ends = {
        entity.id: _COLUMNS[1][0]
        + 14
        + _text_width(names[entity.id])
        + _SMALL_LETTER * (len(entity.kind.value) + 3)
        for entity in columns[1]
    }
    room = _GRAPH_ROW * max(map(len, columns))
    # A shorter column is spread over the whole height.
    positions = {
        entity.id: (float(x), _GRAPH_TOP + room * (row + 0.5) / len(column))
        for (x, *_), column in zip(_COLUMNS, columns, strict=True)
        for row, entity in enumerate(column)
    }
    caption = f"{len(graph.entities)} things, {len(graph.relations)} relations"
    if len(shown.entities) < len(graph.entities):
        caption += f"; the top {len(shown.entities)} are drawn, with {len(shown.relations)} relations"
    caption += ". A thicker line has more evidence; a dashed line is a tag."
    body = [
        *_heading(title, caption, size=18),
        *(
            _text(column[3], _GRAPH_TOP - 20, name, size=12, colour=_PALE)
            for column, name in zip(_COLUMNS, _COLUMN_TITLES, strict=True)
        ),
        *(_draw_edge(relation, positions, label_ends) for relation in shown.relations),
        # Halos are texts of their own below all labels, because not every viewer supports `paint-order`.
        *(
            _draw_label(entity, positions[entity.id], names[entity.id], is_halo=True)
            for entity in shown.entities
        ),
        *(part for column in columns for entity in column for part in _draw_node(entity, positions, names)),
    ]
    called = labels(shown)
    description = " ".join(
        f"{called[each.source]} {each.kind.value.replace('_', ' ')} {called[each.target]} ({each.weight})."
        for each in shown.relations[:_DESCRIBED_RELATIONS]
    )
    height = _GRAPH_TOP + room + _GRAPH_BOTTOM
    return _image(title, description or "Nothing to draw.", _GRAPH_WIDTH, height, body)


def _arrange_columns(graph: Graph) -> list[list[Entity]]:
    """Return the columns, each sorted so that related entities are near each other."""
    columns: list[list[Entity]] = [[], [], []]
    for entity in graph.entities:
        columns[_NODES[entity.kind][0]].append(entity)
    columns[0].sort(key=lambda entity: entity.id.split(":", 1)[1])
    for column in columns[1:]:
        column.sort(key=lambda entity: (_KIND_ORDER.index(entity.kind), -entity.weight, entity.id))
    neighbours: dict[str, list[str]] = {}
    for relation in graph.relations:
        neighbours.setdefault(relation.source, []).append(relation.target)
        neighbours.setdefault(relation.target, []).append(relation.source)

    def by_mean_row() -> Callable[[Entity], tuple[float, str]]:
        rows = {each.id: (at + 0.5) / len(column) for column in columns for at, each in enumerate(column)}

        def key(entity: Entity) -> tuple[float, str]:
            near = [rows[other] for other in neighbours.get(entity.id, ()) if other in rows]
            return (round(sum(near) / len(near), 6) if near else 1.0), entity.id

        return key

    for _ in range(_SWEEPS):
        for at in (1, 2):
            columns[at].sort(key=by_mean_row())
    # In the right column readers look for the kind first.
    mean_row = by_mean_row()
    columns[2].sort(key=lambda entity: (_KIND_ORDER.index(entity.kind), *mean_row(entity)))
    return columns


def _draw_edge(relation: Relation, positions: _Positions, label_ends: Mapping[str, float]) -> str:
    source, target = sorted((relation.source, relation.target), key=lambda each: positions[each][0])
    (x1, y1), (x2, y2) = positions[source], positions[target]
    if x1 == x2:
        # Within a column the line bows away from the labels.
        bow = 26 + min(60.0, abs(y2 - y1) / 4)
        side = bow if x1 == _COLUMNS[0][0] else -bow
        path = f"M{x1:.1f},{y1:.1f} C{x1 + side:.1f},{y1:.1f} {x2 + side:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    else:
        # A line to the right starts behind the label, which stays readable.
        x1 = label_ends.get(source, x1)
        middle = (x1 + x2) / 2
        path = f"M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    width = min(4.0, 0.8 + 0.4 * (relation.weight - 1))
    dash = ' stroke-dasharray="4 3"' if relation.kind is RelationKind.TAGGED else ""
    look = f'stroke="{_EDGE}" stroke-opacity="0.55" stroke-width="{width:.1f}"{dash}'
    return f'<path d="{path}" fill="none" {look}/>'


def _draw_node(entity: Entity, positions: _Positions, names: Mapping[str, str]) -> list[str]:
    x, y = positions[entity.id]
    colour = _NODES[entity.kind][1]
    if entity.kind in (EntityKind.DECISION, EntityKind.ISSUE):
        mark = f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    else:
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    tooltip = escape(f"{entity.kind.value}: {entity.name} ({entity.id.partition(':')[2]})")
    return [f"<g><title>{tooltip}</title>", mark, _draw_label(entity, (x, y), names[entity.id]), "</g>"]


def _draw_label(entity: Entity, place: tuple[float, float], name: str, *, is_halo: bool = False) -> str:
    """Return an entity's label next to its mark; a halo is the white outline that keeps lines off it."""
    column = _NODES[entity.kind][0]
    side = _COLUMNS[column][1]
    x = place[0] + (-10 if side == "end" else 10)
    kind = "" if column == 0 else f" · {entity.kind.value}"
    ink, more, pale = _INK, "", f' fill="{_PALE}"'
    if is_halo:
        ink, pale = "#fff", ""
        more = ' stroke="#fff" stroke-width="4" stroke-linejoin="round" aria-hidden="true"'
    return (
        f'<text x="{x:.1f}" y="{place[1] + 4:.1f}" font-size="12" fill="{ink}" text-anchor="{side}"{more}>'
        f'{escape(name)}<tspan{pale} font-size="10">{escape(kind)}</tspan></text>'
    )


def _text_width(text: str) -> float:
    return sum(_IDEOGRAPH if east_asian_width(letter) in "WF" else _LETTER for letter in text)


def _fit_label(label: Label, room: float) -> str:
    """Return a label cut to a width; the part that tells it from others is cut last."""
    where = f" ({_truncate(label.where, room / 2)})" if label.where else ""
    return _truncate(" ".join(label.name.split()), room - _text_width(where)) + where


def _truncate(name: str, room: float) -> str:
    if _text_width(name) <= room:
        return name
    # The end of a path says more than its start.
    is_path = "/" in name and " " not in name
    kept = name
    while kept and _text_width(f"{kept}…") > room:
        kept = kept[1:] if is_path else kept[:-1]
    return f"…{kept}" if is_path else f"{kept.rstrip()}…"
