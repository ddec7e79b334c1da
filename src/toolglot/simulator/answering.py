"""One request in, one outcome out: route, key, JSON, referee, what must come back, script, faults, bytes.

Law: no I/O, and nothing raises: what goes wrong is told in the provider's own form.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.conversation import FailureKind
from toolglot.errors import InputError, quote
from toolglot.jsontext import parse
from toolglot.profiles import MAX_NAME, Overrides, Profile
from toolglot.protocols.base import codec, get
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import lint
from toolglot.simulator import listings, providers
from toolglot.simulator.ask import AcceptedRequest, ask_of, hash_of
from toolglot.simulator.memory import Memory
from toolglot.simulator.providers import MatchedPath, SimulatedProvider
from toolglot.simulator.replies import bodies, refusals, returned
from toolglot.simulator.replies.faults import (
    STATUSES,
    UNANSWERED,
    Fault,
    misfit,
    number,
    one_of,
    read_fault,
    settings,
    whole,
)
from toolglot.simulator.replies.json_bytes import encoded
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.seals import Sealer
from toolglot.simulator.replies.spoiling import spoil_body, spoil_plan
from toolglot.simulator.replies.streams import StreamSettings, frames_of, pieces_of
from toolglot.simulator.scripts.plan import ReplyPlan, plan
from toolglot.simulator.scripts.script import LONGEST_PACE, MOST_CALLS, ReplySpec, Script, ScriptRule

ORDERS: Final = "x-simulate"
"""The header of a request that orders a fault, or how its answer is given."""
_JSON: Final = {"content-type": "application/json"}


class SimulatedRequest(Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By names in small letters."""
    query: Mapping[str, str]
    body: bytes | None
    """None: larger than is taken."""


class SimulatedOutcome(Struct, kw_only=True):
    """What is sent, and how."""

    status: int
    headers: dict[str, str]
    pieces: list[bytes]
    pace: float = 0.0
    """Seconds between pieces."""
    waits: float = 0.0
    """Seconds before anything is sent."""
    breaks: bool = False
    """The connection breaks after the last piece."""
    length: int | None = None
    """Bytes that are announced; None for a stream."""
    provider: str = ""
    model: str = ""
    value: Any = None
    """The body of the request, where it is JSON."""
    rule: str = ""
    error: str = ""
    fault: str = ""
    answered_by: str = ""


