"""The tool choice for a target that thinks."""

from __future__ import annotations

from toolglot import Conversation, Options, Reasoning, Text, ToolChoice, ToolSpec, Turn, lint, profiles
from toolglot.render import render
from toolglot.wire.codecs import codec


def test_a_choice_that_the_target_never_takes_is_not_taken_while_it_thinks_either() -> None:
    options = Options(reasoning=Reasoning("on"), tool_choice=ToolChoice("allowed", ("read",)))
    asked = Conversation((Turn("user", (Text("hi"),)),), (ToolSpec("read"), ToolSpec("write")), options)
    mistral = profiles.get("mistral", "mistral-large-latest")
    made = render(asked, mistral, source=profiles.get("mistral"))
    body = codec("openai_chat").request.encode(made.conversation, mistral)
    assert body["tool_choice"] == "auto"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read"]
    assert not lint(body, "mistral", model="mistral-large-latest")
