"""Messages of Chat Completions without content: which of them are malformed, and how others become an empty text."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Text, Turn
from toolglot.protocols.openai_chat.form import MESSAGES, PROTOCOL, ChatMessage

_OTHER_CONTENT: Final = ("audio", "reasoning_details")
"""Content of an assistant besides its blocks."""


def lacks_content(turn: Turn) -> bool:
    """Whether a turn without blocks lacks required content. An empty list of parts and an empty assistant message are
    for the target to judge."""
    return turn.role != "assistant" and not _is_list(turn)


def with_empty_texts(conversation: Conversation) -> Conversation:
    """The conversation with an empty text in each empty turn; the same object if there is none."""
    empty = [number for number, turn in enumerate(conversation.turns) if not turn.blocks and _is_empty(turn)]
    if not empty:
        return conversation
    turns = list(conversation.turns)
    for number in empty:
        turn = turns[number]
        form = replace(turn.form, content="text") if type(turn.form) is ChatMessage else MESSAGES["text"]
        turns[number] = replace(turn, blocks=(Text(""),), form=form)
    return replace(conversation, turns=tuple(turns))


def _is_empty(turn: Turn) -> bool:
    own = (turn.extra or {}).get(PROTOCOL, {})
    return _is_list(turn) or (turn.role == "assistant" and not any(own.get(key) for key in _OTHER_CONTENT))


def _is_list(turn: Turn) -> bool:
    return type(turn.form) is ChatMessage and turn.form.content == "parts"
