"""Hand-made request bodies that hold every kind of part that a protocol has."""

from __future__ import annotations

from typing import Any, Final

_SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
_PNG: Final = "iVBORw0KGgo="


def _responses(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.5", "input": [{"role": "user", "content": "Go"}, *items], **more}


_OPENAI_RESPONSES: Final[list[dict[str, Any]]] = [
    _responses(
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [
                {"type": "input_text", "text": "Look", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}},
                {"type": "input_image", "detail": "original", "image_url": "https://example.com/a.png"},
                {"type": "input_file", "file_id": "file-1", "detail": "low"},
            ],
        },
    ),
    _responses(
        {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "status": "completed"},
        {
            "type": "file_search_call",
            "id": "fs_2",
            "queries": ["a"],
            "status": "searching",
            "results": [{"file_id": "f", "filename": "a", "score": 0.5, "text": "t", "attributes": {"a": 1.5}}],
        },
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "pending_safety_checks": [{"id": "s1", "code": "c", "message": "m"}],
            "status": "completed",
            "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "https://example.com/a.png"},
            "acknowledged_safety_checks": [{"id": "s1"}],
        },
        {
            "type": "computer_call",
            "id": "cu_2",
            "call_id": "call_2",
            "pending_safety_checks": [],
            "status": "completed",
            "actions": [
                {"type": "double_click", "x": 1, "y": 2, "keys": None},
                {"type": "drag", "path": [{"x": 1, "y": 2}]},
                {"type": "keypress", "keys": ["a"]},
                {"type": "move", "x": 1, "y": 2},
                {"type": "screenshot"},
                {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 3},
                {"type": "type", "text": "t"},
                {"type": "wait"},
            ],
        },
    ),
    _responses(
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "open_page", "url": "u"}},
        {
            "type": "web_search_call",
            "id": "ws_2",
            "status": "failed",
            "action": {"type": "find_in_page", "url": "u", "pattern": "p"},
        },
        {
            "type": "web_search_call",
            "id": "ws_3",
            "status": "completed",
            "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "u"}]},
        },
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "result": None,
            "status": "completed",
            "output_format": "png",
            "quality": "low",
            "size": "auto",
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1",
            "container_id": "c",
            "outputs": [{"type": "logs", "logs": "l"}, {"type": "image", "url": "u"}],
            "status": "completed",
        },
        {"type": "mcp_list_tools", "id": "ml_1", "server_label": "s", "tools": [{"name": "t", "input_schema": {}}]},
        {
            "type": "mcp_call",
            "id": "mc_1",
            "server_label": "s",
            "name": "t",
            "arguments": "{}",
            "status": "failed",
            "error": {"type": "http_error", "code": 500, "message": "m"},
        },
    ),
    _responses(
        {
            "type": "shell_call",
            "call_id": "call_1",
            "action": {"commands": ["ls"], "timeout_ms": 10, "max_output_length": None},
            "environment": {"type": "local"},
            "caller": {"type": "program", "caller_id": "p"},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [
                {"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
            "status": "completed",
        },
        {
            "type": "apply_patch_call",
            "call_id": "call_2",
            "status": "completed",
            "operation": {"type": "update_file", "path": "a", "diff": "+a"},
        },
        {"type": "apply_patch_call_output", "call_id": "call_2", "status": "failed", "output": "no"},
        {"type": "tool_search_call", "arguments": {"q": 1}, "execution": "client", "call_id": "call_3"},
        {
            "type": "tool_search_output",
            "call_id": "call_3",
            "tools": [{"type": "function", "name": "f", "parameters": _SCHEMA, "strict": True}],
        },
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "program", "id": "pr_1", "call_id": "call_4", "code": "c", "fingerprint": "f"},
        {"type": "program_output", "id": "po_1", "call_id": "call_4", "result": "r", "status": "completed"},
        {"type": "compaction_trigger"},
        {"id": "msg_7"},
    ),
    _responses(
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
            "caller": {"type": "direct"},
            "async": False,
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_url": "https://e/a.pdf"}],
            "caller": {"type": "direct"},
        },
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "p", "input": "i", "namespace": "n"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_image", "detail": "auto", "file_id": "file-1"}],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "t"}],
            "status": "completed",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "incomplete",
            "phase": "final_answer",
            "content": [
                {
                    "type": "output_text",
                    "text": "See",
                    "annotations": [
                        {"type": "file_citation", "file_id": "f", "filename": "n", "index": 0},
                        {"type": "file_path", "file_id": "f", "index": 0},
                        {
                            "type": "container_file_citation",
                            "container_id": "c",
                            "file_id": "f",
                            "filename": "n",
                            "start_index": 0,
                            "end_index": 1,
                        },
                    ],
                    "logprobs": [
                        {
                            "token": "S",
                            "bytes": [83],
                            "logprob": -0.1,
                            "top_logprobs": [{"token": "S", "bytes": [83], "logprob": -0.1}],
                        }
                    ],
                }
            ],
        },
    ),
    _responses(
        tools=[
            {"type": "file_search", "vector_store_ids": ["v"], "filters": {"type": "eq", "key": "k", "value": 1}},
            {"type": "file_search", "vector_store_ids": ["v"], "filters": {"type": "and", "filters": [{"type": "x"}]}},
            {"type": "file_search", "vector_store_ids": ["v"], "ranking_options": {"ranker": "auto"}},
            {"type": "web_search", "user_location": {"type": "approximate", "city": "Köln"}},
            {"type": "web_search_preview", "search_content_types": ["text"]},
            {
                "type": "mcp",
                "server_label": "s",
                "connector_id": "connector_gmail",
                "allowed_tools": {"read_only": True},
            },
            {"type": "mcp", "server_label": "s", "require_approval": {"always": {"tool_names": ["a"]}}},
            {"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "4g", "file_ids": ["f"]}},
            {
                "type": "code_interpreter",
                "container": {"type": "auto", "network_policy": {"type": "allowlist", "allowed_domains": ["e"]}},
            },
            {"type": "image_generation", "background": "opaque", "partial_images": 1, "input_image_mask": {}},
            {"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}},
            {"type": "computer"},
            {"type": "programmatic_tool_calling"},
            {"type": "function", "name": "f", "parameters": None, "strict": None, "allowed_callers": ["direct"]},
            {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "custom", "name": "c"}]},
        ],
        tool_choice={"type": "shell"},
    ),
    {
        "model": "gpt-5.5",
        "prompt": {"id": "p", "variables": {"a": {"type": "input_text", "text": "t"}}},
        "conversation": {"id": "conv_1"},
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
        "moderation": {"model": "m", "policy": {"input": {"mode": "block"}, "output": None}},
        "prompt_cache_options": {"mode": "explicit", "ttl": "12h", "prewarm": True},
        "prompt_cache_retention": "24h",
        "access_programs": {"cyber": "standard"},
        "image": {"context_compression": "auto"},
        "background": True,
        "safety_identifier": "s",
        "reasoning": {"effort": "none", "context": "all_turns", "mode": "pro", "generate_summary": "concise"},
        "text": {"format": {"type": "text"}, "verbosity": "high"},
    },
]


