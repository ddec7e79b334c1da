"""The canonical conversation: provider-neutral, immutable values.

A conversation is a tuple of turns and the tools they may use. What toolglot understands of a wire body has a field
here. What it does not is an `Opaque` value, or is in `extra` under the name of its protocol, and returns there alone.
How the body was spelled is in `form` (`conversation/forms.py`).

Law: values only. Nothing here reads, repairs, pairs or renders. Two equal values are interchangeable.
Ids in the turns of a `History` are canonical; the provider's own are in `metadata`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot.conversation.forms import Form

Role = Literal["system", "developer", "user", "assistant", "tool"]

Status = Literal["pending", "complete", "cancelled", "error"]
"""The lifecycle of a tool interaction."""

MatchedBy = Literal["id", "name", "position", "orphan"]
"""How a result found its call. An orphan has none; its call id is its own."""

SetAsideReason = Literal["conflict", "late", "superseded"]
"""Why a result is not its call's completion."""

StopReason = Literal["stop", "tool_calls", "length", "filter", "pause", "error"]
"""Why a reply ended."""

FailureKind = Literal[
    "bad_request",
    "auth",
    "permission",
    "billing",
    "not_found",
    "too_large",
    "context_overflow",
    "rate_limit",
    "overloaded",
    "content_filter",
    "timeout",
    "unreachable",
    "server",
    "bad_output",
]
"""Why a provider did not answer. `unreachable`: there was no connection to it. `bad_output`: what the model wrote could
not be used; a retry may succeed."""

ChoiceMode = Literal["auto", "none", "required", "named", "allowed"]
ReasoningMode = Literal["off", "on", "adaptive", "between_tools"]

Extra = dict[str, dict[str, Any]]
"""Fields of a wire body that toolglot does not know: protocol → field → value."""


