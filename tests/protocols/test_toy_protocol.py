"""A protocol that toolglot does not know, added as CONTRIBUTING.md says: a folder and a profile, and no other file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TOY_REQUEST = {
    "model": "m",
    "lines": [
        {"who": "user", "text": "Weather in Oslo?"},
        {"who": "model", "text": "I look.", "calls": [{"id": "call_1", "tool": "weather", "input": {"city": "Oslo"}}]},
        {"who": "tool", "id": "call_1", "text": "rain"},
    ],
    "tools": [{"name": "weather", "about": "Tells it.", "input": {"type": "object", "properties": {}}}],
}
TOY_REPLY = {
    "model": "m",
    "line": {
        "who": "model",
        "text": "I look.",
        "calls": [{"id": "call_2", "tool": "weather", "input": {"city": "Rome"}}],
    },
    "end": "calls",
    "cost": {"in": 3, "out": 4},
}
TOY_STREAM = (
    '{"text":"I "}\n{"text":"look."}\n'
    '{"call":{"id":"call_2","tool":"weather","input":{"city":"Rome"}}}\n'
    '{"end":"calls","cost":{"in":3,"out":4}}\n'
)
CHAT_REQUEST = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Weather in Oslo?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Tells it.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ],
}
CALL = {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
CHAT_REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }
    return f"data: {json.dumps(body)}\n\n"


CHAT_STREAM = (
    chunk({"role": "assistant", "content": "I "})
    + chunk({"content": "look."})
    + chunk({"tool_calls": [{"index": 0, **CALL}]})
    + chunk({}, "tool_calls", usage=CHAT_REPLY["usage"])
    + "data: [DONE]\n\n"
)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process makes of it in which the protocol was registered."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(HERE / "toy_lines", folder / "toy_lines", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "profiles.toml").write_text('[profiles.toys]\nprotocol = "toy_lines"\n')
    cases = {
        "requests": {
            "request in": (TOY_REQUEST, "toys", "openai_compatible"),
            "request out": (CHAT_REQUEST, "openai_compatible", "toys"),
            "request home": (TOY_REQUEST, "toys", "toys"),
        },
        "replies": {
            "reply in": (CHAT_REPLY, "openai_compatible", "toys"),
            "reply out": (TOY_REPLY, "toys", "openai_compatible"),
        },
        "streams": {
            "stream in": (CHAT_STREAM, "openai_compatible", "toys"),
            "stream out": (TOY_STREAM, "toys", "openai_compatible"),
        },
        "errors": {
            "error in": (429, {"error": {"message": "slow down"}}, "openai_compatible", "toys"),
            "error out": (401, {"error": "no such key"}, "toys", "openai_compatible"),
        },
        "fragments": {"whole reply": (TOY_REPLY, "toy_lines")},
        "malformed": {
            "no lines": ({"model": "m"}, "toys", "openai_compatible"),
            "unknown speaker": ({"lines": [{"who": "zz"}]}, "toys", "openai_compatible"),
        },
        "linted": TOY_REQUEST,
    }
    program = HERE / "toy_conversions.py"
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(folder), "PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    done: dict[str, Any] = json.loads(ran.stdout)
    return done


def test_requests_go_both_ways(converted: dict[str, Any]) -> None:
    assert converted["request in"] == CHAT_REQUEST
    assert converted["request out"] == TOY_REQUEST
    assert converted["request home"] == TOY_REQUEST


def test_replies_go_both_ways(converted: dict[str, Any]) -> None:
    assert converted["reply in"] == TOY_REPLY
    choice = converted["reply out"]["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I look."
    assert choice["message"]["tool_calls"] == [CALL]
    assert converted["reply out"]["usage"]["total_tokens"] == 7


def test_streams_go_both_ways(converted: dict[str, Any]) -> None:
    assert converted["stream in"] == TOY_STREAM
    *events, done = (line.removeprefix("data: ") for line in converted["stream out"].split("\n\n") if line)
    assert done == "[DONE]"
    deltas = [choice for event in map(json.loads, events) for choice in event["choices"]]
    assert "".join(one["delta"].get("content") or "" for one in deltas) == "I look."
    calls = [call for one in deltas for call in one["delta"].get("tool_calls", ())]
    assert [call["function"]["name"] for call in calls if "name" in call["function"]] == ["weather"]
    assert json.loads("".join(call["function"].get("arguments", "") for call in calls)) == {"city": "Rome"}
    assert [one["finish_reason"] for one in deltas if one["finish_reason"]] == ["tool_calls"]


def test_errors_go_both_ways(converted: dict[str, Any]) -> None:
    assert converted["error in"] == [429, {"error": "slow down"}]
    status, body = converted["error out"]
    assert (status, body["error"]["message"]) == (401, "no such key")


def test_malformed_bodies_are_refused_with_their_path(converted: dict[str, Any]) -> None:
    assert "$.lines" in converted["no lines"]
    assert "$.lines[0].who" in converted["unknown speaker"]
    assert "the referee cannot read the protocol 'toy_lines'" in converted["linted"]


def test_without_a_reader_of_fragments_whole_replies_are_read(converted: dict[str, Any]) -> None:
    assert converted["whole reply"] == [["weather", {"city": "Rome"}]]
