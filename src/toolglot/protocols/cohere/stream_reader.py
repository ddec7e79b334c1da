"""Reads a stream of Cohere's chat protocol: events that open, fill and close blocks.

Content and calls are numbered apart. A plan has neither a beginning nor an end: it ends where something else begins.
What comes with the end is put together into one body, which `reply.decode` reads. Citations have no place in a
stream's blocks; they are kept in the form of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Failure, Media, Reply, Text, Thinking, ToolCall, Turn
from toolglot.conversation.events import Event
from toolglot.conversation.reply_events import delta_text
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.cohere import errors, reply
from toolglot.protocols.cohere.form import PLAN, PROTOCOL, STREAMED, THINKING, CohereReply
from toolglot.protocols.cohere.messages import read_message
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import EventBuilder, call_from_text
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.text_frames import Frame, SseFramer

framer: Final = SseFramer
_END: Final = b"[DONE]"
_EVENT: Final = frozenset({"type", "delta"})


class _Words(Struct, gc=False, forbid_unknown_fields=True):
    text: str | None = None
    thinking: str | None = None


class _ContentMessage(Struct, gc=False, forbid_unknown_fields=True):
    content: _Words


class _ContentBody(Struct, gc=False, forbid_unknown_fields=True):
    message: _ContentMessage


class _ContentDelta(Struct, gc=False, forbid_unknown_fields=True, tag_field="type", tag="content-delta"):
    index: int
    delta: _ContentBody


class _Function(Struct, gc=False, forbid_unknown_fields=True):
    arguments: str


class _Call(Struct, gc=False, forbid_unknown_fields=True):
    function: _Function


class _CallMessage(Struct, gc=False, forbid_unknown_fields=True):
    tool_calls: _Call


class _CallBody(Struct, gc=False, forbid_unknown_fields=True):
    message: _CallMessage


class _CallDelta(Struct, gc=False, forbid_unknown_fields=True, tag_field="type", tag="tool-call-delta"):
    index: int
    delta: _CallBody


_START: Final = "message-start"
_decode_delta: Final = msgspec.json.Decoder(_ContentDelta | _CallDelta).decode
"""More of a text or of arguments, and nothing else: nearly all events. Any other is read with care."""


class _Key:
    """A block that is open, and of which kind it is."""

    __slots__ = ("kind",)

    def __init__(self, kind: type[Block]) -> None:
        self.kind = kind


class Decoder:
    """The events of one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools  # names come whole here
        self.builder: EventBuilder = EventBuilder(build_call=call_from_text, limits=limits)
        self._objects = ObjectReader(self.builder, limits)
        self._id = ""
        self._contents: dict[int, _Key] = {}
        self._calls: dict[int, _Key] = {}
        self._plan: _Key | None = None
        self._citations: list[Any] = []
        self._logprobs: list[Any] = []

    def read(self, frame: Frame) -> list[Event]:
        builder = self.builder
        if not frame.data or builder.is_over:
            return []
        if frame.data == _END:
            self._end_unsaid(is_ended=True)
            return builder.take()
        try:
            event = _decode_delta(frame.data)
        except (ValueError, RecursionError):
            self._read_carefully(frame)
            return builder.take()
        if not self._add_plain(event):
            self._read_carefully(frame)
        return builder.take()

    def _add_plain(self, event: _ContentDelta | _CallDelta) -> bool:
        """More of a block that is open; whether that is all that the event is."""
        if isinstance(event, _CallDelta):
            key = self._calls.get(event.index)
            piece: str | None = event.delta.message.tool_calls.function.arguments
        else:
            key, words = self._contents.get(event.index), event.delta.message.content
            is_thought = words.thinking is not None
            piece = words.thinking if is_thought else words.text
            if key is not None and key.kind is not (Thinking if is_thought else Text):
                return False
        if key is None or piece is None:
            return False
        self._add(key, piece)
        return True

    def _add(self, key: _Key, piece: str) -> None:
        try:
            self.builder.add(key, piece)
        except KeyError:  # a call that was whole ended when another block began
            if piece.strip():
                self.builder.report("arguments came for a call that was whole; they were left out")

    def finish(self) -> list[Event]:
        self._end_unsaid(is_ended=False)
        return self.builder.take()

    def _end_unsaid(self, *, is_ended: bool) -> None:
        form = CohereReply(citations=self._citations or None)
        self.builder.finish_without_reason(is_ended=is_ended, closes_blocks=True, form=form)

    def _read_carefully(self, frame: Frame) -> None:
        event = self._objects.read(frame.data)
        if event is None:
            return
        failure = errors.decode(200, event, target=PROTOCOL)
        if failure is not None:
            self.builder.fail(failure)
            return
        kind: Any = event.get("type", frame.name)
        read = self._READERS.get(kind) if type(kind) is str else None
        if read is None:
            self.builder.report("an event of an unknown type was left out")
            return
        if kind != _START and not self.builder.is_started:
            self.builder.report("the answer began without saying so")
            self.builder.start(form=STREAMED)
        delta: Any = event.get("delta")
        message: Any = delta.get("message") if type(delta) is dict else None
        read(self, event, message if type(message) is dict else {})

    # --- the beginning --------------------------------------------------------------------------------

    def _start(self, event: Fields, _message: Fields) -> None:
        id: Any = event.get("id")
        if not self.builder.is_started:
            self._id = id if type(id) is str else ""
            self.builder.start(self._id, form=STREAMED)

    # --- content --------------------------------------------------------------------------------------

    def _start_content(self, event: Fields, message: Fields) -> None:
        content: Any = message.get("content")
        if type(content) is not dict:
            self.builder.report("content that is not an object was left out")
            return
        kind: Any = content.get("type", "thinking" if "thinking" in content else "text")
        entry = {**content, "type": kind}
        if kind in ("text", "thinking") and entry.get(kind) is None:
            entry[kind] = ""
        try:
            block = read_message({"role": "assistant", "content": [entry]}).blocks[0]
        except InputError as error:
            self.builder.report(f"a content could not be read and was left out: {error.message}")
            return
        self._open(self._contents, self._index(event, self._contents), block)

    def _add_content(self, event: Fields, message: Fields) -> None:
        if event.get("logprobs") is not None:
            self._logprobs.append(event["logprobs"])
        content: Any = message.get("content")
        kind = "thinking" if type(content) is dict and content.get("thinking") is not None else "text"
        words: Any = content.get(kind) if type(content) is dict else None
        if type(words) is not str:
            self.builder.report("a piece of a content that is not a string was left out")
            return
        index = self._index(event, self._contents, is_new=False)
        key, block = self._contents.get(index), Text("") if kind == "text" else Thinking(form=THINKING)
        if key is None or key.kind is not type(block):
            self.builder.report("a content began without saying so")
            key = self._open(self._contents, index, block)
        self._add(key, words)

    def _end_content(self, event: Fields, _message: Fields) -> None:
        self._close(self._contents, event)

    def _add_plan(self, _event: Fields, message: Fields) -> None:
        plan: Any = message.get("tool_plan")
        if type(plan) is not str:
            self.builder.report("a piece of a plan that is not a string was left out")
            return
        if not plan:
            return
        if self._plan is None:
            self._plan = _Key(Text)
            self.builder.open(self._plan, Text("", form=PLAN))
        self.builder.add(self._plan, plan)

    # --- calls ----------------------------------------------------------------------------------------

    def _start_call(self, event: Fields, message: Fields) -> None:
        entry: Any = message.get("tool_calls")
        if type(entry) is list and len(entry) == 1:
            entry = entry[0]
        try:
            call = _call(entry)
        except InputError as error:
            message_ = f"the model's call cannot be read: {error.message}"
            self.builder.fail(Failure("bad_output", message_, in_band=True))
            return
        if not call.id:
            self.builder.report("a call has no id")
        if not call.name:
            self.builder.report("a call has no name")
        self._open(self._calls, self._index(event, self._calls), call)

    def _add_call(self, event: Fields, message: Fields) -> None:
        entry: Any = message.get("tool_calls")
        if type(entry) is list and len(entry) == 1:
            entry = entry[0]
        function: Any = entry.get("function") if type(entry) is dict else None
        piece: Any = function.get("arguments") if type(function) is dict else None
        if piece is None:
            return
        index = self._index(event, self._calls, is_new=False)
        if type(piece) is not str or index not in self._calls:
            self.builder.report("arguments that are no text, or of a call that did not begin, were left out")
            return
        self._add(self._calls[index], piece)

    def _end_call(self, event: Fields, _message: Fields) -> None:
        self._close(self._calls, event)

    # --- blocks ---------------------------------------------------------------------------------------

    def _index(self, event: Fields, opened: dict[int, _Key], *, is_new: bool = True) -> int:
        """The number of a block; where an event has none, the one that began last."""
        index: Any = event.get("index")
        if type(index) is int:
            return index
        self.builder.report("an event does not say to which block it belongs")
        return len(opened) if is_new or not opened else next(reversed(opened))

    def _open(self, opened: dict[int, _Key], index: int, block: Block) -> _Key:
        self._end_plan()
        before = opened.pop(index, None)
        if before is not None:
            self.builder.report("a block began at the index of one that had not ended")
            self.builder.close(before)
        key = opened[index] = _Key(type(block))
        text, _ = delta_text(block)
        self.builder.open(key, _without_words(block))
        if text:
            self.builder.add(key, text)
        return key

    def _close(self, opened: dict[int, _Key], event: Fields) -> None:
        key = opened.pop(self._index(event, opened, is_new=False), None)
        if key is None:
            self.builder.report("a block ended that did not begin")
        else:
            self.builder.close(key)

    def _end_plan(self) -> None:
        if self._plan is not None:
            self.builder.close(self._plan)
            self._plan = None

    # --- the end --------------------------------------------------------------------------------------

    def _cite(self, _event: Fields, message: Fields) -> None:
        citations: Any = message.get("citations")
        if type(citations) is list:
            self._citations += citations
        elif citations is not None:
            self._citations.append(citations)

    def _end(self, event: Fields, _message: Fields) -> None:
        self._end_plan()
        delta: Any = event.get("delta")
        delta = delta if type(delta) is dict else {}
        whole = self._whole_reply(event, delta)
        if whole.usage is not None:
            self.builder.add_usage(whole.usage)
        if whole.stop is None:
            self.builder.report("the reply ended without a finish reason")
        form = whole.form
        if self._citations and type(form) is CohereReply:
            form = replace(form, citations=self._citations)
        self.builder.finish(whole.stop, whole.extra, form)

    def _whole_reply(self, event: Fields, delta: Fields) -> Reply:
        """The reply without its blocks, from the event that ends it."""
        body = {key: value for key, value in event.items() if key not in _EVENT}
        body.update((key, value) for key, value in delta.items() if key != "error" or value)
        if self._logprobs:
            body["logprobs"] = self._logprobs
        try:
            return reply.decode({**body, "id": self._id, "message": {"role": "assistant"}})
        except InputError as error:
            self.builder.report(f"the reply could not be read in full: {error.message} at {error.path}")
            reason = delta.get("finish_reason")
            return Reply(
                Turn("assistant"),
                reply.stop_of(reason if type(reason) is str else None, has_calls=False),
                form=STREAMED,
            )

    def _pass(self, _event: Fields, _message: Fields) -> None:
        """An event without content."""

    _READERS: ClassVar[dict[str, Callable[[Decoder, Fields, Fields], None]]] = {
        _START: _start,
        "content-start": _start_content,
        "content-delta": _add_content,
        "content-end": _end_content,
        "tool-plan-delta": _add_plan,
        "tool-call-start": _start_call,
        "tool-call-delta": _add_call,
        "tool-call-end": _end_call,
        "citation-start": _cite,
        "citation-end": _pass,
        "message-end": _end,
        "debug": _pass,
    }
    """Functions, not bound methods: a decoder that held those would refer to itself."""


def _without_words(block: Block) -> Block:
    """A block without its text."""
    if isinstance(block, Text | Thinking):
        return replace(block, text="")
    if isinstance(block, ToolCall):
        return replace(block, arguments=None, raw_input=None)
    return replace(block, data="") if isinstance(block, Media) and block.data else block


def _call(entry: Any) -> ToolCall:
    """A call that begins, with as much of its arguments as comes with that."""
    function: Any = entry.get("function") if type(entry) is dict else None
    if type(function) is not dict:
        raise InputError("a call without a function", path=".function")
    written: Any = function.get("arguments")
    if written is not None and type(written) is not str:
        raise InputError("arguments that are no text", path=".function.arguments")
    name = function.get("name") or ""  # a call without a name is reported, and never run
    whole = {**entry, "id": entry.get("id") or "", "function": {**function, "name": name, "arguments": "{}"}}
    call = read_message({"role": "assistant", "tool_calls": [whole]}).calls[0]
    return replace(call, arguments=None, raw_input=written or "")
