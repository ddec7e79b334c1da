"""Anthropic's Messages, as the simulator serves it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.prompt_cache import PromptBlock, as_list, in_message, marked_block, ttl_of
from toolglot.simulator.protocols.base import (
    BOUND_ELSEWHERE,
    ReplyContext,
    SimulatedProtocol,
    SimulatedRoute,
    objects,
    returned_refusal,
)
from toolglot.simulator.replies.fault_effects import break_json
from toolglot.simulator.replies.ids import call_id, letters
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer, digest
from toolglot.simulator.replies.streams import StreamJob, encoder_frames, sse_event
from toolglot.simulator.replies.wordings import first_field
from toolglot.simulator.scripts.plan import ReplyPlan, SimulatedPage, tokens_of, uncached_tokens

_NAME: Final = "anthropic"
_CREATED: Final = "2026-01-31T00:00:00Z"
_COMPACT_BETA: Final = "compact-2026-"
_COMPACT_TOKENS: Final = 150_000
BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
_EDITED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
_NO_THREADS: Final = Refusal(
    kind="bad_request",
    message="thread: message threads are not supported for this request",
    param="thread",
    fields={"details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}},
    rule="threads",
)
"""The simulator stores nothing for Anthropic's clients. After this error their SDKs send the whole conversation."""


def _prefix(body: Fields, end: int) -> Any:
    """What thinking can be bound to: system, tools, the messages before its own. Cache markers do not count."""
    messages = body.get("messages")
    earlier = messages[:end] if isinstance(messages, list) else []
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


def _binding_control(body: Fields, headers: Mapping[str, str]) -> tuple[Refusal | None, bool]:
    """Whether blocks that are bound elsewhere are dropped, which a request may demand under a beta header."""
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    if not isinstance(binding, dict):
        return None, False
    if BINDING_BETA not in headers.get("anthropic-beta", ""):
        message = "thinking.block_binding: Extra inputs are not permitted"
        return returned_refusal(message, "thinking.block_binding"), False
    return None, binding.get("prefix_mismatch_behavior") == "drop_block"


def _check_thinking(block: Fields, ordinal: int, signer: Signer, *, is_latest: bool) -> str | None:
    if block.get("type") == "redacted_thinking":
        signature, text = signer.read("redacted", str(block.get("data"))), None
        message = "Invalid `data` in `redacted_thinking` block"
    else:
        signature, text = signer.read("thinking", str(block.get("signature"))), block.get("thinking")
        message = "Invalid `signature` in `thinking` block"
    if signature is None:
        return message
    is_edited = text is not None and signature.content != digest(text)
    if is_latest and (is_edited or signature.position != ordinal):
        return _EDITED
    return message if is_edited else None


def _check_binding(block: Fields, prefix: Any, model: str, signer: Signer) -> str | None:
    """Refuse thinking after another prefix. Thinking of another model is not read, and so not refused."""
    is_hidden = block.get("type") == "redacted_thinking"
    purpose, field = ("redacted", "data") if is_hidden else ("thinking", "signature")
    signature = signer.read(purpose, str(block.get(field)))
    if signature is None or signature.model != digest(model):
        return None
    return BOUND_ELSEWHERE if signature.prefix != digest(prefix) else None


# --- the prompt cache -------------------------------------------------------------------------------


def _message_block(role: Any, block: Any, settings: str) -> PromptBlock:
    section: Any = "results" if isinstance(block, dict) and block.get("type") == "tool_result" else "messages"
    return marked_block(section, block, f"{role} {settings}")


def _prompt_blocks(body: Fields) -> list[PromptBlock]:
    """Tools, system, messages. Deferred tools are no part of it. Another `tool_choice` or thinking leaves the caches of
    tools and system, and costs those of the messages. A marker of the request itself is one on its last block."""
    tools = [tool for _, tool in objects(body.get("tools")) if tool.get("defer_loading") is not True]
    blocks = [marked_block("tools", tool) for tool in tools]
    blocks += [marked_block("system", block) for block in _text_blocks(body.get("system"))]
    settings = digest([body.get("tool_choice"), body.get("thinking")]).hex()
    for _, message in objects(body.get("messages")):
        contents = _text_blocks(message.get("content"))
        blocks += in_message(message, [_message_block(message.get("role"), block, settings) for block in contents])
    if body.get("cache_control") is not None and blocks and blocks[-1].marker is None:
        blocks[-1] = replace(blocks[-1], marker=ttl_of(body["cache_control"]))
    return blocks


def _text_blocks(content: Any) -> list[Any]:
    """Content as blocks: a string is one."""
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in as_list(content)]


# --- compaction -------------------------------------------------------------------------------------


