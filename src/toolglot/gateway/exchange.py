"""One request of a client to a model: read, sent where it belongs, and answered in the client's own protocol.

    bytes → read → middleware → route → recall → render → upstream → translate → keep → bytes

Laws: nothing is buffered that can be streamed. What the vault keeps is safe before the client sees the end of the
answer, so that its next request finds it. A client that goes away ends the upstream's answer at once.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext, profiles
from toolglot.conversation import Conversation, Failure, Issuer, Reply
from toolglot.convert import ConvertedReply, ConvertedRequest, ReceivedRequest, convert_reply, read_request
from toolglot.errors import InputError
from toolglot.gateway.chain import Chain, MiddlewareError
from toolglot.gateway.config import Config
from toolglot.gateway.doors import Door
from toolglot.gateway.json_array import CONTENT_TYPE as ARRAY
from toolglot.gateway.json_array import JsonArray
from toolglot.gateway.keys import KeyRing
from toolglot.gateway.metering import Meter, Ticket
from toolglot.gateway.own_keys import OwnKeys
from toolglot.gateway.requests import (
    ClientRequest,
    Headers,
    Send,
    header_pairs,
    refusal,
    send_json,
    send_piece,
    send_start,
)
from toolglot.gateway.response_items import with_request
from toolglot.gateway.routing import Route, Router
from toolglot.gateway.stored_responses import StoredResponses
from toolglot.gateway.telling import Told, header_of
from toolglot.gateway.upstreams import Upstreams
from toolglot.gateway.vault import Vault, without_opaque
from toolglot.limits import Limits
from toolglot.middleware import Request
from toolglot.profiles import Profile
from toolglot.report import Entry
from toolglot.store import StoreError
from toolglot.streams import StreamTranslator
from toolglot.upstream import Answer, Upstream
from toolglot.wire.codecs import codec
from toolglot.wire.failures import ProviderError

MOST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer, whole or streamed."""
LARGE: Final = 256 * 1024
"""Bytes from which on a body is worked on in a thread: it takes so long that others would wait."""
STORE_PATIENCE: Final = 3.0
"""Seconds that an answer waits for the store."""
AFTER_END: Final = 1.0
MOST_AFTER_END: Final = 64 * 1024
"""Seconds and bytes that a provider has, after the end of its answer, to end what it sends as well."""

RESPONSES: Final = "openai_responses"
Fields = dict[str, Any]
T = TypeVar("T")

OPAQUE_REFUSED: Final = re.compile(
    r"signature|encrypted[_ ]content|bound to a different conversation|blocks?\b.{0,80}cannot be modified"
    r"|without its required 'reasoning' item|item with id 'rs_",
    re.IGNORECASE | re.DOTALL,
)
"""How providers say that they do not know what came back as their own (D2, D3, D9)."""

_PASSED_ON: Final = {
    "anthropic": ("anthropic-version", "anthropic-beta"),
    "openai_chat": ("openai-beta",),
    "openai_responses": ("openai-beta",),
}
"""Headers of a client that mean something to its own provider, by protocol."""

_REPLY_IDS: Final = {"anthropic": "msg_", "openai": "chatcmpl-", "openai_responses": "resp_"}
"""How the ids of answers begin, by client."""

_KEPT: Final = ("anthropic-ratelimit-", "x-ratelimit-", "anthropic-organization-id", "openai-processing-ms")
"""Headers of a provider that its own clients look at."""


class Services(Struct, frozen=True):
    """What the requests of a gateway share."""

    config: Config
    limits: Limits
    router: Router
    upstreams: Upstreams
    vault: Vault
    responses: StoredResponses
    chain: Chain
    own_keys: OwnKeys
    ring: KeyRing
    meter: Meter


class Pings:
    """Signs of life for a client whose provider is silent. A timer a stream, and nothing to do for a piece of it."""

    def __init__(self, ping: Callable[[], bytes], send: Send, seconds: float) -> None:
        self._ping = ping
        self._send = send
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._is_silent = False
        self._sending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(seconds, self._look) if seconds else None

    def stirred(self) -> None:
        """The client gets something just now."""
        self._is_silent = False

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _look(self) -> None:
        # A client that does not read gets no further ones.
        if self._is_silent and (self._sending is None or self._sending.done()) and (data := self._ping()):
            self._sending = self._loop.create_task(send_piece(self._send, data))
        self._is_silent = True
        self._timer = self._loop.call_later(self._seconds, self._look)


