"""Requests to an ASGI app in this process, and what it sent, message by message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolglot.simulator import Simulator

KEYS: dict[str, dict[str, str]] = {
    "anthropic": {"x-api-key": "key", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "key"},
}
PATHS = {
    "anthropic": "/anthropic/v1/messages",
    "openai": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "gemini": "/gemini/v1beta/models/{model}:generateContent",
    "gemini_stream": "/gemini/v1beta/models/{model}:streamGenerateContent?alt=sse",
    "mistral": "/mistral/v1/chat/completions",
    "deepseek": "/deepseek/chat/completions",
    "kimi": "/kimi/v1/chat/completions",
    "bedrock": "/bedrock/model/{model}/converse",
    "bedrock_stream": "/bedrock/model/{model}/converse-stream",
    "cohere": "/cohere/v2/chat",
    "ollama": "/ollama/api/chat",
}


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    pieces: list[bytes]
    is_broken: bool

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def chunks(self) -> list[Any]:
        """The JSON of server-sent events."""
        lines = self.data.decode().splitlines()
        datas = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
        return [json.loads(data) for data in datas if data != "[DONE]"]


async def _call(app: Simulator, scope: dict[str, Any], incoming: list[dict[str, Any]], *, leaves: bool) -> Answered:
    sent: list[Any] = []
    waits = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop(0)
        if not leaves:
            await waits.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    is_broken = False
    try:
        await app(scope, receive, send)
    except ConnectionResetError:
        is_broken = True
    if not sent:
        return Answered(0, {}, [], is_broken)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    pieces = [message["body"] for message in sent[1:] if message["body"]]
    return Answered(sent[0]["status"], headers, pieces, is_broken)


def request(
    app: Simulator,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    leaves: bool = False,
) -> Answered:
    """One request; a body that is not bytes is written as JSON. `leaves`: the client goes away at once."""
    parts = urlsplit(path)
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    halves = (data[: len(data) // 2], data[len(data) // 2 :])
    incoming = [
        {"type": "http.request", "body": half, "more_body": more}
        for half, more in zip(halves, (True, False), strict=True)
    ]
    scope = {
        "type": "http",
        "method": method,
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    return asyncio.run(_call(app, scope, incoming, leaves=leaves))


def ask(app: Simulator, provider: str, body: Any, *, model: str = "", order: str = "", **headers: str) -> Answered:
    """A request as the SDK of a provider sends it, at the path of its chat."""
    family = provider.removesuffix("_stream")
    keys = KEYS.get(family, {"authorization": "Bearer key"})
    orders = {"x-simulate": order} if order else {}
    return request(app, PATHS[provider].format(model=model), body, headers={**keys, **orders, **headers})
