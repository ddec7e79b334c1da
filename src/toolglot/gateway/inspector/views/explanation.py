"""What is known of a rule that an entry names: what `toolglot explain` says of it, in short.

Law: pure. An unknown name is an error with the closest ones.
"""

from __future__ import annotations

from typing import Any

from toolglot.errors import InputError, closest_names, quote
from toolglot.profiles import KEYS, Overrides, Rule
from toolglot.profiles.rule_index import NamedRule, all_rules, default_of, description_of


def explanation_of(rule: str, overrides: Overrides | None = None) -> dict[str, Any]:
    """A rule, a key of the profiles, or a fact."""
    known = all_rules(overrides)
    named = [each for each in known if each.entry.id == rule]
    key = rule.removeprefix("default:")
    if not named:
        if key in KEYS:
            return _described(rule, key)
        close = closest_names(rule[:80], [each.entry.id for each in known])
        hint = f"did you mean {' or '.join(close)}?" if close else "toolglot explain --list shows all rules"
        raise InputError(f"unknown rule {quote(rule)}", path="rule", hint=hint)
    first = named[0].entry
    if not isinstance(first, Rule):
        return {**_described(rule, ""), "text": first.text, **_evidence(named[0])}
    return {**_described(rule, first.key), "value": first.value, **_evidence(named[0])}


def _described(rule: str, key: str) -> dict[str, Any]:
    return {
        "rule": rule,
        "title": key or rule,
        "text": description_of(key) if key else "",
        "value": default_of(key) if key else None,
        "source": None,
        "confidence": "default" if key else None,
        "says": None,
        "targets": [],
    }


def _evidence(named: NamedRule) -> dict[str, Any]:
    entry = named.entry
    return {
        "source": entry.source,
        "confidence": entry.confidence,
        "says": entry.error or None,
        "targets": [f"{named.target} ({named.match})" if named.match else named.target],
    }
