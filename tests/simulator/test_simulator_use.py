"""What was used of a script and of the injected faults, and what each request was answered by."""

from __future__ import annotations

from typing import Any

import pytest

from support.simulator.asgi_client import Answered, ask, request
from support.simulator.good_requests import BODIES
from toolglot.simulator import RecordedRequest, Server, Simulator

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

CHAT: dict[str, Any] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
KEY = {"authorization": "Bearer key"}


def text(answered: Answered) -> str:
    assert answered.status == 200, answered.data
    return str(answered.json["choices"][0]["message"]["content"])


def answers(simulator: Simulator, count: int) -> list[str]:
    return [text(ask(simulator, "openai", CHAT)) for _ in range(count)]


def by(simulator: Simulator) -> list[str]:
    return [recorded.answered_by for recorded in simulator.requests]


# --- replies in a row -------------------------------------------------------------------------------


def test_replies_come_one_after_the_other_and_the_last_stays() -> None:
    simulator = Simulator({"rules": [{"replies": [{"text": "one"}, {"text": "two"}]}]})
    assert answers(simulator, 4) == ["one", "two", "two", "two"]
    assert by(simulator) == ["rules[0].replies[0]", *["rules[0].replies[1]"] * 3]


def test_replies_end_where_their_rule_is_used_up() -> None:
    rules = [{"replies": [{"text": "one"}, {"text": "two"}], "times": 2}, {"reply": {"text": "rest"}}]
    assert answers(Simulator({"rules": rules}), 3) == ["one", "two", "rest"]


@pytest.mark.parametrize("fault", ["429", "context_overflow", "timeout,seconds=0", "reset"])
def test_a_fault_on_order_that_leaves_no_answer_does_not_use_up_a_reply(fault: str) -> None:
    simulator = Simulator({"rules": [{"replies": [{"text": "one"}, {"text": "two"}]}]})
    simulator.fault(fault)
    ask(simulator, "openai", CHAT)
    ask(simulator, "openai", CHAT, order=f"fault={fault}")
    assert answers(simulator, 2) == ["one", "two"]
    assert by(simulator) == ["injected", "x-simulate", "rules[0].replies[0]", "rules[0].replies[1]"]


def test_a_fault_that_spoils_an_answer_uses_it_up() -> None:
    simulator = Simulator({"rules": [{"replies": [{"text": "one"}, {"text": "two"}]}]})
    simulator.fault("wrong_stop")
    assert answers(simulator, 2) == ["one", "two"]
    assert [(recorded.fault, recorded.answered_by) for recorded in simulator.requests] == [
        ("wrong_stop", "rules[0].replies[0]"),
        ("", "rules[0].replies[1]"),
    ]


def test_a_fault_of_a_rule_uses_the_rule_up() -> None:
    simulator = Simulator({"rules": [{"times": 1, "fault": 429}, {"reply": {"text": "then"}}]})
    assert ask(simulator, "openai", CHAT).status == 429
    assert answers(simulator, 1) == ["then"]
    assert by(simulator) == ["rules[0]", "rules[1]"]
    assert simulator.requests[0].fault == "429"


def test_a_fault_as_an_object_does_what_it_says() -> None:
    simulator = Simulator({"rules": [{"fault": {"kind": "reset", "after": 1}}]})
    answered = ask(simulator, "openai", {**CHAT, "stream": True})
    assert answered.is_broken
    assert len(answered.pieces) == 1


# --- what a request was answered by -----------------------------------------------------------------


def test_a_record_says_whose_answer_a_request_got() -> None:
    simulator = Simulator({"rules": [{"when": {"contains": "weather"}, "reply": {"text": "cold"}}]})
    ask(simulator, "openai", CHAT)
    ask(simulator, "openai", {**CHAT, "messages": [{"role": "user", "content": "weather?"}]})
    ask(simulator, "openai", {**CHAT, "messages": []})
    ask(simulator, "openai", CHAT, order="fault=no_end")
    request(simulator, "/v1/models", method="GET", headers=KEY)
    request(simulator, "/openai/v1/responses/input_tokens", CHAT, headers=KEY)
    request(simulator, "/v1/nothing", CHAT)
    assert by(simulator) == ["default script", "rules[0]", "refused", "refused", "listing", "count", "refused"]


def test_a_log_gets_every_request_when_it_is_over() -> None:
    reported: list[tuple[RecordedRequest, float]] = []
    simulator = Simulator(log=lambda recorded, seconds: reported.append((recorded, seconds)))
    ask(simulator, "openai", CHAT)
    ask(simulator, "openai", CHAT, order="fault=timeout,seconds=0.02")
    ask(simulator, "openai", CHAT, order="fault=reset")
    request(simulator, "/", method="GET")
    assert [recorded for recorded, _ in reported[:3]] == simulator.requests
    assert (reported[3][0].path, reported[3][0].status, reported[3][0].answered_by) == ("/", 200, "listing")
    assert reported[1][1] >= 0.02


def test_threads_are_refused_in_the_words_that_clients_understand() -> None:
    simulator = Simulator({"rules": [{"reply": {"text": "Hi"}, "times": 1}]})
    simulator.fault(529)
    body = {**BODIES["anthropic"], "thread": {"type": "create"}}
    refused = ask(simulator, "anthropic", body)
    assert refused.status == 400
    assert refused.json["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }
    assert simulator.unused() == ["rules[0]", "fault 529"]
    assert ask(simulator, "anthropic", {**body, "thread": None}).status == 529
    assert ask(simulator, "openai", {**CHAT, "thread": {}}).status == 400
    assert "details" not in ask(simulator, "openai", {**CHAT, "thread": {}}).json["error"]


def test_how_to_send_a_key_is_reported_in_full() -> None:
    refused = request(Simulator(), "/openai/v1/chat/completions", CHAT)
    assert refused.json["error"]["message"].endswith("(i.e. Authorization: Bearer YOUR_KEY).")


# --- what is left -----------------------------------------------------------------------------------


def test_unused_rules_are_listed(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault("reset,after=3")
    toolglot_simulator.fault(429, times=2)
    toolglot_simulator.script(
        rules=[
            {"when": {"contains": "weather"}, "reply": {"text": "cold"}},
            {"replies": [{"text": "one"}, {"text": "two"}, {"text": "three"}]},
        ]
    )
    assert toolglot_simulator.unused() == ["rules[0]", "rules[1]", "fault reset", "fault 429", "fault 429"]
    simulator = toolglot_simulator.simulator
    for _ in range(4):
        ask(simulator, "openai", CHAT)
    assert toolglot_simulator.unused() == ["rules[0]", "rules[1].replies[1]", "rules[1].replies[2]"]
    answers(simulator, 2)
    ask(simulator, "openai", {**CHAT, "messages": [{"role": "user", "content": "weather?"}]})
    assert toolglot_simulator.unused() == []


def test_a_fault_that_did_not_fit_is_reported_and_its_rule_stays_unused() -> None:
    simulator = Simulator({"rules": [{"fault": "no_end"}]})
    assert "streams only" in ask(simulator, "openai", CHAT).json["error"]["message"]
    assert simulator.unused() == ["rules[0]"]
