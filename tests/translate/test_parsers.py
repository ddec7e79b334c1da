"""Parsers and the validation of single calls: R-003-3, -4, -6, -9, -14 to -18 and the traps T2, T5, T7."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from toolglot import (
    ArgumentsError,
    InputError,
    JSONError,
    LimitError,
    Limits,
    ProviderError,
    ReplyParser,
    ToolCall,
    ToolParser,
    TruncatedArgumentsError,
    TruncatedJSONError,
    detect_format,
    get_parser,
    profiles,
    register_parser,
    validate_tool_call,
)
from toolglot.conversation import ids

SEED_PROVIDERS = ("anthropic", "openai", "xai", "deepseek", "google")
CHAT_CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "calc", "arguments": '{"x":5}'}}
TOOL_USE: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "calc", "input": {"x": 5}}
FUNCTION_CALL: dict[str, Any] = {"functionCall": {"id": "c1", "name": "calc", "args": {"x": 5}}}
TOOL_USE_CONVERSE: dict[str, Any] = {"toolUse": {"toolUseId": "c1", "name": "calc", "input": {"x": 5}}}
RESPONSES_CALL: dict[str, Any] = {"type": "function_call", "call_id": "c1", "name": "calc", "arguments": '{"x":5}'}
OLLAMA_CALL: dict[str, Any] = {"id": "c1", "function": {"name": "calc", "arguments": {"x": 5}}}


def names_and_arguments(calls: Iterable[ToolCall]) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Ids, names and arguments of calls: T7."""
    return [(call.id, call.name, call.arguments) for call in calls]


# --- the registry -----------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", [*SEED_PROVIDERS, *profiles.names()])
def test_R_003_3_every_provider_has_a_parser_that_names_itself(provider: str) -> None:
    parser: ToolParser = get_parser(provider)
    assert parser.format == {"xai": "custom", "deepseek": "xml"}.get(provider, "json")
    assert parser.provider_id == profiles.resolve(provider)
    assert profiles.resolve(provider) in repr(parser)


@pytest.mark.parametrize(("spelling", "provider"), [("Claude", "anthropic"), ("grok", "xai"), ("google", "gemini")])
def test_R_003_4_other_spellings_of_a_name_find_the_same_parser(spelling: str, provider: str) -> None:
    assert get_parser(spelling) is get_parser(provider)


def test_R_003_4_an_unknown_provider_is_named_and_the_known_ones_are_listed() -> None:
    with pytest.raises(InputError, match="unknown provider 'no_such_provider'") as caught:
        get_parser("no_such_provider")
    assert all(profiles.resolve(name) in caught.value.hint for name in SEED_PROVIDERS)


@pytest.mark.parametrize("name", ["", "  ", None, 7, "x" * 10_000])
def test_R_003_4_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="expected the name of a provider"):
        get_parser(name)
    with pytest.raises(InputError, match="expected the name of a provider"):
        register_parser(name, get_parser("openai"))


class ShellParser:
    """A parser of one's own: every line is a command."""

    format = "custom"
    provider_id = "no_such_provider"

    def parse(self, response: Any) -> list[ToolCall]:
        return [ToolCall("", "bash", {"command": line}, "bash") for line in response.splitlines()]


def test_R_003_4_a_registered_parser_adds_a_provider_or_replaces_a_built_in_one() -> None:
    own, built_in = ShellParser(), get_parser("openai")
    for name in ("no_such_provider", "OpenAI_Chat"):
        register_parser(name, own)
    try:
        assert get_parser("no_such_provider") is get_parser("openai") is own
        assert get_parser("no_such_provider").parse("ls -la")[0].arguments == {"command": "ls -la"}
        with pytest.raises(InputError) as caught:
            get_parser("other")
        assert "no_such_provider" in caught.value.hint
    finally:
        for name in ("no_such_provider", "openai", "never registered"):
            register_parser(name, None)
    assert get_parser("openai") is built_in
    with pytest.raises(InputError):
        get_parser("no_such_provider")


class Shapeless(ShellParser):
    format = None  # type: ignore[assignment]


