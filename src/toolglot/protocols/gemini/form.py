"""How Gemini's generateContent protocol writes what canonical values do not distinguish.

Clients write known fields in camelCase or in snake_case. An object is read in camelCase; `snake` of its form says which
fields were not, so that they are written in the spelling they came in.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from toolglot.conversation import (
    Conversation,
    Media,
    OutputFormat,
    Reasoning,
    Reply,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
)
from toolglot.conversation.forms import FormStruct
from toolglot.conversation.version_1 import form_of_notes, notes_in, opaque_of_notes, without_notes

PROTOCOL: Final = "gemini"

Snake = dict[str, str]
"""Fields that were written in snake_case, with their names in camelCase."""


class GeminiForm(FormStruct, frozen=True):
    """The base of the forms.

    snake: fields of the object that were written in snake_case.
    """

    protocol: ClassVar[str] = PROTOCOL

    snake: Snake | None = None


# --- contents and parts -----------------------------------------------------------------------------


class GeminiContent(FormStruct, frozen=True, tag="gemini.content"):
    """A content, or the system instruction.

    parts: whether `parts` was missing, or one object instead of a list.
    role: the role of a content with results, if not `user`.
    has_no_role: whether `role` was not written.
    is_system_instruction: whether it was the system instruction.
    """

    protocol: ClassVar[str] = PROTOCOL

    parts: Literal["absent", "object"] | None = None
    role: str | None = None
    has_no_role: bool = False
    is_system_instruction: bool = False

    @property
    def prompt_position(self) -> Literal["field", "message"] | None:
        return "field" if self.is_system_instruction else None


PLAIN_CONTENT: Final = GeminiContent()
SYSTEM_INSTRUCTION: Final = GeminiContent(is_system_instruction=True)
NO_ROLE: Final = GeminiContent(has_no_role=True)
FUNCTION_ROLE: Final = GeminiContent(role="function")


class GeminiText(GeminiForm, frozen=True, tag="gemini.text"):
    """A part that is a text."""


class GeminiThought(GeminiForm, frozen=True, tag="gemini.thought"):
    """A part that is a thought: it is written again, also when it is empty."""


THOUGHT: Final = GeminiThought()


class GeminiCall(GeminiForm, frozen=True, tag="gemini.call"):
    """A part that is a function call.

    call_rest: unknown fields of `functionCall`.
    has_no_args: whether `args` was not written.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("call_rest",)

    call_rest: dict[str, Any] | None = None
    has_no_args: bool = False


PLAIN_CALL: Final = GeminiCall()


class GeminiResult(GeminiForm, frozen=True, tag="gemini.result"):
    """A part that is the response of a function.

    response_rest: unknown fields of `functionResponse`.
    has_no_name: whether `name` was not written.
    has_no_response: whether `response` was not written.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("response_rest",)

    response_rest: dict[str, Any] | None = None
    has_no_name: bool = False
    has_no_response: bool = False


PLAIN_RESULT: Final = GeminiResult()


class GeminiMedia(GeminiForm, frozen=True, tag="gemini.media"):
    """A part that is inline data or a file.

    source_rest: unknown fields of `inlineData` or `fileData`.
    source_snake: fields of it that were written in snake_case.
    is_url_safe: whether the data was in the URL-safe alphabet of base64.
    padding: the padding that the data lacked.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("source_rest",)

    source_rest: dict[str, Any] | None = None
    source_snake: Snake | None = None
    is_url_safe: bool = False
    padding: str = ""


PLAIN_MEDIA: Final = GeminiMedia()


# --- tools and settings -----------------------------------------------------------------------------


class GeminiTool(GeminiForm, frozen=True, tag="gemini.tool"):
    """A function declaration, or a tool of Gemini's own.

    schema_field: the field that the schema was in.
    entry: the number of the entry of `tools` that it was in.
    """

    schema_field: str | None = None
    entry: int = 0


PLAIN_TOOL: Final = GeminiTool()


class GeminiToolChoice(GeminiForm, frozen=True, tag="gemini.tool_choice"):
    """The configuration of function calls.

    mode: the mode as it was written, if another word or number means the same.
    """

    mode: str | int | None = None


