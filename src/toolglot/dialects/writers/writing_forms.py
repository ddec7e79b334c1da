"""The building blocks of a dialect's writer: forms of one call, and `Writing`, which puts calls together.

A form takes the name of the tool, its arguments and an id, which most forms ignore. It does not check whether its text
can be read back; `write_calls` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from toolglot.dialects.values.json_text import json_string
from toolglot.jsontext import compact

Arguments = dict[str, Any]
WriteCall = Callable[[str, Arguments, str], str]
"""(name, arguments, id) → text."""

IdStyle = Literal["none", "own", "count", "position", "nine", "kimi"]
"""The id in the text of a call: none, the call's own, its number in the conversation, its position in the turn, nine
letters and digits, or Kimi's."""

_PLACEHOLDERS: Final = re.compile(r"(NAME|ID|JSON|KEY|VALUE|TYPE|STRING)")
_WORD: Final = re.compile(r"[\w\-]+")
_BARE_KEY: Final = re.compile(r"[^\s:=,{}\[\]<\"'](?:[^:=,{}\[\]<\"'\n]*[^\s:=,{}\[\]<\"'])?")


class Writing(NamedTuple):
    """How calls are written in a dialect."""

    forms: tuple[WriteCall, ...]
    """Ways to write one call. `write_calls` takes the first whose text is read back as the same call."""
    begin: str = ""
    between: str = "\n"
    end: str = ""
    ids: IdStyle = "none"
    result: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>")
    """What opens and closes a result."""
    sample: tuple[str, Arguments] = ("tool_name", {"argument": "a text", "other_argument": 3})
    """The example call that the prompt shows."""

    @property
    def has_ids(self) -> bool:
        """Whether the text of a call holds an id that is unique in the conversation."""
        return self.ids not in ("none", "position")


# --- JSON -------------------------------------------------------------------------------------------


def as_object(
    begin: str = "", end: str = "", *, name: str = "name", arguments: str = "arguments", id: str = ""
) -> WriteCall:
    """An object with a name and arguments."""

    def write(tool: str, values: Arguments, call_id: str) -> str:
        fields = {id: call_id} if id else {}
        return begin + compact({**fields, name: tool, arguments: values}) + end

    return write


def as_body(make: Callable[[str, Arguments, str], Any]) -> WriteCall:
    """Whatever JSON a function makes."""

    def write(tool: str, values: Arguments, call_id: str) -> str:
        return compact(make(tool, values, call_id))

    return write


def as_text(template: str) -> WriteCall:
    """A template with `NAME`, `ID` and, for the arguments, `JSON`."""

    def write(tool: str, values: Arguments, call_id: str) -> str:
        return _fill(template, {"NAME": tool, "ID": call_id, "JSON": compact(values)})

    return write


def json_list(begin: str, end: str = "", form: WriteCall | None = None) -> Writing:
    """All calls in one JSON list between two marks. A call is an object with a name and arguments, or of that form."""
    return Writing((form or as_object(),), begin=f"{begin}[", between=", ", end=f"]{end}")


# --- tags -------------------------------------------------------------------------------------------


def as_tags(begin: str, parameter: str, end: str, *, value: Callable[[Any], str] | None = None) -> WriteCall:
    """A tag for the call and one for each argument.

    `begin` and `end` are templates with `NAME` and `ID`; `parameter` is one with `KEY`, `VALUE` and, in dialects that
    have types, `TYPE` or `STRING`.
    """

    def argument(key: str, content: Any) -> str:
        types = {"TYPE": _kind(content), "STRING": "true" if isinstance(content, str) else "false"}
        return _fill(parameter, {"KEY": key, "VALUE": (value or plain)(content), **types})

    def write(tool: str, values: Arguments, call_id: str) -> str:
        inner = "".join(argument(key, each) for key, each in values.items())
        heading = {"NAME": tool, "ID": call_id}
        return _fill(begin, heading) + inner + _fill(end, heading)

    return write


def tag_section(
    begin: str, parameter: str, end: str, *, section: tuple[str, str] = ("", ""), between: str = ""
) -> Writing:
    """Calls as tags in a section. A value goes on a line of its own only if its white space would be lost otherwise."""
    on_lines = parameter.replace("VALUE", "\nVALUE\n")
    return Writing(
        (as_tags(begin, parameter, end), as_tags(begin, on_lines, end)),
        begin=section[0],
        between=between,
        end=section[1],
    )


def invokes(begin: str, end: str, *, prefix: str = "") -> Writing:
    """A section of `<invoke name="ls"><parameter name="p">/</parameter></invoke>`."""
    return tag_section(
        f'<{prefix}invoke name="NAME">',
        f'<{prefix}parameter name="KEY">VALUE</{prefix}parameter>',
        f"</{prefix}invoke>",
        section=(begin, end),
    )


def _fill(template: str, values: dict[str, str]) -> str:
    """Replace the placeholders of a template that have values."""
    return "".join(values.get(part, part) for part in _PLACEHOLDERS.split(template))


def plain(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else compact(value)


def in_cdata(value: Any) -> str:
    return f"<![CDATA[{plain(value)}]]>"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", tuple: "array"}
    return kinds.get(type(value), "object")


def as_command(_tool: str, values: Arguments, _id: str) -> str:
    """A shell command, and nothing else."""
    return f"<tool>{values.get('command', '')}</tool>"


# --- Python -----------------------------------------------------------------------------------------


def as_python(tool: str, values: Arguments, _id: str) -> str:
    """`ls(p="/")`. Arguments are a dictionary if one of their names is not a Python name."""
    named = [f"{key}={python(value)}" for key, value in values.items() if _WORD.fullmatch(key)]
    if len(named) < len(values):
        named = [f"**{python(values)}"]
    return f"{tool}({', '.join(named)})"


def python_list(begin: str = "", end: str = "") -> Writing:
    """`[ls(p="/"), pwd()]` between two marks."""
    return Writing((as_python,), begin=f"{begin}[", between=", ", end=f"]{end}")


def python(value: Any) -> str:
    """A value as a Python literal."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python(str(key))}: {python(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(python, value)) + "]"
    if isinstance(value, str):
        return json_string(value)
    return repr(value) if value is None or isinstance(value, bool) else compact(value)


# --- Gemma ------------------------------------------------------------------------------------------


def as_gemma(begin: str, mark: str, end: str) -> WriteCall:
    """`call:ls{p:<|"|>/<|"|>}`, with marks around strings."""

    def literal(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ",".join(f"{key_of(str(key))}:{literal(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ",".join(map(literal, value)) + "]"
        return f"{mark}{value}{mark}" if isinstance(value, str) else compact(value)

    def key_of(key: str) -> str:
        return key if _BARE_KEY.fullmatch(key) else f"{mark}{key}{mark}"

    def write(tool: str, values: Arguments, _id: str) -> str:
        return f"{begin}call:{tool}{literal(values)}{end}"

    return write
