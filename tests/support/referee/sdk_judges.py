"""What the definitions of the SDKs say to a request body: judges that share nothing with the referee.

`refuses` gives the judge's words, or nothing. Strictness that the definitions state but their SDK does not enforce
(values of enumerations, fields that are not there) is enforced here, from the definitions themselves.
"""

from __future__ import annotations

import inspect
import json
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Optional

import botocore.session
import cohere.types
import ollama
from botocore.validate import ParamValidator
from cohere.core.unchecked_base_model import UnionMetadata
from cohere.v2.client import V2Client
from google.genai import _common, types
from ollama._types import ChatRequest
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

Body = dict[str, Any]


def refuses(protocol: str, body: Body) -> str:
    """Why the provider's own definitions refuse a body; empty: they do not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return next(iter(_JUDGES[protocol](body)), "")
    except (ValidationError, UserWarning) as error:
        return str(error) or "refused"


# --- OpenAI Responses -------------------------------------------------------------------------------


class _ResponsesRequest(ResponseCreateParamsBase, total=False):
    stream: Optional[bool]  # noqa: UP045 - as the SDK writes it


@cache
def _responses_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(list[_ResponsesRequest], config=ConfigDict(extra="forbid", strict=True))


def _openai_responses(body: Body) -> Iterator[str]:
    _walk(_responses_adapter().validate_json(json.dumps([_without_iterable_texts(body)])))
    yield from ()


def _without_iterable_texts(body: Body) -> Body:
    """The body with texts as lists of parts where the definition reads a text as an iterable of its characters."""
    if not isinstance(body.get("input"), list):
        return body
    return {**body, "input": [_with_parts(item) for item in body["input"]]}


def _with_parts(item: Any) -> Any:
    if not isinstance(item, dict) or item.get("type") != "custom_tool_call_output":
        return item
    output = item.get("output")
    return {**item, "output": [{"type": "input_text", "text": output}]} if isinstance(output, str) else item


def _walk(value: Any) -> None:
    """Look at every member: what is declared as an iterable is judged only when it is looked at."""
    if isinstance(value, Mapping):
        for member in value.values():
            _walk(member)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for member in value:
            _walk(member)


# --- Gemini -----------------------------------------------------------------------------------------


class _GeminiRequest(_common.BaseModel):
    """The fields that the SDK writes into the body of `generateContent`."""

    contents: list[types.Content]
    system_instruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    tool_config: types.ToolConfig | None = None
    safety_settings: list[types.SafetySetting] | None = None
    generation_config: types.GenerationConfig | None = None
    cached_content: str | None = None
    labels: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    model: str | None = None


_BESIDE_DATA: Final = frozenset(
    {"thought", "thought_signature", "video_metadata", "media_resolution", "media_processing", "part_metadata"}
    | {"audio_transcription", "speech_metadata"}
)


def _gemini(body: Body) -> Iterator[str]:
    try:
        request = _GeminiRequest.model_validate_json(json.dumps(body), strict=True)
    except AttributeError as error:  # an enumeration was called with something that is not a string
        yield str(error)
        return
    for content in request.contents:
        if content.role not in (None, "user", "model"):
            yield "role: must be either 'user' or 'model'"
    for content in (*request.contents, request.system_instruction or types.Content()):
        yield from (word for part in content.parts or () for word in _not_one(part))


def _not_one(part: types.Part) -> Iterator[str]:
    """What the definition says of a part in words: exactly one datum. A signature may come alone."""
    present = {name for name in type(part).model_fields if getattr(part, name) is not None}
    data = present - _BESIDE_DATA
    if len(data) > 1 or not (data or present & {"thought", "thought_signature"}):
        yield "exactly one field within a Part should be set"


# --- Bedrock ----------------------------------------------------------------------------------------


@cache
def _converse() -> Any:
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


def _bedrock(body: Body) -> Iterator[str]:
    found = ParamValidator().validate({"modelId": "any", **body}, _converse())
    if found.has_errors():
        yield found.generate_report()
    else:
        yield from _wrong_values(body, _converse())


def _wrong_values(value: Any, shape: Any) -> Iterator[str]:
    """Values that an enumeration of the model does not have: botocore itself does not look."""
    if shape.type_name == "structure" and not shape.is_document_type:
        for name, member in value.items():
            yield from _wrong_values(member, shape.members[name])
    elif shape.type_name == "list":
        for member in value:
            yield from _wrong_values(member, shape.member)
    elif shape.type_name == "map":
        for member in value.values():
            yield from _wrong_values(member, shape.value)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{value} is none of {shape.enum}"


# --- Cohere -----------------------------------------------------------------------------------------


@cache
def _cohere_model() -> type[BaseModel]:
    """The parameters of the SDK's own method."""
    parameters = inspect.signature(V2Client.chat).parameters
    hints = typing.get_type_hints(V2Client.chat)
    names = [name for name in parameters if name not in ("self", "request_options")]
    known: dict[str, Any] = {name: (hints[name], ... if name in ("model", "messages") else None) for name in names}
    return create_model("CohereRequest", __config__=ConfigDict(extra="forbid"), stream=(bool | None, None), **known)


