"""Nothing is simulated by accident (law 14): the gateway, its clients and sessions, with something configured and with
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import anthropic
import botocore.exceptions
import cohere.errors
import ollama
import openai
import pytest
from google import genai
from google.genai import errors as google_errors
from mistralai.client import Mistral
from mistralai.client.errors import SDKError
from msgspec.structs import replace

import toolglot
from sdk.simulated import bedrock_client, cohere_client, ollama_client
from support.cli.commands import Cli
from support.gateway.gateway_process import SOON
from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, config_for
from support.waiting import wait_until
from toolglot.errors import InputError
from toolglot.gateway import Gateway, running
from toolglot.gateway.config.settings import Config, config_from_environment, read_config
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.upstream.providers import PROVIDERS

NOTHING: Final = {"HOME": "/nowhere"}
ONE_KEY: Final = {**NOTHING, "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
HELLO: Final[Any] = [{"role": "user", "content": "Hello"}]
VARIABLES: Final = sorted(
    {
        *(name for provider in PROVIDERS.values() for name in provider.key_env),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "TOOLGLOT_CONFIG", "TOOLGLOT_MODEL", "TOOLGLOT_CLIENT_KEY"),
    }
)


def in_memory(config: Config) -> Config:
    return replace(config, gateway=replace(config.gateway, store=":memory:", log="off"))


@contextlib.contextmanager
def served_with(config: Config) -> Iterator[Served]:
    app = Gateway(in_memory(config), request_log=RequestLog(max_remembered=100, form="off"))
    with running(app) as url:
        yield Served(url, app)


@pytest.fixture(scope="module")
def empty() -> Iterator[Served]:
    """A gateway with nothing configured."""
    with served_with(config_from_environment(NOTHING)) as served:
        yield served


@pytest.fixture(scope="module")
def keyed() -> Iterator[Served]:
    """A gateway that has one provider's key, which is not called."""
    with served_with(config_from_environment(ONE_KEY)) as served:
        yield served


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without any configuration, in an empty folder."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return monkeypatch


# --- clients ----------------------------------------------------------------------------------------


