"""The models of a session: from a name to a model and its upstream, with its key.

    models = ProviderModels()                               # keys from the environment
    models.find("anthropic/claude-opus-5").upstream

A name is `provider/model`, a model's name alone, which is searched among the patterns of providers, those with a key
first, or `simulated/provider/model`, which needs no key. `upstream/routing/router.py` has the rules.

Laws: a key is read when a model of its provider is first used, and goes nowhere but into its upstream. Nothing is
simulated unless it was named so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Protocol

from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.upstream import PROVIDERS, Transport, Upstream, key_of
from toolglot.upstream.pool import UpstreamPool
from toolglot.upstream.routing.model_names import MAX_LENGTH, SimulatedNames
from toolglot.upstream.routing.no_route import NoRouteError
from toolglot.upstream.routing.router import Router
from toolglot.upstream.routing.routes import ModelEntry, Route
from toolglot.upstream.settings import UpstreamSettings, settings_from_environment


class ModelChoice(Struct, frozen=True):
    """A model and its upstream."""

    name: str
    """`provider/model`, or `simulated/provider/model`."""
    model: str
    """Its name at the provider."""
    upstream: Upstream


class Models(Protocol):
    """Finds models by their names."""

    def find(self, name: str) -> ModelChoice:
        """The model of a name. An `InputError` says what is wrong or missing."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class UpstreamModels:
    """The models of upstreams that exist already."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = {name.lower(): upstream for name, upstream in upstreams.items()}
        self._router = Router(SessionTable({name: SessionUpstream(name) for name in self._upstreams}))

    def find(self, name: str) -> ModelChoice:
        route = _find_route(self._router, name)
        return ModelChoice(route.name, route.model, self._upstreams[route.upstream_name])

    async def close(self) -> None:
        for transport in {id(found.transport): found.transport for found in self._upstreams.values()}.values():
            await transport.close()


class ProviderModels:
    """The models of all providers that toolglot knows, with the keys of the environment, and the simulated ones.

    transport: for all of them; it is not closed here. None: HTTP, opened when it is first needed.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, transport: Transport | None = None) -> None:
        self._environ = environ
        self._settings: dict[str, UpstreamSettings] = {}
        self._pool = UpstreamPool(self._settings, _SimulatedUpstreams(), transport=transport)

    def find(self, name: str) -> ModelChoice:
        route = _find_route(self._router, name)
        if not route.simulated and route.upstream_name not in self._settings:
            provider = PROVIDERS[route.upstream_name]
            self._settings[route.upstream_name] = settings_from_environment(provider, self._environ)
        return ModelChoice(route.name, route.model, self._pool.find(route))

    @cached_property
    def _router(self) -> Router:
        keyed = sorted(PROVIDERS.values(), key=lambda provider: not key_of(provider, self._environ))
        upstreams = {provider.name: SessionUpstream(provider.name, provider.name) for provider in keyed}
        return Router(SessionTable(upstreams, allows_simulated=True))

    async def close(self) -> None:
        await self._pool.close()


# --- routing without a configuration ----------------------------------------------------------------


class SessionUpstream(Struct, frozen=True):
    """An upstream of a session, for the router."""

    name: str
    provider: str = ""
    models: tuple[str, ...] = ()


class SessionTable:
    """The upstreams of a session, for the router."""

    models: tuple[ModelEntry, ...] = ()
    origin: str = ""
    is_configurable: bool = False
    simulates_known: bool = False
    lists_simulated: bool = False

    def __init__(self, upstreams: Mapping[str, SessionUpstream], *, allows_simulated: bool = False) -> None:
        self.upstreams = upstreams
        self.left_out: Mapping[str, str] = {}
        self.allows_simulated = allows_simulated

    @cached_property
    def simulated(self) -> SimulatedNames:
        if not self.allows_simulated:
            return SimulatedNames({})
        from toolglot.simulator.simulated_upstreams import SIMULATED_NAMES  # noqa: PLC0415 - few need it

        return SIMULATED_NAMES


class _SimulatedUpstreams:
    """Makes the upstreams of simulated providers."""

    def __call__(self, name: str) -> Upstream:
        return self._make(name)

    @cached_property
    def _make(self) -> Callable[[str], Upstream]:
        from toolglot.simulator.simulated_upstreams import SimulatedUpstreams  # noqa: PLC0415 - few need it

        return SimulatedUpstreams()


def _find_route(router: Router, name: object) -> Route:
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_LENGTH:
        raise InputError(f"expected the name of a model, got {quote(name)}", path="model", hint="provider/model")
    try:
        return router.route(name)
    except NoRouteError as error:
        raise error.at("model") from None