def _gemini(*parts: dict[str, Any], role: str = "model") -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "Go"}]}, {"role": role, "parts": list(parts)}]}


_GEMINI: Final[list[dict[str, Any]]] = [
    {
        "model": "models/gemini-3-pro",
        "contents": [{"parts": [{"text": "Go"}]}],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}},
        "generation_config": {
            "max_output_tokens": 5,
            "thinking_config": {"thinking_budget": -1, "include_thoughts": True},
            "response_modalities": ["TEXT"],
            "candidate_count": 1,
        },
        "safety_settings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "OFF", "method": "SEVERITY"}],
        "cached_content": "c",
        "labels": {"a": "b"},
    },
    _gemini(
        {"function_call": {"name": "f", "args": {"a": 1}, "id": "1"}, "thought_signature": "AAAA"},
        {"text": "Hm", "thought": True},
        {"thoughtSignature": "AAAA"},
        {"functionCall": {"name": "g", "willContinue": True, "partialArgs": [{"jsonPath": "$.a", "boolValue": True}]}},
    ),
    _gemini(
        {
            "function_response": {
                "name": "f",
                "response": {"output": "a"},
                "scheduling": "SILENT",
                "will_continue": False,
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": _PNG}},
                    {"fileData": {"fileUri": "gs://b/a.pdf", "mimeType": "application/pdf"}},
                ],
            }
        },
        role="user",
    ),
    _gemini(
        {
            "inline_data": {"mime_type": "application/zip", "data": _PNG},
            "media_resolution": {"level": "MEDIA_RESOLUTION_LOW"},
        },
        {"fileData": {"fileUri": "https://e/v"}, "videoMetadata": {"startOffset": "1s", "endOffset": "2s", "fps": 1.5}},
        {"text": "a", "partMetadata": {"x": 1}},
        {"inlineData": {"mimeType": "audio/wav", "data": ""}, "audioTranscription": {"text": "t", "finished": True}},
        role="user",
    ),
    {
        "contents": [{"role": "user", "parts": [{"text": "Go"}]}],
        "tools": [
            {
                "function_declarations": [
                    {"name": "f", "description": "d", "behavior": "BLOCKING"},
                    {"name": "g", "parametersJsonSchema": _SCHEMA, "responseJsonSchema": _SCHEMA},
                ],
                "googleSearch": {"excludeDomains": ["e"], "searchTypes": {"webSearch": {}}},
            },
            {
                "google_search_retrieval": {
                    "dynamic_retrieval_config": {"mode": "MODE_DYNAMIC", "dynamic_threshold": 0.5}
                }
            },
            {"urlContext": {}, "enterpriseWebSearch": {"excludeDomains": []}},
            {"computerUse": {"environment": "ENVIRONMENT_BROWSER", "excludedPredefinedFunctions": ["a"]}},
            {"googleMaps": {"enableWidget": True}},
        ],
        "toolConfig": {
            "retrievalConfig": {"latLng": {"latitude": 1.5, "longitude": 2}, "languageCode": "de"},
            "functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": False},
            "includeServerSideToolInvocations": True,
        },
        "generationConfig": {
            "thinkingConfig": {"thinkingLevel": "LOW"},
            "audioTimestamp": False,
            "mediaResolution": "MEDIA_RESOLUTION_HIGH",
            "responseMimeType": "application/json",
        },
        "store": False,
    },
    _gemini(
        {"executable_code": {"language": "PYTHON", "code": "1", "id": "e"}},
        {"code_execution_result": {"outcome": "OUTCOME_FAILED", "output": "", "id": "e"}},
        {"tool_call": {"id": "t", "tool_type": "FILE_SEARCH", "args": {}}},
        {"tool_response": {"id": "t", "tool_type": "FILE_SEARCH", "response": {}}},
    ),
]

