"""Conversations of OpenAI's Responses protocol, kept by the gateway for every upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway.gateway_process import process
from support.gateway.http_client import KEY, ask
from support.gateway.served_gateway import Served, gateway
from support.gateway.socket_client import socket_to
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway.state.conversations import MAX_ADDED, Conversations
from toolglot.protocols.errors.failures import ProviderError
from toolglot.simulator import Server, serve
from toolglot.store import SqliteStore

PATH: Final = "/v1/conversations"
CLAUDE: Final = "anthropic/claude-haiku-4-5"
OWN: Final = "openai_responses/gpt-5.5"
MODELS: Final = (CLAUDE, OWN, "openai_chat/gpt-4.1", "gemini/gemini-2.5-flash", "mistral/mistral-large-latest")
OTHER: Final = "another-key-of-some-length"
DAY: Final = 86_400.0


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url + "/v1", api_key=KEY) as own:
        yield own


def said(text: str) -> Any:
    return {"type": "message", "role": "user", "content": text}


def texts(client: openai.OpenAI, id: str) -> list[str]:
    """All texts of a conversation, the first first."""
    items = client.conversations.items.list(id, order="asc", limit=2)
    return [part.text for item in items for part in getattr(item, "content", None) or ()]


def turns_sent(simulated: Server) -> int:
    body = simulated.requests[-1].body
    assert isinstance(body, dict)
    return len(body.get("messages") or body.get("input") or body.get("contents") or ())


# --- the endpoints ----------------------------------------------------------------------------------


def test_a_conversation_is_made_read_changed_and_deleted(client: openai.OpenAI) -> None:
    made = client.conversations.create(metadata={"topic": "x"}, items=[said("One."), said("Two.")])
    assert made.id.startswith("conv_")
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "y"})
    assert (changed.metadata, changed.created_at) == ({"topic": "y"}, made.created_at)
    assert texts(client, made.id) == ["One.", "Two."]
    assert client.conversations.delete(made.id).deleted is True
    with pytest.raises(openai.NotFoundError, match=f"Conversation with id '{made.id}' not found"):
        client.conversations.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.list(made.id)


def test_items_are_added_listed_read_and_deleted(client: openai.OpenAI) -> None:
    id = client.conversations.create().id
    assert client.conversations.items.list(id).data == []
    added = client.conversations.items.create(id, items=[said("One."), said("Two.")])
    call: Any = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "a tree"}
    more = client.conversations.items.create(id, items=[call, result])
    ids = [item.id for item in (*added.data, *more.data)]
    assert len(set(ids)) == 4
    assert [item.id for item in client.conversations.items.list(id, order="asc", limit=1)] == ids
    assert [item.id for item in client.conversations.items.list(id)] == ids[::-1]
    found = client.conversations.items.retrieve(str(ids[2]), conversation_id=id)
    assert (found.type, found.id) == ("function_call", ids[2])
    assert client.conversations.items.delete(str(ids[0]), conversation_id=id).id == id
    assert [item.id for item in client.conversations.items.list(id, order="asc")] == ids[1:]
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(str(ids[0]), conversation_id=id)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("", {"metadata": []}, "metadata"),
        ("", {"metadata": {"a": 7}}, "metadata"),
        ("", {"metadata": {"a": "x" * 600}}, "metadata"),
        ("", {"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ("", {"items": "x"}, "items"),
        ("", {"items": [7]}, "items"),
        ("", {"items": [said("x")] * (MAX_ADDED + 1)}, "items"),
        ("/{id}/items", {}, "items"),
        ("/{id}/items?limit=0", None, "limit"),
        ("/{id}/items?order=up", None, "order"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(served: Served, path: str, body: Any, param: str) -> None:
    id = ask(served, PATH, {}).body["id"]
    got = ask(served, PATH + path.format(id=id), body)
    assert (got.status, got.body["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ({}, "items[1]"),
        ({"type": "no_such_item"}, "items[1].type"),
        ({"type": "message", "content": "x"}, "items[1].role"),
        ({"type": "message", "role": "user", "content": 7}, "items[1].content"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text"}]}, "items[1].content[0].text"),
        ({"type": "function_call", "call_id": "call_1", "arguments": "{}"}, "items[1].name"),
        ({"type": "function_call_output", "call_id": "call_1"}, "items[1].output"),
        ({"type": "x" * 100_000}, "items[1].type"),
    ],
)
def test_an_item_that_is_none_of_the_protocol_is_refused_with_its_index(
    served: Served, item: dict[str, Any], where: str
) -> None:
    id = ask(served, PATH, {}).body["id"]
    for path in (PATH, f"{PATH}/{id}/items"):
        got = ask(served, path, {"items": [said("x"), item]})
        error = got.body["error"]
        assert got.status == 400
        assert error["param"].startswith(where)
        assert where in error["message"]
        assert len(got.data) < 2_000
    assert ask(served, f"{PATH}/{id}/items").body["data"] == []


@pytest.mark.parametrize(
    ("body", "status"), [(b"[]", 400), (b"7", 400), (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 413)]
)
def test_a_body_that_is_no_object_is_refused(served: Served, body: bytes, status: int) -> None:
    assert ask(served, PATH, body).status == status


def test_without_a_store_there_are_no_conversations(simulated: Server) -> None:
    with gateway(simulated, settings='store = "off"') as served:
        assert "store" in ask(served, PATH, {}).body["error"]["message"]
        got = ask(served, "/v1/responses", {"model": CLAUDE, "input": "x", "conversation": "conv_1"})
        assert got.status == 404


# --- responses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_responses_of_a_conversation_have_all_of_it_and_add_to_it(
    client: openai.OpenAI, simulated: Server, model: str, stream: bool
) -> None:
    id = client.conversations.create(items=[said("One.")]).id
    for words in ("Two.", "Three."):
        if stream:
            events = list(client.responses.create(model=model, input=words, conversation=id, stream=True))
            assert events[-1].type == "response.completed"
            response = events[-1].response
        else:
            response = client.responses.create(model=model, input=words, conversation={"id": id})
        assert response.output_text == f"You said: {words}"
    expected = ["One.", "Two.", "You said: Two.", "Three.", "You said: Three."]
    assert texts(client, id) == expected
    assert "conversation" not in (simulated.requests[-1].body or {})
    assert turns_sent(simulated) >= 3
    stored = client.responses.retrieve(response.id)
    assert stored.conversation is not None
    assert stored.conversation.id == id
    with pytest.raises(openai.BadRequestError, match="belongs to a conversation"):
        client.responses.create(model=model, input="x", previous_response_id=response.id)


def test_a_conversation_goes_on_with_another_provider(client: openai.OpenAI, simulated: Server) -> None:
    id = client.conversations.create().id
    for number, model in enumerate(MODELS * 2):
        client.responses.create(model=model, input=f"{number}", conversation=id)
    assert {request.status for request in simulated.requests} == {200}
    assert len(texts(client, id)) == 4 * len(MODELS)


def test_a_response_that_is_refused_adds_nothing(client: openai.OpenAI, simulated: Server) -> None:
    id = client.conversations.create(items=[said("One.")]).id
    simulated.fault(500)
    with pytest.raises(openai.InternalServerError):
        client.with_options(max_retries=0).responses.create(model=CLAUDE, input="Two.", conversation=id)
    assert texts(client, id) == ["One."]


def test_it_has_one_history_only(served: Served) -> None:
    id = ask(served, PATH, {}).body["id"]
    body = {"model": CLAUDE, "input": "x", "conversation": id, "previous_response_id": "resp_1"}
    got = ask(served, "/v1/responses", body)
    assert (got.status, got.body["error"]["param"]) == (400, "conversation")
    assert ask(served, "/v1/responses", {"model": CLAUDE, "input": "x", "conversation": "conv_no"}).status == 404


def test_one_that_only_the_provider_knows_is_left_to_it(served: Served, simulated: Server) -> None:
    ask(served, "/v1/responses", {"model": OWN, "input": "x", "conversation": "conv_at_the_provider"})
    body = simulated.requests[-1].body
    assert isinstance(body, dict)
    assert body["conversation"] == "conv_at_the_provider"


def test_background_and_websocket_know_conversations(served: Served, client: openai.OpenAI) -> None:
    id = client.conversations.create().id
    response = client.responses.create(model=CLAUDE, input="One.", conversation=id, background=True)
    wait_until(lambda: client.responses.retrieve(response.id).status == "completed")
    with socket_to(served) as socket:
        assert socket.response(CLAUDE, "Two.", conversation=id)["type"] == "response.completed"
    assert texts(client, id) == ["One.", "You said: One.", "Two.", "You said: Two."]


def test_a_key_finds_nothing_of_another(simulated: Server) -> None:
    settings = 'client_keys = ["env:ONE", "env:TWO"]'
    with gateway(simulated, settings=settings, environ={"ONE": KEY, "TWO": OTHER}) as served:
        id = ask(served, PATH, {"items": [said("One.")]}).body["id"]
        item = ask(served, f"{PATH}/{id}/items").body["data"][0]["id"]
        for path in (f"{PATH}/{id}", f"{PATH}/{id}/items", f"{PATH}/{id}/items/{item}"):
            assert ask(served, path, key=OTHER).status == 404
            assert ask(served, path).status == 200
        assert ask(served, f"{PATH}/{id}", method="DELETE", key=OTHER).status == 404
        assert ask(served, f"{PATH}/{id}/items/{item}", method="DELETE", key=OTHER).status == 404
        assert ask(served, f"{PATH}/{id}/items", {"items": [said("x")]}, key=OTHER).status == 404
        for model in (CLAUDE, OWN):
            body = {"model": model, "input": "x", "conversation": id}
            assert ask(served, "/v1/responses", body, key=OTHER).status == 404
        assert len(ask(served, f"{PATH}/{id}/items").body["data"]) == 1


def test_a_conversation_survives_its_gateway(simulated: Server, tmp_path: Path) -> None:
    with process(tmp_path, simulated) as first:
        id = ask(first.url, PATH, {"items": [said("One.")]}).body["id"]
        ask(first.url, "/v1/responses", {"model": CLAUDE, "input": "Two.", "conversation": id})
        first.popen.kill()
        first.popen.wait()
    with process(tmp_path, simulated) as second:
        assert len(ask(second.url, f"{PATH}/{id}/items").body["data"]) == 3


# --- the rows ---------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=3), max_size=8), st.lists(st.integers(-5, 5)))
def test_items_stay_in_the_order_in_which_they_were_added_whatever_the_clock_says(
    added: list[list[str]], steps: list[int]
) -> None:
    now = 1_000_000.0

    async def play() -> None:
        nonlocal now
        rows = Conversations(SqliteStore(":memory:", clock=lambda: 0.0), seconds=DAY, clock=lambda: now)
        id = (await rows.serve("me", "conversations", "POST", "", "", {}, {}))["id"]
        for number, words in enumerate(added):
            await rows.serve("me", "conversation_items", "POST", id, "", {"items": list(map(said, words))}, {})
            now += steps[number % len(steps)] if steps else 0
        turns = await rows.turns("me", id)
        assert turns is not None
        found = [item["content"][0]["text"] for turn in turns for item in turn.items]
        assert found == [word for words in added for word in words]

    asyncio.run(asyncio.wait_for(play(), HANG_SECONDS))


def test_one_that_is_used_does_not_expire_and_another_does() -> None:
    now = 1_000_000.0

    async def play() -> None:
        nonlocal now
        rows = Conversations(SqliteStore(":memory:", clock=lambda: now), seconds=DAY, clock=lambda: now)
        used, left = [
            (await rows.serve("me", "conversations", "POST", "", "", {"items": [said("One.")]}, {}))["id"]
            for _ in range(2)
        ]
        for _ in range(5):
            now += 0.6 * DAY
            turns = await rows.turns("me", used)
            assert turns is not None
            assert len(turns) == 1
        assert await rows.turns("me", left) is None
        with pytest.raises(ProviderError):
            await rows.serve("me", "conversation", "GET", left, "", {}, {})

    asyncio.run(asyncio.wait_for(play(), HANG_SECONDS))
