"""Work on agents' sessions: what one is told at its start, at a prompt, beside an error, as a subagent.

Kept light: a cold process runs it while an agent waits. What is told is recorded where the bank can be
written; where it cannot, or not soon enough, it is told all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from archivist.brief.forms import BriefFormat
from archivist.errors import BankLockedError, BankReadOnlyError

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.select import BriefedLesson, RenderedBrief
    from archivist.store.protocol import Reader, Writer

_HITS = 30
# Where the record of a telling beside an error keeps what was told.
_HEALED = "healed"
# What the record of a session's start keeps when there was one before: what was told by then is forgotten.
_AGAIN = "again"
_PROMPT_CHARACTERS = 4_000
_MOST_CHARACTERS = 7_500


def brief_session(
    bank: Bank,
    run: str,
    project: str,
    *,
    folder: Path | None = None,
    provider: str = "",
    global_bank: Bank | None = None,
) -> RenderedBrief:
    """Say what a session's project met in its runs, and record the run; without a run nothing is.

    The run keeps in which repository it was made, as far as the folder tells.
    """
    told = bank.brief(
        project=project, provider=provider, form=BriefFormat.MARKDOWN, is_fenced=True, global_bank=global_bank
    )

    def open_run(writer: Writer) -> bool:
        return _open_run(writer, run, project, folder, bank)

    return _render_and_record(bank, told.chosen, run, global_bank=global_bank, open_run=open_run)


def brief_prompt(bank: Bank, run: str, project: str, prompt: str) -> RenderedBrief | None:
    """Say what a prompt brings up and the session was not told yet; None for nothing."""
    from archivist.recall.keywords import keywords
    from archivist.store.results import SearchFilter, TextQuery
    from archivist.store.scope_tokens import scope_token

    words = keywords(prompt[:_PROMPT_CHARACTERS])
    within = SearchFilter(groups=((scope_token("kind", "lesson"),),))
    with bank.reading() as reader:
        hits = (
            reader.search(TextQuery(tuple(sorted(words))), search_filter=within, limit=_HITS) if words else []
        )
        if not hits:
            return None
        from archivist.brief.prompting import match_prompt, select_untold
        from archivist.brief.select import BriefedLesson

        places = reader.indexed_documents([hit.place for hit in hits])
        found = reader.records("lesson", [each.record for each in places.values()])
        mine = [each for each in found.values() if each.status.is_live and each.repo in (project, "")]
        offered = select_untold(match_prompt(words, mine), briefed_lessons(reader, run))
    gone = bank.liveness.find_stale(offered) if offered else {}
    chosen = tuple(BriefedLesson(lesson) for lesson in offered if lesson.id not in gone)
    return _render_and_record(bank, chosen, run) if chosen else None


def brief_failure(
    bank: Bank, run: str, project: str, error: str, *, tool: str = "", command: str = ""
) -> RenderedBrief:
    """Say beside an error what earlier runs did about it, once in a session or since it was compacted.

    Where the hold-out keeps a lesson about it from the run, nothing is said: the remedy is in the telling.
    """
    told = bank.briefs.heal(error, tool=tool, command=command, project=project, run=run)
    if not told.text:
        return told
    from zlib import crc32

    from archivist.brief.fence import fence_brief
    from archivist.brief.holdout import is_withheld

    mark = f"{crc32(told.text.encode('utf-8', 'replace')):08x}"
    with bank.reading() as reader:
        known = briefed_lessons(reader, run)
        if mark in _healed_marks(reader, run):
            return told._replace(text="", chosen=())
    share = bank.config.brief.holdout
    withheld = tuple(each for each in told.chosen if is_withheld(run, each.lesson.id, share))
    news = [each for each in withheld or told.chosen if each.lesson.id not in known]
    brief_id = _record_brief(bank, () if withheld else news, news if withheld else (), run, healed=mark)
    if withheld:
        return told._replace(text="", chosen=(), brief_id=brief_id, withheld=withheld)
    return fence_brief(told._replace(brief_id=brief_id))


def brief_subagent(
    bank: Bank, run: str, project: str, *, role: str = "", global_bank: Bank | None = None
) -> RenderedBrief:
    """Say what a subagent should know before its first prompt: about half as much as a session."""
    from archivist.brief.presets import BriefPreset

    told = bank.brief(
        project=project,
        role=role,
        preset=BriefPreset.SUBAGENT,
        form=BriefFormat.MARKDOWN,
        is_fenced=True,
        global_bank=global_bank,
    )
    return _render_and_record(bank, told.chosen, run, global_bank=global_bank)


def _render_and_record(
    bank: Bank,
    offered: Sequence[BriefedLesson],
    run: str,
    *,
    global_bank: Bank | None = None,
    open_run: Callable[[Writer], bool] | None = None,
) -> RenderedBrief:
    """Render what is offered but for what the hold-out keeps from the run, record both, and fence it."""
    from archivist.brief.fence import fence_brief
    from archivist.brief.holdout import is_withheld
    from archivist.brief.render import render_brief
    from archivist.brief.select import RenderedBrief

    share = bank.config.brief.holdout
    withheld = tuple(each for each in offered if is_withheld(run, each.lesson.id, share))
    chosen = tuple(each for each in offered if each not in withheld)
    # What would not be shown is not told: clients cut longer texts.
    while len(chosen) > 1 and len(render_brief(chosen, BriefFormat.MARKDOWN)) > _MOST_CHARACTERS:
        chosen = chosen[:-1]
    brief_id = _record_brief(bank, chosen, withheld, run, global_bank=global_bank, open_run=open_run)
    return fence_brief(RenderedBrief(render_brief(chosen, BriefFormat.MARKDOWN), chosen, brief_id, withheld))


def _record_brief(
    bank: Bank,
    told: Sequence[BriefedLesson],
    withheld: Sequence[BriefedLesson],
    run: str,
    *,
    global_bank: Bank | None = None,
    open_run: Callable[[Writer], bool] | None = None,
    healed: str = "",
) -> str:
    """Record what a run was told, and that it has begun, or begun again; return the record's id, or nothing.

    A bank that cannot be written, or not soon enough, has still told.
    """
    if not run:
        return ""
    from archivist.records import Brief

    now = bank.now()
    is_telling = bool(told or withheld or healed)
    name = bank.new_id(now)

    def build_brief(is_global: bool, is_again: bool = False) -> Brief:
        mine, kept = (
            tuple(each.lesson.id for each in some if each.is_global is is_global) for some in (told, withheld)
        )
        extra: dict[str, object] = {_HEALED: healed} if healed else {_AGAIN: True} if is_again else {}
        return Brief(id=name, time=now, run=run, lessons=mine, withheld=kept, extra=extra)

    try:
        with bank.transaction() as writer:
            is_again = open_run is not None and open_run(writer)
            if is_telling or is_again:
                writer.put(build_brief(False, is_again), "brief")
        if global_bank is not None and any(each.is_global for each in (*told, *withheld)):
            with global_bank.transaction() as writer:
                writer.put(build_brief(True), "brief")
    except (BankLockedError, BankReadOnlyError):
        return ""
    return name if is_telling else ""


def _open_run(writer: Writer, run: str, project: str, folder: Path | None, bank: Bank) -> bool:
    """Record that a session has begun, and where; one that is known already is left as it is.

    Say whether it is known: a session begins again when it is resumed, cleared or compacted.
    """
    from archivist import projects
    from archivist.records import Episode

    is_known = writer.get(Episode, run) is not None
    if not is_known:
        kept: dict[str, object] = {}
        if folder is not None:
            kept[projects.CHECKOUT] = projects.checkout_info(folder, bank.root)
        begun = Episode(id=run, session=run, project=project, started=bank.now(), extra=kept)
        bank.runs.record_episode(begun)
    return is_known


def briefed_lessons(reader: Reader, run: str) -> set[str]:
    """Return the lessons that a run was told since it last began, or that were withheld from it by lot."""
    import json

    rows = _brief_rows(reader, run)
    return {str(lesson) for *fields, _ in rows for field in fields for lesson in json.loads(field)}


def _healed_marks(reader: Reader, run: str) -> set[str]:
    """Return the marks of what a run was told beside its errors since it last began."""
    import json

    return {str(json.loads(extra).get(_HEALED, "")) for *_, extra in _brief_rows(reader, run)} - {""}


def _brief_rows(reader: Reader, run: str) -> list[tuple[str, str, str]]:
    """Return what a run was told, withheld and marked with, from the last time on that it began again."""
    if not run:
        return []
    from archivist.store.filters import equals

    rows = reader.select_fields("brief", ("lessons", "withheld", "extra"), equals("run", run), order=("id",))
    begun = [place for place, (*_, extra) in enumerate(rows) if f'"{_AGAIN}"' in extra]
    return rows[begun[-1] :] if begun else rows
