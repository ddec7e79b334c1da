"""How the OpenAI Responses protocol writes what canonical values do not distinguish.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    Opaque,
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
from toolglot.conversation.forms import Form, FormStruct
from toolglot.conversation.version_1 import form_of_notes, notes_in, notes_reader, opaque_of_notes

PROTOCOL: Final = "openai_responses"

Fields = dict[str, Any]


class ResponsesForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


def is_own(block: Block) -> bool:
    """Whether a block was read from this protocol: it has a form or unknown fields of it."""
    return isinstance(block.form, ResponsesForm) or (block.extra is not None and PROTOCOL in block.extra)


# --- messages and their parts -----------------------------------------------------------------------


class ResponsesMessage(ResponsesForm, frozen=True, tag="openai_responses.message"):
    """A message that is a turn of its own: of everybody but the assistant.

    is_string: whether its content was a string.
    is_untyped: whether `type` was not written.
    prompt_position: where a prompt was: in `instructions`, or among the items.
    is_input: whether `input` was a string, and this is it.
    """

    is_string: bool = False
    is_untyped: bool = False
    prompt_position: Literal["field", "message"] | None = None
    is_input: bool = False

    def as_prompt_field(self) -> Form | None:
        return replace(self, prompt_position=None)


INSTRUCTIONS: Final = ResponsesMessage(prompt_position="field")
INPUT_STRING: Final = ResponsesMessage(is_string=True, is_input=True)


class ResponsesPart(ResponsesForm, frozen=True):
    """A part of content. In an assistant's turn the parts say where a message begins and ends.

    message_rest: unknown fields of the message that this part begins; empty if there are none, None if it begins none.
    is_string: whether the content of that message was a string.
    is_untyped: whether its `type` was not written.
    is_joined: whether this part is one of the further parts of a message.
    """

    message_rest: Fields | None = None
    is_string: bool = False
    is_untyped: bool = False
    is_joined: bool = False


class ResponsesText(ResponsesPart, frozen=True, tag="openai_responses.text"):
    """A part that is text.

    type: its type, if that is not the usual one of its side.
    """

    type: Literal["input_text", "output_text", "refusal"] | None = None


REFUSAL: Final = ResponsesText(type="refusal")


class ResponsesMedia(ResponsesPart, frozen=True, tag="openai_responses.media"):
    """A part that is media.

    has_no_detail: whether `detail` of an image was not written.
    is_plain_data: whether the data of a file is base64 without `data:`.
    """

    has_no_detail: bool = False
    is_plain_data: bool = False


NO_DETAIL: Final = ResponsesMedia(has_no_detail=True)
PLAIN_DATA: Final = ResponsesMedia(is_plain_data=True)


class ResponsesOpaque(ResponsesPart, frozen=True, tag="openai_responses.opaque"):
    """Something unknown that is a part of content, not an item."""


UNKNOWN_PART: Final = ResponsesOpaque()


def part_form(block: Block) -> ResponsesPart | None:
    return block.form if isinstance(block.form, ResponsesPart) else None


def message_fields(block: Block) -> Mapping[str, Any]:
    """The unknown fields of the message that a block begins."""
    form = part_form(block)
    return (form.message_rest if form is not None else None) or {}


def has_type_of_other_side(text: Text) -> bool:
    """Whether a text of the assistant is `input_text`, or one of somebody else `output_text`."""
    return type(text.form) is ResponsesText and text.form.type in ("input_text", "output_text")


# --- other items ------------------------------------------------------------------------------------


class ResponsesThinking(ResponsesForm, frozen=True, tag="openai_responses.thinking"):
    """An item of the type `reasoning`: its texts are among its unknown fields."""


REASONING: Final = ResponsesThinking()


class ResponsesCall(ResponsesForm, frozen=True, tag="openai_responses.call"):
    """A tool call.

    has_own_arguments: whether its arguments are written as the model wrote them, not as the object that they mean.
    has_item_id_only: whether it has no `call_id`, so that the `id` of its item is the id of the call.
    """

    has_own_arguments: bool = False
    has_item_id_only: bool = False


PLAIN_CALL: Final = ResponsesCall()
OWN_ARGUMENTS: Final = ResponsesCall(has_own_arguments=True)


def call_form(call: ToolCall) -> ResponsesCall:
    return call.form if type(call.form) is ResponsesCall else PLAIN_CALL


def with_arguments(form: Form | None, *, are_own: bool) -> ResponsesCall | None:
    """The form of a call whose arguments are known now; None if it is the default."""
    has_item_id_only = type(form) is ResponsesCall and form.has_item_id_only
    if has_item_id_only:
        return ResponsesCall(are_own, has_item_id_only)
    return OWN_ARGUMENTS if are_own else None


class ResponsesResult(ResponsesForm, frozen=True, tag="openai_responses.result"):
    """The output of a called tool.

    is_custom: whether it is an item of the type `custom_tool_call_output`.
    output: whether its output was missing, or a list of parts.
    tool: the type of the tool, if its outputs are items of their own type (`client_tools.py`).
    written: its output as it came, if that is more than a string; or its id, if that is not the id of the call.
    has_item_id_only: whether the id of the call is in `id`, since there is no `call_id`.
    """

    is_custom: bool = False
    output: Literal["absent", "parts"] | None = None
    tool: str | None = None
    written: Any = None
    has_item_id_only: bool = False


PLAIN_RESULT: Final = ResponsesResult()


class ResponsesToolChange(ResponsesForm, frozen=True, tag="openai_responses.tool_change"):
    """An item of the type `additional_tools`: its role is among its unknown fields."""


ADDITIONAL_TOOLS: Final = ResponsesToolChange()


# --- requests ---------------------------------------------------------------------------------------


class ResponsesTool(ResponsesForm, frozen=True, tag="openai_responses.tool"):
    """A tool.

    namespace_rest: unknown fields of the namespace that this tool is the first of; empty if there are none.
    has_no_strict: whether a function has no `strict`.
    has_no_parameters: whether a function has no `parameters`.
    """

    namespace_rest: Fields | None = None
    has_no_strict: bool = False
    has_no_parameters: bool = False


PLAIN_TOOL: Final = ResponsesTool()


class ResponsesChoice(ResponsesForm, frozen=True, tag="openai_responses.choice"):
    """A tool choice.

    is_mode_unset: whether only `parallel_tool_calls` was written.
    is_custom: whether the tool that is chosen is of the type `custom`.
    is_typed: whether the tool that is chosen has no name but its type.
    allowed_tools: the `tools` of a choice among several.
    allowed_mode: its `mode`, if that was written.
    """

    is_mode_unset: bool = False
    is_custom: bool = False
    allowed_tools: list[Any] | None = None
    allowed_mode: str | None = None
    is_typed: bool = False


PLAIN_CHOICE: Final = ResponsesChoice()
MODE_UNSET: Final = ResponsesChoice(is_mode_unset=True)
CUSTOM_CHOICE: Final = ResponsesChoice(is_custom=True)
TYPED_CHOICE: Final = ResponsesChoice(is_typed=True)


class ResponsesReasoning(ResponsesForm, frozen=True, tag="openai_responses.reasoning"):
    """Settings of reasoning that ask for nothing that is known."""


EMPTY_REASONING: Final = ResponsesReasoning()


class ResponsesRequest(ResponsesForm, frozen=True, tag="openai_responses.request"):
    """A request body.

    has_empty_model: whether `model` is an empty string.
    has_empty_tools: whether it has an empty list of tools.
    has_no_input: whether it has no `input`.
    text_rest: unknown fields of `text`; empty if it was there and all of it is known.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("text_rest",)

    has_empty_model: bool = False
    has_empty_tools: bool = False
    has_no_input: bool = False
    text_rest: Fields | None = None

    @property
    def verbosity(self) -> Any:
        return self.text_rest.get(_VERBOSITY) if self.text_rest else None

    def without_verbosity(self) -> Form:
        rest = self.text_rest or {}
        return replace(self, text_rest={key: rest[key] for key in rest if key != _VERBOSITY})


