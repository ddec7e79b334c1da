"""From one protocol to another: a client's request for a provider, and the provider's errors for the client.

    out = toolglot.convert(body, source="anthropic", target="openai", model="gpt-5.2")
    out.data, out.report                          # what to send, and what was changed

Replies are in `replies.py`. These two join protocols, history and render; nothing else does. Law 3 (do
no harm): a request to its own provider that needs no change is forwarded byte for byte.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
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
from toolglot.conversation.report import Entry, Report
from toolglot.conversation.tool_memory import ToolMemory, tools_json
from toolglot.conversation.turn_memo import TurnMemo
from toolglot.errors import EmptyConversationError, InputError, StoredHistoryError, quote
from toolglot.history.history import History
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.profiles.name_patterns import matches
from toolglot.protocols.base import codec, get
from toolglot.protocols.errors.failures import ProviderError, from_input_error
from toolglot.protocols.fields.losses import unwritten
from toolglot.protocols.fields.shared_fields import asking_usage, carry_shared_fields
from toolglot.protocols.fields.stored_history import continued_by
from toolglot.protocols.openai_responses.request import stores_answers
from toolglot.render import Rendered, render
from toolglot.render.context import RenderContext
from toolglot.translate.converted import (
    Body,
    Converted,
    Fields,
    bounded_depth,
    check_policy,
    depth_error,
    encode_body,
    parse_body,
    profile_named,
)
from toolglot.translate.reply_head import ReplyHead
from toolglot.translate.request_memory import ClientRequests
from toolglot.translate.request_reading import decode_request, decode_split_request, modernise
from toolglot.translate.web_search import search_for_target

_SETTINGS: Final = frozenset(
    {
        *("instructions", "max_output_tokens", "temperature", "top_p", "reasoning", "tool_choice"),
        *("parallel_tool_calls",),
    }
)
"""Settings of a request that continues a stored history. The other fields are its content."""


class WrittenTurns(Struct, frozen=True):
    """A body whose turns are JSON already."""

    field: str
    """The field that holds the turns."""
    rest: Fields
    """The body, in whose order the field is, without turns."""
    text: bytes
    """The list of turns."""


class ConvertedRequest(Converted):
    """A request for a provider. `convert_reply` takes it to restore the names and ids that it changed.

    body: the request for the provider, as an object.
    report: what was changed.
    source: the profile of the client's protocol.
    target: the profile of the provider.
    rendered: what was sent in canonical form, and how to undo it in the reply.
    data: the body as bytes, where they are known already.
    wants_usage: whether the client asked for token counts in a stream, where its protocol lets it choose.
    written: the body with its turns as JSON, where they were written before.
    make_body: makes the body as an object, where only its bytes are known.
    """

    def __init__(
        self,
        body: Fields,
        report: Report,
        *,
        source: Profile,
        target: Profile,
        rendered: Rendered,
        data: bytes | None,
        wants_usage: bool = False,
        written: WrittenTurns | None = None,
        make_body: Callable[[], Fields] | None = None,
    ) -> None:
        super().__init__(body, report, data=data)
        self._written = written
        self._make_body = make_body
        self.source = source
        self.target = target
        self.rendered = rendered
        self.wants_usage = wants_usage
        requested = rendered.conversation
        self.model: str = requested.model
        """The model of the request; some protocols name it in the URL, not in the body."""
        self.stream: bool = bool(requested.options.stream)
        """Whether the client wants a stream; some protocols say so in the URL."""
        self.head: ReplyHead | None = None
        """What the reply says before the provider's own words."""

    def drop_body(self) -> None:
        super().drop_body()
        self._written = self._make_body = None

    @property
    def body(self) -> Fields:
        """The request as an object."""
        if self._make_body is not None:
            self._body, self._make_body = self._make_body(), None
        return self._body

    def _encode(self) -> bytes:
        if self._written is not None:
            body = {**self._written.rest, self._written.field: Raw(self._written.text)}
        else:
            body = self.body
        known = tools_json(self.rendered.conversation.tools, self.target.protocol, body.get("tools"))
        return encode_body(body if known is None else {**body, "tools": known})


