"""What was changed on the way back is in the gateway's log and at `/toolglot/requests`, of streams too."""

from __future__ import annotations

import json

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from toolglot import simulator
from toolglot.conversation.report import Entry, summarise
from toolglot.gateway.observability.record_text import report_header, summarize

SCRIPT = {"rules": [{"reply": {"thinking": "Hm.", "text": "Done."}}]}


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_client_does_not_get_of_an_answer_is_reported(stream: bool) -> None:
    with simulator.serve(SCRIPT) as simulated, gateway(simulated) as served:
        path, body = request_of("openai_chat", "anthropic/claude-sonnet-4-6", stream=stream, reasoning_effort="high")
        got = ask(served, path, body)
        assert got.status == 200, got.data
        record = served.records[-1]
        reasons = [entry.reason for entry in record.reply.entries]
        assert any("only its issuer can read" in reason for reason in reasons), reasons
        assert summarize(record)["reply_changes"]
        listed = ask(served, f"/toolglot/requests/{record.id}")
        shown = json.dumps(listed.body["reply_report"])
    assert "only its issuer can read" in shown


def test_the_header_counts_what_was_done_to_a_whole_answer_too_losses_first() -> None:
    with simulator.serve(SCRIPT) as simulated, gateway(simulated) as served:
        path, body = request_of("openai_chat", "anthropic/claude-sonnet-4-6", reasoning_effort="high")
        got = ask(served, path, body)
        record = served.records[-1]
    assert record.reply.entries
    both = (*record.sent.entries, *record.reply.entries)
    header = got.headers["x-toolglot-report"]
    assert header == report_header(record.sent.entries, record.reply.entries)
    assert header.startswith(summarise(both))


def test_losses_of_the_answer_stand_before_changes_of_the_request_in_the_header() -> None:
    change = Entry(action="renamed", reason="a name", fault="projection")
    loss = Entry(action="dropped", reason="a thought", fault="loss", gravity="loss")
    assert report_header((change,), (loss,)) == f"1 loss, 1 change: in the reply: {loss}; {change}"
    assert report_header((), (), is_same=True) == "unchanged"
