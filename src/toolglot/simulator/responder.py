"""One request in, one outcome out: route, key, JSON, referee, signed thinking, script, faults, bytes.

Law: no I/O, and nothing raises: every error is a response in the provider's own form.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.conversation import FailureKind, Usage
from toolglot.errors import InputError, quote
from toolglot.jsontext import parse
from toolglot.profiles import MAX_NAME, Overrides, Profile
from toolglot.protocols.base import Protocol, codec, get
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import lint
from toolglot.simulator import providers
from toolglot.simulator.accepted_request import AcceptedRequest, accepted_request, hash_of
from toolglot.simulator.prompt_cache import CacheScope, PromptCaches
from toolglot.simulator.protocols.base import ReplyContext, account_of, fault_mismatch, simulated_protocol
from toolglot.simulator.providers import MatchedPath, SimulatedProvider
from toolglot.simulator.replies.fault_effects import faulty_plan
from toolglot.simulator.replies.faults import (
    STATUSES,
    UNANSWERED,
    Fault,
    integer,
    names_hint,
    number,
    parse_settings,
    read_fault,
)
from toolglot.simulator.replies.json_bytes import encode_json
from toolglot.simulator.replies.refusals import Refusal, refusal_for, write_refusal
from toolglot.simulator.replies.signatures import Signer
from toolglot.simulator.replies.streams import StreamJob, StreamSettings, cut_event, pieces_of
from toolglot.simulator.scripts.plan import ReplyPlan, plan, tokens_of
from toolglot.simulator.scripts.script import MAX_CALLS, MAX_PACE, ReplySpec, Script, ScriptRule
from toolglot.simulator.stored_responses import StoredItems

FAULT_HEADER: Final = "x-simulate"
"""The header of a request that injects a fault, or says how the reply is sent."""
_JSON: Final = {"content-type": "application/json"}


class SimulatedRequest(Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lowercase names."""
    query: Mapping[str, str]
    body: bytes | None
    """None: larger than the limit."""


class SimulatedOutcome(Struct, kw_only=True):
    """What is sent, and how it is sent."""

    status: int
    headers: dict[str, str]
    pieces: list[bytes]
    pace: float = 0.0
    """Seconds between pieces."""
    waits: float = 0.0
    """Seconds before anything is sent."""
    breaks: bool = False
    """Whether the connection breaks after the last piece."""
    length: int | None = None
    """The content length; None for a stream."""
    provider: str = ""
    model: str = ""
    value: Any = None
    """The body of the request, if it is JSON."""
    rule: str = ""
    error: str = ""
    fault: str = ""
    answered_by: str = ""
    usage: Usage | None = None
    """The tokens of the reply."""


