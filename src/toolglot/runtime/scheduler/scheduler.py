"""The one way in which tools run: each session has a scheduler, which lives as long as the session.

    scheduler = Scheduler(ToolBox([read_file, write_file]), approve=ask_the_user)
    results = await scheduler.run(turn.calls)      # one for each call, in call order, whatever happens

The calls of one model turn are one batch. They are checked, approved one after another, and run in parallel; calls on
the same resource run one after another. A task of the batch serves each call, and the tool itself runs in another
task, because a tool that ignores its cancellation is abandoned and must take nothing with it.

Laws: every call reaches exactly one final state. A tool that fails is a result. Nothing runs that was not checked,
allowed and, if it has side effects, recorded; nothing runs twice. `cancel` ends a batch within `limits.grace`,
whatever the tools do, unless the journal hangs.
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
from toolglot.runtime.scheduler import abandonable, outcomes
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.scheduler.argument_checks import ArgumentCheck
from toolglot.runtime.scheduler.batches import Batch, current_batch
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.known_calls import KnownCallLimits, KnownCalls
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.runtime.tools.values import Tool

CLOSED: Final = "The session was closed."

Watch = Callable[[CallChange], None]


class RunLimits(Struct, frozen=True, kw_only=True):
    """Limits for running tools."""

    parallel: int = 8
    """Tools that run at once."""
    timeout: float = 120.0
    """Seconds that a tool may take, unless it has its own `timeout`."""
    grace: float = 2.0
    """Seconds that a cancelled tool gets to end before it is abandoned."""
    retries: int = 2
    """How often an idempotent tool is retried."""
    retry_wait: float = 0.5
    """Seconds before the first retry; doubled each time."""
    max_output: int = 200_000
    """Characters of all results of one batch together."""
    max_calls: int = 128
    """Calls in one batch; more are refused."""

    def __post_init__(self) -> None:
        for name, minimum in (("parallel", 1), ("retries", 0), ("max_output", 1), ("max_calls", 1)):
            number = getattr(self, name)
            if type(number) is not int or number < minimum:
                raise InputError(f"expected a whole number from {minimum}, got {quote(number)}", path=name)
        for name in ("timeout", "grace", "retry_wait"):
            seconds = getattr(self, name)
            if type(seconds) not in (int, float) or not 0 <= seconds < math.inf or (name == "timeout" and not seconds):
                raise InputError(f"expected seconds, got {quote(seconds)}", path=name)


DEFAULT_RUN_LIMITS: Final = RunLimits()
_DEFAULT_MEMORY: Final = KnownCallLimits()


class Journal(Protocol):
    """Records what runs, so that nothing runs twice, even after a crash."""

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """A tool with side effects is about to start. The record is durable when this returns."""
        ...

    async def record_result(self, result: ToolResult) -> None:
        """A call has ended. The record is durable before the result is published."""
        ...


class Scheduler:
    """Runs the tools of one session.

    tools: the tools that may be called.
    limits: how many run at once, how long each may take, how often it is retried, how much it may return.
    approve: called before a tool runs that is marked with `approval=True`; without it such calls are denied.
    watch: called with every change of a call's state.
    journal: records starts and results, so that nothing runs twice after a crash.
    session_id, session: passed to tools in their `ToolContext`.
    _memory: how much is remembered of finished calls.
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
        _memory: KnownCallLimits = _DEFAULT_MEMORY,
    ) -> None:
        self.tools = tools
        self.limits = limits
        self.approve = approve
        self.journal = journal
        self.session_id = session_id
        self.session = session
        self.entries: list[Entry] = []
        """The report (law 10): its newest entries."""
        self.abandoned = 0
        """How many tools ignored their cancellation and were abandoned."""
        self.running = 0
        """How many tools run now, without abandoned ones."""
        self.notify_change: Watch | None = self._notify_change if watch is not None else None
        self._watch = watch
        self._memory = _memory
        self._known = KnownCalls(_memory)
        self._checks: dict[str, ArgumentCheck] = {}
        self._always: dict[str, Tool] = {}
        self._abandoned_tasks: dict[abandonable.Task, str] = {}
        self._held_resources: dict[str, str] = {}
        self._current: Batch | None = None
        self._latest: Batch | None = None
        self._queue: deque[Batch] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._has_reported_watch = False

    # --- batches ------------------------------------------------------------------------------------

    async def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls of one turn, and return their results in call order.

        Calls of tools without a function are left out: the caller runs them. Cancelling the waiting task cancels the
        batch; `last_results` then has the results.
        """
        for number, call in enumerate(calls):
            if not isinstance(call, ToolCall):
                raise InputError(f"expected a ToolCall, got {quote(call)}", path=f"calls[{number}]")
            if not isinstance(call.id, str) or not isinstance(call.name, str):
                raise InputError("expected strings as id and name", path=f"calls[{number}]")
        if self._current is not None and current_batch.get() is self._current:
            hint = "use another session: session.spawn()"
            raise InputError("a tool cannot wait for calls of its own scheduler", path="calls", hint=hint)
        batch = self._enqueue(calls)
        try:
            await batch.ended.wait()
        except asyncio.CancelledError:
            batch.stop_for(outcomes.CANCELLED)
            with anyio.CancelScope(shield=True):
                await batch.ended.wait()
            raise
        return batch.results

    def cancel(self, reason: str = outcomes.CANCELLED) -> None:
        """Cancel everything that runs or waits now, but no later batch. Any thread may call it."""
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
            with contextlib.suppress(RuntimeError):  # the loop has just been closed: nothing runs any more
                loop.call_soon_threadsafe(self._cancel, reason)

    def stop_waiting(self) -> None:
        """Do not wait `limits.grace` for cancelled tools that have not ended yet.

        What such a tool did is not known, and its result says so. Call it in the thread of the event loop.
        """
        for batch in (self._current, *self._queue):
            if batch is not None:
                batch.stop_waiting()

    async def last_results(self) -> tuple[ToolResult, ...]:
        """Wait for the current batch and return its results; those of the last batch if none runs.

        It also waits while the task is being cancelled.
        """
        batch = self._current or self._latest
        if batch is None:
            return ()
        with anyio.CancelScope(shield=True):
            await batch.ended.wait()
        return batch.results

    async def close(self) -> None:
        """Cancel everything. Later calls never start. Waits for abandoned tools, but no longer than `limits.grace`."""
        self._is_closed = True
        self.cancel(CLOSED)
        with anyio.CancelScope(shield=True):
            if self._tasks:
                await asyncio.wait(self._tasks)
            for task in self._abandoned_tasks:
                task.cancel()
            if self._abandoned_tasks:
                await asyncio.wait(self._abandoned_tasks, timeout=self.limits.grace)

    def _enqueue(self, calls: Sequence[ToolCall]) -> Batch:
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

    def finish_batch(self, batch: Batch) -> None:
        """A batch has its results: the next one may start."""
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

    def known_result(self, call_id: str) -> ToolResult | None:
        """The result of a finished call; for an old one, only that it ran and how it ended."""
        return self._known.get(call_id)

    def forget(self, keep: Container[str]) -> None:
        """Forget all other calls: a call that was undone may come again, and is a new one then."""
        self._known.forget([call_id for call_id in self._known if call_id not in keep])

    def argument_check(self, tool: Tool) -> ArgumentCheck:
        """The check for a tool's arguments; a new one if another tool has taken its name."""
        check = self._checks.get(tool.name)
        if check is None or check.tool is not tool:
            check = self._checks[tool.name] = ArgumentCheck(tool)
        return check

    def allow_always(self, tool: Tool) -> None:
        self._always[tool.name] = tool

    def is_allowed(self, tool: Tool) -> bool:
        """Whether the tool needs no approval. `AllowAlways` does not cover another tool that takes the same name."""
        return not tool.approval or self._always.get(tool.name) is tool

    def resource_holder(self, resources: frozenset[str]) -> str | None:
        """The abandoned call that may still use one of these resources."""
        return next((self._held_resources[name] for name in sorted(resources) if name in self._held_resources), None)

    def abandon(self, task: abandonable.Task, what: str, call_id: str, resources: frozenset[str] = frozenset()) -> None:
        """Stop waiting for a task that ignored its cancellation. Its outcome is reported and not used."""
        self._abandoned_tasks[task] = call_id
        self._held_resources |= dict.fromkeys(resources, call_id)
        batch = self._current
        duration = "" if batch is not None and batch.skip_grace.done() else f" for {self.limits.grace:g} s"
        self.report("dropped", f"{what} ignored its cancellation{duration} and was abandoned", call_id)

        def on_end(_: abandonable.Task) -> None:
            del self._abandoned_tasks[task]
            for name in resources:
                self._held_resources.pop(name, None)
            outcome = abandonable.outcome(task)
            how = "ended"
            if type(outcome) is abandonable.Raised:
                how = f"failed: {outcomes.describe_error(outcome.error)}"
            self.report("set-aside", f"{what} that was abandoned has {how}; this is too late and is not used", call_id)

        task.add_done_callback(on_end)

    def report(self, action: Action, reason: str, *call_ids: str, fault: Fault = "policy") -> None:
        """Add an entry to the report. If there are too many, the oldest are dropped."""
        self.entries.append(Entry(action=action, reason=reason, fault=fault, call_ids=call_ids))
        if len(self.entries) > self._memory.entries:
            del self.entries[: self._memory.entries // 2]

    def _notify_change(self, change: CallChange) -> None:
        assert self._watch is not None  # noqa: S101 - for the type checker: it is only called where there is one
        try:
            self._watch(change)
        except Exception as error:  # noqa: BLE001 - a watcher must not be able to stop the calls
            if not self._has_reported_watch:
                self._has_reported_watch = True
                self.report("dropped", f"the watch callback raised {outcomes.describe_error(error)}", change.call.id)
