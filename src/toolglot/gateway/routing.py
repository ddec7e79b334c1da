"""Who gets a request: from the model that a client asks for to an upstream and the model it is asked for there.

    router = Router(config)
    router.route("claude-opus-5")       # Route(upstream_name="openai", model="gpt-5.5", alias_of="opus", …)

The first that fits decides:

1. a name of `[models]`, then its tiers and patterns in the order of the file (a tier only for names without the
   prefix of an upstream: who writes `anthropic/claude-opus-5` means that);
2. the prefix of an upstream: `openrouter/anthropic/claude-…`; `simulated/…` where the simulator is on;
3. an upstream that lists the model, then one whose provider has models of such names, in the order of the file;
4. the prefix of a provider by another of its names (`google/…` for the upstream `gemini`);
5. `"*"` of `[models]`;
6. the simulator, where it is on.

Law: a request goes to an upstream of the configuration or to a stand-in that is marked as one, never elsewhere; every
name that `listed` shows leads where it says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.errors import InputError, quote
from toolglot.gateway.config import FILE, Config
from toolglot.gateway.config_file import nearest
from toolglot.gateway.model_names import (
    ASKED,
    LONGEST,
    SIMULATED,
    Destination,
    is_pattern,
    matches,
    prefixed,
    simulated_guess,
    simulated_prefix,
    spellings,
    unmarked,
    words_of,
)
from toolglot.gateway.model_table import Each, ModelEntry
from toolglot.gateway.route_table import RouteSettings
from toolglot.simulator.providers import PROVIDERS as SIMULATED_PROVIDERS
from toolglot.upstream.providers import PROVIDERS
from toolglot.wire.masking import mask

_MOST_SHOWN: Final = 8
_MOST_GUESSED: Final = 200
_MOST_REMEMBERED: Final = 1_000
"""Names whose ways are known: clients choose them."""


class NoRouteError(InputError):
    """A model that nothing serves."""


class Route(Struct, frozen=True, kw_only=True):
    """Who gets a request."""

    upstream_name: str
    """A name of `config.upstreams`; where `simulated` is set, the provider that the simulator plays."""
    model: str
    """The model to ask for there."""
    alias_of: str = ""
    """The entry of `[models]` that decided, as it is written there; empty: none."""
    simulated: bool = False
    others: tuple[Route, ...] = ()
    """Who is asked instead, where this one fails."""
    weights: tuple[float, ...] = ()
    """How conversations are spread over this one and the others; none: the others only stand in."""
    each: Each = "conversation"
    """What is spread: whole conversations, or every request for itself."""
    settings: RouteSettings | None = None
    """What the entry says besides where it leads; None: nothing."""


class Listed(NamedTuple):
    """A model of a listing."""

    name: str
    """What a client asks for."""
    upstream_name: str
    model: str
    simulated: bool = False


class Router:
    """Finds the way of each request; it is made once for a configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ways: dict[str, Route] = {}
        self._names = {entry.name.lower(): entry for entry in config.models}
        self._entries = [entry for entry in config.models if entry.kind in ("tier", "pattern")]
        self._rest = self._names.get(ASKED)
        self._listing: dict[str, Destination] = {}
        self._patterns: list[tuple[str, list[str]]] = []
        for upstream in config.upstreams.values():
            self._patterns.append((upstream.name, [model for model in upstream.models if is_pattern(model)]))
            for model in upstream.models:
                if not is_pattern(model):
                    self._listing.setdefault(model.lower(), Destination(upstream.name, model))

    def route(self, model: str) -> Route:
        """The way for a model; `NoRouteError` says what there is."""
        known = self._ways.get(model)
        if known is None:
            known = self._route(model)
            if len(model) <= LONGEST:
                if len(self._ways) >= _MOST_REMEMBERED:
                    self._ways.clear()
                self._ways[model] = known
        return known

    def _route(self, model: str) -> Route:
        name = model.strip()
        if not name or len(name) > LONGEST or not name.isprintable():
            raise self._no_name(name)
        entry = self._entry(name)
        if entry is not None:
            return _by_entry(entry, name)
        found = self._by_name(name)
        if found is not None:
            return _by(found)
        if self._rest is not None:
            return _by_entry(self._rest, name)
        if self._config.gateway.simulate:
            return _by(simulated_prefix(name, self._config.upstreams) or simulated_guess(name))
        raise self._no_route(name)

    # --- [models] -----------------------------------------------------------------------------------

    def _entry(self, name: str) -> ModelEntry | None:
        for spelling in spellings(name):
            entry = self._names.get(spelling.lower())
            if entry is not None and entry is not self._rest:
                return entry
        words = () if self._prefixed(name) is not None else words_of(unmarked(name))
        for entry in self._entries:
            if entry.kind == "tier" and entry.name.lower() in words:
                return entry
            if entry.kind == "pattern" and any(matches(spelling, (entry.name,)) for spelling in spellings(name)):
                return entry
        return None

    # --- upstreams ----------------------------------------------------------------------------------

    def _by_name(self, name: str) -> Destination | None:
        return (
            self._prefixed(name)
            or self._by_listing(name)
            or self._by_provider(unmarked(name))
            or self._by_other_prefix(name)
        )

    def _prefixed(self, name: str) -> Destination | None:
        found = prefixed(name, self._config.upstreams)
        if found is not None:
            return self._unmarked(found)
        is_simulated = self._config.gateway.simulate and name.lower().startswith(f"{SIMULATED}/")
        return simulated_prefix(name, self._config.upstreams) if is_simulated else None

    def _by_other_prefix(self, name: str) -> Destination | None:
        head, _, model = name.partition("/")
        upstream = profiles.resolve(head)
        if not model or upstream not in self._config.upstreams:
            return None
        return self._unmarked(Destination(upstream, model))

    def _unmarked(self, found: Destination) -> Destination:
        """The model without a mark, unless the upstream has one of this very name."""
        models = self._config.upstreams[found.upstream].models
        return found if found.model in models else Destination(found.upstream, unmarked(found.model))

    def _by_listing(self, name: str) -> Destination | None:
        for spelling in spellings(name):
            listed = self._listing.get(spelling.lower())
            if listed is not None:
                return listed
        bare = unmarked(name)
        return next((Destination(name, bare) for name, patterns in self._patterns if matches(bare, patterns)), None)

    def _by_provider(self, name: str) -> Destination | None:
        for upstream in self._config.upstreams.values():
            provider = PROVIDERS.get(upstream.provider)
            if provider is not None and matches(name, provider.models):
                return Destination(upstream.name, name)
        return None

    # --- nobody -------------------------------------------------------------------------------------

    def _no_name(self, name: str) -> NoRouteError:
        message = f"expected the name of a model, at most {LONGEST} characters" if name else "no model is named"
        return NoRouteError(message, path="$.model", hint=self._known())

    def _no_route(self, name: str) -> NoRouteError:
        if name.lower().startswith(f"{SIMULATED}/"):
            hint = f"the simulated models are off; set simulate = true in [gateway] of {self._file()}"
        else:
            close = nearest(name, self._words, most=3)
            guess = f"did you mean {' or '.join(close)}? " if close else ""
            hint = f"{guess}{self._known()}; {self._what_to_write(name)}"
        return NoRouteError(f"no upstream serves the model {quote(mask(name))}", path="$.model", hint=hint)

    @cached_property
    def _words(self) -> list[str]:
        """Names to guess from; few enough that a client's wrong name costs little."""
        some = itertools.islice(self._listed(), _MOST_GUESSED)
        return [word for listed in some for word in (listed.name, listed.model)]

    def _known(self) -> str:
        upstreams = _some([f"{name}/…" for name in self._config.upstreams])
        aliases = _some([entry.name for entry in self._config.models])
        return f"upstreams: {upstreams or 'none'}; names of [models]: {aliases or 'none'}"

    def _what_to_write(self, name: str) -> str:
        first = next(iter(self._config.upstreams), None)
        shown = quote(mask(name)).replace("'", '"')
        if first is None:
            return f"write [upstreams.NAME] into {self._file()}"
        return (
            f'write the prefix of an upstream before it, or {shown} = "{first}/MODEL" into [models] of {self._file()}'
        )

    def _file(self) -> str:
        """Its name without the folders, which are no client's business."""
        return Path(self._config.origin or FILE).name

    # --- listings -----------------------------------------------------------------------------------

    def listed(self) -> list[Listed]:
        """Every name that can be asked for: those of `[models]`, then the models of each upstream, then stand-ins."""
        return list(dict.fromkeys(self._listed()))

    def leads_to(self, name: str, upstream: str, model: str) -> bool:
        """Whether a name leads to this model of this upstream first."""
        try:
            route = self.route(name)
        except NoRouteError:
            return False
        return (route.upstream_name, route.model, route.simulated) == (upstream, model, False)

    def _listed(self) -> Iterator[Listed]:
        for name in self._candidates():
            route = self.route(name)
            yield Listed(name, route.upstream_name, route.model, route.simulated)

    def _candidates(self) -> Iterator[str]:
        yield from (entry.name for entry in self._config.models if entry.kind in ("name", "tier"))
        for upstream in self._config.upstreams.values():
            yield from (f"{upstream.name}/{model}" for model in upstream.models if not is_pattern(model))
        if self._config.gateway.simulate:
            for provider in SIMULATED_PROVIDERS.values():
                yield from (f"{SIMULATED}/{provider.name}/{model}" for model in provider.models)


def listed(config: Config) -> list[Listed]:
    """The models that a listing shows."""
    return Router(config).listed()


def _by(found: Destination) -> Route:
    return Route(upstream_name=found.upstream, model=found.model, simulated=found.simulated)


def _by_entry(entry: ModelEntry, name: str) -> Route:
    first, *others = [
        Route(
            upstream_name=found.upstream,
            model=unmarked(name) if found.model == ASKED else found.model,
            alias_of=entry.name,
            simulated=found.simulated,
            settings=settings,
        )
        for found, settings in zip(entry.destinations, entry.settings or (None,) * len(entry.destinations), strict=True)
    ]
    return (
        msgspec.structs.replace(first, others=tuple(others), weights=entry.weights, each=entry.each)
        if others
        else first
    )


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(mask(name) for name in names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
