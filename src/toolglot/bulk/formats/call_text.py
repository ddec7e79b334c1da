"""Calls that datasets write as text: JSON, JSON in Python's quotes, and Python-like calls. Never evaluated.

    read_calls_json('{"name": "ls", "arguments": {"path": "."}}')     # one call, or a list of them
    read_python_calls('[List Files(path="."), Other()]')              # names may have spaces and slashes

The grammar of the second: `[` call (`,` call)* `]`; call = name `(` key `=` literal (`,` …)* `)`. Literals are those of
Python and JSON, read by `dialects/values/python_text.py`.

Law: linear, bounded in depth; raises only `InputError`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from toolglot import jsontext
from toolglot.conversation import ToolCall
from toolglot.dialects.scanner import Scanner
from toolglot.dialects.values.python_text import literal, pass_literal
from toolglot.errors import InputError, quote
from toolglot.protocols.fields.argument_text import read_arguments

MAX_NAME: Final = 512
MAX_CALLS: Final = 10_000
_NAME: Final = re.compile(r"[^()\[\]{}=\"',]+")
_KEY: Final = re.compile(r"[\w.\-$]{1,512}")
_SINGLE_QUOTED: Final = re.compile(r'"arguments"\s*:\s*\'')


class WrittenCall(NamedTuple):
    """A call as it was read from text."""

    name: str
    arguments: dict[str, Any] | None
    raw: str | None = None
    """The text of the arguments, where they are not an object."""

    def as_call(self, id: str = "") -> ToolCall:
        return ToolCall(id, self.name, self.arguments, raw_input=self.raw)


def read_calls_json(text: str, path: str) -> list[WrittenCall]:
    """The calls in a text: an object with `name` and `arguments`, or a list of them."""
    value = parse_value(text, path)
    return calls_of(value, path)


def calls_of(value: Any, path: str) -> list[WrittenCall]:
    """The same for a parsed value."""
    listed = value if isinstance(value, list) else [value]
    return [call_of(entry, path) for entry in listed]


def call_of(entry: Any, path: str) -> WrittenCall:
    """One call: `{"name", "arguments"}`, or one with a `function` around it. `parameters` is read as `arguments`."""
    if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
        entry = entry["function"]
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip():
        raise InputError("expected a call with a name", path=path)
    written = next((entry[key] for key in ("arguments", "parameters") if key in entry), None)
    return WrittenCall(name, *arguments_of(written, path))


def arguments_of(written: Any, path: str) -> tuple[dict[str, Any] | None, str | None]:
    """Arguments as an object; those that are no object as their text."""
    if written is None:
        return {}, None
    if isinstance(written, dict):
        return written, None
    if isinstance(written, str):
        value, _, _ = read_arguments(written)
        if value is None:
            found = literal(written) if len(written) <= 1_000_000 else None
            value = found[0] if found is not None and isinstance(found[0], dict) else None
        return value, None if value is not None else written
    raise InputError(f"expected arguments, got {quote(written)}", path=path)


def parse_value(text: str, path: str) -> Any:
    """JSON, JSON with its arguments in Python's quotes, or a Python literal."""
    try:
        return jsontext.parse_plain(text.encode(errors="replace"), path=path)
    except (ValueError, RecursionError):
        pass
    quoted = _single_quoted(text)
    if quoted is not None:
        return quoted
    found = literal(text) if len(text) <= 1_000_000 else None
    if found is None:
        raise InputError(f"neither JSON nor a literal of Python: {quote(text.strip()[:60])}", path=path)
    return found[0]


def _single_quoted(text: str) -> Any:
    """`{"name": "f", "arguments": '{"a": "it's"}'}`: the arguments end with the last quote of the text."""
    found = _SINGLE_QUOTED.search(text)
    end = text.rfind("'")
    if found is None or end <= found.end():
        return None
    inner = text[found.end() : end]
    for written in (inner, inner.replace("\\'", "'")):
        try:
            arguments = json.loads(written)
            head = json.loads(text[: found.end() - 1] + "null" + text[end + 1 :])
        except (ValueError, RecursionError):
            continue
        if isinstance(head, dict):
            return {**head, "arguments": arguments}
    return None


def looks_like_python_calls(text: str) -> bool:
    """Whether a text is a list of Python-like calls, as far as its first call shows."""
    head = text.lstrip()
    if not head.startswith("["):
        return False
    name = _NAME.match(head, 1, min(len(head), MAX_NAME + 1))
    return (
        name is not None and bool(name[0].strip()) and head.startswith("(", name.end()) and head.rstrip().endswith("]")
    )


def read_python_calls(text: str, path: str) -> list[WrittenCall]:
    """Calls in a list, or one call, in the form of Python."""
    scanner = Scanner()
    scanner.push(text.strip() + "\n")
    scanner.is_over = True
    is_list = scanner.text.startswith("[")
    scanner.at = int(is_list)
    calls: list[WrittenCall] = []
    while True:
        if _next(scanner) == "]" and is_list:
            break
        calls.append(_python_call(scanner, path))
        mark = _next(scanner)
        if mark == "," and len(calls) < MAX_CALLS:
            scanner.at += 1
            continue
        if mark == ("]" if is_list else ""):
            break
        raise _unreadable(scanner, path)
    scanner.at += is_list
    if _next(scanner):
        raise _unreadable(scanner, path)
    return calls


def _python_call(scanner: Scanner, path: str) -> WrittenCall:
    found = _NAME.match(scanner.text, scanner.at, min(len(scanner.text), scanner.at + MAX_NAME))
    name = found[0].strip() if found is not None else ""
    if found is None or not name or not scanner.text.startswith("(", found.end()):
        raise _unreadable(scanner, path)
    scanner.at = found.end() + 1
    arguments: dict[str, Any] = {}
    while (mark := _next(scanner)) != ")":
        if mark == "," and arguments:
            scanner.at += 1
            if _next(scanner) == ")":
                break
        elif arguments:
            raise _unreadable(scanner, path)
        key = _KEY.match(scanner.text, scanner.at)
        if key is None:
            raise _unreadable(scanner, path)
        scanner.at = key.end()
        if _next(scanner) != "=":
            raise _unreadable(scanner, path)
        scanner.at += 1
        arguments[key[0]] = _literal(scanner, path)
    scanner.at += 1
    return WrittenCall(name, arguments)


def _literal(scanner: Scanner, path: str) -> Any:
    pieces: list[str] = []
    try:
        next(pass_literal(scanner, pieces.append))
    except StopIteration as done:
        if done.value == "whole":
            try:
                return json.loads("".join(pieces))
            except (ValueError, RecursionError):
                pass
    raise _unreadable(scanner, path)


def _next(scanner: Scanner) -> str:
    text, at = scanner.text, scanner.at
    while at < len(text) and text[at].isspace():
        at += 1
    scanner.at = at
    return text[at] if at < len(text) else ""


def _unreadable(scanner: Scanner, path: str) -> InputError:
    near = scanner.text[scanner.at : scanner.at + 30]
    return InputError(f"not a call in the form of Python, near {quote(near)}", path=path)