@pytest.mark.parametrize("thing", ["anthropic", 7, {}, ShellParser, object(), Shapeless()])
def test_R_003_4_what_is_no_parser_is_refused(thing: Any) -> None:
    with pytest.raises(InputError, match="expected a parser"):
        register_parser("openai", thing)
    assert isinstance(get_parser("openai"), ReplyParser)


# --- shapes -----------------------------------------------------------------------------------------


def test_R_003_15_the_seeds_example_is_parsed() -> None:
    response = '{"content": [{"type": "tool_use", "id": "123", "name": "calc", "input": {"x": 5}}]}'
    (call,) = get_parser("anthropic").parse(response)
    assert (call.id, call.name) == ("123", "calc")
    assert call.arguments is not None
    assert call.arguments["x"] == 5.0


CHAT_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
CONVERSE = {"role": "assistant", "content": [{"text": "hm"}, TOOL_USE_CONVERSE]}
SHAPES: list[tuple[str, Any]] = [
    ("anthropic", {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [TOOL_USE]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": "hm"}, TOOL_USE]}),
    ("anthropic", [{"type": "text", "text": "hm"}, TOOL_USE]),
    ("anthropic", TOOL_USE),
    ("openai", {"id": "r", "choices": [{"message": CHAT_MESSAGE}, {"message": CHAT_MESSAGE}]}),
    ("openai", {"message": CHAT_MESSAGE, "finish_reason": "tool_calls"}),
    ("openai", CHAT_MESSAGE),
    ("openai", {"tool_calls": [CHAT_CALL]}),
    ("openai", [CHAT_CALL]),
    ("xai", CHAT_CALL),
    ("deepseek", {"choices": [{"message": CHAT_MESSAGE}]}),
    ("gemini", {"candidates": [{"content": {"role": "model", "parts": [{"text": "hm"}, FUNCTION_CALL]}}]}),
    ("gemini", {"content": {"parts": [FUNCTION_CALL]}, "finishReason": "STOP"}),
    ("gemini", {"role": "model", "parts": [FUNCTION_CALL]}),
    ("gemini", [FUNCTION_CALL]),
    ("gemini", FUNCTION_CALL["functionCall"]),
    ("gemini", {"function_call": FUNCTION_CALL["functionCall"], "thought_signature": "c2ln"}),
    ("openai_responses", {"id": "r", "object": "response", "output": [RESPONSES_CALL]}),
    ("openai_responses", [{"type": "reasoning", "id": "r", "summary": []}, RESPONSES_CALL]),
    ("openai_responses", RESPONSES_CALL),
    ("bedrock", {"output": {"message": CONVERSE}, "stopReason": "tool_use"}),
    ("bedrock", CONVERSE),
    ("bedrock", TOOL_USE_CONVERSE),
    ("bedrock", TOOL_USE_CONVERSE["toolUse"]),
    ("cohere", {"id": "r", "message": CHAT_MESSAGE, "finish_reason": "TOOL_CALL"}),
    ("cohere", [CHAT_CALL]),
    ("ollama", {"model": "m", "message": {"role": "assistant", "tool_calls": [OLLAMA_CALL]}, "done": True}),
    ("ollama", OLLAMA_CALL),
]


@pytest.mark.parametrize("write", [lambda value: value, json.dumps, lambda value: json.dumps(value).encode()])
@pytest.mark.parametrize(("provider", "response"), SHAPES)
def test_R_003_3_T7_whole_replies_and_their_parts_are_parsed_as_text_bytes_or_objects(
    provider: str, response: Any, write: Callable[[Any], Any]
) -> None:
    assert names_and_arguments(get_parser(provider).parse(write(response))) == [("c1", "calc", {"x": 5})]


NO_CALLS: list[tuple[str, Any]] = [
    ("anthropic", {"role": "assistant", "content": "hello"}),
    ("anthropic", {"content": []}),
    ("anthropic", []),
    ("anthropic", {"content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]}),
    ("anthropic", {"content": [{"type": "text", "text": '"tool_use"'}], "stop_reason": "tool_use"}),
    ("openai", {"choices": []}),
    ("openai", {"choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": []}}]}),
    ("openai", {"role": "user", "content": "call tool_calls"}),
    ("gemini", {"candidates": []}),
    ("gemini", {"candidates": [{"finishReason": "STOP"}]}),
    ("gemini", {"candidates": [{"content": None, "finishReason": "STOP"}]}),
    ("gemini", {"candidates": [{"content": {"role": "model"}}]}),
    ("gemini", {"usageMetadata": {}}),
    ("openai_responses", {"output": []}),
    ("bedrock", {"content": []}),
    ("cohere", {"message": {"role": "assistant", "content": "hi"}}),
]


@pytest.mark.parametrize(("provider", "response"), NO_CALLS)
def test_R_003_3_a_reply_without_calls_is_an_empty_list(provider: str, response: Any) -> None:
    assert get_parser(provider).parse(response) == []


def test_several_calls_keep_their_order_and_a_call_of_old_is_read() -> None:
    calls = [{**CHAT_CALL, "id": f"c{number}"} for number in range(5)]
    assert [call.id for call in get_parser("openai").parse({"tool_calls": calls})] == ["c0", "c1", "c2", "c3", "c4"]
    message = {"role": "assistant", "content": None, "function_call": CHAT_CALL["function"]}
    (call,) = get_parser("openai").parse(message)
    assert (call.name, call.arguments) == ("calc", {"x": 5})
    assert ids.is_canonical(call.id)


@pytest.mark.parametrize("field", ["functionCall", "function_call"])
def test_R_003_17_a_gemini_call_without_an_id_gets_one_that_depends_on_the_reply_alone(field: str) -> None:
    def parse(city: str) -> list[ToolCall]:
        parts = [{field: {"name": "weather", "args": {"city": city}}}, {field: {"name": "weather"}}]
        return get_parser("google").parse({"candidates": [{"content": {"role": "model", "parts": parts}}]})

    calls = parse("Oslo")
    assert [call.arguments for call in calls] == [{"city": "Oslo"}, {}]
    assert len({call.id for call in calls}) == 2
    assert all(ids.is_canonical(call.id) and call.metadata and call.metadata.raw_id is None for call in calls)
    assert calls == parse("Oslo")
    assert {call.id for call in calls}.isdisjoint(call.id for call in parse("Rome"))


def test_R_003_17_a_gemini_signature_stays_with_its_call() -> None:
    (call,) = get_parser("google").parse({**FUNCTION_CALL, "thoughtSignature": "c2ln"})
    assert call.signature == "c2ln"


@pytest.mark.parametrize(
    ("provider", "response"),
    [
        ("anthropic", {"type": "tool_use", "id": "c", "name": "now", "input": None}),
        ("anthropic", {"content": [{"type": "tool_use", "id": "c", "name": "now"}]}),
        ("openai", {"id": "c", "type": "function", "function": {"name": "now", "arguments": None}}),
        ("openai", {"id": "c", "type": "function", "function": {"name": "now"}}),
        ("openai", {"id": "c", "type": "function", "function": {"name": "now", "arguments": ""}}),
        ("openai", {"id": "c", "type": "function", "function": {"name": "now", "arguments": "null"}}),
        ("google", {"id": "c", "name": "now", "args": None}),
    ],
)
def test_R_003_T5_missing_arguments_are_an_empty_object_in_every_shape(provider: str, response: Any) -> None:
    (call,) = get_parser(provider).parse(response)
    call = validate_tool_call(call)
    assert call.arguments == {}
    assert call.to_openai()["function"]["arguments"] == "{}"
    assert call.to_anthropic()["input"] == {}


# --- what is no reply -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "provider", ["anthropic", "openai", "xai", "deepseek", "google", "openai_responses", "bedrock"]
)
@pytest.mark.parametrize("response", [{}, {"foo": 1}, {"unheard_of": {"name": "x"}}])
def test_what_is_no_answer_of_the_provider_is_refused(provider: str, response: Any) -> None:
    with pytest.raises(InputError) as caught:
        get_parser(provider).parse(response)
    assert caught.value.path == "$"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("provider", "response", "path"),
    [
        (
            "anthropic",
            {"content": [{"type": "text", "text": ""}, {"type": "tool_use", "id": "c"}]},
            "$.content[1].name",
        ),
        ("anthropic", [{"type": "tool_use", "id": "c", "name": "a", "input": []}], "$[0].input"),
        ("anthropic", {"content": 5}, "$.content"),
        ("anthropic", [5], "$[0]"),
        ("openai", {"choices": 5}, "$.choices"),
        (
            "openai",
            {"choices": [{"message": {"tool_calls": [{"function": {}}]}}]},
            "$.choices[0].message.tool_calls[0]",
        ),
        ("openai", {"type": "unheard_of"}, "$"),
        ("google", {"candidates": [{"content": {"parts": [{"functionCall": 5}]}}]}, "$.candidates[0].content.parts[0]"),
        ("cohere", {"message": {"role": "wizard"}}, "$.message.role"),
    ],
)
def test_an_error_has_its_path(provider: str, response: Any, path: str) -> None:
    with pytest.raises(InputError) as caught:
        get_parser(provider).parse(response)
    assert caught.value.path.startswith(path)


