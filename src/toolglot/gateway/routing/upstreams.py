"""The upstreams of a configuration with their connections, and the simulated ones in this process.

Law: a simulated upstream is asked only by a route that is marked as one.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Final, TypeVar

from toolglot.gateway.config.route_table import RouteSettings
from toolglot.gateway.config.settings import Config
from toolglot.gateway.config.upstream_table import UpstreamSettings
from toolglot.gateway.routing.circuit_breaker import Breaker
from toolglot.gateway.routing.router import Route
from toolglot.simulator import Simulator
from toolglot.simulator.providers import url_of
from toolglot.simulator.upstreams import marked_simulator
from toolglot.upstream import PROVIDERS, AsgiTransport, HttpTransport, TimeLimits, Transport, Upstream

T = TypeVar("T")
_NEVER: Final = 1 << 30
_SIMULATOR: Final = "http://simulator"


class Upstreams:
    """Finds the upstream of a route, and ends all connections together."""

    def __init__(self, config: Config, *, simulator: Simulator | None = None) -> None:
        self._settings = config.upstreams
        self._simulator = simulator
        self._transports: dict[str, Transport] = {}
        self._made: dict[tuple[bool, str], Upstream] = {}
        self._set: dict[tuple[bool, str, int], Upstream] = {}
        """Those that a route wants otherwise than they are configured."""
        self._breakers: dict[tuple[bool, str], Breaker] = {}

    def of(self, route: Route) -> Upstream:
        """Who is asked on a route."""
        key = (route.simulated, route.upstream_name)
        made = self._made.get(key)
        if made is None:
            make = self._simulated if route.simulated else self._real
            made = self._made[key] = make(route.upstream_name)
        return made if route.settings is None else self._as_set(made, route.settings)

    def _as_set(self, upstream: Upstream, settings: RouteSettings) -> Upstream:
        """An upstream as a route wants it: the same connections and the same breaker."""
        key = (upstream.is_simulated, upstream.name, id(settings))  # they are the configuration's, as long as this is
        found = self._set.get(key)
        if found is None:
            found = self._set[key] = _with(upstream, settings)
        return found

    def breaker(self, upstream: Upstream) -> Breaker:
        """What is known of how an upstream does."""
        key = (upstream.is_simulated, upstream.name)
        found = self._breakers.get(key)
        if found is None:
            settings = self._settings.get(upstream.name) if not upstream.is_simulated else None
            if settings is None:
                found = Breaker(failures=_NEVER, seconds=1)
            else:
                found = Breaker(
                    failures=settings.breaker_failures, seconds=settings.breaker_seconds, most=settings.max_concurrent
                )
            self._breakers[key] = found
        return found

    @property
    def running(self) -> int:
        """Requests that are being answered by one of them."""
        return sum(breaker.running for breaker in self._breakers.values())

    def real(self) -> list[Upstream]:
        """All that are configured."""
        return [self.of(Route(upstream_name=name, model="")) for name in self._settings]

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()
        self._transports.clear()
        self._made.clear()
        self._set.clear()

    def _real(self, name: str) -> Upstream:
        settings = self._settings[name]
        provider = PROVIDERS.get(settings.provider)
        is_own = provider is not None and settings.target == provider.target
        return Upstream(
            name=name,
            target=settings.target,
            url=settings.url,
            transport=self._http(settings),
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
        """One pool of connections for each way out."""
        proxy = settings.proxy.reveal()
        transport = self._transports.get(f"proxy {proxy}")
        if transport is None:
            transport = self._transports[f"proxy {proxy}"] = HttpTransport(proxy=proxy or None)
        return transport

    def _simulated(self, name: str) -> Upstream:
        transport = self._transports.get("simulator")
        if transport is None:
            transport = self._transports["simulator"] = AsgiTransport(self.simulator)
        provider = PROVIDERS.get(name)
        return Upstream(
            name=name,
            target=provider.target if provider is not None else name,
            url=url_of(_SIMULATOR, name),
            transport=transport,
            auth=provider.auth if provider is not None and provider.auth != "aws" else "bearer",
            key="simulated",
            also=provider.also if provider is not None else (),
            is_simulated=True,
        )

    @cached_property
    def simulator(self) -> Simulator:
        """The simulated providers."""
        return self._simulator or marked_simulator()


def _with(upstream: Upstream, settings: RouteSettings) -> Upstream:
    """An upstream with what a route sets in the place of its own."""
    patience, limits = settings.patience, upstream.limits
    return dataclasses.replace(
        upstream,
        target=settings.target or upstream.target,
        also=() if settings.target else upstream.also,
        headers={**upstream.headers, **{name: value.reveal() for name, value in settings.headers.items()}},
        retries=_first(patience.retries, upstream.retries),
        retry_seconds=_first(patience.retry_seconds, upstream.retry_seconds),
        limits=TimeLimits(
            _first(patience.connect_seconds, limits.connect),
            _first(patience.first_byte_seconds, limits.first_byte),
            _first(patience.idle_seconds, limits.idle),
            limits.keep_alive,
        ),
    )


def _first(own: T | None, usual: T) -> T:
    return own if own is not None else usual
