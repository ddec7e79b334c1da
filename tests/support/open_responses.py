"""The schema of Open Responses, written by hand: what a client may demand of every response, item and event.

It shares nothing with the code under test. Types are strict, and a field without a default must be there.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr, TypeAdapter

Number = StrictInt | StrictFloat
ItemStatus = Literal["in_progress", "completed", "incomplete"]
Mode = Literal["none", "auto", "required"]


class Strict(BaseModel):
    """An object that may have more fields than these."""

    model_config = ConfigDict(extra="allow", strict=True)


# --- settings ---------------------------------------------------------------------------------------


class FunctionTool(Strict):
    type: Literal["function"]
    name: StrictStr
    description: StrictStr | None
    parameters: dict[str, Any] | None
    strict: StrictBool | None


class FunctionChoice(Strict):
    type: Literal["function"]
    name: StrictStr


class AllowedTools(Strict):
    type: Literal["allowed_tools"]
    tools: list[FunctionChoice]
    mode: Mode


class PlainFormat(Strict):
    type: Literal["text", "json_object"]


class SchemaFormat(Strict):
    type: Literal["json_schema"]
    name: StrictStr
    description: StrictStr | None
    schema_: Any = None
    strict: StrictBool


class TextSettings(Strict):
    format: PlainFormat | SchemaFormat


class ReasoningSettings(Strict):
    effort: StrictStr | None
    summary: StrictStr | None


# --- output -----------------------------------------------------------------------------------------


class OutputText(Strict):
    type: Literal["output_text"]
    text: StrictStr
    annotations: list[dict[str, Any]]
    logprobs: list[dict[str, Any]]


class Refusal(Strict):
    type: Literal["refusal"]
    refusal: StrictStr


class SummaryText(Strict):
    type: Literal["summary_text"]
    text: StrictStr


class ReasoningText(Strict):
    type: Literal["reasoning_text"]
    text: StrictStr


class Message(Strict):
    type: Literal["message"]
    id: StrictStr
    status: ItemStatus
    role: Literal["user", "assistant", "system", "developer"]
    content: list[OutputText | Refusal]


class FunctionCall(Strict):
    type: Literal["function_call"]
    id: StrictStr
    call_id: StrictStr
    name: StrictStr
    arguments: StrictStr
    status: ItemStatus


class Reasoning(Strict):
    type: Literal["reasoning"]
    id: StrictStr
    summary: list[SummaryText]


class Compaction(Strict):
    type: Literal["compaction"]
    id: StrictStr
    encrypted_content: StrictStr


Item = Message | FunctionCall | Reasoning | Compaction


class CachedTokens(Strict):
    cached_tokens: StrictInt


class ReasoningTokens(Strict):
    reasoning_tokens: StrictInt


class Usage(Strict):
    input_tokens: StrictInt
    output_tokens: StrictInt
    total_tokens: StrictInt
    input_tokens_details: CachedTokens
    output_tokens_details: ReasoningTokens


class IncompleteDetails(Strict):
    reason: StrictStr


class Failure(Strict):
    code: StrictStr
    message: StrictStr


class Response(Strict):
    id: StrictStr
    object: Literal["response"]
    created_at: StrictInt
    completed_at: StrictInt | None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    incomplete_details: IncompleteDetails | None
    model: StrictStr
    previous_response_id: StrictStr | None
    instructions: StrictStr | None
    output: list[Item]
    error: Failure | None
    tools: list[FunctionTool]
    tool_choice: FunctionChoice | AllowedTools | Mode
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: StrictBool
    text: TextSettings
    top_p: Number
    temperature: Number
    presence_penalty: Number
    frequency_penalty: Number
    top_logprobs: StrictInt
    reasoning: ReasoningSettings | None
    usage: Usage | None
    max_output_tokens: StrictInt | None
    max_tool_calls: StrictInt | None
    store: StrictBool
    background: StrictBool
    service_tier: StrictStr
    metadata: dict[str, StrictStr]
    safety_identifier: StrictStr | None
    prompt_cache_key: StrictStr | None


class CompactedResponse(Strict):
    id: StrictStr
    object: Literal["response.compaction"]
    created_at: StrictInt
    usage: Usage


# --- events -----------------------------------------------------------------------------------------


class Event(Strict):
    type: StrictStr
    sequence_number: StrictInt


class ResponseEvent(Event):
    response: Response


class ItemEvent(Event):
    output_index: StrictInt
    item: Item


class PartOfItem(Event):
    item_id: StrictStr
    output_index: StrictInt


class PartEvent(PartOfItem):
    content_index: StrictInt
    part: OutputText | Refusal | ReasoningText


class TextDelta(PartOfItem):
    content_index: StrictInt
    delta: StrictStr
    logprobs: list[dict[str, Any]]


class TextDone(PartOfItem):
    content_index: StrictInt
    text: StrictStr
    logprobs: list[dict[str, Any]]


class RefusalDelta(PartOfItem):
    content_index: StrictInt
    delta: StrictStr


class RefusalDone(PartOfItem):
    content_index: StrictInt
    refusal: StrictStr


class ReasoningDelta(PartOfItem):
    content_index: StrictInt
    delta: StrictStr


class ReasoningDone(PartOfItem):
    content_index: StrictInt
    text: StrictStr


class SummaryPart(PartOfItem):
    summary_index: StrictInt
    part: SummaryText


class SummaryDelta(PartOfItem):
    summary_index: StrictInt
    delta: StrictStr


class SummaryDone(PartOfItem):
    summary_index: StrictInt
    text: StrictStr


class ArgumentsDelta(PartOfItem):
    delta: StrictStr


class ArgumentsDone(PartOfItem):
    arguments: StrictStr


class Annotated(PartOfItem):
    content_index: StrictInt
    annotation_index: StrictInt
    annotation: dict[str, Any]


EVENTS: Final[dict[str, type[Event]]] = {
    **{f"response.{status}": ResponseEvent for status in ("created", "queued", "in_progress")},
    **{f"response.{status}": ResponseEvent for status in ("completed", "incomplete", "failed")},
    "response.output_item.added": ItemEvent,
    "response.output_item.done": ItemEvent,
    "response.content_part.added": PartEvent,
    "response.content_part.done": PartEvent,
    "response.output_text.delta": TextDelta,
    "response.output_text.done": TextDone,
    "response.output_text.annotation.added": Annotated,
    "response.refusal.delta": RefusalDelta,
    "response.refusal.done": RefusalDone,
    "response.reasoning_text.delta": ReasoningDelta,
    "response.reasoning_text.done": ReasoningDone,
    "response.reasoning_summary_part.added": SummaryPart,
    "response.reasoning_summary_part.done": SummaryPart,
    "response.reasoning_summary_text.delta": SummaryDelta,
    "response.reasoning_summary_text.done": SummaryDone,
    "response.function_call_arguments.delta": ArgumentsDelta,
    "response.function_call_arguments.done": ArgumentsDone,
}
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_PARSERS: Final = {kind: TypeAdapter(model).validate_python for kind, model in EVENTS.items()}


def check_response(body: Any) -> Response:
    """Parse a response; one that lacks a field is a validation error."""
    found = Response.model_validate(body)
    assert (found.completed_at is not None) == (found.status == "completed")
    assert (found.incomplete_details is not None) == (found.status == "incomplete")
    assert (found.error is not None) == (found.status == "failed")
    return found


def check_stream(events: list[Any]) -> Response:
    """Parse the events of a stream, in their order, and return the last response."""
    for event in events:
        _PARSERS[event["type"]](event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [kind for kind in kinds if kind in _ENDS] == kinds[-1:]
    for event in events[:2]:
        assert check_response(event["response"]).status == "in_progress"
        assert event["response"]["output"] == []
    last = events[-1]["response"]
    settings = {key: events[0]["response"][key] for key in SETTINGS}
    assert {key: last[key] for key in SETTINGS} == settings
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert last["output"] == done
    _check_deltas(events)
    return check_response(last)


SETTINGS: Final = (
    *("previous_response_id", "instructions", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text"),
    *("top_p", "temperature", "presence_penalty", "frequency_penalty", "top_logprobs", "reasoning"),
    *("max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata"),
    *("safety_identifier", "prompt_cache_key"),
)
"""Fields that a response repeats of its request."""


def _check_deltas(events: list[Any]) -> None:
    """Every delta belongs to an item that was added, and all of an item make what its end says."""
    added = {
        event["output_index"]: event["item"]["id"] for event in events if event["type"] == "response.output_item.added"
    }
    pieces: dict[tuple[Any, ...], str] = {}
    for event in events:
        if "item_id" not in event:
            continue
        assert added[event["output_index"]] == event["item_id"]
        kind, _, step = event["type"].rpartition(".")
        key = (kind, event["item_id"], event.get("content_index"), event.get("summary_index"))
        if step == "delta":
            pieces[key] = pieces.get(key, "") + event["delta"]
        elif step == "done" and kind in ("response.output_text", "response.function_call_arguments"):
            assert pieces[key] == event["text" if "text" in event else "arguments"]
