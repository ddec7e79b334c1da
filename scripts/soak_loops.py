"""The traffic of a soak: clients that hold conversations with tools, and judge every reply.

A client repeats a request until it has the reply that its plan expects, and only then continues; so a conversation ends
only if nothing before was lost. Laws: a reply with status 200 is the right one, or was changed or broken by an injected
fault; an error has a cause that was injected; every choice follows from the seed.
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

from soak_clients import TALKS, ClientReply, FailedError, IllegalError, Talk, UnendedError, need
from soak_plans import BEFORE, CHANGED, HARMLESS, MARKER, MIDDLE, Plan, tool_names
from soak_processes import KEYS, Testbed

CLIENT_SECONDS: Final = 45.0
MAX_TRIES: Final = 60
"""Attempts while all processes run."""
MAX_VIOLATIONS: Final = 200

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
    message: str
    where: str
    """The client, the model, how, and the marker."""


class Tally:
    """Counts, times and violations."""

    def __init__(self, seed: str, folder: Path) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, list[float]] = {"whole": [], "stream": [], "first byte of a stream": []}
        self.violations: list[Violation] = []
        self._folder = folder
        self._counted = asyncio.Condition()

    def add_violation(self, kind: str, message: str, where: str = "", **evidence: Any) -> None:
        """Note something that is wrong, and write the evidence to a file."""
        if len(self.violations) < MAX_VIOLATIONS:
            path = self._folder / f"violation-{len(self.violations)}.json"
            fields = {"kind": kind, "message": message, "where": where, "seed": self.seed, **evidence}
            path.write_text(json.dumps(fields, indent=1, default=_shown))
        self.violations.append(Violation(kind, message[:600], where))

    async def count(self, fate: str) -> None:
        async with self._counted:
            self.counts[fate] += 1
            self._counted.notify_all()

    async def wait_for_right(self, replies: int) -> None:
        """Wait for so many right replies in all."""
        async with self._counted:
            await self._counted.wait_for(lambda: self.counts["right"] >= replies)


def _shown(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else repr(value)


class Outcome(NamedTuple):
    """What came of one request."""

    status: int
    """0: no response."""
    data: bytes
    headers: dict[str, str]
    seconds: float
    first: float
    fate: str = ""
    """left: the client disconnected; lost: no response; cut: the response broke off; late: it took too long."""


class Traffic:
    """All clients."""

    def __init__(self, testbed: Testbed, tally: Tally, *, loops: int, seed: str, stalls: bool) -> None:
        self.testbed = testbed
        self.tally = tally
        self.seed = seed
        self.stalls = stalls
        self.gate = asyncio.Event()
        """Set: clients send requests."""
        self.is_over = False
        self.busy = 0
        pairs = list(PAIRS)
        random.Random(f"{seed}/pairs").shuffle(pairs)  # noqa: S311 - not for a secret
        self._pairs = pairs
        self._loops = loops

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._loops):
                group.create_task(self._loop(number))

    async def pause(self) -> None:
        """Let all clients finish their requests, and send no more."""
        self.gate.clear()
        while self.busy:
            await asyncio.sleep(0.05)

    async def _loop(self, number: int) -> None:
        for conversation in itertools.count():
            client, model = self._pairs[(number + conversation * self._loops) % len(self._pairs)]
            async with aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=CLIENT_SECONDS * self.testbed.patience)
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
        self._testbed = traffic.testbed
        self._draw = draw = random.Random(name)  # noqa: S311 - not for a secret
        self._try_draw = random.Random(f"{name}/tries")  # noqa: S311 - the number of attempts depends on timing
        self._session = session
        self._client = client
        self._model = model
        self._name = name
        self._key, self._other = draw.sample(sorted(KEYS.values()), 2)
        # A response that the provider has stored is continued there as the client sent it, names of tools included.
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
            self._talk.add_user(plan.prompt())
            for step in range(len(plan.r)):
                reply = await self._request_until_right(plan, step)
                self._talk.add_reply(reply)
                if reply.calls:
                    size = self._filler * (5 if self._draw.random() < 0.1 else 1)
                    results = [(call, plan.result(step, index, size)) for index, call in enumerate(reply.calls)]
                    self._talk.add_results(results)
                    self._results += len(results)
            await self._check_other_endpoints()

    def _plan(self, turn: int) -> Plan:
        draw = self._draw
        rounds = (*draw.choice(((1,), (1,), (2,), (3,), (1, 2), (2, 1, 1), ())), 0)
        faults = tuple(tuple(self._faults()) for _ in rounds)
        return Plan(f"mk-{self._name}-{turn}", rounds, faults, self._results, self._must_return)

    def _faults(self) -> list[str]:
        draw = self._draw
        if draw.random() < 0.75:
            return []
        kinds = draw.choices((BEFORE, MIDDLE, CHANGED, HARMLESS), (4, 4, 2, 2), k=draw.choice((1, 1, 1, 2)))
        return [_draw_fault(draw, kind, stalls=self._traffic.stalls) for kind in kinds]

    # --- one reply ----------------------------------------------------------------------------------

    async def _request_until_right(self, plan: Plan, step: int) -> ClientReply:
        """The right reply, after as many attempts as it takes."""
        stream = self._draw.random() < 0.6
        tries = 0
        while tries < MAX_TRIES:
            begun = time.monotonic()
            leave = self._try_draw.choice((0, 1, 300, 1500)) if self._try_draw.random() < 0.06 else None
            reply = await self._try_once(plan, step, stream=stream, leave=leave)
            if reply is not None:
                return reply
            await asyncio.sleep(self._try_draw.uniform(0.05, 0.4))
            tries += not self._testbed.disturbances.between(begun, time.monotonic())
        self._add_violation("starved", f"no reply after {MAX_TRIES} attempts while all processes ran", plan, stream)
        raise GivenUpError

    async def _try_once(self, plan: Plan, step: int, *, stream: bool, leave: int | None) -> ClientReply | None:
        """One attempt; None: try again."""
        path, body = self._talk.request(stream=stream)
        begun = time.monotonic()
        got = await self._send("POST", path, body, leave=leave)
        judge = Judge(self._talk, plan, step, self._tools, self._ids, stream=stream)
        spans = self._testbed.disturbances.between(begun, time.monotonic())
        fate, wrong, reply = judge.judge(got, [(span.who, span.how) for span in spans])
        await self._tally.count(fate)
        if wrong:
            response = {"status": got.status, "headers": got.headers, "data": got.data[:200_000], "fate": got.fate}
            evidence = {"path": path, "body": body, "response": response, "spans": spans, "step": step}
            self._add_violation(fate, wrong, plan, stream, **evidence)
            if fate == "refused":
                raise GivenUpError
        if reply is not None:
            self._ids.update(call.id for call in reply.calls)
            self._tally.counts["of them by another of a chain"] += "called instead" in got.headers["x-toolglot-report"]
            self._measure(got, plan, step, stream=stream)
        return reply

    def _measure(self, got: Outcome, plan: Plan, step: int, *, stream: bool) -> None:
        if not plan.f[step]:
            self._tally.seconds["stream" if stream else "whole"].append(got.seconds)
            if stream:
                self._tally.seconds["first byte of a stream"].append(got.first)

    def _add_violation(self, kind: str, message: str, plan: Plan, stream: bool, **evidence: Any) -> None:
        where = f"{self._client} → {self._model}, {'stream' if stream else 'whole'}, {plan.m}, faults {plan.f}"
        self._tally.add_violation(kind, message, where, **evidence)

    async def _send(
        self, method: str, path: str, body: Any = None, *, leave: int | None = None, key: str = ""
    ) -> Outcome:
        """Send one request. `leave`: disconnect after so many bytes."""
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
            url = self._testbed.gateway.url + path
            async with self._session.request(method, url, data=content, headers=sent) as response:
                status, headers = response.status, {name.lower(): value for name, value in response.headers.items()}
                async for piece in response.content.iter_any():
                    first = first or time.monotonic() - begun
                    data += piece
                    if leave is not None and len(data) >= leave:
                        response.close()
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
        return Outcome(status, bytes(data), headers, time.monotonic() - begun, first, fate)

    # --- other endpoints ------------------------------------------------------------------------------

    async def _check_other_endpoints(self) -> None:
        """Now and then, call an endpoint that is no generation, and check its status."""
        if self._try_draw.random() < 0.8:
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
        method, path, key, statuses = self._try_draw.choice(looks)
        begun = time.monotonic()
        got = await self._send(method, path, key=key)
        spans = self._testbed.disturbances.between(begun, time.monotonic(), "gateway")
        self._tally.counts["looks"] += 1
        if got.status not in statuses and not ((got.fate or got.status == 503) and spans):
            message = f"{method} {path} got {got.status or got.fate} instead of {statuses}"
            self._tally.add_violation("look", message, self._client, data=got.data[:2000], spans=spans)


def _draw_fault(draw: random.Random, kind: tuple[str, ...], *, stalls: bool) -> str:
    """A fault of a kind; those that take long are drawn seldom, or not at all."""
    fault = draw.choice(kind)
    is_other = "seconds=9" in fault and (draw.random() < 0.8 or not stalls)
    return draw.choice(kind[:-1]) if is_other else fault


# --- the judge --------------------------------------------------------------------------------------

Caused = list[tuple[str, str]]


class Judge:
    """Judges one response."""

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
        self._changes = bool(names & set(CHANGED))
        self._breaks = bool(names - {"429", *CHANGED, *(name.partition(",")[0] for name in HARMLESS)}) or bool(
            {"slow_drip", "malformed_arguments", "empty"} & names
        )
        self._limits = "429" in names
        self._unended = "no_end" in names
        # To a client of the same provider, a reply is forwarded as it is.
        self._is_stop_wrong = "wrong_stop" in names

    def judge(self, got: Outcome, caused: Caused) -> tuple[str, str, ClientReply | None]:
        """How a response is counted, what is wrong with it, and the reply, if it is the right one."""
        is_gateway = any(who == "gateway" for who, _ in caused)
        is_killed = any(who == "gateway" and how == "SIGKILL" for who, how in caused)
        if got.fate == "left":
            return "left by the client", "", None
        if got.fate == "late":
            return "late", f"no end after {got.seconds:.0f} s", None
        if got.fate == "lost":
            return "gateway away", "" if is_gateway else "the gateway does not respond, although it was not ended", None
        if got.fate == "cut":
            why = "by SIGTERM" if is_gateway else "although the gateway was not ended"
            return "cut off", "" if is_killed else f"the response was cut off, {why}", None
        is_broken = self._breaks or any(who.startswith("upstream") for who, _ in caused)
        try:
            if got.status != 200:
                return self._judge_error(got, is_broken, is_gateway)
            reply = self._talk.read_stream(got.data) if self._stream else self._talk.read_reply(got.data)
        except FailedError as error:
            wrong = "" if is_broken or _is_breaker(str(error)) else f"fails without a cause: {error}"
            return "broken on the way", wrong, None
        except UnendedError as error:
            # To a client of the same provider, a stream is forwarded as it is, also without its end.
            return "not ended by the provider", "" if self._unended else str(error), None
        except (IllegalError, KeyError, TypeError, AttributeError, IndexError) as error:
            return "illegal", f"{type(error).__name__}: {error}", None
        return self._judge_reply(reply)

    def _judge_error(self, got: Outcome, is_broken: bool, is_gateway: bool) -> tuple[str, str, None]:
        message = self._talk.read_error(got.data)
        need("x-toolglot-request" in got.headers, "an error without the id of its request")
        if got.status == 429:
            wrong = "" if self._limits else "429 without a cause"
            return "429", wrong or ("" if "retry-after" in got.headers else "429 without Retry-After"), None
        if got.status < 500:
            return "refused", f"status {got.status}: {message}", None
        is_caused = is_broken or is_gateway or self._limits or _is_breaker(message)
        name = "breaker open" if _is_breaker(message) else f"status {got.status}"
        return name, "" if is_caused else f"status {got.status} without a cause: {message}", None

    def _judge_reply(self, reply: ClientReply) -> tuple[str, str, ClientReply | None]:
        foreign = {m for m in MARKER.findall(reply.text + json.dumps([*reply.calls])) if m != self._plan.m}
        if foreign:
            return "another's reply", f"{sorted(foreign)} in the reply to {self._plan.m}", None
        wrong = self._wrong(reply)
        if not wrong:
            return "right", "", reply
        if self._changes:
            return "changed by a fault", "", None
        return "wrong", wrong, None

    def _wrong(self, reply: ClientReply) -> str:
        """How a reply differs from the plan; empty: it does not."""
        plan, step = self._plan, self._step
        expected = [(self._tools[k % 2], plan.arguments(step, k)) for k in range(plan.r[step])]
        found = [(call.name, call.arguments) for call in reply.calls]
        if reply.text.strip() != plan.text(step).strip():
            return f"the text is {reply.text[:300]!r}, not {plan.text(step)!r}"
        if found != expected:
            return f"the calls are {found}, not {expected}"
        if reply.stop != ("calls" if expected else "stop") and not self._is_stop_wrong:
            return f"it stopped for {reply.stop} with {len(expected)} calls"
        ids = [call.id for call in reply.calls if call.id]
        if len(set(ids)) != len(ids) or self._ids & set(ids):
            return f"ids that are not new: {ids}"
        return ""


def _is_breaker(message: str) -> bool:
    return "failed too often" in message
