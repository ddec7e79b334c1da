"""Tells deltas that hold all of the text so far, as some servers send them, from those that hold only what is new.

    d1 shown ─▶ d2 does not begin with d1, or is the same: deltas, from now on
             ─▶ d2 continues d1, and d1 is too long for a coincidence: snapshots, from now on
             ─▶ d2 continues d1, and d1 is short: both are possible, so d2 waits
    waiting  ─▶ the same with each delta and the one before it

Law: work is proportional to the text, and no text is lost: if in doubt, they are deltas.
"""

from __future__ import annotations

from typing import Final

_SURE_LENGTH: Final = 16
_SURE_LETTERS: Final = 5
"""The length and the number of different characters of a text that no model repeats by coincidence."""
_SURE_TIMES: Final = 2
"""Deltas that wait at the end of a short text, from which on they count as snapshots."""
_MAX_HELD: Final = 64
"""Deltas that wait. After so many, the text is a line of dashes or the like."""


class Snapshots:
    """Watches the text of one reply until it is clear what its deltas hold. Keeps nothing of it after that."""

    __slots__ = ("_held", "_last", "_shown", "are_found")

    def __init__(self) -> None:
        self.are_found: bool = False
        """Whether deltas hold all of the text so far."""
        self._shown = 0
        """The length of the text that is in the events."""
        self._last = ""
        """The previous delta."""
        self._held: list[str] = []

    @property
    def is_waiting(self) -> bool:
        return bool(self._held)

    def take(self, delta: str) -> tuple[str, bool]:
        """The new text of a delta, as far as it is clear, and whether to keep watching."""
        last, self._last = self._last, delta
        if self.are_found:
            if not delta.startswith(last):
                self._last, self._shown = last + delta, self._shown + len(delta)
                return delta, True
            new, self._shown = delta[self._shown :], len(delta)
            return new, True
        if not last:
            self._shown = len(delta)
            return delta, True
        continues = delta.startswith(last) and (len(delta) > len(last) or bool(self._held))
        if continues and _is_sure(last):
            self.are_found, self._held = True, []
            new, self._shown = delta[self._shown :], len(delta)
            return new, True
        self._held.append(delta)
        if continues and len(self._held) < _MAX_HELD:
            return "", True
        held, self._held = self._held, []
        return "".join(held), False

    def release(self) -> str:
        """The text that waited, at the end of the text or before something else."""
        held, self._held = self._held, []
        if len(held) >= _SURE_TIMES and len(set(held[0])) >= _SURE_LETTERS:
            self.are_found = True
            new, self._shown = held[-1][self._shown :], len(held[-1])
            return new
        return "".join(held)


def _is_sure(text: str) -> bool:
    return len(text) >= _SURE_LENGTH and len(set(text)) >= _SURE_LETTERS
