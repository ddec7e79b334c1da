"""How Cohere's chat protocol writes what canonical values do not distinguish.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from toolglot.conversation import (
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
from toolglot.conversation.version_1 import form_of_notes, opaque_of_notes
from toolglot.protocols.fields.function_tools import FunctionToolForm

PROTOCOL: Final = "cohere"


class CohereForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


class CohereMessage(CohereForm, frozen=True, tag="cohere.message"):
    """A message, also one that is a tool result.

    content: whether its content was missing, a list of parts, or a string beside calls.
    has_empty_calls: whether `tool_calls` was an empty list.
    """

    content: Literal["none", "parts", "text"] | None = None
    has_empty_calls: bool = False


NO_CONTENT: Final = CohereMessage("none")
PARTS: Final = CohereMessage("parts")


class CohereText(CohereForm, frozen=True, tag="cohere.text"):
    """A text that was not a part of the type `text`.

    is_plan: whether it was in `tool_plan`.
    document_rest: unknown fields of `document`, for a part of that type; empty if there are none.
    document_data: `data` of the document, if that was an object.
    """

    is_plan: bool = False
    document_rest: dict[str, Any] | None = None
    document_data: dict[str, Any] | None = None


PLAN: Final = CohereText(is_plan=True)


class CohereMedia(CohereForm, frozen=True, tag="cohere.media"):
    """An image.

    image_rest: unknown fields of `image_url`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("image_rest",)

    image_rest: dict[str, Any]


class CohereThinking(CohereForm, frozen=True, tag="cohere.thinking"):
    """A part of the type `thinking`: it is written again, also when it is empty."""


THINKING: Final = CohereThinking()


class CohereCall(CohereForm, frozen=True, tag="cohere.call"):
    """A tool call.

    type: what its `type` was, if not `function`.
    is_untyped: whether `type` was not written.
    has_no_arguments: whether `arguments` was not written.
    function_rest: unknown fields of `function`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("function_rest",)

    type: str | None = None
    is_untyped: bool = False
    has_no_arguments: bool = False
    function_rest: dict[str, Any] | None = None


PLAIN_CALL: Final = CohereCall()


class CohereTool(FunctionToolForm, frozen=True, tag="cohere.tool"):
    """A function tool."""

    protocol: ClassVar[str] = PROTOCOL


class CohereOutput(CohereForm, frozen=True, tag="cohere.output"):
    """An output format.

    schema_field: the field that the schema was in, if not `json_schema`.
    """

    schema_field: str | None = None


class CohereUsage(CohereForm, frozen=True, tag="cohere.usage"):
    """Token counts.

    tokens_rest: unknown fields of `tokens`; empty if `tokens` was there and all of it is known.
    floats: counts that were written as floating-point numbers.
    """

    tokens_rest: dict[str, Any] | None = None
    floats: dict[str, float] | None = None


class CohereReply(CohereForm, frozen=True, tag="cohere.reply"):
    """A reply body.

    finish_reason: why it ended.
    is_string: whether its content was a string.
    citations: what a stream cited, which its blocks do not hold.
    """

    finish_reason: str | None = None
    is_string: bool = False
    citations: list[Any] | None = None

    @property
    def stop_text(self) -> str | None:
        return self.finish_reason

    def without_stop_text(self) -> CohereReply:
        return CohereReply(None, self.is_string, self.citations)


STREAMED: Final = CohereReply()


def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    """The fields that notes of version 1 of the serialised form are."""
    if isinstance(value, Turn):
        return form_of_notes(
            CohereMessage, {**notes, **_empty_calls(notes)}, content="content", calls="has_empty_calls"
        )
    if isinstance(value, ToolResult):
        return form_of_notes(CohereMessage, notes, content="content")
    if isinstance(value, Text):
        names = {"plan": "is_plan", "document": "document_rest", "data": "document_data"}
        return form_of_notes(CohereText, notes, **names)
    if isinstance(value, Media):
        return form_of_notes(CohereMedia, notes, image="image_rest")
    if isinstance(value, Thinking):
        return {"form": {"form": "cohere.thinking"}} if "own" in notes else {}
    if isinstance(value, ToolCall):
        names = {"type": "type", "untyped": "is_untyped", "bare": "has_no_arguments", "function": "function_rest"}
        return {**form_of_notes(CohereCall, notes, **names), "argument_fixes": notes.get("read", ())}
    if isinstance(value, ToolSpec):
        return CohereTool.from_notes(notes)
    return _from_notes_of_settings(value, notes)


def _from_notes_of_settings(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, ToolChoice):
        return opaque_of_notes(PROTOCOL, notes, "choice")
    if isinstance(value, Reasoning):
        return opaque_of_notes(PROTOCOL, notes, "thinking")
    if isinstance(value, OutputFormat):
        form = form_of_notes(CohereOutput, notes, schema="schema_field")
        return {**form, **opaque_of_notes(PROTOCOL, notes, "format")}
    if isinstance(value, Usage):
        return form_of_notes(CohereUsage, notes, tokens="tokens_rest", floats="floats")
    if isinstance(value, Reply):
        names = {"finish_reason": "finish_reason", "is_string": "is_string", "citations": "citations"}
        form = form_of_notes(CohereReply, {**notes, "is_string": notes.get("content") == "text"}, **names)
        return form if "own" in notes else {}
    return {}


def _empty_calls(notes: dict[str, Any]) -> dict[str, Any]:
    return {"calls": True} if "calls" in notes else {}
