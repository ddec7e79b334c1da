"""What gateways of today fail at, through every endpoint to every kind of provider. Letters name known failures.

The simulator refuses what the provider would; here it refuses nothing, and what really happened is still reported:
every real result is beside its own call.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from sdk.samples import PNG
from support.gateway.client_histories import (
    CLIENTS,
    Call,
    Calls,
    ClientReply,
    Result,
    Results,
    Turn,
    UserText,
    pairs_in,
    read_reply,
    request,
)
from support.gateway.http_client import ask
from support.gateway.served_gateway import Served
from toolglot.simulator.serving import Server

A: Final = {"name": "read_file", "arguments": {"path": "a.txt"}}
B: Final = {"name": "read_file", "arguments": {"path": "b.txt"}}
SCRIPT: Final[dict[str, Any]] = {
    "chunk": 4,
    "rules": [
        {"when": {"contains": "both", "results": 0}, "reply": {"text": "I look.", "calls": [A, B]}},
        {"when": {"contains": "read", "results": 0}, "reply": {"text": "I look.", "calls": [A]}},
        {"reply": {"text": "It says hello."}},
    ],
}
UPSTREAMS: Final = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai_chat/gpt-4.1",
    "openai_responses": "openai_responses/gpt-4.1",
    "gemini": "gemini/gemini-2.5-pro",
    "mistral": "mistral/mistral-large-latest",
}
clients = pytest.mark.parametrize("client", CLIENTS)
upstreams = pytest.mark.parametrize("upstream", UPSTREAMS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

LAST_QUESTION: Final = UserText("Go on, please.")
ONE: Final = Calls((Call("call_1", "a.txt"),))
TWO: Final = Calls((Call("call_1", "a.txt"), Call("call_2", "b.txt")))


def sent(simulated: Server, served: Served, client: str, upstream: str, turns: list[Turn], **more: Any) -> Any:
    """What the provider got of a history, which it accepted."""
    path, body = request(client, UPSTREAMS[upstream], turns, **more)
    got = ask(served, path, body)
    assert got.status == 200, got.data
    last = simulated.requests[-1]
    assert (last.status, last.error) == (200, "")
    assert "It says hello." in read_reply(client, got, stream=False).text
    return last.body


def answered(served: Served, client: str, model: str, words: str, *, stream: bool, **more: Any) -> ClientReply:
    """What a client hears."""
    path, body = request(client, model, [UserText(words)], **({"stream": True} if stream else {}), **more)
    got = ask(served, path, body)
    assert got.status == 200, got.data
    return read_reply(client, got, stream=stream)


# --- broken histories -------------------------------------------------------------------------------


@clients
@upstreams
def test_a_dangling_call_is_accepted_A1_A4_A7_A8(simulated: Server, served: Served, client: str, upstream: str) -> None:
    body = sent(simulated, served, client, upstream, [UserText("Hi"), ONE, LAST_QUESTION])
    ((path, result),) = pairs_in(upstream, body)
    assert path == "a.txt"
    assert result != "?", "an answer stands in for the one that never came"


@clients
@upstreams
def test_an_orphan_result_is_kept_as_words_A2_A5_A6_A9(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    orphan = Results((Result("call_9", "the answer was 42"),))
    body = sent(simulated, served, client, upstream, [UserText("Hi"), orphan, LAST_QUESTION])
    assert pairs_in(upstream, body) == []
    assert "the answer was 42" in json.dumps(body)


@clients
@upstreams
def test_partial_results_of_parallel_calls_stay_with_theirs_A1_A8(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    got = Results((Result("call_2", "b says hello"),))
    body = sent(simulated, served, client, upstream, [UserText("Hi"), TWO, got, LAST_QUESTION])
    (first, missing), (second, real) = pairs_in(upstream, body)
    assert (first, second) == ("a.txt", "b.txt")
    assert "b says hello" in real
    assert "b says hello" not in missing
    assert missing != "?"


@clients
@upstreams
def test_of_two_results_of_one_call_one_is_sent_A3(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    twice = Results((Result("call_1", "a says hello"), Result("call_1", "a says hello")))
    body = sent(simulated, served, client, upstream, [UserText("Hi"), ONE, twice, LAST_QUESTION])
    ((path, result),) = pairs_in(upstream, body)
    assert path == "a.txt"
    assert result.count("a says hello") == 1
    assert "|" not in result


@clients
@upstreams
def test_ids_that_come_again_name_their_own_calls_B6(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    turns: list[Turn] = [UserText("Hi")]
    for name in ("a", "b", "c"):
        turns += [
            Calls((Call("call_0", f"{name}.txt"),)),
            Results((Result("call_0", f"{name} says hello"),)),
            LAST_QUESTION,
        ]
    body = sent(simulated, served, client, upstream, turns)
    pairs = pairs_in(upstream, body)
    assert [path for path, _ in pairs] == ["a.txt", "b.txt", "c.txt"]
    for (path, result), name in zip(pairs, "abc", strict=True):
        assert f"{name} says hello" in result, path
        assert "|" not in result


# --- answers ----------------------------------------------------------------------------------------


@streams
@clients
@upstreams
def test_two_calls_at_once_are_two_calls_H1_H6(served: Served, client: str, upstream: str, stream: bool) -> None:
    reply = answered(served, client, UPSTREAMS[upstream], "read both", stream=stream)
    assert reply.text == "I look."
    assert [(name, json.loads(text)) for _, name, text in reply.calls] == [
        ("read_file", {"path": "a.txt"}),
        ("read_file", {"path": "b.txt"}),
    ]
    if (client, upstream) != ("gemini", "gemini"):  # at home this one needs no ids
        assert len({id for id, _, _ in reply.calls}) == 2


@streams
@clients
@pytest.mark.parametrize("upstream", ["openai", "mistral"])
def test_calls_that_come_without_ids_get_their_own_B7_H5(
    simulated: Server, served: Served, client: str, upstream: str, stream: bool
) -> None:
    simulated.fault("empty_ids")
    reply = answered(served, client, UPSTREAMS[upstream], "read both", stream=stream)
    assert [name for _, name, _ in reply.calls] == ["read_file", "read_file"]
    ids = [id for id, _, _ in reply.calls]
    assert all(id.strip() for id in ids), ids
    assert len(set(ids)) == 2


@streams
@clients
@upstreams
def test_a_call_that_was_cut_cannot_be_run_F1_J4(
    simulated: Server, served: Served, client: str, upstream: str, stream: bool
) -> None:
    simulated.fault("truncated_call")
    reply = answered(served, client, UPSTREAMS[upstream], "read both", stream=stream)
    assert reply.stop in ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS")
    whole = [json.loads(text) for _, _, text in reply.calls if _is_object(text)]
    if (client, upstream) == ("anthropic", "anthropic"):  # its own clients know what max_tokens means
        whole = [arguments for arguments in whole if arguments]
    assert whole in ([{"path": "a.txt"}], [])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@streams
@clients
def test_a_call_in_the_text_is_a_call_I1(simulated: Server, served: Served, client: str, stream: bool) -> None:
    simulated.fault("text_dialect,dialect=hermes")
    reply = answered(served, client, "vllm/Qwen/Qwen3-8B", "read both", stream=stream)
    assert [(name, json.loads(text)["path"]) for _, name, text in reply.calls] == [
        ("read_file", "a.txt"),
        ("read_file", "b.txt"),
    ]
    assert reply.text.strip() == "I look."
    assert reply.stop in ("tool_use", "tool_calls", "completed", "STOP")


@streams
@clients
@pytest.mark.parametrize("then", ["kimi", "anthropic", "mistral"])
def test_ids_of_kimi_go_home_and_elsewhere_B1_B4(
    simulated: Server, served: Served, client: str, then: str, stream: bool
) -> None:
    kimi = "kimi/kimi-k2-0905-preview"
    reply = answered(served, client, kimi, "read both", stream=stream)
    ids = [id for id, _, _ in reply.calls]
    calls = Calls((Call(ids[0], "a.txt"), Call(ids[1], "b.txt")))
    results = Results((Result(ids[0], "a says hello"), Result(ids[1], "b says hello")))
    path, body = request(client, kimi if then == "kimi" else UPSTREAMS[then], [UserText("read both"), calls, results])
    got = ask(served, path, body)
    assert got.status == 200, got.data
    last = simulated.requests[-1]
    assert last.status == 200
    pairs = pairs_in(then, last.body)
    assert [name for name, _ in pairs] == ["a.txt", "b.txt"]
    assert all(f"{name} says hello" in result for (_, result), name in zip(pairs, "ab", strict=True))
    if then == "kimi":
        made = [call["id"] for message in last.body["messages"] for call in message.get("tool_calls") or ()]
        assert made == ["functions.read_file:0", "functions.read_file:1"]


# --- wishes -----------------------------------------------------------------------------------------

ONE_CALL: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    "openai": {"tool_choice": "required", "parallel_tool_calls": False},
    "openai_responses": {"tool_choice": "required", "parallel_tool_calls": False},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
}


@clients
@upstreams
def test_a_call_that_must_be_made_alone_is_requested_D12(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    reply = answered(served, client, UPSTREAMS[upstream], "read it", stream=False, **ONE_CALL[client])
    assert len(reply.calls) == 1
    body = simulated.requests[-1].body
    if upstream == "gemini":
        assert body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
        return
    choice = body["tool_choice"]
    assert (choice["type"] if isinstance(choice, dict) else choice) in ("any", "required")
    if client != "gemini":  # its protocol has no word for one at a time
        assert body.get("parallel_tool_calls") is False or choice.get("disable_parallel_tool_use") is True


@pytest.mark.parametrize("client", ["anthropic", "gemini"])
@upstreams
def test_a_result_that_is_an_error_says_so(simulated: Server, served: Served, client: str, upstream: str) -> None:
    failed = Results((Result("call_1", "no such file", is_error=True),))
    body = sent(simulated, served, client, upstream, [UserText("Hi"), ONE, failed])
    ((_, result),) = pairs_in(upstream, body)
    assert "no such file" in result
    if upstream == "anthropic":
        assert [b["is_error"] for m in body["messages"] for b in m["content"] if "is_error" in b] == [True]
    if upstream == "gemini":
        assert "error" in json.loads(result)


IMAGES: Final = {
    "anthropic": '"type": "image"',
    "openai": '"type": "image_url"',
    "openai_responses": '"type": "input_image"',
    "gemini": '"mimeType": "image/png"',
    "mistral": '"type": "image_url"',
}


@clients
@upstreams
def test_an_image_in_a_result_arrives_as_an_image_G1(
    simulated: Server, served: Served, client: str, upstream: str
) -> None:
    shown = Results((Result("call_1", "here it is", image=PNG), Result("call_2", "b says hello")))
    body = sent(simulated, served, client, upstream, [UserText("Hi"), TWO, shown])
    text = json.dumps(body)
    assert text.count(PNG) == 1
    assert text.count(IMAGES[upstream]) == 1
    (_, first), (_, second) = pairs_in(upstream, body)
    assert "here it is" in first
    assert "b says hello" in second


@streams
@clients
@upstreams
def test_a_busy_provider_says_when_to_come_back(
    simulated: Server, served: Served, client: str, upstream: str, stream: bool
) -> None:
    simulated.fault("429,retry_after=7")
    path, body = request(client, UPSTREAMS[upstream], [UserText("read it")], **({"stream": True} if stream else {}))
    got = ask(served, path, body)
    assert (got.status, got.headers["retry-after"]) == (429, "7")
    assert got.body["error"]
