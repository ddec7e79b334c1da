"""Calls and outputs of tools that OpenAI defines and the client runs (`client_tools.py`).

They are calls and results like others: the type of the call is that of the tool, its arguments are the object that the
item holds.

Law: only what is well-formed is read so, and written as it came. Anything else, such as a shell that runs at OpenAI, is
None here, and carried as it is.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from toolglot.conversation import Text, ToolCall, ToolReference, ToolResult, ToolSpec
from toolglot.protocols.fields.failed_result import result_content, text_of
from toolglot.protocols.fields.reading import Fields, leftover, with_extra
from toolglot.protocols.openai_responses.client_tools import (
    LOCAL_SHELL,
    PATCH,
    SEARCH,
    SHELL,
    ClientTool,
    is_run_by_client,
)
from toolglot.protocols.openai_responses.form import PROTOCOL, ResponsesCall, ResponsesResult, is_own
from toolglot.protocols.openai_responses.tools import read_entries, write_tools

NOTHING_FOUND: Final = "No tools were found."
"""What a search that found nothing says to models that read its output as text."""

_FORM: Final = ResponsesCall()
_ACTION: Final = "exec"
_STDOUT, _STDERR, _OUTCOME = "stdout", "stderr", "outcome"
_CHUNK: Final = frozenset({_STDOUT, _STDERR, _OUTCOME})


# --- calls ------------------------------------------------------------------------------------------


def read_call(fields: Fields, tool: ClientTool) -> ToolCall | None:
    """A call; None if it is not well-formed, or not the client's to run."""
    id, held = fields.get("call_id"), fields.get(tool.field)
    if type(id) is not str or type(held) is not dict or not is_run_by_client(fields, tool.call):
        return None
    arguments = held
    if tool is LOCAL_SHELL:
        if held.get("type") != _ACTION:
            return None
        arguments = {name: value for name, value in held.items() if name != "type"}
    known = frozenset({"type", "call_id", tool.field, *tool.constants})
    return ToolCall(id, tool.type, arguments, tool.type, extra=leftover(fields, known, PROTOCOL), form=_FORM)


def write_call(call: ToolCall, tool: ClientTool, *, for_reply: bool) -> Fields:
    """The item of a call. One from elsewhere gets what the protocol demands; in a reply, ids and status come later."""
    held = call.arguments or {}
    if tool is LOCAL_SHELL:
        held = {"type": _ACTION, **held}
    fields: Fields = {"type": tool.call, "call_id": call.id, tool.field: held, **tool.constants}
    if is_own(call):
        return with_extra(fields, call.extra, PROTOCOL)
    if tool is LOCAL_SHELL:
        held.setdefault("env", {})
    if tool is PATCH and held.get("type") != "delete_file":
        fields[tool.field] = {"diff": "", **held}
    if not for_reply:
        digest = hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()
        fields |= {"id": f"{tool.prefix}_{digest[:40]}", "status": "completed"}
    return with_extra(fields, call.extra, PROTOCOL)


# --- outputs ----------------------------------------------------------------------------------------


def read_output(fields: Fields, tool: ClientTool) -> ToolResult | None:
    """An output; None if it is not well-formed, or the provider made it."""
    key = "call_id" if type(fields.get("call_id")) is str else "id"
    id = fields.get(key)
    if type(id) is not str or (key == "id" and tool is not LOCAL_SHELL) or not is_run_by_client(fields, tool.output):
        return None
    if tool is SEARCH:
        return _read_found(fields, id)
    if tool is SHELL:
        return _read_chunks(fields, id)
    return _read_text(fields, id, key, tool)


def _read_text(fields: Fields, id: str, key: str, tool: ClientTool) -> ToolResult | None:
    output, status = fields.get("output"), fields.get("status")
    if type(output) is not str and (tool is not PATCH or output is not None):
        return None
    has_failed = False
    known = {"type", key, "output"}
    if tool is PATCH:
        if status not in ("completed", "failed"):
            return None
        has_failed = status == "failed"
        known.add("status")
    form = ResponsesResult(output="absent" if output is None else None, tool=tool.type, has_item_id_only=key == "id")
    extra = leftover(fields, frozenset(known), PROTOCOL)
    return ToolResult(id, output, has_failed, is_complete=True, extra=extra, form=form)


