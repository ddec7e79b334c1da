"""The line to an endpoint: one question out, one answer back, bounded in every way, and kept as evidence.

    line = Line(endpoint, budget=Budget(requests=200))
    heard = await line.ask("openai_chat", question)

Bounds: bytes and seconds of an answer, requests and tokens and seconds of all. A busy endpoint is asked again a few
times, as it says; a failing one once. What it sends is read and never followed, run or stored elsewhere.

Law: a key goes to the address that was given, in the header of the protocol, and is in nothing that comes out of here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import profiles
from toolglot.discovery.findings import Exchange, ProbeCost
from toolglot.discovery.heard import ParsedReply, understood, unheard
from toolglot.discovery.secrecy import Secrets, secret_values, shown_url
from toolglot.errors import InputError, ToolglotError
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream import Auth, HttpResponse, TimeLimits, Transport, Upstream
from toolglot.upstream.addresses import join_url, path_for, protocol_headers
from toolglot.upstream.retry import backoff

MOST_BYTES: Final = 1024 * 1024
"""Of an answer; no answer to a probe is longer."""
MOST_LIST_BYTES: Final = 8 * 1024 * 1024
"""Of a list of models: hubs have long ones."""
KEPT_BYTES: Final = 6_000
"""Of a request or an answer, as evidence."""
MOST_TRIES: Final = 3
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 20.0
"""Seconds before the first retry of a busy endpoint, if it does not say; and at most."""
CHARACTERS_A_TOKEN: Final = 3.5
MAX_COUNT: Final = 10**12
"""Requests or tokens of a discovery."""
MAX_SECONDS: Final = 1_000_000


class Budget(Struct, frozen=True, kw_only=True):
    """What a discovery may take."""

    requests: int = 300
    tokens: int = 200_000
    """Of prompts and answers, as the endpoint counts them; estimated where it does not."""
    seconds: float = 900.0
    timeout: float = 60.0
    """Seconds of one request, all of it."""

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            if not 1 <= getattr(self, name) <= MAX_COUNT:
                raise InputError(f"expected a whole number from 1 to {MAX_COUNT}", path=name)
        for name in ("seconds", "timeout"):
            if not 0 < getattr(self, name) <= MAX_SECONDS:
                raise InputError(f"expected seconds, more than none and at most {MAX_SECONDS}", path=name)


class StoppedError(ToolglotError):
    """No more is asked; the message says why."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where to ask and how. What may be secret is not shown."""

    url: str
    transport: Transport
    key: str = ""
    headers: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    """What else must not be shown: values of headers whose names do not say it."""

    def __repr__(self) -> str:
        return f"Endpoint({shown_url(self.url)!r})"


class Question(Struct, frozen=True, kw_only=True):
    """A request that a probe wants to be sent."""

    body: dict[str, Any]
    about: str
    stream: bool = False
    reply_tokens: int = 16
    """The most that may be answered."""


class ProtocolRoute(Struct, frozen=True, kw_only=True):
    """How a protocol is reached at the endpoint."""

    protocol: str
    target: str
    base: str
    auth: Auth
    model: str = ""


