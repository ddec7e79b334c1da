"""Reads the streams of the Anthropic Messages protocol.

    message_start  ( content_block_start  content_block_delta*  content_block_stop )*  message_delta  message_stop

with `ping` anywhere, and `error` instead of the rest. `block_streams/reader.py` has what Bedrock's streams share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Compaction, Opaque, ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.anthropic import errors, reply
from toolglot.protocols.anthropic.blocks import READERS, unknown
from toolglot.protocols.anthropic.form import PLAIN_REPLY, PROTOCOL, AnthropicReply
from toolglot.protocols.block_streams.reader import UNKNOWN_ERROR, BlockStreamDecoder, OpenBlock, ignore_event
from toolglot.protocols.fields.reading import Fields, leftover
from toolglot.protocols.framing.event_builder import (
    BEGAN_WITH_INPUT,
    CORRUPT_EVENT,
    TEXT_KEY,
    THINKING_KEY,
)
from toolglot.protocols.framing.text_frames import Frame, SseFramer

framer: Final = SseFramer
_MAX_COUNTS: Final = 100
"""Counts of the usage. Each event carries all of them, so more of them would slow down each event."""
_DELTA: Final = "content_block_delta"
_MESSAGE = frozenset({"id", "type", "role", "model", "content", "usage"})
_NOT_YET: Final = ("stop_reason", "stop_sequence", "stop_details")
"""Null at the start of a message, set at its end."""
_STARTS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The fields that the start of a block must have. They may be empty."""
_CARRIED: Final = frozenset({ServerTool, Opaque, Compaction})
"""Blocks that are kept as their fields."""
_WITH_INPUT: Final = _CARRIED | {ToolCall}


class _TextDelta(Struct, gc=False, tag="text_delta"):
    text: str


class _InputDelta(Struct, gc=False, tag="input_json_delta", rename={"text": "partial_json"}):
    text: str


class _ThinkingDelta(Struct, gc=False, tag="thinking_delta", rename={"text": "thinking"}):
    text: str


class _DeltaEvent(Struct, gc=False):
    """Most events of a stream. Any other is read with more care."""

    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta | _InputDelta | _ThinkingDelta


_read_delta: Final = msgspec.json.Decoder(_DeltaEvent).decode


