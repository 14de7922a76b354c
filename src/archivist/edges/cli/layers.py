"""Commands about the shared layers: knowledge, runs and attempts, artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from archivist.audit.analytics import GroupBy, PeriodUnit, Rate
from archivist.bank import Bank
from archivist.clock import from_text
from archivist.edges import views
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, is_terminal, list_changes, list_records, print_json, write_file
from archivist.edges.cli.session import Session
from archivist.edges.cli.team import share_runs
from archivist.edges.cli.wording import (
    account_lines,
    apart_notes,
    episode_lines,
    field_lines,
    pluralize,
    short_repos,
)
from archivist.errors import ArchivistError, InputError, NotFoundError
from archivist.recall.query import Query
from archivist.records import Artifact, Conflict, Episode, Fact
from archivist.records.plain import to_plain
from archivist.records.run_words import Action
from archivist.records.tier_words import ArtifactType
from archivist.store.ledger import LedgerChange
from archivist.text import shorten_line

# A row stays on one line of a wide terminal; `show` prints the whole value.
_ROW_CHARACTERS = 100
_VALUE_CHARACTERS = 48

_of_project = click.option(
    "--project", metavar="P", default="", help="Of this project; by default the folder's."
)

knowledge = CommandGroup("knowledge", help="Store and find facts by category and key; decide conflicts.")


@options.bank_command(knowledge, "list", has_global=True)
@click.option("--category", metavar="C", default="", help="Only of this category.")
@click.option("--key", metavar="K", default="", help="Only with this key.")
@click.option("--matching", "text", metavar="TEXT", default="", help="Only facts that match, best first.")
@click.option("--project", metavar="P", default="", help="Only of this project; * for all.")
@click.option("--min-confidence", type=float, default=0.0, metavar="X", help="0 to 1.")
@options.limit()
def list_facts(bank: Bank, /, **filters: Any) -> Answer:
    """List the facts by category and key, by default those of the folder's project and of none."""
    sure = ("Sure", lambda fact: f"{fact.confidence:g}")

    def value(fact: Fact) -> str:
        mark = fact.provenance.mark if fact.provenance else ""
        return f"{shorten_line(fact.value, _ROW_CHARACTERS)}{mark}"

    found = bank.knowledge.query(**filters)
    project = ("project",) if len({fact.project for fact in found}) > 1 else ()
    columns = ("Fact", _fact_name), *project, sure, "source", ("Value", value)
    return list_records("facts", found, views.table_view, *columns, empty="no facts")


@options.bank_command(knowledge, "show", has_global=True)
@click.argument("name", metavar="FACT")
@_of_project
def show_fact(bank: Bank, name: str, project: str) -> Answer:
    """Print all fields of FACT, named as category/key or by its id, and the open conflicts about it."""
    fact = bank.knowledge.find(name, project=project)
    conflicts = bank.knowledge.conflicts(fact.id)
    picked = views.pick(fact, "project source confidence origin tags created updated id")
    fields = list((picked | {"confidence": f"{fact.confidence:g}"}).items())
    fields.append(("provenance", fact.provenance.label if fact.provenance else ""))
    for each in conflicts:
        said = f"{each.lost_source} says {shorten_line(each.lost, _VALUE_CHARACTERS)!r} ({each.id})"
        fields.append(("disputed", said))
    value = (f"  {line}" for line in fact.value.splitlines())
    view = {"fact": views.table_view(fact), "conflicts": list(map(views.conflict_view, conflicts))}
    return Answer(view, "\n".join((_fact_name(fact), *value, "", *field_lines(fields))))


