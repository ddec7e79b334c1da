"""The JavaScript SDKs as clients of the gateway: their tools really run, on providers that they were not made for.

`javascript/run_tools.mjs` holds the SDKs; it is started once and called over its standard input. A loop is one call,
then two at once, then an answer that quotes what the tools returned.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from support.gateway.served_gateway import Served
from support.javascript_clients import FOLDER, why_not
from toolglot.simulator.serving import Server

CITIES: Final = ["Bonn", "Köln", "Oslo"]
CALLS: Final = [{"name": "get_weather", "arguments": {"city": city}} for city in CITIES]
SCRIPT: Final[dict[str, Any]] = {
    "chunk": 3,
    "rules": [
        {"when": {"results": 0}, "reply": {"text": "I look.", "calls": CALLS[:1]}},
        {"when": {"results": 1}, "reply": {"calls": CALLS[1:]}},
    ],
}
"""After the third result the default script answers: it quotes every result."""

SONNET: Final = "anthropic/claude-sonnet-4-5"
GPT: Final = "openai_chat/gpt-4.1"
GPT_5: Final = "openai_responses/gpt-5.5"
GEMINI: Final = "gemini/gemini-3-pro-preview"
MISTRAL: Final = "mistral/mistral-large-latest"
LOOPS: Final = {
    "ai/openai.chat": (SONNET, GEMINI, GPT_5, MISTRAL),
    "ai/openai.responses": (SONNET, GPT, MISTRAL),
    "ai/anthropic": (GPT, GEMINI, MISTRAL),
    "ai/google": (SONNET, GPT, MISTRAL),
    "anthropic/toolRunner": (SONNET, GPT, GEMINI, MISTRAL),
    "openai/ResponsesWS": (GPT_5, SONNET, GPT, GEMINI, MISTRAL),
}
Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Asks an SDK to run its loop."""
    missing, node = why_not(), shutil.which("node")
    assert missing is None, missing
    assert node is not None
    complaints = tmp_path_factory.mktemp("javascript") / "stderr.txt"
    # No variable of the environment, such as a base URL or a key, reaches the SDKs.
    with (
        complaints.open("wb") as stderr,
        subprocess.Popen(
            [node, "run_tools.mjs"], cwd=FOLDER, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(client: str, model: str, *, stream: bool) -> dict[str, Any]:
            question = {"client": client, "url": served.url, "model": model, "stream": stream}
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
            assert line, complaints.read_text("utf-8")
            got: dict[str, Any] = json.loads(line)
            return got

        yield ask


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("client", "model"), [(client, model) for client, models in LOOPS.items() for model in models])
def test_a_javascript_sdk_completes_a_tool_loop_on_any_upstream(
    simulated: Server, run: Run, client: str, model: str, stream: bool
) -> None:
    before = len(simulated.requests)
    got = run(client, model, stream=stream)
    assert got["error"] is None
    assert got["ran"] == CITIES
    lines = got["text"].splitlines()
    assert len(lines) == 3
    for line, city in zip(lines, CITIES, strict=True):
        assert f"7 degrees in {city}" in line
    # Threads are Anthropic's to refuse where it is the upstream.
    requests = [request for request in simulated.requests[before:] if request.rule != "threads"]
    assert [request.status for request in requests] == [200, 200, 200]


@pytest.mark.parametrize("model", [GPT, MISTRAL])
def test_anthropics_tool_runner_learns_that_there_are_no_threads_and_sends_the_whole_history(
    simulated: Server, served: Served, run: Run, model: str
) -> None:
    before, before_records = len(simulated.requests), len(served.records)
    assert run("anthropic/toolRunner", model, stream=False)["error"] is None
    refused = [one for one in served.records[before_records:] if one.response.status == 400]
    assert refused
    assert all("thread" in one.response.error for one in refused)
    bodies = [request.body for request in simulated.requests[before:]]
    assert [len(body["messages"]) for body in bodies] == sorted(len(body["messages"]) for body in bodies)
    assert "What is the weather?" in json.dumps(bodies[-1])
    assert "7 degrees in Bonn" in json.dumps(bodies[-1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", LOOPS)
def test_a_busy_provider_is_an_error_of_a_javascript_sdk(
    simulated: Server, run: Run, client: str, stream: bool
) -> None:
    simulated.fault("429,retry_after=7")
    got = run(client, LOOPS[client][-1], stream=stream)
    assert got["error"]["status"] == 429
    assert got["ran"] == []


@pytest.mark.parametrize("client", LOOPS)
def test_a_stream_that_breaks_off_is_an_error_of_a_javascript_sdk(simulated: Server, run: Run, client: str) -> None:
    simulated.fault("error_event,after=2")
    got = run(client, LOOPS[client][-1], stream=True)
    assert got["error"] is not None
    assert "verloaded" in got["error"]["message"]
    assert got["ran"] == []
