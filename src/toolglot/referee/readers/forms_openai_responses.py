"""The forms of an OpenAI Responses request: every item of its input, and the request itself.

As with parts and tools, the API decides where it requires less than the SDK: an assistant message needs neither id nor
status, and encrypted reasoning needs no id.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.referee.readers.forms import (
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
    FormFaults,
    JsonForm,
    Keyed,
    Maybe,
    Typed,
    Values,
    form_of,
)
from toolglot.referee.readers.forms_openai_responses_parts import (
    CALL_ID,
    CALLER,
    EFFORT,
    ENVIRONMENT,
    ID,
    INPUT,
    MESSAGE,
    PICTURE,
    RULES,
    RUN_STATUS,
    STATUS,
    SUMMARY,
    TEXT_OR_NULL,
    TOOLS,
    content,
    one_or_null,
    typed_form,
)

# --- items ------------------------------------------------------------------------------------------


def _check_identity(item: dict[str, Any], path: str, found: FormFaults) -> None:
    """A reasoning item has an id, or holds its encrypted content (openai-responses-reasoning-without-id)."""
    if item.get("id") is None and item.get("encrypted_content") is None:
        found.wrong(f"{path}.id", "id is missing, and there is no encrypted_content")


_OUTPUT_OF_CALL: Final = content(INPUT)
_POINT: Final[dict[str, JsonForm]] = {"x": WHOLE, "y": WHOLE}
_KEYS: Final[dict[str, JsonForm]] = {"keys": Maybe(TEXTS)}
_ACTION: Final = Typed(
    {
        "click": typed_form(
            {**_POINT, **_KEYS, "button": Values(("left", "right", "wheel", "back", "forward"))}, *_POINT, "button"
        ),
        "double_click": typed_form({**_POINT, **_KEYS}, *_POINT, "keys"),
        "drag": typed_form({"path": Each(form_of(_POINT, *_POINT)), **_KEYS}, "path"),
        "keypress": typed_form({"keys": TEXTS}, "keys"),
        "move": typed_form({**_POINT, **_KEYS}, *_POINT),
        "screenshot": typed_form({}),
        "scroll": typed_form(
            {**_POINT, **_KEYS, "scroll_x": WHOLE, "scroll_y": WHOLE}, *_POINT, "scroll_x", "scroll_y"
        ),
        "type": typed_form({"text": TEXT}, "text"),
        "wait": typed_form({}),
    }
)
_SAFETY_CHECKS: Final = Each(form_of({"id": TEXT, "code": TEXT_OR_NULL, "message": TEXT_OR_NULL}, "id"))
_SEARCHED: Final = Values(("in_progress", "searching", "completed", "incomplete", "failed"))
_EXECUTION: Final[dict[str, JsonForm]] = {"execution": Values(("server", "client"))}
_CODED: Final = typed_form({"code": WHOLE, "message": TEXT}, "code", "message")
_PATCH: Final = typed_form({"diff": TEXT, "path": TEXT}, "diff", "path")
_MCP: Final[dict[str, JsonForm]] = {"id": TEXT, "arguments": TEXT, "name": TEXT, "server_label": TEXT}
_PROGRAM: Final[dict[str, JsonForm]] = {"id": TEXT, "call_id": TEXT}
_FORMAT: Final[dict[str, JsonForm]] = {
    "text": typed_form({}),
    "json_schema": typed_form(
        {"name": TEXT, "schema": OBJECT, "description": TEXT, "strict": Maybe(FLAG)},
        "name",
        "schema",
    ),
    "json_object": typed_form({}),
}
ITEMS: Final[dict[str, JsonForm]] = {
    "message": MESSAGE,
    "function_call": typed_form(
        {
            **CALL_ID,
            **RUN_STATUS,
            **CALLER,
            **ID,
            "name": TEXT,
            "arguments": TEXT,
            "namespace": TEXT_OR_NULL,
            "async": FLAG,
        },
        "call_id",
        "name",
        "arguments",
        rules=RULES,
    ),
    "function_call_output": typed_form(
        {
            "call_id": TEXT_OR_NULL,
            **RUN_STATUS,
            **CALLER,
            **ID,
            "output": _OUTPUT_OF_CALL,
            "name": TEXT_OR_NULL,
            "namespace": TEXT_OR_NULL,
        },
        "output",
    ),
    "custom_tool_call": typed_form(
        {
            **CALL_ID,
            **RUN_STATUS,
            **CALLER,
            **ID,
            "name": TEXT,
            "input": TEXT,
            "namespace": TEXT_OR_NULL,
            "async": FLAG,
        },
        "call_id",
        "name",
        "input",
        rules=RULES,
    ),
    "custom_tool_call_output": typed_form(
        {**CALL_ID, **RUN_STATUS, **CALLER, **ID, "output": _OUTPUT_OF_CALL}, "call_id", "output", rules=RULES
    ),
    "reasoning": Also(
        typed_form(
            {
                **ID,
                **RUN_STATUS,
                "summary": Each(Typed({"summary_text": typed_form({"text": TEXT}, "text")})),
                "content": Maybe(Each(Typed({"reasoning_text": typed_form({"text": TEXT}, "text")}))),
                "encrypted_content": TEXT_OR_NULL,
            },
            "summary",
        ),
        _check_identity,
    ),
    "item_reference": typed_form({"id": TEXT}, "id"),
    "compaction": typed_form({**ID, "encrypted_content": TEXT}, "encrypted_content"),
    "compaction_trigger": typed_form({**ID}),
    "web_search_call": typed_form(
        {
            "id": TEXT,
            "status": _SEARCHED,
            "action": Typed(
                {
                    "search": typed_form(
                        {
                            "query": TEXT,
                            "queries": TEXTS,
                            "sources": Maybe(Each(Typed({"url": typed_form({"url": TEXT}, "url")}))),
                        }
                    ),
                    "open_page": typed_form({"url": TEXT_OR_NULL}),
                    "find_in_page": typed_form({"pattern": TEXT, "url": TEXT}, "pattern", "url"),
                }
            ),
        },
        "id",
        "status",
        "action",
    ),
    "file_search_call": typed_form(
        {
            "id": TEXT,
            "queries": TEXTS,
            "status": _SEARCHED,
            "results": Maybe(
                Each(
                    form_of(
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
    "computer_call": typed_form(
        {
            **CALL_ID,
            "id": TEXT,
            "status": STATUS,
            "pending_safety_checks": _SAFETY_CHECKS,
            "action": _ACTION,
            "actions": Each(_ACTION),
        },
        "id",
        "call_id",
        "pending_safety_checks",
        "status",
    ),
    "computer_call_output": typed_form(
        {
            **CALL_ID,
            **ID,
            **RUN_STATUS,
            "output": Typed({"computer_screenshot": typed_form({"file_id": TEXT, "image_url": TEXT})}),
            "acknowledged_safety_checks": Maybe(_SAFETY_CHECKS),
        },
        "call_id",
        "output",
    ),
    "tool_search_call": typed_form(
        {**ID, **RUN_STATUS, **_EXECUTION, "call_id": TEXT_OR_NULL, "arguments": ANYTHING}, "arguments"
    ),
    "tool_search_output": typed_form(
        {**ID, **RUN_STATUS, **_EXECUTION, "call_id": TEXT_OR_NULL, "tools": Each(Typed(TOOLS))}, "tools"
    ),
    "additional_tools": typed_form(
        {**ID, "role": Values(("developer",)), "tools": Each(Typed(TOOLS))}, "role", "tools"
    ),
    "agent_message": typed_form(
        {
            **ID,
            "author": TEXT,
            "recipient": TEXT,
            "content": Each(
                Typed(
                    {
                        "input_text": typed_form({"text": TEXT}, "text"),
                        "encrypted_content": typed_form({"encrypted_content": TEXT}, "encrypted_content"),
                    }
                )
            ),
        },
        "author",
        "recipient",
        "content",
    ),
    "configuration_update": typed_form(
        {
            **ID,
            "reasoning": form_of({"effort": EFFORT}),
            "text": form_of(
                {"format": Typed({name: _FORMAT[name] for name in ("text", "json_schema")})},
                "format",
            ),
        }
    ),
    "image_generation_call": typed_form(
        {
            **{name: Maybe(form) for name, form in PICTURE.items()},
            "id": TEXT,
            "result": TEXT_OR_NULL,
            "status": Values(("in_progress", "completed", "generating", "failed")),
            "error": OBJECT,
            "revised_prompt": TEXT_OR_NULL,
            "size": TEXT_OR_NULL,
            "svg_usage": OBJECT,
        },
        "id",
        "result",
        "status",
    ),
    "code_interpreter_call": typed_form(
        {
            "id": TEXT,
            "code": TEXT_OR_NULL,
            "container_id": TEXT,
            "outputs": Maybe(
                Each(Typed({"logs": typed_form({"logs": TEXT}, "logs"), "image": typed_form({"url": TEXT}, "url")}))
            ),
            "status": Values(("in_progress", "completed", "incomplete", "interpreting", "failed")),
        },
        "id",
        "code",
        "container_id",
        "outputs",
        "status",
    ),
    "local_shell_call": typed_form(
        {
            **CALL_ID,
            "id": TEXT,
            "status": STATUS,
            "action": Typed(
                {
                    "exec": typed_form(
                        {
                            "command": TEXTS,
                            "env": Keyed(TEXT),
                            "timeout_ms": Maybe(WHOLE),
                            "user": TEXT_OR_NULL,
                            "working_directory": TEXT_OR_NULL,
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
    "local_shell_call_output": typed_form({"id": TEXT, "output": TEXT, **RUN_STATUS}, "id", "output"),
    "shell_call": typed_form(
        {
            **CALL_ID,
            **ID,
            **RUN_STATUS,
            **CALLER,
            "action": form_of(
                {"commands": TEXTS, "max_output_length": Maybe(WHOLE), "timeout_ms": Maybe(WHOLE)}, "commands"
            ),
            "environment": Maybe(Typed(ENVIRONMENT)),
        },
        "call_id",
        "action",
    ),
    "shell_call_output": typed_form(
        {
            **CALL_ID,
            **ID,
            **RUN_STATUS,
            **CALLER,
            "max_output_length": Maybe(WHOLE),
            "output": Each(
                form_of(
                    {
                        "stdout": TEXT,
                        "stderr": TEXT,
                        "outcome": Typed(
                            {"timeout": typed_form({}), "exit": typed_form({"exit_code": WHOLE}, "exit_code")},
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
    "apply_patch_call": typed_form(
        {
            **CALL_ID,
            **ID,
            **CALLER,
            "status": Values(("in_progress", "completed")),
            "operation": Typed(
                {"create_file": _PATCH, "update_file": _PATCH, "delete_file": typed_form({"path": TEXT}, "path")}
            ),
        },
        "call_id",
        "operation",
        "status",
    ),
    "apply_patch_call_output": typed_form(
        {
            **CALL_ID,
            **ID,
            **CALLER,
            "status": Values(("completed", "failed")),
            "output": TEXT_OR_NULL,
        },
        "call_id",
        "status",
    ),
    "mcp_list_tools": typed_form(
        {
            "id": TEXT,
            "server_label": TEXT,
            "tools": Each(
                form_of(
                    {
                        "name": TEXT,
                        "input_schema": ANYTHING,
                        "annotations": ANYTHING,
                        "description": TEXT_OR_NULL,
                    },
                    "name",
                    "input_schema",
                )
            ),
            "error": TEXT_OR_NULL,
        },
        "id",
        "server_label",
        "tools",
    ),
    "mcp_approval_request": typed_form(_MCP, *_MCP),
    "mcp_approval_response": typed_form(
        {**ID, "approval_request_id": TEXT, "approve": FLAG, "reason": TEXT_OR_NULL}, "approval_request_id", "approve"
    ),
    "mcp_call": typed_form(
        {
            **_MCP,
            "approval_request_id": TEXT_OR_NULL,
            "error": Maybe(
                Typed(
                    {
                        "mcp_protocol_error": _CODED,
                        "http_error": _CODED,
                        "mcp_tool_execution_error": typed_form({"content": ANYTHING}, "content"),
                    }
                )
            ),
            "output": TEXT_OR_NULL,
            "status": Values(("in_progress", "completed", "incomplete", "calling", "failed")),
        },
        *_MCP,
    ),
    "program": typed_form({**_PROGRAM, "code": TEXT, "fingerprint": TEXT}, *_PROGRAM, "code", "fingerprint"),
    "program_output": typed_form(
        {**_PROGRAM, "result": TEXT, "status": Values(("completed", "incomplete"))}, *_PROGRAM, "result", "status"
    ),
}


class _WithoutType:
    """An item without a type: a message, or only the id of a stored item."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        is_reference = "id" in value and "role" not in value
        (ITEMS["item_reference"] if is_reference else MESSAGE).check(value, path, found)


