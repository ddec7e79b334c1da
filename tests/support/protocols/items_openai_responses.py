"""Items of the OpenAI Responses protocol."""

from __future__ import annotations

from typing import Any

from support.protocols.strategies.wire_objects import Fields


def message(role: str, *parts: Fields, **fields: Any) -> Fields:
    return {"type": "message", "role": role, "content": list(parts), **fields}


def output_text(text: str) -> Fields:
    return {"type": "output_text", "text": text}


def input_text(text: str) -> Fields:
    return {"type": "input_text", "text": text}


def call(**fields: Any) -> Fields:
    return {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", **fields}


def output(**fields: Any) -> Fields:
    return {"type": "function_call_output", "call_id": "call_1", "output": "out", **fields}
