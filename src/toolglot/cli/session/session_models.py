"""The models of a configuration, for sessions: its upstreams and names, routed by the same rules as in the gateway.

    models = ConfiguredModels(read_config(None, os.environ))
    models.find("opus").name                     # "anthropic/claude-opus-5", or "simulated/anthropic/claude-opus-5"

Laws: a name that `find` returned finds the same model again. A simulated model answers to its `simulated/` name, to a
name of `[models]`, or to a known name if nothing at all is configured; never to a mistyped name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.cli.session.provider_default import known_default, with_default_model
from toolglot.errors import InputError
from toolglot.gateway.config.settings import Config
from toolglot.runtime.session.models import ModelChoice
from toolglot.simulator import Simulator
from toolglot.simulator.simulated_upstreams import SimulatedUpstreams
from toolglot.upstream.pool import UpstreamPool
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.routing.no_route import NoRouteError
from toolglot.upstream.routing.router import Router
from toolglot.upstream.routing.routes import Route
from toolglot.upstream.settings import CONFIG_FILE, RouteSettings

MODEL_VARIABLE: Final = "TOOLGLOT_MODEL"
_SIMULATED_MODEL: Final = f"{SIMULATED}/anthropic/claude-opus-5"


class ConfiguredModels:
    """Finds models by the names of a configuration.

    only_by_name: a simulated model answers only to its `simulated/` name, also if nothing is configured.
    """

    def __init__(self, config: Config, *, simulator: Simulator | None = None, only_by_name: bool = False) -> None:
        self._config = config
        self._only_by_name = only_by_name
        self._router = Router(config)
        self._upstreams = UpstreamPool(config.upstreams, SimulatedUpstreams(simulator))
        self._found: dict[str, ModelChoice] = {}
        self._routes: dict[str, Route] = {}
        """By the names of the models that were found."""

    def find(self, name: str) -> ModelChoice:
        known = self._found.get(name)
        return known if known is not None else self._choice(self.route(name), name)

    def is_simulated(self, name: str) -> bool:
        """Whether a model is simulated."""
        return self.find(name).upstream.is_simulated

    def fallback(self, name: str) -> tuple[str, ...]:
        """The models that the configuration names for failover, in their order."""
        return tuple(self._choice(route, "").name for route in self.route(name).others)

    def settings(self, name: str) -> RouteSettings | None:
        """The settings of a name of `[models]`; None: it has none."""
        return self.route(name).settings

    def route(self, name: str) -> Route:
        """The route of a name, also of one that `find` returned."""
        return self._routes[name] if name in self._routes else self._route(with_default_model(name, self._config))

    def names(self) -> list[str]:
        """The names that the configuration lists."""
        return [found.name for found in self._router.list_models()]

    def first(self, environ: Mapping[str, str]) -> str:
        """The model to use if none is named."""
        if named := environ.get(MODEL_VARIABLE, "").strip():
            return named
        listed = self._router.list_models()
        real = next((found.name for found in listed if not found.simulated), "")
        real = real or next(filter(None, map(self._default, self._config.upstreams)), "")
        if real:
            return real
        if listed and self._config.simulates_known:
            return listed[0].name
        file = self._config.origin or CONFIG_FILE
        some = next(iter(self._config.upstreams), "")
        hint = f"--model {some}/NAME, or list its models in {file}"
        if not some:
            hint = f"write [upstreams.NAME] into {file}"
            hint += f", or name a simulated model: --model {_SIMULATED_MODEL}" if self._config.allows_simulated else ""
        raise InputError("no model is named", path="--model", hint=hint)

    def _default(self, upstream: str) -> str:
        """A well known model of an upstream; empty: none."""
        model = known_default(self._config.upstreams[upstream].provider)
        return f"{upstream}/{model}" if model else ""

    async def close(self) -> None:
        await self._upstreams.close()

    def _route(self, name: str) -> Route:
        try:
            route = self._router.route(name)
            if route.is_in_place and self._only_by_name:
                raise self._router.no_route(name.strip())
        except NoRouteError as refused:
            is_unknown = bool(refused.name)
            is_real = self._only_by_name and is_unknown
            error = self._router.no_route(name.strip(), only_by_name=True) if is_real else refused
            raise error.at("model") from None
        return route

    def _choice(self, route: Route, requested: str) -> ModelChoice:
        # The settings of an entry of [models] are found again by its own name only.
        name = requested if route.settings is not None and requested else route.name
        choice = ModelChoice(name, route.model, self._upstreams.find(route))
        self._found[name] = choice
        self._routes[name] = route if name == requested else _without_settings(route)
        return choice


def _without_settings(route: Route) -> Route:
    return Route(upstream_name=route.upstream_name, model=route.model, simulated=route.simulated)
