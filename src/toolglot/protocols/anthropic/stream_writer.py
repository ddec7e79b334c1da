"""Streams of the Anthropic Messages protocol, written.

Law: a client that puts the stream together gets the body that `reply.encode` writes for the same reply, so every block
and every field comes from there. Blocks count up from 0, one is open at a time, and nothing follows the end.

What a block is may be known only when it ends: thinking that nobody may read, arguments that are no object, what a
server tool was asked. Such a block is written then, and at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Extra,
    Form,
    Reply,
    ServerTool,
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
from toolglot.jsontext import compact
from toolglot.protocols.anthropic import errors, reply
from toolglot.protocols.anthropic.form import PROTOCOL, AnthropicReply, AnthropicText
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_bytes

_PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
_END_OF_DELTA: Final = b"}}\n\n"
_NO_USAGE: Final[Fields] = {"input_tokens": 0, "output_tokens": 0}
_LATE: Final = ("stop_sequence", "stop_details", "container")
"""What the end of a message says of it beside why it ended."""
_NOT_IN_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")

_encode: Final = msgspec.json.Encoder().encode


def _event(fields: Fields) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (fields["type"].encode(), json_bytes(fields))


class Encoder:
    """Writes one stream."""

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: B008
        self._options = options
        self._out: list[bytes] = []
        self._started: Started | None = None
        self._is_begun = False
        """Whether message_start was written."""
        self._is_over = False
        self._is_native = False
        self._usage: Usage | None = None
        self._calls = 0
        self._has_whole_calls = False
        self._has_cut_calls = False
        self._index = 0
        self._block: Block | None = None
        """The block that is open in the events."""
        self._is_open = False
        """Whether it is open for the client."""
        self._delta: bytes | None = None
        """What stands before the text of a delta; None while its deltas are not written."""
        self._waits = False
        """Whether its first delta decides what is written."""
        self._is_cut = False
        """Whether it is a call that was cut: it is closed only if the message goes on, since clients run what is
        closed."""

    def write(self, events: Iterable[Event]) -> bytes:
        out = self._out
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                text: str = event.text  # type: ignore[union-attr]
                if self._delta is None and self._waits:
                    text = self._first(text)
                if self._delta is not None and text:
                    try:
                        out.append(self._delta + _encode(text) + _END_OF_DELTA)
                    except UnicodeEncodeError:
                        out.append(self._delta + json_bytes(text) + _END_OF_DELTA)
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
                    self._begin()  # what it costs is told at the end, however the events are grouped
            return
        if isinstance(event, Used):
            self._usage = event.usage
            return
        if not self._is_begun:
            self._begin()
        if self._is_cut and not isinstance(event, Failed):
            self._stop()
        if isinstance(event, BlockStarted):
            self._start(event.block)
        elif isinstance(event, BlockEnded):
            self._end(event.block, is_cut=event.cut)
        elif isinstance(event, Finished):
            self._finish(event)
        elif isinstance(event, Failed):
            if not isinstance(self._block, ToolCall):
                self._stop()
            self._is_over = True
            _, body = errors.encode(event.failure)
            self._out.append(_event({**body, "type": "error"}))

    def _body(self, stop: StopReason | None, extra: Extra | None, form: Form | None, *blocks: Block) -> Fields:
        """The body of a reply with these blocks."""
        started = self._started or Started()
        model = started.model or self._options.model
        return reply.encode(Reply(Turn("assistant", blocks), stop, self._usage, started.id, model, extra, form))

    def _begin(self) -> None:
        """The start of the message; of an Anthropic one as late as can be, since it says what it costs."""
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
        self._stop()
        self._is_over = True
        started = self._started or Started()
        late = (event.extra or {}).get(PROTOCOL, {})
        extra = {PROTOCOL: {**(started.extra or {}).get(PROTOCOL, {}), **late}}
        form = started.form if event.form is None else event.form
        stop = event.stop
        if self._has_cut_calls and stop in ("stop", "tool_calls"):
            stop = "length"
        body = self._body(stop, extra, form, *([_ANY_CALL] if self._has_whole_calls else []))
        delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
        delta.update((key, body[key]) for key in _LATE if key in body)
        names = [key[1:] if key.startswith("~~") else key for key in late]
        others = {key: body[key] for key in names if key in body and key not in _LATE}
        usage = {"output_tokens": 0, **(body.get("usage") or {})}
        self._out.append(_event({"type": "message_delta", "delta": delta, "usage": usage, **others}))
        self._out.append(_event({"type": "message_stop"}))

    # --- blocks -------------------------------------------------------------------------------------

    def _start(self, block: Block) -> None:
        self._block, self._delta, self._waits, self._is_open = block, None, False, False
        if isinstance(block, Text):
            if type(block.form) is not AnthropicText:
                fields = self._written(block) or {}
                if type(fields.get("citations")) is list:
                    fields = {**fields, "citations": []}
                self._open({**fields, "text": ""})
                self._delta = self._before("text_delta", "text")
        elif isinstance(block, Thinking):
            self._waits = True
        elif isinstance(block, ToolCall):
            self._calls += 1
            self._block = block = self._named(block)
            self._waits = block.type != "custom"

    def _written(self, block: Block) -> Fields | None:
        """A block as it is in a whole reply; None if it has no place there."""
        form = self._started.form if self._started is not None else None
        written: list[Fields] = reply.encode(Reply(Turn("assistant", (block,)), form=form))["content"]
        return written[0] if written else None

    def _named(self, call: ToolCall) -> ToolCall:
        """A call from elsewhere with an id, without which no result could be sent."""
        if call.id or self._is_native or self._started is None:
            return call
        return replace(call, id=f"toolu_{_NOT_IN_ID.sub('_', self._started.id)}_{self._calls - 1}")

    def _open_call(self) -> None:
        """The start of a call, not before its first argument: one that was cut there must not look like one that has
        none."""
        if isinstance(self._block, ToolCall):
            self._open({**(self._written(replace(self._block, arguments=None, raw_input=None)) or {}), "input": {}})

    def _open(self, fields: Fields) -> None:
        self._is_open = True
        self._out.append(_event({"type": "content_block_start", "index": self._index, "content_block": fields}))

    def _before(self, kind: str, key: str) -> bytes:
        """All of a delta that stands before its text."""
        return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b"%b":' % (
            self._index,
            b'{"type":"%b",' % kind.encode(),
            key.encode(),
        )

    def _first(self, text: str) -> str:
        """What of the first delta is written, which decides whether those that follow are."""
        block = self._block
        if isinstance(block, Thinking):
            if text:
                self._open({**(self._written(replace(block, text=text)) or {}), "thinking": "", "signature": ""})
                self._delta = self._before("thinking_delta", "thinking")
            return text
        text = text.lstrip()
        if text.startswith("{"):
            self._open_call()
            self._delta = self._before("input_json_delta", "partial_json")
        elif text:
            self._waits = False  # no object, so that only the whole of it can be written
        return text

    def _end(self, block: Block, *, is_cut: bool) -> None:
        if isinstance(block, ToolCall):
            self._end_call(block, is_cut=is_cut)
        elif isinstance(block, Thinking):
            self._end_thinking(block)
        elif isinstance(block, Text) and self._is_open:
            written = self._written(block) or {}
            cited = written.get("citations")
            for citation in cited if type(cited) is list else ():
                self._say({"type": "citations_delta", "citation": citation})
        else:
            self._put(block)
        self._is_cut = is_cut and isinstance(block, ToolCall)
        if not self._is_cut:
            self._stop()

    def _end_call(self, call: ToolCall, *, is_cut: bool) -> None:
        self._has_cut_calls = self._has_cut_calls or is_cut
        self._has_whole_calls = self._has_whole_calls or not is_cut
        if self._delta is None and not is_cut:
            self._open_call()
            written = self._written(call) or {}
            self._say({"type": "input_json_delta", "partial_json": compact(written["input"])})

    def _end_thinking(self, block: Thinking) -> None:
        written = self._written(block)
        if written is None:
            return
        if not self._is_open:
            if written["type"] != "thinking":
                self._open(written)
                return
            self._open({**written, "thinking": "", "signature": ""})
        if written.get("signature"):
            self._say({"type": "signature_delta", "signature": written["signature"]})

    def _put(self, block: Block) -> None:
        """A block that is written at once, if it has a place here."""
        written = self._written(block)
        if type(written) is not dict:
            return
        given = written.get("input")
        if isinstance(block, ServerTool) and block.phase == "call" and type(given) is dict:
            self._open({**written, "input": {}})
            self._say({"type": "input_json_delta", "partial_json": compact(given)})
        else:
            self._open(written)

    def _say(self, delta: Fields) -> None:
        self._out.append(_event({"type": "content_block_delta", "index": self._index, "delta": delta}))

    def _stop(self) -> None:
        """Close the block that the client has open."""
        self._block, self._delta, self._waits, self._is_cut = None, None, False, False
        if self._is_open:
            self._is_open = False
            self._out.append(_event({"type": "content_block_stop", "index": self._index}))
            self._index += 1


_ANY_CALL: Final = ToolCall("", "", {})
