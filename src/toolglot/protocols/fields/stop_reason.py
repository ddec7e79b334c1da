"""Why a reply ended, by what is in it rather than by what it says (J1, J2)."""

from __future__ import annotations

from collections.abc import Mapping

from toolglot.conversation import StopReason


def meant_by(
    said: str | None, meanings: Mapping[str, StopReason], *, has_calls: bool, otherwise: StopReason = "stop"
) -> StopReason | None:
    """What a provider's word means for this reply; None while there is none."""
    return None if said is None else derived(meanings.get(said, otherwise), has_calls=has_calls)


def word_for(
    stop: StopReason | None, said: str | None, meant: StopReason | None, words: Mapping[StopReason, str]
) -> str | None:
    """What the provider said, as long as it means what the reply says now; otherwise the protocol's own word."""
    if stop is None:
        return None
    return said if said is not None and meant == stop else words[stop]


def derived(said: StopReason, *, has_calls: bool) -> StopReason:
    """A reply with calls ended for them, unless it was cut off; one without calls did not."""
    if has_calls:
        return "tool_calls" if said == "stop" else said
    return "stop" if said == "tool_calls" else said
