"""The Python SDKs as clients of the gateway: their tools really run, and nothing that they send is refused upstream.

Each SDK completes a tool loop on its own provider and on foreign ones: one call, then two at once, then an answer that
quotes what the tools returned. The simulator is strict: whatever a provider would refuse, it refuses.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import anthropic
import botocore.exceptions
import cohere.errors
import ollama
import openai
import pytest
from anthropic import beta_tool
from google.genai import errors as google_errors
from google.genai import types
from mistralai.client import errors as mistral_errors

from sdk import simulated as sdk
from support.gateway.sdk_script import BONN, KOLN, OSLO, SCRIPT, SETTINGS
from support.gateway.served_gateway import Served, gateway
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore")


SONNET: Final = "anthropic/claude-sonnet-4-5"
GPT: Final = "openai_chat/gpt-4.1"
GPT_5: Final = "openai_responses/gpt-5.5"
GEMINI_2: Final = "gemini/gemini-2.5-pro"
GEMINI_3: Final = "gemini/gemini-3-pro-preview"
MISTRAL: Final = "mistral/mistral-large-latest"
REASONER: Final = "deepseek/deepseek-reasoner"
KIMI: Final = "kimi/kimi-k2.5"
COMMAND: Final = "cohere/command-a-03-2025"
QWEN: Final = "ollama/qwen3"
CONVERSE: Final = "bedrock/anthropic.claude-sonnet-4-5-v1:0"


class Client(NamedTuple):
    """An SDK: how its users write a loop, what its base address ends with, and the models that it is tried on."""

    loop: sdk.Loop
    models: tuple[str, ...]
    """Its own provider's first."""
    base: str = ""


CLIENTS: Final = {
    "anthropic": Client(sdk.anthropic, (SONNET, GPT, GPT_5, GEMINI_3, MISTRAL, REASONER, KIMI)),
    "openai chat": Client(sdk.openai, (GPT, SONNET, GPT_5, GEMINI_3, MISTRAL, CONVERSE, COMMAND), "/v1"),
    "openai responses": Client(sdk.responses, (GPT_5, SONNET, GPT, GEMINI_3, MISTRAL, REASONER, QWEN), "/v1"),
    "google-genai": Client(sdk.gemini, (GEMINI_3, SONNET, GPT, GPT_5, MISTRAL)),
    "mistralai": Client(sdk.mistral, (MISTRAL, SONNET, GPT_5, GEMINI_2)),
    "ollama": Client(sdk.ollama_chat, (QWEN, SONNET, GPT, GEMINI_2)),
    "cohere": Client(sdk.cohere_chat, (COMMAND, SONNET, GPT, MISTRAL)),
    "boto3": Client(sdk.bedrock, (CONVERSE, GPT, GEMINI_2, MISTRAL)),
}
LOOPS: Final = [(name, model) for name, client in CLIENTS.items() for model in client.models]


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    """The providers, and an environment in which the SDKs know only what the test sets."""
    with pytest.MonkeyPatch.context() as patch, serve(SCRIPT) as server:
        for name in list(os.environ):
            if name.upper().startswith(SETTINGS) or name.upper().endswith("_PROXY"):
                patch.delenv(name)
        yield server
    gc.collect()  # what an SDK left open is reported here and not in another test


@pytest.fixture(scope="module")
def paced(simulated: Server) -> Iterator[tuple[Server, Served]]:
    """Providers whose events come one by one, so that a client has seen some of them when one fails."""
    with serve({**SCRIPT, "pace": 0.01}) as server, gateway(server) as running:
        yield server, running


# --- loops ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("client", "model"), LOOPS)
def test_an_sdk_completes_a_tool_loop_on_any_upstream(
    simulated: Server, served: Served, client: str, model: str, stream: bool
) -> None:
    ran: list[str] = []

    def get_weather(name: str, arguments: dict[str, Any]) -> str:
        assert name == "get_weather"
        ran.append(arguments["city"])
        return f"{len(ran)} degrees in {arguments['city']}"

    known, before = CLIENTS[client], len(simulated.requests)
    steps, text = known.loop(served.url + known.base, stream=stream, model=model, run=get_weather)
    requests = simulated.requests[before:]
    assert [request.status for request in requests] == [200, 200, 200], [request.error for request in requests]
    assert steps == [("get_weather", BONN), ("get_weather", KOLN), ("get_weather", OSLO)]
    assert ran == ["Bonn", "Köln", "Oslo"]
    results = ["1 degrees in Bonn", "2 degrees in Köln", "3 degrees in Oslo"]
    assert [line.partition(" says: ")[2] for line in text.splitlines()] == results
    assert {record.route.upstream for record in served.records[-3:]} == {model.partition("/")[0]}
    assert [record.request.is_stream for record in served.records[-3:]] == [stream] * 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [GPT_5, SONNET, MISTRAL])
