"""Fields that two protocols spell the same and mean the same, so that they can cross as they are."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Extra

_OPENAI: Final = frozenset(
    {"metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"}
)

SHARED: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("openai_chat", "openai_responses"): _OPENAI,
    ("openai_responses", "openai_chat"): _OPENAI,
}


def carried(extra: Extra | None, source: str, target: str) -> Extra | None:
    """The fields of a body, with those that the target's protocol shares under its name."""
    shared = SHARED.get((source, target))
    if extra is None or shared is None or source not in extra:
        return extra
    own = {key: value for key, value in extra[source].items() if key in shared}
    rest = {key: value for key, value in extra[source].items() if key not in shared}
    return {**extra, source: rest, target: {**own, **extra.get(target, {})}} if own else extra
