"""Commands about tasks: plan them, report on them, work on them with worker commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import click

from archivist.bank import Bank
from archivist.bus import Message
from archivist.edges import views
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, list_records, note
from archivist.edges.cli.wording import field_lines, pluralize
from archivist.layers.tasks_service import AgentActivity
from archivist.records import Task
from archivist.records.tier_words import TaskState
from archivist.text import shorten_line

_TITLE_CHARACTERS = 80
_WIDTH = 14

tasks = CommandGroup("tasks", help="Plan tasks, work on them with worker commands, see what each agent does.")


@options.bank_command(tasks)
@click.argument("title", metavar="TEXT")
@click.option("--id", metavar="ID", default="", help="Its name; one is made when missing.")
@click.option("--parent", metavar="ID", default="", help="The task that it is a part of.")
@click.option("--needs", metavar="ID", multiple=True, help="A task that must be done before; repeatable.")
@click.option("--owner", metavar="A", default="", help="The agent that does it.")
@click.option("--approach", "approaches", metavar="TEXT", multiple=True, help="A way to do it; repeatable.")
@click.option("--attempts", "max_attempts", type=int, metavar="N", help="How often it is tried.")
def add(bank: Bank, /, **fields: Any) -> Answer:
    """Add a task; with a known --id change its plan."""
    return _one_task(bank, bank.tasks.add(**fields))


@options.bank_command(tasks, "list")
@click.option("--state", type=options.enum_choice(TaskState), help="Only in this state.")
@click.option("--owner", metavar="A", default="", help="Only of this agent.")
@click.option("--parent", metavar="ID", default="", help="Only parts of this task.")
@options.limit("At most N, the oldest first.")
def list_tasks(bank: Bank, /, **filters: Any) -> Answer:
    """List the tasks, oldest first, and what open ones wait for."""
    found = bank.tasks.query(**filters)
    waiting = bank.tasks.waits_for(found)
    waits = ("Waits for", lambda task: ", ".join(waiting[task.id]))
    columns = "id", "state", "owner", ("Tries", "attempts"), waits, ("Task", _task_line)
    nothing = "no tasks: archivist tasks add makes one"
    return list_records(
        "tasks", found, lambda task: views.task_view(task, waiting[task.id]), *columns, empty=nothing
    )


@options.bank_command(tasks, "show")
@click.argument("name", metavar="TASK")
def show_task(bank: Bank, name: str) -> Answer:
    """Print a task, what was tried for it and what it produced."""
    task = bank.tasks.get(name)
    view = views.task_view(task, bank.tasks.waits_for([task])[task.id])
    attempts = [views.attempt_view(bank, each) for each in reversed(bank.attempts.query(task=task.id))]
    artifacts = bank.artifacts.query(task=task.id)
    shown = view | views.pick(task, "created updated started finished")
    lines = [task.title, "", *field_lines((item for item in shown.items() if item[0] != "title"), _WIDTH)]
    lines += ["", *(f"{each['action']}: {each['approach']}  {each['outcome'] or ''}" for each in attempts)]
    lines += [f"{each.type.value}: {each.path}" for each in artifacts]
    beside = {"attempts_log": attempts, "artifacts": [views.table_view(each) for each in artifacts]}
    return Answer({"task": view, **beside}, "\n".join(lines).rstrip())


@options.bank_command(tasks)
@click.argument("name", metavar="TASK")
@click.option("--agent", metavar="A", default="", help="Who does it; by default its owner or the actor.")
@click.option("--approach", metavar="TEXT", default="", help="The way it is tried.")
@click.option("--run", metavar="ID", default="", help="The run that it belongs to.")
def start(bank: Bank, /, name: str, **fields: Any) -> Answer:
    """Begin an attempt at TASK."""
    return _one_task(bank, bank.tasks.start(name, **fields))


@options.bank_command(tasks)
@click.argument("name", metavar="TASK")
@click.argument("result", metavar="[RESULT]", default="")
def finish(bank: Bank, name: str, result: str) -> Answer:
    """Complete TASK with its RESULT."""
    return _one_task(bank, bank.tasks.finish(name, result))


@options.bank_command(tasks)
@click.argument("name", metavar="TASK")
@click.argument("error", metavar="[ERROR]", default="")
@click.option("--retry/--give-up", "retry", default=None, help="Decide whether it is tried again.")
def fail(bank: Bank, name: str, error: str, retry: bool | None) -> Answer:
    """End an attempt at TASK that failed with ERROR; by default its limits decide on another attempt."""
    return _one_task(bank, bank.tasks.fail(name, error, retry=retry))


@options.bank_command(tasks)
@click.argument("name", metavar="TASK")
@click.argument("reason", metavar="[REASON]", default="")
def reopen(bank: Bank, name: str, reason: str) -> Answer:
    """Open TASK again after it ended or was abandoned."""
    return _one_task(bank, bank.tasks.reopen(name, reason))


@options.bank_command(tasks)
@click.argument("name", metavar="TASK")
@click.argument("reason", metavar="[REASON]", default="")
def cancel(bank: Bank, name: str, reason: str) -> Answer:
    """End TASK without doing it."""
    return _one_task(bank, bank.tasks.cancel(name, reason))


@options.bank_command(tasks, "remove")
@click.argument("name", metavar="TASK")
def remove_task(bank: Bank, name: str) -> Answer:
    """Remove TASK; its history and its attempts stay."""
    return _one_task(bank, bank.tasks.remove(name))


@options.bank_command(tasks)
@click.argument("agent", metavar="[AGENT]", default="")
def activity(bank: Bank, agent: str) -> Answer:
    """Say what each agent is doing, or AGENT, and what it did last."""
    found = bank.tasks.activity(agent)
    view = {"agents": [views.activity_view(bank, each) for each in found]}
    nothing = f"no task or run of {agent}" if agent else "no agent has a task or a run"
    text = "\n".join(line for each in found for line in _activity_lines(each))
    return Answer(view, text, () if found else (nothing,))


@options.bank_command(tasks, "run")
@click.option("--worker", "workers", metavar="AGENT=COMMAND", multiple=True, required=True,
              help="The command that does the tasks of an agent; repeatable.")  # fmt: skip
@click.option("--planner", metavar="COMMAND", default="", help="A command that prints tasks as JSON lines.")
@click.option("--at-once", type=click.IntRange(1, 64), metavar="N", default=2, help="Workers at once.")
@click.option("--timeout", "timeout_s", type=float, metavar="S", help="Seconds that a worker may take.")
def run_tasks(bank: Bank, /, workers: tuple[str, ...], planner: str, **limits: Any) -> Answer:
    """Work until no task can begin: plan, execute with workers, observe, learn. Exit 1 when a task failed.

    A worker reads its task from stdin; exit code 0 completes it, and its last line is the result.
    """
    commands: dict[str, Sequence[str]] = {}
    for given in workers:
        name, has_command, command = given.partition("=")
        words = _split_command(command)
        if not has_command or not name.strip() or not words:
            raise click.UsageError(f"{given!r} is no worker: write it as AGENT=COMMAND")
        commands[name.strip()] = words

    def print_step(message: Message) -> None:
        if message.type == "task_step":
            for line in str(message.data["text"]).splitlines():
                note(line)

    unsubscribe = bank.bus.subscribe(print_step)
    try:
        done = bank.tasks.run(commands, planner=_split_command(planner), **limits)
    finally:
        unsubscribe()
    left = f", {pluralize(len(done.left), 'task')} left: {', '.join(done.left)}" if done.left else ""
    text = f"{pluralize(len(done.done), 'task')} done, {len(done.failed)} failed{left}"
    return Answer(views.orchestration_view(done), text, code=1 if done.failed else 0)


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"{command!r} is no command: {error}") from None


def _task_line(task: Task) -> str:
    outcome = task.result or task.reason
    return shorten_line(f"{task.title}{f': {outcome}' if outcome else ''}", _TITLE_CHARACTERS)


def _one_task(bank: Bank, task: Task) -> Answer:
    names = bank.tasks.waits_for([task])[task.id]
    waits = f", waits for {', '.join(names)}" if names else ""
    owner = f" ({task.owner})" if task.owner else ""
    text = f"{task.id}  {task.state.value}{owner}{waits}: {_task_line(task)}"
    return Answer({"task": views.task_view(task, names)}, text)


def _activity_lines(found: AgentActivity) -> list[str]:
    """Return what an agent is doing in sentences, and its last attempts."""
    busy = [
        f"working on {each.id} since {views.time_text(each.started)}: {each.title}" for each in found.tasks
    ]
    own = {task.run for task in found.tasks}
    for run in found.runs:
        if run.id not in own:
            task = f": {run.task}" if run.task else ""
            busy.append(f"in run {run.id} since {views.time_text(run.started)}{task}")
    lines = [f"{found.agent}  {line}" for line in busy or ["idle"]]
    lines[0] += f"  ({found.done} done, {found.failed} failed)"
    for each in found.recent:
        outcome = shorten_line(each.outcome, _TITLE_CHARACTERS)
        lines.append(f"  {each.action.value if each.action else ''} {each.task}: {outcome}")
    return lines
