"""The record of the Gemini generateContent protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.protocols.base import (
    ClientRoute,
    ListedModel,
    MessageForm,
    ModelList,
    Protocol,
    RequestMarks,
    TokenCount,
    routes_by_path,
    words,
)
from toolglot.protocols.fields.body_schemas import OBJECTS, TEXT, object_schema
from toolglot.protocols.fields.model_pages import model_index, page_size
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.passed_paths import PassedPaths, StoredCollection

_VERTEX: Final = r"(?:projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/google/)?"
_MODEL: Final = rf"/v1(?:beta1|beta|alpha)?/{_VERTEX}(?:models/)?(?P<model>.+)"
"""The path of a model, as clients of Gemini and of Vertex AI write it."""


def _count_request(body: Fields, model: str) -> Fields:
    return {"generateContentRequest": {"model": f"models/{model}", **body}}


def _model_entry(model: ListedModel) -> Fields:
    limits = model.limits
    numbers = {"inputTokenLimit": limits.window, "outputTokenLimit": limits.output, "thinking": limits.thinking}
    return {
        "name": f"models/{model.name.removeprefix('models/')}",
        "baseModelId": model.model,
        "version": "1",
        "displayName": model.title,
        "description": f"{model.model} of {model.upstream}",
        **{name: value for name, value in numbers.items() if value is not None},
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }


def _model_page(models: list[ListedModel], query: Mapping[str, str]) -> Fields:
    limit = page_size(query, "pageSize", default=50, zero_is_default=True)
    token = query.get("pageToken", "")
    names = [model.name for model in models]
    start = model_index(names, token, "pageToken") if token else 0
    body: Fields = {"models": [_model_entry(model) for model in models[start : start + limit]]}
    if start + limit < len(models):
        body["nextPageToken"] = names[start + limit]
    return body


_REQUIRED: Final = {"contents": OBJECTS}


def _is_fragment(fields: Fields) -> bool:
    """Whether an object seems to be a piece of a reply."""
    return not fields.keys().isdisjoint({"candidates", "functionCall", "parts"})


PROTOCOL: Final = Protocol(
    name="gemini",
    package=__package__,
    provider="gemini",
    sdk="google-genai",
    sdk_example="from google import genai\n\n"
    "client = genai.Client(api_key=<key>, http_options={'base_url': <url>})\n"
    "config = {**body, **body.get('generationConfig', {})}\n"
    "contents = config.pop('contents')\n"
    "for name in ('model', 'generationConfig'):\n"
    "    config.pop(name, None)\n"
    "reply = client.models.generate_content<stream>(model=<model>, contents=contents, config=config)",
    path="/v1beta/{model}:generateContent",
    stream_path="/v1beta/{model}:streamGenerateContent?alt=sse",
    embeddings_path="/v1beta/{model}:batchEmbedContents",
    model_folders=("models", "tunedModels"),
    auth="x-goog-api-key",
    models=ModelList(
        path="/v1beta/models",
        name_field="name",
        name_prefix="models/",
        needs=("supportedGenerationMethods", "generateContent"),
        entry=_model_entry,
        page=_model_page,
        query=("pageSize", "pageToken"),
    ),
    counts=TokenCount(request=_count_request, envelope="generateContentRequest", reply_field="totalTokens"),
    routes=(
        *routes_by_path(f"{_MODEL}:generateContent", f"{_MODEL}:streamGenerateContent", _REQUIRED, is_array=True),
        ClientRoute(
            action="embed",
            paths=(f"{_MODEL}:embedContent",),
            is_pattern=True,
            provider_path="/v1beta/{model}:embedContent",
            required={"content": {"type": "object"}},
        ),
        ClientRoute(
            action="embed", paths=(f"{_MODEL}:batchEmbedContents",), is_pattern=True, required={"requests": OBJECTS}
        ),
        ClientRoute(
            action="count",
            paths=(f"{_MODEL}:countTokens",),
            is_pattern=True,
            optional={**_REQUIRED, "generateContentRequest": {"type": "object"}},
        ),
        ClientRoute(action="models", paths=("/v1beta/models",)),
        ClientRoute(action="model", paths=(r"/v1(?:beta|alpha)/models/(?P<model>.+)",), is_pattern=True),
    ),
    client_header="x-goog-api-key",
    client_prefixes=("/v1beta", "/v1alpha"),
    service_prefix="/v1beta/",
    passed=PassedPaths(
        stateless=r"models/(?P<model>[^/:]+):predict",
        starting=r"models/(?P<model>[^/:]+):predictLongRunning",
        collections=(
            StoredCollection("files"),
            StoredCollection("cachedContents", runs_model=True),
            StoredCollection("models/*/operations"),
        ),
        references=words("fileUri file_uri fileName file_name cachedContent cached_content"),
        results=words("uri"),
        is_named_by_path=True,
    ),
    error_schema=object_schema(error=object_schema(code={"type": "integer"}, message=TEXT, status=TEXT)),
    turns="contents",
    messages=MessageForm(
        roles=frozenset({"user", "model", "function"}),
        part_fields=frozenset({"functionCall", "functionResponse", "inlineData", "fileData", "function_call"}),
        content_is_list=True,
        content_field="parts",
        role_names={"assistant": "model", "system": "user", "developer": "user", "tool": "user"},
        text_keeps_fields=True,
    ),
    returns_opaque=True,
    limit_path=("generationConfig", "maxOutputTokens"),
    features=frozenset({"call_signatures", "choice_field", "empty_turns", "text_parts", "text_with_calls"}),
    request_marks=RequestMarks(starts=words("contents"), fields=words("contents")),
    is_fragment=_is_fragment,
    reply_marks={"candidates": list, "promptFeedback": dict, "usageMetadata": dict},
    reply_rank=1,
)
