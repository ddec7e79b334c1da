"""Embeddings through the gateway, with the providers' own SDKs as clients and the strict simulator behind it.

Laws: every client gets the same vectors from an upstream as the upstream's own client would, in the order of its
inputs; the client's own provider gets the request as it is; what is used is counted and limited as for other requests.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
from collections.abc import Callable
from typing import Any

import boto3
import cohere
import httpx
import ollama
import openai
import pytest
from botocore.config import Config
from google import genai
from google.genai import types as gemini_types
from mistralai.client import Mistral

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served
from toolglot.simulator.replies.vectors import simulated_vector
from toolglot.simulator.serving import Server

TEXTS = ["first text", "a second text", "ünïcödé"]
SIZE = 16
VECTORS = [simulated_vector(text, SIZE) for text in TEXTS]
NEAR = 1e-6
"""What 32-bit floats lose."""
UPSTREAMS = (
    "openai/text-embedding-3-small",
    "gemini/gemini-embedding-001",
    "gemini/gemini-embedding-2-preview",
    "mistral/codestral-embed",
    "cohere/embed-v4.0",
    "ollama/nomic-embed-text",
    "bedrock/amazon.titan-embed-text-v2:0",
    "bedrock/cohere.embed-v4:0",
    "bedrock/amazon.nova-2-multimodal-embeddings-v1:0",
    "vllm/nomic-embed-text",
)


# --- clients -----------------------------------------------------------------------------------------


def embed_with_openai(url: str, model: str) -> list[list[float]]:
    """The SDK requests base64 unless it is told otherwise."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        reply = client.embeddings.create(model=model, input=TEXTS, dimensions=SIZE)
    assert reply.usage.prompt_tokens > 0
    assert [item.index for item in reply.data] == [0, 1, 2]
    return [item.embedding for item in reply.data]


def embed_with_openai_floats(url: str, model: str) -> list[list[float]]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        reply = client.embeddings.create(model=model, input=TEXTS, dimensions=SIZE, encoding_format="float")
    return [item.embedding for item in reply.data]


def embed_with_gemini(url: str, model: str) -> list[list[float]]:
    options = gemini_types.HttpOptions(base_url=url)
    with genai.Client(api_key="k", http_options=options) as client:
        settings = gemini_types.EmbedContentConfig(output_dimensionality=SIZE)
        contents: Any = [gemini_types.Content(parts=[gemini_types.Part(text=text)]) for text in TEXTS]
        reply = client.models.embed_content(model=model, contents=contents, config=settings)
    return [one.values or [] for one in reply.embeddings or []]


def embed_with_cohere(url: str, model: str) -> list[list[float]]:
    with httpx.Client() as http:
        client = cohere.ClientV2(api_key="k", base_url=url, httpx_client=http)
        reply = client.embed(
            model=model, texts=TEXTS, input_type="search_document", embedding_types=["float"], output_dimension=SIZE
        )
    return reply.embeddings.float_ or []


def embed_with_ollama(url: str, model: str) -> list[list[float]]:
    with ollama.Client(host=url) as client:
        reply = client.embed(model=model, input=TEXTS, dimensions=SIZE)
    return [list(vector) for vector in reply.embeddings]


def embed_with_mistral(url: str, model: str) -> list[list[float]]:
    with Mistral(api_key="k", server_url=url) as client:
        reply = client.embeddings.create(model=model, inputs=TEXTS, output_dimension=SIZE)
    return [item.embedding or [] for item in reply.data]


def boto3_client(url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="a",
        aws_secret_access_key="b",  # noqa: S106 - not a secret
        config=Config(retries={"max_attempts": 0}),
    )


