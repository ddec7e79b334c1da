"""What OpenAI keeps of answers unless it is told not to: their items, by the id of the answer and by their own.

Law: bounded, and each answer counts with all that led to it; the oldest is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from toolglot.simulator.replies.json_bytes import canonical
from toolglot.simulator.replies.refusals import Refusal

MOST_ANSWERS: Final = 500
MOST_BYTES: Final = 64 * 1024 * 1024

Item = dict[str, Any]


class Memory:
    """Stored answers of the Responses protocol."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._answers: OrderedDict[str, tuple[list[Item], int]] = OrderedDict()
        self._items: dict[str, Item] = {}
        self._size = 0

    def keep(self, id: str, items: list[Item], size: int) -> None:
        """An answer, with all items that led to it. One that is too large for all of the memory is not kept."""
        size = max(size, len(canonical(items)))
        if size > self._most:
            return
        while self._answers and (len(self._answers) >= MOST_ANSWERS or self._size + size > self._most):
            _, (forgotten, freed) = self._answers.popitem(last=False)
            self._size -= freed
            for item in forgotten:
                self._items.pop(item.get("id", ""), None)
        self._answers[id] = items, size
        self._items.update((item["id"], item) for item in items if isinstance(item.get("id"), str))
        self._size += size

    def joined(self, body: dict[str, Any]) -> dict[str, Any] | Refusal:
        """A request with everything that it refers to; a refusal where that is not there."""
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
        earlier: list[Item] = []
        previous = body.get("previous_response_id")
        if isinstance(previous, str):
            if previous not in self._answers:
                message = f"Previous response with id '{previous}' not found."
                return _missing(message, "previous_response_id", "previous_response_not_found")
            earlier = self._answers[previous][0]
        found: list[Item] = []
        ids = {id for kept in earlier if isinstance(id := kept.get("id"), str)}
        for item in items:
            known = self._known(item, ids)
            if isinstance(known, Refusal):
                return known
            found.append(known)
        rest = {key: value for key, value in body.items() if key != "previous_response_id"}
        return {**rest, "input": [*earlier, *found]}

    def _known(self, item: Any, earlier: set[str]) -> Any:
        """An item as it stands for itself, or the one that it refers to."""
        id = item.get("id") if isinstance(item, dict) else None
        if not isinstance(id, str):
            return item
        if id in earlier:
            words = f"Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            return _missing(words, "input")
        is_bare = item.get("type") == "reasoning" and not item.get("encrypted_content")
        if item.get("type") != "item_reference" and not is_bare:
            return item
        if id not in self._items:
            return _missing(f"Item with id '{id}' not found.", "input")
        return self._items[id]


def _missing(message: str, param: str, code: str = "") -> Refusal:
    return Refusal(kind="bad_request", message=message, param=param, code=code, rule="stored-items")
