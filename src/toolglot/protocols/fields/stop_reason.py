"""Why a reply ended, by what is in it rather than by what it says (J1, J2)."""

from __future__ import annotations

from collections.abc import Mapping

from toolglot.conversation import StopReason


def meant_by(
    reason: str | None, meanings: Mapping[str, StopReason], *, has_calls: bool, default: StopReason = "stop"
) -> StopReason | None:
    """What a provider's word means for this reply; None while there is none."""
    return None if reason is None else derive_stop(meanings.get(reason, default), has_calls=has_calls)


def word_for(
    stop: StopReason | None, reason: str | None, meant: StopReason | None, words: Mapping[StopReason, str]
) -> str | None:
    """The provider's own reason, if it still means the stop reason of the reply; else the word of the protocol."""
    if stop is None:
        return None
    return reason if reason is not None and meant == stop else words[stop]


def derive_stop(reason: StopReason, *, has_calls: bool) -> StopReason:
    """A reply with calls ended for them, unless it was cut off; one without calls did not."""
    if has_calls:
        return "tool_calls" if reason == "stop" else reason
    return "stop" if reason == "tool_calls" else reason
