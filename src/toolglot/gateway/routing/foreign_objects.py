"""Requests for models that name stored objects of another client key: a file, a cached context, a vector store.

All client keys share the provider's account, so the gateway separates what it stores. What counts is the request as it
is sent: a client of any protocol can name a file of the upstream, for example as the address of an image.

Law: an object of another key does not exist, whichever protocol names it. What no key created through the gateway is
left to the provider.
"""

from __future__ import annotations

from toolglot.errors import InputError
from toolglot.gateway.endpoints.passed_requests import as_object_id, named_objects
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import GatewayRefusal, refusal
from toolglot.gateway.services import Services
from toolglot.jsontext import parse
from toolglot.limits import MAX_DEPTH, Limits
from toolglot.protocols.base import Protocol, family, get


async def refuse_foreign_objects(services: Services, client: str, protocol: str, data: bytes, values: int) -> None:
    """Refuse a request that names an object of another client key.

    protocol: the protocol of the upstream.
    data: the body as it is sent. It has about this many values.
    """
    if not services.ring.is_shared or not services.objects.is_stored:
        return
    described = [record for record in family(get(protocol)) if record.passed.references]
    fields = frozenset[str]().union(*(record.passed.references for record in described))
    if not fields or not (any(f'"{name}"'.encode() in data for name in fields) or b"\\u00" in data):
        return
    ids = await offloading.run(values, len(data), lambda: _named_ids(data, fields, described, services.limits))
    for id, known in (await services.objects.find(ids)).items():
        if known.owner != client:
            raise no_object(id)


def _named_ids(data: bytes, fields: frozenset[str], described: list[Protocol], limits: Limits) -> list[str]:
    # Rendering may add to a body that was within the limits.
    wider = Limits(max_bytes=2 * limits.max_bytes, max_depth=MAX_DEPTH, max_nodes=2 * limits.max_nodes)
    try:
        parsed = parse(data, limits=wider)
    except InputError as error:
        raise refusal("bad_request", f"cannot read the body of the request: {error}", 400) from None
    named = [*named_objects(parsed.value, fields)]
    if named and parsed.repairs:  # a repeated key hides an id from one of two readers
        raise refusal("bad_request", f"the body can be read in more than one way: {parsed.repairs[0]}", 400)
    return [as_object_id(record.passed, each, record.service_prefix) for record in described for each in named]


def no_object(id: str) -> GatewayRefusal:
    return refusal("not_found", f"No object found with id {id[:200]!r}.", 404)
