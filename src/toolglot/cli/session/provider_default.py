"""A provider's name in the place of a model's: `/model mistral`, `--model anthropic`.

Law: it is that provider's default model where the provider is configured or has a key; otherwise an error says which
variable is missing. A name that is not a provider's stays as it is.
"""

from __future__ import annotations

from toolglot import profiles
from toolglot.errors import InputError, quote
from toolglot.gateway.config.settings import Config
from toolglot.simulator.upstreams import SIMULATED_NAMES
from toolglot.upstream.providers import PROVIDERS, Provider
from toolglot.upstream.routing.model_names import SIMULATED, is_pattern


def with_default_model(name: str, config: Config) -> str:
    """The name in full, where only a provider was named."""
    word = name.strip()
    if not word or "/" in word or any(entry.name == word for entry in config.models):
        return name
    if any(word in upstream.models for upstream in config.upstreams.values()):
        return name
    provider = profiles.resolve(word)
    named = [each for each in config.upstreams if each.lower() == word.lower()]
    named += [each for each, settings in config.upstreams.items() if settings.provider == provider]
    if named:
        return f"{named[0]}/{_default_model(named[0], word, config)}"
    if provider in PROVIDERS:
        raise _no_key(PROVIDERS[provider], config)
    return name


def known_default(provider: str) -> str:
    """A well known model of a provider; empty: none."""
    return SIMULATED_NAMES.default_model(provider)


def _default_model(upstream: str, word: str, config: Config) -> str:
    settings = config.upstreams[upstream]
    listed = next((model for model in settings.models if not is_pattern(model)), "")
    model = listed or known_default(settings.provider)
    if not model:
        hint = f"write {upstream}/MODEL, or list its models in {config.origin or 'toolglot.toml'}"
        raise InputError(f"{quote(word)} is a provider, and has no default model here", path="model", hint=hint)
    return model


def _no_key(provider: Provider, config: Config) -> InputError:
    """What is missing for a provider that is known."""
    file = config.origin or "toolglot.toml"
    hint = f"write [upstreams.{provider.name}] into {file}"
    message = f"{provider.title} is not configured"
    if provider.key_env:
        variables = " or ".join(provider.key_env)
        message = f"there is no key for {provider.title}"
        hint = f"set {variables}" + (f" and {hint}" if config.origin else "")
    if model := known_default(provider.name):
        hint += f"; {SIMULATED}/{provider.name}/{model} is a simulated model"
    return InputError(message, path="model", hint=hint)