@options.bank_command(knowledge, "set", has_global=True)
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--source", metavar="WHO", default="", help="Who says it; by default the actor.")
@click.option("--confidence", type=float, default=1.0, metavar="X", help="0 to 1; 1 by default.")
@_of_project
@options.tag
def set_(bank: Bank, /, category: str, key: str, value: str, **fields: Any) -> Answer:
    """Store VALUE under CATEGORY and KEY; a VALUE of - is read from stdin.

    If another source says something else, the value with the higher confidence wins, the newer one on a tie.
    The other value is kept as a conflict.
    """
    result = bank.knowledge.put(category, key, options.read_text_argument(value), **fields)
    fact, conflict = result.fact, result.conflict
    disputed = views.conflict_view(conflict) if conflict else None
    view = {"fact": views.table_view(fact), "changed": result.is_changed, "conflict": disputed}
    notes: list[str] = []
    if conflict is not None and conflict.status == "open":
        decide = f"archivist knowledge decide {conflict.id} --uphold or --reverse"
        notes = [f"conflict {conflict.id}: {conflict.reason}", f"hint: to decide it: {decide}"]
    elif conflict is not None:
        notes = [f"unchanged: {conflict.decided_by} decided against it ({conflict.id})"]
    # The folder's own project goes without saying.
    of = f" ({fact.project})" if fields["project"] else ""
    return Answer(view, f"{_fact_name(fact)}{of}  {shorten_line(fact.value, _ROW_CHARACTERS)}", notes)


@options.bank_command(knowledge, "remove", has_global=True)
@click.argument("names", metavar="FACT…", nargs=-1, required=True)
@_of_project
def remove_facts(bank: Bank, names: tuple[str, ...], project: str) -> Answer:
    """Remove facts: all of them, or none if one is unknown. Their history stays."""
    with bank.transaction():
        removed = [bank.knowledge.remove(name, project=project) for name in dict.fromkeys(names)]
    text = f"{pluralize(len(removed), 'fact')} removed: {', '.join(map(_fact_name, removed))}"
    return Answer({"facts": list(map(views.table_view, removed))}, text)


@options.bank_command(knowledge, has_global=True)
@click.argument("name", metavar="[FACT]", default="")
@click.option("--all", "with_decided", is_flag=True, help="Include decided conflicts.")
@click.option("--project", metavar="P", default="", help="Of this project; * for all.")
def conflicts(bank: Bank, name: str, with_decided: bool, project: str) -> Answer:
    """List the open conflicts between sources, all or about FACT."""
    found = bank.knowledge.conflicts(name, with_decided=with_decided, project=project)
    kept = ("Kept", lambda each: f"{shorten_line(each.kept, _VALUE_CHARACTERS)} ({each.kept_source})")
    lost = ("Lost", lambda each: f"{shorten_line(each.lost, _VALUE_CHARACTERS)} ({each.lost_source})")
    columns = "id", "status", ("Fact", _fact_name), kept, lost, ("Why", "reason")
    nothing = "no conflicts" if with_decided else "no open conflicts"
    return list_records("conflicts", found, views.conflict_view, *columns, empty=nothing)


@options.bank_command(knowledge)
@click.argument("name", metavar="CONFLICT")
@click.option("--uphold", "choice", flag_value="uphold", help="The current value is right.")
@click.option("--reverse", "choice", flag_value="reverse", help="The losing value is right and replaces it.")
@_of_project
@options.is_global
def decide(bank: Bank, name: str, choice: str | None, project: str) -> Answer:
    """Decide CONFLICT, named by its id or by its fact. With a fact, --uphold decides all its conflicts."""
    # No default: a slip would overrule one of the sources.
    if choice is None:
        hint = "archivist knowledge conflicts lists both sides"
        raise click.UsageError(f"say --uphold or --reverse\nhint: {hint}")
    facts = bank.knowledge
    if choice == "uphold":
        decided = facts.uphold(name, project=project)
    else:
        decided = [facts.decide(name, for_lost=True, project=project)]
    last = decided[-1]
    fact = facts.get(last.category, last.key, project=last.project)
    value = shorten_line(fact.value, _ROW_CHARACTERS) if fact else "-"
    view = {
        "conflict": views.conflict_view(last),
        "conflicts": [views.conflict_view(conflict) for conflict in decided],
        "fact": views.table_view(fact) if fact else None,
    }
    notes = (f"{pluralize(len(decided), 'conflict')} decided",) if len(decided) > 1 else ()
    return Answer(view, f"{_fact_name(last)}  {last.status}: {value}", notes)


