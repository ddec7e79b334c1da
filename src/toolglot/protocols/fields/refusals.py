"""Text with which a model refuses, whichever of OpenAI's protocols it came in.

It is text, so that every client can show it. A client of the other protocol that knows refusals gets it
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.conversation import Block, Text

REFUSAL: Final = "refusal"
"""The type of a part that refuses, and the field of a message that does."""


def without_refusals(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks with refusals as plain text, for a client that does not know them."""
    return tuple(
        Text(block.text, block.signature) if isinstance(block, Text) and block.is_refusal else block for block in blocks
    )


def only_refuses(blocks: tuple[Block, ...]) -> bool:
    """Whether all that the blocks say is a refusal."""
    texts = [block for block in blocks if isinstance(block, Text) and block.text]
    return bool(texts) and all(block.is_refusal for block in texts)
