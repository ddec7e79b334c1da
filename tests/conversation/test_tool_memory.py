"""Tools that come again: with a warm memory or a cold one, a request and its report are the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import Reply, Text, ToolCall, Turn, Usage, arguments, convert_reply, jsontext, profiles, read_request
from toolglot.conversation.tool_memory import MAX_CONVERSIONS, MAX_LIST_BYTES, RememberedTools, ToolMemory
from toolglot.errors import InputError
from toolglot.protocols.base import codec
from toolglot.protocols.fields import argument_text
from toolglot.render.tools import remembered
from toolglot.translate.requests import ReceivedRequest

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "count": {"type": ["integer", "null"], "minimum": 1}},
    "required": ["path", "gone"],
    "additionalProperties": False,
}
NAMES = ["read_file", "mcp__a.b/c d", "x" * 70, "read_file"]


def body_of(source: str, names: list[str], called: str = "read_file", **more: Any) -> bytes:
    """A request with a call of a tool, and its result."""
    if source == "anthropic":
        tools: list[Any] = [{"name": name, "description": "says é", "input_schema": SCHEMA} for name in names]
        call = {"type": "tool_use", "id": "toolu_1", "name": called, "input": {"path": "a"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "b"}
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
        body = {"model": "m", "max_tokens": 10, "tools": tools, "messages": messages}
    elif source == "openai":
        functions = [{"name": name, "parameters": SCHEMA} for name in names]
        function = {"name": called, "arguments": '{"path":"a"}'}
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "b"},
        ]
        body = {"model": "m", "messages": messages, "tools": [{"type": "function", "function": f} for f in functions]}
    else:
        tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": True} for name in names]
        items = [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "call_1", "name": called, "arguments": '{"path":"a"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "b"},
        ]
        body = {"model": "m", "input": items, "tools": tools}
    return json.dumps({**body, **more}).encode()


TARGETS = [
    ("openai", "gpt-4.1"),
    ("anthropic", "claude-sonnet-4-5"),
    ("openai_responses", "gpt-5"),
    ("gemini", "gemini-3-pro"),
    ("mistral", "mistral-large"),
    ("deepseek", "deepseek-chat"),
    ("bedrock", "anthropic.claude"),
]


def outcome(received: ReceivedRequest, target: tuple[str, str]) -> Any:
    name, model = target
    try:
        out = received.for_target(name, model=model)
    except InputError as error:
        return type(error), str(error)
    call = ToolCall("call_2", next(iter(out.rendered.tools.keys), (None, "none"))[1], {"path": 1})
    reply = codec("openai_chat").reply.encode(Reply(Turn("assistant", (call,)), "tool_calls", Usage(1, 2), "r", "m"))
    back = convert_reply(msgspec.json.encode(reply), source="openai", target="anthropic", request=out)
    return out.data, out.body, list(out.report), out.report.ids, back.data, list(back.report)


@pytest.mark.parametrize("source", ["anthropic", "openai", "openai_responses"])
@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["read_file", "write_file"], {}),
        (NAMES, {}),
        (["other"], {}),
        ([f"tool_{number}" for number in range(140)] + ["read_file"], {}),
        (["read_file"], {"stream": True, "temperature": 0.5}),
        (["read_file"], {"unknown": [1]}),
    ],
    ids=["plain", "renamed", "called tool not declared", "too many", "settings", "unknown field"],
)
def test_warm_and_cold_memories_give_the_same(source: str, names: list[str], more: dict[str, Any]) -> None:
    body, memory = body_of(source, names, **more), ToolMemory()
    for target in TARGETS:
        cold = outcome(read_request(body, source=source), target)
        for _ in range(3):
            assert outcome(read_request(body, source=source, memory=memory), target) == cold


NATIVE_TARGETS = {"anthropic": TARGETS[1], "openai": TARGETS[0], "openai_responses": TARGETS[2]}


@pytest.mark.parametrize("source", list(NATIVE_TARGETS))
@pytest.mark.parametrize(
    "names", [["read_file", "write_file"], NAMES, ["other"]], ids=["plain", "renamed", "undeclared"]
)
def test_a_native_request_without_a_memory_is_the_same_each_time(source: str, names: list[str]) -> None:
    remembered.forget()
    outcomes = [outcome(read_request(body_of(source, names), source=source), NATIVE_TARGETS[source]) for _ in range(3)]
    assert outcomes[1] == outcomes[0]
    assert outcomes[2] == outcomes[0]


def test_remembered_tools_do_not_replace_tools_that_differ_in_the_type_of_a_number() -> None:
    remembered.forget()

    def sent(least: object) -> Any:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": least}}}
        tools = [{"name": "read_file", "description": "reads", "input_schema": schema}]
        return outcome(
            read_request(body_of("anthropic", [], tools=tools), source="anthropic"), NATIVE_TARGETS["anthropic"]
        )

    for least in (1, 1.0, 1):
        data = sent(least)[0]
        assert data == sent(least)[0]
        assert repr(msgspec.json.decode(data)["tools"][0]["input_schema"]["properties"]["n"]["minimum"]) == repr(least)


def test_a_call_of_an_undeclared_tool_is_named_after_tools_were_remembered() -> None:
    remembered.forget()
    taken = read_request(body_of("anthropic", ["read_file"]), source="anthropic").for_target("anthropic")
    assert taken.rendered.tools.keys == {(None, "read_file"): "read_file"}
    odd = body_of("anthropic", ["read_file"], called="a b")
    for _ in range(2):
        out = read_request(odd, source="anthropic").for_target("anthropic")
        assert [entry.action for entry in out.report] == ["renamed"]
        assert b'"a b"' not in out.data


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "b"}, {"type": "none"}])
def test_a_tool_choice_is_read_each_time(choice: dict[str, Any]) -> None:
    memory = ToolMemory()
    plain, chosen = (
        body_of("anthropic", ["read_file", "b"]),
        body_of("anthropic", ["read_file", "b"], tool_choice=choice),
    )
    for target in TARGETS:
        for body in (plain, chosen, plain, chosen):
            cold = outcome(read_request(body, source="anthropic"), target)
            assert outcome(read_request(body, source="anthropic", memory=memory), target) == cold


def test_the_called_tools_decide_on_names_each_time() -> None:
    memory = ToolMemory()
    for called in ("read_file", "undeclared.name", "read_file", "x" * 80):
        body = body_of("anthropic", ["read_file", "b c"], called)
        for target in TARGETS:
            cold = outcome(read_request(body, source="anthropic"), target)
            assert outcome(read_request(body, source="anthropic", memory=memory), target) == cold


def test_the_same_tools_are_read_once() -> None:
    memory = ToolMemory()
    first, second = (
        read_request(body_of("anthropic", ["read_file"], stream=value), source="anthropic", memory=memory)
        for value in (True, False)
    )
    assert isinstance(first.conversation.tools, RememberedTools)
    assert second.conversation.tools is first.conversation.tools
    other = read_request(body_of("anthropic", ["read_files"]), source="anthropic", memory=memory)
    assert other.conversation.tools is not first.conversation.tools


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"tools": [], "messages": []}',
        b'{"messages": 1, "tools": [{"name": "a"}]}',
        b'{"tools": [1], "messages": []}',
        b'{"tools": {"name": "a"}, "messages": []}',
        b'{"messages": [], "tools": [{"name": "\xff"}]}',
        b'{"model": "\xff", "messages": [], "tools": [{"name": "abc"}]}',
        b'{"messages": [], "tools": [{"name": "\\ud800", "input_schema": {}}]}',
        b'{"tools": [{"name": "a"}], "tools": [{"name": "b"}], "messages": []}',
        b'{"messages": [{"role": "user", "content": 1}], "tools": [{"name": "abc", "input_schema": {}}]}',
    ],
)
def test_errors_are_the_same_as_without_a_memory(body: bytes) -> None:
    def read(memory: ToolMemory | None) -> Any:
        try:
            received = read_request(body, source="anthropic", memory=memory)
        except InputError as error:
            return type(error), str(error)
        return received.conversation, received.fields

    memory = ToolMemory()
    good = body_of("anthropic", ["read_file"])
    read_request(good, source="anthropic", memory=memory)
    assert read(memory) == read(None)
    assert read(memory) == read(None)


def _with_tools(tools: str, more: str = "", before: str = "") -> bytes:
    other_fields = '"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]'
    return f'{{{before}"tools":{tools},{other_fields}{more}}}'.encode()


KNOWN = '[{"name":"a","input_schema":{}}]'
OTHER = '[{"name":"b","input_schema":{}}]'
PLACEHOLDER = "7401236598012347659"


@pytest.mark.parametrize(
    "body",
    [
        _with_tools(KNOWN),
        _with_tools(KNOWN).replace(b'"tools":', b'"tools": '),
        _with_tools(KNOWN).replace(b'"tools":', b'"tools" :  '),
        _with_tools(KNOWN).replace(b'"tools"', b'"t\\u006fols"'),
        _with_tools(OTHER, before=f'"metadata":{{"tools":{KNOWN}}},'),
        _with_tools(KNOWN, before=f'"metadata":{{"tools":{OTHER}}},'),
        _with_tools(KNOWN, f',"tools":{OTHER}'),
        _with_tools(OTHER, f',"tools":{KNOWN}'),
        _with_tools(KNOWN, f',"t\\u006fols":{OTHER}'),
        _with_tools(PLACEHOLDER, before=f'"metadata":{{"tools":{KNOWN}}},'),
        _with_tools(KNOWN, f',"seed":{PLACEHOLDER}'),
        _with_tools(KNOWN, f',"tools":{PLACEHOLDER}.0'),
        _with_tools(KNOWN[:-1] + "," + OTHER[1:]),
        _with_tools(KNOWN, f',"system":{json.dumps("tools:" + KNOWN)}'),
        _with_tools(KNOWN) + b"}",
        b"[" + _with_tools(KNOWN) + b"]",
    ],
)
def test_known_tools_are_recognised_wherever_they_are_and_nowhere_else(body: bytes) -> None:
    def read(memory: ToolMemory | None) -> Any:
        try:
            received = read_request(body, source="anthropic", memory=memory)
        except InputError as error:
            return type(error), str(error)
        return received.conversation, received.fields, list(received.fields)

    memory = ToolMemory()
    for tools in (OTHER, KNOWN):
        read_request(_with_tools(tools), source="anthropic", memory=memory)
    assert read(memory) == read(None)
    assert read(memory) == read(None)


@given(st.lists(st.sampled_from(range(12)), max_size=40))
@pytest.mark.law
def test_the_tools_of_many_clients_are_distinguished_in_any_order(order: list[int]) -> None:
    memory = ToolMemory(max_lists=10)
    for number in order:
        body = _with_tools(json.dumps([{"name": f"tool_{number}", "input_schema": {}}]))
        found = read_request(body, source="anthropic", memory=memory)
        assert [tool.name for tool in found.conversation.tools] == [f"tool_{number}"]


def test_the_memory_is_bounded() -> None:
    memory = ToolMemory(max_lists=3)
    made = [read_request(body_of("anthropic", [f"t{n}"]), source="anthropic", memory=memory) for n in range(5)]
    for number, received in enumerate(made):
        again = read_request(body_of("anthropic", [f"t{number}"]), source="anthropic", memory=memory)
        assert (again.conversation.tools is received.conversation.tools) is False or number >= 2
    small = ToolMemory(max_bytes=1000)
    bodies = [body_of("anthropic", [f"tool_{n}"]) for n in range(30)]
    kept = [read_request(body, source="anthropic", memory=small).conversation.tools for body in bodies]
    assert read_request(bodies[0], source="anthropic", memory=small).conversation.tools is not kept[0]
    huge = body_of("anthropic", ["a" * MAX_LIST_BYTES])
    assert not isinstance(read_request(huge, source="anthropic", memory=small).conversation.tools, RememberedTools)
    tools = RememberedTools(())
    for number in range(MAX_CONVERSIONS * 3):
        tools.keep(number, number)
        assert len(tools.conversions) <= MAX_CONVERSIONS


def test_a_protocol_whose_tools_are_not_one_field_is_read_as_usual() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
    }
    data, memory = json.dumps(body).encode(), ToolMemory()
    for _ in range(2):
        received = read_request(data, source="gemini", memory=memory)
        assert received.conversation == read_request(data, source="gemini").conversation
        assert not isinstance(received.conversation.tools, RememberedTools)


# --- other short ways -------------------------------------------------------------------------------

PROTOCOLS = ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "cohere", "ollama"]


@pytest.mark.law
@given(
    st.sampled_from(PROTOCOLS),
    st.lists(st.sampled_from(["text", "call"]), max_size=4),
    st.one_of(st.none(), st.tuples(*[st.one_of(st.none(), st.integers(0, 10**6))] * 2)),
    st.text(min_size=1, max_size=5),
)
def test_every_protocol_can_express_a_plain_reply(
    protocol: str, kinds: list[str], counts: tuple[int | None, int | None] | None, words: str
) -> None:
    """The law that lets `convert_reply` hand on a plain reply without reading it again."""
    blocks = tuple(
        Text(words) if kind == "text" else ToolCall(f"call_{index}", "f", {"a": words})
        for index, kind in enumerate(kinds)
    )
    usage = Usage(*counts) if counts is not None else None
    reply = Reply(Turn("assistant", blocks), "tool_calls" if "call" in kinds else "stop", usage, "id", "model")
    coder = codec(protocol).reply
    read = coder.decode(msgspec.json.decode(msgspec.json.encode(coder.encode(reply))))
    assert read.stop == reply.stop
    for name in ("input_tokens", "output_tokens"):
        count = getattr(usage, name, None)
        assert not count or getattr(read.usage, name, None) == count


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False), st.text(max_size=6)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)
ODD = st.sampled_from(
    [
        '{"a":1,"a":2}',
        '{"a":1e400}',
        '{"a":-1E999}',
        '{"a":Infinity}',
        '{"a":NaN}',
        '{"a":"\\ud800"}',
        "{" * 40,
        '{"a":' * 40 + "1" + "}" * 40,
        '{"a":1} x',
        "",
        "[1]",
        '"{}"',
        '{"a":' + "9" * 400 + "}",
        '{"a":0.' + "1" * 400 + "}",
        '{"a":1.0}',
        '{"a": 1}',
        "{'a':1}",
        '\ufeff{"a":1}',
    ]
)


@pytest.mark.law
@given(
    st.one_of(
        ODD,
        JSON.map(json.dumps),
        JSON.map(lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)),
        st.text(max_size=20),
    )
)
def test_short_arguments_are_read_as_long_ones_are(text: str) -> None:
    def slowly() -> Any:
        try:
            value = jsontext.parse(text, limits=argument_text.LIMITS).value
        except InputError:
            return None, text
        if type(value) is not dict:
            return None, text
        return value, None if jsontext.compact(value) == text else text

    assert repr(argument_text.read_object(text)) == repr(slowly())


@pytest.mark.law
@given(st.dictionaries(st.text(max_size=4), st.one_of(st.text(max_size=4), st.booleans(), st.none(), st.integers())))
def test_flat_arguments_are_checked_as_deep_ones_are(value: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}}, "additionalProperties": False}
    nested = {"type": "object", "properties": {"x": schema}}
    flat = arguments.validate(value, schema)
    deep = arguments.validate({"x": value}, nested)
    assert [found.path.removeprefix("$") for found in flat] == [found.path.removeprefix("$.x") for found in deep]
    assert [found.message for found in flat] == [found.message for found in deep]


def test_a_name_of_the_wrong_type_finds_no_profile() -> None:
    with pytest.raises(InputError):
        read_request(b"{}", source=["anthropic"])  # type: ignore[arg-type]
    assert profiles.get("anthropic").name == "anthropic"


@pytest.mark.parametrize("field", [b'"tools": [{"name": "\xff"}]', b'"model": "\xff"', b'"model": [1, "\xff"]'])
def test_errors_in_a_remembered_field_are_raised_with_a_warm_memory_too(field: bytes) -> None:
    good, memory = body_of("anthropic", ["read_file"]), ToolMemory()
    read_request(good, source="anthropic", memory=memory)
    spaced = good.replace(b'"tools": ', b'"tools" : ')
    assert good != spaced
    for body in (b"{" + field + b", " + good[1:], b"{" + field + b", " + spaced[1:]):
        for known in (None, ToolMemory(), memory):
            with pytest.raises(InputError):
                read_request(body, source="anthropic", memory=known)
    for body in (good, spaced):
        assert read_request(body, source="anthropic", memory=memory).fields == json.loads(good)
