"""One protocol, one folder: no table outside `protocols/<name>/` is keyed by names of protocols.

What is true of a protocol is in its record or its codecs (`protocols/base.py`); what a provider demands is profile
data. A table that names two protocols or more is a file that an author of a protocol must find.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolglot
from toolglot.profiles.loader import PROTOCOLS

SOURCE = Path(toolglot.__file__).parent
BUILT_IN = frozenset(name for name in PROTOCOLS if (SOURCE / "protocols" / name).is_dir())
ALLOWED = {
    "cli/commands/simulate.py": "providers: those that `toolglot simulate` names first",
    "conversation/ids.py": "providers: the spellings that the public `ids.translate` takes",
    "gateway/observability/tracing.py": "providers: what OpenTelemetry calls them",
    "profiles/loader.py": "the list of the protocols of toolglot: the one list that a new one is written into",
    "render/tools/tool_form.py": "the two conversions for which `Policy(required='auto')` filters required names",
    "simulator/providers.py": "providers: those that the simulator serves without a prefix",
}


def tables(source: str) -> Iterator[tuple[int, frozenset[str]]]:
    """The lines of tables that name two protocols or more, and which they name."""
    for node in ast.walk(ast.parse(source)):
        named = BUILT_IN.intersection(_names(node))
        if len(named) > 1:
            yield getattr(node, "lineno", 0), named


def _names(node: ast.AST) -> Iterator[str]:
    """The strings that a table has as keys or members, and those by which a match decides."""
    members: list[ast.AST] = []
    if isinstance(node, ast.Dict):
        members = [key for key in node.keys if key is not None]
    elif isinstance(node, ast.Set | ast.List | ast.Tuple):
        members = [*node.elts]
    elif isinstance(node, ast.Match):
        patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
        members = [pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue)]
    for member in members:
        for part in member.elts if isinstance(member, ast.Tuple) else (member,):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def modules() -> list[str]:
    own = tuple(f"protocols/{name}/" for name in BUILT_IN)
    paths = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    return sorted(path for path in paths if not path.startswith(own))


def test_no_table_outside_a_protocols_folder_is_keyed_by_names_of_protocols() -> None:
    found = {
        f"{path}:{line}": sorted(named)
        for path in modules()
        if path not in ALLOWED
        for line, named in tables((SOURCE / path).read_text("utf-8"))
    }
    assert found == {}, "ask the Protocol record, or write it into the profiles"


@pytest.mark.parametrize("path", ALLOWED)
def test_what_may_name_protocols_still_does(path: str) -> None:
    assert any(tables((SOURCE / path).read_text("utf-8"))), "take it out of the list"


@pytest.mark.parametrize(
    "source",
    [
        'TABLE = {"gemini": 1, "bedrock": 2}',
        'TABLE = frozenset({"gemini", "bedrock"})',
        'TABLE = {("gemini", "bedrock"): 1}',
        'if protocol in ("gemini", "bedrock"): pass',
        'match protocol:\n    case "gemini" | "bedrock": pass',
        'match protocol:\n    case "gemini": pass\n    case "bedrock": pass',
    ],
)
def test_a_planted_table_is_found(source: str) -> None:
    assert {named for _, named in tables(source)} == {frozenset({"gemini", "bedrock"})}


@pytest.mark.parametrize("source", ['x = {"gemini": 1}', 'f("gemini", "bedrock")', 'x = {"mode": "gemini"}'])
def test_a_name_alone_is_no_table(source: str) -> None:
    assert list(tables(source)) == []
