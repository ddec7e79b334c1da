"""Reads the streams of the Bedrock Converse protocol.

    messageStart  ( contentBlockStart?  contentBlockDelta*  contentBlockStop )*  messageStop  metadata

Only calls, results and images have a start; text and thinking begin with their first delta. An exception ends the
stream. `block_streams/reader.py` has what Anthropic's streams share.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Failure, Opaque, ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.bedrock import errors, reply
from toolglot.protocols.bedrock.blocks import read_block
from toolglot.protocols.bedrock.form import PLAIN_REPLY, PROTOCOL, BedrockReply
from toolglot.protocols.block_streams.reader import UNKNOWN_ERROR, BlockStreamDecoder, OpenBlock, ignore_event
from toolglot.protocols.fields.reading import Fields, leftover
from toolglot.protocols.framing.aws_frames import EXCEPTION, AwsFramer
from toolglot.protocols.framing.event_builder import (
    CORRUPT_EVENT,
    TEXT_KEY,
    THINKING_KEY,
)
from toolglot.protocols.framing.text_frames import Frame

framer: Final = AwsFramer
_DELTA: Final = "contentBlockDelta"
_STOP = frozenset({"stopReason"})
_COUNTED = frozenset({"usage"})
_PADDING: Final = "p"
"""A field of every event that only hides its length."""
_HIDDEN: Final = "redactedContent"
_WITH_INPUT: Final = frozenset({ToolCall, ServerTool})


class _TextDelta(Struct, gc=False, forbid_unknown_fields=True):
    text: str


class _InputDelta(Struct, gc=False, forbid_unknown_fields=True):
    input: str


class _Delta(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str | None = None
    tool_use: _InputDelta | None = None
    reasoning_content: _TextDelta | None = None


class _DeltaEvent(Struct, gc=False, rename="camel"):
    """Most events of a stream. Any other is read with more care."""

    content_block_index: int
    delta: _Delta


_read_delta: Final = msgspec.json.Decoder(_DeltaEvent).decode


class Decoder(BlockStreamDecoder):
    """Reads one stream."""

    _PROTOCOL = PROTOCOL
    _INDEX = "contentBlockIndex"
    _FIRST_EVENT = "messageStart"
    _EVENTS_OF_MESSAGE = frozenset({"contentBlockStart", _DELTA, "contentBlockStop", "messageStop", "metadata"})

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(tools=tools, limits=limits)
        self._next_index = 0
        self._has_metadata = False

    def read(self, frame: Frame) -> list[Event]:
        """The events of a frame. A plain delta of an open block is added at once."""
        builder = self.builder
        if frame.name == _DELTA:
            try:
                event = _read_delta(frame.data)
                block, delta = self._open[event.content_block_index], event.delta
                if delta.text is not None:
                    if block.kind is Text and delta.tool_use is None and delta.reasoning_content is None:
                        builder.add(block.key, delta.text)
                        return builder.take()
                elif delta.tool_use is not None:
                    if block.kind is ToolCall and delta.reasoning_content is None and not builder.holds_back:
                        builder.add(block.key, delta.tool_use.input)
                        return builder.take()
                elif delta.reasoning_content is not None and block.kind is Thinking and not builder.holds_back:
                    builder.add(block.key, delta.reasoning_content.text)
                    return builder.take()
            except LimitError:
                raise
            except (ValueError, KeyError, RecursionError):
                pass  # it may be valid all the same: it is read again
        if frame.data and not builder.is_over:
            self._read_carefully(frame)
        return builder.take()

    def finish(self) -> list[Event]:
        """The bytes ended. The reply is whole if messageStop came; else it was cut."""
        if self._stop_reason is None and any(block.kind is Opaque for block in self._open.values()):
            self.builder.fail(Failure("server", "the stream ended inside a block", in_band=True))
        if not self.builder.is_over:
            self._end()
        return self.builder.take()

    # --- one event ----------------------------------------------------------------------------------

    def _read_carefully(self, frame: Frame) -> None:
        fields = self._parse(frame.data)
        if frame.name.startswith(EXCEPTION):
            self._exception(frame, fields)
        elif fields is None and self.builder.loses_content(frame.data):
            self._fail(CORRUPT_EVENT)
        elif type(fields) is not dict:
            self.builder.report("an event whose data is not a JSON object was left out")
        else:
            fields.pop(_PADDING, None)
            self._read_event(frame.name, fields)

    def _exception(self, frame: Frame, fields: Any) -> None:
        name = frame.name[len(EXCEPTION) :]
        if type(fields) is not dict:
            fields = {"message": frame.data.decode("utf-8", "replace")}
        body = {name: fields} if name.endswith("Exception") else {**fields, "__type": name}
        self._fail(errors.decode(200, body, target=PROTOCOL) or UNKNOWN_ERROR)

    # --- the message --------------------------------------------------------------------------------

    def _message_start(self, fields: Fields) -> None:
        if not self.builder.is_started:
            self._start(fields)
        else:
            self._start_again(is_same=False)

    def _start(self, _message: Fields) -> None:
        self.builder.start(form=PLAIN_REPLY)

    def _keep(self, fields: Fields, known: frozenset[str]) -> None:
        late = leftover(fields, known, PROTOCOL)
        self._late.update(late[PROTOCOL] if late else {})

    def _message_stop(self, fields: Fields) -> None:
        reason = fields.get("stopReason")
        if type(reason) is str:
            self._stop_reason = reason
        else:
            self.builder.report("messageStop has no stop reason")
        self._announce_end()
        self._keep(fields, _STOP)
        if self._has_metadata:
            self._end()

    def _metadata(self, fields: Fields) -> None:
        self._has_metadata = True
        usage = fields.get("usage")
        if usage is not None:
            try:
                counted = reply.decode({**_BARE, "usage": usage}).usage
                if counted is not None:
                    self.builder.add_usage(counted)
            except InputError:
                self.builder.report("the usage could not be read")
        self._keep(fields, _COUNTED)
        if self.builder.is_end_announced:
            self._end()
        else:
            self.builder.report("metadata came before the end of the message")

    def _end(self) -> None:
        self._settle_all()
        if self._stop_reason is None:
            is_ended = self.builder.is_end_announced
            extra = {PROTOCOL: self._late} if self._late else None
            self.builder.finish_without_reason(is_ended=is_ended, closes_blocks=not is_ended, extra=extra)
        else:
            self._finish(reply.stop_of(self._stop_reason, has_calls=False), BedrockReply(self._stop_reason))

    # --- blocks -------------------------------------------------------------------------------------

    def _begin(self, index: int, kind: type, block: Block | None, fields: Fields | None = None) -> OpenBlock:
        """Begin a block at this index. Without a canonical block, it is added to the reply only when it ends."""
        before = self._open.get(index)
        if before is not None:
            self.builder.report("a block began at the index of one that had not ended")
            self._close(before)
        elif index < self._next_index:
            self.builder.report("the index of a block came twice")
        self._next_index = max(self._next_index, index + 1)
        self._begun += 1
        opened = OpenBlock(self._begun, index, kind, fields)
        self._open_block(opened, block)
        return opened

    def _block_start(self, fields: Fields) -> None:
        index = self._index(fields, self._next_index)
        start = fields.get("start")
        members = [key for key, value in start.items() if value is not None] if type(start) is dict else []
        if type(start) is not dict or len(members) != 1 or type(start[members[0]]) is not dict:
            self.builder.report("the start of a block does not say what it is")
        elif members[0] == "toolUse":
            self._call_start(index, start)
        else:
            inner = dict(start[members[0]])
            if members[0] == "toolResult":
                inner["content"] = []
            self._begin(index, Opaque, None, {**start, members[0]: inner})

    def _call_start(self, index: int, start: Fields) -> None:
        inner: Fields = start["toolUse"]
        before = self._open.get(index)
        if before is not None and before.fields == start:
            self.builder.report("a block began twice")
            return
        missing = {key: "" for key in ("toolUseId", "name") if type(inner.get(key)) is not str}
        if missing:
            self.builder.report(f"the start of a call lacks {', '.join(missing)}")
        block = read_block({**start, "toolUse": {**inner, **missing, "input": {}}})
        begun = self._begin(
            index, type(block), replace(block, arguments=None) if isinstance(block, ToolCall) else block, start
        )
        begun.initial_input = inner.get("input")
        if begun.initial_input:
            self.builder.report("a call began with its arguments")

    def _block_delta(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else 0)
        delta = fields.get("delta")
        members = [key for key, value in delta.items() if value is not None] if type(delta) is dict else []
        if type(delta) is not dict or not members:
            self.builder.report("contentBlockDelta holds no delta")
            return
        for member in members:
            read = self._DELTA_READERS.get(member)
            if read is None:
                self.builder.report(f"a delta of the unknown type {quote(member)} was left out")
            else:
                read(self, index, delta[member])

    def _add_text(self, index: int, piece: Any) -> None:
        block = self._open.get(index)
        if type(piece) is not str:
            self.builder.report("a delta without its text was left out")
            return
        if block is None:
            block = self._begin(index, Text, Text(""))
        if block.kind is Text:
            self.builder.add(block.key, piece)
        else:
            self.builder.report("a delta came for a block of another type")
            self.builder.add_implicit(TEXT_KEY, piece)

    def _add_tool_use(self, index: int, delta: Any) -> None:
        self._add_input(self._open.get(index), _WITH_INPUT, delta.get("input") if type(delta) is dict else delta)

    def _add_thinking(self, index: int, delta: Any) -> None:
        """Add thinking: text, a signature, or what only its provider can read."""
        parts = {key: value for key, value in delta.items() if type(value) is str} if type(delta) is dict else {}
        block = self._open.get(index)
        if block is not None and block.kind is not Thinking:
            self.builder.report("a delta came for a block of another type")
            self.builder.add_implicit(THINKING_KEY, parts.get("text", ""))
            return
        if block is None:
            hidden = parts.get(_HIDDEN)
            shown: Fields = {"reasoningText": {"text": ""}} if hidden is None else {_HIDDEN: ""}
            block = self._begin(index, Thinking, read_block({"reasoningContent": shown}))
        opened = self.builder.block(block.key)
        if "text" in parts:
            self.builder.add(block.key, parts["text"])
            self.builder.holds_back = self.builder.holds_back and not parts["text"]
        if "signature" in parts and isinstance(opened, Thinking):
            self.builder.update(block.key, replace(opened, signature=parts["signature"]))
        if _HIDDEN in parts:
            block.pieces.setdefault(_HIDDEN, []).append(parts[_HIDDEN])
        if not parts.keys() & {"text", "signature", _HIDDEN}:
            self.builder.report("a delta of thinking without known fields was left out")

    def _add_citation(self, index: int, citation: Any) -> None:
        block = self._open.get(index) or self._begin(index, Text, Text(""))
        if block.kind is Text:
            block.citations.append(citation)
            self.builder.holds_back = True
        else:
            self.builder.report("a citation came for a block that is not text, and was left out")

    def _add_result(self, index: int, parts: Any) -> None:
        self._grow(index, "toolResult", parts if type(parts) is list else None)

    def _add_image(self, index: int, image: Any) -> None:
        self._grow(index, "image", image if type(image) is dict else None)

    def _grow(self, index: int, member: str, more: Any) -> None:
        """Add to a block that is added to the reply when it ends."""
        block = self._open.get(index)
        if block is None or block.kind is not Opaque or member not in block.fields or more is None:
            self.builder.report(f"a delta of type {member} that its block cannot hold was left out")
        elif member == "toolResult":
            block.fields[member]["content"].extend(more)
        else:
            block.fields[member].update(more)

    def _block_stop(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else -1)
        block = self._open.get(index)
        if block is not None:
            self._close(block)
        elif index < self._next_index:
            self.builder.report("a block ended that was not open")
        else:
            self._close(self._begin(index, Text, Text("")))  # an empty text

    def _settle(self, block: OpenBlock) -> None:
        opened = self.builder.block(block.key)
        if block.kind is Opaque:
            self.builder.add_block(_read(block.fields))
        elif block.kind is ToolCall:
            self._settle_call(block)
        elif block.kind is ServerTool:
            self.builder.update(block.key, self._server_call(block))
        elif block.citations:
            content: Fields = {"content": [{"text": self.builder.text_of(block.key)}], "citations": block.citations}
            self.builder.update(block.key, read_block({"citationsContent": content}))
        elif _HIDDEN in block.pieces and isinstance(opened, Thinking):
            self.builder.update(block.key, self._hidden(block, opened))

    def _hidden(self, block: OpenBlock, opened: Thinking) -> Thinking:
        if self.builder.text_of(block.key) or opened.signature is not None:
            self.builder.report("a block of thinking is both readable and redacted; the redacted part was left out")
            return opened
        return replace(opened, redacted=_join_base64(block.pieces[_HIDDEN]))

    def _server_call(self, block: OpenBlock) -> Block:
        arguments = self._server_input(block, block.initial_input) or {}
        return read_block({**block.fields, "toolUse": {**block.fields["toolUse"], "input": arguments}})

    _READERS: ClassVar[dict[str, Callable[[Any, Fields], None]]] = {
        "messageStart": _message_start,
        "contentBlockStart": _block_start,
        _DELTA: _block_delta,
        "contentBlockStop": _block_stop,
        "messageStop": _message_stop,
        "metadata": _metadata,
        "initial-response": ignore_event,
    }
    _DELTA_READERS: ClassVar[dict[str, Callable[[Decoder, int, Any], None]]] = {
        "text": _add_text,
        "toolUse": _add_tool_use,
        "reasoningContent": _add_thinking,
        "citation": _add_citation,
        "toolResult": _add_result,
        "image": _add_image,
    }


_BARE: Final[Fields] = {"output": {"message": {"role": "assistant", "content": []}}}
"""A reply without content."""


def _read(fields: Fields) -> Block:
    """Read a block that is whole now. What cannot be read is carried."""
    try:
        return read_block(fields)
    except InputError:
        return Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _join_base64(pieces: list[str]) -> str:
    """Join base64 that came in pieces, each of which may end in padding."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)
