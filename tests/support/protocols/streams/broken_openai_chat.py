"""Chat Completions streams as servers really write them: each breaks the protocol in one way, and means one thing.

Each has what it means: the text, the calls (name and arguments), and the finish reason that a client must get.
Every one has a finish reason or `[DONE]`: it is complete, whatever else is wrong with it.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from support.protocols.streams.openai_chat import DONE, Fields, call, calls, chunk, sse

OSLO: Final = ("look", {"city": "Oslo"})
LODZ: Final = ("look", {"city": "Łódź"})
COUNT: Final = ("count", {"of": [1, 2]})
NOW: Final[tuple[str, dict[str, Any]]] = ("now", {})
OSLO_TEXT: Final = '{"city": "Oslo"}'
LODZ_TEXT: Final = '{"city": "Łódź"}'
COUNT_TEXT: Final = '{"of": [1, 2]}'


class Broken(NamedTuple):
    """A stream, and what it means."""

    body: bytes
    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    finish: str = ""


def begin(text: str | None = None) -> Fields:
    return chunk({"role": "assistant", "content": text})


def text(piece: str) -> Fields:
    return chunk({"content": piece})


def entry(index: Any, id: Any, name: Any, arguments: Any) -> Fields:
    return call(index, id, name, arguments, type="function")


def without(fields: Fields, *keys: str) -> Fields:
    return {key: value for key, value in fields.items() if key not in keys}


def with_choice(fields: Fields, *removed: str, **changed: Any) -> Fields:
    """A chunk whose choice lacks some fields, or has other ones."""
    return {**fields, "choices": [{**without(fields["choices"][0], *removed), **changed}]}


def greeting(*chunks: Any, end: tuple[Any, ...] = (chunk({}, "stop"), DONE), body: bytes = b"") -> Broken:
    """A stream that says Hello."""
    return Broken(body or sse([*chunks, *end]), "Hello", (), "stop")


def called(*chunks: Any, means: Any = (OSLO,), end: tuple[Any, ...] = (chunk({}, "tool_calls"), DONE)) -> Broken:
    """A stream of calls behind the chunk with the role."""
    return Broken(sse([begin(), *chunks, *end]), "", tuple(means), "tool_calls")


HELLO: Final = (begin("Hel"), text("lo"))
LOOK: Final = (calls(entry(0, "call_a", "look", "")), calls(call(0, arguments=OSLO_TEXT)))
STOP: Final = chunk({}, "stop")
COST: Final = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
TWO: Final = (OSLO, LODZ)
WHOLE: Final[Fields] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 7,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}
WHOLE_CALL: Final = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": OSLO_TEXT}}

INDEXES: Final = {
    "the first index is 1": called(calls(entry(1, "call_a", "look", "")), calls(call(1, arguments=OSLO_TEXT))),
    "indexes with a gap": called(
        *LOOK, calls(entry(2, "call_b", "look", '{"city":')), calls(call(2, arguments=' "Łódź"}')), means=TWO
    ),
    "indexes with gaps in one chunk": called(
        calls(
            entry(0, "call_a", "look", OSLO_TEXT),
            entry(5, "call_b", "look", LODZ_TEXT),
            entry(9, "call_c", "count", COUNT_TEXT),
        ),
        means=(*TWO, COUNT),
    ),
    "an index for all calls": called(
        *LOOK, calls(entry(0, "call_b", "look", "")), calls(call(0, arguments=LODZ_TEXT)), means=TWO
    ),
    "an index for all calls of a chunk": called(
        calls(entry(0, "call_a", "look", OSLO_TEXT), entry(0, "call_b", "count", COUNT_TEXT)), means=(OSLO, COUNT)
    ),
    "an index is reused after another": called(
        *LOOK,
        calls(entry(1, "call_b", "look", LODZ_TEXT)),
        calls(entry(0, "call_c", "count", COUNT_TEXT)),
        means=(*TWO, COUNT),
    ),
    "an index that counts the chunks": called(
        calls(entry(0, "call_a", "look", '{"city"')),
        calls(call(1, arguments=": ")),
        calls(call(2, arguments='"Oslo"}')),
    ),
    "indexes that count down": called(
        calls(entry(1, "call_a", "look", OSLO_TEXT)), calls(entry(0, "call_b", "look", LODZ_TEXT)), means=TWO
    ),
    "no index": called(calls(entry(None, "call_a", "look", "")), calls(call(arguments=OSLO_TEXT))),
    "no index, and the id in each piece": called(
        calls(entry(None, "call_a", "look", '{"city": ')), calls(call(id="call_a", arguments='"Oslo"}'))
    ),
    "no index, and two calls in a chunk": called(
        calls(entry(None, "call_a", "look", OSLO_TEXT), entry(None, "call_b", "look", LODZ_TEXT)), means=TWO
    ),
    "an index that is null": called(
        calls({**entry(0, "call_a", "look", OSLO_TEXT), "index": None}),
        calls({**entry(0, "call_b", "look", LODZ_TEXT), "index": None}),
        means=TWO,
    ),
    "an index that is a string": called(calls(entry("0", "call_a", "look", "")), calls(call("0", arguments=OSLO_TEXT))),
    "an index that is a fraction": called(
        calls(entry(0.0, "call_a", "look", "")), calls(call(0.0, arguments=OSLO_TEXT))
    ),
    "an index below 0": called(calls(entry(-1, "call_a", "look", "")), calls(call(-1, arguments=OSLO_TEXT))),
    "pieces of two calls by turns": called(
        calls(entry(0, "call_a", "look", '{"city"')),
        calls(entry(1, "call_b", "look", '{"city": ')),
        calls(call(0, arguments=': "Oslo"}')),
        calls(call(1, arguments='"Łódź"}')),
        means=TWO,
    ),
}

ARGUMENTS: Final = {
    "arguments as an object": called(calls(entry(0, "call_a", "look", OSLO[1]))),
    "arguments of two calls as objects": called(
        calls(entry(0, "call_a", "look", OSLO[1]), entry(1, "call_b", "count", COUNT[1])), means=(OSLO, COUNT)
    ),
    "arguments as an empty object": called(calls(entry(0, "call_a", "now", {})), means=(NOW,)),
    "arguments as an object behind arguments as text": called(
        *LOOK, calls(entry(1, "call_b", "count", COUNT[1])), means=(OSLO, COUNT)
    ),
    "arguments before the name": called(
        calls(call(0, "call_a", arguments=OSLO_TEXT, type="function")), calls(call(0, name="look"))
    ),
    "arguments before the name and the id": called(
        calls(call(0, arguments='{"city": ')),
        calls(call(0, arguments='"Oslo"}')),
        calls(entry(0, "call_a", "look", "")),
    ),
    "arguments of the second call before its name": called(
        *LOOK, calls(call(1, arguments=LODZ_TEXT)), calls(entry(1, "call_b", "look", "")), means=TWO
    ),
    "arguments that are null first": called(
        calls({"index": 0, "id": "call_a", "type": "function", "function": {"name": "look", "arguments": None}}),
        calls(call(0, arguments=OSLO_TEXT)),
    ),
    "no arguments": called(calls(entry(0, "call_a", "now", None)), means=(NOW,)),
    "empty arguments": called(calls(entry(0, "call_a", "now", "")), means=(NOW,)),
    "empty arguments of the first of two calls": called(
        calls(entry(0, "call_a", "now", "")), calls(entry(1, "call_b", "look", OSLO_TEXT)), means=(NOW, OSLO)
    ),
    "blank arguments": called(calls(entry(0, "call_a", "now", " \n")), means=(NOW,)),
    "an empty object before the arguments": called(
        calls(entry(0, "call_a", "look", "{}")), calls(call(0, arguments=OSLO_TEXT))
    ),
    "arguments sent twice": called(*LOOK, calls(call(0, arguments=OSLO_TEXT))),
}

NAMES: Final = {
    "no id": called(calls(entry(0, None, "look", "")), calls(call(0, arguments=OSLO_TEXT))),
    "no ids of two calls": called(
        calls(entry(0, None, "look", OSLO_TEXT)), calls(entry(1, None, "look", LODZ_TEXT)), means=TWO
    ),
    "an empty id": called(calls(entry(0, "", "look", "")), calls(call(0, arguments=OSLO_TEXT))),
    "an id that is a number": called(calls(entry(0, 17, "look", "")), calls(call(0, arguments=OSLO_TEXT))),
    "an id for two calls": called(
        calls(entry(0, "call_a", "look", OSLO_TEXT)), calls(entry(1, "call_a", "look", LODZ_TEXT)), means=TWO
    ),
    "the id in each piece": called(
        calls(entry(0, "call_a", "look", '{"city": ')), calls(call(0, "call_a", arguments='"Oslo"}'))
    ),
    "the name in each piece": called(
        calls(entry(0, "call_a", "look", '{"city": ')), calls(call(0, name="look", arguments='"Oslo"}'))
    ),
    "everything in each piece": called(
        calls(entry(0, "call_a", "look", "")),
        calls(entry(0, "call_a", "look", '{"city": ')),
        calls(entry(0, "call_a", "look", '"Oslo"}')),
    ),
    "another id in each piece": called(
        calls(entry(0, "call_a", "look", '{"city": ')), calls(call(0, "call_x", arguments='"Oslo"}'))
    ),
    "the id behind the name": called(
        calls(entry(0, None, "look", None)), calls(call(0, "call_a")), calls(call(0, arguments=OSLO_TEXT))
    ),
    "the id behind the arguments": called(
        calls(entry(0, None, "look", OSLO_TEXT)), calls(call(0, "call_a", type="function"))
    ),
    "the name behind the id": called(
        calls(call(0, "call_a", type="function")), calls(call(0, name="look")), calls(call(0, arguments=OSLO_TEXT))
    ),
    "no type": called(calls(call(0, "call_a", "look", "", type=None)), calls(call(0, arguments=OSLO_TEXT))),
    "a type that is empty": called(
        calls(call(0, "call_a", "look", "", type="")), calls(call(0, arguments=OSLO_TEXT, type=""))
    ),
    "neither index nor type": called(calls(call(None, "call_a", "look", OSLO_TEXT, type=None))),
    "neither index, id nor type": called(calls(call(None, None, "look", OSLO_TEXT))),
}

ENDS: Final = {
    "stop with a call": called(*LOOK, end=(STOP, DONE)),
    "stop in the chunk of a whole call": called(
        with_choice(calls(entry(0, "call_a", "look", OSLO_TEXT)), finish_reason="stop"), end=(DONE,)
    ),
    "tool_calls without a call": greeting(*HELLO, end=(chunk({}, "tool_calls"), DONE)),
    "an unknown reason": greeting(*HELLO, end=(chunk({}, "end_turn"), DONE)),
    "a reason in capitals": greeting(*HELLO, end=(chunk({}, "STOP"), DONE)),
    "the reason of the old functions": called(*LOOK, end=(chunk({}, "function_call"), DONE)),
    "a reason that is empty in each chunk": greeting(*(with_choice(one, finish_reason="") for one in HELLO)),
    "a reason in each chunk": greeting(*(with_choice(one, finish_reason="stop") for one in HELLO), end=(DONE,)),
    "no reason": greeting(*HELLO, end=(DONE,)),
    "no reason, and a call": called(*LOOK, end=(DONE,)),
    "no [DONE]": greeting(*HELLO, end=(STOP,)),
    "no [DONE], and a call": called(*LOOK, end=(chunk({}, "tool_calls"),)),
    "no [DONE] behind the costs": greeting(*HELLO, end=(STOP, {**chunk({}), "choices": [], "usage": COST})),
    "two reasons": called(*LOOK, end=(STOP, chunk({}, "tool_calls"), DONE)),
    "two reasons that disagree": called(*LOOK, end=(chunk({}, "tool_calls"), STOP, DONE)),
    "text behind the reason": greeting(begin("Hel"), STOP, text("lo"), end=(DONE,)),
    "a call behind the reason": called(STOP, *LOOK, end=(DONE,)),
    "[DONE] twice": greeting(*HELLO, end=(STOP, DONE, DONE)),
    "chunks behind [DONE]": greeting(*HELLO, end=(STOP, DONE, text("lo"), chunk({}, "stop"))),
}

SHAPES: Final = {
    "no role": greeting(text("Hel"), text("lo")),
    "no role, and a call": Broken(sse([*LOOK, chunk({}, "tool_calls"), DONE]), "", (OSLO,), "tool_calls"),
    "the role in each chunk": greeting(*HELLO[:1], chunk({"role": "assistant", "content": "lo"})),
    "a role of another protocol": greeting(chunk({"role": "model", "content": "Hel"}), text("lo")),
    "choices that are null": greeting({**begin(), "choices": None}, *HELLO),
    "choices that are null in the middle": greeting(HELLO[0], {**begin(), "choices": None}, HELLO[1]),
    "no choices in a chunk": greeting(HELLO[0], without(begin(), "choices"), HELLO[1]),
    "costs with choices that are null": greeting(*HELLO, end=(STOP, {**begin(), "choices": None, "usage": COST}, DONE)),
    "costs without choices": greeting(*HELLO, end=(STOP, {**without(begin(), "choices"), "usage": COST}, DONE)),
    "a choice without an index": greeting(*(with_choice(one, "index") for one in HELLO)),
    "a delta that is null": greeting(*HELLO, with_choice(STOP, delta=None), end=(DONE,)),
    "no delta": greeting(*HELLO, with_choice(STOP, "delta"), end=(DONE,)),
    "no object": greeting(*(without(one, "object", "created") for one in HELLO)),
    "no id and no model": greeting(*(without(one, "id", "model") for one in HELLO)),
    "another id in each chunk": greeting({**HELLO[0], "id": "chatcmpl-0"}, HELLO[1]),
    "a call that is not in a list": called(chunk({"tool_calls": entry(0, "call_a", "look", OSLO_TEXT)})),
    "content as parts": greeting(begin(), chunk({"content": [{"type": "text", "text": "Hello"}]})),
    "a message instead of deltas": greeting(end=(with_choice(WHOLE), DONE)),
    "a message with a call instead of deltas": Broken(
        sse(
            [
                with_choice(WHOLE, message={"content": None, "tool_calls": [WHOLE_CALL]}, finish_reason="tool_calls"),
                DONE,
            ]
        ),
        "",
        (OSLO,),
        "tool_calls",
    ),
    "snapshots beside the deltas": greeting(
        with_choice(HELLO[0], message={"role": "assistant", "content": "Hel"}),
        with_choice(HELLO[1], message={"role": "assistant", "content": "Hello"}),
    ),
    "the whole message at the end": greeting(
        *HELLO, with_choice(STOP, message={"role": "assistant", "content": "Hello"}), end=(DONE,)
    ),
    "a whole answer": greeting(body=json.dumps(WHOLE).encode()),
}

_STREAM: Final = greeting(*HELLO).body
FRAMES: Final = {
    "comments": greeting(body=b": PROCESSING\n\n" + _STREAM.replace(b"data: [", b": ping\n\ndata: [")),
    "comments within an event": greeting(body=_STREAM.replace(b"data: ", b": ping\ndata: ")),
    "lines that end in CR LF": greeting(body=_STREAM.replace(b"\n", b"\r\n")),
    "lines that end in CR": greeting(body=_STREAM.replace(b"\n", b"\r")),
    "no space behind the colon": greeting(body=_STREAM.replace(b"data: ", b"data:")),
    "no empty line at the end": greeting(body=_STREAM.rstrip(b"\n")),
    "events with names": greeting(body=_STREAM.replace(b"data: ", b"event: message\ndata: ")),
    "blank lines": greeting(body=b"\n\n" + _STREAM.replace(b"\n\n", b"\n\n\n\n")),
    "a byte order mark": greeting(body=b"\xef\xbb\xbf" + _STREAM),
    "events without data": greeting(body=_STREAM.replace(b"data: [", b"data:\n\ndata: [")),
    "an event that is not JSON": greeting(body=_STREAM.replace(b"data: [", b"data: keep-alive\n\ndata: [")),
    "ids of events, and a time to reconnect": greeting(body=_STREAM.replace(b"data: ", b"id: 7\nretry: 5\ndata: ")),
    "JSON over several lines": greeting(body=_STREAM.replace(b', "object"', b',\ndata: "object"')),
}

BROKEN: Final = {**INDEXES, **ARGUMENTS, **NAMES, **ENDS, **SHAPES, **FRAMES}
