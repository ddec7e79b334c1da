"""Cache markers: whether they are accepted, how many, where, and for how long."""

from __future__ import annotations

from toolglot.errors import quote
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach


def cache_markers(case: RequestCase) -> Findings:
    for marker in case.view.cache_markers if not case.profile.request.cache_markers else ():
        if not case.ignores("request.cache_markers"):
            yield RuleBreach(marker.path, "cache markers are not accepted", "leave it out")


def _takes_markers(case: RequestCase) -> bool:
    return case.profile.request.cache_markers and case.profile.cache.style == "markers"


def max_markers(case: RequestCase) -> Findings:
    limit, markers = case.profile.cache.max_markers, case.view.cache_markers
    for marker in markers[: max(len(markers) - limit, 0)] if _takes_markers(case) else ():
        message = f"at most {limit} cache markers are accepted, and there are {len(markers)}"
        yield RuleBreach(marker.path, message, f"leave all but {limit} out", str(len(markers)))


def positions(case: RequestCase) -> Findings:
    """A host that ignores what it does not know ignores markers in other places. A result is content of a message too:
    none is known to be refused there."""
    if not _takes_markers(case) or case.ignores_fields:
        return
    for marker in case.view.cache_markers:
        known = case.profile.cache.positions
        if marker.section not in known and not (marker.section == "results" and "messages" in known):
            message = f"a cache marker is not accepted in {marker.section}"
            hint = f"put it into {' or '.join(case.profile.cache.positions)}"
            yield RuleBreach(marker.path, message, hint, marker.section, is_aside=True)


def ttls(case: RequestCase) -> Findings:
    """A time that the target has, and no longer one behind a shorter one; a marker that names none has the shortest."""
    allowed = case.profile.cache.ttls
    if not allowed or not _takes_markers(case):
        return
    longest = len(allowed)
    for marker in case.view.cache_markers:
        if marker.ttl is not None and marker.ttl not in allowed:
            message = f"a cache marker cannot ask for {quote(marker.ttl)}"
            hint = f"one of {', '.join(allowed)}"
            yield RuleBreach(marker.path, message, hint, marker.ttl[:80], is_aside=True)
            continue
        rank = 0 if marker.ttl is None else allowed.index(marker.ttl)
        if rank > longest:
            message = f"a cache marker for {marker.ttl} must not come after one for {allowed[longest]}"
            yield RuleBreach(marker.path, message, "ask for the longer time first", marker.ttl or "")
        else:
            longest = rank


def key_length(case: RequestCase) -> Findings:
    limit, key = case.profile.cache.key_length, case.view.cache_key
    if limit is None or key is None or not isinstance(key.value, str) or len(key.value) <= limit:
        return
    yield RuleBreach(key.path, f"at most {limit} characters are accepted", "shorten it", str(len(key.value)))


CHECKS: Checks = {
    "request.cache_markers": cache_markers,
    "cache.max_markers": max_markers,
    "cache.positions": positions,
    "cache.ttls": ttls,
    "cache.key_length": key_length,
}
