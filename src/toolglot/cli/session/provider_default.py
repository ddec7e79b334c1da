"""A provider's name instead of a model's: `/model mistral`, `--model anthropic`.

Law: it means the default model of that provider, if the provider is configured or has a key; otherwise an error says
which variable is missing. A name that is not a provider's stays unchanged.
"""

from __future__ import annotations

from toolglot import profiles
from toolglot.errors import InputError, quote
from toolglot.simulator.simulated_upstreams import SIMULATED_NAMES
from toolglot.upstream.providers import PROVIDERS, Provider
from toolglot.upstream.routing.model_names import SIMULATED, is_pattern
from toolglot.upstream.routing.routes import RoutingTable
from toolglot.upstream.settings import CONFIG_FILE


def with_default_model(name: str, table: RoutingTable) -> str:
    """The full name of the default model, if the name is a provider's."""
    word = name.strip()
    if not word or "/" in word or any(entry.name == word for entry in table.models):
        return name
    if any(word in upstream.models for upstream in table.upstreams.values()):
        return name
    provider = profiles.resolve(word)
    named = [each for each in table.upstreams if each.lower() == word.lower()]
    named += [each for each, settings in table.upstreams.items() if settings.provider == provider]
    if named:
        return f"{named[0]}/{_default_model(named[0], word, table)}"
    if provider in PROVIDERS:
        raise _no_key(PROVIDERS[provider], table)
    return name


def known_default(provider: str) -> str:
    """A well known model of a provider; empty: none."""
    return SIMULATED_NAMES.default_model(provider)


def _default_model(upstream: str, word: str, table: RoutingTable) -> str:
    settings = table.upstreams[upstream]
    listed = next((model for model in settings.models if not is_pattern(model)), "")
    model = listed or known_default(settings.provider)
    if not model:
        hint = f"write {upstream}/MODEL, or list its models in {table.origin or CONFIG_FILE}"
        raise InputError(f"{quote(word)} is a provider, and has no default model here", path="model", hint=hint)
    return model


def _no_key(provider: Provider, table: RoutingTable) -> InputError:
    """What is missing for a provider that is known."""
    file = table.origin or CONFIG_FILE
    hint = f"write [upstreams.{provider.name}] into {file}"
    message = f"{provider.title} is not configured"
    if provider.key_env:
        variables = " or ".join(provider.key_env)
        message = f"there is no key for {provider.title}"
        hint = f"set {variables}" + (f" and {hint}" if table.origin else "")
    if model := known_default(provider.name):
        hint += f"; {SIMULATED}/{provider.name}/{model} is a simulated model"
    return InputError(message, path="model", hint=hint)