_S3: Final = {"s3Location": {"uri": "s3://bucket/key"}}
_BEDROCK: Final[list[dict[str, Any]]] = [
    {
        "messages": [
            {
                "role": "user",
                "content": [{"text": "Go"}, {"guardContent": {"image": {"format": "png", "source": {"bytes": _PNG}}}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "a", "name": "s", "input": {}, "type": "server_tool_use"}},
                    {"toolResult": {"toolUseId": "a", "content": [{"text": "t"}], "type": "s"}},
                    {"toolUse": {"toolUseId": "b", "name": "f", "input": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "b",
                            "status": "error",
                            "content": [
                                {"video": {"format": "mp4", "source": _S3}},
                                {"document": {"name": "D", "format": "txt", "source": {"text": "t"}}},
                                {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
                                {"json": [1]},
                            ],
                        }
                    }
                ],
            },
            {
                "role": "system",
                "content": [{"text": "Be kind."}, {"toolAddition": {"tool": {"name": "f", "type": "t"}}}],
            },
            {
                "role": "user",
                "content": [{"toolRemoval": {"tool": {"name": "f"}}}, {"audio": {"format": "m4a", "source": _S3}}],
            },
        ],
        "system": [{"guardContent": {"text": {"text": "g", "qualifiers": ["query"]}}}],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": _SCHEMA}, "strict": False}}
            ],
            "toolChoice": {"tool": {"name": "f"}},
        },
    },
    {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {
                        "citationsContent": {
                            "content": [{"text": "a"}],
                            "citations": [
                                {"location": {"web": {"url": "u", "domain": "d"}}, "source": "s"},
                                {"location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 1}}},
                                {"location": {"documentChunk": {"documentIndex": 0}}},
                                {"location": {"searchResultLocation": {"searchResultIndex": 0}}},
                            ],
                        }
                    },
                    {"reasoningContent": {"reasoningText": {"text": "t"}}},
                ],
            }
        ],
        "outputConfig": {"effort": "low"},
        "inferenceConfig": {"maxTokens": 1, "temperature": 0, "stopSequences": []},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "DRAFT", "trace": "disabled"},
        "toolConfig": {"tools": [{"systemTool": {"name": "s"}}], "toolChoice": {"auto": {}}},
    },
]


_COHERE: Final[list[dict[str, Any]]] = [
    {
        "model": "command-a",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "auto"}}
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm"}],
                "tool_plan": "",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "citations": [
                    {
                        "start": 0,
                        "end": 1,
                        "text": "t",
                        "sources": [{"type": "document", "id": "d"}],
                        "content_index": 0,
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "document", "document": {"data": {"a": 1}}}]},
            {"role": "assistant", "content": "Done"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}],
        "citation_options": {"mode": "OFF"},
        "safety_mode": "STRICT",
        "tool_choice": "REQUIRED",
        "response_format": {"type": "json_object"},
    },
]

_OLLAMA: Final[list[dict[str, Any]]] = [
    {
        "model": "qwen3",
        "messages": [
            {"role": "user", "content": "Go", "images": [_PNG]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "tool", "tool_name": "f", "content": "done"},
            {"role": "assistant", "content": "Done"},
            {"role": "system", "content": "Be kind."},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": _SCHEMA}}],
        "options": {"num_ctx": 1, "stop": ["a"], "numa": False, "mirostat": 1, "repeat_penalty": 1.5, "use_mmap": True},
        "keep_alive": "5m",
        "format": "",
        "think": "low",
        "stream": True,
        "logprobs": False,
        "top_logprobs": 1,
    },
    {
        "model": "qwen3",
        "options": {"temperature": 0, "top_k": 1, "top_p": 0.5, "penalize_newline": True},
        "keep_alive": 0,
    },
]

SAMPLES: Final[dict[str, list[dict[str, Any]]]] = {
    "openai_responses": _OPENAI_RESPONSES,
    "gemini": _GEMINI,
    "bedrock": _BEDROCK,
    "cohere": _COHERE,
    "ollama": _OLLAMA,
}
