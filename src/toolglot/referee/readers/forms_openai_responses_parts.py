"""The forms of content parts and of tools in an OpenAI Responses request, as the API defines them.

Where the definitions of the SDK require more than the API does, the API decides: an `output_text` without annotations,
an image without detail, a function without `strict` are all accepted.
"""

from __future__ import annotations

from typing import Final

from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    ByKind,
    Each,
    Fields,
    JsonForm,
    Keyed,
    Maybe,
    Typed,
    Values,
    form_of,
)


def typed_form(known: dict[str, JsonForm], *required: str, rules: dict[str, str] | None = None) -> Fields:
    """An object whose type is already known."""
    return Fields({"type": ANYTHING, **known}, required, rules or {})


def one_or_null(*allowed: str) -> Maybe:
    return Maybe(Values(allowed))


TEXT_OR_NULL: Final = Maybe(TEXT)
_PASSED_THROUGH: Final[dict[str, JsonForm]] = {"internal_chat_message_metadata_passthrough": OBJECT}
"""What Codex 0.169 sends with items to OpenAI itself. OpenAI does not describe it."""
ID: Final[dict[str, JsonForm]] = {"id": TEXT_OR_NULL, **_PASSED_THROUGH}
CALL_ID: Final[dict[str, JsonForm]] = {"call_id": TEXT}
RULES: Final = {"call_id": "openai-responses-id-required"}
STATUS: Final = Values(("in_progress", "completed", "incomplete"))
RUN_STATUS: Final[dict[str, JsonForm]] = {"status": Maybe(STATUS)}
CALLER: Final[dict[str, JsonForm]] = {
    "caller": Maybe(Typed({"direct": typed_form({}), "program": typed_form({"caller_id": TEXT}, "caller_id")}))
}
EFFORT: Final = one_or_null("none", "minimal", "low", "medium", "high", "xhigh", "max")
SUMMARY: Final = one_or_null("auto", "concise", "detailed")

# --- content ----------------------------------------------------------------------------------------

_BREAKPOINT: Final[dict[str, JsonForm]] = {
    "prompt_cache_breakpoint": Maybe(
        form_of({"mode": Values(("explicit",)), "ttl": Values(("30m", "12h"))}, "mode"),
    )
}
_INPUT_TEXT: Final = typed_form({"text": TEXT, **_BREAKPOINT}, "text")
INPUT: Final[dict[str, JsonForm]] = {
    "input_text": _INPUT_TEXT,
    "input_image": typed_form(
        {
            "detail": one_or_null("low", "high", "auto", "original"),
            "file_id": TEXT_OR_NULL,
            "image_url": TEXT_OR_NULL,
            **_BREAKPOINT,
        }
    ),
    "input_file": typed_form(
        {
            "detail": Values(("auto", "low", "high")),
            "file_data": TEXT_OR_NULL,
            "file_id": TEXT_OR_NULL,
            "file_url": TEXT_OR_NULL,
            "filename": TEXT_OR_NULL,
            **_BREAKPOINT,
        }
    ),
}
_SPAN: Final[dict[str, JsonForm]] = {"start_index": WHOLE, "end_index": WHOLE}
_CITED_FILE: Final[dict[str, JsonForm]] = {"file_id": TEXT, "filename": TEXT}
_ANNOTATION: Final = Typed(
    {
        "file_citation": typed_form({**_CITED_FILE, "index": WHOLE}, *_CITED_FILE, "index"),
        "url_citation": typed_form({**_SPAN, "title": TEXT, "url": TEXT}, *_SPAN, "title", "url"),
        "container_file_citation": typed_form(
            {**_CITED_FILE, **_SPAN, "container_id": TEXT}, *_CITED_FILE, *_SPAN, "container_id"
        ),
        "file_path": typed_form({"file_id": TEXT, "index": WHOLE}, "file_id", "index"),
    }
)
_TOKEN: Final[dict[str, JsonForm]] = {"token": TEXT, "bytes": Each(WHOLE), "logprob": NUMBER}
_OUTPUT: Final[dict[str, JsonForm]] = {
    "output_text": typed_form(
        {
            "text": TEXT,
            "annotations": Each(_ANNOTATION),
            "logprobs": Each(
                form_of({**_TOKEN, "top_logprobs": Each(form_of(_TOKEN, *_TOKEN))}, *_TOKEN, "top_logprobs")
            ),
        },
        "text",
    ),
    "refusal": typed_form({"refusal": TEXT}, "refusal"),
}


