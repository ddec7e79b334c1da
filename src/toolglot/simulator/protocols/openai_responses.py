"""OpenAI's Responses, as the simulator serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Usage
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.prompt_cache import PromptBlock, as_list, plain_block
from toolglot.simulator.protocols.base import (
    ReplyContext,
    SimulatedProtocol,
    SimulatedRoute,
    account_of,
    objects,
    returned_refusal,
)
from toolglot.simulator.replies.ids import call_id, hexadecimal, letters
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer, digest
from toolglot.simulator.replies.wordings import first_field, too_long
from toolglot.simulator.scripts.plan import PlannedCall, ReplyPlan, SimulatedPage, tokens_of

_NAME: Final = "openai_responses"
_TRIGGER: Final = "compaction_trigger"
_ENCRYPTED: Final = "gAAAAAB"
"""How encrypted content begins."""
_OWN_CALLS: Final[dict[str, tuple[str, str, Fields]]] = {
    "tool_search": ("arguments", "tsc", {"execution": "client"}),
    "apply_patch": ("operation", "apc", {}),
    "local_shell": ("action", "lsh", {}),
    "shell": ("action", "sh", {}),
}
"""The tools whose calls are items of their own type: the field of the arguments, how ids begin, and constants."""
_ACTION: Final = {"type": "exec", "env": {}}


# --- reasoning that comes back ----------------------------------------------------------------------


def _reasoning_id(item_id: str, signer: Signer) -> str | None:
    """The id of the reasoning item that a call was issued with; None if there was none, or the call is not from
    here."""
    stem, code = item_id[3:-8], item_id[-8:]
    if not item_id.startswith("fc_") or len(stem) < 3 or signer.short_code(stem) != code:
        return None
    return f"rs_{stem[:-2]}"


def _check_encrypted(
    encrypted: str, id: Any, account: str, signer: Signer, *, purpose: str = "reasoning"
) -> str | None:
    is_known = encrypted.startswith(_ENCRYPTED)
    signature = signer.read(purpose, encrypted.removeprefix(_ENCRYPTED)) if is_known else None
    reason = "Encrypted content could not be decrypted or parsed."
    if signature is not None and (id is None or signature.content == digest(id)):
        if signature.prefix == digest(account):
            return None
        reason = "Encrypted content organization_id did not match the target organization."
    whose = f"for item {id}" if isinstance(id, str) else f"{encrypted[:4]}..."
    return f"The encrypted content {whose} could not be verified. Reason: {reason}"


# --- error messages ---------------------------------------------------------------------------------


def _no_output(item: Any, _violation: Violation) -> str:
    return f"No tool output found for function call {first_field(item, 'call_id')}."


def _no_following_item(item: Any, _violation: Violation) -> str:
    return f"Item '{first_field(item, 'id')}' of type 'reasoning' was provided without its required following item."


def _wrong_prefix(item: Any, violation: Violation) -> str:
    id = item if isinstance(item, str) else first_field(item, "id")
    return re.sub(r": '[^']*'", lambda _: f": '{id}'", violation.message, count=1)


# --- replies ----------------------------------------------------------------------------------------


def _usage(plan: ReplyPlan) -> Fields:
    usage = plan.usage
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    cached = {"cached_tokens": usage.cache_read_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    return {
        "input_tokens": read,
        "input_tokens_details": cached,
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": read + written,
    }


def _items(context: ReplyContext, plan: ReplyPlan, status: str) -> list[Fields]:
    request, stem = context.request, hexadecimal(context.request.id_seed, "items", 40)
    items: list[Fields] = []
    if plan.thinking:
        id = f"rs_{stem}"
        signature = context.signer.sign("reasoning", model=request.model, content=id, prefix=request.account)
        items.append(
            {
                "id": id,
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": plan.thinking}] if request.wants_summary else [],
                "encrypted_content": _ENCRYPTED + signature,
            }
        )
    last = "completed" if status == "completed" else "incomplete"
    if plan.text:
        part: Fields = {"type": "output_text", "text": plan.text, "annotations": [], "logprobs": []}
        if plan.search:
            page = SimulatedPage(plan.search)
            cited = {"start_index": 0, "end_index": len(plan.text), "url": page.url, "title": page.title}
            part["annotations"] = [{"type": "url_citation", **cited}]
            items.append(_search_item(request, plan, f"ws_{stem}"))
        own = "completed" if plan.calls else last
        items.append({"id": f"msg_{stem}", "type": "message", "role": "assistant", "status": own, "content": [part]})
    for index, call in enumerate(plan.calls):
        # The id of a call that came with reasoning shows that, so that the reasoning is required when it comes back.
        call_stem = f"{stem}{index:02x}"
        code = context.signer.short_code(call_stem) if plan.thinking else ""
        own = last if index == len(plan.calls) - 1 else "completed"
        items.append(_call_item(request, index, call, f"{call_stem}{code}", own))
    return items


def _compaction_item(context: ReplyContext) -> Fields:
    request = context.request
    id = f"cmp_{hexadecimal(request.id_seed, 'compaction', 40)}"
    signature = context.signer.sign("compaction", model=request.model, content=id, prefix=request.account)
    return {"id": id, "type": "compaction", "encrypted_content": _ENCRYPTED + signature}


def _is_above_threshold(body: Fields) -> bool:
    """Whether a request wants to be compacted because of its length."""
    thresholds = [
        entry.get("compact_threshold")
        for _, entry in objects(body.get("context_management"))
        if entry.get("type") == "compaction"
    ]
    return any(isinstance(limit, int) and tokens_of(body) > limit for limit in thresholds)


def _search_item(request: AcceptedRequest, plan: ReplyPlan, id: str) -> Fields:
    """A search; the pages that it found only if the request includes them."""
    action: Fields = {"type": "search", "query": plan.search}
    if "web_search_call.action.sources" in (request.body.get("include") or []):
        action["sources"] = [{"type": "url", "url": SimulatedPage(plan.search).url}]
    return {"id": id, "type": "web_search_call", "status": "completed", "action": action}


def _call_item(request: AcceptedRequest, index: int, call: PlannedCall, stem: str, status: str) -> Fields:
    id = call_id(request, index, call.name)
    tool = request.tool(call.name)
    if tool is not None and tool.issuer is not None and tool.type in _OWN_CALLS:
        field, prefix, constants = _OWN_CALLS[tool.type]
        held = {**_ACTION, **(call.arguments or {})} if tool.type == "local_shell" else call.arguments or {}
        item: Fields = {"id": f"{prefix}_{stem}", "type": f"{tool.type}_call", "call_id": id, "status": status}
        return {**item, field: held, **constants}
    namespace: Fields = {"namespace": call.namespace} if call.namespace is not None else {}
    fields: Fields = {"call_id": id, "name": call.name, "status": status, **namespace}
    if call.is_custom:
        return {"id": f"ctc_{stem}", "type": "custom_tool_call", "input": call.text, **fields}
    return {"id": f"fc_{stem}", "type": "function_call", "arguments": call.text, **fields}


def _repeated_tool(tool: Any) -> Any:
    """A tool as a response repeats it."""
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


class _Responses(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"(?:/v1)?/responses", _NAME, target=_NAME),
        SimulatedRoute(r"(?:/v1)?/responses/compact", _NAME, "compact", target=_NAME),
        SimulatedRoute(r"(?:/v1)?/responses/input_tokens", _NAME, "count", target=_NAME),
    )
    overflow_message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    stop_reasons = {
        "stop": "completed",
        "tool_calls": "completed",
        "length": "incomplete",
        "filter": "incomplete",
        "pause": "in_progress",
        "error": "failed",
    }
    wordings = {
        (_NAME, "ids.max_length"): too_long,
        (_NAME, "ids.item_id_prefix"): _wrong_prefix,
        (_NAME, "results.complete"): _no_output,
        (_NAME, "reasoning.grouped"): _no_following_item,
        (_NAME, "reasoning.may_end_turn"): _no_following_item,
    }
    codes = {
        (_NAME, "ids.max_length"): "string_above_max_length",
        (_NAME, "names.max_length"): "string_above_max_length",
        (_NAME, "tools.max_count"): "array_above_max_length",
        (_NAME, "ids.item_id_prefix"): "invalid_id_prefix",
    }
    stores_replies = True

    def check_request(self, body: Fields) -> Refusal | None:
        items = [item.get("type") for _, item in objects(body.get("input"))]
        if _TRIGGER in items[:-1]:
            return Refusal(
                kind="bad_request", message="A compaction trigger must be the final input item.", param="input"
            )
        if body.get("model") is not None or body.get("prompt") is not None:
            return None
        return Refusal(kind="bad_request", message="Missing required parameter: 'model'.", param="model")

    def check_returned(
        self, body: Fields, profile: Profile, signer: Signer, headers: Mapping[str, str]
    ) -> Refusal | None:
        seen: set[str] = set()
        for index, item in objects(body.get("input")):
            kind, id = item.get("type"), item.get("id")
            if kind == "compaction":
                problem = _check_encrypted(
                    str(item.get("encrypted_content")), id, account_of(headers), signer, purpose="compaction"
                )
                if problem is not None:
                    return returned_refusal(problem, f"input[{index}]", "invalid_encrypted_content")
            elif kind == "reasoning":
                seen.add(str(id))
                encrypted = item.get("encrypted_content")
                if not isinstance(encrypted, str):
                    continue
                problem = _check_encrypted(encrypted, id, account_of(headers), signer)
                if problem is not None:
                    return returned_refusal(problem, f"input[{index}]", "invalid_encrypted_content")
            elif kind == "function_call" and isinstance(id, str):
                needed = _reasoning_id(id, signer)
                if needed is not None and needed not in seen:
                    lacks = f"was provided without its required 'reasoning' item: '{needed}'."
                    return returned_refusal(f"Item '{id}' of type 'function_call' {lacks}", "input")
        return None

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        text = body.get("text")
        blocks = [plain_block("tools", tool) for _, tool in objects(body.get("tools"))]
        blocks += [
            plain_block("tools", form) for form in as_list(text.get("format") if isinstance(text, dict) else None)
        ]
        blocks += [plain_block("system", words) for words in as_list(body.get("instructions"))]
        return [*blocks, *(plain_block("messages", item) for item in as_list(body.get("input")))]

    def compaction_body(self, context: ReplyContext, *, is_path: bool) -> Fields | None:
        body = context.request.body
        items = [item for _, item in objects(body.get("input"))]
        is_triggered = bool(items) and items[-1].get("type") == _TRIGGER
        if not is_path and not is_triggered:
            return None
        plan = ReplyPlan(usage=Usage(input_tokens=tokens_of(body), output_tokens=20))
        whole = {**self.reply_body(context, plan), "output": [_compaction_item(context)]}
        if not is_path:
            return whole
        users = [item for item in items if item.get("role") == "user"]
        return {
            "id": whole["id"],
            "object": "response.compaction",
            "created_at": context.now,
            "output": [*users, *whole["output"]],
            "usage": whole["usage"],
        }

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, body = context.request, context.request.body
        reasoning = body.get("reasoning") if isinstance(body.get("reasoning"), dict) else {}
        status = self.stop_reasons[plan.stop]
        cut_by = {"length": "max_output_tokens", "filter": "content_filter"}.get(plan.stop)
        return {
            "id": f"resp_{letters(request.id_seed, 'reply', 48)}",
            "object": "response",
            "created_at": context.now,
            "status": status,
            "background": False,
            "completed_at": context.now if status == "completed" else None,
            "error": {"code": "server_error", "message": "The model failed."} if status == "failed" else None,
            "incomplete_details": {"reason": cut_by} if cut_by is not None else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": request.model,
            "output": [
                *([_compaction_item(context)] if _is_above_threshold(body) else []),
                *_items(context, plan, status),
            ],
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "prompt_cache_key": body.get("prompt_cache_key"),
            "safety_identifier": body.get("safety_identifier"),
            "service_tier": body.get("service_tier") or "default",
            "presence_penalty": body.get("presence_penalty") or 0.0,
            "frequency_penalty": body.get("frequency_penalty") or 0.0,
            "top_logprobs": body.get("top_logprobs") or 0,
            "max_tool_calls": body.get("max_tool_calls"),
            "reasoning": {"effort": (reasoning or {}).get("effort"), "summary": (reasoning or {}).get("summary")},
            "store": body.get("store", True),
            "temperature": body.get("temperature", 1.0),
            "text": {"format": {"type": "text"}, **(body.get("text") or {})},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": [_repeated_tool(tool) for tool in body.get("tools") or []],
            "top_p": body.get("top_p", 1.0),
            "truncation": body.get("truncation") or "disabled",
            "usage": _usage(plan),
            "user": body.get("user"),
            "metadata": body.get("metadata") or {},
        }

    def token_count(self, count: int) -> Fields:
        return {"object": "response.input_tokens", "input_tokens": count}


SIMULATED: Final = _Responses()
