"""Which call a result belongs to.

A result with an id belongs to the nearest preceding turn that has an unanswered call with that id, and
there to the first such call; if none precedes, to the first that follows; when all such calls are
answered, or when it only repeats the result of one of the last of them, it is a duplicate, which
never goes to the call of an older turn. A result with no id, or with one that no call has, is matched by name and then
by position: a guess, which is withdrawn as soon as a result or a call with the right id appears.

Laws: constant work per call and result, however long the history. A guess never looks past a user's
turn for a result that has an id, and never contradicts the name on a result.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

from toolglot.conversation import MatchedBy

MAX_COMPARED: Final = 8
"""The number of later calls with its id that a result is compared with."""


class BlockPosition(NamedTuple):
    """Where a block is: the position of its turn, and its own in the turn."""

    turn: int
    block: int


class Match(NamedTuple):
    """A result and the call that it was matched with; without a call, it is an orphan."""

    position: BlockPosition
    call_id: str | None
    matched_by: MatchedBy
    duplicate: bool = False


class _Call(NamedTuple):
    name: str
    keys: tuple[str, ...]
    position: tuple[int, int]
    """Turn, and index among the calls of the turn."""


class _Answer(NamedTuple):
    position: BlockPosition | None
    is_guess: bool


class _Stray(NamedTuple):
    """A result whose id no call has so far."""

    position: BlockPosition
    raw_id: str | None
    name: str


class _OpenCalls:
    """Calls that wait for a result, grouped by turn. Closed ones are dropped when they come to the top."""

    __slots__ = ("_heaps", "_turns")

    def __init__(self) -> None:
        self._turns: list[int] = []
        self._heaps: list[list[tuple[int, str]]] = []

    def push(self, turn: int, index: int, call_id: str) -> None:
        where = len(self._turns) if not self._turns or self._turns[-1] < turn else bisect_left(self._turns, turn)
        if where == len(self._turns) or self._turns[where] != turn:
            self._turns.insert(where, turn)
            self._heaps.insert(where, [])
        heapq.heappush(self._heaps[where], (index, call_id))

    def nearest(self, is_closed: Callable[[str], bool], *, after_turn: int = -1) -> str | None:
        """The first open call of the latest turn that has one."""
        while self._turns and self._turns[-1] > after_turn:
            heap = self._heaps[-1]
            while heap and is_closed(heap[0][1]):
                heapq.heappop(heap)
            if heap:
                return heap[0][1]
            self._turns.pop()
            self._heaps.pop()
        return None


class Matcher:
    """The calls and results so far, and which belong together."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._by_key: dict[str, list[str]] = {}
        self._answers: dict[str, _Answer] = {}
        self._open = _OpenCalls()
        self._open_by_key: dict[str, _OpenCalls] = {}
        self._open_by_name: dict[str, _OpenCalls] = {}
        self._strays: dict[str, list[_Stray]] = {}
        self._guesses: dict[BlockPosition, tuple[str, _Stray]] = {}
        self._last_user_turn = -1

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._calls

    def note_user_turn(self, turn: int) -> None:
        """Note a user's turn: results with an unknown id are not guessed into turns before it."""
        self._last_user_turn = turn

    # --- calls ----------------------------------------------------------------------------------

    def add_call(self, call_id: str, raw_id: str | None, name: str, turn: int, index: int) -> list[Match]:
        """Add a call. Returns the earlier results that belong to it."""
        keys = (call_id,) if raw_id is None or raw_id == call_id else (call_id, raw_id)
        self._calls[call_id] = _Call(name, keys, (turn, index))
        for key in keys:
            self._by_key.setdefault(key, []).append(call_id)
        self._reopen(call_id)
        found = [stray for key in keys for stray in self._strays.pop(key, ())]
        for index, stray in enumerate(found):
            self._take_back_guess(stray.position)
            if index == 0:
                self._answers[call_id] = _Answer(stray.position, is_guess=False)
        return [Match(stray.position, call_id, "id", duplicate=n > 0) for n, stray in enumerate(found)]

    def _reopen(self, call_id: str) -> None:
        call = self._calls[call_id]
        self._open.push(*call.position, call_id)
        self._open_by_name.setdefault(call.name, _OpenCalls()).push(*call.position, call_id)
        for key in call.keys:
            self._open_by_key.setdefault(key, _OpenCalls()).push(*call.position, call_id)

    def _take_back_guess(self, position: BlockPosition) -> None:
        guess = self._guesses.pop(position, None)
        if guess is not None:
            call_id, _ = guess
            self._answers.pop(call_id, None)
            if call_id in self._calls:
                self._reopen(call_id)

    # --- results --------------------------------------------------------------------------------

    def match_by_id(
        self,
        raw_id: str | None,
        position: BlockPosition,
        *,
        answers: bool = True,
        repeats: Callable[[BlockPosition], bool] = lambda _: False,
    ) -> list[Match]:
        """The call that has this id, with any guess that is withdrawn for it; empty if no call has it.

        `answers`: the result is an answer, so that its call waits for no other. `repeats` says whether it equals
        another one.
        """
        if raw_id is None or raw_id not in self._by_key:
            return []
        call_id = self._open_by_key[raw_id].nearest(self._is_answered_for_sure)
        last = self._by_key[raw_id][-1]
        if call_id is None:
            return [Match(position, last, "id", duplicate=True)]
        if call_id != last:
            answered = self._same_result_later(raw_id, call_id, repeats)
            if answered is not None:
                return [Match(position, answered, "id", duplicate=True)]
        displaced = self._answer_for_sure(call_id, position) if answers else []
        return [Match(position, call_id, "id"), *displaced]

    def _same_result_later(self, raw_id: str, older: str, repeats: Callable[[BlockPosition], bool]) -> str | None:
        """The call of a later turn that has the same result, for a result that could answer an older one.

        In one turn, equal results of equal calls are common.
        """
        turn = self._calls[older].position[0]
        for call_id in self._by_key[raw_id][: -MAX_COMPARED - 1 : -1]:
            if self._calls[call_id].position[0] <= turn:
                break
            answer = self._answers.get(call_id)
            if answer is not None and answer.position is not None and repeats(answer.position):
                return call_id
        return None

    def match_exactly(self, call_id: str, position: BlockPosition, *, answers: bool = True) -> list[Match]:
        """The call with this canonical id, whatever raw ids others have."""
        if self._is_answered_for_sure(call_id):
            return [Match(position, call_id, "id", duplicate=True)]
        displaced = self._answer_for_sure(call_id, position) if answers else []
        return [Match(position, call_id, "id"), *displaced]

    def _answer_for_sure(self, call_id: str, position: BlockPosition) -> list[Match]:
        guessed = self._answers.get(call_id)
        self._answers[call_id] = _Answer(position, is_guess=False)
        if guessed is None or guessed.position is None:
            return []
        _, stray = self._guesses.pop(guessed.position)
        return [self._guess(stray)]

    def guess(self, raw_id: str | None, name: str, position: BlockPosition, *, answers: bool = True) -> Match:
        """A call for a result that no id decides, by name and then by position."""
        stray = _Stray(position, raw_id, name)
        if raw_id is not None:
            self._strays.setdefault(raw_id, []).append(stray)
        return self._guess(stray, answers=answers)

    def _guess(self, stray: _Stray, *, answers: bool = True) -> Match:
        after = -1 if stray.raw_id is None else self._last_user_turn
        matched_by: MatchedBy = "name" if stray.name else "position"
        calls = self._open_by_name.get(stray.name) if stray.name else self._open
        call_id = calls.nearest(self._answers.__contains__, after_turn=after) if calls is not None else None
        if call_id is None and stray.name:
            call_id, matched_by = self._nameless_call(after), "position"
        if call_id is None:
            return Match(stray.position, None, "orphan")
        if answers:
            self._answers[call_id] = _Answer(stray.position, is_guess=True)
            self._guesses[stray.position] = (call_id, stray)
        return Match(stray.position, call_id, matched_by)

    def _nameless_call(self, after: int) -> str | None:
        """An open call that has no name, for a result that has one."""
        calls = self._open_by_name.get("")
        return calls.nearest(self._answers.__contains__, after_turn=after) if calls is not None else None

    def _is_answered_for_sure(self, call_id: str) -> bool:
        answer = self._answers.get(call_id)
        return answer is not None and not answer.is_guess

    # --- restoring a history --------------------------------------------------------------------

    def restore_result(
        self,
        call_id: str,
        raw_id: str | None,
        name: str,
        matched_by: MatchedBy,
        position: BlockPosition,
        *,
        answers: bool,
    ) -> list[Match]:
        """Restore a result that was matched before. Returns it with the guess that is withdrawn for it."""
        stray = _Stray(position, raw_id, name)
        if matched_by != "id" and raw_id is not None:
            self._strays.setdefault(raw_id, []).append(stray)
        if not answers or matched_by == "orphan":
            return []
        if matched_by == "id":
            return [] if self._is_answered_for_sure(call_id) else self._answer_for_sure(call_id, position)
        known = self._answers.get(call_id)
        if known is not None and (known.position is not None or not known.is_guess):
            return [self._guess(stray)]
        self._answers[call_id] = _Answer(position, is_guess=True)
        self._guesses[position] = (call_id, stray)
        return []

    def restore_answered(self, call_id: str, *, is_guess: bool) -> None:
        """Restore a call whose result is known, although possibly no turn holds it any more."""
        self._answers.setdefault(call_id, _Answer(None, is_guess))
