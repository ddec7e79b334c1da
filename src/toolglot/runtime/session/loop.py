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
from anyio import CancelScope
from msgspec.structs import replace

from toolglot.conversation import Conversation, Failure, Options, Reply, ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.protocols.errors.failures import ProviderError, from_input_error
from toolglot.runtime.log.memory_log import Log, reopen_turn
from toolglot.runtime.log.result_shortening import shorter_versions
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.scheduler import Scheduler
from toolglot.runtime.session.compacting import (
    Cut,
    Summarise,
    call_summariser,
    estimate_tokens,
    find_cut,
    summary_request,
    summary_text,
)
from toolglot.runtime.session.events import (
    ChangeReported,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
    RunResult,
    Stop,
    TurnCommitted,
)
from toolglot.runtime.session.family import SessionFamily
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.model_call import LEFT, Prepared, call_for_turn, call_model, discard, prepare
from toolglot.runtime.session.models import ModelChoice, Models
from toolglot.runtime.session.run import SessionRun
from toolglot.runtime.session.spending import measure_reply
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.upstream import prices
from toolglot.upstream.failover import failover_entry, may_fail_over
from toolglot.upstream.protocol_choice import profile_for
from toolglot.upstream.retry import Retries

T = TypeVar("T")

MAX_REPORT_ENTRIES: Final = 500
"""Report entries that a session keeps, besides those of its history."""
SHORT_RESULT: Final = 4_000
"""Characters that remain of each result if nothing else makes a conversation fit."""
MIN_COMPRESSED_PART: Final = 0.2
"""An automatic compression must remove at least this part of the conversation."""

INTERRUPTED: Final = "Interrupted by an error."

_STOPS: Final[dict[str | None, Stop]] = {"length": "length", "filter": "filter"}


class ModelReply(NamedTuple):
    """A complete reply that is not written yet."""

    trial: Attempt
    prepared: Prepared
    reply: Reply
    cost: Decimal | None


