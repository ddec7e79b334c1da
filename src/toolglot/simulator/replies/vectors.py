"""Simulated embeddings: the same text always has the same vector, of length 1, and other texts have others."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec import Struct

from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.replies.refusals import Refusal

DEFAULT_SIZE: Final = 64
MAX_SIZE: Final = 4096
MAX_INPUTS: Final = 10_000


class EmbeddingCheck(Struct, frozen=True, kw_only=True):
    """What a provider demands of the body of a request for embeddings."""

    fields: Collection[str]
    required: tuple[str, ...]
    unknown: str = "Unrecognized request argument supplied: {name}"
    missing: str = "Missing required parameter: '{name}'."

    def refusal(self, body: Fields) -> Refusal | None:
        """Why the body is refused; None if it is not."""
        for name in self.required:
            if body.get(name) is None:
                return refused(self.missing.format(name=name), name)
        for name in body:
            if name not in self.fields:
                return refused(self.unknown.format(name=name[:80]), name)
        return None


def refused(message: str, param: str = "") -> Refusal:
    return Refusal(kind="bad_request", message=message, param=param, rule="shape")


def check_texts(texts: Any, limit: int | None, param: str, *, too_many: str = "too many inputs") -> Refusal | None:
    """Why a list of texts is refused; None if it is not."""
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        return refused(f"Invalid type for '{param}': expected a list of strings", param)
    if len(texts) > min(limit or MAX_INPUTS, MAX_INPUTS):
        return refused(f"{too_many}: {len(texts)}", param)
    return refused("input cannot be an empty string", param) if "" in texts else None


def simulated_vector(text: str, size: Any = None) -> list[float]:
    """The vector of a text."""
    count = min(size, MAX_SIZE) if type(size) is int and size > 0 else DEFAULT_SIZE
    stream = hashlib.shake_256(text.encode(errors="surrogatepass")).digest(2 * count)
    numbers = [int.from_bytes(stream[at : at + 2], "big", signed=True) + 0.5 for at in range(0, 2 * count, 2)]
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return [round(number / length, 7) for number in numbers]


def simulated_tokens(texts: Iterable[str]) -> int:
    """About four characters make a token."""
    return sum(max(1, len(text) // 4) for text in texts)
