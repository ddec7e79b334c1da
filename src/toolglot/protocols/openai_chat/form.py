"""How the Chat Completions protocol and its hosts write what canonical values do not distinguish.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from msgspec import field
from msgspec.structs import replace

from toolglot.conversation import (
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
from toolglot.conversation.cache_markers import read_marker
from toolglot.conversation.forms import CacheMarker, CacheMarking, Form, FormStruct
from toolglot.conversation.version_1 import form_of_notes, notes_in, notes_reader, opaque_of_notes, without_notes

PROTOCOL: Final = "openai_chat"
CACHE_MARKING: Final = CacheMarking(
    field="cache_control", type="ephemeral", is_of_hosts=True, marks_calls=False, marks_parts=True
)
"""That of OpenRouter and other hosts of Claude: at parts of the content."""

Fields = dict[str, Any]
ContentForm = Literal["text", "parts", "none"]
"""Content as a string, as a list of parts, or null or absent."""


class ChatForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


# --- messages ---------------------------------------------------------------------------------------


class ChatMessage(ChatForm, frozen=True, tag="openai_chat.message"):
    """A message.

    content: how its content was written.
    has_empty_calls: whether it has an empty list of tool calls.
    """

    content: ContentForm | None = None
    has_empty_calls: bool = False


MESSAGES: Final[dict[ContentForm, ChatMessage]] = {
    "text": ChatMessage("text"),
    "parts": ChatMessage("parts"),
    "none": ChatMessage("none"),
}
"""The forms of nearly all messages."""


class ChatResult(ChatForm, frozen=True, tag="openai_chat.result"):
    """A tool message.

    content: how its content was written, if not as a string.
    has_no_id: whether it has no `tool_call_id`.
    """

    content: Literal["parts", "none"] | None = None
    has_no_id: bool = False


class ChatText(ChatForm, frozen=True, tag="openai_chat.text"):
    """A refusal, which is a text elsewhere.

    position: whether it is a part of the content, or the field `refusal` of the message.
    """

    position: Literal["part", "field"]


REFUSAL_PART: Final = ChatText("part")
REFUSAL_FIELD: Final = ChatText("field")


class ChatOpaque(ChatForm, frozen=True, tag="openai_chat.opaque"):
    """Something unknown that is not part of the content.

    position: the field of the message that it is in, or `message` for a message of its own.
    """

    position: Literal["tool_calls", "function_call", "message"]


class ChatThinking(ChatForm, frozen=True, tag="openai_chat.thinking"):
    """Thinking.

    field: the field of the message that it is in.
    chunk: the parts of a chunk of thinking, as Mistral writes them.
    """

    field: str | None = None
    chunk: list[Any] | None = None


class ChatMedia(ChatForm, frozen=True, tag="openai_chat.media"):
    """A part that is media.

    part: the type of the part, if only some hosts have it.
    is_bare: whether the address, the data or the id is not in an object.
    is_plain_data: whether the data of a `file_url` is base64 without `data:`.
    audio_format: the `format` of audio, if its media type does not say it.
    url_rest: unknown fields of `image_url` or `video_url`.
    object_rest: unknown fields of `input_audio`, `file` or `file_url`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("url_rest",)

    part: Literal["document_url", "file_url"] | None = None
    is_bare: bool = False
    is_plain_data: bool = False
    audio_format: str | None = None
    url_rest: Fields | None = None
    object_rest: Fields | None = None

    def as_common(self) -> Form | None:
        return self if self.part is None else None


BARE: Final = ChatMedia(is_bare=True)
DOCUMENT_URL: Final = ChatMedia("document_url")


class ChatCall(ChatForm, frozen=True, tag="openai_chat.call"):
    """A tool call.

    arguments: how its arguments were written: as text that is not the text of the object, as an object, or not at all.
    has_no_id: whether it has no `id`.
    is_untyped: whether it has no `type`.
    inner_rest: unknown fields of `function` or `custom`.
    function_call_rest: unknown fields of the old `function_call`, if the call was written as one.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("inner_rest",)

    arguments: Literal["raw", "object", "none"] | None = None
    has_no_id: bool = False
    is_untyped: bool = False
    inner_rest: Fields | None = None
    function_call_rest: Fields | None = None

    @property
    def is_only_call(self) -> bool:
        return self.function_call_rest is not None


RAW_ARGUMENTS: Final = ChatCall("raw")


# --- requests ---------------------------------------------------------------------------------------


class ChatTool(ChatForm, frozen=True, tag="openai_chat.tool"):
    """A tool.

    inner_rest: unknown fields of `function` or `custom`.
    is_untyped: whether it has no `type`.
    has_no_parameters: whether a function has no `parameters`.
    has_own_format: whether the format of a custom tool is to be written as it is.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("inner_rest",)

    inner_rest: Fields | None = None
    is_untyped: bool = False
    has_no_parameters: bool = False
    has_own_format: bool = False

    @property
    def cache_markers(self) -> tuple[CacheMarker, ...]:
        """Some clients of LiteLLM write the marker of a tool into its `function`."""
        marker = (self.inner_rest or {}).get(CACHE_MARKING.field)
        return () if marker is None else (read_marker(marker, CACHE_MARKING),)

    def without_cache_markers(self) -> ChatTool:
        rest = {field: value for field, value in (self.inner_rest or {}).items() if field != CACHE_MARKING.field}
        return replace(self, inner_rest=rest or None)


