"""The stored side of OpenAI's Responses protocol, for any upstream: what the client expects the server to keep.

    link:<response>   what was said in one exchange, and which came before it
    body:<response>   the response object without its items
    item:<item>       an item of an answer, for requests that name it

A conversation is a chain of links; each holds only its own items, and the names of its nearest forebears, so that a
chain is read in a few steps. A link that is read late in its time is kept anew: a conversation in use does not end.

Laws: a client finds nothing of another's. A chain is bounded in links and in bytes. What is refused is refused in
OpenAI's own words. Nothing is kept of a request that says `store: false`.
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
from toolglot.gateway.endpoints import response_errors as refusals
from toolglot.gateway.http.offloading import WorkOffloader, at_once
from toolglot.gateway.state.response_items import (
    Item,
    id_of,
    input_of,
    is_bare,
    is_reference,
    listed,
    page,
    referred,
    with_request,
    without_id,
)
from toolglot.jsontext import parse
from toolglot.limits import Limits
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.store import Store

KIND: Final = "responses"
MOST_LINKS: Final = 4_000
MOST_BYTES: Final = 32 * 1024 * 1024
NEAREST: Final = 32
"""Forebears whose names a link holds, and so links that one look into the store brings."""

_AT_ONCE: Final = 1_000
"""Rows of one call to the store."""
_ID: Final = re.compile(r"[!-~]{1,256}")
_ROW_LIMITS: Final = Limits(max_bytes=4 * MOST_BYTES, max_nodes=20_000_000)
"""Rows are our own: what was read from a client is within its own limits already."""


class Link(Struct, frozen=True, kw_only=True):
    """One exchange of a conversation."""

    id: str
    previous: str
    """The response that it continues; empty: none."""
    nearest: tuple[str, ...]
    """The last of those before it, the nearest first."""
    links: int
    size: int
    """How many links, and bytes, it and all before it are, as far as they were known here."""
    kept: float
    home: str
    """The upstream that has stored the response itself; empty: none."""
    input: list[Any]
    output: list[Any]


class StoredItem(Struct, frozen=True):
    """An item of an answer."""

    home: str
    item: Item
    size: int = 0


class StoredResponses:
    """Responses of all clients; without a store, none."""

    def __init__(
        self,
        store: Store | None,
        *,
        seconds: float,
        clock: Callable[[], float] = time.time,
        most_links: int = MOST_LINKS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._most_links = most_links
        self._most_bytes = most_bytes

    @property
    def is_on(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    # --- before a request ---------------------------------------------------------------------------

    async def expanded(
        self,
        client: str,
        fields: Mapping[str, Any],
        *,
        may_be_elsewhere: bool = False,
        home: str = "",
        apart: WorkOffloader = at_once,
    ) -> dict[str, Any] | None:
        """A request with everything that it refers to; None where it refers to nothing, or to what its upstream has.

        may_be_elsewhere: what is not known here is left to the upstream to know or to refuse.
        home: the upstream, if it stores responses itself, under the name given to `keep`; what it has is left to it.
        """
        previous, items = fields.get("previous_response_id"), input_of(fields)
        if items is None:
            return None
        named = await apart(lambda: referred(items))
        if type(previous) is not str and not named:
            return None
        try:
            asked = previous if type(previous) is str else None
            said = await self._said(client, asked, items, named, home, fields, apart)
        except refusals.MissingError:
            if may_be_elsewhere:
                return None
            raise
        if said is None:
            return None
        rest = {key: value for key, value in fields.items() if key != "previous_response_id"}
        return {**rest, "input": said}

    async def _said(
        self,
        client: str,
        previous: str | None,
        items: list[Any],
        named: list[str],
        home: str,
        fields: Mapping[str, Any],
        apart: WorkOffloader,
    ) -> list[Any] | None:
        """All items of a conversation up to now; None where its home has them."""
        last = None if previous is None else await self._link(client, previous)
        known = await self._items(client, named)
        at_home = all(stored.home == home for stored in known.values()) and len(known) == len(named)
        if home and at_home and (last is None or last.home == home):
            return None
        links = [] if last is None else await self._chain(client, last)
        budget = self._most_bytes - (last.size if last is not None else 0)
        joined = _Joined(known, budget, home=home, stores=fields.get("store") is not False)
        await self._add_links(client, links, joined)

        def add_all() -> list[Any]:
            for item in items:
                joined.add(item)
            return joined.items

        return await apart(add_all)

    async def _add_links(self, client: str, links: Sequence[Link], joined: _Joined) -> None:
        joined.known.update(await self._items(client, referred(item for link in links for item in link.input)))
        for link in links:
            for item in (*link.input, *link.output):
                joined.add_earlier(item, link.home)

    async def _chain(self, client: str, last: Link) -> list[Link]:
        """The links up to this one, the oldest first."""
        if last.links > self._most_links:
            raise refusals.too_long(f"{self._most_links} responses")
        if last.size > self._most_bytes:
            raise refusals.too_long(f"{self._most_bytes} bytes")
        links = [last]
        found: dict[str, Link] = {}
        while links[-1].previous:
            previous = links[-1].previous
            if previous not in found:
                found = await self._links(client, links[-1].nearest)
            if previous not in found:
                raise refusals.missing_previous(previous)
            if len(links) >= self._most_links:
                raise refusals.too_long(f"{self._most_links} responses")
            links.append(found[previous])
        links.reverse()
        await self._renew(client, links)
        return links

    async def _renew(self, client: str, links: Sequence[Link]) -> None:
        """Keep links anew whose time is half over."""
        now = self._clock()
        old = [link for link in links if link.kept + self._seconds / 2 < now]
        rows = ((key, row) for link in old for key, row in _rows(replace(link, kept=now)))
        while some := dict(islice(rows, _AT_ONCE)):
            await self._keep(client, some, now)

    # --- after an answer ----------------------------------------------------------------------------

    async def keep(self, client: str, asked: Mapping[str, Any], answered: Mapping[str, Any], *, home: str = "") -> bool:
        """Keep an exchange: the request as the client sent it, the response as the client gets it. Whether it was kept.

        home: the upstream, if it has stored the response itself.
        """
        id, output, items = answered.get("id"), answered.get("output"), input_of(asked)
        if self._store is None or asked.get("store") is False or asked.get("conversation") is not None:
            return False
        if type(id) is not str or not _ID.fullmatch(id) or type(output) is not list or items is None:
            return False
        previous = asked.get("previous_response_id")
        before = None
        if type(previous) is str:
            before = (await self._links(client, [previous])).get(previous)
        link = self._linked(id, previous if type(previous) is str else "", before, items, output, home)
        if link is None:
            return False
        body = {key: value for key, value in with_request(asked, answered).items() if key != "output"}
        try:
            await self._keep(client, {f"body:{id}": json_bytes(body), **dict(_rows(link))}, link.kept)
        except LimitError:
            return False
        return True

    def _linked(
        self, id: str, previous: str, before: Link | None, items: list[Any], output: list[Any], home: str
    ) -> Link | None:
        """A new link; None where it would be too large, or stand before itself."""
        nearest = ((previous, *before.nearest)[:NEAREST] if before is not None else (previous,)) if previous else ()
        size = len(json_bytes([items, output]))
        if size > self._most_bytes or id in nearest:
            return None
        return Link(
            id=id,
            previous=previous,
            nearest=nearest,
            links=1 + (before.links if before is not None else 0),
            size=size + (before.size if before is not None else 0),
            kept=self._clock(),
            home=home,
            input=items,
            output=output,
        )

    # --- what clients ask for -----------------------------------------------------------------------

    async def answer(self, client: str, action: str, method: str, id: str, query: Mapping[str, str]) -> dict[str, Any]:
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
            if found is not None and query.get("stream", "").lower() == "true":
                raise refusals.not_streamed()
        if found is None:
            raise refusals.missing_response(id)
        return found

    async def find(self, client: str, id: str) -> dict[str, Any] | None:
        """A response as its client got it, with what it repeats of its request."""
        rows = await self._rows(client, [f"body:{id}", f"link:{id}"])
        if len(rows) < 2:
            return None
        body: dict[str, Any] = _value(rows[f"body:{id}"])
        return {**body, "output": _read_link(rows[f"link:{id}"]).output}

    async def home_of(self, client: str, id: str) -> str | None:
        """The upstream that has stored a response itself, empty where none has; None: it is not known here."""
        link = (await self._links(client, [id])).get(id)
        return None if link is None else link.home

    async def remove(self, client: str, id: str) -> bool:
        """Forget a response and its items. What continues it cannot be continued any more."""
        link = (await self._links(client, [id])).get(id)
        if self._store is None or link is None:
            return False
        keys = [f"link:{id}", f"body:{id}", *(key for key, _ in _item_rows(link))]
        return sum([await self._store.remove(KIND, client, some) for some in _parts(keys)]) > 0

    async def input_items(self, client: str, id: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        """A page of what a response was made from, all of its conversation; None where there is no such response."""
        last = (await self._links(client, [id])).get(id)
        if last is None:
            return None
        links = [*(await self._chain(client, last))[:-1], replace(last, output=[])]
        joined = _Joined({}, self._most_bytes)
        await self._add_links(client, [_shown(link) for link in links], joined)
        return page(joined.items, query)

    async def cancel(self, client: str, id: str) -> dict[str, Any] | None:
        """Always refused: what is stored is finished. None where there is no such response."""
        found = await self.find(client, id)
        if found is None:
            return None
        raise refusals.not_cancelled(found)

    # --- the store ----------------------------------------------------------------------------------

    async def _link(self, client: str, id: str) -> Link:
        link = (await self._links(client, [id])).get(id)
        if link is None:
            raise refusals.missing_previous(id)
        return link

    async def _links(self, client: str, ids: Sequence[str]) -> dict[str, Link]:
        rows = await self._rows(client, [f"link:{id}" for id in ids])
        return {key.removeprefix("link:"): _read_link(row) for key, row in rows.items()}

    async def _items(self, client: str, ids: Sequence[str]) -> dict[str, StoredItem]:
        rows = await self._rows(client, [f"item:{id}" for id in ids])
        return {key.removeprefix("item:"): StoredItem(**_value(row), size=len(row)) for key, row in rows.items()}

    async def _rows(self, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        if self._store is None:
            return found
        size = 0
        for some in _parts([key for key in keys if _ID.fullmatch(key[5:])]):
            rows = await self._store.find(KIND, client, some)
            size += sum(map(len, rows.values()))
            if size > 4 * self._most_bytes:
                raise refusals.too_long(f"{self._most_bytes} bytes")
            found.update(rows)
        return found

    async def _keep(self, client: str, rows: Mapping[str, bytes], now: float) -> None:
        if self._store is not None:
            await self._store.keep(KIND, client, rows, until=now + self._seconds)


class _Joined:
    """Items in the order in which they were said, with references put right.

    home: an upstream that looks items up by their ids; it gets those of others without.
    """

    def __init__(self, known: dict[str, StoredItem], budget: int, *, home: str = "", stores: bool = True) -> None:
        self.known = known
        self.items: list[Any] = []
        self._budget = budget
        self._home = home
        self._stores = stores
        self._earlier: set[str] = set()
        self._named: set[str] = set()
        """Items that were put in for a reference."""

    def add_earlier(self, item: Any, home: str) -> None:
        """An item of the conversation so far."""
        self._add(item, home)
        if id_of(item):
            self._earlier.add(id_of(item))

    def add(self, item: Any) -> None:
        """An item of the request itself."""
        id = id_of(item)
        if id and id in self._earlier and not _is_name(item):
            raise refusals.repeated_item(id)
        self._add(item, self._home)

    def _add(self, item: Any, home: str) -> None:
        """Who names an item again says nothing new."""
        id = id_of(item)
        if _is_name(item) and (id in self._named or id in self._earlier):
            return
        stored = self.known.get(id) if _is_name(item) else None
        if stored is None:
            if is_reference(item):
                raise refusals.missing_item(id, stores=self._stores)
            self._put(item, home)
            return
        self._budget -= stored.size
        if self._budget < 0:
            raise refusals.too_long("the bytes allowed")
        self._named.add(id)
        self._put(stored.item, stored.home)

    def _put(self, item: Any, home: str) -> None:
        """An item as it may be sent: reasoning that another stored is nothing that this home could look up."""
        if not self._home or home == self._home:
            self.items.append(item)
        elif type(item) is not dict or item.get("type") != "reasoning":
            self.items.append(without_id(item))


def _is_name(item: Any) -> bool:
    """Whether an item names one that is stored."""
    return is_reference(item) or is_bare(item)


# --- rows -------------------------------------------------------------------------------------------


def _rows(link: Link) -> Iterator[tuple[str, bytes]]:
    """What is kept of an exchange beside its body."""
    yield f"link:{link.id}", json_bytes(asdict(link))
    yield from _item_rows(link)


def _item_rows(link: Link) -> Iterator[tuple[str, bytes]]:
    for item in link.output:
        if _ID.fullmatch(id_of(item)):
            yield f"item:{id_of(item)}", json_bytes({"home": link.home, "item": item})


def _shown(link: Link) -> Link:
    """A link whose items all have ids."""
    stem = link.id.removeprefix("resp_")
    return replace(link, input=listed(link.input, f"{stem}_in"), output=listed(link.output, f"{stem}_out"))


def _parts(keys: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(keys), _AT_ONCE):
        yield keys[begin : begin + _AT_ONCE]


def _read_link(row: bytes) -> Link:
    return msgspec.convert(_value(row), Link)


def _value(row: bytes) -> Any:
    return parse(row, limits=_ROW_LIMITS).value
