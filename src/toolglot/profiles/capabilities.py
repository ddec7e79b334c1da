"""Seed 003's capability matrix, with its exact values.

It is kept for callers that were written against it. Nothing in toolglot reads it: the profiles are the
truth (xAI, say, answers with parallel calls today).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.profiles.aliases import resolve


class Capabilities(Struct, frozen=True, kw_only=True):
    format: str = "unknown"
    supports_parallel: bool = False
    max_tools_per_call: int = 1
    requires_schema: bool = False
    stream_support: bool = False
    quirks: tuple[str, ...] = ()


CONSERVATIVE: Final = Capabilities()

MATRIX: Final[dict[str, Capabilities]] = {
    "anthropic": Capabilities(
        format="json",
        supports_parallel=True,
        max_tools_per_call=20,
        requires_schema=True,
        stream_support=True,
    ),
    "openai": Capabilities(
        format="json",
        supports_parallel=True,
        max_tools_per_call=10,
        requires_schema=True,
        stream_support=True,
    ),
    "xai": Capabilities(
        format="custom",
        max_tools_per_call=1,
        quirks=("uses <x.ai:tool_call> tags",),
    ),
    "deepseek": Capabilities(format="xml", supports_parallel=True, max_tools_per_call=5),
}


def get_capabilities(provider: str) -> Capabilities:
    """Seed 003's word on a provider: anthropic, openai, xai, deepseek; a conservative default for any other.

    Any spelling of the alias table is accepted, as everywhere. For what a provider demands today, ask `profiles.get`.
    """
    if not isinstance(provider, str):
        raise InputError(f"expected the name of a provider, got {quote(provider)}", path="provider")
    return MATRIX.get(resolve(provider), CONSERVATIVE)
