"""Reads a stream that opens, fills and closes numbered blocks. Anthropic's and Bedrock's readers are built on it.

    message start  ( block start  block delta*  block stop )*  message stop

Law: a stream adds up to the same reply as one that is not streamed. What a provider does beyond the protocol (blocks
that overlap, never end or never began, indexes that are missing or come twice) is reported, and its content is kept as
far as it makes sense.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

from toolglot import jsontext
from toolglot.conversation import Block, Failure, Form, StopReason, Text, ToolCall
from toolglot.errors import InputError, LimitError, quote
from toolglot.jsontext import compact
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.argument_text import read_object
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import EventBuilder, call_from_object

_MAX_OPEN: Final = 1000
"""Blocks that are open at once. The protocols allow one."""
UNKNOWN_ERROR: Final = Failure("server", "the provider sent an error", in_band=True)
_SECOND_MESSAGE: Final = "a second message began inside the first"


class OpenBlock:
    """A block that has begun and not ended."""

    __slots__ = ("citations", "delta", "fields", "has_input", "index", "initial_input", "key", "kind", "pieces")

    def __init__(self, key: int, index: int, kind: type, fields: Fields | None = None) -> None:
        self.key = key
        """Its key in the builder: a number of its own, since an index may come twice."""
        self.index = index
        self.kind = kind
        """Its canonical class; Opaque while only its end can tell."""
        self.fields: Fields = fields or {}
        """The block as it would be in a reply that is not streamed, as far as it came."""
        self.delta: type | None = None
        """The deltas that can be added without further checks. The first of a thought or a call cannot."""
        self.initial_input: object = None
        """The arguments that a call began with."""
        self.has_input = False
        """Whether anything but white space came of its arguments."""
        self.citations: list[Any] = []
        self.pieces: dict[str, list[Any]] = {}
        """What came of other fields, piece by piece."""


class BlockStreamDecoder:
    """Reads one stream. A protocol adds `read`, `_start`, `_settle` and its table of events."""

    _PROTOCOL: ClassVar[str]
    _INDEX: ClassVar[str]
    """The field of an event that holds the index of its block."""
    _FIRST_EVENT: ClassVar[str]
    _EVENTS_OF_MESSAGE: ClassVar[frozenset[str]]
    """Events that come only after the first one."""
    _READERS: ClassVar[dict[str, Callable[[Any, Fields], None]]]
    """Functions, not bound methods: a decoder that held those would refer to itself."""
    _INPUT_DELTA: ClassVar[type | None] = None
    """The `OpenBlock.delta` of a call whose arguments are an object."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:  # noqa: ARG002
        self.builder: EventBuilder = EventBuilder(build_call=call_from_object, limits=limits)
        self._limits = limits
        self._bytes_left = limits.max_bytes
        self._open: dict[int, OpenBlock] = {}
        self._last: OpenBlock | None = None
        self._begun = 0
        """Blocks that have begun so far."""
        self._stop_reason: str | None = None
        self._late: Fields = {}
        """Unknown fields of the events that end the message."""

    # --- one event ----------------------------------------------------------------------------------

    def _parse(self, data: bytes) -> Any:
        """The JSON of an event; None if it is not JSON."""
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise LimitError(
                f"the stream is longer than the limit of {self._limits.max_bytes} bytes (max_bytes)",
                hint="raise max_bytes of the limits",
            )
        try:
            return jsontext.parse(data, limits=self._limits).value
        except InputError:
            return None

    def _read_event(self, name: str, fields: Fields) -> None:
        if name in self._EVENTS_OF_MESSAGE and not self.builder.is_started:
            self.builder.report(f"the stream did not begin with {self._FIRST_EVENT}")
            self._start({})
        read = self._READERS.get(name)
        if read is None:
            self.builder.report(f"an event of the unknown type {quote(name)} was left out")
        else:
            read(self, fields)

    def _fail(self, failure: Failure) -> None:
        self._settle_all()
        self.builder.fail(failure)

    # --- the message --------------------------------------------------------------------------------

    def _start(self, message: Fields) -> None:
        """Start the message."""
        raise NotImplementedError

    def _start_again(self, *, is_same: bool) -> None:
        """A message began inside one. `is_same` says that it has the id of the first."""
        if self.builder.has_blocks and not is_same:
            # Another attempt of the provider. The blocks of two attempts must not add up to one turn (K1).
            self._settle_all()
            self.builder.report(_SECOND_MESSAGE)
            self.builder.fail(Failure("server", _SECOND_MESSAGE, in_band=True))
        else:
            self.builder.report("the message began twice")

    def _announce_end(self) -> None:
        self.builder.is_end_announced = self.builder.holds_back = True
        if self._open:
            self.builder.report("the message ended before a block did")

    def _finish(self, stop: StopReason | None, form: Form) -> None:
        """End the message, whose stop reason came."""
        self.builder.finish(stop, {self._PROTOCOL: self._late} if self._late else None, form)
        if self.builder.has_cut_calls or (self._stop_reason == "tool_use") == self.builder.has_calls:
            return
        if self._stop_reason == "tool_use":
            self.builder.report("the reply says that it ended for tool calls, and has none")
        elif self._stop_reason in ("end_turn", "stop_sequence"):
            self.builder.report("the reply has tool calls, and does not say that it ended for them")

    # --- blocks -------------------------------------------------------------------------------------

    def _index(self, fields: Fields, default: int) -> int:
        index = fields.get(self._INDEX)
        if type(index) is int:
            return index
        self.builder.report("an event does not say to which block it belongs")
        return default

    def _open_block(self, opened: OpenBlock, block: Block | None) -> None:
        """Open a block. Without a canonical block, it is added to the reply only when it ends."""
        if len(self._open) >= _MAX_OPEN:
            raise LimitError(f"more than {_MAX_OPEN} blocks of the reply are open at once")
        self._open[opened.index] = self._last = opened
        # What our own writer shows only later is not shown before it either, so that it can take over at any time.
        self.builder.holds_back = opened.kind is not Text
        if block is not None:
            self.builder.open(opened.key, block)

    def _add_input(self, block: OpenBlock | None, kinds: Collection[type], piece: Any) -> None:
        """Add arguments to a call that is of one of these kinds."""
        if type(piece) is dict:
            self.builder.report("arguments came as an object, not as text")
            piece = compact(piece)
        if type(piece) is not str:
            self.builder.report("a delta without its arguments was left out")
        elif block is None or block.kind not in kinds:
            self.builder.report("arguments came for a call that is not open, and were left out")
        else:
            self._add(block, piece)

    def _add(self, block: OpenBlock, piece: str) -> None:
        if self.builder.is_open(block.key):
            self.builder.add(block.key, piece)
            first = piece.lstrip()[:1] if block.kind is ToolCall and not block.has_input else ""
            if first:
                block.has_input = True
                self.builder.holds_back = first != "{"  # what is not an object is written when it is whole
            if first == "{":
                block.delta = self._INPUT_DELTA
        elif piece.strip():
            self.builder.report("something came for a call that was whole, and was left out")

    def _close(self, block: OpenBlock) -> None:
        self._settle(block)
        del self._open[block.index]
        self.builder.holds_back = False
        self.builder.close(block.key)

    def _settle_all(self) -> None:
        for block in self._open.values():
            self._settle(block)
        self._open.clear()
        self.builder.holds_back = False

    def _settle(self, block: OpenBlock) -> None:
        """Complete a block with what is known only when it ends."""
        raise NotImplementedError

    def _settle_call(self, block: OpenBlock) -> None:
        """Add the arguments that a call began with, if no others came."""
        initial = block.initial_input
        if initial and not self.builder.text_of(block.key).strip():
            self._add(block, initial if type(initial) is str else compact(initial))

    def _server_input(self, block: OpenBlock, initial: object) -> object:
        """The arguments of a server tool: those that came in deltas, else those that it began with."""
        written = self.builder.text_of(block.key)
        if not written.strip():
            return initial
        arguments, _ = read_object(written)
        if arguments is None:
            self.builder.report("the arguments of a server tool could not be read")
        return arguments or {}


def ignore_event(_decoder: object, _fields: Fields) -> None:
    """Reads an event without content."""
