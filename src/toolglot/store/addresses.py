"""Addresses of stores on a server: our parameter, the address for the driver, and what may be shown.

    postgres://user:password@host:5432/database?schema=toolglot
    rediss://user:password@host:6380/0?prefix=toolglot

Law: no text for a message contains the password, or anything that could be a part of it.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from toolglot.errors import InputError
from toolglot.masking import KnownSecrets, is_secret_parameter

UNACKNOWLEDGED_SECONDS: Final = 15
HINTS: Final = {
    "postgres": "write postgres://USER:PASSWORD@HOST:5432/DATABASE, with %XX for / @ : ? # % in the password",
    "redis": "write redis://USER:PASSWORD@HOST:6379/0, with %XX for / @ : ? # % in the password",
}


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The address of a server. `location` is for messages; its `repr` shows no more than that."""

    location: str
    url: str = field(repr=False)
    """For the driver: without our own parameter."""
    name: str
    """The name of the schema or prefix, which separates this store from others on the same server."""
    secrets: tuple[str, ...] = field(repr=False)

    def hide(self, text: str) -> str:
        """The text without the password, in case a driver quotes it."""
        return KnownSecrets(self.secrets, min_length=1).mask(text)


def read_address(where: str, *, kind: str, parameter: str, pattern: re.Pattern[str]) -> StoreAddress:
    """The parts of an address. The error for an invalid one does not quote it."""
    hint = HINTS[kind]
    try:
        parts = urlsplit(where)
        port = parts.port
    except ValueError:
        raise InputError("not the address of a store", path="$.store", hint=hint) from None
    if any(character.isspace() or not character.isprintable() for character in where):
        raise InputError("not the address of a store", path="$.store", hint=hint)
    wanted = parse_qsl(parts.query, keep_blank_values=True)
    name = dict(wanted).get(parameter, "toolglot")
    if not pattern.fullmatch(name):
        raise InputError(f"expected lowercase letters, digits and _ in {parameter}", path="$.store", hint=hint)
    rest = [(key, value) for key, value in wanted if key != parameter]
    host = parts.hostname or dict(rest).get("host") or "localhost"
    location = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"
    return StoreAddress(location, urlunsplit(parts._replace(query=urlencode(rest))), name, _secrets(parts, rest))


def _secrets(parts: SplitResult, wanted: list[tuple[str, str]]) -> tuple[str, ...]:
    """The secrets of an address, as written and unquoted."""
    written = parts.password or ""
    found = {written, unquote(written), *(value for key, value in wanted if is_secret_parameter(key))}
    return tuple(sorted(found - {""}))


def dead_peer_options() -> dict[int, int]:
    """Options that end a TCP connection whose packets are not acknowledged, if the system has them."""
    named = {"TCP_USER_TIMEOUT": UNACKNOWLEDGED_SECONDS * 1000, "TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}
    return {getattr(socket, name): value for name, value in named.items() if hasattr(socket, name)}


def is_address(where: str) -> bool:
    """Whether it is the address of a server, and not a file."""
    return where.partition("://")[0].lower() in SCHEMES and "://" in where


def display_location(where: str) -> str:
    """The location of a store for a message: a path as it is, a URL without its secrets."""
    if "://" not in where:
        return where
    scheme, _, rest = where.partition("://")
    # The last @, because a password may contain one; and no parameters, which may be secret too.
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


SCHEMES: Final = {"postgres": "postgres", "postgresql": "postgres", "redis": "redis", "rediss": "redis"}
"""Schemes, and the extra that brings their driver."""
