"""Every rule and fact of the profiles by its id, for `explain` and for help texts."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from toolglot import profiles
from toolglot.profiles import KEYS, Fact, Overrides, Rule
from toolglot.profiles.loader import ProfileFile, read_builtin
from toolglot.profiles.rules import Rules


class NamedRule(Struct, frozen=True, kw_only=True):
    """A rule or a fact, and where it is written."""

    target: str
    """The profile whose file has it."""
    said: Rule | Fact
    match: str = ""
    """The models that it is for; empty: all."""


def description_of(key: str) -> str:
    """What a key of a profile means."""
    return next((str(meta.description) for meta in KEYS[key].__metadata__ if meta.description), key)


def default_of(key: str) -> Any:
    """The conservative default of a key."""
    group, field = key.split(".")
    return getattr(getattr(Rules(), group), field)


def all_named(overrides: Overrides | None = None) -> list[NamedRule]:
    """Rules and facts of all profiles, in the order of their files."""
    files = [read_builtin(name) for name in profiles.names()]
    if overrides is not None:
        files += [file for file in map(overrides.get, overrides.names) if file is not None]
    return [named for file in files for named in _of_file(file)]


def _of_file(file: ProfileFile) -> list[NamedRule]:
    found = [NamedRule(target=file.name, said=rule) for rule in file.rules.values()]
    for layer in file.models:
        found += [NamedRule(target=file.name, said=rule, match=layer.match.pattern) for rule in layer.rules.values()]
    return found + [NamedRule(target=file.name, said=fact) for fact in file.facts]
