"""What faults do to an answer: to the plan of it, to its body, to the events and to the frames of its stream.

A fault acts at the place where it happens in the world: a model that writes its calls as text does so before any
protocol, a server that gets an index wrong does so in its frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Failure, Reply, ToolCall
from toolglot.conversation.events import Event, Failed, Finished, Started, Used
from toolglot.conversation.reply_events import of_block
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.scripts.plan import PlannedCall, ReplyPlan
from toolglot.simulator.scripts.text_calls import DIALECTS

# --- the plan ---------------------------------------------------------------------------------------


def spoil_plan(plan: ReplyPlan, fault: Fault | None) -> ReplyPlan:
    """The plan, where the model itself is at fault."""
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
        return replace(plan, calls=(*others, _halved(last)), stop="length")
    if name == "malformed_arguments":
        return replace(plan, calls=(*others, replace(last, arguments=None, text=broken(last.text))))
    return plan


def _halved(call: PlannedCall) -> PlannedCall:
    return replace(call, arguments=None, text=call.text[: max(len(call.text) // 2, 1)])


def broken(text: str) -> str:
    """Arguments that no parser takes, and that end where they should."""
    return f"{text[:-1]}, }}" if text.endswith("}") else f"{text}, }}"


# --- the body ---------------------------------------------------------------------------------------


def spoil_body(body: Fields, protocol: str, plan: ReplyPlan, fault: Fault | None) -> Fields:
    """The body, where a call that cannot be written in it must be left out or told otherwise."""
    edit = _BODY_EDITS.get((protocol, fault.name)) if fault is not None and plan.calls else None
    if edit is not None:
        edit(body)
    return body


def _without_last_part(body: Fields) -> None:
    body["candidates"][0]["content"]["parts"].pop()


def _malformed_call(body: Fields) -> None:
    candidate = body["candidates"][0]
    candidate["content"] = {"parts": [], "role": "model"}
    candidate |= {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call"}


def _without_last_call(body: Fields) -> None:
    body["message"]["tool_calls"].pop()


def _malformed_tool_use(body: Fields) -> None:
    body["output"]["message"]["content"].pop()
    body["stopReason"] = "malformed_tool_use"


def _without_ids(body: Fields) -> None:
    for call in body["choices"][0]["message"]["tool_calls"]:
        call["id"] = ""


_BODY_EDITS: Final[dict[tuple[str, str], Callable[[Fields], None]]] = {
    ("gemini", "truncated_call"): _without_last_part,
    ("gemini", "malformed_arguments"): _malformed_call,
    ("ollama", "truncated_call"): _without_last_call,
    ("ollama", "malformed_arguments"): _without_last_call,
    ("bedrock", "malformed_arguments"): _malformed_tool_use,
    ("openai_chat", "empty_ids"): _without_ids,
}


# --- the events -------------------------------------------------------------------------------------


def events_of(reply: Reply, plan: ReplyPlan, fault: Fault | None, piece: int) -> Iterator[Event]:
    """The events of an answer, as a fault leaves them."""
    events = _told(reply, plan, fault, piece)
    if fault is not None and fault.name == "no_end":
        return (event for event in events if not isinstance(event, Finished | Used))
    if fault is not None and fault.name == "error_event":
        return _broken_off(events, fault.after)
    return events


def _told(reply: Reply, plan: ReplyPlan, fault: Fault | None, piece: int) -> Iterator[Event]:
    name = fault.name if fault is not None else ""
    yield Started(reply.id, reply.model, reply.extra)
    if reply.usage is not None:
        # What the prompt cost is known when the answer begins, and Anthropic tells it there.
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
    """The last call as far as it came; None where the protocol has left it out."""
    last = reply.turn.blocks[-1] if reply.turn.blocks else None
    if not isinstance(last, ToolCall) or len(reply.turn.calls) != len(plan.calls):
        return None
    return replace(last, arguments=None, raw_input=plan.calls[-1].text)


def _broken_off(events: Iterator[Event], after: int) -> Iterator[Event]:
    for count, event in enumerate(events):
        if count > after or isinstance(event, Finished):
            yield Failed(Failure("overloaded", "Overloaded", 529, in_band=True))
            return
        yield event


# --- the frames of Chat Completions and of Anthropic ------------------------------------------------


def spoil_chunks(chunks: list[Fields], fault: Fault | None) -> list[Fields]:
    """The chunks of a chat stream, with the calls as a careless server writes them."""
    edit = _CHUNK_EDITS.get(fault.name) if fault is not None else None
    if edit is not None:
        known: dict[int, Fields] = {}
        for call in calls_in(chunks):
            edit(call, known.setdefault(call.get("index", 0), {}))
    return chunks


def calls_in(chunks: Iterable[Fields]) -> Iterator[Fields]:
    """Every piece of a call in chunks of a stream."""
    for chunk in chunks:
        for choice in chunk.get("choices") or ():
            yield from choice.get("delta", {}).get("tool_calls") or ()


def _index_zero(call: Fields, _known: Fields) -> None:
    call["index"] = 0


def _no_index(call: Fields, _known: Fields) -> None:
    call.pop("index", None)


def _empty_id(call: Fields, _known: Fields) -> None:
    call["id"] = ""


def _repeated_name(call: Fields, known: Fields) -> None:
    function = call.setdefault("function", {})
    known.update({"id": call["id"], "name": function["name"]} if call.get("id") else {})
    call["id"], function["name"] = known.get("id"), known.get("name")


_CHUNK_EDITS: Final[dict[str, Callable[[Fields, Fields], None]]] = {
    "index_zero": _index_zero,
    "no_index": _no_index,
    "empty_ids": _empty_id,
    "repeated_names": _repeated_name,
}


def spoil_partial_json(events: list[Fields]) -> list[Fields]:
    """Anthropic's events, with the last piece of arguments broken."""
    pieces = [event["delta"] for event in events if event.get("delta", {}).get("type") == "input_json_delta"]
    if pieces:
        pieces[-1]["partial_json"] = broken(pieces[-1]["partial_json"])
    return events
