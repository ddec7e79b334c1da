"""A request that its simulated provider accepts: the last prompt, the results since then, and what ids are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolglot.conversation import Conversation, Opaque, ToolResult, ToolSpec, Turn
from toolglot.conversation.visible_tools import visible_tools
from toolglot.profiles import Profile
from toolglot.simulator.replies.json_bytes import canonical_bytes


class AcceptedRequest(Struct, frozen=True, kw_only=True):
    """A request that its provider accepts."""

    provider: str
    """Its name in the simulator: the prefix of its paths."""
    target: str
    profile: Profile
    model: str
    body: dict[str, Any]
    conversation: Conversation
    tools: tuple[ToolSpec, ...]
    """The tools that the model sees: no deferred ones that are not loaded."""
    wants_stream: bool
    prompt: str
    """The last text of the user."""
    turn: int
    """The number of prompts so far."""
    results: tuple[ToolResult, ...]
    """The results of tools since the last prompt."""
    account: str
    """The account that sent it."""
    id_seed: str
    """A hash of the request, from which ids are made."""

    @property
    def protocol(self) -> str:
        return self.profile.protocol

    @property
    def max_tokens(self) -> int:
        """The tokens that the reply may have; 0: the request does not say."""
        return self.conversation.options.sampling.max_tokens or 0

    @property
    def calls_before(self) -> int:
        """The number of calls in the conversation."""
        return sum(len(turn.calls) for turn in self.conversation.turns)

    @property
    def thinks(self) -> bool:
        """Whether the model thinks: as requested, or by default."""
        reasoning, rules = self.conversation.options.reasoning, self.profile.reasoning
        if rules.carrier == "none" or self._is_forced_while_adaptive:
            return False
        if reasoning is not None and reasoning.mode is not None:
            return reasoning.mode != "off"
        if reasoning is not None and reasoning.effort is not None:
            return reasoning.effort != "none"
        return rules.default != "off"

    @property
    def wants_summary(self) -> bool:
        """Whether the request wants to see the thinking."""
        reasoning = self.conversation.options.reasoning
        return reasoning is not None and reasoning.summary is not None

    @property
    def _is_forced_while_adaptive(self) -> bool:
        """Claude does not think when a tool is forced on it."""
        choice = self.conversation.options.tool_choice
        return (
            "adaptive" in self.profile.reasoning.modes and choice is not None and choice.mode in ("required", "named")
        )

    def tool(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def accepted_request(
    body: dict[str, Any],
    conversation: Conversation,
    *,
    provider: str,
    profile: Profile,
    stream: bool,
    seed: int,
    account: str,
) -> AcceptedRequest:
    prompt, turn, results = _last_prompt(conversation.turns)
    return AcceptedRequest(
        provider=provider,
        target=profile.name,
        profile=profile,
        model=profile.model,
        body=body,
        conversation=conversation,
        tools=visible_tools(conversation),
        wants_stream=stream,
        prompt=prompt,
        turn=turn,
        results=results,
        account=account,
        id_seed=hash_of(seed, provider, profile.model, _without_stream(body)),
    )


def _without_stream(body: Mapping[str, Any]) -> dict[str, Any]:
    """A stream has the same ids as the same reply in one piece."""
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def hash_of(*values: Any) -> str:
    return hashlib.sha256(canonical_bytes(values)).hexdigest()


def _text_of(turn: Turn) -> str:
    """The text of a turn; that of an item which only its protocol knows counts, if the turn has no other."""
    return turn.text or "\n".join(block.text for block in turn.blocks if isinstance(block, Opaque) and block.text)


def _last_prompt(turns: tuple[Turn, ...]) -> tuple[str, int, tuple[ToolResult, ...]]:
    prompt, count = "", 0
    results: list[ToolResult] = []
    for turn in turns:
        if turn.results:
            # Text beside results is a reminder from the client, not a new prompt.
            results += turn.results
        elif turn.role == "user" and turn.blocks:
            prompt, count = _text_of(turn), count + 1
            results = []
    return prompt, count, tuple(results)