def _read_found(fields: Fields, id: str) -> ToolResult | None:
    tools = fields.get("tools")
    if type(tools) is not list:
        return None
    known = frozenset({"type", "call_id", "tools", *SEARCH.constants})
    content = references(read_entries(tools)) or (Text(NOTHING_FOUND),)
    form = ResponsesResult(tool=SEARCH.type)
    return ToolResult(id, content, is_complete=True, extra=leftover(fields, known, PROTOCOL), form=form)


def references(tools: tuple[ToolSpec, ...]) -> tuple[ToolReference, ...]:
    """Tools that are defined within the conversation."""
    return tuple([ToolReference(tool.name, tool.namespace, tool) for tool in tools])


def _read_chunks(fields: Fields, id: str) -> ToolResult | None:
    output = fields.get("output")
    if type(output) is not list or not all(map(_is_chunk, output)):
        return None
    extra = leftover(fields, frozenset({"type", "call_id", "output"}), PROTOCOL)
    form = ResponsesResult(tool=SHELL.type, written=output)
    return ToolResult(id, _text_of_chunks(output), is_complete=True, extra=extra, form=form)


def _is_chunk(chunk: Any) -> bool:
    """Whether something is the output of one command."""
    if type(chunk) is not dict or not chunk.keys() >= _CHUNK or type(chunk[_OUTCOME]) is not dict:
        return False
    return type(chunk[_STDOUT]) is str and type(chunk[_STDERR]) is str


def _text_of_chunks(chunks: list[Any]) -> str:
    """The outputs of commands as text: what they wrote, and how they ended unless that is 0."""
    return "\n".join(map(_text_of_chunk, chunks))


def _text_of_chunk(chunk: Fields) -> str:
    parts = [text for text in (chunk[_STDOUT], chunk[_STDERR]) if text]
    outcome = chunk[_OUTCOME]
    if outcome.get("type") == "timeout":
        parts.append("[timeout]")
    elif outcome.get("exit_code") != 0:
        parts.append(f"[exit code {outcome.get('exit_code')}]")
    return "\n".join(parts)


def write_output(result: ToolResult, tool: ClientTool, form: ResponsesResult | None) -> Fields:
    """The item of an output."""
    is_by_item = tool is LOCAL_SHELL and (form is None or form.has_item_id_only)
    own = form.written if form is not None and is_by_item else None
    id = own if type(own) is str else result.call_id
    fields: Fields = {"type": tool.output, "id" if is_by_item else "call_id": id, **tool.constants}
    if tool is SEARCH:
        fields["tools"] = write_tools(_found_tools(result))
        if form is None:
            fields["status"] = "completed"
        return with_extra(fields, result.extra, PROTOCOL)
    text = text_of(result_content(result))
    if tool is SHELL:
        fields["output"] = _write_chunks(result, text, form)
    elif result.content is not None or form is None or form.output != "absent":
        fields["output"] = text
    if tool is PATCH:
        fields["status"] = "failed" if result.is_error else "completed"
    return with_extra(fields, result.extra, PROTOCOL)


def _found_tools(result: ToolResult) -> list[ToolSpec]:
    parts = result.content if isinstance(result.content, tuple) else ()
    return [part.definition for part in parts if isinstance(part, ToolReference) and part.definition is not None]


def _write_chunks(result: ToolResult, text: str, form: ResponsesResult | None) -> list[Fields]:
    written = form.written if form is not None else None
    if type(written) is list and _text_of_chunks(written) == text:
        return written
    outcome = {"type": "exit", "exit_code": 1 if result.is_error else 0}
    return [{_STDOUT: text, _STDERR: "", _OUTCOME: outcome}]
