"""Give any function that runs an agent a memory: briefed before, learnt from after, never failed by it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from archivist.edges.integrations import with_actor
from archivist.errors import ArchivistError, InputError
from archivist.records import Actor, ActorKind, Episode, EpisodeStatus, Event, EventKind

if TYPE_CHECKING:
    from archivist.bank import Bank

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_LOG = logging.getLogger("archivist.remember")
# The arguments that say what a run is about, when nobody else does.
_TASKS = ("task", "prompt")
_TRACEBACK_FRAMES = -5


@dataclass(slots=True)
class Run:
    """What a function can be given as `run`: its name, its brief, and a place to note what happens."""

    id: str = ""
    brief: str = ""
    events: list[Event] = field(default_factory=list)

    def say(self, text: str, *, role: str = "assistant") -> None:
        """Note what somebody said."""
        self._note(Event(run=self.id, seq=0, kind=EventKind.MESSAGE, role=role, text=text))

    def call(
        self, tool: str, text: str, *, output: str = "", exit_code: int | None = None, is_error: bool = False
    ) -> None:
        """Note a tool's call: the command or arguments, and what came back."""
        failed = is_error or exit_code not in (None, 0)
        event = Event(
            run=self.id,
            seq=0,
            kind=EventKind.TOOL_CALL,
            role="assistant",
            tool=tool,
            text=text,
            output=output,
            exit_code=exit_code,
            is_error=failed,
        )
        self._note(event)

    def _note(self, event: Event) -> None:
        self.events.append(event)


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How a function is remembered."""

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
def remember(
    *,
    bank: Bank | str | Path | None = None,
    task: str | Callable[..., str] = "",
    repo: str = "",
    domain: str = "",
    role: str = "",
    succeeded: Callable[[Any], bool] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember the runs of a function as these words say."""


