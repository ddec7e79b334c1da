"""The tools of one request as the target sees them, and how to restore the client's tools in the calls of the model.

Law: whatever a render changed about a tool (its name, its namespace, its free text, its schema) can be undone
in the call that comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.arguments import Mismatch, Validator
from toolglot.conversation import FREE_TEXT, ToolCall, ToolSpec
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.schema import NameMap, without_introduced_nulls

REMEMBERED_NAMES = 512
REMEMBERED_CHARACTERS = 32_768

Key = tuple[str | None, str]
"""A tool's namespace and name."""
_NAMESPACE: Final = itemgetter(0)
REMEMBERED_BYTES: Final = 16 * 1024
"""The maximal size of a schema whose validator is cached."""


class EmittedTool(Struct, frozen=True):
    """A tool as it was declared, and as the target sees it."""

    original: ToolSpec
    emitted: ToolSpec
    filtered: bytes | None = None
    """The original schema as JSON, without the required names that were filtered; None if the tool has none."""


class ToolTable:
    """The names of a request's tools, both ways."""

    def __init__(
        self, profile: Profile, tools: Sequence[EmittedTool | ToolSpec], used: Iterable[Key], *, is_plain: bool = False
    ) -> None:
        """Plain `ToolSpec`s in `tools` are sent unchanged; `is_plain`: all names are known to be sent unchanged too."""
        self._profile = profile
        self._wraps_free_text = not profile.tools.custom
        self._has_namespaces = profile.tools.namespaces
        self._validators: dict[str, Validator | None] = {}
        self._declared = tools
        self._used = used
        self.is_plain: bool = is_plain or not (self.names.renamed or any(map(_NAMESPACE, self._names_by_key)))
        """Whether every name is the client's."""

    @cached_property
    def _own_tools(self) -> list[EmittedTool]:
        """The tools that the client runs."""
        declared = [EmittedTool(tool, tool) if isinstance(tool, ToolSpec) else tool for tool in self._declared]
        return [tool for tool in declared if tool.emitted.issuer is None]

    @cached_property
    def _names_by_key(self) -> dict[Key, str]:
        keys = [(tool.original.namespace, tool.original.name) for tool in self._own_tools]
        keys += self._used
        return _flat_names(keys, self._profile)

    @cached_property
    def names(self) -> NameMap:
        return _name_map(self._profile, tuple(self._names_by_key.values()))

    @property
    def flattened_namespaces(self) -> list[str]:
        """The namespaces that became part of names."""
        if self._has_namespaces:
            return []
        return list(dict.fromkeys([namespace for namespace, _ in self._names_by_key if namespace]))

    @property
    def keys(self) -> Iterable[Key]:
        """The tools that have a name here, declared or called."""
        return self._names_by_key

    @cached_property
    def _tools(self) -> dict[str, EmittedTool]:
        """The tools by the names that the model knows."""
        return {self.emitted_name(key): tool for key, tool in self._by_key.items()}

    @cached_property
    def _by_key(self) -> dict[Key, EmittedTool]:
        return {(tool.original.namespace, tool.original.name): tool for tool in self._own_tools}

    @cached_property
    def _keys(self) -> dict[Key, Key]:
        """The client's names by those that the target knows; a model may call a tool that only the history calls."""
        if self._has_namespaces:
            return {(key[0], self.emitted_name(key)): key for key in self._names_by_key}
        return {(None, self.emitted_name(key)): key for key in self._names_by_key}

    def emitted_name(self, key: Key) -> str:
        flat = self._names_by_key.get(key)
        return self.names[flat] if flat is not None else key[1]

    def chosen_name(self, name: str) -> str:
        """The name of a tool in a tool choice, which has no namespaces."""
        key = next((key for key in self._names_by_key if key[1] == name), (None, name))
        return self.emitted_name(key)

    def of(self, emitted: str) -> EmittedTool | None:
        """The declared tool that the model means by a name."""
        return self._tools.get(emitted)

    def emitted_call(self, call: ToolCall) -> ToolCall:
        """A call of the history as the target must see it, except for its id."""
        if self.is_plain and call.type == "function":
            return call
        if call.type not in ("function", "custom") and not self._knows_type(call):
            call = replace(call, type="function")
        name = self.emitted_name((call.namespace, call.name))
        namespace = call.namespace if self._has_namespaces else None
        if call.type == "custom" and self._wraps_free_text:
            arguments = {FREE_TEXT: call.raw_input or ""}
            return replace(call, name=name, namespace=namespace, type="function", arguments=arguments, raw_input=None)
        if name == call.name and namespace == call.namespace:
            return call
        return replace(call, name=name, namespace=namespace)

    def _knows_type(self, call: ToolCall) -> bool:
        """Whether the target has calls of this type: the call is of its protocol, or such a tool is declared to it."""
        if call.form is not None:
            return call.form.protocol == self._profile.protocol
        return any(tool.emitted.type == call.type for tool in self._declared if isinstance(tool, EmittedTool))

    def original_call(self, call: ToolCall) -> ToolCall:
        """A call that the model made, as the client knows its tool."""
        key = self._tool_key(call)
        tool = self._by_key.get(key)
        if tool is None:
            return call if key[1] == call.name else replace(call, name=key[1], namespace=key[0])
        original = tool.original
        namespace = original.namespace or call.namespace
        if call.name != original.name or call.namespace != namespace:
            call = replace(call, name=original.name, namespace=namespace)
        if original.type == "custom" and tool.emitted.type != "custom":
            return replace(call, type="custom", arguments=None, raw_input=_free_text(call))
        if original.type != tool.emitted.type:
            call = replace(call, type=original.type, raw_input=None if call.arguments is not None else call.raw_input)
        if tool.emitted.strict and original.parameters is not None and call.arguments:
            kept = without_introduced_nulls(call.arguments, original.parameters)
            if kept != call.arguments:
                return replace(call, arguments=kept, raw_input=None)
        return call

    def _tool_key(self, call: ToolCall) -> Key:
        """The tool of a call. If the target has namespaces, tools may share a name and differ only in the namespace."""
        meant = self._keys.get((call.namespace if self._has_namespaces else None, call.name))
        if meant is None and call.name in self._tools:
            original = self._tools[call.name].original
            meant = (original.namespace, original.name)
        return meant or (call.namespace, call.name)

    def is_rewritten(self, emitted: str) -> bool:
        """Whether `original_call` may change more of a call of this name than the name itself."""
        tool = self._tools.get(emitted)
        if tool is None:
            return False
        return tool.original.type != tool.emitted.type or bool(tool.emitted.strict)

    def mismatches(self, call: ToolCall) -> tuple[Mismatch, ...]:
        """How the arguments of a call, as the client sees it, differ from the schema of its tool."""
        name = call.name if self.is_plain else self.emitted_name((call.namespace, call.name))
        if call.arguments is None or name not in self._tools:
            return ()
        try:
            validator = self._validators[name]
        except KeyError:
            validator = self._validators[name] = self._validator(self._tools[name])
        try:
            return validator.mismatches(call.arguments) if validator is not None else ()
        except InputError:
            return ()  # the arguments are too large to be checked; that is left to the client

    def _validator(self, tool: EmittedTool) -> Validator | None:
        if tool.filtered is None and tool.original.parameters is None:
            return None
        try:
            written = tool.filtered or msgspec.json.encode(tool.original.parameters)
            is_small = len(written) <= REMEMBERED_BYTES
            return _validator_of(written) if is_small else Validator(msgspec.json.decode(written))
        except (InputError, TypeError, ValueError, RecursionError):
            return None  # without a usable schema arguments are not checked


