"""Commands that ask whether memory helped."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import global_option, json_option, note, print_json, print_table
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.audit.report import Line


@click.group()
def audit() -> None:
    """Judge whether briefed lessons helped."""


@audit.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def check(session: Session, run: str, as_json: bool) -> None:
    """Judge each lesson that RUN was told: ineffective when its reviewers found it again, else helpful."""
    with session.bank() as bank:
        beside = session.global_bank()
        verdicts = bank.audit(run, beside=beside)
        names = bank.lesson_names()
        if beside is not None:
            names = {**beside.lesson_names(), **names}
    rows = [(names.get(each.lesson, (each.lesson, ""))[0], each.effect.value) for each in verdicts]
    if as_json:
        print_json({"run": run, "verdicts": [{"lesson": name, "effect": effect} for name, effect in rows]})
        return
    if not rows:
        note(f"run {run!r} was told nothing")
        return
    print_table(
        ("ID", "Effect", "Description"),
        [
            (name, effect, names.get(each.lesson, ("", ""))[1])
            for (name, effect), each in zip(rows, verdicts, strict=True)
        ],
    )


@audit.command()
@global_option
@json_option
@click.pass_obj
def report(session: Session, is_global: bool, as_json: bool) -> None:
    """Sum up the verdicts per lesson, worst first, per month, and in all."""
    with session.bank(is_global=is_global) as bank:
        found = bank.audit_report()
    if as_json:
        print_json(
            {
                "lessons": [_line(line) for line in found.lessons],
                "months": [_line(line) for line in found.months],
                "total": _line(found.total),
            }
        )
        return
    if found.total.share is None:
        note("no verdicts yet: archivist audit check RUN makes them")
        return
    rows = [
        (line.lesson, line.helpful, line.ineffective, f"{line.share:.0%}", line.summary)
        for line in (*found.lessons, *found.months, found.total)
    ]
    print_table(("ID", "Helpful", "Ineffective", "Share", "Description"), rows)


@audit.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def regressions(session: Session, run: str, as_json: bool) -> int:
    """Report findings of RUN that an earlier run had fixed; exit 1 when there are any."""
    with session.bank() as bank:
        found = bank.regressions(run)
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


def _line(line: Line) -> dict[str, Any]:
    return {**asdict(line), "share": line.share}
