"""The record of the Anthropic Messages protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.protocols.base import (
    ClientRoute,
    ListedModel,
    MessageForm,
    ModelList,
    Protocol,
    RequestMarks,
    TokenCount,
    routes_by_path,
    words,
)
from toolglot.protocols.fields.body_schemas import FLAG, MODEL, OBJECTS, TEXT, TOKENS, object_schema
from toolglot.protocols.fields.model_pages import EPOCH, model_index, page_size
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.passed_paths import PassedPaths, StoredCollection

_COUNTED: Final = ("model", "messages", "system", "tools", "tool_choice", "thinking", "mcp_servers")
"""The fields of a request that the count takes."""


_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_THINKING: Final = {"adaptive": "adaptive", "between_tools": "between_tools", "disabled": "off", "enabled": "on"}
"""Types of the thinking configuration, and the modes that they set."""
_VERTEX: Final = r"/v1/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/anthropic/models/"
_HOSTED: Final = {"messages": OBJECTS, "max_tokens": TOKENS}


def _count_request(body: Fields, _model: str) -> Fields:
    return {key: body[key] for key in _COUNTED if key in body}


def _model_entry(model: ListedModel) -> Fields:
    limits = model.limits
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.title,
        "created_at": EPOCH,
        "lifecycle": "active",
        "max_input_tokens": limits.window,
        "max_tokens": limits.output,
        "capabilities": _capabilities(model) if limits.media is not None and limits.thinking is not None else None,
    }


def _capabilities(model: ListedModel) -> Fields:
    """What the model can do for a client of this protocol. What only Anthropic has, a foreign model does not."""
    media, is_native = model.limits.media or (), model.protocol == PROTOCOL.name
    searches = any(name.startswith("web_search") for name in model.server_tools)
    runs_code = is_native and any(name.startswith("code_execution") for name in model.server_tools)
    return {
        "batch": _support(is_native),
        "citations": _support(is_native),
        "code_execution": _support(runs_code),
        "context_management": _support(is_native),
        "effort": {**_support(bool(model.efforts)), **{name: _support(name in model.efforts) for name in _EFFORTS}},
        "image_input": _support("image" in media),
        "pdf_input": _support("document" in media),
        "server_tools": {
            **_support(searches or runs_code),
            "code_execution": _support(runs_code),
            "web_search": _support(searches),
        },
        "structured_outputs": _support("json_schema" in model.output_forms),
        "thinking": {
            **_support(bool(model.limits.thinking)),
            "types": {name: _support(mode in model.modes) for name, mode in _THINKING.items()},
        },
    }


def _support(is_supported: bool) -> Fields:
    return {"supported": is_supported}


def _model_page(models: list[ListedModel], query: Mapping[str, str]) -> Fields:
    names = [model.name for model in models]
    limit = page_size(query, "limit", default=20)
    after, before = query.get("after_id", ""), query.get("before_id", "")
    start, end = 0, len(models)
    if before:
        end = model_index(names, before, "before_id")
        start = max(end - limit, 0)
        has_more = start > 0
    else:
        start = model_index(names, after, "after_id") + 1 if after else 0
        end = min(start + limit, end)
        has_more = end < len(models)
    page = [_model_entry(model) for model in models[start:end]]
    first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"data": page, "has_more": has_more, "first_id": first, "last_id": last}


def _is_fragment(fields: Fields) -> bool:
    """Whether an object seems to be a piece of a reply or an event of a stream."""
    kind, content = fields.get("type"), fields.get("content")
    if isinstance(kind, str) and (kind.startswith(("message_", "content_block_")) or kind == "tool_use"):
        return True
    return isinstance(content, list) and any(isinstance(block, dict) and "type" in block for block in content)


PROTOCOL: Final = Protocol(
    name="anthropic",
    package=__package__,
    provider="anthropic",
    sdk="anthropic",
    sdk_example="import anthropic\n\n"
    "client = anthropic.Anthropic(base_url=<url>, api_key=<key>, timeout=600)\n"
    "# The whole body is in extra_body: it may have fields that the SDK does not know.\n"
    "known = {name: body[name] for name in ('model', 'max_tokens', 'messages', 'stream') if name in body}\n"
    "reply = client.messages.create(**known, extra_body=body)",
    path="/v1/messages",
    auth="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
    forwarded_headers=("anthropic-version", "anthropic-beta"),
    host_fields={"anthropic_version": "", "anthropic_beta": "anthropic-beta"},
    request_id_header="request-id",
    client_request_id_header="request-id",
    models=ModelList(path="/v1/models", entry=_model_entry, page=_model_page, query=("limit", "after_id", "before_id")),
    counts=TokenCount(request=_count_request, reply_field="input_tokens"),
    routes=(
        ClientRoute(
            action="generate",
            paths=("/v1/messages", "/messages"),
            required={"model": MODEL, "messages": OBJECTS, "max_tokens": TOKENS},
            optional={"stream": FLAG, "tools": OBJECTS},
        ),
        ClientRoute(
            action="count",
            paths=("/v1/messages/count_tokens", "/messages/count_tokens"),
            required={"model": MODEL, "messages": OBJECTS},
        ),
        ClientRoute(
            action="count",
            paths=(f"{_VERTEX}count-tokens:rawPredict",),
            is_pattern=True,
            required={"model": MODEL, "messages": OBJECTS},
        ),
        *routes_by_path(
            rf"{_VERTEX}(?P<model>[^/]+):rawPredict",
            rf"{_VERTEX}(?P<model>[^/]+):streamRawPredict",
            _HOSTED,
            is_hosted=True,
        ),
        *routes_by_path(
            r"/model/(?P<model>.+)/invoke",
            r"/model/(?P<model>.+)/invoke-with-response-stream",
            _HOSTED,
            is_hosted=True,
            error_protocol="bedrock",
        ),
        ClientRoute(
            action="telemetry",
            paths=("/api/event_logging/batch", "/api/event_logging/v2/batch", "/api/claude_code/metrics"),
        ),
    ),
    client_header="anthropic-version",
    client_prefixes=("/v1/messages",),
    service_prefix="/v1/",
    passed=PassedPaths(
        stateless="complete",
        collections=(
            StoredCollection("files"),
            StoredCollection("messages/batches", runs_model=True, batch="inline"),
        ),
        references=words("file_id container container_id after_id before_id"),
        cursor="after_id",
    ),
    returned_headers=("x-ratelimit-", "anthropic-ratelimit-", "anthropic-organization-id"),
    reply_id_prefix="msg_",
    error_schema=object_schema(type={"const": "error"}, error=object_schema(type=TEXT, message=TEXT)),
    turns="messages",
    shortening_fields={"context_management": None},
    has_separate_tools=True,
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system"}),
        part_types=frozenset({"text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"}),
        part_rank=1,
        role_names={"developer": "user"},
    ),
    stored_history=("thread",),
    returns_opaque=True,
    base_url="any",
    features=frozenset(
        {
            "cache_control",
            "choice_field",
            "empty_results",
            "empty_turns",
            "parallel_switch",
            "result_error_flag",
            "strict_tools",
            "text_parts",
            "text_with_calls",
        }
    ),
    inexpressible={
        "choice.modes": ("allowed",),
        "request.sampling": ("seed", "presence_penalty", "frequency_penalty"),
        "request.output": ("json",),
    },
    tool_style="anthropic",
    request_marks=RequestMarks(
        fields=words(
            "anthropic_version mcp_servers container context_management inference_geo output_config",
            "system stop_sequences metadata service_tier top_k top_p cache_control max_tokens temperature thinking",
        ),
        block_types=words(
            "text tool_use tool_result redacted_thinking server_tool_use search_result container_upload image",
            "mcp_tool_use mcp_tool_result fallback compaction tool_reference",
        ),
        choice_types=words("auto any tool none"),
        shapes=frozenset(
            {
                "block: result of the provider",
                "block: unknown type",
                "content: list",
                "content: string",
                "document: source",
                "system message: later",
                "system: string",
                "system: typed block",
                "thinking: plain",
                "thinking: signed",
                "tool: input_schema",
                "tool: run by the provider",
            }
        ),
        models="(?i)claude-",
        model_needs="max_tokens",
        only_own_models=True,
        hub_protocol="openai_chat",
    ),
    is_fragment=_is_fragment,
    reply_marks={"stop_reason": str, "content": list, "completion": str},
    reply_rank=5,
)
