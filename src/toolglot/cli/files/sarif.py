"""Findings as SARIF 2.1.0, for code hosts and editors.

A rule of the profile is a reporting descriptor with its demand, source and confidence; a violation is a result with its
region in the file and its JSON path as a logical location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as url_quote

from toolglot import __version__
from toolglot.cli.files.rule_index import all_named, description_of
from toolglot.masking import mask
from toolglot.profiles import Fact, Overrides, Rule

if TYPE_CHECKING:
    from toolglot.cli.commands.lint import FoundViolation

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SHAPE: Final = "The body has not the form of the protocol."
_CONSERVATIVE: Final = "the conservative default"
_LEVELS: Final = {"guess": "warning", "default": "warning"}


def as_sarif(findings: Sequence[FoundViolation], *, overrides: Overrides | None = None) -> dict[str, Any]:
    """The findings as a SARIF log with one run."""
    known = {named.said.id: named.said for named in all_named(overrides)}
    indexes: dict[str, int] = {}
    rules: list[dict[str, Any]] = []
    for found in findings:
        if found.violation.rule not in indexes:
            indexes[found.violation.rule] = len(rules)
            rules.append(_descriptor(found, known))
    driver = {"name": "toolglot", "version": __version__, "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, indexes[found.violation.rule]) for found in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(found: FoundViolation, known: dict[str, Rule | Fact]) -> dict[str, Any]:
    said = found.violation
    rule = known.get(said.rule)
    what = rule.text if isinstance(rule, Fact) else description_of(said.key) if said.key else _SHAPE
    source = rule.source if rule is not None else _CONSERVATIVE if said.key else f"the {said.target} protocol"
    text = f"{what} Demanded by {said.target}. Source: {source} ({said.confidence}). More: toolglot explain {said.rule}"
    return {
        "id": said.rule,
        "shortDescription": {"text": what},
        "fullDescription": {"text": what},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS.get(said.confidence, "error")},
        "properties": {"key": said.key, "source": source, "confidence": said.confidence},
    }


def _result(found: FoundViolation, index: int) -> dict[str, Any]:
    said, place = found.violation, found.place
    hint = f" ({said.hint})" if said.hint else ""
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    location = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(found.record.file)}, "region": region},
        "logicalLocations": [{"fullyQualifiedName": mask(said.path)}],
    }
    return {
        "ruleId": said.rule,
        "ruleIndex": index,
        "level": _LEVELS.get(said.confidence, "error"),
        "message": {"text": mask(f"{said.target} refuses: {said.message}{hint}")},
        "locations": [location],
    }


def _uri(file: str) -> str:
    return url_quote(file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
