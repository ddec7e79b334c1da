"""Remembered tools: an agent sends the same ones with every request, so they are read and converted once.

    memory = ToolMemory()
    read_request(body, source="anthropic", memory=memory)

The bodies of requests share remembered values, so only a caller that keeps them to itself may have such a memory. Laws:
with or without a memory, a request becomes the same body with the same report. Tools are recognised only if every byte
is the same. The memory is bounded in number and in bytes.
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

MAX_LISTS: Final = 64
MAX_BYTES: Final = 2 * 1024 * 1024
MAX_LIST_BYTES: Final = 128 * 1024
"""Longer lists of tools are not remembered."""
MAX_CONVERSIONS: Final = 24
"""For how many targets the conversions of one list of tools are remembered."""

_FIELD: Final = "tools"
_SPLIT: Final = msgspec.json.Decoder(dict[str, Raw])
_decode: Final = msgspec.json.Decoder().decode

_KEYS: Final = (b'"tools":', b'"tools": ')
"""How the field is written, before its value: without a space, or with one."""
_PLACEHOLDER: Final = 7_401_236_598_012_347_659
_PLACEHOLDER_TEXT: Final = b"%d" % _PLACEHOLDER
"""Replaces known tools before a body is parsed: an integer, since that can be written in one way only. A body that
contains it is parsed as a whole."""
_MAX_COMPARED: Final = 8
"""How many lists of tools, the latest first, are compared with a body before it is parsed as a whole."""


class RememberedTools(tuple[ToolSpec, ...]):  # noqa: SLOT001 - it has to hold something
    """Tools that will come again, with their conversions."""

    conversions: dict[Any, Any]

    def __new__(cls, tools: Iterable[ToolSpec]) -> RememberedTools:
        self = super().__new__(cls, tools)
        self.conversions = {}
        return self

    def keep(self, key: Any, conversion: Any) -> None:
        if len(self.conversions) >= MAX_CONVERSIONS:
            self.conversions.clear()
        self.conversions[key] = conversion


class ToolMemory:
    """The tools of the last requests."""

    def __init__(self, *, max_lists: int = MAX_LISTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_lists = max_lists
        self._max_bytes = max_bytes
        self._known: OrderedDict[tuple[str, bytes], tuple[Any, RememberedTools]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        """Large requests are read in threads."""

    def split(self, body: bytes, protocol: str) -> SplitBody | None:
        """Split the tools from a body; None where that is not possible or not useful."""
        try:
            return self._split_known(body, protocol) or self._split_any(body, protocol)
        except (ValueError, RecursionError):
            return None  # the careful reader of such a body reports what is wrong with it

    def _split_known(self, body: bytes, protocol: str) -> SplitBody | None:
        """Parse a body without its tools, if they are known byte for byte; None if a quick search does not find them.

        Where a known list follows the field's name, the name is that of a field: inside a string its quotes would be
        escaped. With a placeholder instead of the list, the JSON stays valid. If the placeholder is then found in the
        outermost object, the list was the value of its field `tools`, the last one if there are several.
        """
        for key in _KEYS:
            start = body.find(key) + len(key)
            if start >= len(key) and body.startswith(b"[", start):
                break
        else:
            return None
        known = self._find_at(body, start, protocol)
        if known is None:
            return None
        written, value, tools = known
        short = b"".join((body[:start], _PLACEHOLDER_TEXT, body[start + len(written) :]))
        if short.count(_PLACEHOLDER_TEXT) > 1:
            return None
        ensure_memory(short)
        fields = _decode(short)
        if type(fields) is not dict or type(fields.get(_FIELD)) is not int or fields[_FIELD] != _PLACEHOLDER:
            return None
        fields[_FIELD] = value
        return SplitBody(self, protocol, written, fields, tools)

    def _find_at(self, body: bytes, start: int, protocol: str) -> tuple[bytes, Any, RememberedTools] | None:
        """The tools at this offset of a body, if they are among the latest."""
        with self._lock:
            for age, key in enumerate(reversed(self._known)):
                if age == _MAX_COMPARED:
                    return None
                if key[0] == protocol and body.startswith(key[1], start):
                    if age:
                        self._known.move_to_end(key)
                    return key[1], *self._known[key]
        return None

    def _split_any(self, body: bytes, protocol: str) -> SplitBody | None:
        parts = _SPLIT.decode(body)
        written = bytes(parts.get(_FIELD, b""))
        if not 2 < len(written) <= MAX_LIST_BYTES:
            return None
        ensure_memory(body)
        fields = _decode(body)  # all of it: a field that comes twice must be well-formed both times
        known = self._find(protocol, written)
        if known is not None:
            fields[_FIELD] = known[0]
        return SplitBody(self, protocol, written, fields, known[1] if known is not None else None)

    def _find(self, protocol: str, written: bytes) -> tuple[Any, RememberedTools] | None:
        key = (protocol, written)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def remember(self, protocol: str, written: bytes, value: Any, tools: Iterable[ToolSpec]) -> RememberedTools:
        remembered = RememberedTools(tools)
        with self._lock:
            if (protocol, written) not in self._known:
                self._size += len(written)
            self._known[protocol, written] = (value, remembered)
            while len(self._known) > self._max_lists or self._size > self._max_bytes:
                (_, gone), _ = self._known.popitem(last=False)
                self._size -= len(gone)
        return remembered


class SplitBody:
    """A parsed body, with its decoded tools if they are known."""

    __slots__ = ("_memory", "_protocol", "_written", "fields", "tools")

    def __init__(
        self, memory: ToolMemory, protocol: str, written: bytes, fields: Fields, tools: RememberedTools | None
    ) -> None:
        self._memory = memory
        self._protocol = protocol
        self._written = written
        self.fields: Fields = fields
        """All fields of the body."""
        self.tools: RememberedTools | None = tools
        """The decoded tools; None if they are not known yet."""

    @property
    def rest(self) -> Fields:
        """The body without its tools."""
        rest = self.fields.copy()
        del rest[_FIELD]
        return rest

    def remember(self, tools: Iterable[ToolSpec]) -> RememberedTools:
        """Remember the decoded tools."""
        return self._memory.remember(self._protocol, self._written, self.fields[_FIELD], tools)


def encode_tools(
    tools: tuple[ToolSpec, ...], protocol: str, write: Callable[[tuple[ToolSpec, ...]], list[Fields]]
) -> list[Fields]:
    """Tools as a protocol writes them, from the memory if they are there."""
    if type(tools) is not RememberedTools:
        return write(tools)
    known: tuple[list[Fields], Raw] | None = tools.conversions.get(protocol)
    if known is None:
        written = write(tools)
        known = (written, Raw(msgspec.json.encode(written)))
        tools.keep(protocol, known)
    return known[0]


def tools_json(tools: tuple[ToolSpec, ...], protocol: str, written: object) -> Raw | None:
    """The JSON of tools that `encode_tools` returned, if it is remembered."""
    known = tools.conversions.get(protocol) if type(tools) is RememberedTools else None
    return known[1] if known is not None and known[0] is written else None
