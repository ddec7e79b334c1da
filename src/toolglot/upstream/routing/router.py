"""From the name of a model to a route: the upstream, and the model's name there.

    router = Router(config)
    router.route("claude-opus-5")       # Route(upstream_name="openai", model="gpt-5.5", alias_of="opus", …)

The first match decides:

1. a name of `[models]`, then its tiers and patterns in the order of the file (tiers only match names without the
   prefix of an upstream: `anthropic/claude-opus-5` means exactly that);
2. the prefix of an upstream: `openrouter/anthropic/claude-…`; `simulated/…`, unless that is forbidden;
3. an upstream that lists the model, then one whose provider has models of such names, in the order of the table;
4. the prefix of a provider by another of its names (`google/…` for the upstream `gemini`);
5. `"*"` of `[models]`;
6. if nothing at all is configured, the simulated model for a known name.

Laws: a request goes to an upstream of the table or to a simulated model that is marked as one, never elsewhere.
Nothing is simulated unless it was named so, or nothing is configured. Every name that `listed` returns has the route
that it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from toolglot import profiles
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.model_names import (
    MAX_LENGTH,
    REQUESTED,
    SIMULATED,
    Destination,
    is_named_like,
    is_pattern,
    matches,
    spellings,
    split_prefix,
    strip_context_mark,
    words_of,
)
from toolglot.upstream.routing.no_route import NoRouteError, RouteErrors
from toolglot.upstream.routing.routes import Listed, ModelEntry, Route, RoutingTable

_MAX_CACHED: Final = 1_000
"""Names whose routes are cached: clients choose them."""


class Router:
    """Finds the route of each request; it is made once for a table."""

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._routes: dict[str, Route] = {}
        self._names = {entry.name.lower(): entry for entry in table.models}
        self._entries = [entry for entry in table.models if entry.kind in ("tier", "pattern")]
        self._rest = self._names.get(REQUESTED)
        self._listing: dict[str, Destination] = {}
        self._patterns: list[tuple[str, list[str]]] = []
        for upstream in table.upstreams.values():
            self._patterns.append((upstream.name, [model for model in upstream.models if is_pattern(model)]))
            for model in upstream.models:
                if not is_pattern(model):
                    self._listing.setdefault(model.lower(), Destination(upstream.name, model))

    def route(self, model: str) -> Route:
        """The route of a model; `NoRouteError` lists the alternatives."""
        known = self._routes.get(model)
        if known is None:
            known = self._route(model)
            if len(model) <= MAX_LENGTH:
                if len(self._routes) >= _MAX_CACHED:
                    self._routes.clear()
                self._routes[model] = known
        return known

    def _route(self, model: str) -> Route:
        name = model.strip()
        if not name or len(name) > MAX_LENGTH or not name.isprintable():
            raise self._errors.invalid_name(name)
        entry = self._entry(name)
        if entry is not None:
            return _route_by_entry(entry, name)
        found = self._by_name(name)
        if found is not None:
            return _route_to(found)
        if self._rest is not None:
            return _route_by_entry(self._rest, name)
        found = self._table.simulated.in_place_of(name) if self._table.simulates_known else None
        if found is not None:
            return msgspec.structs.replace(_route_to(found), is_in_place=True)
        raise self.no_route(name)

    def no_route(self, name: str, *, only_by_name: bool = False) -> NoRouteError:
        """Why a model has no route, and what to do.

        only_by_name: simulated models answer only to names that begin with `simulated/`.
        """
        return self._errors.no_route(name, only_by_name=only_by_name)

    @cached_property
    def _errors(self) -> RouteErrors:
        return RouteErrors(self._table, self._models)

    # --- [models] -----------------------------------------------------------------------------------

    def _entry(self, name: str) -> ModelEntry | None:
        for spelling in spellings(name):
            entry = self._names.get(spelling.lower())
            if entry is not None and entry is not self._rest:
                return entry
        words = () if self._by_prefix(name) is not None else words_of(strip_context_mark(name))
        for entry in self._entries:
            if entry.kind == "tier" and entry.name.lower() in words:
                return entry
            if entry.kind == "pattern" and any(matches(spelling, (entry.name,)) for spelling in spellings(name)):
                return entry
        return None

    # --- upstreams ----------------------------------------------------------------------------------

    def _by_name(self, name: str) -> Destination | None:
        return (
            self._by_prefix(name)
            or self._by_listing(name)
            or self._by_provider(strip_context_mark(name))
            or self._by_other_prefix(name)
        )

    def _by_prefix(self, name: str) -> Destination | None:
        found = split_prefix(name, self._table.upstreams)
        if found is not None:
            return self._without_mark(found)
        if not self._table.allows_simulated or not name.lower().startswith(f"{SIMULATED}/"):
            return None
        return self._table.simulated.model(name)

    def _by_other_prefix(self, name: str) -> Destination | None:
        head, _, model = name.partition("/")
        upstream = profiles.resolve(head)
        if not model or upstream not in self._table.upstreams:
            return None
        return self._without_mark(Destination(upstream, model))

    def _without_mark(self, found: Destination) -> Destination:
        """The model without a mark, unless the upstream has one of exactly this name."""
        models = self._table.upstreams[found.upstream].models
        return found if found.model in models else Destination(found.upstream, strip_context_mark(found.model))

    def _by_listing(self, name: str) -> Destination | None:
        for spelling in spellings(name):
            listed = self._listing.get(spelling.lower())
            if listed is not None:
                return listed
        bare = strip_context_mark(name)
        return next((Destination(name, bare) for name, patterns in self._patterns if matches(bare, patterns)), None)

    def _by_provider(self, name: str) -> Destination | None:
        for upstream in self._table.upstreams.values():
            provider = PROVIDERS.get(upstream.provider)
            if provider is not None and is_named_like(name, provider):
                return Destination(upstream.name, name)
        return None

    # --- listings -----------------------------------------------------------------------------------

    def list_models(self) -> list[Listed]:
        """Names that clients can use: those of `[models]`, then the models of each upstream, then simulated ones."""
        return list(dict.fromkeys(self._models()))

    def leads_to(self, name: str, upstream: str, model: str) -> bool:
        """Whether a name is routed to this model of this upstream first."""
        try:
            route = self.route(name)
        except NoRouteError:
            return False
        return (route.upstream_name, route.model, route.simulated) == (upstream, model, False)

    def _models(self) -> Iterator[Listed]:
        for name in self._candidates():
            route = self.route(name)
            yield Listed(name, route.upstream_name, route.model, route.simulated)

    def _candidates(self) -> Iterator[str]:
        yield from (entry.name for entry in self._table.models if entry.kind in ("name", "tier"))
        for upstream in self._table.upstreams.values():
            yield from (f"{upstream.name}/{model}" for model in upstream.models if not is_pattern(model))
        if self._table.lists_simulated:
            for provider, models in self._table.simulated.models.items():
                yield from (f"{SIMULATED}/{provider}/{model}" for model in models)


def _route_to(found: Destination) -> Route:
    return Route(upstream_name=found.upstream, model=found.model, simulated=found.simulated)


def _route_by_entry(entry: ModelEntry, name: str) -> Route:
    first, *others = [
        Route(
            upstream_name=found.upstream,
            model=strip_context_mark(name) if found.model == REQUESTED else found.model,
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
