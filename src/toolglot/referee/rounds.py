"""Which result answers which call: the turns with calls, and the results of each.

A round is a turn that calls, and the window after it in which results are expected: the tool messages that follow
it, or the next turn of the user. Where the protocol merges neighbours of one role (`merges`), a run of them is one
turn. Law: one pass, linear; a result is looked for by id among the calls of the nearest round before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from toolglot.referee.view import Message, PartView


class ResultPosition(Struct, frozen=True):
    """A result, and the index of its message."""

    item: PartView
    message: int
    is_near: bool
    """Whether it is in the window of its call's round."""
    order: int
    """The index of its call in the round."""


class CallRound(Struct):
    """A call and what answers it."""

    item: PartView
    message: int
    round: int
    order: int
    """Its index among the calls of its round."""
    answers: list[ResultPosition] = field(default_factory=list)


class Round(Struct):
    """A turn that calls, and the results in the window after it, in the order of the body."""

    first_message: int
    last_message: int
    calls: list[CallRound] = field(default_factory=list)
    near: list[ResultPosition] = field(default_factory=list)


class Pairing(Struct, frozen=True):
    rounds: tuple[Round, ...]
    orphans: tuple[PartView, ...]
    """Results without a call before them."""


def pair(messages: Sequence[Message], *, merges: bool) -> Pairing:
    return _Pairer(messages, merges=merges).run()


class _Pairer:
    def __init__(self, messages: Sequence[Message], *, merges: bool) -> None:
        self.messages = messages
        self.merges = merges
        self.rounds: list[Round] = []
        self.orphans: list[PartView] = []
        self.is_window = False
        self.last_of: dict[str, CallRound] = {}
        """The last call of each id."""
        self.open_ids: dict[str | None, deque[CallRound]] = {}
        self.open_names: dict[str | None, deque[CallRound]] = {}
        self.open: deque[CallRound] = deque()
        """The calls of the last round that may still be unanswered: by id, by name, and in order."""

    def run(self) -> Pairing:
        for index, message in enumerate(self.messages):
            self.is_window = self.is_window and self._keeps_window(index)
            for item in message.items:
                if item.kind == "call":
                    self._call(index, item)
                elif item.kind == "result":
                    self._result(index, item)
        return Pairing(tuple(self.rounds), tuple(self.orphans))

    def _keeps_window(self, index: int) -> bool:
        """Whether a message still belongs to the turn that calls, or to the answer to it."""
        role, before = self.messages[index].role, self.messages[index - 1].role
        if role == "tool":
            return any(item.kind == "result" for item in self.messages[index].items)
        return self.merges and (role == before or (role, before) == ("user", "assistant"))

    def _call(self, index: int, item: PartView) -> None:
        if not self._continues(index):
            self.rounds.append(Round(index, index))
            self.open_ids, self.open_names, self.open = {}, {}, deque()
        round_ = self.rounds[-1]
        round_.last_message = index
        self.is_window = True
        call = CallRound(item, index, len(self.rounds), len(round_.calls))
        round_.calls.append(call)
        self.open.append(call)
        self.open_ids.setdefault(item.id, deque()).append(call)
        self.open_names.setdefault(item.name, deque()).append(call)
        if item.id is not None:
            self.last_of[item.id] = call

    def _continues(self, index: int) -> bool:
        """Whether a call belongs to the round before it: the same message, or a neighbour that is merged with it."""
        if not self.rounds:
            return False
        is_run = self.merges and self.is_window and self.messages[index].role == self.messages[index - 1].role
        return index == self.rounds[-1].last_message or is_run

    def _result(self, index: int, item: PartView) -> None:
        call = self._find_call(item)
        if call is None:
            self.orphans.append(item)
            return
        is_near = self.is_window and call.round == len(self.rounds)
        answer = ResultPosition(item, index, is_near, call.order)
        call.answers.append(answer)
        if is_near:
            self.rounds[-1].near.append(answer)

    def _find_call(self, item: PartView) -> CallRound | None:
        if item.id is not None:
            found = _unanswered(self.open_ids.get(item.id)) or self.last_of.get(item.id)
            return found or (self._find_without_id(item) if None in self.open_ids else None)
        return self._find_without_id(item)

    def _find_without_id(self, item: PartView) -> CallRound | None:
        """Without an id the name pairs, and without a name the order; only in the window."""
        if not self.is_window:
            return None
        return _unanswered(self.open if item.name is None else self.open_names.get(item.name))


def _unanswered(calls: deque[CallRound] | None) -> CallRound | None:
    """The first call without a result; answered ones are dropped, so that each is looked at once."""
    while calls:
        if not calls[0].answers:
            return calls[0]
        calls.popleft()
    return None
