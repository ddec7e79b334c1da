"""Blocks in the order of the grammar of events, whatever order a provider says them in.

A decoder says what it reads, block by block and piece by piece; blocks may overlap, stay open, or be said in turns.
What comes out is legal: one block at a time. While a block is open, pieces of others wait.

Law: no text is lost or put into another block, and work is in proportion to what was said. What waits is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from io import StringIO
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Extra, Failure, Form, Media, StopReason, Text, Thinking, ToolCall, Usage
from toolglot.conversation.events import (
    CUT_UNSAID,
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
from toolglot.errors import LimitError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.argument_text import ends_early, read_arguments
from toolglot.protocols.fields.stop_reason import derived
from toolglot.protocols.framing.json_end import ObjectEnd

NO_LAST_EVENT: Final = "the stream ended without the event that ends every stream"
NO_LAST_LINE: Final = "the last event lacked the empty line that ends it"
BYTE_ORDER_MARK: Final = "the stream began with a byte order mark, which many clients cannot read"
BESIDE_EVENTS: Final = frozenset({NO_LAST_EVENT, NO_LAST_LINE, BYTE_ORDER_MARK})
"""What is wrong with a stream whose events are all in order: they can be forwarded as they are."""

PARTS_IN_CONTENT: Final = "the content of a chunk is a list of parts"
NO_TYPE: Final = "a call begins without its type"
NO_ARGUMENTS: Final = "a call has no arguments"
STOP_WITH_CALLS: Final = "the finish reason is stop although there are calls"
NO_LAST_ITEMS: Final = "the last response holds none of the items that were streamed"
BEGAN_WITH_INPUT: Final = "a call began with its input"
"""What only some clients cannot read. Mistral's know the first two; a client of another protocol is told of the third
in its own way; some providers end in the fourth when a call was forced (`stream.forced_stop`), and some leave out what
was streamed (`stream.last_items`). Anthropic does the sixth where a server tool calls, and its SDKs read it.
`CUT_UNSAID` is no fault of the form: a client of the same protocol gets such a call as it came, whole or in pieces
(J4)."""

CUT_OFF: Final = Failure(
    "server", "the provider's stream was cut off: it ended without saying that the reply is over", in_band=True
)

BLOCK_CHARACTERS: Final = 64
"""What a block costs beside its text, counted as characters of the limit."""
MOST_TOLD: Final = 50
"""How many oddities of one stream are told."""

SAYING: Final = "text"
THINKING: Final = "thinking"
"""The keys of blocks that a protocol does not open and close: what is said, and what is thought."""

DAMAGED: Final = Failure("server", "an event of the provider's stream is damaged; what it said is lost", in_band=True)
"""Why a stream with a hole fails: what is put together around a hole is not what the model said."""


BuildCall = Callable[[ToolCall, str], ToolCall]
"""What makes the whole call of what was known when it started and of its arguments."""


def call_of_text(call: ToolCall, written: str) -> ToolCall:
    """A call whose arguments are text on the wire. What a free-text call wrote is not looked into."""
    if call.type == "custom":
        return replace(call, raw_input=written)
    arguments, raw, done = read_arguments(written)
    raw = raw if written.strip() else None
    return replace(call, arguments=arguments, raw_input=raw, argument_fixes=done)


def call_of_object(call: ToolCall, written: str) -> ToolCall:
    """A call whose arguments are an object: how it was spelled in pieces says nothing, and nothing is an empty one."""
    if not written.strip() and call.type != "custom":
        return replace(call, arguments={})
    whole = call_of_text(call, written)
    return replace(whole, raw_input=None) if whole.arguments is not None else whole


class _Open:
    """A block that was begun. `text` is what was said of it so far."""

    __slots__ = ("block", "delta", "end", "is_ended", "key", "looked_at", "text", "write")

    def __init__(self, key: Hashable, block: Block) -> None:
        self.key = key
        self.block = block
        self.text = StringIO()
        self.write = self.text.write
        self.is_ended = False
        self.delta = _DELTAS.get(type(block))
        self.end: ObjectEnd | None = ObjectEnd() if type(block) is ToolCall and block.type != "custom" else None
        self.looked_at = 0
        """How much of its text was looked into for the end of its arguments."""


_DELTAS: Final[dict[type, Callable[[str], Event]]] = {
    Text: TextDelta,
    Thinking: ThinkingDelta,
    ToolCall: InputDelta,
    Media: MediaDelta,
}


_LONGEST_NULL: Final = 16
"""How long a text is at most that is looked at for a null."""


def _says_null(text: StringIO) -> bool:
    """Whether arguments are null, as Groq writes those of a call that has none."""
    return text.getvalue().strip() == "null"


class Sequence:
    """The events of one reply. `take` hands over those that are there."""

    def __init__(self, *, build_call: BuildCall = call_of_text, limits: Limits = DEFAULT_LIMITS) -> None:
        self.events: list[Event] = []
        self.told: list[str] = []
        """What the provider did that its protocol does not allow, and what was made of it."""
        self.mended: set[str] = set()
        """What of that had to be fixed before it could be read at all."""
        self.remarks: list[str] = []
        """What is in order and still worth to be known, since the canonical reply does not have it."""
        self.has_calls: bool = False
        self.has_cut_calls: bool = False
        self.has_blocks: bool = False
        self.is_over: bool = False
        self.has_failed: bool = False
        self.holds_back = False
        """Whether a decoder keeps something that it read for later; it sets this itself."""
        self.is_end_said = False
        """Whether the provider has said the end already, where only the end of the bytes makes it one."""
        self._build_call = build_call
        self._left = limits.max_bytes
        self._limit = limits.max_bytes
        self._started = False
        self._current: _Open | None = None
        self._waiting: OrderedDict[Hashable, _Open] = OrderedDict()

    # --- what a decoder says ------------------------------------------------------------------------

    def take(self) -> list[Event]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events

    def tell(self, reason: str) -> None:
        """Note an oddity, once."""
        if len(self.told) < MOST_TOLD and reason not in self.told:
            self.told.append(reason)

    def mend(self, reason: str) -> None:
        """Note what was fixed before something could be read."""
        self.mended.add(reason)
        self.tell(reason)

    def remark(self, reason: str) -> None:
        """Note what the reply will not have, once."""
        if len(self.remarks) < MOST_TOLD and reason not in self.remarks:
            self.remarks.append(reason)

    @property
    def is_settled(self) -> bool:
        """Nothing of what was said waits."""
        return not self._waiting and not self.holds_back

    @property
    def is_started(self) -> bool:
        return self._started

    def start(self, id: str = "", model: str = "", extra: Extra | None = None, form: Form | None = None) -> None:
        """The reply began. A second time says nothing."""
        if not self._started:
            self._started = True
            self.events.append(Started(id, model, extra, form))

    def open(self, key: Hashable, block: Block) -> None:
        """A block began. It is known by its key until it ends."""
        self.start()
        self.has_blocks = True
        self._left -= BLOCK_CHARACTERS
        opened = _Open(key, block)
        if self._current is None:
            self._show(opened)
            return
        if not self._is_implicit(self._current) and not self._is_whole_call(self._current):
            self.tell("a block began before the one before it ended; it waits for its turn")
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
        """More of a block that was begun."""
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

    def say(self, key: str, piece: str) -> None:
        """More text (SAYING) or thinking (THINKING), in a protocol that does not say where blocks begin and end."""
        current = self._current
        if (current is None or current.key != key) and key not in self._waiting:
            if not piece:
                return
            self.open(key, Text("") if key == SAYING else Thinking())
        self.add(key, piece)

    def update(self, key: Hashable, block: Block) -> None:
        """What is known of a block now: its signature, what else it holds. Its text stays what was said."""
        opened = self._of(key)
        if opened is not None:
            opened.block = block

    def block(self, key: Hashable) -> Block | None:
        """What is known of a block that is open."""
        opened = self._of(key)
        return opened.block if opened is not None else None

    def said(self, key: Hashable) -> str:
        """What was said so far of a block that is open."""
        opened = self._of(key)
        return opened.text.getvalue() if opened is not None else ""

    def close(self, key: Hashable, *, cut: bool = False) -> None:
        """A block ended."""
        if self._current is not None and self._current.key == key:
            self._end(self._current, cut=cut)
            self._show_waiting()
        elif key in self._waiting:
            self._waiting[key].is_ended = True

    def whole(self, block: Block) -> None:
        """A block that comes at once, and has no text of its own."""
        key = object()
        self.open(key, block)
        self.close(key)

    def used(self, usage: Usage) -> None:
        self.start()
        self.events.append(Used(usage))

    def finish(
        self,
        said: StopReason | None,
        extra: Extra | None = None,
        form: Form | None = None,
        turn_extra: Extra | None = None,
        turn_form: Form | None = None,
    ) -> None:
        """The reply is over. Calls that are not whole were cut, whatever the provider says."""
        if self.is_over:
            return
        self.start()
        self._end_all(is_cut_off=said in ("length", "error"))
        stop = derived(said or "stop", has_calls=self.has_calls)
        if self.has_cut_calls and stop in ("stop", "tool_calls"):
            self.tell(CUT_UNSAID)
            stop = "length"
        self.is_over = True
        self.events.append(Finished(stop, extra, form, turn_extra, turn_form))

    def fail(self, failure: Failure) -> None:
        """The reply broke off. What is open was cut."""
        if self.is_over:
            return
        self.start()
        self._end_all(is_cut_off=True)
        self.is_over = self.has_failed = True
        self.events.append(Failed(failure))

    def has_hole(self, data: bytes) -> bool:
        """Whether an event that cannot be read was to say something of the reply: it begins as those do that can."""
        return not self.is_end_said and data.lstrip().startswith((b"{", b"[{"))

    def abandon(self) -> None:
        """Nobody listens any more. What is open was cut; there is no end to tell."""
        if not self.is_over:
            self._end_all(is_cut_off=True)
            self.is_over = self.has_failed = True

    def finish_unsaid(
        self,
        *,
        is_ended: bool,
        closes_blocks: bool = False,
        extra: Extra | None = None,
        form: Form | None = None,
        turn_extra: Extra | None = None,
    ) -> None:
        """The bytes ended, and no word why the reply did. `extra` is for a reply that is whole all the same.

        In a protocol that closes its blocks, one that is open was cut. A call that is not whole was cut in any. Where
        the provider did not say that the stream is over (`is_ended`), the reply was cut wherever it ended.
        """
        if self.is_over:
            return
        current = self._current
        is_cut = current is not None and (
            (closes_blocks and not self._is_whole_call(current))
            or (type(current.block) is ToolCall and not self._is_whole_call(current))
        )
        if is_cut or not self.has_blocks:
            what = "inside a block" if is_cut else "before the model said anything"
            self.fail(Failure("server", f"the stream ended {what}", in_band=True))
            return
        if not is_ended:
            self.fail(CUT_OFF)
            return
        self.tell("the stream ended without saying why")
        self.finish(None, extra, form, turn_extra)

    # --- how it comes out ---------------------------------------------------------------------------

    def _of(self, key: Hashable) -> _Open | None:
        if self._current is not None and self._current.key == key:
            return self._current
        return self._waiting.get(key)

    def _is_implicit(self, opened: _Open) -> bool:
        return opened.key == SAYING or opened.key == THINKING

    def _is_whole_call(self, opened: _Open) -> bool:
        """Whether a call has all of its arguments, so that nothing of it can follow."""
        if opened.end is None:
            return False
        return self.end_of(opened.key) is not None or (opened.looked_at <= _LONGEST_NULL and _says_null(opened.text))

    def end_of(self, key: Hashable) -> int | None:
        """Where the first JSON value ends in the arguments said so far; None while it is open, or not begun."""
        opened = self._of(key)
        if opened is None or opened.end is None:
            return None
        opened.text.seek(opened.looked_at)
        unseen = opened.text.read()
        opened.looked_at += len(unseen)
        return opened.end.look(unseen)

    def end_within(self, key: Hashable, piece: str) -> int | None:
        """How much of a piece belongs to the JSON value that is open; None if all of it does, and it stays open.

        That much of the piece is to be added next: it counts as looked into.
        """
        if self.end_of(key) is not None:
            return 0
        opened = self._of(key)
        if opened is None or opened.end is None:
            return None
        before = opened.looked_at
        end = opened.end.look(piece)
        opened.looked_at = before + len(piece) if end is None else end
        return None if end is None else end - before

    def _show(self, opened: _Open) -> None:
        self._current = opened
        self.events.append(BlockStarted(opened.block))
        text = opened.text.getvalue()
        if text and opened.delta is not None:
            self.events.append(opened.delta(text))

    def _show_waiting(self) -> None:
        """The blocks whose turn it is: those that ended while they waited, and the next."""
        while self._current is None and self._waiting:
            _, opened = self._waiting.popitem(last=False)
            self._show(opened)
            if opened.is_ended or (self._waiting and (self._is_implicit(opened) or self._is_whole_call(opened))):
                self._end(opened)

    def _end(self, opened: _Open, *, cut: bool = False) -> None:
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
        """End whatever is open. Where the reply was cut off, only calls that have all of their arguments are whole."""
        while self._current is not None:
            self._end(self._current, cut=is_cut_off and not self._is_whole_call(self._current))
            self._show_waiting()
