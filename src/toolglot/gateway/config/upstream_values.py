"""Settings that an upstream and a name of `[models]` share: headers, and the profile.

Law: headers can be sent, and the profile exists. Keys are in the environment and never in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from toolglot import profiles
from toolglot.errors import InputError, UnknownNameError
from toolglot.gateway.config.checks import wrong_header
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.variables import ENV, is_sendable, is_variable, shown_variable, variable
from toolglot.masking import SECRET_HEADERS, mask
from toolglot.profiles import Overrides
from toolglot.upstream.secret import Secret

Seconds = Annotated[float, Meta(gt=0, le=86_400, title="a number of seconds above 0")]

HEADERS = Annotated[
    dict[str, str],
    Meta(
        max_length=100,
        title="a table of strings",
        description='Headers to send; `"env:NAME"` is the value of a variable.',
    ),
]


def read_headers(table: Mapping[str, str], environ: Mapping[str, str], text: ConfigText, *at: str) -> dict[str, Secret]:
    """Headers by lowercase name."""
    headers: dict[str, Secret] = {}
    for name, value in table.items():
        wrong = wrong_header(name)
        if wrong is not None:
            raise text.error(wrong.message, *at, name, hint=wrong.hint)
        is_named = value.startswith(ENV)
        if not is_named and (name.lower() in SECRET_HEADERS or mask(value) != value):
            message, hint = "this looks like a key, which the file must not contain", f'write "{ENV}NAME"'
            raise text.error(message, *at, name, hint=hint)
        resolved = read_variable(value, environ, text, *at, name) if is_named else value
        if name.lower() in headers or not is_sendable(resolved):
            raise text.error("a header may be set once, to one line of ASCII characters", *at, name)
        headers[name.lower()] = Secret(resolved)
    return headers


def read_target(name: str, overrides: Overrides | None, text: ConfigText, *at: str) -> str:
    """A profile under its own name."""
    try:
        return profiles.find(name, overrides=overrides, kind="profile")
    except UnknownNameError as error:
        raise text.name_error(error, *at) from None
    except InputError as error:
        raise text.error(error.message, *at, hint=error.hint) from None


def read_variable(value: str, environ: Mapping[str, str], text: ConfigText, *at: str) -> str:
    """The value of `env:NAME`."""
    name = value.removeprefix(ENV)
    found = variable(environ, name) if is_variable(name) else ""
    if not found:
        raise text.error(f"{shown_variable(name)} is not set in the environment", *at)
    return found
