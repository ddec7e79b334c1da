"""What the reply to a request that is passed through says: token counts, and the ids of stored objects.

Law: a reply is never held back to read its token counts; at most `MAX_COPY` bytes of it are kept for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from toolglot.conversation.plausible_usage import MAX_TOKENS
from toolglot.errors import LimitError
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.protocols.framing.text_frames import Framer, LineFramer, SseFramer

MAX_COPY: Final = 32 * 1024 * 1024
"""Bytes of a reply in JSON: one with images has its token counts behind them."""
TOKENS_A_SECOND: Final = 10
"""Of audio, for a provider that counts seconds: OpenAI's own rate for audio that a user sends."""
ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
"""The last states of a batch."""


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    """Token counts, in the forms of the providers' services."""

    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens_details: _Details | None = None
    prompt_tokens_details: _Details | None = None

    def counts(self) -> dict[str, int] | None:
        details = self.input_tokens_details or self.prompt_tokens_details or _Details()
        read = self.prompt_tokens if self.input_tokens is None else self.input_tokens
        if read is None and self.seconds is not None and 0 <= self.seconds < MAX_TOKENS / TOKENS_A_SECOND:
            read = round(self.seconds * TOKENS_A_SECOND)
        written = self.completion_tokens if self.output_tokens is None else self.output_tokens
        return plain_counts(read, written, details.cached_tokens)


class _Metadata(Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Reply(Struct):
    usage: _Usage | None = None
    usage_metadata: _Metadata | None = msgspec.field(default=None, name="usageMetadata")
    prompt_eval_count: int | None = None
    eval_count: int | None = None


class StoredObject(Struct):
    """The parts of a stored object that matter here."""

    id: str = ""
    name: str = ""
    status: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    output_file_id: str | None = None


_reply = msgspec.json.Decoder(_Reply)
_stored = msgspec.json.Decoder(StoredObject)


def plain_counts(read: int | None, written: int | None, cached: int | None = None) -> dict[str, int] | None:
    """Token counts by name, without those that cannot be true; None: there are none."""
    counts = {"input_tokens": read, "output_tokens": written, "cache_read_tokens": cached}
    found = {name: count for name, count in counts.items() if count is not None and 0 <= count <= MAX_TOKENS}
    return found if any(found.values()) else None


def counted_tokens(data: bytes) -> dict[str, int] | None:
    """The token counts of a reply, or of an event of one; None: it has none."""
    try:
        reply = _reply.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if reply.usage is not None:
        return reply.usage.counts()
    if (found := reply.usage_metadata) is not None:
        return plain_counts(
            found.prompt_token_count, (found.candidates_token_count or 0) + (found.thoughts_token_count or 0)
        )
    return plain_counts(reply.prompt_eval_count, reply.eval_count)


class UsageReader:
    """Reads the token counts of a reply while it is forwarded."""

    def __init__(self, content_type: str, request: ClientRequest) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._request = request
        self._framer: Framer | None = None
        if kind == "text/event-stream":
            self._framer = SseFramer()
        elif kind in ("application/x-ndjson", "application/jsonl"):
            self._framer = LineFramer()
        self._pieces: list[bytes] | None = [] if kind == "application/json" else None
        self._size = 0
        self._counts: dict[str, int] | None = None

    def feed(self, piece: bytes) -> None:
        if self._framer is not None:
            try:
                frames = self._framer.feed(piece)
            except LimitError:
                self._framer = None
                return
            for frame in frames:
                self._read(frame.data)
        elif self._pieces is not None:
            self._size += len(piece)
            try:
                self._request.hold(len(piece))
            except GatewayRefusal:  # no memory for a copy: the reply itself goes on
                self._size = MAX_COPY + 1
            if self._size > MAX_COPY:
                self._pieces = None
            else:
                self._pieces.append(piece)

    def _read(self, data: bytes) -> None:
        if b"usage" in data or b"eval_count" in data:
            self._counts = counted_tokens(data) or self._counts

    def finish(self) -> dict[str, int] | None:
        """The token counts; None: the reply has none that can be read."""
        if self._framer is not None:
            try:
                for frame in self._framer.finish():
                    self._read(frame.data)
            except LimitError:
                pass
        elif self._pieces is not None:
            self._read(b"".join(self._pieces))
        return self._counts


# --- stored objects ---------------------------------------------------------------------------------


def read_object(data: bytes | Raw) -> StoredObject | None:
    """An object that a provider shows; None: it is not one."""
    try:
        return _stored.decode(bytes(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def batch_counts(batch: StoredObject, estimated: int) -> tuple[dict[str, int] | None, bool]:
    """The token counts of a batch that has ended, and whether they are estimated."""
    counts = batch.usage.counts() if batch.usage is not None else None
    if counts is None and batch.output_file_id:
        return plain_counts(estimated, None), True
    return counts, False


class ObjectPage(Struct):
    """A page of a list."""

    fields: dict[str, Raw]
    items: list[Raw]
    has_more: bool


def read_page(data: bytes, field: str) -> ObjectPage | None:
    """A page of a list whose objects are in this field; None: it is not one."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, Raw])
        items = msgspec.json.decode(fields.get(field, b"[]"), type=list[Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return ObjectPage(fields, items, bytes(fields.get("has_more", b"")) == b"true")


def write_page(fields: Mapping[str, Raw], field: str, items: list[tuple[str, Raw]], *, has_more: bool) -> bytes:
    """A page with these objects."""
    page: dict[str, Any] = {**fields, field: [item for _, item in items]}
    for name, index in (("first_id", 0), ("last_id", -1)):
        if name in page:
            page[name] = items[index][0] if items else None
    if "has_more" in page:
        page["has_more"] = has_more
    return msgspec.json.encode(page)
