"""A session as the request that its agent would send, so that it can be linted and converted like any other.

Law 3: nothing is repaired. What the file holds is in the request, in the form of the protocol that the agent speaks.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.agent_files.base import get
from toolglot.agent_files.values import AgentSession
from toolglot.conversation import Block, Compaction, Conversation, Options, Sampling, Text, Thinking, Turn
from toolglot.protocols.base import codec

MAX_TOKENS: Final = 8192
"""Of the answer; a session file does not say it, and some protocols require it."""


def request_of(session: AgentSession, *, next_prompt: str = "") -> dict[str, Any]:
    """The body of a request with the messages of a session.

    next_prompt: what the user says next, if the session ends with an answer of the model: an agent sends no such
        conversation without one.
    """
    profile = profiles.get(get(session.agent).provider)
    turns = tuple(_plain(turn) for turn in session.conversation.turns)
    if next_prompt and turns and turns[-1].role == "assistant" and not turns[-1].calls:
        turns = (*turns, Turn("user", (Text(next_prompt),)))
    options = Options(sampling=Sampling(max_tokens=MAX_TOKENS))
    conversation = Conversation(turns, options=options, model=session.model or "unknown")
    body: dict[str, Any] = codec(profile.protocol).request.encode(conversation, profile)
    return body


def _plain(turn: Turn) -> Turn:
    """A turn whose summary is a text, as agents send it. Only Anthropic's thinking is a part of every request."""
    blocks: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, Compaction) and block.summary:
            blocks.append(Text(block.summary))
        elif not (isinstance(block, Thinking) and not (block.signature or block.redacted)):
            blocks.append(block)
    return replace(turn, blocks=tuple(blocks))
