"""The providers whose addresses toolglot knows, as data: `providers.toml` says what each key means.

    provider = PROVIDERS["mistral"]
    url = url_of(provider, environ=os.environ)
    key = key_of(provider, os.environ)

Law: nothing here uses the network or reads the environment by itself: the caller passes it in.
An address that is not known is an `InputError` that says which setting or variables it needs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.protocols.base import Auth
from toolglot.upstream.aws_signing import AwsCredentials

_FILE: Final = Path(__file__).with_name("providers.toml")
_PLACEHOLDER: Final = re.compile(r"\{([a-z]+)\}")
_PART: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,126}[A-Za-z0-9])?")
"""A region, a project: nothing that could lead to another host."""
_WIDE: Final = re.compile(r"(?<=://)(global|us|eu)-aiplatform\.googleapis\.com(?=/)")
_WIDE_HOSTS: Final = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
"""Google's locations that are not a single region have hosts of another form."""
MAX_URL: Final = 2_048


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider, and what is needed to call it."""

    name: str
    target: str
    """Its profile."""
    title: str
    url: str = ""
    """The base address; empty where it differs between accounts."""
    url_form: str = ""
    """The base address with the account's own parts in braces."""
    url_env: dict[str, tuple[str, ...]] = {}
    """The environment variables of those parts."""
    key_env: tuple[str, ...] = ()
    auth: Auth = "bearer"
    models: tuple[str, ...] = ()
    example: str = ""
    """A well known model; empty: the simulator knows one, or it has no models of its own."""
    also: tuple[str, ...] = ()
    """Further profiles that it serves under the same address, each in a protocol of its own."""
    sdk_client: str = ""
    """Code that makes a client of the SDK of its protocol, where an address and a key are not enough."""
    keep_alive: float = 30.0
    """Seconds without a request after which a connection to it is not used again."""
    source: str = ""


def read_providers(data: bytes) -> dict[str, Provider]:
    """The tables of a file, by name."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(data.decode())
    return {
        name: msgspec.convert({"name": name, "target": name, **table}, Provider, strict=False)
        for name, table in tables.items()
    }


PROVIDERS: Final[Mapping[str, Provider]] = read_providers(_FILE.read_bytes())


def url_of(provider: Provider, *, url: str = "", environ: Mapping[str, str] | None = None) -> str:
    """The base address: the argument, the provider's own, or its form filled in from the environment."""
    found = url.strip() or provider.url or _fill_form(provider, environ or {})
    return check_url(found, path=f"{provider.name}.url")


def _fill_form(provider: Provider, environ: Mapping[str, str]) -> str:
    values: dict[str, str] = {}
    for part, names in provider.url_env.items():
        value = _first(names, environ)
        if not value:
            raise InputError(
                f"the address of {provider.title} is unknown: the {part} is missing",
                path=f"{provider.name}.url",
                hint=f"set the url, of the form {provider.url_form}, or the variable {' or '.join(names)}",
            )
        if not provider.url_form.startswith(f"{{{part}}}") and _PART.fullmatch(value) is None:
            raise InputError(f"{quote(value)} is not a {part}", path=names[0], hint=f"for {provider.url_form}")
        values[part] = value.rstrip("/")
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], provider.url_form)
    return _WIDE.sub(lambda found: _WIDE_HOSTS[found[1]], filled, count=1)


def check_url(url: str, *, path: str = "url") -> str:
    """A base address without its last slash; what cannot be one is an error. It may hold `{model}`."""
    hint = "such as https://api.example.com/v1"
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError("expected an address of printable characters without spaces", path=path, hint=hint)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InputError("expected the address of a server", path=path, hint=hint) from None
    if parts.scheme not in ("http", "https") or not host or not re.fullmatch(r"[A-Za-z0-9._:-]+", host):
        raise InputError("expected an address with http:// or https:// and a host", path=path, hint=hint)
    if parts.username is not None or parts.password is not None:
        raise InputError("an address must not contain a user or a password", path=path, hint="set the key with key_env")
    if parts.fragment:
        raise InputError("an address must not contain #", path=path, hint=hint)
    return url if parts.query else url.rstrip("/")


def key_of(provider: Provider, environ: Mapping[str, str]) -> str:
    """The key that the environment has for a provider; empty if it has none."""
    return _first(provider.key_env, environ)


def aws_credentials(environ: Mapping[str, str]) -> AwsCredentials | None:
    """The credentials of AWS that the environment has; None if they are not complete."""
    access, secret = (_first((name,), environ) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    if not access or not secret:
        return None
    token = _first(("AWS_SESSION_TOKEN",), environ)
    region = _first(("AWS_REGION", "AWS_DEFAULT_REGION"), environ)
    return AwsCredentials(access_key=access, secret_key=secret, session_token=token, region=region)


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """The value of the first variable that has one; a file leaves a line break at its end."""
    return next((value for name in names if (value := environ.get(name, "").strip())), "")
