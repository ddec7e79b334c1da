"""Renders streamed Markdown on a terminal, block by block, with `rich`.

    shown = MarkdownView.of(page)         # None: not a terminal, or rich is not installed
    page.stream.write(shown.feed("Some *te"))
    page.stream.write(shown.feed("xt*.\\n\\n"))
    page.stream.write(shown.flush())

Laws: what was written is final. No control character from a model reaches the terminal, not even as an entity such as
`&#27;`, and no link hides its address. What cannot be rendered is shown as raw text.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final

from toolglot.cli.screen.markdown_blocks import MarkdownBlocks, MarkdownPiece
from toolglot.cli.screen.terminal import TerminalPage, clean, clean_lines
from toolglot.cli.screen.word_wrap import WordWrap

MIN_WIDTH: Final = 20
CODE_INDENT: Final = "  "
MIN_COLUMN: Final = 8
"""The minimum width of a table column. Tables with narrower columns are shown as raw text."""
_CUT: Final = "…"
"""What rich writes for text that it truncates."""
MAX_CODE_LINE: Final = 2_000
"""Characters of a line of code that is highlighted."""
_STYLES: Final = {
    "markdown.code": "cyan",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.h5": "italic",
    "markdown.h6": "italic",
    "markdown.block_quote": "dim",
    "markdown.item.bullet": "bold",
    "markdown.item.number": "bold",
    "markdown.link": "underline",
    "markdown.link_url": "dim underline",
}


class MarkdownView:
    """Renders one reply after the other."""

    def __init__(self, page: TerminalPage, renderer: Renderer) -> None:
        self._page = page
        self._renderer = renderer
        self._blocks = MarkdownBlocks()
        self._before = ""
        """The kind of the last piece; empty at the start of a reply."""

    @classmethod
    def of(cls, page: TerminalPage) -> MarkdownView | None:
        """A view for a page; None without a terminal or without `rich`."""
        if not page.is_live:
            return None
        try:
            renderer = Renderer(page)
        except ImportError:
            return None
        return cls(page, renderer)

    @property
    def pending(self) -> str:
        """The end of the text that is not shown yet."""
        return self._blocks.pending

    def feed(self, text: str) -> str:
        """The output for the text so far: whole lines."""
        return "".join(map(self._render, self._blocks.feed(text)))

    def flush(self) -> str:
        """The rest of the output. The next text begins another reply."""
        out = "".join(map(self._render, self._blocks.flush()))
        self._before = ""
        return out

    def _render(self, piece: MarkdownPiece) -> str:
        before, self._before = self._before, piece.kind
        if piece.kind == "code":
            return f"{self._renderer.code_line(piece.text)}\n"
        if piece.kind == "code_end":
            return ""
        is_close = not before or (before == piece.kind and piece.kind in ("item", "raw"))
        gap = "" if is_close else "\n"
        if piece.kind == "code_start":
            self._renderer.begin_code(piece.text)
            return gap
        if piece.kind == "raw":
            return gap + _wrap(piece.text, self._page.width)
        return gap + (self._renderer.block(piece.text) or _wrap(piece.text, self._page.width))


class Renderer:
    """Renders with `rich`, and cleans its output."""

    def __init__(self, page: TerminalPage) -> None:
        """Raises `ImportError` if rich is not installed."""
        self._page = page
        console = importlib.import_module("rich.console")
        theme = importlib.import_module("rich.theme")
        self._markdown: Any = _markdown_class()
        # With HTML enabled, text such as Vec<String> would be dropped as a tag.
        parser = importlib.import_module("markdown_it").MarkdownIt("commonmark", {"html": False})
        self._parser: Any = parser.enable("table").enable("strikethrough")
        system: Any = "standard" if page.has_color else None
        self._console: Any = console.Console(
            force_terminal=True,
            color_system=system,
            theme=theme.Theme(_STYLES),
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
            _environ={},
        )
        self._system: Any = importlib.import_module("rich.color").ColorSystem.STANDARD if page.has_color else None
        self._code: CodeLines | None = None

    def block(self, text: str) -> str:
        """A rendered block; empty if it cannot be rendered."""
        try:
            lines = list(self._lines(clean_lines(text)))
        except Exception:  # noqa: BLE001 - shown as raw text then
            return ""
        columns = max((line.count("|") for line in text.split("\n") if line.lstrip().startswith("|")), default=0)
        if columns * MIN_COLUMN > self._page.width or sum(line.count(_CUT) for line in lines) > text.count(_CUT):
            return ""  # a table that is too wide
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        return "".join(f"{line}\n" for line in lines)

    def _lines(self, text: str) -> Iterator[str]:
        made = self._markdown("", code_theme="ansi_dark", hyperlinks=False)
        made.parsed = self._parser.parse(text)
        options = self._console.options.update(width=max(self._page.width, MIN_WIDTH))
        for line in self._console.render_lines(made, options, pad=False):
            parts = [part for part in line if not part.control]
            while parts and not parts[-1].text.strip():
                del parts[-1]
            if parts:
                parts[-1] = parts[-1]._replace(text=parts[-1].text.rstrip())
            yield "".join(map(self._segment, parts))

    def _segment(self, segment: Any) -> str:
        text = clean(segment.text)
        if segment.style is None or self._system is None or not text:
            return text
        rendered: str = segment.style.update_link(None).render(text, color_system=self._system)
        return rendered

    def begin_code(self, language: str) -> None:
        self._code = CodeLines(language) if self._system is not None else None

    def code_line(self, line: str) -> str:
        """A line of the current code block."""
        shown = clean_lines(line)
        if self._code is None or len(shown) > MAX_CODE_LINE:
            return f"{CODE_INDENT}{shown}".rstrip()
        try:
            parts = [
                style.update_link(None).render(clean(text), color_system=self._system) if text else ""
                for style, text in self._code.style_line(shown)
            ]
        except Exception:  # noqa: BLE001 - shown without highlighting then
            self._code = None
            return f"{CODE_INDENT}{shown}".rstrip()
        return CODE_INDENT + "".join(parts)


class CodeLines:
    """Highlights code line by line, and keeps the state of the lexer between lines."""

    def __init__(self, language: str) -> None:
        lexer = importlib.import_module("pygments.lexer")
        syntax = importlib.import_module("rich.syntax")
        self._theme: Any = syntax.Syntax.get_theme("ansi_dark")
        self._style: Any = importlib.import_module("rich.style").Style
        self._lexer: Any = _lexer_of(language)
        self._is_stateful = isinstance(self._lexer, lexer.RegexLexer)
        self._tokens: Any = lexer.ExtendedRegexLexer.get_tokens_unprocessed
        self._context: Any = lexer.LexerContext
        self._stack = ["root"]

    def style_line(self, line: str) -> list[tuple[Any, str]]:
        if self._lexer is None:
            return [(self._style.null(), line)]
        found = self._tokenize_with_state(line) if self._is_stateful else self._lexer.get_tokens(line, True)
        pairs = ((kind, text.rstrip("\n")) for kind, text in found)
        return [(self._theme.get_style_for_token(kind), text) for kind, text in pairs if text]

    def _tokenize_with_state(self, line: str) -> list[tuple[Any, str]]:
        context = self._context(f"{line}\n", 0, list(self._stack))
        found = [(kind, text) for _, kind, text in self._tokens(self._lexer, context=context)]
        self._stack = context.stack
        return found


def _lexer_of(language: str) -> Any:
    """The lexer of a language; None if unknown."""
    lexers = importlib.import_module("pygments.lexers")
    name = language.replace(",", " ").strip().partition(" ")[0].strip("{}.").lower()[:40]
    if not name:
        return None
    try:
        return lexers.get_lexer_by_name(name)
    except importlib.import_module("pygments.util").ClassNotFound:
        return None


def _markdown_class() -> Any:
    """`rich.markdown.Markdown` with left-aligned headings."""
    markdown: Any = importlib.import_module("rich.markdown")

    class LeftHeading(markdown.Heading):  # type: ignore[misc]
        def __rich_console__(self, _console: Any, _options: Any) -> Iterator[Any]:
            self.text.justify = "left"
            yield self.text

    class LeftMarkdown(markdown.Markdown):  # type: ignore[misc]
        elements = {**markdown.Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - as rich has it

    return LeftMarkdown


def _wrap(text: str, width: int) -> str:
    wrap = WordWrap(lambda: width)
    shown = wrap.feed(clean_lines(text)) + wrap.flush()
    return shown if shown.endswith("\n") else f"{shown}\n"
