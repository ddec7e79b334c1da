"""The code that the inspector copies really runs, and sends the request again: curl, and the SDKs of both sides."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served
from toolglot.simulator.serving import Server

SCRIPT: Final[dict[str, Any]] = {"rules": [{"reply": {"text": "It is fine."}}]}
EVIL: Final = 'It\'s "quoted" $HOME `date` \\ \nEOF\n \u00e9 \U0001f600 </script>'
TEXT: Final = [{"role": "user", "content": EVIL}]
CONTENTS: Final = [{"role": "user", "parts": [{"text": EVIL}]}]
CHAT: Final = "/v1/chat/completions"
GOOGLE: Final = "/v1beta/models/gemini/gemini-2.5-pro"
REQUESTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "anthropic": ("/v1/messages", {"model": "anthropic/claude-sonnet-4-5", "max_tokens": 90_000, "messages": TEXT}),
    "anthropic stream": (
        "/v1/messages",
        {"model": "openai_responses/gpt-5.5", "max_tokens": 99, "messages": TEXT, "stream": True, "metadata": {}},
    ),
    "openai": (CHAT, {"model": "openai_chat/gpt-4.1", "messages": TEXT}),
    "openai for mistral": (CHAT, {"model": "mistral/mistral-large-latest", "messages": TEXT, "safe_prompt": True}),
    "openai for kimi": (CHAT, {"model": "kimi/kimi-k2.5", "messages": TEXT, "thinking": {"type": "disabled"}}),
    "openai for cohere": (CHAT, {"model": "cohere/command-a-03-2025", "messages": TEXT, "stream": True}),
    "openai for ollama": (CHAT, {"model": "ollama/qwen3", "messages": TEXT}),
    "responses": ("/v1/responses", {"model": "gemini/gemini-2.5-pro", "input": EVIL, "stream": True}),
    "gemini": (f"{GOOGLE}:generateContent", {"contents": CONTENTS, "generationConfig": {"temperature": 0.5}}),
    "gemini stream": (f"{GOOGLE}:streamGenerateContent?alt=sse", {"contents": CONTENTS}),
    "cohere": ("/v2/chat", {"model": "anthropic/claude-opus-4-5", "messages": TEXT}),
    "ollama": ("/api/chat", {"model": "mistral/mistral-large-latest", "messages": TEXT, "stream": False}),
    "bedrock": (
        "/model/bedrock%2Fanthropic.claude-opus-4-5-v1%3A0/converse",
        {"messages": [{"role": "user", "content": [{"text": EVIL}]}]},
    ),
}

ADDRESS: Final = re.compile(r"(base_url'?[=:] ?|host=|endpoint_url=)('[^']*')(\.format\([^)]*\))?")
"""The provider's address in the code."""


def copied(served: Served, name: str, form: str) -> str:
    """The code of a request that was just sent."""
    path, body = REQUESTS[name]
    got = ask(served, path, body, headers={"x-api-key": "any", "x-goog-api-key": "any"})
    assert got.status == 200, got.data
    code = ask(served, f"/inspector/api/requests/{got.headers['x-toolglot-request']}/code?as={form}", method="GET")
    assert code.status == 200, code.data
    text: str = json.loads(code.data)["text"]
    return text


def last_body(served: Served) -> Any:
    return json.loads(served.records[-1].request.body)


def printed(code: str, environ: Mapping[str, str]) -> str:
    """What a program prints."""
    program = (sys.executable, "-W", "ignore", "-c", code)
    found = subprocess.run(program, env={**os.environ, **environ}, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("name", REQUESTS)
def test_curl_sends_the_same_body(served: Served, name: str) -> None:
    code = copied(served, name, "curl")
    before = len(served.records)
    environ = {**os.environ, "TOOLGLOT_URL": served.url, "TOOLGLOT_KEY": "any"}
    found = subprocess.run(["sh", "-c", code], env=environ, capture_output=True, check=True)  # noqa: S607
    assert b"fine" in found.stdout
    assert len(served.records) > before
    assert last_body(served) == REQUESTS[name][1]


@pytest.mark.parametrize("name", REQUESTS)
def test_the_sdk_of_the_client_sends_the_same_body(served: Served, name: str) -> None:
    code = copied(served, name, "python_client")
    before = len(served.records)
    assert "fine" in printed(code, {"TOOLGLOT_URL": served.url, "TOOLGLOT_KEY": "any"})
    assert len(served.records) > before
    body, sent = REQUESTS[name][1], last_body(served)
    assert {field: sent.get(field) for field in body} == body  # the SDK of Ollama adds fields of its own


@pytest.mark.parametrize("name", REQUESTS)
def test_the_sdk_of_the_provider_sends_what_the_gateway_sent(served: Served, simulated: Server, name: str) -> None:
    code = copied(served, name, "python_provider")
    first = simulated.requests[-1]
    address = ADDRESS.search(code)
    assert address is not None, code
    assert "{" not in address[2] or address[3], address[0]  # the account's own parts are filled in
    # The simulated provider in its place, with a version where the provider's own address has one.
    here = simulated.url(first.provider).removesuffix("/v1") + ("/v1" if address[2].endswith("/v1'") else "")
    keys = dict.fromkeys(re.findall(r'os\.environ(?:\.get\(|\[)"(\w+)"', code), "simulated-key")
    assert keys
    assert "fine" in printed(ADDRESS.sub(lambda found: f"{found[1]}{here!r}", code), keys)
    again = simulated.requests[-1]
    assert (again.provider, again.model) == (first.provider, first.model)
    assert {field: again.body.get(field) for field in first.body} == first.body
