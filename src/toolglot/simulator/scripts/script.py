"""What the simulator is told to answer: a list of rules, of which the first that fits a request holds.

    rules:
      - when: {provider: anthropic, contains: weather, results: 0}
        reply: {thinking: "I look it up.", calls: [{name: get_weather, arguments: {city: Bonn}}]}
      - when: {results: 1}
        times: 1
        fault: {kind: 429, retry_after: 2}
      - replies: [{text: "First this."}, {text: "Then always this."}]

Here is what a script is made of; `script_reading.py` reads and checks it. A request that no rule fits is answered by
the default script (`plan.py`).
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import StopReason, Usage
from toolglot.simulator.ask import AcceptedRequest
from toolglot.simulator.scripts.patterns import refuse_endless

LONGEST_TEXT: Final = 5000
"""Characters of a text that a pattern is tried on: the time may grow with their square."""
MOST_CALLS: Final = 128
LONGEST_PACE: Final = 60.0


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a script."""


class CallSpec(Spec, frozen=True):
    """A call that the model makes."""

    name: str
    arguments: dict[str, Any] | str | None = None
    """An object; a text that is written as it is, JSON or not; none: made to satisfy the tool's schema."""


class ReplySpec(Spec, frozen=True):
    """What the model answers."""

    text: str | None = None
    thinking: str | None = None
    """Said where the provider has a place for it, signed where it signs."""
    calls: tuple[CallSpec, ...] | int = ()
    """The calls; a number: so many, of the tools that the request has."""
    stop: StopReason | None = None
    """None: as the calls have it."""
    usage: Usage | None = None


class When(Spec, frozen=True):
    """Which requests a rule is for. What is not said holds for all."""

    provider: str | None = None
    model: str | None = None
    """A pattern as of file names: `claude-*`."""
    contains: str | None = None
    """A part of what the user said last, in any case."""
    matches: str | None = None
    """A regular expression that is found in what the user said last."""
    tool: str | None = None
    """The name of a tool that the request has."""
    results: int | None = None
    """How many results there are since the user spoke."""
    turn: int | None = None
    """How often the user has spoken."""
    stream: bool | None = None

    def __post_init__(self) -> None:
        if self.matches is not None:
            refuse_endless(self.matches)

    def fits(self, ask: AcceptedRequest) -> bool:
        return self._fits_place(ask) and self._fits_words(ask) and self._fits_state(ask)

    def _fits_place(self, ask: AcceptedRequest) -> bool:
        return (
            self.provider in (None, ask.provider, ask.target)
            and (self.model is None or fnmatchcase(ask.model, self.model))
            and self.stream in (None, ask.wants_stream)
        )

    def _fits_words(self, ask: AcceptedRequest) -> bool:
        return (self.contains is None or self.contains.lower() in ask.said.lower()) and (
            self.matches is None or re.search(self.matches, ask.said[:LONGEST_TEXT]) is not None
        )

    def _fits_state(self, ask: AcceptedRequest) -> bool:
        return (
            self.results in (None, len(ask.results))
            and self.turn in (None, ask.turn)
            and (self.tool is None or any(tool.name == self.tool for tool in ask.conversation.tools))
        )


class ScriptRule(Spec, frozen=True):
    """What is answered to the requests that it fits."""

    when: When = When()
    reply: ReplySpec | None = None
    """None: what the default script says."""
    replies: tuple[ReplySpec, ...] = ()
    """Several, one after the other; the last one stays."""
    fault: str | int | dict[str, Any] = ""
    """What goes wrong, as `replies/faults.py` reads it."""
    times: int | None = None
    """How often the rule may be used; None: always."""

    def reply_for(self, use: int) -> ReplySpec | None:
        """What is answered when it is used for this time; the first is 0."""
        return self.replies[min(use, len(self.replies) - 1)] if self.replies else self.reply


class Script(Spec, frozen=True):
    """Rules, and how answers are given."""

    rules: tuple[ScriptRule, ...] = ()
    seed: int = 0
    """Another one gives other ids and signatures."""
    chunk: int = 24
    """Characters of a delta."""
    pace: float = 0.0
    """Seconds between the events of a stream."""
    bytes: int = 0
    """Bytes of a piece of a stream; 0: an event a piece."""
    keys: tuple[str, ...] = ()
    """API keys that are accepted; none: every key that is not empty."""
    calls_unasked: bool = True
    """Whether the default script calls a tool whatever the user says. Otherwise it calls only one that the prompt is
    about, with words of the prompt, or one that the request forces: a program that really runs tools may listen."""
    preface: str = ""
    """What the default script says before its own words."""
