"""The fields of a Chat Completions request, of every host that has this protocol.

This table has the fields of all of them, from the types of the SDKs of OpenAI and Mistral, and the documentation of the
others. Which of them a host has is in its profile (`request.fields`, `request.message_fields`). Where that is not
known, all are accepted: a false alarm is worse than a missed field.
"""

from __future__ import annotations

from typing import Any, Final

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
    FormFaults,
    JsonForm,
    Maybe,
    Typed,
    Values,
)
from toolglot.referee.readers.forms import (
    lenient_typed_form as _form,
)


def _part(field: str, form: JsonForm, **more: JsonForm) -> Fields:
    """A content part, with its cache marker."""
    marks: dict[str, JsonForm] = {"cache_control": ANYTHING, "prompt_cache_breakpoint": ANYTHING}
    return _form({field: form, **marks, **more}, field)


def _url(**more: JsonForm) -> ByKind:
    """A URL, plain or in an object."""
    return ByKind("an address", {str: TEXT, dict: _form({"url": TEXT, **more}, "url")})


_AUDIO: Final = ByKind("audio", {str: TEXT, dict: _form({"data": TEXT, "format": TEXT}, "data", "format")})
_THOUGHTS: Final = ByKind("a string or a list", {str: TEXT, list: LIST})
TEXT_PART: Final = _part("text", TEXT)
MEDIA_PARTS: Final[dict[str, JsonForm]] = {
    "image_url": _part("image_url", _url(detail=TEXT), detail=TEXT),
    "input_audio": _part("input_audio", _AUDIO),
    "audio_url": _part("audio_url", _url()),
    "video_url": _part("video_url", _url(fps=NUMBER), fps=NUMBER),
    "file": _form(
        {
            "file": _form({"file_data": TEXT, "file_id": TEXT, "filename": TEXT}),
            "file_id": TEXT,
            "cache_control": ANYTHING,
            "prompt_cache_breakpoint": ANYTHING,
        }
    ),
    "file_url": _part("file_url", _url()),
    "document_url": _part("document_url", TEXT, document_name=TEXT),
    "image_embeds": ANYTHING,
}
PARTS: Final[dict[str, JsonForm]] = {
    "text": TEXT_PART,
    **MEDIA_PARTS,
    "refusal": _part("refusal", TEXT),
    "thinking": _form({"thinking": _THOUGHTS, "signature": TEXT, "closed": FLAG}, "thinking"),
    "reference": ANYTHING,
}
CONTENT: Final = ByKind("a string or a list of parts", {str: TEXT, list: Each(Typed(PARTS))})
CALL: Final = _form(
    {
        "id": TEXT,
        "type": TEXT,
        "index": WHOLE,
        "function": _form({"name": TEXT, "arguments": ANYTHING}, "name", "arguments"),
        "custom": _form({"name": TEXT, "input": TEXT}, "name", "input"),
        "extra_content": ANYTHING,
    }
)
_NAMED: Final[dict[str, JsonForm]] = {"role": TEXT, "name": TEXT, "content": CONTENT, "cache_control": ANYTHING}
MESSAGES: Final[dict[str, JsonForm]] = {
    "system": _form(_NAMED, "content"),
    "developer": _form(_NAMED, "content"),
    "user": _form(_NAMED, "content"),
    "assistant": _form(
        {
            **_NAMED,
            "tool_calls": Each(CALL),
            "function_call": _form({"name": TEXT, "arguments": TEXT}, "name", "arguments"),
            "refusal": TEXT,
            "audio": _form({"id": TEXT}, "id"),
            "annotations": ANYTHING,
            "prefix": FLAG,
            "partial": FLAG,
            "reasoning_content": TEXT,
            "reasoning": TEXT,
            "reasoning_details": LIST,
        }
    ),
    "tool": _form({**_NAMED, "tool_call_id": TEXT}, "content"),
    "function": Fields({"role": TEXT, "name": TEXT, "content": Maybe(CONTENT)}, ("name", "content")),
}
FUNCTION: Final = _form({"name": TEXT, "description": TEXT, "parameters": OBJECT, "strict": FLAG}, "name")
_GRAMMAR: Final = _form({"syntax": Values(("lark", "regex")), "definition": TEXT}, "syntax", "definition")
_WRITING: Final = Typed({"text": _form({}), "grammar": _form({"grammar": _GRAMMAR}, "grammar")})
CUSTOM: Final = _form({"name": TEXT, "description": TEXT, "format": _WRITING}, "name")
_MARK: Final[dict[str, JsonForm]] = {"cache_control": ANYTHING}


