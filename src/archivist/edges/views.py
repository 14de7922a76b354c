"""One plain view of each record and result, for the command line, HTTP and the tools of agents.

A view has the names of the documents where they have any, and ours. Doors may add fields of their own; none
builds a view of a record by itself. Imported where an answer is written, never on the path of a hook.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from archivist.brief.select import GLOBAL_MARK
from archivist.clock import to_short_text
from archivist.records.plain import to_plain
from archivist.records.words import ActorKind, stated_provenance
from archivist.text import changed_part, shorten

if TYPE_CHECKING:
    from archivist import records
    from archivist.audit.analytics import Analytics, ApproachResult, Rate
    from archivist.audit.report import Report, ReportRow
    from archivist.audit.verdicts import Regression
    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.capture.results import ExtractResult, FinishedRun
    from archivist.capture.service import CaptureResult
    from archivist.core.blocks import CoreView
    from archivist.layers.artifacts_service import ArtifactCheck
    from archivist.layers.orchestrator_service import OrchestrationResult
    from archivist.layers.tasks_service import AgentActivity
    from archivist.lessons.standing import AgeingResult
    from archivist.recall.results import Hit, RecallResult
    from archivist.reflect.model.conversation_service import ModelReport
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import ReflectionOutcome
    from archivist.store.ledger import LedgerChange, LedgerEntry
    from archivist.stream.insights_service import Insights

View = dict[str, Any]

# Fields that change with every write and say nothing about what was changed.
_SILENT_FIELDS = frozenset((
    "updated", "edited", "unseen_from", "number", "evidence", "last_seen", "last_seen_run", "runs", "faded",
))  # fmt: skip
# Of the words that changed; all of a shorter text is shown.
_CHANGE_CHARACTERS = 200
_WHOLE_CHARACTERS = 60
# What happened to a record, by the verb of the ledger. Other verbs are people's own words for it.
_DONE_WORDS = {
    "add": "added", "age": "counted", "append": "logged", "approve": "approved", "archive": "archived",
    "brief": "given", "capture": "recorded", "create": "made", "decay": "aged", "edit": "edited",
    "expire": "expired", "extract": "learnt from a review", "forget": "forgotten",
    "heed": "kept fresh: it helped", "import": "imported", "judge": "judged", "log": "logged",
    "merge": "merged", "propose": "proposed", "rebase": "adapted to the current text",
    "refresh": "adapted to its lesson's current words",
    "reject": "rejected", "accept": "accepted", "roll back": "rolled back", "register": "registered",
    "remove": "removed", "reflect": "learnt from", "retire": "archived: it does not help",
    "see": "met again", "share": "shared", "suggest": "suggested", "supersede": "superseded",
    "use": "used", "withdraw": "withdrawn",
}  # fmt: skip
_FIELD_WORDS = {"confirmed": "approved by a person", "accepted": "source accepted"}
# What nobody decides: it follows from a run, whoever's call reports that run.
_AUTOMATIC_VERBS = frozenset(("age", "decay", "heed", "judge", "retire"))


def time_text(time: datetime | None) -> str | None:
    """Return a time as text, or None."""
    return to_short_text(time) if time else None


def pick(record: object, names: str) -> View:
    """Return these fields of a record in the types of JSON, and times as short texts."""
    values = {name: getattr(record, name) for name in names.split()}
    return {
        name: to_short_text(value) if isinstance(value, datetime) else to_plain(value)
        for name, value in values.items()
    }


# Lessons, briefs and what is found


def lesson_views(bank: Bank, lessons: Sequence[records.Lesson], *, mark: str = "") -> list[View]:
    """Return lessons with what is counted for each; `mark` stands before the ids of the global bank's."""
    views: list[View] = list(bank.lessons.views(lessons))
    return [{**view, "id": f"{mark}{view['id']}"} for view in views]


