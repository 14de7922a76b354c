"""Work on agents' sessions: what one is told at its start, at a prompt, beside an error, as a subagent.

Kept light: a cold process runs it while an agent waits. What is told is recorded where the bank can be
written; where it cannot, or not soon enough, it is told all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archivist.brief.forms import BriefFormat
from archivist.errors import BankLockedError, BankReadOnlyError

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.bank import Bank
    from archivist.brief.selection import Chosen, Told
    from archivist.stores.protocol import Reader, Writer

_HITS = 30
# Where the record of a telling beside an error keeps what was told.
_HEALED = "healed"
_PROMPT_CHARACTERS = 4_000
_MOST_CHARACTERS = 7_500


def begin(bank: Bank, run: str, repo: str, *, provider: str = "", beside: Bank | None = None) -> Told:
    """Say what a session's repository met in its runs, and record the run; without a run nothing is."""
    told = bank.brief(repo=repo, provider=provider, form=BriefFormat.MARKDOWN, beside=beside)
    return _given(bank, told.chosen, run, beside=beside, opened_for=repo)


def prompted(bank: Bank, run: str, repo: str, prompt: str) -> Told | None:
    """Say what a prompt brings up and the session was not told yet; None for nothing."""
    from archivist.recall.keywords import keywords
    from archivist.stores.answers import Within, Words
    from archivist.stores.tokens import scope_token

    words = keywords(prompt[:_PROMPT_CHARACTERS])
    within = Within(groups=((scope_token("kind", "lesson"),),))
    with bank.reading() as reader:
        hits = reader.search(Words(tuple(sorted(words))), within=within, limit=_HITS) if words else []
        if not hits:
            return None
        from archivist.brief.prompting import brought_up, fresh
        from archivist.brief.selection import Chosen
        from archivist.desks import projects

        places = reader.placed([hit.place for hit in hits])
        found = reader.records("lesson", [each.record for each in places.values()])
        project = projects.named(reader, repo) if repo else ""
        mine = [each for each in found.values() if each.status.is_live and each.repo in (project, "")]
        offered = fresh(brought_up(words, mine), told_in(reader, run))
    gone = bank.stale(offered) if offered else {}
    chosen = tuple(Chosen(lesson) for lesson in offered if lesson.id not in gone)
    return _given(bank, chosen, run) if chosen else None


def failed(bank: Bank, run: str, repo: str, error: str, *, tool: str = "", command: str = "") -> Told:
    """Say beside an error what earlier runs did about it, once in a session.

    Where the hold-out keeps a lesson about it from the run, nothing is said: the remedy is in the telling.
    """
    told = bank.heal(error, tool=tool, command=command, repo=repo, run=run)
    if not told.text:
        return told
    from zlib import crc32

    from archivist.brief.holdout import is_withheld
    from archivist.desks.fencing import fenced

    mark = f"{crc32(told.text.encode('utf-8', 'replace')):08x}"
    with bank.reading() as reader:
        known = told_in(reader, run)
        if mark in _healed_in(reader, run):
            return told._replace(text="", chosen=())
    share = bank.config.brief.holdout
    withheld = tuple(each for each in told.chosen if is_withheld(run, each.lesson.id, share))
    news = [each for each in withheld or told.chosen if each.lesson.id not in known]
    brief_id = _record(bank, () if withheld else news, news if withheld else (), run, healed=mark)
    if withheld:
        return told._replace(text="", chosen=(), brief_id=brief_id, withheld=withheld)
    return fenced(told._replace(brief_id=brief_id))


def delegated(bank: Bank, run: str, repo: str, *, role: str = "", beside: Bank | None = None) -> Told:
    """Say what a subagent should know before its first prompt: about half as much as a session."""
    from archivist.brief.presets import BriefPreset

    told = bank.brief(
        repo=repo, role=role, preset=BriefPreset.SUBAGENT, form=BriefFormat.MARKDOWN, beside=beside
    )
    return _given(bank, told.chosen, run, beside=beside)


def _given(
    bank: Bank,
    offered: Sequence[Chosen],
    run: str,
    *,
    beside: Bank | None = None,
    opened_for: str | None = None,
) -> Told:
    """Render what is offered but for what the hold-out keeps from the run, record both, and fence it."""
    from archivist.brief.holdout import is_withheld
    from archivist.brief.rendering import render
    from archivist.brief.selection import Told
    from archivist.desks.fencing import fenced

    share = bank.config.brief.holdout
    withheld = tuple(each for each in offered if is_withheld(run, each.lesson.id, share))
    chosen = tuple(each for each in offered if each not in withheld)
    # What would not be shown is not told: clients cut longer texts.
    while len(chosen) > 1 and len(render(chosen, BriefFormat.MARKDOWN)) > _MOST_CHARACTERS:
        chosen = chosen[:-1]
    brief_id = _record(bank, chosen, withheld, run, beside=beside, opened_for=opened_for)
    return fenced(Told(render(chosen, BriefFormat.MARKDOWN), chosen, brief_id, withheld))


def _record(
    bank: Bank,
    told: Sequence[Chosen],
    withheld: Sequence[Chosen],
    run: str,
    *,
    beside: Bank | None = None,
    opened_for: str | None = None,
    healed: str = "",
) -> str:
    """Record what a run was told, and that it has begun; return the record's id, or nothing.

    A bank that cannot be written, or not soon enough, has still told.
    """
    if not run:
        return ""
    from archivist.records import Brief

    now = bank.now()
    name = bank.new_id(now) if told or withheld or healed else ""

    def brief(is_global: bool) -> Brief:
        mine, kept = (
            tuple(each.lesson.id for each in some if each.is_global is is_global) for some in (told, withheld)
        )
        extra: dict[str, object] = {_HEALED: healed} if healed else {}
        return Brief(id=name, time=now, run=run, lessons=mine, withheld=kept, extra=extra)

    try:
        with bank.transaction() as writer:
            if opened_for is not None:
                _open_run(writer, run, opened_for, now)
            if name:
                writer.put(brief(False), "brief")
        if beside is not None and any(each.is_global for each in (*told, *withheld)):
            with beside.transaction() as writer:
                writer.put(brief(True), "brief")
    except (BankLockedError, BankReadOnlyError):
        return ""
    return name


def _open_run(writer: Writer, run: str, repo: str, now: datetime) -> None:
    """Record that a session has begun; one that is known already is left as it is."""
    from archivist.desks import projects
    from archivist.records import Episode

    if writer.get(Episode, run) is None:
        project = projects.named(writer, repo) if repo else ""
        writer.put(Episode(id=run, session=run, project=project, started=now), "capture")


def told_in(reader: Reader, run: str) -> set[str]:
    """Return the lessons that a run was told, or that were withheld from it by lot."""
    if not run:
        return set()
    import json

    from archivist.stores.filters import equals

    rows = reader.select_fields("brief", ("lessons", "withheld"), equals("run", run))
    return {str(lesson) for row in rows for field in row for lesson in json.loads(field)}


def _healed_in(reader: Reader, run: str) -> set[str]:
    """Return the marks of what a run was told beside its errors."""
    if not run:
        return set()
    import json

    from archivist.stores.filters import equals

    rows = reader.select_fields("brief", ("extra",), equals("run", run))
    return {str(json.loads(extra).get(_HEALED, "")) for (extra,) in rows} - {""}
