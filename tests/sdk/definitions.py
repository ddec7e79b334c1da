"""What the type definitions of each SDK say to a request body that toolglot wrote.

The definitions speak of shapes only: which fields there are, of which types. Whether a history is in order is
the referee's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import botocore.session
from anthropic.types import (
    MessageParam,
    OutputConfigParam,
    TextBlockParam,
    ThinkingConfigParam,
    ToolChoiceParam,
    ToolUnionParam,
)
from botocore.validate import ParamValidator
from cohere import ChatMessageV2, ResponseFormatV2, Thinking, ToolV2
from google.genai.types import Content, GenerationConfig, Tool, ToolConfig
from mistralai.client.models import ChatCompletionRequest
from ollama import Message, Options
from ollama import Tool as OllamaTool
from openai.types.chat import (
    ChatCompletionMessageParam,
    ChatCompletionToolChoiceOptionParam,
    ChatCompletionToolUnionParam,
)
from openai.types.chat.completion_create_params import ResponseFormat
from openai.types.responses import ResponseInputItemParam, ResponseTextConfigParam, ToolParam
from openai.types.responses.response_create_params import ToolChoice
from openai.types.shared_params import Reasoning
from pydantic import TypeAdapter

Fields = dict[str, Any]


def _adapter(definition: Any) -> TypeAdapter[Any]:
    return TypeAdapter(definition)


_DEFINITIONS: Final[dict[str, dict[str, TypeAdapter[Any]]]] = {
    "anthropic": {
        "messages": _adapter(list[MessageParam]),
        "system": _adapter(str | list[TextBlockParam]),
        "tools": _adapter(list[ToolUnionParam]),
        "tool_choice": _adapter(ToolChoiceParam),
        "thinking": _adapter(ThinkingConfigParam),
        "output_config": _adapter(OutputConfigParam),
        "max_tokens": _adapter(int),
    },
    "cohere": {
        "messages": _adapter(list[ChatMessageV2]),
        "tools": _adapter(list[ToolV2]),
        "thinking": _adapter(Thinking),
        "response_format": _adapter(ResponseFormatV2),
    },
    "genai": {
        "contents": _adapter(list[Content]),
        "systemInstruction": _adapter(Content),
        "tools": _adapter(list[Tool]),
        "toolConfig": _adapter(ToolConfig),
        "generationConfig": _adapter(GenerationConfig),
    },
    "ollama": {
        "messages": _adapter(list[Message]),
        "tools": _adapter(list[OllamaTool]),
        "options": _adapter(Options),
        "think": _adapter(bool | str),
    },
    "openai": {
        "messages": _adapter(list[ChatCompletionMessageParam]),
        "tools": _adapter(list[ChatCompletionToolUnionParam]),
        "tool_choice": _adapter(ChatCompletionToolChoiceOptionParam),
        "response_format": _adapter(ResponseFormat),
    },
    "responses": {
        "input": _adapter(str | list[ResponseInputItemParam]),
        "tools": _adapter(list[ToolParam]),
        "tool_choice": _adapter(ToolChoice),
        "text": _adapter(ResponseTextConfigParam),
        "reasoning": _adapter(Reasoning),
    },
}


def refuse_invalid(name: str, body: Fields) -> None:
    """Raise if the body is not what the SDK's own definitions allow."""
    if name == "boto3":
        _refuse_parameters(body)
    elif name == "mistral":
        ChatCompletionRequest.model_validate({"model": "any", **body})
    else:
        for key, definition in _DEFINITIONS[name].items():
            if key in body:
                _walk(definition.validate_python(_IN_PYTHON.get(name, _same)(body[key])))


def _walk(value: Any) -> None:
    """Look at every member: what is declared as an iterable is judged only when it is looked at."""
    if isinstance(value, Mapping):
        for member in value.values():
            _walk(member)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for member in value:
            _walk(member)


def _same(value: Any) -> Any:
    return value


def _with_image_values(value: Any) -> Any:
    """Ollama's images as its Python type has them: an object around the data."""
    if not isinstance(value, list):
        return value
    return [
        {**item, "images": [{"value": image} for image in item["images"]]} if item.get("images") else item
        for item in value
    ]


_IN_PYTHON: Final[dict[str, Callable[[Any], Any]]] = {"ollama": _with_image_values}


def _refuse_parameters(body: Fields) -> None:
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    found = ParamValidator().validate({"modelId": "any", **body}, model.operation_model("Converse").input_shape)
    assert not found.has_errors(), found.generate_report()
