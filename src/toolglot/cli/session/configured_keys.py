"""The client keys that a configuration has, for `toolglot keys`: they are as good as those of the store.

Law: only names of variables and hashes are shown, never a key. A variable that is not set here may well be set where
the gateway runs, so that a key in one is listed all the same; only its id is not known then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.gateway.accounting.client_keys import ID_LENGTH, ClientKey, configured_keys
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.secret import ENV
from toolglot.gateway.config.settings import Config

_SHOWN: Final = 16
"""Characters of a hash as a configuration writes it."""


class ConfiguredKey(Struct, frozen=True):
    """A client key of a configuration."""

    key: ClientKey
    origin: str
    """Where it stands: the file, or the variable where there is none, and the setting."""

    def is_called(self, name: str) -> bool:
        """Whether somebody means this key: by its name, its id, or the variable that holds it."""
        return bool(name) and name in (self.key.name, self.key.id, self.key.shown, self.key.shown.removeprefix("$"))


def keys_of(config: Config | None, environ: Mapping[str, str]) -> list[ConfiguredKey]:
    """Those of `[keys.NAME]` and of `client_keys`; none, where there is no configuration."""
    if config is None:
        return []
    named = configured_keys(config.keys)
    hashes = [*dict.fromkeys([key.hashed for key in named]), *config.gateway.client_keys]
    by_hash = {key.hashed: key for key in named}
    found = []
    for hashed in dict.fromkeys(hashes):
        if hashed == STORED_KEYS:
            continue
        key = by_hash.get(hashed) or ClientKey(id=hashed[:ID_LENGTH], name="", hashed=hashed, shown="", created=0.0)
        written = config.key_origins.get(hashed, "")
        setting = f"[keys.{key.name}]" if key.name else "client_keys"
        if written.startswith(ENV):
            name = written.removeprefix(ENV)
            is_set = bool(environ.get(name, "").strip())
            key = replace(key, shown=f"${name}", id=key.id if is_set else "")
        else:
            key = replace(key, shown=f"{written[:_SHOWN]}…")
        found.append(ConfiguredKey(key, f"{config.origin}, {setting}" if config.origin else key.shown))
    return found
