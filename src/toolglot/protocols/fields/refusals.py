"""Text with which a model refuses, whichever of OpenAI's protocols it came in.

It is text, so that every client can show it. The notes of both codecs say what it was: a client of the other protocol
that has a place for refusals gets it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.conversation import Block, Text
from toolglot.protocols.fields.reading import note

_PROTOCOLS: Final = ("openai_chat", "openai_responses")
REFUSAL: Final = "refusal"
"""The note of a part that refuses, the type of that part, and the field of a message that does."""


def is_refusal(block: Text) -> bool:
    """Whether a text is a refusal, by the notes of the codec that read it."""
    if block.is_refusal or block.extra is None:
        return block.is_refusal
    return any(
        note(block.extra, protocol, REFUSAL) or note(block.extra, protocol, "place") == REFUSAL
        for protocol in _PROTOCOLS
    )


def without_refusals(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks with refusals as plain text, for a client that has no place for them."""
    return tuple(
        Text(block.text, block.signature) if isinstance(block, Text) and is_refusal(block) else block
        for block in blocks
    )


def only_refuses(blocks: tuple[Block, ...]) -> bool:
    """Whether all that the blocks say is a refusal."""
    texts = [block for block in blocks if isinstance(block, Text) and block.text]
    return bool(texts) and all(map(is_refusal, texts))
