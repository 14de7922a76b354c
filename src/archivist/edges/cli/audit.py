"""Commands that judge whether lessons helped."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import (
    Answer,
    Table,
    bank_command,
    command,
    global_option,
    list_records,
    write_file,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import regression_view, report_row_view, verdicts_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from archivist.audit.lift import Lift
    from archivist.audit.report import ReportRow
    from archivist.bank import Bank

_LEGEND = (
    "Helped: followed, and its failure did not occur, or not again; Failed: it did;"
    " Likely share: the share that helped, with its 95 % interval."
)
_LEGEND_HELD_OUT = (
    " Withheld: runs from which it was randomly withheld; Prevents: fewer failures a run when given, with the"
    " 95 % interval; More runs: how many until an effect shows with even odds."
)

audit = click.Group("audit", help="Judge whether briefed lessons helped.")


@command(audit)
@click.argument("run", metavar="RUN")
def check(session: Session, run: str) -> Answer:
    """Judge each lesson that RUN was given: ineffective when its failure occurred again, else helpful."""
    with session.bank() as bank:
        global_bank = session.global_bank()
        verdicts = verdicts_view(bank, bank.audit(run, global_bank=global_bank), global_bank=global_bank)
    followed = ("Followed", lambda view: view["following"].replace("_", " "))
    columns = ("ID", "lesson"), "effect", followed, ("Description", "summary")
    nothing = f"run {run!r} was given no lessons"
    return list_records("verdicts", verdicts, None, *columns, empty=nothing, run=run)


@command(audit)
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Write a chart to FILE.")
@click.option("--lesson", "name", metavar="ID", help="Only this lesson.")
@global_option
def report(session: Session, svg: str | None, name: str | None, is_global: bool) -> Answer:
    """Sum up whether lessons helped: per lesson, worst first, per month, and in total.

    Where lessons are withheld from some runs (hold-out), failures with and without them are compared.
    """
    from archivist.audit.report import recommend_steps
    from archivist.brief.select import global_mark_of

    with session.bank_of(*filter(None, [name]), is_global=is_global) as (bank, bare):
        found = bank.audits.audit_report()
        lesson = bank.lessons.get(bare[0]).short_id if bare else ""
    # Lessons of the global bank are named as briefs name them.
    mark = global_mark_of(name or "")
    asked = [line for line in found.lessons if lesson in (line.lesson, "")]
    lines = tuple(replace(line, lesson=f"{mark}{line.lesson}") for line in asked)
    steps = recommend_steps(replace(found, lessons=lines))
    if svg and lines:
        from archivist.charts import draw_report_chart

        title = f"Did {lines[0].lesson} help?" if lesson else "Did the lessons help?"
        write_file(svg, draw_report_chart(lines[0] if lesson else found.total, title))
    view: dict[str, object] = {
        "lessons": [report_row_view(line) for line in lines],
        "proposals": [asdict(each) for each in steps],
    }
    if not lesson:
        view["months"] = [report_row_view(line) for line in found.months]
        view["total"] = report_row_view(found.total)
    if not lines:
        return Answer(view, notes=("no verdicts yet: archivist audit check RUN makes them",))
    shown = [*lines, *(() if lesson else (*found.months, found.total))]
    is_held_out = any(line.lift.arms.withheld for line in shown)
    table = _report_table(shown, {each.lesson: each.step for each in steps}, is_held_out=is_held_out)
    # In the whole report only what calls for an action.
    needed = [each for each in steps if lesson or each.step != "keep"]
    advice = [f"{each.step} {each.lesson}: {each.reason}" for each in needed]
    return Answer(view, notes=[_LEGEND + (_LEGEND_HELD_OUT if is_held_out else ""), *advice], tables=[table])


@bank_command(audit)
@click.argument("run", metavar="RUN")
def regressions(bank: Bank, run: str) -> Answer:
    """Report findings of RUN that an earlier run had fixed; exit 1 when there are any."""
    found = bank.audits.regressions(run)
    columns = ("Fixed in", "fixed_in"), ("Severity", "found.severity"), ("Found again", "found.description")
    nothing = "nothing that was fixed came back"
    answer = list_records("regressions", found, regression_view, *columns, empty=nothing, run=run)
    return answer._replace(code=1 if found else 0)


def _report_table(lines: Sequence[ReportRow], steps: Mapping[str, str], *, is_held_out: bool) -> Table:
    headings = ["ID", "Told", "Followed", "Ignored", "No occasion", "Helped", "Failed", "Likely share"]
    headings += ["Withheld", "Fails told/withheld", "Prevents", "More runs"] if is_held_out else []
    rows = []
    for line in lines:
        low, high = line.posterior.interval
        share = f"{line.posterior.mean:.0%} ({low:.0%} to {high:.0%})" if line.judged_count else "-"
        counts = (line.told, line.followed, line.ignored, line.not_applicable, line.helpful, line.ineffective)
        lift = _lift_cells(line.lift) if is_held_out else ()
        rows.append((line.lesson, *counts, share, *lift, steps.get(line.lesson, ""), line.summary))
    return (*headings, "Proposal", "Description"), rows


def _lift_cells(lift: Lift) -> tuple[str, ...]:
    """Return the cells that compare told with withheld runs."""
    arms = lift.arms
    rates = "/".join("-" if rate is None else f"{rate:.0%}" for rate in (arms.rate_told, arms.rate_withheld))
    # There are no runs of both sorts to compare yet.
    if lift.difference is None or lift.interval is None:
        return str(arms.withheld), rates, "-", "-"
    low, high = lift.interval
    prevents = f"{lift.difference:+.0%} ({low:+.0%} to {high:+.0%}) {lift.conclusion.value}"
    needed = "-" if lift.runs_needed is None else str(lift.runs_needed)
    return str(arms.withheld), rates, prevents, needed
