"""The gravity of a report entry about a field that another provider does not get.

Most such fields are demands, so leaving one out is a loss. The tables list those that mean nothing elsewhere (how the
provider bills, caches, logs or streams) and values that ask for the default.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation.forms import Form
from toolglot.conversation.report import Gravity
from toolglot.conversation.values import Extra

_STORAGE: Final = ("store", "metadata", "labels", "requestMetadata", "client_metadata", "previous_response_id")
_BILLING: Final = ("service_tier", "serviceTier", "priority", "performanceConfig", "keep_alive", "speed")
_CACHING: Final = (
    *("cache_control", "cachePoint", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    *("prompt_cache_breakpoint", "cache_prompt", "session_id"),
)
_CLIENTS: Final = (
    *("safety_identifier", "user", "anthropic_version", "anthropic_beta", "betas", "stream_options", "prediction"),
    *("eager_input_streaming", "defer_loading", "partial_images", "additionalModelResponseFieldPaths"),
    *("num_gpu", "main_gpu", "num_thread", "num_batch", "use_mmap", "model", "requires_confirmation"),
    *("external_execution", "stream"),
)
_HISTORY: Final = ("id", "status", "index", "type", "role", "object", "phase", "logprobs_content", "thought_signature")
"""Fields that name or number the items of a history."""

MEANINGLESS: Final = frozenset((*_STORAGE, *_BILLING, *_CACHING, *_CLIENTS, *_HISTORY))
"""Fields that mean nothing to another provider, whatever their value."""

DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "allowed_callers": (["direct"],),
    "background": (False,),
    "caller": ({"type": "direct"},),
    "candidateCount": (1,),
    "citations": ({"enabled": False},),
    "detail": ("auto",),
    "display": ("summarized",),
    "include": (["reasoning.encrypted_content"],),
    "include_reasoning": (True,),
    "includeThoughts": (False,),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prefix": (False,),
    "safe_prompt": (False,),
    "search_parameters": ({"mode": "off"},),
    "stopSequences": ([],),
    "text": ({"format": {"type": "text"}},),
    "thought": (False,),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
    "verbosity": ("medium",),
}
"""Values that ask for the default."""

CHANGED: Final = frozenset({"allowed_callers", "caller"})
"""Fields whose meaning another provider's request has in another form: calls that code made, or may make, are ordinary
calls there."""

EMPTY_DEMANDS: Final = frozenset({"web_search_options"})
"""Fields that are a demand also as an empty object."""

_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def unknown_fields(extra: Extra | None, form: Form | None) -> list[tuple[str, Any]]:
    """The fields of a value, and of objects inside it, that toolglot does not know, without empty ones that demand
    nothing."""
    outer = [field for fields in extra.values() for field in fields.items()] if extra is not None else []
    if form is not None:
        outer += form.unknown_fields()
    return [field for field in outer if field[1] not in _EMPTY or _is_demand(*field)] if outer else outer


def _is_demand(field: str, value: object) -> bool:
    return field in EMPTY_DEMANDS and value == {}


def gravity_of_field(field: str, value: object) -> Gravity:
    """Whether it is a loss that a field with this value is not carried."""
    if field in MEANINGLESS:
        return "housekeeping"
    if field == "context_management":
        return _context_management(value)
    if value in DEFAULTS.get(field, ()):
        return "housekeeping"
    return "change" if field in CHANGED else "loss"


def _context_management(value: object) -> Gravity:
    """Clearing thinking means nothing to a provider that gets no thinking; other edits are demands."""
    edits = value.get("edits") if isinstance(value, dict) else None
    if not isinstance(edits, list):
        return "loss"
    kinds = [edit.get("type") if isinstance(edit, dict) else None for edit in edits]
    is_irrelevant = all(isinstance(kind, str) and kind.startswith("clear_thinking") for kind in kinds)
    return "housekeeping" if is_irrelevant else "loss"
