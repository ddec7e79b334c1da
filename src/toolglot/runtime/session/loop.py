"""The one loop of a session: a model is asked, its calls are run, their results go back, until it calls no more.

    say ──▶ ( ask ──▶ commit ──▶ run all calls ──▶ publish ──▶ land )* ──▶ answer

Every mode runs this loop and none other. Only results go back to the model. Every write goes through the session's
log; nothing that a model began to say is written before it is whole, or the run is stopped.

Laws: a turn stays with the provider that began it, until its results are there. A run that is stopped leaves a
history in which every call has its result: the one that its tool gave, where there is one, also when the log could not
take it at first. Of an answer that was interrupted the text is kept and marked, and none of its calls is run. What a
provider refused for what it says is not sent again as it was.
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
from toolglot.runtime.session.branch import SessionFamily
from toolglot.runtime.session.compacting import (
    Cut,
    Summarise,
    cut_of,
    estimated_tokens,
    summarised,
    summary_of,
    summary_request,
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
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.model_call import LEFT, Prepared, call_for_turn, call_model, drop, prepare
from toolglot.runtime.session.models import ModelChoice, Models
from toolglot.runtime.session.run import SessionRun
from toolglot.runtime.session.spending import took
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.upstream import prices
from toolglot.upstream.failover import failover_entry, may_fail_over
from toolglot.upstream.protocol_choice import profile_for
from toolglot.upstream.retry import Retries

T = TypeVar("T")

MOST_TOLD: Final = 500
"""Entries of a report that a session keeps beside those of its history."""
SHORT_RESULT: Final = 4_000
"""Characters that are left of each result where nothing else makes a conversation fit."""
WORTH: Final = 0.2
"""The part of a full context that a summary has to take the place of, to be asked for without being told to."""

INTERRUPTED: Final = "Interrupted by an error."

_STOPS: Final[dict[str | None, Stop]] = {"length": "length", "filter": "filter"}


class ModelReply(NamedTuple):
    """An answer that is whole and not yet written."""

    trial: Attempt
    prepared: Prepared
    reply: Reply
    cost: Decimal | None


class OpenAttempt(NamedTuple):
    """An answer that is coming."""

    trial: Attempt
    prepared: Prepared


class ModelAttempts:
    """What was tried to get a reply of one model."""

    __slots__ = ("count", "has_shrunk", "retries")

    def __init__(self, limits: SessionLimits) -> None:
        self.count: int = 0
        self.has_shrunk: bool = False
        self.retries = Retries(limits.retries, limits.retry_seconds)


class Loop:
    """Runs a session's turns. Its state is what outlives a run: the model, and what providers were found to refuse."""

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
        branch: SessionFamily,
        keep_interrupted: bool = True,
    ) -> None:
        self.log = log
        self.models = models
        self.model: str = model
        """Who is asked next."""
        self.chosen: str = model
        """Who was chosen; a fallback may have taken its place."""
        self.tools = tools
        self.scheduler = scheduler
        self.fallback: tuple[str, ...] = tuple(fallback)
        self.options = options
        self.policy = policy
        self.overrides = overrides
        self.limits = limits
        self.summarise = summarise
        self.branch = branch
        self.keep_interrupted = keep_interrupted
        self._open: OpenAttempt | None = None
        self._told: dict[tuple[str, str, str], Entry] = {}
        self._refused_turns: frozenset[str] = frozenset()
        self._measured: tuple[str, int] | None = None
        """How many tokens the conversation was up to a turn, as a provider counted them."""
        self._logged_model = model
        self._runs_tools = False
        self._given_out: frozenset[str] = frozenset()
        """The calls whose results the caller gives."""

    @property
    def history(self) -> History:
        return self.log.history

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was changed on the way to and from providers."""
        return tuple(self._told.values())

    # --- the loop -----------------------------------------------------------------------------------

    async def run(self, flight: SessionRun, said: Sequence[Turn] = (), results: Sequence[ToolResult] = ()) -> RunResult:
        """Go on until the model calls no more tools."""
        self.scheduler.forget(self.history.ledger)  # what was taken back since
        self._open = None
        for turn in said:
            await self._written(self.log.add_turn(turn))
        if results:
            self._tell_kept(await self._written(self.log.publish(results)))
            if answer := self._still_open(flight, None):
                return answer
            await self.land()
        last: ModelReply | None = None
        for _ in range(self.limits.max_turns):
            if self.branch.is_overspent():
                return self._answer(flight, last, "budget")
            asked = await self._asked(flight)
            if isinstance(asked, Failure):
                return self._answer(flight, last, "failed", failure=asked)
            if asked is None:
                return await self.settled(flight, await self.keep_open_attempt(flight) or last)
            last = asked
            ended = await self._finished(flight, asked)
            if ended is not None:
                return ended
        return self._answer(flight, last, "loop_limit")

    async def _asked(self, flight: SessionRun) -> ModelReply | Failure | None:
        """A whole answer, or why there is none; None: the run was stopped before there was one."""
        if flight.is_stopping:
            return None
        found: ModelReply | Failure | None = None
        with flight.leavable():
            found = await self._call(flight)
        if isinstance(found, ModelReply):
            self._open = None
            return found
        return self._whole_attempt(flight) if flight.is_stopping else found

    def _whole_attempt(self, flight: SessionRun) -> ModelReply | None:
        """An answer that was finished just before the run was stopped."""
        if self._open is None or self._open.trial.state != "open" or not self._open.trial.is_whole:
            return None
        (trial, prepared), self._open = self._open, None
        return ModelReply(trial, prepared, *self._counted(flight, prepared.choice, trial.reply, self.conversation))

    async def _finished(self, flight: SessionRun, asked: ModelReply) -> RunResult | None:
        """Write a turn, run its calls, write their results. The answer, where that was the last turn."""
        turn = await self._committed(asked.trial)
        self._measure(turn, asked.reply.usage)
        flight.tell(TurnCommitted(turn, asked.reply.usage, asked.cost))
        pending = {found.id for found in self.history.ledger.pending}
        calls = [call for call in turn.calls if call.id in pending]
        if calls:
            results = await self._run_tools(flight, calls)
            await self.write_spending()  # of subagents
            await self._publish(results)
        if flight.is_stopping:
            return await self.settled(flight, asked)
        if answer := self._still_open(flight, asked):
            return answer
        await self.land()
        if calls or asked.reply.stop == "pause":
            return None
        return self._answer(flight, asked, _STOPS.get(asked.reply.stop, "stop"))

    def _still_open(self, flight: SessionRun, asked: ModelReply | None) -> RunResult | None:
        """The answer with the calls that whoever asked runs; None: there are none."""
        calls = self.open_calls()
        self._given_out = frozenset(call.id for call in calls)
        return self._answer(flight, asked, "calls_open", calls=calls) if calls else None

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last turn that wait for the caller, also those of a history that was opened again."""
        last = self._last_turn()
        own = {call.id for call in last.calls} if last is not None else set()
        return tuple(found.call for found in self.history.ledger.pending if found.id in own)

    async def _run_tools(self, flight: SessionRun, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """The results of a whole turn's calls, whatever happens. Where this is cancelled they are written as the turn
        is ended."""
        self._runs_tools = True
        try:
            if flight.is_stopping:  # before the first step of the batch: none of its calls is started
                asyncio.get_running_loop().call_soon(self.scheduler.cancel, flight.reason or "")
            return await self.scheduler.run(calls)
        finally:
            self._runs_tools = False

    def _tell_kept(self, turn: Turn | None) -> None:
        if turn is not None and self.branch.flight is not None:
            self.branch.flight.tell(TurnCommitted(turn))

    async def _publish(self, results: Sequence[ToolResult]) -> None:
        self._tell_kept(await self._fitting(results, self.log.publish))

    async def _fitting(self, results: Sequence[ToolResult], write: Callable[[Sequence[ToolResult]], Awaitable[T]]) -> T:
        """Write results. Where they are too large together, the largest ones are shortened."""
        problem: InputError | None = None
        for fitted, cut in shorter_versions(results):
            try:
                written = await self._written(write(fitted))
            except InputError as error:
                problem = error
                continue
            if cut:
                reason = f"results were too large to be kept as they were, and were shortened ({problem})"
                entry = Entry(action="compressed", reason=reason[:500], fault="loss", call_ids=cut)
                self.history.tell(entry)
                if self.branch.flight is not None:
                    self.branch.flight.tell(ChangeReported(entry))
            return written
        raise problem or InputError("there is nothing to write")

    async def _committed(self, trial: Attempt) -> Turn:
        """Write a model's answer, with all that was spent until now."""
        usage, cost = self.branch.take_unwritten()
        try:
            return await self._written(self.log.commit(trial, usage=usage, cost=cost))
        except Exception:
            self.branch.owe(usage, cost)
            raise

    async def write_spending(self) -> None:
        """Have in the log what was spent for something else than an answer of the conversation. What it does not take
        now it gets with the next answer."""
        usage, cost = self.branch.take_unwritten()
        if usage is None and cost is None:
            return
        try:
            await self._written(self.log.change(lambda _: None, usage=usage, cost=cost))
        except Exception:  # noqa: BLE001 - it is no reason to end a run
            self.branch.owe(usage, cost)

    async def _written(self, write: Awaitable[T]) -> T:
        """What a write gives. A write is never left half done."""
        written: list[T] = []
        with CancelScope(shield=True):
            written.append(await write)
        return written[0]

    # --- stopping -----------------------------------------------------------------------------------

    def stop(self, flight: SessionRun, reason: str) -> None:
        """Stop a run: what is asked is left, what runs is cancelled by the scheduler."""
        flight.stop(reason)
        if self._runs_tools:
            self.scheduler.cancel(reason)

    async def settled(self, flight: SessionRun, last: ModelReply | None = None) -> RunResult:
        """The end of a run that was stopped: no turn is in flight, no call without its result."""
        await self.land(flight.reason or "")
        return self._answer(flight, last, "cancelled")

    async def keep_open_attempt(self, flight: SessionRun) -> ModelReply | None:
        """Keep what a model said until it was interrupted, if there is anything to keep."""
        opened, self._open = self._open, None
        if opened is None or opened.trial.state != "open":
            return None
        trial, prepared = opened
        is_kept = trial.is_whole or (self.keep_interrupted and trial.interrupt(flight.reason or INTERRUPTED))
        reply, cost = self._counted(flight, prepared.choice, trial.reply, self.conversation, is_answer=is_kept)
        if not is_kept:
            drop(trial, LEFT, prepared.choice.name, flight.tell)
            return None
        turn = await self._committed(trial)
        flight.tell(TurnCommitted(turn, reply.usage, cost))
        return ModelReply(trial, prepared, reply, cost)

    async def land(self, reason: str = "") -> None:
        """End the turn in flight, if there is one. Calls without a result get the one that their tools gave; the others
        were never started, or are the caller's and are cancelled."""
        await self._fitting(await self._known(reason), lambda results: self.log.end_turn(reason, results))

    async def settle(self) -> None:
        """Put in order what a log that failed has left: write the results that it did not take. A turn with calls that
        the caller was given stays open: all its other calls had their results before."""
        bound = self.history.in_flight
        if bound is not None and not any(found.id in self._given_out for found in bound.pending):
            await self.land(INTERRUPTED)

    def resume(self) -> None:
        """Calls that are open in a history which comes from elsewhere are the caller's."""
        reopen_turn(self.history)
        self._given_out = frozenset(call.id for call in self.open_calls())

    async def _known(self, reason: str) -> list[ToolResult]:
        """What came of the calls in flight that have no result and are not the caller's."""
        bound = self.history.in_flight
        left = [found.call for found in bound.pending if found.id not in self._given_out] if bound is not None else ()
        if not left:
            return []
        last = {result.call_id: result for result in await self.scheduler.last_results()}
        known = self.scheduler.known_result
        return [last.get(call.id) or known(call.id) or outcomes.not_started(call, reason) for call in left]

    def _answer(
        self,
        flight: SessionRun,
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
            usage=flight.sum.usage,
            cost=flight.sum.cost,
            failure=failure,
            model=last.prepared.choice.name if last is not None else self.model,
        )

    def _last_turn(self) -> Turn | None:
        """The last turn that a model gave."""
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

    async def _call(self, flight: SessionRun) -> ModelReply | Failure:
        """The reply of the first model that gives one."""
        if self._logged_model != self.model:
            await self._written(self.log.record_model(self.model))
            self._logged_model = self.model
        failure = Failure("server", "no model was called")
        before, chosen = "", self.chosen
        for name in self.candidates():
            if before:
                self._report_fallback(flight, before, name, failure)
            found = await self._call_with_retries(flight, name)
            if isinstance(found, ModelReply):
                if before and self.chosen is chosen:  # unless another model was chosen meanwhile
                    self.model = name
                return found
            failure, before = found, name
            if not may_fail_over(failure):
                break
        return failure

    def _report_fallback(self, flight: SessionRun, before: str, after: str, failure: Failure) -> None:
        entry = failover_entry(before, after, failure.kind, after.partition("/")[0])
        flight.tell(ModelSwitched(before, after, entry.reason))
        self._tell(flight, [entry])

    async def _call_with_retries(self, flight: SessionRun, name: str) -> ModelReply | Failure:
        """The reply of one model, called again as often as the limits allow."""
        choice = self.models.find(name)
        self._refuse_unpriced(choice)
        await self._shrink_if_full(flight, choice)
        tries, failure = ModelAttempts(self.limits), Failure("bad_request")
        while True:
            try:
                prepared = self._prepared(choice)
            except InputError as error:
                return from_input_error(error)
            if tries.retries.was_refused(prepared.out.data):
                return failure
            found = await self._try(flight, prepared, tries)
            if isinstance(found, ModelReply):
                return found
            failure = found
            await self.land()
            if not await self._may_retry(flight, prepared, failure, tries):
                return failure

    def _prepared(self, choice: ModelChoice) -> Prepared:
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

    async def _try(self, flight: SessionRun, prepared: Prepared, tries: ModelAttempts) -> ModelReply | Failure:
        tries.count += 1
        choice, target = prepared.choice, prepared.profile.name
        self.history.begin_turn(target, overrides=self.overrides)
        self._tell(flight, prepared.out.report.entries)
        flight.tell(RequestStarted(choice.name, target, tries.count))
        trial = Attempt(self.history, issuer=prepared.destination)
        self._open = OpenAttempt(trial, prepared)
        found = await call_for_turn(
            prepared, trial, policy=self.policy, overrides=self.overrides, tell=flight.tell, heard=flight.heard
        )
        self._tell(flight, found.entries)
        is_answer = found.failure is None
        reply, cost = self._counted(flight, choice, found.reply, self.conversation, is_answer=is_answer)
        return found.failure if found.failure is not None else ModelReply(trial, prepared, reply, cost)

    async def _may_retry(self, flight: SessionRun, prepared: Prepared, failure: Failure, tries: ModelAttempts) -> bool:
        """Whether to call the same model again. The conversation is shortened or stripped if that helps."""
        tries.retries.add(failure, prepared.out.data)
        if failure.kind == "context_overflow" and not tries.has_shrunk:
            tries.has_shrunk = True
            return await self._shrink(flight, prepared.choice)
        if tries.retries.may_strip(failure):
            self._refused_turns |= {turn.key for turn in self.history.turns if turn.issuer is not None}
            return True
        wait = tries.retries.wait(failure)
        if wait is None:
            return False
        await anyio.sleep(wait)
        return True

    # --- counting and telling -----------------------------------------------------------------------

    def _counted(
        self, flight: SessionRun, choice: ModelChoice, reply: Reply, asked: Conversation, *, is_answer: bool = True
    ) -> tuple[Reply, Decimal | None]:
        """Count what an answer cost; the answer with what can be believed of its own counts, and the cost."""
        spent = took(reply, asked.turns, asked.tools, is_answer=is_answer)
        target = choice.upstream.target
        self._tell(flight, [Entry(action="assumed", reason=told, fault="loss", target=target) for told in spent.told])
        reply = replace(reply, usage=spent.said)
        if spent.counted is None:
            return reply, None
        cost = _price(choice, spent.counted)
        self.branch.count(spent.counted, cost)
        return reply, cost

    def _refuse_unpriced(self, choice: ModelChoice) -> None:
        is_priced = choice.upstream.is_simulated or prices.LISTED.of(choice.model, choice.upstream.name) is not None
        if self.limits.max_cost is not None and not is_priced:
            raise InputError(
                f"the price of {choice.name} is not known, and the session has a limit in money",
                path="limits.max_cost",
                hint="set max_tokens instead",
            )

    def _tell(self, flight: SessionRun, entries: Sequence[Entry]) -> None:
        """Tell what was changed, each thing once."""
        for entry in entries:
            key = (entry.action, entry.reason, entry.target)
            if key not in self._told and len(self._told) < MOST_TOLD:
                self._told[key] = entry
                flight.tell(ChangeReported(entry))

    # --- the length of it ---------------------------------------------------------------------------

    def _measure(self, turn: Turn, usage: Usage | None) -> None:
        if usage is not None and usage.input_tokens is not None:
            self._measured = turn.key, usage.input_tokens + (usage.output_tokens or 0)

    def length(self) -> int:
        """Tokens of the conversation: as a provider counted them, and a guess of what came since."""
        new: list[Turn] = []
        for turn in reversed(self.history.turns):
            if self._measured is not None and turn.key == self._measured[0]:
                return self._measured[1] + estimated_tokens(new)
            new.append(turn)
        return estimated_tokens(new)

    def window(self, choice: ModelChoice) -> int | None:
        """Tokens that fit into a model's context; None: not known."""
        return profile_for(choice.upstream, choice.model, self.conversation, overrides=self.overrides).context.window

    async def _shrink_if_full(self, flight: SessionRun, choice: ModelChoice) -> None:
        """Compress where the conversation nears the end of the model's context, and it is worth it."""
        window = self.window(choice) if self.limits.compress_at else None
        if window is None or (length := self.length()) < self.limits.compress_at * window:
            return
        cut = cut_of(self.history, self.limits.keep_turns)
        if cut is not None and estimated_tokens(cut.turns) >= WORTH * length:
            await self._compress_or_tell(flight, choice, self.limits.keep_turns)

    async def _shrink(self, flight: SessionRun, choice: ModelChoice) -> bool:
        """Make the conversation shorter because its model says that it is too long; whether it became so."""
        for keep in dict.fromkeys((self.limits.keep_turns, min(2, self.limits.keep_turns))):
            if await self._compress_or_tell(flight, choice, keep):
                return True
        shorter = await self._written(
            self.log.change(lambda history: history.shorten_results(max_characters=SHORT_RESULT))
        )
        self._measured = None
        return shorter > 0

    async def _compress_or_tell(self, flight: SessionRun, choice: ModelChoice, keep: int) -> int:
        """Compress; where there is no summary, say so and go on: that is never worth a run."""
        cut = cut_of(self.history, keep)
        if cut is None:
            return 0
        try:
            summary = await self._summary(flight, choice, cut.turns)
        except Exception as error:  # noqa: BLE001 - also what a caller's summariser raises
            reason = f"older turns were not summarised: {type(error).__name__}: {error}"
            self._tell(flight, [Entry(action="ignored", reason=reason[:500], fault="policy")])
            return 0
        return await self._replaced(flight, cut, summary)

    async def compress(self, flight: SessionRun, choice: ModelChoice, keep: int) -> int:
        """Put a summary in the place of all but the last turns; how many it took the place of."""
        cut = cut_of(self.history, keep)
        return 0 if cut is None else await self._replaced(flight, cut, await self._summary(flight, choice, cut.turns))

    async def _replaced(self, flight: SessionRun, cut: Cut, summary: str) -> int:
        text, shortest = summary_of(summary, len(cut.turns)), self.limits.max_result_characters
        await self._written(
            self.log.change(
                lambda history: history.compress(summary=text, before=cut.before, max_result_characters=shortest)
            )
        )
        self._measured = None
        flight.tell(HistoryCompressed(len(cut.turns)))
        return len(cut.turns)

    async def _summary(self, flight: SessionRun, choice: ModelChoice, turns: tuple[Turn, ...]) -> str:
        """A summary: the caller's, or the model's own."""
        if self.summarise is not None:
            return await summarised(self.summarise, turns)
        asked = summary_request(turns, window=self.window(choice))
        prepared = prepare(asked, choice, policy=self.policy, overrides=self.overrides)
        retries = Retries(self.limits.retries, self.limits.retry_seconds)
        while True:
            found = await call_model(
                prepared, policy=self.policy, overrides=self.overrides, take=lambda _: None, heard=flight.heard
            )
            self._counted(flight, choice, found.reply, asked, is_answer=found.failure is None)
            failure = found.failure
            if failure is None and found.reply.turn.text.strip():
                return found.reply.turn.text
            failure = failure or Failure("bad_output", "the model wrote no summary")
            wait = retries.wait(failure)
            if wait is None:
                raise ProviderError(failure)
            await anyio.sleep(wait)


def _price(choice: ModelChoice, usage: Usage) -> Decimal | None:
    """US dollars; None: not known. A stand-in costs nothing."""
    if choice.upstream.is_simulated:
        return Decimal(0)
    return prices.LISTED.cost(choice.model, usage, choice.upstream.name)
