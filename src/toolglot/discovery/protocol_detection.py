"""Finds the list of models, the protocols that an endpoint speaks, and their base URLs.

Users pass `https://host`, `https://host/v1` or the URL of a request itself; keys go into different headers. An endpoint
speaks a protocol if it replies to a greeting in it.

Law: only the host of the URL gets requests, and only a few small ones for each protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.discovery.bodies import RequestStyle, user
from toolglot.discovery.endpoint_client import EndpointClient, ProbeRequest, ProtocolRoute
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import protocol_order
from toolglot.discovery.secret_masking import visible
from toolglot.protocols.base import get
from toolglot.protocols.fields.model_limits import read_limits
from toolglot.upstream import PROVIDERS, Auth, Provider

_ENDINGS: Final = re.compile(
    r"/(?:chat/completions|completions|responses|messages|api/chat|v2/chat|models(?:/[^/]+)?)/?$"
)
_VERSION: Final = re.compile(r"/v\d{1,3}(?:(?:alpha|beta)\d{0,2})?$")
_NOT_CHAT: Final = re.compile(
    r"embed|whisper|tts|rerank|dall-e|moderation|image|audio|transcri|guard|ocr", re.IGNORECASE
)
_ABSENT: Final = (404, 405)
MAX_MODELS: Final = 500
MAX_MODEL_NAME: Final = 200
GREETING: Final = "Say hello."


class Model(Struct, frozen=True):
    """A model of the list."""

    name: str
    context: int | None = None


class WorkingProtocol(Struct, frozen=True, kw_only=True):
    """A protocol that the endpoint has, and how to use it."""

    route: ProtocolRoute
    style: RequestStyle
    response: ParsedReply
    answers: bool = True
    """False: the endpoint has it, but refuses the greeting."""


class ReachedEndpoint(Struct, frozen=True, kw_only=True):
    """What is known of an endpoint before the probes."""

    ways: tuple[WorkingProtocol, ...]
    models: tuple[Model, ...]
    listing: str
    """The exchange that lists the models; empty if there is none."""
    problems: tuple[str, ...]
    """Why the other protocols do not work, in a few words."""


def base_target(protocol: str) -> str:
    """The profile that an unknown endpoint of a protocol extends."""
    record = get(protocol)
    return record.base_target or record.provider


def known_provider(url: str) -> Provider | None:
    """The known provider with this host."""
    host = urlsplit(url).netloc.lower()
    for provider in PROVIDERS.values():
        if provider.url and urlsplit(provider.url).netloc.lower() == host:
            return provider
    return None


def base_of(url: str) -> str:
    """The base URL of a URL that may be that of a request."""
    parts = urlsplit(url)
    path = _ENDINGS.sub("", parts.path.rstrip("/"))
    return parts._replace(path=path, fragment="").geturl()


def bases_for(protocol: str, url: str) -> list[str]:
    """Base URLs that a protocol may have, the likeliest first."""
    parts = urlsplit(url)
    kind = get(protocol).base_url
    if kind == "root":
        return [parts._replace(path=_VERSION.sub("", parts.path)).geturl()]
    if kind == "any" or _VERSION.search(parts.path):
        return [url]
    return [url, parts._replace(path=f"{parts.path}/v1").geturl()]


def auths_for(protocol: str, key: str, known: Provider | None) -> list[Auth]:
    if not key:
        return ["none"]
    own = known.auth if known is not None else get(protocol).auth
    return [own] if own in ("bearer", "aws") else [own, "bearer"]


async def detect_protocols(
    client: EndpointClient, *, protocols: Sequence[str] = (), model: str = "", target: str = ""
) -> ReachedEndpoint:
    """The protocols that work. Without a model, the first of the list that looks like one for chats."""
    protocols = protocols or protocol_order()
    url = base_of(client.endpoint.url)
    known = known_provider(url)
    models, listing = await _list(client, url, protocols, known)
    chosen = model or pick_model(models)
    ways: list[WorkingProtocol] = []
    problems: dict[str, str] = {}
    for protocol in protocols:
        way = await _try_protocol(client, protocol, url, chosen, known, target)
        if isinstance(way, WorkingProtocol):
            ways.append(way)
        else:
            problems[protocol] = way
    if not models and ways and all(way.response.status in _ABSENT for way in ways):
        # An endpoint that has nothing at any URL, the list included, does not speak these protocols.
        problems |= {way.route.protocol: way.response.words for way in ways}
        ways = []
    return ReachedEndpoint(
        ways=tuple(ways), models=models, listing=listing, problems=_group_problems(problems, protocols)
    )


def _group_problems(problems: Mapping[str, str], protocols: Sequence[str]) -> tuple[str, ...]:
    """Each reason with its protocols; without them, if it is the same for all."""
    by_reason: dict[str, list[str]] = {}
    for protocol, why in problems.items():
        by_reason.setdefault(why, []).append(protocol)
    if len(by_reason) == 1 and len(problems) == len(protocols):
        return tuple(by_reason)
    return tuple(f"{', '.join(named)}: {why}" for why, named in by_reason.items())


# --- models -----------------------------------------------------------------------------------------


async def _list(
    client: EndpointClient, url: str, protocols: Sequence[str], known: Provider | None
) -> tuple[tuple[Model, ...], str]:
    client.probe = "endpoint.models"
    tried: set[str] = set()
    for protocol in (name for name in protocols if get(name).models.path is not None):
        for base in bases_for(protocol, url):
            address = f"{base}{get(protocol).models.path}"
            if address in tried:
                continue
            tried.add(address)
            auth = auths_for(protocol, client.endpoint.key, known)[0]
            route = ProtocolRoute(protocol=protocol, target=base_target(protocol), base=base, auth=auth)
            response = await client.get(route, get(protocol).models.path or "", "the list of models")
            found = models_in(response.value)
            if found:
                return found, response.name
    return (), ""


def models_in(value: Any) -> tuple[Model, ...]:
    """The models of a list, whatever its form, without names that cannot be shown as they are."""
    if isinstance(value, dict):
        entries: list[Any] = next((value[key] for key in ("data", "models") if isinstance(value.get(key), list)), [])
    else:
        entries = value if isinstance(value, list) else []
    return tuple(_models(entries))[:MAX_MODELS]


def _models(entries: list[Any]) -> Iterator[Model]:
    for entry in entries[: 4 * MAX_MODELS]:
        fields = entry if isinstance(entry, dict) else {"id": entry}
        name = next((fields[key] for key in ("id", "name", "model") if isinstance(fields.get(key), str)), "")
        if 0 < len(name) <= MAX_MODEL_NAME and name.isprintable() and visible(name) == name and "\\" not in name:
            yield Model(name.removeprefix("models/"), read_limits(fields).get("window"))


def pick_model(models: Sequence[Model]) -> str:
    """The first model that looks like one for chats; empty if there is none."""
    return next((model.name for model in models if not _NOT_CHAT.search(model.name)), "")


# --- protocols --------------------------------------------------------------------------------------


async def _try_protocol(
    client: EndpointClient, protocol: str, url: str, model: str, known: Provider | None, target: str
) -> WorkingProtocol | str:
    """How a protocol works at the endpoint, or why it does not."""
    client.probe = f"endpoint.{protocol}"
    own = target or _own_target(protocol, known) or base_target(protocol)
    best: WorkingProtocol | None = None
    why = "no response"
    for base in bases_for(protocol, url):
        for auth in auths_for(protocol, client.endpoint.key, known):
            route = ProtocolRoute(protocol=protocol, target=own, base=base, auth=auth, model=model or "default")
            way = await _greet(client, route)
            if way.answers:
                return way
            why = _why(way.response)
            if way.response.verdict in ("refused", "denied", "busy", "broke") and best is None:
                best = way
            if way.response.verdict != "denied":
                break
    return best if best is not None else why


def _why(response: ParsedReply) -> str:
    """Why a greeting got no reply, in a few words."""
    if response.verdict == "absent":
        return f"nothing at this URL (status {response.status})"
    return response.words or response.verdict


def _own_target(protocol: str, known: Provider | None) -> str:
    """The profile of a known host, if it has this protocol."""
    for name in (known.target, *known.also) if known is not None else ():
        if profiles.get(name).protocol == protocol:
            return name
    return ""


async def _greet(client: EndpointClient, route: ProtocolRoute) -> WorkingProtocol:
    style = RequestStyle(protocol=route.protocol, target=route.target, model=route.model)
    fields = ("max_tokens", "max_completion_tokens") if style.has("two_limit_fields") else ("max_tokens",)
    first: WorkingProtocol | None = None
    for field in fields:
        tried = msgspec.structs.replace(style, limit_field=field)
        body = tried.body(user(GREETING), tools=None)
        response = await client.send(route, ProbeRequest(body=body, about=f"a greeting ({route.protocol})"))
        way = WorkingProtocol(route=route, style=tried, response=response, answers=response.accepted)
        if response.accepted:
            return way
        first = first or way
        if response.verdict != "refused":
            break
    return first or way