def told_views(
    views: Iterable[View], moments: Mapping[str, str], out_of_date: Mapping[str, str]
) -> list[View]:
    """Return views of lessons with when each is told, if it is, and why it is out of date, if it is."""
    return [
        {**view, "told": moments.get(view["uid"], ""), "out_of_date": out_of_date.get(view["uid"], "")}
        for view in views
    ]


def brief_view(bank: Bank | None, brief: RenderedBrief | None) -> View:
    """Return a brief: its text, and the lessons in it by the names that they have in every door."""
    from archivist.brief.works import NO_HABITS

    if bank is None or brief is None:
        empty = {"text": "", "notice": "", "lessons": [], "brief": "", "withheld": [], "stale": {}}
        return {**empty, "why_no_lesson": "", **NO_HABITS.views()}
    from archivist.brief.render import NOTICE

    views = bank.lessons.views([each.lesson for each in brief.chosen])
    pairs = zip(views, brief.chosen, strict=True)
    return {
        "text": brief.text,
        "why_no_lesson": brief.why_no_lesson,
        "notice": NOTICE if brief.text else "",
        "lessons": [{**view, "id": each.name, "is_global": each.is_global} for view, each in pairs],
        "brief": brief.brief_id,
        "withheld": [each.name for each in brief.withheld],
        "stale": dict(brief.stale),
        **brief.habits.views(),
    }


def hit_view(hit: Hit) -> View:
    """Return something that was found, with every part of its score."""
    parts = {**pick(hit.why, "importance recency relevance"), **hit.why.why._asdict()}
    del parts["total"]
    # Four digits: with six, recency is another number every second, and two doors never agree.
    return {
        "id": hit.name,
        "uid": hit.id,
        **pick(hit, "kind text time notes window provenance"),
        **({"bank": hit.bank} if hit.bank else {}),
        "score": round(hit.score, 6),
        "parts": {name: None if part is None else round(part, 4) for name, part in parts.items()},
    }


def recall_view(found: RecallResult) -> View:
    """Return the answer to a question, with how it was looked for."""
    return {
        "hits": [hit_view(hit) for hit in found.hits],
        **pick(found, "words embedder unembedded problem"),
        "weights": found.weights._asdict(),
    }


def history_views(changes: Sequence[LedgerChange]) -> list[View]:
    """Return the changes of one record, oldest first: what each changed, and the record after it."""
    views = []
    before: Mapping[str, Any] | None = None
    for change in changes:
        entry = change.entry
        view = pick(entry, "seq time verb kind hash")
        view |= {"actor": str(entry.actor), "what": describe_entry(entry)}
        view["change"] = "(erased)" if change.is_erased else _describe_change(before, change.after)
        views.append(view | {"is_erased": change.is_erased, "after": change.after})
        before = before if change.is_erased else change.after
    return views


def ledger_view(entry: LedgerEntry) -> View:
    """Return one change without its record: who did what to which record, and when."""
    view = pick(entry, "seq time verb kind record hash")
    return {**view, "actor": str(entry.actor), "what": describe_entry(entry)}


def describe_entry(entry: LedgerEntry) -> str:
    """Say in plain words what was done to a record, and by whom; what a run leads to is archivist's doing."""
    verb = entry.verb
    if entry.kind == "lesson" and verb == "reflect":
        words = "learnt"
    elif verb.startswith("undo "):
        words = f"change {verb.removeprefix('undo ')} undone"
    else:
        words = _DONE_WORDS.get(verb, verb)
    if verb == "see" and entry.actor.kind is ActorKind.ARCHIVIST:
        return f"{words} in a run"
    if verb not in _AUTOMATIC_VERBS or entry.actor.kind is ActorKind.ARCHIVIST:
        return f"{words} by {entry.actor}"
    return f"{words} by archivist, in a call of {entry.actor}"


