"""Settings of a conversion, each with its default.

A policy is the caller's choice; what a target demands is in its profile. If a target leaves no choice, its demand
wins, and the report says so.
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
DeferredTools = Literal["late", "start"]
CacheMarkers = Literal["place", "carry"]

_CHOICES: Final = {
    "required": get_args(Required),
    "responses_id_style": get_args(IdStyle),
    "server_tools": get_args(ServerTools),
    "ids": get_args(Ids),
    "stream_calls": get_args(StreamCalls),
    "calls_in_text": get_args(CallsInText),
    "unoffered_calls": get_args(UnofferedCalls),
    "deferred_tools": get_args(DeferredTools),
    "cache_markers": get_args(CacheMarkers),
}
_TEXTS: Final = ("missing_result", "bridge_user", "bridge_assistant")


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a conversion or a render."""

    required: Required = "auto"
    """Parameters that are marked as required but described as optional: `filter` removes them from `required`,
    `aggressive` does so for vaguer descriptions too, `keep` leaves them. `auto` filters from Anthropic to OpenAI Chat
    and Responses."""
    responses_id_style: IdStyle = "call"
    """Call ids in the Responses protocol. `call`: they start with `call_`. `clasp`: they start with `fc_`, and tools
    and a named tool choice have a nested `function`, as some clients expect."""
    server_tools: ServerTools = "refuse"
    """A tool that only another provider can run: `refuse` the request, or `drop` the tool and report it. `spare` drops
    it if there are other tools, and refuses the request if it is the only tool, or the one that must be called."""
    missing_result: str = "[No result: the tool call was interrupted. It may or may not have run.]"
    """The result of a call that has none, for a target that requires one for every call."""
    bridge_user: str = "Continue."
    """The text of a user turn that a target requires and the conversation lacks."""
    bridge_assistant: str = "OK."
    """The same for the assistant."""
    ids: Ids = "reversible"
    """Ids of calls from other providers: `reversible` swaps a known prefix (`toolu_abc` for `call_abc`), `canonical`
    derives them from the canonical id."""

    stream_calls: StreamCalls = "live"
    """Calls in a stream: `live` passes on arguments as they arrive; `whole` holds each call back until it is complete
    and valid, for clients that would run an incomplete one."""

    calls_in_text: CallsInText = "profile"
    """Parse calls that a model writes as text: as the profile says, always, or never."""

    unoffered_calls: UnofferedCalls = "call"
    """A call in text whose tool is not among those of the request: parse it as a `call`, to which the client may reply
    with an error, or leave it as `text`."""

    deferred_tools: DeferredTools = "late"
    """Tools that are loaded later, for a target that has no such thing: `late` declares each of them once it is loaded,
    which changes the tools that a prompt cache begins with; `start` declares all from the start, which costs the tokens
    of all of them in every request."""

    cache_markers: CacheMarkers = "place"
    """Cache markers for a target that caches nothing without them, such as Claude: `place` adds them, from the second
    request of a conversation on, for clients whose protocol has none; `carry` sends only those that a client sets."""

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
