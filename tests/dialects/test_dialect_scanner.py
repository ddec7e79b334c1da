"""The ground that dialects stand on: text in pieces, and the JSON and the Python literals in it.

What is read depends on the text and never on where it was cut, and no text makes reading slow.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.counted_work import is_linear, no_hang
from toolglot.dialects.scanner import Marks, Scanner, Steps, marks
from toolglot.dialects.text_stream import TextToolStream
from toolglot.dialects.values.json_text import pass_value, read_string, unescape
from toolglot.dialects.values.python_text import literal, number_as_json, pass_literal

Reading = Callable[[Scanner, list[str]], Steps[object]]
"""A reader, and where what it passes on goes."""


def read(pieces: Iterable[str], reading: Reading) -> tuple[object, str, str]:
    """What a reader returns, what it passed on, and what it left unread."""
    scanner, passed = Scanner(), list[str]()
    steps = reading(scanner, passed)
    feed = iter(pieces)
    try:
        next(steps)
        for piece in feed:
            if scanner.passes is not None and scanner.passes(piece):
                scanner.sink(piece)
                continue
            scanner.push(piece)
            next(steps)
        scanner.is_over, scanner.passes = True, None
        next(steps)
    except StopIteration as done:
        return done.value, "".join(passed), scanner.text[scanner.at :] + "".join(feed)
    raise AssertionError("a reader waits for more text than there is")


def cut_at(text: str, positions: Iterable[int]) -> list[str]:
    ends = sorted({position % (len(text) + 1) for position in positions})
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def same_however_cut(text: str, positions: list[int], reading: Reading) -> tuple[object, str, str]:
    whole = read([text], reading)
    assert read(cut_at(text, positions), reading) == whole
    assert read(text, reading) == whole
    return whole


texts = st.text("<>/ab|{}[]()\"'\\,:=\n é👩", max_size=40)
cuts = st.lists(st.integers(0, 60), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.sampled_from([0.5, -1e300, 2.0]) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


# --- marks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [("<a", "<ab"), ("", "x"), ("",)])
def test_a_mark_is_not_empty_and_no_beginning_of_another(wrong: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is the beginning of"):
        Marks(*wrong)


def test_no_marks_are_found_nowhere() -> None:
    nothing = Marks()
    assert nothing.find("abc", 0) is None
    assert nothing.may_begin("abc", 0) is None
    assert nothing.held_from("abc", 0) == 3
    assert nothing.passes("abc")


@pytest.mark.law
@given(texts)
def test_only_what_may_be_the_beginning_of_a_mark_is_held(text: str) -> None:
    wanted = ("<a>", "</ab|", "[[")
    held = text[marks(*wanted).held_from(text, 0) :]
    longest = max((mark[:end] for mark in wanted for end in range(len(mark)) if text.endswith(mark[:end])), key=len)
    assert held == longest


# --- reading ----------------------------------------------------------------------------------------


@pytest.mark.law
@given(texts, cuts)
def test_text_up_to_a_mark_is_passed_on(text: str, positions: list[int]) -> None:
    wanted = ("<a>", "</ab|", "[[", "'")
    found, passed, left = same_however_cut(
        text, positions, lambda scanner, passed: scanner.until(marks(*wanted), passed.append)
    )
    first = re.search("|".join(map(re.escape, wanted)), text)
    assert (found, passed) == ((first[0], text[: first.start()]) if first else (None, text))
    assert passed + (str(found) if first else "") + left == text


def _steps(moves: list[int]) -> Reading:
    """Reads in one way after the other."""
    words = re.compile(r"[ab<]+")

    def reading(scanner: Scanner, passed: list[str]) -> Steps[object]:
        found: list[object] = []
        for move in moves:
            if move == 0:
                found.append((yield from scanner.peek()))
            elif move == 1:
                found.append((yield from scanner.skip_spaces()))
            elif move == 2:
                found.append((yield from scanner.one_of(("<a", "<ab>", "b", "[["))))
            elif move == 3:
                found.append((yield from scanner.while_in(words, 3)))
            elif move == 4:
                found.append((yield from scanner.until(marks("/", "]]"), passed.append)))
            elif move == 5:
                scanner.mark()
                yield from scanner.until(marks("b", "{"), passed.append)
                found += [scanner.size_since_mark(), scanner.since_mark()]
                scanner.go_back()
            else:
                there = yield from scanner.need(move)
                found.append(scanner.text[scanner.at : scanner.at + move] if there else None)
                scanner.at += move if there else 0
        return found

    return reading


@pytest.mark.law
@given(texts, cuts, st.lists(st.integers(0, 9), max_size=8))
def test_what_is_read_does_not_depend_on_cuts(text: str, positions: list[int], moves: list[int]) -> None:
    same_however_cut(text, positions, _steps(moves))


def test_what_was_read_and_is_not_marked_is_forgotten() -> None:
    scanner = Scanner()
    run = scanner.until(marks("</end>"), list[str]().append)
    next(run)
    for _ in range(100):
        scanner.push("x" * 100 + "</e")
        next(run)
        assert len(scanner.text) - scanner.at <= 3
        assert len(scanner.text) < 200


def test_going_back_without_a_mark_does_nothing() -> None:
    scanner = Scanner()
    scanner.push("abc")
    scanner.at = 2
    scanner.go_back()
    assert (scanner.text, scanner.at, scanner.since_mark(), scanner.size_since_mark()) == ("abc", 2, "", 0)


# --- JSON -------------------------------------------------------------------------------------------


@pytest.mark.law
@given(values, st.sampled_from(["", " ", "</x>", ", 1", "}"]), cuts)
def test_a_value_of_json_is_passed_on_as_it_is(value: Any, after: str, positions: list[int]) -> None:
    written = json.dumps(value, ensure_ascii=False)
    end, passed, left = same_however_cut(
        written + after, positions, lambda scanner, passed: pass_value(scanner, passed.append)
    )
    assert (end, passed, left) == ("whole", written, after)


@pytest.mark.law
@given(texts, cuts)
def test_nothing_that_is_read_as_json_is_lost(text: str, positions: list[int]) -> None:
    _, passed, left = same_however_cut(text, positions, lambda scanner, passed: pass_value(scanner, passed.append))
    assert passed.replace("\\u000a", "\n") + left == text  # JSON has no line break inside strings


@pytest.mark.law
@given(texts, cuts)
def test_a_string_of_json_is_read_back(text: str, positions: list[int]) -> None:
    written = json.dumps(text, ensure_ascii=False)
    found, _, left = same_however_cut(written + ",", positions, lambda scanner, _: read_string(scanner, 1000))
    assert (found, left) == (text, ",")


@pytest.mark.parametrize("text", ["x", "", '"abc', '"' + "x" * 30 + '"'])
def test_what_is_no_string_or_too_long_is_none(text: str) -> None:
    assert read([text], lambda scanner, _: read_string(scanner, 20))[0] is None


def test_a_line_break_in_a_string_means_itself() -> None:
    assert read(['"a\nb\\n"'], lambda scanner, _: read_string(scanner))[0] == "a\nb\n"


@pytest.mark.parametrize("text", ['"a', "1", ""])
def test_what_is_no_string_of_json_means_none(text: str) -> None:
    assert unescape(text) is None


# --- Python -----------------------------------------------------------------------------------------


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.law
@given(values)
def test_a_literal_means_what_python_means(value: Any) -> None:
    assert literal(repr(value)) == (as_json(value),)
    assert literal(f"  ( {value!r},\n)\n") == ([as_json(value)],)


@pytest.mark.law
@given(values, st.sampled_from([")", ", b=1)", "]", "</x>"]), cuts)
def test_a_literal_ends_where_it_does_however_it_is_cut(value: Any, after: str, positions: list[int]) -> None:
    end, passed, left = same_however_cut(
        repr(value) + after, positions, lambda scanner, passed: pass_literal(scanner, passed.append, ("</x>",))
    )
    assert (end, json.loads(passed), left) == ("whole", as_json(value), after)


@pytest.mark.law
@given(st.text("rfbu'\"\\xuUN01789aé{}[](),:.+-_e \n<", max_size=30), cuts)
def test_whatever_is_read_as_a_literal_is_read_the_same_however_it_is_cut(text: str, positions: list[int]) -> None:
    end, passed, _ = same_however_cut(
        text, positions, lambda scanner, passed: pass_literal(scanner, passed.append, ("<a",))
    )
    if end == "whole":
        json.loads(passed)


def _with_known_escape(escape: re.Match[str]) -> str:
    """An escape that Python does not know as the backslash that it means, which Python warns of."""
    return escape[0] if escape[1] is None else f"\\{escape[0]}"


@pytest.mark.law
@given(st.text("abnrtvfx01789uU'\"\\ \n", max_size=12), st.sampled_from(["'", '"', "'''", '"""']))
@example(r"\\", "'")
def test_escapes_mean_what_they_mean_in_python(body: str, quotes: str) -> None:
    written = quotes + body.replace(quotes[0], "") + " " + quotes
    try:
        wanted = ast.literal_eval(
            re.sub(r"\\([^abfnrtvxuU0-7'\"\\\n])|\\.", _with_known_escape, written, flags=re.DOTALL)
        )
    except (SyntaxError, ValueError):
        return  # a line break where Python has none, or an escape that is none
    assert literal(written) == (wanted,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("r'\\n'", "\\n"),
        ("rf'\\''", "\\'"),
        ("u'a'", "a"),
        ("f'{x}'", "{x}"),
        ("'a' \"b\"\n'c'", "abc"),
        ("('a')", "a"),
        ("('a',)", ["a"]),
        ("()", []),
        ("{'a', 'b'}", ["a", "b"]),
        ("{}", {}),
        ("{1: None, 'b': (1, 2),}", {"1": None, "b": [1, 2]}),
        ("[true, null, True]", [True, None, True]),
        ("'\\d\\/'", "\\d\\/"),
        ("'\\u12'", "\\u12"),
        ("'\\UFFFFFFFF'", "\\UFFFFFFFF"),
        ("'\\ud83d\\ude00'", "😀"),
        ("'It's one'", "It's one"),
        ("'a\nb'", "a\nb"),
    ],
)
def test_literals_are_read_as_models_write_them(text: str, value: Any) -> None:
    assert literal(text) == (value,)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "[", "[1", "[1,", "[1 2]", "(1", "(1 2)", "(", "{", "{1", "{1:", "{1: 2", "{1: 2 3}", "{1, 2: 3}"),
        *(
            "{1: 2, 3}",
            "{[1]: 2}",
            "{1 2}",
            "b'x'",
            "x",
            "os.name",
            "'abc",
            "'abc\\",
            "1 2",
            "1e999",
            "1.2.3",
            "0x",
            "--1",
        ),
        *("[" * 200 + "]" * 200, "9" * 600, "f(x)", "'a' + 'b'", "{'a': }"),
    ],
)
def test_what_is_no_literal_is_none(text: str) -> None:
    assert literal(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("7", "7"), ("07", "7"), ("+7", "7"), ("-7", "-7"), ("1_000", "1000"), ("0x1F", "31"), ("0b11", "3")),
        *(("0o17", "15"), ("1.", "1.0"), (".5", "0.5"), ("1e3", "1000.0"), ("1e999", None), ("x", None), ("", None)),
    ],
)
def test_numbers_are_written_as_json_has_them(text: str, number: str | None) -> None:
    assert number_as_json(text) == number


