"""The arguments that a tool gets, or exactly why it gets none.

Arguments are parsed (an object that was JSON in a string is unwrapped) and validated against the tool's schema minus
the names that the required filter removes. If that fails, they are validated once more without the nulls that strict
mode makes a model write. Nothing else is repaired, and nothing is guessed.

Law: a tool gets only arguments that its schema accepts. Arguments that differ from what the model wrote are marked.
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

_NAMES_PROPERTY: Final = frozenset(("required", "additionalProperties", "unevaluatedProperties", "dependentRequired"))
"""Mismatches whose message names the property: quoting the object around it would add nothing."""

_STEP: Final = re.compile(r"""\.(\w++)|\[(\d++)\]|\[('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")\]""")

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class CheckedArguments(NamedTuple):
    """Arguments that a tool accepts."""

    arguments: dict[str, Any]
    is_changed: bool = False
    """Whether they differ from what the model wrote."""


class ArgumentCheck:
    """Validates the arguments of calls against one tool, whose schema is compiled once."""

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

    def check(self, call: ToolCall) -> CheckedArguments | ToolResult:
        """The arguments that the tool gets, or the result that says why it does not run."""
        if self._is_free_text:
            return self._check_free_text(call)
        written = call.arguments
        try:
            if written is None and call.raw_input is None:
                raise ArgumentsError("expected a JSON object, got nothing", path="$")
            read = arguments.parse(call.raw_input if written is None else written)
        except TruncatedArgumentsError:
            return outcomes.truncated_call(call)
        except InputError as problem:
            return outcomes.invalid_arguments(call, (str(problem),))
        is_changed = read.arguments is not written or _was_double_encoded(call.raw_input)
        return self._validate(call, read.arguments, is_changed=is_changed)

    def check_edited(self, call: ToolCall, edited: object) -> CheckedArguments | ToolResult:
        """The same for arguments that an approval replaced."""
        if not isinstance(edited, dict):
            problem = f"$: expected a JSON object, got {quote(edited)}"
            return outcomes.invalid_arguments(call, (problem,), edited=True)
        try:
            plain = jsontext.clone(edited).value
        except InputError as problem:
            return outcomes.invalid_arguments(call, (str(problem),), edited=True)
        if self._is_free_text and not _is_free_text(plain):
            return outcomes.invalid_arguments(call, (f"$.{FREE_TEXT}: expected one string",), edited=True)
        written = {FREE_TEXT: call.raw_input} if call.arguments is None else call.arguments
        is_changed = _differs(plain, written) or _was_double_encoded(None if self._is_free_text else call.raw_input)
        return self._validate(call, plain, is_changed=is_changed, edited=True)

    def _check_free_text(self, call: ToolCall) -> CheckedArguments | ToolResult:
        """A tool that takes free text gets it as one argument."""
        if call.arguments is None and call.raw_input is not None:
            return CheckedArguments({FREE_TEXT: call.raw_input})
        if call.arguments is not None and _is_free_text(call.arguments):
            return CheckedArguments(call.arguments)
        return outcomes.invalid_arguments(call, (f"$.{FREE_TEXT}: expected one string",))

    def _validate(
        self, call: ToolCall, found: dict[str, Any], *, is_changed: bool, edited: bool = False
    ) -> CheckedArguments | ToolResult:
        if self._fault is not None:
            return outcomes.refusal(call, f"The schema of the tool {quote(call.name)} is broken: {self._fault}.")
        if self._validator is None or self._is_free_text:
            return CheckedArguments(found, is_changed)
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
            problems = [_describe_mismatch(mismatch, found) for mismatch in mismatches]
            return outcomes.invalid_arguments(call, problems, edited=edited)
        return CheckedArguments(found, is_changed)


def _differs(new: dict[str, Any], written: dict[str, Any]) -> bool:
    """Whether two objects differ as JSON: 1, 1.0 and true are three values."""
    return _encode(new) != _encode(jsontext.clone(written).value)


def _was_double_encoded(raw: str | None) -> bool:
    return raw is not None and raw.lstrip()[:1] == '"'


def _is_free_text(found: dict[str, Any]) -> bool:
    return found.keys() == {FREE_TEXT} and isinstance(found[FREE_TEXT], str)


def _describe_mismatch(mismatch: Mismatch, found: dict[str, Any]) -> str:
    """The path, what was expected, and what was found."""
    problem = f"{mismatch.path}: {mismatch.message}"
    if mismatch.keyword in _NAMES_PROPERTY:
        return problem
    got = _describe_value(found, mismatch.path)
    return f"{problem}; got {got}" if got else problem


def _describe_value(found: Any, path: str) -> str:
    """The value at a JSON path, in a few words; empty if the path was cut."""
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