def test_an_answer_that_is_an_error_is_not_taken_for_one_without_calls() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ProviderError, match="Overloaded"):
        get_parser("anthropic").parse(body)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google", "mistral"])
def test_text_that_is_not_json_is_refused_with_a_hint_how_to_read_it(provider: str) -> None:
    parser = get_parser(provider)
    with pytest.raises(JSONError, match="read_text"):
        parser.parse("<tool>ls -la</tool>")
    with pytest.raises(InputError, match="read_text"):
        parser.parse('"a string"')
    with pytest.raises(TruncatedJSONError):
        parser.parse('{"content": [{"type": "tool_use"')
    with pytest.raises(InputError):
        parser.parse(b"\xff")


def read_lines(text: str) -> list[ToolCall]:
    return [ToolCall("", line.removeprefix("! ")) for line in text.splitlines() if line.startswith("! ")]


def test_a_reader_of_text_is_plugged_in_where_there_are_no_calls_of_the_protocol() -> None:
    parser = ReplyParser("xai", format="custom", read_text=read_lines)
    assert (parser.format, parser.provider_id) == ("custom", "xai")
    calls = parser.parse("! ls\n! pwd")
    assert [call.name for call in calls] == ["ls", "pwd"]
    assert len({call.id for call in calls}) == 2
    assert [call.name for call in parser.parse(b"! ls\nwell")] == ["ls"]
    body: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": "! ls"}}]}
    assert [call.name for call in parser.parse(body)] == ["ls"]
    body["choices"][0]["message"]["tool_calls"] = [CHAT_CALL]
    assert [call.name for call in parser.parse(body)] == ["calc"]
    assert parser.parse({"choices": [{"message": {"role": "assistant", "content": None}}]}) == []
    assert parser.parse("") == []


