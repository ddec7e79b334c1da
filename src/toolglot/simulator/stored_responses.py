"""The replies that OpenAI stores unless a request says `"store": false`: their items, by their own ids and by the
reply's.

Law: memory is bounded. Each reply counts with all items that led to it, and the oldest is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from toolglot.simulator.replies.json_bytes import canonical_bytes
from toolglot.simulator.replies.refusals import Refusal

MAX_RESPONSES: Final = 500
MAX_BYTES: Final = 64 * 1024 * 1024

Item = dict[str, Any]


class StoredItems:
    """Stored replies of the Responses protocol."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._replies: OrderedDict[str, tuple[list[Item], int]] = OrderedDict()
        self._items: dict[str, Item] = {}
        self._size = 0

    def keep(self, id: str, items: list[Item], size: int) -> None:
        """Store a reply, with all items that led to it, unless it alone is larger than the limit."""
        size = max(size, len(canonical_bytes(items)))
        if size > self._max_bytes:
            return
        while self._replies and (len(self._replies) >= MAX_RESPONSES or self._size + size > self._max_bytes):
            _, (dropped, freed) = self._replies.popitem(last=False)
            self._size -= freed
            for item in dropped:
                self._items.pop(item.get("id", ""), None)
        self._replies[id] = items, size
        self._items.update((item["id"], item) for item in items if isinstance(item.get("id"), str))
        self._size += size

    def resolve(self, body: dict[str, Any]) -> dict[str, Any] | Refusal:
        """A request with everything that it refers to; a refusal where that is not stored."""
        content = body.get("input")
        items = [{"role": "user", "content": content}] if isinstance(content, str) else list(content or ())
        earlier: list[Item] = []
        previous = body.get("previous_response_id")
        if isinstance(previous, str):
            if previous not in self._replies:
                message = f"Previous response with id '{previous}' not found."
                return _refusal(message, "previous_response_id", "previous_response_not_found")
            earlier = self._replies[previous][0]
        own: list[Item] = []
        ids = {id for item in earlier if isinstance(id := item.get("id"), str)}
        for item in items:
            resolved = self._resolve_item(item, ids)
            if isinstance(resolved, Refusal):
                return resolved
            own.append(resolved)
        rest = {key: value for key, value in body.items() if key != "previous_response_id"}
        return {**rest, "input": [*earlier, *own]}

    def _resolve_item(self, item: Any, earlier: set[str]) -> Any:
        """The item itself, or the one that it refers to."""
        id = item.get("id") if isinstance(item, dict) else None
        if not isinstance(id, str):
            return item
        if id in earlier:
            message = f"Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            return _refusal(message, "input")
        is_bare = item.get("type") == "reasoning" and not item.get("encrypted_content")
        if item.get("type") != "item_reference" and not is_bare:
            return item
        if id not in self._items:
            return _refusal(f"Item with id '{id}' not found.", "input")
        return self._items[id]


def _refusal(message: str, param: str, code: str = "") -> Refusal:
    return Refusal(kind="bad_request", message=message, param=param, code=code, rule="stored-items")
