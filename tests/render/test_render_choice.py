"""The tool choice for a target that thinks."""

from __future__ import annotations

from toolglot import Conversation, Options, Reasoning, Text, ToolChoice, ToolSpec, Turn, lint, profiles, repair
from toolglot.protocols.base import codec
from toolglot.render import render


def test_a_choice_that_the_target_never_takes_is_not_taken_while_it_thinks_either() -> None:
    options = Options(reasoning=Reasoning("on"), tool_choice=ToolChoice("allowed", ("read",)))
    conversation = Conversation((Turn("user", (Text("hi"),)),), (ToolSpec("read"), ToolSpec("write")), options)
    mistral = profiles.get("mistral", "mistral-large-latest")
    made = render(conversation, mistral, source=profiles.get("mistral"))
    body = codec("openai_chat").request.encode(made.conversation, mistral)
    assert body["tool_choice"] == "auto"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read"]
    assert not lint(body, "mistral", model="mistral-large-latest")


def test_a_switch_for_parallel_calls_that_its_own_provider_does_not_have_is_reported_when_it_is_dropped() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "MiniMax-M2", "messages": messages, "tools": tools, "parallel_tool_calls": True}
    out = repair(body, target="minimax")
    assert "parallel_tool_calls" not in out.body
    assert [(entry.action, entry.gravity) for entry in out.report] == [("dropped", "housekeeping")]