def openai_at(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def anthropic_at(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)


def genai_at(url: str) -> genai.Client:
    return genai.Client(api_key="any", http_options={"base_url": url})


def by_chat(url: str, model: str) -> str:
    with openai_at(url) as client:
        return client.chat.completions.create(model=model, messages=HELLO).model


def by_chat_stream(url: str, model: str) -> str:
    with openai_at(url) as client:
        (name,) = {each.model for each in client.chat.completions.create(model=model, messages=HELLO, stream=True)}
        return name


def by_responses(url: str, model: str) -> str:
    with openai_at(url) as client:
        return client.responses.create(model=model, input="Hello").model


def by_responses_stream(url: str, model: str) -> str:
    with openai_at(url) as client:
        events = client.responses.create(model=model, input="Hello", stream=True)
        (name,) = {event.response.model for event in events if hasattr(event, "response")}
        return name


def by_messages(url: str, model: str) -> str:
    with anthropic_at(url) as client:
        return client.messages.create(model=model, messages=HELLO, max_tokens=500).model


def by_messages_stream(url: str, model: str) -> str:
    with anthropic_at(url) as client, client.messages.stream(model=model, messages=HELLO, max_tokens=500) as stream:
        return stream.get_final_message().model


def by_gemini(url: str, model: str) -> str:
    with genai_at(url) as client:
        return client.models.generate_content(model=model, contents="Hello").model_version or ""


def by_gemini_stream(url: str, model: str) -> str:
    with genai_at(url) as client:
        chunks = client.models.generate_content_stream(model=model, contents="Hello")
        (name,) = {chunk.model_version or "" for chunk in chunks}
        return name


def by_mistral(url: str, model: str) -> str:
    with Mistral(server_url=url, api_key="any") as client:
        return str(client.chat.complete(model=model, messages=HELLO).model)


def by_ollama(url: str, model: str) -> str:
    with ollama_client(url) as client:
        return client.chat(model=model, messages=HELLO).model or ""


def by_ollama_stream(url: str, model: str) -> str:
    with ollama_client(url) as client:
        (name,) = {part.model or "" for part in client.chat(model=model, messages=HELLO, stream=True)}
        return name


def by_cohere(url: str, model: str) -> str:
    with cohere_client(url) as client:
        client.chat(model=model, messages=HELLO)
    return ""  # its replies do not name their model


def by_bedrock(url: str, model: str) -> str:
    with bedrock_client(url) as client:
        client.converse(modelId=model, messages=[{"role": "user", "content": [{"text": "Hello"}]}])
    return ""


Way = Callable[[str, str], str]
"""Asks for a model at an address: the model that the reply names."""

WAYS: Final[list[Way]] = [
    *(by_chat, by_chat_stream, by_responses, by_responses_stream, by_messages, by_messages_stream),
    *(by_gemini, by_gemini_stream, by_mistral, by_ollama, by_ollama_stream),
]
SILENT: Final[list[Way]] = [by_cohere, by_bedrock]
REFUSED: Final[dict[str, tuple[type[Exception], Callable[[Any], tuple[object, ...]], tuple[object, ...]]]] = {
    "by_chat": (openai.NotFoundError, lambda error: (error.status_code, error.code), (404, "model_not_found")),
    "by_responses": (openai.NotFoundError, lambda error: (error.status_code, error.code), (404, "model_not_found")),
    "by_messages": (
        anthropic.NotFoundError,
        lambda error: (error.status_code, error.body["error"]["type"]),
        (404, "not_found_error"),
    ),
    "by_gemini": (google_errors.ClientError, lambda error: (error.code, error.status), (404, "NOT_FOUND")),
    "by_mistral": (SDKError, lambda error: (error.status_code,), (404,)),
    "by_ollama": (ollama.ResponseError, lambda error: (error.status_code,), (404,)),
    "by_cohere": (cohere.errors.NotFoundError, lambda error: (error.status_code,), (404,)),
    "by_bedrock": (
        botocore.exceptions.ClientError,
        lambda error: (error.response["Error"]["Code"],),
        ("ResourceNotFoundException",),
    ),
}


def refusal(way: Way, url: str, model: str) -> str:
    """What an SDK raises for a model that is not there, checked for its kind; its message."""
    kind, read, expected = REFUSED[way.__name__.removesuffix("_stream")]
    with pytest.raises(kind) as caught:
        way(url, model)
    assert read(caught.value) == expected
    return str(caught.value)


# --- something is configured ------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*WAYS, *SILENT], ids=lambda way: way.__name__)
def test_with_one_key_a_mistyped_name_is_the_clients_own_404(way: Way, keyed: Served) -> None:
    message = refusal(way, keyed.url, "opnai/gpt-5.5")
    assert "unknown model" in message
    assert "openai/gpt-5.5" in message
    assert not any(record.route.is_simulated for record in keyed.records)


@pytest.mark.parametrize("way", [*WAYS, *SILENT], ids=lambda way: way.__name__)
def test_with_one_key_a_model_of_another_provider_names_the_variable(way: Way, keyed: Served) -> None:
    message = refusal(way, keyed.url, "gpt-5.5")
    assert "there is no key for OpenAI" in message
    assert "OPENAI_API_KEY" in message


def test_with_one_key_no_schema_gets_made_up_answers(keyed: Served) -> None:
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}, "amount": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "decision", "schema": schema}}
    body = {"model": "opnai/gpt-5.5", "messages": HELLO, "response_format": form}
    got = ask(keyed, "/v1/chat/completions", body)
    assert got.status == 404
    assert "approved" not in got.body
    assert "x-toolglot-simulated" not in got.headers


def test_with_one_key_counts_and_single_models_are_404_too(keyed: Served) -> None:
    for model in ("opnai/gpt-5.5", "gpt-5.5"):
        path, body = request_of("anthropic", model)
        assert ask(keyed, f"{path}/count_tokens", body).status == 404
        assert ask(keyed, f"/v1/models/{model}").status == 404
        assert ask(keyed, "/api/show", {"model": model}).status == 404


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_named_simulated_answers_beside_a_key_and_says_so(way: Way, keyed: Served) -> None:
    assert way(keyed.url, "simulated/anthropic/claude-opus-5") == "simulated/anthropic/claude-opus-5"


