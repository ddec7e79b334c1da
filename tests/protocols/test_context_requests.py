"""What requests want to be done to their context, read whatever they hold, and what replies say of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_values
from toolglot import Compaction, Conversation, StreamTranslator, Usage, convert, convert_reply
from toolglot.conversation.context_requests import (
    AppliedEdit,
    ClearResults,
    ClearThinking,
    CompactionRequest,
    ContextRequest,
)
from toolglot.protocols.base import codec
from toolglot.protocols.context_form import ContextForm
from toolglot.translate.reply_head import ReplyHead


def form(protocol: str) -> ContextForm:
    found = codec(protocol).context
    assert found is not None
    return found


def messages(**fields: Any) -> Conversation:
    asked = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}], **fields}
    return codec("anthropic").request.decode(asked)


def items(*more: Any, **fields: Any) -> Conversation:
    return codec("openai_responses").request.decode(
        {"model": "m", "input": [{"role": "user", "content": "Hi"}, *more], **fields}
    )


TOKENS = {"type": "input_tokens", "value": 9}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, None),
        ({"context_management": {"edits": []}}, ContextRequest()),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, ContextRequest(CompactionRequest(150_000))),
        (
            {
                "context_management": {
                    "edits": [{"type": "compact_20260112", "trigger": TOKENS, "instructions": " Short. "}]
                }
            },
            ContextRequest(CompactionRequest(9, "Short.")),
        ),
        ({"compaction": {"type": "summarize"}}, ContextRequest(CompactionRequest(stops_after=True))),
        ({"compaction": {"type": "later"}}, ContextRequest(unknown=("compaction",))),
        (
            {"context_management": {"edits": [{"type": "later"}, 7]}},
            ContextRequest(unknown=("later", "an edit without a type")),
        ),
        (
            {
                "context_management": {
                    "edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 0}}]
                }
            },
            ContextRequest(edits=(ClearResults("clear_tool_uses_20250919", 100_000, keep=0),)),
        ),
        (
            {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
            ContextRequest(edits=(ClearThinking("clear_thinking_20251015", None),)),
        ),
        (
            {
                "context_management": {
                    "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}}]
                }
            },
            ContextRequest(edits=(ClearThinking("clear_thinking_20251015", 2),)),
        ),
    ],
)
def test_what_anthropics_requests_want(fields: dict[str, Any], wanted: ContextRequest | None) -> None:
    conversation = messages(**fields)
    assert form("anthropic").read(conversation) == wanted
    assert form("anthropic").without(conversation) == messages()


@pytest.mark.parametrize(
    ("conversation", "wanted"),
    [
        (items(), None),
        (items({"type": "compaction_trigger"}), ContextRequest(CompactionRequest(stops_after=True))),
        (
            items(context_management=[{"type": "compaction", "compact_threshold": 9}]),
            ContextRequest(CompactionRequest(9)),
        ),
        (items(context_management=[{"type": "later"}]), ContextRequest(unknown=("later",))),
    ],
)
def test_what_openais_requests_want(conversation: Conversation, wanted: ContextRequest | None) -> None:
    assert form("openai_responses").read(conversation) == wanted
    assert form("openai_responses").without(conversation) == items()


@pytest.mark.law
@given(
    json_values,
    json_values,
    st.sampled_from(["compact_20260112", "clear_tool_uses_20250919", "clear_thinking_20251015"]),
)
def test_law_whatever_the_fields_hold_they_are_read(one: Any, other: Any, kind: str) -> None:
    names = ("trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs", "instructions")
    edit = {"type": kind, **dict.fromkeys(names, one)}
    for value in (one, {"edits": one}, {"edits": [one]}, {"edits": [edit]}):
        form("anthropic").read(messages(context_management=value, compaction=other))
    for value in (one, [one], [{"type": "compaction", "compact_threshold": one}]):
        form("openai_responses").read(items(context_management=value))


REPLY = {
    "id": "c",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 4, "completion_tokens": 2},
}
STREAM = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n'
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\n'
    b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("client", ["anthropic", "openai_responses"])
def test_law_8_a_stream_begins_with_what_a_whole_reply_begins_with(client: str) -> None:
    asked: dict[str, Any] = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    if client == "openai_responses":
        asked = {"model": "m", "input": "Hi"}
    out = convert(asked, source=client, target="openai", model="m")
    block = Compaction("So far.", "toolglot.compaction.1", client, "cmp_1")
    applied = (AppliedEdit("clear_tool_uses_20250919", 2, 50),)
    out.head = ReplyHead(blocks=(block,), summarised=Usage(100, 10), applied=applied)
    whole = convert_reply(REPLY, source="openai", target=client, request=out).reply
    translator = StreamTranslator(source="openai", target=client, request=out)
    written = translator.feed(STREAM) + translator.finish()
    assert translator.reply.turn.blocks == whole.turn.blocks
    assert translator.reply.turn.blocks[0] == block
    assert translator.reply.usage == whole.usage
    assert (translator.reply.extra or {}).get(client) == (whole.extra or {}).get(client)
    assert (b"cleared_tool_uses" in written) == (client == "anthropic")
    counts = (whole.usage.input_tokens, whole.usage.output_tokens) if whole.usage is not None else ()
    assert counts == ((4, 2) if client == "anthropic" else (104, 12))
