"""Sessions: run a conversation, stream it, branch it, switch its model, cancel it.

    async with Session(model="anthropic/claude-opus-5", tools=[search]) as session:
        result = await session.run("What is new?")
        async for event in session.stream("And elsewhere?"): ...
        child = session.spawn(system="You only read.")
        session.switch("openai/gpt-5.5")
        await session.cancel()

`run`, `stream` and `spawn(…).run` use the same loop, which runs in its own task in the session's task group, with one
scheduler and one log.

Laws: a caller that is cancelled, or leaves a stream early, stops the run cleanly, through the scheduler. One run at a
time: others wait. After any stop every provider accepts the next run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, TypedDict, Unpack
from weakref import WeakSet

import anyio
from anyio import CancelScope, WouldBlock, move_on_after
from anyio.abc import TaskGroup

from toolglot.conversation import (
    Block,
    Media,
    Opaque,
    Options,
    Text,
    ToolResult,
    Turn,
    Usage,
)
from toolglot.conversation.report import Report
from toolglot.errors import InputError, quote
from toolglot.history.history import History
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.runtime.log.memory_log import Log, MemoryLog, SpendingLog
from toolglot.runtime.log.writer import wait_uninterrupted
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.session.compacting import Summarise, is_summary
from toolglot.runtime.session.events import CallChanged, ModelSwitched, RunFinished, RunResult, SessionEvent
from toolglot.runtime.session.family import SessionFamily
from toolglot.runtime.session.limits import DEFAULT_SESSION_LIMITS, SessionLimits
from toolglot.runtime.session.loop import INTERRUPTED, Loop
from toolglot.runtime.session.models import Models, ProviderModels
from toolglot.runtime.session.run import SessionRun
from toolglot.runtime.tools.toolbox import ToolBox, ToolLike

__all__ = ["Message", "Session", "SessionLimits"]

ABANDONED: Final = "Cancelled: the caller stopped waiting for the result."
CLOSED: Final = "Cancelled: the session was closed."
FORKED: Final = "Cancelled: the conversation was forked before this call had its result."
SETTLE_SECONDS: Final = 10.0
"""Seconds that the last writes of a stopped run may take, after the grace period of its tools."""

Message = str | Turn | Sequence[Block]
"""A message to a model: a string, blocks, or a turn."""
Work = Callable[[SessionRun], Awaitable[RunResult]]

_INSIDE: ContextVar[frozenset[SessionRun]] = ContextVar("toolglot_runs", default=frozenset())
"""The runs that the current code belongs to: in tools, and in tasks that tools started."""


class SpawnSettings(TypedDict, total=False):
    """Settings of a child session that differ from its parent's. None: the same as there."""

    model: str | None
    tools: Iterable[ToolLike] | ToolBox | None
    system: str | None
    """None: no system prompt."""
    fallback: Sequence[str] | None
    options: Options | None
    policy: Policy | None
    overrides: Overrides | None
    limits: SessionLimits | None
    run_limits: RunLimits | None
    approve: Approve | None
    log: Log | None
    history: History | None
    summarise: Summarise | None
    keep_interrupted: bool | None


