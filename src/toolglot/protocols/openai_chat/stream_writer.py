"""Writes the streams of the Chat Completions protocol, for the strictest of its clients.

Law: a client that puts the deltas together gets the message that `reply.encode` writes for the same reply. Indexes of
calls count up from 0; the id, type and name of a call are in its first delta and nowhere else; nothing follows the end.
A call that was cut is left as it is: the finish reason says that the reply is not complete. A client that wants whole
calls gets each in one delta, and nothing of a call that was cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Block, Extra, Failure, Media, Opaque, Reply, Text, Thinking, ToolCall, Turn, Usage
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
from toolglot.conversation.reply_events import input_text
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.fields.reading import Fields, with_extra
from toolglot.protocols.fields.refusals import REFUSAL, without_refusals
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.protocols.openai_chat import errors, reply
from toolglot.protocols.openai_chat.blocks import write_call, write_part
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatReply, ChatThinking
from toolglot.protocols.openai_chat.messages import position_of

_NOT_IN_CHUNKS: Final = frozenset({"choices", "usage", "object"})
_NOT_IN_CHOICES: Final = frozenset({"index", "message", "finish_reason"})
LAST_EVENT: Final = b"data: [DONE]\n\n"
"""The event at the end of every stream."""
_PING: Final = b": ping\n\n"
_END_OF_DELTA: Final = b'},"finish_reason":null}]}\n\n'
_CALL: Final = ToolCall("", "")

_encode: Final = msgspec.json.Encoder().encode


class Encoder:
    """Writes one stream."""

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: B008
        self._options = options
        self._started: Started | None = None
        self._is_native = False
        self._is_over = False
        self._chunk: bytes = b""
        """A chunk up to its choices."""
        self._delta: bytes = b""
        """A chunk up to the content of its delta."""
        self._prefix: bytes | None = None
        """What comes before a piece of the open block; None while its pieces are not written."""
        self._suffix: bytes = b""
        self._blocks: list[Block] = []
        """The blocks that the finish reason depends on."""
        self._calls = 0
        self._has_text = False
        self._has_legacy_call = False
        """Whether a legacy `function_call` was written."""
        self._has_input = True
        """Whether arguments of the open call were written."""
        self._head: Fields | None = None
        """The beginning of the open call. It is written with the first arguments: a call that was cut before them must
        not look like one without arguments."""
        self._usage: Usage | None = None

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                text: str = event.text  # type: ignore[union-attr]
                if self._prefix is not None and (self._has_input or self._begins_input(text, out)):
                    out.append(self._prefix)
                    try:
                        out.append(_encode(text))
                    except UnicodeEncodeError:
                        out.append(json_bytes(text))
                    out.append(self._suffix)
            elif not self._is_over:
                self._write(event, out)
        return b"".join(out)

    def ping(self) -> bytes:
        return _PING

    def _write(self, event: Event, out: list[bytes]) -> None:
        if self._started is None:
            self._start(event if isinstance(event, Started) else Started(), out)
        if isinstance(event, BlockStarted):
            self._begin(event.block)
        elif isinstance(event, BlockEnded):
            self._end(event, out)
        elif isinstance(event, Used):
            self._usage = event.usage
        elif isinstance(event, Finished):
            self._finish(event, out)
        elif isinstance(event, Failed):
            self._fail(event.failure, out)

    # --- beginning and end --------------------------------------------------------------------------

    def _start(self, started: Started, out: list[bytes]) -> None:
        self._started = started
        self._is_native = type(started.form) is ChatReply
        model = started.model or self._options.model
        body = reply.encode(
            Reply(Turn("assistant"), id=started.id, model=model, extra=started.extra, form=started.form)
        )
        own = {key: value for key, value in body.items() if key not in _NOT_IN_CHUNKS}
        own["created"] = own.get("created") or self._options.created
        head = {"id": started.id, "object": "chat.completion.chunk", "created": 0, "model": model, **own}
        self._chunk = b"data: " + json_bytes(head)[:-1] + b',"choices":['
        self._delta = self._chunk + b'{"index":0,"delta":{'
        self._add_delta({"role": "assistant", "content": None}, out)

    def _add_delta(self, delta: Fields, out: list[bytes]) -> None:
        out.append(self._delta + json_bytes(delta)[1:-1] + _END_OF_DELTA)

    def _finish(self, finished: Finished, out: list[bytes]) -> None:
        """The reason to stop, what else is known of the choice, and what the reply cost."""
        self._is_over = True
        started = self._started or Started()
        extra = _merge_extra(started.extra, finished.extra)
        turn = Turn("assistant", tuple(self._blocks) if self._options.refusals else without_refusals(self._blocks))
        form = finished.form if type(finished.form) is ChatReply else started.form
        body = reply.encode(Reply(turn, finished.stop, self._usage, started.id, started.model, extra, form))
        choice = body["choices"][0]
        delta = with_extra({}, finished.turn_extra, PROTOCOL)
        if not self._has_text and not self._calls:
            delta["content"] = ""
        rest = {key: value for key, value in choice.items() if key not in _NOT_IN_CHOICES and value is not None}
        original_reason = form.finish_reason if type(form) is ChatReply else None
        reason = (
            original_reason
            if self._has_legacy_call and original_reason == "function_call"
            else reply.reason_for(finished.stop, original_reason, turn)
        )
        written = {"index": 0, "delta": delta, **rest, "finish_reason": reason}
        cost = b',"usage":' + json_bytes(body["usage"]) if "usage" in body else b""
        out.append(self._chunk + json_bytes(written) + b"]" + (cost if self._options.whole_calls else b"") + b"}\n\n")
        if self._options.usage and cost and not self._options.whole_calls:
            out.append(self._chunk + b"]" + cost + b"}\n\n")
        out.append(LAST_EVENT)

    def _fail(self, failure: Failure, out: list[bytes]) -> None:
        """What the reply cost so far, where that is known, and an error, which clients know by this one name."""
        self._is_over = True
        if self._usage is not None and self._options.usage and not self._options.whole_calls and not self._is_native:
            started = self._started or Started()
            body = reply.encode(Reply(Turn("assistant"), None, self._usage, started.id, started.model))
            out.append(self._chunk + b'],"usage":' + json_bytes(body["usage"]) + b"}\n\n")
        _, body = errors.encode(failure)
        if not body.get("error"):
            _, body = errors.encode(replace(failure, extra=None))
        out.append(b"data: " + json_bytes(body) + b"\n\n")

    # --- blocks -------------------------------------------------------------------------------------

    def _begin(self, block: Block) -> None:
        self._prefix, self._suffix, self._has_input, self._head = None, _END_OF_DELTA, True, None
        if isinstance(block, ToolCall):
            self._begin_call(block)
        elif isinstance(block, Text):
            field = self._refusal_field(block)
            if field is not None:
                self._prefix = self._field(field)
            elif type(write_part(block)) is str:
                self._prefix = self._field("content")
        elif isinstance(block, Thinking):
            self._begin_thinking(block)

    def _refusal_field(self, block: Text) -> str | None:
        """The field of a text that is no part of the content."""
        position = position_of(block)
        is_foreign = position is None and not self._is_native and self._options.refusals
        return REFUSAL if is_foreign and block.is_refusal else position

    def _field(self, key: str) -> bytes:
        return self._delta + json_bytes(key) + b":"

    def _begin_thinking(self, block: Thinking) -> None:
        form = block.form if type(block.form) is ChatThinking else None
        field = form.field if form is not None else None
        if self._options.thinking_parts:
            self._prefix = self._field("content") + b'[{"type":"thinking","thinking":[{"type":"text","text":'
            self._suffix = b"}]}]" + _END_OF_DELTA
        else:
            self._prefix = self._field(field or "reasoning_content")

    def _begin_call(self, block: ToolCall) -> None:
        index = self._calls
        fields = write_call(block)
        key, text = ("custom", "input") if block.type == "custom" else ("function", "arguments")
        id = block.id or f"call_{self._started.id if self._started else ''}_{index}"
        head = {"index": index, "id": id, "type": key}
        self._head = {**head, **fields, **head, key: {**fields[key], text: ""}}
        self._prefix = self._delta + b'"tool_calls":[{"index":%d,"%b":{"%b":' % (index, key.encode(), text.encode())
        self._suffix = b"}}]" + _END_OF_DELTA
        self._has_input = False
        if self._options.whole_calls:
            self._prefix = None

    def _begins_input(self, text: str, out: list[bytes]) -> bool:
        """Spaces before arguments are left out, since there may be nothing else. Those of a free text are its own."""
        is_custom = self._head is not None and self._head["type"] == "custom"
        self._has_input = text != "" and (is_custom or not text.isspace())
        if self._has_input:
            self._show_call(out)
        return self._has_input

    def _show_call(self, out: list[bytes]) -> None:
        if self._head is not None:
            self._add_delta({"tool_calls": [self._head]}, out)
            self._calls += 1
            self._head = None

    def _end(self, event: BlockEnded, out: list[bytes]) -> None:
        block = event.block
        if isinstance(block, ToolCall):
            if not event.cut:
                self._blocks.append(_CALL)
                self._end_call(block, out)
        elif isinstance(block, Text):
            self._end_text(block, out)
        elif isinstance(block, Thinking):
            if self._suffix is not _END_OF_DELTA and block.signature is not None:
                self._add_delta({"content": [{"type": "thinking", "thinking": [], "signature": block.signature}]}, out)
        elif isinstance(block, Opaque | Media):
            self._write_block(block, out)
        self._prefix = None

    def _end_call(self, call: ToolCall, out: list[bytes]) -> None:
        if self._has_input:
            return
        text = input_text(call)
        written = text if text.strip() or call.type == "custom" else "{}"
        if self._options.whole_calls and self._head is not None:
            key, field = ("custom", "input") if call.type == "custom" else ("function", "arguments")
            self._head[key][field] = written
        self._show_call(out)
        if self._prefix is not None and written:
            out += (self._prefix, json_bytes(written), self._suffix)

    def _end_text(self, block: Text, out: list[bytes]) -> None:
        if block.text:
            self._blocks.append(replace(block, text="."))
        self._has_text = self._has_text or position_of(block) is None
        if self._prefix is None:
            self._add_delta({"content": [write_part(block)]}, out)

    def _write_block(self, block: Opaque | Media, out: list[bytes]) -> None:
        """Write a whole block, if the protocol has a form for it."""
        position = position_of(block)
        if isinstance(block, Opaque) and position == "tool_calls":
            self._add_delta({"tool_calls": [{**block.value, "index": self._calls}]}, out)
            self._calls += 1
        elif isinstance(block, Opaque) and position == "function_call":
            self._has_legacy_call = True
            self._add_delta({position: block.value[position]}, out)
        elif self._is_native or isinstance(block, Opaque):
            part = write_part(block)
            if part is not None:
                self._has_text = True
                self._add_delta({"content": [part]}, out)


def _merge_extra(early: Extra | None, late: Extra | None) -> Extra | None:
    """The fields of this protocol at the end of the reply."""
    fields = {**(early or {}).get(PROTOCOL, {}), **(late or {}).get(PROTOCOL, {})}
    return {PROTOCOL: fields} if fields else None
