"""The gateway's own keys, taken out of what others wrote before it is told to anybody.

Patterns (`protocols/errors/masking.py`) know keys by how they look. A provider, or what stands in front of it, may
repeat a key that looks like nothing; the gateway knows its own, and clients are not to.

Law: errors and headers only. What a model says is the client's, also where it quotes a file that holds the same key.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from toolglot.gateway.config.model_table import ModelEntry
from toolglot.gateway.config.secret import Secret
from toolglot.gateway.config.settings import Config
from toolglot.gateway.config.upstream_table import UpstreamSettings
from toolglot.protocols.errors.masking import MASK

SHORTEST: Final = 12
"""What is shorter may be a word: `ollama` is a key that many have."""
_SECRET_NAME: Final = re.compile(r"(?i:key|token|secret|auth|cookie)")
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token)\s+")


class OwnKeys:
    """Knows the keys of all upstreams, and of the routes to them."""

    def __init__(self, config: Config) -> None:
        found = itertools.chain(*map(_keys, config.upstreams.values()), *map(_route_keys, config.models))
        keys = [key for key in found if len(key) >= SHORTEST]
        self._text = _pattern(keys)
        self._data = re.compile(self._text.pattern.encode()) if self._text is not None else None

    def hidden(self, text: str) -> str:
        """The text without them."""
        return self._text.sub(MASK, text) if self._text is not None else text

    def hidden_bytes(self, data: bytes) -> bytes:
        return self._data.sub(MASK.encode(), data) if self._data is not None else data


def _pattern(keys: Iterable[str]) -> re.Pattern[str] | None:
    # The longest first: one key may begin another.
    known = sorted(set(keys), key=lambda key: (-len(key), key))
    return re.compile("|".join(map(re.escape, known))) if known else None


def _keys(upstream: UpstreamSettings) -> Iterator[str]:
    yield upstream.key.reveal()
    if upstream.aws is not None:
        yield upstream.aws.secret_key
        yield upstream.aws.session_token
    yield from _header_keys(upstream.headers)


def _route_keys(entry: ModelEntry) -> Iterator[str]:
    for settings in entry.settings:
        if settings is not None:
            yield from _header_keys(settings.headers)


def _header_keys(headers: Mapping[str, Secret]) -> Iterator[str]:
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            yield _SCHEME.sub("", value.reveal(), count=1)
