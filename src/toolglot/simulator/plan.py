"""What the model is going to say, before it is written in a provider's own form.

`plan` joins a rule's reply with the default script: that calls the first tool whose schema it can satisfy, unless
results are there already, and then answers with a text that quotes them. A choice that the request forces holds.
A script may tell it to call only tools that the user speaks of.
"""

from __future__ import annotations

import re
from itertools import cycle, islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import StopReason, ToolSpec, Usage
from toolglot.jsontext import compact
from toolglot.simulator.ask import Ask
from toolglot.simulator.sample_arguments import sample, sample_value
from toolglot.simulator.script import CallSpec, ReplySpec

QUOTED: Final = 2_000
"""Characters of a result that an answer quotes."""
_CHARACTERS_A_TOKEN: Final = 4
_FREE_TEXT: Final = "simulated input"


class PlannedCall(Struct, frozen=True):
    """A call that is going to be made."""

    name: str
    arguments: dict[str, Any] | None
    text: str
    """The arguments as JSON text, or whatever stands for it; of a free-text tool, its text."""
    is_custom: bool = False
    namespace: str | None = None

    @property
    def input(self) -> dict[str, Any]:
        return self.arguments if self.arguments is not None else {}


class Plan(Struct, frozen=True, kw_only=True):
    """An answer without the form of a protocol."""

    text: str = ""
    thinking: str = ""
    calls: tuple[PlannedCall, ...] = ()
    stop: StopReason = "stop"
    usage: Usage = Usage()


def plan(
    ask: Ask, reply: ReplySpec | None, *, calls: int | None = None, unasked: bool = True, preface: str = ""
) -> Plan:
    """What is answered: as a rule says, else as the default script does; `calls` orders so many at once."""
    if reply is None:
        planned = _default(ask, 1 if calls is None else calls, unasked=unasked, preface=preface)
        spoken = None
    else:
        wanted = reply.calls if calls is None else calls
        made = _made_calls(ask, wanted) if isinstance(wanted, int) else [_call(ask, spec) for spec in wanted]
        planned = Plan(text=reply.text or "", calls=tuple(made))
        spoken = reply.thinking
    thinking = _thinking(planned) if spoken is None and ask.thinks else spoken or ""
    said = replace(planned, thinking=thinking if ask.profile.reasoning.carrier != "none" else "")
    stop: StopReason = "tool_calls" if said.calls else "stop"
    if reply is None:
        return replace(said, stop=stop, usage=usage(ask, said))
    return replace(said, stop=reply.stop or stop, usage=reply.usage or usage(ask, said))


def _thinking(planned: Plan) -> str:
    if planned.calls:
        return f"To answer I need {', '.join(dict.fromkeys(call.name for call in planned.calls))}."
    return "I know enough to answer."


# --- the default script -----------------------------------------------------------------------------


def _default(ask: Ask, count: int, *, unasked: bool, preface: str) -> Plan:
    choice = ask.conversation.options.tool_choice
    mode = choice.mode if choice is not None else "auto"
    is_forced = mode in ("required", "named")
    if mode != "none" and count and (is_forced or not ask.results):
        calls = _made_calls(ask, count, only_spoken_of=not (unasked or is_forced))
        if calls:
            return Plan(calls=tuple(calls))
    is_words = ask.conversation.options.output is None or ask.conversation.options.output.kind == "text"
    return Plan(text=(preface if is_words else "") + _answer(ask))


_COMMON: Final = frozenset(
    (
        *("apply", "bash", "call", "code", "command", "create", "delete", "edit", "exec", "execute", "fetch", "file"),
        *("files", "find", "from", "into", "list", "make", "open", "plan", "read", "replace", "save", "search", "send"),
        *("shell", "task", "text", "todo", "tool", "tools", "update", "user", "using", "view", "wait", "with", "write"),
    )
)
"""Words of tools' names that people say without meaning a tool."""


