"""Profile files: TOML in, checked layers out.

A built-in file describes one provider; a user's file holds any number of them under `[profiles.NAME]`.
Both have the same form:

    title = "Mistral"                      # optional
    protocol = "openai_chat"               # optional
    extends = "openai_compatible"          # optional: start from another profile
    assumed = true                         # optional: the rules are precautions, see `Rule.assumed`
    [rules]
    "ids.max_length" = 9                   # short form
    [rules."ids.pattern"]                  # long form, with its evidence
    id = "mistral-id-nine"
    value = "[A-Za-z0-9]{9}"
    source = "mistral-common"
    confidence = "documented"
    accepts = "[A-Za-z0-9_]{9}"            # optional: what it accepts of its own clients
    [models."voxtral"]                     # a refinement for the models that `match` finds
    match = "voxtral"
    rules = { "ids.required" = true }

TOML has no null; the string "null" means it if a key allows it. A mistake is a `ProfileError` with the file, the
key and what is allowed.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from toolglot.errors import ProfileError, quote
from toolglot.profiles.rules import Rules
from toolglot.profiles.target_names import DATA, profile_heads, resolve

Confidence = Literal["documented", "observed", "guess", "user", "default"]

PROTOCOLS: list[str] = ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "cohere", "ollama"]
"""The protocols that a profile can name. `toolglot.protocols.base.register` adds one."""

MAX_FILE_BYTES = 4 * 1024 * 1024


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One demand of a target, with its evidence."""

    id: str
    key: str
    value: Any
    source: str
    confidence: Confidence
    layer: str
    """The source of the value: `default`, a profile, `profile:models.name`, or a user's file."""
    accepts: Any = msgspec.UNSET
    """What the target was observed to accept, if that is more than `value`. Native requests are judged by this, foreign
    ones are written by `value`."""
    recheck: bool = False
    """Whether it is known from general knowledge only, and has to be confirmed."""
    error: str = ""
    """The provider's own words when the demand is not met."""
    note: str = ""
    assumed: bool = False
    """Whether no refusal is known: foreign conversations are written to satisfy the rule, native requests need not."""


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something known about a target that is not a setting; codecs and error messages follow it."""

    id: str
    text: str
    source: str
    confidence: Confidence
    recheck: bool = False
    error: str = ""


class ModelLayer(Struct, frozen=True, kw_only=True):
    name: str
    match: re.Pattern[str]
    rules: dict[str, Rule]


class ProfileFile(Struct, frozen=True, kw_only=True):
    name: str
    origin: str
    title: str = ""
    protocol: str | None = None
    extends: str | None = None
    rules: dict[str, Rule]
    models: tuple[ModelLayer, ...] = ()
    facts: tuple[Fact, ...] = ()


class _RuleTable(Struct, kw_only=True, forbid_unknown_fields=True):
    value: Any
    id: str = ""
    source: str = ""
    confidence: Confidence | None = None
    accepts: Any = msgspec.UNSET
    recheck: bool = False
    error: str = ""
    note: str = ""
    assumed: bool | None = None


class _FactTable(Struct, kw_only=True, forbid_unknown_fields=True):
    text: str
    source: str
    confidence: Confidence
    recheck: bool = False
    error: str = ""


class _ModelTable(Struct, kw_only=True, forbid_unknown_fields=True):
    match: str
    rules: dict[str, Any]


class _ProfileTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """A profile of a user's file."""

    title: str = ""
    protocol: str | None = None
    extends: str | None = None
    assumed: bool = False
    rules: dict[str, Any] = {}
    models: dict[str, _ModelTable] = {}
    facts: dict[str, _FactTable] = {}


class _BuiltinTable(_ProfileTable, kw_only=True, forbid_unknown_fields=True):
    """A file of `data/`. Its aliases are read by `target_names`."""

    aliases: tuple[str, ...] = ()


