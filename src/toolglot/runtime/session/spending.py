"""The tokens of a reply: as its provider reports them, if that is plausible, or an estimate.

Law: no count is negative or impossibly large, and a reply that is not empty has a count. Counts that were ignored or
estimated are reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Reply, ToolSpec, Turn, Usage
from toolglot.conversation.believed_usage import NOT_BELIEVED, believed
from toolglot.jsontext import compact
from toolglot.runtime.session.compacting import CHARACTERS_A_TOKEN, estimate_tokens

ESTIMATED: Final = "the provider does not report the tokens of a reply: they are estimated"


class ReplyCost(NamedTuple):
    """The tokens of a reply."""

    reported: Usage | None
    """What its provider reports, without implausible counts."""
    counted: Usage | None
    """What is counted; None if nothing is known and the reply is empty."""
    notes: tuple[str, ...] = ()


def measure_reply(
    reply: Reply, turns: Iterable[Turn], tools: Iterable[ToolSpec] = (), *, is_answer: bool = True
) -> ReplyCost:
    """The tokens of a reply to these turns. A failed one counts what its provider reports, or what it contains."""
    reported = believed(reply.usage)
    notes = (NOT_BELIEVED,) if reported != reply.usage else ()
    known = reported if reported is not None else Usage()
    is_whole = bool(known.input_tokens) and (bool(known.output_tokens) or not reply.turn.blocks)
    if is_whole or not (is_answer or reply.turn.blocks):
        return ReplyCost(reported, reported, notes)
    read = known.input_tokens or _estimate_input(turns, tools)
    written = known.output_tokens or estimate_tokens([reply.turn])
    return ReplyCost(reported, replace(known, input_tokens=read, output_tokens=written), (*notes, ESTIMATED))


def _estimate_input(turns: Iterable[Turn], tools: Iterable[ToolSpec]) -> int:
    described = sum(len(tool.name + (tool.description or "") + compact(tool.parameters or {})) for tool in tools)
    return max(estimate_tokens(turns) + described // CHARACTERS_A_TOKEN, 1)
