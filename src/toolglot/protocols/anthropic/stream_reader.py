"""Streams of the Anthropic Messages protocol, read.

    message_start  ( content_block_start  content_block_delta*  content_block_stop )*  message_delta  message_stop

with `ping` anywhere and `error` instead of the rest.

Law: what a stream adds up to is what the same answer says when it comes whole. What a provider does beyond the protocol
(blocks that overlap, that never end or were never begun, indexes that are missing or come twice, events without a name)
is told, and what it says is kept as far as it makes sense.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Block, Failure, Opaque, ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError, quote
from toolglot.jsontext import compact
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.anthropic import errors, reply
from toolglot.protocols.anthropic.blocks import READERS, unknown
from toolglot.protocols.anthropic.form import PLAIN_REPLY, PROTOCOL, AnthropicReply
from toolglot.protocols.fields.argument_text import read_object
from toolglot.protocols.fields.reading import Fields, leftover
from toolglot.protocols.framing.event_builder import (
    BEGAN_WITH_INPUT,
    CORRUPT_EVENT,
    TEXT_KEY,
    THINKING_KEY,
    EventBuilder,
    call_from_object,
)
from toolglot.protocols.framing.text_frames import Frame, SseFramer

framer: Final = SseFramer
_MOST_OPEN: Final = 1000
"""Blocks that are open at once. The protocol allows one."""
_MOST_COUNTS: Final = 100
"""Counts of what a reply cost. Each event tells all of them, so that more would take more time with each."""
_DELTA: Final = "content_block_delta"
_MESSAGE = frozenset({"id", "type", "role", "model", "content", "usage"})
_NOT_YET: Final = ("stop_reason", "stop_sequence", "stop_details")
"""What the start of a message has as null, and its end says."""
_OF_A_MESSAGE = frozenset({"content_block_start", _DELTA, "content_block_stop", "message_delta", "message_stop"})
_STARTS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The fields that the start of a block must have, empty as they may be."""


class _TextDelta(Struct, gc=False, tag="text_delta"):
    text: str


class _InputDelta(Struct, gc=False, tag="input_json_delta", rename={"text": "partial_json"}):
    text: str


class _ThinkingDelta(Struct, gc=False, tag="thinking_delta", rename={"text": "thinking"}):
    text: str


class _DeltaEvent(Struct, gc=False):
    """Most of what a stream consists of. Whatever does not look like this is read with more care."""

    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta | _InputDelta | _ThinkingDelta


_read_delta: Final = msgspec.json.Decoder(_DeltaEvent).decode


class _Block:
    """A block that was begun and has not ended."""

    __slots__ = ("delta", "fields", "grown", "index", "is_argued", "key", "kind", "pieces")

    def __init__(self, key: int, index: int, kind: type, fields: Fields) -> None:
        self.key = key
        """What the builder knows it by: its number, since an index may come twice."""
        self.index = index
        self.kind = kind
        """Its canonical class."""
        self.delta: type | None = _TextDelta if kind is Text else None
        """The deltas that need no care. The first of a thought and of a call does."""
        self.is_argued = False
        """Whether anything of the arguments of a call came but spaces."""
        self.fields = fields
        """As it began."""
        self.grown: list[Any] = []
        """The citations that came."""
        self.pieces: dict[str, list[Any]] = {}
        """What came of the texts and lists of a block whose type is not known, by field."""

    @property
    def is_carried(self) -> bool:
        return self.kind is ServerTool or self.kind is Opaque