def _cohere(body: Body) -> Iterator[str]:
    yield from _loose(_cohere_model().model_validate_json(json.dumps(body), strict=True))


@cache
def _discriminants() -> dict[type, str]:
    """The field that tells the members of a union apart: it has a default in Python, and none on the wire."""
    unions = [union for name in dir(cohere.types) if hasattr(union := getattr(cohere.types, name), "__metadata__")]
    marked = [(union, mark) for union in unions for mark in union.__metadata__ if isinstance(mark, UnionMetadata)]
    members = [(typing.get_args(union)[0], mark.discriminant) for union, mark in marked]
    return {member: name for union, name in members for member in typing.get_args(union) or (union,)}


def _loose(value: Any) -> Iterator[str]:
    """What the SDK lets through for the sake of newer servers: other fields, other values."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        discriminant = _discriminants().get(type(value))
        if discriminant is not None and discriminant not in value.model_fields_set:
            yield f"{discriminant} is missing"
        for name, field in type(value).model_fields.items():
            yield from _unlisted(field.annotation, getattr(value, name))
            yield from _loose(getattr(value, name))
    elif isinstance(value, list):
        for member in value:
            yield from _loose(member)


def _unlisted(annotation: Any, value: Any) -> Iterator[str]:
    options = typing.get_args(annotation)
    listed = [
        word for option in options if typing.get_origin(option) is typing.Literal for word in typing.get_args(option)
    ]
    if Any in options and listed and value is not None and value not in listed:
        yield f"{value} is none of {listed}"


# --- Ollama -----------------------------------------------------------------------------------------


def _ollama(body: Body) -> Iterator[str]:
    ChatRequest.model_validate_json(json.dumps(body), strict=True)
    yield from _unknown(body, ChatRequest)
    for message in body.get("messages") or ():
        images = message.get("images") if isinstance(message, dict) else None
        wrapped = {"images": [{"value": image} for image in images]} if isinstance(images, list) else {}
        ollama.Message.model_validate_json(json.dumps({**message, **wrapped}), strict=True)
        yield from _unknown(message, ollama.Message)
        for call in message.get("tool_calls") or ():
            yield from _unknown(call, ollama.Message.ToolCall)
            yield from _unknown(call["function"], ollama.Message.ToolCall.Function)
    for tool in body.get("tools") or ():
        yield from _unknown(tool, ollama.Tool)
        yield from _unknown(tool.get("function") or {}, ollama.Tool.Function)
    if body.get("options") is not None:
        ollama.Options.model_validate_json(json.dumps(body["options"]), strict=True)
        yield from _unknown(body["options"], ollama.Options)


def _unknown(value: Body, model: type[BaseModel]) -> Iterator[str]:
    return (name for name in value if name not in model.model_fields)


_JUDGES: Final[dict[str, Callable[[Body], Iterator[str]]]] = {
    "openai_responses": _openai_responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "ollama": _ollama,
}
