"""`lint`: a request body and a target → what the target would refuse.

This file is what `import toolglot` loads of the referee; the judge itself comes with the first body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.errors import InputError, JSONError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS, MAX_DEPTH
from toolglot.profiles import Overrides
from toolglot.profiles.loader import Confidence


class Violation(Struct, frozen=True, kw_only=True):
    """One thing that the target would refuse.

    path: where, as a JSON path.
    message: what the provider would say.
    hint: what to do about it.
    wording: whether the message is the provider's own or ours.
    target: the provider.
    """

    rule: str
    """The id of the rule, or `shape` if the body does not have the form of the protocol."""
    path: str
    message: str
    hint: str = ""
    wording: Literal["provider", "ours"] = "ours"
    key: str = ""
    """The key of the profile, if there is one."""
    target: str = ""
    confidence: Confidence = "documented"
    """How certain the rule is; `default`: no profile states it, the conservative default applies."""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.path}: {self.message}{hint} [{self.rule}]"


def lint(
    body: Mapping[str, Any] | bytes | bytearray | str,
    target: str,
    model: str = "",
    overrides: Overrides | None = None,
    *,
    defaults: bool = False,
) -> tuple[Violation, ...]:
    """What a target would refuse of a request body, in the order of the body.

    The model is that of the body, unless `model` names one. The rules are those that are known for the target; with
    `defaults`, the conservative defaults apply too. An unknown name raises `UnknownNameError`.

    body: the JSON, as bytes or a string, or the parsed object.
    target: the provider that it is for.
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    """
    value = _value(body)
    named = value.get("model") if isinstance(value, dict) and not model else model
    # A model name that is too long for a profile gets the provider's rules.
    model_name = named if isinstance(named, str) and (model or len(named) <= profiles.MAX_NAME) else ""
    profile = profiles.get(target, model_name, overrides=overrides, kind="target")
    from toolglot.referee.judging import judge  # noqa: PLC0415 - so that importing toolglot stays quick

    return judge(value, profile if defaults else profile.as_known())


def _value(body: object) -> Any:
    if isinstance(body, bytes | bytearray | str):
        return _parse(body)
    if isinstance(body, dict):
        return body
    if isinstance(body, Mapping):
        return dict(body)
    raise InputError(f"expected a request body, got {quote(body)}", path="body", hint="an object, or JSON")


def _parse(text: bytes | bytearray | str) -> Any:
    if len(text) > DEFAULT_LIMITS.max_bytes:
        raise LimitError(f"larger than max_bytes ({DEFAULT_LIMITS.max_bytes})", path="body", hint="send a smaller body")
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise LimitError(
            f"nests deeper than max_depth ({MAX_DEPTH})", path="body", hint="send a flatter body"
        ) from None
    except UnicodeEncodeError as error:
        reason = "not JSON: half of a surrogate pair, which UTF-8 cannot encode"
        raise JSONError(reason, position=error.start, hint="send valid JSON") from None
    except (msgspec.DecodeError, ValueError) as error:
        at = re.search(r"byte (\d+)", str(error))
        raise JSONError(f"not JSON: {error}", position=int(at[1]) if at else 0, hint="send valid JSON") from None
