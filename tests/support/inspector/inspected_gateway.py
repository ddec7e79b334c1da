"""A gateway in the same process whose models are simulated, and clients of its inspector.

use_gateway(use, inspector='keep = "bodies"', gateway='client_keys = ["env:KEY_A"]')
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx

from toolglot.gateway.app import Gateway
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import parse_config

KEYS: Final = {
    "KEY_A": "a-long-client-key-of-a-1",
    "KEY_B": "a-long-client-key-of-b-2",
    "KEY_ADMIN": "a-long-admin-key-of-c-33",
}
KEYED: Final = """
[keys.alice]
key = "env:KEY_A"
[keys.bob]
key = "env:KEY_B"
models = ["simulated/openai/*"]
[keys.boss]
key = "env:KEY_ADMIN"
admin = true
"""
MODEL: Final = "simulated/openai/gpt-5.5"
API: Final = "/inspector/api"

Use = Callable[[httpx.AsyncClient], Awaitable[Any]]


def gateway_of(inspector: str = "", gateway: str = "", keys: str = "") -> Gateway:
    """A gateway with these settings."""
    text = f'[gateway]\nstore = ":memory:"\nlog = "off"\nsimulate = true\n{gateway}\n[inspector]\n{inspector}\n{keys}\n'
    return Gateway(parse_config(ConfigText("toolglot.toml", text), KEYS))


def use_gateway(use: Use, inspector: str = "", gateway: str = "", keys: str = "") -> Any:
    """What `use` returns, with a client of a gateway that has these settings."""

    async def run() -> Any:
        async with gateway_of(inspector, gateway, keys) as app:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8400") as client:
                return await use(client)

    return asyncio.run(run())


def request_body(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A request of an Anthropic client."""
    messages = [{"role": "user", "content": text}]
    return {"model": MODEL, "max_tokens": 50, "messages": messages, **fields}


async def send(client: httpx.AsyncClient, body: Any = None, *, key: str = "none", path: str = "/v1/messages") -> str:
    """Send a request to a model. Returns its id."""
    content = body if isinstance(body, str | bytes) else json.dumps(request_body() if body is None else body)
    response = await client.post(path, content=content, headers={"x-api-key": key})
    return response.headers["x-toolglot-request"]


async def get(client: httpx.AsyncClient, path: str, key: str = "none", **headers: str) -> Any:
    """What the inspector answers, which must be JSON and have the status 200."""
    response = await client.get(API + path, headers={"authorization": f"Bearer {key}", **headers})
    assert response.status_code == 200, response.text
    return response.json()


async def status_of(
    client: httpx.AsyncClient, path: str, key: str = "none", method: str = "GET", **headers: str
) -> int:
    """The status of a path of the inspector."""
    response = await client.request(method, API + path, headers={"authorization": f"Bearer {key}", **headers})
    return response.status_code


async def rows(client: httpx.AsyncClient, key: str = "none") -> list[dict[str, Any]]:
    """The rows of the list."""
    found: list[dict[str, Any]] = (await get(client, "/requests", key))["rows"]
    return found
