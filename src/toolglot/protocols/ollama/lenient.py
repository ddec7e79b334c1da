"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    CallForm,
    Fixes,
    Leniency,
    ReplyCalls,
    fix_call,
    fix_content,
    fix_id,
    fix_model,
    fix_name,
    fix_object,
    fix_result,
    fix_role,
    listed_calls,
    objects_of,
    set_field,
)


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if "content" in message and message["content"] is None:
            fix_content(message, path, fixes)
        if message.get("role") == "tool":
            fix_result(message, path, fixes)
            if message.get("tool_call_id") is not None:
                fix_id(message, "tool_call_id", path, fixes)
        for call_path, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            fix_call(call, call_path, fixes)
            if call.get("id") is not None:
                fix_id(call, "id", call_path, fixes)
            function = call.get("function")
            if isinstance(function, dict):
                fix_name(function, f"{call_path}.function", fixes)
                fix_object(function, "arguments", f"{call_path}.function", fixes)


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    fix_model(body, fixes)
    if not isinstance(body.get("done"), bool):
        set_field(body, "done", True, "$", "a reply that does not say whether it is done was read as done", fixes)
    message = body.get("message")
    if isinstance(message, dict):
        fix_role(message, "$.message", fixes)
        yield from listed_calls(message, "$.message", fixes, needs_id=False, form=CallForm("arguments", dict))


LENIENCY: Final = Leniency(fix_request=_fix_request, fix_reply=_fix_reply)
