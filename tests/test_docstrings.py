"""`help()` of everything public says what each parameter means."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from types import ModuleType
from typing import Any

import pytest

import toolglot

FUNCTIONS = [name for name in toolglot.__all__ if inspect.isfunction(getattr(toolglot, name))]
CLASSES = [
    name
    for name in toolglot.__all__
    if inspect.isclass(getattr(toolglot, name))
    if name != "ToolglotError"
    and not getattr(getattr(toolglot, name), "_is_protocol", False)  # neither is made by users
]


def undescribed(public: Any, text: str) -> list[str]:
    """The parameters that a text does not mention."""
    names = [name for name in inspect.signature(public).parameters if not name.startswith("_")]
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


@cache
def parsed(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def fields_with_a_docstring(public: type) -> set[str]:
    """The fields of a value that a string right below them describes, which editors show."""
    module = inspect.getmodule(public)
    assert module is not None
    found = next(
        node for node in parsed(module).body if isinstance(node, ast.ClassDef) and node.name == public.__name__
    )
    return {
        field.target.id
        for field, below in zip(found.body, found.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_of_a_public_function_describes_its_parameters(name: str) -> None:
    function = getattr(toolglot, name)
    assert undescribed(function, inspect.getdoc(function) or "") == []


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstrings_of_a_public_class_describe_its_parameters(name: str) -> None:
    public = getattr(toolglot, name)
    text = f"{inspect.getdoc(public)}\n{inspect.getdoc(public.__init__)}"
    assert {*undescribed(public, text)} - fields_with_a_docstring(public) == set()


def test_there_are_functions_and_classes_to_look_at() -> None:
    assert {"parse_text", "convert", "tool"} <= {*FUNCTIONS}
    assert {"Session", "History", "ToolCall", "InputError"} <= {*CLASSES}
