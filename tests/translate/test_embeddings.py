"""Embeddings: what is written is read again, vectors are never changed, and every part of a request is in its order."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import profiles
from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest
from toolglot.errors import InputError, RefusedError
from toolglot.protocols.base import EmbeddingCodec, codec
from toolglot.protocols.fields.vectors import base64_of, vector_of
from toolglot.translate.embeddings import (
    checked_tokens,
    read_embeddings,
    reply_embeddings,
    request_embeddings,
)

TARGETS = (
    ("openai", "text-embedding-3-small"),
    ("mistral", "mistral-embed"),
    ("gemini", "gemini-embedding-001"),
    ("gemini", "gemini-embedding-2-preview"),
    ("vertex", "gemini-embedding-2"),
    ("cohere", "embed-v4.0"),
    ("ollama", "nomic-embed-text"),
    ("bedrock", "amazon.titan-embed-text-v2:0"),
    ("bedrock", "cohere.embed-v4:0"),
    ("bedrock", "amazon.nova-2-multimodal-embeddings-v1:0"),
)
TASKS = ("query", "document", "similarity", "classification", "clustering", "question_answering", "code_query")
floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
texts = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())
requests = st.builds(
    EmbeddingRequest,
    st.lists(texts, min_size=1, max_size=5).map(tuple),
    task=st.sampled_from([None, *TASKS]),
    title=st.none() | texts,
    dimensions=st.none() | st.integers(1, 4096),
    truncation=st.sampled_from([None, "none", "start", "end"]),
)


def codec_of(name: str) -> EmbeddingCodec:
    found = codec(profiles.get(name).protocol).embeddings
    assert found is not None
    return found


@pytest.mark.law
@pytest.mark.parametrize(("target", "model"), TARGETS)
@given(request=requests)
def test_law_2_a_target_reads_the_inputs_and_settings_that_were_written_for_it(
    target: str, model: str, request: EmbeddingRequest
) -> None:
    profile = profiles.get(target, model)
    request = msgspec.structs.replace(request, model=model)
    out = request_embeddings(
        request, profile, profiles.get("gemini" if profile.protocol == "openai_chat" else "openai")
    )
    read = [codec_of(target).decode_request(json.loads(json.dumps(body))) for body in out.bodies]
    assert tuple(text for part in read for text in part.inputs) == request.inputs
    assert {part.dimensions for part in read} == {request.dimensions}
    reported = " ".join(entry.reason for entry in out.entries)
    for name in ("task", "title"):
        wanted, kept = getattr(request, name), {getattr(part, name) for part in read}
        assert kept == {wanted} or name in reported or (name == "task" and "what the vectors are for" in reported)


@pytest.mark.law
@pytest.mark.parametrize(("source", "model"), TARGETS)
@given(vectors=st.lists(st.lists(floats, min_size=1, max_size=6), min_size=1, max_size=4), is_base64=st.booleans())
def test_law_2_a_client_reads_the_vectors_that_the_provider_sent(
    source: str, model: str, vectors: list[list[float]], is_base64: bool
) -> None:
    profile = profiles.get(source, model)
    form = profile.embeddings.form if profile.protocol == "bedrock" else ""
    is_single = form in ("titan", "nova")
    vectors = vectors[:1] if is_single else vectors
    request = EmbeddingRequest(("a",) * len(vectors), model, is_list=not is_single, is_base64=is_base64, form=form)
    written = codec_of(source).encode_reply(EmbeddingReply(tuple(vectors), model, 7), request)
    reply = codec_of(source).decode_reply(msgspec.json.encode(written), profile)
    assert [*reply.vectors] == vectors
    body, _ = reply_embeddings([msgspec.json.encode(written)], request, profile, profiles.get("openai"))
    assert [vector_of(item["embedding"], "$") for item in body["data"]] == vectors


@given(st.lists(floats, max_size=50))
def test_floats_survive_base64(vector: list[float]) -> None:
    assert vector_of(base64_of(vector), "$") == vector


def test_a_number_that_no_32_bit_float_holds_is_not_written_as_base64() -> None:
    with pytest.raises(InputError, match="32-bit float"):
        base64_of([1e300, 1.0])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_in_base64_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(InputError, match="not finite"):
        vector_of(base64_of([1.0, number]), "$")


def test_a_reply_out_of_order_is_sorted_by_its_indices() -> None:
    data = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    openai = profiles.get("openai")
    body, _ = reply_embeddings([msgspec.json.encode({"data": data})], EmbeddingRequest(("a", "b")), openai, openai)
    assert [item["embedding"] for item in body["data"]] == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"data": 1}',
        b'{"data": [{"embedding": ["a"]}]}',
        b'{"data": [{"embedding": "!"}]}',
        b'{"data": [{"embedding": "AAA="}]}',
        b'{"data": []}',
        b'{"data": [{"embedding": [1]}, {"embedding": [2]}]}',
        b"[" * 5000,
    ],
)
def test_a_reply_that_cannot_be_used_is_an_error(data: bytes) -> None:
    openai = profiles.get("openai")
    with pytest.raises(InputError):
        reply_embeddings([data], EmbeddingRequest(("a",)), openai, openai)
    with pytest.raises(InputError):
        checked_tokens(data, EmbeddingRequest(("a",)), openai)


@pytest.mark.parametrize(
    "body",
    [
        {"requests": []},
        {"requests": [{"content": {"parts": [{"text": "a"}]}}, {"content": {"parts": [{"text": "b"}]}, "title": "t"}]},
        {"content": {"parts": [{"inlineData": {}}]}},
        {"content": {}},
        {},
    ],
)
def test_a_body_of_gemini_that_cannot_be_read_is_an_error_with_its_path(body: dict[str, Any]) -> None:
    with pytest.raises(InputError) as raised:
        read_embeddings(json.dumps(body).encode(), profiles.get("gemini"), model="m")
    assert raised.value.path.startswith("$.")


def test_what_only_the_own_provider_knows_is_dropped_and_reported() -> None:
    received = read_embeddings(b'{"model": "m", "input": "a", "user": "u", "priority": 3}', profiles.get("openai"))
    out = request_embeddings(received.request, profiles.get("gemini", "m"), profiles.get("openai"))
    assert "user" not in json.dumps(out.bodies)
    assert ["priority" in entry.reason and "user" in entry.reason for entry in out.entries] == [True]
    same = request_embeddings(received.request, profiles.get("vllm", "m"), profiles.get("openai"))
    assert same.bodies[0] == {"model": "m", "input": "a", "user": "u", "priority": 3}


def test_a_provider_without_embeddings_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="Anthropic Messages has no embeddings"):
        request_embeddings(EmbeddingRequest(("a",), "m"), profiles.get("anthropic"), profiles.get("openai"))


@pytest.mark.parametrize("count", [-1, 2**62, 10**15])
def test_a_count_of_tokens_that_cannot_be_true_is_not_taken(count: int) -> None:
    openai = profiles.get("openai", "text-embedding-3-small")
    usage = {"prompt_tokens": count, "total_tokens": count}
    data = json.dumps({"data": [{"index": 0, "embedding": [1.0]}], "usage": usage}).encode()
    request = EmbeddingRequest(("a",), model="text-embedding-3-small")
    assert checked_tokens(data, request, openai) is None
    assert reply_embeddings([data], request, openai, openai)[1].input_tokens is None


@pytest.mark.parametrize(
    "vectors", [[], [[1.0], [2.0]], [base64_of([math.nan])], [base64_of([1.0])[:-3]], ["no base64"], [["x"]], [None]]
)
def test_a_reply_of_the_clients_own_provider_is_one_vector_of_finite_numbers_for_each_input(vectors: list[Any]) -> None:
    openai = profiles.get("openai", "text-embedding-3-small")
    data = json.dumps({"data": [{"index": i, "embedding": each} for i, each in enumerate(vectors)]}).encode()
    with pytest.raises(InputError):
        checked_tokens(data, EmbeddingRequest(("a",)), openai)


def test_vectors_of_other_numbers_are_the_providers_own() -> None:
    cohere = profiles.get("cohere", "embed-v4.0")
    data = json.dumps({"embeddings": {"int8": [[1, 2]]}}).encode()
    assert checked_tokens(data, EmbeddingRequest(("a",), number_types=("int8",)), cohere) is None


@pytest.mark.parametrize("extra", [{}, {"user": "u"}])
def test_a_native_reply_with_numbers_that_are_not_finite_is_an_error_with_unknown_fields_too(
    extra: dict[str, str],
) -> None:
    openai = profiles.get("openai", "text-embedding-3-small")
    fields = {"model": "m", "input": "x", "encoding_format": "base64", **extra}
    request = read_embeddings(json.dumps(fields).encode(), openai).request
    for packed in (struct.pack("<f", math.nan), struct.pack("<f", math.inf)):
        reply = {"data": [{"embedding": base64.b64encode(packed).decode(), "index": 0}]}
        with pytest.raises(InputError, match="not finite"):
            checked_tokens(json.dumps(reply).encode(), request, openai)
    with pytest.raises(InputError):
        checked_tokens(b'{"data": [{"embedding": [NaN]}]}', request, openai)
