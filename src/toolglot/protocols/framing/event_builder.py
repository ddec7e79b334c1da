"""Builds the canonical events of one reply, whatever order a provider sends its blocks in.

A stream decoder reports what it reads, block by block and piece by piece. Blocks may overlap, stay open or alternate.
The events that come out are legal: one block at a time. While a block is open, pieces of others wait.

Law: no text is lost or put into another block. Work is proportional to the text, and what waits is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from io import StringIO
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Extra, Failure, Form, Media, StopReason, Text, Thinking, ToolCall, Usage
from toolglot.conversation.events import (
    UNREPORTED_CUT,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    MediaDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.conversation.reply_events import delta_text, opening_block
from toolglot.errors import LimitError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.argument_text import ends_early, read_arguments
from toolglot.protocols.fields.stop_reason import derive_stop
from toolglot.protocols.framing.json_end import ObjectEnd

NO_LAST_EVENT: Final = "the stream ended without the event that ends every stream"
NO_LAST_LINE: Final = "the last event lacked the empty line that ends it"
BYTE_ORDER_MARK: Final = "the stream began with a byte order mark, which many clients cannot read"
FILLED: Final = "the provider leaves out fields that its protocol demands; they have the values of the request"
OUTSIDE_EVENTS: Final = frozenset({FILLED, NO_LAST_EVENT, NO_LAST_LINE, BYTE_ORDER_MARK})
"""Problems of a stream whose events are all in order: they can be forwarded as they are."""

PARTS_IN_CONTENT: Final = "the content of a chunk is a list of parts"
NO_TYPE: Final = "a call begins without its type"
NO_ARGUMENTS: Final = "a call has no arguments"
STOP_WITH_CALLS: Final = "the finish reason is stop although there are calls"
NO_LAST_ITEMS: Final = "the last response holds none of the items that were streamed"
BEGAN_WITH_INPUT: Final = "a call began with its input"
"""Problems that only some clients have. Mistral's clients read the first two. A client of another protocol gets the
third in its own form. Some providers end with the fourth when a call was forced (`stream.forced_stop`), and some leave
out what was streamed (`stream.last_items`). Anthropic sends the sixth where a server tool calls, and its SDKs read it.
`UNREPORTED_CUT` is not a problem of the form: a client of the same protocol gets such a call as it came, whole or in
pieces (J4)."""

CUT_OFF: Final = Failure(
    "server", "the provider's stream was cut off: it ended without saying that the reply is over", in_band=True
)

BLOCK_CHARACTERS: Final = 64
"""The cost of a block besides its text, in characters of the limit."""
MAX_PROBLEMS: Final = 50
"""Problems that are reported for one stream."""

TEXT_KEY: Final = "text"
THINKING_KEY: Final = "thinking"
"""The keys of implicit blocks, in protocols that do not open and close them."""

CORRUPT_EVENT: Final = Failure(
    "server", "an event of the provider's stream is corrupt; its content is lost", in_band=True
)
"""Fails the stream: a reply put together around a gap is not what the model wrote."""


BuildCall = Callable[[ToolCall, str], ToolCall]
"""Makes a whole call of what was known at its start and of the text of its arguments."""


def call_from_text(call: ToolCall, written: str) -> ToolCall:
    """A call whose arguments are a string on the wire. The input of a free-text call is not parsed."""
    if call.type == "custom":
        return replace(call, raw_input=written)
    arguments, raw, done = read_arguments(written)
    raw = raw if written.strip() else None
    return replace(call, arguments=arguments, raw_input=raw, argument_fixes=done)


def call_from_object(call: ToolCall, written: str) -> ToolCall:
    """A call whose arguments are an object. How its pieces were spelled does not matter; no pieces are an empty one."""
    if not written.strip() and call.type != "custom":
        return replace(call, arguments={})
    whole = call_from_text(call, written)
    return replace(whole, raw_input=None) if whole.arguments is not None else whole


def keep_call(call: ToolCall, _written: str) -> ToolCall:
    """For protocols whose calls come whole: the call as it is."""
    return call


class _OpenBlock:
    """A block that has begun. `text` is what has come of it so far."""

    __slots__ = ("block", "delta", "end", "is_ended", "key", "scanned", "text", "write")

    def __init__(self, key: Hashable, block: Block) -> None:
        self.key = key
        self.block = block
        self.text = StringIO()
        self.write = self.text.write
        self.is_ended = False
        self.delta = _DELTAS.get(type(block))
        self.end: ObjectEnd | None = ObjectEnd() if type(block) is ToolCall and block.type != "custom" else None
        self.scanned = 0
        """How much of its text was scanned for the end of its arguments."""


_DELTAS: Final[dict[type, Callable[[str], Event]]] = {
    Text: TextDelta,
    Thinking: ThinkingDelta,
    ToolCall: InputDelta,
    Media: MediaDelta,
}


_MAX_NULL_LENGTH: Final = 16
"""Longer text is not compared with null."""


def _is_null(text: StringIO) -> bool:
    """Whether arguments are null. Groq sends that for a call without arguments."""
    return text.getvalue().strip() == "null"


class EventBuilder:
    """Builds the events of one reply. `take` returns those that are ready."""

    def __init__(self, *, build_call: BuildCall = call_from_text, limits: Limits = DEFAULT_LIMITS) -> None:
        self.events: list[Event] = []
        self.problems: list[str] = []
        """What the provider did that its protocol does not allow, and how it was read."""
        self.fixes: set[str] = set()
        """Those problems that had to be fixed before anything could be read."""
        self.remarks: list[str] = []
        """What is allowed but missing from the canonical reply."""
        self.has_calls: bool = False
        self.has_cut_calls: bool = False
        self.has_blocks: bool = False
        self.is_over: bool = False
        self.has_failed: bool = False
        self.holds_back = False
        """Whether a decoder keeps something for later. Decoders set this."""
        self.is_end_announced = False
        """Whether the provider has sent its stop reason. Decoders set this."""
        self._build_call = build_call
        self._left = limits.max_bytes
        self._limit = limits.max_bytes
        self._started = False
        self._current: _OpenBlock | None = None
        self._waiting: OrderedDict[Hashable, _OpenBlock] = OrderedDict()

    # --- for decoders -------------------------------------------------------------------------------

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events

    def report(self, problem: str) -> None:
        """Add a problem, once."""
        if len(self.problems) < MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def report_fix(self, problem: str) -> None:
        """Add a problem that was fixed before anything could be read."""
        self.fixes.add(problem)
        self.report(problem)

    def remark(self, reason: str) -> None:
        """Add what the reply will not have, once."""
        if len(self.remarks) < MAX_PROBLEMS and reason not in self.remarks:
            self.remarks.append(reason)

    @property
    def is_settled(self) -> bool:
        """Whether everything that was read is in the events."""
        return not self._waiting and not self.holds_back

    @property
    def is_started(self) -> bool:
        return self._started

    def start(self, id: str = "", model: str = "", extra: Extra | None = None, form: Form | None = None) -> None:
        """The reply began. A second call changes nothing."""
        if not self._started:
            self._started = True
            self.events.append(Started(id, model, extra, form))

    def open(self, key: Hashable, block: Block) -> None:
        """Begin a block. Its key names it until it ends."""
        self.start()
        self.has_blocks = True
        self._left -= BLOCK_CHARACTERS
        opened = _OpenBlock(key, block)
        if self._current is None:
            self._show(opened)
            return
        if not self._is_implicit(self._current) and not self._is_whole_call(self._current):
            self.report("a block began before the one before it ended; it waits for its turn")
            self._waiting[key] = opened
            return
        self._end(self._current)
        self._show_waiting()
        if self._current is None:
            self._show(opened)
        else:
            self._waiting[key] = opened

    def is_open(self, key: Hashable) -> bool:
        return (self._current is not None and self._current.key == key) or key in self._waiting

    def add(self, key: Hashable, piece: str) -> None:
        """Add text to an open block."""
        current = self._current
        self._left -= len(piece)
        if self._left < 0:
            raise LimitError(
                f"the reply is longer than the limit of {self._limit} (max_bytes)", hint="raise max_bytes of the limits"
            )
        if current is not None and current.key == key:
            current.write(piece)
            if piece and current.delta is not None:
                self.events.append(current.delta(piece))
            return
        waiting = self._waiting.get(key)
        if waiting is None:
            raise KeyError(key)
        waiting.write(piece)

    def add_implicit(self, key: str, piece: str) -> None:
        """Add text (TEXT_KEY) or thinking (THINKING_KEY), in a protocol without marks for the ends of blocks."""
        current = self._current
        if (current is None or current.key != key) and key not in self._waiting:
            if not piece:
                return
            self.open(key, Text("") if key == TEXT_KEY else Thinking())
        self.add(key, piece)

    def update(self, key: Hashable, block: Block) -> None:
        """Replace what is known of an open block, such as its signature. Its text stays."""
        opened = self._find(key)
        if opened is not None:
            opened.block = block

    def block(self, key: Hashable) -> Block | None:
        """What is known of an open block."""
        opened = self._find(key)
        return opened.block if opened is not None else None

    def text_of(self, key: Hashable) -> str:
        """The text of an open block so far."""
        opened = self._find(key)
        return opened.text.getvalue() if opened is not None else ""

    def close(self, key: Hashable, *, cut: bool = False) -> None:
        """End a block."""
        if self._current is not None and self._current.key == key:
            self._end(self._current, cut=cut)
            self._show_waiting()
        elif key in self._waiting:
            self._waiting[key].is_ended = True

    def add_block(self, block: Block) -> None:
        """Add a whole block that has no text of its own."""
        key = object()
        self.open(key, block)
        self.close(key)

    def add_whole_block(self, block: Block, *, cut: bool = False) -> None:
        """Add a whole block: its beginning, its text in one piece, its end. One that was `cut` must not be used."""
        key, text = object(), delta_text(block)[0]
        self.open(key, opening_block(block))
        if text:
            self.add(key, text)
        self.update(key, block)
        self.close(key, cut=cut)

    def add_usage(self, usage: Usage) -> None:
        self.start()
        self.events.append(Used(usage))

    def finish(
        self,
        reason: StopReason | None,
        extra: Extra | None = None,
        form: Form | None = None,
        turn_extra: Extra | None = None,
        turn_form: Form | None = None,
    ) -> None:
        """End the reply. Calls that are not whole were cut, whatever the stop reason."""
        if self.is_over:
            return
        self.start()
        self._end_all(is_cut_off=reason in ("length", "error"))
        stop = derive_stop(reason or "stop", has_calls=self.has_calls)
        if self.has_cut_calls and stop in ("stop", "tool_calls"):
            self.report(UNREPORTED_CUT)
            stop = "length"
        self.is_over = True
        self.events.append(Finished(stop, extra, form, turn_extra, turn_form))

    def fail(self, failure: Failure) -> None:
        """End the reply with a failure. Open blocks were cut."""
        if self.is_over:
            return
        self.start()
        self._end_all(is_cut_off=True)
        self.is_over = self.has_failed = True
        self.events.append(Failed(failure))

    def loses_content(self, data: bytes) -> bool:
        """Whether an event that cannot be read held a part of the reply: it begins like an event that can."""
        return not self.is_end_announced and data.lstrip().startswith((b"{", b"[{"))

    def abandon(self) -> None:
        """The client is gone. Open blocks were cut, and no event ends the reply."""
        if not self.is_over:
            self._end_all(is_cut_off=True)
            self.is_over = self.has_failed = True

    def finish_without_reason(
        self,
        *,
        is_ended: bool,
        closes_blocks: bool = False,
        extra: Extra | None = None,
        form: Form | None = None,
        turn_extra: Extra | None = None,
    ) -> None:
        """End a reply whose stream ended without a stop reason. `extra` is for a reply that is whole anyway.

        In a protocol that closes its blocks (`closes_blocks`), an open block was cut. A call that is not whole was cut
        in any protocol. Unless the provider marked the end of the stream (`is_ended`), the reply was cut.
        """
        if self.is_over:
            return
        current = self._current
        is_cut = current is not None and (
            (closes_blocks and not self._is_whole_call(current))
            or (type(current.block) is ToolCall and not self._is_whole_call(current))
        )
        if is_cut or not self.has_blocks:
            where = "inside a block" if is_cut else "before any content"
            self.fail(Failure("server", f"the stream ended {where}", in_band=True))
            return
        if not is_ended:
            self.fail(CUT_OFF)
            return
        self.report("the stream ended without a stop reason")
        self.finish(None, extra, form, turn_extra)

    # --- order of the events ------------------------------------------------------------------------

    def _find(self, key: Hashable) -> _OpenBlock | None:
        if self._current is not None and self._current.key == key:
            return self._current
        return self._waiting.get(key)

    def _is_implicit(self, opened: _OpenBlock) -> bool:
        return opened.key == TEXT_KEY or opened.key == THINKING_KEY

    def _is_whole_call(self, opened: _OpenBlock) -> bool:
        """Whether a call has all of its arguments, so that nothing of it can follow."""
        if opened.end is None:
            return False
        return self.end_of(opened.key) is not None or (opened.scanned <= _MAX_NULL_LENGTH and _is_null(opened.text))

    def end_of(self, key: Hashable) -> int | None:
        """Where the first JSON value of the arguments ends; None while it is open or has not begun."""
        opened = self._find(key)
        if opened is None or opened.end is None:
            return None
        opened.text.seek(opened.scanned)
        unread = opened.text.read()
        opened.scanned += len(unread)
        return opened.end.look(unread)

    def end_within(self, key: Hashable, piece: str) -> int | None:
        """How much of a piece belongs to the JSON value that is open; None if all of it does, and it stays open.

        That much of the piece must be added next: it counts as scanned.
        """
        if self.end_of(key) is not None:
            return 0
        opened = self._find(key)
        if opened is None or opened.end is None:
            return None
        before = opened.scanned
        end = opened.end.look(piece)
        opened.scanned = before + len(piece) if end is None else end
        return None if end is None else end - before

    def _show(self, opened: _OpenBlock) -> None:
        self._current = opened
        self.events.append(BlockStarted(opened.block))
        text = opened.text.getvalue()
        if text and opened.delta is not None:
            self.events.append(opened.delta(text))

    def _show_waiting(self) -> None:
        """Show the blocks that waited: those that ended meanwhile, and the next one."""
        while self._current is None and self._waiting:
            _, opened = self._waiting.popitem(last=False)
            self._show(opened)
            if opened.is_ended or (self._waiting and (self._is_implicit(opened) or self._is_whole_call(opened))):
                self._end(opened)

    def _end(self, opened: _OpenBlock, *, cut: bool = False) -> None:
        block, text = opened.block, opened.text.getvalue()
        if isinstance(block, ToolCall):
            block = self._build_call(block, text)
            is_open = opened.end is not None and block.arguments is None and not self._is_whole_call(opened)
            cut = cut or (is_open and ends_early(text))
            self.has_calls = self.has_calls or not cut
            self.has_cut_calls = self.has_cut_calls or cut
        elif isinstance(block, Text | Thinking):
            block = replace(block, text=text or block.text)
        elif isinstance(block, Media) and text:
            block = replace(block, data=text)
        self._current = None
        self.events.append(BlockEnded(block, cut))

    def _end_all(self, *, is_cut_off: bool) -> None:
        """End all open blocks. In a reply that was cut off, only calls that have all of their arguments are whole."""
        while self._current is not None:
            self._end(self._current, cut=is_cut_off and not self._is_whole_call(self._current))
            self._show_waiting()
