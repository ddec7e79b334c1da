"""The path after a provider's base address, and the headers of a protocol and its key.

    path = path_for(profile, "gemini-3", stream=True)     # /v1beta/models/gemini-3:streamGenerateContent?alt=sse
    address = join_url("https://host/v1", path)

Law: pure functions of a profile; a model's name, which a client chose, never leaves its segment of the path.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from toolglot.profiles import Profile
from toolglot.protocols.base import Auth, get

_VERSIONS: Final = {"mistral": "/v1"}
"""The prefix of the protocol's path, for providers whose SDK takes a base address without it."""
_IN_BASE: Final = {"vertex": "/v1beta"}
"""The beginning of the protocol's path that the base address already has."""
_ROOTED: Final = frozenset({"vllm"})
"""Profiles whose tokenizer is beside the version of the base address, not under it."""

_VERSION: Final = re.compile(r"v\d{1,3}(?:(?:alpha|beta)\d{0,2})?")


def path_for(profile: Profile, model: str, stream: bool) -> str:
    """The path of a request to a model."""
    protocol, rules = get(profile.protocol), profile.request
    path = rules.path or protocol.path
    if stream:
        path = rules.stream_path or rules.path or protocol.stream_path or path
    if "{model}" in path:
        return _with_model(profile, path, model)
    return _VERSIONS.get(profile.name, "") + path


def embeddings_path(profile: Profile, model: str, own: str = "") -> str:
    """The path of a request for embeddings; `own` is that of the client's protocol, if it has several."""
    path = own or profile.embeddings.path or get(profile.protocol).embeddings_path
    return _with_model(profile, path, model) if "{model}" in path else _VERSIONS.get(profile.name, "") + path


def count_path(profile: Profile, model: str) -> str | None:
    """The path at which a provider counts tokens; None if it has none."""
    path = profile.request.count_tokens
    if not path:
        return None
    if path.startswith(":"):
        return _with_model(profile, get(profile.protocol).path.partition(":")[0] + path, model)
    if profile.name in _ROOTED:
        return f"/..{path}"
    return path.replace("{modelId}", _segment(model))


def models_path(profile: Profile) -> str | None:
    """The path (for GET) of the list of models; None where there is none under the base address."""
    if profile.name == "vertex" or profile.request.hosted_version:
        return None
    path = get(profile.protocol).models.path
    return _VERSIONS.get(profile.name, "") + path if path else None


def _with_model(profile: Profile, path: str, model: str) -> str:
    """A path with the model. `models/…` and `tunedModels/…` are names too; a list of models may have the first."""
    folders = get(profile.protocol).model_folders
    name = _segment(model)
    if folders:
        folder, _, rest = model.rpartition("/")
        name = f"{folder}/{_segment(rest)}" if folder in folders else f"{folders[0]}/{name}"
    return path.replace("{model}", name).removeprefix(_IN_BASE.get(profile.name, ""))


def _segment(model: str) -> str:
    """A model as one segment of a path; `.` or `..` alone would mean another path."""
    quoted = quote(model, safe="")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


@lru_cache(maxsize=1024)
def join_url(base: str, path: str, *, model: str = "") -> str:
    """An address under a base address, whose query stays; `{model}` in the base is the model.

    A version that ends the base and begins the path is written once: people write both `https://host` and
    `https://host/v1`. `/../` at the beginning of the path leaves the version of the base.
    """
    parts = urlsplit(base.replace("{model}", _segment(model)))
    own, _, query = path.partition("?")
    before = parts.path.rstrip("/")
    last = before.rpartition("/")[2]
    if own.startswith("/../"):
        own = own.removeprefix("/..")
        before = before.removesuffix(f"/{last}") if _VERSION.fullmatch(last) else before
    elif _VERSION.fullmatch(last) and own.startswith(f"/{last}/"):
        own = own.removeprefix(f"/{last}")
    return urlunsplit((parts.scheme, parts.netloc, before + own, "&".join(filter(None, (parts.query, query))), ""))


def auth_headers(auth: Auth, key: str) -> dict[str, str]:
    """The header with a key. No key, no header; a provider that needs none gets a key that is set as a bearer token.

    For `aws` it is a Bedrock API key; without one the request is signed (see `aws_signing`).
    """
    if not key:
        return {}
    if auth in ("x-api-key", "x-goog-api-key", "api-key"):
        return {auth: key}
    return {"authorization": f"Bearer {key}"}


def protocol_headers(profile: Profile, stream: bool) -> dict[str, str]:
    """The headers of a protocol, besides the key.

    Streams are requested without compression: a compressor on the way may hold events back.
    """
    protocol = get(profile.protocol)
    headers = {"content-type": "application/json", **protocol.headers}
    if stream:
        headers["accept"] = protocol.stream_type
        headers["accept-encoding"] = "identity"
    else:
        headers["accept"] = "application/json"
    return headers
