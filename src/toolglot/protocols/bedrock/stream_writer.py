"""Streams of the Bedrock Converse protocol, written.

Law: a client that puts the stream together gets the body that `reply.encode` writes for the same reply, but for blocks
that a stream of this protocol cannot express: documents, audio and video are left out. One block is open at a time,
and nothing follows the end.

What a block is may be known only when it ends: thinking that nobody may read, arguments that are no object. Such a
block is written then, and at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Failure, FailureKind, Reply, Text, Thinking, ToolCall, Turn, Usage
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
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.bedrock import errors, reply
from toolglot.protocols.bedrock.blocks import needs_id, write_reply
from toolglot.protocols.bedrock.form import PROTOCOL
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


class Encoder:
    """Writes one stream."""

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: ARG002, B008
        self._out: list[bytes] = []
        self._started: Started | None = None
        self._is_over = False
        self._usage: Usage | None = None
        self._calls = 0
        self._has_whole_calls = False
        self._has_cut_calls = False
        self._index = 0
        self._block: Block | None = None
        """The block that is open in the events."""
        self._is_open = False
        """Whether the client knows of it."""
        self._delta: tuple[bytes, bytes] | None = None
        """What stands around the text of a delta; None while its deltas are not written."""
        self._waits = False
        """Whether its first delta decides what is written."""
        self._is_cut = False
        """Whether it was cut: then it is closed only if the message goes on, since clients run what is closed."""

    def write(self, events: Iterable[Event]) -> bytes:
        out = self._out
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                text: str = event.text  # type: ignore[union-attr]
                if self._delta is None and self._waits:
                    text = self._first(text)
                if self._delta is not None and text:
                    before, after = self._delta
                    out.append(message(_DELTA_HEADERS, before + json_bytes(text) + after))
                    self._is_open = True
            elif not self._is_over:
                self._write(event)
        written = b"".join(out)
        out.clear()
        return written

    def ping(self) -> bytes:
        """Nothing: the protocol has no such thing."""
        return b""

    # --- the message --------------------------------------------------------------------------------

    def _say(self, kind: str, fields: Fields) -> None:
        self._out.append(message(_HEADERS[kind], json_bytes(fields)))

    def _write(self, event: Event) -> None:
        if self._started is None:
            self._started = event if isinstance(event, Started) else Started()
            self._say("messageStart", {"role": "assistant"})
        if isinstance(event, Used):
            self._usage = event.usage
            return
        if self._is_cut and not isinstance(event, Failed):
            self._stop()
        if isinstance(event, BlockStarted):
            self._start(event.block)
        elif isinstance(event, BlockEnded):
            self._end(event.block, is_cut=event.cut)
        elif isinstance(event, Finished):
            self._finish(event)
        elif isinstance(event, Failed):
            self._is_over, self._delta, self._waits = True, None, False
            name, body = _exception(event.failure)
            self._out.append(message(event_headers(name, is_exception=True), json_bytes(body)))

    def _finish(self, event: Finished) -> None:
        self._stop()
        self._is_over = True
        started = self._started or Started()
        extra = {PROTOCOL: {**(started.extra or {}).get(PROTOCOL, {}), **(event.extra or {}).get(PROTOCOL, {})}}
        form = started.form if event.form is None else event.form
        stop = event.stop
        if self._has_cut_calls and stop in ("stop", "tool_calls"):
            stop = "length"
        turn = Turn("assistant", (_ANY_CALL,) if self._has_whole_calls else ())
        body = reply.encode(Reply(turn, stop, self._usage, extra=extra, form=form))
        ended: Fields = {key: body[key] for key in ("stopReason", _LATE) if key in body}
        metadata = {key: value for key, value in body.items() if key not in _NOT_METADATA}
        self._say("messageStop", ended)
        if metadata:
            self._say("metadata", metadata)

    # --- blocks -------------------------------------------------------------------------------------

    def _start(self, block: Block) -> None:
        self._block, self._delta, self._waits, self._is_open = block, None, False, False
        if isinstance(block, Text):
            self._delta = self._around(b'"text":', b"")
        elif isinstance(block, Thinking):
            self._waits = True
        elif isinstance(block, ToolCall):
            self._calls += 1
            self._block = block = self._named(block)
            self._waits = block.type != "custom"

    def _written(self, block: Block) -> Fields:
        """A block as it is in a whole reply; empty if it has no place there."""
        written = write_reply([block])
        return written[0] if written and type(written[0]) is dict else {}

    def _named(self, call: ToolCall) -> ToolCall:
        """A call with an id, as in a whole reply."""
        return replace(call, id=f"tooluse_{self._calls - 1}") if needs_id(call) else call

    def _open_call(self) -> None:
        """The start of a call, not before its first argument: one that was cut there must not look like one that has
        none."""
        if isinstance(self._block, ToolCall):
            self._open(self._written(replace(self._block, arguments=None, raw_input=None)), "toolUse")

    def _open(self, written: Fields, member: str) -> None:
        """The start of a block, which is all of it but what comes in deltas."""
        self._is_open = True
        start = {key: value for key, value in written[member].items() if key != _LATER[member]}
        self._say("contentBlockStart", {"contentBlockIndex": self._index, "start": {member: start}})

    def _around(self, before: bytes, after: bytes) -> tuple[bytes, bytes]:
        """What stands around the text of a delta."""
        return b'{"contentBlockIndex":%d,"delta":{%b' % (self._index, before), after + b"}}"

    def _add(self, delta: Fields) -> None:
        self._is_open = True
        self._say("contentBlockDelta", {"contentBlockIndex": self._index, "delta": delta})

    def _first(self, text: str) -> str:
        """What of the first delta is written, which decides whether those that follow are."""
        if isinstance(self._block, Thinking):
            if text:
                self._delta = self._around(b'"reasoningContent":{"text":', b"}")
            return text
        text = text.lstrip()
        if text.startswith("{"):
            self._open_call()
            self._delta = self._around(b'"toolUse":{"input":', b"}")
        elif text:
            self._waits = False  # no object, so that only the whole of it can be written
        return text

    def _end(self, block: Block, *, is_cut: bool) -> None:
        if isinstance(block, ToolCall):
            self._end_call(block, is_cut=is_cut)
        elif isinstance(block, Text):
            self._end_text(block)
        elif isinstance(block, Thinking):
            self._end_thinking(block)
        else:
            self._put(self._written(block))
        self._is_cut = is_cut
        if not is_cut:
            self._stop()

    def _end_call(self, call: ToolCall, *, is_cut: bool) -> None:
        self._has_cut_calls = self._has_cut_calls or is_cut
        self._has_whole_calls = self._has_whole_calls or not is_cut
        if self._delta is None and not is_cut:
            self._open_call()
            self._add({"toolUse": {"input": compact(self._written(call)["toolUse"]["input"])}})

    def _end_text(self, block: Text) -> None:
        if not self._is_open:
            self._add({"text": ""})
        cited = self._written(block).get("citationsContent")
        citations = cited.get("citations") if cited else None
        for citation in citations if type(citations) is list else ():
            self._add({"citation": citation})

    def _end_thinking(self, block: Thinking) -> None:
        written = self._written(block).get("reasoningContent")
        if written is None:
            return
        hidden, shown = written.get("redactedContent"), written.get("reasoningText")
        if hidden is not None:
            self._add({"reasoningContent": {"redactedContent": hidden}})
            return
        if not self._is_open:
            self._add({"reasoningContent": {"text": ""}})
        if shown.get("signature") is not None:
            self._add({"reasoningContent": {"signature": shown["signature"]}})

    def _put(self, written: Fields) -> None:
        """A block that is written at once, if it has a form here."""
        for member, later in _LATER.items():
            if type(written.get(member)) is dict:
                self._open(written, member)
                rest = written[member].get(later)
                if member == "toolUse":
                    self._add({member: {later: compact(rest or {})}})
                elif rest:
                    self._add({member: rest if member == "toolResult" else {later: rest}})

    def _stop(self) -> None:
        """Close the block that the client has open."""
        self._block, self._delta, self._waits, self._is_cut = None, None, False, False
        if self._is_open:
            self._is_open = False
            self._say("contentBlockStop", {"contentBlockIndex": self._index})
            self._index += 1


_ANY_CALL: Final = ToolCall("", "", {})


def _exception(failure: Failure) -> tuple[str, Fields]:
    """The exception that a failure is in a stream, and its payload."""
    _, body = errors.encode(failure)
    for name, inner in body.items():
        if name in _EXCEPTIONS.values() and type(inner) is dict:
            return name, inner
    return _EXCEPTIONS[failure.kind], {"message": body.get("message") or failure.message}
