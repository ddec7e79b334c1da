"""What was changed in a provider's reply for a client, as entries of the report.

Law 10: whole replies (`convert_reply`) and streams (`StreamTranslator`) go through the same functions, so that both
report the same. A stream is compared once, when its report is read, so single events cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolglot.conversation import Compaction, Media, Opaque, Reply, ServerTool, Text, Thinking, ToolCall, Usage
from toolglot.conversation.report import Entry, Gravity
from toolglot.jsontext import compact, json_path
from toolglot.protocols.base import codec
from toolglot.protocols.fields.losses import unwritten
from toolglot.protocols.lenient.fixes import Fixes
from toolglot.render.content.foreign import SIGNATURE_LEFT_OUT
from toolglot.render.context import RenderContext

MAX_FIXES: Final = 100
MAX_DIFFERENCES: Final = 20
"""Limits on the entries of one reply: for what had to be fixed to read it, and for where the client gets something
other than what the provider wrote."""

_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
_DETAILS: Final[dict[str, Gravity]] = {"cache_write_1h_tokens": "housekeeping"}
"""Counts that are part of another one, which says enough."""
_KINDS: Final = {
    Media: "images or audio",
    ServerTool: "a call of a server tool",
    Compaction: "a summary of the conversation so far",
    Opaque: "a block of the provider's own",
}


def report_reading(fixes: Fixes, ctx: RenderContext) -> None:
    """Report what had to be fixed to read a reply."""
    for path, reason in fixes[:MAX_FIXES]:
        ctx.report("converted", reason, "canonical", path=path)


def report_missing(fixes: Fixes, ctx: RenderContext) -> None:
    """Report fields that the reply lacks and a client of another protocol needs."""
    for path, reason in fixes:
        ctx.report("assumed", reason, "canonical", path=path, gravity="housekeeping")


def report_arguments(reply: Reply, ctx: RenderContext) -> None:
    """Report what was done to read the arguments of calls. Clients of the same protocol get them unchanged."""
    for block in reply.turn.blocks:
        if type(block) is not ToolCall:
            continue
        for done in block.argument_fixes:
            reason = f"the arguments of {block.name[:80]} had to be fixed: {done}"
            ctx.entries.append(
                Entry(
                    action="converted",
                    reason=reason,
                    fault="canonical",
                    native_ids=(block.id,) if block.id else (),
                    target=ctx.profile.name,
                )
            )


def report_estimates(known: Usage | None, filled: Usage, ctx: RenderContext) -> None:
    """Report token counts that the provider did not report."""
    counts = [
        f"{estimated} {name}"
        for name, count, estimated in (
            ("input", known.input_tokens if known is not None else None, filled.input_tokens),
            ("output", known.output_tokens if known is not None else None, filled.output_tokens),
        )
        if count is None and estimated is not None
    ]
    if counts:
        reason = f"the provider did not report these tokens; they are estimated: {', '.join(counts)}"
        ctx.report("assumed", reason, path="$.usage")


def report_losses(meant: Reply, written: dict[str, Any] | None, ctx: RenderContext) -> None:
    """Report what a client of another protocol does not get: unwritten fields, and what is missing in its decoded body.

    `written` is its body; without one, it is written here.
    """
    protocol = ctx.profile.protocol
    for field, reason, gravity in unwritten(meant, protocol):
        ctx.report("dropped", reason, path=f"$.{field}", gravity=gravity)
    if _is_plain(meant):
        return
    codec_ = codec(protocol).reply
    _report_unread(meant, codec_.decode(codec_.encode(meant) if written is None else written), ctx)


def report_signatures(count: int, ctx: RenderContext) -> None:
    """Report signatures that a client of another protocol does not get."""
    if count:
        times = "" if count == 1 else f" ({count} times)"
        ctx.report("dropped", f"{SIGNATURE_LEFT_OUT}{times}", gravity="housekeeping")


def _is_plain(reply: Reply) -> bool:
    """Whether every protocol can express the stop reason, the usage and all blocks of a reply."""
    has_calls = False
    for block in reply.turn.blocks:
        if type(block) is ToolCall:
            has_calls = True
        elif type(block) is not Text:
            return False
    if reply.stop != ("tool_calls" if has_calls else "stop"):
        return False
    usage = reply.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return False
    return not (usage.cache_read_tokens or usage.cache_write_tokens or usage.reasoning_tokens)


def _report_unread(meant: Reply, read: Reply, ctx: RenderContext) -> None:
    if meant.stop != read.stop or meant.stop == "pause":  # only one protocol has this stop reason
        ctx.report("dropped", f"the protocol has no stop reason for {meant.stop!r}", path="$.stop")
    sent, got = meant.usage or Usage(), read.usage or Usage()
    if (sent.input_tokens is None and got.input_tokens is not None) or (
        sent.output_tokens is None and got.output_tokens is not None
    ):
        reason = "the provider did not report all usage; missing counts are 0"
        ctx.report("assumed", reason, path="$.usage")
    for name in _COUNTS:
        count = getattr(meant.usage, name, None)
        if count and getattr(read.usage, name, None) != count:
            reason = f"the client's protocol has no field for {name.replace('_', ' ')}"
            ctx.report("dropped", reason, path="$.usage", gravity=_DETAILS.get(name))
    if _thinking_text(meant) != _thinking_text(read):
        ctx.report("dropped", "the client's protocol cannot carry thinking", path="$.content")
    for kind, what in _KINDS.items():
        if _count(meant, kind) > _count(read, kind):
            ctx.report("dropped", f"the client's protocol cannot carry {what}", path="$.content")


def _thinking_text(reply: Reply) -> str:
    return "".join([block.text for block in reply.turn.blocks if isinstance(block, Thinking)])


def _count(reply: Reply, kind: type) -> int:
    return sum(isinstance(block, kind) for block in reply.turn.blocks)


# --- the same protocol ------------------------------------------------------------------------------


def report_differences(original: Any, written: Any, ctx: RenderContext, *, renamed: tuple[str, str] = ("", "")) -> None:
    """Report where a client gets something other than what a provider of the same protocol sent.

    `renamed` is the model that the provider named and the one that the client gets: that is reported already.
    """
    for _, (path, before, after) in zip(range(MAX_DIFFERENCES), _differences(original, written, ()), strict=False):
        if len(path) == 1 and (before, after) == renamed:
            continue
        reason = f"changed so that the client accepts it; the provider wrote {_shown(before)}"
        ctx.report("replaced", reason, "canonical", path=json_path("$", path))


def _differences(
    original: Any, written: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(original, dict) and isinstance(written, dict):
        for key in (*original, *(key for key in written if key not in original)):
            if key not in original or key not in written:
                yield (*path, key), original.get(key), written.get(key)
            else:
                yield from _differences(original[key], written[key], (*path, key))
    elif isinstance(original, list) and isinstance(written, list) and len(original) == len(written):
        for index, (before_item, after_item) in enumerate(zip(original, written, strict=True)):
            yield from _differences(before_item, after_item, (*path, index))
    elif original != written:
        yield path, original, written


def _shown(value: Any) -> str:
    text = compact(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
