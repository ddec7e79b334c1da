"""Makes parallel calls sequential, for targets that accept one call per turn (C10).

Runs after `pairing`: it splits complete exchanges into complete exchanges.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import ToolCall, ToolResult, Turn
from toolglot.render.context import RenderContext


def split_parallel_calls(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with at most one call each, if the target wants that."""
    if ctx.profile.calls.parallel or not ctx.facts(turns).has_tool_blocks:
        return turns
    if not any(len(turn.calls) > 1 for turn in turns):
        return turns
    results = {result.call_id: result for turn in turns for result in turn.results}
    moved: set[str] = set()
    serial: list[Turn] = []
    for turn in turns:
        calls = turn.calls
        if len(calls) > 1:
            moved.update(call.id for call in calls)
            ctx.report(
                "converted",
                f"only one call per turn is accepted {ctx.rule('calls.parallel')}; the calls were made sequential",
                turn_key=turn.key,
                call_ids=tuple(call.id for call in calls),
            )
            serial += _split_turn(turn, calls, results)
            continue
        rest = tuple(block for block in turn.blocks if not isinstance(block, ToolResult) or block.call_id not in moved)
        if rest or not turn.blocks:
            serial.append(turn if len(rest) == len(turn.blocks) else replace(turn, blocks=rest))
    return tuple(serial)


def _split_turn(turn: Turn, calls: tuple[ToolCall, ...], results: dict[str, ToolResult]) -> list[Turn]:
    first = tuple(block for block in turn.blocks if not isinstance(block, ToolCall) or block is calls[0])
    parts = [replace(turn, blocks=first)]
    for number, call in enumerate(calls):
        if number:
            parts.append(replace(turn, blocks=(call,), key=f"{turn.key}+{number}", extra=None, form=None))
        if call.id in results:
            parts.append(Turn("tool", (results[call.id],), key=f"{turn.key}+{number}+results"))
    return parts
