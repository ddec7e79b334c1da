"""Findings as SARIF 2.1.0, for code hosts and editors.

A rule of the profile is a reporting descriptor with its demand, source and confidence; a violation is a result with its
region in the file and its JSON path as a logical location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as url_quote

from toolglot import __version__, profiles
from toolglot.cli.rule_index import description_of
from toolglot.cli.terminal import clean
from toolglot.profiles import Overrides

if TYPE_CHECKING:
    from toolglot.cli.lint import Found

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"guess": "warning", "default": "warning"}


def as_sarif(findings: Sequence[Found], *, overrides: Overrides | None = None) -> dict[str, Any]:
    """The findings as a SARIF log with one run."""
    indexes: dict[str, int] = {}
    rules: list[dict[str, Any]] = []
    for found in findings:
        if found.violation.rule not in indexes:
            indexes[found.violation.rule] = len(rules)
            rules.append(_descriptor(found, overrides))
    driver = {"name": "toolglot", "version": __version__, "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, indexes[found.violation.rule]) for found in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(found: Found, overrides: Overrides | None) -> dict[str, Any]:
    said = found.violation
    what, source = "The body has not the form of the protocol.", "the protocol's own description"
    if said.key:
        origin = profiles.get(said.target, overrides=overrides).origin(said.key)
        what = description_of(said.key)
        source = origin.source if origin.id == said.rule else said.rule
    else:
        facts = profiles.get(said.target, overrides=overrides).facts
        fact = next((fact for fact in facts if fact.id == said.rule), None)
        what, source = (fact.text, fact.source) if fact is not None else (what, source)
    text = f"{what} Demanded by {said.target}. Source: {source} ({said.confidence}). More: toolglot explain {said.rule}"
    return {
        "id": said.rule,
        "shortDescription": {"text": clean(what)},
        "fullDescription": {"text": clean(what)},
        "help": {"text": clean(text)},
        "defaultConfiguration": {"level": _LEVELS.get(said.confidence, "error")},
        "properties": {"key": said.key, "source": clean(source), "confidence": said.confidence},
    }


def _result(found: Found, index: int) -> dict[str, Any]:
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
        "logicalLocations": [{"fullyQualifiedName": clean(said.path)}],
    }
    return {
        "ruleId": said.rule,
        "ruleIndex": index,
        "level": _LEVELS.get(said.confidence, "error"),
        "message": {"text": clean(f"{said.target} refuses: {said.message}{hint}")},
        "locations": [location],
    }


def _uri(file: str) -> str:
    return url_quote(file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
