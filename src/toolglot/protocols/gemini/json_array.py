"""Google's stream for clients that do not ask for events: one JSON array that grows.

[{…},\r\n{…}]
"""

from __future__ import annotations

from typing import Final

_MARK: Final = b"data:"


class JsonArray:
    """Whole events in, pieces of the array out."""

    CONTENT_TYPE = "application/json"

    def __init__(self) -> None:
        self._is_begun = False

    def begin(self) -> None:
        """Note that something of the array has been written by somebody else."""
        self._is_begun = True

    def add(self, events: bytes) -> bytes:
        """What whole events become."""
        pieces: list[bytes] = []
        for line in events.splitlines():
            if line.startswith(_MARK):
                pieces.append((b",\r\n" if self._is_begun else b"[") + line[len(_MARK) :].strip())
                self._is_begun = True
        return b"".join(pieces)

    def end(self) -> bytes:
        return b"]" if self._is_begun else b"[]"
