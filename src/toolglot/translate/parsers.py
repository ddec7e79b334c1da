"""Parsers: the tool calls in a provider's reply, by provider.

    calls = get_parser("anthropic").parse(body)      # a reply, a message, blocks, or a single call
    calls = [validate_tool_call(call, provider="anthropic") for call in calls]

Every target has a parser; `register_parser` adds or replaces one. The shapes are read by the codecs of `protocols`,
so a call says the same here as in a conversation. xAI's and DeepSeek's also read the calls that their models write as
text, in their dialects.

Law: read, never guessed. What is not a reply of the provider is an error, a reply without calls is an empty list.
A call without an id gets one that depends only on the reply.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final, Protocol

from msgspec.structs import replace

from toolglot import arguments, dialects, jsontext, profiles
from toolglot.conversation import Block, Issuer, Opaque, Text, ToolCall, ToolMetadata, Turn, ids
from toolglot.conversation.events import BlockEnded
from toolglot.errors import InputError, JSONError, TruncatedJSONError, quote, unknown_name
from toolglot.history.turn_keys import TurnKeys
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.profiles.target_names import normalize_name
from toolglot.protocols.base import codec
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.fields.reading import each, inside, unknown_fragment

TextReader = Callable[[str], Iterable[ToolCall]]
"""Reads the calls that a model wrote into its text."""


class ToolParser(Protocol):
    """Reads the calls of a provider's reply. Your own class needs no base class."""

    @property
    def format(self) -> str:
        """How the calls are written: `json`, `xml` or `custom`."""

    @property
    def provider_id(self) -> str:
        """The provider whose replies it reads."""

    def parse(self, response: Any) -> list[ToolCall]:
        """The calls in a reply, in order."""


