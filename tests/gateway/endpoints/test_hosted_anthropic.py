"""Claude at the paths of the clouds that host it: Bedrock's `invoke` with boto3, and Vertex AI's `rawPredict`.

Laws: every upstream can be behind them; Anthropic itself gets no version and no betas in the body.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from toolglot.protocols.anthropic.host_frames import AwsEventWriter
from toolglot.protocols.framing.aws_frames import AwsFramer
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

BETA = "interleaved-thinking-2025-05-14"
BODY: dict[str, Any] = {
    "anthropic_version": "bedrock-2023-05-31",
    "anthropic_beta": [BETA],
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi"}],
}
UPSTREAMS = ("anthropic/claude-opus-5", "openai_chat/gpt-4.1", "gemini/gemini-3-pro")
VERTEX = "/v1/projects/p/locations/global/publishers/anthropic/models/"


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as server:
        yield server


def bedrock(served: Served) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=served.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",  # noqa: S106 - made up
        config=Config(retries={"max_attempts": 0}),
    )


def check_sent(simulated: Server, upstream: str) -> None:
    sent = simulated.requests[-1]
    assert sent.model == upstream.partition("/")[2]
    assert "anthropic_version" not in sent.body
    assert "anthropic_beta" not in sent.body
    assert sent.headers.get("anthropic-beta") == (BETA if upstream.startswith("anthropic") else None)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_boto3_invokes_a_model(simulated: Server, upstream: str) -> None:
    with gateway(simulated, models={"us.anthropic.*": upstream}) as served:
        got = bedrock(served).invoke_model(modelId="us.anthropic.claude-opus-5-v1:0", body=json.dumps(BODY))
    assert json.loads(got["body"].read())["content"][-1] == {"type": "text", "text": "Hello."}
    check_sent(simulated, upstream)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_boto3_invokes_a_model_for_a_stream(simulated: Server, upstream: str) -> None:
    with gateway(simulated, models={"us.anthropic.*": upstream}) as served:
        got = bedrock(served).invoke_model_with_response_stream(
            modelId="us.anthropic.claude-opus-5-v1:0", body=json.dumps(BODY)
        )
        events = [json.loads(event["chunk"]["bytes"]) for event in got["body"]]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    assert "".join(event["delta"].get("text", "") for event in events if "delta" in event) == "Hello."
    check_sent(simulated, upstream)


def test_boto3_reads_a_stream_that_is_a_compaction(simulated: Server) -> None:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 0}, "pause_after_compaction": True}
    body = json.dumps({**BODY, "context_management": {"edits": [edit]}})
    with gateway(simulated, models={"us.anthropic.*": "gemini/gemini-3-pro"}) as served:
        got = bedrock(served).invoke_model_with_response_stream(modelId="us.anthropic.claude-opus-5-v1:0", body=body)
        events = [json.loads(event["chunk"]["bytes"]) for event in got["body"]]
    (delta,) = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert (delta["type"], delta["content"][:6]) == ("compaction_delta", "Hello.")
    assert events[-2]["delta"]["stop_reason"] == "compaction"


def test_boto3_reads_why_an_invocation_was_refused(simulated: Server) -> None:
    with gateway(simulated) as served, pytest.raises(ClientError) as raised:
        bedrock(served).invoke_model(modelId="us.anthropic.claude-opus-5-v1:0", body=json.dumps({"max_tokens": 5}))
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert "messages" in raised.value.response["Error"]["Message"]


def test_an_error_in_a_stream_is_an_exception_of_it() -> None:
    writer = AwsEventWriter()
    written = writer.add(b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"No."}}\n\n')
    (frame,) = AwsFramer().feed(written + writer.end())
    assert (frame.name, json.loads(frame.data)) == ("!modelStreamErrorException", {"message": "No."})
    assert AwsFramer().feed(writer.add(b"event: error\ndata: no JSON\n\n"))[0].name == "!modelStreamErrorException"


def test_betas_of_a_body_write_no_other_header(simulated: Server) -> None:
    body = {**BODY, "anthropic_beta": [BETA, "a\r\nx-injected: 1", 7, "b,c"]}
    with gateway(simulated, models={"us.anthropic.*": UPSTREAMS[0]}) as served:
        assert ask(served, "/model/us.anthropic.x/invoke", body).status == 200
    check_sent(simulated, UPSTREAMS[0])
    assert "x-injected" not in simulated.requests[-1].headers


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_client_of_vertex_gets_a_reply_and_a_stream(simulated: Server, upstream: str) -> None:
    body = {**BODY, "anthropic_version": "vertex-2023-10-16"}
    with gateway(simulated, models={"claude-*": upstream}) as served:
        got = ask(served, VERTEX + "claude-opus-5@20260101:rawPredict", body)
        assert got.body["content"][-1] == {"type": "text", "text": "Hello."}
        check_sent(simulated, upstream)
        streamed = ask(served, VERTEX + "claude-opus-5@20260101:streamRawPredict", {**body, "stream": True})
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert b"event: message_stop" in streamed.data
        check_sent(simulated, upstream)
        counted = ask(
            served, VERTEX + "count-tokens:rawPredict", {"model": "claude-opus-5", "messages": BODY["messages"]}
        )
        assert counted.body["input_tokens"] > 0


@pytest.mark.parametrize("upstream", ["anthropic/claude-opus-5", "bedrock/anthropic.claude-opus-5-v1:0"])
def test_cache_markers_of_a_hosted_body_are_carried(simulated: Server, upstream: str) -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    body = {**BODY, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": mark}]}]}
    with gateway(simulated, models={"claude-opus-5": upstream, "us.anthropic.*": upstream}) as served:
        bedrock(served).invoke_model(modelId="us.anthropic.claude-opus-5-v1:0", body=json.dumps(body))
        ask(served, f"{VERTEX}claude-opus-5:rawPredict", {**body, "anthropic_version": "vertex-2023-10-16"})
    assert len(simulated.requests) == 2
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    for request in simulated.requests:
        content = request.body["messages"][0]["content"]
        assert content[-1] == (point if upstream.startswith("bedrock") else body["messages"][0]["content"][0])


@pytest.mark.parametrize("stream", [False, True])
def test_claude_on_vertex_as_an_upstream(simulated: Server, stream: bool) -> None:
    """The model is in the path, the version in the body, and a marker of the request on its last block."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    body = {"model": "vertex_claude/claude-opus-5", "max_tokens": 9, "stream": stream, "cache_control": mark}
    body["messages"] = [{"role": "user", "content": "Hi"}]
    with gateway(simulated) as served:
        got = ask(served, "/v1/messages", body, headers={"anthropic-beta": BETA})
        counted = ask(served, "/v1/messages/count_tokens", {**body, "stream": None, "max_tokens": None})
    assert got.status == 200
    assert (b"event: message_stop" in got.data) == stream
    sent = simulated.requests[0]
    action = "streamRawPredict" if stream else "rawPredict"
    assert sent.path == f"/vertex_claude/models/claude-opus-5:{action}"
    assert sent.headers["anthropic-beta"] == BETA
    assert (sent.body["anthropic_version"], sent.body.get("model")) == ("vertex-2023-10-16", None)
    assert sent.body["messages"][-1]["content"] == [{"type": "text", "text": "Hi", "cache_control": mark}]
    assert counted.body["input_tokens"] > 0
