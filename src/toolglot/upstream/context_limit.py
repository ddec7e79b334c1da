"""Requests that cannot fit into the context of a model: they are refused before they are sent.

What counts is a lower bound of the tokens (`conversation/token_estimates.py`). Images, thinking, tools and arguments
count nothing: how providers count those differs. So a request is refused here only if every
provider would refuse it, at half of the tokens or more above the limit for prose, and only if the window of the model
is known from a source (`Profile.largest_window`). Otherwise the provider decides.

Law: linear in the texts, and nothing at all for a request of fewer bytes than twice the window has tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolglot.conversation import Conversation, Failure, Text, ToolResult
from toolglot.conversation.token_estimates import count_words, min_tokens_of
from toolglot.protocols.base import get
from toolglot.translate.requests import ConvertedRequest

WORD_BYTES: Final = 2
"""The fewest bytes of a word, with the space after it."""


def may_overflow(out: ConvertedRequest) -> bool:
    """Whether a request has enough bytes to be too long for its model, so that its words must be counted."""
    window = out.target.largest_window
    return window is not None and len(out.data) > WORD_BYTES * window and not _is_shortened(out)


def overflow_of(out: ConvertedRequest) -> Failure | None:
    """Why a request cannot fit into the context of its model; None: it may."""
    window = out.target.largest_window
    if window is None or (tokens := min_tokens(out.rendered.conversation)) <= window:
        return None
    message = (
        f"the prompt has at least {tokens} tokens, more than the {window} that {out.model} takes, and was not sent: "
        "shorten the conversation, or use a model with a larger context. If the model takes more, set context.window "
        f"in [profiles.{out.target.name}.rules]"
    )
    return Failure("context_overflow", message)


def _is_shortened(out: ConvertedRequest) -> bool:
    """Whether the provider is to shorten a conversation that is too long."""
    fields = get(out.target.protocol).shortening_fields
    return any(out.body.get(name) not in (None, off) for name, off in fields.items())


def min_tokens(conversation: Conversation) -> int:
    """A number of tokens that the texts of a conversation have at least."""
    return min_tokens_of(sum(map(count_words, _texts(conversation))))


def _texts(conversation: Conversation) -> Iterator[str]:
    for turn in conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Text):
                yield block.text
            elif isinstance(block, ToolResult):
                content = block.content or ()
                parts = [content] if isinstance(content, str) else [p.text for p in content if isinstance(p, Text)]
                yield from parts
