"""A conversation that runs: asked to the end, told live, branched, switched, cancelled, and always in order.

    async with Session(model="anthropic/claude-opus-5", tools=[search]) as session:
        answer = await session.run("What is new?")
        async for event in session.stream("And elsewhere?"): ...
        child = session.spawn(system="You only read.")
        session.switch("openai/gpt-5.5")
        await session.cancel()

`run`, `stream` and `spawn(…).run` listen to the same loop, which runs in a task of its own in the session's task
group; it has one scheduler and one write boundary.

Laws: whoever listens only listens: a listener that is cancelled, or leaves early, stops the run in order, through the
scheduler. One run at a time: another one waits its turn. After any stop the next run is accepted by any provider.
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
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.session.branch import SessionFamily
from toolglot.runtime.session.compacting import Summarise, is_summary
from toolglot.runtime.session.events import CallChanged, ModelSwitched, RunFinished, RunResult, SessionEvent
from toolglot.runtime.session.limits import DEFAULT_SESSION_LIMITS, SessionLimits
from toolglot.runtime.session.loop import INTERRUPTED, Loop
from toolglot.runtime.session.models import Models, ProviderModels
from toolglot.runtime.session.run import SessionRun
from toolglot.runtime.tools.toolbox import ToolBox, Toolish

__all__ = ["CANCELLED", "Message", "Session", "SessionLimits"]

CANCELLED: Final = "Cancelled by the user."
LEFT: Final = "Cancelled: nobody waits for the answer any more."
CLOSED: Final = "Cancelled: the session was closed."
FORKED: Final = "Cancelled: the conversation was forked before this call had its result."
SETTLING: Final = 10.0
"""Seconds that the writes at the end of a stopped run may take beyond what its tools are given."""

Message = str | Turn | Sequence[Block]
"""What can be said to a model: a text, blocks, or a turn."""
Work = Callable[[SessionRun], Awaitable[RunResult]]

_INSIDE: ContextVar[frozenset[SessionRun]] = ContextVar("toolglot_runs", default=frozenset())
"""The runs that the code is part of. A task that a tool began, and that is still there, was part of one."""


class SpawnSettings(TypedDict, total=False):
    """What a session that comes of another one may have otherwise. What is None is as it is there."""

    model: str | None
    tools: Iterable[Toolish] | ToolBox | None
    system: str | None
    """None: nothing is said before the user speaks."""
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
    """One conversation, and what runs it."""

    def __init__(
        self,
        *,
        model: str,
        tools: Iterable[Toolish] | ToolBox = (),
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
        """What it needs; nothing happens before `async with`.

        model: `provider/model`: who is asked.
        tools: functions, definitions, tools of MCP servers, in any mixture.
        system: what the model is told first, where the history does not begin with that already.
        models: finds models by their names; without it, all providers, with the keys of the environment.
        fallback: models that are asked, in this order, where `model` does not answer.
        options: sampling, reasoning, tool choice and output format of each request (`toolglot.Options`).
        policy: what to do where rendering has a choice (`toolglot.Policy`).
        overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
        limits: turns of a run, tokens and money of the session, retries, when to compress (`SessionLimits`).
        run_limits: how many tools run at once, how long each may take, how much it may return (`RunLimits`).
        approve: asks somebody before a tool runs that is marked with `approval=True`; without it such calls are denied.
        log: where the history is kept; without it, in memory.
        history: what was said before, without a log.
        summarise: writes the summary of old turns when the conversation is compressed; without it, the model does.
        keep_interrupted: whether the text of an answer that is cancelled half-way stays in the history, marked as such.
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
        self._branch = SessionFamily(limits)
        if isinstance(self._log, SpendingLog) and self._log.usage != Usage():
            self._branch.sum.add(self._log.usage, self._log.cost)
        self._group: TaskGroup | None = None
        self._host: Session | None = None
        """In whose task group it runs, where that is not its own."""
        self._was_closed = False
        self._closing: asyncio.Task[None] | None = None
        self._guests: WeakSet[Session] = WeakSet()
        """Those that run in its task group."""
        self._turn_taking = anyio.Semaphore(1)
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
            branch=self._branch,
            keep_interrupted=keep_interrupted,
        )

    # --- what is known ------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._log.id

    @property
    def history(self) -> History:
        """What was said and done. It is read; what writes to it is the session."""
        return self._log.history

    @property
    def model(self) -> str:
        """Who is asked next."""
        return self._loop.model

    @property
    def tools(self) -> ToolBox:
        return self._loop.tools

    @property
    def scheduler(self) -> Scheduler:
        """What runs the calls: the same one for as long as the session lives."""
        return self._scheduler

    @property
    def limits(self) -> SessionLimits:
        return self._loop.limits

    @property
    def usage(self) -> Usage:
        """Tokens of all runs, those of subagents included."""
        return self._branch.sum.usage

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all runs; None: the price of some of them is not known."""
        return self._branch.sum.cost

    @property
    def report(self) -> Report:
        """What was changed, guessed or lost, in the history and on the way to and from providers."""
        return Report((*self.history.report.entries, *self._loop.entries, *self._scheduler.entries))

    @property
    def is_running(self) -> bool:
        return self._branch.flight is not None

    @property
    def is_closed(self) -> bool:
        return self._was_closed or (self._host is not None and self._host.is_closed)

    def __repr__(self) -> str:
        return f"<Session {self.id}: {self.model}, {len(self.history)} turns>"

    # --- running ------------------------------------------------------------------------------------

    async def run(self, said: Message | None = None) -> RunResult:
        """Say something, and go on until the model calls no more tools. Without anything said, it just goes on."""
        return await self._run(self._going_on(said))

    async def stream(self, said: Message | None = None) -> AsyncIterator[SessionEvent]:
        """The same, told live; the last event is `Ended`. Leaving early cancels."""
        flight = SessionRun(listens=True)
        try:
            await self._take_off(flight, self._going_on(said))
            async for event in flight.events():
                yield event
        except BaseException:
            flight.unheard()
            await self._leave(flight)
            raise
        yield RunFinished(_result(flight))

    async def answer(self, *results: ToolResult) -> RunResult:
        """Give the results of calls that are open, and go on."""
        return await self._run(self._going_on_with(results))

    async def compress(self) -> int:
        """Put a summary in the place of all but the last turns now; how many it took the place of."""
        done: list[int] = []

        async def work(flight: SessionRun) -> RunResult:
            await self._refuse_open("compress")
            if not flight.is_stopping:
                with flight.leavable():
                    choice = self._models.find(self.model)
                    done.append(await self._loop.compress(flight, choice, self.limits.keep_turns))
            return RunResult(stop="cancelled" if flight.is_stopping else "stop", model=self.model)

        await self._run(work)
        return sum(done)

    async def undo(self) -> Turn | None:
        """Take back the last thing that the user said, with everything after it; None: there is nothing."""
        undone: list[Turn] = []

        async def work(_: SessionRun) -> RunResult:
            await self._refuse_open("undo")
            turns = self.history.turns
            last = next((place for place in range(len(turns) - 1, -1, -1) if turns[place].role == "user"), None)
            if last is not None and not is_summary(turns[last]):
                undone.append(turns[last])
                key = turns[last - 1].key if last else None
                await self._log.change(lambda history: history.rewind(key))
            return RunResult(model=self.model)

        await self._run(work)
        return undone[0] if undone else None

    def switch(self, model: str) -> None:
        """Choose who is asked from the next turn on. A turn in flight stays with who began it."""
        before = self.model
        after = self._loop.switch(model)
        flight = self._branch.flight
        if flight is not None and before != after:
            flight.tell(ModelSwitched(before, after, "the session was switched"))

    async def cancel(self, reason: str = CANCELLED) -> None:
        """Stop what runs, in this session and in those that it spawned; returns when all is in order.

        May be called at any time and by any task. Where calls are open for the caller, they are cancelled.
        """
        flights = self._branch.flights()
        self._branch.stop(reason)
        if self._is_inside():
            return  # one of its own tools asks: it ends before the run does
        await self._settled(*flights)
        if self._branch.flight is None and self.history.in_flight is not None:
            with CancelScope(shield=True):
                await self._loop.land(reason)

    # --- branching ----------------------------------------------------------------------------------

    def spawn(self, **given: Unpack[SpawnSettings]) -> Session:
        """A subagent: its own history and scheduler, this one's models, and unless they are given its settings.

        It lives no longer than this session, a cancel of this one reaches it, and what it uses counts here too.
        """
        return self._made(given, self._branch)

    def fork(self, **given: Unpack[SpawnSettings]) -> Session:
        """A session of its own with the same history up to here. It lives no longer than this one."""
        if "log" not in given:
            history = self.history.fork()
            history.cancel(*(found.id for found in history.ledger.pending), reason=FORKED)
            given = {"history": history, **given}
        return self._made(given)

    def _made(self, given: SpawnSettings, parent: SessionFamily | None = None) -> Session:
        """A session with this one's settings, in this one's task group."""
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
        named = {name: value for name, value in given.items() if value is not None or name == "system"}
        made = Session(**{**settings, **named})
        made._group, made._host = self._entered(), self
        made._resolve()
        self._guests.add(made)
        if parent is not None:
            made._branch.grow_from(parent)
        return made

    # --- inside -------------------------------------------------------------------------------------

    def _going_on(self, said: Message | None) -> Work:
        turn = None if said is None else turn_of(said)

        async def work(flight: SessionRun) -> RunResult:
            await self._refuse_open("run")
            opening = self._opening()
            if turn is None and not self.history and not opening:
                raise InputError("nothing was said yet", path="said", hint='session.run("…")')
            return await self._loop.run(flight, (*opening, *((turn,) if turn is not None else ())))

        return work

    def _going_on_with(self, results: Sequence[ToolResult]) -> Work:
        async def work(flight: SessionRun) -> RunResult:
            await self._loop.settle()
            pending = {call.id for call in self._loop.open_calls()}
            for place, result in enumerate(results):
                if not isinstance(result, ToolResult) or result.call_id not in pending:
                    raise InputError(
                        f"no open call has the id {quote(getattr(result, 'call_id', result))}",
                        path=f"results[{place}].call_id",
                        hint="the open calls are in answer.calls",
                    )
            if not results:
                raise InputError("expected at least one result", path="results")
            return await self._loop.run(flight, results=results)

        return work

    def _opening(self) -> tuple[Turn, ...]:
        """What is said before anything else."""
        if not self._system or len(self.history):
            return ()
        return (Turn("system", (Text(self._system),)),)

    async def _refuse_open(self, what: str) -> None:
        """Calls that are the caller's stand in the way; those whose results could not be written get them now."""
        await self._loop.settle()
        if self.history.in_flight is not None:
            raise InputError(
                f"cannot {what} while calls are open",
                path="session",
                hint="give their results with session.answer(…), or session.cancel()",
            )

    async def _run(self, work: Work) -> RunResult:
        flight = SessionRun()
        try:
            await self._take_off(flight, work)
            await flight.over.wait()
        except BaseException:
            await self._leave(flight)
            raise
        return _result(flight)

    async def _take_off(self, flight: SessionRun, work: Work) -> None:
        """Start a run when the one before it is over."""
        group = self._entered()
        if self._is_inside():
            raise InputError(
                "a tool cannot run the session that runs it", path="session", hint="session.spawn(…).run(…)"
            )
        try:
            self._turn_taking.acquire_nowait()  # at once: a cancel that follows finds the run
        except WouldBlock:
            await self._turn_taking.acquire()
        if self.is_closed:
            self._turn_taking.release()
            raise InputError("this session is closed", path="session")
        self._branch.take_off(flight, self._loop.stop)
        group.start_soon(self._fly, flight, work, name=f"session {self.id}")

    async def _fly(self, flight: SessionRun, work: Work) -> None:
        """The task of a run."""
        _INSIDE.set(frozenset(run for run in _INSIDE.get() if not run.over.is_set()) | {flight})
        before = self.history.in_flight
        try:
            flight.result = await work(flight)
        except anyio.get_cancelled_exc_class():
            flight.stop(CLOSED)
            await self._landed_anyhow(flight)
            raise
        except Exception as error:  # noqa: BLE001 - whoever listens gets it
            flight.error = error
            if self.history.in_flight is not before:  # calls that were open before are still the caller's
                await self._landed_anyhow(flight)
        else:
            await self._loop.write_spending()
        finally:
            self._branch.land()
            self._turn_taking.release()
            flight.end()

    async def _landed_anyhow(self, flight: SessionRun) -> None:
        """Leave no turn in flight after an error; one that comes of that too says less than the first. What cannot be
        written now is written before the session goes on."""
        with CancelScope(shield=True):
            try:
                await self._loop.keep_open_attempt(flight)
            except Exception as error:  # noqa: BLE001 - the first error is told
                flight.error = flight.error or error
            try:
                await self._loop.land(flight.reason or INTERRUPTED)
            except Exception as error:  # noqa: BLE001 - the first error is told
                flight.error = flight.error or error

    async def _leave(self, flight: SessionRun) -> None:
        """Whoever listened is gone: stop the run, and wait until all is in order."""
        if self._branch.flight is not flight:
            return
        self._branch.stop(LEFT)
        await wait_uninterrupted(asyncio.ensure_future(self._settled(flight)))

    async def _settled(self, *flights: SessionRun) -> None:
        """Wait for the end of runs that were stopped; not for ever, whatever their tools and their store do."""
        with move_on_after(self._run_limits.grace + SETTLING):
            for flight in flights:
                await flight.over.wait()

    def _is_inside(self) -> bool:
        """Whether the code that asks is part of the run that is under way: one of its tools."""
        return self._branch.flight is not None and self._branch.flight in _INSIDE.get()

    def _watch(self, change: CallChange) -> None:
        if self._branch.flight is not None:
            self._branch.flight.tell(CallChanged(change))

    # --- its life -----------------------------------------------------------------------------------

    def _entered(self) -> TaskGroup:
        if self._group is None or self.is_closed:
            problem = "this session is closed" if self.is_closed else "this session is not open yet"
            raise InputError(problem, path="session", hint="async with Session(…) as session: …")
        return self._group

    def _resolve(self) -> None:
        """Find the models by their names: what is wrong with one is told before anything is asked."""
        self._loop.model = self._loop.chosen = self._models.find(self.model).name
        self._loop.fallback = tuple(self._models.find(name).name for name in self._loop.fallback)
        self._loop.resume()

    async def __aenter__(self) -> Session:
        if self.is_closed or (self._group is not None and self._host is None):
            raise InputError("a session is opened once", path="session", hint="make another one")
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
                # An error of the caller's stays what it is: the group has tasks of its own, which never raise.
                await self._group.__aexit__(None, None, None)

    async def close(self) -> None:
        """The end: what runs is cancelled, in order. A session that was spawned ends with its parent at the latest.

        Whoever waits for it and is cancelled waits all the same. Where something could not be ended, it can be called
        again.
        """
        self._was_closed = True
        ended = self._closing is not None and self._closing.done()
        if self._closing is None or (ended and (self._closing.cancelled() or self._closing.exception() is not None)):
            self._closing = asyncio.create_task(self._close(), name=f"closing session {self.id}")
        if not self._is_inside():  # one of its own tools ends before the run does
            await wait_uninterrupted(self._closing)

    async def _close(self) -> None:
        """Ends everything, in a task of its own; what cannot be ended keeps nothing else from it."""
        flights = self._branch.flights()
        self._branch.stop(CLOSED)
        await self._settled(*flights)
        with suppress(Exception):  # a log that does not take it now has it as a run that is over
            await self._loop.settle()
        await self._loop.write_spending()
        ends = [guest.close for guest in self._guests]
        ends += [self._scheduler.close, self._log.close, *([self._models.close] if self._owns_models else [])]
        problems: list[Exception] = []
        for end in ends:
            try:
                await end()
            except Exception as error:  # noqa: BLE001 - the first is told when all was tried
                problems.append(error)
        if problems:
            raise problems[0]


def turn_of(said: Message) -> Turn:
    """What was said, as a turn."""
    if isinstance(said, Turn) and said.role in ("user", "system", "developer"):
        return said
    if isinstance(said, str):
        if not said.strip():
            raise InputError("expected a string that is not blank", path="said")
        return Turn("user", (Text(said),))
    given: Sequence[object] = said if isinstance(said, Sequence) else ()
    blocks = tuple(block for block in given if isinstance(block, Text | Media | Opaque))
    if not blocks or len(blocks) < len(given):
        raise InputError(
            f"expected a string, a turn of the user's, or blocks of text and media, got {quote(said)}",
            path="said",
            hint="results of calls go to session.answer(…)",
        )
    return Turn("user", blocks)


def _result(flight: SessionRun) -> RunResult:
    """What came of a run that is over."""
    if flight.error is not None:
        raise flight.error
    if flight.result is None:
        return RunResult(stop="cancelled")
    return flight.result