@pytest.mark.parametrize("upstream", ["bedrock", "cohere", "gemini", "mistral", "openai"])
@pytest.mark.parametrize(
    "way", [by_messages, by_messages_stream, by_chat, by_chat_stream], ids=lambda way: way.__name__
)
def test_every_simulated_provider_is_named_in_the_reply(way: Way, upstream: str, keyed: Served) -> None:
    assert way(keyed.url, f"simulated/{upstream}/some-model") == f"simulated/{upstream}/some-model"


@pytest.mark.parametrize("settings", ["", "simulate = true"])
def test_a_file_simulates_only_what_is_named_so_whatever_it_sets(settings: str) -> None:
    with served_with(config_for(None, settings=settings, models={"mine": "simulated/openai/gpt-5.5"})) as served:
        for model in ("gpt-5.5", "openai/gpt-5.5", "claude-opus-5", "opnai/gpt-5.5", "nothing"):
            assert ask(served, *request_of("openai", model)).status == 404, model
        for model in ("mine", "simulated/openai/gpt-5.5"):
            got = ask(served, *request_of("openai", model))
            assert got.body["model"] == "simulated/openai/gpt-5.5"
        listed = [model["id"] for model in ask(served, "/v1/models").body["data"]]
        assert ("simulated/anthropic/claude-opus-5" in listed) is bool(settings)
        assert ask(served, "/health").body == {"status": "ok"}


@pytest.mark.parametrize("environ", [NOTHING, ONE_KEY], ids=["nothing", "one key"])
def test_what_is_forbidden_is_not_simulated_by_any_name(environ: dict[str, str]) -> None:
    with served_with(config_from_environment(environ).without_simulated()) as served:
        for model in ("gpt-5.5", "simulated/openai/gpt-5.5"):
            assert ask(served, *request_of("openai", model)).status == 404
        assert not [model for model in ask(served, "/v1/models").body["data"] if "simulated" in model["id"]]
        assert ask(served, "/health").body == {"status": "ok"}


# --- nothing is configured --------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("claude-opus-5", "simulated/anthropic/claude-opus-5"),
        ("gpt-5.5", "simulated/openai/gpt-5.5"),
        ("gemini/gemini-3-pro", "simulated/gemini/gemini-3-pro"),
    ],
)
def test_with_nothing_configured_the_reply_names_the_simulated_model(
    way: Way, model: str, named: str, empty: Served
) -> None:
    assert way(empty.url, model) == named


@pytest.mark.parametrize("way", [*WAYS, *SILENT], ids=lambda way: way.__name__)
def test_with_nothing_configured_an_unknown_prefix_is_404_too(way: Way, empty: Served) -> None:
    assert "openai/gpt-5.5" in refusal(way, empty.url, "opnai/gpt-5.5")


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai_responses", "gemini", "ollama"])
@pytest.mark.parametrize("stream", [False, True])
def test_with_nothing_configured_a_header_says_so(protocol: str, stream: bool, empty: Served) -> None:
    got = ask(empty, *request_of(protocol, "claude-opus-5", stream=stream))
    assert got.status == 200
    assert got.headers["x-toolglot-simulated"] == "true"
    assert got.headers["x-toolglot-upstream"] == "anthropic/claude-opus-5 (simulated)"


def test_a_refusal_and_a_count_of_a_simulated_model_say_so_too(empty: Served) -> None:
    path, body = request_of("anthropic", "claude-opus-5")
    refused = ask(empty, path, {**body, "anthropic_unheard_of": 1})
    assert refused.status == 400
    assert refused.headers["x-toolglot-simulated"] == "true"
    assert ask(empty, f"{path}/count_tokens", body).headers["x-toolglot-simulated"] == "true"


