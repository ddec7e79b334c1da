"""One batch of a scheduler: the calls of one turn of a model, from the first check to the last result.

    check every call ──▶ serve each: approve ▶ wait for a slot ▶ record ▶ run, retry ▶ record ──▶ fit the output budget

Law: whatever happens, at whatever step, each call ends once, and the results are in call order. The task that serves a
call is never cancelled from outside: every wait in it checks `stop`, so the final steps always happen.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec

from toolglot.conversation import ToolCall, ToolResult
from toolglot.runtime.scheduler import abandonable, approvals, outcomes, output_budget
from toolglot.runtime.scheduler.abandonable import Raised
from toolglot.runtime.scheduler.admission import Admission, read_resources
from toolglot.runtime.scheduler.approvals import AllowAlways, Decision, Deny, Edit
from toolglot.runtime.scheduler.argument_checks import CheckedArguments
from toolglot.runtime.scheduler.call_states import CallState
from toolglot.runtime.scheduler.progress import ProgressThrottle
from toolglot.runtime.tools.output import ToolOutcome, read_output
from toolglot.runtime.tools.values import Tool, ToolContext, ToolError

if TYPE_CHECKING:
    from toolglot.runtime.scheduler.scheduler import Scheduler

INTERRUPTED: Final = "The program that ran the tools was stopped."

current_batch: ContextVar[Batch | None] = ContextVar("current_batch", default=None)
"""The batch that the current code runs for: in tools, and in approval callbacks."""


class CallJob:
    """A call that is being served."""

    __slots__ = (
        *("admitted", "arguments", "call", "decided", "index"),
        *("is_changed", "outcome", "resources", "state", "tool"),
    )

    def __init__(self, call: ToolCall, index: int, state: CallState) -> None:
        self.call: ToolCall = call
        self.index: int = index
        self.state: CallState = state
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.is_changed: bool = False
        """Whether the arguments differ from what the model wrote."""
        self.resources: frozenset[str] = frozenset()
        self.outcome: ToolResult | None = None
        """The result, or why the call does not run: known, and not published yet."""
        self.admitted: asyncio.Future[None] | None = None
        """Done when the call may start."""
        self.decided: asyncio.Event | None = None
        """Set when the call needs no approval any more."""


class AttemptOutcome(NamedTuple):
    """The result of one attempt, and whether another attempt could succeed."""

    result: ToolResult
    again: bool = False


class Batch:
    """The calls of one turn."""

    def __init__(self, scheduler: Scheduler, calls: tuple[ToolCall, ...]) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Event = asyncio.Event()
        self.results: tuple[ToolResult, ...] = ()
        self.turn: asyncio.Future[None] = loop.create_future()
        """Done when all earlier batches have ended."""
        self.stop: asyncio.Future[str] = loop.create_future()
        """Done, with the reason, when the batch is cancelled."""
        self.skip_grace: asyncio.Future[None] = loop.create_future()
        """Done when cancelled tools are no longer waited for."""
        self._loop = loop
        self._scheduler = scheduler
        self._limits = scheduler.limits
        self._calls = calls
        self._jobs_by_id: dict[str, CallJob] = {}
        self._order: list[CallJob | ToolResult] = []
        self._admission = Admission(self._limits.parallel, self._admit)
        self._jobs: list[CallJob] = []

    def stop_for(self, reason: str) -> None:
        """Cancel the batch. The first reason wins."""
        if not self.stop.done():
            self.stop.set_result(reason)

    def stop_waiting(self) -> None:
        """Stop waiting for cancelled tools that have not ended yet."""
        if self.stop.done() and not self.skip_grace.done():
            self.skip_grace.set_result(None)

    async def run(self) -> None:
        """Serve every call."""
        current_batch.set(self)
        try:
            if not self.turn.done():
                await asyncio.wait((self.turn, self.stop), return_when=asyncio.FIRST_COMPLETED)
            for call in self._calls:
                self._accept(call)
            await self._serve_all()
        finally:
            try:
                self._publish()
            finally:
                self._admission.close()
                self._scheduler.finish_batch(self)
                self.ended.set()

    def _publish(self) -> None:
        for job in self._jobs:
            if not job.state.is_final:  # only where the event loop is closing
                job.state.end(job.outcome or self._interrupted_result(job))
        whole = [job.state.result for job in self._jobs if job.state.result is not None]
        fitted = output_budget.fit_results(whole, self._limits.max_output)
        cut = [new.call_id for new, old in zip(fitted, whole, strict=True) if new is not old]
        if cut:
            self._scheduler.report("compressed", f"results were cut to {self._limits.max_output} characters", *cut)
        self.results = tuple([fitted[item.index] if isinstance(item, CallJob) else item for item in self._order])

    # --- before anything runs -----------------------------------------------------------------------

    def _accept(self, call: ToolCall) -> None:
        """Make a job of a call, unless its result is known or the caller runs it."""
        known = self._jobs_by_id.get(call.id) or self._scheduler.known_result(call.id)
        if known is not None:
            self._order.append(known)
            self._scheduler.report("ignored", "a call with this id ran before and does not run again", call.id)
            return
        tool = self._scheduler.tools.find(call.name)
        if tool is not None and tool.run is None:
            return
        job = CallJob(call, len(self._jobs), CallState(call, self._scheduler.notify_change))
        self._jobs_by_id[call.id] = job
        self._jobs.append(job)
        self._order.append(job)
        try:
            job.outcome = self._refusal_if_stopped(job) or self._check(job, tool)
        except BaseException as error:  # noqa: BLE001 - as in `_serve`; nothing is waited for, so nothing is cancelled
            job.outcome = self._failure_result(job, error)

    def _refusal_if_stopped(self, job: CallJob) -> ToolResult | None:
        return outcomes.not_started(job.call, self.stop.result()) if self.stop.done() else None

    def _check(self, job: CallJob, tool: Tool | None) -> ToolResult | None:
        """Why a call cannot run; None if it can."""
        if job.index >= self._limits.max_calls:
            return outcomes.refusal(job.call, f"One turn may have no more than {self._limits.max_calls} calls.")
        if tool is None:
            return outcomes.unknown_tool(job.call, [known.name for known in self._scheduler.tools])
        job.tool = tool
        checked = self._scheduler.argument_check(tool).check(job.call)
        if isinstance(checked, ToolResult):
            return checked
        if not self._scheduler.is_allowed(tool):
            job.decided = asyncio.Event()
        return self._reserve(job, tool, checked)

    def _reserve(self, job: CallJob, tool: Tool, checked: CheckedArguments) -> ToolResult | None:
        """Take the arguments, and queue for the resources that they name."""
        job.arguments, job.is_changed = checked
        if tool.resources is not None:
            try:
                job.resources = read_resources(tool.resources(_copy(job.arguments)))
            except BaseException as error:  # noqa: BLE001 - it is the tool's code
                problem = outcomes.describe_error(error)
                return outcomes.refusal(job.call, f"The resources of the call could not be determined ({problem}).")
        self._admission.reserve(job.index, job.resources)
        return None

    # --- serving ------------------------------------------------------------------------------------

    async def _serve_all(self) -> None:
        if len(self._jobs) == 1:
            await self._serve(self._jobs[0], None)
            return
        before: asyncio.Event | None = None
        async with anyio.create_task_group() as group:
            for job in self._jobs:
                if job.outcome is not None and self._scheduler.journal is None:
                    job.state.end(job.outcome)
                    continue
                group.start_soon(self._serve, job, before)
                before = job.decided or before

    async def _serve(self, job: CallJob, before: asyncio.Event | None) -> None:
        """Bring a call to its end. `before` is set when no earlier call awaits approval."""
        try:
            job.outcome = self._finalize(job, job.outcome or await self._approve_and_run(job, before))
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a bug in toolglot costs one call, not the session
            job.outcome = self._failure_result(job, error)
        finally:
            if job.decided is not None:
                job.decided.set()
            self._admission.release(job.index)
        await self._record_result(job, job.outcome)
        job.state.end(job.outcome)

    def _finalize(self, job: CallJob, result: ToolResult) -> ToolResult:
        """The result to record: with the arguments that the tool really got, and within the limit of a whole batch."""
        if job.is_changed and job.state.state == "executing":
            result = outcomes.with_executed_arguments(result, job.arguments)
            self._scheduler.report("replaced", "the tool got other arguments than the call shows", job.call.id)
        return output_budget.fit_result(result, self._limits.max_output)

    async def _approve_and_run(self, job: CallJob, before: asyncio.Event | None) -> ToolResult:
        tool = job.tool
        assert tool is not None  # noqa: S101 - for the type checker: without a tool a call was refused
        if job.decided is not None:
            refusal = await self._approve(job, tool, before)
            job.decided.set()
            if refusal is not None:
                return refusal
        job.state.become("scheduled")
        refusal = await self._wait_for_admission(job) or await self._record_start(job, tool)
        return refusal or self._refusal_if_stopped(job) or await self._run_with_retries(job, tool)

    async def _approve(self, job: CallJob, tool: Tool, before: asyncio.Event | None) -> ToolResult | None:
        """Ask for approval, after the earlier calls. Why the call does not run, or None."""
        if before is not None:
            await before.wait()
        if self.stop.done() or self._scheduler.is_allowed(tool):
            return self._refusal_if_stopped(job)
        job.state.become("awaiting_approval")
        decision = await self._ask(job, tool)
        if decision is None:
            return self._refusal_if_stopped(job) or outcomes.not_started(
                job.call, "The approval callback was cancelled."
            )
        if isinstance(decision, Deny):
            return outcomes.denial(job.call, decision.reason)
        if isinstance(decision, AllowAlways):
            self._scheduler.allow_always(tool)
        if not isinstance(decision, Edit):
            return None
        job.state.become("validating")
        checked = self._scheduler.argument_check(tool).check_edited(job.call, decision.arguments)
        return checked if isinstance(checked, ToolResult) else self._reserve(job, tool, checked)

    async def _ask(self, job: CallJob, tool: Tool) -> Decision | None:
        """The decision; None if the callback was cancelled."""
        approve = self._scheduler.approve
        if approve is None:
            return approvals.NO_APPROVER
        task = abandonable.start(approve, job.call, tool, _copy(job.arguments))
        if await abandonable.wait(task, self.stop) == "stopped":
            if not await abandonable.cancel(task, self._limits.grace):
                self._scheduler.abandon(task, "an approval callback", job.call.id)
            return None
        answer = abandonable.outcome(task)
        if task.cancelled():
            return None
        return approvals.denial_after(answer.error) if type(answer) is Raised else approvals.read_decision(answer)

    async def _wait_for_admission(self, job: CallJob) -> ToolResult | None:
        """Wait for a slot and for the resources. Why the call does not run, or None."""
        job.admitted = self._loop.create_future()
        self._admission.mark_ready(job.index)
        if not job.admitted.done():
            await asyncio.wait((job.admitted, self.stop), return_when=asyncio.FIRST_COMPLETED)
        holder = self._scheduler.resource_holder(job.resources)
        if holder is not None and not self.stop.done():
            earlier = f"An earlier call on the same resource ({holder[:80]})"
            return outcomes.not_started(job.call, f"{earlier} did not end when it was stopped, and may still run.")
        return self._refusal_if_stopped(job)

    def _admit(self, index: int) -> None:
        admitted = self._jobs[index].admitted
        if admitted is not None:
            admitted.set_result(None)

    # --- the journal --------------------------------------------------------------------------------

    async def _record_start(self, job: CallJob, tool: Tool) -> ToolResult | None:
        """Record that a tool with side effects starts. Why it does not, or None."""
        journal = self._scheduler.journal
        if journal is None or not tool.side_effects:
            return None
        task = abandonable.start(lambda: journal.record_start(job.call, job.arguments))
        if await abandonable.wait(task, self.stop) == "stopped":
            if not await abandonable.cancel(task, self._limits.grace):
                self._scheduler.abandon(task, "the record of a start", job.call.id)
            return self._refusal_if_stopped(job)
        problem = _record_problem(task)
        if problem is None:
            return None
        self._scheduler.report(
            "dropped", f"the start of a tool could not be recorded: {problem}", job.call.id, fault="loss"
        )
        return outcomes.not_started(job.call, f"The start of the tool could not be recorded ({problem}).")

    async def _record_result(self, job: CallJob, result: ToolResult) -> None:
        """Record the result. A failure is reported, and the result is published anyway."""
        journal = self._scheduler.journal
        if journal is None:
            return
        task = abandonable.start(lambda: journal.record_result(result))
        if await abandonable.wait(task, self.stop) == "stopped":
            # The record of what a tool did is worth a wait when everything stops, but a limited one.
            await asyncio.wait((task,), timeout=self._limits.grace)
        if not task.done():
            task.cancel()
            self._scheduler.abandon(task, "the record of a result", job.call.id)
            problem: str | None = "it took too long"
        else:
            problem = _record_problem(task)
        if problem is not None:
            self._scheduler.report("dropped", f"a result could not be recorded: {problem}", job.call.id, fault="loss")

    # --- running ------------------------------------------------------------------------------------

    async def _run_with_retries(self, job: CallJob, tool: Tool) -> ToolResult:
        """Run the tool, and retry it if that is allowed."""
        job.state.become("executing")
        tried = await self._run_once(job, tool)
        while tried.again and tool.idempotent and job.state.attempt <= self._limits.retries:
            wait = self._limits.retry_wait * 2 ** (job.state.attempt - 1)
            await asyncio.wait((self.stop,), timeout=wait)
            if self.stop.done():
                return outcomes.cancellation(job.call, self.stop.result(), tried.result.content)
            job.state.become("executing")
            tried = await self._run_once(job, tool)
        return tried.result

    async def _run_once(self, job: CallJob, tool: Tool) -> AttemptOutcome:
        scheduler = self._scheduler
        context = ToolContext(
            call_id=job.call.id,
            tool=tool.name,
            session_id=scheduler.session_id,
            attempt=job.state.attempt,
            session=scheduler.session,
        )
        progress: ProgressThrottle | None = None
        if scheduler.notify_change is not None:
            progress = ProgressThrottle(self._loop, job.state.report_progress)
            context.progress = progress.report
        assert tool.run is not None  # noqa: S101 - for the type checker: a mere definition is not run here
        seconds = self._limits.timeout if tool.timeout is None else tool.timeout
        scheduler.running += 1
        try:
            task = abandonable.start(tool.run, _copy(job.arguments), context)
            why = await abandonable.wait(task, self.stop, timeout=seconds)
            if why == "ended":
                return self._ended_outcome(job, task)
            context.cancelled.set()
            has_ended = await abandonable.cancel(task, self._limits.grace, self.skip_grace)
        except asyncio.CancelledError:
            # The event loop is closing and waits for every task. A tool that ignores one cancellation gets a second,
            # after it has seen the first: two cancellations before a task's next step count as one.
            context.cancelled.set()
            task.cancel()
            self._loop.call_soon(task.cancel)
            raise
        finally:
            scheduler.running -= 1
            if progress is not None:
                progress.end()
        if not has_ended:
            scheduler.abandoned += 1
            scheduler.abandon(task, f"the tool {tool.name[:80]!r}", job.call.id, job.resources)
        waited_for = context.waits_for if has_ended and type(context.waits_for) is str else ""
        if why == "stopped":
            never = self._refusal_if_stopped(job) if waited_for else None
            return AttemptOutcome(never or self._stopped_result(job, tool, task, has_ended=has_ended))
        if waited_for:
            return AttemptOutcome(outcomes.not_ready(job.call, seconds, waited_for), again=True)
        return self._timeout_outcome(job, tool, task, seconds, has_ended=has_ended)

    def _read_output(self, job: CallJob, value: object) -> ToolOutcome:
        """What a tool returned. Conversions are reported."""
        read = read_output(value)
        for note in read.notes:
            self._scheduler.report("converted", note, job.call.id, fault="loss")
        return read

    def _ended_outcome(self, job: CallJob, task: abandonable.Task) -> AttemptOutcome:
        """The outcome of a tool that ended by itself."""
        if task.cancelled():
            return AttemptOutcome(
                outcomes.error(job.call, f"The tool did not end. {abandonable.CANCELLED_ITSELF}"), again=True
            )
        outcome = abandonable.outcome(task)
        if type(outcome) is Raised:
            # A ToolError is the tool's own answer to the model: a retry would give the same.
            is_answer = issubclass(type(outcome.error), ToolError)
            return AttemptOutcome(outcomes.exception(job.call, outcome.error), again=not is_answer)
        return AttemptOutcome(self._read_output(job, outcome).result_of(job.call))

    def _timeout_outcome(
        self, job: CallJob, tool: Tool, task: abandonable.Task, seconds: float, *, has_ended: bool
    ) -> AttemptOutcome:
        """The outcome of a tool that ran out of time. One that returned while it was stopped has its own output."""
        outcome = abandonable.outcome(task) if has_ended else None
        if has_ended and not task.cancelled() and type(outcome) is not Raised:
            return AttemptOutcome(outcomes.timeout(job.call, seconds, self._read_output(job, outcome).content))
        is_known = not tool.side_effects or (has_ended and tool.on_timeout == "error")
        if is_known:
            return AttemptOutcome(outcomes.timeout(job.call, seconds), again=has_ended)
        unknown = outcomes.unknown_outcome(job.call, f"The tool did not end within {seconds:g} seconds.")
        return AttemptOutcome(unknown, again=has_ended)

    def _stopped_result(self, job: CallJob, tool: Tool, task: abandonable.Task, *, has_ended: bool) -> ToolResult:
        """The result of a tool that was cancelled."""
        reason = self.stop.result()
        if not has_ended:
            ignored = f"{reason} The tool did not stop when it was cancelled."
            made = outcomes.unknown_outcome if tool.side_effects else outcomes.cancellation
            return made(job.call, ignored)
        outcome = abandonable.outcome(task)
        if type(outcome) is Raised:
            return outcomes.cancellation(job.call, reason, outcomes.describe_error(outcome.error))
        return outcomes.cancellation(job.call, reason, self._read_output(job, outcome).content)

    # --- when toolglot itself fails -----------------------------------------------------------------

    def _interrupted_result(self, job: CallJob) -> ToolResult:
        if job.state.state == "executing":
            return outcomes.unknown_outcome(job.call, INTERRUPTED)
        return outcomes.not_started(job.call, INTERRUPTED)

    def _failure_result(self, job: CallJob, error: BaseException) -> ToolResult:
        problem = outcomes.describe_error(error)
        self._scheduler.report("dropped", f"serving a call failed: {problem}", job.call.id, fault="canonical")
        text = f"Running the tool failed inside toolglot ({problem})."
        made = outcomes.unknown_outcome if job.state.state == "executing" else outcomes.not_started
        return made(job.call, text)


def _copy(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy that its receiver may change: the recorded arguments stay as they are."""
    copy: dict[str, Any] = msgspec.to_builtins(arguments)
    return copy


def _record_problem(task: abandonable.Task) -> str | None:
    """Why something could not be recorded; None if it was."""
    if task.cancelled():
        return abandonable.CANCELLED_ITSELF
    outcome = abandonable.outcome(task)
    return outcomes.describe_error(outcome.error) if type(outcome) is Raised else None
