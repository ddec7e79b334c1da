"""A plain HTTP client for tests of the gateway: what was sent and what came, and nothing between."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from support.gateway.served_gateway import Served
from support.waiting import HANG_SECONDS

KEY = "a-client-key-of-some-length"


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[Any]:
        """The JSON of each event of a stream."""
        lines = [line[5:].strip() for line in self.data.decode().splitlines() if line.startswith("data:")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def ask(
    served: Served | str,
    path: str,
    body: Any = None,
    *,
    method: str = "",
    key: str | None = KEY,
    headers: Mapping[str, str] | None = None,
) -> Got:
    """One request over a connection of its own."""
    parts = urlsplit(served if isinstance(served, str) else served.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HANG_SECONDS)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    sent = {"authorization": f"Bearer {key}"} if key is not None else {}
    try:
        connection.request(method or ("GET" if data is None else "POST"), path, data, {**sent, **(headers or {})})
        with connection.getresponse() as answer:
            named = {name.lower(): value for name, value in answer.headers.items()}
            return Got(answer.status, named, answer.read())
    finally:
        connection.close()


TOOL_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def request_of(protocol: str, model: str, words: str = "What is in a.txt?", **more: Any) -> tuple[str, dict[str, Any]]:
    """A path, and a request with one tool in a client's protocol."""
    function = {"name": "read_file", "description": "Reads a file.", "parameters": TOOL_SCHEMA}
    chat = {"model": model, "messages": [{"role": "user", "content": words}]}
    if protocol == "anthropic":
        tool = {"name": "read_file", "description": "Reads a file.", "input_schema": TOOL_SCHEMA}
        return "/v1/messages", {**chat, "max_tokens": 500, "tools": [tool], **more}
    if protocol == "openai_responses":
        return "/v1/responses", {"model": model, "input": words, "tools": [{"type": "function", **function}], **more}
    if protocol == "gemini":
        stream = more.pop("stream", False)
        action = "streamGenerateContent?alt=sse" if stream else "generateContent"
        contents = [{"role": "user", "parts": [{"text": words}]}]
        body = {"contents": contents, "tools": [{"functionDeclarations": [function]}], **more}
        return f"/v1beta/models/{model}:{action}", body
    path = "/api/chat" if protocol == "ollama" else "/v1/chat/completions"
    if protocol == "ollama":
        more.setdefault("stream", False)
    return path, {**chat, "tools": [{"type": "function", "function": function}], **more}


PROTOCOLS = ("anthropic", "openai", "openai_responses", "gemini", "ollama")
"""The clients that the gateway serves."""
