"""Values of the wrong type that were answered with an exception of Python's, one case of each class."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolglot
from support.hostile.fuzz_gateway import gateway_between, reply_case, whole_answer, wrong
from support.hostile.type_mutations import HALF_A_PAIR, nested
from support.upstream.raw_server import RawServer, listening
from toolglot import InputError, ProviderError, ToolCall
from toolglot.conversation import ids
from toolglot.upstream import HttpRequest, HttpTransport, TimeLimits

HI: Any = {"role": "user", "content": "hi"}


def _chat(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-4", "messages": [HI], **more}


def _saying(*parts: Any) -> dict[str, Any]:
    return _chat(messages=[HI, {"role": "assistant", "content": [*parts]}, HI])


# --- functions of old times -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("functions", "where"),
    [
        (True, "$.functions: expected an array, got true or false"),
        (0.5, "$.functions: expected an array, got a number"),
        ({"name": "f"}, "$.functions: expected an array, got an object"),
        ([None], "$.functions[0]: expected an object, got null"),
        ([{"name": "f"}, {"name": 7}], "$.functions[1].name: expected a string"),
        ([{"name": "f", "parameters": True}], "$.functions[0].parameters: expected an object"),
    ],
)
@pytest.mark.parametrize("target", ["anthropic", "gemini", "mistral"])
def test_functions_that_are_none_are_named_with_their_path(functions: Any, where: str, target: str) -> None:
    with pytest.raises(InputError) as refused:
        toolglot.convert(_chat(functions=functions), source="openai", target=target)
    assert str(refused.value).startswith(where)


@pytest.mark.parametrize("functions", [None, []])
def test_no_functions_are_no_tools(functions: Any) -> None:
    assert "tools" not in toolglot.convert(_chat(functions=functions), source="openai", target="anthropic").body


@pytest.mark.parametrize(
    "part",
    [
        {"type": "function_call"},
        {"type": "function_call", "function_call": True},
        {"type": "function_call", "function_call": []},
        {"type": "function_call", "function_call": {"name": {}, "arguments": 7}},
        {"type": "function_call", "name": {}, "arguments": []},
        {"type": "function", "content": {}, "name": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai", "cohere"])
def test_a_part_that_only_looks_like_an_old_call_is_carried_or_refused(part: Any, target: str) -> None:
    with contextlib.suppress(InputError):
        json.loads(toolglot.convert(_saying(part), source="openai", target=target).data)


def test_a_part_of_a_reply_that_only_looks_like_an_old_call_is_none() -> None:
    message = {
        "role": "assistant",
        "content": [{"type": "function_call"}],
        "function_call": {"name": "f", "arguments": "{}"},
    }
    body = {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    out = toolglot.convert_reply(body, source="openai", target="anthropic")
    assert [call.name for call in out.reply.turn.calls] == ["f"]


# --- strings that no text in UTF-8 can hold ------------------------------------------------------------


def test_half_a_surrogate_pair_in_arguments_that_are_one_text_is_read() -> None:
    text = (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="ls"><｜DSML｜parameter name="arguments" string="false">'
        f'{{"{HALF_A_PAIR}p": "/"}}</｜DSML｜parameter></｜DSML｜invoke>\n</｜DSML｜function_calls>'
    )
    parsed = toolglot.parse_text(text, dialect="deepseek_v32", tools=[{"name": "ls"}])
    assert [call.name for call in parsed.calls] == ["ls"]


def test_half_a_surrogate_pair_in_a_body_is_an_error_of_ours() -> None:
    with pytest.raises(InputError, match="half of a surrogate pair"):
        toolglot.lint(f'{{"model": "{HALF_A_PAIR}"}}', "openai")


@pytest.mark.parametrize("source", ["", "openai"])
def test_half_a_surrogate_pair_in_a_chunk_is_read(source: str) -> None:
    accumulator = toolglot.ToolCallAccumulator(source)
    accumulator.add_chunk(f'{{"choices": [{{"delta": {{"content": "{HALF_A_PAIR}"}}}}]}}')
    accumulator.finish()


# --- values of any type -----------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "an id that is a number": (lambda: ids.to_openai(7), "id"),  # type: ignore[arg-type]
    "a prefix that is a list": (lambda: ids.translate("call_1", to=[]), "to"),  # type: ignore[arg-type]
    "a raw id that is a list": (lambda: ids.canonical("openai", [], "f", "k", 0), "raw_id"),  # type: ignore[arg-type]
    "an id of 5,000 digits": (lambda: ids.canonical("openai", 10**5000, "f", "k", 0), "raw_id"),
    "a call's id of 5,000 digits": (
        lambda: toolglot.History(provider="openai").append(toolglot.Turn("assistant", (ToolCall(10**5000, "f"),))),  # type: ignore[arg-type]
        "$.blocks[0].id",
    ),
    "a name that is a number": (lambda: ids.canonical("openai", "a", 7, "k", 0), "tool_name"),  # type: ignore[arg-type]
    "a provider that is a list": (lambda: ids.canonical([], "a", "f", "k", 0), "provider"),  # type: ignore[arg-type]
    "a model that is true": (lambda: toolglot.parse_text("x", model=True), "model"),  # type: ignore[arg-type]
    "a call's name that is a list": (lambda: toolglot.write_calls([ToolCall("", [], {})], "hermes"), "calls[0].name"),  # type: ignore[arg-type]
    "arguments that are a number": (
        lambda: toolglot.write_calls([ToolCall("", "f", 7)], "glm45"),  # type: ignore[arg-type]
        "calls[0].arguments",
    ),
    "raw input that is a list": (
        lambda: toolglot.write_calls([ToolCall("", "f", None, raw_input=[])], "hermes"),  # type: ignore[arg-type]
        "calls[0].raw_input",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_of_the_wrong_type_is_named(name: str) -> None:
    act, path = WRONG[name]
    with pytest.raises(InputError) as refused:
        act()
    assert refused.value.path == path


def test_a_number_that_python_does_not_print_is_not_written() -> None:
    with pytest.raises(InputError, match="too many digits"):
        toolglot.to_prompt([{"name": "f", "parameters": {"default": 10**5000}}], toolglot.Conversation(), "hermes")


def test_an_answer_with_a_number_of_any_size_is_handed_on(tmp_path: Path) -> None:
    citation = {"title": "t", "sourceContent": [10**4000], "location": {"documentPage": {"documentIndex": 0}}}
    block = {"citationsContent": {"content": [{"text": "hi"}], "citations": [citation]}}
    body = {"output": {"message": {"role": "assistant", "content": [block]}}, "stopReason": "end_turn"}
    with gateway_between(tmp_path) as gateway:
        gateway.answers[1] = whole_answer(json.dumps(body).encode())
        assert gateway.ask(*reply_case("anthropic", "bedrock", 1, 0, streams=False)).status == 200
        assert gateway.complaints() == []


@pytest.mark.parametrize("required", [0.5, True, [["a"]], [None], {"a": 1}])
def test_a_malformed_schema_of_an_output_has_no_strict_form(required: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": required}
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    out = toolglot.repair(_chat(response_format=format_), target="openai")
    assert out.body["response_format"]["json_schema"]["strict"] is False


def test_a_reference_of_arguments_that_nests_too_deep_to_be_printed_leads_nowhere() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": nested(5000)}}}
    assert toolglot.arguments.parse('{"a": "[1]"}', schema=schema).arguments == {"a": "[1]"}


@pytest.mark.parametrize("value", [nested(5000), 10**5000], ids=["deep", "huge"])
@pytest.mark.parametrize("field", ["reasoning_effort", "temperature", "max_tokens", "response_format"])
def test_the_referee_shows_no_more_of_a_value_than_can_be_printed(field: str, value: Any) -> None:
    toolglot.lint(_chat(**{field: value}), "openai")


def test_a_note_of_a_stored_conversation_that_is_no_type_is_not_written() -> None:
    chosen = {"type": "function", "function": {"name": "f"}}
    tools = [{"type": "function", "function": {"name": "f"}}]
    out = toolglot.convert(_chat(tools=tools, tool_choice=chosen), source="openai", target="openai")
    stored = {**json.loads(toolglot.dump(out.rendered.conversation)), "version": 1}
    stored["conversation"]["options"]["tool_choice"]["extra"] = {"openai_chat": {"~type": {}}}
    history = toolglot.History(toolglot.load(json.dumps(stored)), provider="openai")
    assert toolglot.request_for(history, target="openai", model="gpt-4").body["tool_choice"] == chosen


# --- another protocol than HTTP -----------------------------------------------------------------------

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\x01a"
LIMITS = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0)


@pytest.mark.parametrize("head", [SWITCH, b"HTTP/1.1 101 X\r\n\r\n"], ids=["upgrade", "bare"])
def test_a_101_is_a_failure_of_the_provider_and_leaves_no_traceback(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def says(server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.next_request(reader)
        writer.write(head)
        await writer.drain()
        await reader.read()

    async def steps() -> str:
        async with asyncio.timeout(120), listening(says) as server:
            transport = HttpTransport(environ={})
            try:
                await transport.send(HttpRequest(url=server.url, body=b"{}"), LIMITS)
            except ProviderError as error:
                return error.failure.message
            finally:
                await transport.close()
        return ""

    with caplog.at_level(logging.DEBUG):
        assert "status 101, a change of protocol" in asyncio.run(steps())
    assert "Traceback" not in caplog.text


def test_a_101_to_a_gateway_is_its_upstreams_failure_and_leaves_no_traceback(tmp_path: Path) -> None:
    with gateway_between(tmp_path) as gateway:
        for number, client in enumerate(("anthropic", "openai_chat", "gemini")):
            gateway.answers[number] = SWITCH if number % 2 else whole_answer(b"{}", 101)
            got = gateway.ask(*reply_case(client, "openai", number, 0, streams=bool(number)))
            assert wrong(got, from_upstream=True) is None
            assert b"status 101" in got.data
        assert gateway.complaints() == []
