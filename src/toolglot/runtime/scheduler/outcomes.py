"""What a model is told of a call: the result of every way in which one can end.

Law: "never started", "cancelled" and "may have run, outcome unknown" are three different things and are told in
three different ways. A result says what is known, in plain words, and what to do about it where something can be done.
Whatever it quotes is bounded, and no traceback is part of it.

    success           the tool's own output
    error             the tool raised
    refused           it was not run, because of what the model wrote: arguments, name, too many calls
    denied            it was not run, because somebody did not allow it
    never_started     it was not run, because of something that is not the model's
    cancelled         it was stopped while it ran, and it ended
    timed_out         it ran out of time, and it ended
    not_ready         it ran out of time before it began
    outcome_unknown   it was started, and nobody knows how far it came
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
from toolglot.jsontext import mend_text
from toolglot.runtime.tools.values import Content, ToolError

REASON_CHARACTERS: Final = 2_000
ARGUMENTS_CHARACTERS: Final = 2_000
"""How much of the arguments that a tool really got is told."""
LISTED_PROBLEMS: Final = 10
LISTED_NAMES: Final = 20
COMPARED_NAMES: Final = 500
COMPARED_CHARACTERS: Final = 64
SHOWN_CAUSES: Final = 3

CANCELLED: Final = "Cancelled by the user."


def success(call: ToolCall, content: Content, *, result: Any = None) -> ToolResult:
    """What the tool gave back."""
    return ToolResult(call.id, content, name=call.name, status="complete", result=result)


def error(call: ToolCall, content: Content, *, result: Any = None) -> ToolResult:
    """The tool ran and says, or shows, that it did not work."""
    return ToolResult(call.id, content, is_error=True, name=call.name, status="error", result=result)


def raised(call: ToolCall, problem: BaseException) -> ToolResult:
    """The tool raised."""
    return error(call, described(problem))


def refused(call: ToolCall, problem: str) -> ToolResult:
    """The call cannot be run as the model wrote it."""
    return error(call, f"{_bounded(problem)} The tool was not run.")


def invalid_arguments(call: ToolCall, problems: Sequence[str], *, edited: bool = False) -> ToolResult:
    """The arguments are not what the tool takes: every problem with its place, what was expected and what was there."""
    whose = "The arguments that the user put in their place do" if edited else "The arguments do"
    lines = [f"{whose} not fit the tool {quote(call.name)}. The tool was not run."]
    lines += [f"- {problem}" for problem in problems[:LISTED_PROBLEMS]]
    if len(problems) > LISTED_PROBLEMS:
        lines.append(f"- … and {len(problems) - LISTED_PROBLEMS} more")
    if not edited:
        lines.append("Correct the arguments and call the tool again.")
    return error(call, "\n".join(lines))


def truncated(call: ToolCall) -> ToolResult:
    """The call was cut off: it is never run, and never completed by a guess."""
    return error(call, f"{CUT_CALL} Write it again, with shorter arguments.")


def unknown_tool(call: ToolCall, names: Sequence[str]) -> ToolResult:
    """No tool has this name; the nearest ones do."""
    text = f"There is no tool named {quote(call.name)}; nothing was run."
    near = nearest(call.name, names)
    if near:
        return error(call, f"{text} Did you mean {' or '.join(map(quote, near))}?")
    if not names:
        return error(call, f"{text} There are no tools.")
    more = ", …" if len(names) > LISTED_NAMES else ""
    return error(call, f"{text} The tools are: {', '.join(map(quote, names[:LISTED_NAMES]))}{more}.")


def denied(call: ToolCall, reason: str = "") -> ToolResult:
    """Somebody was asked and did not allow it."""
    why = f" Reason: {_bounded(reason)}" if reason.strip() else ""
    return error(call, f"This call was not allowed, and the tool was not run.{why}")


def never_started(call: ToolCall, reason: str = CANCELLED) -> ToolResult:
    """It was not run, for a reason that is not the model's."""
    text = f"{_bounded(reason)} The tool was never started: nothing was done.".lstrip()
    return ToolResult(call.id, text, is_error=True, name=call.name, status="cancelled")


