"""One request in three columns: where each turn stands, which id is which, and what was changed where."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import steps_of
from support.inspector.captured_requests import captured, captured_body, talk, with_reply
from toolglot.gateway.inspector.answers import json_answer
from toolglot.gateway.inspector.views.detail import MAX_TEXTS, TURNS, detail_of
from toolglot.gateway.inspector.views.json_spans import spans_of

TARGETS: Final = (
    ("anthropic", "claude-opus-5"),
    ("openai_responses", "gpt-5.5"),
    ("openai", "gpt-4.1"),
    ("mistral", "mistral-large-latest"),
    ("gemini", "gemini-2.5-pro"),
    ("bedrock", "anthropic.claude-opus-5-v1:0"),
    ("cohere", "command-a-03-2025"),
    ("ollama", "qwen3"),
)


def part_at(text: str, path: str) -> Any:
    """The value at a path of one field and, possibly, one index."""
    name, _, index = path.removeprefix("$.").partition("[")
    value = json.loads(text)[name]
    return value[int(index.rstrip("]"))] if index else value


@pytest.mark.parametrize(("target", "model"), TARGETS)
def test_every_turn_has_its_place_in_both_bodies(target: str, model: str) -> None:
    capture = captured(talk(3), target=target, model=model)
    detail = detail_of(capture)
    turns = detail["canonical"]["turns"]
    assert [turn["role"] for turn in turns] == ["system", "user", *["assistant", "user"] * 3]
    for turn in turns:
        start, end = turn["client_span"]
        assert json.loads(capture["request"][start:end]) == part_at(capture["request"], turn["client_path"])
        assert capture["request"][start:end] == turn["client_text"]
        start, end = turn["sent_span"]
        assert capture["rendered"][start:end] == turn["sent_text"]
        assert turn["sent_path"].startswith("$.")
        for block in turn["blocks"]:
            said = block["text"] if block["kind"] == "text" else block["name"] if block["kind"] == "call" else ""
            assert json.dumps(said)[1:-1] in turn["client_text"]
            if block["kind"] == "text":
                assert json.dumps(said)[1:-1] in turn["sent_text"]
            if block["kind"] == "result":
                assert json.dumps(block["text"])[1:-1] in turn["sent_text"]


@pytest.mark.parametrize(("target", "model"), TARGETS)
def test_a_call_and_its_result_have_the_same_ids_on_each_side(target: str, model: str) -> None:
    capture = captured(talk(2), target=target, model=model)
    blocks = [block for turn in detail_of(capture)["canonical"]["turns"] for block in turn["blocks"]]
    calls = [block for block in blocks if block["kind"] == "call"]
    results = [block for block in blocks if block["kind"] == "result"]
    assert [call["client_id"] for call in calls] == ["toolu_000", "toolu_001"]
    for call, result in zip(calls, results, strict=True):
        assert call["id"] == result["id"]
        assert call["sent_id"] == result["sent_id"]
        assert call["name"] == "get weather!"
        assert json.dumps(call["sent_name"])[1:-1] in capture["rendered"]
        if call["sent_id"] is not None and target not in ("gemini", "ollama"):  # they have no ids
            assert call["sent_id"] in capture["rendered"]
    assert len({call["id"] for call in calls}) == 2


def test_a_renamed_tool_has_both_names() -> None:
    (tool,) = detail_of(captured(target="mistral", model="mistral-large-latest"))["canonical"]["tools"]
    assert tool["name"] == "get weather!"
    assert tool["sent_as"] != tool["name"]
    assert tool["sent_as"].startswith("get_weather")


def test_a_report_is_marked_at_the_turn_and_block_that_it_is_about() -> None:
    messages = talk(2)
    del messages[2]["content"][0]  # the first call has no result
    capture = captured(messages, target="openai_responses")
    detail = detail_of(capture)
    (number,) = [n for n, report in enumerate(detail["reports"]) if "toolu_000" in report["ids"]]
    report = detail["reports"][number]
    turn = detail["canonical"]["turns"][report["turn"]]
    assert number in turn["marks"]
    marked = [block for block in turn["blocks"] if number in block["marks"]]
    assert [block["client_id"] for block in marked] == ["toolu_000"]
    assert turn["blocks"][report["block"]] is marked[0]


def test_a_rule_is_named_where_the_reason_names_it() -> None:
    reports = detail_of(captured(top_k=3))["reports"]
    (report,) = [report for report in reports if report["path"] == "$.top_k"]
    assert (report["rule"], report["gravity"], report["side"]) == ("openai-responses-sampling", "loss", "request")


def test_the_reply_has_its_calls_under_both_names() -> None:
    capture = captured(target="mistral", model="mistral-large-latest")
    sent_as = detail_of(capture)["canonical"]["tools"][0]["sent_as"]
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": sent_as, "arguments": '{"city": "Rome"}'}}
    reply = {
        "id": "1",
        "object": "chat.completion",
        "model": "mistral-large-latest",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}
        ],
    }
    (block,) = detail_of(with_reply(capture, reply))["reply_canonical"]["blocks"]
    assert (block["name"], block["sent_name"]) == ("get weather!", sent_as)
    assert (block["sent_id"], block["arguments"]) == ("abcdefgh1", {"city": "Rome"})


# --- much of it -------------------------------------------------------------------------------------


def test_of_many_turns_the_last_ones_are_shown_and_the_others_on_demand() -> None:
    capture = captured(talk(150))
    detail = detail_of(capture)
    assert detail["total_turns"] == 302
    shown = [turn["index"] for turn in detail["canonical"]["turns"]]
    assert (shown[0], shown[-1], len(shown)) == (302 - TURNS, 301, TURNS)
    part = detail_of(capture, first=2, last=5)["canonical"]["turns"]
    assert [turn["index"] for turn in part] == [2, 3, 4]
    assert part == detail_of(capture, first=0, last=10)["canonical"]["turns"][2:5]
    assert detail_of(capture, first=900, last=1000)["canonical"]["turns"] == []


def test_large_bodies_are_not_in_the_answer_but_their_sizes_are() -> None:
    capture = captured(talk(1, text="x" * MAX_TEXTS))
    detail = detail_of(capture)
    assert detail["request"] is detail["rendered"] is None
    assert detail["sizes"]["request"] == len(capture["request"])
    (block,) = detail["canonical"]["turns"][1]["blocks"]
    assert len(block["text"]) + block["cut"] == MAX_TEXTS


def test_the_work_is_linear() -> None:
    def steps(rounds: int) -> int:
        capture = captured(talk(rounds))
        return steps_of(lambda: detail_of(capture, first=0))

    assert steps(120) < 4.6 * steps(30)


# --- hostile ----------------------------------------------------------------------------------------

HOSTILE: Final = {
    "not JSON": "{",
    "no object": "[1, 2]",
    "nothing": "",
    "deep": '{"messages": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "wrong types": '{"messages": {"role": 3}, "tools": 7, "model": []}',
    "null": "null",
    "half a pair": '{"model": "\\ud800", "messages": [{"role": "user", "content": "\\udfff"}]}',
    "byte order mark": '\ufeff{"model": "m", "messages": [{"role": "user", "content": "x"}]}',
    "twice": '{"messages": [{"role": "user", "content": "a"}], "messages": [{"role": "user", "content": "b"}]}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("field", ["request", "rendered", "reply", "response"])
def test_what_cannot_be_read_is_null_and_no_error(body: str, field: str) -> None:
    capture = {**captured(), field: body, "stream": field == "reply"}
    answer = json_answer(detail_of(capture))
    assert json.loads(answer.data)["row"]["id"] == "tg_1"


def test_a_capture_with_wrong_types_is_no_error() -> None:
    wrong: tuple[Any, ...] = (None, 3, "x", [], {}, [[]], True)
    for value in wrong:
        capture = dict.fromkeys([*captured(), "usage", "pieces", "changes", "error"], value)
        assert detail_of(capture)["canonical"] is None


def test_markup_and_long_lines_are_text() -> None:
    text = "<script>alert(1)</script>" + "x" * 5_000_000
    detail = detail_of(captured([{"role": "user", "content": text}]))
    (block,) = detail["canonical"]["turns"][1]["blocks"]
    assert block["text"].startswith("<script>alert(1)</script>xxx")
    assert block["cut"] == len(text) - len(block["text"])


@given(st.text(max_size=40), st.text(max_size=40))
def test_spans_are_those_of_the_values(key: str, text: str) -> None:
    for body in (
        {"messages": [text, {"a": text}], key: text},
        {key: [text], "messages": []},
    ):
        for written in (json.dumps(body), json.dumps(body, indent=2, ensure_ascii=False)):
            found = spans_of(written, "messages")
            read = json.loads(written)
            assert [json.loads(written[start:end]) for start, end in found.items] == (
                read["messages"] if isinstance(read["messages"], list) else []
            )
            for name, (start, end) in found.fields.items():
                assert json.loads(written[start:end]) == read[name]


def test_a_client_of_every_protocol_is_shown() -> None:
    for source, body in (
        ("openai", {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hello there"}]}),
        ("openai_responses", {"model": "gpt-5.5", "input": "hello there"}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "hello there"}]}]}),
    ):
        capture = captured_body(body, source=source, target="anthropic", model="claude-opus-5")
        (turn,) = detail_of(capture)["canonical"]["turns"]
        assert "hello there" in turn["client_text"]
        assert "hello there" in turn["sent_text"]
