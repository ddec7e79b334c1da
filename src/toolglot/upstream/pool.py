"""Upstreams with their connections and circuit breakers, made from settings when they are first needed.

    pool = UpstreamPool(config.upstreams, simulated=SimulatedUpstreams())
    upstream = pool.find(route)

Law: a simulated upstream is called only by a route that is marked as simulated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from toolglot.upstream.breaker import Breaker
from toolglot.upstream.http.transport import TimeLimits, Transport
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.routes import Route
from toolglot.upstream.settings import RouteSettings, UpstreamSettings
from toolglot.upstream.upstream import Upstream

T = TypeVar("T")
_NEVER: Final = 1 << 30


class UpstreamPool:
    """Finds the upstream of a route, and closes all connections together.

    settings: the upstreams by name. It is read when an upstream is first needed.
    simulated: makes the upstream of a simulated provider.
    transport: for all upstreams that are not simulated. It is not closed here. None: HTTP, one pool for each proxy.
    """

    def __init__(
        self,
        settings: Mapping[str, UpstreamSettings],
        simulated: Callable[[str], Upstream],
        *,
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings
        self._simulated = simulated
        self._transport = transport
        self._transports: dict[str, Transport] = {}
        self._made: dict[tuple[bool, str], Upstream] = {}
        self._routed: dict[tuple[bool, str, int], Upstream] = {}
        """With the settings of a route."""
        self._breakers: dict[tuple[bool, str], Breaker] = {}
        self.last_headers: dict[str, Mapping[str, str]] = {}
        """The headers of the last response of each upstream, which say how much of its rate limits is left."""

    def find(self, route: Route) -> Upstream:
        """The upstream of a route."""
        key = (route.simulated, route.upstream_name)
        made = self._made.get(key)
        if made is None:
            make = self._make_simulated if route.simulated else self._make
            made = self._made[key] = make(route.upstream_name)
        return made if route.settings is None else self._with_settings(made, route.settings)

    def _with_settings(self, upstream: Upstream, settings: RouteSettings) -> Upstream:
        """An upstream with the settings of a route: the same connections and the same breaker."""
        key = (upstream.is_simulated, upstream.name, id(settings))  # the configuration keeps them alive
        found = self._routed.get(key)
        if found is None:
            found = self._routed[key] = apply_route(upstream, settings)
        return found

    def breaker(self, upstream: Upstream) -> Breaker:
        """The circuit breaker of an upstream."""
        key = (upstream.is_simulated, upstream.name)
        found = self._breakers.get(key)
        if found is None:
            settings = self._settings.get(upstream.name) if not upstream.is_simulated else None
            if settings is None:
                found = Breaker(failures=_NEVER, seconds=1)
            else:
                found = Breaker(
                    failures=settings.breaker_failures,
                    seconds=settings.breaker_seconds,
                    max_concurrent=settings.max_concurrent,
                )
            self._breakers[key] = found
        return found

    @property
    def running(self) -> int:
        """The number of requests in progress."""
        return sum(breaker.running for breaker in self._breakers.values())

    def configured_upstreams(self) -> list[Upstream]:
        """All upstreams of the settings."""
        return [self.find(Route(upstream_name=name, model="")) for name in self._settings]

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()
        self._transports.clear()
        self._made.clear()
        self._routed.clear()

    def _make(self, name: str) -> Upstream:
        settings = self._settings[name]
        provider = PROVIDERS.get(settings.provider)
        is_own = provider is not None and settings.target == provider.target
        return Upstream(
            name=name,
            target=settings.target,
            url=settings.url,
            transport=self._transport or self._http(settings),
            auth=settings.auth,
            key=settings.key.reveal(),
            aws=settings.aws,
            headers={header: value.reveal() for header, value in settings.headers.items()},
            limits=TimeLimits(
                settings.connect_seconds,
                settings.first_byte_seconds,
                settings.idle_seconds,
                settings.keep_alive_seconds,
            ),
            retries=settings.retries,
            retry_seconds=settings.retry_seconds,
            also=provider.also if provider is not None and is_own and not settings.is_target_fixed else (),
        )

    def _http(self, settings: UpstreamSettings) -> Transport:
        """One pool of connections for each proxy."""
        from toolglot.upstream import HttpTransport  # noqa: PLC0415 - an extra, for those that call a provider

        proxy = settings.proxy.reveal()
        transport = self._transports.get(f"proxy {proxy}")
        if transport is None:
            transport = self._transports[f"proxy {proxy}"] = HttpTransport(proxy=proxy or None)
        return transport

    def _make_simulated(self, name: str) -> Upstream:
        made = self._simulated(name)
        self._transports["simulator"] = made.transport
        return made


def apply_route(upstream: Upstream, settings: RouteSettings) -> Upstream:
    """An upstream with the settings of a route instead of its own."""
    retry, limits = settings.retry, upstream.limits
    return dataclasses.replace(
        upstream,
        target=settings.target or upstream.target,
        also=() if settings.target else upstream.also,
        headers={**upstream.headers, **{name: value.reveal() for name, value in settings.headers.items()}},
        retries=_first(retry.retries, upstream.retries),
        retry_seconds=_first(retry.retry_seconds, upstream.retry_seconds),
        limits=TimeLimits(
            _first(retry.connect_seconds, limits.connect),
            _first(retry.first_byte_seconds, limits.first_byte),
            _first(retry.idle_seconds, limits.idle),
            limits.keep_alive,
        ),
    )


def _first(own: T | None, default: T) -> T:
    return own if own is not None else default
