"""Two counts of tokens without a vocabulary. Law: linear, and no conversation makes them raise.

- A rough one, for replies whose provider reports none: four characters are one token. The gateway counts more exactly
  where a client asks for a count (`gateway/endpoints/token_counts.py`).
- A lower bound, from words. A token never reaches over white space between words, so that a text has at least as many
  tokens as words; a quarter is taken off in case a vocabulary joins some frequent pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation.values import Block, Media, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn, Usage
from toolglot.jsontext import compact

CHARACTERS_PER_TOKEN: Final = 4
TOKENS_OF_MEDIA: Final = 1_500
"""Of an image or a document."""


def estimate_tokens(turns: Iterable[Turn]) -> int:
    """A rough estimate of the tokens of turns."""
    return sum(_tokens(block) for turn in turns for block in turn.blocks)


def estimate_input(turns: Iterable[Turn], tools: Iterable[ToolSpec]) -> int:
    """A rough estimate of what a request with these turns and tools costs."""
    described = sum(len(tool.name + (tool.description or "") + compact(tool.parameters or {})) for tool in tools)
    return max(estimate_tokens(turns) + described // CHARACTERS_PER_TOKEN, 1)


def with_estimates(usage: Usage | None, answer: Turn, turns: Iterable[Turn], tools: Iterable[ToolSpec]) -> Usage:
    """The usage with the counts that the provider did not report. Without turns, the input stays unknown."""
    known, requested = usage if usage is not None else Usage(), tuple(turns)
    read, written = known.input_tokens, known.output_tokens
    if read is None and requested:
        read = estimate_input(requested, tools)
    if written is None:
        written = estimate_tokens((answer,))
    return replace(known, input_tokens=read, output_tokens=written)


def arguments_text(call: ToolCall) -> str:
    """The arguments of a call as text."""
    return call.raw_input if call.raw_input is not None else compact(call.arguments or {})


def _tokens(block: Block) -> int:
    if isinstance(block, Media):
        return TOKENS_OF_MEDIA
    if isinstance(block, Text | Thinking):
        return _text_tokens(block.text)
    if isinstance(block, ToolCall):
        return _text_tokens(block.name + arguments_text(block))
    if isinstance(block, ToolResult):
        media = sum(isinstance(part, Media) for part in block.content) if isinstance(block.content, tuple) else 0
        return _text_tokens(block.text) + media * TOKENS_OF_MEDIA
    return 0


def _text_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


# --- a lower bound ----------------------------------------------------------------------------------

_SPACES: Final = b"\t\n\v\f\r "
_CLASSES: Final = bytes(ord(" ") if code in _SPACES else ord("a") for code in range(256))
_CHARACTERS_PER_WORD: Final = 16
"""How many characters are read for a word that is still missing; few texts have longer words."""


def count_words(text: str) -> int:
    """The number of words, separated by white space."""
    classes = text.encode(errors="surrogatepass").translate(_CLASSES)
    return classes.count(b" a") + classes.startswith(b"a")


def min_tokens_of(words: int) -> int:
    """The tokens that so many words have at least."""
    return words * 3 // 4


class CountedTokens:
    """Whether texts have a number of tokens for certain. Once they have, nothing more is counted."""

    def __init__(self, wanted: int) -> None:
        self._missing = -(-wanted * 4 // 3)
        """The words that are still missing."""

    def add(self, text: str) -> bool:
        """Count a text; whether the number is reached."""
        if self._missing > 0:
            self._missing -= count_words(text[: self._missing * _CHARACTERS_PER_WORD])
        return self._missing <= 0
