"""Which proxy a request to a host uses: one that was configured, or the environment's.

    HTTPS_PROXY, HTTP_PROXY, ALL_PROXY      by the scheme of the address; lowercase too, and those first
    NO_PROXY                                hosts, domains with all that is under them, addresses, networks, or *

Law: this machine is never reached through a proxy of the environment, which could not find a server on loopback. A
password in a proxy's address is in no message.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from toolglot.errors import InputError

_LOCAL: Final = "localhost"


class Proxies:
    """The proxies of one process: looked up once for each host."""

    def __init__(self, named: str | None, environ: Mapping[str, str]) -> None:
        """`named`: the proxy for everything; empty: none at all; None: those of the environment."""
        self._named = _check(named, "proxy") if named else named
        self._environ = environ
        self._found: dict[tuple[str, str, int | None], str | None] = {}

    def between(self, scheme: str, host: str, port: int | None) -> str | None:
        """The address of the proxy for a host; None: there is none."""
        if self._named is not None:
            return self._named or None
        key = (scheme, host, port)
        if key not in self._found:
            self._found[key] = self._look_up(scheme, host, port)
        return self._found[key]

    def _look_up(self, scheme: str, host: str, port: int | None) -> str | None:
        names = [name for kind in (scheme, "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())]
        name, value = next(((name, self._environ[name]) for name in names if self._environ.get(name)), ("", ""))
        left_out = self._environ.get("no_proxy") or self._environ.get("NO_PROXY", "")
        if not value or _is_left_out(host, port or (443 if scheme == "https" else 80), left_out):
            return None
        return _check(value, name)


def _check(proxy: str, path: str) -> str:
    """The address of a proxy; what cannot be one is an error."""
    address = proxy.strip() if "://" in proxy else f"http://{proxy.strip()}"
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InputError("expected the address of an HTTP proxy", path=path, hint="such as http://proxy.example:3128")
    return address


def host_and_port(proxy: str) -> str:
    """The host and port of a proxy, without user and password."""
    parts = urlsplit(proxy)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _is_left_out(host: str, port: int, left_out: str) -> bool:
    host = host.strip("[]").rstrip(".").lower()
    address = _address(host)
    if host == _LOCAL or host.endswith(f".{_LOCAL}") or (address is not None and address.is_loopback):
        return True
    return any(_names(entry.strip().lower(), host, port, address) for entry in left_out.split(","))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _names(entry: str, host: str, port: int, address: _Address | None) -> bool:
    """Whether an entry of NO_PROXY is about a host."""
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass  # a name, or an address with its port
    name, colon, its_port = entry.rpartition(":")
    if colon and its_port.isdecimal() and "]" not in its_port:
        if its_port != str(port):
            return False
        entry = name.strip("[]")
    domain = entry.removeprefix("*").removeprefix(".").rstrip(".")
    return entry == "*" or (bool(domain) and (host == domain or host.endswith(f".{domain}")))
