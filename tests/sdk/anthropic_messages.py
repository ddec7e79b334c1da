"""Requests of the Anthropic SDK."""

from __future__ import annotations

from typing import Final

from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, BIG, HARD_TEXT, NESTED, PDF, PNG, SIGNATURE, WEATHER

MODEL: Final = "claude-opus-5"
QUESTION: Final[MessageParam] = {"role": "user", "content": "What is the weather in Köln?"}
TOOL: Final[ToolParam] = {"name": "get_weather", "description": "The weather", "input_schema": WEATHER}
HISTORY: Final[list[MessageParam]] = [
    QUESTION,
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I need two cities.", "signature": SIGNATURE},
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_01A", "name": "get_weather", "input": {"city": "Köln", "days": BIG}},
            {"type": "tool_use", "id": "toolu_01B", "name": "get_weather", "input": {}, "caller": {"type": "direct"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "7 °C"},
            {"type": "tool_result", "tool_use_id": "toolu_01B", "content": "no city", "is_error": True},
        ],
    },
]


def plain(client: Anthropic) -> object:
    return client.messages.create(model=MODEL, max_tokens=64, messages=[QUESTION])


def system_and_cache(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        system=[
            {"type": "text", "text": "Be brief."},
            {"type": "text", "text": HARD_TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ],
        messages=[{"role": "user", "content": [{"type": "text", "text": HARD_TEXT, "cache_control": None}]}],
        cache_control={"type": "ephemeral"},
        metadata={"user_id": '{"device":"d1"}'},
    )


def system_in_messages(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        system="Be brief.",
        messages=[*HISTORY, {"role": "system", "content": "The user is in a hurry."}],
        tools=[TOOL],
    )


def media(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                        "title": "Report",
                        "context": "of May",
                        "citations": {"enabled": True},
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": HARD_TEXT},
                        "title": None,
                    },
                    {
                        "type": "document",
                        "source": {"type": "content", "content": [{"type": "text", "text": "a part"}]},
                    },
                    {
                        "type": "search_result",
                        "source": "https://example.com",
                        "title": "Example",
                        "content": [{"type": "text", "text": "found"}],
                        "citations": {"enabled": True},
                    },
                    {"type": "text", "text": "Compare."},
                ],
            }
        ],
    )


def tools_of_every_kind(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        tools=[
            {**TOOL, "type": "custom", "strict": True, "cache_control": {"type": "ephemeral"}},
            {
                "name": "query",
                "input_schema": NESTED,
                "defer_loading": True,
                "eager_input_streaming": True,
                "input_examples": [{"rows": [], "limit": 1.0}],
                "allowed_callers": ["direct", "code_execution_20260120"],
            },
            {"name": "no_arguments", "input_schema": {"type": "object"}},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 1000},
            {"type": "memory_20250818", "name": "memory"},
            {
                "type": "web_search_20260318",
                "name": "web_search",
                "max_uses": 3,
                "allowed_domains": ["example.com"],
                "user_location": {"type": "approximate", "city": "Köln", "country": None},
            },
            {"type": "web_fetch_20260318", "name": "web_fetch", "citations": {"enabled": True}},
            {"type": "code_execution_20260521", "name": "code_execution"},
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
            {"type": "computer_toolset_20260801"},
            {"type": "browser_toolset_20260801"},
        ],
    )


def choice_auto(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        tools=[TOOL],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    )


def choice_any(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        tools=[TOOL],
        tool_choice={"type": "any", "disable_parallel_tool_use": False},
    )


def choice_tool(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        tools=[TOOL],
        tool_choice={"type": "tool", "name": "get_weather"},
    )


def choice_none(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL, max_tokens=64, messages=[QUESTION], tools=[TOOL], tool_choice={"type": "none"}
    )


def history(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=2048,
        messages=HISTORY,
        tools=[TOOL],
        thinking={"type": "enabled", "budget_tokens": 1024},
    )


def results_with_media(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        tools=[TOOL],
        messages=[
            *HISTORY[:2],
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_01A",
                        "content": [
                            {"type": "text", "text": "the map"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                            {
                                "type": "document",
                                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                            },
                        ],
                        "is_error": False,
                        "cache_control": {"type": "ephemeral"},
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_01B",
                        "content": [{"type": "tool_reference", "tool_name": "query"}],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_02", "name": "ping", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_02"}]},
        ],
    )


def server_tools_replayed(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[
            QUESTION,
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Köln"}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_1",
                        "content": [
                            {
                                "type": "web_search_result",
                                "url": "https://example.com",
                                "title": "Köln",
                                "encrypted_content": "RW5j",
                                "page_age": None,
                            }
                        ],
                    },
                    {
                        "type": "text",
                        "text": "7 °C",
                        "citations": [
                            {
                                "type": "web_search_result_location",
                                "cited_text": "7 °C",
                                "encrypted_index": "RWky",
                                "title": "Köln",
                                "url": "https://example.com",
                            }
                        ],
                    },
                    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "1"}},
                    {
                        "type": "code_execution_tool_result",
                        "tool_use_id": "srvtoolu_2",
                        "content": {
                            "type": "code_execution_result",
                            "stdout": "1\n",
                            "stderr": "",
                            "return_code": 0,
                            "content": [],
                        },
                    },
                ],
            },
            {"role": "user", "content": "Thanks"},
        ],
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    )


def adaptive_and_structured(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": ANSWER}},
        service_tier="auto",
        inference_geo="eu",
    )


def thinking_off(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL, max_tokens=64, messages=[QUESTION], thinking={"type": "disabled"}, output_config={"effort": None}
    )


def thinking_between_tools(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL, max_tokens=64, messages=[QUESTION], tools=[TOOL], thinking={"type": "between_tools"}
    )


def sampling(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION, {"role": "assistant", "content": "It is"}],
        stop_sequences=["\n\n", "END"],
        extra_body={"temperature": 1.0, "top_p": 1e-7, "top_k": 40},
    )


def unknown_fields(client: Anthropic) -> object:
    return client.messages.create(
        model=MODEL,
        max_tokens=64,
        messages=[QUESTION],
        extra_body={"new_field": {"a": [1, 1.0, None, True, BIG]}, "~odd": 1, "top_k": None},
    )


def beta_fields(client: Anthropic) -> object:
    return client.beta.messages.create(
        model=MODEL,
        max_tokens=64,
        betas=["mcp-client-2025-11-20", "context-management-2025-06-27"],
        messages=[{"role": "user", "content": "Use the server."}],
        mcp_servers=[{"type": "url", "name": "files", "url": "https://mcp.example.com", "authorization_token": None}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "files", "default_config": {"enabled": True}}],
        context_management={"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]},
        container={"skills": [{"type": "anthropic", "skill_id": "pdf", "version": "latest"}]},
    )


def stream(client: Anthropic) -> None:
    client.messages.create(model=MODEL, max_tokens=64, messages=[QUESTION], stream=True).close()


def stream_with_tools(client: Anthropic) -> None:
    client.messages.create(
        model=MODEL, max_tokens=64, messages=HISTORY, tools=[TOOL], system=HARD_TEXT, stream=True
    ).close()


SDK: Final = Sdk(
    "anthropic",
    "anthropic",
    "anthropic",
    lambda url: Anthropic(api_key="key", base_url=url, max_retries=0),
    named(
        *(plain, system_and_cache, system_in_messages, media, tools_of_every_kind, choice_auto, choice_any),
        *(choice_tool, choice_none, history, results_with_media, server_tools_replayed, adaptive_and_structured),
        *(thinking_off, thinking_between_tools, sampling, unknown_fields, beta_fields, stream, stream_with_tools),
    ),
)
