"""Runs Python blocks of one page in one session, in a process of its own: `run_python_blocks.py blocks.json`.

The file holds `[[position, line, code, output], …]`. What a `print` writes must be what the page says: in the comment
at the end of its line, in the comment lines right below it, or in the `output` block that follows. An expression with
a comment that begins with a Python literal must have that value. `…` stands for anything. Exits with 1 and the list
of what differs.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import re
import sys
import tokenize
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeGuard

FILE: Final = "<docs>"


def matches(expected: str, actual: str) -> bool:
    """Whether two texts are the same, line ends aside; `…` is anything."""
    parts = (re.escape(part) for part in _trim(expected).split("…"))
    return re.fullmatch(".*?".join(parts), _trim(actual), re.DOTALL) is not None


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


class Page:
    """One namespace, and what the blocks that ran in it printed."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        module = sys.modules["__main__"] = ModuleType("__main__")  # where annotations are looked up
        self._namespace = vars(module)
        self._namespace.update(print=self._print, __shown__=self._value)
        self._printed: dict[int, list[str]] = {}
        self._comments: dict[int, str] = {}
        self._position = ""

    def run(self, position: str, line: int, code: str, output: str | None) -> None:
        self._position, self._printed = position, {}
        source = "\n" * (line - 1) + code
        self._comments = comments_of(source)
        tree = ast.fix_missing_locations(_Values(self._comments).visit(ast.parse(source, FILE)))
        prints = {node.lineno: node.end_lineno or node.lineno for node in ast.walk(tree) if is_print(node)}
        exec(compile(tree, position.partition(":")[0], "exec", dont_inherit=True), self._namespace)  # noqa: S102
        unshown: list[str] = []
        for start, end in sorted(prints.items()):
            written = "\n".join(self._printed.get(start, ()))
            shown = self._expected(end, source.splitlines())
            if shown is None and output is not None:
                unshown.append(written)
            elif shown is None:
                self._problem(start, f"prints {written!r}, which the page does not show")
            elif start not in self._printed:
                self._problem(start, "was never run")
            elif not matches(shown, written):
                self._problem(start, f"prints {written!r}, not {shown!r}")
        if output is not None and not matches(output, "\n".join(unshown)):
            self._problem(line, f"prints {unshown!r}, not {output!r}")

    def _expected(self, end: int, lines: list[str]) -> str | None:
        """What a page says that the `print` that ends on this line writes."""
        if end in self._comments:
            return self._comments[end]
        below = []
        for text in lines[end:]:
            if not text.lstrip().startswith("#"):
                break
            below.append(text.lstrip().removeprefix("#").removeprefix(" "))
        return "\n".join(below) if below else None

    def _print(self, *values: object, **options: Any) -> None:
        if "file" in options:
            builtins.print(*values, **options)  # noqa: T201
            return
        stream = io.StringIO()
        builtins.print(*values, **{key: value for key, value in options.items() if key != "flush"}, file=stream)
        line = sys._getframe(1).f_lineno
        self._printed.setdefault(line, []).append(stream.getvalue().removesuffix("\n"))

    def _value(self, line: int, value: object) -> object:
        comment = self._comments[line]
        literal, is_literal = literal_at_the_start(comment)
        if is_literal and value != literal:
            self._problem(line, f"is {value!r}, not {literal!r}")
        return value

    def _problem(self, line: int, message: str) -> None:
        self.problems.append(f"{self._position.partition(':')[0]}:{line}: {message}")


def is_print(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def comments_of(source: str) -> dict[int, str]:
    """The comments at the end of lines of code, by line."""
    found: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
            found[token.start[0]] = token.string.removeprefix("#").strip()
    return found


def literal_at_the_start(comment: str) -> tuple[object, bool]:
    """`{"a": 1}: the object` begins with a literal; `the object` does not."""
    ends = [match.start() for match in re.finditer(r"[:;] ", comment)]
    for end in (len(comment), *reversed(ends)):
        try:
            return ast.literal_eval(comment[:end]), True
        except (ValueError, SyntaxError):
            continue
    return None, False


class _Values(ast.NodeTransformer):
    """Makes expressions that have a comment show their value to `__shown__`."""

    def __init__(self, comments: dict[int, str]) -> None:
        self._comments = comments

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        value = node.value
        if node.end_lineno not in self._comments or is_print(value) or isinstance(value, ast.Constant):
            return node
        call = ast.Call(ast.Name("__shown__", ast.Load()), [ast.Constant(node.end_lineno), value], [])
        return ast.copy_location(ast.Expr(ast.copy_location(call, value)), node)


def main() -> int:
    page = Page()
    for position, line, code, output in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        page.run(position, line, code, output)
    sys.stderr.writelines(f"{problem}\n" for problem in page.problems)
    return 1 if page.problems else 0


if __name__ == "__main__":
    sys.exit(main())
