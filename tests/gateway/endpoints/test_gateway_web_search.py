"""Web search of a provider for clients of another one, through the gateway, with the SDKs and the strict simulator.

Laws: a client that asks for its own provider's search gets the upstream's, with what was found and cited in its own
form; a search that was written for a client never goes back to a provider as its own; without a search there is a
refusal.
"""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types as gemini_types

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from toolglot import convert, convert_reply
from toolglot.simulator.scripts.plan import SimulatedPage
from toolglot.simulator.serving import Server, serve

PROMPT = "Search the web: what is the latest Ruby?"
PAGE = SimulatedPage(PROMPT)
UPSTREAMS = ("anthropic/claude-opus-5", "openai/gpt-5.5", "openai_responses/gpt-5.5", "gemini/gemini-3-pro")
WITHOUT = ("mistral/mistral-large-latest", "openai_chat/gpt-4.1", "deepseek/deepseek-chat")


def anthropic_body(model: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": PROMPT}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
        **fields,
    }


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_anthropic_client_searches_with_every_provider(served: Served, upstream: str, stream: bool) -> None:
    reply: Any
    with anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0) as client:
        body: Any = anthropic_body(upstream, tool_choice={"type": "tool", "name": "web_search"})
        if stream:
            with client.messages.stream(**body) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(**body)
    blocks = {block.type: block for block in reply.content}
    assert blocks["server_tool_use"].input == {"query": PROMPT}
    found = blocks["web_search_tool_result"]
    assert found.tool_use_id == blocks["server_tool_use"].id
    assert [page.url for page in found.content] == [PAGE.url]
    assert [citation.url for citation in blocks["text"].citations] == [PAGE.url]
    assert reply.stop_reason == "end_turn"


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_responses_client_searches_with_every_provider(served: Served, upstream: str, stream: bool) -> None:
    reply: Any
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client:
        requested: Any = {"model": upstream, "input": PROMPT, "tools": [{"type": "web_search"}]}
        if stream:
            with client.responses.stream(**requested) as events:
                for _ in events:
                    pass
                reply = events.get_final_response()
        else:
            reply = client.responses.create(**requested)
    items = {item.type: item for item in reply.output}
    assert items["web_search_call"].action.query == PROMPT
    (annotation,) = items["message"].content[0].annotations
    assert (annotation.url, annotation.start_index) == (PAGE.url, 0)
    assert annotation.end_index == len(reply.output_text)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_gemini_client_searches_with_every_provider(served: Served, upstream: str, stream: bool) -> None:
    settings = gemini_types.GenerateContentConfig(tools=[gemini_types.Tool(google_search=gemini_types.GoogleSearch())])
    candidate: Any
    with genai.Client(api_key="k", http_options=gemini_types.HttpOptions(base_url=served.url)) as client:
        if stream:
            chunks: list[Any] = list(
                client.models.generate_content_stream(model=upstream, contents=PROMPT, config=settings)
            )
            candidate = chunks[-1].candidates[0]
        else:
            reply: Any = client.models.generate_content(model=upstream, contents=PROMPT, config=settings)
            candidate = reply.candidates[0]
    grounding = candidate.grounding_metadata
    assert grounding.web_search_queries == [PROMPT]
    assert [chunk.web.uri for chunk in grounding.grounding_chunks] == [PAGE.url]
    (support,) = grounding.grounding_supports
    assert support.segment.text


@pytest.mark.parametrize("upstream", [name for name in UPSTREAMS if not name.startswith("openai/")])
def test_a_chat_client_of_another_provider_gets_annotations(served: Served, upstream: str) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client:
        reply = client.chat.completions.create(
            model=upstream, messages=[{"role": "user", "content": PROMPT}], web_search_options={}
        )
    annotations = reply.choices[0].message.annotations or []
    assert [annotation.url_citation.url for annotation in annotations] == [PAGE.url]


def test_xai_searches_in_its_responses_protocol() -> None:
    with serve() as simulated:
        lines = ["[upstreams.grok]", 'provider = "xai"', 'target = "openai_responses"', 'key_env = "SIMULATED_KEY"']
        upstream = "\n".join([*lines, f'url = "{simulated.url("xai")}"'])
        with gateway(simulated, upstreams=upstream) as served:
            body = anthropic_body("grok/grok-4")
            got = ask(served, "/v1/messages", body, headers={"anthropic-version": "2023-06-01"})
    assert got.status == 200, got.body
    kinds = [block["type"] for block in got.body["content"]]
    assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
    (request,) = simulated.requests
    assert (request.path, request.body["tools"]) == ("/xai/v1/responses", [{"type": "web_search"}])


