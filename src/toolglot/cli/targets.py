"""Names of targets as they are written on the command line: `mistral`, `anthropic@claude-opus-4-5`, `all`.

Law: a name that nobody knows is an error with a suggestion, never a silent default.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from msgspec import Struct

from toolglot import profiles
from toolglot.errors import InputError
from toolglot.profiles import Overrides
from toolglot.protocols.base import names
from toolglot.protocols.request_detection import ProtocolDetection, examine

ALL: Final = "all"


class Target(Struct, frozen=True):
    """A target, and the model that was asked for."""

    name: str
    model: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.model}" if self.model else self.name


def read_overrides(arguments: argparse.Namespace) -> Overrides | None:
    return profiles.read_overrides(arguments.profiles) if arguments.profiles else None


def known_names(overrides: Overrides | None) -> tuple[str, ...]:
    return tuple(sorted({*profiles.names(), *(overrides.names if overrides else ())}))


def one_target(text: str, option: str, overrides: Overrides | None) -> Target:
    """`name` or `name@model`."""
    name, _, model = text.partition("@")
    return Target(profiles.find(name, overrides=overrides, kind="target", path=option), model)


def many_targets(text: str, option: str, overrides: Overrides | None) -> tuple[Target, ...]:
    """Several, with commas between them; none of them for `all`."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError("names no target", path=option, hint=f"for example {option} anthropic,mistral")
    return tuple(dict.fromkeys(one_target(word, option, overrides) for word in words))


def of_protocol(protocol: str, overrides: Overrides | None) -> tuple[Target, ...]:
    """Every provider that speaks a protocol."""
    names = (name for name in known_names(overrides) if name != profiles.ANY_HOST)
    return tuple(Target(name) for name in names if profiles.get(name, overrides=overrides).protocol == protocol)


def protocol_of(body: dict[str, Any], where: str, option: str) -> ProtocolDetection:
    """The protocol that a body is written in, or an error that asks for it."""
    found = examine(body)
    if found.protocol is not None:
        return found
    if not found.candidates:
        message = "this is no request of a protocol that toolglot knows"
        hint = f"say what it is with {option}; known protocols: {', '.join(names())}"
    else:
        message = f"this request could be of several protocols: {', '.join(found.candidates)}"
        hint = f"say which with {option}"
    raise InputError(message, path=where, hint=hint)


def told(found: ProtocolDetection, where: str) -> str:
    """What to tell of a protocol that only the model's name decided."""
    others = ", ".join(name for name in found.candidates if name != found.protocol)
    return f"{where} is read as {found.protocol}, for its model's name; by its form it could be {others} too"
