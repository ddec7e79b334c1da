"""The record of Cohere's chat protocol, version 2: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, ListedModel, MessageForm, ModelList, Protocol, RequestMarks, words
from toolglot.protocols.fields.body_schemas import FLAG, MODEL, OBJECTS, TEXT, TEXTS, object_schema
from toolglot.protocols.fields.reading import Fields


def _model_entry(model: ListedModel) -> Fields:
    able = {"tools": model.calls_tools, "vision": model.reads_images, "reasoning": model.limits.thinking}
    entry: Fields = {
        "name": model.name,
        "is_deprecated": False,
        "endpoints": ["chat"],
        "finetuned": False,
        "features": [name for name, is_able in able.items() if is_able],
    }
    return entry if model.limits.window is None else {**entry, "context_length": model.limits.window}


PROTOCOL: Final = Protocol(
    name="cohere",
    package=__package__,
    provider="cohere",
    sdk="cohere",
    sdk_example="import cohere\n\n"
    "client = cohere.ClientV2(base_url=<url>, api_key=<key>)\n"
    "body.pop('stream', None)\n"
    "reply = client.chat<stream>(**body)",
    path="/v2/chat",
    embeddings_path="/v2/embed",
    models=ModelList(
        path="/v1/models", name_field="name", needs=("endpoints", "chat"), entry=_model_entry, list_field="models"
    ),
    routes=(
        ClientRoute(
            action="generate",
            paths=("/v2/chat",),
            required={"model": MODEL, "messages": OBJECTS},
            optional={"stream": FLAG},
        ),
        ClientRoute(
            action="embed",
            paths=("/v2/embed",),
            required={"model": MODEL, "input_type": TEXT},
            optional={"texts": TEXTS, "embedding_types": TEXTS},
        ),
    ),
    error_schema=object_schema(message=TEXT),
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "tool"}),
        part_types=frozenset({"text", "image_url", "document", "thinking"}),
        has_call_list=True,
    ),
    features=frozenset({"arguments_as_text", "empty_results", "empty_turns", "result_messages", "system_messages"}),
    inexpressible={"choice.modes": ("auto", "named", "allowed")},
    tool_style="openai",
    has_image_detail=True,
    request_marks=RequestMarks(
        fields=words(
            "stop_sequences max_tokens temperature thinking",
            "seed frequency_penalty presence_penalty response_format documents priority logprobs",
            "safety_mode citation_options k p strict_tools raw_prompting",
        ),
        message_fields=words("tool_calls tool_call_id tool_plan citations"),
        roles=words("tool"),
        block_types=words("text image_url"),
        choices=words("REQUIRED NONE"),
        shapes=frozenset(
            {
                "block: unknown type",
                "call: arguments as a string",
                "call: no arguments",
                "content: list",
                "content: null",
                "content: string",
                "document: object",
                "system message: first",
                "system message: later",
                "thinking: plain",
                "tool: function",
            }
        ),
        models="(?i)(command-|c4ai-)",
        only_own_models=True,
    ),
    reply_marks={"message": dict, "finish_reason": str},
    reply_rank=7,
)