class ConvertedError(Struct, frozen=True, kw_only=True):
    """A failure in the shape of a client's protocol.

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
        return encode_body(self.body)


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
        out.data      # bytes to send: the original bytes, if nothing had to change
        out.body      # the same as an object
        out.report    # what was changed and why, and what could not be carried

    body: the client's request, as JSON (bytes or text) or as the object that it means.
    source, target: any name of the profiles: a provider (`mistral`) or a protocol (`openai_chat`). A host that no
        profile describes is `openai_compatible`.
    model: the model; without it, the request's own.
    policy: what to do where there is a choice.
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large a body may be.

    Raises `UnknownNameError` for an unknown name, `InputError` for a body that is not of the source's protocol, and
    `RefusedError` for one that the target cannot accept after any change.
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
    memory: ToolMemory | ClientRequests | None = None,
) -> ReceivedRequest:
    """Read a client's request once, before its target is chosen. The settings are those of `convert`.

    memory: of earlier requests of the same client, or of their tools only, for who keeps to itself what comes of them
        (`request_memory.py`, `conversation/tool_memory.py`).

    received = toolglot.read_request(body, source="anthropic")
    out = received.for_target("openai", model=chosen(received.conversation))

    body: the JSON, as bytes or text, or the object that it means.
    source: the protocol of the client.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    check_policy(policy)
    try:
        from_ = profile_named(source, "", overrides, "source")
        if isinstance(memory, ClientRequests) and isinstance(body, bytes):
            known = read_continued(body, memory, source=source, policy=policy, overrides=overrides, limits=limits)
            return known or _read_and_remember(body, memory, from_, policy, overrides, limits)
        return _read_new(body, memory if isinstance(memory, ToolMemory) else None, from_, policy, overrides, limits)
    except RecursionError:
        raise depth_error() from None