class Exchange:
    """One request to a model."""

    def __init__(self, services: Services, door: Door, request: ClientRequest, send: Send, told: Told) -> None:
        self._services = services
        self._config = services.config
        self._door = door
        self._request = request
        self._send = send
        self._told = told
        self._asked = Conversation()
        """What the client said, as it said it."""
        self._shown: Request | None = None
        """The request as middleware saw it."""
        self._ticket: Ticket | None = None

    async def run(self) -> None:
        """Answer the request. What goes wrong before the answer begins is raised."""
        try:
            await self._run()
        finally:
            if self._ticket is not None:
                self._services.meter.record(self._ticket, self._told)

    async def _run(self) -> None:
        received, out, upstream = await self._ready()
        out, answer = await self._answered(received, out, upstream)
        try:
            if out.stream:
                await self._stream(out, answer, upstream)
            else:
                await self._whole(out, answer, upstream)
        finally:
            await answer.close()

    async def rendered(self) -> tuple[ConvertedRequest, Upstream]:
        """What would be sent, and to whom."""
        _, out, upstream = await self._ready(is_used=False)
        return out, upstream

    # --- the way there ------------------------------------------------------------------------------

    async def _ready(self, *, is_used: bool = True) -> tuple[ReceivedRequest, ConvertedRequest, Upstream]:
        received = await self._apart(lambda: self._read(self._request.body))
        route, upstream = self._routed(received)
        meter, client = self._services.meter, self._request.client
        meter.permit(client, self._told.model)
        if is_used:
            self._ticket = await meter.admit(client, self._told, len(self._request.body))
        received = await self._joined(received, upstream)
        if self._services.chain:
            received = self._through_chain(received, upstream)
            route, upstream = self._routed(received)
        self._asked = received.conversation
        return received, await self._rendered(received, upstream, route.model), upstream

    def _read(self, body: bytes | dict[str, Any]) -> ReceivedRequest:
        received = read_request(
            body,
            source=self._door.source,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
        )
        wants = self._door.stream
        if wants is None and self._door.streams_unless_told and received.conversation.options.stream is None:
            wants = True
        received.address(model=self._door.model, stream=wants)
        return received

    def _routed(self, received: ReceivedRequest) -> tuple[Route, Upstream]:
        asked, told = received.conversation.model, self._told
        told.model, told.is_stream = asked, bool(received.conversation.options.stream)
        route = self._services.router.route(asked)
        upstream = self._services.upstreams.of(route)
        told.upstream, told.sent_model, told.is_simulated = upstream.name, route.model, upstream.is_simulated
        return route, upstream

    async def _joined(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request with what it refers to of earlier answers."""
        if self._door.source != RESPONSES:
            return received
        is_native = self._target(upstream, received) == RESPONSES
        if received.fields.get("background") is True and not is_native:
            raise refusal("bad_request", "background responses are not served here: send background false", 400)
        # Where several clients share an upstream's account, what this one was not given here may be another's.
        is_alone = not self._services.ring.is_shared
        if not is_alone and received.fields.get("conversation") is not None:
            said = "a conversation at the provider is not kept apart by client keys: send previous_response_id"
            raise refusal("bad_request", said, 400)
        joined = await self._services.responses.expanded(
            self._request.client,
            received.fields,
            may_be_elsewhere=is_native and is_alone,
            home=upstream.name if is_native else "",
        )
        return await self._apart(lambda: self._read(joined)) if joined is not None else received

    def _through_chain(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request as the user's middleware leaves it."""
        protocol, model = self._profile(self._door.source).protocol, received.conversation.model
        self._shown, is_changed = self._services.chain.before(
            received.fields, protocol=protocol, model=model, provider=upstream.target
        )
        if not is_changed:
            return received
        received = self._read(Chain.changed(received.fields, self._shown, protocol))
        received.address(model=self._shown.model)
        return received

    def _profile(self, name: str, model: str = "") -> Profile:
        return profiles.get(name, model, overrides=self._config.overrides)

    def _target(self, upstream: Upstream, received: ReceivedRequest) -> str:
        """The protocol of a provider that has several: the client's own, or the one that takes tools."""
        if self._door.source in upstream.also:
            return self._door.source
        instead = self._profile(upstream.target, self._told.sent_model).tools.protocol
        if instead not in upstream.also:
            return upstream.target
        said = received.conversation
        return instead if said.tools or any(turn.calls for turn in said.turns) else upstream.target

    async def _rendered(self, received: ReceivedRequest, upstream: Upstream, model: str) -> ConvertedRequest:
        target = self._target(upstream, received)
        profile, source = self._profile(target, model), self._profile(self._door.source)
        home = upstream.home(model, target)
        entries: list[Entry] = []
        try:
            received.conversation, entries = await self._services.vault.recall(
                self._request.client, received.conversation, source, profile, home
            )
        except StoreError as error:  # as if nothing had been kept: most requests are good without
            self._told.error = f"nothing was recalled: {error}"
            self._told.store_errors += 1
        return await self._apart(lambda: self._render(received, profile, source, home, entries))

    async def _apart(self, work: Callable[[], T]) -> T:
        """What work on the client's request gives, done in a thread if it is a large one."""
        return await asyncio.to_thread(work) if len(self._request.body) > LARGE else work()

    def _render(
        self, received: ReceivedRequest, profile: Profile, source: Profile, home: Issuer, entries: list[Entry]
    ) -> ConvertedRequest:
        if source.protocol != profile.protocol == RESPONSES:
            received.conversation = _asking_encrypted(received.conversation, profile)
        out = received.for_target(profile.name, model=home.model, home=home, entries=entries)
        self._told.target, self._told.entries, self._told.rendered = profile.name, out.report.entries, out.data
        return out

    async def _answered(
        self, received: ReceivedRequest, out: ConvertedRequest, upstream: Upstream
    ) -> tuple[ConvertedRequest, Answer]:
        """The answer that is handed on; a second one, where the first was about what only the provider can read."""
        headers = self._headers_for(out)
        answer = await upstream.ask(out, headers | self._told.asking(upstream))
        if answer.status < 300:
            return out, answer
        failure = await _failure(answer, out)
        home = upstream.home(out.model, out.target.name)
        again = self._without_refused(received, out, failure, home)
        if again is None:
            raise ProviderError(failure)
        self._told.retried = failure.message[:200]
        self._told.failures.append((upstream.name, failure.kind))
        answer = await upstream.ask(again, headers | self._told.asking(upstream))
        if answer.status >= 300:
            raise ProviderError(await _failure(answer, again))
        self._services.vault.spoil(self._request.client, self._asked, home)
        return again, answer

    def _without_refused(
        self, received: ReceivedRequest, out: ConvertedRequest, failure: Failure, home: Issuer
    ) -> ConvertedRequest | None:
        """The request without what the provider does not know as its own; None where that is not what is wrong."""
        if failure.status not in (400, 404) or not OPAQUE_REFUSED.search(f"{failure.message} {failure.code}"):
            return None
        received.conversation, entries = without_opaque(received.conversation)
        again = self._render(received, out.target, self._profile(self._door.source), home, entries)
        return again if again.data != out.data else None

    def _headers_for(self, out: ConvertedRequest) -> dict[str, str]:
        if out.source.protocol != out.target.protocol:
            return {}
        given = self._request.headers
        return {name: given[name] for name in _PASSED_ON.get(out.source.protocol, ()) if name in given}

    # --- the way back -------------------------------------------------------------------------------

    async def _whole(self, out: ConvertedRequest, answer: Answer, upstream: Upstream) -> None:
        data = await answer.whole(MOST_ANSWER)
        self._told.heard = time.perf_counter()
        is_much = len(data) > LARGE or len(self._request.body) > LARGE
        replied = await asyncio.to_thread(self._reply, data, out) if is_much else self._reply(data, out)
        reply, body, written = replied
        self._told.reply_entries = reply.report.entries
        if self._shown is not None:
            given = body
            body = self._services.chain.after_reply(
                self._shown, given, reply.reply, source=self._door.source, provider=upstream.target
            )
            written = written if body == given else msgspec.json.encode(body)
        await self._keep(out, reply.said, reply.reply, upstream, body)
        self._told.status, self._told.is_answered = 200, True
        self._told.sends()
        await send_json(self._send, 200, written, self._headers(out, answer, upstream))

    def _reply(self, data: bytes, out: ConvertedRequest) -> tuple[ConvertedReply, Fields, bytes]:
        """A whole answer, as the client gets it: read, as an object and as it is sent."""
        reply = convert_reply(
            data,
            source=out.target.name,
            target=self._door.source,
            request=out,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
            reply_id=self._reply_id(),
        )
        body = self._dated(reply.body, out)
        return reply, body, reply.data if body is reply.body else msgspec.json.encode(body)

    async def _stream(self, out: ConvertedRequest, answer: Answer, upstream: Upstream) -> None:
        translator = StreamTranslator(
            source=out.target.name,
            target=self._door.source,
            request=out,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
            created=int(time.time()),
            reply_id=self._reply_id(),
        )
        array = JsonArray() if self._door.is_array else None
        content_type = ARRAY if array is not None else translator.content_type
        self._told.status = 200
        await send_start(self._send, content_type, self._headers(out, answer, upstream))
        pings = Pings(
            lambda: translator.ping() if array is None else b"", self._send, self._config.gateway.ping_seconds
        )
        is_kept = False
        try:
            async for data in self._translated(answer, translator):
                if translator.is_over and not is_kept:
                    is_kept = True
                    await self._streamed(out, translator, upstream)
                pings.stirred()
                if not self._told.sent:
                    self._told.sends()
                await send_piece(self._send, data if array is None else array.add(data))
            if not is_kept:  # some protocols end with their bytes, and not with an event
                await self._streamed(out, translator, upstream)
            self._told.is_answered = True
            await send_piece(self._send, array.end() if array is not None else b"", more=False)
        except BaseException:
            translator.close()
            raise
        finally:
            pings.end()
            self._tell_stream(translator)

    def _reply_id(self) -> str:
        """An id that no other answer has, for clients that know answers by it: not every provider gives such a one."""
        return _REPLY_IDS.get(self._door.source, "") + self._told.id.removeprefix("tg_")

    def _dated(self, body: Fields, out: ConvertedRequest) -> Fields:
        """A reply with what the core cannot know: when it was made, and what the request asked for."""
        if out.source.protocol == out.target.protocol:
            return body
        dated = {**body, **{name: int(time.time()) for name in ("created", "created_at") if body.get(name) == 0}}
        return with_request(self._given_fields(), dated) if self._door.source == RESPONSES else dated

    async def _translated(self, answer: Answer, translator: StreamTranslator) -> AsyncIterator[bytes]:
        """The answer as the client reads it, piece by piece, with one end whatever happens."""
        pieces = answer.pieces()
        size = 0
        try:
            async for piece in pieces:
                if not self._told.sent:
                    self._told.hears()
                data = translator.feed(piece)
                size += len(piece)
                if data:
                    yield data if translator.failure is None else self._services.own_keys.hidden_bytes(data)
                if translator.is_over:
                    break
                if size > MOST_ANSWER:
                    yield translator.fail(Failure("server", f"the answer is longer than {MOST_ANSWER} bytes"))
                    break
            if translator.is_over and translator.failure is None:
                async for data in _after_end(pieces, translator):
                    yield data
        except ProviderError as error:
            data = translator.fail(error)
        except Exception:
            yield translator.fail(Failure("server", "the gateway failed in the middle of the answer"))
            raise
        else:
            is_much = size > LARGE and not translator.is_over  # an answer that came whole after all
            data = await asyncio.to_thread(translator.finish) if is_much else translator.finish()
        if data:
            yield data if translator.failure is None else self._services.own_keys.hidden_bytes(data)

    async def _streamed(self, out: ConvertedRequest, translator: StreamTranslator, upstream: Upstream) -> None:
        """The stream is over, and its end not yet sent."""
        if translator.failure is not None:
            return
        body = translator.final_body if self._door.source == RESPONSES else None
        await self._keep(out, translator.said, translator.reply, upstream, body)
        if self._shown is not None:
            self._show_stream(self._shown, translator.reply, upstream)

    def _show_stream(self, shown: Request, reply: Reply, upstream: Upstream) -> None:
        """Show middleware what was streamed. It is too late for it to change or refuse anything."""
        protocol = self._profile(self._door.source).protocol
        try:
            self._services.chain.after_stream(
                shown, reply, protocol=protocol, source=self._door.source, provider=upstream.target
            )
        except (InputError, MiddlewareError) as error:
            self._told.error = f"a middleware failed on what was streamed: {error}"

    def _tell_stream(self, translator: StreamTranslator) -> None:
        self._told.reply_entries = translator.report.entries
        self._told.usage = _usage(translator.reply)
        if translator.failure is not None:
            self._told.is_broken = True
            self._told.failures.append((self._told.upstream, translator.failure.kind))
            said = f"{translator.failure.kind}: {translator.failure.message}"
            self._told.error = self._services.own_keys.hidden(said)

    async def _keep(
        self, out: ConvertedRequest, said: Reply, told: Reply, upstream: Upstream, body: Fields | None
    ) -> None:
        """Keep what the client does not: for its own next request, or because its protocol says so."""
        self._told.usage, self._told.stop, self._told.reply_model = _usage(told), told.stop or "", said.model
        client = self._request.client
        try:
            async with asyncio.timeout(STORE_PATIENCE):
                await self._kept(client, out, said, told, upstream, body)
        except StoreError as error:  # the answer is there, and it is the client's
            self._told.error = f"nothing was kept: {error}"
            self._told.store_errors += 1
        except TimeoutError:  # what was queued is kept later
            self._told.error = f"the store took longer than {STORE_PATIENCE:g} s to keep the answer"
            self._told.store_errors += 1

    async def _kept(
        self, client: str, out: ConvertedRequest, said: Reply, told: Reply, upstream: Upstream, body: Fields | None
    ) -> None:
        if self._services.vault.serves(out.source, out.target, is_renamed=self._asked.model != out.model):
            home = upstream.home(out.model, out.target.name)
            await self._services.vault.keep(client, self._asked, said, told, home)
        if body is not None and self._door.source == RESPONSES:
            stored_by = upstream.name if out.target.protocol == RESPONSES else ""
            await self._services.responses.keep(client, await self._apart(self._given_fields), body, home=stored_by)

    def _given_fields(self) -> Fields:
        """The request as the client sent it."""
        fields: Fields = jsontext.parse(self._request.body, limits=self._services.limits).value
        return fields

    def _headers(self, out: ConvertedRequest, answer: Answer, upstream: Upstream) -> Headers:
        simulated = " (simulated)" if upstream.is_simulated else ""
        headers = {
            "x-toolglot-request": self._told.id,
            "x-toolglot-report": header_of(self._told.entries, is_same=out.data is self._request.body),
            "x-toolglot-upstream": f"{upstream.name}/{out.model}{simulated}",
        }
        given = answer.headers
        if out.source.protocol == out.target.protocol:
            headers.update({name: value for name, value in given.items() if name.startswith(_KEPT)})
        named = given.get("request-id") or given.get("x-request-id") or self._told.id
        headers["request-id" if out.source.protocol == "anthropic" else "x-request-id"] = named
        return header_pairs({name: self._services.own_keys.hidden(value) for name, value in headers.items()})


async def _after_end(pieces: AsyncIterator[bytes], translator: StreamTranslator) -> AsyncIterator[bytes]:
    """What follows the end of an answer: a last mark, and the end of the body, which gives the connection back."""
    end = asyncio.get_running_loop().time() + AFTER_END
    size = 0
    while size < MOST_AFTER_END:
        try:
            async with asyncio.timeout_at(end):
                piece = await anext(pieces, b"")
        except (TimeoutError, ProviderError):
            return  # the client has its answer
        if not piece:
            return
        size += len(piece)
        if data := translator.feed(piece):
            yield data


async def _failure(answer: Answer, out: ConvertedRequest) -> Failure:
    """Why a provider did not answer. Its own body is for its own clients: others of the protocol write another one."""
    target = out.target
    try:
        data = await answer.whole(MOST_ANSWER)
    finally:
        await answer.close()
    failure = codec(target.protocol).errors.decode(answer.status, data, answer.headers, target=target.name)
    if failure is None:
        return Failure("server", f"the provider answered with status {answer.status}", answer.status)
    return failure if out.source.name == target.name else replace(failure, extra=None)


def _usage(reply: Reply) -> dict[str, int] | None:
    if reply.usage is None:
        return None
    counts = {name: getattr(reply.usage, name) for name in reply.usage.__struct_fields__ if name != "extra"}
    return {name: count for name, count in counts.items() if count is not None}


def _asking_encrypted(conversation: Conversation, profile: Profile) -> Conversation:
    """Ask for reasoning in a form that can be sent back, where the provider is not to store it and the model thinks."""
    if profile.reasoning.default == "off" and conversation.options.reasoning is None:
        return conversation
    extra = conversation.extra or {}
    own = {"store": False, "include": ["reasoning.encrypted_content"], **extra.get(RESPONSES, {})}
    return replace(conversation, extra={**extra, RESPONSES: own})
