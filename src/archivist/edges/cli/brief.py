"""The command that prints a brief."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import note, print_json, say_wrapped
from archivist.edges.cli.session import Session
from archivist.errors import BankFullError, BankLockedError, BankReadOnlyError, InputError

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import BriefRequest, RenderedBrief

_FORMS = click.Choice(["markdown", "known-issues", "yaml", "json"])
_READERS = click.Choice(["orchestrator", "subagent", "reviewer", "healer"])
_LEAST_ONE = click.IntRange(min=1)
format_option = click.option("--format", "form", type=_FORMS,
                             help="By default markdown about a project, else known-issues.")  # fmt: skip
fence_option = click.option("--fence/--no-fence", default=None,
                            help="Marks against mining it again; the default about a project.")  # fmt: skip
_NO_BANK = "there is no bank here: archivist setup makes one"
_NO_SUCH_BANK = "there is no bank at {!r}: archivist trust --list names yours"
# The forms that list lessons; a healer is shown remedies instead.
_LESSON_FORMS = ("known-issues", "yaml")


@click.command()
@click.argument("words", metavar="", nargs=-1)
@click.option("--task", metavar="TEXT", default="", help="What the run is to do.")
@click.option("--repo", metavar="NAME", default="", help="The repository; that of the folder when missing.")
@click.option("--provider", metavar="P", default="", help="Only lessons for this provider or for none.")
@click.option("--tool", metavar="T", default="", help="Only lessons for this tool or for none.")
@click.option("--tag", "tags", metavar="TAG", multiple=True,
              help="Only lessons with this tag or none; repeatable.")  # fmt: skip
@click.option("--domain", metavar="D", default="", help="Lessons of this domain and general ones.")
@click.option("--role", metavar="R", default="", help="Only lessons for this role or for none.")
@click.option("--run", metavar="ID", default="", help="Record the brief for this run.")
@click.option(
    "--for",
    "preset",
    type=_READERS,
    help="Who reads it: a subagent gets half as much, a healer what worked against --error.",
)
@click.option("--error", metavar="FILE", help="The error for a healer; - for stdin.")
@click.option("--command", metavar="CMD", default="", help="The command that failed with --error, if known.")
@click.option("--explain", is_flag=True, help="Say why each lesson is printed, or is not.")
@click.option("--max", "max_lessons", type=_LEAST_ONE, metavar="N", help="At most N lessons.")
@click.option("--budget", "budget_tokens", type=_LEAST_ONE, metavar="TOKENS", help="At most TOKENS in all.")
@format_option
@fence_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def brief(
    session: Session,
    /,
    words: tuple[str, ...],
    error: str | None,
    form: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Print what a new run should know, the most useful lessons first; nothing without a bank or lessons.

    Asked about nothing it is what the next session in this folder is told.
    """
    _check_usage(words, error, form, fields)
    command, explain = fields.pop("command"), fields.pop("explain")
    error_text = ""
    if error is not None:
        from archivist.files.open import read_bounded

        data = read_bounded(error, hint="give its last lines")
        if b"\0" in data:
            raise InputError(f"--error {error}: it is no text", hint="give the output of what failed")
        error_text = data.decode("utf-8", "replace")
    as_json = as_json or form == "json"
    with ExitStack() as opened:
        bank, global_bank = open_banks(session, opened)
        lead = bank or global_bank
        if lead is None:
            print_brief(None, None, as_json)
            named = session.bank_path
            note(f"nothing to tell: {_NO_SUCH_BANK.format(named) if named else _NO_BANK}")
            return
        if error is not None:
            asked = {name: fields[name] for name in ("tool", "repo", "run", "provider")}
            found = lead.briefs.heal(error_text, command=command, fence=bool(fields["fence"]), **asked)
            print_brief(lead, found, as_json)
            if not found.text:
                note(found.why_no_lesson)
            return
        from archivist.brief.select import BriefRequest

        request = BriefRequest(**fields, form=parse_form(form))
        if bank is None:
            # The global bank keeps no runs.
            request, global_bank = request._replace(run=""), None
        rendered = tell_run(lead, request, global_bank)
        print_brief(lead, rendered, as_json)
        say_what_is_missing(rendered)
        if explain:
            for line in lead.briefs.explain_selection(rendered, request):
                note(line)


