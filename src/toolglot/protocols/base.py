"""The `Protocol` record, which holds what is true of a wire protocol, and the registry of the protocols.

    get("gemini").turns                        # "contents"
    get("gemini").codec.request.decode(body)   # a Conversation
    register("my_package.my_protocol")         # one more, from a package with the same files

A protocol is a package: `endpoint.py` has its record, `request.py`, `reply.py`, `stream_reader.py`,
`stream_writer.py` and `errors.py` its codecs, `form.py` what these remember of how a body was written. Three files are
optional: `lenient.py` (how malformed bodies are read), `fragments.py` (pieces of replies), and `context.py` (what a
request can want to be done to a conversation that grows too long).
Law: everything outside that package uses the record; no table elsewhere is keyed by names of protocols. A record and
its codecs are imported when they are first used, so that importing toolglot costs no more than what is used of it.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Failure, Reply, Turn, forms
from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest
from toolglot.conversation.events import Event
from toolglot.conversation.forms import FormLibrary, FormLoader, FormStruct
from toolglot.errors import InputError, quote
from toolglot.limits import Limits
from toolglot.profiles import Profile
from toolglot.profiles.loader import PROTOCOLS
from toolglot.profiles.rules import ContextRules
from toolglot.protocols.context_form import ContextForm
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.turn_parts import TurnParts
from toolglot.protocols.fields.web_search import SearchCodec
from toolglot.protocols.framing.event_builder import EventBuilder
from toolglot.protocols.framing.text_frames import Frame, Framer
from toolglot.protocols.lenient.fixes import Leniency
from toolglot.protocols.passed_paths import PassedPaths

EVENTS: Final = "text/event-stream"
"""The content type of server-sent events, which most protocols stream."""
Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "none"]
"""How a key is sent: as a bearer token, in a header of its own, or as a signature of AWS."""


class RequestCodec(typing.Protocol):
    def decode(self, body: Fields) -> Conversation: ...
    def encode(self, conversation: Conversation, profile: Profile | None = None) -> Fields: ...


class ReplyCodec(typing.Protocol):
    def decode(self, body: Fields) -> Reply: ...
    def encode(self, reply: Reply) -> Fields: ...


class ErrorCodec(typing.Protocol):
    def decode(
        self,
        status: int,
        body: bytes | str | dict[str, Any] | None,
        headers: Mapping[str, str] = ...,
        *,
        target: str = ...,
    ) -> Failure | None: ...
    def encode(self, failure: Failure) -> tuple[int, Fields]: ...
    def headers_of(self, failure: Failure) -> dict[str, str]: ...


class EmbeddingCodec(typing.Protocol):
    def decode_request(self, body: Fields) -> EmbeddingRequest: ...
    def encode_request(self, request: EmbeddingRequest, profile: Profile) -> Fields: ...
    def with_model(self, body: Fields, model: str) -> Fields:
        """A request as it came, for another model; the same object if nothing changes."""
        ...

    def decode_reply(self, data: bytes, profile: Profile) -> EmbeddingReply: ...
    def encode_reply(self, reply: EmbeddingReply, request: EmbeddingRequest) -> Fields: ...


class StreamOptions(Struct, frozen=True, kw_only=True):
    """How to write a stream for one client."""

    usage: bool = True
    """Whether the client wants an event with the usage, where the protocol lets it choose."""
    created: int = 0
    """When the reply began, in seconds since 1970. The core has no clock."""
    clock: Callable[[], int] | None = None
    """The time when the reply ends, where the protocol has it; None: `created` stands for it."""
    settings: Mapping[str, Any] | None = None
    """The client's request, for protocols whose replies repeat its settings."""
    model: str = ""
    """The model of the request, for a provider that does not name the model of its reply."""
    whole_calls: bool = False
    """Whether the client reads each call from one event, and the usage from the last one, as Mistral's SDK does."""
    thinking_parts: bool = False
    """Whether the client reads thinking from parts of the content of a Chat Completions reply."""
    refusals: bool = True
    """Whether the client knows the refusal field of a Chat Completions reply."""


class StreamDecoder(typing.Protocol):
    """Reads the frames of one stream. Its `builder` makes the events."""

    builder: EventBuilder

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = ...) -> None: ...

    def read(self, frame: Frame) -> list[Event]:
        """The events of a frame."""
        ...

    def finish(self) -> list[Event]:
        """The events at the end of the bytes."""
        ...


