"""Give any function or block of code that runs an agent a memory: briefed before, learnt from after."""

from __future__ import annotations

import inspect
import logging
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from archivist.edges.integrations import error_with_hint, run_to_completion, with_actor
from archivist.errors import ArchivistError, InputError
from archivist.records import Actor, ActorKind, Episode, EpisodeStatus, Event, EventKind

if TYPE_CHECKING:
    from archivist.bank import Bank

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_LOG = logging.getLogger("archivist.remember")
# The arguments that name a run's task when nothing else does.
_TASK_ARGUMENTS = ("task", "prompt")
# The innermost frames show the cause; more would only lengthen the recorded error.
_TRACEBACK_FRAMES = -5


@dataclass(slots=True)
class Run:
    """A run in progress: its id, its brief, and the events and result that are recorded at its end."""

    id: str = ""
    brief: str = ""
    events: list[Event] = field(default_factory=list)
    result: Any = None

    def say(self, text: str, *, role: str = "assistant") -> None:
        """Record a message."""
        self.events.append(Event(run=self.id, seq=0, kind=EventKind.MESSAGE, role=role, text=text))

    def call(
        self, tool: str, text: str, *, output: str = "", exit_code: int | None = None, is_error: bool = False
    ) -> None:
        """Record a tool call: its command or arguments, and its output."""
        is_error = is_error or exit_code not in (None, 0)
        event = Event(run=self.id, seq=0, kind=EventKind.TOOL_CALL, role="assistant", tool=tool, text=text)
        self.events.append(replace(event, output=output, exit_code=exit_code, is_error=is_error))


@dataclass(slots=True)
class remember_run:  # noqa: N801 it is used like a function: with remember_run() as run
    """Remember the run of a `with` or `async with` block, under the name of an agent.

    The block gets a Run, whose `brief` goes into the prompt. A block that raises has failed; `succeeded` can
    judge `run.result`. Memory never fails the block: its own problems are logged.
    """

    bank: Bank | str | Path | None = None
    task: str | Callable[[], str] = ""
    repo: str = ""
    domain: str = ""
    role: str = ""
    succeeded: Callable[[Any], bool] | None = None
    agent: str = "agent"
    run: Run = field(default_factory=Run, init=False)
    _open: Bank | None = field(default=None, init=False)
    _task_text: str = field(default="", init=False)

    def __enter__(self) -> Run:
        _run_quietly(self._begin)
        return self.run

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object = None) -> None:
        _run_quietly(lambda: self._end(error))

    async def __aenter__(self) -> Run:
        try:
            await run_to_completion(lambda: _run_quietly(self._begin))
        except BaseException as error:
            await self.__aexit__(type(error), error)
            raise
        return self.run

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object = None) -> None:
        await run_to_completion(lambda: _run_quietly(lambda: self._end(error)))

    def _begin(self) -> None:
        from archivist.brief.select import BriefFormat, BriefRequest
        from archivist.text import replace_surrogates

        task = self.task
        text = _run_quietly(task, "the task is not known") if callable(task) else task
        self._task_text = replace_surrogates(text or "")
        bank = self._open_bank()
        try:
            self.run.id = f"{self.agent}-{bank.new_id(bank.now())}"
            # The text goes into the agent's prompt, also where only a domain is named.
            about = BriefRequest(task=self._task_text, domain=self.domain, role=self.role, repo=self.repo)
            request = about._replace(form=BriefFormat.MARKDOWN, fence=True)
            brief = bank.runs.start_run(self.run.id, request)
        except BaseException:
            self._close(bank)
            raise
        self.run.brief = brief.text
        if self._task_text:
            self.run.say(self._task_text, role="user")
        self._open = bank

    def _end(self, error: BaseException | None) -> None:
        bank = self._open
        if bank is None:
            return
        try:
            judge = self.succeeded
            if error is not None:
                status = EpisodeStatus.FAILED if isinstance(error, Exception) else EpisodeStatus.ABORTED
            else:
                is_good = judge is None or _run_quietly(lambda: bool(judge(self.run.result)), "not judged")
                status = EpisodeStatus.SUCCESS if is_good else EpisodeStatus.FAILED
                status = EpisodeStatus.PARTIAL if is_good is None else status
            episode = Episode(id=self.run.id, project=self.repo, task=self._task_text, finished=bank.now())
            episode = replace(episode, domain=self.domain, agent=self.agent)
            if error is not None:
                trace = "".join(traceback.format_exception(error, limit=_TRACEBACK_FRAMES)).strip()
                failure = Event(run="", seq=0, kind=EventKind.LOG, name="error", text=repr(error))
                self.run.events.append(replace(failure, output=trace, is_error=True))
            elif isinstance(self.run.result, str) and self.run.result.strip():
                self.run.say(self.run.result)
            events = [
                replace(event, run=self.run.id, seq=seq) for seq, event in enumerate(self.run.events, 1)
            ]
            bank.runs.finish_run(episode, events, status=status)
        finally:
            self._close(bank)

    def _open_bank(self) -> Bank:
        """Return the bank given, or open the one at a path, of ARCHIVIST_BANK, or the nearest upwards."""
        from archivist.bank import Bank

        if isinstance(self.bank, Bank):
            return with_actor(self.bank, self.agent, kind=ActorKind.ORCHESTRATOR)
        name = os.environ.get("ARCHIVIST_ACTOR")
        actor = Actor.parse(name) if name else Actor(ActorKind.ORCHESTRATOR, self.agent)
        return Bank.open(self.bank or os.environ.get("ARCHIVIST_BANK") or ".", actor=actor)

    def _close(self, bank: Bank) -> None:
        # A bank that was given stays open for its owner.
        if self.bank is None or isinstance(self.bank, str | Path):
            bank.close()


