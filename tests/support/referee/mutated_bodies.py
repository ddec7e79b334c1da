"""Request bodies for the readers of the referee: recordings, hand-made ones, good variations and mutants.

Everything is made in the same order each time. A mutant says what was done to it, so that a table can name kinds.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.referee.sample_bodies import SAMPLES

Body = dict[str, Any]
Steps = tuple[str | int, ...]

RECORDINGS: Final = Path(__file__).parents[2] / "recordings"
PROTOCOLS: Final = ("openai_responses", "gemini", "bedrock", "cohere", "ollama")

FREE: Final[dict[str, frozenset[str]]] = {
    "openai_responses": frozenset({"parameters", "schema", "output_schema", "input_schema", "metadata"}),
    "gemini": frozenset(
        {"parameters", "parametersJsonSchema", "parameters_json_schema", "responseJsonSchema", "response_json_schema"}
        | {"responseSchema", "args", "response"}
    ),
    "bedrock": frozenset({"json", "input", "additionalModelRequestFields"}),
    "cohere": frozenset({"parameters", "json_schema", "data", "tool_output"}),
    "ollama": frozenset({"parameters", "arguments", "format"}),
}
"""Fields whose inside is the caller's own, or is judged by the rules for schemas."""

_WRONG: Final[tuple[Any, ...]] = (7, "no_such_value", True, ["x"], {"x": 1}, 1.5)


class Mutant(NamedTuple):
    what: str
    """`delete messages[*].role`, `type …`, `value …`, `field …`."""
    body: Body


def recorded(protocol: str) -> Iterator[tuple[str, Body]]:
    """What the provider's own SDK sent."""
    for file in sorted((RECORDINGS / protocol).glob("*.request.json")):
        yield file.name.removesuffix(".request.json"), json.loads(file.read_text())


def known(protocol: str) -> list[Body]:
    """Recordings without their unknown fields, and the hand-made bodies."""
    named = [body for name, body in recorded(protocol) if not name.endswith(("unknown_fields", "as_dictionary"))]
    return [*named, *SAMPLES[protocol]]


def good(protocol: str, count: int) -> list[Body]:
    """Known bodies, and pairs of them laid over each other: each field stands for itself."""
    bodies = known(protocol)
    pairs = [{**first, **second} for first in bodies for second in bodies if first is not second]
    pairs = [pair for pair in pairs if len({name.replace("_", "").lower() for name in pair}) == len(pair)]
    stride = max(1, len(pairs) // count)
    return [*bodies, *pairs[::stride]]


def mutants(protocol: str) -> list[Mutant]:
    """Every known body with one thing wrong, at every path."""
    return [mutant for body in known(protocol) for mutant in _mutants(body, FREE[protocol])]


def _mutants(body: Body, free: frozenset[str]) -> Iterator[Mutant]:
    for number, (steps, value) in enumerate(_nodes(body, (), free)):
        where = _where(steps)
        if steps and isinstance(steps[-1], str):
            yield Mutant(f"delete {where}", _changed(body, steps, delete=True))
        if steps:
            other = [wrong for wrong in _WRONG if not _same_type(wrong, value)]
            yield Mutant(f"type {where}", _changed(body, steps, other[number % len(other)]))
        if isinstance(value, str):
            yield Mutant(f"value {where}", _changed(body, steps, "no_such_value"))
        if isinstance(value, dict) and not (steps and steps[-1] in free):
            yield Mutant(f"field {where}", _changed(body, (*steps, "no_such_field"), 1))


def _nodes(value: Any, steps: Steps, free: frozenset[str]) -> Iterator[tuple[Steps, Any]]:
    yield steps, value
    if steps and steps[-1] in free:
        return
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _nodes(member, (*steps, key), free)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _nodes(member, (*steps, index), free)


def _where(steps: Steps) -> str:
    return "".join("[*]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _same_type(first: Any, second: Any) -> bool:
    numbers = (int, float)
    if isinstance(first, bool) or isinstance(second, bool):
        return type(first) is type(second)
    return type(first) is type(second) or (isinstance(first, numbers) and isinstance(second, numbers))


def _changed(body: Body, steps: Steps, value: Any = None, *, delete: bool = False) -> Body:
    changed = copy.deepcopy(body)
    parent: Any = changed
    for step in steps[:-1]:
        parent = parent[step]
    if delete:
        del parent[steps[-1]]
    else:
        parent[steps[-1]] = copy.deepcopy(value)
    return changed
