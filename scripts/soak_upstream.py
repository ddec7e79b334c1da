"""The upstream of a soak: the strict simulator, which replies by the plan in the user's message.

    python scripts/soak_upstream.py PORT LOG STATE       prints its address; ended by a signal, at any time

It checks more than a provider would: every result belongs to its own call, nothing of another conversation is there,
nothing of this one is missing, and thinking came back as it was signed. LOG gets a line of JSON
for each request. STATE holds the responses that OpenAI would have stored: it outlives this process, as at OpenAI.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from soak_plans import MARKER, RESULT, Plan, plan_in, stem
from toolglot.simulator import RecordedRequest, Script, Simulator
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.protocols.base import fault_mismatch
from toolglot.simulator.replies.faults import read_fault
from toolglot.simulator.responder import Responder
from toolglot.simulator.scripts.script import CallSpec, ReplySpec, ScriptRule
from toolglot.simulator.serving import listen, server_of
from toolglot.simulator.stored_responses import MAX_RESPONSES, StoredItems

MAX_SEEN: Final = 20_000
Body = dict[str, Any]


class DurableItems(StoredItems):
    """Stored responses that are there again after a crash."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        lines = path.read_bytes().splitlines() if path.exists() else []
        for line in lines[-MAX_RESPONSES:]:
            try:
                id, items = msgspec.json.decode(line)
            except (msgspec.MsgspecError, ValueError):
                continue  # it was being written when the process was killed
            super().keep(id, items, 0)
        path.write_bytes(b"".join(line + b"\n" for line in lines[-MAX_RESPONSES:]))
        self._file = path.open("ab", buffering=0)

    def keep(self, id: str, items: list[Body], size: int) -> None:
        super().keep(id, items, size)
        self._file.write(msgspec.json.encode([id, items]) + b"\n")


class SoakResponder(Responder):
    """Replies by the plan of each request."""

    def __init__(self, state: Path, write_line: Callable[[Body], None]) -> None:
        super().__init__(Script(rules=(ScriptRule(reply=ReplySpec(text="")),)), time.time)
        self._stored = DurableItems(state)
        self._write_line = write_line
        self._tries: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._reply = ReplySpec(text="no plan")

    def rule_for(self, request: AcceptedRequest) -> int:
        plan = plan_in(request.prompt)
        step = plan.round_of(len(request.results)) if plan is not None else None
        wrong = list(_wrong(request, plan, step))
        if wrong:
            self._write_line(
                {"wrong": wrong, "marker": plan.m if plan else "", "provider": request.provider, "body": request.body}
            )
        if plan is not None and step is not None:
            self._reply = _reply(request, plan, step)
            self._inject_fault(request, plan, step)
        return 0

    def next_reply(self, rule_index: int) -> tuple[ReplySpec | None, str]:
        del rule_index
        return self._reply, "plan"

    def _inject_fault(self, request: AcceptedRequest, plan: Plan, step: int) -> None:
        """Inject the fault that the plan has for this attempt."""
        key = (plan.m, step)
        tried = self._tries.pop(key, 0)
        self._tries[key] = tried + 1
        if len(self._tries) > MAX_SEEN:
            self._tries.popitem(last=False)
        if tried < len(plan.f[step]):
            fault = read_fault(plan.f[step][tried])
            if not fault_mismatch(fault, request.protocol, stream=request.wants_stream):
                self.faults.append(fault)


def _reply(request: AcceptedRequest, plan: Plan, step: int) -> ReplySpec:
    tools = request.conversation.tools
    calls = tuple(
        CallSpec(name=tools[index % len(tools)].name, arguments=plan.arguments(step, index))
        for index in range(plan.r[step])
    )
    thinking = plan.thinking(step) if request.thinks else None
    return ReplySpec(text=plan.text(step), thinking=thinking, calls=calls)


# --- what a provider does not check -----------------------------------------------------------------


def _wrong(request: AcceptedRequest, plan: Plan | None, step: int | None) -> Iterator[str]:
    """What is wrong with a request that its provider accepts."""
    if plan is None:
        yield "the user's last message has no plan"
        return
    if step is None:
        yield f"{len(request.results)} results since the user's message, of {plan.r}"
        return
    data = msgspec.json.encode(request.body).decode()
    yield from _wrong_markers(data, plan, sum(plan.r[:step]))
    yield from _wrong_pairs(request)
    if plan.v and request.thinks:
        missing = sum(without_thinking(request.protocol, request.body))
        if missing:
            yield f"{missing} replies came back without their thinking"


