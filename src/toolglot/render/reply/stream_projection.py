"""A streamed reply with the client's tool names, ids and arguments.

Does event by event what `reply_projection.py` does with a whole reply. Deltas are passed on unchanged, and calls too,
unless something about a call is known only when it is complete; then it is held back until then. A call starts with its
first argument, because one that was cut off before that must not look like one without arguments. For a client of
another protocol, text and thinking start with their first characters: it gets no empty blocks.

Law: the grammar of events stays; an event that needs no change is passed on as the same object.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Block, StopReason, Text, Thinking, ToolCall
from toolglot.conversation.events import (
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
)
from toolglot.conversation.reply_events import of_block
from toolglot.profiles import Profile
from toolglot.render.context import RenderContext
from toolglot.render.rendering import Rendered
from toolglot.render.reply.reply_projection import (
    AS_IT_CAME,
    CUT_REASONS,
    NOT_SHOWN,
    NOT_WHOLE,
    ReplyProjection,
    text_for_call,
    without_stop_text,
)

_CUT_WORDS: Final = frozenset({"length", "max_tokens", "model_length", "MAX_TOKENS", "incomplete"})
_DELTAS: Final = frozenset({TextDelta, ThinkingDelta, InputDelta, MediaDelta})


class _Held(NamedTuple):
    """A call that ended, and what of it the client has not seen."""

    opened: ToolCall | None
    call: ToolCall
    event: BlockEnded
    pending: list[Event]


class StreamProjection:
    """The events of one reply for the client."""

    def __init__(
        self,
        source: Profile,
        target: Profile,
        request: Rendered | None,
        ctx: RenderContext,
        *,
        whole_calls: bool = False,
        reply_id: str = "",
        reply_model: str = "",
    ) -> None:
        self._projection = ReplyProjection(source, target, request, ctx, reply_id, reply_model)
        self._whole_calls = whole_calls
        self._opened: ToolCall | None = None
        """The call that is open and shown, as the client knows it."""
        self._is_kept = False
        """Whether the open block is held back until it is complete."""
        self._pending: list[Event] = []
        """The start of a block that is blank so far, and its blank text."""
        self._held: _Held | None = None
        """The last call, until what follows shows whether it was cut off."""
        self._showed_unreadable = False
        self._is_failing = False
        """Whether the events that are passed on end with a failure: nothing else is reported then."""
        self._is_not_object = False
        """Whether the open call does not begin as an object, so that nothing of it is shown before its end."""
        self.signatures = 0
        """How many blocks had something that only the model's provider can read, and that the client does not get."""

    def are_plain_deltas(self, events: list[Event]) -> bool:
        """Whether all events are deltas of a block that is shown, so that nothing has to be done."""
        if self._is_kept or self._pending:
            return False
        for event in events:  # noqa: SIM110 - a generator would cost more than all the rest
            if type(event) not in _DELTAS:
                return False
        return True

    def pass_on(self, events: list[Event]) -> list[Event]:
        """The events for the client."""
        passed: list[Event] = []
        self._is_failing = bool(events) and isinstance(events[-1], Failed)
        for event in events:
            if type(event) in _DELTAS:
                self._pass_delta(event, passed)
            elif isinstance(event, BlockStarted):
                self._release(passed)
                self._start_block(event, passed)
            elif isinstance(event, BlockEnded):
                self._end_block(event, passed)
            elif isinstance(event, Started):
                id, model = self._projection.begin(event.id, event.model)
                is_same = id == event.id and model == event.model
                passed.append(event if is_same else replace(event, id=id, model=model))
            elif isinstance(event, Finished):
                self._finish(event, passed)
            else:
                if isinstance(event, Failed):
                    self._release(passed)
                    self._projection.report_rest(None)
                passed.append(event)
        return passed

    @property
    def is_settled(self) -> bool:
        """Whether nothing is held back."""
        return not self._is_kept and not self._pending and self._held is None

    def _pass_delta(self, event: Event, passed: list[Event]) -> None:
        if self._is_kept or self._is_not_object:
            return
        if self._pending:
            self._pending.append(event)
            if isinstance(event, InputDelta):
                begun = event.text.lstrip()
                if not begun:
                    return
                if begun[0] != "{" and self._opened is not None and self._projection.needs_object(self._opened):
                    self._is_not_object = True  # not an object, or one in a string: known only when it is complete
                    return
            self._pass_start(passed)
        else:
            passed.append(event)

    def _pass_start(self, passed: list[Event]) -> None:
        passed += self._pending
        self._pending = []

    def _start_block(self, event: BlockStarted, passed: list[Event]) -> None:
        block = event.block
        if isinstance(block, ToolCall):
            if self._whole_calls or self._projection.must_be_whole(block):
                self._is_kept = True
                return
            self._opened = self._projection.open_call(block)
            event = event if self._opened is block else BlockStarted(self._opened)
        elif self._projection.is_foreign:
            block = self._projection.readable_block(block)
            event = event if block is event.block else BlockStarted(block)
        self._pending = [event]
        if not (isinstance(block, ToolCall) or (self._projection.is_foreign and isinstance(block, Text | Thinking))):
            self._pass_start(passed)

    def _end_block(self, event: BlockEnded, passed: list[Event]) -> None:
        block = self._projection.readable_block(event.block)
        if block is not event.block:
            self.signatures += 1
            event = replace(event, block=block)
        if isinstance(block, ToolCall):
            self._held = _Held(self._opened, block, event, self._pending)
            self._opened, self._is_kept = None, False
            if event.cut or block.arguments != {} or not self._projection.may_be_cut(block):
                self._release(passed)
            else:
                self._pending = []
            return
        if self._pending and self._projection.is_empty_block(block):
            self._pending = []
            return
        if self._pending:
            self._pass_start(passed)
        passed.append(event)

    def _release(self, passed: list[Event], stop: StopReason | None = None) -> None:
        """End a call, now that it is known what follows it: more of the reply, or the stop reason."""
        held, self._held = self._held, None
        if held is None:
            return
        self._pending = held.pending
        event = replace(held.event, cut=True) if stop in CUT_REASONS else held.event
        if held.opened is not None:
            self._end_call(held.opened, held.call, event, passed)
        else:
            self._pass_held_call(held.call, event, passed)

    def _end_call(self, opened: ToolCall, whole: ToolCall, event: BlockEnded, passed: list[Event]) -> None:
        """End a call that was passed on from its start."""
        if self._is_not_object:
            self._is_not_object, self._pending = False, []
            block_for_client = self._projection.unshown_call(opened, whole, cut=event.cut)
            is_cut_call = event.cut and isinstance(block_for_client, ToolCall)
            self._showed_unreadable = self._showed_unreadable or is_cut_call
            self._pass_block(block_for_client, passed, cut=is_cut_call)
            return
        if self._pending and self._projection.is_foreign:
            if self._is_cut(whole, event):  # without any arguments it would look like one that has none
                self._pending = []
                named = replace(whole, id=opened.id, name=opened.name, namespace=opened.namespace)
                self._projection.report_unreadable(named, NOT_SHOWN, cut=True)
                return
            event = replace(event, cut=False) if event.cut else event
        if self._pending:
            self._pass_start(passed)
        shown = self._end_shown_call(opened, whole, event)
        passed.append(shown)
        if shown.cut and not event.cut and self._projection.is_foreign and isinstance(shown.block, ToolCall):
            self._pass_block(text_for_call(shown.block), passed)

    def _is_cut(self, call: ToolCall, event: BlockEnded) -> bool:
        """Whether a call in which the reply ended may not be run. A call with blank arguments may need none."""
        if not event.cut or self._is_failing or not self._projection.is_foreign or call.arguments != {}:
            return event.cut
        return self._projection.may_be_cut(call, came_blank=True)

    def _pass_held_call(self, call: ToolCall, event: BlockEnded, passed: list[Event]) -> None:
        """Pass on a call that was held back until it was complete."""
        self._pass_block(self._projection.call(call, cut=self._is_cut(call, event)), passed)

    def _pass_block(self, block: Block | None, passed: list[Event], *, cut: bool = False) -> None:
        if block is not None:
            passed += of_block(block, piece=1 << 24, cut=cut)

    def _end_shown_call(self, opened: ToolCall, whole: ToolCall, event: BlockEnded) -> BlockEnded:
        """The end of a call whose pieces the client has seen. A call that cannot be run ends as cut."""
        is_unreadable = whole.type == "function" and whole.arguments is None and bool((whole.raw_input or "").strip())
        if event.cut or is_unreadable:
            named = replace(whole, id=opened.id, name=opened.name, namespace=opened.namespace)
            if event.cut or not self._projection.writes_text:
                self._projection.report_unreadable(named, NOT_WHOLE, cut=event.cut)
                self._showed_unreadable = True
                return BlockEnded(named, True)
            self._projection.report_unreadable(named, AS_IT_CAME)
        call = self._projection.close_call(opened, whole)
        return event if call is whole else replace(event, block=call)

    def _finish(self, event: Finished, passed: list[Event]) -> None:
        self._release(passed, event.stop)
        self._projection.report_rest(event.stop if _says_cut(event) else None)
        stop = self._stop(event.stop)
        malformed = self._projection.malformed
        if stop == event.stop:
            passed.append(event if malformed is None else replace(event, malformed=malformed))
            return
        form = without_stop_text(event.form)
        passed.append(replace(event, stop=stop, form=form, malformed=malformed or event.malformed))

    def _stop(self, original: StopReason) -> StopReason:
        """The stop reason. If a call that cannot be run was shown, the reply was cut short."""
        stop = self._projection.stop(original) or original
        return "length" if self._showed_unreadable and stop in ("stop", "tool_calls") else stop


def _says_cut(finished: Finished) -> bool:
    """Whether the provider itself says that the reply was cut off, and not only our reader."""
    return finished.form is not None and finished.form.stop_text in _CUT_WORDS
