"""Draw a graph as SVG in three columns: places, documents and decisions, what those name.

Columns instead of a cloud: the names can be read, and the same graph is always the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from unicodedata import east_asian_width

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

MOST_NODES = 60
_WIDTH = 1240
_TOP, _ROW, _BOTTOM = 92, 23, 44
# Where each column's marks stand, and on which side of them the names.
_COLUMNS = ((256, "end"), (520, "start"), (980, "start"))
_COLUMN_OF = {
    EntityKind.WORKSPACE: 0,
    EntityKind.DOMAIN: 0,
    EntityKind.REPOSITORY: 0,
    EntityKind.PLAN: 1,
    EntityKind.DOCUMENT: 1,
    EntityKind.DECISION: 1,
    EntityKind.LESSON: 1,
    EntityKind.TOOL: 2,
    EntityKind.FILE: 2,
    EntityKind.ROLE: 2,
    EntityKind.ISSUE: 2,
    EntityKind.TOPIC: 2,
}
# Colours that stay apart for most people who see few of them; the kind is also told by group and shape.
_COLOURS = {
    EntityKind.WORKSPACE: "#22313f",
    EntityKind.DOMAIN: "#22313f",
    EntityKind.REPOSITORY: "#0b6fa4",
    EntityKind.PLAN: "#0b6fa4",
    EntityKind.DOCUMENT: "#7a7a7a",
    EntityKind.DECISION: "#b8501a",
    EntityKind.LESSON: "#8a6d00",
    EntityKind.TOOL: "#1d7a4b",
    EntityKind.FILE: "#7a7a7a",
    EntityKind.ROLE: "#8a3b8f",
    EntityKind.ISSUE: "#b8501a",
    EntityKind.TOPIC: "#0b6fa4",
}
_ORDER = list(EntityKind)
_HEADS = (
    (20, "workspaces, domains, repositories"),
    (512, "plans, documents, decisions, lessons"),
    (972, "tools, files, roles, issues, topics"),
)
# About how wide a letter is, of a name and of the kind behind it; ideographs take a square.
_LETTER, _SMALL_LETTER, _SQUARE = 7.0, 5.9, 12.0
_INK, _PALE, _EDGE = "#222", "#666", "#9fb1bf"
# How wide a name may be in each column, with the place that tells it from others.
_ROOM = (226.0, 330.0, 180.0)
_SWEEPS = 4


def render_svg(graph: Graph, title: str = "What the workspace speaks of") -> str:
    """Return an SVG image of the weightiest things of a graph and their relations."""
    shown = top_subgraph(graph, MOST_NODES)
    columns = _arrange_columns(shown)
    # What else is called so may stand beside the picture: the whole graph says what a thing is called.
    names = {name: _fit_label(label, _ROOM[_column_of(name)]) for name, label in labels(graph).items()}
    ends = {each.id: _label_end(each, names[each.id]) for each in columns[1]}
    height = _TOP + _ROW * max((len(column) for column in columns), default=0) + _BOTTOM
    places = _node_positions(columns, height)
    body = [
        _render_text(20, 30, title, size=18, weight="bold"),
        _render_text(20, 50, _chart_caption(graph, shown), size=12, colour=_PALE),
        *(_render_text(x, _TOP - 20, name, size=12, colour=_PALE) for x, name in _HEADS),
        *(_render_edge(each, places, ends) for each in shown.relations),
        # All halos lie below all names, and are texts of their own: not every reader knows `paint-order`.
        *(_render_label(each, places[each.id], names[each.id], is_halo=True) for each in shown.entities),
        *(part for column in columns for each in column for part in _render_node(each, places, names)),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title desc" '
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif">'
    )
    told = (
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_chart_description(shown))}</desc>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    )
    return "\n".join((head, *told, *body, "</svg>\n"))


def _chart_caption(graph: Graph, shown: Graph) -> str:
    said = f"{len(graph.entities)} things, {len(graph.relations)} relations"
    if len(shown.entities) < len(graph.entities):
        said += f"; the {len(shown.entities)} weightiest are drawn, with {len(shown.relations)} relations"
    return f"{said}. A line is thicker the more places show it; dashed where it is a tag."


def _chart_description(graph: Graph) -> str:
    """Say the strongest relations in words, for who cannot see them."""
    names = labels(graph)
    said = [
        f"{names[each.source]} {each.kind.value.replace('_', ' ')} {names[each.target]} ({each.weight})."
        for each in graph.relations[:40]
    ]
    return " ".join(said) or "Nothing to draw."


def _arrange_columns(graph: Graph) -> list[list[Entity]]:
    """Return the columns, each in an order that lets related things stand side by side."""
    columns: list[list[Entity]] = [[], [], []]
    for each in graph.entities:
        columns[_COLUMN_OF[each.kind]].append(each)
    columns[0].sort(key=lambda each: each.id.split(":", 1)[1])
    for column in columns[1:]:
        column.sort(key=lambda each: (_ORDER.index(each.kind), -each.weight, each.id))
    beside = _neighbours(graph.relations)
    for _ in range(_SWEEPS):
        for at in (1, 2):
            rows = _rows(columns)
            columns[at].sort(key=lambda each: (_mean_row(beside.get(each.id, ()), rows), each.id))
    # On the right, things of one sort stand together: a name is looked for by its sort first.
    rows = _rows(columns)
    columns[2].sort(
        key=lambda each: (_ORDER.index(each.kind), _mean_row(beside.get(each.id, ()), rows), each.id)
    )
    return columns


def _neighbours(relations: Sequence[Relation]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in relations:
        found.setdefault(each.source, []).append(each.target)
        found.setdefault(each.target, []).append(each.source)
    return found


def _rows(columns: Sequence[Sequence[Entity]]) -> dict[str, float]:
    """Return how far down each thing stands in its column, from 0 to 1."""
    return {each.id: (at + 0.5) / len(column) for column in columns for at, each in enumerate(column)}


def _mean_row(beside: Sequence[str], rows: Mapping[str, float]) -> float:
    found = [rows[each] for each in beside if each in rows]
    return round(sum(found) / len(found), 6) if found else 1.0


def _node_positions(columns: Sequence[Sequence[Entity]], height: int) -> dict[str, tuple[float, float]]:
    """Return the middle of each mark; a shorter column is spread over the whole height."""
    room = height - _TOP - _BOTTOM
    return {
        each.id: (_COLUMNS[at][0], _TOP + room * (row + 0.5) / len(column))
        for at, column in enumerate(columns)
        for row, each in enumerate(column)
    }


def _render_edge(
    relation: Relation, places: Mapping[str, tuple[float, float]], ends: Mapping[str, float]
) -> str:
    source, target = sorted((relation.source, relation.target), key=lambda each: places[each][0])
    (x1, y1), (x2, y2) = places[source], places[target]
    if x1 == x2:
        # Within a column the line bows away from the names.
        bow = 26 + min(60.0, abs(y2 - y1) / 4)
        side = bow if x1 == _COLUMNS[0][0] else -bow
        path = f"M{x1:.1f},{y1:.1f} C{x1 + side:.1f},{y1:.1f} {x2 + side:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    else:
        # To the right a line begins behind the name, so that the name can be read.
        x1 = ends.get(source, x1)
        middle = (x1 + x2) / 2
        path = f"M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    width = min(4.0, 0.8 + 0.4 * (relation.weight - 1))
    dash = ' stroke-dasharray="4 3"' if relation.kind is RelationKind.TAGGED else ""
    stroke = f'stroke="{_EDGE}" stroke-opacity="0.55" stroke-width="{width:.1f}"{dash}'
    return f'<path d="{path}" fill="none" {stroke}/>'


def _column_of(name: str) -> int:
    return _COLUMN_OF[EntityKind(name.partition(":")[0])]


def _label_end(entity: Entity, name: str) -> float:
    """Return about where the name of a thing in the middle column ends."""
    return _COLUMNS[1][0] + 14 + _text_width(name) + _SMALL_LETTER * (len(entity.kind.value) + 3)


def _render_node(
    entity: Entity, places: Mapping[str, tuple[float, float]], names: Mapping[str, str]
) -> list[str]:
    x, y = places[entity.id]
    colour = _COLOURS[entity.kind]
    if entity.kind in (EntityKind.DECISION, EntityKind.ISSUE):
        mark = f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    else:
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    told = escape(f"{entity.kind.value}: {entity.name} ({entity.id.partition(':')[2]})")
    label = _render_label(entity, (x, y), names[entity.id])
    return [f"<g><title>{told}</title>", mark, label, "</g>"]


def _render_label(entity: Entity, place: tuple[float, float], name: str, *, is_halo: bool = False) -> str:
    """Return a thing's name beside its mark; as a halo, the white around it that keeps lines off."""
    column = _COLUMN_OF[entity.kind]
    side = _COLUMNS[column][1]
    x = place[0] + (-10 if side == "end" else 10)
    kind = "" if column == 0 else f" · {entity.kind.value}"
    ink = _INK
    more, pale = "", f' fill="{_PALE}"'
    if is_halo:
        ink, pale = "#fff", ""
        more = ' stroke="#fff" stroke-width="4" stroke-linejoin="round" aria-hidden="true"'
    return (
        f'<text x="{x:.1f}" y="{place[1] + 4:.1f}" font-size="12" fill="{ink}" text-anchor="{side}"{more}>'
        f'{escape(name)}<tspan{pale} font-size="10">{escape(kind)}</tspan></text>'
    )


def _text_width(text: str) -> float:
    return sum(_SQUARE if east_asian_width(sign) in "WF" else _LETTER for sign in text)


def _fit_label(label: Label, room: float) -> str:
    """Return a label cut to a width; what tells it from others is cut last."""
    where = f" ({_truncate_name(label.where, room / 2)})" if label.where else ""
    return _truncate_name(" ".join(label.name.split()), room - _text_width(where)) + where


def _truncate_name(name: str, room: float) -> str:
    # The end of a path tells more than its beginning.
    is_path = "/" in name and " " not in name
    kept = name
    while kept and _text_width(f"{kept}…") > room and _text_width(name) > room:
        kept = kept[1:] if is_path else kept[:-1]
    return name if kept == name else f"…{kept}" if is_path else f"{kept.rstrip()}…"


def _render_text(
    x: float, y: float, words: str, *, size: int = 12, colour: str = _INK, anchor: str = "", weight: str = ""
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'
