"""Reads an Ollama `/api/chat` request for the referee.

The server reads a request into fixed types and ignores what it does not know; sampling settings are in `options`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolglot.errors import quote
from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    NUMBER,
    OBJECT,
    SOME_TEXT,
    TEXT,
    TEXTS,
    WHOLE,
    ByKind,
    Each,
    FormFaults,
    Values,
    fields,
    look,
    objects,
    settings,
    text_of,
)
from toolglot.referee.readers.forms import (
    lenient_form as _form,
)
from toolglot.referee.view import Message, PartView, Role, Setting, ToolView, View

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "developer": "developer",
}
_CALL: Final = _form(
    {
        "id": TEXT,
        "type": TEXT,
        "function": _form(
            {"index": WHOLE, "name": TEXT, "arguments": OBJECT},
            "name",
            "arguments",
            rules={"arguments": "ollama-call-object-only"},
        ),
    },
    "function",
)
_MESSAGE: Final = _form(
    {
        "role": TEXT,
        "content": TEXT,
        "thinking": TEXT,
        "images": TEXTS,
        "tool_name": TEXT,
        "tool_call_id": TEXT,
        "tool_calls": Each(_CALL),
    },
    "role",
)
_MEANT: Final = {"function": "tool", "human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
"""Roles of other protocols and programs, which no template of a model shows, and what they mean."""
_TOOL: Final = _form(
    {
        "type": TEXT,
        "items": ANYTHING,
        "function": _form({"name": TEXT, "description": TEXT, "parameters": OBJECT, "strict": FLAG}),
    }
)
_WHOLE_OPTIONS: Final = "num_ctx num_batch num_gpu main_gpu num_thread num_keep seed num_predict top_k repeat_last_n"
_OPTIONS: Final = _form(
    dict.fromkeys((*_WHOLE_OPTIONS.split(), "mirostat"), WHOLE)
    | dict.fromkeys(("top_p", "min_p", "tfs_z", "typical_p", "temperature", "repeat_penalty"), NUMBER)
    | dict.fromkeys(("presence_penalty", "frequency_penalty", "mirostat_tau", "mirostat_eta"), NUMBER)
    | dict.fromkeys(("numa", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap", "use_mlock"), FLAG)
    | dict.fromkeys(("embedding_only", "penalize_newline"), FLAG)
    | {"stop": TEXTS}
)
_BODY: Final = _form(
    {
        "model": SOME_TEXT,
        "messages": Each(_MESSAGE),
        "tools": Each(_TOOL),
        "stream": FLAG,
        "format": ByKind('"json" or a schema', {str: Values(("", "json")), dict: OBJECT}),
        "options": _OPTIONS,
        "keep_alive": ByKind("a duration", {str: TEXT, int: NUMBER, float: NUMBER}),
        "think": ByKind("true, false or a level", {bool: FLAG, str: TEXT}),
        "logprobs": FLAG,
        "top_logprobs": WHOLE,
        "truncate": FLAG,
        "shift": FLAG,
    },
    "model",
)

_SAMPLING: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "num_predict": "max_tokens",
}


def read(body: dict[str, Any]) -> View:
    """The view of a request."""
    found = look(body, _BODY)
    request = fields(body)
    sampling = settings(fields(request.get("options")), _SAMPLING, "$.options")
    max_tokens = _limit(sampling.pop("max_tokens", None))
    think = request.get("think")
    return View(
        messages=tuple(_messages(request.get("messages"), found)),
        tools=tuple(_tools(request["tools"], found)) if isinstance(request.get("tools"), list) else None,
        max_tokens=max_tokens,
        max_tokens_field="" if max_tokens is None else "num_predict",
        sampling=sampling,
        thinking_mode=Setting("$.think", "on" if think else "off") if isinstance(think, bool) else None,
        effort=Setting("$.think", think) if isinstance(think, str) else None,
        output=_output(request.get("format")),
        extra_fields=found.take("$"),
        extra_paths=found.unknown_paths(),
        shapes=tuple(found.shapes),
    )


def _limit(max_tokens: Setting | None) -> Setting | None:
    """A negative number means no limit."""
    is_open = max_tokens is not None and isinstance(max_tokens.value, int) and max_tokens.value < 0
    return None if is_open else max_tokens


def _output(format: Any) -> Setting | None:
    if format == "json":
        return Setting("$.format", "json")
    return Setting("$.format", "json_schema") if isinstance(format, dict) else None


def _tools(written: Any, found: FormFaults) -> Iterator[ToolView]:
    for path, tool in objects(written, "$.tools"):
        function = fields(tool.get("function"))
        strict = function.get("strict")
        yield ToolView(
            path=path,
            name=text_of(function.get("name")),
            type=text_of(tool.get("type")) or "function",
            description=text_of(function.get("description")),
            schema=function.get("parameters"),
            schema_path=f"{path}.function.parameters",
            schema_field="parameters",
            strict=strict if isinstance(strict, bool) else None,
            extra_fields=found.take(path),
        )


def _messages(written: Any, found: FormFaults) -> Iterator[Message]:
    for path, message in objects(written, "$.messages"):
        # The server accepts any role, in any case; one that a template does not know is shown unchanged.
        role_name = (text_of(message.get("role")) or "").lower()
        role = _ROLES.get(role_name, "user")
        if role_name in _MEANT:
            found.wrong(f"{path}.role", f"unknown role {role_name!r}; write {_MEANT[role_name]!r}")
        content = message.get("content")
        items = (_result(message, path),) if role == "tool" else tuple(_items(message, path, found))
        unread = found.take(path)
        if unread and content is None and not items:
            found.wrong(path, f"the message is empty to Ollama, which does not read {quote(unread[0])}")
        yield Message(
            role=role,
            path=path,
            items=items,
            has_content=content is not None,
            is_empty_string=content == "",
            extra_fields=unread,
        )


def _result(message: dict[str, Any], path: str) -> PartView:
    content = message.get("content")
    whole = [PartView(kind="text", path=f"{path}.content", text=content)] if isinstance(content, str) else []
    return PartView(
        kind="result",
        path=path,
        type="tool",
        id=text_of(message.get("tool_call_id")) or None,  # an empty field is an absent one here
        name=text_of(message.get("tool_name")),
        content=(*whole, *_images(message, path)),
        has_content=content is not None,
    )


def _items(message: dict[str, Any], path: str, found: FormFaults) -> Iterator[PartView]:
    thought, content = text_of(message.get("thinking")), text_of(message.get("content"))
    if thought:
        yield PartView(kind="thinking", path=f"{path}.thinking", type="thinking", text=thought)
    if content:
        yield PartView(kind="text", path=f"{path}.content", text=content)
    yield from _images(message, path)
    for inner_path, call in objects(message.get("tool_calls"), f"{path}.tool_calls"):
        function = fields(call.get("function"))
        yield PartView(
            kind="call",
            path=inner_path,
            type="function",
            id=text_of(call.get("id")) or None,
            name=text_of(function.get("name")),
            arguments=function.get("arguments"),
            extra_fields=found.take(inner_path),
        )


def _images(message: dict[str, Any], path: str) -> Iterator[PartView]:
    images = message.get("images")
    for index, image in enumerate(images if isinstance(images, list) else ()):
        if isinstance(image, str):
            yield PartView(kind="media", path=f"{path}.images[{index}]", type="images", media="image", source="data")
