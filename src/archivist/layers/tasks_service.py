"""Tasks: what is to be done, who does it, how it stands; and what each agent is doing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, Verb, decides, reads, writes
from archivist.bus import TASK_ENDED
from archivist.capture.redaction import clean_text, validate_name
from archivist.errors import DecidedError, InputError, NotFoundError, RecordError
from archivist.layers.approaches import CONVENTION, choose_approach, find_advised
from archivist.layers.attempts_service import log_attempt
from archivist.layers.claims import source_of
from archivist.records.episode import Episode
from archivist.records.layers import Task, validate_task
from archivist.records.plain import decoder, from_plain
from archivist.records.run_words import Action, EpisodeStatus
from archivist.records.tier_words import RetryDecision, TaskState
from archivist.records.words import ActorKind
from archivist.service import BankService
from archivist.store.filters import Condition, equals, not_equals

if TYPE_CHECKING:
    from archivist.layers.orchestrator_service import OrchestrationResult
    from archivist.store.protocol import Reader

OLDEST = ("created", "id")
_ENDED = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)
# An attempt has an approach; a task need not name one.
_PLAIN_WAY = "the task as it stands"
_RECENT = 3
# So many approaches to similar tasks say which of a task's own to begin with.
_MOST_SIMILAR = 50
_FILE = "a file"


class AgentActivity(NamedTuple):
    """What an agent is doing: its running tasks and runs; and what it did last, and how often."""

    agent: str
    tasks: tuple[Task, ...] = ()
    runs: tuple[Episode, ...] = ()
    recent: tuple[Episode, ...] = ()
    done: int = 0
    failed: int = 0


class Tasks(BankService):
    """The tasks of a project. Orchestrators plan them; an agent works on its own and reports how they end."""

    @writes(Layer.TASKS)
    def add(
        self,
        title: str,
        *,
        id: str = "",  # noqa: A002 the field's own name
        parent: str = "",
        needs: Sequence[str] = (),
        owner: str = "",
        approaches: Sequence[str] = (),
        max_attempts: int | None = None,
    ) -> Task:
        """Add a task, or plan it anew: adding a known id changes what is given and leaves how it stands.

        An agent adds tasks for itself; of a task that somebody else planned it changes the approaches alone.
        What a task needs and its parent must exist, and must not wait for it.
        """
        now = self._bank.now()
        owner = validate_name("owner", owner or self._bank.agent_name)
        self.require(Layer.TASKS, Verb.WRITE, owner=owner)
        name = validate_name("id", id) or self._bank.new_id(now)
        given = {
            "title": clean_text(title).strip(),
            "parent": validate_name("parent", parent),
            "needs": [validate_name("needs", each) for each in dict.fromkeys(needs)],
            "owner": owner,
            "approaches": [clean_text(each).strip() for each in dict.fromkeys(approaches)],
        }
        most = self._bank.config.tasks.max_attempts if max_attempts is None else max_attempts
        fresh = {"id": name, "max_attempts": most, "created": now, "updated": now}
        task = validate_task(from_plain(Task, {**fresh, **given}))
        with self._bank.transaction() as writer:
            known = writer.get(Task, name)
            if known is not None:
                self.require(Layer.TASKS, Verb.WRITE, owner=known.owner)
                changes = {field: getattr(task, field) for field, value in given.items() if value}
                changes |= {"max_attempts": most} if max_attempts is not None else {}
                changed = replace(known, **changes)
                self._refuse_others_words(writer, known, changed)
                task = known if changed == known else replace(changed, updated=now)
            _require_graph(writer, task)
            writer.put(task, "plan")
        return task

    def _refuse_others_words(self, reader: Reader, known: Task, changed: Task) -> None:
        """Refuse an agent that rewords a task that somebody else planned: a worker reads it as theirs."""
        is_reworded = replace(changed, approaches=known.approaches) != known
        is_agent = self._bank.actor.kind is ActorKind.AGENT
        if is_agent and is_reworded and not find_speakers(reader, known.id).get(known.title):
            hint = "somebody else planned it: an agent may only change its approaches"
            self._bank.refuse(Layer.TASKS, Verb.WRITE, what=known.id, hint=hint)

    @reads(Layer.TASKS)
    def speakers(self, name: str) -> dict[str, str]:
        """Return the words of a task's plans, each with the agent or file that said it first, or nothing."""
        with self._bank.reading() as reader:
            return find_speakers(reader, name)

    @reads(Layer.TASKS)
    def get(self, name: str) -> Task:
        """Return a task by its id."""
        with self._bank.reading() as reader:
            return _require_task(reader, name)

    @reads(Layer.TASKS)
    def query(
        self,
        *,
        state: TaskState | str | None = None,
        owner: str = "",
        parent: str = "",
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Task]:
        """Return the matching tasks, oldest first; `after` continues behind a place in that order."""
        wanted = {"owner": owner, "parent": parent}
        conditions: list[Condition] = [equals(field, value) for field, value in wanted.items() if value]
        conditions += [equals("state", decoder(TaskState)(str(state)))] if state else []
        with self._bank.reading() as reader:
            return reader.select(Task, *conditions, order=OLDEST, after=after, limit=limit)

    @reads(Layer.TASKS)
    def waits_for(self, tasks: Sequence[Task]) -> dict[str, tuple[str, ...]]:
        """Return for each open task the tasks that must be done before it; none means that it can begin."""
        with self._bank.reading() as reader:
            open_needs = _find_open_needs(reader, [task for task in tasks if task.state is TaskState.OPEN])
        return {task.id: open_needs.get(task.id, ()) for task in tasks}

    @reads(Layer.TASKS)
    def choose_approach(self, task: Task) -> tuple[str, str]:
        """Return the approach of a task's next attempt, and why; nothing where the task names none."""
        bank, home = self._bank, task.parent or task.id
        tried = bank.attempts.list_approaches(task.id)
        if len(task.approaches) < 2:
            return choose_approach(task.approaches, tried, (), "")
        similar = bank.attempts.similar(task.title, limit=_MOST_SIMILAR, other_than=task.id)
        own = (each.tried for each in similar if each.tried.provenance.is_own)
        known = bank.knowledge.query(category=CONVENTION)
        return choose_approach(
            task.approaches, tried, own, find_advised(task.title, home, task.approaches, known)
        )

    @writes(Layer.TASKS)
    def start(self, name: str, *, agent: str = "", approach: str = "", run: str = "") -> Task:
        """Begin an attempt: the agent owns the task, and the attempt is in the episodic log.

        Without an approach the next one of the task's plan is taken: see `choose_approach`.
        """
        bank = self._bank
        # Before the transaction: it searches.
        chosen = clean_text(approach).strip() or self.choose_approach(self.get(name))[0]
        with bank.transaction() as writer:
            task = _require_task(writer, name)
            own = bank.agent_name
            who = validate_name("agent", agent or own or task.owner or source_of(bank.actor))
            self.require(Layer.TASKS, Verb.WRITE, owner=who)
            if own and task.owner:
                self.require(Layer.TASKS, Verb.WRITE, owner=task.owner)
            if task.state is not TaskState.OPEN:
                raise DecidedError(f"task {name!r} is {task.state.value}", hint="only an open task begins")
            if waiting := _find_open_needs(writer, [task])[task.id]:
                raise InputError(f"task {name!r} waits for {', '.join(waiting)}", hint="do those first")
            way = chosen or _PLAIN_WAY
            now = bank.now()
            begun = replace(
                task, state=TaskState.RUNNING, owner=who, approach=way, run=validate_name("run", run),
                attempts=task.attempts + 1, retry=None, reason="", started=now, finished=None, updated=now,
            )  # fmt: skip
            writer.put(begun, "start")
            action = Action.RETRIED if task.attempts else Action.ATTEMPTED
            log_attempt(bank, task.id, agent=who, action=action, approach=way, run=begun.run)
        return begun

    @writes(Layer.TASKS)
    def finish(
        self, name: str, result: str = "", *, tokens: tuple[int | None, int | None] = (None, None)
    ) -> Task:
        """Complete a running task: its result is kept, and the attempt is in the episodic log."""
        return self._end(name, Action.COMPLETED, result, tokens)

    @writes(Layer.TASKS)
    def fail(
        self,
        name: str,
        error: str = "",
        *,
        retry: bool | None = None,
        tokens: tuple[int | None, int | None] = (None, None),
    ) -> Task:
        """End an attempt that failed, and decide whether the task is tried again.

        Without a decision it is, as long as attempts are left, and an approach that has not failed where the
        task names approaches.
        """
        return self._end(name, Action.FAILED, error, tokens, retry)

    def _end(
        self,
        name: str,
        action: Action,
        outcome: str,
        tokens: tuple[int | None, int | None],
        retry: bool | None = None,
    ) -> Task:
        bank = self._bank
        with bank.transaction() as writer:
            task = _require_task(writer, name)
            self.require(Layer.TASKS, Verb.WRITE, owner=task.owner)
            if task.state is not TaskState.RUNNING or task.started is None:
                hint = "archivist tasks start begins it"
                raise DecidedError(f"task {name!r} is {task.state.value}, not running", hint=hint)
            now, said = bank.now(), clean_text(outcome).strip()
            took_ms = max(0, round((now - task.started).total_seconds() * 1000))
            log_attempt(
                bank, task.id, agent=task.owner, action=action, approach=task.approach, outcome=said,
                duration_ms=took_ms, run=task.run, tokens_in=tokens[0], tokens_out=tokens[1],
            )  # fmt: skip
            ended = replace(task, state=TaskState.DONE, finished=now, updated=now)
            if action is Action.COMPLETED:
                ended = replace(ended, result=said)
            else:
                decision, why = self._decide_retry(task, retry)
                is_again = decision is RetryDecision.RETRY
                state = TaskState.OPEN if is_again else TaskState.FAILED
                reason, finished = f"{said}: {why}" if said else why, None if is_again else now
                ended = replace(ended, state=state, retry=decision, reason=reason, finished=finished)
            writer.put(validate_task(ended), action.value)
        bank.announce(TASK_ENDED, task=ended.id, state=ended.state.value, owner=ended.owner)
        return ended

    def _decide_retry(self, task: Task, retry: bool | None) -> tuple[RetryDecision, str]:
        """Return whether a task is tried again after its last attempt failed, and why."""
        if retry is not None:
            decision = RetryDecision.RETRY if retry else RetryDecision.GIVE_UP
            return decision, f"decided by {self._bank.actor}"
        if task.attempts >= task.max_attempts:
            return RetryDecision.GIVE_UP, f"{task.attempts} of {task.max_attempts} attempts failed"
        tried = self._bank.attempts.list_approaches(task.id)
        failed = {each.approach for each in tried if each.failed and not each.completed}
        if task.approaches and failed.issuperset(task.approaches):
            return RetryDecision.GIVE_UP, f"each of {len(task.approaches)} approaches failed"
        return RetryDecision.RETRY, f"attempt {task.attempts} of {task.max_attempts}"

    @decides(Layer.TASKS)
    def reopen(self, name: str, reason: str = "") -> Task:
        """Open an ended or abandoned task again, with all its attempts."""
        now = self._bank.now()
        with self._bank.transaction() as writer:
            task = _require_task(writer, name)
            most = max(task.max_attempts, task.attempts + 1)
            opened = replace(
                task, state=TaskState.OPEN, retry=RetryDecision.RETRY, max_attempts=most, finished=None,
                reason=clean_text(reason).strip() or f"decided by {self._bank.actor}", updated=now,
            )  # fmt: skip
            writer.put(validate_task(opened), "reopen")
        return opened

    @decides(Layer.TASKS)
    def cancel(self, name: str, reason: str = "") -> Task:
        """End a task that is not to be done; what needs it does not begin."""
        now = self._bank.now()
        with self._bank.transaction() as writer:
            task = _require_task(writer, name)
            if task.state in _ENDED:
                raise DecidedError(f"task {name!r} is {task.state.value} already")
            said = clean_text(reason).strip()
            ended = replace(task, state=TaskState.CANCELLED, reason=said, finished=now, updated=now)
            writer.put(ended, "cancel")
        return ended

    @decides(Layer.TASKS)
    def remove(self, name: str) -> Task:
        """Remove a task; its history and its attempts stay."""
        with self._bank.transaction() as writer:
            task = _require_task(writer, name)
            writer.remove(Task, task.id, "remove")
        return task

    @reads(Layer.TASKS)
    def activity(self, agent: str = "") -> list[AgentActivity]:
        """Return what each agent is doing and did last, the busy ones first; or one agent's."""
        with self._bank.reading() as reader:
            owned = reader.select(Task, *([equals("owner", agent)] if agent else []), order=OLDEST)
            who = equals("agent", agent) if agent else not_equals("agent", "")
            episodes = reader.select(Episode, who, order=("-finished", "-id"))
        names = dict.fromkeys([*(task.owner for task in owned), *(each.agent for each in episodes)])
        found = []
        for name in filter(None, names):
            mine = [each for each in episodes if each.agent == name]
            attempts = [each for each in mine if each.action in (Action.COMPLETED, Action.FAILED)]
            counts = Counter(each.action for each in attempts)
            tasks = tuple(each for each in owned if each.owner == name and each.state is TaskState.RUNNING)
            runs = tuple(r for r in mine if r.action is None and r.status is EpisodeStatus.RUNNING)
            ended = counts[Action.COMPLETED], counts[Action.FAILED]
            found.append(AgentActivity(name, tasks, runs, tuple(attempts[:_RECENT]), *ended))
        return sorted(found, key=lambda each: (not each.tasks, not each.runs, each.agent))

    @decides(Layer.TASKS)
    def run(
        self,
        workers: Mapping[str, Sequence[str]],
        *,
        planner: Sequence[str] = (),
        at_once: int = 2,
        timeout_s: float | None = None,
    ) -> OrchestrationResult:
        """Work until no task can begin: plan, execute with worker processes, observe, learn.

        A worker is a command by the name of its agent; it and the planner come from the caller alone.
        """
        from archivist.layers.orchestrator_service import orchestrate

        return orchestrate(self._bank, workers, planner=planner, at_once=at_once, timeout_s=timeout_s)


