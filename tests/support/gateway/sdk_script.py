"""The gateway that SDKs are tried on."""

from __future__ import annotations

from typing import Any, Final

SETTINGS: Final = ("ANTHROPIC_", "AWS_", "CO_", "GEMINI_", "GOOGLE_", "MISTRAL_", "OLLAMA_", "OPENAI_")


BONN, KOLN, OSLO = ({"city": city} for city in ("Bonn", "Köln", "Oslo"))


SCRIPT: Final[dict[str, Any]] = {
    "chunk": 3,
    "rules": [
        {
            "when": {"contains": "weather", "results": 0},
            "reply": {"text": "I look.", "calls": [{"name": "get_weather", "arguments": BONN}]},
        },
        {
            "when": {"contains": "weather", "results": 1},
            "reply": {"calls": [{"name": "get_weather", "arguments": city} for city in (KOLN, OSLO)]},
        },
        {"when": {"contains": "both", "results": 0}, "reply": {"calls": 2}},
        {"when": {"contains": "words"}, "reply": {"text": "These are some words, and then a few more."}},
    ],
}
"""After the third result the default script answers: it quotes every result."""
