"""Streams of the OpenAI Responses protocol, written.

    created  in_progress  ( item added  ( part added  delta*  text done  part done )*  item done )*  completed

The items are those of `reply.encode`, with two exceptions. An item has its id from its beginning on: that of foreign
reasoning, which a whole reply makes of its text, is made here of the response's id and the item's position, as the
other ids are. And what ended before the reply was cut is complete.

Law: the end of a call's arguments, its item and the last response repeat the sum of their deltas, to the character. A
call that was cut ends with an item that is done and incomplete, and no event says that its arguments are. Some clients
run every call whose item is done, if they can read its arguments: one that was cut before its arguments is not shown,
and one of free text is never done. A call that is an item of its own type is shown when it is complete, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Extra,
    Failure,
    FailureKind,
    Form,
    Media,
    Opaque,
    Reply,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
)
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.errors.retry_after import from_text
from toolglot.protocols.fields.argument_text import read_object
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.protocols.openai_responses import errors, reply
from toolglot.protocols.openai_responses.client_tools import BY_TYPE
from toolglot.protocols.openai_responses.envelope import (
    fill_item,
    fill_missing,
    fill_part,
    settings_of,
    with_settings,
)
from toolglot.protocols.openai_responses.form import (
    PROTOCOL,
    ResponsesReply,
    ResponsesThinking,
    is_own,
    part_form,
)
from toolglot.protocols.openai_responses.forwarded_events import FrameFiller, end_time  # noqa: F401 - for the codec
from toolglot.protocols.openai_responses.items import ItemWriter
from toolglot.protocols.openai_responses.parts import OUTPUT, is_part

_encode: Final = msgspec.json.Encoder().encode

_ENDS: Final[dict[StopReason, str]] = {
    "stop": "completed",
    "tool_calls": "completed",
    "length": "incomplete",
    "filter": "incomplete",
    "pause": "incomplete",
    "error": "failed",
}

_END: Final = b"}\n\n"
_CUT_BY: Final[dict[StopReason, str]] = {"length": "max_output_tokens", "filter": "content_filter"}
_CODES: Final[dict[FailureKind, str]] = {"bad_request": "invalid_prompt", "not_found": "not_found"}
"""Codes of failures that have none where the status says enough; a client takes any other for one to repeat."""

_LATE: Final = ("error", "incomplete_details", "completed_at")
"""Fields that say how a response ended."""


_DEMANDED: Final[Fields] = {
    "object": "response",
    "error": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "incomplete_details": None,
}
"""What clients demand of the response of a server of this protocol that leaves it out."""


class _Message:
    """The message whose parts are being written. It ends when something that is no part of it begins."""

    __slots__ = ("as_text", "content", "cut", "fields", "id", "index", "is_own")

    def __init__(self, fields: Fields, index: int, id: str, *, is_own: bool) -> None:
        self.fields = fields
        self.index = index
        self.id = id
        self.is_own = is_own
        self.as_text = False
        self.cut = False
        self.content: list[Fields] = []


CLOSING_EVENTS: Final = frozenset(
    {
        *("response.output_text.done", "response.refusal.done", "response.content_part.done"),
        *("response.function_call_arguments.done", "response.custom_tool_call_input.done"),
        *("response.reasoning_text.done", "response.reasoning_summary_text.done"),
        "response.reasoning_summary_part.done",
    }
)
"""Events that end a part of an item, before the event that ends the item itself."""


class Encoder:
    """Writes one stream."""

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: B008 — a frozen value
        self._options = options
        self._settings = settings_of(options.settings)
        self._fills = options.settings is not None
        """Whether what a server of this protocol leaves out is filled."""
        self._out: list[bytes] = []
        self._number = 0
        self._started: Started | None = None
        self._late: Extra | None = None
        self._late_form: Form | None = None
        self._usage: Usage | None = None
        self._is_over = False
        self.final_body: Fields | None = None
        """The response as the last event has it; None until then."""
        self._items: list[Fields] = []
        self._has_cut = False
        """Whether a call was cut."""
        self._message: _Message | None = None
        self._opened: Block | None = None
        self._item: Fields = {}
        """The item of the call or the reasoning that is open."""
        self._item_id = ""
        self._head = b""
        """How the deltas of the open block begin; empty while nothing of it was written."""
        self._tail = b""
        self._input: list[str] = []
        """The arguments of the open call, as far as they were written."""

    def ping(self) -> bytes:
        return b": ping\n\n"

    def write(self, events: Iterable[Event]) -> bytes:
        listed = events if type(events) is list else list(events)
        out = self._out = []
        for position, event in enumerate(listed):
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                if self._head:
                    out += (self._head, json_bytes(event.text), self._tail, _encode(self._number), _END)
                    self._number += 1
                    if kind is InputDelta:
                        self._input.append(event.text)
                elif event.text and isinstance(self._opened, Thinking):
                    self._open_thinking(self._opened)
                    self._delta(event.text)
                elif event.text and isinstance(self._opened, ToolCall):
                    self._begin_input(event.text, self._opened)
            elif not self._is_over:
                self._other(event, listed, position)
        return b"".join(out)

    def _delta(self, text: str) -> None:
        self._out += (self._head, json_bytes(text), self._tail, _encode(self._number), _END)
        self._number += 1

    def _other(self, event: Event, listed: Sequence[Event], position: int) -> None:
        if isinstance(event, Started):
            self._start(event)
            return
        self._start(Started())
        if isinstance(event, BlockStarted):
            self._open(_known(event.block, listed, position))
        elif isinstance(event, BlockEnded):
            self._close(event.block, cut=event.cut)
        elif isinstance(event, Used):
            self._usage = event.usage
        elif isinstance(event, Finished):
            self._finish(event)
        elif isinstance(event, Failed):
            self._fail(event.failure)

    def _add_event(self, kind: str, fields: Fields) -> None:
        data = json_bytes({"type": kind, **fields, "sequence_number": self._number})
        self._number += 1
        self._out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))

    # --- the response as a whole --------------------------------------------------------------------

    def _start(self, started: Started) -> None:
        if self._started is not None:
            return
        self._started = started
        response = self._response(None)
        response["status"] = "in_progress"
        for key in _LATE:
            if key in response:
                response[key] = None
        encoded = msgspec.Raw(json_bytes(response))
        self._add_event("response.created", {"response": encoded})
        self._add_event("response.in_progress", {"response": encoded})

    def _response(self, stop: StopReason | None) -> Fields:
        """The response object with the items so far."""
        started = self._started or Started()
        extra = _laid_over(started.extra, self._late)
        form = started.form if self._late_form is None else self._late_form
        model = started.model or self._options.model
        body = reply.encode(Reply(Turn("assistant"), stop, self._usage, started.id, model, extra, form))
        if type(form) is not ResponsesReply:
            body["created_at"] = self._options.created
            if body["completed_at"] is not None:
                body["completed_at"] = end_time(self._options)
            body = with_settings(self._settings, body)
        elif self._fills:
            body = fill_missing(self._settings, {"created_at": self._options.created, **body}, end_time(self._options))
        else:
            body = {**_DEMANDED, "created_at": self._options.created, **body}
        body["output"] = self._items
        return body

    def _finish(self, finished: Finished) -> None:
        stop, self._late, self._late_form = finished.stop, finished.extra, finished.form
        if self._has_cut and _ENDS[stop] == "completed":
            stop = "length"
        self._end_message(cut=stop in _CUT_BY)
        response = self._response(stop)
        status = response.get("status")
        if type(status) is not str or stop not in reply.MEANINGS.get(status, ()):
            status = _ENDS[stop]
            if stop in _CUT_BY:
                response["incomplete_details"] = {"reason": _CUT_BY[stop]}
            if status != "completed" and "completed_at" in response:
                response["completed_at"] = None
        self._end(status, response)

    def _fail(self, failure: Failure) -> None:
        self._end_message(cut=True)
        response = self._response("error")
        response["error"] = _error(failure)
        self._end("failed", response)

    def _end(self, status: str, response: Fields) -> None:
        self._is_over = True
        self._head, self._opened = b"", None
        response["status"] = status
        self.final_body = response
        self._add_event(f"response.{'failed' if status == 'cancelled' else status}", {"response": response})

    # --- blocks -------------------------------------------------------------------------------------

    def _open(self, block: Block) -> None:
        self._opened = block
        self._head = b""
        self._input = []
        if isinstance(block, Text):
            self._open_part(block)
        elif isinstance(block, ToolCall):
            self._open_call(block)
        elif isinstance(block, Thinking):
            if type(block.form) is ResponsesThinking:
                self._add_thinking(block)
        elif not _is_part(block):
            self._add_whole(block)

    def _close(self, block: Block, *, cut: bool) -> None:
        if type(self._opened) is not type(block):
            self._open(block)
        if isinstance(block, Text | Media | Opaque) and _is_part(block):
            self._close_part(block, cut=cut)
        elif isinstance(block, ToolCall):
            self._close_call(block, cut=cut)
        elif isinstance(block, Thinking):
            self._close_thinking(block)
        elif self._item:
            self._done(_item_of(block) or self._item)
        self._head, self._opened, self._item = b"", None, {}

    def _add_whole(self, block: Block) -> None:
        """Write a whole item: of the provider's own tools, or of an unknown type."""
        item = _item_of(block)
        if item is not None:
            self._end_message()
            self._item = item
            self._add(item, item)

    def _add(self, item: Fields, added: Fields) -> None:
        """A new item; it begins as `added`."""
        if self._fills:
            item, added = fill_item(item), fill_item(added, "in_progress")
        status: Fields = {"status": "in_progress"} if "status" in added else {}
        self._add_event("response.output_item.added", {"output_index": len(self._items), "item": {**added, **status}})
        self._items.append(item)

    def _done(self, item: Fields) -> None:
        if self._fills:
            item = fill_item(item)
        self._items[-1] = item
        self._add_event("response.output_item.done", {"output_index": len(self._items) - 1, "item": item})

    def _made_id(self, prefix: str) -> str:
        """The id of the next item, where it has none of its own."""
        started = self._started or Started()
        return f"{prefix}_{started.id.removeprefix('resp_')}_{len(self._items)}"

    def _deltas(self, kind: str, position: Fields, tail: bytes = b"") -> None:
        """The deltas of the open block from now on."""
        whole = json_bytes({"type": kind, **position, "delta": ""})
        self._head = b"event: %b\ndata: %b" % (kind.encode(), whole.removesuffix(b'""}'))
        self._tail = tail + b',"sequence_number":'

    # --- messages -----------------------------------------------------------------------------------

    def _open_part(self, block: Text) -> None:
        found = _said_in(block, fills=self._fills)
        if found is None:
            return
        message = self._message_for(block, found[0])
        position = {"item_id": message.id, "output_index": message.index, "content_index": len(message.content)}
        self._add_event("response.content_part.added", {**position, "part": _unspoken_part(found[1])})
        if found[1]["type"] == "refusal":
            self._deltas("response.refusal.delta", position)
        else:
            self._deltas("response.output_text.delta", position, b',"logprobs":[]')

    def _message_for(self, block: Block, fields: Fields) -> _Message:
        """The message that a part belongs to: the one that is open, or a new one."""
        message = self._message
        form = part_form(block)
        begins = form is not None and form.message_rest is not None
        joins = form is not None and form.is_joined
        if message is not None and not begins and not message.as_text and (joins or not message.is_own):
            return message
        self._end_message()
        made = self._made_id("msg")
        if not begins:
            fields = {"id": made, "status": "completed", **fields}
        id = fields.get("id")
        message = _Message(fields, len(self._items), id if type(id) is str else made, is_own=begins)
        self._add(fields, {**fields, "content": []})
        self._message = message
        return message

    def _close_part(self, block: Text | Media | Opaque, *, cut: bool) -> None:
        found = _said_in(block, fills=self._fills)
        if found is None:
            return
        fields, part = found
        if not isinstance(block, Text):
            message = self._message_for(block, fields)
        else:
            message = self._message or self._message_for(block, fields)
        form = part_form(block)
        if form is not None and form.message_rest is not None and not message.content:
            # What is known of the message in the end; but it stays the one that it was.
            message.fields = {**fields, "id": message.id} if "id" in message.fields else fields
            message.as_text = form.is_string and isinstance(block, Text)
        position = {"item_id": message.id, "output_index": message.index, "content_index": len(message.content)}
        if not isinstance(block, Text):
            self._add_event("response.content_part.added", {**position, "part": part})
        elif part["type"] == "refusal":
            self._add_event("response.refusal.done", {**position, "refusal": block.text})
        else:
            self._annotations(position, part)
            logprobs = part.get("logprobs")
            self._add_event(
                "response.output_text.done",
                {**position, "text": block.text, "logprobs": logprobs if type(logprobs) is list else []},
            )
        self._add_event("response.content_part.done", {**position, "part": part})
        message.content.append(part)
        message.cut = cut

    def _annotations(self, position: Fields, part: Fields) -> None:
        annotations = part.get("annotations")
        for index, annotation in enumerate(annotations if type(annotations) is list else ()):
            found = {**position, "annotation_index": index, "annotation": annotation}
            self._add_event("response.output_text.annotation.added", found)

    def _end_message(self, *, cut: bool = False) -> None:
        message, self._message = self._message, None
        if message is None:
            return
        content: Any = message.content
        if message.as_text:
            content = content[0]["text"]
        status: Fields = {} if message.is_own else {"status": "incomplete" if cut or message.cut else "completed"}
        self._done({**message.fields, **status, "content": content})

    # --- calls --------------------------------------------------------------------------------------

    def _open_call(self, call: ToolCall) -> None:
        self._end_message()
        if call.type in BY_TYPE:
            return
        is_custom = call.type == "custom"
        item = self._call_item(replace(call, arguments=None, raw_input=None))
        item["input" if is_custom else "arguments"] = ""
        id = item.get("id")
        self._item_id = id if type(id) is str else self._made_id(_prefix(call))
        self._item = item

    def _begin_input(self, text: str, call: ToolCall) -> None:
        """The first arguments of a call; blank ones wait, since there may be no others."""
        self._input.append(text)
        if call.type == "custom" or (call.type not in BY_TYPE and not text.isspace()):
            self._show_call(call)
            self._delta("".join(self._input))

    def _show_call(self, call: ToolCall) -> None:
        position = {"item_id": self._item_id, "output_index": len(self._items)}
        self._add(self._item, self._item)
        is_custom = call.type == "custom"
        self._deltas(
            "response.custom_tool_call_input.delta" if is_custom else "response.function_call_arguments.delta", position
        )

    def _call_item(self, call: ToolCall) -> Fields:
        item = _item_of(call) or {}
        if not is_own(call):
            return {"id": self._made_id(_prefix(call)), "status": "completed", **item}
        return item

    def _close_call(self, call: ToolCall, *, cut: bool) -> None:
        if call.type in BY_TYPE:
            self._add_typed_call(call, cut=cut)
            return
        key = "input" if call.type == "custom" else "arguments"
        names: Fields = {name: self._item[name] for name in ("id", "call_id", "name") if name in self._item}
        item: Fields = {**self._call_item(call), **names}
        text = "".join(self._input)
        if cut:
            self._end_cut_call({**item, key: text, "status": "incomplete"}, is_done=call.type != "custom")
            return
        if not self._head:
            self._show_call(call)
            text = _input(call, item[key]) or ("" if call.type == "custom" else "{}")
            if text:
                self._delta(text)
        item[key] = text
        position = {"item_id": self._item_id, "output_index": len(self._items) - 1}
        event = "custom_tool_call_input" if call.type == "custom" else "function_call_arguments"
        self._add_event(f"response.{event}.done", {**position, key: text})
        self._done(item)

    def _add_typed_call(self, call: ToolCall, *, cut: bool) -> None:
        """Write a call that is an item of its own type."""
        if cut:
            self._has_cut = True
            return
        item = self._call_item(call)
        self._add(item, item)
        self._done(item)

    def _end_cut_call(self, item: Fields, *, is_done: bool) -> None:
        self._has_cut = True
        if self._head and is_done:
            self._done(item)
        elif self._head:
            self._items[-1] = item

    # --- reasoning ----------------------------------------------------------------------------------

    def _add_thinking(self, block: Thinking) -> None:
        """Reasoning begins."""
        self._end_message()
        made = self._made_id("rs")
        item: Fields = {"type": "reasoning", "id": made, "summary": []}
        if type(block.form) is ResponsesThinking:
            item = _item_of(block) or item
        id = item.get("id")
        self._item, self._item_id = item, id if type(id) is str else made
        empty: Fields = {key: [] for key in ("summary", "content") if item.get(key)}
        self._add(item, {**item, **empty})

    def _open_thinking(self, block: Thinking) -> None:
        """Something was thought: of others, what has no text is not shown."""
        if not self._item:
            self._add_thinking(block)
        position: Fields = {"item_id": self._item_id, "output_index": len(self._items) - 1}
        if self._item.get("content") and not self._item.get("summary"):
            position["content_index"] = 0
            part = {"type": "reasoning_text", "text": ""}
            self._add_event("response.content_part.added", {**position, "part": part})
            self._deltas("response.reasoning_text.delta", position)
        else:
            position["summary_index"] = 0
            part = {"type": "summary_text", "text": ""}
            self._add_event("response.reasoning_summary_part.added", {**position, "part": part})
            self._deltas("response.reasoning_summary_text.delta", position)

    def _close_thinking(self, block: Thinking) -> None:
        if block.text and not self._head:
            self._open_thinking(block)
            self._delta(block.text)
        if not self._item:
            return
        item: Fields = {"type": "reasoning", "summary": [{"type": "summary_text", "text": block.text}]}
        if type(block.form) is ResponsesThinking:
            item = _item_of(block) or item
        if "id" in self._item:
            item = {**item, "id": self._item_id}
        if self._head:
            self._end_thought(block.text)
        self._done(item)

    def _end_thought(self, text: str) -> None:
        position: Fields = {"item_id": self._item_id, "output_index": len(self._items) - 1}
        if b"reasoning_summary" in self._head:
            position["summary_index"] = 0
            self._add_event("response.reasoning_summary_text.done", {**position, "text": text})
            part = {"type": "summary_text", "text": text}
            self._add_event("response.reasoning_summary_part.done", {**position, "part": part})
        else:
            position["content_index"] = 0
            self._add_event("response.reasoning_text.done", {**position, "text": text})
            part = {"type": "reasoning_text", "text": text}
            self._add_event("response.content_part.done", {**position, "part": part})