class _RefusedError(Exception):
    """Carries a refusal to where it is written."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class Responder:
    """Answers requests by a script. Its state: how often rules were used, injected faults, stored replies, caches."""

    def __init__(
        self,
        script: Script,
        clock: Callable[[], float],
        overrides: Overrides | None = None,
        caches: PromptCaches | None = None,
    ) -> None:
        self.caches = caches if caches is not None else PromptCaches()
        self.script = script
        self.overrides = overrides
        self.faults: deque[Fault] = deque()
        self._clock = clock
        self._signer = Signer(script.seed)
        self._stored = StoredItems()
        self._uses = [0] * len(script.rules)

    def answer(self, request: SimulatedRequest) -> SimulatedOutcome:
        """Answer one request."""
        provider, call = providers.find(request.method, request.path, request.headers)
        job = _RequestJob(self, request, provider, call)
        try:
            outcome = job.outcome()
        except _RefusedError as refused:
            outcome = job.refusal_outcome(refused.refusal)
        outcome.provider, outcome.model, outcome.value = provider.name, job.model, job.value
        outcome.answered_by, outcome.usage = job.answered_by, job.usage
        return outcome

    # --- for the jobs -------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        return self._clock()

    @property
    def now(self) -> int:
        return int(self._clock())

    @property
    def signer(self) -> Signer:
        return self._signer

    @property
    def stored(self) -> StoredItems:
        return self._stored

    def rule_for(self, request: AcceptedRequest) -> int | None:
        """The index of the first rule that matches and is not used up."""
        for index, rule in enumerate(self.script.rules):
            if (rule.times is None or self._uses[index] < rule.times) and rule.when.matches_request(request):
                return index
        return None

    def next_reply(self, rule_index: int) -> tuple[ReplySpec | None, str]:
        """The next reply of a rule, and its name."""
        rule, use = self.script.rules[rule_index], self._uses[rule_index]
        last = min(use, len(rule.replies) - 1)
        name = f"rules[{rule_index}]"
        return rule.reply_for(use), f"{name}.replies[{last}]" if rule.replies else name

    def count_use(self, rule_index: int) -> None:
        self._uses[rule_index] += 1

    def unused(self) -> list[str]:
        """Rules, replies and injected faults that no request got yet."""
        found: list[str] = []
        for index, (rule, uses) in enumerate(zip(self.script.rules, self._uses, strict=True)):
            rest = range(uses, len(rule.replies)) if uses else ()
            found += [f"rules[{index}].replies[{reply}]" for reply in rest] if uses else [f"rules[{index}]"]
        return [*found, *(f"fault {fault.name}" for fault in self.faults)]


class _RequestJob:
    """One request on its way to its outcome."""

    def __init__(
        self, responder: Responder, request: SimulatedRequest, provider: SimulatedProvider, call: MatchedPath | None
    ) -> None:
        self.responder = responder
        self.request = request
        self.provider = provider
        self.call = call
        self.protocol = call.route.protocol if call is not None else provider.routes[0].protocol
        self.simulated = simulated_protocol(self.protocol)
        self.model = call.model if call is not None else ""
        self.value: Any = None
        self.fault: Fault | None = None
        self.usage: Usage | None = None
        self.answered_by = "refused"
        self.id = f"req_{hash_of(request.path, (request.body or b'').hex()[:4096])[:24]}"

    def outcome(self) -> SimulatedOutcome:
        call = self.call
        if call is None:
            message = self.provider.messages.no_route.format(method=self.request.method, path=self.request.path)
            raise _RefusedError(Refusal(kind="not_found", message=message))
        if self.request.body is None:
            raise _RefusedError(Refusal(kind="too_large", message="Request exceeds the maximum size"))
        self._check_key()
        page = self._page(call)
        if page is not None:
            self.answered_by = "listing"
            return self._whole_outcome(page)
        body = self._parse_body()
        if call.route.kind == "count":
            self.answered_by = "count"
            return self._whole_outcome(self.simulated.token_count(tokens_of(body)))
        if call.route.kind == "embed":
            return self._embed(call, body)
        return self._generate(call, body)

    def _page(self, call: MatchedPath) -> Fields | None:
        """The reply of a path that needs no model: lists of models, versions; None for others."""
        kind = call.route.kind
        if kind == "model":
            return self.simulated.model_entry(call.model.removeprefix("models/"), self.responder.now)
        if kind == "models":
            entries = [self.simulated.model_entry(name, self.responder.now) for name in self.provider.models]
            return self.simulated.model_list(entries)
        return self.simulated.pages.get(kind)

    # --- the request --------------------------------------------------------------------------------

    def _check_key(self) -> None:
        provider, messages = self.provider, self.provider.messages
        key = providers.key_of(provider, self.request.headers, self.request.query)
        accepted = self.responder.script.keys
        kind: FailureKind | Literal[""] = ""
        if not key and (provider.needs_key or accepted):
            kind, message = messages.no_key_kind, messages.no_key
        elif accepted and not any(known == key or f"Credential={known}/" in key for known in accepted):
            kind, message = messages.bad_key_kind, messages.bad_key
        if kind:
            raise _RefusedError(Refusal(kind=kind, message=message, fields=messages.auth_fields))
        header = provider.required_header
        if header and header not in self.request.headers:
            raise _RefusedError(Refusal(kind="bad_request", message=f"{header}: header is required"))

    def _parse_body(self) -> Fields:
        reason = "the body is not an object"
        try:
            self.value = parse(self.request.body or b"").value
        except InputError as error:
            reason = error.message
        if not isinstance(self.value, dict):
            message = self.provider.messages.not_json.format(reason=reason)
            raise _RefusedError(Refusal(kind="bad_request", message=message))
        return self.value

    def _profile(self, call: MatchedPath, body: Fields) -> Profile:
        """The profile of the model that the path or the body names."""
        model = body.get("model") if not call.model else call.model
        self.model = model if isinstance(model, str) and len(model) <= MAX_NAME else ""
        return profiles.get(call.target, self.model, overrides=self.responder.overrides)

    def _embed(self, call: MatchedPath, body: Fields) -> SimulatedOutcome:
        profile = self._profile(call, body)
        if profile.context.window is not None and "embed" not in self.model:  # a model that writes
            raise _RefusedError(self.simulated.not_embedding(self.model))
        settings, injected_by = self._take_fault(None)
        if self.fault is not None:
            self.answered_by = injected_by
            self._fail(self.fault)
        written = self.simulated.embeddings(body, profile)
        if isinstance(written, Refusal):
            raise _RefusedError(written)
        self.answered_by = "embeddings"
        return self._with_pace(self._whole_outcome(written), settings)

    def _generate(self, call: MatchedPath, body: Fields) -> SimulatedOutcome:
        profile = self._profile(call, body)
        accepted = self._accept(call, body, profile)
        self._check_length(accepted)
        compacted = self._compacted(call, accepted)
        if compacted is not None:
            return compacted
        rule = self.responder.rule_for(accepted)
        settings, injected_by = self._take_fault(rule)
        reply, name = self.responder.next_reply(rule) if rule is not None else (None, "default script")
        if self.fault is not None:
            self._check_fault(self.fault, accepted)
        is_lost = self.fault is not None and self.fault.name in UNANSWERED
        self.answered_by = injected_by if is_lost and injected_by else name
        if rule is not None and not (is_lost and injected_by):
            self.responder.count_use(rule)
        if self.fault is not None:
            self._fail(self.fault)
        planned = self._count_cached(accepted, reply, self._plan(accepted, reply, settings))
        self.usage = planned.usage
        written = self._write(accepted, planned)
        if self.simulated.stores_replies:
            self._store(body, accepted, written)
        if accepted.wants_stream:
            return self._stream(accepted, planned, written, settings)
        return self._with_pace(self._whole_outcome(written), settings)

    def _compacted(self, call: MatchedPath, accepted: AcceptedRequest) -> SimulatedOutcome | None:
        """The outcome of a request for a compaction and nothing else, which no rule of the script is for."""
        context = ReplyContext(accepted, self.responder.signer, self.responder.now)
        written = self.simulated.compaction_body(context, is_path=call.route.kind == "compact")
        if written is None:
            return None
        self.answered_by = "compaction"
        if call.route.kind == "compact" or not accepted.wants_stream:
            return self._whole_outcome(written)
        return self._stream(accepted, ReplyPlan(), written, _stream_settings({}, self.responder.script))

    def _write(self, accepted: AcceptedRequest, planned: ReplyPlan) -> Fields:
        """The body of the reply, as a fault leaves it."""
        written = self.simulated.reply_body(ReplyContext(accepted, self.responder.signer, self.responder.now), planned)
        edit = self.simulated.body_faults.get(self.fault.name) if self.fault is not None and planned.calls else None
        if edit is not None:
            edit(written)
        return written

    def _store(self, body: Fields, accepted: AcceptedRequest, written: Fields) -> None:
        """OpenAI stores its replies, unless the request says otherwise."""
        written["previous_response_id"] = body.get("previous_response_id")
        if body.get("store") is not False:
            size = len(self.request.body or b"")
            self.responder.stored.keep(written["id"], [*accepted.body["input"], *written["output"]], size)

    def _accept(self, call: MatchedPath, body: Fields, profile: Profile) -> AcceptedRequest:
        """The request, if its provider would accept it."""
        _raise_if(self.simulated.check_request(body))
        self._judge(body, profile)
        if self.simulated.stores_replies:
            resolved = self.responder.stored.resolve(body)
            if isinstance(resolved, Refusal):
                raise _RefusedError(resolved)
            if "previous_response_id" in body:
                self._judge(resolved, profile)
            body = resolved
        _raise_if(self.simulated.check_returned(body, profile, self.responder.signer, self.request.headers))
        try:
            conversation = codec(self.protocol).request.decode(body)
        except InputError as error:
            path = error.path.removeprefix("$.")
            raise _RefusedError(Refusal(kind="bad_request", message=f"{path}: {error.message}", param=path)) from None
        return accepted_request(
            body,
            conversation,
            provider=self.provider.name,
            profile=profile,
            stream=call.is_stream or body.get("stream", _streams_by_default(get(self.protocol))) is True,
            seed=self.responder.script.seed,
            account=account_of(self.request.headers),
        )

    def _check_length(self, accepted: AcceptedRequest) -> None:
        """Refuse a request that does not fit into the window of the script; for some providers, with its reply."""
        window = self.responder.script.window(self.model)
        if window is None:
            return
        tokens, reply, messages = tokens_of(accepted.body), accepted.max_tokens, self.provider.messages
        message = ""
        if tokens > window:
            message = self.simulated.overflow_message or messages.too_long
        elif tokens + reply > window:
            message = messages.reply_too_long
        if message:
            numbers = {"tokens": tokens, "reply": reply, "window": window}
            text = message.format(**numbers, excess=tokens - window, total=tokens + reply)
            raise _RefusedError(Refusal(kind="context_overflow", message=text, rule="window"))

    def _judge(self, body: Fields, profile: Profile) -> None:
        violations = lint(body, profile.name, self.model, self.responder.overrides)
        if violations:
            raise _RefusedError(refusal_for(violations, body, self.simulated.wordings, self.simulated.codes))

    # --- the reply ----------------------------------------------------------------------------------

    def _take_fault(self, rule_index: int | None) -> tuple[StreamSettings, str]:
        """How the reply is sent, and where its fault comes from: the header of the request, or `Simulator.fault`.

        Otherwise it is the fault of the rule, if the rule has one.
        """
        rule = self.responder.script.rules[rule_index] if rule_index is not None else ScriptRule()
        injected_by = ""
        try:
            own = parse_settings(self.request.headers.get(FAULT_HEADER, ""), FAULT_HEADER)
            settings = _stream_settings(own, self.responder.script)
            if own:
                self.fault, injected_by = _own_fault(own), FAULT_HEADER
            elif self.responder.faults:
                self.fault, injected_by = self.responder.faults.popleft(), "injected"
            elif rule.fault != "":
                self.fault = read_fault(rule.fault)
        except InputError as error:
            raise _RefusedError(Refusal(kind="bad_request", message=f"toolglot simulator: {error}")) from None
        return settings, injected_by

    def _check_fault(self, fault: Fault, accepted: AcceptedRequest) -> None:
        problem = fault_mismatch(fault, self.protocol, stream=accepted.wants_stream)
        if problem:
            raise _RefusedError(Refusal(kind="bad_request", message=f"toolglot simulator: {problem}"))

    def _fail(self, fault: Fault) -> None:
        """Raise the faults that are a response of their own."""
        if fault.name in STATUSES:
            kind: Any = STATUSES[fault.name]
            refusal = Refusal(kind=kind, message=_STATUS_MESSAGES.get(fault.name, ""), status=int(fault.name))
            wait = fault.retry_after if fault.retry_after is not None else 1.0 if fault.name == "429" else None
            raise _RefusedError(msgspec.structs.replace(refusal, retry_after=wait))
        if fault.name == "context_overflow":
            raise _RefusedError(Refusal(kind="context_overflow", message=""))
        if fault.name == "timeout":
            raise _RefusedError(Refusal(kind="timeout", message="The request timed out"))

    def _plan(self, accepted: AcceptedRequest, reply: ReplySpec | None, settings: StreamSettings) -> ReplyPlan:
        script = self.responder.script
        planned = plan(accepted, reply, calls=settings.calls, unasked=script.calls_unasked, preface=script.preface)
        planned = faulty_plan(planned, self.fault)
        _raise_if(self.simulated.check_plan(planned, self.fault))
        return planned

    def _count_cached(self, accepted: AcceptedRequest, reply: ReplySpec | None, planned: ReplyPlan) -> ReplyPlan:
        """The plan with what the provider's prompt cache read and wrote. The usage of a script is as it says."""
        body, rules = accepted.body, accepted.profile.cache
        key = body.get(rules.key_field) if rules.key_field else None
        conversation = str(key or self.request.headers.get(rules.affinity_header.lower(), ""))
        account = providers.account_of(self.provider, self.request.headers, self.request.query)
        scope = CacheScope(f"{self.provider.name} {account}", self.model, conversation)
        found = self.responder.caches.use(self.simulated.prompt_blocks(body), rules, scope, self.responder.time)
        if (reply is not None and reply.usage is not None) or rules.style == "none":
            return planned
        total = planned.usage.input_tokens or 0
        read = min(found.read, total)
        written = min(found.written, total - read) if rules.style == "markers" else None
        usage = msgspec.structs.replace(planned.usage, cache_read_tokens=read, cache_write_tokens=written)
        return msgspec.structs.replace(planned, usage=usage)

    def refusal_outcome(self, refusal: Refusal) -> SimulatedOutcome:
        response = write_refusal(
            self.protocol,
            refusal,
            self.id,
            names_param=self.simulated.names_param,
            edit=self.provider.edit_error,
        )
        outcome = self._whole_outcome(response.body, response.status)
        outcome.headers |= response.headers
        outcome.rule, outcome.error = refusal.rule, refusal.message
        if self.fault is not None and self.fault.name == "timeout":
            outcome.waits = self.fault.seconds
        return outcome

    def _headers(self) -> dict[str, str]:
        return {get(self.protocol).request_id_header: self.id}

    def _whole_outcome(self, body: Fields | bytes, status: int = 200) -> SimulatedOutcome:
        data = body if isinstance(body, bytes) else encode_json(body)
        name = self.fault.name if self.fault is not None else ""
        headers = {**_JSON, **self._headers()}
        return SimulatedOutcome(status=status, headers=headers, pieces=[data], length=len(data), fault=name)

    def _with_pace(self, outcome: SimulatedOutcome, settings: StreamSettings) -> SimulatedOutcome:
        """A whole reply as it arrives over a bad connection."""
        if outcome.fault == "reset":
            outcome.pieces, outcome.breaks = [outcome.pieces[0][: (outcome.length or 0) // 2]], True
        elif outcome.fault == "slow_drip" and self.fault is not None:
            outcome.pieces, outcome.pace = pieces_of(outcome.pieces, 1), self.fault.seconds
        elif settings.bytes:
            outcome.pieces, outcome.pace = pieces_of(outcome.pieces, settings.bytes), settings.pace
        return outcome

    def _stream(
        self, accepted: AcceptedRequest, planned: ReplyPlan, body: Fields, settings: StreamSettings
    ) -> SimulatedOutcome:
        fault = self.fault
        job = StreamJob(
            request=accepted,
            plan=planned,
            body=body,
            style=self.provider.stream_style,
            fault=fault,
            chunk=settings.chunk,
            now=self.responder.now,
        )
        frames = cut_event(self.simulated.stream_frames(job), fault)
        content_type = get(self.protocol).stream_type
        entries = self.simulated.array_frames(frames, self.request.query)
        if entries is not None:
            frames, content_type = entries, "application/json"
        outcome = SimulatedOutcome(
            status=200,
            headers={"content-type": content_type, "cache-control": "no-cache", **self._headers()},
            pieces=frames,
            pace=settings.pace,
            fault=fault.name if fault is not None else "",
        )
        if fault is not None and fault.name == "reset":
            outcome.pieces, outcome.breaks = frames[: fault.after], True
        outcome.pieces = pieces_of(outcome.pieces, settings.bytes)
        if fault is not None and fault.name == "slow_drip":
            outcome.pieces, outcome.pace = pieces_of(frames, 1), fault.seconds
        return outcome


def _raise_if(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise _RefusedError(refusal)


def _streams_by_default(protocol: Protocol) -> bool:
    """Whether a request that does not say so gets a stream."""
    return any(route.streams_by_default for route in protocol.routes if route.action == "generate")


def _stream_settings(own: dict[str, str], script: Script) -> StreamSettings:
    """How a reply is sent: as the header of its request says, else as the script does."""
    calls = own.pop("calls", None)
    return StreamSettings(
        chunk=integer(own.pop("chunk", script.chunk), f"{FAULT_HEADER}.chunk", minimum=1),
        pace=number(own.pop("pace", script.pace), f"{FAULT_HEADER}.pace", MAX_PACE),
        bytes=integer(own.pop("bytes", script.bytes), f"{FAULT_HEADER}.bytes"),
        calls=integer(calls, f"{FAULT_HEADER}.calls", MAX_CALLS) if calls is not None else None,
    )


def _own_fault(own: dict[str, str]) -> Fault:
    """The fault that the header of a request injects."""
    if "fault" not in own:
        hint = names_hint(next(iter(own)), ("fault", *StreamSettings.__struct_fields__))
        raise InputError(f"unknown key {quote(next(iter(own)))} without a fault", path=FAULT_HEADER, hint=hint)
    return read_fault({"kind": own.pop("fault"), **own}, FAULT_HEADER)


_STATUS_MESSAGES: Final = {
    "400": "The request was refused",
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