def test_responses_that_are_not_stored_work_on_any_upstream(
    simulated: Server, served: Served, model: str, stream: bool
) -> None:
    before = len(simulated.requests)
    steps, text = sdk.responses(f"{served.url}/v1", stream=stream, model=model, store=False)
    assert [request.status for request in simulated.requests[before:]] == [200, 200, 200]
    assert len(steps) == 3
    assert [line.partition(" says: ")[2] for line in text.splitlines()] == ["7 degrees"] * 3


# --- what only one SDK has --------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GPT_5, SONNET, MISTRAL])
def test_stored_responses_are_retrieved_listed_continued_and_deleted(
    simulated: Server, served: Served, model: str
) -> None:
    with sdk.openai_client(f"{served.url}/v1") as client:
        first = client.responses.create(model=model, input="Some words, please.", instructions="Be short.")
        second = client.responses.create(model=model, input="And more words.", previous_response_id=first.id)
        assert second.previous_response_id == first.id
        found = client.responses.retrieve(second.id)
        assert (found.id, found.output_text) == (second.id, "These are some words, and then a few more.")
        sent = json.dumps(simulated.requests[-1].body)
        if not model.startswith("openai_responses"):  # elsewhere the whole conversation is sent
            assert "Some words, please." in sent
            assert "These are some words" in sent
        listed = client.responses.input_items.list(second.id, order="asc")
        assert "And more words." in listed.model_dump_json()
        client.responses.delete(second.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(second.id)
        with pytest.raises(openai.APIStatusError) as raised:
            client.responses.create(model=SONNET, input="Words?", previous_response_id="resp_of_nobody")
        assert raised.value.code == "previous_response_not_found"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [SONNET, GPT, GEMINI_3, MISTRAL])
def test_the_tool_runner_of_anthropics_sdk_runs_on_any_upstream(
    simulated: Server, served: Served, model: str, stream: bool
) -> None:
    ran: list[str] = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather."""
        ran.append(city)
        return f"7 degrees in {city}"

    before = len(simulated.requests)
    with sdk.anthropic_client(served.url) as client:
        messages: list[Any] = [{"role": "user", "content": "The weather?"}]
        runner: Any = client.beta.messages.tool_runner(
            model=model, max_tokens=4000, tools=[get_weather], messages=messages, stream=stream
        )
        last = runner.until_done()
    assert ran == ["Bonn", "Köln", "Oslo"]
    lines = last.content[-1].text.splitlines()
    assert [line.partition(" says: ")[2] for line in lines] == [f"7 degrees in {city}" for city in ran]
    # Threads are Anthropic's to refuse where it is the upstream; the SDK then sends the whole history.
    requests = [request for request in simulated.requests[before:] if request.rule != "threads"]
    assert {request.status for request in requests} == {200}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [GEMINI_3, SONNET, GPT, MISTRAL])
def test_automatic_function_calling_of_google_genai_runs_on_any_upstream(
    simulated: Server, served: Served, model: str, stream: bool
) -> None:
    ran: list[str] = []

    def get_weather(city: str) -> str:
        """The weather."""
        ran.append(city)
        return f"7 degrees in {city}"

    before = len(simulated.requests)
    config = types.GenerateContentConfig(tools=[get_weather])
    with sdk.genai_client(served.url) as client:
        if stream:
            chunks = client.models.generate_content_stream(model=model, contents="The weather?", config=config)
            text = "".join(part.text or "" for chunk in chunks for part in _parts_of(chunk))
        else:
            text = client.models.generate_content(model=model, contents="The weather?", config=config).text or ""
    assert ran == ["Bonn", "Köln", "Oslo"]
    assert {request.status for request in simulated.requests[before:]} == {200}
    for city in ran:
        assert f"7 degrees in {city}" in text


def _parts_of(chunk: types.GenerateContentResponse) -> list[types.Part]:
    content = chunk.candidates[0].content if chunk.candidates else None
    return [part for part in (content.parts or [] if content else []) if not part.thought]


@pytest.mark.parametrize("model", [SONNET, GPT_5, GEMINI_2, MISTRAL])
def test_tokens_are_counted_for_anthropics_and_googles_sdks(served: Served, model: str) -> None:
    words = "How many tokens are these words? " * 10
    with sdk.anthropic_client(served.url) as client:
        counted = client.messages.count_tokens(model=model, messages=[{"role": "user", "content": words}])
    with sdk.genai_client(served.url) as google:
        total = google.models.count_tokens(model=model, contents=words).total_tokens
    assert 40 < counted.input_tokens < 200
    assert 40 < (total or 0) < 200


def test_models_are_listed_for_every_sdk_that_lists_them(served: Served) -> None:
    with sdk.anthropic_client(served.url) as client:
        claude = [model.id for model in client.models.list()]
        assert client.models.retrieve(claude[0]).id == claude[0]
    with sdk.openai_client(f"{served.url}/v1") as client_of_openai:
        gpt = [model.id for model in client_of_openai.models.list()]
        assert client_of_openai.models.retrieve(gpt[0]).id == gpt[0]
    with sdk.genai_client(served.url) as google:
        gemini = [(model.name or "").removeprefix("models/") for model in google.models.list()]
    with sdk.mistral_client(served.url) as client_of_mistral:
        mistral = [getattr(model, "id", None) for model in client_of_mistral.models.list().data or ()]
    with sdk.ollama_client(served.url) as client_of_ollama:
        tags = [model.model for model in client_of_ollama.list().models]
        assert client_of_ollama.show(tags[0] or "").capabilities
    assert len(claude) > 5
    assert set(claude) == set(gpt) == set(gemini) == set(mistral) == set(tags)


# --- errors -----------------------------------------------------------------------------------------


def header(error: Any) -> object:
    """The time to wait, as most SDKs have it in their exception."""
    return error.response.headers["retry-after"]


BUSY: Final[dict[str, tuple[type[Exception], Callable[[Any], object]]]] = {
    "anthropic": (anthropic.RateLimitError, header),
    "openai chat": (openai.RateLimitError, header),
    "openai responses": (openai.RateLimitError, header),
    "google-genai": (google_errors.ClientError, header),
    "mistralai": (mistral_errors.SDKError, lambda error: error.headers["retry-after"]),
    "ollama": (ollama.ResponseError, lambda error: "7" if error.status_code == 429 else None),
    "cohere": (cohere.errors.TooManyRequestsError, lambda error: error.headers["retry-after"]),
    "boto3": (
        botocore.exceptions.ClientError,
        lambda error: error.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"],
    ),
}
"""How each SDK tells that a provider was busy. Ollama's exception has a status and a text only."""

