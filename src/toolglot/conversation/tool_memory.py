"""Tools that come again: an agent sends the same ones with every request, so they are read and fitted once.

    memory = ToolMemory()
    read_request(body, source="anthropic", memory=memory)

Only who keeps everything that comes of a request to itself may have such a memory: the bodies of requests share what is
remembered. Laws: warm or cold, a request becomes the same and is told the same. Tools are known again by every byte of
them. What is remembered is bounded in number and in bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw

from toolglot.conversation.values import ToolSpec
from toolglot.jsontext import ensure_memory

Fields = dict[str, Any]

MOST: Final = 64
MOST_BYTES: Final = 2 * 1024 * 1024
LARGEST: Final = 128 * 1024
"""Bytes of tools that are worth remembering."""
MOST_MADE: Final = 24
"""Of one list of tools, for how many targets it is remembered what became of it."""

_FIELD: Final = "tools"
_SPLIT: Final = msgspec.json.Decoder(dict[str, Raw])
_decode: Final = msgspec.json.Decoder().decode

_KEYS: Final = (b'"tools":', b'"tools": ')
"""How the field is written, before its value: without a space, or with one."""
_STANDS_IN: Final = 7_401_236_598_012_347_659
_STAND_IN: Final = b"%d" % _STANDS_IN
"""What is read in the place of tools that are known: a whole number, since that can be written in one way only. A body
that holds it itself is read in the long way."""
_MOST_COMPARED: Final = 8
"""The tools of how many clients, the latest first, are held against a body before it is taken apart."""


class RememberedTools(tuple[ToolSpec, ...]):  # noqa: SLOT001 - it has to hold something
    """Tools that will come again, with what was made of them."""

    made: dict[Any, Any]

    def __new__(cls, tools: Iterable[ToolSpec]) -> RememberedTools:
        self = super().__new__(cls, tools)
        self.made = {}
        return self

    def keep(self, key: Any, made: Any) -> None:
        if len(self.made) >= MOST_MADE:
            self.made.clear()
        self.made[key] = made


class ToolMemory:
    """The tools of the last requests."""

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._known: OrderedDict[tuple[str, bytes], tuple[Any, RememberedTools]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        """Large requests are read in threads."""

    def split(self, body: bytes, protocol: str) -> SplitBody | None:
        """A body with its tools apart; None where that is not to be had, or has no use."""
        try:
            return self._known_in(body, protocol) or self._taken_apart(body, protocol)
        except (ValueError, RecursionError):
            return None  # who reads such a body carefully says what is wrong with it

    def _known_in(self, body: bytes, protocol: str) -> SplitBody | None:
        """A body whose tools are known to the byte, read but for them; None where that is not seen at a glance.

        Where the field's name and a whole list follow each other, the name is that of a field: within a text its
        quotes would be escaped. A stand-in in the place of the list leaves JSON what it is; if it is then found in the
        outermost object, the list was its tools, and the last ones of them.
        """
        for key in _KEYS:
            start = body.find(key) + len(key)
            if start >= len(key) and body.startswith(b"[", start):
                break
        else:
            return None
        known = self._starting(body, start, protocol)
        if known is None:
            return None
        written, value, tools = known
        short = b"".join((body[:start], _STAND_IN, body[start + len(written) :]))
        if short.count(_STAND_IN) > 1:
            return None
        ensure_memory(short)
        fields = _decode(short)
        if type(fields) is not dict or type(fields.get(_FIELD)) is not int or fields[_FIELD] != _STANDS_IN:
            return None
        fields[_FIELD] = value
        return SplitBody(self, protocol, written, fields, tools)

    def _starting(self, body: bytes, start: int, protocol: str) -> tuple[bytes, Any, RememberedTools] | None:
        """The tools that a body has at a place, if they are among those that came last."""
        with self._lock:
            for place, key in enumerate(reversed(self._known)):
                if place == _MOST_COMPARED:
                    return None
                if key[0] == protocol and body.startswith(key[1], start):
                    if place:
                        self._known.move_to_end(key)
                    return key[1], *self._known[key]
        return None

    def _taken_apart(self, body: bytes, protocol: str) -> SplitBody | None:
        parts = _SPLIT.decode(body)
        written = bytes(parts.get(_FIELD, b""))
        if not 2 < len(written) <= LARGEST:
            return None
        ensure_memory(body)
        fields = _decode(body)  # all of it: of a field that comes twice, the first is read too, or it would be right
        known = self._found(protocol, written)
        if known is not None:
            fields[_FIELD] = known[0]
        return SplitBody(self, protocol, written, fields, known[1] if known is not None else None)

    def _found(self, protocol: str, written: bytes) -> tuple[Any, RememberedTools] | None:
        key = (protocol, written)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def remember(self, protocol: str, written: bytes, value: Any, tools: Iterable[ToolSpec]) -> RememberedTools:
        made = RememberedTools(tools)
        with self._lock:
            if (protocol, written) not in self._known:
                self._size += len(written)
            self._known[protocol, written] = (value, made)
            while len(self._known) > self._most or self._size > self._most_bytes:
                (_, gone), _ = self._known.popitem(last=False)
                self._size -= len(gone)
        return made


class SplitBody:
    """A body, read but for what its tools mean, if that is known."""

    __slots__ = ("_memory", "_protocol", "_written", "fields", "tools")

    def __init__(
        self, memory: ToolMemory, protocol: str, written: bytes, fields: Fields, tools: RememberedTools | None
    ) -> None:
        self._memory = memory
        self._protocol = protocol
        self._written = written
        self.fields: Fields = fields
        """All of it."""
        self.tools: RememberedTools | None = tools
        """What its tools mean; None: nobody knows yet."""

    @property
    def rest(self) -> Fields:
        """The body without its tools."""
        rest = self.fields.copy()
        del rest[_FIELD]
        return rest

    def remember(self, tools: Iterable[ToolSpec]) -> RememberedTools:
        """What its tools mean, for the next time."""
        return self._memory.remember(self._protocol, self._written, self.fields[_FIELD], tools)


def written_tools(
    tools: tuple[ToolSpec, ...], protocol: str, write: Callable[[tuple[ToolSpec, ...]], list[Fields]]
) -> list[Fields]:
    """Tools as a protocol writes them."""
    if type(tools) is not RememberedTools:
        return write(tools)
    known: tuple[list[Fields], Raw] | None = tools.made.get(protocol)
    if known is None:
        written = write(tools)
        known = (written, Raw(msgspec.json.encode(written)))
        tools.keep(protocol, known)
    return known[0]


def text_of(tools: tuple[ToolSpec, ...], protocol: str, written: object) -> Raw | None:
    """The same as JSON, where it is known; None: they have to be written."""
    known = tools.made.get(protocol) if type(tools) is RememberedTools else None
    return known[1] if known is not None and known[0] is written else None