def _wrong_markers(data: str, plan: Plan, results: int) -> Iterator[str]:
    others = {marker for marker in MARKER.findall(data) if stem(marker) != stem(plan.m)}
    if others:
        yield f"another conversation is in it: {sorted(others)[:3]}"
    turns = {int(marker.rpartition("-")[2]) for marker in MARKER.findall(data)}
    last = int(plan.m.rpartition("-")[2])
    if turns != set(range(1, last + 1)):
        yield f"turns {sorted(turns)} are there, of {last}"
    counts = Counter(RESULT.findall(data))
    if len(counts) != plan.n + results or any(count > 1 for count in counts.values()):
        yield f"{len(counts)} results are there instead of {plan.n + results}, {counts.most_common(1)} the most often"


def _wrong_pairs(request: AcceptedRequest) -> Iterator[str]:
    calls = {call.id: call for turn in request.conversation.turns for call in turn.calls}
    made = sum(len(turn.calls) for turn in request.conversation.turns)
    if request.protocol not in ("gemini", "ollama") and len(calls) != made:
        yield f"{made} calls have {len(calls)} ids"
    if len(calls) != made:
        return
    for turn in request.conversation.turns:
        for result in turn.results:
            call = calls.get(result.call_id)
            found = RESULT.search(result.text or json.dumps(result.result))
            if call is None or found is None:
                yield f"a result without {'its call' if call is None else 'its text'}: {result.call_id}"
                continue
            arguments = call.arguments or {}
            if (arguments.get("marker"), arguments.get("round"), arguments.get("index")) != (
                found[1],
                int(found[2]),
                int(found[3]),
            ):
                yield f"call {result.call_id} with {arguments} has the result {found[0]}"


def without_thinking(protocol: str, body: Body) -> Iterator[bool]:
    """For each reply of the model: whether its thinking is missing."""
    if protocol == "anthropic":
        for message in _of(body["messages"], "assistant"):
            content = message["content"] if isinstance(message["content"], list) else []
            yield not any(block.get("signature") or block.get("data") for block in content)
    elif protocol == "bedrock":
        for message in _of(body["messages"], "assistant"):
            yield not any("reasoningContent" in block for block in message["content"])
    elif protocol == "openai_responses":
        items = body["input"]
        for before, item in zip([{}, *items], items, strict=False):
            is_first = item.get("type") == "message" and item.get("role") == "assistant"
            yield is_first and before.get("type") != "reasoning"
    elif protocol == "gemini":
        for turn in _of(body["contents"], "model"):
            calls = [part for part in turn["parts"] if "functionCall" in part]
            yield bool(calls) and not calls[0].get("thoughtSignature")
    elif protocol == "openai_chat":
        for message in _of(body["messages"], "assistant"):
            yield not message.get("reasoning_content")


def _of(messages: Any, role: str) -> Iterator[Body]:
    return (message for message in messages if message.get("role") == role)


# --- the process ------------------------------------------------------------------------------------


def simulator_of(log: int, state: Path) -> Simulator:
    """The simulator with a responder that writes down each request."""

    def write(fields: Body) -> None:
        os.write(log, msgspec.json.encode(fields) + b"\n")

    def log_request(recorded: RecordedRequest, seconds: float) -> None:
        fields: Body = {"provider": recorded.provider, "status": recorded.status, "fault": recorded.fault}
        fields["seconds"] = round(seconds, 4)
        # A body that is not JSON was cut off: by a client that disconnected, or a gateway that was killed.
        if recorded.answered_by == "refused" and not recorded.fault and recorded.body is not None:
            fields |= {"rule": recorded.rule, "error": recorded.error, "path": recorded.path, "body": recorded.body}
        elif recorded.answered_by == "refused" and recorded.body is None:
            fields["cut"] = True
        write(fields)

    simulator = Simulator(log=log_request)
    simulator._responder = SoakResponder(state, write)  # noqa: SLF001 - there is no other use for another responder
    return simulator


def main() -> None:
    port, log, state = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    writes = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    server = server_of(simulator_of(writes, state))
    with listen(port) as sock:
        print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
        server.run(sockets=[sock])


if __name__ == "__main__":
    main()
