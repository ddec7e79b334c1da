"""What to assume of a target if nothing is known: the opposite of the conservative defaults.

The defaults are for sending a foreign conversation to a target of which little is known: nearly every provider accepts
them. A request that was written for that target need not follow them, since no refusal is known. So native requests,
and the referee, follow only what is known.

The same applies to rules that a profile calls `assumed`: those of an undescribed host, or what some versions of a
server refuse and the recorded ones accepted.

Law: every value here accepts at least what the default of its key accepts. What applies everywhere (every call has its
one result) is not here.
"""

from __future__ import annotations

from typing import Any, Final

_ANYTHING: Final = "(?s:.+)"
_MANY: Final = 1_000_000
_MODES: Final = ("auto", "none", "required", "named", "allowed")
_MEDIA: Final = ("image", "document", "audio", "video", "file")

LENIENT: Final[dict[str, Any]] = {
    "ids.pattern": _ANYTHING,
    "ids.max_length": _MANY,
    "names.pattern": _ANYTHING,
    "names.max_length": _MANY,
    "tools.max_count": None,
    "tools.allow_empty_list": True,
    "tools.parameters_required": False,
    "tools.empty_schema": True,
    "tools.empty_description": True,
    "tools.strict": "optional",
    "tools.server": ("*",),
    "tools.custom": True,
    "tools.namespaces": True,
    "choice.modes": _MODES,
    "choice.while_thinking": _MODES,
    "choice.needs_tools": False,
    "choice.parallel_switch": True,
    "calls.arguments_object_only": False,
    "calls.with_text": True,
    "calls.parallel": True,
    "calls.empty_content": "null",
    "calls.after": "any",
    "results.call_order": False,
    "results.body": "blocks",
    "results.media": _MEDIA,
    "results.error_media": True,
    "results.empty": True,
    "results.empty_error": True,
    "results.user_after": True,
    "turns.first": "any",
    "turns.last": "any",
    "turns.prefill": "yes",
    "turns.alternate": False,
    "turns.min_user": 0,
    "turns.system_inside": "anywhere",
    "turns.system_many": True,
    "turns.developer_role": True,
    "turns.function_role": True,
    "turns.name_field": True,
    "turns.empty_text": True,
    "turns.blank_text": True,
    "turns.empty_turn": True,
    "turns.empty_prefill": True,
    "turns.trailing_space": True,
    "turns.media": _MEDIA,
    "turns.media_sources": ("data", "url"),
    "turns.assistant_media": _MEDIA,
    "reasoning.carrier": "reasoning_content",
    "reasoning.signed": False,
    "reasoning.budget": True,
    "reasoning.modes": ("off", "on", "adaptive", "between_tools"),
    "reasoning.may_end_turn": True,
    "reasoning.efforts": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "reasoning.min_budget": 0,
    "reasoning.budget_below_limit": False,
    "schema.refused": (),
    "schema.well_formed": False,
    "schema.root_union": True,
    "schema.refs": True,
    "schema.type_lists": True,
    "schema.union_with_type": True,
    "schema.formats": None,
    "schema.properties_required": False,
    "schema.items_required": False,
    "request.sampling": (
        *("temperature", "top_p", "top_k", "stop", "seed"),
        *("presence_penalty", "frequency_penalty"),
    ),
    "request.output": ("json", "json_schema"),
    "request.output_with_tools": True,
    "request.unknown_fields": "ignored",
    "request.user": True,
    "request.cache_markers": True,
}
