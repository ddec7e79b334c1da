"""Calls and results of the history under the names and ids that the target accepts.

The last pass: it needs the names of all tools, and gives ids only to calls that are still there.
Law 6: different calls get different ids, and a result has the id of its call.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import Block, ToolCall, ToolResult, Turn
from toolglot.ids import Projection
from toolglot.render.job import Job
from toolglot.render.tool_table import ToolTable

_CLASP_PREFIX = "fc_"


def projection_for(job: Job) -> Projection:
    clasp = job.profile.ids.item_id_prefix and job.policy.responses_id_style == "clasp"
    return Projection(job.profile, policy=job.policy.ids, prefix=_CLASP_PREFIX if clasp else None)


def emit_calls(turns: tuple[Turn, ...], table: ToolTable, projection: Projection) -> tuple[Turn, ...]:
    """The turns as they are sent."""
    names: dict[str, str] = {}
    for turn in turns:
        for call in turn.calls:
            emitted = table.emitted_name((call.namespace, call.name))
            names[call.id] = emitted
            projection.add(call, name=emitted)
    return tuple(_emit_turn(turn, table, projection, names) for turn in turns)


def _emit_turn(turn: Turn, table: ToolTable, projection: Projection, names: dict[str, str]) -> Turn:
    if not any(isinstance(block, ToolCall | ToolResult) for block in turn.blocks):
        return turn
    return replace(turn, blocks=tuple(_emit_block(block, table, projection, names) for block in turn.blocks))


def _emit_block(block: Block, table: ToolTable, projection: Projection, names: dict[str, str]) -> Block:
    if isinstance(block, ToolCall):
        return replace(table.emitted_call(block), id=projection[block.id])
    if isinstance(block, ToolResult):
        if block.call_id not in projection:
            raw_id = block.metadata.raw_id if block.metadata is not None else None
            return replace(block, call_id=raw_id or block.call_id)
        name = names[block.call_id] if block.name else ""
        return replace(block, call_id=projection[block.call_id], name=name)
    return block
