"""The conversations of OpenAI's Responses protocol (`/v1/conversations`), for any upstream.

    c:<conversation>            when it was made, and its metadata
    t:<conversation>:<moment>   items that were added together: those of a response, or some of a client

A response that names its `conversation` gets all of its items before its own input, and adds its input and output.

Laws: a client finds nothing of another client. A conversation is limited in bytes and in additions. One that is used
does not expire. Items that were added stay in the order in which they were added.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.errors import LimitError
from toolglot.gateway.endpoints import response_errors
from toolglot.gateway.state.response_items import Item, page, with_listed_ids
from toolglot.gateway.state.stored_responses import MAX_BYTES, MAX_LINKS, is_id, read_row
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.referee.readers.forms import look
from toolglot.referee.readers.forms_openai_responses import ITEM
from toolglot.store import RowStore, Store

KIND: Final = "conversations"
MAX_ADDED: Final = 20
"""Items that a client may add at once."""
_MAX_PAIRS: Final = 16
_MAX_NAME: Final = 64
_MAX_TEXT: Final = 512
_MAX_PATH: Final = 200
_ROWS: Final = 200
"""Rows of one call to the store."""

Fields = dict[str, Any]


class ConversationTurn(Struct, frozen=True):
    """Items that were added together."""

    key: str
    stored_by: str
    """The upstream that has stored them itself; empty: none."""
    kept: float
    items: list[Any]


class Conversations:
    """Conversations of all clients; without a store, none."""

    def __init__(
        self,
        store: Store | None,
        *,
        seconds: float,
        late: RowStore | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """late: takes the items of a response that has been paid for, whatever the store does."""
        self._store = store
        self._late = late or store
        self._seconds = seconds
        self._clock = clock

    # --- requests to models -------------------------------------------------------------------------

    async def turns(self, client: str, id: str) -> list[ConversationTurn] | None:
        """All items of a conversation; None: there is no such conversation."""
        if self._store is None or not is_id(id):
            return None
        found = await self._store.find(KIND, client, [f"c:{id}"])
        if not found:
            return None
        turns: list[ConversationTurn] = []
        after, size = "", 0
        while True:
            rows = await self._store.scan(KIND, client=client, prefix=f"t:{id}:", after=after, limit=_ROWS)
            for row in rows:
                size += len(row.value or b"")
                turns.append(_read_turn(row.key, row.value or b""))
            if size > MAX_BYTES or len(turns) > MAX_LINKS:
                raise response_errors.long_conversation(id)
            if len(rows) < _ROWS:
                break
            after = rows[-1].cursor
        await self._renew(client, id, found[f"c:{id}"], turns)
        return turns

    async def append(
        self, client: str, id: str, items: Sequence[Any], *, stored_by: str = "", last: str = ""
    ) -> list[Item] | None:
        """Add items. Returns them with their ids; None: they are too large.

        last: the key of the last turn that was there; the new one comes behind it.
        """
        stem = secrets.token_hex(12)
        listed = with_listed_ids(items, f"{stem}_")
        now = self._clock()
        moment = max(int(now * 1_000_000), _moment(last) + 1)
        row = json_bytes({"home": stored_by, "kept": now, "items": listed})
        if len(row) > MAX_BYTES:
            return None
        try:
            if self._late is not None:
                await self._late.keep(
                    KIND, client, {f"t:{id}:{moment:017d}-{stem[:6]}": row}, until=now + self._seconds
                )
        except LimitError:
            return None
        return listed

    async def _renew(self, client: str, id: str, head: bytes, turns: Sequence[ConversationTurn]) -> None:
        """Renew rows whose time is half over."""
        now = self._clock()
        for turn in turns:
            if turn.kept + self._seconds / 2 < now:
                row = {"home": turn.stored_by, "kept": now, "items": turn.items}
                await self._keep(client, {turn.key: json_bytes(row)})
        if turns and read_row(head).get("kept", 0) + self._seconds / 2 < now:
            await self._keep(client, {f"c:{id}": json_bytes({**read_row(head), "kept": now})})

    # --- endpoints ----------------------------------------------------------------------------------

    async def serve(
        self, client: str, action: str, method: str, name: str, part: str, body: Fields, query: Mapping[str, str]
    ) -> Fields:
        """The body for an endpoint."""
        if self._store is None:
            message = "Conversations need the gateway's store, which is off (store in [gateway])."
            raise response_errors.invalid("conversation", message)
        if action == "conversations":
            return await self._create(client, body)
        if action == "conversation":
            return await self._serve_one(client, method, name, body)
        turns = await self.turns(client, name)
        if turns is None:
            raise response_errors.missing_conversation(name)
        if action == "conversation_item":
            return await self._serve_item(client, method, name, part, turns)
        if method == "POST":
            last = turns[-1].key if turns else ""
            added = await self._add(client, name, _items(body, is_required=True), last)
            return page(added, {"order": "asc", "limit": "100"})
        return page([item for turn in turns for item in turn.items], query)

    async def _create(self, client: str, body: Fields) -> Fields:
        metadata, items = _metadata(body), _items(body)
        id = f"conv_{secrets.token_hex(24)}"
        head = {"created": int(self._clock()), "metadata": metadata, "kept": self._clock()}
        if items:
            await self._add(client, id, items, "")
        await self._keep(client, {f"c:{id}": json_bytes(head)})
        return _shown(id, head)

    async def _serve_one(self, client: str, method: str, id: str, body: Fields) -> Fields:
        head = await self._head(client, id)
        if method == "DELETE":
            await self._delete(client, id)
            return {"id": id, "object": "conversation.deleted", "deleted": True}
        if method == "POST":
            head = {**head, "metadata": _metadata(body)}
            await self._keep(client, {f"c:{id}": json_bytes(head)})
        return _shown(id, head)

    async def _serve_item(
        self, client: str, method: str, id: str, item_id: str, turns: Sequence[ConversationTurn]
    ) -> Fields:
        for turn in turns:
            for item in turn.items:
                if item.get("id") != item_id:
                    continue
                if method != "DELETE":
                    return dict(item)
                rest = [other for other in turn.items if other is not item]
                row = {"home": turn.stored_by, "kept": turn.kept, "items": rest}
                await self._keep(client, {turn.key: json_bytes(row)})
                return _shown(id, await self._head(client, id))
        raise response_errors.missing_item(item_id, "item_id")

    async def _add(self, client: str, id: str, items: Sequence[Any], last: str) -> list[Item]:
        added = await self.append(client, id, items, last=last)
        if added is None:
            raise response_errors.long_conversation(id)
        return added

    async def _delete(self, client: str, id: str) -> None:
        assert self._store is not None  # noqa: S101 - `serve` has checked it
        await self._store.remove(KIND, client, [f"c:{id}"])
        while rows := await self._store.scan(KIND, client=client, prefix=f"t:{id}:", limit=_ROWS):
            await self._store.remove(KIND, client, [row.key for row in rows])

    async def _head(self, client: str, id: str) -> Fields:
        found = await self._store.find(KIND, client, [f"c:{id}"]) if self._store is not None and is_id(id) else {}
        if not found:
            raise response_errors.missing_conversation(id)
        head: Fields = read_row(found[f"c:{id}"])
        return head

    async def _keep(self, client: str, rows: Mapping[str, bytes]) -> None:
        if self._store is not None:
            await self._store.keep(KIND, client, rows, until=self._clock() + self._seconds)


def conversation_of(fields: Mapping[str, Any]) -> str:
    """The conversation that a request names; empty: none."""
    value = fields.get("conversation")
    if type(value) is dict:
        value = value.get("id")
    return value if type(value) is str else ""


def _read_turn(key: str, row: bytes) -> ConversationTurn:
    fields = read_row(row)
    return ConversationTurn(key, fields["home"], fields["kept"], fields["items"])


def _moment(key: str) -> int:
    """When a turn was added, by its key."""
    text = key.rpartition(":")[2].partition("-")[0]
    return int(text) if text.isdigit() else 0


def _shown(id: str, head: Fields) -> Fields:
    return {"id": id, "object": "conversation", "created_at": head["created"], "metadata": head["metadata"]}


def _metadata(body: Fields) -> Fields:
    value = body.get("metadata")
    if value is None:
        return {}
    is_right = type(value) is dict and len(value) <= _MAX_PAIRS
    if not is_right or any(len(name) > _MAX_NAME for name in value):
        raise response_errors.invalid(
            "metadata", f"Invalid 'metadata': expected at most {_MAX_PAIRS} pairs of strings."
        )
    for name, text in value.items():
        if type(text) is not str or len(text) > _MAX_TEXT:
            message = f"Invalid 'metadata.{name}': expected a string of at most {_MAX_TEXT} characters."
            raise response_errors.invalid("metadata", message)
    return dict(value)


def _items(body: Fields, *, is_required: bool = False) -> list[Any]:
    items = body.get("items")
    if items is None and not is_required:
        return []
    if type(items) is not list or len(items) > MAX_ADDED or not all(type(item) is dict for item in items):
        raise response_errors.invalid("items", f"Invalid 'items': expected a list of at most {MAX_ADDED} items.")
    for index, item in enumerate(items):
        for fault in look(item, ITEM, f"items[{index}]").shapes:
            path = fault.path[:_MAX_PATH]
            raise response_errors.invalid(path, f"Invalid '{path}': {fault.message[:_MAX_TEXT]}.")
    return items