ITEM: Final = Typed(ITEMS, otherwise=_WithoutType())
"""Any item."""


# --- the rest ---------------------------------------------------------------------------------------

_HOSTED_CHOICES: Final = (
    *("file_search", "web_search_preview", "computer", "computer_use_preview", "computer_use"),
    *("web_search_preview_2025_03_11", "image_generation", "code_interpreter"),
    *("programmatic_tool_calling", "apply_patch", "shell"),
)
_NAMED: Final = typed_form({"name": TEXT}, "name")
_CHOICE: Final = ByKind(
    "a mode or a tool",
    {
        str: Values(("none", "auto", "required")),
        dict: Typed(
            {
                "function": _NAMED,
                "custom": _NAMED,
                "allowed_tools": typed_form(
                    {"mode": Values(("auto", "required")), "tools": Each(OBJECT)},
                    "mode",
                    "tools",
                ),
                "mcp": typed_form({"server_label": TEXT, "name": TEXT_OR_NULL}, "server_label"),
                **dict.fromkeys(_HOSTED_CHOICES, typed_form({})),
            }
        ),
    },
)
_INCLUDES: Final = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"),
    *("reasoning.encrypted_content", "message.output_text.logprobs"),
)
_MODERATED: Final = Maybe(form_of({"mode": Values(("score", "block"))}, "mode"))
BODY: Final = form_of(
    {
        "model": TEXT,
        "input": ByKind("a string or a list of items", {str: TEXT, list: Each(ITEM)}),
        "instructions": TEXT_OR_NULL,
        "tools": Each(Typed(TOOLS)),
        "tool_choice": Maybe(_CHOICE),
        "parallel_tool_calls": Maybe(FLAG),
        "max_output_tokens": Maybe(WHOLE),
        "max_tool_calls": Maybe(WHOLE),
        "temperature": Maybe(NUMBER),
        "top_p": Maybe(NUMBER),
        "top_logprobs": Maybe(WHOLE),
        "reasoning": Maybe(
            form_of(
                {
                    "context": one_or_null("auto", "current_turn", "all_turns"),
                    "effort": EFFORT,
                    "generate_summary": SUMMARY,
                    "mode": TEXT,
                    "summary": SUMMARY,
                }
            )
        ),
        "text": form_of({"format": Typed(_FORMAT), "verbosity": one_or_null("low", "medium", "high")}),
        "include": Maybe(Each(Values(_INCLUDES))),
        "store": Maybe(FLAG),
        "stream": Maybe(FLAG),
        "stream_options": Maybe(form_of({"include_obfuscation": FLAG})),
        "background": Maybe(FLAG),
        "conversation": Maybe(ByKind("a string or an object", {str: TEXT, dict: form_of({"id": TEXT}, "id")})),
        "previous_response_id": TEXT_OR_NULL,
        "prompt": Maybe(
            form_of(
                {
                    "id": TEXT,
                    "variables": Maybe(Keyed(ByKind("a string or a part", {str: TEXT, dict: Typed(INPUT)}))),
                    "version": TEXT_OR_NULL,
                },
                "id",
            )
        ),
        "prompt_cache_key": TEXT_OR_NULL,
        "prompt_cache_options": form_of(
            {
                "comparison_response_id": TEXT_OR_NULL,
                "mode": Values(("implicit", "explicit")),
                "prewarm": FLAG,
                "ttl": Values(("30m", "12h")),
            }
        ),
        "prompt_cache_retention": one_or_null("in_memory", "24h"),
        "safety_identifier": TEXT_OR_NULL,
        "service_tier": one_or_null("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
        "truncation": one_or_null("auto", "disabled"),
        "metadata": Maybe(Keyed(TEXT)),
        "client_metadata": Maybe(Keyed(TEXT)),  # not in the SDK's types; Codex sends it with every request
        "user": TEXT,
        "access_programs": form_of({"cyber": Values(("standard", "daybreak_blue", "daybreak_red"))}),
        "context_management": Maybe(Each(form_of({"type": TEXT, "compact_threshold": Maybe(WHOLE)}, "type"))),
        "image": form_of({"context_compression": Values(("auto", "enabled", "disabled"))}),
        "moderation": Maybe(
            form_of({"model": TEXT, "policy": Maybe(form_of({"input": _MODERATED, "output": _MODERATED}))}, "model")
        ),
    }
)
