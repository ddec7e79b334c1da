"""What was changed on the way back is in the gateway's log and at `/toolglot/requests`, of streams too."""

from __future__ import annotations

import json

import pytest

from gateway_client import ask, request_of
from gateway_fixture import gateway
from toolglot import simulator

SCRIPT = {"rules": [{"reply": {"thinking": "Hm.", "text": "Done."}}]}


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_client_does_not_get_of_an_answer_is_reported(stream: bool) -> None:
    with simulator.serve(SCRIPT) as simulated, gateway(simulated) as served:
        path, body = request_of("openai_chat", "anthropic/claude-sonnet-4-6", stream=stream, reasoning_effort="high")
        got = ask(served, path, body)
        assert got.status == 200, got.data
        record = served.told[-1]
        reasons = [entry.reason for entry in record.reply_entries]
        assert any("only its issuer can read" in reason for reason in reasons), reasons
        assert record.summary()["reply_changes"]
        listed = ask(served, f"/toolglot/requests/{record.id}")
        shown = json.dumps(listed.body["reply_report"])
    assert "only its issuer can read" in shown
