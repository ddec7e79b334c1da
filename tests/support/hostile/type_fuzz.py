"""The fuzz of types: changed documents for the library and for a gateway process, and what is found.

    run = fuzz_library(seed=1, count=2000)
    run.findings, run.tried, run.bytes

The same seed and count make the same documents. `scripts/fuzz_types.py` runs it for as long as its options say.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.hostile.fuzz_bodies import ERRORS, PROTOCOLS, TARGETS, replies, requests
from support.hostile.fuzz_gateway import (
    LOOKED_AT,
    WORDS,
    FuzzedGateway,
    FuzzedRequest,
    gateway_between,
    reply_case,
    request_case,
    stream_answer,
    whole_answer,
    with_model,
    wrong,
)
from support.hostile.fuzz_library import areas, finding, mark, stream_documents, stream_text
from support.hostile.type_mutations import CHANGES, Slot, changed, distinct_slots, json_text, path_of, random_mutation
from toolglot import profiles

STATUSES = (100, 101, 103, 200, 204, 302, 400, 401, 403, 404, 409, 413, 422, 429, 502, 503, 504, 529, 999)
"""Of an upstream's errors. A 500 is left out, so that every one that a client sees is the gateway's."""
MAX_FINDINGS = 20
"""Different findings that are kept of one run."""


class Run:
    """What was tried, and what was found."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.tried = 0
        self.bytes = 0
        self.findings: dict[str, str] = {}
        """By what makes two of them the same, how each is made again."""
        self.sweeps: list[Sweep] = []
        """Where single values are changed one by one."""

    @property
    def covered(self) -> tuple[int, int]:
        """How many changes of single values were tried, and how many there are."""
        return sum(sweep.covered for sweep in self.sweeps), sum(sweep.total for sweep in self.sweeps)

    def note(self, key: str, how: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.setdefault(key, how)


def _goes_on(count: int | None, seconds: float | None) -> Callable[[int], bool]:
    end = None if seconds is None else time.monotonic() + seconds
    return lambda tried: (count is None or tried < count) and (end is None or time.monotonic() < end)


def _drawing(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret hangs on it


# --- the library ------------------------------------------------------------------------------------


def fuzz_library(seed: int, *, count: int | None = None, seconds: float | None = None, only: str = "") -> Run:
    """Every entry point by turns, with so many documents or for so long."""
    run, draw, goes_on = Run(seed), _drawing(seed), _goes_on(count, seconds)
    chosen = [area for area in areas() if only in area.name]
    run.sweeps = [Sweep(area.documents, _drawing(f"{seed} {area.name} one by one")) for area in chosen]
    sources = [
        _documents(area.documents, sweep, _drawing(f"{seed} {area.name}"))
        for area, sweep in zip(chosen, run.sweeps, strict=True)
    ]
    for area, source in itertools.cycle(list(zip(chosen, sources, strict=True))):
        if not goes_on(run.tried):
            return run
        document, what = next(source)
        number = draw.randrange(1 << 20)
        run.tried += 1
        run.bytes += len(json_text(document))
        error = finding(area, document, number)
        if error is not None:
            run.note(mark(error), f"{area.name}, {what}, number {number}: {error!r:.300}")
    return run


class Sweep:
    """Documents with one value changed: every value in its turn, and every change of it, without end.

    `share`: several go through the same documents, and this is one of so many; each has its own part of the changes.
    """

    def __init__(self, documents: list[Any], draw: random.Random, share: tuple[int, int] = (0, 1)) -> None:
        self._slots: list[tuple[Any, Slot]] = distinct_slots(documents)
        which, of = share
        changes = [(slot, change) for slot in range(len(self._slots)) for change in range(len(CHANGES))]
        self._changes = changes[which::of]
        self._draw = draw
        self._done = 0

    @property
    def total(self) -> int:
        return len(self._changes)

    @property
    def covered(self) -> int:
        return min(self._done, self.total)

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        while True:
            self._draw.shuffle(self._changes)
            for slot_index, number in self._changes:
                (body, slot), change = self._slots[slot_index], CHANGES[number]
                self._done += 1
                yield changed(body, slot, change), f"{path_of(slot)}: {change[0]}"


def _documents(documents: list[Any], sweep: Sweep, draw: random.Random) -> Iterator[tuple[Any, str]]:
    """Changed documents without end: by turns one value changed, each in its turn, and some values at random."""
    for document in sweep:
        yield document
        yield random_mutation(draw.choice(documents), draw, documents)


# --- the gateway ------------------------------------------------------------------------------------


def fuzz_gateway(
    folder: Path, seed: int, *, count: int | None = None, seconds: float | None = None, clients: int = 1
) -> Run:
    """Requests and upstream answers by turns, over HTTP; also whether the gateway answers afterwards, and its log."""
    run, goes_on, lock, numbers = Run(seed), _goes_on(count, seconds), threading.Lock(), itertools.count(1)
    with gateway_between(folder) as gateway:

        def send_requests(draw: random.Random, makers: list[Iterator[tuple[FuzzedRequest, str, bool]]]) -> None:
            for maker in itertools.cycle(makers):
                if not goes_on(run.tried):
                    return
                request, what, from_upstream = next(maker)
                got = gateway.ask(*request)
                fault = wrong(got, from_upstream=from_upstream)
                with lock:
                    run.tried += 1
                    if fault is not None:
                        run.note(
                            fault[:60], f"{request.method} {request.path} {what}: {fault}; body {request.data!r:.400}"
                        )
            del draw

        threads = []
        for client in range(clients):
            draw = _drawing(f"{seed} {client}")
            sweeps = {
                protocol: Sweep(requests(protocol), _drawing(f"{seed} {client} {protocol}"), (client, clients))
                for protocol in PROTOCOLS
            }
            run.sweeps += sweeps.values()
            changed_requests, answers = _requests(draw, sweeps), _answers(draw, gateway, numbers)
            answers_and_looks = itertools.chain.from_iterable(
                zip(_answers(draw, gateway, numbers), _looks(draw), strict=False)
            )
            makers = [changed_requests, answers, changed_requests, answers_and_looks]
            threads.append(threading.Thread(target=send_requests, args=(draw, makers)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.bytes = gateway.bytes_sent
        health = gateway.ask("GET", "/health")
        if health.status != 200:
            run.note("health", f"/health answers {health.status} afterwards: {health.data!r}")
        for line in gateway.complaints():
            run.note(line[:200], "in the log: " + "".join(gateway.log)[-3000:])
    return run


def _requests(draw: random.Random, sweeps: dict[str, Sweep]) -> Iterator[tuple[FuzzedRequest, str, bool]]:
    """Changed requests, at every address of every protocol and for every target."""
    sources = {protocol: _documents(requests(protocol), sweep, draw) for protocol, sweep in sweeps.items()}
    while True:
        for protocol in PROTOCOLS:
            target = draw.choice(TARGETS)
            document, what = next(sources[protocol])
            data = json_text(_for_model(document, f"{target}/m", what))
            yield request_case(protocol, data, target, draw.randrange(100)), what, False


def _for_model(document: Any, model: str, what: str) -> Any:
    return document if "$.model" in what else with_model(document, model)


def _answers(
    draw: random.Random, gateway: FuzzedGateway, numbers: Iterator[int]
) -> Iterator[tuple[FuzzedRequest, str, bool]]:
    """Changed answers, streams and errors of every upstream, to clients of every protocol."""
    streamed = {protocol: stream_documents(protocol) for protocol in PROTOCOLS}
    while True:
        for client in PROTOCOLS:
            target, number, streams = draw.choice(TARGETS), next(numbers), draw.random() < 0.5
            protocol = profiles.get(target).protocol
            kind = draw.choice(("error", "body", "body", "body"))
            documents = ERRORS if kind == "error" else streamed[protocol] if streams else replies(protocol)
            document, what = random_mutation(draw.choice(documents), draw, documents)
            if kind == "error":
                answer = whole_answer(json_text(document), draw.choice(STATUSES))
            elif streams:
                answer = stream_answer(protocol, stream_text(protocol, document))
            else:
                answer = whole_answer(json_text(document))
            gateway.answers[number] = answer
            gateway.bytes_sent += len(answer)
            yield reply_case(client, target, number, draw.randrange(100), streams=streams), f"{target}: {what}", True
            gateway.answers.pop(number, None)


def _looks(draw: random.Random) -> Iterator[tuple[FuzzedRequest, str, bool]]:
    """Everything that can be looked at, with odd names and values."""
    while True:
        path = draw.choice(LOOKED_AT)
        while "WORD" in path:
            path = path.replace("WORD", draw.choice(WORDS), 1)
        yield FuzzedRequest(draw.choice(("GET", "GET", "GET", "DELETE", "POST")), path, None), "", False
