"""Why a model has no route: an error with the closest names, and what to set or write to get one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from toolglot.errors import UnknownNameError, closest_names, quote, unknown_name
from toolglot.masking import mask
from toolglot.upstream.providers import PROVIDERS, Provider
from toolglot.upstream.routing.model_names import MAX_LENGTH, SIMULATED, is_pattern, provider_of
from toolglot.upstream.routing.routes import Listed, RoutingTable
from toolglot.upstream.settings import CONFIG_FILE

_EXAMPLES: Final = "claude-opus-5, gpt-5.5 or PROVIDER/MODEL"
_MAX_SHOWN: Final = 8
_MAX_GUESSES: Final = 200
_MAX_PROVIDERS: Final = 40
_SIMILAR: Final = 0.7
"""How alike the prefix of a name must be: short words share letters by chance, such as `nope` and `openai`."""


class NoRouteError(UnknownNameError):
    """A model that no upstream serves."""

    def at(self, path: str) -> NoRouteError:
        """The same error for a name at another path."""
        return NoRouteError(self.message, path=path, hint=self.hint, name=self.name, suggestions=self.suggestions)


class RouteErrors:
    """The errors of one table."""

    def __init__(self, table: RoutingTable, listed: Callable[[], Iterator[Listed]]) -> None:
        self._table = table
        self._listed = listed

    def invalid_name(self, name: str) -> NoRouteError:
        message = (
            f"expected the name of a model, at most {MAX_LENGTH} characters" if name else "the request names no model"
        )
        return NoRouteError(message, path="$.model", hint=self._known())

    def no_route(self, name: str, *, only_by_name: bool = False) -> NoRouteError:
        """Why a model has no route, and what to do."""
        provider, model = provider_of(name)
        shown = quote(mask(name))
        if name.lower().startswith(f"{SIMULATED}/"):
            return self._not_simulated(name)
        is_missing = bool(model) and self._table.is_configurable
        if provider is not None and is_missing and provider.name not in self._table.upstreams:
            message, hint = self._not_configured(provider, shown)
            if self._table.allows_simulated and (simulated := self._table.simulated.provider(provider.name)):
                hint += f"; {SIMULATED}/{simulated}/{mask(model)} is a simulated model"
        else:
            return self._unknown(name, only_by_name=only_by_name)
        return NoRouteError(message, path="$.model", hint=hint)

    def _unknown(self, name: str, *, only_by_name: bool) -> NoRouteError:
        """The error with the closest names, also those of providers that are known and not configured."""
        head, is_pair, model = name.partition("/")
        others = PROVIDERS if self._table.is_configurable else ()
        known = (*self._table.upstreams, *others)
        heads = closest_names(head, known, similarity=_SIMILAR) if is_pair and model else ()
        close = closest_names(name, (*(f"{each}/{model}" for each in heads), *self._words))
        if not close and not is_pair:  # the name of a provider alone
            known = (*self._table.upstreams, *self._table.simulated.models)
            alike = closest_names(name, known, similarity=_SIMILAR)
            close = tuple(f"{each}/{model}" for each in alike if (model := self._usual_model(each)))
        if only_by_name and self._table.simulates_known:
            return _unknown_model(name, self._marked_simulated(close), _hint_for_simulated(close))
        hint = self._what_there_is(name)
        missing = [each for each in heads[:1] if each in PROVIDERS and each not in self._table.upstreams]
        if missing and not self._table.simulates_known:
            hint = f"{missing[0]} needs {PROVIDERS[missing[0]].key_env[0]}; {hint}"
        return _unknown_model(name, close, hint)

    def _not_simulated(self, name: str) -> NoRouteError:
        """Why a name that begins with `simulated/` has no route."""
        _, _, rest = name.partition("/")
        if not self._table.allows_simulated and not self._table.is_configurable:
            return self._unknown(name, only_by_name=False)
        if not self._table.allows_simulated:
            message, hint = "simulated models are forbidden here", "--no-simulate, or simulate = false in [gateway]"
            return NoRouteError(message, path="$.model", hint=hint)
        provider, _, model = rest.partition("/")
        close = closest_names(provider, self._table.simulated.models, similarity=_SIMILAR) if model else ()
        hint = f"write {SIMULATED}/PROVIDER/MODEL; providers: {', '.join(self._table.simulated.models)}"
        return _unknown_model(name, tuple(f"{SIMULATED}/{each}/{model}" for each in close), hint)

    def _not_configured(self, provider: Provider, shown: str) -> tuple[str, str]:
        """What is missing for a model of a provider that is known."""
        if reason := self._table.left_out.get(provider.name):
            return f"no upstream has the model {shown}: {provider.name} is left out", reason
        section = f"[upstreams.{provider.name}] into {self._file()}"
        if provider.auth == "none":
            return f"no upstream has the model {shown}: {provider.title} is not configured", f"write {section}"
        variables = " or ".join(provider.key_env)
        message = f"no upstream has the model {shown}: there is no key for {provider.title}"
        if self._table.origin:
            return f"{message} in the configuration", f"set {variables} and write {section}"
        return message, f"set the environment variable {variables}"

    def _usual_model(self, upstream: str) -> str:
        """A model that an upstream, or a provider that is not configured, is likely to have."""
        settings = self._table.upstreams.get(upstream)
        named = [model for model in settings.models if not is_pattern(model)] if settings is not None else []
        provider = settings.provider if settings is not None else upstream
        return next(iter(named), "") or self._table.simulated.default_model(provider)

    @cached_property
    def _words(self) -> list[str]:
        """Names to guess from; few enough that a client's wrong name costs little."""
        simulated = self._table.simulated.models
        some = itertools.islice(self._listed(), _MAX_GUESSES)
        words = [word for listed in some for word in (listed.name, listed.model)]
        for upstream in self._table.upstreams.values():
            known = simulated.get(upstream.provider, ())
            words += [word for model in known for word in (f"{upstream.name}/{model}", model)]
        if self._table.simulates_known:
            words += [model for models in simulated.values() for model in models]
        return words

    def _what_there_is(self, name: str) -> str:
        if self._table.simulates_known:
            return f"nothing is configured: simulated models answer for names of known providers, such as {_EXAMPLES}"
        return f"{self._known()}; {self._what_to_write(name)}" if self._table.is_configurable else self._known()

    def _known(self) -> str:
        if not self._table.is_configurable:
            return f"write provider/model; providers: {', '.join([*self._table.upstreams][:_MAX_PROVIDERS])}"
        upstreams = _some([f"{name}/…" for name in self._table.upstreams])
        aliases = _some([entry.name for entry in self._table.models])
        return f"upstreams: {upstreams or 'none'}; names of [models]: {aliases or 'none'}"

    def _what_to_write(self, name: str) -> str:
        first = next(iter(self._table.upstreams), None)
        shown = quote(mask(name)).replace("'", '"')
        if first is None:
            return f"write [upstreams.NAME] into {self._file()}"
        return (
            f'write the prefix of an upstream before it, or {shown} = "{first}/MODEL" into [models] of {self._file()}'
        )

    def _file(self) -> str:
        """Its name without the folders, which clients must not see."""
        return Path(self._table.origin or CONFIG_FILE).name

    def _marked_simulated(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of models that exist only simulated, with the prefix that says so."""
        found = ((name, self._table.simulated.in_place_of(name)) for name in names)
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


def _some(names: list[str]) -> str:
    more = len(names) - _MAX_SHOWN
    return ", ".join(mask(name) for name in names[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
