"""Generated bodies of the Bedrock Converse protocol."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, counts, numbers, wire_object


def member(key: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    """A union with one member, the others absent or null."""
    return wire_object({key: values}, {other: st.none() for other in ("text", "json") if other != key})


def media(kind: str, formats: list[str]) -> st.SearchStrategy[Fields]:
    return member(
        kind, wire_object({"source": sources}, {"format": st.sampled_from(formats), "name": texts, "context": texts})
    )


sources = st.one_of(
    st.just({"bytes": "aGk="}),
    st.fixed_dictionaries({"s3Location": wire_object({"uri": texts | st.just("s3://b/k")}, {"bucketOwner": texts})}),
    wire_object({}, {"bytes": texts, "text": texts}),
)
bedrock_text = member("text", texts)
bedrock_media = st.one_of(
    media("image", ["png", "jpeg", "jpg", "later", "", "a/b", "a;b"]),
    media("document", ["pdf", "txt", "md", "later", ""]),
    media("video", ["mp4", "three_gp", "mkv"]),
    media("audio", ["mp3", "mpeg", "wav"]),
)
worded = st.one_of(
    st.lists(wire_object({"text": texts}, {}) | st.just({"text": "said"}), max_size=2),
    st.lists(json_values, max_size=1),
)
bedrock_words = st.one_of(
    member("citationsContent", wire_object({}, {"content": worded, "citations": st.lists(json_objects, max_size=1)})),
    member("searchResult", wire_object({}, {"content": worded, "source": texts, "title": texts | json_values})),
    member(
        "document",
        wire_object(
            {"source": st.fixed_dictionaries({"text": texts}) | st.fixed_dictionaries({"content": worded})},
            {"format": st.just("txt"), "name": texts, "context": texts},
        ),
    ),
    st.just({"citationsContent": {"content": [{"text": "7 "}, {"text": "°C"}]}}),
)
cache_points = member("cachePoint", wire_object({"type": st.just("default")}, {"ttl": texts}))
reasoning = member(
    "reasoningContent",
    st.one_of(
        wire_object({"reasoningText": wire_object({"text": texts}, {"signature": texts})}, {}),
        wire_object({"redactedContent": texts}, {}),
        wire_object(
            {"reasoningText": wire_object({"text": texts}, {"signature": texts}), "redactedContent": texts}, {}
        ),
        wire_object({}, {}),
    ),
)
results = member(
    "toolResult",
    wire_object(
        {
            "toolUseId": texts,
            "content": st.lists(
                bedrock_text | bedrock_media | bedrock_words | member("json", json_values),
                max_size=2,
            ),
        },
        {
            "status": st.sampled_from(["success", "error", "later"]),
            "type": st.sampled_from(["tool_result", "nova_grounding_result"]),
        },
    ),
)
calls = member(
    "toolUse",
    wire_object(
        {"toolUseId": texts, "name": texts, "input": json_objects},
        {"type": st.sampled_from(["server_tool_use", "later"])},
    ),
)
bedrock_blocks = st.one_of(
    bedrock_text,
    bedrock_media,
    bedrock_words,
    cache_points,
    reasoning,
    results,
    calls,
    member("guardContent", json_objects | wire_object({"text": wire_object({"text": texts}, {})}, {})),
    wire_object({"text": texts, "toolUse": json_objects}, {}),
    wire_object({}, {}),
)
bedrock_messages = wire_object(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(bedrock_blocks, max_size=3)}, {}
)
bedrock_tools = st.one_of(
    member(
        "toolSpec",
        wire_object(
            {"name": texts},
            {
                "description": texts,
                "inputSchema": wire_object({}, {"json": json_objects}),
                "strict": st.booleans(),
            },
        ),
    ),
    cache_points,
    member("systemTool", wire_object({}, {"name": texts})),
    wire_object({}, {}),
)
claude_fields = wire_object(
    {},
    {
        "thinking": json_values
        | wire_object(
            {"type": st.sampled_from(["enabled", "disabled", "adaptive", "later"])},
            {"budget_tokens": counts | json_values},
        ),
        "output_config": json_values | wire_object({}, {"effort": st.just("high") | json_values}),
        "top_k": counts | json_values,
    },
)
schema_texts = texts | json_values.map(json.dumps) | json_objects.map(json.dumps)
output_configs = wire_object(
    {},
    {
        "effort": texts | json_values,
        "textFormat": json_values
        | wire_object(
            {
                "type": st.sampled_from(["json_schema", "later"]),
                "structure": wire_object({"jsonSchema": wire_object({"schema": schema_texts}, {"name": texts})}, {}),
            },
            {},
        ),
    },
)
bedrock_requests = wire_object(
    {"messages": st.lists(bedrock_messages, max_size=4)},
    {
        "modelId": texts,
        "system": st.lists(bedrock_text | cache_points, max_size=2),
        "inferenceConfig": wire_object(
            {},
            {
                "maxTokens": counts,
                "temperature": numbers,
                "topP": numbers,
                "stopSequences": st.lists(texts, max_size=2),
            },
        ),
        "toolConfig": wire_object(
            {},
            {
                "tools": st.lists(bedrock_tools, max_size=2),
                "toolChoice": st.one_of(
                    member("auto", wire_object({}, {"name": texts})),
                    member("any", wire_object({}, {})),
                    member("tool", wire_object({"name": texts}, {})),
                    member("later", wire_object({}, {})),
                ),
            },
        ),
        "additionalModelRequestFields": json_values | claude_fields,
        "outputConfig": json_values | output_configs,
        "requestMetadata": json_objects,
    },
)
bedrock_replies = wire_object(
    {
        "output": wire_object(
            {
                "message": wire_object(
                    {"role": st.just("assistant"), "content": st.lists(bedrock_blocks, max_size=3)}, {}
                )
            },
            {},
        )
    },
    {
        "stopReason": st.sampled_from(
            ["end_turn", "tool_use", "max_tokens", "guardrail_intervened", "malformed_tool_use", "later"]
        ),
        "usage": wire_object(
            {},
            {
                "inputTokens": counts,
                "outputTokens": counts,
                "totalTokens": counts,
                "cacheReadInputTokens": counts,
                "cacheWriteInputTokens": counts,
            },
        ),
        "metrics": json_objects,
    },
)
