"""Secrets come from environment variables: their names and values.

Law: the name of a variable is shown, unless it looks like a key that was written there by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from toolglot.errors import quote
from toolglot.masking import mask

ENV: Final = "env:"
"""Before the name of an environment variable."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SHOWABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_SENDABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_MAX_LENGTH: Final = 16_384


def is_variable(name: str) -> bool:
    """Whether this can be the name of an environment variable, and does not look like a key."""
    return _NAME.fullmatch(name) is not None and mask(name) == name


def shown_variable(name: str) -> str:
    """The name for a message. A key in lowercase can look like a name, so only uppercase names are shown."""
    return quote(name) if _SHOWABLE.fullmatch(name) and is_variable(name) else "the variable that is named here"


def variable(environ: Mapping[str, str], name: str) -> str:
    """The value of a variable without the line break that a file leaves at its end; empty: there is none."""
    return environ.get(name, "").strip()


def is_sendable(value: str) -> bool:
    """Whether a value can be sent in a header."""
    return len(value) <= _MAX_LENGTH and _SENDABLE.fullmatch(value) is not None
