"""Checks of addresses, headers and hosts in a configuration.

Law: these decide where keys are sent, so they are strict: no address with user and password, no plain HTTP to another
machine unless the configuration allows it, no header that could end the one before it. A mistake is returned as a
message without the value; the caller adds the path.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from toolglot.errors import InputError
from toolglot.upstream.providers import check_url

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_ORIGIN: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,40})://(?P<host>\*|[a-z0-9._-]{1,253}|\[[0-9a-f:]+\])(?::\d{1,5})?"
)
_TRANSPORT_HEADERS: Final = frozenset(
    {
        *("connection", "content-length", "content-type", "expect", "host", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade", "accept-encoding"),
    }
)


class ValueMistake(Struct, frozen=True):
    """What is wrong with a value, and what to do."""

    message: str
    hint: str


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    name = host.lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def wrong_host(host: str) -> ValueMistake | None:
    """What is wrong with an address to listen on."""
    if re.fullmatch(r"[A-Za-z0-9._:%-]{1,253}", host):
        return None
    return ValueMistake("not an address to listen on", 'for example "127.0.0.1" or "::1"; set the port with port')


def wrong_origin(origin: str) -> ValueMistake | None:
    """What is wrong with the origin of a web page, as browsers write it."""
    found = _ORIGIN.fullmatch(origin)
    if origin == "null" or (found is not None and (found["host"] != "*" or found["scheme"] not in ("http", "https"))):
        return None
    return ValueMistake(
        "is not the origin of a web page",
        'scheme://host or scheme://host:port in lowercase, without a path, such as "https://chat.example", '
        '"vscode-webview://*" or "null"',
    )


def wrong_url(url: str, *, insecure: bool) -> ValueMistake | None:
    """What is wrong with the base address of an upstream."""
    try:
        check_url(url)
    except InputError as error:
        return ValueMistake(error.message, error.hint)
    if "?" in url or "#" in url:
        return ValueMistake("a base address must not have a query or a fragment", "such as https://api.example.com/v1")
    parts = urlsplit(url)
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        return ValueMistake(
            "plain http to another machine exposes the key and the conversation on the network",
            "use https, or set insecure = true to allow it",
        )
    return None


def wrong_proxy(url: str) -> ValueMistake | None:
    """What is wrong with the address of a proxy, which may contain user and password."""
    scheme, _, rest = url.partition("://")
    try:
        check_url(f"{scheme}://{rest.rpartition('@')[2]}")
    except InputError:
        return ValueMistake("not the address of an HTTP proxy", 'such as "http://proxy.example:3128"')
    return None


def wrong_header(name: str) -> ValueMistake | None:
    """What is wrong with the name of a header to send."""
    if not _HEADER_NAME.fullmatch(name):
        return ValueMistake("not the name of a header", "use letters, digits and dashes")
    if name.lower() in _TRANSPORT_HEADERS:
        return ValueMistake("the gateway sets this header itself", "remove it")
    return None
