"""Calls in the text of a reply: from the events of the provider to those for the client.

A reply with calls in its text becomes one with real calls. Text without calls passes through as the same events.
Thinking is not searched: calls there are drafts.

A thought that is never closed ends at the first call in it, unless the provider reports that the reply was cut off:
then the call may have been a draft, and stays thinking.

A call never appears twice: a reply that has native calls is not searched. That is known at its end only, so calls that
were found wait until then; if a native call comes, the text stays text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Block, Form, Reply, StopReason, Text, Thinking, ToolCall
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    Started,
    TextDelta,
    ThinkingDelta,
)
from toolglot.conversation.reply_events import opening_block
from toolglot.dialects.offered_tools import Tools, tool_list, tool_schemas
from toolglot.dialects.text_stream import TextToolStream, Unoffered

_ENDED: Final = frozenset({None, "stop", "tool_calls"})
"""Stop reasons of a reply that the provider considers complete, or gives no reason for."""


class _Draft(NamedTuple):
    """The waiting events that are a draft, its text, and the dialects of its calls."""

    start: int
    end: int
    text: str
    found: tuple[str, ...]


class CallsInText:
    """Reads the text of a reply while it arrives.

    turns_before: how many turns came before. It goes into the ids, since not every provider gives its replies one.
    unoffered: how a call of a tool that was not offered is read: as a `call`, or as `text`.
    """

    def __init__(
        self,
        *,
        dialect: str = "auto",
        tools: Tools = (),
        model: str = "",
        turns_before: int = 0,
        unoffered: Unoffered = "call",
    ) -> None:
        self._dialect = dialect
        self._unoffered = unoffered
        self._tools = tool_list(tools)
        tool_schemas(self._tools)
        self._model = model
        self._turns_before = turns_before
        self._id = ""
        self._blocks = 0
        self._stream: TextToolStream | None = None
        self._start: BlockStarted | None = None
        """The event that starts the current text, if it was not passed on yet."""
        self._is_silent = True
        """Whether the current text has produced no event so far."""
        self.has_thoughts: bool = False
        """Whether thinking was found in the text."""
        self._has_calls = False
        self._has_cut = False
        self._found: list[str] = []
        self._dropped: list[str] = []
        self._own: Text | None = None
        """The provider's fields and form of the text, until a piece of it carries them."""
        self._is_described = False
        self._has_own_calls = False
        self._raw: list[str] = []
        """The current text, as it came."""
        self._emitted: list[str] = []
        """What was passed on of it."""
        self._waiting: list[Event] | None = None
        """The events from the first call on; None if no call was found."""
        self._beside: list[Event] = []
        """The provider's other events meanwhile."""
        self._drafts: list[_Draft] = []
        """Waiting calls that ended a thought that was never closed."""

    @property
    def is_settled(self) -> bool:
        """Whether no text is held back."""
        if self._waiting is not None:
            return False
        return self._stream is None or (self._stream.is_settled and (self._start is None or not self._is_silent))

    @property
    def found(self) -> tuple[str, ...]:
        """The dialects of the calls that were found so far, each once."""
        current = self._stream.found if self._stream is not None else ()
        return tuple(dict.fromkeys((*self._found, *current)))

    @property
    def dropped(self) -> tuple[str, ...]:
        """The marks that were dropped so far because they mean nothing, each once."""
        current = self._stream.dropped if self._stream is not None else ()
        return tuple(dict.fromkeys((*self._dropped, *current)))

    def stop(self, reported: StopReason | None) -> StopReason | None:
        """The stop reason, considering the calls in the text. A reply that ends inside a call was cut."""
        if reported not in _ENDED or not (self._has_calls or self._has_cut):
            return reported
        return "length" if self._has_cut else "tool_calls"

    def feed(self, events: list[Event]) -> list[Event]:
        """The events with the calls that were found in their texts."""
        passed: list[Event] = []
        for event in events:
            stream = self._stream
            if stream is not None and type(event) is TextDelta:
                self._raw.append(event.text)
                self._pass(stream.feed(event.text), event, passed)
            elif stream is not None and isinstance(event, BlockEnded):
                self._end(stream, event, passed)
            elif isinstance(event, BlockStarted) and isinstance(event.block, Text) and not self._has_own_calls:
                if self._waiting is None:
                    self._raw, self._emitted = [], []
                self._start, self._is_silent = event, True
                self._own, self._is_described = event.block, False
                self._stream = self._new_stream()
            else:
                self._pass_other(event, passed)
        return passed

    def _pass_other(self, event: Event, passed: list[Event]) -> None:
        """Pass on an event that is not text. A native call, or the end, decides about the waiting calls."""
        is_own_call = _is_call_start(event)
        self._has_own_calls = self._has_own_calls or is_own_call
        waiting = self._waiting
        if waiting is not None and (is_own_call or isinstance(event, Finished | Failed)):
            if is_own_call:
                passed += self._take_back()
            elif self._drafts and not (isinstance(event, Finished) and event.stop in _ENDED):
                passed += self._as_thoughts(waiting)
            else:
                passed += waiting
            self._waiting, self._beside, self._drafts = None, [], []
        elif waiting is not None:
            waiting.append(event)
            self._beside.append(event)
            return
        passed.append(self._other(event))

    def _take_back(self) -> list[Event]:
        """The text in which calls were found, as text, and the other events."""
        self._found, self._has_calls, self._has_cut = [], False, False
        raw, position = "".join(self._raw), 0
        for piece in self._emitted:
            position = max(raw.find(piece, position), position) + len(piece)
        rest = Text(raw[position:])
        return [BlockStarted(Text("")), TextDelta(rest.text), BlockEnded(rest), *self._beside]

    def _as_thoughts(self, waiting: list[Event]) -> list[Event]:
        """The waiting events, with drafts as thinking: the reply was cut off inside them."""
        kept: list[Event] = []
        position = 0
        for draft in self._drafts:
            thought = Thinking(draft.text)
            kept += [*waiting[position : draft.start], BlockStarted(Thinking()), ThinkingDelta(draft.text)]
            kept.append(BlockEnded(thought))
            position = draft.end
            for dialect in draft.found:
                self._found.remove(dialect)
        kept += waiting[position:]
        ended = [event for event in kept if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
        self._has_calls = any(not event.cut for event in ended)
        self._has_cut = any(event.cut for event in ended)
        return kept

    def _new_stream(self) -> TextToolStream:
        number, self._blocks = self._blocks, self._blocks + 1
        ids = f"{self._id}|{self._turns_before}|{number}"
        return TextToolStream(
            dialect=self._dialect, tools=self._tools, model=self._model, ids=ids, unoffered=self._unoffered
        )

    def _end(self, stream: TextToolStream, event: BlockEnded, passed: list[Event]) -> None:
        """End a text. An empty one is passed on as it is."""
        known = len(stream.found)
        found = stream.finish()
        self._found += stream.found
        self._dropped += stream.dropped
        self._stream = None
        if not found and self._start is not None and self._is_silent:
            (passed if self._waiting is None else self._waiting).append(self._start)
            found = [event]
        start = len(self._waiting or ())
        self._pass(found, event, passed)
        self._start = None
        waiting = self._waiting
        if stream.draft and waiting is not None:
            calls = (at for at in range(start, len(waiting)) if _is_call_start(waiting[at]))
            first = next(calls, None)
            if first is not None:
                self._drafts.append(_Draft(first, len(waiting), stream.draft, tuple(stream.found[known:])))

    def _pass(self, found: list[Event], original: Event, passed: list[Event]) -> None:
        """Pass on what was found, as the provider's own event where that is the same."""
        self._is_silent = self._is_silent and not found
        for event in found:
            if self._waiting is None and _is_call_start(event):
                self._waiting = []
            passed = passed if self._waiting is None else self._waiting
            if isinstance(event, TextDelta | ThinkingDelta) and self._waiting is None:
                self._emitted.append(event.text)
            if isinstance(event, BlockStarted):
                self.has_thoughts = self.has_thoughts or isinstance(event.block, Thinking)
                if isinstance(event.block, Text) and self._start is not None:
                    passed.append(self._start)
                    self._start = None
                    continue
            if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall):
                self._has_calls = self._has_calls or not event.cut
                self._has_cut = self._has_cut or event.cut
            passed.append(original if _is_same(event, original) else self._with_extra(event, original))

    def _with_extra(self, event: Event, original: Event) -> Event:
        """Put the provider's fields of a text on the first piece of it that ends once they are known."""
        if not isinstance(event, BlockEnded) or not isinstance(event.block, Text):
            return event
        own, self._own = self._own, None
        if (own is None or not _is_described(own)) and not self._is_described:
            own = original.block if isinstance(original, BlockEnded) and isinstance(original.block, Text) else None
        if own is None or not _is_described(own):
            return event
        self._is_described = True
        return replace(event, block=replace(event.block, extra=own.extra, form=own.form, is_refusal=own.is_refusal))

    def _other(self, event: Event) -> Event:
        if isinstance(event, Started):
            self._id = event.id
        elif isinstance(event, Finished):
            stop = self.stop(event.stop)
            if stop is not None and stop != event.stop:
                return replace(event, stop=stop, form=_form_without_stop(event.form))
        return event


