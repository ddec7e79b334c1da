"""What a failover, a switch or a repair costs at the prompt cache is reported, counted and in usage.

The simulated providers cache as the real ones do; what the reports say is compared with what they read and wrote. A
repair or a failover costs the turn in which it happens, and only that one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from support.gateway.served_gateway import Served, config_for, gateway
from toolglot import simulator
from toolglot.gateway import Gateway
from toolglot.gateway.accounting.cache_losses import CacheLoss
from toolglot.gateway.accounting.usage import Amounts, read_usage
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator.serving import Server
from toolglot.store import open_store

Body = dict[str, Any]
CLAUDE = "claude-opus-5"
CHAT = {"openai_chat": "openai_chat/gpt-4.1", "openai_responses": "openai_responses/gpt-5.5"}
SYSTEM = "You are a careful assistant who reads files and says what is in them. " * 400
MARK = {"cache_control": {"type": "ephemeral"}}
CHAINS = {
    "two": json.dumps([f"anthropic/{CLAUDE}", CHAT["openai_responses"]]),
    "chat": json.dumps([CHAT["openai_chat"], CHAT["openai_responses"]]),
}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve() as server:
        yield server


class Loop:
    """A conversation of a client with marks at the system prompt and at the end."""

    def __init__(self, served: Served, model: str) -> None:
        self.served = served
        self.model = model
        self.messages: list[Body] = []

    def say(self, text: str = "", *, stream: bool = False) -> None:
        """Send one request more."""
        self.messages.append({"role": "user", "content": text or f"What is in file{len(self.messages)}.txt? " * 60})
        *before, last = self.messages
        marked: Any = [*before, {"role": "user", "content": [{"type": "text", "text": last["content"], **MARK}]}]
        system: Any = [{"type": "text", "text": SYSTEM, **MARK}]
        sent: Any = {"model": self.model, "max_tokens": 500, "system": system, "messages": marked}
        with anthropic.Anthropic(base_url=self.served.url, api_key="k", max_retries=0) as client:
            if stream:
                with client.messages.stream(**sent) as reply:
                    text = reply.get_final_text()
            else:
                text = "".join(block.text for block in client.messages.create(**sent).content if block.type == "text")
        self.messages.append({"role": "assistant", "content": text})


def losses(served: Served) -> list[CacheLoss | None]:
    return [record.reply.cache_loss for record in served.records if record.request.action == "generate"]


def counts(simulated: Server) -> list[tuple[int, int, int]]:
    """What each answered request took, read and wrote, by the simulator's own count."""
    found = [request.usage for request in simulated.requests if request.usage is not None]
    return [(one.input_tokens or 0, one.cache_read_tokens or 0, one.cache_write_tokens or 0) for one in found]


@pytest.mark.parametrize("stream", [False, True])
def test_a_failover_is_reported_with_what_it_cost(simulated: Server, stream: bool, tmp_path: Path) -> None:
    with gateway(simulated, models=CHAINS, settings=f'store = "{tmp_path}/usage.db"') as served:
        loop = Loop(served, "two")
        for number in range(1, 7):
            if number == 4:
                simulated.fault(503)
            loop.say(stream=stream)
        *_, third, fourth, _, _ = counts(simulated)
        found = losses(served)
        assert [loss is not None for loss in found] == [False, False, False, True, False, False], "only that turn"
        loss = found[3]
        assert loss is not None
        assert loss.cause == "upstream"
        assert loss.tokens == third[1] + third[2] - fourth[1]
        assert loss.place == f"anthropic/{CLAUDE}"
        assert loss.price == Decimal(loss.tokens) * 5 / 1_000_000, "gpt-5.5: 5 dollars a million"
        assert loss.cached_price == Decimal(loss.tokens) / 2 / 1_000_000, "claude-opus-5: 0.5 dollars from the cache"
        record = served.records[3]
        entry = record.reply.entries[-1]
        assert (entry.action, entry.gravity) == ("uncached", "housekeeping")
        assert f"{loss.tokens:,} tokens that anthropic/{CLAUDE} had cached" in entry.reason
        assert "instead of $" in entry.reason
        page = httpx.get(f"{served.url}/toolglot/requests/{record.id}").json()
        assert page["cache_lost"] == {"tokens": loss.tokens, "cause": "upstream", "cost_usd": loss.extra / 1e9}
        assert any(each["action"] == "uncached" for each in page["reply_report"])
        metrics = httpx.get(f"{served.url}/metrics").text
        labels = '{upstream="openai_responses",model="gpt-5.5",cause="upstream"}'
        assert f"toolglot_cache_lost_tokens_total{labels} {loss.tokens}" in metrics
        [line] = [line for line in metrics.splitlines() if line.startswith("toolglot_cache_lost_dollars_total{")]
        assert float(line.rpartition(" ")[2]) == pytest.approx(loss.extra / 1e9)
    used = usage(tmp_path / "usage.db")
    assert (used["gpt-5.5"].cache_lost, used["gpt-5.5"].cache_lost_cost) == (loss.tokens, loss.extra)
    assert used[CLAUDE].cache_lost == 0


def usage(path: Path) -> dict[str, Amounts]:
    """What was stored, by model."""

    async def read() -> dict[str, Amounts]:
        store = open_store(str(path))
        try:
            return {row.model: row.amounts for row in await read_usage(store)}
        finally:
            await store.close()

    return asyncio.run(read())


def test_a_switch_of_the_model_is_reported(simulated: Server) -> None:
    with gateway(simulated) as served:
        loop = Loop(served, f"anthropic/{CLAUDE}")
        loop.say()
        loop.say()
        loop.model = "anthropic/claude-haiku-4-5"
        loop.say()
        found = losses(served)
    assert [loss and loss.cause for loss in found] == [None, None, "model"]
    assert found[2] is not None
    assert found[2].price is not None
    written = counts(simulated)[2][2]
    lost = found[2].tokens
    assert found[2].price == (min(lost, written) * Decimal("1.25") + max(lost - written, 0)) / 1_000_000, (
        "writing to its own cache costs a quarter more"
    )


