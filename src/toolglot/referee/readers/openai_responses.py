"""Reads an OpenAI Responses request for the referee.

Items are in one flat list. A run of the model's items is one assistant message, a run of the client's results is one
tool message; every other item is a message of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, Literal

from msgspec.structs import replace

from toolglot.referee.readers.forms import (
    FormFaults,
    fields,
    flag_of,
    look,
    named_schema,
    objects,
    setting,
    settings,
    text_of,
)
from toolglot.referee.readers.forms_openai_responses import BODY
from toolglot.referee.view import ChoiceView, Message, PartView, Role, Setting, ToolView, View

_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
_BY_CLIENT: Final[dict[str, Role]] = {
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "computer_call_output": "tool",
    "local_shell_call_output": "tool",
    "shell_call_output": "tool",
    "apply_patch_call_output": "tool",
    "mcp_approval_response": "user",
    "compaction_trigger": "user",
    "additional_tools": "developer",
    "agent_message": "user",
    "configuration_update": "developer",
}
"""The role of an item that the model did not make."""
_OTHERS: Final = (
    *("item_reference", "compaction", "compaction_trigger", "mcp_list_tools", "mcp_approval_request"),
    *("mcp_approval_response", "additional_tools", "configuration_update"),
)
_LOCAL_SHELL: Final = "local_shell_call"
_OWN_CALLS: Final = {
    "apply_patch_call": "operation",
    "shell_call": "action",
    _LOCAL_SHELL: "action",
    "tool_search_call": "arguments",
}
"""Calls that the client runs and that are items of their own type, and where their arguments are."""
_OWN_OUTPUTS: Final = (
    *("apply_patch_call_output", "shell_call_output", "local_shell_call_output", "tool_search_output"),
)
_MERGED: Final = ("assistant", "tool")
_SAMPLING: Final = {"temperature": "temperature", "top_p": "top_p"}
_OUTPUTS: Final = {"json_object": "json", "json_schema": "json_schema"}
_MODES: Final[dict[str, Literal["auto", "none", "required"]]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
}


def read(body: dict[str, Any]) -> View:
    """The view of a request."""
    found = look(body, BODY)
    request = fields(body)
    return View(
        system=_instructions(request.get("instructions")),
        messages=tuple(_messages(request.get("input"), found)),
        messages_path="$.input",
        tools=_tools(request["tools"], "$.tools", found) if isinstance(request.get("tools"), list) else None,
        later_tools=tuple(_later_tools(request.get("input"))),
        choice=_choice(request.get("tool_choice")),
        parallel=setting(request, "parallel_tool_calls"),
        max_tokens=setting(request, "max_output_tokens"),
        max_tokens_field="max_output_tokens" if request.get("max_output_tokens") is not None else "",
        sampling=settings(request, _SAMPLING),
        effort=setting(fields(request.get("reasoning")), "effort", "$.reasoning"),
        summary=setting(fields(request.get("reasoning")), "summary", "$.reasoning"),
        output=_output(fields(request.get("text"))),
        output_schema=_output_schema(fields(fields(request.get("text")).get("format"))),
        user=setting(request, "user"),
        cache_key=setting(request, "prompt_cache_key"),
        keeps_items=request.get("store") is not False,
        is_continued=_is_continued(request),
        extra_fields=found.take("$"),
        extra_paths=found.unknown_paths(),
        shapes=tuple(found.shapes),
    )


def _is_continued(request: dict[str, Any]) -> bool:
    """Whether the provider has stored earlier input: a response, a prompt, or single items."""
    if request.get("previous_response_id") is not None or request.get("conversation") is not None:
        return True
    if request.get("input") is None and request.get("prompt") is not None:
        return True
    return any(_kind(item) == "item_reference" for _, item in objects(request.get("input"), ""))


def _output(text: dict[str, Any]) -> Setting | None:
    kind = text_of(fields(text.get("format")).get("type"))
    return Setting("$.text.format", _OUTPUTS[kind]) if kind in _OUTPUTS else None


def _output_schema(form: dict[str, Any]) -> ToolView | None:
    return named_schema(form, "$.text.format") if form.get("type") == "json_schema" else None


def _instructions(written: Any) -> Message | None:
    return _whole(written, "system", "$.instructions") if isinstance(written, str) else None


def _whole(text: str, role: Role, path: str) -> Message:
    """A message that is one string."""
    items = (PartView(kind="text", path=path, text=text),) if text else ()
    return Message(role=role, path=path, items=items, is_empty_string=not text)


# --- tools ------------------------------------------------------------------------------------------


def _tools(written: Any, path: str, found: FormFaults) -> tuple[ToolView, ...]:
    return tuple(_tool(tool, inner_path, found) for inner_path, tool in objects(written, path))


def _later_tools(written: Any) -> Iterator[ToolView]:
    """The tools that items define."""
    for path, item in objects(written, "$.input"):
        if _kind(item) in ("additional_tools", "tool_search_output"):
            yield from _tools(item.get("tools"), f"{path}.tools", FormFaults())


def _tool(tool: dict[str, Any], path: str, found: FormFaults) -> ToolView:
    kind, name, extra = text_of(tool.get("type")) or "", text_of(tool.get("name")), found.take(path)
    described = text_of(tool.get("description"))
    if kind == "function":
        return ToolView(
            path=path,
            name=name,
            type=kind,
            description=described,
            schema=tool.get("parameters"),
            schema_path=f"{path}.parameters",
            schema_field="parameters",
            strict=flag_of(tool.get("strict")),
            extra_fields=extra,
        )
    if kind == "custom":
        return ToolView(path=path, name=name, kind="custom", type=kind, description=described, extra_fields=extra)
    if kind == "namespace":
        inner = tuple(
            _tool(member, inner_path, FormFaults())
            for inner_path, member in objects(tool.get("tools"), f"{path}.tools")
            if member.get("type") in ("function", "custom")
        )
        return ToolView(
            path=path, name=name, kind="namespace", type=kind, description=described, members=inner, extra_fields=extra
        )
    return ToolView(path=path, name=None, kind="server", type=kind, description=described, extra_fields=extra)


def _choice(written: Any) -> ChoiceView | None:
    if isinstance(written, str):
        mode = _MODES.get(written)
        return None if mode is None else ChoiceView(path="$.tool_choice", mode=mode)
    wire = fields(written)
    kind = text_of(wire.get("type"))
    if kind == "allowed_tools":
        listed = (text_of(tool.get("name")) for _, tool in objects(wire.get("tools"), ""))
        return ChoiceView(
            path="$.tool_choice", mode="allowed", names=tuple(name for name in listed if name is not None)
        )
    # A hosted tool has a type instead of a name, and one of a remote server is not in the list of tools.
    name = text_of(wire.get("name")) if kind in ("function", "custom") else None
    return (
        None if kind is None else ChoiceView(path="$.tool_choice", mode="named", names=() if name is None else (name,))
    )


# --- items ------------------------------------------------------------------------------------------


def _messages(written: Any, found: FormFaults) -> Iterator[Message]:
    if isinstance(written, str):
        yield _whole(written, "user", "$.input")
        return
    placed = [(path, item, _role(item)) for path, item in _with_shell_ids(objects(written, "$.input"))]
    for (role, _), run in groupby(enumerate(placed), _same_message):
        members = [(path, item) for _, (path, item, _) in run]
        if role is not None:
            yield _message(role, members, found)


def _with_shell_ids(items: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The items; the output of a local shell, which has an `id` only, with the id of the call that it can answer."""
    calls: dict[Any, Any] = {}
    last: Any = None
    for path, item in items:
        kind = _kind(item)
        if kind == _LOCAL_SHELL:
            last = item.get("call_id")
            calls |= {id: last for id in (item.get("id"), last) if isinstance(id, str)}
        if kind == "local_shell_call_output" and "call_id" not in item:
            id = item.get("id")
            yield path, {**item, "call_id": calls.get(id, last) if isinstance(id, str) else last}
            last = None
        else:
            yield path, item


