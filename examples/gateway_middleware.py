"""Your own middleware in the gateway: it redacts e-mail addresses, refuses a tool and counts calls.

    python examples/gateway_middleware.py --port 8400        # serves, as `toolglot serve` does, with these steps

A configuration can name them too: `middleware = ["gateway_middleware:Redact", …]`, if Python finds this file. Without
options it runs a check against the simulator.
"""

import argparse
import json
import re
import urllib.error
import urllib.request
from collections import Counter
from typing import Any, TypeAlias

from toolglot import InputError, Request, Response, ToolMiddleware
from toolglot.gateway import Config, Gateway, GatewaySettings, Upstreams, running, serve
from toolglot.simulator import Simulator

Json: TypeAlias = "str | int | float | list[Json] | dict[str, Json] | None"
ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")


class Redact:
    """Replaces e-mail addresses. Messages are in the client's own protocol, so every string in them is searched.

    Middleware does not see a system prompt that the protocol has outside of the messages."""

    def process_request(self, request: Request) -> None:
        request.messages = [redact(message) for message in request.messages]

    def process_response(self, response: Response) -> None:
        """Nothing to do for a response."""


def redact(value: Json) -> Json:
    if isinstance(value, str):
        return ADDRESS.sub("[address]", value)
    if isinstance(value, list):
        return [redact(item) for item in value]
    if isinstance(value, dict):
        return {key: redact(item) for key, item in value.items()}
    return value


class Refuse:
    """Refuses a tool. An `InputError` reaches the client in its own protocol, with status 400."""

    def process_request(self, request: Request) -> None:
        if "drop_database" in json.dumps(request.tools):
            raise InputError("drop_database is not allowed", path="$.tools", hint="remove it from the tools")

    def process_response(self, response: Response) -> None:
        """Nothing to do for a response."""


class Count:
    """Counts calls of each tool by provider. Calls are canonical, whatever the protocols of both sides."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def process_request(self, request: Request) -> None:
        """Nothing to do for a request."""

    def process_response(self, response: Response) -> None:
        self.calls.update((response.provider_id, call.name) for call in response.tool_calls)


# --- the check --------------------------------------------------------------------------------------


def post(address: str, body: Any) -> tuple[int, str]:
    """A minimal client of Anthropic's Messages."""
    request = urllib.request.Request(f"{address}/v1/messages", json.dumps(body).encode(), {"x-api-key": "any"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def request_body(model: str, tool: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    content = [{"type": "text", "text": "Who is ada@example.com?"}]
    tools = [{"name": tool, "input_schema": schema}]
    return {
        "model": model,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": content}],
        "tools": tools,
        **more,
    }


def check() -> None:
    simulator = Simulator()
    config = Config(gateway=GatewaySettings(store=":memory:", log="off"))
    count = Count()
    steps: list[ToolMiddleware] = [Redact(), Refuse(), count]
    with running(Gateway(config, upstreams=Upstreams(config, simulator=simulator), middleware=steps)) as address:
        for model in ("simulated/mistral/mistral-large-latest", "simulated/gemini/gemini-3-pro"):
            for stream in (False, True):
                status, text = post(address, request_body(model, "look_up", stream=stream))
                assert (status, "tool_use" in text) == (200, True), text
        sent = [json.dumps(request.body) for request in simulator.requests]
        assert len(sent) == 4
        assert all("[address]" in body and "ada@example.com" not in body for body in sent)
        print("redacted:", len(sent), "requests")
        print("counted:", dict(count.calls))
        status, text = post(address, request_body("simulated/mistral/mistral-large-latest", "drop_database"))
        print("refused:", status, json.loads(text)["error"]["message"])
        assert len(simulator.requests) == 4


def main() -> None:
    parser = argparse.ArgumentParser(description="The gateway with your own middleware; without options, a check.")
    parser.add_argument("--config", help="a toolglot.toml")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    if options.config is None and options.port is None:
        check()
    else:
        serve(options.config, port=options.port, app_middleware=[Redact(), Refuse(), Count()])


if __name__ == "__main__":
    main()
