"""The command that gives memory back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

import click

from archivist.edges.cli.output import json_option, note, print_json, say
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.presets import BriefPreset
    from archivist.brief.select import RenderedBrief

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "known-issues", "yaml", "json"]),
    help="The form of the text; markdown with a task, else known-issues.",
)


# The forms that list lessons; what worked in earlier runs is none.
_OF_LESSONS = ("known-issues", "yaml")
fence_option = click.option(
    "--fence/--no-fence",
    default=None,
    help="Put the text between marks by which it is never learnt from; the default with a task.",
)


@click.command()
@click.option("--task", metavar="TEXT", default="", help="What the run is to do.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of the folder when missing.")
@click.option("--provider", metavar="P", default="", help="Also what is known of this provider, of no other.")
@click.option("--tool", metavar="T", default="", help="Also what is known of this tool, of no other.")
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, help="Also what has this tag, of no other; repeatable."
)
@click.option("--domain", metavar="D", default="", help="This domain's lessons and the general ones.")
@click.option("--role", metavar="R", default="", help="Lessons for this role and for none in particular.")
@click.option("--run", metavar="ID", default="", help="Record that this run was told.")
@click.option(
    "--for",
    "preset",
    type=click.Choice(["orchestrator", "subagent", "reviewer", "healer"]),
    help="Who is told: a subagent is told half as much, a healer what worked against --error.",
)
@click.option(
    "--error", type=click.File(encoding="utf-8", errors="replace"), help="A healer's error; - for stdin."
)
@click.option("--command", metavar="CMD", default="", help="The command that failed with --error.")
@click.option("--explain", is_flag=True, help="Say why each lesson is told, and what is withheld or stale.")
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N lessons.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="At most so many tokens, all of the text; brief.budget_tokens by default with a task.",
)
@format_option
@fence_option
@json_option
@click.pass_obj
def brief(
    session: Session,
    /,
    task: str,
    repo: str,
    tags: tuple[str, ...],
    run: str,
    preset: str | None,
    error: TextIO | None,
    command: str,
    explain: bool,
    limit: int | None,
    budget: int | None,
    form: str | None,
    fence: bool | None,
    as_json: bool,
    **audience: Any,
) -> None:
    """Print what a new run should know, the likeliest first. No bank or nothing likely: prints nothing."""
    if (preset == "healer") != (error is not None):
        raise click.UsageError("--for healer and --error FILE go together")
    if error is not None:
        _refuse_for_healer({"--budget": budget, "--max": limit, f"--format {form}": form in _OF_LESSONS})
    bank, beside = session.bank_if_any(), session.global_bank()
    lead = bank or beside
    if lead is None:
        print_brief(None, None, as_json or form == "json")
        return
    if error is not None:
        told = lead.briefs.heal(
            error.read(),
            tool=audience["tool"],
            command=command,
            repo=repo,
            run=run,
            is_fenced=bool(fence),
        )
        print_brief(lead, told, as_json or form == "json")
        if not told.text:
            note("nobody met this error")
        return
    is_about_task = bool(task or repo) or preset == "subagent"
    told = lead.brief(
        **audience,
        task=task,
        repo=repo,
        tags=tags,
        run=run if bank else "",
        preset=_parse_preset(preset),
        max_lessons=limit,
        budget_tokens=budget,
        form=brief_format(form, is_about_task=is_about_task),
        is_fenced=(is_about_task and form != "yaml") if fence is None else fence,
        global_bank=beside if bank else None,
    )
    print_brief(lead, told, as_json or form == "json")
    if explain:
        for line in lead.briefs.reasons(told):
            note(line)


def _refuse_for_healer(given: dict[str, object]) -> None:
    if named := [name for name, value in given.items() if value]:
        raise click.UsageError(
            f"{named[0]} is not for a healer, who is told at most three remedies, in markdown or json"
        )


def _parse_preset(name: str | None) -> BriefPreset | None:
    from archivist.brief.presets import BriefPreset

    return BriefPreset(name) if name else None


def brief_format(form: str | None, *, is_about_task: bool = False) -> Any:
    """Return the form of the text that goes with a format: markdown with a task, else known issues."""
    from archivist.brief.forms import BriefFormat

    if form in (None, "json"):
        return BriefFormat.MARKDOWN if is_about_task else BriefFormat.KNOWN_ISSUES
    return BriefFormat(form)


def print_brief(
    bank: Bank | None, rendered_brief: RenderedBrief | None, as_json: bool, **more: object
) -> None:
    """Print a brief as text or as JSON."""
    if not as_json:
        say(rendered_brief.text if rendered_brief else "", nl=False)
        return
    chosen = rendered_brief.chosen if rendered_brief else ()
    views = bank.lessons.views([each.lesson for each in chosen]) if bank else []
    marked = [
        {**view, "id": each.name, "is_global": each.is_global}
        for view, each in zip(views, chosen, strict=True)
    ]
    print_json(
        {
            **more,
            "text": rendered_brief.text if rendered_brief else "",
            "lessons": marked,
            "brief": rendered_brief.brief_id if rendered_brief else "",
            "withheld": [each.name for each in rendered_brief.withheld] if rendered_brief else [],
            "stale": dict(rendered_brief.stale) if rendered_brief else {},
        }
    )
