"""Requests that are sent once more, and what all requests come to over time."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx
import msgspec
import pytest

from support.inspector.inspected_gateway import API, KEYED, KEYS, get, request_body, rows, send, use_gateway
from toolglot.gateway.inspector.fleet import MAX_PARTS, OTHERS, Fleet, joined, read_parts, series_of
from toolglot.gateway.observability.request_record import RecordedRoute, RequestRecord

BODIES: Final = 'keep = "bodies"'


async def replay(client: httpx.AsyncClient, id: str, key: str = "none", **wish: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    return await client.post(f"{API}/requests/{id}/replay", json=wish, headers=headers)


async def ended(client: httpx.AsyncClient, id: str, key: str = "none") -> dict[str, Any]:
    """The row of a request when it is over."""
    while True:
        found = [row for row in await rows(client, key) if row["id"] == id and row["state"] != "running"]
        if found:
            return found[0]
        await asyncio.sleep(0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", request_body("hello there", system="be nice")),
        (
            "/v1/chat/completions",
            {"model": "simulated/mistral/x", "messages": [{"role": "user", "content": "hello there"}]},
        ),
        ("/v1/responses", {"model": "simulated/mistral/x", "input": "hello there", "stream": True}),
        (
            "/v1beta/models/simulated%2Fmistral%2Fx:streamGenerateContent?alt=sse",
            {"contents": [{"role": "user", "parts": [{"text": "hello there"}]}]},
        ),
        ("/api/chat", {"model": "simulated/mistral/x", "messages": [{"role": "user", "content": "hello there"}]}),
    ],
)
def test_a_request_is_sent_once_more_to_another_model(path: str, body: dict[str, Any], stream: bool) -> None:
    async def use(client: httpx.AsyncClient) -> list[Any]:
        id = await send(client, body, path=path)
        answer = await replay(client, id, model="simulated/gemini/gemini-2.5-pro", stream=stream)
        assert answer.status_code == 200, answer.text
        row = await ended(client, answer.json()["id"])
        return [id, row, await get(client, f"/requests/{row['id']}")]

    id, row, detail = use_gateway(use)
    assert (row["replay_of"], row["status"], row["stream"]) == (id, 200, stream)
    assert (row["upstream"], row["sent_model"]) == ("gemini", "gemini-2.5-pro")
    assert "hello there" in json.dumps(detail["canonical"]["turns"])
    assert detail["response"]


def test_the_secret_in_a_body_is_sent_again_and_shown_masked() -> None:
    secret = "sk-ant-api03-abcdefgh12345678"  # noqa: S105 - made up

    async def use(client: httpx.AsyncClient) -> str:
        id = await send(client, request_body(f"the key is {secret}"))
        again = (await replay(client, id, model="simulated/openai/gpt-5.5")).json()["id"]
        await ended(client, again)
        detail = await get(client, f"/requests/{again}")
        return json.dumps(detail)

    shown = use_gateway(use)
    assert secret not in shown
    assert "the key is sk-***" in shown


def test_a_replay_has_the_limits_of_the_key_that_asks_for_it() -> None:
    async def use(client: httpx.AsyncClient) -> list[Any]:
        own = await send(client, key=KEYS["KEY_B"])
        refused = await replay(client, own, KEYS["KEY_B"], model="simulated/gemini/gemini-2.5-pro")
        of_admin = await replay(client, own, KEYS["KEY_ADMIN"], model="simulated/gemini/gemini-2.5-pro")
        row = await ended(client, of_admin.json()["id"], KEYS["KEY_ADMIN"])
        return [refused.status_code, row["client"], len(await rows(client, KEYS["KEY_B"]))]

    assert use_gateway(use, BODIES, keys=KEYED) == [403, "boss", 1]


def test_a_request_without_a_body_cannot_be_repeated() -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        id = await send(client, key=KEYS["KEY_A"])
        broken = await send(client, "not JSON", key=KEYS["KEY_A"])
        found = [await replay(client, each, KEYS["KEY_A"], model="m") for each in (id, broken, "tg_none")]
        return [response.status_code for response in found]

    assert use_gateway(use, 'keep = "reports"', keys=KEYED) == [409, 409, 404]


@pytest.mark.parametrize("wish", [{}, {"model": 3}, {"model": ""}, {"model": "a\nb"}, {"model": "m", "stream": "yes"}])
def test_a_wish_that_makes_no_sense_is_refused(wish: dict[str, Any]) -> None:
    async def use(client: httpx.AsyncClient) -> list[int]:
        id = await send(client)
        return [(await replay(client, id, **wish)).status_code, len(await rows(client))]

    assert use_gateway(use) == [400, 1]


def test_what_is_no_request_to_a_model_is_not_repeated() -> None:
    async def use(client: httpx.AsyncClient) -> int:
        id = await send(
            client, {"model": "simulated/openai/text-embedding-3-small", "input": "x"}, path="/v1/embeddings"
        )
        return (await replay(client, id, model="m")).status_code

    assert use_gateway(use) == 409


# --- the fleet --------------------------------------------------------------------------------------


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1_795_000_020.0

    def __call__(self) -> float:
        return self.now


def add(fleet: Fleet, *, client: str = "a", model: str = "m", status: int = 200, seconds: float = 0.1) -> None:
    record = RequestRecord("1", "POST", "/v1/messages", action="generate", client=client)
    record.take_route(RecordedRoute("up", model))
    record.response.begin(status)
    record.reply.count({"input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 50})
    record.reply.price(2_000_000)
    record.times.seconds = seconds
    fleet.add(record)


def sums(fleet: Fleet, hours: float, client: str | None = None) -> dict[str, float]:
    """The sum of each series of numbers."""
    found: dict[str, float] = {}
    for series in series_of(fleet.times(hours), fleet.parts(hours, client), str):
        found[series["name"]] = found.get(series["name"], 0) + sum(value or 0 for value in series["values"])
    return found


@pytest.mark.parametrize("hours", [1, 2, 24, 168])
def test_every_length_of_time_shows_what_was_in_it(hours: int) -> None:
    clock = Clock()
    fleet = Fleet(clock)
    add(fleet)
    for _ in range(50):
        clock.now += hours * 3600 / 60
        add(fleet)
    assert sums(fleet, hours)["requests"] == 51
    clock.now += hours * 3600
    add(fleet)
    assert sums(fleet, hours)["requests"] == 1


def test_what_is_old_is_dropped() -> None:
    clock = Clock()
    fleet = Fleet(clock)
    for _ in range(2000):
        clock.now += 1800
        add(fleet)
    assert sum(map(len, fleet._buckets)) < 2 * (120 + 145 + 169)


def test_the_parts_are_bounded_and_nothing_is_lost() -> None:
    fleet = Fleet(Clock())
    for number in range(500):
        add(fleet, model=f"m{number}", client=f"c{number}")
    parts = fleet.parts(1, None)
    assert len(parts) <= 2 * MAX_PARTS + 1
    assert sums(fleet, 1)["requests"] == 500
    assert any(part[0] == OTHERS for part, _ in parts)


def test_errors_have_their_kind_and_latencies_their_quantiles() -> None:
    fleet = Fleet(Clock())
    for number in range(100):
        add(fleet, seconds=10.0 if number > 90 else 0.1, status=500 if number > 97 else 200)
    series = series_of(fleet.times(1), fleet.parts(1, None), str)
    last = {(each["name"], each["by"].get("kind")): each["values"][-1] for each in series}
    assert last["errors", "status 500"] == 2
    assert 0.1 <= last["p50", None] < 0.2
    assert 10 <= last["p95", None] < 20
    assert last["cached_share", None] == 0.5
    assert last["cost_usd", None] == pytest.approx(0.2)


def test_workers_are_added_up() -> None:
    one, other = Fleet(Clock()), Fleet(Clock())
    add(one)
    add(other)
    add(other, client="b")
    sent = read_parts(msgspec.json.decode(msgspec.json.encode(other.parts(1, None))))
    whole = joined([one.parts(1, None), sent])
    assert {part[2]: sum(amounts.requests for amounts in each.values()) for part, each in whole} == {"a": 2, "b": 1}


def test_a_key_sees_its_own_part_of_the_fleet() -> None:
    async def use(client: httpx.AsyncClient) -> list[Any]:
        await send(client, key=KEYS["KEY_A"])
        await send(client, key=KEYS["KEY_B"])
        found = [await get(client, "/fleet?hours=1", key) for key in KEYS.values()]
        return [
            [
                sorted({series["by"]["client"] for series in fleet["series"]}),
                sorted(key["name"] for key in fleet["keys"]),
            ]
            for fleet in found
        ]

    assert use_gateway(use, keys=KEYED) == [
        [["alice"], ["alice"]],
        [["bob"], ["bob"]],
        [["alice", "bob"], ["alice", "bob", "boss"]],
    ]


def test_the_fleet_shows_upstreams_and_keys() -> None:
    settings = '\n[keys.dora]\nkey = "env:KEY_A"\nadmin = true\nspend_per_day = 5\nrequests_per_minute = 90\n'
    settings += '[upstreams.work]\nprovider = "openai"\nurl = "http://127.0.0.1:9/v1"\nkey_env = "KEY_B"\n'

    async def use(client: httpx.AsyncClient) -> Any:
        await send(client, request_body(model="work/gpt-5.5"), key=KEYS["KEY_A"])
        return await get(client, "/fleet?hours=1", KEYS["KEY_A"])

    found = use_gateway(use, keys=settings)
    (upstream,) = found["upstreams"]
    assert (upstream["name"], upstream["state"], upstream["failures"]) == ("work", "closed", 1)
    (key,) = found["keys"]
    assert (key["name"], key["requests"], key["budget_usd"]) == ("dora", 1, 5.0)
    assert key["limits"] == {"requests_per_minute": 90}
    assert [series["by"]["kind"] for series in found["series"] if series["name"] == "errors"] == ["unreachable"]
