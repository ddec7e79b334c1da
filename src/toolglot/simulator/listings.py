"""What is answered without a model: lists of models, versions, counts of tokens."""

from __future__ import annotations

from typing import Any, Final

from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.providers import MatchedPath
from toolglot.simulator.scripts.plan import tokens_of

_VERSION: Final = "0.12.6"
_WHEN: Final = "2026-01-31T00:00:00Z"


def listing(call: MatchedPath, now: int) -> Fields | None:
    """The answer of a path that lists something; None for any other."""
    kind, protocol = call.route.kind, call.route.protocol
    if kind == "version":
        return {"version": _VERSION}
    if kind == "show":
        return {"capabilities": ["completion", "tools", "thinking"], "details": {"family": "simulated"}}
    if kind == "model":
        return _model(call.model.removeprefix("models/"), protocol, now)
    models = [_model(name, protocol, now) for name in call.provider.models]
    if kind == "tags" or (kind == "models" and protocol in ("gemini", "cohere")):
        return {"models": models}
    if kind == "models" and protocol == "anthropic":
        ends = [model["id"] for model in models]
        return {"data": models, "has_more": False, "first_id": ends[0], "last_id": ends[-1]}
    return {"object": "list", "data": models} if kind == "models" else None


def _model(name: str, protocol: str, now: int) -> Fields:
    if protocol == "anthropic":
        return {"type": "model", "id": name, "display_name": name, "created_at": _WHEN}
    if protocol == "gemini":
        methods = ["generateContent", "countTokens"]
        return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}
    if protocol == "cohere":
        return {"name": name, "endpoints": ["chat"]}
    if protocol == "ollama":
        return {"name": name, "model": name, "modified_at": _WHEN, "size": 1, "digest": "0" * 64}
    return {"id": name, "object": "model", "created": now, "owned_by": "toolglot"}


def counted(call: MatchedPath, body: dict[str, Any]) -> Fields:
    """Tokens of a request, roughly."""
    count = tokens_of(body)
    if call.route.protocol == "gemini":
        return {"totalTokens": count}
    if call.route.protocol == "bedrock":
        return {"inputTokens": count}
    if call.route.protocol == "openai_responses":
        return {"object": "response.input_tokens", "input_tokens": count}
    return {"input_tokens": count}