def _compact_edit(body: Fields) -> Fields | None:
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    return next((edit for _, edit in objects(edits) if edit.get("type") == "compact_20260112"), None)


def _is_above_trigger(body: Fields, edit: Fields) -> bool:
    trigger = edit.get("trigger")
    limit = trigger.get("value") if isinstance(trigger, dict) else None
    return tokens_of(body) > (limit if isinstance(limit, int) else _COMPACT_TOKENS)


def _summary_usage(body: Fields) -> Fields:
    none = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {"type": "compaction", "input_tokens": tokens_of(body), "output_tokens": 20, **none}


def _summary_block(context: ReplyContext) -> Fields:
    count = len(context.request.body["messages"])
    summary = f"A summary of {count} messages. The last one: {context.request.prompt[:200]}"
    signature = context.signer.sign("compaction", model=context.request.model, content=summary)
    return {"type": "compaction", "content": summary, "encrypted_content": signature}


def _check_compaction(body: Fields, signer: Signer, headers: Mapping[str, str]) -> Refusal | None:
    """Refuse compactions without the beta header, and those that were not made here or were changed."""
    has_beta = _COMPACT_BETA in headers.get("anthropic-beta", "")
    if not has_beta and (_compact_edit(body) is not None or body.get("compaction") is not None):
        field = "compaction" if body.get("compaction") is not None else "context_management.edits.0"
        return returned_refusal(f"{field}: Extra inputs are not permitted", field)
    for index, message in objects(body.get("messages")):
        for at, block in objects(message.get("content")):
            if block.get("type") != "compaction":
                continue
            path = f"messages.{index}.content.{at}"
            encrypted = block.get("encrypted_content")
            if not has_beta:
                return returned_refusal(f"{path}: Input tag 'compaction' found using 'type' is not expected", path)
            if encrypted is None:
                continue
            signature = signer.read("compaction", str(encrypted))
            if signature is None or signature.content != digest(block.get("content")):
                return returned_refusal(f"{path}: Invalid `encrypted_content` in `compaction` block", path)
    return None


# --- web search -------------------------------------------------------------------------------------


def _search_blocks(request: AcceptedRequest, plan: ReplyPlan) -> list[Fields]:
    id, page = f"srvtoolu_01{letters(request.id_seed, 'search', 22)}", SimulatedPage(plan.search)
    secret = base64.b64encode(f"page {plan.search}".encode()).decode()
    found = {"type": "web_search_result", "url": page.url, "title": page.title, "page_age": None}
    cited = {"type": "web_search_result_location", "url": page.url, "title": page.title, "cited_text": plan.search}
    return [
        {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": plan.search}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": id,
            "content": [{**found, "encrypted_content": secret}],
        },
        {"type": "text", "text": plan.text, "citations": [{**cited, "encrypted_index": secret}]},
    ]


def _check_search(block: Fields) -> str | None:
    """Refuse a search that Anthropic did not make."""
    found = block.get("content")
    pages = found if isinstance(found, list) else []
    is_search = block.get("type") == "web_search_tool_result"
    if is_search and not all(isinstance(page, dict) and page.get("encrypted_content") for page in pages):
        return "Invalid `encrypted_content` in `web_search_result` block"
    cited = block.get("citations")
    for citation in cited if isinstance(cited, list) else []:
        if isinstance(citation, dict) and not citation.get("encrypted_index", "x"):
            return "Invalid `encrypted_index` in citation"
    return None


# --- tools that are loaded later -------------------------------------------------------------------


def _not_loadable(value: Any, violation: Violation) -> str:
    """A list of tools that are all deferred, or a reference to a tool that is not in the list."""
    if isinstance(value, list):
        return "All tools have defer_loading set. At least one tool must be non-deferred."
    tool = value.get("tool") if isinstance(value, dict) else None
    name = first_field(tool or value, "tool_name", "name")
    return violation.message if name is None else f"Tool reference '{name}' has no corresponding tool definition"


_HOSTED: Final = r"/models/(?P<model>[^/]+)"
HOSTED_ROUTES: Final = (
    SimulatedRoute(r"/models/count-tokens:rawPredict", _NAME, "count"),
    SimulatedRoute(rf"{_HOSTED}:rawPredict", _NAME),
    SimulatedRoute(rf"{_HOSTED}:(?P<stream>streamRawPredict)", _NAME),
)
"""The paths of Vertex AI, under the address of a project."""


