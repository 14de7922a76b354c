"""Reflect with a language model, after the deterministic reflection and never instead of it.

What is mined is stored first, so that a run is never lost, whatever the model does. Then the model reads the
run; what of its answers holds (`verification`) goes through the same gate as mined lessons. Nothing is sent
before the user allowed the endpoint, and nothing that was not reserved in the user's own store before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, decides, reads
from archivist.clock import to_text
from archivist.errors import AccessError, BudgetError, ConfigError
from archivist.files.processes import is_process_gone, name_process
from archivist.lessons import gate
from archivist.lessons.candidate import Candidate
from archivist.lessons.quarantine import lesson_suspicion
from archivist.paths import is_file, spending_file
from archivist.records import ARCHIVIST, ActorKind, Entry, Episode, Event, Lesson, Provenance
from archivist.records.plain import canonical_json, to_plain
from archivist.records.words import BY_MODEL, NOTES
from archivist.reflect.budget import (
    NOTHING_SPENT,
    Meter,
    Spending,
    SpendingBook,
    estimate_request,
    price,
    refusal,
)
from archivist.reflect.miners.material import Material, gather_material
from archivist.reflect.model import verification
from archivist.reflect.model.caller_service import (
    Endpoint,
    ModelCaller,
    configured_endpoint,
    is_installed,
)
from archivist.reflect.model.claimed_failure import all_cases, can_teach
from archivist.reflect.model.consent_service import allow_endpoint, allowed_endpoints, forbid_endpoints
from archivist.reflect.model.conversation_service import (
    SLIGHT,
    ClaimedLesson,
    Conversation,
    ModelClaim,
    ModelReport,
    note_fates,
)
from archivist.reflect.model.insight_claims import verify_insight
from archivist.reflect.model.questions import (
    ModelQuestion,
    account,
    insights,
    lessons,
    wishes,
)
from archivist.reflect.model.record import RunRecord, describe_entries, describe_messages, describe_run
from archivist.reflect.model.sure_facts import add_sure_facts
from archivist.reflect.model.verification import EventTexts
from archivist.reflect.service import (
    has_our_summary,
    history_of,
    load_context,
    make_sighting,
    notes_of,
    read_context,
    split_kept,
    tell_run,
)
from archivist.service import BankService
from archivist.store.filters import Condition, at_least, at_most, contains_item, equals
from archivist.stream.obstacles import read_reports
from archivist.text import estimate_tokens

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from archivist.bank import Bank
    from archivist.reflect.service import ReflectionContext

# A setting of the user's book of spending: what was spent and is reserved.
_BOOK = "model_spending"
# A setting of a bank: the runs that are being read, by whom and until when at most.
_READERS = "model_readers"
_LONGEST_READING = timedelta(hours=1)
# The schemas of an answer and its tools take at most about so many: those of the lessons 780.
_SCHEMA_TOKENS = 900
_UNREAD_DAYS = 7
_MOST_UNREAD = 20
_MOST_COUNTED = 500
_NOT_CONFIGURED = "no model is configured"
_CONFIGURE = "archivist config set --global model.name openai:NAME"
_TRIAL = ModelQuestion(
    "trial",
    1,
    "This only tries the connection: hand in one lesson of kind warning about event 1.",
    lessons.ProposedLessons,
    lessons.QUESTION.tool,
)
_TRIAL_RECORD = "<record>\n#1 `make tset` FAILED (usage): make: *** No rule to make target 'tset'.\n</record>"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Which model may be asked, whether it is, and what was spent."""

    name: str
    url: str
    key_variable: str
    has_key: bool
    is_allowed: bool
    problem: str
    today: Spending
    days: dict[str, Spending]


