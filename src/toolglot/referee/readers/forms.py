"""The form of a JSON value as a table, and what differs from it.

A reader describes its protocol with these forms, following the provider's own definitions, and passes the body to
`look`. A form never raises and never looks deeper than its table: a value of the wrong form is one `MalformedPart`, and
what is inside it is not checked. Fields that a table does not have are listed separately, because not every target
refuses them.

Law: linear in the body; at most `MAX_FINDINGS` findings of each sort.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from toolglot.errors import quote
from toolglot.referee.finding import step
from toolglot.referee.view import MalformedPart, Setting, ToolView

MAX_FINDINGS: Final = 1000
_LISTED_VALUES: Final = 12
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


class FormFaults:
    """What was found: parts of the wrong form, and fields that the protocol does not have, by path."""

    __slots__ = ("_extras", "count", "shapes")

    def __init__(self) -> None:
        self.shapes: list[MalformedPart] = []
        self.count: int = 0
        self._extras: dict[str, list[str]] = {}

    def wrong(self, path: str, message: str, rule: str = "") -> None:
        if len(self.shapes) < MAX_FINDINGS:
            self.shapes.append(MalformedPart(path, message, rule))

    def unknown(self, path: str, name: str) -> None:
        if self.count < MAX_FINDINGS:
            self.count += 1
            self._extras.setdefault(path, []).append(name)

    def take(self, path: str) -> tuple[str, ...]:
        """The unknown fields of the object at a path, for that part of the view."""
        return tuple(self._extras.pop(path, ()))

    def unknown_paths(self) -> tuple[str, ...]:
        """The paths of the unknown fields that were not taken."""
        return tuple(step(path, name) for path, names in self._extras.items() for name in names)


class JsonForm(Protocol):
    def check(self, value: Any, path: str, found: FormFaults) -> None: ...


def look(value: Any, form: JsonForm, path: str = "$") -> FormFaults:
    """Everything in a value that differs from a form."""
    found = FormFaults()
    form.check(value, path, found)
    return found


class Plain(Struct, frozen=True):
    """A value of a JSON type."""

    what: str
    types: tuple[type, ...]
    at_least: float | None = None
    """The smallest number, or the shortest length."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not self._is_type(value) or (
            self.at_least is not None and (value if isinstance(value, int | float) else len(value)) < self.at_least
        ):
            found.wrong(path, f"expected {self.what}, got {quote(value)}")

    def _is_type(self, value: Any) -> bool:
        if isinstance(value, bool):
            return bool in self.types
        if isinstance(value, float) and float not in self.types:
            return int in self.types and value.is_integer()
        return isinstance(value, self.types)


class Anything(Struct, frozen=True):
    """A value that is the caller's own."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        pass


class Maybe(Struct, frozen=True):
    """A value that may be null."""

    form: JsonForm

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if value is not None:
            self.form.check(value, path, found)


class Numeric(Struct, frozen=True):
    """A number as protocol buffers read it: also as a string."""

    what: str = "a number"
    pattern: str = r"-?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,4})?"
    whole: bool = False

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if isinstance(value, str):
            is_number = re.fullmatch(self.pattern, value) is not None
        elif isinstance(value, float):
            is_number = not self.whole or value.is_integer()
        else:
            is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number:
            found.wrong(path, f"expected {self.what}, got {quote(value)}")


class Bytes(Struct, frozen=True):
    """Bytes as base64, in either alphabet, with or without padding."""

    rule: str = ""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, str):
            found.wrong(path, f"expected bytes as base64, got {quote(value)}", self.rule)
        elif len(value.rstrip("=")) % 4 == 1 or not _BASE64.fullmatch(value):
            found.wrong(path, "expected bytes as base64", self.rule)


class Values(Struct, frozen=True):
    """One of a few strings."""

    allowed: tuple[str, ...]
    rule: str = ""
    any_case: bool = False
    numbers: bool = False
    """Whether a number may mean a value too, as in protocol buffers."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        spelled = value.upper() if self.any_case and isinstance(value, str) else value
        if isinstance(spelled, str) and spelled in self.allowed:
            return
        if self.numbers and type(value) is int and value >= 0:
            return
        listed = ", ".join(self.allowed[:_LISTED_VALUES]) + (", …" if len(self.allowed) > _LISTED_VALUES else "")
        found.wrong(path, f"expected one of {listed}; got {quote(value)}", self.rule)


class Each(Struct, frozen=True):
    """A list."""

    form: JsonForm

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, list):
            found.wrong(path, f"expected a list, got {quote(value)}")
            return
        for index, member in enumerate(value):
            self.form.check(member, f"{path}[{index}]", found)


class OneOrEach(Struct, frozen=True):
    """A list of objects, or one object instead of the list."""

    form: JsonForm

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if isinstance(value, dict):
            self.form.check(value, path, found)
        else:
            Each(self.form).check(value, path, found)


class Keyed(Struct, frozen=True):
    """An object whose keys are the caller's own."""

    form: JsonForm

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, dict):
            found.wrong(path, f"expected an object, got {quote(value)}")
            return
        for key, member in value.items():
            self.form.check(member, step(path, key), found)


