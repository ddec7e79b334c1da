"""A request as code that sends it again: curl, Python with the SDK of the client, Python with that of the provider.

    code_of(captured, "python_provider", overrides)

Law: keys are variables, never values. Whatever is in a body, it stays inside a literal of the shell or of Python.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from msgspec.structs import replace

from toolglot.errors import InputError, ToolglotError, quote
from toolglot.gateway.inspector.views.reading import read_capture, text_of
from toolglot.profiles import Overrides
from toolglot.profiles import get as get_profile
from toolglot.protocols.base import Protocol
from toolglot.protocols.base import get as get_protocol
from toolglot.upstream.addresses import path_for
from toolglot.upstream.providers import PROVIDERS, Provider

CodeForm = Literal["curl", "python_client", "python_provider"]
FORMS: Final = get_args(CodeForm)
GATEWAY_URL: Final = "TOOLGLOT_URL"
GATEWAY_KEY: Final = "TOOLGLOT_KEY"
_LARGE: Final = 200_000
"""Characters of a body from which on it is not laid out for people."""
_NO_BODY: Final = "the gateway kept no body of this request"
_HEADERS: Final = {"bearer": "authorization: Bearer ", "aws": "authorization: Bearer ", "none": ""}


def code_of(captured: Mapping[str, Any], form: str, overrides: Overrides | None = None) -> str:
    """The code. An unknown form is an error."""
    if form not in FORMS:
        raise InputError(f"unknown form {quote(form)}", path="as", hint=f"one of {', '.join(FORMS)}")
    if not captured.get("request"):
        raise InputError(_NO_BODY, path="request", hint='set keep = "bodies" in [inspector]')
    if form == "curl":
        return _curl(captured, overrides)
    return _client_code(captured, overrides) if form == "python_client" else _provider_code(captured, overrides)


def _curl(captured: Mapping[str, Any], overrides: Overrides | None) -> str:
    body = text_of(captured, "request")
    record = _protocol(text_of(captured, "protocol"), overrides)
    end = "EOF"
    while f"\n{end}\n" in f"\n{body}\n":
        end += "_"
    path = text_of(captured, "path") or record.path
    quoted = path.replace("'", "%27").replace("\n", "%0A")
    return (
        f': "${{{GATEWAY_URL}:=http://127.0.0.1:8400}}" "${{{GATEWAY_KEY}:=any}}"\n'
        f"curl -sS \"${GATEWAY_URL}\"'{quoted}' -H 'content-type: application/json' \\\n"
        f"  -H \"{_key_header(record)}${GATEWAY_KEY}\" --data-binary @- <<'{end}'\n{body}\n{end}\n"
    )


def _key_header(record: Protocol) -> str:
    return _HEADERS.get(record.auth, f"{record.auth}: ") or _HEADERS["bearer"]


def _client_code(captured: Mapping[str, Any], overrides: Overrides | None) -> str:
    """With the SDK of the client's protocol, to the gateway."""
    record = _protocol(text_of(captured, "protocol"), overrides)
    suffix = "/v1" if record.base_url == "versioned" else ""
    url = f'os.environ.get("{GATEWAY_URL}", "http://127.0.0.1:8400")' + (f' + "{suffix}"' if suffix else "")
    key = f'os.environ.get("{GATEWAY_KEY}", "any")'
    return _python(record, url, key, text_of(captured, "model"), text_of(captured, "request"), captured)


def _provider_code(captured: Mapping[str, Any], overrides: Overrides | None) -> str:
    """With the SDK of the provider's protocol, to the provider."""
    target = text_of(captured, "target") or text_of(captured, "protocol")
    record = _protocol(target, overrides)
    provider = _provider_of(target)
    body = text_of(captured, "rendered")
    if not body:
        read = read_capture(captured, overrides)
        body = read.out.data.decode("utf-8", "replace") if read is not None and read.out is not None else ""
    if not body:
        raise InputError("nothing was sent to a provider", path="rendered")
    variable = provider.key_env[0] if provider is not None and provider.key_env else "API_KEY"
    key = f'os.environ["{variable}"]'
    if provider is not None and provider.auth == "none":
        key = f'os.environ.get("{variable}", "any")'
    if provider is not None and provider.sdk_client:
        lines = [
            provider.sdk_client if line.startswith("client = ") else line for line in record.sdk_example.split("\n")
        ]
        record = replace(record, sdk_example="\n".join(lines))
    return _python(record, _base_url(provider, target, record), key, text_of(captured, "sent_model"), body, captured)


def _base_url(provider: Provider | None, target: str, record: Protocol) -> str:
    """The base address as the SDK of the protocol takes it, as code."""
    if provider is None:
        return 'os.environ["BASE_URL"]'
    whole = (provider.url or provider.url_form) + path_for(get_profile(target), "{model}", stream=False)
    base = whole.removesuffix(record.path) if whole.endswith(record.path) else provider.url or provider.url_form
    if not provider.url_env or provider.url:
        return repr(base)
    parts = ", ".join([f'{name}=os.environ["{variables[0]}"]' for name, variables in provider.url_env.items()])
    return f"{base!r}.format({parts})"


def _python(record: Protocol, url: str, key: str, model: str, body: str, captured: Mapping[str, Any]) -> str:
    is_stream = captured.get("stream") is True
    try:
        value = json.loads(body)
    except ValueError:
        raise InputError("the body is not JSON", path="request") from None
    except RecursionError:
        raise InputError("the body nests too deeply to be written as Python", path="request") from None
    if isinstance(value, dict):
        value.setdefault("model", model)
    imports = sorted({"os", *(["json"] if len(body) > _LARGE else [])})
    literal = (
        f"json.loads({json.dumps(body)})" if len(body) > _LARGE else pprint.pformat(value, 1, 110, sort_dicts=False)
    )
    names = {"url": url, "key": key, "model": repr(model), "stream": "_stream" if is_stream else ""}
    call = record.sdk_example
    for name, code in names.items():
        call = call.replace(f"<{name}>", code)
    head, _, rest = call.partition("\n\n")
    shown = "for event in reply:\n    print(event)\n" if is_stream else "print(reply)\n"
    lines = "".join(f"import {name}\n" for name in imports)
    return f"# pip install {record.sdk}\n{lines}\n{head}\n\nbody = {literal}\n\n{rest}\n{shown}"


def _protocol(target: str, overrides: Overrides | None) -> Protocol:
    try:
        return get_protocol(get_profile(target, overrides=overrides).protocol)
    except ToolglotError:
        raise InputError(f"unknown target {quote(target)}", path="protocol") from None


def _provider_of(target: str) -> Provider | None:
    """The provider of a target, whose address and key are known."""
    return PROVIDERS.get(target) or next(
        (each for each in PROVIDERS.values() if target in (each.target, *each.also)), None
    )
