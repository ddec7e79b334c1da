"""What an answer took, for whoever has a budget: as its provider says, as far as that can be believed, or a guess.

Law: no count is negative or larger than anything that ever was, and an answer that said something took something. What
was not believed, and what was guessed, is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Reply, ToolSpec, Turn, Usage
from toolglot.conversation.believed_usage import NOT_BELIEVED, believed
from toolglot.jsontext import compact
from toolglot.runtime.session.compacting import CHARACTERS_A_TOKEN, estimated_tokens

ESTIMATED: Final = "the provider does not say how many tokens an answer took: they are estimated"


class ReplyCost(NamedTuple):
    """What an answer took."""

    said: Usage | None
    """What its provider says, without what is not believed."""
    counted: Usage | None
    """What is counted; None: nothing is known, and nothing was said."""
    told: tuple[str, ...] = ()


def took(reply: Reply, turns: Iterable[Turn], tools: Iterable[ToolSpec] = (), *, is_answer: bool = True) -> ReplyCost:
    """What an answer to these turns took. One that failed took what its provider says, or what it said itself."""
    said = believed(reply.usage)
    told = (NOT_BELIEVED,) if said != reply.usage else ()
    known = said if said is not None else Usage()
    is_whole = bool(known.input_tokens) and (bool(known.output_tokens) or not reply.turn.blocks)
    if is_whole or not (is_answer or reply.turn.blocks):
        return ReplyCost(said, said, told)
    read = known.input_tokens or _read(turns, tools)
    written = known.output_tokens or estimated_tokens([reply.turn])
    return ReplyCost(said, replace(known, input_tokens=read, output_tokens=written), (*told, ESTIMATED))


def _read(turns: Iterable[Turn], tools: Iterable[ToolSpec]) -> int:
    described = sum(len(tool.name + (tool.description or "") + compact(tool.parameters or {})) for tool in tools)
    return max(estimated_tokens(turns) + described // CHARACTERS_A_TOKEN, 1)
