"""How the Anthropic Messages protocol writes what canonical values do not distinguish.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from toolglot.conversation import (
    Conversation,
    OutputFormat,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    Usage,
)
from toolglot.conversation.forms import CacheMarking, FormStruct
from toolglot.conversation.version_1 import form_of_notes, opaque_of_notes

PROTOCOL: Final = "anthropic"
UNSIGNED: Final = "dG9vbGdsb3Q6dW5zaWduZWQ="
"""The signature that an Anthropic client sees on thinking of another provider: some clients drop thinking whose
signature is empty. No provider gets it (anthropic-foreign-marks). The gateway's vault has what was signed."""
CACHE_MARKING: Final = CacheMarking(field="cache_control", type="ephemeral")


class AnthropicForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


class AnthropicMessage(AnthropicForm, frozen=True, tag="anthropic.message"):
    """A message, or the system prompt.

    is_string: whether its content was a string.
    prompt_position: where a prompt was: in `system`, or among the messages.
    """

    is_string: bool = False
    prompt_position: Literal["field", "message"] | None = None

    def as_prompt_field(self) -> AnthropicMessage | None:
        return STRING if self.is_string else None


STRING: Final = AnthropicMessage(is_string=True)
PROMPT: Final = AnthropicMessage(prompt_position="field")
PROMPT_STRING: Final = AnthropicMessage(is_string=True, prompt_position="field")
PROMPT_MESSAGE: Final = AnthropicMessage(prompt_position="message")
PROMPT_MESSAGE_STRING: Final = AnthropicMessage(is_string=True, prompt_position="message")


class AnthropicText(AnthropicForm, frozen=True, tag="anthropic.text"):
    """A text that was not a block of the type `text`.

    block: the document or the search result that it was, without its unknown fields.
    """

    block: dict[str, Any]


class AnthropicResult(AnthropicForm, frozen=True, tag="anthropic.result"):
    """A tool result whose `is_error` was false, not missing."""


NOT_ERROR: Final = AnthropicResult()


class AnthropicTool(AnthropicForm, frozen=True, tag="anthropic.tool"):
    """A tool of the client's.

    type: what its `type` was, if that was written.
    has_no_parameters: whether `input_schema` was not written.
    is_not_deferred: whether `defer_loading` was false, not missing.
    """

    type: str | None = None
    has_no_parameters: bool = False
    is_not_deferred: bool = False


class AnthropicRequest(AnthropicForm, frozen=True, tag="anthropic.request"):
    """A request body.

    has_empty_tools: whether `tools` was an empty list.
    has_empty_stop_sequences: whether `stop_sequences` was an empty list.
    metadata_rest: unknown fields of `metadata`; empty if `metadata` was there and all of it is known.
    output_config_rest: the same of `output_config`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("metadata_rest", "output_config_rest")

    has_empty_tools: bool = False
    has_empty_stop_sequences: bool = False
    metadata_rest: dict[str, Any] | None = None
    output_config_rest: dict[str, Any] | None = None


PLAIN_REQUEST: Final = AnthropicRequest()


class AnthropicUsage(AnthropicForm, frozen=True, tag="anthropic.usage"):
    """Token counts.

    details_rest: unknown fields of `output_tokens_details`; empty if it was there and all of it is known.
    """

    details_rest: dict[str, Any]


class AnthropicReply(AnthropicForm, frozen=True, tag="anthropic.reply"):
    """A reply body.

    stop_reason: why it ended.
    """

    stop_reason: str | None = None

    @property
    def stop_text(self) -> str | None:
        return self.stop_reason

    def without_stop_text(self) -> AnthropicReply:
        return PLAIN_REPLY


PLAIN_REPLY: Final = AnthropicReply()


def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    """The fields that notes of version 1 of the serialised form are."""
    if isinstance(value, Turn):
        known = {**notes, "content": notes.get("content") == "text"}
        if notes.get("system") == "top":
            known["system"] = "field"
        return form_of_notes(AnthropicMessage, known, content="is_string", system="prompt_position")
    if isinstance(value, Text):
        return form_of_notes(AnthropicText, notes, block="block")
    if isinstance(value, ToolResult):
        return _constant(NOT_ERROR) if notes.get("not_error") else {}
    if isinstance(value, ToolCall):
        return {"argument_fixes": notes.get("read", ())}
    if isinstance(value, ToolSpec):
        form = form_of_notes(AnthropicTool, notes, type="type", no_parameters="has_no_parameters")
        return {**form, **opaque_of_notes(PROTOCOL, notes, "tool")}
    return _from_notes_of_settings(value, notes)


def _from_notes_of_settings(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, ToolChoice):
        return opaque_of_notes(PROTOCOL, notes, "choice")
    if isinstance(value, Reasoning):
        return opaque_of_notes(PROTOCOL, notes, "thinking")
    if isinstance(value, OutputFormat):
        return opaque_of_notes(PROTOCOL, notes, "format")
    if isinstance(value, Conversation):
        names = {
            "tools": "has_empty_tools",
            "stop_sequences": "has_empty_stop_sequences",
            "metadata": "metadata_rest",
            "output_config": "output_config_rest",
        }
        lists: dict[str, Any] = {name: True for name in ("tools", "stop_sequences") if name in notes}
        return form_of_notes(AnthropicRequest, {**notes, **lists}, **names)
    if isinstance(value, Usage):
        return form_of_notes(AnthropicUsage, notes, details="details_rest")
    if isinstance(value, Reply):
        return form_of_notes(AnthropicReply, notes, stop_reason="stop_reason") or _constant(PLAIN_REPLY)
    return {}


def _constant(form: AnthropicForm) -> dict[str, Any]:
    config = form.__struct_config__
    return {"form": {str(config.tag_field): config.tag}}