@pytest.mark.parametrize("upstream", WITHOUT)
def test_a_provider_without_search_is_refused_by_name(served: Served, upstream: str) -> None:
    got = ask(served, "/v1/messages", anthropic_body(upstream), headers={"anthropic-version": "2023-06-01"})
    assert got.status == 400
    assert "web_search_20250305 is a tool that anthropic runs itself" in got.body["error"]["message"]


@pytest.mark.parametrize("first", UPSTREAMS)
@pytest.mark.parametrize("second", [*UPSTREAMS, *WITHOUT])
def test_a_search_in_the_history_goes_to_every_provider(
    simulated: Server, served: Served, first: str, second: str
) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    reply = ask(served, "/v1/messages", anthropic_body(first), headers=headers).body
    messages = [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": reply["content"]},
        {"role": "user", "content": "And before that?"},
    ]
    got = ask(served, "/v1/messages", {"model": second, "max_tokens": 4000, "messages": messages}, headers=headers)
    assert got.status == 200, got.body
    assert PAGE.url in str(simulated.requests[-1].body)


def test_settings_are_carried_or_reported(simulated: Server, served: Served) -> None:
    tool = {
        "type": "web_search_20250305",
        "name": "web_search",
        "allowed_domains": ["ruby-lang.org"],
        "max_uses": 3,
        "user_location": {"type": "approximate", "country": "CH"},
    }
    headers = {"anthropic-version": "2023-06-01"}
    ask(served, "/v1/messages", anthropic_body("openai/gpt-5.5", tools=[tool]), headers=headers)
    sent = simulated.requests[-1].body
    assert sent["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["ruby-lang.org"]},
            "user_location": {"type": "approximate", "country": "CH"},
        }
    ]
    assert "web_search_call.action.sources" in sent["include"]
    reasons = " ".join(entry.reason for entry in served.records[-1].sent.entries)
    assert "has no setting for max_uses" in reasons
    ask(served, "/v1/messages", anthropic_body("gemini/gemini-3-pro", tools=[tool]), headers=headers)
    assert simulated.requests[-1].body["tools"] == [{"googleSearch": {}}]
    reasons = " ".join(entry.reason for entry in served.records[-1].sent.entries)
    assert "has no setting for allowed_domains, max_uses, location" in reasons


def test_beside_functions_gemini_does_not_search(simulated: Server, served: Served) -> None:
    function = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    body = anthropic_body("gemini/gemini-3-pro")
    body["tools"].append(function)
    got = ask(served, "/v1/messages", body, headers={"anthropic-version": "2023-06-01"})
    assert got.status == 200
    assert "googleSearch" not in str(simulated.requests[-1].body)
    assert "web_search_20250305" in got.headers["x-toolglot-report"]


def test_what_a_search_cites_is_bounded() -> None:
    text = "word " * 20_000
    support = {"segment": {"startIndex": 0, "endIndex": len(text)}, "groundingChunkIndices": [0] * 5_000}
    grounding = {"groundingChunks": [{"web": {"uri": "https://a", "title": "a"}}], "groundingSupports": [support]}
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP", "groundingMetadata": grounding}
    out = convert(anthropic_body("m"), source="anthropic", target="gemini", model="gemini-2.5-pro")
    got = convert_reply({"candidates": [candidate]}, source="gemini", target="anthropic", request=out)
    assert len(got.data) < 10 * len(text)


@pytest.mark.parametrize("upstream", ["openai_responses/gpt-5.5", "gemini/gemini-2.5-flash"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_anthropic_client_gets_the_number_of_searches(served: Served, upstream: str, stream: bool) -> None:
    with anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0) as client:
        request: Any = anthropic_body(upstream)
        if stream:
            with client.messages.stream(**request) as events:
                usage = events.get_final_message().usage
        else:
            usage = client.messages.create(**request).usage
    assert usage.server_tool_use is not None
    assert (usage.server_tool_use.web_search_requests, usage.server_tool_use.web_fetch_requests) == (1, 0)
