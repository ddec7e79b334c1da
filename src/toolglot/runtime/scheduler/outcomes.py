"""The result that a model gets for each way in which a call can end.

Law: "never started", "cancelled" and "may have run, outcome unknown" are three different things, and each has its own
text. A result says what is known, in plain words, and what can be done about it. Whatever it quotes is bounded, and it
never contains a traceback.

    success           the tool's own output
    error             the tool reports a failure
    exception         the tool raised
    refusal           not run, because of what the model wrote: arguments, name, too many calls
    denial            not run, because it was not approved
    not_started       not run, for a reason that is not the model's
    cancellation      stopped while it ran, and it ended
    timeout           stopped after its time limit, and it ended
    not_ready         its time limit passed before it could begin
    unknown_outcome   started, and how far it got is unknown
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Text, ToolCall, ToolResult
from toolglot.errors import quote, type_name
from toolglot.history.attempts import CUT_CALL
from toolglot.history.compression import shorten
from toolglot.jsontext import fix_surrogates
from toolglot.runtime.tools.values import Content, ToolError

REASON_CHARACTERS: Final = 2_000
ARGUMENTS_CHARACTERS: Final = 2_000
"""How many characters of the executed arguments a result shows."""
LISTED_PROBLEMS: Final = 10
LISTED_NAMES: Final = 20
COMPARED_NAMES: Final = 500
COMPARED_CHARACTERS: Final = 64
SHOWN_CAUSES: Final = 3

CANCELLED: Final = "Cancelled by the user."


def success(call: ToolCall, content: Content, *, result: Any = None) -> ToolResult:
    """The tool returned."""
    return ToolResult(call.id, content, name=call.name, status="complete", result=result)


def error(call: ToolCall, content: Content, *, result: Any = None) -> ToolResult:
    """The tool ran and failed."""
    return ToolResult(call.id, content, is_error=True, name=call.name, status="error", result=result)


def exception(call: ToolCall, problem: BaseException) -> ToolResult:
    """The tool raised."""
    return error(call, describe_error(problem))


def refusal(call: ToolCall, problem: str) -> ToolResult:
    """The call cannot be run as the model wrote it."""
    return error(call, f"{_bound(problem)} The tool was not run.")


def invalid_arguments(call: ToolCall, problems: Sequence[str], *, edited: bool = False) -> ToolResult:
    """The arguments do not match the schema: each problem with its path, what was expected and what was found."""
    whose = "The arguments that the user edited do" if edited else "The arguments do"
    lines = [f"{whose} not fit the tool {quote(call.name)}. The tool was not run."]
    lines += [f"- {problem}" for problem in problems[:LISTED_PROBLEMS]]
    if len(problems) > LISTED_PROBLEMS:
        lines.append(f"- … and {len(problems) - LISTED_PROBLEMS} more")
    if not edited:
        lines.append("Correct the arguments and call the tool again.")
    return error(call, "\n".join(lines))


def truncated_call(call: ToolCall) -> ToolResult:
    """The call was cut off: it never runs, and its arguments are never guessed."""
    return error(call, f"{CUT_CALL} Write it again, with shorter arguments.")


def unknown_tool(call: ToolCall, names: Sequence[str]) -> ToolResult:
    """No tool has this name. Suggests the nearest names."""
    text = f"There is no tool named {quote(call.name)}; nothing was run."
    near = nearest_names(call.name, names)
    if near:
        return error(call, f"{text} Did you mean {' or '.join(map(quote, near))}?")
    if not names:
        return error(call, f"{text} There are no tools.")
    more = ", …" if len(names) > LISTED_NAMES else ""
    return error(call, f"{text} The tools are: {', '.join(map(quote, names[:LISTED_NAMES]))}{more}.")


def denial(call: ToolCall, reason: str = "") -> ToolResult:
    """The call was not approved."""
    why = f" Reason: {_bound(reason)}" if reason.strip() else ""
    return error(call, f"This call was not allowed, and the tool was not run.{why}")


def not_started(call: ToolCall, reason: str = CANCELLED) -> ToolResult:
    """The tool did not run, for a reason that is not the model's."""
    text = f"{_bound(reason)} The tool was never started: nothing was done.".lstrip()
    return ToolResult(call.id, text, is_error=True, name=call.name, status="cancelled")