_VERBOSITY: Final = "verbosity"
PLAIN_REQUEST: Final = ResponsesRequest()


# --- replies ----------------------------------------------------------------------------------------


class ResponsesReply(ResponsesForm, frozen=True, tag="openai_responses.reply"):
    """A response object.

    status: how it ended.
    """

    status: str | None = None

    @property
    def stop_text(self) -> str | None:
        return self.status


PLAIN_REPLY: Final = ResponsesReply()


class ResponsesUsage(ResponsesForm, frozen=True, tag="openai_responses.usage"):
    """Token counts.

    input_details_rest: unknown fields of `input_tokens_details`; empty if it was there and all of it is known.
    output_details_rest: the same of `output_tokens_details`.
    """

    input_details_rest: Fields | None = None
    output_details_rest: Fields | None = None


# --- version 1 --------------------------------------------------------------------------------------


def _turn(notes: Fields) -> Fields:
    known = {**notes, "content": notes.get("content") == "text", "input": notes.get("input") == "text"}
    if notes.get("system") == "top":
        known["system"] = "field"
    names = {"content": "is_string", "untyped": "is_untyped", "system": "prompt_position", "input": "is_input"}
    return form_of_notes(ResponsesMessage, known, **names)


def _of_message(notes: Fields) -> Fields:
    """The notes of a part, with those on the message that it begins under the names of the fields of forms."""
    message = notes.get("message")
    if not isinstance(message, dict):
        return notes
    inner = notes_in(message)
    return {**notes, "is_string": inner.get("content") == "text", "is_untyped": inner.get("untyped") is True}