class Decoder:
    """Reads one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:  # noqa: ARG002
        self.builder: EventBuilder = EventBuilder(build_call=call_from_object, limits=limits)
        self._limits = limits
        self._left = limits.max_bytes
        self._open: dict[int, _Block] = {}
        self._last: _Block | None = None
        self._begun = 0
        self._id = ""
        self._early: Fields = {}
        self._late: Fields = {}
        self._usage: Fields = {}
        self._stop: str | None = None

    def read(self, frame: Frame) -> list[Event]:
        """What a frame says. A delta of a block that is open goes straight to it."""
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
                pass  # which need not be wrong: it is read again
        if frame.data and not builder.is_over:
            self._read_carefully(frame)
        return builder.take()

    def finish(self) -> list[Event]:
        """The bytes ended. That is the end of the reply where it was said why it ends; else it was cut."""
        if not self.builder.is_over:
            self.builder.report("the stream ended without message_stop")
            self._end(is_ended=False)
        return self.builder.take()

    # --- one event ----------------------------------------------------------------------------------

    def _read_carefully(self, frame: Frame) -> None:
        self._left -= len(frame.data)
        if self._left < 0:
            raise LimitError(
                f"the stream is longer than the limit of {self._limits.max_bytes} bytes (max_bytes)",
                hint="raise max_bytes of the limits",
            )
        fields = self._document(frame)
        if fields is None:
            return
        kind = self._kind(fields, frame.name)
        if kind in _OF_A_MESSAGE and not self.builder.is_started:
            self.builder.report("the stream did not begin with message_start")
            self._start({})
        read = self._READERS.get(kind)
        if read is None:
            self.builder.report(f"an event of the unknown type {quote(kind)} was left out")
        else:
            read(self, fields)

    def _document(self, frame: Frame) -> Fields | None:
        try:
            value = jsontext.parse(frame.data, limits=self._limits).value
        except InputError:
            value = None
        if type(value) is dict:
            return value
        if frame.name == "error":
            return {"type": "error", "error": {"message": frame.data.decode("utf-8", "replace")}}
        if value is None and self.builder.loses_content(frame.data):
            self._break_off(CORRUPT_EVENT)
        else:
            self.builder.report("an event whose data is no JSON object was left out")
        return None

    def _break_off(self, failure: Failure) -> None:
        self._settle_all()
        self.builder.holds_back = False
        self.builder.fail(failure)

    def _kind(self, fields: Fields, name: str) -> str:
        """What an event is: its data says so, else its name. Clients want both."""
        kind = fields.get("type")
        if name == "error":
            return name
        if type(kind) is not str:
            self.builder.report("an event does not say its type in its data")
            return name or ("error" if fields.get("error") else "")
        if kind != name:
            self.builder.report("an event has no name, or another one than its type")
        return kind

    def _ping(self, _fields: Fields) -> None:
        """Nothing happened."""

    def _error(self, fields: Fields) -> None:
        body = fields if "error" in fields or fields.get("type") == "error" else {"error": fields}
        failure = errors.decode(200, {**body, "type": "error"}, target=PROTOCOL)
        self._break_off(failure or Failure("server", "the provider sent an error", in_band=True))

    # --- the message --------------------------------------------------------------------------------

    def _message_start(self, fields: Fields) -> None:
        message = fields.get("message")
        if type(message) is not dict:
            self.builder.report("message_start holds no message")
            message = {"id": self._id}
        if not self.builder.is_started:
            self._start(message)
        elif self.builder.has_blocks and message.get("id") != self._id:
            # Another attempt of whoever answers. The blocks of two must not add up to one turn (K1).
            self._settle_all()
            self.builder.report("a second message began inside the first")
            self.builder.fail(Failure("server", "a second message began inside the first", in_band=True))
        else:
            self.builder.report("the message began twice")

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
        """Counts are totals: a later one replaces an earlier one, and one that is not there says nothing."""
        if type(usage) is not dict or not usage:
            return
        merged = {
            **self._usage,
            **{key: usage[key] for key in usage if usage[key] is not None or key not in self._usage},
        }
        if len(merged) > _MOST_COUNTS:
            self.builder.report(f"a reply with more than {_MOST_COUNTS} counts of its cost; the others are left out")
            merged = dict(islice(merged.items(), _MOST_COUNTS))
        try:
            counted = reply.decode({**_BARE, "usage": merged}).usage
        except InputError:
            self.builder.report("what the reply cost could not be read")
            return
        if merged != self._usage and counted is not None:
            self._usage = merged
            self.builder.add_usage(counted)

    def _message_delta(self, fields: Fields) -> None:
        delta = fields.get("delta")
        if type(delta) is not dict:
            self.builder.report("message_delta holds no delta")
            delta = {}
        said = delta.get("stop_reason")
        if type(said) is str:
            self._stop = said
            self.builder.is_end_announced = self.builder.holds_back = True
            if self._open:
                self.builder.report("the message ended before a block did")
        for found, known in ((delta, {"stop_reason"}), (fields, {"type", "delta", "usage"})):
            late = leftover({key: found[key] for key in found if key not in known}, frozenset(), PROTOCOL)
            for key, value in late[PROTOCOL].items() if late else ():
                if value is not None or self._early.get(key) is None:
                    self._late[key] = value
        self._count(fields.get("usage"))

    def _message_stop(self, _fields: Fields) -> None:
        self._end(is_ended=True)

    def _end(self, *, is_ended: bool) -> None:
        """The end, which message_stop said (`is_ended`) or not."""
        self._settle_all()
        self.builder.holds_back = False
        if self._stop is None:
            self.builder.finish_without_reason(is_ended=is_ended)
            return
        extra = {PROTOCOL: self._late} if self._late else None
        self.builder.finish(reply.stop_of(self._stop, has_calls=False), extra, AnthropicReply(self._stop))
        if not self.builder.has_cut_calls and (self._stop == "tool_use") != self.builder.has_calls:
            if self._stop == "tool_use":
                self.builder.report("the reply says that it ended for tool calls, and has none")
            elif self._stop in ("end_turn", "stop_sequence"):
                self.builder.report("the reply has tool calls, and does not say that it ended for them")

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
        fields = self._mended(started)
        try:
            block = READERS.get(fields["type"], unknown)(fields)
        except InputError:
            block = unknown(fields)
        if len(self._open) >= _MOST_OPEN:
            raise LimitError(f"more than {_MOST_OPEN} blocks of the reply are open at once")
        self._begun += 1
        begun = _Block(self._begun, index, type(block), started if isinstance(block, ToolCall) else dict(fields))
        self._open[index] = self._last = begun
        text = block.text if isinstance(block, Text | Thinking) else ""
        if isinstance(block, ToolCall):
            if started.get("input"):
                self.builder.report(BEGAN_WITH_INPUT)
            block = replace(block, arguments=None)
        elif text:
            if fields["type"] in _STARTS:
                self.builder.report("a block began with its text")
            block = replace(block, text="")
        # What our own writer shows only later is not shown before it either, so that it can take over at any time.
        self.builder.holds_back = not isinstance(block, Text)
        self.builder.open(begun.key, block)
        if text:
            self.builder.add(begun.key, text)

    def _mended(self, started: Fields) -> Fields:
        """The start of a block with the fields that it must have."""
        wanted = _STARTS.get(started["type"], {})
        missing = {key: kind() for key, kind in wanted.items() if type(started.get(key)) is not kind}
        if missing:
            self.builder.report(f"the start of a block of type {started['type']} lacks {', '.join(missing)}")
        return {**started, **missing}

    def _index(self, fields: Fields, otherwise: int) -> int:
        index = fields.get("index")
        if type(index) is int:
            return index
        self.builder.report("an event does not say to which block it belongs")
        return otherwise

    def _block_delta(self, fields: Fields) -> None:
        index = self._index(fields, self._last.index if self._last else -1)
        delta = fields.get("delta")
        if type(delta) is not dict:
            self.builder.report("content_block_delta holds no delta")
            return
        kind, block = delta.get("type"), self._open.get(index)
        if kind == "text_delta":
            self._spoken(block, Text, TEXT_KEY, delta.get("text"))
        elif kind == "thinking_delta":
            self._spoken(block, Thinking, THINKING_KEY, delta.get("thinking"))
        elif kind == "input_json_delta":
            self._argued(block, delta)
        elif kind == "signature_delta" and block is not None and block.kind is Thinking:
            self._signed(block, delta.get("signature"))
        elif kind == "citations_delta" and block is not None and block.kind is Text and "citation" in delta:
            block.grown.append(delta["citation"])
            self.builder.holds_back = True
        elif block is not None and block.is_carried:
            self._grow(block, delta)
        else:
            self.builder.report(f"a delta of type {quote(kind)} that its block has no place for was left out")

    def _spoken(self, block: _Block | None, kind: type, otherwise: str, piece: object) -> None:
        """Words. Those that do not fit the block they name are a block of their own."""
        if type(piece) is not str:
            self.builder.report("a delta without its text was left out")
        elif block is not None and block.kind is kind:
            self._add(block, piece)
            if piece and kind is Thinking:
                block.delta = _ThinkingDelta
                self.builder.holds_back = False
        else:
            self.builder.report("a delta came for a block that is not open, or is of another type")
            self.builder.add_implicit(otherwise, piece)

    def _argued(self, block: _Block | None, delta: Fields) -> None:
        piece = delta.get("partial_json", delta.get("input"))
        if type(piece) is dict:
            self.builder.report("arguments came as an object, not as text")
            piece = compact(piece)
        if type(piece) is not str:
            self.builder.report("a delta without its arguments was left out")
        elif block is None or not (block.kind is ToolCall or block.is_carried):
            self.builder.report("arguments came for a call that is not open, and were left out")
        else:
            self._add(block, piece)

    def _add(self, block: _Block, piece: str) -> None:
        if self.builder.is_open(block.key):
            self.builder.add(block.key, piece)
            begins = piece.lstrip()[:1] if block.kind is ToolCall and not block.is_argued else ""
            if begins:
                block.is_argued = True
            if begins == "{":  # what is no object is written when it is whole
                block.delta = _InputDelta
                self.builder.holds_back = False
        elif piece.strip():
            self.builder.report("something came for a call that was whole, and was left out")

    def _signed(self, block: _Block, signature: object) -> None:
        opened = self.builder.block(block.key)
        if isinstance(opened, Thinking) and type(signature) is str:
            self.builder.update(block.key, replace(opened, signature=signature))

    def _grow(self, block: _Block, delta: Fields) -> None:
        """More of something unknown: texts and lists grow, the rest is replaced."""
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

    def _close(self, block: _Block) -> None:
        self._settle(block)
        del self._open[block.index]
        self.builder.holds_back = False
        self.builder.close(block.key)

    def _settle_all(self) -> None:
        for block in self._open.values():
            self._settle(block)
        self._open.clear()

    def _settle(self, block: _Block) -> None:
        """What is known of a block only when it ends."""
        opened = self.builder.block(block.key)
        if block.kind is ToolCall:
            given = block.fields.get("input")
            if given and not self.builder.text_of(block.key).strip():
                self._add(block, given if type(given) is str else compact(given))
        elif block.grown and isinstance(opened, Text):
            own = (opened.extra or {}).get(PROTOCOL, {})
            cited = own.get("citations")
            own = {**own, "citations": [*(cited if type(cited) is list else ()), *block.grown]}
            self.builder.update(block.key, replace(opened, extra={PROTOCOL: own}))
        elif block.is_carried:
            self.builder.update(block.key, self._whole(block))

    def _whole(self, block: _Block) -> Block:
        fields = {**block.fields, **{key: _joined(pieces) for key, pieces in block.pieces.items()}}
        written = self.builder.text_of(block.key)
        if written.strip():
            given, _ = read_object(written)
            if given is None:
                self.builder.report("the arguments of a server tool could not be read")
            fields["input"] = given or {}
        return unknown(fields)

    _READERS: ClassVar[dict[str, Callable[[Decoder, Fields], None]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        _DELTA: _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": _ping,
        "error": _error,
    }
    """Functions, not bound methods: a decoder that held those would refer to itself."""


_BARE: Final[Fields] = {"type": "message", "role": "assistant", "content": [], "id": "", "model": ""}
"""A reply that says nothing."""


def _joined(pieces: list[Any]) -> Any:
    """Pieces of one kind, which are texts or lists."""
    return "".join(pieces) if type(pieces[0]) is str else [item for piece in pieces for item in piece]
