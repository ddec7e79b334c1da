"""The numbers in a refusal of a prompt that is too long, in the words of each provider.

    counts_of("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")
    # OverflowCounts(tokens=9000, window=8192)

A client that knows how far it is above the limit compacts as much as is needed, and not once more. Sources of the
words: docs/errors.md.

Law: linear in the text, and None unless both numbers are there and the first is larger.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 2_000
_N: Final = r"([0-9][0-9,_]{0,14})"

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


class OverflowCounts(NamedTuple):
    """The tokens of a prompt, and those that fit."""

    tokens: int
    window: int


_PATTERNS: Final = (
    *((re.compile(pattern), (1, 2)) for pattern in _TOKENS_FIRST),
    *((re.compile(pattern), (2, 1)) for pattern in _WINDOW_FIRST),
)


def counts_of(message: str) -> OverflowCounts | None:
    """The numbers of a message; None if it does not have both."""
    text = message[:MAX_CHARACTERS].lower()
    for pattern, (tokens, window) in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            counts = OverflowCounts(_number(found[tokens]), _number(found[window]))
            return counts if counts.tokens > counts.window else None
    return None


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
