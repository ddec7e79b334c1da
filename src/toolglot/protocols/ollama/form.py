"""How Ollama's chat protocol writes what canonical values do not distinguish.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from toolglot.conversation import Conversation, OutputFormat, Reply, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation.forms import FormStruct
from toolglot.conversation.version_1 import form_of_notes, opaque_of_notes
from toolglot.protocols.fields.function_tools import FunctionToolForm

PROTOCOL: Final = "ollama"


class OllamaForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


class OllamaMessage(OllamaForm, frozen=True, tag="ollama.message"):
    """A message, also one that is a tool result.

    content: how its content was missing.
    """

    content: Literal["none", "null"] | None = None


NO_CONTENT: Final = OllamaMessage("none")
NULL_CONTENT: Final = OllamaMessage("null")


class OllamaCall(OllamaForm, frozen=True, tag="ollama.call"):
    """A tool call.

    function_rest: unknown fields of `function`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("function_rest",)

    function_rest: dict[str, Any] | None = None


class OllamaTool(FunctionToolForm, frozen=True, tag="ollama.tool"):
    """A function tool."""

    protocol: ClassVar[str] = PROTOCOL


class OllamaRequest(OllamaForm, frozen=True, tag="ollama.request"):
    """A request body.

    options_rest: unknown fields of `options`; empty if `options` was there and all of it is known.
    is_stream_implied: whether `stream` was not written: the default is to stream.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("options_rest",)

    options_rest: dict[str, Any] | None = None
    is_stream_implied: bool = False


class OllamaReply(OllamaForm, frozen=True, tag="ollama.reply"):
    """A reply body.

    done: whether the reply is whole.
    done_reason: why it ended.
    """

    done: bool
    done_reason: str | None = None

    @property
    def stop_text(self) -> str | None:
        return self.done_reason


def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    """The fields that notes of version 1 of the serialised form are."""
    if isinstance(value, Turn):
        return form_of_notes(OllamaMessage, notes, content="content")
    if isinstance(value, ToolResult):
        ids = {"id_omitted": notes.get("no_id"), "written_id": notes.get("own_id")}
        return {**form_of_notes(OllamaMessage, notes, content="content"), **ids}
    if isinstance(value, ToolCall):
        changes = form_of_notes(OllamaCall, notes, function="function_rest")
        return {**changes, "id_omitted": notes.get("no_id"), "argument_fixes": notes.get("read", ())}
    if isinstance(value, ToolSpec):
        return OllamaTool.from_notes(notes)
    if isinstance(value, OutputFormat):
        return opaque_of_notes(PROTOCOL, notes, "format")
    if isinstance(value, Conversation):
        return form_of_notes(OllamaRequest, notes, options="options_rest", streams_unsaid="is_stream_implied")
    return form_of_notes(OllamaReply, notes, done="done", done_reason="done_reason") if isinstance(value, Reply) else {}
