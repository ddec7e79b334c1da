"""How the Bedrock Converse protocol writes what canonical values do not distinguish.

Most objects of this protocol are unions: one member says what the object is. What is beside that member is the
`block_rest` of a form.

Law: only the codecs of this folder read these structs. Everybody else asks `Form`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from toolglot.conversation import (
    Conversation,
    Media,
    Reply,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Usage,
)
from toolglot.conversation.cache_markers import read_marker
from toolglot.conversation.forms import CacheMarker, CacheMarking, Form, FormStruct
from toolglot.conversation.version_1 import form_of_notes, opaque_of_notes, without_notes

PROTOCOL: Final = "bedrock"


class BedrockForm(FormStruct, frozen=True):
    protocol: ClassVar[str] = PROTOCOL


class BedrockText(BedrockForm, frozen=True, tag="bedrock.text"):
    """A text that was not a block `text`.

    block: the document, the search result, the answer with citations or the guarded text that it was.
    guarded_rest: unknown fields of `guardContent.text`.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("guarded_rest",)

    block: dict[str, Any]
    guarded_rest: dict[str, Any] | None = None

    @property
    def document_name(self) -> str | None:
        document = self.block.get("document")
        if type(document) is not dict:
            return None
        name = document.get("name")
        return "" if name is None else name if type(name) is str else None

    def with_document_name(self, name: str) -> BedrockText:
        return replace(self, block={**self.block, "document": {**self.block["document"], "name": name}})


class BedrockJson(BedrockForm, frozen=True, tag="bedrock.json"):
    """A text that was a part `json` of a result.

    value: what it held.
    """

    value: Any


class BedrockCall(BedrockForm, frozen=True, tag="bedrock.call"):
    """A tool call.

    block_rest: unknown fields beside `toolUse`.
    has_empty_id: whether `toolUseId` was empty.
    """

    block_rest: dict[str, Any] | None = None
    has_empty_id: bool = False


class BedrockResult(BedrockForm, frozen=True, tag="bedrock.result"):
    """A tool result.

    block_rest: unknown fields beside `toolResult`.
    status: what its `status` was, if not `error`.
    """

    block_rest: dict[str, Any] | None = None
    status: str | None = None


SUCCESS: Final = BedrockResult(status="success")


class BedrockThinking(BedrockForm, frozen=True, tag="bedrock.thinking"):
    """A block `reasoningContent`.

    block_rest: unknown fields beside `reasoningContent`.
    reasoning_rest: unknown fields of `reasoningContent`.
    """

    block_rest: dict[str, Any] | None = None
    reasoning_rest: dict[str, Any] | None = None


PLAIN_THINKING: Final = BedrockThinking()


class BedrockMedia(BedrockForm, frozen=True, tag="bedrock.media"):
    """An image, a document, an audio or a video.

    block_rest: unknown fields beside the member.
    location_rest: unknown fields of `s3Location`; empty if its `uri` is not one of S3.
    format: what its `format` was, if the media type does not say it.
    has_no_name: whether a document had no `name`.
    """

    block_rest: dict[str, Any] | None = None
    location_rest: dict[str, Any] | None = None
    format: str | None = None
    has_no_name: bool = False


PLAIN_MEDIA: Final = BedrockMedia()


class BedrockTool(BedrockForm, frozen=True, tag="bedrock.tool"):
    """An entry of the list of tools, with the cache markers around it.

    block_rest: unknown fields beside `toolSpec`.
    schema_rest: unknown fields of `inputSchema`; empty if it was there without `json`.
    has_no_schema: whether `inputSchema` was not written.
    markers_before: the cache markers before the first tool.
    markers_after: the cache markers between this tool and the next.
    """

    block_rest: dict[str, Any] | None = None
    schema_rest: dict[str, Any] | None = None
    has_no_schema: bool = False
    markers_before: list[Any] | None = None
    markers_after: list[Any] | None = None

    @property
    def cache_markers(self) -> tuple[CacheMarker, ...]:
        markers = (*(self.markers_before or ()), *(self.markers_after or ()))
        return tuple([read_marker(marker.get(CACHE_MARKING.field), CACHE_MARKING) for marker in markers])

    def without_cache_markers(self) -> BedrockTool:
        return BedrockTool(self.block_rest, self.schema_rest, self.has_no_schema)

    def unknown_fields(self) -> Iterable[tuple[str, Any]]:
        markers = [*(self.markers_before or ()), *(self.markers_after or ())]
        return [(CACHE_MARKING.field, markers)] if markers else ()


PLAIN_TOOL: Final = BedrockTool()


def _mark_tool(form: Form | None, marker: dict[str, Any]) -> BedrockTool:
    """The form of a tool with a cache marker behind it, and no other."""
    own = form if type(form) is BedrockTool else PLAIN_TOOL
    return replace(own, markers_before=None, markers_after=[marker])


