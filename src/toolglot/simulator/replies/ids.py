"""Ids in each provider's own style, made from a hash of the request: no clock and no randomness."""

from __future__ import annotations

import hashlib
from typing import Final

from toolglot.simulator.accepted_request import AcceptedRequest

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def letters(seed: str, label: str, count: int) -> str:
    """`count` letters and digits, at most 64."""
    number = int.from_bytes(hashlib.sha512(f"{seed}|{label}".encode()).digest())
    characters = []
    for _ in range(count):
        number, rest = divmod(number, len(_LETTERS))
        characters.append(_LETTERS[rest])
    return "".join(characters)


def hexadecimal(seed: str, label: str, count: int) -> str:
    return hashlib.sha512(f"{seed}|{label}".encode()).hexdigest()[:count]


def call_id(request: AcceptedRequest, index: int, name: str, prefix: str = "call_", length: int = 24) -> str:
    """The id of a call: in the style of the target's profile, else `prefix` and `length` characters."""
    style = request.profile.ids.style
    if style == "ordinal":
        return f"functions.{name}:{request.calls_before + index}"
    if style == "fixed":
        return letters(request.id_seed, f"call {index}", 9)
    return prefix + letters(request.id_seed, f"call {index}", length)
