"""Targets as data: what each provider, and each of its models, demands.

    profile = profiles.get("mistral", model="mistral-large-latest")
    profile.ids.pattern                  # "[A-Za-z0-9]{9}"
    profile.origin("ids.pattern")        # the rule: its id, source, confidence and layer

A value comes from the last layer that sets it: the conservative defaults, the table of models, the profile that this
one extends, the profile, its models, then the same of the user's overrides. Behaviour that differs between
targets is read from here only.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from toolglot.errors import InputError, ProfileError, UnknownNameError, closest_names, quote, unknown_name
from toolglot.profiles.capabilities import (
    CONSERVATIVE,
    MATRIX,
    Capabilities,
    from_profile,
    register_capabilities,
    registered,
)
from toolglot.profiles.leniency import LENIENT
from toolglot.profiles.loader import (
    KEYS,
    Fact,
    ModelLayer,
    ProfileFile,
    Rule,
    allowed_values,
    parse_overrides,
    read_builtin,
    unknown_key,
)
from toolglot.profiles.model_table import LAYER, context_rules
from toolglot.profiles.rules import (
    CacheRules,
    CallRules,
    ChoiceRules,
    ContextRules,
    EmbeddingRules,
    IdRules,
    NameRules,
    ReasoningRules,
    RequestRules,
    ResultRules,
    Rules,
    SchemaRules,
    StreamRules,
    ToolRules,
    TurnRules,
)
from toolglot.profiles.target_names import ANY_HOST, aliases, normalize_name, profile_heads, resolve

__all__ = [
    "ANY_HOST",
    "KEYS",
    "Capabilities",
    "Fact",
    "Overrides",
    "Profile",
    "Rule",
    "aliases",
    "allowed_values",
    "find",
    "get",
    "get_capabilities",
    "names",
    "read_overrides",
    "register_capabilities",
    "resolve",
    "unknown",
]

MAX_NAME = 512
"""The maximum length of a provider or model name."""


_LENIENT_LAYER = "lenient"
"""The layer of a profile without assumed rules."""


class Overrides:
    """A user's changes to profiles, and the user's own profiles."""

    __slots__ = ("_profiles", "origin")

    def __init__(self, data: bytes | str, *, origin: str = "overrides") -> None:
        if not isinstance(data, bytes | str):
            raise ProfileError(f"expected TOML text, got {quote(data)}", path=origin)
        self.origin: str = origin
        encoded = data.encode(errors="surrogatepass") if isinstance(data, str) else data
        self._profiles = parse_overrides(encoded, origin)

    def get(self, name: str) -> ProfileFile | None:
        return self._profiles.get(name)

    def find(self, name: str) -> str | None:
        """The name of the profile, ignoring case, with `-`, `.` and spaces read as `_`."""
        if name in self._profiles:
            return name
        spelled = normalize_name(name)
        return next((known for known in self._profiles if normalize_name(known) == spelled), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._profiles))


def read_overrides(path: str | os.PathLike[str]) -> Overrides:
    """The overrides of a TOML file."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProfileError(f"cannot read file: {reason}", path=str(path)) from None
    return Overrides(data, origin=os.fspath(path))


class Profile(Struct, frozen=True, kw_only=True):
    """What one target demands, for one model."""

    name: str
    title: str
    protocol: str
    model: str
    layers: tuple[str, ...]
    """The layers that apply, lowest first."""
    origins: dict[str, Rule]
    facts: tuple[Fact, ...]
    largest_window: int | None = None
    """Tokens into which every request must fit; None: not known, or only guessed."""

    ids: IdRules
    names: NameRules
    tools: ToolRules
    choice: ChoiceRules
    calls: CallRules
    results: ResultRules
    turns: TurnRules
    reasoning: ReasoningRules
    schema: SchemaRules
    request: RequestRules
    cache: CacheRules
    stream: StreamRules
    embeddings: EmbeddingRules
    context: ContextRules

    def origin(self, key: str) -> Rule:
        """The rule that decided a key, with its layer."""
        if key in self.origins:
            return self.origins[key]
        if key not in KEYS:
            raise unknown_key(key, "key")
        group, field = key.split(".")
        return Rule(
            id=f"default:{key}",
            key=key,
            value=getattr(getattr(self, group), field),
            source="the conservative default",
            confidence="default",
            layer="default",
        )

    def as_known(self) -> Profile:
        """The profile without assumed rules, and with what the target was observed to accept."""
        return _as_known(self)

    @property
    def takes_any_strict(self) -> bool:
        """Whether only what applies to all targets limits strict schemas, since no rule of this target is known."""
        return _LENIENT_LAYER in self.layers and not any(key.startswith("schema.strict") for key in self.origins)

    def __hash__(self) -> int:
        return hash((self.name, self.model, self.layers))


