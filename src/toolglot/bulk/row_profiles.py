"""The profiles of rows: what the readers of training data demand, as data (`rows.toml`).

A row of an open form is read by nobody who refuses it, so its profile has no precautions: only what is wrong is put
right. A file for a host's tuning is held to what that host demands.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from toolglot import profiles
from toolglot.profiles import Overrides, Profile

OPEN: Final = "rows"
_FILE: Final = Path(__file__).with_name("rows.toml")


@cache
def _overrides() -> Overrides:
    return Overrides(_FILE.read_bytes(), origin=_FILE.name)


@cache
def row_profile(name: str) -> Profile:
    """A profile of `rows.toml`, or of toolglot."""
    own = _overrides()
    found = profiles.get(name, overrides=own)
    return found.as_known() if found.name == OPEN else found