def test_with_nothing_configured_health_says_so(empty: Served, keyed: Served) -> None:
    assert ask(empty, "/health").body == {"status": "ok", "simulated": True}
    assert ask(keyed, "/health").body == {"status": "ok"}


# --- a configuration that changes -------------------------------------------------------------------


async def test_a_key_that_comes_ends_the_simulation_and_none_that_goes_begins_it() -> None:
    async with Gateway(in_memory(config_from_environment(NOTHING))) as app:
        assert app.config.simulates_known
        await app.reload(in_memory(config_from_environment(ONE_KEY)))
        assert not app.config.simulates_known
        with pytest.raises(InputError, match="nothing is configured any more"):
            await app.reload(in_memory(config_from_environment(NOTHING)))
        assert list(app.config.upstreams) == ["anthropic"]


def test_a_file_that_appears_ends_the_simulation_while_the_gateway_runs(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del bare

    def reread() -> Config:
        return in_memory(read_config(None, NOTHING))

    app = Gateway(reread(), request_log=RequestLog(max_remembered=10, form="off"), reread=reread)
    with running(app) as url:
        assert by_chat(url, "gpt-5.5") == "simulated/openai/gpt-5.5"
        (tmp_path / "toolglot.toml").write_text('[upstreams.box]\nurl = "http://127.0.0.1:9/v1"\n')
        wait_until(lambda: bool(app.config.upstreams))
        assert "OPENAI_API_KEY" in refusal(by_chat, url, "gpt-5.5")
        assert by_chat(url, "simulated/openai/gpt-5.5") == "simulated/openai/gpt-5.5"


# --- the command line -------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(folder: Path, *words: str, **environment: str) -> Iterator[tuple[str, list[str]]]:
    """`toolglot serve` as a process in an empty folder: its address, and what it wrote to stderr so far."""
    own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    own |= {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), **environment}
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--store", ":memory:", *words]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=own, cwd=folder)
    assert popen.stdout is not None
    assert popen.stderr is not None
    stderr, log = popen.stderr, list[str]()
    reader = threading.Thread(target=lambda: log.extend(line.decode() for line in stderr), daemon=True)
    try:
        url = popen.stdout.readline().decode().strip()
        reader.start()
        yield url, log
    finally:
        popen.terminate()
        popen.wait(SOON)
        reader.join(SOON)
        popen.stdout.close()
        popen.stderr.close()


def has_line(log: list[str], start: str) -> bool:
    return any(line.startswith(start) for line in log)


def test_serve_says_at_its_start_what_is_simulated(tmp_path: Path) -> None:
    for words, environment, line, expected in [
        ((), {}, "all known models, because nothing is configured: no real model answers", {"simulated": True}),
        ((), {"ANTHROPIC_API_KEY": "k"}, "only names that begin with simulated/", {}),
        (("--no-simulate",), {}, "none", {}),
    ]:
        with serving(tmp_path, *words, **environment) as (url, log):
            assert ask(url, "/health").body == {"status": "ok", **expected}
            wait_until(partial(has_line, log, "  client keys "))
            (shown,) = (each for each in log if each.startswith("  simulated "))
            assert shown.split(maxsplit=1)[1].strip() == line


def test_serve_says_it_in_its_json_log_and_workers_forbid_it_alike(tmp_path: Path) -> None:
    with serving(tmp_path, "--log", "json") as (url, log):
        wait_until(lambda: any('"event":"start"' in line for line in log))
        (start,) = (json.loads(line) for line in log if '"event":"start"' in line)
        assert start["simulated"] is True
    store = str(tmp_path / "store.db")
    with serving(tmp_path, "--no-simulate", "--workers", "2", "--store", store) as (url, _):
        assert ask(url, "/health").body == {"status": "ok"}
        assert "OPENAI_API_KEY" in refusal(by_chat, url, "gpt-5.5")


