"""What became of a provider's answer on its way to a client, as entries of the report.

Law 10: whole answers (`convert_reply`) and streams (`StreamTranslator`) go through the same functions, so that both
report the same. A stream is looked at once, when somebody asks for its report: events cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolglot.conversation import Media, Opaque, Reply, ServerTool, Text, Thinking, ToolCall, Usage
from toolglot.conversation.report import Entry
from toolglot.jsontext import compact, json_path
from toolglot.protocols.base import codec
from toolglot.protocols.fields.losses import unwritten
from toolglot.protocols.lenient.malformed_bodies import Told
from toolglot.render.content.foreign import SIGNATURE_LEFT_OUT
from toolglot.render.context import RenderContext

MOST_MENDED: Final = 100
MOST_DIFFERENCES: Final = 20
"""How many places of one answer are reported that had to be fixed to be read, or that a client of the same protocol
gets otherwise than the provider wrote them."""

_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
_KINDS: Final = {Media: "an image or a sound", ServerTool: "a tool that the provider ran", Opaque: "a block of its own"}


def report_reading(told: Told, ctx: RenderContext) -> None:
    """What had to be fixed before an answer could be read."""
    for path, reason in told[:MOST_MENDED]:
        ctx.report("converted", reason, "canonical", path=path)


def report_missing(told: Told, ctx: RenderContext) -> None:
    """What an answer does not say, and a client of another protocol is told all the same."""
    for path, reason in told:
        ctx.report("assumed", reason, "canonical", path=path, gravity="housekeeping")


def report_arguments(reply: Reply, ctx: RenderContext) -> None:
    """What was done to read the arguments of calls. Their own protocol's clients get them as they were written."""
    for block in reply.turn.blocks:
        if type(block) is not ToolCall:
            continue
        for done in block.argument_fixes:
            reason = f"the arguments of {block.name[:80]} do not stand there as they are meant: {done}"
            ctx.entries.append(
                Entry(
                    action="converted",
                    reason=reason,
                    fault="canonical",
                    native_ids=(block.id,) if block.id else (),
                    target=ctx.profile.name,
                )
            )


def report_losses(meant: Reply, written: dict[str, Any] | None, ctx: RenderContext) -> None:
    """What a client of another protocol will not see: by the fields that are left over, and by reading what it gets.

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
    """What only the provider can read, and what a client of another protocol does not get."""
    if count:
        times = "" if count == 1 else f" ({count} times)"
        ctx.report("dropped", f"{SIGNATURE_LEFT_OUT}{times}", gravity="housekeeping")


def _is_plain(reply: Reply) -> bool:
    """Whether every protocol has a place for why a reply ended, for what it cost and for all kinds of its blocks."""
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
    if meant.stop != read.stop or meant.stop == "pause":  # only one protocol has a word for that
        ctx.report("dropped", f"the protocol has no word for a reply that ended with {meant.stop!r}", path="$.stop")
    said, got = meant.usage or Usage(), read.usage or Usage()
    if (said.input_tokens is None and got.input_tokens is not None) or (
        said.output_tokens is None and got.output_tokens is not None
    ):
        reason = "the provider did not say all that the answer cost; counts that are missing are 0"
        ctx.report("assumed", reason, path="$.usage")
    for name in _COUNTS:
        count = getattr(meant.usage, name, None)
        if count and getattr(read.usage, name, None) != count:
            ctx.report("dropped", f"{name.replace('_', ' ')} have no place there", path="$.usage")
    if _thoughts(meant) != _thoughts(read):
        ctx.report("dropped", "thinking has no place there", path="$.content")
    for kind, what in _KINDS.items():
        if _count(meant, kind) > _count(read, kind):
            ctx.report("dropped", f"{what} has no place there", path="$.content")


def _thoughts(reply: Reply) -> str:
    return "".join([block.text for block in reply.turn.blocks if isinstance(block, Thinking)])


def _count(reply: Reply, kind: type) -> int:
    return sum(isinstance(block, kind) for block in reply.turn.blocks)


# --- the same protocol ------------------------------------------------------------------------------


def report_differences(given: Any, written: Any, ctx: RenderContext, *, renamed: tuple[str, str] = ("", "")) -> None:
    """Where a client gets something else than the provider of the same protocol sent.

    `renamed` is the model that the provider named and the one that the client is told: that is reported already.
    """
    for _, (path, before, after) in zip(range(MOST_DIFFERENCES), _differences(given, written, ()), strict=False):
        if len(path) == 1 and (before, after) == renamed:
            continue
        reason = f"what the provider wrote there was made legal for the client: {_shown(before)}"
        ctx.report("replaced", reason, "canonical", path=json_path("$", path))


def _differences(
    given: Any, written: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(given, dict) and isinstance(written, dict):
        for key in (*given, *(key for key in written if key not in given)):
            if key not in given or key not in written:
                yield (*path, key), given.get(key), written.get(key)
            else:
                yield from _differences(given[key], written[key], (*path, key))
    elif isinstance(given, list) and isinstance(written, list) and len(given) == len(written):
        for index, (one, other) in enumerate(zip(given, written, strict=True)):
            yield from _differences(one, other, (*path, index))
    elif given != written:
        yield path, given, written


def _shown(value: Any) -> str:
    text = compact(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
