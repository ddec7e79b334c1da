"""Responses of a server of the Responses protocol for a client of it: what they leave out is filled, nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.open_responses import check_response, check_stream
from toolglot import StreamTranslator
from toolglot.protocols.openai_responses.envelope import fill_missing, settings_of

REQUEST: Final[dict[str, Any]] = {"model": "m", "input": "Hi.", "instructions": "Be brief.", "store": False}
ITEM: Final[dict[str, Any]] = {"type": "message", "id": "msg_1", "role": "assistant"}
PART: Final[dict[str, Any]] = {"type": "output_text", "text": "Hello."}
USAGE: Final = {"input_tokens": 3, "output_tokens": 2}
BARE: Final[dict[str, Any]] = {"id": "resp_1", "object": "response", "model": "m"}


def event(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields, "sequence_number": number}


def written(events: list[dict[str, Any]], *, named: bool = True) -> bytes:
    frames = []
    for fields in events:
        name = f"event: {fields['type']}\n" if named else ""
        frames.append(f"{name}data: {json.dumps(fields)}\n\n")
    return "".join(frames).encode()


OLDER: Final[dict[str, Any]] = {
    **BARE,
    "created_at": 7,
    "error": None,
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "x_server": 1,
}
"""A response of a server that knows an older version of the protocol, and a field of its own."""


def written_events(bare: dict[str, Any]) -> list[dict[str, Any]]:
    """The stream of a server whose responses have these fields."""
    at: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    begun = {**bare, "status": "in_progress", "output": []}
    done = {**ITEM, "status": "completed", "content": [PART]}
    return [
        event("created", 0, response=begun),
        event("in_progress", 1, response=begun),
        event("output_item.added", 2, output_index=0, item={**ITEM, "status": "in_progress", "content": []}),
        event("content_part.added", 3, **at, part={"type": "output_text", "text": ""}),
        event("output_text.delta", 4, **at, delta="Hello.", logprobs=[]),
        event("output_text.done", 5, **at, text="Hello.", logprobs=[]),
        event("content_part.done", 6, **at, part=PART),
        event("output_item.done", 7, output_index=0, item=done),
        event("completed", 8, response={**bare, "status": "completed", "output": [done], "usage": USAGE}),
    ]


def translated(data: bytes, size: int = 10_000) -> tuple[bytes, StreamTranslator]:
    translator = StreamTranslator(
        source="openai_responses", target="openai_responses", created=7, clock=lambda: 9, settings=REQUEST
    )
    pieces = [translator.feed(data[begin : begin + size]) for begin in range(0, len(data), size)]
    return b"".join([*pieces, translator.finish()]), translator


def read(data: bytes) -> list[dict[str, Any]]:
    lines = [line for line in data.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("named", [True, False], ids=["event lines", "data only"])
@pytest.mark.parametrize("size", [1, 50, 10_000])
@pytest.mark.parametrize("bare", [BARE, OLDER], ids=["bare", "older"])
def test_what_a_stream_leaves_out_is_filled(bare: dict[str, Any], size: int, named: bool) -> None:
    data, translator = translated(written(written_events(bare), named=named), size)
    events = read(data)
    last = check_stream(events)
    assert (last.created_at, last.completed_at, last.instructions, last.store) == (7, 9, "Be brief.", False)
    assert last.usage is not None
    assert last.usage.total_tokens == 5
    assert any("leaves out" in entry.reason for entry in translator.report.entries)
    assert {entry.action for entry in translator.report.entries} == {"assumed"}
    if bare is OLDER:
        assert [entry["response"]["x_server"] for entry in events if "response" in entry] == [1, 1, 1]


def test_a_stream_that_leaves_out_nothing_is_forwarded_byte_for_byte() -> None:
    whole, _ = translated(written(written_events(OLDER)))
    again, translator = translated(whole)
    assert again == whole
    assert not translator.report.entries


def test_own_values_of_a_response_stay_also_null() -> None:
    response = {**BARE, "created_at": 1, "status": "completed", "output": [], "service_tier": None, "temperature": 0.2}
    filled = fill_missing(settings_of({**REQUEST, "temperature": 0.9}), response, 5)
    assert (filled["service_tier"], filled["temperature"], filled["created_at"]) == (None, 0.2, 1)
    assert filled["completed_at"] == 5
    check_response({**filled, "service_tier": "default"})


def test_a_whole_response_that_has_every_field_is_the_same_object() -> None:
    items = [{**ITEM, "content": [PART]}, {"type": "reasoning", "id": "rs_1"}, {"type": "other"}]
    settings = settings_of(REQUEST)
    filled = fill_missing(settings, {**BARE, "status": "completed", "output": items, "usage": USAGE}, 5)
    assert fill_missing(settings, filled, 6) is filled
    assert filled["output"][2] is items[2]
