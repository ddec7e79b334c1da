"""Where an endpoint differs from its profile.

    for departure in departures(result, profiles.get("mistral", model)):
        departure.key, departure.found, departure.expected

A finding and an entry of a profile are compared by what they mean for the requests that were sent: two patterns are the
same if they accept the same ids, and a limit beyond what was tried is the same as none.

Law: pure. An entry that a profile does not state is a departure only if the endpoint accepts less than the default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from toolglot.discovery.findings import DiscoveryResult, Finding
from toolglot.discovery.probes.ids import FIRSTS, ID_LADDER, MARKS, NAME_LADDER, NAME_MARKS
from toolglot.discovery.probes.request import EFFORTS
from toolglot.discovery.probes.schema import FORMATS, TRIED
from toolglot.discovery.probes.tools import COUNT_LADDER, MODES
from toolglot.profiles import Profile
from toolglot.protocols.base import get


class Departure(Struct, frozen=True, kw_only=True):
    """One entry in which an endpoint differs from its profile."""

    key: str
    found: Any
    expected: Any
    stated: bool
    """Whether the profile has the entry; otherwise its default applies."""
    rule: str
    evidence: tuple[str, ...] = ()
    note: str = ""


def departures(result: DiscoveryResult, profile: Profile) -> tuple[Departure, ...]:
    """Every entry that differs."""
    return tuple(
        Departure(
            key=found.key,
            found=found.value,
            expected=value_of(profile, found.key),
            stated=found.key in profile.origins,
            rule=profile.origin(found.key).id,
            evidence=found.evidence,
            note=found.note,
        )
        for found in result.findings
        if found.key and found.settles and departs(found, profile)
    )


def departs(found: Finding, profile: Profile) -> bool:
    if agrees(found.key, found.value, profile.as_known()):
        return False
    if found.key in profile.origins:
        return True
    return not (agrees(found.key, found.value, profile) or _accepts_more(found.key, found.value, profile))


def value_of(profile: Profile, key: str) -> Any:
    group, field = key.split(".")
    return getattr(getattr(profile, group), field)


def agrees(key: str, found: Any, profile: Profile) -> bool:
    """Whether a finding means the same as a profile's entry."""
    compare = _COMPARED.get(key)
    return compare(found, profile) if compare is not None else bool(found == value_of(profile, key))


def _accepts_more(key: str, found: Any, profile: Profile) -> bool:
    """Whether an endpoint accepts all that the default does, and more."""
    default = value_of(profile, key)
    if type(found) is int and type(default) is int:
        return found < default if key == "request.min_max_tokens" else found > default
    if isinstance(found, tuple) and isinstance(default, tuple):
        return {*found} <= {*default} if key == "schema.refused" else {*found} >= {*default}
    return key == "tools.max_count" and found is None


# --- comparisons by meaning -------------------------------------------------------------------------


def _same_pattern(samples: Iterable[str], key: str) -> Callable[[str, Profile], bool]:
    tried = tuple(samples)

    def compare(found: str, profile: Profile) -> bool:
        real = value_of(profile, key)
        return all(bool(re.fullmatch(found, one)) == bool(re.fullmatch(real, one)) for one in tried)

    return compare


def _same_limit(key: str, maximum: int) -> Callable[[int, Profile], bool]:
    return lambda found, profile: min(found, maximum) == min(value_of(profile, key), maximum)


def _same_count(found: int | None, profile: Profile) -> bool:
    maximum, real = COUNT_LADDER[-1], profile.tools.max_count
    return min(maximum if found is None else found, maximum) == min(maximum if real is None else real, maximum)


def _same_words(key: str, tried: Iterable[str], rule: str = "") -> Callable[[Any, Profile], bool]:
    """Compare lists in the words that were tried, without those that a protocol cannot express."""
    words = {*tried}

    def compare(found: Any, profile: Profile) -> bool:
        possible = words.difference(get(profile.protocol).inexpressible.get(rule or key, ()))
        return possible.intersection(found) == possible.intersection(value_of(profile, key))

    return compare


def _same_sampling(found: Any, profile: Profile) -> bool:
    """Compare settings, which are tried one by one. A model that thinks by default refuses some."""
    refused = profile.reasoning.refused_sampling if profile.reasoning.default == "on" else ()
    possible = {*_SAMPLED}.difference(get(profile.protocol).inexpressible.get("request.sampling", ()))
    return possible.intersection(found) == possible.intersection(profile.request.sampling).difference(refused)


