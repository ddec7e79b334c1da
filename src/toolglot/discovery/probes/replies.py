"""Probes of replies: how a model calls tools.

They need a model that follows instructions. What was not seen proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolglot import dialects, profiles
from toolglot.conversation import Conversation, Reply, Text, Thinking, ToolCall, ToolChoice, Turn
from toolglot.discovery.bodies import TOOL, TWO_CITIES, WEATHER, Body, tool, user
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.findings import Finding
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import Probe, ProbeCase, Steps, UnclearError, finding, get_reply, is_accepted, text_of
from toolglot.discovery.secret_masking import one_line
from toolglot.jsontext import compact
from toolglot.protocols.base import get

REPLY_TOKENS: Final = 400
PROMPTED: Final = "hermes"
"""The dialect that describes tools in a prompt: a common one."""
_MAX_TEXT: Final = 20_000
TYPED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "description": "How many days, such as 3"},
        "metric": {"type": "boolean"},
        "hours": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["city", "days", "metric", "hours"],
}
_TYPES: Final[dict[str, type]] = {"string": str, "integer": int, "boolean": bool, "array": list}
_TYPED_QUESTION: Final = "Use the tool for Bonn: 3 days, metric units, at the hours 9 and 15."

_CHAT_CARRIERS: Final = ("reasoning_content", "reasoning_details", "reasoning")


def _question(case: ProbeCase, *turns: Turn, about: str, **settings: Any) -> ProbeRequest:
    """A request whose reply has room for a call."""
    body = case.style.body(*turns, limit=REPLY_TOKENS, **settings)
    return ProbeRequest(body=body, about=about, reply_tokens=REPLY_TOKENS)


# --- one call ---------------------------------------------------------------------------------------


def _native(case: ProbeCase) -> Steps:
    """Whether calls are in the protocol's own fields, in text, or missing."""
    response, reply = yield from get_reply(_question(case, user(), about="a question for a tool"))
    if reply.turn.calls:
        return _call_findings(case, response, reply.turn.calls)
    found = _calls_in_text(response)
    if found:
        return found
    about = "a question for which a tool is required"
    forced = yield _question(case, user(), choice=ToolChoice("required"), about=about)
    if forced.accepted and forced.reply is not None and forced.reply.turn.calls:
        note = "only when a tool was required"
        calls = forced.reply.turn.calls
        return [
            *_call_findings(case, forced, calls),
            finding("replies.calls", "", note, response, forced, quirk=f"it calls {note}"),
        ]
    return [finding("replies.native", "", None, response, forced, confidence="weak", note="it made no call")]


def _call_findings(case: ProbeCase, response: ParsedReply, calls: tuple[ToolCall, ...]) -> list[Finding]:
    found = [finding("replies.native", "", True, response, note=f"it called {one_line(calls[0].name, 80)}")]
    found.append(finding("replies.example", "", example_of(case.protocol, response), response))
    found += _id_findings(calls, response)
    found += _argument_findings(case, response)
    if calls[0].name != TOOL:
        found.append(finding("replies.name", "", one_line(calls[0].name, 80), response, quirk="it renames tools"))
    return found


def _id_findings(calls: tuple[ToolCall, ...], response: ParsedReply) -> list[Finding]:
    ids = [call.id for call in calls]
    note = f"such as {one_line(ids[0], 80)!r}" if ids[0] else ""
    quirk = "calls come without an id" if not all(ids) else "calls of one turn share an id" * (len({*ids}) < len(ids))
    return [finding("replies.ids", "", bool(all(ids)), response, note=note, quirk=quirk)]


def _argument_findings(case: ProbeCase, response: ParsedReply) -> list[Finding]:
    """How arguments are written in replies: some hosts write an object instead of a string."""
    if not case.style.is_chat:
        return []
    written = [call.get("function", {}).get("arguments") for call in chat_calls(response.value)]
    if any(isinstance(value, dict) for value in written):
        return [finding("replies.arguments", "", "object", response, quirk="arguments are an object, not a string")]
    broken = [value for value in written if isinstance(value, str) and not _is_object(value)]
    if broken:
        quirk = "arguments are not always JSON"
        return [finding("replies.arguments", "", "broken", response, quirk=quirk, note=one_line(broken[0], 100))]
    return [finding("replies.arguments", "", "string", response)]


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def chat_calls(value: Any) -> Iterator[Body]:
    """The calls of a Chat Completions reply, as the endpoint wrote them."""
    for choice in (value.get("choices") or ()) if isinstance(value, dict) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        for call in (message.get("tool_calls") or ()) if isinstance(message, dict) else ():
            if isinstance(call, dict) and isinstance(call.get("function"), dict):
                yield call


_CALL_TYPES: Final = ("tool_use", "function_call")
"""The types of calls in the lists `content` (Anthropic) and `output` (Responses)."""


def example_of(protocol: str, response: ParsedReply) -> str:
    """A call as the endpoint wrote it."""
    value = response.value
    if protocol == "openai_chat":
        return compact(next(chat_calls(value), None))[:600]
    for field in ("content", "output") if isinstance(value, dict) else ():
        items = value[field] if isinstance(value.get(field), list) else ()
        for item in items:
            if isinstance(item, dict) and item.get("type") in _CALL_TYPES:
                return compact(item)[:600]
    call = response.reply.turn.calls[0] if response.reply is not None else None
    return compact({"name": call.name, "arguments": call.arguments})[:600] if call is not None else ""


