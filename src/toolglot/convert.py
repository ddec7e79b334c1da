"""From one protocol to another: a client's request for a provider, and the provider's reply for the client.

    out = toolglot.convert(body, source="anthropic", target="openai", model="gpt-5.2")
    out.data, out.report                          # what to send, and what was changed
    back = toolglot.convert_reply(answer, source="openai", target="anthropic", request=out)

This is where wire, history and render are joined; nothing else does. Law 3 (do no harm): a request that goes
home and needs no change is forwarded as it came, byte for byte.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import dialects, jsontext, profiles
from toolglot.conversation import (
    Conversation,
    Failure,
    Issuer,
    Reply,
    Text,
    ToolSpec,
    Turn,
)
from toolglot.errors import InputError, LimitError, StoredHistoryError, quote
from toolglot.history import History
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.name_patterns import matches
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.render import Rendered, render
from toolglot.render.answer import for_client
from toolglot.render.job import Job
from toolglot.reply_report import report_arguments, report_differences, report_losses, report_missing, report_reading
from toolglot.report import Entry, Report
from toolglot.request_reading import decoded, decoded_split, in_new_forms
from toolglot.tool_memory import ToolMemory, text_of
from toolglot.wire.codecs import codec
from toolglot.wire.damage import Told
from toolglot.wire.detection import detect
from toolglot.wire.failures import ProviderError, from_input_error
from toolglot.wire.lenient_replies import missing_fields, read_as_meant
from toolglot.wire.losses import unwritten
from toolglot.wire.openai_responses.request import stores_answers
from toolglot.wire.refusals import without_refusals
from toolglot.wire.reply_detection import protocol_of_reply
from toolglot.wire.shared_fields import asking_usage, carried
from toolglot.wire.stored_history import continued_by

P = ParamSpec("P")
T = TypeVar("T")

Body = bytes | str | Mapping[str, Any]
"""A body as JSON, or as the object that it means."""
Fields = dict[str, Any]

_SETTINGS: Final = frozenset(
    {
        *("instructions", "max_output_tokens", "temperature", "top_p", "reasoning", "tool_choice"),
        *("parallel_tool_calls",),
    }
)
"""Fields of a request that continues a stored history which say how it is answered, and not what was said."""


class Converted:
    """A body in another protocol, and what was changed on the way.

    body: the body, as an object.
    report: what was changed.
    data: the same as bytes, where they are known already.
    """

    def __init__(self, body: Fields, report: Report, *, data: bytes | None = None) -> None:
        self.body = body
        self.report = report
        self._data = data
        """The bytes that came, where they say the same; otherwise those that were written, once they are asked for."""

    @property
    def data(self) -> bytes:
        """The body as it is sent: the very bytes that came, where nothing was changed."""
        if self._data is None:
            self._data = self._written()
        return self._data

    def _written(self) -> bytes:
        return _encoded(self.body)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.report)} changes>"


class ConvertedRequest(Converted):
    """A request for a provider. Given back to `convert_reply`, it undoes what it changed about tools.

    body: the request for the provider, as an object.
    report: what was changed.
    source: the profile of the client's protocol.
    target: the profile of the provider.
    rendered: what was sent in canonical form, and how to undo it in the reply.
    data: the body as bytes, where they are known already.
    """

    def __init__(
        self, body: Fields, report: Report, *, source: Profile, target: Profile, rendered: Rendered, data: bytes | None
    ) -> None:
        super().__init__(body, report, data=data)
        self.source = source
        self.target = target
        self.rendered = rendered
        asked = rendered.conversation
        self.model: str = asked.model
        """The model to ask for; some protocols name it in the address, not in the body."""
        self.stream: bool = bool(asked.options.stream)
        """Whether the client wants a stream; some protocols say so in the address."""

    def _written(self) -> bytes:
        body = self.body
        known = text_of(self.rendered.conversation.tools, self.target.protocol, body.get("tools"))
        return _encoded(body if known is None else {**body, "tools": known})


class ConvertedReply(Converted):
    """A reply for a client.

    body: the reply for the client, as an object.
    report: what was changed.
    reply: the reply in canonical form, under the client's names.
    said: the reply in canonical form, as the provider sent it.
    data: the body as bytes, where they are known already.
    """

    def __init__(self, body: Fields, report: Report, reply: Reply, *, said: Reply, data: bytes | None) -> None:
        super().__init__(body, report, data=data)
        self.reply = reply
        """The answer in canonical form, under the client's names and ids."""
        self.said = said
        """The same in the provider's own names and ids, with what only the provider can read."""


