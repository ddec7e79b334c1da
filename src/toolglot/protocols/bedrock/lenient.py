"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    CallForm,
    Fixes,
    Leniency,
    ReplyCalls,
    drop_empty_parts,
    fix_counts,
    fix_id,
    fix_list,
    fix_name,
    fix_object,
    fix_reason,
    fix_role,
    objects_of,
)


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        drop_empty_parts(message, "content", path, fixes)
        for block_path, block in objects_of(message.get("content"), f"{path}.content"):
            call, result = block.get("toolUse"), block.get("toolResult")
            if isinstance(call, dict):
                fix_id(call, "toolUseId", f"{block_path}.toolUse", fixes)
                fix_name(call, f"{block_path}.toolUse", fixes)
                fix_object(call, "input", f"{block_path}.toolUse", fixes)
            if isinstance(result, dict):
                fix_id(result, "toolUseId", f"{block_path}.toolResult", fixes)
                _fix_result_content(result, f"{block_path}.toolResult", fixes)


def _fix_result_content(result: Fields, path: str, fixes: Fixes) -> None:
    content = result.get("content")
    if isinstance(content, list):
        return
    text = content if isinstance(content, str) else "" if content is None else msgspec.json.encode(content).decode()
    result["content"] = [{"text": text}] if text else []
    fixes.append((f"{path}.content", "content that is not a list was made one"))


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    fix_reason(body, "stopReason", "$", fixes)
    fix_counts(body, "usage", "$", fixes)
    output: Any = body.get("output")
    message: Any = output.get("message") if isinstance(output, dict) else None
    if not isinstance(message, dict):
        return
    fix_role(message, "$.output.message", fixes)
    fix_list(message, "content", "$.output.message", fixes)
    for path, block in objects_of(message.get("content"), "$.output.message.content"):
        call = block.get("toolUse")
        if isinstance(call, dict):
            fix_id(call, "toolUseId", f"{path}.toolUse", fixes)
            yield f"{path}.toolUse", call, CallForm("input", dict)


LENIENCY: Final = Leniency(fix_request=_fix_request, fix_reply=_fix_reply)
