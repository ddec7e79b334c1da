"""What the chunks of a stream say beside its blocks, put together as a whole reply has it.

Chunks repeat fields of the reply (`created`, `system_fingerprint`), of the choice (`logprobs`, a filter's findings) and
of the message (`reasoning_details`, `annotations`, `audio`). The last value that says something counts; lists grow;
texts that come in pieces are joined. Law: what is kept is bounded by the limit of the reply.
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
_JOINED: Final = frozenset({"text", "summary", "data", "transcript", _SIGNATURE})
"""Texts that come in pieces, inside of objects. A signature may come again instead."""
_PARTS: Final = frozenset({"reasoning_details"})
"""Lists whose entries come in pieces."""


class _Pieces(list[str]):
    """A text that comes in pieces, joined once."""


class ReplyState:
    """What is known of the reply, of its choice and of its message so far."""

    def __init__(self, limits: Limits) -> None:
        self.id: str = ""
        self.model: str = ""
        self._left = limits.max_bytes
        self._body: Fields = {}
        self._choice: Fields = {"index": 0}
        self._message: Fields = {}
        self._early: Fields = {}
        """The fields of the reply when it started."""

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
                _set(self._choice, key, _grown(self._choice.get(key), value) if key == "logprobs" else value)

    def read_message(self, key: str, value: Any) -> None:
        """A field of a delta that no block has."""
        before = self._message.get(key)
        if key in _PARTS and type(value) is list:
            self._message[key] = _with_parts(before if type(before) is list else [], value)
        elif type(before) is dict and type(value) is dict:
            _extend(before, value)
        elif type(value) is dict:
            self._message[key] = dict(value)
        elif value is not None:
            self._message[key] = _grown(before, value)

    def keep(self, size: int) -> None:
        """Count what is kept."""
        self._left -= size
        if self._left < 0:
            raise LimitError("the reply is longer than its limit (max_bytes)", hint="raise max_bytes of the limits")

    def early(self) -> tuple[Extra | None, ChatReply]:
        """What is known of the reply when it starts."""
        choice = {key: value for key, value in self._choice.items() if type(value) is not dict}
        self._early = dict(self._body)
        return {PROTOCOL: dict(self._early)} if self._early else None, ChatReply(choice)

    def late(self) -> Extra | None:
        """Fields of the reply that are known only when it ends."""
        early = self._early
        new = {key: value for key, value in self._body.items() if key not in early or early[key] != value}
        return {PROTOCOL: new} if new else None

    def form(self, finish_reason: str | None) -> ChatReply:
        """How the whole reply is written."""
        return ChatReply(self._choice, finish_reason=finish_reason)

    def message(self) -> Extra | None:
        """Fields of the message beside its blocks."""
        return {PROTOCOL: {key: _whole(value) for key, value in self._message.items()}} if self._message else None


def _set(fields: Fields, key: str, value: Any) -> None:
    """A value counts if it says something, or if there is none."""
    if key not in fields or (value is not None and value not in ("", 0)):
        fields[key] = value


def _grown(before: Any, value: Any) -> Any:
    """Lists grow, objects of lists grow inside; of anything else the last counts."""
    if type(before) is list and type(value) is list:
        before.extend(value)
        return before
    if type(before) is dict and type(value) is dict:
        for key, inner in value.items():
            before[key] = _grown(before.get(key), inner) if inner is not None else before.get(key)
        return before
    return value


def _extend(entry: Fields, more: Fields) -> None:
    """More of an object whose texts come in pieces."""
    for key, value in more.items():
        before = entry.get(key)
        if key == _SIGNATURE and before == value:
            continue
        if key in _JOINED and type(value) is str and type(before) is _Pieces:
            before.append(value)
        elif key in _JOINED and type(value) is str and type(before) is str:
            entry[key] = _Pieces((before, value))
        elif value is not None or key not in entry:
            entry[key] = value


def _with_parts(entries: list[Any], more: list[Any]) -> list[Any]:
    """Entries of which the last goes on as long as its type, its index and its id stay."""
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
    """Whether a part is more of an entry. An id need not be said again."""
    id, known = part.get("id"), last.get("id")
    is_other = id is not None and known is not None and id != known
    return not is_other and all(last.get(key) == part.get(key) for key in ("type", "index"))


def _whole(value: Any) -> Any:
    """A field of the message with its texts joined."""
    if type(value) is list:
        return [_whole(entry) if type(entry) is dict else entry for entry in value]
    if type(value) is dict:
        return {key: "".join(text) if type(text) is _Pieces else text for key, text in value.items()}
    return value