class _BankMeter(Meter):
    """Reserves requests in a store of the user's, in a transaction: two processes never spend the same rest.

    The budget of a day is the user's, whatever project a run belongs to.
    """

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self.spending = NOTHING_SPENT

    def reserve(self, wanted: Spending) -> str:
        now, rules = self._bank.now(), self._bank.config.model
        name, day = self._bank.new_id(now), f"{now:%Y-%m-%d}"
        with self._bank.spending_bank() as own, own.transaction() as writer:
            book = SpendingBook.read(writer.json_setting(_BOOK))
            if problem := refusal(rules, book.of_day(day), self.spending, wanted):
                raise BudgetError(problem, hint="archivist model status shows what was spent")
            writer.set_setting(_BOOK, canonical_json(book.reserve(name, day, wanted).write()))
        return name

    def settle(self, name: str, actual: Spending) -> None:
        self.spending = self.spending.plus(actual)
        with self._bank.spending_bank() as own, own.transaction() as writer:
            book = SpendingBook.read(writer.json_setting(_BOOK))
            writer.set_setting(_BOOK, canonical_json(book.settle(name, actual).write()))


class LanguageModel(BankService):
    """The model that reflection may ask."""

    _own_model: Model | None = None

    def use(self, model: Model) -> None:
        """Ask this model of pydantic-ai instead of the configured endpoint; whoever brings one allows it."""
        self._own_model = model

    # Consent and status

    @reads(Layer.BANK)
    def status(self) -> ModelStatus:
        """Return which model may be asked, why it is not, and what was spent."""
        endpoint = configured_endpoint(self._bank.config.model)
        book = SpendingBook({}, {})
        # To look must not make it.
        if is_file(spending_file()):
            with self._bank.spending_bank() as own, own.reading() as reader:
                book = SpendingBook.read(reader.json_setting(_BOOK))
        named = {*book.settled, *(day for day, _ in book.reserved.values())}
        days = {day: book.of_day(day) for day in sorted(named)}
        return ModelStatus(
            name=self._bank.config.model.name,
            url=endpoint.url if endpoint else "",
            key_variable=endpoint.key_variable if endpoint else "",
            has_key=bool(endpoint and endpoint.key),
            is_allowed=bool(endpoint and endpoint.label in allowed_endpoints()),
            problem=self.why_not(),
            today=days.get(f"{self._bank.now():%Y-%m-%d}", NOTHING_SPENT),
            days=days,
        )

    def why_not(self) -> str:
        """Return why no model is asked, or an empty text."""
        if self._own_model is not None:
            return ""
        endpoint = configured_endpoint(self._bank.config.model)
        if endpoint is None:
            return f"{_NOT_CONFIGURED}: {_CONFIGURE}"
        if not is_installed():
            return "a language model needs the extra llm: pip install 'archivist-memory[llm]'"
        if endpoint.label not in allowed_endpoints():
            return f"{endpoint.label} is not allowed yet: archivist model allow"
        if endpoint.key_variable and not endpoint.key:
            return f"the environment variable {endpoint.key_variable} holds no key"
        return ""

    @decides(Layer.BANK)
    def allow(self) -> Endpoint:
        """Allow the configured endpoint to be sent what runs did; only a person can."""
        endpoint = self.require_endpoint()
        self._require_person("allow")
        allow_endpoint(endpoint.label, self._bank.now())
        return endpoint

    @decides(Layer.BANK)
    def forbid(self) -> list[str]:
        """Withdraw every permission; return the endpoints that had one."""
        self._require_person("forbid")
        return forbid_endpoints()

    def require_endpoint(self) -> Endpoint:
        """Return the configured endpoint, or raise ConfigError."""
        endpoint = configured_endpoint(self._bank.config.model)
        if endpoint is None:
            raise ConfigError(_NOT_CONFIGURED, hint=_CONFIGURE)
        return endpoint

    def _require_person(self, verb: str) -> None:
        actor = self._bank.actor
        if actor.kind is not ActorKind.HUMAN:
            hint = "only people decide what leaves the machine"
            raise AccessError(str(actor), verb, "a language model", hint=hint)

    @decides(Layer.RUNS)
    def try_once(self) -> ModelReport:
        """Ask one small question, which holds nothing of any run; raise ModelError if it is not answered."""
        if problem := self.why_not():
            raise ConfigError(problem)
        with self._conversation() as talk:
            found = talk.caller.ask(_TRIAL, _TRIAL_RECORD).lessons
            talk.report.claims += [ModelClaim(_TRIAL.name, each.summary) for each in found]
        return talk.report

    # Runs

    @decides(Layer.RUNS)
    def read_run(self, run: str) -> ModelReport:
        """Let the model read a run that was reflected on, and keep what of its claims holds.

        Never raises for the model's sake: the report says what went wrong. A run that it has read is not read
        again, unless it has grown or another model or question is used, nor while another process reads it.
        """
        if problem := self.why_not():
            return ModelReport(run=run, problem=problem, is_unfinished=True)
        with self._lease_run(run) as is_free:
            return self._read_run(run) if is_free else ModelReport(run=run, model=self._name)

    @contextmanager
    def _lease_run(self, run: str) -> Iterator[bool]:
        """Hold a run while it is read, so that nobody pays for it twice; say whether it was free."""
        now, archivist = self._bank.now(), self._bank.acting_as(ARCHIVIST)
        with archivist.transaction() as writer:
            held = dict(writer.json_setting(_READERS) or {})
            held = {
                name: lease
                for name, lease in held.items()
                if lease[1] > to_text(now) and not is_process_gone(lease[0])
            }
            is_free = run not in held
            held.setdefault(run, [name_process(), to_text(now + _LONGEST_READING)])
            writer.set_setting(_READERS, canonical_json(held))
        try:
            yield is_free
        finally:
            if is_free:
                with archivist.transaction() as writer:
                    held = dict(writer.json_setting(_READERS) or {})
                    held.pop(run, None)
                    writer.set_setting(_READERS, canonical_json(held))

    def _read_run(self, run: str) -> ModelReport:
        seen = load_context(self._bank, run)
        reading = read_context(seen)
        material = gather_material(reading, history_of(seen))
        todo = self._open_questions(seen, material)
        with self._conversation(run) as talk:
            if not todo:
                return talk.report
            candidates: list[ClaimedLesson] = []
            for question in todo:
                record = self._describe(seen, material, question)
                if question is lessons.QUESTION:
                    candidates += _ask_lessons(
                        talk, _harmless_lessons(seen), material, record, self._cited_by
                    )
                elif question is account.QUESTION:
                    told = _ask_account(talk, material, record)
                    talk.report.account = (
                        add_sure_facts(told, tell_run(seen, reading), reading) if told else {}
                    )
                else:
                    found = talk.ask(wishes.QUESTION, self._messages(material))
                    check = partial(
                        verification.verify_wish, material=material, texts=EventTexts(record.events)
                    )
                    proposed = found.wishes if found else []
                    candidates += talk.verify_candidates(wishes.QUESTION, proposed, check)
                if talk.report.is_unfinished:
                    break
        self._persist(seen, talk.report, candidates)
        return talk.report

    @decides(Layer.RUNS)
    def read_runs(self, runs: Iterable[str]) -> Iterator[ModelReport]:
        """Let the model read runs, as the iterator is consumed, until it is no longer answered or allowed.

        Those that it then did not come to wait for it.
        """
        wanted = iter(runs)
        for run in wanted:
            report = self.read_run(run)
            yield report
            if report.is_unfinished:
                # Without a conversation nothing was asked, and nothing is to be asked again.
                waiting = replace(report, questions=[], account={})
                for other in wanted if report.model else ():
                    with self._bank.acting_as(ARCHIVIST).transaction() as writer:
                        self._note(writer, other, waiting, 0)
                break

    def _open_questions(self, seen: ReflectionContext, material: Material) -> list[ModelQuestion[Any]]:
        """Return what the run is to be asked about: what could yield something, and was not asked yet."""
        earlier = notes_of(seen.episode).get(BY_MODEL) or {}
        is_same = earlier.get("model") == self._name and earlier.get("events") == len(seen.events)
        answered = earlier.get("questions", []) if is_same else []
        todo: list[ModelQuestion[Any]] = []
        if any(can_teach(case, material) for case in all_cases(material)):
            todo.append(lessons.QUESTION)
        if material.reading.acts:
            todo.append(account.QUESTION)
        if self._typed_messages(material):
            todo.append(wishes.QUESTION)
        return [question for question in todo if question.label not in answered]

    def _cited_by(self, lesson: Lesson) -> Iterable[Event]:
        with self._bank.reading() as reader:
            events: Mapping[str, Event] = reader.records("event", lesson.evidence.events)
        return events.values()

    def _typed_messages(self, material: Material) -> list[Any]:
        """Return the typed messages in which the rules found no wish: only these may need a model."""
        return list(filter(verification.may_hold_wish, material.reading.said))

    def _messages(self, material: Material) -> str:
        return describe_messages(
            self._typed_messages(material), max_tokens=self._record_tokens(wishes.QUESTION)
        )

    def _record_tokens(self, question: ModelQuestion[Any]) -> int:
        return self._bank.config.model.context_tokens - estimate_tokens(question.instructions)

    def _describe(
        self, seen: ReflectionContext, material: Material, question: ModelQuestion[Any]
    ) -> RunRecord:
        begun = seen.episode.started or seen.episode.finished
        of_project = (run for run in seen.related if run.project == seen.episode.project)
        # As far as both say when they began.
        earlier = [
            run
            for run in of_project
            if not (begun and (other := run.started or run.finished) and other >= begun)
        ]
        return describe_run(
            material,
            seen.events,
            _harmless_lessons(seen),
            max_tokens=self._record_tokens(question),
            # Nothing is paid for that no claim could be kept of.
            teaches=partial(can_teach, material=material) if question is lessons.QUESTION else None,
            progress=seen.progress,
            related=earlier,
        )

    def _persist(self, seen: ReflectionContext, report: ModelReport, claimed: list[ClaimedLesson]) -> None:
        """Keep what holds and note what was told, as one change in the archivist's name."""
        events = {event.id for event in seen.events}
        rules = self._bank.config.reflect
        admitted: list[ClaimedLesson] = []
        for claim, candidate in claimed:
            found = gate.admit_candidates(
                [candidate], events, least_importance=rules.min_importance_to_persist
            )
            admitted += [(claim, each) for each in found]
            if not found:
                claim.drop(SLIGHT)
        admitted.sort(key=lambda pair: (bool(lesson_suspicion(pair[1])), -pair[1].importance))
        archivist = self._bank.acting_as(ARCHIVIST)
        with archivist.transaction() as writer:
            sighting = make_sighting(archivist, writer, seen.episode)
            counted = writer.select(Lesson, contains_item("runs", sighting.counted))
            made = sum(lesson.origin_run == seen.episode.id for lesson in counted)
            room = max(0, rules.max_memories_per_run - made)
            kept = archivist.lessons.keep_many((each for _, each in admitted), sighting, max_created=room)
            note_fates(admitted, kept, {lesson.id: lesson.short_id for lesson in seen.lessons})
            report.created, report.updated = split_kept(kept)
            self._note(writer, seen.episode.id, report, len(seen.events))

    def _note(self, writer: Any, run: str, report: ModelReport, events: int) -> None:
        """Note in the run what the model told, was asked and cost; its lists replace the mined ones.

        A run for which it was not reached waits for it.
        """
        current = writer.get(Episode, run)
        if current is None or not (report.questions or report.is_unfinished):
            return
        notes = notes_of(current)
        earlier = notes.get(BY_MODEL) or {}
        if not report.questions:
            noted = {**notes, BY_MODEL: {**earlier, "is_unfinished": True, "problem": report.problem}}
            writer.put(replace(current, extra={**current.extra, NOTES: noted}), "reflect")
            return
        is_same = earlier.get("model") == report.model and earlier.get("events") == events
        before = earlier if is_same else {}
        told = report.account or before.get("account") or {}
        by_model = {
            **report.as_view(),
            "questions": [*before.get("questions", []), *report.questions],
            "events": events,
            "account": to_plain(told),
            "time": to_text(self._bank.now()),
        }
        # What was dropped is told once, and not stored.
        del by_model["claims"]
        summary = current.summary
        if has_our_summary(current):
            summary = str(told.get("outcome") or summary)
        extra = {**current.extra, NOTES: {**notes, **to_plain(told), BY_MODEL: by_model}}
        writer.put(replace(current, summary=summary, extra=extra), "reflect")

    @reads(Layer.RUNS)
    def unread_runs(self, days: int = _UNREAD_DAYS) -> list[str]:
        """Return the runs that wait for the model, and those of the last days that it has not read."""
        since = at_least("finished", to_text(self._bank.now() - timedelta(days=days)))
        found = [each.id for each in reversed(self._select_unread(since, limit=_MOST_UNREAD))]
        return list(dict.fromkeys((*self.waiting_runs(), *found)))

    @reads(Layer.RUNS)
    def waiting_runs(self) -> list[str]:
        """Return the runs, of any age, that were read in part or for which the model was not reached."""
        found = self._select_unread(limit=_MOST_COUNTED)
        return [each.id for each in reversed(found) if notes_of(each).get(BY_MODEL)]

    @reads(Layer.RUNS)
    def older_unread_runs(self) -> tuple[int, int]:
        """Return how many earlier runs the model has not read, and how many days ago the oldest one ended.

        They are read when somebody asks for it: a model that is new to a bank could cost much at once.
        """
        now = self._bank.now()
        before = at_most("finished", to_text(now - timedelta(days=_UNREAD_DAYS)))
        unread = self._select_unread(before, limit=_MOST_COUNTED)
        found = [each for each in unread if not notes_of(each).get(BY_MODEL)]
        ended = [each.finished for each in found if each.finished]
        return len(found), (now - min(ended)).days + 1 if ended else 0

    def _select_unread(self, *when: Condition, limit: int) -> list[Episode]:
        own = (*when, equals("action", None), equals("provenance", Provenance.MINED))
        with self._bank.reading() as reader:
            found = reader.select(Episode, *own, order=("-finished", "-id"), limit=limit)
        told = ((each, notes_of(each).get(BY_MODEL)) for each in found if NOTES in each.extra)
        return [each for each, by_model in told if not by_model or by_model.get("is_unfinished")]

    @reads(Layer.RUNS)
    def estimate(self, runs: Iterable[str]) -> Iterator[tuple[str, Spending]]:
        """Yield what reading each run may cost at most; nothing is sent."""
        rules = self._bank.config.model
        for run in runs:
            seen = load_context(self._bank, run)
            material = gather_material(read_context(seen), history_of(seen))
            total = NOTHING_SPENT
            for question in self._open_questions(seen, material):
                is_wish = question is wishes.QUESTION
                record = self._describe(seen, material, question)
                text = self._messages(material) if is_wish else record.text
                total = total.plus(estimate_request(rules, f"{question.instructions}{text}"))
                total = total.plus(price(rules, _SCHEMA_TOKENS, 0, requests=0))
            yield run, total

    # Lessons

    @decides(Layer.LESSONS)
    def refine(self) -> ModelReport:
        """Reword lessons that runs ignored or followed in vain; join those that say the same; generalise."""
        if problem := self.why_not():
            return ModelReport(problem=problem, is_unfinished=True)
        from archivist.reflect.model.refining_service import refine_lessons

        with self._conversation() as talk:
            refine_lessons(self._bank, talk)
        return talk.report

    # The stream

    @decides(Layer.STREAM)
    def propose_insights(
        self, entries: Sequence[Entry], related: Sequence[str], counted: Sequence[str] = ()
    ) -> tuple[list[tuple[insights.ProposedInsight, list[Entry]]], ModelReport]:
        """Return the insights of a model that hold, each with the entries that show it.

        It is shown what was `counted`, so that it does not say the same again.
        """
        if problem := self.why_not():
            return [], ModelReport(problem=problem, is_unfinished=True)
        known = {entry.seq: entry for entry in entries}
        with self._conversation() as talk:
            tokens = self._record_tokens(insights.QUESTION)
            text = describe_entries(entries, related, counted, max_tokens=tokens)
            signs = {
                issue: report.sign
                for entry in sorted(entries, key=lambda entry: entry.seq)
                for report in read_reports(entry)
                for issue in (*report.victims, *report.issues)
            }
            found = talk.ask(insights.QUESTION, text)
            holds = talk.verify(
                insights.QUESTION,
                found.insights if found else [],
                lambda claim: (claim, verify_insight(claim, known, signs)),
            )
        return [insight for _, insight in holds], talk.report

    # How it is asked

    @property
    def _name(self) -> str:
        own = self._own_model
        return self._bank.config.model.name if own is None else own.model_name

    @contextmanager
    def _conversation(self, run: str = "") -> Iterator[Conversation]:
        """Begin a conversation with a budget of its own; its report is complete at the end."""
        meter = _BankMeter(self._bank)
        target = self._own_model if self._own_model is not None else self.require_endpoint()
        caller = ModelCaller(target, self._bank.config.model, meter)
        talk = Conversation(caller, ModelReport(run=run, model=self._name))
        begun = time.monotonic()
        try:
            yield talk
        finally:
            talk.report.spending = meter.spending
            talk.report.seconds = time.monotonic() - begun