class StreamEncoder(typing.Protocol):
    """Writes one stream."""

    def __init__(self, options: StreamOptions = ...) -> None: ...

    def write(self, events: Iterable[Event]) -> bytes:
        """The events as bytes for the client."""
        ...

    def ping(self) -> bytes:
        """Bytes that keep the connection alive and that every client ignores; empty if the protocol has none."""
        ...


class ArrayWriter(typing.Protocol):
    """Makes one array of the events of a stream, in a protocol that has both forms."""

    CONTENT_TYPE: str

    def begin(self) -> None:
        """Note that the beginning of the array has been written elsewhere."""
        ...

    def add(self, events: bytes) -> bytes:
        """These whole events as a piece of the array."""
        ...

    def end(self) -> bytes: ...


class FrameFiller(typing.Protocol):
    """Fills what events of a server leave out and clients of the protocol demand."""

    def __init__(self, options: StreamOptions) -> None: ...

    def fill(self, frame: Frame) -> bytes | None:
        """The event with what it leaves out; None: it leaves out nothing."""
        ...


class StreamCodec:
    """Both directions of a protocol's streams: its `stream_reader.py` and `stream_writer.py`.

    A reader must have `framer` and `Decoder`, a writer `Encoder`. The other names are optional.
    """

    def __init__(self, reader: Any, writer: Any) -> None:
        self.framer: Callable[[], Framer] = reader.framer
        self.Decoder: type[StreamDecoder] = reader.Decoder
        self.Encoder: type[StreamEncoder] = writer.Encoder
        self.native_framer: Callable[[], Framer] | None = getattr(reader, "native_framer", None)
        """Frames for a client of the same protocol, where the protocol has more than one form of a stream."""
        self.array_writer: Callable[[], ArrayWriter] | None = getattr(writer, "array_writer", None)
        """Writes a stream as one JSON array, where the protocol has that form."""
        self.host_writer: Callable[[], ArrayWriter] | None = getattr(writer, "host_writer", None)
        """Writes a stream in the frames of a cloud that hosts the protocol, where it has other ones."""
        self.counts_blocks: bool = getattr(reader, "COUNTS_BLOCKS", True)
        """Whether events number the blocks that they belong to."""
        self.closing_events: frozenset[str] = getattr(writer, "CLOSING_EVENTS", frozenset())
        """Events that end a part of a block, before the event that ends the block."""
        self.frame_filler: type[FrameFiller] | None = getattr(writer, "FrameFiller", None)
        """Fills what forwarded events leave out; None: clients demand nothing that servers leave out."""
        self.last_event: bytes = getattr(writer, "LAST_EVENT", b"")
        """What ends every stream, after the event that ends the reply."""


class Codec:
    """The modules of a protocol that read and write its bodies. Streams are imported when there is one."""

    def __init__(self, protocol: Protocol) -> None:
        def load(name: str) -> Any:
            return importlib.import_module(f"{protocol.package}.{name}")

        self.protocol = protocol.name
        self._package = protocol.package
        self._load = load
        self.request: RequestCodec = cast("RequestCodec", load("request"))
        self.reply: ReplyCodec = cast("ReplyCodec", load("reply"))
        self.errors: ErrorCodec = cast("ErrorCodec", load("errors"))

    @cached_property
    def turn_parts(self) -> TurnParts | None:
        """Splits a list of turns into parts that are read alike by themselves; None: not known of the protocol."""
        parts: TurnParts | None = getattr(self.request, "turn_parts", None)
        return parts

    @cached_property
    def write_turns(self) -> Callable[[Iterable[Turn], Profile], list[Fields]] | None:
        """Writes the items of `turns`, where what a turn becomes does not depend on others; None: not known."""
        write: Callable[[Iterable[Turn], Profile], list[Fields]] | None = getattr(self.request, "write_turns", None)
        return write

    @cached_property
    def leniency(self) -> Leniency:
        """How malformed bodies are read; a protocol without the file refuses them."""
        module = self._load_optional("lenient")
        leniency: Leniency = module.LENIENCY if module is not None else Leniency()
        return leniency

    @cached_property
    def fit_reply(self) -> Callable[[Reply, Profile], Reply] | None:
        """Fits a reply to the clients of one host; None: all hosts of the protocol write replies in the same way."""
        module = self._load_optional("host_replies")
        return module.fit_reply if module is not None else None

    @cached_property
    def read_fragment(self) -> Callable[[Fields], Iterable[Block]]:
        """Reads a piece of a reply; a protocol without the file reads whole ones only."""
        module = self._load_optional("fragments")
        if module is None:
            return lambda fields: self.reply.decode(fields).turn.blocks
        read: Callable[[Fields], Iterable[Block]] = module.read_fragment
        return read

    @cached_property
    def embeddings(self) -> EmbeddingCodec | None:
        """Reads and writes embeddings; None: the protocol has none."""
        return cast("EmbeddingCodec | None", self._load_optional("embeddings"))

    @cached_property
    def context(self) -> ContextForm | None:
        """What requests can want to be done to their context; None: the protocol has nothing like that."""
        module = self._load_optional("context")
        form: ContextForm | None = module.CONTEXT if module is not None else None
        return form

    @cached_property
    def search(self) -> SearchCodec:
        """Reads and writes web search; a protocol without the file has none."""
        module = self._load_optional("web_search")
        found: SearchCodec = module.SEARCH if module is not None else SearchCodec()
        return found

    def _load_optional(self, name: str) -> Any:
        return self._load(name) if importlib.util.find_spec(f"{self._package}.{name}") is not None else None

    @cached_property
    def stream(self) -> StreamCodec:
        return StreamCodec(self._load("stream_reader"), self._load("stream_writer"))


