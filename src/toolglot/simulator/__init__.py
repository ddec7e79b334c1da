"""Strict stand-ins for the providers: an ASGI app that judges requests as they do and answers as it is told.

    simulator = Simulator()                  # an ASGI app: any server can run it
    with serve(simulator) as server:         # or let uvicorn run it here, on a free port
        client = Anthropic(base_url=server.url("anthropic"), api_key="any")

Every request goes before the referee and is refused in the provider's own words; replies come from a script or from
the default one, which calls the tool that the prompt is about and then answers; thinking is signed, and what comes
back is checked; streams are native; faults can be injected. `scripts/script.py` says what can be told,
`replies/faults.py` what can go wrong.

Law: the same requests get the same answers, but for the time of day in them.
"""

from toolglot.simulator.app import Recorded, Simulator
from toolglot.simulator.providers import PROVIDERS, url_of
from toolglot.simulator.replies.faults import FAULTS, Fault, read_fault
from toolglot.simulator.scripts.script import CallSpec, ReplySpec, Script, ScriptRule, When
from toolglot.simulator.scripts.script_reading import read_script, script_of
from toolglot.simulator.serving import Server, serve
from toolglot.simulator.upstreams import upstreams

__all__ = [
    "FAULTS",
    "PROVIDERS",
    "CallSpec",
    "Fault",
    "Recorded",
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