def _describe_change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Say what a change made of a record: its first words, or of each field the words that differ."""
    if after is None:
        return "removed"
    if before is None:
        return str(after.get("summary") or after.get("id") or "made")

    def frequency(plain: Mapping[str, Any]) -> int:
        return max(0, len(plain.get("runs", ())) - int(plain.get("faded", 0)))

    was, now = frequency(before), frequency(after)
    # By what changed: a rule and its summary often change in the same words.
    names: dict[str, list[str]] = {f"{was} → {now}": ["frequency"]} if was != now else {}
    for name, value in after.items():
        old = before.get(name)
        if name in _SILENT_FIELDS or old == value:
            continue
        # What is kept beside the fields has names of its own.
        inner, earlier = (value, old or {}) if isinstance(value, dict) else ({name: value}, {name: old})
        for key in dict.fromkeys((*earlier, *inner)):
            if earlier.get(key) != inner.get(key):
                difference = _describe_difference(earlier.get(key), inner.get(key))
                names.setdefault(difference, []).append(_FIELD_WORDS.get(key, key.replace("_", " ")))
    parts = [f"{' and '.join(fields)} {difference}" for difference, fields in names.items()]
    return ", ".join(parts) or "no word changed: unmet runs are counted from here"


def _describe_difference(old: object, new: object) -> str:
    """Say how a value changed: of a long text the words that differ, of a list what came and what went."""
    if isinstance(old, list) and isinstance(new, list) and old and new:
        gone, come = [each for each in old if each not in new], [each for each in new if each not in old]
        old, new = gone or old, come or new

    def show(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        return "nothing" if value in ("", None, [], {}) else " ".join(text.split())

    before, after = show(old), show(new)
    if max(len(before), len(after)) > _WHOLE_CHARACTERS:
        before, after = changed_part(before, after)
    return f"{shorten(before, _CHANGE_CHARACTERS)} → {shorten(after, _CHANGE_CHARACTERS)}"


# Runs


def run_view(bank: Bank, episode: records.Episode) -> View:
    """Return a run under our names and under those of the reflective document, and where it comes from."""
    from archivist.records.shapes import to_episode_line

    plain: View = to_plain(episode)
    return {
        **to_episode_line(episode),
        "run": plain.pop("id"),
        **plain,
        "started": time_text(episode.started),
        "finished": time_text(episode.finished),
        "provenance": bank.runs.provenance(episode.id).value,
    }


def attempt_view(bank: Bank, attempt: records.Episode) -> View:
    """Return an attempt as a row of the documented `episodes` table; `run` is the run that it was made in."""
    from archivist.records.episode import reported_tokens
    from archivist.records.shapes import to_episode_line

    ended, began = attempt.finished, attempt.started
    # The log of a beginning says nothing of how long it took.
    is_begun = ended == began and attempt.status == "partial"
    took_ms = round((ended - began).total_seconds() * 1000) if ended and began and not is_begun else None
    tokens_in, tokens_out = reported_tokens(attempt)
    row = {
        "id": attempt.id,
        "task_id": attempt.task,
        "agent_id": attempt.agent,
        "action": attempt.action.value if attempt.action else None,
        "approach": attempt.approach,
        "outcome": attempt.outcome or None,
        "duration_ms": took_ms,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "created_at": time_text(ended),
        "provider": attempt.provider,
        "run": attempt.parent,
        "provenance": bank.runs.provenance(attempt.id).value,
    }
    return {**row, **{name: value for name, value in to_episode_line(attempt).items() if name not in row}}


def approach_view(result: ApproachResult) -> View:
    """Return what became of an approach to a task."""
    return {
        **pick(result, "task approach attempts completed failed verdict agents provenance"),
        "last": {**pick(result.last, "id action outcome"), "time": time_text(result.last.finished)},
    }


def rate_view(rate: Rate) -> View:
    """Return how often something succeeded, with the bounds of that share."""
    names = "name attempts completed failed mean_duration_ms tokens_in tokens_out reported_by_agents"
    low, high = rate.interval
    view = {
        **pick(rate, names),
        "undecided": rate.undecided_count,
        "rate": rate.share,
        "low": low,
        "high": high,
    }
    return {**view, **({"periods": list(map(rate_view, rate.periods))} if rate.periods else {})}


def capture_view(
    bank: Bank, results: Sequence[CaptureResult], *, refused: Sequence[str] = (), name: str = ""
) -> View:
    """Return what logs brought, all together and run by run; `name` is what the only log was called."""
    runs: list[View] = []
    for result in results:
        about = {"file": name or result.file, "events": result.events, "unchanged": result.is_unchanged}
        shown = (run_view(bank, episode) for episode in result.episodes)
        runs += [{**view, **about, "episode": view} for view in shown]
    secrets = sum((Counter(result.secrets) for result in results), Counter[str]())
    return {
        **({"file": name or results[0].file} if len(results) == 1 else {}),
        "runs": runs,
        "events": sum(result.events for result in results),
        "changed": sum(result.changed for result in results),
        "skipped": sum(result.skipped for result in results),
        "reasons": [reason for result in results for reason in result.reasons],
        "secrets": dict(secrets),
        "refused": list(refused),
        "unchanged": all(result.is_unchanged for result in results),
        **({"episode": runs[0]["episode"]} if len(runs) == 1 else {}),
    }


def model_view(bank: Bank) -> View:
    """Return which language model is configured and what it spent; empty without one."""
    if not bank.config.model.name:
        return {}
    found, rules = bank.model.status(), bank.config.model
    return {
        **pick(found, "name url key_variable has_key is_allowed problem"),
        "today": found.today.as_view(),
        "budget": {"day_tokens": rules.day_tokens, "day_usd": rules.day_usd},
        "days": {day: spending.as_view() for day, spending in found.days.items()},
    }


def model_report_view(reports: Sequence[ModelReport]) -> View:
    """Return what asking a model about some runs came to, in sum; empty when it was not asked."""
    if not reports:
        return {}
    from archivist.reflect.budget import Spending

    dropped = sum((Counter(report.drop_reasons) for report in reports), Counter[str]())
    total = reduce(Spending.plus, (report.spending for report in reports))
    problems = dict.fromkeys(report.problem for report in reports if report.problem)
    return {
        "model": reports[-1].model,
        "runs": sum(bool(report.questions) for report in reports),
        **total.as_view(),
        "seconds": round(sum(report.seconds for report in reports), 1),
        "proposed": sum(report.proposed_count for report in reports),
        "admitted": sum(report.admitted_count for report in reports),
        "dropped": dict(dropped.most_common()),
        "claims": [{"run": report.run, **asdict(claim)} for report in reports for claim in report.claims],
        "unfinished": [each.run for each in reports if each.run and each.is_unfinished and each.questions],
        "problem": "; ".join(problems),
    }


def reflection_view(
    bank: Bank,
    done: Sequence[Reflection],
    failed: Sequence[ReflectionOutcome],
    reports: Sequence[ModelReport] = (),
) -> View:
    """Return what was learnt from some runs, and what a language model had to do with it."""
    learnt: tuple[Reflection | ModelReport, ...] = (*done, *reports)
    accounts = {report.run: report.account for report in reports}

    def view_run(each: Reflection) -> View:
        account = {**asdict(each.account), **accounts.get(each.run, {})}
        provenance = bank.runs.provenance(each.run).value
        return {**pick(each, "run scenario failures"), **account, "provenance": provenance}

    created = dict.fromkeys(lesson.id for each in learnt for lesson in each.created)
    updated = dict.fromkeys(lesson.id for each in learnt for lesson in each.updated)
    return {
        "created": len(created),
        "updated": len(updated),
        "lessons": lesson_views(bank, bank.lessons.get_many({**created, **updated})),
        "runs": list(map(view_run, done)),
        "failed": [pick(each, "run error") for each in failed],
        **({"model": model_report_view(reports)} if reports else {}),
    }


def _learnt_views(
    bank: Bank, created: Iterable[records.Lesson], updated: Iterable[records.Lesson]
) -> list[View]:
    """Return what a run taught; to an agent without what it met that waits in the words of others."""
    return lesson_views(bank, [*created, *bank.lessons.get_many(lesson.id for lesson in updated)])


def finished_run_view(bank: Bank, done: FinishedRun) -> View:
    """Return what finishing a run did."""
    return {
        **pick(done, "run events"),
        **pick(done.outcome, "scenario status summary error"),
        "created": len(done.created),
        "updated": len(done.updated),
        "lessons": _learnt_views(bank, done.created, done.updated),
        **ageing_view(bank, done.aged),
        "verdicts": verdicts_view(bank, done.verdicts),
        "regressions": [regression_view(regression) for regression in done.regressions],
    }


def extract_view(bank: Bank, learnt: ExtractResult) -> View:
    """Return what review findings taught."""
    return {
        "created": len(learnt.created),
        "updated": len(learnt.updated),
        "lessons": _learnt_views(bank, learnt.created, learnt.updated),
        **pick(learnt, "slight skipped"),
    }


def ageing_view(bank: Bank, aged: AgeingResult) -> View:
    """Return which lessons a run let fade, and which of them were archived."""
    return {
        "faded": [view["id"] for view in bank.lessons.views(aged.faded)],
        "archived": [view["id"] for view in bank.lessons.views(aged.archived)],
        "was_counted": aged.was_counted,
    }


# Audits


def verdicts_view(
    bank: Bank, verdicts: Iterable[records.Verdict], *, global_bank: Bank | None = None
) -> list[View]:
    """Return what became of each lesson that a run was given, by the lesson's name and its words."""
    verdicts = list(verdicts)
    if not verdicts:
        return []
    global_names = {} if global_bank is None else global_bank.lessons.lesson_names()
    names = {uid: (f"{GLOBAL_MARK}{name}", summary) for uid, (name, summary) in global_names.items()}
    names |= bank.lessons.lesson_names()
    views = []
    for verdict in verdicts:
        name, summary = names.get(verdict.lesson, (verdict.lesson, ""))
        shown = {"lesson": name, "uid": verdict.lesson, "summary": summary}
        views.append({**shown, **pick(verdict, "effect following failed effectiveness")})
    return views


