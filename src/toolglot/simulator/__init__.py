"""Strict simulated providers: an ASGI app that judges requests as the providers do and replies from a script.

    simulator = Simulator()                  # an ASGI app: any server can run it
    with serve(simulator) as server:         # or uvicorn runs it here, on a free port
        client = Anthropic(base_url=server.url("anthropic"), api_key="any")

The referee judges every request; a refusal has the provider's own status, body and message. Replies come from a script
(`scripts/script.py`) or from the default one, which calls the tool that the prompt is about and then answers. Thinking
is signed, and checked when it comes back. Streams are native. Faults can be injected (`replies/faults.py`).
`protocols/` has one file for each protocol.

Law: the same requests get the same replies, except for the time in them.

A gateway rarely simulates, so the modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolglot.simulator.app import RecordedRequest, Simulator
    from toolglot.simulator.providers import PROVIDERS, url_of
    from toolglot.simulator.replies.faults import FAULTS, Fault, read_fault
    from toolglot.simulator.scripts.script import CallSpec, ReplySpec, Script, ScriptRule, When
    from toolglot.simulator.scripts.script_reading import read_script, script_of
    from toolglot.simulator.serving import Server, serve
    from toolglot.simulator.simulated_upstreams import upstreams

__all__ = [
    "FAULTS",
    "PROVIDERS",
    "CallSpec",
    "Fault",
    "RecordedRequest",
    "ReplySpec",
    "Script",
    "ScriptRule",
    "Server",
    "Simulator",
    "When",
    "read_fault",
    "read_script",
    "script_of",
    "serve",
    "upstreams",
    "url_of",
]

_MODULES: Final = {
    "RecordedRequest": "app",
    "Simulator": "app",
    "PROVIDERS": "providers",
    "url_of": "providers",
    "FAULTS": "replies.faults",
    "Fault": "replies.faults",
    "read_fault": "replies.faults",
    "CallSpec": "scripts.script",
    "ReplySpec": "scripts.script",
    "Script": "scripts.script",
    "ScriptRule": "scripts.script",
    "When": "scripts.script",
    "read_script": "scripts.script_reading",
    "script_of": "scripts.script_reading",
    "Server": "serving",
    "serve": "serving",
    "upstreams": "simulated_upstreams",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