def cancellation(call: ToolCall, reason: str = CANCELLED, output: Content = None) -> ToolResult:
    """The tool was stopped while it ran. `output` is what it returned before it ended."""
    text = f"{_bound(reason)} The tool was stopped while it ran; what it had done until then stays done.".lstrip()
    return ToolResult(call.id, _with_output(text, output), is_error=True, name=call.name, status="cancelled")


def timeout(call: ToolCall, seconds: float, output: Content = None) -> ToolResult:
    """The tool ran out of time and has stopped. `output` is what it returned before it ended."""
    return error(call, _with_output(f"The tool did not end within {seconds:g} seconds and was stopped.", output))


def not_ready(call: ToolCall, seconds: float, reason: str) -> ToolResult:
    """The tool ran out of time before it began: what it needs was not ready yet."""
    late = f"{_bound(reason)} after {seconds:g} seconds."
    return error(call, f"{late} The tool was never started: nothing was done. Call it again a little later.")


def unknown_outcome(call: ToolCall, reason: str = "") -> ToolResult:
    """The tool was started, and how far it got is unknown."""
    started = f"{_bound(reason)} The tool was started and may have run, in part or to its end: its outcome is unknown."
    return error(call, f"{started.lstrip()} Find out what it did before you call it again.")


def with_executed_arguments(result: ToolResult, arguments: dict[str, Any]) -> ToolResult:
    """The result with the arguments that the tool really got: recorded, and shown at its start (law 11)."""
    written = shorten(fix_surrogates(msgspec.json.encode(arguments).decode()), ARGUMENTS_CHARACTERS)
    note = f"[The tool ran with other arguments than this call shows: {written}]\n"
    content: Content = (Text(note), *result.content) if isinstance(result.content, tuple) else note + result.text
    return replace(result, content=content, executed_arguments=arguments)


def nearest_names(name: str, names: Sequence[str]) -> list[str]:
    """The names that were probably meant, best first. Case, dashes and server prefixes hardly count."""
    plain: dict[str, str] = {}
    for known in names[:COMPARED_NAMES]:
        plain.setdefault(_normalize(known), known)
    wanted = _normalize(name)
    if not wanted:
        return []
    alike = [known for key, known in plain.items() if key.endswith(wanted) or (key and wanted.endswith(key))]
    near = [plain[key] for key in difflib.get_close_matches(wanted, plain, n=3)]
    return list(dict.fromkeys((*near, *alike)))[:3]


def describe_error(problem: BaseException) -> str:
    """An exception in one line: its type and message. An exception group shows its first members."""
    try:
        return _describe(problem, SHOWN_CAUSES)
    except BaseException:  # noqa: BLE001 - a tool's own exception may raise when it is formatted
        return type_name(problem)


def _describe(problem: BaseException, depth: int) -> str:
    if isinstance(problem, ToolError):
        return _bound(_plain_text(problem.message)) or "The tool did not work."
    if isinstance(problem, BaseExceptionGroup) and depth:
        inner = "; ".join(_describe_member(held, depth) for held in problem.exceptions[:SHOWN_CAUSES])
        more = "; …" if len(problem.exceptions) > SHOWN_CAUSES else ""
        return _bound(inner + more)
    message = _bound(_plain_text(problem))
    name = type_name(problem)
    return f"{name}: {message}" if message else name


def _describe_member(problem: BaseException, depth: int) -> str:
    try:
        return _describe(problem, depth - 1)
    except BaseException:  # noqa: BLE001 - as above; the others can be shown
        return type_name(problem)


def _plain_text(value: object) -> str:
    return str.__str__(str(value))


def _with_output(text: str, output: Content) -> Content:
    if not output:
        return text
    head = f"{text} Its output:\n"
    return head + output if isinstance(output, str) else (Text(head), *output)


def _normalize(name: str) -> str:
    return "".join(char for char in name[-COMPARED_CHARACTERS:].lower() if char.isalnum())


def _bound(text: str) -> str:
    return shorten(fix_surrogates(text), REASON_CHARACTERS).strip()