@options.bank_command(knowledge, "import", has_global=True)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path())
@_of_project
@options.approve
def import_(bank: Bank, paths: tuple[str, ...], project: str, is_approved: bool) -> Answer:
    """Import shared-context Markdown: each section is a fact. Importing again updates the facts.

    The words are the file's: they are marked, replace no fact of another source, and risky ones are refused.
    With --approve they are yours.
    """
    result = bank.knowledge.import_markdown(paths, project=project, is_approved=is_approved)
    view = result._asdict()
    shown = (
        f"{view[name]} {name}" for name in view if name != "problems" and (view[name] or name != "conflicts")
    )
    # Not a problem of the import: the values are stored, and somebody decides later.
    hint = "hint: archivist knowledge conflicts lists what other sources say"
    notes = (hint,) if result.conflicts else ()
    return Answer(view, f"facts: {', '.join(shown)}", notes, problems=result.problems)


@options.bank_command(knowledge, has_global=True)
@click.argument("name", metavar="FACT")
@_of_project
def history(bank: Bank, name: str, project: str) -> Answer:
    """Print the history of FACT: each change and conflict, who made it, and why a value won."""
    changes = bank.knowledge.history(name, project=project)
    shown = views.history_views(changes)
    for view, change in zip(shown, changes, strict=True):
        view["change"] = _describe_change(change)
    return list_changes(shown)


def _describe_change(change: LedgerChange) -> str:
    after: dict[str, Any] | None = change.after
    if change.is_erased:
        return "(erased)"
    if after is None:
        return "removed"
    if change.entry.kind == "conflict":
        lost = f"{shorten_line(after['lost'], _VALUE_CHARACTERS)!r} of {after['lost_source']}"
        by = f" by {after['decided_by']}" if after["decided_by"] else ""
        return f"{lost} lost, {after['status']}{by}: {after['reason']}"
    value = shorten_line(after["value"], _VALUE_CHARACTERS)
    return f"{value!r} of {after['source']}, sure {after['confidence']:g}"


def _fact_name(about: Fact | Conflict) -> str:
    return f"{about.category}/{about.key}"


# A task may be a whole prompt; a table needs its beginning.
_SUMMARY_CHARACTERS = 120
_TASK_CHARACTERS = 60
_LAST_OUTCOME = ("Last outcome", lambda view: view["last"]["outcome"])
_RATE_HEADINGS = ("Tries", "Worked", "Failed", "Success", "95 % bounds", "Mean time", "Tokens in/out")

episodes = CommandGroup(
    "episodes", default="list", help="List and show runs and attempts; log attempts, compare approaches."
)


episodes.add_command(share_runs, "share")


@options.bank_command(episodes, "list")
@click.option("--project", "--repo", metavar="NAME", default="", help="Only runs on this repository.")
@click.option("--task", metavar="TEXT", default="", help="Only runs of this task.")
@click.option("--agent", metavar="A", default="", help="Only attempts of this agent.")
@click.option("--action", type=options.enum_choice(Action), help="Only attempts with this result.")
@click.option("--phase", metavar="P", default="", help="Only runs with this phase: test, lint, typecheck, …")
@click.option("--error", metavar="E", default="", help="Only runs that met this: missing_module, timeout, …")
@click.option("--tag", "tags", metavar="T", multiple=True, help="Only runs with this tag; repeatable.")
@options.limit("At most N, the latest first.")
def list_runs(
    bank: Bank, /, project: str, agent: str, action: str | None, phase: str, error: str, **asked: Any
) -> Answer:
    """List the runs and attempts, latest first.

    In the folder of a repository they are those of this repository and of none; --repo names another, and
    --repo '*' lists all.
    """
    tags = tuple(filter(None, (*asked.pop("tags"), phase, error)))
    # Attempts name no repository and have no tags, so such a list would always be empty.
    if (project or tags) and (agent or action):
        raise click.UsageError("--agent and --action are for attempts, the other options for runs")
    if agent or action:
        return _list_episodes(bank, bank.attempts.query(agent=agent, action=action, **asked))
    listed = _list_episodes(bank, bank.runs.episodes(project=project, tags=tags, **asked))
    return listed._replace(notes=[*listed.notes, *apart_notes(bank, project)])


