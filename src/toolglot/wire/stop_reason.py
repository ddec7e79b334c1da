"""Why a reply ended, by what is in it rather than by what it says (J1, J2)."""

from __future__ import annotations

from toolglot.conversation import StopReason


def derived(said: StopReason, *, has_calls: bool) -> StopReason:
    """A reply with calls ended for them, unless it was cut off; one without calls did not."""
    if has_calls:
        return "tool_calls" if said == "stop" else said
    return "stop" if said == "tool_calls" else said
