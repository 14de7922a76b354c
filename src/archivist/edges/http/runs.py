"""The routes of runs: start, finish, capture, reflect, and whether it helped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.convertors import PathConvertor, register_url_convertor

from archivist.audit.period import resolve_period
from archivist.audit.report import recommend_steps
from archivist.bank import Bank
from archivist.brief.select import BriefRequest
from archivist.capture.clean import clean_name
from archivist.capture.formats.archeflow import read_events
from archivist.capture.json_stream import LogLine, SkippedRecord
from archivist.capture.recorder import LogOrigin
from archivist.capture.runs import LATEST
from archivist.capture.service import CaptureOverrides
from archivist.config import ServerRules
from archivist.edges import views
from archivist.edges.http import answers, shapes
from archivist.edges.http.answers import Asked
from archivist.edges.http.bodies import BankRoute, LongRoute, UploadRoute
from archivist.edges.http.brief_and_lessons import RunBody
from archivist.edges.server.banks import BankReach
from archivist.edges.server.checks import MEGABYTE, Refusal
from archivist.edges.views import View
from archivist.errors import InputError
from archivist.files.packed import exceeds_unpacked_size
from archivist.paths import bank_name
from archivist.records import Episode, EpisodeStatus
from archivist.records.plain import to_plain
from archivist.reflect.trigger import ReflectionOutcome, Scenario


class _RunConvertor(PathConvertor):
    """The id of a run, which may have slashes; what is done to a run has a path of its own."""

    regex = r"(?!.*/(?:finish|log|share)\Z).*"


register_url_convertor("run", _RunConvertor())
router = APIRouter(prefix="/api", tags=["runs"], route_class=BankRoute)
longer = APIRouter(prefix="/api", tags=["runs"], route_class=LongRoute)
uploads = APIRouter(prefix="/api", tags=["runs"], route_class=UploadRoute)
_LOG = {
    "requestBody": {
        "required": True,
        "description": "The log as it is, also compressed with gzip or zstd.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_Name = Annotated[
    str, Query(max_length=200, description="The log's own name, by which it may be recognised.")
]
_Format = Literal[
    "auto", "atif", "claude-code", "codex", "opencode", "gemini-cli", "copilot-cli", "vscode", "cursor",
    "swe-agent", "mini-swe-agent", "openhands", "archeflow", "stream", "hooks",
]  # fmt: skip


def _find_uploaded_log(request: Request) -> Path:
    """Return the log that was sent, unless it unpacks to more than may be: nothing of such a one is taken."""
    log: Path = request.state.upload
    rules: ServerRules = request.app.state.rules
    if exceeds_unpacked_size(log, rules.max_unpacked_mb * MEGABYTE):
        detail = f"the log unpacks to more than {rules.max_unpacked_mb} MB"
        raise Refusal(413, "too_large", detail, hint="server.max_unpacked_mb")
    return log


UploadedLog = Annotated[Path, Depends(_find_uploaded_log)]


class ReviewEvent(BaseModel):
    """A review event as ArcheFlow writes it; it may have more fields."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: Annotated[str, Field(min_length=1)]
    data: dict[str, Any] | None = None


class ReflectBody(shapes.Body):
    """The runs to reflect on: one, those of the last days, or all pending ones."""

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "required": ["run", "days"],
                "properties": {"run": {"minLength": 1}, "days": {"type": "integer"}},
            }
        }
    )

    run: shapes.Word = ""
    days: Annotated[int, Field(ge=1, le=36_500), shapes.Whole] | None = None

    @model_validator(mode="after")
    def _require_single_choice(self) -> Self:
        if self.run and self.days:
            raise ValueError("run and days exclude each other: give one, or none for all pending runs")
        return self


@router.post("/runs", status_code=201, response_model=answers.BriefOut)
def start_run(bank: Bank, wanted: RunBody) -> View:
    """Open a run, brief it and record both; an id is made when there is none."""
    run = clean_name(wanted.run.strip()) or bank.new_id(bank.now())
    told = bank.runs.start_run(run, BriefRequest(**wanted.model_dump(exclude={"run"})))
    return {"run": run, **views.brief_view(bank, told)}


@router.get("/runs", response_model=answers.page_model("runs", answers.RunOut))
def list_runs(bank: Bank, asked: Asked, project: shapes.Only = "", task: shapes.Only = "") -> View:
    """List the runs, the latest first."""
    return asked.page_by_order(bank.runs.episodes, LATEST, project=project, task=task).view(
        "runs", partial(views.run_view, bank)
    )


@router.get("/runs/{run:run}", response_model=answers.item_model("run", answers.RunOut))
def show_run(bank: Bank, run: shapes.Id) -> View:
    """Return what a run was."""
    return {"run": views.run_view(bank, bank.runs.episode(run))}