def read_continued(
    body: bytes,
    memory: ClientRequests,
    *,
    source: str,
    policy: Policy = DEFAULT_POLICY,
    overrides: Overrides | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ReceivedRequest | None:
    """A request that continues one of the client's last ones; None if it has to be read as a whole (`read_request`)."""
    from_ = profile_named(source, "", overrides, "source")
    read = memory.read(body, from_, policy, limits)
    if read is None:
        return None
    return ReceivedRequest(
        body, read.fields, read.conversation, [], from_, policy, overrides, has_unique_keys=True, memo=read.memo
    )


def _read_and_remember(
    body: bytes, memory: ClientRequests, source: Profile, policy: Policy, overrides: Overrides | None, limits: Limits
) -> ReceivedRequest:
    """A request that is read as a whole, and remembered."""
    received = _read_new(body, memory.tools, source, policy, overrides, limits)
    if received.is_as_written and memory.remember(body, received.fields, received.conversation, source):
        received.has_unique_keys = True
        received.use_memo(memory.memo)
    return received


def _read_new(
    body: Body,
    memory: ToolMemory | None,
    source: Profile,
    policy: Policy,
    overrides: Overrides | None,
    limits: Limits,
) -> ReceivedRequest:
    """A request that is read as a whole, but for tools that are known."""
    if not get(source.protocol).has_separate_tools:
        memory = None
    if memory is not None and isinstance(body, bytes) and len(body) <= limits.max_bytes:
        jsontext.refuse_many_values(body, limits, "$")
        split = memory.split(body, source.protocol)
        if split is not None:
            # Known tools were checked when they were first seen.
            jsontext.refuse_deep(body, split.fields if split.tools is None else split.rest, limits, "$")
            conversation, fixes = decode_split_request(split, source, policy)
            return ReceivedRequest(body, split.fields, conversation, fixes, source, policy, overrides)
    reading: list[str] = []
    fields = parse_body(body, limits, reading)
    conversation, fixes = decode_request(fields, source, policy)
    return ReceivedRequest(body, fields, conversation, fixes, source, policy, overrides, reading=tuple(reading))


class ReceivedRequest:
    """A client's request as it was read. It can be rendered for one target after another.

    body: the request as it was received.
    fields: the same as an object.
    conversation: the same in canonical form.
    fixes: what had to be changed to read it.
    source: the profile of the client's protocol.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    reading: what had to be changed to read the JSON of the body.
    has_unique_keys: whether it is known that no object of the body has a key twice.
    memo: what became of the turns in earlier requests of the same session.
    """

    def __init__(
        self,
        body: Body,
        fields: Fields,
        conversation: Conversation,
        fixes: list[Entry],
        source: Profile,
        policy: Policy,
        overrides: Overrides | None,
        *,
        reading: tuple[str, ...] = (),
        has_unique_keys: bool = False,
        memo: TurnMemo | None = None,
    ) -> None:
        self.fields = fields
        self.has_unique_keys: bool = has_unique_keys
        """Whether it is known that no object of the body has a key twice."""
        self.continues: str | None = continued_by(fields, source.protocol)
        """The field that refers to a history which only the provider has; None if the request holds its history."""
        self.conversation: Conversation = conversation
        """What the client sent. If you replace it, the replacement is sent."""
        self._reading = reading  # what had to be changed to read the JSON; not reported if the original bytes are sent
        self._original = conversation
        self._body = body
        self._fixes = fixes
        self._source = source
        self._policy = policy
        self._overrides = overrides
        self._memo = memo

    def use_memo(self, memo: TurnMemo | None) -> None:
        """Use what became of the turns in earlier requests of the same session."""
        self._memo = memo

    @property
    def is_as_written(self) -> bool:
        """Whether nothing had to be changed to read the body."""
        return not self._reading and not self._fixes

    def drop_body(self) -> None:
        """Forget the body: it will not be rendered again. The conversation stays."""
        self.fields, self._body, self._memo = {}, b"", None

    @property
    def original(self) -> Conversation:
        """What the client sent, also if `conversation` was replaced."""
        return self._original

    def address(self, *, model: str = "", stream: bool | None = None) -> None:
        """Set the model, or whether a stream is wanted, from the URL of the request."""
        options = self.conversation.options
        if stream is not None and stream != options.stream:
            options = replace(options, stream=stream)
        elif not model:
            return
        self.conversation = self._original = replace(
            self.conversation, model=model or self.conversation.model, options=options
        )

    def for_target(
        self,
        target: str,
        *,
        model: str = "",
        destination: Issuer | None = None,
        entries: Iterable[Entry] = (),
        policy: Policy | None = None,
        conversation: Conversation | None = None,
    ) -> ConvertedRequest:
        """The request that the target accepts.

        destination: the endpoint and account that it goes to, for signatures that are bound to one.
        entries: report entries for changes that were made to `conversation`.
        policy: replaces the one that the request was read with.
        conversation: replaces `conversation`; what was changed in it is in `entries`.
        """
        try:
            return self._for_target(
                conversation if conversation is not None else self.conversation,
                target,
                model,
                destination,
                entries,
                policy if policy is not None else self._policy,
            )
        except RecursionError:
            raise depth_error() from None

    def _for_target(
        self,
        conversation: Conversation,
        target: str,
        model: str,
        destination: Issuer | None,
        entries: Iterable[Entry],
        policy: Policy,
    ) -> ConvertedRequest:
        fields = self.fields
        named, continued = model or conversation.model, self.continues
        to = profile_named(target, named, self._overrides, "target")
        from_ = profile_named(self._source.name, conversation.model, self._overrides, "source")
        if continued is not None and from_.name != to.name:
            raise StoredHistoryError(
                f"continues a history that only {from_.name} has stored",
                path=f"$.{continued}",
                hint="send the whole history",
            )
        stored = stores_answers(conversation.extra)
        requested = conversation if named == conversation.model else replace(conversation, model=named)
        requested, modern = modernise(requested, from_, to, policy)
        requested, searched = search_for_target(requested, from_, to)
        modern = [*modern, *searched]
        try:
            rendered = render(
                requested,
                to,
                policy=policy,
                source=from_,
                keeps_items=stored,
                destination=destination,
                is_continued=continued is not None,
                memo=self._memo,
            )
        except EmptyConversationError as error:  # the field that the client wrote
            path = f"$.{get(from_.protocol).turns}"
            raise EmptyConversationError(error.message, path=path, hint=error.hint) from None
        if continued is not None:
            more = {**_changed_settings(self._original, conversation, to), "model": named}
            return _continue_stored(self._body, fields, more, continued, rendered, from_, to, policy, entries)
        sent, prompted = _write_tools_as_text(rendered, to, policy)
        if from_.request.hosted_version and not to.request.hosted_version:
            sent = _without_host_fields(sent, from_)
        kept_model = conversation.model if not model and from_.name != to.name else ""
        # A caller that names a destination knows which models it has.
        is_foreign = destination is None and is_foreign_model(to)
        reported = _model_entries(to, policy, kept_model, is_foreign) if kept_model or is_foreign else []
        reported += [*self._fixes, *modern, *entries, *rendered.entries, *prompted]
        if from_.protocol != to.protocol:
            sent = _for_other_protocol(sent, from_, to)
        is_kept = (
            rendered.is_unchanged
            and conversation is self._original
            and not (prompted or self._fixes or modern)
            and from_.request.hosted_version == to.request.hosted_version
        )
        is_same = from_.protocol == to.protocol and named == conversation.model and is_kept
        written, turns, make_body = fields, None, None
        if from_.protocol != to.protocol and self._memo is not None and rendered.is_plain:
            turns = _write_known_turns(sent, to, policy, self._memo)
        if turns is not None:
            written, make_body = turns.rest, functools.partial(_encode_request, sent, to, policy)
        elif not is_same:
            written = _encode_request(sent, to.as_known() if from_.name == to.name else to, policy)
        if from_.protocol == to.protocol:
            is_same = written == fields
            written = fields if is_same else _ordered_like(fields, written)
        reading = None
        if not self.has_unique_keys and (not is_same or type(self._body) is not bytes):
            reading = functools.partial(_changed_in_reading, self._body, fields, self._reading, to, policy)
        if from_.protocol != to.protocol or self._fixes:  # fixed bodies may hold the forms of other protocols
            reported += _report_unwritten(sent, to, policy)
        return ConvertedRequest(
            written,
            Report(tuple(reported), ids=rendered.seen_ids, more=reading),
            source=from_,
            target=to,
            rendered=rendered,
            data=self._body if is_same and isinstance(self._body, bytes) else None,
            wants_usage=_asks_for_usage(self._original, from_),
            written=turns,
            make_body=make_body,
        )


@bounded_depth
def request_for(
    conversation: Conversation | History,
    *,
    target: str,
    model: str = "",
    tools: Iterable[ToolSpec] = (),
    policy: Policy = Policy(ids="canonical"),  # noqa: B008
    overrides: Overrides | None = None,
    destination: Issuer | None = None,
) -> ConvertedRequest:
    """The request that continues a conversation, or a history, with a target.

        out = toolglot.request_for(history, target="anthropic", model="claude-opus-5", tools=tools)
        out.data, out.report

    `tools` are added to those of the conversation; `destination` is the endpoint and account that it goes to,
    for signatures that are bound to one. The reply goes through `StreamReader(request=out)`, or through
    `convert_reply(source=target, target=target, request=out)`.

    conversation: the turns so far.
    target: the provider.
    model: the model.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    """
    check_policy(policy)
    if isinstance(conversation, History):
        conversation = conversation.conversation
    if not isinstance(conversation, Conversation):
        raise InputError(f"expected a Conversation or a History, got {quote(conversation)}", path="conversation")
    named = model or conversation.model
    to = profiles.get(target, named, overrides=overrides, kind="target")
    requested = replace(conversation, model=named, tools=(*conversation.tools, *tools))
    rendered = render(requested, to, policy=policy, destination=destination)
    sent, prompted = _write_tools_as_text(rendered, to, policy)
    body = _encode_request(sent, to, policy)
    reported = _model_entries(to, policy, "", is_foreign=True) if destination is None and is_foreign_model(to) else ()
    entries = (*reported, *rendered.entries, *prompted, *_report_unwritten(sent, to, policy))
    report = Report(entries, ids=rendered.seen_ids)
    wants_usage = _asks_for_usage(conversation, to)
    return ConvertedRequest(body, report, source=to, target=to, rendered=rendered, data=None, wants_usage=wants_usage)


def _asks_for_usage(conversation: Conversation, client: Profile) -> bool:
    """Whether a client asks for token counts in a stream. Not every target gets the field that says so."""
    field, switch = get(client.protocol).usage_switch or ("", "")
    requested = (conversation.extra or {}).get(client.protocol, {}).get(field)
    return isinstance(requested, dict) and bool(requested.get(switch))


def _without_host_fields(conversation: Conversation, source: Profile) -> Conversation:
    """The conversation without the fields in which a cloud has what others have in headers."""
    extra = conversation.extra or {}
    own = extra.get(source.protocol, {})
    fields = get(source.protocol).host_fields
    kept = {name: value for name, value in own.items() if name not in fields}
    return conversation if len(kept) == len(own) else replace(conversation, extra={**extra, source.protocol: kept})


def _for_other_protocol(conversation: Conversation, source: Profile, target: Profile) -> Conversation:
    """The conversation with fields and settings carried to another protocol."""
    conversation = carry_shared_fields(conversation, source.protocol, target)
    return asking_usage(conversation, target) if conversation.options.stream else conversation


def _write_tools_as_text(rendered: Rendered, target: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """The conversation that is sent, with tools, calls and results as text if the target takes tools by prompt."""
    requested, dialect = rendered.conversation, target.tools.by_prompt
    if not dialect or not (requested.tools or any(turn.calls or turn.results for turn in requested.turns)):
        return requested, []
    ctx = RenderContext(target, policy, None)
    reason = f"tools, calls and results were written as text in the dialect {dialect} {ctx.rule('tools.by_prompt')}"
    ctx.report("converted", reason, "policy", path="$.tools")
    choice = requested.options.tool_choice
    if choice is not None and choice.mode != "auto":
        ctx.report(
            "dropped", f"tool choice {choice.mode!r} is not possible for a model that gets its tools in the prompt"
        )
    turns = dialects.to_prompt(requested.tools, requested, dialect).conversation.turns
    plain = replace(requested, turns=turns, tools=(), options=replace(requested.options, tool_choice=None))
    again = render(plain, target, policy=policy, source=target)  # consecutive texts may have to be joined
    return again.conversation, [*ctx.entries, *again.entries]


def _changed_settings(original: Conversation, conversation: Conversation, target: Profile) -> Fields:
    """The settings of a body that differ from those of the original conversation."""
    if original.options == conversation.options and original.turns == conversation.turns:
        return {}
    encode = codec(target.protocol).request.encode
    before, after = (
        encode(replace(each, turns=_leading_system_prompt(each)), target) for each in (original, conversation)
    )
    return {name: value for name, value in after.items() if name in _SETTINGS and value != before.get(name)}


def _leading_system_prompt(conversation: Conversation) -> tuple[Turn, ...]:
    """The system prompts at the head of a conversation, as one."""
    head = tuple(itertools.takewhile(lambda turn: turn.role == "system", conversation.turns))
    return (replace(head[0], blocks=(Text("\n\n".join(turn.text for turn in head)),)),) if head else ()


def _continue_stored(
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
    """A request that continues a history stored by its provider. The history is not known, so nothing is repaired."""
    ctx = RenderContext(target, policy, source)
    reason = f"the request continues a history that {target.name} has stored, which was not checked"
    ctx.report("assumed", reason, "policy", path=f"$.{field}", gravity="housekeeping")
    is_same = all(fields.get(name, value if name == "model" else None) == value for name, value in more.items())
    sent = fields if is_same else {**fields, **more}
    data = body if is_same and isinstance(body, bytes) else None
    report = Report((*ctx.entries, *entries))
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
    """A request of the target's own protocol, changed so that the target accepts it; unchanged if it already does.

    Every change is in `out.report`. Pass replies to `convert_reply` with `request=out`, since tools may have been
    renamed.

    body: the JSON, as bytes or text, or the object that it means.
    target: the provider that it is for.
    model: the model; without it, the request's own.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    return convert(body, source=target, target=target, model=model, policy=policy, overrides=overrides, limits=limits)


@functools.lru_cache(maxsize=1024)
def is_foreign_model(target: Profile) -> bool:
    """Whether the model that a profile is for plainly belongs to another provider."""
    patterns = target.request.foreign_models
    return bool(patterns) and bool(target.model) and matches(target.model, patterns)


def _model_entries(target: Profile, policy: Policy, kept_model: str, is_foreign: bool) -> list[Entry]:
    """Entries for a request without a model name of its target: it keeps its own, or names a foreign model."""
    ctx = RenderContext(target, policy, None)
    if kept_model:
        reason = f"no model was named; the model of the request, {kept_model[:80]!r}, is used"
        ctx.report("assumed", reason, "policy", path="model")
    if is_foreign:
        name, rule = target.model[:80], ctx.rule("request.foreign_models")
        reason = (
            f"{name!r} is a model of another provider, which {target.name} does not have {rule}; name one of its models"
        )
        ctx.report("mismatched", reason, "policy", path="model", gravity="loss")
    return ctx.entries


def _encode_request(conversation: Conversation, target: Profile, policy: Policy) -> Fields:
    """The body. If the policy says so, Responses tools and a named choice hold a nested `function`."""
    encode = codec(target.protocol).request.encode
    if policy.responses_id_style != "clasp" or target.protocol != "openai_responses":
        return encode(conversation, target)
    tools = [_nest_function(tool, target) if tool.type == "function" else tool for tool in conversation.tools]
    body = encode(replace(conversation, tools=tuple(tools)), target)
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function" and "name" in choice:
        body["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    return body


def _write_known_turns(
    conversation: Conversation, target: Profile, policy: Policy, memo: TurnMemo
) -> WrittenTurns | None:
    """The body with turns of which most were written before; None if the protocol or the policy needs them together."""
    write, field = codec(target.protocol).write_turns, get(target.protocol).turns
    if write is None or policy.responses_id_style == "clasp":
        return None

    def text_of(turn: Turn) -> bytes:
        return msgspec.json.encode(write([turn], target))[1:-1]

    try:
        texts = memo.each(("text", target.name, target.model), conversation.turns, text_of, owner=target)
    except (TypeError, ValueError, RecursionError):
        return None  # the whole body is written, and what is wrong with it reported
    rest = _encode_request(replace(conversation, turns=()), target, policy)
    return WrittenTurns(field, rest, b"[%b]" % b",".join(filter(None, texts)))


def _ordered_like(fields: Fields, written: Fields) -> Fields:
    """A body with its fields in the order of the client's, so that a diff of the two shows what was changed."""
    return {**{name: written[name] for name in fields if name in written}, **written}


def _nest_function(tool: ToolSpec, target: Profile) -> ToolSpec:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    nested = {key: value for key, value in function.items() if value is not None}
    own = {**(tool.extra or {}).get(target.protocol, {}), "function": {**nested, "strict": bool(tool.strict)}}
    return replace(tool, extra={**(tool.extra or {}), target.protocol: own})


def _report_unwritten(value: Conversation | Reply, profile: Profile, policy: Policy) -> list[Entry]:
    found = unwritten(value, profile.protocol, profile)
    if not found:
        return []
    ctx = RenderContext(profile, policy, None)
    for field, reason, gravity in found:
        ctx.report("dropped", reason, path=f"$.{field}", gravity=gravity)
    return ctx.entries


# --- errors -----------------------------------------------------------------------------------------


@bounded_depth
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

    Raises `InputError` if the response is not an error.

    status, headers: those of the HTTP response.
    body: its body: JSON, other text, or nothing.
    source: the provider that answered.
    target: the protocol of the client.
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    """
    from_ = profiles.get(source, overrides=overrides, kind="source")
    original = dict(body) if isinstance(body, Mapping) else body
    failure = codec(from_.protocol).errors.decode(status, original, headers or {}, target=from_.name)
    if failure is None:
        raise InputError(f"status {status} with this body is not an error", path="status", hint="use convert_reply")
    return error_for(failure, target=target, overrides=overrides)


def error_for(
    failure: Failure | ProviderError | InputError, *, target: str, overrides: Overrides | None = None
) -> ConvertedError:
    """A failure, or an error of the caller, in the shape that a client of the target expects.

    failure: what went wrong.
    target: the protocol of the client.
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    """
    if isinstance(failure, ProviderError):
        failure = failure.failure
    reported = from_input_error(failure) if isinstance(failure, InputError) else failure
    if not isinstance(reported, Failure):
        raise InputError(f"expected a Failure or an error of toolglot, got {quote(reported)}", path="failure")
    errors = codec(profiles.get(target, overrides=overrides, kind="target").protocol).errors
    status, body = errors.encode(reported)
    return ConvertedError(status=status, body=body, headers=errors.headers_of(reported), failure=reported)


def _changed_in_reading(
    body: Body, fields: Fields, reading: tuple[str, ...], target: Profile, policy: Policy
) -> list[Entry]:
    """What was lost when the JSON of a body was parsed."""
    if not reading and isinstance(body, bytes | str) and jsontext.has_duplicate_keys(body, fields):
        twice = jsontext.duplicate_keys(body, limit=1)
        reading = (f"the key {quote(twice[0])} occurs more than once in an object; the last value was used",)
    if not reading:
        return []
    ctx = RenderContext(target, policy, None)
    for reason in reading:
        ctx.report("converted", reason, "canonical", path="$", gravity="loss")
    return ctx.entries
