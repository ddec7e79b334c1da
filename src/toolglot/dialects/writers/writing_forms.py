"""The ways in which a call becomes text: JSON, a name and JSON, tags, Python, and that of Gemma.

A form takes the name of the tool, its arguments and an id, which most do not write. Whether what it wrote can be read
is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from toolglot.dialects.values.json_text import quoted
from toolglot.jsontext import compact

Arguments = dict[str, Any]
WriteCall = Callable[[str, Arguments, str], str]
"""(name, arguments, id) → text."""

IdStyle = Literal["none", "own", "count", "place", "nine", "kimi"]
"""Which id stands in the text of a call: none, the call's own, its number in the conversation, its place in the turn,
nine letters and digits, or Kimi's."""

_PLACES: Final = re.compile(r"(NAME|ID|JSON|KEY|VALUE|TYPE|STRING)")
_WORD: Final = re.compile(r"[\w\-]+")
_BARE_KEY: Final = re.compile(r"[^\s:=,{}\[\]<\"'](?:[^:=,{}\[\]<\"'\n]*[^\s:=,{}\[\]<\"'])?")


class Writing(NamedTuple):
    """How calls are written in a dialect."""

    forms: tuple[WriteCall, ...]
    """Ways to write a call. The first one that is read back as it was meant is taken."""
    begin: str = ""
    between: str = "\n"
    end: str = ""
    ids: IdStyle = "none"
    result: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>")
    """What stands around a result."""
    sample: tuple[str, Arguments] = ("tool_name", {"argument": "a text", "other_argument": 3})
    """A call to show how calls look."""

    @property
    def has_ids(self) -> bool:
        """Whether the text of a call says an id that no other call of the conversation has."""
        return self.ids not in ("none", "place")


# --- JSON -------------------------------------------------------------------------------------------


def as_object(
    begin: str = "", end: str = "", *, name: str = "name", arguments: str = "arguments", id: str = ""
) -> WriteCall:
    """An object with a name and arguments."""

    def write(called: str, given: Arguments, own: str) -> str:
        fields = {id: own} if id else {}
        return begin + compact({**fields, name: called, arguments: given}) + end

    return write


def as_body(make: Callable[[str, Arguments, str], Any]) -> WriteCall:
    """Whatever JSON a function makes."""

    def write(called: str, given: Arguments, own: str) -> str:
        return compact(make(called, given, own))

    return write


def as_text(template: str) -> WriteCall:
    """A text with `NAME`, `ID` and `JSON` in it, which is what the arguments are."""

    def write(called: str, given: Arguments, own: str) -> str:
        return _filled(template, {"NAME": called, "ID": own, "JSON": compact(given)})

    return write


# --- tags -------------------------------------------------------------------------------------------


def as_tags(begin: str, parameter: str, end: str, *, value: Callable[[Any], str] | None = None) -> WriteCall:
    """A tag for the call and one for each argument.

    `begin` and `end` hold `NAME` and `ID`; `parameter` holds `KEY`, `VALUE` and, where a dialect says so, `TYPE` or
    `STRING`.
    """

    def argument(key: str, given: Any) -> str:
        said = {"TYPE": _kind(given), "STRING": "true" if isinstance(given, str) else "false"}
        return _filled(parameter, {"KEY": key, "VALUE": (value or plain)(given), **said})

    def write(called: str, given: Arguments, own: str) -> str:
        inner = "".join(argument(key, each) for key, each in given.items())
        said = {"NAME": called, "ID": own}
        return _filled(begin, said) + inner + _filled(end, said)

    return write


def _filled(template: str, values: dict[str, str]) -> str:
    """The template with the words that have values replaced by them."""
    return "".join(values.get(part, part) for part in _PLACES.split(template))


def plain(given: Any) -> str:
    """A string as it is, all else as JSON."""
    return given if isinstance(given, str) else compact(given)


def in_cdata(given: Any) -> str:
    return f"<![CDATA[{plain(given)}]]>"


def _kind(given: Any) -> str:
    if given is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", tuple: "array"}
    return kinds.get(type(given), "object")


def as_command(_called: str, given: Arguments, _own: str) -> str:
    """A shell command, and nothing else."""
    return f"<tool>{given.get('command', '')}</tool>"


# --- Python -----------------------------------------------------------------------------------------


def as_python(called: str, given: Arguments, _own: str) -> str:
    """`ls(p="/")`. Names that Python does not have stand in a dictionary."""
    named = [f"{key}={python(value)}" for key, value in given.items() if _WORD.fullmatch(key)]
    others = {key: value for key, value in given.items() if not _WORD.fullmatch(key)}
    if others:
        named = [f"**{python(given)}"]
    return f"{called}({', '.join(named)})"


def python(value: Any) -> str:
    """A value as a literal of Python."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python(str(key))}: {python(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(python, value)) + "]"
    if isinstance(value, str):
        return quoted(value)
    return repr(value) if value is None or isinstance(value, bool) else compact(value)


# --- Gemma ------------------------------------------------------------------------------------------


def as_gemma(begin: str, mark: str, end: str) -> WriteCall:
    """`call:ls{p:<|"|>/<|"|>}`, with strings between marks."""

    def literal(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ",".join(f"{key_of(str(key))}:{literal(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ",".join(map(literal, value)) + "]"
        return f"{mark}{value}{mark}" if isinstance(value, str) else compact(value)

    def key_of(key: str) -> str:
        return key if _BARE_KEY.fullmatch(key) else f"{mark}{key}{mark}"

    def write(called: str, given: Arguments, _own: str) -> str:
        return f"{begin}call:{called}{literal(given)}{end}"

    return write