def invoke(url: str, model: str, body: dict[str, Any]) -> Any:
    client = boto3_client(url)
    try:
        return json.loads(client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
    finally:
        client.close()


def embed_with_titan_body(url: str, model: str) -> list[list[float]]:
    replies = [invoke(url, model, {"inputText": text, "dimensions": SIZE}) for text in TEXTS]
    assert all(reply["inputTextTokenCount"] > 0 for reply in replies)
    return [reply["embedding"] for reply in replies]


def embed_with_cohere_body(url: str, model: str) -> list[list[float]]:
    body = {"texts": TEXTS, "input_type": "search_query", "output_dimension": SIZE}
    found: list[list[float]] = invoke(url, model, body)["embeddings"]
    return found


def embed_with_nova_body(url: str, model: str) -> list[list[float]]:
    def body(text: str) -> dict[str, Any]:
        parameters = {"embeddingPurpose": "GENERIC_INDEX", "embeddingDimension": SIZE}
        return {
            "taskType": "SINGLE_EMBEDDING",
            "singleEmbeddingParams": {**parameters, "text": {"truncationMode": "END", "value": text}},
        }

    return [invoke(url, model, body(text))["embeddings"][0]["embedding"] for text in TEXTS]


CLIENTS: dict[str, Callable[[str, str], list[list[float]]]] = {
    "openai": embed_with_openai,
    "openai floats": embed_with_openai_floats,
    "google-genai": embed_with_gemini,
    "cohere": embed_with_cohere,
    "ollama": embed_with_ollama,
    "mistralai": embed_with_mistral,
    "boto3 titan": embed_with_titan_body,
    "boto3 cohere": embed_with_cohere_body,
    "boto3 nova": embed_with_nova_body,
}


def is_possible(client: str, upstream: str) -> bool:
    """Whether a client can use an upstream: the body for a model of Bedrock's own is the one of its family."""
    family = client.removeprefix("boto3 ")
    return family == client or not upstream.startswith("bedrock/") or family in upstream


@pytest.mark.parametrize(
    ("client", "upstream"), [pair for pair in itertools.product(CLIENTS, UPSTREAMS) if is_possible(*pair)]
)
def test_every_sdk_gets_the_vectors_of_every_upstream(served: Served, client: str, upstream: str) -> None:
    vectors = CLIENTS[client](served.url, upstream)
    assert len(vectors) == len(VECTORS)
    for vector, expected in zip(vectors, VECTORS, strict=True):
        assert vector == pytest.approx(expected, abs=NEAR)
    usage = served.records[-1].reply.usage
    assert usage is not None
    assert usage["input_tokens"] > 0


# --- requests ------------------------------------------------------------------------------------------


def test_the_own_provider_gets_the_request_as_it_is(simulated: Server, served: Served) -> None:
    body = b'{ "input":"hello",  "model": "text-embedding-3-small", "user": "u-1" }'
    got = ask(served, "/v1/embeddings", body)
    assert got.status == 200
    assert served.records[-1].sent.body == body
    assert "unchanged" in got.headers["x-toolglot-report"] or "nothing was changed" in got.headers["x-toolglot-report"]
    assert simulated.requests[-1].body == json.loads(body)


def test_only_the_name_of_the_model_changes_for_the_own_provider(simulated: Server, served: Served) -> None:
    body = {"model": "openai/text-embedding-3-small", "input": ["a"], "encoding_format": "base64"}
    got = ask(served, "/v1/embeddings", body)
    assert simulated.requests[-1].body == {**body, "model": "text-embedding-3-small"}
    packed = base64.b64decode(got.body["data"][0]["embedding"])
    expected = struct.pack("<64f", *simulated_vector("a"))
    assert packed == expected


def test_a_client_of_gemini_embeds_one_text(simulated: Server, served: Served) -> None:
    one = {"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "outputDimensionality": SIZE}
    for model in ("gemini-embedding-001", "openai/text-embedding-3-small"):
        got = ask(served, f"/v1beta/models/{model}:embedContent", one)
        assert got.body["embedding"]["values"] == pytest.approx(simulated_vector("ab", SIZE))
    assert simulated.requests[-2].path.endswith("/v1beta/models/gemini-embedding-001:embedContent")


def test_the_older_endpoint_of_ollama_embeds_one_text(served: Served) -> None:
    for model in ("ollama/nomic-embed-text", "cohere/embed-v4.0"):
        got = ask(served, "/api/embeddings", {"model": model, "prompt": "hello"})
        assert got.body == {"embedding": simulated_vector("hello")}


def test_many_inputs_are_sent_in_parts_and_stay_in_order(simulated: Server, served: Served) -> None:
    texts = [f"text {number}" for number in range(205)]
    before = len(simulated.requests)
    got = ask(served, "/v1/embeddings", {"model": "gemini/gemini-embedding-001", "input": texts, "dimensions": 4})
    assert [item["embedding"] for item in got.body["data"]] == [simulated_vector(text, 4) for text in texts]
    assert len(simulated.requests) - before == 3
    assert got.body["usage"]["prompt_tokens"] == sum(max(1, len(text) // 4) for text in texts)
    assert "3 requests are sent" in got.headers["x-toolglot-report"]


def test_a_failed_part_fails_the_whole_request(simulated: Server, served: Served) -> None:
    simulated.fault("429,retry_after=7")
    got = ask(served, "/v1/embeddings", {"model": "gemini/gemini-embedding-001", "input": ["a"] * 150})
    assert got.status == 429
    assert got.headers["retry-after"] == "7"
    assert got.body["error"]["code"] or got.body["error"]["type"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "'document' was assumed"),
        ({"input_type": "query"}, "only the client's own provider knows input_type"),
    ],
)
def test_a_task_is_assumed_where_the_provider_must_have_one(
    simulated: Server, served: Served, fields: dict[str, str], expected: str
) -> None:
    got = ask(served, "/v1/embeddings", {"model": "cohere/embed-v4.0", "input": "a", **fields})
    assert got.status == 200
    assert expected in got.headers["x-toolglot-report"]
    task = "search_query" if fields else "search_document"
    assert simulated.requests[-1].body["input_type"] == task


def test_tasks_are_carried_between_gemini_and_cohere(simulated: Server, served: Served) -> None:
    one = {"content": {"parts": [{"text": "a"}]}, "taskType": "QUESTION_ANSWERING", "title": "T"}
    got = ask(served, "/v1beta/models/cohere%2Fembed-v4.0:embedContent", one)
    assert simulated.requests[-1].body["input_type"] == "search_query"
    report = [entry.reason for entry in served.records[-1].sent.entries]
    assert any("does not have the task 'question_answering'" in reason for reason in report)
    assert any("no field for a title" in reason for reason in report)
    assert got.status == 200


# --- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"model": "anthropic/claude-opus-5", "input": "a"}, 400, "has no embeddings"),
        ({"model": "gemini/gemini-embedding-001", "input": [1, 2]}, 400, "not ids of tokens"),
        ({"model": "gemini/gemini-embedding-001", "input": []}, 400, "at least one input"),
        ({"model": "gemini/gemini-embedding-001", "input": [[]]}, 400, "$.input[0]"),
        ({"model": "gemini/gemini-embedding-001", "input": {"a": 1}}, 400, "expected a string or an array"),
        ({"model": "gemini/gemini-embedding-001"}, 400, "$.input"),
        ({"input": "a"}, 400, "$.model"),
        ({"model": "bedrock/amazon.titan-embed-text-v1", "input": "a", "dimensions": 5}, 400, "one length only"),
        ({"model": "cohere/embed-v4.0", "input": "a", "output_dtype": "int8"}, 400, "vectors of int8"),
        ({"model": "bedrock/amazon.titan-embed-text-v2:0", "input": ["a"] * 257}, 413, "at most 256 inputs"),
        ({"model": "no-such-model", "input": "a"}, 404, "unknown model 'no-such-model'"),
        ([], 400, "expected an object"),
    ],
)
def test_a_request_that_cannot_be_embedded_is_refused_with_a_reason(
    served: Served, body: Any, status: int, expected: str
) -> None:
    got = ask(served, "/v1/embeddings", body)
    assert got.status == status
    assert expected in got.body["error"]["message"]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"model":"a","input":' + b"[" * 500, b"null"])
