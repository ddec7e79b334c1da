"""Streams of the Responses protocol, written by hand and recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from sdk.recording import FOLDER
from support.conversations.event_grammar import check
from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.openai_responses import server_items
from support.protocols.streams.reading import read_pieces
from toolglot.conversation import Reply
from toolglot.conversation.events import (
    Accumulator,
    Event,
    Failed,
    Finished,
)
from toolglot.limits import Limits
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_responses.stream_reader import Decoder, framer

Fields = dict[str, Any]


USAGE: Fields = {
    "input_tokens": 121,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 133,
}


RESPONSE: Fields = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "completed_at": 1_700_000_001,
    "error": None,
    "incomplete_details": None,
    "model": "gpt-5.5",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": USAGE,
    "metadata": {},
}


REASONING: Fields = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "**Two** cities."}, {"type": "summary_text", "text": "Look."}],
    "encrypted_content": "gAAAAenc",
}


CITATION = {"type": "url_citation", "start_index": 0, "end_index": 3, "title": "t", "url": "https://example.com"}


MESSAGE: Fields = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "phase": "commentary",
    "content": [
        {"type": "output_text", "text": "Let me look, 七 °C.", "annotations": [CITATION], "logprobs": []},
        {"type": "output_text", "text": "Now.", "annotations": [], "logprobs": []},
    ],
}


SEARCH: Fields = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}


CALL: Fields = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_A",
    "name": "get_weather",
    "arguments": '{"city": "K\\u00f6ln"}',
}


SECOND: Fields = {**CALL, "id": "fc_2", "call_id": "call_B", "arguments": '{"days":9007199254740993}'}


PATCH: Fields = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_C",
    "name": "apply_patch",
    "input": '{"no": object',
}


EVERYTHING: Fields = {**RESPONSE, "output": [REASONING, MESSAGE, SEARCH, CALL, SECOND, PATCH]}


def streamed(body: Fields, piece: int = 6) -> list[Fields]:
    """A response, streamed as the provider does it."""
    begun = {**body, "status": "in_progress", "output": []}
    for key in ("usage", "completed_at", "incomplete_details"):
        if key in body:
            begun[key] = None
    events = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(body["output"]):
        events += item_events(item, index, piece)
    events.append({"type": f"response.{body['status']}", "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def item_events(item: Fields, index: int = 0, piece: int = 6) -> list[Fields]:
    location = {"item_id": item.get("id", ""), "output_index": index}
    kind = item["type"]
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    inner: list[Fields] = []
    if kind == "message":
        begun["content"] = []
        for at, part in enumerate(item["content"]):
            inner += part_events(part, {**location, "content_index": at}, piece)
    elif kind == "reasoning":
        begun |= {key: [] for key in ("summary", "content") if key in item}
        for at, part in enumerate(item.get("summary", [])):
            inner += thought_events(part, {**location, "summary_index": at}, piece)
        for at, part in enumerate(item.get("content", [])):
            inner += text_events("reasoning_text", "text", part["text"], {**location, "content_index": at}, piece)
    elif kind in ("function_call", "custom_tool_call"):
        key, name = ("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")
        field, event = key if kind == "function_call" else name
        begun[field] = ""
        inner = text_events(event, field, item[field], location, piece)
    elif kind == "web_search_call":
        inner = [{"type": f"response.web_search_call.{step}", **location} for step in ("in_progress", "searching")]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]


def text_events(name: str, field: str, text: str, location: Fields, piece: int) -> list[Fields]:
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    deltas = [{"type": f"response.{name}.delta", **location, "delta": one} for one in pieces]
    return [*deltas, {"type": f"response.{name}.done", **location, field: text}]


def part_events(part: Fields, location: Fields, piece: int) -> Iterator[Fields]:
    field = "refusal" if part["type"] == "refusal" else "text"
    begun = {**part, field: "", **({"annotations": []} if "annotations" in part else {})}
    yield {"type": "response.content_part.added", **location, "part": begun}
    *deltas, done = text_events(part["type"], field, part[field], location, piece)
    yield from deltas
    for at, annotation in enumerate(part.get("annotations", [])):
        found = {"annotation_index": at, "annotation": annotation}
        yield {"type": "response.output_text.annotation.added", **location, **found}
    yield done
    yield {"type": "response.content_part.done", **location, "part": part}


def thought_events(part: Fields, location: Fields, piece: int) -> Iterator[Fields]:
    yield {"type": "response.reasoning_summary_part.added", **location, "part": {**part, "text": ""}}
    yield from text_events("reasoning_summary_text", "text", part["text"], location, piece)
    yield {"type": "response.reasoning_summary_part.done", **location, "part": part}


def sse(*events: Fields) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


class ReadEvents:
    """A stream, read to its end."""

    def __init__(self, *events: Fields, limits: Limits = Limits(), ends: bool = True) -> None:  # noqa: B008
        self.decoder = Decoder(limits=limits)
        self.events: list[Event] = []
        for event in events:
            self.events += self.decoder.read(Frame(json.dumps(event).encode()))
        if ends:
            self.events += self.decoder.finish()
        check(self.events, is_over=ends)
        self.added = Accumulator()
        self.added.add(self.events)

    @property
    def problems(self) -> list[str]:
        return self.decoder.builder.problems

    @property
    def reply(self) -> Reply:
        return self.added.reply

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """Those that an agent may run."""
        return [(call.id, call.name, call.arguments) for call in self.added.calls]

    @property
    def failure(self) -> Failed:
        assert isinstance(self.events[-1], Failed)
        return self.events[-1]

    @property
    def finished(self) -> Finished:
        assert isinstance(self.events[-1], Finished)
        return self.events[-1]


def body_of(*items: Fields, **more: Any) -> Fields:
    return {**RESPONSE, **more, "output": list(items)}


def read_bytes(*pieces: bytes) -> list[Event]:
    return read_pieces(framer(), Decoder(), pieces)


def kept(*names: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    """Objects with these fields always, and with an unknown field at times."""
    later = {"later": json_values}
    return st.fixed_dictionaries(fields, optional={**later, **dict.fromkeys(names, json_values)})


message_parts = st.one_of(
    kept("logprobs", type=st.just("output_text"), text=texts, annotations=st.lists(json_objects, max_size=1)),
    kept(type=st.just("refusal"), refusal=texts),
)


done = st.just("completed")


model_items = st.one_of(
    kept(
        "phase",
        type=st.just("message"),
        role=st.just("assistant"),
        status=done,
        content=st.lists(message_parts, min_size=1, max_size=3),
    ),
    kept(
        "status",
        type=st.just("reasoning"),
        encrypted_content=texts,
        summary=st.lists(kept(type=st.just("summary_text"), text=texts), max_size=3),
    ),
    kept(type=st.just("reasoning"), content=st.lists(kept(type=st.just("reasoning_text"), text=texts), max_size=3)),
    kept(
        type=st.just("function_call"),
        status=done,
        call_id=st.sampled_from(["call_1", "call_2"]),
        name=st.sampled_from(["read", "write"]),
        arguments=json_objects.map(json.dumps) | st.sampled_from(['{"a":1,"a":2}', '{"a":1.50}', "{ }", "[]"]),
    ),
    kept(type=st.just("custom_tool_call"), call_id=st.just("call_3"), name=st.just("patch"), input=texts),
    server_items.filter(lambda item: "role" not in item),
)


responses = st.builds(
    lambda items, more, end: {
        **RESPONSE,
        **more,
        **end,
        "output": [{**item, "id": f"item_{index}"} for index, item in enumerate(items)],
    },
    st.lists(model_items, max_size=4),
    st.fixed_dictionaries({}, optional={"later": json_values, "usage": st.none()}),
    st.sampled_from(
        [
            {},
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        ]
    ),
)


RECORDED = sorted((FOLDER / "streams" / "llama_cpp").glob("responses_*.sse"))