class ConvertedError(Struct, frozen=True, kw_only=True):
    """A failure in a client's own shape.

    status: the HTTP status.
    body: the body, as an object.
    headers: the headers that go with it.
    """

    status: int
    body: Fields
    headers: dict[str, str]
    failure: Failure

    @property
    def data(self) -> bytes:
        return _encoded(self.body)


def _too_deep() -> LimitError:
    """What nests too deeply for the stack is refused like anything else that is too large."""
    return LimitError("nests too deeply", hint="flatten it")


def _bounded(run: Callable[P, T]) -> Callable[P, T]:
    """A function that says so. Those that every request goes through do without: passing arguments on takes time."""

    @functools.wraps(run)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return run(*args, **kwargs)
        except RecursionError:
            raise _too_deep() from None

    return bounded


# --- requests ---------------------------------------------------------------------------------------


def convert(
    body: Body,
    *,
    source: str,
    target: str,
    model: str = "",
    policy: Policy = DEFAULT_POLICY,
    overrides: Overrides | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ConvertedRequest:
    """A request of one protocol as a request that the target accepts.

        out = toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1")
        out.data      # bytes to send: the very bytes that came, where nothing had to change
        out.body      # the same as an object
        out.report    # what was changed and why, and what could not be carried

    body: the client's request, as JSON (bytes or text) or as the object that it means.
    source, target: any name of the profiles: a provider (`mistral`) or a protocol (`openai_chat`). A host that no
        profile describes is `openai_compatible`.
    model: the model to ask for; without it, the request's own.
    policy: what to do where there is a choice.
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large a body may be.

    Raises `UnknownNameError` for a name that is not known, `InputError` for a body that is not of the source's
    protocol, and `RefusedError` for one that no change could make the target accept.
    """
    received = read_request(body, source=source, policy=policy, overrides=overrides, limits=limits)
    return received.for_target(target, model=model)


def read_request(
    body: Body,
    *,
    source: str,
    policy: Policy = DEFAULT_POLICY,
    overrides: Overrides | None = None,
    limits: Limits = DEFAULT_LIMITS,
    memory: ToolMemory | None = None,
) -> ReceivedRequest:
    """A client's request, read once, for a target that is chosen by what it says; the settings are those of `convert`.

    memory: of the tools of earlier requests, for who keeps to itself what comes of them (`tool_memory.py`).

    received = toolglot.read_request(body, source="anthropic")
    out = received.for_target("openai", model=chosen(received.conversation))

    body: the JSON, as bytes or text, or the object that it means.
    source: the protocol of the client.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    _check_policy(policy)
    try:
        from_ = _profile(source, "", overrides, "source")
        if memory is not None and isinstance(body, bytes) and len(body) <= limits.max_bytes:
            jsontext.refuse_many_values(body, limits, "$")
            split = memory.split(body, from_.protocol)
            if split is not None:
                # Tools that are known were looked at when they came for the first time.
                jsontext.refuse_deep(body, split.fields if split.tools is None else split.rest, limits, "$")
                conversation, mended = decoded_split(split, from_, policy)
                return ReceivedRequest(body, split.fields, conversation, mended, from_, policy, overrides)
        reading: list[str] = []
        fields = _parsed(body, limits, reading)
        conversation, mended = decoded(fields, from_, policy)
        return ReceivedRequest(body, fields, conversation, mended, from_, policy, overrides, reading=tuple(reading))
    except RecursionError:
        raise _too_deep() from None


class ReceivedRequest:
    """A client's request as it was read. It can be rendered for one target after another.

    body: the request as it came.
    fields: the same as an object.
    conversation: the same in canonical form.
    mended: what had to be changed to read it.
    source: the profile of the client's protocol.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    reading: what had to be changed to read the JSON of the body.
    """

    def __init__(
        self,
        body: Body,
        fields: Fields,
        conversation: Conversation,
        mended: list[Entry],
        source: Profile,
        policy: Policy,
        overrides: Overrides | None,
        *,
        reading: tuple[str, ...] = (),
    ) -> None:
        self.fields = fields
        self.continues: str | None = continued_by(fields, source.protocol)
        """The field that says that only its provider has what was said before; None where the request is whole."""
        self.conversation: Conversation = conversation
        """What the client said. Replaced by another one, that is what is sent."""
        self._reading = reading  # what had to be changed to read the JSON; who gets the very bytes does not notice it
        self._given = conversation
        self._body = body
        self._mended = mended
        self._source = source
        self._policy = policy
        self._overrides = overrides

    @property
    def given(self) -> Conversation:
        """What the client said, whatever `conversation` was replaced by since."""
        return self._given

    def address(self, *, model: str = "", stream: bool | None = None) -> None:
        """The address of the request says which model is asked, or whether a stream is wanted."""
        options = self.conversation.options
        if stream is not None and stream != options.stream:
            options = replace(options, stream=stream)
        elif not model:
            return
        self.conversation = self._given = replace(
            self.conversation, model=model or self.conversation.model, options=options
        )

    def for_target(
        self,
        target: str,
        *,
        model: str = "",
        home: Issuer | None = None,
        entries: Iterable[Entry] = (),
        policy: Policy | None = None,
    ) -> ConvertedRequest:
        """The request that the target accepts.

        home: which endpoint and account of the provider it goes to, where opaque things are bound to one.
        entries: what the report tells besides, of changes to `conversation`.
        policy: in the place of the one that the request was read with.
        """
        try:
            return self._for_target(target, model, home, entries, policy if policy is not None else self._policy)
        except RecursionError:
            raise _too_deep() from None

    def _for_target(
        self, target: str, model: str, home: Issuer | None, entries: Iterable[Entry], policy: Policy
    ) -> ConvertedRequest:
        fields, said = self.fields, self.conversation
        named, continued = model or said.model, self.continues
        to = _profile(target, named, self._overrides, "target")
        from_ = _profile(self._source.name, said.model, self._overrides, "source")
        if continued is not None and from_.name != to.name:
            raise StoredHistoryError(
                f"continues what only {from_.name} has stored", path=f"$.{continued}", hint="send the whole history"
            )
        stored = stores_answers(said.extra)
        asked = said if named == said.model else replace(said, model=named)
        modern: list[Entry] = []
        if from_.protocol == "openai_chat":
            asked, modern = in_new_forms(asked, from_, to, policy)
        rendered = render(
            asked, to, policy=policy, source=from_, keeps_items=stored, home=home, is_continued=continued is not None
        )
        if continued is not None:
            more = {**_set_since(self._given, said, to), "model": named}
            return _continuing(self._body, fields, more, continued, rendered, from_, to, policy, entries)
        sent, prompted = _by_prompt(rendered, to, policy)
        kept_model = said.model if not model and from_.name != to.name else ""
        # Who routes by a configuration knows where its models are.
        is_foreign = home is None and is_foreign_model(to)
        told = _told_of_model(to, policy, kept_model, is_foreign) if kept_model or is_foreign else []
        told += [*self._mended, *modern, *entries, *rendered.entries, *prompted]
        if from_.protocol != to.protocol:
            sent = _crossing(sent, from_, to)
        is_kept = rendered.is_unchanged and said is self._given and not prompted and not self._mended and not modern
        is_same = from_.protocol == to.protocol and named == said.model and is_kept
        written = fields
        if not is_same:
            written = _encode_request(sent, to.as_told() if from_.name == to.name else to, policy)
        if from_.protocol == to.protocol:
            is_same = written == fields
            written = fields if is_same else _in_order_of(fields, written)
        reading = None
        if not is_same or type(self._body) is not bytes:
            reading = functools.partial(_changed_in_reading, self._body, fields, self._reading, to, policy)
        if from_.protocol != to.protocol or self._mended:  # which may hold the forms of other protocols
            told += _unwritten(sent, to, policy)
        return ConvertedRequest(
            written,
            Report(tuple(told), ids=rendered.seen_ids, more=reading),
            source=from_,
            target=to,
            rendered=rendered,
            data=self._body if is_same and isinstance(self._body, bytes) else None,
        )


@_bounded
def request_for(
    conversation: Conversation | History,
    *,
    target: str,
    model: str = "",
    tools: Iterable[ToolSpec] = (),
    policy: Policy = Policy(ids="canonical"),  # noqa: B008
    overrides: Overrides | None = None,
    home: Issuer | None = None,
) -> ConvertedRequest:
    """The request that asks a target to go on with a conversation, or with a history.

        out = toolglot.request_for(history, target="anthropic", model="claude-opus-5", tools=tools)
        out.data, out.report

    `tools` are added to those of the conversation; `home` says which endpoint and account of the provider it goes to,
    where opaque things are bound to one. The answer goes through `StreamReader(request=out)`, or through
    `convert_reply(source=target, target=target, request=out)`.

    conversation: what was said so far.
    target: the provider to ask.
    model: the model to ask for.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    """
    _check_policy(policy)
    if isinstance(conversation, History):
        conversation = conversation.conversation
    if not isinstance(conversation, Conversation):
        raise InputError(f"expected a Conversation or a History, got {quote(conversation)}", path="conversation")
    named = model or conversation.model
    to = profiles.get(target, named, overrides=overrides, kind="target")
    asked = replace(conversation, model=named, tools=(*conversation.tools, *tools))
    rendered = render(asked, to, policy=policy, home=home)
    sent, prompted = _by_prompt(rendered, to, policy)
    body = _encode_request(sent, to, policy)
    told = _told_of_model(to, policy, "", is_foreign=True) if home is None and is_foreign_model(to) else ()
    entries = (*told, *rendered.entries, *prompted, *_unwritten(sent, to, policy))
    report = Report(entries, ids=rendered.seen_ids)
    return ConvertedRequest(body, report, source=to, target=to, rendered=rendered, data=None)


def _crossing(conversation: Conversation, source: Profile, target: Profile) -> Conversation:
    """What is sent to a target of another protocol than the client's."""
    if conversation.extra is not None:
        extra = carried(conversation.extra, source.protocol, target)
        if extra is not conversation.extra:
            conversation = replace(conversation, extra=extra)
    return asking_usage(conversation, target) if conversation.options.stream else conversation


def _by_prompt(rendered: Rendered, target: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """What is sent; with tools, calls and results as text, where the target is told of tools by prompt."""
    asked, dialect = rendered.conversation, target.tools.by_prompt
    if not dialect or not (asked.tools or any(turn.calls or turn.results for turn in asked.turns)):
        return asked, []
    job = Job(target, policy, None)
    reason = f"tools, calls and results are written as text in the dialect {dialect} {job.rule('tools.by_prompt')}"
    job.tell("converted", reason, "policy", path="$.tools")
    choice = asked.options.tool_choice
    if choice is not None and choice.mode != "auto":
        job.tell("dropped", f"a model that is told of tools by prompt knows no tool choice {choice.mode!r}")
    turns = dialects.to_prompt(asked.tools, asked, dialect).conversation.turns
    plain = replace(asked, turns=turns, tools=(), options=replace(asked.options, tool_choice=None))
    again = render(plain, target, policy=policy, source=target)  # texts in a row may have to be joined
    return again.conversation, [*job.entries, *again.entries]


def _set_since(given: Conversation, said: Conversation, target: Profile) -> Fields:
    """The fields of a body that say what a conversation asks for and the one that was read did not."""
    if given.options == said.options and given.turns == said.turns:
        return {}
    encode = codec(target.protocol).request.encode
    before, after = (encode(replace(each, turns=_system_of(each)), target) for each in (given, said))
    return {name: value for name, value in after.items() if name in _SETTINGS and value != before.get(name)}


def _system_of(conversation: Conversation) -> tuple[Turn, ...]:
    """The system prompts at the head of a conversation, as one."""
    head = tuple(itertools.takewhile(lambda turn: turn.role == "system", conversation.turns))
    return (replace(head[0], blocks=(Text("\n\n".join(turn.text for turn in head)),)),) if head else ()


def _continuing(
    body: Body,
    fields: Fields,
    more: Fields,
    field: str,
    rendered: Rendered,
    source: Profile,
    target: Profile,
    policy: Policy,
    entries: Iterable[Entry],
) -> ConvertedRequest:
    """A request that goes home to what is stored there: what it holds cannot be judged, and is left as it is."""
    job = Job(target, policy, source)
    reason = f"the request continues what {target.name} has stored, so that its history was not looked at"
    job.tell("assumed", reason, "policy", path=f"$.{field}", gravity="housekeeping")
    is_same = all(fields.get(name, value if name == "model" else None) == value for name, value in more.items())
    sent = fields if is_same else {**fields, **more}
    data = body if is_same and isinstance(body, bytes) else None
    report = Report((*job.entries, *entries))
    return ConvertedRequest(sent, report, source=source, target=target, rendered=rendered, data=data)


def repair(
    body: Body,
    *,
    target: str,
    model: str = "",
    policy: Policy = DEFAULT_POLICY,
    overrides: Overrides | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ConvertedRequest:
    """A request of the target's own protocol, as the target accepts it. One that it accepts comes back as it is.

    Every change is in `out.report`. Answers to what was repaired go through `convert_reply` with `request=out`, since
    tools may have been renamed.

    body: the JSON, as bytes or text, or the object that it means.
    target: the provider that it is for.
    model: the model to ask for; without it, the request's own.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    return convert(body, source=target, target=target, model=model, policy=policy, overrides=overrides, limits=limits)


def _profile(name: str, model: str, overrides: Overrides | None, kind: str) -> Profile:
    """What the profiles say, looked up in one step where it was before."""
    try:
        return _known_profile(name, model, overrides, kind)
    except TypeError:  # which no name is that can be looked up
        return profiles.get(name, model, overrides=overrides, kind=kind)


@functools.lru_cache(maxsize=1024)
def _known_profile(name: str, model: str, overrides: Overrides | None, kind: str) -> Profile:
    return profiles.get(name, model, overrides=overrides, kind=kind)


def _check_policy(policy: object) -> None:
    if not isinstance(policy, Policy):
        raise InputError(f"expected a Policy, got {quote(policy)}", path="policy", hint='Policy(required="keep")')


def is_foreign_model(target: Profile) -> bool:
    """Whether the model that a profile is for plainly belongs to another provider."""
    patterns = target.request.foreign_models
    return bool(patterns) and bool(target.model) and matches(target.model, patterns)


def _told_of_model(target: Profile, policy: Policy, kept_model: str, is_foreign: bool) -> list[Entry]:
    """What is said of a request that goes out under its own model's name, or under a name that its target has not."""
    job = Job(target, policy, None)
    if kept_model:
        reason = f"no model was named; the request's own, {kept_model[:80]!r}, is asked for"
        job.tell("assumed", reason, "policy", path="model")
    if is_foreign:
        name, rule = target.model[:80], job.rule("request.foreign_models")
        reason = (
            f"{name!r} is a model of another provider, which {target.name} does not have {rule}; name one of its own"
        )
        job.tell("mismatched", reason, "policy", path="model", gravity="loss")
    return job.entries


def _encode_request(conversation: Conversation, target: Profile, policy: Policy) -> Fields:
    """The body. Where the policy asks for it, Responses tools and a named choice hold a nested `function`."""
    encode = codec(target.protocol).request.encode
    if policy.responses_id_style != "clasp" or target.protocol != "openai_responses":
        return encode(conversation, target)
    tools = [_with_nested(tool, target) if tool.type == "function" else tool for tool in conversation.tools]
    body = encode(replace(conversation, tools=tuple(tools)), target)
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function" and "name" in choice:
        body["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    return body


def _in_order_of(fields: Fields, written: Fields) -> Fields:
    """A body with its fields in the order of the client's, so that a diff of the two shows what was changed."""
    return {**{name: written[name] for name in fields if name in written}, **written}


def _with_nested(tool: ToolSpec, target: Profile) -> ToolSpec:
    said = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    nested = {key: value for key, value in said.items() if value is not None}
    own = {**(tool.extra or {}).get(target.protocol, {}), "function": {**nested, "strict": bool(tool.strict)}}
    return replace(tool, extra={**(tool.extra or {}), target.protocol: own})


def _unwritten(value: Conversation | Reply, profile: Profile, policy: Policy) -> list[Entry]:
    found = unwritten(value, profile.protocol)
    if not found:
        return []
    job = Job(profile, policy, None)
    for field, reason, gravity in found:
        job.tell("dropped", reason, path=f"$.{field}", gravity=gravity)
    return job.entries


# --- replies ----------------------------------------------------------------------------------------


def convert_reply(
    body: Body,
    *,
    source: str,
    target: str,
    request: ConvertedRequest | None = None,
    policy: Policy = DEFAULT_POLICY,
    overrides: Overrides | None = None,
    limits: Limits = DEFAULT_LIMITS,
    reply_id: str = "",
    reply_model: str = "",
) -> ConvertedReply:
    """A provider's answer (`source`) as the client (`target`) reads it.

    With the `request` that it answers (what `convert` or `repair` returned), tools get their own names back,
    free-text calls their free text, and arguments are checked against the client's schema; what does not fit is in
    the report. A call whose arguments cannot be read is never handed on as one that can be run. `reply_id` is the id
    that the answer gets for a client of another protocol, where the provider's own is not to be used; `reply_model`
    is the model that it names, where that is not the one that the provider names.

    Raises `ProviderError` for an answer that is an error, or that cannot be read.

    body: the JSON, as bytes or text, or the object that it means.
    source: the provider that answered.
    target: the protocol of the client.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    _check_policy(policy)
    if request is not None and not isinstance(request, ConvertedRequest):
        raise InputError(f"expected what convert returned, got {quote(request)}", path="request")
    try:
        from_, to = _profile(source, "", overrides, "source"), _profile(target, "", overrides, "target")
        return _converted_reply(body, from_, to, request, policy, limits, reply_id, reply_model)
    except RecursionError:
        raise _too_deep() from None


def _converted_reply(
    body: Body,
    from_: Profile,
    to: Profile,
    request: ConvertedRequest | None,
    policy: Policy,
    limits: Limits,
    reply_id: str,
    reply_model: str,
) -> ConvertedReply:
    fields, answered, mended = decode_reply(body, from_, limits, keeps_reason=from_.protocol == to.protocol)
    job = Job(to, policy, from_)
    report_reading(mended, job)
    rendered = request.rendered if request is not None else None
    reply = _with_text_calls(answered, rendered, dialect_in_text(from_, request, policy), job)
    client = for_client(reply, from_, to, rendered, job, reply_id=reply_id, reply_model=reply_model)
    if not to.turns.refusals and from_.protocol != to.protocol:
        client = replace(client, turn=replace(client.turn, blocks=without_refusals(client.turn.blocks)))
    written = codec(to.protocol).reply.encode(client)
    is_same = False
    if from_.protocol != to.protocol:
        report_missing(missing_fields(fields, from_.protocol), job)
        report_arguments(answered, from_.protocol, job)
        report_losses(client, written, job)
    elif written != fields:
        report_differences(fields, written, job, renamed=(answered.model, reply_model))
    else:
        is_same = not mended
    data = body if is_same and isinstance(body, bytes) else None
    return ConvertedReply(fields if is_same else written, Report(tuple(job.entries)), client, said=reply, data=data)


def decode_reply(
    body: Body, source: Profile, limits: Limits, *, keeps_reason: bool = False
) -> tuple[Fields, Reply, Told]:
    """What a provider answered, and what had to be fixed to read it. What it should not have sent is its fault, not the
    caller's.

    keeps_reason: a reply that says why nobody can use it is a reply, since the client knows the provider's own words.
    """
    if type(body) is not bytes and not isinstance(body, bytes | str | Mapping):
        raise InputError(f"expected bytes, a string or an object, got {quote(body)}", path="body")
    try:
        fields, mended = _parsed_reply(body, limits)
        failure = codec(source.protocol).errors.decode(200, fields, target=source.name)
        if failure is None:
            return _decoded_reply(fields, source.protocol, mended)
        if keeps_reason and failure.kind == "bad_output":
            read = _decoded_reply(fields, source.protocol, mended)
            if read[1].stop == "error":
                return read
    except LimitError:
        raise
    except InputError as error:
        where = f" at {error.path}" if error.path not in ("", "$") else ""
        reason = f"the provider's answer cannot be read{where}: {error.message}"
        if error.hint:
            reason = f"{reason}; {error.hint}"
        raise ProviderError(Failure("bad_output", reason, in_band=True)) from error
    raise ProviderError(failure)


def _decoded_reply(fields: Fields, protocol: str, mended: Told) -> tuple[Fields, Reply, Told]:
    """An answer that a strict reading refuses is read as it is plainly meant, if that is possible."""
    decode = codec(protocol).reply.decode
    try:
        reply = decode(fields)
    except InputError as refused:
        meant, told = read_as_meant(fields, protocol)
        if not told:
            _refuse_foreign(fields, protocol)
            raise
        try:
            return fields, decode(meant), [*mended, *told]
        except InputError:
            _refuse_foreign(fields, protocol)
            raise refused from None
    if not reply.turn.blocks and reply.stop is None:
        _refuse_foreign(fields, protocol)  # it says nothing, perhaps since what it says stands elsewhere
    return fields, reply, mended


def _refuse_foreign(fields: Fields, protocol: str) -> None:
    """Say what an answer looks like that is none of the protocol that it is said to be of."""
    seen = protocol_of_reply(fields)
    if seen is not None and seen != protocol:
        reason = f"it is not an answer of the protocol {protocol}, but looks like one of {seen}"
        raise InputError(reason, hint=f'pass source="{seen}"')
    asked = detect(fields) if seen is None else None
    if asked is not None:
        raise InputError(f"it is not an answer, but looks like a request of {asked}", hint="use convert for a request")


def dialect_in_text(source: Profile, request: ConvertedRequest | None, policy: Policy) -> str:
    """The dialect of the calls that are looked for in the text of a source's replies; none: they are not looked for."""
    choice = request.rendered.conversation.options.tool_choice if request is not None else None
    if choice is not None and choice.mode == "none":
        return ""  # what looks like a call is none: the client forbade them
    prompted = (request.target if request is not None else source).tools.by_prompt
    if prompted:
        return prompted  # the model was told to write them so
    is_on = policy.calls_in_text == "always"
    if policy.calls_in_text == "profile":
        is_on = source.calls.in_text
    return "auto" if is_on else ""


def _with_text_calls(reply: Reply, request: Rendered | None, dialect: str, job: Job) -> Reply:
    """The reply with the calls that its text holds."""
    if not dialect:
        return reply
    asked = request.conversation if request is not None else Conversation()
    if job.source is not None and job.source.protocol != job.profile.protocol:
        spoken = dialects.with_leading_thought(reply)
        if spoken is not reply:
            reply = spoken
            job.tell("converted", "what the text says before its </think> is thinking", "canonical")
    reader = text_reader(dialect, asked, job.policy)
    found = dialects.with_calls(reply, reader)
    is_home = job.source is not None and job.source.protocol == job.profile.protocol
    if is_home and found.turn.calls == reply.turn.calls:
        return reply  # its own client reads the marks of thoughts, or shows them, as it would without us
    if reader.found:
        job.tell("converted", calls_were_text(reader.found), "canonical")
    if reader.has_thoughts:
        job.tell("converted", THOUGHTS_WERE_TEXT, "canonical")
    if reader.dropped:
        job.tell("dropped", marks_said_nothing(reader.dropped), "canonical")
    return found


def text_reader(dialect: str, asked: Conversation, policy: Policy) -> dialects.CallsInText:
    """What finds the calls in the text of the reply to a request."""
    return dialects.CallsInText(
        dialect=dialect,
        tools=asked.tools,
        model=asked.model,
        place=len(asked.turns),
        unoffered=policy.unoffered_calls,
    )


THOUGHTS_WERE_TEXT: Final = "what the model wrote in marks of thinking is thinking of the answer now"


def calls_were_text(found: Iterable[str]) -> str:
    """What a report says of an answer in whose text calls were found."""
    return f"the model wrote calls as text ({', '.join(found)}); they are calls of the answer now"


def marks_said_nothing(dropped: Iterable[str]) -> str:
    """What a report says of marks of calls that hold none."""
    return f"marks of tool calls that hold no call were taken out of the text ({', '.join(dropped)})"


# --- errors -----------------------------------------------------------------------------------------


@_bounded
def convert_error(
    status: int,
    body: bytes | str | Mapping[str, Any] | None,
    *,
    source: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    overrides: Overrides | None = None,
) -> ConvertedError:
    """A provider's error (`source`) in the shape that the client (`target`) expects.

    `status` and `headers` are those of the HTTP answer. Raises `InputError` for what is no error.

    status, headers: those of the HTTP answer.
    body: its body: JSON, other text, or nothing.
    source: the provider that answered.
    target: the protocol of the client.
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    """
    from_ = profiles.get(source, overrides=overrides, kind="source")
    given = dict(body) if isinstance(body, Mapping) else body
    failure = codec(from_.protocol).errors.decode(status, given, headers or {}, target=from_.name)
    if failure is None:
        raise InputError(f"status {status} with this body is no error", path="status", hint="use convert_reply")
    return error_for(failure, target=target, overrides=overrides)


def error_for(
    failure: Failure | ProviderError | InputError, *, target: str, overrides: Overrides | None = None
) -> ConvertedError:
    """A failure, or a mistake of the caller's, in the shape that a client of the target expects.

    failure: what went wrong.
    target: the protocol of the client.
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    """
    if isinstance(failure, ProviderError):
        failure = failure.failure
    told = from_input_error(failure) if isinstance(failure, InputError) else failure
    if not isinstance(told, Failure):
        raise InputError(f"expected a Failure or an error of toolglot, got {quote(told)}", path="failure")
    errors = codec(profiles.get(target, overrides=overrides, kind="target").protocol).errors
    status, body = errors.encode(told)
    return ConvertedError(status=status, body=body, headers=errors.headers_of(told), failure=told)


# --- JSON -------------------------------------------------------------------------------------------


def _changed_in_reading(
    body: Body, fields: Fields, reading: tuple[str, ...], target: Profile, policy: Policy
) -> list[Entry]:
    """What the JSON of a body said that the object read from it does not say."""
    if not reading and isinstance(body, bytes | str) and jsontext.has_duplicate_keys(body, fields):
        twice = jsontext.duplicate_keys(body, limit=1)
        reading = (f"the key {quote(twice[0])} stands more than once in an object; the last one holds",)
    if not reading:
        return []
    job = Job(target, policy, None)
    for reason in reading:
        job.tell("converted", reason, "canonical", path="$", gravity="loss")
    return job.entries


def _parsed(body: Body, limits: Limits, reading: list[str] | None = None) -> Fields:
    """A body as an object. The fast reader reads what it can; the careful one mends or explains the rest."""
    if type(body) is not bytes and isinstance(body, Mapping):
        # A copy of plain values: whatever the caller's object is made of, and whatever becomes of it later.
        cloned = jsontext.clone(dict(body), limits=limits)
        if reading is not None:
            reading += [f"{change.path}: {change.reason}" for change in cloned.changes]
        plain: Fields = cloned.value
        return plain
    if not isinstance(body, bytes | str):
        raise InputError(f"expected bytes, a string or an object, got {quote(body)}", path="body")
    try:
        value = jsontext.parse_plain(body, limits=limits)
    except LimitError:
        raise
    except (ValueError, RecursionError):
        parsed = jsontext.parse(body, limits=limits)
        value = parsed.value
        if reading is not None:
            reading += parsed.mended
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, got {quote(value)}")
    return value


def _parsed_reply(body: Body, limits: Limits) -> tuple[Fields, Told]:
    """The same for an answer, with what was fixed in its text."""
    if isinstance(body, bytes | str):
        try:
            value = jsontext.parse_plain(body, limits=limits)
        except LimitError:
            raise
        except (ValueError, RecursionError):
            parsed = jsontext.parse(body, limits=limits)
            if isinstance(parsed.value, dict):
                return parsed.value, [("$", reason) for reason in parsed.mended]
        else:
            if type(value) is dict:
                return value, [("$", jsontext.TWICE_NAMED)] if jsontext.has_duplicate_keys(body, value) else []
    return _parsed(body, limits), []


def _encoded(body: Fields) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be written as JSON: {error}") from None