def _form_without_stop(form: Form | None) -> Form | None:
    """The form without the provider's own stop reason, which ignores the calls in the text."""
    return form.without_stop_text() if form is not None else None


def _is_described(text: Text) -> bool:
    """Whether something is known of a text besides its words."""
    return text.extra is not None or text.form is not None


def _is_call_start(event: Event) -> bool:
    return isinstance(event, BlockStarted) and isinstance(event.block, ToolCall)


def _is_same(event: Event, original: Event) -> bool:
    if isinstance(event, TextDelta) and isinstance(original, TextDelta):
        return event.text == original.text
    return (
        isinstance(event, BlockEnded)
        and isinstance(original, BlockEnded)
        and isinstance(event.block, Text)
        and isinstance(original.block, Text)
        and event.block.text == original.block.text
    )


def _texts(blocks: list[Block]) -> str:
    return "".join([block.text for block in blocks if isinstance(block, Text)])


_LONE_END: Final = re.compile(r"</think>(?=[ \t]*(?:[\r\n]|\Z|<))")
"""The end of thinking as models write it, not as people write about it."""


def with_leading_thought(reply: Reply) -> Reply:
    """A whole reply whose text begins inside thinking that the prompt opened: what comes before its end is thinking. A
    stream has passed that text on before this is known."""
    first = reply.turn.blocks[0] if reply.turn.blocks else None
    if not isinstance(first, Text) or not (end := _LONE_END.search(first.text)):
        return reply
    thought, rest = first.text[: end.start()], first.text[end.end() :].lstrip()
    if "<think>" in thought or not thought.strip() or "</think>" in rest:
        return reply
    if not rest and not reply.turn.calls:
        return reply  # the mark is all that follows
    left = (replace(first, text=rest),) if rest else ()
    return replace(reply, turn=replace(reply.turn, blocks=(Thinking(thought.strip()), *left, *reply.turn.blocks[1:])))


def with_calls(reply: Reply, reader: CallsInText) -> Reply:
    """A whole reply with the calls in its texts; the same reply if there are none."""
    if not any(isinstance(block, Text) for block in reply.turn.blocks):
        return reply
    events: list[Event] = [Started(reply.id)]
    for block in reply.turn.blocks:
        if isinstance(block, Text):
            events += (
                BlockStarted(opening_block(block)),
                TextDelta(block.text),
                BlockEnded(block),
            )
        else:
            events += (BlockStarted(block), BlockEnded(block))
    events.append(Finished(reply.stop or "stop"))
    blocks: list[Block] = [event.block for event in reader.feed(events) if isinstance(event, BlockEnded)]
    if reply.turn.calls and not reader.found and _texts(blocks) == reply.turn.text:
        return reply
    if tuple(blocks) == reply.turn.blocks:
        return reply
    stop = reader.stop(reply.stop)
    turn = replace(reply.turn, blocks=tuple(blocks))
    if stop == reply.stop:
        return replace(reply, turn=turn)
    return replace(reply, turn=turn, stop=stop, form=_form_without_stop(reply.form))
