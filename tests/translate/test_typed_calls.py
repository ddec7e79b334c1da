"""Tools that OpenAI defines and the client runs, on models of other providers: their calls are items of their own type.

Law: whatever model calls such a tool, the client gets the item that OpenAI would send, whole and streamed; and its
history reaches any model as calls and results, and OpenAI as it was.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from support.protocols.body_laws import same_json
from toolglot import ConvertedRequest, StreamTranslator, convert, convert_reply, lint
from toolglot.protocols.openai_responses import request
from toolglot.protocols.openai_responses.client_calls import NOTHING_FOUND

Fields = dict[str, Any]

SEARCH_PARAMETERS: Final = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS: Final[list[Fields]] = [
    {"type": "apply_patch"},
    {"type": "local_shell"},
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": SEARCH_PARAMETERS},
]
PATCH: Final = {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+ä"}
ACTION: Final = {"command": ["ls", "-l"], "env": {}, "timeout_ms": 100}
CALLS: Final[dict[str, tuple[Fields, Fields]]] = {
    "apply_patch": (PATCH, {"type": "apply_patch_call", "operation": PATCH}),
    "local_shell": (ACTION, {"type": "local_shell_call", "action": {"type": "exec", **ACTION}}),
    "shell": ({"commands": ["ls"]}, {"type": "shell_call", "action": {"commands": ["ls"]}}),
    "tool_search": (
        {"query": "mail"},
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "mail"}},
    ),
}
"""By type: the arguments, and the item without its ids and its status."""
CHUNKS: Final = [
    {"stdout": "x", "stderr": "e", "outcome": {"type": "exit", "exit_code": 2}},
    {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
]
OUTPUTS: Final[dict[str, tuple[Fields, str]]] = {
    "apply_patch": ({"type": "apply_patch_call_output", "status": "failed", "output": "no such file"}, "no such file"),
    "local_shell": ({"type": "local_shell_call_output", "output": "a.txt"}, "a.txt"),
    "shell": ({"type": "shell_call_output", "output": CHUNKS}, "x\ne\n[exit code 2]\n[timeout]"),
    "tool_search": (
        {"type": "tool_search_output", "execution": "client", "status": "completed", "tools": []},
        NOTHING_FOUND,
    ),
}
"""By type: the item of the output without the id of its call, and what another model reads."""
TARGETS: Final = {
    "anthropic": "claude-opus-5",
    "openai": "gpt-4.1",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "bedrock": "anthropic.claude-sonnet-4-5-v1:0",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
}


def body_with(kind: str) -> Fields:
    """A history with a call of a tool and its output."""
    call = {**CALLS[kind][1], "id": "item_1", "call_id": "call_1", "status": "completed"}
    id = "id" if kind == "local_shell" else "call_id"
    items = [{"role": "user", "content": "Go"}, call, {**OUTPUTS[kind][0], id: "call_1"}]
    return {"model": "gpt-5.5", "tools": copy.deepcopy(TOOLS), "input": copy.deepcopy(items)}


def converted(body: Fields, target: str = "anthropic") -> ConvertedRequest:
    return convert(body, source="openai_responses", target=target, model=TARGETS[target])


@pytest.mark.parametrize("kind", CALLS)
def test_law_3_a_history_reaches_openai_as_it_was(kind: str) -> None:
    body = body_with(kind)
    out = convert(body, source="openai_responses", target="openai_responses")
    assert out.body == body
    assert out.report.entries == ()
    assert lint(body, target="openai_responses") == ()
    assert same_json(request.encode(request.decode(body)), body)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", CALLS)
def test_a_history_reaches_any_model_as_calls_and_results(kind: str, target: str) -> None:
    out = converted(body_with(kind), target)
    assert lint(out.body, target=target, model=TARGETS[target]) == ()
    reasons = [entry.reason for entry in out.report.entries]
    assert f"there are no calls of the type {kind}; they became calls of a function" in reasons
    assert sum("became a function with its published parameters" in reason for reason in reasons) == len(TOOLS)
    back = convert(out.body, source=target, target="openai", model="gpt-4.1").body["messages"]
    (call,) = [call["function"] for message in back for call in message.get("tool_calls", ())]
    assert (call["name"], json.loads(call["arguments"])) == (kind, CALLS[kind][0])
    (result,) = [message["content"] for message in back if message["role"] == "tool"]
    assert result.removeprefix("Error: ") == OUTPUTS[kind][1]


def reply_with(name: str, arguments: Fields) -> Fields:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def stream_with(name: str, arguments: Fields, *, is_cut: bool = False) -> list[Fields]:
    text = json.dumps(arguments)
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    opened = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces[: -1 if is_cut else None]]
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [
        {"type": "message_start", "message": {**reply_with(name, {}), "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": opened},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens" if is_cut else "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    ]


def streamed(out: ConvertedRequest, events: list[Fields]) -> list[Fields]:
    translator = StreamTranslator(source="anthropic", target="openai_responses", request=out)
    data = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    text = (translator.feed(data) + translator.finish()).decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("kind", CALLS)
def test_the_call_of_another_model_comes_back_as_an_item_of_its_type(kind: str) -> None:
    arguments, item = CALLS[kind]
    reply = convert_reply(
        reply_with(kind, arguments),
        source="anthropic",
        target="openai_responses",
        request=converted(body_with("apply_patch")),
    )
    (found,) = reply.body["output"]
    assert found == {**item, "id": found["id"], "call_id": "call_1", "status": "completed"}
    sent_back = {**body_with(kind), "input": [{"role": "user", "content": "Go"}, found]}
    output = {**OUTPUTS[kind][0], "id" if kind == "local_shell" else "call_id": "call_1"}
    assert lint({**sent_back, "input": [*sent_back["input"], output]}, target="openai_responses") == ()


@pytest.mark.parametrize("kind", CALLS)
def test_law_8_a_streamed_call_is_shown_whole_as_an_item_of_its_type(kind: str) -> None:
    arguments, item = CALLS[kind]
    events = streamed(converted(body_with("apply_patch")), stream_with(kind, arguments))
    assert [event["type"] for event in events] == [
        *("response.created", "response.in_progress", "response.output_item.added"),
        *("response.output_item.done", "response.completed"),
    ]
    added, done, last = (events[number] for number in (2, 3, 4))
    whole = {**item, "id": done["item"]["id"], "call_id": "call_1", "status": "completed"}
    assert done["item"] == whole
    assert added["item"] == {**whole, "status": "in_progress"}
    assert last["response"]["output"] == [whole]


@pytest.mark.parametrize("kind", CALLS)
def test_law_11_a_call_that_was_cut_is_never_shown_as_one(kind: str) -> None:
    events = streamed(converted(body_with("apply_patch")), stream_with(kind, CALLS[kind][0], is_cut=True))
    assert events[-1]["type"] == "response.incomplete"
    assert {item["type"] for item in events[-1]["response"]["output"]} <= {"message"}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("local_shell", {"command": "ls -l"}),
        ("shell", {"commands": "ls"}),
        ("shell", {}),
        ("apply_patch", {"type": "move_file", "path": "a"}),
        ("apply_patch", {"diff": "+a"}),
    ],
)
def test_law_11_arguments_that_no_item_can_hold_become_text(kind: str, arguments: Fields) -> None:
    out = converted(body_with("apply_patch"))
    reply = convert_reply(reply_with(kind, arguments), source="anthropic", target="openai_responses", request=out)
    (item,) = reply.body["output"]
    assert item["type"] == "message"
    assert f"The model called {kind} with arguments that cannot be read" in item["content"][0]["text"]
    assert any("its arguments do not fit its tool" in entry.reason for entry in reply.report.entries)
    (last,) = streamed(out, stream_with(kind, arguments))[-1]["response"]["output"]
    assert last["content"][0]["text"] == item["content"][0]["text"]


def test_a_search_may_have_any_arguments_since_the_client_reads_them_itself() -> None:
    out = converted(body_with("tool_search"))
    reply = convert_reply(
        reply_with("tool_search", {"q": 1}), source="anthropic", target="openai_responses", request=out
    )
    assert [item["arguments"] for item in reply.body["output"]] == [{"q": 1}]


def test_a_forced_tool_is_the_one_of_that_type() -> None:
    body = {**body_with("apply_patch"), "tool_choice": {"type": "apply_patch"}}
    assert convert(body, source="openai_responses", target="openai_responses").body == body
    assert converted(body).body["tool_choice"] == {"type": "tool", "name": "apply_patch"}


CONTAINER: Final = {"type": "container_reference", "container_id": "c"}


def test_a_shell_that_openai_runs_stays_its_own() -> None:
    call = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}, "environment": CONTAINER}
    output = {"type": "shell_call_output", "call_id": "call_1", "output": CHUNKS}
    items = [{"role": "user", "content": "Go"}, call, output, {"role": "user", "content": "On"}]
    body = {"model": "gpt-5.5", "input": items}
    assert not any(turn.calls or turn.results for turn in request.decode(body).turns)
    out = convert(body, source="openai_responses", target="openai_responses")
    assert (out.body, out.report.entries) == (body, ())


@pytest.mark.parametrize("id", ["call_2", "item_2", "out_2"])
def test_the_output_of_a_local_shell_finds_its_call(id: str) -> None:
    """It has an `id` only. The documentation calls it that of the call; clients also send that of an item."""
    calls = [
        {**CALLS["local_shell"][1], "id": f"item_{number}", "call_id": f"call_{number}", "status": "completed"}
        for number in (1, 2)
    ]
    outputs = [{"type": "local_shell_call_output", "id": found, "output": found} for found in ("call_1", id)]
    body = {"model": "m", "input": [calls[0], outputs[0], calls[1], outputs[1]]}
    decoded = request.decode(body)
    results = [result for turn in decoded.turns for result in turn.results]
    assert [(result.call_id, result.content) for result in results] == [("call_1", "call_1"), ("call_2", id)]
    assert same_json(request.encode(decoded), body)


CIPHER: Final = "gAAAAAB" + "a0_-" * 30
MESSAGE: Final[Fields] = {
    "type": "agent_message",
    "id": "amsg_1",
    "author": "/root",
    "recipient": "/root/child",
    "content": [
        {"type": "input_text", "text": "Payload:"},
        {"type": "encrypted_content", "encrypted_content": "Write the file."},
    ],
}


@pytest.mark.parametrize(
    ("encrypted", "text"),
    [("Write the file.", "Write the file."), (CIPHER, "[encrypted text that only OpenAI can read]")],
)
def test_a_message_between_agents_is_labelled_text_of_the_user(encrypted: str, text: str) -> None:
    message = copy.deepcopy(MESSAGE)
    message["content"][1]["encrypted_content"] = encrypted
    calls = [{"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]
    calls += [{"type": "function_call_output", "call_id": "call_1", "output": "ok"}]
    body = {"model": "gpt-6-sol", "input": [{"role": "user", "content": "Go"}, *calls, message]}
    home = convert(body, source="openai_responses", target="openai_responses")
    assert (home.body, home.report.entries) == (body, ())
    out = convert(body, source="openai_responses", target="openai", model="gpt-4.1")
    expected = f"[Message from agent /root to /root/child]\nPayload:\n{text}"
    assert out.body["messages"][-1] == {"role": "user", "content": expected}
    assert any("agent_message of openai_responses became text" in entry.reason for entry in out.report.entries)