class Decoder(BlockStreamDecoder):
    """Reads one stream."""

    _PROTOCOL = PROTOCOL
    _INDEX = "index"
    _FIRST_EVENT = "message_start"
    _EVENTS_OF_MESSAGE = frozenset(
        {"content_block_start", _DELTA, "content_block_stop", "message_delta", "message_stop"}
    )
    _INPUT_DELTA = _InputDelta

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(tools=tools, limits=limits)
        self._id = ""
        self._early: Fields = {}
        """Unknown fields of the event that begins the message."""
        self._usage: Fields = {}

    def read(self, frame: Frame) -> list[Event]:
        """The events of a frame. A plain delta of an open block is added at once."""
        builder = self.builder
        if frame.name == _DELTA:
            try:
                event = _read_delta(frame.data)
                block, delta = self._open[event.index], event.delta
                if type(delta) is block.delta:
                    builder.add(block.key, delta.text)
                    return builder.take()
            except LimitError:
                raise
            except (ValueError, KeyError, RecursionError):
                pass  # it may be valid all the same: it is read again
        if frame.data and not builder.is_over:
            self._read_carefully(frame)
        return builder.take()

    def finish(self) -> list[Event]:
        """The bytes ended. The reply is whole if its stop reason came; else it was cut."""
        if not self.builder.is_over:
            self.builder.report("the stream ended without message_stop")
            self._end(is_ended=False)
        return self.builder.take()

    # --- one event ----------------------------------------------------------------------------------

    def _read_carefully(self, frame: Frame) -> None:
        fields = self._parse(frame.data)
        if type(fields) is dict:
            self._read_event(self._event_name(fields, frame.name), fields)
        elif frame.name == "error":
            self._error({"type": "error", "error": {"message": frame.data.decode("utf-8", "replace")}})
        elif fields is None and self.builder.loses_content(frame.data):
            self._fail(CORRUPT_EVENT)
        else:
            self.builder.report("an event whose data is not a JSON object was left out")

    def _event_name(self, fields: Fields, name: str) -> str:
        """The type of an event: that of its data, else the name of its frame. Clients want both."""
        kind = fields.get("type")
        if name == "error":
            return name
        if type(kind) is not str:
            self.builder.report("an event does not say its type in its data")
            return name or ("error" if fields.get("error") else "")
        if kind != name:
            self.builder.report("an event has no name, or another one than its type")
        return kind

    def _error(self, fields: Fields) -> None:
        body = fields if "error" in fields or fields.get("type") == "error" else {"error": fields}
        failure = errors.decode(200, {**body, "type": "error"}, target=PROTOCOL)
        self._fail(failure or UNKNOWN_ERROR)

    # --- the message --------------------------------------------------------------------------------

    def _message_start(self, fields: Fields) -> None:
        message = fields.get("message")
        if type(message) is not dict:
            self.builder.report("message_start holds no message")
            message = {"id": self._id}
        if not self.builder.is_started:
            self._start(message)
        else:
            self._start_again(is_same=message.get("id") == self._id)

    def _start(self, message: Fields) -> None:
        known = {key: value for key, value in message.items() if value is not None or key not in _NOT_YET}
        extra = leftover(known, _MESSAGE, PROTOCOL)
        self._early = extra[PROTOCOL] if extra else {}
        self._id, model = (found if type(found := message.get(key)) is str else "" for key in ("id", "model"))
        self.builder.start(self._id, model, extra, PLAIN_REPLY)
        self._count(message.get("usage"))
        content = message.get("content")
        for block in content if type(content) is list else ():
            self.builder.report("a message began with blocks in it")
            self._block_start({"content_block": block, "index": self._begun})
            self._block_stop({"index": self._begun - 1})

    def _count(self, usage: object) -> None:
        """Counts are totals: a later one replaces an earlier one, and a missing one changes nothing."""
        if type(usage) is not dict or not usage:
            return
        merged = {
            **self._usage,
            **{key: usage[key] for key in usage if usage[key] is not None or key not in self._usage},
        }
        if len(merged) > _MAX_COUNTS:
            self.builder.report(f"the usage has more than {_MAX_COUNTS} counts; the others were left out")
            merged = dict(islice(merged.items(), _MAX_COUNTS))
        try:
            counted = reply.decode({**_BARE, "usage": merged}).usage
        except InputError:
            self.builder.report("the usage could not be read")
            return
        if merged != self._usage and counted is not None:
            self._usage = merged
            self.builder.add_usage(counted)

    def _message_delta(self, fields: Fields) -> None:
        delta = fields.get("delta")
        if type(delta) is not dict:
            self.builder.report("message_delta holds no delta")
            delta = {}
        reason = delta.get("stop_reason")
        if type(reason) is str:
            self._stop_reason = reason
            self._announce_end()
        for found, known in ((delta, {"stop_reason"}), (fields, {"type", "delta", "usage"})):
            late = leftover({key: found[key] for key in found if key not in known}, frozenset(), PROTOCOL)
            for key, value in late[PROTOCOL].items() if late else ():
                if value is not None or self._early.get(key) is None:
                    self._late[key] = value
        self._count(fields.get("usage"))

    def _message_stop(self, _fields: Fields) -> None:
        self._end(is_ended=True)

    def _end(self, *, is_ended: bool) -> None:
        """End the reply. `is_ended` says whether message_stop came."""
        self._settle_all()
        if self._stop_reason is None:
            self.builder.finish_without_reason(is_ended=is_ended)
        else:
            self._finish(reply.stop_of(self._stop_reason, has_calls=False), AnthropicReply(self._stop_reason))

    # --- blocks -------------------------------------------------------------------------------------

    def _block_start(self, fields: Fields) -> None:
        started = fields.get("content_block")
        index = self._index(fields, self._begun)
        if index != self._begun:
            self.builder.report("the indexes of blocks do not count up from 0")
        if self._open:
            self.builder.report("a block began before the one before it ended")
        if type(started) is not dict or type(started.get("type")) is not str:
            self.builder.report("a block that does not say what it is was left out")
            return
        before = self._open.get(index)
        if before is not None:
            if before.fields == started and before.kind is ToolCall:
                self.builder.report("a block began twice")
                return
            self._close(before)
        self._begin(index, started)

    def _begin(self, index: int, started: Fields) -> None:
        fields = self._complete(started)
        try:
            block = READERS.get(fields["type"], unknown)(fields)
        except InputError:
            block = unknown(fields)
        self._begun += 1
        opened = OpenBlock(self._begun, index, type(block), started if isinstance(block, ToolCall) else dict(fields))
        text = block.text if isinstance(block, Text | Thinking) else ""
        if isinstance(block, ToolCall):
            opened.initial_input = started.get("input")
            if opened.initial_input:
                self.builder.report(BEGAN_WITH_INPUT)
            block = replace(block, arguments=None)
        elif text:
            if fields["type"] in _STARTS:
                self.builder.report("a block began with its text")
            block = replace(block, text="")
        if isinstance(block, Text):
            opened.delta = _TextDelta
        self._open_block(opened, block)
        if text:
            self.builder.add(opened.key, text)

    def _complete(self, started: Fields) -> Fields:
        """The start of a block with the fields that it must have."""
        wanted = _STARTS.get(started["type"], {})
        missing = {key: kind() for key, kind in wanted.items() if type(started.get(key)) is not kind}
        if missing:
            self.builder.report(f"the start of a block of type {started['type']} lacks {', '.join(missing)}")
        return {**started, **missing}

    def _block_delta(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else -1)
        delta = fields.get("delta")
        if type(delta) is not dict:
            self.builder.report("content_block_delta holds no delta")
            return
        kind, block = delta.get("type"), self._open.get(index)
        if kind == "text_delta":
            self._add_text(block, Text, TEXT_KEY, delta.get("text"))
        elif kind == "thinking_delta":
            self._add_text(block, Thinking, THINKING_KEY, delta.get("thinking"))
        elif kind == "input_json_delta":
            self._add_input(block, _WITH_INPUT, delta.get("partial_json", delta.get("input")))
        elif kind == "signature_delta" and block is not None and block.kind is Thinking:
            self._add_signature(block, delta.get("signature"))
        elif kind == "citations_delta" and block is not None and block.kind is Text and "citation" in delta:
            block.citations.append(delta["citation"])
            self.builder.holds_back = True
        elif block is not None and block.kind in _CARRIED:
            self._grow(block, delta)
        else:
            self.builder.report(f"a delta of type {quote(kind)} that its block cannot hold was left out")

    def _add_text(self, block: OpenBlock | None, kind: type, implicit_key: str, piece: object) -> None:
        """Add text or thinking. If it does not fit its block, it becomes a block of its own."""
        if type(piece) is not str:
            self.builder.report("a delta without its text was left out")
        elif block is not None and block.kind is kind:
            self._add(block, piece)
            if piece and kind is Thinking:
                block.delta = _ThinkingDelta
                self.builder.holds_back = False
        else:
            self.builder.report("a delta came for a block that is not open, or is of another type")
            self.builder.add_implicit(implicit_key, piece)

    def _add_signature(self, block: OpenBlock, signature: object) -> None:
        opened = self.builder.block(block.key)
        if isinstance(opened, Thinking) and type(signature) is str:
            self.builder.update(block.key, replace(opened, signature=signature))

    def _grow(self, block: OpenBlock, delta: Fields) -> None:
        """Add to a block of an unknown type: strings and lists grow, other values are replaced."""
        for key, value in delta.items():
            if key == "type":
                continue
            before, pieces = block.fields.get(key), block.pieces.get(key)
            if type(value) not in (str, list) or type(before) is not type(value):
                block.fields[key] = value
                block.pieces.pop(key, None)
            elif pieces is None:
                block.pieces[key] = [before, value]
            else:
                pieces.append(value)

    def _block_stop(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else -1)
        block = self._open.get(index)
        if block is None:
            self.builder.report("a block ended that was not open")
        else:
            self._close(block)

    def _settle(self, block: OpenBlock) -> None:
        opened = self.builder.block(block.key)
        if block.kind is ToolCall:
            self._settle_call(block)
        elif block.citations and isinstance(opened, Text):
            own = (opened.extra or {}).get(PROTOCOL, {})
            cited = own.get("citations")
            own = {**own, "citations": [*(cited if type(cited) is list else ()), *block.citations]}
            self.builder.update(block.key, replace(opened, extra={PROTOCOL: own}))
        elif block.kind in _CARRIED:
            self.builder.update(block.key, self._carried_block(block))

    def _carried_block(self, block: OpenBlock) -> Block:
        fields = {**block.fields, **{key: _join(pieces) for key, pieces in block.pieces.items()}}
        if block.kind is Compaction:
            return READERS[fields["type"]](fields)
        arguments = self._server_input(block, None)
        return unknown(fields if arguments is None else {**fields, "input": arguments})

    _READERS: ClassVar[dict[str, Callable[[Any, Fields], None]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        _DELTA: _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": ignore_event,
        "error": _error,
    }


_BARE: Final[Fields] = {"type": "message", "role": "assistant", "content": [], "id": "", "model": ""}
"""A reply without content."""


def _join(pieces: list[Any]) -> Any:
    """Join pieces of one type: strings or lists."""
    return "".join(pieces) if type(pieces[0]) is str else [item for piece in pieces for item in piece]
