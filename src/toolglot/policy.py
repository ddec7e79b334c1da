"""What to do where there is a choice: the policies, each with its default.

A policy is the caller's; what a target demands is in its profile. Where a target leaves no choice, its
demand wins and the report says so.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Struct

from toolglot.errors import InputError, quote

Required = Literal["auto", "keep", "filter", "aggressive"]
IdStyle = Literal["call", "clasp"]
ServerTools = Literal["refuse", "spare", "drop"]
Ids = Literal["reversible", "canonical"]
StreamCalls = Literal["live", "whole"]
CallsInText = Literal["profile", "always", "never"]
UnofferedCalls = Literal["call", "text"]

_CHOICES: Final = {
    "required": get_args(Required),
    "responses_id_style": get_args(IdStyle),
    "server_tools": get_args(ServerTools),
    "ids": get_args(Ids),
    "stream_calls": get_args(StreamCalls),
    "calls_in_text": get_args(CallsInText),
    "unoffered_calls": get_args(UnofferedCalls),
}
_TEXTS: Final = ("missing_result", "bridge_user", "bridge_assistant")


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices that a conversion or a render makes."""

    required: Required = "auto"
    """Parameters that are marked as required although their description calls them optional: `filter` takes
    them out of `required`, `aggressive` does so on vaguer words, `keep` leaves them. `auto` filters on the
    way from Anthropic to OpenAI Chat and Responses."""
    responses_id_style: IdStyle = "call"
    """`clasp`: ids of the Responses protocol start with `fc_`, and its tools and a named tool choice hold a nested
    `function`."""
    server_tools: ServerTools = "refuse"
    """A tool that only another provider can run: refuse the request, or leave the tool out and say so. `spare` leaves
    it out where it is one among others and refuses the request where it is what is asked for: the only tool, or the
    one that must be called."""
    missing_result: str = "[No result: the tool call was interrupted. It may or may not have run.]"
    """What a target that wants every call answered is told where there is no answer."""
    bridge_user: str = "Continue."
    """What the user says where a target wants a word of the user's and there is none."""
    bridge_assistant: str = "OK."
    """The same for the assistant."""
    ids: Ids = "reversible"
    """Ids of calls that come from elsewhere: `reversible` swaps a known prefix (`toolu_abc` for `call_abc`),
    `canonical` makes them from the canonical id."""

    stream_calls: StreamCalls = "live"
    """Calls in a stream: `live` shows their arguments while they come; `whole` keeps each one until all of it is there
    and can be read, so that a client that runs whatever it sees never sees half of one."""

    calls_in_text: CallsInText = "profile"
    """Calls that a model writes as text become real ones: where the profile of who answers says so, always or never."""

    unoffered_calls: UnofferedCalls = "call"
    """What a call that a model writes as text is where its tool is not among those of the request: a `call`, which the
    client may answer with an error, or `text`."""

    def __post_init__(self) -> None:
        for field, allowed in _CHOICES.items():
            if getattr(self, field) not in allowed:
                raise InputError(
                    f"expected one of {', '.join(allowed)}, got {quote(getattr(self, field))}", path=f"policy.{field}"
                )
        for field in _TEXTS:
            text = getattr(self, field)
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"expected a string, got {quote(text)}", path=f"policy.{field}")


DEFAULT_POLICY = Policy()