class _RefusedError(Exception):
    """The way out for a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class Responder:
    """Answers requests by a script. Its state: how often rules were used, faults on order, what is stored."""

    def __init__(self, script: Script, clock: Callable[[], float], overrides: Overrides | None = None) -> None:
        self.script = script
        self.overrides = overrides
        self.faults: deque[Fault] = deque()
        self._clock = clock
        self._sealer = Sealer(script.seed)
        self._memory = Memory()
        self._uses = [0] * len(script.rules)

    def answer(self, request: SimulatedRequest) -> SimulatedOutcome:
        """What a request gets."""
        provider, call = providers.find(request.method, request.path, request.headers)
        job = _Job(self, request, provider, call)
        try:
            outcome = job.outcome()
        except _RefusedError as refused:
            outcome = job.refused(refused.refusal)
        outcome.provider, outcome.model, outcome.value = provider.name, job.model, job.value
        outcome.answered_by = job.answered_by
        return outcome

    # --- what jobs ask for --------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return int(self._clock())

    @property
    def sealer(self) -> Sealer:
        return self._sealer

    @property
    def memory(self) -> Memory:
        return self._memory

    def rule_for(self, ask: AcceptedRequest) -> int | None:
        """The place of the first rule that fits and is not used up."""
        for place, rule in enumerate(self.script.rules):
            if (rule.times is None or self._uses[place] < rule.times) and rule.when.fits(ask):
                return place
        return None

    def reply_of(self, place: int) -> tuple[ReplySpec | None, str]:
        """What a rule says next, and its name."""
        rule, use = self.script.rules[place], self._uses[place]
        last = min(use, len(rule.replies) - 1)
        return rule.reply_for(use), f"rules[{place}].replies[{last}]" if rule.replies else f"rules[{place}]"

    def use_up(self, place: int) -> None:
        self._uses[place] += 1

    def unused(self) -> list[str]:
        """Rules and replies that nobody got yet, and faults that are still on order."""
        found: list[str] = []
        for place, (rule, uses) in enumerate(zip(self.script.rules, self._uses, strict=True)):
            rest = range(uses, len(rule.replies)) if uses else ()
            found += [f"rules[{place}].replies[{reply}]" for reply in rest] if uses else [f"rules[{place}]"]
        return [*found, *(f"fault {fault.name}" for fault in self.faults)]


class _Job:
    """One request on its way to its outcome."""

    def __init__(
        self, desk: Responder, request: SimulatedRequest, provider: SimulatedProvider, call: MatchedPath | None
    ) -> None:
        self.desk = desk
        self.request = request
        self.provider = provider
        self.call = call
        self.protocol = call.route.protocol if call is not None else provider.routes[0].protocol
        self.model = call.model if call is not None else ""
        self.value: Any = None
        self.fault: Fault | None = None
        self.answered_by = "refused"
        self.id = f"req_{hash_of(request.path, (request.body or b'').hex()[:4096])[:24]}"

    def outcome(self) -> SimulatedOutcome:
        words = self.provider.words
        call = self.call
        if call is None:
            message = words.no_route.format(method=self.request.method, path=self.request.path)
            raise _RefusedError(Refusal(kind="not_found", message=message))
        if self.request.body is None:
            raise _RefusedError(Refusal(kind="too_large", message="Request exceeds the maximum size"))
        self._check_key()
        listed = listings.listing(call, self.desk.now)
        if listed is not None:
            self.answered_by = "listing"
            return self._whole(listed)
        body = self._parsed()
        if call.route.kind == "count":
            self.answered_by = "count"
            return self._whole(listings.counted(call, body))
        return self._generated(call, body)

    # --- the request --------------------------------------------------------------------------------

    def _check_key(self) -> None:
        provider, words = self.provider, self.provider.words
        key = providers.key_of(provider, self.request.headers, self.request.query)
        accepted = self.desk.script.keys
        kind: FailureKind | Literal[""] = ""
        if not key and (provider.needs_key or accepted):
            kind, message = words.no_key_kind, words.no_key
        elif accepted and not any(known == key or f"Credential={known}/" in key for known in accepted):
            kind, message = words.bad_key_kind, words.bad_key
        if kind:
            raise _RefusedError(Refusal(kind=kind, message=message, fields=words.auth_fields))
        if provider.name == "anthropic" and "anthropic-version" not in self.request.headers:
            raise _RefusedError(Refusal(kind="bad_request", message="anthropic-version: header is required"))

    def _parsed(self) -> Fields:
        reason = "the body is not an object"
        try:
            self.value = parse(self.request.body or b"").value
        except InputError as error:
            reason = error.message
        if not isinstance(self.value, dict):
            message = self.provider.words.not_json.format(reason=reason)
            raise _RefusedError(Refusal(kind="bad_request", message=message))
        return self.value

    def _generated(self, call: MatchedPath, body: Fields) -> SimulatedOutcome:
        named = body.get("model") if not call.model else call.model
        self.model = named if isinstance(named, str) and len(named) <= MAX_NAME else ""
        profile = profiles.get(call.target, self.model, overrides=self.desk.overrides)
        ask = self._accepted(call, body, profile)
        place = self.desk.rule_for(ask)
        how, ordered_by = self._ordered(place)
        reply, name = self.desk.reply_of(place) if place is not None else (None, "default script")
        if self.fault is not None:
            self._check_fit(self.fault, ask)
        is_lost = self.fault is not None and self.fault.name in UNANSWERED
        self.answered_by = ordered_by if is_lost and ordered_by else name
        if place is not None and not (is_lost and ordered_by):
            self.desk.use_up(place)
        if self.fault is not None:
            self._fail(self.fault)
        said = self._planned(ask, reply, how)
        written = bodies.write(ask, said, self.desk.sealer, self.desk.now)
        written = spoil_body(written, self.protocol, said, self.fault)
        if self.protocol == "openai_responses":
            self._store(body, ask, written)
        return self._streamed(ask, said, written, how) if ask.wants_stream else self._paced(self._whole(written), how)

    def _store(self, body: Fields, ask: AcceptedRequest, written: Fields) -> None:
        """OpenAI keeps what it answered, unless it is told not to."""
        written["previous_response_id"] = body.get("previous_response_id")
        if body.get("store") is not False:
            size = len(self.request.body or b"")
            self.desk.memory.keep(written["id"], [*ask.body["input"], *written["output"]], size)

    def _accepted(self, call: MatchedPath, body: Fields, profile: Profile) -> AcceptedRequest:
        """The request, if its provider would accept it."""
        if self.provider.name == "anthropic" and body.get("thread") is not None:
            raise _RefusedError(_NO_THREADS)
        self._judge(body, profile)
        if self.protocol == "openai_responses":
            joined = self.desk.memory.joined(body)
            if isinstance(joined, Refusal):
                raise _RefusedError(joined)
            if "previous_response_id" in body:
                self._judge(joined, profile)
            body = joined
        wrong = returned.check(body, profile, self.desk.sealer, self.request.headers)
        if wrong is not None:
            raise _RefusedError(wrong)
        try:
            conversation = codec(self.protocol).request.decode(body)
        except InputError as error:
            place = error.path.removeprefix("$.")
            raise _RefusedError(Refusal(kind="bad_request", message=f"{place}: {error.message}", param=place)) from None
        stream = call.is_stream or body.get("stream", self.protocol == "ollama") is True
        return ask_of(
            body,
            conversation,
            provider=self.provider.name,
            profile=profile,
            stream=stream,
            seed=self.desk.script.seed,
            account=returned.account_of(self.request.headers),
        )

    def _judge(self, body: Fields, profile: Profile) -> None:
        if self.protocol == "openai_responses" and body.get("model") is None and body.get("prompt") is None:
            message = "Missing required parameter: 'model'."
            raise _RefusedError(Refusal(kind="bad_request", message=message, param="model"))
        violations = lint(body, profile.name, self.model, self.desk.overrides)
        if violations:
            raise _RefusedError(refusals.refused_by(violations, body))

    # --- the answer ---------------------------------------------------------------------------------

    def _ordered(self, place: int | None) -> tuple[StreamSettings, str]:
        """How the answer is given, and who ordered what goes wrong: the request itself or an earlier order.

        Where neither did, the fault is the rule's, if it has one.
        """
        rule = self.desk.script.rules[place] if place is not None else ScriptRule()
        ordered_by = ""
        try:
            own = settings(self.request.headers.get(ORDERS, ""), ORDERS)
            how = _settings(own, self.desk.script)
            if own:
                self.fault, ordered_by = _own_fault(own), ORDERS
            elif self.desk.faults:
                self.fault, ordered_by = self.desk.faults.popleft(), "order"
            elif rule.fault != "":
                self.fault = read_fault(rule.fault)
        except InputError as error:
            raise _RefusedError(Refusal(kind="bad_request", message=f"toolglot simulator: {error}")) from None
        return how, ordered_by

    def _check_fit(self, fault: Fault, ask: AcceptedRequest) -> None:
        wrong = misfit(fault, self.protocol, stream=ask.wants_stream)
        if wrong:
            raise _RefusedError(Refusal(kind="bad_request", message=f"toolglot simulator: {wrong}"))

    def _fail(self, fault: Fault) -> None:
        """The faults that are an answer of their own."""
        if fault.name in STATUSES:
            kind: Any = STATUSES[fault.name]
            refusal = Refusal(kind=kind, message=_PHRASES.get(fault.name, ""), status=int(fault.name))
            wait = fault.retry_after if fault.retry_after is not None else 1.0 if fault.name == "429" else None
            raise _RefusedError(msgspec.structs.replace(refusal, retry_after=wait))
        if fault.name == "context_overflow":
            raise _RefusedError(Refusal(kind="context_overflow", message=""))
        if fault.name == "timeout":
            raise _RefusedError(Refusal(kind="timeout", message="The request timed out"))

    def _planned(self, ask: AcceptedRequest, reply: ReplySpec | None, how: StreamSettings) -> ReplyPlan:
        script = self.desk.script
        planned = plan(ask, reply, calls=how.calls, unasked=script.calls_unasked, preface=script.preface)
        said = spoil_plan(planned, self.fault)
        is_malformed = self.fault is not None and self.fault.name == "malformed_arguments" and bool(said.calls)
        if self.protocol == "ollama" and is_malformed:
            message = f"error parsing tool call: raw='{said.calls[-1].text}', err=invalid character"
            raise _RefusedError(Refusal(kind="server", message=message))
        return said

    def refused(self, refusal: Refusal) -> SimulatedOutcome:
        answer = refusals.write(self.provider, self.protocol, refusal, self.id)
        outcome = self._whole(answer.body, answer.status)
        outcome.headers |= answer.headers
        outcome.rule, outcome.error = refusal.rule, refusal.message
        if self.fault is not None and self.fault.name == "timeout":
            outcome.waits = self.fault.seconds
        return outcome

    def _headers(self) -> dict[str, str]:
        return {get(self.protocol).request_id_header: self.id}

    def _whole(self, body: Fields | bytes, status: int = 200) -> SimulatedOutcome:
        data = body if isinstance(body, bytes) else encoded(body)
        name = self.fault.name if self.fault is not None else ""
        headers = {**_JSON, **self._headers()}
        return SimulatedOutcome(status=status, headers=headers, pieces=[data], length=len(data), fault=name)

    def _paced(self, outcome: SimulatedOutcome, how: StreamSettings) -> SimulatedOutcome:
        """A whole answer as it comes over a bad line."""
        if outcome.fault == "reset":
            outcome.pieces, outcome.breaks = [outcome.pieces[0][: (outcome.length or 0) // 2]], True
        elif outcome.fault == "slow_drip" and self.fault is not None:
            outcome.pieces, outcome.pace = pieces_of(outcome.pieces, 1), self.fault.seconds
        elif how.bytes:
            outcome.pieces, outcome.pace = pieces_of(outcome.pieces, how.bytes), how.pace
        return outcome

    def _streamed(self, ask: AcceptedRequest, said: ReplyPlan, body: Fields, how: StreamSettings) -> SimulatedOutcome:
        fault = self.fault
        frames = frames_of(self.provider, ask, said, body, fault=fault, chunk=how.chunk, now=self.desk.now)
        content_type = get(self.protocol).stream_type
        if self.protocol == "gemini" and self.request.query.get("alt") != "sse":
            frames, content_type = _as_array(frames), "application/json"
        outcome = SimulatedOutcome(
            status=200,
            headers={"content-type": content_type, "cache-control": "no-cache", **self._headers()},
            pieces=frames,
            pace=how.pace,
            fault=fault.name if fault is not None else "",
        )
        if fault is not None and fault.name == "reset":
            outcome.pieces, outcome.breaks = frames[: fault.after], True
        outcome.pieces = pieces_of(outcome.pieces, how.bytes)
        if fault is not None and fault.name == "slow_drip":
            outcome.pieces, outcome.pace = pieces_of(frames, 1), fault.seconds
        return outcome


def _settings(own: dict[str, str], script: Script) -> StreamSettings:
    """How an answer is given: as the header of its request says, else as the script does."""
    calls = own.pop("calls", None)
    return StreamSettings(
        chunk=whole(own.pop("chunk", script.chunk), f"{ORDERS}.chunk", least=1),
        pace=number(own.pop("pace", script.pace), f"{ORDERS}.pace", LONGEST_PACE),
        bytes=whole(own.pop("bytes", script.bytes), f"{ORDERS}.bytes"),
        calls=whole(calls, f"{ORDERS}.calls", MOST_CALLS) if calls is not None else None,
    )


def _own_fault(own: dict[str, str]) -> Fault:
    """The fault that a request orders for itself."""
    if "fault" not in own:
        hint = one_of(next(iter(own)), ("fault", *StreamSettings.__struct_fields__))
        raise InputError(f"there is no key {quote(next(iter(own)))} without a fault", path=ORDERS, hint=hint)
    return read_fault({"kind": own.pop("fault"), **own}, ORDERS)


def _as_array(frames: list[bytes]) -> list[bytes]:
    """Gemini's stream for those who do not ask for server-sent events: one array, an entry an event."""
    entries = [frame.removeprefix(b"data: ").rstrip() for frame in frames]
    return [*((b",\r\n" if place else b"[") + entry for place, entry in enumerate(entries)), b"]"]


_NO_THREADS: Final = Refusal(
    kind="bad_request",
    message="thread: message threads are not supported for this request",
    param="thread",
    fields={"details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}},
    rule="threads",
)
"""Nothing of a conversation is kept for Anthropic's clients; so told, their SDKs send the whole of it."""
_PHRASES: Final = {
    "400": "The request was refused on order",
    "401": "Invalid authentication credentials",
    "403": "Permission denied",
    "404": "The model was not found",
    "413": "Request exceeds the maximum size",
    "429": "Rate limit reached. Please slow down.",
    "500": "Internal server error",
    "503": "The service is overloaded. Please try again later.",
    "504": "The request timed out",
    "529": "Overloaded",
}
