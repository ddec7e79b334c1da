"""The plan of a reply, before it is written in a provider's own form.

`plan` follows a rule's reply or the default script. The default script calls the tool that the prompt is about
(`tool_selection.py`); when there are results, it answers with a text that quotes them. If no tool fits, it calls the
first whose schema it can satisfy, or says so if the script has `calls_unasked = false`. It respects `tool_choice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import StopReason, ToolResult, ToolSpec, Usage
from toolglot.jsontext import compact
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.scripts.prompt_cues import UserPrompt, starts_agents, user_words, working_directory
from toolglot.simulator.scripts.result_quotes import MAX_QUOTED, quote_results, shorten_quote
from toolglot.simulator.scripts.sample_arguments import sample, sample_value
from toolglot.simulator.scripts.script import CallSpec, ReplySpec
from toolglot.simulator.scripts.tool_selection import MAX_TRIED, Picker

MAX_NAMED: Final = 6
"""Tools that a reply lists."""
_CHARACTERS_PER_TOKEN: Final = 4
_UNSEEN: Final = ("stream", "metadata", "client_metadata")
"""Fields of requests that are not for the model."""
_FREE_TEXT: Final = "simulated input"


class PlannedCall(Struct, frozen=True):
    """A call of the reply."""

    name: str
    arguments: dict[str, Any] | None
    text: str
    """The arguments as JSON, or as malformed JSON; of a free-text tool, its text."""
    is_custom: bool = False
    namespace: str | None = None

    @property
    def input(self) -> dict[str, Any]:
        return self.arguments if self.arguments is not None else {}


class ReplyPlan(Struct, frozen=True, kw_only=True):
    """A reply without the form of a protocol."""

    text: str = ""
    thinking: str = ""
    calls: tuple[PlannedCall, ...] = ()
    stop: StopReason = "stop"
    usage: Usage = Usage()
    search: str = ""
    """What the provider's own tool searched the web for; empty: it was not used."""


class SimulatedPage(Struct, frozen=True):
    """The page that every simulated search finds."""

    query: str

    @property
    def url(self) -> str:
        return f"https://example.com/search/{len(self.query)}"

    @property
    def title(self) -> str:
        return f"Simulated page about {self.query[:60]}"


def plan(
    request: AcceptedRequest,
    reply: ReplySpec | None,
    *,
    calls: int | None = None,
    unasked: bool = True,
    preface: str = "",
) -> ReplyPlan:
    """The reply of a rule, else of the default script; `calls` is the number of parallel calls."""
    if reply is None:
        planned = _default_reply(request, calls, unasked=unasked, preface=preface)
        thinking = None
    else:
        wanted = reply.calls if calls is None else calls
        calls_made = (
            _sample_calls(request, wanted)
            if isinstance(wanted, int)
            else [_scripted_call(request, spec) for spec in wanted]
        )
        planned = ReplyPlan(text=reply.text or "", calls=tuple(calls_made))
        thinking = reply.thinking
    if thinking is None:
        thinking = _default_thinking(planned) if request.thinks else ""
    planned = replace(planned, thinking=thinking if request.profile.reasoning.carrier != "none" else "")
    if planned.text and not planned.calls:
        planned = replace(planned, search=_searched_words(request))
    stop: StopReason = "tool_calls" if planned.calls else "stop"
    if reply is None:
        return replace(planned, stop=stop, usage=usage(request, planned))
    return replace(planned, stop=reply.stop or stop, usage=reply.usage or usage(request, planned))


def _searched_words(request: AcceptedRequest) -> str:
    """What the provider's own search is used for: the prompt, if it is about a search, or the search is forced."""
    rules, tools, choice = request.profile.tools, request.conversation.tools, request.conversation.options.tool_choice
    kinds = tuple([kind for kind in (rules.web_search.partition("_20")[0], rules.web_fetch) if kind])
    if not kinds or not any(tool.issuer is not None and tool.type.startswith(kinds) for tool in tools):
        return ""
    is_forced = choice is not None and choice.mode in ("required", "named")
    words = shorten_quote(request.prompt)
    return words if is_forced or len(tools) == 1 or "search" in words.lower() else ""


def _default_thinking(planned: ReplyPlan) -> str:
    if planned.calls:
        return f"To answer I need {', '.join(dict.fromkeys(call.name for call in planned.calls))}."
    return "I know enough to answer."


