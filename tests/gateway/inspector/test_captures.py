"""What a gateway keeps of requests (`[inspector]`), and the captures that it writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
import pytest

from toolglot.cli.main import main
from toolglot.conversation.captures import captured_request
from toolglot.errors import InputError
from toolglot.gateway.app import Gateway
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import ConfigError, parse_config
from toolglot.gateway.inspector import capturing
from toolglot.gateway.inspector.capturing import CaptureBudget, CapturedReply
from toolglot.gateway.inspector.settings import InspectorSettings
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord

SECRET: Final = "sk-ant-api03-abcdefgh12345678"  # noqa: S105 - made up
KEYS: Final = {"KEY_A": "a-long-client-key-of-a-1", "KEY_B": "a-long-client-key-of-b-2"}
BODY: Final = {
    "model": "simulated/openai/gpt-5.5",
    "max_tokens": 50,
    "messages": [{"role": "user", "content": f"hello, the key is {SECRET}"}],
}

Use = Callable[[httpx.AsyncClient], Awaitable[Any]]


def use_gateway(use: Use, inspector: str = "", gateway: str = "") -> Any:
    """What `use` returns, with a client of a gateway that has these settings."""
    text = f'[gateway]\nstore = ":memory:"\nlog = "off"\nsimulate = true\n{gateway}\n[inspector]\n{inspector}\n'

    async def run() -> Any:
        async with Gateway(parse_config(ConfigText("toolglot.toml", text), KEYS)) as app:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await use(client)

    return asyncio.run(run())


async def send(client: httpx.AsyncClient, *, stream: bool = False, key: str = "none", text: str = "") -> httpx.Response:
    body = text or json.dumps({**BODY, "stream": stream}, indent=1)
    headers = {"content-type": "application/json", "x-api-key": key}
    response = await client.post("/v1/messages", content=body, headers=headers)
    assert response.status_code == 200, response.text
    return response


async def captures(client: httpx.AsyncClient, key: str = "none") -> list[dict[str, Any]]:
    response = await client.get("/toolglot/requests?format=jsonl", headers={"x-api-key": key})
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.mark.parametrize("stream", [False, True])
def test_a_capture_has_both_requests_and_both_replies(stream: bool) -> None:
    async def use(client: httpx.AsyncClient) -> tuple[str, list[dict[str, Any]]]:
        response = await send(client, stream=stream)
        return response.text, await captures(client)

    text, (found,) = use_gateway(use)
    assert found["toolglot_capture"] == 1
    assert found["request"] == json.dumps({**BODY, "stream": stream}, indent=1).replace(SECRET, "sk-***")
    assert json.loads(found["rendered"])["messages"][0]["role"] == "user"
    assert found["response"] == text.replace(SECRET, "sk-***")
    assert "chat.completion" in found["reply"]
    assert found["attempts"][0]["upstream"] == "openai"
    assert found["cost_usd"] == 0
    assert found["usage"]["output_tokens"] > 0
    assert not found["cut"]
    times = [at for at, _, _ in found["pieces"]]
    assert times == sorted(times)
    assert times[0] >= found["attempts"][0]["at"]
    assert {direction for _, direction, _ in found["pieces"]} == {"received", "sent"}
    assert SECRET not in json.dumps(found)


def test_with_client_keys_only_reports_are_kept_and_each_key_sees_its_own() -> None:
    async def use(client: httpx.AsyncClient) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        await send(client, key=KEYS["KEY_A"])
        return await captures(client, KEYS["KEY_A"]), await captures(client, KEYS["KEY_B"])

    own, other = use_gateway(use, gateway='client_keys = ["env:KEY_A", "env:KEY_B"]')
    assert other == []
    (found,) = own
    assert found["request"] is found["rendered"] is None
    assert "response" not in found
    assert found["status"] == 200
    with pytest.raises(InputError, match="the capture has no bodies"):
        captured_request(json.dumps(found, separators=(",", ":")).encode())


def test_bodies_are_kept_with_client_keys_if_the_configuration_says_so() -> None:
    async def use(client: httpx.AsyncClient) -> list[dict[str, Any]]:
        await send(client, key=KEYS["KEY_A"])
        return await captures(client, KEYS["KEY_A"])

    (found,) = use_gateway(use, 'keep = "bodies"', 'client_keys = ["env:KEY_A"]')
    assert found["request"]


def test_off_keeps_nothing() -> None:
    async def use(client: httpx.AsyncClient) -> list[dict[str, Any]]:
        await send(client)
        return await captures(client)

    assert use_gateway(use, 'keep = "off"') == []


def test_a_purge_drops_the_requests_of_its_key_only() -> None:
    async def use(client: httpx.AsyncClient) -> list[Any]:
        await send(client, key=KEYS["KEY_A"])
        await send(client, key=KEYS["KEY_B"])
        purged = await client.delete("/toolglot/requests", headers={"x-api-key": KEYS["KEY_A"]})
        return [purged.json(), *[len(await captures(client, KEYS[name])) for name in KEYS]]

    found = use_gateway(use, gateway='client_keys = ["env:KEY_A", "env:KEY_B"]')
    assert found == [{"purged": 1}, 0, 1]


def test_an_unknown_format_is_refused() -> None:
    async def use(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get("/toolglot/requests?format=xml")

    response = use_gateway(use)
    assert response.status_code == 400
    assert "expected json or jsonl" in response.text


def test_a_mistake_in_the_section_is_reported() -> None:
    with pytest.raises(ConfigError, match="keep"):
        use_gateway(captures, 'keep = "all"')


# --- limits -----------------------------------------------------------------------------------------


def ended(log: RequestLog, id: str, *, client: str = "a", size: int = 10) -> None:
    record = RequestRecord(id, "POST", "/v1/messages", client=client)
    record.arrive(b"x" * size)
    log.end(record)


def kept(log: RequestLog, client: str | None = None) -> list[str]:
    return [record.id for record in log.latest(client)]


def test_old_requests_are_forgotten() -> None:
    now = 0.0
    log = RequestLog(max_remembered=10, form="off", inspector=InspectorSettings(max_hours=1), clock=lambda: now)
    ended(log, "first")
    now = 3000.0
    ended(log, "second")
    assert kept(log) == ["second", "first"]
    now = 3601.0
    assert kept(log) == ["second"]
    assert log.find("first", None) is None


def test_bytes_are_limited() -> None:
    log = RequestLog(max_remembered=10, form="off", inspector=InspectorSettings(max_bytes=30_000))
    for id in ("first", "second", "third"):
        ended(log, id, size=10_000)
    assert kept(log) == ["third", "second"]


def test_a_busy_client_does_not_displace_the_requests_of_others() -> None:
    log = RequestLog(max_remembered=4, form="off")
    ended(log, "quiet", client="b")
    for number in range(10):
        ended(log, f"busy {number}")
    assert kept(log, "b") == ["quiet"]
    assert kept(log, "a") == ["busy 9", "busy 8"]
    assert log.purge("a") == 2
    assert kept(log) == ["quiet"]
    for number in range(10):
        ended(log, f"again {number}", client="b")
    assert len(kept(log)) == 4


def test_what_is_captured_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = CaptureBudget(lambda: 2000)
    first, second = CapturedReply(budget, 0.0), CapturedReply(budget, 0.0)
    first.receive(b"x" * 1500)
    second.receive(b"x" * 1500)
    assert (first.is_cut, second.is_cut, second.data("received")) == (False, True, b"")
    first.end()
    assert budget.used == 0
    monkeypatch.setattr(capturing, "MAX_PIECES", 2)
    third = CapturedReply(budget, 0.0)
    for piece in (b"a", b"b", b"c"):
        third.send(piece)
    assert (third.data("sent"), third.is_cut) == (b"ab", True)


@pytest.mark.parametrize("count", [1, 4, 5, 200])
def test_few_pieces_and_many_are_kept_alike(count: int) -> None:
    budget = CaptureBudget(lambda: 1_000_000)
    reply = CapturedReply(budget, 0.0)
    for number in range(count):
        reply.receive(b"in %d" % number)
        reply.send(b"out %d" % number)
    before = [*reply.pieces()]
    for _ in range(2):  # it ends once
        reply.end()
    assert [*reply.pieces()] == before
    assert [piece.direction for piece in before] == ["received", "sent"] * count
    assert reply.data("received") == b"".join([b"in %d" % number for number in range(count)])
    assert reply.data("sent") == b"".join([b"out %d" % number for number in range(count)])
    assert reply.sent_since(0) == []
    assert reply.size >= len(reply.data("received")) + len(reply.data("sent"))
    assert budget.used == 0


def test_a_failed_upstream_leaves_nothing_in_the_reply() -> None:
    record = RequestRecord("id", "POST", "/v1/messages")
    record.captured = CapturedReply(CaptureBudget(lambda: 10_000), 0.0)
    record.captured.receive(b"half a")
    record.restart()
    record.captured.receive(b"whole")
    assert record.captured.data("received") == b"whole"
    assert record.size > record.captured.size


# --- the command line -------------------------------------------------------------------------------


def test_the_command_line_reads_the_requests_of_a_capture(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    body = json.dumps({**BODY, "model": "claude-opus-4-5", "system": "be short"})
    kept_line = {"toolglot_capture": 1, "id": "tg_1", "request": body}
    lines = [{**kept_line, "id": "tg_2", "request": None}, kept_line]
    file = tmp_path / "captures.jsonl"
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    assert main(["convert", str(file), "--from", "anthropic", "--to", "openai", "--model", "gpt-5.5"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["messages"][0] == {"role": "system", "content": "be short"}
    assert "the capture has no bodies" in err
    with pytest.raises(InputError, match="version 2"):
        captured_request(b'{"toolglot_capture":2}')
    assert captured_request(b'{"model": "x"}') == b'{"model": "x"}'


def test_the_command_line_knows_the_protocol_of_a_capture(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    body = json.dumps({"model": "gpt-5.5", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]})
    file = tmp_path / "captures.jsonl"
    file.write_text(
        json.dumps({"toolglot_capture": 1, "protocol": "anthropic", "request": body}, separators=(",", ":"))
    )
    assert main(["convert", str(file), "--to", "mistral", "--model", "mistral-large-latest"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["max_tokens"] == 9
    assert "assuming" not in err
    assert main(["lint", str(file)]) == 1
    assert "anthropic refuses: model: gpt-5.5" in capsys.readouterr().out