# --- calls in text ----------------------------------------------------------------------------------

IN_TEXT: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    ("xai", '<x.ai:tool_call>{"name": "calc", "arguments": {"x": 5}}</x.ai:tool_call>', [("calc", {"x": 5})]),
    ("xai", '<xai:function_call name="ls"><parameter name="p">/</parameter></xai:function_call', [("ls", {"p": "/"})]),
    ("xai", '<tool_call name="ls"><arguments>{"p": "/"}</arguments></tool_call>', [("ls", {"p": "/"})]),
    ("deepseek", '<tool>{"name": "calc", "arguments": {"x": 5}}</tool>', [("calc", {"x": 5})]),
    ("deepseek", '<tool name="ls" p="/"/>', [("ls", {"p": "/"})]),
    ("deepseek", 'One.\n<tool name="ls"><p>/</p></tool>', [("ls", {"p": "/"})]),
    (
        "deepseek",
        '<tool name="ls" p="/"/><tool>pwd</tool> and <tool name="ls"><p>/home</p></tool>',
        [("ls", {"p": "/"}), ("bash", {"command": "pwd"}), ("ls", {"p": "/home"})],
    ),
    ("xai", "Nothing to call.", []),
    ("deepseek", "", []),
]


@pytest.mark.parametrize(("provider", "text", "expected"), IN_TEXT)
def test_R_003_16_calls_that_xai_and_deepseek_models_write_as_text_are_read_in_their_order(
    provider: str, text: str, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    parser = get_parser(provider)
    calls = parser.parse(text)
    assert [(call.name, call.arguments) for call in calls] == expected
    assert len({call.id for call in calls}) == len(calls)
    body = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    assert [(call.name, call.arguments) for call in parser.parse(body)] == expected
    assert parser.parse(text) == parser.parse(text.encode()) == calls


def test_R_003_18_a_command_in_a_tag_is_a_call_of_bash() -> None:
    (call,) = get_parser("deepseek").parse("<tool>ls -la</tool>")
    assert (call.name, call.arguments) == ("bash", {"command": "ls -la"})
    (other,) = get_parser("deepseek").parse("<tool>ls -lb</tool>")
    assert call.id != other.id


@pytest.mark.parametrize("provider", ["xai", "deepseek"])
def test_of_a_provider_whose_text_is_read_a_cut_answer_is_no_answer_without_calls(provider: str) -> None:
    with pytest.raises(TruncatedJSONError):
        get_parser(provider).parse('{"choices": [{"message": {"content": "')
    with pytest.raises(InputError):
        get_parser(provider).parse(b"\xff")
    cut = {"xai": '<xai:function_call name="ls"><parameter name="p">/', "deepseek": '<tool name="ls"><p>/'}[provider]
    assert get_parser(provider).parse(cut) == []


@pytest.mark.parametrize(
    ("response", "format", "provider"),
    [
        ('"tool_use" "tool_calls": [ <tool></tool> <x.ai:tool_call>', "xai", "xai"),
        ('"tool_use" "tool_calls": [ <tool>ls</tool>', "xml", "deepseek"),
        ('{"content": "tool_use", "tool_calls": []}', "openai", "openai"),
        ('{"content": [{"type": "tool_use", "id": "c1", "name": "calc"}]}', "anthropic", "anthropic"),
    ],
)
def test_R_003_6_a_format_is_detected_by_the_first_pattern_and_has_a_parser(
    response: str, format: str, provider: str
) -> None:
    assert detect_format(response) == format
    assert get_parser(detect_format(response)) is get_parser(provider)


@pytest.mark.parametrize("response", ["", "no call", "<tool>never closed", 5])
def test_R_003_6_an_unknown_format_is_an_error(response: Any) -> None:
    with pytest.raises(InputError):
        detect_format(response)


def test_what_is_too_large_or_too_deep_is_refused() -> None:
    parser = ReplyParser("openai", limits=Limits(max_bytes=100))
    with pytest.raises(LimitError):
        parser.parse(json.dumps({"content": "x" * 200}))
    with pytest.raises(LimitError):
        parser.parse({"content": "x" * 200})
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    for provider in SEED_PROVIDERS:
        with pytest.raises(LimitError):
            get_parser(provider).parse({"content": [], "input": deep})
        with pytest.raises(LimitError):
            get_parser(provider).parse("[" * 100_000)


@pytest.mark.parametrize("response", [None, 5, 1.5, True, object(), ("a",), bytearray(b"{}")])
def test_other_things_are_refused(response: Any) -> None:
    with pytest.raises(InputError, match="expected text, bytes"):
        get_parser("openai").parse(response)


KEYS = st.sampled_from(
    [
        *(
            "type",
            "content",
            "id",
            "name",
            "input",
            "choices",
            "message",
            "role",
            "tool_calls",
            "function",
            "arguments",
        ),
        *("candidates", "parts", "functionCall", "args", "output", "custom", "function_call", "error", "toolUse"),
    ]
)
SCALARS = st.sampled_from(["tool_use", "function", "assistant", "text", "custom", "message", "", None, 5, 1e300, True])
HOSTILE = st.recursive(
    SCALARS | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.law
@given(st.sampled_from(profiles.names()), HOSTILE | st.text() | st.binary())
def test_hostile_replies_give_calls_or_an_error_of_ours(provider: str, response: Any) -> None:
    try:
        calls = get_parser(provider).parse(response)
    except (InputError, ProviderError):
        return
    for call in calls:
        assert call.id.strip()
        assert isinstance(call.name, str)


# --- round trips ------------------------------------------------------------------------------------

CALLS = st.builds(ToolCall, texts.filter(str.strip), texts, json_objects)


@pytest.mark.law
@given(CALLS)
def test_R_003_14_a_call_survives_both_shapes(call: ToolCall) -> None:
    assert get_parser("anthropic").parse(call.to_anthropic()) == [call]
    assert names_and_arguments(get_parser("openai").parse(call.to_openai())) == names_and_arguments([call])


@pytest.mark.law
@given(st.lists(CALLS, max_size=4))
def test_R_003_14_calls_survive_both_shapes_as_text(calls: list[ToolCall]) -> None:
    for provider, shapes in (
        ("anthropic", [call.to_anthropic() for call in calls]),
        ("openai", [call.to_openai() for call in calls]),
    ):
        assert names_and_arguments(get_parser(provider).parse(json.dumps(shapes))) == names_and_arguments(calls)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("<tool>ls -la</tool>", [("bash", "bash", {"command": "ls -la"})]),
        ('<tool name="bash">ls -la</tool>', [("bash", "function", {"command": "ls -la"})]),
        ('<tool name="calc" test="a > b" x="5"/>', [("calc", "function", {"test": "a > b", "x": "5"})]),
        (
            '<tool name="write"><text><div><b>hi</b></div></text></tool>',
            [("write", "function", {"text": "<div><b>hi</b></div>"})],
        ),
        ('<tool name="rm"><path>a</path><path>b</path></tool>', [("rm", "function", {"path": ["a", "b"]})]),
        ('<tool name="rm"><path>a</path>', []),
    ],
)
@pytest.mark.parametrize("is_reply", [False, True])
def test_R_003_16_R_003_18_R_003_T10_no_argument_of_a_tag_is_lost(
    text: str, calls: list[tuple[str, str, dict[str, Any]]], is_reply: bool
) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": text}}]} if is_reply else text
    found = get_parser("deepseek").parse(answer)
    assert [(call.name, call.type, call.arguments) for call in found] == calls
    assert [validate_tool_call(call) for call in found] == found