def _is_spoken_of(tool: ToolSpec, said: str) -> bool:
    """Whether the user's words are about what a tool is for, as far as its name tells, or hold the name itself."""
    if ("_" in tool.name or "-" in tool.name) and tool.name in re.split(r"[^A-Za-z0-9_-]+", said):
        return True
    words = {word for word in re.split(r"[^a-z]+", _CASES.sub(" ", tool.name).lower()) if len(word) > 3}
    return bool((words - _COMMON) & set(re.split(r"[^a-z]+", said.lower())))


_CASES: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _answer(ask: Ask) -> str:
    output = ask.conversation.options.output
    if output is not None and output.kind == "json_schema":
        return compact(sample_value(_lowered(output.schema or {})))
    quoted = [
        f"{result.name or 'The tool'} said: {(result.text or compact(result.result))[:QUOTED]}"
        for result in ask.results
    ]
    if output is not None and output.kind == "json":
        return compact({"answer": quoted or ask.said[:QUOTED]})
    return "\n".join(quoted) if quoted else f"You said: {ask.said[:QUOTED]}"


def _made_calls(ask: Ask, count: int, *, only_spoken_of: bool = False) -> list[PlannedCall]:
    """So many calls of the tools that can be called, each in turn."""
    choice = ask.conversation.options.tool_choice
    if choice is not None and choice.parallel is False:
        count = min(count, 1)
    names = choice.names if choice is not None and choice.mode in ("named", "allowed") else ()
    found: list[PlannedCall] = []
    for tool in ask.conversation.tools:
        if only_spoken_of and not _is_spoken_of(tool, ask.said[:QUOTED]):
            continue
        made = _sampled(tool) if not names or tool.name in names else None
        found += [made] if made is not None else []
        if len(found) >= count:
            break
    return list(islice(cycle(found), count))


def _sampled(tool: ToolSpec) -> PlannedCall | None:
    """A call of a tool with arguments that satisfy its schema; None where none are found, or the provider runs it."""
    if tool.type == "custom":
        return PlannedCall(tool.name, None, _FREE_TEXT, is_custom=True, namespace=tool.namespace)
    if tool.type != "function" or tool.issuer is not None:
        return None
    arguments = sample(_lowered(tool.parameters) if tool.parameters is not None else None)
    if arguments is None:
        return None
    return PlannedCall(tool.name, arguments, compact(arguments), namespace=tool.namespace)


def _call(ask: Ask, spec: CallSpec) -> PlannedCall:
    """A call as a script has it. A tool that the request does not have is called nevertheless: models do that."""
    tool = ask.tool(spec.name)
    if isinstance(spec.arguments, str):
        return PlannedCall(spec.name, None, spec.arguments, is_custom=tool is not None and tool.type == "custom")
    made = _sampled(tool) if tool is not None and spec.arguments is None else None
    if made is not None:
        return made
    arguments = spec.arguments or {}
    return PlannedCall(spec.name, arguments, compact(arguments), namespace=tool.namespace if tool is not None else None)


def _lowered(schema: Any) -> Any:
    """A schema with its types in small letters: Gemini writes them in capitals."""
    if isinstance(schema, list):
        return [_lowered(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: _lowered(value) for key, value in schema.items()}
    if isinstance(lowered.get("type"), str) and lowered["type"].isupper():
        lowered["type"] = lowered["type"].lower()
    return lowered


# --- cost -------------------------------------------------------------------------------------------


def usage(ask: Ask, said: Plan) -> Usage:
    """Tokens by a rough rule: so many characters are one."""
    thought = tokens(said.thinking) if said.thinking else None
    written = tokens(said.text + "".join(call.name + call.text for call in said.calls)) + (thought or 0)
    return Usage(tokens_of(ask.body), written, reasoning_tokens=thought)


def tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_A_TOKEN)


def tokens_of(body: dict[str, Any]) -> int:
    """Tokens of a request."""
    return max(tokens(compact({key: value for key, value in body.items() if key != "stream"})), 1)