@options.bank_command(episodes, "show")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--task", metavar="ID", default="", help="Every run of this task, and what they taught.")
def show_run(bank: Bank, run: str | None, task: str) -> Answer:
    """Print the run RUN: its outcome, what worked, what failed, what was decided, what was left open.

    RUN#14 is an event of it. The beginning of an id is enough, if no other begins so. With --task instead of
    RUN the memory of a task is printed: its runs and attempts, and the lessons from them.
    """
    if (run is None) != bool(task):
        raise click.UsageError("name a run, or a task with --task")
    if run is None:
        return _show_task(bank, task)
    if run.rpartition("#")[2].isdecimal() and "#" in run:
        event = bank.runs.event(run)
        fields = field_lines(
            views.pick(event, "kind time agent role tool target exit_code duration_s").items()
        )
        parts = ("text", event.text), ("output", event.output)
        whole = (f"\n{name}\n{text}" for name, text in parts if text)
        return Answer({"event": {"id": event.id, **to_plain(event)}}, "\n".join((event.id, *fields, *whole)))
    episode = bank.runs.episode(run)
    names = ("action", "approach", "outcome") if episode.action else ()
    told = [(name, " ".join(str(getattr(episode, name)).split())) for name in names]
    fields = field_lines([*told, ("provenance", bank.runs.provenance(episode.id).label)])
    return Answer({"episode": _episode_view(bank, episode)}, "\n".join((*episode_lines(episode), *fields)))


def _show_task(bank: Bank, task: str) -> Answer:
    """Return the runs and attempts of a task, oldest first, and the lessons that are for it or from them."""
    runs = bank.runs.episodes(task=task)[::-1]
    lessons = bank.lessons.query(Query(task=task))
    if not runs and not lessons:
        raise NotFoundError("task", task, hint="archivist episodes list shows the tasks of runs")
    blocks = ["\n".join(account_lines(episode)) for episode in runs]
    if lessons:
        rows = [f"  {lesson.short_id}  {lesson.summary}" for lesson in lessons]
        blocks.append("\n".join(("Lessons", *rows)))
    shown = [_episode_view(bank, episode) for episode in runs]
    view = {"task": task, "episodes": shown, "lessons": bank.lessons.views(lessons)}
    return Answer(view, "\n\n".join(blocks))


@episodes.command()
@click.argument("run", metavar="RUN")
@click.pass_obj
def atif(session: Session, run: str) -> None:
    """Print the run RUN as an ATIF trajectory."""
    with session.bank() as bank:
        print_json(bank.runs.to_atif(bank.runs.episode(run).id))


@options.bank_command(episodes)
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
def log(bank: Bank, /, task: str, time: str | None, name: str, **fields: Any) -> Answer:
    """Log an attempt at TASK: what was tried, and the result."""
    try:
        ended = from_text(time) if time else None
    except (ValueError, OverflowError):
        raise InputError(f"{time!r} is not a time", hint="like 2026-04-03T14:00:00Z") from None
    made = bank.attempts.log(task, time=ended, id=name, **fields)
    return Answer({"episode": views.attempt_view(bank, made)}, f"{made.id}  {_episode_summary(made)}")


@options.bank_command(episodes, "tried")
@click.argument("task", metavar="TASK")
def list_tried(bank: Bank, task: str) -> Answer:
    """Print the approaches tried for TASK and their results, successful ones first."""
    shown = [views.approach_view(result) for result in bank.attempts.list_approaches(task)]
    agents = ("Agents", lambda view: ", ".join(view["agents"]))
    columns = ("Tries", "attempts"), ("Result", "verdict"), agents, "approach", _LAST_OUTCOME
    nothing = "no attempts at this task"
    return list_records("approaches", shown, None, *columns, empty=nothing, task=task)


@options.bank_command(episodes)
@click.argument("agent", metavar="[AGENT]", default="")
@options.limit("At most N, the latest first.")
def failures(bank: Bank, agent: str, limit: int | None) -> Answer:
    """List the failed attempts of AGENT, or of all agents, latest first."""
    found = bank.attempts.query(agent=agent, action=Action.FAILED, limit=limit)
    return _list_episodes(bank, found, empty="no failures")


