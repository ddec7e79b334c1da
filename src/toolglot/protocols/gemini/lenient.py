"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    CallForm,
    Fixes,
    Leniency,
    ReplyCalls,
    drop_empty_parts,
    fix_counts,
    fix_id,
    fix_name,
    fix_object,
    fix_reason,
    objects_of,
)


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, content in objects_of(body.get("contents"), "$.contents"):
        drop_empty_parts(content, "parts", path, fixes)
        for part_path, part in objects_of(content.get("parts"), f"{path}.parts"):
            for key in ("functionCall", "function_call"):
                call = part.get(key)
                if isinstance(call, dict):
                    fix_name(call, f"{part_path}.{key}", fixes)
                    if call.get("id") is not None:
                        fix_id(call, "id", f"{part_path}.{key}", fixes)
                    if call.get("args") is not None:
                        fix_object(call, "args", f"{part_path}.{key}", fixes)
            for key in ("functionResponse", "function_response"):
                result = part.get(key)
                if isinstance(result, dict):
                    fix_name(result, f"{part_path}.{key}", fixes)
                    if result.get("id") is not None:
                        fix_id(result, "id", f"{part_path}.{key}", fixes)
                    if not isinstance(result.get("response"), dict):
                        result["response"] = {"output": result.get("response")}
                        fixes.append((f"{part_path}.{key}.response", "a response that is not an object was made one"))


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    for key in ("usageMetadata", "usage_metadata"):
        fix_counts(body, key, "$", fixes)
    for path, candidate in objects_of(body.get("candidates"), "$.candidates"):
        for key in ("finishReason", "finish_reason"):
            fix_reason(candidate, key, path, fixes)
        content = candidate.get("content")
        for part_path, part in objects_of(
            content.get("parts") if isinstance(content, dict) else (), f"{path}.content.parts"
        ):
            for key in ("functionCall", "function_call"):
                call = part.get(key)
                if isinstance(call, dict):
                    yield f"{part_path}.{key}", call, CallForm("args", dict)


LENIENCY: Final = Leniency(fix_request=_fix_request, fix_reply=_fix_reply)
