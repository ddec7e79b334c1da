"""Dialects of one's own: what is registered works at once, and what could not work is refused there and then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolglot.conversation import ToolCall
from toolglot.dialects import Writing, known, registry
from toolglot.dialects.detection import detect
from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.registry import register_dialect
from toolglot.dialects.scanner import Steps
from toolglot.dialects.text_stream import TextToolStream, parse_text
from toolglot.dialects.writers.writing import write_calls
from toolglot.errors import InputError

pytestmark = pytest.mark.usefixtures("clean_registry")
READ = json_in("</own_call>")


def own(**changed: Any) -> Dialect:
    return Dialect(**{"name": "own_call", "openers": ("<own_call>",), "read": READ, **changed})


def test_a_dialect_is_read_under_auto_and_written_once_it_is_registered() -> None:
    writing = Writing((lambda name, _arguments, _id: f'<own_call>{{"name": "{name}"}}</own_call>',))
    register_dialect(own(writing=writing))
    register_dialect(own())  # it may replace itself; the writing of before stays
    text = write_calls([ToolCall("", "ls", {})], "own_call")
    assert [call.name for call in parse_text(f"Well. {text}").calls] == ["ls"]
    assert detect(text).dialect == "own_call"


@pytest.mark.parametrize(
    ("openers", "message"),
    [
        (("<tool",), r"'<tool' of the dialect own_call is the beginning of '<tool_calls>', that of the dialect apriel"),
        (("<tool_call>!",), r"'<tool_call>!' of the dialect own_call begins with '<tool_call>', that of the dialect"),
        (("<a>", "<a>>"), r"'<a>' of the dialect own_call is the beginning of '<a>>', its own"),
        (("<thin",), "is the beginning of '<think>'"),
    ],
)
def test_an_opener_that_begins_another_is_refused_with_both_names(openers: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        register_dialect(own(openers=openers))
    assert caught.value.path == "dialect.openers"
    assert parse_text("hello").text == "hello"


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"name": "auto"}, "dialect.name"),
        ({"name": ""}, "dialect.name"),
        ({"name": 3}, "dialect.name"),
        ({"openers": ()}, "dialect.openers"),
        ({"openers": ("",)}, "dialect.openers"),
        ({"openers": "@x"}, "dialect.openers"),
        ({"models": "gpt*"}, "dialect.models"),
        ({"strong": ("<other>",)}, "dialect.strong"),
        ({"prompted": ("<other>",)}, "dialect.prompted"),
        ({"inside": "("}, "dialect.inside"),
        ({"inside": None}, "dialect.inside"),
        ({"thinking": ("<think>",)}, "dialect.thinking"),
        ({"thinking": "<think>"}, "dialect.thinking"),
        ({"read": "json"}, "dialect.read"),
        ({"named": "own_call"}, "dialect.named"),
        ({"writing": "<own_call>"}, "dialect.writing"),
        ({"writing": Writing(())}, "dialect.writing"),
        ({"writing": Writing(("<own_call>",))}, "dialect.writing"),  # type: ignore[arg-type]
        ({"named": own(openers=("<a>", "<a>b"))}, "dialect.named.openers"),
    ],
)
def test_what_could_not_be_read_with_is_refused(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        register_dialect(own(**changed))
    assert caught.value.path == path


def test_what_is_no_dialect_is_refused() -> None:
    with pytest.raises(InputError, match="expected a Dialect"):
        register_dialect("hermes")  # type: ignore[arg-type]


def test_all_dialects_that_are_known_could_be_registered() -> None:
    for name in registry.names():
        register_dialect(registry.get(name))


def test_no_reader_and_writer_of_a_dialect_take_75_lines() -> None:
    lines = {path.name: path.read_text("utf-8").count("\n") for path in Path(known.__path__[0]).glob("*.py")}
    assert len(lines) > 30
    assert {name: count for name, count in lines.items() if count >= 75} == {}


def test_a_reader_that_is_no_generator_or_yields_unknown_values_is_an_error() -> None:
    def plain(_reader: DialectReader, _opener: str) -> Any:
        return "none"

    def odd(reader: DialectReader, _opener: str) -> Steps[Outcome]:
        yield from reader.scanner.skip_spaces()
        return "maybe"  # type: ignore[return-value]

    register_dialect(own(name="own_plain", openers=("<own_plain>",), read=plain))
    register_dialect(own(name="own_odd", openers=("<own_odd>",), read=odd))
    with pytest.raises(InputError, match="own_plain is not a generator function"):
        parse_text("<own_plain>", dialect="own_plain")
    with pytest.raises(InputError, match=r"own_odd returned 'maybe' \(one of call, cut, none, passed, unfinished\)"):
        parse_text("<own_odd>", dialect="own_odd")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hermse", "unknown dialect 'hermse'; did you mean 'hermes'? (`toolglot parse --list` lists them)"),
        (
            "qwen",
            "unknown dialect 'qwen'; did you mean 'hermes' or 'qwen3_coder'? (`toolglot parse --list` lists them)",
        ),
        ("???", "unknown dialect '???' (`toolglot parse --list` lists them)"),
        (7, "dialect: expected the name of a dialect, got 7"),
    ],
)
def test_a_name_that_is_none_gets_a_hint(name: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        TextToolStream(dialect=name)
    assert str(caught.value) == message
