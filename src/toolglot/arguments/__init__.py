"""Tool arguments: what a model or a client wrote, as the object that the tool gets.

Law: read, never guessed. What is cut raises `TruncatedArgumentsError`, what is not an object raises
`ArgumentsError`, and nothing is coerced. Only encodings are undone: JSON text inside a JSON string for the
whole value always, for a nested one only if the schema does not accept a string there. Each such step is a
`Note`, since what is executed must be what was approved.
"""

from toolglot.arguments.parsing import Note, NoteAction, ParsedArguments, parse
from toolglot.arguments.sanitising import sanitise
from toolglot.arguments.validation import Mismatch, Validator, validate
from toolglot.arguments.xml import parse_xml

__all__ = [
    "Mismatch",
    "Note",
    "NoteAction",
    "ParsedArguments",
    "Validator",
    "parse",
    "parse_xml",
    "sanitise",
    "validate",
]