class ChatChoice(ChatForm, frozen=True, tag="openai_chat.choice"):
    """A tool choice.

    is_mode_unset: whether only `parallel_tool_calls` was written.
    written: a choice that can be written in several ways, as it was.
    type: the type of the tool that is chosen.
    inner_rest: unknown fields of `function` or `custom`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("inner_rest",)

    is_mode_unset: bool = False
    written: str | Fields | None = None
    type: Literal["function", "custom"] | None = None
    inner_rest: Fields | None = None


MODE_UNSET: Final = ChatChoice(is_mode_unset=True)


class ChatReasoning(ChatForm, frozen=True, tag="openai_chat.reasoning"):
    """Whether to think.

    switch: the fields of the body that say so.
    switch_rest: unknown fields of objects among them.
    has_effort: whether `reasoning_effort` says it too.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("switch_rest",)

    switch: Fields
    switch_rest: Fields | None = None
    has_effort: bool = False


class ChatOutput(ChatForm, frozen=True, tag="openai_chat.output"):
    """An output format.

    has_no_name: whether the schema has no name, which some hosts allow.
    json_schema_rest: unknown fields of `json_schema`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("json_schema_rest",)

    has_no_name: bool = False
    json_schema_rest: Fields | None = None

    def as_common(self) -> Form | None:
        return replace(self, has_no_name=False) if self.has_no_name else self


class ChatRequest(ChatForm, frozen=True, tag="openai_chat.request"):
    """A request body.

    limit_field: the field that limits the reply.
    seed_field: the field with the seed.
    has_empty_tools: whether it has an empty list of tools.
    stop: whether `stop` is a string or an empty list.
    """

    limit_field: str | None = None
    has_empty_tools: bool = False
    stop: Literal["text", "empty"] | None = None
    seed_field: str | None = None

    def without_limit_field(self) -> Form | None:
        return replace(self, limit_field=None)

    def without_seed_field(self) -> Form | None:
        return replace(self, seed_field=None)


# --- replies ----------------------------------------------------------------------------------------


class ChatReply(ChatForm, frozen=True, tag="openai_chat.reply"):
    """A reply body.

    choice_rest: unknown fields of the choice.
    choices: the other choices.
    finish_reason: why the reply ended.
    is_in_details: whether `finish_details` says that.
    has_no_message: whether the choice has no message.
    """

    choice_rest: Fields = field(default_factory=dict)
    choices: list[Any] = field(default_factory=list)
    finish_reason: str | None = None
    is_in_details: bool = False
    has_no_message: bool = False

    @property
    def stop_text(self) -> str | None:
        return self.finish_reason

    def without_stop_text(self) -> Form | None:
        return replace(self, finish_reason=None) if self.finish_reason is not None else self

    def answer_fields(self) -> Fields:
        return self.choice_rest


class ChatUsage(ChatForm, frozen=True, tag="openai_chat.usage"):
    """What a reply cost.

    has_no_total: whether `total_tokens` was not written.
    prompt_details_rest: unknown fields of `prompt_tokens_details`; empty if all are known.
    completion_details_rest: unknown fields of `completion_tokens_details`; empty if all are known.
    cached_field: the field beside the details that has the cached tokens, if they are not in the details.
    """

    has_no_total: bool = False
    prompt_details_rest: Fields | None = None
    completion_details_rest: Fields | None = None
    cached_field: str = ""


# --- version 1 --------------------------------------------------------------------------------------


def _turn(notes: Fields) -> Fields:
    notes = {**notes, "tool_calls": True} if "tool_calls" in notes else notes
    return form_of_notes(ChatMessage, notes, content="content", tool_calls="has_empty_calls")


def _text(notes: Fields) -> Fields:
    if notes.get("refusal") is not True and notes.get("place") != "refusal":
        return {}
    position = "part" if notes.get("refusal") is True else "field"
    return {**form_of_notes(ChatText, {"position": position}, position="position"), "is_refusal": True}


def _media(notes: Fields) -> Fields:
    found: Fields = {"is_bare": notes.get("bare") is True}
    names = {"image_url": "url_rest", "video_url": "url_rest", "input_audio": "object_rest", "file": "object_rest"}
    found |= {field: notes[note] for note, field in {**names, "format": "audio_format"}.items() if note in notes}
    if notes.get("document_url") is True:
        found["part"] = "document_url"
    address = notes.get("file_url")
    if isinstance(address, dict):
        found |= {"part": "file_url", "is_plain_data": address.get("is_bare"), "object_rest": address.get("rest")}
    detail = None
    rest = found.get("url_rest")
    if isinstance(rest, dict) and rest.get("detail") in ("low", "high"):
        detail = rest["detail"]
        found["url_rest"] = {key: value for key, value in rest.items() if key != "detail"} or None
    found = {
        field: without_notes(value) if isinstance(value, dict) else value for field, value in found.items() if value
    }
    return {**({"form": {"form": "openai_chat.media", **found}} if found else {}), "detail": detail}


def _call(notes: Fields) -> Fields:
    rest = notes.get("custom") or notes.get("function")
    found = {**notes, **({"inner_rest": rest} if rest else {})}
    names = {"no_id": "has_no_id", "untyped": "is_untyped", "function_call": "function_call_rest"}
    changes = form_of_notes(ChatCall, found, arguments="arguments", inner_rest="inner_rest", **names)
    return {**changes, "argument_fixes": notes.get("read", ())}


def _tool(notes: Fields) -> Fields:
    rest = notes.get("custom") or notes.get("function")
    found = {**notes, **({"inner_rest": rest} if rest else {})}
    names = {"untyped": "is_untyped", "no_parameters": "has_no_parameters", "format_as_is": "has_own_format"}
    changes = form_of_notes(ChatTool, found, inner_rest="inner_rest", **names)
    return {**changes, **opaque_of_notes(PROTOCOL, notes, "tool")}


def _choice(notes: Fields) -> Fields:
    written = notes.get("choice")
    is_unknown = isinstance(written, str) and written != "any"
    is_unknown |= isinstance(written, dict) and written.get("type") != "allowed_tools"
    if is_unknown:
        return opaque_of_notes(PROTOCOL, notes, "choice")
    rest = notes.get("custom") or notes.get("function")
    found = {**notes, **({"inner_rest": rest} if rest else {})}
    return form_of_notes(
        ChatChoice, found, unsaid="is_mode_unset", choice="written", type="type", inner_rest="inner_rest"
    )


def _output(notes: Fields) -> Fields:
    rest = notes.get("json_schema")
    changes: Fields = {}
    if isinstance(rest, dict) and isinstance(rest.get("description"), str):
        changes["description"] = rest["description"]
        kept = {key: rest[key] for key in rest if key != "description"}
        notes = {
            **{name: notes[name] for name in notes if name != "json_schema"},
            **({"json_schema": kept} if kept else {}),
        }
    changes |= form_of_notes(ChatOutput, notes, no_name="has_no_name", json_schema="json_schema_rest")
    return {**changes, **opaque_of_notes(PROTOCOL, notes, "format")}


def _request(notes: Fields) -> Fields:
    found = {**notes}
    if "tools" in found:
        found["tools"] = True
    if found.get("stop") == []:
        found["stop"] = "empty"
    return form_of_notes(ChatRequest, found, limit="limit_field", tools="has_empty_tools", stop="stop")


def _reply(notes: Fields) -> Fields:
    rest = notes.get("choice")
    if isinstance(rest, dict):
        inner = notes_in(rest)
        notes = {**notes, "in_details": "in_details" in inner, "no_message": "no_message" in inner}
    names = {"in_details": "is_in_details", "no_message": "has_no_message"}
    return form_of_notes(
        ChatReply, notes, choice="choice_rest", choices="choices", finish_reason="finish_reason", **names
    )


from_notes: Final = notes_reader(
    {
        Turn: _turn,
        ToolResult: lambda notes: form_of_notes(ChatResult, notes, content="content", no_id="has_no_id"),
        Text: _text,
        Opaque: lambda notes: form_of_notes(ChatOpaque, notes, place="position"),
        Thinking: lambda notes: form_of_notes(ChatThinking, notes, field="field", chunk="chunk"),
        Media: _media,
        ToolCall: _call,
        ToolSpec: _tool,
        ToolChoice: _choice,
        Reasoning: lambda notes: form_of_notes(
            ChatReasoning, notes, switch="switch", switch_rest="switch_rest", effort="has_effort"
        ),
        OutputFormat: _output,
        Conversation: _request,
        Reply: _reply,
        Usage: lambda notes: form_of_notes(
            ChatUsage,
            notes,
            no_total="has_no_total",
            prompt_tokens_details="prompt_details_rest",
            completion_tokens_details="completion_details_rest",
        ),
    }
)
