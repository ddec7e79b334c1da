"""One batch of a scheduler: the calls of one turn of a model, from the first check to the last result.

    check every call ──▶ serve each: approve ▶ wait for room ▶ record ▶ run, perhaps again ▶ record ──▶ share the output

Law: whatever happens, at whatever step, each call ends once, and the results are in call order. Serving a call is
never cancelled from outside: `stop` is a value that every wait of it looks at, so what must be done in the end is done.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec

from toolglot.conversation import ToolCall, ToolResult
from toolglot.runtime.scheduler import approvals, leaving, outcomes, output_budget
from toolglot.runtime.scheduler.admission import Admission, resource_names
from toolglot.runtime.scheduler.approvals import AllowAlways, Decision, Deny, Edit
from toolglot.runtime.scheduler.argument_checks import Checked
from toolglot.runtime.scheduler.call_states import CallState
from toolglot.runtime.scheduler.leaving import Raised
from toolglot.runtime.scheduler.progress import Progress
from toolglot.runtime.tools.output import ToolOutcome, given
from toolglot.runtime.tools.values import Tool, ToolContext, ToolError

if TYPE_CHECKING:
    from toolglot.runtime.scheduler.scheduler import Scheduler

INTERRUPTED: Final = "The program that ran the tools was stopped."

served_by: ContextVar[Batch | None] = ContextVar("served_by", default=None)
"""The batch that code runs for: tools, and whoever is asked."""


class CallJob:
    """A call that is being served."""

    __slots__ = ("arguments", "call", "decided", "is_changed", "outcome", "place", "resources", "room", "state", "tool")

    def __init__(self, call: ToolCall, place: int, state: CallState) -> None:
        self.call: ToolCall = call
        self.place: int = place
        self.state: CallState = state
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.is_changed: bool = False
        """The arguments are not what the model wrote."""
        self.resources: frozenset[str] = frozenset()
        self.outcome: ToolResult | None = None
        """What came of it, or why it is not run: known, and not published yet."""
        self.room: asyncio.Future[None] | None = None
        """Done when it may start."""
        self.decided: asyncio.Event | None = None
        """Set when nobody needs to be asked about it any more."""


class AttemptOutcome(NamedTuple):
    """What came of one attempt, and whether another one could do better."""

    result: ToolResult
    again: bool = False


class Batch:
    """The calls of one turn."""

    def __init__(self, scheduler: Scheduler, calls: tuple[ToolCall, ...]) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Event = asyncio.Event()
        self.results: tuple[ToolResult, ...] = ()
        self.turn: asyncio.Future[None] = loop.create_future()
        """Done when no other batch is before this one."""
        self.stop: asyncio.Future[str] = loop.create_future()
        """Done, with the reason, when the batch is cancelled."""
        self.hurry: asyncio.Future[None] = loop.create_future()
        """Done when tools that were cancelled are not waited for any longer."""
        self._loop = loop
        self._scheduler = scheduler
        self._limits = scheduler.limits
        self._calls = calls
        self._jobs: dict[str, CallJob] = {}
        self._order: list[CallJob | ToolResult] = []
        self._admission = Admission(self._limits.parallel, self._give_room)
        self._by_place: list[CallJob] = []

    def stop_for(self, reason: str) -> None:
        """Cancel the batch; the first reason stays."""
        if not self.stop.done():
            self.stop.set_result(reason)

    def stop_waiting(self) -> None:
        """Go on without the tools that were cancelled and have not ended yet."""
        if self.stop.done() and not self.hurry.done():
            self.hurry.set_result(None)

    async def run(self) -> None:
        """Serve every call."""
        served_by.set(self)
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
                self._scheduler.over(self)
                self.ended.set()

    def _publish(self) -> None:
        for job in self._by_place:
            if not job.state.is_final:  # only where the event loop is closing
                job.state.end(job.outcome or self._interrupted(job))
        whole = [job.state.result for job in self._by_place if job.state.result is not None]
        fitted = output_budget.fitted(whole, self._limits.max_output)
        cut = [new.call_id for new, old in zip(fitted, whole, strict=True) if new is not old]
        if cut:
            self._scheduler.tell("compressed", f"results were cut to {self._limits.max_output} characters", *cut)
        self.results = tuple([fitted[held.place] if isinstance(held, CallJob) else held for held in self._order])

    # --- before anything runs -----------------------------------------------------------------------

    def _accept(self, call: ToolCall) -> None:
        """Give a call its place, unless its result is known or it is the caller's to run."""
        known = self._jobs.get(call.id) or self._scheduler.known(call.id)
        if known is not None:
            self._order.append(known)
            self._scheduler.tell("ignored", "the call was there before and is not run again", call.id)
            return
        tool = self._scheduler.tools.find(call.name)
        if tool is not None and tool.run is None:
            return
        job = CallJob(call, len(self._by_place), CallState(call, self._scheduler.tell_change))
        self._jobs[call.id] = job
        self._by_place.append(job)
        self._order.append(job)
        try:
            job.outcome = self._never_started(job) or self._check(job, tool)
        except BaseException as error:  # noqa: BLE001 - as in `_serve`; nothing is waited for, so nothing is cancelled
            job.outcome = self._failed(job, error)

    def _never_started(self, job: CallJob) -> ToolResult | None:
        return outcomes.never_started(job.call, self.stop.result()) if self.stop.done() else None

    def _check(self, job: CallJob, tool: Tool | None) -> ToolResult | None:
        """Why a call cannot be run as it is; None: it can."""
        if job.place >= self._limits.max_calls:
            return outcomes.refused(job.call, f"One turn may hold no more than {self._limits.max_calls} calls.")
        if tool is None:
            return outcomes.unknown_tool(job.call, [known.name for known in self._scheduler.tools])
        job.tool = tool
        checked = self._scheduler.check_of(tool).check(job.call)
        if isinstance(checked, ToolResult):
            return checked
        if not self._scheduler.is_allowed(tool):
            job.decided = asyncio.Event()
        return self._join(job, tool, checked)

    def _join(self, job: CallJob, tool: Tool, checked: Checked) -> ToolResult | None:
        """Take the arguments, and a place in line for the resources that they name."""
        job.arguments, job.is_changed = checked
        if tool.resources is not None:
            try:
                job.resources = resource_names(tool.resources(_own(job.arguments)))
            except BaseException as error:  # noqa: BLE001 - it is the tool's code
                said = outcomes.described(error)
                return outcomes.refused(job.call, f"Which resources the call uses could not be found out ({said}).")
        self._admission.join(job.place, job.resources)
        return None

    # --- serving ------------------------------------------------------------------------------------

    async def _serve_all(self) -> None:
        if len(self._by_place) == 1:
            await self._serve(self._by_place[0], None)
            return
        before: asyncio.Event | None = None
        async with anyio.create_task_group() as group:
            for job in self._by_place:
                if job.outcome is not None and self._scheduler.journal is None:
                    job.state.end(job.outcome)
                    continue
                group.start_soon(self._serve, job, before)
                before = job.decided or before

    async def _serve(self, job: CallJob, before: asyncio.Event | None) -> None:
        """Bring a call to its end. `before` is set when nobody is asked any more about the calls before it."""
        try:
            job.outcome = self._noted(job, job.outcome or await self._outcome(job, before))
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a fault of toolglot's own costs one call, not the session
            job.outcome = self._failed(job, error)
        finally:
            if job.decided is not None:
                job.decided.set()
            self._admission.leave(job.place)
        await self._record_finished(job, job.outcome)
        job.state.end(job.outcome)

    def _noted(self, job: CallJob, result: ToolResult) -> ToolResult:
        """The result as it goes on record: with what the tool really got, and no longer than a whole batch may be."""
        if job.is_changed and job.state.state == "executing":
            result = outcomes.with_executed(result, job.arguments)
            self._scheduler.tell("replaced", "the tool was given other arguments than the call shows", job.call.id)
        return output_budget.within(result, self._limits.max_output)

    async def _outcome(self, job: CallJob, before: asyncio.Event | None) -> ToolResult:
        tool = job.tool
        assert tool is not None  # noqa: S101 - for the type checker: without a tool a call was refused
        if job.decided is not None:
            refusal = await self._approve(job, tool, before)
            job.decided.set()
            if refusal is not None:
                return refusal
        job.state.become("scheduled")
        refusal = await self._wait_for_room(job) or await self._record_started(job, tool) or self._never_started(job)
        return refusal or await self._try(job, tool)

    async def _approve(self, job: CallJob, tool: Tool, before: asyncio.Event | None) -> ToolResult | None:
        """Ask, when those before have been asked; why the call is not run, or None."""
        if before is not None:
            await before.wait()
        if self.stop.done() or self._scheduler.is_allowed(tool):
            return self._never_started(job)
        job.state.become("awaiting_approval")
        decision = await self._ask(job, tool)
        if decision is None:
            return self._never_started(job) or outcomes.never_started(
                job.call, "The question for approval was cancelled."
            )
        if isinstance(decision, Deny):
            return outcomes.denied(job.call, decision.reason)
        if isinstance(decision, AllowAlways):
            self._scheduler.allow_always(tool)
        if not isinstance(decision, Edit):
            return None
        job.state.become("validating")
        checked = self._scheduler.check_of(tool).check_edited(job.call, decision.arguments)
        return checked if isinstance(checked, ToolResult) else self._join(job, tool, checked)

    async def _ask(self, job: CallJob, tool: Tool) -> Decision | None:
        """What was decided; None where the question was cancelled."""
        approve = self._scheduler.approve
        if approve is None:
            return approvals.NOBODY
        task = leaving.begin(approve, job.call, tool, _own(job.arguments))
        if await leaving.wait_for(task, self.stop) == "stopped":
            if not await leaving.end(task, self._limits.grace):
                self._scheduler.leave(task, "a question for approval", job.call.id)
            return None
        answer = leaving.outcome(task)
        if task.cancelled():
            return None
        return approvals.failed(answer.error) if type(answer) is Raised else approvals.decision_of(answer)

    async def _wait_for_room(self, job: CallJob) -> ToolResult | None:
        """Wait for a slot and for the resources; why the call is not run, or None."""
        job.room = self._loop.create_future()
        self._admission.ready(job.place)
        if not job.room.done():
            await asyncio.wait((job.room, self.stop), return_when=asyncio.FIRST_COMPLETED)
        holder = self._scheduler.holder_of(job.resources)
        if holder is not None and not self.stop.done():
            earlier = f"An earlier call on the same resource ({holder[:80]})"
            return outcomes.never_started(job.call, f"{earlier} did not end when it was stopped, and may still run.")
        return self._never_started(job)

    def _give_room(self, place: int) -> None:
        room = self._by_place[place].room
        if room is not None:
            room.set_result(None)

    # --- the journal --------------------------------------------------------------------------------

    async def _record_started(self, job: CallJob, tool: Tool) -> ToolResult | None:
        """Have it on record that a tool with side effects starts; why it does not, or None."""
        journal = self._scheduler.journal
        if journal is None or not tool.side_effects:
            return None
        task = leaving.begin(lambda: journal.started(job.call, job.arguments))
        if await leaving.wait_for(task, self.stop) == "stopped":
            if not await leaving.end(task, self._limits.grace):
                self._scheduler.leave(task, "the record of a start", job.call.id)
            return self._never_started(job)
        problem = _problem(task)
        if problem is None:
            return None
        self._scheduler.tell(
            "dropped", f"the start of a tool could not be recorded: {problem}", job.call.id, fault="loss"
        )
        return outcomes.never_started(job.call, f"The start of the tool could not be recorded ({problem}).")

    async def _record_finished(self, job: CallJob, result: ToolResult) -> None:
        """Have the result on record. Where that fails it is told, and the result is published all the same."""
        journal = self._scheduler.journal
        if journal is None:
            return
        task = leaving.begin(lambda: journal.finished(result))
        if await leaving.wait_for(task, self.stop) == "stopped":
            # What a tool did is worth a wait also when everything stops, but not an endless one.
            await asyncio.wait((task,), timeout=self._limits.grace)
        if not task.done():
            task.cancel()
            self._scheduler.leave(task, "the record of a result", job.call.id)
            problem: str | None = "it took too long"
        else:
            problem = _problem(task)
        if problem is not None:
            self._scheduler.tell("dropped", f"a result could not be recorded: {problem}", job.call.id, fault="loss")

    # --- running ------------------------------------------------------------------------------------

    async def _try(self, job: CallJob, tool: Tool) -> ToolResult:
        """Run the tool, and again where it may be."""
        job.state.become("executing")
        tried = await self._attempt(job, tool)
        while tried.again and tool.idempotent and job.state.attempt <= self._limits.retries:
            wait = self._limits.retry_wait * 2 ** (job.state.attempt - 1)
            await asyncio.wait((self.stop,), timeout=wait)
            if self.stop.done():
                return outcomes.cancelled(job.call, self.stop.result(), tried.result.content)
            job.state.become("executing")
            tried = await self._attempt(job, tool)
        return tried.result

    async def _attempt(self, job: CallJob, tool: Tool) -> AttemptOutcome:
        scheduler = self._scheduler
        context = ToolContext(
            call_id=job.call.id,
            tool=tool.name,
            session_id=scheduler.session_id,
            attempt=job.state.attempt,
            session=scheduler.session,
        )
        progress: Progress | None = None
        if scheduler.tell_change is not None:
            progress = Progress(self._loop, job.state.say)
            context.progress = progress.say
        assert tool.run is not None  # noqa: S101 - for the type checker: a mere definition is not run here
        seconds = self._limits.timeout if tool.timeout is None else tool.timeout
        scheduler.running += 1
        try:
            task = leaving.begin(tool.run, _own(job.arguments), context)
            why = await leaving.wait_for(task, self.stop, timeout=seconds)
            if why == "ended":
                return self._ended(job, task)
            context.cancelled.set()
            has_ended = await leaving.end(task, self._limits.grace, self.hurry)
        except asyncio.CancelledError:
            # The event loop is closing and waits for every task. A tool that ignores this once is told again, when it
            # has heard the first: two cancellations before a task's next step are only one.
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
            scheduler.leave(task, f"the tool {tool.name[:80]!r}", job.call.id, job.resources)
        waited_for = context.waits_for if has_ended and type(context.waits_for) is str else ""
        if why == "stopped":
            never = self._never_started(job) if waited_for else None
            return AttemptOutcome(never or self._stopped(job, tool, task, has_ended=has_ended))
        if waited_for:
            return AttemptOutcome(outcomes.not_ready(job.call, seconds, waited_for), again=True)
        return self._timed_out(job, tool, task, seconds, has_ended=has_ended)

    def _given(self, job: CallJob, value: object) -> ToolOutcome:
        """What a tool returned; what is shown in another way is told."""
        read = given(value)
        for note in read.notes:
            self._scheduler.tell("converted", note, job.call.id, fault="loss")
        return read

    def _ended(self, job: CallJob, task: leaving.Task) -> AttemptOutcome:
        """What came of a tool that ended by itself."""
        if task.cancelled():
            return AttemptOutcome(
                outcomes.error(job.call, f"The tool did not end. {leaving.CANCELLED_ITSELF}"), again=True
            )
        said = leaving.outcome(task)
        if type(said) is Raised:
            # What a tool says to the model in its own words is its answer; it would be the same again.
            is_answer = issubclass(type(said.error), ToolError)
            return AttemptOutcome(outcomes.raised(job.call, said.error), again=not is_answer)
        return AttemptOutcome(self._given(job, said).of(job.call))

    def _timed_out(
        self, job: CallJob, tool: Tool, task: leaving.Task, seconds: float, *, has_ended: bool
    ) -> AttemptOutcome:
        """What is known of a tool that ran out of time; one that gave something while it ended has told it itself."""
        said = leaving.outcome(task) if has_ended else None
        if has_ended and not task.cancelled() and type(said) is not Raised:
            return AttemptOutcome(outcomes.timed_out(job.call, seconds, self._given(job, said).content))
        is_known = not tool.side_effects or (has_ended and tool.on_timeout == "error")
        if is_known:
            return AttemptOutcome(outcomes.timed_out(job.call, seconds), again=has_ended)
        unknown = outcomes.outcome_unknown(job.call, f"The tool did not end within {seconds:g} seconds.")
        return AttemptOutcome(unknown, again=has_ended)

    def _stopped(self, job: CallJob, tool: Tool, task: leaving.Task, *, has_ended: bool) -> ToolResult:
        """What is known of a tool that was cancelled."""
        reason = self.stop.result()
        if not has_ended:
            ignored = f"{reason} The tool did not stop when it was told to."
            made = outcomes.outcome_unknown if tool.side_effects else outcomes.cancelled
            return made(job.call, ignored)
        said = leaving.outcome(task)
        output = outcomes.described(said.error) if type(said) is Raised else self._given(job, said).content
        return outcomes.cancelled(job.call, reason, output)

    # --- when toolglot itself cannot go on ------------------------------------------------------------

    def _interrupted(self, job: CallJob) -> ToolResult:
        if job.state.state == "executing":
            return outcomes.outcome_unknown(job.call, INTERRUPTED)
        return outcomes.never_started(job.call, INTERRUPTED)

    def _failed(self, job: CallJob, error: BaseException) -> ToolResult:
        said = outcomes.described(error)
        self._scheduler.tell("dropped", f"serving a call failed: {said}", job.call.id, fault="canonical")
        text = f"Running the tool failed inside of toolglot ({said})."
        made = outcomes.outcome_unknown if job.state.state == "executing" else outcomes.never_started
        return made(job.call, text)


def _own(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy that whoever gets it may change: what is on record stays what it was."""
    copy: dict[str, Any] = msgspec.to_builtins(arguments)
    return copy


def _problem(task: leaving.Task) -> str | None:
    """Why a record was not made."""
    if task.cancelled():
        return leaving.CANCELLED_ITSELF
    said = leaving.outcome(task)
    return outcomes.described(said.error) if type(said) is Raised else None
