"""A provider's reply for the client: read liberally, checked, and written in the client's protocol.

    back = toolglot.convert_reply(answer, source="openai", target="anthropic", request=out)

Streams read whole replies through the same functions (`stream_reader.py`). Law 8: both give the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from toolglot import dialects, jsontext
from toolglot.conversation import Conversation, Failure, Reply, Usage
from toolglot.conversation.plausible_usage import CACHED_BESIDE, with_cached_input
from toolglot.conversation.report import Report
from toolglot.conversation.token_estimates import with_estimates
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import codec, get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.fields.refusals import without_refusals
from toolglot.protocols.lenient.fixes import Fixes
from toolglot.protocols.lenient.malformed_bodies import fix_reply, missing_fields
from toolglot.protocols.reply_detection import protocol_of_reply
from toolglot.protocols.request_detection import detect
from toolglot.render import Rendered
from toolglot.render.context import RenderContext
from toolglot.render.reply.reply_projection import project_reply
from toolglot.translate.converted import Body, Converted, Fields, check_policy, depth_error, parse_body, profile_named
from toolglot.translate.reply_report import (
    report_arguments,
    report_differences,
    report_estimates,
    report_losses,
    report_missing,
    report_reading,
)
from toolglot.translate.requests import ConvertedRequest
from toolglot.translate.web_search import SearchProjection


class ConvertedReply(Converted):
    """A reply for a client.

    body: the reply for the client, as an object.
    report: what was changed.
    reply: the reply in canonical form, under the client's names.
    provider_reply: the reply in canonical form, as the provider sent it.
    data: the body as bytes, if they are known already.
    """

    def __init__(
        self, body: Fields, report: Report, reply: Reply, *, provider_reply: Reply, data: bytes | None
    ) -> None:
        super().__init__(body, report, data=data)
        self.reply = reply
        """The reply in canonical form, with the client's names and ids."""
        self.provider_reply = provider_reply
        """The reply with the provider's own names and ids, signatures included."""


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
    """A provider's reply (`source`) as the client (`target`) reads it.

    With the `request` that it answers (what `convert` or `repair` returned), tools get their own names back,
    free-text calls their free text, and arguments are checked against the client's schema; what does not fit is in
    the report. A call whose arguments cannot be read is never passed on as one that can be run. `reply_id` is the id of
    the reply for a client of another protocol, instead of the provider's; `reply_model` is the model that it names,
    instead of the one that the provider names.

    Raises `ProviderError` for a reply that is an error, or that cannot be read.

    body: the JSON, as bytes or text, or the object that it means.
    source: the provider that answered.
    target: the protocol of the client.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """
    check_policy(policy)
    if request is not None and not isinstance(request, ConvertedRequest):
        raise InputError(f"expected what convert returned, got {quote(request)}", path="request")
    try:
        from_, to = profile_named(source, "", overrides, "source"), profile_named(target, "", overrides, "target")
        return _convert_reply(body, from_, to, request, policy, limits, reply_id, reply_model)
    except RecursionError:
        raise depth_error() from None


def _convert_reply(
    body: Body,
    from_: Profile,
    to: Profile,
    request: ConvertedRequest | None,
    policy: Policy,
    limits: Limits,
    reply_id: str,
    reply_model: str,
) -> ConvertedReply:
    fields, decoded, fixes = decode_reply(body, from_, limits, keeps_reason=from_.protocol == to.protocol)
    ctx = RenderContext(to, policy, from_)
    report_reading(fixes, ctx)
    rendered = request.rendered if request is not None else None
    reply = _read_text_calls(decoded, rendered, dialect_in_text(from_, request, policy), ctx)
    client = project_reply(reply, from_, to, rendered, ctx, reply_id=reply_id, reply_model=reply_model)
    search = SearchProjection.between(from_, to, rendered.conversation if rendered is not None else None)
    if search is not None:
        client = search.reply(client)
    if client.stop not in NOT_OVER and needs_usage(from_, to, None):
        client = replace(client, usage=usage_for(client, rendered, ctx))
    if not to.turns.refusals and from_.name != to.name:
        client = replace(client, turn=replace(client.turn, blocks=without_refusals(client.turn.blocks)))
    if request is not None and request.head is not None:
        client = request.head.add_to(client, to.protocol)
    fit_reply = codec(to.protocol).fit_reply
    if fit_reply is not None and from_.name != to.name:
        client = fit_reply(client, to)
    written = codec(to.protocol).reply.encode(client)
    is_same = False
    if from_.protocol != to.protocol:
        report_missing(missing_fields(fields, from_.protocol), ctx)
        report_arguments(decoded, ctx)
        report_losses(client if search is None else search.reported(client), written, ctx)
    elif written != fields:
        report_differences(fields, written, ctx, renamed=(decoded.model, reply_model))
    else:
        is_same = not fixes
    data = body if is_same and isinstance(body, bytes) else None
    return ConvertedReply(
        fields if is_same else written, Report(tuple(ctx.entries)), client, provider_reply=reply, data=data
    )


