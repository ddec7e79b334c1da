"""The real SDKs, served encoded failures over loopback, raise the exceptions that their users catch."""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import boto3
import botocore.config
import botocore.exceptions
import cohere
import cohere.core
import cohere.errors
import ollama
import openai
import pytest
from google import genai
from google.genai import errors as google_errors
from google.genai import types as google_types
from mistralai.client import Mistral
from mistralai.client import errors as mistral_errors

from toolglot import Failure, FailureKind
from toolglot.protocols.errors.kinds import KINDS

SETTINGS = ("ANTHROPIC_", "AWS_", "CO_", "GEMINI_", "GOOGLE_", "MISTRAL_", "OLLAMA_", "OPENAI_")
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]


class Served:
    """A server that answers every request with one failure, in a protocol's shape."""

    def __init__(self) -> None:
        self.answer: tuple[int, dict[str, Any], dict[str, str]] = (500, {}, {})
        self.requests = 0
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                served.requests += 1
                status, body, headers = served.answer
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "content-type": "application/json"}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def set(self, protocol: str, failure: Failure) -> None:
        module = importlib.import_module(f"toolglot.protocols.{protocol}.errors")
        self.answer = (*module.encode(failure), module.headers_of(failure))

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """The server, and an environment without proxies and settings of the SDKs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(SETTINGS) or name.upper().endswith("_PROXY"):
                patch.delenv(name)
        server = Served()
        yield server
        server.close()


def failure_of(kind: FailureKind) -> Failure:
    return Failure(kind, "that did not work", retry_after=2.5, request_id="req_7")


OPENAI: dict[FailureKind, type[openai.APIStatusError]] = {
    "bad_request": openai.BadRequestError,
    "auth": openai.AuthenticationError,
    "permission": openai.PermissionDeniedError,
    "billing": openai.RateLimitError,
    "not_found": openai.NotFoundError,
    "too_large": openai.APIStatusError,
    "context_overflow": openai.BadRequestError,
    "rate_limit": openai.RateLimitError,
    "overloaded": openai.InternalServerError,
    "content_filter": openai.BadRequestError,
    "timeout": openai.InternalServerError,
    "unreachable": openai.InternalServerError,
    "server": openai.InternalServerError,
    "bad_output": openai.InternalServerError,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses"])
def test_openai(served: Served, protocol: str, kind: FailureKind) -> None:
    served.set(protocol, failure_of(kind))
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0) as client:
        calls: dict[str, Callable[[], object]] = {
            "openai_chat": lambda: client.chat.completions.create(model="m", messages=MESSAGES),
            "openai_responses": lambda: client.responses.create(model="m", input="hi"),
        }
        with pytest.raises(openai.APIStatusError) as raised:
            calls[protocol]()
    assert type(raised.value) is OPENAI[kind]
    assert "that did not work" in str(raised.value)
    assert raised.value.request_id == "req_7"
    assert raised.value.response.headers["retry-after"] == "3"
    codes = {"billing": "insufficient_quota", "context_overflow": "context_length_exceeded"}
    if kind in codes:
        assert raised.value.code == codes[kind]


def test_openai_does_not_repeat_a_request_that_is_not_paid_for(served: Served) -> None:
    served.set("openai_chat", failure_of("billing"))
    before = served.requests
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=2)
    with client, pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert served.requests == before + 1


ANTHROPIC: dict[FailureKind, type[anthropic.APIStatusError]] = {
    "bad_request": anthropic.BadRequestError,
    "auth": anthropic.AuthenticationError,
    "permission": anthropic.PermissionDeniedError,
    "billing": anthropic.APIStatusError,
    "not_found": anthropic.NotFoundError,
    "too_large": anthropic.APIStatusError,
    "context_overflow": anthropic.BadRequestError,
    "rate_limit": anthropic.RateLimitError,
    "overloaded": anthropic.InternalServerError,
    "content_filter": anthropic.BadRequestError,
    "timeout": anthropic.InternalServerError,
    "unreachable": anthropic.InternalServerError,
    "server": anthropic.InternalServerError,
    "bad_output": anthropic.InternalServerError,
}
ANTHROPIC_NAMES = {
    "too_large": {"ContentTooLargeError", "RequestTooLargeError"},
    "overloaded": {"OverloadedError"},
    "timeout": {"GatewayTimeoutError", "DeadlineExceededError"},
    "billing": {"APIStatusError", "BillingError", "PaymentRequiredError"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_anthropic(served: Served, kind: FailureKind) -> None:
    served.set("anthropic", failure_of(kind))
    client = anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0)
    with client, pytest.raises(ANTHROPIC[kind]) as raised:
        client.messages.create(model="m", max_tokens=5, messages=MESSAGES)
    name = type(raised.value).__name__
    assert name in ANTHROPIC_NAMES.get(kind, {ANTHROPIC[kind].__name__})
    assert "that did not work" in str(raised.value)
    assert raised.value.request_id == "req_7"


@pytest.mark.parametrize("kind", KINDS)
def test_google_genai(served: Served, kind: FailureKind) -> None:
    served.set("gemini", failure_of(kind))
    client = genai.Client(api_key="k", http_options=google_types.HttpOptions(base_url=served.url))
    with pytest.raises(google_errors.APIError) as raised:
        client.models.generate_content(model="gemini-2.5-flash", contents="hi")
    client.close()
    server_side = kind in ("overloaded", "timeout", "unreachable", "server", "bad_output")
    assert type(raised.value) is (google_errors.ServerError if server_side else google_errors.ClientError)
    assert raised.value.status == served.answer[1]["error"]["status"]
    assert raised.value.code == served.answer[0]
    assert "that did not work" in str(raised.value.message)


@pytest.mark.parametrize("kind", KINDS)
def test_mistral(served: Served, kind: FailureKind) -> None:
    served.set("openai_chat", failure_of(kind))
    with Mistral(api_key="k", server_url=served.url) as client, pytest.raises(mistral_errors.SDKError) as raised:
        client.chat.complete(model="m", messages=MESSAGES)
    assert raised.value.status_code == served.answer[0]
    assert "that did not work" in raised.value.body


COHERE: dict[FailureKind, type[cohere.core.ApiError]] = {
    "bad_request": cohere.errors.BadRequestError,
    "auth": cohere.errors.UnauthorizedError,
    "permission": cohere.errors.ForbiddenError,
    "billing": cohere.core.ApiError,
    "not_found": cohere.errors.NotFoundError,
    "too_large": cohere.core.ApiError,
    "context_overflow": cohere.errors.BadRequestError,
    "rate_limit": cohere.errors.TooManyRequestsError,
    "overloaded": cohere.errors.ServiceUnavailableError,
    "content_filter": cohere.errors.BadRequestError,
    "timeout": cohere.errors.GatewayTimeoutError,
    "unreachable": cohere.core.ApiError,
    "server": cohere.errors.InternalServerError,
    "bad_output": cohere.errors.InternalServerError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_cohere(served: Served, kind: FailureKind) -> None:
    served.set("cohere", failure_of(kind))
    client = cohere.ClientV2(api_key="k", base_url=served.url)
    with pytest.raises(cohere.core.ApiError) as raised:
        client.chat(model="m", messages=MESSAGES, request_options={"max_retries": 0})
    assert type(raised.value) is COHERE[kind]
    assert "that did not work" in str(raised.value.body)


@pytest.mark.parametrize("kind", KINDS)
def test_ollama(served: Served, kind: FailureKind) -> None:
    served.set("ollama", failure_of(kind))
    client = ollama.Client(host=served.url)
    with pytest.raises(ollama.ResponseError, match="that did not work") as raised:
        client.chat(model="m", messages=MESSAGES)
    assert raised.value.status_code == served.answer[0]


BEDROCK: dict[FailureKind, str] = {
    "bad_request": "ValidationException",
    "auth": "UnrecognizedClientException",
    "permission": "AccessDeniedException",
    "billing": "AccessDeniedException",
    "not_found": "ResourceNotFoundException",
    "too_large": "RequestEntityTooLargeException",
    "context_overflow": "ValidationException",
    "rate_limit": "ThrottlingException",
    "overloaded": "ServiceUnavailableException",
    "content_filter": "ValidationException",
    "timeout": "ModelTimeoutException",
    "unreachable": "InternalServerException",
    "server": "InternalServerException",
    "bad_output": "ModelErrorException",
}


@pytest.mark.parametrize("with_headers", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_boto3(served: Served, kind: FailureKind, with_headers: bool) -> None:
    served.set("bedrock", failure_of(kind))
    if not with_headers:
        served.answer = (*served.answer[:2], {})
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=served.url,
        aws_access_key_id="k",
        aws_secret_access_key="s",  # noqa: S106
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )
    name = BEDROCK[kind]
    known = name in client.meta.service_model.shape_names
    expected = getattr(client.exceptions, name) if known else botocore.exceptions.ClientError
    with pytest.raises(botocore.exceptions.ClientError, match="that did not work") as raised:
        client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
    client.close()
    assert raised.value.response["Error"]["Code"] == name
    assert type(raised.value) is expected
    if with_headers:
        assert raised.value.response["ResponseMetadata"]["RequestId"] == "req_7"
