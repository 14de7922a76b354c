"""Draw charts as SVG text: the audit report, success rates, the learning curve, and graphs.

Every chart has a title and a description for screen readers, and no chart relies on colour alone: lines also
differ in their dashes and markers, nodes in their shape and their label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from itertools import groupby
from unicodedata import east_asian_width
from zlib import crc32

from archivist.audit.analytics import Analytics
from archivist.audit.curve import CurvePoint
from archivist.audit.lift import LiftConclusion, wilson
from archivist.audit.report import ReportRow
from archivist.reading.timeline import ToolUse
from archivist.workspace.graph import (
    Entity,
    EntityKind,
    Graph,
    Relation,
    RelationKind,
    labels,
    top_subgraph,
)

WIDTH, HEIGHT = 720, 360
# Drawn for the screen of a phone: scaled down, the text of a wide chart could not be read.
NARROW = 350
MAX_NODES = 60
_COLOURS = ("#0b6fa4", "#b8501a", "#4a7c2a", "#7a3b9c")
_DASHES = ("none", "6 4", "2 3", "8 3 2 3")
# The corners of each line's markers: a diamond, a square, a triangle and one upside down.
_MARKERS = (
    ((0, -4), (4, 0), (0, 4), (-4, 0)),
    ((-3, -3), (3, -3), (3, 3), (-3, 3)),
    ((0, -4), (4, 3), (-4, 3)),
    ((0, 4), (4, -3), (-4, -3)),
)
_INK, _PALE, _GRID = "#222", "#666", "#e2e2e2"
_TOP = 84
_MAX_PERIODS = 60
_MAX_PERIOD_LABELS = 6
# Estimated width of a letter of a label, of the kind behind it, and of an ideograph, in pixels.
_LETTER, _SMALL_LETTER, _IDEOGRAPH = 7.0, 5.9, 12.0

# The value of one period with its lower and upper bound.
Point = tuple[float, float, float]


def _image(title: str, description: str, width: int, height: float, body: Sequence[str]) -> str:
    # Several charts may stand on one page.
    mark = f"{crc32(f'{title} {width}'.encode()):08x}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title-{mark} desc-{mark}" '
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif">'
    )
    meta = (
        f'<title id="title-{mark}">{_escape(title)}</title>',
        f'<desc id="desc-{mark}">{_escape(description)}</desc>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    )
    return "\n".join((head, *meta, *body, "</svg>\n"))


def _escape(words: str) -> str:
    """Return words for XML; characters that it does not allow become spaces."""
    return escape("".join(letter if letter.isprintable() else " " for letter in words))


def _text(
    x: float, y: float, words: str, *, size: int = 12, colour: str = _INK, anchor: str = "", weight: str = ""
) -> str:
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{more}>{_escape(words)}</text>'


def _heading(title: str, caption: str, size: int = 17) -> list[str]:
    return [_text(20, 26, title, size=size, weight="bold"), _text(20, 46, caption, size=12, colour=_PALE)]


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" {look}/>'


def _pairs(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _markers(points: Iterable[tuple[float, float]], style: int) -> list[str]:
    look = f'fill="#fff" stroke="{_COLOURS[style]}" stroke-width="1.8"'
    corners = ([(x + right, y + down) for right, down in _MARKERS[style]] for x, y in points)
    return [f'<polygon points="{_pairs(each)}" {look}/>' for each in corners]


def _draw_panel(
    area: tuple[float, float, float, float],
    title: str,
    periods: Sequence[str],
    series: Sequence[tuple[str, Sequence[Point | None]]],
    ticks: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
) -> list[str]:
    """Draw lines over periods within left, right, top and floor: percents on the left, a legend below.

    A series is its label and a point for each period, None where nothing is known: no line crosses such a
    period.
    """
    left, right, top, floor = area
    x_of = [left + (right - left) * (at + 0.5) / len(periods) for at in range(len(periods))]

    def y_of(share: float) -> float:
        return floor - (floor - top) * share

    parts = [_text(left, top - 14, title, size=13, weight="bold")]
    for tick in ticks:
        parts.append(_line(left, y_of(tick), right, y_of(tick), f'stroke="{_GRID}"'))
        parts.append(_text(left - 6, y_of(tick) + 4, f"{tick:.0%}", colour=_PALE, anchor="end"))
    every = -(-len(periods) // _MAX_PERIOD_LABELS) or 1
    for x, name in list(zip(x_of, periods, strict=True))[::every]:
        parts.append(_text(x, floor + 18, name, colour=_PALE, anchor="middle"))
    lines: list[str] = []
    for style, (label, points) in enumerate(series):
        colour = _COLOURS[style]
        stroke = f'stroke="{colour}" stroke-width="2.2" stroke-dasharray="{_DASHES[style]}"'
        legend_x = left + style * (right - left) / len(series)
        lines.append(_line(legend_x, floor + 32, legend_x + 24, floor + 32, stroke))
        lines += [*_markers([(legend_x + 12, floor + 32)], style), _text(legend_x + 32, floor + 36, label)]
        known = [(x, *point) if point else None for x, point in zip(x_of, points, strict=True)]
        for is_known, group in groupby(known, key=bool):
            piece = [each for each in group if each]
            if not is_known:
                continue
            # A single point has a band, too.
            ends = (-5, 5) if len(piece) == 1 else (0,)
            above = [(x + end, y_of(high)) for x, _, _, high in piece for end in ends]
            below = [(x + end, y_of(low)) for x, _, low, _ in piece for end in ends]
            outline = _pairs([*above, *reversed(below)])
            parts.append(f'<polygon points="{outline}" fill="{colour}" fill-opacity="0.13"/>')
            middle = [(x, y_of(value)) for x, value, _, _ in piece]
            lines.append(f'<polyline points="{_pairs(middle)}" fill="none" {stroke}/>')
            lines += _markers(middle, style)
    return parts + lines


def _text_width(text: str) -> float:
    return sum(_IDEOGRAPH if east_asian_width(letter) in "WF" else _LETTER for letter in text)


def _truncate(text: str, room: float) -> str:
    name = " ".join(text.split())
    if _text_width(name) <= room:
        return name
    # The end of a path says more than its start.
    is_path = "/" in name and " " not in name
    # No letter is narrower: a document may have a heading of a megabyte.
    most = int(room / _LETTER) + 1
    kept = name[-most:] if is_path else name[:most]
    while kept and _text_width(f"{kept}…") > room:
        kept = kept[1:] if is_path else kept[:-1]
    return f"…{kept}" if is_path else f"{kept.rstrip()}…"


# The audit report

_MONTH = re.compile(r"\d{4}-\d{2}")
_CONCLUSIONS = {
    LiftConclusion.HELPS: "being told helps",
    LiftConclusion.HARMS: "being told harms",
    LiftConclusion.NOT_SHOWN: "no difference shown yet",
    LiftConclusion.TOO_FEW: "too few runs to tell",
}


def draw_report_chart(line: ReportRow, title: str = "Did the lessons help?", width: int = WIDTH) -> str:
    """Return an SVG image of a report row over time: how much helped, and failures told and withheld."""
    periods = line.periods[-_MAX_PERIODS:]
    names = [period.lesson for period in periods]
    by = "by month" if all(_MONTH.fullmatch(name) for name in names) else "by runs"
    helpful = [
        (period.share, *period.posterior.interval) if period.share is not None else None for period in periods
    ]
    arms = [period.lift.arms for period in periods]
    told = [_failure_rate(arm.told, arm.told_failed) for arm in arms]
    withheld = [_failure_rate(arm.withheld, arm.withheld_failed) for arm in arms]
    total, judged = line.lift.arms, line.judged_count
    summary = f"Helped {line.helpful} of {judged} times" if judged else "No verdicts yet"
    summary += ", too few for a rate" if judged and line.share is None else ""
    if judged and total.is_compared:
        told_rate, other_rate = (
            f"{failed:g} of {runs:g}" if total.is_few else f"{failed / runs:.0%}"
            for failed, runs in ((total.told_failed, total.told), (total.withheld_failed, total.withheld))
        )
        summary += f"; failures {told_rate} when told, {other_rate} when withheld"
        summary += f": {_CONCLUSIONS[line.lift.conclusion]}" if line.lift.interval else ""
    summary += "."
    # Beside each other, or below each other where the image is narrow.
    first, second = (52, 344, _TOP, HEIGHT - 56), (412, 704, _TOP, HEIGHT - 56)
    height = HEIGHT
    if width < WIDTH:
        first, second = (52, width - 12, _TOP, 244), (52, width - 12, 334, 494)
        height = 550
    body = [
        *_heading(title, summary if width == WIDTH else _truncate(summary, width - 30)),
        *_draw_panel(
            first,
            f"Helped share, {by}",
            names,
            [("of judged lessons, with 95 % band", helpful)],
        ),
        *_draw_panel(
            second,
            f"Failure rate, {by}",
            names,
            [("told", told), ("withheld", withheld)],
        ),
    ]
    description = [summary]
    for period in periods:
        rates = (
            ("helped", period.share),
            ("fails told", period.lift.arms.rate_told),
            ("fails withheld", period.lift.arms.rate_withheld),
        )
        known = [f"{name} {value:.0%}" for name, value in rates if value is not None]
        if known:
            description.append(f"{period.lesson}: {', '.join(known)}.")
    return _image(title, " ".join(description), width, height, body)


def _failure_rate(runs: float, failed: float) -> Point | None:
    return (failed / runs, *wilson(failed, runs)) if runs else None


# Success rates

_BAR_LEFT, _BAR_RIGHT, _BAR_ROW = 220, 560, 26
_FOOT, _PERIODS_HEIGHT = 40, 200
_MAX_ROWS = 15
_MAX_LINES = 4
_NAME_WIDTH, _LEGEND_WIDTH = 200.0, 130.0


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

    def x_of(share: float) -> float:
        return _BAR_LEFT + (_BAR_RIGHT - _BAR_LEFT) * share

    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        body.append(_line(x_of(tick), _TOP, x_of(tick), floor, f'stroke="{_GRID}"'))
        body.append(_text(x_of(tick), floor + 16, f"{tick:.0%}", colour=_PALE, anchor="middle"))
    description = [summary]
    for at, row in enumerate(found.rows):
        name = _truncate(row.name, _NAME_WIDTH) or "(unknown)"
        low, high = row.interval
        if row.share is not None:
            description.append(f"{name}: {row.share:.0%} ({low:.0%} to {high:.0%}).")
        description += [
            f"{name} in {period.name}: {period.share:.0%}."
            for period in row.periods
            if period.share is not None
        ]
        if at >= len(rows):
            continue
        y = _TOP + _BAR_ROW * (at + 0.5)
        counts = f"{row.completed} of {row.completed + row.failed}"
        counts += f", {row.undecided_count} open" if row.undecided_count else ""
        body.append(_text(_BAR_LEFT - 12, y + 4, name, anchor="end"))
        body.append(_text(_BAR_RIGHT + 14, y + 4, counts, colour=_PALE))
        if row.share is not None:
            look = f'stroke="{_COLOURS[0]}" stroke-width="6" stroke-opacity="0.25" stroke-linecap="round"'
            body.append(_line(x_of(low), y, x_of(high), y, look))
            body.append(f'<circle cx="{x_of(row.share):.1f}" cy="{y:.1f}" r="4.5" fill="{_COLOURS[0]}"/>')
    if len(found.rows) > len(rows):
        body.append(_text(20, floor + 30, f"… and {len(found.rows) - len(rows)} more", colour=_PALE))
    if found.step:
        body += _draw_rate_periods(found, found.step.value, floor + _FOOT + 24, height - _FOOT)
    return _image(title, " ".join(description), WIDTH, height, body)


def _draw_rate_periods(found: Analytics, unit: str, top: float, floor: float) -> list[str]:
    """Draw the rates of the largest groups by period."""
    names = [period.name for period in found.total.periods][-_MAX_PERIODS:]
    series: list[tuple[str, list[Point | None]]] = []
    for row in found.rows[:_MAX_LINES]:
        shares = {period.name: period.share for period in row.periods}
        points = [None if (share := shares.get(name)) is None else (share, share, share) for name in names]
        series.append((_truncate(row.name, _LEGEND_WIDTH) or "(unknown)", points))
    area = (52.0, WIDTH - 16.0, top, floor)
    return _draw_panel(area, f"Success rate by {unit}", names, series, (0.0, 0.5, 1.0))


# The learning curve

_CURVE_HEIGHT = 250
# Two points, and two labels of days, must not cover each other.
_LEAST_GAP, _LABEL_GAP = 16.0, 52.0


def draw_curve(
    points: Sequence[CurvePoint],
    title: str = "Failures per run",
    width: int = WIDTH,
    since: datetime | None = None,
    began: datetime | None = None,
) -> str:
    """Return an SVG image of the kinds of failure that runs met, over time, with 95 % intervals.

    Lines stand where memory `began` to tell runs something, and where the period begins (`since`) that the
    runs before it are compared with.
    """
    runs = sum(point.runs for point in points)
    caption = f"Mean of about {round(runs / len(points))} runs a point, 95 % interval; {runs} runs."
    lines = [caption] if width == WIDTH else [caption.partition("; ")[0] + ";", f"{runs} runs."]
    left, right, floor = 40.0, width - 16.0, _CURVE_HEIGHT - 34.0
    top = 60.0 + 18 * len(lines)
    highest = max(point.high for point in points)
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 50, 100, 1_000) if highest / size <= 5)
    ticks = [step * at for at in range(int(highest / step) + 2)]
    xs = _spread([point.since for point in points], left + 14, right - 14)

    def y_of(value: float) -> float:
        return floor - (floor - top) * value / ticks[-1]

    body = [*_heading(title, lines[0], size=15), *(_text(20, 64, more, colour=_PALE) for more in lines[1:])]
    for tick in ticks:
        body.append(_line(left, y_of(tick), right, y_of(tick), f'stroke="{_GRID}"'))
        body.append(_text(left - 8, y_of(tick) + 4, f"{tick:g}", colour=_PALE, anchor="end"))
    described = [caption]
    marks = {"memory began": began, "this period": since}
    if began and since and abs(_place(since, points, xs) - _place(began, points, xs)) < 90:
        del marks["memory began"]
    for label, moment in marks.items():
        if moment and points[0].since < moment <= points[-1].since:
            x = _place(moment, points, xs)
            body.append(_line(x, top - 12, x, floor, f'stroke="{_PALE}" stroke-dasharray="4 3"'))
            anchor, shift = ("end", -5) if x > width - 100 else ("start", 5)
            body.append(_text(x + shift, top - 4, label, colour=_PALE, anchor=anchor))
            described.append(f"{label}: {moment:%Y-%m-%d}.")
    body += _day_labels(points, xs, floor + 20)
    above = [(x, y_of(point.high)) for x, point in zip(xs, points, strict=True)]
    below = [(x, y_of(point.low)) for x, point in zip(xs, points, strict=True)]
    band = _pairs([*above, *reversed(below)])
    body.append(f'<polygon points="{band}" fill="{_COLOURS[0]}" fill-opacity="0.13"/>')
    middle = [(x, y_of(point.mean)) for x, point in zip(xs, points, strict=True)]
    look = f'fill="none" stroke="{_COLOURS[0]}" stroke-width="2.2"'
    body.append(f'<polyline points="{_pairs(middle)}" {look}/>')
    body += _markers(middle, 0)
    told = (
        f"Since {point.since:%Y-%m-%d}: {point.mean:.1f} ({point.low:.1f} to {point.high:.1f}),"
        f" {point.runs} runs."
        for point in points
    )
    return _image(title, " ".join((*described, *told)), width, _CURVE_HEIGHT, body)


def _spread(moments: Sequence[datetime], left: float, right: float) -> list[float]:
    """Return where moments stand on an axis of time, those of one day still apart from each other."""
    span = (moments[-1] - moments[0]).total_seconds() or 1.0
    gap = min(_LEAST_GAP, (right - left) / max(1, len(moments) - 1))
    # What the least gaps take is taken from the stretch that time is drawn to.
    room = right - left - gap * (len(moments) - 1)
    shares = [(moment - moments[0]).total_seconds() / span for moment in moments]
    return [left + room * share + gap * at for at, share in enumerate(shares)]


def _place(moment: datetime, points: Sequence[CurvePoint], xs: Sequence[float]) -> float:
    """Return where a moment stands between the points before and after it."""
    after = next((at for at, point in enumerate(points) if point.since >= moment), len(points) - 1)
    if not after:
        return xs[0]
    first, last = points[after - 1].since, points[after].since
    share = min(1.0, (moment - first) / (last - first)) if last > first else 1.0
    return xs[after - 1] + (xs[after] - xs[after - 1]) * share


def _day_labels(points: Sequence[CurvePoint], xs: Sequence[float], y: float) -> list[str]:
    """Write the day of the first and the last point, and of those between that have room; each day once."""
    shown = [0, len(points) - 1]
    for at in range(1, len(points) - 1):
        days = {f"{points[each].since:%-d %b}" for each in shown}
        has_room = all(abs(xs[at] - xs[each]) >= _LABEL_GAP for each in shown)
        if has_room and f"{points[at].since:%-d %b}" not in days:
            shown.append(at)
    return [
        _text(xs[at], y, f"{points[at].since:%-d %b}", colour=_PALE, anchor="middle") for at in sorted(shown)
    ]


# The tools that runs went through

_FLOW_TOP, _FLOW_ROW = 76, 26
_MAX_PROGRAMS, _MAX_PROVIDERS = 14, 5
_FLOW_LEFT, _FLOW_NAMES, _FLOW_RIGHT, _FLOW_BAR = 130.0, 300.0, 420.0, 130.0


def draw_flow(uses: Sequence[ToolUse], lessons: Mapping[str, int], title: str, width: int = WIDTH) -> str:
    """Return an SVG image of which programs each provider's runs called, how often they failed, and where
    lessons exist; `lessons` counts those about a program. A narrow image leaves the providers out."""
    calls: dict[str, list[int]] = {}
    totals: dict[str, int] = {}
    for use in uses:
        calls.setdefault(use.program, [0, 0])[0] += use.calls
        calls[use.program][1] += use.failed
        totals[use.provider] = totals.get(use.provider, 0) + use.calls
    # A program that failed or has a lesson says more than one that was merely called.
    programs = sorted(calls, key=lambda name: (-calls[name][1], -lessons.get(name, 0), -calls[name][0]))
    programs = sorted(programs[:_MAX_PROGRAMS], key=lambda name: -calls[name][0])
    providers = sorted(totals, key=lambda name: -totals[name])[:_MAX_PROVIDERS]
    height = _FLOW_TOP + _FLOW_ROW * max(len(programs), len(providers)) + 20
    rows = {name: _FLOW_TOP + _FLOW_ROW * (at + 0.5) for at, name in enumerate(programs)}
    gap = (height - _FLOW_TOP - 20) / len(providers)
    heads = {name: _FLOW_TOP + gap * (at + 0.5) for at, name in enumerate(providers)}
    called, failures = (sum(counts[at] for counts in calls.values()) for at in (0, 1))
    caption = f"{called} calls, {failures} failed."
    is_wide = width == WIDTH
    names_at, bars_at, longest = (_FLOW_NAMES, _FLOW_RIGHT, _FLOW_BAR) if is_wide else (20.0, 120.0, 80.0)
    caption += " Wider lines: more calls." if is_wide else ""
    caption += (
        " Solid: failed; bars by the root of the count. ★: lessons about it."
        if is_wide
        else " Solid: failed. ★: lessons."
    )
    body, top_calls = _heading(title, caption, size=15), max(count for count, _ in calls.values())
    for use in uses if is_wide else ():
        if use.provider in heads and use.program in rows:
            x1, y1, x2, y2 = _FLOW_LEFT + 12, heads[use.provider], _FLOW_NAMES - 8, rows[use.program]
            bend = (x1 + x2) / 2
            thickness = 1 + 7 * use.calls / top_calls
            path = f"M{x1:.1f},{y1:.1f} C{bend:.1f},{y1:.1f} {bend:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
            look = f'stroke="{_EDGE}" stroke-opacity="0.55" stroke-width="{thickness:.1f}"'
            body.append(f'<path d="{path}" fill="none" {look}/>')
    for name, y in heads.items() if is_wide else ():
        body.append(f'<circle cx="{_FLOW_LEFT:.1f}" cy="{y:.1f}" r="5" fill="{_COLOURS[0]}"/>')
        shown = _truncate(name or "(unknown)", _FLOW_LEFT - 30)
        body.append(_text(_FLOW_LEFT - 12, y + 4, shown, size=12, anchor="end"))
    described = [caption]
    for name, y in rows.items():
        count, failed = calls[name]
        # Roots, so that a program called ten times is seen beside one called a thousand times.
        length, failing = (longest * max(0.02, (each / top_calls) ** 0.5) for each in (count, failed))
        stars = f"★ {lessons[name]}" if lessons.get(name) else ""
        body.append(_text(names_at, y + 4, _truncate(name, bars_at - names_at - 8), size=12))
        bar = f'x="{bars_at:.1f}" y="{y - 7:.1f}" height="14" rx="2"'
        body.append(f'<rect {bar} width="{length:.1f}" fill="{_COLOURS[0]}" fill-opacity="0.18"/>')
        if failed:
            # On the scale of the calls: one failed call is not as long as twelve.
            body.append(f'<rect {bar} width="{failing:.1f}" fill="{_COLOURS[1]}"/>')
        told = f"{count} calls, {failed} failed" if failed else f"{count} calls"
        body.append(_text(bars_at + length + 8, y + 4, told, colour=_PALE))
        if stars:
            body.append(_text(width - 16, y + 4, stars, size=12, anchor="end", weight="bold"))
        described.append(f"{name}: {told}{f', {lessons[name]} lessons' if stars else ''}.")
    return _image(title, " ".join(described), width, height, body)


# The graph of a workspace, in three columns: names stay readable, and a graph always gives the same picture.

_GRAPH_WIDTH = 1240
_GRAPH_TOP, _GRAPH_ROW, _GRAPH_BOTTOM = 92, 23, 44
_EDGE = "#9fb1bf"
# x of each column's marks, the side of the labels, their width, where the heading starts, the heading.
_COLUMNS = (
    (256.0, "end", 226.0, 20, "workspaces, domains, repositories"),
    (520.0, "start", 330.0, 512, "plans, documents, decisions, lessons"),
    (980.0, "start", 180.0, 972, "tools, files, roles, issues, topics"),
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
_SWEEPS = 4
_DESCRIBED_RELATIONS = 40


def draw_graph(graph: Graph, title: str = "What the workspace speaks of") -> str:
    """Return an SVG image of the entities with the most evidence, and of their relations."""
    shown = top_subgraph(graph, MAX_NODES)
    columns = _arrange_columns(shown)
    caption = f"{len(graph.entities)} things, {len(graph.relations)} relations"
    if len(shown.entities) < len(graph.entities):
        caption += f"; the top {len(shown.entities)} are drawn, with {len(shown.relations)} relations"
    caption += ". A thicker line has more evidence; a dashed line is a tag."
    body = _heading(title, caption, size=18)
    # Labels come from the whole graph: an entity that is not drawn may have the same name.
    named = labels(graph)
    room = _GRAPH_ROW * max(map(len, columns))
    positions: dict[str, tuple[float, float]] = {}
    label_ends: dict[str, float] = {}
    # Halos are texts of their own below all labels, because not every viewer supports `paint-order`.
    halos: list[str] = []
    nodes: list[str] = []
    for column, (x, side, width, heading_x, heading) in zip(columns, _COLUMNS, strict=True):
        body.append(_text(heading_x, _GRAPH_TOP - 20, heading, size=12, colour=_PALE))
        for row, entity in enumerate(column):
            # A shorter column is spread over the whole height.
            y = _GRAPH_TOP + room * (row + 0.5) / len(column)
            positions[entity.id] = x, y
            full = named[entity.id]
            # The part that tells a label from others is cut last.
            where = f" ({_truncate(full.where, width / 2)})" if full.where else ""
            name = _truncate(full.name, width - _text_width(where)) + where
            kind = f" · {entity.kind.value}" if side == "start" else ""
            if side == "start":
                label_ends[entity.id] = x + 14 + _text_width(name) + _SMALL_LETTER * len(kind)
            start = f'<text x="{x + (10 if kind else -10):.1f}" y="{y + 4:.1f}" font-size="12"'
            start += f' text-anchor="{side}"'
            outline = 'stroke="#fff" stroke-width="4" stroke-linejoin="round" aria-hidden="true"'
            name, kind = _escape(name), f'font-size="10">{_escape(kind)}</tspan></text>'
            halos.append(f'{start} fill="#fff" {outline}>{name}<tspan {kind}')
            label = f'{start} fill="{_INK}">{name}<tspan fill="{_PALE}" {kind}'
            nodes += [f"<g>{_draw_mark(entity, x, y)}", label, "</g>"]
    edges = [_draw_edge(relation, positions, label_ends) for relation in shown.relations]
    called = labels(shown)
    description = " ".join(
        f"{called[each.source]} {each.kind.value.replace('_', ' ')} {called[each.target]} ({each.weight})."
        for each in shown.relations[:_DESCRIBED_RELATIONS]
    )
    height = _GRAPH_TOP + room + _GRAPH_BOTTOM
    parts = [*body, *edges, *halos, *nodes]
    return _image(title, description or "Nothing to draw.", _GRAPH_WIDTH, height, parts)


def _arrange_columns(graph: Graph) -> list[list[Entity]]:
    """Return the columns, each sorted so that related entities are near each other."""
    columns = [[entity for entity in graph.entities if _NODES[entity.kind][0] == at] for at in range(3)]
    columns[0].sort(key=lambda entity: entity.id.partition(":")[2])
    for column in columns[1:]:
        column.sort(key=lambda entity: (_KIND_ORDER.index(entity.kind), -entity.weight, entity.id))
    neighbours: dict[str, list[str]] = {}
    for relation in graph.relations:
        neighbours.setdefault(relation.source, []).append(relation.target)
        neighbours.setdefault(relation.target, []).append(relation.source)

    def mean_row(entity: Entity) -> tuple[float, str]:
        rows = {each.id: (at + 0.5) / len(column) for column in columns for at, each in enumerate(column)}
        near = [rows[other] for other in neighbours.get(entity.id, ())]
        return (round(sum(near) / len(near), 6) if near else 1.0), entity.id

    for at in (1, 2) * _SWEEPS:
        columns[at] = sorted(columns[at], key=mean_row)
    # In the right column readers look for the kind first.
    columns[2] = sorted(columns[2], key=lambda each: (_KIND_ORDER.index(each.kind), mean_row(each)))
    return columns


def _draw_edge(
    relation: Relation, positions: Mapping[str, tuple[float, float]], label_ends: Mapping[str, float]
) -> str:
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


def _draw_mark(entity: Entity, x: float, y: float) -> str:
    colour = _NODES[entity.kind][1]
    tooltip = _escape(f"{entity.kind.value}: {entity.name} ({entity.id.partition(':')[2]})")
    mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    if entity.kind in (EntityKind.DECISION, EntityKind.ISSUE):
        mark = f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    return f"<title>{tooltip}</title>{mark}"
