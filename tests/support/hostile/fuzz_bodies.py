"""Bodies that use every field that we know of, by protocol: what the fuzz of types changes.

Requests: the bodies that providers were seen to take, those that SDKs sent, those that hold every kind of part, and
some in old and mixed forms. Replies, streams, errors and documents of our own are beside them.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Final

from support.referee import good_bodies
from support.referee.sample_bodies import SAMPLES
from support.translate.reply_bodies import BODIES as REPLIES
from support.translate.reply_bodies import PROTOCOLS
from toolglot import profiles

Body = dict[str, Any]

TESTS: Final = Path(__file__).parents[2]
MAX_RECORDED: Final = 20_000
"""Bytes of a recorded body that is used."""
TARGETS: Final = profiles.names()

_FUNCTION: Final[Body] = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
_PARTS: Final[list[Any]] = [
    {"type": "text", "text": "a"},
    {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"},
    {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    {"functionCall": {"name": "f", "args": {}}},
    {"toolUse": {"toolUseId": "t2", "name": "f", "input": {}}},
]
OLD_AND_MIXED: Final[dict[str, list[Body]]] = {
    "openai_chat": [
        {
            "model": "gpt-4",
            "functions": [_FUNCTION],
            "function_call": {"name": "f"},
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "r"},
            ],
        },
        {"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": _PARTS}]},
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "function_call", "function_call": _FUNCTION}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "r"},
                {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
                {"role": "human", "content": "go"},
                {"role": "model", "parts": [{"text": "ok"}]},
            ],
        },
    ],
    "anthropic": [
        {
            "model": "m",
            "max_tokens": 10,
            "functions": [_FUNCTION],
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "5m"}}],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": _PARTS, "tool_calls": [{"id": "c", "function": _FUNCTION}]},
                {"role": "tool", "tool_call_id": "c", "content": "r"},
                {"role": "user", "content": [{"functionResponse": {"name": "f", "response": {}}}]},
            ],
        }
    ],
    "openai_responses": [
        {"model": "m", "input": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": _PARTS}]},
        {
            "model": "m",
            "functions": [_FUNCTION],
            "input": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "r"},
                {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": _FUNCTION}]},
                {"role": "tool", "tool_call_id": "c", "content": "r"},
            ],
        },
    ],
    "gemini": [
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "assistant", "content": _PARTS},
                {"role": "model", "parts": _PARTS},
            ],
            "system_instruction": {"parts": [{"text": "s"}]},
            "generation_config": {"temperature": 1},
        }
    ],
    "bedrock": [
        {
            "messages": [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": _PARTS}],
            "system": [{"text": "s"}],
        }
    ],
    "cohere": [
        {"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": _PARTS}]}
    ],
    "ollama": [
        {"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": _PARTS}]}
    ],
}


@functools.cache
def requests(protocol: str) -> list[Body]:
    """Requests in a protocol, those of all its providers."""
    bodies = [*OLD_AND_MIXED[protocol], *SAMPLES.get(protocol, ())]
    for file in sorted((TESTS / "accepted_bodies").glob("*.json")):
        if profiles.get(file.stem).protocol == protocol:
            bodies += [case["body"] for case in json.loads(file.read_text())]
    bodies += _recorded(protocol, "request")
    for target in good_bodies.TARGETS:
        if profiles.get(target).protocol == protocol:
            bodies += good_bodies.good(target)
    return _different(bodies)


@functools.cache
def replies(protocol: str) -> list[Body]:
    """Whole answers in a protocol."""
    made = [bodies[protocol] for bodies in REPLIES.values() if protocol in bodies]
    return _different([*made, *_recorded(protocol, "reply"), *_old_replies(protocol)])


def _old_replies(protocol: str) -> list[Body]:
    if protocol != "openai_chat":
        return []
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    return [{"id": "c", "object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]}]


def _recorded(protocol: str, kind: str) -> list[Body]:
    files = sorted((TESTS / "recordings" / protocol).glob(f"*.{kind}.json"))
    found = [json.loads(file.read_text()) for file in files if file.stat().st_size < MAX_RECORDED]
    return [body for body in found if isinstance(body, dict)]


def _different(bodies: list[Body]) -> list[Body]:
    return list({json.dumps(body, sort_keys=True): body for body in bodies}.values())


ERRORS: Final[list[Body]] = [
    {"type": "error", "error": {"type": "rate_limit_error", "message": "slow", "details": None}, "request_id": "r"},
    {"error": {"message": "no", "type": "invalid_request_error", "param": "messages[0]", "code": "x"}},
    {
        "error": {
            "code": 429,
            "message": "no",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"},
                {"@type": "x", "violations": [{"quotaId": "q"}]},
            ],
        }
    },
    {"message": "no", "__type": "ThrottlingException"},
    {"error": "model not found"},
    {"id": "e", "message": "no", "detail": [{"loc": ["body", "x"], "msg": "m", "type": "t"}], "object": "error"},
    {"error": {"message": "m", "metadata": {"raw": "{}", "provider_name": "p"}, "code": 502}, "user_id": "u"},
]
"""Errors of providers."""

__all__ = ["ERRORS", "PROTOCOLS", "TARGETS", "TESTS", "Body", "replies", "requests"]
