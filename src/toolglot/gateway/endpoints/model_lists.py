"""Lists of models: those of the gateway in each client's own shape, and those of a provider read from its own.

    listing("anthropic", models, request.query)     # the body for GET /v1/models of an Anthropic client
    one("gemini", model)                            # the body for GET /v1beta/models/{model}
    upstream_models(data, "ollama")                 # the names that a provider lists

Law: pure, and without a clock: nobody knows when a model was made, so every shape that must say so says 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import Failure
from toolglot.errors import InputError
from toolglot.jsontext import parse
from toolglot.protocols.base import get
from toolglot.protocols.errors.failures import ProviderError

MOST_READ: Final = 2_000
"""Names that are read from a provider's listing."""
LONGEST_NAME: Final = profiles.MAX_NAME
OLLAMA_VERSION: Final = "0.12.6"
"""The version whose protocol this is: clients look at it to learn what they may ask for."""

_EPOCH: Final = "1970-01-01T00:00:00Z"
_MOST_PAGE: Final = 1_000
_PAGES: Final = {"anthropic": 20, "gemini": 50}
"""How many models a page has unless it is asked for otherwise."""
_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")

Fields = dict[str, Any]


class ListedModel(Struct, frozen=True):
    """A model that a client can ask for."""

    name: str
    """What the client says."""
    upstream: str
    model: str
    """What the upstream is asked for."""
    simulated: bool = False

    @property
    def title(self) -> str:
        """What a person is shown: where the name leads."""
        where = f"{self.upstream}/{self.model}"
        led = self.name if where == self.name else f"{self.name} ({where})"
        return f"{led} [simulated]" if self.simulated else led


def listing(source: str, models: Sequence[ListedModel], query: Mapping[str, str]) -> Fields:
    """A page of the models as the clients of a provider read it; the same name is listed once."""
    first: dict[str, ListedModel] = {}
    for model in models:
        first.setdefault(model.name, model)
    named = list(first.values())
    protocol = _protocol(source)
    if protocol == "anthropic":
        return _anthropic_page(named, query)
    if protocol == "gemini":
        return _gemini_page(named, query)
    bodies = [one(source, model) for model in named]
    if protocol in ("ollama", "cohere"):
        return {"models": bodies}
    if protocol == "bedrock":
        return {"modelSummaries": bodies}
    return {"object": "list", "data": bodies}


def usable(
    models: Iterable[ListedModel], may_use: Callable[[str], bool], leads_to: Callable[[str, str, str], bool]
) -> list[ListedModel]:
    """The models that a client may ask for, by a name under which it may.

    may_use: whether it may ask for a name. leads_to: whether a name leads to a model of an upstream.
    """
    found: list[ListedModel] = []
    for model in models:
        if may_use(model.name):
            found.append(model)
        elif not model.simulated and may_use(model.model) and leads_to(model.model, model.upstream, model.model):
            found.append(replace(model, name=model.model))
    return found


def one(source: str, model: ListedModel) -> Fields:
    """One model as the clients of a provider read it."""
    shape = _SHAPES.get(source) or _SHAPES.get(_protocol(source), _openai)
    return shape(model)


def shown(model: ListedModel) -> Fields:
    """The answer to Ollama's `POST /api/show`."""
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "license": "",
        "modified_at": _EPOCH,
        "details": _details(model),
        "model_info": {"general.architecture": "toolglot", "general.basename": model.model},
        "capabilities": ["completion", "tools", "thinking", "vision"],
    }


def version() -> Fields:
    """The answer to Ollama's `GET /api/version`."""
    return {"version": OLLAMA_VERSION}


def _protocol(source: str) -> str:
    return profiles.get(source).protocol


# --- shapes -----------------------------------------------------------------------------------------


def _openai(model: ListedModel) -> Fields:
    return {"id": model.name, "object": "model", "created": 0, "owned_by": model.upstream}


def _mistral(model: ListedModel) -> Fields:
    known = {"completion_chat": True, "function_calling": True, "vision": True}
    return {**_openai(model), "type": "base", "name": model.title, "capabilities": known}


def _anthropic(model: ListedModel) -> Fields:
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.title,
        "created_at": _EPOCH,
        "lifecycle": "active",
    }


