"""The record of Ollama's native chat protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, ListedModel, MessageForm, ModelList, Protocol, RequestMarks, words
from toolglot.protocols.fields.body_schemas import FLAG, INPUTS, MODEL, OBJECTS, TEXT, object_schema
from toolglot.protocols.fields.model_pages import EPOCH
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.passed_paths import PassedPaths

VERSION: Final = "0.12.6"
"""The version of this protocol. Clients use it to decide what they can request."""


def _model_entry(model: ListedModel) -> Fields:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": EPOCH,
        "size": 0,
        "digest": "0" * 64,
        "details": _family(model),
        "capabilities": _capabilities(model),
    }


def _family(model: ListedModel) -> Fields:
    return {
        "parent_model": "",
        "format": "remote",
        "family": model.upstream,
        "families": [model.upstream],
        "parameter_size": "",
        "quantization_level": "",
    }


def _model_details(model: ListedModel) -> Fields:
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "license": "",
        "modified_at": EPOCH,
        "details": _family(model),
        "model_info": _model_info(model),
        "capabilities": _capabilities(model),
    }


def _model_info(model: ListedModel) -> Fields:
    """Clients look for the context under the name of the architecture."""
    info: Fields = {"general.architecture": "toolglot", "general.basename": model.model}
    return info if model.limits.window is None else {**info, "toolglot.context_length": model.limits.window}


def _capabilities(model: ListedModel) -> list[str]:
    able = {"tools": model.calls_tools, "thinking": model.limits.thinking, "vision": model.reads_images}
    return ["completion", *(name for name, is_able in able.items() if is_able)]


PROTOCOL: Final = Protocol(
    name="ollama",
    package=__package__,
    provider="ollama",
    sdk="ollama",
    sdk_example="import ollama\n\n"
    "client = ollama.Client(host=<url>, headers={'authorization': f'Bearer {<key>}'})\n"
    "reply = client.chat(**body)",
    path="/api/chat",
    embeddings_path="/api/embed",
    stream_type="application/x-ndjson",
    models=ModelList(
        path="/api/tags", name_field="model", entry=_model_entry, list_field="models", details=_model_details
    ),
    version=VERSION,
    routes=(
        ClientRoute(
            action="generate",
            paths=("/api/chat",),
            streams_by_default=True,
            required={"model": MODEL, "messages": OBJECTS},
            optional={"stream": {**FLAG, "default": True}},
        ),
        ClientRoute(action="embed", paths=("/api/embed",), required={"model": MODEL, "input": INPUTS}),
        ClientRoute(
            action="embed",
            paths=("/api/embeddings",),
            provider_path="/api/embeddings",
            required={"model": MODEL, "prompt": TEXT},
        ),
        ClientRoute(action="models", paths=("/api/tags",)),
        ClientRoute(action="show", paths=("/api/show",), required={"model": MODEL}),
        ClientRoute(action="version", paths=("/api/version",)),
    ),
    client_prefixes=("/api/",),
    service_prefix="/api/",
    passed=PassedPaths(stateless="generate"),
    error_schema=object_schema(error=TEXT),
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "tool"}), has_call_list=True, content_is_string=True
    ),
    limit_path=("options", "num_predict"),
    features=frozenset({"empty_results", "empty_turns", "result_messages", "system_messages", "text_with_calls"}),
    inexpressible={"choice.modes": ("auto", "none", "required", "named", "allowed")},
    tool_style="openai",
    request_marks=RequestMarks(
        fields=words("logprobs top_logprobs options keep_alive think format"),
        message_fields=words("tool_calls tool_call_id images thinking tool_name"),
        roles=words("tool"),
        shapes=frozenset(
            {
                "call: arguments as an object",
                "call: function alone",
                "call: no arguments",
                "content: null",
                "content: string",
                "system message: first",
                "system message: later",
                "tool: function",
            }
        ),
        models=r"[\w.-]+:[\w.-]+$",
    ),
    reply_marks={"done": bool, "eval_count": int, "done_reason": str},
    reply_rank=6,
)
