"""Paths that are not the gateway's own: passed through, as they are, to the one upstream that has them.

Files, batches, images: they are not translated. A request goes to the only upstream of the client's
protocol; if there is none, or more than one, the client gets an error.

Laws: the client's key is not sent on, not even one in the query. A path stays under the upstream's address. With
several client keys, a key reaches only objects that it created: the keys share the provider's account. What is not
known to be separable is not passed through.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

import msgspec
from msgspec import Raw

from toolglot import profiles
from toolglot.conversation.report import Entry
from toolglot.gateway.accounting.client_keys import BUDGETS, ClientKey
from toolglot.gateway.endpoints.passed_replies import (
    ENDED,
    ObjectPage,
    StoredObject,
    UsageReader,
    batch_counts,
    counted_tokens,
    read_object,
    read_page,
    write_page,
)
from toolglot.gateway.endpoints.passed_requests import (
    BodyNames,
    PassedRequest,
    as_object_id,
    describe,
    named_objects,
    read_names,
)
from toolglot.gateway.endpoints.table import client_protocol
from toolglot.gateway.endpoints.upstream_body import read_upstream_body
from toolglot.gateway.http import offloading
from toolglot.gateway.http.compressed_bodies import read_body
from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.observability.request_record import RecordedRendering, RecordedRoute, RequestRecord
from toolglot.gateway.routing.foreign_objects import no_object
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.gateway.services import Services
from toolglot.gateway.state.owned_objects import OwnedObject
from toolglot.protocols.base import Protocol, family
from toolglot.store import StoreError
from toolglot.upstream import PROVIDERS, HttpResponse, Upstream

NOT_COUNTED: Final = Entry(
    action="assumed",
    reason="the provider does not report its tokens; they are estimated",
    fault="loss",
    path="$.usage",
    gravity="housekeeping",
)
MAX_PAGES: Final = 20
"""Pages of a list that are searched for the objects of a key."""
MAX_RESULTS: Final = 100
"""Objects that a provider made for one object."""
_FEW_DIGITS: Final = 7
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"})
_SENT: Final = ("content-type", "accept", "range")
"""Headers of a client that are forwarded, besides those of its protocol."""
_RETURNED: Final = ("content-type", "content-disposition", "retry-after", "request-id", "x-request-id")
MAX_ERROR: Final = 4 * 1024 * 1024
"""Bytes of an error, which is read before it is forwarded: it may repeat the gateway's key."""

_UNSAFE: Final = re.compile(r"(?:^|[/\\])\.{1,2}(?:$|[/\\;])|[\x00-\x1f\x7f\\]")
"""In a path: what leads elsewhere, or is invalid."""


