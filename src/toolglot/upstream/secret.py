"""A value that is never shown: a key, or a header that may hold one.

Law: neither `repr` nor `str`, a format, an encoder nor a pickle gives the value away; only `reveal` does.
"""

from __future__ import annotations

import hmac
from typing import Final, NoReturn

from toolglot.masking import MASK


class Secret:
    """A string that only `reveal` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


NONE: Final = Secret("")
"""No secret at all."""