def cancelled(call: ToolCall, reason: str = CANCELLED, output: Content = None) -> ToolResult:
    """It was stopped while it ran; `output` is what it gave before it ended."""
    text = f"{_bounded(reason)} The tool was stopped while it ran; what it had done until then stays done.".lstrip()
    return ToolResult(call.id, _with_output(text, output), is_error=True, name=call.name, status="cancelled")


def timed_out(call: ToolCall, seconds: float, output: Content = None) -> ToolResult:
    """It ran out of time and has stopped; `output` is what it gave before it ended."""
    return error(call, _with_output(f"The tool did not end within {seconds:g} seconds and was stopped.", output))


def not_ready(call: ToolCall, seconds: float, reason: str) -> ToolResult:
    """It ran out of time before it began: what it needs was not there yet."""
    late = f"{_bounded(reason)} after {seconds:g} seconds."
    return error(call, f"{late} The tool was never started: nothing was done. Call it again a little later.")


def outcome_unknown(call: ToolCall, reason: str = "") -> ToolResult:
    """It was started, and nobody knows how far it came."""
    started = (
        f"{_bounded(reason)} The tool was started and may have run, in part or to its end: its outcome is unknown."
    )
    return error(call, f"{started.lstrip()} Find out what it did before you call it again.")


def with_executed(result: ToolResult, arguments: dict[str, Any]) -> ToolResult:
    """The result, with the arguments that the tool really got: recorded, and told at its head (law 11)."""
    written = shorten(mend_text(msgspec.json.encode(arguments).decode()), ARGUMENTS_CHARACTERS)
    note = f"[The tool was given other arguments than this call shows: {written}]\n"
    content: Content = (Text(note), *result.content) if isinstance(result.content, tuple) else note + result.text
    return replace(result, content=content, executed_arguments=arguments)


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """The names that one was probably meant to be, best first; case, dashes and prefixes of servers count little."""
    plain: dict[str, str] = {}
    for known in names[:COMPARED_NAMES]:
        plain.setdefault(_plain(known), known)
    wanted = _plain(name)
    if not wanted:
        return []
    alike = [known for key, known in plain.items() if key.endswith(wanted) or (key and wanted.endswith(key))]
    near = [plain[key] for key in difflib.get_close_matches(wanted, plain, n=3)]
    return list(dict.fromkeys((*near, *alike)))[:3]


def described(problem: BaseException) -> str:
    """An exception in one line: its type and what it says. One that holds others tells the first of them too."""
    try:
        return _described(problem, SHOWN_CAUSES)
    except BaseException:  # noqa: BLE001 - an exception of a tool's own may not even be able to say what it is
        return type_name(problem)


def _described(problem: BaseException, depth: int) -> str:
    if isinstance(problem, ToolError):
        return _bounded(_text(problem.message)) or "The tool did not work."
    if isinstance(problem, BaseExceptionGroup) and depth:
        inner = "; ".join(_one_of(held, depth) for held in problem.exceptions[:SHOWN_CAUSES])
        more = "; …" if len(problem.exceptions) > SHOWN_CAUSES else ""
        return _bounded(inner + more)
    said = _bounded(_text(problem))
    name = type_name(problem)
    return f"{name}: {said}" if said else name


def _one_of(problem: BaseException, depth: int) -> str:
    try:
        return _described(problem, depth - 1)
    except BaseException:  # noqa: BLE001 - as above; the others can say it
        return type_name(problem)


def _text(value: object) -> str:
    return str.__str__(str(value))


def _with_output(text: str, output: Content) -> Content:
    if not output:
        return text
    head = f"{text} Its output:\n"
    return head + output if isinstance(output, str) else (Text(head), *output)


def _plain(name: str) -> str:
    return "".join(char for char in name[-COMPARED_CHARACTERS:].lower() if char.isalnum())


def _bounded(text: str) -> str:
    return shorten(mend_text(text), REASON_CHARACTERS).strip()
