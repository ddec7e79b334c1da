"""Recordings of what the SDKs send: how they are made, named, written and found again.

A request is recorded as the SDK sent it; only its whitespace is changed. A reply is written by hand after the
provider's own description, in full, and is what the loopback provider answers. `index.json` says which version
of which SDK made the recordings.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sdk.loopback import EVENT_STREAM, serving

FOLDER: Final = Path(__file__).parents[1] / "recordings"
INDEX: Final = FOLDER / "index.json"

MODULES: Final[dict[str, str]] = {
    "anthropic": "anthropic_messages",
    "boto3": "bedrock_converse",
    "cohere": "cohere_chat",
    "genai": "google_genai",
    "mistral": "mistral_chat",
    "ollama": "ollama_chat",
    "openai": "openai_chat",
    "responses": "openai_responses",
}
"""The name of an SDK in the recordings, and the module with its scenarios."""

Scenario = Callable[[Any], object]


@dataclass(frozen=True)
class Sdk:
    """An SDK as a client of one protocol."""

    name: str
    protocol: str
    distribution: str
    open: Callable[[str], AbstractContextManager[Any]]
    """A client of the provider at an address."""
    scenarios: Mapping[str, Scenario]
    """Each sends one request. Those whose name starts with `stream` are answered by an empty stream."""

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def reply_text(self, scenario: str) -> str:
        """What the provider answers: the reply that was written for the scenario, otherwise the plain one."""
        path = FOLDER / self.protocol / f"{self.name}_{scenario}.reply.json"
        return (path if path.exists() else path.with_name(f"{self.name}_plain.reply.json")).read_text("utf-8")


def named(*scenarios: Scenario) -> dict[str, Scenario]:
    return {scenario.__name__: scenario for scenario in scenarios}


def load(name: str) -> Sdk:
    found = importlib.import_module(f"sdk.{MODULES[name]}").SDK
    assert isinstance(found, Sdk)
    return found


def record(sdk: Sdk) -> dict[str, str]:
    """The body that the SDK sends in each scenario, by the name of its file."""
    bodies: dict[str, str] = {}
    with serving() as provider, sdk.open(provider.url) as client:
        for name, scenario in sdk.scenarios.items():
            if name.startswith("stream"):
                provider.give("", EVENT_STREAM)
            else:
                provider.give(sdk.reply_text(name))
            scenario(client)
            bodies[f"{sdk.protocol}/{sdk.name}_{name}.request.json"] = pretty(provider.body.decode())
    return bodies


# --- JSON text --------------------------------------------------------------------------------------

_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def pretty(text: str) -> str:
    """JSON text on lines of its own, each mark as it was written: 1.0 stays 1.0, \\u00e9 stays \\u00e9."""
    json.loads(text)
    out: list[str] = []
    depth = 0
    marks = _MARKS.findall(text)
    for at, mark in enumerate(marks):
        after = marks[at + 1] if at + 1 < len(marks) else ""
        if mark in "}]":
            depth -= 1
            if marks[at - 1] not in "{[":
                out.append("\n" + "  " * depth)
        out.append(": " if mark == ":" else mark)
        if mark in "{[":
            depth += 1
        if mark == "," or (mark in "{[" and after not in "}]"):
            out.append("\n" + "  " * depth)
    return "".join(out) + "\n"
