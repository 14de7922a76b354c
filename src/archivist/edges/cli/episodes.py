"""Commands about runs that were captured."""

from __future__ import annotations

import click

from archivist.edges.cli.output import json_option, print_json, print_table
from archivist.edges.cli.session import Session


@click.group()
def episodes() -> None:
    """List and show runs, and write them as ATIF."""


@episodes.command("list")
@click.option("--project", metavar="NAME", default="", help="Only runs on this repository.")
@click.option("--task", metavar="TEXT", default="", help="Only runs of this task.")
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest.")
@json_option
@click.pass_obj
def list_(session: Session, project: str, task: str, limit: int | None, as_json: bool) -> None:
    """Print the runs, the latest first."""
    from archivist.records.shapes import to_episode_line

    with session.bank() as bank:
        found = bank.episodes(project=project, task=task, limit=limit)
    if as_json:
        print_json({"episodes": [to_episode_line(each) for each in found]})
        return
    print_table(
        ("Run", "Status", "Project", "Agent", "Summary"),
        [(each.id, each.status, each.project, each.agent, each.summary or each.task[:120]) for each in found],
    )


@episodes.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def show(session: Session, run: str, as_json: bool) -> None:
    """Print what the run RUN was: its outcome, what worked, what failed, what was decided."""
    from archivist.edges.cli.telling import episode_lines
    from archivist.records.shapes import to_episode_line

    with session.bank() as bank:
        episode = bank.episode(run)
    if as_json:
        print_json({"episode": to_episode_line(episode)})
        return
    for line in episode_lines(episode):
        click.echo(line)


@episodes.command()
@click.argument("run", metavar="RUN")
@click.pass_obj
def atif(session: Session, run: str) -> None:
    """Print the run RUN as an ATIF trajectory."""
    with session.bank() as bank:
        print_json(bank.to_atif(run))
