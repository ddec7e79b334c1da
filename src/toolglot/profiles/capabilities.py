"""What a provider's tool calls are like, in six fields.

Four providers have fixed values; those of every other one follow from its profile, and a caller may replace any of
them. What a request must look like is in the profiles, which say more and name their sources.

Law: a number here is never a reason to drop a call.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.profiles.target_names import resolve


class Capabilities(Struct, frozen=True, kw_only=True):
    """What is known of a provider's tool calls.

    format: how calls are written: `json`, `xml` or `custom`; `unknown`.
    supports_parallel: whether a response may hold several calls.
    requires_schema: whether a request must declare its tools.
    stream_support: whether calls can be streamed.
    quirks: peculiarities, in words.
    """

    format: str = "unknown"
    supports_parallel: bool = False
    max_tools_per_call: int | None = 1
    """The maximum number of calls in one response; None: no known limit."""
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


registered: Final[dict[str, Capabilities]] = {}
"""Values of callers that replace the above, by resolved name. Single reads and writes need no lock."""


def from_profile(*, parallel: bool) -> Capabilities:
    """The values of a provider that is not in the table: all of them write JSON, and stream."""
    return Capabilities(
        format="json",
        supports_parallel=parallel,
        max_tools_per_call=None if parallel else 1,
        requires_schema=True,
        stream_support=True,
    )


def register_capabilities(provider: str, capabilities: Capabilities | None) -> None:
    """Set what a provider's tool calls are like. None removes it again.

    provider: a provider, under any spelling of its name, or a new name.
    capabilities: the values.
    """
    if not isinstance(provider, str) or not provider.strip():
        raise InputError(f"expected the name of a provider, got {quote(provider)}", path="provider")
    if capabilities is None:
        registered.pop(resolve(provider), None)
    elif isinstance(capabilities, Capabilities):
        registered[resolve(provider)] = capabilities
    else:
        raise InputError(f"expected Capabilities, got {quote(capabilities)}", path="capabilities")