BROKEN: Final[dict[str, type[Exception]]] = {
    "anthropic": anthropic.APIStatusError,
    "openai chat": openai.APIError,
    "google-genai": google_errors.APIError,
    "mistralai": mistral_errors.MistralError,
    "ollama": ollama.ResponseError,
    "boto3": botocore.exceptions.EventStreamError,
}
"""How each SDK tells that a stream broke off, if by an exception."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_busy_provider_is_the_sdks_own_exception_with_the_time_to_wait(
    simulated: Server, served: Served, name: str, stream: bool
) -> None:
    client, (exception, waits) = CLIENTS[name], BUSY[name]
    once: dict[str, Any] = {"request_options": {"max_retries": 0}} if name == "cohere" else {}
    simulated.fault("429,retry_after=7")
    with pytest.raises(exception) as raised:
        client.loop(served.url + client.base, stream=stream, model=client.models[1], **once)
    assert waits(raised.value) == "7"
    assert served.records[-1].response.status == 429


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_that_breaks_off_is_the_sdks_own_exception(paced: tuple[Server, Served], name: str) -> None:
    simulated, served = paced
    client = CLIENTS[name]
    simulated.fault("error_event,after=8")
    with pytest.raises(BROKEN[name], match="verloaded"):
        client.loop(served.url + client.base, stream=True, model=client.models[1])


def test_a_stream_that_breaks_off_is_a_failed_response_of_openais_sdk(paced: tuple[Server, Served]) -> None:
    simulated, served = paced
    simulated.fault("error_event,after=8")
    with sdk.openai_client(f"{served.url}/v1") as client:
        *_, last = client.responses.create(model=SONNET, input="Some words.", stream=True)
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "verloaded" in last.response.error.message


def test_a_stream_that_breaks_off_ends_in_an_error_of_coheres_sdk(paced: tuple[Server, Served]) -> None:
    simulated, served = paced
    simulated.fault("error_event,after=8")
    messages: list[Any] = [{"role": "user", "content": "Some words."}]
    with sdk.cohere_client(served.url) as client:
        *_, last = client.chat_stream(model=SONNET, messages=messages)
    assert last.type == "message-end"
    assert last.delta is not None
    assert last.delta.finish_reason == "ERROR"
    assert "verloaded" in (last.delta.error or "")