# --- the default script -----------------------------------------------------------------------------


class _Selection(Struct, frozen=True):
    """The calls that a prompt leads to, or why there are none."""

    calls: tuple[PlannedCall, ...] = ()
    why_not: str = ""


def _default_reply(request: AcceptedRequest, count: int | None, *, unasked: bool, preface: str) -> ReplyPlan:
    choice = request.conversation.options.tool_choice
    mode = choice.mode if choice is not None else "auto"
    is_forced = mode in ("required", "named")
    prompt, results = _last_prompt(request)
    why_not = ""
    if mode != "none" and count != 0 and (is_forced or not results):
        selected = _select(request, prompt, count, is_strict=not (unasked or is_forced))
        if selected.calls:
            return ReplyPlan(calls=selected.calls)
        why_not = selected.why_not
    is_words = request.conversation.options.output is None or request.conversation.options.output.kind == "text"
    return ReplyPlan(text=(preface if is_words else "") + _answer_text(request, prompt, results, why_not))


def _last_prompt(request: AcceptedRequest) -> tuple[str, tuple[ToolResult, ...]]:
    """The last prompt, without what a coding agent adds to it, and the results since then."""
    prompt = ""
    results: list[ToolResult] = []
    for turn in request.conversation.turns:
        if turn.results:
            results += turn.results
        elif turn.role == "user" and (words := user_words(turn.text)):
            prompt, results = words, []
    return (prompt, tuple(results)) if prompt else (request.prompt, request.results)


def _answer_text(request: AcceptedRequest, prompt: str, results: tuple[ToolResult, ...], why_not: str) -> str:
    output = request.conversation.options.output
    if output is not None and output.kind == "json_schema":
        return compact(sample_value(_lowercase_types(output.schema or {})))
    turns = request.conversation.turns
    quoted = quote_results(results, turns, working_directory(turns)) if results else []
    if output is not None and output.kind == "json":
        return compact({"answer": quoted or prompt[:MAX_QUOTED]})
    return "\n".join(quoted) if quoted else f"You said: {shorten_quote(prompt)}{why_not}"


def _select(request: AcceptedRequest, prompt: str, count: int | None, *, is_strict: bool) -> _Selection:
    """`count` calls of the tools that the prompt is about, each in turn; None: one for each file that it names.

    Strict: no tool is called that the prompt is not about, and none with arguments that the prompt does not have.
    """
    tools = _callable_tools(request)
    picker = Picker(UserPrompt(prompt), working_directory(request.conversation.turns))
    relevant = picker.rank(tools)[:MAX_TRIED]
    choice = request.conversation.options.tool_choice
    is_forced = choice is not None and choice.mode in ("required", "named")
    others = (tool for tool in tools if tool not in relevant and (is_forced or not starts_agents(tool.name)))
    rest = () if is_strict else others
    limit = 1 if choice is not None and choice.parallel is False else count
    found: list[PlannedCall] = []
    missing: list[tuple[str, tuple[str, ...]]] = []
    for tool in (*relevant, *rest):
        filled = _try_fill(tool, picker)
        guessed = filled[0][1] if filled else ()
        if is_strict and guessed:
            missing.append((tool.name, guessed))
            continue
        found += [call for call, _ in (filled if limit is None else filled[:1])]
        if len(found) >= (limit or 1):
            break
    calls = tuple(found) if limit is None else tuple(islice(cycle(found), limit))
    return _Selection(calls) if calls else _Selection(why_not=_why_not(tools, missing))


def _why_not(tools: Sequence[ToolSpec], missing: list[tuple[str, tuple[str, ...]]]) -> str:
    if missing:
        name, guessed = missing[0]
        return f"\nI would call {name}, but I cannot see its {' and '.join(guessed[:3])} in your words."
    if not tools:
        return ""
    more = f" and {len(tools) - MAX_NAMED} more" if len(tools) > MAX_NAMED else ""
    return f"\nNo tool fits that. I have {', '.join(tool.name[:64] for tool in tools[:MAX_NAMED])}{more}."


def _callable_tools(request: AcceptedRequest) -> list[ToolSpec]:
    """The tools that the client runs, and that `tool_choice` allows."""
    choice = request.conversation.options.tool_choice
    names = choice.names if choice is not None else ()
    return [
        tool
        for tool in request.tools
        if (tool.type == "custom" or (tool.type == "function" and tool.issuer is None))
        and (not names or tool.name in names)
    ]