def _calls_in_text(response: ParsedReply) -> list[Finding]:
    text = text_of(response)[:_MAX_TEXT]
    seen = dialects.detect(text, (TOOL,)) if text else None
    if seen is None or seen.dialect is None:
        return []
    sure: Any = "observed" if seen.sure == "marked" else "weak"
    quirk = f"calls are written as text, in the dialect {seen.dialect}"
    return [
        finding("replies.native", "", False, response, quirk=quirk, confidence=sure),
        finding("replies.dialect", "", seen.dialect, response, confidence=sure),
        finding("replies.native", "calls.in_text", True, response, confidence=sure),
        finding("replies.example", "", one_line(text, 600), response),
    ]


def _by_prompt(case: ProbeCase) -> Steps:
    """Whether the model can use tools that are described in the prompt."""
    described = dialects.to_prompt((WEATHER,), Conversation((user(),)), PROMPTED)
    turns = (Turn("system", (Text(described.system),)), *described.turns)
    response = yield _question(case, *turns, tools=None, about="a tool that is described in the prompt")
    is_seen = is_accepted(response) and bool(dialects.parse_text(text_of(response)[:_MAX_TEXT], dialect=PROMPTED).calls)
    note = "it called the tool" if is_seen else "it made no call; whether it can is unknown"
    sure: Any = "observed" if is_seen else "weak"
    quirk = "requests with tools are refused: tools are described in the prompt"
    return [
        finding("replies.by_prompt", "tools.by_prompt", PROMPTED, response, confidence=sure, note=note, quirk=quirk)
    ]


# --- more about replies -----------------------------------------------------------------------------


def _parallel(case: ProbeCase) -> Steps:
    request = _question(case, user(TWO_CITIES), about="a question for two calls at once")
    response, reply = yield from get_reply(request)
    count = len(reply.turn.calls)
    if count > 1:
        return [
            finding("replies.parallel", "", True, response, note=f"{count} calls in one reply"),
            *_id_findings(reply.turn.calls, response),
        ]
    return [finding("replies.parallel", "", None, response, confidence="weak", note=f"it made {count} calls, not two")]


def _argument_types(case: ProbeCase) -> Steps:
    about = "a call with arguments of several types"
    request = _question(case, user(_TYPED_QUESTION), tools=(tool(schema=TYPED),), about=about)
    response, reply = yield from get_reply(request)
    call = next(iter(reply.turn.calls), None)
    if call is None:
        raise UnclearError("it made no call")
    wrong = mistyped_arguments(call.arguments or {})
    quirk = f"arguments with another type than in the schema: {', '.join(wrong)}" if wrong else ""
    return [finding("replies.types", "", not wrong, response, quirk=quirk)]


def mistyped_arguments(arguments: dict[str, Any]) -> list[str]:
    """Parameters of `TYPED` whose values are of another type, or missing."""
    wrong = []
    for name, schema in TYPED["properties"].items():
        value = arguments.get(name)
        kind = _TYPES[schema["type"]]
        if type(value) is not kind:
            wrong.append(f"{name} ({'missing' if name not in arguments else type(value).__name__})")
    return wrong


def _thinking(case: ProbeCase) -> Steps:
    prompt = user("Which is larger, 9.9 or 9.11? Think first.")
    request = _question(case, prompt, tools=None, about="a question to think about")
    response, reply = yield from get_reply(request)
    carrier = carrier_of(case.protocol, response.value, reply)
    if not carrier:
        return [finding("reasoning.field", "", "", response, confidence="weak", note="it showed no thinking")]
    found = [finding("reasoning.field", "reasoning.carrier", carrier, response)]
    if case.style.is_chat:
        found.append(finding("reasoning.field", "reasoning.default", "on", response, note="it thinks by default"))
    return found


def carrier_of(protocol: str, value: Any, reply: Reply) -> str:
    """Where the thinking of a reply is; empty if it has none."""
    if protocol == "openai_chat":
        choices = value.get("choices") if isinstance(value, dict) else None
        message = choices[0].get("message") if isinstance(choices, list) and isinstance(choices[0], dict) else None
        if not isinstance(message, dict):
            return ""
        named = next((name for name in _CHAT_CARRIERS if message.get(name)), "")
        content = message.get("content")
        if named or not content:
            return named
        if isinstance(content, list):
            return "thinking_chunks" if any(_is_thinking(part) for part in content) else ""
        return "think_tags" if str(content).lstrip().startswith("<think>") else ""
    has_any = any(isinstance(block, Thinking) for block in reply.turn.blocks)
    return profiles.get(get(protocol).provider).reasoning.carrier if has_any else ""


def _is_thinking(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "thinking"


PROBES: Final = (
    Probe(
        name="replies.native",
        question="how it calls a tool",
        steps=_native,
        keys=("calls.in_text",),
        max_requests=2,
        reply_tokens=REPLY_TOKENS,
        needs=("tools",),
    ),
    Probe(
        name="replies.by_prompt",
        question="whether it can use a tool described in the prompt",
        steps=_by_prompt,
        keys=("tools.by_prompt",),
        reply_tokens=REPLY_TOKENS,
        request_tokens=400,
        why_not=lambda case: "requests with tools are accepted" if case.found.get("tools") else "",
    ),
    Probe(
        name="replies.parallel",
        question="whether it makes several calls at once",
        steps=_parallel,
        reply_tokens=REPLY_TOKENS,
        needs=("tools",),
    ),
    Probe(
        name="replies.types",
        question="whether arguments have the types of the schema",
        steps=_argument_types,
        reply_tokens=REPLY_TOKENS,
        needs=("tools",),
    ),
    Probe(
        name="reasoning.field",
        question="where its thinking is",
        steps=_thinking,
        keys=("reasoning.carrier", "reasoning.default"),
        reply_tokens=REPLY_TOKENS,
    ),
)
