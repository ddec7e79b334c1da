"""Discoveries of simulated endpoints, in this process: the real providers, and variants with quirks planted in them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot import profiles
from toolglot.discovery import Discovery, DiscoveryResult, Endpoint
from toolglot.profiles import Overrides, Profile
from toolglot.simulator import Simulator, url_of
from toolglot.upstream import AsgiTransport

KEY = "key-0123456789-of-the-test"


async def no_sleep(_: float) -> None:
    """No test waits."""


def found_out(simulator: Any, provider: str, **options: Any) -> DiscoveryResult:
    """What is found out of a simulated provider."""

    async def run() -> DiscoveryResult:
        transport = AsgiTransport(simulator)
        try:
            endpoint = Endpoint(url=url_of("http://simulated.test", provider), transport=transport, key=KEY)
            return await Discovery(endpoint, sleep=no_sleep, **options).run()
        finally:
            await transport.close()

    return asyncio.run(run())


class Variant(Struct, frozen=True, kw_only=True):
    """A provider that is other than it is known to be."""

    name: str
    provider: str
    planted: Mapping[str, Any]
    """Entries of its profile."""
    protocol: str = "openai_chat"
    target: str = ""
    model: str = "m"
    rules: tuple[dict[str, Any], ...] = ()
    """What its script says."""
    quirks: tuple[str, ...] = ()
    """Words of the quirks that its script makes, which are no entries of a profile."""
    beside: Mapping[str, Any] = {}
    """Entries that are needed for the others to be seen."""

    @property
    def profile(self) -> str:
        return self.target or self.provider

    @property
    def overrides(self) -> Overrides:
        rules = "\n".join(f'"{key}" = {toml(value)}' for key, value in {**self.beside, **self.planted}.items())
        return Overrides(f"[profiles.{self.profile}.rules]\n{rules}\n", origin=self.name)

    @property
    def real(self) -> Profile:
        """What it is."""
        return profiles.get(self.profile, self.model, overrides=self.overrides)

    @property
    def known(self) -> Profile:
        """What it would be without what was planted."""
        rules = "\n".join(f'"{key}" = {toml(value)}' for key, value in self.beside.items())
        before = Overrides(f"[profiles.{self.profile}.rules]\n{rules}\n")
        return profiles.get(self.profile, self.model, overrides=before)

    def simulator(self) -> Simulator:
        return Simulator({"rules": list(self.rules)}, overrides=self.overrides)

    def found_out(self, **options: Any) -> DiscoveryResult:
        arguments = {"protocol": self.protocol, "model": self.model, "name": "box", **options}
        return found_out(self.simulator(), self.provider, **arguments)


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return str(value) if isinstance(value, int) else f"'{value}'"


VARIANTS = (
    Variant(
        name="a host that is strict about ids and turns",
        provider="groq",
        planted={
            "ids.max_length": 24,
            "ids.pattern": "[A-Za-z0-9_]+",
            "names.max_length": 32,
            "tools.max_count": 20,
            "results.user_after": False,
            "turns.alternate": True,
            "calls.with_text": False,
            "schema.refused": ["pattern", "default", "oneOf", "$ref", "$defs", "definitions"],
            "schema.refs": False,
            "choice.modes": ["auto"],
            "results.name": "required",
        },
    ),
    Variant(
        name="a host that knows little of JSON Schema",
        provider="openai",
        planted={
            "schema.refused": ["const", "examples", "additionalProperties", "not", "$schema"],
            "schema.refs": False,
            "schema.type_lists": False,
            "schema.union_with_type": False,
            "schema.type_required": True,
            "schema.nullable": True,
            "schema.enum_types": "string",
            "schema.formats": ["date-time", "email"],
            "schema.required_defined": True,
            "schema.tuple_items": "prefixItems",
        },
    ),
    Variant(
        name="a host with old habits of requests",
        provider="openai",
        planted={
            "request.max_tokens_required": True,
            "request.min_max_tokens": 7,
            "request.sampling": ["temperature", "stop"],
            "request.output": ["json"],
            "request.output_with_tools": False,
            "choice.parallel_switch": False,
            "tools.strict": "omit",
            "tools.custom": False,
            "turns.developer_role": False,
            "turns.name_field": False,
        },
    ),
    Variant(
        name="a host that thinks, and wants it back",
        provider="xai",
        planted={
            "reasoning.carrier": "reasoning_content",
            "reasoning.placeholder_on": "calls",
            "calls.empty_content": "empty",
            "calls.parallel": False,
            "ids.unique_in": "turn",
            "turns.system_many": False,
            "turns.empty_text": False,
            "turns.media": [],
            "names.pattern": "[a-zA-Z0-9_.-]+",
            "tools.parameters_required": True,
        },
        beside={"reasoning.default": "on", "reasoning.foreign": "text", "reasoning.placeholder": " "},
    ),
    Variant(
        name="a careless server that streams badly",
        provider="vllm",
        planted={
            "stream.index": "zero",
            "turns.system_many": True,
            "schema.root_union": False,
            "turns.alternate": False,
            "turns.first": "user",
            "turns.system_inside": "anywhere",
            "results.empty": False,
            "results.media": [],
            "names.max_length": 50,
            "tools.allow_empty_list": False,
        },
        rules=({"when": {"stream": True}, "reply": {"calls": 2, "stop": "stop"}, "fault": "index_zero"},),
        quirks=("all streamed calls have the same index", "ends with finish_reason stop"),
    ),
    Variant(
        name="a server whose model writes its calls as text",
        provider="llamacpp",
        planted={
            "ids.max_length": 40,
            "ids.pattern": "[A-Za-z0-9_-]+",
            "results.call_order": True,
            "results.user_after": False,
            "schema.refs": False,
            "schema.refused": ["$ref", "$defs", "definitions"],
            "tools.description_required": True,
            "tools.required_with_history": True,
            "schema.items_required": True,
        },
        rules=({"when": {"stream": False}, "fault": "text_dialect,dialect=hermes"},),
        quirks=("in the dialect hermes",),
    ),
    Variant(
        name="an Anthropic that is not one",
        provider="anthropic",
        protocol="anthropic",
        model="claude-opus-5",
        planted={
            "ids.max_length": 40,
            "ids.unique_in": "turn",
            "names.max_length": 64,
            "results.alone": True,
            "results.together": False,
            "results.empty_error": True,
            "results.media": [],
            "turns.empty_text": True,
            "request.cache_markers": False,
            "tools.strict": "omit",
        },
    ),
    Variant(
        name="a third-party Responses API",
        provider="openai",
        protocol="openai_responses",
        target="openai_responses",
        model="gpt-4.1",
        planted={
            "ids.pattern": "[A-Za-z0-9_-]+",
            "ids.item_id_prefix": "",
            "tools.custom": False,
            "tools.namespaces": False,
            "tools.max_count": 64,
            "choice.modes": ["auto", "none"],
            "request.min_max_tokens": 1,
            "results.media": [],
            "results.adjacent": True,
            "turns.system_inside": "first_only",
        },
    ),
    Variant(
        name="a Gemini that takes less",
        provider="gemini",
        protocol="gemini",
        model="gemini-2.5-pro",
        planted={
            "names.max_length": 63,
            "names.pattern": "[A-Za-z_][A-Za-z0-9_]*",
            "choice.modes": ["auto", "none", "required"],
            "schema.type_lists": True,
            "schema.enum_types": "any",
            "results.alone": True,
            "turns.empty_text": False,
            "request.sampling": ["temperature", "top_p"],
            "schema.required_defined": False,
            "turns.media": [],
        },
    ),
    Variant(
        name="an Ollama with manners",
        provider="ollama",
        protocol="ollama",
        model="qwen3",
        planted={
            "names.max_length": 64,
            "names.pattern": "[A-Za-z0-9_-]+",
            "turns.alternate": True,
            "turns.first": "user",
            "turns.system_inside": "first_only",
            "turns.system_many": False,
            "results.user_after": False,
            "results.empty": False,
            "tools.allow_empty_list": False,
            "turns.media": [],
        },
    ),
)

ODDITIES: Final[dict[str, tuple[Any, ...]]] = {
    "ids.max_length": (9, 12, 24, 64, 100, 300),
    "ids.pattern": ("[A-Za-z0-9]+", "[A-Za-z0-9_]+", "[!-~]+", "\\S+", "[A-Za-z0-9_.:-]+"),
    "ids.unique_in": ("turn", "conversation"),
    "ids.required": (True, False),
    "names.pattern": ("[A-Za-z_][A-Za-z0-9_]*", "[A-Za-z0-9_-]+", "\\S+", "[A-Za-z][A-Za-z0-9_.-]*"),
    "names.max_length": (20, 32, 64, 100, 300),
    "names.unique": (True, False),
    "tools.max_count": (5, 16, 20, 128, 200),
    "tools.allow_empty_list": (True, False),
    "tools.required_with_history": (True, False),
    "tools.parameters_required": (True, False),
    "tools.omit_empty_parameters": (True, False),
    "tools.description_required": (True, False),
    "tools.empty_description": (True, False),
    "tools.strict": ("omit", "optional"),
    "tools.custom": (True, False),
    "choice.modes": (
        ["auto"],
        ["auto", "none"],
        ["auto", "none", "required"],
        ["auto", "none", "required", "named"],
        ["auto", "none", "required", "named", "allowed"],
    ),
    "choice.needs_tools": (True, False),
    "choice.parallel_switch": (True, False),
    "calls.arguments_object_only": (True, False),
    "calls.parallel": (True, False),
    "calls.with_text": (True, False),
    "calls.empty_content": ("null", "empty"),
    "calls.after": ("any", "user_or_result"),
    "results.complete": (True, False),
    "results.paired": (True, False),
    "results.single": (True, False),
    "results.adjacent": (True, False),
    "results.call_order": (True, False),
    "results.name": ("required", "optional", "refused"),
    "results.media": ([], ["image"]),
    "results.empty": (True, False),
    "results.user_after": (True, False),
    "turns.first": ("any", "user"),
    "turns.last": ("any", "user_or_result"),
    "turns.prefill": ("no", "yes", "flag"),
    "turns.alternate": (True, False),
    "turns.system_inside": ("anywhere", "before_assistant", "first_only"),
    "turns.system_many": (True, False),
    "turns.developer_role": (True, False),
    "turns.name_field": (True, False),
    "turns.empty_text": (True, False),
    "turns.blank_text": (True, False),
    "turns.empty_turn": (True, False),
    "turns.media": ([], ["image"]),
    "schema.refused": (
        [],
        ["default"],
        ["anyOf"],
        ["enum"],
        ["$ref", "$defs"],
        ["additionalProperties", "const"],
        ["format"],
        ["oneOf", "allOf", "not", "if"],
        ["$schema", "$id", "definitions", "$comment"],
    ),
    "schema.refs": (True, False),
    "schema.root_union": (True, False),
    "schema.type_lists": (True, False),
    "schema.union_with_type": (True, False),
    "schema.union_alone": (True, False),
    "schema.type_required": (True, False),
    "schema.nullable": (True, False),
    "schema.tuple_items": ("items", "prefixItems", "no"),
    "schema.enum_types": ("any", "string"),
    "schema.formats": (["date-time"], ["date-time", "email", "int32"]),
    "schema.properties_required": (True, False),
    "schema.properties_non_empty": (True, False),
    "schema.items_required": (True, False),
    "schema.required_defined": (True, False),
    "request.max_tokens_required": (True, False),
    "request.min_max_tokens": (1, 3, 16),
    "request.sampling": (["temperature"], ["temperature", "top_p", "stop", "seed"]),
    "request.output": (["json"], ["json", "json_schema"]),
    "request.output_with_tools": (True, False),
    "request.unknown_fields": ("refused", "ignored"),
    "request.max_tokens_field": ("max_tokens", "max_completion_tokens"),
    "reasoning.efforts": (["low", "high"],),
}
"""What hosts of Chat Completions may be like: values by entry of the profile, any of them with any other."""


# --- requests that are hard to send ------------------------------------------------------------------


def call(id: str, name: str = "get_weather", arguments: str = '{"city": "Bonn"}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": schema}}


SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "city": {"$ref": "#/$defs/city"},
        "days": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": 1},
        "how": {"oneOf": [{"type": "string", "const": "slow"}, {"type": "object"}]},
        "when": {"type": "string", "format": "x-when", "pattern": "^[0-9]+$"},
        "where": {"type": "array"},
    },
    "$defs": {"city": {"type": "string"}},
    "required": ["city", "nowhere"],
}
TOOLS: Final = [tool("get_weather", SCHEMA), tool("a.name:of/tools", {"type": "object"})]
HARD: Final[list[list[dict[str, Any]]]] = [
    [{"role": "user", "content": "The weather in Bonn?"}],
    [
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "The weather in Bonn?"},
        {"role": "assistant", "content": None, "tool_calls": [call("functions.get_weather:0"), call("x" * 70)]},
        {"role": "tool", "tool_call_id": "x" * 70, "content": ""},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Well?"},
        {"role": "user", "content": "Well??"},
    ],
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Rome?"}]},
        {"role": "assistant", "content": "I look.", "tool_calls": [call("a b é", arguments="[1]")]},
        {"role": "user", "content": "And?"},
        {"role": "tool", "tool_call_id": "a b é", "content": "7 degrees"},
        {"role": "tool", "tool_call_id": "nobody", "content": "8 degrees"},
    ],
]
"""Histories in which much is wrong, in Chat Completions."""
