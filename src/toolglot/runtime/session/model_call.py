"""One call of a model for one turn: the request, the response, and its events.

    request ──▶ response ──▶ events ──▶ Attempt      complete: it can be committed
       ▲           │ failed: nothing of it enters the history; what it had shown is withdrawn
       └── again: later, without what was refused, or with the next model of the fallback (`loop.py`)

Laws: every attempt starts from what was committed. Opaque items are sent only to their issuer: the endpoint, account
and model that made them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import anyio
from anyio import CancelScope
from msgspec.structs import replace

from toolglot.conversation import Conversation, Failure, Issuer, Reply, ToolCall, Turn
from toolglot.conversation.events import BlockStarted, TextDelta, ThinkingDelta
from toolglot.conversation.events import Event as StreamEvent
from toolglot.conversation.report import Entry
from toolglot.history.attempts import Attempt
from toolglot.policy import Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.fields.shared_fields import asking_usage
from toolglot.runtime.session.events import AttemptDiscarded, CallReceived, SessionEvent, TextReceived, ThinkingReceived
from toolglot.runtime.session.models import ModelChoice
from toolglot.translate.requests import ConvertedRequest, request_for
from toolglot.translate.stream_reader import StreamReader
from toolglot.upstream.failures import failure_of
from toolglot.upstream.http.transport import trailing_pieces
from toolglot.upstream.protocol_choice import profile_for, request_encrypted_reasoning

MAX_REPLY_BYTES: Final = 64 * 1024 * 1024
RUN_STOPPED: Final = "the run was stopped"
"""Why the attempt of a stopped run is discarded."""
STOPPED_WITH_ERROR: Final = Failure("bad_output", "the model broke off: what it wrote could not be used")
_NOTHING: Final = Reply(Turn("assistant"))

Take = Callable[[list[StreamEvent]], None]
WaitForListener = Callable[[], Awaitable[None]]


class Prepared(NamedTuple):
    """A request that is ready to be sent, and its model."""

    choice: ModelChoice
    profile: Profile
    destination: Issuer
    out: ConvertedRequest


class AttemptResult(NamedTuple):
    """The result of one call."""

    reply: Reply
    failure: Failure | None
    """Why there is no complete reply; None: it is complete."""
    entries: tuple[Entry, ...] = ()
    """What was repaired or guessed in the reply."""


def prepare(
    conversation: Conversation,
    choice: ModelChoice,
    *,
    policy: Policy,
    overrides: Overrides | None = None,
    refused: frozenset[str] = frozenset(),
) -> Prepared:
    """The request for the next turn. `refused` are the keys of turns whose opaque items the model refused."""
    upstream = choice.upstream
    profile = profile_for(upstream, choice.model, conversation, overrides=overrides)
    destination = upstream.issuer(choice.model, profile.name)
    sent = request_encrypted_reasoning(_without_issuers(conversation, refused), profile)
    sent = asking_usage(replace(sent, options=replace(sent.options, stream=True)), profile)
    out = request_for(
        sent, target=profile.name, model=choice.model, policy=policy, overrides=overrides, destination=destination
    )
    return Prepared(choice, profile, destination, out)


def _without_issuers(conversation: Conversation, refused: frozenset[str]) -> Conversation:
    """The conversation with turns of an unknown issuer: their opaque items are not sent."""
    if not refused:
        return conversation
    turns = [replace(turn, issuer=None) if turn.key in refused else turn for turn in conversation.turns]
    return replace(conversation, turns=tuple(turns))


async def call_model(
    prepared: Prepared,
    *,
    policy: Policy,
    overrides: Overrides | None,
    take: Take,
    wait_for_listener: WaitForListener | None = None,
) -> AttemptResult:
    """Call a model once. `take` gets the events of the reply as they arrive."""
    out = prepared.out
    try:
        response = await prepared.choice.upstream.call(out)
        if response.status >= 300:
            return AttemptResult(_NOTHING, _without_secrets(await failure_of(response, out), prepared))
    except ProviderError as error:
        return AttemptResult(_NOTHING, _without_secrets(error.failure, prepared))
    reader = StreamReader(source=out.target.name, request=out, policy=policy, overrides=overrides)
    try:
        await _read(response.pieces(), reader, take, wait_for_listener)
    except ProviderError as error:
        take(reader.fail(error))
    finally:
        reader.close()
        with CancelScope(shield=True):
            await response.close()
    failure = reader.failure
    if failure is None and reader.reply.stop == "error":
        failure = STOPPED_WITH_ERROR
    return AttemptResult(reader.reply, failure and _without_secrets(failure, prepared), reader.report.entries)


def _without_secrets(failure: Failure, prepared: Prepared) -> Failure:
    """The failure without keys that a provider may repeat."""
    mask = prepared.choice.upstream.mask_secrets
    return replace(
        failure, message=mask(failure.message), code=mask(failure.code), param=mask(failure.param), extra=None
    )


async def _read(
    pieces: AsyncIterator[bytes], reader: StreamReader, take: Take, wait_for_listener: WaitForListener | None
) -> None:
    """Read a response to its end."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        events = reader.feed(piece)
        if events:
            take(events)
        if reader.is_over:
            break
        if size > MAX_REPLY_BYTES:
            take(reader.fail(Failure("server", f"the reply is longer than {MAX_REPLY_BYTES} bytes")))
            return
        if wait_for_listener is not None:
            await wait_for_listener()
    if reader.is_over:
        async for _ in trailing_pieces(pieces):  # to its end, so that the connection can be used again
            pass
    else:
        take(reader.finish())


def emit_shown(events: list[StreamEvent], emit: Callable[[SessionEvent], None]) -> None:
    """Report what a listener can show of a reply while it arrives."""
    for event in events:
        kind = type(event)
        if kind is TextDelta:
            emit(TextReceived(event.text))  # type: ignore[union-attr]
        elif kind is ThinkingDelta:
            emit(ThinkingReceived(event.text))  # type: ignore[union-attr]
        elif isinstance(event, BlockStarted) and isinstance(event.block, ToolCall):
            emit(CallReceived(event.block))


async def call_for_turn(
    prepared: Prepared,
    attempt: Attempt,
    *,
    policy: Policy,
    overrides: Overrides | None,
    emit: Callable[[SessionEvent], None],
    wait_for_listener: WaitForListener,
) -> AttemptResult:
    """Call a model once for a turn. A failed attempt is discarded, and what the listener saw of it is withdrawn. If
    this is cancelled, the attempt stays open: the caller decides what is kept."""

    def take(events: list[StreamEvent]) -> None:
        attempt.add(events)
        emit_shown(events, emit)

    try:
        found = await call_model(
            prepared, policy=policy, overrides=overrides, take=take, wait_for_listener=wait_for_listener
        )
    except anyio.get_cancelled_exc_class():
        raise
    except BaseException:
        discard(attempt, RUN_STOPPED, prepared.choice.name, emit)
        raise
    if found.failure is not None:
        discard(attempt, found.failure.message, prepared.choice.name, emit)
    return found


def discard(attempt: Attempt, reason: str, model: str, emit: Callable[[SessionEvent], None]) -> None:
    """Discard an attempt, and withdraw what it has shown."""
    if attempt.shown:
        emit(AttemptDiscarded(attempt.shown, reason, model))
    attempt.discard(reason)
