"""Calls whose arguments come in parts, as Vertex streams them on request.

    {"name": "f", "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Kö", "willContinue": true}], "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.city", "stringValue": "ln"}], "willContinue": true}
    {}

Each part has the path of a value; a string may come in pieces. The last part has no `willContinue`.
Law: work is proportional to the input; a list grows by one item at a time, and the nesting is bounded.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

from toolglot.conversation import ToolCall
from toolglot.errors import InputError, quote
from toolglot.protocols.fields.reading import Fields

MAX_STEPS: Final = 100

_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_VALUES: Final = ("stringValue", "numberValue", "boolValue", "string_value", "number_value", "bool_value")
_NULLS: Final = ("nullValue", "null_value")
_IN_PARTS: Final = ("partialArgs", "partial_args", "willContinue", "will_continue")

Path = tuple[str | int, ...]


def has_partial_arguments(call: Fields) -> bool:
    """Whether this is the beginning of such a call."""
    return any(call.get(key) for key in _IN_PARTS)


class PartialArguments:
    """One call. `add` returns whether it is whole."""

    def __init__(self, call: Fields) -> None:
        self._name: Any = call.get("name")
        self._id: Any = call.get("id")
        self._signature: Any = None
        initial = call.get("args")
        self._arguments: Fields = dict(initial) if type(initial) is dict else {}
        self._path: Path = ()
        self._pieces: list[str] = []

    def add(self, part: Fields, call: Fields) -> bool:
        if type(self._name) is not str:
            raise InputError("a call without a name", path=".name")
        if type(part.get("thoughtSignature")) is str:
            self._signature = part["thoughtSignature"]
        pieces: Any = call.get("partialArgs") or call.get("partial_args") or []
        if type(pieces) is not list:
            raise InputError("the parts of the arguments are not a list", path=".partialArgs")
        for piece in pieces:
            self._add_piece(piece)
        return not (call.get("willContinue") or call.get("will_continue"))

    def is_of(self, call: Fields) -> bool:
        """Whether this continues the same call: only a new one has another name."""
        return type(call.get("name")) is not str or call["name"] == self._name

    @property
    def call(self) -> ToolCall:
        """The call so far."""
        self._end_text()
        name, id = (value if type(value) is str else "" for value in (self._name, self._id))
        return ToolCall(id, name, self._arguments, signature=self._signature)

    def _add_piece(self, piece: Any) -> None:
        if type(piece) is not dict:
            raise InputError("a part of the arguments is not an object", path=".partialArgs")
        path = _path(piece.get("jsonPath", piece.get("json_path")))
        value = _value(piece)
        if path != self._path:
            self._end_text()
        if type(value) is not str:
            self._end_text()
            _set_value(self._arguments, path, value)
            return
        self._path = path
        self._pieces.append(value)
        if not (piece.get("willContinue") or piece.get("will_continue")):
            self._end_text()

    def _end_text(self) -> None:
        if self._path:
            _set_value(self._arguments, self._path, "".join(self._pieces))
            self._path = ()
            self._pieces.clear()


def _value(piece: Fields) -> Any:
    for key in _VALUES:
        if piece.get(key) is not None:
            return piece[key]
    if any(key in piece for key in _NULLS):
        return None
    return ""  # a string that begins or ends without a piece


def _path(written: object) -> Path:
    if not isinstance(written, str) or not written.startswith("$") or len(written) == 1:
        raise InputError(f"expected the path of an argument, got {quote(written)}", path=".jsonPath")
    steps: list[str | int] = []
    position = 1
    while position < len(written):
        found = _STEP.match(written, position)
        if found is None or len(steps) == MAX_STEPS:
            raise InputError(f"{quote(written)} is not the path of an argument", path=".jsonPath")
        position = found.end()
        index = found[2]
        steps.append(int(index) if index is not None else found[1] or found[3] or found[4] or "")
    return tuple(steps)


def _set_value(arguments: Fields, path: Path, value: Any) -> None:
    holder: Any = arguments
    for step, following in itertools.pairwise(path):
        holder = _get_or_set(holder, step, [] if type(following) is int else {})
    _get_or_set(holder, path[-1], value, is_last=True)


def _get_or_set(holder: Any, step: str | int, value: Any, *, is_last: bool = False) -> Any:
    """The value of a holder at a step. Sets it if there is none, or at the last step."""
    if type(holder) is list and type(step) is int and step <= len(holder):
        if step == len(holder):
            holder.append(value)
        elif is_last:
            holder[step] = value
        return holder[step]
    if type(holder) is dict and type(step) is str:
        if is_last or step not in holder:
            holder[step] = value
        return holder[step]
    raise InputError("a path of the arguments does not fit what came before", path=".jsonPath")
