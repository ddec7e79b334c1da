"""The upstream of a soak: the strict simulator, which answers as the plan in the user's words says.

    python scripts/soak_upstream.py PORT LOG STATE       prints its address; ended by a signal, at any time

It checks what reaches it, besides what a provider would refuse: every result stands by its own call, nothing of another
conversation is there, nothing of this one is missing, and thinking came back as it was signed. LOG gets a line of JSON
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
from toolglot.simulator import Recorded, Script, Simulator
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.protocols.base import fault_mismatch
from toolglot.simulator.replies.faults import read_fault
from toolglot.simulator.responder import Responder
from toolglot.simulator.scripts.script import CallSpec, ReplySpec, ScriptRule
from toolglot.simulator.serving import listening, server_of
from toolglot.simulator.stored_responses import MAX_RESPONSES, StoredItems

MOST_SEEN: Final = 20_000
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
    """Answers by the plan of each request."""

    def __init__(self, state: Path, tell: Callable[[Body], None]) -> None:
        super().__init__(Script(rules=(ScriptRule(reply=ReplySpec(text="")),)), time.time)
        self._stored = DurableItems(state)
        self._tell = tell
        self._tries: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._reply = ReplySpec(text="no plan")

    def rule_for(self, request: AcceptedRequest) -> int:
        plan = plan_in(request.prompt)
        step = plan.round_of(len(request.results)) if plan is not None else None
        wrong = list(_wrong(request, plan, step))
        if wrong:
            self._tell(
                {"wrong": wrong, "marker": plan.m if plan else "", "provider": request.provider, "body": request.body}
            )
        if plan is not None and step is not None:
            self._reply = _reply(request, plan, step)
            self._order(request, plan, step)
        return 0

    def next_reply(self, rule_index: int) -> tuple[ReplySpec | None, str]:
        del rule_index
        return self._reply, "plan"

    def _order(self, ask: AcceptedRequest, plan: Plan, step: int) -> None:
        """What goes wrong with this try."""
        key = (plan.m, step)
        tried = self._tries.pop(key, 0)
        self._tries[key] = tried + 1
        if len(self._tries) > MOST_SEEN:
            self._tries.popitem(last=False)
        if tried < len(plan.f[step]):
            fault = read_fault(plan.f[step][tried])
            if not fault_mismatch(fault, ask.protocol, stream=ask.wants_stream):
                self.faults.append(fault)


def _reply(ask: AcceptedRequest, plan: Plan, step: int) -> ReplySpec:
    tools = ask.conversation.tools
    calls = tuple(
        CallSpec(name=tools[place % len(tools)].name, arguments=plan.arguments(step, place))
        for place in range(plan.r[step])
    )
    thinking = plan.thinking(step) if ask.thinks else None
    return ReplySpec(text=plan.answer(step), thinking=thinking, calls=calls)


# --- what a provider does not check -----------------------------------------------------------------


def _wrong(ask: AcceptedRequest, plan: Plan | None, step: int | None) -> Iterator[str]:
    """What is wrong with a request that its provider accepts."""
    if plan is None:
        yield "the user's last words have no plan"
        return
    if step is None:
        yield f"{len(ask.results)} results since the user spoke, of {plan.r}"
        return
    data = msgspec.json.encode(ask.body).decode()
    yield from _wrong_markers(data, plan, sum(plan.r[:step]))
    yield from _wrong_pairs(ask)
    if plan.v and ask.thinks:
        missing = sum(without_thinking(ask.protocol, ask.body))
        if missing:
            yield f"{missing} answers came back without their thinking"


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


def _wrong_pairs(ask: AcceptedRequest) -> Iterator[str]:
    calls = {call.id: call for turn in ask.conversation.turns for call in turn.calls}
    made = sum(len(turn.calls) for turn in ask.conversation.turns)
    if ask.protocol not in ("gemini", "ollama") and len(calls) != made:
        yield f"{made} calls have {len(calls)} ids"
    if len(calls) != made:
        return
    for turn in ask.conversation.turns:
        for result in turn.results:
            call = calls.get(result.call_id)
            found = RESULT.search(result.text or json.dumps(result.result))
            if call is None or found is None:
                yield f"a result without {'its call' if call is None else 'its text'}: {result.call_id}"
                continue
            given = call.arguments or {}
            if (given.get("marker"), given.get("round"), given.get("place")) != (
                found[1],
                int(found[2]),
                int(found[3]),
            ):
                yield f"call {result.call_id} with {given} has the result {found[0]}"


def without_thinking(protocol: str, body: Body) -> Iterator[bool]:
    """Of each answer of the model: whether what it thought is missing."""
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
        for said in _of(body["contents"], "model"):
            calls = [part for part in said["parts"] if "functionCall" in part]
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

    def tell(recorded: Recorded, seconds: float) -> None:
        told: Body = {"provider": recorded.provider, "status": recorded.status, "fault": recorded.fault}
        told["seconds"] = round(seconds, 4)
        # A body that is no JSON is one that was cut off: by a client that left, or a gateway that was killed.
        if recorded.answered_by == "refused" and not recorded.fault and recorded.body is not None:
            told |= {"rule": recorded.rule, "error": recorded.error, "path": recorded.path, "body": recorded.body}
        elif recorded.answered_by == "refused" and recorded.body is None:
            told["cut"] = True
        write(told)

    simulator = Simulator(log=tell)
    simulator._responder = SoakResponder(state, write)  # noqa: SLF001 - there is no other use for another responder
    return simulator


def main() -> None:
    port, log, state = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    writes = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    server = server_of(simulator_of(writes, state))
    with listening(port) as sock:
        print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
        server.run(sockets=[sock])


if __name__ == "__main__":
    main()
