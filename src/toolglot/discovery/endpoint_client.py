"""Sends the requests of probes to an endpoint, within a budget, and records each exchange as evidence.

    client = EndpointClient(endpoint, Budget(requests=200))
    response = await client.send(route, request)

Bounds: bytes and seconds of a response; requests, tokens and seconds in total. A busy endpoint is tried again a few
times, after the time that it names; a failing one once. Responses are parsed, and never followed or run.

Law: a key is sent only to the endpoint's URL, in the header of the protocol, and is in nothing that is returned.
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
from toolglot.discovery.parsed_reply import ParsedReply, no_response, parse_response
from toolglot.discovery.secret_masking import Secrets, masked_url, secret_values
from toolglot.errors import InputError, ToolglotError
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream import Auth, HttpResponse, TimeLimits, Transport, Upstream
from toolglot.upstream.addresses import join_url, path_for, protocol_headers
from toolglot.upstream.retry import backoff

MAX_BYTES: Final = 1024 * 1024
"""Of a response; none to a probe is longer."""
MAX_LIST_BYTES: Final = 8 * 1024 * 1024
"""Of a list of models, which can be long."""
KEPT_BYTES: Final = 6_000
"""Of a request or a response, as evidence."""
MAX_ATTEMPTS: Final = 3
FIRST_WAIT: Final = 2.0
MAX_WAIT: Final = 20.0
"""Seconds before a retry of a busy endpoint: before the first one, if the endpoint does not say, and at most."""
CHARACTERS_PER_TOKEN: Final = 3.5
MAX_COUNT: Final = 10**12
"""The largest budget of requests or tokens."""
MAX_SECONDS: Final = 1_000_000


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of a discovery."""

    requests: int = 300
    tokens: int = 200_000
    """Of prompts and replies, as the endpoint counts them; estimated if it does not."""
    seconds: float = 900.0
    timeout: float = 60.0
    """Seconds of one request, to the end of its response."""

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            if not 1 <= getattr(self, name) <= MAX_COUNT:
                raise InputError(f"expected an integer from 1 to {MAX_COUNT}", path=name)
        for name in ("seconds", "timeout"):
            if not 0 < getattr(self, name) <= MAX_SECONDS:
                raise InputError(f"expected seconds, more than 0 and at most {MAX_SECONDS}", path=name)


