"""Asking a model for one turn: what is sent, how often, to whom, and what of a refusal can be helped.

    request ──▶ answer ──▶ events ──▶ Attempt        whole: it can be committed
       ▲          │ failed: nothing of it is history; what it had shown is taken back
       └── again: later, without what was refused, or by the next of the fallback

Laws: what was refused for what it says is never sent again as it was. Every try starts from what was committed.
Opaque things go home only: to the endpoint, account and model that made them.
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
from toolglot.runtime.session.events import CallSeen, Dropped, Event, Said, Thought
from toolglot.runtime.session.models import ModelChoice
from toolglot.translate.requests import ConvertedRequest, request_for
from toolglot.translate.streams import StreamReader
from toolglot.upstream.failures import failure_of
from toolglot.upstream.http.transport import trailing_pieces
from toolglot.upstream.protocol_choice import profile_for, request_encrypted_reasoning

MOST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer."""
LEFT: Final = "it was left"
"""Why an attempt is dropped whose run was stopped."""
STOPPED_WITH_ERROR: Final = Failure("bad_output", "the model broke off: what it wrote could not be used")
_NOTHING: Final = Reply(Turn("assistant"))

Take = Callable[[list[StreamEvent]], None]
Heard = Callable[[], Awaitable[None]]


class Prepared(NamedTuple):
    """A request that is ready to go, and who gets it."""

    choice: ModelChoice
    profile: Profile
    home: Issuer
    out: ConvertedRequest


class AttemptResult(NamedTuple):
    """What came of asking once."""

    reply: Reply
    failure: Failure | None
    """Why the answer is not there or not whole; None: it is whole."""
    entries: tuple[Entry, ...] = ()
    """What was mended or guessed in the answer."""


def prepare(
    conversation: Conversation,
    choice: ModelChoice,
    *,
    policy: Policy,
    overrides: Overrides | None = None,
    refused: frozenset[str] = frozenset(),
) -> Prepared:
    """The request that asks a model to go on. `refused` are the keys of turns whose opaque things it does not know."""
    upstream = choice.upstream
    profile = profile_for(upstream, choice.model, conversation, overrides=overrides)
    home = upstream.issuer(choice.model, profile.name)
    asked = request_encrypted_reasoning(_bare(conversation, refused), profile)
    asked = asking_usage(replace(asked, options=replace(asked.options, stream=True)), profile)
    out = request_for(
        asked, target=profile.name, model=choice.model, policy=policy, overrides=overrides, destination=home
    )
    return Prepared(choice, profile, home, out)


def _bare(conversation: Conversation, refused: frozenset[str]) -> Conversation:
    """The conversation with turns that nobody made: nothing opaque in them is sent."""
    if not refused:
        return conversation
    turns = [replace(turn, issuer=None) if turn.key in refused else turn for turn in conversation.turns]
    return replace(conversation, turns=tuple(turns))


async def ask(
    prepared: Prepared, *, policy: Policy, overrides: Overrides | None, take: Take, heard: Heard | None = None
) -> AttemptResult:
    """Ask once. `take` gets the events of the answer as they come; `heard` is awaited where a listener is behind."""
    out = prepared.out
    try:
        answer = await prepared.choice.upstream.call(out)
        if answer.status >= 300:
            return AttemptResult(_NOTHING, _told(await failure_of(answer, out), prepared))
    except ProviderError as error:
        return AttemptResult(_NOTHING, _told(error.failure, prepared))
    reader = StreamReader(source=out.target.name, request=out, policy=policy, overrides=overrides)
    try:
        await _read(answer.pieces(), reader, take, heard)
    except ProviderError as error:
        take(reader.fail(error))
    finally:
        reader.close()
        with CancelScope(shield=True):
            await answer.close()
    failure = reader.failure
    if failure is None and reader.reply.stop == "error":
        failure = STOPPED_WITH_ERROR
    return AttemptResult(reader.reply, failure and _told(failure, prepared), reader.report.entries)


def _told(failure: Failure, prepared: Prepared) -> Failure:
    """Why there is no answer, without the keys that a provider may repeat."""
    mask = prepared.choice.upstream.mask_secrets
    return replace(
        failure, message=mask(failure.message), code=mask(failure.code), param=mask(failure.param), extra=None
    )


async def _read(pieces: AsyncIterator[bytes], reader: StreamReader, take: Take, heard: Heard | None) -> None:
    """Read an answer to its end."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        events = reader.feed(piece)
        if events:
            take(events)
        if reader.is_over:
            break
        if size > MOST_ANSWER:
            take(reader.fail(Failure("server", f"the answer is longer than {MOST_ANSWER} bytes")))
            return
        if heard is not None:
            await heard()
    if reader.is_over:
        async for _ in trailing_pieces(pieces):  # to its end, so that the connection can be used again
            pass
    else:
        take(reader.finish())


def shown_events(events: list[StreamEvent], tell: Callable[[Event], None]) -> None:
    """Tell a listener what it can show of a model's answer while it comes."""
    for event in events:
        kind = type(event)
        if kind is TextDelta:
            tell(Said(event.text))  # type: ignore[union-attr]
        elif kind is ThinkingDelta:
            tell(Thought(event.text))  # type: ignore[union-attr]
        elif isinstance(event, BlockStarted) and isinstance(event.block, ToolCall):
            tell(CallSeen(event.block))


async def attempt(
    prepared: Prepared,
    trial: Attempt,
    *,
    policy: Policy,
    overrides: Overrides | None,
    tell: Callable[[Event], None],
    heard: Heard,
) -> AttemptResult:
    """Ask once for a turn. What failed is discarded, and taken back from who listens. Where this is cancelled the
    attempt stays open: whoever stopped it decides what is kept."""

    def take(events: list[StreamEvent]) -> None:
        trial.add(events)
        shown_events(events, tell)

    try:
        found = await ask(prepared, policy=policy, overrides=overrides, take=take, heard=heard)
    except anyio.get_cancelled_exc_class():
        raise
    except BaseException:
        drop(trial, LEFT, prepared.choice.name, tell)
        raise
    if found.failure is not None:
        drop(trial, found.failure.message, prepared.choice.name, tell)
    return found


def drop(trial: Attempt, reason: str, model: str, tell: Callable[[Event], None]) -> None:
    """Give a try up, and take back what it has shown."""
    if trial.shown:
        tell(Dropped(trial.shown, reason, model))
    trial.discard(reason)
