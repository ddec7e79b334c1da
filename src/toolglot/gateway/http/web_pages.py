"""Requests of web pages: which are refused, and which get CORS headers.

    refuse_pages(request, allowed)                      # for a gateway without client keys
    if is_allowed(origin, allowed): request.channel = PageChannel(request.channel, origin)

Every page in a browser of this machine can send requests to loopback. A gateway without client keys would spend its
owner's money for all of them, so it serves none, unless its configuration names the page (`allowed_origins`).

    what a page can do                                   why it is refused
    fetch, a form, from another origin                   Origin, which the browser writes, is not this machine's
    a sandboxed frame, a local file                      Origin is "null", which every such page has
    a name of its own that leads to 127.0.0.1            Host is that name (DNS rebinding)
    an image, a script, a link: GET without an Origin    Sec-Fetch-Site is "cross-site"
    reading a response, headers of its own               no CORS headers, no response to a preflight

Law: if a key is needed, the key decides, and the origin only whether a browser shows the response to a page.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.http.requests import ClientRequest, Headers, Hold, ResponseChannel, ignore_size, refusal

MAX_CACHED_LENGTH: Final = 300
_NAMES: Final = re.compile(r"[A-Za-z0-9_, -]{1,4000}")
"""The headers that a page wants to send, as a browser lists them."""
_METHODS: Final = "GET, POST, DELETE"
PREFLIGHT_SECONDS: Final = 600
"""For which a browser sends no other preflight."""


def is_allowed(origin: str, allowed: tuple[str, ...]) -> bool:
    """Whether a configuration names an origin: as it is, or all of its scheme (`vscode-webview://*`)."""
    return bool(allowed) and (origin in allowed or f"{origin.partition('://')[0]}://*" in allowed)


def refuse_pages(request: ClientRequest, allowed: tuple[str, ...]) -> None:
    """Refuse a web page at a gateway without client keys: by its origin, and by a host name that leads here."""
    headers = request.headers
    host = headers.get("host", "")
    origin = headers.get("origin", "")
    if host and not _is_local(f"//{host}"):
        raise refusal("permission", "a gateway without client keys serves loopback host names only (Host)", 403)
    if origin:
        if not _is_local(origin) and not is_allowed(origin, allowed):
            message = "a gateway without client keys serves no web pages (Origin), unless allowed_origins lists them"
            raise refusal("permission", message, 403)
    elif headers.get("sec-fetch-site") == "cross-site":
        raise refusal("permission", "a gateway without client keys serves no web pages (Sec-Fetch-Site)", 403)


def preflight_headers(headers: Headers) -> dict[str, str] | None:
    """The headers for the preflight of an allowed page; None: it is not a preflight."""
    if "access-control-request-method" not in headers:
        return None
    response = {
        "content-type": "text/plain",
        "access-control-allow-methods": _METHODS,
        "access-control-max-age": str(PREFLIGHT_SECONDS),
    }
    wanted = headers.get("access-control-request-headers", "")
    if _NAMES.fullmatch(wanted):
        response["access-control-allow-headers"] = wanted
    if headers.get("access-control-request-private-network") == "true":
        response["access-control-allow-private-network"] = "true"
    return response


class PageChannel:
    """The channel of an allowed page: the response gets CORS headers."""

    __slots__ = ("_channel", "_headers")

    def __init__(self, channel: ResponseChannel, origin: str) -> None:
        self._channel = channel
        self._headers = {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "*",
            "vary": "Origin",
        }

    @property
    def is_gone(self) -> bool:
        return self._channel.is_gone

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._channel.task

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._channel.watch(on_disconnect)

    def stop_watching(self) -> None:
        self._channel.stop_watching()

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        return await self._channel.read(max_bytes, hold)

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        await self._channel.respond(status, {**headers, **self._headers}, data)

    async def begin(self, status: int, headers: Headers) -> None:
        await self._channel.begin(status, {**headers, **self._headers})

    async def write(self, data: bytes) -> None:
        await self._channel.write(data)

    async def end(self) -> None:
        await self._channel.end()


# --- this machine -----------------------------------------------------------------------------------


def _is_local(address: str) -> bool:
    """Whether an address is one of this machine. There are few different ones."""
    return _is_local_cached(address) if len(address) <= MAX_CACHED_LENGTH else is_loopback(_host(address))


@lru_cache(maxsize=64)
def _is_local_cached(address: str) -> bool:
    return is_loopback(_host(address))


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
