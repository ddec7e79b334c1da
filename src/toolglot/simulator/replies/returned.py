"""What must come back as it was: whether signed thinking in a request is the simulator's own, unedited and in place.

The referee sees whether a signature is there; only who made it can see whether it is the right one. Laws: what a
provider does not check is not checked here either, and its words are those of the profiles.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolglot.profiles import Profile
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.seals import Sealer, digest

Body = dict[str, Any]
Check = Callable[[Body, Profile, Sealer, Mapping[str, str]], Refusal | None]

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
SKIPPED: Final = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""What Gemini takes in place of a signature."""

_EDITED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
_BOUND: Final = "The block is bound to a different conversation"


def check(body: Body, profile: Profile, sealer: Sealer, headers: Mapping[str, str]) -> Refusal | None:
    """Why the provider would not take what came back; None if it would."""
    found = _CHECKS.get(profile.protocol)
    return found(body, profile, sealer, headers) if found is not None else None


def account_of(headers: Mapping[str, str]) -> str:
    """Whose request it is: a key stands for its account."""
    return headers.get("authorization", "")


def _bad(message: str, param: str = "", code: str = "") -> Refusal:
    return Refusal(kind="bad_request", message=message, param=param, code=code, rule="returned-thinking")


def _objects(value: Any) -> Iterator[tuple[int, Body]]:
    """The objects of a list, with their places."""
    for place, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield place, item


# --- Anthropic --------------------------------------------------------------------------------------


def anthropic_prefix(body: Body, before: int) -> Any:
    """What thinking is bound to, where it is: system, tools, the messages before its own. Cache marks do not count."""
    messages = body.get("messages")
    earlier = messages[:before] if isinstance(messages, list) else []
    return [_plain(body.get("system")), _plain(body.get("tools")), [_plain(message) for message in earlier]]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain


def _anthropic(body: Body, profile: Profile, sealer: Sealer, headers: Mapping[str, str]) -> Refusal | None:
    refusal, drops = _binding_control(body, headers)
    if refusal is not None:
        return refusal
    messages = list(_objects(body.get("messages")))
    latest = max((place for place, message in messages if message.get("role") == "assistant"), default=-1)
    for place, message in messages:
        thoughts = [
            (at, block)
            for at, block in _objects(message.get("content"))
            if block.get("type") in ("thinking", "redacted_thinking")
        ]
        for ordinal, (at, block) in enumerate(thoughts):
            wrong = _thought(block, ordinal, sealer, is_latest=place == latest)
            if wrong is None and "prefix" in profile.reasoning.bound_to and not drops:
                wrong = _bound(block, anthropic_prefix(body, place), profile.model, sealer)
            if wrong is not None:
                return _bad(f"messages.{place}.content.{at}: {wrong}", f"messages.{place}.content.{at}")
    return None


def _binding_control(body: Body, headers: Mapping[str, str]) -> tuple[Refusal | None, bool]:
    """Whether blocks that are bound elsewhere are dropped, as a request may ask for under a beta header."""
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    if not isinstance(binding, dict):
        return None, False
    if BINDING_BETA not in headers.get("anthropic-beta", ""):
        return _bad("thinking.block_binding: Extra inputs are not permitted", "thinking.block_binding"), False
    return None, binding.get("prefix_mismatch_behavior") == "drop_block"


def _thought(block: Body, ordinal: int, sealer: Sealer, *, is_latest: bool) -> str | None:
    if block.get("type") == "redacted_thinking":
        seal, text = sealer.read("redacted", str(block.get("data"))), None
        wrong = "Invalid `data` in `redacted_thinking` block"
    else:
        seal, text = sealer.read("thinking", str(block.get("signature"))), block.get("thinking")
        wrong = "Invalid `signature` in `thinking` block"
    if seal is None:
        return wrong
    is_edited = text is not None and seal.content != digest(text)
    if is_latest and (is_edited or seal.place != ordinal):
        return _EDITED
    return wrong if is_edited else None


def _bound(block: Body, prefix: Any, model: str, sealer: Sealer) -> str | None:
    """Thinking after another prefix. What another model thought is not read, and so not refused."""
    is_hidden = block.get("type") == "redacted_thinking"
    seal = sealer.read("redacted" if is_hidden else "thinking", str(block.get("data" if is_hidden else "signature")))
    is_own = seal is not None and seal.model == digest(model)
    return _BOUND if is_own and seal is not None and seal.prefix != digest(prefix) else None


# --- Bedrock ----------------------------------------------------------------------------------------


def bedrock_prefix(body: Body, before: int) -> Any:
    """The same for Claude on Bedrock."""
    messages = body.get("messages")
    return [body.get("system"), body.get("toolConfig"), messages[:before] if isinstance(messages, list) else []]