class GeminiReasoning(GeminiForm, frozen=True, tag="gemini.reasoning"):
    """The configuration of thinking.

    floats: whole numbers that were written as floating-point numbers.
    level: the level as it was written, if not in capitals.
    is_budget_unknown: whether the budget was negative, and is an unknown field.
    is_empty: whether the object was empty.
    """

    floats: dict[str, float] | None = None
    level: str | None = None
    is_budget_unknown: bool = False
    is_empty: bool = False


PLAIN_REASONING: Final = GeminiReasoning()


class GeminiOutput(FormStruct, frozen=True, tag="gemini.output"):
    """An output format.

    mime: the MIME type of the reply, if not JSON; empty if it was not written.
    schema_field: the field that the schema was in.
    """

    protocol: ClassVar[str] = PROTOCOL

    mime: str | None = None
    schema_field: str | None = None


PLAIN_OUTPUT: Final = GeminiOutput()


class GeminiRequest(GeminiForm, frozen=True, tag="gemini.request"):
    """A request body.

    single: lists that were written as one object.
    tool_entries: what is known of each entry of `tools` beside its tools: `rest` (unknown fields), `snake`, `is_single`
        (one declaration instead of a list), `is_empty`. None if there is nothing to know.
    tool_config_rest: unknown fields of `toolConfig`; empty if it was there and all of it is known.
    tool_config_snake: fields of it that were written in snake_case.
    config_rest: unknown fields of `generationConfig`; empty if it was there and all of it is known.
    config_snake: fields of it that were written in snake_case.
    config_floats: whole numbers of it that were written as floating-point numbers.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("tool_config_rest", "config_rest")

    single: list[str] | None = None
    tool_entries: list[dict[str, Any]] | None = None
    tool_config_rest: dict[str, Any] | None = None
    tool_config_snake: Snake | None = None
    config_rest: dict[str, Any] | None = None
    config_snake: Snake | None = None
    config_floats: dict[str, float] | None = None


PLAIN_REQUEST: Final = GeminiRequest()


# --- replies ----------------------------------------------------------------------------------------


class GeminiUsage(GeminiForm, frozen=True, tag="gemini.usage"):
    """Token counts.

    has_no_answer: whether the tokens of the answer were not written.
    has_no_prompt: whether the tokens of the prompt were not written.
    has_no_total: whether the sum was not written.
    tool_use: tokens of the prompt that tools of the provider added.
    """

    has_no_answer: bool = False
    has_no_prompt: bool = False
    has_no_total: bool = False
    tool_use: int | None = None


PLAIN_USAGE: Final = GeminiUsage()


class GeminiReply(GeminiForm, frozen=True, tag="gemini.reply"):
    """A reply body.

    candidate_rest: unknown fields of the candidate.
    candidate_snake: fields of the candidate that were written in snake_case.
    finish_reason: why it ended.
    finish_number: the number that was written instead.
    has_no_content: whether the candidate had no content.
    has_no_candidate: whether there was no candidate.
    others: the other candidates.
    """

    candidate_rest: dict[str, Any] | None = None
    candidate_snake: Snake | None = None
    finish_reason: str | None = None
    finish_number: int | None = None
    has_no_content: bool = False
    has_no_candidate: bool = False
    others: list[Any] | None = None

    def answer_fields(self) -> Mapping[str, Any]:
        return self.candidate_rest or {}


PLAIN_REPLY: Final = GeminiReply()


# --- notes of version 1 -----------------------------------------------------------------------------


def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    """The fields that notes of version 1 of the serialised form are."""
    if isinstance(value, Turn):
        known = {**notes, "system": notes.get("system") == "top"}
        names = {"parts": "parts", "role": "role", "no_role": "has_no_role", "system": "is_system_instruction"}
        return form_of_notes(GeminiContent, known, **names)
    if isinstance(value, Text | Thinking):
        return _from_notes_of_text(value, notes)
    if isinstance(value, ToolCall):
        known = {**notes, **_parted(notes, "inner", no_args="has_no_args")}
        form = form_of_notes(GeminiCall, known, snake="snake", inner="call_rest", has_no_args="has_no_args")
        return {**form, "id_omitted": notes.get("no_id"), "argument_fixes": notes.get("read", ())}
    if isinstance(value, ToolResult):
        known = {**notes, **_parted(notes, "inner", no_name="has_no_name", no_response="has_no_response")}
        names = {"inner": "response_rest", "has_no_name": "has_no_name", "has_no_response": "has_no_response"}
        ids = {"id_omitted": notes.get("no_id"), "written_id": notes.get("own_id")}
        return {**form_of_notes(GeminiResult, known, snake="snake", **names), **ids}
    if isinstance(value, Media):
        return _from_notes_of_media(notes)
    return _from_notes_of_settings(value, notes)


def _from_notes_of_text(value: Text | Thinking, notes: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, Text):
        return form_of_notes(GeminiText, notes, snake="snake")
    if "thought" not in notes:
        return {}
    return form_of_notes(GeminiThought, notes, snake="snake") or {"form": {"form": "gemini.thought"}}


def _from_notes_of_media(notes: dict[str, Any]) -> dict[str, Any]:
    known = {**notes, **_parted(notes, "inner", snake="source_snake", base64="base64")}
    base64 = known.get("base64")
    if isinstance(base64, dict):
        known |= {"is_url_safe": base64.get("url_safe"), "padding": base64.get("padding")}
    names = {"inner": "source_rest", "source_snake": "source_snake", "is_url_safe": "is_url_safe", "padding": "padding"}
    return form_of_notes(GeminiMedia, known, snake="snake", **names)


def _from_notes_of_settings(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, ToolSpec):
        form = form_of_notes(GeminiTool, notes, snake="snake", schema="schema_field", group="entry")
        return {**form, **(opaque_of_notes(PROTOCOL, notes, "tool") if isinstance(notes.get("tool"), dict) else {})}
    if isinstance(value, ToolChoice):
        return form_of_notes(GeminiToolChoice, notes, snake="snake", mode="mode")
    if isinstance(value, Reasoning):
        names = {"floats": "floats", "level": "level", "negative": "is_budget_unknown", "empty": "is_empty"}
        return form_of_notes(GeminiReasoning, notes, snake="snake", **names)
    if isinstance(value, OutputFormat):
        return form_of_notes(GeminiOutput, notes, mime="mime", schema="schema_field")
    if isinstance(value, Conversation):
        return _from_notes_of_request(notes)
    if isinstance(value, Usage):
        names = {"no_answer": "has_no_answer", "no_prompt": "has_no_prompt", "no_total": "has_no_total"}
        return form_of_notes(GeminiUsage, notes, snake="snake", tool_use="tool_use", **names)
    return _from_notes_of_reply(notes) if isinstance(value, Reply) else {}


def _from_notes_of_request(notes: dict[str, Any]) -> dict[str, Any]:
    known = dict(notes)
    known |= _parted(notes, "tool_config", snake="tool_config_snake")
    known |= _parted(notes, "config", snake="config_snake", floats="config_floats")
    entries = notes.get("tools")
    if isinstance(entries, list):
        known["tools"] = [_entry_of_notes(entry) for entry in entries]
    names = {"tools": "tool_entries", "tool_config": "tool_config_rest", "config": "config_rest"}
    same = ("snake", "single", "tool_config_snake", "config_snake", "config_floats")
    return form_of_notes(GeminiRequest, known, **names, **{name: name for name in same})


def _entry_of_notes(entry: object) -> dict[str, Any]:
    if not isinstance(entry, dict):
        return {}
    parted = _parted({"rest": entry}, "rest", snake="snake", one="is_single", bare="is_empty")
    return {**parted, "rest": without_notes(entry)}


def _from_notes_of_reply(notes: dict[str, Any]) -> dict[str, Any]:
    inner = {"snake": "candidate_snake", "finish_reason": "finish_reason", "finish_number": "finish_number"}
    known = {**notes, **_parted(notes, "candidate", no_content="has_no_content", **inner)}
    names = {"candidate": "candidate_rest", "no_candidate": "has_no_candidate", "has_no_content": "has_no_content"}
    same = ("snake", "candidate_snake", "finish_reason", "finish_number", "others")
    return form_of_notes(GeminiReply, known, **names, **{name: name for name in same})


def _parted(notes: dict[str, Any], note: str, **names: str) -> dict[str, Any]:
    """A note that held unknown fields of an inner object and notes on it: itself, and those notes by new names."""
    held = notes.get(note)
    if not isinstance(held, dict):
        return {}
    inner = notes_in(held)
    return {note: held, **{new: inner[old] for old, new in names.items() if old in inner}}
