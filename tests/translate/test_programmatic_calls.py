"""Calls that a provider's code makes: as they came at their own provider, ordinary calls elsewhere."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from toolglot import Policy, ServerToolError, convert, lint

CODE: Final = "code_execution_20260120"
BODY: Final[dict[str, Any]] = {
    "model": "claude-opus-4-8",
    "max_tokens": 100,
    "tools": [
        {"type": CODE, "name": "code_execution"},
        {
            "name": "query",
            "description": "Asks the database.",
            "input_schema": {"type": "object", "properties": {"sql": {"type": "string"}}},
            "allowed_callers": [CODE],
        },
    ],
    "messages": [
        {"role": "user", "content": "Count."},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "query()"}},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "query",
                    "input": {"sql": "x"},
                    "caller": {"type": CODE, "tool_id": "srvtoolu_1"},
                },
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "[1,2]"}]},
    ],
}
DATA: Final = msgspec.json.encode(BODY)


def test_a_request_to_its_own_provider_leaves_as_it_came() -> None:
    assert lint(DATA, "anthropic", "claude-opus-4-8") == ()
    assert convert(DATA, source="anthropic", target="anthropic", model="claude-opus-4-8").data is DATA


def test_elsewhere_the_calls_of_the_code_are_ordinary_calls() -> None:
    policy = Policy(server_tools="spare")
    out = convert(DATA, source="anthropic", target="openai", model="gpt-4.1", policy=policy)
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["query"]
    _, calling, result = out.body["messages"]
    assert [call["function"]["name"] for call in calling["tool_calls"]] == ["query"]
    assert "query()" in calling["content"]
    assert (result["role"], result["content"]) == ("tool", "[1,2]")
    gravities = {entry.path: entry.gravity for entry in out.report if "caller" in entry.path}
    assert gravities == {"$.caller": "change", "$.allowed_callers": "change"}


def test_a_target_that_cannot_run_the_code_is_refused_by_name() -> None:
    with pytest.raises(ServerToolError, match=CODE):
        convert(DATA, source="anthropic", target="openai", model="gpt-4.1")
