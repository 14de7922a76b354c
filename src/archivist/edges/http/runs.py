"""The routes of runs: start, finish, capture, reflect, and whether it helped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from archivist.audit.report import proposals
from archivist.brief.forms import BriefFormat
from archivist.capture.formats.archeflow import read_runs
from archivist.capture.runs_service import LATEST
from archivist.capture.service import Known
from archivist.config import ServerRules
from archivist.edges.http import answers
from archivist.edges.http.banks import Lane
from archivist.edges.http.bodies import BodyRoute, LongRoute, Upload, UploadRoute
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    CheckBody,
    Ended,
    FinishBody,
    Format,
    Id,
    Only,
    ReflectBody,
    RunBody,
)
from archivist.edges.http.views import (
    captured_view,
    finished_log_view,
    finished_view,
    line_view,
    reflected_view,
    run_view,
    told_view,
    verdicts_view,
)
from archivist.edges.http.visits import Visitor, answer, plain_json
from archivist.edges.wire.refusals import Refusal
from archivist.errors import InputError
from archivist.files.jsonl import Line
from archivist.files.open import unpacks_beyond
from archivist.records import Episode, EpisodeStatus
from archivist.records.plain import to_plain
from archivist.reflect.trigger import Outcome, Scenario


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


@router.post("/runs", status_code=201, responses=answers.of(answers.Told, 201))
def start_run(body: RunBody, visitor: Visitor) -> Response:
    """Open a run, brief it and record both; an id is made when there is none."""
    is_about_task = bool(body.repo) or bool(body.task and not body.domain)
    form = body.format or ("markdown" if is_about_task else "known-issues")
    with visitor.bank() as bank:
        run = body.run.strip() or bank.new_id(bank.now())
        told = bank.start_run(
            run,
            task=body.task,
            domain=body.domain,
            role=body.role,
            repo=body.repo,
            provider=body.provider,
            form=BriefFormat(form),
            is_fenced=(is_about_task and form != "yaml") if body.fence is None else body.fence,
        )
        return answer({"run": run, **told_view(bank, told)}, 201)


@router.get("/runs", responses=answers.page_of("runs", answers.Run))
def list_runs(visitor: Visitor, asked: Asked, project: Only = "", task: Only = "") -> Response:
    """List the runs, the latest first."""
    with visitor.bank() as bank:
        page = asked.cut(
            lambda after, most: bank.episodes(project=project, task=task, after=after, limit=most), LATEST
        )
    return answer({"runs": [run_view(each) for each in page.items], "next": page.next})


@router.get("/runs/{run:run}", responses=answers.one("run", answers.Run))
def show_run(run: Id, visitor: Visitor) -> Response:
    """Return what a run was."""
    with visitor.bank() as bank:
        return answer({"run": run_view(bank.episode(run))})


@router.post("/runs/{run:path}/finish", responses=answers.of(answers.Learnt))
def finish_run(run: Id, body: FinishBody, visitor: Visitor) -> Response:
    """Close a run: take its review events in, learn, age the bank, judge what it was told."""
    ended = EpisodeStatus(body.status) if body.status else None
    events: Any = plain_json([each.model_dump(exclude_unset=True) for each in body.events])
    lines = [Line("events", number, value) for number, value in enumerate(events, 1)]
    log = read_runs(lines, run=run)
    if log.problems:
        raise InputError(f"events: {log.problems[0]}", hint="nothing was taken; each needs a type and data")
    if any(episode.id != run for episode, _ in log.runs):
        raise InputError("an event is of another run", hint="leave run_id out, or give this run's")
    taken = log.runs or ((Episode(id=run, status=ended or EpisodeStatus.SUCCESS), ()),)
    with visitor.bank() as bank:
        done = bank.finish_run(*taken[0], status=ended, domain=body.domain)
        return answer(finished_view(bank, done))


@uploads.post("/runs/{run:path}/log", responses=answers.page_of("runs", answers.Open), openapi_extra=_LOG)
def finish_log(
    run: Id,
    request: Request,
    visitor: Visitor,
    status: Annotated[Ended | None, Query()] = None,
    name: _Name = "upload",  # noqa: ARG001 the file was called so when it was written
) -> Response:
    """Close a run by an agent's own log: capture, reflect, age the bank, judge what it was told."""
    known = Known(run=run, status=EpisodeStatus(status) if status else None)
    with visitor.bank(Lane.LOG) as bank:
        done = bank.finish_log(_log_of(request), known=known)
        return answer({"runs": [finished_log_view(bank, each) for each in done], "next": None})


@uploads.post("/capture", status_code=201, responses=answers.of(answers.Captured, 201), openapi_extra=_LOG)
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
    known = Known(run=run, project=project, status=EpisodeStatus(status) if status else None)
    with visitor.bank(Lane.LOG) as bank:
        taken = bank.capture_file(_log_of(request), format_name=format, known=known)
    return answer(captured_view(taken, name), 201)


def _log_of(request: Request) -> Path:
    """Return the log that was sent, unless it unpacks to more than may be: nothing of such a one is taken."""
    upload: Upload = request.state.upload
    rules: ServerRules = request.app.state.rules
    most = rules.max_unpacked_mb * 1024 * 1024
    if unpacks_beyond(upload.path, most):
        raise Refusal(
            413,
            "too_large",
            f"the log unpacks to more than {rules.max_unpacked_mb} MB",
            hint="server.max_unpacked_mb",
        )
    return upload.path


@longer.post("/reflect", responses=answers.of(answers.Learnt))
def reflect(body: ReflectBody, visitor: Visitor) -> Response:
    """Learn from one captured run, from those of the last days, or from all that wait."""
    with visitor.bank(Lane.LOG) as bank:
        if body.run:
            done = [bank.reflect(body.run, scenario=Scenario.MANUAL)]
            return answer(reflected_view(bank, done, []))
        if body.days:
            done = [bank.reflect(name, scenario=Scenario.BATCH) for name in bank.recent_runs(body.days)]
            return answer(reflected_view(bank, done, []))
        results = list(bank.reflect_waiting())
        failed = [each for each in results if isinstance(each, Outcome)]
        done = [each for each in results if not isinstance(each, Outcome)]
        return answer(reflected_view(bank, done, failed))


@router.post("/audit/check", responses=answers.of(answers.Open))
def check(body: CheckBody, visitor: Visitor) -> Response:
    """Judge each lesson that a run was told by what came of it."""
    with visitor.bank() as bank:
        return answer({"run": body.run, "verdicts": verdicts_view(bank.audit(body.run))})


@router.get("/audit/report", responses=answers.page_of("lessons", answers.Open))
def report(visitor: Visitor, asked: Asked) -> Response:
    """Sum up whether lessons helped: worst first, and what the verdicts suggest."""
    with visitor.bank() as bank:
        found = bank.audit_report()
    page = asked.ranked(lambda _most: found.lessons, lambda line: line.lesson)
    shown = {line.lesson for line in page.items}
    return answer(
        {
            "lessons": [line_view(line) for line in page.items],
            "proposals": [to_plain(each) for each in proposals(found) if each.lesson in shown],
            "total": line_view(found.total),
            "next": page.next,
        }
    )


@router.get("/audit/regressions/{run:path}", responses=answers.of(answers.Open))
def regressions(run: Id, visitor: Visitor) -> Response:
    """Name what earlier runs had fixed and this one's reviewers found again."""
    with visitor.bank() as bank:
        found = bank.regressions(run)
    rows = [
        {"found": each.found.description, "fixed": each.fixed, "fixed_in": each.fixed_in} for each in found
    ]
    return answer({"run": run, "regressions": rows})
