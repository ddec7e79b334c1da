"""Every provider as an upstream: requests as `convert` makes them, with the simulator behind it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping
from hashlib import sha256
from typing import Any

import pytest

import toolglot
from toolglot import InputError, Issuer, profiles
from toolglot.simulator import PROVIDERS as SIMULATED
from toolglot.simulator import Server, Simulator, serve
from toolglot.simulator import url_of as simulated_url
from toolglot.upstream import (
    PROVIDERS,
    AsgiTransport,
    AwsCredentials,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    TimeLimits,
    Transport,
    Upstream,
)

KEY = "sk-secret-0123456789"
STAND_INS = {"azure": "openai", "vertex": "gemini"}
"""Providers that the simulator does not have by name, and who speaks like them."""
REQUEST_BODY = {"model": "any", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve() as server:
        yield server


@contextlib.asynccontextmanager
async def way_to(server: Server, kind: str) -> AsyncIterator[tuple[Transport, str]]:
    transport: Transport = HttpTransport(environ={}) if kind == "http" else AsgiTransport(server.simulator)
    try:
        yield transport, server.root if kind == "http" else "http://simulator"
    finally:
        await transport.close()


def upstream_of(name: str, root: str, transport: Transport, **fields: Any) -> Upstream:
    provider = PROVIDERS[name]
    url = simulated_url(root, STAND_INS.get(name, name))
    settings: dict[str, Any] = {
        "name": name,
        "target": provider.target,
        "url": f"{url}/v1beta" if name == "vertex" else url,
        "auth": "bearer" if name == "azure" else provider.auth,
        "key": KEY,
    }
    return Upstream(transport=transport, **{**settings, **fields})


def model_of(name: str) -> str:
    return (SIMULATED[STAND_INS.get(name, name)].models or ("some-model",))[0]


def request_for(target: str, model: str, *, stream: bool) -> toolglot.ConvertedRequest:
    return toolglot.convert({**REQUEST_BODY, "stream": stream}, source="anthropic", target=target, model=model)


TARGETS = [*((name, name) for name in PROVIDERS), ("openai", "openai_responses")]


@pytest.mark.parametrize("kind", ["http", "asgi"])
@pytest.mark.parametrize(("name", "target"), TARGETS)
async def test_every_provider_answers_whole_and_streamed(server: Server, name: str, target: str, kind: str) -> None:
    async with asyncio.timeout(120), way_to(server, kind) as (transport, root):
        upstream = upstream_of(name, root, transport)
        for stream in (False, True):
            out = request_for(target, model_of(name), stream=stream)
            answer = await upstream.call(out)
            assert answer.status == 200
            if stream:
                translator = toolglot.StreamTranslator(source=target, target="anthropic", request=out)
                written = [translator.feed(piece) async for piece in answer.pieces()]
                assert b"message_stop" in b"".join([*written, translator.finish()])
            else:
                back = toolglot.convert_reply(await answer.whole(10**6), source=target, target="anthropic", request=out)
                assert back.body["content"]
            await answer.close()


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name in SIMULATED])
async def test_what_a_provider_lists_and_counts_is_found(server: Server, name: str) -> None:
    async with asyncio.timeout(120), way_to(server, "asgi") as (transport, root):
        upstream = upstream_of(name, root, transport)
        profile = profiles.get(name)
        listed = await upstream.models(profile)
        assert (listed is None) == (name in ("bedrock", "vertex_claude"))
        if listed is not None:
            assert listed.status == 200
            await listed.close()
        out = request_for(name, model_of(name), stream=False)
        counted = await upstream.count(profile, out.model, _countable(name, out.data))
        assert (counted is None) == (not profile.request.count_tokens)
        if counted is not None:
            simulated = {route.kind for route in SIMULATED[name].routes}
            assert counted.status == (200 if "count" in simulated else 404)
            await counted.close()


def _countable(name: str, data: bytes) -> bytes:
    return b'{"input": {"converse": %b}}' % data if name == "bedrock" else data


# --- headers, keys, addresses -----------------------------------------------------------------------


class Recorder:
    """A transport that keeps what it was to send."""

    def __init__(self) -> None:
        self.asks: list[tuple[HttpRequest, TimeLimits]] = []

    async def send(self, ask: HttpRequest, limits: TimeLimits) -> HttpResponse:
        self.asks.append((ask, limits))
        raise InputError("recorded")

    async def close(self) -> None:
        raise NotImplementedError


def sent(
    upstream: Upstream, target: str, headers: Mapping[str, str] | None = None, *, stream: bool = False
) -> HttpRequest:
    recorder = Recorder()
    out = request_for(target, "some/model", stream=stream)
    with pytest.raises(InputError, match="recorded"):
        asyncio.run(dataclasses.replace(upstream, transport=recorder).call(out, headers))
    (ask, limits) = recorder.asks[0]
    assert limits == upstream.limits
    return ask


def test_a_request_has_the_protocols_the_clients_and_the_upstreams_headers_in_that_order() -> None:
    upstream = Upstream(
        name="work",
        target="anthropic",
        url="https://api.anthropic.com",
        auth="x-api-key",
        key=KEY,
        headers={"X-Team": "blue", "x-both": "upstream"},
        transport=Recorder(),
    )
    client = {
        "Anthropic-Version": "2026-10-21",
        "anthropic-beta": "a,b",
        "x-both": "client",
        "Authorization": "Bearer client-key",
        "X-Api-Key": "client-key",
        "Cookie": "c",
        "Host": "gateway",
        "Accept-Encoding": "br",
    }
    ask = sent(upstream, "anthropic", client)
    assert ask.url == "https://api.anthropic.com/v1/messages"
    assert ask.headers == {
        "user-agent": "toolglot",
        "content-type": "application/json",
        "accept": "application/json",
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "a,b",
        "x-both": "upstream",
        "x-team": "blue",
        "x-api-key": KEY,
    }
    assert ask.name == "work"
    assert sent(upstream, "anthropic").headers["anthropic-version"] == "2023-06-01"


def test_deployments_of_azure_are_named_in_the_address() -> None:
    upstream = Upstream(
        name="azure",
        target="azure",
        url="https://r.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21",
        auth="api-key",
        key=KEY,
        transport=Recorder(),
    )
    ask = sent(upstream, "azure", stream=True)
    assert ask.url == (
        "https://r.openai.azure.com/openai/deployments/some%2Fmodel/chat/completions?api-version=2024-10-21"
    )
    assert ask.headers["api-key"] == KEY
    assert ask.headers["accept-encoding"] == "identity"


def test_bedrock_is_signed_or_has_a_key_and_says_what_is_missing() -> None:
    who = AwsCredentials(access_key="AKIAEXAMPLE", secret_key=KEY, session_token="token")  # noqa: S106
    upstream = Upstream(
        name="aws",
        target="bedrock",
        url="https://bedrock-runtime.eu-west-1.amazonaws.com",
        auth="aws",
        aws=who,
        transport=Recorder(),
        clock=lambda: 1_800_000_000.0,
    )
    ask = sent(upstream, "bedrock")
    assert ask.url.endswith("/model/some%2Fmodel/converse")
    assert ask.headers["x-amz-date"] == "20270115T080000Z"
    assert ask.headers["x-amz-security-token"] == "token"
    assert "Credential=AKIAEXAMPLE/20270115/eu-west-1/bedrock/aws4_request" in ask.headers["authorization"]
    assert KEY not in str(ask.headers)
    with_key = dataclasses.replace(upstream, key="bedrock-key")
    assert sent(with_key, "bedrock").headers["authorization"] == "Bearer bedrock-key"
    without_account = dataclasses.replace(upstream, aws=None)
    with pytest.raises(InputError, match="AWS_BEARER_TOKEN_BEDROCK"):
        asyncio.run(without_account.call(request_for("bedrock", "m", stream=False)))


async def test_the_simulated_bedrock_takes_a_signature_for_a_key(server: Server) -> None:
    async with way_to(server, "http") as (transport, root):
        who = AwsCredentials(access_key="AKIAEXAMPLE", secret_key=KEY, region="us-east-1")
        upstream = upstream_of("bedrock", root, transport, key="", aws=who)
        answer = await upstream.call(request_for("bedrock", model_of("bedrock"), stream=False))
        assert answer.status == 200
        await answer.close()


def test_no_key_is_shown() -> None:
    who = AwsCredentials(access_key="AKIAEXAMPLE", secret_key=KEY)
    upstream = Upstream(
        name="work",
        target="openai",
        url="https://api.openai.com/v1",
        key=KEY,
        aws=who,
        headers={"x-other-key": KEY},
        transport=Recorder(),
    )
    for shown in (repr(upstream), str(upstream), f"{upstream}"):
        assert "api.openai.com" in shown
        assert KEY not in shown
        assert "AKIA" not in shown


def test_home_distinguishes_accounts_and_endpoints_without_the_key() -> None:
    simulator = AsgiTransport(Simulator())
    upstream = Upstream(name="work", target="openai", url="https://h:1/v1/?x=1", key=KEY, transport=simulator)
    account = sha256(KEY.encode()).hexdigest()[:16]
    assert upstream.issuer("gpt-5.5") == Issuer("openai", "h:1/v1", account, "gpt-5.5")
    assert upstream.issuer(target="openai_responses").provider == "openai_responses"
    assert dataclasses.replace(upstream, key="").issuer().account == ""
    who = AwsCredentials(access_key="AKIAEXAMPLE", secret_key=KEY)
    signed = dataclasses.replace(upstream, key="", aws=who).issuer()
    assert signed.account == sha256(b"AKIAEXAMPLE").hexdigest()[:16]
