"""Draw how attempts went, as SVG: each group's success rate with its bounds, and the course over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from archivist.audit.analytics import Analytics, Rate

WIDTH = 720
_LEFT, _RIGHT = 220, 560
_TOP, _ROW, _FOOT = 84, 26, 40
_COURSE = 200
_MOST_ROWS = 15
_MOST_LINES = 4
_MOST_PERIODS = 60
_MOST_LABELS = 6
_NAME_CHARACTERS = 30
_LEGEND_CHARACTERS = 20
# Told apart by dashes and by marks too, for who does not see the colours.
_COLOURS = ("#0b6fa4", "#b8501a", "#4a7c2a", "#7a3b9c")
_DASHES = ("", "6 4", "2 3", "8 3 2 3")
_INK, _PALE = "#222", "#666"


def draw_rate_chart(found: Analytics, title: str = "What worked?") -> str:
    """Return an SVG image of success rates, and of their course where one was asked for."""
    rows = found.rows[:_MOST_ROWS]
    floor = _TOP + _ROW * max(1, len(rows))
    height = floor + _FOOT + (_COURSE + _FOOT if found.step else 0)
    body = [
        _text(20, 26, title, size=17, weight="bold"),
        _text(20, 46, _summary_text(found), size=12, colour=_PALE),
        *_scale(floor),
        *(part for at, row in enumerate(rows) for part in _bar(_TOP + _ROW * (at + 0.5), row)),
    ]
    if len(found.rows) > len(rows):
        body.append(_text(20, floor + 30, f"… and {len(found.rows) - len(rows)} more", colour=_PALE))
    if found.step:
        body += _draw_periods(found, floor + _FOOT + 24, height - _FOOT)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc" '
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif">'
    )
    told = (
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_describe_rates(found))}</desc>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    )
    return "\n".join((head, *told, *body, "</svg>\n"))


def _summary_text(found: Analytics) -> str:
    total = found.total
    if total.share is None:
        return "Nothing has ended yet."
    ended = total.completed + total.failed
    return f"{total.completed} of {ended} attempts that ended worked, by {found.by.value}."


def _describe_rates(found: Analytics) -> str:
    """Say in words what is drawn, for who cannot see it."""
    parts = [_summary_text(found)]
    for row in found.rows:
        if row.share is not None:
            low, high = row.interval
            parts.append(f"{_fit_name(row.name)}: {row.share:.0%} ({low:.0%} to {high:.0%}).")
        parts += [
            f"{_fit_name(row.name)} in {each.name}: {each.share:.0%}."
            for each in row.periods
            if each.share is not None
        ]
    return " ".join(parts)


def _fit_name(name: str, most: int = _NAME_CHARACTERS) -> str:
    """Return a name that fits; characters that no picture can hold are left out."""
    text = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "(unknown)"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _x_position(share: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * share


def _scale(floor: float) -> list[str]:
    parts = [_text(_LEFT, _TOP - 14, "Success rate, with 95 % bounds", size=13, weight="bold")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _x_position(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{floor}" stroke="#e2e2e2"/>')
        parts.append(_text(x, floor + 16, f"{tick:.0%}", colour=_PALE, anchor="middle"))
    return parts


def _bar(y: float, row: Rate) -> list[str]:
    parts = [_text(_LEFT - 12, y + 4, _fit_name(row.name), anchor="end")]
    told = f"{row.completed} of {row.completed + row.failed}"
    told += f", {row.undecided_count} open" if row.undecided_count else ""
    parts.append(_text(_RIGHT + 14, y + 4, told, colour=_PALE))
    if row.share is None:
        return parts
    low, high = row.interval
    parts.append(
        f'<line x1="{_x_position(low):.1f}" x2="{_x_position(high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
        f'stroke="{_COLOURS[0]}" stroke-width="6" stroke-opacity="0.25" stroke-linecap="round"/>'
    )
    parts.append(f'<circle cx="{_x_position(row.share):.1f}" cy="{y:.1f}" r="4.5" fill="{_COLOURS[0]}"/>')
    return parts


def _draw_periods(found: Analytics, top: float, floor: float) -> list[str]:
    """Draw the most tried groups' rates by period."""
    names = [each.name for each in found.total.periods][-_MOST_PERIODS:]
    left, right = 52, WIDTH - 16
    places = {name: left + (right - left) * ((at + 0.5) / len(names)) for at, name in enumerate(names)}
    span = found.step.value if found.step else ""
    parts = [_text(left, top - 14, f"Success rate by {span}", size=13, weight="bold")]
    for tick in (0.0, 0.5, 1.0):
        y = floor - (floor - top) * tick
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e2e2e2"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:.0%}", colour=_PALE, anchor="end"))
    every = -(-len(names) // _MOST_LABELS) or 1
    parts += [_text(places[name], floor + 16, name, colour=_PALE, anchor="middle") for name in names[::every]]
    for at, row in enumerate(found.rows[:_MOST_LINES]):
        points = [
            (places[each.name], floor - (floor - top) * each.share)
            for each in row.periods
            if each.share is not None and each.name in places
        ]
        parts += _line(points, at)
        legend = left + at * (right - left) / _MOST_LINES
        parts += _line([(legend, floor + 30), (legend + 24, floor + 30)], at)
        parts.append(_text(legend + 32, floor + 34, _fit_name(row.name, _LEGEND_CHARACTERS)))
    return parts


def _line(points: Sequence[tuple[float, float]], at: int) -> list[str]:
    if not points:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{_DASHES[at]}"' if _DASHES[at] else ""
    line = f'<polyline points="{path}" fill="none" stroke="{_COLOURS[at]}" stroke-width="2.2"{dash}/>'
    return [line, *(_mark(x, y, at) for x, y in points)]


def _mark(x: float, y: float, at: int) -> str:
    """Return a mark of a shape of its own for each line."""
    look = f'fill="#fff" stroke="{_COLOURS[at]}" stroke-width="1.8"'
    if at == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" {look}/>'
    if at == 1:
        return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" {look}/>'
    tip = -4.4 if at == 2 else 4.4
    corners = f"{x:.1f},{y + tip:.1f} {x - 4:.1f},{y - tip / 1.6:.1f} {x + 4:.1f},{y - tip / 1.6:.1f}"
    return f'<polygon points="{corners}" {look}/>'


def _text(
    x: float, y: float, words: str, *, size: int = 11, colour: str = _INK, anchor: str = "", weight: str = ""
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'