_BY_ROLE: Final = "openai-responses-role-content"


def content(table: dict[str, JsonForm]) -> ByKind:
    return ByKind("a string or a list of parts", {str: TEXT, list: Each(Typed(table, rule=_BY_ROLE))})


_MESSAGE_FIELDS: Final[dict[str, JsonForm]] = {
    "type": ANYTHING,
    "role": ANYTHING,
    **ID,
    "status": STATUS,
    "phase": one_or_null("commentary", "final_answer"),
}
_INPUT_MESSAGE: Final = form_of({**_MESSAGE_FIELDS, "content": content(INPUT)}, "content")
MESSAGE: Final = Typed(
    {
        "user": _INPUT_MESSAGE,
        "system": _INPUT_MESSAGE,
        "developer": _INPUT_MESSAGE,
        "assistant": form_of({**_MESSAGE_FIELDS, "content": content(_OUTPUT)}, "content"),
    },
    key="role",
)

# --- tools ------------------------------------------------------------------------------------------

_CALLERS: Final[dict[str, JsonForm]] = {"allowed_callers": Maybe(Each(Values(("direct", "programmatic"))))}
_NETWORK: Final = Typed(
    {
        "disabled": typed_form({}),
        "allowlist": typed_form({"allowed_domains": TEXTS, "domain_secrets": Each(OBJECT)}, "allowed_domains"),
    }
)
_CONTAINER: Final[dict[str, JsonForm]] = {
    "file_ids": TEXTS,
    "memory_limit": one_or_null("1g", "4g", "16g", "64g"),
    "network_policy": _NETWORK,
}
ENVIRONMENT: Final[dict[str, JsonForm]] = {
    "local": typed_form({"skills": Each(OBJECT)}),
    "container_reference": typed_form({"container_id": TEXT}, "container_id"),
}
_LOCATION: Final[dict[str, JsonForm]] = {
    "search_context_size": Values(("low", "medium", "high")),
    "user_location": Maybe(
        form_of(
            {
                "type": Values(("approximate",)),
                **dict.fromkeys(("city", "country", "region", "timezone"), TEXT_OR_NULL),
            }
        )
    ),
}
_TOOL_FILTER: Final = form_of({"read_only": FLAG, "tool_names": TEXTS})
_CONNECTORS: Final = (
    *("dropbox", "gmail", "googlecalendar", "googledrive"),
    *("microsoftteams", "outlookcalendar", "outlookemail", "sharepoint"),
)
_FUNCTION: Final = typed_form(
    {
        "name": TEXT,
        "parameters": Maybe(OBJECT),
        "strict": Maybe(FLAG),
        "description": TEXT_OR_NULL,
        "output_schema": Maybe(OBJECT),
        "defer_loading": FLAG,
        "async": FLAG,
        **_CALLERS,
    },
    "name",
)
_CUSTOM: Final = typed_form(
    {
        "name": TEXT,
        "description": TEXT,
        "format": Typed(
            {
                "text": typed_form({}),
                "grammar": typed_form(
                    {"definition": TEXT, "syntax": Values(("lark", "regex"))},
                    "definition",
                    "syntax",
                ),
            }
        ),
        "defer_loading": FLAG,
        "async": FLAG,
        **_CALLERS,
    },
    "name",
)
_FILTER: Final = Typed(
    dict.fromkeys(("and", "or"), typed_form({"filters": LIST}, "filters"))
    | dict.fromkeys(
        ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"),
        typed_form(
            {
                "key": TEXT,
                "value": ByKind(
                    "a string, a number, true or false, or a list",
                    {
                        bool: FLAG,
                        str: TEXT,
                        int: NUMBER,
                        float: NUMBER,
                        list: Each(ByKind("a string or a number", {str: TEXT, int: NUMBER, float: NUMBER})),
                    },
                ),
            },
            "key",
            "value",
        ),
    )
)
PICTURE: Final[dict[str, JsonForm]] = {
    "action": Values(("generate", "edit", "auto")),
    "background": Values(("transparent", "opaque", "auto")),
    "output_format": Values(("png", "webp", "jpeg", "gif", "svg")),
    "quality": Values(("low", "medium", "high", "xhigh", "max", "auto")),
}
_SEARCHED: Final[dict[str, JsonForm]] = {"search_content_types": Each(Values(("text", "image"))), **_LOCATION}
_WEB_SEARCH: Final = typed_form(
    {"external_web_access": FLAG, "filters": Maybe(form_of({"allowed_domains": Maybe(TEXTS)})), **_SEARCHED}
)
_WEB_SEARCH_PREVIEW: Final = typed_form(_SEARCHED)
TOOLS: Final[dict[str, JsonForm]] = {
    "function": _FUNCTION,
    "custom": _CUSTOM,
    "namespace": typed_form(
        {"name": TEXT, "description": TEXT, "tools": Each(Typed({"function": _FUNCTION, "custom": _CUSTOM}))},
        "name",
        "description",
        "tools",
    ),
    "file_search": typed_form(
        {
            "vector_store_ids": TEXTS,
            "filters": Maybe(_FILTER),
            "max_num_results": WHOLE,
            "ranking_options": form_of(
                {
                    "hybrid_search": form_of({"embedding_weight": NUMBER, "text_weight": NUMBER}),
                    "ranker": Values(("auto", "default-2024-11-15")),
                    "score_threshold": NUMBER,
                }
            ),
        },
        "vector_store_ids",
    ),
    "computer": typed_form({}),
    "computer_use_preview": typed_form(
        {
            "display_height": WHOLE,
            "display_width": WHOLE,
            "environment": Values(("windows", "mac", "linux", "ubuntu", "browser")),
        },
        "display_height",
        "display_width",
        "environment",
    ),
    "web_search": _WEB_SEARCH,
    "web_search_2025_08_26": _WEB_SEARCH,
    "web_search_preview": _WEB_SEARCH_PREVIEW,
    "web_search_preview_2025_03_11": _WEB_SEARCH_PREVIEW,
    "mcp": typed_form(
        {
            **dict.fromkeys(("server_label", "authorization", "server_description", "server_url", "tunnel_id"), TEXT),
            "allowed_tools": Maybe(ByKind("a list or a filter", {list: TEXTS, dict: _TOOL_FILTER})),
            "connector_id": Values(tuple(f"connector_{name}" for name in _CONNECTORS)),
            "defer_loading": FLAG,
            "headers": Maybe(Keyed(TEXT)),
            "require_approval": Maybe(
                ByKind(
                    "always, never or a filter",
                    {
                        str: Values(("always", "never")),
                        dict: form_of({"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
                    },
                )
            ),
            **_CALLERS,
        },
        "server_label",
    ),
    "code_interpreter": typed_form(
        {
            "container": ByKind("a string or an object", {str: TEXT, dict: Typed({"auto": typed_form(_CONTAINER)})}),
            **_CALLERS,
        },
        "container",
    ),
    "programmatic_tool_calling": typed_form({}),
    "image_generation": typed_form(
        {
            **PICTURE,
            "complexity": Values(("low", "medium", "high")),
            "input_fidelity": one_or_null("high", "low"),
            "input_image_mask": form_of({"file_id": TEXT, "image_url": TEXT}),
            "model": TEXT,
            "moderation": Values(("auto", "low")),
            "size": TEXT,
            "svg": OBJECT,
            **dict.fromkeys(("frame_count", "frame_duration_ms", "output_compression", "partial_images"), WHOLE),
        }
    ),
    "local_shell": typed_form({}),
    "shell": typed_form(
        {
            "environment": Maybe(
                Typed(ENVIRONMENT | {"container_auto": typed_form({**_CONTAINER, "skills": Each(OBJECT)})})
            ),
            **_CALLERS,
        }
    ),
    "tool_search": typed_form(
        {"description": TEXT_OR_NULL, "execution": Values(("server", "client")), "parameters": ANYTHING}
    ),
    "apply_patch": typed_form({**_CALLERS}),
}
