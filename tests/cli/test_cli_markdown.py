"""Markdown of answers at a terminal: cut into blocks while it comes, rendered once, whatever a model writes."""

from __future__ import annotations

import io
import itertools
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import no_hang
from toolglot.cli.screen.markdown_blocks import MAX_BLOCK, MarkdownBlocks, MarkdownPiece
from toolglot.cli.screen.markdown_view import MarkdownView
from toolglot.cli.screen.terminal import TerminalPage

_SGR = re.compile(r"\x1b\[[0-9;]*m")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def pieces(*fed: str) -> list[MarkdownPiece]:
    blocks = MarkdownBlocks()
    return [piece for text in fed for piece in blocks.feed(text)] + blocks.flush()


def rendered(*fed: str, color: str = "never") -> str:
    view = MarkdownView.of(TerminalPage(Tty(), color))
    assert view is not None
    return "".join(view.feed(text) for text in fed) + view.flush()


# --- blocks -----------------------------------------------------------------------------------------


def test_a_block_is_complete_as_soon_as_nothing_can_be_added_to_it() -> None:
    blocks = MarkdownBlocks()
    assert blocks.feed("# Title\n") == [MarkdownPiece("block", "# Title\n")]
    assert blocks.feed("Some *te") == []
    assert blocks.pending == "Some *te"
    assert blocks.feed("xt*.\nmore\n") == []
    assert blocks.feed("\n") == [MarkdownPiece("block", "Some *text*.\nmore\n")]
    assert blocks.pending == ""
    assert blocks.feed("- one\n") == []
    assert blocks.feed("- two\n") == [MarkdownPiece("item", "- one\n")]
    assert blocks.feed("```py\nx = 1\ny") == [
        MarkdownPiece("item", "- two\n"),
        MarkdownPiece("code_start", "py"),
        MarkdownPiece("code", "x = 1"),
    ]
    assert blocks.flush() == [MarkdownPiece("code", "y"), MarkdownPiece("code_end")]
    assert blocks.flush() == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- a\n  - b\n\n  more\n- c\n", ["- a\n  - b\n\n  more\n", "- c\n"]),
        ("- a\n\nafter\n", ["- a\n", "after\n"]),
        ("1. a\n   ```\n   x\n\n   - y\n   ```\n2. b\n", ["1. a\n   ```\n   x\n\n   - y\n   ```\n", "2. b\n"]),
        ("text\n---\nmore\n", ["text\n---\n", "more\n"]),
        ("text\n> quote\nlazy\n\nmore\n", ["text\n", "> quote\nlazy\n", "more\n"]),
        ("| a |\n|---|\n| 1 |\n\nx", ["| a |\n|---|\n| 1 |\n", "x\n"]),
        ("---\n- - -\nx", ["---\n", "- - -\n", "x\n"]),
        ("a\n# b\nc", ["a\n", "# b\n", "c\n"]),
        ("**a**\n-not an item\n", ["**a**\n-not an item\n"]),
    ],
)
def test_blocks_end_where_they_do_in_markdown(text: str, wanted: list[str]) -> None:
    assert [piece.text for piece in pieces(text)] == wanted


def test_a_fence_is_closed_only_by_one_that_is_as_long() -> None:
    text = "````\n```\nx\n```\n~~~~\n````\nafter"
    kinds = [(piece.kind, piece.text) for piece in pieces(text)]
    assert kinds[0] == ("code_start", "")
    assert [text for kind, text in kinds if kind == "code"] == ["```", "x", "```", "~~~~"]
    assert kinds[-2:] == [("code_end", ""), ("block", "after\n")]


_LINES = st.sampled_from(
    [
        "",
        "text",
        "- item",
        "  more",
        "1. one",
        "```",
        "```py",
        "> q",
        "# h",
        "---",
        "| a | b |",
        "    four",
        "*x*",
        "\t",
    ]
)


@pytest.mark.law
@given(st.lists(_LINES, max_size=20).map("\n".join), st.lists(st.integers(0, 120), max_size=6))
def test_pieces_are_the_same_however_the_text_is_cut_and_nothing_is_lost(text: str, cuts: list[int]) -> None:
    positions = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    parts = [text[start:end] for start, end in itertools.pairwise(positions)]
    found = pieces(*parts)
    assert found == pieces(text)
    shown = "".join(f"{piece.text}\n" for piece in found)
    fences = {line.strip() for line in text.split("\n") if line.strip().startswith("```")}
    lost = [line for line in text.split() if line not in shown and line not in fences]
    assert lost == []


def test_a_block_that_is_too_long_is_passed_on_as_it_is() -> None:
    line = "word " * 100 + "\n"
    found = pieces(*[line] * 100)
    assert {piece.kind for piece in found} == {"raw"}
    assert max(len(piece.text) for piece in found) < MAX_BLOCK + 2 * len(line)
    assert "".join(piece.text for piece in found).split() == (line * 100).split()
    assert pieces("\n", "short") == [MarkdownPiece("block", "short\n")]


