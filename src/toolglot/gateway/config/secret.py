"""Values that are never shown: keys, and what may hold one.

Law: neither `repr` nor `str`, a format, an encoder nor a pickle gives the value away; only `reveal` does. Secrets come
from environment variables, whose names may be shown unless they look as if somebody wrote the key itself there.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from toolglot.errors import quote
from toolglot.masking import MASK, mask

ENV: Final = "env:"
"""Before the name of an environment variable."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SHOWABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_SENDABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_LONGEST: Final = 16_384


class Secret:
    """A text that only `reveal` shows."""

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
        raise TypeError("a secret is not written down")


NONE: Final = Secret("")
"""No secret at all."""


def is_variable(name: str) -> bool:
    """Whether this can be the name of an environment variable, and does not look like a key."""
    return _NAME.fullmatch(name) is not None and mask(name) == name


def shown_variable(name: str) -> str:
    """The name for a message. A key without digits and prefix can look like a name; no name is written like it."""
    return quote(name) if _SHOWABLE.fullmatch(name) and is_variable(name) else "the variable that is named here"


def variable(environ: Mapping[str, str], name: str) -> str:
    """The value of a variable without the line break that a file leaves at its end; empty: there is none."""
    return environ.get(name, "").strip()


def is_sendable(value: str) -> bool:
    """Whether a value can stand in a header."""
    return len(value) <= _LONGEST and _SENDABLE.fullmatch(value) is not None
