"""Commands that judge whether lessons helped."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import global_option, json_option, note, print_json, print_table, write_file
from archivist.edges.cli.session import Session
from archivist.edges.views import regression_view, report_row_view, verdicts_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archivist.audit.lift import Lift
    from archivist.audit.report import ReportRow

_LEGEND = (
    "Helped: followed, and its failure did not occur, or not again; Failed: it did;"
    " Likely share: the share that helped, with its 95 % interval."
)
_LEGEND_HELD_OUT = (
    " Withheld: runs from which it was randomly withheld; Prevents: fewer failures a run when given, with the"
    " 95 % interval; More runs: how many until an effect shows with even odds."
)


@click.group()
def audit() -> None:
    """Judge whether briefed lessons helped."""


@audit.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def check(session: Session, run: str, as_json: bool) -> None:
    """Judge each lesson that RUN was given: ineffective when its failure occurred again, else helpful."""
    with session.bank() as bank:
        global_bank = session.global_bank()
        verdicts = verdicts_view(bank, bank.audit(run, global_bank=global_bank), global_bank=global_bank)
    if as_json:
        print_json({"run": run, "verdicts": verdicts})
    elif not verdicts:
        note(f"run {run!r} was given no lessons")
    else:
        print_table(
            ("ID", "Effect", "Followed", "Description"),
            [
                (each["lesson"], each["effect"], each["following"].replace("_", " "), each["summary"])
                for each in verdicts
            ],
        )


@audit.command()
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Write a chart to FILE.")
@click.option("--lesson", "name", metavar="ID", help="Only this lesson.")
@global_option
@json_option
@click.pass_obj
def report(session: Session, svg: str | None, name: str | None, is_global: bool, as_json: bool) -> None:
    """Sum up whether lessons helped: per lesson, worst first, per month, and in total.

    Where lessons are withheld from some runs (hold-out), failures with and without them are compared.
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
        from archivist.charts import draw_report_chart

        title = f"Did {lines[0].lesson} help?" if lesson else "Did the lessons help?"
        write_file(svg, draw_report_chart(lines[0] if lesson else found.total, title))
    if as_json:
        whole = {
            "months": [report_row_view(line) for line in found.months],
            "total": report_row_view(found.total),
        }
        rows = {"lessons": [report_row_view(line) for line in lines]}
        print_json({**rows, "proposals": [asdict(each) for each in steps], **({} if lesson else whole)})
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
    rows = [regression_view(each) for each in found]
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


def _print_lines(lines: Sequence[ReportRow], steps: dict[str, str]) -> None:
    is_held_out = any(line.lift.arms.withheld for line in lines)
    headings = ["ID", "Told", "Followed", "Ignored", "No occasion", "Helped", "Failed", "Likely share"]
    headings += ["Withheld", "Fails told/withheld", "Prevents", "More runs"] if is_held_out else []

    def share_text(line: ReportRow) -> str:
        low, high = line.posterior.interval
        return f"{line.posterior.mean:.0%} ({low:.0%} to {high:.0%})" if line.judged_count else "-"

    print_table(
        (*headings, "Proposal", "Description"),
        [
            (
                *(line.lesson, line.told, line.followed, line.ignored, line.not_applicable),
                *(line.helpful, line.ineffective),
                share_text(line),
                *(_lift_cells(line.lift) if is_held_out else ()),
                steps.get(line.lesson, ""),
                line.summary,
            )
            for line in lines
        ],
    )
    note(_LEGEND + (_LEGEND_HELD_OUT if is_held_out else ""))


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
