"""A gateway that is killed again and again while clients of two keys use it, and a checker of what was true then.

    run = KilledGateway(folder, seed=1); run.until(kills=4); assert find_violations(run.seen()) == []

Each request has a word of its own, its marker: the upstream repeats it, and the client expects it. What the gateway has
acknowledged by a whole answer, and stored, must be there after the kill, for its own key and no other.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.gateway.gateway_process import Process, process
from support.gateway.http_client import Got, ask
from support.hostile.hostile_upstream import GOOD, Way, hostile, once, upstream_at, whole
from support.waiting import wait_until
from toolglot.simulator import serve

KEYS = {"CLIENT_A": "key-of-client-a-0123456789", "CLIENT_B": "key-of-client-b-0123456789"}
SETTINGS = 'client_keys = ["env:CLIENT_A", "env:CLIENT_B"]'
PATH = "/v1/responses"
MOST_ANSWERS = 12
"""Of one life of the gateway."""
LONGEST_DELAY = 0.03
"""Seconds from the last of them to the kill: it hits some request at some moment."""


class Acknowledged(NamedTuple):
    """A request whose answer came whole."""

    key: str
    """The name of the client's key."""
    marker: str
    text: str
    """The text of the answer."""
    id: str


class Seen(NamedTuple):
    """Everything that was seen from outside."""

    requested: frozenset[str]
    """The markers of all requests."""
    acknowledged: tuple[Acknowledged, ...]
    upstream: tuple[str, ...]
    """The markers that reached the upstream, as often as they did."""
    read_back: Mapping[tuple[str, str], str | None]
    """By the name of a key and an id: what it reads there after the last kill; None: nothing."""


def find_violations(seen: Seen) -> list[str]:
    """What must not be, in words."""
    found: list[str] = []
    for each in seen.acknowledged:
        if each.text != each.marker:
            found.append(f"cross-talk: {each.marker} was answered with {each.text}")
        for (key, id), text in seen.read_back.items():
            if id != each.id:
                continue
            if key == each.key and text is None:
                found.append(f"lost: {each.marker} was acknowledged, and is not there")
            elif key == each.key and text != each.marker:
                found.append(f"changed: {each.marker} is stored as {text}")
            elif key != each.key and text is not None:
                found.append(f"cross-talk: {key} reads {each.marker}")
        if (each.key, each.id) not in seen.read_back:
            found.append(f"unchecked: {each.marker}")
    twice = [marker for marker, count in Counter(seen.upstream).items() if count > 1]
    found += [f"executed twice: {marker}" for marker in twice]
    found += [f"invented: {marker}" for marker in seen.upstream if marker not in seen.requested]
    ids = Counter(each.id for each in seen.acknowledged)
    return found + [f"the same id twice: {id}" for id, count in ids.items() if count > 1]


class _Echo(dict[str, Way]):
    """An upstream that says the name of the requested model."""

    def __missing__(self, model: str) -> Way:
        message = {"role": "assistant", "content": model}
        body = {**GOOD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return once(whole(json.dumps(body).encode()))


class KilledGateway:
    """Lives of a gateway on one store."""

    def __init__(self, folder: Path, *, seed: int, clients: int = 2) -> None:
        self._folder = folder
        self._draw = random.Random(seed)  # noqa: S311 - a draw that can be repeated
        self._clients = clients
        self._numbers = itertools.count()
        self._requested: list[str] = []
        self._acknowledged: list[Acknowledged] = []
        self._upstream: tuple[str, ...] = ()
        self._read_back: dict[tuple[str, str], str | None] = {}
        self.kills = 0

    def until(self, kills: int) -> None:
        """Live and be killed so often, and look at the end at everything that was acknowledged."""
        with hostile(_Echo()) as provider, serve({"rules": [{"reply": {"text": "-"}}]}) as simulated:
            settings = f"{SETTINGS}\n{upstream_at(provider)}"
            environ = {**KEYS, "HOSTILE_KEY": "a-key-of-the-gateway"}
            for _ in range(kills):
                with process(self._folder, simulated, settings=settings, environ=environ) as running:
                    self._live(running)
            with process(self._folder, simulated, settings=settings, environ=environ) as running:
                self._read_everything(running)
            self._upstream = tuple(provider.models)

    def seen(self) -> Seen:
        return Seen(frozenset(self._requested), tuple(self._acknowledged), self._upstream, self._read_back)

    def _live(self, running: Process) -> None:
        goal = len(self._acknowledged) + self._draw.randint(1, MOST_ANSWERS)
        loops = [
            threading.Thread(target=self._use, args=(running, name)) for name in KEYS for _ in range(self._clients)
        ]
        for loop in loops:
            loop.start()
        wait_until(lambda: len(self._acknowledged) >= goal)
        threading.Event().wait(self._draw.uniform(0, LONGEST_DELAY))
        running.popen.kill()
        running.ended()
        self.kills += 1
        for loop in loops:
            loop.join()

    def _use(self, running: Process, name: str) -> None:
        """Ask until the gateway is no more. Nothing is sent twice."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while running.popen.poll() is None:
                marker = f"mk-{name}-{next(self._numbers)}"
                self._requested.append(marker)
                got = ask(running.url, PATH, {"model": f"h/{marker}", "input": "Who?"}, key=KEYS[name])
                assert got.status == 200, got
                self._acknowledged.append(Acknowledged(name, marker, _text_of(got), got.body["id"]))

    def _read_everything(self, running: Process) -> None:
        for each in self._acknowledged:
            for name, key in KEYS.items():
                got = ask(running.url, f"{PATH}/{each.id}", key=key)
                self._read_back[name, each.id] = _text_of(got) if got.status == 200 else None


def _text_of(got: Got) -> str:
    items: Sequence[Any] = got.body["output"]
    return "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