@click.command()
@click.argument("domain", default="")
@click.argument("role", metavar="[ARCHETYPE]", default="")
@click.option("--audit", "run", metavar="RUN", default="", help="Record what this run was told.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def inject(session: Session, domain: str, role: str, run: str, as_json: bool) -> None:
    """Print the known issues of DOMAIN for ARCHETYPE, as the cross-run document has them; else nothing."""
    from archivist.brief.select import BriefRequest

    with ExitStack() as opened:
        bank, global_bank = open_banks(session, opened)
        lead = bank or global_bank
        request = BriefRequest(domain=domain, role=role, run=run if bank else "", form="known-issues")
        found = tell_run(lead, request, global_bank if bank else None) if lead else None
        print_brief(lead, found, as_json)


def open_banks(session: Session, opened: ExitStack) -> tuple[Bank | None, Bank | None]:
    """Open the project's bank and the global one, where they are; closed, they keep their files."""
    bank, global_bank = session.bank_if_any(), session.global_bank()
    for each in filter(None, (bank, global_bank)):
        opened.enter_context(each)
    return bank, global_bank


def tell_run(
    bank: Bank,
    request: BriefRequest,
    global_bank: Bank | None,
    start: Callable[[], RenderedBrief] | None = None,
) -> RenderedBrief:
    """Return what a run is told, and say when that is not recorded; `start` opens the run too.

    A brief that is not recorded is better than a run that does not begin.
    """
    try:
        told = start() if start else bank.brief(request, global_bank=global_bank)
    except (BankReadOnlyError, BankLockedError, BankFullError) as error:
        note(f"archivist: {error.message}: the run is told, but not recorded")
        # Its files would wait for the same lock.
        bank.is_mirrored = False
        return bank.brief(request._replace(run=""), global_bank=global_bank)
    if request.run and not told.brief_id:
        note(f"archivist: the run {request.run!r} is finished: this brief is not recorded, nor judged")
        note("hint: give each run a name of its own, or leave it out")
    return told


def _check_usage(
    words: tuple[str, ...], error: str | None, form: str | None, fields: Mapping[str, Any]
) -> None:
    """Refuse a task without its option, and what a healer, answered by the error alone, does not get."""
    if words:
        raise click.UsageError(f"brief takes no words\nhint: a task is named by --task {' '.join(words)!r}")
    if fields["repo"] == "*":
        raise click.UsageError("a brief is about one repository\nhint: --repo NAME, or --repo '' for none")
    if (fields["preset"] == "healer") != (error is not None):
        hint = "archivist brief --for healer --error build.log"
        raise click.UsageError(f"--for healer and --error FILE go together\nhint: {hint}")
    given = {"--budget": fields["budget_tokens"], "--max": fields["max_lessons"]}
    for name, value in {**given, f"--format {form}": form in _LESSON_FORMS}.items():
        if error is not None and value:
            why = "is not for a healer, who gets at most three remedies, in markdown or json"
            raise click.UsageError(f"{name} {why}")


def say_what_is_missing(rendered: RenderedBrief) -> None:
    """Count what was withheld, and say on stderr why nothing, or no lesson, was printed."""
    for count in filter(None, (rendered.count_stale(), rendered.count_crowded())):
        note(count)
    if not rendered.chosen:
        missing = "no lessons to tell" if rendered.text else "nothing to tell"
        note(f"{missing}: {rendered.why_no_lesson}")


def parse_form(form: str | None) -> str | None:
    """Return the form that a request asks for; JSON carries the text in its usual form."""
    return None if form == "json" else form


def print_brief(bank: Bank | None, brief: RenderedBrief | None, as_json: bool, **more: object) -> None:
    """Print a brief as text or as JSON; `more` stands before its fields."""
    if not as_json:
        say_wrapped(brief.text if brief else "", nl=False)
        return
    from archivist.edges.views import brief_view

    print_json({**more, **brief_view(bank, brief)})
