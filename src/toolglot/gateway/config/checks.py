"""Addresses, headers and hosts of a configuration: what may stand there, and what must not.

Law: these decide where keys are sent, so they are strict: no address with a name and password, no plain HTTP to another
machine unless that was said, no header that could end the one before it. What is wrong comes back as a text, without
the value; the caller knows the place.
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
_TRANSPORTS_OWN: Final = frozenset(
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
    """Whether only programs on this machine can be meant."""
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
    return ValueMistake(
        "this is no address to listen on", 'for example "127.0.0.1" or "::1"; the port has a key of its own'
    )


def wrong_origin(origin: str) -> ValueMistake | None:
    """What is wrong with the origin of a web page, as browsers write it."""
    found = _ORIGIN.fullmatch(origin)
    if origin == "null" or (found is not None and (found["host"] != "*" or found["scheme"] not in ("http", "https"))):
        return None
    return ValueMistake(
        "is no origin of a web page",
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
        return ValueMistake("a base address has no query and no fragment", "such as https://api.example.com/v1")
    parts = urlsplit(url)
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname or ""):
        return ValueMistake(
            "plain http to another machine would show the key and the conversation to everybody between",
            "use https, or accept that with insecure = true",
        )
    return None


def wrong_proxy(url: str) -> ValueMistake | None:
    """What is wrong with the address of a proxy, which may hold a name and a password."""
    scheme, _, rest = url.partition("://")
    try:
        check_url(f"{scheme}://{rest.rpartition('@')[2]}")
    except InputError:
        return ValueMistake("this is no address of an http proxy", 'write it like "http://proxy.example:3128"')
    return None


def wrong_header(name: str) -> ValueMistake | None:
    """What is wrong with the name of a header that is to be sent along."""
    if not _HEADER_NAME.fullmatch(name):
        return ValueMistake("this is no name of a header", "letters, digits and dashes")
    if name.lower() in _TRANSPORTS_OWN:
        return ValueMistake("this header is written by the gateway itself", "leave it out")
    return None