class RememberOptions(TypedDict, total=False):
    """The options of `remember`, which are those of `remember_run`."""

    bank: Bank | str | Path | None
    task: str | Callable[..., str]
    repo: str
    domain: str
    role: str
    succeeded: Callable[[Any], bool] | None


@overload
def remember(function: Callable[P, R], /) -> Callable[P, R]:
    """Remember the runs of a function, in the nearest bank."""


@overload
def remember(**options: Unpack[RememberOptions]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember the runs of a function with these options."""


def remember(
    function: Callable[P, R] | None = None, /, **options: Unpack[RememberOptions]
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember the runs of a function, plain or async, that runs an agent.

    The function gets the brief as `brief` and a Run as `run` if it has parameters of these names. The bank is
    the one given, the one at a path, or the nearest upwards. The task is the text given, what a function
    returns for the arguments, or the argument `task` or `prompt`. A call that raises has failed; `succeeded`
    can judge the result. For generators use `remember_run`.
    """
    task = options.pop("task", "")
    template = remember_run(**options)

    def decorate(inner: Callable[P, R]) -> Callable[P, R]:
        target: Any = inner
        while isinstance(target, partial):
            target = target.func
        # An object is called by its class's method, which decides its kind.
        kinds = (target, type(target).__call__)
        if any(inspect.isgeneratorfunction(kind) or inspect.isasyncgenfunction(kind) for kind in kinds):
            raise InputError("a generator cannot be remembered", hint="use with remember_run(...) as run")
        agent = str(getattr(target, "__name__", type(target).__name__))

        def start(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> remember_run:
            def task_of_call() -> str:
                if callable(task):
                    return str(task(*args, **kwargs))
                given = _bind(inner, args, kwargs)[1]
                texts = (task, *(given.get(name) for name in _TASK_ARGUMENTS))
                return next((text for text in texts if text and isinstance(text, str)), "")

            return replace(template, task=task_of_call, agent=agent)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with start(args, kwargs) as run:
                run.result = result = inner(*args, **_with_run_arguments(inner, args, kwargs, run))
            return result

        async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            async with start(args, kwargs) as run:
                work: Any = inner(*args, **_with_run_arguments(inner, args, kwargs, run))
                run.result = result = await work
            return result

        is_async = any(inspect.iscoroutinefunction(kind) for kind in kinds)
        return wraps(inner)(cast("Callable[P, R]", call_async) if is_async else call)

    return decorate if function is None else decorate(function)


def _bind(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[set[str], Mapping[str, Any]]:
    """Return the parameters that a function takes by name, and the arguments that it is given."""
    try:
        signature = inspect.signature(function)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        # Built-in functions may have no signature; wrong arguments are reported by the call itself.
        return set(), {}
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name for name, each in signature.parameters.items() if each.kind in by_keyword}, given


def _with_run_arguments(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Run
) -> dict[str, Any]:
    """Return the keyword arguments with the brief and the run, if the function has these parameters."""
    named, given = _bind(function, args, kwargs)
    added = {"brief": run.brief, "run": run}
    return {**kwargs, **{name: added[name] for name in named & added.keys() - given.keys()}}


def _run_quietly(work: Callable[[], T], problem: str = "not remembered") -> T | None:
    """Run a step of memory; log its failure and return None, because a run must not fail by its memory."""
    try:
        return work()
    except ArchivistError as error:
        _LOG.warning("%s: %s", problem, error_with_hint(error))
    except Exception as error:  # noqa: BLE001 a run must not fail because its memory did
        # The message may contain the run's own words, secrets included; type and place do not.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        _LOG.warning("%s: %s at %s", problem, type(error).__name__, where)
    return None
