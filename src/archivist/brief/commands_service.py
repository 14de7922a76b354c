"""Answer a question for how a project is tested, built or started with the command that its runs use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb, decides, reads
from archivist.brief.works import LATEST_RUNS, SILENCED, cached_habits, read_habits
from archivist.errors import NotFoundError
from archivist.projects import names_of, resolve_project
from archivist.recall.asking import find_purposes, words_beside_purpose
from archivist.recall.query import EVERY_REPO, Query
from archivist.recall.results import DEFAULT_LIMIT, Hit, RecallResult
from archivist.recall.scoring import Relevance, Score
from archivist.records.words import ActorKind, Provenance, Scope, Source, Status
from archivist.service import BankService
from archivist.store.filters import equals, one_of

if TYPE_CHECKING:
    from archivist.records import Lesson
    from archivist.store.protocol import Reader

_KIND = "command"


class Commands(BankService):
    """The commands that a project's runs use with success."""

    @reads(Layer.LESSONS)
    def answer_first(self, query: Query, found: RecallResult) -> RecallResult:
        """Return what was found with the project's own commands before it, if the question asks for them.

        The hit names the latest run in which the first of them passed. It comes last when the question names
        something that no command does: how to run the e2e tests is not how to run the unit tests.
        """
        purposes = find_purposes(query.text)
        only = query._replace(text="", repo="", limit=None, preset=None, window=0)
        if not purposes or only != Query() or query.repo == EVERY_REPO:
            return found
        bank = self._bank
        with bank.reading() as reader:
            project, _ = resolve_project(reader, query.repo, bank.folder, bank.root, query.text)
            habits = cached_habits(reader, project)
            works = [each for purpose in purposes for each in habits.works if each.purpose == purpose]
            run = next((each.run for each in works if each.run), "")
            ended = reader.records("episode", [run]).get(run) if run else None
            of_project = one_of("project", names_of(reader, project)), equals("action", None)
            is_part = reader.count("episode", *of_project) > LATEST_RUNS
        if not works:
            return found
        beside = words_beside_purpose(query.text)
        text = ", ".join(each.describe(is_counted=True) for each in works)
        is_answer = all(word in text.lower() for word in beside)
        text += f", of the latest {LATEST_RUNS} runs" if is_part else ""
        score = 1.0 if is_answer else min([0.5, *(hit.score / 2 for hit in found.hits)])
        hit = Hit(
            kind=_KIND,
            id=run,
            name=run,
            text=text,
            score=score,
            time=ended.finished if ended else None,
            why=Score(score, 0.0, 0.0, score, Relevance(score)),
            provenance=Provenance.MINED,
            repo=project,
        )
        limit = DEFAULT_LIMIT if query.limit is None else query.limit
        hits = (hit, *found.hits) if is_answer else (*found.hits[: limit - 1], hit)
        return found._replace(hits=hits[:limit])

    @reads(Layer.LESSONS)
    def tells(self, call: str) -> bool:
        """Say whether briefs of the folder's project may name a call as a command, or as one that fails."""
        with self._bank.reading() as reader:
            return call in self._told_calls(reader)[1]

    def _told_calls(self, reader: Reader) -> tuple[str, set[str]]:
        project, _ = resolve_project(reader, "", self._bank.folder, self._bank.root)
        habits = read_habits(reader, project)
        return project, {*(each.command for each in habits.works), *(each.call for each in habits.fails)}

    @decides(Layer.LESSONS)
    def silence(self, call: str) -> Lesson:
        """Tell a command or a failing call of the folder's project no more, until that is undone.

        It is kept as a lesson in the archive, where people see what they forgot.
        """
        from archivist.lessons.candidate import MANUAL_RUN, candidate_of, said_by
        from archivist.records import Lesson

        bank = self._bank
        with bank.transaction() as writer:
            project, told = self._told_calls(writer)
            if call not in told:
                raise NotFoundError("lesson", call)
            if bank.actor.kind is not ActorKind.HUMAN:
                bank.refuse(Layer.LESSONS, Verb.DECIDE, what=call, hint="ask a person to forget it")
            now = bank.now()
            record = Lesson(
                id=bank.new_id(now),
                created=now,
                updated=now,
                edited=now,
                summary=f"`{call}` is not told among the commands of this project",
                scope=Scope.REPO,
                repo=project,
                source=Source.MANUAL,
                signature=f"{project}|{SILENCED}{call}",
                actor=bank.actor,
                runs=(MANUAL_RUN,),
                status=Status.ARCHIVED,
            )
            sighting = said_by(bank.actor, now, writer.run_count())
            return bank.lessons.keep(candidate_of(record, given=frozenset(("status",))), sighting).lesson
