"""Tools that a provider defines but the client runs: their published parameters, so that any model can call them.

A request names such a tool by a versioned type alone (`bash_20250124`), because the model was trained on it.
Another model needs a description of its arguments. Tools that the provider runs itself are not here.

Calls of some of these tools are items of their own type in their protocol (`TYPED_CALLS`): there the type of the tool
is kept, so that the call of any model can be given back as one of that type.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import ToolSpec

Schema = dict[str, Any]


def _object(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _choice(description: str, *values: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": description}


_LINES: Final[Schema] = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "For `view`: the first and the last line to show; -1 as the last means the end of the file.",
}
_LINE: Final[Schema] = {
    "type": "integer",
    "description": "For `insert`: the line after which to insert; 0 is the start.",
}

_BASH: Final = _object(
    [],
    command=_text("The command to run. Needed unless the tool is restarted."),
    restart={"type": "boolean", "description": "True restarts the shell."},
)
_EDITOR: Final = _object(
    ["command", "path"],
    command=_choice("What to do.", "view", "create", "str_replace", "insert"),
    path=_text("The file or directory."),
    view_range=_LINES,
    file_text=_text("For `create`: the content of the file."),
    old_str=_text("For `str_replace`: the text to replace; it must occur exactly once."),
    new_str=_text("For `str_replace`: the text to put in its place."),
    insert_line=_LINE,
    insert_text=_text("For `insert`: the text to insert."),
)
_MEMORY: Final = _object(
    ["command"],
    command=_choice("What to do.", "view", "create", "str_replace", "insert", "delete", "rename"),
    path=_text("The file or directory, under /memories."),
    view_range=_LINES,
    file_text=_text("For `create`: the content of the file."),
    old_str=_text("For `str_replace`: the text to replace."),
    new_str=_text("For `str_replace`: the text to put in its place."),
    insert_line=_LINE,
    insert_text=_text("For `insert`: the text to insert."),
    old_path=_text("For `rename`: the present path."),
    new_path=_text("For `rename`: the new path."),
)

_LOCAL_SHELL: Final = _object(
    ["command"],
    command={
        "type": "array",
        "items": {"type": "string"},
        "description": 'The program and its arguments; for a line of shell, ["bash", "-lc", "the line"].',
    },
    working_directory=_text("Where to run it."),
    timeout_ms={"type": "integer", "description": "After how many milliseconds to stop it."},
    env={"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables."},
    user=_text("The user to run it as."),
)
_SHELL: Final = _object(
    ["commands"],
    commands={"type": "array", "items": {"type": "string"}, "description": "Lines of shell, run in this order."},
    timeout_ms={"type": "integer", "description": "After how many milliseconds to stop them."},
    max_output_length={"type": "integer", "description": "The most characters of output to return."},
)
_PATCH: Final = _object(
    ["type", "path"],
    type=_choice("What to do.", "create_file", "update_file", "delete_file"),
    path=_text("The file, relative to the root of the workspace."),
    diff=_text(
        "For `create_file` and `update_file`: the change, without file names and line numbers. Each line begins with "
        "`+` (added), `-` (removed) or a blank (unchanged); all lines of a new file begin with `+`. `@@`, with a line "
        "of the file such as a function's head behind it if needed, comes before each group of lines that belong "
        "together, and about three unchanged lines surround each change."
    ),
)
_TOOL_SEARCH: Final = _object(["query"], query=_text("What to search for."))

TYPED_CALLS: Final = frozenset({"local_shell", "shell", "apply_patch", "tool_search"})
"""The types of tools whose calls are items of their own type."""

_SHAPED_CALLS: Final = TYPED_CALLS - {"tool_search"}
"""Those of which an item can hold only arguments that fit the published parameters."""

CLIENT_TOOLS: Final[dict[str, tuple[str, Schema]]] = {
    "bash_": ("Runs a command in a shell that keeps its state.", _BASH),
    "text_editor_": ("Views, creates and edits files.", _EDITOR),
    "memory_": ("Keeps notes in files under /memories.", _MEMORY),
    "local_shell": ("Runs a command on the client's machine.", _LOCAL_SHELL),
    "shell": ("Runs commands in a shell on the client's machine.", _SHELL),
    "apply_patch": ("Creates, changes and deletes files. One call changes one file.", _PATCH),
    "tool_search": ("Searches for tools that can be loaded.", _TOOL_SEARCH),
}
"""Start of the type → what the tool does and what it takes (source: the types of the anthropic and openai SDKs, and the
published tool pages). Types with a date are Anthropic's, the others OpenAI's."""


def as_function(tool: ToolSpec) -> ToolSpec | None:
    """A client-run tool as a function that any model can call; None for a tool that only its provider runs."""
    if tool.issuer is None:
        return None
    for start, (description, parameters) in CLIENT_TOOLS.items():
        is_meant = tool.type.startswith(start) if start.endswith("_") else tool.type == start
        if is_meant and tool.name:
            own = tool.parameters or copy.deepcopy(parameters)  # changing a request must not change the next one
            plain = replace(tool, issuer=None, extra=None, form=None, opaque=None)
            kind = tool.type if tool.type in TYPED_CALLS else "function"
            return replace(plain, type=kind, description=tool.description or description, parameters=own)
    return None


def must_fit(kind: str) -> bool:
    """Whether a call of a tool of this type can only hold arguments that fit its parameters."""
    return kind in _SHAPED_CALLS
