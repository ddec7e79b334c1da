"""Tools that a provider defines but the client runs: their published parameters, so that any model can call them.

A request names such a tool by a versioned type alone (`bash_20250124`), because the model was trained on it.
Another model needs a description of its arguments. Tools that the provider runs itself are not here.
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

CLIENT_TOOLS: Final[dict[tuple[str, str], tuple[str, Schema]]] = {
    ("anthropic", "bash_"): ("Runs a command in a shell that keeps its state.", _BASH),
    ("anthropic", "text_editor_"): ("Views, creates and edits files.", _EDITOR),
    ("anthropic", "memory_"): ("Keeps notes in files under /memories.", _MEMORY),
}
"""Protocol and start of the type → what the tool does and what it takes (source: the anthropic SDK's types
and the published tool pages)."""


def as_function(tool: ToolSpec) -> ToolSpec | None:
    """A client-run tool as a function that any model can call; None for a tool that only its provider runs."""
    if tool.issuer is None:
        return None
    for (protocol, start), (description, parameters) in CLIENT_TOOLS.items():
        if tool.issuer.provider == protocol and tool.type.startswith(start) and tool.name:
            own = copy.deepcopy(parameters)  # changing a request must not change the next one
            plain = replace(tool, issuer=None, extra=None, form=None, opaque=None)
            return replace(plain, type="function", description=description, parameters=own)
    return None
