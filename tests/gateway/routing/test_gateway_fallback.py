"""Chains of upstreams in the gateway: who is called when one fails, what is carried over and never repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import Served, gateway
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

CALL = {"name": "read_file", "arguments": {"path": "a.txt"}}
SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"results": 0, "tool": "read_file"}, "reply": {"text": "I look.", "calls": [CALL]}},
        {"reply": {"text": "It says hello."}},
    ]
}
CHAIN = {"chain": ["anthropic/claude-sonnet-4-5", "openai_chat/gpt-4.1", "mistral/mistral-large-latest"]}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


def chain(simulated: Server, entry: str, upstreams: str = "") -> Any:
    return gateway(simulated, models={"chain": entry}, upstreams=upstreams)


def written(value: Any) -> str:
    """A value for the file, without the quotes that `models` puts around."""
    return str(value).replace("'", '"')


ENTRY = written(CHAIN["chain"])


def providers(simulated: Server) -> list[tuple[str, int]]:
    return [(request.provider, request.status) for request in simulated.requests]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", ["503", "429,retry_after=60", "500", "401", "404"])
def test_where_one_fails_the_next_answers(simulated: Server, protocol: str, stream: bool, fault: str) -> None:
    with chain(simulated, ENTRY) as served:
        simulated.fault(fault)
        path, body = request_of(protocol, "chain", stream=stream)
        got = ask(served, path, body)
    assert got.status == 200, got.data
    assert "read_file" in got.data.decode()
    assert [name for name, _ in providers(simulated)] == ["anthropic", "openai"]
    assert got.headers["x-toolglot-upstream"] == "openai_chat/gpt-4.1"
    assert "was called instead" in got.headers["x-toolglot-report"]
    assert got.body["stop_reason"] == "tool_use" if protocol == "anthropic" and not stream else True


def test_the_last_failure_is_reported_where_all_fail(simulated: Server) -> None:
    with chain(simulated, ENTRY) as served:
        for fault in ("503", "500", "429,retry_after=9"):
            simulated.fault(fault)
        path, body = request_of("anthropic", "chain")
        got = ask(served, path, body)
    assert (got.status, got.headers["retry-after"]) == (429, "9")
    assert [name for name, _ in providers(simulated)] == ["anthropic", "openai", "mistral"]


def test_an_error_instead_of_the_first_event_is_no_beginning_and_the_next_answers(simulated: Server) -> None:
    with chain(simulated, ENTRY) as served:
        simulated.fault("error_event,after=0")
        path, body = request_of("anthropic", "chain", stream=True)
        got = ask(served, path, body)
    assert got.status == 200
    assert got.events[-1]["type"] == "message_stop"
    assert got.headers["x-toolglot-upstream"] == "openai_chat/gpt-4.1"


def test_a_switch_never_happens_inside_a_turn(simulated: Server) -> None:
    with chain(simulated, ENTRY) as served:
        simulated.fault("reset,after=3")
        path, body = request_of("anthropic", "chain", stream=True)
        got = ask(served, path, body)
    assert got.events[-1]["type"] == "error"
    assert len(simulated.requests) == 1


def test_finished_results_are_carried_over_to_the_next(simulated: Server) -> None:
    with chain(simulated, ENTRY) as served:
        path, body = request_of("anthropic", "chain")
        first = ask(served, path, body).body
        (call,) = [block for block in first["content"] if block["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "hello"}
        body["messages"] += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
        simulated.fault(529)
        got = ask(served, path, body)
    assert got.body["content"][0]["text"] == "It says hello."
    sent = simulated.requests[-1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[2]["content"] == "hello"
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]


def test_what_the_client_wrote_wrongly_is_sent_to_no_second_upstream(simulated: Server) -> None:
    with chain(simulated, ENTRY) as served:
        got = ask(served, "/v1/messages", {"model": "chain", "max_tokens": 5, "messages": "none"})
    assert got.status == 400
    assert simulated.requests == []


# --- the same one again -----------------------------------------------------------------------------

AGAIN = """
[upstreams.again]
provider = "openai"
target = "openai"
url = "{url}"
key_env = "SIMULATED_KEY"
retries = 2
retry_seconds = 1
"""


def again(simulated: Server) -> Any:
    return gateway(simulated, upstreams=AGAIN.format(url=simulated.url("openai")))


def call_again(served: Served) -> Any:
    path, body = request_of("anthropic", "again/gpt-4.1")
    return ask(served, path, body)


def test_a_busy_provider_is_called_again_after_the_time_that_it_says(simulated: Server) -> None:
    with again(simulated) as served:
        simulated.fault("429,retry_after=0.05", times=2)
        assert call_again(served).status == 200
    assert [status for _, status in providers(simulated)] == [429, 429, 200]
    assert served.records[-1].calls.retry_reason


def test_a_provider_that_wants_too_long_a_wait_is_not_waited_for(simulated: Server) -> None:
    with again(simulated) as served:
        simulated.fault("429,retry_after=30")
        got = call_again(served)
    assert (got.status, got.headers["retry-after"]) == (429, "30")
    assert len(simulated.requests) == 1


def test_a_protocol_400_is_never_repeated_with_the_same_bytes(simulated: Server) -> None:
    with again(simulated) as served:
        simulated.fault(400, times=3)
        assert call_again(served).status == 400
    assert len(simulated.requests) == 1


# --- health -----------------------------------------------------------------------------------------


def test_a_provider_that_is_down_is_not_called_for_a_while(simulated: Server) -> None:
    down = '[upstreams.down]\nprovider = "openai"\nurl = "http://127.0.0.1:9"\nauth = "none"\nbreaker_failures = 2\n'
    entry = written(["down/gpt-4.1", "mistral/mistral-large-latest"])
    with chain(simulated, entry, down) as served:
        path, body = request_of("anthropic", "chain")
        answers = [ask(served, path, body) for _ in range(4)]
        reasons = [record.calls.failures for record in served.records]
        alone = request_of("anthropic", "down/gpt-4.1")
        refused = ask(served, *alone)
    assert [got.status for got in answers] == [200] * 4
    assert [len(failures) for failures in reasons] == [1, 1, 0, 0], "after two failures it is left alone"
    assert refused.status in (503, 529)
    assert "failed too often" in refused.body["error"]["message"]
    assert int(refused.headers["retry-after"]) >= 1


def test_conversations_are_spread_and_stay_where_they_are(simulated: Server) -> None:
    entry = '{ to = ["openai_chat/gpt-4.1", "mistral/mistral-large-latest"], weights = [1, 1] }'
    with chain(simulated, entry) as served:
        for _ in range(2):
            for number in range(20):
                path, body = request_of("anthropic", "chain", f"Conversation {number}")
                assert ask(served, path, body).status == 200
    called = [name for name, _ in providers(simulated)]
    assert called[:20] == called[20:]
    assert min(Counter(called).values()) >= 8


def test_round_robin_each_turn_on_every_target_is_never_refused(simulated: Server) -> None:
    goals = [
        "anthropic/claude-sonnet-4-5",
        "openai_chat/gpt-4.1",
        "mistral/mistral-large-latest",
        "gemini/gemini-2.5-pro",
    ]
    with chain(simulated, f'{{ to = {written(goals)}, each = "request" }}') as served:
        path, body = request_of("anthropic", "chain")
        for _ in range(4):
            first = ask(served, path, body).body
            (call,) = [block for block in first["content"] if block["type"] == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": "hello"}
            body["messages"] += [
                {"role": "assistant", "content": first["content"]},
                {"role": "user", "content": [result]},
            ]
            content = ask(served, path, body).body["content"]
            body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "Once more."}]
    assert {status for _, status in providers(simulated)} == {200}
    assert Counter(name for name, _ in providers(simulated)) == dict.fromkeys(
        ("anthropic", "openai", "mistral", "gemini"), 2
    )


def test_what_was_put_back_for_the_first_does_not_go_to_the_next(simulated: Server) -> None:
    simulated.script(rules=[{"reply": {"thinking": "A secret thought.", "text": "It says hello."}}])
    entry = written(["anthropic/claude-sonnet-4-5", "openai_responses/gpt-5.5"])
    with chain(simulated, entry) as served:
        path, body = request_of("openai", "chain", "Hello", reasoning_effort="high")
        content = ask(served, path, body).body["choices"][0]["message"]["content"]
        body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "More."}]
        simulated.fault(529)
        first = ask(served, path, body)
        sent = [str(request.body) for request in simulated.requests[-2:]]
        assert ["A secret thought." in text for text in sent] == [True, False]
        assert "gpt-5.5" in first.headers["x-toolglot-upstream"]
        again = ask(served, path, body)
    assert again.headers["x-toolglot-upstream"] == "anthropic/claude-sonnet-4-5"
    assert "A secret thought." in str(simulated.requests[-1].body)
