"""Servers that others wrote: what is found out of them, and that they take what is rendered for the found profile.

A real llama.cpp server on three protocols, the LiteLLM proxy, and @copilotkit/aimock. The last two are used where they
are installed: `make bench` makes the environment of the one, `npm install` in tests/javascript that of the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import gateway_servers
import peers
from llama.server import LlamaServer
from support.simulator.discoveries import HARD, TOOLS, no_sleep
from toolglot import convert, profiles
from toolglot.discovery import Budget, Discovery, DiscoveryResult, Endpoint, departures, overrides_of
from toolglot.protocols.base import codec
from toolglot.simulator import serve
from toolglot.upstream import HttpTransport, Upstream

KEY: Final = "sk-any-0123456789"
AIMOCK: Final = Path(__file__).parents[1] / "javascript" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"


def found_out(url: str, **options: Any) -> DiscoveryResult:
    async def run() -> DiscoveryResult:
        transport = HttpTransport(proxy="")
        try:
            endpoint = Endpoint(url=url, transport=transport, key=KEY)
            arguments = {"name": "box", "sleep": no_sleep, "budget": Budget(timeout=30, tokens=500_000), **options}
            return await Discovery(endpoint, **arguments).run()
        finally:
            await transport.close()

    return asyncio.run(run())


def check_accepted(result: DiscoveryResult, url: str = "") -> None:
    """What is rendered with the found profile, the endpoint answers."""

    async def ask(messages: list[dict[str, Any]]) -> tuple[int, bytes]:
        body = {"model": result.provider.model, "messages": messages, "tools": TOOLS, "max_tokens": 64, "seed": 1}
        out = convert(json.dumps(body), source="openai", target="box", overrides=overrides_of(result))
        transport = HttpTransport(proxy="")
        try:
            upstream = Upstream(
                name="box",
                target="box",
                url=url or result.sdk.base_url,
                transport=transport,
                auth=result.sdk.auth,  # type: ignore[arg-type]
                key=KEY,
            )
            answer = await upstream.call(out)
            try:
                return answer.status, await answer.whole(1_000_000)
            finally:
                await answer.close()
        finally:
            await transport.close()

    for messages in HARD:
        status, data = asyncio.run(ask(messages))
        assert status == 200, data
        assert codec(result.sdk.protocol).reply.decode(json.loads(data)).turn.role == "assistant"


# --- llama.cpp --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
def test_a_llama_cpp_server_is_found_out_on_three_protocols(llama_server: LlamaServer, protocol: str) -> None:
    result = found_out(llama_server.url, protocol=protocol)
    assert result.complete, result.stopped
    assert result.provider.server == "llama.cpp"
    assert result.provider.models == ("toolglot-tiny",)
    assert (result.tooling.native, result.tooling.format) == (True, "json")
    assert result.sdk.streaming
    assert result.entries["request.unknown_fields"] == "ignored"
    assert result.entries["turns.media"] == ()
    forced = set(result.entries["choice.modes"])
    assert forced >= {"auto", "required"}
    assert "named" not in forced  # it is accepted, and another tool is called
    assert [probed for probed in result.probes if probed.outcome == "unclear"] == []
    check_accepted(result)
    if protocol == "openai_chat":
        assert {one.key for one in departures(result, profiles.get("llamacpp"))}.isdisjoint({"choice.modes"})


def test_all_three_protocols_of_a_llama_cpp_server_are_found(llama_server: LlamaServer) -> None:
    result = found_out(f"{llama_server.url}/v1/chat/completions", only=["endpoint"])
    assert result.provider.protocols == ("openai_chat", "anthropic", "openai_responses")
    assert result.sdk.base_url == f"{llama_server.url}/v1"


# --- LiteLLM ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def litellm(folder: Path) -> Iterator[str]:
    """The proxy in front of a simulated OpenAI."""
    stamp = peers.ENVIRONMENTS / "litellm-proxy" / ".installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(gateway_servers.PACKAGES["litellm-proxy"]):
        pytest.skip("the environment of the LiteLLM proxy is not there: make bench makes it")
    if not peers.wanted():
        pytest.skip("the LiteLLM proxy takes half a minute to start, and BENCH_PEERS=0 says without")
    with serve() as server:
        proxy = gateway_servers.litellm(int(server.url("openai").split(":")[2].partition("/")[0]), folder)
        try:
            yield f"http://127.0.0.1:{proxy.port}"
        finally:
            proxy.stop()
            for pipe in filter(None, (proxy.process.stdin, proxy.process.stdout)):
                pipe.close()


def test_a_litellm_proxy_is_found_to_be_what_is_behind_it_but_for_what_it_does_itself(tmp_path: Path) -> None:
    with litellm(tmp_path) as url:
        result = found_out(url)
        assert result.complete, result.stopped
        assert set(result.provider.protocols) >= {"openai_chat", "anthropic", "openai_responses"}
        differences = {one.key for one in departures(result, profiles.get("openai", "gpt-4.1"))}
        assert differences <= {
            "choice.modes",  # allowed tools are not known
            "choice.needs_tools",  # a choice without tools is left out
            "reasoning.efforts",  # refused for a model that it does not know to think
            "results.media",  # pictures of results are moved
            "turns.developer_role",  # written as system
        }
        assert "choice.modes" in differences
        check_accepted(result)


# --- aimock -----------------------------------------------------------------------------------------

FIXTURES: Final = {
    "fixtures": [
        {"match": {"hasToolResult": True}, "response": {"content": "7 degrees."}},
        {
            "match": {"userMessage": "Bonn and in Rome"},
            "response": {
                "toolCalls": [{"name": "get_weather", "arguments": f'{{"city":"{city}"}}'} for city in ("Bonn", "Rome")]
            },
        },
        {
            "match": {"userMessage": "weather in Bonn"},
            "response": {"toolCalls": [{"name": "get_weather", "arguments": '{"city":"Bonn"}'}]},
        },
        {"match": {}, "response": {"content": "Hello."}},
    ]
}


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = shutil.which("node")
    if node is None or not AIMOCK.exists():
        pytest.skip("@copilotkit/aimock is not installed: npm install in tests/javascript")
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps(FIXTURES))
    words = [node, str(AIMOCK), "-p", "0", "-f", str(folder / "fixtures.json")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        lines = (line for line in process.stdout if "listening on " in line)
        yield next(lines).partition("listening on ")[2].strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("protocol", ["auto", "anthropic", "gemini", "ollama"])
def test_aimock_is_found_out(aimock: str, protocol: str) -> None:
    result = found_out(aimock, protocol=protocol)
    assert result.complete, result.stopped
    assert (result.tooling.native, result.tooling.parallel, result.sdk.streaming) == (True, True, True)
    assert set(result.entries["choice.modes"]) == {"auto"} if protocol != "ollama" else True  # nothing is obeyed
    if protocol == "auto":
        assert len(result.provider.protocols) == 7
    check_accepted(result)