class PassThrough:
    """Passes requests through."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._objects = services.objects

    async def run(self, request: ClientRequest, record: RequestRecord) -> None:
        services, client = self._services, request.client
        protocol = client_protocol(request.path, request.headers)
        passed = describe(protocol, request)
        upstream = self._choose(protocol, request, passed)
        request.body = await read_body(request, services.config.gateway.max_body_bytes)
        body = request.body
        names = await offloading.run(0, len(body), lambda: read_names(passed, request, body, services.limits))
        model = names.models[0] if names.models else ""
        if model:
            record.request.name_model(model, is_stream=False)
        record.take_route(RecordedRoute(upstream.name, model, upstream.is_simulated))
        record.sent = RecordedRendering(upstream.target)
        key = services.ring.key_of(client)
        used = await self._check_objects(protocol, passed, names, client)
        batch = _batch_file(passed, names, used, protocol)
        if key is not None:
            if passed.is_batch:
                self._check_batch(key, passed, names, batch, record)
            elif passed.runs_model:
                self._check_models(key, names, upstream)
        runs_model = passed.runs_model or (passed.is_batch and bool(record.route.model))
        size = len(body) if passed.runs_model else 0
        ticket = await services.meter.admit(client, record, size, runs_model=runs_model)
        try:
            exchange = _Exchange(services, protocol, passed, request, record, upstream)
            await exchange.run(names, batch)
            if passed.runs_model and record.reply.usage is None and record.response.status < 300:
                record.reply.add(NOT_COUNTED)
        finally:
            services.meter.record(ticket, record)

    # --- which upstream -----------------------------------------------------------------------------

    def _choose(self, protocol: Protocol, request: ClientRequest, passed: PassedRequest) -> Upstream:
        """The upstream that has a path of this protocol."""
        prefix = protocol.service_prefix
        known = bool(prefix) and request.path.startswith(prefix) and request.method in _METHODS
        known = known and _is_safe(request.raw_path)
        if known and self._services.ring.is_shared:
            is_separated = passed.is_known and (self._objects.is_stored or not passed.is_stored)
            if not is_separated:
                message = (
                    f"{request.path[:200]} is not passed through: data at the provider is not separated by client key"
                )
                if passed.is_known:
                    message += ' without a store (store = "off")'
                raise refusal("not_found", message, 404)
        chosen, of_kind = upstreams_of(protocol, self._services.upstreams)
        if known and len(chosen) == 1:
            return chosen[0]
        where = f"{request.method} {request.path[:200]}"
        if known and passed.is_known and not of_kind:
            raise refusal("not_found", f"{where} needs an upstream of {_upstream_to_set(protocol)}", 404)
        if not known or not of_kind:
            raise refusal("not_found", f"unknown path: {where}; neither the gateway nor an upstream has it", 404)
        names = ", ".join(upstream.name for upstream in of_kind)
        raise refusal("not_found", f"unknown path: {where}; several upstreams could have it: {names}", 404)

    # --- what a key may do --------------------------------------------------------------------------

    def _check_models(self, key: ClientKey, names: BodyNames, upstream: Upstream) -> None:
        """Refuse models that a key may not use, and requests whose model is not known."""
        has_money = any(BUDGETS[name][0] == "spend" for name in key.budgets)
        if not key.models and not has_money:
            return
        if names.problem is not None:
            raise names.problem
        if not names.models:
            message = f"the key {key.name!r} may use some models only, and this request names none: set `model`"
            raise refusal("permission", message, 403)
        for model in names.models:
            self._check_model(key, model, upstream.name)

    def _check_model(self, key: ClientKey, model: str, upstream: str) -> None:
        if not self._services.ring.may_use(key.hashed, f"{upstream}/{model}"):
            self._services.meter.check_model(key.hashed, model)

    def _check_batch(
        self, key: ClientKey, passed: PassedRequest, names: BodyNames, file: OwnedObject | None, record: RequestRecord
    ) -> None:
        """Refuse a batch whose requests are not known, or are for models that a key may not use."""
        is_metered = bool(key.budgets) or key.tokens_per_minute is not None
        if not key.models and not is_metered:
            return
        if names.problem is not None:
            raise names.problem
        collection = passed.collection
        is_inline = collection is not None and collection.batch == "inline"
        if is_inline and is_metered:
            message = f"the key {key.name!r} has limits of tokens or money, and these batches report no usage"
            raise refusal("permission", f"{message}: send the requests one by one", 403)
        models = names.models if is_inline else file.models if file is not None else None
        if not models:
            message = (
                f"the key {key.name!r} has limits, and the models of this batch are not known: upload its file through "
                "this gateway, with the purpose `batch` and a model in each line"
            )
            raise refusal("permission", message, 403)
        for model in models:
            self._check_model(key, model, record.route.upstream)
        has_money = any(BUDGETS[name][0] == "spend" for name in key.budgets)
        if has_money and len(models) > 1:
            message = f"the key {key.name!r} has a budget of money: the requests of a batch must be for one model"
            raise refusal("permission", message, 403)
        record.route = msgspec.structs.replace(record.route, model=models[0])

    async def _check_objects(
        self, protocol: Protocol, passed: PassedRequest, names: BodyNames, client: str
    ) -> dict[str, OwnedObject]:
        """The objects that a request names. One of another key does not exist for this one."""
        ring = self._services.ring
        if not ring.is_demanded or not self._objects.is_stored:
            return {}
        named = [as_object_id(protocol.passed, each, protocol.service_prefix) for each in names.references]
        wanted = [*filter(None, [passed.object_id]), *named]
        if ring.is_shared and names.problem is not None:
            raise names.problem
        found = await self._objects.find(wanted) if wanted else {}
        if ring.is_shared:
            for id in wanted:
                if id not in found or found[id].owner != client:
                    raise no_object(id)
            await self._objects.renew(found)
        return found


class _Exchange:
    """The request to an upstream, and its reply."""

    def __init__(
        self,
        services: Services,
        protocol: Protocol,
        passed: PassedRequest,
        request: ClientRequest,
        record: RequestRecord,
        upstream: Upstream,
    ) -> None:
        self._services = services
        self._protocol = protocol
        self._passed = passed
        self._request = request
        self._record = record
        self._upstream = upstream

    async def run(self, names: BodyNames, batch: OwnedObject | None) -> None:
        query = forwarded_query(self._request)
        response = await self._send(query)
        try:
            passed, ring = self._passed, self._services.ring
            is_json = response.headers.get("content-type", "").lower().startswith("application/json")
            if response.status >= 300:
                await self._forward(response)
            elif passed.is_list and ring.is_shared:
                await self._forward_list(response, query)
            elif is_json and ring.is_demanded and (passed.creates or passed.shows_object):
                data = await self._whole(response)
                await self._note_object(data, names, batch)
                await self._respond(response, data)
            else:
                await self._forward(response)
                if passed.method == "DELETE" and len(passed.rest) == 1 and ring.is_demanded:
                    await self._services.objects.forget(passed.object_id)
        finally:
            await response.close()

    async def _send(self, query: str) -> HttpResponse:
        request, sent = self._request, (*_SENT, *self._protocol.forwarded_headers)
        headers = {name: request.headers[name] for name in sent if name in request.headers}
        headers |= self._record.begin_call(self._upstream)
        path = request.raw_path + query
        return await self._upstream.send(path, request.body, headers=headers, method=request.method)

    async def _whole(self, response: HttpResponse) -> bytes:
        max_bytes = self._services.reply_limits.max_bytes
        return await read_upstream_body(response, self._upstream.name, max_bytes, self._request.hold)

    # --- the client ---------------------------------------------------------------------------------

    async def _forward(self, response: HttpResponse) -> None:
        """Forward a reply as it comes, and read its token counts."""
        request, record = self._request, self._record
        pieces = await self._pieces(response)
        status = await self._begin(response)
        usage = UsageReader(response.headers.get("content-type", ""), request) if self._passed.runs_model else None
        async for piece in pieces:
            await request.channel.write(piece)
            if usage is not None:
                usage.feed(piece)
        if usage is not None and status < 300:
            record.reply.count(usage.finish())
        record.response.complete()
        await request.channel.end()

    async def _respond(self, response: HttpResponse, data: bytes) -> None:
        if self._passed.runs_model:
            self._record.reply.count(counted_tokens(data))
        await self._begin(response)
        await self._request.channel.write(data)
        self._record.response.complete()
        await self._request.channel.end()

    async def _begin(self, response: HttpResponse) -> int:
        record, mask = self._record, self._services.secrets.mask
        returned = {name: mask(response.headers[name]) for name in _RETURNED if name in response.headers}
        returned |= {"x-toolglot-request": record.id, "x-toolglot-upstream": self._upstream.name}
        status = response.status if 200 <= response.status <= 599 else 502
        record.response.begin(status)
        await self._request.channel.begin(status, returned)
        return status

    async def _pieces(self, response: HttpResponse) -> AsyncIterator[bytes]:
        """The body as it is forwarded."""
        if response.status < 400:
            return response.pieces()
        return _one_piece(self._services.secrets.mask_bytes(await response.whole(MAX_ERROR)))

    # --- stored objects -----------------------------------------------------------------------------

    async def _note_object(self, data: bytes, names: BodyNames, batch: OwnedObject | None) -> None:
        """Remember who owns a new object and what its provider made for it, and count a batch that has ended."""
        shown = await offloading.run(0, len(data), lambda: read_object(data))
        if shown is None:
            return
        passed, client, objects = self._passed, self._request.client, self._services.objects
        own: dict[str, OwnedObject] = {}
        id = self._id_of(shown)
        if passed.creates and id:
            models, tokens = names.file_models, names.file_tokens
            if batch is not None:
                models, tokens = batch.models, batch.tokens
            own[id] = OwnedObject(client, models=models, tokens=tokens)
        own |= dict.fromkeys(self._results(data), OwnedObject(client))
        try:
            await objects.claim(own)
            counts = await self._batch_counts(shown) if passed.shows_object else None
        except StoreError as error:
            if self._services.ring.is_shared:
                raise
            self._record.response.store_failed(str(error))
            return
        if counts is not None:
            self._record.route, usage = counts
            self._record.reply.count(usage)

    def _id_of(self, shown: StoredObject) -> str:
        return shown.name if self._passed.paths.is_named_by_path else shown.id

    def _results(self, data: bytes | Raw) -> list[str]:
        """The ids of objects that the provider made for one."""
        paths, prefix = self._passed.paths, self._protocol.service_prefix
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        if isinstance(value, dict) and not paths.is_named_by_path:  # deeper, it may be what the client sent
            value = {name: inner for name, inner in value.items() if name in paths.results}
        found = [as_object_id(paths, each, prefix) for each in named_objects(value, paths.results)]
        return [id for id in found if id][:MAX_RESULTS]

    async def _batch_counts(self, shown: StoredObject) -> tuple[RecordedRoute, dict[str, int]] | None:
        """What a batch that has ended used, once; None: it has not ended, or is counted."""
        collection, objects = self._passed.collection, self._services.objects
        if collection is None or collection.batch != "file" or shown.status not in ENDED or not shown.id:
            return None
        row = (await objects.find([shown.id])).get(shown.id)
        if row is None or row.owner != self._request.client:
            return None
        counts, is_estimated = batch_counts(shown, row.tokens)
        if counts is None or not await objects.count_once(shown.id):
            return None
        if is_estimated:
            self._record.reply.add(NOT_COUNTED)
        model = (row.models or (shown.model or "",))[0]
        return msgspec.structs.replace(self._record.route, model=model), counts

    # --- lists --------------------------------------------------------------------------------------

    async def _forward_list(self, response: HttpResponse, query: str) -> None:
        """Forward the objects of a list that belong to the client's key, from several pages if need be."""
        passed, request = self._passed, self._request
        assert passed.collection is not None  # noqa: S101 - it is a list
        field = passed.collection.path.rpartition("/")[2] if passed.paths.is_named_by_path else "data"
        limit = int(text) if (text := request.query.get("limit", "")).isdecimal() and len(text) < _FEW_DIGITS else 0
        own: list[tuple[str, Raw]] = []
        data = await self._whole(response)
        for number in range(MAX_PAGES):
            page, last = await self._own_part(data, field, own)
            is_enough = bool(own) and (not limit or len(own) >= limit)
            if is_enough or not page.has_more or not last or "before" in query:
                break
            if number == MAX_PAGES - 1:
                break
            data = await self._next_page(query, last)
        if page.has_more and not own:
            message = "none of the newest objects of the provider's account is this key's; send a larger `limit`"
            raise refusal("bad_request", message, 400)
        cut = own[: limit or None]
        has_more = page.has_more or len(cut) < len(own)
        for _, item in cut:
            await self._note_listed(item)
        await self._respond(response, write_page(page.fields, field, cut, has_more=has_more))

    async def _own_part(self, data: bytes, field: str, own: list[tuple[str, Raw]]) -> tuple[ObjectPage, str]:
        """Add the client's own objects of a page. Returns the page, and the id of its last object."""
        page = await offloading.run(0, len(data), lambda: read_page(data, field))
        if page is None:
            message = f"{self._upstream.name} sent a list that cannot be read, so it cannot be separated by client key"
            raise refusal("server", message, 502)
        shown = [(self._id_of(each), item) for item in page.items if (each := read_object(item)) is not None]
        found = await self._services.objects.find([id for id, _ in shown])
        client = self._request.client
        own += [(id, item) for id, item in shown if id in found and found[id].owner == client]
        return page, shown[-1][0] if shown else ""

    async def _next_page(self, query: str, last: str) -> bytes:
        cursor = self._passed.paths.cursor
        parts = [part for part in query.removeprefix("?").split("&") if part and part.partition("=")[0] != cursor]
        following = await self._send("?" + "&".join([*parts, f"{cursor}={quote(last, safe='')}"]))
        try:
            if following.status >= 300:
                raise refusal("server", f"{self._upstream.name} did not send the next page of a list", 502)
            return await self._whole(following)
        finally:
            await following.close()

    async def _note_listed(self, item: Raw) -> None:
        """What `_note_object` does, for one of several objects."""
        client, services = self._request.client, self._services
        await services.objects.claim(dict.fromkeys(self._results(item), OwnedObject(client)))
        shown = read_object(item)
        counts = await self._batch_counts(shown) if shown is not None else None
        if counts is None:
            return
        record = RequestRecord(self._record.id, self._record.request.method, self._record.request.path, client=client)
        record.route, usage = counts
        record.reply.count(usage)
        record.response.complete(200)
        services.meter.record(services.meter.counted_apart(client), record)


