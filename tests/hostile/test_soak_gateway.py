"""The soak of the gateway: a short one passes, and its judges find what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.append(str(SCRIPTS))

from soak_clients import TALKS, FailedError, IllegalError  # noqa: E402 - scripts are no package
from soak_loops import Judge, Outcome  # noqa: E402
from soak_plans import Plan, plan_in  # noqa: E402
from soak_upstream import without_thinking  # noqa: E402

HANG_SECONDS = 600
"""Ends a soak that hangs; alone it takes eight."""


def test_a_short_soak_with_kills_and_faults_finds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / "soak_gateway.py"), "--minutes", "0.05", "--seed", "1", "--loops", "3"]
    command += ["--answers", "21", "--patience", "10", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["answers"]["right"] > 20
    assert {"gateway SIGKILL", "gateway SIGTERM"} <= set(report["restarts"])
    assert report["violations"] == []


# --- the judges can find something ------------------------------------------------------------------

PLAN = Plan("mk-1-0-0-1", (1, 0), ((), ()))


def test_a_plan_survives_the_words_that_carry_it() -> None:
    plan = Plan("mk-1-2-3-4", (2, 1, 0), (("429",), (), ("reset,after=1", "empty")), 7, True)
    assert plan_in(f"before {plan.prompt()} after") == plan
    assert [plan.round_of(count) for count in (0, 1, 2, 3)] == [0, None, 1, 2]


def message(*, marker: str = PLAN.m, stop: str = "tool_use", **arguments: Any) -> bytes:
    """A whole answer for a Messages client, right by default."""
    plan = Plan(marker, PLAN.r, PLAN.f)
    call = {"type": "tool_use", "id": "toolu_1", "name": "probe", "input": {**plan.arguments(0, 0), **arguments}}
    content = [{"type": "text", "text": plan.text(0)}, call]
    body = {"type": "message", "role": "assistant", "id": "msg_1", "usage": {}, "content": content, "stop_reason": stop}
    return json.dumps(body).encode()


def judged(data: bytes, status: int = 200, *, plan: Plan = PLAN, fate: str = "", caused: Any = ()) -> tuple[str, bool]:
    """How an answer is counted, and whether it is a violation."""
    talk = TALKS["anthropic"]("any", ("probe", "look_up"), thinks=False)
    judge = Judge(talk, plan, 0, ("probe", "look_up"), set(), stream=False)
    headers = {"x-toolglot-request": "tg_1"}
    counted, wrong, reply = judge.judge(Outcome(status, data, headers, 0.1, 0.1, fate), list(caused))
    assert reply is None or not wrong
    return counted, bool(wrong)


def error(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "No."}}).encode()


ORDERED = Plan(PLAN.m, PLAN.r, (("503",), ()))
KILLED = [("gateway", "SIGKILL")]
ENDED = [("gateway", "SIGTERM")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda: judged(message()), ("right", False)),
        (lambda: judged(message(marker="mk-1-5-0-1")), ("another's reply", True)),
        (lambda: judged(message(index=1)), ("wrong", True)),
        (lambda: judged(message(stop="end_turn")), ("wrong", True)),
        (lambda: judged(b"{}"), ("illegal", True)),
        (lambda: judged(error("invalid_request_error"), 400), ("refused", True)),
        (lambda: judged(error("overloaded_error"), 529), ("status 529", True)),
        (lambda: judged(error("overloaded_error"), 529, plan=ORDERED), ("status 529", False)),
        (lambda: judged(error("overloaded_error"), 529, caused=[("upstream a", "SIGKILL")]), ("status 529", False)),
        (lambda: judged(error("rate_limit_error"), 429), ("429", True)),
        (lambda: judged(b"", 0, fate="lost"), ("gateway away", True)),
        (lambda: judged(b"", 0, fate="lost", caused=ENDED), ("gateway away", False)),
        (lambda: judged(b"", 200, fate="cut", caused=ENDED), ("cut off", True)),
        (lambda: judged(b"", 200, fate="cut", caused=KILLED), ("cut off", False)),
        (lambda: judged(b"", 0, fate="late", caused=KILLED), ("late", True)),
    ],
)
def test_the_judge_distinguishes_right_from_wrong_and_caused_from_not(
    answer: Callable[[], tuple[str, bool]], expected: tuple[str, bool]
) -> None:
    assert answer() == expected


BROKEN_STREAMS = {
    "anthropic": b'event: message_start\ndata: {"type":"message_start"}\n\n',
    "openai": b'data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"Hi"}}]}\n\n',
    "responses": b'event: response.created\ndata: {"type":"response.created","sequence_number":0}\n\n',
    "gemini": b'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\n\n',
    "gemini array": b'[{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}',
    "ollama": b'{"message":{"content":"Hi"},"done":false}\n',
}
FAILED_STREAMS = {
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"No."}}\n\n',
    "openai": b'data: {"error":{"message":"No."}}\n\n',
    "responses": b'event: error\ndata: {"type":"error","sequence_number":0,"message":"No."}\n\n',
    "gemini": b'data: {"error":{"message":"No."}}\n\n',
    "ollama": b'{"error":"No."}\n',
}


@pytest.mark.parametrize("client", BROKEN_STREAMS)
def test_a_stream_without_its_end_is_illegal(client: str) -> None:
    with pytest.raises(IllegalError):
        TALKS[client]("any", ("probe",), thinks=False).read_stream(BROKEN_STREAMS[client])


@pytest.mark.parametrize("client", FAILED_STREAMS)
def test_a_stream_that_ends_with_its_protocols_error_has_failed(client: str) -> None:
    with pytest.raises(FailedError, match="No"):
        TALKS[client]("any", ("probe",), thinks=False).read_stream(FAILED_STREAMS[client])


@pytest.mark.parametrize(
    ("protocol", "field", "bare", "full"),
    [
        ("anthropic", "messages", {"content": []}, {"content": [{"type": "thinking", "signature": "s"}]}),
        ("bedrock", "messages", {"content": []}, {"content": [{"reasoningContent": {}}]}),
        ("openai_chat", "messages", {"content": "Hi"}, {"content": "Hi", "reasoning_content": "Hm."}),
        (
            *("gemini", "contents"),
            {"role": "model", "parts": [{"functionCall": {}}]},
            {"role": "model", "parts": [{"functionCall": {}, "thoughtSignature": "s"}]},
        ),
    ],
)
def test_thinking_that_did_not_come_back_is_missed(protocol: str, field: str, bare: Any, full: Any) -> None:
    body = {field: [{"role": "user"}, {"role": "assistant", **full}, {"role": "assistant", **bare}]}
    assert [*without_thinking(protocol, body)] == [False, True]


def test_reasoning_that_did_not_come_back_is_missed() -> None:
    message_item = {"type": "message", "role": "assistant"}
    assert [*without_thinking("openai_responses", {"input": [{"type": "reasoning"}, message_item, message_item]})] == [
        False,
        False,
        True,
    ]
