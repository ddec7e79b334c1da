"""What a target refuses, one file per subject. A check reads the view of a request and yields breaches of a rule.

Here is every check by the profile key that it checks, and the keys that cannot be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.referee.checks import caching as checks_caching
from toolglot.referee.checks import calls as checks_calls
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
    **checks_reasoning.CHECKS,
    **checks_schema.CHECKS,
    **checks_request.CHECKS,
    **checks_caching.CHECKS,
}
"""By profile key."""

FACTS: Final[Mapping[str, Check]] = {**checks_schema.FACTS, **checks_turns.FACTS}

UNSEEN: Final[Mapping[str, str]] = {
    "ids.style": "how ids are made; pattern and length decide what is legal",
    "ids.prefix": "a convention of the issuer: other prefixes are accepted",
    "tools.unknown_fields": "an exception to `request.unknown_fields`, whose check follows it",
    "results.carrier": "the form of the protocol: no other can be written",
    "reasoning.foreign": "a request does not show who made its thinking",
    "reasoning.default": "the mode of a request that sets none",
    "reasoning.placeholder": "what to write; placeholder_on decides where something is needed",
    "reasoning.bound_to": "a request does not show who made a signature, and with which prefix",
    "schema.field": "a name of the protocol: a wrong one is an unknown field",
    "schema.free_field": "names the field that the other schema rules do not apply to",
    "request.count_tokens": "another request",
    "request.path": "an address, not a body",
    "request.stream_path": "an address, not a body",
    "tools.web_search": "a type of `tools.server`, whose check follows it",
    "tools.web_fetch": "a type of `tools.server`, whose check follows it",
    "tools.forced_search": "about choices that name no tool of the request",
    "tools.search_with_functions": "newer models accept both with a switch that a request may have",
    "calls.in_text": "about replies",
    "calls.malformed": "about replies",
    "turns.refusals": "about replies",
    "tools.by_prompt": "tools in the prompt are text",
    "turns.prefill_flags": "names of marks; `turns.prefill` decides whether one is needed",
    "turns.pauses": "an exception to `turns.prefill`, whose check follows it",
    "turns.media_stores": "schemes of URLs; `turns.media_sources` decides how media may be sent",
    "turns.media_base64": "the form of the protocol: the reader checks the data",
    "turns.media_by_type": "how a medium is understood, not whether it is accepted",
    "turns.max_image": "the view of a request has no data of media; `toolglot doctor` checks it in session files",
    "turns.untyped_media": "the form of the protocol: the reader checks the type",
    "reasoning.summaries": "a field of the protocol: elsewhere it is an unknown field",
    "request.old_max_tokens_field": "an exception to `request.max_tokens_field`, whose check follows it",
    "request.output_description": "a field of the protocol: elsewhere it is an unknown field",
    "request.common_fields": "fields that are known; others are unknown fields",
    "request.context_management": "fields and items of the protocol: elsewhere they are unknown",
    "cache.style": "how a prompt gets into a cache, not whether it is accepted",
    "cache.placing": "what toolglot does",
    "cache.min_tokens": "a shorter prompt is accepted, and not cached",
    "cache.step_tokens": "how a cache grows",
    "cache.default_ttl_seconds": "how long a cache lasts",
    "cache.lookback": "where a cache is looked for",
    "cache.read_price": "what a cache costs",
    "cache.write_price": "what a cache costs",
    "cache.write_price_1h": "what a cache costs",
    "cache.key_field": "a field that a request may have",
    "cache.affinity_header": "a header",
}
"""Keys about things that a request does not show, and why."""
