"""Cache markers are read alike from every protocol that has them, and taken out without touching anything else."""

from __future__ import annotations

from typing import Any

import pytest

from toolglot.conversation import Conversation, Text
from toolglot.conversation.cache_markers import is_marker, markers_of, marking_of, without_markers
from toolglot.conversation.forms import CacheMarker
from toolglot.protocols.base import codec, names

CONTROL = {"type": "ephemeral", "ttl": "1h"}
POINT = {"cachePoint": {"type": "default", "ttl": "1h"}}
SCHEMA = {"type": "object", "properties": {}}
BODIES: dict[str, dict[str, Any]] = {
    "anthropic": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "x": 1, "cache_control": CONTROL}]}],
        "tools": [{"name": "f", "input_schema": SCHEMA, "cache_control": CONTROL}],
        "max_tokens": 9,
    },
    "openai_chat": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "x": 1, "cache_control": CONTROL}]}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}, "cache_control": CONTROL}],
    },
    "bedrock": {
        "messages": [{"role": "user", "content": [{"text": "hi"}, POINT]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}, POINT]},
    },
}


def decode(protocol: str) -> Conversation:
    return codec(protocol).request.decode(BODIES[protocol])


def test_the_protocols_with_markers_are_those_of_this_test() -> None:
    assert {name for name in names() if marking_of(name) is not None} == set(BODIES)


@pytest.mark.parametrize("protocol", BODIES)
def test_a_marker_on_a_tool_is_the_same_value_in_every_protocol(protocol: str) -> None:
    tool = decode(protocol).tools[0]
    assert markers_of(tool) == markers_of(tool, protocol) == (CacheMarker("1h"),)
    assert markers_of(tool, "ollama") == ()
    plain = without_markers(tool, protocol)
    assert markers_of(plain) == ()
    assert without_markers(plain, protocol) is plain


@pytest.mark.parametrize("protocol", ["anthropic", "openai_chat"])
def test_a_marker_on_a_text_goes_alone(protocol: str) -> None:
    text = decode(protocol).turns[0].blocks[0]
    assert markers_of(text) == (CacheMarker("1h"),)
    assert without_markers(text, protocol).extra == {protocol: {"x": 1}}
    assert without_markers(text, "bedrock") is text


def test_a_block_can_be_a_marker() -> None:
    assert [is_marker(block) for block in decode("bedrock").turns[0].blocks] == [False, True]
    assert not is_marker(Text("cachePoint"))