# --- the record -------------------------------------------------------------------------------------


class MessageForm(Struct, frozen=True, kw_only=True):
    """How the messages of a request are written: by this one knows a message or part of another protocol."""

    roles: frozenset[str]
    part_types: frozenset[str] = frozenset()
    """The types of the parts of content, where they name it in `type`."""
    part_fields: frozenset[str] = frozenset()
    """The fields that name what a part is, where it has no `type`."""
    part_rank: int = 100
    """A part of a foreign type belongs to the protocol with the lowest number among those that have the type."""
    has_call_list: bool = False
    """Whether messages list calls beside their content."""
    content_is_list: bool = False
    """Whether content is always a list of parts, never a string."""
    content_is_string: bool = False
    """Whether content is always a string, never a list of parts."""
    content_field: str = "content"
    role_names: Mapping[str, str] = {}
    """How a message with parts writes the roles that it does not write as `Turn.role` does."""
    message_type: str = ""
    """The `type` of a message, if it has one."""
    item_types: frozenset[str] = frozenset()
    """The types of what the list of messages holds besides messages."""
    thinking_is_list: bool = False
    """Whether a part of the type `thinking` holds a list of parts, not a string."""
    text_keeps_fields: bool = False
    """Whether texts keep the unknown fields of their parts or messages."""


RequestShape = Literal[
    "block: no type",
    "block: result of the provider",
    "block: unknown type",
    "call: arguments as a string",
    "call: arguments as an object",
    "call: function alone",
    "call: no arguments",
    "content: list",
    "content: null",
    "content: string",
    "document: object",
    "document: source",
    "system message: first",
    "system message: later",
    "system: block",
    "system: string",
    "system: typed block",
    "thinking: list",
    "thinking: plain",
    "thinking: signed",
    "tool: custom",
    "tool: function",
    "tool: input_schema",
    "tool: run by the provider",
]
"""How parts of a request can be written that carry no name of their protocol."""


class RequestMarks(Struct, frozen=True, kw_only=True):
    """What distinguishes a request from those of other protocols (`request_detection`).

    A mark leaves the protocols that list it. One whose turns are in `messages` also lists what it shares with others.
    """

    starts: frozenset[str] = frozenset()
    """Fields of which each marks a body without messages as one of this protocol."""
    fields: frozenset[str] = frozenset()
    message_fields: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    block_types: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    """Tool choices that are strings."""
    choice_types: frozenset[str] = frozenset()
    """Types of tool choices that are objects."""
    shapes: frozenset[RequestShape] = frozenset()
    models: str = ""
    """A regular expression for names of models that only an endpoint of this protocol has."""
    model_needs: str = ""
    """A field without which such a name decides nothing."""
    only_own_models: bool = False
    """Whether only models with such names are served."""
    hub_protocol: str = ""
    """The protocol in which hubs serve these models."""


def words(*lines: str) -> frozenset[str]:
    """The words of some lines."""
    return frozenset(" ".join(lines).split())


