"""The gateway's own secrets: the keys of its upstreams, and of the routes to them.

A provider, or a proxy in front of it, may repeat a key that does not look like one. The gateway knows its own keys, and
masks them in errors, headers and logs.

Law: not in replies. The text of a model reaches the client as it is, even if it quotes a file with the same key.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from toolglot.gateway.config.settings import Config
from toolglot.masking import KnownSecrets, header_secrets
from toolglot.upstream.routing.routes import ModelEntry
from toolglot.upstream.secret import Secret
from toolglot.upstream.settings import UpstreamSettings


def own_secrets(config: Config) -> KnownSecrets:
    """The secrets of a configuration."""
    return KnownSecrets(itertools.chain(*map(_keys, config.upstreams.values()), *map(_route_keys, config.models)))


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
    return header_secrets({name: value.reveal() for name, value in headers.items()})
