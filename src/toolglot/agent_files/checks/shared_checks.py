"""What can be wrong in the session file of any agent: lines that are not JSON, and ids that a provider refuses."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, encode_line, parse_line

LEGAL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Ids of calls that every provider of the agents accepts."""
LEGAL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
INTERRUPTED: Final = "[No result: the session ended before the result of this call was recorded. It may have run.]"
ORPHAN: Final = "[The result of a tool call that is not in this session:]"
MAX_OBJECTS: Final = 1000
"""Objects on one line that are looked for."""


def examine_lines(
    examination: Examination, lines: Sequence[FileLine], *, splits: bool = True
) -> list[tuple[int, dict[str, Any]]]:
    """The objects of the lines, with their numbers, without those that are broken.

    splits: whether to save the whole objects of a broken line.
    """
    values: list[tuple[int, dict[str, Any]]] = []
    for line in lines:
        if line.value is not None and not line.problem:
            if line is lines[-1] and not line.data.endswith(b"\n"):
                message = "the last line has no line feed: what the agent appends would be on the same line"
                examination.add("no-line-feed", message, line.number, "add one")
                examination.put(line.number, line.data + b"\n")
            values.append((line.number, line.value))
        elif line.value is not None:
            examination.add("bad-characters", f"it has {line.problem}", line.number, "replace them with U+FFFD")
            examination.put(line.number, encode_line(line.value))
        elif line.is_skipped:
            examination.add("broken-line", f"it cannot be read: {line.problem}", line.number)
        elif not line.is_blank:
            _examine_broken(examination, line, splits=splits)
    return values


def _examine_broken(examination: Examination, line: FileLine, *, splits: bool) -> None:
    found = _objects_in(line.data) if splits else []
    if found:
        message = f"it holds {len(found)} objects, or broken parts of some: {line.problem}"
        examination.add("broken-line", message, line.number, "write each whole object on a line of its own")
        examination.put(line.number, *map(encode_line, found))
        return
    kind = "cut-line" if line.is_cut else "broken-line"
    examination.add(kind, f"it cannot be read: {line.problem}", line.number, "remove it")
    examination.remove(line.number)


def _objects_in(data: bytes) -> list[dict[str, Any]]:
    """The whole objects on a line that is not one object: several, or one among NUL bytes."""
    text = data.replace(b"\0", b"").decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    position = 0
    while position < len(text) and len(found) < MAX_OBJECTS:
        if text[position] != "{":
            break
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        read = parse_line(1, json.dumps(value).encode() + b"\n").value if isinstance(value, dict) else None
        if read is not None:
            found.append(read)
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
    return found


def legal_id(id: str, salt: str, taken: set[str]) -> str:
    """An id that providers accept, the same for the same id and place, and that no other call has."""
    number = 0
    while True:
        made = "toolu_" + hashlib.sha256(f"{id}|{salt}|{number}".encode("utf-8", "replace")).hexdigest()[:24]
        if made not in taken:
            return made
        number += 1


def legal_name(name: str) -> str:
    """A name that providers accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed_tool"
