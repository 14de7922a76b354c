"""Deliver a brief: withhold, render, record, fence. Read back what a run was given, and search.

Briefs and the hooks of sessions share this, and a hook must not load what selects lessons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from archivist.brief.select import BriefedLesson, RenderedBrief, withhold
from archivist.errors import BankFullError, BankLockedError, BankReadOnlyError

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import BriefRequest
    from archivist.records.actor import Actor
    from archivist.store.protocol import Reader, Writer
    from archivist.store.results import TextQuery

BriefedLessons: TypeAlias = "tuple[BriefedLesson, ...]"
# Fields of a brief's `extra`: the mark of a recovery that was shown next to an error, and that the run began
# again (a session that is resumed, cleared or compacted has lost what it was given before).
RECOVERY_MARK = "healed"
BEGAN_AGAIN = "again"
# Clients cut off what is longer; a lesson that is not shown must not be recorded as given.
_MAX_CHARACTERS = 7_500


def deliver(
    bank: Bank,
    selection: RenderedBrief,
    request: BriefRequest,
    *,
    global_bank: Bank | None = None,
    open_run: Callable[[Writer], bool] | None = None,
    is_session: bool = False,
    has_core: bool = False,
) -> RenderedBrief:
    """Withhold the hold-out's share, render the rest, record both for the request's run, and fence the text.

    The last lessons of what is too long for a session are left out, and are not recorded either. With
    `has_core` core memory comes first, in the room that the lessons leave. The other options are those of
    `record_brief`.
    """
    from archivist.brief.render import present_text, render_brief

    form, is_fenced = request.presentation()
    chosen, withheld = withhold(selection.chosen, request.run, bank.config.brief.holdout)
    # A lesson that was made a rule is told as that, above the lessons.
    rules = bank.core_briefs.brief_text(request.role) if has_core and _has_blocks(bank) else ""
    ruled = tuple(each for each in chosen if each.is_own and f"({each.name})" in rules)
    listed = tuple(each for each in chosen if each not in ruled)
    text = render_brief(listed, form, selection.habits)
    while is_session and len(text) > _MAX_CHARACTERS and len(listed) > 1:
        listed = listed[:-1]
        text = render_brief(listed, form, selection.habits)
    chosen = (*ruled, *listed)
    brief_id = ""
    if request.run:
        brief_id = record_brief(
            bank,
            request,
            chosen,
            withheld,
            global_bank=global_bank,
            open_run=open_run,
            is_session=is_session,
        )
    core = ""
    if rules:
        room = _MAX_CHARACTERS - len(text) if is_session else None
        core = bank.core_briefs.brief_text(request.role, most=room)
    text = present_text(text, form, is_fenced=is_fenced, brief_id=brief_id, lessons=chosen, core=core)
    return selection._replace(text=text, chosen=chosen, brief_id=brief_id, withheld=withheld)


def _has_blocks(bank: Bank) -> bool:
    """Say whether there is core memory: most banks have none, and need not import what renders it."""
    with bank.reading() as reader:
        return reader.count("block") > 0


def record_brief(
    bank: Bank,
    request: BriefRequest,
    chosen: BriefedLessons,
    withheld: BriefedLessons,
    *,
    global_bank: Bank | None = None,
    open_run: Callable[[Writer], bool] | None = None,
    recovery: str = "",
    is_session: bool = False,
) -> str:
    """Record which lessons a run was given, each in its own bank; return the record's id.

    `open_run` stores the run in the same transaction and says whether it was known already; a new run that
    was given nothing needs no record of that. `recovery` marks what was shown next to an error. A session
    that is given nothing, or whose bank cannot be written now, has no record and the id is empty; so has a
    run that is finished, or not the asking agent's own.
    """
    from archivist.capture.clean import clean_name
    from archivist.records import Brief

    is_empty = is_session and not (chosen or withheld or recovery)
    if is_empty and open_run is None:
        return ""
    now = bank.now()
    name, run = bank.new_id(now), clean_name(request.run)

    def build_record(is_global: bool, extra: dict[str, object]) -> Brief:
        given, kept = (
            tuple(each.lesson.id for each in lessons if each.is_global is is_global and not each.is_team)
            for lessons in (chosen, withheld)
        )
        return Brief(
            id=name,
            time=now,
            run=run,
            domain=clean_name(request.domain),
            role=clean_name(request.role),
            lessons=given,
            withheld=kept,
            extra=extra,
        )

    try:
        with bank.transaction() as writer:
            if not _may_record(writer, run, bank.actor, is_session=is_session):
                return ""
            began_again = open_run is not None and open_run(writer)
            if open_run is None or began_again or chosen or withheld:
                extra: dict[str, object] = {RECOVERY_MARK: recovery} if recovery else {}
                writer.put(build_record(False, {BEGAN_AGAIN: True} if began_again else extra), "brief")
        if global_bank is not None and any(each.is_global for each in (*chosen, *withheld)):
            with global_bank.transaction() as writer:
                writer.put(build_record(True, {}), "brief")
    except (BankLockedError, BankReadOnlyError, BankFullError):
        if not is_session:
            raise
        return ""
    return "" if is_empty else name


def _may_record(reader: Reader, run: str, actor: Actor, *, is_session: bool) -> bool:
    """Say whether a brief may be recorded on a run: a finished one cannot have read it."""
    from archivist.capture.runs import is_run_of

    is_own = is_run_of(reader, run, actor)
    # A session that was finished can be resumed.
    if is_session or not is_own:
        return is_own
    from archivist.records import Episode
    from archivist.records.run_words import EpisodeStatus

    known = reader.get(Episode, run)
    return known is None or known.status is EpisodeStatus.RUNNING


def briefed_lessons(reader: Reader, run: str) -> tuple[set[str], set[str]]:
    """Return what a run was given since it last began: the ids of lessons, and the marks of recoveries.

    A lesson that was withheld counts as given. What an agent was given does not, unless the run is its own.
    """
    import json

    from archivist.store.filters import equals

    if not run:
        return set(), set()
    fields = ("id", "lessons", "withheld", "extra")
    rows = reader.select_fields("brief", fields, equals("run", run), order=("id",))
    provenance = reader.run_provenances((run,)).get(run)
    if provenance is None or provenance.is_own:
        rows = [row for row in rows if not reader.is_by_agent(row[0])]
    begun = [place for place, (*_, extra) in enumerate(rows) if f'"{BEGAN_AGAIN}"' in extra]
    rows = rows[begun[-1] :] if begun else rows
    lessons = {str(lesson) for _, *told, _ in rows for field in told for lesson in json.loads(field)}
    return lessons, {str(json.loads(extra).get(RECOVERY_MARK, "")) for *_, extra in rows} - {""}


def search_records(reader: Reader, query: TextQuery, kind: str, limit: int) -> dict[str, float]:
    """Return the ids of the records of a kind that match a query, each with its score."""
    from archivist.store.results import SearchFilter, scope_token

    is_of_kind = SearchFilter(groups=((scope_token("kind", kind),),))
    hits = reader.search(query, search_filter=is_of_kind, limit=limit)
    documents = reader.indexed_documents([hit.place for hit in hits])
    return {documents[hit.place].record: hit.score for hit in hits}