def _same_media(key: str) -> Callable[[Any, Profile], bool]:
    """Compare media by images: no others were sent."""
    return lambda found, profile: ("image" in found) == ("image" in value_of(profile, key))


def accepts_assistant_last(last: str, prefill: str) -> bool:
    return last == "any" or prefill == "yes"


def _same_last(found: str, profile: Profile) -> bool:
    """`any` and an accepted prefill are the same for a request that ends with an assistant turn."""
    return (found == "any") == accepts_assistant_last(profile.turns.last, profile.turns.prefill)


def _same_prefill(found: str, profile: Profile) -> bool:
    if found == "yes":
        return accepts_assistant_last(profile.turns.last, profile.turns.prefill)
    return found == profile.turns.prefill


def _same_keywords(found: Any, profile: Profile) -> bool:
    rules = profile.schema
    for word in TRIED:
        parts = ("if", "then", "else") if word == "if" else (word,)
        is_refused = any(part in rules.refused for part in parts)
        is_refused |= rules.keywords is not None and any(part not in rules.keywords for part in parts)
        if is_refused != (word in found):
            return False
    return True


def _accepts_references(profile: Profile) -> bool:
    """References need their keywords too."""
    rules, words = profile.schema, {"$ref", "$defs"}
    return rules.refs and words.isdisjoint(rules.refused) and (rules.keywords is None or words <= {*rules.keywords})


def _same_formats(found: Any, profile: Profile) -> bool:
    real = profile.schema.formats
    return all((found is None or word in found) == (real is None or word in real) for word in FORMATS)


_OPTIONAL: Final = ("optional", "wanted")
_STRICT: Final = ("optional", "explicit_false")
_SAMPLED: Final = ("temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty")

_COMPARED: Final[dict[str, Callable[[Any, Profile], bool]]] = {
    "ids.pattern": _same_pattern([f"Ab3d{mark}6gH9" for mark in ("E", *MARKS.values())], "ids.pattern"),
    "ids.max_length": _same_limit("ids.max_length", ID_LADDER[-1]),
    "names.pattern": _same_pattern(
        [*(f"{mark}weather" for mark in ("w", *FIRSTS.values())), *(f"get{mark}weather" for mark in NAME_MARKS)],
        "names.pattern",
    ),
    "names.max_length": _same_limit("names.max_length", NAME_LADDER[-1]),
    "tools.max_count": _same_count,
    "tools.strict": lambda found, profile: (found in _STRICT) == (profile.tools.strict in _STRICT),
    # An object that must have properties cannot be empty at the root either.
    "tools.omit_empty_parameters": lambda found, profile: (
        found == (profile.tools.omit_empty_parameters or profile.schema.properties_non_empty)
    ),
    # For a model without tools on this endpoint, they are in the prompt, or the request goes elsewhere.
    "tools.by_prompt": lambda found, profile: bool(found) == bool(profile.tools.by_prompt or profile.tools.protocol),
    "choice.modes": _same_words("choice.modes", MODES),
    "choice.while_thinking": _same_words("choice.while_thinking", MODES, "choice.modes"),
    "results.name": lambda found, profile: (
        found == profile.results.name or (found in _OPTIONAL and profile.results.name in _OPTIONAL)
    ),
    "results.alone": lambda found, profile: found == (profile.results.alone or "text" not in profile.results.colocated),
    "results.media": _same_media("results.media"),
    "turns.media": _same_media("turns.media"),
    "turns.last": _same_last,
    "turns.prefill": _same_prefill,
    "reasoning.efforts": _same_words("reasoning.efforts", EFFORTS),
    "request.sampling": _same_sampling,
    "request.output": _same_words("request.output", ("json", "json_schema")),
    "schema.refused": _same_keywords,
    "schema.properties_required": lambda found, profile: (
        found == (profile.schema.properties_required or profile.schema.properties_non_empty)
    ),
    "schema.refs": lambda found, profile: found == _accepts_references(profile),
    "schema.formats": _same_formats,
}
"""How an entry is compared, if not by equality."""
