"""Ids, names and images that the provider of a session refuses, and what to write in their place.

What is refused is in the profile of the provider. A rule that is only a guess, or assumed, refuses nothing here: what
an agent wrote and its provider accepted is not a fault.

Law: an id or a name is renamed everywhere in the same way, so that a call and its result stay together.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from msgspec import Struct

from toolglot import profiles
from toolglot.agent_files.base import get
from toolglot.agent_files.checks.shared_checks import legal_id
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import object_of, text_of

_KNOWN: Final = ("documented", "observed")
_PROVIDER_OF_MODELS: Final = (("claude", "anthropic"), ("qwen", "qwen"))
"""Whose models have names that begin so. An agent that has models of several providers sends them by those rules."""


class ProviderLimits(Struct, frozen=True, kw_only=True):
    """What a provider refuses.

    id, name: what an id and a name must match; empty if nothing is known.
    max_id, max_name, max_image: characters that they may have; of an image, of its base64. None if nothing is known.
    """

    id: str = ""
    max_id: int | None = None
    name: str = ""
    max_name: int | None = None
    max_image: int | None = None

    def accepts_id(self, id: str) -> bool:
        return _accepts(id, self.id, self.max_id)

    def accepts_name(self, name: str) -> bool:
        return _accepts(name, self.name, self.max_name)

    def legal_name(self, name: str) -> str:
        """The name without what is not allowed, in at most as many characters as are."""
        made = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: self.max_name] or "unnamed_tool"
        return made if self.accepts_name(made) else f"_{made}"[: self.max_name]


NO_LIMITS: Final = ProviderLimits()


def _accepts(text: str, pattern: str, limit: int | None) -> bool:
    return (not pattern or re.fullmatch(pattern, text) is not None) and (limit is None or len(text) <= limit)


@cache
def limits_of(provider: str) -> ProviderLimits:
    """What is known of a provider."""
    profile = profiles.get(provider)

    def known(key: str) -> Any:
        rule = profile.origin(key)
        return rule.value if rule.confidence in _KNOWN and not rule.assumed else None

    return ProviderLimits(
        id=known("ids.pattern") or "",
        max_id=known("ids.max_length"),
        name=known("names.pattern") or "",
        max_name=known("names.max_length"),
        max_image=known("turns.max_image"),
    )


def limits_for(agent: str, model: str = "") -> ProviderLimits:
    """What is known of the provider that an agent sends its sessions to, by the model that was used last."""
    named = model.lower()
    by_model = (provider for start, provider in _PROVIDER_OF_MODELS if named.startswith(start))
    return limits_of(next(by_model, get(agent).provider))


class CallRenames:
    """The new ids and names of calls, by those that are refused."""

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._ids or self._names)

    def examine(self, line: int, id: str, name: str, limits: ProviderLimits) -> None:
        """Note what is refused of a call. An agent that has no id for it makes one itself."""
        if id and not limits.accepts_id(id):
            if id not in self._ids:
                message = f"the id {id[:60]!r} ({len(id)} characters) is sent as it is, and refused"
                self._examination.add("illegal-id", message, line, "rename call and result")
            self._ids[id] = legal_id(id, "", set())
        if not limits.accepts_name(name):
            if name not in self._names:
                message = f"the tool name {name[:60]!r} ({len(name)} characters) is refused"
                self._examination.add("illegal-name", message, line, "replace what is not allowed")
            self._names[name] = limits.legal_name(name)

    def rename(self, value: dict[str, Any], id: str, name: str = "") -> dict[str, Any]:
        """The object with another id and name, in the fields of these names."""
        new: dict[str, Any] = {}
        if text_of(value, id) in self._ids:
            new[id] = self._ids[value[id]]
        if name and isinstance(value.get(name), str) and value[name] in self._names:
            new[name] = self._names[value[name]]
        return {**value, **new} if new else value


def refused_image(examination: Examination, line: int, size: int, limits: ProviderLimits) -> str:
    """The note that takes the place of an image that is too large; empty for one that is accepted."""
    if limits.max_image is None or size <= limits.max_image:
        return ""
    message = f"an image of {size} bytes is refused; {limits.max_image} are accepted"
    examination.add("large-image", message, line, "put a note in its place")
    return f"[an image of {size} bytes was here; it was too large to be sent]"


# --- parts in the form of Gemini, which Qwen Code has too -------------------------------------------


def examine_part(renames: CallRenames, line: int, part: Any, limits: ProviderLimits) -> None:
    """Note what is refused of a call in a part."""
    call = object_of(part, "functionCall")
    if call:
        renames.examine(line, text_of(call, "id"), text_of(call, "name"), limits)


def fixed_part(examination: Examination, renames: CallRenames, line: int, part: Any, limits: ProviderLimits) -> Any:
    """A part with legal ids and names, and without images that are too large."""
    if not isinstance(part, dict):
        return part
    image = _image_note(examination, line, part, limits)
    if image:
        return {"text": image}
    new = dict(part)
    for field in ("functionCall", "functionResponse"):
        if isinstance(part.get(field), dict):
            new[field] = renames.rename(part[field], "id", "name")
    response = object_of(new, "functionResponse")
    inner = response.get("parts")
    if isinstance(inner, list):
        notes = [_image_note(examination, line, each, limits) for each in inner]
        if any(notes):
            said = object_of(response, "response")
            field = "output" if isinstance(said.get("output"), str) else "note"
            said = {**said, field: "\n".join(filter(None, [text_of(said, field), *notes]))}
            kept = [each for each, note in zip(inner, notes, strict=True) if not note]
            new["functionResponse"] = {**response, "response": said, "parts": kept}
    return new if new != part else part


def _image_note(examination: Examination, line: int, part: Any, limits: ProviderLimits) -> str:
    image = object_of(part, "inlineData")
    if not text_of(image, "mimeType").startswith("image/"):
        return ""
    return refused_image(examination, line, len(text_of(image, "data")), limits)
