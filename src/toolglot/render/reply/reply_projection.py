"""A provider's reply with the client's tool names, ids and arguments.

Law 11: a call that cannot be read is never passed on as one that can be run. If the client's protocol writes arguments
as text, it gets what the model wrote; if it needs an object, the call becomes text.

Law 8: a streamed reply (`stream_projection.py`) becomes what it would have become as a whole. So what a block
becomes depends on that block and on what came before it, never on what follows.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot import arguments, jsontext
from toolglot.conversation import (
    Block,
    Form,
    Issuer,
    MalformedCall,
    Reply,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolMetadata,
    Turn,
    ids,
)
from toolglot.conversation.events import UNREPORTED_CUT
from toolglot.conversation.report import Action
from toolglot.errors import InputError, TruncatedArgumentsError
from toolglot.profiles import Profile
from toolglot.render.content.foreign import readable_block, strip_opaque
from toolglot.render.context import RenderContext
from toolglot.render.rendering import Rendered
from toolglot.schema.client_tools import must_fit

UNREADABLE: Final = "[The model called {name} with arguments that cannot be read: {written}]"
NAMELESS: Final = "[The model called a tool without naming it, so that it was not run: {written}]"
MALFORMED: Final = "Malformed function call: {name} {written}"
AS_IT_CAME: Final = "it was passed on unchanged"
NOT_WHOLE: Final = "the client sees that it is incomplete"
NOT_SHOWN: Final = "it was dropped, since none of its arguments arrived"
CUT_REASONS: Final = frozenset({"length", "error"})
"""The stop reasons of a reply that was cut off."""
MAX_SHOWN: Final = 2_000


def project_reply(
    reply: Reply,
    source: Profile,
    target: Profile,
    request: Rendered | None,
    ctx: RenderContext,
    *,
    reply_id: str = "",
    reply_model: str = "",
) -> Reply:
    """A provider's reply under the client's names and ids."""
    projection = ReplyProjection(source, target, request, ctx, reply_id, reply_model)
    id, model = projection.begin(reply.id, reply.model)
    turn = strip_opaque(_join_signed_text(reply.turn), ctx) if projection.is_foreign else reply.turn
    original = turn.blocks
    if projection.is_foreign:
        original = tuple(
            [block for block in original if type(block) is ToolCall or not projection.is_empty_block(block)]
        )
    last = original[-1] if original and reply.stop in CUT_REASONS else None
    blocks: list[Block] = []
    for block in original:
        if type(block) is ToolCall:
            block_for_client = projection.call(block, cut=block is last and projection.may_be_cut(block))
            if block_for_client is not None:
                blocks.append(block_for_client)
        else:
            blocks.append(block)
    passed_blocks = tuple(blocks)
    if passed_blocks != turn.blocks:
        turn = Turn(turn.role, passed_blocks, turn.key, turn.issuer, turn.metadata, turn.extra, turn.form)
    has_end = reply.stop is not None or projection.is_foreign or bool(passed_blocks)
    stop = projection.stop(reply.stop) if has_end else None
    form = reply.form if stop == reply.stop else without_stop_text(reply.form)
    return Reply(turn, stop, reply.usage, id, model, reply.extra, form, projection.malformed or reply.malformed)


def _join_signed_text(turn: Turn) -> Turn:
    """A turn in which signed words continue the text before them: one text is one block for the client.

    Gemini signs the last part of a text only. Some clients show the last block and nothing else.
    """
    blocks: list[Block] = []
    for block in turn.blocks:
        last = blocks[-1] if blocks else None
        if (
            isinstance(block, Text)
            and isinstance(last, Text)
            and block.signature is not None
            and last.signature is None
            and (block.extra, block.form, block.is_refusal) == (last.extra, last.form, last.is_refusal)
        ):
            blocks[-1] = replace(last, text=last.text + block.text, signature=block.signature)
        else:
            blocks.append(block)
    return turn if len(blocks) == len(turn.blocks) else replace(turn, blocks=tuple(blocks))


def without_stop_text(form: Form | None) -> Form | None:
    return form.without_stop_text() if form is not None else None


class ReplyProjection:
    """The ids, names and calls of one reply for the client."""

    def __init__(
        self,
        source: Profile,
        target: Profile,
        request: Rendered | None,
        ctx: RenderContext,
        reply_id: str = "",
        reply_model: str = "",
    ) -> None:
        self._reply_id = reply_id
        self._reply_model = reply_model
        self._source = source
        self._target = target
        self._request = request
        self._ctx = ctx
        self.is_foreign: bool = source.protocol != target.protocol
        self._own_ids: set[str] = set()
        """The ids of calls that a client of the same protocol gets unchanged."""
        self._unreported: list[tuple[ToolCall, str, bool]] = []
        """Calls that cannot be run, until it is known whether the provider itself says that they were cut off."""
        self._unchecked: tuple[ToolCall, str] | None = None
        """The last call and its name for the provider, until the same is known."""
        self._id_projection: ids.Projection | None = None
        """The ids of the client's calls so far."""
        self._id_maker = _IdMaker(source.name, len(request.ids) if request is not None else None)
        self._calls = 0
        self._runnable = 0
        self._malformed = ""
        """The call that cannot be read, for a client whose protocol has a stop reason for that."""
        self._has_cut_call = False
        """Whether the arguments of a call end before they are complete."""

    def begin(self, id: str, model: str) -> tuple[str, str]:
        """The id and the model of the reply, which a client of another protocol must get."""
        self._id_maker.reply_id = id
        if self._reply_model and self._reply_model != model:
            reason = f"the provider names the model {model[:80]!r}; the client sees {self._reply_model[:80]!r}"
            self._ctx.report("replaced", reason, "projection", path="$.model", gravity="housekeeping")
            model = self._reply_model
        if not self.is_foreign:
            return id, model
        requested = self._request.conversation.model if self._request is not None else ""
        return self._reply_id or id or f"reply_{self._id_maker.key}", model or requested

    def is_empty_block(self, block: Block) -> bool:
        """Whether a block is empty, so that a client of another protocol does not get it."""
        if not self.is_foreign or not isinstance(block, Text | Thinking) or block.text or block.signature:
            return False
        return isinstance(block, Text) or block.redacted is None

    def readable_block(self, block: Block) -> Block:
        """A block without what only the model's provider can read, for a client of another protocol."""
        return readable_block(block) if self.is_foreign else block

    def stop(self, original: StopReason | None) -> StopReason | None:
        """The stop reason, considering the calls that the client gets. A reply without one counts as complete."""
        self.report_rest(original)
        if self._has_cut_call and original in (None, "stop", "tool_calls"):
            self._ctx.report("assumed", UNREPORTED_CUT, "canonical", path="$.stop")
            return "length"
        if original is None:
            meant: StopReason = "tool_calls" if self._runnable else "error" if self._malformed else "stop"
            what = "it has calls, so tool_calls was assumed" if self._runnable else "a complete reply was assumed"
            self._ctx.report("assumed", f"the reply has no stop reason; {what}", "canonical", path="$.stop")
            return meant
        if not self._calls:
            return original
        if self._malformed and not self._runnable and original in ("stop", "tool_calls"):
            return "error"
        return "stop" if original == "tool_calls" and not self._runnable else original

    @property
    def malformed(self) -> MalformedCall | None:
        """The call that cannot be read, if the target has a stop reason of its own for that."""
        if not self._malformed or self._runnable:
            return None
        return MalformedCall(self._target.calls.malformed, self._malformed)

    # --- calls --------------------------------------------------------------------------------------

    def must_be_whole(self, opened: ToolCall) -> bool:
        """Whether a call must be complete to be passed on: its id or its form depends on all of its arguments."""
        if not opened.name.strip() or self._rewrites(opened):
            return True
        if not opened.id.strip():
            return not self._needs_no_id(opened)
        return self.is_foreign and self._target.stream.calls == "whole"

    def _rewrites(self, opened: ToolCall) -> bool:
        return self._request is not None and self._request.tools.is_rewritten(opened.name)

    def _needs_no_id(self, call: ToolCall) -> bool:
        """Whether a call needs no id: the client knows this provider's calls without one."""
        if self.is_foreign:
            return False
        return not self._target.ids.required or (call.form is not None and call.form.is_only_call)

    def may_be_cut(self, call: ToolCall, *, came_blank: bool = False) -> bool:
        """Whether the last call of a reply that was cut off may not be run.

        If arguments are text and none arrived, the call was cut off before them, unless its tool is known to have no
        parameters. If the request is not known, a stream (`came_blank`) saw that none arrived; in a whole reply blank
        means no arguments, as many hosts write it. Anthropic writes a call that was cut off there as one without
        arguments (F1): its tool accepts that, or it was cut off.
        """
        if call.type == "custom":
            return True
        if not self.is_foreign or call.arguments != {}:
            return False
        if self._request is None:
            return came_blank
        tools = self._request.tools
        if came_blank or (call.raw_input is not None and not call.raw_input.strip()):
            tool = tools.of(call.name)
            return tool is None or bool((tool.original.parameters or {}).get("properties"))
        return self._source.calls.arguments != "string" and bool(tools.mismatches(tools.original_call(call)))

    def open_call(self, opened: ToolCall) -> ToolCall:
        """A call that has just begun, under the client's name for the tool and an id that the client can send back."""
        emitted = self._with_id(opened)
        return self._request.tools.original_call(emitted) if self._request is not None else emitted

    def close_call(self, opened: ToolCall, whole: ToolCall) -> ToolCall:
        """End a call that `open_call` began as `opened`."""
        named = replace(whole, id=opened.id, name=opened.name, namespace=opened.namespace)
        self._check(named, whole.name)
        self._runnable += 1
        return whole if named == whole else named

    def needs_object(self, opened: ToolCall) -> bool:
        """Whether a client of another protocol needs the arguments of a call as an object."""
        return self.is_foreign and opened.type == "function"

    def unshown_call(self, opened: ToolCall, whole: ToolCall, *, cut: bool) -> Block | None:
        """A complete call that `open_call` began and that was not shown yet."""
        named = replace(whole, id=opened.id, name=opened.name, namespace=opened.namespace)
        if cut and self.writes_text and not _is_readable(named):
            self.report_unreadable(named, NOT_WHOLE, cut=True)
            return named
        if cut or not _is_readable(named):
            return self._unreadable_block(named, cut=cut)
        closed = self.close_call(opened, whole)
        return replace(closed, raw_input=None) if closed.arguments is not None else closed

    def call(self, call: ToolCall, *, cut: bool = False) -> Block | None:
        """A complete call as the client gets it. One that cannot be run may become text, or only a stop reason."""
        if not call.name.strip():
            name = self._forced_name()
            if not name:
                return self._nameless_text(call)
            self._ctx.report("assumed", f"a call has no name; the forced tool {name!r} was assumed", "canonical")
            call = replace(call, name=name)
        original = self.open_call(call)
        if not cut:
            self._check(original, call.name)
        if self._is_misshapen(original):
            original = replace(original, arguments=None, raw_input=jsontext.compact(original.arguments or {}))
        if cut or (original.type != "custom" and not _is_readable(original)):
            return self._unreadable_block(original, cut=cut)
        self._runnable += 1
        return call if original == call else original

    def _is_misshapen(self, call: ToolCall) -> bool:
        """Whether a call of a type of its own has arguments that no such call can hold."""
        return must_fit(call.type) and self._request is not None and bool(self._request.tools.mismatches(call))

    def _with_id(self, call: ToolCall) -> ToolCall:
        index, self._calls = self._calls, self._calls + 1
        raw_id = call.id if call.id.strip() else None
        if raw_id is None and self._needs_no_id(call):
            return call
        is_again = False
        if raw_id is not None and not self.is_foreign:
            # Its issuer recognises it, legal elsewhere or not; only a repeated one is useless.
            is_again = raw_id in self._own_ids
            if not is_again:
                self._own_ids.add(raw_id)
                return call
        issuer = self._source.name if self.is_foreign else self._target.name
        if self._id_projection is None:
            self._id_projection = ids.Projection(
                self._target,
                policy="reversible",
                canonical_id=self._id_maker.canonical_id,
                issuer=issuer,
                keeps_legal=False,
            )
        self._id_maker.call, self._id_maker.index = call, index
        if raw_id is not None and not is_again and raw_id not in self._id_projection and call.metadata is None:
            client_id = self._id_projection.add(call)
        else:
            named = None if is_again else raw_id
            origin = ToolMetadata(named, Issuer(issuer if named is not None else self._source.name))
            client_id = self._id_projection.add(replace(call, id=self._id_maker.canonical_id(), metadata=origin))
        if client_id == raw_id:
            return call
        if raw_id is None and self._source.ids.required:
            reason = f"a call of {call.name[:80]} has no id; the client gets {client_id!r}"
            self._ctx.report("added", reason, "projection", call_ids=(client_id,))
        if raw_id is not None and not (self.is_foreign and ids.are_alike(raw_id, client_id)):
            reason = f"the id {raw_id[:80]!r} is used twice, or is not legal in the client's protocol"
            reason += f"; the client gets {client_id!r}"
            self._ctx.report("replaced", reason, "projection", call_ids=(client_id,))
        return replace(call, id=client_id)

    def _forced_name(self) -> str:
        """The name of the only tool that the model could call; empty if there are several."""
        conversation = self._request.conversation if self._request is not None else None
        choice = conversation.options.tool_choice if conversation is not None else None
        if conversation is None or choice is None or choice.mode not in ("named", "required"):
            return ""
        names = choice.names if choice.mode == "named" else tuple(tool.name for tool in conversation.tools)
        return names[0] if len(names) == 1 else ""

    def _nameless_text(self, call: ToolCall) -> Text:
        """A call without a name, as text: it cannot be run, and a client would fail at the empty name."""
        self._calls += 1
        written = _shown_arguments(call) or jsontext.compact(call.arguments or {})[:MAX_SHOWN]
        self._ctx.report(
            "converted",
            f"a call has no name, so it cannot be run; it became text: {written}",
            "loss",
            gravity="loss",
        )
        return Text(NAMELESS.format(written=written), None if self.is_foreign else call.signature)

    def _check(self, call: ToolCall, emitted_name: str) -> None:
        """Report where a call differs from what the client declared; for the last call, once it is complete."""
        if self._request is None:
            return
        if self.is_foreign:
            self._report_mismatches(call, emitted_name)
            return
        before, self._unchecked = self._unchecked, (call, emitted_name)
        if before is not None:
            self._report_mismatches(*before)

    def _report_mismatches(self, call: ToolCall, emitted_name: str) -> None:
        if self._request is None:
            return
        if self._request.conversation.tools and self._request.tools.of(emitted_name) is None:
            reason = f"the model called {call.name[:80]!r}, which is not a tool of the request"
            self._ctx.report("mismatched", reason, "canonical", call_ids=(call.id,))
        for mismatch in self._request.tools.mismatches(call):
            where = f"arguments of {call.name[:80]} at {mismatch.path}"
            self._ctx.report("mismatched", f"{where}: {mismatch.message}", "canonical", call_ids=(call.id,))

    @property
    def writes_text(self) -> bool:
        """Whether the client's protocol writes arguments as text, which need not be an object."""
        return self._target.calls.arguments == "string"

    def report_unreadable(self, call: ToolCall, outcome: str, *, cut: bool = False) -> None:
        """Report that a call cannot be run, what became of it, and what the model wrote.

        A client of the same protocol gets it unchanged. If the provider says that the reply was cut off, nothing more
        is reported.
        """
        if self.is_foreign or outcome not in (AS_IT_CAME, NOT_WHOLE):
            self._add_unreadable_entry(call, outcome, cut=cut)
        else:
            self._unreported.append((call, outcome, cut))

    def report_rest(self, original: StopReason | None) -> None:
        """Report what waited for the stop reason; None if the reply broke off or has none."""
        unreported, self._unreported = self._unreported, []
        last, self._unchecked = self._unchecked, None
        if original not in ("length", "error"):
            for call, outcome, cut in unreported:
                self._add_unreadable_entry(call, outcome, cut=cut)
            if last is not None:
                self._report_mismatches(*last)

    def _add_unreadable_entry(self, call: ToolCall, outcome: str, *, cut: bool) -> None:
        why = "its arguments were cut off" if cut else _why_unreadable(call.raw_input or "")
        reason = f"the call of {call.name[:80]} cannot be run ({why}); {outcome}"
        if outcome == NOT_SHOWN:
            self._ctx.report("dropped", reason, "canonical", call_ids=(call.id,))
            return
        action: Action = "mismatched" if self.writes_text else "converted"
        self._ctx.report(action, f"{reason}: {_shown_arguments(call)}", "canonical", call_ids=(call.id,))

    def _unreadable_block(self, call: ToolCall, *, cut: bool) -> Block | None:
        """A call whose arguments were cut off or are not an object."""
        ends_early = self.is_foreign and not cut and _ends_early(call.raw_input or "")
        self._has_cut_call = self._has_cut_call or ends_early
        if self.writes_text and not cut and call.type == "function":
            self.report_unreadable(call, NOT_WHOLE if ends_early else AS_IT_CAME)
            self._runnable += not ends_early
            return call
        return self.text_for_call(call, cut=cut)

    def text_for_call(self, call: ToolCall, *, cut: bool) -> Text | None:
        """The text instead of a call that cannot be run; None if the client only gets a stop reason for it."""
        if not _shown_arguments(call).strip():
            self.report_unreadable(call, NOT_SHOWN, cut=cut)
            return None
        if self._target.calls.malformed and self.is_foreign:
            self.report_unreadable(call, "the client gets a stop reason for it", cut=cut)
            self._malformed = MALFORMED.format(name=call.name, written=_shown_arguments(call))
            return None
        self.report_unreadable(call, "it became text", cut=cut)
        return text_for_call(call)


