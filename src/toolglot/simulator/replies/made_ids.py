"""Ids in each provider's own style, made from a hash of the request: no clock and no randomness."""

from __future__ import annotations

import hashlib
from typing import Final

from toolglot.simulator.ask import AcceptedRequest

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def letters(stem: str, label: str, count: int) -> str:
    """So many letters and digits, at most 64."""
    number = int.from_bytes(hashlib.sha512(f"{stem}|{label}".encode()).digest())
    made = []
    for _ in range(count):
        number, rest = divmod(number, len(_LETTERS))
        made.append(_LETTERS[rest])
    return "".join(made)


def hexadecimal(stem: str, label: str, count: int) -> str:
    return hashlib.sha512(f"{stem}|{label}".encode()).hexdigest()[:count]


def call_id(ask: AcceptedRequest, index: int, name: str) -> str:
    """The id of a call, as the target writes them."""
    rules = ask.profile.ids
    if rules.style == "ordinal":
        return f"functions.{name}:{ask.calls_before + index}"
    if rules.style == "fixed":
        return letters(ask.stem, f"call {index}", 9)
    prefix, count = _CALLS.get(ask.protocol, ("call_", 24))
    return prefix + letters(ask.stem, f"call {index}", count)


_CALLS: Final = {"anthropic": ("toolu_01", 22), "bedrock": ("tooluse_", 22), "ollama": ("call_", 8)}


def reply_id(ask: AcceptedRequest) -> str:
    """The id of an answer."""
    prefix, count = _REPLIES.get(ask.provider, _REPLIES.get(ask.protocol, ("chatcmpl-", 29)))
    return prefix + (letters if prefix else hexadecimal)(ask.stem, "reply", count)


_REPLIES: Final = {
    "anthropic": ("msg_01", 22),
    "openai_responses": ("resp_", 48),
    "gemini": ("", 22),
    "mistral": ("", 32),
    "deepseek": ("", 32),
    "cohere": ("", 32),
}
