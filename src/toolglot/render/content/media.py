"""Images, documents and audio, where the target accepts them.

A kind that a user turn cannot hold, a file that only its issuer can open, or a medium that cannot be read, becomes a
line of text. A kind that only results cannot hold (text-only tool messages) moves behind the last result of its run,
never between two of them, and a line in the result says so.

Runs after `foreign`, which may drop blocks, and before anything that counts or joins turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, ResultPart, Text, ToolResult, Turn
from toolglot.profiles import resolve
from toolglot.render.content import media_faults
from toolglot.render.content.document_names import name_documents
from toolglot.render.context import RenderContext, unless_same

MOVED: Final = "[{kind}: shown after the tool results]"
SHOWN: Final = "[From the tool results:]"
UNSEEN: Final = "[{kind}{name}: it cannot be shown here]"

MAX_NAME: Final = 200

_DOCUMENTS: Final = ("application/pdf", "text/")

_ENDINGS: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}


def fit_media(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with every medium where the target accepts it, and under a name that it accepts."""
    return name_documents(_fit_all(turns, ctx), ctx)


def _fit_all(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    if Media not in ctx.facts(turns).kinds:
        return turns
    fitted_turns: list[Turn] = []
    waiting: list[Media] = []
    for turn in turns:
        if waiting and not turn.results:
            fitted_turns.append(_media_turn(waiting, fitted_turns[-1]))
            waiting = []
        fitted_turns.append(_fit_turn(turn, waiting, ctx))
    if waiting:
        fitted_turns.append(_media_turn(waiting, fitted_turns[-1]))
    return unless_same(tuple(fitted_turns), turns)


def _media_turn(media: Sequence[Media], near: Turn) -> Turn:
    """A user turn for media that were moved out of results."""
    return Turn("user", (Text(SHOWN), *media), key=f"{near.key}+media")


def _fit_turn(turn: Turn, moved: list[Media], ctx: RenderContext) -> Turn:
    accepted = ctx.profile.turns.assistant_media if turn.role == "assistant" else ctx.profile.turns.media
    blocks: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, Media):
            blocks.append(_fit_medium(block, accepted, turn, ctx))
        elif isinstance(block, ToolResult) and isinstance(block.content, tuple):
            blocks.append(_fit_result(block, block.content, moved, turn, ctx))
        else:
            blocks.append(block)
    kept = unless_same(tuple(blocks), turn.blocks)
    return turn if kept is turn.blocks else replace(turn, blocks=kept)


def kind_of(media: Media) -> str:
    """The kind of a medium; that of a file follows from its type."""
    if media.kind != "file":
        return media.kind
    major = media.media_type.partition("/")[0]
    if major in ("image", "audio", "video"):
        return major
    return "document" if media.media_type.startswith(_DOCUMENTS) else "file"


def _kind_for_target(media: Media, ctx: RenderContext) -> str:
    """What the target takes a medium for (gemini-media-by-type)."""
    by_type = ctx.profile.turns.media_by_type and not ctx.is_native
    return "file" if by_type and not (media.media_type or _guess_type(media)) else kind_of(media)


def _fit_medium(media: Media, accepted: Sequence[str], turn: Turn, ctx: RenderContext) -> Media | Text:
    """The medium as the target accepts it, or a line of text."""
    kind = kind_of(media)
    if _is_out_of_reach(media, turn, ctx):
        reason = f"the {kind} is referred to by a file id, which only the provider that stores it can open"
    elif media.data is None and media.url is not None and not _takes_url(media.url, ctx):
        reason = f"the {kind} is referred to by a URL, which is not accepted {ctx.rule('turns.media_sources')}"
    elif fault := _fault_for_target(media, ctx):
        reason = f"the {kind} cannot be read: {fault}"
    elif kind in accepted or media.kind in accepted:
        return _with_type(media if media.kind in accepted else replace(media, kind=kind), ctx)
    else:
        key = "turns.assistant_media" if turn.role == "assistant" else "turns.media"
        reason = f"{kind} is not accepted here {ctx.rule(key)}"
    ctx.report("converted", f"{reason}; a line of text replaced it", turn_key=turn.key, gravity="loss")
    if media.detail is not None:
        ctx.report("dropped", "a line of text cannot carry detail", path="$.detail", turn_key=turn.key, gravity="loss")
    ctx.report_fields(media.extra, media.form, "a line of text", turn.key)
    name = media.name or media.url or ""
    return Text(UNSEEN.format(kind=kind, name=f" {name[:MAX_NAME]}" if name else ""))