class OpenAttempt(NamedTuple):
    """A reply that is still arriving."""

    trial: Attempt
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
        self._reported: dict[tuple[str, str, str], Entry] = {}
        self._refused_turns: frozenset[str] = frozenset()
        self._measured: tuple[str, int] | None = None
        """The key of a turn, and the tokens of the conversation up to it, as a provider counted them."""
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
        return tuple(self._reported.values())

    # --- the loop -----------------------------------------------------------------------------------

    async def run(
        self, run: SessionRun, messages: Sequence[Turn] = (), results: Sequence[ToolResult] = ()
    ) -> RunResult:
        """Run until the model calls no more tools."""
        self.scheduler.forget(self.history.ledger)  # calls that were undone since
        self._open = None
        for turn in messages:
            await self._write(self.log.add_turn(turn))
        if results:
            self._emit_committed(await self._write(self.log.publish(results)))
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
        if self._open is None or self._open.trial.state != "open" or not self._open.trial.is_whole:
            return None
        (trial, prepared), self._open = self._open, None
        return ModelReply(trial, prepared, *self._count(run, prepared.choice, trial.reply, self.conversation))

    async def _finish_turn(self, run: SessionRun, reply: ModelReply) -> RunResult | None:
        """Write a turn, run its calls, write their results. Returns the result if that was the last turn."""
        turn = await self._commit(reply.trial)
        self._measure(turn, reply.reply.usage)
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
                written = await self._write(write(fitted))
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

    async def _commit(self, trial: Attempt) -> Turn:
        """Write a reply, with all that was spent and not written yet."""
        usage, cost = self.family.take_unwritten()
        try:
            return await self._write(self.log.commit(trial, usage=usage, cost=cost))
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
            await self._write(self.log.change(lambda _: None, usage=usage, cost=cost))
        except Exception:  # noqa: BLE001 - not a reason to end a run
            self.family.add_unwritten(usage, cost)

    async def _write(self, write: Awaitable[T]) -> T:
        """Finish a write, even if this task is cancelled."""
        written: list[T] = []
        with CancelScope(shield=True):
            written.append(await write)
        return written[0]

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
        if opened is None or opened.trial.state != "open":
            return None
        trial, prepared = opened
        is_kept = trial.is_whole or (self.keep_interrupted and trial.interrupt(run.reason or INTERRUPTED))
        reply, cost = self._count(run, prepared.choice, trial.reply, self.conversation, is_answer=is_kept)
        if not is_kept:
            discard(trial, LEFT, prepared.choice.name, run.emit)
            return None
        turn = await self._commit(trial)
        run.emit(TurnCommitted(turn, reply.usage, cost))
        return ModelReply(trial, prepared, reply, cost)

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
            await self._write(self.log.record_model(self.model))
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
        self._report(run, [entry])

    async def _call_with_retries(self, run: SessionRun, name: str) -> ModelReply | Failure:
        """The reply of one model, called again as often as the limits allow."""
        choice = self.models.find(name)
        self._refuse_unpriced(choice)
        await self._shrink_if_full(run, choice)
        tries, failure = ModelAttempts(self.limits), Failure("bad_request")
        while True:
            try:
                prepared = self._prepare(choice)
            except InputError as error:
                return from_input_error(error)
            if tries.retries.was_refused(prepared.out.data):
                return failure
            found = await self._attempt(run, prepared, tries)
            if isinstance(found, ModelReply):
                return found
            failure = found
            await self.end_turn()
            if not await self._may_retry(run, prepared, failure, tries):
                return failure

    def _prepare(self, choice: ModelChoice) -> Prepared:
        return prepare(
            self.conversation,
            choice,
            policy=self.policy,
            overrides=self.overrides,
            refused=self._refused_turns,
        )

    @property
    def conversation(self) -> Conversation:
        """The conversation before it is rendered."""
        held = self.history.conversation
        return replace(held, tools=(*held.tools, *self.tools.specs), options=self.options)

    async def _attempt(self, run: SessionRun, prepared: Prepared, tries: ModelAttempts) -> ModelReply | Failure:
        tries.count += 1
        choice, target = prepared.choice, prepared.profile.name
        self.history.begin_turn(target, overrides=self.overrides)
        self._report(run, prepared.out.report.entries)
        run.emit(RequestStarted(choice.name, target, tries.count))
        trial = Attempt(self.history, issuer=prepared.destination)
        self._open = OpenAttempt(trial, prepared)
        found = await call_for_turn(
            prepared,
            trial,
            policy=self.policy,
            overrides=self.overrides,
            emit=run.emit,
            wait_for_listener=run.wait_for_listener,
        )
        self._report(run, found.entries)
        is_answer = found.failure is None
        reply, cost = self._count(run, choice, found.reply, self.conversation, is_answer=is_answer)
        return found.failure if found.failure is not None else ModelReply(trial, prepared, reply, cost)

    async def _may_retry(self, run: SessionRun, prepared: Prepared, failure: Failure, tries: ModelAttempts) -> bool:
        """Whether to call the same model again. The conversation is shortened or stripped if that helps."""
        tries.retries.add(failure, prepared.out.data)
        if tries.retries.may_shorten(failure):
            return await self._shrink(run, prepared.choice)
        if tries.retries.may_strip(failure):
            self._refused_turns |= {turn.key for turn in self.history.turns if turn.issuer is not None}
            return True
        wait = tries.retries.wait(failure)
        if wait is None:
            return False
        await anyio.sleep(wait)
        return True

    # --- counting and reporting ---------------------------------------------------------------------

    def _count(
        self, run: SessionRun, choice: ModelChoice, reply: Reply, sent: Conversation, *, is_answer: bool = True
    ) -> tuple[Reply, Decimal | None]:
        """Count what a reply cost. Returns the reply without implausible counts, and the cost."""
        spent = measure_reply(reply, sent.turns, sent.tools, is_answer=is_answer)
        target = choice.upstream.target
        self._report(run, [Entry(action="assumed", reason=note, fault="loss", target=target) for note in spent.notes])
        reply = replace(reply, usage=spent.reported)
        if spent.counted is None:
            return reply, None
        cost = _price(choice, spent.counted)
        self.family.add_usage(spent.counted, cost)
        return reply, cost

    def _refuse_unpriced(self, choice: ModelChoice) -> None:
        is_priced = choice.upstream.is_simulated or prices.LISTED.of(choice.model, choice.upstream.name) is not None
        if self.limits.max_cost is not None and not is_priced:
            raise InputError(
                f"the price of {choice.name} is unknown, and the session has a cost limit",
                path="limits.max_cost",
                hint="set max_tokens instead",
            )

    def _report(self, run: SessionRun, entries: Sequence[Entry]) -> None:
        """Report changes, each once."""
        for entry in entries:
            key = (entry.action, entry.reason, entry.target)
            if key not in self._reported and len(self._reported) < MAX_REPORT_ENTRIES:
                self._reported[key] = entry
                run.emit(ChangeReported(entry))

    # --- length and compression ---------------------------------------------------------------------

    def _measure(self, turn: Turn, usage: Usage | None) -> None:
        if usage is not None and usage.input_tokens is not None:
            self._measured = turn.key, usage.input_tokens + (usage.output_tokens or 0)

    def length(self) -> int:
        """Tokens of the conversation: as a provider counted them, plus an estimate for later turns."""
        new: list[Turn] = []
        for turn in reversed(self.history.turns):
            if self._measured is not None and turn.key == self._measured[0]:
                return self._measured[1] + estimate_tokens(new)
            new.append(turn)
        return estimate_tokens(new)

    def window(self, choice: ModelChoice) -> int | None:
        """The context window of a model in tokens; None if unknown."""
        return profile_for(choice.upstream, choice.model, self.conversation, overrides=self.overrides).context.window

    async def _shrink_if_full(self, run: SessionRun, choice: ModelChoice) -> None:
        """Compress if the conversation nears the end of the context window, and enough can be removed."""
        window = self.window(choice) if self.limits.compress_at else None
        if window is None or (length := self.length()) < self.limits.compress_at * window:
            return
        cut = find_cut(self.history, self.limits.keep_turns)
        if cut is not None and estimate_tokens(cut.turns) >= MIN_COMPRESSED_PART * length:
            await self._compress_or_report(run, choice, self.limits.keep_turns)

    async def _shrink(self, run: SessionRun, choice: ModelChoice) -> bool:
        """Shorten the conversation after the model refused it as too long; whether that worked."""
        for keep in dict.fromkeys((self.limits.keep_turns, min(2, self.limits.keep_turns))):
            if await self._compress_or_report(run, choice, keep):
                return True
        shorter = await self._write(
            self.log.change(lambda history: history.shorten_results(max_characters=SHORT_RESULT))
        )
        self._measured = None
        return shorter > 0

    async def _compress_or_report(self, run: SessionRun, choice: ModelChoice, keep: int) -> int:
        """Compress. A failed summary is reported, and the run continues."""
        cut = find_cut(self.history, keep)
        if cut is None:
            return 0
        try:
            summary = await self._summary(run, choice, cut.turns)
        except Exception as error:  # noqa: BLE001 - also what a caller's summariser raises
            reason = f"older turns were not summarised: {type(error).__name__}: {error}"
            self._report(run, [Entry(action="ignored", reason=reason[:500], fault="policy")])
            return 0
        return await self._replace_turns(run, cut, summary)

    async def compress(self, run: SessionRun, choice: ModelChoice, keep: int) -> int:
        """Replace all but the last turns by a summary; how many it replaced."""
        cut = find_cut(self.history, keep)
        return 0 if cut is None else await self._replace_turns(run, cut, await self._summary(run, choice, cut.turns))

    async def _replace_turns(self, run: SessionRun, cut: Cut, summary: str) -> int:
        text, shortest = summary_text(summary, len(cut.turns)), self.limits.max_result_characters
        await self._write(
            self.log.change(
                lambda history: history.compress(summary=text, before=cut.before, max_result_characters=shortest)
            )
        )
        self._measured = None
        run.emit(HistoryCompressed(len(cut.turns)))
        return len(cut.turns)

    async def _summary(self, run: SessionRun, choice: ModelChoice, turns: tuple[Turn, ...]) -> str:
        """A summary: by the caller's function, or by the model."""
        if self.summarise is not None:
            return await call_summariser(self.summarise, turns)
        sent = summary_request(turns, window=self.window(choice))
        prepared = prepare(sent, choice, policy=self.policy, overrides=self.overrides)
        retries = Retries(self.limits.retries, self.limits.retry_seconds)
        while True:
            found = await call_model(
                prepared,
                policy=self.policy,
                overrides=self.overrides,
                take=lambda _: None,
                wait_for_listener=run.wait_for_listener,
            )
            self._count(run, choice, found.reply, sent, is_answer=found.failure is None)
            failure = found.failure
            if failure is None and found.reply.turn.text.strip():
                return found.reply.turn.text
            failure = failure or Failure("bad_output", "the model wrote no summary")
            wait = retries.wait(failure)
            if wait is None:
                raise ProviderError(failure)
            await anyio.sleep(wait)


def _price(choice: ModelChoice, usage: Usage) -> Decimal | None:
    """US dollars; None if unknown. A simulated model costs nothing."""
    if choice.upstream.is_simulated:
        return Decimal(0)
    return prices.LISTED.cost(choice.model, usage, choice.upstream.name)
