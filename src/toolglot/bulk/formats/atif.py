"""ATIF, the agent trajectory interchange format (v1.0 to v1.7): one trajectory is one row.

    {"schema_version": "ATIF-v1.7", "session_id": "…", "agent": {…, "tool_definitions": […]}, "steps": [{"step_id": 1,
     "source": "system|user|agent", "message": "…", "tool_calls": […], "observation": {"results": […]}}]}

The results of a step's calls are in the step. There is no mark for a failed result and none for training.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row, is_trained
from toolglot.bulk.formats.call_text import arguments_of
from toolglot.bulk.formats.chat import write_tools
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.tool_definitions import read_tools
from toolglot.bulk.formats.turns import read_image, result_text, write_image
from toolglot.conversation import Block, Conversation, Media, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of

VERSION: Final = "ATIF-v1.7"
_COLUMNS: Final = frozenset(
    {
        "schema_version",
        "session_id",
        "agent",
        "steps",
        "final_metrics",
        "continued_trajectory_ref",
        "subagent_trajectories",
    }
)
_ROLES: Final = {"system": "system", "user": "user"}


def _detect(row: Row) -> float:
    version = row.get("schema_version")
    if isinstance(version, str) and version.startswith("ATIF"):
        return 1.0
    return 0.8 if isinstance(row.get("steps"), list) and isinstance(row.get("agent"), dict) else 0.0


def _read(row: Row, notes: Notes) -> Example:
    steps = row.get("steps")
    if not isinstance(steps, list) or not steps:
        raise InputError(f"expected a list of steps, got {quote(steps)}", path="$.steps")
    agent = row.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    turns: list[Turn] = []
    for number, step in enumerate(steps):
        turns += _step(step, notes, f"$.steps[{number}]")
    lost = [name for name in ("final_metrics", "subagent_trajectories", "continued_trajectory_ref") if row.get(name)]
    if lost:
        notes.add("dropped", f"not part of the conversation: {', '.join(lost)}", "$", gravity="housekeeping")
    model = agent.get("model_name")
    session = row.get("session_id")
    conversation = Conversation(
        tuple(turns),
        read_tools(agent.get("tool_definitions"), notes, "$.agent.tool_definitions"),
        model=model if isinstance(model, str) else "",
    )
    name = session if isinstance(session, str) else ""
    return Example(conversation=conversation, id=name, session=name)


def _step(step: Any, notes: Notes, path: str) -> list[Turn]:
    source = step.get("source") if isinstance(step, dict) else None
    if source in ("system", "user"):
        return [Turn(_ROLES[source], tuple(_message(step.get("message"), f"{path}.message")))]  # type: ignore[arg-type]
    if source != "agent":
        raise InputError(f"unknown source {quote(source)}", path=f"{path}.source", hint="system, user or agent")
    blocks: list[Block] = []
    reasoning = step.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        blocks.append(Thinking(reasoning))
    blocks += [block for block in _message(step.get("message"), f"{path}.message") if block != Text("")]
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InputError(f"expected a list of calls, got {quote(calls)}", path=f"{path}.tool_calls")
    blocks += [_call(call, f"{path}.tool_calls[{number}]") for number, call in enumerate(calls)]
    turns = [Turn("assistant", tuple(blocks))]
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    if isinstance(results, list) and results:
        turns += _results(results, [block for block in blocks if isinstance(block, ToolCall)], notes, path)
    return turns


def _call(call: Any, path: str) -> ToolCall:
    name = call.get("function_name") if isinstance(call, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError("expected a call with a function_name", path=path)
    id = call.get("tool_call_id")
    value, raw = arguments_of(call.get("arguments"), f"{path}.arguments")
    return ToolCall(id if isinstance(id, str) else "", name, value, raw_input=raw)


def _results(results: list[Any], calls: list[ToolCall], notes: Notes, path: str) -> list[Turn]:
    """Results of calls, and what was observed without one, as a user's turn."""
    blocks: list[Block] = []
    seen: list[Block] = []
    for number, result in enumerate(results):
        where = f"{path}.observation.results[{number}]"
        if not isinstance(result, dict):
            raise InputError(f"expected a result, got {quote(result)}", path=where)
        content = _message(result.get("content"), f"{where}.content")
        id = result.get("source_call_id")
        if not isinstance(id, str) and len(calls) != 1:
            seen += content
            notes.add("converted", "an observation without a call became a turn of the user", where)
            continue
        texts = all(isinstance(block, Text) for block in content)
        held: Any = "".join(block.text for block in content if isinstance(block, Text)) if texts else tuple(content)
        call_id = id if isinstance(id, str) else calls[0].id
        name = next((call.name for call in calls if call.id == call_id), "")
        blocks.append(ToolResult(call_id, held, name=name, is_complete=True))
    turns = [Turn("tool", tuple(blocks))] if blocks else []
    return [*turns, Turn("user", tuple(seen))] if seen else turns


