"""Names of models as clients write them: prefixes, tiers, patterns, and the marks that some clients add.

    openai/gpt-5.5                    the upstream, then the model, which may have slashes of its own
    simulated/anthropic/claude-opus-5 a simulated model of a provider
    claude-opus-4-5[1m]               Claude Code's mark for a long context; no provider knows it
    opus                              a tier: any name with this word in it

Names are compared without regard to case, and sent as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from toolglot import profiles
from toolglot.profiles.name_patterns import matches, strip_context_mark
from toolglot.upstream.providers import PROVIDERS, Provider

__all__ = [
    "MAX_LENGTH",
    "REQUESTED",
    "SIMULATED",
    "Destination",
    "SimulatedNames",
    "is_named_like",
    "is_pattern",
    "is_tier",
    "matches",
    "provider_of",
    "spellings",
    "split_prefix",
    "strip_context_mark",
    "words_of",
]

MAX_LENGTH: Final = profiles.MAX_NAME
SIMULATED: Final = "simulated"
"""The prefix of simulated models, so that no upstream can have this name."""
REQUESTED: Final = "*"
"""As the model of a target: the one that the client named. As a name: every name that nothing else matches."""

_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
_TIER: Final = re.compile(r"[a-z]+")


class Destination(Struct, frozen=True):
    """The upstream and the model that a name leads to."""

    upstream: str
    """The name of an upstream; of a simulated one, its provider."""
    model: str
    simulated: bool = False


def spellings(name: str) -> Iterator[str]:
    """A name as it is, and without its mark."""
    yield name
    if strip_context_mark(name) != name:
        yield strip_context_mark(name)


def is_pattern(name: str) -> bool:
    """Whether a name matches several models."""
    return any(letter in strip_context_mark(name) for letter in "*?[")


def is_tier(name: str) -> bool:
    """Whether a name is a single word of letters."""
    return _TIER.fullmatch(name.lower()) is not None


def words_of(name: str) -> list[str]:
    """The words of a name, in lowercase."""
    return _SEPARATORS.split(name.lower())


# --- prefixes ---------------------------------------------------------------------------------------


def split_prefix(name: str, upstreams: Collection[str]) -> Destination | None:
    """The destination of a name whose first part is an upstream."""
    head, _, model = name.partition("/")
    return Destination(head.lower(), model) if model and head.lower() in upstreams else None


def provider_of(name: str) -> tuple[Provider | None, str]:
    """The provider that a name belongs to, by its prefix or by its patterns, and the model's name there."""
    head, is_pair, model = name.partition("/")
    if is_pair and (found := PROVIDERS.get(profiles.resolve(head))) is not None:
        return found, model
    bare = strip_context_mark(name)
    return next((provider for provider in PROVIDERS.values() if is_named_like(bare, provider)), None), bare


def is_named_like(name: str, provider: Provider) -> bool:
    """Whether a name without a prefix is one of a provider's models. A pattern that begins with `*` matches no slash:
    what precedes it would be an unknown prefix."""
    patterns = provider.models
    return matches(name, [each for each in patterns if each[0] != "*"] if "/" in name else patterns)


# --- simulated models -------------------------------------------------------------------------------


class SimulatedNames:
    """The names of simulated models.

    models: by provider, what the simulator serves; or what returns that when it is first asked for.
    aliases: providers that the simulator serves under the name of another.
    """

    def __init__(
        self,
        models: Mapping[str, tuple[str, ...]] | Callable[[], Mapping[str, tuple[str, ...]]],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._models = models
        self._aliases = aliases or {}

    @property
    def models(self) -> Mapping[str, tuple[str, ...]]:
        """By provider, what the simulator serves."""
        if callable(self._models):
            self._models = self._models()
        return self._models

    def model(self, name: str) -> Destination | None:
        """The destination of `simulated/provider/model`."""
        head, _, rest = name.partition("/")
        provider, _, model = rest.partition("/")
        return self._destination(provider, model) if head.lower() == SIMULATED else None

    def in_place_of(self, name: str) -> Destination | None:
        """The simulated model for the name of a real one, if its provider is known by its prefix or its patterns."""
        provider, model = provider_of(name)
        return self._destination(provider.name, model) if provider is not None else None

    def provider(self, name: str) -> str:
        """The provider that the simulator serves for one; empty: none."""
        resolved = profiles.resolve(name)
        resolved = self._aliases.get(resolved, resolved)
        return resolved if resolved in self.models else ""

    def default_model(self, provider: str) -> str:
        """A well known model of a provider; empty: none."""
        return next(iter(self.models.get(provider, ())), "")

    def _destination(self, provider: str, model: str) -> Destination | None:
        found = self.provider(provider)
        return Destination(found, strip_context_mark(model), simulated=True) if found and model else None