def _gemini(model: ListedModel) -> Fields:
    return {
        "name": f"models/{model.name.removeprefix('models/')}",
        "baseModelId": model.model,
        "version": "1",
        "displayName": model.title,
        "description": f"{model.model} of {model.upstream}",
        "supportedGenerationMethods": list(_METHODS),
    }


def _ollama(model: ListedModel) -> Fields:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": _EPOCH,
        "size": 0,
        "digest": "0" * 64,
        "details": _details(model),
    }


def _details(model: ListedModel) -> Fields:
    return {
        "parent_model": "",
        "format": "remote",
        "family": model.upstream,
        "families": [model.upstream],
        "parameter_size": "",
        "quantization_level": "",
    }


def _cohere(model: ListedModel) -> Fields:
    return {"name": model.name, "endpoints": ["chat"], "finetuned": False, "features": ["tools"]}


def _bedrock(model: ListedModel) -> Fields:
    return {"modelId": model.name, "modelName": model.title, "providerName": model.upstream}


_SHAPES: Final[dict[str, Callable[[ListedModel], Fields]]] = {
    "mistral": _mistral,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "cohere": _cohere,
    "bedrock": _bedrock,
}


# --- pages ------------------------------------------------------------------------------------------


def _anthropic_page(models: Sequence[ListedModel], query: Mapping[str, str]) -> Fields:
    names = [model.name for model in models]
    limit = _size(query, "limit", _PAGES["anthropic"])
    after, before = query.get("after_id", ""), query.get("before_id", "")
    begin, end = 0, len(models)
    if before:
        end = _place(names, before, "before_id")
        begin = max(end - limit, 0)
        more = begin > 0
    else:
        begin = _place(names, after, "after_id") + 1 if after else 0
        end = min(begin + limit, end)
        more = end < len(models)
    page = [_anthropic(model) for model in models[begin:end]]
    ends = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"data": page, "has_more": more, "first_id": ends[0], "last_id": ends[1]}


def _gemini_page(models: Sequence[ListedModel], query: Mapping[str, str]) -> Fields:
    limit = _size(query, "pageSize", _PAGES["gemini"])
    token = query.get("pageToken", "")
    names = [model.name for model in models]
    begin = _place(names, token, "pageToken") if token else 0
    body: Fields = {"models": [_gemini(model) for model in models[begin : begin + limit]]}
    if begin + limit < len(models):
        body["nextPageToken"] = names[begin + limit]
    return body


def _size(query: Mapping[str, str], key: str, usual: int) -> int:
    said = query.get(key, "")
    if not said or (key == "pageSize" and said == "0"):
        return usual
    if not (said.isascii() and said.isdigit()) or not 1 <= int(said[:9]) <= _MOST_PAGE:
        message = f"{key}: expected a whole number from 1 to {_MOST_PAGE}"
        raise ProviderError(Failure("bad_request", message, 400, param=key))
    return int(said)


def _place(names: Sequence[str], name: str, key: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ProviderError(Failure("bad_request", f"{key}: there is no such model here", 400, param=key)) from None


# --- what providers list ----------------------------------------------------------------------------

_LISTS: Final = ("data", "models", "modelSummaries", "inferenceProfileSummaries")
_NAMES: Final = ("id", "name", "modelId", "inferenceProfileId", "model")


def upstream_models(answer: Any, protocol: str) -> list[str]:
    """The names in a provider's own listing, bytes or JSON, in its order; what cannot be one is left out."""
    if isinstance(answer, bytes):
        try:
            answer = parse(answer).value
        except InputError:
            return []
    if isinstance(answer, dict):
        answer = next((answer[key] for key in _LISTS if isinstance(answer.get(key), list)), None)
    if not isinstance(answer, list):
        return []
    names = (_name(entry, protocol) for entry in answer[:MOST_READ])
    return list(dict.fromkeys(name for name in names if name))


def _name(entry: Any, protocol: str) -> str:
    if not isinstance(entry, dict):
        return _checked(entry)
    form = get(protocol).models
    if form.needs is not None:
        key, needed = form.needs
        able = entry.get(key)
        if isinstance(able, list) and needed not in able:
            return ""
    keys = (form.name_field, *_NAMES)
    name = next((found for key in keys if (found := _checked(entry.get(key)))), "")
    return name.removeprefix(form.name_prefix)


def _checked(name: Any) -> str:
    """A name that can be asked for; empty: it cannot."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return ""
    return name if name.isprintable() and name == name.strip() else ""
