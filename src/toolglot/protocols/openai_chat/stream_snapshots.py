"""Deltas of text that each hold all of it so far, as some servers send them, told from deltas that hold what is new.

    d1 shown ─▶ d2 does not begin with d1, or is the same: deltas, for good
             ─▶ d2 begins with d1 and goes on, and d1 is long enough to be no chance: snapshots, for good
             ─▶ d1 is short: both are possible, so d2 waits
    waiting  ─▶ the same with each that follows, and the one before it

Law: work is in proportion to what came, and no text is lost: what cannot be told apart is taken for deltas.
"""

from __future__ import annotations

from typing import Final

_SURE_LENGTH: Final = 16
_SURE_LETTERS: Final = 5
"""How long a repeated text is, and how many different characters it has, that no model writes by chance twice."""
_SURE_TIMES: Final = 2
"""How many waited at the end of a short text until they are taken for snapshots."""
_MAX_HELD: Final = 64
"""How many deltas wait; a text of so many that is still not sure is a line of dashes, or the like."""


class Snapshots:
    """Watches the text of one reply until it is known what its deltas hold. None of it is kept after that."""

    __slots__ = ("_held", "_last", "_shown", "are_found")

    def __init__(self) -> None:
        self.are_found: bool = False
        """Whether deltas hold all of the text so far."""
        self._shown = 0
        """How much of the text was told."""
        self._last = ""
        """The delta before."""
        self._held: list[str] = []

    @property
    def is_waiting(self) -> bool:
        return bool(self._held)

    def take(self, delta: str) -> tuple[str, bool]:
        """What is new by a delta, as far as that is known, and whether to go on watching."""
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
        goes_on = delta.startswith(last) and (len(delta) > len(last) or bool(self._held))
        if goes_on and _is_sure(last):
            self.are_found, self._held = True, []
            new, self._shown = delta[self._shown :], len(delta)
            return new, True
        self._held.append(delta)
        if goes_on and len(self._held) < _MAX_HELD:
            return "", True
        held, self._held = self._held, []
        return "".join(held), False

    def release(self) -> str:
        """What waited, now that nothing more of the text comes, or comes next."""
        held, self._held = self._held, []
        if len(held) >= _SURE_TIMES and len(set(held[0])) >= _SURE_LETTERS:
            self.are_found = True
            new, self._shown = held[-1][self._shown :], len(held[-1])
            return new
        return "".join(held)


def _is_sure(text: str) -> bool:
    return len(text) >= _SURE_LENGTH and len(set(text)) >= _SURE_LETTERS
