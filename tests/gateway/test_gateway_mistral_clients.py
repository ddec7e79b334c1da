"""Clients of OpenAI on Mistral, and clients of Mistral on Mistral and elsewhere, through the gateway.

The simulated Mistral refuses what the real one refuses: every field that it does not have.
"""

from __future__ import annotations

from typing import Any, Final

import httpx
import pytest

from sdk import simulated as sdk
from support.gateway.served_gateway import Served
from toolglot.simulator.serving import Server

THOUGHT: Final = "The user greets me."
SCRIPT: Final[dict[str, Any]] = {
    "chunk": 3,
    "rules": [
        {
            "when": {"contains": "weather", "results": 0},
            "reply": {
                "thinking": THOUGHT,
                "text": "Hello.",
                "calls": [{"name": "look", "arguments": {"city": "Bonn"}}],
            },
        },
        {"when": {"contains": "hello"}, "reply": {"thinking": THOUGHT, "text": "Hello."}},
    ],
}
PDF: Final = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}
TOOL: Final[Any] = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
THINKERS: Final = ["mistral/magistral-medium-latest", "deepseek/deepseek-reasoner"]


def test_mistral_refuses_what_it_does_not_have(simulated: Server) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "store": False}
    headers = {"authorization": "Bearer k"}
    response = httpx.post(f"{simulated.url('mistral')}/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 422
    assert response.json()["detail"][0] == {
        "type": "extra_forbidden",
        "loc": ["body", "store"],
        "msg": "Extra inputs are not permitted",
    }


@pytest.mark.parametrize("empty", [{"refusal": None}, {"refusal": None, "annotations": [], "audio": None}])
def test_a_message_of_mistral_comes_back_with_the_empty_fields_of_openai(served: Served, empty: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "mistral/magistral-medium-latest", "tools": [TOOL]}
    user = {"role": "user", "content": "What is the weather?"}
    first = httpx.post(f"{served.url}/v1/chat/completions", json={**body, "messages": [user]}).json()
    message = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Sun."}
    messages = [user, {**message, **empty}, result]
    again = httpx.post(f"{served.url}/v1/chat/completions", json={**body, "messages": messages})
    assert again.status_code == 200, again.text


def test_what_a_client_of_openai_sends_is_accepted_by_mistral(simulated: Server, served: Served) -> None:
    content: Any = [{"type": "text", "text": "hello"}, {"type": "file", "file": PDF}]
    with sdk.openai_client(f"{served.url}/v1") as client:
        stream = client.chat.completions.create(
            model="mistral/magistral-medium-latest",
            messages=[{"role": "user", "content": content, "name": "ann"}],
            stream=True,
            stream_options={"include_usage": True},
            seed=7,
            max_completion_tokens=100,
            store=False,
            prompt_cache_key="k",
            user="u",
            parallel_tool_calls=True,
            tools=[TOOL],
        )
        chunks = list(stream)
    assert simulated.requests[-1].status == 200
    sent = simulated.requests[-1].body
    assert isinstance(sent, dict)
    assert (sent["random_seed"], sent["max_tokens"], sent["prompt_cache_key"]) == (7, 100, "k")
    assert sent["messages"][0]["content"][1]["type"] == "document_url"
    assert not {"stream_options", "store", "user", "seed"} & sent.keys()
    assert chunks[-1].usage is not None
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Hello."
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == THOUGHT


@pytest.mark.parametrize("model", THINKERS)
def test_a_client_of_openai_reads_strings_and_continues(simulated: Server, served: Served, model: str) -> None:
    with sdk.openai_client(f"{served.url}/v1") as client:
        messages: list[Any] = [{"role": "user", "content": "the weather"}]
        message = client.chat.completions.create(model=model, messages=messages, tools=[TOOL]).choices[0].message
        assert (message.content, getattr(message, "reasoning_content", None)) == ("Hello.", THOUGHT)
        assert message.tool_calls is not None
        assert [call.type for call in message.tool_calls] == ["function"]
        messages += [message.model_dump(exclude_none=True)]
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "7"} for call in message.tool_calls]
        client.chat.completions.create(model=model, messages=messages, tools=[TOOL])
    assert simulated.requests[-1].status == 200, simulated.requests[-1].error


@pytest.mark.parametrize("model", THINKERS)
def test_a_client_of_mistral_reads_chunks_of_thinking(simulated: Server, served: Served, model: str) -> None:
    with sdk.mistral_client(served.url) as client:
        messages: Any = [{"role": "user", "content": "hello"}]
        message = client.chat.complete(model=model, messages=messages, random_seed=7).choices[0].message
        assert message is not None
        assert isinstance(message.content, list)
        found = [chunk.model_dump() for chunk in message.content]
        assert [chunk["type"] for chunk in found] == ["thinking", "text"]
        assert found[0]["thinking"][0]["text"] == THOUGHT
        pieces: list[Any] = []
        for event in client.chat.stream(model=model, messages=messages):
            content = event.data.choices[0].delta.content
            pieces += content if isinstance(content, list) else [content or ""]
        thoughts = [part.text for piece in pieces if hasattr(piece, "thinking") for part in piece.thinking]
        texts = [piece if isinstance(piece, str) else piece.text for piece in pieces if not hasattr(piece, "thinking")]
    assert ("".join(thoughts), "".join(text for text in texts if isinstance(text, str))) == (THOUGHT, "Hello.")
    assert simulated.requests[-1].status == 200
