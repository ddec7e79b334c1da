"""Steering: user input for a response that runs on a WebSocket (`response.steer`).

    accepted ── the response completes ──▶ a successor, which continues it with the input
             ── it waits for results ────▶ pending: the input comes first in the request that brings them
             ── it fails ────────────────▶ failed: the client gets its input back

The response is not interrupted: providers have no way to do that without losing what they wrote. Names, codes and forms
are those of OpenAI's SDK.

Law: pure. Input that was accepted is in exactly one request, or comes back in `response.steer.failed`.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

MAX_STEERS: Final = 16
"""Inputs that wait for one response."""

_FIELDS: Final = frozenset({"type", "previous_response_id", "input"})
_MESSAGE_FIELDS: Final = frozenset({"type", "role", "content", "id", "status"})
_PARTS: Final = frozenset({"input_text", "input_image", "input_file"})
_RESULTS: Final = {
    "function_call": ("function_call_output", ("call_id", "name")),
    "custom_tool_call": ("custom_tool_call_output", ("call_id",)),
    "computer_call": ("computer_call_output", ("call_id",)),
    "shell_call": ("shell_call_output", ("call_id",)),
    "apply_patch_call": ("apply_patch_call_output", ("call_id",)),
}
"""Calls that the client answers: the type of the result, and what it repeats of the call."""

_encode: Final = msgspec.json.Encoder().encode

Fields = dict[str, Any]


class SteerEvent(Struct, frozen=True):
    """`response.steer`."""

    previous: str
    input: Any
    """As the client wrote it."""
    items: bytes
    """The same as items, separated by commas."""
    problem: str = ""
    """What is wrong with it; empty: nothing."""
    id: str = ""
    """Empty: it is not accepted."""
    lane: str = ""

    def encode(self, kind: str, number: int, **more: Any) -> bytes:
        """An event about it."""
        steer: Fields = {"id": self.id, "previous_response_id": self.previous}
        if kind == "failed":
            steer = {**({"id": self.id} if self.id else {}), "previous_response_id": self.previous, "input": self.input}
        named = {"stream_id": self.lane} if self.lane else {}
        return _encode({"type": f"response.steer.{kind}", "sequence_number": number, **named, "steer": steer, **more})

    def failed(self, code: str, message: str, number: int = 0) -> bytes:
        error = {"type": "invalid_request_error", "code": code, "message": message}
        return self.encode("failed", number, error=error)

    def pending(self, items: bytes, number: int) -> bytes:
        """The event that it waits for the results of the calls among these items."""
        required = [stub for item in msgspec.json.decode(b"[%b]" % items) if (stub := required_input(item)) is not None]
        return self.encode("pending", number, reason="waiting_for_required_input", required_input=required)


def read_steer(fields: dict[str, Raw]) -> SteerEvent:
    """The event of a message. What is wrong with it is in it."""
    try:
        values = {name: msgspec.json.decode(value) for name, value in fields.items()}
    except (msgspec.DecodeError, RecursionError):
        return SteerEvent("", None, b"", "a value is nested too deeply")
    previous, given = values.get("previous_response_id"), values.get("input")
    problem = ""
    if unknown := sorted(fields.keys() - _FIELDS):
        problem = f"unknown field {unknown[0]!r}: send type, previous_response_id and input"
    elif type(previous) is not str:
        problem = "previous_response_id is not a string"
    elif type(given) is not str and (type(given) is not list or not given):
        problem = "input is neither a string nor a list of messages"
    elif type(given) is list:
        problem = next((wrong for item in given if (wrong := _problem(item))), "")
    items = [{"type": "message", "role": "user", "content": given}] if type(given) is str else given
    text = b"" if problem else b",".join([_encode(item) for item in items or []])
    return SteerEvent(previous if type(previous) is str else "", given, text, problem)


def _problem(item: Any) -> str:
    if type(item) is not dict or item.get("type", "message") != "message" or item.get("role") != "user":
        return "input may only have messages of the user"
    if unknown := sorted(item.keys() - _MESSAGE_FIELDS):
        return f"unknown field {unknown[0]!r} of a message"
    content = item.get("content")
    if type(content) is str:
        return ""
    if type(content) is not list or not content:
        return "content is neither a string nor a list of parts"
    if any(type(part) is not dict or part.get("type") not in _PARTS for part in content):
        return f"parts may only be {', '.join(sorted(_PARTS))}"
    return ""


def new_steer_id() -> str:
    return f"steer_{secrets.token_hex(12)}"


def required_input(item: Any) -> Fields | None:
    """What the client must send for an item before the conversation goes on; None: nothing."""
    kind = item.get("type") if type(item) is dict else None
    if kind == "mcp_approval_request":
        return {"type": "mcp_approval_response", "approval_request_id": item.get("id")}
    if kind == "tool_search_call" and item.get("execution") == "client":
        return {"type": "tool_search_output", "call_id": item.get("call_id"), "execution": "client"}
    known = _RESULTS.get(kind) if type(kind) is str else None
    if known is None:
        return None
    result, repeated = known
    return {"type": result, **{name: item.get(name) for name in repeated}}


def needs_input(items: bytes) -> bool:
    """Whether a response waits for results."""
    return any(required_input(item) is not None for item in msgspec.json.decode(b"[%b]" % items))