@options.bank_command(episodes)
@click.argument("text", metavar="TASK")
@options.limit(most=100, default=5)
def similar(bank: Bank, text: str, limit: int) -> Answer:
    """Print the approaches tried for tasks similar to TASK, successful ones first."""
    found = bank.attempts.similar(text, limit=limit)
    shown = []
    for each in found:
        about = {"title": each.title, "score": round(each.score, 6), "tasks": each.tasks}
        shown.append({**views.approach_view(each.tried), **about})

    def name_task(view: views.View) -> str:
        count = f" ({view['tasks']} tasks)" if view["tasks"] > 1 else ""
        return shorten_line(view["title"] or view["task"], _TASK_CHARACTERS) + count

    score = ("Score", lambda view: f"{view['score']:.2f}")
    columns = score, ("Result", "verdict"), ("Task", name_task), "approach", _LAST_OUTCOME
    nothing = "no attempts at a similar task"
    return list_records("approaches", shown, None, *columns, empty=nothing, text=text)


@options.bank_command(episodes)
@click.option("--by", type=options.enum_choice(GroupBy), default="approach", help="What to count by.")
@options.since
@options.until
@click.option("--step", type=options.enum_choice(PeriodUnit), help="Also per day, week or month.")
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Also draw a chart.")
def stats(bank: Bank, /, svg: str | None, **asked: Any) -> Answer:
    """Print success rates of attempts by approach, agent, provider or task."""
    found = bank.attempts.analytics(**asked)
    if svg:
        from archivist.charts import draw_rate_chart

        write_file(svg, draw_rate_chart(found))
    view = views.analytics_view(found)
    if not found.rows:
        return Answer(view, notes=("no attempts: archivist episodes log records them",))
    rates = (*found.rows, found.total)
    rows = [_rate_cells(rate, rate.name or "(unknown)") for rate in rates]
    tables = [((*_RATE_HEADINGS, found.by.capitalize()), rows)]
    for rate in rates if found.step else ():
        rows = [_rate_cells(period, period.name) for period in rate.periods]
        tables.append(((*_RATE_HEADINGS, rate.name or "(unknown)"), rows))
    said = found.total.reported_by_agents
    counted = f"{said} of {found.total.attempts} attempts are counted as their agents reported them"
    return Answer(view, tables=tables, notes=(counted,) if said else ())


def _list_episodes(bank: Bank, found: Sequence[Episode], *, empty: str = "") -> Answer:
    names = bank.runs.short_ids(episode.id for episode in found) if is_terminal() else {}
    repos = short_repos(episode.project for episode in found)
    columns = (
        ("Run", lambda episode: names.get(episode.id, episode.id)),
        "status",
        ("Project", lambda episode: repos[episode.project]),
        "agent",
        ("Summary", lambda each: f"{_episode_summary(each)}{bank.runs.provenance(each.id).mark}"),
    )
    return list_records("episodes", found, partial(_episode_view, bank), *columns, empty=empty)


def _episode_view(bank: Bank, episode: Episode) -> dict[str, Any]:
    return views.attempt_view(bank, episode) if episode.action else views.run_view(bank, episode)


def _episode_summary(episode: Episode) -> str:
    """Return a run in one line; for an attempt what was tried and the outcome."""
    if episode.action is None:
        # The table says already how it ended.
        words = episode.summary.removeprefix("Succeeded: ").removeprefix("Failed: ")
        return words or episode.task[:_SUMMARY_CHARACTERS]
    outcome = f": {episode.outcome}" if episode.outcome else ""
    task = shorten_line(episode.task, _TASK_CHARACTERS)
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


# Enough to compare by eye.
_CHECKSUM_SHOWN = 12

artifacts = CommandGroup("artifacts", help="Register files that runs produced; check whether they changed.")


@options.bank_command(artifacts)
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@click.option("--task", metavar="T", required=True, help="The task that it was made for.")
@click.option("--agent", metavar="A", default="", help="Who made it; by default the actor.")
@click.option("--type", type=options.enum_choice(ArtifactType), default="file", help="The type of the file.")
@click.option("--description", metavar="TEXT", default="", help="What it contains.")
@click.option("--run", metavar="ID", default="", help="The run that made it.")
def register(bank: Bank, /, paths: tuple[str, ...], **fields: Any) -> Answer:
    """Register FILE with its current size and SHA-256. Registering a changed FILE adds a version."""
    registered: list[Artifact] = []
    for path in map(_absolute_path, paths):
        try:
            registered += [bank.artifacts.register(path, **fields)]
        except ArchivistError as error:
            if not registered:
                raise
            # Files before a refused one are registered, so they are printed too.
            return _artifacts_answer(registered)._replace(error=error)
    return _artifacts_answer(registered)