class StoppedError(ToolglotError):
    """The discovery ends early; the message says why."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """The endpoint to probe. Its `repr` shows no secrets."""

    url: str
    transport: Transport
    key: str = ""
    headers: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    """Further secrets: values of headers whose names do not look secret."""

    def __repr__(self) -> str:
        return f"Endpoint({masked_url(self.url)!r})"


class ProbeRequest(Struct, frozen=True, kw_only=True):
    """A request that a probe wants to send."""

    body: dict[str, Any]
    about: str
    stream: bool = False
    reply_tokens: int = 16
    """The limit of tokens in the reply."""


class ProtocolRoute(Struct, frozen=True, kw_only=True):
    """How a protocol is reached at the endpoint."""

    protocol: str
    target: str
    base: str
    auth: Auth
    model: str = ""


class EndpointClient:
    """Sends requests, counts their cost and records them."""

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
        """The current probe, for the evidence."""
        self._clock = clock
        self._sleep = sleep
        self._started = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._started

    async def send(self, route: ProtocolRoute, request: ProbeRequest) -> ParsedReply:
        """The response to a request; sent again if the endpoint is busy or fails."""
        response = await self._send_once(route, request)
        for attempt in range(1, MAX_ATTEMPTS):
            if response.verdict == "busy":
                await self._wait(response, attempt)
            elif response.verdict != "broke" or attempt > 1:
                break
            response = await self._send_once(route, request)
        return response

    async def _send_once(self, route: ProtocolRoute, request: ProbeRequest) -> ParsedReply:
        profile = profiles.get(route.target, route.model)
        path = path_for(profile, route.model, request.stream)
        data = msgspec.json.encode(request.body)
        estimate = int(len(data) / CHARACTERS_PER_TOKEN) + request.reply_tokens
        self._check_budget(estimate)
        response = await self._send(
            route, path, data, protocol_headers(profile, request.stream), "POST", stream=request.stream
        )
        self._count(response, int(len(data) / CHARACTERS_PER_TOKEN))
        return self._record(response, route, path, "POST", request.about, request.body)

    async def get(self, route: ProtocolRoute, path: str, about: str) -> ParsedReply:
        """The response to a GET, such as a list of models."""
        self._check_budget(0)
        headers = protocol_headers(profiles.get(route.target), stream=False)
        del headers["content-type"]
        response = await self._send(route, path, b"", headers, "GET", stream=False)
        self.spent = replace(self.spent, requests=self.spent.requests + 1, seconds=self.seconds)
        return self._record(response, route, path, "GET", about, None)

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
        max_bytes = MAX_BYTES if method == "POST" else MAX_LIST_BYTES
        received = _ReceivedResponse()
        try:
            async with asyncio.timeout(limit):
                http_response = await upstream.send(path, data, headers=headers, method=method, model=route.model)
                try:
                    await received.read(http_response, max_bytes)
                finally:
                    await http_response.close()
        except TimeoutError:
            received.problem, received.is_cut = f"no complete response within {limit:g} s", True
        except ProviderError as error:
            received.problem, received.kind = self.secrets.mask_text(error.failure.message), error.failure.kind
        if not received.status:
            return no_response(received.problem, received.kind)
        response = parse_response(
            route.protocol,
            received.status,
            received.headers,
            received.data,
            self.secrets,
            stream=stream,
            cut=received.is_cut,
        )
        return replace(response, problem=received.problem or response.problem)

    async def _wait(self, response: ParsedReply, attempt: int) -> None:
        retry_after = response.failure.retry_after if response.failure is not None else None
        wait = min(backoff(retry_after, attempt, first=FIRST_WAIT), MAX_WAIT)
        if self.seconds + wait > self.budget.seconds:
            raise StoppedError("the endpoint is busy, and there is no time left")
        await self._sleep(wait)

    # --- cost and evidence --------------------------------------------------------------------------

    def _check_budget(self, tokens: int) -> None:
        if self.spent.requests >= self.budget.requests:
            raise StoppedError(f"the budget of {self.budget.requests} requests is used up")
        if self.spent.input_tokens + self.spent.output_tokens + tokens > self.budget.tokens:
            raise StoppedError(f"the budget of {self.budget.tokens} tokens is used up")
        if self.seconds >= self.budget.seconds:
            raise StoppedError(f"the time of {self.budget.seconds:g} s is over")

    def _count(self, response: ParsedReply, estimated: int) -> None:
        usage = response.reply.usage if response.reply is not None else None
        read = usage.input_tokens if usage is not None else None
        written = usage.output_tokens if usage is not None else None
        is_free = response.reply is None
        self.spent = ProbeCost(
            requests=self.spent.requests + 1,
            input_tokens=self.spent.input_tokens + max(read if read is not None else estimated * (not is_free), 0),
            output_tokens=self.spent.output_tokens + max(written or 0, 0),
            seconds=self.seconds,
            counted=self.spent.counted and (is_free or (read is not None and written is not None)),
        )

    def _record(
        self, response: ParsedReply, route: ProtocolRoute, path: str, method: str, about: str, body: Any
    ) -> ParsedReply:
        name = f"r{len(self.exchanges) + 1}"
        request, _ = _short(self.secrets.clean(body)) if body is not None else (None, False)
        content: Any = response.value if response.value is not None else response.text
        reply, is_cut = _short(content)
        self.exchanges.append(
            Exchange(
                name=name,
                probe=self.probe,
                about=about,
                method=method,
                url=self.secrets.mask_text(masked_url(join_url(route.base, path, model=route.model))),
                request=request,
                status=response.status,
                headers={key: value for key, value in response.headers.items() if _is_kept_header(key)},
                reply=reply,
                cut=is_cut or response.cut,
                problem=response.problem,
                verdict=response.verdict,
                seconds=round(self.seconds, 3),
            )
        )
        return replace(response, name=name)


class _ReceivedResponse:
    """What arrived of a response, also if it broke off."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_cut = False
        """Whether it was longer than the limit, or did not end."""
        self.problem = ""
        self.kind = ""
        self._pieces: list[bytes] = []

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    async def read(self, http_response: HttpResponse, max_bytes: int) -> None:
        self.status, self.headers = http_response.status, http_response.headers
        size = 0
        async for piece in http_response.pieces():
            self._pieces.append(piece[: max_bytes - size])
            size += len(piece)
            if size > max_bytes:
                self.is_cut, self.problem = True, f"a response of more than {max_bytes} bytes"
                return


def _short(value: Any) -> tuple[Any, bool]:
    """A value as evidence: all of it if it is small, else the beginning of its JSON."""
    encoded = msgspec.json.encode(value)
    if len(encoded) <= KEPT_BYTES:
        return value, False
    return encoded[:KEPT_BYTES].decode(errors="ignore") + "…", True


_KEPT_HEADERS: Final = ("content-type", "server", "retry-after", "x-powered-by", "via", "www-authenticate")


def _is_kept_header(name: str) -> bool:
    return name in _KEPT_HEADERS or "ratelimit" in name.replace("-", "")
