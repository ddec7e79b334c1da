"""The record of the OpenAI Chat Completions protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol, RequestMarks, TokenCount, words
from toolglot.protocols.fields.body_schemas import FLAG, INPUTS, MODEL, OBJECTS, TEXT, TOKENS, object_schema
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.shared_fields import OPENAI_FIELDS
from toolglot.protocols.passed_paths import PassedPaths, StoredCollection

ERROR_SCHEMA: Final = object_schema(
    error={
        **object_schema(message=TEXT, type=TEXT),
        "properties": {"message": TEXT, "type": TEXT, "param": {}, "code": {}},
    }
)


def _is_fragment(fields: Fields) -> bool:
    """Whether an object seems to be a piece of a reply or a chunk of a stream."""
    return "choices" in fields or "tool_calls" in fields or isinstance(fields.get("function"), dict)


PROTOCOL: Final = Protocol(
    name="openai_chat",
    package=__package__,
    provider="openai",
    base_target="openai_compatible",
    sdk="openai",
    sdk_example="import openai\n\n"
    "client = openai.OpenAI(base_url=<url>, api_key=<key>)\n"
    "# The whole body is in extra_body: it may have fields that the SDK does not know.\n"
    "known = {name: body[name] for name in ('model', 'messages', 'stream') if name in body}\n"
    "reply = client.chat.completions.create(**known, extra_body=body)",
    path="/chat/completions",
    embeddings_path="/embeddings",
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
        ClientRoute(
            action="embed", paths=("/v1/embeddings", "/embeddings"), required={"model": MODEL, "input": INPUTS}
        ),
        ClientRoute(action="models", paths=("/v1/models", "/models")),
        ClientRoute(action="model", paths=(r"/(?:v1/)?models/(?P<model>.+)",), is_pattern=True),
    ),
    service_prefix="/v1/",
    passed=PassedPaths(
        stateless=(
            r"moderations|completions|rerank|ocr|fim/completions|images/(?:generations|edits|variations)"
            r"|audio/(?:speech|transcriptions|translations)"
        ),
        collections=(
            StoredCollection("files", holds_requests=True),
            StoredCollection("batches", batch="file"),
            StoredCollection("uploads"),
            StoredCollection("vector_stores"),
            StoredCollection("containers"),
            StoredCollection("videos", runs_model=True),
            StoredCollection("fine_tuning/jobs", runs_model=True),
        ),
        references=words(
            "file_id file_ids input_file_id training_file validation_file vector_store_id vector_store_ids container"
            " container_id part_ids batch_id eval_id video_id after before"
        ),
        results=words("output_file_id error_file_id result_files file"),
    ),
    returned_headers=("x-ratelimit-", "openai-processing-ms"),
    reply_id_prefix="chatcmpl-",
    error_schema=ERROR_SCHEMA,
    turns="messages",
    has_separate_tools=True,
    shared_fields=OPENAI_FIELDS,
    usage_switch=("stream_options", "include_usage"),
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
    request_marks=RequestMarks(
        fields=words(
            "metadata service_tier top_k top_p cache_control max_tokens temperature thinking",
            "seed frequency_penalty presence_penalty response_format documents priority logprobs top_logprobs",
            "stop max_completion_tokens n logit_bias parallel_tool_calls stream_options functions function_call user",
            "store modalities audio prediction web_search_options reasoning_effort verbosity prompt_cache_key",
            "safety_identifier random_seed safe_prompt prompt_mode chat_template_kwargs min_p reasoning",
        ),
        message_fields=words(
            "tool_calls tool_call_id",
            "reasoning_content reasoning reasoning_details refusal audio function_call name prefix",
        ),
        roles=words("tool developer function"),
        block_types=words("text image_url input_audio file refusal video_url reference document_url"),
        choices=words("auto none required any"),
        choice_types=words("function custom allowed_tools"),
        shapes=frozenset(
            {
                "block: unknown type",
                "call: arguments as a string",
                "call: arguments as an object",
                "call: no arguments",
                "content: list",
                "content: null",
                "content: string",
                "system message: first",
                "system message: later",
                "thinking: list",
                "thinking: plain",
                "tool: custom",
                "tool: function",
            }
        ),
        models=(
            r"(?i:(ft:)?(gpt-\d|chatgpt|o\d(-|$))|grok-|kimi-|(?!command-|c4ai-)[\w.-]+-latest$)"
            r"|(?!hf\.co/)(?!(?i:command-|c4ai-))[\w.-]+/[\w.:/-]+$"
        ),
    ),
    is_fragment=_is_fragment,
    reply_marks={"choices": list},
    reply_rank=2,
)