class Session:
    """A conversation with a model and tools.

    Use it as an async context manager: `async with Session(model="anthropic/claude-opus-5") as session`.
    """

    def __init__(
        self,
        *,
        model: str,
        tools: Iterable[ToolLike] | ToolBox = (),
        system: str | None = None,
        models: Models | None = None,
        fallback: Sequence[str] = (),
        options: Options = Options(),  # noqa: B008
        policy: Policy | None = None,
        overrides: Overrides | None = None,
        limits: SessionLimits = DEFAULT_SESSION_LIMITS,
        run_limits: RunLimits | None = None,
        approve: Approve | None = None,
        log: Log | None = None,
        history: History | None = None,
        summarise: Summarise | None = None,
        keep_interrupted: bool = True,
    ) -> None:
        """Nothing happens before `async with`.

        model: `provider/model`: the model to call.
        tools: functions, definitions, tools of MCP servers, in any combination.
        system: the system prompt; used if the history is empty.
        models: finds models by name; by default all providers, with keys from the environment.
        fallback: models to call, in this order, if `model` fails.
        options: sampling, reasoning, tool choice and output format of each request (`toolglot.Options`).
        policy: choices for rendering (`toolglot.Policy`).
        overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
        limits: turns of a run, tokens and money of the session, retries, when to compress (`SessionLimits`).
        run_limits: how many tools run at once, how long each may take, how much it may return (`RunLimits`).
        approve: called before a tool runs that is marked with `approval=True`; without it such calls are denied.
        log: where the history is stored; by default in memory.
        history: an earlier conversation, without a log.
        summarise: writes the summary when the conversation is compressed; by default the model does.
        keep_interrupted: whether the text of a reply that is cancelled half-way stays in the history, marked as such.
        """
        if log is not None and history is not None:
            raise InputError("expected a log or a history, not both: a log has its own", path="history")
        if isinstance(fallback, str):
            raise InputError(
                "expected a list of models, got a string", path="fallback", hint=f"fallback=[{fallback!r}]"
            )
        self._log: Log = log if log is not None else MemoryLog(history)
        self._owns_models = models is None
        self._models: Models = models if models is not None else ProviderModels()
        self._system = system
        self._run_limits = run_limits if run_limits is not None else RunLimits()
        self._approve = approve
        self._family = SessionFamily(limits)
        if isinstance(self._log, SpendingLog) and self._log.usage != Usage():
            self._family.total.add(self._log.usage, self._log.cost)
        self._group: TaskGroup | None = None
        self._host: Session | None = None
        """The session whose task group it uses, if not its own."""
        self._was_closed = False
        self._closing: asyncio.Task[None] | None = None
        self._guests: WeakSet[Session] = WeakSet()
        """The sessions that use its task group."""
        self._run_lock = anyio.Semaphore(1)
        box = tools if isinstance(tools, ToolBox) else ToolBox(tools)
        self._scheduler = Scheduler(
            box,
            limits=self._run_limits,
            approve=approve,
            watch=self._watch,
            journal=self._log,
            session_id=self._log.id,
            session=self,
        )
        self._loop = Loop(
            log=self._log,
            models=self._models,
            model=model,
            tools=box,
            scheduler=self._scheduler,
            fallback=fallback,
            options=options,
            policy=policy if policy is not None else Policy(ids="canonical"),
            overrides=overrides,
            limits=limits,
            summarise=summarise,
            family=self._family,
            keep_interrupted=keep_interrupted,
        )

    # --- properties ---------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._log.id

    @property
    def history(self) -> History:
        """The history. Read it only: the session writes to it."""
        return self._log.history

    @property
    def model(self) -> str:
        """The model that is called next."""
        return self._loop.model

    @property
    def tools(self) -> ToolBox:
        return self._loop.tools

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that runs all calls of this session."""
        return self._scheduler

    @property
    def limits(self) -> SessionLimits:
        return self._loop.limits

    @property
    def usage(self) -> Usage:
        """Tokens of all runs, including subagents."""
        return self._family.total.usage

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all runs; None if the price of any part is unknown."""
        return self._family.total.cost

    @property
    def report(self) -> Report:
        """Everything that was changed, guessed or lost, in the history and on the way to and from providers."""
        return Report((*self.history.report.entries, *self._loop.entries, *self._scheduler.entries))

    @property
    def is_running(self) -> bool:
        return self._family.run is not None

    @property
    def is_closed(self) -> bool:
        return self._was_closed or (self._host is not None and self._host.is_closed)

    def __repr__(self) -> str:
        return f"<Session {self.id}: {self.model}, {len(self.history)} turns>"

    # --- running ------------------------------------------------------------------------------------

    async def run(self, message: Message | None = None) -> RunResult:
        """Send a message, and run until the model calls no more tools. Without a message the conversation continues."""
        return await self._run(self._message_work(message))

    async def stream(self, message: Message | None = None) -> AsyncIterator[SessionEvent]:
        """The same as `run`, with live events; the last one is `RunFinished`. Leaving the loop early cancels."""
        run = SessionRun(has_listener=True)
        try:
            await self._start(run, self._message_work(message))
            async for event in run.events():
                yield event
        except BaseException:
            run.drop_listener()
            await self._stop_abandoned(run)
            raise
        yield RunFinished(_result(run))

    async def answer(self, *results: ToolResult) -> RunResult:
        """Supply the results of open calls, and continue."""
        return await self._run(self._results_work(results))

    async def compress(self) -> int:
        """Replace all but the last turns by a summary now; returns how many it replaced."""
        done: list[int] = []

        async def work(run: SessionRun) -> RunResult:
            await self._refuse_open("compress")
            if not run.is_stopping:
                with run.cancellable():
                    choice = self._models.find(self.model)
                    done.append(await self._loop.compress(run, choice))
            return RunResult(stop="cancelled" if run.is_stopping else "stop", model=self.model)

        await self._run(work)
        return sum(done)

    async def undo(self) -> Turn | None:
        """Remove the last user message and everything after it; returns its turn, or None if there is none."""
        undone: list[Turn] = []

        async def work(_: SessionRun) -> RunResult:
            await self._refuse_open("undo")
            turns = self.history.turns
            last = next((index for index in range(len(turns) - 1, -1, -1) if turns[index].role == "user"), None)
            if last is not None and not is_summary(turns[last]):
                undone.append(turns[last])
                key = turns[last - 1].key if last else None
                await self._log.change(lambda history: history.rewind(key))
            return RunResult(model=self.model)

        await self._run(work)
        return undone[0] if undone else None

    def switch(self, model: str) -> None:
        """Call another model from the next turn on. An unfinished turn stays with its model."""
        before = self.model
        after = self._loop.switch(model)
        run = self._family.run
        if run is not None and before != after:
            run.emit(ModelSwitched(before, after, "the session was switched"))

    async def cancel(self, reason: str = outcomes.CANCELLED) -> None:
        """Stop the current run, also of spawned sessions. Returns when every call has its result.

        Any task may call it at any time. Open calls of the caller are cancelled.
        """
        active_runs = self._family.active_runs()
        self._family.stop(reason)
        if self._is_inside():
            return  # called by one of its own tools: the tool has to end before the run can
        await self._wait_ended(*active_runs)
        if self._family.run is None and self.history.in_flight is not None:
            with CancelScope(shield=True):
                await self._loop.end_turn(reason)

    # --- branching ----------------------------------------------------------------------------------

    def spawn(self, **settings: Unpack[SpawnSettings]) -> Session:
        """A subagent: a session with its own history and scheduler, and this session's models and other settings.

        It closes with this session, is cancelled with it, and its usage counts here too.
        """
        return self._make_child(settings, self._family)

    def fork(self, **settings: Unpack[SpawnSettings]) -> Session:
        """A new session with the same history up to here. It closes with this one."""
        if "log" not in settings:
            history = self.history.fork()
            history.cancel(*(found.id for found in history.ledger.pending), reason=FORKED)
            settings = {"history": history, **settings}
        return self._make_child(settings)

    def _make_child(self, changes: SpawnSettings, parent: SessionFamily | None = None) -> Session:
        """A session with the settings and the task group of this one."""
        loop = self._loop
        settings: dict[str, Any] = {
            "model": self.model,
            "tools": tuple(loop.tools),
            "system": self._system,
            "fallback": loop.fallback,
            "options": loop.options,
            "policy": loop.policy,
            "overrides": loop.overrides,
            "limits": loop.limits,
            "run_limits": self._run_limits,
            "approve": self._approve,
            "summarise": loop.summarise,
            "keep_interrupted": loop.keep_interrupted,
            "models": self._models,
        }
        named = {name: value for name, value in changes.items() if value is not None or name == "system"}
        child = Session(**{**settings, **named})
        child._group, child._host = self._task_group(), self
        child._resolve()
        self._guests.add(child)
        if parent is not None:
            child._family.attach_to(parent)
        return child

    # --- one run ------------------------------------------------------------------------------------

    def _message_work(self, message: Message | None) -> Work:
        turn = None if message is None else read_message(message)

        async def work(run: SessionRun) -> RunResult:
            await self._refuse_open("run")
            opening = self._system_turn()
            if turn is None and not self.history and not opening:
                raise InputError("there is no message yet", path="message", hint='session.run("…")')
            return await self._loop.run(run, (*opening, *((turn,) if turn is not None else ())))

        return work

    def _results_work(self, results: Sequence[ToolResult]) -> Work:
        async def work(run: SessionRun) -> RunResult:
            await self._loop.write_missing_results()
            pending = {call.id for call in self._loop.open_calls()}
            for index, result in enumerate(results):
                if not isinstance(result, ToolResult) or result.call_id not in pending:
                    raise InputError(
                        f"no open call has the id {quote(getattr(result, 'call_id', result))}",
                        path=f"results[{index}].call_id",
                        hint="the open calls are in `calls` of the last result",
                    )
            if not results:
                raise InputError("expected at least one result", path="results")
            return await self._loop.run(run, results=results)

        return work

    def _system_turn(self) -> tuple[Turn, ...]:
        """The system prompt, if the history is empty."""
        if not self._system or len(self.history):
            return ()
        return (Turn("system", (Text(self._system),)),)

    async def _refuse_open(self, what: str) -> None:
        """Write missing results, and raise if calls of the caller are open."""
        await self._loop.write_missing_results()
        if self.history.in_flight is not None:
            raise InputError(
                f"cannot {what} while calls are open",
                path="session",
                hint="supply their results with session.answer(…), or session.cancel()",
            )

    async def _run(self, work: Work) -> RunResult:
        run = SessionRun()
        try:
            await self._start(run, work)
            await run.ended.wait()
        except BaseException:
            await self._stop_abandoned(run)
            raise
        return _result(run)

    async def _start(self, run: SessionRun, work: Work) -> None:
        """Start a run when the one before it has ended."""
        group = self._task_group()
        if self._is_inside():
            raise InputError(
                "a tool cannot run the session that runs it", path="session", hint="session.spawn(…).run(…)"
            )
        try:
            self._run_lock.acquire_nowait()  # without a checkpoint: a cancel that follows finds the run
        except WouldBlock:
            await self._run_lock.acquire()
        if self.is_closed:
            self._run_lock.release()
            raise InputError("this session is closed", path="session")
        self._family.start_run(run, self._loop.stop)
        group.start_soon(self._run_task, run, work, name=f"session {self.id}")

    async def _run_task(self, run: SessionRun, work: Work) -> None:
        """The task of a run."""
        _INSIDE.set(frozenset(run for run in _INSIDE.get() if not run.ended.is_set()) | {run})
        before = self.history.in_flight
        try:
            run.result = await work(run)
        except anyio.get_cancelled_exc_class():
            run.stop(CLOSED)
            await self._end_turn_anyway(run)
            raise
        except Exception as error:  # noqa: BLE001 - the caller gets it
            run.error = error
            if self.history.in_flight is not before:  # earlier open calls still belong to the caller
                await self._end_turn_anyway(run)
        else:
            await self._loop.write_spending()
        finally:
            self._family.finish_run()
            self._run_lock.release()
            run.end()

    async def _end_turn_anyway(self, run: SessionRun) -> None:
        """Leave no turn open after an error. The first error is raised. What cannot be written now is written before
        the session continues."""
        with CancelScope(shield=True):
            try:
                await self._loop.keep_open_attempt(run)
            except Exception as error:  # noqa: BLE001 - the first error is raised
                run.error = run.error or error
            try:
                await self._loop.end_turn(run.reason or INTERRUPTED)
            except Exception as error:  # noqa: BLE001 - the first error is raised
                run.error = run.error or error

    async def _stop_abandoned(self, run: SessionRun) -> None:
        """The caller is gone: stop the run, and wait until it has ended."""
        if self._family.run is not run:
            return
        self._family.stop(ABANDONED)
        await wait_uninterrupted(asyncio.ensure_future(self._wait_ended(run)))

    async def _wait_ended(self, *active_runs: SessionRun) -> None:
        """Wait for the end of stopped runs, for a limited time, whatever their tools and their store do."""
        with move_on_after(self._run_limits.grace + SETTLE_SECONDS):
            for run in active_runs:
                await run.ended.wait()

    def _is_inside(self) -> bool:
        """Whether the calling code belongs to the current run: one of its tools."""
        return self._family.run is not None and self._family.run in _INSIDE.get()

    def _watch(self, change: CallChange) -> None:
        if self._family.run is not None:
            self._family.run.emit(CallChanged(change))

    # --- opening and closing ------------------------------------------------------------------------

    def _task_group(self) -> TaskGroup:
        if self._group is None or self.is_closed:
            problem = "this session is closed" if self.is_closed else "this session is not open yet"
            raise InputError(problem, path="session", hint="async with Session(…) as session: …")
        return self._group

    def _resolve(self) -> None:
        """Find the models by name, so that a wrong name is an error before any request."""
        self._loop.model = self._loop.chosen = self._models.find(self.model).name
        self._loop.fallback = tuple(self._models.find(name).name for name in self._loop.fallback)
        self._loop.reopen()

    async def __aenter__(self) -> Session:
        if self.is_closed or (self._group is not None and self._host is None):
            raise InputError("a session can be opened only once", path="session", hint="create another one")
        self._resolve()
        if self._group is None:
            self._group = anyio.create_task_group()
            await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        finally:
            if self._host is None and self._group is not None:
                # Not with the caller's error, which stays unchanged: tasks of the group never raise.
                await self._group.__aexit__(None, None, None)

    async def close(self) -> None:
        """Cancel the current run and close the session. A spawned session closes with its parent at the latest.

        A caller that is cancelled still waits for the end. If something could not be closed, call it again.
        """
        self._was_closed = True
        has_ended = self._closing is not None and self._closing.done()
        if self._closing is None or (
            has_ended and (self._closing.cancelled() or self._closing.exception() is not None)
        ):
            self._closing = asyncio.create_task(self._close(), name=f"closing session {self.id}")
        if not self._is_inside():  # called by one of its own tools: the tool has to end before the run can
            await wait_uninterrupted(self._closing)

    async def _close(self) -> None:
        """Close everything, in its own task. A part that fails does not keep the others open."""
        active_runs = self._family.active_runs()
        self._family.stop(CLOSED)
        await self._wait_ended(*active_runs)
        with suppress(Exception):  # the log may have it already, as a tool run
            await self._loop.write_missing_results()
        await self._loop.write_spending()
        ends = [guest.close for guest in self._guests]
        ends += [self._scheduler.close, self._log.close, *([self._models.close] if self._owns_models else [])]
        problems: list[Exception] = []
        for end in ends:
            try:
                await end()
            except Exception as error:  # noqa: BLE001 - the first is raised after all were tried
                problems.append(error)
        if problems:
            raise problems[0]


def read_message(message: Message) -> Turn:
    """A message as a turn."""
    if isinstance(message, Turn) and message.role in ("user", "system", "developer"):
        return message
    if isinstance(message, str):
        if not message.strip():
            raise InputError("expected a string that is not blank", path="message")
        return Turn("user", (Text(message),))
    items: Sequence[object] = message if isinstance(message, Sequence) else ()
    blocks = tuple(block for block in items if isinstance(block, Text | Media | Opaque))
    if not blocks or len(blocks) < len(items):
        raise InputError(
            f"expected a string, a user turn, or blocks of text and media, got {quote(message)}",
            path="message",
            hint="results of calls go to session.answer(…)",
        )
    return Turn("user", blocks)


def _result(run: SessionRun) -> RunResult:
    """The result of a run that has ended."""
    if run.error is not None:
        raise run.error
    if run.result is None:
        return RunResult(stop="cancelled")
    return run.result
