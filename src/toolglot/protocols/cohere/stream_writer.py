"""Writes a stream of Cohere's chat protocol.

Text is content, also where calls follow it: the one-shot form makes a plan of it, but a stream does not know yet. A
call that was cut begins and never ends. Content and calls are numbered apart, each from 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Failure, Media, Text, Thinking, ToolCall, Turn
from toolglot.conversation.events import (
    Accumulator,
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
from toolglot.protocols.cohere import errors, reply
from toolglot.protocols.cohere.form import CohereReply, CohereThinking
from toolglot.protocols.cohere.messages import is_plan, write_message
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_line

_DEFAULT_OPTIONS: Final = StreamOptions()
_TEXT_END: Final = b"}}}}\n\n"
_PLAN: Final = b'event: tool-plan-delta\ndata: {"type":"tool-plan-delta","delta":{"message":{"tool_plan":'
_PLAN_END: Final = b"}}}\n\n"
_INPUT_END: Final = b"}}}}}\n\n"


class Encoder:
    """The bytes of one stream."""

    def __init__(self, options: StreamOptions = _DEFAULT_OPTIONS) -> None:
        del options  # there is nothing to choose
        self._sum = Accumulator()
        self._is_begun = False
        self._is_own = False
        self._contents = 0
        self._calls = 0
        self._is_open = False
        """Whether the beginning of the block has been written."""
        self._has_input = False
        self._has_calls = False
        self._prefix = self._suffix = b""
        """What stands around a delta of the block."""

    def write(self, events: Iterable[Event]) -> bytes:
        written: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta and self._is_open:
                written.append(self._prefix + json_line(event.text) + self._suffix)  # type: ignore[union-attr]
            elif kind is InputDelta and self._is_open:
                self._has_input = True
                written.append(self._prefix + json_line(event.text) + _INPUT_END)  # type: ignore[union-attr]
            else:
                self._write(event, written)
        return b"".join(written)

    def ping(self) -> bytes:
        return b": ping\n\n"

    def _write(self, event: Event, written: list[bytes]) -> None:
        if isinstance(event, Started):
            self._sum.add((event,))
            self._begin(written)
            return
        self._begin(written)
        if isinstance(event, BlockStarted):
            self._start(event.block, written)
        elif isinstance(event, ThinkingDelta):
            self._think(event.text, written)
        elif isinstance(event, BlockEnded):
            self._end(event.block, event.cut, written)
        elif isinstance(event, Used):
            self._sum.add((event,))
        elif isinstance(event, Finished):
            self._sum.add((event,))
            self._finish(written)
        elif isinstance(event, Failed):
            written.append(_failed(event.failure))

    def _begin(self, written: list[bytes]) -> None:
        if not self._is_begun:
            self._is_begun = True
            known = self._sum.reply
            self._is_own = type(known.form) is CohereReply
            message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
            written.append(_event("message-start", id=known.id, delta={"message": message}))

    # --- blocks ---------------------------------------------------------------------------------------

    def _start(self, block: Block, written: list[bytes]) -> None:
        self._is_open = self._has_input = False
        if isinstance(block, Text):
            self._is_open = True
            if is_plan(block):
                self._prefix, self._suffix = _PLAN, _PLAN_END
            else:
                self._start_content({"type": "text", "text": ""}, written)
        elif isinstance(block, Thinking) and type(block.form) is CohereThinking:
            self._think("", written)
        elif isinstance(block, ToolCall) and block.type != "custom":
            self._start_call(block, written)

    def _think(self, text: str, written: list[bytes]) -> None:
        """Thoughts begin when there are any: those that another provider hides are not shown."""
        if not self._is_open:
            self._is_open = True
            self._start_content({"type": "thinking", "thinking": ""}, written)
        if text:
            written.append(self._prefix + json_line(text) + self._suffix)

    def _start_content(self, part: Fields, written: list[bytes]) -> None:
        index = self._contents
        written.append(_event("content-start", index=index, delta={"message": {"content": part}}))
        self._prefix = (
            b'event: content-delta\ndata: {"type":"content-delta","index":%d,"delta":{"message":{"content":{"%s":'
            % (index, str(part["type"]).encode())
        )
        self._suffix = _TEXT_END

    def _end_content(self, written: list[bytes]) -> None:
        written.append(_event("content-end", index=self._contents))
        self._contents += 1

    def _start_call(self, call: ToolCall, written: list[bytes]) -> None:
        self._is_open = True
        (fields,) = write_message(Turn("assistant", (call,)))["tool_calls"]
        fields["function"]["arguments"] = ""
        written.append(_event("tool-call-start", index=self._calls, delta={"message": {"tool_calls": fields}}))
        self._prefix = (
            b'event: tool-call-delta\ndata: {"type":"tool-call-delta","index":%d,'
            b'"delta":{"message":{"tool_calls":{"function":{"arguments":' % self._calls
        )

    def _end(self, block: Block, cut: bool, written: list[bytes]) -> None:
        if isinstance(block, ToolCall):
            self._end_call(block, cut, written)
        elif isinstance(block, Text | Thinking):
            if self._is_open and self._prefix is not _PLAN:
                self._end_content(written)
        elif self._is_own or not isinstance(block, Media):
            for part in write_message(Turn("assistant", (block,)), as_parts=True)["content"]:
                self._start_content(part, written)
                self._end_content(written)
        self._is_open = False

    def _end_call(self, call: ToolCall, cut: bool, written: list[bytes]) -> None:
        if cut:
            self._calls += self._is_open
            return
        if not self._is_open:
            self._start_call(call, written)
        (fields,) = write_message(Turn("assistant", (call,)))["tool_calls"]
        rest = fields["function"].get("arguments")
        if not self._has_input and rest is not None:
            written.append(self._prefix + json_line(rest) + _INPUT_END)
        written.append(_event("tool-call-end", index=self._calls))
        self._calls += 1
        self._has_calls = True

    # --- the end --------------------------------------------------------------------------------------

    def _finish(self, written: list[bytes]) -> None:
        """The end: a whole body without its message. A call in it is only for the choice of the word."""
        known = self._sum.reply
        citations = known.form.citations if type(known.form) is CohereReply else None
        for index, citation in enumerate(citations or ()):
            written.append(_event("citation-start", index=index, delta={"message": {"citations": citation}}))
            written.append(_event("citation-end", index=index))
        blocks = (ToolCall("", ""),) if self._has_calls else ()
        body = reply.encode(replace(known, turn=Turn("assistant", blocks)))
        del body["id"], body["message"]
        written.append(_event("message-end", delta=body))


def _failed(failure: Failure) -> bytes:
    body = errors.encode(failure)[1]
    if body.get("type") == "message-end":
        return _sse("message-end", body)
    return _event("message-end", delta={"error": str(body.get("message", "")), "finish_reason": "ERROR"})


def _event(name: str, **fields: Any) -> bytes:
    return _sse(name, {"type": name, **fields})


def _sse(name: str, body: Fields) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json_line(body))
