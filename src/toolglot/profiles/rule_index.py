"""All rules and facts of the profiles, for `explain` and SARIF."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from toolglot import profiles
from toolglot.profiles import KEYS, Fact, Overrides, Rule
from toolglot.profiles.loader import ProfileFile, read_builtin
from toolglot.profiles.rules import Rules


class NamedRule(Struct, frozen=True, kw_only=True):
    """A rule or a fact, and the profile that defines it."""

    target: str
    """The profile that defines it."""
    entry: Rule | Fact
    match: str = ""
    """The pattern of the models that it applies to; empty: all models."""


def description_of(key: str) -> str:
    """The description of a profile key."""
    return next((str(meta.description) for meta in KEYS[key].__metadata__ if meta.description), key)


def default_of(key: str) -> Any:
    """The conservative default of a profile key."""
    group, field = key.split(".")
    return getattr(getattr(Rules(), group), field)


def all_rules(overrides: Overrides | None = None) -> list[NamedRule]:
    """The rules and facts of all profiles, in file order."""
    files = [read_builtin(name) for name in profiles.names()]
    if overrides is not None:
        files += [file for file in map(overrides.get, overrides.names) if file is not None]
    return [named for file in files for named in _file_rules(file)]


def _file_rules(file: ProfileFile) -> list[NamedRule]:
    found = [NamedRule(target=file.name, entry=rule) for rule in file.rules.values()]
    for layer in file.models:
        found += [NamedRule(target=file.name, entry=rule, match=layer.match.pattern) for rule in layer.rules.values()]
    return found + [NamedRule(target=file.name, entry=fact) for fact in file.facts]
