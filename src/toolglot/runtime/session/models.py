"""Which provider a model's name leads to, with its key.

    models = ProviderModels()                               # keys from the environment
    models.find("anthropic/claude-opus-5").upstream

A name is `provider/model`; a name without a provider is looked for among the patterns of those that have a key;
`simulated/provider/model` is a simulated model, which needs no key.

Laws: a key is read when a model of its provider is asked for, and goes nowhere but into its upstream. Nothing is
simulated that was not asked for by name.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from toolglot import profiles
from toolglot.errors import InputError, UnknownNameError, closest_names, quote, unknown_name
from toolglot.upstream import PROVIDERS, Provider, Transport, Upstream, aws_credentials, key_of, url_of

T = TypeVar("T")

SIMULATED: Final = "simulated"
"""The prefix that asks for a simulated model."""


class ModelChoice(Struct, frozen=True):
    """A model, and the way to it."""

    name: str
    """`provider/model`."""
    model: str
    """As the provider knows it."""
    upstream: Upstream


class Models(Protocol):
    """Finds models by their names."""

    def find(self, name: str) -> ModelChoice:
        """The model of a name. An `InputError` says what is wrong with it, or what is missing."""
        ...

    async def close(self) -> None:
        """The end of all connections."""
        ...


class UpstreamModels:
    """The models of upstreams that are there already."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = {name.lower(): upstream for name, upstream in upstreams.items()}

    def find(self, name: str) -> ModelChoice:
        provider, model = split(name)
        found = self._upstreams.get(provider) or self._upstreams.get(profiles.resolve(provider or "none"))
        if found is None or not model:
            raise unknown(name, self._upstreams)
        return ModelChoice(f"{provider}/{model}", model, found)

    async def close(self) -> None:
        for transport in {id(found.transport): found.transport for found in self._upstreams.values()}.values():
            await transport.close()


class ProviderModels:
    """The models of all providers that toolglot knows, with the keys of the environment, and the simulated ones.

    transport: the way to all of them; without it, one over HTTP, which is opened when it is needed and closed here.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, transport: Transport | None = None) -> None:
        self._environ = environ
        self._given = transport
        self._own: Transport | None = None
        self._made: dict[str, Upstream] = {}
        self._simulated: UpstreamModels | None = None

    def find(self, name: str) -> ModelChoice:
        named, model = split(name)
        if named == SIMULATED:
            found = self._find_simulated(name, model)
            return ModelChoice(f"{SIMULATED}/{found.name}", found.model, found.upstream)
        provider = PROVIDERS.get(named) or PROVIDERS.get(profiles.resolve(named or "none"))
        if provider is None:
            provider, model = self._guessed(name), name
        if provider is None or not model:
            raise unknown(name, PROVIDERS)
        if provider.name not in self._made:
            self._made[provider.name] = self._upstream(provider)
        return ModelChoice(f"{provider.name}/{model}", model, self._made[provider.name])

    def _find_simulated(self, name: str, model: str) -> ModelChoice:
        from toolglot.simulator.upstreams import marked_simulator, upstreams  # noqa: PLC0415 - few need it

        if self._simulated is None:
            self._simulated = UpstreamModels(upstreams(marked_simulator()))
        try:
            return self._simulated.find(model)
        except UnknownNameError as error:
            close = tuple(f"{SIMULATED}/{found}" for found in error.suggestions)
            hint = error.hint.replace("write provider/", f"write {SIMULATED}/provider/")
            raise unknown_name("model", name, (), suggestions=close, hint=hint) from None

    def _guessed(self, name: str) -> Provider | None:
        """The provider whose models are named so; one with a key before one without."""
        fitting = [
            provider
            for provider in PROVIDERS.values()
            if any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in provider.models)
        ]
        return next((found for found in fitting if key_of(found, self._environ)), fitting[0] if fitting else None)

    def _upstream(self, provider: Provider) -> Upstream:
        key = key_of(provider, self._environ)
        aws = aws_credentials(self._environ) if provider.auth == "aws" and not key else None
        if not key and aws is None and provider.auth != "none":
            raise InputError(
                f"{provider.title} needs a key",
                path="model",
                hint=f"set the environment variable {' or '.join(provider.key_env)}, or ask for {SIMULATED}/"
                f"{provider.name}/…, which needs none",
            )
        return Upstream(
            name=provider.name,
            target=provider.target,
            url=url_of(provider, environ=self._environ),
            transport=self._transport(),
            auth=provider.auth,
            key=key,
            aws=aws,
            also=provider.also,
        )

    def _transport(self) -> Transport:
        if self._given is not None:
            return self._given
        if self._own is None:
            from toolglot.upstream import HttpTransport  # noqa: PLC0415 - an extra, for those that ask a provider

            self._own = HttpTransport()
        return self._own

    async def close(self) -> None:
        if self._own is not None:
            own, self._own = self._own, None
            self._made.clear()
            await own.close()
        if self._simulated is not None:
            simulated, self._simulated = self._simulated, None
            await simulated.close()


def split(name: object) -> tuple[str, str]:
    """The provider of a name, in small letters, and the model, which may have slashes of its own."""
    if not isinstance(name, str) or not name.strip() or len(name) > profiles.MAX_NAME:
        raise InputError(f"expected the name of a model, got {quote(name)}", path="model", hint="provider/model")
    provider, is_pair, model = name.strip().partition("/")
    return (provider.lower(), model) if is_pair else ("", provider)


def unknown(name: str, known: Mapping[str, T]) -> UnknownNameError:
    provider, model = split(name)
    close = closest_names(provider, known)
    listed = ", ".join([*known][:40])
    suggestions = tuple(f"{found}/{model}" for found in close) if model else ()
    return unknown_name("model", name, (), suggestions=suggestions, hint=f"write provider/model; providers: {listed}")
