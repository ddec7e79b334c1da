"""The middleware chain and the schema translator: R-003-5, -7, -12, the seed's usage example, T2 and T5."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from toolglot import (
    ArgumentsError,
    InputError,
    LimitError,
    MiddlewareChain,
    Policy,
    ProviderError,
    Request,
    Response,
    SchemaTranslator,
    ServerToolError,
    ToolCall,
    ToolglotError,
    ToolingMiddleware,
    ToolMiddleware,
    ToolParser,
    ToolSpec,
    profiles,
)
from toolglot.conversation import ids

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANTHROPIC_TOOL: dict[str, Any] = {"name": "get_weather", "description": "Get weather", "input_schema": SCHEMA}
FUNCTION: dict[str, Any] = {"name": "get_weather", "description": "Get weather", "parameters": SCHEMA}
OPENAI_TOOL: dict[str, Any] = {"type": "function", "function": FUNCTION}
RESPONSES_TOOL: dict[str, Any] = {"type": "function", **FUNCTION}
SPEC = ToolSpec("get_weather", "Get weather", SCHEMA)
TRANSLATOR = SchemaTranslator()


def anthropic_body(name: str = "get_weather", **fields: Any) -> str:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"city": "Oslo"}, **fields}
    return json.dumps({"content": [{"type": "text", "text": "Let me see."}, block]})


# --- the seed's example -----------------------------------------------------------------------------


def test_R_003_12_the_seeds_usage_example() -> None:
    middleware = ToolingMiddleware()
    request = Request(
        model="claude-sonnet-4.5",
        provider_id="anthropic",
        messages=[{"role": "user", "content": "What's the weather?"}],
        tools=[ANTHROPIC_TOOL],
    )
    middleware.process_request(request)
    assert request.tools == [ANTHROPIC_TOOL]
    response = Response(anthropic_body(), "anthropic", "anthropic", request=request)
    middleware.process_response(response)
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    assert response.get_tool_calls("anthropic") == response.tool_calls_formatted == [tool_use]
    function = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    assert response.get_tool_calls("openai") == [{"id": "toolu_1", "type": "function", "function": function}]
    generic = {"tool_call_id": "toolu_1", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    assert response.get_tool_calls("generic") == [generic]
    assert response.get_tool_calls() == response.tool_calls == [ToolCall("toolu_1", "get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize("requested", ["openai", "", "generic", "unheard of"])
def test_R_003_12_the_output_is_anthropics_on_request_and_otherwise_openais(requested: str) -> None:
    response = Response(anthropic_body(), "anthropic", requested)
    ToolingMiddleware().process_response(response)
    assert response.tool_calls_formatted == response.get_tool_calls("openai")
    with pytest.raises(InputError, match="unknown format"):
        response.get_tool_calls("unheard of")


def test_the_example_of_the_tree_shows_both_providers() -> None:
    example = Path(__file__).parents[1] / "examples" / "middleware.py"
    ran = subprocess.run([sys.executable, "-W", "error", str(example)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("canonical: ") == 2
    assert "functionDeclarations" in ran.stdout
    assert "get weather {'city': 'Oslo'}" in ran.stdout


def test_the_chain_works_without_the_gateway_and_its_packages() -> None:
    code = (
        "import sys\n"
        "from toolglot import MiddlewareChain, Response, ToolingMiddleware\n"
        f"response = Response({anthropic_body()!r}, 'anthropic')\n"
        "MiddlewareChain([ToolingMiddleware()]).process_response(response)\n"
        "assert response.tool_calls\n"
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert not set(ran.stdout.split()) & {"aiohttp", "uvicorn", "anyio", "asyncio", "ssl"}


# --- requests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [ANTHROPIC_TOOL, OPENAI_TOOL, RESPONSES_TOOL, SPEC])
def test_R_003_12_tools_of_any_shape_become_the_providers(tool: Any) -> None:
    expected: list[tuple[str, Any]] = [
        ("anthropic", ANTHROPIC_TOOL),
        ("google", {"functionDeclarations": [FUNCTION]}),
        ("cohere", OPENAI_TOOL),
        ("bedrock", {"toolSpec": {**ANTHROPIC_TOOL, "inputSchema": {"json": SCHEMA}}}),
    ]
    del expected[3][1]["toolSpec"]["input_schema"]
    for provider, written in expected:
        request = Request(provider_id=provider, tools=[tool])
        ToolingMiddleware().process_request(request)
        assert request.tools == [written]
    request = Request(provider_id="openai", tools=[tool])
    ToolingMiddleware().process_request(request)
    assert request.tools is not None
    (found,) = request.tools
    assert found["function"] | {"strict": False} == FUNCTION | {"strict": False}


def test_R_003_12_a_request_without_tools_is_left_alone() -> None:
    request = Request("m", "openai", [{"role": "user", "content": "hi"}])
    ToolingMiddleware().process_request(request)
    assert (request.tools, request.translated) == (None, None)
    request.tools = []
    ToolingMiddleware().process_request(request)
    assert request.tools == []


def test_a_retry_may_pass_the_chain_again_and_new_tools_are_translated() -> None:
    request = Request(provider_id="google", tools=[ANTHROPIC_TOOL])
    chain = MiddlewareChain([ToolingMiddleware()])
    chain.process_request(request)
    tools, translated = request.tools, request.translated
    chain.process_request(request)
    assert request.tools is tools
    assert request.translated is translated
    request.tools = [{**ANTHROPIC_TOOL, "name": "other"}]
    chain.process_request(request)
    assert request.tools[0]["functionDeclarations"][0]["name"] == "other"


def test_a_request_whose_tools_are_refused_stays_as_it_was() -> None:
    web_search = {"type": "web_search_20250305", "name": "web_search"}
    request = Request(provider_id="openai", tools=[web_search])
    with pytest.raises(ServerToolError):
        ToolingMiddleware().process_request(request)
    assert (request.tools, request.translated) == ([web_search], None)
    ToolingMiddleware(policy=Policy(server_tools="drop")).process_request(request)
    assert request.tools == []
    assert request.translated is not None
    assert request.translated.report


# --- responses --------------------------------------------------------------------------------------


def test_a_renamed_tool_comes_back_under_its_own_name() -> None:
    request = Request(provider_id="anthropic", tools=[{**ANTHROPIC_TOOL, "name": "get weather!"}])
    middleware = ToolingMiddleware()
    middleware.process_request(request)
    assert request.tools is not None
    name = request.tools[0]["name"]
    assert name != "get weather!"
    response = Response(anthropic_body(name), request=request)
    middleware.process_response(response)
    assert response.get_tool_calls("anthropic")[0]["name"] == "get weather!"
    assert request.translated is not None
    assert [entry.action for entry in request.translated.report if entry.action == "renamed"] == ["renamed"]


def test_a_free_text_tool_comes_back_as_free_text() -> None:
    request = Request(provider_id="anthropic", tools=[{"type": "custom", "custom": {"name": "patch"}}])
    middleware = ToolingMiddleware()
    middleware.process_request(request)
    response = Response(anthropic_body("patch", input={"input": "*** Begin"}), request=request)
    middleware.process_response(response)
    (call,) = response.tool_calls
    assert (call.type, call.raw_input, call.arguments) == ("custom", "*** Begin", None)
    assert response.get_tool_calls("anthropic")[0]["input"] == {"input": "*** Begin"}


def test_R_003_11_R_003_T9_more_calls_than_a_provider_is_known_for_are_reported_and_none_is_dropped() -> None:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(11)]
    for provider, is_reported in (("xai", True), ("openai", True), ("mistral", False), ("anthropic", False)):
        body: Any = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
        if provider == "anthropic":
            body = {"content": [{"type": "tool_use", "id": call["id"], "name": "f", "input": {}} for call in calls]}
        response = Response(body, provider_id=provider)
        MiddlewareChain([ToolingMiddleware()]).process_response(response)
        assert len(response.tool_calls) == 11
        known = f"{provider} is known to return at most"
        assert [known in warning for warning in response.warnings] == [True] * is_reported


def test_R_003_12_T2_what_validation_made_of_a_call_is_what_comes_out() -> None:
    body = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "say", "args": {"a": "x\x00"}}}]}}]}
    response = Response(body, "google", "anthropic")
    ToolingMiddleware().process_response(response)
    (written,) = response.tool_calls_formatted
    assert ids.is_canonical(written["id"])
    assert written["input"] == {"a": "x"}
    assert response.tool_calls[0].id == written["id"]


def test_R_003_12_T5_a_call_without_arguments_has_an_empty_object() -> None:
    response = Response({"id": "c", "type": "function", "function": {"name": "now", "arguments": None}}, "openai")
    ToolingMiddleware().process_response(response)
    assert response.tool_calls_formatted[0]["function"]["arguments"] == "{}"
    bare = Response(None, tool_calls=[ToolCall("c", "now")])
    assert [bare.get_tool_calls(form)[0] for form in ("anthropic", "generic")] == [
        {"type": "tool_use", "id": "c", "name": "now", "input": {}},
        {"tool_call_id": "c", "tool_name": "now", "parameters": {}},
    ]


def test_the_same_call_made_again_later_gets_another_id_where_the_provider_gives_none() -> None:
    body = {"functionCall": {"name": "now", "args": {}}}
    made = []
    for count in (1, 3, 3):
        response = Response(body, request=Request(provider_id="google", messages=[{}] * count))
        ToolingMiddleware().process_response(response)
        made.append(response.tool_calls[0].id)
    assert made[0] != made[1] == made[2]
    assert all(map(ids.is_canonical, made))


def test_R_003_12_a_response_that_cannot_be_read_stays_as_it_was() -> None:
    bad = {"id": "c", "type": "function", "function": {"name": "now", "arguments": "no JSON"}}
    response = Response([bad], "openai", tool_calls=[ToolCall("old", "old")])
    with pytest.raises(ArgumentsError):
        ToolingMiddleware().process_response(response)
    assert response.tool_calls == [ToolCall("old", "old")]
    with pytest.raises(ProviderError):
        ToolingMiddleware().process_response(Response({"error": {"message": "no", "type": "x"}}, "openai"))
    with pytest.raises(InputError, match="name of a provider"):
        ToolingMiddleware().process_response(Response("{}"))
    with pytest.raises(InputError, match="unknown provider 'acme'"):
        ToolingMiddleware().process_response(Response("{}", "acme"))


class LineParser:
    format = "custom"
    provider_id = "acme"

    def parse(self, response: Any) -> list[ToolCall]:
        return [ToolCall("", name) for name in response.split()]


def test_a_parser_a_translator_and_a_validator_of_ones_own_are_used() -> None:
    class Loud(SchemaTranslator):
        def translate(self, tools: Any, provider_id: str, model: str = "", *, policy: Policy = Policy()) -> Any:  # noqa: B008
            loud = [{**tool, "name": tool["name"].upper()} for tool in tools]
            return super().translate(loud, provider_id, model, policy=policy)

    parser: ToolParser = LineParser()
    response = Response("ls pwd")
    ToolingMiddleware(parser=parser).process_response(response)
    assert [call.name for call in response.tool_calls] == ["ls", "pwd"]
    assert len({call.id for call in response.tool_calls}) == 2
    middleware = ToolingMiddleware(
        parser=parser, translator=Loud(), validator=lambda call: ToolCall("same", call.name, raw_input="raw")
    )
    request = Request(provider_id="anthropic", tools=[ANTHROPIC_TOOL])
    middleware.process_request(request)
    assert request.tools is not None
    assert request.tools[0]["name"] == "GET_WEATHER"
    middleware.process_response(response)
    assert {call.id for call in response.tool_calls} == {"same"}


# --- the chain --------------------------------------------------------------------------------------


class Step:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def process_request(self, request: Request) -> None:
        self.log.append(f"{self.name} request {request.provider_id}")

    def process_response(self, response: Response) -> None:
        self.log.append(f"{self.name} response {len(response.tool_calls)}")


def test_R_003_12_requests_pass_the_steps_in_order_and_responses_in_the_opposite_order() -> None:
    log: list[str] = []
    inner: ToolMiddleware = MiddlewareChain([Step("b", log), ToolingMiddleware(), Step("c", log)])
    chain = MiddlewareChain(step for step in (Step("a", log), inner))
    chain.process_request(Request(provider_id="anthropic", tools=[ANTHROPIC_TOOL]))
    chain.process_response(Response(anthropic_body(), "anthropic"))
    assert log == [
        *("a request anthropic", "b request anthropic", "c request anthropic"),
        *("c response 0", "b response 1", "a response 1"),
    ]
    MiddlewareChain([]).process_request(Request())


@pytest.mark.parametrize("thing", [None, "x", object(), LineParser()])
def test_what_is_no_step_is_refused(thing: Any) -> None:
    with pytest.raises(InputError, match="expected a middleware") as caught:
        MiddlewareChain([ToolingMiddleware(), thing])
    assert caught.value.path == "steps[1]"


# --- schemas ----------------------------------------------------------------------------------------


def test_R_003_7_schemas_change_shape_both_ways_with_the_seeds_keys() -> None:
    assert TRANSLATOR.anthropic_to_openai([ANTHROPIC_TOOL]) == [OPENAI_TOOL]
    assert TRANSLATOR.openai_to_anthropic([OPENAI_TOOL]) == [ANTHROPIC_TOOL]
    extra = {"cache_control": {"type": "ephemeral"}}
    assert TRANSLATOR.anthropic_to_openai([ANTHROPIC_TOOL | extra | {"type": "custom"}]) == [OPENAI_TOOL]
    strict = {"type": "function", "function": FUNCTION | {"strict": True}}
    assert TRANSLATOR.openai_to_anthropic([strict]) == [ANTHROPIC_TOOL]


def test_R_003_7_entries_that_hold_no_function_are_skipped() -> None:
    entries: list[Any] = [{"type": "web_search"}, {"function": "x"}, {"function": None}, OPENAI_TOOL, {}]
    assert TRANSLATOR.openai_to_anthropic(entries) == [ANTHROPIC_TOOL]
    tools = [{"type": "web_search_20250305", "name": "web_search"}, ANTHROPIC_TOOL]
    assert TRANSLATOR.anthropic_to_openai(tools) == [OPENAI_TOOL]


def test_R_003_7_what_a_definition_does_not_say_is_left_out_but_for_input_schema() -> None:
    assert TRANSLATOR.anthropic_to_openai([{"name": "now", "description": None}]) == [
        {"type": "function", "function": {"name": "now"}}
    ]
    first, second = TRANSLATOR.openai_to_anthropic([{"function": {"name": "now"}}, {"function": {"name": "then"}}])
    assert first == {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    assert first["input_schema"] is not second["input_schema"]


@pytest.mark.parametrize("tools", [None, 5, "tools", {}, [5], [None], [{}], [{"name": 5}]])
def test_R_003_7_what_are_no_definitions_are_refused(tools: Any) -> None:
    functions: Any = tools
    if isinstance(tools, list):
        functions = [{"function": tool} if isinstance(tool, dict) else tool for tool in tools]
    with pytest.raises(InputError):
        TRANSLATOR.anthropic_to_openai(tools)
    with pytest.raises(InputError):
        TRANSLATOR.openai_to_anthropic(functions)
    with pytest.raises(InputError):
        TRANSLATOR.to_provider_format(tools, "openai")


def test_R_003_7_definitions_that_are_too_deep_are_refused() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"properties": deep}
    tool: Any = {"name": "a", "input_schema": deep}
    lists: list[list[Any]] = [[tool], [SPEC, tool]]
    for tools in lists:
        with pytest.raises(LimitError):
            TRANSLATOR.to_provider_format(tools, "openai")
    with pytest.raises(LimitError):
        TRANSLATOR.anthropic_to_openai([tool])


def test_R_003_7_to_provider_format_uses_the_profile_of_the_model() -> None:
    optional = {
        "type": "object",
        "properties": {"a": {"type": "string", "description": "Optional."}},
        "required": ["a"],
    }
    tool = {"name": "odd name", "input_schema": optional}
    (written,) = TRANSLATOR.to_provider_format([tool], "openai", "gpt-4o")
    assert "required" not in written["function"]["parameters"]
    assert " " not in written["function"]["name"]
    (kept,) = TRANSLATOR.to_provider_format([tool], "openai", policy=Policy(required="keep"))
    assert kept["function"]["parameters"]["required"] == ["a"]


def test_R_003_7_a_list_may_mix_shapes_but_not_with_tools_that_a_provider_runs() -> None:
    mixed: list[Any] = [
        SPEC,
        {**ANTHROPIC_TOOL, "name": "b"},
        {"type": "function", "function": {**FUNCTION, "name": "c"}},
        {**RESPONSES_TOOL, "name": "d"},
        {"name": "e", "parameters": SCHEMA},
        {"name": "f"},
    ]
    mixed[4]["type"] = "function"
    tools = TRANSLATOR.to_provider_format(mixed, "anthropic")
    assert [tool["name"] for tool in tools] == ["get_weather", "b", "c", "d", "e", "f"]
    assert all(tool["input_schema"] == SCHEMA for tool in tools[:5])
    with pytest.raises(InputError, match="cannot be mixed") as caught:
        TRANSLATOR.to_provider_format([SPEC, {"type": "web_search"}], "openai")
    assert caught.value.path == "$.tools[1]"


TOOLS = st.fixed_dictionaries(
    {"name": texts, "description": texts, "input_schema": json_objects},
)


@pytest.mark.law
@given(st.lists(TOOLS, max_size=4))
def test_R_003_7_definitions_survive_both_shapes(tools: list[dict[str, Any]]) -> None:
    assert TRANSLATOR.openai_to_anthropic(TRANSLATOR.anthropic_to_openai(tools)) == tools


TOOL_KEYS = st.sampled_from(["type", "name", "function", "input_schema", "parameters", "custom", "description"])
HOSTILE_TOOLS = st.dictionaries(TOOL_KEYS, json_values | st.sampled_from(["function", "custom", "a"]), max_size=5)


@pytest.mark.law
@given(st.lists(HOSTILE_TOOLS | json_values, max_size=3), st.sampled_from(profiles.names()))
def test_hostile_definitions_give_tools_or_an_error(tools: list[Any], provider: str) -> None:
    request = Request(provider_id=provider, tools=tools)
    try:
        ToolingMiddleware().process_request(request)
    except InputError:
        assert request.tools is tools
        return
    assert isinstance(request.tools, list)


@pytest.mark.law
@given(st.sampled_from(profiles.names()), st.lists(st.builds(ToolCall, texts, texts, json_objects), max_size=3))
def test_R_003_12_calls_that_come_through_are_the_calls_that_were_made(provider: str, calls: list[ToolCall]) -> None:
    protocol = profiles.get(provider).protocol
    if protocol not in ("anthropic", "openai_chat"):
        return
    shapes = [call.to_anthropic() if protocol == "anthropic" else call.to_openai() for call in calls]
    response = Response(json.dumps(shapes), provider, "anthropic")
    try:
        ToolingMiddleware().process_response(response)
    except ToolglotError:
        assert any(not call.name.strip() for call in calls)
        return
    found = response.tool_calls_formatted
    assert [call["name"] for call in found] == [call.name for call in calls]
    assert all(new["id"] == call.id or not call.id.strip() for new, call in zip(found, calls, strict=True))


def test_profiles_of_ones_own_reach_the_tools() -> None:
    overrides = profiles.Overrides(
        '[profiles.box]\nextends = "openai_compatible"\n[profiles.box.rules]\n"names.max_length" = 20\n'
    )
    request = Request(provider_id="box", tools=[{**ANTHROPIC_TOOL, "name": "a_name_of_many_characters"}])
    ToolingMiddleware(overrides=overrides).process_request(request)
    assert request.tools is not None
    assert len(request.tools[0]["function"]["name"]) <= 20
