"""Brief the sessions of agents: at their start, at a prompt, next to an error, and as subagents.

A hook runs this in a cold process while an agent waits. Where the bank cannot be written, or not soon enough,
the session is briefed all the same and nothing is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.brief.select import BriefFormat, BriefPreset, BriefRequest, fit_to_sandbox, is_for
from archivist.service import BankService

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.records import Episode
    from archivist.store.protocol import Writer

# The text of a session goes into a prompt, whatever it is about.
_SESSION = BriefRequest(form=BriefFormat.MARKDOWN, fence=True)
_HITS = 30
_PROMPT_CHARACTERS = 4_000
_MAX_PROMPT_LESSONS = 3
# The latest tasks of a project, whose common words tell no prompt from another.
_TASKS = 100


class SessionBriefs(BankService):
    """What agents' sessions are given. A session is a run whose id the client chose."""

    @reads(Layer.LESSONS)
    def brief_session(
        self,
        run: str,
        project: str,
        *,
        folder: Path | None = None,
        provider: str = "",
        agent: str = "",
        global_bank: Bank | None = None,
    ) -> RenderedBrief:
        """Brief a session that starts, in the actor's role; record it with its agent and its repository."""
        from archivist.brief.record_service import deliver
        from archivist.brief.service import select_lessons

        bank = self._bank

        def open_run(writer: Writer) -> bool:
            return self._open_run(writer, run, project, folder, agent)

        request = _SESSION._replace(project=project, role=bank.actor.role, provider=provider, run=run)
        selection = select_lessons(bank, request, global_bank=global_bank)
        return deliver(
            bank,
            selection,
            request,
            global_bank=global_bank,
            open_run=open_run,
            is_session=True,
            has_core=True,
        )

    @writes(Layer.RUNS)
    def open_session(self, run: str, project: str, *, folder: Path | None = None, agent: str = "") -> None:
        """Record a session that starts and is briefed by somebody else."""
        with self._bank.transaction() as writer:
            self._open_run(writer, run, project, folder, agent)

    @reads(Layer.RUNS)
    def running(self, limit: int) -> list[Episode]:
        """Return the runs and sessions that were started and have not ended, the latest first."""
        from archivist.records import Episode, EpisodeStatus
        from archivist.store.filters import above, equals

        # Of a log without times nobody knows when it began, nor that it still runs.
        has_begun = equals("finished", None), above("started", "")
        is_running = *has_begun, equals("status", EpisodeStatus.RUNNING), equals("action", None)
        with self._bank.reading() as reader:
            return reader.select(Episode, *is_running, order=("-started", "id"), limit=limit)

    def _open_run(self, writer: Writer, run: str, project: str, folder: Path | None, agent: str) -> bool:
        """Record the run of a session unless it is known; say whether it is."""
        from archivist import projects
        from archivist.capture.runs import claim_run
        from archivist.records import Episode
        from archivist.records.run_words import ROLE

        bank = self._bank
        claim_run(writer, run, bank.actor)
        # A session begins again when it is resumed, cleared or compacted.
        is_known = writer.get(Episode, run) is not None
        if not is_known:
            extra: dict[str, object] = {ROLE: bank.actor.role} if bank.actor.role else {}
            if folder is not None:
                extra[projects.CHECKOUT] = projects.checkout_info(folder, bank.root)
            begun = Episode(
                id=run, session=run, project=project, agent=agent, started=bank.now(), extra=extra
            )
            bank.runs.record_episode(begun)
        return is_known

    @reads(Layer.LESSONS)
    def brief_subagent(
        self,
        run: str,
        project: str,
        *,
        role: str = "",
        provider: str = "",
        global_bank: Bank | None = None,
    ) -> RenderedBrief:
        """Brief a subagent before its first prompt, with about half as much as a session."""
        from archivist.brief.record_service import deliver
        from archivist.brief.service import select_lessons

        request = _SESSION._replace(
            project=project, role=role, provider=provider, run=run, preset=BriefPreset.SUBAGENT
        )
        selection = select_lessons(self._bank, request, global_bank=global_bank)
        return deliver(
            self._bank, selection, request, global_bank=global_bank, is_session=True, has_core=bool(role)
        )

    @reads(Layer.LESSONS)
    def brief_prompt(
        self, run: str, project: str, prompt: str, *, provider: str = ""
    ) -> RenderedBrief | None:
        """Return the lessons about a prompt that the session was not given yet; None without any."""
        from archivist.brief.record_service import briefed_lessons, deliver, search_records
        from archivist.recall.keywords import keywords
        from archivist.store.results import TextQuery

        words = keywords(prompt[:_PROMPT_CHARACTERS])
        if not words:
            return None
        with self._bank.reading() as reader:
            ids = list(search_records(reader, TextQuery(tuple(sorted(words))), "lesson", _HITS))
            if not ids:
                return None
            from archivist.brief.rank import everyday_words, match_prompt
            from archivist.brief.service import leave_overcome
            from archivist.brief.works import cached_habits, find_approvals
            from archivist.projects import names_of
            from archivist.store.filters import one_of

            lessons = reader.records("lesson", ids).values()
            told = [lesson for lesson in lessons if lesson.status.is_live and not lesson.is_waiting]
            names = (*names_of(reader, project), "")
            ours = [lesson for lesson in told if lesson.repo in names and is_for(lesson, provider)]
            rows = reader.select_fields(
                "episode", ("task",), one_of("project", names), order=("-finished",), limit=_TASKS
            )
            everyday = everyday_words([str(task)[:_PROMPT_CHARACTERS] for (task,) in rows])
            known, _ = briefed_lessons(reader, run)
            matching = [lesson for lesson in match_prompt(words, ours, everyday) if lesson.id not in known]
            matching = fit_to_sandbox(matching, lambda: find_approvals(reader, names, provider))
            if matching:
                # What is out of date at a session's start is so at a prompt.
                matching, _ = leave_overcome(matching, cached_habits(reader, project))
        untold = matching[:_MAX_PROMPT_LESSONS]
        stale = self._bank.liveness.find_withheld(untold) if untold else {}
        from archivist.brief.select import BriefedLesson, RenderedBrief

        chosen = tuple(BriefedLesson(lesson) for lesson in untold if lesson.id not in stale)
        if not chosen:
            return None
        return deliver(self._bank, RenderedBrief("", chosen), _SESSION._replace(run=run), is_session=True)

    @reads(Layer.LESSONS)
    def brief_failure(
        self, run: str, project: str, error: str, *, tool: str = "", command: str = "", provider: str = ""
    ) -> RenderedBrief:
        """Show next to an error what earlier runs did about it, once a session or since it was compacted.

        Nothing is shown where the hold-out keeps a lesson about the error from the run: its remedy is in it.
        """
        from archivist.brief.healing_service import HealRequest, heal

        asked = HealRequest(tool=tool, command=command, run=run, project=project, provider=provider)
        found = heal(self._bank, error, asked)
        if not found.text:
            return found
        from zlib import crc32

        from archivist.brief.record_service import briefed_lessons, record_brief
        from archivist.brief.render import present_text
        from archivist.brief.select import withhold

        mark = f"{crc32(found.text.encode('utf-8', 'replace')):08x}"
        with self._bank.reading() as reader:
            known, marks = briefed_lessons(reader, run)
        if mark in marks:
            return found._replace(text="", chosen=())
        _, withheld = withhold(found.chosen, run, self._bank.config.brief.holdout)
        news = tuple(each for each in withheld or found.chosen if each.lesson.id not in known)
        given, kept = ((), news) if withheld else (news, ())
        request = _SESSION._replace(run=run)
        brief_id = (
            record_brief(self._bank, request, given, kept, recovery=mark, is_session=True) if run else ""
        )
        if withheld:
            return found._replace(text="", chosen=(), brief_id=brief_id, withheld=withheld)
        text = present_text(
            found.text, BriefFormat.MARKDOWN, is_fenced=True, brief_id=brief_id, lessons=found.chosen
        )
        return found._replace(text=text, brief_id=brief_id)