def regression_view(regression: Regression) -> View:
    """Return a finding that an earlier run had fixed and a later one has again."""
    found = regression.found
    return {"found": found.description, **pick(found, "severity"), **pick(regression, "fixed fixed_in")}


def report_row_view(row: ReportRow) -> View:
    """Return one line of the audit's report."""
    counts = "lesson summary told helpful ineffective ignored not_needed unknown followed share"
    low, high = row.posterior.interval
    lift, (lift_low, lift_high) = row.lift, row.lift.interval or (None, None)
    return {
        **pick(row, counts),
        "effectiveness": {"helpful": row.not_found_again, "ineffective": row.found_again, "ratio": row.ratio},
        "posterior": {"mean": row.posterior.mean, "low": low, "high": high},
        "lift": {
            **asdict(lift.arms),
            **pick(lift.arms, "rate_told rate_withheld"),
            **pick(lift, "difference runs_needed"),
            "low": lift_low,
            "high": lift_high,
            "verdict": lift.conclusion.value,
        },
        **({"periods": [report_row_view(period) for period in row.periods]} if row.periods else {}),
    }


def answer_view(report: Report) -> View:
    """Return whether memory helped in the period of a report, with the figures of the answer."""
    if report.answer is None:
        return {}
    period, change = report.answer.period, report.answer.change
    told = pick(report.answer, "text conclusion name headline figures")
    return {**told, **pick(period, "since until days"), "change": change._asdict()}


