"""The record of the Bedrock Converse protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

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
from toolglot.protocols.fields.reading import Fields

_COUNTED: Final = ("messages", "system", "toolConfig")
"""The fields of a request that the count takes."""


def _count_request(body: Fields, _model: str) -> Fields:
    return {"input": {"converse": {key: body[key] for key in _COUNTED if key in body}}}


def _model_entry(model: ListedModel) -> Fields:
    entry: Fields = {
        "modelId": model.name,
        "modelName": model.title,
        "providerName": model.upstream,
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "modelLifecycle": {"status": "ACTIVE"},
    }
    if model.limits.media is not None:
        entry["inputModalities"] = ["TEXT", *(["IMAGE"] if model.reads_images else [])]
    return entry


_REQUIRED: Final = {"messages": OBJECTS}

PROTOCOL: Final = Protocol(
    name="bedrock",
    package=__package__,
    provider="bedrock",
    sdk="boto3",
    sdk_example="import boto3\n"
    "from botocore import UNSIGNED\n"
    "from botocore.config import Config\n\n"
    "client = boto3.client('bedrock-runtime', endpoint_url=<url>, region_name='us-east-1',\n"
    "                      config=Config(signature_version=UNSIGNED))\n"
    "client.meta.events.register('before-send', lambda request, **_: "
    "request.headers.update(Authorization='Bearer ' + <key>))\n"
    "body.pop('model', None)\n"
    "body.pop('stream', None)\n"
    "reply = client.converse<stream>(modelId=<model>, **body)",
    path="/model/{model}/converse",
    stream_path="/model/{model}/converse-stream",
    embeddings_path="/model/{model}/invoke",
    auth="aws",
    request_id_header="x-amzn-requestid",
    stream_type="application/vnd.amazon.eventstream",
    models=ModelList(path=None, name_field="modelId", entry=_model_entry, list_field="modelSummaries"),
    counts=TokenCount(request=_count_request, reply_field="inputTokens"),
    routes=(
        *routes_by_path(r"/model/(?P<model>.+)/converse", r"/model/(?P<model>.+)/converse-stream", _REQUIRED),
        # The names of all embedding models of Bedrock have this word; other bodies for `invoke` are those of Claude.
        ClientRoute(action="embed", paths=(r"/model/(?P<model>.*embed.*)/invoke",), is_pattern=True),
    ),
    error_schema=object_schema(message=TEXT),
    turns="messages",
    tools_path=("toolConfig", "tools"),
    messages=MessageForm(
        roles=frozenset({"user", "assistant"}),
        part_fields=frozenset({"toolUse", "toolResult", "reasoningContent", "text", "image", "document"}),
        content_is_list=True,
        role_names={"system": "user", "developer": "user", "tool": "user"},
        text_keeps_fields=True,
    ),
    returns_opaque=True,
    limit_path=("inferenceConfig", "maxTokens"),
    features=frozenset({"empty_results", "empty_turns", "result_error_flag", "text_parts", "text_with_calls"}),
    inexpressible={
        "choice.modes": ("none", "allowed"),
        "request.sampling": ("top_k", "seed", "presence_penalty", "frequency_penalty"),
        "request.output": ("json",),
    },
    has_schema_description=True,
    request_marks=RequestMarks(
        fields=words(
            "system toolConfig inferenceConfig additionalModelRequestFields additionalModelResponseFieldPaths modelId",
            "guardrailConfig requestMetadata performanceConfig serviceTier promptVariables outputConfig",
        ),
        shapes=frozenset({"block: no type", "content: list", "system: block"}),
    ),
    reply_marks={"output": dict, "stopReason": str},
    reply_rank=4,
)
