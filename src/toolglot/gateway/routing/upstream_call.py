"""One upstream is asked: what is sent to it, how often, and what of its refusals can be helped.

A provider that is busy, down or silent is asked again, as often and as late as the configuration allows and it says
itself. One that does not know what came back as its own is asked once more without that. What was refused for what it
says is never sent again as it was.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from toolglot import profiles
from toolglot.conversation import Conversation, Failure, Issuer
from toolglot.conversation.report import Entry
from toolglot.errors import RefusedError
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RecordedRendering, RequestRecord
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
from toolglot.upstream.failures import failure_of, is_opaque_refused, wait_before
from toolglot.upstream.protocol_choice import RESPONSES, asking_encrypted, target_for
from toolglot.upstream.routing.request_settings import apply_settings
from toolglot.upstream.settings import RouteSettings

T = TypeVar("T")

_NOTHING_SAID: Final = Conversation()


class UpstreamReply(NamedTuple):
    """An answer that has begun, and who gives it."""

    out: ConvertedRequest
    answer: HttpResponse
    upstream: Upstream
    breaker: Breaker


async def in_step(others: int) -> None:
    """Let the other requests that are under way come to the same step.

    What several do one after the other, the processor has at hand from the second one on: under load a request takes
    a twentieth less of its time than one that goes through all steps before the next may begin.
    """
    if others > 0:
        await asyncio.sleep(0)


class UpstreamCall:
    """Asks for one request of a client."""

    def __init__(
        self, services: Services, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord
    ) -> None:
        self._services = services
        self._endpoint = endpoint
        self._request = request
        self._record = record
        self.values = request.values
        """How many JSON values there are to work on."""
        self.source: Profile = self.profile(endpoint.source)
        """What the client speaks."""
        self.said = _NOTHING_SAID
        """What the client said, as it said it."""
        self.settings: RouteSettings | None = None
        """What the name that was asked for says besides where it leads."""
        self._set: list[Entry] = []
        """What was changed because of that."""

    def profile(self, name: str, model: str = "") -> Profile:
        return _profile(name, model, self._services.config.overrides)

    @property
    def policy(self) -> Policy:
        """What to do where there is a choice, on the route that is taken."""
        own = self.settings.policy if self.settings is not None else None
        return own if own is not None else self._services.config.policy

    def target(self, upstream: Upstream, conversation: Conversation) -> str:
        """The protocol of a provider that has several: the client's own, or the one that takes tools."""
        if self._endpoint.source in upstream.also:
            return self._endpoint.source
        if not upstream.also:
            return upstream.target
        return target_for(upstream, self.profile(upstream.target, self._record.route.model), conversation)

    async def rendered(
        self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry] = ()
    ) -> ConvertedRequest:
        """What the upstream is sent, with what was kept for it."""
        received.conversation = self.said
        target = self.target(upstream, self.said)
        profile, home = self.profile(target, model), upstream.home(model, target)
        told = [*entries]
        vault = self._services.vault
        if vault.may_recall(self.said, self.source, profile, home):
            try:
                received.conversation, recalled = await vault.recall(
                    self._request.client, self.said, self.source, profile, home, self.apart
                )
                told += recalled
            except StoreError as error:  # as if nothing had been kept: most requests are good without
                self._record.response.store_failed(f"nothing was recalled: {error}")
        if self.settings is not None:
            received.conversation, self._set = apply_settings(received.conversation, self.settings)
            told += self._set
        return await self.apart(lambda: self._render(received, profile, home, told))

    @property
    def is_much(self) -> bool:
        """Whether the client's request is worked on in a thread."""
        return offloading.is_much(self.values, len(self._request.body))

    async def apart(self, work: Callable[[], T]) -> T:
        """What work on the client's request gives, done in a thread if there is much to do."""
        return await offloading.run(self.values, len(self._request.body), work)

    def _render(
        self, received: ReceivedRequest, profile: Profile, home: Issuer, entries: list[Entry]
    ) -> ConvertedRequest:
        if self.source.protocol != profile.protocol == RESPONSES:
            received.conversation = asking_encrypted(received.conversation, profile)
        out = received.for_target(profile.name, model=home.model, destination=home, entries=entries, policy=self.policy)
        self._record.sent = RecordedRendering(profile.name, out.data, count_entries(out.report.entries))
        return out

    # --- asking -------------------------------------------------------------------------------------

    async def asked(
        self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry] = ()
    ) -> UpstreamReply:
        """The answer of an upstream, as soon as it begins. Who gets it ends the breaker's count."""
        out = await self.rendered(received, upstream, model, entries)
        breaker, tries = self._services.upstreams.breaker(upstream), upstream.retries
        await in_step(breaker.running)
        is_bare = False
        while True:
            answer, failure = await self._try(out, upstream, breaker)
            if answer is not None:
                if is_bare:
                    home = upstream.home(model, out.target.name)
                    self._services.vault.spoil(self._request.client, self.said, home)
                return UpstreamReply(out, answer, upstream, breaker)
            again = None if is_bare else self._without_refused(received, out, failure, upstream, entries)
            if again is not None:
                out, is_bare = again, True
            elif tries and (wait := _wait(failure, upstream, upstream.retries - tries + 1)) is not None:
                tries -= 1
                await asyncio.sleep(wait)
            else:
                raise ProviderError(failure)
            self._record.calls.retry(failure.message[:200])

    async def _try(
        self, out: ConvertedRequest, upstream: Upstream, breaker: Breaker
    ) -> tuple[HttpResponse, Failure] | tuple[None, Failure]:
        """One request: its answer, or why there is none."""
        reason = breaker.refusal()
        if reason:
            wait = breaker.wait or 1.0
            return None, Failure("overloaded", f"{upstream.name} is not asked: {reason}", retry_after=wait)
        breaker.begin()
        is_open = False
        try:
            traced = self._record.begin_call(upstream)
            headers = self._headers_for(out) if out.source.protocol == out.target.protocol else {}
            answer = await upstream.ask(out, headers | traced if traced else headers)
            if answer.status < 300:
                is_open = True
                return answer, NO_FAILURE
            failure = await failure_of(answer, out, self._services.answer_limits.max_bytes)
        except ProviderError as error:
            failure = error.failure
        finally:
            if not is_open:
                breaker.end()
                breaker.gave_up()
        breaker.failed(failure)
        self._record.calls.fail(upstream.name, failure.kind)
        return None, failure

    def _without_refused(
        self,
        received: ReceivedRequest,
        out: ConvertedRequest,
        failure: Failure,
        upstream: Upstream,
        entries: Sequence[Entry],
    ) -> ConvertedRequest | None:
        """The request without what the provider does not know as its own; None where that is not what is wrong."""
        if not is_opaque_refused(failure):
            return None
        received.conversation, dropped = without_opaque(received.conversation)
        home = upstream.home(out.model, out.target.name)
        again = self._render(received, out.target, home, [*entries, *self._set, *dropped])
        return again if again.data != out.data else None

    def _headers_for(self, out: ConvertedRequest) -> dict[str, str]:
        """What a client said in headers, for a provider of its own protocol."""
        given = self._request.headers
        return {name: given[name] for name in get(out.source.protocol).forwarded_headers if name in given}


def _wait(failure: Failure, upstream: Upstream, tried: int) -> float | None:
    spread = random.random()  # noqa: S311 - so that not all come at once
    return wait_before(failure, tried, upstream.retry_seconds, spread)


@lru_cache(maxsize=1024)
def _profile(name: str, model: str, overrides: Overrides | None) -> Profile:
    return profiles.get(name, model, overrides=overrides)


NO_FAILURE: Final = Failure("server")


def moves_on(error: Exception) -> bool:
    """Whether another upstream may do what this one did not."""
    if isinstance(error, ProviderError) and not isinstance(error, GatewayRefusal):
        return error.failure.kind != "content_filter"
    return isinstance(error, RefusedError)
