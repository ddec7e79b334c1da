"""How a protocol wrote a value, where the value alone does not say it.

A codec that reads a body keeps its meaning in canonical fields, and unknown fields in `extra`. The rest is
spelling: content as a string or as a list of parts, a type that was not written, unknown fields of an inner object. The
codec keeps it in a struct of its own, the *form* of the value. `protocols/<name>/form.py` defines them.

Law: a form is for the codec of its protocol. Other code carries it, drops it, or reads one of the properties of `Form`,
whose defaults mean "nothing special". To drop a form changes the spelling, not the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct

from toolglot.errors import quote

TAG: Final = "form"
"""The field that says which struct a form is: the protocol, a dot, and a name."""


class CacheMarker(Struct, frozen=True):
    """A prompt is to be cached up to and including the value with this marker.

    ttl: how long, in the provider's words (`5m`, `1h`); None: as long as the provider does by default.
    more: the names of its other fields.
    is_malformed: whether it is not an object of the protocol's type, or asks for a time that is not a string.
    """

    ttl: str | None = None
    more: tuple[str, ...] = ()
    is_malformed: bool = False


class CacheMarking(Struct, frozen=True, kw_only=True):
    """How a protocol writes cache markers (`conversation/cache_markers.py`)."""

    field: str
    """The field of a marked value that holds the marker."""
    type: str
    """The type of every marker."""
    block: str = ""
    """The kind of a block that is nothing but a marker; empty: there is no such block."""
    is_of_hosts: bool = False
    """Whether only some hosts of the protocol have markers."""
    mark_tool: Callable[[Form | None, dict[str, Any]], Form] | None = None
    """Puts the block of a marker behind a tool, into its form; None: a tool has the field."""
    marks_calls: bool = True
    """Whether a call can be marked."""
    marks_parts: bool = False
    """Whether a result is marked at the last part of its content."""


class Form:
    """How a protocol wrote a value.

    Values are annotated with this class, which is not a struct, so that msgspec calls `read_form` to choose the struct.
    """

    __slots__ = ()

    protocol: ClassVar[str] = ""
    """Whose form it is."""
    inner_rests: ClassVar[tuple[str, ...]] = ()
    """The fields of the form that hold unknown fields of objects inside the value."""

    def unknown_fields(self) -> Iterable[tuple[str, Any]]:
        """The unknown fields of objects inside the value. Those of the value itself are in `extra`."""
        if not self.inner_rests:
            return ()
        rests = [getattr(self, name) for name in self.inner_rests]
        return [field for rest in rests if rest for field in rest.items()]

    # --- of a turn ----------------------------------------------------------------------------------

    @property
    def prompt_position(self) -> Literal["field", "message"] | None:
        """Where a prompt was, if its protocol has two ways: in a field of the request, or among the messages."""
        return None

    @property
    def is_string(self) -> bool:
        """Whether content was written as a string, if its protocol also has a list."""
        return False

    def as_prompt_field(self) -> Form | None:
        """The form of the same prompt in the field of the request."""
        return self

    # --- of a block ---------------------------------------------------------------------------------

    @property
    def is_only_call(self) -> bool:
        """Whether a call came in a way of writing that allows one call only, and therefore has no ids."""
        return False

    @property
    def document_name(self) -> str | None:
        """The name of a document that other protocols read as text; empty if it has none."""
        return None

    def with_document_name(self, name: str) -> Form:  # noqa: ARG002
        """The form with another name for its document."""
        return self

    def as_common(self) -> Form | None:
        """The form without what only some hosts of the protocol understand."""
        return self

    # --- of a tool and of settings ------------------------------------------------------------------

    @property
    def cache_markers(self) -> tuple[CacheMarker, ...]:
        """The cache markers that the form holds."""
        return ()

    def without_cache_markers(self) -> Form | None:
        return self

    @property
    def schema_field(self) -> str | None:
        """The field that a schema was in, if its protocol has several."""
        return None

    @property
    def is_mode_unset(self) -> bool:
        """Whether a tool choice only says if calls may be parallel."""
        return False

    @property
    def limit_field(self) -> str | None:
        """The field that limits the length of the reply, if its protocol has several."""
        return None

    @property
    def seed_field(self) -> str | None:
        """The field with the seed of sampling, if hosts of its protocol differ in it."""
        return None

    def without_limit_field(self) -> Form | None:
        return self

    def without_seed_field(self) -> Form | None:
        return self

    @property
    def verbosity(self) -> Any:
        """How much the reply is to say, if its protocol has that in an object of the request."""
        return None

    def without_verbosity(self) -> Form | None:
        return self

    # --- of a reply ---------------------------------------------------------------------------------

    @property
    def stop_text(self) -> str | None:
        """The provider's own word for why the reply ended."""
        return None

    def without_stop_text(self) -> Form | None:
        """The form for a reply that ended for another reason than its provider says."""
        return self

    def answer_fields(self) -> Mapping[str, Any]:
        """The unknown fields of the object around the message, if its protocol has one (a choice, a candidate)."""
        return {}


