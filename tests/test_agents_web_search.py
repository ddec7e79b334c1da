"""Claude Code's WebSearch, which lets its provider search, on providers that search in other ways.

Law: the agent's own tool gets what the provider's search found, and the model gets it from the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.coding_agents import run_claude
from support.gateway.served_gateway import gateway
from toolglot.simulator import Server, serve
from toolglot.simulator.scripts.plan import SimulatedPage

pytestmark = pytest.mark.agents

QUERY: Final = "latest stable Ruby"
DONE: Final = "It is on that page."
MODELS: Final = {"anthropic": "claude-opus-5", "openai": "gpt-5.5", "gemini": "gemini-3-pro"}


@pytest.fixture
def simulated() -> Iterator[Server]:
    call = {"name": "WebSearch", "arguments": {"query": QUERY}}
    rules = [
        {"when": {"tool": "WebSearch", "results": 0}, "reply": {"calls": [call]}},
        {"when": {"tool": "WebSearch", "results": 1}, "reply": {"text": DONE}},
    ]
    with serve({"rules": rules}) as server:
        yield server


@pytest.mark.parametrize("upstream", MODELS)
def test_claude_code_searches_the_web_with_the_search_of_another_provider(
    upstream: str, simulated: Server, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with gateway(simulated, models={"*": f"{upstream}/{MODELS[upstream]}"}) as served:
        settings = {"ANTHROPIC_BASE_URL": served.url, "ENABLE_TOOL_SEARCH": "false"}
        allowed = ("--allowedTools", "WebSearch")
        run = run_claude("", "What is the latest Ruby?", work, extra=allowed, cloud=settings)
    assert (run.text, run.exit) == (DONE, 0), run.output()
    refused = [(request.path, request.error) for request in simulated.requests if request.status != 200]
    assert refused == [], run.output()
    last = simulated.requests[-1].body
    assert SimulatedPage(QUERY).url.rpartition("/")[0] in str(last), run.output()
