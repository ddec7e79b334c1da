"""`extra` holds unknown fields of a body, under their own names. A codec keeps nothing of its own there."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolglot
from toolglot.conversation import Value
from toolglot.protocols import base

SOURCE = Path(toolglot.__file__).parent
RECORDINGS = Path(__file__).parent.parent / "recordings"
VERSION_1 = SOURCE / "conversation" / "version_1.py"
"""The one file that knows the keys of codecs that version 1 of the serialised form had in `extra`."""
KEY = re.compile(r"~~?[A-Za-z_]\w*")
MARK = re.compile(r"~~?")
CORE = ("conversation", "history", "protocols", "render", "translate", "upstream")
"""The packages that read or write `extra`."""


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a file that are not docstrings, and how its f-strings begin."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if path.is_dir()))
def test_no_code_has_keys_of_its_own_that_begin_with_a_tilde(package: str) -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text!r}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        if path != VERSION_1
        for line, text in _strings(path)
        if KEY.fullmatch(text) or (package in CORE and MARK.fullmatch(text))
    ]
    assert not found, "what a codec must remember is a struct of its form.py, and what others ask is a canonical field"


def test_the_guard_finds_such_keys() -> None:
    texts = [text for _, text in _strings(VERSION_1)]
    assert any(MARK.fullmatch(text) for text in texts)
    assert KEY.fullmatch("~choice")
    assert KEY.fullmatch("~~odd")


def test_only_the_folder_of_a_protocol_reads_its_forms() -> None:
    folders = {name: SOURCE / "protocols" / name for name in base.names()}
    found = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in sorted(SOURCE.rglob("*.py"))
        for module in _imported(path)
        if module.endswith(".form") and not path.is_relative_to(folders[module.split(".")[-2]])
    ]
    assert not found, "others ask `Form`, or read a canonical field"


def _imported(path: Path) -> list[str]:
    return [
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    ]


# --- what is read -----------------------------------------------------------------------------------


def _recorded(suffix: str) -> list[Any]:
    return [
        pytest.param(protocol, path, id=path.name)
        for protocol in base.names()
        for path in sorted((RECORDINGS / protocol).glob(f"*.{suffix}.json"))
    ]


def _keys(value: Any) -> set[str]:
    """The names of all fields of a body, and what Gemini calls those that are written with underscores."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if not isinstance(value, dict):
        return set()
    camel = {re.sub(r"(?<=[a-z])_([a-z])", lambda found: found[1].upper(), name) for name in value}
    return camel.union(value, *map(_keys, value.values()))


def _extra_keys(value: Any) -> set[str]:
    """The names of the fields in `extra` of a value and of all that it holds."""
    if isinstance(value, tuple):
        return set().union(*map(_extra_keys, value))
    if not isinstance(value, Value):
        return set()
    found = {name for fields in (getattr(value, "extra", None) or {}).values() for name in fields}
    return found.union(*[_extra_keys(getattr(value, field)) for field in value.__struct_fields__])


@pytest.mark.parametrize(("protocol", "path"), _recorded("request"))
def test_a_request_leaves_fields_of_its_body_over_and_nothing_else(protocol: str, path: Path) -> None:
    body = json.loads(path.read_text())
    assert _extra_keys(base.codec(protocol).request.decode(body)) <= _keys(body)


@pytest.mark.parametrize(("protocol", "path"), _recorded("reply"))
def test_a_reply_leaves_fields_of_its_body_over_and_nothing_else(protocol: str, path: Path) -> None:
    body = json.loads(path.read_text())
    assert _extra_keys(base.codec(protocol).reply.decode(body)) <= _keys(body)
