"""The record of the OpenAI Chat Completions protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol, TokenCount
from toolglot.protocols.fields.body_schemas import FLAG, MODEL, OBJECTS, TEXT, TOKENS, object_schema

ERROR_SCHEMA: Final = object_schema(
    error={
        **object_schema(message=TEXT, type=TEXT),
        "properties": {"message": TEXT, "type": TEXT, "param": {}, "code": {}},
    }
)

PROTOCOL: Final = Protocol(
    name="openai_chat",
    package=__package__,
    provider="openai",
    base_target="openai_compatible",
    sdk="openai",
    path="/chat/completions",
    forwarded_headers=("openai-beta",),
    models=ModelList(path="/models", list_extra={"object": "list"}),
    # Kimi's estimate-token-count and vLLM's tokenize: the only servers of Chat Completions that count.
    counts=TokenCount(reply_paths=(("data", "total_tokens"), ("count",))),
    routes=(
        ClientRoute(
            action="generate",
            paths=("/v1/chat/completions", "/chat/completions"),
            required={"model": MODEL, "messages": OBJECTS},
            optional={"stream": FLAG, "tools": OBJECTS, "max_tokens": TOKENS},
        ),
        ClientRoute(action="models", paths=("/v1/models", "/models")),
        ClientRoute(action="model", paths=(r"/(?:v1/)?models/(?P<model>.+)",), is_pattern=True),
    ),
    service_prefix="/v1/",
    returned_headers=("x-ratelimit-", "openai-processing-ms"),
    reply_id_prefix="chatcmpl-",
    error_schema=ERROR_SCHEMA,
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "developer", "tool", "function"}),
        part_types=frozenset(
            {"text", "refusal", "image_url", "video_url", "input_audio", "file", "document_url", "file_url", "thinking"}
        ),
        part_rank=3,
        has_call_list=True,
        thinking_is_list=True,
    ),
    base_url="versioned",
    features=frozenset(
        {
            "arguments_as_text",
            "choice_field",
            "custom_tools",
            "developer_role",
            "efforts",
            "empty_results",
            "empty_turns",
            "named_results",
            "named_speakers",
            "null_content",
            "parallel_switch",
            "prefill_flags",
            "result_messages",
            "strict_tools",
            "system_messages",
            "text_parts",
            "text_with_calls",
            "two_limit_fields",
        }
    ),
    inexpressible={"request.sampling": ("top_k",)},
    tool_style="openai",
    has_image_detail=True,
    has_schema_description=True,
    reply_marks={"choices": list},
    reply_rank=2,
)
