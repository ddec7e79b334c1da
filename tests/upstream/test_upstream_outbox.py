"""What is sent in one turn of an event loop: together, in its order, and to no connection that has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import cast

from toolglot.upstream.http.outbox import Outbox, outbox_of


class Line:
    """A transport that notes what is written to it."""

    def __init__(self, name: str, noted: list[str], *, is_gone: bool = False) -> None:
        self.name = name
        self.noted = noted
        self.is_gone = is_gone

    def is_closing(self) -> bool:
        return self.is_gone

    def write(self, data: bytes) -> None:
        self.noted.append(f"{self.name}{data.decode()}")


def in_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        await test()

    return wraps(test)(lambda: asyncio.run(run()))


def send(box: Outbox, line: Line, text: str) -> None:
    box.send(cast("asyncio.WriteTransport", line), text.encode())


@in_a_loop
async def test_it_is_sent_when_the_turn_ends_in_its_order() -> None:
    box, noted = outbox_of(asyncio.get_running_loop()), list[str]()
    one, other = Line("a", noted), Line("b", noted)
    send(box, one, "1")
    send(box, other, "2")
    send(box, one, "3")
    assert noted == []
    await asyncio.sleep(0)
    assert noted == ["a1", "b2", "a3"]
    send(box, one, "4")
    await asyncio.sleep(0)
    assert noted[3:] == ["a4"]


@in_a_loop
async def test_who_writes_past_it_can_have_everything_sent_before() -> None:
    box, noted = outbox_of(asyncio.get_running_loop()), list[str]()
    send(box, Line("a", noted), "1")
    box.flush()
    assert noted == ["a1"]
    box.flush()
    await asyncio.sleep(0)
    assert noted == ["a1"]


@in_a_loop
async def test_who_has_gone_gets_nothing() -> None:
    box, noted = outbox_of(asyncio.get_running_loop()), list[str]()
    send(box, Line("a", noted, is_gone=True), "1")
    send(box, Line("b", noted), "2")
    await asyncio.sleep(0)
    assert noted == ["b2"]


def test_each_event_loop_has_its_own() -> None:
    async def found() -> Outbox:
        loop = asyncio.get_running_loop()
        assert outbox_of(loop) is outbox_of(loop)
        return outbox_of(loop)

    assert asyncio.run(found()) is not asyncio.run(found())
