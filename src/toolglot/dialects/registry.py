"""The dialects that are known, by name."""

from __future__ import annotations

import difflib
import pkgutil
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module

from toolglot.dialects import known
from toolglot.dialects.dialect import Dialect
from toolglot.errors import InputError, quote

_OWN: dict[str, Dialect] = {}


@cache
def _built_in() -> dict[str, Dialect]:
    modules = [import_module(f"{known.__name__}.{found.name}") for found in pkgutil.iter_modules(known.__path__)]
    return {dialect.name: dialect for module in modules for dialect in module.DIALECTS}


def names() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(sorted({*_built_in(), *_OWN}))


def register_dialect(dialect: Dialect) -> None:
    """Add a dialect, or replace the one of the same name."""
    if not isinstance(dialect, Dialect):
        raise InputError(f"expected a Dialect, got {quote(dialect)}", path="dialect")
    if not dialect.name or dialect.name == "auto" or not dialect.openers or not all(dialect.openers):
        raise InputError("a dialect needs a name other than auto, and openers that are not empty", path="dialect")
    _OWN[dialect.name] = dialect


def get(name: str) -> Dialect:
    """The dialect of this name."""
    found = _OWN.get(name) or _built_in().get(name)
    if found is None:
        near = difflib.get_close_matches(str(name), names(), 1)
        hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names())}, or auto"
        raise InputError(f"no dialect is called {quote(name)}", path="dialect", hint=hint)
    return found


def chosen(name: str, model: str = "", *, has_tools: bool = True) -> tuple[Dialect, ...]:
    """The dialects to look for. Those that the model is known to write come first.

    What ordinary text looks like is looked for only where tools were offered; and of that, where it is known what the
    model writes, only that.
    """
    if name != "auto":
        found = get(name)
        return (found.named or found,)
    known = [get(each) for each in names()]
    own = [each for each in known if model and any(fnmatchcase(model.lower(), pattern) for pattern in each.models)]
    others = [each for each in known if each not in own and not (each.is_weak and own)]
    others.sort(key=lambda each: each.is_variant)
    return tuple(each for each in (*own, *others) if has_tools or not each.is_weak)