@lru_cache(maxsize=512)
def _validator_of(schema: bytes) -> Validator:
    """Cached, since a client sends the same tools with every request."""
    return Validator(msgspec.json.decode(schema))


def _free_text(call: ToolCall) -> str:
    """The text in the one parameter; everything that the model wrote if it did not use the parameter."""
    if call.arguments is not None:
        text = call.arguments.get(FREE_TEXT)
        if isinstance(text, str):
            return text
    return call.raw_input or ""


def _name_map(profile: Profile, names: tuple[str, ...]) -> NameMap:
    """The names, cached unless there are too many: an agent sends the same tools with every request."""
    if len(names) > REMEMBERED_NAMES or sum(map(len, names)) > REMEMBERED_CHARACTERS:
        return NameMap(profile, names)
    return _remembered_map(profile, names)


@lru_cache(maxsize=128)
def _remembered_map(profile: Profile, names: tuple[str, ...]) -> NameMap:
    return NameMap(profile, names)


def _flat_names(keys: Iterable[Key], profile: Profile) -> dict[Key, str]:
    """One name for each tool; a namespace becomes a prefix if the target has no namespaces (E8)."""
    plain = {key: key[1] for key in keys}
    if profile.tools.namespaces or not any(map(_NAMESPACE, plain)):
        return plain
    taken = {name for namespace, name in plain if not namespace}
    flat: dict[Key, str] = {}
    for namespace, name in plain:
        joined = f"{namespace}__{name}" if namespace else name
        while namespace and joined in taken:
            joined += "_"
        taken.add(joined)
        flat[(namespace, name)] = joined
    return flat