def test_a_repair_at_the_beginning_is_reported(simulated: Server) -> None:
    """The client loses a call whose result it still has: the result is kept as text, and what follows is read anew."""
    tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "What it says. " * 50}
    history: list[Body] = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [{"type": "text", "text": "I read."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "It says much. " * 1000},
    ]
    broken = [*history[:1], {"role": "assistant", "content": [{"type": "text", "text": "I read."}]}, *history[2:]]

    def send(served: Served, before: list[Body], number: int) -> None:
        last = {"role": "user", "content": [{"type": "text", "text": f"Question {number}. " * 40, **MARK}]}
        body = {"model": f"anthropic/{CLAUDE}", "max_tokens": 100, "tools": tools, "messages": [*before, last]}
        assert httpx.post(f"{served.url}/v1/messages", json=body).status_code == 200

    with gateway(simulated) as served:
        send(served, history, 1)
        send(served, history, 1)
        send(served, broken, 2)
        send(served, broken, 2)
        found = losses(served)
        entry = served.records[2].reply.entries[-1]
    assert [loss and loss.cause for loss in found] == [None, None, "repair", None], "it costs one turn"
    assert found[2] is not None
    assert found[2].tokens == sum(counts(simulated)[1][1:]) - counts(simulated)[2][1]
    assert "was repaired" in entry.reason


def test_a_client_that_wants_its_context_edited_is_followed_too(simulated: Server) -> None:
    """Claude Code sends `context_management` with every request; what upstreams do not do, the gateway does."""
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    messages: list[Body] = [{"role": "user", "content": "Hello. " * 1500}]
    with gateway(simulated, models=CHAINS) as served:
        for number in range(4):
            if number == 3:
                simulated.fault(503)
            body = {"model": "chat", "max_tokens": 100, "messages": messages, "context_management": edits}
            got = httpx.post(f"{served.url}/v1/messages", json=body)
            assert got.status_code == 200
            messages += [{"role": "assistant", "content": "Well."}, {"role": "user", "content": "Go on."}]
        found = losses(served)
    assert [loss and loss.cause for loss in found] == [None, None, None, "upstream"]


def test_another_model_for_a_name_in_the_configuration_is_reported(simulated: Server) -> None:
    """The gateway remembers conversations while it reads its configuration again."""
    lost: list[CacheLoss | None] = []

    async def run() -> None:
        before, after = (
            config_for(simulated, models={"m": target}) for target in (f"anthropic/{CLAUDE}", CHAT["openai_chat"])
        )
        app = Gateway(before, request_log=RequestLog(max_remembered=10, form="off"))
        app.request_log.listeners.append(lambda record: lost.append(record.reply.cache_loss))
        system = [{"type": "text", "text": SYSTEM, **MARK}]
        body = {"model": "m", "max_tokens": 100, "system": system, "messages": [{"role": "user", "content": "Hello"}]}
        async with app, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            assert (await client.post("/v1/messages", json=body)).status_code == 200
            await app.reload(after)
            assert (await client.post("/v1/messages", json=body)).status_code == 200

    asyncio.run(run())
    assert [loss and loss.cause for loss in lost] == [None, "upstream"]


def test_what_is_not_known_is_said_so(simulated: Server) -> None:
    """A client that changes its system prompt breaks the cache by itself."""
    with gateway(simulated) as served:
        loop = Loop(served, f"anthropic/{CLAUDE}")
        loop.say()
        loop.say()
        body: Body = {
            "model": f"anthropic/{CLAUDE}",
            "max_tokens": 100,
            "system": f"It is Tuesday. {SYSTEM}",
            "messages": [*loop.messages, {"role": "user", "content": "And?"}],
        }
        assert httpx.post(f"{served.url}/v1/messages", json=body).status_code == 200
        reply = httpx.post(f"{served.url}/v1/messages", json=body, headers={"x-api-key": "k"})
        found = losses(served)
    assert "tokens that anthropic/claude-opus-5 had cached" in reply.headers["x-toolglot-report"]
    assert [loss and loss.cause for loss in found] == [None, None, None, "other"], "another client is no part of it"


def test_nothing_is_lost_in_an_ordinary_session_or_between_clients(simulated: Server) -> None:
    with gateway(simulated, models=CHAINS) as served:
        for name in ("two", "chat", CHAT["openai_responses"]):
            loop = Loop(served, name)
            for _ in range(4):
                loop.say()
        found = losses(served)
        assert not any(found[:4]), "markers"
        assert not any(found[5:8]), "the same first message at another upstream is a shorter conversation"
        assert len(served.app._cache_watch) == 1
        metrics = httpx.get(f"{served.url}/metrics").text
    assert "toolglot_cache_lost_tokens_total{" not in metrics


def test_what_is_remembered_changes_no_byte_that_is_sent(simulated: Server) -> None:
    """Law 15: the same requests are sent by a gateway that remembers the conversation and by one that does not."""
    sent: list[list[bytes]] = []
    for is_remembered in (True, False):
        start = len(simulated.requests)
        with gateway(simulated, models=CHAINS) as served:
            loop = Loop(served, "two")
            for number in range(1, 5):
                if number == 3:
                    simulated.fault(503)
                loop.say()
                if not is_remembered:
                    served.app._cache_watch._seen.clear()
        sent.append([json.dumps(request.body, sort_keys=True).encode() for request in simulated.requests[start:]])
    assert sent[0] == sent[1]