def _known(block: Block, events: Sequence[Event], position: int) -> Block:
    """A block that began, with its own ids: if they are not known yet, those of its end, should that be there."""
    if not isinstance(block, Text | Thinking) or is_own(block):
        return block
    for index in range(position + 1, len(events)):
        event = events[index]
        if isinstance(event, BlockEnded):
            whole = event.block
            if type(whole) is type(block) and isinstance(whole, Text | Thinking) and is_own(whole):
                return replace(whole, text="")
            break
    return block


def _is_part(block: Block) -> bool:
    """Whether a block stands in a message."""
    return isinstance(block, Text | Media) or (isinstance(block, Opaque) and is_part(block))


def _item_of(block: Block) -> Fields | None:
    """The item that a reply has for a block; None if it has none."""
    turn = Turn("assistant", (block,))
    writer = ItemWriter((turn,), for_reply=True)
    writer.write(turn)
    return next(iter(writer.items), None)


def _prefix(call: ToolCall) -> str:
    """How the id of a call's item begins."""
    tool = BY_TYPE.get(call.type)
    return tool.prefix if tool is not None else "ctc" if call.type == "custom" else "fc"


def _said_in(block: Block, *, fills: bool) -> tuple[Fields, Fields] | None:
    """The message that a part would stand in alone, and the part; None if there is none for it."""
    item = _item_of(block)
    if item is None:
        return None
    content = item["content"]
    part: Fields = {"type": OUTPUT, "text": content} if type(content) is str else content[0]
    if part["type"] == OUTPUT:
        part = {"annotations": [], **part} if is_own(block) and not fills else fill_part(part)
    return item, part


