"""Draw how lessons did over time, as SVG: the helpful share, and failures with and without being told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from archivist.audit.lift import LiftConclusion, wilson
from archivist.audit.report import ReportRow

WIDTH, HEIGHT = 720, 360
_TOP, _BOTTOM = 84, 56
_PANELS = ((52, 344), (412, 704))
_BLUE, _ORANGE = "#0b6fa4", "#b8501a"
_INK, _PALE = "#222", "#666"
_MOST_LABELS = 5
_MOST_PERIODS = 60
_MONTH = re.compile(r"\d{4}-\d{2}")
_SHOWN = {
    LiftConclusion.HELPS: "being told helps",
    LiftConclusion.HARMS: "being told harms",
    LiftConclusion.NOT_SHOWN: "no difference shown yet",
}

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Series:
    """One line of a panel: per period its value with low and high, or None."""

    label: str
    colour: str
    points: tuple[Point | None, ...]
    is_dashed: bool = False


def draw_report_chart(line: ReportRow, title: str = "Did the lessons help?") -> str:
    """Return an SVG image of a line's course over time."""
    periods = line.periods[-_MOST_PERIODS:]
    helpful = _Series("of judged lessons, with 95 % band", _BLUE, tuple(map(_helpful_point, periods)))
    told = _Series("told", _BLUE, tuple(_rate_point(each, is_told=True) for each in periods))
    withheld = _Series(
        "withheld", _ORANGE, tuple(_rate_point(each, is_told=False) for each in periods), is_dashed=True
    )
    names = [each.lesson for each in periods]
    by = "by month" if all(_MONTH.fullmatch(name) for name in names) else "by runs"
    body = [
        _text(20, 26, title, size=17, weight="bold"),
        _text(20, 46, _summary_text(line), size=12, colour=_PALE),
        *_panel(_PANELS[0], f"Helpful share, {by}", names, [helpful]),
        *_panel(_PANELS[1], f"Failure rate, {by}", names, [told, withheld]),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title desc" '
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif">'
    )
    told_in_words = (
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_describe_lines(line, periods))}</desc>',
    )
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join((head, *told_in_words, ground, *body, "</svg>\n"))


def _helpful_point(line: ReportRow) -> Point | None:
    return (line.share, *line.posterior.interval) if line.share is not None else None


def _rate_point(line: ReportRow, *, is_told: bool) -> Point | None:
    arms = line.lift.arms
    runs, failed = (arms.told, arms.told_failed) if is_told else (arms.withheld, arms.withheld_failed)
    return (failed / runs, *wilson(failed, runs)) if runs else None


def _summary_text(line: ReportRow) -> str:
    if not line.judged_count:
        return "No verdicts yet."
    said = f"Helpful {line.helpful} of {line.judged_count} times"
    arms = line.lift.arms
    if arms.rate_told is not None and arms.rate_withheld is not None:
        said += f"; failures {arms.rate_told:.0%} when told, {arms.rate_withheld:.0%} when withheld"
        said += f": {_SHOWN[line.lift.conclusion]}" if line.lift.interval else ""
    return f"{said}."


def _describe_lines(line: ReportRow, periods: Sequence[ReportRow]) -> str:
    """Say in words what the lines show, for who cannot see them."""
    parts = [_summary_text(line)]
    for each in periods:
        told, withheld = each.lift.arms.rate_told, each.lift.arms.rate_withheld
        values = [
            f"{name} {value:.0%}"
            for name, value in (("helpful", each.share), ("fails told", told), ("fails withheld", withheld))
            if value is not None
        ]
        if values:
            parts.append(f"{each.lesson}: {', '.join(values)}.")
    return " ".join(parts)


def _panel(span: tuple[int, int], title: str, names: Sequence[str], series: Sequence[_Series]) -> list[str]:
    left, right = span
    floor = HEIGHT - _BOTTOM

    def across(at: int) -> float:
        return left + (right - left) * ((at + 0.5) / max(1, len(names)))

    def up(value: float) -> float:
        return floor - (floor - _TOP) * value

    parts = [_text(left, _TOP - 14, title, size=13, weight="bold")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = up(tick)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e2e2e2"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:.0%}", colour=_PALE, anchor="end"))
    every = -(-len(names) // _MOST_LABELS) or 1
    parts += [
        _text(across(at), floor + 18, name, colour=_PALE, anchor="middle")
        for at, name in enumerate(names)
        if at % every == 0
    ]
    for each in series:
        parts += _band(each, across, up)
    for each in series:
        parts += _draw_line(each, across, up)
    return parts + _legend(left, HEIGHT - 14, series)


def _pieces(points: Sequence[Point | None]) -> list[list[tuple[int, Point]]]:
    """Return the stretches without a gap: where nothing is known no line is drawn."""
    found: list[list[tuple[int, Point]]] = [[]]
    for at, point in enumerate(points):
        if point is not None:
            found[-1].append((at, point))
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


def _band(series: _Series, across: Callable[[int], float], up: Callable[[float], float]) -> list[str]:
    parts = []
    for piece in _pieces(series.points):
        above = [(across(at), up(high)) for at, (_, _, high) in piece]
        below = [(across(at), up(low)) for at, (_, low, _) in reversed(piece)]
        if len(piece) == 1:
            (x, top), (_, bottom) = above[0], below[0]
            above, below = [(x - 5, top), (x + 5, top)], [(x + 5, bottom), (x - 5, bottom)]
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*above, *below))
        parts.append(f'<polygon points="{outline}" fill="{series.colour}" fill-opacity="0.13"/>')
    return parts


def _draw_line(series: _Series, across: Callable[[int], float], up: Callable[[float], float]) -> list[str]:
    dash = ' stroke-dasharray="6 4"' if series.is_dashed else ""
    parts = []
    for piece in _pieces(series.points):
        places = [(across(at), up(value)) for at, (value, _, _) in piece]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{series.colour}" stroke-width="2.2"{dash}/>'
        )
        # A mark of another shape tells the lines apart without colour.
        for x, y in places:
            if series.is_dashed:
                mark = f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4"'
            else:
                mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4"'
            parts.append(f'{mark} fill="#fff" stroke="{series.colour}" stroke-width="1.8"/>')
    return parts


def _legend(left: float, y: float, series: Sequence[_Series]) -> list[str]:
    parts = []
    for each in series:
        dash = ' stroke-dasharray="6 4"' if each.is_dashed else ""
        parts.append(
            f'<line x1="{left}" x2="{left + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{each.colour}" '
            f'stroke-width="2.2"{dash}/>'
        )
        parts.append(_text(left + 30, y, each.label, colour=_INK))
        left += 46 + 6.4 * len(each.label)
    return parts


def _text(
    x: float, y: float, words: str, *, size: int = 11, colour: str = _INK, anchor: str = "", weight: str = ""
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'
