"""Answer a question for how a project is tested, built or started with the command that its runs use."""

from __future__ import annotations

from archivist.access.rights import Layer, reads
from archivist.brief.works import find_habits
from archivist.projects import names_of, resolve_project
from archivist.recall.asking import find_purposes, words_beside_purpose
from archivist.recall.query import EVERY_REPO, Query
from archivist.recall.results import DEFAULT_LIMIT, Hit, RecallResult
from archivist.recall.scoring import Relevance, Score
from archivist.records.words import Provenance
from archivist.service import BankService

_KIND = "command"
_HABITS_OF = frozenset(("episode",))


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
            habits = reader.get_cached(
                ("habits", project),
                lambda: find_habits(reader, names_of(reader, project)),
                kinds=_HABITS_OF,
            )
            works = [each for purpose in purposes for each in habits.works if each.purpose == purpose]
            run = next((each.run for each in works if each.run), "")
            ended = reader.records("episode", [run]).get(run) if run else None
        if not works:
            return found
        beside = words_beside_purpose(query.text)
        text = ", ".join(each.describe(is_counted=True) for each in works)
        is_answer = all(word in text.lower() for word in beside)
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
