"""Law 15: what is remembered of earlier requests never changes how a request is read, or what is sent for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.protocols.strategies.anthropic import anthropic_requests
from support.protocols.strategies.bedrock import bedrock_requests
from support.protocols.strategies.cohere import cohere_requests
from support.protocols.strategies.gemini import gemini_requests
from support.protocols.strategies.ollama import ollama_requests
from support.protocols.strategies.openai_chat import chat_requests
from support.protocols.strategies.openai_responses import openai_responses_requests
from toolglot.conversation.turn_memo import MAX_KEYS
from toolglot.errors import ToolglotError
from toolglot.jsontext import count_marks
from toolglot.limits import Limits
from toolglot.protocols.base import get
from toolglot.translate.request_memory import COST, MAX_SESSIONS, ClientRequests, RequestMemory
from toolglot.translate.requests import read_continued, read_request

Fields = dict[str, Any]

REQUESTS = {
    "anthropic": anthropic_requests,
    "bedrock": bedrock_requests,
    "cohere": cohere_requests,
    "gemini": gemini_requests,
    "ollama": ollama_requests,
    "openai_chat": chat_requests,
    "openai_responses": openai_responses_requests,
}
TARGETS = (("openai", "gpt-4.1"), ("anthropic", "claude-sonnet-4-5"), ("mistral", "mistral-large-latest"))


def seen(body: bytes, source: str, memory: ClientRequests | None) -> Any:
    """All that can be seen of a request: how it was read, and what it becomes for some targets."""
    try:
        received = read_request(body, source=source, memory=memory)
    except ToolglotError as error:
        return type(error), str(error)
    read = (json.dumps(received.fields), received.conversation, received.is_as_written)
    return read, [sent(received, name, model) for name, model in TARGETS]


def sent(received: Any, name: str, model: str) -> Any:
    try:
        out = received.for_target(name, model=model)
    except ToolglotError as error:
        return type(error), str(error)
    assert json.loads(out.data) == out.body
    return out.data, list(out.report), out.report.ids


def a_memory(**limits: Any) -> RequestMemory:
    return RequestMemory(min_bytes=0, **limits)


def written(draw: st.DrawFn, body: Fields) -> bytes:
    """A body as one of several clients writes it."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",\n ", ":")]))
    return json.dumps(body, separators=separators, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


@st.composite
def sessions(draw: st.DrawFn, protocol: str) -> list[bytes]:
    """Requests that share beginnings: grown, cut, changed in the middle, with other settings, and malformed."""
    requests, field = REQUESTS[protocol], get(protocol).turns
    bodies = draw(st.lists(requests, min_size=1, max_size=3))
    items = [item for body in bodies for item in body.get(field) or () if isinstance(body.get(field), list)]
    made: list[bytes] = []
    style = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    for _ in range(draw(st.integers(2, 6))):
        body = draw(st.sampled_from(bodies))
        length = draw(st.integers(0, len(items)))
        turns = [*items[:length], *draw(st.lists(st.sampled_from(items), max_size=2) if items else st.just([]))]
        if turns and draw(st.integers(0, 3)) == 0:
            turns[draw(st.integers(0, len(turns) - 1))] = draw(st.sampled_from(items))
        fields = {**body, field: turns}
        if draw(st.booleans()):
            fields = {field: turns} | {key: value for key, value in body.items() if key != field}
        data = json.dumps(fields, separators=style).encode() if draw(st.integers(0, 3)) else written(draw, fields)
        made.append(draw(spoilt(data, field)) if draw(st.integers(0, 5)) == 0 else data)
    return made


@st.composite
def spoilt(draw: st.DrawFn, data: bytes, field: str) -> bytes:
    """A body with a mistake, or with something that looks like its list of turns."""
    at = draw(st.integers(0, len(data)))
    pieces = [b"]", b"}", b"{", b",", b'"', b"[]", b',"%b":[]' % field.encode(), b'"a":1,"a":2,', b"\xff", b"\\ud800"]
    return draw(
        st.sampled_from(
            [
                data[:at] + draw(st.sampled_from(pieces)) + data[at:],
                data[:at],
                data.replace(b"{", b'{"a":1,"a":2,', 2),
                data.rstrip()[:-1] + b',"%b":[{"role":"user"}]}' % field.encode(),
                b'{"x":{"%b":[]},' % field.encode() + data[1:],
                data + b" ",
                b"\xef\xbb\xbf" + data,
                data.replace(b"1", b"7401236598012347651", 1),
            ]
        )
    )


@pytest.mark.law
@pytest.mark.parametrize("protocol", REQUESTS)
@given(data=st.data())
def test_law_15_a_request_is_read_alike_with_and_without_a_memory(protocol: str, data: st.DataObject) -> None:
    memory = a_memory()
    for body in data.draw(sessions(protocol)):
        alone = seen(body, protocol, None)
        assert seen(body, protocol, memory.of("client")) == alone
        assert seen(body, protocol, memory.of("client")) == alone
        if data.draw(st.integers(0, 5)) == 0:
            memory.forget(data.draw(st.sampled_from(["client", None])))


# --- what is reused -----------------------------------------------------------------------------------


def text(role: str, words: str) -> Fields:
    return {"role": role, "content": [{"type": "text", "text": words}]}


def turns_of(count: int) -> list[Fields]:
    made = []
    for number in range(count):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"{number}.py"}}
        made.append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"file {number} " * 50}
        made.append({"role": "user", "content": [result]})
    return [text("user", "Fix it. " * 20), *made]


