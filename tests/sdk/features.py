"""What is in a conversation or a reply that a protocol may not be able to carry.

`NEEDS_RENDERING` says, for each SDK, what the renderer must have changed before a body of its protocol can be
right; a codec changes shape only. `OPEN` says what a codec itself does not write as the SDK's definitions want
it: each entry is a defect, and goes when the codec is mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolglot.conversation import Conversation, Media, Reply, Thinking, ToolCall, ToolResult, ToolSpec, Turn

AUDIO_OR_VIDEO: Final = "audio or video"
CALL_WITHOUT_ID: Final = "call without an id"
CUSTOM_CALL: Final = "call with free text"
CUSTOM_TOOL: Final = "tool that takes free text"
DEVELOPER: Final = "developer turn"
LIMITED_CHOICE: Final = "choice among some of the tools"
MEDIA: Final = "media"
MEDIA_IN_RESULT: Final = "media in a result"
NO_BUDGET: Final = "reasoning without a budget"
NO_MEDIA_TYPE: Final = "media without a type"
NO_PARAMETERS: Final = "tool without parameters"
UNSIGNED: Final = "thinking without a signature"
UPPER_CASE: Final = "schema with upper-case types"
VIDEO: Final = "video"

NEEDS_RENDERING: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset({UNSIGNED, AUDIO_OR_VIDEO, NO_MEDIA_TYPE, NO_BUDGET, CUSTOM_TOOL}),
    "boto3": frozenset({CALL_WITHOUT_ID, NO_MEDIA_TYPE, CUSTOM_TOOL}),
    "cohere": frozenset({CUSTOM_TOOL}),
    "genai": frozenset(),
    "mistral": frozenset({CUSTOM_TOOL, CUSTOM_CALL, DEVELOPER, LIMITED_CHOICE}),
    "ollama": frozenset({UPPER_CASE}),
    "openai": frozenset({MEDIA_IN_RESULT, VIDEO}),
    "responses": frozenset({AUDIO_OR_VIDEO}),
}
OPEN: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(),
    "boto3": frozenset(),
    "cohere": frozenset(),
    "genai": frozenset(),
    "mistral": frozenset(),
    "ollama": frozenset(),
    "openai": frozenset(),
    "responses": frozenset(),
}
"""Of requests."""

OPEN_REPLIES: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(),
    "boto3": frozenset(),
    "cohere": frozenset(),
    "genai": frozenset(),
    "mistral": frozenset({CUSTOM_CALL}),
    "ollama": frozenset(),
    "openai": frozenset(),
    "responses": frozenset(),
}


def of_conversation(conversation: Conversation) -> frozenset[str]:
    options = conversation.options
    found = {feature for turn in conversation.turns for feature in _of_turn(turn)}
    found |= {feature for tool in conversation.tools for feature in _of_tool(tool)}
    if options.reasoning is not None and options.reasoning.mode == "on" and options.reasoning.budget_tokens is None:
        found.add(NO_BUDGET)
    if options.tool_choice is not None and options.tool_choice.mode == "allowed":
        found.add(LIMITED_CHOICE)
    return frozenset(found)


def of_reply(reply: Reply) -> frozenset[str]:
    return frozenset(_of_turn(reply.turn))


def _of_turn(turn: Turn) -> Iterator[str]:
    if turn.role == "developer":
        yield DEVELOPER
    for block in turn.blocks:
        yield from _of_block(block)


def _of_block(block: Any) -> Iterator[str]:
    if isinstance(block, Media):
        yield from _of_media(block)
    elif isinstance(block, ToolCall):
        if not block.id:
            yield CALL_WITHOUT_ID
        if block.type == "custom":
            yield CUSTOM_CALL
    elif isinstance(block, ToolResult) and isinstance(block.content, tuple):
        inner = [feature for part in block.content for feature in _of_block(part)]
        yield from (*inner, MEDIA_IN_RESULT) if MEDIA in inner else inner
    elif isinstance(block, Thinking) and block.signature is None and (block.redacted is None or block.text):
        yield UNSIGNED


def _of_media(media: Media) -> Iterator[str]:
    yield MEDIA
    if media.kind in ("audio", "video"):
        yield AUDIO_OR_VIDEO
    if media.kind == "video":
        yield VIDEO
    if not media.media_type and media.data is not None:
        yield NO_MEDIA_TYPE


def _of_tool(tool: ToolSpec) -> Iterator[str]:
    if tool.issuer is not None:
        return
    if tool.type != "function":
        yield CUSTOM_TOOL
    elif tool.parameters is None:
        yield NO_PARAMETERS
    elif str(tool.parameters.get("type")).isupper():
        yield UPPER_CASE
