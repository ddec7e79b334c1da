"""The traffic of a soak: clients that hold conversations with tools, and judge every answer.

A client asks until it has the answer that its plan foretells, and only then goes on; so a conversation ends only if
nothing that came before was lost. Laws: an answer of status 200 is the right one, or was spoilt or broken on order; an
error has a cause that was made; every choice follows from the seed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from soak_clients import TALKS, FailedError, IllegalError, Said, Talk, UnendedError, need
from soak_plans import BEFORE, HARMLESS, MARKER, MIDDLE, SPOILT, Plan, tool_names
from soak_processes import KEYS, Place

CLIENT_SECONDS: Final = 45.0
MOST_TRIES: Final = 60
"""While nothing was done to anybody."""
MOST_VIOLATIONS: Final = 200

DIRECT: Final = {
    "anthropic/claude-sonnet-4-5": True,
    "anthropic/claude-opus-5-5": True,
    "gemini/gemini-3-pro-preview": True,
    "openai_responses/gpt-5.5": True,
    "deepseek/deepseek-reasoner": True,
    "kimi/kimi-k2-thinking": True,
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0": True,
    "openai_chat/gpt-4.1": False,
    "mistral/mistral-large-latest": False,
    "cohere/command-a-03-2025": False,
    "ollama/llama3.1": False,
    "vllm/some-model": False,
}
"""Models by name, and whether they think."""
NAMED: Final = {"chain": False, "spread": False, "chain-thinking": True, "spread-thinking": True, "alias": True}
"""Entries of [models]."""
PAIRS: Final = tuple(itertools.product(TALKS, (*DIRECT, *NAMED)))


class Violation(NamedTuple):
    kind: str
    told: str
    where: str
    """Who asked whom, how, and the marker."""


class Tally:
    """What was counted, measured and found."""

    def __init__(self, seed: str, folder: Path) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, list[float]] = {"whole": [], "stream": [], "first byte of a stream": []}
        self.violations: list[Violation] = []
        self._folder = folder
        self._counted = asyncio.Condition()

    def found(self, kind: str, told: str, where: str = "", **evidence: Any) -> None:
        """Something is wrong; what it was is kept in a file."""
        if len(self.violations) < MOST_VIOLATIONS:
            path = self._folder / f"violation-{len(self.violations)}.json"
            fields = {"kind": kind, "told": told, "where": where, "seed": self.seed, **evidence}
            path.write_text(json.dumps(fields, indent=1, default=_shown))
        self.violations.append(Violation(kind, told[:600], where))

    async def count(self, fate: str) -> None:
        async with self._counted:
            self.counts[fate] += 1
            self._counted.notify_all()

    async def until_right(self, answers: int) -> None:
        """Wait for so many right answers in all."""
        async with self._counted:
            await self._counted.wait_for(lambda: self.counts["right"] >= answers)


def _shown(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else repr(value)


class Got(NamedTuple):
    """What came of one request."""

    status: int
    """0: no answer."""
    data: bytes
    headers: dict[str, str]
    seconds: float
    first: float
    fate: str = ""
    """left: the client went; lost: nobody answered; cut: the answer broke off; late: it took too long."""


class Traffic:
    """All clients."""

    def __init__(self, place: Place, tally: Tally, *, loops: int, seed: str, stalls: bool) -> None:
        self.place = place
        self.tally = tally
        self.seed = seed
        self.stalls = stalls
        self.gate = asyncio.Event()
        """Open: clients ask."""
        self.is_over = False
        self.busy = 0
        pairs = list(PAIRS)
        random.Random(f"{seed}/pairs").shuffle(pairs)  # noqa: S311 - no secret hangs on it
        self._pairs = pairs
        self._loops = loops

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._loops):
                group.create_task(self._loop(number))

    async def quiet(self) -> None:
        """Let everybody finish what they ask, and ask no more."""
        self.gate.clear()
        while self.busy:
            await asyncio.sleep(0.05)

    async def _loop(self, number: int) -> None:
        for conversation in itertools.count():
            client, model = self._pairs[(number + conversation * self._loops) % len(self._pairs)]
            async with aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=CLIENT_SECONDS * self.place.patience)
            ) as session:
                one = Conversation(self, session, client, model, f"{self.seed}-{number}-{conversation}")
                try:
                    await one.run()
                except OverError:
                    return
                except GivenUpError:
                    self.tally.counts["conversations given up"] += 1
                else:
                    self.tally.counts["conversations"] += 1
                    self.tally.pairs[client, model] += 1


class OverError(Exception):
    """The soak is over."""


class GivenUpError(Exception):
    """A conversation cannot go on."""


class Conversation:
    """One conversation of one client with one model."""

    def __init__(
        self,
        traffic: Traffic,
        session: aiohttp.ClientSession,
        client: str,
        model: str,
        name: str,
    ) -> None:
        self._traffic = traffic
        self._tally = traffic.tally
        self._place = traffic.place
        self._draw = draw = random.Random(name)  # noqa: S311 - no secret hangs on it
        self._chance = random.Random(f"{name}/tries")  # noqa: S311 - how many tries there are hangs on the moment
        self._session = session
        self._client = client
        self._model = model
        self._name = name
        self._key, self._other = draw.sample(sorted(KEYS.values()), 2)
        # What the provider has stored itself is left to it as the client sent it, names of tools too.
        self._tools = tool_names(draw.random() < 0.3 and client != "responses")
        thinks = {**DIRECT, **NAMED}[model]
        is_big = draw.random() < 0.12
        self._filler = draw.choice((20_000, 60_000)) if is_big else draw.choice((0, 0, 200))
        system = draw.choice(("", "Be short.")) if not is_big else "Be long. " * 4_000
        self._talk: Talk = TALKS[client](model, self._tools, thinks=thinks, system=system)
        self._must_return = thinks and model in DIRECT
        self._ids: set[str] = set()
        self._results = 0

    async def run(self) -> None:
        turns = self._draw.choice((4, 10, 10, 10, 25)) if not self._filler > 200 else 6
        for turn in range(1, turns + 1):
            plan = self._plan(turn)
            self._talk.user(plan.words())
            for step in range(len(plan.r)):
                said = await self._answered(plan, step)
                self._talk.heard(said)
                if said.calls:
                    size = self._filler * (5 if self._draw.random() < 0.1 else 1)
                    told = [(call, plan.result(step, place, size)) for place, call in enumerate(said.calls)]
                    self._talk.results(told)
                    self._results += len(told)
            await self._look_around()

    def _plan(self, turn: int) -> Plan:
        draw = self._draw
        rounds = (*draw.choice(((1,), (1,), (2,), (3,), (1, 2), (2, 1, 1), ())), 0)
        faults = tuple(tuple(self._faults()) for _ in rounds)
        return Plan(f"mk-{self._name}-{turn}", rounds, faults, self._results, self._must_return)

    def _faults(self) -> list[str]:
        draw = self._draw
        if draw.random() < 0.75:
            return []
        kinds = draw.choices((BEFORE, MIDDLE, SPOILT, HARMLESS), (4, 4, 2, 2), k=draw.choice((1, 1, 1, 2)))
        return [_drawn(draw, kind, stalls=self._traffic.stalls) for kind in kinds]

    # --- one answer ---------------------------------------------------------------------------------

    async def _answered(self, plan: Plan, step: int) -> Said:
        """The right answer, however often it takes to ask."""
        stream = self._draw.random() < 0.6
        tries = 0
        while tries < MOST_TRIES:
            begun = time.monotonic()
            leave = self._chance.choice((0, 1, 300, 1500)) if self._chance.random() < 0.06 else None
            said = await self._asked(plan, step, stream=stream, leave=leave)
            if said is not None:
                return said
            await asyncio.sleep(self._chance.uniform(0.05, 0.4))
            tries += not self._place.disturbances.between(begun, time.monotonic())
        self._found("starved", f"no answer after {MOST_TRIES} tries while everybody was there", plan, stream)
        raise GivenUpError

    async def _asked(self, plan: Plan, step: int, *, stream: bool, leave: int | None) -> Said | None:
        """One try; None: it is to be tried again."""
        path, body = self._talk.request(stream=stream)
        begun = time.monotonic()
        got = await self._send("POST", path, body, leave=leave)
        judge = Judge(self._talk, plan, step, self._tools, self._ids, stream=stream)
        spans = self._place.disturbances.between(begun, time.monotonic())
        fate, wrong, said = judge.judge(got, [(span.who, span.how) for span in spans])
        await self._tally.count(fate)
        if wrong:
            answer = {"status": got.status, "headers": got.headers, "data": got.data[:200_000], "fate": got.fate}
            evidence = {"path": path, "body": body, "answer": answer, "spans": spans, "step": step}
            self._found(fate, wrong, plan, stream, **evidence)
            if fate == "refused":
                raise GivenUpError
        if said is not None:
            self._ids.update(call.id for call in said.calls)
            self._tally.counts["of them by another of a chain"] += "asked instead" in got.headers["x-toolglot-report"]
            self._measure(got, plan, step, stream=stream)
        return said

    def _measure(self, got: Got, plan: Plan, step: int, *, stream: bool) -> None:
        if not plan.f[step]:
            self._tally.seconds["stream" if stream else "whole"].append(got.seconds)
            if stream:
                self._tally.seconds["first byte of a stream"].append(got.first)

    def _found(self, kind: str, told: str, plan: Plan, stream: bool, **evidence: Any) -> None:
        where = f"{self._client} → {self._model}, {'stream' if stream else 'whole'}, {plan.m}, faults {plan.f}"
        self._tally.found(kind, told, where, **evidence)

    async def _send(self, method: str, path: str, body: Any = None, *, leave: int | None = None, key: str = "") -> Got:
        """One request. `leave`: go away after so many bytes."""
        while not self._traffic.gate.is_set():
            if self._traffic.is_over:
                raise OverError
            await asyncio.sleep(0.05)
        self._traffic.busy += 1
        begun = time.monotonic()
        status, data, headers, first, fate = 0, bytearray(), dict[str, str](), 0.0, ""
        sent = {**self._talk.headers(key or self._key), "content-type": "application/json"}
        try:
            content = json.dumps(body).encode() if body is not None else None
            url = self._place.gateway.url + path
            async with self._session.request(method, url, data=content, headers=sent) as answer:
                status, headers = answer.status, {name.lower(): value for name, value in answer.headers.items()}
                async for piece in answer.content.iter_any():
                    first = first or time.monotonic() - begun
                    data += piece
                    if leave is not None and len(data) >= leave:
                        answer.close()
                        fate = "left"
                        break
        except TimeoutError:
            fate = "late"
        except aiohttp.ClientPayloadError:
            fate = "cut"
        except aiohttp.ClientError:
            fate = "cut" if status else "lost"
        finally:
            self._traffic.busy -= 1
        return Got(status, bytes(data), headers, time.monotonic() - begun, first, fate)

    # --- besides ------------------------------------------------------------------------------------

    async def _look_around(self) -> None:
        """What is asked now and then besides answers, and what it must be."""
        if self._chance.random() < 0.8:
            return
        previous = getattr(self._talk, "previous", "")
        looks: list[tuple[str, str, str, tuple[int, ...]]] = [
            ("GET", "/health", self._key, (200,)),
            ("GET", "/v1/models", self._key, (200,)),
            ("GET", "/v1/models", "no-such-key-0123456789", (401,)),
            ("GET", "/toolglot/requests", self._key, (200,)),
        ]
        if previous:
            looks += [("GET", f"/v1/responses/{previous}", self._key, (200,))] * 2
            looks += [("GET", f"/v1/responses/{previous}", self._other, (404,))] * 2
        method, path, key, statuses = self._chance.choice(looks)
        begun = time.monotonic()
        got = await self._send(method, path, key=key)
        spans = self._place.disturbances.between(begun, time.monotonic(), "gateway")
        self._tally.counts["looks"] += 1
        if got.status not in statuses and not ((got.fate or got.status == 503) and spans):
            told = f"{method} {path} got {got.status or got.fate} instead of {statuses}"
            self._tally.found("look", told, self._client, data=got.data[:2000], spans=spans)


def _drawn(draw: random.Random, kind: tuple[str, ...], *, stalls: bool) -> str:
    """One of a kind; those that take long are drawn seldom, or not at all."""
    fault = draw.choice(kind)
    is_other = "seconds=9" in fault and (draw.random() < 0.8 or not stalls)
    return draw.choice(kind[:-1]) if is_other else fault


# --- the judge --------------------------------------------------------------------------------------

Caused = list[tuple[str, str]]


class Judge:
    """Says what an answer is worth."""

    def __init__(
        self, talk: Talk, plan: Plan, step: int, tools: tuple[str, str], ids: set[str], *, stream: bool
    ) -> None:
        self._talk = talk
        self._plan = plan
        self._step = step
        self._tools = tools
        self._ids = ids
        self._stream = stream
        names = {fault.partition(",")[0] for fault in plan.f[step]}
        self._spoils = bool(names & set(SPOILT))
        self._breaks = bool(names - {"429", *SPOILT, *(name.partition(",")[0] for name in HARMLESS)}) or bool(
            {"slow_drip", "malformed_arguments", "empty"} & names
        )
        self._limits = "429" in names
        self._unended = "no_end" in names
        # At home, an answer is handed on as its provider wrote it.
        self._is_stop_wrong = "wrong_stop" in names

    def judge(self, got: Got, caused: Caused) -> tuple[str, str, Said | None]:
        """How an answer is counted, what is wrong with it, and the answer, if it is the right one."""
        is_gateway = any(who == "gateway" for who, _ in caused)
        is_killed = any(who == "gateway" and how == "SIGKILL" for who, how in caused)
        if got.fate == "left":
            return "left by the client", "", None
        if got.fate == "late":
            return "late", f"no end after {got.seconds:.0f} s", None
        if got.fate == "lost":
            return "gateway away", "" if is_gateway else "the gateway does not answer, and nothing was done to it", None
        if got.fate == "cut":
            why = "by SIGTERM" if is_gateway else "and nothing was done to the gateway"
            return "cut off", "" if is_killed else f"the answer was cut off, {why}", None
        is_broken = self._breaks or any(who.startswith("upstream") for who, _ in caused)
        try:
            if got.status != 200:
                return self._error(got, is_broken, is_gateway)
            said = self._talk.streamed(got.data) if self._stream else self._talk.whole(got.data)
        except FailedError as error:
            told = "" if is_broken or _is_breaker(str(error)) else f"fails without a cause: {error}"
            return "broken on the way", told, None
        except UnendedError as error:
            # At home, what a provider sends is handed on as it is; also what it leaves out.
            return "not ended by the provider", "" if self._unended else str(error), None
        except (IllegalError, KeyError, TypeError, AttributeError, IndexError) as error:
            return "illegal", f"{type(error).__name__}: {error}", None
        return self._answer(said)

    def _error(self, got: Got, is_broken: bool, is_gateway: bool) -> tuple[str, str, None]:
        message = self._talk.failed(got.data)
        need("x-toolglot-request" in got.headers, "an error without the id of its request")
        if got.status == 429:
            wrong = "" if self._limits else "429 without a cause"
            return "429", wrong or ("" if "retry-after" in got.headers else "429 without Retry-After"), None
        if got.status < 500:
            return "refused", f"status {got.status}: {message}", None
        is_caused = is_broken or is_gateway or self._limits or _is_breaker(message)
        name = "breaker open" if _is_breaker(message) else f"status {got.status}"
        return name, "" if is_caused else f"status {got.status} without a cause: {message}", None

    def _answer(self, said: Said) -> tuple[str, str, Said | None]:
        foreign = {m for m in MARKER.findall(said.text + json.dumps([*said.calls])) if m != self._plan.m}
        if foreign:
            return "another's answer", f"{sorted(foreign)} in the answer to {self._plan.m}", None
        wrong = self._wrong(said)
        if not wrong:
            return "right", "", said
        if self._spoils:
            return "spoilt on order", "", None
        return "wrong", wrong, None

    def _wrong(self, said: Said) -> str:
        """What an answer has that the plan did not say."""
        plan, step = self._plan, self._step
        expected = [(self._tools[k % 2], plan.arguments(step, k)) for k in range(plan.r[step])]
        found = [(call.name, call.arguments) for call in said.calls]
        if said.text.strip() != plan.answer(step).strip():
            return f"the text is {said.text[:300]!r}, not {plan.answer(step)!r}"
        if found != expected:
            return f"the calls are {found}, not {expected}"
        if said.stop != ("calls" if expected else "stop") and not self._is_stop_wrong:
            return f"it stopped for {said.stop} with {len(expected)} calls"
        ids = [call.id for call in said.calls if call.id]
        if len(set(ids)) != len(ids) or self._ids & set(ids):
            return f"ids that are not new: {ids}"
        return ""


def _is_breaker(message: str) -> bool:
    return "failed too often" in message
