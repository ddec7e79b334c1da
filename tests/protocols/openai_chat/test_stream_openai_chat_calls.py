"""Which call a piece of a Chat Completions stream belongs to, whatever a host does (H1 to H6, F1 to F3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.protocols.streams.openai_chat import DONE, Fields, ReadChunks, call, calls, chunk, frames, sse
from toolglot.conversation import Opaque, ToolCall
from toolglot.conversation.events import BlockStarted, InputDelta
from toolglot.protocols.openai_chat import stream_reader
from toolglot.protocols.openai_chat.form import ChatCall

END = (chunk({}, "tool_calls"), DONE)


def read_to_end(*chunks: Any, tools: tuple[str, ...] = ()) -> ReadChunks:
    return ReadChunks([*chunks, *END], tools)


# --- as OpenAI writes it ----------------------------------------------------------------------------


def test_calls_as_openai_writes_them_come_at_once_and_nothing_is_odd() -> None:
    stream = read_to_end(
        chunk({"role": "assistant", "content": None}),
        calls(call(0, "a", "f", "", type="function")),
        calls(call(0, arguments='{"x"')),
        calls(call(0, arguments=":1}")),
        calls(call(1, "b", "g", "", type="function")),
        calls(call(1, arguments="{}")),
        tools=("f", "g"),
    )
    assert stream.calls == [("f", {"x": 1}), ("g", {})]
    assert stream.ids == ["a", "b"]
    assert stream.problems == []
    assert [event.text for event in stream.events if isinstance(event, InputDelta)] == ['{"x"', ":1}", "{}"]
    assert stream.reply.stop == "tool_calls"
    assert stream.reply.turn.blocks[0] == ToolCall("a", "f", {"x": 1})


def test_a_call_begins_before_its_arguments_come() -> None:
    stream = ReadChunks([calls(call(0, "a", "f", ""))], tools=("f",))
    assert BlockStarted(ToolCall("a", "f")) in stream.events


def test_a_call_of_free_text_is_not_read_as_json() -> None:
    def custom(index: int, **fields: Any) -> Fields:
        return calls({"index": index, **fields})

    stream = read_to_end(
        custom(0, id="a", type="custom", custom={"name": "patch", "input": ""}),
        custom(0, custom={"input": "{}{"}),
        custom(0, custom={"input": "{}"}),
        custom(1, id="b", type="custom", custom={"name": "patch", "input": "x"}),
    )
    blank = read_to_end(custom(0, id="a", type="custom", custom={"name": "patch", "input": "\r"}))
    assert [block.raw_input for block in blank.accumulator.calls] == ["\r"]
    assert stream.reply.turn.blocks == (
        ToolCall("a", "patch", type="custom", raw_input="{}{{}"),
        ToolCall("b", "patch", type="custom", raw_input="x"),
    )


def test_calls_of_free_text_that_are_mixed_up_are_never_whole() -> None:
    stream = read_to_end(
        calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": "x"}}),
        calls({"index": 1, "id": "b", "type": "custom", "custom": {"name": "patch", "input": "y"}}),
        calls({"index": 0, "custom": {"input": "z"}}),
        calls(call(1, arguments="{}")),
        chunk({"content": "and more"}),
    )
    assert stream.accumulator.failure is not None
    assert stream.accumulator.failure.kind == "bad_output"


def test_what_else_a_call_holds_stays_with_it() -> None:
    signed = {"google": {"thought_signature": "s"}}
    stream = read_to_end(
        calls({**call(0, "a", "f", "{", type="function"), "extra_content": signed}),
        calls({"index": 0, "function": {"arguments": "}", "x": 1}}),
    )
    (block,) = stream.reply.turn.blocks
    assert isinstance(block, ToolCall)
    assert block.extra == {"openai_chat": {"extra_content": signed}}
    assert block.form == ChatCall(inner_rest={"x": 1})


# --- H1: one index for all --------------------------------------------------------------------------


def test_H1_three_calls_at_index_0_by_their_ids() -> None:
    stream = read_to_end(*[calls(call(0, id, "f", '{"a":1}')) for id in "abc"])
    assert stream.calls == [("f", {"a": 1})] * 3
    assert stream.ids == ["a", "b", "c"]


def test_H1_the_same_in_one_chunk() -> None:
    stream = read_to_end(calls(*[call(0, id, "f", '{"a":1}') for id in "abc"]))
    assert stream.ids == ["a", "b", "c"]


def test_H1b_three_calls_at_index_0_without_ids() -> None:
    stream = read_to_end(*[calls(call(0, None, "f", json.dumps({"a": at}))) for at in range(3)])
    assert stream.calls == [("f", {"a": at}) for at in range(3)]
    assert stream.ids == ["", "", ""]


def test_H1b_in_one_list_equal_calls_are_several() -> None:
    assert read_to_end(calls(*[call(None, None, "f", '{"a":1}')] * 3)).calls == [("f", {"a": 1})] * 3
    assert read_to_end(calls(*[call(0, None, "f", '{"a":1}')] * 3)).calls == [("f", {"a": 1})] * 3


def test_H1b_in_one_list_a_call_without_id_is_not_the_next_one() -> None:
    stream = read_to_end(calls(call(None, None, "f", ""), call(None, "x", "f", '{"a":1}')))
    assert stream.calls == [("f", {}), ("f", {"a": 1})]
    assert stream.ids == ["", "x"]


def test_H1_several_objects_under_an_id_that_is_repeated() -> None:
    stream = read_to_end(*[calls(call(None, "x", "f", piece)) for piece in ('{"a":1}{"a"', ":2}", '{"a":3', "}")])
    assert stream.calls == [("f", {"a": 1}), ("f", {"a": 2}), ("f", {"a": 3})]


def test_H1_a_change_of_name_is_another_call() -> None:
    stream = read_to_end(calls(call(0, None, "f", '{"a":1}')), calls(call(0, None, "g", '{"a":1}')))
    assert stream.calls == [("f", {"a": 1}), ("g", {"a": 1})]


def test_H1_several_objects_in_one_piece_are_several_calls() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a":1}{"a":"}{"} \n{"a":3}')))
    assert stream.calls == [("f", {"a": 1}), ("f", {"a": "}{"}), ("f", {"a": 3})]
    assert stream.ids == ["x", "", ""]


def test_H1_ids_at_one_index_whose_first_call_has_no_id_or_ended() -> None:
    stream = read_to_end(
        calls(call(0, None, "f", "{}")),
        calls(call(0, "b", "f", '{"a":1}{"a":2}')),
        calls(call(0, "c", "f", '{"a":2}')),
        chunk({"content": "x"}),
        calls(call(0, "d", "f", '{"a":2}')),
    )
    assert stream.calls == [("f", {}), ("f", {"a": 1}), ("f", {"a": 2}), ("f", {"a": 2}), ("f", {"a": 2})]
    assert stream.ids == ["", "b", "", "c", "d"]


def test_H1_calls_of_free_text_at_one_index() -> None:
    def custom(**fields: Any) -> Fields:
        return calls({"index": 0, "type": "custom", **fields})

    stream = read_to_end(
        custom(custom={"name": "patch", "input": "x"}),
        custom(id="a"),
        custom(id="b", custom={"name": "patch", "input": "y"}),
        custom(id="c", custom={"input": "z"}),
    )
    assert [(block.id, block.raw_input) for block in stream.accumulator.calls] == [("a", "x"), ("b", "yz")]


def test_H1_several_objects_however_they_are_cut() -> None:
    text = '{"a":1}{"a":{"b":2}}{"a":3}'
    for size in range(1, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        stream = read_to_end(calls(call(0, "x", "f", "")), *[calls(call(0, arguments=piece)) for piece in pieces])
        assert stream.calls == [("f", {"a": 1}), ("f", {"a": {"b": 2}}), ("f", {"a": 3})], size


def test_many_objects_in_one_piece_are_read_without_deep_recursion() -> None:
    text = "".join(json.dumps({"a": at}) for at in range(3000))
    assert len(read_to_end(calls(call(0, "x", "f", text))).calls) == 3000
    assert len(read_to_end(calls(call(0, "x", "f", '{"a":1}' * 3000))).calls) == 1


def test_text_that_is_not_json_is_not_taken_apart() -> None:
    stream = read_to_end(calls(call(0, "x", "f", "do {a} ")), calls(call(0, arguments="{b} {c}")))
    assert [block.raw_input for block in stream.accumulator.calls] == ["do {a} {b} {c}"]


# --- H2: no index -----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [None, "none", True, 1.5, [], {}])
def test_H2_two_calls_by_their_ids(index: Any) -> None:
    stream = read_to_end(
        calls({**call(id="a", name="f", arguments='{"x":'), "index": index}),
        calls({**call(arguments="1}"), "index": index}),
        calls({**call(id="b", name="f", arguments='{"x":'), "index": index}),
        calls({**call(arguments="1}"), "index": index}),
    )
    assert stream.calls == [("f", {"x": 1})] * 2
    assert stream.ids == ["a", "b"]
    assert "a call has no index" in stream.problems


def test_H2_interleaved_by_id_alone() -> None:
    stream = read_to_end(
        calls(call(id="a", name="f", arguments='{"x":')),
        calls(call(id="b", name="g", arguments='{"y":')),
        calls(call(id="a", arguments="1}")),
        calls(call(id="b", arguments="2}")),
    )
    assert stream.calls == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("indexes", [("0", "1"), (0.0, 1.0), (5, 9), (-1, 7)])
def test_H2_an_index_may_be_text_or_begin_anywhere(indexes: tuple[Any, Any]) -> None:
    stream = read_to_end(*[calls(call(index, None, "f", '{"x":1}')) for index in indexes])
    assert stream.calls == [("f", {"x": 1})] * 2


def test_an_index_that_drifts_while_arguments_go_on() -> None:
    stream = read_to_end(
        calls(call(0, "a", "f", '{"x":')), calls(call(1, arguments='"y')), calls(call(2, arguments='"}'))
    )
    assert stream.calls == [("f", {"x": "y"})]
    assert stream.problems == ["the index of a call changes; its arguments continue"]


# --- H3: repeated objects ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces", [["{}", '{"s":"M"}'], ["{", "}", '{"s"', ':"M"}'], ['{}{"s":"M"}'], ["{} ", "{}", '{"s":"M"}']]
)
def test_H3_an_empty_object_before_the_real_one(pieces: list[str]) -> None:
    stream = read_to_end(calls(call(0, "a", "f", "")), *[calls(call(0, arguments=piece)) for piece in pieces])
    assert stream.calls == [("f", {"s": "M"})]


@pytest.mark.parametrize("pieces", [['{"a":1}'] * 3, ['{"a":1}', '{"a"', ":1}"], ['{"a":1}{"a":1}{"a":1}']])
def test_H3_the_same_object_again_is_no_other_call(pieces: list[str]) -> None:
    stream = read_to_end(calls(call(0, "x", "f", "")), *[calls(call(0, arguments=piece)) for piece in pieces])
    assert stream.calls == [("f", {"a": 1})]
    assert "the arguments of a call were sent twice; the repetition was left out" in stream.problems


def test_H3_part_of_the_same_object_again_is_no_other_call() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a":1}')), calls(call(0, arguments='{"a"')))
    assert stream.calls == [("f", {"a": 1})]
    assert stream.reply.stop == "tool_calls"


def test_H3_calls_that_ended_are_sent_again() -> None:
    heads = [calls(call(at, id, "f", json.dumps({"a": at}))) for at, id in enumerate("xy")]
    assert read_to_end(*heads, *heads).calls == [("f", {"a": 0}), ("f", {"a": 1})]


def test_H3_what_may_not_be_the_arguments_is_held_back_until_it_is_sure() -> None:
    decoder = stream_reader.Decoder()
    settled = []
    for frame in frames(sse([calls(call(0, "a", "f", "")), calls(call(0, arguments="{}")), chunk({"content": "x"})])):
        decoder.read(frame)
        settled.append(decoder.builder.is_settled)
    assert settled == [True, False, True]


def test_H3_a_real_empty_object_stays() -> None:
    stream = read_to_end(calls(call(0, "x", "f", "{}")))
    assert stream.calls == [("f", {})]
    assert stream.problems == []


def test_H3_another_object_is_another_call() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a":1}')), calls(call(0, arguments='{"a":12}')))
    assert stream.calls == [("f", {"a": 1}), ("f", {"a": 12})]


# --- H4 and H5: names and ids -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "tools", "name"),
    [
        (["Bash"] * 11, (), "Bash"),
        (["Bash"] * 11, ("Bash", "BashOutput"), "Bash"),
        (["edit_ex", "isting_file"], ("edit_existing_file", "edit"), "edit_existing_file"),
        (["edit", "_file"], ("edit", "edit_file"), "edit_file"),
        (["e", "ed", "edit"], ("edit",), "edit"),
        (["a", "a"], ("aa",), "aa"),
        (["a", "a"], ("a", "aa"), "a"),
        (["unknown", "unknown"], ("known",), "unknown"),
    ],
)
@pytest.mark.parametrize("id", ["x", None])
def test_H4_a_name_that_is_repeated_or_in_parts(names: list[str], tools: tuple[str, ...], name: str, id: Any) -> None:
    heads = [calls(call(0, id, part, "")) for part in names]
    stream = read_to_end(*heads, calls(call(0, arguments='{"a":1}')), tools=tools)
    assert stream.calls == [(name, {"a": 1})]
    whole = [calls(call(0, id, part, '{"a":1}' if at == len(names) - 1 else None)) for at, part in enumerate(names)]
    assert read_to_end(*whole, tools=tools).calls == [(name, {"a": 1})]


def test_H4_name_and_id_in_every_chunk() -> None:
    stream = read_to_end(*[calls(call(0, "x", "f", piece)) for piece in ('{"a"', ":", "1", "}", "")])
    assert stream.calls == [("f", {"a": 1})]
    assert sorted(stream.problems) == ["the id of a call is repeated", "the name of a call is repeated"]


def test_H4_names_that_are_tools_themselves_are_not_joined() -> None:
    stream = read_to_end(calls(call(0, None, "a", "")), calls(call(0, None, "b", "{}")), tools=("a", "b", "ab"))
    assert stream.calls == [("a", {}), ("b", {})]


def test_H4_without_known_tools_another_name_is_another_call() -> None:
    assert read_to_end(calls(call(0, None, "a", "")), calls(call(0, None, "b", "{}"))).calls == [("a", {}), ("b", {})]


def test_a_name_that_changes_inside_of_arguments_counts_for_nothing() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a":')), calls(call(0, None, "g", "1}")))
    assert stream.calls == [("f", {"a": 1})]


@pytest.mark.parametrize("later", [{"id": ""}, {"id": None}, {"id": 7}, {"name": ""}, {"name": None}, {"name": 7}])
def test_H5_first_values_are_kept(later: Fields) -> None:
    piece = {"index": 0, **({"id": later["id"]} if "id" in later else {})}
    piece["function"] = {"arguments": ":1}", **({"name": later["name"]} if "name" in later else {})}
    stream = read_to_end(calls(call(0, "x", "f", '{"a"')), calls(piece))
    assert stream.calls == [("f", {"a": 1})]
    assert stream.ids == ["x"]


def test_an_id_that_is_made_up_for_each_chunk() -> None:
    stream = read_to_end(
        calls(call(0, "r1", "f", "")), calls(call(0, "r2", None, '{"a"')), calls(call(0, "r3", None, ":1}"))
    )
    assert stream.calls == [("f", {"a": 1})]
    assert stream.ids == ["r1"]


def test_an_id_that_comes_late() -> None:
    before = read_to_end(calls(call(0, None, "f", "")), calls(call(0, "x")), calls(call(0, arguments="{}")))
    assert before.ids == ["x"]
    assert BlockStarted(ToolCall("x", "f")) in before.events
    after = read_to_end(calls(call(0, None, "f", '{"a"')), calls(call(0, "x", None, ":1}")))
    assert after.ids == ["x"]
    assert "the id of a call came after its arguments began" in after.problems


def test_one_id_for_several_calls() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a":1}')), calls(call(1, "x", "f", '{"a":1}')))
    assert stream.calls == [("f", {"a": 1})] * 2
    stream = read_to_end(calls(call(None, "x", "f", '{"a":1}')), calls(call(None, "x", "g", '{"a":1}')))
    assert stream.calls == [("f", {"a": 1}), ("g", {"a": 1})]


def test_a_known_id_at_a_new_index_goes_on() -> None:
    stream = read_to_end(calls(call(0, "x", "f", '{"a"')), calls(call(1, "x", None, ":1}")))
    assert stream.calls == [("f", {"a": 1})]


def test_a_call_without_id_before_one_with_an_id() -> None:
    stream = read_to_end(calls(call(0, None, "f", '{"a":1}')), calls(call(0, "x", "f", '{"a":1}')))
    assert stream.ids == ["", "x"]


# --- H6: in turns, and late -------------------------------------------------------------------------


def test_H6_pieces_in_turns() -> None:
    stream = read_to_end(
        calls(call(0, "a", "f", '{"x"')),
        calls(call(1, "b", "g", '{"y"')),
        calls(call(0, arguments=':"{"}')),
        calls(call(1, arguments=":2}")),
    )
    assert stream.calls == [("f", {"x": "{"}), ("g", {"y": 2})]


def test_H6_a_call_that_waits_begins_as_soon_as_the_one_before_it_is_whole() -> None:
    stream = ReadChunks(
        [
            calls(call(0, "a", "f", '{"x"')),
            calls(call(1, "b", "g", '{"y"')),
            calls(call(0, arguments=":1}")),
        ]
    )
    assert stream.calls == [("f", {"x": 1})]
    assert [event.block for event in stream.events if isinstance(event, BlockStarted)] == [
        ToolCall("a", "f"),
        ToolCall("b", "g"),
    ]


def test_H6_heads_first() -> None:
    heads = calls(call(0, "a", "f", ""), call(1, "b", "g", ""))
    stream = read_to_end(heads, calls(call(1, arguments='{"y":2}')), calls(call(0, arguments='{"x":1}')))
    assert stream.calls == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("id", ["a", None])
def test_H6_arguments_before_the_name(id: Any) -> None:
    stream = read_to_end(
        calls(call(0, id, None, '{"x"')),
        calls(call(0, arguments=":1")),
        calls(call(0, arguments="}")),
        calls(call(0, None, "f")),
        calls(call(1, "b", "g", "{}")),
    )
    assert stream.calls == [("f", {"x": 1}), ("g", {})]


def test_H6_arguments_before_the_name_in_turns() -> None:
    stream = read_to_end(
        calls(call(0, None, "f", '{"x"')),
        calls(call(1, None, None, '{"y":2}')),
        calls(call(0, arguments=":1}")),
        calls(call(1, None, "g")),
    )
    assert sorted(stream.calls) == [("f", {"x": 1}), ("g", {"y": 2})]


def test_a_name_that_never_comes_is_none() -> None:
    stream = read_to_end(calls(call(0, "a", None, '{"x":1}{"x":2}')))
    assert [(block.id, block.name, block.raw_input) for block in stream.accumulator.calls] == [
        ("a", "", '{"x":1}{"x":2}')
    ]
    assert "a call has no name" in stream.problems


# --- arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "arguments"),
    [("", {}), (None, {}), (" \n", {}), ({}, {}), ({"a": [1]}, {"a": [1]}), ('"{\\"a\\":1}"', {"a": 1})],
)
def test_F2_F3_arguments_in_other_shapes(written: Any, arguments: Any) -> None:
    entry = {"index": 0, "id": "x", "function": {"name": "f", "arguments": written}}
    assert read_to_end(calls(entry)).calls == [("f", arguments)]


@pytest.mark.parametrize("written", [[], 7, True, "[]", "no"])
def test_F3_what_is_no_object_stays_text(written: Any) -> None:
    stream = read_to_end(calls({"index": 0, "id": "x", "function": {"name": "f", "arguments": written}}))
    (block,) = stream.reply.turn.blocks
    assert isinstance(block, ToolCall)
    assert block.arguments is None
    assert block.raw_input == (written if isinstance(written, str) else json.dumps(written))


def test_arguments_as_an_object_come_back_as_one() -> None:
    stream = read_to_end(calls(call(0, "x", "f", {"b": 1.0, "a": "ä"}, type="function")))
    assert stream.reply.turn.blocks == (ToolCall("x", "f", {"b": 1.0, "a": "ä"}, form=ChatCall("object")),)


@pytest.mark.parametrize("reason", ["length", "tool_calls", None])
def test_F1_J4_a_call_that_was_cut_is_never_whole(reason: str | None) -> None:
    text = '{"a":["ls","pwd"],"b":{"c":"}"}}'
    for cut in range(1, len(text)):
        end = [chunk({}, reason)] if reason else []
        stream = ReadChunks([calls(call(0, "x", "f", "")), *[calls(call(0, arguments=c)) for c in text[:cut]], *end])
        assert stream.calls == []
        assert len(stream.accumulator.cut) == 1
        if reason is None:
            assert stream.accumulator.failure is not None
        else:
            assert stream.reply.stop == "length"


def test_F1_a_whole_call_before_one_that_was_cut_stays() -> None:
    stream = ReadChunks([calls(call(0, "a", "f", "{}")), calls(call(1, "b", "g", '{"x')), chunk({}, "length"), DONE])
    assert stream.calls == [("f", {})]
    assert stream.reply.stop == "length"


def test_what_comes_behind_arguments_is_part_of_them_or_left_out() -> None:
    assert read_to_end(calls(call(0, "x", "f", '{"a":1}')), calls(call(0, arguments=" \n"))).calls == [("f", {"a": 1})]
    stream = read_to_end(
        calls(call(0, "a", "f", '{"a":1}')), calls(call(1, "b", "g", "{}")), calls(call(0, arguments="}"))
    )
    assert stream.calls == [("f", {"a": 1}), ("g", {})]
    assert "arguments came for a call that had all of them; they were left out" in stream.problems


# --- other entries ----------------------------------------------------------------------------------


def test_a_call_of_an_unknown_type_is_carried() -> None:
    stream = read_to_end(
        calls({"index": 0, "id": "x", "type": "builtin_function", "function": {"name": "$search", "arguments": ""}}),
        calls(call(0, arguments='{"q":1}')),
        calls({"index": 1, "id": "y", "type": "later", "later": {"z": 1}}),
    )
    blocks = {block.kind: block.value for block in stream.reply.turn.blocks if isinstance(block, Opaque)}
    assert blocks == {
        "builtin_function": {
            "id": "x",
            "type": "builtin_function",
            "function": {"name": "$search", "arguments": '{"q":1}'},
        },
        "later": {"id": "y", "type": "later", "later": {"z": 1}},
    }


@pytest.mark.parametrize("entry", [{}, {"index": 0}, {"index": 0, "type": "function"}, 7, None, [], {"function": 7}])
def test_empty_entries_are_ignored(entry: Any) -> None:
    stream = ReadChunks([chunk({"content": "hi"}), chunk({"tool_calls": [entry]}), chunk({}, "tool_calls"), DONE])
    assert stream.reply.turn.calls == ()
    assert stream.reply.stop == "stop"


def test_an_entry_with_an_empty_id_and_name_alone_is_left_out() -> None:
    stream = ReadChunks([chunk({"content": "hi"}), calls(call(0, "", "", "")), calls(call(0, "", "", " ")), *END])
    assert stream.reply.turn.calls == ()
