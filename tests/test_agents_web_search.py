"""The web searches of coding agents, which let their provider search, on providers that search in other ways or not.

Law: the agent's own tool gets what the search found, and the model gets it from the agent. Where the provider has no
search, an MCP server of the user's searches.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.coding_agents import AgentRun, run_claude, run_codex, run_gemini
from support.gateway.served_gateway import gateway
from toolglot.simulator import Server, serve
from toolglot.simulator.scripts.plan import SimulatedPage

pytestmark = pytest.mark.agents

QUERY: Final = "latest stable Ruby"
DONE: Final = "It is on that page."
PROMPT: Final = "What is the latest Ruby?"
MODELS: Final = {"anthropic": "claude-opus-5", "openai": "gpt-5.5", "gemini": "gemini-3-pro"}
WITHOUT: Final = {
    "openai_chat": "gpt-4.1",
    "mistral": "mistral-large-latest",
    "deepseek": "deepseek-chat",
    "kimi": "kimi-k2.5",
    "bedrock": "anthropic.claude-opus-5-v1:0",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
}
"""Providers without a search of their own, by upstream."""
WEB: Final = Path(__file__).parent / "mcp_servers" / "web.py"
SEARCH_IN_CODEX: Final = ("-c", 'web_search="live"')
SEARCHED_BY_US: Final = f'[web_search]\nmcp = {{ command = "{sys.executable}", args = ["{WEB}"] }}\n'
FOUND: Final = "https://ruby-lang.org/news"
"""What that server finds."""


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def to_upstream(upstream: str) -> dict[str, str]:
    return dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), f"{upstream}/{WITHOUT[upstream]}")


def check_accepted(simulated: Server, run: AgentRun) -> None:
    assert (run.text, run.exit) == (DONE, 0), run.output()
    refused = [(request.path, request.error) for request in simulated.requests if request.status != 200]
    assert refused == [], run.output()


def ask_claude(address: str, work: Path) -> AgentRun:
    settings = {"ANTHROPIC_BASE_URL": address, "ENABLE_TOOL_SEARCH": "false"}
    return run_claude("", PROMPT, work, extra=("--allowedTools", "WebSearch"), cloud=settings)


@pytest.mark.parametrize("upstream", MODELS)
def test_claude_code_searches_the_web_with_the_search_of_another_provider(
    upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=using("WebSearch"))
    with gateway(simulated, models={"*": f"{upstream}/{MODELS[upstream]}"}) as served:
        run = ask_claude(served.url, work)
    check_accepted(simulated, run)
    assert SimulatedPage(QUERY).url.rpartition("/")[0] in str(simulated.requests[-1].body), run.output()


def using(tool: str) -> list[dict[str, Any]]:
    """The model uses the agent's tool, and is done when it has the result."""
    call = {"name": tool, "arguments": {"query": QUERY}}
    return [
        {"when": {"tool": tool, "results": 0}, "reply": {"calls": [call]}},
        {"when": {"tool": tool, "results": 1}, "reply": {"text": DONE}},
    ]


@pytest.mark.parametrize("upstream", MODELS)
def test_gemini_cli_searches_the_web_with_the_search_of_another_provider(
    upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=using("google_web_search"))
    with gateway(simulated, models={"gemini-*": f"{upstream}/{MODELS[upstream]}"}) as served:
        run = run_gemini(served.url, PROMPT, work)
    check_accepted(simulated, run)
    assert SimulatedPage(QUERY).url.rpartition("/")[0] in str(simulated.requests[-1].body), run.output()


@pytest.mark.parametrize(("upstream", "search"), [("anthropic", "web_search_20250305"), ("openai", "web_search")])
def test_codex_offers_the_search_of_the_provider(upstream: str, search: str, simulated: Server, work: Path) -> None:
    simulated.script(rules=[{"reply": {"text": DONE}}])
    with gateway(simulated, models={"gpt-*": f"{upstream}/{MODELS[upstream]}"}) as served:
        run = run_codex(f"{served.url}/v1", PROMPT, work, extra=SEARCH_IN_CODEX)
    check_accepted(simulated, run)
    (request,) = simulated.requests
    assert search in [tool["type"] for tool in request.body["tools"] if "type" in tool], run.output()


def test_codex_has_no_search_on_gemini_beside_its_other_tools(simulated: Server, work: Path) -> None:
    """Gemini searches in a request of its own only. With an MCP server of the user's it does."""
    simulated.script(rules=searching_first(DONE))
    models = {"gpt-*": "gemini/gemini-3-pro"}
    with gateway(simulated, models=models, upstreams=SEARCHED_BY_US) as served:
        run = run_codex(f"{served.url}/v1", PROMPT, work, extra=SEARCH_IN_CODEX)
    check_accepted(simulated, run)
    assert simulated.unused() == [], run.output()
    simulated.simulator.reset()
    simulated.script(rules=[{"reply": {"text": DONE}}])
    with gateway(simulated, models=models) as served:
        run = run_codex(f"{served.url}/v1", PROMPT, work, extra=SEARCH_IN_CODEX)
        reasons = [entry.reason for entry in served.records[-1].sent.entries]
    check_accepted(simulated, run)
    assert any("web_search" in reason for reason in reasons), reasons


def searching_first(answer: str) -> list[dict[str, Any]]:
    """The model searches with the function that it gets for that, and answers with what was found."""
    search = {"name": "web_search", "arguments": {"query": QUERY}}
    return [
        {"when": {"tool": "web_search", "results": 0}, "reply": {"calls": [search]}},
        {"when": {"tool": "web_search", "results": 1}, "reply": {"text": answer}},
    ]


@pytest.mark.parametrize("upstream", WITHOUT)
def test_claude_code_searches_the_web_with_an_mcp_server_of_the_users(
    upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=[*searching_first(f"Ruby 4.0 is out: {FOUND}"), *using("WebSearch")])
    with gateway(simulated, models=to_upstream(upstream), upstreams=SEARCHED_BY_US) as served:
        run = ask_claude(served.url, work)
    check_accepted(simulated, run)
    assert simulated.unused() == [], run.output()
    assert FOUND in str(simulated.requests[-1].body), run.output()


@pytest.mark.parametrize("upstream", WITHOUT)
def test_codex_searches_the_web_with_an_mcp_server_of_the_users(upstream: str, simulated: Server, work: Path) -> None:
    simulated.script(rules=searching_first(DONE))
    with gateway(simulated, models=to_upstream(upstream), upstreams=SEARCHED_BY_US) as served:
        run = run_codex(f"{served.url}/v1", PROMPT, work, extra=SEARCH_IN_CODEX)
    check_accepted(simulated, run)
    assert FOUND in str(simulated.requests[-1].body), run.output()


@pytest.mark.parametrize("upstream", WITHOUT)
def test_gemini_cli_searches_the_web_with_an_mcp_server_of_the_users(
    upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=[*searching_first(f"Ruby 4.0 is out: {FOUND}"), *using("google_web_search")])
    with gateway(simulated, models=to_upstream(upstream), upstreams=SEARCHED_BY_US) as served:
        run = run_gemini(served.url, PROMPT, work)
    check_accepted(simulated, run)
    assert simulated.unused() == [], run.output()
    assert FOUND in str(simulated.requests[-1].body), run.output()
