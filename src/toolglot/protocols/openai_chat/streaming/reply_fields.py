"""Collects the fields of a stream's chunks besides its blocks, in the form of a reply that is not streamed.

Chunks repeat fields of the reply (`created`, `system_fingerprint`), of the choice (`logprobs`, content filters) and of
the message (`reasoning_details`, `annotations`, `audio`). The last value that is not empty counts, lists grow, and
strings that come in pieces are joined. Law: what is kept is bounded by the limit of the reply.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Extra
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatReply

_CHUNK: Final = frozenset({"id", "model", "choices", "usage", "error", "obfuscation"})
_CHOICE: Final = frozenset({"delta", "message", "finish_reason", "usage", "error"})
_SIGNATURE: Final = "signature"
_IN_PIECES: Final = frozenset({"text", "summary", "data", "transcript", _SIGNATURE})
"""Strings that come in pieces, inside objects. A signature may be repeated instead."""
_PARTS: Final = frozenset({"reasoning_details"})
"""Lists whose entries come in pieces."""


class _Pieces(list[str]):
    """A string that comes in pieces, joined once."""


class ReplyFields:
    """The fields of the reply, its choice and its message so far."""

    def __init__(self, limits: Limits) -> None:
        self.id: str = ""
        self.model: str = ""
        self._left = limits.max_bytes
        self._body: Fields = {}
        self._choice: Fields = {"index": 0}
        self._message: Fields = {}
        self._early: Fields = {}
        """The fields that the start of the reply had."""

    def read_chunk(self, chunk: Fields) -> None:
        id, model = chunk.get("id"), chunk.get("model")
        self.id = self.id or (id if type(id) is str else "")
        self.model = self.model or (model if type(model) is str else "")
        for key, value in chunk.items():
            if key not in _CHUNK:
                _set(self._body, key, value)
        if self._body.get("object") == "chat.completion.chunk":
            self._body["object"] = "chat.completion"

    def read_choice(self, choice: Fields) -> None:
        for key, value in choice.items():
            if key not in _CHOICE:
                _set(self._choice, key, _merge(self._choice.get(key), value) if key == "logprobs" else value)

    def read_message(self, key: str, value: Any) -> None:
        """Add a field of a delta that belongs to no block."""
        before = self._message.get(key)
        if key in _PARTS and type(value) is list:
            self._message[key] = _add_entries(before if type(before) is list else [], value)
        elif type(before) is dict and type(value) is dict:
            _extend(before, value)
        elif type(value) is dict:
            self._message[key] = dict(value)
        elif value is not None:
            self._message[key] = _merge(before, value)

    def keep(self, size: int) -> None:
        """Count bytes that are kept."""
        self._left -= size
        if self._left < 0:
            raise LimitError("the reply is longer than its limit (max_bytes)", hint="raise max_bytes of the limits")

    def at_start(self) -> tuple[Extra | None, ChatReply]:
        """The fields of the reply at its start."""
        choice = {key: value for key, value in self._choice.items() if type(value) is not dict}
        self._early = dict(self._body)
        return {PROTOCOL: dict(self._early)} if self._early else None, ChatReply(choice)

    def at_end(self) -> Extra | None:
        """The fields of the reply that were not known at its start."""
        early = self._early
        new = {key: value for key, value in self._body.items() if key not in early or early[key] != value}
        return {PROTOCOL: new} if new else None

    def form(self, finish_reason: str | None) -> ChatReply:
        """The form of the whole reply."""
        return ChatReply(self._choice, finish_reason=finish_reason)

    def message(self) -> Extra | None:
        """The fields of the message besides its blocks."""
        return {PROTOCOL: {key: _join_pieces(value) for key, value in self._message.items()}} if self._message else None


def _set(fields: Fields, key: str, value: Any) -> None:
    """Set a value, unless it is empty and there is one already."""
    if key not in fields or (value is not None and value not in ("", 0)):
        fields[key] = value


def _merge(before: Any, value: Any) -> Any:
    """Extend lists, also inside objects; otherwise the later value counts."""
    if type(before) is list and type(value) is list:
        before.extend(value)
        return before
    if type(before) is dict and type(value) is dict:
        for key, inner in value.items():
            before[key] = _merge(before.get(key), inner) if inner is not None else before.get(key)
        return before
    return value


def _extend(entry: Fields, more: Fields) -> None:
    """Add to an object whose strings come in pieces."""
    for key, value in more.items():
        before = entry.get(key)
        if key == _SIGNATURE and before == value:
            continue
        if key in _IN_PIECES and type(value) is str and type(before) is _Pieces:
            before.append(value)
        elif key in _IN_PIECES and type(value) is str and type(before) is str:
            entry[key] = _Pieces((before, value))
        elif value is not None or key not in entry:
            entry[key] = value


def _add_entries(entries: list[Any], more: list[Any]) -> list[Any]:
    """Add to a list of entries. The last entry continues while its type, index and id stay the same."""
    for part in more:
        last = entries[-1] if entries else None
        if type(part) is not dict:
            entries.append(part)
        elif type(last) is dict and _is_same_entry(last, part):
            _extend(last, part)
        else:
            entries.append(dict(part))
    return entries


def _is_same_entry(last: Fields, part: Fields) -> bool:
    """Whether a part continues an entry. It need not repeat the id."""
    id, known = part.get("id"), last.get("id")
    is_other = id is not None and known is not None and id != known
    return not is_other and all(last.get(key) == part.get(key) for key in ("type", "index"))


def _join_pieces(value: Any) -> Any:
    """A field of the message with its strings joined."""
    if type(value) is list:
        return [_join_pieces(entry) if type(entry) is dict else entry for entry in value]
    if type(value) is dict:
        return {key: "".join(text) if type(text) is _Pieces else text for key, text in value.items()}
    return value
