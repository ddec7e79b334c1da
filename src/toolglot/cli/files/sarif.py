"""Findings as SARIF 2.1.0, for code hosts and editors.

A rule becomes a reporting descriptor with its description, source and confidence. A violation becomes a result with its
region in the file, and its JSON path as a logical location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as url_quote

from toolglot import __version__
from toolglot.masking import mask
from toolglot.profiles import Fact, Overrides, Rule
from toolglot.profiles.rule_index import all_rules, description_of

if TYPE_CHECKING:
    from toolglot.cli.commands.lint import FoundViolation

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SHAPE: Final = "The body does not follow the protocol."
_CONSERVATIVE: Final = "the conservative default"
_LEVELS: Final = {"guess": "warning", "default": "warning"}


def as_sarif(findings: Sequence[FoundViolation], *, overrides: Overrides | None = None) -> dict[str, Any]:
    """The findings as a SARIF log with one run."""
    known = {named.entry.id: named.entry for named in all_rules(overrides)}
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
    violation = found.violation
    rule = known.get(violation.rule)
    what = rule.text if isinstance(rule, Fact) else description_of(violation.key) if violation.key else _SHAPE
    source = rule.source if rule is not None else _CONSERVATIVE if violation.key else f"the {violation.target} protocol"
    text = (
        f"{what} Demanded by {violation.target}. Source: {source} ({violation.confidence}). "
        f"More: toolglot explain {violation.rule}"
    )
    return {
        "id": violation.rule,
        "shortDescription": {"text": what},
        "fullDescription": {"text": what},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS.get(violation.confidence, "error")},
        "properties": {"key": violation.key, "source": source, "confidence": violation.confidence},
    }


def _result(found: FoundViolation, index: int) -> dict[str, Any]:
    violation, span = found.violation, found.span
    hint = f" ({violation.hint})" if violation.hint else ""
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(found.record.file)}}
    if not found.record.is_session:  # the lines of a request that was made of a session are not those of its file
        physical["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    location = {
        "physicalLocation": physical,
        "logicalLocations": [{"fullyQualifiedName": mask(violation.path)}],
    }
    return {
        "ruleId": violation.rule,
        "ruleIndex": index,
        "level": _LEVELS.get(violation.confidence, "error"),
        "message": {"text": mask(f"{violation.target} refuses: {violation.message}{hint}")},
        "locations": [location],
    }


def _uri(file: str) -> str:
    return url_quote(file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