class Value(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What every canonical value is: immutable, compact when written, strict when read.

    Values are trees, so the garbage collector need not look at them."""


class Issuer(Value, frozen=True):
    """Who made an opaque item. It goes back to the same issuer or nowhere.

    provider: its name.
    endpoint: its address.
    account: whose key it was.
    model: the model that answered.
    """

    provider: str
    endpoint: str = ""
    account: str = ""
    model: str = ""


# --- blocks -----------------------------------------------------------------------------------------


class BlockValue(Value, frozen=True, tag_field="block", tag=str.lower):
    """A part of a turn. Written out, `block` says which kind it is."""


class Text(BlockValue, frozen=True, tag="text"):
    """Text of a message.

    text: the words.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    text: str
    signature: str | None = None
    """An opaque signature that a provider put on this text (Gemini does)."""
    extra: Extra | None = None
    form: Form | None = None
    is_refusal: bool = False
    """The model refuses to answer; some protocols have a separate field for that."""


class Thinking(BlockValue, frozen=True, tag="thinking"):
    """What a model thought, with what only its issuer can read.

    text: what was thought.
    signature: the provider's signature over it.
    id: the provider's id of it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    """The provider's encrypted form, when it does not show the text."""
    id: str | None = None
    extra: Extra | None = None
    form: Form | None = None


class Media(BlockValue, frozen=True, tag="media"):
    """An image, document, sound or film: inline, by address, or by the provider's file id.

    kind: image, document, audio, video or file.
    media_type: its MIME type.
    url: where it can be fetched.
    file_id: its id among the provider's files.
    name: the name of the file.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    kind: Literal["image", "document", "audio", "video", "file"]
    media_type: str = ""
    data: str | None = None
    """Base64, as on every wire."""
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    extra: Extra | None = None
    form: Form | None = None
    detail: str | None = None
    """How closely to look at an image: `low` or `high`."""


class Opaque(BlockValue, frozen=True, tag="opaque"):
    """Something that toolglot does not know, carried as it came.

    protocol: whose it is.
    value: the JSON, as it came.
    kind: what that protocol calls it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    protocol: str
    value: Any
    kind: str = ""
    extra: Extra | None = None
    form: Form | None = None
    text: str | None = None
    """What it says, for a target that cannot read it; None: the texts that are found in it."""


class ServerTool(BlockValue, frozen=True, tag="server_tool"):
    """A tool that the provider itself ran: its call or its result, for its issuer only.

    protocol: whose it is.
    phase: whether it is the call or the result.
    value: the JSON, as it came.
    name: the name of the tool.
    id: the id of the call.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    protocol: str
    phase: Literal["call", "result"]
    value: Any
    name: str = ""
    id: str = ""
    extra: Extra | None = None
    form: Form | None = None
    loaded: tuple[ToolReference, ...] = ()
    """The tools that a search of the provider found. The model may call them from here on."""


class ToolReference(BlockValue, frozen=True, tag="tool_reference"):
    """A tool that is named within the conversation. In the content of a result: a tool that a search found, which the
    model may call from there on.

    name: the name of the tool.
    namespace: the namespace that the tool is in.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    name: str
    namespace: str | None = None
    definition: ToolSpec | None = None
    """The tool itself, where it is defined here; otherwise it is among the tools of the conversation."""
    extra: Extra | None = None
    form: Form | None = None


class ToolChange(BlockValue, frozen=True, tag="tool_change"):
    """From here on the model may call more tools, or fewer. In a turn of a prompt.

    added: the tools that it may call.
    removed: the tools that it may no longer call.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    added: tuple[ToolReference, ...] = ()
    removed: tuple[ToolReference, ...] = ()
    extra: Extra | None = None
    form: Form | None = None


class Compaction(BlockValue, frozen=True, tag="compaction"):
    """A summary that stands for the conversation before it.

    summary: the summary, where it can be read.
    data: the provider's encrypted form of it.
    protocol: whose form it is.
    id: the provider's id of it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    summary: str | None = None
    data: str | None = None
    protocol: str = ""
    id: str | None = None
    keeps_prompts: bool = False
    """Whether the messages of users before it still count. Those of the model and results never do."""
    extra: Extra | None = None
    form: Form | None = None


class ToolMetadata(Value, frozen=True):
    """Where a call or a result came from. Never part of its identity.

    issuer: who made the call.
    matched_by: how a result was matched with its call.
    """

    raw_id: str | None = None
    """The id as the provider or client wrote it; None when there was none."""
    issuer: Issuer | None = None
    ordinal: int | None = None
    """A call's index among all calls of the conversation, also after compression."""
    matched_by: MatchedBy | None = None
    thought_signature: str | None = None
    """A signature that a proxy hid inside the id."""


FREE_TEXT: Final = "input"
"""The one argument that holds the text of a free-text call, for a protocol that takes only objects."""

RAW_ARGUMENTS: Final = "_raw"
"""The argument that holds arguments that are not an object, for a protocol that takes only objects."""


class ToolCall(BlockValue, frozen=True, tag="tool_call"):
    """A model's wish to run a tool, as it wrote it.

    id: the id of the call.
    name: the tool that is called.
    metadata: where the call came from.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None = None
    """The parsed object; None when what the model wrote is not one (see `raw_input`)."""
    type: str = "function"
    """`function`, `custom` (free text in `raw_input`), `bash`, …"""
    raw_input: str | None = None
    """The arguments as the model wrote them, where the object alone does not say it."""
    signature: str | None = None
    """An opaque signature that the provider put on this call (Gemini does)."""
    namespace: str | None = None
    """The namespace that the tool is in, where the model named one (OpenAI Responses does)."""
    metadata: ToolMetadata | None = None
    extra: Extra | None = None
    form: Form | None = None
    argument_fixes: tuple[str, ...] = ()
    """What was done to read the arguments, where they are not plain JSON."""
    id_omitted: Literal["absent", "refused"] | None = None
    """Why the id is not written: the client wrote none, or the target refuses ids. The value keeps it."""

    def to_anthropic(self) -> dict[str, Any]:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": self.arguments or {}}

    def to_openai(self) -> dict[str, Any]:
        arguments = msgspec.json.encode(self.arguments or {}).decode()
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}

    def to_generic(self) -> dict[str, Any]:
        return {"tool_call_id": self.id, "tool_name": self.name, "parameters": self.arguments or {}}


class ToolResult(BlockValue, frozen=True, tag="tool_result"):
    """The result of a tool call, or that there is none.

    call_id: the call that it answers.
    content: what the tool returned: text, or blocks.
    is_error: whether the tool failed.
    name: the name of the tool.
    is_complete: whether the result is final.
    error: what went wrong.
    metadata: where the result came from.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    call_id: str
    content: str | tuple[ResultPart, ...] | None = None
    is_error: bool = False
    name: str = ""
    is_complete: bool | None = None
    error: str | None = None
    result: Any = None
    """The value that the tool returned, where it is more than its content."""
    status: Status | None = None
    """The status as written; `status_of` combines it with the fields above."""
    synthetic: str | None = None
    """Why this result was made up. None for every result that a tool really returned."""
    executed_arguments: dict[str, Any] | None = None
    """What the tool really got, where that is not what the model wrote."""
    shortened_from: str | None = None
    """The key of the whole completion, where this is a shortened one."""
    metadata: ToolMetadata | None = None
    extra: Extra | None = None
    form: Form | None = None
    id_omitted: Literal["absent", "refused"] | None = None
    """Why the id is not written: the client wrote none, or the target refuses ids. The value keeps it."""
    written_id: str | None = None
    """The id that is written instead of `call_id`: the client's own, for a call that has none."""

    @property
    def text(self) -> str:
        """The textual content in one string."""
        if isinstance(self.content, str):
            return self.content
        return "".join(block.text for block in self.content or () if isinstance(block, Text))

    def to_anthropic(self) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": self.call_id, "content": self._content_text()}
        return {**block, "is_error": True} if self._has_failed() else block

    def to_openai(self) -> dict[str, Any]:
        """A message of the role `tool`. It has no field for a failure, so the text of one begins with `Error:`."""
        content = self._content_text()
        if self._has_failed() and not content.startswith("Error:"):
            content = f"Error: {content}".rstrip()
        return {"role": "tool", "tool_call_id": self.call_id, "content": content}

    def to_generic(self) -> dict[str, Any]:
        return {"tool_call_id": self.call_id, "content": self._content_text(), "is_error": self._has_failed()}

    def _has_failed(self) -> bool:
        return self.is_error or self.error is not None or self.status in ("error", "cancelled")

    def _content_text(self) -> str:
        """The content as text; what went wrong, or the value that the tool returned, where there is none."""
        if isinstance(self.content, tuple):
            return "\n".join(_block_text(block) for block in self.content)
        if self.content is not None:
            return self.content
        if self.error is not None or self.result is None:
            return self.error or ""
        return self.result if isinstance(self.result, str) else msgspec.json.encode(self.result).decode()


def _block_text(block: ResultPart) -> str:
    """The text of a block; what cannot be written as text is named."""
    if isinstance(block, Text):
        return block.text
    if isinstance(block, ToolReference):
        return f"[tool: {block.name}]"
    media_type = block.media_type if isinstance(block, Media) else ""
    return f"[{block.kind}: {media_type}]" if media_type else f"[{block.kind}]"


ResultPart = Text | Media | Opaque | ToolReference
"""A part of the content of a result."""

Block = Text | Thinking | ToolCall | ToolResult | Media | ServerTool | Compaction | ToolChange | ToolReference | Opaque


# --- interactions -----------------------------------------------------------------------------------


class SetAside(Value, frozen=True):
    """A result that did not become its call's completion, and why. It is kept, not dropped.

    reason: why it does not count.
    """

    result: ToolResult
    reason: SetAsideReason


class Interaction(Value, frozen=True):
    """One tool call and what became of it.

    turn_key: the turn of the call.
    status: whether it is pending, complete, cancelled or an error.
    result: the result that counts.
    set_aside: results that do not count, and why.
    """

    call: ToolCall
    turn_key: str
    index: int
    """The call's index among the calls of its turn."""
    status: Status = "pending"
    result: ToolResult | None = None
    early: bool = False
    """The result came before its call in the transcript."""
    set_aside: tuple[SetAside, ...] = ()

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def executed_arguments(self) -> dict[str, Any] | None:
        """What the tool really got: as recorded with the result, otherwise as the model wrote it."""
        if self.result is not None and self.result.executed_arguments is not None:
            return self.result.executed_arguments
        return self.call.arguments


# --- turns ------------------------------------------------------------------------------------------


class TurnMetadata(Value, frozen=True):
    removed: tuple[Interaction, ...] = ()
    """Interactions whose turns compression or pruning removed, so that no pair is ever lost."""
    notes: dict[str, Any] | None = None
    """The caller's own. toolglot carries them and never reads them."""
    interrupted: str = ""
    """Why the model's answer ends here although it was not finished; empty: it was. Not sent to a provider."""


class Turn(Value, frozen=True):
    """One speaker's contribution.

    role: who speaks.
    blocks: the content.
    issuer: the provider and model that made it.
    metadata: what the history keeps of it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    role: Role
    blocks: tuple[Block, ...] = ()
    key: str = ""
    """Never changes: the caller's, or derived from the content by `History`."""
    issuer: Issuer | None = None
    metadata: TurnMetadata = TurnMetadata()
    extra: Extra | None = None
    form: Form | None = None

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([block for block in self.blocks if isinstance(block, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple([block for block in self.blocks if isinstance(block, ToolResult)])


# --- what a request asks for ------------------------------------------------------------------------


class ToolSpec(Value, frozen=True):
    """A tool that the model may call.

    name: what the model calls it by.
    description: what the tool does, for the model.
    strict: whether the provider is to hold the model to the schema.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema of the arguments, as the client wrote it."""
    type: str = "function"
    """`function`, `custom` (free text), or a provider's own type, which only its issuer runs."""
    strict: bool | None = None
    format: dict[str, Any] | None = None
    """The grammar of a custom tool."""
    namespace: str | None = None
    """The group that the tool is in; its name is unique only there."""
    issuer: Issuer | None = None
    """Set when the provider runs the tool itself."""
    extra: Extra | None = None
    form: Form | None = None
    opaque: Opaque | None = None
    """The tool as its protocol wrote it, where no other protocol can express it."""
    deferred: bool = False
    """The model does not see the tool until a search finds it (`ToolReference`) or it is added (`ToolChange`)."""
    is_search: bool = False
    """The provider's own search among the deferred tools."""


class ToolChoice(Value, frozen=True):
    """Which tools the model may or must call.

    mode: whether the model may, must or must not call a tool.
    parallel: whether it may make several calls in one turn.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    mode: ChoiceMode = "auto"
    names: tuple[str, ...] = ()
    """The one tool of `named`; those that `allowed` and `required` choose among, `required` among all without them."""
    parallel: bool | None = None
    extra: Extra | None = None
    form: Form | None = None
    opaque: Opaque | None = None
    """The choice as its protocol wrote it, where it is of an unknown kind."""


class Sampling(Value, frozen=True):
    """How the tokens of an answer are chosen.

    max_tokens: the most tokens of the answer.
    temperature, top_p, top_k: how far to stray from the likeliest token.
    stop: texts that end the answer.
    seed: for the same answer again.
    presence_penalty, frequency_penalty: against repetition.
    """

    max_tokens: int | None = None
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None


class Reasoning(Value, frozen=True):
    """Whether and how much the model thinks.

    mode: whether the model thinks.
    effort: how much, in the provider's words.
    budget_tokens: how much, in tokens.
    summary: whether and how it is summarised.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    mode: ReasoningMode | None = None
    effort: str | None = None
    budget_tokens: int | None = None
    summary: str | None = None
    extra: Extra | None = None
    form: Form | None = None
    opaque: Opaque | None = None
    """The settings as their protocol wrote them, where they are of an unknown kind."""


class OutputFormat(Value, frozen=True):
    """The form of the answer.

    kind: text, any JSON, or JSON of a schema.
    name: the name of the schema.
    schema: the JSON Schema.
    strict: whether the provider is to hold the model to it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    kind: Literal["text", "json", "json_schema"] = "text"
    name: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    extra: Extra | None = None
    form: Form | None = None
    opaque: Opaque | None = None
    """The format as its protocol wrote it, where it is of an unknown kind."""
    description: str | None = None
    """What the schema is for."""


class Options(Value, frozen=True):
    """What a request asks of the model besides its conversation.

    sampling: how tokens are chosen.
    reasoning: whether and how much the model thinks.
    tool_choice: which tools it may or must call.
    output: the form of the answer.
    stream: whether the answer is streamed.
    user: who the request is for, as the client names them.
    """

    sampling: Sampling = Sampling()
    reasoning: Reasoning | None = None
    tool_choice: ToolChoice | None = None
    output: OutputFormat | None = None
    stream: bool | None = None
    user: str | None = None


# --- what a model answers ---------------------------------------------------------------------------


class Usage(Value, frozen=True):
    """Tokens that a reply cost; None where the provider does not say.

    cache_read_tokens, cache_write_tokens: tokens of the prompt that came from a cache, or went into it.
    cache_write_1h_tokens: those that went into it for an hour, among all that did.
    reasoning_tokens: tokens of thinking, among those of the answer.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    input_tokens: int | None = None
    """All of the prompt, what came from a cache included."""
    output_tokens: int | None = None
    """All of the answer, thinking included."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    extra: Extra | None = None
    form: Form | None = None
    cache_write_1h_tokens: int | None = None


class MalformedCall(Value, frozen=True):
    """A call of the model that could not be read.

    reason: the stop reason that says so.
    message: what the model wrote.
    """

    reason: str
    message: str


class Reply(Value, frozen=True):
    """A model's answer: its turn, why it ended, and what it cost.

    usage: the tokens that it cost.
    id: the provider's id of it.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    turn: Turn
    stop: StopReason | None = None
    """Derived from the calls that are there; None while the answer is not finished."""
    usage: Usage | None = None
    id: str = ""
    model: str = ""
    extra: Extra | None = None
    form: Form | None = None
    malformed: MalformedCall | None = None
    """The call that could not be read, for a client whose protocol has a stop reason for that."""


class Failure(Value, frozen=True):
    """Why there is no answer, from whichever protocol it came. It holds no secret: keys are masked.

    kind: what sort of failure it is.
    message: the provider's own words.
    request_id: the provider's id of the request.
    extra: the body that it was read from, by protocol.
    """

    kind: FailureKind
    message: str = ""
    status: int | None = None
    """The HTTP status, as the provider sent it; None when there was none."""
    code: str = ""
    """The provider's own code or type."""
    retry_after: float | None = None
    """Seconds to wait, where the provider says so."""
    request_id: str = ""
    param: str = ""
    """The field or JSON path that was complained about."""
    rule: str = ""
    """The id of the known demand that was not met: a rule or fact of a profile."""
    in_band: bool = False
    """It came inside an answer of HTTP status 2xx."""
    extra: Extra | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in ("rate_limit", "overloaded", "timeout", "unreachable", "server", "bad_output")


class Conversation(Value, frozen=True):
    """A conversation in canonical form.

    turns: the messages, in order.
    tools: the tools that the model may call.
    options: the other settings of the request.
    model: the model's name.
    extra: fields that toolglot does not know, by protocol.
    form: how its protocol wrote it.
    """

    turns: tuple[Turn, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    options: Options = Options()
    model: str = ""
    extra: Extra | None = None
    form: Form | None = None

    @property
    def interactions_removed(self) -> tuple[Interaction, ...]:
        return tuple(found for turn in self.turns for found in turn.metadata.removed)