class Fields(Struct, frozen=True):
    """An object with known fields."""

    known: Mapping[str, JsonForm]
    required: tuple[str, ...] = ()
    rules: Mapping[str, str] = {}
    """The ids of rules that require a field."""
    null_is_absent: bool = False

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, dict):
            found.wrong(path, f"expected an object, got {quote(value)}")
            return
        for name in self.required:
            if name not in value:
                found.wrong(step(path, name), f"{name} is missing", self.rules.get(name, ""))
        for key, member in value.items():
            form = self.known.get(key)
            if form is None:
                found.unknown(path, key)
            elif member is not None or not self.null_is_absent or key in self.required:
                form.check(member, step(path, key), found)


def form_of(known: Mapping[str, JsonForm], *required: str, rules: Mapping[str, str] | None = None) -> Fields:
    """An object with these fields."""
    return Fields(known, required, rules or {})


def lenient_form(known: Mapping[str, JsonForm], *required: str, rules: Mapping[str, str] | None = None) -> Fields:
    """An object of an API that reads null as missing."""
    return Fields(known, required, rules or {}, null_is_absent=True)


def lenient_typed_form(known: Mapping[str, JsonForm], *required: str) -> Fields:
    """The same, with a `type` that is already known."""
    return lenient_form({"type": ANYTHING, **known}, *required)


class Only(Struct, frozen=True):
    """An object with exactly one of the known fields, which is its kind."""

    known: Mapping[str, JsonForm]
    rule: str = ""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, dict):
            found.wrong(path, f"expected an object, got {quote(value)}")
        elif len(value) != 1 or next(iter(value)) not in self.known:
            listed = ", ".join(list(self.known)[:_LISTED_VALUES])
            found.wrong(path, f"expected exactly one of {listed}", self.rule)
        else:
            ((key, member),) = value.items()
            self.known[key].check(member, step(path, key), found)


class Typed(Struct, frozen=True):
    """An object whose form depends on one of its fields."""

    table: Mapping[str, JsonForm]
    key: str = "type"
    otherwise: JsonForm | None = None
    """Its form when the field is missing."""
    rule: str = ""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        if not isinstance(value, dict):
            found.wrong(path, f"expected an object, got {quote(value)}")
        elif self.key not in value:
            if self.otherwise is None:
                found.wrong(step(path, self.key), f"{self.key} is missing")
            else:
                self.otherwise.check(value, path, found)
        else:
            kind = value[self.key]
            form = self.table.get(kind) if isinstance(kind, str) else None
            if form is None:
                Values(tuple(self.table), self.rule).check(kind, step(path, self.key), found)
            else:
                form.check(value, path, found)


class ByKind(Struct, frozen=True):
    """A value of one of several JSON types, each with its own form."""

    what: str
    table: Mapping[type, JsonForm]
    rule: str = ""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        kind = bool if isinstance(value, bool) else next((kind for kind in self.table if isinstance(value, kind)), None)
        form = self.table.get(kind) if kind is not None else None
        if form is None:
            found.wrong(path, f"expected {self.what}, got {quote(value)}", self.rule)
        else:
            form.check(value, path, found)


class Also(Struct, frozen=True):
    """A form, and a demand that concerns several fields of the object at once."""

    form: JsonForm
    demand: Callable[[dict[str, Any], str, FormFaults], None]

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        self.form.check(value, path, found)
        if isinstance(value, dict):
            self.demand(value, path, found)


TEXT: Final = Plain("a string", (str,))
SOME_TEXT: Final = Plain("a string that is not empty", (str,), at_least=1)
FLAG: Final = Plain("true or false", (bool,))
NUMBER: Final = Plain("a number", (int, float))
WHOLE: Final = Plain("a whole number", (int,))
OBJECT: Final = Plain("an object", (dict,))
LIST: Final = Plain("a list", (list,))
ANYTHING: Final = Anything()
TEXTS: Final = Each(TEXT)


# --- Reading what has the right form ----------------------------------------------------------------


def fields(value: Any) -> dict[str, Any]:
    """The fields of an object; none of anything else."""
    return value if isinstance(value, dict) else {}


def members(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The members of a list and their paths; none of anything else."""
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield f"{path}[{index}]", member


def objects(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those members of a list that are objects."""
    return ((inner_path, member) for inner_path, member in members(value, path) if isinstance(member, dict))


def one_or_objects(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same, or one object instead of the list."""
    return iter([(path, value)]) if isinstance(value, dict) else objects(value, path)


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def flag_of(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def named_schema(form: dict[str, Any], path: str) -> ToolView:
    """The schema of an output, with its name and the switch `strict`, as OpenAI writes it."""
    return ToolView(
        path=path,
        name=text_of(form.get("name")),
        schema=form.get("schema"),
        schema_path=f"{path}.schema",
        strict=flag_of(form.get("strict")),
    )


def setting(wire: dict[str, Any], field: str, path: str = "$") -> Setting | None:
    """A setting, if the request has it."""
    return None if wire.get(field) is None else Setting(f"{path}.{field}", wire[field])


def settings(wire: dict[str, Any], names: Mapping[str, str], path: str = "$") -> dict[str, Setting]:
    """The settings of the request, by canonical name."""
    found = ((name, setting(wire, field, path)) for field, name in names.items())
    return {name: one for name, one in found if one is not None}
