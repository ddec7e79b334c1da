"""The names of targets: the built-in profile files, and the other spellings that each of them lists.

Only the head of a profile file is read here, what is above its first table. It has the title, the protocol, the profile
that it extends and the aliases; loading the rules of all files would take a hundred times as long.

Law: a name resolves to itself or to a target, never to another alias. Canonical ids hash the resolved name, so a
published alias stays.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

DATA: Final = Path(__file__).with_name("data")
ANY_HOST: Final = "openai_compatible"
"""The target of a host that has no profile."""

MAX_LENGTH: Final = 64
"""No target has a longer name, in any spelling."""


class ProfileHead(Struct, frozen=True, kw_only=True):
    """What a built-in profile file says above its first table."""

    title: str
    protocol: str | None = None
    extends: str | None = None
    aliases: tuple[str, ...] = ()


@cache
def profile_heads() -> Mapping[str, ProfileHead]:
    """The heads of all built-in profiles, by target."""
    heads = {}
    for file in sorted(DATA.glob("*.toml")):
        with file.open(encoding="utf-8") as lines:
            head = "".join(takewhile(lambda line: not line.startswith("["), lines))
        heads[file.stem] = msgspec.convert(tomllib.loads(head), ProfileHead)
    return MappingProxyType(heads)


@cache
def aliases() -> Mapping[str, str]:
    """The target of each other spelling."""
    return MappingProxyType({alias: name for name, head in profile_heads().items() for alias in head.aliases})


def resolve(name: str) -> str:
    """The target that a name means, or the name itself if it means none.

    This is for stored names, which are read back even if their target is gone. A caller's name goes through
    `profiles.find`. Case is ignored, and `-`, `.` and spaces are read as `_`.
    """
    return name if len(name) > MAX_LENGTH else _resolve(name)


def normalize_name(name: str) -> str:
    """The name in lowercase, with `_` for `-`, `.` and spaces."""
    return name.strip().lower().replace("-", "_").replace(".", "_").replace(" ", "_")


@lru_cache(maxsize=1024)
def _resolve(name: str) -> str:
    spelled = normalize_name(name)
    if spelled in profile_heads():
        return spelled
    return aliases().get(spelled, name)