class ReplyParser:
    """The parser of a target, by its protocol.

    It reads a whole reply, a message, a list of content blocks or calls, or a single call, as text, bytes or
    parsed JSON. With `read_text` it also reads calls from text: from a reply that is not JSON, and from the text of
    one that has no calls of its own.

    provider_id: the target whose replies it reads.
    format: how calls are written: `json`, `xml` or `custom`.
    read_text: reads calls that are written as text.
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """

    def __init__(
        self,
        provider_id: str,
        *,
        format: str = "json",
        read_text: TextReader | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        profile = profiles.get(provider_id, path="provider_id")
        self._provider = profile.name
        self._protocol = profile.protocol
        self._format = format
        self._read_text = read_text
        self._limits = limits

    @property
    def format(self) -> str:
        return self._format

    @property
    def provider_id(self) -> str:
        """The target's own name: `gemini` for `google`."""
        return self._provider

    def __repr__(self) -> str:
        return f"<ReplyParser of {self._provider}: {self._format}>"

    def parse(self, response: str | bytes | dict[str, Any] | list[Any]) -> list[ToolCall]:
        """The calls in a reply, in order. A reply that is an error raises `ProviderError`."""
        value, problem = self._value(response)
        if isinstance(value, str):
            found = [*self._from_text(value)]
            if not found and isinstance(problem, TruncatedJSONError) and value.lstrip()[:1] in ("{", "["):
                raise problem  # a reply that was cut off is not one without calls
            return self._identified(found)
        if isinstance(value, dict):
            failure = codec(self._protocol).errors.decode(200, value)
            if failure is not None:
                raise ProviderError(failure)
        blocks = self._blocks(value)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        if not calls and self._read_text is not None:
            calls = [*self._from_text("".join(block.text for block in blocks if isinstance(block, Text)))]
        return self._identified(calls, blocks)

    def _value(self, response: object) -> tuple[dict[str, Any] | list[Any] | str, InputError | None]:
        """The reply as JSON; or its text, if this parser reads text, and why it is not JSON."""
        if isinstance(response, dict | list):
            value: Any = jsontext.clone(response, limits=self._limits).value
            return value, None
        if not isinstance(response, str | bytes):
            raise InputError(f"expected text, bytes, an object or an array, got {quote(response)}")
        problem: InputError
        try:
            value = jsontext.parse(response, limits=self._limits).value
        except JSONError as error:
            problem = error
        else:
            if isinstance(value, dict | list):
                return value, None
            problem = InputError(f"expected a JSON object or array, got {quote(value)}")
        if self._read_text is not None:
            return (response if isinstance(response, str) else jsontext.decode(response)), problem
        if not isinstance(problem, TruncatedJSONError):
            problem.hint = "this parser reads JSON; for calls in text use ReplyParser(…, read_text=…)"
        raise problem

    def _from_text(self, text: str) -> Iterable[ToolCall]:
        return self._read_text(text) if self._read_text is not None and text else ()

    def _blocks(self, value: dict[str, Any] | list[Any]) -> list[Block]:
        read = codec(self._protocol).read_fragment
        try:
            found = [read(value)] if isinstance(value, dict) else each(value, read, "")
        except InputError as error:
            raise inside(error, "$") from None
        blocks = [block for blocks in found for block in blocks]
        if len(blocks) == 1 and isinstance(blocks[0], Opaque) and blocks[0].value is value:
            raise unknown_fragment(f"a reply, a message, blocks or a call of {self._provider}", "$")
        return blocks

    def _identified(self, calls: list[ToolCall], blocks: Iterable[Block] | None = None) -> list[ToolCall]:
        """The calls, each with an id. A new id depends on the whole reply."""
        if all(call.id.strip() for call in calls):
            return calls
        key = TurnKeys().new(Turn("assistant", tuple(calls if blocks is None else blocks)))
        return [with_id(call, self._provider, key, index) for index, call in enumerate(calls)]


def with_id(call: ToolCall, provider: str, turn_key: str, index: int) -> ToolCall:
    """The call; if it has no id, with a canonical one, and with metadata that say that it had none."""
    if call.id.strip():
        return call
    provider = _key(provider)
    metadata = call.metadata or ToolMetadata(issuer=Issuer(provider))
    return replace(call, id=ids.mint(provider, None, call.name, turn_key, index), metadata=metadata)


# --- the registry -----------------------------------------------------------------------------------

_registered: Final[dict[str, ToolParser]] = {}
"""Parsers that were registered, by resolved name. Single reads and writes of a dictionary need no lock."""


def get_parser(provider_id: str) -> ToolParser:
    """The parser of a provider, under any spelling of its name; or of a format that `detect_format` returns.

    An unknown name raises `UnknownNameError` with the closest names.

    provider_id: a provider, a protocol, or a format.
    """
    name = _key(provider_id)
    parser = _registered.get(name)
    if parser is not None:
        return parser
    name = _FORMATS.get(name, name)
    builtin = profiles.names()
    if name not in builtin:
        raise unknown_name("provider", provider_id, {*builtin, *_registered}, path="provider_id")
    return _builtin(name, profiles.get_capabilities(name).format)


def register_parser(provider_id: str, parser: ToolParser | None) -> None:
    """Add a parser, or replace one. None restores the built-in one.

    `provider_id` may be a new name, which is known to `get_parser` from then on.
    """
    name = _key(provider_id)
    if parser is None:
        _registered.pop(name, None)
        return
    if isinstance(parser, type) or not callable(getattr(parser, "parse", None)):
        hint = "pass an object with parse(response), format and provider_id"
        raise InputError(f"expected a parser, got {quote(parser)}", path="parser", hint=hint)
    for name_of in ("format", "provider_id"):
        if not isinstance(getattr(parser, name_of, None), str):
            raise InputError(f"expected a parser whose {name_of} is a string", path=f"parser.{name_of}")
    _registered[name] = parser


def _key(provider_id: object) -> str:
    if not isinstance(provider_id, str) or not provider_id.strip() or len(provider_id) > profiles.MAX_NAME:
        raise InputError(f"expected the name of a provider, got {quote(provider_id)}", path="provider_id")
    resolved = profiles.resolve(provider_id)
    return resolved if resolved in profiles.names() else normalize_name(resolved)


@functools.lru_cache(maxsize=256)
def _builtin(name: str, format: str) -> ReplyParser:
    in_order = _TEXTS.get(name)
    read_text = functools.partial(_read_dialects, in_order) if in_order is not None else None
    return ReplyParser(name, format=format, read_text=read_text)


# --- calls in text ----------------------------------------------------------------------------------

_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "xai": ("xai", "xai_tool_call"),
    "deepseek": ("deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4", "tool_xml", "bash_tag"),
}
"""The dialects that the models of a provider write: each reads what those before it left."""