def test_the_doctor_says_what_is_simulated(
    bare: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(tmp_path, bare, capsys)

    def simulated_checks(*words: str) -> list[tuple[str, str]]:
        checks = cli("doctor", "--no-network", "--format", "json", *words).json["checks"]
        return [(check["state"], check["said"]) for check in checks if "simulated" in check["said"]]

    ((state, text),) = simulated_checks()
    assert state == "warn"
    assert text == "nothing is configured: simulated models answer to all known names, and no real model does"
    cli.write("toolglot.toml", "[gateway]\nsimulate = false\n")
    assert ("fail", "there is no upstream, so no real model answers; no model is simulated") in simulated_checks()
    (tmp_path / "toolglot.toml").unlink()
    bare.setenv("ANTHROPIC_API_KEY", "k")
    ((state, text),) = simulated_checks()
    assert state == "ok"
    assert text.endswith("other models are refused; only names that begin with simulated/ are simulated")


# --- in this process --------------------------------------------------------------------------------


def test_a_client_simulates_by_the_same_rule(bare: pytest.MonkeyPatch) -> None:
    with openai.OpenAI(api_key="any", http_client=toolglot.client()) as client:
        assert client.chat.completions.create(model="gpt-5.5", messages=HELLO).model == "simulated/openai/gpt-5.5"
        with pytest.raises(openai.NotFoundError, match=r"openai/gpt-5\.5"):
            client.chat.completions.create(model="opnai/gpt-5.5", messages=HELLO)
    bare.setenv("ANTHROPIC_API_KEY", "k")
    with openai.OpenAI(api_key="any", http_client=toolglot.client()) as client:
        with pytest.raises(openai.NotFoundError, match="OPENAI_API_KEY"):
            client.chat.completions.create(model="gpt-5.5", messages=HELLO)
        named = client.chat.completions.create(model="simulated/openai/gpt-5.5", messages=HELLO)
        assert named.model == "simulated/openai/gpt-5.5"


def test_an_asynchronous_client_simulates_by_the_same_rule(bare: pytest.MonkeyPatch) -> None:
    async def check(model: str) -> str:
        async with anthropic.AsyncAnthropic(api_key="any", http_client=toolglot.async_client()) as client:
            return (await client.messages.create(model=model, messages=HELLO, max_tokens=500)).model

    assert asyncio.run(check("claude-opus-5")) == "simulated/anthropic/claude-opus-5"
    bare.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(anthropic.NotFoundError, match="ANTHROPIC_API_KEY"):
        asyncio.run(check("claude-opus-5"))


async def test_a_session_has_the_simulated_models_by_their_names(bare: pytest.MonkeyPatch) -> None:
    del bare

    @toolglot.tool
    def get_weather(city: str) -> str:
        """Tells the weather of a city."""
        return f"7 degrees in {city}"

    async with toolglot.Session(model="simulated/anthropic/claude-opus-5", tools=[get_weather]) as session:
        answer = await session.run("What is the weather in Bonn?")
        assert (answer.stop, answer.model) == ("stop", "simulated/anthropic/claude-opus-5")
        assert "7 degrees" in answer.text
        session.switch("Simulated/openai/gpt-5.5")
        assert (await session.run("And now?")).model == "simulated/openai/gpt-5.5"


@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        ("anthropic/claude-opus-5", "Anthropic needs a key", "ANTHROPIC_API_KEY, or use simulated/anthropic/…"),
        ("simulated/antropic/x", "did you mean 'simulated/anthropic/x'", "write simulated/PROVIDER/MODEL"),
        ("simulated/openai", "unknown model 'simulated/openai'", "write simulated/PROVIDER/MODEL"),
        ("simulated/", "unknown model 'simulated/'", "write simulated/PROVIDER/MODEL"),
        ("opnai/gpt-5.5", "did you mean 'openai/gpt-5.5'", ""),
    ],
)
def test_a_session_simulates_nothing_else(model: str, message: str, hint: str, bare: pytest.MonkeyPatch) -> None:
    del bare

    async def check() -> None:
        async with toolglot.Session(model=model):
            pass

    with pytest.raises(InputError) as caught:
        asyncio.run(check())
    assert message in caught.value.message
    assert hint in caught.value.hint
