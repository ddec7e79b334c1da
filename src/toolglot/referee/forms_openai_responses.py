"""The forms of an OpenAI Responses request: every item, content part and tool that the API defines.

Where the definitions of the SDK ask for more than the API does, the API counts: an `output_text` without annotations,
an assistant message without id and status, an image without detail, a function without `strict` are all accepted.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.referee.forms import (
    ANYTHING,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    Also,
    ByKind,
    Each,
    Fields,
    Form,
    Found,
    Keyed,
    Maybe,
    Typed,
    Values,
)


def _form(known: dict[str, Form], *required: str, rules: dict[str, str] | None = None) -> Fields:
    return Fields(known, required, rules or {})


def _typed(known: dict[str, Form], *required: str, rules: dict[str, str] | None = None) -> Fields:
    """An object whose type is already known."""
    return Fields({"type": ANYTHING, **known}, required, rules or {})


def _maybe(*allowed: str) -> Maybe:
    return Maybe(Values(allowed))


_TEXT_OR_NULL: Final = Maybe(TEXT)
_ID: Final[dict[str, Form]] = {"id": _TEXT_OR_NULL}
_CALL_ID: Final[dict[str, Form]] = {"call_id": TEXT}
_RULES: Final = {"call_id": "openai-responses-id-required"}
_STATUS: Final = Values(("in_progress", "completed", "incomplete"))
_RUN_STATUS: Final[dict[str, Form]] = {"status": Maybe(_STATUS)}
_CALLER: Final[dict[str, Form]] = {
    "caller": Maybe(Typed({"direct": _typed({}), "program": _typed({"caller_id": TEXT}, "caller_id")}))
}
_EFFORT: Final = _maybe("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARY: Final = _maybe("auto", "concise", "detailed")

# --- content ----------------------------------------------------------------------------------------

_BREAKPOINT: Final[dict[str, Form]] = {
    "prompt_cache_breakpoint": Maybe(
        _form({"mode": Values(("explicit",)), "ttl": Values(("30m", "12h"))}, "mode"),
    )
}
_INPUT_TEXT: Final = _typed({"text": TEXT, **_BREAKPOINT}, "text")
_INPUT: Final[dict[str, Form]] = {
    "input_text": _INPUT_TEXT,
    "input_image": _typed(
        {
            "detail": _maybe("low", "high", "auto", "original"),
            "file_id": _TEXT_OR_NULL,
            "image_url": _TEXT_OR_NULL,
            **_BREAKPOINT,
        }
    ),
    "input_file": _typed(
        {
            "detail": Values(("auto", "low", "high")),
            "file_data": _TEXT_OR_NULL,
            "file_id": _TEXT_OR_NULL,
            "file_url": _TEXT_OR_NULL,
            "filename": _TEXT_OR_NULL,
            **_BREAKPOINT,
        }
    ),
}
_SPAN: Final[dict[str, Form]] = {"start_index": WHOLE, "end_index": WHOLE}
_CITED_FILE: Final[dict[str, Form]] = {"file_id": TEXT, "filename": TEXT}
_ANNOTATION: Final = Typed(
    {
        "file_citation": _typed({**_CITED_FILE, "index": WHOLE}, *_CITED_FILE, "index"),
        "url_citation": _typed({**_SPAN, "title": TEXT, "url": TEXT}, *_SPAN, "title", "url"),
        "container_file_citation": _typed(
            {**_CITED_FILE, **_SPAN, "container_id": TEXT}, *_CITED_FILE, *_SPAN, "container_id"
        ),
        "file_path": _typed({"file_id": TEXT, "index": WHOLE}, "file_id", "index"),
    }
)
_TOKEN: Final[dict[str, Form]] = {"token": TEXT, "bytes": Each(WHOLE), "logprob": NUMBER}
_OUTPUT: Final[dict[str, Form]] = {
    "output_text": _typed(
        {
            "text": TEXT,
            "annotations": Each(_ANNOTATION),
            "logprobs": Each(_form({**_TOKEN, "top_logprobs": Each(_form(_TOKEN, *_TOKEN))}, *_TOKEN, "top_logprobs")),
        },
        "text",
    ),
    "refusal": _typed({"refusal": TEXT}, "refusal"),
}


def _content(table: dict[str, Form]) -> ByKind:
    return ByKind("a text or a list of parts", {str: TEXT, list: Each(Typed(table))})


_MESSAGE_FIELDS: Final[dict[str, Form]] = {
    "type": ANYTHING,
    "role": ANYTHING,
    "id": _TEXT_OR_NULL,
    "status": _STATUS,
    "phase": _maybe("commentary", "final_answer"),
}
_SAID: Final = _form({**_MESSAGE_FIELDS, "content": _content(_INPUT)}, "content")
_MESSAGE: Final = Typed(
    {
        "user": _SAID,
        "system": _SAID,
        "developer": _SAID,
        "assistant": _form({**_MESSAGE_FIELDS, "content": _content(_OUTPUT | _INPUT)}, "content"),
    },
    key="role",
)

# --- tools ------------------------------------------------------------------------------------------

_CALLERS: Final[dict[str, Form]] = {"allowed_callers": Maybe(Each(Values(("direct", "programmatic"))))}
_NETWORK: Final = Typed(
    {
        "disabled": _typed({}),
        "allowlist": _typed({"allowed_domains": TEXTS, "domain_secrets": Each(OBJECT)}, "allowed_domains"),
    }
)
_CONTAINER: Final[dict[str, Form]] = {
    "file_ids": TEXTS,
    "memory_limit": _maybe("1g", "4g", "16g", "64g"),
    "network_policy": _NETWORK,
}
_ENVIRONMENT: Final[dict[str, Form]] = {
    "local": _typed({"skills": Each(OBJECT)}),
    "container_reference": _typed({"container_id": TEXT}, "container_id"),
}
_LOCATION: Final[dict[str, Form]] = {
    "search_context_size": Values(("low", "medium", "high")),
    "user_location": Maybe(
        _form(
            {
                "type": Values(("approximate",)),
                **dict.fromkeys(("city", "country", "region", "timezone"), _TEXT_OR_NULL),
            }
        )
    ),
}
_TOOL_FILTER: Final = _form({"read_only": FLAG, "tool_names": TEXTS})
_CONNECTORS: Final = (
    *("dropbox", "gmail", "googlecalendar", "googledrive"),
    *("microsoftteams", "outlookcalendar", "outlookemail", "sharepoint"),
)
_FUNCTION: Final = _typed(
    {
        "name": TEXT,
        "parameters": Maybe(OBJECT),
        "strict": Maybe(FLAG),
        "description": _TEXT_OR_NULL,
        "output_schema": Maybe(OBJECT),
        "defer_loading": FLAG,
        "async": FLAG,
        **_CALLERS,
    },
    "name",
)
_CUSTOM: Final = _typed(
    {
        "name": TEXT,
        "description": TEXT,
        "format": Typed(
            {
                "text": _typed({}),
                "grammar": _typed(
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
    dict.fromkeys(("and", "or"), _typed({"filters": Each(OBJECT)}, "filters"))
    | dict.fromkeys(
        ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"),
        _typed(
            {
                "key": TEXT,
                "value": ByKind(
                    "a text, a number, true or false, or a list",
                    {
                        bool: FLAG,
                        str: TEXT,
                        int: NUMBER,
                        float: NUMBER,
                        list: Each(ByKind("a text or a number", {str: TEXT, int: NUMBER, float: NUMBER})),
                    },
                ),
            },
            "key",
            "value",
        ),
    )
)
_PICTURE: Final[dict[str, Form]] = {
    "action": Values(("generate", "edit", "auto")),
    "background": Values(("transparent", "opaque", "auto")),
    "output_format": Values(("png", "webp", "jpeg", "gif", "svg")),
    "quality": Values(("low", "medium", "high", "xhigh", "max", "auto")),
}
_WEB_SEARCH: Final = _typed(
    {"external_web_access": FLAG, "filters": Maybe(_form({"allowed_domains": Maybe(TEXTS)})), **_LOCATION}
)
_WEB_SEARCH_PREVIEW: Final = _typed({"search_content_types": Each(Values(("text", "image"))), **_LOCATION})
TOOLS: Final[dict[str, Form]] = {
    "function": _FUNCTION,
    "custom": _CUSTOM,
    "namespace": _typed(
        {"name": TEXT, "description": TEXT, "tools": Each(Typed({"function": _FUNCTION, "custom": _CUSTOM}))},
        "name",
        "description",
        "tools",
    ),
    "file_search": _typed(
        {
            "vector_store_ids": TEXTS,
            "filters": Maybe(_FILTER),
            "max_num_results": WHOLE,
            "ranking_options": _form(
                {
                    "hybrid_search": _form({"embedding_weight": NUMBER, "text_weight": NUMBER}),
                    "ranker": Values(("auto", "default-2024-11-15")),
                    "score_threshold": NUMBER,
                }
            ),
        },
        "vector_store_ids",
    ),
    "computer": _typed({}),
    "computer_use_preview": _typed(
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
    "mcp": _typed(
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
                        dict: _form({"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
                    },
                )
            ),
            **_CALLERS,
        },
        "server_label",
    ),
    "code_interpreter": _typed(
        {
            "container": ByKind("a text or an object", {str: TEXT, dict: Typed({"auto": _typed(_CONTAINER)})}),
            **_CALLERS,
        },
        "container",
    ),
    "programmatic_tool_calling": _typed({}),
    "image_generation": _typed(
        {
            **_PICTURE,
            "complexity": Values(("low", "medium", "high")),
            "input_fidelity": _maybe("high", "low"),
            "input_image_mask": _form({"file_id": TEXT, "image_url": TEXT}),
            "model": TEXT,
            "moderation": Values(("auto", "low")),
            "size": TEXT,
            "svg": OBJECT,
            **dict.fromkeys(("frame_count", "frame_duration_ms", "output_compression", "partial_images"), WHOLE),
        }
    ),
    "local_shell": _typed({}),
    "shell": _typed(
        {
            "environment": Maybe(
                Typed(_ENVIRONMENT | {"container_auto": _typed({**_CONTAINER, "skills": Each(OBJECT)})})
            ),
            **_CALLERS,
        }
    ),
    "tool_search": _typed(
        {"description": _TEXT_OR_NULL, "execution": Values(("server", "client")), "parameters": ANYTHING}
    ),
    "apply_patch": _typed({**_CALLERS}),
}

# --- items ------------------------------------------------------------------------------------------


def _identified(item: dict[str, Any], path: str, found: Found) -> None:
    """A reasoning item is known by its id, or carries itself (openai-responses-reasoning-without-id)."""
    if item.get("id") is None and item.get("encrypted_content") is None:
        found.wrong(f"{path}.id", "id is missing, and there is no encrypted_content")


_OUTPUT_OF_CALL: Final = _content(_INPUT)
_POINT: Final[dict[str, Form]] = {"x": WHOLE, "y": WHOLE}
_KEYS: Final[dict[str, Form]] = {"keys": Maybe(TEXTS)}
_ACTION: Final = Typed(
    {
        "click": _typed(
            {**_POINT, **_KEYS, "button": Values(("left", "right", "wheel", "back", "forward"))}, *_POINT, "button"
        ),
        "double_click": _typed({**_POINT, **_KEYS}, *_POINT),
        "drag": _typed({"path": Each(_form(_POINT, *_POINT)), **_KEYS}, "path"),
        "keypress": _typed({"keys": TEXTS}, "keys"),
        "move": _typed({**_POINT, **_KEYS}, *_POINT),
        "screenshot": _typed({}),
        "scroll": _typed({**_POINT, **_KEYS, "scroll_x": WHOLE, "scroll_y": WHOLE}, *_POINT, "scroll_x", "scroll_y"),
        "type": _typed({"text": TEXT}, "text"),
        "wait": _typed({}),
    }
)
_SAFETY_CHECKS: Final = Each(_form({"id": TEXT, "code": _TEXT_OR_NULL, "message": _TEXT_OR_NULL}, "id"))
_SEARCHED: Final = Values(("in_progress", "searching", "completed", "incomplete", "failed"))
_EXECUTION: Final[dict[str, Form]] = {"execution": Values(("server", "client"))}
_CODED: Final = _typed({"code": WHOLE, "message": TEXT}, "code", "message")
_PATCH: Final = _typed({"diff": TEXT, "path": TEXT}, "diff", "path")
_MCP: Final[dict[str, Form]] = {"id": TEXT, "arguments": TEXT, "name": TEXT, "server_label": TEXT}
_PROGRAM: Final[dict[str, Form]] = {"id": TEXT, "call_id": TEXT}
_FORMAT: Final[dict[str, Form]] = {
    "text": _typed({}),
    "json_schema": _typed(
        {"name": TEXT, "schema": OBJECT, "description": TEXT, "strict": Maybe(FLAG)},
        "name",
        "schema",
    ),
    "json_object": _typed({}),
}
ITEMS: Final[dict[str, Form]] = {
    "message": _MESSAGE,
    "function_call": _typed(
        {
            **_CALL_ID,
            **_RUN_STATUS,
            **_CALLER,
            **_ID,
            "name": TEXT,
            "arguments": TEXT,
            "namespace": _TEXT_OR_NULL,
            "async": FLAG,
        },
        "call_id",
        "name",
        "arguments",
        rules=_RULES,
    ),
    "function_call_output": _typed(
        {
            **_CALL_ID,
            **_RUN_STATUS,
            **_CALLER,
            **_ID,
            "output": _OUTPUT_OF_CALL,
            "name": _TEXT_OR_NULL,
            "namespace": _TEXT_OR_NULL,
        },
        "call_id",
        "output",
        rules=_RULES,
    ),
    "custom_tool_call": _typed(
        {
            **_CALL_ID,
            **_RUN_STATUS,
            **_CALLER,
            **_ID,
            "name": TEXT,
            "input": TEXT,
            "namespace": _TEXT_OR_NULL,
            "async": FLAG,
        },
        "call_id",
        "name",
        "input",
        rules=_RULES,
    ),
    "custom_tool_call_output": _typed(
        {**_CALL_ID, **_RUN_STATUS, **_CALLER, **_ID, "output": _OUTPUT_OF_CALL}, "call_id", "output", rules=_RULES
    ),
    "reasoning": Also(
        _typed(
            {
                **_ID,
                **_RUN_STATUS,
                "summary": Each(Typed({"summary_text": _typed({"text": TEXT}, "text")})),
                "content": Maybe(Each(Typed({"reasoning_text": _typed({"text": TEXT}, "text")}))),
                "encrypted_content": _TEXT_OR_NULL,
            },
            "summary",
        ),
        _identified,
    ),
    "item_reference": _typed({"id": TEXT}, "id"),
    "compaction": _typed({**_ID, "encrypted_content": TEXT}, "encrypted_content"),
    "compaction_trigger": _typed({**_ID}),
    "web_search_call": _typed(
        {
            "id": TEXT,
            "status": _SEARCHED,
            "action": Typed(
                {
                    "search": _typed(
                        {
                            "query": TEXT,
                            "queries": TEXTS,
                            "sources": Each(Typed({"url": _typed({"url": TEXT}, "url")})),
                        }
                    ),
                    "open_page": _typed({"url": _TEXT_OR_NULL}),
                    "find_in_page": _typed({"pattern": TEXT, "url": TEXT}, "pattern", "url"),
                }
            ),
        },
        "id",
        "status",
        "action",
    ),
    "file_search_call": _typed(
        {
            "id": TEXT,
            "queries": TEXTS,
            "status": _SEARCHED,
            "results": Maybe(
                Each(
                    _form(
                        {
                            "attributes": Maybe(OBJECT),
                            "file_id": TEXT,
                            "filename": TEXT,
                            "score": NUMBER,
                            "text": TEXT,
                        }
                    )
                )
            ),
        },
        "id",
        "queries",
        "status",
    ),
    "computer_call": _typed(
        {
            **_CALL_ID,
            "id": TEXT,
            "status": _STATUS,
            "pending_safety_checks": _SAFETY_CHECKS,
            "action": _ACTION,
            "actions": Each(_ACTION),
        },
        "id",
        "call_id",
        "pending_safety_checks",
        "status",
    ),
    "computer_call_output": _typed(
        {
            **_CALL_ID,
            **_ID,
            **_RUN_STATUS,
            "output": Typed({"computer_screenshot": _typed({"file_id": TEXT, "image_url": TEXT})}),
            "acknowledged_safety_checks": Maybe(_SAFETY_CHECKS),
        },
        "call_id",
        "output",
    ),
    "tool_search_call": _typed(
        {**_ID, **_RUN_STATUS, **_EXECUTION, "call_id": _TEXT_OR_NULL, "arguments": ANYTHING}, "arguments"
    ),
    "tool_search_output": _typed(
        {**_ID, **_RUN_STATUS, **_EXECUTION, "call_id": _TEXT_OR_NULL, "tools": Each(Typed(TOOLS))}, "tools"
    ),
    "additional_tools": _typed({**_ID, "role": Values(("developer",)), "tools": Each(Typed(TOOLS))}, "role", "tools"),
    "configuration_update": _typed(
        {
            **_ID,
            "reasoning": _form({"effort": _EFFORT}),
            "text": _form(
                {"format": Typed({name: _FORMAT[name] for name in ("text", "json_schema")})},
                "format",
            ),
        }
    ),
    "image_generation_call": _typed(
        {
            **{name: Maybe(form) for name, form in _PICTURE.items()},
            "id": TEXT,
            "result": _TEXT_OR_NULL,
            "status": Values(("in_progress", "completed", "generating", "failed")),
            "error": OBJECT,
            "revised_prompt": _TEXT_OR_NULL,
            "size": _TEXT_OR_NULL,
            "svg_usage": OBJECT,
        },
        "id",
        "result",
        "status",
    ),
    "code_interpreter_call": _typed(
        {
            "id": TEXT,
            "code": _TEXT_OR_NULL,
            "container_id": TEXT,
            "outputs": Maybe(
                Each(Typed({"logs": _typed({"logs": TEXT}, "logs"), "image": _typed({"url": TEXT}, "url")}))
            ),
            "status": Values(("in_progress", "completed", "incomplete", "interpreting", "failed")),
        },
        "id",
        "code",
        "container_id",
        "outputs",
        "status",
    ),
    "local_shell_call": _typed(
        {
            **_CALL_ID,
            "id": TEXT,
            "status": _STATUS,
            "action": Typed(
                {
                    "exec": _typed(
                        {
                            "command": TEXTS,
                            "env": Keyed(TEXT),
                            "timeout_ms": Maybe(WHOLE),
                            "user": _TEXT_OR_NULL,
                            "working_directory": _TEXT_OR_NULL,
                        },
                        "command",
                        "env",
                    )
                }
            ),
        },
        "id",
        "call_id",
        "action",
        "status",
    ),
    "local_shell_call_output": _typed({"id": TEXT, "output": TEXT, **_RUN_STATUS}, "id", "output"),
    "shell_call": _typed(
        {
            **_CALL_ID,
            **_ID,
            **_RUN_STATUS,
            **_CALLER,
            "action": _form(
                {"commands": TEXTS, "max_output_length": Maybe(WHOLE), "timeout_ms": Maybe(WHOLE)}, "commands"
            ),
            "environment": Maybe(Typed(_ENVIRONMENT)),
        },
        "call_id",
        "action",
    ),
    "shell_call_output": _typed(
        {
            **_CALL_ID,
            **_ID,
            **_RUN_STATUS,
            **_CALLER,
            "max_output_length": Maybe(WHOLE),
            "output": Each(
                _form(
                    {
                        "stdout": TEXT,
                        "stderr": TEXT,
                        "outcome": Typed(
                            {"timeout": _typed({}), "exit": _typed({"exit_code": WHOLE}, "exit_code")},
                        ),
                    },
                    "stdout",
                    "stderr",
                    "outcome",
                )
            ),
        },
        "call_id",
        "output",
    ),
    "apply_patch_call": _typed(
        {
            **_CALL_ID,
            **_ID,
            **_CALLER,
            "status": Values(("in_progress", "completed")),
            "operation": Typed(
                {"create_file": _PATCH, "update_file": _PATCH, "delete_file": _typed({"path": TEXT}, "path")}
            ),
        },
        "call_id",
        "operation",
        "status",
    ),
    "apply_patch_call_output": _typed(
        {
            **_CALL_ID,
            **_ID,
            **_CALLER,
            "status": Values(("completed", "failed")),
            "output": _TEXT_OR_NULL,
        },
        "call_id",
        "status",
    ),
    "mcp_list_tools": _typed(
        {
            "id": TEXT,
            "server_label": TEXT,
            "tools": Each(
                _form(
                    {
                        "name": TEXT,
                        "input_schema": ANYTHING,
                        "annotations": ANYTHING,
                        "description": _TEXT_OR_NULL,
                    },
                    "name",
                    "input_schema",
                )
            ),
            "error": _TEXT_OR_NULL,
        },
        "id",
        "server_label",
        "tools",
    ),
    "mcp_approval_request": _typed(_MCP, *_MCP),
    "mcp_approval_response": _typed(
        {**_ID, "approval_request_id": TEXT, "approve": FLAG, "reason": _TEXT_OR_NULL}, "approval_request_id", "approve"
    ),
    "mcp_call": _typed(
        {
            **_MCP,
            "approval_request_id": _TEXT_OR_NULL,
            "error": Maybe(
                Typed(
                    {
                        "mcp_protocol_error": _CODED,
                        "http_error": _CODED,
                        "mcp_tool_execution_error": _typed({"content": ANYTHING}, "content"),
                    }
                )
            ),
            "output": _TEXT_OR_NULL,
            "status": Values(("in_progress", "completed", "incomplete", "calling", "failed")),
        },
        *_MCP,
    ),
    "program": _typed({**_PROGRAM, "code": TEXT, "fingerprint": TEXT}, *_PROGRAM, "code", "fingerprint"),
    "program_output": _typed(
        {**_PROGRAM, "result": TEXT, "status": Values(("completed", "incomplete"))}, *_PROGRAM, "result", "status"
    ),
}


class _WithoutType:
    """An item that does not say what it is: a message, or the mere id of a stored item."""

    def check(self, value: Any, path: str, found: Found) -> None:
        is_reference = "id" in value and "role" not in value
        (ITEMS["item_reference"] if is_reference else _MESSAGE).check(value, path, found)


# --- the rest ---------------------------------------------------------------------------------------

_HOSTED_CHOICES: Final = (
    *("file_search", "web_search_preview", "computer", "computer_use_preview", "computer_use"),
    *("web_search_preview_2025_03_11", "image_generation", "code_interpreter"),
    *("programmatic_tool_calling", "apply_patch", "shell"),
)
_NAMED: Final = _typed({"name": TEXT}, "name")
_CHOICE: Final = ByKind(
    "a mode or a tool",
    {
        str: Values(("none", "auto", "required")),
        dict: Typed(
            {
                "function": _NAMED,
                "custom": _NAMED,
                "allowed_tools": _typed(
                    {"mode": Values(("auto", "required")), "tools": Each(OBJECT)},
                    "mode",
                    "tools",
                ),
                "mcp": _typed({"server_label": TEXT, "name": _TEXT_OR_NULL}, "server_label"),
                **dict.fromkeys(_HOSTED_CHOICES, _typed({})),
            }
        ),
    },
)
_INCLUDES: Final = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"),
    *("reasoning.encrypted_content", "message.output_text.logprobs"),
)
_MODERATED: Final = Maybe(_form({"mode": Values(("score", "block"))}, "mode"))
BODY: Final = _form(
    {
        "model": TEXT,
        "input": ByKind("a text or a list of items", {str: TEXT, list: Each(Typed(ITEMS, otherwise=_WithoutType()))}),
        "instructions": _TEXT_OR_NULL,
        "tools": Each(Typed(TOOLS)),
        "tool_choice": _CHOICE,
        "parallel_tool_calls": Maybe(FLAG),
        "max_output_tokens": Maybe(WHOLE),
        "max_tool_calls": Maybe(WHOLE),
        "temperature": Maybe(NUMBER),
        "top_p": Maybe(NUMBER),
        "top_logprobs": Maybe(WHOLE),
        "reasoning": Maybe(
            _form(
                {
                    "context": _maybe("auto", "current_turn", "all_turns"),
                    "effort": _EFFORT,
                    "generate_summary": _SUMMARY,
                    "mode": TEXT,
                    "summary": _SUMMARY,
                }
            )
        ),
        "text": _form({"format": Typed(_FORMAT), "verbosity": _maybe("low", "medium", "high")}),
        "include": Maybe(Each(Values(_INCLUDES))),
        "store": Maybe(FLAG),
        "stream": Maybe(FLAG),
        "stream_options": Maybe(_form({"include_obfuscation": FLAG})),
        "background": Maybe(FLAG),
        "conversation": Maybe(ByKind("a text or an object", {str: TEXT, dict: _form({"id": TEXT}, "id")})),
        "previous_response_id": _TEXT_OR_NULL,
        "prompt": Maybe(
            _form(
                {
                    "id": TEXT,
                    "variables": Maybe(Keyed(ByKind("a text or a part", {str: TEXT, dict: Typed(_INPUT)}))),
                    "version": _TEXT_OR_NULL,
                },
                "id",
            )
        ),
        "prompt_cache_key": _TEXT_OR_NULL,
        "prompt_cache_options": _form(
            {
                "comparison_response_id": _TEXT_OR_NULL,
                "mode": Values(("implicit", "explicit")),
                "prewarm": FLAG,
                "ttl": Values(("30m", "12h")),
            }
        ),
        "prompt_cache_retention": _maybe("in_memory", "24h"),
        "safety_identifier": _TEXT_OR_NULL,
        "service_tier": _maybe("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
        "truncation": _maybe("auto", "disabled"),
        "metadata": Maybe(Keyed(TEXT)),
        "user": TEXT,
        "access_programs": _form({"cyber": Values(("standard", "daybreak_blue", "daybreak_red"))}),
        "context_management": Maybe(Each(_typed({"compact_threshold": Maybe(WHOLE)}, "type"))),
        "image": _form({"context_compression": Values(("auto", "enabled", "disabled"))}),
        "moderation": Maybe(
            _form({"model": TEXT, "policy": Maybe(_form({"input": _MODERATED, "output": _MODERATED}))}, "model")
        ),
    }
)
