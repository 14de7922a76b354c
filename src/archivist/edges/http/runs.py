"""The routes of runs: start, finish, capture, reflect, and whether it helped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from archivist.audit.report import recommend_steps
from archivist.brief.select import BriefRequest
from archivist.capture.formats.archeflow import read_events
from archivist.capture.json_stream import LogLine, SkippedRecord
from archivist.capture.recorder import LogOrigin
from archivist.capture.runs import LATEST
from archivist.capture.service import CaptureOverrides
from archivist.config import ServerRules
from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.banks import PoolLane, Visitor
from archivist.edges.http.bodies import BodyRoute, LongRoute, Upload, UploadRoute
from archivist.edges.http.shapes import (
    CheckBody,
    Ended,
    FinishBody,
    Format,
    Id,
    Only,
    ReflectBody,
    RunBody,
    clean_json,
)
from archivist.edges.views import (
    brief_view,
    capture_view,
    finished_run_view,
    reflection_view,
    regression_view,
    report_row_view,
    run_view,
    verdicts_view,
)
from archivist.edges.wire.gate import Refusal
from archivist.errors import InputError
from archivist.files.open import exceeds_unpacked_size
from archivist.records import Episode, EpisodeStatus
from archivist.records.plain import to_plain
from archivist.reflect.trigger import ReflectionOutcome, Scenario


class _RunConvertor(PathConvertor):
    """The id of a run, which may have slashes; what is done to a run has a path of its own."""

    regex = r"(?!.*/(?:finish|log)\Z).*"


register_url_convertor("run", _RunConvertor())
router = APIRouter(prefix="/api", tags=["runs"], route_class=BodyRoute)
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


@router.post("/runs", status_code=201, responses=answers.model_response(answers.BriefOut, 201))
def start_run(body: RunBody, visitor: Visitor) -> Response:
    """Open a run, brief it and record both; an id is made when there is none."""
    asked = body.model_dump(exclude={"run", "format"})
    with visitor.bank() as bank:
        run = body.run.strip() or bank.new_id(bank.now())
        told = bank.runs.start_run(run, BriefRequest(**asked, form=body.format))
        return json_response({"run": run, **brief_view(bank, told)}, 201)


@router.get("/runs", responses=answers.page_response("runs", answers.RunOut))
def list_runs(visitor: Visitor, asked: Asked, project: Only = "", task: Only = "") -> Response:
    """List the runs, the latest first."""
    with visitor.bank() as bank:
        page = asked.page_by_order(
            lambda after, most: bank.runs.episodes(project=project, task=task, after=after, limit=most),
            LATEST,
        )
    return page.response("runs", run_view)


@router.get("/runs/{run:run}", responses=answers.item_response("run", answers.RunOut))
def show_run(run: Id, visitor: Visitor) -> Response:
    """Return what a run was."""
    with visitor.bank() as bank:
        return json_response({"run": run_view(bank.runs.episode(run))})


@router.post("/runs/{run:path}/finish", responses=answers.model_response(answers.LearningOut))
def finish_run(run: Id, body: FinishBody, visitor: Visitor) -> Response:
    """Close a run: take its review events in, learn, age the bank, audit what it was told."""
    overrides = CaptureOverrides(run=run, status=EpisodeStatus(body.status) if body.status else None)
    values: Any = clean_json([event.model_dump(exclude_unset=True) for event in body.events])
    lines = (LogLine(number, value) for number, value in enumerate(values, 1))
    items = list(read_events(lines, LogOrigin(run=run)))
    for item in items:
        if isinstance(item, SkippedRecord):
            raise InputError(f"events: {item.where}: {item.reason}", hint="each event needs a type and data")
        if isinstance(item, Episode) and item.id != run:
            raise InputError("an event is of another run", hint="leave run_id out, or give this run's")
    with visitor.bank() as bank:
        done = bank.runs.finish(*([items] if items else []), overrides=overrides, domain=body.domain)
        return json_response(finished_run_view(bank, done.runs[0]))


@uploads.post(
    "/runs/{run:path}/log", responses=answers.page_response("runs", answers.ExtensibleOut), openapi_extra=_LOG
)
def finish_log(
    run: Id,
    request: Request,
    visitor: Visitor,
    status: Annotated[Ended | None, Query()] = None,
    name: _Name = "upload",  # noqa: ARG001 the file was called so when it was written
) -> Response:
    """Close a run by an agent's own log: capture, reflect, age the bank, judge what it was told."""
    known = CaptureOverrides(run=run, status=EpisodeStatus(status) if status else None)
    with visitor.bank(PoolLane.LOG) as bank:
        done = bank.runs.finish(_uploaded_log(request), overrides=known)
        views = [finished_run_view(bank, finished) for finished in done.runs]
        return json_response({"runs": views, "skipped": list(done.skipped), "next": None})


