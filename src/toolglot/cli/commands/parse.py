"""`toolglot parse`: extract the tool calls that a model wrote as text."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from toolglot import jsontext
from toolglot.cli.files.documents import STDIN, compact, located_error, read_whole
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.conversation import ToolCall
from toolglot.conversation.events import BlockEnded
from toolglot.dialects.detection import detect
from toolglot.dialects.offered_tools import tool_schemas
from toolglot.dialects.registry import names
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parsed_text
from toolglot.errors import InputError, JSONError
from toolglot.limits import DEFAULT_LIMITS

_BOM: Final = "\ufeff"
_FORMS: Final = "a list of tools in any provider's form, a whole request that has one, or a list of names"
_MAX_GUESSED: Final = 1 << 20
"""Characters of a text for which `parse` tries to guess another dialect."""
_DESCRIPTION: Final = """\
Extract the tool calls from a model's text. Print them, and the text without them.

The dialect is detected unless you name it. --tools lists the tools that can be called, with the types of their
arguments. Without it, only formats with unambiguous markers are detected."""

_EPILOG: Final = """\
examples:
  toolglot parse answer.txt
  toolglot parse - --dialect hermes --format json < answer.txt
  toolglot parse answer.txt --tools tools.json
  toolglot parse answer.txt --stream 4
  toolglot parse --list

tools.json is a list of tools in any provider's form, a whole request that has one, or a list of names.

exit codes: 0 calls were found; 1 no calls; 2 unreadable input
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("file", nargs="?", metavar="FILE", help="the text of the model; '-' reads stdin")
    parser.add_argument("--dialect", default="auto", metavar="NAME", help="the dialect (default: auto)")
    parser.add_argument("--tools", metavar="FILE", help="the tools that were offered, as JSON")
    parser.add_argument("--model", default="", help="the model's name; its dialects are tried first")
    parser.add_argument(
        "--unoffered",
        choices=("call", "text"),
        default="call",
        help="treat a call of a tool that is not in --tools as a call or as text (default: call)",
    )
    parser.add_argument(
        "--stream", type=_size, default=0, metavar="N", help="feed the text in pieces of N characters, as a stream does"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    parser.add_argument("--list", action="store_true", help="list the dialects instead")


def _size(written: str) -> int:
    if not written.isdecimal() or not 0 < int(written) <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a whole number from 1 to 1000000")
    return int(written)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.list:
        if arguments.format == "json":
            terminal.write_data(compact([*names()]))
        else:
            for name in names():
                terminal.out.line(name)
        return 0
    if not arguments.file:
        raise InputError("expected a file", path="parse", hint="toolglot parse FILE, or '-' for stdin")
    if arguments.file == arguments.tools == STDIN:
        raise InputError("stdin can be read only once", path="--tools", hint="use a file for one of them")
    if arguments.unoffered == "text" and not arguments.tools:
        raise InputError("--unoffered text requires --tools", path="--unoffered", hint="add --tools FILE")
    tools = _tools(arguments.tools) if arguments.tools else []
    stream = TextToolStream(
        dialect=arguments.dialect, tools=tools, model=arguments.model, unoffered=arguments.unoffered
    )
    text = _text(arguments.file)
    step = arguments.stream or max(len(text), 1)
    pieces = (text[start : start + step] for start in range(0, len(text), step))
    ended = [event for piece in pieces for event in stream.feed(piece) if isinstance(event, BlockEnded)]
    found = parsed_text([*ended, *stream.finish()])
    dialects = list(dict.fromkeys(stream.found))
    if arguments.format == "json":
        terminal.write_data(compact(_as_json(found, dialects)))
    else:
        _show(found, dialects, terminal.out)
        hint = _hint(text, arguments, tools) if not dialects else ""
        if hint:
            terminal.out.line(f"hint: {hint}")
    return 0 if found.calls else 1


def _read(name: str) -> bytes:
    return read_whole(name, DEFAULT_LIMITS.max_bytes, hint="split the file, or feed a TextToolStream in pieces")


def _text(name: str) -> str:
    try:
        return jsontext.decode(_read(name)).removeprefix(_BOM)
    except JSONError as error:
        raise InputError(error.message, path=name, hint="the file must be UTF-8 text") from None


def _tools(name: str) -> list[Any]:
    data = _read(name)
    try:
        value = jsontext.parse(data).value
    except JSONError as error:
        raise located_error(error, data.decode(errors="replace").removeprefix(_BOM), name, hint=_FORMS) from None
    for key in ("toolConfig", "tools"):
        value = value.get(key, value) if isinstance(value, dict) else value
    listed = value if isinstance(value, list) else [value]
    try:
        tool_schemas(listed)
    except InputError as error:
        raise InputError(error.message, path=f"{name}: {error.path}", hint=_FORMS) from None
    return listed


def _hint(text: str, arguments: argparse.Namespace, tools: list[Any]) -> str:
    """What to try if no calls were found."""
    if len(text) > _MAX_GUESSED:
        return ""
    if _is_body(text):
        return "this is a response body: pass the text inside it, or use toolglot.convert_reply"
    likely = detect(text, tools, arguments.model).dialect
    if likely is None and tools:
        likely = detect(text).dialect
        return f"it looks like {likely}, with a tool that is not in --tools" if likely else ""
    if likely is None or likely == arguments.dialect:
        return ""
    return f"it looks like {likely}: use --dialect {likely}, or pass the tools with --tools"


def _is_body(text: str) -> bool:
    """Whether a text is the response body of a provider's API."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        value = jsontext.parse(text).value
    except InputError:
        return False
    return any(isinstance(value.get(key), list) for key in ("choices", "candidates", "content", "output")) or (
        isinstance(value.get("message"), dict)
    )


def _as_json(found: ParsedText, dialects: list[str]) -> dict[str, Any]:
    return {
        "calls": [_call(call) for call in found.calls],
        "cut": [{"id": call.id, "name": call.name, "written": call.raw_input} for call in found.cut],
        "text": found.text,
        "thinking": found.thinking,
        "dialects": dialects,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    fields = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return fields if call.arguments is not None else {**fields, "written": call.raw_input}


def _show(found: ParsedText, dialects: list[str], page: TerminalPage) -> None:
    for call in found.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2)
        if call.arguments is None:
            arguments = f"(not a JSON object) {clean(call.raw_input or '')}"
        page.line(page.paint(f"call {clean(call.name)}", "bold") + f"  {clean(call.id)}")
        _print_indented(arguments, page)
    for call in found.cut:
        page.line(page.paint(f"cut  {clean(call.name)}", "bold", "red") + f"  {clean(call.raw_input or '')}")
    for label, text in (("thinking", found.thinking), ("text", found.text)):
        if text:
            page.line(page.paint(label, "bold"))
            _print_indented(text, page)
    page.line(f"dialect: {', '.join(dialects)}" if dialects else "no calls found")


def _print_indented(text: str, page: TerminalPage) -> None:
    for line in text.splitlines() or [text]:
        page.line(f"  {clean(line)}".rstrip())
