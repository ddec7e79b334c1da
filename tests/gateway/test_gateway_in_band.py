"""Failures that stand in an answer of status 200: the client gets an error in its own form, never a status alone."""

from __future__ import annotations

import pytest

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import gateway
from toolglot.simulator import serve

SCRIPT = {"rules": [{"reply": {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}}]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_malformed_call_of_gemini_is_no_answer_in_the_clients_form(protocol: str, stream: bool) -> None:
    with serve(SCRIPT) as simulated, gateway(simulated) as served:
        simulated.fault("malformed_arguments")
        got = ask(served, *request_of(protocol, "gemini/gemini-3-pro-preview", stream=stream))
    if protocol == "gemini" and not stream:  # Gemini's own client knows Gemini's own reason
        assert got.body["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
        return
    assert 500 <= got.status <= 599
    error = got.body["error"]
    message = error if protocol == "ollama" else error["message"]
    assert "Malformed function call" in message
    if protocol == "gemini":
        assert error["code"] == got.status
