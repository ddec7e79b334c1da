"""Names of models as clients write them: prefixes, tiers, patterns, and the marks that some clients add.

    openai/gpt-5.5                    the upstream, then the model, which may have slashes of its own
    simulated/anthropic/claude-opus-5 the stand-in for a provider
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
from toolglot.name_patterns import matches, unmarked
from toolglot.simulator.providers import PROVIDERS as SIMULATED_PROVIDERS
from toolglot.upstream.providers import PROVIDERS

__all__ = [
    "ASKED",
    "LONGEST",
    "SIMULATED",
    "Destination",
    "is_pattern",
    "is_tier",
    "matches",
    "prefixed",
    "simulated_guess",
    "simulated_prefix",
    "simulated_provider",
    "spellings",
    "unmarked",
    "words_of",
]

LONGEST: Final = profiles.MAX_NAME
SIMULATED: Final = "simulated"
"""The prefix that asks for a stand-in, and so no name for an upstream."""
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


def simulated_prefix(name: str, upstreams: Collection[str]) -> Destination | None:
    """The stand-in that a name asks for: by `simulated/`, or by a provider that is no upstream."""
    head, _, rest = name.partition("/")
    if head.lower() == SIMULATED:
        provider, _, model = rest.partition("/")
        return _stand_in(provider, model)
    return None if profiles.resolve(head) in upstreams else _stand_in(head, rest)


def simulated_guess(name: str) -> Destination:
    """The stand-in for a name without a prefix: that of the provider whose name it looks like, else OpenAI's."""
    bare = unmarked(name)
    fitting = (provider.name for provider in PROVIDERS.values() if matches(bare, provider.models))
    found = next((stand_in for stand_in in map(simulated_provider, fitting) if stand_in), "openai")
    return Destination(found, bare, simulated=True)


def simulated_provider(name: str) -> str:
    """The provider that the simulator serves for one; empty: none."""
    resolved = profiles.resolve(name)
    resolved = _STANDS_FOR.get(resolved, resolved)
    return resolved if resolved in SIMULATED_PROVIDERS else ""


def _stand_in(provider: str, model: str) -> Destination | None:
    found = simulated_provider(provider)
    return Destination(found, unmarked(model), simulated=True) if found and model else None