class TokenCount(Struct, frozen=True, kw_only=True):
    """How tokens are counted."""

    request: Callable[[Fields, str], Fields] | None = None
    """Makes the body of a count from that of a request and the model; None: no endpoint takes one."""
    envelope: str = ""
    """The field in which a client can send a whole request to be counted."""
    reply_field: str = ""
    """The field of a reply that holds the count; empty: clients of this protocol have no such endpoint."""
    reply_extra: Mapping[str, Any] = {}
    """What a reply has besides."""
    reply_paths: tuple[tuple[str, ...], ...] = ()
    """Where else servers of this protocol write the count."""


class ListedModel(Struct, frozen=True):
    """A model that a client of the gateway can use."""

    name: str
    """What the client sends."""
    upstream: str
    model: str
    """What the upstream gets."""
    simulated: bool = False
    limits: ContextRules = ContextRules()
    """What the model can take and do, as far as that is known."""
    efforts: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    """The thinking modes that a request may set."""
    server_tools: tuple[str, ...] = ()
    """The tools that its provider runs itself."""
    output_forms: tuple[str, ...] = ()
    """The forms of structured output."""
    protocol: str = ""
    """The protocol of its upstream."""

    @property
    def reads_images(self) -> bool:
        return "image" in (self.limits.media or ())

    @property
    def calls_tools(self) -> bool:
        """Whether it can call tools, as far as is known."""
        return self.limits.tools is not False

    @property
    def title(self) -> str:
        """The name for people: also where it leads."""
        destination = f"{self.upstream}/{self.model}"
        title = self.name if destination == self.name else f"{self.name} ({destination})"
        return f"{title} [simulated]" if self.simulated else title


def model_entry(model: ListedModel) -> Fields:
    """A model in OpenAI's form, which most servers use. The creation time is unknown.

    OpenAI's own list has no limits. Agents read those of OpenRouter (`context_length`, `architecture`) and Groq.
    """
    limits = model.limits
    entry: Fields = {"id": model.name, "object": "model", "created": 0, "owned_by": model.upstream}
    if limits.window is not None:
        entry |= {"context_length": limits.window, "context_window": limits.window}
    if limits.output is not None:
        entry["max_completion_tokens"] = limits.output
    if limits.media is not None:
        kinds = ("file" if kind == "document" else kind for kind in limits.media)
        entry["architecture"] = {"input_modalities": ["text", *kinds], "output_modalities": ["text"]}
    if limits.thinking is not None:
        able = [*(("tools", "tool_choice") if model.calls_tools else ()), *(("reasoning",) if limits.thinking else ())]
        entry["supported_parameters"] = able
    return entry


class ModelList(Struct, frozen=True, kw_only=True):
    """How models are listed."""

    path: str | None
    """Under the base address, for GET; None: there is no list under it."""
    name_field: str = "id"
    name_prefix: str = ""
    """What comes before the names in the list and is not a part of them."""
    needs: tuple[str, str] | None = None
    """A field that lists what a model can do, and what it must list for a model to be one for chats."""
    entry: Callable[[ListedModel], Fields] = model_entry
    """One model as clients read it."""
    list_field: str = "data"
    """The field of a list that holds the models."""
    list_extra: Mapping[str, Any] = {}
    """What a list has besides."""
    page: Callable[[list[ListedModel], Mapping[str, str]], Fields] | None = None
    """Makes a page of the list, by the parameters of the query; None: the list has no pages."""
    query: tuple[str, ...] = ()
    """Those parameters."""
    details: Callable[[ListedModel], Fields] | None = None
    """Makes the reply to the action `show`."""


ClientAction = Literal[
    "generate",
    "embed",
    "compact",
    "count",
    "models",
    "model",
    "response",
    "input_items",
    "cancel",
    "conversations",
    "conversation",
    "conversation_items",
    "conversation_item",
    "show",
    "version",
    "telemetry",  # what a client reports of itself to its maker: it is neither forwarded nor kept
]