def marked(turns: Sequence[Fields]) -> list[Fields]:
    """The turns with a cache marker at the end of the last one, as Claude Code sends them."""
    last = {**turns[-1]["content"][-1], "cache_control": {"type": "ephemeral"}}
    return [*turns[:-1], {**turns[-1], "content": [*turns[-1]["content"][:-1], last]}]


def request_of(turns: Sequence[Fields], **more: Any) -> bytes:
    tool = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    fields = {"model": "claude-opus-5", "messages": turns, "system": "Be brief.", "tools": [tool], "max_tokens": 9}
    return json.dumps({**fields, **more}).encode()


def read_after(memory: RequestMemory, body: bytes, client: str = "a") -> int:
    """How many bytes of a body had to be read."""
    before = memory.new_bytes
    received = read_request(body, source="anthropic", memory=memory.of(client))
    alone = read_request(body, source="anthropic")
    assert received.conversation == alone.conversation
    for name, model in (*TARGETS, ("openai", "gpt-4.1")):
        assert sent(received, name, model) == sent(alone, name, model)
    return memory.new_bytes - before


def test_law_9_the_next_turn_of_a_session_costs_what_it_adds() -> None:
    memory, turns = a_memory(), turns_of(200)
    whole = read_after(memory, request_of(turns[:-2]))
    assert read_after(memory, request_of(turns)) < whole / 50


def test_a_moved_cache_marker_costs_the_turns_that_it_was_moved_between() -> None:
    memory, turns = a_memory(), turns_of(200)
    whole = read_after(memory, request_of(marked(turns[:-4])))
    for length in (-2, None):
        assert read_after(memory, request_of(marked(turns[:length]))) < whole / 40


def test_other_settings_and_tools_behind_the_turns_do_not_matter() -> None:
    memory, turns = a_memory(), turns_of(200)
    whole = read_after(memory, request_of(turns))
    assert read_after(memory, request_of(turns, max_tokens=7, stream=True, tools=[])) < whole / 50


def test_a_rewound_session_and_the_one_that_it_left_are_both_known() -> None:
    memory, turns = a_memory(), turns_of(100)
    whole = read_after(memory, request_of(turns))
    branch = [*turns[:100], text("user", "No, otherwise.")]
    assert read_after(memory, request_of(branch)) < whole / 20
    assert read_after(memory, request_of([*turns, text("user", "Go on.")])) < whole / 20


def test_sessions_of_one_client_do_not_displace_each_other() -> None:
    memory = a_memory()
    own = [[text("user", f"task {number}"), *turns_of(20)] for number in range(MAX_SESSIONS)]
    sizes = [read_after(memory, request_of(turns[:-2])) for turns in own]
    for turns, size in zip(own, sizes, strict=True):
        assert read_after(memory, request_of(turns)) < size / 5


def test_a_client_never_gets_what_another_one_sent() -> None:
    memory, body = a_memory(), request_of(turns_of(20))
    read_after(memory, body)
    assert read_after(memory, body, "b") == len(body)
    assert read_continued(body, memory.of("c"), source="anthropic") is None


# --- limits ---------------------------------------------------------------------------------------------


def test_the_memory_is_bounded_in_bytes_and_sessions() -> None:
    memory = a_memory(max_bytes=lambda: 400_000)
    for number in range(100):
        read_after(memory, request_of([text("user", f"task {number}"), *turns_of(10)]))
        assert memory.size <= 400_000
    assert memory.size > 0
    big = request_of(turns_of(300))
    assert read_after(memory, big) == read_after(memory, big) == len(big)  # one session may not displace all others


