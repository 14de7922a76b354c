"""Commands about runs that were captured, and about attempts at tasks that were logged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    DateTimeParam,
    enum_choice,
    json_option,
    note,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.records.run_words import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archivist.audit.analytics import Rate
    from archivist.layers.attempts.service import Analytics, ApproachResult
    from archivist.records import Episode

_SHOWN = 120
_MOST = click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest.")


@click.group()
def episodes() -> None:
    """List and show runs and attempts, log attempts, and learn from them."""


@episodes.command("list")
@click.option("--project", metavar="NAME", default="", help="Only runs on this repository.")
@click.option("--task", metavar="TEXT", default="", help="Only runs of this task.")
@click.option("--agent", metavar="A", default="", help="Only attempts of this agent.")
@click.option("--action", type=enum_choice(Action), help="Only attempts of which this became.")
@_MOST
@json_option
@click.pass_obj
def list_(
    session: Session,
    project: str,
    task: str,
    agent: str,
    action: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the runs, the latest first, attempts among them."""
    if project and (agent or action):
        raise click.UsageError("--project is for runs, --agent and --action are for attempts")
    with session.bank() as bank:
        if agent or action:
            found = bank.attempts.query(task=task, agent=agent, action=action, limit=limit)
        else:
            found = bank.runs.episodes(project=project, task=task, limit=limit)
    _print_episodes(found, as_json=as_json)


@episodes.command()
@click.argument("run", metavar="RUN")
@json_option
@click.pass_obj
def show(session: Session, run: str, as_json: bool) -> None:
    """Print what the run RUN was: its outcome, what worked, what failed, what was decided."""
    from archivist.edges.cli.telling import episode_lines
    from archivist.records.shapes import to_episode_line

    with session.bank() as bank:
        episode = bank.runs.episode(run)
    if as_json:
        print_json({"episode": to_episode_line(episode)})
        return
    for line in episode_lines(episode):
        say(line)
    for name in ("action", "approach", "outcome") if episode.action else ():
        if text := " ".join(str(getattr(episode, name)).split()):
            say(f"  {name:<12}{text}")


@episodes.command()
@click.argument("run", metavar="RUN")
@click.pass_obj
def atif(session: Session, run: str) -> None:
    """Print the run RUN as an ATIF trajectory."""
    with session.bank() as bank:
        print_json(bank.runs.to_atif(run))


@episodes.command()
@click.argument("task", metavar="TASK")
@click.option("--agent", metavar="A", required=True, help="Who tried.")
@click.option("--action", type=enum_choice(Action), required=True, help="What became of it.")
@click.option("--approach", metavar="TEXT", required=True, help="What was tried.")
@click.option("--outcome", metavar="TEXT", default="", help="What happened.")
@click.option("--duration-ms", type=int, metavar="N", help="How long it took.")
@click.option("--tokens-in", type=int, metavar="N", help="Tokens read.")
@click.option("--tokens-out", type=int, metavar="N", help="Tokens written.")
@click.option("--provider", metavar="P", default="", help="The provider that was used.")
@click.option("--run", metavar="ID", default="", help="The captured run in which it was made.")
@click.option("--time", metavar="TIME", help="When it ended, in ISO 8601; by default now.")
@click.option("--id", "name", metavar="ID", default="", help="A name of its own: logged twice it is one.")
@json_option
@click.pass_obj
def log(session: Session, /, task: str, time: str | None, name: str, as_json: bool, **told: Any) -> None:
    """Log an attempt at TASK: what was tried, and what came of it."""
    from archivist.records.shapes import to_episode_line

    with session.bank() as bank:
        made = bank.attempts.log(task, time=_parse_time(time), id=name, **told)
    if as_json:
        print_json({"episode": to_episode_line(made)})
        return
    say(f"{made.id}  {_episode_summary(made)}")


@episodes.command()
@click.argument("task", metavar="TASK")
@json_option
@click.pass_obj
def tried(session: Session, task: str, as_json: bool) -> None:
    """Print what was tried for TASK and what became of it: what worked first."""
    with session.bank() as bank:
        found = bank.attempts.list_approaches(task)
    if as_json:
        print_json({"task": task, "approaches": [_approach_view(each) for each in found]})
    elif not found:
        note("nothing was tried for this task")
    else:
        print_table(
            ("Tries", "Result", "Agents", "Approach", "Last outcome"),
            [
                (each.attempts, each.verdict, ", ".join(each.agents), each.approach, each.last.outcome)
                for each in found
            ],
        )


@episodes.command()
@click.argument("agent", metavar="[AGENT]", default="")
@_MOST
@json_option
@click.pass_obj
def failures(session: Session, agent: str, limit: int | None, as_json: bool) -> None:
    """Print the failed attempts of AGENT, or of all, the latest first."""
    with session.bank() as bank:
        found = bank.attempts.query(agent=agent, action=Action.FAILED, limit=limit)
    if not as_json and not found:
        note("no failures")
        return
    _print_episodes(found, as_json=as_json)


@episodes.command()
@click.argument("text", metavar="TASK")
@click.option("--max", "limit", type=click.IntRange(1, 100), default=5, metavar="N", help="At most N.")
@json_option
@click.pass_obj
def similar(session: Session, text: str, limit: int, as_json: bool) -> None:
    """Print what was tried for tasks like TASK, found by words and meaning: what worked first."""
    with session.bank() as bank:
        found = bank.attempts.similar(text, limit=limit)
    if as_json:
        rows = [{**_approach_view(each.tried), "score": round(each.score, 6)} for each in found]
        print_json({"text": text, "approaches": rows})
    elif not found:
        note("nothing was tried for a task like this")
    else:
        print_table(
            ("Score", "Result", "Task", "Approach", "Last outcome"),
            [
                (
                    f"{each.score:.2f}",
                    each.tried.verdict,
                    _shorten(each.tried.task),
                    each.tried.approach,
                    each.tried.last.outcome,
                )
                for each in found
            ],
        )


