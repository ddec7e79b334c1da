"""Streams of the Bedrock Converse protocol, read.

    messageStart  ( contentBlockStart?  contentBlockDelta*  contentBlockStop )*  messageStop  metadata

Only calls, results and images have a start; text and thinking begin with their first delta. An exception ends all.

Law: what a stream adds up to is what the same answer says when it comes whole. What a provider does beyond the protocol
is told, and what it says is kept as far as it makes sense.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Block, Failure, Opaque, ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError, quote
from toolglot.jsontext import compact
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.bedrock import errors, reply
from toolglot.protocols.bedrock.blocks import read_block
from toolglot.protocols.bedrock.form import PLAIN_REPLY, PROTOCOL, BedrockReply
from toolglot.protocols.fields.argument_text import read_object
from toolglot.protocols.fields.reading import Fields, leftover
from toolglot.protocols.framing.aws_frames import EXCEPTION, AwsFramer
from toolglot.protocols.framing.event_builder import (
    CORRUPT_EVENT,
    TEXT_KEY,
    THINKING_KEY,
    EventBuilder,
    call_from_object,
)
from toolglot.protocols.framing.text_frames import Frame

framer: Final = AwsFramer
_MOST_OPEN: Final = 1000
"""Blocks that are open at once. The protocol allows one."""
_DELTA: Final = "contentBlockDelta"
_OF_A_MESSAGE = frozenset({"contentBlockStart", _DELTA, "contentBlockStop", "messageStop", "metadata"})
_STOP = frozenset({"stopReason"})
_COUNTED = frozenset({"usage"})
_PADDING: Final = "p"
"""A field of every event that only hides how long it is."""


class _Spoken(Struct, gc=False, forbid_unknown_fields=True):
    text: str


class _Argued(Struct, gc=False, forbid_unknown_fields=True):
    input: str


class _Delta(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str | None = None
    tool_use: _Argued | None = None
    reasoning_content: _Spoken | None = None


class _DeltaEvent(Struct, gc=False, rename="camel"):
    """Most of what a stream consists of. Whatever does not look like this is read with more care."""

    content_block_index: int
    delta: _Delta


_read_delta: Final = msgspec.json.Decoder(_DeltaEvent).decode


class _Block:
    """A block that was begun and has not ended."""

    __slots__ = ("cited", "fields", "given", "hidden", "index", "is_argued", "key", "kind")

    def __init__(self, key: int, index: int, kind: type, fields: Fields | None = None) -> None:
        self.key = key
        """What the builder knows it by: its number, since an index may come twice."""
        self.index = index
        self.kind = kind
        """Its canonical class; Opaque while only its end tells."""
        self.fields: Fields = fields or {}
        """The block as it would stand in a whole reply, as far as it came."""
        self.given: object = None
        """The arguments that a call began with."""
        self.is_argued = False
        """Whether anything of its arguments came but spaces."""
        self.cited: list[Any] = []
        self.hidden: list[str] = []
        """Pieces of thinking that only its provider can read."""


class Decoder:
    """Reads one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:  # noqa: ARG002
        self.builder: EventBuilder = EventBuilder(build_call=call_from_object, limits=limits)
        self._limits = limits
        self._left = limits.max_bytes
        self._open: dict[int, _Block] = {}
        self._last: _Block | None = None
        self._begun = 0
        self._next = 0
        self._stop: str | None = None
        self._has_metadata = False
        self._late: Fields = {}

    def read(self, frame: Frame) -> list[Event]:
        """What a frame says. A delta of a block that is open goes straight to it."""
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
                pass  # which need not be wrong: it is read again
        if frame.data and not builder.is_over:
            self._read_carefully(frame)
        return builder.take()

    def finish(self) -> list[Event]:
        """The bytes ended. That is the end of the reply where messageStop came; else it was cut."""
        if self._stop is None and any(block.kind is Opaque for block in self._open.values()):
            self.builder.fail(Failure("server", "the stream ended inside a block", in_band=True))
        if not self.builder.is_over:
            self._end()
        return self.builder.take()

    # --- one event ----------------------------------------------------------------------------------

    def _read_carefully(self, frame: Frame) -> None:
        self._left -= len(frame.data)
        if self._left < 0:
            raise LimitError(
                f"the stream is longer than the limit of {self._limits.max_bytes} bytes (max_bytes)",
                hint="raise max_bytes of the limits",
            )
        try:
            fields = jsontext.parse(frame.data, limits=self._limits).value
        except InputError:
            fields = None
        if frame.name.startswith(EXCEPTION):
            self._exception(frame, fields)
        elif fields is None and self.builder.loses_content(frame.data):
            self._settle_all()
            self.builder.fail(CORRUPT_EVENT)
        elif type(fields) is not dict:
            self.builder.report("an event whose data is no JSON object was left out")
        elif frame.name not in self._READERS:
            self.builder.report(f"an event of the unknown type {quote(frame.name)} was left out")
        else:
            if frame.name in _OF_A_MESSAGE and not self.builder.is_started:
                self.builder.report("the stream did not begin with messageStart")
                self._message_start({})
            fields.pop(_PADDING, None)
            self._READERS[frame.name](self, fields)

    def _exception(self, frame: Frame, fields: Any) -> None:
        name = frame.name[len(EXCEPTION) :]
        if type(fields) is not dict:
            fields = {"message": frame.data.decode("utf-8", "replace")}
        body = {name: fields} if name.endswith("Exception") else {**fields, "__type": name}
        failure = errors.decode(200, body, target=PROTOCOL)
        self._settle_all()
        self.builder.fail(failure or Failure("server", "the provider sent an error", in_band=True))

    def _initial_response(self, _fields: Fields) -> None:
        """Nothing: it only opens the stream."""

    # --- the message --------------------------------------------------------------------------------

    def _message_start(self, _fields: Fields) -> None:
        if not self.builder.is_started:
            self.builder.start(form=PLAIN_REPLY)
        elif self.builder.has_blocks:
            # Another attempt of whoever answers. The blocks of two must not add up to one turn (K1).
            self._settle_all()
            self.builder.report("a second message began inside the first")
            self.builder.fail(Failure("server", "a second message began inside the first", in_band=True))
        else:
            self.builder.report("the message began twice")

    def _keep(self, fields: Fields, known: frozenset[str]) -> None:
        late = leftover(fields, known, PROTOCOL)
        self._late.update(late[PROTOCOL] if late else {})

    def _message_stop(self, fields: Fields) -> None:
        said = fields.get("stopReason")
        if type(said) is str:
            self._stop = said
        else:
            self.builder.report("messageStop does not say why")
        if self._open:
            self.builder.report("the message ended before a block did")
        self._keep(fields, _STOP)
        self.builder.is_end_announced = self.builder.holds_back = True
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
                self.builder.report("what the reply cost could not be read")
        self._keep(fields, _COUNTED)
        if self.builder.is_end_announced:
            self._end()
        else:
            self.builder.report("metadata came before the end of the message")

    def _end(self) -> None:
        self._settle_all()
        extra = {PROTOCOL: self._late} if self._late else None
        if self._stop is None:
            is_ended = self.builder.is_end_announced
            self.builder.finish_without_reason(is_ended=is_ended, closes_blocks=not is_ended, extra=extra)
            return
        self.builder.finish(reply.stop_of(self._stop, has_calls=False), extra, BedrockReply(self._stop))
        if not self.builder.has_cut_calls and (self._stop == "tool_use") != self.builder.has_calls:
            if self._stop == "tool_use":
                self.builder.report("the reply says that it ended for tool calls, and has none")
            elif self._stop in ("end_turn", "stop_sequence"):
                self.builder.report("the reply has tool calls, and does not say that it ended for them")

    # --- blocks -------------------------------------------------------------------------------------

    def _index(self, fields: Fields, otherwise: int) -> int:
        index = fields.get("contentBlockIndex")
        if type(index) is int:
            return index
        self.builder.report("an event does not say to which block it belongs")
        return otherwise

    def _begin(self, index: int, kind: type, block: Block | None, fields: Fields | None = None) -> _Block:
        """A block at this index. Without one, it is told only when it ends."""
        before = self._open.get(index)
        if before is not None:
            self.builder.report("a block began at the index of one that had not ended")
            self._close(before)
        elif index < self._next:
            self.builder.report("the index of a block came twice")
        self._next = max(self._next, index + 1)
        if len(self._open) >= _MOST_OPEN:
            raise LimitError(f"more than {_MOST_OPEN} blocks of the reply are open at once")
        self._begun += 1
        begun = _Block(self._begun, index, kind, fields)
        self._open[index] = self._last = begun
        # What our own writer shows only later is not shown before it either, so that it can take over at any time.
        self.builder.holds_back = kind is not Text
        if block is not None:
            self.builder.open(begun.key, block)
        return begun

    def _block_start(self, fields: Fields) -> None:
        index = self._index(fields, self._next)
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
        begun.given = inner.get("input")
        if begun.given:
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

    def _spoken(self, index: int, piece: Any) -> None:
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

    def _argued(self, index: int, delta: Any) -> None:
        block = self._open.get(index)
        piece = delta.get("input") if type(delta) is dict else delta
        if type(piece) is dict:
            self.builder.report("arguments came as an object, not as text")
            piece = compact(piece)
        if type(piece) is not str:
            self.builder.report("a delta without its arguments was left out")
        elif block is None or (block.kind is not ToolCall and block.kind is not ServerTool):
            self.builder.report("arguments came for a call that is not open, and were left out")
        else:
            self._add(block, piece)

    def _add(self, block: _Block, piece: str) -> None:
        if self.builder.is_open(block.key):
            self.builder.add(block.key, piece)
            begins = piece.lstrip()[:1] if block.kind is ToolCall and not block.is_argued else ""
            if begins:
                block.is_argued = True
                self.builder.holds_back = begins != "{"  # what is no object is written when it is whole
        elif piece.strip():
            self.builder.report("something came for a call that was whole, and was left out")

    def _thought(self, index: int, delta: Any) -> None:
        """More of what was thought: its text, its signature, or what only its provider can read."""
        parts = {key: value for key, value in delta.items() if type(value) is str} if type(delta) is dict else {}
        block = self._open.get(index)
        if block is not None and block.kind is not Thinking:
            self.builder.report("a delta came for a block of another type")
            self.builder.add_implicit(THINKING_KEY, parts.get("text", ""))
            return
        if block is None:
            hidden = parts.get("redactedContent")
            shown: Fields = {"reasoningText": {"text": ""}} if hidden is None else {"redactedContent": ""}
            block = self._begin(index, Thinking, read_block({"reasoningContent": shown}))
        opened = self.builder.block(block.key)
        if "text" in parts:
            self.builder.add(block.key, parts["text"])
            self.builder.holds_back = self.builder.holds_back and not parts["text"]
        if "signature" in parts and isinstance(opened, Thinking):
            self.builder.update(block.key, replace(opened, signature=parts["signature"]))
        if "redactedContent" in parts:
            block.hidden.append(parts["redactedContent"])
        if not parts.keys() & {"text", "signature", "redactedContent"}:
            self.builder.report("a delta of thinking that says nothing known was left out")

    def _cited(self, index: int, citation: Any) -> None:
        block = self._open.get(index) or self._begin(index, Text, Text(""))
        if block.kind is Text:
            block.cited.append(citation)
            self.builder.holds_back = True
        else:
            self.builder.report("a citation came for a block that is no text, and was left out")

    def _resulted(self, index: int, parts: Any) -> None:
        self._grow(index, "toolResult", parts if type(parts) is list else None)

    def _shown(self, index: int, image: Any) -> None:
        self._grow(index, "image", image if type(image) is dict else None)

    def _grow(self, index: int, member: str, more: Any) -> None:
        """More of a block that is told when it ends."""
        block = self._open.get(index)
        if block is None or block.kind is not Opaque or member not in block.fields or more is None:
            self.builder.report(f"a delta of type {member} that its block has no place for was left out")
        elif member == "toolResult":
            block.fields[member]["content"].extend(more)
        else:
            block.fields[member].update(more)

    def _block_stop(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else -1)
        block = self._open.get(index)
        if block is not None:
            self._close(block)
        elif index < self._next:
            self.builder.report("a block ended that was not open")
        else:
            self._close(self._begin(index, Text, Text("")))  # a text without words

    def _close(self, block: _Block) -> None:
        self._settle(block)
        del self._open[block.index]
        self.builder.holds_back = False
        if block.kind is not Opaque:
            self.builder.close(block.key)

    def _settle_all(self) -> None:
        for block in self._open.values():
            self._settle(block)
        self._open.clear()
        self.builder.holds_back = False

    def _settle(self, block: _Block) -> None:
        """What is known of a block only when it ends."""
        opened = self.builder.block(block.key)
        if block.kind is Opaque:
            self.builder.add_block(_read(block.fields))
        elif block.kind is ToolCall:
            if block.given and not self.builder.text_of(block.key).strip():
                self._add(block, block.given if type(block.given) is str else compact(block.given))
        elif block.kind is ServerTool:
            self.builder.update(block.key, self._server_call(block))
        elif block.cited:
            content: Fields = {"content": [{"text": self.builder.text_of(block.key)}], "citations": block.cited}
            self.builder.update(block.key, read_block({"citationsContent": content}))
        elif block.hidden and isinstance(opened, Thinking):
            self.builder.update(block.key, self._hidden(block, opened))

    def _hidden(self, block: _Block, opened: Thinking) -> Thinking:
        if self.builder.text_of(block.key) or opened.signature is not None:
            self.builder.report("a block of thinking can be read and is hidden too; what is hidden was left out")
            return opened
        return replace(opened, redacted=_joined(block.hidden))

    def _server_call(self, block: _Block) -> Block:
        given: object = block.given
        written = self.builder.text_of(block.key)
        if written.strip():
            given, _ = read_object(written)
            if given is None:
                self.builder.report("the arguments of a server tool could not be read")
        return read_block({**block.fields, "toolUse": {**block.fields["toolUse"], "input": given or {}}})

    _READERS: ClassVar[dict[str, Callable[[Decoder, Fields], None]]] = {
        "messageStart": _message_start,
        "contentBlockStart": _block_start,
        _DELTA: _block_delta,
        "contentBlockStop": _block_stop,
        "messageStop": _message_stop,
        "metadata": _metadata,
        "initial-response": _initial_response,
    }
    """Functions, not bound methods: a decoder that held those would refer to itself."""
    _DELTA_READERS: ClassVar[dict[str, Callable[[Decoder, int, Any], None]]] = {
        "text": _spoken,
        "toolUse": _argued,
        "reasoningContent": _thought,
        "citation": _cited,
        "toolResult": _resulted,
        "image": _shown,
    }


_BARE: Final[Fields] = {"output": {"message": {"role": "assistant", "content": []}}}
"""A reply that says nothing."""


def _read(fields: Fields) -> Block:
    """A block that is whole now; what cannot be read is carried."""
    try:
        return read_block(fields)
    except InputError:
        return Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _joined(pieces: list[str]) -> str:
    """Base64 that came in pieces, each of which may end in padding."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)
