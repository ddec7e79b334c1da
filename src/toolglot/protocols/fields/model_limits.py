"""What the lists of providers say of their models, in the fields that each of them uses.

    read_limits({"id": "m", "context_length": 262144, "architecture": {"input_modalities": ["text", "image"]}})
    # {"window": 262144, "media": ("image",)}

Law: what is missing or has another type is left out; nothing raises.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.protocols.fields.reading import Fields

_WINDOWS: Final = (
    *("context_length", "max_model_len", "context_window", "max_context_length", "inputTokenLimit"),
    *("max_input_tokens", "n_ctx", "context_size", "max_context_window_tokens"),
)
_OUTPUTS: Final = ("outputTokenLimit", "max_completion_tokens", "max_output_tokens", "max_output_length", "max_tokens")
_HOLDERS: Final = ("meta", "top_provider", "limits")
"""Objects of an entry that hold its numbers."""
_MEDIA: Final = {"image": "image", "file": "document", "pdf": "document", "audio": "audio", "video": "video"}
"""Modalities as lists name them, and the kinds of media."""
_ABLE: Final = {"vision": "image", "image_input": "image", "pdf_input": "document", "audio": "audio"}
"""Capabilities that are media."""
MAX_TOKENS: Final = 10**9


def read_limits(entry: Fields) -> dict[str, Any]:
    """What an entry says, by the names of the rules of the group `context`."""
    held = (entry.get(name) for name in _HOLDERS)
    holders = [entry, *(value for value in held if isinstance(value, dict))]
    found: dict[str, Any] = {
        "window": _number(holders, _WINDOWS),
        "output": _number(holders, _OUTPUTS),
        "media": _media(entry),
        "thinking": _able(entry, "thinking", "reasoning"),
        "tools": _able(entry, "function_calling", "tools"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _number(holders: list[Fields], names: tuple[str, ...]) -> int | None:
    for holder in holders:
        for name in names:
            value = holder.get(name)
            if type(value) is float and value.is_integer():
                value = int(value)
            if type(value) is int and 0 < value < MAX_TOKENS:
                return value
    return None


def _media(entry: Fields) -> tuple[str, ...] | None:
    architecture = entry.get("architecture")
    listed = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    if isinstance(listed, list):
        kinds = (_MEDIA.get(name) for name in listed[:20] if isinstance(name, str))
        return tuple(dict.fromkeys(kind for kind in kinds if kind))
    able = [(kind, _able(entry, name)) for name, kind in _ABLE.items()]
    if all(is_able is None for _, is_able in able):
        return None
    return tuple(dict.fromkeys(kind for kind, is_able in able if is_able))


def _able(entry: Fields, *names: str) -> bool | None:
    """Whether an entry has a capability: a flag of its own, or one among its `capabilities`."""
    capabilities = entry.get("capabilities")
    for holder in (capabilities, entry):
        for name in names:
            value = holder.get(name) if isinstance(holder, dict) else None
            supported = value.get("supported") if isinstance(value, dict) else value
            if isinstance(supported, bool):
                return supported
    return None
