"""The loop of a session: call a model, run its calls, send their results back, until it calls no more tools.

    add messages ──▶ ( call ──▶ commit ──▶ run all calls ──▶ publish ──▶ end the turn )* ──▶ result

Every way to run a session uses this loop. Only results go back to the model. Every write goes through the session's
log, and a reply is written only when it is complete or the run is stopped.

Laws: a turn stays with the provider that began it until its results are there. After a run is stopped every call in
the history has its result: the tool's own if there is one, even if the log could not write it at first. Of an
interrupted reply the text is kept and marked, and none of its calls runs. A request that was refused because of its
content is not sent again unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

import anyio
from msgspec.structs import replace

from toolglot.conversation import Conversation, Failure, Options, Reply, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.protocols.errors.failures import from_input_error
from toolglot.runtime.log.memory_log import Log, reopen_turn
from toolglot.runtime.log.result_shortening import shorter_versions
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.scheduler import Scheduler
from toolglot.runtime.session.compacting import (
    Summarise,
)
from toolglot.runtime.session.compressor import Compressor
from toolglot.runtime.session.events import (
    ChangeReported,
    ModelSwitched,
    RequestStarted,
    RunResult,
    Stop,
    TurnCommitted,
)
from toolglot.runtime.session.family import SessionFamily
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.model_call import RUN_STOPPED, Prepared, call_for_turn, discard, prepare
from toolglot.runtime.session.models import ModelChoice, Models
from toolglot.runtime.session.run import SessionRun, finish_write
from toolglot.runtime.session.spending import SessionAccounts, refuse_unpriced
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.upstream.failover import failover_entry, may_fail_over
from toolglot.upstream.retry import Retries

T = TypeVar("T")

INTERRUPTED: Final = "Interrupted by an error."

_STOPS: Final[dict[str | None, Stop]] = {"length": "length", "filter": "filter"}


class ModelReply(NamedTuple):
    """A complete reply that is not written yet."""

    attempt: Attempt
    prepared: Prepared
    reply: Reply
    cost: Decimal | None


class OpenAttempt(NamedTuple):
    """A reply that is still arriving."""

    attempt: Attempt
    prepared: Prepared


class ModelAttempts:
    """What was tried to get a reply of one model."""

    __slots__ = ("count", "retries")

    def __init__(self, limits: SessionLimits) -> None:
        self.count: int = 0
        self.retries = Retries(limits.retries, limits.retry_seconds)


class Loop:
    """Runs the turns of a session. It keeps what outlives a run: the model, and what providers refused."""

    def __init__(
        self,
        *,
        log: Log,
        models: Models,
        model: str,
        tools: ToolBox,
        scheduler: Scheduler,
        fallback: Sequence[str],
        options: Options,
        policy: Policy,
        overrides: Overrides | None,
        limits: SessionLimits,
        summarise: Summarise | None,
        family: SessionFamily,
        keep_interrupted: bool = True,
    ) -> None:
        self.log = log
        self.models = models
        self.model: str = model
        """The model that is called next."""
        self.chosen: str = model
        """The model that was chosen; a fallback may have replaced it."""
        self.tools = tools
        self.scheduler = scheduler
        self.fallback: tuple[str, ...] = tuple(fallback)
        self.options = options
        self.policy = policy
        self.overrides = overrides
        self.limits = limits
        self.summarise = summarise
        self.family = family
        self.keep_interrupted = keep_interrupted
        self._open: OpenAttempt | None = None
        self._accounts = SessionAccounts(family)
        self._compressor = Compressor(
            log=log,
            limits=limits,
            policy=policy,
            overrides=overrides,
            summarise=summarise,
            accounts=self._accounts,
            conversation=lambda: self.conversation,
        )
        self._refused_turns: frozenset[str] = frozenset()
        self._logged_model = model
        self._runs_tools = False
        self._caller_calls: frozenset[str] = frozenset()
        """The calls whose results the caller supplies."""

    @property
    def history(self) -> History:
        return self.log.history

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was changed on the way to and from providers."""
        return self._accounts.entries

    # --- the loop -----------------------------------------------------------------------------------

    async def run(
        self, run: SessionRun, messages: Sequence[Turn] = (), results: Sequence[ToolResult] = ()
    ) -> RunResult:
        """Run until the model calls no more tools."""
        self.scheduler.forget(self.history.ledger)  # calls that were undone since
        self._open = None
        for turn in messages:
            await finish_write(self.log.add_turn(turn))
        if results:
            self._emit_committed(await finish_write(self.log.publish(results)))
            if result := self._open_calls_result(run, None):
                return result
            await self.end_turn()
        last: ModelReply | None = None
        for _ in range(self.limits.max_turns):
            if self.family.is_overspent():
                return self._result(run, last, "budget")
            reply = await self._get_reply(run)
            if isinstance(reply, Failure):
                return self._result(run, last, "failed", failure=reply)
            if reply is None:
                return await self.finish_stopped(run, await self.keep_open_attempt(run) or last)
            last = reply
            ended = await self._finish_turn(run, reply)
            if ended is not None:
                return ended
        return self._result(run, last, "loop_limit")

    async def _get_reply(self, run: SessionRun) -> ModelReply | Failure | None:
        """A complete reply, or why there is none; None if the run was stopped before."""
        if run.is_stopping:
            return None
        found: ModelReply | Failure | None = None
        with run.cancellable():
            found = await self._call(run)
        if isinstance(found, ModelReply):
            self._open = None
            return found
        return self._whole_attempt(run) if run.is_stopping else found

    def _whole_attempt(self, run: SessionRun) -> ModelReply | None:
        """A reply that was completed just before the run was stopped."""
        if self._open is None or self._open.attempt.state != "open" or not self._open.attempt.is_whole:
            return None
        (attempt, prepared), self._open = self._open, None
        return ModelReply(
            attempt, prepared, *self._accounts.count(run, prepared.choice, attempt.reply, self.conversation)
        )

    async def _finish_turn(self, run: SessionRun, reply: ModelReply) -> RunResult | None:
        """Write a turn, run its calls, write their results. Returns the result if that was the last turn."""
        turn = await self._commit(reply.attempt)
        self._compressor.measure(turn, reply.reply.usage)
        run.emit(TurnCommitted(turn, reply.reply.usage, reply.cost))
        pending = {found.id for found in self.history.ledger.pending}
        calls = [call for call in turn.calls if call.id in pending]
        if calls:
            results = await self._run_tools(run, calls)
            await self.write_spending()  # of subagents
            await self._publish(results)
        if run.is_stopping:
            return await self.finish_stopped(run, reply)
        if result := self._open_calls_result(run, reply):
            return result
        await self.end_turn()
        if calls or reply.reply.stop == "pause":
            return None
        return self._result(run, reply, _STOPS.get(reply.reply.stop, "stop"))

    def _open_calls_result(self, run: SessionRun, reply: ModelReply | None) -> RunResult | None:
        """The result with the calls that the caller runs; None if there are none."""
        calls = self.open_calls()
        self._caller_calls = frozenset(call.id for call in calls)
        return self._result(run, reply, "calls_open", calls=calls) if calls else None

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last turn that wait for the caller, also in a reopened history."""
        last = self._last_turn()
        own = {call.id for call in last.calls} if last is not None else set()
        return tuple(found.call for found in self.history.ledger.pending if found.id in own)

    async def _run_tools(self, run: SessionRun, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls of a turn. If this is cancelled, `end_turn` writes their results."""
        self._runs_tools = True
        try:
            if run.is_stopping:  # before the batch begins: none of its calls starts
                asyncio.get_running_loop().call_soon(self.scheduler.cancel, run.reason or "")
            return await self.scheduler.run(calls)
        finally:
            self._runs_tools = False

    def _emit_committed(self, turn: Turn | None) -> None:
        if turn is not None and self.family.run is not None:
            self.family.run.emit(TurnCommitted(turn))

    async def _publish(self, results: Sequence[ToolResult]) -> None:
        self._emit_committed(await self._write_fitting(results, self.log.publish))

    async def _write_fitting(
        self, results: Sequence[ToolResult], write: Callable[[Sequence[ToolResult]], Awaitable[T]]
    ) -> T:
        """Write results. If they are too large together, the largest are shortened."""
        problem: InputError | None = None
        for fitted, cut in shorter_versions(results):
            try:
                written = await finish_write(write(fitted))
            except InputError as error:
                problem = error
                continue
            if cut:
                reason = f"results were too large to be kept as they were, and were shortened ({problem})"
                entry = Entry(action="compressed", reason=reason[:500], fault="loss", call_ids=cut)
                self.history.add_entry(entry)
                if self.family.run is not None:
                    self.family.run.emit(ChangeReported(entry))
            return written
        raise problem or InputError("there is nothing to write")

    async def _commit(self, attempt: Attempt) -> Turn:
        """Write a reply, with all that was spent and not written yet."""
        usage, cost = self.family.take_unwritten()
        try:
            return await finish_write(self.log.commit(attempt, usage=usage, cost=cost))
        except Exception:
            self.family.add_unwritten(usage, cost)
            raise

    async def write_spending(self) -> None:
        """Write what was spent apart from replies of this conversation. If that fails, it is written with the next
        reply."""
        usage, cost = self.family.take_unwritten()
        if usage is None and cost is None:
            return
        try:
            await finish_write(self.log.change(lambda _: None, usage=usage, cost=cost))
        except Exception:  # noqa: BLE001 - not a reason to end a run
            self.family.add_unwritten(usage, cost)

    # --- stopping -----------------------------------------------------------------------------------

    def stop(self, run: SessionRun, reason: str) -> None:
        """Stop a run: the call of a model is cancelled, and the scheduler cancels its tools."""
        run.stop(reason)
        if self._runs_tools:
            self.scheduler.cancel(reason)

    async def finish_stopped(self, run: SessionRun, last: ModelReply | None = None) -> RunResult:
        """End a run that was stopped: no turn is open, and every call has its result."""
        await self.end_turn(run.reason or "")
        return self._result(run, last, "cancelled")

    async def keep_open_attempt(self, run: SessionRun) -> ModelReply | None:
        """Keep the text of an interrupted reply, if there is any."""
        opened, self._open = self._open, None
        if opened is None or opened.attempt.state != "open":
            return None
        attempt, prepared = opened
        is_kept = attempt.is_whole or (self.keep_interrupted and attempt.interrupt(run.reason or INTERRUPTED))
        reply, cost = self._accounts.count(run, prepared.choice, attempt.reply, self.conversation, is_answer=is_kept)
        if not is_kept:
            discard(attempt, RUN_STOPPED, prepared.choice.name, run.emit)
            return None
        turn = await self._commit(attempt)
        run.emit(TurnCommitted(turn, reply.usage, cost))
        return ModelReply(attempt, prepared, reply, cost)

    async def end_turn(self, reason: str = "") -> None:
        """End the open turn, if there is one. Calls without a result get their tool's; the others never started, or the
        caller runs them, and are cancelled."""
        await self._write_fitting(await self._known_results(reason), lambda results: self.log.end_turn(reason, results))

    async def write_missing_results(self) -> None:
        """Write the results that the log refused when it failed. A turn with calls of the caller stays open: its other
        calls have their results."""
        open_turn = self.history.in_flight
        if open_turn is not None and not any(found.id in self._caller_calls for found in open_turn.pending):
            await self.end_turn(INTERRUPTED)

    def reopen(self) -> None:
        """Reopen the last turn of a history from elsewhere: the caller runs its open calls."""
        reopen_turn(self.history)
        self._caller_calls = frozenset(call.id for call in self.open_calls())

    async def _known_results(self, reason: str) -> list[ToolResult]:
        """The results of the open calls that the caller does not run."""
        open_turn = self.history.in_flight
        pending = open_turn.pending if open_turn is not None else ()
        left = [found.call for found in pending if found.id not in self._caller_calls]
        if not left:
            return []
        last = {result.call_id: result for result in await self.scheduler.last_results()}
        known = self.scheduler.known_result
        return [last.get(call.id) or known(call.id) or outcomes.not_started(call, reason) for call in left]

    def _result(
        self,
        run: SessionRun,
        last: ModelReply | None,
        stop: Stop,
        *,
        calls: tuple[ToolCall, ...] = (),
        failure: Failure | None = None,
    ) -> RunResult:
        turn = self._last_turn() if last is not None or calls else None
        return RunResult(
            text=turn.text if turn is not None else "",
            turn=turn,
            stop=stop,
            calls=calls,
            usage=run.total.usage,
            cost=run.total.cost,
            failure=failure,
            model=last.prepared.choice.name if last is not None else self.model,
        )

    def _last_turn(self) -> Turn | None:
        """The last turn of a model."""
        return next((turn for turn in reversed(self.history.turns) if turn.role == "assistant"), None)

    # --- calling a model ----------------------------------------------------------------------------

    def switch(self, name: str) -> str:
        """Choose the model from the next turn on; its full name."""
        choice = self.models.find(name)
        self.model = self.chosen = choice.name
        self.history.switch(choice.upstream.target, overrides=self.overrides)
        return choice.name

    def candidates(self) -> tuple[str, ...]:
        """The models that are called, one after the other, until one answers."""
        return tuple(dict.fromkeys((self.model, self.chosen, *self.fallback)))

    async def _call(self, run: SessionRun) -> ModelReply | Failure:
        """The reply of the first model that gives one."""
        if self._logged_model != self.model:
            await finish_write(self.log.record_model(self.model))
            self._logged_model = self.model
        failure = Failure("server", "no model was called")
        before, chosen = "", self.chosen
        for name in self.candidates():
            if before:
                self._report_fallback(run, before, name, failure)
            found = await self._call_with_retries(run, name)
            if isinstance(found, ModelReply):
                if before and self.chosen is chosen:  # unless another model was chosen meanwhile
                    self.model = name
                return found
            failure, before = found, name
            if not may_fail_over(failure):
                break
        return failure

    def _report_fallback(self, run: SessionRun, before: str, after: str, failure: Failure) -> None:
        entry = failover_entry(before, after, failure.kind, after.partition("/")[0])
        run.emit(ModelSwitched(before, after, entry.reason))
        self._accounts.report(run, [entry])

    async def _call_with_retries(self, run: SessionRun, name: str) -> ModelReply | Failure:
        """The reply of one model, called again as often as the limits allow."""
        choice = self.models.find(name)
        refuse_unpriced(choice, self.limits.max_cost)
        await self._compressor.shrink_if_full(run, choice)
        attempts, failure = ModelAttempts(self.limits), Failure("bad_request")
        while True:
            try:
                prepared = self._prepare(choice)
            except InputError as error:
                return from_input_error(error)
            if attempts.retries.was_refused(prepared.out.data):
                return failure
            found = await self._attempt(run, prepared, attempts)
            if isinstance(found, ModelReply):
                return found
            failure = found
            await self.end_turn()
            if not await self._may_retry(run, prepared, failure, attempts):
                return failure

    def _prepare(self, choice: ModelChoice) -> Prepared:
        return prepare(
            self.conversation,
            choice,
            policy=self.policy,
            overrides=self.overrides,
            refused=self._refused_turns,
        )

    async def compress(self, run: SessionRun, choice: ModelChoice) -> int:
        """Replace all but the last turns by a summary; how many it replaced."""
        return await self._compressor.compress(run, choice)

    @property
    def conversation(self) -> Conversation:
        """The conversation before it is rendered."""
        held = self.history.conversation
        return replace(held, tools=(*held.tools, *self.tools.specs), options=self.options)

    async def _attempt(self, run: SessionRun, prepared: Prepared, attempts: ModelAttempts) -> ModelReply | Failure:
        attempts.count += 1
        choice, target = prepared.choice, prepared.profile.name
        self.history.begin_turn(target, overrides=self.overrides)
        self._accounts.report(run, prepared.out.report.entries)
        run.emit(RequestStarted(choice.name, target, attempts.count))
        attempt = Attempt(self.history, issuer=prepared.destination)
        self._open = OpenAttempt(attempt, prepared)
        found = await call_for_turn(
            prepared,
            attempt,
            policy=self.policy,
            overrides=self.overrides,
            emit=run.emit,
            wait_for_listener=run.wait_for_listener,
        )
        self._accounts.report(run, found.entries)
        is_answer = found.failure is None
        reply, cost = self._accounts.count(run, choice, found.reply, self.conversation, is_answer=is_answer)
        return found.failure if found.failure is not None else ModelReply(attempt, prepared, reply, cost)

    async def _may_retry(self, run: SessionRun, prepared: Prepared, failure: Failure, attempts: ModelAttempts) -> bool:
        """Whether to call the same model again. The conversation is shortened or stripped if that helps."""
        attempts.retries.add(failure, prepared.out.data)
        if attempts.retries.may_shorten(failure):
            return await self._compressor.shrink(run, prepared.choice)
        if attempts.retries.may_strip(failure):
            self._refused_turns |= {turn.key for turn in self.history.turns if turn.issuer is not None}
            return True
        wait = attempts.retries.wait(failure)
        if wait is None:
            return False
        await anyio.sleep(wait)
        return True
