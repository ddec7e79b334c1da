"""Every check by the key of the profile that makes the demand, and the keys that no check can be made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.referee.checks import calls as checks_calls
from toolglot.referee.checks import documents as checks_documents
from toolglot.referee.checks import ids as checks_ids
from toolglot.referee.checks import reasoning as checks_reasoning
from toolglot.referee.checks import request as checks_request
from toolglot.referee.checks import results as checks_results
from toolglot.referee.checks import schema as checks_schema
from toolglot.referee.checks import tools as checks_tools
from toolglot.referee.checks import turns as checks_turns
from toolglot.referee.finding import Check

CHECKS: Final[Mapping[str, Check]] = {
    **checks_ids.CHECKS,
    **checks_tools.CHECKS,
    **checks_calls.CHECKS,
    **checks_results.CHECKS,
    **checks_turns.CHECKS,
    **checks_documents.CHECKS,
    **checks_reasoning.CHECKS,
    **checks_schema.CHECKS,
    **checks_request.CHECKS,
}
"""By profile key."""

FACTS: Final[Mapping[str, Check]] = {**checks_schema.FACTS, **checks_turns.FACTS}

UNSEEN: Final[Mapping[str, str]] = {
    "ids.style": "how ids are made; what is legal is said by pattern and length",
    "ids.prefix": "a habit of the issuer: other prefixes are taken",
    "tools.unknown_fields": "where `request.unknown_fields` does not hold: it finds the fields",
    "results.carrier": "the form of the protocol: no other can be written",
    "reasoning.foreign": "a request does not say who made its thinking",
    "reasoning.default": "what holds when nothing is asked",
    "reasoning.placeholder": "what to write; that something must stand is said by placeholder_on",
    "reasoning.bound_to": "a request does not say who made a signature, and with which prefix",
    "schema.field": "a name of the protocol: a wrong one is an unknown field",
    "schema.free_field": "names where the other rules of schemas do not hold",
    "request.count_tokens": "another request",
    "calls.in_text": "about replies",
    "calls.malformed": "about replies",
    "turns.refusals": "about replies",
    "tools.by_prompt": "tools that are in the prompt are text there",
}
"""Keys that say nothing about what can be seen in a request, and why."""
