"""Limits for MCP servers, and the error that they raise.

Law: nothing that a server sends is unbounded, and no error contains a value of its environment or headers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from toolglot.errors import InputError, ToolglotError, cut
from toolglot.masking import KnownSecrets

MIN_SECRET: Final = 4
"""Characters of a secret. Shorter values are not masked: replacing every `1` would leave nothing of a message."""


class McpServerError(ToolglotError):
    """An MCP server that cannot be used: it does not start, has ended, or does not speak the protocol."""

    def __init__(self, message: str) -> None:
        self.message: str = cut(message)
        super().__init__(self.message)


class McpLimits(Struct, frozen=True, kw_only=True):
    """Limits for one server."""

    max_message: int = 16 * 1024 * 1024
    """Bytes of one message."""
    max_tools: int = 1_000
    max_pages: int = 100
    """Pages of the list of tools."""
    max_definition: int = 200_000
    """Bytes of the definition of one tool; a larger one is left out and listed in `problems`."""
    max_noise: int = 1_000
    """Lines on the standard output that are not messages."""
    max_errors: int = 8_000
    """Bytes of the standard error that are kept: the last ones."""
    start: float = 30.0
    """Seconds until the server has listed its tools."""
    stop: float = 2.0
    """Seconds that a server gets to end by itself, and again after the signal to end."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) > 0:
                raise InputError("expected a number, more than 0", path=name)


def server_secrets(values: Iterable[str]) -> KnownSecrets:
    """The values of a server's environment and headers, and their words."""
    secrets = {value for value in values if len(value) >= MIN_SECRET}
    words = {word for secret in secrets for word in secret.split() if len(word) > MIN_SECRET}
    return KnownSecrets(secrets | words, min_length=MIN_SECRET)


def reason_of(error: BaseException) -> str:
    """The first error, in few words, also of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message = str(error).strip().partition("\n")[0]
    if isinstance(error, McpServerError):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
