"""AWS Signature Version 4, as Bedrock requires it: the headers that sign one request.

Law: a pure function; the time is an argument. The secret key is used for a keyed hash and is in no header, error or
`repr`.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import Struct

from toolglot.errors import InputError

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_REGION: Final = re.compile(r"\bbedrock(?:-runtime)?(?:-fips)?\.([a-z]{2}[a-z0-9-]{1,30}-\d)\.")
_SIGNED: Final = ("content-type", "host")
"""Beside these, what begins with x-amz-: a proxy on the way may change any other header."""


class AwsCredentials(Struct, frozen=True, kw_only=True):
    """The keys that sign requests. `repr` shows no secret."""

    access_key: str
    secret_key: str
    session_token: str = ""
    region: str = ""
    """For addresses that do not contain it."""

    def __repr__(self) -> str:
        return f"AwsCredentials(region={self.region!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("region", self.region)]


def region_of(url: str, credentials: AwsCredentials) -> str:
    """The region of an address: the one in its host, or that of the credentials."""
    found = _REGION.search(urlsplit(url).hostname or "")
    region = found[1] if found else credentials.region
    if not region:
        raise InputError(
            "the AWS region of this address is unknown", path="url", hint="set AWS_REGION, or a url that contains it"
        )
    return region


def signing_headers(
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: AwsCredentials,
    region: str,
    now: float,
    service: str = "bedrock",
) -> dict[str, str]:
    """The headers that make a request a signed one, to be added to `headers`, whose names are lowercase."""
    parts = urlsplit(url)
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": stamp}
    if credentials.session_token:
        added["x-amz-security-token"] = credentials.session_token
    signed = {
        name: " ".join(value.split())
        for name, value in sorted({**headers, "host": _host(parts.netloc, parts.scheme), **added}.items())
        if name in _SIGNED or name.startswith("x-amz-")
    }
    names = ";".join(signed)
    canonical = "\n".join(
        (
            method,
            quote(parts.path or "/", safe="/-_.~"),  # encoded once more than it is sent, except for S3
            _query(parts.query),
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            names,
            sha256(body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{ALGORITHM}\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = _hmac(key, part)
    signature = _hmac(key, to_sign).hex()
    credential = f"{credentials.access_key}/{scope}"
    added["authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return added


def _host(netloc: str, scheme: str) -> str:
    """The host as it is sent: without the port that the scheme implies."""
    return netloc.removesuffix(":443" if scheme == "https" else ":80")


def _query(query: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, True))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), sha256).digest()
