"""Writes the streams of the Bedrock Converse protocol. `block_streams/writer.py` has what Anthropic's streams share.

A stream of this protocol cannot express documents, audio and video: they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Failure, FailureKind, Reply, Text, Thinking, ToolCall, Turn
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
from toolglot.protocols.bedrock import errors, reply
from toolglot.protocols.bedrock.blocks import needs_id, write_reply
from toolglot.protocols.bedrock.form import PROTOCOL
from toolglot.protocols.block_streams.writer import ANY_CALL, BlockStreamEncoder
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.aws_frames import event_headers, message
from toolglot.protocols.framing.json_line import json_bytes

_KINDS: Final = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
)
_HEADERS: Final = {kind: event_headers(kind) for kind in _KINDS}
_DELTA_HEADERS: Final = _HEADERS["contentBlockDelta"]
_EXCEPTIONS: Final[dict[FailureKind, str]] = {
    "bad_request": "validationException",
    "auth": "validationException",
    "permission": "validationException",
    "billing": "validationException",
    "not_found": "validationException",
    "too_large": "validationException",
    "context_overflow": "validationException",
    "content_filter": "validationException",
    "rate_limit": "throttlingException",
    "overloaded": "serviceUnavailableException",
    "timeout": "modelStreamErrorException",
    "unreachable": "internalServerException",
    "server": "internalServerException",
    "bad_output": "modelStreamErrorException",
}
"""A stream knows five exceptions; clients read no other."""
_LATE: Final = "additionalModelResponseFields"
_NOT_METADATA = frozenset({"output", "stopReason", _LATE})
_LATER: Final = {"toolUse": "input", "image": "source", "toolResult": "content"}
"""Blocks with a start, and what of them comes in deltas."""


class Encoder(BlockStreamEncoder):
    """Writes one stream."""

    _PROTOCOL = PROTOCOL
    _LEFT_OPEN = object

    def write(self, events: Iterable[Event]) -> bytes:
        out = self._out
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                text: str = event.text  # type: ignore[union-attr]
                if self._prefix is None and self._waits:
                    text = self._first_delta(text)
                if self._prefix is not None and text:
                    out.append(message(_DELTA_HEADERS, self._prefix + json_bytes(text) + self._suffix))
                    self._is_open = True
            elif not self._is_over:
                self._write(event)
        written = b"".join(out)
        out.clear()
        return written

    def ping(self) -> bytes:
        """Nothing: the protocol has no pings."""
        return b""

    # --- the message --------------------------------------------------------------------------------

    def _add(self, kind: str, fields: Fields) -> None:
        self._out.append(message(_HEADERS[kind], json_bytes(fields)))

    def _write(self, event: Event) -> None:
        if self._started is None:
            self._started = event if isinstance(event, Started) else Started()
            self._add("messageStart", {"role": "assistant"})
        if isinstance(event, Used):
            self._usage = event.usage
            return
        self._write_event(event)

    def _fail(self, failure: Failure) -> None:
        self._prefix, self._waits = None, False
        name, body = _exception(failure)
        self._out.append(message(event_headers(name, is_exception=True), json_bytes(body)))

    def _finish(self, event: Finished) -> None:
        stop, extra, form = self._final(event)
        turn = Turn("assistant", (ANY_CALL,) if self._has_whole_calls else ())
        body = reply.encode(Reply(turn, stop, self._usage, extra=extra, form=form))
        ended: Fields = {key: body[key] for key in ("stopReason", _LATE) if key in body}
        metadata = {key: value for key, value in body.items() if key not in _NOT_METADATA}
        self._add("messageStop", ended)
        if metadata:
            self._add("metadata", metadata)

    # --- blocks -------------------------------------------------------------------------------------

    def _start_text(self, block: Text) -> None:  # noqa: ARG002
        self._start_deltas(b'"text":', b"")

    def _block_fields(self, block: Block) -> Fields:
        """A block as it is in a whole reply; empty if the protocol has no form for it."""
        written = write_reply([block])
        return written[0] if written and type(written[0]) is dict else {}

    def _with_id(self, call: ToolCall) -> ToolCall:
        return replace(call, id=f"tooluse_{self._calls - 1}") if needs_id(call) else call

    def _start_call(self) -> None:
        if isinstance(self._block, ToolCall):
            self._open(self._block_fields(replace(self._block, arguments=None, raw_input=None)), "toolUse")

    def _start_input(self) -> None:
        self._start_deltas(b'"toolUse":{"input":', b"}")

    def _write_input(self, call: ToolCall) -> None:
        self._add_delta({"toolUse": {"input": compact(self._block_fields(call)["toolUse"]["input"])}})

    def _start_thinking(self, block: Thinking, text: str) -> None:  # noqa: ARG002
        self._start_deltas(b'"reasoningContent":{"text":', b"}")

    def _open(self, written: Fields, member: str) -> None:
        """Write the start of a block: all of it that does not come in deltas."""
        self._is_open = True
        start = {key: value for key, value in written[member].items() if key != _LATER[member]}
        self._add("contentBlockStart", {"contentBlockIndex": self._index, "start": {member: start}})

    def _start_deltas(self, before: bytes, after: bytes) -> None:
        self._prefix = b'{"contentBlockIndex":%d,"delta":{%b' % (self._index, before)
        self._suffix = after + b"}}"

    def _add_delta(self, delta: Fields) -> None:
        self._is_open = True
        self._add("contentBlockDelta", {"contentBlockIndex": self._index, "delta": delta})

    def _end_text(self, block: Text) -> None:
        if not self._is_open:
            self._add_delta({"text": ""})
        cited = self._block_fields(block).get("citationsContent")
        citations = cited.get("citations") if cited else None
        for citation in citations if type(citations) is list else ():
            self._add_delta({"citation": citation})

    def _end_thinking(self, block: Thinking) -> None:
        written = self._block_fields(block).get("reasoningContent")
        if written is None:
            return
        hidden, shown = written.get("redactedContent"), written.get("reasoningText")
        if hidden is not None:
            self._add_delta({"reasoningContent": {"redactedContent": hidden}})
            return
        if not self._is_open:
            self._add_delta({"reasoningContent": {"text": ""}})
        if shown.get("signature") is not None:
            self._add_delta({"reasoningContent": {"signature": shown["signature"]}})

    def _write_block(self, block: Block) -> None:
        written = self._block_fields(block)
        for member, later in _LATER.items():
            if type(written.get(member)) is dict:
                self._open(written, member)
                rest = written[member].get(later)
                if member == "toolUse":
                    self._add_delta({member: {later: compact(rest or {})}})
                elif rest:
                    self._add_delta({member: rest if member == "toolResult" else {later: rest}})

    def _write_block_stop(self) -> None:
        self._add("contentBlockStop", {"contentBlockIndex": self._index})


def _exception(failure: Failure) -> tuple[str, Fields]:
    """The exception that a failure is in a stream, and its payload."""
    _, body = errors.encode(failure)
    for name, inner in body.items():
        if name in _EXCEPTIONS.values() and type(inner) is dict:
            return name, inner
    return _EXCEPTIONS[failure.kind], {"message": body.get("message") or failure.message}
