"""Conversations that providers take part in, turn by turn, through `History`, and what each target is sent of them.

`request_of` goes the whole way: History, render, encode, referee, the judges from outside.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from support.protocols.request_parts import RequestParts, read_parts
from support.translate.conversion_checks import Fields, Target, assert_paired, protocol_of, refusal
from toolglot import History, Issuer, Policy, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn, lint, profiles
from toolglot.protocols.base import codec
from toolglot.render import Rendered, render

TOOLS = tuple(ToolSpec(name, f"Does {name}.", {"type": "object", "properties": {}}) for name in ("read", "write"))
RAW_IDS = {
    "anthropic": "toolu_01{}",
    "bedrock": "tooluse_{}",
    "kimi": "functions.read:{}",
    "mistral": "abcdefg{:02}",
    "gemini": "",
    "ollama": "",
}


class Request:
    """A request body for a target, with its parts."""

    def __init__(self, body: Fields, made: Rendered, target: Target) -> None:
        self.body = body
        self.made = made
        self.data = msgspec.json.encode(body)
        self.parts: RequestParts = read_parts(protocol_of(target), body)

    @property
    def reasons(self) -> str:
        return "\n".join(str(entry) for entry in self.made.entries)


def request_of(history: History, target: Target, *, policy: Policy | None = None) -> Request:
    profile = profiles.get(*target)
    conversation = replace(history.conversation, model=target[1], tools=TOOLS)
    made = render(conversation, profile, policy=policy or Policy(ids="canonical"))
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    assert [str(found) for found in lint(body, *target)] == [], msgspec.json.encode(body).decode()
    assert refusal(body, target) == ""
    request = Request(body, made, target)
    assert_paired(request.parts, target)
    return request


def raw_id(provider: str, number: int) -> str:
    """An id as the provider makes them."""
    return RAW_IDS.get(provider, "call_{}").format(number)


def calling(provider: str, *numbers: int, name: str = "read", thinking: str = "hm", text: str = "") -> Turn:
    """A provider's turn: thinking, words, and a call for each number."""
    calls = [ToolCall(raw_id(provider, number), name, {"n": number}) for number in numbers]
    is_signed = profiles.get(provider).protocol != "openai_chat"
    before: list[Any] = [Thinking(thinking, f"signed-by-{provider}" if is_signed else None)] if thinking else []
    before += [Text(text)] if text else []
    return Turn("assistant", (*before, *calls), issuer=Issuer(provider))


def answering(provider: str, *numbers: int) -> Turn:
    return Turn(
        "tool", tuple(ToolResult(raw_id(provider, n), f"printed {n}.") for n in numbers), issuer=Issuer(provider)
    )


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))
