"""Models without a tool API: tools, calls and results are written into the prompt, and calls are read from the text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.dialects.text_replies import (
    CALL,
    CLIENTS,
    NEVER,
    protocol_of,
    read_stream,
    reply,
    reply_body,
    stream_bytes,
    summary,
)
from support.simulator.good_requests import BODIES, FUNCTION
from toolglot import (
    Conversation,
    ConvertedRequest,
    InputError,
    StreamTranslator,
    Text,
    ToolSpec,
    Turn,
    convert,
    convert_reply,
    profiles,
    request_for,
)
from toolglot.protocols.base import codec

# --- tools by prompt --------------------------------------------------------------------------------

BOX = profiles.Overrides(
    """
    [profiles.box]
    title = "A model without a tool API"
    extends = "vllm"
    [profiles.box.rules]
    "tools.by_prompt" = "hermes"
    """
)
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Bonn?"},
    {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function", "function": {}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
    {"role": "user", "content": "And in Ulm?"},
]
HISTORY[2]["tool_calls"][0]["function"] = {"name": "get_weather", "arguments": '{"city": "Bonn"}'}


def convert_by_prompt(**changed: Any) -> ConvertedRequest:
    body = {"model": "m", "messages": HISTORY, "tools": [FUNCTION], **changed}
    return convert(body, source="openai", target="box", overrides=BOX)


def test_with_tools_by_prompt_tools_calls_and_results_are_written_as_text() -> None:
    out = convert_by_prompt(tool_choice="required")
    assert not {"tools", "tool_choice"} & out.body.keys()
    messages = out.body["messages"]
    assert {message["role"] for message in messages} == {"system", "user", "assistant"}
    assert not [message for message in messages if "tool_calls" in message]
    assert messages[0]["content"].startswith("Be brief.")
    assert '"name":"get_weather"' in messages[0]["content"]
    assert '<tool_call>\n{"name":"get_weather","arguments":{"city":"Bonn"}}' in messages[2]["content"]
    assert "Rain." in json.dumps(messages[3]["content"])
    reasons = str(out.report)
    assert "in the dialect hermes" in reasons
    assert "tool choice 'required' is not possible" in reasons
    again = request_for(
        Conversation((Turn("user", (Text("Hi"),)),), (ToolSpec("get_weather"),)), target="box", overrides=BOX
    )
    assert "tools" not in again.body
    assert "get_weather" in again.body["messages"][0]["content"]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_reply_to_tools_by_prompt_has_real_calls(client: str) -> None:
    request = convert(BODIES[client], source=client, target="box", model="m", overrides=BOX)
    answer = reply(f"I look.{CALL}")
    back = convert_reply(
        reply_body(answer, "vllm"), source="box", target=client, request=request, policy=NEVER, overrides=BOX
    )
    translator = StreamTranslator(source="box", target=client, request=request, policy=NEVER, overrides=BOX)
    received = read_stream(translator.feed(stream_bytes(answer, "vllm")) + translator.finish(), client)[1]
    assert summary(received) == summary(codec(protocol_of(client)).reply.decode(back.body))
    assert [(call.name, call.arguments) for call in received.turn.calls] == [("get_weather", {"city": "Bonn"})]
    assert received.stop == "tool_calls"


def test_a_free_text_tool_by_prompt_comes_back_as_free_text() -> None:
    tools = [{"type": "custom", "name": "apply_patch", "description": "Patches."}]
    body = {**BODIES["openai_responses"], "tools": tools}
    request = convert(body, source="openai_responses", target="box", model="m", overrides=BOX)
    text = '<tool_call>{"name": "apply_patch", "arguments": {"input": "+ a"}}</tool_call>'
    back = convert_reply(
        reply_body(reply(text), "vllm"), source="box", target="openai_responses", request=request, overrides=BOX
    )
    (call,) = back.reply.turn.calls
    assert (call.name, call.type, call.raw_input) == ("apply_patch", "custom", "+ a")


def test_without_tools_the_prompt_stays_as_it_is() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    assert convert(body, source="box", target="box", overrides=BOX).data == body
    unknown = profiles.Overrides('[profiles.vllm.rules]\n"tools.by_prompt" = "elvish"\n')
    with pytest.raises(InputError, match="elvish"):
        convert({**json.loads(body), "tools": [FUNCTION]}, source="vllm", target="vllm", overrides=unknown)
