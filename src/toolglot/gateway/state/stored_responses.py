"""The stored responses of OpenAI's Responses protocol, for any upstream.

    link:<response>   the items of one exchange, and the one before it
    body:<response>   the response object without its items
    item:<item>       an item of a response, for requests that refer to it

A conversation is a chain of links; each holds only its own items, and the ids of the nearest links before it, so that
a chain is read in a few steps. A link that is read late in its time is renewed: a conversation in use does not expire.

Laws: a client finds nothing of another client. A chain is limited in links and in bytes. Errors are those of OpenAI.
Nothing is stored of a request with `store: false`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from toolglot.errors import LimitError
from toolglot.gateway.endpoints import response_errors
from toolglot.gateway.http.offloading import WorkOffloader, at_once
from toolglot.gateway.state.response_items import (
    Item,
    complete_response,
    id_of,
    input_of,
    is_bare_reasoning,
    is_reference,
    page,
    referenced_ids,
    with_listed_ids,
    without_id,
)
from toolglot.jsontext import parse
from toolglot.limits import Limits
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.store import RowStore, StoreError

KIND: Final = "responses"
MAX_LINKS: Final = 4_000
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_NEAREST: Final = 32
"""Links before it whose ids a link holds, and so links that one call to the store brings."""

_MAX_ROWS: Final = 1_000
"""Rows of one call to the store."""
_ID: Final = re.compile(r"[!-~]{1,256}")
_ROW_LIMITS: Final = Limits(max_bytes=4 * MAX_BYTES, max_nodes=20_000_000)
"""Rows are our own: what clients send is within their own limits already."""


class Link(Struct, frozen=True, kw_only=True):
    """One exchange of a conversation."""

    id: str
    previous: str
    """The response that it continues; empty: none."""
    nearest: tuple[str, ...]
    """The last of those before it, the nearest first."""
    links: int
    size: int
    """The number of links, and of bytes, of it and all before it, as far as they were known here."""
    stored_at: float = msgspec.field(name="kept")
    stored_by: str = msgspec.field(name="home")
    """When it was stored, and the upstream that has stored the response itself (empty: none). Rows have both under
    their old names."""
    input: list[Any]
    output: list[Any]
    conversation: str = ""
    """The conversation that it belongs to; empty: none."""


_NO_LINKS: Final[Mapping[str, Link]] = {}


class StoredItem(Struct, frozen=True):
    """An item of a response."""

    stored_by: str
    item: Item
    size: int = 0


class StoredResponses:
    """Responses of all clients; without a store, none."""

    def __init__(
        self,
        store: RowStore | None,
        *,
        seconds: float,
        clock: Callable[[], float] = time.time,
        max_links: int = MAX_LINKS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._max_links = max_links
        self._max_bytes = max_bytes

    @property
    def is_on(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    # --- before a request ---------------------------------------------------------------------------

    async def expand(
        self,
        client: str,
        fields: Mapping[str, Any],
        *,
        may_be_elsewhere: bool = False,
        stored_by: str = "",
        offload: WorkOffloader = at_once,
        earlier: Sequence[tuple[str, list[Any]]] | None = None,
        seen: dict[str, Link] | None = None,
    ) -> dict[str, Any] | None:
        """A request with everything that it refers to; None: it refers to nothing, or to what its upstream has stored.

        may_be_elsewhere: what is not known here is left to the upstream to find or to refuse.
        stored_by: the upstream, if it stores responses itself, by the name that `keep` got; what it has is left to it.
        earlier: the items of its conversation, with the upstreams that have stored them; None: it names none.
        seen: gets the exchange that it continues, for `keep`.
        """
        previous, items = fields.get("previous_response_id"), input_of(fields)
        if items is None:
            return None
        named = await offload(lambda: referenced_ids(items))
        if type(previous) is not str and not named and earlier is None:
            return None
        try:
            last = previous if type(previous) is str else None
            found = await self._all_items(client, last, items, named, stored_by, fields, offload, earlier, seen)
        except response_errors.MissingError:
            if may_be_elsewhere:
                return None
            raise
        if found is None:
            return None
        replaced = ("previous_response_id",) if earlier is None else ("conversation",)
        rest = {key: value for key, value in fields.items() if key not in replaced}
        return {**rest, "input": found}

    async def _all_items(
        self,
        client: str,
        previous: str | None,
        items: list[Any],
        named: list[str],
        stored_by: str,
        fields: Mapping[str, Any],
        offload: WorkOffloader,
        earlier: Sequence[tuple[str, list[Any]]] | None,
        seen: dict[str, Link] | None,
    ) -> list[Any] | None:
        """All items of a conversation up to now; None: its upstream has stored them."""
        last = None if previous is None else await self._link(client, previous)
        if seen is not None and last is not None:
            seen[last.id] = last
        known = await self._items(client, named)
        is_stored_there = all(stored.stored_by == stored_by for stored in known.values()) and len(known) == len(named)
        if last is not None and last.conversation:
            raise response_errors.in_conversation(last.conversation)
        is_stored_there = is_stored_there and earlier is None
        if stored_by and is_stored_there and (last is None or last.stored_by == stored_by):
            return None
        links = [] if last is None else await self._chain(client, last)
        budget = self._max_bytes - (last.size if last is not None else 0)
        joined = _JoinedItems(known, budget, stored_by=stored_by, stores=fields.get("store") is not False)
        await self._add_links(client, links, joined)
        for owner, added in earlier or ():
            for item in added:
                joined.add_earlier(item, owner)

        def add_all() -> list[Any]:
            for item in items:
                joined.add(item)
            return joined.items

        return await offload(add_all)

    async def _add_links(self, client: str, links: Sequence[Link], joined: _JoinedItems) -> None:
        joined.known.update(await self._items(client, referenced_ids(item for link in links for item in link.input)))
        for link in links:
            for item in (*link.input, *link.output):
                joined.add_earlier(item, link.stored_by)

    async def _chain(self, client: str, last: Link) -> list[Link]:
        """The links up to this one, the oldest first."""
        if last.links > self._max_links:
            raise response_errors.too_long(f"{self._max_links} responses")
        if last.size > self._max_bytes:
            raise response_errors.too_long(f"{self._max_bytes} bytes")
        links = [last]
        found: dict[str, Link] = {}
        while links[-1].previous:
            previous = links[-1].previous
            if previous not in found:
                found = await self._links(client, links[-1].nearest)
            if previous not in found:
                raise response_errors.missing_previous(previous)
            if len(links) >= self._max_links:
                raise response_errors.too_long(f"{self._max_links} responses")
            links.append(found[previous])
        links.reverse()
        await self._renew(client, links)
        return links

    async def _renew(self, client: str, links: Sequence[Link]) -> None:
        """Renew links whose time is half over."""
        now = self._clock()
        old = [link for link in links if link.stored_at + self._seconds / 2 < now]
        rows = ((key, row) for link in old for key, row in _rows(replace(link, stored_at=now)))
        while some := dict(islice(rows, _MAX_ROWS)):
            await self._keep(client, some, now)

    # --- after a response ---------------------------------------------------------------------------

    async def keep(
        self,
        client: str,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        *,
        stored_by: str = "",
        conversation: str = "",
        seen: Mapping[str, Link] = _NO_LINKS,
    ) -> bool:
        """Keep an exchange: the request as the client sent it, the response as the client got it.

        Returns whether it was kept.

        stored_by: the upstream, if it has stored the response itself.
        conversation: the conversation of this gateway that it belongs to.
        seen: the exchange that it continues, if it was read for the request.
        """
        id, output, items = response.get("id"), response.get("output"), input_of(request)
        if self._store is None or request.get("store") is False:
            return False
        if request.get("conversation") is not None and not conversation:
            return False
        if type(id) is not str or not is_id(id) or type(output) is not list or items is None:
            return False
        previous = request.get("previous_response_id")
        before = None
        if type(previous) is str:
            before = seen.get(previous) or await self._known_link(client, previous)
        link = self._new_link(id, previous if type(previous) is str else "", before, items, output, stored_by)
        if link is None:
            return False
        link = replace(link, conversation=conversation) if conversation else link
        body = {key: value for key, value in complete_response(request, response).items() if key != "output"}
        try:
            await self._keep(client, {f"body:{id}": json_bytes(body), **dict(_rows(link))}, link.stored_at)
        except LimitError:
            return False
        return True

    def _new_link(
        self, id: str, previous: str, before: Link | None, items: list[Any], output: list[Any], stored_by: str
    ) -> Link | None:
        """A new link; None: it would be too large, or come before itself."""
        nearest = ((previous, *before.nearest)[:MAX_NEAREST] if before is not None else (previous,)) if previous else ()
        size = len(json_bytes([items, output]))
        if size > self._max_bytes or id in nearest:
            return None
        return Link(
            id=id,
            previous=previous,
            nearest=nearest,
            links=1 + (before.links if before is not None else 0),
            size=size + (before.size if before is not None else 0),
            stored_at=self._clock(),
            stored_by=stored_by,
            input=items,
            output=output,
        )

    # --- endpoints ----------------------------------------------------------------------------------

    async def serve(self, client: str, action: str, method: str, id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The body for `GET` and `DELETE /v1/responses/{id}` (action `response`), `input_items` and `cancel`."""
        found: dict[str, Any] | None
        if action == "cancel":
            found = await self.cancel(client, id)
        elif action == "input_items":
            found = await self.input_items(client, id, query)
        elif method == "DELETE":
            found = {"id": id, "object": "response", "deleted": True} if await self.remove(client, id) else None
        else:
            found = await self.find(client, id)
        if found is None:
            raise response_errors.missing_response(id)
        return found

    async def find(self, client: str, id: str) -> dict[str, Any] | None:
        """A response as its client got it, with the settings of its request."""
        rows = await self._rows(client, [f"body:{id}", f"link:{id}"])
        if len(rows) < 2:
            return None
        body: dict[str, Any] = read_row(rows[f"body:{id}"])
        return {**body, "output": _read_link(rows[f"link:{id}"]).output}

    async def upstream_of(self, client: str, id: str) -> str | None:
        """The upstream that has stored a response itself, or an empty string; None: the response is not known here."""
        link = (await self._links(client, [id])).get(id)
        return None if link is None else link.stored_by

    async def remove(self, client: str, id: str) -> bool:
        """Remove a response and its items. Responses that continue it cannot be continued any more."""
        link = (await self._links(client, [id])).get(id)
        if self._store is None or link is None:
            return False
        keys = [f"link:{id}", f"body:{id}", *(key for key, _ in _item_rows(link))]
        return sum([await self._store.remove(KIND, client, some) for some in _parts(keys)]) > 0

    async def input_items(self, client: str, id: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        """A page of the input of a response, with all of its conversation; None: there is no such response."""
        last = (await self._links(client, [id])).get(id)
        if last is None:
            return None
        links = [*(await self._chain(client, last))[:-1], replace(last, output=[])]
        joined = _JoinedItems({}, self._max_bytes)
        await self._add_links(client, [_with_ids(link) for link in links], joined)
        return page(joined.items, query)

    async def cancel(self, client: str, id: str) -> dict[str, Any] | None:
        """Always refused: what is stored is complete. None: there is no such response."""
        found = await self.find(client, id)
        if found is None:
            return None
        raise response_errors.not_cancelled(found)

    # --- the store ----------------------------------------------------------------------------------

    async def _link(self, client: str, id: str) -> Link:
        link = (await self._links(client, [id])).get(id)
        if link is None:
            raise response_errors.missing_previous(id)
        return link

    async def _known_link(self, client: str, id: str) -> Link | None:
        """A link, if it is there and can be read now."""
        try:
            return (await self._links(client, [id])).get(id)
        except StoreError:  # the response is kept all the same, and its chain is read step by step
            return None

    async def _links(self, client: str, ids: Sequence[str]) -> dict[str, Link]:
        rows = await self._rows(client, [f"link:{id}" for id in ids])
        return {key.removeprefix("link:"): _read_link(row) for key, row in rows.items()}

    async def _items(self, client: str, ids: Sequence[str]) -> dict[str, StoredItem]:
        rows = await self._rows(client, [f"item:{id}" for id in ids])
        return {key.removeprefix("item:"): _read_item(row) for key, row in rows.items()}

    async def _rows(self, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        if self._store is None:
            return found
        size = 0
        for some in _parts([key for key in keys if is_id(key[5:])]):
            rows = await self._store.find(KIND, client, some)
            size += sum(map(len, rows.values()))
            if size > 4 * self._max_bytes:
                raise response_errors.too_long(f"{self._max_bytes} bytes")
            found.update(rows)
        return found

    async def _keep(self, client: str, rows: Mapping[str, bytes], now: float) -> None:
        if self._store is not None:
            await self._store.keep(KIND, client, rows, until=now + self._seconds)


class _JoinedItems:
    """Items in the order of the conversation, with references resolved.

    stored_by: an upstream that looks items up by their ids; it gets items of others without their ids.
    """

    def __init__(self, known: dict[str, StoredItem], budget: int, *, stored_by: str = "", stores: bool = True) -> None:
        self.known = known
        self.items: list[Any] = []
        self._budget = budget
        self._stored_by = stored_by
        self._stores = stores
        self._earlier: set[str] = set()
        self._mentioned: set[str] = set()
        """Ids of references that were resolved."""

    def add_earlier(self, item: Any, stored_by: str) -> None:
        """An item of the conversation so far."""
        self._add(item, stored_by)
        if id_of(item):
            self._earlier.add(id_of(item))

    def add(self, item: Any) -> None:
        """An item of the request itself."""
        id = id_of(item)
        if id and id in self._earlier and not _is_mention(item):
            raise response_errors.repeated_item(id)
        self._add(item, self._stored_by)

    def _add(self, item: Any, stored_by: str) -> None:
        """Add an item, unless it only refers to one that is here already."""
        id = id_of(item)
        if _is_mention(item) and (id in self._mentioned or id in self._earlier):
            return
        stored = self.known.get(id) if _is_mention(item) else None
        if stored is None:
            if is_reference(item):
                raise response_errors.missing_item(id, stores=self._stores)
            self._put(item, stored_by)
            return
        self._budget -= stored.size
        if self._budget < 0:
            raise response_errors.too_long("the bytes allowed")
        self._mentioned.add(id)
        self._put(stored.item, stored.stored_by)

    def _put(self, item: Any, stored_by: str) -> None:
        """Add an item as it can be sent: an upstream cannot look up reasoning that another one has stored."""
        if not self._stored_by or stored_by == self._stored_by:
            self.items.append(item)
        elif type(item) is not dict or item.get("type") != "reasoning":
            self.items.append(without_id(item))


def _is_mention(item: Any) -> bool:
    """Whether an item refers to one that is stored."""
    return is_reference(item) or is_bare_reasoning(item)


def is_id(id: str) -> bool:
    """Whether a string can be an id in the store."""
    return _ID.fullmatch(id) is not None


# --- rows -------------------------------------------------------------------------------------------


def _rows(link: Link) -> Iterator[tuple[str, bytes]]:
    """The rows of an exchange, without its body."""
    fields = asdict(link)
    fields["kept"], fields["home"] = fields.pop("stored_at"), fields.pop("stored_by")
    yield f"link:{link.id}", json_bytes(fields)
    yield from _item_rows(link)


def _item_rows(link: Link) -> Iterator[tuple[str, bytes]]:
    for item in link.output:
        if is_id(id_of(item)):
            yield f"item:{id_of(item)}", json_bytes({"home": link.stored_by, "item": item})


def _with_ids(link: Link) -> Link:
    """A link whose items all have ids."""
    stem = link.id.removeprefix("resp_")
    return replace(
        link, input=with_listed_ids(link.input, f"{stem}_in"), output=with_listed_ids(link.output, f"{stem}_out")
    )


def _parts(keys: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(keys), _MAX_ROWS):
        yield keys[begin : begin + _MAX_ROWS]


def _read_link(row: bytes) -> Link:
    return msgspec.convert(read_row(row), Link)


def _read_item(row: bytes) -> StoredItem:
    fields = read_row(row)
    return StoredItem(fields["home"], fields["item"], len(row))


def read_row(row: bytes) -> Any:
    """The value of a row."""
    return parse(row, limits=_ROW_LIMITS).value
