"""An upstream that cannot be reached is reported as that, in every client's protocol, and not to be overloaded."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from support.gateway.http_client import KEY, Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from toolglot import error_for
from toolglot.conversation import Failure
from toolglot.protocols.base import codec

PROTOCOLS = ("anthropic", "openai_chat", "openai_responses", "gemini", "ollama")
ALL = (*PROTOCOLS, "bedrock", "cohere")
MODEL = "gone/gpt-4.1"


@pytest.fixture(scope="module")
def port() -> int:
    """A port that no server listens on."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return int(closed.getsockname()[1])


@pytest.fixture(scope="module")
def served(port: int) -> Iterator[Served]:
    lines = ["[upstreams.gone]", 'provider = "openai"', f'url = "http://127.0.0.1:{port}/v1"', 'key_env = "CLIENT_KEY"']
    lines += ["breaker_failures = 10000", "retries = 0"]
    with gateway(None, upstreams="\n".join(lines), environ={"CLIENT_KEY": "k"}) as running:
        yield running


def message_of(body: Any) -> str:
    error = body.get("error", body)
    return str(error["message"] if isinstance(error, dict) else error)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_connection_is_a_502_that_names_the_upstream_and_says_what_to_check(
    served: Served, port: int, protocol: str, stream: bool
) -> None:
    path, body = request_of(protocol, MODEL, stream=stream)
    got: Got = ask(served, path, body)
    assert got.status == 502
    message = message_of(got.body)
    assert f"gone (127.0.0.1:{port}) cannot be reached: the connection was refused" in message
    assert "check that it is running, and its url" in message
    assert "overloaded" not in got.data.decode().lower()
    assert "unreachable" in served.records[-1].calls.failures[-1]


@pytest.mark.parametrize("protocol", ALL)
def test_every_protocol_reports_it_so_that_a_gateway_behind_it_reads_the_same(protocol: str) -> None:
    failure = Failure("unreachable", "gone cannot be reached: the connection was refused; check that it is running")
    out = error_for(failure, target=protocol)
    assert out.status == 502
    assert "overloaded" not in json.dumps(out.body).lower()
    assert "x-should-retry" not in out.headers, "the SDKs may try again"
    again = codec(protocol).errors.decode(out.status, out.body, out.headers)
    assert again is not None
    assert (again.kind, again.message, again.retryable) == ("unreachable", failure.message, True)


def test_the_sdks_raise_what_they_try_again(served: Served) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=KEY, max_retries=1) as client:
        before = len(served.records)
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            client.chat.completions.create(model=MODEL, messages=messages)
        assert len(served.records) == before + 2
    with anthropic.Anthropic(base_url=served.url, api_key=KEY, max_retries=0) as other:
        with pytest.raises(anthropic.InternalServerError, match="cannot be reached") as raised:
            other.messages.create(model=MODEL, max_tokens=5, messages=messages)
        assert raised.value.status_code == 502
