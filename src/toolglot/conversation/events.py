"""The events of a streamed reply, whatever its protocol.

    Started  ( BlockStarted  Delta*  BlockEnded | Used )*  ( Finished | Failed )

Law: blocks open one at a time, and each one ends before the next starts, whatever the provider did; there is one
`Finished` or `Failed`, and nothing after it. `BlockEnded` holds the whole block, so that a reader that needs only that
can skip the deltas; the deltas of a block, joined, are its text. A block that was `cut` is not whole: a call that was
cut is never run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from toolglot.conversation.forms import Form
from toolglot.conversation.values import (
    Block,
    Extra,
    Failure,
    MalformedCall,
    Reply,
    StopReason,
    ToolCall,
    Turn,
    Usage,
)

UNREPORTED_CUT: Final = "the reply was cut off inside a tool call, but its stop reason does not say so"
"""The reason of a report entry about a reply whose last call is incomplete despite its stop reason."""


class EventValue(Struct, frozen=True, gc=False):
    """One event of a reply. Events hold values only, so the garbage collector need not look at them."""


class Started(EventValue, frozen=True):
    """The reply began."""

    id: str = ""
    model: str = ""
    extra: Extra | None = None
    """Fields of the reply as a whole that toolglot does not know."""
    form: Form | None = None
    """How its protocol wrote the reply."""


class BlockStarted(EventValue, frozen=True):
    """A block began. Holds what is known of it now; its text, arguments or data follow."""

    block: Block


class TextDelta(EventValue, frozen=True):
    text: str


class ThinkingDelta(EventValue, frozen=True):
    text: str


class InputDelta(EventValue, frozen=True):
    """More of a call's arguments, as JSON text; of a free-text call, more of its text."""

    text: str


class MediaDelta(EventValue, frozen=True):
    """More of inline media, as base64 that continues what came before."""

    data: str


class BlockEnded(EventValue, frozen=True):
    """A block is over."""

    block: Block
    """The whole of it, its text, arguments and signature included."""
    cut: bool = False
    """It ended before it was whole."""


class Used(EventValue, frozen=True):
    """What the reply costs, as far as it is known now. A later one replaces an earlier one."""

    usage: Usage


class Finished(EventValue, frozen=True):
    """The model is done."""

    stop: StopReason
    """Derived from the calls that came; one that was cut does not count."""
    extra: Extra | None = None
    """Unknown fields of the reply as a whole that came at the end. They override those of `Started`."""
    form: Form | None = None
    """How its protocol wrote the reply; replaces the form of `Started`."""
    turn_extra: Extra | None = None
    """Fields of the message beside its blocks that toolglot does not know."""
    turn_form: Form | None = None
    """How its protocol wrote the message."""
    malformed: MalformedCall | None = None
    """The call that could not be read, for a client whose protocol has a stop reason for that."""


class Failed(EventValue, frozen=True):
    """The reply broke off, for this reason."""

    failure: Failure


Delta = TextDelta | ThinkingDelta | InputDelta | MediaDelta
Event = Started | BlockStarted | Delta | BlockEnded | Used | Finished | Failed


class Accumulator:
    """The reply that a stream adds up to.

    accumulator.add(events)
    accumulator.reply     # complete once it has a stop reason
    accumulator.failure   # why it broke off
    """

    def __init__(self) -> None:
        self._started = Started()
        self._blocks: list[Block] = []
        self.cut_indices: set[int] = set()
        """The indices of the blocks that ended before they were whole."""
        self._usage: Usage | None = None
        self._finished: Finished | None = None
        self.failure: Failure | None = None
        """Why the reply broke off."""

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is InputDelta or kind is ThinkingDelta:
                continue
            if isinstance(event, BlockEnded):
                self._end(event)
            elif isinstance(event, Used):
                self._usage = event.usage
            elif isinstance(event, Started):
                self._started = event
            elif isinstance(event, Finished):
                self._finished = event
            elif isinstance(event, Failed):
                self.failure = event.failure

    def _end(self, event: BlockEnded) -> None:
        if event.cut:
            self.cut_indices.add(len(self._blocks))
        self._blocks.append(event.block)

    @property
    def is_over(self) -> bool:
        """Whether the model is done, or the reply broke off."""
        return self._finished is not None or self.failure is not None

    @property
    def cut(self) -> tuple[Block, ...]:
        """The blocks that ended before they were whole. They are in the reply too, as far as they came."""
        return tuple(self._blocks[index] for index in sorted(self.cut_indices))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are whole."""
        return tuple(
            [
                block
                for index, block in enumerate(self._blocks)
                if isinstance(block, ToolCall) and index not in self.cut_indices
            ]
        )

    @property
    def reply(self) -> Reply:
        """The reply so far. Its stop reason is None while the model is not done."""
        started, finished = self._started, self._finished
        late = finished.extra if finished is not None else None
        return Reply(
            Turn(
                "assistant",
                tuple(self._blocks),
                extra=finished.turn_extra if finished is not None else None,
                form=finished.turn_form if finished is not None else None,
            ),
            finished.stop if finished is not None else None,
            self._usage,
            started.id,
            started.model,
            _merge_extra(started.extra, late),
            started.form if finished is None or finished.form is None else finished.form,
            finished.malformed if finished is not None else None,
        )


def _merge_extra(early: Extra | None, late: Extra | None) -> Extra | None:
    if early is None or late is None:
        return early if late is None else late
    return {**early, **{protocol: {**early.get(protocol, {}), **fields} for protocol, fields in late.items()}}