@router.post("/runs/{run:path}/finish", response_model=answers.LearningOut)
def finish_run(
    bank: Bank,
    run: shapes.Id,
    status: shapes.Ended | None = None,
    domain: shapes.Word = "",
    events: Annotated[Sequence[ReviewEvent], Field(max_length=100_000)] = (),
) -> View:
    """Close a run: take its review events in, learn, age the bank, audit what it was told."""
    values = shapes.clean_json([event.model_dump(exclude_unset=True) for event in events])
    lines = (LogLine(number, value) for number, value in enumerate(values, 1))
    items = list(read_events(lines, LogOrigin(run=run)))
    for item in items:
        if isinstance(item, SkippedRecord):
            raise InputError(f"events: {item.where}: {item.reason}", hint="each event needs a type and data")
        if isinstance(item, Episode) and item.id != run:
            raise InputError("an event is of another run", hint="leave run_id out, or give this run's")
    overrides = CaptureOverrides(run=run, status=EpisodeStatus(status) if status else None)
    done = bank.runs.finish(*([items] if items else []), overrides=overrides, domain=domain)
    return views.finished_run_view(bank, done.runs[0])


@router.post("/runs/{run:path}/share")
def share_run(bank: Bank, reach: BankReach, run: shapes.Id, to: shapes.Word = "") -> View:
    """Copy a run to another bank of this token, by default from a person's own to the team's."""
    if not to and bank.team is None:
        raise InputError("this is no person's own bank", hint="name the bank that is to get the run")
    with reach.open(to) if to else nullcontext({"": bank.team}) as banks:
        (name, target), *more = banks.items()
        if more or target is None:
            raise InputError("a run is shared with one bank at a time", hint="send one request for each")
        done = bank.runs.share(run, target)
        return {"run": done.episodes[-1].id, "bank": name or bank_name(target.path), "events": done.events}


@uploads.post(
    "/runs/{run:path}/log",
    response_model=answers.page_model("runs", answers.ExtensibleOut),
    openapi_extra=_LOG,
)
def finish_log(
    bank: Bank,
    run: shapes.Id,
    log: UploadedLog,
    status: Annotated[shapes.Ended | None, Query()] = None,
    name: _Name = "upload",  # noqa: ARG001 the file was called so when it was written
) -> View:
    """Close a run by an agent's own log: capture, reflect, age the bank, judge what it was told."""
    overrides = CaptureOverrides(run=run, status=EpisodeStatus(status) if status else None)
    done = bank.runs.finish(log, overrides=overrides)
    finished = [views.finished_run_view(bank, each) for each in done.runs]
    return {"runs": finished, "skipped": list(done.skipped), "next": None}


@uploads.post("/capture", status_code=201, response_model=answers.CaptureOut, openapi_extra=_LOG)
def capture(
    bank: Bank,
    log: UploadedLog,
    format: Annotated[_Format, Query()] = "auto",
    run: shapes.Only = "",
    project: shapes.Only = "",
    status: Annotated[shapes.Ended | None, Query()] = None,
    name: _Name = "upload",
) -> View:
    """Take an agent's log in; its runs wait for reflection. The same log again changes nothing."""
    known = CaptureOverrides(run=run, project=project, status=EpisodeStatus(status) if status else None)
    taken = bank.runs.capture_file(log, format_name=format, overrides=known)
    return views.capture_view(bank, [taken], name=name)


@longer.post("/reflect", response_model=answers.LearningOut)
def reflect(bank: Bank, which: ReflectBody) -> View:
    """Learn from one run, from those of the last days, or from all that wait; an agent only from its own."""
    if which.run or which.days:
        runs = [which.run] if which.run else bank.reflections.recent_runs(which.days or 0)
        scenario = Scenario.MANUAL if which.run else Scenario.BATCH
        return views.reflection_view(bank, [bank.reflect(run, scenario=scenario) for run in runs], [])
    results = list(bank.reflections.reflect_waiting())
    failed = [each for each in results if isinstance(each, ReflectionOutcome)]
    done = [each for each in results if not isinstance(each, ReflectionOutcome)]
    return views.reflection_view(bank, done, failed)


@router.post("/audit/check")
def check(bank: Bank, run: shapes.Title) -> View:
    """Judge each lesson that a run was told by what came of it."""
    return {"run": run, "verdicts": views.verdicts_view(bank, bank.audit(run))}


@router.get("/audit/report", response_model=answers.page_model("lessons", answers.ExtensibleOut))
def report(
    bank: Bank,
    asked: Asked,
    *,
    days: Annotated[int, Query(ge=0, le=36_500, description="Only the runs of the last days.")] = 0,
    since: shapes.Since = None,
    until: shapes.Until = None,
    project: shapes.Only = "",
) -> View:
    """Sum up whether lessons helped: all runs or those of a period, worst first, and what to do about it."""
    period = resolve_period(bank.now(), days=days, since=since, until=until)
    found = bank.audits.audit_report(period, project=project)
    page = asked.page_of(found.lessons, lambda line: line.lesson)
    shown = {line.lesson for line in page.items}
    return {
        **page.view("lessons", views.report_row_view),
        "proposals": [to_plain(each) for each in recommend_steps(found) if each.lesson in shown],
        "total": views.report_row_view(found.total),
        "answer": views.answer_view(found),
    }


@router.get("/audit/regressions/{run:path}")
def regressions(bank: Bank, run: shapes.Id) -> View:
    """Name what earlier runs had fixed and this one's reviewers found again."""
    return {"run": run, "regressions": [views.regression_view(each) for each in bank.audits.regressions(run)]}