_FORMATS: Final = {"xml": "deepseek"}
"""Formats that are not the name of a provider."""


def _read_dialects(in_order: tuple[str, ...], text: str) -> list[ToolCall]:
    """The calls in a text, in order. Their ids depend on the text alone."""
    key = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    blocks: list[Block] = [Text(text)]
    for dialect in in_order:
        blocks = [
            found
            for position, block in enumerate(blocks)
            for found in (
                _read_dialect(block.text, dialect, f"{key}|{position}") if isinstance(block, Text) else (block,)
            )
        ]
    return [block for block in blocks if isinstance(block, ToolCall)]


def _read_dialect(text: str, dialect: str, key: str) -> list[Block]:
    """The blocks of a text in a dialect. What was cut off is not a call."""
    stream = dialects.TextToolStream(dialect=dialect, ids=f"{key}|{dialect}")
    ended = [event for event in (*stream.feed(text), *stream.finish()) if isinstance(event, BlockEnded)]
    blocks = [event.block for event in ended if not event.cut]
    if dialect != "bash_tag":
        return blocks
    return [replace(block, type="bash") if isinstance(block, ToolCall) else block for block in blocks]


# --- validation -------------------------------------------------------------------------------------


def validate_tool_call(
    call: ToolCall, *, provider: str = "unknown", index: int | None = None, turn_key: str = "", strict: bool = False
) -> ToolCall:
    r"""The call as it may be executed. The call that is passed in is not modified.

    It has a name, an id, and an object of arguments, read from `raw_input` (JSON, otherwise XML) if there was
    none. Control characters are removed, with `strict` also `\r`. The free text of a custom tool stays as it is.

    call: the call to check.
    provider: who made it. If it has no id, one is derived from this.
    index: its index in the reply.
    turn_key: the key of its turn. Without a key and an index, the id is derived from the content of the call.
    """
    if not isinstance(call, ToolCall):
        raise InputError(f"expected a ToolCall, got {quote(call)}", path="call")
    for field in ("name", "id"):
        if not isinstance(getattr(call, field), str):
            raise InputError(f"expected a string, got {quote(getattr(call, field))}", path=f"call.{field}")
    if not call.name.strip():
        raise InputError("tool call missing name", path="call.name")
    if call.type == "custom" and call.arguments is None:
        return _with_derived_id(call, provider, turn_key, index)
    written = call.raw_input if call.arguments is None else call.arguments
    read = arguments.parse(written, xml=True, path="call.arguments").arguments
    clean = arguments.sanitise(read, strict=strict)
    if clean is not call.arguments:
        call = replace(call, arguments=clean, raw_input=call.raw_input if clean is read else None)
    return _with_derived_id(call, provider, turn_key, index)


def _with_derived_id(call: ToolCall, provider: str, turn_key: str, index: int | None) -> ToolCall:
    """The call with an id. If a key or an index is missing, the id is derived from the content of the call."""
    if call.id.strip() or (turn_key and index is not None):
        return with_id(call, provider, turn_key, index or 0)
    content = str(call.raw_input) if call.arguments is None else call.arguments
    identity = json.dumps([call.namespace, call.name, call.type, content], sort_keys=True)
    return with_id(call, provider, f"{turn_key}#{sha256(identity.encode()).hexdigest()}", index or 0)