def remember(
    function: Callable[P, R] | None = None,
    /,
    *,
    bank: Bank | str | Path | None = None,
    task: str | Callable[..., str] = "",
    repo: str = "",
    domain: str = "",
    role: str = "",
    succeeded: Callable[[Any], bool] | None = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember the runs of a function, plain, async or a generator of either kind, that runs an agent.

    It is called with what earlier runs learnt as `brief`, and with a `Run` to note things in as `run`, when
    it takes arguments of these names. The bank is the one given, a path of one, or the nearest upwards. The
    task is the text given, what a function makes of the arguments, or the argument `task` or `prompt`.
    Whatever raises has failed; `succeeded` can tell it by the result. What returns something to await or
    to draw from is over when that is.
    """
    memory = MemoryOptions(bank, task, repo, domain, role, succeeded)

    def decorate(inner: Callable[P, R]) -> Callable[P, R]:
        kinds: list[tuple[Callable[[object], bool], Callable[[Any, MemoryOptions], Callable[..., Any]]]] = [
            (inspect.iscoroutinefunction, _wrap_coroutine),
            (inspect.isgeneratorfunction, _wrap_generator),
            (inspect.isasyncgenfunction, _wrap_async_generator),
        ]
        # An object may be called as a function is, and its kind says how.
        made = (make for is_one, make in kinds if is_one(inner) or is_one(type(inner).__call__))
        return wraps(inner)(cast("Callable[P, R]", next(made, _wrap_function)(inner, memory)))

    return decorate if function is None else decorate(function)


def _wrap_function(function: Callable[P, R], memory: MemoryOptions) -> Callable[P, R]:
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        kept, result = _begin_and_call(memory, function, args, kwargs)
        return cast("R", _follow_result(memory, kept, result))

    return run


def _wrap_coroutine(function: Callable[P, Awaitable[T]], memory: MemoryOptions) -> Callable[P, Awaitable[T]]:
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        kept, work = await _begin_and_call_async(memory, function, args, kwargs)
        return await _await_result(memory, kept, work)

    return run


def _wrap_generator(
    function: Callable[P, Generator[Any, Any, T]], memory: MemoryOptions
) -> Callable[P, Generator[Any, Any, T]]:
    return _proxy_generator(memory, lambda *args, **kwargs: _begin_and_call(memory, function, args, kwargs))


def _wrap_async_generator(
    function: Callable[P, AsyncGenerator[T, Any]], memory: MemoryOptions
) -> Callable[P, AsyncGenerator[T, Any]]:
    return _proxy_async_generator(
        memory, lambda *args, **kwargs: _begin_and_call_async(memory, function, args, kwargs)
    )


def _begin_and_call(
    memory: MemoryOptions, function: Callable[..., R], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[_ActiveRun, R]:
    """Begin a run and call its function; return both."""
    kept = _ActiveRun()
    try:
        _run_quietly(lambda: _begin_run(kept, memory, function, args, kwargs))
        return kept, function(*args, **_with_run_arguments(function, args, kwargs, kept.run))
    except BaseException as error:
        failure = error
        _run_quietly(lambda: _end_run(memory, kept, error=failure))
        raise


async def _begin_and_call_async(
    memory: MemoryOptions, function: Callable[..., R], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[_ActiveRun, R]:
    """Do the same beside the event loop."""
    kept = _ActiveRun()
    try:
        await _run_to_completion(lambda: _begin_run(kept, memory, function, args, kwargs))
        return kept, function(*args, **_with_run_arguments(function, args, kwargs, kept.run))
    except BaseException as error:
        failure = error
        await _run_to_completion(lambda: _end_run(memory, kept, error=failure))
        raise


def _follow_result(memory: MemoryOptions, kept: _ActiveRun, result: object) -> object:
    """Return a result once the run has ended with it, or what stands for it while it has not."""
    if isinstance(result, asyncio.Future):
        result.add_done_callback(lambda done: _end_when_done(memory, kept, done))
    elif inspect.isawaitable(result):
        return _await_result(memory, kept, result)
    elif inspect.isgenerator(result):
        return _proxy_generator(memory, lambda: (kept, result))()
    elif inspect.isasyncgen(result):
        return _proxy_async_generator(memory, partial(_return_value, (kept, result)))()
    else:
        _run_quietly(lambda: _end_run(memory, kept, result=result))
    return result


async def _return_value(result: T) -> T:
    return result


async def _await_result(memory: MemoryOptions, kept: _ActiveRun, work: Awaitable[T]) -> T:
    try:
        result = await work
    except BaseException as error:
        failure = error
        await _run_to_completion(lambda: _end_run(memory, kept, error=failure))
        raise
    await _run_to_completion(lambda: _end_run(memory, kept, result=result))
    return result


def _proxy_generator(
    memory: MemoryOptions, begin: Callable[P, tuple[_ActiveRun, Generator[Any, Any, T]]]
) -> Callable[P, Generator[Any, Any, T]]:
    """Return the function that draws from a generator what, and as, its caller draws from it."""

    def run(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, T]:
        kept, work = begin(*args, **kwargs)
        step, closing = partial[Any](work.send, None), None
        try:
            while True:
                each = step()
                # Not `yield from`, which closes what it draws from where its caller throws.
                try:
                    step = partial(work.send, (yield each))
                except BaseException as thrown:  # noqa: BLE001 whatever it is, it is for the generator
                    step, closing = partial(work.throw, thrown), _generator_exit(thrown)
        except StopIteration as ended:
            result: T = ended.value
        except BaseException as error:
            failure = error
            _run_quietly(lambda: _end_run(memory, kept, error=failure))
            raise
        _run_quietly(lambda: _end_run(memory, kept, result=result, error=closing))
        return result

    return run


def _proxy_async_generator(
    memory: MemoryOptions, begin: Callable[P, Awaitable[tuple[_ActiveRun, AsyncGenerator[T, Any]]]]
) -> Callable[P, AsyncGenerator[T, Any]]:
    """Do the same for an asynchronous generator."""

    async def run(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, Any]:
        kept, work = await begin(*args, **kwargs)
        step: Callable[[], Awaitable[T]] = partial(_first_step, work)
        closing = None
        try:
            while True:
                each = await step()
                try:
                    step = partial(work.asend, (yield each))
                except BaseException as thrown:  # noqa: BLE001 whatever it is, it is for the generator
                    step, closing = partial(work.athrow, thrown), _generator_exit(thrown)
        except StopAsyncIteration:
            pass
        except BaseException as error:
            failure = error
            await _run_to_completion(lambda: _end_run(memory, kept, error=failure))
            raise
        await _run_to_completion(lambda: _end_run(memory, kept, error=closing))

    return run


def _first_step(work: AsyncGenerator[T, Any]) -> Awaitable[T]:
    """Return the first step into a generator that no event loop is to close when it ends.

    It closes what stands for it, and that this one; both at once would be an error.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return work.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def _generator_exit(thrown: BaseException) -> GeneratorExit | None:
    """Return what closes a generator, which ends a run before its time however it is taken."""
    return thrown if isinstance(thrown, GeneratorExit) else None


def _end_when_done(memory: MemoryOptions, kept: _ActiveRun, done: asyncio.Future[Any]) -> None:
    """End the run of a task that is over, beside the event loop that runs it."""
    error = asyncio.CancelledError() if done.cancelled() else done.exception()
    result = None if error is not None else done.result()
    done.get_loop().run_in_executor(
        None, _run_quietly, lambda: _end_run(memory, kept, result=result, error=error)
    )


async def _run_to_completion(work: Callable[[], object]) -> None:
    """Do something in a thread, and see it through even when the run is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(_run_quietly, work))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@dataclass(slots=True)
class _ActiveRun:
    """A run under way, with its bank; none when memory could not begin, or has not yet."""

    run: Run = field(default_factory=Run)
    bank: Bank | None = None
    is_ours: bool = False
    task: str = ""
    agent: str = ""


def _begin_run(
    kept: _ActiveRun,
    memory: MemoryOptions,
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    from archivist.brief.request import BriefRequest
    from archivist.capture.conversations_service import replace_surrogates

    kept.agent = _function_name(function)
    kept.task = replace_surrogates(
        _run_quietly(lambda: _task_text(memory, function, args, kwargs), "the task is not known") or ""
    )
    bank, is_ours = _open_bank(memory, kept.agent)
    try:
        kept.run.id = f"{kept.agent}-{bank.new_id(bank.now())}"
        # The text goes into the agent's prompt, also where only a domain is named.
        request = BriefRequest(
            task=kept.task,
            domain=memory.domain,
            role=memory.role,
            repo=memory.repo,
            form="markdown",
            fence=True,
        )
        told = bank.runs.start_run(kept.run.id, request)
    except BaseException:
        if is_ours:
            bank.close()
        raise
    kept.run.brief = told.text
    kept.bank, kept.is_ours = bank, is_ours


def _end_run(
    memory: MemoryOptions, kept: _ActiveRun, *, result: object = None, error: BaseException | None = None
) -> None:
    bank = kept.bank
    if bank is None:
        return
    try:
        status = _run_status(memory, result, error)
        events = _collect_events(kept, result, error)
        episode = Episode(
            id=kept.run.id,
            project=memory.repo,
            task=kept.task,
            domain=memory.domain,
            agent=kept.agent,
            finished=bank.now(),
        )
        bank.runs.finish_run(episode, events, status=status)
    finally:
        if kept.is_ours:
            bank.close()


def _run_status(memory: MemoryOptions, result: object, error: BaseException | None) -> EpisodeStatus:
    """Return how a run ended; it did something, when nobody could say by the result how much."""
    if error is not None:
        return EpisodeStatus.FAILED if isinstance(error, Exception) else EpisodeStatus.ABORTED
    judge = memory.succeeded
    is_good = True if judge is None else _run_quietly(lambda: bool(judge(result)), "not judged")
    if is_good is None:
        return EpisodeStatus.PARTIAL
    return EpisodeStatus.SUCCESS if is_good else EpisodeStatus.FAILED


def _collect_events(kept: _ActiveRun, result: object, error: BaseException | None) -> list[Event]:
    """Return what happened in order: the task, what was noted, and the answer or the error."""
    events = list(kept.run.events)
    if kept.task:
        events.insert(0, Event(run="", seq=0, kind=EventKind.MESSAGE, role="user", text=kept.task))
    if error is not None:
        told = "".join(traceback.format_exception(error, limit=_TRACEBACK_FRAMES)).strip()
        events.append(
            Event(
                run="", seq=0, kind=EventKind.LOG, name="error", output=told, text=repr(error), is_error=True
            )
        )
    elif isinstance(result, str) and result.strip():
        events.append(Event(run="", seq=0, kind=EventKind.MESSAGE, role="assistant", text=result))
    return [replace(event, run=kept.run.id, seq=seq) for seq, event in enumerate(events, 1)]


def _open_bank(memory: MemoryOptions, name: str) -> tuple[Bank, bool]:
    """Return the bank, and whether it is ours to close."""
    from archivist.bank import Bank
    from archivist.paths import find_project

    if isinstance(memory.bank, Bank):
        return with_actor(memory.bank, name, kind=ActorKind.ORCHESTRATOR), False
    place = memory.bank or os.environ.get("ARCHIVIST_BANK") or find_project(Path.cwd())
    if place is None:
        raise InputError(f"no bank upwards of {str(Path.cwd())!r}", hint="archivist init makes one")
    said = os.environ.get("ARCHIVIST_ACTOR")
    actor = Actor.parse(said) if said else Actor(ActorKind.ORCHESTRATOR, name)
    return Bank.open(place, actor=actor), True


def _function_name(function: Callable[..., object]) -> str:
    """Return what a function is called; what is called like one goes by its kind."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _task_text(
    memory: MemoryOptions, function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> str:
    if callable(memory.task):
        return str(memory.task(*args, **kwargs))
    if memory.task:
        return memory.task
    given = inspect.signature(function).bind_partial(*args, **kwargs).arguments
    texts = (given.get(name) for name in _TASKS)
    return next((text for text in texts if isinstance(text, str)), "")


def _with_run_arguments(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Run
) -> dict[str, Any]:
    """Return the keyword arguments with the brief and the run, where the function takes them."""
    try:
        signature = inspect.signature(function)
        taken = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        # The call itself will say what is wrong; what is built in may not tell what it takes.
        return dict(kwargs)
    offered = {"brief": run.brief, "run": run}
    keywords = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    more = {
        name: value
        for name, value in offered.items()
        if name in signature.parameters and signature.parameters[name].kind in keywords and name not in taken
    }
    return {**kwargs, **more}


def _run_quietly(work: Callable[[], T], otherwise: str = "not remembered") -> T | None:
    """Do something for memory's sake; when it fails the log says so, and the run goes on without."""
    try:
        return work()
    except ArchivistError as error:
        _LOG.warning("%s: %s%s", otherwise, error.message, f" ({error.hint})" if error.hint else "")
    except Exception as error:  # noqa: BLE001 a run must not fail because its memory did
        # The words of an error may be the run's own, secrets and all; its kind and its place are ours.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        _LOG.warning("%s: %s at %s", otherwise, type(error).__name__, where)
    return None