def _key_types() -> dict[str, Any]:
    return {
        f"{group.name}.{field.name}": field.type
        for group in msgspec.structs.fields(Rules)
        for field in msgspec.structs.fields(group.type)
    }


KEYS: dict[str, Any] = _key_types()
"""Every key that a profile can set, with its type."""


_GROUPS = frozenset(key.split(".")[0] for key in KEYS)


def allowed_values(key: str) -> str:
    """What a key may be set to, in words."""
    if key not in KEYS:
        raise unknown_key(key, "key")
    return _describe_type(KEYS[key])


def unknown_key(key: str, where: str) -> ProfileError:
    close = difflib.get_close_matches(key, KEYS, n=1)
    group = key.split(".", maxsplit=1)[0]
    siblings = [known for known in KEYS if known.startswith(group + ".")]
    groups = sorted({known.split(".")[0] + ".…" for known in KEYS})
    hint = f'did you mean "{close[0]}"?' if close else "allowed: " + ", ".join(siblings or groups)
    return ProfileError(f"unknown key {quote(key)}", path=where, hint=hint)


def _describe_type(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _describe_type(args[0]) + _lower_bound(kind)
    if origin is Literal:
        return "one of " + ", ".join(f'"{value}"' for value in args)
    if origin is tuple:
        element = _describe_type(args[0])
        return "a list of strings" if element == "a string" else f"a list whose entries are {element}"
    if origin in (Union, types.UnionType):
        return " or ".join(_describe_type(arg) for arg in args)
    return {str: "a string", int: "a whole number", float: "a number", bool: "true or false", type(None): '"null"'}[
        kind
    ]


def _lower_bound(kind: Any) -> str:
    """The lower bound of a number, in words."""
    bounds = [meta.ge for meta in getattr(kind, "__metadata__", ()) if meta.ge is not None]
    return f" from {bounds[0]}" if bounds else ""


def _admits_none(kind: Any) -> bool:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _admits_none(args[0])
    return type(None) in args if origin in (Union, types.UnionType) else False


def _check_value(key: str, value: Any, where: str) -> Any:
    if key not in KEYS:
        raise unknown_key(key, where)
    kind = KEYS[key]
    if value == "null" and _admits_none(kind):
        return None
    try:
        checked = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ProfileError(
            f"{quote(value)} is not a value for {key}: {error}",
            path=where,
            hint=f"allowed: {allowed_values(key)}",
        ) from None
    if key.endswith("pattern") and checked is not None:
        _compile(checked, where)
    return checked


def _hint(error: msgspec.ValidationError, table: type[Struct]) -> str:
    """What is allowed where a table is wrong."""
    path = str(error).rpartition(" - at `")[2]
    if path.startswith("$.protocol"):
        return "allowed: " + ", ".join(PROTOCOLS)
    if "confidence" in path:
        return "allowed: " + ", ".join(get_args(Confidence))
    if path.startswith("$.models"):
        return "a model has `match`, a regular expression, and `rules`"
    if path.startswith("$.facts"):
        return "a fact has `text`, `source` and `confidence`"
    return "allowed: " + ", ".join(table.__struct_fields__)


def _compile(pattern: str, where: str, flags: int = 0) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise ProfileError(
            f"{quote(pattern)} is not a regular expression: {error}", path=where, hint="Python's `re` syntax"
        ) from None


def _flatten_rules(table: dict[str, Any]) -> dict[str, Any]:
    """The rules by key: `ids.style = …` without quotes is a nested table in TOML, and means the same."""
    flat = {}
    for key, entry in table.items():
        if key in _GROUPS and isinstance(entry, dict):
            flat.update({f"{key}.{field}": inner for field, inner in entry.items()})
        else:
            flat[key] = entry
    return flat


def _rules(table: dict[str, Any], *, layer: str, where: str, origin: str, assumed: bool = False) -> dict[str, Rule]:
    rules = {}
    for key, entry in _flatten_rules(table).items():
        path = f'{where}."{key}"'
        if isinstance(entry, dict):
            try:
                long = msgspec.convert(entry, _RuleTable)
            except msgspec.ValidationError as error:
                raise ProfileError(f"{error}", path=path, hint=_hint(error, _RuleTable)) from None
        else:
            long = _RuleTable(value=entry)
        rules[key] = Rule(
            id=long.id or f"user:{key}",
            key=key,
            value=_check_value(key, long.value, path),
            source=long.source or origin,
            confidence=long.confidence or "user",
            layer=layer,
            accepts=long.accepts if long.accepts is msgspec.UNSET else _check_value(key, long.accepts, path),
            recheck=long.recheck,
            error=long.error,
            note=long.note,
            assumed=assumed if long.assumed is None else long.assumed,
        )
    return rules


def _profile(
    name: str, table: Any, *, origin: str, where: str, layer: str, kind: type[_ProfileTable] = _ProfileTable
) -> ProfileFile:
    try:
        raw = msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{error}", path=f"{origin}: {where or name}", hint=_hint(error, _ProfileTable)) from None
    if raw.protocol is not None and raw.protocol not in PROTOCOLS:
        raise ProfileError(
            f"unknown protocol {quote(raw.protocol)}",
            path=f"{origin}: {where or name}",
            hint="allowed: " + ", ".join(PROTOCOLS),
        )
    prefix = f"{where}." if where else ""
    models = tuple(
        ModelLayer(
            name=model,
            match=_compile(entry.match, f"{origin}: {prefix}models.{model}.match", re.IGNORECASE),
            rules=_rules(
                entry.rules,
                layer=f"{layer}:models.{model}",
                where=f"{origin}: {prefix}models.{model}.rules",
                origin=origin,
                assumed=raw.assumed,
            ),
        )
        for model, entry in raw.models.items()
    )
    return ProfileFile(
        name=name,
        origin=origin,
        title=raw.title,
        protocol=raw.protocol,
        extends=resolve(raw.extends) if raw.extends is not None else None,
        rules=_rules(raw.rules, layer=layer, where=f"{origin}: {prefix}rules", origin=origin, assumed=raw.assumed),
        models=models,
        facts=tuple(
            Fact(
                id=fact,
                text=entry.text,
                source=entry.source,
                confidence=entry.confidence,
                recheck=entry.recheck,
                error=entry.error,
            )
            for fact, entry in raw.facts.items()
        ),
    )


def _toml(data: bytes, origin: str) -> dict[str, Any]:
    if len(data) > MAX_FILE_BYTES:
        raise ProfileError(f"larger than {MAX_FILE_BYTES} bytes", path=origin, hint="split the file")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ProfileError(f"not UTF-8 at byte {error.start}", path=origin, hint="save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"not TOML: {error}", path=origin, hint="see https://toml.io") from None


def read_builtin(name: str) -> ProfileFile:
    """The profile of a target that comes with toolglot."""
    file = DATA / f"{name}.toml"
    table = _toml(file.read_bytes(), file.name)
    return _profile(name, table, origin=file.name, where="", layer=name, kind=_BuiltinTable)


def parse_overrides(data: bytes, origin: str) -> dict[str, ProfileFile]:
    """The `[profiles.NAME]` tables of a user's file, by target."""
    document = _toml(data, origin)
    for key in document:
        is_target = resolve(key) in profile_heads()
        if is_target or (key != "profiles" and difflib.get_close_matches(key, ["profiles"], cutoff=0.8)):
            hint = f"write [profiles.{key}]" if is_target else "write [profiles.NAME]"
            raise ProfileError(f"{quote(key)} is not a section for profiles", path=origin, hint=hint)
    tables = document.get("profiles", {})
    if not isinstance(tables, dict):
        raise ProfileError("`profiles` must be a table", path=origin, hint="write [profiles.NAME]")
    return {
        resolve(name): _profile(
            resolve(name), table, origin=origin, where=f"profiles.{name}", layer=f"{origin}:{resolve(name)}"
        )
        for name, table in tables.items()
    }
