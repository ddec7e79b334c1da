"""Client keys of a configuration: `client_keys` of `[gateway]`, without limits, and `[keys.NAME]`, with limits.

Law: a key itself is never in a file. It is in a variable, or its hash is there; from here on there is only the
hash.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from toolglot.gateway.config.file import ConfigText, Mistakes, read_table, table_of
from toolglot.gateway.config.variables import ENV, is_sendable, is_variable, shown_variable, variable

STORED_KEYS: Final = "store"
"""Among the client keys: those that `toolglot keys` makes, even while there are none."""
MAX_KEYS: Final = 1000
MAX_NAME_LENGTH: Final = 64
_HASHED: Final = "sha256:"
_SHORT_KEY: Final = 16

Count = Annotated[Annotated[int, Meta(ge=1, le=10**15)] | None, Meta(title="a whole number from 1")]
Dollars = Annotated[Annotated[float, Meta(gt=0, le=10**6)] | None, Meta(title="a number above 0")]


class KeySettings(Struct, frozen=True, kw_only=True):
    """`[keys.NAME]`: a client key with limits. What is not limited has no limit; days and months are those of UTC."""

    key: Annotated[
        str,
        Meta(
            title="a string", description='`"env:NAME"`, the variable that holds the key, or `"sha256:HEX"`, its hash.'
        ),
    ]
    models: Annotated[
        tuple[str, ...],
        Meta(
            max_length=1000,
            title="a list of strings",
            description="Patterns of the model names that it may request. Default: all.",
        ),
    ] = ()
    admin: Annotated[
        bool,
        Meta(
            title="true or false",
            description="It sees the requests of all clients, in [the inspector](inspector.md) and at "
            "`/toolglot/requests`, and may purge them. Default: its own only.",
        ),
    ] = False
    requests_per_minute: Annotated[Count, Meta(description="Requests per minute.")] = None
    tokens_per_minute: Annotated[Count, Meta(description="Tokens per minute, of prompts and replies.")] = None
    tokens_per_day: Annotated[Count, Meta(description="Tokens per day.")] = None
    tokens_per_month: Annotated[Count, Meta(description="Tokens per month.")] = None
    tokens_total: Annotated[Count, Meta(description="Tokens in total.")] = None
    spend_per_day: Annotated[Dollars, Meta(description="Spending per day, in US dollars.")] = None
    spend_per_month: Annotated[Dollars, Meta(description="Spending per month, in US dollars.")] = None
    spend_total: Annotated[Dollars, Meta(description="Spending in total, in US dollars.")] = None

    def limits(self) -> dict[str, Any]:
        """All but the key, with money as it was written."""
        found = {name: getattr(self, name) for name in self.__struct_fields__ if name != "key"}
        return {name: _money(limit) if isinstance(limit, float) else limit for name, limit in found.items()}


def _money(amount: float) -> Decimal:
    return Decimal(str(amount).removesuffix(".0"))


_BEGUN: Final = hashlib.sha256()
"""Copying it takes half as long as making a new one."""


def digest(key: str) -> str:
    """The hash of a key: all that is stored of it."""
    hashed = _BEGUN.copy()
    hashed.update(key.encode(errors="surrogatepass"))
    return hashed.hexdigest()


def read_keys(value: Any, environ: Mapping[str, str], text: ConfigText) -> dict[str, KeySettings]:
    """The tables `[keys.NAME]`, with hashes for keys."""
    found: dict[str, KeySettings] = {}
    tables = table_of(value, text, "keys")
    if len(tables) > MAX_KEYS:
        raise text.error(f"more than {MAX_KEYS} keys", "keys", hint="put them into the store: `toolglot keys add`")
    mistakes = Mistakes()
    for name, table in tables.items():
        settings = mistakes.collect(functools.partial(_read_key, name, table, found, environ, text))
        if settings is not None:
            found[name] = settings
    mistakes.raise_all()
    return found


def _read_key(
    name: str, table: Any, found: Mapping[str, KeySettings], environ: Mapping[str, str], text: ConfigText
) -> KeySettings:
    """One table; `found` are those before it."""
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise text.error(f"expected a name of 1 to {MAX_NAME_LENGTH} printable characters", "keys", name)
    if "key" not in table_of(table, text, "keys", name):
        hint = f'write key = "{ENV}NAME_OF_THE_VARIABLE", or "{_HASHED}HEX"'
        raise text.error("missing setting: key", "keys", name, hint=hint)
    settings = read_table(table, KeySettings, text, "keys", name)
    hashed = read_client_key(settings.key, environ, text, "keys", name, "key")
    if any(hashed == other.key for other in found.values()):
        raise text.error("another name has the same key", "keys", name, "key", hint="give each client its own")
    return replace(settings, key=hashed)


def read_client_key(entry: str, environ: Mapping[str, str], text: ConfigText, *at: str) -> str:
    """The hash of a key."""
    if entry.startswith(_HASHED):
        hashed = entry.removeprefix(_HASHED).lower()
        if re.fullmatch(r"[0-9a-f]{64}", hashed):
            return hashed
        raise text.error(f"expected 64 hexadecimal digits after {_HASHED}", *at, hint="run: printf %s KEY | sha256sum")
    name = entry.removeprefix(ENV)
    if not entry.startswith(ENV) or not is_variable(name):
        hint = f'put the key into a variable and write "{ENV}NAME", or its hash as "{_HASHED}HEX"'
        raise text.error("the file must not contain a key itself", *at, hint=hint)
    value = variable(environ, name)
    if not value:
        raise text.error(f"{shown_variable(name)} is not set in the environment", *at, hint="set it to the key")
    if not is_sendable(value):
        message = f"the value of {shown_variable(name)} cannot be sent in a header"
        raise text.error(message, *at, hint="set it to one line of ASCII characters")
    return digest(value)


def short_keys(entries: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings about keys in variables that are too short."""
    names = [entry.removeprefix(ENV) for entry in entries if entry.startswith(ENV)]
    short = [name for name in names if 0 < len(variable(environ, name)) < _SHORT_KEY]
    problem = f"is shorter than {_SHORT_KEY} characters: a short client key can be guessed"
    return tuple(f"{shown_variable(name)} {problem}" for name in short)