@episodes.command()
@click.option(
    "--by", type=click.Choice(["approach", "agent", "provider", "task"]), default="approach", help="Count by."
)
@click.option("--since", type=DateTimeParam(), help="Only from this day on.")
@click.option("--until", type=DateTimeParam(), help="Only up to this time.")
@click.option("--step", type=click.Choice(["day", "week", "month"]), help="Also the course over time.")
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Draw it.")
@json_option
@click.pass_obj
def stats(
    session: Session,
    by: str,
    since: datetime | None,
    until: datetime | None,
    step: str | None,
    svg: str | None,
    as_json: bool,
) -> None:
    """Count how attempts went: how often each approach, agent, provider or task succeeded."""
    first, last = (each.replace(tzinfo=UTC) if each else None for each in (since, until))
    with session.bank() as bank:
        found = bank.attempts.analytics(by=by, since=first, until=last, step=step)
    if svg:
        _draw_chart(svg, found)
    if as_json:
        rows = [_rate_view(each) for each in found.rows]
        print_json({"by": by, "step": step, "rows": rows, "total": _rate_view(found.total)})
    elif not found.rows:
        note("no attempts: archivist episodes log records them")
    else:
        _print_rates(found)


def _print_episodes(found: Sequence[Episode], *, as_json: bool) -> None:
    from archivist.records.shapes import to_episode_line

    if as_json:
        print_json({"episodes": [to_episode_line(each) for each in found]})
        return
    print_table(
        ("Run", "Status", "Project", "Agent", "Summary"),
        [(each.id, each.status, each.project, each.agent, _episode_summary(each)) for each in found],
    )


def _episode_summary(episode: Episode) -> str:
    """Return a run in one line: of an attempt what was tried and what came of it."""
    if episode.action is None:
        return episode.summary or episode.task[:_SHOWN]
    ending = f": {episode.outcome}" if episode.outcome else ""
    return f"{episode.action.value} {_shorten(episode.task)}: {episode.approach}{ending}"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN // 2 else f"{text[: _SHOWN // 2 - 1]}…"


def _approach_view(tried: ApproachResult) -> dict[str, Any]:
    from archivist.clock import to_short_text

    last = tried.last
    return {
        "task": tried.task,
        "approach": tried.approach,
        "attempts": tried.attempts,
        "completed": tried.completed,
        "failed": tried.failed,
        "agents": list(tried.agents),
        "verdict": tried.verdict,
        "last": {
            "id": last.id,
            "action": last.action.value if last.action else None,
            "outcome": last.outcome,
            "time": to_short_text(last.finished) if last.finished else None,
        },
    }


def _parse_time(text: str | None) -> datetime | None:
    from archivist.clock import from_text
    from archivist.errors import InputError

    try:
        return from_text(text) if text else None
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a time", hint="like 2026-04-03T14:00:00Z") from None


def _draw_chart(path: str, found: Analytics) -> None:
    from pathlib import Path

    from archivist.charts import draw_rate_chart
    from archivist.errors import InputError

    try:
        Path(path).write_text(draw_rate_chart(found), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be written: {error.strerror}", hint="name a file that can be"
        ) from None
    note(f"wrote {path}")


def _rate_view(rate: Rate) -> dict[str, Any]:
    low, high = rate.interval
    return {
        "name": rate.name,
        "attempts": rate.attempts,
        "completed": rate.completed,
        "failed": rate.failed,
        "undecided": rate.undecided_count,
        "rate": rate.share,
        "low": low,
        "high": high,
        "mean_duration_ms": rate.mean_duration_ms,
        "tokens_in": rate.tokens_in,
        "tokens_out": rate.tokens_out,
        **({"periods": [_rate_view(each) for each in rate.periods]} if rate.periods else {}),
    }


def _print_rates(found: Analytics) -> None:
    rows = [_rate_cells(each, each.name or "(unknown)") for each in (*found.rows, found.total)]
    heading = found.by.value.capitalize()
    columns = ("Tries", "Worked", "Failed", "Success", "95 % bounds", "Mean time", "Tokens in/out")
    print_table((*columns, heading), rows)
    for each in (*found.rows, found.total) if found.step else ():
        say()
        print_table(
            (*columns, each.name or "(unknown)"),
            [_rate_cells(period, period.name) for period in each.periods],
        )


def _rate_cells(rate: Rate, name: str) -> tuple[object, ...]:
    low, high = rate.interval
    is_known = rate.share is not None
    return (
        rate.attempts,
        rate.completed,
        rate.failed,
        f"{rate.share:.0%}" if is_known else "-",
        f"{low:.0%} to {high:.0%}" if is_known else "-",
        _format_duration(rate.mean_duration_ms),
        f"{rate.tokens_in}/{rate.tokens_out}" if rate.tokens_in or rate.tokens_out else "-",
        name,
    )


def _format_duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    seconds = milliseconds / 1000
    return (
        f"{milliseconds:.0f} ms"
        if seconds < 1
        else f"{seconds:.1f} s"
        if seconds < 120
        else f"{seconds / 60:.1f} min"
    )
