"""Commands about captured runs, and about logged attempts at tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, bank_command, command, list_records, print_json, write_file
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import episode_lines, field_lines, shorten
from archivist.edges.views import approach_view, attempt_view, rate_view, run_view
from archivist.errors import InputError
from archivist.records.run_words import Action

if TYPE_CHECKING:
    from archivist.audit.analytics import Rate
    from archivist.bank import Bank
    from archivist.records import Episode

# A task may be a whole prompt; a table needs its beginning.
_SUMMARY_CHARACTERS = 120
_TASK_CHARACTERS = 60
_LAST_OUTCOME = ("Last outcome", lambda view: view["last"]["outcome"])
_RATE_HEADINGS = ("Tries", "Worked", "Failed", "Success", "95 % bounds", "Mean time", "Tokens in/out")

episodes = click.Group(
    "episodes", help="List and show runs and attempts, log attempts, and compare approaches."
)


@command(episodes, "list")
@click.option("--project", metavar="NAME", default="", help="Only runs on this repository.")
@click.option("--task", metavar="TEXT", default="", help="Only runs of this task.")
@click.option("--agent", metavar="A", default="", help="Only attempts of this agent.")
@click.option("--action", type=options.enum_choice(Action), help="Only attempts with this result.")
@options.limit
def list_(
    session: Session, project: str, task: str, agent: str, action: str | None, limit: int | None
) -> Answer:
    """List the runs and attempts, latest first."""
    # Attempts name no repository, so such a list would always be empty.
    if project and (agent or action):
        raise click.UsageError("--project is for runs, --agent and --action are for attempts")
    with session.bank() as bank:
        if agent or action:
            found = bank.attempts.query(task=task, agent=agent, action=action, limit=limit)
        else:
            found = bank.runs.episodes(project=project, task=task, limit=limit)
    return _list_episodes(found)


@bank_command(episodes)
@click.argument("run", metavar="RUN")
def show(bank: Bank, run: str) -> Answer:
    """Print the run RUN: its outcome, what worked, what failed, what was decided."""
    episode = bank.runs.episode(run)
    names = ("action", "approach", "outcome") if episode.action else ()
    fields = field_lines((name, " ".join(str(getattr(episode, name)).split())) for name in names)
    return Answer({"episode": _episode_view(episode)}, "\n".join((*episode_lines(episode), *fields)))


@episodes.command()
@click.argument("run", metavar="RUN")
@click.pass_obj
def atif(session: Session, run: str) -> None:
    """Print the run RUN as an ATIF trajectory."""
    with session.bank() as bank:
        print_json(bank.runs.to_atif(run))


@command(episodes)
@click.argument("task", metavar="TASK")
@click.option("--agent", metavar="A", required=True, help="Who tried.")
@click.option("--action", type=options.enum_choice(Action), required=True, help="The result.")
@click.option("--approach", metavar="TEXT", required=True, help="What was tried.")
@click.option("--outcome", metavar="TEXT", default="", help="What happened.")
@click.option("--duration-ms", type=int, metavar="N", help="How long it took.")
@click.option("--tokens-in", type=int, metavar="N", help="Tokens read.")
@click.option("--tokens-out", type=int, metavar="N", help="Tokens written.")
@click.option("--provider", metavar="P", default="", help="The provider that was used.")
@click.option("--run", metavar="ID", default="", help="The captured run that it belongs to.")
@click.option("--time", metavar="TIME", help="When it ended, in ISO 8601; by default now.")
@click.option("--id", "name", metavar="ID", default="", help="Its id: logging the same id again updates it.")
def log(session: Session, /, task: str, time: str | None, name: str, **fields: Any) -> Answer:
    """Log an attempt at TASK: what was tried, and the result."""
    from archivist.clock import from_text

    try:
        ended = from_text(time) if time else None
    except (ValueError, OverflowError):
        raise InputError(f"{time!r} is not a time", hint="like 2026-04-03T14:00:00Z") from None
    with session.bank() as bank:
        made = bank.attempts.log(task, time=ended, id=name, **fields)
    return Answer({"episode": attempt_view(made)}, f"{made.id}  {_episode_summary(made)}")


@bank_command(episodes, "tried")
@click.argument("task", metavar="TASK")
def list_tried(bank: Bank, task: str) -> Answer:
    """Print the approaches tried for TASK and their results, successful ones first."""
    views = [approach_view(result) for result in bank.attempts.list_approaches(task)]
    agents = ("Agents", lambda view: ", ".join(view["agents"]))
    columns = ("Tries", "attempts"), ("Result", "verdict"), agents, "approach", _LAST_OUTCOME
    nothing = "no attempts at this task"
    return list_records("approaches", views, None, *columns, empty=nothing, task=task)


@bank_command(episodes)
@click.argument("agent", metavar="[AGENT]", default="")
@options.limit
def failures(bank: Bank, agent: str, limit: int | None) -> Answer:
    """List the failed attempts of AGENT, or of all agents, latest first."""
    found = bank.attempts.query(agent=agent, action=Action.FAILED, limit=limit)
    return _list_episodes(found, empty="no failures")


@bank_command(episodes)
@click.argument("text", metavar="TASK")
@click.option("--max", "limit", type=click.IntRange(1, 100), default=5, metavar="N", help="At most N.")
def similar(bank: Bank, text: str, limit: int) -> Answer:
    """Print the approaches tried for tasks similar to TASK, successful ones first."""
    found = bank.attempts.similar(text, limit=limit)
    views = [{**approach_view(each.tried), "score": round(each.score, 6)} for each in found]
    score = ("Score", lambda view: f"{view['score']:.2f}")
    task = ("Task", lambda view: shorten(view["task"], _TASK_CHARACTERS))
    columns = score, ("Result", "verdict"), task, "approach", _LAST_OUTCOME
    nothing = "no attempts at a similar task"
    return list_records("approaches", views, None, *columns, empty=nothing, text=text)


@bank_command(episodes)
@click.option(
    "--by",
    type=click.Choice(["approach", "agent", "provider", "task"]),
    default="approach",
    help="What to count by.",
)
@click.option("--since", type=options.DateTimeParam(), help="Only from this day on.")
@click.option("--until", type=options.DateTimeParam(), help="Only up to this time.")
@click.option("--step", type=click.Choice(["day", "week", "month"]), help="Also per day, week or month.")
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Also draw a chart.")
def stats(bank: Bank, /, svg: str | None, **asked: Any) -> Answer:
    """Print success rates of attempts by approach, agent, provider or task."""
    found = bank.attempts.analytics(**asked)
    if svg:
        from archivist.charts import draw_rate_chart

        write_file(svg, draw_rate_chart(found))
    views = [rate_view(rate) for rate in found.rows]
    view = {"by": asked["by"], "step": asked["step"], "rows": views, "total": rate_view(found.total)}
    if not found.rows:
        return Answer(view, notes=("no attempts: archivist episodes log records them",))
    rates = (*found.rows, found.total)
    rows = [_rate_cells(rate, rate.name or "(unknown)") for rate in rates]
    tables = [((*_RATE_HEADINGS, found.by.capitalize()), rows)]
    for rate in rates if found.step else ():
        rows = [_rate_cells(period, period.name) for period in rate.periods]
        tables.append(((*_RATE_HEADINGS, rate.name or "(unknown)"), rows))
    return Answer(view, tables=tables)


def _list_episodes(found: Sequence[Episode], *, empty: str = "") -> Answer:
    columns = ("Run", "id"), "status", "project", "agent", ("Summary", _episode_summary)
    return list_records("episodes", found, _episode_view, *columns, empty=empty)


def _episode_view(episode: Episode) -> dict[str, Any]:
    return attempt_view(episode) if episode.action else run_view(episode)


def _episode_summary(episode: Episode) -> str:
    """Return a run in one line; for an attempt what was tried and the outcome."""
    if episode.action is None:
        return episode.summary or episode.task[:_SUMMARY_CHARACTERS]
    outcome = f": {episode.outcome}" if episode.outcome else ""
    task = shorten(episode.task, _TASK_CHARACTERS)
    return f"{episode.action.value} {task}: {episode.approach}{outcome}"


def _rate_cells(rate: Rate, name: str) -> tuple[object, ...]:
    mean_ms = rate.mean_duration_ms
    if mean_ms is None:
        duration = "-"
    elif mean_ms < 1_000:
        duration = f"{mean_ms:.0f} ms"
    else:
        duration = f"{mean_ms / 1000:.1f} s" if mean_ms < 120_000 else f"{mean_ms / 60_000:.1f} min"
    low, high = rate.interval
    share = ("-", "-") if rate.share is None else (f"{rate.share:.0%}", f"{low:.0%} to {high:.0%}")
    tokens = f"{rate.tokens_in}/{rate.tokens_out}" if rate.tokens_in or rate.tokens_out else "-"
    return rate.attempts, rate.completed, rate.failed, *share, duration, tokens, name
