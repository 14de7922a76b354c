"""Commands that ask whether memory helped."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import global_option, json_option, note, print_json, print_table
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archivist.audit.lift import Lift
    from archivist.audit.report import LessonRecommendation, Report, ReportRow
    from archivist.records import Verdict

_LEGEND = (
    "Helped: followed, and its failure did not come, or not again; Failed: it did;"
    " Likely share: of helped, with its 95 % bounds."
)
_LEGEND_HELD_OUT = (
    " Withheld: runs not told, by lot; Prevents: failures fewer a run when told, with 95 % bounds;"
    " More runs: until it is an even bet that this shows."
)


@click.group()
def audit() -> None:
    """Judge whether briefed lessons helped."""


@audit.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def check(session: Session, run: str, as_json: bool) -> None:
    """Judge each lesson that RUN was told: ineffective when its reviewers found it again, else helpful."""
    from archivist.brief.select import GLOBAL_MARK

    with session.bank() as bank:
        beside = session.global_bank()
        verdicts = bank.audit(run, global_bank=beside)
        names = bank.lessons.lesson_names()
        if beside is not None:
            theirs = beside.lessons.lesson_names().items()
            names = {**{key: (f"{GLOBAL_MARK}{name}", words) for key, (name, words) in theirs}, **names}
    named = [(*names.get(each.lesson, (each.lesson, "")), each) for each in verdicts]
    if as_json:
        print_json({"run": run, "verdicts": [_verdict_view(name, each) for name, _, each in named]})
    elif not named:
        note(f"run {run!r} was told nothing")
    else:
        print_table(
            ("ID", "Effect", "Followed", "Description"),
            [(name, each.effect.value, _following_text(each), words) for name, words, each in named],
        )


@audit.command()
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Draw the course over time.")
@click.option("--lesson", "name", metavar="ID", help="Of this lesson only.")
@global_option
@json_option
@click.pass_obj
def report(session: Session, svg: str | None, name: str | None, is_global: bool, as_json: bool) -> None:
    """Sum up whether lessons helped: per lesson, worst first, per month, and in all.

    Where lessons are withheld from some runs (hold-out), failures with and without are compared.
    """
    from archivist.audit.report import recommend_steps
    from archivist.brief.select import global_mark_of

    bank, bare = session.bank_of(*filter(None, [name]), is_global=is_global)
    with bank:
        found = bank.audits.audit_report()
        lesson = bank.lessons.get(bare[0]).short_id if bare else ""
    mark = global_mark_of(name or "")
    lines = [
        replace(line, lesson=f"{mark}{line.lesson}") for line in found.lessons if lesson in (line.lesson, "")
    ]
    steps = [
        replace(each, lesson=f"{mark}{each.lesson}")
        for each in recommend_steps(found)
        if lesson in (each.lesson, "")
    ]
    if svg and lines:
        _draw_chart(svg, lines[0] if lesson else found.total)
    if as_json:
        _print_report(found, lines, steps, is_whole=not lesson)
    elif not lines:
        note("no verdicts yet: archivist audit check RUN makes them")
    else:
        rest = () if lesson else (*found.months, found.total)
        _print_lines([*lines, *rest], {each.lesson: each.step.value for each in steps})
        for each in steps:
            if lesson or each.step.value != "keep":
                note(f"{each.step.value} {each.lesson}: {each.reason}")


@audit.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def regressions(session: Session, run: str, as_json: bool) -> int:
    """Report findings of RUN that an earlier run had fixed; exit 1 when there are any."""
    with session.bank() as bank:
        found = bank.audits.regressions(run)
    rows = [
        {"found": each.found.description, "severity": each.found.severity.value, "fixed_in": each.fixed_in}
        for each in found
    ]
    if as_json:
        print_json({"run": run, "regressions": rows})
    elif rows:
        print_table(
            ("Fixed in", "Severity", "Found again"),
            [(row["fixed_in"], row["severity"], row["found"]) for row in rows],
        )
    else:
        note("nothing that was fixed came back")
    return 1 if rows else 0


def _following_text(verdict: Verdict) -> str:
    return verdict.following.value.replace("_", " ")


def _verdict_view(name: str, verdict: Verdict) -> dict[str, str]:
    known = verdict.following.value
    return {
        "lesson": name,
        "effect": verdict.effect.value,
        **({"following": known} if known != "unknown" else {}),
    }


def _draw_chart(path: str, line: ReportRow) -> None:
    from pathlib import Path

    from archivist.charts import draw_report_chart
    from archivist.errors import InputError

    title = "Did the lessons help?" if line.lesson == "all" else f"Did {line.lesson} help?"
    try:
        Path(path).write_text(draw_report_chart(line, title), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be written: {error.strerror}", hint="name a file that can be"
        ) from None
    note(f"wrote {path}")


def _print_report(
    found: Report, lines: Sequence[ReportRow], steps: Sequence[LessonRecommendation], *, is_whole: bool
) -> None:
    told: dict[str, Any] = {
        "lessons": [_line_view(line) for line in lines],
        "proposals": [asdict(each) for each in steps],
    }
    if is_whole:
        told |= {"months": [_line_view(line) for line in found.months], "total": _line_view(found.total)}
    print_json(told)


def _print_lines(lines: Sequence[ReportRow], steps: dict[str, str]) -> None:
    is_held_out = any(line.lift.arms.withheld for line in lines)
    headings = ["ID", "Told", "Followed", "Ignored", "No occasion", "Helped", "Failed", "Likely share"]
    headings += ["Withheld", "Fails told/withheld", "Prevents", "More runs"] if is_held_out else []
    print_table(
        (*headings, "Proposal", "Description"),
        [
            (
                *(line.lesson, line.told, line.followed, line.ignored, line.not_applicable),
                *(line.helpful, line.ineffective),
                _posterior_text(line),
                *(_lift_cells(line.lift) if is_held_out else ()),
                steps.get(line.lesson, ""),
                line.summary,
            )
            for line in lines
        ],
    )
    note(_LEGEND + (_LEGEND_HELD_OUT if is_held_out else ""))


def _posterior_text(line: ReportRow) -> str:
    if not line.judged_count:
        return "-"
    low, high = line.posterior.interval
    return f"{line.posterior.mean:.0%} ({low:.0%} to {high:.0%})"


def _lift_cells(lift: Lift) -> tuple[str, ...]:
    """Return the cells that compare told with withheld runs."""
    arms = lift.arms
    rates = "/".join("-" if rate is None else f"{rate:.0%}" for rate in (arms.rate_told, arms.rate_withheld))
    if lift.difference is None or lift.interval is None:
        return str(arms.withheld), rates, "-", "-"
    low, high = lift.interval
    prevents = f"{lift.difference:+.0%} ({low:+.0%} to {high:+.0%}) {lift.conclusion.value}"
    needed = "-" if lift.runs_needed is None else str(lift.runs_needed)
    return str(arms.withheld), rates, prevents, needed


def _line_view(line: ReportRow) -> dict[str, Any]:
    counts = ("lesson", "summary", "helpful", "ineffective", "share", "told", "followed", "ignored")
    low, high = line.posterior.interval
    return {
        **{name: getattr(line, name) for name in counts},
        "not_applicable": line.not_applicable,
        "posterior": {"mean": line.posterior.mean, "low": low, "high": high},
        "lift": _lift_view(line.lift),
        **({"periods": [_line_view(each) for each in line.periods]} if line.periods else {}),
    }


def _lift_view(lift: Lift) -> dict[str, Any]:
    low, high = lift.interval or (None, None)
    return {
        **asdict(lift.arms),
        "rate_told": lift.arms.rate_told,
        "rate_withheld": lift.arms.rate_withheld,
        "difference": lift.difference,
        "low": low,
        "high": high,
        "verdict": lift.conclusion.value,
        "runs_needed": lift.runs_needed,
    }
