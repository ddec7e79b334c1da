"""Good request bodies of every chat-like target and of Anthropic, made from its profile, for the referee's tests.

`good(target)` gives bodies that the target accepts, as varied as its profile allows; `rich(target)` is the one that
faults are planted into: system prompt, text beside two calls, their results at the end, two tools.
"""

from __future__ import annotations

import copy
from typing import Any

from toolglot import profiles
from toolglot.profiles import Profile

Body = dict[str, Any]

TARGETS = tuple(name for name in profiles.names() if profiles.get(name).protocol in ("openai_chat", "anthropic"))
CHAT = tuple(name for name in TARGETS if profiles.get(name).protocol == "openai_chat")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
ONE, TWO, THREE = "abcdef001", "abcdef002", "abcdef003"
"""Ids that every target takes."""


def rich(target: str) -> Body:
    profile = profiles.get(target)
    return at_host(claude_rich(), profile) if profile.protocol == "anthropic" else chat_rich(profile)


def good(target: str) -> list[Body]:
    profile = profiles.get(target)
    if profile.protocol == "openai_chat":
        return chat_good(profile)
    return [at_host(body, profile) for body in claude_good()]


def at_host(body: Body, profile: Profile) -> Body:
    """A body of Anthropic as a cloud that hosts its protocol takes it."""
    version = profile.request.hosted_version
    if not version:
        return body
    left_out = {"model", *profile.request.refused_fields}
    return {"anthropic_version": version, **{name: value for name, value in body.items() if name not in left_out}}


# --- Chat -------------------------------------------------------------------------------------------


def chat_tool(name: str = "get_weather", **more: Any) -> Body:
    function = {"name": name, "description": "The weather", "parameters": copy.deepcopy(SCHEMA), **more}
    return {"type": "function", "function": function}


def chat_call(id_: str, name: str = "get_weather", arguments: Any = '{"city": "Bonn"}') -> Body:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_calling(profile: Profile, *ids: str, text: str = "I look.") -> Body:
    message = {"role": "assistant", "content": text, "tool_calls": [chat_call(id_) for id_ in ids]}
    return message | chat_thought(profile)


def chat_thought(profile: Profile) -> Body:
    """What some must have on every turn of the model."""
    return {"reasoning_content": "Hm."} if profile.reasoning.placeholder_on != "none" else {}


def chat_saying(profile: Profile, text: str) -> Body:
    return {"role": "assistant", "content": text} | chat_thought(profile)


def chat_result(profile: Profile, id_: str, content: Any = "7 degrees") -> Body:
    named = {"name": "get_weather"} if profile.results.name == "required" else {}
    return {"role": "tool", "tool_call_id": id_, "content": content} | named


def chat_rich(profile: Profile) -> Body:
    return {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "The weather in Bonn and Köln?"},
            chat_calling(profile, ONE, TWO),
            chat_result(profile, ONE),
            chat_result(profile, TWO),
        ],
        "tools": [chat_tool(), chat_tool("get_time")],
    }


def chat_good(profile: Profile) -> list[Body]:
    user = {"role": "user", "content": "The weather in Bonn?"}
    called = [user, chat_calling(profile, ONE), chat_result(profile, ONE)]
    answered = [*called, chat_saying(profile, "It is cold.")]
    parallel = [chat_result(profile, TWO, [{"type": "text", "text": "8"}]), chat_result(profile, THREE)]
    histories: list[list[Body]] = [
        [user],
        [{"role": "system", "content": "Be brief."}, user],
        [user, chat_saying(profile, "Cold."), {"role": "user", "content": "And now?"}],
        [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        called,
        [*answered, user],
        [*answered, user, chat_calling(profile, TWO), chat_result(profile, TWO)],
        [user, chat_calling(profile, ONE, text=""), chat_result(profile, ONE)],
        [*called, chat_calling(profile, TWO, THREE), *parallel],
    ]
    bodies: list[Body] = [{"model": "m", "messages": messages} for messages in histories]
    bodies += [{"model": "m", "messages": messages, "tools": [chat_tool()]} for messages in histories]
    bodies += [{"model": "m", "messages": [user], profile.request.max_tokens_field: 100, "stream": True}]
    return [*bodies, chat_rich(profile), *_chat_settings(profile, {"model": "m", "messages": [user]})]


def _chat_settings(profile: Profile, plain: Body) -> list[Body]:
    """One body for each setting that the target has."""
    values: Body = {"temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 1}
    values |= {"presence_penalty": 0.1, "frequency_penalty": 0.1}
    names = {"seed": profile.request.seed_field}
    known = [name for name in profile.request.sampling if name in values]
    bodies: list[Body] = [plain | {names.get(name, name): values[name]} for name in known]
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    formats: Body = {"json": {"type": "json_object"}, "json_schema": shape}
    bodies += [plain | {"response_format": formats[kind]} for kind in profile.request.output]
    if "image" in profile.turns.media:
        part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        bodies.append({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "?"}, part]}]})
    named = {"type": "function", "function": {"name": "get_weather"}}
    choices: Body = {"auto": "auto", "none": "none", "required": "required", "named": named}
    allowed = profile.choice.modes if profile.reasoning.default == "off" else profile.choice.while_thinking
    bodies += [plain | {"tools": [chat_tool()], "tool_choice": choices[mode]} for mode in allowed if mode in choices]
    if profile.tools.strict != "omit":
        bodies.append(plain | {"tools": [chat_tool(strict=True, parameters=CLOSED)]})
    if profile.choice.parallel_switch:
        bodies.append(plain | {"tools": [chat_tool()], "parallel_tool_calls": False})
    return bodies