def _bedrock(body: Body, profile: Profile, sealer: Sealer, _headers: Mapping[str, str]) -> Refusal | None:
    for place, message in _objects(body.get("messages")):
        for at, block in _objects(message.get("content")):
            reasoning = block.get("reasoningContent")
            shown = reasoning.get("reasoningText") if isinstance(reasoning, dict) else None
            wrong = _reasoning_text(shown, bedrock_prefix(body, place), profile, sealer)
            if wrong is not None:
                words = f"messages.{place}.content.{at}: {wrong}"
                return _bad(f"The model returned the following errors: {words}")
    return None


def _reasoning_text(shown: Any, prefix: Any, profile: Profile, sealer: Sealer) -> str | None:
    if not isinstance(shown, dict):
        return None
    seal = sealer.read("bedrock thinking", str(shown.get("signature")))
    if seal is None or seal.content != digest(shown.get("text")):
        return "Invalid `signature` in `thinking` block"
    is_bound = "prefix" in profile.reasoning.bound_to and seal.model == digest(profile.model)
    return _BOUND if is_bound and seal.prefix != digest(prefix) else None


# --- Gemini -----------------------------------------------------------------------------------------


def gemini_content(part: Body) -> Any:
    """What a thought signature stands on: its part without it."""
    call = part.get("functionCall") or part.get("function_call")
    if isinstance(call, dict):
        return [call.get("name"), call.get("args") or {}]
    return part.get("text")


def _gemini(body: Body, profile: Profile, sealer: Sealer, _headers: Mapping[str, str]) -> Refusal | None:
    contents = list(_objects(body.get("contents")))
    start = max((place for place, content in contents if _is_prompt(content)), default=-1)
    for place, content in contents:
        for at, part in _objects(content.get("parts")) if place > start else ():
            signature = part.get("thoughtSignature") or part.get("thought_signature")
            wrong = _thought_signature(signature, part, profile.model, sealer) if isinstance(signature, str) else None
            if wrong is not None:
                return _bad(wrong, f"contents[{place}].parts[{at}].thoughtSignature")
    return None


def _is_prompt(content: Body) -> bool:
    """The user spoke: a current turn begins."""
    parts = [part for _, part in _objects(content.get("parts"))]
    answers = any("functionResponse" in part or "function_response" in part for part in parts)
    return content.get("role") in (None, "user") and bool(parts) and not answers


def _thought_signature(signature: str, part: Body, model: str, sealer: Sealer) -> str | None:
    if signature in SKIPPED or _decoded(signature) in SKIPPED:
        return None
    seal = sealer.read("thought", signature)
    if seal is None:
        return "Corrupted thought signature."
    is_own = seal.model == digest(model) and seal.content == digest(gemini_content(part))
    return None if is_own else "Invalid thought signature."


def _decoded(signature: str) -> str:
    try:
        return base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


# --- Responses --------------------------------------------------------------------------------------

ENCRYPTED: Final = "gAAAAAB"
"""How encrypted content begins."""


def reasoning_of(item_id: str, sealer: Sealer) -> str | None:
    """The id of the reasoning item that a call was issued with; None if it was issued with none, or not here."""
    stem, mark = item_id[3:-8], item_id[-8:]
    if not item_id.startswith("fc_") or len(stem) < 3 or sealer.mark(stem) != mark:
        return None
    return f"rs_{stem[:-2]}"


def _responses(body: Body, _profile: Profile, sealer: Sealer, headers: Mapping[str, str]) -> Refusal | None:
    seen: set[str] = set()
    for place, item in _objects(body.get("input")):
        kind, id = item.get("type"), item.get("id")
        if kind == "reasoning":
            seen.add(str(id))
            encrypted = item.get("encrypted_content")
            wrong = _encrypted(encrypted, id, account_of(headers), sealer) if isinstance(encrypted, str) else None
            if wrong is not None:
                return _bad(wrong, f"input[{place}]", "invalid_encrypted_content")
        elif kind == "function_call" and isinstance(id, str):
            needed = reasoning_of(id, sealer)
            if needed is not None and needed not in seen:
                lacks = f"was provided without its required 'reasoning' item: '{needed}'."
                return _bad(f"Item '{id}' of type 'function_call' {lacks}", "input")
    return None


def _encrypted(encrypted: str, id: Any, account: str, sealer: Sealer) -> str | None:
    seal = sealer.read("reasoning", encrypted.removeprefix(ENCRYPTED)) if encrypted.startswith(ENCRYPTED) else None
    is_own = seal is not None and (id is None or seal.content == digest(id))
    reason = "Encrypted content could not be decrypted or parsed."
    if is_own and seal is not None:
        if seal.prefix == digest(account):
            return None
        reason = "Encrypted content organization_id did not match the target organization."
    whose = f"for item {id}" if isinstance(id, str) else f"{encrypted[:4]}..."
    return f"The encrypted content {whose} could not be verified. Reason: {reason}"


_CHECKS: Final[dict[str, Check]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "openai_responses": _responses,
}