class _Anthropic(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"/v1/messages", _NAME),
        SimulatedRoute(r"/v1/messages/count_tokens", _NAME, "count"),
        SimulatedRoute(r"/v1/models", _NAME, "models", "GET"),
        SimulatedRoute(r"/v1/models/(?P<model>.+)", _NAME, "model", "GET"),
    )
    wordings = {(_NAME, "tools.deferred"): _not_loadable}
    stop_reasons = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
        "pause": "pause_turn",
        "error": "refusal",
    }

    def check_request(self, body: Fields) -> Refusal | None:
        if body.get("compaction") is not None and body.get("context_management") is not None:
            message = "compaction: cannot be combined with `context_management`"
            return Refusal(kind="bad_request", message=message, param="compaction")
        return _NO_THREADS if body.get("thread") is not None else None

    def check_returned(
        self, body: Fields, profile: Profile, signer: Signer, headers: Mapping[str, str]
    ) -> Refusal | None:
        refusal, drops = _binding_control(body, headers)
        if refusal is not None:
            return refusal
        messages = list(objects(body.get("messages")))
        refused = _check_compaction(body, signer, headers)
        if refused is not None:
            return refused
        latest = max((index for index, message in messages if message.get("role") == "assistant"), default=-1)
        for index, message in messages:
            for at, block in objects(message.get("content")):
                problem = _check_search(block)
                if problem is not None:
                    path = f"messages.{index}.content.{at}"
                    return returned_refusal(f"{path}: {problem}", path)
            thoughts = [
                (at, block)
                for at, block in objects(message.get("content"))
                if block.get("type") in ("thinking", "redacted_thinking")
            ]
            for ordinal, (at, block) in enumerate(thoughts):
                problem = _check_thinking(block, ordinal, signer, is_latest=index == latest)
                if problem is None and "prefix" in profile.reasoning.bound_to and not drops:
                    problem = _check_binding(block, _prefix(body, index), profile.model, signer)
                if problem is not None:
                    path = f"messages.{index}.content.{at}"
                    return returned_refusal(f"{path}: {problem}", path)
        return None

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        return _prompt_blocks(body)

    def compaction_body(self, context: ReplyContext, *, is_path: bool) -> Fields | None:
        body, edit = context.request.body, _compact_edit(context.request.body)
        is_due = edit is not None and edit.get("pause_after_compaction") is True and _is_above_trigger(body, edit)
        if body.get("compaction") is None and not is_due:
            return None
        whole = self.reply_body(context, ReplyPlan())
        usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [_summary_usage(body)]}
        return {**whole, "content": [_summary_block(context)], "stop_reason": "compaction", "usage": usage}

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, usage = context.request, plan.usage
        content: list[Fields] = []
        iterations: Fields = {}
        edit = _compact_edit(request.body)
        if edit is not None and _is_above_trigger(request.body, edit):
            content.append(_summary_block(context))
            iterations = {"iterations": [_summary_usage(request.body)]}
        managed = request.body.get("context_management") is not None
        if plan.thinking:
            prefix = _prefix(request.body, len(request.body["messages"]))
            signature = context.signer.sign("thinking", model=request.model, content=plan.thinking, prefix=prefix)
            content.append({"type": "thinking", "thinking": plan.thinking, "signature": signature})
        if plan.search:
            content += _search_blocks(request, plan)
        elif plan.text:
            content.append({"type": "text", "text": plan.text})
        for index, call in enumerate(plan.calls):
            id = call_id(request, index, call.name, "toolu_01", 22)
            content.append({"type": "tool_use", "id": id, "name": call.name, "input": call.input})
        return {
            "id": f"msg_01{letters(request.id_seed, 'reply', 22)}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": content,
            "stop_reason": self.stop_reasons[plan.stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": uncached_tokens(usage),
                "cache_creation_input_tokens": usage.cache_write_tokens or 0,
                "cache_read_input_tokens": usage.cache_read_tokens or 0,
                "output_tokens": usage.output_tokens or 0,
                "service_tier": "standard",
                **iterations,
            },
            **({"context_management": {"applied_edits": []}} if managed else {}),
        }

    def stream_frames(self, job: StreamJob) -> list[bytes]:
        if not job.has_malformed_arguments:
            return super().stream_frames(job)
        events: list[Fields] = [msgspec.json.decode(frame.data) for frame in encoder_frames(job)]
        pieces = [event["delta"] for event in events if event.get("delta", {}).get("type") == "input_json_delta"]
        if pieces:
            pieces[-1]["partial_json"] = break_json(pieces[-1]["partial_json"])
        return [b"event: %b\n%b" % (event["type"].encode(), sse_event(event)) for event in events]

    def model_entry(self, name: str, now: int) -> Fields:
        return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"data": entries, "has_more": False, "first_id": entries[0]["id"], "last_id": entries[-1]["id"]}


SIMULATED: Final = _Anthropic()