_OF_MESSAGE: Final = {
    "message": "message_rest",
    "is_string": "is_string",
    "is_untyped": "is_untyped",
    "joined": "is_joined",
}


def _text(notes: Fields) -> Fields:
    is_refusal = notes.get("refusal") is True
    known = {**_of_message(notes), **({"type": "refusal"} if is_refusal else {})}
    return {**form_of_notes(ResponsesText, known, type="type", **_OF_MESSAGE), "is_refusal": is_refusal}


def _media(notes: Fields) -> Fields:
    names = {"no_detail": "has_no_detail", "bare": "is_plain_data"}
    return form_of_notes(ResponsesMedia, _of_message(notes), **names, **_OF_MESSAGE)


def _opaque(notes: Fields) -> Fields:
    is_part = "part" in notes
    return form_of_notes(ResponsesOpaque, {"joined": False, **_of_message(notes)}, **_OF_MESSAGE) if is_part else {}


def _call(notes: Fields) -> Fields:
    known = {"arguments": notes.get("arguments") == "raw", "call_id": notes.get("call_id") == "item"}
    names = {"arguments": "has_own_arguments", "call_id": "has_item_id_only"}
    form = form_of_notes(ResponsesCall, known, **names) if any(known.values()) else {}
    return {**form, "argument_fixes": notes.get("read", ())}


def _result(notes: Fields) -> Fields:
    known = {**notes, "item": notes.get("item") == "custom_tool_call_output"}
    return form_of_notes(ResponsesResult, known, item="is_custom", output="output") if "item" in notes else {}


def _tool(notes: Fields) -> Fields:
    known = {**notes, **({"strict": True} if "strict" in notes else {})}
    names = {"namespace": "namespace_rest", "strict": "has_no_strict", "no_parameters": "has_no_parameters"}
    return {**form_of_notes(ResponsesTool, known, **names), **opaque_of_notes(PROTOCOL, notes, "tool")}


def _choice(notes: Fields) -> Fields:
    known = {**notes, **({"type": notes["type"] == "custom"} if "type" in notes else {})}
    names = {"unsaid": "is_mode_unset", "type": "is_custom", "tools": "allowed_tools", "mode": "allowed_mode"}
    return {**form_of_notes(ResponsesChoice, known, **names), **opaque_of_notes(PROTOCOL, notes, "choice")}


def _request(notes: Fields) -> Fields:
    flags = {"model": "has_empty_model", "tools": "has_empty_tools", "input": "has_no_input"}
    known = {**notes, **{name: True for name in flags if name in notes}}
    return form_of_notes(ResponsesRequest, known, **flags, text="text_rest")


def _reply(notes: Fields) -> Fields:
    return form_of_notes(ResponsesReply, {"status": None, **notes}, status="status") if "read" in notes else {}


def _usage(notes: Fields) -> Fields:
    names = {"input_details": "input_details_rest", "output_details": "output_details_rest"}
    return form_of_notes(ResponsesUsage, {"input_details": None, **notes}, **names) if "read" in notes else {}


from_notes: Final = notes_reader(
    {
        Turn: _turn,
        Text: _text,
        Media: _media,
        Opaque: _opaque,
        Thinking: lambda notes: {"form": {"form": "openai_responses.thinking"}} if "reasoning" in notes else {},
        ToolCall: _call,
        ToolResult: _result,
        ToolSpec: _tool,
        ToolChoice: _choice,
        Reasoning: lambda notes: {"form": {"form": "openai_responses.reasoning"}} if "said" in notes else {},
        OutputFormat: lambda notes: opaque_of_notes(PROTOCOL, notes, "format"),
        Conversation: _request,
        Reply: _reply,
        Usage: _usage,
    }
)
