"""The grammar of canonical events, as a check that every stream test can make."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block, Media, Text, Thinking, ToolCall
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
from toolglot.conversation.reply_events import input_text

_DELTAS = {TextDelta: Text, ThinkingDelta: Thinking, InputDelta: ToolCall, MediaDelta: Media}


def check(events: Iterable[Event], *, is_over: bool = True) -> None:
    """Fail where the events are not what the grammar allows."""
    listed = list(events)
    if not listed and not is_over:
        return
    assert isinstance(listed[0], Started), listed[:1]
    opened: Block | None = None
    pieces: list[str] = []
    for position, event in enumerate(listed[1:], 1):
        assert not isinstance(event, Started), f"a second start at {position}"
        if isinstance(event, BlockStarted):
            assert opened is None, f"a block started inside another at {position}"
            opened, pieces = event.block, []
        elif type(event) in _DELTAS:
            assert type(opened) is _DELTAS[type(event)], f"{event} at {position} inside {opened}"
            pieces.append(event.data if isinstance(event, MediaDelta) else event.text)
        elif isinstance(event, BlockEnded):
            assert type(event.block) is type(opened), f"{event.block} ended, {opened} was open"
            _check_whole(event, "".join(pieces))
            opened = None
        elif isinstance(event, Finished | Failed):
            assert opened is None, f"the end came inside {opened}"
            assert position == len(listed) - 1, f"something follows the end at {position}"
    if is_over:
        assert isinstance(listed[-1], Finished | Failed), listed[-1]


def _check_whole(event: BlockEnded, streamed: str) -> None:
    block = event.block
    if isinstance(block, Text | Thinking):
        assert streamed == block.text
    elif isinstance(block, ToolCall):
        assert streamed.strip() == "" or streamed == input_text(block) or block.arguments is not None
        assert event.cut or block.arguments is not None or block.type == "custom" or block.raw_input is not None
    elif isinstance(block, Media) and streamed:
        assert streamed == block.data