class FormStruct(Form, Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False, tag_field=TAG):
    """The base of all forms. Each has a tag that starts with the name of its protocol: `ollama.message`."""


# --- the registry -----------------------------------------------------------------------------------


class FormLibrary(Struct, frozen=True):
    """The forms of a protocol."""

    types: Mapping[str, type[FormStruct]]
    """The structs, by their tags."""
    cache_marking: CacheMarking | None = None
    """How it writes cache markers; None: it has none."""
    from_notes: Callable[[Any, dict[str, Any]], dict[str, Any]] | None = None
    """The fields of a value that its notes of version 1 are (`version_1.py`), as JSON."""


class FormLoader(Struct, frozen=True):
    """Finds the forms of protocols. `protocols` sets it, since this package must not import `protocols`."""

    load: Callable[[str], FormLibrary]
    """The forms of a protocol by its name; none for an unknown name."""
    names: Callable[[], Iterable[str]]
    """The names of all protocols."""


_loaders: Final[list[FormLoader]] = []


def set_loader(loader: FormLoader) -> None:
    _loaders[:] = [loader]
    library.cache_clear()


@cache
def library(protocol: str) -> FormLibrary:
    """The forms of a protocol; none if its name is unknown."""
    return _loaders[0].load(protocol) if _loaders else FormLibrary({})


def protocols() -> tuple[str, ...]:
    """The names of all protocols."""
    return tuple([name for loader in _loaders for name in loader.names()])


def read_form(kind: type, value: Any) -> Any:
    """A form from JSON. msgspec calls it for every field that is annotated with `Form`."""
    if kind is not Form:
        raise NotImplementedError(f"{kind} is not a type of the canonical form")
    if type(value) is not dict:
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    tag = value.get(TAG)
    found = library(tag.partition(".")[0]).types.get(tag) if type(tag) is str else None
    if found is None:
        raise ValueError(f"Unknown form {quote(tag)}")
    try:
        return msgspec.convert(value, found)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")  # msgspec adds the path of the form itself
        raise ValueError(f"{message} in its {where.strip('.`')}" if where else message) from None


def schema_reference(kind: type) -> dict[str, Any]:
    """The JSON Schema of a field that holds a form, for msgspec: a reference to `schema_definitions`."""
    if kind is not Form:
        raise NotImplementedError(f"{kind} is not a type of the canonical form")
    return {"$ref": "#/$defs/Form"}


def schema_definitions() -> dict[str, Any]:
    """The JSON Schemas of the forms of all protocols, and that of `Form`: one of them."""
    kinds = [kind for loader in _loaders for name in loader.names() for kind in library(name).types.values()]
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    described = {"title": "Form", "description": (Form.__doc__ or "").partition("\n")[0]}
    return {"Form": {**described, "anyOf": list(references)}, **definitions}