CACHE_MARKING: Final = CacheMarking(field="cachePoint", type="default", block="cachePoint", mark_tool=_mark_tool)
"""A marker is a block, an entry of the list of tools, or, as some write it, a field."""


class BedrockChoice(BedrockForm, frozen=True, tag="bedrock.choice"):
    """A tool choice.

    block_rest: unknown fields beside its member.
    """

    block_rest: dict[str, Any]


class BedrockRequest(BedrockForm, frozen=True, tag="bedrock.request"):
    """A request body.

    inference_rest: unknown fields of `inferenceConfig`; empty if it was there and all of it is known.
    tool_config_rest: the same of `toolConfig`.
    model_fields: the objects for the model's own settings (`options.py`), as they came.
    is_model_in_path: whether the body did not name the model. On the wire, the path does; SDKs have a parameter.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("inference_rest",)

    inference_rest: dict[str, Any] | None = None
    tool_config_rest: dict[str, Any] | None = None
    model_fields: dict[str, Any] | None = None
    is_model_in_path: bool = False


PLAIN_REQUEST: Final = BedrockRequest()


class BedrockUsage(BedrockForm, frozen=True, tag="bedrock.usage"):
    """Token counts of the protocol: none is added to them."""


NATIVE_USAGE: Final = BedrockUsage()


class BedrockReply(BedrockForm, frozen=True, tag="bedrock.reply"):
    """A reply body.

    stop_reason: why it ended.
    output_rest: unknown fields of `output`.
    """

    stop_reason: str | None = None
    output_rest: dict[str, Any] | None = None

    @property
    def stop_text(self) -> str | None:
        return self.stop_reason

    def without_stop_text(self) -> BedrockReply:
        return BedrockReply(None, self.output_rest)


PLAIN_REPLY: Final = BedrockReply()


# --- version 1 of the serialised form ---------------------------------------------------------------


def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    """The fields that notes of version 1 of the serialised form are."""
    if isinstance(value, Text):
        form = form_of_notes(BedrockText, notes, worded="block", inner="guarded_rest")
        return form or form_of_notes(BedrockJson, notes, json="value")
    if isinstance(value, ToolCall):
        form = form_of_notes(BedrockCall, notes, block="block_rest", no_id="has_empty_id")
        return {**form, "argument_fixes": notes.get("read", ())}
    if isinstance(value, ToolResult):
        return form_of_notes(BedrockResult, notes, block="block_rest", status="status")
    if isinstance(value, Thinking):
        return form_of_notes(BedrockThinking, notes, block="block_rest", reasoning="reasoning_rest")
    if isinstance(value, Media):
        names = {"block": "block_rest", "location": "location_rest", "format": "format", "unnamed": "has_no_name"}
        return form_of_notes(BedrockMedia, notes, **names)
    if isinstance(value, ToolSpec):
        return {**_from_notes_of_tool(value, notes), **opaque_of_notes(PROTOCOL, notes, "tool")}
    return _from_notes_of_body(value, notes)


def _from_notes_of_tool(tool: ToolSpec, notes: dict[str, Any]) -> dict[str, Any]:
    names = {"block": "block_rest", "schema": "schema_rest", "no_schema": "has_no_schema"}
    markers = notes.get("markers")
    if not isinstance(markers, dict):
        return form_of_notes(BedrockTool, notes, **names)
    known = {**notes, "before": markers.get("before"), "behind": markers.get("behind")}
    changes = form_of_notes(BedrockTool, known, **names, before="markers_before", behind="markers_after")
    if markers.get("told"):  # then the markers are also a field of the tool
        extra = {protocol: without_notes(fields) for protocol, fields in (tool.extra or {}).items()}
        extra.get(PROTOCOL, {}).pop(CACHE_MARKING.field, None)
        changes["extra"] = {protocol: fields for protocol, fields in extra.items() if fields} or None
    return changes


def _from_notes_of_body(value: object, notes: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, ToolChoice):
        return {**form_of_notes(BedrockChoice, notes, block="block_rest"), **opaque_of_notes(PROTOCOL, notes, "choice")}
    if isinstance(value, Conversation):
        names = {"inference": "inference_rest", "tools": "tool_config_rest", "own": "model_fields"}
        return form_of_notes(BedrockRequest, notes, **names, addressed="is_model_in_path")
    if isinstance(value, Usage):
        return {"form": {"form": "bedrock.usage"}}
    if isinstance(value, Reply):
        form = form_of_notes(BedrockReply, notes, stop_reason="stop_reason", output="output_rest")
        return form or {"form": {"form": "bedrock.reply"}}
    return {}
