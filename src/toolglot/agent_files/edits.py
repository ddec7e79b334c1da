"""Edits of the lines of a session file, and what an examination found.

Law: an edit names a line and what is to stand there instead; every other line keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.agent_files.json_lines import FileLine, encode_line, parse_line
from toolglot.agent_files.values import SessionFault

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def differs(one: Any, other: Any) -> bool:
    """Whether two values are not the same JSON: in Python, `true` equals 1."""
    return one != other or bool(_ENCODER.encode(one) != _ENCODER.encode(other))


class Examination:
    """Collects the faults of a file, and the edits that fix them.

    includes_holes: whether edits are made that are only made on request.
    """

    def __init__(self, *, includes_holes: bool = False) -> None:
        self.includes_holes = includes_holes
        self.faults: list[SessionFault] = []
        self._replaced: dict[int, list[bytes]] = {}
        self._values: dict[int, dict[str, Any]] = {}
        self._after: dict[int, list[dict[str, Any]]] = {}

    @property
    def has_edits(self) -> bool:
        return bool(self._replaced or self._values or self._after)

    def add(self, kind: str, message: str, line: int = 0, fix: str = "", *, only_if_asked: bool = False) -> bool:
        """Note a fault; true if it is to be fixed."""
        self.faults.append(SessionFault(kind=kind, message=message, line=line, fix=fix, only_if_asked=only_if_asked))
        return bool(fix) and (self.includes_holes or not only_if_asked)

    def remove(self, line: int) -> None:
        self._replaced[line] = []

    def put(self, line: int, *data: bytes) -> None:
        """Other lines in the place of this one."""
        self._replaced[line] = list(data)

    def value(self, line: int, original: dict[str, Any]) -> dict[str, Any]:
        """The object of a line, as it is after the edits so far; replace it with `set_value`."""
        return self._values.get(line, original)

    def set_value(self, line: int, value: dict[str, Any]) -> None:
        self._values[line] = value

    def inserted(self, line: int) -> dict[str, Any]:
        """The fields of the objects that were inserted behind a line."""
        return {name: field for value in self._after.get(line, ()) for name, field in value.items()}

    def insert_after(self, line: int, value: dict[str, Any]) -> None:
        """A new object behind a line; line 0 is the start of the file."""
        self._after.setdefault(line, []).append(value)

    def apply(self, lines: Sequence[FileLine]) -> list[FileLine]:
        """The lines of the file with the edits."""
        out: list[tuple[bytes, int]] = [(encode_line(value), 0) for value in self._after.get(0, ())]
        for line in lines:
            origin = line.origin or line.number
            if line.number in self._replaced:
                out += [(data, origin) for data in self._replaced[line.number]]
            elif line.number in self._values and differs(line.value, self._values[line.number]):
                out.append((encode_line(self._values[line.number]), origin))
            else:
                out.append((line.data, origin))
            if line.number in self._after:
                if out and not out[-1][0].endswith(b"\n"):
                    out[-1] = (out[-1][0] + b"\n", out[-1][1])
                out += [(encode_line(value), origin) for value in self._after[line.number]]
        return [replace(parse_line(number, data), origin=origin) for number, (data, origin) in enumerate(out, 1)]

    def located(self, lines: Sequence[FileLine]) -> list[SessionFault]:
        """The faults with the lines of the original file."""
        origins = {line.number: line.origin or line.number for line in lines}
        return [replace(fault, line=origins.get(fault.line, fault.line)) for fault in self.faults]