def _takes_url(url: str, ctx: RenderContext) -> bool:
    """Whether the target accepts a medium by this URL."""
    sources = ctx.profile.turns.media_sources
    in_store = url.partition(":")[0].lower() in ctx.profile.turns.media_stores
    return "url" in sources or (in_store and "store" in sources)


def _fault_for_target(media: Media, ctx: RenderContext) -> str:
    """Why the target cannot read a medium. In a native request, only what the provider would refuse is a fault."""
    rules = ctx.profile.turns
    if ctx.is_native:
        refused = media.data is not None and rules.media_base64 and not media_faults.is_base64(media.data)
        return media_faults.fault_of(media) if refused else ""
    fault = media_faults.fault_of(media, (*media_faults.ADDRESSES, *rules.media_stores))
    if fault or media.data is None or media_faults.has_type(media) or _guess_type(media):
        return fault
    return "" if media.kind in rules.untyped_media else "its type is not known"


def _guess_type(media: Media) -> str:
    """The type by the first bytes or the name; empty if they do not show it."""
    if media.data is not None:
        return media_faults.type_by_start(media.data)
    ending = (media.url or "").partition("?")[0].rpartition(".")[2].lower()
    return _ENDINGS.get(ending, "")


def _with_type(media: Media, ctx: RenderContext) -> Media:
    """The medium with its type, which some protocols do not have and others require."""
    if ctx.is_native and (media.data is None or media_faults.is_base64(media.data)):
        standard = media
    else:
        standard = media_faults.with_standard_base64(media)
    if standard is not media:
        ctx.report("converted", "base64 of another alphabet was rewritten in the standard one", gravity="housekeeping")
        media = standard
    if media.media_type if ctx.is_native or media.data is None else media_faults.has_type(media):
        return media
    found = "" if ctx.is_native and media.data is None else _guess_type(media)
    if not found:
        return media
    ctx.report("assumed", f"a medium has no type; its first bytes or its name say {found}", "policy")
    return replace(media, media_type=found)


def _is_out_of_reach(media: Media, turn: Turn, ctx: RenderContext) -> bool:
    if media.file_id is None or media.data is not None or media.url is not None:
        return False
    is_own = turn.issuer is not None and resolve(turn.issuer.provider) == ctx.profile.name
    return not (is_own or ctx.is_native)


def _fit_result(
    result: ToolResult, content: tuple[ResultPart, ...], moved: list[Media], turn: Turn, ctx: RenderContext
) -> ToolResult:
    results = ctx.profile.results
    parts: list[ResultPart] = []
    for part in content:
        if not isinstance(part, Media):
            parts.append(part)
            continue
        kind = _kind_for_target(part, ctx)
        if kind in results.media and (results.error_media or not result.is_error):
            parts.append(_fit_medium(part, results.media, turn, ctx))
            continue
        fitted = _fit_medium(part, ctx.profile.turns.media, turn, ctx)
        if isinstance(fitted, Text):
            parts.append(fitted)
            continue
        rule = "results.error_media" if kind in results.media else "results.media"
        reason = f"a tool result cannot hold {kind} {ctx.rule(rule)}; it was moved behind the results"
        ctx.report("moved", reason, turn_key=turn.key, call_ids=(result.call_id,))
        moved.append(fitted)
        parts.append(Text(MOVED.format(kind=kind)))
    kept = unless_same(tuple(parts), content)
    return result if kept is content else replace(result, content=kept)