NOT_OVER: Final = frozenset({None, "error", "pause"})
"""The stop reasons of a reply that is not complete, so that it need not have token counts."""


def needs_usage(source: Profile, target: Profile, request: ConvertedRequest | None) -> bool:
    """Whether a client needs token counts, also where the provider reports none."""
    if source.protocol != target.protocol or get(target.protocol).needs_usage:
        return True
    return request is not None and request.wants_usage


def usage_for(reply: Reply, request: Rendered | None, ctx: RenderContext) -> Usage | None:
    """The usage of a reply, with an estimate of what the provider did not report."""
    known = reply.usage
    if known is not None and ctx.source is not None and ctx.source.protocol != ctx.profile.protocol:
        known = with_cached_input(known)
        if known is not reply.usage:
            ctx.report("assumed", CACHED_BESIDE, "canonical", path="$.usage", gravity="housekeeping")
    if known is not None and known.input_tokens is not None and known.output_tokens is not None:
        return known
    requested = request.conversation if request is not None else Conversation()
    filled = with_estimates(known, reply.turn, requested.turns, requested.tools)
    report_estimates(known, filled, ctx)
    return filled


def decode_reply(
    body: Body, source: Profile, limits: Limits, *, keeps_reason: bool = False
) -> tuple[Fields, Reply, Fixes]:
    """Decode a provider's reply, and list what had to be fixed. A reply that cannot be read is a `ProviderError`.

    keeps_reason: accept a reply that only says why it is unusable, since the client knows the provider's own words.
    """
    if type(body) is not bytes and not isinstance(body, bytes | str | Mapping):
        raise InputError(f"expected bytes, a string or an object, got {quote(body)}", path="body")
    try:
        fields, fixes = _parse_reply(body, limits)
        failure = codec(source.protocol).errors.decode(200, fields, target=source.name)
        if failure is None:
            return _decode_liberally(fields, source.protocol, fixes)
        if keeps_reason and failure.kind == "bad_output":
            read = _decode_liberally(fields, source.protocol, fixes)
            if read[1].stop == "error":
                return read
    except LimitError:
        raise
    except InputError as error:
        where = f" at {error.path}" if error.path not in ("", "$") else ""
        reason = f"the provider's reply cannot be read{where}: {error.message}"
        if error.hint:
            reason = f"{reason}; {error.hint}"
        raise ProviderError(Failure("bad_output", reason, in_band=True)) from error
    raise ProviderError(failure)


def _decode_liberally(fields: Fields, protocol: str, fixes: Fixes) -> tuple[Fields, Reply, Fixes]:
    """Decode a reply; if it is malformed, as it is plainly meant."""
    decode = codec(protocol).reply.decode
    try:
        reply = decode(fields)
    except InputError as refused:
        meant, more_fixes = fix_reply(fields, protocol)
        if not more_fixes:
            _refuse_foreign(fields, protocol)
            raise
        try:
            return fields, decode(meant), [*fixes, *more_fixes]
        except InputError:
            _refuse_foreign(fields, protocol)
            raise refused from None
    if not reply.turn.blocks and reply.stop is None:
        _refuse_foreign(fields, protocol)  # empty, perhaps because its content is in fields of another protocol
    return fields, reply, fixes


