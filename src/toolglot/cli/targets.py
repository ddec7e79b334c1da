"""Targets on the command line: `mistral`, `anthropic@claude-opus-4-5`, `all`.

Law: an unknown name is an error with a suggestion, never a silent default.
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
    """A target and, optionally, a model."""

    name: str
    model: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.model}" if self.model else self.name


def read_overrides(arguments: argparse.Namespace) -> Overrides | None:
    return profiles.read_overrides(arguments.profiles) if arguments.profiles else None


def known_names(overrides: Overrides | None) -> tuple[str, ...]:
    return tuple(sorted({*profiles.names(), *(overrides.names if overrides else ())}))


def parse_target(text: str, option: str, overrides: Overrides | None) -> Target:
    """`name` or `name@model`."""
    name, _, model = text.partition("@")
    return Target(profiles.find(name, overrides=overrides, kind="target", path=option), model)


def parse_targets(text: str, option: str, overrides: Overrides | None) -> tuple[Target, ...]:
    """A comma-separated list of targets."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError("expected a target", path=option, hint=f"for example {option} anthropic,mistral")
    return tuple(dict.fromkeys(parse_target(word, option, overrides) for word in words))


def targets_of_protocol(protocol: str, overrides: Overrides | None) -> tuple[Target, ...]:
    """All targets that speak a protocol."""
    names = (name for name in known_names(overrides) if name != profiles.ANY_HOST)
    return tuple(Target(name) for name in names if profiles.get(name, overrides=overrides).protocol == protocol)


def detect_protocol(body: dict[str, Any], where: str, option: str) -> ProtocolDetection:
    """Detect the protocol of a body. Raises if there is none, or more than one."""
    found = examine(body)
    if found.protocol is not None:
        return found
    if not found.candidates:
        message = "not a request of any known protocol"
        hint = f"set the protocol with {option}; known protocols: {', '.join(names())}"
    else:
        message = f"ambiguous protocol: could be {' or '.join(found.candidates)}"
        hint = f"choose one with {option}"
    raise InputError(message, path=where, hint=hint)


def detection_note(found: ProtocolDetection, where: str) -> str:
    """The note for a protocol that was chosen by the name of the model."""
    others = ", ".join(name for name in found.candidates if name != found.protocol)
    return f"{where}: assuming {found.protocol}, from the model's name; the structure would also fit {others}"
