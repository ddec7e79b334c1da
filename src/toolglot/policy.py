"""What to do where there is a choice: the policies, each with its default.

A policy is the caller's; what a target demands is in its profile. Where a target leaves no choice, its
demand wins and the report says so.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices that a conversion or a render makes."""

    required: Literal["auto", "keep", "filter", "aggressive"] = "auto"
    """Parameters that are marked as required although their description calls them optional: `filter` takes
    them out of `required`, `aggressive` does so on vaguer words, `keep` leaves them. `auto` filters on the
    way from Anthropic to OpenAI Chat and Responses."""
    responses_id_style: Literal["call", "clasp"] = "call"
    """`clasp`: ids of the Responses protocol start with `fc_`, and its tools hold a nested `function` too."""
    server_tools: Literal["refuse", "drop"] = "refuse"
    """A tool that only another provider can run: refuse the request, or leave the tool out and say so."""
    missing_result: str = "[No result: the tool call was interrupted. It may or may not have run.]"
    """What a target that wants every call answered is told where there is no answer."""
    bridge_user: str = "Continue."
    """What the user says where a target wants a word of the user's and there is none."""
    bridge_assistant: str = "OK."
    """The same for the assistant."""
    ids: Literal["reversible", "canonical"] = "reversible"
    """Ids of calls that come from elsewhere: `reversible` swaps a known prefix (`toolu_abc` for `call_abc`),
    `canonical` makes them from the canonical id."""


DEFAULT_POLICY = Policy()
