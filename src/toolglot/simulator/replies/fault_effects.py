"""What faults do to the plan of a reply and to the events of its stream.

A fault acts where it happens in reality: a model that writes its calls as text does so before any protocol, a server
that gets an index wrong does so in its events. What a fault does in one protocol only is in that protocol's file.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from toolglot.conversation import Failure, Reply, ToolCall
from toolglot.conversation.events import Event, Failed, Finished, Started, Used
from toolglot.conversation.reply_events import of_block
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.scripts.plan import PlannedCall, ReplyPlan
from toolglot.simulator.scripts.text_calls import DIALECTS

# --- the plan ---------------------------------------------------------------------------------------


def faulty_plan(plan: ReplyPlan, fault: Fault | None) -> ReplyPlan:
    """The plan, with the faults that are the model's own."""
    name = fault.name if fault is not None else ""
    if name == "empty":
        return replace(plan, text="", thinking="", calls=(), stop="stop")
    if name == "wrong_stop":
        return replace(plan, stop="stop" if plan.calls else "tool_calls")
    if not plan.calls or fault is None:
        return plan
    if name == "text_dialect":
        written = DIALECTS[fault.dialect](plan.calls)
        return replace(plan, text=f"{plan.text}\n{written}".strip(), calls=(), stop="stop")
    *others, last = plan.calls
    if name == "truncated_call":
        return replace(plan, calls=(*others, _half_call(last)), stop="length")
    if name == "malformed_arguments":
        return replace(plan, calls=(*others, replace(last, arguments=None, text=break_json(last.text))))
    return plan


def _half_call(call: PlannedCall) -> PlannedCall:
    return replace(call, arguments=None, text=call.text[: max(len(call.text) // 2, 1)])


def break_json(text: str) -> str:
    """Arguments that no parser accepts, and that end where they should."""
    return f"{text[:-1]}, }}" if text.endswith("}") else f"{text}, }}"


# --- the events -------------------------------------------------------------------------------------


def reply_events(reply: Reply, plan: ReplyPlan, fault: Fault | None, piece: int) -> Iterator[Event]:
    """The events of a reply, as a fault leaves them; `piece` is the characters of a delta."""
    events = _all_events(reply, plan, fault, piece)
    if fault is not None and fault.name == "no_end":
        return (event for event in events if not isinstance(event, Finished | Used))
    if fault is not None and fault.name == "error_event":
        return _fail_after(events, fault.after)
    return events


def _all_events(reply: Reply, plan: ReplyPlan, fault: Fault | None, piece: int) -> Iterator[Event]:
    name = fault.name if fault is not None else ""
    yield Started(reply.id, reply.model, reply.extra, reply.form)
    if reply.usage is not None:
        # The cost of the prompt is known when the reply begins, and Anthropic sends it there.
        yield Used(replace(reply.usage, output_tokens=1, reasoning_tokens=None))
    cut = _cut_call(reply, plan) if name == "truncated_call" else None
    whole = reply.turn.blocks if cut is None else reply.turn.blocks[:-1]
    for block in whole:
        yield from of_block(block, piece=piece)
    if cut is not None:
        yield from of_block(cut, cut=True, piece=piece)
    if reply.usage is not None:
        yield Used(reply.usage)
    yield Finished(reply.stop or plan.stop if name == "malformed_arguments" else plan.stop)


def _cut_call(reply: Reply, plan: ReplyPlan) -> ToolCall | None:
    """The last call up to where it was cut; None where the protocol left it out."""
    last = reply.turn.blocks[-1] if reply.turn.blocks else None
    if not isinstance(last, ToolCall) or len(reply.turn.calls) != len(plan.calls):
        return None
    return replace(last, arguments=None, raw_input=plan.calls[-1].text)


def _fail_after(events: Iterator[Event], after: int) -> Iterator[Event]:
    for count, event in enumerate(events):
        if count > after or isinstance(event, Finished):
            yield Failed(Failure("overloaded", "Overloaded", 529, in_band=True))
            return
        yield event
