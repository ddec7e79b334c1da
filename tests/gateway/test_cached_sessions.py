"""Long sessions read nearly all of their input from the provider's prompt cache, by the simulator's own count.

An SDK loop with tools, each client on each target: fifty requests, or twenty in the short form where they are
translated. From the third request on, at least 95 % of the input of the request before must come from the cache. A
failover and a repair cost the turn in which they happen.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import anthropic
import openai
import pytest

from support.gateway.served_gateway import Served, gateway
from support.long_form import IS_LONG
from toolglot import simulator
from toolglot.simulator.serving import Server

Body = dict[str, Any]
REQUESTS = 50
FEWER = REQUESTS if IS_LONG else 20
"""Of a client on a target with another protocol: its long form is a part of the soak."""
SHARE = 0.95
SYSTEM = "You are a careful assistant who reads files and says what is in them. " * 400
MARK = {"cache_control": {"type": "ephemeral"}}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ABOUT = "Reads a file."
OPENROUTER = '[upstreams.openrouter]\nurl = "{url}"\nkey_env = "SIMULATED_KEY"'
TARGETS = {
    "anthropic": "anthropic/claude-opus-5",
    "vertex_claude": "vertex_claude/claude-opus-5",
    "bedrock": "bedrock/anthropic.claude-opus-5-v1:0",
    "openrouter": "openrouter/anthropic/claude-opus-5",
    "openai_chat": "openai_chat/gpt-4.1",
    "openai_responses": "openai_responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-pro",
}


class Session:
    """A loop over an SDK. Each `step` is one request: a prompt, or the results of the calls before."""

    def __init__(self, served: Served, model: str) -> None:
        self.model = model
        self.client: Any = self.new_client(served)
        self.history: list[Any] = []
        self.prompts = 0
        self.calls: list[tuple[str, str]] = []
        """The calls without results: ids, and the files that are read."""

    def step(self, *, cancels: bool = False) -> None:
        """Send one request. `cancels`: calls are left without results, and the user goes on."""
        if self.calls and not cancels:
            self.add_results([(id, f"The content of {path}. " * 8) for id, path in self.calls])
        else:
            self.prompts += 1
            self.add_prompt(f"What is in file{self.prompts}.txt?")
        self.calls = self.send()

    def new_client(self, served: Served) -> Any:
        return openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0)

    def add_prompt(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def add_results(self, results: list[tuple[str, str]]) -> None:
        raise NotImplementedError

    def send(self) -> list[tuple[str, str]]:
        raise NotImplementedError


class AnthropicSession(Session):
    """With markers at the system prompt and at the end, as Anthropic's guide and Claude Code have them."""

    def new_client(self, served: Served) -> Any:
        return anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0)

    def add_prompt(self, text: str) -> None:
        self.history.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def add_results(self, results: list[tuple[str, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results]
        self.history.append({"role": "user", "content": blocks})

    def send(self) -> list[tuple[str, str]]:
        *before, last = self.history
        *blocks, end = last["content"]
        marked: Any = {**last, "content": [*blocks, {**end, **MARK}]}
        tools: Any = [{"name": "read_file", "description": ABOUT, "input_schema": SCHEMA}]
        system: Any = [{"type": "text", "text": SYSTEM, **MARK}]
        reply = self.client.messages.create(
            model=self.model, max_tokens=1000, system=system, tools=tools, messages=[*before, marked]
        )
        content = [block.model_dump(exclude_none=True, exclude={"caller"}) for block in reply.content]
        self.history.append({"role": "assistant", "content": content})
        return [(block["id"], block["input"]["path"]) for block in content if block["type"] == "tool_use"]


class ChatSession(Session):
    def add_results(self, results: list[tuple[str, str]]) -> None:
        self.history += [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results]

    def send(self) -> list[tuple[str, str]]:
        messages: Any = [{"role": "system", "content": SYSTEM}, *self.history]
        tools: Any = [
            {"type": "function", "function": {"name": "read_file", "description": ABOUT, "parameters": SCHEMA}}
        ]
        reply = self.client.chat.completions.create(model=self.model, messages=messages, tools=tools)
        message = reply.choices[0].message.model_dump(exclude_none=True)
        self.history.append(message)
        calls = message.get("tool_calls", ())
        return [(call["id"], json.loads(call["function"]["arguments"])["path"]) for call in calls]


class ResponsesSession(Session):
    def add_results(self, results: list[tuple[str, str]]) -> None:
        self.history += [{"type": "function_call_output", "call_id": id, "output": text} for id, text in results]

    def send(self) -> list[tuple[str, str]]:
        tools: Any = [
            {"type": "function", "name": "read_file", "description": ABOUT, "parameters": SCHEMA, "strict": False}
        ]
        reply = self.client.responses.create(
            model=self.model,
            instructions=SYSTEM,
            input=list(self.history),
            tools=tools,
            store=False,
            include=["reasoning.encrypted_content"],
        )
        items = [item.model_dump(exclude_none=True, exclude={"status"}) for item in reply.output]
        self.history += items
        return [
            (item["call_id"], json.loads(item["arguments"])["path"])
            for item in items
            if item["type"] == "function_call"
        ]


CLIENTS: dict[str, Callable[[Served, str], Session]] = {
    "anthropic": AnthropicSession,
    "openai_chat": ChatSession,
    "openai_responses": ResponsesSession,
}
CHAINS = {
    "anthropic": ("anthropic", "openai_responses"),
    "other": ("gemini", "openai_responses"),
    "marked": ("bedrock", "anthropic"),
}
"""Names that lead to two upstreams: the second is for when the first fails."""
PROVIDERS = {"openai_responses": "openai"}
"""The names of targets in the simulator, where they are others."""
CELLS = [(client, target) for client in CLIENTS for target in TARGETS]
"""Anthropic's client sets markers, which are carried; for the others they are placed."""


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve() as server:
        yield server


@pytest.fixture
def served(simulated: Server) -> Iterator[Served]:
    chains = {name: json.dumps([TARGETS[target] for target in chain]) for name, chain in CHAINS.items()}
    upstreams = OPENROUTER.format(url=simulated.url("openrouter"))
    with gateway(simulated, models=chains, upstreams=upstreams) as running:
        yield running


def shares(simulated: Server) -> list[float]:
    """What each answered request read from the cache, as a share of the input of the one before."""
    counts = [request.usage for request in simulated.requests if request.usage is not None]
    return [(now.cache_read_tokens or 0) / (before.input_tokens or 1) for before, now in pairwise(counts)]


def too_small(simulated: Server, *excepted: int) -> dict[int, float]:
    """The requests from the third on that read too little, by number from 1."""
    found = dict(enumerate(shares(simulated), start=2))
    return {number: share for number, share in found.items() if share < SHARE and number > 2 and number not in excepted}


@pytest.mark.parametrize(("client", "target"), CELLS)
def test_a_long_session_reads_from_the_cache(served: Served, simulated: Server, client: str, target: str) -> None:
    count = REQUESTS if client == target else FEWER
    session = CLIENTS[client](served, TARGETS[target])
    with session.client:
        for _ in range(count):
            session.step()
    assert len(simulated.requests) == count
    assert too_small(simulated) == {}


@pytest.mark.parametrize(("client", "target"), CELLS)
def test_a_repair_costs_one_turn(served: Served, simulated: Server, client: str, target: str) -> None:
    """The user goes on without the result of a call, and the history stays like that."""
    session = CLIENTS[client](served, TARGETS[target])
    with session.client:
        for number in range(1, 21):
            session.step(cancels=number == 10)
    assert session.prompts == 11
    assert too_small(simulated, 10) == {}


@pytest.mark.parametrize("to_marked", [False, True], ids=["first", "marked"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_failover_costs_one_turn(served: Served, simulated: Server, client: str, *, to_marked: bool) -> None:
    name = "marked" if to_marked else "anthropic" if client == "anthropic" else "other"
    session = CLIENTS[client](served, name)
    with session.client:
        for number in range(1, 21):
            if number == 10:
                simulated.fault(503)
            session.step()
    first, second = (PROVIDERS.get(target, target) for target in CHAINS[name])
    assert [request.provider for request in simulated.requests[8:12]] == [first, first, second, first]
    assert too_small(simulated, 10) == {}


KEYS = {"FIRST_ACCOUNT": "first-account-key", "SECOND_ACCOUNT": "second-account-key"}


@pytest.mark.parametrize("client", ["anthropic", "openai_chat"])
@pytest.mark.parametrize("count", [1, 2])
def test_several_gateways_keep_a_session_at_the_account_that_has_its_cache(
    simulated: Server, client: str, count: int
) -> None:
    """Two accounts of a provider, each with a cache of its own, behind gateways that know nothing of each other."""
    url = simulated.url("anthropic")
    upstreams = "".join(
        f'[upstreams.{name.lower()}]\nprovider = "anthropic"\nurl = "{url}"\nkey_env = "{name}"\n' for name in KEYS
    )
    to = json.dumps([f"{name.lower()}/claude-opus-5" for name in KEYS])
    with contextlib.ExitStack() as stack:
        gateways = [
            stack.enter_context(
                gateway(
                    simulated, models={"m": f"{{ to = {to}, weights = [1, 1] }}"}, upstreams=upstreams, environ=KEYS
                )
            )
            for _ in range(count)
        ]
        taken = set()
        for number in range(6):
            before = len(simulated.requests)
            session = CLIENTS[client](gateways[0], "m")
            session.prompts = 100 * number  # another first message
            clients = [session.client, *[session.new_client(served) for served in gateways[1:]]]
            for step in range(8):
                session.client = clients[step % count]
                session.step()
            for each in clients:
                each.close()
            counts = [request.usage for request in simulated.requests[before:] if request.usage is not None]
            assert len(counts) == 8
            found = [(now.cache_read_tokens or 0) / (last.input_tokens or 1) for last, now in pairwise(counts)]
            assert all(share >= SHARE for share in found[1:]), found
            used = {record.route.upstream for served in gateways for record in served.records[-8 // count :]}
            assert len(used) == 1
            taken |= used
        assert len(taken) == 2, "both accounts have sessions"