# Layers and tiers


def table_view(record: records.Fact | records.Artifact) -> View:
    """Return a fact or an artifact: the columns of the documented tables in their order, then our names."""
    from archivist.records.shapes import to_line

    row: View = to_line(record)
    plain: View = to_plain(record)
    provenance = getattr(record, "provenance", None)
    brought = {"provenance": provenance} if provenance else {}
    return {**row, **{name: plain[name] for name in plain if name not in (*row, "extra")}, **brought}


def task_view(task: records.Task, waits_for: Sequence[str] = ()) -> View:
    """Return a task, and what it waits for."""
    plain: View = to_plain(task)
    plain.pop("extra", None)
    return {**plain, "waits_for": list(waits_for)}


def activity_view(bank: Bank, found: AgentActivity) -> View:
    """Return what an agent is doing, and what it did last."""
    return {
        **pick(found, "agent done failed"),
        "tasks": [task_view(task) for task in found.tasks],
        "runs": [run_view(bank, run) for run in found.runs],
        "recent": [attempt_view(bank, attempt) for attempt in found.recent],
    }


def orchestration_view(done: OrchestrationResult) -> View:
    """Return what a loop over the tasks did."""
    return {name: list(value) for name, value in done._asdict().items()}


def analytics_view(found: Analytics) -> View:
    """Return success rates by name and in all."""
    rows = [rate_view(rate) for rate in found.rows]
    return {**pick(found, "by step"), "rows": rows, "total": rate_view(found.total)}