@lru_cache(maxsize=256)
def _as_known(profile: Profile) -> Profile:
    values: dict[str, dict[str, Any]] = {}
    for key, value in LENIENT.items():
        rule = profile.origins.get(key)
        if rule is None or rule.assumed:
            group, field = key.split(".")
            values.setdefault(group, {})[field] = value
    for key, rule in profile.origins.items():
        if rule.accepts is not msgspec.UNSET:
            group, field = key.split(".")
            values.setdefault(group, {})[field] = rule.accepts
    groups = {group: msgspec.structs.replace(getattr(profile, group), **fields) for group, fields in values.items()}
    return msgspec.structs.replace(profile, layers=(*profile.layers, _LENIENT_LAYER), **groups)


@cache
def _builtin(name: str) -> ProfileFile:
    return read_builtin(name)


@cache
def names() -> tuple[str, ...]:
    """Every target that comes with toolglot."""
    return tuple(profile_heads())


def find(name: str, *, overrides: Overrides | None = None, kind: str = "provider", path: str | None = None) -> str:
    """The target that a caller's name means: one that comes with toolglot, or a profile of the caller's own.

    Every alias is accepted, in any case. An unknown name raises `UnknownNameError` with the closest names. `kind` is
    what the caller calls the name, and `path` its path, for the error.
    """
    where = kind if path is None else path
    if not isinstance(name, str):
        raise InputError(f"expected a name, got {quote(name)}", path=where)
    if len(name) > MAX_NAME:
        raise InputError(f"expected a name of at most {MAX_NAME} characters", path=where)
    if not name.strip():
        raise InputError(f"expected the name of a {kind}", path=where, hint=f"one of {', '.join(names())}")
    own = overrides.find(name) if overrides is not None else None
    if own is not None:
        return own
    resolved = resolve(name)
    if resolved in profile_heads():
        return resolved
    own = overrides.find(resolved) if overrides is not None else None
    if own is not None:
        return own
    raise unknown(name, overrides=overrides, kind=kind, path=path)


def unknown(
    name: str, *, overrides: Overrides | None = None, kind: str = "provider", path: str | None = None, also: str = ""
) -> UnknownNameError:
    """The error for an unknown name. `also` adds to its hint."""
    known = {*names(), *(overrides.names if overrides is not None else ())}
    close = closest_names(normalize_name(name), [*known, *aliases()])
    meant = tuple(dict.fromkeys(found if found in known else aliases()[found] for found in close))
    hint = f"known: {', '.join(sorted(known))}; for any other host, {ANY_HOST} or a profile of your own"
    return unknown_name(kind, name, known, suggestions=meant, path=path, hint=f"{hint}{also}")


def _chain(name: str, overrides: Overrides | None) -> list[ProfileFile]:
    """The files to apply for a target, lowest first."""
    chain: list[ProfileFile] = []
    seen: list[str] = []
    current: str | None = name
    while current is not None:
        if current in seen:
            raise ProfileError(
                f"profiles extend each other in a circle: {' → '.join([*seen, current])}",
                path=overrides.origin if overrides else current,
            )
        seen.append(current)
        own = overrides.get(current) if overrides else None
        builtin = _builtin(current) if current in profile_heads() else None
        if own is None and builtin is None:
            raise ProfileError(
                f"{quote(seen[-2])} extends {quote(current)}, which does not exist",
                path=overrides.origin if overrides else current,
                hint="allowed: " + ", ".join(names()),
            )
        chain += [file for file in (own, builtin) if file is not None]
        current = (own.extends if own else None) or (builtin.extends if builtin else None)
    return chain[::-1]


