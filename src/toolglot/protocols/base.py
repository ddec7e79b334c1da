"""The codec of each protocol: what reads and writes its requests, replies, streams and errors.

Loaded when first asked for, so that importing toolglot costs no more than what is used of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, Protocol, cast

from msgspec import Struct

from toolglot.conversation import Conversation, Failure, Reply
from toolglot.conversation.events import Event
from toolglot.limits import Limits
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.sequence import Sequence
from toolglot.protocols.framing.text_frames import Frame, Framer


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


class StreamWish(Struct, frozen=True, kw_only=True):
    """What a client asked of the stream that it gets, and what only the one who serves it knows."""

    usage: bool = True
    """Whether it wants what the reply cost as an event of its own, where the protocol lets it choose."""
    created: int = 0
    """When the reply was begun, in seconds since 1970; the core has no clock."""
    model: str = ""
    """The model that the client asked for, where the provider does not say which one answered."""
    whole_calls: bool = False
    """Whether it reads each call from one event alone and what the reply cost from the last one, as Mistral's does."""
    thinking_parts: bool = False
    """Whether it reads thinking from parts of the content, where a Chat Completions provider wrote it so."""
    refusals: bool = True
    """Whether it knows refusals beside the content of a Chat Completions reply."""


class StreamDecoder(Protocol):
    """Reads the frames of one stream. `sequence` holds what it makes of them."""

    sequence: Sequence

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = ...) -> None: ...

    def read(self, frame: Frame) -> list[Event]:
        """What a frame says."""
        ...

    def finish(self) -> list[Event]:
        """What the end of the bytes says."""
        ...


class StreamEncoder(Protocol):
    """Writes one stream."""

    def __init__(self, wish: StreamWish = ...) -> None: ...

    def write(self, events: Iterable[Event]) -> bytes:
        """The events as bytes for the client."""
        ...

    def ping(self) -> bytes:
        """Something that keeps the connection alive and that every client leaves out; empty if there is no such."""
        ...


class ArrayWriter(Protocol):
    """Makes one array of the events of a stream, in a protocol that has both forms."""

    CONTENT_TYPE: str

    def begin(self) -> None:
        """Note that something of the array has been written by somebody else."""
        ...

    def add(self, events: bytes) -> bytes:
        """What whole events become."""
        ...

    def end(self) -> bytes: ...


class StreamCodec(Protocol):
    Decoder: type[StreamDecoder]
    Encoder: type[StreamEncoder]
    framer: Callable[[], Framer]
    CONTENT_TYPE: str


class Codec:
    """The four modules of a protocol."""

    def __init__(self, protocol: str) -> None:
        def load(name: str) -> Any:
            return importlib.import_module(f"toolglot.protocols.{protocol}.{name}")

        self.protocol = protocol
        self.request: RequestCodec = cast("RequestCodec", load("request"))
        self.reply: ReplyCodec = cast("ReplyCodec", load("reply"))
        self.errors: ErrorCodec = cast("ErrorCodec", load("errors"))

    @cached_property
    def stream(self) -> StreamCodec:
        return cast("StreamCodec", importlib.import_module(f"toolglot.protocols.{self.protocol}.stream"))


@cache
def codec(protocol: str) -> Codec:
    """The codec of a protocol that a profile names."""
    return Codec(protocol)
