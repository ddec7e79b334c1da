"""The record of the OpenAI Responses protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Any, Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol, RequestMarks, TokenCount, words
from toolglot.protocols.fields.body_schemas import FLAG, MODEL, TEXT, TOKENS
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.shared_fields import OPENAI_FIELDS
from toolglot.protocols.openai_chat.endpoint import ERROR_SCHEMA

_COUNTED: Final = (
    *("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "truncation"),
    *("parallel_tool_calls", "previous_response_id", "conversation"),
)
"""The fields of a request that the count takes."""


def _count_request(body: Fields, _model: str) -> Fields:
    return {key: body[key] for key in _COUNTED if key in body}


_REQUIRED: Final = {
    "model": MODEL,
    "input": {"description": "a text, or a list of items", "type": ["string", "array"], "items": {"type": "object"}},
}


def _is_fragment(fields: Fields) -> bool:
    """Whether an object seems to be a piece of a reply or an event of a stream."""
    kind = fields.get("type")
    is_named = isinstance(kind, str) and (kind.startswith("response.") or kind == "function_call")
    return is_named or isinstance(fields.get("output"), list)


def _stored_item(body: Fields) -> str | None:
    items = body.get("input")
    if items is None and body.get("prompt") is not None:
        return "prompt"  # a stored prompt holds the messages
    if type(items) is not list:
        return None
    return next((f"input[{index}]" for index, item in enumerate(items) if _is_reference(item)), None)


def _is_reference(item: Any) -> bool:
    """Whether an item only names one that is stored; such a one may leave out its type."""
    if type(item) is not dict:
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and type(item.get("id")) is str)


PROTOCOL: Final = Protocol(
    name="openai_responses",
    package=__package__,
    provider="openai_responses",
    sdk="openai",
    sdk_example="import openai\n\n"
    "client = openai.OpenAI(base_url=<url>, api_key=<key>)\n"
    "# The whole body is in extra_body: it may have fields that the SDK does not know.\n"
    "known = {name: body[name] for name in ('model', 'input', 'stream') if name in body}\n"
    "reply = client.responses.create(**known, extra_body=body)",
    path="/responses",
    forwarded_headers=("openai-beta",),
    models=ModelList(path="/models", list_extra={"object": "list"}),
    counts=TokenCount(
        request=_count_request, reply_field="input_tokens", reply_extra={"object": "response.input_tokens"}
    ),
    routes=(
        ClientRoute(
            action="generate",
            paths=("/v1/responses", "/responses"),
            has_socket=True,
            required=_REQUIRED,
            optional={"stream": FLAG, "store": FLAG, "previous_response_id": TEXT, "max_output_tokens": TOKENS},
        ),
        ClientRoute(
            action="count", paths=("/v1/responses/input_tokens", "/responses/input_tokens"), required=_REQUIRED
        ),
        ClientRoute(
            action="compact",
            paths=("/v1/responses/compact", "/responses/compact"),
            required=_REQUIRED,
            optional={"instructions": TEXT, "previous_response_id": TEXT},
        ),
        ClientRoute(action="response", paths=(r"/(?:v1/)?responses/(?P<name>[^/]+)",), is_pattern=True),
        ClientRoute(
            action="input_items",
            paths=(r"/(?:v1/)?responses/(?P<name>[^/]+)/input_items",),
            is_pattern=True,
            query=("limit", "order", "after"),
        ),
        ClientRoute(action="cancel", paths=(r"/(?:v1/)?responses/(?P<name>[^/]+)/cancel",), is_pattern=True),
        ClientRoute(action="conversations", paths=("/v1/conversations", "/conversations")),
        ClientRoute(action="conversation", paths=(r"/(?:v1/)?conversations/(?P<name>[^/]+)",), is_pattern=True),
        ClientRoute(
            action="conversation_items",
            paths=(r"/(?:v1/)?conversations/(?P<name>[^/]+)/items",),
            is_pattern=True,
            query=("limit", "order", "after"),
        ),
        ClientRoute(
            action="conversation_item",
            paths=(r"/(?:v1/)?conversations/(?P<name>[^/]+)/items/(?P<part>[^/]+)",),
            is_pattern=True,
        ),
    ),
    returned_headers=("x-ratelimit-", "openai-processing-ms"),
    reply_id_prefix="resp_",
    error_schema=ERROR_SCHEMA,
    turns="input",
    shortening_fields={"truncation": "disabled", "context_management": None},
    has_separate_tools=True,
    shared_fields=OPENAI_FIELDS,
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "developer"}),
        part_types=frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"}),
        part_rank=2,
        message_type="message",
        item_types=frozenset(
            {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}
        ),
        text_keeps_fields=True,
    ),
    stored_history=("previous_response_id", "conversation"),
    stored_item=_stored_item,
    needs_usage=True,  # without it, some agents never see the end of their context, or ask again and again
    stateless_fields={"store": False, "include": ["reasoning.encrypted_content"]},
    returns_opaque=True,
    limit_path=("max_output_tokens",),
    base_url="versioned",
    features=frozenset(
        {
            "arguments_as_text",
            "choice_field",
            "custom_tools",
            "developer_role",
            "efforts",
            "empty_results",
            "item_ids",
            "namespaces",
            "parallel_switch",
            "result_messages",
            "strict_by_default",
            "strict_tools",
            "text_parts",
            "text_with_calls",
        }
    ),
    inexpressible={"request.sampling": ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty")},
    tool_style="openai",
    has_image_detail=True,
    has_schema_description=True,
    request_marks=RequestMarks(starts=words("input previous_response_id prompt conversation")),
    is_fragment=_is_fragment,
    reply_marks={"output": list},
    reply_rank=3,
)
