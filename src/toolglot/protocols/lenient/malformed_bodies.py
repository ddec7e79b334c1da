"""Requests and whole replies that a strict reading refuses although it is plain what they mean (B7, F3, A6, H5).

Only a body that its codec refused, or that has something strange left over, comes here, so that a body in order costs
nothing. Every fix is listed. How each protocol's bodies are fixed is in `lenient.py` of its folder. What has no meaning
stays as it is, and is refused.

Law: arguments of a reply that cannot be read are left alone, since such a call is never run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from toolglot.conversation import RAW_ARGUMENTS
from toolglot.protocols.base import codec
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import CallForm, Fixes, argument_object, fix_name, fix_text


def fix_request(body: Fields, protocol: str) -> tuple[Fields, Fixes]:
    """The request as it is meant, and what was fixed; the body itself if nothing could be."""
    fix = codec(protocol).leniency.fix_request
    if fix is None:
        return body, []
    copied = msgspec.json.decode(msgspec.json.encode(body))
    fixes: Fixes = []
    fix(copied, fixes)
    return (copied, fixes) if fixes else (body, [])


def fix_reply(body: Fields, protocol: str) -> tuple[Fields, Fixes]:
    """The reply as it is meant, and what was fixed; the body itself if nothing could be."""
    fix = codec(protocol).leniency.fix_reply
    if fix is None:
        return body, []
    copied = msgspec.json.decode(msgspec.json.encode(body))
    fixes: Fixes = []
    for path, call, form in fix(copied, fixes):
        _fix_call_fields(call, path, form, fixes)
    return (copied, fixes) if fixes else (body, [])


def _fix_call_fields(call: Fields, path: str, form: CallForm, fixes: Fixes) -> None:
    if call.get("name") is None:
        fix_name(call, path, fixes)
    arguments: Any = call.get(form.arguments)
    if type(arguments) is form.type:
        return
    if form.type is str:
        if arguments is not None:
            fix_text(call, form.arguments, path, fixes)
        return
    meant = argument_object(arguments)
    if RAW_ARGUMENTS not in meant:
        call[form.arguments] = meant
        reason = "arguments that are not an object were read as the object that they encode"
        fixes.append((f"{path}.{form.arguments}", reason))


def missing_fields(body: Fields, protocol: str) -> Fixes:
    """What a reply does not say, and a client of another protocol gets all the same."""
    return [
        (f"$.{key}", f"the reply does not name its {what}")
        for key, what in codec(protocol).leniency.optional_reply_fields
        if body.get(key) is None
    ]
