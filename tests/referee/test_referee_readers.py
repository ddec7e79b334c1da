"""The referee's readers of all protocols: recordings, paths, limits, and laws."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdk import census
from support.referee.mutated_bodies import PROTOCOLS, Body, known, mutants, recorded
from support.referee.reader_views import read
from toolglot import profiles
from toolglot.referee.readers.forms import MAX_FINDINGS
from toolglot.referee.view import PartView, View

# --- every protocol ---------------------------------------------------------------------------------

RECORDED: Final = {
    f"{protocol}-{name}": (protocol, body) for protocol in PROTOCOLS for name, body in recorded(protocol)
}


@pytest.mark.parametrize(("protocol", "body"), RECORDED.values(), ids=RECORDED.keys())
def test_a_recording_has_no_wrong_shape_and_the_census_finds_the_same(protocol: str, body: Body) -> None:
    view = read(protocol, body)
    assert view.shapes == ()
    counted = Counter(_short(found) for found in census.of_body(protocol, body).elements())
    expected = {found: n for found, n in counted.items() if found[0] in ("call", "result", "media", "thinking")}
    written_out = _documents_as_text(body)
    if written_out:  # a document to the referee, though no canonical block carries it
        expected["media",] = expected.get(("media",), 0) + written_out
    assert _seen(view) == expected


def _documents_as_text(value: Any) -> int:
    """Bedrock's documents whose text is in the request."""
    if isinstance(value, list):
        return sum(_documents_as_text(member) for member in value)
    if not isinstance(value, dict):
        return 0
    document = value.get("document")
    source = document.get("source", {}) if isinstance(document, dict) else {}
    return int("text" in source or "content" in source) + sum(_documents_as_text(member) for member in value.values())


def _short(found: census.Found) -> tuple[str, ...]:
    """What the picture has of it: the text of a result is not compared."""
    return found[:2] if found[0] == "result" else found


def _seen(view: View) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for item in _items(view):
        if item.kind == "call":
            found["call", item.id or "", item.name or "", census.written(item.arguments)] += 1
        elif item.kind == "result":
            found["result", item.id or ""] += 1
        elif item.kind in ("media", "thinking"):
            found[(item.kind,)] += 1
    return found


def _items(view: View) -> Iterator[PartView]:
    for message in (*view.messages, *((view.system,) if view.system is not None else ())):
        for item in message.items:
            yield item
            yield from item.content


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_path_of_a_view_exists_in_the_body(protocol: str) -> None:
    count = 0
    for body in known(protocol):
        view = read(protocol, body)
        for path in _paths(view):
            assert _at(body, path) is not None, path
            count += 1
        for item in _items(view):
            assert set((item.text or "").split("\n")) <= {*"\n".join(_texts(_at(body, item.path))).split("\n"), ""}
    assert count > 50


def _paths(view: View) -> Iterator[str]:
    yield from (item.path for item in _items(view))
    yield from (message.path for message in view.messages)
    for tool in view.tools or ():
        yield from (tool.path, *((tool.schema_path,) if tool.schema is not None else ()))
    settings = (view.max_tokens, view.thinking_mode, view.effort, view.budget, view.output, view.user, view.choice)
    yield from (setting.path for setting in (*settings, view.parallel, *view.sampling.values()) if setting)
    yield from (marker.path for marker in view.cache_markers)


def _at(body: Any, path: str) -> Any:
    steps = re.findall(r"\.([A-Za-z_0-9]+)|\[(\d+)\]", path)
    for name, index in steps:
        body = body[name] if name else body[int(index)]
    return body


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _texts(member)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_rule_of_a_shape_is_one_of_the_profile(protocol: str) -> None:
    profile = profiles.get(protocol)
    rules = {rule.id for rule in profile.origins.values()} | {fact.id for fact in profile.facts}
    named = {shape.rule for mutant in mutants(protocol) for shape in read(protocol, mutant.body).shapes} - {""}
    assert named <= rules
    assert named or protocol == "gemini"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [None, 7, "x", [], [{}]])
def test_a_body_that_is_no_object_is_one_shape(protocol: str, body: Any) -> None:
    view = read(protocol, body)
    assert [shape.path for shape in view.shapes] == ["$"]
    assert (view.messages, view.tools, view.system) == ((), None, None)


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai_responses", {"input": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("gemini", {"contents": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("bedrock", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("cohere", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("ollama", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
    ],
)
def test_findings_are_bounded(protocol: str, body: Body) -> None:
    view = read(protocol, body)
    assert len(view.shapes) == MAX_FINDINGS
    assert len(view.extra_fields) == MAX_FINDINGS


def test_a_deep_schema_is_read_without_recursing_for_ever() -> None:
    schema: Body = {}
    for _ in range(5_000):
        schema = {"items": schema}
    view = read("gemini", {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]})
    assert view.shapes == ()


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.law
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(body=JSON)
def test_law_no_json_makes_a_reader_raise(protocol: str, body: Any) -> None:
    assert isinstance(read(protocol, body), View)


@pytest.mark.law
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_law_a_known_body_with_anything_in_it_makes_no_reader_raise(protocol: str, data: st.DataObject) -> None:
    """Values of every sort where readers look: the words of the protocol with anything beside and inside them."""
    body = data.draw(st.sampled_from(known(protocol)))
    words = sorted(_words(body))
    inner = st.recursive(
        JSON | st.sampled_from(words),
        lambda within: st.lists(within, max_size=3) | st.dictionaries(st.sampled_from(words), within, max_size=4),
        max_leaves=20,
    )
    mixed = {**body, **data.draw(st.dictionaries(st.sampled_from(sorted(body)), inner, min_size=1))}
    view = read(protocol, mixed)
    assert read(protocol, mixed) == view, "the same body, the same picture"


def _words(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {key for key in value if len(key) < 40} | {word for member in value.values() for word in _words(member)}
    if isinstance(value, list):
        return {word for member in value for word in _words(member)}
    return {value} if isinstance(value, str) and len(value) < 20 else set()
