"""The OpenAI Responses protocol: lossless in both directions, paired by call_id only, and strict about types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from support.conversations.strategies import conversations
from support.protocols.body_laws import same_json
from support.protocols.items_openai_responses import call, input_text, message, output, output_text
from support.protocols.strategies.openai_responses import openai_responses_replies
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Issuer, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn, dump, load
from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Reply,
    Sampling,
    ServerTool,
    StopReason,
    ToolChange,
    ToolChoice,
)
from toolglot.protocols.openai_responses import reply, request
from toolglot.protocols.openai_responses.form import ResponsesCall, ResponsesMedia, ResponsesText


@pytest.mark.law
@given(openai_responses_replies)
def test_law_3_a_reply_comes_back_through_the_stored_form_too(body: Fields) -> None:
    found = reply.decode(body)
    stored = load(dump(Conversation((found.turn,))))
    again = Reply(stored.turns[0], found.stop, found.usage, found.id, found.model, found.extra, found.form)
    assert same_json(reply.encode(again), body)


@pytest.mark.law
@given(conversations)
def test_any_conversation_is_written_so_that_it_can_be_read_with_the_same_ids(made: Conversation) -> None:
    body = request.encode(made)
    found = request.decode(json.loads(json.dumps(body)))
    assert same_json(request.encode(found), body)
    assert _ids(found) == _ids(made)


def _ids(conversation: Conversation) -> tuple[list[str], list[str]]:
    """Of the calls and of the results, in order."""
    return (
        [call.id for turn in conversation.turns for call in turn.calls],
        [result.call_id for turn in conversation.turns for result in turn.results],
    )


BASE: Fields = {"model": "gpt", "input": "hi"}


def turns_of(*items: Fields) -> tuple[Turn, ...]:
    return request.decode({"input": list(items)}).turns


def blocks_of(*items: Fields) -> tuple[Block, ...]:
    (turn,) = turns_of(*items)
    return turn.blocks


def items_of(*turns: Turn) -> list[Fields]:
    found: list[Fields] = request.encode(Conversation(turns))["input"]
    return found


# --- what a request means ---------------------------------------------------------------------------


def test_decoding_a_request() -> None:
    body = {
        "model": "gpt",
        "instructions": "be brief",
        "input": "hi",
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
            {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}},
            {"type": "namespace", "name": "mcp__x", "description": "n", "tools": []},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
        "max_output_tokens": 9,
        "temperature": 1,
        "top_p": 0.5,
        "stream": True,
        "user": "u1",
        "store": False,
        "safety_identifier": "s",
    }
    found = request.decode(body)
    assert [(turn.role, turn.text) for turn in found.turns] == [("system", "be brief"), ("user", "hi")]
    options = found.options
    assert options.tool_choice == ToolChoice("named", ("f",), parallel=False)
    assert options.reasoning == Reasoning(effort="high", summary="auto")
    assert options.output == OutputFormat("json_schema", "n", {"type": "object"}, strict=True)
    assert options.sampling == Sampling(max_tokens=9, temperature=1, top_p=0.5)
    assert (options.stream, options.user, found.model) == (True, "u1", "gpt")
    function, custom, namespace, hosted = found.tools
    assert function == ToolSpec("f", "d", {"type": "object"}, strict=True)
    assert custom == ToolSpec("apply_patch", type="custom", format={"type": "grammar", "syntax": "lark"})
    assert (namespace.name, namespace.description) == ("mcp__x", "n")
    assert (namespace.type, namespace.issuer) == ("namespace", None)
    assert (hosted.type, hosted.issuer) == ("web_search", Issuer("openai_responses"))
    assert found.extra is not None
    assert found.extra["openai_responses"].items() >= {"store": False, "safety_identifier": "s"}.items()


def test_a_run_of_the_models_items_is_one_turn_but_two_messages_are_two_and_every_other_item_its_own() -> None:
    turns = turns_of(
        message("developer", input_text("be brief")),
        {"role": "user", "content": "hi"},
        message("user", input_text("there")),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xx"},
        message("assistant", output_text("a"), output_text("b"), id="msg_1"),
        message("assistant", output_text("c")),
        call(id="fc_1"),
        {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": '*** "Begin"\\'},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        output(),
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
        {"type": "local_shell_call_output", "id": "l", "output": "x"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
        {"type": "additional_tools", "role": "developer", "tools": []},
        call(call_id="call_3"),
    )
    assert [turn.role for turn in turns] == [
        *("developer", "user", "user", "assistant", "assistant"),
        *("tool", "tool", "tool", "user", "developer", "assistant"),
    ]
    assert [type(block) for block in turns[3].blocks] == [Thinking, Text, Text]
    assert [type(block) for block in turns[4].blocks] == [Text, ToolCall, ToolCall, ServerTool]
    assert (turns[3].text, turns[4].text) == ("ab", "c")
    assert [(found.id, found.type, found.raw_input) for found in turns[4].calls] == [
        ("call_1", "function", None),
        ("call_2", "custom", '*** "Begin"\\'),
    ]
    assert [result.call_id for turn in turns for result in turn.results] == ["call_1", "call_2", "l"]
    assert [type(block) for turn in turns[7:10] for block in turn.blocks] == [ToolResult, Opaque, ToolChange]


def test_R_002_7_B5_a_call_is_known_by_its_call_id_and_not_by_its_items_id() -> None:
    found, result = turns_of(call(id="fc_9", call_id="call_abc"), output(id="fco_9", call_id="call_abc"))
    assert found.calls[0].id == result.results[0].call_id == "call_abc"


def test_a_call_without_a_call_id_is_known_by_its_items_id() -> None:
    item = {"type": "function_call", "id": "fc_9", "name": "f", "arguments": "{}"}
    (found,) = blocks_of(item)
    assert isinstance(found, ToolCall)
    assert found.id == "fc_9"
    assert items_of(Turn("assistant", (found,))) == [item]
    renamed = ToolCall("call_1", found.name, found.arguments, extra=found.extra, form=found.form)
    assert items_of(Turn("assistant", (renamed,))) == [{**item, "call_id": "call_1"}]


@pytest.mark.parametrize(
    ("written", "arguments", "raw", "done"),
    [
        ('{"a":1}', {"a": 1}, None, ""),
        ('{"a": 1}', {"a": 1}, '{"a": 1}', ""),
        ('{"a":1.50}', {"a": 1.5}, '{"a":1.50}', ""),
        ('{"a":1,"a":2}', {"a": 2}, '{"a":1,"a":2}', "a key occurs twice in one object; the last one is used"),
        ('{"a":', None, '{"a":', ""),
        ("[1]", None, "[1]", ""),
        ("", {}, "", "a blank string means no arguments"),
        ('"{\\"a\\":1}"', {"a": 1}, '"{\\"a\\":1}"', "the whole value was JSON text in a JSON string"),
        ('{"a":' + "9" * 5000 + "}", None, '{"a":' + "9" * 5000 + "}", ""),
        ('{"a":' * 190 + "1" + "}" * 190, None, '{"a":' * 190 + "1" + "}" * 190, ""),
    ],
)
def test_arguments_are_parsed_and_their_text_is_kept_where_it_differs(
    written: str, arguments: dict[str, Any] | None, raw: str | None, done: str
) -> None:
    item = call(arguments=written)
    (found,) = blocks_of(item)
    form = None if raw is None else ResponsesCall(has_own_arguments=True)
    fixes = (done,) if done else ()
    assert found == ToolCall("call_1", "f", arguments, raw_input=raw, form=form, argument_fixes=fixes)
    assert items_of(*load(dump(Conversation((Turn("assistant", (found,)),)))).turns) == [item]


def test_D3_arguments_from_elsewhere_are_written_as_the_object_that_they_mean() -> None:
    made = ToolCall("c", "f", {"a": 1}, raw_input='"{\\"a\\":1}"')
    odd = ToolCall("c", "f", raw_input="nonsense")
    assert [item["arguments"] for item in items_of(Turn("assistant", (made, odd)))] == ['{"a":1}', "nonsense"]


def test_D9_reasoning_has_its_summary_or_its_text_and_keeps_what_only_its_issuer_reads() -> None:
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}, {"type": "later"}]
    content = [{"type": "reasoning_text", "text": "c"}]
    one, other = blocks_of(
        {"type": "reasoning", "id": "rs_1", "summary": summary, "content": content, "encrypted_content": "xx"},
        {"type": "reasoning", "summary": [], "content": content},
    )
    assert isinstance(one, Thinking)
    assert (one.text, one.id, one.redacted) == ("a\n\nb", "rs_1", "xx")
    assert isinstance(other, Thinking)
    assert (other.text, other.id, other.redacted) == ("c", None, None)


def test_media_is_read_from_parts() -> None:
    blocks = blocks_of(
        message(
            "user",
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
            {"type": "input_image", "image_url": "https://example.invalid/a.png"},
            {"type": "input_image", "file_id": "f1"},
            {"type": "input_image", "detail": "low"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
            {"type": "input_file", "file_data": "aGk="},
            {"type": "input_file", "file_url": "u"},
            {"type": "input_file", "filename": "lost"},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "later"}},
            {"type": "refusal", "refusal": "no"},
        )
    )
    found = [
        (block.kind, block.media_type, block.data, block.url, block.file_id, block.name)
        for block in blocks
        if isinstance(block, Media)
    ]
    assert found == [
        ("image", "image/png", "aGk=", None, None, None),
        ("image", "", None, "https://example.invalid/a.png", None, None),
        ("image", "", None, None, "f1", None),
        ("document", "application/pdf", "aGk=", None, None, "a.pdf"),
        ("file", "", "aGk=", None, None, None),
        ("file", "", None, "u", None, None),
        ("audio", "audio/mpeg", "aGk=", None, None, None),
    ]
    unknown = [block.kind for block in blocks if isinstance(block, Opaque)]
    assert unknown == ["input_image", "input_file", "input_audio"]
    assert blocks[-1] == Text("no", form=ResponsesText(type="refusal"), is_refusal=True)


def test_an_output_may_be_parts_or_nothing() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    undetailed = ResponsesMedia(has_no_detail=True)
    results = [turn.results[0] for turn in turns_of(output(output=[input_text("a"), picture]), output(output=None))]
    assert results[0].content == (Text("a"), Media("image", "image/png", data="aGk=", form=undetailed))
    assert results[1].content is None
    assert all(result.is_complete and not result.is_error for result in results)


@pytest.mark.parametrize(
    ("written", "mode", "names"),
    [
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "required", ()),
        ("later", "auto", ()),
        ({"type": "function", "name": "f"}, "named", ("f",)),
        ({"type": "custom", "name": "f"}, "named", ("f",)),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "mcp"}],
            },
            *("required", ("f",)),
        ),
        ({"type": "web_search_preview"}, "auto", ()),
    ],
)
def test_decoding_a_tool_choice(written: Any, mode: str, names: tuple[str, ...]) -> None:
    choice = request.decode({**BASE, "tool_choice": written}).options.tool_choice
    assert choice is not None
    assert (choice.mode, choice.names, choice.parallel) == (mode, names, None)


@pytest.mark.parametrize(
    ("written", "kind", "schema"),
    [
        ({"type": "text"}, "text", None),
        ({"type": "json_object"}, "json", None),
        ({"type": "json_schema", "name": "n", "schema": {"a": 1}}, "json_schema", {"a": 1}),
        ({"type": "json_schema", "schema": {"a": 1}}, "json_schema", {"a": 1}),
        ({"type": "grammar"}, "text", None),
    ],
)
def test_decoding_a_format(written: Fields, kind: str, schema: Fields | None) -> None:
    body = {**BASE, "text": {"format": written, "verbosity": "low"}}
    found = request.decode(body)
    assert found.options.output is not None
    assert (found.options.output.kind, found.options.output.schema) == (kind, schema)
    assert request.encode(found) == body


def test_parallel_calls_may_be_set_without_a_choice() -> None:
    found = request.decode({**BASE, "parallel_tool_calls": True})
    assert found.options.tool_choice is not None
    assert (found.options.tool_choice.mode, found.options.tool_choice.parallel) == ("auto", True)
    assert "tool_choice" not in request.encode(found)


def test_a_request_like_codex_sends_comes_back() -> None:
    body = {
        "model": "gpt-5.5",
        "input": [
            message("developer", input_text("rules")),
            message("user", input_text("fix it"), {"type": "input_image", "image_url": "data:image/png;base64,aGk="}),
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAA"},
            message("assistant", output_text("On it."), id="msg_1", phase="commentary"),
            call(id="fc_1", namespace="mcp__x", arguments='{"cmd": ["ls"]}'),
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch", "input": "*** x"},
            output(output=[input_text("a"), {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]),
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done!"},
            {"type": "tool_search_call", "call_id": "ts_1", "execution": "client", "arguments": {"query": "q"}},
            {"type": "tool_search_output", "call_id": "ts_1", "execution": "client", "tools": []},
            {"id": "msg_0"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "shell",
                "description": "d",
                "strict": False,
                "parameters": {"type": "object"},
            },
            {"type": "function", "name": "plain", "parameters": None},
            {"type": "custom", "name": "apply_patch", "description": "d", "format": {"type": "grammar"}},
            {"type": "namespace", "name": "mcp__x", "tools": []},
            {"type": "tool_search", "execution": "client"},
            {"type": "web_search", "external_web_access": False},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "context": None},
        "text": {"verbosity": "low"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
    }
    found = request.decode(body)
    assert [turn.role for turn in found.turns] == [
        *("developer", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"),
    ]
    assert same_json(request.encode(found), body)


# --- what was changed since -------------------------------------------------------------------------


def test_a_message_whose_first_part_was_taken_out_is_still_one() -> None:
    _, thought, second, third = blocks_of(
        message("assistant", output_text("zero")),
        {"type": "reasoning", "summary": []},
        message("assistant", output_text("a"), output_text("b"), id="msg_1"),
    )
    assert items_of(Turn("assistant", (thought, third, Text("new")))) == [
        {"type": "reasoning", "summary": []},
        message("assistant", output_text("b"), output_text("new")),
    ]
    assert items_of(Turn("assistant", (second, Text("new")))) == [
        message("assistant", output_text("a"), id="msg_1"),
        {"type": "message", "role": "assistant", "content": "new"},
    ]


def test_a_message_that_was_a_string_stays_readable_when_it_grows() -> None:
    (first,) = blocks_of({"type": "message", "role": "assistant", "content": "a"})
    _, joined = blocks_of(message("assistant", output_text("x"), output_text("b")))
    assert items_of(Turn("assistant", (first, joined))) == [
        {"type": "message", "role": "assistant", "content": "a"},
        message("assistant", output_text("b")),
    ]
    (turn,) = request.decode(BASE).turns
    grown = Turn("user", (*turn.blocks, Text("b")), extra=turn.extra)
    assert items_of(grown) == [message("user", input_text("hi"), input_text("b"))]


def test_allowed_tools_that_were_renamed_are_written_by_their_new_names() -> None:
    written = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    choice = request.decode({**BASE, "tool_choice": written}).options.tool_choice
    assert choice is not None
    renamed = Conversation(options=Options(tool_choice=ToolChoice("allowed", ("g",), form=choice.form)))
    assert request.encode(renamed)["tool_choice"] == {**written, "tools": [{"type": "function", "name": "g"}]}


# --- what was made elsewhere ------------------------------------------------------------------------


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("system", (Text("be brief"),)),
            Turn("developer", (Text("b"),)),
            Turn("user", (Text("hi"), Media("image", "image/png", data="aGk="))),
            Turn(
                "assistant",
                (
                    Thinking("hm", "sig"),
                    Text("a"),
                    Text("b"),
                    Media("image", url="u"),
                    ToolCall("toolu_1", "f", {"a": [1, "é"]}),
                    ServerTool("anthropic", "call", {"type": "server_tool_use"}),
                    Opaque("anthropic", {"type": "compaction"}),
                ),
            ),
            Turn("user", (ToolResult("toolu_1", "out"), Text("and?"))),
        ),
        (ToolSpec("f", "d", {"type": "object"}), ToolSpec("g", strict=True), ToolSpec("web", type="web_search_2025")),
        Options(
            tool_choice=ToolChoice("allowed", ("f",), parallel=False),
            reasoning=Reasoning("on", budget_tokens=5),
            output=OutputFormat("json_schema", schema={"type": "object"}),
        ),
    )
    assert request.encode(made) == {
        "instructions": "be brief",
        "input": [
            message("developer", input_text("b")),
            message(
                "user",
                input_text("hi"),
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
            ),
            {
                "type": "reasoning",
                "id": "rs_b82e2178ecf4d0c5859dc2e169d7fed8673f9f6e",
                "summary": [{"type": "summary_text", "text": "hm"}],
            },
            {"type": "message", "role": "assistant", "content": "ab"},
            {"type": "function_call", "call_id": "toolu_1", "name": "f", "arguments": '{"a":[1,"é"]}'},
            {"type": "function_call_output", "call_id": "toolu_1", "output": "out"},
            message("user", input_text("and?")),
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": False},
            {"type": "function", "name": "g", "parameters": {"type": "object", "properties": {}}, "strict": True},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_schema", "name": "output", "schema": {"type": "object"}}},
    }


def test_R_002_9_a_lone_tool_result_becomes_a_function_call_output_with_its_call_id() -> None:
    assert items_of(Turn("user", (ToolResult("fc_x", "sunny", is_complete=True),))) == [
        {"type": "function_call_output", "call_id": "fc_x", "output": "sunny"}
    ]


def test_law_9_many_texts_are_joined_in_linear_time() -> None:
    (item,) = items_of(Turn("assistant", (Text("hm" * 50),) * 100_000))
    assert len(item["content"]) == 10_000_000


def test_B5_a_call_made_elsewhere_has_no_item_id() -> None:
    assert items_of(Turn("assistant", (ToolCall("call_abc", "f"),))) == [
        {"type": "function_call", "call_id": "call_abc", "name": "f", "arguments": "{}"}
    ]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (ToolCall("c", "p", type="custom", raw_input='"\\é'), '"\\é'),
        (ToolCall("c", "p", {"input": "x"}, "custom"), "x"),
        (ToolCall("c", "p", {"input": [1]}, "custom"), "[1]"),
        (ToolCall("c", "p", type="custom"), ""),
    ],
)
def test_E8_a_custom_call_made_elsewhere_and_its_result_are_free_text(made: ToolCall, written: str) -> None:
    assert items_of(Turn("assistant", (made,)), Turn("tool", (ToolResult("c", "done"),))) == [
        {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": written},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
    ]


PICTURE: Fields = {"type": "input_image", "image_url": "u", "detail": "auto"}


@pytest.mark.parametrize(
    ("result", "written"),
    [
        (ToolResult("c", "x", is_error=True), "Error: x"),
        (ToolResult("c", "Error: x", is_error=True), "Error: x"),
        (ToolResult("c", error="boom", is_error=True), "Error: boom"),
        (ToolResult("c"), ""),
        (ToolResult("c", result={"a": [1.0]}), '{"a":[1.0]}'),
        (ToolResult("c", (Text("a"), Opaque("anthropic", {}), Text("b"))), "a\nb"),
        (
            ToolResult("c", (Text("a"), Media("image", url="u"), Opaque("anthropic", {}))),
            [input_text("a"), PICTURE],
        ),
        (
            ToolResult("c", (Text("a"), Media("image", url="u")), is_error=True),
            [input_text("Error: a"), PICTURE],
        ),
        (
            ToolResult("c", (Media("image", url="u"),), is_error=True),
            [input_text("Error:"), PICTURE],
        ),
        (ToolResult("c", (Media("video", url="u"),), is_error=True), [input_text("Error:")]),
        (
            ToolResult("c", (Media("image", url="u"), Text("a")), is_error=True),
            [PICTURE, input_text("Error: a")],
        ),
        (ToolResult("c", (Text("Error:a"), Text("b")), is_error=True), "Error:a\nb"),
        (ToolResult("c", (), is_error=True, error="boom"), "Error: boom"),
        (ToolResult("c", "", is_error=True), "Error:"),
    ],
)
def test_a_result_made_elsewhere_is_text_unless_it_holds_more(result: ToolResult, written: Any) -> None:
    assert items_of(Turn("tool", (result,))) == [
        {"type": "function_call_output", "call_id": "c", "output": written},
    ]


@pytest.mark.parametrize(
    ("media", "written"),
    [
        (Media("document", "application/pdf", data="aGk=", name="a.pdf"), "data:application/pdf;base64,aGk="),
        (Media("audio", "audio/mpeg", data="aGk="), {"data": "aGk=", "format": "mp3"}),
        (Media("audio", "audio/wav", data="aGk="), {"data": "aGk=", "format": "wav"}),
        (Media("audio", url="u"), None),
        (Media("video", url="u"), None),
        (Media("image"), None),
    ],
)
def test_foreign_media_is_written_where_the_protocol_has_it(media: Media, written: Any) -> None:
    items = items_of(Turn("tool", (media,)))
    found = [part.get("file_data") or part.get("input_audio") for item in items for part in item["content"]]
    assert found == ([] if written is None else [written])


def test_several_system_turns_and_empty_turns_keep_their_positions() -> None:
    system = Turn("system", (Text("a"), Text("b")))
    assert items_of(system, Turn("user"), Turn("assistant"), Turn("tool")) == [
        message("system", input_text("a"), input_text("b")),
        message("user"),
    ]
    assert request.encode(Conversation()) == {"input": []}


def test_plain_choices_and_formats_made_elsewhere_are_written() -> None:
    named = Options(tool_choice=ToolChoice("named", ("f",)), output=OutputFormat("json"))
    body = request.encode(Conversation(options=named))
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["text"] == {"format": {"type": "json_object"}}
    assert (
        request.encode(Conversation(options=Options(tool_choice=ToolChoice("required"))))["tool_choice"] == "required"
    )


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"input": 3}, r"^\$\.input: expected a string or an array of items, got a whole number"),
        ({"input": ["hi"]}, r"^\$\.input\[0\]: expected an object, got a string"),
        ({"input": [{}]}, r"^\$\.input\[0\]\.type: expected a string, but the field is missing"),
        ({"input": [{"type": 1}]}, r"^\$\.input\[0\]\.type: expected a string, got a whole number"),
        ({"input": [{"role": "robot", "content": ""}]}, r"^\$\.input\[0\]\.role: expected one of user, assistant"),
        ({"input": [{"role": "user", "content": 3}]}, r"^\$\.input\[0\]\.content: expected a string or an array"),
        ({"input": [{"role": "user"}]}, r"^\$\.input\[0\]\.content: expected a string or an array of parts, got null"),
        ({"input": [message("user", {"text": ""})]}, r"^\$\.input\[0\]\.content\[0\]\.type: expected a string, but"),
        ({"input": [message("assistant", {"type": "output_text"})]}, r"\.content\[0\]\.text: expected a string, but"),
        (
            {"input": [message("user", {"type": "input_image", "image_url": {"url": "u"}})]},
            r"\.content\[0\]\.image_url: expected a string, got an object",
        ),
        (
            {"input": [message("user", {"type": "input_audio", "input_audio": {"data": 1}})]},
            r"\.content\[0\]\.input_audio\.data: expected a string, got a whole number",
        ),
        ({"input": [call(arguments={})]}, r"^\$\.input\[0\]\.arguments: expected a string, got an object"),
        ({"input": [call(call_id=7)]}, r"^\$\.input\[0\]\.call_id: expected a string, got a whole number"),
        ({"input": [call(name=None)]}, r"^\$\.input\[0\]\.name: expected a string, got null"),
        ({"input": [output(call_id=None, id="x")]}, r"^\$\.input\[0\]\.call_id: expected a string, got null"),
        ({"input": [output(output=1)]}, r"^\$\.input\[0\]\.output: expected a string or an array of parts"),
        ({"input": [{"type": "reasoning", "summary": [1]}]}, r"^\$\.input\[0\]\.summary\[0\]: expected an object"),
        ({"instructions": []}, r"^\$\.instructions: expected a string, got an array"),
        ({"tools": [{"name": "f"}]}, r"^\$\.tools\[0\]\.type: expected a string, but the field is missing"),
        ({"tools": [{"type": "function", "name": 3}]}, r"^\$\.tools\[0\]\.name: expected a string"),
        ({"tool_choice": 3}, r"^\$\.tool_choice: expected a string or an object, got a whole number"),
        ({"tool_choice": {}}, r"^\$\.tool_choice\.type: expected a string, but the field is missing"),
        ({"tool_choice": {"type": "function"}}, r"^\$\.tool_choice\.name: "),
        ({"tool_choice": {"type": "allowed_tools", "tools": [1]}}, r"^\$\.tool_choice\.tools\[0\]: expected an object"),
        ({"parallel_tool_calls": 1}, r"^\$\.parallel_tool_calls: expected true or false"),
        ({"reasoning": {"effort": 1}}, r"^\$\.reasoning\.effort: "),
        ({"text": {"format": 1}}, r"^\$\.text\.format: expected an object"),
        ({"text": {"format": {}}}, r"^\$\.text\.format\.type: expected a string, but"),
        ({"temperature": "hot"}, r"^\$\.temperature: expected a number, got a string"),
        ({"stream": "yes"}, r"^\$\.stream: expected true or false, got a string"),
        ({"user": 1}, r"^\$\.user: expected a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        request.decode({**BASE, **change})


@pytest.mark.parametrize(
    ("stop", "status", "details"),
    [
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("filter", "completed", None),
        ("error", "failed", None),
        ("tool_calls", "completed", None),
    ],
)
def test_a_reply_that_ended_otherwise_than_its_status_says_gets_another(
    stop: StopReason, status: str, details: dict[str, str] | None
) -> None:
    body: Fields = {"id": "resp_1", "model": "m", "output": [], "status": "completed", "incomplete_details": None}
    written = reply.encode(replace(reply.decode(body), stop=stop))
    assert (written["status"], written["incomplete_details"]) == (status, details)


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled", "queued", "in_progress", "new"])
def test_a_status_that_still_says_how_a_reply_ended_stays(status: str) -> None:
    body: Fields = {"id": "resp_1", "model": "m", "output": [], "status": status, "incomplete_details": None}
    assert reply.encode(reply.decode(body)) == body