def find_speakers(reader: Reader, name: str) -> dict[str, str]:
    """Return the ids, titles and approaches that a task had, each with who said it first.

    That is an agent or a file; a person and an orchestrator have no name here.
    """
    from archivist.lessons.agent_words import name_agent
    from archivist.store.ledger import REMOVED

    said: dict[str, str] = {}
    for change in reader.changes(record_id=name, kind="task"):
        if change.entry.payload_hash == REMOVED:
            said = {}
        actor, planned = change.entry.actor, change.after or {}
        is_agent, is_file = actor.kind is ActorKind.AGENT, change.entry.verb == "import"
        speaker = name_agent(actor.name) if is_agent else _FILE if is_file else ""
        approaches = planned.get("approaches")
        words = approaches if isinstance(approaches, list | tuple) else ()
        for each in (planned.get("id"), planned.get("title"), *words):
            said.setdefault(str(each or ""), speaker)
    return said


def _require_task(reader: Reader, name: str) -> Task:
    task = reader.get(Task, name)
    if task is None:
        raise NotFoundError("task", name, hint="archivist tasks list shows them")
    return task


def _find_open_needs(reader: Reader, tasks: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Return the tasks that must be done before each of these can begin: what it needs, and its subtasks."""
    done: set[str] = set()
    below: dict[str, list[str]] = {}
    # Three fields instead of whole records: a project can have thousands of tasks.
    for name, parent, state in reader.select_fields(Task, ("id", "parent", "state"), order=OLDEST):
        below.setdefault(str(parent), []).append(str(name))
        if state == TaskState.DONE:
            done.add(str(name))
    wanted = {task.id: dict.fromkeys((*task.needs, *below.get(task.id, ()))) for task in tasks}
    return {name: tuple(each for each in needs if each not in done) for name, needs in wanted.items()}


def _require_graph(reader: Reader, task: Task) -> None:
    """Refuse what a task needs if it does not exist, or waits for the task itself."""
    everything = {each.id: each for each in reader.select(Task)} | {task.id: task}
    for name in (*task.needs, *filter(None, (task.parent,))):
        if name not in everything:
            raise NotFoundError("task", name, hint="add it first")
    graph = {name: {*each.needs} for name, each in everything.items()}
    for each in everything.values():
        graph.setdefault(each.parent, set()).add(each.id)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        if task.id in error.args[1]:
            message = f"needs: {task.id!r} would wait for itself"
            raise RecordError(message, hint="leave one of them out") from None
