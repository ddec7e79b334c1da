"""Writes the streams of the Anthropic Messages protocol. `block_streams/writer.py` has what Bedrock's streams share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Compaction,
    Extra,
    Failure,
    Form,
    Reply,
    ServerTool,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Turn,
)
from toolglot.conversation.events import (
    Event,
    Finished,
    InputDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.jsontext import compact
from toolglot.protocols.anthropic import errors, reply
from toolglot.protocols.anthropic.blocks import COMPACTION
from toolglot.protocols.anthropic.form import PROTOCOL, AnthropicReply, AnthropicText
from toolglot.protocols.anthropic.host_frames import AwsEventWriter
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.block_streams.writer import ANY_CALL, BlockStreamEncoder
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_bytes

host_writer: Final = AwsEventWriter
_PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
_END_OF_DELTA: Final = b"}}\n\n"
_NO_USAGE: Final[Fields] = {"input_tokens": 0, "output_tokens": 0}
_LATE: Final = ("stop_sequence", "stop_details", "container")
"""What the end of a message holds besides its stop reason."""
_NOT_IN_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")

_encode: Final = msgspec.json.Encoder().encode


def _event(fields: Fields) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (fields["type"].encode(), json_bytes(fields))


class Encoder(BlockStreamEncoder):
    """Writes one stream."""

    _PROTOCOL = PROTOCOL
    _LEFT_OPEN = ToolCall

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: B008
        super().__init__(options)
        self._is_begun = False
        """Whether message_start was written."""
        self._is_native = False

    def write(self, events: Iterable[Event]) -> bytes:
        out = self._out
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                text: str = event.text  # type: ignore[union-attr]
                if self._prefix is None and self._waits:
                    text = self._first_delta(text)
                if self._prefix is not None and text:
                    try:
                        out.append(self._prefix + _encode(text) + _END_OF_DELTA)
                    except UnicodeEncodeError:
                        out.append(self._prefix + json_bytes(text) + _END_OF_DELTA)
            elif not self._is_over:
                self._write(event)
        if self._started is not None and not self._is_begun:
            self._begin()
        if len(out) == 1:
            return out.pop()
        written = b"".join(out)
        out.clear()
        return written

    def ping(self) -> bytes:
        return _PING

    # --- the message --------------------------------------------------------------------------------

    def _write(self, event: Event) -> None:
        if isinstance(event, Started):
            if self._started is None:
                self._started = event
                if type(event.form) is not AnthropicReply:
                    self._begin()  # the usage comes at the end, however the events are grouped
            return
        if isinstance(event, Used):
            self._usage = event.usage
            return
        if not self._is_begun:
            self._begin()
        self._write_event(event)

    def _fail(self, failure: Failure) -> None:
        if not isinstance(self._block, ToolCall):
            self._close_block()
        _, body = errors.encode(failure)
        self._out.append(_event({**body, "type": "error"}))

    def _body(self, stop: StopReason | None, extra: Extra | None, form: Form | None, *blocks: Block) -> Fields:
        """The body of a reply with these blocks."""
        started = self._started or Started()
        model = started.model or self._options.model
        return reply.encode(Reply(Turn("assistant", blocks), stop, self._usage, started.id, model, extra, form))

    def _begin(self) -> None:
        """Write the start of the message; of an Anthropic one as late as possible, since it holds the usage."""
        self._started = self._started or Started()
        self._is_begun = True
        self._is_native = type(self._started.form) is AnthropicReply
        body = self._body(None, self._started.extra, self._started.form)
        message = {
            **body,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_NO_USAGE, **(body.get("usage") or {})},
        }
        message.pop("stop_details", None)
        self._out.append(_event({"type": "message_start", "message": message}))

    def _finish(self, event: Finished) -> None:
        stop, extra, form = self._final(event)
        body = self._body(stop, extra, form, *([ANY_CALL] if self._has_whole_calls else []))
        delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
        delta.update((key, body[key]) for key in _LATE if key in body)
        late = (event.extra or {}).get(PROTOCOL, {})
        others = {key: body[key] for key in late if key in body and key not in _LATE}
        usage = {"output_tokens": 0, **(body.get("usage") or {})}
        self._out.append(_event({"type": "message_delta", "delta": delta, "usage": usage, **others}))
        self._out.append(_event({"type": "message_stop"}))

    # --- blocks -------------------------------------------------------------------------------------

    def _start_text(self, block: Text) -> None:
        if type(block.form) is not AnthropicText:
            fields = self._block_fields(block) or {}
            if type(fields.get("citations")) is list:
                fields = {**fields, "citations": []}
            self._open({**fields, "text": ""})
            self._start_deltas("text_delta", "text")

    def _block_fields(self, block: Block) -> Fields | None:
        """A block as it is in a whole reply; None if the protocol has no form for it."""
        form = self._started.form if self._started is not None else None
        written: list[Fields] = reply.encode(Reply(Turn("assistant", (block,)), form=form))["content"]
        return written[0] if written else None

    def _with_id(self, call: ToolCall) -> ToolCall:
        if call.id or self._is_native or self._started is None:
            return call
        return replace(call, id=f"toolu_{_NOT_IN_ID.sub('_', self._started.id)}_{self._calls - 1}")

    def _start_call(self) -> None:
        if isinstance(self._block, ToolCall):
            call = replace(self._block, arguments=None, raw_input=None)
            self._open({**(self._block_fields(call) or {}), "input": {}})

    def _start_input(self) -> None:
        self._start_deltas("input_json_delta", "partial_json")

    def _write_input(self, call: ToolCall) -> None:
        fields = self._block_fields(call) or {}
        self._add_delta({"type": "input_json_delta", "partial_json": compact(fields["input"])})

    def _start_thinking(self, block: Thinking, text: str) -> None:
        self._open({**(self._block_fields(replace(block, text=text)) or {}), "thinking": "", "signature": ""})
        self._start_deltas("thinking_delta", "thinking")

    def _open(self, fields: Fields) -> None:
        self._is_open = True
        self._out.append(_event({"type": "content_block_start", "index": self._index, "content_block": fields}))

    def _start_deltas(self, kind: str, key: str) -> None:
        self._prefix = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b"%b":' % (
            self._index,
            b'{"type":"%b",' % kind.encode(),
            key.encode(),
        )

    def _end_text(self, block: Text) -> None:
        if not self._is_open:
            self._write_block(block)
            return
        cited = (self._block_fields(block) or {}).get("citations")
        for citation in cited if type(cited) is list else ():
            self._add_delta({"type": "citations_delta", "citation": citation})

    def _end_thinking(self, block: Thinking) -> None:
        written = self._block_fields(block)
        if written is None:
            return
        if not self._is_open:
            if written["type"] != "thinking":
                self._open(written)
                return
            self._open({**written, "thinking": "", "signature": ""})
        if written.get("signature"):
            self._add_delta({"type": "signature_delta", "signature": written["signature"]})

    def _write_block(self, block: Block) -> None:
        fields = self._block_fields(block)
        if type(fields) is not dict:
            return
        arguments = fields.get("input")
        if isinstance(block, ServerTool) and block.phase == "call" and type(arguments) is dict:
            self._open({**fields, "input": {}})
            self._add_delta({"type": "input_json_delta", "partial_json": compact(arguments)})
        elif isinstance(block, Compaction):
            self._write_compaction(fields)
        else:
            self._open(fields)

    def _write_compaction(self, fields: Fields) -> None:
        """A summary comes whole, in one delta."""
        summary = {key: fields[key] for key in COMPACTION if fields.get(key) is not None}
        self._open({**fields, "content": None} if summary else fields)
        if summary:
            self._add_delta({"type": "compaction_delta", **summary})

    def _add_delta(self, delta: Fields) -> None:
        self._out.append(_event({"type": "content_block_delta", "index": self._index, "delta": delta}))

    def _write_block_stop(self) -> None:
        self._out.append(_event({"type": "content_block_stop", "index": self._index}))
