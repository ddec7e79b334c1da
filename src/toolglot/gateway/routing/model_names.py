"""Names of models as clients write them: prefixes, tiers, patterns, and the marks that some clients add.

    openai/gpt-5.5                    the upstream, then the model, which may have slashes of its own
    simulated/anthropic/claude-opus-5 a simulated model of a provider
    claude-opus-4-5[1m]               Claude Code's mark for a long context; no provider knows it
    opus                              a tier: any name with this word in it

Case does not count when names are compared; what is sent is written as it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from toolglot import profiles
from toolglot.profiles.name_patterns import matches, unmarked
from toolglot.simulator.providers import PROVIDERS as SIMULATED_PROVIDERS
from toolglot.upstream.providers import PROVIDERS, Provider

__all__ = [
    "ASKED",
    "LONGEST",
    "SIMULATED",
    "Destination",
    "is_named_like",
    "is_pattern",
    "is_tier",
    "matches",
    "prefixed",
    "provider_of",
    "simulated_in_place_of",
    "simulated_model",
    "simulated_provider",
    "spellings",
    "unmarked",
    "words_of",
]

LONGEST: Final = profiles.MAX_NAME
SIMULATED: Final = "simulated"
"""The prefix that asks for a simulated model, and so no name for an upstream."""
ASKED: Final = "*"
"""As the model of a target: the one that was asked for. As a name: everything else."""

_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
_TIER: Final = re.compile(r"[a-z]+")
_STANDS_FOR: Final = {"azure": "openai", "openai_responses": "openai", "vertex": "gemini"}
"""Providers that the simulator serves under the name of another."""


class Destination(Struct, frozen=True):
    """Where a name leads."""

    upstream: str
    """The name of an upstream; of a simulated one, its provider."""
    model: str
    simulated: bool = False


def spellings(name: str) -> Iterator[str]:
    """A name as it is, and without its mark."""
    yield name
    if unmarked(name) != name:
        yield unmarked(name)


def is_pattern(name: str) -> bool:
    """Whether a name stands for several."""
    return any(letter in unmarked(name) for letter in "*?[")


def is_tier(name: str) -> bool:
    """Whether a name is a single word of letters."""
    return _TIER.fullmatch(name.lower()) is not None


def words_of(name: str) -> list[str]:
    return _SEPARATORS.split(name.lower())


# --- prefixes ---------------------------------------------------------------------------------------


def prefixed(name: str, upstreams: Collection[str]) -> Destination | None:
    """Where a name leads whose first part is an upstream."""
    head, _, model = name.partition("/")
    return Destination(head.lower(), model) if model and head.lower() in upstreams else None


def simulated_model(name: str) -> Destination | None:
    """The simulated model that a name asks for: `simulated/provider/model`."""
    head, _, rest = name.partition("/")
    provider, _, model = rest.partition("/")
    return _simulated(provider, model) if head.lower() == SIMULATED else None


def simulated_in_place_of(name: str) -> Destination | None:
    """The simulated model for the name of a real one, where that is known: its provider has models of such names, or
    stands before the slash."""
    provider, model = provider_of(name)
    return _simulated(provider.name, model) if provider is not None else None


def provider_of(name: str) -> tuple[Provider | None, str]:
    """The provider that a name belongs to, by its prefix or by its pattern; and the model's name there."""
    head, is_pair, model = name.partition("/")
    if is_pair and (found := PROVIDERS.get(profiles.resolve(head))) is not None:
        return found, model
    bare = unmarked(name)
    return next((provider for provider in PROVIDERS.values() if is_named_like(bare, provider)), None), bare


def is_named_like(name: str, provider: Provider) -> bool:
    """Whether a name without a prefix is one of a provider's models. A pattern that begins with `*` takes no slash:
    what stands before it is a prefix that nobody knows."""
    patterns = provider.models
    return matches(name, [each for each in patterns if each[0] != "*"] if "/" in name else patterns)


def simulated_provider(name: str) -> str:
    """The provider that the simulator serves for one; empty: none."""
    resolved = profiles.resolve(name)
    resolved = _STANDS_FOR.get(resolved, resolved)
    return resolved if resolved in SIMULATED_PROVIDERS else ""


def _simulated(provider: str, model: str) -> Destination | None:
    found = simulated_provider(provider)
    return Destination(found, unmarked(model), simulated=True) if found and model else None
