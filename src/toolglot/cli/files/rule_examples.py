"""Small conversations that break a demand, for `explain` to show what a refusal and its repair look like.

They are canonical values, written out by the codec of the target's protocol: codecs never repair, so the body is as
broken as the conversation. Which demand one breaks is not written down here: it is found by asking the referee.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot import lint, repair
from toolglot.conversation import (
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
from toolglot.errors import InputError
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import codec
from toolglot.referee import Violation

_CITY: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOL: Final = ToolSpec("weather", "The weather in a city.", _CITY)
_ASK: Final = Turn("user", (Text("The weather in Bonn?"),))
_THANKS: Final = Turn("user", (Text("Thanks. And tomorrow?"),))
_SAID: Final = Turn("assistant", (Text("7 degrees."),))
_PIXEL: Final = Media("image", "image/png", "iVBORw0KGgo=")


class Example(Struct, frozen=True, kw_only=True):
    """A body that breaks a rule, what the referee says of it, and what repair makes of it."""

    body: dict[str, Any]
    violation: Violation
    repaired: dict[str, Any] | None = None
    is_mended: bool = False
    """The rule is no longer broken after the repair."""
    refusal: str = ""
    """Why it could not be repaired."""


def example_of(rule: str, profile: Profile, model: str, overrides: Overrides | None) -> Example | None:
    """The plainest example that breaks a rule of a target; None where none of them does."""
    best: tuple[int, dict[str, Any], Violation] | None = None
    for body in _bodies(profile):
        found = lint(body, profile.name, model, overrides)
        broken = next((violation for violation in found if violation.rule == rule), None)
        if broken is not None and (best is None or len(found) < best[0]):
            best = (len(found), body, broken)
    return _repaired(best[1], best[2], profile, model, overrides) if best is not None else None


def _repaired(
    body: dict[str, Any], broken: Violation, profile: Profile, model: str, overrides: Overrides | None
) -> Example:
    try:
        out = repair(body, target=profile.name, model=model, overrides=overrides)
    except InputError as error:
        return Example(body=body, violation=broken, refusal=str(error))
    left = lint(out.body, profile.name, model, overrides)
    is_mended = all(violation.rule != broken.rule for violation in left)
    return Example(body=body, violation=broken, repaired=out.body, is_mended=is_mended)


def _bodies(profile: Profile) -> Iterator[dict[str, Any]]:
    model = profile.model or "model"
    for conversation in conversations():
        try:
            yield codec(profile.protocol).request.encode(replace(conversation, model=model), profile)
        except InputError:
            continue  # the protocol has no way to write it


def conversations() -> Iterator[Conversation]:
    """Every example, from the plain to the odd."""
    yield from _with_odd_pairs()
    yield from _with_odd_turns()
    yield from _with_odd_content()
    yield from _with_odd_tools()
    yield from _with_odd_schemas()
    yield from _with_odd_settings()


def _loop(*turns: Turn, tools: tuple[ToolSpec, ...] = (_TOOL,), options: Options | None = None) -> Conversation:
    return Conversation(turns, tools=tools, options=options or _options())


def _options(**settings: Any) -> Options:
    sampling = settings.pop("sampling", Sampling(max_tokens=500))
    return Options(sampling=sampling, **settings)


def _called(*ids: str, name: str = "weather", text: str = "") -> Turn:
    said = (Text(text),) if text else ()
    return Turn("assistant", (*said, *(ToolCall(id, name, {"city": "Bonn"}) for id in ids)))


def _answered(*ids: str, content: Any = "7 degrees", **more: Any) -> Turn:
    return Turn("tool", tuple(ToolResult(id, content, name="weather", **more) for id in ids))


def _with_odd_pairs() -> Iterator[Conversation]:
    yield _loop(_ASK, _called("abcdefghi"), _THANKS)  # no result
    yield _loop(_ASK, _called("abcdefghi"))
    yield _loop(_ASK, _answered("abcdefghi"))  # no call
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi"), _answered("abcdefghi"))
    yield _loop(_ASK, _called("abcdefghi"), _THANKS, _answered("abcdefghi"))
    for odd in ("call:1/x", "call_abcd", "abcdefghi" * 20, "abcd"):
        yield _loop(_ASK, _called(odd), _answered(odd))
    yield _loop(_ASK, _called(""), _answered(""))
    yield _loop(_ASK, _called("abcdefghi", "abcdefghi"), _answered("abcdefghi", "abcdefghi"))
    yield _loop(_ASK, *(_called("abcdefghi"), _answered("abcdefghi")) * 2)
    yield _loop(_ASK, _called("abcdefghi", "abcdefghj"), _answered("abcdefghj", "abcdefghi"))
    yield _loop(_ASK, _called("abcdefghi", "abcdefghj"), _answered("abcdefghi"), _answered("abcdefghj"))
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi"), tools=())
    yield _loop(_SAID, _called("abcdefghi"), _answered("abcdefghi"))
    nameless = Turn("tool", (ToolResult("abcdefghi", "7 degrees"),))
    yield _loop(_ASK, _called("abcdefghi"), nameless)


def _with_odd_turns() -> Iterator[Conversation]:
    system = Turn("system", (Text("Be brief."),))
    yield _loop(_SAID, _ASK)
    yield _loop(_ASK, _SAID)
    yield _loop(_ASK, Turn("assistant", (Text("7 degrees "),)))
    yield _loop(_ASK, _THANKS)
    yield _loop(system)
    yield _loop(_ASK, _SAID, system, _THANKS)
    yield _loop(system, system, _ASK)
    yield _loop(_ASK, system)
    yield _loop(Turn("developer", (Text("Be brief."),)), _ASK)
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi"), _THANKS)
    mixed = Turn("user", (Text("Here:"), ToolResult("abcdefghi", "7 degrees", name="weather"), Text("Well?")))
    yield _loop(_ASK, _called("abcdefghi"), mixed)


def _with_odd_content() -> Iterator[Conversation]:
    yield _loop(Turn("user", (Text(""),)))
    yield _loop(Turn("user", (Text("  "),)))
    yield _loop(Turn("user"))
    yield _loop(_ASK, Turn("assistant"), _THANKS)
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi", content=""))
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi", content=(_PIXEL,)))
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi", content=(_PIXEL,), is_error=True))
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi", content="", is_error=True))
    yield _loop(_ASK, _called("abcdefghi", text="I look."), _answered("abcdefghi"))
    for kind in ("image", "document", "audio", "video"):
        medium = Media(kind, {"image": "image/png", "document": "application/pdf"}.get(kind, f"{kind}/mp4"), "QQ==")
        yield _loop(Turn("user", (medium, Text("What is this?"))))
        yield _loop(_ASK, Turn("assistant", (medium,)), _THANKS)
    yield _loop(Turn("user", (Media("image", url="https://example.com/a.png"), Text("What is this?"))))
    unsigned = Turn("assistant", (Thinking("Bonn, then."), *_called("abcdefghi").blocks))
    on = _options(sampling=Sampling(max_tokens=5000), reasoning=Reasoning("on", budget_tokens=2000))
    yield _loop(_ASK, unsigned, _answered("abcdefghi"))
    yield _loop(_ASK, unsigned, _answered("abcdefghi"), options=on)
    yield _loop(_ASK, _called("abcdefghi"), _answered("abcdefghi"), options=on)
    yield _loop(_ASK, Turn("assistant", (Thinking("Bonn, then.", "c2lnbmVk"),)), _THANKS)
    late = Turn("assistant", (*_called("abcdefghi").blocks, Thinking("Bonn, then.", "c2lnbmVk")))
    yield _loop(_ASK, late, _answered("abcdefghi"))


def _with_odd_tools() -> Iterator[Conversation]:
    for name in ("weather/now", "weather.now", "7weather", "w" * 65, "w" * 129):
        yield _loop(_ASK, tools=(replace(_TOOL, name=name),))
    yield _loop(_ASK, tools=(_TOOL, _TOOL))
    yield _loop(_ASK, tools=(replace(_TOOL, parameters=None),))
    yield _loop(_ASK, tools=(replace(_TOOL, description=""),))
    yield _loop(_ASK, tools=(replace(_TOOL, description=None),))
    yield _loop(_ASK, tools=(replace(_TOOL, strict=True),))
    yield _loop(_ASK, tools=(ToolSpec("patch", "A patch.", type="custom"),))
    yield _loop(_ASK, tools=(replace(_TOOL, namespace="skies"),))
    yield _loop(_ASK, tools=tuple(replace(_TOOL, name=f"weather_{number}") for number in range(130)))


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
        yield _loop(_ASK, tools=(replace(_TOOL, parameters=schema if "$ref" in odd else plain),))
        yield _loop(_ASK, tools=(replace(_TOOL, parameters=plain, strict=True),))
    for root in (
        {"anyOf": [_CITY, _CITY]},
        {"type": "object"},
        {**_CITY, "additionalProperties": False},
        {**_CITY, "required": ["town"]},
        {"type": "object", "properties": {"odd name!": one}},
    ):
        yield _loop(_ASK, tools=(replace(_TOOL, parameters=root),))
    deep: dict[str, Any] = one
    for _ in range(12):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"], "additionalProperties": False}
    yield _loop(_ASK, tools=(replace(_TOOL, parameters=deep, strict=True),))


def _with_odd_settings() -> Iterator[Conversation]:
    yield _loop(_ASK, options=Options())
    yield _loop(_ASK, options=Options(sampling=Sampling(max_tokens=1)))
    for setting in ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"):
        settings: dict[str, Any] = {setting: 1}
        yield _loop(_ASK, options=_options(sampling=Sampling(max_tokens=500, **settings)))
    for choice in (
        ToolChoice("required"),
        ToolChoice("none"),
        ToolChoice("named", ("weather",)),
        ToolChoice("allowed", ("weather",)),
        ToolChoice("auto", parallel=False),
    ):
        yield _loop(_ASK, options=_options(tool_choice=choice))
        yield _loop(_ASK, tools=(), options=_options(tool_choice=choice))
        thinking = Reasoning("on", budget_tokens=2000)
        yield _loop(_ASK, options=_options(sampling=Sampling(max_tokens=5000), tool_choice=choice, reasoning=thinking))
    for reasoning in (
        Reasoning("on"),
        Reasoning("off"),
        Reasoning("adaptive"),
        Reasoning(effort="extreme"),
        Reasoning("on", "high", 2000),
    ):
        yield _loop(_ASK, options=_options(sampling=Sampling(max_tokens=5000), reasoning=reasoning))
    for output in (OutputFormat("json"), OutputFormat("json_schema", "weather", _CITY)):
        yield _loop(_ASK, options=_options(output=output))
        yield _loop(_ASK, tools=(), options=_options(output=output))
    yield _loop(_ASK, options=_options(user="ana"))