class ClientRoute(Struct, frozen=True, kw_only=True):
    """Paths that clients of a protocol use, and what they get there."""

    action: ClientAction
    paths: tuple[str, ...]
    is_pattern: bool = False
    """Whether the paths are regular expressions, with the groups `model`, `name` and `part`."""
    stream: bool | None = None
    """Whether the path asks for a stream; None: the request says so."""
    streams_by_default: bool = False
    """Whether a request that does not say so asks for a stream."""
    is_array: bool = False
    """Whether a stream is one JSON array, not events."""
    has_socket: bool = False
    """Whether clients may use it over a WebSocket too, one message for each event."""
    is_hosted: bool = False
    """Whether it is the path of a cloud that hosts the protocol: the model is in the path, and some fields of the body
    are those of `Protocol.host_fields`."""
    error_protocol: str = ""
    """The protocol whose errors, and whose frames of a stream, the client reads; empty: this one."""
    provider_path: str = ""
    """The path at the provider, if it is not the one that the record names for the action."""
    required: Mapping[str, Any] = {}
    """The fields that a body must have, with their JSON Schemas; for the OpenAPI document."""
    optional: Mapping[str, Any] = {}
    """Some of those that it can have."""
    query: tuple[str, ...] = ()
    """The parameters of the query."""


def routes_by_path(
    whole: str,
    stream: str,
    required: Mapping[str, Any],
    *,
    is_array: bool = False,
    is_hosted: bool = False,
    error_protocol: str = "",
) -> tuple[ClientRoute, ClientRoute]:
    """The routes of a request whose path says whether its reply is streamed: the patterns of both paths."""
    route = ClientRoute(
        action="generate",
        paths=(whole,),
        is_pattern=True,
        stream=False,
        is_hosted=is_hosted,
        error_protocol=error_protocol,
        required=required,
    )
    return route, replace(route, paths=(stream,), stream=True, is_array=is_array)


Feature = Literal[
    "arguments_as_text",  # the arguments of a call are a string of JSON
    "cache_control",  # parts can have a cache marker
    "call_signatures",  # calls carry a signature of the thinking before them
    "choice_field",  # the tool choice is a field of its own, apart from the tools
    "custom_tools",  # tools that take free text
    "developer_role",
    "efforts",  # reasoning effort, by name
    "empty_results",  # a result can be an empty string
    "empty_turns",  # a turn can have no content
    "item_ids",  # calls have an id of their item besides that of the call
    "named_results",  # a result can name its tool
    "named_speakers",  # a user message can have a name
    "namespaces",  # tools can be grouped in namespaces
    "null_content",  # the content of a turn with calls can be null, empty or left out
    "parallel_switch",  # parallel calls can be turned off
    "prefill_flags",  # a flag marks a last assistant turn as the beginning of the reply
    "result_error_flag",  # a flag marks a result as failed
    "result_messages",  # results are messages or items of their own, not blocks of a user turn
    "strict_by_default",  # tools are strict unless they say otherwise
    "strict_tools",
    "system_messages",  # the system prompt is a message, not a field
    "text_parts",  # the texts of a turn stay separate parts
    "text_with_calls",  # a turn can have text and calls
    "two_limit_fields",  # max_tokens and max_completion_tokens
]
"""What only some protocols have, where it matters to an endpoint whose demands are unknown (`toolglot.discovery`)."""
BaseUrl = Literal["versioned", "any", "root"]
"""Whether base URLs end with a version (`/v1`), may end with one, or are the root of the host."""