# --- Anthropic --------------------------------------------------------------------------------------

CLAUDE: Body = {"model": "claude-opus-5", "max_tokens": 100}


def claude_tool(name: str = "get_weather", **more: Any) -> Body:
    return {"name": name, "description": "The weather", "input_schema": copy.deepcopy(SCHEMA), **more}


def claude_call(id_: str, name: str = "get_weather", input_: Any = None) -> Body:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"city": "Bonn"} if input_ is None else input_}


def claude_result(id_: str, **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": id_, "content": "7 degrees", **more}


def claude_text(text: str) -> Body:
    return {"type": "text", "text": text}


def claude_turns(*contents: Any) -> list[Body]:
    """Turns of user and assistant in turn."""
    return [{"role": "assistant" if n % 2 else "user", "content": content} for n, content in enumerate(contents)]


def claude_rich() -> Body:
    return {
        **CLAUDE,
        "system": "Be brief.",
        "messages": claude_turns(
            "The weather in Bonn and Köln?",
            [claude_text("I look."), claude_call(ONE), claude_call(TWO)],
            [claude_result(ONE), claude_result(TWO)],
        ),
        "tools": [claude_tool(), claude_tool("get_time")],
    }


def claude_good() -> list[Body]:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    redacted = {"type": "redacted_thinking", "data": "eHh4"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    paper = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    loop = ["Hi", [thought, claude_call(ONE)], [claude_result(ONE)]]
    histories: list[list[Body]] = [
        claude_turns("Hi"),
        claude_turns("Hi", "Hello", "And now?"),
        claude_turns([claude_text("Hi"), image, paper]),
        claude_turns(*loop),
        claude_turns("Hi", [redacted, claude_call(ONE)], [claude_result(ONE), claude_text("Go on")]),
        claude_turns(
            "Hi",
            [thought, claude_call(ONE), thought, claude_call(TWO)],
            [claude_result(TWO), claude_result(ONE)],
        ),
        claude_turns(*loop, "Cold.", "And now?", [claude_call(TWO)], [claude_result(TWO)]),
        [*claude_turns("Hi"), *claude_turns("Still there?")],
        [
            *claude_turns("Hi", [claude_call(ONE)]),
            {"role": "assistant", "content": [claude_call(TWO)]},
            {"role": "user", "content": [claude_result(ONE), claude_result(TWO)]},
        ],
        claude_turns("Hi", [claude_call(ONE)], [claude_result(ONE, content=[claude_text("7"), image])]),
        claude_turns("Hi", [claude_call(ONE)], [claude_result(ONE, content="", is_error=False)]),
        claude_turns("Hi", [claude_call(ONE)], [claude_result(ONE, content="No.", is_error=True)]),
    ]
    settings: list[Body] = [
        {"system": [claude_text("Be brief.")], "stream": True},
        {"tools": [claude_tool()], "thinking": {"type": "adaptive"}},
        {"tools": [claude_tool(strict=True, input_schema=CLOSED)]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [claude_tool()], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {"tools": [claude_tool()], "tool_choice": {"type": "tool", "name": "get_weather"}},
        {"stop_sequences": ["END"], "metadata": {"user_id": "u"}},
        {"output_config": {"effort": "high"}, "cache_control": {"type": "ephemeral"}},
    ]
    bodies = [{**CLAUDE, "messages": messages} for messages in histories]
    bodies += [{**CLAUDE, "messages": claude_turns(*loop), **setting} for setting in settings]
    return [*bodies, claude_rich()]