NOT_INHERITED = frozenset({"request.foreign_models"})
"""Keys that apply to a provider itself, not to profiles that extend it."""


def _apply(files: list[ProfileFile], model: str) -> tuple[tuple[str, ...], dict[str, Rule]]:
    layers = ["default"]
    origins = context_rules([file.name for file in reversed(files)], model)
    if origins:
        layers.append(LAYER)
    for file in files:
        steps: list[ModelLayer | ProfileFile] = [file]
        steps += [layer for layer in file.models if model and layer.match.search(model)]
        for step in steps:
            if step.rules:
                layers.append(next(iter(step.rules.values())).layer)
                origins.update(step.rules)
        if file.name != files[-1].name:
            for key in NOT_INHERITED:
                origins.pop(key, None)
    return tuple(layers), origins


def _largest_window(origins: dict[str, Rule]) -> int | None:
    window, largest = origins.get("context.window"), origins.get("context.max_window")
    # The table's larger value belongs to the table's window, not to one that the user has set.
    if (
        largest is not None
        and largest.value is not None
        and (largest.layer != LAYER or window is None or window.layer == LAYER)
    ):
        window = largest
    return window.value if window is not None and window.confidence not in ("guess", "default") else None


def _groups(origins: dict[str, Rule]) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = {}
    for key, rule in origins.items():
        group, field = key.split(".")
        values.setdefault(group, {})[field] = rule.value
    return {field.name: field.type(**values.get(field.name, {})) for field in msgspec.structs.fields(Rules)}


@lru_cache(maxsize=256)
def _resolve(name: str, model: str, overrides: Overrides | None) -> Profile:
    files = _chain(name, overrides)
    layers, origins = _apply(files, model)
    return Profile(
        name=name,
        title=next((file.title for file in reversed(files) if file.title), name),
        protocol=next((file.protocol for file in reversed(files) if file.protocol), "openai_chat"),
        model=model,
        layers=layers,
        origins=origins,
        facts=tuple(fact for file in files for fact in file.facts),
        largest_window=_largest_window(origins),
        **_groups(origins),
    )


def get(
    provider: str,
    model: str = "",
    *,
    overrides: Overrides | None = None,
    kind: str = "provider",
    path: str | None = None,
) -> Profile:
    """The profile of a target, refined for a model.

    Every alias is accepted; an unknown name raises `UnknownNameError` with the closest names. For a host without a
    profile, use `openai_compatible`, or a profile of your own in `overrides`. `kind` is what the caller calls the name
    (`target`, `source`), and `path` its path, for the error.
    """
    if not isinstance(model, str):
        raise InputError(f"expected a name, got {quote(model)}", path="model")
    if len(model) > MAX_NAME:
        raise InputError(f"expected a name of at most {MAX_NAME} characters", path="model")
    if overrides is not None and not isinstance(overrides, Overrides):
        raise InputError(
            f"expected Overrides, got {quote(overrides)}", path="overrides", hint="profiles.read_overrides(path)"
        )
    return _resolve(find(provider, overrides=overrides, kind=kind, path=path), model, overrides)


def get_capabilities(provider: str, *, overrides: Overrides | None = None) -> Capabilities:
    """What is known of a provider's tool calls: the registered values, the built-in ones, or those of its profile.

    Every alias is accepted; an unknown name has conservative values.

    provider: a provider.
    overrides: your own profiles.
    """
    if not isinstance(provider, str):
        raise InputError(f"expected the name of a provider, got {quote(provider)}", path="provider")
    name = resolve(provider)
    own = overrides.find(provider) if overrides is not None else None
    found = registered.get(own or name)
    if found is None and own is None:
        found = MATRIX.get(name)
    if found is not None:
        return found
    if own is None and name not in names():
        return CONSERVATIVE
    return from_profile(parallel=get(own or name, overrides=overrides).calls.parallel)