class Protocol(Struct, frozen=True, kw_only=True):
    """What is true of one wire protocol."""

    name: str
    package: str
    """The package that has its files."""
    provider: str
    """The target that it is named after."""
    base_target: str = ""
    """The target from whose profile an unknown endpoint starts, where it is not `provider`."""
    sdk: str = ""
    """The package of the provider's own Python SDK."""
    sdk_example: str = ""
    """A call with it: imports, an empty line, and the call of `body`, which gives `reply`. `<url>`, `<key>` and
    `<model>` are replaced by code, `<stream>` by `_stream` or nothing."""

    # the endpoint
    path: str
    """The path of a request, with `{model}` where it names the model."""
    stream_path: str = ""
    """The path of a request for a stream, where it is another."""
    embeddings_path: str = ""
    """The path of a request for embeddings; empty: there is none."""
    model_folders: tuple[str, ...] = ()
    """Folders that a model's name in a path begins with; the first is that of a name without one."""
    auth: Auth = "bearer"
    """How a key is sent, unless a provider wants it otherwise."""
    headers: Mapping[str, str] = {}
    """Headers that every request needs."""
    host_fields: Mapping[str, str] = {}
    """Fields that only bodies for a cloud that hosts the protocol have, and the header that says the same elsewhere;
    empty: none."""
    forwarded_headers: tuple[str, ...] = ()
    """Headers of a client that mean something to a provider of its own protocol."""
    request_id_header: str = "x-request-id"
    """The header with which a provider names a request."""
    client_request_id_header: str = "x-request-id"
    """The header with which the gateway names it to a client."""
    stream_type: str = EVENTS
    """The content type of a stream."""
    models: ModelList
    counts: TokenCount = TokenCount()

    # its clients
    routes: tuple[ClientRoute, ...] = ()
    """Where clients look for it in the gateway."""
    client_header: str = ""
    """A header that only its clients send."""
    client_prefixes: tuple[str, ...] = ()
    """How paths begin that only its clients know."""
    service_prefix: str = ""
    """How the paths of its provider's other services begin, which the gateway passes on; empty: none are passed on."""
    passed: PassedPaths = PassedPaths()
    """What is known of these services."""
    returned_headers: tuple[str, ...] = ("x-ratelimit-",)
    """How the names of headers begin that a client gets from a provider of its own protocol."""
    reply_id_prefix: str = ""
    """How the ids of replies begin."""
    error_schema: Mapping[str, Any] = {}
    """The JSON Schema of an error, for the OpenAPI document."""
    version: str = ""
    """What the gateway replies to the action `version`."""

    # where things are in a request
    turns: str
    """The field that holds the turns."""
    messages: MessageForm
    tools_path: tuple[str, ...] = ("tools",)
    """Where the definitions of tools are."""
    has_separate_tools: bool = False
    """Whether tools are in the field `tools`, and nothing else of a request depends on them when it is read."""
    shared_fields: frozenset[str] = frozenset()
    """Fields of a request without a canonical form that mean the same in all protocols that list them."""
    has_image_detail: bool = False
    """Whether an image says how closely to look at it."""
    has_schema_description: bool = False
    """Whether the schema of an output format says what it is for."""
    returns_opaque: bool = False
    """Whether clients send back all that a provider must get again: signatures, encrypted reasoning."""
    stored_history: tuple[str, ...] = ()
    """Fields with which a request continues a conversation that only its provider has."""

    stateless_fields: Mapping[str, Any] = {}
    """Fields with which a request asks for reasoning that can be sent back, instead of having it stored."""
    usage_switch: tuple[str, str] | None = None
    """A field of a request, and one within it, that asks for token counts in a stream; None: nobody has to ask."""
    needs_usage: bool = False
    """Whether its clients rely on token counts at the end of every reply, also of a provider of the same protocol."""
    stored_item: Callable[[Fields], str | None] | None = None
    """Finds a part of a request that only names what its provider has stored, as a path within the body."""
    shortening_fields: Mapping[str, Any] = {}
    """Fields with which a request has its provider shorten a conversation that is too long, and the value of each that
    turns it off."""
    limit_path: tuple[str, ...] = ("max_tokens",)
    """Where the limit of the reply's tokens is."""

    # for endpoints whose demands are unknown
    base_url: BaseUrl = "root"
    features: frozenset[Feature] = frozenset()
    inexpressible: Mapping[str, tuple[str, ...]] = {}
    """Values of profile rules that a request of this protocol cannot express, such as tool choices."""
    tool_style: Literal["openai", "anthropic", "custom"] = "custom"
    """Whose form the definitions of tools have."""

    # how requests and replies are recognised
    request_marks: RequestMarks = RequestMarks()
    """By default a request is never taken for one of this protocol unless its sender says so."""
    reply_marks: Mapping[str, type]
    """Fields, with their types, of which any marks a reply as one of this protocol."""
    is_fragment: Callable[[Fields], bool] | None = None
    """Whether an object seems to be a piece of a reply or an event of a stream; None: that cannot be decided."""
    reply_rank: int = 100
    """Protocols with a lower number are looked for first: their marks say more."""

    @property
    def codec(self) -> Codec:
        return codec(self.name)

    def request_with_tools(self, tools: list[Any]) -> Fields:
        """A minimal request with these definitions of tools."""
        form = self.messages
        message = {"role": "user", form.content_field: [{"text": "?"}] if form.content_is_list else "?"}
        holder: Any = tools
        for field in reversed(self.tools_path):
            holder = {field: holder}
        return {self.turns: [message], **holder}

    def tools_in(self, body: Fields) -> list[Fields]:
        """The definitions of tools in a request."""
        found: Any = body
        for field in self.tools_path:
            found = found.get(field) or {}
        return found or []