def _message(value: Any, path: str) -> list[Block]:
    """A message: text, or parts of text and images."""
    if value is None:
        return []
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, list):
        return [Text(compact(value))]
    blocks: list[Block] = []
    for number, part in enumerate(value):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            blocks.append(Text(part["text"]))
        elif isinstance(part, dict) and part.get("type") == "image":
            source = part.get("source")
            blocks.append(read_image(source if source is not None else part, f"{path}[{number}]"))
        elif isinstance(part, str):
            blocks.append(Text(part))
        else:
            blocks.append(Text(compact(part)))
    return blocks


# --- writing ----------------------------------------------------------------------------------------


def _write(example: Example, notes: Notes) -> Row:
    conversation = example.conversation
    steps: list[Row] = []
    for turn in conversation.turns:
        if turn.results:
            _write_results(turn, steps, notes)
            if len(turn.results) == len(turn.blocks):
                continue
        steps.append(_write_step(turn, len(steps) + 1, notes))
        if is_trained(turn) is not None:
            notes.add("dropped", "the format cannot say which turns are trained on")
    agent: Row = {"name": "toolglot", "version": "1"}
    if conversation.model:
        agent["model_name"] = conversation.model
    if conversation.tools:
        agent["tool_definitions"] = write_tools(conversation.tools)
    return {
        "schema_version": VERSION,
        "session_id": example.session or example.id or "session",
        "agent": agent,
        "steps": steps,
    }


def _write_step(turn: Turn, number: int, notes: Notes) -> Row:
    source = "agent" if turn.role == "assistant" else "system" if turn.role in ("system", "developer") else "user"
    texts = [block for block in turn.blocks if isinstance(block, Text | Media)]
    if all(isinstance(block, Text) for block in texts):
        message: Any = "".join(block.text for block in texts if isinstance(block, Text))
    else:
        message = [_part(block) for block in texts]
    step: Row = {"step_id": number, "source": source, "message": message}
    thinking = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    if thinking:
        step["reasoning_content"] = thinking
    calls = turn.calls
    if calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": _arguments(call, notes)}
            for call in calls
        ]
    return step


def _part(block: Text | Media) -> Row:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "image", "source": {"media_type": block.media_type, "path": write_image(block)}}


def _arguments(call: ToolCall, notes: Notes) -> dict[str, Any]:
    if call.arguments is None and call.raw_input and call.type != "custom":
        notes.add("converted", "arguments that are not an object were put into one, as `_raw`")
        return {"_raw": call.raw_input}
    return object_of(call)


def _write_results(turn: Turn, steps: list[Row], notes: Notes) -> None:
    """Put results into the step that called."""
    for result in turn.results:
        held = {"source_call_id": result.call_id, "content": result_text(result, notes)}
        owner = next((step for step in reversed(steps) if _calls_it(step, result.call_id)), None)
        if owner is None:
            notes.add("converted", "a result without a call became a turn of the user")
            steps.append({"step_id": len(steps) + 1, "source": "user", "message": held["content"]})
            continue
        owner.setdefault("observation", {"results": []})["results"].append(held)


def _calls_it(step: Row, id: str) -> bool:
    return any(call["tool_call_id"] == id for call in step.get("tool_calls", ()))


FORMATS: Final = (
    Format(
        name="atif",
        title="ATIF trajectories",
        columns=_COLUMNS,
        detect=_detect,
        read=_read,
        write=_write,
        takes_columns=False,
        json_columns=frozenset({"agent", "steps"}),
    ),
)
