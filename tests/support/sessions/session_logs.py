"""Logs of sessions on a store that can be made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from support.store.faulty_store import HookedStore
from toolglot import (
    Issuer,
    Text,
    ToolCall,
    Turn,
)
from toolglot.runtime.log.session_log import SessionLog
from toolglot.store import SqliteStore, Store

Test = Callable[[HookedStore], Coroutine[Any, Any, None]]


def on_a_store(test: Test) -> None:
    async def whole() -> None:
        store = HookedStore(SqliteStore(":memory:"))
        try:
            await test(store)
        finally:
            await store.close()

    asyncio.run(whole())


@asynccontextmanager
async def session(store: Store, **options: Any) -> AsyncIterator[SessionLog]:
    log = await SessionLog.create(store, **options)
    try:
        yield log
    finally:
        await log.close()


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def calling(*names: str) -> Turn:
    blocks = tuple(ToolCall(f"call_{n}", name, {"n": n}) for n, name in enumerate(names))
    return Turn("assistant", blocks, issuer=Issuer("openai"))


class Failing:
    """A hook that fails at one moment, once."""

    def __init__(self, moment: str, error: BaseException) -> None:
        self.moment, self.error, self.is_armed = moment, error, True

    async def __call__(self, moment: str) -> None:
        if self.is_armed and moment == self.moment:
            self.is_armed = False
            raise self.error
