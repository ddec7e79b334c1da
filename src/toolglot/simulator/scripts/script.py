"""The script of a simulator: a list of rules, of which the first that matches a request applies.

    rules:
      - when: {provider: anthropic, contains: weather, results: 0}
        reply: {thinking: "I look it up.", calls: [{name: get_weather, arguments: {city: Bonn}}]}
      - when: {results: 1}
        times: 1
        fault: {kind: 429, retry_after: 2}
      - replies: [{text: "First this."}, {text: "Then always this."}]

Here are the parts of a script; `script_reading.py` reads and checks it. The default script (`plan.py`) answers a
request that no rule matches.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import StopReason, Usage
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.scripts.patterns import refuse_slow

MAX_MATCHED: Final = 5000
"""Characters of a prompt that a pattern is tried on: the time may grow with their square."""
MAX_CALLS: Final = 128
MAX_PACE: Final = 60.0


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a script."""


class CallSpec(Spec, frozen=True):
    """A call that the model makes."""

    name: str
    arguments: dict[str, Any] | str | None = None
    """An object; a string that is written as it is, JSON or not; None: made to satisfy the tool's schema."""


class ReplySpec(Spec, frozen=True):
    """A reply of the model."""

    text: str | None = None
    thinking: str | None = None
    """Sent if the provider has a field for it, signed if it signs."""
    calls: tuple[CallSpec, ...] | int = ()
    """The calls; a number: that many, of the tools that the request has."""
    stop: StopReason | None = None
    """None: by whether there are calls."""
    usage: Usage | None = None


class When(Spec, frozen=True):
    """Which requests a rule is for. A condition that is None matches all."""

    provider: str | None = None
    model: str | None = None
    """A pattern like those of file names: `claude-*`."""
    contains: str | None = None
    """A part of the last prompt, in any case."""
    matches: str | None = None
    """A regular expression that is found in the last prompt."""
    tool: str | None = None
    """The name of a tool that the request has."""
    results: int | None = None
    """The number of results since the last prompt."""
    turn: int | None = None
    """The number of prompts so far."""
    stream: bool | None = None

    def __post_init__(self) -> None:
        if self.matches is not None:
            refuse_slow(self.matches)

    def matches_request(self, request: AcceptedRequest) -> bool:
        return self._matches_target(request) and self._matches_prompt(request) and self._matches_state(request)

    def _matches_target(self, request: AcceptedRequest) -> bool:
        return (
            self.provider in (None, request.provider, request.target)
            and (self.model is None or fnmatchcase(request.model, self.model))
            and self.stream in (None, request.wants_stream)
        )

    def _matches_prompt(self, request: AcceptedRequest) -> bool:
        return (self.contains is None or self.contains.lower() in request.prompt.lower()) and (
            self.matches is None or re.search(self.matches, request.prompt[:MAX_MATCHED]) is not None
        )

    def _matches_state(self, request: AcceptedRequest) -> bool:
        return (
            self.results in (None, len(request.results))
            and self.turn in (None, request.turn)
            and (self.tool is None or request.tool(self.tool) is not None)
        )


class ScriptRule(Spec, frozen=True):
    """The reply to the requests that it matches."""

    when: When = When()
    reply: ReplySpec | None = None
    """None: that of the default script."""
    replies: tuple[ReplySpec, ...] = ()
    """Several, one after the other; the last one is repeated."""
    fault: str | int | dict[str, Any] = ""
    """The fault to inject, as `replies/faults.py` reads it."""
    times: int | None = None
    """How often the rule may be used; None: always."""

    def reply_for(self, use: int) -> ReplySpec | None:
        """The reply of this use of the rule; the first is 0."""
        return self.replies[min(use, len(self.replies) - 1)] if self.replies else self.reply


class Script(Spec, frozen=True):
    """Rules, and how replies are sent."""

    rules: tuple[ScriptRule, ...] = ()
    seed: int = 0
    """Changes ids and signatures."""
    chunk: int = 24
    """Characters of a delta."""
    pace: float = 0.0
    """Seconds between the events of a stream."""
    bytes: int = 0
    """Bytes of a piece of a stream; 0: each event is a piece."""
    keys: tuple[str, ...] = ()
    """The API keys that are accepted; none: every key that is not empty."""
    calls_unasked: bool = True
    """Whether the default script calls a tool whatever the prompt is. If not, it calls only a tool that the prompt is
    about, with words of the prompt, or one that the request forces: for programs that really run tools."""
    preface: str = ""
    """How replies of the default script begin."""
    windows: dict[str, int] = {}
    """Patterns of models, and the tokens that fit into a request to them. A longer one is refused, in the words of its
    provider. Models that no pattern matches take any length."""

    def window(self, model: str) -> int | None:
        """The tokens that fit into a request to a model; None: any number."""
        return next((tokens for pattern, tokens in self.windows.items() if fnmatchcase(model, pattern)), None)
