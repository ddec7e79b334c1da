"""What the gateway keeps for clients of the Responses protocol: chains, references, and stored responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response
from openai.types.responses.response_item_list import ResponseItemList

from toolglot import convert, lint
from toolglot.gateway.state.stored_responses import MAX_NEAREST, StoredResponses
from toolglot.protocols.base import codec
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import SqliteStore, StoreLimits
from toolglot.translate.requests import error_for
from toolglot.translate.streams import StreamTranslator

ME, OTHER = "client-a", "client-b"
DAY = 86_400.0
MODEL_OF = {
    "anthropic": "claude-haiku-4-5",
    "openai": "gpt-4.1",
    "gemini": "gemini-2.5-flash",
    "mistral": "mistral-large-latest",
    "openai_responses": "gpt-5.5",
}
Body = dict[str, Any]
Work = Callable[["Bench"], Awaitable[None]]


class CountingStore(SqliteStore):
    """A store that counts what it is called for."""

    looks = 0
    written = 0

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        self.looks += 1
        return await super().find(kind, client, keys)

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        self.written += sum(map(len, rows.values()))
        await super().keep(kind, client, rows, until=until, unless=unless)


class Bench:
    """A store in memory whose clock stands still until it is moved."""

    def __init__(self, limits: StoreLimits | None = None, **options: Any) -> None:
        self.now = 1_000_000.0
        self.store = CountingStore(":memory:", clock=lambda: self.now, limits=limits or StoreLimits())
        self.responses = StoredResponses(self.store, seconds=DAY, clock=lambda: self.now, **options)

    async def exchange(
        self, id: str, prompt: str, answer: str, *, client: str = ME, stored_by: str = "", **more: Any
    ) -> None:
        request: Body = {"model": "m", "input": prompt, **more}
        assert await self.responses.keep(
            client, request, answered(id, message(f"msg_{id}", answer)), stored_by=stored_by
        )


def run(work: Work, **options: Any) -> None:
    async def all_of_it() -> None:
        bench = Bench(**options)
        try:
            await work(bench)
        finally:
            await bench.store.close()

    asyncio.run(all_of_it())


def message(id: str, text: str) -> Body:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}


def user(text: str) -> Body:
    return {"type": "message", "role": "user", "content": text}


def answered(id: str, *output: Body, **more: Any) -> Body:
    return {
        "id": id,
        "object": "response",
        "created_at": 7,
        "model": "m",
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": list(output),
        **more,
    }


def texts(body: Body | None) -> list[str]:
    """The texts of a request, in order."""
    assert body is not None
    found = []
    for item in body["input"]:
        content = item.get("content", item.get("output"))
        found.append(content if isinstance(content, str) else content[0]["text"])
    return found


async def refused(work: Awaitable[Any]) -> tuple[int, Body]:
    """The status and the error that a client gets."""
    with pytest.raises(ProviderError) as caught:
        await work
    converted = error_for(caught.value.failure, target="openai_responses")
    error: Body = converted.body["error"]
    return converted.status, error


# --- chains -----------------------------------------------------------------------------------------


def test_a_request_that_refers_to_nothing_stays_as_it_is() -> None:
    async def work(bench: Bench) -> None:
        for body in (
            {"model": "m", "input": "hi"},
            {"model": "m"},
            {"input": [user("hi"), {"type": "reasoning", "id": "rs_1", "summary": [{"text": "x"}]}, 7]},
            {"input": 7, "previous_response_id": "resp_1"},
            {"input": "hi", "previous_response_id": None, "conversation": "conv_1"},
            {"input": "hi", "previous_response_id": 7},
        ):
            assert await bench.responses.expand(ME, body) is None

    run(work)


def test_the_whole_chain_comes_before_the_input_and_instructions_are_not_inherited() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first", instructions="be brief")
        await bench.exchange("resp_2", "two", "second", previous_response_id="resp_1")
        request = {"model": "m", "input": "three", "previous_response_id": "resp_2", "temperature": 0.5}
        found = await bench.responses.expand(ME, request)
        assert texts(found) == ["one", "first", "two", "second", "three"]
        assert found is not None
        assert found["input"][0] == user("one")
        assert found["input"][1] == message("msg_resp_1", "first")
        assert {key: found[key] for key in found if key != "input"} == {"model": "m", "temperature": 0.5}
        assert request["input"] == "three"
        assert texts(await bench.responses.expand(ME, {"previous_response_id": "resp_1"})) == ["one", "first"]

    run(work)


def test_results_of_tools_follow_the_calls_of_the_chain() -> None:
    async def work(bench: Bench) -> None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
        await bench.responses.keep(ME, {"input": [user("go")]}, answered("resp_1", call))
        result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        found = await bench.responses.expand(ME, {"input": [result], "previous_response_id": "resp_1"})
        assert found is not None
        assert found["input"] == [user("go"), call, result]

    run(work)


@pytest.mark.parametrize("target", ["anthropic", "openai", "gemini", "mistral", "openai_responses"])
def test_what_was_put_together_is_a_request_that_any_provider_takes(target: str) -> None:
    async def work(bench: Bench) -> None:
        tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
        await bench.responses.keep(ME, {"input": "go", "tools": [tool]}, answered("resp_1", thought, call))
        result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        request = {"model": "m", "input": [result], "previous_response_id": "resp_1", "tools": [tool]}
        found = await bench.responses.expand(ME, request)
        assert found is not None
        out = convert(found, source="openai_responses", target=target, model=MODEL_OF[target])
        assert not lint(out.body, target, MODEL_OF[target])
        assert b"done" in out.data

    run(work)


def test_an_unknown_previous_response_is_refused_in_openais_words() -> None:
    async def work(bench: Bench) -> None:
        request = {"input": "x", "previous_response_id": "resp_x"}
        status, error = await refused(bench.responses.expand(ME, request))
        assert status == 400
        assert error == {
            "message": "Previous response with id 'resp_x' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        }
        for odd in ("", "a\0b", "\ud800", "x" * 10_000):
            status, _ = await refused(bench.responses.expand(ME, {"input": "x", "previous_response_id": odd}))
            assert status == 400
        assert await bench.responses.expand(ME, request, may_be_elsewhere=True) is None

    run(work)


def test_without_a_store_nothing_is_known() -> None:
    async def work(_: Bench) -> None:
        responses = StoredResponses(None, seconds=DAY)
        assert not await responses.keep(ME, {"input": "x"}, answered("resp_1"))
        assert await responses.expand(ME, {"input": "x"}) is None
        status, _error = await refused(responses.expand(ME, {"input": "x", "previous_response_id": "resp_1"}))
        assert status == 400
        assert await responses.find(ME, "resp_1") is None
        assert not await responses.remove(ME, "resp_1")

    run(work)


def test_a_client_reads_nothing_of_another() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "secret", "hush", client=OTHER)
        status, _ = await refused(bench.responses.expand(ME, {"input": "x", "previous_response_id": "resp_1"}))
        assert status == 400
        status, _ = await refused(bench.responses.expand(ME, {"input": [{"id": "msg_resp_1"}]}))
        assert status == 404
        assert await bench.responses.find(ME, "resp_1") is None
        assert await bench.responses.input_items(ME, "resp_1", {}) is None
        assert await bench.responses.cancel(ME, "resp_1") is None
        assert await bench.responses.upstream_of(ME, "resp_1") is None
        assert not await bench.responses.remove(ME, "resp_1")
        assert await bench.responses.find(OTHER, "resp_1") is not None

    run(work)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"input": "x", "store": False}, answered("resp_1")),
        ({"input": "x", "conversation": "conv_1"}, answered("resp_1")),
        ({"input": 7}, answered("resp_1")),
        ({"input": "x"}, answered("")),
        ({"input": "x"}, {**answered("resp_1"), "id": 7}),
        ({"input": "x"}, {**answered("resp_1"), "output": None}),
        ({"input": "x", "previous_response_id": "resp_1"}, answered("resp_1")),
    ],
)
def test_what_must_not_or_cannot_be_kept_is_not(body: Body, answer: Body) -> None:
    async def work(bench: Bench) -> None:
        assert not await bench.responses.keep(ME, body, answer)
        assert await bench.responses.find(ME, "resp_1") is None

    run(work)


@pytest.mark.parametrize("count", [MAX_NEAREST - 1, MAX_NEAREST, MAX_NEAREST + 1, 3 * MAX_NEAREST + 2])
def test_a_long_chain_is_read_in_a_few_steps_and_stored_in_linear_space(count: int) -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_0", "prompt 0", "answer 0")
        for number in range(1, count):
            previous = f"resp_{number - 1}"
            await bench.exchange(
                f"resp_{number}", f"prompt {number}", f"answer {number}", previous_response_id=previous
            )
        bench.store.looks = 0
        found = await bench.responses.expand(ME, {"input": "end", "previous_response_id": f"resp_{count - 1}"})
        expected = [text for number in range(count) for text in (f"prompt {number}", f"answer {number}")]
        assert texts(found) == [*expected, "end"]
        assert bench.store.looks <= 1 + -(-count // MAX_NEAREST)
        assert bench.store.written < count * (MAX_NEAREST * 12 + 1_500)

    run(work)


def test_chains_are_bounded_in_links_and_in_bytes() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_0", "prompt", "x" * 500)
        for number in range(1, 4):
            await bench.exchange(f"resp_{number}", "prompt", "x", previous_response_id=f"resp_{number - 1}")
        ask = bench.responses.expand
        assert len(texts(await ask(ME, {"input": "x", "previous_response_id": "resp_2"}))) == 7
        status, error = await refused(ask(ME, {"input": "x", "previous_response_id": "resp_3"}))
        assert (status, error["param"]) == (400, "previous_response_id")
        assert "more than 3 responses" in error["message"]
        small = StoredResponses(bench.store, seconds=DAY, clock=lambda: bench.now, max_bytes=400)
        status, error = await refused(small.expand(ME, {"input": "x", "previous_response_id": "resp_0"}))
        assert status == 400
        assert "more than 400 bytes" in error["message"]
        status, error = await refused(small.expand(ME, {"input": [{"type": "item_reference", "id": "msg_resp_0"}]}))
        assert status == 400
        assert "bytes" in error["message"]
        assert not await small.keep(ME, {"input": "y" * 500}, answered("resp_9"))

    run(work, max_links=3)


def test_more_items_than_the_bytes_allow_are_not_even_read() -> None:
    async def work(bench: Bench) -> None:
        for number in range(1_003):
            await bench.exchange(f"resp_{number}", "x", "y" * 600)
        small = StoredResponses(bench.store, seconds=DAY, clock=lambda: bench.now, max_bytes=100_000)
        named = [{"type": "item_reference", "id": f"msg_resp_{number}"} for number in range(1_003)]
        status, error = await refused(small.expand(ME, {"input": named}))
        assert status == 400
        assert "100000 bytes" in error["message"]
        assert len(texts(await bench.responses.expand(ME, {"input": named}))) == 1_003

    run(work)


def test_what_the_store_finds_too_large_is_not_kept() -> None:
    async def work(bench: Bench) -> None:
        assert not await bench.responses.keep(ME, {"input": "x" * 2_000}, answered("resp_1"))
        assert await bench.responses.find(ME, "resp_1") is None

    run(work, limits=StoreLimits(max_value_bytes=1_000))


def test_ids_that_go_round_in_a_circle_end_in_a_refusal() -> None:
    async def work(bench: Bench) -> None:
        for number in range(MAX_NEAREST + 5):
            previous = {"previous_response_id": f"resp_{number - 1}"} if number else {}
            await bench.exchange(f"resp_{number}", "x", "y", **previous)
        await bench.exchange("resp_0", "x", "y", previous_response_id=f"resp_{MAX_NEAREST + 4}")
        status, error = await refused(bench.responses.expand(ME, {"input": "x", "previous_response_id": "resp_3"}))
        assert status == 400
        assert "more than 100 responses" in error["message"]

    run(work, max_links=100)


def test_a_conversation_in_use_outlives_the_time_of_its_first_exchange() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_0", "prompt 0", "answer 0")
        for number in range(1, 6):
            bench.now += 0.7 * DAY
            request = {"input": "x", "previous_response_id": f"resp_{number - 1}"}
            assert len(texts(await bench.responses.expand(ME, request))) == 2 * number + 1
            await bench.exchange(f"resp_{number}", "x", "y", previous_response_id=f"resp_{number - 1}")
        assert await bench.responses.find(ME, "resp_0") is None
        named = {"input": [{"type": "item_reference", "id": "msg_resp_0"}]}
        assert texts(await bench.responses.expand(ME, named)) == ["answer 0"]
        bench.now += 1.1 * DAY
        status, _ = await refused(bench.responses.expand(ME, {"input": "x", "previous_response_id": "resp_5"}))
        assert status == 400

    run(work)


@pytest.mark.law
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_law_whatever_an_item_holds_comes_back_as_it_was(value: Any) -> None:
    async def work(bench: Bench) -> None:
        item = {"type": "odd", "value": value}
        await bench.responses.keep(ME, {"input": [item]}, answered("resp_1", {**item, "id": "odd_1"}))
        found = await bench.responses.expand(ME, {"input": "x", "previous_response_id": "resp_1"})
        assert found is not None
        assert found["input"] == [item, {**item, "id": "odd_1"}, user("x")]

    run(work)


# --- references -------------------------------------------------------------------------------------


def test_the_ai_sdks_references_become_the_items_that_they_name() -> None:
    async def work(bench: Bench) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
        await bench.responses.keep(ME, {"input": "go"}, answered("resp_1", thought, message("msg_1", "ok"), call))
        sent = [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "item_reference", "id": "rs_1"},
            {"type": "item_reference", "id": "msg_1"},
            {"id": "msg_1"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "done"},
        ]
        found = await bench.responses.expand(ME, {"input": sent})
        assert found is not None
        assert found["input"] == [sent[0], thought, message("msg_1", "ok"), sent[5], sent[6]]

    run(work)


def test_a_result_finds_its_call_where_that_is_a_reference() -> None:
    async def work(bench: Bench) -> None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
        await bench.responses.keep(ME, {"input": "go"}, answered("resp_1", call))
        result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        request: Body = {"model": "m", "input": [user("go"), {"type": "item_reference", "id": "fc_1"}, result]}
        found = await bench.responses.expand(ME, request)
        assert found is not None
        assert found["input"] == [user("go"), call, result]
        sent = convert(found, source="openai_responses", target="anthropic", model="claude-sonnet-4-5").body
        assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]

    run(work)


def test_bare_reasoning_is_found_or_left_alone() -> None:
    async def work(bench: Bench) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
        await bench.responses.keep(ME, {"input": "go"}, answered("resp_1", thought))
        bare: list[Body] = [{"type": "reasoning", "id": id, "summary": []} for id in ("rs_1", "rs_2")]
        found = await bench.responses.expand(ME, {"input": bare})
        assert found is not None
        assert found["input"] == [thought, bare[1]]

    run(work)


def test_references_of_earlier_requests_are_resolved_in_the_chain() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first")
        named = [user("one"), {"type": "item_reference", "id": "msg_resp_1"}, user("two")]
        await bench.responses.keep(ME, {"input": named}, answered("resp_2", message("msg_2", "second")))
        request = {
            "input": [{"type": "item_reference", "id": "msg_2"}, user("three")],
            "previous_response_id": "resp_2",
        }
        assert texts(await bench.responses.expand(ME, request)) == ["one", "first", "two", "second", "three"]
        await bench.responses.remove(ME, "resp_1")
        status, error = await refused(bench.responses.expand(ME, request))
        assert (status, error["param"]) == (404, "input")

    run(work)


def test_an_unknown_item_is_refused_in_openais_words() -> None:
    async def work(bench: Bench) -> None:
        named: Body = {"input": [{"type": "item_reference", "id": "msg_x"}]}
        status, error = await refused(bench.responses.expand(ME, named))
        assert status == 404
        assert error == {
            "message": "Item with id 'msg_x' not found.",
            "type": "invalid_request_error",
            "param": "input",
            "code": None,
        }
        _, error = await refused(bench.responses.expand(ME, {**named, "store": False}))
        assert "Items are not persisted when `store` is set to false." in error["message"]
        assert await bench.responses.expand(ME, named, may_be_elsewhere=True) is None
        await bench.exchange("resp_1", "one", "first")
        nameless = {"input": [{"type": "item_reference"}], "previous_response_id": "resp_1"}
        status, _ = await refused(bench.responses.expand(ME, nameless))
        assert status == 404

    run(work)


def test_an_item_that_the_chain_has_is_not_sent_twice() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first")
        request = {"input": [message("msg_resp_1", "first"), user("two")], "previous_response_id": "resp_1"}
        status, error = await refused(bench.responses.expand(ME, request))
        assert status == 400
        assert error["message"].startswith("Duplicate item found with id msg_resp_1.")

    run(work)


# --- upstreams that store by themselves -------------------------------------------------------------


def test_what_the_upstream_has_itself_is_left_to_it() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first", stored_by="openai")
        await bench.exchange("resp_2", "two", "second", previous_response_id="resp_1")
        ask = bench.responses.expand
        at_home = {"input": "x", "previous_response_id": "resp_1"}
        assert await ask(ME, at_home, stored_by="openai") is None
        assert await ask(ME, {"input": [{"type": "item_reference", "id": "msg_resp_1"}]}, stored_by="openai") is None
        assert texts(await ask(ME, at_home, stored_by="azure")) == ["one", "first", "x"]
        assert texts(await ask(ME, at_home)) == ["one", "first", "x"]
        foreign = {"input": "x", "previous_response_id": "resp_2"}
        assert len(texts(await ask(ME, foreign, stored_by="openai"))) == 5
        mixed = {"input": [{"type": "item_reference", "id": "msg_resp_2"}], "previous_response_id": "resp_1"}
        assert texts(await ask(ME, mixed, stored_by="openai")) == ["one", "first", "second"]
        assert await bench.responses.upstream_of(ME, "resp_1") == "openai"
        assert await bench.responses.upstream_of(ME, "resp_2") == ""

    run(work)


def test_an_upstream_that_looks_items_up_gets_none_under_a_name_that_it_did_not_give() -> None:
    async def work(bench: Bench) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
        response = answered("resp_1", thought, message("msg_1", "first"))
        await bench.responses.keep(ME, {"input": "one"}, response)
        kept = {"type": "reasoning", "id": "rs_2", "summary": []}
        named = [{"type": "item_reference", "id": "msg_1"}]
        request = {"input": named, "previous_response_id": "resp_1"}
        await bench.responses.keep(
            ME, request, answered("resp_2", kept, message("msg_2", "second")), stored_by="openai"
        )
        await bench.responses.keep(ME, {"previous_response_id": "resp_2"}, answered("resp_3"))
        found = await bench.responses.expand(ME, {"previous_response_id": "resp_3", "input": [7]}, stored_by="openai")
        bare = {key: value for key, value in message("", "first").items() if key != "id"}
        assert found is not None
        assert found["input"] == [user("one"), bare, kept, message("msg_2", "second"), 7]
        foreign = await bench.responses.expand(ME, {"previous_response_id": "resp_3", "input": [7]})
        assert foreign is not None
        assert foreign["input"][1] == thought

    run(work)


def test_a_chain_whose_beginning_is_elsewhere_is_not_sent_in_part() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_2", "two", "second", stored_by="openai", previous_response_id="resp_1")
        request = {"input": "x", "previous_response_id": "resp_2"}
        assert await bench.responses.expand(ME, request, stored_by="openai") is None
        _, error = await refused(bench.responses.expand(ME, request))
        assert error["message"] == "Previous response with id 'resp_1' not found."

    run(work)


# --- stored responses -------------------------------------------------------------------------------


def test_a_response_is_found_as_its_client_got_it_with_what_it_repeats_of_its_request() -> None:
    async def work(bench: Bench) -> None:
        tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
        request = {
            "input": "hi",
            "instructions": "be brief",
            "metadata": {"a": "b"},
            "previous_response_id": "resp_0",
            "tools": [tool],
            "tool_choice": "required",
            "temperature": 0.5,
            "stream": True,
        }
        response = answered("resp_1", message("msg_1", "hello"), usage=None, temperature=1.0)
        assert await bench.responses.keep(ME, request, response)
        found = await bench.responses.serve(ME, "response", "GET", "resp_1", {"include": "x", "stream": "false"})
        assert found["output"] == response["output"]
        assert {key: found[key] for key in ("instructions", "metadata", "previous_response_id")} == {
            key: request[key] for key in ("instructions", "metadata", "previous_response_id")
        }
        assert found["tools"] == [{"description": None, **tool}]
        assert (found["tool_choice"], found["temperature"]) == ("required", 1.0)
        assert "input" not in found
        assert "stream" not in found
        typed = Response.model_validate(found)
        assert typed.output_text == "hello"
        assert typed.previous_response_id == "resp_0"

    run(work)


def test_addresses_of_stored_responses_answer_in_openais_words() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first")
        ask = bench.responses.serve
        status, error = await refused(ask(ME, "cancel", "POST", "resp_1", {}))
        assert (status, error["message"]) == (400, "Cannot cancel a synchronous response.")
        await bench.exchange("resp_2", "one", "first", background=True)
        _, error = await refused(ask(ME, "cancel", "POST", "resp_2", {}))
        assert error["message"] == "Cannot cancel a completed response."
        assert (await ask(ME, "input_items", "GET", "resp_1", {}))["object"] == "list"
        deleted = await ask(ME, "response", "DELETE", "resp_1", {})
        assert deleted == {"id": "resp_1", "object": "response", "deleted": True}
        for action, method in (("response", "GET"), ("response", "DELETE"), ("input_items", "GET"), ("cancel", "POST")):
            status, error = await refused(ask(ME, action, method, "resp_1", {}))
            assert status == 404
            assert error["message"] == "Response with id 'resp_1' not found."

    run(work)


def test_what_continues_a_removed_response_cannot_be_continued() -> None:
    async def work(bench: Bench) -> None:
        await bench.exchange("resp_1", "one", "first")
        await bench.exchange("resp_2", "two", "second", previous_response_id="resp_1")
        assert await bench.responses.remove(ME, "resp_1")
        _, error = await refused(bench.responses.expand(ME, {"input": "x", "previous_response_id": "resp_2"}))
        assert "'resp_1'" in error["message"]
        assert await bench.responses.find(ME, "resp_2") is not None

    run(work)


# --- input items ------------------------------------------------------------------------------------


def test_input_items_are_all_of_the_conversation_but_the_answer_each_with_an_id() -> None:
    async def work(bench: Bench) -> None:
        call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
        await bench.responses.keep(ME, {"input": "go"}, answered("resp_1", call))
        result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        reply = {"role": "assistant", "content": "aha"}
        request = {"input": [result, reply, 7], "previous_response_id": "resp_1"}
        await bench.responses.keep(ME, request, answered("resp_2", message("msg_2", "ok")))
        found = await bench.responses.input_items(ME, "resp_2", {"order": "asc"})
        assert found is not None
        assert [item["type"] for item in found["data"]] == [
            "message",
            "function_call",
            "function_call_output",
            "message",
        ]
        assert found["data"][0]["content"] == [{"type": "input_text", "text": "go"}]
        assert found["data"][3]["content"][0]["type"] == "output_text"
        assert len({item["id"] for item in found["data"]}) == 4
        assert (found["first_id"], found["has_more"]) == (found["data"][0]["id"], False)
        typed = ResponseItemList.model_validate(found)
        assert typed.data[1].type == "function_call"
        first = await bench.responses.input_items(ME, "resp_1", {})
        assert first is not None
        assert first["data"] == found["data"][:1]

    run(work)


def test_input_items_come_in_pages() -> None:
    async def work(bench: Bench) -> None:
        items = [user(f"n{number}") for number in range(25)]
        await bench.responses.keep(ME, {"input": items}, answered("resp_1"))
        newest = await bench.responses.input_items(ME, "resp_1", {})
        assert newest is not None
        assert [item["content"][0]["text"] for item in newest["data"]] == [f"n{n}" for n in range(24, 4, -1)]
        assert newest["has_more"]
        rest = await bench.responses.input_items(ME, "resp_1", {"after": newest["last_id"], "limit": "5"})
        assert rest is not None
        assert [item["content"][0]["text"] for item in rest["data"]] == [f"n{n}" for n in range(4, -1, -1)]
        assert not rest["has_more"]
        end = await bench.responses.input_items(ME, "resp_1", {"after": rest["last_id"]})
        assert end is not None
        assert (end["data"], end["first_id"]) == ([], None)
        for query, param in (
            ({"limit": "0"}, "limit"),
            ({"limit": "101"}, "limit"),
            ({"limit": "x"}, "limit"),
            ({"limit": "²"}, "limit"),
            ({"order": "up"}, "order"),
        ):
            status, error = await refused(bench.responses.input_items(ME, "resp_1", query))
            assert (status, error["param"]) == (400, param)
        status, _ = await refused(bench.responses.input_items(ME, "resp_1", {"after": "msg_x"}))
        assert status == 404

    run(work)


# --- the end of a stream ----------------------------------------------------------------------------


def test_the_encoder_of_a_stream_has_the_response_that_its_last_event_holds() -> None:
    def chunk(delta: Body, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: %b\n\n" % json.dumps({"id": "chatcmpl-1", "model": "m", "choices": [choice]}).encode()

    named = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    pieces = (
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "hello"}),
        chunk({"tool_calls": [named]}),
        chunk({}, "tool_calls"),
        b"data: [DONE]\n\n",
    )
    translator = StreamTranslator(source="openai_chat", target="openai_responses")
    written = b"".join(map(translator.feed, pieces)) + translator.finish()
    events = [json.loads(line[6:]) for line in written.split(b"\n") if line.startswith(b"data: {")]
    encoder: Any = translator._encoder
    assert encoder.final_body == events[-1]["response"]
    assert [item["id"] for item in encoder.final_body["output"]] == [
        event["item"]["id"] for event in events if event["type"] == "response.output_item.done"
    ]
    assert codec("openai_responses").stream.Encoder().final_body is None  # type: ignore[attr-defined]