def test_R_003_14_the_seeds_round_trip() -> None:
    canonical = ToolCall("1", "test", {"x": 5})
    assert get_parser("anthropic").parse(canonical.to_anthropic()) == [canonical]
    assert get_parser("openai").parse(canonical.to_openai()) == [canonical]


# --- validation -------------------------------------------------------------------------------------


def test_R_003_9_a_call_without_a_name_is_refused() -> None:
    for name in ("", "  "):
        with pytest.raises(InputError, match="missing name"):
            validate_tool_call(ToolCall("c", name, {}))


def test_R_003_9_T2_a_missing_id_is_made_and_the_new_call_is_returned() -> None:
    call = ToolCall("", "calc", {"x": 5})
    valid = validate_tool_call(call, provider="google", index=3, turn_key="t")
    assert call.id == ""
    assert valid.id == ids.mint("google", None, "calc", "t", 3)
    assert valid == validate_tool_call(call, provider="gemini", index=3, turn_key="t")
    others = [validate_tool_call(call), validate_tool_call(call, index=1), validate_tool_call(call, turn_key="u")]
    assert len({valid.id, *(other.id for other in others)}) == 4


@pytest.mark.parametrize("settings", [{}, {"turn_key": "t"}, {"index": 0}])
def test_R_003_9_two_different_calls_without_ids_get_two_ids(settings: dict[str, Any]) -> None:
    calls = [
        ToolCall("", "calc", {"x": 5}),
        ToolCall("", "calc", {"x": 6}),
        ToolCall("", "calc", raw_input='{"x": 7}'),
        ToolCall("", "calc", raw_input="<x>7</x>"),
        ToolCall("", "calculate", {"x": 5}),
        ToolCall("", "calc", raw_input="\ud800", type="custom"),
        ToolCall("", "calc", raw_input="\ud801", type="custom"),
    ]
    validated = [validate_tool_call(call, **settings).id for call in calls]
    assert len({*validated}) == len(calls)
    assert all(ids.is_canonical(id) for id in validated)
    assert validated == [validate_tool_call(call, **settings).id for call in calls]
    spelled_otherwise = validate_tool_call(ToolCall("", "calc", raw_input='{ "x":5 }'), **settings)
    assert spelled_otherwise.id == validated[0]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"x": 5}', {"x": 5}),
        ('"{\\"x\\": 5}"', {"x": 5}),
        ("<x>5</x>", {"x": "5"}),
        ("<args><city>Oslo</city><n>1</n></args>", {"city": "Oslo", "n": "1"}),
        ("", {}),
        (None, {}),
    ],
)
def test_R_003_9_arguments_are_read_from_the_raw_input_as_json_then_xml(raw: str | None, expected: Any) -> None:
    valid = validate_tool_call(ToolCall("c", "calc", raw_input=raw))
    assert valid.arguments == expected
    assert valid.raw_input == raw