def _refuse_foreign(fields: Fields, protocol: str) -> None:
    """Raise an error for a body that looks like another protocol, or like a request."""
    seen = protocol_of_reply(fields)
    if seen is not None and seen != protocol:
        reason = f"it is not a reply of the protocol {protocol}, but looks like one of {seen}"
        raise InputError(reason, hint=f'pass source="{seen}"')
    requested = detect(fields) if seen is None else None
    if requested is not None:
        raise InputError(
            f"it is not a reply, but looks like a request of {requested}", hint="use convert for a request"
        )


def dialect_in_text(source: Profile, request: ConvertedRequest | None, policy: Policy) -> str:
    """The dialect of calls in the text of a source's replies; empty if none are looked for."""
    choice = request.rendered.conversation.options.tool_choice if request is not None else None
    if choice is not None and choice.mode == "none":
        return ""  # the client forbade calls, so what looks like one is text
    prompted = (request.target if request is not None else source).tools.by_prompt
    if prompted:
        return prompted  # the prompt tells the model to write calls in this dialect
    is_on = policy.calls_in_text == "always"
    if policy.calls_in_text == "profile":
        is_on = source.calls.in_text
    return "auto" if is_on else ""


def _read_text_calls(reply: Reply, request: Rendered | None, dialect: str, ctx: RenderContext) -> Reply:
    """The reply with the calls that its text holds."""
    if not dialect:
        return reply
    requested = request.conversation if request is not None else Conversation()
    if ctx.source is not None and ctx.source.protocol != ctx.profile.protocol:
        with_thinking = dialects.with_leading_thought(reply)
        if with_thinking is not reply:
            reply = with_thinking
            ctx.report("converted", "the text before </think> was read as thinking", "canonical")
    reader = text_reader(dialect, requested, ctx.policy)
    found = dialects.with_calls(reply, reader)
    is_native = ctx.source is not None and ctx.source.protocol == ctx.profile.protocol
    if is_native and found.turn.calls == reply.turn.calls:
        return reply  # a native client reads or shows the marks of thinking itself
    if reader.found:
        ctx.report("converted", calls_in_text_reason(reader.found), "canonical")
    if reader.has_thoughts:
        ctx.report("converted", THOUGHTS_WERE_TEXT, "canonical")
    if reader.dropped:
        ctx.report("dropped", empty_marks_reason(reader.dropped), "canonical")
    return found


def text_reader(dialect: str, requested: Conversation, policy: Policy) -> dialects.CallsInText:
    """Finds the calls in the text of the reply to a request."""
    return dialects.CallsInText(
        dialect=dialect,
        tools=requested.tools,
        model=requested.model,
        turns_before=len(requested.turns),
        unoffered=policy.unoffered_calls,
    )


THOUGHTS_WERE_TEXT: Final = "the model wrote thinking as text between marks; it was read as thinking"


def calls_in_text_reason(found: Iterable[str]) -> str:
    """The report's reason for calls that were found in text."""
    return f"the model wrote calls as text ({', '.join(found)}); they were read as tool calls"


def empty_marks_reason(dropped: Iterable[str]) -> str:
    """The report's reason for marks of calls that hold no call."""
    return f"marks of tool calls without a call were removed from the text ({', '.join(dropped)})"


def _parse_reply(body: Body, limits: Limits) -> tuple[Fields, Fixes]:
    """The body as an object, and what was fixed in its JSON."""
    if isinstance(body, bytes | str):
        try:
            value = jsontext.parse_plain(body, limits=limits)
        except LimitError:
            raise
        except (ValueError, RecursionError):
            parsed = jsontext.parse(body, limits=limits)
            if isinstance(parsed.value, dict):
                return parsed.value, [("$", reason) for reason in parsed.repairs]
        else:
            if type(value) is dict:
                return value, [("$", jsontext.DUPLICATE_KEY)] if jsontext.has_duplicate_keys(body, value) else []
    return parse_body(body, limits), []
