"""The found profile as TOML that `toolglot serve` and `--profiles` read.

Each entry has its source, its confidence and the endpoint's error message. The file has the endpoint as an upstream
too, so that it is a complete configuration.

Law: the file is read back as the same profile, and has no secrets. Text from the endpoint is quoted.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import urlsplit

from toolglot import profiles
from toolglot.discovery.comparison import value_of
from toolglot.discovery.findings import MESSAGE, DiscoveryResult, Finding
from toolglot.discovery.secret_masking import one_line
from toolglot.profiles import Overrides, Profile

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_CONFIDENCES: Final = {"observed": "observed", "told": "documented", "weak": "guess"}
_MEDIA: Final = ("results.media", "turns.media")


def profile_toml(result: DiscoveryResult, *, key_env: str = "", day: str = "") -> str:
    """The text of the file. `day` is when the endpoint was probed; nothing else depends on it."""
    name = result.provider.name
    spent = f"{result.spent.requests} requests"
    when = f" on {day}" if day else ""
    lines = [
        f"# How {_comment(result.provider.url)} handles tools: found by toolglot probe{when}, with {spent}.",
        f"# The model was {_comment(result.provider.model)}; others of this endpoint may differ.",
        *([f"# Not complete: {_comment(result.stopped)}."] if not result.complete else []),
        "",
        f"[profiles.{_bare(name)}]",
        f"title = {_text(one_line(f'{name} at {result.provider.url}', 200))}",
        f"protocol = {_text(result.sdk.protocol)}",
        f"extends = {_text(result.base)}",
        "",
    ]
    for key, found in sorted(entries_of(result).items()):
        lines += _rule(name, key, found, result)
    return "\n".join([*lines, *_upstream(result, key_env)])


def entries_of(result: DiscoveryResult) -> dict[str, Finding]:
    """The entries of the file, each with its finding: what was found, and what follows from it."""
    found = {one.key: one for one in result.findings if one.key and one.settles}
    base = profiles.get(result.base, result.provider.model) if result.base else None
    for key in _MEDIA:
        if key in found and base is not None and "image" in found[key].value:
            found[key] = _with(found[key], _all_media(key, base))
    refs = found.get("schema.refs")
    if refs is not None and refs.value is False and "schema.refused" in found:
        keywords = found["schema.refused"]
        found["schema.refused"] = _with(keywords, tuple(dict.fromkeys((*keywords.value, "$ref", "$defs"))))
    pattern = found.get("ids.pattern")
    if pattern is not None and not re.fullmatch(pattern.value, "_") and "ids.style" not in found:
        found["ids.prefix"] = _with(pattern, "call", key="ids.prefix")
    return found


def _with(found: Finding, value: Any, key: str = "") -> Finding:
    return Finding(
        probe=found.probe,
        key=key or found.key,
        value=value,
        evidence=found.evidence,
        confidence=found.confidence,
        note=found.note,
    )


def _all_media(key: str, base: Profile) -> tuple[str, ...]:
    """Images are accepted: so are the other media of the base."""
    return tuple(dict.fromkeys(("image", *value_of(base, key))))


def overrides_of(result: DiscoveryResult) -> Overrides:
    """The found profile, to be used at once."""
    return Overrides(profile_toml(result), origin="discovery")


def found_profile(result: DiscoveryResult) -> Profile:
    return profiles.get(result.provider.name, result.provider.model, overrides=overrides_of(result))


# --- TOML -------------------------------------------------------------------------------------------


def _rule(name: str, key: str, found: Finding, result: DiscoveryResult) -> list[str]:
    has_message = found.note.startswith(MESSAGE)
    fields = {
        "value": _value(found.value),
        "id": _text(f"{name}-{key}"),
        "source": _text(f"toolglot probe {found.probe} ({', '.join(found.evidence[:8])})"),
        "confidence": _text(_CONFIDENCES[found.confidence]),
        "error": _text(found.note.removeprefix(MESSAGE)) if has_message else "",
        "note": _text(found.note) if found.note and not has_message else "",
    }
    lines = [f"{field} = {value}" for field, value in fields.items() if value]
    return [f"[profiles.{_bare(result.provider.name)}.rules.{_text(key)}]", *lines, ""]


def _upstream(result: DiscoveryResult, key_env: str) -> list[str]:
    name, url = result.provider.name, result.sdk.base_url
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and parts.hostname not in _LOCAL
    listed = result.provider.models[:50] or ((result.provider.model,) if result.provider.model else ())
    return [
        f"[upstreams.{_bare(name)}]",
        f"target = {_text(name)}",
        f"url = {_text(url)}",
        f"auth = {_text(result.sdk.auth or 'none')}",
        *([f"key_env = {_text(key_env)}"] if key_env else []),
        *(["insecure = true  # plain http to another machine"] if is_plain else []),
        f"models = {_value(listed)}",
        "",
    ]


def _value(value: Any) -> str:
    if value is None:
        return '"null"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_text(str(item)) for item in value)}]"
    return str(value) if isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    """A string of TOML; that of JSON is one, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _comment(text: str) -> str:
    return one_line(text, 300)