@pytest.mark.parametrize("raw", ["ls -la", "[1]", "<x>5</y>", "7"])
def test_R_003_9_raw_input_that_is_neither_is_an_error(raw: str) -> None:
    with pytest.raises(ArgumentsError):
        validate_tool_call(ToolCall("c", "calc", raw_input=raw))


@pytest.mark.parametrize("raw", ['{"x": "a', "<x>5"])
def test_R_003_9_raw_input_that_was_cut_is_never_completed(raw: str) -> None:
    with pytest.raises(TruncatedArgumentsError):
        validate_tool_call(ToolCall("c", "calc", raw_input=raw))


def test_R_003_9_arguments_count_more_than_the_raw_input() -> None:
    assert validate_tool_call(ToolCall("c", "calc", {"x": 1}, raw_input="no JSON")).arguments == {"x": 1}


def test_R_003_9_T2_T6_strings_are_cleaned_in_the_call_that_is_returned() -> None:
    call = ToolCall("c", "edit", {"a": "x\x00\r\ny", "deep": [{"b": "\x07"}]}, raw_input="as it came")
    valid = validate_tool_call(call)
    assert valid.arguments == {"a": "x\r\ny", "deep": [{"b": ""}]}
    assert valid.raw_input is None
    assert validate_tool_call(call, strict=True).arguments == {"a": "x\ny", "deep": [{"b": ""}]}
    assert call.arguments == {"a": "x\x00\r\ny", "deep": [{"b": "\x07"}]}


