"""Values that the scenarios of all SDKs share: small true media, a tool's schema, text that is hard to carry."""

from __future__ import annotations

import base64
from typing import Any, Final

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF: Final = base64.b64encode(b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").decode()
WAV: Final = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00").decode()
PNG_BYTES: Final = base64.b64decode(PNG)
PDF_BYTES: Final = base64.b64decode(PDF)
SIGNATURE: Final = base64.b64encode(b"\x01signed by the model\xff").decode()

HARD_TEXT: Final = 'Grüße 🌍 \u2028 \x7f \\ " \t \u200d नमस्ते {{not json}} </tool_call>'
BIG: Final = 9007199254740993
"""One more than a double can hold."""

WEATHER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Ort, e.g. Köln"},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
    },
    "required": ["city"],
    "additionalProperties": False,
}
NESTED: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}, "minItems": 0},
        "limit": {"anyOf": [{"type": "number", "exclusiveMinimum": 0.0}, {"type": "null"}]},
    },
    "$defs": {"row": {"type": "object", "properties": {"id": {"type": ["integer", "string"]}}}},
}
ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "score": {"type": "number"}},
    "required": ["answer", "score"],
    "additionalProperties": False,
}