def _same_message(numbered: tuple[int, tuple[str, dict[str, Any], Role | None]]) -> tuple[Role | None, int]:
    """A key that neighbouring items share if they are one message."""
    number, (_, _, role) = numbered
    return role, -1 if role in _MERGED else number


def _role(item: dict[str, Any]) -> Role | None:
    kind = _kind(item)
    if kind == "message":
        role_name = item.get("role")
        return _ROLES.get(role_name) if isinstance(role_name, str) else None
    if kind == "tool_search_output" and _is_of_client(item):
        return "tool"
    return _BY_CLIENT.get(kind, "assistant")


def _is_of_client(item: dict[str, Any]) -> bool:
    """Whether a call or an output of a type of its own is the client's: some are also run by OpenAI."""
    if _kind(item).startswith("tool_search"):
        return item.get("execution") == "client"
    return bool(fields(item.get("environment")).get("type", "local") == "local")


def _kind(item: dict[str, Any]) -> str:
    if "type" in item:
        return text_of(item["type"]) or ""
    return "item_reference" if "id" in item and "role" not in item else "message"


def _message(role: Role, members: list[tuple[str, dict[str, Any]]], found: FormFaults) -> Message:
    items, path = list[PartView](), members[0][0]
    is_empty = all(_kind(item) == "message" and item.get("content") == "" for _, item in members)
    extra = found.take(path) if _kind(members[0][1]) == "message" else ()
    for inner_path, item in members:
        items += _items(item, inner_path, found)
    has_content = any(_kind(item) != "message" or item.get("content") is not None for _, item in members)
    return Message(
        role=role,
        path=path,
        items=tuple(items),
        has_content=has_content,
        is_empty_string=is_empty,
        extra_fields=extra,
    )


