"""Tools that OpenAI defines and the client runs: `local_shell`, `shell`, `apply_patch` and a client's `tool_search`.

Such a tool has no name but its type, and its calls and outputs are items of their own types (`client_calls.py`). Some
of these types can also be run by OpenAI itself: a tool search, and a shell in a container.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import ToolSpec
from toolglot.protocols.fields.function_tools import provider_tool
from toolglot.protocols.fields.reading import Fields, optional
from toolglot.protocols.openai_responses.form import PROTOCOL


class ClientTool(Struct, frozen=True):
    """A tool that OpenAI defines and the client runs.

    type: the type of the tool, which is also its name.
    call: the type of an item that is a call.
    output: the type of an item that is an output.
    prefix: how the ids of its calls' items begin.
    field: the field of a call that holds the arguments.
    constants: what an item always says.
    """

    type: str
    call: str
    output: str
    prefix: str
    field: str
    constants: Fields = {}


SEARCH: Final = ClientTool(
    "tool_search", "tool_search_call", "tool_search_output", "tsc", "arguments", {"execution": "client"}
)
LOCAL_SHELL: Final = ClientTool("local_shell", "local_shell_call", "local_shell_call_output", "lsh", "action")
SHELL: Final = ClientTool("shell", "shell_call", "shell_call_output", "sh", "action")
PATCH: Final = ClientTool("apply_patch", "apply_patch_call", "apply_patch_call_output", "apc", "operation")
_TOOLS: Final = (SEARCH, LOCAL_SHELL, SHELL, PATCH)

BY_TYPE: Final = {tool.type: tool for tool in _TOOLS}
BY_CALL: Final = {tool.call: tool for tool in _TOOLS}
BY_OUTPUT: Final = {tool.output: tool for tool in _TOOLS}


# --- definitions ------------------------------------------------------------------------------------


def is_run_by_client(fields: Fields, kind: str) -> bool:
    """Whether a tool, a call or an output of such a type is the client's to run."""
    if kind in (SEARCH.type, SEARCH.call, SEARCH.output):
        return fields.get("execution") == "client"
    environment = fields.get("environment")
    if kind in (SHELL.type, SHELL.call):
        return environment is None or (type(environment) is dict and environment.get("type") == "local")
    return True


def read_typed_tool(fields: Fields, kind: str) -> ToolSpec:
    """A tool of a type that OpenAI defines. It is named by its type only if the client runs it."""
    is_ours = kind in BY_TYPE and is_run_by_client(fields, kind)
    carried = provider_tool(fields, PROTOCOL, kind, kind if is_ours else optional(fields, "name", str) or "")
    carried = replace(carried, description=optional(fields, "description", str))
    if kind != SEARCH.type:
        return carried
    parameters: Any = fields.get("parameters")
    if is_ours and type(parameters) is dict:
        return replace(carried, parameters=parameters)
    return carried if is_ours else replace(carried, is_search=True)