class ToolForm:
    """A function, a free-text tool, or one of the host's own, of which only the type is checked."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        kind = value.get("type", "function") if isinstance(value, dict) else "function"
        if kind == "function":
            _form({"function": FUNCTION, **_MARK}, "function").check(value, path, found)
        elif kind == "custom":
            _form({"custom": CUSTOM, **_MARK}, "custom").check(value, path, found)
        else:
            TEXT.check(kind, f"{path}.type", found)


_NAME_ONLY: Final = _form({"name": TEXT}, "name")
_ALLOWED: Final = _form({"mode": Values(("auto", "required")), "tools": Each(OBJECT)}, "mode", "tools")
CHOICE: Final = ByKind(
    "a mode or an object",
    {
        str: TEXT,
        dict: Typed(
            {
                "function": _form({"function": _NAME_ONLY}, "function"),
                "custom": _form({"custom": _NAME_ONLY}, "custom"),
                "allowed_tools": _form({"allowed_tools": _ALLOWED}, "allowed_tools"),
            }
        ),
    },
)
_FORMAT: Final = Typed(
    {
        "text": _form({}),
        "json_object": _form({"schema": OBJECT}),
        "json_schema": _form({"json_schema": OBJECT, "schema": OBJECT}),
        "grammar": ANYTHING,
        "python": ANYTHING,
    }
)
_TYPED: Final[dict[str, JsonForm]] = {
    "model": TEXT,
    "messages": Each(Typed(MESSAGES, key="role")),
    "tools": Each(ToolForm()),
    "tool_choice": CHOICE,
    "parallel_tool_calls": FLAG,
    "functions": Each(FUNCTION),
    "function_call": ByKind("a mode or an object", {str: TEXT, dict: _NAME_ONLY}),
    "max_tokens": WHOLE,
    "max_completion_tokens": WHOLE,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "top_k": WHOLE,
    "stop": ByKind("a string or a list of strings", {str: TEXT, list: TEXTS}),
    "seed": WHOLE,
    "random_seed": WHOLE,
    "presence_penalty": NUMBER,
    "frequency_penalty": NUMBER,
    "n": WHOLE,
    "logit_bias": OBJECT,
    "logprobs": FLAG,
    "top_logprobs": WHOLE,
    "metadata": OBJECT,
    "modalities": TEXTS,
    "audio": _form({"voice": ByKind("a voice", {str: TEXT, dict: OBJECT}), "format": TEXT}, "voice", "format"),
    "prediction": _form({"type": Values(("content",)), "content": CONTENT}, "type", "content"),
    "reasoning_effort": TEXT,
    "response_format": _FORMAT,
    "service_tier": TEXT,
    "store": FLAG,
    "stream": FLAG,
    "stream_options": _form({"include_usage": FLAG}),
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": TEXT,
    "web_search_options": OBJECT,
    "verbosity": TEXT,
    "enable_thinking": FLAG,
    "thinking": OBJECT,
    "thinking_budget": WHOLE,
    "reasoning": OBJECT,
}
_UNTYPED: Final = (
    # OpenAI
    *("moderation", "prompt_cache_options", "prompt_cache_retention"),
    # Mistral
    *("min_tokens", "repetition_penalty", "prompt_logprobs", "top_prompt_logprobs"),
    *("prompt_mode", "guardrails", "safe_prompt"),
    # Groq, Cerebras, xAI, MiniMax, Qwen, GLM
    *("reasoning_format", "include_reasoning", "disable_tool_validation", "search_settings", "compound_custom"),
    *(
        "citation_options",
        "documents",
        "disable_reasoning",
        "clear_thinking",
        "queue_threshold",
        "payload_optimization",
    ),
    *("search_parameters", "deferred", "reasoning_split", "mask_sensitive_info", "tokens_to_generate", "bot_setting"),
    *("enable_search", "search_options", "preserve_thinking", "vl_high_resolution_images", "translation_options"),
    *("enable_code_interpreter", "do_sample", "tool_stream", "request_id", "user_id", "watermark_enabled"),
    # OpenRouter
    *("models", "provider", "route", "transforms", "plugins", "usage", "session_id", "trace", "top_a", "min_p"),
    *("structured_outputs", "debug", "image_config", "cache_control"),
)
BODY: Final = Fields({**_TYPED, **dict.fromkeys(_UNTYPED, ANYTHING)}, ("messages",), null_is_absent=True)