def _unspoken_part(part: Fields) -> Fields:
    """A part as it begins."""
    empty: Fields = {key: [] for key in ("annotations", "logprobs") if type(part.get(key)) is list}
    return {**part, **empty, "refusal" if part["type"] == "refusal" else "text": ""}


def _input(call: ToolCall, written: str) -> str:
    """The input of a call: as it was streamed, if that is the same object; otherwise as a reply has it."""
    raw = call.raw_input
    if raw is None or raw == written or call.type == "custom":
        return written
    return raw if read_object(raw)[0] is not None else written


def _laid_over(early: Extra | None, late: Extra | None) -> Extra | None:
    """This protocol's own fields of a reply, what is known late over what was known early."""
    fields = {**(early or {}).get(PROTOCOL, {}), **(late or {}).get(PROTOCOL, {})}
    return {PROTOCOL: fields} if fields else None


def _error(failure: Failure) -> Fields:
    """The error of a response that failed. Only its message can hold the time to wait."""
    body = errors.encode(failure)[1]
    held = body.get("response")
    inner = (held if type(held) is dict else body).get("error")
    found: Fields = inner if type(inner) is dict else body
    message, code = found.get("message"), found.get("code")
    text = message if type(message) is str and message else failure.message
    if failure.retry_after is not None and from_text(text) is None:
        text = f"{text.rstrip('. ')}. Please try again in {failure.retry_after:g}s."
    if type(code) is not str or not code:
        code = _CODES.get(failure.kind, "server_error")
    return {"code": code, "message": text}
