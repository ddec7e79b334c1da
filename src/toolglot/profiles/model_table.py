"""What the known models can take and do: `models.toml`, as rules of the group `context`.

    context_rules(("vertex", "gemini"), "gemini-3-pro-preview")["context.window"].value     # 1_048_576

Law: a model that the table does not have gets no rule, so that nothing is known of it. The table is read when it is
first needed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from toolglot.profiles.loader import Rule
from toolglot.profiles.name_patterns import matches, spellings

FILE: Final = Path(__file__).with_name("models.toml")
LAYER: Final = "models.toml"


class ModelLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model, or those that a pattern finds; None: not known."""

    window: int | None = None
    max_window: int | None = None
    output: int | None = None
    media: tuple[Literal["image", "document", "audio", "video"], ...] | None = None
    thinking: bool | None = None
    tools: bool = True


class ModelGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models of some hosts, with the source of their values."""

    hosts: tuple[str, ...]
    source: str
    read: str
    confidence: Literal["documented", "observed"]
    models: dict[str, ModelLimits]


@cache
def model_groups() -> Mapping[str, ModelGroup]:
    """The groups of models.toml, by name."""
    return msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8")), dict[str, ModelGroup])


def context_rules(hosts: Sequence[str], model: str) -> dict[str, Rule]:
    """The rules for a model of a host, by key; the first of `hosts` that knows the model counts."""
    if not model:
        return {}
    names = spellings(model)
    for host in hosts:
        for name, group in _groups_of(host):
            for pattern, limits in group.models.items():
                if any(matches(spelling, (pattern,)) for spelling in names):
                    return dict(_rules(f"{name}:{pattern}", group, limits))
    return {}


def _groups_of(host: str) -> list[tuple[str, ModelGroup]]:
    return [(name, group) for name, group in model_groups().items() if host in group.hosts]


def _rules(id: str, group: ModelGroup, limits: ModelLimits) -> Iterator[tuple[str, Rule]]:
    source = f"{group.source} ({group.read})"
    for field in limits.__struct_fields__:
        value = getattr(limits, field)
        if value is not None:
            key = f"context.{field}"
            yield key, Rule(id=id, key=key, value=value, source=source, confidence=group.confidence, layer=LAYER)