@uploads.post(
    "/capture", status_code=201, responses=answers.model_response(answers.CaptureOut, 201), openapi_extra=_LOG
)
def capture(
    request: Request,
    visitor: Visitor,
    format: Annotated[Format, Query()] = "auto",  # noqa: A002 the command's own word
    run: Only = "",
    project: Only = "",
    status: Annotated[Ended | None, Query()] = None,
    name: _Name = "upload",
) -> Response:
    """Take an agent's log in; its runs wait for reflection. The same log again changes nothing."""
    known = CaptureOverrides(run=run, project=project, status=EpisodeStatus(status) if status else None)
    with visitor.bank(PoolLane.LOG) as bank:
        taken = bank.runs.capture_file(_uploaded_log(request), format_name=format, overrides=known)
    return json_response(capture_view([taken], name=name), 201)


def _uploaded_log(request: Request) -> Path:
    """Return the log that was sent, unless it unpacks to more than may be: nothing of such a one is taken."""
    upload: Upload = request.state.upload
    rules: ServerRules = request.app.state.rules
    most = rules.max_unpacked_mb * 1024 * 1024
    if exceeds_unpacked_size(upload.path, most):
        raise Refusal(
            413,
            "too_large",
            f"the log unpacks to more than {rules.max_unpacked_mb} MB",
            hint="server.max_unpacked_mb",
        )
    return upload.path


@longer.post("/reflect", responses=answers.model_response(answers.LearningOut))
def reflect(body: ReflectBody, visitor: Visitor) -> Response:
    """Learn from one captured run, from those of the last days, or from all that wait."""
    with visitor.bank(PoolLane.LOG) as bank:
        if body.run:
            done = [bank.reflect(body.run, scenario=Scenario.MANUAL)]
            return json_response(reflection_view(bank, done, []))
        if body.days:
            done = [
                bank.reflect(name, scenario=Scenario.BATCH)
                for name in bank.reflections.recent_runs(body.days)
            ]
            return json_response(reflection_view(bank, done, []))
        results = list(bank.reflections.reflect_waiting())
        failed = [each for each in results if isinstance(each, ReflectionOutcome)]
        done = [each for each in results if not isinstance(each, ReflectionOutcome)]
        return json_response(reflection_view(bank, done, failed))


@router.post("/audit/check", responses=answers.model_response(answers.ExtensibleOut))
def check(body: CheckBody, visitor: Visitor) -> Response:
    """Judge each lesson that a run was told by what came of it."""
    with visitor.bank() as bank:
        verdicts = bank.audit(body.run)
        return json_response({"run": body.run, "verdicts": verdicts_view(bank, verdicts)})


@router.get("/audit/report", responses=answers.page_response("lessons", answers.ExtensibleOut))
def report(visitor: Visitor, asked: Asked) -> Response:
    """Sum up whether lessons helped: worst first, and what the verdicts suggest."""
    with visitor.bank() as bank:
        found = bank.audits.audit_report()
    page = asked.page_by_rank(lambda _most: found.lessons, lambda line: line.lesson)
    shown = {line.lesson for line in page.items}
    return json_response(
        {
            "lessons": [report_row_view(line) for line in page.items],
            "proposals": [to_plain(each) for each in recommend_steps(found) if each.lesson in shown],
            "total": report_row_view(found.total),
            "next": page.next,
        }
    )


@router.get("/audit/regressions/{run:path}", responses=answers.model_response(answers.ExtensibleOut))
def regressions(run: Id, visitor: Visitor) -> Response:
    """Name what earlier runs had fixed and this one's reviewers found again."""
    with visitor.bank() as bank:
        found = bank.audits.regressions(run)
    return json_response({"run": run, "regressions": [regression_view(each) for each in found]})
