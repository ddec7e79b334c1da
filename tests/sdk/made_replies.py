"""Canonical replies, as no single provider would give them all: one for each thing that a client must be shown."""

from __future__ import annotations

from typing import Final

from sdk.samples import BIG, HARD_TEXT, SIGNATURE
from toolglot.conversation import Block, Reply, StopReason, Text, Thinking, ToolCall, Turn, Usage

USAGE: Final = Usage(121, 12)
CALL: Final = ToolCall("call_1", "get_weather", {"city": "Köln", "days": BIG, "f": 1.0, "n": None, "deep": [{"a": []}]})


def _reply(*blocks: Block, stop: StopReason | None = "stop", usage: Usage | None = USAGE) -> Reply:
    return Reply(Turn("assistant", blocks), stop, usage, "reply_1", "some-model")


REPLIES: Final[dict[str, Reply]] = {
    "text": _reply(Text("It is 7 °C in Köln.")),
    "hard_text": _reply(Text(HARD_TEXT)),
    "two_texts": _reply(Text("One, "), Text("two.")),
    "no_words": _reply(Text("")),
    "nothing": _reply(),
    "call": _reply(CALL, stop="tool_calls"),
    "call_without_arguments": _reply(ToolCall("call_1", "ping", {}), stop="tool_calls"),
    "text_and_call": _reply(Text("Let me look."), CALL, stop="tool_calls"),
    "parallel_calls": _reply(
        CALL, ToolCall("call_2", "get_weather", {}), ToolCall("call_3", "ping", {"a": HARD_TEXT}), stop="tool_calls"
    ),
    "call_that_was_cut": _reply(Text("I"), CALL, stop="length"),
    "call_with_free_text": _reply(ToolCall("call_1", "patch", type="custom", raw_input="*** +ä"), stop="tool_calls"),
    "thinking": _reply(Thinking("Seven."), Text("7")),
    "thinking_signed": _reply(Thinking("Seven.", SIGNATURE), Text("7")),
    "thinking_signed_in_another_alphabet": _reply(Thinking("Seven.", "sig-1"), Text("7")),
    "thinking_hidden": _reply(Thinking(redacted="cmVkYWN0ZWQ="), Text("7")),
    "thinking_and_calls": _reply(Thinking("Look.", SIGNATURE), Text("I look."), CALL, stop="tool_calls"),
    "all_counts": _reply(Text("7"), usage=Usage(121, 12, 100, 10, 4)),
    "no_usage": _reply(Text("7"), usage=None),
    "length": _reply(Text("It is"), stop="length"),
    "filter": _reply(Text("I cannot."), stop="filter"),
    "filter_without_words": _reply(stop="filter"),
    "pause": _reply(Text("Still"), stop="pause"),
    "error": _reply(Text("Oh"), stop="error"),
}