def test_garbage_is_refused(served: Served, data: bytes) -> None:
    for path in ("/v1/embeddings", "/v1beta/models/gemini-embedding-001:batchEmbedContents"):
        assert ask(served, path, data).status == (413 if b"[[" in data else 400)


def test_errors_have_the_form_of_the_client(served: Served) -> None:
    got = ask(served, "/v2/embed", {"model": "anthropic/claude-opus-5", "texts": ["a"], "input_type": "search_query"})
    assert "has no embeddings" in got.body["message"]
    got = ask(served, "/v1beta/models/anthropic%2Fclaude-opus-5:embedContent", {"content": {"parts": [{"text": "a"}]}})
    assert got.body["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("model", "status", "expected"),
    [
        ("openai/gpt-4.1", 403, "not allowed to generate embeddings"),
        ("gemini/gemini-2.5-flash", 404, "not supported for embedContent"),
        ("cohere/command-a-03-2025", 400, "does not support embeddings"),
    ],
)
def test_a_model_that_writes_is_refused_as_its_provider_does(
    served: Served, model: str, status: int, expected: str
) -> None:
    got = ask(served, "/v1/embeddings", {"model": model, "input": "a"})
    assert got.status == status
    assert expected in got.body["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "openai/a", "model": "text-embedding-3-small", "input": "x"}',
        b'{"mod\\u0065l": "openai/a", "model": "text-embedding-3-small", "input": "x"}',
        b'{"Model": "openai/a", "model": "text-embedding-3-small", "input": "x"}',
    ],
)
def test_a_second_model_is_refused(served: Served, body: bytes) -> None:
    got = ask(served, "/v1/embeddings", body)
    assert got.status == 400
    assert "`model` more than once" in got.body["error"]["message"]
