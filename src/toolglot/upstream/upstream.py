"""One configured provider: its address, its key, its timeouts, and a transport.

    upstream = Upstream(name="work", target="openai", url="https://api.openai.com/v1", key=…, transport=HttpTransport())
    response = await upstream.call(out)         # out: what `convert` made for its target

Law: a key is in the headers of the requests to this address and nowhere else; a client's own key is never sent to a
provider. The address comes from the configuration alone, except for the model's segment of the path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from toolglot.conversation import Issuer
from toolglot.errors import InputError
from toolglot.masking import SECRET_HEADERS, KnownSecrets
from toolglot.profiles import Profile
from toolglot.protocols.base import Auth
from toolglot.translate.requests import ConvertedRequest
from toolglot.upstream.addresses import auth_headers, count_path, join_url, models_path, path_for, protocol_headers
from toolglot.upstream.aws_signing import AwsCredentials, region_of, signing_headers
from toolglot.upstream.http.transport import (
    DEFAULT_LIMITS,
    FixedHeaders,
    HttpRequest,
    HttpResponse,
    TimeLimits,
    Transport,
)

T = TypeVar("T")

AGENT: Final = "toolglot"
MAX_CACHED: Final = 256
_OWN: Final = SECRET_HEADERS.union(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "proxy-connection", "accept-encoding"),
    }
)
"""Headers that concern one connection or one key: those of a client are not forwarded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A provider as configured. `repr` shows no secret."""

    name: str
    target: str
    """Its profile; a request may be for another one of the same provider (`openai_responses` of `openai`)."""
    url: str
    transport: Transport = field(repr=False)
    auth: Auth = "bearer"
    key: str = field(default="", repr=False)
    aws: AwsCredentials | None = field(default=None, repr=False)
    """The credentials that sign requests, for `aws` without a key."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request. They override those of the client and of the protocol."""
    limits: TimeLimits = DEFAULT_LIMITS
    retries: int = 0
    """How often a request is sent again if the provider is busy, down or silent."""
    retry_seconds: float = 0.0
    """The maximum wait before that, in seconds."""
    also: tuple[str, ...] = ()
    """Further profiles of this provider, under the same address."""
    is_simulated: bool = False
    clock: Callable[[], float] = field(default=time.time, repr=False)
    """The time of day, for signatures."""
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Addresses, headers and issuers by profile and model."""

    def call(
        self, out: ConvertedRequest, extra_headers: Mapping[str, str] | None = None, path: str = ""
    ) -> Coroutine[Any, Any, HttpResponse]:
        """Send a converted request. The response may be an error of the provider: check its status.

        path: where to, if that is not the usual path of the protocol.
        """
        profile, model, stream = out.target, out.model, out.stream
        if path or extra_headers or (self.auth == "aws" and not self.key):
            headers = {**protocol_headers(profile, stream), **_forwarded(extra_headers)}
            return self.send(path or path_for(profile, model, stream), out.data, headers=headers, model=model)
        key = ("call", profile.name, profile.protocol, model, "stream" if stream else "")
        known = self._known.get(key) or self._remember(key, self._destination(profile, model, stream))
        address, headers = known
        return self.transport.send(
            HttpRequest(url=address, headers=headers, body=out.data, name=self.name), self.limits
        )

    def _destination(self, profile: Profile, model: str, stream: bool) -> tuple[str, FixedHeaders]:
        """The address and the headers of a request without extra headers."""
        address = join_url(self.url, path_for(profile, model, stream), model=model)
        return address, FixedHeaders(self._all_headers(protocol_headers(profile, stream)))

    def _remember(self, key: tuple[str, ...], value: T) -> T:
        if len(self._known) >= MAX_CACHED:  # clients choose the names of models
            self._known.clear()
        self._known[key] = value
        return value

    def _all_headers(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        """All headers of a request, except for a signature."""
        own = {name.lower(): value for name, value in self.headers.items()}
        return {"user-agent": AGENT, **(headers or {}), **own, **auth_headers(self.auth, self.key)}

    async def count(
        self, profile: Profile, model: str, body: bytes, extra_headers: Mapping[str, str] | None = None
    ) -> HttpResponse | None:
        """Let the provider count tokens; None if it does not."""
        path = count_path(profile, model)
        if path is None:
            return None
        headers = {**protocol_headers(profile, stream=False), **_forwarded(extra_headers)}
        return await self.send(path, body, headers=headers, model=model)

    async def models(self, profile: Profile) -> HttpResponse | None:
        """The provider's list of models; None if it has none at this address."""
        path = models_path(profile)
        if path is None:
            return None
        headers = protocol_headers(profile, stream=False)
        del headers["content-type"]
        return await self.send(path, headers=headers, method="GET")

    async def send(
        self,
        path: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
        model: str = "",
    ) -> HttpResponse:
        """Send anything to a path under the address. The names of `headers` are lowercase."""
        address = join_url(self.url, path, model=model)
        sent = self._all_headers(headers)
        if self.auth == "aws" and not self.key:
            sent |= self._signature(method, address, sent, body)
        return await self.transport.send(
            HttpRequest(url=address, headers=sent, body=body, method=method, name=self.name), self.limits
        )

    def _signature(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        if self.aws is None:
            raise InputError(
                f"{self.name} needs AWS credentials",
                path=f"{self.name}.key",
                hint="set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        return signing_headers(
            method=method,
            url=address,
            headers=headers,
            body=body,
            credentials=self.aws,
            region=region_of(address, self.aws),
            now=self.clock(),
        )

    def mask_secrets(self, text: str) -> str:
        """Mask this upstream's own secrets: a provider may repeat one that looks like none."""
        own = [self.key, *self.headers.values()]
        if self.aws is not None:
            own += [self.aws.secret_key, self.aws.session_token]
        return KnownSecrets(own).mask(text)

    def issuer(self, model: str = "", target: str = "") -> Issuer:
        """The issuer of this upstream's replies: opaque items go back to it only."""
        key = ("issuer", model, target)
        known: Issuer | None = self._known.get(key)
        return known or self._remember(key, self._new_issuer(model, target))

    def _new_issuer(self, model: str, target: str) -> Issuer:
        parts = urlsplit(self.url)
        secret = self.key or (self.aws.access_key if self.aws else "")
        return Issuer(
            provider=target or self.target,
            endpoint=f"{parts.netloc}{parts.path}".rstrip("/"),
            account=sha256(secret.encode()).hexdigest()[:16] if secret else "",
            model=model,
        )


def _forwarded(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of a client that are forwarded to a provider."""
    lower = ((name.lower(), value) for name, value in (headers or {}).items())
    return {name: value for name, value in lower if name not in _OWN}
