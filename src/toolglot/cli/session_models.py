"""The models of a gateway's configuration, for sessions: its upstreams and names, and stand-ins where they are on.

    models = ConfiguredModels(read_config(None, os.environ))
    models.find("opus").name                     # "anthropic/claude-opus-5", or "simulated/anthropic/claude-opus-5"

Law: a name that `find` gave leads to the same model again. A stand-in has `simulated/` before its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.errors import InputError
from toolglot.gateway.config import Config
from toolglot.gateway.model_names import SIMULATED
from toolglot.gateway.routing import NoRouteError, Route, Router
from toolglot.gateway.upstreams import Upstreams
from toolglot.runtime.models import ModelChoice
from toolglot.simulator import Simulator
from toolglot.simulator.providers import PROVIDERS as SIMULATED_PROVIDERS

MODEL_VARIABLE: Final = "TOOLGLOT_MODEL"


class ConfiguredModels:
    """Finds models by the names that a configuration gives them."""

    def __init__(self, config: Config, *, simulator: Simulator | None = None) -> None:
        self._config = config
        self._router = Router(config)
        self._upstreams = Upstreams(config, simulator=simulator)
        self._found: dict[str, ModelChoice] = {}

    def find(self, name: str) -> ModelChoice:
        known = self._found.get(name)
        return known if known is not None else self._choice(self._route(name), name)

    def stand_ins(self, name: str) -> tuple[str, ...]:
        """Who the configuration names for the case that this one does not answer."""
        if name in self._found:
            return ()
        return tuple(self._choice(route, "").name for route in self._route(name).others)

    def names(self) -> list[str]:
        """What can be asked for, as far as the configuration lists it."""
        return [found.name for found in self._router.listed()]

    def first(self, environ: Mapping[str, str]) -> str:
        """Who is asked where nobody is named."""
        if named := environ.get(MODEL_VARIABLE, "").strip():
            return named
        listed = self._router.listed()
        real = next((found.name for found in listed if not found.simulated), "")
        real = real or next(filter(None, map(self._usual, self._config.upstreams)), "")
        if real:
            return real
        if listed and not self._config.upstreams:
            return listed[0].name
        some = next(iter(self._config.upstreams), "openai")
        hint = f"--model {some}/NAME, or list its models in {self._config.origin or 'toolglot.toml'}"
        raise InputError("nobody is named who is to be asked", path="--model", hint=hint)

    def _usual(self, upstream: str) -> str:
        """A well known model of an upstream; empty: none."""
        known = SIMULATED_PROVIDERS.get(self._config.upstreams[upstream].provider)
        return f"{upstream}/{known.models[0]}" if known is not None and known.models else ""

    async def close(self) -> None:
        await self._upstreams.close()

    def _route(self, name: str) -> Route:
        try:
            return self._router.route(name)
        except NoRouteError as error:
            raise NoRouteError(error.message, path="model", hint=error.hint) from None

    def _choice(self, route: Route, asked: str) -> ModelChoice:
        mark = f"{SIMULATED}/" if route.simulated else ""
        # What an entry of [models] sets besides is found again by its own name only.
        name = asked if route.settings is not None and asked else f"{mark}{route.upstream_name}/{route.model}"
        choice = ModelChoice(name, route.model, self._upstreams.of(route))
        self._found[name] = choice
        return choice


def is_simulated(name: str) -> bool:
    """Whether a name that `find` gave is that of a stand-in."""
    return name.startswith(f"{SIMULATED}/")