# --- what is shown ----------------------------------------------------------------------------------


def test_headings_emphasis_lists_code_tables_quotes_and_links_are_rendered() -> None:
    text = rendered(
        "# Title\n\nA *b* **c** `d` [e](https://example.com/f)\n\n- one\n- two\n  - three\n\n3. x\n\n"
        "```python\ndef f():\n    pass\n```\n\n| n | v |\n|---|--:|\n| a | 1 |\n\n> said\n"
    )
    assert text == (
        "Title\n\nA b c d e (https://example.com/f)\n\n • one\n • two\n    • three\n 3 x\n\n"
        "  def f():\n      pass\n\n n  v\n ────\n a  1\n\n▌ said\n"
    )
    colored = rendered("**c**\n\n```python\ndef f():\n```\n", color="always")
    assert colored.startswith("\x1b[1mc\x1b[0m\n")
    assert "\x1b[94mdef\x1b[0m" in colored


def test_code_is_highlighted_line_by_line_with_what_the_lines_before_opened() -> None:
    view = MarkdownView.of(TerminalPage(Tty(), "always"))
    assert view is not None
    assert view.feed('```python\nx = """for\n').count("\n") == 1
    inside = view.feed("import this\n")
    assert inside == "  \x1b[33mimport this\x1b[0m\n", "one string, not a statement"


def test_what_looks_like_html_or_a_reference_is_not_lost() -> None:
    assert rendered("Vec<String> and <b>bold</b>\n") == "Vec<String> and <b>bold</b>\n"
    assert "https://example.com" in rendered("[1]: https://example.com\n")


def test_a_link_never_hides_its_address() -> None:
    text = rendered("[https://bank.example](https://evil.example)\n", color="always")
    assert "https://evil.example" in text
    assert "\x1b]8" not in text


@pytest.mark.parametrize(
    "text",
    [
        "a \x1b]0;owned\x07 b\n",
        "a &#27;]0;owned&#7; b\n",
        "a &#x9b;31m b\n",
        "`&#27;` `\x1b[2J`\n",
        "```\n\x1b[2J\x9b\n```\n",
        "```\x1b[2J\nx\n```\n",
        "# \x1b[2J\n",
        "- \x1b[2J\n",
        "| \x1b[2J | \x08 |\n|---|---|\n| \x1b[31m | &#8; |\n\n",
        "[a\x1b[2J](http://x/\x1b[2J)\n",
        "[a](http://x/&#27;[2J)\n",
        "![a&#27;[2J](x)\n",
        "\u202eabc\n",
        "x" * (MAX_BLOCK + 1) + "\x1b[2J\n",
    ],
)
def test_no_control_character_of_a_model_reaches_the_terminal(text: str) -> None:
    for color in ("never", "always"):
        left = _SGR.sub("", rendered(text, color=color)) if color == "always" else rendered(text)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left), repr(left)
        assert "\x1b[2J" not in rendered(text, color=color)


@pytest.mark.law
@given(st.text(alphabet="ab*_`#>-|[]()~<&;27!1. \n\x1b\x07", max_size=80))
def test_whatever_a_model_writes_can_be_shown(text: str) -> None:
    left = rendered(text)
    assert not re.search("[\x00-\x09\x0b-\x1f]", left)
    if text.strip(" \n`~"):
        assert left.strip()


def test_keys_are_masked_in_rendered_text_too() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    assert key not in rendered(f"your **{key}**\n\n```\n{key}\n```\n")


def test_there_is_no_markdown_without_a_terminal_in_a_dumb_one_or_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MarkdownView.of(TerminalPage(io.StringIO(), "always")) is None
    monkeypatch.setenv("TERM", "dumb")
    assert MarkdownView.of(TerminalPage(Tty(), "auto")) is None
    monkeypatch.setenv("TERM", "xterm")
    assert MarkdownView.of(TerminalPage(Tty(), "auto")) is not None

    class NoRich:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == "rich":
                raise ImportError(name)

    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoRich(), *sys.meta_path])
    assert MarkdownView.of(TerminalPage(Tty(), "auto")) is None


def test_a_table_with_more_columns_than_there_is_room_for_is_shown_as_it_was_written() -> None:
    pytest.importorskip("rich")
    row = "| " + " | ".join(f"value{number}" for number in range(40)) + " |"
    text = f"{row}\n{'|---' * 40}|\n{row}\n"
    shown = rendered(text)
    assert all(f"value{number}" in shown for number in range(40))


def test_a_heading_without_an_end_is_shown_as_it_was_written() -> None:
    pytest.importorskip("rich")
    with no_hang(20):
        assert "a a a" in rendered("# " + "a " * 500_000 + "\n")