def _harmless_lessons(seen: ReflectionContext) -> list[Lesson]:
    """Return the lessons that a model may be told: live, vouched for, and of no suspicious words."""
    live = [lesson for lesson in seen.lessons if lesson.status.is_live and not lesson.is_waiting]
    return [lesson for lesson in live if not lesson_suspicion(lesson)]


def _ask_lessons(
    talk: Conversation,
    known: Sequence[Lesson],
    material: Material,
    record: RunRecord,
    cited_by: Callable[[Lesson], Iterable[Event]],
) -> list[ClaimedLesson]:
    """Ask what a run teaches; the model may look for duplicates and usual importances first."""
    texts = EventTexts(record.events)

    def detect_duplicates(summary: str, rule: str = "") -> list[str]:
        """Return the known lessons that say the same as a new one would."""
        draft = Candidate(summary=summary, rule=rule, repo=material.project)
        scores = [(gate.text_similarity(draft, lesson), lesson) for lesson in known]
        alike = sorted((pair for pair in scores if pair[0] >= gate.ALIKE_AT), key=lambda pair: -pair[0])
        found = [f"{lesson.short_id}: {lesson.summary}" for _, lesson in alike[:3]]
        # An empty list reaches some models as an empty text.
        return found or ["no known lesson says the same"]

    def score_importance(events: list[int], has_remedy: bool) -> float:
        """Return the usual importance, 0 to 1, of a lesson about the failure that these events show."""
        return verification.usual_importance(material, texts, events, has_remedy=has_remedy)

    found = talk.ask(lessons.QUESTION, record.text, (detect_duplicates, score_importance))
    names = {lesson.short_id: lesson for lesson in known}
    return talk.verify_candidates(
        lessons.QUESTION,
        found.lessons if found else [],
        lambda claim: verification.verify_lesson(claim, material, texts, names, cited_by),
    )


def _ask_account(talk: Conversation, material: Material, record: RunRecord) -> dict[str, object]:
    found = talk.ask(account.QUESTION, record.text)
    if found is None:
        return {}
    holds, dropped = verification.verify_account(found, material, EventTexts(record.events))
    for line in (*found.outcome, *found.worked, *found.failed, *found.decisions):
        claim = ModelClaim(account.QUESTION.name, line.text)
        talk.report.claims.append(claim)
        if reason := dropped.get(id(line)):
            claim.drop(reason)
    return holds
