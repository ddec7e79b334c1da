"""The codec of each protocol: what reads and writes its requests, replies and errors.

Loaded when first asked for, so that importing toolglot costs no more than what is used of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, cast

from toolglot.conversation import Conversation, Failure, Reply
from toolglot.profiles import Profile
from toolglot.wire.reading import Fields


class RequestCodec(Protocol):
    def decode(self, body: Fields) -> Conversation: ...
    def encode(self, conversation: Conversation, profile: Profile | None = None) -> Fields: ...


class ReplyCodec(Protocol):
    def decode(self, body: Fields) -> Reply: ...
    def encode(self, reply: Reply) -> Fields: ...


class ErrorCodec(Protocol):
    def decode(
        self,
        status: int,
        body: bytes | str | dict[str, Any] | None,
        headers: Mapping[str, str] = ...,
        *,
        target: str = ...,
    ) -> Failure | None: ...
    def encode(self, failure: Failure) -> tuple[int, Fields]: ...
    def headers_of(self, failure: Failure) -> dict[str, str]: ...


class Codec:
    """The three modules of a protocol."""

    def __init__(self, protocol: str) -> None:
        def load(name: str) -> Any:
            return importlib.import_module(f"toolglot.wire.{protocol}.{name}")

        self.protocol = protocol
        self.request = cast("RequestCodec", load("request"))
        self.reply = cast("ReplyCodec", load("reply"))
        self.errors = cast("ErrorCodec", load("errors"))


@cache
def codec(protocol: str) -> Codec:
    """The codec of a protocol that a profile names."""
    return Codec(protocol)