def conflict_view(conflict: records.Conflict) -> View:
    """Return a contradiction between two sources of a fact."""
    plain: View = to_plain(conflict)
    plain.pop("extra", None)
    return {**plain, "project": conflict.project}


def working_view(working: records.Working | None) -> View | None:
    """Return working memory: our names, and beside them those of the document."""
    if working is None:
        return None
    plain: View = to_plain(working)
    return {
        **plain,
        "agentId": working.id,
        "currentPlan": working.plan or None,
        "activeConstraints": plain["constraints"],
        "taskContext": plain["context"],
        "updatedAt": round(working.updated.timestamp() * 1000),
    }


def check_view(check: ArtifactCheck) -> View:
    """Return an artifact, and how its file compares with what was registered."""
    return {**table_view(check.artifact), "state": check.state.value, "note": check.note}


def block_view(block: records.Block) -> View:
    """Return a block of core memory."""
    return {"id": block.id, **to_plain(block)}


def core_view(view: CoreView) -> View:
    """Return what a role has in its context."""
    return {
        **pick(view, "role text playbook rules status threads role_state lessons tokens budget"),
        "blocks": [{**size._asdict(), "section": size.section.value} for size in view.sizes],
    }


def proposal_view(proposal: records.Proposal) -> View:
    """Return a proposal by its short id."""
    return {**to_plain(proposal), "id": proposal.short_id, "uid": proposal.id}


def entry_view(entry: records.Entry) -> View:
    """Return an entry of the stream under the document's names, and whether an agent or a file said it."""
    from archivist.records.shapes import to_stream_line

    provenance = stated_provenance(entry.extra)
    quoted = {"provenance": provenance} if provenance else {}
    return {**to_stream_line(entry), "archived": entry.is_archived, **quoted}


def insights_view(done: Insights) -> View:
    """Return what reflection found in the stream."""
    return {
        **pick(done, "reason skipped gathered cycles problems"),
        "entries": [entry_view(entry) for entry in done.entries],
        "documents": [f"{each.source}#{each.position}" for each in done.documents],
        "core": list(done.told_core),
        **({"model": model_report_view([done.model])} if done.model else {}),
    }


def piece_view(bank: Bank, piece: records.Document) -> View:
    """Return a piece of an archived text, and whether an agent wrote it."""
    fields = pick(piece, "id source position heading line type roles issues tags importance text date")
    return {**fields, "provenance": bank.documents.provenance(piece)}


def token_view(token: records.Token, state: str) -> View:
    """Return an access token without its secret."""
    return {**pick(token, "id name created expires revoked"), "actor": str(token.actor), "state": state}