def test_no_more_than_so_many_sessions_of_a_client_are_kept() -> None:
    memory = a_memory()
    for number in range(2 * MAX_SESSIONS):
        read_after(memory, request_of([text("user", f"task {number}"), *turns_of(1)]))
    kept = memory.requests_of(("a", "anthropic"))
    assert len(kept) == MAX_SESSIONS


def test_many_small_values_count_for_the_memory_that_they_take() -> None:
    memory = a_memory()
    body = request_of([text("user", "go"), *[{"role": "user", "content": [{"type": "text", "text": "a"}] * 20_000}]])
    read_after(memory, body)
    assert memory.size > 3 * COST * len(body)


@pytest.mark.parametrize("depth", range(14, 22))
def test_new_turns_may_be_as_deep_as_they_may_be_in_a_whole_body(depth: int) -> None:
    memory, turns, limits = a_memory(), turns_of(20), Limits(max_depth=20)
    read_after(memory, request_of(turns))
    deep = text("user", "go")
    for _ in range(depth):
        deep = {**text("user", "go"), "more": deep}
    body = request_of([*turns, deep])

    def outcome(own: ClientRequests | None) -> Any:
        try:
            return read_request(body, source="anthropic", limits=limits, memory=own).conversation
        except ToolglotError as error:
            return str(error)

    assert outcome(memory.of("a")) == outcome(None)


def test_a_key_that_comes_twice_is_not_hidden_by_quotes_that_are_written_as_numbers() -> None:
    memory, turns = a_memory(), turns_of(20)
    body = request_of(turns).replace(b'"model"', b'"model": "other", "model"', 1)
    body = body.replace(b"Fix it. ", rb"Fix it.\u0022\u0022\u0022\u0022", 1)
    for _ in range(2):
        received = read_request(body, source="anthropic", memory=memory.of("a"))
        assert not received.has_unique_keys
    assert memory.size == 0


def test_values_are_counted_alike_however_often_a_session_was_rewound() -> None:
    memory, turns = a_memory(), turns_of(30)
    for number in range(60):
        last = text("user", "[,{" * (number % 7) + str(number))
        body = request_of([*turns[: -1 - number % 5], last], **({"metadata": {"a": [1, 2, 3]}} if number % 3 else {}))
        own = memory.of("a")
        counted = own.count_values(body, "anthropic")
        assert counted == (count_marks(body) if number else None)
        read_request(body, source="anthropic", memory=own)


@pytest.mark.parametrize("is_continued", [True, False])
def test_what_became_of_turns_that_are_gone_is_not_held(is_continued: bool) -> None:
    memory, turns = a_memory(), turns_of(20)
    for number in range(40):
        for name, model in TARGETS:
            kept = [*turns, text("user", f"{number} " * 5_000), *([] if is_continued else turns[-8:])]
            received = read_request(request_of(kept), source="anthropic", memory=memory.of("a"))
            assert received.for_target(name, model=model).data
    memos = {id(known.memo): known.memo for _, known in memory.requests_of(("a", "anthropic"))}
    held = [made for memo in memos.values() for _, each in memo._made.values() for made in each.values()]
    known = {id(turn) for _, request in memory.requests_of(("a", "anthropic")) for turn in request.turns}
    big = [turn for turn, _ in held if len(turn.text) > 5_000]
    assert all(id(turn) in known for turn in big)
    assert len(held) <= len(memos) * MAX_KEYS * (len(kept) + 1)


def test_what_is_old_is_forgotten() -> None:
    now = [0.0]
    memory, body = a_memory(clock=lambda: now[0], max_age_seconds=60.0), request_of(turns_of(20))
    read_after(memory, body)
    now[0] = 59.0
    assert read_after(memory, body) < len(body)
    now[0] = 120.0
    assert read_after(memory, body) == len(body)


def test_a_smaller_memory_holds_less_from_the_next_request_on() -> None:
    most = [1 << 30]
    memory, body = a_memory(max_bytes=lambda: most[0]), request_of(turns_of(20))
    read_after(memory, body)
    most[0] = 0
    read_request(body, source="anthropic", memory=memory.of("b"))
    assert memory.size == 0


@pytest.mark.parametrize("client", ["a", None])
def test_what_is_purged_is_forgotten(client: str | None) -> None:
    memory, body = a_memory(), request_of(turns_of(20))
    read_after(memory, body)
    memory.forget(client)
    assert memory.size == 0
    assert read_after(memory, body) == len(body)


def test_a_memory_of_no_bytes_keeps_nothing() -> None:
    memory, body = a_memory(max_bytes=lambda: 0), request_of(turns_of(20))
    received = [read_request(body, source="anthropic", memory=memory.of("a")) for _ in range(2)]
    assert memory.size == 0
    assert received[0].conversation == received[1].conversation
