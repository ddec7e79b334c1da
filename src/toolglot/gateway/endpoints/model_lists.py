"""Lists of models: the gateway's in the form that each client reads, and those of providers.

    encode_models("anthropic", models, request.query)   # the body for GET /v1/models of an Anthropic client
    encode_model("gemini", model)                       # the body for GET /v1beta/models/{model}
    decode_models(data, "ollama")                       # the names that a provider lists, with their limits
    describe_model(listed, profile, limits)             # a model with what is known of it

Law: pure. The forms are in the records of the protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.errors import InputError
from toolglot.jsontext import parse
from toolglot.profiles import Profile
from toolglot.profiles.model_table import LAYER
from toolglot.protocols.base import ListedModel, get, model_entry
from toolglot.protocols.fields.model_limits import read_limits

MAX_READ: Final = 2_000
"""Names that are read from a provider's list."""

Fields = dict[str, Any]


def encode_models(
    source: str, models: Sequence[ListedModel], query: Mapping[str, str], *, protocol: str = ""
) -> Fields:
    """A page of the models as the clients of a target read it; the same name is listed once.

    protocol: that of the target, if no profile says so.
    """
    first: dict[str, ListedModel] = {}
    for model in models:
        first.setdefault(model.name, model)
    unique = list(first.values())
    form = get(protocol or profiles.get(source).protocol).models
    if form.page is not None:
        return form.page(unique, query)
    entry = _OWN_ENTRIES.get(source, form.entry)
    return {**form.list_extra, form.list_field: [entry(model) for model in unique]}


def encode_model(source: str, model: ListedModel, *, protocol: str = "") -> Fields:
    """One model as the clients of a target read it."""
    entry = _OWN_ENTRIES.get(source) or get(protocol or profiles.get(source).protocol).models.entry
    return entry(model)


def _mistral_entry(model: ListedModel) -> Fields:
    limits = model.limits
    capabilities = {
        "completion_chat": True,
        "function_calling": model.calls_tools,
        "reasoning": bool(limits.thinking),
        "vision": model.reads_images,
        "audio": "audio" in (limits.media or ()),
    }
    entry = {**model_entry(model), "type": "base", "name": model.title, "capabilities": capabilities}
    return entry if limits.window is None else {**entry, "max_context_length": limits.window}


_OWN_ENTRIES: Final[dict[str, Callable[[ListedModel], Fields]]] = {"mistral": _mistral_entry}
"""Targets whose clients read more than their protocol has."""


def describe_model(model: ListedModel, profile: Profile, own: Mapping[str, Any]) -> ListedModel:
    """A model with what is known of it: its profile, and what its provider's list says (`own`).

    The list of a provider is newer than the table of models; a rule of the user counts for more than both.
    """
    newer = {name: value for name, value in own.items() if profile.origin(f"context.{name}").layer in _REPLACED}
    return replace(
        model,
        limits=replace(profile.context, **newer),
        efforts=profile.reasoning.efforts,
        modes=profile.reasoning.modes,
        server_tools=profile.tools.server,
        output_forms=profile.request.output,
        protocol=profile.protocol,
    )


_REPLACED: Final = ("default", LAYER)
"""Layers of rules that say less than a provider's own list."""


def allowed_models(
    models: Iterable[ListedModel], may_use: Callable[[str], bool], leads_to: Callable[[str, str, str], bool]
) -> list[ListedModel]:
    """The models that a client may use, by a name under which it may.

    may_use: whether it may use a name. leads_to: whether a name leads to a model of an upstream.
    """
    found: list[ListedModel] = []
    for model in models:
        if may_use(model.name):
            found.append(model)
        elif not model.simulated and may_use(model.model) and leads_to(model.model, model.upstream, model.model):
            found.append(replace(model, name=model.model))
    return found


# --- lists of providers -----------------------------------------------------------------------------

_LISTS: Final = ("data", "models", "modelSummaries", "inferenceProfileSummaries")
_NAMES: Final = ("id", "name", "modelId", "inferenceProfileId", "model")


def decode_models(listed: Any, protocol: str) -> dict[str, Fields]:
    """The names in a provider's list, bytes or JSON, in its order, each with what the list says of the model.

    What cannot be a name is left out.
    """
    if isinstance(listed, bytes):
        try:
            listed = parse(listed).value
        except InputError:
            return {}
    if isinstance(listed, dict):
        listed = next((listed[key] for key in _LISTS if isinstance(listed.get(key), list)), None)
    found: dict[str, Fields] = {}
    for entry in listed[:MAX_READ] if isinstance(listed, list) else ():
        name = _name(entry, protocol)
        if name and name not in found:
            found[name] = read_limits(entry) if isinstance(entry, dict) else {}
    return found


def _name(entry: Any, protocol: str) -> str:
    if not isinstance(entry, dict):
        return _valid_name(entry)
    form = get(protocol).models
    if form.needs is not None:
        key, needed = form.needs
        able = entry.get(key)
        if isinstance(able, list) and needed not in able:
            return ""
    fields = (form.name_field, *_NAMES)
    name = next((found for field in fields if (found := _valid_name(entry.get(field)))), "")
    return name.removeprefix(form.name_prefix)


def _valid_name(name: Any) -> str:
    """The name, if it can be one; otherwise an empty string."""
    if not isinstance(name, str) or not 0 < len(name) <= profiles.MAX_NAME:
        return ""
    return name if name.isprintable() and name == name.strip() else ""
