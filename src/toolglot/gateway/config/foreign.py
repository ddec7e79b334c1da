"""Recognises configuration files of other gateways, and shows their first model in the form of this one.

LiteLLM's is YAML with a `model_list`; claude-code-router's is JSON with `Providers`. Neither is used as a
configuration: this finds one model, so that the message about the file can show how it would be written here.

Laws: any text gives a result or None, in linear time. A value that may be a key is never repeated: only names of
variables, models and hosts are shown.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot import profiles
from toolglot.gateway.config.checks import wrong_url
from toolglot.upstream.providers import PROVIDERS

_YAML_LIST: Final = re.compile(r"^model_list[ \t]*:", re.MULTILINE)
_YAML_VALUE: Final = r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s#][^\n#]*))"
_YAML_SETTING: Final = re.compile(
    rf"^[ \t]*(?:-[ \t]+)?(model_name|model|api_base|api_key)[ \t]*:[ \t]*{_YAML_VALUE}", re.MULTILINE
)
_JSON_PROVIDERS: Final = re.compile(r'^\s*\{(?=.*"(?:Providers|providers)"\s*:\s*\[)', re.DOTALL)
_ENVIRONMENT: Final = re.compile(r"(?:os\.environ/|\$\{?)([A-Za-z_][A-Za-z0-9_]*)\}?")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@*+-]{0,199}")
_PATHS: Final = ("/chat/completions", "/completions", "/messages", "/responses", "/models")
_LITELLM_NAMES: Final = {
    "azure_ai": "azure",
    "bedrock_converse": "bedrock",
    "cohere_chat": "cohere",
    "hosted_vllm": "vllm",
    "ollama_chat": "ollama",
    "vertex_ai": "vertex",
    "zai": "glm",
}
"""Prefixes of LiteLLM that are another name of a provider."""


class ForeignConfig(Struct, frozen=True, kw_only=True):
    """A file of another program, and the first model in it."""

    program: str
    model: str = ""
    """The name that clients use; empty: no model was found."""
    provider: str = ""
    """The provider or the host, as an upstream is named."""
    upstream_model: str = ""
    url: str = ""
    key_env: str = ""

    @property
    def hint(self) -> str:
        """What to write instead."""
        if not self.model:
            return "see docs/gateway-config.md, or write a configuration with `toolglot init`"
        return f"its first model would be, in a toolglot.toml:\n\n{self.toml}\n\nsee docs/gateway-config.md"

    @property
    def toml(self) -> str:
        """The first model as a configuration of this gateway."""
        known = PROVIDERS.get(self.provider)
        key_env = self.key_env or ("" if known else f"{re.sub('[^A-Z0-9]', '_', self.provider.upper())}_API_KEY")
        name = _quoted(self.provider) if "." in self.provider else self.provider
        lines = [f"[upstreams.{name}]"]
        if self.url or known is None:
            lines.append(f"url = {_quoted(self.url or 'https://…')}")
        if self.url and wrong_url(self.url, insecure=False) is not None:
            lines.append("insecure = true")
        if known is None or (key_env and key_env not in known.key_env):
            lines.append(f"key_env = {_quoted(key_env)}")
        elif known.key_env and known.auth != "none":
            lines.append(f"key_env = {_quoted(key_env or known.key_env[0])}")
        return "\n".join([*lines, "", "[models]", f"{_quoted(self.model)} = {_quoted(self._destination)}"])

    @property
    def _destination(self) -> str:
        return f"{self.provider}/{self.upstream_model}"


def recognise(text: str) -> ForeignConfig | None:
    """The file of another gateway, if the text is one; None: it is not."""
    if _YAML_LIST.search(text):
        return _litellm(text)
    return _claude_code_router(text) if _JSON_PROVIDERS.match(text) else None


def _litellm(text: str) -> ForeignConfig:
    """The settings of the first entry of `model_list`: up to the next `model_name`."""
    found: dict[str, str] = {}
    for match in _YAML_SETTING.finditer(text):
        name, value = match[1], next(part for part in match.groups()[1:] if part is not None).strip()
        if name in found:
            break
        found[name] = value
    model = found.get("model", "")
    head, slash, rest = model.partition("/")
    provider = _provider(_LITELLM_NAMES.get(head, head)) if slash else _owner(model)
    if provider == "vertex" and rest.startswith("claude"):
        provider = "vertex_claude"
    return _first_model(
        "LiteLLM",
        model=found.get("model_name", ""),
        provider=provider,
        upstream_model=rest if slash else model,
        url=found.get("api_base", ""),
        key=found.get("api_key", ""),
    )


def _claude_code_router(text: str) -> ForeignConfig | None:
    program = "claude-code-router"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):  # it may have comments, and cannot be read further
        return ForeignConfig(program=program) if '"Router"' in text else None
    listed = document.get("Providers", document.get("providers"))
    first: Any = next((each for each in listed if isinstance(each, Mapping)), {}) if isinstance(listed, list) else {}
    models = first.get("models")
    model = models[0] if isinstance(models, list) and models and isinstance(models[0], str) else ""
    return _first_model(
        program,
        model=model,
        provider=_provider(str(first.get("name", ""))),
        upstream_model=model,
        url=str(first.get("api_base_url", "")),
        key=str(first.get("api_key", "")),
    )


def _first_model(program: str, *, model: str, provider: str, upstream_model: str, url: str, key: str) -> ForeignConfig:
    """The first model, if all of it can be shown."""
    if not provider or not all(_NAME.fullmatch(name) for name in (model, upstream_model)):
        return ForeignConfig(program=program)
    variable = _ENVIRONMENT.fullmatch(key)
    return ForeignConfig(
        program=program,
        model=model,
        provider=provider,
        upstream_model=upstream_model,
        url=_base_url(url, provider),
        key_env=variable[1] if variable else "",
    )


def _provider(name: str) -> str:
    """The name of an upstream."""
    resolved = profiles.resolve(name.strip().lower())
    if resolved in PROVIDERS:
        return resolved
    return re.sub(r"[^a-z0-9_.-]+", "-", name.strip().lower()).strip("-._")[:64]


def _owner(model: str) -> str:
    """The provider that a model's name belongs to; OpenAI if it is unknown, as in LiteLLM."""
    lower = model.lower()
    owners = (name for name, each in PROVIDERS.items() if any(fnmatch.fnmatchcase(lower, p) for p in each.models))
    return next(owners, "openai")


def _base_url(url: str, provider: str) -> str:
    """The address to write; empty if it is the provider's own, or may contain a key."""
    plain = url.strip().rstrip("/")
    for path in _PATHS:
        plain = plain.removesuffix(path)
    known = PROVIDERS.get(provider)
    if not plain or wrong_url(plain, insecure=True) is not None:
        return ""
    host = plain.split("/")[2]
    return "" if known is not None and known.url and host == known.url.split("/")[2] else plain


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
