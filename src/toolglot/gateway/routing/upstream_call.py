"""The call of an upstream for a client's request, with retries.

    vault → settings of the route → render → circuit breaker → upstream

Whether it is sent again is decided in `upstream/retry.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from toolglot import profiles
from toolglot.conversation import Conversation, Failure, Issuer
from toolglot.conversation.report import Entry
from toolglot.errors import RefusedError
from toolglot.gateway.accounting.cache_losses import CacheUse, watch_key
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RecordedRendering, RequestRecord
from toolglot.gateway.routing.cache_keys import affinity_headers, cache_key, session_of, with_cache_key
from toolglot.gateway.routing.compaction import ContextEditor, EditedContext
from toolglot.gateway.routing.foreign_objects import refuse_foreign_objects
from toolglot.gateway.routing.search_work import SearchWork
from toolglot.gateway.services import Services
from toolglot.gateway.state.vault import without_opaque
from toolglot.policy import Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import StoreError
from toolglot.translate.requests import ConvertedRequest, ReceivedRequest
from toolglot.upstream import HttpResponse, Upstream
from toolglot.upstream.breaker import Breaker
from toolglot.upstream.cache_prices import cost_of_markers
from toolglot.upstream.context_limit import may_overflow, overflow_of
from toolglot.upstream.failover import may_fail_over
from toolglot.upstream.failures import failure_of
from toolglot.upstream.protocol_choice import RESPONSES, report_target, request_encrypted_reasoning, target_for
from toolglot.upstream.retry import Retries
from toolglot.upstream.routing.load_balancing import conversation_key
from toolglot.upstream.routing.request_settings import apply_settings
from toolglot.upstream.routing.routes import Route
from toolglot.upstream.settings import RouteSettings

T = TypeVar("T")

_EMPTY: Final = Conversation()


class UpstreamReply(NamedTuple):
    """A response that has begun, and the upstream that sends it."""

    out: ConvertedRequest
    response: HttpResponse
    upstream: Upstream
    breaker: Breaker


async def in_step(others: int) -> None:
    """Let the other requests in progress come to the same step.

    The code and data of a step are in the processor's cache from the second request on: under load this saves a
    twentieth of the time of a request.
    """
    if others > 0:
        await asyncio.sleep(0)


class UpstreamCall:
    """Calls upstreams for one request of a client."""

    def __init__(
        self, services: Services, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord
    ) -> None:
        self._services = services
        self._endpoint = endpoint
        self._request = request
        self._record = record
        self.values = request.values
        """The number of JSON values in the request that are worked on: fewer if its beginning is known."""
        self.size = len(request.body)
        """The bytes of the request that are worked on."""
        self.source: Profile = self.profile(endpoint.source)
        """The profile of the client's protocol."""
        self.original = _EMPTY
        """The conversation as the client sent it."""
        self._sent = _EMPTY
        """The same with what the vault and the settings of the route added."""
        self.settings: RouteSettings | None = None
        """The settings of the route."""
        self._applied: list[Entry] = []
        """What they changed, and the keys that were added."""
        self._affinity: dict[str, str] = {}
        """The header that keeps the conversation where its prompt cache is."""
        self.edit: ContextEditor | None = None
        """What the client wants to be done to its context, and the upstream does not do."""
        self._edited = EditedContext(_EMPTY, [])
        self.search: SearchWork | None = None
        """The web searches of the request that its upstream cannot run."""
        self.path = ""
        """The path at the upstream, if it is not the usual one of its protocol."""
        self._has_noted_cache = False

    def profile(self, name: str, model: str = "") -> Profile:
        return _profile(name, model, self._services.config.overrides)

    @property
    def policy(self) -> Policy:
        """The policy of the route."""
        own = self.settings.policy if self.settings is not None else None
        return own if own is not None else self._services.config.policy

    def target(self, upstream: Upstream, conversation: Conversation) -> str:
        """The profile to render for, if a provider has several: the client's protocol, or the one for the model."""
        if not upstream.also:
            return upstream.target
        return target_for(upstream, self._first_profile(upstream), conversation)

    def _first_profile(self, upstream: Upstream) -> Profile:
        """The profile that a request is for unless its model needs another one."""
        source = self._endpoint.source
        return self.profile(source if source in upstream.also else upstream.target, self._record.route.model)

    async def render(
        self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry] = ()
    ) -> ConvertedRequest:
        """The request for the upstream, with what the vault holds for it."""
        conversation = self.original
        target = self.target(upstream, conversation)
        profile, destination = self.profile(target, model), upstream.issuer(model, target)
        reported = [*entries]
        moved = report_target(self.source, self._first_profile(upstream), target) if upstream.also else None
        if moved is not None:
            reported.append(moved)
        vault = self._services.vault
        if vault.may_recall(self.original, self.source, profile, destination):
            try:
                conversation, recalled = await vault.recall(
                    self._request.client, self.original, self.source, profile, destination, self.offload
                )
                reported += recalled
            except StoreError as error:  # most requests work without it
                self._record.response.store_failed(f"nothing was recalled: {error}")
        if self.edit is not None:
            edit, before = self.edit, conversation
            self._edited = await self.offload(lambda: edit(before))
            conversation = self._edited.conversation
            reported += self._edited.entries
        if self.search is not None:
            conversation, declared = self.search.for_upstream(conversation)
            reported += declared
        self._applied = []
        if self.settings is not None:
            conversation, self._applied = apply_settings(conversation, self.settings)
        conversation = self._with_cache_key(conversation, upstream, profile)
        reported += self._applied
        self._sent = conversation
        out = await self.offload(lambda: self._render(received, conversation, profile, destination, reported))
        await refuse_foreign_objects(self._services, self._request.client, profile.protocol, out.data, self.values)
        return out

    def _with_cache_key(self, conversation: Conversation, upstream: Upstream, profile: Profile) -> Conversation:
        """The conversation with its key for the prompt cache; the same for a client of the provider itself."""
        self._affinity = {}
        is_own = self.source.name == upstream.target or self.source.name in upstream.also
        if is_own or not (profile.cache.key_field or profile.cache.affinity_header):
            return conversation
        session = self._session(conversation)
        if not session:
            return conversation
        key = cache_key(session, self._request.client, upstream.key)
        conversation, added = with_cache_key(conversation, self.source, profile, key)
        self._affinity, sent = affinity_headers(profile, key)
        self._applied += [*added, *sent]
        return conversation

    def _session(self, conversation: Conversation) -> str:
        """What the client calls the conversation, if that is used."""
        if not self._services.config.gateway.cache_keys:
            return ""
        return session_of(self._request.headers, conversation, self.source)

    def balancing_key(self, conversation: Conversation) -> str:
        """What decides which of several upstreams gets the conversation."""
        return conversation_key(self._request.client, conversation, self._session(conversation))

    def note_cache(self, *, is_sum: bool) -> None:
        """Note what the reply says of the prompt cache, once, and report what was cached before and read again.

        is_sum: whether the counts are those of several calls.
        """
        record, watch = self._record, self._services.cache_watch
        counts = record.reply.usage
        if self._has_noted_cache or not counts or not record.response.is_good:
            return
        if not (counts.get("cache_read_tokens") or counts.get("cache_write_tokens") or len(watch)):
            return
        self._has_noted_cache = True
        conversation, route = self.original, record.route
        key = watch_key(self._request.client, self._session(conversation), conversation)
        if is_sum or self.search is not None:
            watch.forget(key)
            return
        use = CacheUse(
            upstream=route.upstream,
            model=route.model,
            is_simulated=route.is_simulated,
            turns=len(conversation.turns),
            counts=counts,
            entries=record.sent.entries,
            ttl_seconds=self.profile(record.sent.target, route.model).cache.default_ttl_seconds,
            seconds=record.times.so_far,
        )
        loss = watch.note(key, use, self._services.meter.prices)
        if loss is not None:
            record.reply.lose_cache(loss)

    @property
    def is_much(self) -> bool:
        """Whether the client's request is worked on in a thread."""
        return offloading.is_much(self.values, self.size)

    async def offload(self, work: Callable[[], T]) -> T:
        """Run work on the client's request, in a thread if there is much to do."""
        return await offloading.run(self.values, self.size, work)

    def _render(
        self,
        received: ReceivedRequest,
        conversation: Conversation,
        profile: Profile,
        destination: Issuer,
        entries: list[Entry],
    ) -> ConvertedRequest:
        if self.source.protocol != profile.protocol == RESPONSES:
            conversation = request_encrypted_reasoning(conversation, profile)
        out = received.for_target(
            profile.name,
            model=destination.model,
            destination=destination,
            entries=entries,
            policy=self.policy,
            conversation=conversation,
        )
        if out.rendered.has_placed_markers:
            price = self._services.meter.prices.of(destination.model, self._record.route.upstream)
            out.report.add(cost_of_markers(price, profile))
        if self.edit is not None:
            out.head = self._edited.head
        self._record.sent = RecordedRendering(profile.name, out.data, count_entries(out.report.entries))
        return out

    # --- calling ------------------------------------------------------------------------------------

    async def call(
        self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry] = ()
    ) -> UpstreamReply:
        """The response of an upstream, as soon as it begins. The caller ends the breaker's count."""
        out = await self.render(received, upstream, model, entries)
        if may_overflow(out) and (overflow := await self.offload(lambda: overflow_of(out))) is not None:
            raise ProviderError(overflow)
        breaker = self._services.upstreams.breaker(upstream)
        await in_step(breaker.running)
        retries: Retries | None = None
        is_stripped = False
        while True:
            response, failure = await self._try(out, upstream, breaker)
            if response is not None:
                if is_stripped:
                    destination = upstream.issuer(model, out.target.name)
                    self._services.vault.mark_refused(self._request.client, self.original, destination)
                return UpstreamReply(out, response, upstream, breaker)
            retries = retries or Retries(upstream.retries, upstream.retry_seconds)
            retries.add(failure, out.data)
            stripped = self._without_opaque(received, out, upstream, entries) if retries.may_strip(failure) else None
            if stripped is not None and not retries.was_refused(stripped.data):
                out, is_stripped = stripped, True
            elif (wait := retries.wait(failure)) is not None:
                await asyncio.sleep(wait)
            else:
                raise ProviderError(failure)
            self._record.calls.retry(failure.message[:200])

    async def _try(
        self, out: ConvertedRequest, upstream: Upstream, breaker: Breaker
    ) -> tuple[HttpResponse, Failure] | tuple[None, Failure]:
        """One attempt: the response, or why there is none."""
        reason = breaker.refusal()
        if reason:
            wait = breaker.wait or 1.0
            return None, Failure("overloaded", f"{upstream.name} is not called: {reason}", retry_after=wait)
        breaker.begin()
        is_open = False
        try:
            traced = self._record.begin_call(upstream)
            headers = self._headers_for(out) if out.source.protocol == out.target.protocol else {}
            headers |= self._affinity
            response = await upstream.call(out, headers | traced if traced else headers, self.path)
            self._services.upstreams.last_headers[upstream.name] = response.headers
            if response.status < 300:
                is_open = True
                return response, NO_FAILURE
            failure = await failure_of(response, out, self._services.reply_limits.max_bytes)
        except ProviderError as error:
            failure = error.failure
        finally:
            if not is_open:
                breaker.end()
                breaker.gave_up()
        breaker.failed(failure)
        self._record.calls.fail(upstream.name, failure.kind)
        return None, failure

    def _without_opaque(
        self, received: ReceivedRequest, out: ConvertedRequest, upstream: Upstream, entries: Sequence[Entry]
    ) -> ConvertedRequest:
        """The request without the thinking and signatures that the provider does not recognise as its own."""
        self._sent, dropped = without_opaque(self._sent)
        destination = upstream.issuer(out.model, out.target.name)
        changed = [*entries, *self._edited.entries, *self._applied, *dropped]
        return self._render(received, self._sent, out.target, destination, changed)

    def drop_sent(self) -> None:
        """Forget what was sent: it is not sent again."""
        self._sent, self._edited = _EMPTY, EditedContext(_EMPTY, [])

    async def use(self, exchange: UpstreamReply, read: Callable[[UpstreamReply], Awaitable[Failure | None]]) -> None:
        """Read a response to its end, and record with the breaker how it went. `read` returns how the reply failed."""
        breaker = exchange.breaker
        try:
            failure = await read(exchange)
        except GatewayRefusal:  # the upstream did nothing wrong
            breaker.gave_up()
            raise
        except ProviderError as error:
            breaker.failed(error.failure)
            self._record.calls.fail(exchange.upstream.name, error.failure.kind)
            raise
        except BaseException:
            breaker.gave_up()
            raise
        else:
            breaker.failed(failure) if failure is not None else breaker.succeeded()
        finally:
            breaker.end()
            await exchange.response.close()

    def _headers_for(self, out: ConvertedRequest) -> dict[str, str]:
        """The client's headers that a provider of the same protocol gets."""
        original = self._request.headers
        return {name: original[name] for name in get(out.source.protocol).forwarded_headers if name in original}


@lru_cache(maxsize=1024)
def _profile(name: str, model: str, overrides: Overrides | None) -> Profile:
    return profiles.get(name, model, overrides=overrides)


NO_FAILURE: Final = Failure("server")


def following_routes(
    routes: Sequence[Route], error: Exception, window_of: Callable[[Route], int | None]
) -> Sequence[Route]:
    """The routes that are tried after the first one failed: for a conversation that was too long, those whose model may
    take more.

    window_of: the context of a route's model in tokens; None: not known.
    """
    if not error_allows_failover(error):
        return ()
    if not isinstance(error, ProviderError) or error.failure.kind != "context_overflow":
        return routes[1:]
    refused = window_of(routes[0]) or 0
    return [route for route in routes[1:] if (window := window_of(route)) is None or window > refused]


def error_allows_failover(error: Exception) -> bool:
    """Whether another upstream may answer. What the gateway itself refuses, it refuses for all of them."""
    if isinstance(error, ProviderError) and not isinstance(error, GatewayRefusal):
        return may_fail_over(error.failure)
    return isinstance(error, RefusedError)
