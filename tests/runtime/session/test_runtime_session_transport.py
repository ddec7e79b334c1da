"""What providers do that the simulator does not: no connection, no end, too much, unreadable words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from toolglot import InputError, Opaque, Text, ToolSpec, Turn
from toolglot.conversation import Conversation, Failure, Issuer
from toolglot.history.history import History
from toolglot.profiles import get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.runtime.session.events import TextReceived
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.model_call import MAX_REPLY_BYTES
from toolglot.runtime.session.models import UpstreamModels
from toolglot.runtime.session.run import UsageTotal
from toolglot.runtime.session.session import Session
from toolglot.simulator import upstreams
from toolglot.translate.requests import request_for
from toolglot.upstream import HttpRequest, HttpResponse, TimeLimits, Upstream
from toolglot.upstream.failures import failure_of
from toolglot.upstream.http.transport import MAX_TRAILING
from toolglot.upstream.protocol_choice import request_encrypted_reasoning
from toolglot.upstream.retry import wait_before

LOST = ProviderError(Failure("server", "the connection was lost"))


def chunk(text: str = "", finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


WHOLE = (chunk("Fine."), chunk("", "stop"), b"data: [DONE]\n\n")


class ScriptedResponse:
    """An answer as it was written down."""

    def __init__(self, pieces: Iterable[bytes | Exception], status: int = 200) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": "text/event-stream"}
        self._pieces = pieces
        self.is_closed = False

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            await asyncio.sleep(0)
            yield piece

    async def whole(self, most: int) -> bytes:
        return b"".join([piece async for piece in self.pieces()])[:most]

    async def close(self) -> None:
        self.is_closed = True


class Provider:
    """Gives answers one after the other."""

    def __init__(self, *answers: ScriptedResponse | Exception) -> None:
        self._answers = list(answers)
        self.bodies: list[bytes] = []

    async def send(self, ask: HttpRequest, limits: TimeLimits) -> HttpResponse:
        assert limits.connect > 0
        self.bodies.append(ask.body)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """There is nothing to close."""


def session(provider: Provider, **changes: Any) -> Session:
    upstream = Upstream(name="box", target="openai", url="http://box/v1", transport=provider)
    settings: dict[str, Any] = {"limits": SessionLimits(retries=0), "models": UpstreamModels({"box": upstream})}
    return Session(model="box/m", **{**settings, **changes})


def run_once(provider: Provider, **settings: Any) -> tuple[Any, Session]:
    async def steps() -> tuple[Any, Session]:
        async with asyncio.timeout(120), session(provider, **settings) as opened:
            return await opened.run("Hello"), opened

    return asyncio.run(steps())


def test_a_provider_that_cannot_be_reached_is_a_failure() -> None:
    answer, opened = run_once(Provider(LOST))
    assert (answer.stop, answer.failure) == ("failed", LOST.failure)
    assert opened.history.in_flight is None


def test_an_answer_that_breaks_off_is_requested_again() -> None:
    first = ScriptedResponse([chunk("Fi"), LOST])
    answer, opened = run_once(Provider(first, ScriptedResponse(WHOLE)), limits=SessionLimits(retries=1))
    assert (answer.stop, answer.text) == ("stop", "Fine.")
    assert first.is_closed
    assert [turn.text for turn in opened.history.turns] == ["Hello", "Fine."]


@pytest.mark.parametrize("after", [[b": more\n\n" * MAX_TRAILING] * 3, [LOST], []])
def test_what_follows_the_end_of_an_answer_does_not_matter(after: list[bytes | Exception]) -> None:
    answer, _ = run_once(Provider(ScriptedResponse([*WHOLE, *after])))
    assert (answer.stop, answer.text) == ("stop", "Fine.")


def test_an_answer_without_an_end_is_bounded() -> None:
    piece = b": " + b"x" * 1_000_000 + b"\n\n"
    endless = ScriptedResponse(piece for _ in range(MAX_REPLY_BYTES // len(piece) + 10))
    answer, _ = run_once(Provider(endless))
    assert answer.stop == "failed"
    assert "is longer than" in answer.failure.message
    assert endless.is_closed


def test_the_tokens_of_an_answer_without_usage_are_estimated() -> None:
    answer, opened = run_once(Provider(ScriptedResponse(WHOLE)))
    assert answer.cost is None
    assert (opened.usage.input_tokens, opened.usage.output_tokens) == (2, 2)
    assert ["estimated" in entry.reason for entry in opened.report.entries] == [True]


def test_an_unreadable_error_is_reported_by_its_status() -> None:
    answer, _ = run_once(Provider(ScriptedResponse([b"<html>"], 502)))
    assert answer.failure is not None
    assert answer.failure.status == 502
    strange, _ = run_once(Provider(ScriptedResponse([b"moved"], 304)))
    assert strange.failure.status == 304


def test_what_a_filter_refused_is_not_taken_to_another_provider() -> None:
    error = {
        "error": {"message": "The response was filtered", "code": "content_filter", "type": "invalid_request_error"}
    }
    provider = Provider(ScriptedResponse([msgspec.json.encode(error)], 400))
    answer, _ = run_once(provider, fallback=["box/other"])
    assert answer.failure.kind == "content_filter"
    assert len(provider.bodies) == 1


def test_what_cannot_be_written_for_a_provider_is_a_failure_and_calls_no_model() -> None:
    provider = Provider()
    search = ToolSpec("web_search", type="web_search_20250305", issuer=Issuer("anthropic"))
    answer, _ = run_once(provider, tools=[search])
    assert answer.stop == "failed"
    assert answer.failure.kind == "bad_request"
    assert provider.bodies == []


def test_a_refusal_of_signatures_where_there_are_none_is_not_tried_again() -> None:
    error = {"error": {"message": "Invalid signature in thinking block", "type": "invalid_request_error"}}
    provider = Provider(ScriptedResponse([msgspec.json.encode(error)], 400))
    answer, _ = run_once(provider)
    assert answer.stop == "failed"
    assert "Invalid signature" in answer.failure.message
    assert len(provider.bodies) == 1


async def test_a_listener_that_leaves_while_the_model_waits_for_it_ends_the_answer() -> None:
    answer = ScriptedResponse([*(chunk("word ") for _ in range(5_000)), *WHOLE])
    async with asyncio.timeout(120), session(Provider(answer, ScriptedResponse(WHOLE))) as opened:
        events = opened.stream("Talk.")
        async for event in events:
            if isinstance(event, TextReceived):
                for _ in range(4_000):
                    await asyncio.sleep(0)
                break
        await events.aclose()  # type: ignore[attr-defined]
        assert answer.is_closed
        assert (await opened.run("Hello")).text == "Fine."


def test_opaque_blocks_can_be_sent_and_go_to_their_protocol() -> None:
    provider = Provider(ScriptedResponse(WHOLE))

    async def steps() -> None:
        async with session(provider) as opened:
            block = Opaque("openai_chat", {"type": "text", "text": "as it is"}, "text")
            await opened.run([Text("Hello"), block])

    asyncio.run(steps())
    assert b"as it is" in provider.bodies[0]


def test_an_answer_that_is_no_error_at_all_says_at_least_its_status() -> None:
    async def steps() -> Failure:
        out = request_for(Conversation((Turn("user", (Text("Hello"),)),)), target="openai", model="gpt-4.1")
        return await failure_of(ScriptedResponse([b"{}"], 299), out)

    assert asyncio.run(steps()) == Failure("server", "the provider responded with status 299", 299)


# --- parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "tried", "wait"),
    [
        (Failure("bad_request"), 1, None),
        (Failure("rate_limit", retry_after=3.0), 1, 3.0),
        (Failure("rate_limit", retry_after=31.0), 1, None),
        (Failure("overloaded"), 1, 0.375),
        (Failure("overloaded"), 3, 1.5),
        (Failure("overloaded"), 99, None),
    ],
)
def test_how_long_is_waited_before_another_try(failure: Failure, tried: int, wait: float | None) -> None:
    assert wait_before(failure, tried, 30.0, 0.5) == wait


def test_reasoning_is_requested_in_a_form_that_can_be_sent_back_where_the_model_reasons() -> None:
    plain = Conversation()
    assert request_encrypted_reasoning(plain, get("openai", "gpt-5.5")) is plain
    assert request_encrypted_reasoning(plain, get("openai_responses", "gpt-4.1")) is plain
    asking = request_encrypted_reasoning(plain, get("openai_responses", "gpt-5"))
    assert asking.extra == {"openai_responses": {"store": False, "include": ["reasoning.encrypted_content"]}}


def test_a_sum_of_costs_is_not_known_where_a_part_is_not() -> None:
    tally = UsageTotal()
    tally.add(None, Decimal(1))
    assert (tally.cost, tally.tokens) == (Decimal(1), 0)
    tally.add(None, None)
    assert (tally.cost, tally.known_cost) == (None, Decimal(1))


def test_a_request_for_another_account_leaves_out_what_only_the_first_can_read() -> None:
    history = History(provider="anthropic")
    history.append(Turn("user", (Text("Hello"),)))
    with pytest.raises(InputError, match="conversation"):
        request_for("text", target="anthropic", destination=Issuer("anthropic"))  # type: ignore[arg-type]
    out = request_for(history, target="anthropic", model="claude-opus-5", destination=Issuer("anthropic", account="a"))
    assert out.body["messages"]


async def test_a_stand_in_costs_nothing_and_has_no_need_of_a_price() -> None:
    limits = SessionLimits(max_cost=Decimal("0.000001"))
    models = UpstreamModels(upstreams())
    for name in ("anthropic/claude-opus-5", "ollama/nobody-knows-its-price"):
        async with Session(model=name, models=models, limits=limits) as session:
            assert (await session.run("Hello")).stop == "stop"
            assert session.usage.input_tokens
            assert session.cost == 0


async def test_a_key_that_a_provider_repeats_is_not_shown() -> None:
    key = "Zq7-hunter2-Secret.Value+42/xyz"

    class Echo:
        async def send(self, ask: HttpRequest, limits: TimeLimits) -> HttpResponse:  # noqa: ARG002
            raise ProviderError(Failure("auth", f"{ask.headers['authorization']} is no good", code=key))

        async def close(self) -> None: ...

    box = Upstream(name="box", target="openai_compatible", url="http://box/v1", transport=Echo(), key=key)
    async with Session(model="box/m", models=UpstreamModels({"box": box})) as session:
        answer = await session.run("Hello")
        assert answer.stop == "failed"
        assert answer.failure is not None
        assert answer.failure.message == "Bearer *** is no good"
        assert key not in repr(answer) + str(session.report)
