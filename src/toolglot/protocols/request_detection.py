"""Which protocol a request body is written in, by its structure.

    detect(body)            # "anthropic", or None where the body does not tell
    examine(body)           # the same with its reason, and what else it could be

Every mark (a field, the form of a call, the type of a block) leaves some protocols possible; the answer is the one
that all marks leave. The plainest bodies are the same in several protocols: there the model's name may decide, and
`by` says so; where it does not, the answer is None. Law: time is linear in the number of blocks, nothing is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.protocols.base import names

_Marks = Iterator[frozenset[str]]


class ProtocolDetection(Struct, frozen=True, kw_only=True):
    """What a body seems to be."""

    protocol: str | None = None
    by: Literal["structure", "model", ""] = ""
    """What decided. `model`: several protocols write this very body, and the model's name speaks for one."""
    candidates: tuple[str, ...] = ()
    """Every protocol that the structure allows; empty: it is no request, or has marks that exclude each other."""


def _set(*names: str) -> frozenset[str]:
    return frozenset(names)


_ANTHROPIC: Final = _set("anthropic")
_CHAT: Final = _set("openai_chat")
_RESPONSES: Final = _set("openai_responses")
_GEMINI: Final = _set("gemini")
_BEDROCK: Final = _set("bedrock")
_COHERE: Final = _set("cohere")
_OLLAMA: Final = _set("ollama")
_WITH_MESSAGES: Final = _ANTHROPIC | _CHAT | _BEDROCK | _COHERE | _OLLAMA
_CHAT_LIKE: Final = _CHAT | _COHERE | _OLLAMA
_TYPED: Final = _ANTHROPIC | _CHAT | _COHERE


def _table(*rows: tuple[frozenset[str], str]) -> dict[str, frozenset[str]]:
    return {name: protocols for protocols, names in rows for name in names.split()}


_FIELDS: Final = _table(
    (_ANTHROPIC, "anthropic_version mcp_servers container context_management inference_geo output_config"),
    (_ANTHROPIC | _BEDROCK, "system"),
    (_ANTHROPIC | _COHERE, "stop_sequences"),
    (_ANTHROPIC | _CHAT, "metadata service_tier top_k top_p cache_control"),
    (_TYPED, "max_tokens temperature thinking"),
    (_CHAT | _COHERE, "seed frequency_penalty presence_penalty response_format documents priority"),
    (_CHAT, "stop max_completion_tokens n logit_bias parallel_tool_calls stream_options functions function_call user"),
    (_CHAT, "store modalities audio prediction web_search_options reasoning_effort verbosity prompt_cache_key"),
    (_CHAT, "safety_identifier random_seed safe_prompt prompt_mode chat_template_kwargs min_p reasoning"),
    (_CHAT | _COHERE | _OLLAMA, "logprobs"),
    (_CHAT | _OLLAMA, "top_logprobs"),
    (_COHERE, "safety_mode citation_options k p strict_tools raw_prompting"),
    (_OLLAMA, "options keep_alive think format"),
    (_BEDROCK, "toolConfig inferenceConfig additionalModelRequestFields additionalModelResponseFieldPaths modelId"),
    (_BEDROCK, "guardrailConfig requestMetadata performanceConfig serviceTier promptVariables outputConfig"),
)
"""Fields of a body with `messages`."""

_MESSAGE_FIELDS: Final = _table(
    (_CHAT_LIKE, "tool_calls tool_call_id"),
    (_CHAT, "reasoning_content reasoning reasoning_details refusal audio function_call name prefix"),
    (_COHERE, "tool_plan citations"),
    (_OLLAMA, "images thinking tool_name"),
)

_ROLES: Final = _table((_CHAT_LIKE, "tool"), (_CHAT, "developer function"))

_BLOCK_TYPES: Final = _table(
    (_TYPED, "text thinking"),
    (_ANTHROPIC, "tool_use tool_result redacted_thinking server_tool_use search_result container_upload image"),
    (_ANTHROPIC, "mcp_tool_use mcp_tool_result fallback compaction tool_reference"),
    (_ANTHROPIC | _COHERE, "document"),
    (_CHAT | _COHERE, "image_url"),
    (_CHAT, "input_audio file refusal video_url reference document_url"),
)

_RESPONSES_FIELDS: Final = ("input", "previous_response_id", "prompt", "conversation")

_CHOICES: Final = _table((_CHAT, "auto none required any"), (_COHERE, "REQUIRED NONE"))
_CHOICE_TYPES: Final = _table((_ANTHROPIC, "auto any tool none"), (_CHAT, "function custom allowed_tools"))

_MODELS: Final = (
    (re.compile(r"claude-", re.IGNORECASE), "anthropic"),
    (re.compile(r"(command-|c4ai-)", re.IGNORECASE), "cohere"),
    (re.compile(r"(ft:)?(gpt-\d|chatgpt|o\d(-|$))|grok-|kimi-|[\w.-]+-latest$", re.IGNORECASE), "openai_chat"),
    (re.compile(r"(?!hf\.co/)[\w.-]+/[\w.:/-]+$"), "openai_chat"),
    (re.compile(r"[\w.-]+:[\w.-]+$"), "ollama"),
)
"""Names that only one protocol's own endpoint has, or that hubs and servers of Chat Completions give."""

