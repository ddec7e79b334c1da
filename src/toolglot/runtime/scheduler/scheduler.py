"""The one way in which tools are run: a scheduler for each session, which lives as long as the session does.

    scheduler = Scheduler(ToolBox([read_file, write_file]), approve=ask_the_user)
    results = await scheduler.run(turn.calls)      # one for each call, in call order, whatever happens

A whole turn of a model is one batch. Its calls are checked, approved one after another, and run side by side; calls on
the same resource, one after another. Each call is served by a task of the batch; the tool itself runs in another one,
because a tool that ignores its cancellation is left, and must take nothing with it.

Laws: every call comes to exactly one final state. A tool that fails is a result. Nothing is run that was not checked,
allowed and, where it has side effects, on record; nothing is run twice. `cancel` ends a batch within `limits.grace`,
`journal` permitting, whatever the tools do.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Any, Final, Protocol

import anyio
from msgspec import Struct

from toolglot.conversation import ToolCall, ToolResult
from toolglot.conversation.report import Action, Entry, Fault
from toolglot.errors import InputError, quote
from toolglot.runtime.scheduler import leaving, outcomes
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.scheduler.argument_checks import ArgumentCheck
from toolglot.runtime.scheduler.batches import Batch, served_by
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.known_calls import KeptResults, KnownCalls
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.runtime.tools.values import Tool

CLOSED: Final = "The session was closed."

Watch = Callable[[CallChange], None]


class RunLimits(Struct, frozen=True, kw_only=True):
    """What running tools may take."""

    parallel: int = 8
    """Tools that run at once."""
    timeout: float = 120.0
    """Seconds that a tool may take, where it does not say itself."""
    grace: float = 2.0
    """Seconds that a tool which was cancelled gets to end; then it is left."""
    retries: int = 2
    """How often an idempotent tool is tried again."""
    retry_wait: float = 0.5
    """Seconds before it is; twice as long each further time."""
    max_output: int = 200_000
    """Characters of all results of one batch together."""
    max_calls: int = 128
    """In one batch; those beyond are refused."""

    def __post_init__(self) -> None:
        for name, least in (("parallel", 1), ("retries", 0), ("max_output", 1), ("max_calls", 1)):
            number = getattr(self, name)
            if type(number) is not int or number < least:
                raise InputError(f"expected a whole number from {least}, got {quote(number)}", path=name)
        for name in ("timeout", "grace", "retry_wait"):
            seconds = getattr(self, name)
            if type(seconds) not in (int, float) or not 0 <= seconds < math.inf or (name == "timeout" and not seconds):
                raise InputError(f"expected seconds, got {quote(seconds)}", path=name)


DEFAULT_RUN_LIMITS: Final = RunLimits()
_KEPT: Final = KeptResults()


class Journal(Protocol):
    """Where it is kept what was run, so that nothing is run twice, also not after a crash."""

    async def started(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """A tool with side effects is about to start. Durable when it returns."""
        ...

    async def finished(self, result: ToolResult) -> None:
        """A call is over. Durable before its result is published."""
        ...


class Scheduler:
    """Runs the tools of one session.

    tools: the tools that may be called.
    limits: how many run at once, how long each may take, how often it is tried again, how much it may return.
    approve: asked before a tool runs that is marked with `approval=True`; without it such calls are denied.
    watch: called with every change of a call's state.
    journal: keeps what was started and finished, so that nothing runs twice after a crash.
    session_id, session: what tools find in their `ToolContext`.
    _kept: how much of calls that are over is remembered.
    """

    def __init__(
        self,
        tools: ToolBox,
        *,
        limits: RunLimits = DEFAULT_RUN_LIMITS,
        approve: Approve | None = None,
        watch: Watch | None = None,
        journal: Journal | None = None,
        session_id: str = "",
        session: object | None = None,
        _kept: KeptResults = _KEPT,
    ) -> None:
        self.tools = tools
        self.limits = limits
        self.approve = approve
        self.journal = journal
        self.session_id = session_id
        self.session = session
        self.entries: list[Entry] = []
        """What was told (law 10), the newest."""
        self.abandoned = 0
        """Tools that ignored their cancellation and were left."""
        self.running = 0
        """Tools that run now, without those that were left."""
        self.tell_change: Watch | None = self._tell_change if watch is not None else None
        self._watch = watch
        self._kept = _kept
        self._known = KnownCalls(_kept)
        self._checks: dict[str, ArgumentCheck] = {}
        self._always: dict[str, Tool] = {}
        self._left: dict[leaving.Task, str] = {}
        self._held: dict[str, str] = {}
        self._current: Batch | None = None
        self._latest: Batch | None = None
        self._queue: deque[Batch] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._has_told_of_watch = False

    # --- batches ------------------------------------------------------------------------------------

    async def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls of one turn; the results of all that are not left to the caller, in call order.

        A call whose tool is only a definition is left out. Where the waiting task is cancelled the batch is too, and
        its results are there for `settled`.
        """
        for number, call in enumerate(calls):
            if not isinstance(call, ToolCall):
                raise InputError(f"expected a ToolCall, got {quote(call)}", path=f"calls[{number}]")
            if not isinstance(call.id, str) or not isinstance(call.name, str):
                raise InputError("expected texts as id and name", path=f"calls[{number}]")
        if self._current is not None and served_by.get() is self._current:
            hint = "a session of its own, by session.spawn()"
            raise InputError("a tool cannot wait for calls of its own scheduler", path="calls", hint=hint)
        batch = self._take(calls)
        try:
            await batch.ended.wait()
        except asyncio.CancelledError:
            batch.stop_for(outcomes.CANCELLED)
            with anyio.CancelScope(shield=True):
                await batch.ended.wait()
            raise
        return batch.results

    def cancel(self, reason: str = outcomes.CANCELLED) -> None:
        """Cancel whatever runs or waits now; later batches are not touched. Any thread may call it."""
        loop = self._loop
        if loop is None:
            return
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._cancel(reason)
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now: nothing runs any more
                loop.call_soon_threadsafe(self._cancel, reason)

    def stop_waiting(self) -> None:
        """Go on at once without tools that were cancelled and have not ended yet, instead of waiting `limits.grace`.

        What such a tool did is not known, and its result says so. Called in the thread of the event loop.
        """
        for batch in (self._current, *self._queue):
            if batch is not None:
                batch.stop_waiting()

    async def settled(self) -> tuple[ToolResult, ...]:
        """The results of the batch that runs, when it is over, or else of the last one. Waits also while cancelled."""
        batch = self._current or self._latest
        if batch is None:
            return ()
        with anyio.CancelScope(shield=True):
            await batch.ended.wait()
        return batch.results

    async def close(self) -> None:
        """Cancel everything; what is run after this is never started. Waits for tools that were left, but not long."""
        self._is_closed = True
        self.cancel(CLOSED)
        with anyio.CancelScope(shield=True):
            if self._tasks:
                await asyncio.wait(self._tasks)
            for task in self._left:
                task.cancel()
            if self._left:
                await asyncio.wait(self._left, timeout=self.limits.grace)

    def _take(self, calls: Sequence[ToolCall]) -> Batch:
        self._loop = asyncio.get_running_loop()
        batch = Batch(self, tuple(calls))
        if self._is_closed:
            batch.stop_for(CLOSED)
        if self._current is None:
            self._current = batch
            batch.turn.set_result(None)
        else:
            self._queue.append(batch)
        task = self._loop.create_task(batch.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return batch

    def _cancel(self, reason: str) -> None:
        for batch in (self._current, *self._queue):
            if batch is not None:
                batch.stop_for(reason)

    def over(self, batch: Batch) -> None:
        """A batch has its results: the next one has its turn."""
        for result in batch.results:
            self._known.add(result)
        if batch is not self._current:
            self._queue.remove(batch)
            return
        self._latest = batch
        self._current = self._queue.popleft() if self._queue else None
        if self._current is not None:
            self._current.turn.set_result(None)

    # --- what batches share -------------------------------------------------------------------------

    def known(self, call_id: str) -> ToolResult | None:
        """The result of a call that is over; of one that is long over, that it was run and how it ended."""
        return self._known.get(call_id)

    def forget(self, keep: Container[str]) -> None:
        """Know no other calls than these: one that was taken back may be made again, and is another one then."""
        self._known.forget([call_id for call_id in self._known if call_id not in keep])

    def check_of(self, tool: Tool) -> ArgumentCheck:
        """What holds arguments against this tool; made anew where another tool has taken its name."""
        check = self._checks.get(tool.name)
        if check is None or check.tool is not tool:
            check = self._checks[tool.name] = ArgumentCheck(tool)
        return check

    def allow_always(self, tool: Tool) -> None:
        self._always[tool.name] = tool

    def is_allowed(self, tool: Tool) -> bool:
        """Whether nobody needs to be asked. A tool that took the name of one that was always allowed is another."""
        return not tool.approval or self._always.get(tool.name) is tool

    def holder_of(self, resources: frozenset[str]) -> str | None:
        """The call that was left and may still use one of these resources."""
        return next((self._held[name] for name in sorted(resources) if name in self._held), None)

    def leave(self, task: leaving.Task, what: str, call_id: str, resources: frozenset[str] = frozenset()) -> None:
        """Go on without something that ignored its cancellation; what comes of it is told and not used."""
        self._left[task] = call_id
        self._held |= dict.fromkeys(resources, call_id)
        batch = self._current
        long = "" if batch is not None and batch.hurry.done() else f" for {self.limits.grace:g} s"
        self.tell("dropped", f"{what} ignored its cancellation{long} and was left", call_id)

        def ended(_: leaving.Task) -> None:
            del self._left[task]
            for name in resources:
                self._held.pop(name, None)
            said = leaving.outcome(task)
            how = f"failed: {outcomes.described(said.error)}" if type(said) is leaving.Raised else "ended"
            self.tell("set-aside", f"{what} that was left has {how}; this comes too late and is not used", call_id)

        task.add_done_callback(ended)

    def tell(self, action: Action, reason: str, *call_ids: str, fault: Fault = "policy") -> None:
        """Put an entry into the report; the oldest ones go where there are too many."""
        self.entries.append(Entry(action=action, reason=reason, fault=fault, call_ids=call_ids))
        if len(self.entries) > self._kept.entries:
            del self.entries[: self._kept.entries // 2]

    def _tell_change(self, change: CallChange) -> None:
        assert self._watch is not None  # noqa: S101 - for the type checker: it is only called where there is one
        try:
            self._watch(change)
        except Exception as error:  # noqa: BLE001 - whoever watches must not be able to stop what it watches
            if not self._has_told_of_watch:
                self._has_told_of_watch = True
                self.tell("dropped", f"whoever watches the calls raised {outcomes.described(error)}", change.call.id)
