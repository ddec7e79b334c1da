"""Messages of Chat Completions without content: what they lack, and how they say nothing where that is refused."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Text, Turn
from toolglot.protocols.openai_chat.form import MESSAGES, PROTOCOL, ChatMessage

_BESIDE: Final = ("audio", "reasoning_details")
"""What an assistant may say beside its content that is no block."""


def lacks_content(turn: Turn) -> bool:
    """Whether a turn without blocks lacks what its message must have. Content without parts, and an assistant that
    says nothing, are for the target to judge."""
    return turn.role != "assistant" and not _is_list(turn)


def with_empty_texts(conversation: Conversation) -> Conversation:
    """The conversation with an empty text in each turn that says nothing; itself where there is none."""
    silent = [number for number, turn in enumerate(conversation.turns) if not turn.blocks and _says_nothing(turn)]
    if not silent:
        return conversation
    turns = list(conversation.turns)
    for number in silent:
        turn = turns[number]
        form = replace(turn.form, content="text") if type(turn.form) is ChatMessage else MESSAGES["text"]
        turns[number] = replace(turn, blocks=(Text(""),), form=form)
    return replace(conversation, turns=tuple(turns))


def _says_nothing(turn: Turn) -> bool:
    own = (turn.extra or {}).get(PROTOCOL, {})
    return _is_list(turn) or (turn.role == "assistant" and not any(own.get(key) for key in _BESIDE))


def _is_list(turn: Turn) -> bool:
    return type(turn.form) is ChatMessage and turn.form.content == "parts"