# --- the registry -----------------------------------------------------------------------------------

_FORMS: Final = "form"
"""The file of a protocol that has its forms. One that has none to remember needs no such file."""

_packages: dict[str, str] = {name: f"{__package__}.{name}" for name in PROTOCOLS}
_names: tuple[str, ...] = tuple(_packages)


def names() -> tuple[str, ...]:
    """The names of all protocols, those of toolglot first. The same tuple until one more is registered."""
    return _names


@cache
def get(name: str) -> Protocol:
    """The record of a protocol."""
    package = _packages.get(name)
    if package is None:
        close = difflib.get_close_matches(name, _packages, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "one of " + ", ".join(_packages)
        raise InputError(f"unknown protocol {quote(name)}", path="protocol", hint=hint)
    record: Protocol = importlib.import_module(f"{package}.endpoint").PROTOCOL
    return record


@cache
def codec(protocol: str) -> Codec:
    """The codec of a protocol that a profile names."""
    return Codec(get(protocol))


def records() -> tuple[Protocol, ...]:
    """The records of all protocols; this imports the `endpoint.py` of each."""
    return tuple(get(name) for name in _packages)


def family(protocol: Protocol) -> tuple[Protocol, ...]:
    """The protocols of one provider, as one SDK speaks them; a protocol without an SDK is alone."""
    return tuple(record for record in records() if record == protocol or (record.sdk and record.sdk == protocol.sdk))


def register(package: str) -> Protocol:
    """Add the protocol of a package that has the same files as those of toolglot.

    Its `endpoint.py` has the record as `PROTOCOL`. A name that another package has is refused.
    """
    global _names  # noqa: PLW0603 - the registry is one for the process
    path = f"{package}.endpoint"
    try:
        record = getattr(importlib.import_module(path), "PROTOCOL", None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise  # the package is there, and what it imports is not
        files = ", ".join(f"{module}.py" for module in _CODECS)
        hint = f"a protocol is a package with endpoint.py, {files}"
        raise InputError(f"there is no module {quote(error.name)}", path=path, hint=hint) from None
    if not isinstance(record, Protocol):
        raise InputError(f"expected a Protocol, got {quote(record)}", path=f"{path}.PROTOCOL")
    if _packages.get(record.name, package) != package:
        raise InputError(
            f"the protocol {quote(record.name)} is that of {_packages[record.name]}",
            path=f"{package}.endpoint.PROTOCOL.name",
            hint="choose another name",
        )
    _check_codecs(package)
    if record.name not in PROTOCOLS:
        PROTOCOLS.append(record.name)
    _packages[record.name] = package
    _names = tuple(_packages)
    forms.set_loader(_FORM_LOADER)
    return record


_CODECS: Final = {
    "request": ("decode", "encode"),
    "reply": ("decode", "encode"),
    "stream_reader": ("framer", "Decoder"),
    "stream_writer": ("Encoder",),
    "errors": ("decode", "encode", "headers_of"),
}
"""The modules of a protocol, with the names that each must have."""


def _check_codecs(package: str) -> None:
    """Refuse a package that lacks a codec."""
    for module, wanted in _CODECS.items():
        path = f"{package}.{module}"
        if importlib.util.find_spec(path) is None:
            raise InputError("there is no such module", path=path, hint=f"it must have {', '.join(wanted)}")
        found = importlib.import_module(path)
        for name in wanted:
            if not hasattr(found, name):
                raise InputError(f"it has no {name}", path=path, hint=f"it must have {', '.join(wanted)}")


def _load_forms(protocol: str) -> FormLibrary:
    """The structs of a protocol's `form.py`."""
    package = _packages.get(protocol)
    if package is None or importlib.util.find_spec(f"{package}.{_FORMS}") is None:
        return FormLibrary({})
    module = importlib.import_module(f"{package}.{_FORMS}")
    found = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, FormStruct)]
    types = {str(kind.__struct_config__.tag): kind for kind in found}
    types = {tag: kind for tag, kind in types.items() if tag.startswith(f"{protocol}.")}
    return FormLibrary(types, getattr(module, "CACHE_MARKING", None), getattr(module, "from_notes", None))


_FORM_LOADER: Final = FormLoader(_load_forms, names)
forms.set_loader(_FORM_LOADER)