@pytest.mark.parametrize("provider", ["", None, 7])
def test_R_003_9_an_id_is_made_only_for_a_named_provider(provider: Any) -> None:
    with pytest.raises(InputError, match="expected the name of a provider"):
        validate_tool_call(ToolCall("", "calc"), provider=provider)


def test_a_valid_call_is_returned_itself_and_free_text_stays() -> None:
    for call in (ToolCall("c", "calc", {"x": 5}), ToolCall("c", "patch", type="custom", raw_input="*** \x07 Begin")):
        assert validate_tool_call(call) is call


@pytest.mark.parametrize(
    "call",
    [
        None,
        {"id": "c", "name": "calc"},
        ToolCall(5, "calc"),  # type: ignore[arg-type]
        ToolCall("c", None),  # type: ignore[arg-type]
        ToolCall("c", "calc", [1]),  # type: ignore[arg-type]
        ToolCall("c", "calc", raw_input=5),  # type: ignore[arg-type]
    ],
)
def test_values_of_the_wrong_type_are_refused(call: Any) -> None:
    with pytest.raises(InputError):
        validate_tool_call(call)


@pytest.mark.law
@given(texts, texts, json_objects | st.none(), st.none() | texts | json_values.map(json.dumps))
def test_R_003_9_validation_gives_a_valid_call_or_an_error_of_ours(
    id: str, name: str, arguments: dict[str, Any] | None, raw: str | None
) -> None:
    try:
        valid = validate_tool_call(ToolCall(id, name, arguments, raw_input=raw))
    except InputError:
        return
    assert valid.id.strip()
    assert isinstance(valid.arguments, dict)
    assert validate_tool_call(valid) is valid
