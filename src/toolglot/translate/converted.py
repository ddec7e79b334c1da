"""What conversions of requests and of replies share: a body with its report, and how bodies and names are read.

Law: whatever a caller passes, the result is a value or an error of toolglot that says where the mistake is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import msgspec

from toolglot import jsontext, profiles
from toolglot.conversation.report import Report
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import Limits
from toolglot.policy import Policy
from toolglot.profiles import Overrides, Profile

P = ParamSpec("P")
T = TypeVar("T")

Body = bytes | str | Mapping[str, Any]
"""A body as JSON, or as the object that it means."""
Fields = dict[str, Any]


class Converted:
    """A body in another protocol, and what was changed.

    body: the body, as an object.
    report: what was changed.
    data: the same as bytes, where they are known already.
    """

    def __init__(self, body: Fields, report: Report, *, data: bytes | None = None) -> None:
        self._body = body
        self.report = report
        self._data = data
        """The original bytes if nothing changed; otherwise written when first needed."""

    @property
    def body(self) -> Fields:
        return self._body

    @property
    def data(self) -> bytes:
        """The body as bytes: the original ones, if nothing was changed."""
        if self._data is None:
            self._data = self._encode()
        return self._data

    def drop_body(self) -> None:
        """Forget the body: it was sent. What undoes names and ids in the reply stays."""
        self._body, self._data = {}, b""

    def _encode(self) -> bytes:
        return encode_body(self.body)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.report)} changes>"


def depth_error() -> LimitError:
    """The error for a value that nests too deeply for the stack."""
    return LimitError("nests too deeply", hint="flatten it")


def bounded_depth(run: Callable[P, T]) -> Callable[P, T]:
    """Turn a RecursionError into an error of ours. Hot functions do this themselves: a decorator costs time."""

    @functools.wraps(run)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return run(*args, **kwargs)
        except RecursionError:
            raise depth_error() from None

    return bounded


def profile_named(name: str, model: str, overrides: Overrides | None, kind: str) -> Profile:
    """The profile of a name, cached."""
    try:
        return _known_profile(name, model, overrides, kind)
    except TypeError:  # not hashable
        return profiles.get(name, model, overrides=overrides, kind=kind)


@functools.lru_cache(maxsize=1024)
def _known_profile(name: str, model: str, overrides: Overrides | None, kind: str) -> Profile:
    return profiles.get(name, model, overrides=overrides, kind=kind)


def check_policy(policy: object) -> None:
    if not isinstance(policy, Policy):
        raise InputError(f"expected a Policy, got {quote(policy)}", path="policy", hint='Policy(required="keep")')


def parse_body(body: Body, limits: Limits, reading: list[str] | None = None) -> Fields:
    """A body as an object. The fast parser reads what it can; the careful one fixes or explains the rest."""
    if type(body) is not bytes and isinstance(body, Mapping):
        # A copy of plain values, which does not depend on the caller's types or on later changes to the object.
        cloned = jsontext.clone(dict(body), limits=limits)
        if reading is not None:
            reading += [f"{change.path}: {change.reason}" for change in cloned.changes]
        plain: Fields = cloned.value
        return plain
    if not isinstance(body, bytes | str):
        raise InputError(f"expected bytes, a string or an object, got {quote(body)}", path="body")
    try:
        value = jsontext.parse_plain(body, limits=limits)
    except LimitError:
        raise
    except (ValueError, RecursionError):
        parsed = jsontext.parse(body, limits=limits)
        value = parsed.value
        if reading is not None:
            reading += parsed.repairs
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, got {quote(value)}")
    return value


def encode_body(body: Fields) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be written as JSON: {error}") from None