def _batch_file(
    passed: PassedRequest, names: BodyNames, used: Mapping[str, OwnedObject], protocol: Protocol
) -> OwnedObject | None:
    """The file with the requests of a batch."""
    if not passed.is_batch or len(names.references) != 1:
        return None
    return used.get(as_object_id(protocol.passed, names.references[0], protocol.service_prefix))


def _upstream_to_set(protocol: Protocol) -> str:
    """The provider whose paths these are, and how it is configured."""
    provider = PROVIDERS.get(protocol.provider)
    if provider is None:
        return f"the protocol {protocol.name}: configure one in [upstreams]"
    variables = " or ".join(provider.key_env)
    table = f"add [upstreams.{provider.name}] to toolglot.toml"
    return f"{provider.title}: set {variables}, or {table}" if variables else f"{provider.title}: {table}"


def upstreams_of(protocol: Protocol, upstreams: Upstreams) -> tuple[list[Upstream], list[Upstream]]:
    """The upstreams that a path of a protocol most likely means, and all that could have it."""
    names = {record.name for record in family(protocol)}
    of_kind = [
        upstream for upstream in upstreams.configured_upstreams() if profiles.get(upstream.target).protocol in names
    ]
    named = [upstream for upstream in of_kind if upstream.target == protocol.provider]
    return named if len(named) == 1 else of_kind, of_kind


def forwarded_query(request: ClientRequest) -> str:
    """The query of a client, with its question mark, as a provider gets it: without the client's key."""
    query = "&".join([part for part in request.raw_query.split("&") if part and not _is_key(part)])
    return f"?{query}" if query else ""


def _is_key(part: str) -> bool:
    """Whether a part of a query is the client's key."""
    return unquote_plus(part.partition("=")[0]) == "key"


def _is_safe(path: str) -> bool:
    """Whether a path stays below the address that it is appended to, however often it is unquoted."""
    for _ in range(4):
        if _UNSAFE.search(path):
            return False
        before, path = path, unquote(path)
        if path == before:
            return True
    return False


async def _one_piece(data: bytes) -> AsyncIterator[bytes]:
    yield data