# --- hostile text -----------------------------------------------------------------------------------

BODIES = ("<", "{", "[", '"', "\\", "' ", " ", "\n")
OPENERS = {
    "auto": ("<tool_call>", "\n[ls(p=", '{"name": "ls", "arguments": '),
    "hermes": ("<tool_call>", '<tool_call>{"name": "ls", "arguments": {"p": "'),
    "pythonic": ("\n[ls(p=", "\n[ls(p='", "\n[ls("),
    "lfm2": ("<|tool_call_start|>[ls(p=", "<|tool_call_start|>[ls(p='a 'b"),
    "olmo3": ("<function_calls>ls(p=", '<function_calls>ls(p="'),
    "gemma4": ("<|tool_call>call:ls{p:", '<|tool_call>call:ls{p:<|"|>', "<|tool_call>call:ls{"),
    "functiongemma": ("<start_function_call>call:ls{q:<escape>", "<start_function_call>call:ls{a:[{b:"),
}
SMALL = 500


def feed_all(dialect: str, text: str, size: int) -> None:
    stream = TextToolStream(dialect=dialect, tools=["ls"])
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
    stream.finish()


@pytest.mark.parametrize("size", [5, 10**9], ids=["in pieces", "whole"])
@pytest.mark.parametrize("dialect", OPENERS)
def test_hostile_text_takes_work_in_proportion_to_its_length(dialect: str, size: int) -> None:
    slow = []
    for opener in ("", *OPENERS[dialect]):
        for body in (*BODIES, opener or "x"):

            def reading(length: int, opener: str = opener, body: str = body) -> Callable[[], None]:
                return partial(feed_all, dialect, opener + body * (length // len(body)), size)

            if not is_linear(reading, SMALL, slack=3):
                slow.append((opener, body))
    assert slow == []


@pytest.mark.parametrize("body", ["<", "{", "[", '"', "\\", "<tool_cal"])
def test_ten_megabytes_of_one_mark_are_read_and_nothing_is_lost(body: str) -> None:
    stream = TextToolStream(dialect="hermes", tools=["ls"])
    text = body * (10_000_000 // len(body))
    passed = 0
    with no_hang():
        for at in range(0, len(text), 1_000_000):
            passed += sum(len(getattr(event, "text", "")) for event in stream.feed(text[at : at + 1_000_000]))
    passed += sum(len(getattr(event, "text", "")) for event in stream.finish())
    assert passed == len(text)
