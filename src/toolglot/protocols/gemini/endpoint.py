"""The record of the Gemini generateContent protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol, TokenCount
from toolglot.protocols.fields.reading import Fields

_MODEL: Final = r"/v1(?:beta|alpha)?/(?:models/)?(?P<model>.+)"


def _count_request(body: Fields, model: str) -> Fields:
    return {"generateContentRequest": {"model": f"models/{model}", **body}}


PROTOCOL: Final = Protocol(
    name="gemini",
    package=__package__,
    provider="gemini",
    sdk="google-genai",
    path="/v1beta/{model}:generateContent",
    stream_path="/v1beta/{model}:streamGenerateContent?alt=sse",
    model_folders=("models", "tunedModels"),
    auth="x-goog-api-key",
    models=ModelList(
        path="/v1beta/models",
        name_field="name",
        name_prefix="models/",
        needs=("supportedGenerationMethods", "generateContent"),
    ),
    counts=TokenCount(request=_count_request, reply_field="totalTokens"),
    routes=(
        ClientRoute(action="generate", paths=(f"{_MODEL}:generateContent",), is_pattern=True, stream=False),
        ClientRoute(
            action="generate", paths=(f"{_MODEL}:streamGenerateContent",), is_pattern=True, stream=True, is_array=True
        ),
        ClientRoute(action="count", paths=(f"{_MODEL}:countTokens",), is_pattern=True),
        ClientRoute(action="models", paths=("/v1beta/models",)),
        ClientRoute(action="model", paths=(r"/v1(?:beta|alpha)/models/(?P<model>.+)",), is_pattern=True),
    ),
    client_header="x-goog-api-key",
    client_prefixes=("/v1beta", "/v1alpha"),
    turns="contents",
    messages=MessageForm(
        roles=frozenset({"user", "model", "function"}),
        part_fields=frozenset({"functionCall", "functionResponse", "inlineData", "fileData", "function_call"}),
        content_is_list=True,
        text_keeps_fields=True,
    ),
    returns_opaque=True,
    reply_marks={"candidates": list, "promptFeedback": dict, "usageMetadata": dict},
    reply_rank=1,
)