_LONGEST_MODEL: Final = 200
_DATED: Final = re.compile(r"_\d{8}$")


def detect(body: object) -> str | None:
    """The protocol of a request body; None where it does not tell."""
    return examine(body).protocol


def examine(body: object) -> ProtocolDetection:
    """The protocol of a request body, what decided, and what else it could be."""
    if not isinstance(body, dict):
        return ProtocolDetection()
    left = _first_guess(body)
    if left == _WITH_MESSAGES:
        for possible in _marks(body):
            left &= possible
    candidates = tuple(name for name in names() if name in left)
    if len(candidates) == 1:
        return ProtocolDetection(protocol=candidates[0], by="structure", candidates=candidates)
    by_model = _by_model(body, left)
    return ProtocolDetection(protocol=by_model, by="model" if by_model else "", candidates=candidates)


def _first_guess(body: dict[str, Any]) -> frozenset[str]:
    """What the field of the turns says."""
    guesses = frozenset[str]()
    if isinstance(body.get("messages"), list):
        guesses |= _WITH_MESSAGES
    if "contents" in body:
        guesses |= _GEMINI
    if "messages" not in body and any(name in body for name in _RESPONSES_FIELDS):
        guesses |= _RESPONSES
    is_torn = len(guesses - _WITH_MESSAGES) > 1 or (guesses > _WITH_MESSAGES)
    return frozenset() if is_torn else guesses


def _by_model(body: dict[str, Any], left: frozenset[str]) -> str | None:
    model = body.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= _LONGEST_MODEL:
        return None
    named = next((protocol for pattern, protocol in _MODELS if pattern.match(model)), None)
    if named == "anthropic" and named not in left:
        return "openai_chat" if "openai_chat" in left else None  # a hub: neither Cohere nor Ollama serves it
    if named is not None:
        return named if named in left and (named != "anthropic" or "max_tokens" in body) else None
    # Nobody's own name: Cohere serves only its own models, and Anthropic too.
    rest = left - _COHERE - _ANTHROPIC
    return next(iter(rest)) if len(rest) == 1 else None


def _marks(body: dict[str, Any]) -> _Marks:
    for name in body:
        if name in _FIELDS:
            yield _FIELDS[name]
    yield from _system_marks(body.get("system"))
    yield from _choice_marks(body.get("tool_choice"))
    for tool in _objects(body.get("tools")):
        yield _tool_mark(tool)
    for index, message in enumerate(_objects(body["messages"])):
        yield from _message_marks(message, is_first=index == 0)


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _system_marks(system: object) -> _Marks:
    if isinstance(system, str):
        yield _ANTHROPIC
    for block in _objects(system):
        yield _ANTHROPIC if "type" in block else _BEDROCK


def _choice_marks(choice: object) -> _Marks:
    if isinstance(choice, str):
        yield _CHOICES.get(choice, _WITH_MESSAGES)
    if isinstance(choice, dict) and isinstance(choice.get("type"), str):
        yield _CHOICE_TYPES.get(choice["type"], _WITH_MESSAGES)


def _tool_mark(tool: dict[str, Any]) -> frozenset[str]:
    if isinstance(tool.get("function"), dict):
        return _CHAT_LIKE
    if isinstance(tool.get("custom"), dict):
        return _CHAT
    kind = tool.get("type")
    is_own = isinstance(kind, str) and (_DATED.search(kind[-9:]) is not None or kind == "mcp_toolset")
    return _ANTHROPIC if "input_schema" in tool or is_own else _WITH_MESSAGES


def _message_marks(message: dict[str, Any], *, is_first: bool) -> _Marks:
    for name in message:
        if name in _MESSAGE_FIELDS:
            yield _MESSAGE_FIELDS[name]
    role, content = message.get("role"), message.get("content")
    if isinstance(role, str) and role in _ROLES:
        yield _ROLES[role]
    if role == "system":
        yield _CHAT_LIKE if is_first else _CHAT_LIKE | _ANTHROPIC
    for call in _objects(message.get("tool_calls")):
        yield _call_mark(call)
    if isinstance(content, str):
        yield _WITH_MESSAGES - _BEDROCK
    elif isinstance(content, list):
        yield _WITH_MESSAGES - _OLLAMA
    elif "content" in message and content is None:
        yield _CHAT_LIKE
    for block in _objects(content):
        yield _block_mark(block)


def _call_mark(call: dict[str, Any]) -> frozenset[str]:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, str) or "custom" in call:
        return _CHAT | _COHERE
    if isinstance(arguments, dict):
        return _CHAT | _OLLAMA if "id" in call or "type" in call else _OLLAMA
    return _CHAT_LIKE


def _block_mark(block: dict[str, Any]) -> frozenset[str]:
    kind = block.get("type")
    if not isinstance(kind, str):
        return _BEDROCK if len(block) == 1 else _WITH_MESSAGES
    if kind == "thinking":
        return _CHAT if isinstance(block.get("thinking"), list) else _ANTHROPIC if "signature" in block else _TYPED
    if kind == "document":
        return _COHERE if "document" in block else _ANTHROPIC
    if kind.endswith("_tool_result"):
        return _ANTHROPIC
    return _BLOCK_TYPES.get(kind, _TYPED)
