"""Web search by an MCP server of the user's, through the gateway, for upstreams that have no search of their own.

Laws: a client of every protocol gets the search in its own form; a search that fails never breaks a reply; the model
sees calls and results as ordinary ones, also in the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import anthropic
import openai
import pytest

from support.counted_work import no_hang, steps_of
from support.gateway.gateway_process import posted, process, read_all, read_until
from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway, upstream_lines
from toolglot.conversation import ToolSpec
from toolglot.conversation.web_search import FoundPage, WebSearch
from toolglot.gateway.routing.search_filter import filtered_result
from toolglot.gateway.routing.search_tool import MAX_READ, SearchSettings, SearchTool, argument_of
from toolglot.simulator import Server, serve

WEB = str(Path(__file__).parents[2] / "mcp_servers" / "web.py")
STDIO = f'mcp = {{ command = "{sys.executable}", args = ["{WEB}"] }}'
URL = "https://ruby-lang.org/news"
ANSWER = f"Ruby 4.0, see {URL} for more."
UPSTREAMS = ("mistral/mistral-large-latest", "deepseek/deepseek-chat", "cohere/command-a-03-2025", "ollama/qwen3")
HEADERS = {"anthropic-version": "2023-06-01"}
LOOKUP = {"name": "lookup", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}}


def script(*calls: dict[str, Any], then: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "rules": [
            {"when": {"results": 0}, "reply": {"calls": [*calls]}},
            {"when": {}, "reply": then or {"text": ANSWER}},
        ]
    }


def searching(query: str = "latest Ruby") -> dict[str, Any]:
    return {"name": "web_search", "arguments": {"query": query}}


@contextlib.contextmanager
def searched(plan: dict[str, Any], settings: str = STDIO) -> Iterator[tuple[Server, Served]]:
    with serve(plan) as simulated, gateway(simulated, upstreams=f"[web_search]\n{settings}\n") as served:
        yield simulated, served


def body(model: str, **fields: Any) -> dict[str, Any]:
    tool = {"type": "web_search_20250305", "name": "web_search", **fields.pop("tool", {})}
    asked = [{"role": "user", "content": "What is the latest Ruby?"}]
    tools = [tool, *fields.pop("tools", [])]
    return {"model": model, "max_tokens": 4000, "messages": asked, "tools": tools, **fields}


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_anthropic_client_gets_blocks_of_a_search(upstream: str, stream: bool) -> None:
    reply: Any
    with searched(script(searching())) as (simulated, served):
        with anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0) as client:
            request: Any = body(upstream)
            if stream:
                with client.messages.stream(**request) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**request)
        kinds = [block.type for block in reply.content]
        assert kinds[-3:] == ["server_tool_use", "web_search_tool_result", "text"]  # some models write a text before
        call, found, text = reply.content[-3:]
        assert call.input == {"query": "latest Ruby"}
        assert (found.tool_use_id, found.content[0].url) == (call.id, URL)
        assert [citation.url for citation in text.citations] == [URL]
        assert (text.text, reply.stop_reason) == (ANSWER, "end_turn")
        assert [request.status for request in simulated.requests] == [200, 200]
        assert "Ruby 4.0: latest Ruby" in str(simulated.requests[-1].body)
        history = [
            *body(upstream)["messages"],
            {"role": "assistant", "content": [block.model_dump(mode="json") for block in reply.content]},
            {"role": "user", "content": "And before that?"},
        ]
        got = ask(served, "/v1/messages", body(upstream, messages=history), headers=HEADERS)
        assert got.status == 200, got.body
        sent = simulated.requests[-1].body["messages"]
        before = simulated.requests[1].body["messages"]
        assert [message["role"] for message in sent[: len(before)]] == [message["role"] for message in before]
        assert "Ruby 4.0: latest Ruby" in str(sent)


def test_the_tokens_of_all_calls_are_counted() -> None:
    with searched(script(searching())) as (_, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        with serve({"rules": [{"when": {}, "reply": {"text": ANSWER}}]}) as plain, gateway(plain) as alone:
            once = ask(alone, "/v1/messages", {**body(UPSTREAMS[0]), "tools": [LOOKUP]}, headers=HEADERS)
        assert got.body["usage"]["input_tokens"] > once.body["usage"]["input_tokens"]
        record = served.records[-1]
        assert "run by the MCP server" in " ".join(entry.reason for entry in record.reply.entries)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_responses_client_gets_the_item_of_a_search(upstream: str, stream: bool) -> None:
    reply: Any
    with (
        searched(script(searching())) as (_, served),
        openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client,
    ):
        request: Any = {"model": upstream, "input": "What is the latest Ruby?", "tools": [{"type": "web_search"}]}
        if stream:
            with client.responses.stream(**request) as events:
                for _event in events:
                    pass
                reply = events.get_final_response()
        else:
            reply = client.responses.create(**request)
        again = client.responses.create(
            model=upstream, previous_response_id=reply.id, input="And before?", tools=[{"type": "web_search"}]
        )
    items = {item.type: item for item in reply.output}
    assert items["web_search_call"].action.query == "latest Ruby"
    assert reply.output_text.endswith(ANSWER)
    (annotation,) = items["message"].content[0].annotations
    assert ANSWER[annotation.start_index : annotation.end_index] == annotation.url == URL
    assert again.output_text.endswith(ANSWER)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_gets_annotations(upstream: str, stream: bool) -> None:
    with (
        searched(script(searching())) as (simulated, served),
        openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client,
    ):
        request: Any = {"model": upstream, "messages": [{"role": "user", "content": "Ruby?"}], "web_search_options": {}}
        if stream:
            chunks = list(client.chat.completions.create(**request, stream=True))
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert URL in str([chunk.model_extra or chunk for chunk in chunks])
            assert text.endswith(ANSWER)
        else:
            reply = client.chat.completions.create(**request)
            assert [each.url_citation.url for each in reply.choices[0].message.annotations or []] == [URL]
            assert reply.choices[0].finish_reason == "stop"
        assert "web_search_options" not in str([request.body for request in simulated.requests])


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("action", ["generateContent", "streamGenerateContent?alt=sse"])
def test_a_gemini_client_gets_grounding(upstream: str, action: str) -> None:
    with searched(script(searching())) as (_, served):
        request = {"contents": [{"role": "user", "parts": [{"text": "Ruby?"}]}], "tools": [{"googleSearch": {}}]}
        got = ask(served, f"/v1beta/models/{upstream}:{action}", request)
        assert got.status == 200, got.body
        text = got.data.decode()
        assert "groundingMetadata" in text
        assert "latest Ruby" in text
        assert "functionCall" not in text


def test_a_search_beside_a_call_of_the_client_is_done_and_the_client_continues() -> None:
    calls = [searching(), {"name": "lookup", "arguments": {"x": "1"}}]
    with searched(script(*calls)) as (simulated, served):
        request = body(UPSTREAMS[0], tools=[LOOKUP])
        got = ask(served, "/v1/messages", request, headers=HEADERS)
        kinds = sorted(block["type"] for block in got.body["content"])
        assert kinds == ["server_tool_use", "tool_use", "web_search_tool_result"]
        assert got.body["stop_reason"] == "tool_use"
        assert len(simulated.requests) == 1
        (call,) = [block for block in got.body["content"] if block["type"] == "tool_use"]
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": "one"}
        messages = [
            *request["messages"],
            {"role": "assistant", "content": got.body["content"]},
            {"role": "user", "content": [answer]},
        ]
        last = ask(served, "/v1/messages", {**request, "messages": messages}, headers=HEADERS)
        assert last.status == 200, last.body
        roles = [message["role"] for message in simulated.requests[-1].body["messages"]]
        assert roles == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("query", "settings"), [("fail", STDIO), ("hang", f"{STDIO}\ntimeout = 5"), ("x", 'mcp = { command = "/no/such" }')]
)
def test_a_search_that_fails_is_an_error_of_the_search(query: str, settings: str) -> None:
    with searched(script(searching(query)), settings) as (_, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert got.status == 200, got.body
        error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        assert got.body["content"][1]["content"] == error
        assert got.body["content"][2]["text"] == ANSWER
        failed = [entry for entry in served.records[-1].reply.entries if "of them failed" in entry.reason]
        assert [("unavailable; `toolglot doctor` says" in entry.reason) for entry in failed] == [True]


def test_limits_and_domains_of_the_client_hold() -> None:
    with searched(script(searching("a"), searching("b"))) as (simulated, served):
        tool = {"max_uses": 1, "blocked_domains": ["spam.example"]}
        got = ask(served, "/v1/messages", body(UPSTREAMS[0], tool=tool), headers=HEADERS)
        results = [block["content"] for block in got.body["content"] if block["type"] == "web_search_tool_result"]
        assert [page["url"] for page in results[0]] == [URL]
        assert results[1]["error_code"] == "max_uses_exceeded"
        assert "spam" not in str(simulated.requests[-1].body)


def test_a_model_that_only_searches_comes_to_an_end() -> None:
    plan = {"rules": [{"when": {}, "reply": {"calls": [searching()]}}]}
    with searched(plan, f"{STDIO}\nmax_uses = 2") as (simulated, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert got.status == 200
        assert got.body["stop_reason"] == "end_turn"
        assert len(simulated.requests) <= 5


def test_a_page_is_fetched_over_streamable_http() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        process = subprocess.Popen([sys.executable, WEB, str(listening.fileno())], pass_fds=[listening.fileno()])
    try:
        call = {"name": "web_fetch", "arguments": {"url": URL}}
        with searched(script(call), f'mcp = {{ url = "{address}" }}') as (_, served):
            request = {**body(UPSTREAMS[0]), "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}
            got = ask(served, "/v1/messages", request, headers=HEADERS)
            found = got.body["content"][1]
            assert found["type"] == "web_fetch_tool_result"
            assert "about Ruby 4.0" in found["content"]["content"]["source"]["data"]
    finally:
        process.kill()
        process.wait()


# --- hostile models, servers and clients ------------------------------------------------------------


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_stream_counts_the_same_tokens_and_searches_as_a_whole_reply(upstream: str) -> None:
    with (
        searched(script(searching())) as (_, served),
        anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0) as client,
    ):
        request: Any = body(upstream)
        whole = client.messages.create(**request).usage
        with client.messages.stream(**request) as events:
            streamed = events.get_final_message().usage
        assert streamed.output_tokens == whole.output_tokens
        for usage in (whole, streamed):
            assert usage.server_tool_use is not None
            assert usage.server_tool_use.web_search_requests == 1
        counted = [record.reply.usage or {} for record in served.records]
        assert [usage["output_tokens"] for usage in counted] == [whole.output_tokens] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_the_total_of_the_tokens_is_that_of_all_calls(stream: bool) -> None:
    with searched(script(searching())) as (_, served):
        request = {"model": UPSTREAMS[0], "messages": [{"role": "user", "content": "Ruby?"}], "web_search_options": {}}
        with openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client:
            create: Any = client.chat.completions.create
            if stream:
                chunks = list(create(**request, stream=True, stream_options={"include_usage": True}))
                (usage,) = [chunk.usage for chunk in chunks if chunk.usage]
            else:
                usage = create(**request).usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_a_model_that_searches_too_often_at_once_still_answers_with_what_was_found() -> None:
    calls = [searching(str(number)) for number in range(5)]
    with searched(script(*calls), f"{STDIO}\nmax_uses = 2") as (simulated, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert got.body["content"][-1]["text"] == ANSWER
        found = [block["content"] for block in got.body["content"] if block["type"] == "web_search_tool_result"]
        assert [type(content) for content in found] == [list, list, dict, dict, dict]
        assert simulated.requests[-1].body["tool_choice"] == "none"


def test_a_model_that_searches_for_nothing_comes_to_an_end() -> None:
    plan = {"rules": [{"when": {}, "reply": {"calls": [searching("")]}}]}
    with searched(plan, f"{STDIO}\nmax_uses = 2") as (simulated, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert got.status == 200
        assert len(simulated.requests) <= 4


def test_a_server_that_crashes_is_started_again_for_the_next_search() -> None:
    with searched(script(searching("crash"))) as (simulated, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert got.body["content"][1]["content"]["error_code"] == "unavailable"
        simulated.script(script(searching()))
        again = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        assert again.body["content"][1]["content"][0]["url"] == URL


def test_what_a_server_finds_is_a_link_to_the_web_and_plain_text() -> None:
    with searched(script(searching("hostile"))) as (_, served):
        got = ask(served, "/v1/messages", body(UPSTREAMS[0]), headers=HEADERS)
        found = got.body["content"][1]["content"]
        assert [page["url"] for page in found] == [URL]
        assert len(found[0]["title"]) <= 500


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://[::1]/",
        "http://localhost:8000/",
        "http://169.254.169.254/latest",
        "http://0x7f000001/",
        "http://127.1/",
        "http://１２７.０.０.１/",
        "http://ｌｏｃａｌｈｏｓｔ/",
        "http://router/",
        "http://nas.local/",
        "http://metadata.google.internal/",
        "http://a.localhost./",
        "https://evil.example\\\\@ruby-lang.org/",
        "https://ruby-lang.org/ and more",
        "file:///etc/passwd",
    ],
)
def test_a_page_that_is_not_on_the_web_is_not_fetched(url: str) -> None:
    with searched(script({"name": "web_fetch", "arguments": {"url": url}})) as (_, served):
        tool = {"type": "web_fetch_20250910", "name": "web_fetch"}
        got = ask(served, "/v1/messages", {**body(UPSTREAMS[0]), "tools": [tool]}, headers=HEADERS)
        error = {"type": "web_fetch_tool_result_error", "error_code": "url_not_allowed"}
        assert got.body["content"][1]["content"] == error


def test_blocked_domains_hold_however_they_are_written() -> None:
    blocked = WebSearch(blocked_domains=("spam.example",))
    for url in ("HTTPS://SPAM.example/x", "https://spam.example./x", "https://a@spam.example", "http://b.spam.example"):
        assert filtered_result(f"Good.\n\nSee {url} now", blocked) == ("Good.", ())
    pages = {"results": [{"url": URL}], "more": [{"url": "https://spam.example"}]}
    text, found = filtered_result(json.dumps(pages), blocked)
    assert "spam" not in text
    assert [page.url for page in found] == [URL]


SPAM: Final = "https://spam.example/x"
GOOD_PAGE: Final = {"url": URL, "title": "Ruby"}
SPAM_PAGE: Final = {"url": SPAM, "title": "Spam"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"web": {"results": [SPAM_PAGE]}}),
        json.dumps({"results": [{"title": "Spam", "link": SPAM}]}),
        json.dumps({"results": [{"title": "Spam", **GOOD_PAGE, "link": SPAM}]}),
        json.dumps([[[{"source": SPAM_PAGE}]]]),
        json.dumps({SPAM: "spam"}),
        json.dumps({"results": [SPAM_PAGE]}).replace("/", "\\/"),
        json.dumps({"results": [SPAM_PAGE]}).replace("/", "\\/")[:-3],
        json.dumps({"results": [SPAM_PAGE]}).replace("/", "\\u002f")[:-3],
        "spam.example/x is spam",
        "Spam: (www.spam.example)",
        "https&#58;//spam.example/x",
        "https://sp%61m.example/x",
        "https://ｓｐａｍ.example/x",
        "https://spam。example/x",
        "https://good.example@spam.example/x",
        "https://good.example:443\\@spam.example/x",
        f"Spam {SPAM}\n\nand what is on spam\n\nand more spam",
    ],
)
def test_an_excluded_page_is_left_out_however_it_is_written(text: str) -> None:
    found, pages = filtered_result(text, WebSearch(blocked_domains=("spam.example",)))
    assert "spam" not in found.lower().replace("ｓｐａｍ", "spam").replace("sp%61m", "spam")
    assert pages == ()


def test_what_is_allowed_of_a_result_stays() -> None:
    blocked = WebSearch(blocked_domains=("spam.example", "blog.example/ads"))
    value = {"answer": "Ruby.", "web": {"results": [GOOD_PAGE, SPAM_PAGE, {"url": "https://blog.example/ads/1"}]}}
    text, pages = filtered_result(json.dumps(value), blocked)
    assert json.loads(text) == {"answer": "Ruby.", "web": {"results": [GOOD_PAGE]}}
    assert pages == (FoundPage(URL, "Ruby"),)
    words = f"Spam {SPAM}\n\nabout it\n\nRuby {URL}\n\nabout Ruby and https://blog.example/posts"
    text, pages = filtered_result(words, blocked)
    assert text == f"Ruby {URL}\n\nabout Ruby and https://blog.example/posts"
    assert [page.url for page in pages] == [URL, "https://blog.example/posts"]
    allowed = WebSearch(allowed_domains=("ruby-lang.org",))
    assert filtered_result(words, allowed) == (f"Ruby {URL}", (FoundPage(URL),))
    assert filtered_result(words, WebSearch())[0] == words


def test_pages_of_json_are_found_wherever_they_are() -> None:
    value = {"web": {"results": [GOOD_PAGE, GOOD_PAGE]}, "news": [{"href": "https://news.example/"}, {"url": "x"}]}
    text, pages = filtered_result(json.dumps(value), WebSearch())
    assert text == json.dumps(value)
    assert pages == (FoundPage(URL, "Ruby"), FoundPage("https://news.example/"))


@pytest.mark.parametrize(
    "piece", ["a.", "https://", "https://a.example ", "\n", "\n ", "[", "&#", "%61", "\\/", '{"url":[']
)
def test_the_work_of_a_filter_is_linear(piece: str) -> None:
    search = WebSearch(blocked_domains=tuple(f"{number}.example" for number in range(1_000)))
    small, large = (steps_of(lambda n=n: filtered_result(piece * n, search)) for n in (2_000, 8_000))  # type: ignore[misc]
    assert large <= 4.5 * small + 1_000
    with no_hang():
        filtered_result(piece * (MAX_READ // len(piece)), search)


@pytest.mark.parametrize("required", [7, "query", [["query"]], {"a": 1}, None])
def test_a_tool_with_an_odd_schema_is_called(required: Any) -> None:
    spec = ToolSpec("find", parameters={"type": "object", "properties": {"words": {}}, "required": required})
    assert argument_of(spec, "search") == "words"


async def test_a_client_that_leaves_while_the_server_starts_does_not_close_it_for_others() -> None:
    settings = SearchSettings(mcp={"command": sys.executable, "args": [WEB]})
    tool = SearchTool(settings, {})
    leaving = asyncio.create_task(tool.run("search", "1", "a", WebSearch()))
    staying = asyncio.create_task(tool.run("search", "2", "b", WebSearch()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    run = await staying
    assert (run.error, run.pages[0].url) == ("", URL)
    await tool.close()
    assert (await tool.run("search", "3", "c", WebSearch())).error == "unavailable"


@pytest.mark.parametrize(("path", "end"), [("/v1/messages", b"event: error"), ("/v1/responses", b"response.failed")])
def test_a_search_that_outlasts_the_gateway_ends_the_stream_as_an_error(path: str, end: bytes, tmp_path: Path) -> None:
    request = body(UPSTREAMS[0], stream=True)
    if path.endswith("responses"):
        request = {"model": UPSTREAMS[0], "stream": True, "input": "Ruby?", "tools": [{"type": "web_search"}]}
    with serve(script(searching("hang"))) as simulated:
        lines = ["drain_seconds = 0", *upstream_lines(simulated), "[web_search]", STDIO]
        with process(tmp_path, simulated, config_lines=lines) as served:
            sock = served.connect()
            sock.sendall(posted(path, request))
            seen = read_until(sock, b"event: ")
            served.signal(signal.SIGTERM)
            data = read_all(sock, seen)
            assert end in data
            assert b"the gateway is stopping" in data
            assert data.endswith(b"\r\n0\r\n\r\n")
            assert served.ended() == 0
        (event,) = served.events("request")
        assert "the gateway is stopping" in event["error"]


def test_requests_at_once_share_one_server() -> None:
    with searched(script(searching("process"))) as (simulated, served), ThreadPoolExecutor(8) as threads:
        request = body(UPSTREAMS[0])
        replies = list(threads.map(lambda _: ask(served, "/v1/messages", request, headers=HEADERS), range(8)))
        assert [reply.status for reply in replies] == [200] * 8
        found = [re.findall(r"This is process (\d+)", str(request.body)) for request in simulated.requests]
    processes = [number for numbers in found for number in numbers]
    assert len(processes) == 8
    assert len(set(processes)) == 1


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_result_is_bounded_and_only_data(upstream: str) -> None:
    with searched(script(searching("long")), f"{STDIO}\nmax_result_bytes = 1000") as (simulated, served):
        got = ask(served, "/v1/messages", body(upstream), headers=HEADERS)
        assert got.status == 200, got.body
        assert got.body["content"][-1]["text"] == ANSWER
        sent = json.dumps(simulated.requests[-1].body, ensure_ascii=False)
        (result,) = re.findall(r"\[31m</tool_result>\u202ex+", sent)
        assert 900 < len(result) <= 1_000
        assert "\\u0000" not in sent
