"""Small conversations that break rules, for the examples of `explain`.

They are canonical values, encoded by the codec of the target's protocol. Codecs never repair, so the body is as broken
as the conversation. The referee decides which rule each of them breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from toolglot import lint, repair
from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    Options,
    OutputFormat,
    Reasoning,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation.cache_markers import marked, marked_tool
from toolglot.conversation.forms import CacheMarker, protocols
from toolglot.errors import InputError
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import codec
from toolglot.referee import Violation

_CITY: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOL: Final = ToolSpec("weather", "The weather in a city.", _CITY)
_QUESTION: Final = Turn("user", (Text("The weather in Bonn?"),))
_THANKS: Final = Turn("user", (Text("Thanks. And tomorrow?"),))
_REPLY: Final = Turn("assistant", (Text("7 degrees."),))
_PIXEL: Final = Media("image", "image/png", "iVBORw0KGgo=")


class Example(Struct, frozen=True, kw_only=True):
    """A body that breaks a rule, the violation, and the repaired body."""

    body: dict[str, Any]
    violation: Violation
    repaired: dict[str, Any] | None = None
    is_repaired: bool = field(default=False, name="is_mended")
    """Whether the repaired body follows the rule."""
    refusal: str = ""
    """Why it could not be repaired."""


def example_of(rule: str, profile: Profile, model: str, overrides: Overrides | None) -> Example | None:
    """The example with the fewest violations that breaks a rule of a target; None if no example does."""
    best: tuple[int, dict[str, Any], Violation] | None = None
    for body in _bodies(profile):
        found = lint(body, profile.name, model, overrides)
        broken = next((violation for violation in found if violation.rule == rule), None)
        if broken is not None and (best is None or len(found) < best[0]):
            best = (len(found), body, broken)
    return _with_repair(best[1], best[2], profile, model, overrides) if best is not None else None


def _with_repair(
    body: dict[str, Any], broken: Violation, profile: Profile, model: str, overrides: Overrides | None
) -> Example:
    try:
        out = repair(body, target=profile.name, model=model, overrides=overrides)
    except InputError as error:
        return Example(body=body, violation=broken, refusal=str(error))
    left = lint(out.body, profile.name, model, overrides)
    is_repaired = all(violation.rule != broken.rule for violation in left)
    return Example(body=body, violation=broken, repaired=out.body, is_repaired=is_repaired)


def _bodies(profile: Profile) -> Iterator[dict[str, Any]]:
    model = profile.model or "model"
    for conversation in conversations():
        try:
            yield codec(profile.protocol).request.encode(replace(conversation, model=model), profile)
        except InputError:
            continue  # the protocol cannot represent it


def conversations() -> Iterator[Conversation]:
    """Every example."""
    yield from _with_odd_pairs()
    yield from _with_odd_turns()
    yield from _with_odd_content()
    yield from _with_odd_tools()
    yield from _with_odd_schemas()
    yield from _with_odd_settings()
    yield from _with_odd_markers()


def _case(*turns: Turn, tools: tuple[ToolSpec, ...] = (_TOOL,), options: Options | None = None) -> Conversation:
    return Conversation(turns, tools=tools, options=options or _options())


def _options(**settings: Any) -> Options:
    sampling = settings.pop("sampling", Sampling(max_tokens=500))
    return Options(sampling=sampling, **settings)


def _call_turn(*ids: str, name: str = "weather", text: str = "") -> Turn:
    texts = (Text(text),) if text else ()
    return Turn("assistant", (*texts, *(ToolCall(id, name, {"city": "Bonn"}) for id in ids)))


def _result_turn(*ids: str, content: Any = "7 degrees", **more: Any) -> Turn:
    return Turn("tool", tuple(ToolResult(id, content, name="weather", **more) for id in ids))


def _with_odd_pairs() -> Iterator[Conversation]:
    yield _case(_QUESTION, _call_turn("abcdefghi"), _THANKS)  # no result
    yield _case(_QUESTION, _call_turn("abcdefghi"))
    yield _case(_QUESTION, _result_turn("abcdefghi"))  # no call
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi"), _result_turn("abcdefghi"))
    yield _case(_QUESTION, _call_turn("abcdefghi"), _THANKS, _result_turn("abcdefghi"))
    for odd in ("call:1/x", "call_abcd", "abcdefghi" * 20, "abcd"):
        yield _case(_QUESTION, _call_turn(odd), _result_turn(odd))
    yield _case(_QUESTION, _call_turn(""), _result_turn(""))
    yield _case(_QUESTION, _call_turn("abcdefghi", "abcdefghi"), _result_turn("abcdefghi", "abcdefghi"))
    yield _case(_QUESTION, *(_call_turn("abcdefghi"), _result_turn("abcdefghi")) * 2)
    yield _case(_QUESTION, _call_turn("abcdefghi", "abcdefghj"), _result_turn("abcdefghj", "abcdefghi"))
    yield _case(_QUESTION, _call_turn("abcdefghi", "abcdefghj"), _result_turn("abcdefghi"), _result_turn("abcdefghj"))
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi"), tools=())
    yield _case(_REPLY, _call_turn("abcdefghi"), _result_turn("abcdefghi"))
    nameless = Turn("tool", (ToolResult("abcdefghi", "7 degrees"),))
    yield _case(_QUESTION, _call_turn("abcdefghi"), nameless)


def _with_odd_turns() -> Iterator[Conversation]:
    system = Turn("system", (Text("Be brief."),))
    yield _case(_REPLY, _QUESTION)
    yield _case(_QUESTION, _REPLY)
    yield _case(_QUESTION, Turn("assistant", (Text("7 degrees "),)))
    yield _case(_QUESTION, _THANKS)
    yield _case(system)
    yield _case(_QUESTION, _REPLY, system, _THANKS)
    yield _case(system, system, _QUESTION)
    yield _case(_QUESTION, system)
    yield _case(Turn("developer", (Text("Be brief."),)), _QUESTION)
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi"), _THANKS)
    mixed = Turn("user", (Text("Here:"), ToolResult("abcdefghi", "7 degrees", name="weather"), Text("Well?")))
    yield _case(_QUESTION, _call_turn("abcdefghi"), mixed)


def _with_odd_content() -> Iterator[Conversation]:
    yield _case(Turn("user", (Text(""),)))
    yield _case(Turn("user", (Text("  "),)))
    yield _case(Turn("user"))
    yield _case(_QUESTION, Turn("assistant"), _THANKS)
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi", content=""))
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi", content=(_PIXEL,)))
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi", content=(_PIXEL,), is_error=True))
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi", content="", is_error=True))
    yield _case(_QUESTION, _call_turn("abcdefghi", text="I look."), _result_turn("abcdefghi"))
    for kind in ("image", "document", "audio", "video"):
        medium = Media(kind, {"image": "image/png", "document": "application/pdf"}.get(kind, f"{kind}/mp4"), "QQ==")
        yield _case(Turn("user", (medium, Text("What is this?"))))
        yield _case(_QUESTION, Turn("assistant", (medium,)), _THANKS)
    yield _case(Turn("user", (Media("image", url="https://example.com/a.png"), Text("What is this?"))))
    unsigned = Turn("assistant", (Thinking("Bonn, then."), *_call_turn("abcdefghi").blocks))
    on = _options(sampling=Sampling(max_tokens=5000), reasoning=Reasoning("on", budget_tokens=2000))
    yield _case(_QUESTION, unsigned, _result_turn("abcdefghi"))
    yield _case(_QUESTION, unsigned, _result_turn("abcdefghi"), options=on)
    yield _case(_QUESTION, _call_turn("abcdefghi"), _result_turn("abcdefghi"), options=on)
    yield _case(_QUESTION, Turn("assistant", (Thinking("Bonn, then.", "c2lnbmVk"),)), _THANKS)
    late = Turn("assistant", (*_call_turn("abcdefghi").blocks, Thinking("Bonn, then.", "c2lnbmVk")))
    yield _case(_QUESTION, late, _result_turn("abcdefghi"))


def _with_odd_tools() -> Iterator[Conversation]:
    for name in ("weather/now", "weather.now", "7weather", "w" * 65, "w" * 129):
        yield _case(_QUESTION, tools=(replace(_TOOL, name=name),))
    yield _case(_QUESTION, tools=(_TOOL, _TOOL))
    yield _case(_QUESTION, tools=(replace(_TOOL, parameters=None),))
    yield _case(_QUESTION, tools=(replace(_TOOL, description=""),))
    yield _case(_QUESTION, tools=(replace(_TOOL, description=None),))
    yield _case(_QUESTION, tools=(replace(_TOOL, strict=True),))
    yield _case(_QUESTION, tools=(ToolSpec("patch", "A patch.", type="custom"),))
    yield _case(_QUESTION, tools=(replace(_TOOL, namespace="skies"),))
    yield _case(_QUESTION, tools=tuple(replace(_TOOL, name=f"weather_{number}") for number in range(130)))


def _with_odd_schemas() -> Iterator[Conversation]:
    one = {"type": "string"}
    for odd in (
        {"$ref": "#/$defs/city"},
        {"oneOf": [one, {"type": "integer"}]},
        {"anyOf": [one, {"type": "integer"}], "type": "string"},
        {"anyOf": [one], "description": "A city."},
        {"allOf": [one]},
        {"not": one},
        {"const": "Bonn"},
        {"type": ["string", "null"]},
        {"type": "array"},
        {"type": "array", "items": [one, one]},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "integer", "enum": [1, 2]},
        {"type": "string", "format": "hostname"},
        {"type": "string", "default": "Bonn"},
        {"description": "A city."},
        {"type": "string", "pattern": "^B"},
        {"type": "object", "properties": {"a": one}, "patternProperties": {"^x": one}},
    ):
        schema = {"type": "object", "properties": {"city": odd}, "$defs": {"city": one}}
        plain = {"type": "object", "properties": {"city": odd}}
        yield _case(_QUESTION, tools=(replace(_TOOL, parameters=schema if "$ref" in odd else plain),))
        yield _case(_QUESTION, tools=(replace(_TOOL, parameters=plain, strict=True),))
    for root in (
        {"anyOf": [_CITY, _CITY]},
        {"type": "object"},
        {**_CITY, "additionalProperties": False},
        {**_CITY, "required": ["town"]},
        {"type": "object", "properties": {"odd name!": one}},
    ):
        yield _case(_QUESTION, tools=(replace(_TOOL, parameters=root),))
    deep: dict[str, Any] = one
    for _ in range(12):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"], "additionalProperties": False}
    yield _case(_QUESTION, tools=(replace(_TOOL, parameters=deep, strict=True),))


def _with_odd_settings() -> Iterator[Conversation]:
    yield _case(_QUESTION, options=Options())
    yield _case(_QUESTION, options=Options(sampling=Sampling(max_tokens=1)))
    for setting in ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"):
        settings: dict[str, Any] = {setting: 1}
        yield _case(_QUESTION, options=_options(sampling=Sampling(max_tokens=500, **settings)))
    for choice in (
        ToolChoice("required"),
        ToolChoice("none"),
        ToolChoice("named", ("weather",)),
        ToolChoice("allowed", ("weather",)),
        ToolChoice("auto", parallel=False),
    ):
        yield _case(_QUESTION, options=_options(tool_choice=choice))
        yield _case(_QUESTION, tools=(), options=_options(tool_choice=choice))
        thinking = Reasoning("on", budget_tokens=2000)
        yield _case(
            _QUESTION, options=_options(sampling=Sampling(max_tokens=5000), tool_choice=choice, reasoning=thinking)
        )
    for reasoning in (
        Reasoning("on"),
        Reasoning("off"),
        Reasoning("adaptive"),
        Reasoning(effort="extreme"),
        Reasoning("on", "high", 2000),
    ):
        yield _case(_QUESTION, options=_options(sampling=Sampling(max_tokens=5000), reasoning=reasoning))
    for output in (OutputFormat("json"), OutputFormat("json_schema", "weather", _CITY)):
        yield _case(_QUESTION, options=_options(output=output))
        yield _case(_QUESTION, tools=(), options=_options(output=output))
    yield _case(_QUESTION, options=_options(user="ana"))


def _with_odd_markers() -> Iterator[Conversation]:
    """Cache markers: too many, one for a longer time behind one for a shorter, and one on a tool."""
    yield _case(
        Turn("user", tuple([block for word in ("one", "two", "three", "four", "five") for block in _marked(word)]))
    )
    yield _case(Turn("user", (*_marked("five minutes"), *_marked("an hour", "1h"))))
    tool = _TOOL
    for protocol in protocols():
        tool = marked_tool(tool, CacheMarker(), protocol)
    yield _case(_QUESTION, tools=(tool,))


def _marked(text: str, ttl: str | None = None) -> tuple[Block, ...]:
    """A text with a marker of each protocol that has markers, as a field or a block; codecs write their own."""
    block, points = Text(text), list[Block]()
    for protocol in protocols():
        first, *more = marked(block, CacheMarker(ttl), protocol)
        points += more
        block = first if isinstance(first, Text) else block
    return (block, *points)
