"""What the model is going to say, before it is written in a provider's own form.

`plan` joins a rule's reply with the default script: that calls the tool that the prompt is about (`tool_selection.py`),
unless results are there already, and then answers with a text that quotes them. Where no tool fits, it calls the first
whose schema it can satisfy, or says so where the script has `calls_unasked = false`. A choice that the request forces
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import StopReason, ToolResult, ToolSpec, Usage
from toolglot.jsontext import compact
from toolglot.simulator.ask import AcceptedRequest
from toolglot.simulator.scripts.prompt_cues import UserPrompt, starts_agents, user_words, working_directory
from toolglot.simulator.scripts.result_quotes import MAX_QUOTED, quote_results, shortened
from toolglot.simulator.scripts.sample_arguments import sample, sample_value
from toolglot.simulator.scripts.script import CallSpec, ReplySpec
from toolglot.simulator.scripts.tool_selection import MAX_TRIED, Picker

MAX_NAMED: Final = 6
"""Tools that an answer lists."""
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


class ReplyPlan(Struct, frozen=True, kw_only=True):
    """An answer without the form of a protocol."""

    text: str = ""
    thinking: str = ""
    calls: tuple[PlannedCall, ...] = ()
    stop: StopReason = "stop"
    usage: Usage = Usage()


def plan(
    ask: AcceptedRequest, reply: ReplySpec | None, *, calls: int | None = None, unasked: bool = True, preface: str = ""
) -> ReplyPlan:
    """What is answered: as a rule says, else as the default script does; `calls` orders so many at once."""
    if reply is None:
        planned = _default(ask, calls, unasked=unasked, preface=preface)
        spoken = None
    else:
        wanted = reply.calls if calls is None else calls
        made = _made_calls(ask, wanted) if isinstance(wanted, int) else [_call(ask, spec) for spec in wanted]
        planned = ReplyPlan(text=reply.text or "", calls=tuple(made))
        spoken = reply.thinking
    thinking = _thinking(planned) if spoken is None and ask.thinks else spoken or ""
    said = replace(planned, thinking=thinking if ask.profile.reasoning.carrier != "none" else "")
    stop: StopReason = "tool_calls" if said.calls else "stop"
    if reply is None:
        return replace(said, stop=stop, usage=usage(ask, said))
    return replace(said, stop=reply.stop or stop, usage=reply.usage or usage(ask, said))


def _thinking(planned: ReplyPlan) -> str:
    if planned.calls:
        return f"To answer I need {', '.join(dict.fromkeys(call.name for call in planned.calls))}."
    return "I know enough to answer."


# --- the default script -----------------------------------------------------------------------------


class _Selection(Struct, frozen=True):
    """The calls that a prompt leads to, or why there are none."""

    calls: tuple[PlannedCall, ...] = ()
    why_not: str = ""


def _default(ask: AcceptedRequest, count: int | None, *, unasked: bool, preface: str) -> ReplyPlan:
    choice = ask.conversation.options.tool_choice
    mode = choice.mode if choice is not None else "auto"
    is_forced = mode in ("required", "named")
    spoken, results = _spoken(ask)
    why_not = ""
    if mode != "none" and count != 0 and (is_forced or not results):
        selected = _select(ask, spoken, count, is_strict=not (unasked or is_forced))
        if selected.calls:
            return ReplyPlan(calls=selected.calls)
        why_not = selected.why_not
    is_words = ask.conversation.options.output is None or ask.conversation.options.output.kind == "text"
    return ReplyPlan(text=(preface if is_words else "") + _answer(ask, spoken, results, why_not))


def _spoken(ask: AcceptedRequest) -> tuple[str, tuple[ToolResult, ...]]:
    """What the user wrote last, and the results since then. What an agent adds by itself is not a question."""
    spoken = ""
    results: list[ToolResult] = []
    for turn in ask.conversation.turns:
        if turn.results:
            results += turn.results
        elif turn.role == "user" and (words := user_words(turn.text)):
            spoken, results = words, []
    return (spoken, tuple(results)) if spoken else (ask.said, ask.results)


def _answer(ask: AcceptedRequest, spoken: str, results: tuple[ToolResult, ...], why_not: str) -> str:
    output = ask.conversation.options.output
    if output is not None and output.kind == "json_schema":
        return compact(sample_value(_lowered(output.schema or {})))
    turns = ask.conversation.turns
    quoted = quote_results(results, turns, working_directory(turns)) if results else []
    if output is not None and output.kind == "json":
        return compact({"answer": quoted or spoken[:MAX_QUOTED]})
    return "\n".join(quoted) if quoted else f"You said: {shortened(spoken)}{why_not}"


def _select(ask: AcceptedRequest, spoken: str, count: int | None, *, is_strict: bool) -> _Selection:
    """So many calls of the tools that the prompt is about, each in turn; as many as it names files where none is said.

    Strict: no tool is called that the prompt is not about, and none with words that nobody said.
    """
    tools = _callable(ask)
    picker = Picker(UserPrompt(spoken), working_directory(ask.conversation.turns))
    fitting = picker.ranked(tools)[:MAX_TRIED]
    choice = ask.conversation.options.tool_choice
    is_forced = choice is not None and choice.mode in ("required", "named")
    others = (tool for tool in tools if tool not in fitting and (is_forced or not starts_agents(tool.name)))
    rest = () if is_strict else others
    most = 1 if choice is not None and choice.parallel is False else count
    found: list[PlannedCall] = []
    missing: list[tuple[str, tuple[str, ...]]] = []
    for tool in (*fitting, *rest):
        made = _filled_or_none(tool, picker)
        guessed = made[0][1] if made else ()
        if is_strict and guessed:
            missing.append((tool.name, guessed))
            continue
        found += [call for call, _ in (made if most is None else made[:1])]
        if len(found) >= (most or 1):
            break
    calls = tuple(found) if most is None else tuple(islice(cycle(found), most))
    return _Selection(calls) if calls else _Selection(why_not=_why_not(tools, missing))


def _why_not(tools: Sequence[ToolSpec], missing: list[tuple[str, tuple[str, ...]]]) -> str:
    if missing:
        name, guessed = missing[0]
        return f"\nI would call {name}, but I cannot see its {' and '.join(guessed[:3])} in your words."
    if not tools:
        return ""
    more = f" and {len(tools) - MAX_NAMED} more" if len(tools) > MAX_NAMED else ""
    return f"\nNo tool fits that. I have {', '.join(tool.name[:64] for tool in tools[:MAX_NAMED])}{more}."


def _callable(ask: AcceptedRequest) -> list[ToolSpec]:
    """The tools that the client runs, and that its choice allows."""
    choice = ask.conversation.options.tool_choice
    names = choice.names if choice is not None else ()
    return [
        tool
        for tool in ask.conversation.tools
        if (tool.type == "custom" or (tool.type == "function" and tool.issuer is None))
        and (not names or tool.name in names)
    ]


def _filled_or_none(tool: ToolSpec, picker: Picker) -> list[tuple[PlannedCall, tuple[str, ...]]]:
    """The same as `_filled`; a tool with a schema that breaks it fits nothing, and the others still can."""
    try:
        return _filled(tool, picker)
    except Exception:  # noqa: BLE001 - schemas are anybody's, and a model answers whatever tools it is given
        return []


def _filled(tool: ToolSpec, picker: Picker) -> list[tuple[PlannedCall, tuple[str, ...]]]:
    """Calls of a tool for a prompt, each with the names of the arguments that were made up."""
    if tool.type == "custom":
        quoted = picker.prompt.quoted[:1]
        text = quoted[0] if quoted else _FREE_TEXT
        call = PlannedCall(tool.name, None, text, is_custom=True, namespace=tool.namespace)
        return [(call, () if quoted else ("input",))]
    schema = _lowered(tool.parameters) if tool.parameters is not None else None
    return [(_planned(tool, filled.arguments), filled.guessed) for filled in picker.filled(schema)]


def _planned(tool: ToolSpec, arguments: dict[str, Any]) -> PlannedCall:
    return PlannedCall(tool.name, arguments, compact(arguments), namespace=tool.namespace)


# --- the calls of a script --------------------------------------------------------------------------


def _made_calls(ask: AcceptedRequest, count: int) -> list[PlannedCall]:
    """So many calls of the tools that can be called, each in turn."""
    choice = ask.conversation.options.tool_choice
    if choice is not None and choice.parallel is False:
        count = min(count, 1)
    found: list[PlannedCall] = []
    for tool in _callable(ask):
        made = _sampled(tool)
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
    return _planned(tool, arguments) if arguments is not None else None


def _call(ask: AcceptedRequest, spec: CallSpec) -> PlannedCall:
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


def usage(ask: AcceptedRequest, said: ReplyPlan) -> Usage:
    """Tokens by a rough rule: so many characters are one."""
    thought = tokens(said.thinking) if said.thinking else None
    written = tokens(said.text + "".join(call.name + call.text for call in said.calls)) + (thought or 0)
    return Usage(tokens_of(ask.body), written, reasoning_tokens=thought)


def tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_A_TOKEN)


def tokens_of(body: dict[str, Any]) -> int:
    """Tokens of a request."""
    return max(tokens(compact({key: value for key, value in body.items() if key != "stream"})), 1)
