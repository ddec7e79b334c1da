"""Who gets a request: from the model that a client asks for to an upstream and the model it is asked for there.

    router = Router(config)
    router.route("claude-opus-5")       # Route(upstream_name="openai", model="gpt-5.5", alias_of="opus", …)

The first that fits decides:

1. a name of `[models]`, then its tiers and patterns in the order of the file (a tier only for names without the
   prefix of an upstream: who writes `anthropic/claude-opus-5` means that);
2. the prefix of an upstream: `openrouter/anthropic/claude-…`; `simulated/…`, unless that is forbidden;
3. an upstream that lists the model, then one whose provider has models of such names, in the order of the file;
4. the prefix of a provider by another of its names (`google/…` for the upstream `gemini`);
5. `"*"` of `[models]`;
6. where nothing at all is configured, the simulated model in the place of one that is known.

Laws: a request goes to an upstream of the configuration or to a simulated model that is marked as one, never elsewhere.
Nothing is simulated unless it was asked for by name or nothing is configured. Every name that `listed` shows leads
where it says.
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
from toolglot.errors import UnknownNameError, closest_names, quote, unknown_name
from toolglot.gateway.config.model_table import Each, ModelEntry
from toolglot.gateway.config.route_table import RouteSettings
from toolglot.gateway.config.settings import FILE, Config
from toolglot.gateway.routing.model_names import (
    ASKED,
    LONGEST,
    SIMULATED,
    Destination,
    is_named_like,
    is_pattern,
    matches,
    prefixed,
    provider_of,
    simulated_in_place_of,
    simulated_model,
    simulated_provider,
    spellings,
    unmarked,
    words_of,
)
from toolglot.masking import mask
from toolglot.simulator.providers import PROVIDERS as SIMULATED_PROVIDERS
from toolglot.upstream.providers import PROVIDERS, Provider

_EXAMPLES: Final = "claude-opus-5, gpt-5.5 or PROVIDER/MODEL"
_MOST_SHOWN: Final = 8
_MOST_GUESSED: Final = 200
_MOST_REMEMBERED: Final = 1_000
"""Names whose ways are known: clients choose them."""


class NoRouteError(UnknownNameError):
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
    is_in_place: bool = False
    """A simulated model answers for a real one that was asked for, since nothing is configured."""
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
        found = simulated_in_place_of(name) if self._config.simulates_known else None
        if found is not None:
            return msgspec.structs.replace(_by(found), is_in_place=True)
        raise self.no_route(name)

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
        return simulated_model(name) if self._config.allows_simulated else None

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
            if provider is not None and is_named_like(name, provider):
                return Destination(upstream.name, name)
        return None

    # --- nobody -------------------------------------------------------------------------------------

    def _no_name(self, name: str) -> NoRouteError:
        message = f"expected the name of a model, at most {LONGEST} characters" if name else "no model is named"
        return NoRouteError(message, path="$.model", hint=self._known())

    def no_route(self, name: str, *, only_by_name: bool = False) -> NoRouteError:
        """Why no upstream has a model, and what to do.

        only_by_name: simulated models answer only for names that begin with `simulated/`.
        """
        provider, model = provider_of(name)
        shown = quote(mask(name))
        if name.lower().startswith(f"{SIMULATED}/"):
            return self._not_simulated(name)
        if provider is not None and model and provider.name not in self._config.upstreams:
            message, hint = self._not_configured(provider, shown)
            if self._config.allows_simulated and (played := simulated_provider(provider.name)):
                hint += f"; {SIMULATED}/{played}/{mask(model)} is a simulated model"
        else:
            return self._unknown(name, only_by_name=only_by_name)
        return NoRouteError(message, path="$.model", hint=hint)

    def _unknown(self, name: str, *, only_by_name: bool) -> NoRouteError:
        """With the names that look most like it, also those of providers that are known and not configured."""
        head, is_pair, model = name.partition("/")
        heads = closest_names(head, (*self._config.upstreams, *PROVIDERS)) if is_pair and model else ()
        close = closest_names(name, (*(f"{each}/{model}" for each in heads), *self._words))
        if not close and not is_pair:  # the name of a provider alone
            alike = closest_names(name, (*self._config.upstreams, *SIMULATED_PROVIDERS))
            close = tuple(f"{each}/{model}" for each in alike if (model := self._usual_model(each)))
        if only_by_name and self._config.simulates_known:
            return _unknown_model(name, _marked_simulated(close), _hint_for_simulated(close))
        hint = self._what_there_is(name)
        missing = [each for each in heads[:1] if each in PROVIDERS and each not in self._config.upstreams]
        if missing and not self._config.simulates_known:
            hint = f"{missing[0]} needs {PROVIDERS[missing[0]].key_env[0]}; {hint}"
        return _unknown_model(name, close, hint)

    def _not_simulated(self, name: str) -> NoRouteError:
        """Why a name that begins with `simulated/` leads nowhere."""
        _, _, rest = name.partition("/")
        if not self._config.allows_simulated:
            message, hint = "simulated models are forbidden here", "--no-simulate, or simulate = false in [gateway]"
            return NoRouteError(message, path="$.model", hint=hint)
        provider, _, model = rest.partition("/")
        close = closest_names(provider, SIMULATED_PROVIDERS) if model else ()
        hint = f"write {SIMULATED}/PROVIDER/MODEL; providers: {', '.join(SIMULATED_PROVIDERS)}"
        return _unknown_model(name, tuple(f"{SIMULATED}/{each}/{model}" for each in close), hint)

    def _not_configured(self, provider: Provider, shown: str) -> tuple[str, str]:
        """What is missing for a model of a provider that is known."""
        if reason := self._config.left_out.get(provider.name):
            return f"no upstream has the model {shown}: {provider.name} is left out", reason
        section = f"[upstreams.{provider.name}] into {self._file()}"
        if provider.auth == "none":
            return f"no upstream has the model {shown}: {provider.title} is not configured", f"write {section}"
        variables = " or ".join(provider.key_env)
        message = f"no upstream has the model {shown}: there is no key for {provider.title}"
        if self._config.origin:
            return f"{message} in the configuration", f"set {variables} and write {section}"
        return message, f"set the environment variable {variables}"

    def _usual_model(self, upstream: str) -> str:
        """A model that an upstream, or a provider that is not configured, is likely to have."""
        settings = self._config.upstreams.get(upstream)
        known = SIMULATED_PROVIDERS.get(settings.provider if settings is not None else upstream)
        named = [model for model in settings.models if not is_pattern(model)] if settings is not None else []
        return next(iter((*named, *(known.models if known else ()))), "")

    @cached_property
    def _words(self) -> list[str]:
        """Names to guess from; few enough that a client's wrong name costs little."""
        some = itertools.islice(self._listed(), _MOST_GUESSED)
        words = [word for listed in some for word in (listed.name, listed.model)]
        for upstream in self._config.upstreams.values():
            known = SIMULATED_PROVIDERS.get(upstream.provider)
            words += [word for model in known.models for word in (f"{upstream.name}/{model}", model)] if known else []
        if self._config.simulates_known:
            words += [model for provider in SIMULATED_PROVIDERS.values() for model in provider.models]
        return words

    def _what_there_is(self, name: str) -> str:
        if self._config.simulates_known:
            return f"nothing is configured: simulated models answer for names of known providers, such as {_EXAMPLES}"
        return f"{self._known()}; {self._what_to_write(name)}"

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
        """Names that can be asked for: those of `[models]`, then the models of each upstream, then simulated ones."""
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
        if self._config.lists_simulated:
            for provider in SIMULATED_PROVIDERS.values():
                yield from (f"{SIMULATED}/{provider.name}/{model}" for model in provider.models)


def listed(config: Config) -> list[Listed]:
    """The models that a listing shows."""
    return Router(config).listed()


def _marked_simulated(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of models that exist only simulated, with the prefix that says so."""
    found = ((name, simulated_in_place_of(name)) for name in names)
    marked = (f"{SIMULATED}/{model.upstream}/{model.model}" if model is not None else name for name, model in found)
    return tuple(dict.fromkeys(marked))


def _hint_for_simulated(names: tuple[str, ...]) -> str:
    provider = next((found for name in names if (found := provider_of(name)[0]) is not None and found.key_env), None)
    key = f"set {' or '.join(provider.key_env)} for a real model" if provider is not None else "set a provider's key"
    return f"{key}; without one, only names that begin with {SIMULATED}/ have an answer"


def _unknown_model(name: str, close: tuple[str, ...], hint: str) -> NoRouteError:
    """A client's name may be a key by mistake, and so may what is made of it."""
    found = unknown_name("model", mask(name), (), suggestions=tuple(map(mask, close)), path="$.model", hint=hint)
    return NoRouteError(found.message, path=found.path, hint=hint, name=found.name, suggestions=found.suggestions)


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
