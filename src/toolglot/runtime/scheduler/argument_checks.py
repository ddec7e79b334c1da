"""The arguments of a call as its tool gets them, or precisely why it does not get them.

They are read (a whole object that was JSON text in a string is unwrapped), held against the tool's schema less the
names that the required filter takes out, and, where that fails, held against it once more without the nulls that
strict mode makes a model write. Nothing else is mended, and nothing is guessed.

Law: a tool gets only arguments that its schema accepts. What differs from what the model wrote is known as such.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final, NamedTuple

import msgspec

from toolglot import arguments, jsontext
from toolglot.arguments import Mismatch, Validator
from toolglot.conversation import FREE_TEXT, ToolCall, ToolResult
from toolglot.errors import ArgumentsError, InputError, TruncatedArgumentsError, quote
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.tools.values import Tool
from toolglot.schema import filter_required, without_introduced_nulls

_ABOUT_THE_WHOLE: Final = frozenset(("required", "additionalProperties", "unevaluatedProperties", "dependentRequired"))
"""Mismatches that name a property themselves: the object around it says nothing more."""

_STEP: Final = re.compile(r"""\.(\w++)|\[(\d++)\]|\[('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")\]""")

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Checked(NamedTuple):
    """Arguments that a tool can be given."""

    arguments: dict[str, Any]
    is_changed: bool = False
    """They are not what the model wrote."""


class ArgumentCheck:
    """Holds the arguments of calls against one tool; its schema is read once."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._original = tool.spec.parameters
        self._is_free_text = tool.spec.type == "custom"
        self._validator: Validator | None = None
        self._fault: InputError | None = None
        if self._original is None:
            return
        try:
            self._validator = Validator(filter_required(self._original).schema)
        except InputError as fault:
            self._fault = fault

    def check(self, call: ToolCall) -> Checked | ToolResult:
        """The arguments that a call's tool gets, or the result that says why it is not run."""
        if self._is_free_text:
            return self._free_text(call)
        written = call.arguments
        try:
            if written is None and call.raw_input is None:
                raise ArgumentsError("expected a JSON object, got nothing", path="$")
            read = arguments.parse(call.raw_input if written is None else written)
        except TruncatedArgumentsError:
            return outcomes.truncated(call)
        except InputError as problem:
            return outcomes.invalid_arguments(call, (str(problem),))
        is_changed = read.arguments is not written or _was_text_in_text(call.raw_input)
        return self._held(call, read.arguments, is_changed=is_changed)

    def check_edited(self, call: ToolCall, edited: object) -> Checked | ToolResult:
        """The same for arguments that somebody put in the place of the model's."""
        if not isinstance(edited, dict):
            problem = f"$: expected a JSON object, got {quote(edited)}"
            return outcomes.invalid_arguments(call, (problem,), edited=True)
        try:
            plain = jsontext.clone(edited).value
        except InputError as problem:
            return outcomes.invalid_arguments(call, (str(problem),), edited=True)
        if self._is_free_text and not _is_free_text(plain):
            return outcomes.invalid_arguments(call, (f"$.{FREE_TEXT}: expected one text",), edited=True)
        written = {FREE_TEXT: call.raw_input} if call.arguments is None else call.arguments
        is_changed = _differs(plain, written) or _was_text_in_text(None if self._is_free_text else call.raw_input)
        return self._held(call, plain, is_changed=is_changed, edited=True)

    def _free_text(self, call: ToolCall) -> Checked | ToolResult:
        """A tool that takes a text gets it under the one name that stands for it."""
        if call.arguments is None and call.raw_input is not None:
            return Checked({FREE_TEXT: call.raw_input})
        if call.arguments is not None and _is_free_text(call.arguments):
            return Checked(call.arguments)
        return outcomes.invalid_arguments(call, (f"$.{FREE_TEXT}: expected one text, got no such thing",))

    def _held(
        self, call: ToolCall, found: dict[str, Any], *, is_changed: bool, edited: bool = False
    ) -> Checked | ToolResult:
        if self._fault is not None:
            return outcomes.refused(call, f"The schema of the tool {quote(call.name)} is broken: {self._fault}.")
        if self._validator is None or self._is_free_text:
            return Checked(found, is_changed)
        try:
            mismatches = self._validator.mismatches(found)
            if mismatches:
                without = without_introduced_nulls(found, self._original)
                if without is not found:
                    found, is_changed = without, True
                    mismatches = self._validator.mismatches(found)
        except InputError as problem:
            return outcomes.invalid_arguments(call, (str(problem),), edited=edited)
        if mismatches:
            told = [_told(mismatch, found) for mismatch in mismatches]
            return outcomes.invalid_arguments(call, told, edited=edited)
        return Checked(found, is_changed)


def _differs(new: dict[str, Any], written: dict[str, Any]) -> bool:
    """Whether two objects are written differently; 1, 1.0 and true are three things."""
    return _encode(new) != _encode(jsontext.clone(written).value)


def _was_text_in_text(raw: str | None) -> bool:
    return raw is not None and raw.lstrip()[:1] == '"'


def _is_free_text(found: dict[str, Any]) -> bool:
    return found.keys() == {FREE_TEXT} and isinstance(found[FREE_TEXT], str)


def _told(mismatch: Mismatch, found: dict[str, Any]) -> str:
    """Where, what was expected, and what was there."""
    place = f"{mismatch.path}: {mismatch.message}"
    if mismatch.keyword in _ABOUT_THE_WHOLE:
        return place
    got = _got(found, mismatch.path)
    return f"{place}; got {got}" if got else place


def _got(found: Any, path: str) -> str:
    """What stands at a JSON path, in a few words; nothing where the path was too long to be told whole."""
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return ""
        key: Any = step[1] or (int(step[2]) if step[2] else ast.literal_eval(step[3]))
        try:
            found = found[key]
        except (LookupError, TypeError):
            return ""
        at = step.end()
    if isinstance(found, dict):
        return f"an object of {len(found)}"
    if isinstance(found, list):
        return f"an array of {len(found)}"
    if isinstance(found, str):
        return f"the string {quote(found)}"
    if found is None or isinstance(found, bool):
        return {None: "null", True: "true", False: "false"}[found]
    return f"the number {quote(found)}"