def _try_fill(tool: ToolSpec, picker: Picker) -> list[tuple[PlannedCall, tuple[str, ...]]]:
    """The same as `_fill`; nothing for a tool whose schema makes it fail, so that the other tools still work."""
    try:
        return _fill(tool, picker)
    except Exception:  # noqa: BLE001 - clients send any schema, and a model answers whatever tools it has
        return []


def _fill(tool: ToolSpec, picker: Picker) -> list[tuple[PlannedCall, tuple[str, ...]]]:
    """Calls of a tool for a prompt, each with the names of the arguments that are guesses."""
    if tool.type == "custom":
        quoted = picker.prompt.quoted[:1]
        text = quoted[0] if quoted else _FREE_TEXT
        call = PlannedCall(tool.name, None, text, is_custom=True, namespace=tool.namespace)
        return [(call, () if quoted else ("input",))]
    schema = _lowercase_types(tool.parameters) if tool.parameters is not None else None
    return [(_plan_call(tool, filled.arguments), filled.guessed) for filled in picker.fill(schema)]


def _plan_call(tool: ToolSpec, arguments: dict[str, Any]) -> PlannedCall:
    return PlannedCall(tool.name, arguments, compact(arguments), namespace=tool.namespace)


# --- the calls of a script --------------------------------------------------------------------------


def _sample_calls(request: AcceptedRequest, count: int) -> list[PlannedCall]:
    """`count` calls of the tools that can be called, each in turn."""
    choice = request.conversation.options.tool_choice
    if choice is not None and choice.parallel is False:
        count = min(count, 1)
    found: list[PlannedCall] = []
    for tool in _callable_tools(request):
        call = _sample_call(tool)
        found += [call] if call is not None else []
        if len(found) >= count:
            break
    return list(islice(cycle(found), count))


def _sample_call(tool: ToolSpec) -> PlannedCall | None:
    """A call of a tool with arguments that satisfy its schema; None if none are found, or if the provider runs it."""
    if tool.type == "custom":
        return PlannedCall(tool.name, None, _FREE_TEXT, is_custom=True, namespace=tool.namespace)
    if tool.type != "function" or tool.issuer is not None:
        return None
    arguments = sample(_lowercase_types(tool.parameters) if tool.parameters is not None else None)
    return _plan_call(tool, arguments) if arguments is not None else None


def _scripted_call(request: AcceptedRequest, spec: CallSpec) -> PlannedCall:
    """A call of a script. It may call a tool that the request does not have: models do that."""
    tool = request.tool(spec.name)
    if isinstance(spec.arguments, str):
        return PlannedCall(spec.name, None, spec.arguments, is_custom=tool is not None and tool.type == "custom")
    sampled = _sample_call(tool) if tool is not None and spec.arguments is None else None
    if sampled is not None:
        return sampled
    arguments = spec.arguments or {}
    return PlannedCall(spec.name, arguments, compact(arguments), namespace=tool.namespace if tool is not None else None)


def _lowercase_types(schema: Any) -> Any:
    """A schema with lowercase types: Gemini writes them in capitals."""
    if isinstance(schema, list):
        return [_lowercase_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: _lowercase_types(value) for key, value in schema.items()}
    if isinstance(lowered.get("type"), str) and lowered["type"].isupper():
        lowered["type"] = lowered["type"].lower()
    return lowered


# --- cost -------------------------------------------------------------------------------------------


def usage(request: AcceptedRequest, planned: ReplyPlan) -> Usage:
    """A rough count of tokens: four characters are one."""
    thought = tokens(planned.thinking) if planned.thinking else None
    written = tokens(planned.text + "".join(call.name + call.text for call in planned.calls)) + (thought or 0)
    return Usage(tokens_of(request.body), written, reasoning_tokens=thought)


def tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def tokens_of(body: dict[str, Any]) -> int:
    """Tokens of a request: of all that the model may see of it."""
    return max(tokens(compact({key: value for key, value in body.items() if key not in _UNSEEN})), 1)


def uncached_tokens(usage: Usage) -> int:
    """Input that neither came from a cache nor went into one, which Anthropic and Bedrock count by itself."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return max((usage.input_tokens or 0) - cached, 0)
