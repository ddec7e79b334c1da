"""A request as the simulator sees it: who is asked, what was said last, and what has come of it since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolglot.conversation import Conversation, ToolResult, ToolSpec, Turn
from toolglot.profiles import Profile
from toolglot.simulator.replies.json_bytes import canonical


class AcceptedRequest(Struct, frozen=True, kw_only=True):
    """A request that its provider accepts."""

    provider: str
    """As the simulator names it: the prefix of its paths."""
    target: str
    profile: Profile
    model: str
    body: dict[str, Any]
    conversation: Conversation
    wants_stream: bool
    said: str
    """What the user said last."""
    turn: int
    """How often the user has spoken."""
    results: tuple[ToolResult, ...]
    """What came back from tools since then."""
    account: str
    """Whose request it is."""
    stem: str
    """A hash of the request, from which ids are made."""

    @property
    def protocol(self) -> str:
        return self.profile.protocol

    @property
    def calls_before(self) -> int:
        """How many calls there are in the conversation."""
        return sum(len(turn.calls) for turn in self.conversation.turns)

    @property
    def thinks(self) -> bool:
        """Whether the model thinks: as asked for, or as it does by itself."""
        reasoning, rules = self.conversation.options.reasoning, self.profile.reasoning
        if rules.carrier == "none" or self._is_forced_while_adaptive:
            return False
        if reasoning is not None and reasoning.mode is not None:
            return reasoning.mode != "off"
        if reasoning is not None and reasoning.effort is not None:
            return reasoning.effort != "none"
        return rules.default != "off"

    @property
    def _is_forced_while_adaptive(self) -> bool:
        """Claude does not think when a tool is forced on it."""
        choice = self.conversation.options.tool_choice
        return (
            "adaptive" in self.profile.reasoning.modes and choice is not None and choice.mode in ("required", "named")
        )

    def tool(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.conversation.tools if tool.name == name), None)


def ask_of(
    body: dict[str, Any],
    conversation: Conversation,
    *,
    provider: str,
    profile: Profile,
    stream: bool,
    seed: int,
    account: str = "",
) -> AcceptedRequest:
    said, turn, results = _spoken(conversation.turns)
    return AcceptedRequest(
        provider=provider,
        target=profile.name,
        profile=profile,
        model=profile.model,
        body=body,
        conversation=conversation,
        wants_stream=stream,
        said=said,
        turn=turn,
        results=results,
        account=account,
        stem=hash_of(seed, provider, profile.model, _without_stream(body)),
    )


def _without_stream(body: Mapping[str, Any]) -> dict[str, Any]:
    """A stream has the same ids as the same answer at once."""
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def hash_of(*values: Any) -> str:
    return hashlib.sha256(canonical(values)).hexdigest()


def _spoken(turns: tuple[Turn, ...]) -> tuple[str, int, tuple[ToolResult, ...]]:
    said, count = "", 0
    results: list[ToolResult] = []
    for turn in turns:
        if turn.results:
            # Text beside results is a reminder of the client's, not a new question.
            results += turn.results
        elif turn.role == "user" and turn.blocks:
            said, count = turn.text, count + 1
            results = []
    return said, count, tuple(results)
