"""Law 10 for replies and streams: what the provider sent and what the client gets are read independently and compared.

Every difference has an entry in the report that names it, from each protocol to each other and to itself.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from support.translate.reply_bodies import BODIES, MARKS, PROTOCOLS, stream_of
from support.translate.reply_reading import read_reply, read_stream
from support.translate.unreported_changes import target_of, unreported
from toolglot import StreamTranslator, convert_reply
from toolglot.conversation.report import Report

CASES = [(kind, source) for kind, bodies in BODIES.items() for source in bodies]
IDS = [f"{kind}, {source}" for kind, source in CASES]


def translate(source: str, target: str, data: bytes) -> tuple[bytes, Report]:
    translator = StreamTranslator(source=target_of(source), target=target_of(target))
    out = translator.feed(data) + translator.finish()
    return out, translator.report


@pytest.mark.parametrize(("kind", "source"), CASES, ids=IDS)
def test_law_10_each_difference_between_what_a_provider_sent_and_what_its_client_gets_is_reported(
    kind: str, source: str
) -> None:
    body = BODIES[kind][source]
    sent, original = read_reply(source, body), json.dumps(body)
    for target in PROTOCOLS:
        out = convert_reply(body, source=target_of(source), target=target_of(target))
        got = read_reply(target, out.body)
        assert not unreported(sent, got, out.data.decode(), original, out.report), f"{target}: {out.report}"


@pytest.mark.parametrize(("kind", "source"), CASES, ids=IDS)
def test_law_10_the_same_for_streams(kind: str, source: str) -> None:
    data = stream_of(source, BODIES[kind][source])
    sent, original = read_stream(source, data), data.decode("utf-8", "replace")
    for target in PROTOCOLS:
        written, report = translate(source, target, data)
        got = read_stream(target, written)
        seen = written.decode("utf-8", "replace")
        assert not unreported(sent, got, seen, original, report), f"{target}: {report}"


def entries_of(report: Report) -> set[str]:
    return {f"{entry.action}: {entry.reason}" for entry in report}


@pytest.mark.parametrize(("kind", "source"), CASES, ids=IDS)
def test_law_8_a_stream_reports_what_the_whole_reply_reports(kind: str, source: str) -> None:
    body = BODIES[kind][source]
    data = stream_of(source, body)
    if any(mark in json.dumps(body) and mark.encode() not in data for mark in MARKS):
        return  # the protocol's stream cannot carry it
    for target in PROTOCOLS:
        if target == source:
            continue
        whole = convert_reply(body, source=target_of(source), target=target_of(target)).report
        _, streamed = translate(source, target, data)
        assert entries_of(streamed) == entries_of(whole), target


@pytest.mark.parametrize(("kind", "source"), CASES, ids=IDS)
def test_law_10_nothing_is_reported_where_the_bytes_are_forwarded(kind: str, source: str) -> None:
    body = json.dumps(BODIES[kind][source]).encode()
    out = convert_reply(body, source=target_of(source), target=target_of(source))
    assert (out.data == body) == (not len(out.report)), out.report
    data = stream_of(source, BODIES[kind][source])
    written, report = translate(source, source, data)
    assert (written == data) == (not len(report)), report


# --- what was repaired ------------------------------------------------------------------------------

REPAIRED = {
    "arguments in a string": "JSON text in a JSON string",
    "blank arguments": "a blank string means no arguments",
    "a key twice": "a key occurs twice in one object",
    "half a surrogate pair": "half a surrogate pair",
}


@pytest.mark.parametrize(("kind", "reason"), REPAIRED.items(), ids=list(REPAIRED))
def test_what_was_done_to_read_arguments_is_reported_whole_and_streamed(kind: str, reason: str) -> None:
    for source, target in itertools.product(BODIES[kind], PROTOCOLS):
        if source == target:
            continue
        body = BODIES[kind][source]
        out = convert_reply(body, source=target_of(source), target=target_of(target))
        _, streamed = translate(source, target, stream_of(source, body))
        for report in (out.report, streamed):
            assert any(reason in entry.reason and entry.action == "converted" for entry in report), (
                f"{target}: {report}"
            )


def test_half_a_surrogate_pair_in_a_body_is_replaced_and_reported_within_one_protocol_too() -> None:
    data = json.dumps(BODIES["text"]["openai_chat"]).replace("Done.", "\\ud83d").encode()
    for target in ("openai", "anthropic"):
        out = convert_reply(data, source="openai", target=target)
        assert "\ufffd" in out.data.decode()
        assert b"ud83d" not in out.data
        assert any("surrogate" in entry.reason for entry in out.report)
    assert json.loads(convert_reply(data, source="openai", target="openai").data)["id"] == "chatcmpl-1"


def test_a_reply_without_a_role_or_with_arguments_as_an_object_is_read_as_meant_and_reported() -> None:
    body: Any = json.loads(json.dumps(BODIES["calls"]["openai_chat"]))
    message = body["choices"][0]["message"]
    del message["role"]
    message["tool_calls"][0]["function"]["arguments"] = [1]
    out = convert_reply(body, source="openai", target="anthropic")
    assert [block["type"] for block in out.body["content"]] == ["text", "text", "tool_use"]
    assert any("without a role" in entry.reason for entry in out.report)


# --- duplicate keys, line ends, and the model's name ------------------------------------------------------

OBJECTS = ("anthropic", "gemini", "bedrock", "ollama")


@pytest.mark.parametrize("source", OBJECTS)
@pytest.mark.parametrize("form", [bytes, str])
def test_a_duplicate_key_in_arguments_that_are_an_object_is_reported(source: str, form: type) -> None:
    written = json.dumps(BODIES["calls"][source]).replace('{"path": ', '{"path": "first", "path": ')
    assert '"first"' in written
    body = written.encode() if form is bytes else written
    for target in PROTOCOLS:
        out = convert_reply(body, source=target_of(source), target=target_of(target))
        assert any("a key occurs twice" in entry.reason for entry in out.report), f"{target}: {out.report}"
        assert "first" not in out.data.decode()


@pytest.mark.parametrize("source", ["gemini", "ollama"])
def test_a_duplicate_key_in_an_event_is_reported_as_in_a_whole_reply(source: str) -> None:
    data = stream_of(source, BODIES["calls"][source]).replace(b'{"path":', b'{"path":"first","path":')
    assert b'"first"' in data
    for target in PROTOCOLS:
        written, report = translate(source, target, data)
        found = [entry.action for entry in report if "a key occurs twice" in entry.reason]
        assert found == ["converted"], f"{target}: {report}"
        assert b"first" not in written


def test_an_escaped_quote_is_no_duplicate_key() -> None:
    body = json.dumps(BODIES["text"]["anthropic"]).replace("Done.", "\\u0022").encode()
    out = convert_reply(body, source="anthropic", target="anthropic")
    assert out.data == body
    assert not len(out.report)


@pytest.mark.parametrize("source", [name for name in PROTOCOLS if name not in ("bedrock", "ollama")])
@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_law_13_a_stream_for_its_own_protocol_keeps_its_line_ends(source: str, end: bytes) -> None:
    for kind in ("text", "calls"):
        data = stream_of(source, BODIES[kind][source]).replace(b"\r\n", b"\n").replace(b"\n", end)
        for size in (1, 7, len(data)):
            translator = StreamTranslator(source=target_of(source), target=target_of(source))
            pieces = [translator.feed(data[at : at + size]) for at in range(0, len(data), size)]
            assert b"".join(pieces) + translator.finish() == data


@pytest.mark.parametrize("source", PROTOCOLS)
def test_another_name_of_the_model_is_reported_once_as_housekeeping(source: str) -> None:
    body = BODIES["text"][source]
    for target in PROTOCOLS:
        names: dict[str, Any] = {
            "source": target_of(source),
            "target": target_of(target),
            "reply_model": "simulated/x/y",
        }
        translator = StreamTranslator(**names)
        translator.feed(stream_of(source, body))
        translator.finish()
        for report in (convert_reply(body, **names).report, translator.report):
            found = [entry.gravity for entry in report if "simulated/x/y" in entry.reason or entry.path == "$.model"]
            assert found == ["housekeeping"], f"{target}: {report}"


def test_a_call_that_lost_its_id_or_shares_it_is_reported_within_one_protocol_too() -> None:
    for lost in ("", "read_1"):
        calls = [
            {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ("read_1", lost)
        ]
        body: Any = {**BODIES["calls"]["cohere"], "message": {"role": "assistant", "tool_calls": calls}}
        _, report = translate("cohere", "cohere", stream_of("cohere", body))
        assert any(entry.action in ("added", "replaced") and " id" in entry.reason for entry in report), report


def test_what_a_reply_repeats_of_the_request_or_measures_of_itself_is_housekeeping() -> None:
    echo = {
        **BODIES["text"]["openai_responses"],
        "temperature": 0.3,
        "max_output_tokens": 9,
        "instructions": "Be brief.",
    }
    timed = {**BODIES["text"]["ollama"], "total_duration": 7, "eval_duration": 5}
    for source, body in (("openai_responses", echo), ("ollama", timed)):
        report = convert_reply(body, source=source, target="anthropic").report
        assert {entry.gravity for entry in report} == {"housekeeping"}, report
