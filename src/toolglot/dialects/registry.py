"""All dialects by name: the built-in ones and those that users register."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from typing import Any, Final

from msgspec.structs import replace

from toolglot.dialects import known
from toolglot.dialects.dialect import Dialect
from toolglot.dialects.writers.writing_forms import Writing
from toolglot.errors import InputError, UnknownNameError, closest_names, quote, unknown_name
from toolglot.profiles.target_names import normalize_name

_OWN: dict[str, Dialect] = {}
_TICK: Final = "`"
"""What code begins with. Under `auto`, code is recognised before any opener."""
_AUTO: Final = "auto"


@cache
def _built_in() -> dict[str, Dialect]:
    modules = [import_module(f"{known.__name__}.{found.name}") for found in pkgutil.iter_modules(known.__path__)]
    return {dialect.name: dialect for module in modules for dialect in module.DIALECTS}


def names() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(sorted({*_built_in(), *_OWN}))


# --- dialects of one's own --------------------------------------------------------------------------


def register_dialect(dialect: Dialect) -> None:
    """Add a dialect, or replace the one of the same name. If it has no `writing`, the one of before stays."""
    if not isinstance(dialect, Dialect):
        raise InputError(f"expected a Dialect, got {quote(dialect)}", path="dialect")
    if not isinstance(dialect.name, str) or dialect.name in ("", "auto"):
        raise InputError("a dialect needs a name other than auto", path="dialect.name")
    others = [get(name) for name in names() if name != dialect.name]
    _check(dialect, others, "dialect")
    if dialect.named is not None:
        _check(dialect.named, [], "dialect.named")
    if dialect.writing is not None:
        _check_writing(dialect.writing, "dialect.writing")
    elif dialect.name in names():
        dialect = replace(dialect, writing=get(dialect.name).writing)
    _OWN[dialect.name] = dialect


def register_writing(dialect: str, writing: Writing) -> None:
    """Replace how a dialect is written."""
    _check_writing(writing, "writing")
    found = get(dialect)
    _OWN[found.name] = replace(found, writing=writing)


def _check_writing(writing: Writing, path: str) -> None:
    if not isinstance(writing, Writing) or not writing.forms or not all(map(callable, writing.forms)):
        hint = 'Writing((as_object("<call>", "</call>"),))'
        raise InputError(f"expected a Writing with a form, got {quote(writing)}", path=path, hint=hint)


def _check(dialect: Dialect, others: list[Dialect], path: str) -> None:
    """Refuse a dialect that could not be read next to the others."""
    if not isinstance(dialect, Dialect):
        raise InputError(f"expected a Dialect, got {quote(dialect)}", path=path)
    if not dialect.openers:
        raise InputError("a dialect needs openers", path=f"{path}.openers", hint='openers=("<call>",)')
    for field in ("openers", "closers", "strong", "prompted", "thought_ends", "models"):
        _check_texts(getattr(dialect, field), f"{path}.{field}")
    if not isinstance(dialect.thinking, tuple) or not all(_is_pair(each) for each in dialect.thinking):
        raise InputError("expected pairs of an opener and a closer", path=f"{path}.thinking")
    for field in ("strong", "prompted"):
        unknown = [each for each in getattr(dialect, field) if each not in dialect.openers]
        if unknown:
            raise InputError(f"{quote(unknown[0])} is not one of the openers", path=f"{path}.{field}")
    try:
        re.compile(dialect.inside)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise InputError(f"not a regular expression: {error}", path=f"{path}.inside") from None
    if not callable(dialect.read):
        hint = "a generator function: read(reader, opener)"
        raise InputError(f"expected a function, got {quote(dialect.read)}", path=f"{path}.read", hint=hint)
    _check_marks(dialect, others, path)


def _check_texts(value: Any, path: str) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) and each for each in value):
        raise InputError("expected a tuple of non-empty strings", path=path, hint='("<call>",), with the comma')


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) and each for each in value)


def _marks_of(dialects: Iterable[Dialect]) -> Iterator[tuple[str, str]]:
    """The marks that a text is searched for, each with its dialect."""
    for each in dialects:
        for mark in (*each.openers, *each.closers, *(opener for opener, _ in each.thinking)):
            if not mark.startswith(_TICK):
                yield mark, each.name


def _check_marks(dialect: Dialect, others: list[Dialect], path: str) -> None:
    """Refuse a mark that is the beginning of another: a text would be ambiguous."""
    own, known_marks = [*_marks_of([dialect])], [*_marks_of([dialect, *others])]
    for mark, _ in own:
        for other, whose in known_marks:
            shorter, longer = sorted((mark, other), key=len)
            if shorter != longer and longer.startswith(shorter):
                owner = "its own" if whose == dialect.name else f"that of the dialect {whose}"
                relation = "is the beginning of" if mark == shorter else "begins with"
                raise InputError(
                    f"the mark {quote(mark)} of the dialect {dialect.name} {relation} {quote(other)}, {owner}",
                    path=f"{path}.openers",
                    hint="use a shorter or longer mark, and say what follows with inside=",
                )


# --- finding ----------------------------------------------------------------------------------------


def get(name: str) -> Dialect:
    """The dialect of this name, in any case, with `-`, `.` and spaces read as `_`."""
    if not isinstance(name, str):
        raise InputError(f"expected the name of a dialect, got {quote(name)}", path="dialect")
    found = _OWN.get(name) or _built_in().get(name) or _built_in().get(normalize_name(name))
    if found is None:
        found = next((own for known, own in _OWN.items() if normalize_name(known) == normalize_name(name)), None)
    if found is None:
        raise _unknown(name)
    return found


def _unknown(name: str) -> UnknownNameError:
    """The error for an unknown name. It suggests dialects with a similar name, or whose models have one."""
    if is_auto(name):
        hint = "auto detects the dialect of a text; to write, name one"
        return unknown_name("dialect", name, names(), suggestions=(), hint=hint)
    word = name.lower()
    known = [(each, (each, *get(each).models)) for each in names()]
    alike = [each for each, called in known if len(word) > 2 and any(word in one for one in called)]
    close = closest_names(word, names())[:1] or tuple(alike)
    return unknown_name("dialect", name, names(), suggestions=close, hint="`toolglot parse --list` lists them")


def is_auto(name: object) -> bool:
    """Whether a name means that the dialect is to be detected."""
    return name == _AUTO or (isinstance(name, str) and normalize_name(name) == _AUTO)


def select_dialects(name: str, model: str = "", *, has_tools: bool = True) -> tuple[Dialect, ...]:
    """The dialects to look for, those of the model first, since it may write others too.

    Weak ones, which ordinary text looks like, are included only if tools were offered.
    """
    if not isinstance(model, str):
        raise InputError(f"expected a string, got {quote(model)}", path="model", hint="the name of the model, or ''")
    if not is_auto(name):
        found = get(name)
        return (found.named or found,)
    known = [get(each) for each in names()]
    own = own_dialects(known, model)
    others = sorted((each for each in known if each not in own), key=lambda each: each.is_variant)
    listed = [each if has_tools else _strong_only(each) for each in (*own, *others)]
    return tuple(each for each in listed if each.openers)


def own_dialects(dialects: Iterable[Dialect], model: str) -> tuple[Dialect, ...]:
    """Those whose models include this one."""
    name = model.lower()
    return tuple(each for each in dialects if name and any(fnmatchcase(name, pattern) for pattern in each.models))


def _strong_only(dialect: Dialect) -> Dialect:
    """A dialect with only the openers that no ordinary text has."""
    return replace(dialect, openers=dialect.strong) if dialect.is_weak else dialect
