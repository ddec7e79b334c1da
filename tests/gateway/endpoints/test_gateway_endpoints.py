"""Every door of the gateway, stream and whole, to upstreams of every kind; errors in the client's own shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import Served, gateway
from toolglot.simulator.serving import Server

CALL = {"name": "read_file", "arguments": {"path": "a.txt"}}
SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"contains": "twice", "results": 0}, "reply": {"text": "I look.", "calls": [CALL, CALL]}},
        {"when": {"results": 0}, "reply": {"text": "I look.", "calls": [CALL]}},
        {"reply": {"text": "It says hello."}},
    ]
}
UPSTREAMS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai_chat/gpt-4.1",
    "openai_responses": "openai_responses/gpt-4.1",
    "gemini": "gemini/gemini-2.5-pro",
    "mistral": "mistral/mistral-large-latest",
    "deepseek": "deepseek/deepseek-chat",
    "kimi": "kimi/kimi-k2-0905-preview",
    "ollama": "ollama/qwen3",
    "cohere": "cohere/command-a-03-2025",
    "bedrock": "bedrock/anthropic.claude-sonnet-4-5-v1:0",
}


def calls_in(protocol: str, body: Any) -> list[tuple[str, Any]]:
    """The calls of a whole answer: their names and arguments."""
    if protocol == "anthropic":
        return [(block["name"], block["input"]) for block in body["content"] if block["type"] == "tool_use"]
    if protocol == "openai_responses":
        items = [item for item in body["output"] if item["type"] == "function_call"]
        return [(item["name"], json.loads(item["arguments"])) for item in items]
    if protocol == "gemini":
        parts = body["candidates"][0]["content"]["parts"]
        return [(p["functionCall"]["name"], p["functionCall"]["args"]) for p in parts if "functionCall" in p]
    message = body["message"] if protocol == "ollama" else body["choices"][0]["message"]
    functions = [call["function"] for call in message["tool_calls"]]
    return [(f["name"], f["arguments"] if protocol == "ollama" else json.loads(f["arguments"])) for f in functions]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_arrives_whole_from_every_upstream(served: Served, protocol: str, upstream: str) -> None:
    path, body = request_of(protocol, UPSTREAMS[upstream], "What is in a.txt? Look twice.")
    got = ask(served, path, body)
    assert got.status == 200, got.data
    assert calls_in(protocol, got.body) == [("read_file", {"path": "a.txt"})] * 2
    assert got.headers["x-toolglot-upstream"] == UPSTREAMS[upstream]
    assert got.headers["x-toolglot-report"]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_arrives_in_a_stream_from_every_upstream(served: Served, protocol: str, upstream: str) -> None:
    path, body = request_of(protocol, UPSTREAMS[upstream], stream=True)
    got = ask(served, path, body)
    assert got.status == 200, got.data
    text = got.data.decode()
    ends = {"anthropic": "message_stop", "openai": "[DONE]", "openai_responses": "response.completed"}
    assert ends.get(protocol, "") in text
    assert "read_file" in text
    if protocol == "gemini":
        assert got.events[-1]["candidates"][0]["finishReason"] == "STOP"
    if protocol == "ollama":
        assert json.loads(text.splitlines()[-1])["done"] is True


def test_every_request_of_these_was_accepted_by_its_provider(simulated: Server, served: Served) -> None:
    path, body = request_of("anthropic", UPSTREAMS["mistral"])
    ask(served, path, body)
    refused = [request for request in simulated.requests if request.status != 200]
    assert refused == []


# --- forms of streams -------------------------------------------------------------------------------


def test_a_gemini_stream_without_sse_is_one_json_array(served: Served) -> None:
    path, body = request_of("gemini", UPSTREAMS["openai"], stream=True)
    got = ask(served, path.replace("?alt=sse", ""), body)
    assert got.headers["content-type"] == "application/json"
    assert got.body[-1]["candidates"][0]["finishReason"] == "STOP"
    assert len(got.body) > 1


def test_ollama_streams_by_default(served: Served) -> None:
    path, body = request_of("ollama", UPSTREAMS["anthropic"])
    del body["stream"]
    got = ask(served, path, body)
    assert [json.loads(line)["done"] for line in got.data.splitlines()][-1] is True
    assert len(got.data.splitlines()) > 1


def test_addresses_without_v1_work_too(served: Served) -> None:
    path, body = request_of("openai", UPSTREAMS["anthropic"])
    assert ask(served, path.removeprefix("/v1"), body).status == 200


# --- errors -----------------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[Any], Any]] = {
    "anthropic": lambda body: body["error"]["message"] if body["type"] == "error" else None,
    "openai": lambda body: body["error"]["message"],
    "openai_responses": lambda body: body["error"]["message"],
    "gemini": lambda body: body["error"]["message"] if body["error"]["status"] else None,
    "ollama": lambda body: body["error"],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_busy_provider_is_reported_in_the_clients_shape_with_the_time_to_wait(
    simulated: Server, served: Served, protocol: str
) -> None:
    path, body = request_of(protocol, UPSTREAMS["mistral"])
    simulated.fault("429,retry_after=7")
    got = ask(served, path, body)
    assert got.status == 429
    assert got.headers["retry-after"] == "7"
    assert SHAPES[protocol](got.body)
    assert got.headers["x-toolglot-request"].startswith("tg_")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unknown_model_is_reported_in_the_clients_shape(served: Served, protocol: str) -> None:
    path, body = request_of(protocol, "nobody-knows-it")
    got = ask(served, path, body)
    assert got.status == 404
    assert "nobody-knows-it" in SHAPES[protocol](got.body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff\xfe", b'{"model": 7}', b"null", b""])
def test_a_body_that_is_none_is_refused_in_the_clients_shape(served: Served, protocol: str, data: bytes) -> None:
    path, _ = request_of(protocol, UPSTREAMS["openai"])
    got = ask(served, path, data, method="POST")
    assert got.status in (400, 404)  # without a name there is no model
    assert SHAPES[protocol](got.body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_that_breaks_ends_with_an_error_in_the_clients_protocol(
    simulated: Server, served: Served, protocol: str
) -> None:
    path, body = request_of(protocol, UPSTREAMS["openai"], stream=True)
    simulated.fault("reset,after=2")
    got = ask(served, path, body)
    assert got.status == 200
    text = got.data.decode()
    assert "error" in text.rsplit("data:", 1)[-1] or "error" in text.splitlines()[-1]
    assert "message_stop" not in text
    assert "response.completed" not in text


def test_a_provider_that_cannot_be_reached_is_reported_without_its_address_or_key() -> None:
    upstreams = '[upstreams.gone]\nurl = "http://127.0.0.1:9"\nkey_env = "SECRET"\ntarget = "openai"\n'
    with gateway(None, upstreams=upstreams, environ={"SECRET": "sk-very-secret-0123456789"}) as served:
        path, body = request_of("anthropic", "gone/gpt-4.1")
        got = ask(served, path, body)
    assert got.status in (502, 503, 529)
    assert "refused" in got.body["error"]["message"]
    assert b"very-secret" not in got.data


@pytest.mark.parametrize("path", ["/v1/moderations", "/v1/nothing", "/nothing", "/v1/threads"])
def test_an_unknown_path_is_a_404_in_the_clients_shape(served: Served, path: str) -> None:
    got = ask(served, path, {"model": "x"}, headers={"anthropic-version": "2023-06-01"})
    assert got.status == 404
    assert got.body["type"] == "error"


def test_a_wrong_method_is_reported(served: Served) -> None:
    got = ask(served, "/v1/messages", method="GET")
    assert got.status == 405
    assert "POST" in got.body["error"]["message"]


def test_anthropics_threads_are_refused_so_that_its_sdk_sends_the_whole_history(served: Served) -> None:
    path, body = request_of("anthropic", UPSTREAMS["openai"], thread={"id": "t_1"})
    got = ask(served, path, body)
    assert got.status == 400
    assert got.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_a_server_tool_of_another_provider_is_refused_clearly(served: Served) -> None:
    path, body = request_of("anthropic", UPSTREAMS["openai"])
    search = {"type": "web_search_20250305", "name": "web_search"}
    refused = ask(served, path, {**body, "tools": [search], "tool_choice": {"type": "tool", "name": "web_search"}})
    assert refused.status == 400
    assert "web_search" in refused.body["error"]["message"]
    spared = ask(served, path, {**body, "tools": [*body["tools"], search]})
    assert spared.status == 200
    assert "1 loss, 1 housekeeping: dropped at $.tools" in spared.headers["x-toolglot-report"]


# --- the state of the gateway -----------------------------------------------------------------------


def test_health_readiness_and_the_root_need_no_key() -> None:
    settings = 'client_keys = ["env:CLIENT"]'
    with gateway(None, settings=settings, environ={"CLIENT": "k" * 20}) as served:
        assert ask(served, "/health", key=None).body == {"status": "ok"}
        assert ask(served, "/ready", key=None).body == {"status": "ready"}
        head = ask(served, "/", method="HEAD", key=None)
        assert (head.status, head.data) == (200, b"")
        assert ask(served, "/v1/models", key=None).status == 401


def test_tool_requests_of_models_that_take_tools_over_responses_only_go_there(
    simulated: Server, served: Served
) -> None:
    path, body = request_of("openai", "openai/gpt-5.5")
    got = ask(served, path, body)
    assert got.status == 200, got.data
    assert simulated.requests[-1].path.endswith("/responses")
    assert calls_in("openai", got.body) == [("read_file", {"path": "a.txt"})]
    del body["tools"]
    assert ask(served, path, body).status == 200
    assert simulated.requests[-1].path.endswith("/chat/completions")


def test_a_request_that_goes_home_unchanged_arrives_as_the_bytes_that_came(simulated: Server, served: Served) -> None:
    path, body = request_of("anthropic", "claude-sonnet-4-5", metadata={"user_id": "u"})
    got = ask(served, path, json.dumps(body, indent=3).encode(), headers={"anthropic-beta": "a-beta-2026-01-01"})
    assert got.status == 200
    assert got.headers["x-toolglot-report"] == "unchanged"
    sent = simulated.requests[-1]
    assert sent.body == body
    assert sent.headers["anthropic-beta"] == "a-beta-2026-01-01"
    assert int(sent.headers["content-length"]) == len(json.dumps(body, indent=3))


def test_a_change_of_the_effort_in_the_middle_reaches_anthropic_with_its_beta(
    simulated: Server, served: Served
) -> None:
    """Anthropic refuses the field without the header."""
    beta = "mid-conversation-output-config-2026-07-01"
    path, body = request_of("anthropic", "claude-opus-5")
    body["messages"].append({"role": "system", "content": [], "output_config": {"effort": "high"}})
    got = ask(served, path, json.dumps(body).encode(), headers={"anthropic-beta": beta})
    assert got.status == 200, got.data
    sent = simulated.requests[-1]
    assert (sent.body, sent.headers["anthropic-beta"]) == (body, beta)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", request_of("anthropic", "")[1]),
        ("/v1/responses/input_tokens", request_of("openai_responses", "")[1]),
        ("/v1beta/models/{model}:countTokens", request_of("gemini", "")[1]),
    ],
)
@pytest.mark.parametrize("upstream", ["anthropic", "openai_responses", "gemini", "mistral"])
def test_tokens_are_counted_by_the_upstream_or_estimated_and_marked(
    served: Served, path: str, body: dict[str, Any], upstream: str
) -> None:
    model = UPSTREAMS[upstream]
    request = {**body, "model": model} if "contents" not in body else body
    got = ask(served, path.replace("{model}", model), request)
    assert got.status == 200, got.data
    count = next(value for key, value in got.body.items() if key in ("input_tokens", "totalTokens"))
    assert 20 < count < 200
    assert (got.headers.get("x-toolglot-estimate") == "true") == (upstream == "mistral")


# --- without any provider ---------------------------------------------------------------------------


def test_a_simulated_model_says_so_and_calls_only_what_was_spoken_of() -> None:
    weather = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    bash = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
    with gateway(None) as served:
        path, body = request_of("anthropic", "simulated/anthropic/claude-sonnet-4-5", "Run something, please.")
        idle = ask(served, path, {**body, "tools": [bash, weather]})
        assert idle.body["stop_reason"] == "end_turn"
        assert "simulated" in idle.body["content"][0]["text"]
        assert idle.headers["x-toolglot-upstream"].endswith("(simulated)")
        body["messages"][0]["content"] = "What is the weather like?"
        pending = ask(served, path, {**body, "tools": [bash, weather]})
        assert pending.body["content"][-1]["name"] == "get_weather"
        forced = ask(served, path, {**body, "tools": [bash], "tool_choice": {"type": "any"}})
        assert forced.body["content"][-1]["name"] == "Bash"


def test_a_model_may_stand_in_a_gemini_address_without_the_word_models(served: Served) -> None:
    path, body = request_of("gemini", UPSTREAMS["mistral"])
    assert ask(served, path.replace("/models/", "/"), body).status == 200


# --- paths as clients write them --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("anthropic", "/v1/v1/messages"),
        ("anthropic", "/v1/messages/"),
        ("openai", "/v1/v1/chat/completions/"),
        ("openai_responses", "/v1/v1/responses"),
        ("gemini", "/v1beta/v1beta/models/gemini-2.5-pro:generateContent"),
        ("gemini", "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent"),
        ("gemini", "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent"),
    ],
)
def test_a_path_with_a_repeated_version_a_last_slash_or_of_vertex_is_understood(
    simulated: Server, served: Served, source: str, written: str
) -> None:
    _, body = request_of(source, "gemini-2.5-pro")
    got = ask(served, written, body)
    assert got.status == 200, got.data
    assert simulated.requests[-1].model == "gemini-2.5-pro"


def test_what_an_agent_reports_of_itself_is_neither_forwarded_nor_refused(simulated: Server, served: Served) -> None:
    before = len(simulated.requests)
    got = ask(served, "/api/event_logging/v2/batch", {"events": []})
    assert (got.status, got.data) == (204, b"")
    assert "content-length" not in got.headers
    assert len(simulated.requests) == before


def test_gemini_counts_a_request_in_its_envelope(served: Served) -> None:
    _, body = request_of("gemini", "gemini-2.5-pro")
    path = "/v1beta/models/gemini-2.5-pro:countTokens"
    inner = {"generateContentRequest": {"model": "models/gemini-2.5-pro", **body}}
    whole, enveloped = ask(served, path, body), ask(served, path, inner)
    assert whole.status == enveloped.status == 200, enveloped.data
    assert enveloped.body["totalTokens"] == whole.body["totalTokens"] > 0


@pytest.mark.parametrize("first", ["model", "Model", "MODEL", "mod\\u0065l"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_a_body_with_two_models_is_refused(served: Served, path: str, first: str) -> None:
    rest = '"model": "gpt-4.1", "input": "x", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'
    got = ask(served, path, f'{{"{first}": "gpt-5.5", {rest}'.encode())
    assert got.status == 400
    assert "`model` more than once" in got.body["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_a_long_body_with_two_models_is_refused_however_its_quotes_are_written(served: Served, path: str) -> None:
    said = '"' + "x" * 3_000 + r'\u0022\u0022"'  # in all as many quotes as the first model has
    turns = f'[{{"role": "user", "content": {said}}}]'
    body = f'{{"model": "gpt-5.5", "model": "gpt-4.1", "input": {said}, "max_tokens": 9, "messages": {turns}}}'
    for _ in range(2):
        got = ask(served, path, body.encode())
        assert got.status == 400
        assert "`model` more than once" in got.body["error"]["message"]


def test_a_tool_with_a_parameter_named_model_is_no_second_model(served: Served) -> None:
    nested = {"type": "object", "properties": {"model": {"type": "string"}, "Model": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "car", "parameters": nested}}]
    body = {"model": "openai_chat/gpt-4.1", "messages": [{"role": "user", "content": "x"}], "tools": tools}
    assert ask(served, "/v1/chat/completions", body).status == 200
