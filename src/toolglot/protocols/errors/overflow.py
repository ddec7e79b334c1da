"""The numbers in a refusal of a prompt that is too long, in the words of each provider.

    counts_of("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")
    # OverflowCounts(tokens=9000, window=8192)

    reply_counts_of("… However, you requested 9000 tokens (7000 in the messages, 2000 in the completion).")
    # ReplyCounts(input=7000, reply=2000, window=8192)

A client that knows how far it is above the limit compacts as much as is needed, and not once more. If only the reply
that it asked for does not fit, it asks for a shorter one instead.

Law: linear in the text, and None unless the numbers are there and say what they should.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 2_000
_NUMBER: Final = "[0-9][0-9,_]{0,14}"
_N: Final = rf"({_NUMBER})"

_EXCEEDS: Final = r"exceeds the (?:maximum number of tokens allowed|limit of)|but (?:the )?model only supports up to"
_HAS: Final = (
    r"your messages resulted in|you(?:'ve)? requested(?: about)?|(?:and )?your (?:request|prompt) (?:has|contains)"
    r"(?: at least)?"
)
_TOKENS_FIRST: Final = (
    rf"prompt is too long: {_N} tokens > {_N}",  # Anthropic
    rf"at least {_N} tokens, more than the {_N}",  # toolglot itself
    rf"token count(?: is| of)? ?\(?{_N}\)?,? (?:{_EXCEEDS}) ?\(?{_N}",  # Gemini, GitHub Copilot
    rf"prompt contains {_N} tokens.{{0,60}}? {_N} maximum context length",  # Mistral
    rf"request \({_N} tokens\) exceeds the available context size \({_N} tokens\)",  # llama.cpp
    rf"prompt \(length {_N}\) is longer than the maximum model length of {_N}",  # vLLM
    rf"too long: {_N},? model maximum context length: {_N}",  # Fireworks
    rf"{_N} tokens (?:is|are) longer than the model's context length \({_N} tokens\)",  # SGLang
)
_WINDOW_FIRST: Final = (
    rf"maximum context length is {_N} tokens[.,]? (?:however, )?(?:{_HAS}) {_N}",  # OpenAI, DeepSeek, vLLM
    rf"maximum prompt length is {_N} but the request contains {_N}",  # xAI
    rf"model token limit: {_N} \(requested: {_N}\)",  # Kimi
    rf"cannot exceed {_N} - received {_N}",  # Cohere
)


_INPUT: Final = rf"(?P<input>{_NUMBER})"
_REPLY: Final = rf"(?P<reply>{_NUMBER})"
_WINDOW: Final = rf"(?P<window>{_NUMBER})"
_REPLIES: Final = (
    # Anthropic
    rf"exceed context limit: {_INPUT} \+ {_REPLY} > {_WINDOW}",
    # OpenAI, DeepSeek, vLLM, OpenRouter
    (
        rf"maximum context length is {_WINDOW} tokens.{{0,60}}?\({_INPUT} (?:in|of) [a-z ]{{3,20}}, {_REPLY} in the "
        r"(?:completion|output)"
    ),
    # vLLM, of max_tokens and max_completion_tokens
    (
        rf"is too large: {_REPLY}\. this model's maximum context length is {_WINDOW} tokens and your request has "
        rf"{_INPUT} input tokens"
    ),
)


class ReplyCounts(NamedTuple):
    """The tokens of a prompt that fits, those that the reply may have, and those that fit."""

    input: int
    reply: int
    window: int


class OverflowCounts(NamedTuple):
    """The tokens of a prompt, and those that fit."""

    tokens: int
    window: int


_PATTERNS: Final[tuple[tuple[str, tuple[int, int]], ...]] = (
    # as strings: they are compiled when an error is first read, not when the module is loaded
    *((pattern, (1, 2)) for pattern in _TOKENS_FIRST),
    *((pattern, (2, 1)) for pattern in _WINDOW_FIRST),
)


def counts_of(message: str) -> OverflowCounts | None:
    """The numbers of a message; None if it does not have both."""
    text = message[:MAX_CHARACTERS].lower()
    for pattern, (tokens, window) in _PATTERNS:
        found = re.search(pattern, text)
        if found is not None:
            counts = OverflowCounts(_number(found[tokens]), _number(found[window]))
            return counts if counts.tokens > counts.window else None
    return None


def reply_counts_of(message: str) -> ReplyCounts | None:
    """The numbers of a message about a prompt that fits, but not together with the reply; None for any other."""
    text = message[:MAX_CHARACTERS].lower()
    for pattern in _REPLIES:
        found = re.search(pattern, text)
        if found is not None:
            counts = ReplyCounts(*(_number(found[name]) for name in ReplyCounts._fields))
            return counts if counts.input < counts.window < counts.input + counts.reply else None
    return None


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
