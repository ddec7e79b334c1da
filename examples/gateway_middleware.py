"""Middleware of one's own in the gateway: no address leaves in messages, one tool is refused, every call is counted.

    python examples/gateway_middleware.py --port 8400        # serves, as `toolglot serve` does, with these steps

A configuration names them too: `middleware = ["gateway_middleware:Redact", …]`, where Python finds this file. Without
options it proves itself against the simulator.
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
    """E-mail addresses stay here. Messages are in the client's own protocol, so every text in them is looked at,
    wherever it stands. A system prompt that its protocol keeps beside the messages is not shown to steps."""

    def process_request(self, request: Request) -> None:
        request.messages = [redacted(message) for message in request.messages]

    def process_response(self, response: Response) -> None:
        """Nothing to do on the way back."""


def redacted(value: Json) -> Json:
    if isinstance(value, str):
        return ADDRESS.sub("[address]", value)
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, dict):
        return {key: redacted(item) for key, item in value.items()}
    return value


class Refuse:
    """A tool that nobody may offer. An `InputError` reaches the client in its own shape, with status 400."""

    def process_request(self, request: Request) -> None:
        if "drop_database" in json.dumps(request.tools):
            raise InputError("drop_database is not for models", path="$.tools", hint="take it out")

    def process_response(self, response: Response) -> None:
        """Nothing to do on the way back."""


class Count:
    """How often each tool was called, by provider: canonical calls, whatever protocols the two sides speak."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def process_request(self, request: Request) -> None:
        """Nothing to do on the way there."""

    def process_response(self, response: Response) -> None:
        self.calls.update((response.provider_id, call.name) for call in response.tool_calls)


# --- the proof --------------------------------------------------------------------------------------


def post(address: str, body: Any) -> tuple[int, str]:
    """A client of Anthropic's Messages, as bare as can be."""
    request = urllib.request.Request(f"{address}/v1/messages", json.dumps(body).encode(), {"x-api-key": "any"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as answered:  # noqa: S310
            return answered.status, answered.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def asked(model: str, tool: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    words = [{"type": "text", "text": "Who is ada@example.com?"}]
    tools = [{"name": tool, "input_schema": schema}]
    return {"model": model, "max_tokens": 500, "messages": [{"role": "user", "content": words}], "tools": tools, **more}


def prove() -> None:
    simulator = Simulator()
    config = Config(gateway=GatewaySettings(store=":memory:", log="off"))
    count = Count()
    steps: list[ToolMiddleware] = [Redact(), Refuse(), count]
    with running(Gateway(config, upstreams=Upstreams(config, simulator=simulator), middleware=steps)) as address:
        for model in ("simulated/mistral/mistral-large-latest", "simulated/gemini/gemini-3-pro"):
            for stream in (False, True):
                status, text = post(address, asked(model, "look_up", stream=stream))
                assert (status, "tool_use" in text) == (200, True), text
        sent = [json.dumps(request.body) for request in simulator.requests]
        assert len(sent) == 4
        assert all("[address]" in body and "ada@example.com" not in body for body in sent)
        print("redacted:", len(sent), "requests")
        print("counted:", dict(count.calls))
        status, text = post(address, asked("simulated/mistral/mistral-large-latest", "drop_database"))
        print("refused:", status, json.loads(text)["error"]["message"])
        assert len(simulator.requests) == 4


def main() -> None:
    parser = argparse.ArgumentParser(description="The gateway with middleware of one's own; without options, a proof.")
    parser.add_argument("--config", help="a toolglot.toml")
    parser.add_argument("--port", type=int)
    given = parser.parse_args()
    if given.config is None and given.port is None:
        prove()
    else:
        serve(given.config, port=given.port, app_middleware=[Redact(), Refuse(), Count()])


if __name__ == "__main__":
    main()