class EndpointClient:
    """Asks, counts and keeps."""

    def __init__(
        self,
        endpoint: Endpoint,
        budget: Budget,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.endpoint = endpoint
        self.budget = budget
        self.secrets: Secrets = Secrets((endpoint.key, *endpoint.secrets, *secret_values(endpoint.headers)))
        self.exchanges: list[Exchange] = []
        self.spent: ProbeCost = ProbeCost()
        self.probe = ""
        """Who asks, for the evidence."""
        self._clock = clock
        self._sleep = sleep
        self._begun = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._begun

    async def ask(self, route: ProtocolRoute, question: Question) -> ParsedReply:
        """The answer to a question; asked again where the endpoint is busy or fails."""
        heard = await self._ask_once(route, question)
        for attempt in range(1, MOST_TRIES):
            if heard.verdict == "busy":
                await self._wait(heard, attempt)
            elif heard.verdict != "broke" or attempt > 1:
                break
            heard = await self._ask_once(route, question)
        return heard

    async def _ask_once(self, route: ProtocolRoute, question: Question) -> ParsedReply:
        profile = profiles.get(route.target, route.model)
        path = path_for(profile, route.model, question.stream)
        data = msgspec.json.encode(question.body)
        estimate = int(len(data) / CHARACTERS_A_TOKEN) + question.reply_tokens
        self._check_budget(estimate)
        heard = await self._send(
            route, path, data, protocol_headers(profile, question.stream), "POST", stream=question.stream
        )
        self._count(heard, int(len(data) / CHARACTERS_A_TOKEN))
        return self._kept(heard, route, path, "POST", question.about, question.body)

    async def get(self, route: ProtocolRoute, path: str, about: str) -> ParsedReply:
        """Something that is read, such as a list of models."""
        self._check_budget(0)
        headers = protocol_headers(profiles.get(route.target), stream=False)
        del headers["content-type"]
        heard = await self._send(route, path, b"", headers, "GET", stream=False)
        self.spent = replace(self.spent, requests=self.spent.requests + 1, seconds=self.seconds)
        return self._kept(heard, route, path, "GET", about, None)

    # --- one request --------------------------------------------------------------------------------

    async def _send(
        self, route: ProtocolRoute, path: str, data: bytes, headers: dict[str, str], method: str, *, stream: bool
    ) -> ParsedReply:
        limit = min(self.budget.timeout, max(self.budget.seconds - self.seconds, 0.01))
        upstream = Upstream(
            name="the endpoint",
            target=route.target,
            url=route.base,
            transport=self.endpoint.transport,
            auth=route.auth,
            key=self.endpoint.key,
            headers=self.endpoint.headers,
            limits=TimeLimits(connect=min(10.0, limit), first_byte=limit, idle=limit),
        )
        most = MOST_BYTES if method == "POST" else MOST_LIST_BYTES
        came = _Came()
        try:
            async with asyncio.timeout(limit):
                answer = await upstream.send(path, data, headers=headers, method=method, model=route.model)
                try:
                    await came.read(answer, most)
                finally:
                    await answer.close()
        except TimeoutError:
            came.problem, came.is_cut = f"no whole answer within {limit:g} s", True
        except ProviderError as error:
            came.problem, came.kind = self.secrets.in_text(error.failure.message), error.failure.kind
        if not came.status:
            return unheard(came.problem, came.kind)
        heard = understood(
            route.protocol, came.status, came.headers, came.data, self.secrets, stream=stream, cut=came.is_cut
        )
        return replace(heard, problem=came.problem or heard.problem)

    async def _wait(self, heard: ParsedReply, attempt: int) -> None:
        retry_after = heard.failure.retry_after if heard.failure is not None else None
        wait = min(backoff(retry_after, attempt, first=FIRST_WAIT), LONGEST_WAIT)
        if self.seconds + wait > self.budget.seconds:
            raise StoppedError("the endpoint is busy, and there is no time left to wait")
        await self._sleep(wait)

    # --- counting and keeping -----------------------------------------------------------------------

    def _check_budget(self, tokens: int) -> None:
        if self.spent.requests >= self.budget.requests:
            raise StoppedError(f"the budget of {self.budget.requests} requests is used up")
        if self.spent.input_tokens + self.spent.output_tokens + tokens > self.budget.tokens:
            raise StoppedError(f"the budget of {self.budget.tokens} tokens is used up")
        if self.seconds >= self.budget.seconds:
            raise StoppedError(f"the time of {self.budget.seconds:g} s is over")

    def _count(self, heard: ParsedReply, estimated: int) -> None:
        usage = heard.reply.usage if heard.reply is not None else None
        told_in = usage.input_tokens if usage is not None else None
        told_out = usage.output_tokens if usage is not None else None
        is_free = heard.reply is None
        self.spent = ProbeCost(
            requests=self.spent.requests + 1,
            input_tokens=self.spent.input_tokens
            + max(told_in if told_in is not None else estimated * (not is_free), 0),
            output_tokens=self.spent.output_tokens + max(told_out or 0, 0),
            seconds=self.seconds,
            counted=self.spent.counted and (is_free or (told_in is not None and told_out is not None)),
        )

    def _kept(
        self, heard: ParsedReply, route: ProtocolRoute, path: str, method: str, about: str, body: Any
    ) -> ParsedReply:
        name = f"r{len(self.exchanges) + 1}"
        request, _ = _short(self.secrets.cleaned(body)) if body is not None else (None, False)
        said: Any = heard.value if heard.value is not None else heard.text
        reply, is_cut = _short(said)
        self.exchanges.append(
            Exchange(
                name=name,
                probe=self.probe,
                about=about,
                method=method,
                url=self.secrets.in_text(shown_url(join_url(route.base, path, model=route.model))),
                request=request,
                status=heard.status,
                headers={key: value for key, value in heard.headers.items() if _is_telling(key)},
                reply=reply,
                cut=is_cut or heard.cut,
                problem=heard.problem,
                verdict=heard.verdict,
                seconds=round(self.seconds, 3),
            )
        )
        return replace(heard, name=name)


class _Came:
    """What came of an answer, also where it broke off."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_cut = False
        """There was more than is read, or it did not end."""
        self.problem = ""
        self.kind = ""
        self._pieces: list[bytes] = []

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    async def read(self, answer: HttpResponse, most: int) -> None:
        self.status, self.headers = answer.status, answer.headers
        size = 0
        async for piece in answer.pieces():
            self._pieces.append(piece[: most - size])
            size += len(piece)
            if size > most:
                self.is_cut, self.problem = True, f"an answer of more than {most} bytes"
                return


def _short(value: Any) -> tuple[Any, bool]:
    """A value as evidence: whole if it is small, else the beginning of its text."""
    encoded = msgspec.json.encode(value)
    if len(encoded) <= KEPT_BYTES:
        return value, False
    return encoded[:KEPT_BYTES].decode(errors="ignore") + "…", True


_TELLING: Final = ("content-type", "server", "retry-after", "x-powered-by", "via", "www-authenticate")


def _is_telling(name: str) -> bool:
    return name in _TELLING or "ratelimit" in name.replace("-", "")
