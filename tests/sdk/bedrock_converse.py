"""Requests of boto3, Bedrock Converse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, BIG, HARD_TEXT, NESTED, PDF_BYTES, PNG_BYTES, SIGNATURE, WEATHER

MODEL: Final = "anthropic.claude-opus-5-v1:0"
QUESTION: Final[dict[str, Any]] = {"role": "user", "content": [{"text": "What is the weather in Köln?"}]}
TOOL: Final[dict[str, Any]] = {
    "toolSpec": {"name": "get_weather", "description": "The weather", "inputSchema": {"json": WEATHER}}
}
CALLS: Final[dict[str, Any]] = {
    "role": "assistant",
    "content": [
        {"reasoningContent": {"reasoningText": {"text": "Two cities.", "signature": SIGNATURE}}},
        {"reasoningContent": {"redactedContent": b"redacted"}},
        {"text": "Let me look."},
        {"toolUse": {"toolUseId": "tooluse_A", "name": "get_weather", "input": {"city": "Köln", "days": BIG}}},
        {"toolUse": {"toolUseId": "tooluse_B", "name": "get_weather", "input": {}}},
    ],
}
HISTORY: Final[list[dict[str, Any]]] = [
    QUESTION,
    CALLS,
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "tooluse_A", "content": [{"text": "7 °C"}], "status": "success"}},
            {"toolResult": {"toolUseId": "tooluse_B", "content": [{"text": "no city"}], "status": "error"}},
        ],
    },
]


def plain(client: Any) -> object:
    return client.converse(modelId=MODEL, messages=[QUESTION])


def system_and_cache(client: Any) -> object:
    return client.converse(
        modelId=MODEL,
        system=[{"text": "Be brief."}, {"text": HARD_TEXT}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        messages=[{"role": "user", "content": [{"text": HARD_TEXT}, {"cachePoint": {"type": "default"}}]}],
    )


def media(client: Any) -> object:
    s3 = {"uri": "s3://bucket/key", "bucketOwner": "111122223333"}
    return client.converse(
        modelId=MODEL,
        messages=[
            {
                "role": "user",
                "content": [
                    {"image": {"format": "png", "source": {"bytes": PNG_BYTES}}},
                    {"image": {"format": "jpeg", "source": {"s3Location": s3}}},
                    {
                        "document": {
                            "format": "pdf",
                            "name": "Report",
                            "source": {"bytes": PDF_BYTES},
                            "context": "of May",
                            "citations": {"enabled": True},
                        }
                    },
                    {"document": {"name": "Text", "source": {"text": HARD_TEXT}}},
                    {"document": {"format": "csv", "name": "Table", "source": {"content": [{"text": "a,b"}]}}},
                    {"video": {"format": "mp4", "source": {"s3Location": s3}}},
                    {"audio": {"format": "wav", "source": {"bytes": b"RIFF"}}},
                    {
                        "searchResult": {
                            "source": "https://example.com",
                            "title": "Example",
                            "content": [{"text": "found"}],
                            "citations": {"enabled": False},
                        }
                    },
                    {"guardContent": {"text": {"text": "guard this", "qualifiers": ["query"]}}},
                    {"text": "Compare."},
                ],
            }
        ],
    )


def tools_of_every_kind(client: Any) -> object:
    return client.converse(
        modelId=MODEL,
        messages=[QUESTION],
        toolConfig={
            "tools": [
                {"toolSpec": {**TOOL["toolSpec"], "strict": True}},
                {"toolSpec": {"name": "query", "inputSchema": {"json": NESTED}}},
                {"systemTool": {"name": "nova_grounding"}},
                {"cachePoint": {"type": "default"}},
            ]
        },
    )


def _choice(client: Any, choice: dict[str, Any]) -> object:
    return client.converse(modelId=MODEL, messages=[QUESTION], toolConfig={"tools": [TOOL], "toolChoice": choice})


def choice_auto(client: Any) -> object:
    return _choice(client, {"auto": {}})


def choice_any(client: Any) -> object:
    return _choice(client, {"any": {}})


def choice_tool(client: Any) -> object:
    return _choice(client, {"tool": {"name": "get_weather"}})


def history(client: Any) -> object:
    return client.converse(modelId=MODEL, messages=HISTORY, toolConfig={"tools": [TOOL]})


def results_with_media(client: Any) -> object:
    content = [
        {"text": "the map"},
        {"json": {"t": 1.0, "n": [1, None, BIG]}},
        {"image": {"format": "png", "source": {"bytes": PNG_BYTES}}},
        {"document": {"format": "pdf", "name": "Map", "source": {"bytes": PDF_BYTES}}},
    ]
    results = [
        {"toolResult": {"toolUseId": "tooluse_A", "content": content}},
        {"toolResult": {"toolUseId": "tooluse_B", "content": [{"json": {"ok": True}}]}},
        {"cachePoint": {"type": "default"}},
        {"text": "And now?"},
    ]
    return client.converse(
        modelId=MODEL, messages=[QUESTION, CALLS, {"role": "user", "content": results}], toolConfig={"tools": [TOOL]}
    )


def citations_replayed(client: Any) -> object:
    citation = {
        "title": "Report",
        "sourceContent": [{"text": "7"}],
        "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 1}},
    }
    block = {"citationsContent": {"content": [{"text": "7 °C"}], "citations": [citation]}}
    return client.converse(
        modelId=MODEL,
        messages=[
            QUESTION,
            {"role": "assistant", "content": [block]},
            {"role": "user", "content": [{"text": "Thanks"}]},
        ],
    )


def sampling(client: Any) -> object:
    return client.converse(
        modelId=MODEL,
        messages=[QUESTION],
        inferenceConfig={"maxTokens": 64, "temperature": 1.0, "topP": 1e-7, "stopSequences": ["END"]},
    )


def additional_fields(client: Any) -> object:
    return client.converse(
        modelId=MODEL,
        messages=[QUESTION],
        additionalModelRequestFields={"thinking": {"type": "adaptive"}, "top_k": 40, "odd": [1, 1.0, None, BIG]},
        additionalModelResponseFieldPaths=["/stop_sequence"],
    )


def structured(client: Any) -> object:
    structure = {"jsonSchema": {"schema": json.dumps(ANSWER), "name": "answer", "description": "An answer"}}
    return client.converse(
        modelId=MODEL,
        messages=[QUESTION],
        outputConfig={"textFormat": {"type": "json_schema", "structure": structure}},
    )


def guarded(client: Any) -> object:
    return client.converse(
        modelId=MODEL,
        messages=[QUESTION],
        guardrailConfig={"guardrailIdentifier": "g1", "guardrailVersion": "1", "trace": "enabled"},
        requestMetadata={"trace": "t1"},
        performanceConfig={"latency": "optimized"},
        serviceTier={"type": "priority"},
        promptVariables={"city": {"text": "Köln"}},
    )


def stream(client: Any) -> None:
    client.converse_stream(modelId=MODEL, messages=HISTORY, toolConfig={"tools": [TOOL]})["stream"].close()


@contextmanager
def _open(url: str) -> Iterator[Any]:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="id",
        aws_secret_access_key="key",  # noqa: S106
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    try:
        yield client
    finally:
        client.close()


SDK: Final = Sdk(
    "boto3",
    "bedrock",
    "boto3",
    _open,
    named(
        *(plain, system_and_cache, media, tools_of_every_kind, choice_auto, choice_any, choice_tool, history),
        *(results_with_media, citations_replayed, sampling, additional_fields, structured, guarded, stream),
    ),
)