def _items(item: dict[str, Any], path: str, found: FormFaults) -> Iterator[PartView]:
    kind = _kind(item)
    if kind == "message":
        id, parts = text_of(item.get("id")), tuple(_parts(item.get("content"), f"{path}.content", found))
        yield from (replace(parts[0], item_id=id), *parts[1:]) if parts and id is not None else parts
    elif kind in ("function_call", "custom_tool_call"):
        is_custom = kind == "custom_tool_call"
        yield PartView(
            kind="call",
            path=path,
            type=kind,
            id=text_of(item.get("call_id")),
            item_id=text_of(item.get("id")),
            name=text_of(item.get("name")),
            arguments=item.get("input" if is_custom else "arguments"),
            is_custom=is_custom,
            extra_fields=found.take(path),
        )
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield _result(item, kind, path, found)
    elif kind == "reasoning":
        yield _reasoning(item, path, found)
    elif kind in _OWN_CALLS and _is_of_client(item):
        yield _own_call(item, kind, path, found)
    elif kind in _OWN_OUTPUTS and _is_of_client(item):
        yield PartView(
            kind="result",
            path=path,
            type=kind,
            id=text_of(item.get("call_id", item.get("id"))),
            is_custom=True,
            content=tuple(_parts(item.get("output"), f"{path}.output", FormFaults()))
            if kind != "shell_call_output"
            else (),
            extra_fields=found.take(path),
        )
    else:
        known: Literal["other", "server"] = "other" if kind in _OTHERS else "server"
        yield PartView(kind=known, path=path, type=kind, item_id=text_of(item.get("id")), extra_fields=found.take(path))


def _own_call(item: dict[str, Any], kind: str, path: str, found: FormFaults) -> PartView:
    held = item.get(_OWN_CALLS[kind])
    if kind == _LOCAL_SHELL:
        held = {name: value for name, value in fields(held).items() if name != "type"}
    return PartView(
        kind="call",
        path=path,
        type=kind,
        id=text_of(item.get("call_id")),
        name=kind.removesuffix("_call"),
        arguments=held,
        is_custom=True,
        extra_fields=found.take(path),
    )


def _result(item: dict[str, Any], kind: str, path: str, found: FormFaults) -> PartView:
    output, inner_path = item.get("output"), f"{path}.output"
    whole = (PartView(kind="text", path=inner_path, text=output),) if output == "" else ()
    return PartView(
        kind="result",
        path=path,
        type=kind,
        id=text_of(item.get("call_id")),
        item_id=text_of(item.get("id")),
        name=text_of(item.get("name")),
        is_custom=kind == "custom_tool_call_output",
        content=whole or tuple(_parts(output, inner_path, FormFaults())),
        has_content=output is not None,
        extra_fields=found.take(path),
    )


def _reasoning(item: dict[str, Any], path: str, found: FormFaults) -> PartView:
    role_name = [
        part["text"]
        for field in ("summary", "content")
        for _, part in objects(item.get(field), path)
        if isinstance(part.get("text"), str)
    ]
    return PartView(
        kind="thinking",
        path=path,
        type="reasoning",
        text="\n".join(role_name) if role_name else None,
        item_id=text_of(item.get("id")),
        signature=text_of(item.get("encrypted_content")),
        extra_fields=found.take(path),
    )


def _parts(content: Any, path: str, found: FormFaults) -> Iterator[PartView]:
    if isinstance(content, str) and content:
        yield PartView(kind="text", path=path, text=content)
    for inner_path, part in objects(content, path):
        kind, extra = text_of(part.get("type")) or "", found.take(inner_path)
        if kind in ("input_text", "output_text"):
            yield PartView(kind="text", path=inner_path, type=kind, text=text_of(part.get("text")), extra_fields=extra)
        elif kind in ("input_image", "input_file"):
            media = "image" if kind == "input_image" else _sort_of_file(part)
            yield PartView(
                kind="media", path=inner_path, type=kind, media=media, source=_source(part), extra_fields=extra
            )
        else:
            yield PartView(
                kind="other", path=inner_path, type=kind, text=text_of(part.get("refusal")), extra_fields=extra
            )


def _source(part: dict[str, Any]) -> Literal["", "data", "url", "file"]:
    url = text_of(part.get("image_url"))
    if part.get("file_data") is not None or (url is not None and url.startswith("data:")):
        return "data"
    if url is not None or part.get("file_url") is not None:
        return "url"
    return "file" if part.get("file_id") is not None else ""


def _sort_of_file(part: dict[str, Any]) -> str:
    named = (text_of(part.get(field)) or "" for field in ("filename", "file_url"))
    is_pdf = any(name[-4:].lower() == ".pdf" for name in named)
    data = text_of(part.get("file_data")) or ""
    return "document" if is_pdf or data.startswith("data:application/pdf") else "file"