def text_for_call(call: ToolCall) -> Text:
    """The text for a call that cannot be run and cannot be shown."""
    return Text(UNREADABLE.format(name=call.name, written=_shown_arguments(call)))


_NO_CALL: Final = ToolCall("", "")


class _IdMaker:
    """The ids that a history would assign to the calls of one reply; most calls do not need it."""

    __slots__ = ("_so_far", "_source", "call", "index", "reply_id")

    def __init__(self, source: str, so_far: int | None) -> None:
        self._source = source
        self._so_far = so_far
        self.reply_id = ""
        self.call = _NO_CALL
        """The call that gets an id now."""
        self.index = 0

    @property
    def key(self) -> str:
        """What distinguishes this reply from others."""
        so_far = "" if self._so_far is None else self._so_far
        return hashlib.sha256(f"{self._source}|{self.reply_id}|{so_far}".encode()).hexdigest()[:22]

    def canonical_id(self, _: str = "") -> str:
        call = self.call
        raw_id = call.id if call.id.strip() else None
        key = self.key if raw_id is not None else f"{self.key}|{_content_hash(call)}"
        return ids.mint(self._source, raw_id, call.name, key, self.index)


def _shown_arguments(call: ToolCall) -> str:
    written = call.raw_input or ""
    return written if len(written) <= MAX_SHOWN else written[:MAX_SHOWN] + "…"


def _is_readable(call: ToolCall) -> bool:
    return call.arguments is not None or not (call.raw_input or "").strip()


def _why_unreadable(written: str) -> str:
    try:
        arguments.parse(written)
    except InputError as error:
        return error.message
    return "its arguments do not fit its tool"


def _ends_early(written: str) -> bool:
    """Whether arguments end before they are complete."""
    try:
        arguments.parse(written)
    except TruncatedArgumentsError:
        return True
    except InputError:
        return False
    return False


def _content_hash(call: ToolCall) -> str:
    """A hash of a call without an id, which distinguishes it from others."""
    original = call.raw_input if call.arguments is None else msgspec.json.encode(call.arguments, order="deterministic")
    data = original.encode("utf-8", "surrogatepass") if isinstance(original, str) else original or b""
    return hashlib.sha256(data).hexdigest()[:22]
