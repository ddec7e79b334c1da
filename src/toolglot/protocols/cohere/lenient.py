"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    Fixes,
    Leniency,
    ReplyCalls,
    fix_call,
    fix_content,
    fix_id,
    fix_name,
    fix_reason,
    fix_reply_id,
    fix_result,
    fix_role,
    fix_text,
    listed_calls,
    objects_of,
)


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if message.get("role") == "tool":
            fix_result(message, path, fixes)
            fix_id(message, "tool_call_id", path, fixes)
        elif message.get("content") is not None:
            fix_content(message, path, fixes)
        for call_path, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            fix_call(call, call_path, fixes)
            fix_id(call, "id", call_path, fixes)
            function = call.get("function")
            if isinstance(function, dict):
                fix_name(function, f"{call_path}.function", fixes)
                if function.get("arguments") is not None:
                    fix_text(function, "arguments", f"{call_path}.function", fixes)


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    fix_reply_id(body, "", fixes)
    fix_reason(body, "finish_reason", "$", fixes)
    message = body.get("message")
    if isinstance(message, dict):
        fix_role(message, "$.message", fixes)
        yield from listed_calls(message, "$.message", fixes, needs_id=True)


LENIENCY: Final = Leniency(fix_request=_fix_request, fix_reply=_fix_reply)