@options.bank_command(artifacts, "list")
@click.option("--task", metavar="T", default="", help="Only of this task.")
@click.option("--agent", metavar="A", default="", help="Only of this agent.")
@click.option("--type", type=options.enum_choice(ArtifactType), help="Only of this type.")
@click.option("--path", metavar="FILE", default="", help="Only versions of this file.")
@options.limit("At most N, the latest first.")
def list_artifacts(bank: Bank, /, path: str, **filters: Any) -> Answer:
    """List the artifacts, newest first."""
    return _artifacts_answer(bank.artifacts.query(path=_absolute_path(path) if path else "", **filters))


@options.bank_command(artifacts, "show")
@click.argument("name", metavar="ARTIFACT")
def show_artifact(bank: Bank, name: str) -> Answer:
    """Print all fields of ARTIFACT, an id or the path of a file."""
    artifact = _find_artifact(bank, name)
    fields = {**to_plain(artifact), "created": views.time_text(artifact.created)}
    shown = field_lines(item for item in fields.items() if item[0] not in ("path", "description", "extra"))
    heading = f"{artifact.path}  {artifact.description}".rstrip()
    return Answer({"artifact": views.table_view(artifact)}, "\n".join((heading, "", *shown)))


@options.bank_command(artifacts)
@click.argument("path", metavar="FILE")
def versions(bank: Bank, path: str) -> Answer:
    """List the registered versions of FILE, oldest first."""
    return _artifacts_answer(bank.artifacts.versions(_absolute_path(path)))


@options.bank_command(artifacts)
@click.argument("names", metavar="[ARTIFACT…]", nargs=-1)
def verify(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Compare files with their registered versions, all or the named ones; exit 1 on a difference."""
    checks = bank.artifacts.verify([_find_artifact(bank, name).id for name in names])
    wrong = [check for check in checks if check.state != "same"]
    same = len(checks) - len(wrong)
    view = {"artifacts": list(map(views.check_view, checks)), "same": same}
    notes = (f"{same} of {pluralize(len(checks), 'file')} the same",)
    rows = [(check.state, check.artifact.path, check.artifact.task, check.note) for check in wrong]
    tables = [(("State", "Path", "Task", "What"), rows)] if wrong else ()
    return Answer(view, notes=notes, tables=tables, code=1 if wrong else 0)


@options.bank_command(artifacts, "remove")
@click.argument("names", metavar="ARTIFACT…", nargs=-1, required=True)
def remove_artifacts(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Unregister artifacts: all of them, or none if one is unknown. The files stay."""
    with bank.transaction():
        removed = [bank.artifacts.remove(_find_artifact(bank, name).id) for name in dict.fromkeys(names)]
    paths = ", ".join(artifact.path for artifact in removed)
    text = f"{pluralize(len(removed), 'artifact')} removed: {paths}"
    return Answer({"artifacts": list(map(views.table_view, removed))}, text)


def _absolute_path(path: str) -> str:
    """Return a path from the caller's folder; the bank only knows its own."""
    return str(Path.cwd() / path)


def _find_artifact(bank: Bank, name: str) -> Artifact:
    """Return an artifact by its id, by its path in the project, or by a path from here."""
    # From here first: it is what a shell completes.
    for candidate in (_absolute_path(name) if name else name, name):
        try:
            return bank.artifacts.get(candidate)
        except NotFoundError:
            continue
    raise NotFoundError("artifact", name)


def _artifacts_answer(found: Sequence[Artifact]) -> Answer:
    checksum = ("SHA-256", lambda artifact: artifact.checksum[:_CHECKSUM_SHOWN])
    columns = "id", "type", "task", "agent", ("Bytes", "size_bytes"), checksum, "path", "description"
    return list_records("artifacts", found, views.table_view, *columns, empty="no artifacts")
