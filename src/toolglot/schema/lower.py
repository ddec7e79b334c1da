"""JSON Schema of tool parameters, lowered to what a target accepts.

    lowered = lower(schema, profiles.get("gemini"))
    lowered.schema, lowered.losses, lowered.strict

Laws: a schema that the target accepts is returned as the same object. Nothing that the original accepts becomes
forbidden. What cannot be expressed moves into a description and is reported. Lowering twice is the same as lowering
once; the input is never changed; the result is bounded whatever the references say.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS
from toolglot.profiles import Profile
from toolglot.schema.fitness import Fitness
from toolglot.schema.keywords import Schema
from toolglot.schema.references import Loss, OpenedSchema, Work
from toolglot.schema.steps import lower_node
from toolglot.schema.strict import strict_form

__all__ = ["Loss", "Lowered", "lower"]

MAX_VALUES: Final = 50_000
"""Values in a schema that has to be lowered."""
_LIMITS: Final = msgspec.structs.replace(DEFAULT_LIMITS, max_nodes=MAX_VALUES, max_bytes=8 * 1024 * 1024)


class Lowered(Struct, frozen=True):
    """A schema that the target accepts (None: the tool is sent without one), what it no longer says, and
    whether it is for strict mode."""

    schema: Schema | None
    losses: tuple[Loss, ...] = ()
    strict: bool = False


def lower(schema: Schema | None, profile: Profile, *, strict: bool = False) -> Lowered:
    """The schema of a tool's parameters for a target.

    With `strict`, strict mode is kept if the target has it and nothing is lost; `Lowered.strict` says whether it
    was. Without it, strict mode is never switched on.
    """
    if not isinstance(profile, Profile):
        raise InputError(f"expected a Profile, got {quote(profile)}", path="profile", hint="profiles.get(name)")
    if schema is not None and not isinstance(schema, dict):
        raise InputError(f"expected a JSON Schema object, got {quote(schema)}", hint="the parameters of a tool")
    plain = _without_strict(schema, profile)
    if not strict or profile.tools.strict in ("omit", "only_false", "request") or plain.losses:
        return plain
    if plain.schema is None:
        return Lowered(None, (), strict=True)
    kept = strict_form(plain.schema, profile.schema)
    return plain if kept is None else Lowered(kept, plain.losses, strict=True)


def _without_strict(schema: Schema | None, profile: Profile) -> Lowered:
    omits = profile.tools.omit_empty_parameters
    if schema is None:
        needed = profile.tools.parameters_required and not omits
        return Lowered({"type": "object", "properties": {}} if needed else None)
    if Fitness(profile.schema, schema).takes_root(schema) and not (omits and not schema.get("properties")):
        return Lowered(schema)
    plain, changes = _plain(schema)
    work = Work(profile.schema, plain, omits_empty=omits)
    for change in changes:
        work.lose((), "", f"{change.path}: {change.reason}")
    out = lower_node(work, plain, OpenedSchema((), 0, (), is_root=True))
    return Lowered(None if omits and not out.get("properties") else out, work.losses())


def _plain(schema: Schema) -> tuple[Any, tuple[jsontext.Change, ...]]:
    """The schema as JSON has it: bounded, without circles and foreign objects."""
    try:
        cloned = jsontext.clone(schema, limits=_LIMITS)
    except LimitError as error:
        raise LimitError(f"the schema is too large: {error.message}", path=error.path, hint="simplify it") from None
    return cloned.value, cloned.changes
